//! Conservative backfilling: every waiting job has a reservation.
//!
//! A job gets its reservation when it arrives: the earliest hole that running jobs and earlier reservations leave.
//! Reservations are kept between passes. When a job ends at another instant than its estimate, all reservations are
//! compressed: one after the other in queue order, each is released and placed again, while the others hold their
//! places. So no reservation becomes later (Mu'alem & Feitelson 2001).
//!
//! A compression moves few jobs. So a job is first tested without a change of the profile, with the least need and the least
//! duration of its gears: they bound the start at each gear ([`Reservations::bound_s`]). Only a job with several gears that
//! passes the test counts as free in its place while a search finds its best gear.
//!
//! A job that outlives its estimate is expected to end now, at every instant. A reservation is missed if its time has
//! passed while its procs were still held. Then all reservations are released at once and placed again in queue order.
//! Only this and a change of the active procs make a reservation later: after the change, all are placed again on the
//! procs that are active.
//!
//! A job whose estimate is 0 reserves an instant, and other jobs may be placed over it.
//!
//! A reservation need not begin at the end of a running job. So a timer is set for the earliest reservation after now,
//! and moved with it. A reservation whose procs are still held does not delay the timer of later ones.
//!
//! **With a reservation depth** of N (`reservation_depth`), at most N waiting jobs have a reservation after now: the first ones in
//! queue order that do not start. A job behind them has none. At every pass, in queue order, it gets a reservation if fewer
//! than N jobs have one, and otherwise starts if there is a hole for it now. So it delays no reservation. While a job waits
//! without a reservation, every pass compresses. With N = 1 and first come first served, at the top gear, the schedule is that of
//! EASY, if no job outlives its estimate. With N not less than the number of waiting jobs, the schedule is that of the rule without
//! a depth. A depth bounds the work of a pass where thousands of jobs wait.
//!
//! **On a machine with pools** (partitions, GPUs, memory) a reservation holds all that the job needs, and a hole must have
//! all of it.
//!
//! **Under a power cap** a reservation holds the resources that the cap's rule counts:
//!
//! - If starts are limited by power (`admission`, `uniform`, `pdrc` with `fitting`), watts are a second counted
//!   resource. The free watts are those below the present cap; a running job releases its counted watts at its
//!   estimated end. A hole must have the procs and the counted watts of the job for its duration at a gear. Gears are
//!   tried from the ceiling (the gear rule's choice) down to the lowest: the earliest start is taken, of equal ones
//!   that of the highest gear. The gear rule sees the resulting start for each ceiling. If there is no hole at any
//!   time, the job has no reservation, and later jobs are placed as if it did not wait.
//! - Otherwise only procs are reserved, for the duration at the gear of the start: the lowest one with `blind`.
//!
//! At its reservation, a job starts at the highest gear up to the reserved one at which the power fits. At a lower gear
//! it ends later than reserved, so all others are placed again before the next start. If the power fits at no gear, the
//! job waits. All reservations are also released and placed again when the cap changes (if watts are counted), when a
//! running job's gear has changed, and when a job was suspended or resumed or still is suspended, because that moves
//! its end. So a reservation can become later under a cap.
mod starts;

use super::profile::{Held, Profile};
use super::resources::{Place, ProcsAndWatts, Resources, Wanted};
use super::rule::Backfill;
use crate::batch::kernel::{Cluster, Copied, Ended, JobId, Recorder};
use crate::batch::platform::Machine;
use crate::batch::platform::pools::Amounts;
use crate::batch::policy::cap::allowance::Allowance;
use crate::batch::policy::gear::{Candidate, Gears};
use crate::batch::policy::order::Order;
use crate::error::{Result, SimError, Stop};
use crate::spec::{Component, Default as ParamDefault, Param, Role, SimSpec, Type};

const DEPTH: &str = "reservation_depth";

