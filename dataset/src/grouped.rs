//! Statistics of the rows of a table, in groups.

use std::collections::BTreeSet;

use powersweep_engine::seeds::{self, Dependence, Draw};
use powersweep_experiments::Manifest;
use powersweep_experiments::reading::add_new;
use powersweep_results::Table;

use crate::error::usage;
use crate::frame::{MEASURE, STAT, is_cost};
use crate::group::{grouped_ratios, mixed};
use crate::planned::{self, Planned, is_complete};
use crate::reading::{ColumnStats, Reading};
use crate::rows::{is_number, parameter};
use crate::scan::{self, ColumnScan, INDEX, SEED, Tasks};
use crate::source::{self, conditions, why_none};
use crate::subject::subject;
pub use crate::subject::{SIGNAL, SIGNAL_INDEX, keys};
use crate::words::count;
use crate::{Axis, Cell, Column, Condition, Datasets, Error, Frame, Rows, Stat, baseline, failure, grouped, page};

/// The columns of `accounts` about a signal's block. Behind the first two, its settings, which may differ between the
/// combinations of its lists.
const SETTINGS: [&str; 14] = [
    SIGNAL,
    SIGNAL_INDEX,
    "signal_file",
    "zone",
    "signal_column",
    "anchor",
    "supply_efficiency",
    "battery_policy",
    "battery_kwh",
    "battery_charge_w",
    "battery_threshold",
    "battery_upper_threshold",
    "battery_window",
    "battery_efficiency",
];

/// The column of `accounts` with the currency of its costs.
pub const CURRENCY: &str = "currency";

/// Why rows of several seeds have no interval.
pub const SEEDS_ALIKE: &str = "no interval: nothing in these tasks depends on the seed, so that several seeds are one \
                               observation; `resample_days` or `submit_jitter_s` of a workload make seeds differ";

/// The sentence about intervals over draws from one log.
pub fn resampled(draw: Draw) -> String {
    let blocks = match draw {
        Draw::UNKNOWN => "the blocks".to_owned(),
        Draw { blocks, .. } => format!("the {blocks} blocks"),
    };
    format!(
        "each seed draws from {blocks} of one log with replacement: intervals are for another log of its machine, and more draws do \
         not narrow them below what one log tells"
    )
}

/// The counts of jobs that metrics of tasks leave out.
const UNMEASURED: [&str; 2] = ["warmup_jobs_count", "cooldown_jobs_count"];

/// A question about the rows of a table. The default names no column and no condition, and takes all rows.
#[derive(Debug, Clone, Default)]
pub struct Query {
    /// Columns of numbers; empty for the usual metrics of the table.
    pub columns: Vec<String>,
    /// Conditions that all rows satisfy, such as `policy=easy`.
    pub only: Vec<String>,
    /// A row of the answer for each combination of values of these columns.
    pub by: Vec<String>,
    /// Names of statistics; empty for the mean, and its interval over the seeds in the tables `tasks` and `accounts`. The
    /// interval of a ratio has two ends, so `ci` is `low` and `high` there.
    pub stats: Vec<String>,
    /// Conditions of the baseline: each row is divided by its partner in the baseline.
    pub ratio_to: Vec<String>,
    /// The values of this column of `by` become columns.
    pub pivot: Option<String>,
    /// Order by this column of the answer.
    pub sort: Option<String>,
    /// The greatest value first.
    pub descending: bool,
    /// Number of rows of the answer to leave out before the first one.
    pub skip: usize,
    /// Maximum number of rows of the answer.
    pub rows: Option<usize>,
}

/// What the footers of `tasks` tell of an experiment.
pub struct FooterFacts {
    /// The columns in which tasks may differ.
    pub candidates: Vec<ColumnScan>,
    metrics: Vec<&'static str>,
    /// Whether energies and powers are relative: no watts are known.
    pub is_relative: bool,
    /// Number of rows.
    pub rows: u64,
    /// Whether some tasks have jobs of a warm-up or a cool-down, which metrics of tasks leave out.
    has_unmeasured: bool,
    /// The manifest of the newest rows; `None` where it is not known.
    pub manifest: Option<Manifest>,
}

