//! Users' estimates times a factor.
use super::{Facts, Predictor};
use crate::spec::{Component, Default, Param, Role, SimSpec, Type};

/// Description of the predictor.
pub const COMPONENT: Component = Component {
    role: Role::Predictor,
    name: "scaled",
    version: 1,
    source: "Gaussier et al. 2015 (double_reqtime); Zotkin & Keleher 1999",
    doc: "The user's estimate times a factor. A factor above 1 predicts more than the job's limit.",
    reads: "The request of the user.",
    guarantees: "With a factor of at least 1, no prediction is shorter than the request. With a factor below 1, \
                 jobs may outlive their predictions.",
    params: &[Param {
        name: "prediction_factor",
        ty: Type::Real { min: 0.0, max: 1e6, min_allowed: false, unlimited: false },
        unit: "",
        default: Default::Real(2.0),
        doc: "Factor between estimate and prediction.",
    }],
    ..Component::BATCH
};

/// The factor.
#[derive(Debug, Clone)]
pub(crate) struct Scaled {
    factor: f64,
}

impl Predictor for Scaled {
    fn of(spec: &SimSpec, _: usize) -> Option<Scaled> {
        Some(Scaled { factor: spec.choice(Role::Predictor).real("prediction_factor") })
    }

    fn predict(&mut self, job: &Facts, _: f64) -> f64 {
        job.estimate_s * self.factor
    }
}
