//! The linear programs of the systems of a sweep, without a simulation.

use powersweep_dataset::{Error, Kind, OrKind, failure};
use powersweep_engine::lp::structured::Decomposition;
use powersweep_engine::lp::{self, Capacity, System};
use powersweep_engine::queues::policies::classes::system::{self, Groups};
use powersweep_engine::queues::policies::classes::{self, lpas};
use powersweep_engine::{Role, SimSpec};
use powersweep_experiments::{Sweep, TaskSpec};
use serde::Serialize;

use crate::inputs;

/// Maximum number of systems; a sweep can have millions.
const SYSTEMS_MAX: usize = 1000;

/// Maximum number of tasks decoded, so that the answer comes fast for a sweep of any size.
const TASKS_MAX: u64 = 1_000_000;

/// The linear programs of one system.
#[derive(Debug, Clone, Serialize)]
pub struct SystemPrograms {
    /// Label of the workload.
    pub workload: String,
    /// Label of the platform.
    pub platform: String,
    /// Index of the first task with the system.
    pub first_index: u64,
    /// Number of servers of each group of equal servers.
    pub group_servers: Vec<usize>,
    /// Singular values of the rates at the start, for rates that are decomposed.
    pub singular_values: Option<Vec<f64>>,
    /// Fitted beta of each group at the start (J).
    pub betas_j: Option<Vec<f64>>,
    /// The period from the start.
    #[serde(flatten)]
    pub start: PhasePrograms,
    /// A period for each change of arrivals or servers.
    pub changes: Vec<PhasePrograms>,
}

/// The linear programs of a period in which the system does not change.
#[derive(Debug, Clone, Serialize)]
pub struct PhasePrograms {
    /// Start of the period (s).
    pub at_s: f64,
    /// Arrivals of each class (1/s).
    pub arrivals_per_s: Vec<f64>,
    /// lambda*: by which factor all arrivals can grow.
    pub lambda: f64,
    /// The load: 1 / lambda*.
    pub load: f64,
    /// theta*: shares of each class (row) on the servers of each group (column) at lambda*.
    pub theta: Vec<Vec<f64>>,
    /// Allocations of least power, for each capacity that a policy uses.
    pub allocations: Vec<AllocationShares>,
}

/// The allocation of least power with a capacity.
#[derive(Debug, Clone, Serialize)]
pub struct AllocationShares {
    /// Label of the policy that uses the capacity; `lambda*` and `midpoint` without such a policy.
    pub policy: String,
    /// The capacity c.
    pub capacity: f64,
    /// The power (W).
    pub power_w: f64,
    /// delta*: shares of each class (row) on the servers of each group (column).
    pub delta: Vec<Vec<f64>>,
    /// Load of a server of each group.
    pub loads: Vec<f64>,
}

/// The linear programs of the distinct systems of a sweep, or of the system of one task.
///
/// # Errors
/// No task has a system with a rate for each class, or a program has no solution.
pub fn of(sweep: &Sweep, index: Option<u64>) -> Result<Vec<SystemPrograms>, Error> {
    let found = systems(sweep, index)?;
    if found.is_empty() {
        let reason = "no task has a system with a rate for each class: choose source = \"poisson-classes\" and machine = \
                    \"rate-matrix\" or \"structured\"";
        return Err(failure!(Usage, "{}: {reason}", sweep.manifest().name()));
    }
    found.iter().map(Found::programs).collect()
}

/// A period in which a system does not change.
struct Phase {
    /// Start of the period (s).
    at_s: f64,
    system: System,
    capacity: Capacity,
}

/// One system with the capacities to allocate for.
struct Found {
    task: TaskSpec,
    groups: Groups,
    /// The phase from the start, and one for each change of arrivals or servers.
    phases: Vec<Phase>,
    /// Capacities c, one for each phase, with the label of the policy that uses them; lambda* and midpoint without such
    /// a policy.
    targets: Vec<(String, Vec<f64>)>,
}

