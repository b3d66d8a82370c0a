//! Two sets of rows, compared pair by pair.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use powersweep_dataset::compare::{Pairs, compare, pairs};
use powersweep_dataset::frame::{UNIT, is_cost};
use powersweep_dataset::grouped::{CURRENCY, FooterFacts, SEEDS_ALIKE, collected, keys, refuse_twice, resampled};
use powersweep_dataset::reading::Reading;
use powersweep_dataset::replicates::{Method, seed};
use powersweep_dataset::scan::SEED;
use powersweep_dataset::source::{conditions, table_of, type_of, why_none};
use powersweep_dataset::subject::subject;
use powersweep_dataset::text::for_paper;
use powersweep_dataset::words::count;
use powersweep_dataset::{Axis, Cell, Comparison, Condition, Datasets, Error, Frame, Rows, failure};
use powersweep_engine::seeds::Dependence;
use powersweep_results::Table;

use crate::place::Place;

/// The column that tells the week of a job.
const SUBMIT: &str = "submit_s";
/// Length of a week (s).
const WEEK_S: f64 = 604_800.0;

/// Columns whose values are never pooled without being asked: different logs, and different signals.
const APART: [&str; 3] = ["workload", "signal", "signal_index"];
/// Fewer replicates make an interval that rests on little.
pub const FEW: usize = 5;
/// A sentence about intervals over few replicates.
pub(crate) const FEW_SAID: &str = " These are few: more would make the intervals narrower and surer.";

/// The table, columns and conditions of a comparison.
#[derive(Debug, Clone, Default)]
pub struct CompareOptions {
    /// The table; by default `tasks`, or `accounts` if a column or condition is of that table alone.
    pub table: Table,
    /// Columns of numbers; by default the usual metrics of the table.
    pub columns: Vec<String>,
    /// Conditions on the rows of both sets, such as `seed<3`.
    pub only: Vec<String>,
    /// A comparison for each combination of values of these columns, in which both sets vary. Workloads and signals have
    /// comparisons of their own in any case.
    pub by: Vec<String>,
    /// Columns whose values are pooled although they are workloads or signals.
    pub pool: Vec<String>,
}

/// A column of two sets of rows.
#[derive(Debug, Clone)]
pub struct ComparedColumn {
    /// The column.
    pub name: String,
    /// Its unit; empty without one.
    pub unit: String,
    /// The comparison; `None` if no pair has both values.
    pub comparison: Option<Comparison>,
}

/// The pairs with equal values of [`Compared::by`].
#[derive(Debug, Clone)]
pub struct ComparedGroup {
    /// The values.
    pub values: Vec<Cell>,
    /// Number of pairs.
    pub pairs: usize,
    /// Whether no seed changes anything in the pairs.
    pub are_alike: bool,
    /// Number of replicates of the pairs: seeds, or weeks.
    pub replicates: usize,
    /// Each column.
    pub columns: Vec<ComparedColumn>,
}

/// Two sets of rows, compared.
#[derive(Debug, Clone)]
pub struct Compared {
    /// The columns that have a comparison for each value.
    pub by: Vec<String>,
    /// The comparisons, in the order of the rows of A.
    pub groups: Vec<ComparedGroup>,
    /// Number of pairs.
    pub pairs: usize,
    /// The columns with equal values in a pair.
    pub paired_by: Vec<String>,
    /// Those of them whose values are pooled: each seed counts with all of them.
    pub pooled: Vec<String>,
    /// Rows of either set without a partner.
    pub single: (usize, usize),
    /// Whether the replicates are the weeks of one log, resampled; otherwise they are the seeds.
    pub are_weeks: bool,
    /// The dependence of the seeds.
    pub seeds: Dependence,
}

impl Compared {
    /// The comparisons for a paper: great and small numbers share a power of ten, which is in the unit.
    #[must_use]
    pub fn for_paper(mut self) -> Compared {
        for column in self.groups.iter_mut().flat_map(|group| &mut group.columns) {
            if let Some(comparison) = &mut column.comparison {
                let (divisor, unit) = for_paper(&column.unit, comparison.greatest());
                (*comparison, column.unit) = (comparison.divided(divisor), unit);
            }
        }
        self
    }