/// Description of the rule.
pub const COMPONENT: Component = Component {
    role: Role::Backfill,
    name: "conservative",
    version: 2,
    source: "Mu'alem & Feitelson 2001",
    doc: "Every waiting job has a reservation; jobs overtake as long as all reservations are kept. If a power cap \
          limits starts, watts are reserved, too; all reservations are placed again when the cap or a running job's gear \
          changes.",
    reads: "Free procs, estimates of waiting jobs, estimated ends of running jobs; if a power cap limits starts, \
            also their watts.",
    guarantees: "No job starts later than its first reservation, if no running job outlives its estimate, no \
                 estimate is 0, and neither a power cap, a capacity rule nor suspension changes what is free; with \
                 `reservation_depth`, if jobs are first come first served, too.",
    params: &[Param {
        name: DEPTH,
        ty: Type::Int { min: 1, max: u32::MAX as i64 },
        unit: "",
        default: ParamDefault::Unset,
        doc: "Greatest number of waiting jobs with a reservation after now; a job behind them in the queue starts only where \
              there is a hole for it now. Without it, every waiting job has a reservation.",
    }],
    ..Component::BATCH
};

/// The rule without a power cap: reservations count procs.
pub(in crate::batch::policy) type Conservative = Reservations<i32>;

/// The rule under a power cap: reservations count procs and watts.
pub(in crate::batch::policy) type ConservativeUnderCap = Reservations<ProcsAndWatts>;

/// The rule on a machine with pools: reservations count the amounts of the pools.
pub(in crate::batch::policy) type ConservativeOfPools = Reservations<Amounts>;

/// A waiting job's reservation.
#[derive(Debug, Clone, Copy)]
struct Reserved<A> {
    /// Sort key of the order.
    key: f64,
    job: JobId,
    place: Place<A>,
    /// [`Gears::lowers`] when the place was found.
    lowers: bool,
}

/// Waiting jobs with their reservations, and the profile of free resources.
#[derive(Debug, Clone)]
pub(in crate::batch::policy) struct Reservations<A> {
    /// In the queue order of the last sort.
    queue: Vec<Reserved<A>>,
    /// Jobs that have arrived since the last pass.
    arrived: Vec<JobId>,
    /// `None` if the resources of running jobs have changed in another way than planned.
    profile: Option<Profile<A>>,
    /// A job has ended at another instant than its estimate.
    surprise: bool,
    /// The reservations are not valid: procs were put to sleep or woken, or a cap has changed the free resources.
    outdated: bool,
    /// The earliest reservation (s); infinite if no job waits.
    next_s: f64,
    /// Instant of the timer (s): the earliest reservation after the last pass; infinite if there is none.
    timer_s: f64,
    /// Greatest number of reservations after now.
    depth: usize,
    /// The depth has left a job without a reservation.
    is_cut: bool,
    /// How jobs may start.
    allowance: Allowance,
    /// Under a cap, the jobs that the last pass started, with their ceilings.
    started: Vec<(JobId, u8)>,
    /// [`Cluster::rescheduled_count`] as of the last pass.
    rescheduled_count: u64,
}

/// How all reservations are placed again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Replan {
    /// One by one while the others hold their places: none becomes later.
    Compress,
    /// After all have been released.
    AllAtOnce,
    /// On a new profile without reservations.
    OnNewProfile,
}

impl<A: Resources> Backfill for Reservations<A> {
    fn of(spec: &SimSpec, machine: &Machine) -> Option<Reservations<A>> {
        let depth = spec.choice(Role::Backfill).opt_int(DEPTH).map_or(usize::MAX, |depth| depth as usize);
        A::are_of(spec, machine).then(|| Reservations::new(depth))
    }

    #[inline]
    fn submitted<R: Recorder>(&mut self, _: Order, _: &Cluster<'_, R>, job: JobId) {
        self.arrived.push(job);
    }

