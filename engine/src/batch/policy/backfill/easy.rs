//! EASY backfilling: one pass over a [`Queue`].
//!
//! A pass skips jobs that provably cannot start. Between two completions, no waiting job gets a better chance: free
//! procs and extra procs only decrease, the shadow time stays (jobs that have started since end by it or run on extra
//! procs), and the clock moves towards it. So after arrivals alone, only the new jobs are considered, with the shadow
//! of the last sweep. The shadow is computed when the first candidate needs it.
//!
//! A completion releases procs, but gives no job more time: the shadow time can only become earlier, and the clock has
//! advanced. A job that was refused although enough procs were free stays refused, unless extra procs admit it. So only
//! jobs are considered that need more procs than were free then. These results do not hold under a head with a later
//! shadow time, or once the shadow time has passed (jobs that outlive their estimates).

pub(in crate::batch::policy) use super::easy_under_cap::EasyUnderCap;
use super::queue::{Queue, Reach};
use super::releases::{Releases, Shadow};
use super::rule::{Backfill, changes_running_jobs};
use crate::batch::kernel::{Cluster, Copied, Ended, JobId, Recorder};
use crate::batch::platform::Machine;
use crate::batch::policy::gear::{Candidate, Gears, HeadGear};
use crate::batch::policy::order::Order;
use crate::error::{SimError, Stop};
use crate::spec::{Component, Default as ParamDefault, Param, Role, SimSpec, Type};

/// Description of the rule.
pub const COMPONENT: Component = Component {
    role: Role::Backfill,
    name: "easy",
    version: 1,
    source: "Mu'alem & Feitelson 2001",
    doc: "Jobs overtake as long as the head's reservation is kept.",
    params: &[Param {
        name: "extra_procs",
        ty: Type::Bool,
        unit: "",
        default: ParamDefault::Bool(true),
        doc: "Whether a job may also overtake on the procs that the head leaves free at its reservation (textbook \
              EASY); false lets only jobs overtake that end before it (etinski2010).",
    }],
    ..Component::BATCH
};

/// EASY on a machine with pools.
pub(in crate::batch::policy) type EasyOfPools = super::pooled::Pooled<super::pooled::Easy>;

/// Waiting jobs under EASY.
#[derive(Debug, Clone)]
pub(in crate::batch::policy) struct EasyQueue {
    queue: Queue,
    easy: Easy,
}

impl Backfill for EasyQueue {
    fn of(spec: &SimSpec, machine: &Machine) -> Option<EasyQueue> {
        let easy = Easy::new(spec.choice(Role::Backfill).bool("extra_procs"));
        (!changes_running_jobs(spec)).then(|| EasyQueue { queue: Queue::new(machine.procs()), easy })
    }

    #[inline(always)]
    fn submitted<R: Recorder>(&mut self, order: Order, cluster: &Cluster<'_, R>, job: JobId) {
        let at = self.queue.insert(order, cluster, job);
        self.easy.submitted(&self.queue, order, at);
    }

    #[inline(always)]
    fn ended<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, ended: &Ended) {
        self.easy.ended(cluster.now_s(), ended);
    }

    #[inline(always)]
    fn refuses_all<R: Recorder>(&mut self, cluster: &Cluster<'_, R>) -> bool {
        self.easy.refuses_all(&self.queue, cluster)
    }

    #[inline(always)]
    fn pass<G: Gears, R: Recorder>(
        &mut self,
        order: Order,
        gears: &G,
        cluster: &mut Cluster<'_, R>,
    ) -> Result<(), Stop> {
        // The hot path: a constant order, so that the compiler removes its branches.
        if order.is_fcfs() {
            self.easy.pass(&mut self.queue, Order::Fcfs, gears, cluster)
        } else {
            self.easy.pass(&mut self.queue, order, gears, cluster)
        }
    }

    fn jobs(&self) -> impl Iterator<Item = JobId> {
        self.queue.jobs()
    }

    fn procs_changed(&mut self) {
        self.easy.procs_changed();
    }

    fn time_passed(&mut self, order: Order) {
        if order.changes() {
            self.easy.places_changed();
        }
    }

    fn fork<R: Recorder>(&self, copied: &Copied, copy: &Cluster<'_, R>) -> EasyQueue {
        EasyQueue { queue: Queue::new(copy.machine().procs()), easy: self.easy.fork(copied, copy) }
    }
}

