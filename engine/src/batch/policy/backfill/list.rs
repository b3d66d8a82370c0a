//! Waiting jobs in a list, for rules that are written for clarity instead of speed, or that count pools.
use super::rule::Backfill;
use crate::batch::kernel::{Cluster, Copied, Ended, JobId, Recorder};
use crate::batch::platform::Machine;
use crate::batch::policy::cap::allowance::Allowance;
use crate::batch::policy::gear::{Candidate, Gears};
use crate::batch::policy::order::Order;
use crate::error::Result;
use crate::spec::SimSpec;

/// A backfilling rule that starts jobs of a [`List`].
pub(in crate::batch::policy) trait ListRule: Clone + Default {
    /// The rule of a spec on a machine; by default one without parameters. `None`: another type of the file is for the
    /// spec.
    fn of(_: &SimSpec, _: &Machine) -> Option<Self> {
        Some(Self::default())
    }

    /// A scheduling pass over the list, which is in queue order: [`List::start`] starts jobs, [`List::remove_started`]
    /// ends a sweep.
    ///
    /// # Errors
    /// Those of the decisions and of [`Cluster::step`].
    fn pass<G: Gears, R: Recorder>(&mut self, list: &mut List, gears: &G, cluster: &mut Cluster<'_, R>) -> Result<()>;

    /// A running job has ended.
    fn ended(&mut self, _: JobId) {}

    /// Procs or estimated ends of running jobs have changed in another way.
    fn running_changed(&mut self) {}

    /// The rule for a copy of the cluster, whose first pass looks at all jobs.
    fn fork(&self, _: &Copied) -> Self {
        self.clone()
    }
}

/// A list with its rule.
#[derive(Debug, Clone, Default)]
pub(in crate::batch::policy) struct Listed<T> {
    list: List,
    rule: T,
}

impl<T: ListRule> Backfill for Listed<T> {
    fn of(spec: &SimSpec, machine: &Machine) -> Option<Listed<T>> {
        T::of(spec, machine).map(|rule| Listed { list: List::default(), rule })
    }

    fn submitted<R: Recorder>(&mut self, order: Order, cluster: &Cluster<'_, R>, job: JobId) {
        let key = order.key(cluster, job);
        let at = self.list.waiting().partition_point(|other| other.key <= key);
        let waiting = Waiting { key, job, procs: cluster.procs(job) };
        self.list.waiting.insert(self.list.removed + at, waiting);
        if at < self.list.seen || order.changes() {
            self.list.seen = 0;
        }
    }

    fn ended<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, ended: &Ended) {
        self.list.seen = 0;
        self.list.early_end |= cluster.now_s() < ended.estimated_end_s;
        self.rule.ended(ended.job);
    }

    fn pass<G: Gears, R: Recorder>(&mut self, order: Order, gears: &G, cluster: &mut Cluster<'_, R>) -> Result<()> {
        self.list.started.clear();
        if order.changes() {
            self.list.sort(order, cluster);
        }
        self.rule.pass(&mut self.list, gears, cluster)?;
        self.list.seen = self.list.waiting().len();
        Ok(())
    }

    fn jobs(&self) -> impl Iterator<Item = JobId> {
        self.list.waiting().iter().map(|waiting| waiting.job)
    }

    fn procs_changed(&mut self) {
        self.list.seen = 0;
        self.rule.running_changed();
    }

    fn time_passed(&mut self, order: Order) {
        if order.changes() {
            self.list.seen = 0;
        }
    }

    fn allow(&mut self, allowance: Allowance) {
        self.list.allowance = allowance;
    }

    fn started(&self) -> &[(JobId, u8)] {
        &self.list.started
    }

    fn fork<R: Recorder>(&self, copied: &Copied, _: &Cluster<'_, R>) -> Listed<T> {
        let List { early_end, allowance, .. } = self.list;
        let list = List { early_end, allowance, ..List::default() };
        Listed { list, rule: self.rule.fork(copied) }
    }
}

/// A waiting job.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waiting {
    /// Sort key of the queue order.
    key: f64,
    pub(super) job: JobId,
    pub(super) procs: u32,
}

/// The waiting jobs.
#[derive(Debug, Clone, Default)]
pub(in crate::batch::policy) struct List {
    /// In queue order, behind the removed ones.
    waiting: Vec<Waiting>,
    /// Number of removed jobs at the front: a queue whose first jobs start is not moved each time.
    removed: usize,
    /// Number of first jobs of the queue that the last pass has seen; 0 if a job has ended since then, the procs have
    /// changed, or other jobs are first now.
    seen: usize,
    /// A job has ended before its estimate since [`List::take_early_end`].
    early_end: bool,
    allowance: Allowance,
    /// Jobs that the last pass started, with their ceilings.
    started: Vec<(JobId, u8)>,
    /// Positions of the jobs that the present sweep has started; they are removed together.
    started_at: Vec<usize>,
}

