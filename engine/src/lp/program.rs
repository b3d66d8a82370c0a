//! Both programs, scaled to coefficients of at most 1, and the proof that a result is the optimum of the given numbers.
//!
//! Arrivals and rates of a class, powers and times may be in any unit without changing the optimum. But a solver has
//! absolute tolerances: it takes a constraint of small numbers as met whatever the values are. So each class's arrivals
//! are the unit of its constraint, and each variable has the unit in which its greatest coefficient is 1:
//!
//! ```text
//! sum_g served_ig x_ig >= y    for each class i with arrivals (y: the variable of LP (1); 1 in LP (2))
//! sum_i used_ig x_ig   <= 1    for each group g of equal machines
//! ```
//!
//! A result is accepted only if its objective equals the bound from a feasible point of the dual program: prices of the
//! classes, and worths of the groups' time. Every such point gives a bound (weak duality), so that the proof does not rely
//! on the solver.
use microlp::{ComparisonOp, OptimizationDirection, Problem, Solution, Variable};

use super::{LpError, System};

/// Greatest relative error of constraints and objectives of an accepted result.
const TOLERANCE: f64 = 1e-6;

/// Coefficients below this are 0 for the solver: they cost precision, and are negligible beside the coefficient of 1 that
/// every row and column has. The proof includes them.
const COEFFICIENT_MIN: f64 = 1e-12;

/// A program for the machine times that groups of equal machines give to classes.
pub(super) struct Program<'a> {
    name: &'static str,
    system: &'a System,
    /// Factor of the arrivals that gives the units of the classes.
    factor: f64,
    /// Groups of equal machines, in order of the first machine of each.
    groups: Vec<Vec<usize>>,
    cells: Vec<Cell>,
}

/// A class on a group that can execute it: one variable of the program. `served` or `used` is 1.
struct Cell {
    class: usize,
    group: usize,
    /// Unit of the variable (machine-seconds a second).
    unit: f64,
    /// Share of the class's unit that a unit serves; 0 for a class without arrivals.
    served: f64,
    /// Share of the group's time that a unit takes.
    used: f64,
}