impl FooterFacts {
    /// Reads the footers.
    pub async fn read(datasets: &Datasets, experiment: &str) -> Result<FooterFacts, Error> {
        let candidates = scan::candidates();
        let names = candidates.iter().map(String::as_str).chain(page::LOOKED_AT).chain(UNMEASURED);
        let columns = scan::columns(names.collect::<BTreeSet<_>>());
        let reading = datasets.read(experiment, Table::Tasks).await?;
        let tasks = Tasks::open(&reading, &columns).await?;
        let groups = tasks.groups();
        let (metrics, is_relative) = (page::usual_metrics(&groups), page::are_relative(&groups));
        let rows = groups.iter().map(|group| group.rows() as u64).sum();
        let manifest = planned::manifest(&reading).await?;
        let is_zero = |value: &Cell| matches!(value, Cell::Null | Cell::Int(0));
        let has_jobs = |stats: ColumnStats| match stats {
            ColumnStats::Equal(value) => !is_zero(&value),
            ColumnStats::Between { greatest, .. } => !is_zero(&greatest),
            ColumnStats::Unknown => false,
        };
        let has_unmeasured = groups.iter().any(|group| UNMEASURED.iter().any(|name| has_jobs(group.stats(name))));
        Ok(FooterFacts {
            has_unmeasured,
            candidates: scan::search(&groups, &candidates).await?,
            metrics,
            is_relative,
            rows,
            manifest,
        })
    }

    /// The columns that are shown by default.
    pub fn usual(&self, table: Table) -> Vec<&'static str> {
        match table {
            Table::Tasks => self.metrics.clone(),
            Table::Jobs => vec!["wait_s", "run_s", "energy_j"],
            Table::Series => vec!["value"],
            Table::Accounts => vec!["jobs_emissions_g", "window_emissions_g", "jobs_cost", "window_cost"],
            Table::Failures => vec![INDEX],
        }
    }

    /// Says that rows of jobs have more jobs than the metrics of their tasks.
    pub fn say_unmeasured(&self, datasets: &Datasets, table: Table) {
        if self.has_unmeasured && table == Table::Jobs {
            datasets.notes().say(
                "jobs of the warm-up and the cool-down are among these rows; the metrics of tasks leave them out, so that means differ",
            );
        }
    }

    /// Whether some rows may be of a log, whose tasks no seed changes.
    fn may_have_logs(&self) -> bool {
        let source = self.candidates.iter().find(|column| column.name == seeds::READ[0]).and_then(ColumnScan::only);
        let of_source =
            |source: &Cell| seeds::dependence_by(|name| parameter(source).filter(|_| name == seeds::READ[0]));
        source.as_ref().map(of_source) != Some(Dependence::Independent)
    }

    /// Whether some rows are of blocks that the seed draws.
    fn has_draws(&self) -> bool {
        self.candidates.iter().any(|column| column.name == seeds::RESAMPLE_DAYS && column.value().is_some())
    }

    /// Says which combinations of the manifest have no row, and how many lack seeds: their means are over other inputs, and the
    /// missing tasks, which may have failed, would change them. Columns other than axes make no combinations.
    ///
    /// # Errors
    /// The rows cannot be read.
    pub async fn lacking(
        &self,
        datasets: &Datasets,
        reading: &Reading,
        by: &[&str],
        only: &[Condition],
    ) -> Result<Vec<String>, Error> {
        let table = reading.table();
        let is_axis = |name: &&str| {
            *name != SEED && (self.candidates.iter().any(|axis| axis.name == *name) || settings(table).contains(name))
        };
        let has_replications = matches!(table, Table::Tasks | Table::Accounts) && by.iter().all(is_axis);
        let lacks = |manifest: &&Manifest| has_replications && !is_complete(manifest, self.rows);
        let planned = Planned::of(self.manifest.as_ref().filter(lacks), only);
        let Some(planned) = planned else { return Ok(Vec::new()) };
        let planned = planned.beside_rows(datasets, reading.experiment(), only).await?;
        Ok(planned.said(by, reading.is_whole()))
    }
}

