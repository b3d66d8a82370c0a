//! Sensitivity: how much each parameter of a design, or each axis of a grid, moves a metric.

mod asked;
mod design;
mod grid;

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};

use arrow::datatypes::FieldRef;
use powersweep_dataset::frame::UNIT;
use powersweep_dataset::grouped::{FooterFacts, check_one_signal, collected, keys};
use powersweep_dataset::planned::{self, Planned, is_complete};
use powersweep_dataset::scan::SEED;
use powersweep_dataset::sensitivity::{Index, Values, table};
use powersweep_dataset::source::{conditions, table_of, why_none};
use powersweep_dataset::survey::Indices;
use powersweep_dataset::words::{count, number};
use powersweep_dataset::{Cell, Column, Condition, Datasets, Error, Frame, Kind, OrKind, Rows, failure};
use powersweep_experiments::reading::add_new;
use powersweep_experiments::{DesignPoints, Manifest};
use powersweep_results::Table;

use crate::compare::{FEW, FEW_SAID};
use crate::place::Place;
use crate::results::without_manifest;
use asked::{Asked, Scope, with_key};
use design::Design;

/// Greatest number of points of a design whose indices a page has.
const PAGE_POINTS_MAX: u64 = 100_000;
/// Kinds of designs that have indices.
const KINDS: [&str; 2] = ["morris", "saltelli"];

/// The metrics, the design and the rows of an analysis.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SensitivityOptions {
    /// The metrics of `tasks` or `accounts`.
    pub of: Vec<String>,
    /// The design of the manifest; by default the only one that has indices, or the grid of all axes.
    pub design: Option<String>,
    /// Indices for each combination of values of these columns; of a design by default of all other columns that vary.
    pub by: Vec<String>,
    /// Conditions on the rows, such as `policy=easy`.
    pub only: Vec<String>,
    /// The least and the greatest value that a metric may have where it is missing; by default those of the rows.
    pub ranges: Vec<(String, f64, f64)>,
}

/// The points that the indices are from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Points {
    /// Trajectories of a Morris design.
    Trajectories(u64),
    /// Base points of a design of Saltelli.
    BasePoints(u64),
    /// Cells of a grid.
    Cells(u64),
}

/// A point that lacks a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// The metrics that it lacks.
    pub metrics: Vec<String>,
    /// The parameters with their values, as conditions.
    pub point: String,
    /// The seeds of which it is missing.
    pub seeds: Vec<i64>,
    /// Whether these rows are there, without a value of the metrics.
    pub has_rows: bool,
}

impl Missing {
    /// The point and what it lacks, in words.
    pub fn said(&self) -> String {
        let Missing { metrics, point, seeds, has_rows } = self;
        let seeds: Vec<String> = seeds.iter().map(ToString::to_string).collect();
        let why = if *has_rows { format!("its rows have no {}", metrics.join(", ")) } else { "no row".to_owned() };
        format!("{point} (seed {}): {why}", seeds.join(", "))
    }
}

/// Indices of the parameters of an experiment.
#[derive(Debug, Clone)]
pub struct Sensitivity {
    /// The columns whose values have indices of their own.
    by: Vec<String>,
    rows: Vec<Row>,
    /// The points.
    pub points: Points,
    /// Number of seeds.
    pub seeds: usize,
    /// The points without a value.
    pub missing: Vec<Missing>,
    /// For each metric with missing values their range.
    pub ranges: Vec<(String, f64, f64)>,
    /// The indices that are not there, with the reason.
    pub refused: Vec<String>,
}

impl Sensitivity {
    /// A row for each metric and each parameter or pair of parameters, with the indices and the ends of their intervals. Those
    /// that move the metric most come first. An index that a missing value touches has no value, and its bounds as ends.
    pub fn frame(&self) -> Frame {
        let all: Vec<&Row> = self.rows.iter().collect();
        let metric = Column::texts("metric", "metric", all.iter().map(|row| &row.metric));
        let is_morris = matches!(self.points, Points::Trajectories(_));
        let unit = is_morris.then(|| Column::texts("unit", "unit", all.iter().map(|row| &row.unit)));
        self.framed(&all, [metric].into_iter().chain(unit), "")
    }

