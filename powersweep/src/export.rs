//! Copies of the tables of an experiment, each one file sorted by task.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use powersweep_dataset::partial::Partial;
use powersweep_dataset::reading::{ColumnStats, Part, Reading, relaxed};
use powersweep_dataset::scan;
use powersweep_dataset::sorted_copy::{Origin, SortedCopy};
use powersweep_dataset::writing::{Output, cannot_write, refuse_existing};
use powersweep_dataset::{Cell, Datasets, Error, failure};
use powersweep_results::{Table, join, part, tasks};

use crate::place::Place;

/// Columns of the files of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExportColumns {
    /// The columns of the table.
    #[default]
    Own,
    /// In tables other than `tasks`, also the components and parameters of the task.
    Wide,
    /// The labels, components, parameters and seeds that have several values, then the columns of what was measured that have
    /// any value.
    Tidy,
}

/// What is exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExportOptions {
    /// The one table; by default all that have rows.
    pub table: Option<Table>,
    /// The columns.
    pub columns: ExportColumns,
}

impl Place {
    /// Copies tables of an experiment, each into one file sorted by task. `output` is a new folder; for one table, a name that
    /// ends in `.parquet` is a file, which replaces one of that name once it is complete. Returns the copied tables with the number of their rows.
    ///
    /// # Errors
    /// The experiment is unknown or has no rows, or the output exists or cannot be written.
    pub async fn export(
        &self,
        experiment: &str,
        output: &Path,
        options: ExportOptions,
    ) -> Result<Vec<(Table, u64)>, Error> {
        if output == Path::new("-") {
            return Err(failure!(Usage, "an export is a file or a folder, which standard output is not"));
        }
        let is_file = output.extension().is_some_and(|extension| extension == "parquet");
        if is_file && options.table.is_none() {
            let hint = "name a folder for all tables, or choose one table";
            return Err(failure!(Usage, "{} is the name of one file; {hint}", output.display()));
        }
        let folder = match is_file {
            true => None,
            false => {
                refuse_existing(output)?;
                Some(Partial::folder(output).map_err(|error| cannot_write(output, &error))?)
            }
        };
        let target = |table: Table| match &folder {
            Some(folder) => folder.path().join(format!("{table}.parquet")),
            None => output.to_owned(),
        };
        let copied = self.copies(experiment, target, options).await?;
        if copied.iter().all(|(_, rows)| *rows == 0) {
            return Err(failure!(
                Usage,
                "{experiment} has no rows to export: `powersweep status {experiment}` says whether its tasks run"
            ));
        }
        if let Some(folder) = folder {
            refuse_existing(output)?;
            folder.publish(output).map_err(|error| cannot_write(output, &error))?;
        }
        Ok(copied)
    }

    /// Copies each table into its target. Returns the copied tables with the number of their rows.
    pub(crate) async fn copies(
        &self,
        experiment: &str,
        target: impl Fn(Table) -> PathBuf,
        options: ExportOptions,
    ) -> Result<Vec<(Table, u64)>, Error> {
        let datasets = self.datasets().await?;
        let mut copied = Vec::new();
        for table in options.table.map_or(Table::ALL.to_vec(), |table| vec![table]) {
            let export = Export { datasets: &datasets, experiment, options, table, target: &target(table) };
            let rows = export.copy().await?;
            if rows > 0 || options.table.is_some() {
                copied.push((table, rows));
            }
        }
        Ok(copied)
    }
}

/// The export of one table.
struct Export<'a> {
    datasets: &'a Datasets,
    experiment: &'a str,
    options: ExportOptions,
    table: Table,
    /// The file to write.
    target: &'a Path,
}

