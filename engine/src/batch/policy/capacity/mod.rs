//! Capacity rules: how many procs are active.
//!
//! Procs that are not active sleep. A rule raises the number of active procs when a wider job arrives, decides before
//! the scheduling pass (online simulation) and may lower the number after it (two-level policy); see
//! [`super::composed`] for the order. Only idle procs are put to sleep. At every pass at least as many procs are active
//! as the widest waiting job needs, unless the scheduler may reserve sleeping procs (power saving).
//!
//! A rule is a file with its description and a [`CapacityRule`]; the list below registers it.
pub mod ols;
pub mod power_save;
mod rule;
#[cfg(test)]
mod tests;
pub mod two_level;

use super::capped::CappedBatch;
use crate::batch::kernel::{Cluster, JobId, Recorder};
use crate::batch::platform::Machine;
use crate::batch::rules::rules;
use crate::error::{Result, SimError};
use crate::spec::{Choice, Component, Role, SimSpec};
use rule::{CapacityRule, set_active};

pub(super) use rule::TOKEN;

rules! { $
    /// The chosen capacity rule.
    enum Rule {
        two_level: TwoLevel,
        ols: Ols,
        power_save: PowerSave,
    }
}

/// All procs are always active.
pub const NONE: Component = Component {
    role: Role::Capacity,
    name: "none",
    version: 1,
    doc: "All procs are always active.",
    reads: "Nothing.",
    guarantees: "No job waits for a proc that sleeps.",
    ..Component::BATCH
};

/// The chosen capacity rule.
#[derive(Debug, Clone)]
pub(crate) struct Capacity {
    /// `None`: all procs are always active.
    rule: Option<Rule>,
    /// Procs of the widest job that has arrived since the last pass.
    arrived_procs: u32,
    /// Active and switching procs that the backfilling rule knows.
    reported: (u32, u32),
}

impl Capacity {
    /// The rule of a spec on a machine.
    pub(crate) fn new(spec: &SimSpec, machine: &Machine) -> Result<Capacity, SimError> {
        let choice = spec.choice(Role::Capacity);
        let rule = chosen!(choice.component(), (spec, machine));
        if let Some(rule) = &rule {
            // Some problems show only with the machine of the workload.
            let problems = each!(rule, rule => problems_of(rule, choice, machine));
            problems.into_iter().next().map_or(Ok(()), |problem| Err(SimError::Invalid(problem)))?;
        } else if *choice.component() != NONE {
            let name = choice.component().name;
            return Err(SimError::Invalid(format!("the batch policy does not know the capacity_rule `{name}`")));
        }
        Ok(Capacity { rule, arrived_procs: 0, reported: (machine.procs, 0) })
    }

    /// Whether the scheduler may reserve sleeping procs.
    fn counts_sleeping(&self) -> bool {
        self.rule.as_ref().is_some_and(|rule| each!(rule, rule => rule.counts_sleeping()))
    }

    /// A job has arrived.
    pub(crate) fn submitted<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, job: JobId) {
        self.arrived_procs = self.arrived_procs.max(cluster.procs(job));
    }

    /// A timer of the rule is due.
    pub(crate) fn timer(&mut self) {
        if let Some(rule) = &mut self.rule {
            each!(rule, rule => rule.timer());
        }
    }

    /// Whether the number of active procs changes.
    #[inline]
    pub(crate) fn changes(&self) -> bool {
        self.rule.is_some()
    }

    /// Before the scheduling pass: wakes procs for wide jobs, then applies the decision of the rule.
    pub(crate) fn before_pass<R: Recorder>(
        &mut self,
        batch: &mut CappedBatch,
        cluster: &mut Cluster<'_, R>,
    ) -> Result<()> {
        let wanted = std::mem::take(&mut self.arrived_procs);
        let counts_sleeping = self.counts_sleeping();
        let Some(rule) = &mut self.rule else { return Ok(()) };
        if counts_sleeping {
            cluster.count_sleeping();
        } else if wanted > cluster.active() {
            set_active(cluster, each!(rule, rule => rule.raised(wanted, cluster.machine().procs)))?;
        }
        if let Some(active) = each!(rule, rule => rule.before_pass(batch, cluster))? {
            set_active(cluster, active)?;
        }
        let active = cluster.active();
        debug_assert!(
            counts_sleeping || !batch.waiting().any(|job| cluster.procs(job) > active),
            "a waiting job needs more than the active procs"
        );
        let present = (active, cluster.switching());
        // The reservation of sleeping procs moves with the clock.
        if present != self.reported || cluster.sleeping_that_count() > 0 {
            self.reported = present;
            batch.procs_changed();
        }
        Ok(())
    }

    /// After the scheduling pass: applies the decision of the rule.
    pub(crate) fn after_pass<R: Recorder>(&mut self, batch: &CappedBatch, cluster: &mut Cluster<'_, R>) -> Result<()> {
        let Some(rule) = &mut self.rule else { return Ok(()) };
        let active = each!(rule, rule => rule.after_pass(batch, cluster))?;
        active.map_or(Ok(()), |active| set_active(cluster, active))
    }
}

/// Problems of a rule's parameters on a machine.
fn problems_of<T: CapacityRule>(_: &T, choice: &Choice, machine: &Machine) -> Vec<String> {
    T::problems(choice, Some(f64::from(machine.procs)))
}
