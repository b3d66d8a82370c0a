//! Capacity rules: how many procs are active.
//!
//! Procs that are not active sleep. A rule raises the active procs for arriving jobs that are wider, decides before the
//! scheduling pass (online simulation) and may lower them after it (two-level policy); see [`super::composed`] for the
//! order. Two numbers bound what it may do: at every pass at least as many procs are active as the widest waiting job
//! needs, and only idle procs are put to sleep.
use crate::error::{SimError, Stop};
use crate::kernel::{Cluster, JobId, Recorder};
use crate::platform::Machine;
use crate::registry::{Entry, Slot};
use crate::spec::SimSpec;

use super::batch::Batch;
use super::cap::Cap;

mod ols;
#[cfg(test)]
mod tests;
mod two_level;

pub use ols::ENTRY as OLS;
pub use ols::SLA_SLOWDOWN;
pub use two_level::ENTRY as TWO_LEVEL;

/// All procs are always active.
pub const NONE: Entry = Entry {
    slot: Slot::Capacity,
    name: "none",
    version: 1,
    source: "",
    doc: "All procs are always active.",
    params: &[],
};

/// The chosen capacity rule.
#[derive(Debug, Clone)]
pub(crate) struct Capacity {
    rule: Rule,
    /// Most procs that a job needs which has arrived since the last pass.
    arrived_procs: u32,
    /// Active and switching procs when the scheduling rule was last told of a change.
    told: (u32, u32),
}

#[derive(Debug, Clone)]
enum Rule {
    /// All procs are always active.
    None,
    TwoLevel(two_level::TwoLevel),
    Ols(Box<ols::Ols>),
}

impl Capacity {
    /// The rule of a spec on a machine.
    pub(crate) fn new(spec: &SimSpec, machine: &Machine) -> Result<Capacity, SimError> {
        let part = spec.part(Slot::Capacity);
        let rule = match part.entry().name {
            "none" => Rule::None,
            "two-level" => Rule::TwoLevel(two_level::TwoLevel::new(part, machine)?),
            "ols" => Rule::Ols(Box::new(ols::Ols::new(spec, machine)?)),
            other => {
                return Err(SimError::Invalid(format!("the batch policy does not know the capacity_rule `{other}`")));
            }
        };
        Ok(Capacity { rule, arrived_procs: 0, told: (machine.procs(), 0) })
    }

    /// No rule.
    pub(crate) fn none() -> Capacity {
        Capacity { rule: Rule::None, arrived_procs: 0, told: (0, 0) }
    }

    /// Before anything else happens: timers are set here.
    pub(crate) fn begin<R: Recorder>(&mut self, cluster: &mut Cluster<'_, R>) -> Result<(), Stop> {
        match &mut self.rule {
            Rule::None | Rule::TwoLevel(_) => Ok(()),
            Rule::Ols(ols) => ols.set_timer(cluster),
        }
    }

    /// A job has arrived.
    pub(crate) fn submitted<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, job: JobId) {
        self.arrived_procs = self.arrived_procs.max(cluster.procs(job));
    }

    /// A timer of the rule has come.
    pub(crate) fn timer(&mut self) {
        if let Rule::Ols(ols) = &mut self.rule {
            ols.timer();
        }
    }

    /// Before the scheduling pass: raises, and decides by online simulation.
    pub(crate) fn before_pass<R: Recorder>(
        &mut self,
        batch: &mut Batch,
        cap: &Cap,
        cluster: &mut Cluster<'_, R>,
    ) -> Result<(), Stop> {
        let wanted = std::mem::take(&mut self.arrived_procs);
        let narrow = wanted > cluster.active(0);
        match &mut self.rule {
            Rule::None => return Ok(()),
            Rule::TwoLevel(_) if narrow => set_active(cluster, cluster.machine().procs())?,
            Rule::TwoLevel(_) => {}
            Rule::Ols(ols) => {
                if narrow {
                    set_active(cluster, wanted)?;
                }
                if let Some(active) = ols.decide(batch, cap, cluster)? {
                    set_active(cluster, active)?;
                }
            }
        }
        debug_assert!(batch.all_need_at_most(cluster.active(0), cluster), "wide enough for every waiting job");
        let now = (cluster.active(0), cluster.switching(0));
        if now != self.told {
            self.told = now;
            batch.procs_changed();
        }
        Ok(())
    }

    /// After the scheduling pass: lowers.
    pub(crate) fn after_pass<R: Recorder>(&mut self, batch: &Batch, cluster: &mut Cluster<'_, R>) -> Result<(), Stop> {
        match &mut self.rule {
            Rule::None => Ok(()),
            Rule::TwoLevel(rule) => match rule.lowered(batch, cluster) {
                Some(active) => set_active(cluster, active),
                None => Ok(()),
            },
            Rule::Ols(ols) => ols.set_timer(cluster),
        }
    }
}

/// Wakes procs, or puts idle ones to sleep, so that so many are active.
fn set_active<R: Recorder>(cluster: &mut Cluster<'_, R>, procs: u32) -> Result<(), Stop> {
    let active = cluster.active(0);
    if procs > active { cluster.wake(0, procs - active) } else { cluster.sleep(0, active - procs) }
}

/// What is wrong with the parameters of the chosen rule, in sentences that name them.
pub(crate) fn problems(spec: &SimSpec) -> Vec<String> {
    let part = spec.part(Slot::Capacity);
    let known = |slot, name| spec.part(slot).opt_int(name);
    let procs = known(Slot::Platform, "procs")
        .or_else(|| known(Slot::Rules, "native_procs"))
        .or_else(|| known(Slot::Source, "synthetic_procs"));
    let factor = spec.part(Slot::Platform).opt_real("size_factor").unwrap_or(1.0);
    let machine_procs = procs.map(|procs| (procs as f64 * factor + 0.5).floor());
    let above = |name: &str| too_many(name, part.opt_int(name), machine_procs);
    match part.entry().name {
        "two-level" => above("two_level_procs").into_iter().collect(),
        "ols" => above("ols_min_active_procs").into_iter().chain(ols::level_problems(part)).collect(),
        _ => Vec::new(),
    }
}

/// A sentence if a number of procs is greater than the machine.
fn too_many(name: &str, procs: Option<i64>, machine_procs: Option<f64>) -> Option<String> {
    let (procs, machine_procs) = (procs?, machine_procs?);
    (procs as f64 > machine_procs).then(|| format!("`{name}` is {procs}, but the machine has {machine_procs} procs"))
}