/// State of EASY between passes.
#[derive(Debug, Clone, Default)]
struct Easy {
    /// Whether jobs may overtake on procs that the head leaves free.
    extra_procs: bool,
    releases: Releases,
    /// The reservation of the head, if a pass has needed it since the last completion.
    shadow: Option<Shadow>,
    /// The head and all jobs behind it must be considered again.
    stale: bool,
    /// Positions of the queue before this one have been considered.
    swept: usize,
    /// Why the considered jobs behind the head could not start.
    refused: Refused,
    /// Procs of jobs that have ended since then, but were expected to outlive the reservation. The extra procs can have
    /// grown by this number at most, because an earlier reservation has no more of them.
    gained: u32,
    /// Free procs after the last pass.
    free: u32,
    /// The reserved head with its chosen gear, unless the gear is chosen at each pass.
    reserved: Option<(JobId, u8)>,
    /// A job has ended before its estimate since the last pass.
    early_end: bool,
}

/// Result of the last sweep over the waiting jobs: each job that needs at most `free` procs needs more than `extra`,
/// and would end too late for a head with a reservation at `until_s`.
#[derive(Debug, Clone, Copy)]
struct Refused {
    free: u32,
    extra: u32,
    until_s: f64,
    head: JobId,
}

/// The number of no job.
const NO_JOB: JobId = JobId::MAX;

impl Refused {
    /// There was no sweep, or its result is invalid.
    const NOTHING: Refused = Refused { free: 0, extra: 0, until_s: f64::NEG_INFINITY, head: NO_JOB };

    /// No waiting job behind the head needs at most `free` procs.
    fn no_jobs(free: u32) -> Refused {
        Refused { free, extra: free, until_s: f64::INFINITY, head: NO_JOB }
    }

    #[inline]
    fn is_known(&self) -> bool {
        self.until_s > f64::NEG_INFINITY
    }

    /// Whether the reservation of the head is not later than `until_s`: it only becomes earlier, unless it has passed.
    #[inline]
    fn holds(&self, head: JobId, now_s: f64) -> bool {
        self.until_s == f64::INFINITY || (self.head == head && now_s <= self.until_s)
    }
}

impl Default for Refused {
    fn default() -> Refused {
        Refused::NOTHING
    }
}

impl Easy {
    fn new(extra_procs: bool) -> Easy {
        Easy { extra_procs, stale: true, ..Easy::default() }
    }

    /// Procs have been put to sleep or woken, or have finished waking: results of earlier passes are invalid.
    fn procs_changed(&mut self) {
        self.stale = true;
        self.shadow = None;
        self.refused = Refused::NOTHING;
    }

    /// Places in the queue may have changed since the last pass.
    fn places_changed(&mut self) {
        self.stale = true;
    }

    /// The rule for a copy of the cluster, without results of earlier passes.
    fn fork<R: Recorder>(&self, copied: &Copied, copy: &Cluster<'_, R>) -> Easy {
        let mut easy = Easy::new(self.extra_procs);
        for job in copy.running_jobs() {
            let end_s = copy.estimated_end_s(job).expect("the job runs");
            easy.releases.add(job, copy.procs(job), end_s, |_| true);
        }
        easy.reserved = self.reserved.and_then(|(job, gear)| Some((copied.number(job)?, gear)));
        easy.early_end = self.early_end;
        easy
    }

    /// A job was put at a position of the queue.
    #[inline]
    fn submitted(&mut self, queue: &Queue, order: Order, at: usize) {
        if !order.is_fcfs() {
            self.stale |= at == queue.head() || order.changes();
            self.swept = self.swept.min(at);
        }
    }

    #[inline]
    fn ended(&mut self, now_s: f64, ended: &Ended) {
        self.releases.remove(ended.job);
        if ended.estimated_end_s > self.refused.until_s {
            self.gained += ended.procs;
        }
        self.stale = true;
        self.early_end |= now_s < ended.estimated_end_s;
    }

    /// Whether no new job can start, and no other has to be considered. If so, the new jobs are marked as considered.
    #[inline]
    fn refuses_all<R: Recorder>(&mut self, queue: &Queue, cluster: &Cluster<'_, R>) -> bool {
        let same = !self.stale & (queue.head() < self.swept) & (cluster.free(0) == self.free);
        if !same || self.refused.until_s < cluster.now_s() {
            return false;
        }
        let reach = self.reach(0, cluster);
        let none = !(self.swept..queue.end()).any(|at| queue.reaches(at, &reach));
        if none {
            self.swept = queue.end();
        }
        none
    }

