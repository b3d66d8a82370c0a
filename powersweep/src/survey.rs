//! Rows of `tasks` for the pages of the dashboard and for reports: some rows as texts, and what all rows show together.

use std::collections::{BTreeMap, BTreeSet};

use arrow::array::RecordBatch;
use arrow::datatypes::FieldRef;
use powersweep_dashboard::{ColumnHeader, PAGE_ROWS, RowsPage, RowsQuery};
use powersweep_dataset::column::is_numeric;
use powersweep_dataset::frame::unit_of;
use powersweep_dataset::order::Order;
use powersweep_dataset::page::{self, Wanted};
use powersweep_dataset::planned::{self, is_complete};
use powersweep_dataset::reading::ColumnStats;
use powersweep_dataset::scan::{self, INDEX, RowGroup, SEED, Tasks, whole};
use powersweep_dataset::source::table_of;
use powersweep_dataset::survey::{Choice, Survey};
use powersweep_dataset::{Cell, Datasets, Error, Rows, dependence, failure};
use powersweep_engine::seeds::Dependence;
use powersweep_experiments::reading::{hint, unknown};
use powersweep_experiments::{DesignPoints, Manifest};
use powersweep_results::Table;
use powersweep_results::columns::Column;
use powersweep_results::tasks;

use crate::results::chosen;
use crate::sensitivity;

/// The usual metrics of a plot (across, up), and the one of the effects: of batch simulations, then of queueing models.
const USUAL: [[&str; 3]; 2] =
    [["bsld_mean", "energy_total_j", "energy_total_j"], ["turnaround_s_mean", "energy_per_job_j", "energy_per_job_j"]];

/// Some rows. The page gets no command that prints them.
///
/// # Errors
/// A column or a condition is wrong, or the rows cannot be read.
pub async fn rows(datasets: &Datasets, ask: &RowsQuery) -> Result<RowsPage, Error> {
    chosen(&ask.columns, Table::Tasks)?;
    let sort = Some(ask.sort.as_str()).filter(|sort| !sort.is_empty());
    let order = Order::new(sort, ask.descending, &ask.only)?;
    let wanted = Wanted { columns: ask.columns.clone(), order, skip: ask.page * PAGE_ROWS, rows: PAGE_ROWS };
    let reading = datasets.read(&ask.experiment, Table::Tasks).await?;
    let known = Table::schema(Table::Tasks).fields().iter().map(|field| field.name().clone()).collect();
    let mut seen = RowsPage { known, ..RowsPage::default() };
    let Some(shown) = page::shown(&reading, &wanted).await? else { return Ok(seen) };
    let column = |(heading, field): (String, &FieldRef)| ColumnHeader {
        heading,
        name: field.name().clone(),
        is_number: is_numeric(field.data_type()),
    };
    seen.columns = shown.headings.into_iter().zip(shown.rows.schema_ref().fields()).map(column).collect();
    let row = |row: usize| shown.rows.columns().iter().map(|column| Cell::of(column, row).shown()).collect();
    seen.rows = (0..shown.rows.num_rows()).map(row).collect();
    seen.count = shown.count;
    Ok(seen)
}

/// The survey of all rows. Rows of parts that `last` has are not read again.
///
/// # Errors
/// A chosen metric or axis is unknown, or the rows cannot be read.
pub async fn survey(
    datasets: &Datasets,
    experiment: &str,
    asked: &Choice,
    last: Option<&Survey>,
) -> Result<Survey, Error> {
    let numeric = numeric();
    let candidates = scan::candidates();
    let chosen = [&asked.x, &asked.y, &asked.of].into_iter().filter(|name| !name.is_empty());
    for name in chosen {
        if !numeric.iter().any(|column| column.name == *name) {
            return Err(no_metric(name, &numeric));
        }
    }
    let reading = datasets.read(experiment, Table::Tasks).await?;
    let names = candidates.iter().chain(numeric.iter().map(|column| &column.name)).map(String::as_str);
    let tasks =
        Tasks::open(&reading, &scan::columns(names.chain(page::LOOKED_AT).chain([INDEX]).collect::<BTreeSet<_>>()))
            .await?;
    let groups = tasks.groups();
    let found = scan::search(&groups, &candidates).await?;
    let axes = found.iter().filter(|axis| axis.distinguishes() && axis.name != SEED).map(|axis| axis.name.clone());
    let axes: Vec<String> = axes.collect();
    let manifest = planned::manifest(&reading).await?;
    let spread: BTreeSet<String> = manifest.as_ref().map(spread).unwrap_or_default();
    let choice = complete(asked, &groups, &axes, &spread);
    if !asked.by.is_empty() && !axes.contains(&asked.by) {
        let known: Vec<&str> = axes.iter().map(String::as_str).collect();
        return Err(failure!(Usage, "{}", unknown("axis with several values", &asked.by, &known)));
    }
    let is_shown =
        |name: &str| [&choice.x, &choice.y, &choice.of].iter().any(|chosen| *chosen == name) || differs(&groups, name);
    let shown: Vec<&Column> = numeric.iter().filter(|column| is_shown(&column.name)).collect();
    let units = shown.iter().filter(|column| !column.unit.is_empty());
    let are_relative = page::are_relative(&groups);
    let unit = |column: &&Column| (column.name.clone(), unit_of(&column.name, column.unit, are_relative).to_owned());
    let units: BTreeMap<String, String> = units.map(unit).collect();
    let metrics = shown.iter().map(|column| column.name.clone()).collect();
    let mut survey = Survey::new(choice, metrics, axes, units);
    let rows = groups.iter().map(|group| group.rows() as u64).sum();
    survey.is_partial = manifest.is_some_and(|manifest| !is_complete(&manifest, rows));
    survey.spread = spread;
    survey.seeds = dependence::of_rows(datasets, &reading, &found).await?;
    fill(&mut survey, &groups, last).await?;
    survey.indices = sensitivity::of_design(datasets, experiment, &survey.choice.of).await?;
    Ok(survey)
}

