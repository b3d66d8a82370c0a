//! Capacity rules: how many procs are active.
//!
//! Procs that are not active sleep. A rule raises the active procs for arriving jobs that are wider, decides before the
//! scheduling pass (online simulation) and may lower them after it (two-level policy); see [`super::composed`] for the
//! order. Two numbers bound what it may do: at every pass at least as many procs are active as the widest waiting job
//! needs, and only idle procs are put to sleep.
//!
//! A rule is a file with its description and a [`CapacityRule`]. The list below and one line in
//! [`crate::components::COMPONENTS`] register it.
pub mod ols;
pub mod two_level;

use crate::batch::kernel::{Cluster, JobId, Recorder};
use crate::batch::platform::Machine;
use crate::error::{SimError, Stop};
use crate::spec::{Choice, Component, Role, SimSpec};

use super::batch::Batch;
use super::cap::Cap;

#[cfg(test)]
mod tests;

pub use ols::SLA_SLOWDOWN;

/// Declares the files of this folder and their rules, how one is chosen, and its calls.
macro_rules! capacity_rules {
    ($($file:ident: $rule:ident),* $(,)?) => {
        /// The chosen capacity rule.
        #[derive(Debug, Clone)]
        enum Rule {
            $($rule(Box<$file::$rule>)),*
        }

        impl Rule {
            /// The rule of a spec on a machine; none if all procs are always active.
            fn of(spec: &SimSpec, machine: &Machine) -> Result<Option<Rule>, SimError> {
                let choice = spec.choice(Role::Capacity);
                $(if *choice.component() == $file::COMPONENT {
                    // Some problems are known only with the workload's machine.
                    let problems = $file::$rule::problems(choice, Some(f64::from(machine.procs())));
                    if let Some(problem) = problems.into_iter().next() {
                        return Err(SimError::Invalid(problem));
                    }
                    return Ok(Some(Rule::$rule(Box::new($file::$rule::of(spec)?))));
                })*
                if *choice.component() == NONE {
                    return Ok(None);
                }
                let name = choice.component().name;
                Err(SimError::Invalid(format!("the batch policy does not know the capacity_rule `{name}`")))
            }

            fn begin<R: Recorder>(&mut self, cluster: &mut Cluster<'_, R>) -> Result<(), Stop> {
                match self {
                    $(Rule::$rule(rule) => rule.begin(cluster)),*
                }
            }

            fn timer(&mut self) {
                match self {
                    $(Rule::$rule(rule) => rule.timer()),*
                }
            }

            fn raised(&self, wanted: u32, procs: u32) -> u32 {
                match self {
                    $(Rule::$rule(rule) => rule.raised(wanted, procs)),*
                }
            }

            fn before_pass<R: Recorder>(
                &mut self,
                batch: &Batch,
                cap: &Cap,
                cluster: &mut Cluster<'_, R>,
            ) -> Result<Option<u32>, Stop> {
                match self {
                    $(Rule::$rule(rule) => rule.before_pass(batch, cap, cluster)),*
                }
            }

            fn after_pass<R: Recorder>(
                &mut self,
                batch: &Batch,
                cluster: &mut Cluster<'_, R>,
            ) -> Result<Option<u32>, Stop> {
                match self {
                    $(Rule::$rule(rule) => rule.after_pass(batch, cluster)),*
                }
            }
        }

        /// What is wrong with the parameters of the chosen rule, in sentences that name them.
        pub(crate) fn problems(spec: &SimSpec) -> Vec<String> {
            let choice = spec.choice(Role::Capacity);
            $(if *choice.component() == $file::COMPONENT {
                return $file::$rule::problems(choice, machine_procs(spec));
            })*
            Vec::new()
        }
    };
}

capacity_rules! {
    two_level: TwoLevel,
    ols: Ols,
}

/// All procs are always active.
pub const NONE: Component = Component {
    role: Role::Capacity,
    name: "none",
    version: 1,
    source: "",
    doc: "All procs are always active.",
    params: &[],
};

/// The chosen capacity rule.
#[derive(Debug, Clone)]
pub(crate) struct Capacity {
    /// None: all procs are always active.
    rule: Option<Rule>,
    /// Most procs that a job needs which has arrived since the last pass.
    arrived_procs: u32,
    /// Active and switching procs when the scheduling rule was last told of a change.
    told: (u32, u32),
}

/// A rule for active procs. It may set timers with [`super::composed::CAPACITY_TOKENS`]. The numbers that it gives are at
/// least those in use, and at least what the widest waiting job needs; `procs` is the whole machine.
trait CapacityRule: Sized {
    /// The rule of a spec that has no problems.
    fn of(spec: &SimSpec) -> Result<Self, SimError>;

