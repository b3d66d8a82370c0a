//! What the rows tell of the candidates, and what the search needs next.

use std::collections::HashMap;

use powersweep_dataset::frame::is_cost;
use powersweep_dataset::grouped::{CURRENCY, keys};
use powersweep_dataset::rows::is_number;
use powersweep_dataset::search::{
    Constraint, Estimate, Next, Score, Verdict, anchor, bisection, exception, halving, rung, seeds_of_rungs,
};
use powersweep_dataset::source::{constraints, table_of, type_of};
use powersweep_dataset::{Cell, Condition, Error, failure};
use powersweep_engine::seeds::Dependence;
use powersweep_experiments::reading::add_new;
use powersweep_results::Table;

use super::grid::{Grid, Group, Task};
use crate::best::Goal;

/// What is searched for.
pub(super) struct Question {
    /// The table that has the columns.
    pub(super) table: Table,
    /// The column of the goal.
    pub(super) goal: String,
    pub(super) is_maximised: bool,
    /// The axis that the goal is; `None` for a metric.
    pub(super) goal_axis: Option<usize>,
    pub(super) constraints: Vec<Constraint>,
    /// The conditions that choose rows of a task, such as those of one signal.
    pub(super) choosing: Vec<Constraint>,
    /// The columns that are read: of the goal, if it is a metric, of the conditions, and the currency of costs.
    pub(super) columns: Vec<String>,
}

/// The rows that are there: by task the values of the columns.
pub(super) type Rows = HashMap<String, Vec<Cell>>;

/// What is known of a candidate with some of its seeds.
pub(super) struct Judged {
    pub(super) seeds: usize,
    pub(super) goal: Option<Estimate>,
    /// Of each condition.
    pub(super) conditions: Vec<(Estimate, Verdict)>,
    pub(super) verdict: Verdict,
    /// Whether some seeds did not run.
    pub(super) is_partial: bool,
    excess: f64,
}

/// The state of the search in one group.
#[derive(Default)]
pub(super) struct Progress {
    /// Candidates with the number of seeds that they need next; the search has ended if there are none.
    pub(super) needs: Vec<(usize, usize)>,
    pub(super) answer: Option<usize>,
    /// Feasible candidates with those behind them that contradict monotone feasibility.
    pub(super) exceptions: Vec<(usize, Vec<usize>)>,
}