    /// A row for each group and column, for programs.
    pub fn rows(&self) -> RecordBatch {
        let all = || self.groups.iter().flat_map(|group| group.columns.iter().map(move |column| (group, column)));
        let texts = |of: fn(&ComparedColumn) -> &str| -> ArrayRef {
            Arc::new(StringArray::from_iter_values(all().map(|(_, column)| of(column))))
        };
        let counts = |of: fn(&Comparison) -> usize| -> ArrayRef {
            let count = |column: &ComparedColumn| column.comparison.as_ref().map_or(0, of) as i64;
            Arc::new(Int64Array::from_iter_values(all().map(|(_, column)| count(column))))
        };
        let reals = |of: fn(&Comparison) -> Option<f64>| -> ArrayRef {
            let value = |column: &ComparedColumn| column.comparison.as_ref().and_then(of);
            Arc::new(all().map(|(_, column)| value(column)).collect::<Float64Array>())
        };
        let keys = self.by.iter().enumerate().map(|(at, name)| {
            let values = all().map(|(group, _)| group.values[at].exact());
            (name.as_str(), Arc::new(StringArray::from_iter_values(values)) as ArrayRef)
        });
        let columns = [
            ("metric", texts(|column| &column.name)),
            ("unit", texts(|column| &column.unit)),
            ("pairs", counts(|of| of.pairs)),
            ("replicates", counts(|of| of.replicates)),
            ("mean_a", reals(|of| Some(of.a))),
            ("mean_b", reals(|of| Some(of.b))),
            ("difference", reals(|of| Some(of.difference.value))),
            ("difference_low", reals(|of| of.difference.ends.map(|ends| ends.0))),
            ("difference_high", reals(|of| of.difference.ends.map(|ends| ends.1))),
            ("ratio", reals(|of| Some(of.ratio.value))),
            ("ratio_low", reals(|of| of.ratio.ends.map(|ends| ends.0))),
            ("ratio_high", reals(|of| of.ratio.ends.map(|ends| ends.1))),
            ("a_less", reals(|of| Some(of.a_less))),
            ("b_less", reals(|of| Some(of.b_less))),
        ];
        let columns = keys.chain(columns).map(|(name, values)| (name, values, true));
        RecordBatch::try_from_iter_with_nullable(columns).expect("a value for each column")
    }

    /// A row for each group and column, whose keys are the values of the group.
    pub fn frame(&self) -> Frame {
        Frame::new(self.rows(), self.by.len())
    }

    /// The rows without a partner in words, if there are any.
    pub fn left_out(&self) -> Option<String> {
        let (a, b) = self.single;
        let rows = count(a as u64, "row");
        (self.single != (0, 0)).then(|| format!("{rows} of A and {b} of B have no partner and are left out"))
    }

    /// Sentences about the comparison: `a` and `b` are the two sets as they were named.
    pub fn said(&self, a: &str, b: &str) -> String {
        let by = match self.paired_by.is_empty() {
            true => String::new(),
            false => format!(" with the same {}", self.paired_by.join(", ")),
        };
        let mut text = format!("A is {a}, B is {b}: {}{by}.", count(self.pairs as u64, "pair"));
        if let Some(left_out) = self.left_out() {
            text += &format!(" {left_out}.");
        }
        if !self.pooled.is_empty() {
            text += &format!(" All values of {} are pooled.", self.pooled.join(", "));
        }
        let replicates = self.replicates_min();
        text += &match (self.are_weeks, replicates) {
            (true, 0 | 1) => " The jobs are of one week: there is no interval.".to_owned(),
            (true, weeks) => format!(" Intervals (95%) are those of a bootstrap of {weeks} weeks."),
            (false, 0 | 1) if self.groups.iter().any(|group| group.are_alike) => format!(" There is {SEEDS_ALIKE}."),
            (false, 0 | 1) => {
                " One seed has no interval: several seeds have one, or the weeks of the table jobs.".to_owned()
            }
            (false, seeds) => match self.groups.iter().map(|group| group.replicates).max() {
                Some(most) if most > seeds => format!(" Intervals (95%) are over {seeds} to {most} seeds."),
                _ => format!(" Intervals (95%) are over {seeds} seeds."),
            },
        };
        if let Dependence::Resampled(draw) = self.seeds
            && replicates > 1
        {
            let said = resampled(draw);
            text += &format!(" {}{}.", said[..1].to_uppercase(), &said[1..]);
        }
        if (2..FEW).contains(&replicates) {
            text += FEW_SAID;
        }
        text
    }

