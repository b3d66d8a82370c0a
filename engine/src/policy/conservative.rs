//! Conservative backfilling: every waiting job has a reservation.
//!
//! A job gets its reservation when it arrives, at the earliest hole that running jobs and the reservations before it
//! leave. Reservations are kept between passes. When a job ends at another instant than its estimate, all are released
//! and placed anew, one after the other in queue order, while those not yet reached hold their places: so none becomes
//! later than it was (Mu'alem & Feitelson 2001).
//!
//! A job that outlives its estimate is expected to end now, at every instant anew. A reservation whose time has passed
//! while its procs were still held could not be kept: then all are released at once and placed anew in queue order. This
//! is the only way in which a reservation becomes later, unless procs are put to sleep or woken: then, too, all are placed
//! anew, on the procs that are active.
//!
//! A job whose estimate is 0 reserves an instant, which keeps nobody off.
//!
//! A reservation's time need not be the end of a running job, so a timer is set for the next one.

use super::gear_rule::{Candidate, Gears};
use super::order::Order;
use super::profile::Profile;
use crate::error::{SimError, Stop};
use crate::kernel::{Cluster, Ended, JobId, Recorder};

/// A waiting job's reservation.
#[derive(Debug, Clone, Copy)]
struct Reserved {
    /// Sort key of the order.
    key: f64,
    start_s: f64,
    duration_s: f64,
    job: JobId,
    procs: u32,
    gear: u8,
}

/// Waiting jobs with their reservations, and the profile that they leave.
#[derive(Debug, Clone, Default)]
pub(crate) struct Conservative {
    /// In queue order as of the last sort.
    queue: Vec<Reserved>,
    /// Arrived since the last pass.
    arrived: Vec<JobId>,
    profile: Option<Profile>,
    /// A job has ended at another instant than its estimate.
    surprise: bool,
    /// Procs have been put to sleep or woken.
    procs_changed: bool,
    /// Earliest reservation.
    next_s: f64,
    /// The timer that was set last (s).
    timer_s: f64,
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

/// What running jobs and procs that wake leave.
fn profile<R: Recorder>(cluster: &Cluster<'_, R>) -> Profile {
    let mut profile = Profile::new(cluster.now_s(), cluster.free(0));
    for job in cluster.running_jobs() {
        let end_s = cluster.estimated_end_s(job).expect("it runs");
        profile.raise(end_s, cluster.procs(job));
    }
    for (at_s, procs) in cluster.coming(0) {
        profile.raise(at_s, procs);
    }
    profile
}

impl Conservative {
    #[inline]
    pub(crate) fn submitted(&mut self, job: JobId) {
        self.arrived.push(job);
    }

    /// The waiting jobs, those with a reservation in queue order, then those that have just arrived.
    pub(crate) fn jobs(&self) -> impl Iterator<Item = JobId> {
        self.queue.iter().map(|reserved| reserved.job).chain(self.arrived.iter().copied())
    }

    /// Procs have been put to sleep or woken: the reservations hold no more.
    pub(crate) fn procs_changed(&mut self) {
        self.procs_changed = true;
        self.profile = None;
    }

    pub(crate) fn ended(&mut self, now_s: f64, ended: &Ended) {
        if now_s < ended.estimated_end_s
            && let Some(profile) = &mut self.profile
        {
            profile.add(now_s, ended.estimated_end_s, i64::from(ended.procs));
        }
        self.surprise |= now_s != ended.estimated_end_s;
    }

