//! EASY and strict order on a machine with pools: partitions, GPUs, memory.
//!
//! Jobs wait in one queue. Two jobs compete if they need something of the same pool. A job that competes with no earlier
//! waiting job starts as soon as it fits: a partition does not wait for another one.
//!
//! **EASY.** The first waiting job of each partition has a reservation, in queue order: the earliest time at which all its
//! needs fit, and go on to fit beside the earlier reservations. Times are estimated ends of running jobs; a reservation
//! takes its needs from its time on, without end. Any other job, and a first one that competes with an earlier one, may
//! overtake if each reservation that it competes with is kept: it ends by then, or what the reservation leaves free of the
//! shared pools at that time suffices (the extra amounts, which later starts reduce). If earlier reservations never leave
//! enough, a first job has no reservation until one of them has started; the first job of the queue always has one.
//!
//! With one pool this is EASY as in [`super::easy`], start by start (tested). Speed matters less here: a pass after an end
//! considers all jobs, and so does one after a start beside several reservations. A pass after arrivals alone considers the
//! new ones, because nothing gets better in between.
//!
//! **Strict order.** No reservations: a job waits for all earlier jobs that it competes with.
use std::marker::PhantomData;

use super::rule::Backfill;
use crate::batch::kernel::{Cluster, Copied, Ended, JobId, Recorder};
use crate::batch::platform::Machine;
use crate::batch::platform::pools::{Amounts, Needs, POOLS_MAX};
use crate::batch::policy::gear::{Candidate, Gears, HeadGear};
use crate::batch::policy::order::Order;
use crate::error::{Result, SimError, Stop};
use crate::spec::{Role, SimSpec};

/// Which of the two rules.
pub(in crate::batch::policy) trait Overtaking: Clone + std::fmt::Debug {
    /// Whether jobs may overtake, and then whether they may use what reservations leave free.
    fn of(spec: &SimSpec) -> Option<bool>;
}

/// EASY.
#[derive(Debug, Clone)]
pub(in crate::batch::policy) struct Easy;

impl Overtaking for Easy {
    fn of(spec: &SimSpec) -> Option<bool> {
        Some(spec.choice(Role::Backfill).bool("extra_procs"))
    }
}

/// Strict order.
#[derive(Debug, Clone)]
pub(in crate::batch::policy) struct Strict;

impl Overtaking for Strict {
    fn of(_: &SimSpec) -> Option<bool> {
        None
    }
}

/// A waiting job.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    /// Sort key of the queue order.
    key: f64,
    job: JobId,
    needs: Needs,
    estimate_s: f64,
}

/// A running job.
#[derive(Debug, Clone, Copy)]
struct Release {
    end_s: f64,
    job: JobId,
    needs: Needs,
}

/// The reservation of the first waiting job of a partition.
#[derive(Debug, Clone, Copy)]
struct Reservation {
    at_s: f64,
    needs: Needs,
    /// What it leaves free at its time of the pools that it takes something of.
    extra: Amounts,
}

impl Reservation {
    /// Whether the needs of a job fit beside the reservation for any time. It competes with the job.
    fn leaves(&self, needs: Needs) -> bool {
        self.extra.cover_of(needs, self.needs.mask())
    }
}

/// Waiting jobs of a machine with pools.
#[derive(Debug, Clone)]
pub(in crate::batch::policy) struct Pooled<T> {
    /// In queue order.
    waiting: Vec<Waiting>,
    /// Running jobs by estimated end.
    releases: Vec<Release>,
    /// See [`Overtaking::of`].
    overtaking: Option<bool>,
    /// All waiting jobs must be considered.
    stale: bool,
    /// Positions of the queue before this one have been considered.
    swept: usize,
    /// The pools that considered jobs wait for, one bit each.
    blocked: u16,
    /// The pools of procs that considered jobs wait for, one bit each.
    partitions: u16,
    /// In queue order.
    reservations: Vec<Reservation>,
    /// By pool of procs: the reserved job with its chosen gear, unless the gear is chosen at each pass.
    chosen: [Option<(JobId, u8)>; POOLS_MAX],
    /// A job has ended before its estimate since the last pass.
    early_end: bool,
    rule: PhantomData<T>,
}

impl<T: Overtaking> Backfill for Pooled<T> {
    fn of(spec: &SimSpec, machine: &Machine) -> Option<Pooled<T>> {
        (!machine.pools.is_empty()).then(|| Pooled::new(T::of(spec)))
    }

