//! The trait of capacity rules, and their common functions.
use crate::batch::kernel::{Cluster, Recorder};
use crate::batch::platform::Machine;
use crate::batch::policy::capped::CappedBatch;
use crate::error::Result;
use crate::spec::{Choice, Role, SimSpec};

/// Token of a capacity rule's timers. Timers of backfilling rules have lower tokens.
pub(in crate::batch::policy) const TOKEN: u64 = 1 << 62;

/// A rule for the number of active procs. It may set timers with [`TOKEN`]. The numbers that it returns are at least
/// the procs in use and, unless it counts sleeping procs, at least the procs of the widest waiting job.
pub(super) trait CapacityRule: Clone {
    /// The rule of a spec on a machine.
    fn of(spec: &SimSpec, machine: &Machine) -> Option<Self>;

    /// Problems of the parameters, in sentences that name them; with the machine's procs, once they are known.
    fn problems(_: &Choice, _machine_procs: Option<f64>) -> Vec<String> {
        Vec::new()
    }

    /// A timer of the rule is due.
    fn timer(&mut self) {}

    /// Whether the scheduler may reserve sleeping procs ([`Cluster::count_sleeping`]): the rule wakes them for the jobs.
    fn counts_sleeping(&self) -> bool {
        false
    }

    /// Active procs once a job has arrived that needs `wanted` procs, more than are active. `procs`: of the machine.
    fn raised(&self, wanted: u32, _procs: u32) -> u32 {
        wanted
    }

    /// Before the scheduling pass, with the arrived jobs waiting: active procs from now on, if the number changes.
    fn before_pass<R: Recorder>(&mut self, _: &mut CappedBatch, _: &mut Cluster<'_, R>) -> Result<Option<u32>> {
        Ok(None)
    }

    /// After the scheduling pass: active procs from now on, if the number changes.
    fn after_pass<R: Recorder>(&mut self, _: &CappedBatch, _: &mut Cluster<'_, R>) -> Result<Option<u32>> {
        Ok(None)
    }
}

/// Wakes procs or puts idle procs to sleep, so that `procs` are active.
pub(super) fn set_active<R: Recorder>(cluster: &mut Cluster<'_, R>, procs: u32) -> Result<()> {
    let active = cluster.active();
    if procs > active { cluster.wake(procs - active) } else { cluster.sleep(active - procs) }
}

/// The machine's procs, if the spec has them.
fn machine_procs(spec: &SimSpec) -> Option<f64> {
    let known = |role, name| spec.choice(role).opt_int(name);
    let procs = known(Role::Platform, "procs")
        .or_else(|| known(Role::Rules, "native_procs"))
        .or_else(|| known(Role::Source, "synthetic_procs"));
    let factor = spec.choice(Role::Platform).opt_real("size_factor").unwrap_or(1.0);
    procs.map(|procs| (procs as f64 * factor + 0.5).floor())
}

/// A problem if a number of procs is greater than the machine.
pub(super) fn too_many(name: &str, procs: Option<i64>, machine_procs: Option<f64>) -> Option<String> {
    let (procs, machine_procs) = (procs?, machine_procs?);
    (procs as f64 > machine_procs).then(|| format!("`{name}` is {procs}, but the machine has {machine_procs} procs"))
}

/// Problems of a spec that has chosen a rule, for the rule's component.
pub(super) fn problems<T: CapacityRule>(spec: &SimSpec) -> Vec<String> {
    T::problems(spec.choice(Role::Capacity), machine_procs(spec))
}
