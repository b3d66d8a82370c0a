//! The trait of policies of this folder, and the system of a spec from which a policy is made.
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
/// Its file also has a `pub const COMPONENT`; a line in the list of this folder registers both.
pub trait ClassPolicy: QueuePolicy {
    /// Whether servers may leave, return and change their speed: then [`ClassPolicy::changed`] is called.
    const SERVERS_CHANGE: bool;

    /// Whether it needs the shares of a linear program, at the capacity that the parameters of `class-lpas` set.
    const FOLLOWS_SHARES: bool = false;

    /// The first problem of a spec with this policy, apart from single values out of range: a sentence that names the
    /// parameters.
    fn problem(spec: &SimSpec, system: &System) -> Option<String> {
        let _ = (spec, system);
        None
    }

    /// The policy of a spec without problems.
    ///
    /// # Errors
    /// A sentence with a problem that appeared only now.
    fn of(setup: &Setup<'_>) -> Result<Self, String>;

    /// A phase begins. Servers that left are off, servers that returned are free, speeds are set. `shares`: new shares, for
    /// a policy that follows shares.
    ///
    /// # Errors
    /// The errors of the policy's decisions.
    fn changed(&mut self, servers: &mut Servers, shares: Option<&[f64]>) -> Result<(), Stop> {
        let _ = (servers, shares);
        Ok(())
    }
}

/// A registered policy of this folder.
#[derive(Debug)]
pub(super) struct Registered {
    pub(super) component: &'static Component,
    pub(super) servers_change: bool,
    pub(super) follows_shares: bool,
    pub(super) problem: fn(&SimSpec, &System) -> Option<String>,
}

impl Registered {
    pub(super) const fn of<P: ClassPolicy>(component: &'static Component) -> Registered {
        let (servers_change, follows_shares) = (P::SERVERS_CHANGE, P::FOLLOWS_SHARES);
        Registered { component, servers_change, follows_shares, problem: P::problem }
    }
}

/// A function of the parts of a run, generic over the type of the policy.
pub trait Visitor {
    /// Its result.
    type Output;

    /// Called with servers, arrivals and policy of a run.
    fn visit<P: QueuePolicy>(self, table: ServerTable, arrivals: Rescaled<Poisson>, policy: P) -> Self::Output;
}

/// The system that a spec describes, its changes, and the shares of its phases.
#[derive(Debug)]
pub struct Setup<'a> {
    /// The spec.
    pub spec: &'a SimSpec,
    /// The system at the start.
    pub system: System,
    /// The servers by group.
    pub groups: Groups,
    /// delta* of each phase; empty if the policy does not follow shares.
    pub allocations: Vec<Allocation>,
    plans: Vec<Plan>,
}

impl<'a> Setup<'a> {
    /// The system of a spec without problems, and the shares of its phases if the policy follows shares.
    ///
    /// # Errors
    /// [`SimError::Invalid`]: a problem that appeared only now, or a linear program without a solution.
    pub(super) fn new(spec: &'a SimSpec, policy: &Registered) -> Result<Setup<'a>, SimError> {
        let system = system::system(spec).map_err(SimError::Invalid)?;
        let groups = Groups::of(spec.choice(Role::Platform), system.classes()).map_err(SimError::Invalid)?;
        let plans = phases::of(spec, &groups).map_err(SimError::Invalid)?;
        let mut setup = Setup { spec, system, groups, allocations: Vec::new(), plans };
        if policy.follows_shares {
            setup.allocations = setup.plans.iter().map(|plan| setup.allocation(plan)).collect::<Result<_, _>>()?;
        }
        Ok(setup)
    }

    fn allocation(&self, plan: &Plan) -> Result<Allocation, SimError> {
        let system = phases::system(plan, &self.system, &self.groups).map_err(SimError::Invalid)?;
        let capacity = lp::capacity(&system).map_err(unsolved)?;
        let target = lpas::target(self.spec.choice(Role::Policy), capacity.lambda);
        lp::allocation(&system, &capacity, target).map_err(unsolved)
    }

    /// The servers' rates and powers, for the kernel.
    pub fn table(&self) -> ServerTable {
        let (classes, machines) = (self.system.classes(), self.system.machines());
        let cells = || (0..classes).flat_map(|class| (0..machines).map(move |machine| (class, machine)));
        let rates = cells().map(|(i, j)| self.system.rate_per_s(i, j)).collect();
        let busy_w = cells().map(|(i, j)| self.system.busy_w(i, j)).collect();
        ServerTable::with_idle_w(machines, classes, rates, busy_w, self.system.idle_w().to_vec())
    }

    /// Passes a run under a policy of this type to a visitor.
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
        // Only servers that have left are off.
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

/// The error for a linear program without a solution.
pub(super) fn unsolved(error: lp::LpError) -> SimError {
    SimError::Invalid(error.to_string())
}
