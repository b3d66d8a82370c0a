//! Conservative backfilling: every waiting job has a reservation.
//!
//! A job gets its reservation when it arrives, at the earliest hole that running jobs and the reservations before it
//! leave. Reservations are kept between passes. When a job ends at another instant than its estimate, all are released
//! and placed anew, one after the other in queue order, while those not yet reached hold their places: so none becomes
//! later than it was (Mu'alem & Feitelson 2001).
//!
//! A job that outlives its estimate is expected to end now, at every instant anew. A reservation whose time has passed
//! while its procs were still held could not be kept: then all are released at once and placed anew in queue order. This
//! is the only way in which a reservation becomes later.
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
    /// Earliest reservation.
    next_s: f64,
    /// The timer that was set last (s).
    timer_s: f64,
}

impl Conservative {
    #[inline]
    pub(crate) fn submitted(&mut self, job: JobId) {
        self.arrived.push(job);
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
        let profile = self.profile.get_or_insert_with(|| Profile::new(now_s, cluster.free(0)));
        profile.trim(now_s);
        let missed = !self.queue.is_empty() && self.next_s < now_s;
        if std::mem::take(&mut self.surprise) || missed {
            self.place_anew(missed, order, gears, cluster)?;
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
        let candidate = Candidate { submit_s: cluster.submit_s(job), estimate_s: cluster.estimate_s(job) };
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

    /// Releases all reservations and places them anew, in queue order: one by one and none later than it was, unless one
    /// was `missed`.
    fn place_anew<G: Gears, R: Recorder>(
        &mut self,
        missed: bool,
        order: Order,
        gears: &G,
        cluster: &mut Cluster<'_, R>,
    ) -> Result<(), Stop> {
        self.sort(order, cluster);
        let now_s = cluster.now_s();
        let others = self.queue.len() + self.arrived.len() - usize::from(!self.queue.is_empty());
        let profile = self.profile.as_mut().expect("every pass makes it first");
        self.next_s = f64::INFINITY;
        if missed {
            for &Reserved { start_s, duration_s, procs, .. } in &self.queue {
                profile.add(start_s, start_s + duration_s, i64::from(procs));
            }
        }
        for reserved in &mut self.queue {
            cluster.step()?;
            let Reserved { start_s, duration_s, procs, .. } = *reserved;
            if missed || start_s != now_s {
                let latest_s = if missed { f64::INFINITY } else { start_s };
                if !missed {
                    profile.add(start_s, start_s + duration_s, i64::from(procs));
                }
                let candidate = Candidate {
                    submit_s: cluster.submit_s(reserved.job),
                    estimate_s: cluster.estimate_s(reserved.job),
                };
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
