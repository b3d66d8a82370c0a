//! Correctors: the next prediction of a running job whose prediction has passed.
//!
//! A corrector is a file with its description and a [`Corrector`]; the list below registers it.
pub mod doubling;
pub mod increments;
pub mod request;

use crate::batch::rules::rules;
use crate::spec::{Role, SimSpec};

/// A prediction that has passed while its job runs. All are times at the top gear.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expired {
    /// The prediction at the submission (s).
    pub(crate) first_s: f64,
    /// The prediction that has passed (s): what the job has executed.
    pub(crate) present_s: f64,
    /// Number of this correction of the job, from 1.
    pub(crate) number: u32,
    /// The user's estimate (s), longer than the prediction.
    pub(crate) estimate_s: f64,
}

/// Replaces predictions that have passed.
pub(crate) trait Corrector: Clone {
    /// The corrector of a spec.
    fn of(spec: &SimSpec) -> Option<Self>;

    /// The next prediction (s). A value that is not above the present prediction stands for the user's estimate.
    fn correct(&self, expired: &Expired) -> f64;
}

rules! { $
    /// The chosen corrector.
    pub(super) enum AnyCorrector {
        request: Request,
        increments: Increments,
        doubling: Doubling,
    }
}

impl Corrector for AnyCorrector {
    fn of(spec: &SimSpec) -> Option<AnyCorrector> {
        chosen!(spec.choice(Role::Corrector).component(), (spec))
    }

    fn correct(&self, expired: &Expired) -> f64 {
        each!(self, corrector => corrector.correct(expired))
    }
}