    /// The least number of replicates of a group.
    pub fn replicates_min(&self) -> usize {
        self.groups.iter().map(|group| group.replicates).min().unwrap_or(0)
    }
}

impl Place {
    /// Compares two sets of rows pair by pair. A set is `EXPERIMENT` or `EXPERIMENT:CONDITION,...`; a pair has the same
    /// workload, machine and seed. Intervals are over replicates: the seeds, or the weeks of a log that has one seed.
    ///
    /// # Errors
    /// An experiment, column or condition is unknown, or the rows make no pairs.
    pub async fn compare(&self, a: &str, b: &str, options: &CompareOptions) -> Result<Compared, Error> {
        let of_conditions = options.only.iter().map(|text| Condition::column_of(text));
        let names = options.columns.iter().map(|name| name.trim()).chain(of_conditions);
        let table = if options.table == Table::Tasks { table_of(names) } else { options.table };
        let options = &CompareOptions { table, ..options.clone() };
        if options.table == Table::Failures {
            return Err(failure!(Usage, "failures have nothing to compare; choose tasks, jobs, series or accounts"));
        }
        let datasets = self.datasets().await?;
        let (a, b) = (Side::open(&datasets, a, options).await?, Side::open(&datasets, b, options).await?);
        a.known.say_unmeasured(&datasets, options.table);
        let axes: BTreeSet<&str> = a.varying().chain(b.varying()).chain([SEED]).collect();
        let mut axes: Vec<&str> = axes.into_iter().chain(keys(options.table).iter().copied()).collect();
        let mut measures: Vec<&str> = match options.columns.is_empty() {
            true => a.known.usual(options.table),
            false => options.columns.iter().map(|name| name.trim()).collect(),
        };
        check_own(options.table, &measures)?;
        let compared = measures.len();
        if options.table == Table::Jobs {
            measures.push(SUBMIT);
        }
        axes.retain(|name| !measures.contains(name));
        let columns = [axes.as_slice(), measures.as_slice()];
        let sides = (&a, &b);
        let (a, of_a) = a.rows(&datasets, options.table, columns).await?;
        let (b, of_b) = b.rows(&datasets, options.table, columns).await?;
        let currencies = [of_a.as_ref(), of_b.as_ref()];
        let found = pairs(&a, &b)?;
        check_same(sides, &a, &b)?;
        let by = groups_by(&found, options)?;
        let names: Vec<&str> = by.iter().map(String::as_str).collect();
        let of_seeds = dependence(&a, &b, &found.rows);
        let seeds = a.axis(SEED).filter(|_| of_seeds != Dependence::Alike && found.by.iter().any(|name| name == SEED));
        // The weeks of one draw are those of the log again: they are no sample of it.
        let are_drawn = matches!(of_seeds, Dependence::Resampled(_));
        let are_weeks = options.table == Table::Jobs && seeds.is_none() && !are_drawn;
        let replicate = |row: usize| match seeds {
            Some(seeds) => seed(seeds, row),
            None if are_weeks => (a.measures()[compared].1[row] / WEEK_S).floor() as i64,
            None => 0,
        };
        let partners: HashMap<usize, usize> = found.rows.iter().copied().collect();
        let group = |rows: Vec<u32>| {
            let rows: Vec<(usize, usize)> =
                rows.iter().filter_map(|row| Some((*row as usize, *partners.get(&(*row as usize))?))).collect();
            let first = rows.first()?.0;
            let of_group = dependence(&a, &b, &rows);
            let is_one = !are_weeks && of_group == Dependence::Alike;
            let method = if are_weeks { Method::Bootstrap } else { Method::of(of_group, 95) };
            let replicate = |row: usize| if is_one { 0 } else { replicate(row) };
            let column = |at: usize| {
                let ((field, of_a), (_, of_b)) = (&a.measures()[at], &b.measures()[at]);
                let name = field.name().clone();
                let unit = match unit(at, [&a, &b], currencies, &rows) {
                    Err(text) if options.columns.is_empty() => {
                        datasets.notes().say(&text);
                        return Ok(ComparedColumn { name, unit: String::new(), comparison: None });
                    }
                    found => found.map_err(|text| failure!(Usage, "{text}"))?,
                };
                let values = rows.iter().map(|(row, partner)| (replicate(*row), of_a[*row], of_b[*partner]));
                Ok(ComparedColumn { name, unit, comparison: compare(values, method) })
            };
            let replicates: BTreeSet<i64> = rows.iter().map(|(row, _)| replicate(*row)).collect();
            let columns = (0..compared).map(column).collect::<Result<_, Error>>();
            Some(columns.map(|columns| ComparedGroup {
                values: names.iter().filter_map(|name| Some(a.axis(name)?.cell(first).clone())).collect(),
                pairs: rows.len(),
                are_alike: is_one,
                replicates: replicates.len(),
                columns,
            }))
        };
        let groups = a.groups(&names)?;
        let pooled = pooled(&a, &groups, &found, (&names, options.table));
        let groups = groups.into_iter().filter_map(group).collect::<Result<_, Error>>()?;
        let Pairs { rows, by: paired_by, single } = found;
        Ok(Compared { by, groups, pairs: rows.len(), paired_by, pooled, single, are_weeks, seeds: of_seeds })
    }
}

