//! The rows of an experiment, and statistics of groups of them.

use std::fs::File;

use arrow::array::{RecordBatch, UInt32Array};
use arrow::compute::{concat_batches, take};
use arrow::datatypes::SchemaRef;
use powersweep_dataset::grouped::refuse_twice;
use powersweep_dataset::order::Order;
use powersweep_dataset::page::{self, Shown, Wanted};
use powersweep_dataset::partial::Partial;
use powersweep_dataset::reading::{self, Reading, relaxed};
use powersweep_dataset::source::{Source, conditions, no_column, why_none, without_parameters};
use powersweep_dataset::writing::{Encoding, Writing};
use powersweep_dataset::{Condition, Datasets, Error, Frame, Kind, OrKind, failure, grouped};
use powersweep_results::{Table, tasks};

use crate::place::Place;

pub use powersweep_dataset::grouped::Query as GroupsOptions;

/// Columns of tables other than `tasks` that people see first.
const USUAL: [(Table, &str); 4] = [
    (Table::Failures, "task_index workload platform policy seed attempt worker failed_at failure_kind message"),
    (Table::Jobs, "task_index job_id submit_s start_s finish_s wait_s run_s procs energy_j"),
    (Table::Series, "task_index series level x value"),
    (
        Table::Accounts,
        "task_index policy signal signal_index jobs_emissions_g window_emissions_g emissions_g jobs_cost window_cost cost \
         currency",
    ),
];

/// The sentence about an experiment without a row of `tasks`.
pub(crate) fn no_rows(experiment: &str) -> String {
    format!("{experiment} has no rows yet: `powersweep status {experiment}` says whether its tasks run or failed")
}

/// The error of an experiment without a part, which would have its manifest.
pub(crate) fn without_manifest(experiment: &str) -> Error {
    failure!(
        Usage,
        "{experiment} has no published rows, which have its manifest: `powersweep status {experiment}` says whether its tasks run \
         or failed"
    )
}

/// Which rows are read. The default: all rows of `tasks`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RowsOptions {
    /// The table.
    pub table: Table,
    /// Names of columns, in the order of the answer. Without any, a stream has all columns, and a page the usual ones.
    pub columns: Vec<String>,
    /// Conditions on the rows, such as `policy=easy`.
    pub only: Vec<String>,
    /// Order by this column of `tasks`; by default by task index. Other tables have the order in which they are stored.
    pub sort: Option<String>,
    /// The greatest value first.
    pub descending: bool,
    /// Number of rows of `tasks` to leave out before the first one.
    pub skip: usize,
    /// Maximum number of rows.
    pub rows: Option<usize>,
}

/// Some rows for people.
#[derive(Debug)]
pub struct Page {
    /// The rows with the headings of their columns.
    pub shown: Shown,
    /// Number of rows beyond them; `None` if there are some that were not counted.
    pub more: Option<usize>,
}

/// Rows of an experiment, which are read on demand.
#[derive(Debug)]
pub struct ResultRows {
    datasets: Datasets,
    reading: Reading,
    options: RowsOptions,
    /// Of rows of `tasks`.
    order: Order,
    /// Of rows of other tables.
    only: Vec<Condition>,
    schema: SchemaRef,
}

impl Place {
    /// Rows of an experiment, published or not.
    ///
    /// # Errors
    /// An experiment, column or condition is unknown, or the manifest does not ask for the table.
    pub async fn rows(&self, experiment: &str, options: RowsOptions) -> Result<ResultRows, Error> {
        let RowsOptions { table, columns, only, sort, descending, skip, .. } = &options;
        let is_tasks = *table == Table::Tasks;
        if !is_tasks && (sort.is_some() || *descending || *skip > 0) {
            let hint = "rows of `tasks`, and groups, can be sorted and skipped";
            return Err(failure!(Usage, "rows of {table} have the order in which they are stored; {hint}"));
        }
        let order = if is_tasks { Order::new(sort.as_deref(), *descending, only)? } else { Order::default() };
        let only = if is_tasks { Vec::new() } else { conditions(*table, only)? };
        let (datasets, reading) = self.reading(experiment, *table).await?;
        let schema = chosen(columns, *table)?.unwrap_or_else(|| relaxed(&table.schema()));
        Ok(ResultRows { datasets, reading, order, only, schema, options })
    }

