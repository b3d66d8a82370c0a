//! EASY backfilling of jobs that take procs alone, without a power cap: the fast pass of most sweeps over a [`Queue`].
//!
//! It starts the same jobs as [`super::easy`], and skips jobs that provably cannot start. Between two completions, no
//! waiting job gets a better chance: free procs and extra procs only decrease, the shadow time stays (jobs that have
//! started since end by it or run on extra procs), and the clock moves towards it. So after arrivals alone, only the new
//! jobs are considered, within the reservation of the last sweep.
//!
//! A completion releases procs, but gives no job more time: the shadow time of the same head can only become earlier, and
//! the extra procs grow at most by procs that were expected to be held beyond it. So the last reservation bounds the next
//! one, which is computed only if a job might start within the bound. The bound does not hold under a head with a later
//! shadow time, or once the shadow time has passed (jobs that outlive their estimates).
use super::easy::overtaking;
use super::queue::{Queue, Reach};
use super::releases::{Release, Releases, Shadow};
use super::resources::Resources;
use super::rule::Backfill;
use crate::batch::kernel::{Cluster, Copied, Ended, JobId, Recorder};
use crate::batch::platform::Machine;
use crate::batch::policy::gear::{Candidate, Gears, HeadGear};
use crate::batch::policy::order::Order;
use crate::error::{Result, SimError, Stop};
use crate::spec::SimSpec;

/// Waiting jobs with the state of EASY between passes; by default in strict order.
#[derive(Debug, Clone, Default)]
pub(in crate::batch::policy) struct EasyOfProcs {
    queue: Queue,
    /// See [`overtaking`].
    overtaking: Option<bool>,
    releases: Releases,
    /// A bound of the head's reservation: it is not later, and has no more extra procs. No considered job behind the head
    /// can start within the bound and the procs that were free then.
    bound: Shadow,
    /// The head whose reservation is bounded.
    bounded: Option<JobId>,
    /// The bound is the reservation.
    exact: bool,
    /// The head and all jobs behind it must be considered again.
    stale: bool,
    /// Positions of the queue before this one have been considered.
    swept: usize,
    /// Free procs after the last pass.
    free: u32,
    /// The reserved head with its chosen gear, unless the gear is chosen at each pass.
    reserved: Option<(JobId, u8)>,
    /// A job has ended before its estimate since the last pass.
    early_end: bool,
    /// Positions of jobs that may overtake, under an order that changes with time.
    fitting: Vec<usize>,
}

impl Backfill for EasyOfProcs {
    fn of(spec: &SimSpec, machine: &Machine) -> Option<EasyOfProcs> {
        i32::are_of(spec, machine).then(|| EasyOfProcs { overtaking: overtaking(spec), ..EasyOfProcs::default() })
    }

    #[inline(always)]
    fn submitted<R: Recorder>(&mut self, order: Order, cluster: &Cluster<'_, R>, job: JobId) {
        let at = self.queue.insert(order, cluster, job);
        if !order.is_fcfs() {
            self.stale |= at == self.queue.head() || order.changes();
            self.swept = self.swept.min(at);
        }
    }

    #[inline(always)]
    fn ended<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, ended: &Ended) {
        if self.overtaking.is_some() {
            self.releases.remove(ended.job);
        }
        if ended.estimated_end_s > self.bound.at_s {
            self.bound.extra += ended.procs;
        }
        self.stale = true;
        self.early_end |= cluster.now_s() < ended.estimated_end_s;
    }

    /// Whether no new job can start, and no other has to be considered. If so, the new jobs are marked as considered.
    #[inline(always)]
    fn refuses_all<R: Recorder>(&mut self, cluster: &Cluster<'_, R>) -> bool {
        let same = !self.stale & (self.queue.head() < self.swept) & (cluster.free(0) == self.free);
        if !same || self.bound.at_s < cluster.now_s() {
            return false;
        }
        let reach = self.reach(self.bound, cluster);
        let none = !(self.swept..self.queue.end()).any(|at| self.queue.reaches(at, &reach, cluster));
        if none {
            self.swept = self.queue.end();
        }
        none
    }

    #[inline(always)]
    fn pass<G: Gears, R: Recorder>(&mut self, order: Order, gears: &G, cluster: &mut Cluster<'_, R>) -> Result<()> {
        // The hot path: a constant order, so that the compiler removes its branches.
        if order.is_fcfs() { self.pass_in(Order::Fcfs, gears, cluster) } else { self.pass_in(order, gears, cluster) }
    }

    fn jobs(&self) -> impl Iterator<Item = JobId> {
        self.queue.jobs()
    }

    fn procs_changed(&mut self) {
        self.stale = true;
        self.forget();
    }

    fn time_passed(&mut self, order: Order) {
        self.stale |= order.changes();
    }

    fn fork<R: Recorder>(&self, copied: &Copied, copy: &Cluster<'_, R>) -> EasyOfProcs {
        let mut releases = Releases::default();
        releases.collect(copy);
        let reserved = self.reserved.and_then(|(job, gear)| Some((copied.number(job)?, gear)));
        let (overtaking, early_end, releases) = (self.overtaking, self.early_end, releases.sorted());
        EasyOfProcs { overtaking, releases, reserved, early_end, ..EasyOfProcs::default() }
    }
}

