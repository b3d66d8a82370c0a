//! Conservative backfilling: every waiting job has a reservation.
//!
//! A job gets its reservation when it arrives, at the earliest hole that running jobs and the reservations before it
//! leave. Reservations are kept between passes. When a job ends at another instant than its estimate, all are released
//! and placed anew, one after the other in queue order, while those not yet reached hold their places: so none becomes
//! later than it was (Mu'alem & Feitelson 2001).
//!
//! A job that outlives its estimate is expected to end now, at every instant anew. A reservation whose time has passed
//! while its procs were still held could not be kept: then all are released at once and placed anew in queue order.
//! This is the only way in which a reservation becomes later, unless procs are put to sleep or woken: then, too, all
//! are placed anew, on the procs that are active.
//!
//! A job whose estimate is 0 reserves an instant, which keeps nobody off.
//!
//! A reservation's time need not be the end of a running job, so a timer is set for the earliest one that has not come
//! yet. It moves when the reservations do. A job whose reservation has come but whose procs are still held does not
//! keep later reservations from their timer.
//!
//! **Under a power cap** a reservation holds what the cap's rule lets it promise:
//!
//! - Where starts regard watts (`admission`, `uniform`, `pdrc` that starts what fits), these are a second counted
//!   resource. Free now is what the present cap leaves; a running job gives back at its estimated end what it counts
//!   for at its gear. A hole must have the procs and the job's counted watts for as long as the job takes at a gear.
//!   Gears are tried from the ceiling, the gear rule's choice, down to the lowest: the earliest start is taken, of
//!   equal ones that of the highest gear. The gear rule sees the start that this gives for each ceiling. If there is no
//!   hole, ever, the job has no reservation, and those behind it are placed as if it were not there.
//! - Where they do not, only procs are reserved: for the time at the gear at which the job will start, which is the
//!   lowest where the rule starts jobs blindly.
//!
//! When its time has come, a job starts at the highest gear up to the reserved one at which the power fits. If that is
//! a lower one, it ends later than reserved, so all others are placed anew before the next starts; if there is none, it
//! waits. All reservations are released and placed anew, too, when the cap changes where watts are counted, and when a
//! running job's gear has changed, or it was suspended or resumed, or still is suspended: that moves its end. So a
//! reservation can become later under a cap.
use super::profile::Profile;
use super::resources::{Place, ProcsAndWatts, Resources, Wanted};
use super::rule::{Backfill, is_capped};
use crate::batch::kernel::{Cluster, Copied, Ended, JobId, Recorder};
use crate::batch::platform::Machine;
use crate::batch::policy::cap::allowance::Allowance;
use crate::batch::policy::gear::Gears;
use crate::batch::policy::order::Order;
use crate::error::{SimError, Stop};
use crate::spec::{Component, Role, SimSpec};

/// Description of the rule.
pub const COMPONENT: Component = Component {
    role: Role::Backfill,
    name: "conservative",
    version: 2,
    source: "Mu'alem & Feitelson 2001",
    doc: "Every waiting job has a reservation; jobs overtake as long as all reservations are kept. Under a power cap \
          that starts regard, watts are reserved, too; all are placed anew when the cap or a running job's gear \
          changes.",
    ..Component::BATCH
};

/// Without a power cap, reservations count procs alone.
pub(in crate::batch::policy) type Conservative = Reservations<i64>;

/// Under a cap, procs and watts.
pub(in crate::batch::policy) type ConservativeUnderCap = Reservations<ProcsAndWatts>;

/// A waiting job's reservation.
#[derive(Debug, Clone, Copy)]
struct Reserved<A> {
    /// Sort key of the order.
    key: f64,
    job: JobId,
    place: Place<A>,
}

