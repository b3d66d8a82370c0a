//! An oracle.
use super::{Facts, Predictor};
use crate::spec::{Component, Role, SimSpec};

/// Description of the predictor.
pub const COMPONENT: Component = Component {
    role: Role::Predictor,
    name: "exact",
    version: 1,
    source: "Gaussier et al. 2015 (clairvoyant)",
    doc: "The run time itself: the bound of what predictions can bring.",
    reads: "The run time of the job (an oracle).",
    guarantees: "No job runs longer than predicted, so that bounds of backfilling rules hold. No real scheduler \
                 has this knowledge.",
    ..Component::BATCH
};

/// The oracle.
#[derive(Debug, Clone)]
pub(crate) struct Exact;

impl Predictor for Exact {
    fn of(_: &SimSpec, _: usize) -> Option<Exact> {
        Some(Exact)
    }

    fn predict(&mut self, job: &Facts, _: f64) -> f64 {
        job.run_s
    }
}
