//! Users' estimates for generated jobs, which the models do not have.
use crate::rng::{Philox, Purpose};
use crate::spec::{Choice, Default, Param, Type};

/// Greatest factor between estimate and run time.
pub const ESTIMATE_FACTOR_MAX: Param = Param {
    name: "estimate_factor_max",
    ty: Type::Real { min: 1.0, max: 1e6, min_allowed: true, unlimited: false },
    unit: "",
    default: Default::Unset,
    identity: true,
    doc: "Each generated job's estimate is its run time times a factor uniform on (1, this), drawn per job (the f-model \
          of Mu'alem & Feitelson 2001); if not given, jobs have no estimate and `missing_estimate_s` applies.",
};

/// Draws estimates from a stream of its own, so that they change nothing else of a workload.
pub(super) struct Estimates {
    factor_max: Option<f64>,
    stream: Philox,
}

impl Estimates {
    /// The estimates that a generator's parameters ask for.
    pub(super) fn of(choice: &Choice, seed: u64) -> Estimates {
        Estimates {
            factor_max: choice.opt_real("estimate_factor_max"),
            stream: Philox::stream(seed, Purpose::Estimate),
        }
    }

    /// The estimate (s) of the next job.
    pub(super) fn draw(&mut self, run_s: f64) -> Option<f64> {
        // The factor is uniform and above 1, so an estimate is never less than the run time.
        self.factor_max.map(|max| run_s * self.stream.uniform_in(1.0, max))
    }
}