    /// The metrics, each with the frame of its rows, whose elementary effects have the metric's unit.
    pub fn of_metrics(&self) -> Vec<(&str, Frame)> {
        let mut seen = BTreeSet::new();
        let metrics = self.rows.iter().map(|row| row.metric.as_str()).filter(|metric| seen.insert(*metric));
        let frame = |metric| {
            let own: Vec<&Row> = self.rows.iter().filter(|row| row.metric == metric).collect();
            let unit = if matches!(self.points, Points::Trajectories(_)) { own[0].unit.as_str() } else { "" };
            (metric, self.framed(&own, [], unit))
        };
        metrics.map(frame).collect()
    }

    fn framed(&self, rows: &[&Row], more: impl IntoIterator<Item = Column>, unit: &str) -> Frame {
        let names: &[&str] = match self.points {
            Points::Trajectories(_) => &["mu_star", "mu", "sigma"],
            _ if self.rows.iter().any(|row| row.with.is_some()) => &["S1", "ST", "S2"],
            _ => &["S1", "ST"],
        };
        let has_strata = self.rows.iter().any(|row| row.keys.len() > self.by.len());
        let of_keys = self.by.iter().map(String::as_str).chain(has_strata.then_some("where"));
        let key = |(at, name)| Column::texts(name, name, rows.iter().map(|row| &row.keys[at]));
        let mut keys: Vec<Column> = of_keys.enumerate().map(key).chain(more).collect();
        keys.push(Column::texts("parameter", "parameter", rows.iter().map(|row| &row.parameter)));
        if names.contains(&"S2") {
            keys.push(Column::optional_texts("with", "with", rows.iter().map(|row| row.with.as_ref())));
        }
        let indices = |row: &&Row| (0..names.len()).map(|at| row.indices.get(at).copied().flatten()).collect();
        table::frame(keys, names, unit, &rows.iter().map(indices).collect::<Vec<_>>())
    }

    /// Sentences about the indices.
    pub fn said(&self) -> String {
        if self.rows.is_empty() && !self.refused.is_empty() {
            return self.refused.join(" ");
        }
        let seeds = count(self.seeds as u64, "seed");
        let mut text = match self.points {
            Points::Trajectories(of) => {
                format!("Elementary effects from {of} trajectories, each for the whole range of a parameter")
            }
            Points::BasePoints(of) => format!("Shares of variance from {}", count(of, "base point")),
            Points::Cells(of) => format!("Shares of the variance of {}", count(of, "cell")),
        };
        text += &match (self.points, self.seeds) {
            (Points::Cells(_), 1) => {
                ", whose seeds are one or change nothing: shares of these cells have no interval.".to_owned()
            }
            (Points::Cells(_), _) => format!(". Intervals (95%) are over {seeds}."),
            (_, 1) => ". Intervals (95%) are those of a bootstrap of the points.".to_owned(),
            (..) => format!(". Intervals (95%) are those of a bootstrap of the points and a jackknife over {seeds}."),
        };
        if (2..FEW).contains(&self.seeds) {
            text += FEW_SAID;
        }
        for (metric, low, high) in &self.ranges {
            let points = self.missing.iter().filter(|missing| missing.metrics.contains(metric)).count();
            text += &format!(
                " {} no value of {metric}: indices that they touch are bounded, if the missing values lie between {} and {}.",
                match points {
                    1 => "One point has".to_owned(),
                    points => format!("{points} points have"),
                },
                number(*low),
                number(*high)
            );
        }
        self.refused.iter().for_each(|refused| text += &format!(" {refused}"));
        text
    }
}

/// The indices of a parameter, or of a pair.
#[derive(Debug, Clone)]
struct Row {
    keys: Vec<String>,
    metric: String,
    unit: String,
    parameter: String,
    with: Option<String>,
    indices: Vec<Option<Index>>,
}

/// Rows with the columns of an analysis.
struct Analysis<'a> {
    options: &'a SensitivityOptions,
    rows: Rows,
    /// Number of the first rows that are there; the others stand for cells without a row.
    real: usize,
    /// The seeds that the manifest asks for in all cells of a grid; `None` if all seeds of the rows count.
    asked: Option<HashSet<i64>>,
    /// The columns whose values have indices of their own.
    by: Vec<String>,
    found: Vec<Row>,
    missing: Vec<Missing>,
    ranges: Vec<(String, f64, f64)>,
    refused: Vec<String>,
}