    fn ended<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, ended: &Ended) {
        let now_s = cluster.now_s();
        if A::CAPPED && cluster.has_scales() {
            if now_s != ended.estimated_end_s {
                // The known power of a job may have changed while it ran.
                self.profile = None;
            }
        } else if now_s < ended.estimated_end_s
            && let Some(profile) = &mut self.profile
        {
            let amount = A::taken(cluster, &self.allowance, ended.job, Some(ended.gear));
            profile.give_back(&Held { from_s: now_s, until_s: ended.estimated_end_s, amount });
        }
        self.surprise |= now_s != ended.estimated_end_s;
    }

    fn pass<G: Gears, R: Recorder>(&mut self, order: Order, gears: &G, cluster: &mut Cluster<'_, R>) -> Result<()> {
        let now_s = cluster.now_s();
        let missed = self.next_s < now_s;
        if A::CAPPED {
            self.started.clear();
            // The end of a suspended job moves with every instant.
            let moved = self.rescheduled_count != cluster.rescheduled_count() || cluster.suspended() > 0;
            if missed || moved {
                self.rescheduled_count = cluster.rescheduled_count();
                self.forget();
            }
        }
        let (outdated, surprise) = (std::mem::take(&mut self.outdated), std::mem::take(&mut self.surprise));
        let replan = match () {
            () if outdated => Some(Replan::OnNewProfile),
            () if missed => Some(Replan::AllAtOnce),
            () if surprise || self.is_cut => Some(Replan::Compress),
            () => None,
        };
        if self.profile.is_none() {
            self.profile = Some(self.new_profile(!outdated, cluster));
        }
        self.profile.as_mut().expect("it has just been made").trim(now_s);
        if let Some(replan) = replan {
            self.place_all(replan, order, gears, cluster)?;
        }
        for i in 0..self.arrived.len() {
            self.place(self.arrived[i], order, gears, cluster)?;
        }
        self.arrived.clear();
        self.start_all_due(outdated, order, gears, cluster)?;
        self.move_timer(cluster)
    }

    /// The waiting jobs: those with a reservation in queue order, then those that have just arrived.
    fn jobs(&self) -> impl Iterator<Item = JobId> {
        self.queue.iter().map(|reserved| reserved.job).chain(self.arrived.iter().copied())
    }

    fn procs_changed(&mut self) {
        self.forget();
    }

    fn allow(&mut self, allowance: Allowance) {
        if allowance != self.allowance {
            self.allowance = allowance;
            self.forget();
        }
    }

    fn started(&self) -> &[(JobId, u8)] {
        &self.started
    }

    /// Also possible while no job runs: jobs that started early leave a gap before a reservation, which only the next
    /// compression closes.
    fn has_future_reservation(&self) -> bool {
        self.timer_s.is_finite()
    }

    fn fork<R: Recorder>(&self, _: &Copied, _: &Cluster<'_, R>) -> Reservations<A> {
        Reservations { allowance: self.allowance, ..Reservations::new(self.depth) }
    }
}

impl<A: Resources> Reservations<A> {
    fn new(depth: usize) -> Reservations<A> {
        Reservations {
            queue: Vec::new(),
            arrived: Vec::new(),
            profile: None,
            surprise: false,
            outdated: false,
            next_s: f64::INFINITY,
            timer_s: f64::INFINITY,
            depth,
            is_cut: false,
            allowance: Allowance::ANY,
            started: Vec::new(),
            rescheduled_count: 0,
        }
    }

    /// Moves the timer to the next reservation.
    fn move_timer<R: Recorder>(&mut self, cluster: &mut Cluster<'_, R>) -> Result<()> {
        let now_s = cluster.now_s();
        let timer_s = if self.next_s > now_s {
            self.next_s
        } else {
            // Missed reservations do not delay the later ones.
            let starts = self.queue.iter().map(|reserved| reserved.place.start_s);
            starts.filter(|&start_s| start_s > now_s).fold(f64::INFINITY, f64::min)
        };
        if timer_s != self.timer_s {
            cluster.move_timer(timer_s, 0)?;
            self.timer_s = timer_s;
        }
        Ok(())
    }

    /// Makes all reservations invalid.
    fn forget(&mut self) {
        self.outdated = true;
        self.profile = None;
    }

    fn profile_mut(&mut self) -> &mut Profile<A> {
        self.profile.as_mut().expect("every pass makes it first")
    }

    /// The resources that running jobs and waking procs leave; `reserved`: and the reservations.
    fn new_profile<R: Recorder>(&self, reserved: bool, cluster: &Cluster<'_, R>) -> Profile<A> {
        let ends = cluster.running_jobs().map(|job| {
            let end_s = cluster.estimated_end_s(job).expect("the job runs");
            (end_s, A::taken(cluster, &self.allowance, job, cluster.gear(job)))
        });
        let rises = ends.chain(cluster.coming().map(|(at_s, procs)| (at_s, A::procs(procs)))).collect();
        let mut profile = Profile::new(cluster.now_s(), A::free(cluster, &self.allowance), rises);
        for Reserved { place, .. } in self.queue.iter().filter(|_| reserved) {
            profile.take(&place.held());
        }
        profile
    }