impl Export<'_> {
    /// Copies the table. Returns the number of rows; a table without rows gives no file.
    async fn copy(&self) -> Result<u64, Error> {
        let reading = self.datasets.read_whole(self.experiment, self.table).await?;
        if !reading.has_rows() {
            if self.options.table.is_some() {
                reading.check_table()?;
            }
            return Ok(0);
        }
        let rows = reading.parts_of_all().await?;
        rows.iter().for_each(|part| reading.note_unknown(part.path(), part.schema()));
        let known = Table::schema(self.table);
        let lacks = |part: &Part| known.fields().iter().any(|field| part.schema().index_of(field.name()).is_err());
        let own = if rows.iter().any(lacks) { relaxed(&known) } else { known };
        let (schema, origins) = self.columns(&own, &rows).await?;
        // `tasks` is read after the table, so that it has the task of every row.
        let tasks = match origins.iter().any(|origin| matches!(origin, Origin::Task(_))) {
            true => self.tasks().await?.parts_of_all().await?,
            false => Vec::new(),
        };
        let copy = SortedCopy {
            rows,
            tasks,
            schema,
            origins,
            bucket_rows: part::EXPORT_ROW_GROUP_ROWS,
            elsewhere: self.table == Table::Failures,
        };
        let mut out = Output::open(Some(self.target))?;
        let (rows, _) = copy.write(self.experiment, out.writer()).await?;
        out.finish()?;
        Ok(rows)
    }

    async fn tasks(&self) -> Result<Reading, Error> {
        self.datasets.read_whole(self.experiment, Table::Tasks).await
    }

    /// The columns of the file, and where they come from.
    async fn columns(&self, own: &SchemaRef, rows: &[Part]) -> Result<(SchemaRef, Vec<Origin>), Error> {
        let of_own = |name: &str| Origin::Own(name.to_owned());
        let names = own.fields().iter().map(|field| field.name().as_str());
        match self.options.columns {
            ExportColumns::Tidy => return self.tidy(own, rows).await,
            ExportColumns::Wide if self.table != Table::Tasks => {}
            _ => return Ok((Arc::clone(own), names.map(of_own).collect())),
        }
        let axes: Vec<String> = tasks::axes().into_iter().map(|column| column.name).collect();
        let schema = join::schema(own, &scan::columns(axes.iter().map(String::as_str)));
        Ok((schema, names.map(of_own).chain(axes.into_iter().map(Origin::Task)).collect()))
    }

    /// The columns that vary among tasks, then the values of the table that a row has; both in the order of the tables.
    async fn tidy(&self, own: &SchemaRef, rows: &[Part]) -> Result<(SchemaRef, Vec<Origin>), Error> {
        let candidates = scan::candidates();
        let columns = scan::columns(candidates.iter().map(String::as_str));
        let tasks = scan::Tasks::open(&self.tasks().await?, &columns).await?;
        let found = scan::search(&tasks.groups(), &candidates).await?;
        let vary = found.iter().filter(|candidate| candidate.varies()).map(|candidate| candidate.name.as_str());
        // Every table has the labels and the seed. In other tables, `procs` is a job's value, not the system size.
        let is_key = |name: &str| scan::LABELS.contains(&name) || name == "seed";
        let (keys, params): (Vec<&str>, Vec<&str>) = vary.partition(|name| is_key(name) || self.table == Table::Tasks);
        let values: Vec<String> = match self.table {
            Table::Tasks => tasks::metrics().into_iter().map(|column| column.name).collect(),
            _ => own.fields().iter().map(|field| field.name().clone()).skip(tasks::KEYS).collect(),
        };
        let values: Vec<&str> = values.iter().map(String::as_str).filter(|name| has_value(rows, name)).collect();
        let field = |name: &&str| own.fields().find(name).map(|(_, field)| Arc::clone(field));
        let own_schema = Schema::new(keys.iter().chain(&values).filter_map(field).collect::<Vec<_>>());
        let joined = join::schema(&own_schema, &scan::columns(params.iter().copied()));
        let (own_fields, joined) = joined.fields().split_at(keys.len() + values.len());
        let (keys_fields, values_fields) = own_fields.split_at(keys.len());
        let fields: Vec<_> = [keys_fields, joined, values_fields].concat();
        let of_own = |name: &&str| Origin::Own((*name).to_owned());
        let of_task = |name: &&str| Origin::Task((*name).to_owned());
        let origins = keys.iter().map(of_own).chain(params.iter().map(of_task)).chain(values.iter().map(of_own));
        Ok((Arc::new(Schema::new(fields)), origins.collect()))
    }
}

/// Whether a row has a value in this column.
fn has_value(rows: &[Part], name: &str) -> bool {
    let null = ColumnStats::Equal(Cell::Null);
    rows.iter().any(|part| (0..part.groups().len()).any(|group| part.stats(name, group) != null))
}
