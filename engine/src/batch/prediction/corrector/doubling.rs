//! Twice the present prediction.
use super::{Corrector, Expired};
use crate::spec::{Component, Role, SimSpec};

/// Description of the corrector.
pub const COMPONENT: Component = Component {
    role: Role::Corrector,
    name: "doubling",
    version: 1,
    source: "Gaussier et al. 2015 (recursive_doubling)",
    doc: "Twice the present prediction, which may exceed the user's estimate.",
    reads: "The present prediction.",
    guarantees: "A prediction of p s is corrected at most log2(request / p) times, rounded up. A correction may \
                 exceed the request.",
    ..Component::BATCH
};

/// The corrector.
#[derive(Debug, Clone)]
pub(crate) struct Doubling;

impl Corrector for Doubling {
    fn of(_: &SimSpec) -> Option<Doubling> {
        Some(Doubling)
    }

    fn correct(&self, expired: &Expired) -> f64 {
        2.0 * expired.present_s
    }
}