    /// Statistics of groups of the rows of a table.
    ///
    /// # Errors
    /// As [`Place::rows`], or a statistic is unknown.
    pub async fn groups(&self, experiment: &str, table: Table, options: &GroupsOptions) -> Result<Frame, Error> {
        let (datasets, reading) = self.reading(experiment, table).await?;
        let frame = grouped::answer(&datasets, &reading, options).await?;
        if table != Table::Failures && !reading.has_rows() {
            self.notes.say(&no_rows(experiment));
        }
        Ok(frame)
    }

    async fn reading(&self, experiment: &str, table: Table) -> Result<(Datasets, Reading), Error> {
        let datasets = self.datasets().await?;
        let reading = datasets.read(experiment, table).await?;
        reading.check_table()?;
        if reading.is_without_state() {
            self.notes.say(&format!(
                "{datasets} has no state of {experiment}: only published rows are read; `powersweep adopt` rebuilds the state"
            ));
        }
        Ok((datasets, reading))
    }
}

impl ResultRows {
    /// The columns of a stream.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Calls `each` with every batch of rows, until it returns false. Returns the number of rows
    /// beyond the wanted ones; `None` if there are some that were not counted.
    pub async fn each(
        &self,
        mut each: impl FnMut(&RecordBatch) -> Result<bool, Error>,
    ) -> Result<Option<usize>, Error> {
        let RowsOptions { table, only, sort, descending, skip, rows, .. } = &self.options;
        if *table != Table::Tasks {
            return self.stored(&self.schema, &mut each).await;
        }
        if sort.is_none() && !descending && only.is_empty() && *skip == 0 && rows.is_none() {
            self.reading.each(&self.schema, |batch| each(&batch)).await?;
            return Ok(Some(0));
        }
        let columns = self.schema.fields().iter().map(|field| field.name().clone()).collect();
        page::each(&self.reading, &self.wanted(columns), each).await.map(Some)
    }

    /// The rows in a file without a name, read from its begin on.
    ///
    /// # Errors
    /// The rows cannot be read, or the file cannot be written.
    pub async fn file(&self, encoding: Encoding) -> Result<File, Error> {
        let folder =
            Partial::scratch().map_err(|error| failure!(Storage, "cannot make a temporary folder: {error}"))?;
        let path = folder.path().join("rows");
        let mut out = Writing::begin(Some(&path), encoding, &self.schema, self.reading.experiment())?;
        self.each(|batch| out.write(batch)).await?;
        out.finish()?;
        File::open(&path).map_err(|error| failure!(Storage, "cannot read {}: {error}", path.display()))
    }

    /// The rows for people; `None` if a table of tasks has none. Of the columns that are shown without a choice of columns, those
    /// without a value are left out.
    pub async fn page(&self) -> Result<Option<Page>, Error> {
        let RowsOptions { table, columns, .. } = &self.options;
        if *table == Table::Tasks {
            let shown = page::shown(&self.reading, &self.wanted(columns.clone())).await?;
            return Ok(shown.map(|shown| Page { more: Some(shown.more()), shown }));
        }
        let usual = USUAL.iter().find(|(known, _)| known == table).filter(|_| columns.is_empty());
        let schema = match usual {
            Some((_, names)) => reading::columns(*table, names.split(' ')),
            None => SchemaRef::clone(&self.schema),
        };
        let mut batches = Vec::new();
        let keep = &mut |batch: &RecordBatch| {
            batches.push(batch.clone());
            Ok(true)
        };
        let more = self.stored(&schema, keep).await?;
        let mut rows = concat_batches(&schema, &batches).or_kind(Kind::Storage)?;
        if usual.is_some() {
            let has_value = |at: &usize| rows.column(*at).null_count() < rows.num_rows();
            let with_values: Vec<usize> = (0..rows.num_columns()).filter(has_value).collect();
            rows = rows.project(&with_values).or_kind(Kind::Storage)?;
        }
        let headings: Vec<String> = rows.schema_ref().fields().iter().map(|field| field.name().clone()).collect();
        let shown = Shown { axes: headings.len(), headings, energy: "", count: rows.num_rows(), rows, skipped: 0 };
        Ok(Some(Page { shown, more }))
    }