/// The columns that [`differing_settings`] needs among the axes of rows of this table.
pub fn settings(table: Table) -> &'static [&'static str] {
    if table == Table::Accounts { &SETTINGS } else { &[] }
}

/// The settings in which rows of one group and signal differ that have a value of a measure. The number of the combination is
/// among them if they do not tell all combinations apart.
///
/// # Errors
/// A column of `by` was not read, or a group has values of several signals.
pub fn differing_settings(rows: &Rows, by: &[&str]) -> Result<Vec<&'static str>, Error> {
    if rows.axis(SIGNAL).is_none() {
        return Ok(Vec::new());
    }
    check_one_signal(rows, by)?;
    let has_value = |row: &u32| rows.measures().iter().any(|(_, values)| !values[*row as usize].is_nan());
    let differ = |apart: &[&str], name: &str| -> Result<bool, Error> {
        let Some(axis) = rows.axis(name) else { return Ok(false) };
        let groups = rows.groups(apart)?;
        Ok(groups.iter().any(|group| {
            let mut codes = group.iter().filter(|row| has_value(row)).map(|row| axis.code(*row as usize));
            codes.next().is_some_and(|first| codes.any(|code| code != first))
        }))
    };
    let apart: Vec<&str> = by.iter().copied().chain([SIGNAL]).collect();
    let mut found = Vec::new();
    for name in &SETTINGS[2..] {
        if differ(&apart, name)? {
            found.push(*name);
        }
    }
    if differ(&apart.iter().copied().chain(found.iter().copied()).collect::<Vec<_>>(), SIGNAL_INDEX)? {
        found.push(SIGNAL_INDEX);
    }
    Ok(found)
}

/// Refuses groups of rows of `accounts` in which a measure has values of several signals: a mean over signals has no meaning.
///
/// # Errors
/// Such a measure, with the signals.
pub fn check_one_signal(rows: &Rows, by: &[&str]) -> Result<(), Error> {
    let Some(signals) = rows.axis(SIGNAL) else { return Ok(()) };
    let own = Table::Accounts.schema();
    for group in rows.groups(by)? {
        for (measure, values) in rows.measures().iter().filter(|of| own.column_with_name(of.0.name()).is_some()) {
            let with_values = group.iter().map(|row| *row as usize).filter(|row| !values[*row].is_nan());
            let codes: BTreeSet<u32> = with_values.map(|row| signals.code(row)).collect();
            if codes.len() > 1 {
                let found: Vec<String> =
                    codes.into_iter().map(|code| signals.values()[code as usize].exact()).collect();
                let hint = format!("choose one by the condition signal={}, or group by `signal`", found[0]);
                let (name, all) = (measure.name(), found.join(", "));
                return Err(usage(format!("`{name}` has values of several signals ({all}): {hint}")));
            }
        }
    }
    Ok(())
}

