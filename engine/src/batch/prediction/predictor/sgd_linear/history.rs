//! The features of a job: its own, and those of its user's past.
use std::f64::consts::TAU;

use super::super::Facts;
use super::super::users::ByUser;
use crate::limits::list_bytes;

/// Number of features before products.
pub(super) const BASE: usize = 19;

const DAY_S: f64 = 86_400.0;
const WEEK_S: f64 = 7.0 * DAY_S;

/// The past of every user.
#[derive(Debug, Clone, Default)]
pub(super) struct History {
    users: ByUser<User>,
}

/// The past of one user.
#[derive(Debug, Clone, Default)]
struct User {
    /// Submit instants of the last three jobs that have ended, the last one first (s).
    last_submits_s: [f64; 3],
    ended_count: u64,
    run_s_sum: f64,
    procs_sum: f64,
    last_end_s: f64,
    running: Vec<Running>,
}

/// A running job.
#[derive(Debug, Clone, Copy)]
struct Running {
    number: u32,
    start_s: f64,
    procs: f64,
}

impl History {
    /// The features of an arriving job. Number 6 has the factor 0.33 of the study's program. Numbers 1 to 3 are the ages since
    /// the submissions of the user's last ended jobs: the program reads run times there only from jobs that have not ended.
    pub(super) fn features(&mut self, job: &Facts, now_s: f64) -> [f64; BASE] {
        let user = self.users.of(job.user);
        let (estimate_s, procs) = (job.estimate_s, f64::from(job.procs));
        let known = user.ended_count.min(3) as usize;
        let mut last = [estimate_s; 3];
        for (last, submit_s) in last.iter_mut().zip(user.last_submits_s).take(known) {
            *last = estimate_s.min(now_s - submit_s);
        }
        let mean_of_two = match known {
            0 => estimate_s,
            1 => last[0],
            _ => 0.5 * (last[0] + last[1]),
        };
        let mean_of_three = if known == 3 { 0.33 * (last[0] + last[1] + last[2]) } else { mean_of_two };
        let ended_count = user.ended_count as f64;
        let (mean_run_s, procs_share) = match user.ended_count {
            0 => (0.0, 0.0),
            _ => (user.run_s_sum / ended_count, procs / (user.procs_sum / ended_count)),
        };
        let since_end_s = if user.last_end_s == 0.0 { 0.0 } else { now_s - user.last_end_s };
        // Jobs that have started at this instant do not count.
        let running = user.running.iter().filter(|running| running.start_s < now_s);
        let (mut held, mut ages_s, mut count, mut oldest_s) = (0.0, 0.0, 0.0, 0.0_f64);
        for running in running {
            let age_s = now_s - running.start_s;
            held += running.procs;
            ages_s += age_s;
            count += 1.0;
            oldest_s = oldest_s.max(age_s);
        }
        let angle = |period_s: f64| TAU * job.submit_s.rem_euclid(period_s) / period_s;
        let (day, week) = (angle(DAY_S), angle(WEEK_S));
        [
            1.0,
            last[0],
            last[1],
            last[2],
            estimate_s,
            mean_of_two,
            mean_of_three,
            mean_run_s,
            since_end_s,
            procs_share,
            held,
            ages_s,
            count,
            oldest_s,
            pxfm::f_cos(day),
            pxfm::f_sin(day),
            pxfm::f_cos(week),
            pxfm::f_sin(week),
            procs,
        ]
    }

    pub(super) fn started(&mut self, job: &Facts, now_s: f64) {
        let running = Running { number: job.number, start_s: now_s, procs: f64::from(job.procs) };
        self.users.of(job.user).running.push(running);
    }

    pub(super) fn ended(&mut self, job: &Facts, now_s: f64) {
        let user = self.users.of(job.user);
        if let Some(at) = user.running.iter().position(|running| running.number == job.number) {
            user.running.swap_remove(at);
        }
        user.last_submits_s = [job.submit_s, user.last_submits_s[0], user.last_submits_s[1]];
        user.ended_count += 1;
        user.run_s_sum += job.run_s;
        user.procs_sum += f64::from(job.procs);
        user.last_end_s = now_s;
    }

    pub(super) fn bytes(&self) -> usize {
        self.users.all().iter().map(|user| size_of::<User>() + list_bytes(&user.running)).sum()
    }
}