impl Place {
    /// How much each parameter of a Morris or Saltelli design moves the metrics; without such a design, each axis of the grid.
    ///
    /// # Errors
    /// An experiment, column, condition or design is unknown, there is no metric, or a point has several rows with one seed.
    pub async fn sensitivity(&self, experiment: &str, options: &SensitivityOptions) -> Result<Sensitivity, Error> {
        of(&self.datasets().await?, experiment, options).await
    }
}

/// As [`Place::sensitivity`], of these datasets.
pub(crate) async fn of(
    datasets: &Datasets,
    experiment: &str,
    options: &SensitivityOptions,
) -> Result<Sensitivity, Error> {
    if options.of.is_empty() {
        return Err(failure!(Usage, "there is no metric: name a column of numbers, such as bsld_mean"));
    }
    let of_conditions = options.only.iter().map(|text| Condition::column_of(text));
    let table = table_of(
        options.of.iter().map(String::as_str).chain(of_conditions).chain(options.by.iter().map(String::as_str)),
    );
    let only = conditions(table, &options.only)?;
    let reading = datasets.read(experiment, table).await?;
    reading.check_table()?;
    let known = FooterFacts::read(datasets, experiment).await?;
    let text = reading.manifest().await?.ok_or_else(|| without_manifest(experiment))?;
    let manifest = Manifest::parse("the manifest of the rows", &text).or_kind(Kind::Usage)?;
    let design = chosen(&manifest, options.design.as_deref())?;
    let parameters: Vec<&str> = design.iter().flat_map(DesignPoints::parameters).collect();
    let of_signals: Vec<&str> = design.iter().flat_map(DesignPoints::of_signals).collect();
    let varying = known.candidates.iter().filter(|candidate| candidate.distinguishes() && candidate.name != SEED);
    let others = varying.map(|candidate| candidate.name.as_str()).filter(|name| !parameters.contains(name));
    let others: Vec<&str> = others.collect();
    // Cells whose tasks all failed have no row: the manifest has them.
    let planned = Planned::of(Some(&manifest), &only);
    let columns = planned.as_ref().map_or_else(Vec::new, |planned| planned.columns.clone());
    let lacking = columns.iter().map(String::as_str).filter(|name| design.is_none() && !others.contains(name));
    let others: Vec<&str> = others.iter().copied().chain(lacking).collect();
    let by: Vec<&str> = match (options.by.is_empty(), &design) {
        (true, Some(_)) => others.clone(),
        _ => options.by.iter().map(String::as_str).collect(),
    };
    if let Some(name) = by.iter().find(|name| parameters.contains(name)) {
        return Err(over_all(name));
    }
    let mut of_conditions = options.only.iter().map(|text| Condition::column_of(text));
    if let Some(name) = of_conditions.find(|name| parameters.contains(name)) {
        return Err(over_all(name));
    }
    let more = [SEED].into_iter().chain(keys(table).iter().copied());
    let all = parameters.iter().copied().chain(others.iter().copied()).chain(more);
    let mut axes: Vec<&str> = by.clone();
    add_new(&mut axes, all.filter(|name| !of_signals.contains(name)));
    let measures: Vec<&str> = options.of.iter().map(|name| name.trim()).collect::<BTreeSet<_>>().into_iter().collect();
    if let Some(name) = measures.iter().find(|name| axes.contains(name)) {
        return Err(failure!(Usage, "`{name}` is an axis, no metric"));
    }
    if let Some((name, ..)) = options.ranges.iter().find(|(name, ..)| !measures.contains(&name.as_str())) {
        let measures = measures.join(", ");
        return Err(failure!(Usage, "the range of `{name}` has no use: the indices are those of {measures}"));
    }
    let rows = collected(datasets, &reading, &known, [&axes, &measures], only.clone()).await?;
    let scope = Scope { datasets, experiment, is_complete: is_complete(&manifest, known.rows), only: &only };
    if rows.is_empty() {
        let why = why_none(datasets, &reading, &options.only).await?;
        return Err(failure!(Usage, "{why}"));
    }
    check_one_signal(&rows, &by)?;
    let rows = of_signals.iter().fold(rows, |rows, name| with_key(rows, &manifest, name));
    let Asked { rows, real, seeds: asked, refused } =
        Asked::of(rows, planned, &scope, design.is_some().then_some(&by)).await?;
    let by = by.into_iter().map(str::to_owned).collect();
    let (found, missing, ranges) = (Vec::new(), Vec::new(), Vec::new());
    let mut analysis = Analysis { options, rows, real, asked, by, found, missing, ranges, refused };
    let points = match &design {
        Some(design) => Design::new(design).analyse(&mut analysis)?,
        None => grid::analyse(&mut analysis, &others)?,
    };
    Ok(analysis.end(points))
}