/// The answer to a query.
pub async fn answer(datasets: &Datasets, reading: &Reading, query: &Query) -> Result<Frame, Error> {
    let table = reading.table();
    let stats = query.stats.iter().map(|name| Stat::parse(name)).collect::<Result<Vec<_>, _>>()?;
    let only = conditions(table, &query.only)?;
    let baseline = conditions(table, &query.ratio_to)?;
    let facts = FooterFacts::read(datasets, reading.experiment()).await?;
    let columns: Vec<&str> = match query.columns.is_empty() {
        true => facts.usual(table),
        false => query.columns.iter().map(String::as_str).collect(),
    };
    refuse_twice(&query.by)?;
    refuse_twice(&query.columns)?;
    let mut by: Vec<&str> = query.by.iter().map(String::as_str).collect();
    if by.is_empty() {
        // A ratio is asked for, of each of the compared rows.
        by.extend(baseline.iter().map(|condition| condition.column.as_str()).collect::<BTreeSet<_>>());
    }
    let chosen = shown(stats, table, !baseline.is_empty());
    let (mut measures, mut stats) = (columns.clone(), chosen.clone());
    // What the answer is ordered by is computed with it, also where it is not shown.
    let order = query.sort.as_deref().and_then(|name| order_by(name, table, &by));
    if let Some((stat, column)) = order {
        let is_shown = columns.contains(&column);
        measures.extend((!is_shown).then_some(column));
        let stat = stat.or((!is_shown).then_some(Stat::Mean)).filter(|stat| !stats.contains(stat));
        stats.extend(stat);
    }
    let candidates = &facts.candidates;
    let varying = candidates.iter().filter(|candidate| candidate.varies()).map(|candidate| candidate.name.as_str());
    let of_baseline = baseline.iter().map(|condition| condition.column.as_str());
    let paired = varying.chain(of_baseline).chain(keys(table).iter().copied());
    let others = others(candidates, &by, table);
    let mut axes = by.clone();
    let more =
        paired.filter(|_| !baseline.is_empty()).chain(others.iter().copied()).chain(settings(table).iter().copied());
    add_new(&mut axes, more.filter(|name| !measures.contains(name)));
    if stats.iter().any(|stat| stat.coverage().is_some()) && !axes.contains(&SEED) && !measures.contains(&SEED) {
        axes.push(SEED);
    }
    // Costs in several currencies have theirs beside them. A ratio has none, and one line of a pivoted answer has all.
    let has_costs = table == Table::Accounts && measures.iter().any(|name| is_cost(name)) && !facts.is_relative;
    let is_apart = has_costs && baseline.is_empty() && query.pivot.is_none() && !axes.contains(&CURRENCY);
    let is_ratio = has_costs && !baseline.is_empty() && !axes.contains(&CURRENCY);
    axes.extend((is_apart || is_ratio).then_some(CURRENCY));
    let mut rows = collected(datasets, reading, &facts, [&axes, &measures], only.clone()).await?;
    if rows.is_empty() && !query.only.is_empty() {
        return Err(usage(why_none(datasets, reading, &query.only).await?));
    }
    say_mixed(datasets, &rows, &by, &others)?;
    facts.say_unmeasured(datasets, table);
    facts.lacking(datasets, reading, &by, &only).await?.iter().for_each(|said| datasets.notes().say(said));
    if is_apart && currencies(&rows).len() > 1 {
        by.push(CURRENCY);
    } else if is_apart {
        rows = in_currency(rows);
    }
    let paid_in = rows.axis(CURRENCY).filter(|_| is_ratio).cloned();
    if is_ratio {
        rows = rows.without(CURRENCY);
    }
    let shaped = |frame| Ok(without_others(shaped(frame, query)?, &columns, &chosen));
    if baseline.is_empty() || rows.is_empty() {
        return shaped(grouped(&rows, &by, &stats)?);
    }
    let baseline = baseline::pairs(&rows, &baseline)?;
    paid_in.map_or(Ok(()), |axis| check_one_currency(&axis, &baseline.of))?;
    if baseline.lacking() > 0 {
        let lacking = count(baseline.lacking() as u64, "row");
        let left_out = "have no row of the baseline to be divided by, and are left out";
        datasets.notes().say(&format!("{lacking} {left_out}"));
    }
    shaped(grouped_ratios(&rows, &baseline, &by, &stats)?)
}

/// Refuses ratios of costs to costs in another currency. `partners`: of each row its row of the baseline.
fn check_one_currency(currencies: &Axis, partners: &[Option<usize>]) -> Result<(), Error> {
    for (row, partner) in partners.iter().enumerate().filter_map(|(row, partner)| Some((row, (*partner)?))) {
        let [one, other] = [row, partner].map(|row| currencies.cell(row));
        if one != other && !one.is_null() && !other.is_null() {
            let (one, other) = (one.exact(), other.exact());
            return Err(usage(format!(
                "costs in {one} have no ratio to costs in {other}: choose rows of one currency"
            )));
        }
    }
    Ok(())
}

