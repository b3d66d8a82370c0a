//! The combinations of parameters with the best metrics, under conditions.

use std::collections::{BTreeSet, HashMap};

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array};
use arrow::datatypes::{DataType, Field, FieldRef};
pub use powersweep_dataset::best::Goal;
use powersweep_dataset::best::{costs, front, unbeaten};
use powersweep_dataset::frame::{MEASURE, STAT, TITLE};
use powersweep_dataset::group::named;
use powersweep_dataset::grouped::{
    FooterFacts, collected, differing_settings, given, others, refuse_twice, say_mixed, settings,
};
use powersweep_dataset::hypervolume::hypervolume;
use powersweep_dataset::replicates::seed;
use powersweep_dataset::rows::is_number;
use powersweep_dataset::scan::SEED;
use powersweep_dataset::search::{Constraint, Estimate, Verdict};
use powersweep_dataset::source::{self, conditions, constraints, table_of, type_of};
use powersweep_dataset::words::{count, number};
use powersweep_dataset::{Column, Condition, Error, Frame, Rows, Stat, failure, grouped};
use powersweep_experiments::reading::add_new;
use powersweep_results::Table;

use crate::place::Place;
use crate::results::no_rows;

/// The column that says whether a combination satisfies the conditions.
const VERDICT: &str = "verdict";

/// Combinations that a sentence on equally good ones names.
const TIED_SHOWN: usize = 3;

/// Goals and conditions of the best combinations of parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct BestOptions {
    /// The metrics of `tasks` or `accounts` whose means are to be small or great. Several goals have a Pareto front.
    pub goals: Vec<Goal>,
    /// Conditions on the mean of a metric or on a parameter, such as `bsld_mean <= 5`, or on the share of seeds, such as
    /// `P(wait_s_mean <= 3600) >= 0.95`.
    pub subject_to: Vec<String>,
    /// Conditions on the rows, such as `seed<3`.
    pub only: Vec<String>,
    /// The columns that are chosen; by default all that vary, except the seed.
    pub by: Vec<String>,
    /// With one goal: maximum number of combinations.
    pub top: usize,
    /// With several goals: the reference point of the hypervolume, a value for each goal; by default the worst value of each
    /// goal over all combinations.
    pub reference: Vec<f64>,
}

impl Default for BestOptions {
    fn default() -> BestOptions {
        BestOptions {
            goals: Vec::new(),
            subject_to: Vec::new(),
            only: Vec::new(),
            by: Vec::new(),
            top: 1,
            reference: Vec::new(),
        }
    }
}

/// How much of the space of the goals a front beats.
#[derive(Debug, Clone, PartialEq)]
pub struct FrontVolume {
    /// The volume between the front and the reference point, in the product of the goals' units. `None`: the front has too
    /// many points for its number of goals.
    pub hypervolume: Option<f64>,
    /// The reference point: a value for each goal.
    pub reference: Vec<f64>,
    /// The best value of each goal on the front.
    pub ideal: Vec<f64>,
}

impl FrontVolume {
    /// The volume as a share of that between the best values and the reference point. `None` where the latter is 0.
    pub fn share(&self) -> Option<f64> {
        let sides = self.ideal.iter().zip(&self.reference).map(|(ideal, reference)| (reference - ideal).abs());
        let whole: f64 = sides.product();
        self.hypervolume.filter(|_| whole > 0.0).map(|volume| volume / whole)
    }
}

/// The best combinations.
#[derive(Debug, Clone)]
pub struct Best {
    /// A row for each of them: its values, then the means and intervals of the goals and conditions. With conditions on
    /// means or shares, the column `verdict` has `feasible` or `uncertain`.
    pub frame: Frame,
    /// Number of all combinations; 0 if no row satisfies the conditions on rows.
    pub combinations: usize,
    /// Number of the combinations that satisfy the conditions by their means and shares.
    pub feasible: usize,
    /// Number of these for which the interval of a condition's mean or share contains the limit, or has one seed: more seeds may
    /// decide otherwise.
    pub uncertain: usize,
    /// With several goals: the hypervolume of the front.
    pub volume: Option<FrontVolume>,
    /// Why none does, if none does: the condition that no row satisfies, or the range of each condition's column.
    pub why_none: Option<String>,
}

impl Best {
    /// How many combinations satisfy the conditions, in a sentence.
    pub fn satisfying(&self) -> String {
        let uncertain = match self.uncertain {
            0 => String::new(),
            uncertain => format!(
                ", {uncertain} of them uncertain: the interval of a mean or share contains its limit, or there is one seed"
            ),
        };
        let satisfy = if self.feasible == 1 { "satisfies" } else { "satisfy" };
        let of = count(self.combinations as u64, "combination");
        format!("{} of {of} {satisfy} the conditions{uncertain}", self.feasible)
    }
}

