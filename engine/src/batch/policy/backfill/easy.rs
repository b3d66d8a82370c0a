//! EASY backfilling, and strict order: one pass over a [`List`], whatever resources the machine counts.
//!
//! A machine has one pool of procs, or the pools of its partitions, GPUs and memory. Two jobs compete if they take
//! something of the same pool. A job that competes with no earlier waiting job starts as soon as it fits: a partition
//! does not wait for another one.
//!
//! **EASY.** The first waiting job of each partition has a reservation, in queue order: the earliest time at which all
//! that it takes fits, and goes on to fit beside the earlier reservations. Times are estimated ends of running jobs; a
//! reservation holds its resources from its time on, without end. Any other job, and a first one that competes with an
//! earlier one, may overtake if each reservation that it competes with is kept: it ends by then, or the resources that
//! the reservation leaves free at that time suffice (the extra resources, which later starts reduce). If earlier
//! reservations never leave enough, a first job has no reservation until one of them has started; the first job of the
//! queue always has one.
//!
//! **Strict order.** No reservations: a job waits for all earlier jobs that it competes with.
//!
//! **Under a power cap**, watts are a second counted resource. A reservation counts the watts of the lowest gear under
//! the present cap. The gear rule chooses a gear at which all reservations are kept, if there is one; the job starts at
//! the highest gear up to it at which this holds and the power now fits. If the present cap never admits the head, not
//! even on an empty machine, its reservation has an infinite time, and all jobs that fit overtake until the cap changes.
//!
//! **Long queues.** Reservations are computed when a job fits that might overtake. A pass after arrivals alone considers
//! the new jobs, because no resource becomes free in between. Under a cap it does so where the cap, the gears of running
//! jobs and the gears that waiting jobs may start at are those of the last pass, and no watts have become free. Procs
//! alone, without a cap, have a faster pass of their own ([`super::easy_of_procs`]); with one pool, this pass starts the
//! same jobs (tested).
pub(in crate::batch::policy) use super::easy_of_procs::EasyOfProcs;
use super::list::{List, ListRule, Listed, Start, Waiting, widest};
use super::releases::{Release, Releases, WAKING};
use super::resources::{ProcsAndWatts, Resources};
use crate::batch::kernel::{Cluster, Copied, JobId, Recorder};
use crate::batch::platform::pools::{Amounts, POOLS_MAX};
use crate::batch::platform::{Gear, Machine};
use crate::batch::policy::cap::allowance::{Allowance, above_idle_w};
use crate::batch::policy::gear::{Candidate, Gears, HeadGear};
use crate::error::{Result, SimError, Stop};
use crate::spec::{Component, Default as ParamDefault, Param, Role, SimSpec, Type, Value};

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

/// EASY under a power cap.
pub(in crate::batch::policy) type EasyUnderCap = Listed<Easy<ProcsAndWatts>>;

/// EASY on a machine with pools.
pub(in crate::batch::policy) type EasyOfPools = Listed<Easy<Amounts>>;

/// Whether jobs may overtake by a spec's rule, `easy` or `none`, and then whether they may use the extra resources.
pub(super) fn overtaking(spec: &SimSpec) -> Option<bool> {
    spec.choice(Role::Backfill).get("extra_procs").map(|extra| *extra == Value::Bool(true))
}

/// The reservation of the first waiting job of a partition.
#[derive(Debug, Clone, Copy)]
struct Reservation<A> {
    /// Infinite if the present cap never admits the job.
    at_s: f64,
    /// The pools that it takes something of, one bit each.
    pools: u16,
    taken: A,
    /// The resources that it leaves free at its time; unlimited in other pools.
    extra: A,
}

/// State at the end of a pass under a cap. While it holds and no more power is left, the refused jobs cannot start.
#[derive(Debug, Clone, Copy)]
struct Left {
    allowance: Allowance,
    /// Power that starting jobs may add (W).
    left_w: f64,
    rescheduled_count: u64,
}

