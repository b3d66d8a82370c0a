//! Linear programs over a heterogeneous system, and systems with structure (Al-Daoud, Al-Azzoni & Down 2011).
//!
//! A [`System`] has I classes of tasks and J machines: rates mu_ij, powers M_ij and B_j, arrival rates alpha_i.
//! [`capacity`] solves the paper's LP (1): the greatest factor lambda* by which all arrivals may grow, and shares theta*
//! of each machine's time that reach it. [`allocation`] solves LP (2): the shares delta* of least power that still serve
//! c times the arrivals. [`structured`] has systems whose rates are a task's factor times a machine's.
//!
//! Equal machines are one variable of the programs and share its value evenly, so that the result does not depend on
//! which of them the simplex method meets first. The same system gives the same bits everywhere: the solver is plain
//! arithmetic without clock, thread or random number.
pub mod structured;
mod system;

pub use system::System;

use microlp::{ComparisonOp, OptimizationDirection, Problem, Solution, Variable};

/// Why a linear program has no answer. All final: the system has to change.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum LpError {
    /// The numbers do not make a system.
    #[error("{0}")]
    System(String),
    /// The solver gave up: numbers too far apart.
    #[error("the linear program {program} could not be solved: {why}")]
    Solver {
        /// `LP(1)` or `LP(2)`.
        program: &'static str,
        /// What the solver said.
        why: String,
    },
}

/// Shares up to this count as none: the solver's tolerance leaves such crumbs.
pub const SHARE_MIN: f64 = 1e-9;

/// Optimum of LP (1).
#[derive(Debug, Clone, PartialEq)]
pub struct Capacity {
    /// lambda*: the system can serve arrivals up to this times alpha. Above 1 if it can be stable.
    pub lambda: f64,
    /// theta*_ij, class by class (row-major I x J), 0 to 1: shares of machine j's time for class i. In general not the
    /// only optimum.
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
/// [`LpError::Solver`] if the numbers are too far apart for it.
pub fn capacity(system: &System) -> Result<Capacity, LpError> {
    const PROGRAM: &str = "LP(1)";
    // In units of the greatest arrival rate, so that the coefficients of lambda are of size 1.
    let unit = system.arrivals_per_s().iter().fold(0.0, |a: f64, b| a.max(*b));
    let mut problem = Problem::new(OptimizationDirection::Maximize);
    let lambda = problem.add_var(1.0, (0.0, f64::INFINITY));
    let shares = Shares::new(system, &mut problem, |_, _| 0.0);
    for class in 0..system.classes() {
        let mut terms = shares.served(system, class, unit);
        terms.push((lambda, -system.arrivals_per_s()[class] / unit));
        problem.add_constraint(&terms, ComparisonOp::Ge, 0.0);
    }
    shares.limit(&mut problem);
    let solution = solve(PROGRAM, &problem)?;
    Ok(Capacity { lambda: solution.var_value(lambda), theta: shares.values(system, &solution) })
}

/// Solves LP (2): min sum_j (sum_i delta_ij M_ij + (1 - sum_i delta_ij) B_j), sum_j delta_ij mu_ij >= c alpha_i,
/// sum_i delta_ij <= 1, delta >= 0, for c = `target`, at most `capacity.lambda`.
///
/// # Errors
/// [`LpError::Solver`] if the numbers are too far apart for it.
pub fn allocation(system: &System, capacity: &Capacity, target: f64) -> Result<Allocation, LpError> {
    const PROGRAM: &str = "LP(2)";
    let unit = system.arrivals_per_s().iter().fold(0.0, |a: f64, b| a.max(*b));
    let target = target.min(capacity.lambda);
    let mut problem = Problem::new(OptimizationDirection::Minimize);
    let shares =
        Shares::new(system, &mut problem, |class, machine| system.busy_w(class, machine) - system.idle_w()[machine]);
    for class in 0..system.classes() {
        let terms = shares.served(system, class, unit);
        problem.add_constraint(&terms, ComparisonOp::Ge, target * system.arrivals_per_s()[class] / unit);
    }
    shares.limit(&mut problem);
    let delta = shares.values(system, &solve(PROGRAM, &problem)?);
    let power_w = system.power_w(&delta);
    Ok(Allocation { capacity: target, delta, power_w })
}

fn solve(program: &'static str, problem: &Problem) -> Result<Solution, LpError> {
    let failed = |why: String| LpError::Solver { program, why };
    let outcome = problem.solve().map_err(|error| failed(error.to_string()))?;
    outcome.into_solution().map_err(|stop| failed(format!("{:?}", stop.termination_reason())))
}

/// The variables of a program: machine-times that a group of equal machines gives to a class.
struct Shares {
    /// Groups of equal machines, in order of their first.
    groups: Vec<Vec<usize>>,
    /// Group by class, row-major; none where the machines cannot execute the class.
    variables: Vec<Option<Variable>>,
}

impl Shares {
    /// `cost`: objective coefficient of a class on a machine.
    fn new(system: &System, problem: &mut Problem, cost: impl Fn(usize, usize) -> f64) -> Shares {
        let groups = system.groups();
        let mut variables = Vec::with_capacity(system.classes() * groups.len());
        for class in 0..system.classes() {
            for group in &groups {
                let able = system.rate_per_s(class, group[0]) > 0.0;
                let most = group.len() as f64;
                variables.push(able.then(|| problem.add_var(cost(class, group[0]), (0.0, most))));
            }
        }
        Shares { groups, variables }
    }

    /// What is served of a class, in units of `unit` tasks a second.
    fn served(&self, system: &System, class: usize, unit: f64) -> Vec<(Variable, f64)> {
        let row = &self.variables[class * self.groups.len()..][..self.groups.len()];
        let terms = row.iter().zip(&self.groups);
        terms.filter_map(|(v, group)| v.map(|v| (v, system.rate_per_s(class, group[0]) / unit))).collect()
    }

    /// No machine gives more than all its time.
    fn limit(&self, problem: &mut Problem) {
        for (g, group) in self.groups.iter().enumerate() {
            let column = self.variables.iter().skip(g).step_by(self.groups.len());
            let terms: Vec<_> = column.filter_map(|v| v.map(|v| (v, 1.0))).collect();
            problem.add_constraint(&terms, ComparisonOp::Le, group.len() as f64);
        }
    }

    /// The shares machine by machine.
    fn values(&self, system: &System, solution: &Solution) -> Vec<f64> {
        let machines = system.machines();
        let mut shares = vec![0.0; system.classes() * machines];
        for class in 0..system.classes() {
            for (g, group) in self.groups.iter().enumerate() {
                let Some(variable) = self.variables[class * self.groups.len() + g] else { continue };
                let share = solution.var_value(variable) / group.len() as f64;
                for machine in group.iter().filter(|_| share > SHARE_MIN) {
                    shares[class * machines + machine] = share.min(1.0);
                }
            }
        }
        shares
    }
}