impl Place {
    /// The combinations of parameters with the best means over the seeds.
    ///
    /// # Errors
    /// An experiment, column or condition is unknown, or there is no goal.
    pub async fn best(&self, experiment: &str, options: &BestOptions) -> Result<Best, Error> {
        let BestOptions { goals, reference, .. } = options;
        check_counts(goals, reference)?;
        let of_constraints = options.subject_to.iter().map(|text| Constraint::column_of(text));
        let of_conditions = of_constraints.chain(options.only.iter().map(|text| Condition::column_of(text)));
        let of_goals = goals.iter().map(|goal| goal.column.as_str());
        let table = table_of(of_goals.chain(of_conditions).chain(options.by.iter().map(String::as_str)));
        check_goals(table, goals)?;
        refuse_twice(&options.by)?;
        let subject = constraints(table, &options.subject_to)?;
        let datasets = self.datasets().await?;
        let reading = datasets.read(experiment, table).await?;
        reading.check_table()?;
        let known = FooterFacts::read(&datasets, experiment).await?;
        let varying = known.candidates.iter().filter(|candidate| candidate.distinguishes() && candidate.name != SEED);
        let mut by: Vec<&str> = match options.by.is_empty() {
            true => varying.map(|candidate| candidate.name.as_str()).collect(),
            false => options.by.iter().map(String::as_str).collect(),
        };
        let columns =
            goals.iter().map(|goal| &goal.column).chain(subject.iter().map(|constraint| &constraint.condition.column));
        let mut seen = BTreeSet::new();
        let measures: Vec<&str> =
            columns.map(String::as_str).filter(|name| !by.contains(name) && seen.insert(*name)).collect();
        let only = conditions(table, &options.only)?;
        let others = others(&known.candidates, &by, table);
        let mut axes = by.clone();
        let more = [SEED].into_iter().chain(settings(table).iter().copied()).chain(others.iter().copied());
        add_new(&mut axes, more.filter(|name| !measures.contains(name)));
        let rows = collected(&datasets, &reading, &known, [&axes, &measures], only.clone()).await?;
        check_values(&rows)?;
        if options.by.is_empty() {
            by.extend(differing_settings(&rows, &by)?);
            given(&rows, &by).iter().for_each(|said| datasets.notes().say(said));
        }
        say_mixed(&datasets, &rows, &by, &others)?;
        let lacking = known.lacking(&datasets, &reading, &by, &only).await?;
        lacking.iter().for_each(|said| datasets.notes().say(said));
        let mut all = grouped(&rows, &by, &[Stat::Mean, Stat::Interval(95)])?;
        let combinations = if rows.is_empty() { 0 } else { all.rows() };
        // Combinations for which no other seed could decide otherwise.
        let is_fixed = |group: &Vec<u32>| !group.is_empty() && rows.are_fixed(group.iter().map(|row| *row as usize));
        let are_fixed: Vec<bool> = rows.groups(&by)?.iter().map(is_fixed).collect();
        let mut satisfied = Vec::new();
        for constraint in &subject {
            satisfied.push(match constraint.share {
                Some(_) => verdicts_of_share(&mut all, &rows, constraint, &by, &are_fixed)?,
                None => verdicts_of_mean(&all, &constraint.condition, &by, &are_fixed)?,
            });
        }
        let of_row = |row: usize| Verdict::all(satisfied.iter().map(move |condition| condition[row]));
        if subject.iter().any(|constraint| !by.contains(&constraint.name())) {
            all.push(Column::texts(VERDICT, "verdict", (0..all.rows()).map(|row| of_row(row).word().to_owned())));
        }
        let uncertain = (0..all.rows()).map(of_row).filter(|verdict| verdict.holds && !verdict.is_certain).count();
        let feasible = all.kept(|row| of_row(row).holds);
        let why_none = match feasible.rows() {
            _ if rows.is_empty() && options.only.is_empty() => Some(no_rows(experiment)),
            _ if rows.is_empty() => Some(source::why_none(&datasets, &reading, &options.only).await?),
            0 => Some(why_none(&all, &subject, &satisfied)?),
            _ => None,
        };
        let volume = match goals.len() > 1 && feasible.rows() > 0 {
            true => Some(volume(&all, &feasible, goals, reference)?),
            false => None,
        };
        let frame = match &goals[..] {
            [goal] => {
                let sorted = feasible.sorted(&goal.column, goal.is_maximised)?;
                let tied = tied(&sorted, &goal.column, options.top, &by)?;
                tied.iter().for_each(|said| datasets.notes().say(said));
                sorted.part(0, options.top)
            }
            goals => feasible.picked(&front(&feasible, goals)?),
        };
        Ok(Best { frame, combinations, feasible: feasible.rows(), uncertain, volume, why_none })
    }
}

