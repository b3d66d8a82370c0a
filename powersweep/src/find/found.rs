//! The answers of a search, for people and as a document for programs.

use std::fmt;

use powersweep_dataset::Cell;
use powersweep_dataset::cell::real;
use powersweep_dataset::frame::{is_cost, unit_of};
use powersweep_dataset::grouped::{CURRENCY, resampled};
use powersweep_dataset::search::{Constraint, Estimate};
use powersweep_dataset::titles::unit_of_column;
use powersweep_engine::Value;
use powersweep_engine::seeds::Dependence;
use powersweep_experiments::Over;
use powersweep_experiments::reading::add_new;
use serde::{Serialize, Serializer};
use serde_json::json;

use super::Search;
use super::grid::Group;
use super::judge::{Judged, Progress};

/// Columns with their values. As a text: `all tasks` without any.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Values(pub Vec<(String, Value)>);

impl Values {
    /// The value of a column.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }
}

impl fmt::Display for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self.0.iter().map(|(name, value)| format!("{name}={value}")).collect();
        f.write_str(&if parts.is_empty() { "all tasks".to_owned() } else { parts.join(", ") })
    }
}

impl Serialize for Values {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let json = |value: &Value| match value {
            Value::Bool(value) => json!(value),
            Value::Int(value) => json!(value),
            Value::Real(value) => real(*value),
            Value::Text(value) => json!(value),
            Value::Reals(values) => json!(values),
        };
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, json(value))))
    }
}

/// What was searched for, and how.
#[derive(Debug, Clone, Serialize)]
pub struct FoundGoal {
    /// The column.
    pub column: String,
    /// `minimise` or `maximise`.
    pub direction: &'static str,
    /// `bisection` of a parameter, or `successive halving` of a metric's candidates over seeds or workloads.
    pub method: &'static str,
}

/// A condition on a candidate.
#[derive(Debug, Clone, Serialize)]
pub struct FoundCondition {
    /// Its column.
    #[serde(skip)]
    pub column: String,
    /// The mean of its column.
    #[serde(flatten)]
    pub estimate: Estimate,
    /// The condition.
    pub condition: String,
    /// The number that the mean is compared with.
    #[serde(skip)]
    pub limit: Option<f64>,
    /// `feasible`, `infeasible` or `uncertain`.
    pub verdict: &'static str,
}

/// What the rows of a candidate tell.
#[derive(Debug, Clone, Serialize)]
pub struct FoundMeans {
    /// The mean of the goal; `None` if it is a parameter.
    pub goal: Option<Estimate>,
    /// The conditions.
    pub conditions: Vec<FoundCondition>,
    /// Whether the means satisfy all conditions.
    pub holds_for_mean: bool,
}

/// A candidate.
#[derive(Debug, Clone, Serialize)]
pub struct FoundCandidate {
    /// The values of the searched parameters.
    pub values: Values,
    /// Number of its first seeds that have rows.
    pub seeds: usize,
    /// Number of all its seeds.
    #[serde(skip)]
    pub seeds_of_grid: usize,
    /// `feasible`, `infeasible`, `uncertain`, `dropped` before all seeds ran, or `not tried`.
    pub verdict: &'static str,
    /// Its means; `None` if it was not tried.
    #[serde(flatten)]
    pub means: Option<FoundMeans>,
}

/// Candidates that contradict monotone feasibility.
#[derive(Debug, Clone, Serialize)]
pub struct FoundException {
    /// The values of a feasible candidate.
    pub feasible: Values,
    /// The values of infeasible candidates behind it.
    pub infeasible: Vec<Values>,
}

/// The search in one group of tasks.
#[derive(Debug, Clone, Serialize)]
pub struct FoundGroup {
    /// What tells it from the others.
    pub group: Values,
    /// The best candidate that satisfies the conditions.
    pub answer: Option<FoundCandidate>,
    /// What contradicts monotone feasibility.
    pub exceptions: Vec<FoundException>,
    /// All candidates.
    pub candidates: Vec<FoundCandidate>,
}

/// The answers of a search.
#[derive(Debug, Clone, Serialize)]
pub struct Found {
    /// The experiment with the tried tasks.
    pub experiment: String,
    /// The file of its manifest.
    pub manifest: String,
    /// The goal.
    pub goal: FoundGoal,
    /// The conditions.
    pub conditions: Vec<String>,
    /// Number of tasks of the full grid.
    pub tasks_of_grid: usize,
    /// Number of these that have rows.
    pub tasks_with_rows: usize,
    /// Number of these that this search ran.
    pub tasks_run: usize,
    /// The groups, each with an answer of its own.
    pub groups: Vec<FoundGroup>,
    /// The searched parameters.
    #[serde(skip)]
    pub axes: Vec<Over>,
    /// The columns of the goal and the conditions that are no searched parameter.
    #[serde(skip)]
    pub columns: Vec<String>,
    /// The conditions on shares that the seeds are too few to satisfy for sure, each in a sentence with the number that is enough.
    #[serde(skip)]
    pub too_few: Vec<String>,
    /// The sentence about seeds that draw from one log, if there are such.
    #[serde(skip)]
    pub drawn: Option<String>,
    /// The currency of costs; `None` without costs.
    #[serde(skip)]
    pub currency: Option<String>,
}

impl Found {
    /// The unit of a column of the goal or a condition.
    pub fn unit<'a>(&'a self, column: &'a str, is_relative: bool) -> &'a str {
        let own = match &self.currency {
            Some(currency) if is_cost(column) => currency,
            _ => unit_of_column(column).unwrap_or_default(),
        };
        unit_of(column, own, is_relative)
    }