    fn submitted<R: Recorder>(&mut self, order: Order, cluster: &Cluster<'_, R>, job: JobId) {
        let key = order.key(cluster, job);
        let at = self.waiting.partition_point(|other| other.key <= key);
        let (needs, estimate_s) = (cluster.needs(job), cluster.estimate_s(job));
        self.waiting.insert(at, Waiting { key, job, needs, estimate_s });
        self.stale |= at < self.swept || order.changes();
    }

    fn ended<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, ended: &Ended) {
        if let Some(at) = self.releases.iter().position(|release| release.job == ended.job) {
            self.releases.remove(at);
        }
        self.stale = true;
        self.early_end |= cluster.now_s() < ended.estimated_end_s;
    }

    fn pass<G: Gears, R: Recorder>(&mut self, order: Order, gears: &G, cluster: &mut Cluster<'_, R>) -> Result<()> {
        let now_s = cluster.now_s();
        if self.stale || self.reservations.iter().any(|reservation| reservation.at_s < now_s) {
            self.begin(order, gears, cluster);
        }
        let (from, mut started) = (self.swept, Vec::new());
        for at in from..self.waiting.len() {
            let needs = self.waiting[at].needs;
            let first = self.partitions >> needs.partition() & 1 == 0;
            let fits = cluster.free_amounts().cover(needs);
            let competes = needs.mask() & self.blocked != 0;
            if (fits && (!competes || self.overtaking.is_some())) || (first && self.overtaking.is_some()) {
                cluster.step()?;
                let others = self.waiting.len() - started.len() - 1;
                if fits && let Some(gear) = self.gear(at, competes, others, gears, cluster) {
                    self.start(at, gear, competes, gears, cluster)?;
                    started.push(at);
                    continue;
                }
                if first && self.overtaking.is_some() {
                    self.reserve(at, others, gears, cluster)?;
                }
            }
            self.blocked |= needs.mask();
            self.partitions |= 1 << needs.partition();
        }
        if !started.is_empty() {
            let (mut at, mut next) = (0, started.iter().peekable());
            self.waiting.retain(|_| {
                let waits = next.next_if(|&&started| started == at).is_none();
                at += 1;
                waits
            });
        }
        self.swept = self.waiting.len();
        // A start adds an estimated end. The first reservation waits for needs that are not free and does not move to it; a
        // later one may, if its job fits now and waits for the first.
        self.stale = !started.is_empty() && self.reservations.len() > 1;
        Ok(())
    }

    fn jobs(&self) -> impl Iterator<Item = JobId> {
        self.waiting.iter().map(|waiting| waiting.job)
    }

    fn procs_changed(&mut self) {
        self.stale = true;
    }

    fn time_passed(&mut self, order: Order) {
        self.stale |= order.changes();
    }

    fn fork<R: Recorder>(&self, copied: &Copied, copy: &Cluster<'_, R>) -> Pooled<T> {
        let mut fork = Pooled::new(self.overtaking);
        for job in copy.running_jobs() {
            let end_s = copy.estimated_end_s(job).expect("the job runs");
            fork.add_release(Release { end_s, job, needs: copy.needs(job) });
        }
        fork.chosen = self.chosen.map(|chosen| chosen.and_then(|(job, gear)| Some((copied.number(job)?, gear))));
        fork.early_end = self.early_end;
        fork
    }
}

impl<T> Pooled<T> {
    pub(super) fn new(overtaking: Option<bool>) -> Pooled<T> {
        Pooled {
            waiting: Vec::new(),
            releases: Vec::new(),
            overtaking,
            stale: true,
            swept: 0,
            blocked: 0,
            partitions: 0,
            reservations: Vec::new(),
            chosen: [None; POOLS_MAX],
            early_end: false,
            rule: PhantomData,
        }
    }

    /// Begins a pass over all jobs.
    fn begin<G: Gears, R: Recorder>(&mut self, order: Order, gears: &G, cluster: &Cluster<'_, R>) {
        if order.changes() {
            for waiting in &mut self.waiting {
                waiting.key = order.key(cluster, waiting.job);
            }
            self.waiting.sort_unstable_by(|a, b| a.key.total_cmp(&b.key).then(a.job.cmp(&b.job)));
        }
        if std::mem::take(&mut self.early_end) && gears.head_gear() == HeadGear::UntilEarlyEnd {
            self.chosen = [None; POOLS_MAX];
        }
        self.reservations.clear();
        (self.stale, self.swept, self.blocked, self.partitions) = (false, 0, 0, 0);
    }

