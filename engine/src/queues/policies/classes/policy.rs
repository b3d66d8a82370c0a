//! What a policy of this folder is made of, and how it is made from a spec.
use super::phases::{self, Plan};
use super::system::Groups;
use super::{Changing, Phase, Rescaled, lpas, system};
use crate::error::SimError;
use crate::error::Stop;
use crate::lp::{self, Allocation, System};
use crate::queues::kernel::arrivals::{ClassStream, Poisson, Work};
use crate::queues::kernel::policy::QueuePolicy;
use crate::queues::kernel::servers::{ServerTable, Servers};
use crate::spec::{Component, Role, SimSpec};

/// A policy for systems in which every class has its own rate and power on every server.
///
/// Its file has a `pub const COMPONENT` beside it, and is registered by a line in the list of this folder.
pub trait ClassPolicy: QueuePolicy {
    /// Whether servers may leave, come back and change their speed under it: [`ClassPolicy::changed`] is called then.
    const SERVERS_CHANGE: bool;

    /// Whether it needs the shares of a linear program, at the capacity that a component `class-lpas` asks for.
    const FOLLOWS_SHARES: bool = false;

    /// What is wrong with a spec of it that no single value shows: a sentence that names the parameters.
    fn problem(spec: &SimSpec, system: &System) -> Option<String> {
        let _ = (spec, system);
        None
    }

    /// The policy of a spec without problems.
    ///
    /// # Errors
    /// A sentence, for what is wrong nevertheless.
    fn of(model: &Model<'_>) -> Result<Self, String>;

    /// A phase begins: servers that left are off, those that came back are free, speeds are set; `shares` are new if it
    /// follows some.
    ///
    /// # Errors
    /// Those of the policy's decisions.
    fn changed(&mut self, servers: &mut Servers, shares: Option<&[f64]>) -> Result<(), Stop> {
        let _ = (servers, shares);
        Ok(())
    }
}

/// A registered policy, as the list of this folder has it.
#[derive(Debug)]
pub(super) struct Kind {
    pub(super) component: &'static Component,
    pub(super) servers_change: bool,
    pub(super) follows_shares: bool,
    pub(super) problem: fn(&SimSpec, &System) -> Option<String>,
}

impl Kind {
    pub(super) const fn of<P: ClassPolicy>(component: &'static Component) -> Kind {
        Kind { component, servers_change: P::SERVERS_CHANGE, follows_shares: P::FOLLOWS_SHARES, problem: P::problem }
    }
}

/// Takes a policy of any type.
pub trait Visitor {
    /// What it makes of it.
    type Output;

    /// Servers, arrivals and policy of a run.
    fn visit<P: QueuePolicy>(self, table: ServerTable, arrivals: Rescaled<Poisson>, policy: P) -> Self::Output;
}

/// What a spec describes: the system, its changes, and the shares that go with them.
#[derive(Debug)]
pub struct Model<'a> {
    /// The spec.
    pub spec: &'a SimSpec,
    /// Its system at the start.
    pub system: System,
    /// Its servers by group.
    pub groups: Groups,
    /// delta* of each phase, the first from the start; empty if the policy follows no shares.
    pub allocations: Vec<Allocation>,
    plans: Vec<Plan>,
}

impl<'a> Model<'a> {
    /// Of a spec whose policy is of this folder, and that has no problems.
    ///
    /// # Errors
    /// [`SimError::Invalid`]: what is wrong nevertheless, and what the linear programs say.
    pub(super) fn new(spec: &'a SimSpec, kind: &Kind) -> Result<Model<'a>, SimError> {
        let system = system::system(spec).map_err(SimError::Invalid)?;
        let groups = Groups::of(spec.choice(Role::Platform), system.classes()).map_err(SimError::Invalid)?;
        let plans = phases::of(spec, &groups).map_err(SimError::Invalid)?;
        let mut model = Model { spec, system, groups, allocations: Vec::new(), plans };
        if kind.follows_shares {
            model.allocations = model.plans.iter().map(|plan| model.allocation(plan)).collect::<Result<_, _>>()?;
        }
        Ok(model)
    }

    fn allocation(&self, plan: &Plan) -> Result<Allocation, SimError> {
        let system = phases::system(plan, &self.system, &self.groups).map_err(SimError::Invalid)?;
        let capacity = lp::capacity(&system).map_err(unsolved)?;
        let target = lpas::target(self.spec.choice(Role::Policy), capacity.lambda);
        lp::allocation(&system, &capacity, target).map_err(unsolved)
    }

    /// The servers as the kernel takes them.
    pub fn table(&self) -> ServerTable {
        let (classes, machines) = (self.system.classes(), self.system.machines());
        let cells = || (0..classes).flat_map(|class| (0..machines).map(move |machine| (class, machine)));
        let rates = cells().map(|(i, j)| self.system.rate_per_s(i, j)).collect();
        let busy_w = cells().map(|(i, j)| self.system.busy_w(i, j)).collect();
        ServerTable::with_idle_w(machines, classes, rates, busy_w, self.system.idle_w().to_vec())
    }

    /// Shows a visitor the run of a policy of this type.
    ///
    /// # Errors
    /// [`SimError::Invalid`] if the policy cannot be made.
    pub(super) fn show<P: ClassPolicy, V: Visitor>(&self, visitor: V) -> Result<V::Output, SimError> {
        let (policy, mut table) = (P::of(self).map_err(SimError::Invalid)?, self.table());
        let stream = |rate_per_s: &f64| ClassStream { rate_per_s: *rate_per_s, work: Work::Exponential { mean: 1.0 } };
        let streams: Vec<_> = self.system.arrivals_per_s().iter().map(stream).collect();
        let factors = self.plans.iter().map(|plan| (plan.at_s, plan.arrivals)).collect();
        let arrivals = Rescaled::new(Poisson::new(&streams, self.spec.seed), factors);
        if !P::SERVERS_CHANGE || self.plans.len() == 1 {
            return Ok(visitor.visit(table, arrivals, policy));
        }
        // Off are only servers that have left.
        table.off_w.fill(0.0);
        let phase = |(i, plan): (usize, &Plan)| Phase {
            at_s: plan.at_s,
            speeds: self.groups.by_server(&plan.speeds),
            shares: self.allocations.get(i).map(|solved| solved.delta.clone()),
        };
        let phases = self.plans.iter().enumerate().map(phase).collect();
        Ok(visitor.visit(table, arrivals, Changing::new(policy, phases)))
    }
}

/// A program without an answer, as the end of a run.
pub(super) fn unsolved(error: lp::LpError) -> SimError {
    SimError::Invalid(error.to_string())
}