/// The combinations behind the first ones of a sorted frame that are as good as the last of these, in a sentence.
fn tied(sorted: &Frame, goal: &str, top: usize, by: &[&str]) -> Result<Option<String>, Error> {
    let means = sorted.column(goal)?;
    let Some(last) = top.checked_sub(1).filter(|last| *last < sorted.rows()).and_then(|last| means.number(last)) else {
        return Ok(None);
    };
    let rows: Vec<usize> = (top..sorted.rows()).take_while(|row| means.number(*row) == Some(last)).collect();
    let columns = by.iter().map(|name| sorted.column(name)).collect::<Result<Vec<_>, Error>>()?;
    let values = |row: &usize| {
        let has_value = columns.iter().filter(|column| !column.cell(*row).is_null());
        has_value.map(|column| format!("{}={}", column.name(), column.text(*row))).collect::<Vec<_>>().join(", ")
    };
    let more = if rows.len() > TIED_SHOWN { "; …" } else { "" };
    let shown = rows.iter().take(TIED_SHOWN).map(values).collect::<Vec<_>>().join("; ");
    let have = if rows.len() == 1 { "has" } else { "have" };
    let others = count(rows.len() as u64, "other combination");
    Ok((!rows.is_empty()).then(|| format!("{others} {have} the same {goal}: {shown}{more}")))
}

/// The hypervolume of the front of the feasible combinations.
fn volume(all: &Frame, feasible: &Frame, goals: &[Goal], reference: &[f64]) -> Result<FrontVolume, Error> {
    let extreme = |points: &[(usize, Vec<f64>)], at: usize, of: fn(f64, f64) -> f64| {
        points.iter().map(|(_, costs)| costs[at]).reduce(of).unwrap_or(f64::NAN)
    };
    let (of_all, points) = (costs(all, goals)?, costs(feasible, goals)?);
    let signs: Vec<f64> = goals.iter().map(|goal| if goal.is_maximised { -1.0 } else { 1.0 }).collect();
    let ideal: Vec<f64> = (0..goals.len()).map(|at| extreme(&points, at, f64::min)).collect();
    let limit: Vec<f64> = match reference.is_empty() {
        true => (0..goals.len()).map(|at| extreme(&of_all, at, f64::max)).collect(),
        false => reference.iter().zip(&signs).map(|(value, sign)| value * sign).collect(),
    };
    let points: Vec<Vec<f64>> = points.into_iter().map(|(_, costs)| costs).collect();
    let front: Vec<&Vec<f64>> = unbeaten(&points).into_iter().map(|at| &points[at]).collect();
    let values = |costs: Vec<f64>| costs.iter().zip(&signs).map(|(cost, sign)| cost * sign).collect();
    let hypervolume = hypervolume(&front, &limit);
    Ok(FrontVolume { hypervolume, reference: values(limit), ideal: values(ideal) })
}

/// The verdict of a condition on each combination: by its mean and the interval of that, or by its parameter in `by`.
fn verdicts_of_mean(
    all: &Frame,
    condition: &Condition,
    by: &[&str],
    are_fixed: &[bool],
) -> Result<Vec<Verdict>, Error> {
    let column = all.column(&condition.column)?;
    if by.contains(&condition.column.as_str()) {
        let verdict = |row| Verdict { holds: condition.holds(&column.cell(row)), is_certain: true };
        return Ok((0..column.len()).map(verdict).collect());
    }
    let half_widths = all.column(&named(Stat::Interval(95), &condition.column))?;
    let estimate = |row| Estimate::around(column.number(row), half_widths.number(row));
    Ok((0..column.len()).map(|row| Verdict::of(condition, estimate(row), are_fixed[row])).collect())
}

/// Refuses a metric that no row has a number of: no combination is the best by it.
fn check_values(rows: &Rows) -> Result<(), Error> {
    let without = |(_, values): &&(FieldRef, Vec<f64>)| values.iter().all(|value| value.is_nan());
    match rows.measures().iter().find(without).filter(|_| !rows.is_empty()) {
        Some((measure, _)) => Err(failure!(Usage, "no row has a number in `{}`", measure.name())),
        None => Ok(()),
    }
}

