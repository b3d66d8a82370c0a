//! Users' estimates for generated jobs: the workload models have none.
use crate::rng::{Philox, Purpose};
use crate::spec::{Choice, Default, Param, Type};

/// Greatest factor between estimate and run time.
pub const ESTIMATE_FACTOR_MAX: Param = Param {
    name: "estimate_factor_max",
    ty: Type::Real { min: 1.0, max: 1e6, min_allowed: true, unlimited: false },
    unit: "",
    default: Default::Unset,
    doc: "The estimate of a generated job is its run time times a factor, uniform on (1, this) and drawn for each job (the \
          f-model of Mu'alem & Feitelson 2001); if not given, jobs have no estimate and `missing_estimate_s` applies.",
};

/// Draws estimates from a separate stream, so that they do not change the other values of a workload.
pub(super) struct Estimates {
    factor_max: Option<f64>,
    stream: Philox,
}

impl Estimates {
    /// Estimates by a generator's parameters.
    pub(super) fn of(choice: &Choice, seed: u64) -> Estimates {
        Estimates {
            factor_max: choice.opt_real("estimate_factor_max"),
            stream: Philox::stream(seed, Purpose::Estimate),
        }
    }

    /// The estimate (s) of the next job.
    pub(super) fn draw(&mut self, run_s: f64) -> Option<f64> {
        self.factor_max.map(|max| run_s * self.stream.uniform_in(1.0, max))
    }
}
