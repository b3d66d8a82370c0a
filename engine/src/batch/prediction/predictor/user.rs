//! Users' estimates.
use super::{Facts, Predictor};
use crate::spec::{Component, Role, SimSpec};

/// Description of the predictor.
pub const COMPONENT: Component = Component {
    role: Role::Predictor,
    name: "user",
    version: 1,
    doc: "The user's estimate, which is never corrected.",
    reads: "The request of the user.",
    guarantees: "The expected run time is the request. Bounds of backfilling rules hold if no job runs longer \
                 than its request.",
    ..Component::BATCH
};

/// No predictions: the scheduler reads the estimates of the jobs.
#[derive(Debug, Clone)]
pub(crate) enum User {}

impl Predictor for User {
    fn of(_: &SimSpec, _: usize) -> Option<User> {
        None
    }

    fn predict(&mut self, _: &Facts, _: f64) -> f64 {
        match *self {}
    }
}