/// Waiting jobs with their reservations, and the profile that they leave.
#[derive(Debug, Clone)]
pub(in crate::batch::policy) struct Reservations<A> {
    /// In queue order as of the last sort.
    queue: Vec<Reserved<A>>,
    /// Arrived since the last pass.
    arrived: Vec<JobId>,
    /// Absent if it no longer tells what running jobs leave.
    profile: Option<Profile<A>>,
    /// A job has ended at another instant than its estimate.
    surprise: bool,
    /// The reservations hold no more: procs were put to sleep or woken, or a cap has changed what is free.
    outdated: bool,
    /// The earliest reservation (s); infinite if no job waits.
    next_s: f64,
    /// When the timer is due (s): at the earliest reservation that had not come at the last pass; infinite if there is
    /// none.
    timer_s: f64,
    /// How jobs may start.
    allowance: Allowance,
    /// Under a cap, the jobs that the last pass started, with their ceilings.
    started: Vec<(JobId, u8)>,
    /// [`Cluster::rescheduled_count`] as of the last pass.
    rescheduled_count: u64,
}

/// How reservations are placed anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Anew {
    /// Each while the others hold their places, none later than it was.
    OneByOne,
    /// After all have been released.
    AllAtOnce,
    /// On a profile that knows of none.
    OnNewProfile,
}

/// What came of starting the jobs whose time had come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Started {
    /// Those whose procs were free have started as reserved.
    AsReserved,
    /// The power did not fit for one; others may have started.
    Refused,
    /// The last one ends later than reserved.
    Longer,
}

impl<A: Resources> Backfill for Reservations<A> {
    fn of(spec: &SimSpec, _: &Machine) -> Option<Reservations<A>> {
        (A::CAPPED == is_capped(spec)).then(Reservations::new)
    }

    #[inline]
    fn submitted<R: Recorder>(&mut self, _: Order, _: &Cluster<'_, R>, job: JobId) {
        self.arrived.push(job);
    }

    fn ended<R: Recorder>(&mut self, cluster: &Cluster<'_, R>, ended: &Ended) {
        let now_s = cluster.now_s();
        if A::CAPPED {
            if now_s != ended.estimated_end_s {
                // Which watts it gave back is known only from the machine as it is now.
                self.profile = None;
            }
        } else if now_s < ended.estimated_end_s
            && let Some(profile) = &mut self.profile
        {
            profile.add(now_s, ended.estimated_end_s, A::procs(ended.procs));
        }
        self.surprise |= now_s != ended.estimated_end_s;
    }

    fn pass<G: Gears, R: Recorder>(
        &mut self,
        order: Order,
        gears: &G,
        cluster: &mut Cluster<'_, R>,
    ) -> Result<(), Stop> {
        let now_s = cluster.now_s();
        let missed = self.next_s < now_s;
        if A::CAPPED {
            self.started.clear();
            // A suspended job's end moves on with every instant.
            let moved = self.rescheduled_count != cluster.rescheduled_count() || cluster.suspended(0) > 0;
            if missed || moved {
                self.rescheduled_count = cluster.rescheduled_count();
                self.forget();
            }
        }
        let (outdated, surprise) = (std::mem::take(&mut self.outdated), std::mem::take(&mut self.surprise));
        let how = match () {
            () if outdated => Some(Anew::OnNewProfile),
            () if missed => Some(Anew::AllAtOnce),
            () if surprise => Some(Anew::OneByOne),
            () => None,
        };
        if self.profile.is_none() {
            self.profile = Some(self.new_profile(!outdated, cluster));
        }
        self.profile.as_mut().expect("it has just been made").trim(now_s);
        if let Some(how) = how {
            self.place_anew(how, order, gears, cluster)?;
        }
        for i in 0..self.arrived.len() {
            self.place(i, order, gears, cluster)?;
        }
        self.arrived.clear();
        self.start_all_due(outdated, order, gears, cluster)?;
        self.move_timer(cluster)
    }

    /// The waiting jobs, those with a reservation in queue order, then those that have just arrived.
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

    /// Whether a waiting job has a reservation that was still to come at the last pass. With nothing running, too: jobs
    /// that moved forward leave a gap before it that is closed at the next surprise only.
    fn waits_for_reservation(&self) -> bool {
        self.timer_s.is_finite()
    }

    fn fork<R: Recorder>(&self, _: &Copied, _: &Cluster<'_, R>) -> Reservations<A> {
        Reservations { allowance: self.allowance, ..Reservations::new() }
    }