    /// The earliest place of a job. If there is none, the job gets `fallback`, or no place if it may wait for another cap.
    fn find<G: Gears, R: Recorder>(
        &self,
        wanted: Wanted,
        fallback: Option<Place<A>>,
        gears: &G,
        cluster: &Cluster<'_, R>,
    ) -> Option<Place<A>> {
        // Another cap may leave enough watts, but the procs of the machine do not change.
        let waits = self.allowance.limit_w.is_finite();
        let profile = self.profile.as_ref().expect("every pass makes it first");
        A::place(profile, wanted, gears, &self.allowance, cluster).or(fallback).or(waits.then(Place::none))
    }

    /// The place of a job behind the depth: one that begins now, or none.
    fn place_behind<G: Gears, R: Recorder>(&self, job: JobId, gears: &G, cluster: &Cluster<'_, R>) -> Option<Place<A>> {
        let profile = self.profile.as_ref().expect("every pass makes it first");
        let (now_s, lowest) = (cluster.now_s(), *self.allowance.gears(u8::MAX).start());
        if !profile.free_now().covers(A::taken(cluster, &self.allowance, job, Some(lowest))) {
            return Some(Place::none());
        }
        self.find(Wanted { job, from_s: now_s, latest_s: now_s }, Some(Place::none()), gears, cluster)
    }

    /// Gives a job that has just arrived its reservation.
    fn place<G: Gears, R: Recorder>(
        &mut self,
        job: JobId,
        order: Order,
        gears: &G,
        cluster: &mut Cluster<'_, R>,
    ) -> Result<()> {
        cluster.step()?;
        let now_s = cluster.now_s();
        let waits_with_place = |reserved: &&Reserved<A>| reserved.place.is_after(now_s);
        let is_behind =
            self.queue.len() >= self.depth && self.queue.iter().filter(waits_with_place).count() >= self.depth;
        let found = if is_behind {
            self.place_behind(job, gears, cluster)
        } else {
            self.find(Wanted { job, from_s: now_s, latest_s: f64::INFINITY }, None, gears, cluster)
        };
        let Some(place) = found else {
            let what = format!("no hole is ever wide enough for {} procs", cluster.procs(job));
            return Err(Stop::new(SimError::Policy { now_s, what }));
        };
        self.profile_mut().take(&place.held());
        self.next_s = self.next_s.min(place.start_s);
        self.is_cut |= is_behind && place.start_s == f64::INFINITY;
        let lowers = lowers(job, gears, cluster);
        self.queue.push(Reserved { key: order.key(cluster, job), job, place, lowers });
        Ok(())
    }

    /// Places all reservations again, in queue order.
    fn place_all<G: Gears, R: Recorder>(
        &mut self,
        replan: Replan,
        order: Order,
        gears: &G,
        cluster: &mut Cluster<'_, R>,
    ) -> Result<()> {
        self.sort(order, cluster);
        let now_s = cluster.now_s();
        self.next_s = f64::INFINITY;
        let profile = self.profile.as_mut().expect("every pass makes it first");
        if replan == Replan::AllAtOnce {
            self.queue.iter().for_each(|reserved| profile.give_back(&reserved.place.held()));
        }
        let compress = replan == Replan::Compress;
        self.is_cut = false;
        let mut reserved_count = 0;
        for at in 0..self.queue.len() {
            cluster.step()?;
            let Reserved { job, place: old, lowers: lowered, .. } = self.queue[at];
            let lowers = lowers(job, gears, cluster);
            let is_behind = reserved_count >= self.depth;
            let from_s = match () {
                () if !compress => Some(now_s),
                () if is_behind => (old.start_s != now_s).then_some(now_s),
                () => self.bound_s(&self.queue[at], lowers, gears, cluster),
            };
            if let Some(from_s) = from_s {
                // With one gear, the bound is the start.
                let has_bound = compress && !is_behind && old.start_s < f64::INFINITY;
                let is_found = has_bound && !(lowers || lowered || A::CAPPED);
                let lifted = (compress && !is_found).then(|| self.profile_mut().lift(&old.held()));
                let wanted = Wanted { job, from_s, latest_s: if compress { old.start_s } else { f64::INFINITY } };
                // A reserved instant remains: another job may have been placed over it.
                let instant = (old.duration_s == 0.0).then_some(old);
                let found = match () {
                    () if is_found => Some(Place { start_s: from_s, ..old }),
                    () if is_behind => self.place_behind(job, gears, cluster),
                    () => self.find(wanted, instant, gears, cluster),
                };
                let Some(place) = found else {
                    let what = format!("the reservation of job {job} (by arrival) has no place any more");
                    return Err(Stop::new(SimError::Policy { now_s, what }));
                };
                match lifted {
                    Some(steps) if place == old => self.profile_mut().lower(steps, old.taken),
                    Some(steps) => self.profile_mut().leave(steps),
                    None if is_found => self.profile_mut().give_back(&old.held()),
                    None => (),
                }
                if !compress || place != old {
                    self.profile_mut().take(&place.held());
                }
                (self.queue[at].place, self.queue[at].lowers) = (place, lowers);
            }
            let place = &self.queue[at].place;
            self.next_s = self.next_s.min(place.start_s);
            reserved_count += usize::from(place.is_after(now_s));
            self.is_cut |= is_behind && place.start_s == f64::INFINITY;
        }
        Ok(())
    }