/// The column of numbers that an answer is ordered by, and its statistic if `name` has one; `None` for a column of `by`, and for
/// any other name.
fn order_by<'a>(name: &'a str, table: Table, by: &[&str]) -> Option<(Option<Stat>, &'a str)> {
    let (stat, column) = match name.strip_suffix(')').and_then(|name| name.split_once('(')) {
        Some((stat, column)) => (Some(Stat::parse(stat).ok()?), column),
        None => (None, name),
    };
    let is_number = source::type_of(table, column).is_ok_and(|of| is_number(&of));
    (is_number && !by.contains(&column)).then_some((stat, column))
}

/// A frame without statistics other than these of these columns.
fn without_others(mut frame: Frame, columns: &[&str], stats: &[Stat]) -> Frame {
    let stats: Vec<String> = stats.iter().map(Stat::to_string).collect();
    let is_shown = |column: &Column| match [MEASURE, STAT].map(|key| column.field().metadata().get(key)) {
        [Some(measure), Some(stat)] => columns.contains(&measure.as_str()) && stats.contains(stat),
        _ => true,
    };
    let (names, keys): (Vec<String>, usize) =
        (frame.columns().filter(is_shown).map(|column| column.name().to_owned()).collect(), frame.keys());
    frame.keep(&names.iter().map(String::as_str).collect::<Vec<_>>());
    frame.with_keys(keys)
}

/// The chosen statistics; without a choice, those that a table has by default.
fn shown(chosen: Vec<Stat>, table: Table, is_ratio: bool) -> Vec<Stat> {
    let chosen = match table {
        _ if !chosen.is_empty() => chosen,
        Table::Failures => vec![Stat::Count],
        Table::Tasks | Table::Accounts => vec![Stat::Mean, Stat::Interval(95)],
        // Their seeds are in another table: an interval takes time, and is computed where someone asks.
        Table::Jobs | Table::Series => vec![Stat::Mean],
    };
    let ends = |stat: Stat| match stat {
        Stat::Interval(percent) if is_ratio => vec![Stat::Low(percent), Stat::High(percent)],
        stat => vec![stat],
    };
    chosen.into_iter().flat_map(ends).collect()
}

/// Rows of a table with these axes and measures. Energies without a power of the machine are relative. Costs have the currency
/// of the rows as their unit, if it is one.
pub async fn collected(
    datasets: &Datasets,
    reading: &Reading,
    facts: &FooterFacts,
    [axes, measures]: [&[&str]; 2],
    only: Vec<Condition>,
) -> Result<Rows, Error> {
    let is_own_cost = |name: &&str| reading.table() == Table::Accounts && is_cost(name);
    let currency = Some(CURRENCY).filter(|currency| measures.iter().any(is_own_cost) && !axes.contains(currency));
    // The dependence of the seeds, where it counts.
    let has_logs = axes.contains(&SEED) && reading.table() != Table::Failures && facts.may_have_logs();
    let read_for_seeds = if facts.has_draws() { seeds::columns() } else { seeds::READ.to_vec() };
    let of_seeds: Vec<&str> = read_for_seeds.into_iter().filter(|name| has_logs && !axes.contains(name)).collect();
    let read: Vec<&str> = axes.iter().copied().chain(currency).chain(of_seeds.iter().copied()).collect();
    let mut rows = source::rows(datasets, reading, [&read, measures], only).await?;
    if has_logs {
        rows = of_seeds.into_iter().fold(rows.with_dependence(), Rows::without);
    }
    if currency.is_some() {
        rows = in_currency(rows);
    }
    Ok(if facts.is_relative { rows.with_relative_units() } else { rows })
}

/// The values of the axis [`CURRENCY`].
fn currencies(rows: &Rows) -> Vec<&Cell> {
    rows.axis(CURRENCY).into_iter().flat_map(|axis| axis.values()).filter(|value| !value.is_null()).collect()
}