/// Refuses an answer without a goal, and a reference point of another number of goals, or of one.
fn check_counts(goals: &[Goal], reference: &[f64]) -> Result<(), Error> {
    if !reference.is_empty() && (reference.len() != goals.len() || goals.len() < 2) {
        let goals = count(goals.len() as u64, "goal");
        return Err(failure!(Usage, "the reference point has {} for {goals}", count(reference.len() as u64, "value")));
    }
    if let Some(value) = reference.iter().find(|value| !value.is_finite()) {
        return Err(failure!(Usage, "the reference point has the value {value}, which is not finite"));
    }
    if goals.is_empty() {
        return Err(failure!(Usage, "there is no goal: name a column that is to be small or great"));
    }
    Ok(())
}

/// Refuses goals that have no least value, and a goal that is given twice: the front would have one dimension too many.
fn check_goals(table: Table, goals: &[Goal]) -> Result<(), Error> {
    for (at, Goal { column, .. }) in goals.iter().enumerate() {
        if !is_number(&type_of(table, column)?) {
            return Err(failure!(Usage, "`{column}` has no numbers, so that none of its values is the best"));
        }
        if goals[..at].iter().any(|before| before.column == *column) {
            return Err(failure!(Usage, "`{column}` is a goal twice"));
        }
    }
    Ok(())
}

/// The verdict of a constraint on each combination by its share of seeds. The frame gets the shares, and the ends of their
/// intervals.
fn verdicts_of_share(
    all: &mut Frame,
    rows: &Rows,
    constraint: &Constraint,
    by: &[&str],
    are_fixed: &[bool],
) -> Result<Vec<Verdict>, Error> {
    let (name, column) = (constraint.name(), &constraint.condition.column);
    let Some((_, values)) = rows.measures().iter().find(|(measure, _)| measure.name() == column) else {
        return Err(failure!(
            Usage,
            "`{name}`: `{column}` is a parameter, which has one value for all seeds: write a condition without a share"
        ));
    };
    let mut judged = Vec::new();
    for (group, is_fixed) in rows.groups(by)?.into_iter().zip(are_fixed) {
        let mut seeds = BTreeSet::new();
        let is_first = |row: &u32| rows.axis(SEED).is_none_or(|axis| seeds.insert(seed(axis, *row as usize)));
        if !is_fixed && !group.iter().all(is_first) {
            return Err(failure!(
                Usage,
                "`{name}`: some rows of one combination have the same seed, so that they have no share of seeds: choose rows by \
                 conditions, or combinations by more columns"
            ));
        }
        let values: Vec<f64> = group.iter().map(|row| values[*row as usize]).filter(|value| !value.is_nan()).collect();
        judged.extend(constraint.judge_share(&values, *is_fixed));
    }
    let title = format!("share of seeds, {name}");
    let column = |name: String, stat: Stat, value: fn(&Estimate) -> Option<f64>| {
        let tags = [(MEASURE, constraint.name().to_owned()), (STAT, stat.to_string()), (TITLE, title.clone())];
        let field = Field::new(name, DataType::Float64, true)
            .with_metadata(HashMap::from(tags.map(|(key, tag)| (key.to_owned(), tag))));
        let values: ArrayRef = Arc::new(judged.iter().map(|(estimate, _)| value(estimate)).collect::<Float64Array>());
        Column::of(&Arc::new(field), &values)
    };
    let (low, high) = (Stat::Low(95), Stat::High(95));
    all.push(column(name.to_owned(), Stat::Mean, |estimate| estimate.mean));
    all.push(column(named(low, name), low, |estimate| estimate.ends.map(|ends| ends.0)));
    all.push(column(named(high, name), high, |estimate| estimate.ends.map(|ends| ends.1)));
    Ok(judged.into_iter().map(|(_, verdict)| verdict).collect())
}

/// For each condition, how many combinations satisfy it, and the range of its column.
fn why_none(all: &Frame, subject: &[Constraint], satisfied: &[Vec<Verdict>]) -> Result<String, Error> {
    let mut text = format!("none of {} satisfies the conditions", count(all.rows() as u64, "combination"));
    for (constraint, rows) in subject.iter().zip(satisfied) {
        let column = all.column(constraint.name())?;
        let values = (0..column.len()).filter_map(|row| column.cell(row).number());
        let (least, most) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, m), v| (l.min(v), m.max(v)));
        let holds = rows.iter().filter(|verdict| verdict.holds).count();
        let range = match least <= most {
            true => format!(" lies between {} and {}", number(least), number(most)),
            false => String::new(),
        };
        text += &format!("\n{}{range}: its condition holds for {holds}", constraint.name());
    }
    Ok(text)
}