    /// A lower bound of the start of a job in a compression (s). `None`: it keeps its place.
    fn bound_s<G: Gears, R: Recorder>(
        &self,
        reserved: &Reserved<A>,
        lowers: bool,
        gears: &G,
        cluster: &Cluster<'_, R>,
    ) -> Option<f64> {
        let &Reserved { job, place, lowers: lowered, .. } = reserved;
        let now_s = cluster.now_s();
        if place.start_s == now_s {
            return None;
        }
        // The place is not as before if other gears are tried, or if the known power of the job has changed. Other jobs may have
        // taken the power of a reserved instant.
        let is_new = A::CAPPED && (cluster.has_scales() || place.duration_s == 0.0);
        if lowers != lowered || place.start_s == f64::INFINITY || is_new {
            return Some(now_s);
        }
        let profile = self.profile.as_ref().expect("every pass makes it first");
        let gears_of_job = cluster.gears_for(job);
        let duration_s = |gear: usize| cluster.estimate_s(job) * gears_of_job[gear].time_factor;
        let taken = |gear: u8| A::taken(cluster, &self.allowance, job, Some(gear));
        let (lowest, highest) = self.allowance.gears(place.ceiling).into_inner();
        let (start_s, end_s, least) = (place.start_s, place.held().until_s, taken(lowest));
        let fastest = if lowers { gears_of_job.len() - 1 } else { usize::from(highest) };
        // From the present start on, the job's own place has enough.
        let bound_s = profile.earliest(now_s, start_s, least, duration_s(fastest), start_s).filter(|s| *s < start_s);
        if bound_s.is_some() {
            return bound_s;
        }
        // At the present start, the power may allow a higher gear now, or there may be time for a lower one.
        let is_free = |from_s, until_s, need| profile.earliest(from_s, from_s, need, f64::INFINITY, until_s).is_some();
        let rises = place.gear < highest && {
            let mut more = taken(place.gear + 1);
            more += -place.taken;
            is_free(start_s, start_s + duration_s(usize::from(highest)), more)
        };
        let falls = lowers && place.gear > 0 && {
            let lower_end_s = start_s + duration_s(usize::from(place.gear) - 1);
            lower_end_s <= gears.lowered_end_s(Candidate::new(cluster, job)) && is_free(end_s, lower_end_s, least)
        };
        (rises || falls).then_some(start_s)
    }

    /// Sorts the queue. Arrivals are appended, which is the order of FCFS.
    fn sort<R: Recorder>(&mut self, order: Order, cluster: &Cluster<'_, R>) {
        if order.is_fcfs() {
            return;
        }
        for reserved in &mut self.queue {
            reserved.key = order.key(cluster, reserved.job);
        }
        self.queue.sort_unstable_by(|a, b| a.key.total_cmp(&b.key).then(a.job.cmp(&b.job)));
    }
}

/// [`Gears::lowers`] of a waiting job.
fn lowers<G: Gears, R: Recorder>(job: JobId, gears: &G, cluster: &Cluster<'_, R>) -> bool {
    gears.lowers(Candidate::new(cluster, job), cluster.now_s(), cluster.waiting_count() as usize - 1)
}