/// The indices of the only design that has some, for a page; `None` without one.
///
/// # Errors
/// The rows cannot be read.
pub(crate) async fn of_design(datasets: &Datasets, experiment: &str, metric: &str) -> Result<Option<Indices>, Error> {
    let Some(manifest) = planned::manifest(&datasets.read(experiment, Table::Tasks).await?).await? else {
        return Ok(None);
    };
    let Ok(Some(design)) = chosen(&manifest, None) else { return Ok(None) };
    let without = |said| Ok(Some(Indices { rows: None, said }));
    let points = design.points_count();
    if points > PAGE_POINTS_MAX {
        return without(format!(
            "The design `{}` has {points} points: a page has indices of at most {PAGE_POINTS_MAX}.",
            design.label()
        ));
    }
    let options = SensitivityOptions { of: vec![metric.to_owned()], ..SensitivityOptions::default() };
    match of(datasets, experiment, &options).await {
        Ok(found) => {
            let rows = found.of_metrics().pop().map(|(_, rows)| rows);
            Ok(Some(Indices { rows, said: found.said() }))
        }
        // What the rows lack may come later.
        Err(error) if error.kind == Kind::Usage => without(error.message),
        Err(error) => Err(error),
    }
}

/// The design that is chosen; `None` for the grid.
fn chosen(manifest: &Manifest, label: Option<&str>) -> Result<Option<DesignPoints>, Error> {
    let all: Vec<DesignPoints> = manifest.designs().collect();
    let named = |of: &[DesignPoints]| of.iter().map(DesignPoints::label).collect::<Vec<_>>().join(", ");
    let has_indices = |design: &DesignPoints| KINDS.contains(&design.kind().name);
    let found: Vec<DesignPoints> = match label {
        Some(label) => all.iter().filter(|design| design.label() == label).cloned().collect(),
        None => all.iter().filter(|design| has_indices(design)).cloned().collect(),
    };
    match (found.as_slice(), label) {
        ([design], _) if has_indices(design) => Ok(Some(design.clone())),
        ([design], _) => Err(without_indices(design)),
        ([], Some(label)) if all.is_empty() => {
            Err(failure!(Usage, "the manifest has no design `{label}`, and no other"))
        }
        ([], Some(label)) => Err(failure!(Usage, "the manifest has no design `{label}`; it has {}", named(&all))),
        ([], None) => match all.first() {
            Some(design) => Err(without_indices(design)),
            None => Ok(None),
        },
        _ => Err(failure!(Usage, "the manifest has several designs: choose one of {}", named(&found))),
    }
}

fn over_all(parameter: &str) -> Error {
    failure!(Usage, "`{parameter}` is a parameter of the design: indices are over all its values")
}

fn without_indices(design: &DesignPoints) -> Error {
    failure!(
        Usage,
        "the design `{}` is of the kind {}, whose points have no indices: designs of the kinds {} have, and grids",
        design.label(),
        design.kind().name,
        KINDS.join(" and ")
    )
}