impl EasyOfProcs {
    /// Makes the results of earlier passes invalid.
    fn forget(&mut self) {
        (self.bound.at_s, self.exact, self.swept) = (f64::NEG_INFINITY, false, 0);
    }

    #[inline(never)]
    fn pass_in<G: Gears, R: Recorder>(&mut self, order: Order, gears: &G, cluster: &mut Cluster<'_, R>) -> Result<()> {
        let again = self.stale || self.queue.head() >= self.swept || cluster.free(0) != self.free;
        if again {
            if order.changes() {
                self.forget();
                if order.has_all_keys() && gears.head_gear() == HeadGear::Renew && !self.queue.any_fits(cluster.free(0))
                {
                    // No job starts, whichever is first.
                    (self.stale, self.swept, self.free) = (false, self.queue.end(), cluster.free(0));
                    return Ok(());
                }
                self.queue.order_anew(order, cluster);
            }
            self.start_heads(order, gears, cluster)?;
            (self.exact, self.stale, self.swept) = (false, false, 0);
        } else if self.bound.at_s < cluster.now_s() {
            self.forget();
        }
        if gears.head_gear() != HeadGear::Renew && self.overtaking.is_some() {
            self.reserve_head(gears, cluster)?;
        }
        if self.queue.len() <= 1 || self.overtaking.is_none() {
            // The instant of the reservation can pass before the next job arrives.
            (self.bound, self.exact) = (Shadow { at_s: f64::INFINITY, extra: cluster.free(0) }, false);
        } else if self.queue.end() > self.swept {
            self.sweep(order, gears, cluster)?;
        }
        self.queue.tidy();
        self.swept = self.queue.end();
        self.free = cluster.free(0);
        Ok(())
    }

    /// Starts jobs in order until one does not fit.
    #[inline]
    fn start_heads<G: Gears, R: Recorder>(
        &mut self,
        order: Order,
        gears: &G,
        cluster: &mut Cluster<'_, R>,
    ) -> Result<()> {
        if std::mem::take(&mut self.early_end) && gears.head_gear() == HeadGear::UntilEarlyEnd {
            self.reserved = None;
        }
        while self.queue.len() > 0 && self.queue.procs(self.queue.head()) <= cluster.free(0) {
            let head = self.queue.head();
            let job = self.queue.job(head);
            let gear = match self.reserved {
                Some((reserved, gear)) if reserved == job => gear,
                _ => gears.at(Candidate::new(cluster, job), cluster.now_s(), self.queue.len() - 1),
            };
            self.start(head, gear, false, cluster)?;
            self.queue.pop_head();
            if order.changes() {
                self.queue.bring_first();
            }
            // The job started without regard to the reservation of an earlier head.
            self.bounded = None;
        }
        Ok(())
    }

    #[inline(always)]
    fn start<R: Recorder>(&mut self, at: usize, gear: u8, overtook: bool, cluster: &mut Cluster<'_, R>) -> Result<()> {
        let (job, procs) = (self.queue.job(at), self.queue.procs(at));
        let end_s = cluster.start(job, gear, overtook)?;
        if self.overtaking.is_some() {
            self.releases.add(Release { end_s, job, procs }, |job| cluster.is_running(job));
        }
        Ok(())
    }