/// The columns with equal values in a pair, some of whose values are in one of the groups.
fn pooled(a: &Rows, groups: &[Vec<u32>], found: &Pairs, (by, table): (&[&str], Table)) -> Vec<String> {
    let paired: HashSet<usize> = found.rows.iter().map(|pair| pair.0).collect();
    // A parameter of the workloads differs between them, and not within one.
    let varies = |name: &str, rows: &[u32]| {
        let mut paired = rows.iter().map(|row| *row as usize).filter(|row| paired.contains(row));
        let axis = a.axis(name);
        let first = paired.next();
        axis.zip(first).is_some_and(|(axis, first)| paired.any(|row| axis.code(row) != axis.code(first)))
    };
    let is_pooled = |name: &&String| {
        let name = name.as_str();
        let is_parameter = name != SEED && !by.contains(&name) && !keys(table).contains(&name);
        is_parameter && groups.iter().any(|rows| varies(name, rows))
    };
    found.by.iter().filter(is_pooled).cloned().collect()
}

/// The dependence of the seeds of these pairs.
fn dependence(a: &Rows, b: &Rows, pairs: &[(usize, usize)]) -> Dependence {
    a.dependence(pairs.iter().map(|pair| pair.0)).max(b.dependence(pairs.iter().map(|pair| pair.1)))
}

/// Refuses metrics of tasks in a table with many rows of a task: each row repeats the one value, which is no observation.
fn check_own(table: Table, measures: &[&str]) -> Result<(), Error> {
    let own = table.schema();
    let is_foreign = |name: &&&str| own.column_with_name(name).is_none() && type_of(Table::Tasks, name).is_ok();
    match measures.iter().find(is_foreign).filter(|_| matches!(table, Table::Jobs | Table::Series)) {
        Some(name) => Err(failure!(
            Usage,
            "`{name}` has one value for a task, which each of its rows in {table} would repeat: it is compared in the table \
             tasks. Conditions may have it"
        )),
        None => Ok(()),
    }
}

/// Refuses pairs of two seeds, or of two workloads of one experiment, that no condition chose: others failed or have not run.
fn check_same((of_a, of_b): (&Side, &Side), a: &Rows, b: &Rows) -> Result<(), Error> {
    let is_one = of_a.reading.experiment() == of_b.reading.experiment();
    for name in [SEED, "workload"].into_iter().filter(|name| *name == SEED || is_one) {
        let only = |rows: &Rows| rows.axis(name).and_then(|axis| <[Cell; 1]>::try_from(axis.values().to_vec()).ok());
        let Some(([one], [other])) = only(a).zip(only(b)) else { continue };
        let mut chosen = of_a.conditions.iter().chain(&of_b.conditions).map(|text| Condition::column_of(text));
        if one != other && !chosen.any(|column| subject(column) == subject(name)) {
            let (one, other) = (one.exact(), other.exact());
            return Err(failure!(
                Usage,
                "A has rows of {name} {one} alone, and B of {name} {other}: they make no pair"
            ));
        }
    }
    Ok(())
}