impl Analysis<'_> {
    /// The range of the missing values of a metric in these rows; `None` if no row has a value.
    fn range(&self, metric: &str, values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
        let given = self.options.ranges.iter().find(|(name, ..)| name == metric).map(|(_, low, high)| (*low, *high));
        let ends = values
            .filter(|value| value.is_finite())
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        (ends.0 <= ends.1).then_some(given.unwrap_or(ends))
    }

    /// Notes the points without a value. `point`: the values of a point as conditions. `has_row`: whether a seed has a row there.
    fn note_missing(
        &mut self,
        metric: &str,
        values: &Values,
        seeds: &[i64],
        point: impl Fn(usize) -> String,
        has_row: impl Fn(usize, usize) -> bool,
    ) {
        let before = self.missing.len();
        let mut seen = BTreeSet::new();
        for at in (0..values.points()).filter(|at| values.is_missing(*at)) {
            // Points with equal values are one task.
            if !seen.insert(point(at)) {
                continue;
            }
            let lacking: Vec<usize> = (0..seeds.len()).filter(|seed| values.by_seed[*seed][at].is_nan()).collect();
            self.missing.push(Missing {
                metrics: vec![metric.to_owned()],
                point: point(at),
                has_rows: lacking.iter().all(|seed| has_row(*seed, at)),
                seeds: lacking.into_iter().map(|seed| seeds[seed]).collect(),
            });
        }
        if self.missing.len() > before {
            let (low, high) = values.range;
            match self.ranges.iter_mut().find(|(name, ..)| name == metric) {
                Some((_, least, greatest)) => (*least, *greatest) = (least.min(low), greatest.max(high)),
                None => self.ranges.push((metric.to_owned(), low, high)),
            }
        }
    }

    fn end(mut self, points: Points) -> Sensitivity {
        let is_one = self.rows.are_fixed(0..self.rows.len());
        let is_asked = |seed: &&Cell| {
            let asked = self.asked.as_ref();
            asked.is_none_or(|asked| matches!(seed, Cell::Int(seed) if asked.contains(seed)))
        };
        let seeds =
            self.rows.axis(SEED).filter(|_| !is_one).map_or(1, |axis| axis.values().iter().filter(is_asked).count());
        let all = self.rows.axis(SEED).map_or(1, |axis| axis.values().len());
        if seeds < all && !is_one {
            let left_out = format!(
                "{} of {all} seeds are left out: the manifest does not ask for them in every cell.",
                all - seeds
            );
            self.refused.push(left_out);
        }
        let Analysis { by, found: rows, missing, ranges, refused, .. } = self;
        let missing = merged(missing);
        Sensitivity { by, rows, points, seeds, missing, ranges, refused }
    }
}

/// Each point once, with all metrics that it lacks for the same seeds.
fn merged(all: Vec<Missing>) -> Vec<Missing> {
    let mut merged: Vec<Missing> = Vec::new();
    let mut places: HashMap<(String, Vec<i64>, bool), usize> = HashMap::new();
    for missing in all {
        match places.entry((missing.point.clone(), missing.seeds.clone(), missing.has_rows)) {
            Entry::Occupied(place) => merged[*place.get()].metrics.extend(missing.metrics),
            Entry::Vacant(place) => {
                place.insert(merged.len());
                merged.push(missing);
            }
        }
    }
    merged
}

/// Puts the parameters that move the metric most first, behind them the pairs. `at`: the index that says how much.
fn sort(rows: &mut [Row], at: usize) {
    let size = |row: &Row| {
        let index = if row.with.is_some() { row.indices[2] } else { row.indices[at] };
        index.map_or(f64::NEG_INFINITY, |index| index.span.high)
    };
    rows.sort_by(|one, other| one.with.is_some().cmp(&other.with.is_some()).then(size(other).total_cmp(&size(one))));
}

/// A value as a condition of a row.
fn condition(name: &str, value: &Cell) -> String {
    let text = if value.is_null() { String::new() } else { value.exact() };
    format!("{name}={text}")
}

/// The unit of a column.
fn unit(field: &FieldRef) -> String {
    field.metadata().get(UNIT).cloned().unwrap_or_default()
}

/// A combination of values in words.
fn told(by: &[String], keys: &[String]) -> String {
    match by.is_empty() {
        true => "the experiment".to_owned(),
        false => by.iter().zip(keys).map(|(name, key)| format!("{name}={key}")).collect::<Vec<_>>().join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_that_lacks_several_metrics_is_named_once() {
        let missing = |metric: &str, point: &str, has_rows| Missing {
            metrics: vec![metric.to_owned()],
            point: point.to_owned(),
            seeds: vec![1],
            has_rows,
        };
        let all = vec![
            missing("a", "x=1", false),
            missing("a", "x=2", true),
            missing("b", "x=1", false),
            missing("b", "x=2", true),
        ];
        let said: Vec<String> = merged(all).iter().map(Missing::said).collect();
        assert_eq!(said, ["x=1 (seed 1): no row", "x=2 (seed 1): its rows have no a, b"]);
    }
}
