//! Waiting jobs in a list, for rules written for clarity, not for speed: under a power cap, and rules that have no fast code.
use super::rule::Backfill;
use crate::batch::kernel::{Cluster, Copied, JobId, Recorder};
use crate::batch::platform::Machine;
use crate::batch::policy::cap::allowance::Allowance;
use crate::batch::policy::gear::{Candidate, Gears};
use crate::batch::policy::order::Order;
use crate::error::Stop;
use crate::spec::SimSpec;

/// A backfilling rule that starts jobs of a [`List`].
pub(in crate::batch::policy) trait ListRule: Clone {
    /// The rule of a spec on a machine. None: another type of the file is for the spec.
    fn of(spec: &SimSpec, machine: &Machine) -> Option<Self>;

    /// A scheduling pass over the list, which is in order: [`List::start`] starts jobs, [`List::leave`] ends a sweep.
    ///
    /// # Errors
    /// Those of the decisions and of [`Cluster::step`], passed on.
    fn pass<G: Gears, R: Recorder>(
        &mut self,
        list: &mut List,
        gears: &G,
        cluster: &mut Cluster<'_, R>,
    ) -> Result<(), Stop>;
}

/// A list with its rule.
#[derive(Debug, Clone)]
pub(in crate::batch::policy) struct Listed<T> {
    list: List,
    rule: T,
}

impl<T: ListRule> Backfill for Listed<T> {
    fn of(spec: &SimSpec, machine: &Machine) -> Option<Listed<T>> {
        T::of(spec, machine).map(|rule| Listed { list: List::new(Allowance::ANY), rule })
    }

    fn submitted<R: Recorder>(&mut self, order: Order, cluster: &Cluster<'_, R>, job: JobId) {
        let key = order.key(cluster, job);
        let at = self.list.waiting.partition_point(|other| other.key <= key);
        self.list.waiting.insert(at, Waiting { key, job, procs: cluster.procs(job) });
    }

    fn pass<G: Gears, R: Recorder>(
        &mut self,
        order: Order,
        gears: &G,
        cluster: &mut Cluster<'_, R>,
    ) -> Result<(), Stop> {
        self.list.started.clear();
        if order.changes() {
            self.list.sort(order, cluster);
        }
        self.rule.pass(&mut self.list, gears, cluster)
    }

    fn jobs(&self) -> impl Iterator<Item = JobId> {
        self.list.waiting.iter().map(|waiting| waiting.job)
    }

    fn allow(&mut self, allowance: Allowance) {
        self.list.allowance = allowance;
    }

    fn started(&self) -> &[(JobId, u8)] {
        &self.list.started
    }

    fn fork<R: Recorder>(&self, _: &Copied, _: &Cluster<'_, R>) -> Listed<T> {
        Listed { list: List::new(self.list.allowance), rule: self.rule.clone() }
    }
}

/// A waiting job.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waiting {
    /// Its key in the order.
    key: f64,
    pub(super) job: JobId,
    pub(super) procs: u32,
}

/// Waiting jobs, simply kept.
#[derive(Debug, Clone)]
pub(in crate::batch::policy) struct List {
    /// In order.
    waiting: Vec<Waiting>,
    allowance: Allowance,
    /// Started in the last pass, with their ceilings.
    started: Vec<(JobId, u8)>,
    /// Positions of the jobs that a sweep of the list has started: they leave it together.
    gone: Vec<usize>,
}

/// What starting jobs must fit in now.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    /// Power that they may add (W).
    pub(super) left_w: f64,
    /// No wider job can start, whatever its gear.
    pub(super) widest: u32,
}

/// How a job may start.
#[derive(Debug, Clone, Copy)]
pub(super) struct Start {
    pub(super) gear: u8,
    /// The gear rule's choice.
    pub(super) ceiling: u8,
}

impl List {
    fn new(allowance: Allowance) -> List {
        List { waiting: Vec::new(), allowance, started: Vec::new(), gone: Vec::new() }
    }

    /// The waiting jobs in order, those with them that have started and not left.
    pub(super) fn waiting(&self) -> &[Waiting] {
        &self.waiting
    }

    /// How jobs may start.
    pub(super) fn allowance(&self) -> &Allowance {
        &self.allowance
    }

    fn sort<R: Recorder>(&mut self, order: Order, cluster: &Cluster<'_, R>) {
        for waiting in &mut self.waiting {
            waiting.key = order.key(cluster, waiting.job);
        }
        self.waiting.sort_unstable_by(|a, b| a.key.total_cmp(&b.key).then(a.job.cmp(&b.job)));
    }

    /// Starts the job at a position, which it keeps until [`List::leave`].
    pub(super) fn start<R: Recorder>(
        &mut self,
        at: usize,
        start: Start,
        overtook: bool,
        cluster: &mut Cluster<'_, R>,
    ) -> Result<(), Stop> {
        let job = self.waiting[at].job;
        cluster.start(job, start.gear, overtook)?;
        self.started.push((job, start.ceiling));
        self.gone.push(at);
        Ok(())
    }

    /// The jobs that have started leave the list.
    pub(super) fn leave(&mut self) {
        if self.gone.is_empty() {
            return;
        }
        self.gone.sort_unstable();
        let (mut gone, mut at) = (self.gone.iter().peekable(), 0);
        self.waiting.retain(|_| {
            let stays = gone.next_if(|&&gone| gone == at).is_none();
            at += 1;
            stays
        });
        self.gone.clear();
    }

    /// Waiting jobs without the one that is looked at.
    pub(super) fn others(&self) -> usize {
        self.waiting.len() - self.gone.len() - 1
    }

    pub(super) fn room<R: Recorder>(&self, cluster: &Cluster<'_, R>) -> Room {
        let left_w = self.allowance.left_w(cluster);
        let class = &cluster.machine().classes[0];
        let gears = std::iter::once(&class.gears).chain(&class.more_job_classes).flatten();
        let least_w = gears.map(|gear| gear.busy_w - class.idle_w).fold(f64::INFINITY, f64::min);
        // One more than the quotient: its rounding must not keep anybody out. The conversion keeps to the range.
        let carried = if least_w > 0.0 { (left_w / least_w + 1.0) as u32 } else { u32::MAX };
        Room { left_w, widest: cluster.free(0).min(carried) }
    }

    /// How a job can start now, whatever it delays.
    pub(super) fn fitting<G: Gears, R: Recorder>(
        &self,
        job: JobId,
        room: &Room,
        gears: &G,
        cluster: &Cluster<'_, R>,
    ) -> Option<Start> {
        let ceiling = gears.at(Candidate::new(cluster, job), cluster.now_s(), self.others());
        let gear = self.allowance.gear(cluster, job, ceiling, room.left_w)?;
        Some(Start { gear, ceiling })
    }

    /// Starts jobs in order until one does not fit.
    pub(super) fn start_in_order<G: Gears, R: Recorder>(
        &mut self,
        gears: &G,
        cluster: &mut Cluster<'_, R>,
    ) -> Result<(), Stop> {
        let mut at = 0;
        while let Some(&Waiting { job, procs, .. }) = self.waiting.get(at)
            && procs <= cluster.free(0)
            && let room = self.room(cluster)
            && let Some(start) = self.fitting(job, &room, gears, cluster)
        {
            self.start(at, start, false, cluster)?;
            at += 1;
        }
        self.leave();
        Ok(())
    }
}