    /// Chooses the gear of a waiting head for its reservation, unless it has a gear.
    fn reserve_head<G: Gears, R: Recorder>(&mut self, gears: &G, cluster: &Cluster<'_, R>) -> Result<()> {
        if self.queue.len() == 0 {
            self.reserved = None;
            return Ok(());
        }
        let job = self.queue.job(self.queue.head());
        if self.reserved.is_none_or(|(reserved, _)| reserved != job) {
            let start_s = self.reservation(cluster)?.at_s;
            self.reserved = Some((job, gears.at(Candidate::new(cluster, job), start_s, self.queue.len() - 1)));
        }
        Ok(())
    }

    /// Starts the jobs that have not been considered and may overtake, in queue order.
    #[inline]
    fn sweep<G: Gears, R: Recorder>(&mut self, order: Order, gears: &G, cluster: &mut Cluster<'_, R>) -> Result<()> {
        let (now_s, head) = (cluster.now_s(), self.queue.head());
        let mut from = self.swept.max(head + 1);
        if !self.exact {
            let job = Some(self.queue.job(head));
            if self.bounded != job || self.bound.at_s < now_s {
                (self.bound, self.bounded) = (Shadow { at_s: f64::INFINITY, extra: cluster.free(0) }, job);
            }
            let Some(at) = self.queue.next_candidate(from, &self.reach(self.bound, cluster), cluster) else {
                return Ok(());
            };
            from = at;
        }
        let mut shadow = self.reservation(cluster)?;
        if order.changes() {
            let mut fitting = std::mem::take(&mut self.fitting);
            fitting.clear();
            let reach = self.reach(shadow, cluster);
            while let Some(at) = self.queue.next_candidate(from, &reach, cluster) {
                fitting.push(at);
                from = at + 1;
            }
            self.queue.sort(&mut fitting);
            for &at in &fitting {
                // Starts leave less for the others.
                if self.queue.reaches(at, &self.reach(shadow, cluster), cluster) {
                    self.overtake(at, &mut shadow, gears, cluster)?;
                }
            }
            self.fitting = fitting;
        } else {
            while let Some(at) = self.queue.next_candidate(from, &self.reach(shadow, cluster), cluster) {
                from = at + 1;
                self.overtake(at, &mut shadow, gears, cluster)?;
            }
        }
        self.bound = shadow;
        Ok(())
    }

    /// Starts a job that may overtake by its estimate at the top gear, if the gear rule has a gear for it.
    #[inline(always)]
    fn overtake<G: Gears, R: Recorder>(
        &mut self,
        at: usize,
        shadow: &mut Shadow,
        gears: &G,
        cluster: &mut Cluster<'_, R>,
    ) -> Result<()> {
        cluster.step()?;
        let procs = self.queue.procs(at);
        let candidate = Candidate::new(cluster, self.queue.job(at));
        let on_extra = procs <= self.reach(*shadow, cluster).extra;
        let choice = gears.overtaking(candidate, cluster.now_s(), self.queue.len() - 1, shadow.at_s, on_extra);
        if let Some((gear, late)) = choice {
            self.start(at, gear, true, cluster)?;
            self.queue.take(at);
            if late {
                shadow.extra -= procs;
            }
        }
        Ok(())
    }

    /// Conditions for overtaking while the head has this reservation, or is bounded by it.
    #[inline]
    fn reach<R: Recorder>(&self, shadow: Shadow, cluster: &Cluster<'_, R>) -> Reach {
        let extra = if self.overtaking == Some(true) { shadow.extra } else { 0 };
        Reach { free: cluster.free(0), extra, now_s: cluster.now_s(), until_s: shadow.at_s }
    }

    /// The head's reservation.
    #[inline(always)]
    fn reservation<R: Recorder>(&mut self, cluster: &Cluster<'_, R>) -> Result<Shadow> {
        if self.exact {
            return Ok(self.bound);
        }
        let head = self.queue.head();
        let (now_s, free, need) = (cluster.now_s(), cluster.free(0), self.queue.procs(head));
        let found = if cluster.any_coming() {
            let mut releases = Releases::default();
            releases.collect_with_waking(cluster);
            releases.sorted().shadow(now_s, free, need, |_| true)
        } else {
            self.releases.shadow(now_s, free, need, |job| cluster.is_running(job))
        };
        self.bound = found.ok_or_else(|| {
            let job = self.queue.job(head);
            let what = format!("no end of a running job gives job {job} (by arrival) its {need} procs");
            Stop::new(SimError::Policy { now_s, what })
        })?;
        (self.bounded, self.exact) = (Some(self.queue.job(head)), true);
        Ok(self.bound)
    }
}
