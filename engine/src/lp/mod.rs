//! Linear programs over a heterogeneous system, and systems with structure (Al-Daoud, Al-Azzoni & Down 2011).
//!
//! A [`System`] has I classes of jobs and J machines: rates mu_ij, powers M_ij and B_j, arrival rates alpha_i.
//! [`capacity`] solves the paper's LP (1): the greatest factor lambda* by which all arrivals may grow, and shares theta*
//! of each machine's time that reach it. [`allocation`] solves LP (2): the shares delta* of least power that still serve
//! c times the arrivals. [`structured`] has systems whose rates are a class's factor times a machine's.
//!
//! A result of the solver is accepted only with a proof that it is the optimum of the given numbers, within a relative
//! error of 1e-6 (`program.rs`).
//!
//! Equal machines are one variable of the programs and share its value evenly, so that the result does not depend on
//! the order in which the simplex method visits them. The same system gives the same bits everywhere: the solver is plain
//! arithmetic without clock, thread or random number.
mod program;
pub mod structured;
mod system;

pub use system::System;

use program::Program;

/// Why a linear program has no solution. All final: the system has to change.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum LpError {
    /// The numbers do not describe a system.
    #[error("{0}")]
    System(String),
    /// The solver failed, or its result is not the optimum: the numbers are too far apart.
    #[error("the linear program {program} could not be solved: {why}")]
    Solver {
        /// `LP(1)` or `LP(2)`.
        program: &'static str,
        /// The reason.
        why: String,
    },
}

/// Shares up to this count as 0: the solver's tolerance leaves such remainders.
pub const SHARE_MIN: f64 = 1e-9;

/// Optimum of LP (1).
#[derive(Debug, Clone, PartialEq)]
pub struct Capacity {
    /// lambda*: the system can serve arrivals up to this times alpha. Above 1 if it can be stable.
    pub lambda: f64,
    /// theta*_ij, class by class (row-major I x J), 0 to 1: shares of machine j's time for class i. Other optima may exist.
    pub theta: Vec<f64>,
}

/// Optimum of LP (2).
#[derive(Debug, Clone, PartialEq)]
pub struct Allocation {
    /// The capacity c that is served, after it was clamped to lambda*.
    pub capacity: f64,
    /// delta*_ij, class by class (row-major I x J), 0 to 1; values up to [`SHARE_MIN`] are 0.
    pub delta: Vec<f64>,
    /// The objective: mean power of all machines under these shares (W).
    pub power_w: f64,
}

impl Allocation {
    /// Load of each machine: sum over classes of delta*_ij.
    pub fn loads(&self, machines: usize) -> Vec<f64> {
        (0..machines).map(|j| self.delta.iter().skip(j).step_by(machines).sum()).collect()
    }
}

/// Solves LP (1): max lambda, sum_j theta_ij mu_ij >= lambda alpha_i, sum_i theta_ij <= 1, theta >= 0.
///
/// # Errors
/// [`LpError::Solver`] if the numbers are too far apart.
pub fn capacity(system: &System) -> Result<Capacity, LpError> {
    // The unit of lambda*: the least factor at which all machines together serve one class alone. In it, lambda* is from
    // 1/I to 1.
    let rate_of_all = |class| (0..system.machines()).map(|machine| system.rate_per_s(class, machine)).sum::<f64>();
    let factors = (0..system.classes()).map(|class| rate_of_all(class) / system.arrivals_per_s()[class]);
    let unit = factors.fold(f64::INFINITY, f64::min);
    let program = Program::new("LP(1)", system, unit)?;
    let (reached, theta) = program.greatest()?;
    program.check(&theta, reached)?;
    Ok(Capacity { lambda: reached * unit, theta })
}

/// Solves LP (2): min sum_j (sum_i delta_ij M_ij + (1 - sum_i delta_ij) B_j), sum_j delta_ij mu_ij >= c alpha_i,
/// sum_i delta_ij <= 1, delta >= 0, for c = `target`, at most `capacity.lambda`.
///
/// # Errors
/// [`LpError::Solver`] if the numbers are too far apart, for example if a class needs less than [`SHARE_MIN`] of every
/// machine.
pub fn allocation(system: &System, capacity: &Capacity, target: f64) -> Result<Allocation, LpError> {
    let target = target.min(capacity.lambda);
    let program = Program::new("LP(2)", system, target)?;
    let shares = program.cheapest(|class, machine| system.busy_w(class, machine) - system.idle_w()[machine])?;
    let delta: Vec<f64> = shares.into_iter().map(|share| if share > SHARE_MIN { share } else { 0.0 }).collect();
    program.check(&delta, 1.0)?;
    let power_w = system.power_w(&delta);
    Ok(Allocation { capacity: target, delta, power_w })
}
