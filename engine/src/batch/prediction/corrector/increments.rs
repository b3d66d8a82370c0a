//! The first prediction plus an increment of a list.
use super::{Corrector, Expired};
use crate::spec::{Component, Default, Param, Role, SimSpec, Type};

/// Increments of Tsafrir et al. 2007 and Gaussier et al. 2015 (s).
const PUBLISHED_S: &[f64] =
    &[60.0, 300.0, 900.0, 1800.0, 3600.0, 7200.0, 18_000.0, 36_000.0, 72_000.0, 180_000.0, 360_000.0];

/// Description of the corrector.
pub const COMPONENT: Component = Component {
    role: Role::Corrector,
    name: "increments",
    version: 1,
    source: "Tsafrir, Etsion & Feitelson 2007",
    doc: "The first prediction plus an increment for each correction of the job, at most the user's estimate; the estimate \
          after the last increment. Increments replace each other, they do not add up.",
    reads: "The first prediction, the number of the correction, and the request.",
    guarantees: "A correction is at most the request. A job is corrected at most once for each increment of the \
                 list, and once more.",
    params: &[Param {
        name: "correction_increments_s",
        ty: Type::Reals { min: 0.0, max: 1e12 },
        unit: "s",
        default: Default::Reals(PUBLISHED_S),
        doc: "Increment of the first, second, ... correction of a job.",
    }],
    ..Component::BATCH
};

/// The increments (s).
#[derive(Debug, Clone)]
pub(crate) struct Increments(Vec<f64>);

impl Corrector for Increments {
    fn of(spec: &SimSpec) -> Option<Increments> {
        Some(Increments(spec.choice(Role::Corrector).reals("correction_increments_s").to_vec()))
    }

    fn correct(&self, expired: &Expired) -> f64 {
        let increment_s = self.0.get(expired.number as usize - 1);
        increment_s.map_or(expired.estimate_s, |increment_s| (expired.first_s + increment_s).min(expired.estimate_s))
    }
}
