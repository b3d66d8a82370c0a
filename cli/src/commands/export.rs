//! `powersweep export`: copies an experiment's tables, each into one file sorted by task.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;
use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use powersweep::block_on;
use powersweep_dataset::Cell;
use powersweep_dataset::Datasets;
use powersweep_dataset::reading::{ColumnStats, Part, Reading, relaxed};
use powersweep_dataset::scan;
use powersweep_dataset::sorted_copy::{Origin, SortedCopy};
use powersweep_dataset::writing::{Scratch, cannot_write, partial_beside, refuse_existing};
use powersweep_results::Table;
use powersweep_results::{join, part, tasks};

use crate::args::ExportArgs;
use crate::exit::{Exit, Failure, Outcome, failure};
use crate::screen;

/// Endings of the names of files in other formats.
const OTHER_FORMATS: &[&str] =
    &["csv", "json", "arrow", "tsv", "txt", "jsonl", "ndjson", "ipc", "feather", "xlsx", "gz", "zst", "zip", "pq"];

/// Copies one table or all tables.
pub fn run(args: &ExportArgs) -> Outcome {
    let is_file = args.output.extension().is_some_and(|extension| extension == "parquet");
    if is_file && args.table.is_none() {
        let hint = "name a folder for all tables, or choose one table with --table";
        return Err(failure!(Usage, "{} is the name of one file; {hint}", args.output.display()));
    }
    refuse_other_format(args)?;
    refuse_existing(&args.output)?;
    let partial = partial_beside(&args.output);
    std::fs::create_dir_all(&partial).map_err(|error| cannot_write(&args.output, &error))?;
    // An error deletes what was written.
    let scratch = Scratch(partial.clone());
    let copied = block_on(copies(args, &partial))?;
    if copied.iter().all(|(_, rows)| *rows == 0) {
        return Err(failure!(Usage, "{} has no rows to export", args.experiment));
    }
    publish(&partial, &args.output, is_file.then_some(copied[0].0))?;
    drop(scratch);
    for (table, rows) in copied {
        screen::print(&format!("{table}: {}", screen::count(rows, "row")))?;
    }
    Ok(Exit::Done)
}

/// Copies the tables into a folder. Returns the copied tables with the number of their rows.
async fn copies(args: &ExportArgs, folder: &Path) -> Result<Vec<(Table, u64)>, Failure> {
    let datasets = args.from.place()?.datasets().await?;
    let mut copied = Vec::new();
    for table in args.table.map_or(Table::ALL.to_vec(), |table| vec![table]) {
        let target = folder.join(format!("{table}.parquet"));
        let export = Export { datasets: &datasets, args, table, target: &target };
        let rows = export.copy().await?;
        if rows > 0 || args.table.is_some() {
            copied.push((table, rows));
        }
    }
    Ok(copied)
}

/// Refuses the name of a file in another format, of which a folder would be made.
fn refuse_other_format(args: &ExportArgs) -> Result<(), Failure> {
    let ending = args.output.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_lowercase();
    if !OTHER_FORMATS.contains(&ending.as_str()) {
        return Ok(());
    }
    let table = args.table.unwrap_or(Table::Tasks);
    let output = args.output.display();
    let hint = match ending.as_str() {
        "csv" | "json" | "arrow" => {
            format!("`powersweep results {} --table {table} --format {ending} --output {output}` does", args.experiment)
        }
        _ => "name a folder, or with --table a file whose name ends in .parquet".to_owned(),
    };
    Err(failure!(Usage, "{output}: an export does not write .{ending} files; {hint}"))
}

/// Gives the complete export its name, which must still be free.
fn publish(partial: &Path, output: &Path, file: Option<Table>) -> Result<(), Failure> {
    let named = match file {
        // A link never replaces a file; a rename would.
        Some(table) => std::fs::hard_link(partial.join(format!("{table}.parquet")), output),
        None => refuse_existing(output).map(|()| std::fs::rename(partial, output))?,
    };
    named.map_err(|error| cannot_write(output, &error))
}

/// The export of one table.
struct Export<'a> {
    datasets: &'a Datasets,
    args: &'a ExportArgs,
    table: Table,
    /// The file to write.
    target: &'a Path,
}

impl Export<'_> {
    /// Copies the table. Returns the number of rows; a table without rows gives no file.
    async fn copy(&self) -> Result<u64, Failure> {
        let reading = self.datasets.read(&self.args.experiment, self.table).await?;
        if !reading.has_rows() {
            if self.args.table.is_some() {
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
        let out = File::create(self.target).map_err(|error| self.failed(error))?;
        let (rows, out) = copy.write(&self.args.experiment, BufWriter::new(out)).await?;
        let file = out.into_inner().map_err(|error| self.failed(error.into_error()))?;
        file.sync_all().map_err(|error| self.failed(error))?;
        Ok(rows)
    }

    async fn tasks(&self) -> Result<Reading, Failure> {
        self.datasets.read(&self.args.experiment, Table::Tasks).await
    }

    /// The columns of the file, and where they come from.
    async fn columns(&self, own: &SchemaRef, rows: &[Part]) -> Result<(SchemaRef, Vec<Origin>), Failure> {
        let of_own = |name: &str| Origin::Own(name.to_owned());
        let names = own.fields().iter().map(|field| field.name().as_str());
        if self.args.tidy {
            return self.tidy(own, rows).await;
        }
        if !self.args.wide || self.table == Table::Tasks {
            return Ok((Arc::clone(own), names.map(of_own).collect()));
        }
        let axes: Vec<String> = tasks::axes().into_iter().map(|column| column.name).collect();
        let schema = join::schema(own, &scan::columns(axes.iter().map(String::as_str)));
        Ok((schema, names.map(of_own).chain(axes.into_iter().map(Origin::Task)).collect()))
    }

    /// The columns that vary among tasks, then the values of the table that a row has; both in the order of the tables.
    async fn tidy(&self, own: &SchemaRef, rows: &[Part]) -> Result<(SchemaRef, Vec<Origin>), Failure> {
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

    fn failed(&self, error: io::Error) -> Failure {
        cannot_write(self.target, &error)
    }
}

/// Whether a row has a value in this column.
fn has_value(rows: &[Part], name: &str) -> bool {
    let null = ColumnStats::Equal(Cell::Null);
    rows.iter().any(|part| (0..part.groups().len()).any(|group| part.stats(name, group) != null))
}