/// The jobs that may overtake at a gear.
#[derive(Debug, Clone, Copy)]
struct Reach {
    /// Procs: the power of a wider job does not fit.
    widest: u32,
    /// Estimate (s): a longer job, if it takes more than the extra procs, outlasts the reservation.
    longest_s: f64,
}

/// A job that may start now.
#[derive(Debug, Clone, Copy)]
struct Fitting {
    job: JobId,
    /// The pools that it takes something of, one bit each.
    pools: u16,
    /// The pool of its procs.
    partition: usize,
    /// Whether it competes with an earlier waiting job.
    competes: bool,
}

/// The rule for jobs that take resources `A`; by default strict order.
#[derive(Debug, Clone, Default)]
pub(in crate::batch::policy) struct Easy<A> {
    /// See [`overtaking`].
    overtaking: Option<bool>,
    /// Releases of the present pass.
    releases: Releases,
    /// The releases are those of the present running jobs.
    collected: bool,
    /// The next pass considers all jobs.
    again: bool,
    /// Under a cap, behind the first job: what bounds the jobs that may overtake, from the top gear down; empty if it is not
    /// known.
    reach: Vec<Reach>,
    /// Procs of the widest job that may outlast the first reservation.
    reach_on_extra: u32,
    /// Under a cap: what the last pass left, if the jobs that it considered cannot start while no more is left.
    left: Option<Left>,
    /// The pools that considered jobs wait for, one bit each.
    blocked: u16,
    /// The pools of procs that considered jobs wait for, one bit each.
    partitions: u16,
    /// First jobs of partitions whose reservations have not been computed, in queue order.
    unreserved: Vec<JobId>,
    /// In queue order.
    reservations: Vec<Reservation<A>>,
    /// By pool of procs: the reserved job with its chosen gear, unless the gear is chosen at each pass.
    chosen: [Option<(JobId, u8)>; POOLS_MAX],
}

impl<A: Resources> ListRule for Easy<A> {
    fn of(spec: &SimSpec, machine: &Machine) -> Option<Easy<A>> {
        A::are_of(spec, machine).then(|| Easy { overtaking: overtaking(spec), ..Easy::default() })
    }

    fn pass<G: Gears, R: Recorder>(&mut self, list: &mut List, gears: &G, cluster: &mut Cluster<'_, R>) -> Result<()> {
        let mut headroom = list.headroom(cluster);
        let mut next = self.begin(headroom.left_w, list, gears, cluster);
        let all_pools = u16::MAX >> (POOLS_MAX - cluster.machine().pools.len().max(1));
        let mut starts = false;
        self.reach.clear();
        while let Some(at) = self.next_candidate(next, headroom.left_w, list, cluster) {
            if (A::CAPPED && headroom.widest == 0) || (self.overtaking.is_none() && self.blocked == all_pools) {
                break;
            }
            next = at + 1;
            let Waiting { job, procs, .. } = list.waiting()[at];
            let (pools, partition) = A::pools(cluster, job);
            let competes = pools & self.blocked != 0;
            if procs <= headroom.widest && (!competes || self.overtaking.is_some()) && cluster.fits(job) {
                cluster.step()?;
                self.reserve(list, gears, cluster)?;
                let fitting = Fitting { job, pools, partition, competes };
                if let Some(start) = self.start_of(&fitting, headroom.left_w, list, gears, cluster) {
                    list.start(at, start, competes, cluster)?;
                    self.started(&fitting, start, list.allowance(), gears, cluster);
                    (starts, headroom) = (true, list.headroom(cluster));
                    continue;
                }
            }
            if self.partitions >> partition & 1 == 0 && self.overtaking.is_some() {
                self.unreserved.push(job);
            }
            self.blocked |= pools;
            self.partitions |= 1 << partition;
        }
        if chooses_with_reservation::<A, G>(gears) {
            self.reserve(list, gears, cluster)?;
        }
        list.remove_started();
        // A start adds an estimated end. The first reservation waits for resources that are not free and does not move to
        // it; a later one may, if its job fits now and waits for the first.
        self.again = starts && self.reservations.len() + self.unreserved.len() > 1;
        self.left = (A::CAPPED && gears.is_constant() && !cluster.has_scales()).then(|| Left {
            allowance: *list.allowance(),
            left_w: headroom.left_w,
            rescheduled_count: cluster.rescheduled_count(),
        });
        Ok(())
    }