    /// What is wrong with the parameters, in sentences that name them; the machine's procs, once they are known.
    fn problems(_: &Choice, _: Option<f64>) -> Vec<String> {
        Vec::new()
    }

    /// Before anything else happens.
    fn begin<R: Recorder>(&mut self, _: &mut Cluster<'_, R>) -> Result<(), Stop> {
        Ok(())
    }

    /// A timer of the rule has come.
    fn timer(&mut self) {}

    /// Active procs once a job has arrived that needs `wanted`, more than are active.
    fn raised(&self, wanted: u32, _procs: u32) -> u32 {
        wanted
    }

    /// Before the scheduling pass, with jobs waiting that have arrived: active procs from now on, if they change.
    fn before_pass<R: Recorder>(&mut self, _: &Batch, _: &Cap, _: &mut Cluster<'_, R>) -> Result<Option<u32>, Stop> {
        Ok(None)
    }

    /// After the scheduling pass: active procs from now on, if they change.
    fn after_pass<R: Recorder>(&mut self, _: &Batch, _: &mut Cluster<'_, R>) -> Result<Option<u32>, Stop> {
        Ok(None)
    }
}

impl Capacity {
    /// The rule of a spec on a machine.
    pub(crate) fn new(spec: &SimSpec, machine: &Machine) -> Result<Capacity, SimError> {
        Ok(Capacity { rule: Rule::of(spec, machine)?, arrived_procs: 0, told: (machine.procs(), 0) })
    }

    /// No rule.
    pub(crate) fn none() -> Capacity {
        Capacity { rule: None, arrived_procs: 0, told: (0, 0) }
    }

    /// Before anything else happens: timers are set here.
    pub(crate) fn begin<R: Recorder>(&mut self, cluster: &mut Cluster<'_, R>) -> Result<(), Stop> {
        self.rule.as_mut().map_or(Ok(()), |rule| rule.begin(cluster))
    }

    /// A job has arrived.
    pub(crate) fn submitted<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, job: JobId) {
        self.arrived_procs = self.arrived_procs.max(cluster.procs(job));
    }

    /// A timer of the rule has come.
    pub(crate) fn timer(&mut self) {
        if let Some(rule) = &mut self.rule {
            rule.timer();
        }
    }

    /// Before the scheduling pass: raises for wide jobs, then does what the rule decides.
    pub(crate) fn before_pass<R: Recorder>(
        &mut self,
        batch: &mut Batch,
        cap: &Cap,
        cluster: &mut Cluster<'_, R>,
    ) -> Result<(), Stop> {
        let wanted = std::mem::take(&mut self.arrived_procs);
        let Some(rule) = &mut self.rule else { return Ok(()) };
        if wanted > cluster.active(0) {
            set_active(cluster, rule.raised(wanted, cluster.machine().procs()))?;
        }
        if let Some(active) = rule.before_pass(batch, cap, cluster)? {
            set_active(cluster, active)?;
        }
        debug_assert!(batch.all_need_at_most(cluster.active(0), cluster), "wide enough for every waiting job");
        let now = (cluster.active(0), cluster.switching(0));
        if now != self.told {
            self.told = now;
            batch.procs_changed();
        }
        Ok(())
    }

    /// After the scheduling pass: what the rule decides, most often to lower.
    pub(crate) fn after_pass<R: Recorder>(&mut self, batch: &Batch, cluster: &mut Cluster<'_, R>) -> Result<(), Stop> {
        let Some(rule) = &mut self.rule else { return Ok(()) };
        match rule.after_pass(batch, cluster)? {
            Some(active) => set_active(cluster, active),
            None => Ok(()),
        }
    }
}

/// Wakes procs, or puts idle ones to sleep, so that so many are active.
fn set_active<R: Recorder>(cluster: &mut Cluster<'_, R>, procs: u32) -> Result<(), Stop> {
    let active = cluster.active(0);
    if procs > active { cluster.wake(0, procs - active) } else { cluster.sleep(0, active - procs) }
}

/// The machine's procs, if the spec says.
fn machine_procs(spec: &SimSpec) -> Option<f64> {
    let known = |role, name| spec.choice(role).opt_int(name);
    let procs = known(Role::Platform, "procs")
        .or_else(|| known(Role::Rules, "native_procs"))
        .or_else(|| known(Role::Source, "synthetic_procs"));
    let factor = spec.choice(Role::Platform).opt_real("size_factor").unwrap_or(1.0);
    procs.map(|procs| (procs as f64 * factor + 0.5).floor())
}

/// A sentence if a number of procs is greater than the machine.
fn too_many(name: &str, procs: Option<i64>, machine_procs: Option<f64>) -> Option<String> {
    let (procs, machine_procs) = (procs?, machine_procs?);
    (procs as f64 > machine_procs).then(|| format!("`{name}` is {procs}, but the machine has {machine_procs} procs"))
}