impl<'a> Program<'a> {
    /// `name`: LP(1) or LP(2). The unit of a class is `factor` times its arrivals.
    ///
    /// # Errors
    /// [`LpError::Solver`] if the factor is no normal number: rates and arrivals are too far apart.
    pub(super) fn new(name: &'static str, system: &'a System, factor: f64) -> Result<Program<'a>, LpError> {
        if !factor.is_normal() {
            let why = format!("numbers too far apart: the machines serve {factor} times the arrivals");
            return Err(LpError::Solver { program: name, why });
        }
        let groups = system.groups();
        let mut cells = Vec::with_capacity(system.classes() * groups.len());
        for class in 0..system.classes() {
            for (g, group) in groups.iter().enumerate() {
                let (count, rate_per_s) = (group.len() as f64, system.rate_per_s(class, group[0]));
                if rate_per_s > 0.0 {
                    let needed = factor * system.arrivals_per_s()[class] / (count * rate_per_s);
                    let (served, used) =
                        if needed > 0.0 { ((1.0 / needed).min(1.0), needed.min(1.0)) } else { (0.0, 1.0) };
                    cells.push(Cell { class, group: g, unit: used * count, served, used });
                }
            }
        }
        Ok(Program { name, system, factor, groups, cells })
    }

    /// Solves LP (1): the greatest y, and machine shares that reach it.
    pub(super) fn greatest(&self) -> Result<(f64, Vec<f64>), LpError> {
        let mut problem = Problem::new(OptimizationDirection::Maximize);
        let times = self.variables(&mut problem, |_| 0.0);
        let reached = problem.add_var(1.0, POSITIVE);
        for class in self.needing() {
            let terms = self.serving(&times, class).chain([(reached, -1.0)]);
            problem.add_constraint(terms, ComparisonOp::Ge, 0.0);
        }
        self.limit(&mut problem, &times);
        let solution = self.solve(&problem)?;
        let found = solution.var_value(reached);
        let costs = vec![0.0; self.cells.len()];
        // With prices that add up to 1, y is at most the worth of the groups' time.
        let (prices, worths) = self.prices(&costs, true)?;
        self.check_bound(found, worths / prices, found)?;
        Ok((found, self.shares(&times, &solution)))
    }

    /// Solves LP (2): machine shares of least cost that serve every class's unit. `cost_w`: cost of the whole time of a
    /// machine, by class and machine.
    pub(super) fn cheapest(&self, cost_w: impl Fn(usize, usize) -> f64) -> Result<Vec<f64>, LpError> {
        let cost_w = |cell: &Cell| cost_w(cell.class, self.groups[cell.group][0]) * cell.unit;
        let unit_w = self.cells.iter().map(|cell| cost_w(cell).abs()).fold(0.0, f64::max);
        let cost = |cell: &Cell| if unit_w > 0.0 { cost_w(cell) / unit_w } else { 0.0 };
        let costs: Vec<f64> = self.cells.iter().map(cost).collect();
        let mut problem = Problem::new(OptimizationDirection::Minimize);
        let times = self.variables(&mut problem, |i| costs[i]);
        for class in self.needing() {
            problem.add_constraint(self.serving(&times, class), ComparisonOp::Ge, 1.0);
        }
        self.limit(&mut problem, &times);
        let solution = self.solve(&problem)?;
        let of_cells = || times.iter().zip(&costs).map(|(time, cost)| solution.var_value(*time) * cost);
        let (prices, worths) = self.prices(&costs, false)?;
        self.check_bound(of_cells().sum(), prices - worths, of_cells().map(f64::abs).sum())?;
        Ok(self.shares(&times, &solution))
    }

    /// The classes with arrivals.
    fn needing(&self) -> impl Iterator<Item = usize> {
        (0..self.system.classes()).filter(|class| self.system.arrivals_per_s()[*class] > 0.0)
    }

    fn variables(&self, problem: &mut Problem, cost: impl Fn(usize) -> f64) -> Vec<Variable> {
        (0..self.cells.len()).map(|i| problem.add_var(cost(i), POSITIVE)).collect()
    }

    /// The terms of the service that a class gets.
    fn serving(&self, times: &[Variable], class: usize) -> impl Iterator<Item = (Variable, f64)> {
        let cells = self.cells.iter().zip(times).filter(move |(cell, _)| cell.class == class);
        cells.map(|(cell, time)| (*time, kept(cell.served)))
    }

    /// Adds the constraint that no group gives more than all its time.
    fn limit(&self, problem: &mut Problem, times: &[Variable]) {
        for group in 0..self.groups.len() {
            let cells = self.cells.iter().zip(times).filter(|(cell, _)| cell.group == group);
            let terms: Vec<_> = cells.map(|(cell, time)| (*time, kept(cell.used))).collect();
            problem.add_constraint(terms, ComparisonOp::Le, 1.0);
        }
    }

    /// Solves the dual program: prices of the classes' units and worths of the groups' time for which every cell has
    /// served * price <= cost + used * worth. `greatest`: the dual of LP (1), with prices that add up to 1 and least
    /// worths; else that of LP (2), with the greatest difference of prices and worths. Returns both sums.
    fn prices(&self, costs: &[f64], greatest: bool) -> Result<(f64, f64), LpError> {
        let mut problem = Problem::new(OptimizationDirection::Maximize);
        let value = if greatest { 0.0 } else { 1.0 };
        let of_class: Vec<(usize, Variable)> =
            self.needing().map(|class| (class, problem.add_var(value, POSITIVE))).collect();
        let of_group: Vec<Variable> = self.groups.iter().map(|_| problem.add_var(-1.0, POSITIVE)).collect();
        if greatest {
            let terms = of_class.iter().map(|(_, price)| (*price, 1.0));
            problem.add_constraint(terms, ComparisonOp::Eq, 1.0);
        }
        for (cell, cost) in self.cells.iter().zip(costs) {
            let price =
                of_class.iter().find(|(class, _)| *class == cell.class).map(|(_, price)| (*price, kept(cell.served)));
            let terms = price.into_iter().chain([(of_group[cell.group], -kept(cell.used))]);
            problem.add_constraint(terms, ComparisonOp::Le, *cost);
        }
        let solution = self.solve(&problem)?;
        let mut prices = vec![0.0; self.system.classes()];
        for (class, price) in of_class {
            prices[class] = solution.var_value(price).max(0.0);
        }
        let worths = of_group.iter().map(|worth| solution.var_value(*worth).max(0.0)).collect();
        Ok(self.feasible(prices, worths, costs))
    }

    /// The sums of prices and worths that meet the dual's constraints exactly, from prices and worths that meet them within
    /// the solver's tolerance. Where `used` is 1 the worth is raised, where `served` is 1 the price is lowered, so that
    /// neither changes by more than the tolerance.
    fn feasible(&self, mut prices: Vec<f64>, mut worths: Vec<f64>, costs: &[f64]) -> (f64, f64) {
        for (cell, cost) in self.cells.iter().zip(costs) {
            let value = if cell.used < 1.0 { 0.0 } else { cell.served * prices[cell.class] };
            worths[cell.group] = worths[cell.group].max((value - cost) / cell.used);
        }
        for (cell, cost) in self.cells.iter().zip(costs).filter(|(cell, _)| cell.served > 0.0) {
            let most = (cost + cell.used * worths[cell.group]) / cell.served;
            prices[cell.class] = prices[cell.class].min(most.max(0.0));
        }
        (prices.iter().sum(), worths.iter().sum())
    }

    fn solve(&self, problem: &Problem) -> Result<Solution, LpError> {
        let outcome = problem.solve().map_err(|error| self.failed(error.to_string()))?;
        outcome.into_solution().map_err(|stop| self.failed(format!("{:?}", stop.termination_reason())))
    }

    /// Checks that an objective equals its bound, relative to `size`.
    fn check_bound(&self, found: f64, bound: f64, size: f64) -> Result<(), LpError> {
        if (found - bound).abs() <= TOLERANCE * size {
            return Ok(());
        }
        Err(self.failed(format!("numbers too far apart: the objective is {found}, its bound {bound}")))
    }

    /// The shares machine by machine.
    fn shares(&self, times: &[Variable], solution: &Solution) -> Vec<f64> {
        let machines = self.system.machines();
        let mut shares = vec![0.0; self.system.classes() * machines];
        for (cell, time) in self.cells.iter().zip(times) {
            let group = &self.groups[cell.group];
            let share = (solution.var_value(*time) * cell.unit / group.len() as f64).clamp(0.0, 1.0);
            for machine in group {
                shares[cell.class * machines + machine] = share;
            }
        }
        shares
    }

    /// Checks that shares serve `reached` times every class's unit and take no more than all time.
    pub(super) fn check(&self, shares: &[f64], reached: f64) -> Result<(), LpError> {
        let machines = self.system.machines();
        for class in self.needing() {
            let row = shares[class * machines..][..machines].iter().enumerate();
            let served: f64 = row.map(|(machine, share)| share * self.system.rate_per_s(class, machine)).sum();
            let needed = reached * self.factor * self.system.arrivals_per_s()[class];
            if served.is_nan() || served < needed * (1.0 - TOLERANCE) {
                let number = class + 1;
                let why = format!("numbers too far apart: class {number} gets {served:e} of {needed:e} jobs a second");
                return Err(self.failed(why));
            }
        }
        let load = |machine: usize| shares.iter().skip(machine).step_by(machines).sum::<f64>();
        match (0..machines).find(|machine| load(*machine) > 1.0 + TOLERANCE) {
            Some(machine) => {
                let (number, load) = (machine + 1, load(machine));
                Err(self.failed(format!("numbers too far apart: machine {number} has a load of {load}")))
            }
            None => Ok(()),
        }
    }

    fn failed(&self, why: String) -> LpError {
        LpError::Solver { program: self.name, why }
    }
}

/// Bounds of all variables.
const POSITIVE: (f64, f64) = (0.0, f64::INFINITY);

/// A coefficient for the solver.
fn kept(coefficient: f64) -> f64 {
    if coefficient < COEFFICIENT_MIN { 0.0 } else { coefficient }
}