    fn fork(&self, copied: &Copied) -> Easy<A> {
        let chosen = self.chosen.map(|chosen| chosen.and_then(|(job, gear)| Some((copied.number(job)?, gear))));
        Easy { overtaking: self.overtaking, chosen, ..Easy::default() }
    }
}

/// Whether a waiting first job gets its gear with its reservation.
fn chooses_with_reservation<A: Resources, G: Gears>(gears: &G) -> bool {
    !A::CAPPED && gears.head_gear() != HeadGear::Renew
}

impl<A: Resources> Easy<A> {
    /// Begins a pass, and returns the position of the first job to consider.
    fn begin<G: Gears, R: Recorder>(
        &mut self,
        left_w: f64,
        list: &mut List,
        gears: &G,
        cluster: &Cluster<'_, R>,
    ) -> usize {
        let passed = |reservation: &Reservation<A>| reservation.at_s < cluster.now_s();
        let no_more = |left: Left| {
            left.allowance == *list.allowance()
                && left_w <= left.left_w
                && cluster.rescheduled_count() == left.rescheduled_count
        };
        let keeps = !A::CAPPED || self.left.is_some_and(no_more);
        if keeps && !self.again && list.seen() > 0 && !self.reservations.iter().any(passed) {
            return list.seen();
        }
        if list.take_early_end() && gears.head_gear() == HeadGear::UntilEarlyEnd {
            self.chosen = [None; POOLS_MAX];
        }
        self.reservations.clear();
        self.unreserved.clear();
        (self.collected, self.blocked, self.partitions) = (false, 0, 0);
        0
    }

    /// The position of the next job to consider, from one on. Once the first job waits, under a cap, jobs are skipped that
    /// cannot start at any gear.
    fn next_candidate<R: Recorder>(
        &mut self,
        from: usize,
        left_w: f64,
        list: &List,
        cluster: &Cluster<'_, R>,
    ) -> Option<usize> {
        let waiting = list.waiting();
        if !A::CAPPED || self.blocked == 0 || self.overtaking.is_none() {
            return Some(from).filter(|from| *from < waiting.len());
        }
        if self.reach.is_empty() {
            self.set_reach(left_w, list.allowance(), cluster);
        }
        let extra = self.reach_on_extra;
        let (Some(top), Some(lowest)) = (self.reach.first(), self.reach.last()) else { return None };
        let may = |job: &Waiting| {
            // Two comparisons refuse most jobs.
            if job.procs > lowest.widest || (job.procs > extra && job.estimate_s > top.longest_s) {
                return false;
            }
            let fastest = self.reach.iter().find(|gear| job.procs <= gear.widest);
            fastest.is_some_and(|gear| job.procs <= extra || job.estimate_s <= gear.longest_s)
        };
        waiting[from..].iter().position(may).map(|at| from + at)
    }

    /// Bounds the jobs that may overtake now, a little more than exactly, so that rounding excludes no job.
    fn set_reach<R: Recorder>(&mut self, left_w: f64, allowance: &Allowance, cluster: &Cluster<'_, R>) {
        let (class, free, first) = (&cluster.machine().classes[0], cluster.free(0), self.reservations.first());
        let left_s = first.map_or(f64::INFINITY, |reservation| reservation.at_s - cluster.now_s() + 1.0);
        // The power of a job may be any share of the model's.
        let least_w = |gear: &Gear| if cluster.has_scales() { 0.0 } else { gear.busy_w - class.idle_w };
        let mut lowest_w = 0.0;
        for gear in (0..class.gears.len()).rev() {
            let of_classes = || std::iter::once(&class.gears).chain(&class.more_job_classes).map(|gears| &gears[gear]);
            lowest_w = of_classes().map(least_w).fold(f64::INFINITY, f64::min);
            let factor = of_classes().map(|gear| gear.time_factor).fold(f64::INFINITY, f64::min);
            self.reach.push(Reach { widest: free.min(widest(left_w, lowest_w)), longest_s: left_s / factor });
        }
        let extra =
            first.filter(|_| self.overtaking == Some(true)).map_or(0, |first| first.extra.widest(allowance, lowest_w));
        self.reach_on_extra = extra;
    }