    /// In queue order: so the copy places their reservations.
    fn arrivals(&self) -> Vec<JobId> {
        self.jobs().collect()
    }
}

impl<A: Resources> Reservations<A> {
    fn new() -> Reservations<A> {
        Reservations {
            queue: Vec::new(),
            arrived: Vec::new(),
            profile: None,
            surprise: false,
            outdated: false,
            next_s: f64::INFINITY,
            timer_s: f64::INFINITY,
            allowance: Allowance::ANY,
            started: Vec::new(),
            rescheduled_count: 0,
        }
    }

    /// Asks for a pass when the next reservation comes, and for none when one would have come that has moved.
    fn move_timer<R: Recorder>(&mut self, cluster: &mut Cluster<'_, R>) -> Result<(), Stop> {
        let now_s = cluster.now_s();
        let timer_s = if self.next_s > now_s {
            self.next_s
        } else {
            // Reservations that have come could not be kept; the others need not wait for them.
            let starts = self.queue.iter().map(|reserved| reserved.place.start_s);
            starts.filter(|&start_s| start_s > now_s).fold(f64::INFINITY, f64::min)
        };
        if timer_s != self.timer_s {
            cluster.move_timer(timer_s, 0)?;
            self.timer_s = timer_s;
        }
        Ok(())
    }

    /// The reservations hold no more: procs were put to sleep or woken, say.
    fn forget(&mut self) {
        self.outdated = true;
        self.profile = None;
    }

    /// What running jobs and procs that wake leave; `reserved`: and the reservations.
    fn new_profile<R: Recorder>(&self, reserved: bool, cluster: &Cluster<'_, R>) -> Profile<A> {
        let mut profile = Profile::new(cluster.now_s(), A::free(cluster, &self.allowance));
        for job in cluster.running_jobs() {
            let end_s = cluster.estimated_end_s(job).expect("it runs");
            profile.raise(end_s, A::held(cluster, &self.allowance, job));
        }
        for (at_s, procs) in cluster.coming(0) {
            profile.raise(at_s, A::procs(procs));
        }
        for Reserved { place, .. } in self.queue.iter().filter(|_| reserved) {
            profile.add(place.start_s, place.start_s + place.duration_s, -place.taken);
        }
        profile
    }

    /// What a job has that no hole is wide enough for, if it may wait without a reservation.
    fn no_place(&self) -> Option<Place<A>> {
        // Another cap may be wide enough; more procs will never be there.
        let waits = self.allowance.limit_w.is_finite();
        let place = Place { start_s: f64::INFINITY, duration_s: 0.0, taken: A::procs(0), gear: 0, ceiling: 0 };
        waits.then_some(place)
    }

    /// Gives a job that has just arrived its reservation.
    fn place<G: Gears, R: Recorder>(
        &mut self,
        arrived: usize,
        order: Order,
        gears: &G,
        cluster: &mut Cluster<'_, R>,
    ) -> Result<(), Stop> {
        cluster.step()?;
        let job = self.arrived[arrived];
        let others = self.queue.len() + self.arrived.len() - arrived - 1;
        let no_place = self.no_place();
        let profile = self.profile.as_mut().expect("every pass makes it first");
        let wanted = Wanted { job, others, latest_s: f64::INFINITY, gears, allowance: &self.allowance };
        let Some(place) = A::place(profile, &wanted, cluster).or(no_place) else {
            let what = format!("no hole is ever wide enough for {} procs", cluster.procs(job));
            return Err(Stop::new(SimError::Policy { now_s: cluster.now_s(), what }));
        };
        profile.add(place.start_s, place.start_s + place.duration_s, -place.taken);
        self.next_s = self.next_s.min(place.start_s);
        self.queue.push(Reserved { key: order.key(cluster, job), job, place });
        Ok(())
    }

