//! The combinations of parameters with the best metrics, under conditions.

use std::collections::BTreeSet;

pub use powersweep_dataset::best::Goal;
use powersweep_dataset::best::front;
use powersweep_dataset::group::named;
use powersweep_dataset::grouped::{FooterFacts, check_one_signal, collected, keys};
use powersweep_dataset::scan::SEED;
use powersweep_dataset::search::{Estimate, Verdict};
use powersweep_dataset::source::{self, conditions, table_of};
use powersweep_dataset::words::{count, number};
use powersweep_dataset::{Column, Condition, Error, Frame, Stat, failure, grouped};

use crate::place::Place;

/// The column that says whether a combination satisfies the conditions.
const VERDICT: &str = "verdict";
/// The column that tasks of logs have a value in.
const LOG: &str = "log_digest";

/// Goals and conditions of the best combinations of parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct BestOptions {
    /// The metrics of `tasks` or `accounts` whose means are to be small or great. Several goals have a Pareto front.
    pub goals: Vec<Goal>,
    /// Conditions on the mean of a metric, or on a parameter, such as `bsld_mean <= 5`.
    pub subject_to: Vec<String>,
    /// Conditions on the rows, such as `seed<3`.
    pub only: Vec<String>,
    /// The columns that are chosen; by default all that vary, except the seed.
    pub by: Vec<String>,
    /// With one goal: maximum number of combinations.
    pub top: usize,
}

impl Default for BestOptions {
    fn default() -> BestOptions {
        BestOptions { goals: Vec::new(), subject_to: Vec::new(), only: Vec::new(), by: Vec::new(), top: 1 }
    }
}

/// The best combinations.
#[derive(Debug, Clone)]
pub struct Best {
    /// A row for each of them: its values, then the means and intervals of the goals and conditions. With conditions on
    /// means, the column `verdict` has `feasible` or `uncertain`.
    pub frame: Frame,
    /// Number of all combinations; 0 if no row satisfies the conditions on rows.
    pub combinations: usize,
    /// Number of the combinations that satisfy the conditions by their means.
    pub feasible: usize,
    /// Number of these for which the interval of a condition's mean contains the limit, or has one seed: more seeds may
    /// decide otherwise.
    pub uncertain: usize,
    /// Why none does, if none does: the condition that no row satisfies, or the range of each condition's column.
    pub why_none: Option<String>,
}

impl Place {
    /// The combinations of parameters with the best means over the seeds.
    ///
    /// # Errors
    /// An experiment, column or condition is unknown, or there is no goal.
    pub async fn best(&self, experiment: &str, options: &BestOptions) -> Result<Best, Error> {
        let BestOptions { goals, .. } = options;
        if goals.is_empty() {
            return Err(failure!(Usage, "there is no goal: name a column that is to be small or great"));
        }
        let of_conditions = options.subject_to.iter().chain(&options.only).map(|text| Condition::column_of(text));
        let of_goals = goals.iter().map(|goal| goal.column.as_str());
        let table = table_of(of_goals.chain(of_conditions).chain(options.by.iter().map(String::as_str)));
        let subject = conditions(table, &options.subject_to)?;
        let datasets = self.datasets().await?;
        let reading = datasets.read(experiment, table).await?;
        reading.check_table()?;
        let known = FooterFacts::read(&datasets, experiment).await?;
        let varying = known.candidates.iter().filter(|candidate| candidate.distinguishes() && candidate.name != SEED);
        let by: Vec<&str> = match options.by.is_empty() {
            true => varying.map(|candidate| candidate.name.as_str()).collect(),
            false => options.by.iter().map(String::as_str).collect(),
        };
        let columns = goals.iter().map(|goal| &goal.column).chain(subject.iter().map(|condition| &condition.column));
        let mut seen = BTreeSet::new();
        let measures: Vec<&str> =
            columns.map(String::as_str).filter(|name| !by.contains(name) && seen.insert(*name)).collect();
        let only = conditions(table, &options.only)?;
        let more = [SEED, LOG].into_iter().chain(keys(table).iter().copied()).filter(|name| !by.contains(name));
        let axes: Vec<&str> = by.iter().copied().chain(more).collect();
        let rows = collected(&datasets, &reading, &known, [&axes, &measures], only).await?;
        check_one_signal(&rows, &by)?;
        let mut all = grouped(&rows, &by, &[Stat::Mean, Stat::Interval(95)])?;
        let combinations = if rows.is_empty() { 0 } else { all.rows() };
        // A log has one task: there are no other seeds that could decide otherwise.
        let are_logs = rows.axis(LOG).is_some_and(|axis| axis.values().iter().all(|value| !value.is_null()));
        let satisfied = verdicts(&all, &subject, &by, are_logs)?;
        let of_row = |row: usize| Verdict::all(satisfied.iter().map(move |condition| condition[row]));
        if subject.iter().any(|condition| !by.contains(&condition.column.as_str())) {
            all.push(Column::texts(VERDICT, "verdict", (0..all.rows()).map(|row| of_row(row).word().to_owned())));
        }
        let uncertain = (0..all.rows()).map(of_row).filter(|verdict| verdict.holds && !verdict.is_certain).count();
        let feasible = all.kept(|row| of_row(row).holds);
        let why_none = match feasible.rows() {
            _ if rows.is_empty() && options.only.is_empty() => Some("no rows yet".to_owned()),
            _ if rows.is_empty() => Some(source::why_none(&datasets, &reading, &options.only).await?),
            0 => Some(why_none(&all, &subject, &satisfied)?),
            _ => None,
        };
        let frame = match &goals[..] {
            [goal] => feasible.sorted(&goal.column, goal.is_maximised)?.part(0, options.top),
            goals => feasible.picked(&front(&feasible, goals)?),
        };
        Ok(Best { frame, combinations, feasible: feasible.rows(), uncertain, why_none })
    }
}

/// For each condition, its verdict on each row: by its mean and the interval of that, or by its parameter in `by`.
fn verdicts(all: &Frame, subject: &[Condition], by: &[&str], are_logs: bool) -> Result<Vec<Vec<Verdict>>, Error> {
    let of = |condition: &Condition| {
        let column = all.column(&condition.column)?;
        if by.contains(&condition.column.as_str()) {
            let verdict = |row| Verdict { holds: condition.holds(&column.cell(row)), is_certain: true };
            return Ok((0..column.len()).map(verdict).collect());
        }
        let half_widths = all.column(&named(Stat::Interval(95), &condition.column))?;
        let estimate = |row| Estimate { mean: column.number(row), half_width: half_widths.number(row) };
        Ok((0..column.len()).map(|row| Verdict::of(condition, estimate(row), are_logs)).collect())
    };
    subject.iter().map(of).collect()
}

/// For each condition, how many combinations satisfy it, and the range of its column.
fn why_none(all: &Frame, subject: &[Condition], satisfied: &[Vec<Verdict>]) -> Result<String, Error> {
    let mut text = format!("none of {} satisfies the conditions", count(all.rows() as u64, "combination"));
    for (condition, rows) in subject.iter().zip(satisfied) {
        let column = all.column(&condition.column)?;
        let values = (0..column.len()).filter_map(|row| column.cell(row).number());
        let (least, most) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, m), v| (l.min(v), m.max(v)));
        let holds = rows.iter().filter(|verdict| verdict.holds).count();
        let range = match least <= most {
            true => format!(" lies between {} and {}", number(least), number(most)),
            false => String::new(),
        };
        text += &format!("\n{}{range}: its condition holds for {holds}", condition.column);
    }
    Ok(text)
}