    /// The gear of a job that fits, if it may start now. `competes`: with an earlier waiting job.
    fn gear<G: Gears, R: Recorder>(
        &self,
        at: usize,
        competes: bool,
        others: usize,
        gears: &G,
        cluster: &Cluster<'_, R>,
    ) -> Option<u8> {
        let Waiting { job, needs, estimate_s, .. } = self.waiting[at];
        let (candidate, now_s) = (Candidate::estimated(cluster, job, estimate_s), cluster.now_s());
        if !competes {
            return Some(match self.chosen[needs.partition()] {
                Some((chosen, gear)) if chosen == job => gear,
                _ => gears.at(candidate, now_s, others),
            });
        }
        let extra = self.overtaking?;
        // The earliest reservation that the job competes with, and the earliest that it must not outlast.
        let (mut next_s, mut until_s) = (f64::INFINITY, f64::INFINITY);
        for reservation in self.reservations.iter().filter(|reservation| reservation.needs.share(needs)) {
            next_s = next_s.min(reservation.at_s);
            if !(extra && reservation.leaves(needs)) {
                until_s = until_s.min(reservation.at_s);
            }
        }
        let on_extra = until_s == f64::INFINITY;
        let bound_s = if on_extra { next_s } else { until_s };
        gears.overtaking(candidate, now_s, others, bound_s, on_extra).map(|(gear, _)| gear)
    }

    /// Starts a job, which takes extra amounts of the reservations that it outlasts.
    fn start<G: Gears, R: Recorder>(
        &mut self,
        at: usize,
        gear: u8,
        competes: bool,
        gears: &G,
        cluster: &mut Cluster<'_, R>,
    ) -> Result<()> {
        let Waiting { job, needs, .. } = self.waiting[at];
        let end_s = cluster.start(job, gear, competes)?;
        self.add_release(Release { end_s, job, needs });
        for reservation in &mut self.reservations {
            if reservation.needs.share(needs) && !gears.in_time(end_s, reservation.at_s) {
                reservation.extra.take(needs);
            }
        }
        Ok(())
    }

    fn add_release(&mut self, release: Release) {
        let at = self.releases.partition_point(|other| other.end_s <= release.end_s);
        self.releases.insert(at, release);
    }

    /// Gives the first waiting job of a partition its reservation, if there is a time for it.
    fn reserve<G: Gears, R: Recorder>(
        &mut self,
        at: usize,
        others: usize,
        gears: &G,
        cluster: &mut Cluster<'_, R>,
    ) -> Result<()> {
        let Waiting { job, needs, estimate_s, .. } = self.waiting[at];
        let Some(reservation) = self.reservation(needs, cluster) else {
            if self.reservations.iter().any(|reservation| reservation.needs.share(needs)) {
                return Ok(());
            }
            let what = format!("no end of a running job gives job {job} (by arrival) what it needs");
            return Err(Stop::new(SimError::Policy { now_s: cluster.now_s(), what }));
        };
        let chosen = &mut self.chosen[needs.partition()];
        if gears.head_gear() != HeadGear::Renew && chosen.is_none_or(|(chosen, _)| chosen != job) {
            let candidate = Candidate::estimated(cluster, job, estimate_s);
            *chosen = Some((job, gears.at(candidate, reservation.at_s, others)));
        }
        // A later reservation at an earlier time takes from those after it.
        for earlier in self.reservations.iter_mut().filter(|earlier| earlier.at_s >= reservation.at_s) {
            earlier.extra.take(needs);
        }
        self.reservations.push(reservation);
        Ok(())
    }

    /// The earliest reservation for the needs of a job beside the earlier reservations.
    fn reservation<R: Recorder>(&self, needs: Needs, cluster: &Cluster<'_, R>) -> Option<Reservation> {
        let now_s = cluster.now_s();
        let mut extra = *cluster.free_amounts();
        let mut at = 0;
        while let Some(first) = self.releases.get(at) {
            // A job that has outlived its estimate ends now. Releases at the same instant count, too.
            let at_s = first.end_s.max(now_s);
            while let Some(release) = self.releases.get(at).filter(|release| release.end_s <= at_s) {
                extra.give(release.needs);
                at += 1;
            }
            if !extra.cover(needs) {
                continue;
            }
            let (mut left, mut fits) = (extra, true);
            for reservation in self.reservations.iter().filter(|reservation| reservation.needs.share(needs)) {
                if reservation.at_s <= at_s {
                    left.take(reservation.needs);
                } else {
                    fits &= reservation.leaves(needs);
                }
            }
            if fits && left.cover(needs) {
                left.take(needs);
                return Some(Reservation { at_s, needs, extra: left });
            }
        }
        None
    }
}