    /// How a job that fits can start now, if it may.
    fn start_of<G: Gears, R: Recorder>(
        &self,
        fitting: &Fitting,
        left_w: f64,
        list: &List,
        gears: &G,
        cluster: &Cluster<'_, R>,
    ) -> Option<Start> {
        let (job, now_s, allowance) = (fitting.job, cluster.now_s(), list.allowance());
        let candidate = Candidate::new(cluster, job);
        if !fitting.competes {
            let ceiling = match self.chosen[fitting.partition] {
                Some((chosen, gear)) if chosen == job => gear,
                _ => gears.at(candidate, now_s, list.others()),
            };
            let gear = allowance.gear(cluster, job, ceiling, left_w)?;
            return Some(Start { gear, ceiling });
        }
        let bound = |gear| self.bound(A::taken(cluster, allowance, job, gear), fitting.pools);
        let ask = |(until_s, on_extra)| gears.overtaking(candidate, now_s, list.others(), until_s, on_extra);
        let mut choice = ask(bound(None))?;
        if choice.1
            && let (until_s, false) = bound(Some(choice.0))
        {
            // At the chosen gear, the procs fit beside the reservation, but not the watts. A higher gear that ends in time
            // is chosen instead; without one, the cap may lower the job to a gear whose watts fit.
            choice = ask((until_s, false)).unwrap_or(choice);
        }
        let ceiling = choice.0;
        let factors = cluster.gears_for(0, job);
        let keeps = |gear: u8| {
            let (until_s, on_extra) = bound(Some(gear));
            on_extra || gears.in_time(now_s + candidate.estimate_s * factors[usize::from(gear)].time_factor, until_s)
        };
        let may = |gear: &u8| above_idle_w(cluster, job, *gear) <= left_w && keeps(*gear);
        allowance.gears(ceiling).find(may).map(|gear| Start { gear, ceiling })
    }

    /// The bound of the estimated end of a job that overtakes (s), for [`Gears::overtaking`]: the earliest reservation
    /// that it must not outlast and `false`, or, if it fits beside all, the earliest reservation and `true`.
    fn bound(&self, taken: A, pools: u16) -> (f64, bool) {
        let (mut next_s, mut until_s, mut on_extra) = (f64::INFINITY, f64::INFINITY, true);
        for reservation in self.reservations.iter().filter(|reservation| reservation.pools & pools != 0) {
            next_s = next_s.min(reservation.at_s);
            if self.overtaking != Some(true) || !reservation.extra.covers(taken) {
                (until_s, on_extra) = (until_s.min(reservation.at_s), false);
            }
        }
        (if on_extra { next_s } else { until_s }, on_extra)
    }

    /// A job has started: it takes extra resources of the reservations that it outlasts.
    fn started<G: Gears, R: Recorder>(
        &mut self,
        fitting: &Fitting,
        start: Start,
        allowance: &Allowance,
        gears: &G,
        cluster: &Cluster<'_, R>,
    ) {
        self.collected = false;
        self.reach.clear();
        if !fitting.competes {
            return;
        }
        let end_s = cluster.estimated_end_s(fitting.job).expect("the job runs");
        let taken = A::taken(cluster, allowance, fitting.job, Some(start.gear));
        for reservation in self.reservations.iter_mut().filter(|reservation| reservation.pools & fitting.pools != 0) {
            if !gears.in_time(end_s, reservation.at_s) {
                reservation.extra += -taken;
            }
        }
    }