    /// The sentence for a user where [`ResultRows::page`] gives no page.
    pub fn without_rows(&self) -> String {
        no_rows(self.reading.experiment())
    }

    /// Says why there is no row.
    ///
    /// # Errors
    /// A condition asks for a value that no row has.
    pub async fn why_none(&self) -> Result<String, Error> {
        match self.options.only.as_slice() {
            _ if self.options.rows == Some(0) => Ok("no rows are asked for".to_owned()),
            _ if self.options.skip > 0 => Ok("no rows follow those that are left out".to_owned()),
            [] => Ok("no rows yet".to_owned()),
            only => why_none(&self.datasets, &self.reading, only).await,
        }
    }

    fn wanted(&self, columns: Vec<String>) -> Wanted {
        let RowsOptions { skip, rows, .. } = self.options;
        Wanted { columns, order: self.order.clone(), skip, rows: rows.unwrap_or(usize::MAX) }
    }

    /// Rows of a table other than `tasks`, in the order in which they are stored.
    async fn stored(
        &self,
        schema: &SchemaRef,
        each: &mut impl FnMut(&RecordBatch) -> Result<bool, Error>,
    ) -> Result<Option<usize>, Error> {
        let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        let source = Source::open(&self.datasets, &self.reading, &names, self.only.clone()).await?;
        let (mut left, mut has_more) = (self.options.rows.unwrap_or(usize::MAX), false);
        let visit = |batch: &RecordBatch, rows: &[usize]| {
            has_more |= rows.len() > left;
            let rows: UInt32Array = rows.iter().take(left).map(|row| Some(*row as u32)).collect();
            left -= rows.len();
            let columns = names.iter().filter_map(|name| Some(take(batch.column_by_name(name)?, &rows, None)));
            let columns = columns.collect::<Result<Vec<_>, _>>().or_kind(Kind::Storage)?;
            let batch = RecordBatch::try_new(SchemaRef::clone(schema), columns).or_kind(Kind::Storage)?;
            Ok(each(&batch)? && !has_more)
        };
        source.each(visit).await?;
        Ok((!has_more).then_some(0))
    }
}

/// The columns of these names of a table, in this order; `None` without names.
///
/// # Errors
/// A column is unknown, or is named twice.
pub fn chosen(names: &[String], table: Table) -> Result<Option<SchemaRef>, Error> {
    if names.is_empty() {
        return Ok(None);
    }
    let all = relaxed(&table.schema());
    let known: Vec<&str> = all.fields().iter().map(|field| field.name().as_str()).collect();
    for name in names {
        if !known.contains(&name.as_str()) {
            if table == Table::Failures && tasks::schema().column_with_name(name).is_some() {
                return Err(without_parameters(name));
            }
            if tasks::schema().column_with_name(name).is_some() {
                let hint = "`tasks` has it: join the tables on `task_id`, or use a wide `powersweep export`";
                return Err(failure!(Usage, "{table} has no column `{name}`; {hint}"));
            }
            return Err(no_column(table, name, &known));
        }
    }
    refuse_twice(names)?;
    Ok(Some(reading::columns(table, names.iter().map(String::as_str))))
}