    #[inline(never)]
    fn pass<G: Gears, R: Recorder>(
        &mut self,
        queue: &mut Queue,
        order: Order,
        gears: &G,
        cluster: &mut Cluster<'_, R>,
    ) -> Result<(), Stop> {
        let free = cluster.free(0);
        let again = self.stale || queue.head() >= self.swept || free != self.free;
        if again {
            if order.changes() {
                // The places in the queue have changed: results of earlier passes are invalid.
                self.refused = Refused::NOTHING;
            }
            queue.sort(order, cluster);
            self.start_heads(queue, gears, cluster)?;
            self.shadow = None;
            self.stale = false;
        } else if self.refused.until_s < cluster.now_s() {
            self.shadow = None;
            self.refused = Refused::NOTHING;
        }
        if gears.head_gear() != HeadGear::Renew {
            self.reserve_head(queue, gears, cluster)?;
        }
        if queue.len() <= 1 {
            self.refused = Refused::no_jobs(cluster.free(0));
            // The instant of the reservation can pass before the next job arrives.
            self.shadow = None;
            self.gained = 0;
        } else if again || queue.end() > self.swept || !self.refused.is_known() {
            self.sweep(queue, gears, cluster, again)?;
        }
        queue.tidy();
        self.swept = queue.end();
        self.free = cluster.free(0);
        Ok(())
    }

    /// Starts jobs in order until one does not fit.
    #[inline]
    fn start_heads<G: Gears, R: Recorder>(
        &mut self,
        queue: &mut Queue,
        gears: &G,
        cluster: &mut Cluster<'_, R>,
    ) -> Result<(), Stop> {
        if std::mem::take(&mut self.early_end) && gears.head_gear() == HeadGear::UntilEarlyEnd {
            self.reserved = None;
        }
        while queue.len() > 0 && queue.procs(queue.head()) <= cluster.free(0) {
            let head = queue.head();
            let (job, procs) = (queue.job(head), queue.procs(head));
            let gear = match self.reserved {
                Some((reserved, gear)) if reserved == job => gear,
                _ => gears.at(candidate(queue, head, cluster), cluster.now_s(), queue.len() - 1),
            };
            let end_s = cluster.start(job, gear, false)?;
            self.releases.add(job, procs, end_s, |job| cluster.is_running(job));
            queue.pop_head();
            // The job started without regard to the reservation of an earlier head.
            self.refused.head = NO_JOB;
        }
        Ok(())
    }

    /// Chooses the gear of a waiting head for its reservation, unless it has a gear.
    fn reserve_head<G: Gears, R: Recorder>(
        &mut self,
        queue: &Queue,
        gears: &G,
        cluster: &mut Cluster<'_, R>,
    ) -> Result<(), Stop> {
        if queue.len() == 0 {
            self.reserved = None;
            return Ok(());
        }
        let head = queue.head();
        let job = queue.job(head);
        if self.reserved.is_none_or(|(reserved, _)| reserved != job) {
            let start_s = self.shadow(queue, cluster)?.at_s;
            let gear = gears.at(candidate(queue, head, cluster), start_s, queue.len() - 1);
            self.reserved = Some((job, gear));
        }
        Ok(())
    }

    /// Considers each job behind the head that may start, once and in queue order; `again`: also those that were
    /// refused.
    #[inline]
    fn sweep<G: Gears, R: Recorder>(
        &mut self,
        queue: &mut Queue,
        gears: &G,
        cluster: &mut Cluster<'_, R>,
        again: bool,
    ) -> Result<(), Stop> {
        let (free, now_s) = (cluster.free(0), cluster.now_s());
        let (behind, end) = (queue.head() + 1, queue.end());
        let head = queue.job(queue.head());
        let refused = self.refused;
        // Positions before `fresh` have been considered.
        let fresh = if refused.is_known() { self.swept.max(behind) } else { behind };
        let mut first = if again { behind } else { fresh };
        // With new jobs, the result of the last sweep excludes no job.
        let known = fresh == end;
        // The shadow is computed only if there is a candidate.
        if self.shadow.is_none() {
            let reach = if refused.holds(head, now_s) {
                let extra = refused.extra.saturating_add(self.gained);
                self.reach(if known { self.floor(refused, extra) } else { 0 }, cluster)
            } else {
                Reach { floor: 0, free, extra: free, now_s, until_s: f64::INFINITY }
            };
            let Some(at) = queue.next_candidate(first, &queue.bounds(reach)) else {
                self.refused = Refused { free, extra: reach.extra, until_s: reach.until_s, head };
                self.gained = 0;
                return Ok(());
            };
            first = at;
        }
        let shadow = self.shadow(queue, cluster)?;
        let mut floor = 0;
        if shadow.at_s > refused.until_s {
            first = behind;
        } else if known {
            floor = self.floor(refused, shadow.extra);
        }
        self.overtake(queue, first, floor, gears, cluster)?;
        let extra = self.shadow.map_or(0, |shadow| shadow.extra);
        self.refused = Refused { free: cluster.free(0), extra, until_s: shadow.at_s, head };
        self.gained = 0;
        Ok(())
    }