impl Question {
    /// Reads the goal and the conditions. `grid` has the searched parameters.
    pub(super) fn of<'a>(goal: &'a Goal, subject_to: &'a [String], grid: &Grid) -> Result<Question, Error> {
        let (goal, is_maximised) = (goal.column.as_str(), goal.is_maximised);
        let goal_axis = grid.axes.iter().position(|axis| axis.name == goal);
        if let Some(axis) = goal_axis.map(|at| &grid.axes[at])
            && !axis.is_numeric()
        {
            return Err(failure!(Usage, "`{goal}` has no numbers, so that none of its values is the least"));
        }
        let of_conditions = subject_to.iter().map(|text| Constraint::column_of(text));
        let table = table_of([goal].into_iter().chain(of_conditions));
        let of = type_of(table, goal)?;
        if goal_axis.is_none() && !is_number(&of) {
            return Err(failure!(Usage, "`{goal}` has no numbers, so that it has no mean"));
        }
        let is_key = |of: &Constraint| of.share.is_none() && keys(table).contains(&of.condition.column.as_str());
        let (choosing, constraints): (Vec<Constraint>, Vec<Constraint>) =
            constraints(table, subject_to)?.into_iter().partition(is_key);
        if goal_axis.is_some() && constraints.is_empty() {
            return Err(failure!(
                Usage,
                "without a condition every value of `{goal}` will do: add one, such as bsld_mean <= 5"
            ));
        }
        if goal_axis.is_none()
            && let Some(axis) = grid.axes.iter().find(|axis| axis.default_step.is_some())
        {
            let (first, last) = (&axis.values[0], &axis.values[axis.values.len() - 1]);
            let name = axis.name;
            return Err(failure!(
                Usage,
                "every value of `{name}` is a candidate if the goal is a metric: give the step, such as \
                 {name}={first}..{last}:STEP"
            ));
        }
        let mut columns: Vec<String> = Vec::new();
        let of_goal = goal_axis.is_none().then(|| goal.to_owned());
        let of_constraints = constraints.iter().map(|constraint| constraint.condition.column.clone());
        add_new(&mut columns, of_goal.into_iter().chain(of_constraints));
        let has_costs = columns.iter().any(|name| is_cost(name));
        add_new(&mut columns, has_costs.then(|| CURRENCY.to_owned()));
        Ok(Question { table, goal: goal.to_owned(), is_maximised, goal_axis, constraints, choosing, columns })
    }

    /// The conditions of [`Question::choosing`].
    pub(super) fn choosing(&self) -> Vec<Condition> {
        self.choosing.iter().map(|constraint| constraint.condition.clone()).collect()
    }

    /// What is known of a candidate with its first seeds up to this number; `None` if one of these tasks has no row. With an anchor, a
    /// candidate that has all its rows, the means of some seeds are estimated by the differences to it.
    fn judged(
        &self,
        anchor: Option<usize>,
        group: &Group,
        candidate: usize,
        seeds: usize,
        rows: &Rows,
    ) -> Option<Judged> {
        let tasks = &group.tasks[candidate];
        let chosen = &tasks[..seeds.min(tasks.len())];
        // With rungs, those of the greatest one count.
        let rung = chosen.last().map_or(0, |task| task.rung);
        let of_rung = |tasks: &[Task], rung: usize| -> Option<Vec<&Vec<Cell>>> {
            tasks.iter().filter(|task| task.rung == rung).map(|task| rows.get(&task.id)).collect()
        };
        let found = of_rung(chosen, rung)?;
        let anchor = anchor.map(|anchor| &group.tasks[anchor]).filter(|of_anchor| chosen.len() < of_anchor.len());
        let last = tasks.last().map_or(0, |task| task.rung);
        let of_anchor: Option<[Vec<&Vec<Cell>>; 2]> =
            anchor.and_then(|tasks| Some([of_rung(tasks, rung)?, of_rung(tasks, last)?]));
        let cells = |column: &str| {
            let at = self.columns.iter().position(|name| name == column);
            at.map(|at| found.iter().map(|row| &row[at]).collect::<Vec<&Cell>>()).unwrap_or_default()
        };
        let numbers = |column: &str| {
            let Some(at) = self.columns.iter().position(|name| name == column) else {
                return Estimate::default();
            };
            let values = |rows: &[&Vec<Cell>]| -> Vec<f64> {
                rows.iter().map(|row| row[at].number().unwrap_or(f64::NAN)).collect()
            };
            match &of_anchor {
                Some([there, anchor]) => {
                    Estimate::across(&values(&found), &values(there), &values(anchor), group.seeds)
                }
                None => Estimate::of(values(&found).into_iter(), group.seeds),
            }
        };
        let are_alike = group.seeds == Dependence::Alike;
        let goal = self.goal_axis.is_none().then(|| numbers(&self.goal));
        let (mut judged, mut excess) = (Vec::new(), 0.0_f64);
        for constraint in &self.constraints {
            let condition = &constraint.condition;
            let values = || cells(&condition.column).iter().filter_map(|cell| cell.number()).collect::<Vec<f64>>();
            if let Some((limit, (estimate, verdict))) =
                constraint.limit().zip(constraint.judge_share(&values(), are_alike))
            {
                if !verdict.holds {
                    excess = excess.max(estimate.mean.map_or(f64::INFINITY, |share| (share - limit).abs()));
                }
                judged.push((estimate, verdict));
                continue;
            }
            let estimate = numbers(&condition.column);
            let verdict = match constraint.has_mean {
                true => Verdict::of(condition, estimate, are_alike),
                false => Verdict {
                    holds: cells(&condition.column).iter().all(|value| condition.holds(value)),
                    is_certain: true,
                },
            };
            if !verdict.holds {
                excess = excess.max(distance(condition, estimate));
            }
            judged.push((estimate, verdict));
        }
        let verdict = Verdict::all(judged.iter().map(|(_, verdict)| *verdict));
        let is_partial = chosen.len() < tasks.len();
        Some(Judged { seeds: chosen.len(), goal, conditions: judged, verdict, is_partial, excess })
    }

    /// What the rows that are there tell of a candidate: of as many of its first seeds as have rows.
    pub(super) fn known(&self, group: &Group, candidate: usize, rows: &Rows) -> Option<Judged> {
        let has_row = |task: &&Task| rows.contains_key(&task.id);
        let seeds = group.tasks[candidate].iter().take_while(has_row).count();
        if seeds == 0 { None } else { self.judged(None, group, candidate, seeds, rows) }
    }

    /// The state of the search in a group.
    pub(super) fn progress(&self, grid: &Grid, group: &Group, rows: &Rows) -> Progress {
        let all = |candidate: usize| group.tasks[candidate].len();
        let is_there = |candidate: &usize| all(*candidate) > 0;
        let mut progress = Progress::default();
        let Some(axis) = self.goal_axis else {
            let present: Vec<usize> = (0..grid.candidates.len()).filter(is_there).collect();
            let seeds = match grid.rungs() {
                1 => present.iter().map(|candidate| all(*candidate)).max().unwrap_or_default(),
                rungs => seeds_of_rungs(rungs),
            };
            // With rungs, a number of seeds stands for all tasks up to a rung.
            let tasks_of = |at: usize, used: usize| match grid.rungs() {
                1 => used,
                _ => group.tasks[present[at]].iter().filter(|task| task.rung <= rung(used)).count(),
            };
            let score = |at: usize, used: usize| {
                let used = tasks_of(at, used);
                let anchor = present[anchor(present.len())];
                let judged = self.judged(Some(anchor), group, present[at], used, rows)?;
                let mean = judged.goal.and_then(|goal| goal.mean).filter(|mean| !mean.is_nan());
                let sign = if self.is_maximised { -1.0 } else { 1.0 };
                let goal = mean.map_or(f64::INFINITY, |mean| sign * mean);
                Some(Score { verdict: judged.verdict, excess: judged.excess, goal })
            };
            match halving(present.len(), seeds, score) {
                Next::Try(needs) => {
                    progress.needs = needs.into_iter().map(|(at, used)| (present[at], tasks_of(at, used))).collect()
                }
                Next::Found(at) => progress.answer = Some(present[at]),
                Next::Nothing => {}
            }
            return progress;
        };
        let positions = &grid.positions;
        for line in lines(positions, axis, self.is_maximised) {
            let line: Vec<usize> = line.into_iter().filter(is_there).collect();
            let holds = |candidate: &usize| {
                let judged = self.judged(None, group, *candidate, all(*candidate), rows)?;
                Some(judged.verdict.holds)
            };
            let feasible: Vec<Option<bool>> = line.iter().map(holds).collect();
            match bisection(&feasible) {
                Next::Try(more) => progress.needs.extend(more.into_iter().map(|at| (line[at], all(line[at])))),
                Next::Found(at) => {
                    // The values of an axis ascend.
                    let place = |candidate: usize| positions[candidate][axis];
                    let is_better = |best: usize| match self.is_maximised {
                        true => place(line[at]) > place(best),
                        false => place(line[at]) < place(best),
                    };
                    if progress.answer.is_none_or(is_better) {
                        progress.answer = Some(line[at]);
                    }
                }
                Next::Nothing => {}
            }
            progress.exceptions.extend(
                exception(&feasible)
                    .map(|found| (line[found.feasible], found.infeasible.into_iter().map(|at| line[at]).collect())),
            );
        }
        progress
    }
}

/// The candidates that differ in one axis alone, from its best value to its worst.
fn lines(positions: &[Vec<usize>], axis: usize, is_maximised: bool) -> Vec<Vec<usize>> {
    let (mut known, mut lines): (HashMap<Vec<usize>, usize>, Vec<Vec<usize>>) = (HashMap::new(), Vec::new());
    for (candidate, mut places) in positions.iter().cloned().enumerate() {
        places.remove(axis);
        let at = *known.entry(places).or_insert_with(|| {
            lines.push(Vec::new());
            lines.len() - 1
        });
        lines[at].push(candidate);
    }
    if is_maximised {
        lines.iter_mut().for_each(|line| line.reverse());
    }
    lines
}

/// How far a mean misses its condition, as a share of the limit.
fn distance(condition: &Condition, estimate: Estimate) -> f64 {
    let limit = condition.value.number();
    match (estimate.mean, limit) {
        (Some(mean), Some(limit)) if mean.is_finite() && limit.is_finite() => {
            (mean - limit).abs() / limit.abs().max(f64::MIN_POSITIVE)
        }
        _ => f64::INFINITY,
    }
}