/// The distinct systems of a sweep, in the order of their first tasks.
fn systems(sweep: &Sweep, index: Option<u64>) -> Result<Vec<Found>, Error> {
    let mut found: Vec<Found> = Vec::new();
    let mut next = index.or_else(|| sweep.next_included(0));
    for _ in 0..TASKS_MAX {
        let Some(at) = next else { break };
        let task = inputs::task(sweep, at)?;
        next = if index.is_some() { None } else { sweep.next_included(at + 1) };
        if !system::describes(&task.sim) {
            continue;
        }
        let systems = classes::systems(&task.sim).map_err(|problem| failure!(Usage, "{problem}"))?;
        let place = match found.iter().position(|known| known.is_of(&systems)) {
            Some(place) => place,
            None if found.len() == SYSTEMS_MAX => break,
            None => {
                found.push(Found::new(task.clone(), systems)?);
                found.len() - 1
            }
        };
        found[place].add_targets(&task.policy, &task.sim);
    }
    for found in &mut found {
        if found.targets.is_empty() {
            found.targets = vec![
                ("lambda*".to_owned(), found.lambdas().collect()),
                ("midpoint".to_owned(), found.lambdas().map(|lambda| (1.0 + lambda) / 2.0).collect()),
            ];
        }
    }
    Ok(found)
}

impl Found {
    fn new(task: TaskSpec, systems: Vec<(f64, System)>) -> Result<Found, Error> {
        let groups = Groups::of(task.sim.choice(Role::Platform), systems[0].1.classes());
        let groups = groups.map_err(|problem| failure!(Usage, "{problem}"))?;
        let phase = |(at_s, system)| {
            let capacity = lp::capacity(&system).or_kind(Kind::Failure)?;
            Ok(Phase { at_s, system, capacity })
        };
        let phases = systems.into_iter().map(phase).collect::<Result<_, Error>>()?;
        Ok(Found { task, groups, phases, targets: Vec::new() })
    }

    /// Whether the phases have these systems.
    fn is_of(&self, systems: &[(f64, System)]) -> bool {
        self.phases
            .iter()
            .map(|phase| (phase.at_s, &phase.system))
            .eq(systems.iter().map(|(at_s, system)| (*at_s, system)))
    }

    fn lambdas(&self) -> impl Iterator<Item = f64> {
        self.phases.iter().map(|phase| phase.capacity.lambda)
    }

    /// Adds the capacities that the policy uses, if it solves linear programs.
    fn add_targets(&mut self, label: &str, spec: &SimSpec) {
        let policy = spec.choice(Role::Policy);
        if *policy.component() == lpas::COMPONENT {
            let targets: Vec<f64> = self.lambdas().map(|lambda| lpas::target(policy, lambda)).collect();
            if self.targets.iter().all(|(_, known)| *known != targets) {
                self.targets.push((label.to_owned(), targets));
            }
        }
    }

    /// Values of servers as one row for each class, with one value for each group of equal servers, which share evenly.
    fn by_group(&self, values: &[f64]) -> Vec<Vec<f64>> {
        self.groups.of_firsts(values).chunks(self.groups.servers.len()).map(<[f64]>::to_vec).collect()
    }

    fn programs(&self) -> Result<SystemPrograms, Error> {
        let mut phases = (0..self.phases.len()).map(|phase| self.phase(phase));
        let start = phases.next().ok_or_else(|| failure!(Failure, "a system has no period"))??;
        let svd = Decomposition::of(self.groups.rates_per_s(), self.phases[0].system.classes());
        Ok(SystemPrograms {
            workload: self.task.workload.to_string(),
            platform: self.task.platform.to_string(),
            first_index: self.task.index,
            group_servers: self.groups.servers.clone(),
            singular_values: svd.map(|svd| svd.singular),
            betas_j: system::fitted_betas(&self.groups),
            start,
            changes: phases.collect::<Result<_, _>>()?,
        })
    }

    fn phase(&self, phase: usize) -> Result<PhasePrograms, Error> {
        let Phase { at_s, system, capacity } = &self.phases[phase];
        let shares = |(label, targets): &(String, Vec<f64>)| {
            let allocation = lp::allocation(system, capacity, targets[phase]).or_kind(Kind::Failure)?;
            Ok(AllocationShares {
                policy: label.clone(),
                capacity: allocation.capacity,
                power_w: allocation.power_w,
                delta: self.by_group(&allocation.delta),
                loads: self.by_group(&allocation.loads(system.machines())).concat(),
            })
        };
        Ok(PhasePrograms {
            at_s: *at_s,
            arrivals_per_s: system.arrivals_per_s().to_vec(),
            lambda: capacity.lambda,
            load: 1.0 / capacity.lambda,
            theta: self.by_group(&capacity.theta),
            allocations: self.targets.iter().map(shares).collect::<Result<_, Error>>()?,
        })
    }
}
