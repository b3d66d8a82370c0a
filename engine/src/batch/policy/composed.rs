//! A batch policy with a capacity rule or a power cap.
//!
//! One instant, in this order:
//!
//! 1. completions and arrivals
//! 2. suspension and resumption by the deferral rule, and release of deferred jobs to the queue
//! 3. change of the cap
//! 4. raise of active procs for jobs that have arrived, then decision of the capacity rule
//! 5. enforcement of the cap on running jobs
//! 6. one scheduling pass
//! 7. raise of gears under the cap, or suspension of started jobs by the deferral rule
//! 8. second decision of the capacity rule, most often fewer active procs
//!
//! [`Batch`](super::batch::Batch) alone is the hot path and does not know these rules.
use super::backfill::within_priority;
use super::cap::Cap;
use super::capacity::{self, Capacity};
use super::capped::CappedBatch;
use super::deferral::{self, Deferral};
use super::watch::Watch;
use crate::batch::kernel::{Cluster, Ended, JobId, Policy, Recorder};
use crate::batch::platform::Machine;
use crate::error::{Result, SimError};
use crate::series::SeriesPoint;
use crate::spec::{Role, SimSpec, Value};
use crate::summary::PowerIntegrals;

/// [`Batch`](super::batch::Batch) with a capacity rule, a power cap and a deferral rule.
#[derive(Debug, Clone)]
pub struct Composed {
    pub(super) batch: CappedBatch,
    pub(super) capacity: Capacity,
    deferral: Option<Deferral>,
    /// Buffer of the jobs that enter the queue in a pass.
    released: Vec<JobId>,
    watch: Option<Watch>,
    begun: bool,
}

impl Composed {
    /// Whether a spec has a capacity rule, a cap or a deferral rule, or is watched.
    pub fn is_needed(spec: &SimSpec) -> bool {
        [Role::Capacity, Role::Deferral].iter().any(|role| spec.choice(*role).component().name != "none")
            || Composed::is_watched(spec)
    }

    /// Whether power and occupancy are watched over time: under a cap, with `within-priority`, with a deferral rule that
    /// suspends jobs, and with `watch_machine`.
    pub(crate) fn is_watched(spec: &SimSpec) -> bool {
        let name = |role: Role| spec.choice(role).component().name;
        name(Role::Cap) != "none"
            || name(Role::Backfill) == within_priority::COMPONENT.name
            || deferral::suspends(spec)
            || spec.choice(Role::Statistics).get("watch_machine") == Some(&Value::Bool(true))
    }

    /// The policy of a spec on a machine; `series`: the watched quantities are recorded over time.
    ///
    /// # Errors
    /// [`SimError::Invalid`] if the batch policy does not know a component, or a component does not fit the machine.
    pub fn new(spec: &SimSpec, machine: &Machine, series: bool) -> Result<Composed, SimError> {
        Ok(Composed {
            batch: CappedBatch::new(spec, machine)?,
            capacity: Capacity::new(spec, machine)?,
            deferral: Deferral::new(spec)?,
            released: Vec::new(),
            watch: Composed::is_watched(spec).then(|| Watch::new(spec, series)),
            begun: false,
        })
    }

    /// The integrals of the watched quantities, once the run is over; their series are appended to `points`.
    pub(crate) fn finish(self, points: Option<&mut Vec<SeriesPoint>>) -> Option<PowerIntegrals> {
        self.watch.map(|watch| watch.finish(points))
    }
}

impl Policy for Composed {
    fn submitted<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, job: JobId) {
        match &mut self.deferral {
            Some(deferral) => deferral.submitted(job),
            None => {
                self.batch.submitted(cluster, job);
                self.capacity.submitted(cluster, job);
            }
        }
    }

    fn ended<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, ended: &Ended) {
        self.batch.ended(cluster, ended);
    }

    fn corrected<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, job: JobId, before_s: f64) {
        self.batch.corrected(cluster, job, before_s);
    }

    fn timer<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, token: u64) {
        if let Some(deferral) = self.deferral.as_mut().filter(|_| token == deferral::TOKEN) {
            deferral.timer();
        } else if token & capacity::TOKEN != 0 {
            self.capacity.timer();
        } else {
            self.batch.timer(cluster, token);
        }
    }

    fn powers_changed<R: Recorder>(&mut self, cluster: &mut Cluster<'_, R>) -> Result<()> {
        if let Some(cap) = &mut self.batch.cap {
            cap.powers_changed();
            return self.pass(cluster);
        }
        if let Some(watch) = &mut self.watch {
            watch.observe(cluster, None);
        }
        Ok(())
    }

    fn pass<R: Recorder>(&mut self, cluster: &mut Cluster<'_, R>) -> Result<()> {
        if !self.begun {
            self.begun = true;
            self.batch.cap.as_mut().map_or(Ok(()), |cap| cap.begin(cluster))?;
        }
        if let Some(deferral) = self.deferral.as_mut().filter(|deferral| !deferral.is_idle(cluster.now_s())) {
            deferral.release(cluster, &mut self.released)?;
            if let Some(changed) = deferral.changed() {
                self.batch.rescheduled(changed, cluster);
            }
            for job in self.released.drain(..) {
                self.batch.submitted(cluster, job);
                self.capacity.submitted(cluster, job);
            }
        }
        self.batch.change(cluster)?;
        if self.capacity.changes() {
            self.capacity.before_pass(&mut self.batch, cluster)?;
        }
        self.batch.schedule(cluster)?;
        if let Some(deferral) = self.deferral.as_mut().filter(|deferral| deferral.suspends()) {
            deferral.after_pass(self.batch.waiting().started(), cluster)?;
            if let Some(changed) = deferral.changed() {
                self.batch.rescheduled(changed, cluster);
            }
        }
        if self.capacity.changes() {
            self.capacity.after_pass(&self.batch, cluster)?;
        }
        if let Some(watch) = &mut self.watch {
            watch.observe(cluster, self.batch.cap.as_ref().map(Cap::cap_w));
        }
        Ok(())
    }
}
