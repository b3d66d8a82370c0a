//! Statistics of the rows of a table, in groups.

use std::collections::BTreeSet;

use powersweep_analysis::group::mixed;
use powersweep_analysis::{Condition, Frame, Rows, Stat, grouped, ratios};
use powersweep_coordinator::records::Table;

use crate::args::ResultsArgs;
use crate::exit::Failure;
use crate::ordered::INDEX;
use crate::reading::Reading;
use crate::source::{Source, conditions};
use crate::stored::Tables;
use crate::varying::{self, Candidate, SEED, Tasks};
use crate::{results_table, screen};

/// What the footers of `tasks` tell of an experiment.
pub struct Known {
    /// The columns in which tasks may differ.
    pub candidates: Vec<Candidate>,
    metrics: Vec<&'static str>,
    is_relative: bool,
}

impl Known {
    /// Reads the footers.
    pub async fn read(tables: &Tables, experiment: &str) -> Result<Known, Failure> {
        let candidates = varying::candidates();
        let names = candidates.iter().map(String::as_str).chain(results_table::LOOKED_AT);
        let columns = varying::columns(names.collect::<BTreeSet<_>>());
        let tasks = Tasks::open(&Reading::open(tables, experiment, Table::Tasks).await?, &columns).await?;
        let groups = tasks.groups();
        let (metrics, is_relative) = (results_table::usual_metrics(&groups), results_table::are_relative(&groups));
        Ok(Known { candidates: varying::search(&groups, &candidates).await?, metrics, is_relative })
    }

    /// The columns that are shown by default.
    pub fn usual(&self, table: Table) -> Vec<&'static str> {
        match table {
            Table::Tasks => self.metrics.clone(),
            Table::Jobs => vec!["wait_s", "run_s", "energy_j"],
            Table::Series => vec!["value"],
            Table::Accounts => vec!["emissions_g", "cost", "signal_energy_mean"],
            Table::Failures => vec![INDEX],
        }
    }
}

/// The columns of a table, beside its task, that tell its rows apart.
pub fn keys(table: Table) -> &'static [&'static str] {
    match table {
        Table::Jobs => &["job_id"],
        Table::Series => &["series", "level", "x"],
        Table::Accounts => &["signal", "signal_index"],
        Table::Tasks | Table::Failures => &[],
    }
}

/// The result that the arguments ask for.
pub async fn frame(tables: &Tables, reading: &Reading, args: &ResultsArgs) -> Result<Frame, Failure> {
    let (table, groups) = (args.table, &args.groups);
    let stats = groups.stats.iter().map(|name| Stat::parse(name.trim())).collect::<Result<Vec<_>, _>>()?;
    let only = conditions(table, &args.some.only)?;
    let baseline = conditions(table, &groups.ratio_to)?;
    let known = Known::read(tables, reading.experiment()).await?;
    let measures: Vec<&str> = match args.columns.is_empty() {
        true => known.usual(table),
        false => args.columns.iter().map(|name| name.trim()).collect(),
    };
    let mut by: Vec<&str> = groups.by.iter().map(|name| name.trim()).collect();
    if by.is_empty() {
        // A ratio is asked for, of each of the compared rows.
        by.extend(baseline.iter().map(|condition| condition.column.as_str()).collect::<BTreeSet<_>>());
    }
    let candidates = &known.candidates;
    let varying = candidates.iter().filter(|candidate| candidate.varies()).map(|candidate| candidate.name.as_str());
    let of_baseline = baseline.iter().map(|condition| condition.column.as_str());
    let paired = varying.chain(of_baseline).chain(keys(table).iter().copied());
    let others = others(candidates, &by, table);
    let mut axes = by.clone();
    for name in paired.filter(|_| !baseline.is_empty()).chain(others.iter().copied()) {
        if !axes.contains(&name) && !measures.contains(&name) {
            axes.push(name);
        }
    }
    let mut rows = collected(tables, reading, &known, [&axes, &measures], only).await?;
    if !baseline.is_empty() {
        let (relative, lacking) = ratios(&rows, &baseline)?;
        if lacking > 0 {
            let lacking = screen::count(lacking as u64, "row");
            screen::note(&format!(
                "powersweep: {lacking} have no row of the baseline to be divided by, and are left out"
            ));
        }
        rows = relative;
    }
    let mixed = mixed(&rows, &by, &others);
    if !mixed.is_empty() {
        let mixed = mixed.join(", ");
        screen::note(&format!(
            "powersweep: a mean is over rows that differ in {mixed}: add columns to --by, or choose rows with --where"
        ));
    }
    let usual: &[Stat] = match table {
        Table::Failures => &[Stat::Count],
        // Otherwise the rows are no replications of each other, and their mean has no interval.
        Table::Tasks if mixed.is_empty() => &[Stat::Mean, Stat::Interval(95)],
        _ => &[Stat::Mean],
    };
    let stats = if stats.is_empty() { usual } else { &stats };
    shaped(grouped(&rows, &by, stats)?, args)
}

/// Rows of a table with these axes and measures. Energies without a power of the machine are relative.
pub async fn collected(
    tables: &Tables,
    reading: &Reading,
    known: &Known,
    [axes, measures]: [&[&str]; 2],
    only: Vec<Condition>,
) -> Result<Rows, Failure> {
    let names: Vec<&str> = axes.iter().chain(measures).copied().chain([INDEX]).collect();
    let source = Source::open(tables, reading, &names, only).await?;
    let mut rows = Rows::new(&source.schema(), axes, measures, INDEX)?;
    source
        .each(|batch, found| {
            rows.add(batch, found)?;
            Ok(true)
        })
        .await?;
    let unit = |unit: &str| (known.is_relative && ["J", "W", "J s"].contains(&unit)).then_some("relative");
    Ok(rows.with_units(unit))
}

/// The columns, beside the seed, in which tasks of one group may differ. Jobs and points of series are no replications.
fn others<'a>(candidates: &'a [Candidate], by: &[&str], table: Table) -> Vec<&'a str> {
    // A label stands for the components and parameters of its block, so far as they vary with it.
    let tells = |candidate: &&Candidate| match varying::LABELS.contains(&candidate.name.as_str()) {
        true => candidate.varies(),
        false => candidate.distinguishes(),
    };
    let names = candidates.iter().filter(tells).map(|candidate| candidate.name.as_str());
    let has_replications = matches!(table, Table::Tasks | Table::Accounts);
    names.filter(|name| has_replications && *name != SEED && !by.contains(name)).collect()
}

/// Sorts, pivots and cuts.
fn shaped(mut frame: Frame, args: &ResultsArgs) -> Result<Frame, Failure> {
    let some = &args.some;
    // A column of the pivoted result is not there before.
    let is_early = some.sort.as_ref().is_some_and(|name| args.groups.pivot.is_none() || frame.column(name).is_ok());
    let sort = |frame: Frame| match &some.sort {
        Some(name) => frame.sorted(name, some.descending),
        None => Ok(frame),
    };
    if is_early {
        frame = sort(frame)?;
    }
    if let Some(column) = &args.groups.pivot {
        frame = frame.pivoted(column)?;
    }
    if !is_early {
        frame = sort(frame)?;
    }
    Ok(frame.part(some.skip, args.rows.unwrap_or(usize::MAX)))
}