    pub(crate) fn pass<G: Gears, R: Recorder>(
        &mut self,
        order: Order,
        gears: &G,
        cluster: &mut Cluster<'_, R>,
    ) -> Result<(), Stop> {
        let now_s = cluster.now_s();
        let profile = self.profile.get_or_insert_with(|| profile(cluster));
        profile.trim(now_s);
        let missed = !self.queue.is_empty() && self.next_s < now_s;
        let surprise = std::mem::take(&mut self.surprise);
        if std::mem::take(&mut self.procs_changed) {
            self.place_anew(Anew::OnNewProfile, order, gears, cluster)?;
        } else if missed {
            self.place_anew(Anew::AllAtOnce, order, gears, cluster)?;
        } else if surprise {
            self.place_anew(Anew::OneByOne, order, gears, cluster)?;
        }
        for i in 0..self.arrived.len() {
            self.place(i, order, gears, cluster)?;
        }
        self.arrived.clear();
        if self.next_s <= now_s {
            self.start_due(order, cluster)?;
        }
        if !self.queue.is_empty() && self.next_s > now_s && self.next_s != self.timer_s {
            cluster.set_timer(self.next_s, 0)?;
            self.timer_s = self.next_s;
        }
        Ok(())
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
        let procs = cluster.procs(job);
        let others = self.queue.len() + self.arrived.len() - arrived - 1;
        let profile = self.profile.as_mut().expect("every pass makes it first");
        let candidate = Candidate::new(cluster, job);
        let now_s = cluster.now_s();
        let found =
            gears.reserve(candidate, others, |duration_s| profile.earliest(now_s, f64::INFINITY, procs, duration_s));
        let Some((gear, start_s, duration_s)) = found else {
            let what = format!("no hole is ever wide enough for {procs} procs");
            return Err(Stop::new(SimError::Policy { now_s, what }));
        };
        profile.add(start_s, start_s + duration_s, -i64::from(procs));
        let reserved = Reserved { key: order.key(cluster, job), start_s, duration_s, job, procs, gear };
        self.next_s = if self.queue.is_empty() { start_s } else { self.next_s.min(start_s) };
        self.queue.push(reserved);
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
        let profile = self.profile.as_mut().expect("every pass makes it first");
        self.next_s = f64::INFINITY;
        if how == Anew::AllAtOnce {
            for &Reserved { start_s, duration_s, procs, .. } in &self.queue {
                profile.add(start_s, start_s + duration_s, i64::from(procs));
            }
        }
        let one_by_one = how == Anew::OneByOne;
        for reserved in &mut self.queue {
            cluster.step()?;
            let Reserved { start_s, duration_s, procs, .. } = *reserved;
            if !one_by_one || start_s != now_s {
                let latest_s = if one_by_one { start_s } else { f64::INFINITY };
                if one_by_one {
                    profile.add(start_s, start_s + duration_s, i64::from(procs));
                }
                let candidate = Candidate::new(cluster, reserved.job);
                let found =
                    gears.reserve(candidate, others, |duration_s| profile.earliest(now_s, latest_s, procs, duration_s));
                // An instant keeps nobody off: another job may have been placed over it.
                let instant = (duration_s == 0.0).then_some((reserved.gear, start_s, duration_s));
                let Some((gear, start_s, duration_s)) = found.or(instant) else {
                    let what = format!("the reservation of job {} (by arrival) has no place any more", reserved.job);
                    return Err(Stop::new(SimError::Policy { now_s, what }));
                };
                profile.add(start_s, start_s + duration_s, -i64::from(procs));
                (reserved.gear, reserved.start_s, reserved.duration_s) = (gear, start_s, duration_s);
            }
            self.next_s = self.next_s.min(reserved.start_s);
        }
        Ok(())
    }

    /// Starts the jobs whose reservation has come and whose procs are free.
    fn start_due<R: Recorder>(&mut self, order: Order, cluster: &mut Cluster<'_, R>) -> Result<(), Stop> {
        let now_s = cluster.now_s();
        self.sort(order, cluster);
        self.next_s = f64::INFINITY;
        let mut kept = 0;
        for i in 0..self.queue.len() {
            let reserved = self.queue[i];
            if reserved.start_s <= now_s && reserved.procs <= cluster.free(0) {
                cluster.step()?;
                cluster.start(reserved.job, reserved.gear, kept > 0)?;
            } else {
                self.next_s = self.next_s.min(reserved.start_s);
                self.queue[kept] = reserved;
                kept += 1;
            }
        }
        self.queue.truncate(kept);
        Ok(())
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