    /// Gives the first waiting jobs of partitions their reservations, if there is a time for them.
    fn reserve<G: Gears, R: Recorder>(&mut self, list: &List, gears: &G, cluster: &mut Cluster<'_, R>) -> Result<()> {
        for at in 0..self.unreserved.len() {
            let job = self.unreserved[at];
            let (pools, partition) = A::pools(cluster, job);
            let Some(reservation) = self.reservation(job, pools, list.allowance(), cluster)? else {
                if self.reservations.iter().any(|earlier| earlier.pools & pools != 0) {
                    continue;
                }
                let what = format!("no end of a running job gives job {job} (by arrival) what it needs");
                return Err(Stop::new(SimError::Policy { now_s: cluster.now_s(), what }));
            };
            let chosen = &mut self.chosen[partition];
            if chooses_with_reservation::<A, G>(gears) && chosen.is_none_or(|(chosen, _)| chosen != job) {
                let gear = gears.at(Candidate::new(cluster, job), reservation.at_s, list.others());
                *chosen = Some((job, gear));
            }
            // A later reservation at an earlier time takes from those after it.
            for earlier in self.reservations.iter_mut().filter(|earlier| earlier.at_s >= reservation.at_s) {
                earlier.extra += -reservation.taken;
            }
            self.reservations.push(reservation);
        }
        if !self.unreserved.is_empty() {
            self.unreserved.clear();
            self.reach.clear();
        }
        Ok(())
    }

    /// The earliest reservation of a job beside the earlier reservations.
    fn reservation<R: Recorder>(
        &mut self,
        job: JobId,
        pools: u16,
        allowance: &Allowance,
        cluster: &mut Cluster<'_, R>,
    ) -> Result<Option<Reservation<A>>> {
        if !std::mem::replace(&mut self.collected, true) {
            self.releases.collect_with_waking(cluster);
        }
        let (now_s, taken) = (cluster.now_s(), A::taken(cluster, allowance, job, Some(0)));
        let (mut at_s, mut next, mut free) = (now_s, 0, A::free(cluster, allowance));
        // Under a cap, a job may fit the lowest gear and not start: the gear rule chose another one.
        let mut fits = A::CAPPED && free.covers(taken);
        while !fits {
            cluster.step()?;
            let Some(release) = self.releases.get(next) else {
                let never = Reservation { at_s: f64::INFINITY, pools, taken, extra: A::default() };
                return Ok(A::CAPPED.then_some(never));
            };
            at_s = release.end_s.max(now_s);
            free += released(&release, allowance, cluster);
            next += 1;
            fits = free.covers(taken) && self.fits_beside(taken, pools, at_s, free);
        }
        // Releases at the same instant count, too.
        while let Some(release) = self.releases.get(next).filter(|release| release.end_s <= at_s) {
            free += released(&release, allowance, cluster);
            next += 1;
        }
        let mut extra = self.beside(pools, at_s, free);
        extra += -taken;
        extra.limit_to(pools);
        Ok(Some(Reservation { at_s, pools, taken, extra }))
    }

    /// Of the resources that are free at an instant, those that the earlier reservations leave to a job.
    fn beside(&self, pools: u16, at_s: f64, mut free: A) -> A {
        let shared = self.reservations.iter().filter(|earlier| earlier.pools & pools != 0);
        shared.filter(|earlier| earlier.at_s <= at_s).for_each(|earlier| free += -earlier.taken);
        free
    }

    /// Whether a job fits from an instant on beside the earlier reservations.
    fn fits_beside(&self, taken: A, pools: u16, at_s: f64, free: A) -> bool {
        let shared = self.reservations.iter().filter(|earlier| earlier.pools & pools != 0);
        shared.filter(|later| later.at_s > at_s).all(|later| later.extra.covers(taken))
            && self.beside(pools, at_s, free).covers(taken)
    }
}

/// The resources of a release; procs that wake have no watts.
fn released<A: Resources, R: Recorder>(release: &Release, allowance: &Allowance, cluster: &Cluster<'_, R>) -> A {
    if release.job == WAKING {
        return A::procs(release.procs);
    }
    A::taken(cluster, allowance, release.job, cluster.gear(release.job))
}