    /// Conditions of a candidate while the last reservation bounds the next one.
    #[inline]
    fn reach<R: Recorder>(&self, floor: u32, cluster: &Cluster<'_, R>) -> Reach {
        let extra = if self.extra_procs { self.refused.extra.saturating_add(self.gained) } else { 0 };
        Reach { floor, free: cluster.free(0), extra, now_s: cluster.now_s(), until_s: self.refused.until_s }
    }

    /// Procs up to which refused jobs cannot start with at most `extra` extra procs.
    #[inline]
    fn floor(&self, refused: Refused, extra: u32) -> u32 {
        if self.extra_procs && extra > refused.extra { refused.free.min(refused.extra) } else { refused.free }
    }

    /// Starts the jobs from a position on that may overtake; jobs of at most `floor` procs may not.
    #[inline]
    fn overtake<G: Gears, R: Recorder>(
        &mut self,
        queue: &mut Queue,
        mut from: usize,
        floor: u32,
        gears: &G,
        cluster: &mut Cluster<'_, R>,
    ) -> Result<(), Stop> {
        let now_s = cluster.now_s();
        let Some(mut shadow) = self.shadow else { return Ok(()) };
        let extra = |shadow: Shadow| if self.extra_procs { shadow.extra } else { 0 };
        let reach = Reach { floor, free: cluster.free(0), extra: extra(shadow), now_s, until_s: shadow.at_s };
        let mut bounds = queue.bounds(reach);
        while let Some(at) = queue.next_candidate(from, &bounds) {
            cluster.step()?;
            from = at + 1;
            let (job, procs) = (queue.job(at), queue.procs(at));
            let on_extra = procs <= extra(shadow);
            let candidate = candidate(queue, at, cluster);
            let Some((gear, late)) = gears.overtaking(candidate, now_s, queue.len() - 1, shadow.at_s, on_extra) else {
                continue;
            };
            let end_s = cluster.start(job, gear, true)?;
            self.releases.add(job, procs, end_s, |job| cluster.is_running(job));
            queue.take(at);
            if late {
                shadow.extra -= procs;
            }
            queue.tighten(&mut bounds, cluster.free(0), extra(shadow));
        }
        self.shadow = Some(shadow);
        Ok(())
    }

    /// The head's reservation.
    #[inline(always)]
    fn shadow<R: Recorder>(&mut self, queue: &Queue, cluster: &Cluster<'_, R>) -> Result<Shadow, Stop> {
        if let Some(shadow) = self.shadow {
            return Ok(shadow);
        }
        let head = queue.head();
        let (free, need) = (cluster.free(0), queue.procs(head));
        let runs = |job| cluster.is_running(job);
        let found = if cluster.any_coming() {
            self.releases.shadow_with(cluster.now_s(), free, need, runs, cluster.coming(0))
        } else {
            self.releases.shadow(cluster.now_s(), free, need, runs)
        };
        let shadow = found.ok_or_else(|| {
            let what = format!("no end of a running job gives job {} (by arrival) its {need} procs", queue.job(head));
            Stop::new(SimError::Policy { now_s: cluster.now_s(), what })
        })?;
        self.shadow = Some(shadow);
        Ok(shadow)
    }
}

#[inline]
fn candidate<R: Recorder>(queue: &Queue, at: usize, cluster: &Cluster<'_, R>) -> Candidate {
    Candidate::estimated(cluster, queue.job(at), queue.estimate_s(at))
}
