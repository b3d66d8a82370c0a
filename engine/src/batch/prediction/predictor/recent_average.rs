//! The mean of a user's last run times.
use super::users::ByUser;
use super::{Facts, Predictor};
use crate::spec::{Component, Default, Param, Role, SimSpec, Type};

/// Description of the predictor.
pub const COMPONENT: Component = Component {
    role: Role::Predictor,
    name: "recent-average",
    version: 1,
    source: "Tsafrir, Etsion & Feitelson 2007",
    doc: "Mean run time of the user's jobs that ended last, in whole seconds rounded down and at most the user's estimate; the \
          estimate until as many jobs of the user have ended.",
    reads: "The request, and the run times of the last `recent_jobs_count` completed jobs of the user.",
    guarantees: "A prediction is at most the request, and rests on completed jobs alone. Jobs may outlive their \
                 predictions, so that bounds of backfilling rules do not hold.",
    params: &[Param {
        name: "recent_jobs_count",
        ty: Type::Int { min: 1, max: 1000 },
        unit: "jobs",
        default: Default::Int(2),
        doc: "Number of ended jobs of the user in the mean (Tsafrir et al. 2007: 2).",
    }],
    ..Component::BATCH
};

/// The last run times of each user.
#[derive(Debug, Clone)]
pub(crate) struct RecentAverage {
    count: usize,
    users: ByUser<User>,
}

/// The last run times of one user (s).
#[derive(Debug, Clone, Default)]
struct User {
    /// In the order of their ends; once there are enough, the next one replaces the one at `oldest`.
    runs_s: Vec<f64>,
    oldest: usize,
    /// Their mean in whole seconds, once there are enough.
    mean_s: Option<f64>,
}

impl Predictor for RecentAverage {
    fn of(spec: &SimSpec, _: usize) -> Option<RecentAverage> {
        let count = spec.choice(Role::Predictor).int("recent_jobs_count") as usize;
        Some(RecentAverage { count, users: ByUser::default() })
    }

    fn predict(&mut self, job: &Facts, _: f64) -> f64 {
        self.users.of(job.user).mean_s.map_or(job.estimate_s, |mean_s| mean_s.min(job.estimate_s))
    }

    fn ended(&mut self, job: &Facts, _: f64) {
        let User { runs_s, oldest, mean_s } = self.users.of(job.user);
        if runs_s.len() < self.count {
            runs_s.push(job.run_s);
        } else {
            runs_s[*oldest] = job.run_s;
            *oldest = if *oldest + 1 < self.count { *oldest + 1 } else { 0 };
        }
        if runs_s.len() == self.count {
            let (later, earlier) = runs_s.split_at(*oldest);
            let from_last = later.iter().rev().chain(earlier.iter().rev());
            *mean_s = Some(whole(from_last.sum::<f64>() / self.count as f64));
        }
    }

    fn bytes(&self) -> usize {
        let of_user = |user: &User| size_of::<User>() + user.runs_s.capacity() * size_of::<f64>();
        self.users.all().iter().map(of_user).sum()
    }
}

/// The whole part of a time that is not negative (s).
#[inline]
fn whole(time_s: f64) -> f64 {
    // A conversion costs less than a call of the library for mathematics; beyond 2^53, all numbers are whole.
    if time_s < 9_007_199_254_740_992.0 { time_s as i64 as f64 } else { time_s }
}