/// The columns that have a comparison for each value: the chosen ones, and workloads and signals that are not pooled.
fn groups_by(found: &Pairs, options: &CompareOptions) -> Result<Vec<String>, Error> {
    refuse_twice(&options.by)?;
    for name in options.by.iter().chain(&options.pool) {
        if !found.by.contains(name) {
            let paired = found.by.join(", ");
            return Err(failure!(Usage, "both sets do not vary in `{name}`; pairs have the same values of {paired}"));
        }
    }
    let is_apart = |name: &&&str| found.by.iter().any(|by| by == **name);
    let apart = APART.iter().filter(is_apart).map(|name| (*name).to_owned());
    let mut by: Vec<String> = apart.filter(|name| !options.pool.contains(name) && !options.by.contains(name)).collect();
    by.extend(options.by.iter().cloned());
    Ok(by)
}

/// The experiment and the conditions of a set, `EXPERIMENT` or `EXPERIMENT:CONDITION,...`.
pub fn split_set(set: &str) -> (&str, &str) {
    set.split_once(':').unwrap_or((set, ""))
}

/// One set of rows.
struct Side {
    reading: Reading,
    conditions: Vec<String>,
    known: FooterFacts,
}

impl Side {
    /// Opens `EXPERIMENT:CONDITION,...`.
    async fn open(datasets: &Datasets, text: &str, options: &CompareOptions) -> Result<Side, Error> {
        let (experiment, own) = split_set(text);
        let reading = datasets.read(experiment, options.table).await?;
        reading.check_table()?;
        let known = FooterFacts::read(datasets, experiment).await?;
        let conditions = Condition::split(own).into_iter().chain(options.only.iter().cloned()).collect();
        Ok(Side { reading, conditions, known })
    }

    fn varying(&self) -> impl Iterator<Item = &str> {
        let varying = self.known.candidates.iter().filter(|candidate| candidate.varies());
        varying.map(|candidate| candidate.name.as_str())
    }

    /// The rows, and the currency of each if there are costs.
    async fn rows(
        &self,
        datasets: &Datasets,
        table: Table,
        [axes, measures]: [&[&str]; 2],
    ) -> Result<(Rows, Option<Axis>), Error> {
        let only = conditions(table, &self.conditions)?;
        let has_costs = table == Table::Accounts && measures.iter().any(|name| is_cost(name));
        let axes: Vec<&str> = axes.iter().copied().chain(has_costs.then_some(CURRENCY)).collect();
        let rows = collected(datasets, &self.reading, &self.known, [&axes, measures], only).await?;
        if rows.is_empty() && !self.conditions.is_empty() {
            return Err(failure!(Usage, "{}", why_none(datasets, &self.reading, &self.conditions).await?));
        }
        let currencies = rows.axis(CURRENCY).cloned();
        Ok((rows.without(CURRENCY), currencies))
    }
}

/// The unit of a measure in these pairs. That of a cost is the currency of the rows that have one.
///
/// # Errors
/// The values of A and B have different units: their mean or difference has no meaning.
fn unit(
    at: usize,
    sides: [&Rows; 2],
    currencies: [Option<&Axis>; 2],
    pairs: &[(usize, usize)],
) -> Result<String, String> {
    let name = sides[0].measures()[at].0.name();
    let of_side = |side: usize| -> BTreeSet<String> {
        let (field, values) = &sides[side].measures()[at];
        let own = field.metadata().get(UNIT).cloned().unwrap_or_default();
        let Some(axis) = currencies[side].filter(|_| own.is_empty() && is_cost(name)) else {
            return BTreeSet::from([own]);
        };
        let rows = pairs.iter().map(|pair| if side == 0 { pair.0 } else { pair.1 });
        let known = rows.filter(|row| !values[*row].is_nan() && !axis.cell(*row).is_null());
        known.map(|row| axis.cell(row).exact()).collect()
    };
    let (of_a, of_b) = (of_side(0), of_side(1));
    let all: Vec<&String> = of_a.union(&of_b).collect();
    let listed = |units: &BTreeSet<String>| units.iter().map(String::as_str).collect::<Vec<_>>().join(" and ");
    match all.as_slice() {
        [] => Ok(String::new()),
        [one] => Ok((*one).clone()),
        _ => Err(format!(
            "`{name}` has the unit {} in A and {} in B: values in different units are not compared",
            listed(&of_a),
            listed(&of_b)
        )),
    }
}
