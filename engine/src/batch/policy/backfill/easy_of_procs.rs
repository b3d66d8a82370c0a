//! EASY backfilling of jobs that take procs, or procs and watts: the fast pass of most sweeps over a [`Queue`].
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
//!
//! Under a cap, watts only decrease between two completions, too, and the bound holds for them. It does not hold once the
//! cap, the estimated end of a running job or the power of procs that no job holds changes: then all jobs are considered
//! again. It never holds where the gear of a refused job depends on the queue, or jobs have powers of their own.
//!
//! Suspensions by a deferral rule move estimated ends, too. Without a cap, the list of releases is kept all the same.
mod ends;
mod trial;

use super::easy::overtaking;
use super::list::Start;
use super::power::Power;
use super::queue::{Queue, Reach};
use super::releases::{Release, Releases, Shadow};
use super::resources::Resources;
use super::rule::Backfill;
use crate::batch::kernel::{Cluster, Copied, Ended, JobId, Recorder};
use crate::batch::platform::Machine;
use crate::batch::policy::cap::allowance::Allowance;
use crate::batch::policy::deferral;
use crate::batch::policy::gear::{Candidate, Gears, HeadGear, RESERVATION_INCLUSIVE};
use crate::batch::policy::order::{ChosenOrder, Order};
use crate::error::{Result, SimError, Stop};
use crate::spec::{Role, SimSpec, Value};

/// Waiting jobs with the state of EASY between passes; by default in strict order.
#[derive(Debug, Clone, Default)]
pub(in crate::batch::policy) struct EasyOfProcs<A = i32> {
    queue: Queue,
    /// See [`overtaking`].
    pub(super) overtaking: Option<bool>,
    /// A job that ends at the reservation is not in time.
    exclusive: bool,
    /// A deferral rule suspends running jobs.
    suspends: bool,
    releases: Releases<A>,
    /// Buffer of releases that are collected for one reservation.
    collected: Releases<A>,
    /// A bound of the head's reservation: it is not later, and has no more extra procs. No considered job behind the head
    /// can start within the bound and the procs that were free then.
    bound: Shadow<A>,
    /// The head whose reservation is bounded.
    bounded: Option<JobId>,
    /// The bound is the reservation.
    exact: bool,
    /// The head and all jobs behind it must be considered again.
    stale: bool,
    /// Positions of the queue before this one have been considered.
    swept: usize,
    /// Free procs in a pass, then after it.
    free: u32,
    /// The pass is a trial, which plans starts.
    trial: bool,
    /// Releases besides `releases`: of suspended jobs and procs that wake, in a trial of planned starts.
    others: Vec<Release<A>>,
    /// The reserved head with its chosen gear, unless the gear is chosen at each pass.
    reserved: Option<(JobId, u8)>,
    /// A job has ended before its estimate since the last pass.
    early_end: bool,
    /// The order in which jobs overtake, if it is not the queue's.
    backfill_order: Option<ChosenOrder>,
    /// Jobs that may overtake, with their keys and positions, if positions are not in the order in which jobs overtake.
    fitting: Vec<(f64, JobId, usize)>,
    /// Under a cap.
    pub(super) power: Power,
}