/// Rows whose costs have the only value of the axis [`CURRENCY`] as their unit, without that axis.
fn in_currency(rows: Rows) -> Rows {
    let unit = match currencies(&rows).as_slice() {
        [only] => Some(only.exact()),
        _ => None,
    };
    rows.without(CURRENCY).with_units(|field| unit.clone().filter(|_| is_cost(field.name())))
}

/// Refuses a column that is named twice.
pub fn refuse_twice(names: &[String]) -> Result<(), Error> {
    let mut seen = BTreeSet::new();
    match names.iter().find(|name| !seen.insert(*name)) {
        Some(name) => Err(failure!(Usage, "the column `{name}` is named twice: leave out one of them")),
        None => Ok(()),
    }
}

/// The axes of `others`, and the settings of signals, in which rows of one group differ.
///
/// # Errors
/// A column of `by` was not read.
pub fn differing<'a>(rows: &Rows, by: &[&str], others: &[&'a str]) -> Result<Vec<&'a str>, Error> {
    let mut found = mixed(rows, by, others)?;
    found.extend(differing_settings(rows, by)?);
    Ok(found)
}

/// Says in which of the axes `others` rows of one group differ, and where seeds are no independent replicates.
pub fn say_mixed(datasets: &Datasets, rows: &Rows, by: &[&str], others: &[&str]) -> Result<(), Error> {
    if !rows.is_empty() && rows.axis(SEED).is_some_and(|seeds| seeds.values().len() > 1) {
        match rows.dependence(0..rows.len()) {
            Dependence::Alike => datasets.notes().say(SEEDS_ALIKE),
            Dependence::Resampled(draw) => datasets.notes().say(&resampled(draw)),
            Dependence::Independent => {}
        }
    }
    let mixed = differing(rows, by, others)?.join(", ");
    if !mixed.is_empty() {
        let advice = "group by more columns, or choose rows by conditions";
        datasets.notes().say(&format!("a mean is over rows that differ in {mixed}: {advice}"));
    }
    Ok(())
}

/// Says which of the columns that tell candidates apart are no decision: the jobs, and the signals of accounts.
pub fn given(rows: &Rows, by: &[&str]) -> Option<String> {
    let varies = |name: &str| rows.axis(name).is_some_and(|axis| axis.values().len() > 1);
    let is_given = |name: &&&str| matches!(subject(name), Some(SIGNAL | "workload")) && varies(name);
    let found: Vec<&str> = by.iter().filter(is_given).copied().collect();
    (!found.is_empty()).then(|| {
        let names = found.join(", ");
        format!("the best are chosen among different {names}, which nobody decides: choose one value by a condition")
    })
}

/// The columns, beside the seed, in which tasks of one group may differ. Jobs and points of series are no replications.
pub fn others<'a>(candidates: &'a [ColumnScan], by: &[&str], table: Table) -> Vec<&'a str> {
    // A label stands for the components and parameters of its block, so far as they vary with it.
    let tells = |candidate: &&ColumnScan| match scan::LABELS.contains(&candidate.name.as_str()) {
        true => candidate.varies(),
        false => candidate.distinguishes(),
    };
    let names = candidates.iter().filter(tells).map(|candidate| candidate.name.as_str());
    let has_replications = matches!(table, Table::Tasks | Table::Accounts);
    names.filter(|name| has_replications && *name != SEED && !by.contains(name)).collect()
}

/// Sorts, pivots and cuts.
fn shaped(mut frame: Frame, query: &Query) -> Result<Frame, Error> {
    // A column of the pivoted result is not there before.
    let is_early = query.sort.as_ref().is_some_and(|name| query.pivot.is_none() || frame.position(name).is_ok());
    let sort = |frame: Frame| match &query.sort {
        Some(name) => frame.sorted(name, query.descending),
        None => Ok(frame),
    };
    if is_early {
        frame = sort(frame)?;
    }
    if let Some(column) = &query.pivot {
        frame = frame.pivoted(column)?;
    }
    if !is_early {
        frame = sort(frame)?;
    }
    Ok(frame.part(query.skip, query.rows.unwrap_or(usize::MAX)))
}
