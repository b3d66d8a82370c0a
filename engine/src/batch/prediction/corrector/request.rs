//! The user's estimate.
use super::{Corrector, Expired};
use crate::spec::{Component, Role, SimSpec};

/// Description of the corrector.
pub const COMPONENT: Component = Component {
    role: Role::Corrector,
    name: "request",
    version: 1,
    source: "Gaussier et al. 2015 (reqtime)",
    doc: "The user's estimate.",
    reads: "The request of the user.",
    guarantees: "A job is corrected once at most.",
    ..Component::BATCH
};

/// The corrector.
#[derive(Debug, Clone)]
pub(crate) struct Request;

impl Corrector for Request {
    fn of(_: &SimSpec) -> Option<Request> {
        Some(Request)
    }

    fn correct(&self, expired: &Expired) -> f64 {
        expired.estimate_s
    }
}