impl<A: Resources> Backfill for EasyOfProcs<A> {
    fn of(spec: &SimSpec, machine: &Machine) -> Option<EasyOfProcs<A>> {
        let (least_w, gears) = (machine.least_above_idle_w(), machine.least_of_gears());
        let power = Power { least_w, gears, ..Power::default() };
        let (overtaking, backfill_order) = (overtaking(spec), ChosenOrder::of_backfilling(spec).ok()?);
        let exclusive = spec.choice(Role::GearRule).get(RESERVATION_INCLUSIVE.name) == Some(&Value::Bool(false));
        let suspends = !A::CAPPED && deferral::suspends(spec);
        (suspends || A::are_of(spec, machine)).then(|| EasyOfProcs {
            overtaking,
            exclusive,
            suspends,
            power,
            backfill_order,
            ..EasyOfProcs::default()
        })
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
            self.bound.extra += self.taken(cluster, ended.job, ended.procs, ended.gear);
        }
        self.stale = true;
        self.early_end |= cluster.now_s() < ended.estimated_end_s;
    }

    fn corrected<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, job: JobId, before_s: f64) {
        if A::CAPPED {
            return self.procs_changed();
        }
        if self.overtaking.is_none() {
            return;
        }
        let end_s = cluster.estimated_end_s(job).expect("the job runs");
        self.releases.move_later(job, before_s, end_s);
        if self.suspends {
            return self.procs_changed();
        }
        if end_s > self.bound.at_s {
            // The job was expected to end by the shadow time, and now holds its procs beyond it.
            self.bound.extra += -A::procs(cluster.procs(job));
        }
        if self.exclusive || self.bound.at_s < cluster.now_s() || !self.bound.extra.covers(A::default()) {
            // The head may have a later reservation, by which more jobs end.
            self.bound = Self::unbounded(cluster.free());
            self.exact = false;
            if self.queue.any_fits(cluster.free()) {
                self.procs_changed();
            }
        }
    }

    fn rescheduled<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, job: JobId) {
        self.reschedule(cluster, job);
    }

    fn check(&self) -> Result<()> {
        self.backfill_order.as_ref().map_or(Ok(()), ChosenOrder::check)
    }

    /// Whether no new job can start, and no other has to be considered. If so, the new jobs are marked as considered.
    #[inline(always)]
    fn refuses_all<R: Recorder>(&mut self, cluster: &Cluster<'_, R>) -> bool {
        if A::CAPPED || self.suspends {
            self.begin(cluster);
        }
        // The head has been considered, or there is none.
        let head = self.queue.head();
        let same = !self.stale & ((head < self.swept) | (head == self.queue.end())) & (cluster.free() == self.free);
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

    fn allow(&mut self, allowance: Allowance) {
        if self.power.allowance != allowance {
            (self.power.allowance, self.power.moved) = (allowance, true);
            self.procs_changed();
        }
    }

    fn started(&self) -> &[(JobId, u8)] {
        &self.power.started
    }

    fn fork<R: Recorder>(&self, copied: &Copied, copy: &Cluster<'_, R>) -> EasyOfProcs<A> {
        let EasyOfProcs { overtaking, exclusive, suspends, early_end, ref backfill_order, .. } = *self;
        let Power { allowance, least_w, ref gears, .. } = self.power;
        let reserved = self.reserved.and_then(|(job, gear)| Some((copied.number(job)?, gear)));
        let moved = copy.suspended() > 0;
        let power = Power { allowance, least_w, gears: gears.clone(), moved, ..Power::default() };
        let (backfill_order, rest) = (backfill_order.clone(), EasyOfProcs::default());
        let mut fork =
            EasyOfProcs { overtaking, exclusive, suspends, reserved, early_end, power, backfill_order, ..rest };
        let mut releases = Releases::default();
        fork.collect(copy, &mut releases);
        releases.sort();
        fork.releases = releases;
        let suspended = copy.each_running().filter(|(job, ..)| !copy.is_executing(*job));
        suspended.for_each(|(job, ..)| fork.rescheduled(copy, job));
        fork
    }
}

impl<A: Resources> EasyOfProcs<A> {
    /// Procs: no wider job can start now.
    #[inline]
    fn widest(&self) -> u32 {
        if A::CAPPED { self.power.widest } else { self.free }
    }

    /// The resources that a job takes at a gear.
    #[inline]
    fn taken<R: Recorder>(&self, cluster: &Cluster<'_, R>, job: JobId, procs: u32, gear: u8) -> A {
        if A::CAPPED { A::taken(cluster, &self.power.allowance, job, Some(gear)) } else { A::procs(procs) }
    }

    /// Collects the releases of running jobs, not yet sorted.
    fn collect<R: Recorder>(&self, cluster: &Cluster<'_, R>, releases: &mut Releases<A>) {
        releases.collect(cluster, |job, procs, gear| self.taken(cluster, job, procs, gear));
    }

    /// The bound of every reservation: no job is considered that does not fit now.
    fn unbounded(free: u32) -> Shadow<A> {
        Shadow { at_s: f64::INFINITY, extra: A::procs(free) }
    }

    /// Makes the results of earlier passes invalid.
    fn forget(&mut self) {
        (self.bound.at_s, self.exact, self.swept) = (f64::NEG_INFINITY, false, 0);
    }