/// Power and procs that starting jobs may take now.
#[derive(Debug, Clone, Copy)]
pub(super) struct Headroom {
    /// Power that starting jobs may add (W).
    pub(super) left_w: f64,
    /// Procs: no wider job can start at any gear.
    pub(super) widest: u32,
}

/// How a job may start.
#[derive(Debug, Clone, Copy)]
pub(super) struct Start {
    pub(super) gear: u8,
    /// The gear rule's choice.
    pub(super) ceiling: u8,
}

/// Procs of the widest job that a power carries (W), if each proc takes at least `least_w`: a little more than the
/// quotient, so that rounding excludes no job. The conversion saturates.
pub(super) fn widest(left_w: f64, least_w: f64) -> u32 {
    if least_w > 0.0 { (left_w / least_w * (1.0 + 1e-6)) as u32 } else { u32::MAX }
}

impl List {
    /// The waiting jobs in queue order, with those that have started and not been removed.
    pub(super) fn waiting(&self) -> &[Waiting] {
        &self.waiting[self.removed..]
    }

    /// Number of first jobs that the last pass has seen, if nothing has become free since then.
    pub(super) fn seen(&self) -> usize {
        self.seen
    }

    /// Whether a job has ended before its estimate since the last call.
    pub(super) fn take_early_end(&mut self) -> bool {
        std::mem::take(&mut self.early_end)
    }

    /// How jobs may start.
    pub(super) fn allowance(&self) -> &Allowance {
        &self.allowance
    }

    fn sort<R: Recorder>(&mut self, order: Order, cluster: &Cluster<'_, R>) {
        let waiting = &mut self.waiting[self.removed..];
        for waiting in &mut *waiting {
            waiting.key = order.key(cluster, waiting.job);
        }
        waiting.sort_unstable_by(|a, b| a.key.total_cmp(&b.key).then(a.job.cmp(&b.job)));
    }

    /// Starts the job at a position. Positions stay the same until [`List::remove_started`].
    pub(super) fn start<R: Recorder>(
        &mut self,
        at: usize,
        start: Start,
        overtook: bool,
        cluster: &mut Cluster<'_, R>,
    ) -> Result<()> {
        let job = self.waiting()[at].job;
        cluster.start(job, start.gear, overtook)?;
        self.started.push((job, start.ceiling));
        self.started_at.push(at);
        Ok(())
    }

    /// Removes the jobs that have started from the list.
    pub(super) fn remove_started(&mut self) {
        self.started_at.sort_unstable();
        let first = self.started_at.iter().zip(0..).take_while(|(at, place)| *at == place).count();
        let removed = self.removed;
        let mut to = removed + self.started_at.get(first).copied().unwrap_or_default();
        for (number, at) in self.started_at.iter().enumerate().skip(first) {
            let from = removed + at + 1;
            let until = self.started_at.get(number + 1).map_or(self.waiting.len(), |next| removed + next);
            self.waiting.copy_within(from..until, to);
            to += until - from;
        }
        if first < self.started_at.len() {
            self.waiting.truncate(to);
        }
        self.removed += first;
        if self.removed > self.waiting.len() / 2 {
            self.waiting.drain(..self.removed);
            self.removed = 0;
        }
        self.started_at.clear();
    }

    /// Number of waiting jobs besides the one that a rule considers.
    pub(super) fn others(&self) -> usize {
        self.waiting().len() - self.started_at.len() - 1
    }

    pub(super) fn headroom<R: Recorder>(&self, cluster: &Cluster<'_, R>) -> Headroom {
        let left_w = self.allowance.left_w(cluster);
        if cluster.has_scales() {
            // A wide job may draw less than a narrow one.
            return Headroom { left_w, widest: cluster.free() };
        }
        let least_w = cluster.machine().least_above_idle_w();
        Headroom { left_w, widest: cluster.free().min(widest(left_w, least_w)) }
    }

    /// How a job can start now, without regard to reservations.
    pub(super) fn fitting<G: Gears, R: Recorder>(
        &self,
        job: JobId,
        headroom: &Headroom,
        gears: &G,
        cluster: &Cluster<'_, R>,
    ) -> Option<Start> {
        let ceiling = gears.at(Candidate::new(cluster, job), cluster.now_s(), self.others());
        let gear = self.allowance.fitting(cluster, job, ceiling, headroom.left_w).next()?;
        Some(Start { gear, ceiling })
    }
}