    /// The estimate of a column: that of the goal, else that of its first condition.
    pub fn estimate(&self, means: &FoundMeans, column: &str) -> Estimate {
        let of_goal = means.goal.filter(|_| column == self.goal.column);
        let of_condition = || means.conditions.iter().find(|condition| condition.column == column);
        let found = of_goal.or_else(|| of_condition().map(|condition| condition.estimate));
        found.unwrap_or_default()
    }
}

impl FoundGroup {
    /// The candidates that have rows.
    pub fn tried(&self) -> impl Iterator<Item = &FoundCandidate> {
        self.candidates.iter().filter(|candidate| candidate.means.is_some())
    }
}

impl Search {
    /// The answers so far.
    pub fn found(&self) -> Found {
        let (grid, question) = (&self.grid, &self.question);
        let is_axis = |name: &&str| grid.axes.iter().any(|axis| axis.name == *name);
        let of_conditions = question.constraints.iter().map(Constraint::name);
        let of_goal = question.goal_axis.is_none().then_some(question.goal.as_str());
        let mut columns: Vec<String> = Vec::new();
        let names = of_goal.into_iter().chain(of_conditions).filter(|name| !is_axis(name));
        add_new(&mut columns, names.map(str::to_owned));
        let seeds = grid.groups.iter().flat_map(|group| group.tasks.iter().map(Vec::len)).max().unwrap_or_default();
        let too_few = |constraint: &Constraint| {
            let (least, text) = (constraint.seeds_min()?, &constraint.text);
            (least > seeds as f64).then(|| match least.is_finite() {
                true => format!("At least {least} seeds can tell that {text}; there are {seeds}."),
                false => format!("No number of seeds can tell that {text}."),
            })
        };
        let drawn = grid.groups.iter().filter_map(|group| match group.seeds {
            Dependence::Resampled(draw) => Some(draw),
            _ => None,
        });
        let drawn = drawn.max();
        Found {
            experiment: self.name.clone(),
            manifest: self.file.to_string_lossy().into_owned(),
            goal: FoundGoal {
                column: question.goal.clone(),
                direction: if question.is_maximised { "maximise" } else { "minimise" },
                method: match (question.goal_axis, grid.rungs()) {
                    (Some(_), _) => "bisection",
                    (None, 1) => "successive halving",
                    (None, _) => "successive halving over workloads",
                },
            },
            conditions: question.choosing.iter().chain(&question.constraints).map(|of| of.text.clone()).collect(),
            tasks_of_grid: grid.tasks(),
            tasks_with_rows: self.rows.len(),
            tasks_run: self.ran,
            groups: grid
                .groups
                .iter()
                .zip(&self.progress)
                .map(|(group, progress)| self.group(group, progress))
                .collect(),
            columns,
            too_few: question.constraints.iter().filter_map(too_few).collect(),
            drawn: drawn.map(|draw| format!("{}; a share of seeds is one of these draws", resampled(draw))),
            axes: grid.axes.clone(),
            currency: self.currency(),
        }
    }

    /// The currency of the costs in the rows; `None` without costs.
    fn currency(&self) -> Option<String> {
        let at = self.question.columns.iter().position(|name| name == CURRENCY)?;
        self.rows.values().map(|row| &row[at]).filter(|cell| !cell.is_null()).map(Cell::exact).min()
    }

    fn group(&self, group: &Group, progress: &Progress) -> FoundGroup {
        let exceptions = progress.exceptions.iter().map(|(feasible, infeasible)| FoundException {
            feasible: self.values(*feasible),
            infeasible: infeasible.iter().map(|candidate| self.values(*candidate)).collect(),
        });
        let present = (0..self.grid.candidates.len()).filter(|candidate| !group.tasks[*candidate].is_empty());
        FoundGroup {
            group: group.name.clone(),
            answer: progress.answer.map(|candidate| self.candidate(group, candidate)),
            exceptions: exceptions.collect(),
            candidates: present.map(|candidate| self.candidate(group, candidate)).collect(),
        }
    }

    fn values(&self, candidate: usize) -> Values {
        let values = self.grid.axes.iter().zip(&self.grid.candidates[candidate]);
        Values(values.map(|(axis, value)| (axis.name.to_owned(), value.clone())).collect())
    }

    fn candidate(&self, group: &Group, candidate: usize) -> FoundCandidate {
        let judged = self.question.known(group, candidate, &self.rows);
        FoundCandidate {
            values: self.values(candidate),
            seeds: judged.as_ref().map_or(0, |judged| judged.seeds),
            seeds_of_grid: group.tasks[candidate].len(),
            verdict: match &judged {
                None => "not tried",
                Some(judged) if judged.is_partial => "dropped",
                Some(judged) => judged.verdict.word(),
            },
            means: judged.map(|judged| self.means(&judged)),
        }
    }

    fn means(&self, judged: &Judged) -> FoundMeans {
        let question = &self.question;
        let conditions = question.constraints.iter().zip(&judged.conditions);
        let conditions = conditions.map(|(constraint, (estimate, verdict))| FoundCondition {
            column: constraint.name().to_owned(),
            estimate: *estimate,
            condition: constraint.text.clone(),
            limit: constraint.limit(),
            verdict: verdict.word(),
        });
        FoundMeans { goal: judged.goal, conditions: conditions.collect(), holds_for_mean: judged.verdict.holds }
    }
}