    #[inline(never)]
    fn pass_in<G: Gears, R: Recorder>(&mut self, order: Order, gears: &G, cluster: &mut Cluster<'_, R>) -> Result<()> {
        let again = self.stale || self.queue.head() >= self.swept || cluster.free() != self.free;
        if !self.trial {
            self.free = cluster.free();
        }
        if again {
            if order.changes() {
                let needs_first = gears.head_gear() != HeadGear::Renew || (A::CAPPED && cluster.running_count() == 0);
                let widest = self.widest();
                let none_starts = || match self.overtaking {
                    Some(_) => !self.queue.any_fits(widest),
                    None => self.queue.first_waits(order, widest, cluster),
                };
                if order.has_all_keys() && !needs_first && none_starts() {
                    (self.stale, self.swept) = (false, self.queue.end());
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
            (self.bound, self.exact) = (Self::unbounded(self.free), false);
        } else if self.queue.end() > self.swept {
            self.sweep(order, gears, cluster)?;
        }
        if !self.trial {
            self.queue.tidy();
        }
        self.swept = self.queue.end();
        if (A::CAPPED || self.suspends) && (!gears.is_constant() || cluster.has_scales()) {
            // A refused job can get another gear or another power.
            self.procs_changed();
        }
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
        while self.queue.len() > 0 && cluster.procs(self.queue.job(self.queue.head())) <= self.widest() {
            let head = self.queue.head();
            let job = self.queue.job(head);
            let gear = match self.reserved {
                Some((reserved, gear)) if reserved == job => gear,
                _ => gears.at(Candidate::new(cluster, job), cluster.now_s(), self.queue.len() - 1),
            };
            let Some(start) = self.start_at(job, gear, cluster) else { break };
            self.start(head, start, false, cluster)?;
            self.queue.pop_head();
            if order.changes() {
                self.queue.bring_first(order, cluster);
            }
            // The job started without regard to the reservation of an earlier head.
            self.bounded = None;
        }
        Ok(())
    }

    /// How a job whose procs fit can start now with a ceiling, without regard to reservations.
    #[inline]
    fn start_at<R: Recorder>(&self, job: JobId, ceiling: u8, cluster: &Cluster<'_, R>) -> Option<Start> {
        let Power { allowance, left_w, .. } = &self.power;
        let gear = if A::CAPPED { allowance.fitting(cluster, job, ceiling, *left_w).next()? } else { ceiling };
        Some(Start { gear, ceiling })
    }

    #[inline(always)]
    fn start<R: Recorder>(
        &mut self,
        at: usize,
        start: Start,
        overtook: bool,
        cluster: &mut Cluster<'_, R>,
    ) -> Result<()> {
        let job = self.queue.job(at);
        let procs = cluster.procs(job);
        self.free -= procs;
        if self.trial {
            self.plan(job, start.gear, cluster);
            return Ok(());
        }
        let end_s = cluster.start(job, start.gear, overtook)?;
        if self.overtaking.is_some() {
            let taken = self.taken(cluster, job, procs, start.gear);
            self.releases.add(Release { end_s, job, taken }, |job| cluster.is_running(job));
        }
        if A::CAPPED || self.suspends {
            self.power.started.push((job, start.ceiling));
        }
        if A::CAPPED {
            self.power.measure(cluster);
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

    /// Starts the jobs that have not been considered and may overtake, in the order of backfilling.
    #[inline]
    fn sweep<G: Gears, R: Recorder>(&mut self, order: Order, gears: &G, cluster: &mut Cluster<'_, R>) -> Result<()> {
        let (now_s, head) = (cluster.now_s(), self.queue.head());
        let mut from = self.swept.max(head + 1);
        if !self.exact {
            let job = Some(self.queue.job(head));
            if self.bounded != job || self.bound.at_s < now_s {
                (self.bound, self.bounded) = (Self::unbounded(self.free), job);
            }
            let Some(at) = self.queue.next_candidate(from, &self.reach(self.bound, cluster), cluster) else {
                return Ok(());
            };
            from = at;
        }
        let mut shadow = self.reservation(cluster)?;
        if order.changes() || self.backfill_order.is_some() {
            let mut fitting = std::mem::take(&mut self.fitting);
            fitting.clear();
            let reach = self.reach(shadow, cluster);
            while let Some(at) = self.queue.next_candidate(from, &reach, cluster) {
                let job = self.queue.job(at);
                let key = match &self.backfill_order {
                    Some(order) => order.get().key(cluster, job),
                    None => self.queue.key(at, order, cluster),
                };
                fitting.push((key, job, at));
                from = at + 1;
            }
            fitting.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            for &(.., at) in &fitting {
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
        shadow: &mut Shadow<A>,
        gears: &G,
        cluster: &mut Cluster<'_, R>,
    ) -> Result<()> {
        cluster.step()?;
        let job = self.queue.job(at);
        let procs = cluster.procs(job);
        let (candidate, now_s) = (Candidate::new(cluster, job), cluster.now_s());
        let ask = |on_extra| gears.overtaking(candidate, now_s, self.queue.len() - 1, shadow.at_s, on_extra);
        let start = if A::CAPPED {
            self.overtaking_at(candidate, job, shadow, ask, gears, cluster)
        } else {
            ask(procs <= self.reach(*shadow, cluster).extra).map(|(gear, late)| (Start { gear, ceiling: gear }, late))
        };
        if let Some((start, late)) = start {
            self.start(at, start, true, cluster)?;
            self.queue.take(at, self.trial);
            if late {
                shadow.extra += -self.taken(cluster, job, procs, start.gear);
            }
        }
        Ok(())
    }

    /// Conditions for overtaking while the head has this reservation, or is bounded by it.
    #[inline(always)]
    fn reach<R: Recorder>(&self, shadow: Shadow<A>, cluster: &Cluster<'_, R>) -> Reach<'_> {
        let Power { allowance, least_w, left_w, gears, .. } = &self.power;
        // With powers of their own, jobs may draw less than the model's.
        let (least_w, left_w) = if cluster.has_scales() { (0.0, f64::INFINITY) } else { (*least_w, *left_w) };
        let extra = if self.overtaking == Some(true) { shadow.extra.widest(allowance, least_w) } else { 0 };
        let gears = if A::CAPPED { &gears[..] } else { &[] };
        Reach { free: self.widest(), extra, now_s: cluster.now_s(), until_s: shadow.at_s, left_w, gears }
    }

    /// The head's reservation.
    #[inline(always)]
    fn reservation<R: Recorder>(&mut self, cluster: &Cluster<'_, R>) -> Result<Shadow<A>> {
        if self.exact {
            return Ok(self.bound);
        }
        let (now_s, head) = (cluster.now_s(), self.queue.head());
        let job = self.queue.job(head);
        let procs = cluster.procs(job);
        let need = self.taken(cluster, job, procs, 0);
        let free = if A::CAPPED { A::free(cluster, &self.power.allowance) } else { A::procs(self.free) };
        let found = if A::CAPPED && (self.power.moved || cluster.any_coming()) {
            let mut collected = std::mem::take(&mut self.collected);
            self.collect(cluster, &mut collected);
            if A::CAPPED && self.power.moved && !self.power.moves && cluster.suspended() == 0 {
                // Sorted to its end, the list can be kept.
                collected.sort();
                (self.releases, self.power.moved) = (collected.clone(), false);
            }
            collected.add_waking(cluster);
            let all_give = !cluster.has_scales() && self.power.least_w >= 0.0;
            let found = collected.shadow_of_collected(now_s, free, need, all_give);
            self.collected = collected;
            found
        } else if self.trial || cluster.any_coming() {
            self.shadow_with_others(free, need, cluster)
        } else {
            self.releases.shadow(now_s, free, need, |job| cluster.is_running(job))
        };
        // The present cap may never admit the head, not even on an empty machine: then all jobs that fit overtake.
        let never = Shadow { at_s: f64::INFINITY, extra: A::default() };
        self.bound = found.or(A::CAPPED.then_some(never)).ok_or_else(|| {
            let what = format!("no end of a running job gives job {job} (by arrival) its {procs} procs");
            Stop::new(SimError::Policy { now_s, what })
        })?;
        (self.bounded, self.exact) = (Some(job), true);
        Ok(self.bound)
    }
}