/// The error of a name that is no metric of `tasks`.
fn no_metric(name: &str, known: &[Column]) -> Error {
    if table_of([name].into_iter()) == Table::Accounts {
        return failure!(Usage, "`{name}` is a column of `accounts`; this page has metrics of `tasks`");
    }
    let near = hint(name, known.iter().map(|column| column.name.as_str()));
    let near = near.unwrap_or_else(|| "`powersweep columns tasks` lists them".to_owned());
    failure!(Usage, "unknown metric `{name}`; {near}")
}

/// The columns whose values are spread by designs.
fn spread(manifest: &Manifest) -> BTreeSet<String> {
    let designs: Vec<DesignPoints> = manifest.designs().filter(DesignPoints::is_spread).collect();
    designs.iter().flat_map(DesignPoints::parameters).map(str::to_owned).collect()
}

/// Whether rows may have several values in a column.
fn differs(groups: &[RowGroup<'_>], name: &str) -> bool {
    let mut seen = groups.iter().map(|group| group.stats(name));
    let first = seen.next();
    !matches!(first, None | Some(ColumnStats::Equal(_))) || seen.any(|next| Some(next) != first)
}

/// Adds the rows that `last` lacks.
async fn fill(survey: &mut Survey, groups: &[RowGroup<'_>], last: Option<&Survey>) -> Result<(), Error> {
    let Choice { x, y, of, .. } = survey.choice.clone();
    let metrics = [x.as_str(), &y, &of];
    // Effects are compared seed by seed, unless no seed changes a row.
    let seed = (survey.seeds != Dependence::Alike).then(|| SEED.to_owned());
    let axes: Vec<String> = survey.axes.iter().cloned().chain(seed).collect();
    let axes: Vec<&str> = axes.iter().map(String::as_str).collect();
    let parts: BTreeSet<String> = groups.iter().filter_map(|group| group.part()).collect();
    if let Some(last) = last.filter(|last| survey.continues(last, &parts)) {
        survey.continue_from(last.clone());
    }
    let (stored, unpublished): (Vec<RowGroup<'_>>, Vec<RowGroup<'_>>) =
        groups.iter().copied().partition(|group| group.part().is_some());
    for group in stored {
        if group.part().is_some_and(|part| !survey.has(&part)) {
            read(group, &axes, &metrics, |rows| survey.add(rows)).await?;
        }
    }
    parts.iter().for_each(|part| survey.end_part(part));
    survey.settle();
    for group in unpublished {
        read(group, &axes, &metrics, |rows| survey.add_unpublished(rows)).await?;
    }
    survey.show();
    Ok(())
}

/// Metrics that are numbers.
fn numeric() -> Vec<Column> {
    let is_numeric = |column: &Column| matches!(column.type_name(), "int64" | "double");
    tasks::metrics().into_iter().filter(is_numeric).collect()
}

/// The choice with a name for every column. An axis of a grid tells points apart better than one with a value for each point.
fn complete(asked: &Choice, groups: &[RowGroup<'_>], axes: &[String], spread: &BTreeSet<String>) -> Choice {
    let [x, y, of] = USUAL[usize::from(page::are_of_queues(groups))];
    let or = |asked: &str, usual: &str| if asked.is_empty() { usual } else { asked }.to_owned();
    let policy =
        axes.iter().find(|axis| *axis == "policy").or_else(|| axes.iter().find(|axis| !spread.contains(*axis)));
    let policy = policy.or_else(|| axes.first()).map_or("", String::as_str);
    Choice { x: or(&asked.x, x), y: or(&asked.y, y), of: or(&asked.of, of), by: or(&asked.by, policy), ..asked.clone() }
}

/// Calls `each` with the rows of a group in these columns.
async fn read(group: RowGroup<'_>, axes: &[&str], metrics: &[&str], mut each: impl FnMut(&Rows)) -> Result<(), Error> {
    let schema = scan::columns(axes.iter().chain(metrics).copied().chain([INDEX]).collect::<BTreeSet<_>>());
    let mut result = Ok(());
    let give = |batch: &RecordBatch| {
        let rows = Rows::new(&schema, axes, metrics, INDEX).and_then(|mut rows| {
            rows.add(batch, &(0..batch.num_rows()).collect::<Vec<_>>())?;
            Ok(rows)
        });
        result = rows.map(|rows| each(&rows));
        result.is_ok()
    };
    group.each(&schema, whole, give).await?;
    result
}