    /// Releases all reservations and places them anew, in queue order.
    fn place_anew<G: Gears, R: Recorder>(
        &mut self,
        how: Anew,
        order: Order,
        gears: &G,
        cluster: &mut Cluster<'_, R>,
    ) -> Result<(), Stop> {
        self.sort(order, cluster);
        let now_s = cluster.now_s();
        let others = self.queue.len() + self.arrived.len() - usize::from(!self.queue.is_empty());
        let no_place = self.no_place();
        let profile = self.profile.as_mut().expect("every pass makes it first");
        self.next_s = f64::INFINITY;
        if how == Anew::AllAtOnce {
            for Reserved { place, .. } in &self.queue {
                profile.add(place.start_s, place.start_s + place.duration_s, place.taken);
            }
        }
        let one_by_one = how == Anew::OneByOne;
        for reserved in &mut self.queue {
            cluster.step()?;
            let old = reserved.place;
            if !one_by_one || old.start_s != now_s {
                let latest_s = if one_by_one { old.start_s } else { f64::INFINITY };
                if one_by_one {
                    profile.add(old.start_s, old.start_s + old.duration_s, old.taken);
                }
                let wanted = Wanted { job: reserved.job, others, latest_s, gears, allowance: &self.allowance };
                let found = A::place(profile, &wanted, cluster);
                // An instant keeps nobody off: another job may have been placed over it.
                let instant = (old.duration_s == 0.0).then_some(old);
                let Some(place) = found.or(instant).or(no_place) else {
                    let what = format!("the reservation of job {} (by arrival) has no place any more", reserved.job);
                    return Err(Stop::new(SimError::Policy { now_s, what }));
                };
                profile.add(place.start_s, place.start_s + place.duration_s, -place.taken);
                reserved.place = place;
            }
            self.next_s = self.next_s.min(reserved.place.start_s);
        }
        Ok(())
    }

    /// Starts the jobs whose reservation has come; where one is not kept because of watts, all are placed anew and the
    /// rest is tried again. `anew`: the profile has been made in this pass and knows of no other reservations.
    fn start_all_due<G: Gears, R: Recorder>(
        &mut self,
        mut anew: bool,
        order: Order,
        gears: &G,
        cluster: &mut Cluster<'_, R>,
    ) -> Result<(), Stop> {
        // Under a cap the first of the queue is asked for after the pass.
        if A::CAPPED || self.next_s <= cluster.now_s() {
            self.sort(order, cluster);
        }
        while self.next_s <= cluster.now_s() {
            match self.start_due(cluster)? {
                Started::AsReserved => break,
                // On a new profile only a job that outlives its estimate keeps watts that were promised.
                Started::Refused if anew => break,
                Started::Refused | Started::Longer => {
                    self.profile = Some(self.new_profile(false, cluster));
                    self.place_anew(Anew::OnNewProfile, order, gears, cluster)?;
                    anew = true;
                }
            }
        }
        Ok(())
    }

    /// Starts the jobs whose reservation has come and whose procs are free, up to one that ends later than reserved.
    fn start_due<R: Recorder>(&mut self, cluster: &mut Cluster<'_, R>) -> Result<Started, Stop> {
        let now_s = cluster.now_s();
        self.next_s = f64::INFINITY;
        let mut kept = 0;
        let mut outcome = Started::AsReserved;
        for i in 0..self.queue.len() {
            let reserved = self.queue[i];
            let Reserved { job, place, .. } = reserved;
            if outcome != Started::Longer && place.start_s <= now_s && cluster.procs(job) <= cluster.free(0) {
                if let Some(gear) = A::start_gear(cluster, &self.allowance, job, place.gear) {
                    cluster.step()?;
                    cluster.start(job, gear, kept > 0)?;
                    if A::CAPPED {
                        self.started.push((job, place.ceiling));
                        outcome = if gear == place.gear { outcome } else { Started::Longer };
                    }
                    continue;
                }
                outcome = Started::Refused;
            }
            self.next_s = self.next_s.min(place.start_s);
            self.queue[kept] = reserved;
            kept += 1;
        }
        self.queue.truncate(kept);
        Ok(outcome)
    }

    /// Establishes the queue order. Arrivals are appended, so FCFS needs nothing.
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
