//! Predictors: the run time that the scheduler expects of a job at its submission.
//!
//! A predictor is a file with its description and a [`Predictor`]; the list below registers it.
pub mod exact;
pub mod recent_average;
pub mod scaled;
pub mod sgd_linear;
pub mod user;
mod users;

use crate::batch::rules::rules;
use crate::spec::{Role, SimSpec};

/// The facts of a job. A predictor may read the run time of ended jobs alone, unless it assumes an oracle.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts {
    /// Number of the job, from 0 in order of arrival.
    pub(crate) number: u32,
    /// Number of its user, from 0.
    pub(crate) user: u32,
    /// Submit instant (s).
    pub(crate) submit_s: f64,
    /// Run time at the top gear (s).
    pub(crate) run_s: f64,
    /// The user's estimate (s).
    pub(crate) estimate_s: f64,
    /// Procs that the job asks for.
    pub(crate) procs: u32,
}

/// Predicts run times, and learns from jobs that have ended.
pub(crate) trait Predictor: Clone {
    /// The predictor of a spec for a number of jobs. `None`: the scheduler believes the users' estimates.
    fn of(spec: &SimSpec, jobs: usize) -> Option<Self>;

    /// The predicted run time of an arriving job (s). A value that is negative or not finite stands for the user's estimate.
    fn predict(&mut self, job: &Facts, now_s: f64) -> f64;

    /// A job has started.
    fn started(&mut self, _: &Facts, _now_s: f64) {}

    /// A job has ended. If submissions are first, arrivals of the same instant have been predicted before.
    fn ended(&mut self, _: &Facts, _now_s: f64) {}

    /// Bytes of memory that the predictor holds besides itself.
    fn bytes(&self) -> usize {
        0
    }
}

rules! { $
    /// The chosen predictor.
    pub(super) enum AnyPredictor {
        user: User,
        exact: Exact,
        scaled: Scaled,
        recent_average: RecentAverage,
        sgd_linear: SgdLinear,
    }
}

impl Predictor for AnyPredictor {
    fn of(spec: &SimSpec, jobs: usize) -> Option<AnyPredictor> {
        chosen!(spec.choice(Role::Predictor).component(), (spec, jobs))
    }

    fn predict(&mut self, job: &Facts, now_s: f64) -> f64 {
        each!(self, predictor => predictor.predict(job, now_s))
    }

    fn started(&mut self, job: &Facts, now_s: f64) {
        each!(self, predictor => predictor.started(job, now_s));
    }

    fn ended(&mut self, job: &Facts, now_s: f64) {
        each!(self, predictor => predictor.ended(job, now_s));
    }

    fn bytes(&self) -> usize {
        each!(self, predictor => predictor.bytes())
    }
}
