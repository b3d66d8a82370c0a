//! `powersweep export`: copies an experiment's tables, each into one file sorted by task.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufReader, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch, UInt32Array};
use arrow::compute::{concat_batches, take_record_batch};
use arrow::datatypes::{Int64Type, SchemaRef};
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;
use powersweep_coordinator::records::Table;
use powersweep_coordinator::store::Location;
use powersweep_results::join::{self, TasksById};
use powersweep_results::{part, tasks};

use crate::args::ExportArgs;
use crate::exit::{Exit, Failure, OrExit, Outcome, failure};
use crate::reading::{Reading, narrowed, relaxed, schema_of};
use crate::writing::{cannot_write, partial_beside};
use crate::{client, screen, stored};

/// Rows that are sorted in memory at once: about 100 MB of the widest table.
const BUCKET_ROWS: u64 = 65_536;
/// Rows that are joined and written at once.
const JOINED_ROWS: usize = 8_192;
/// Maximum number of buckets; their open files stay far below a usual limit.
const BUCKETS_MAX: u64 = 256;
/// Maximum number of task indices in the sample that determines the borders of buckets.
const SAMPLE_MAX: usize = 1 << 20;

/// Endings of the names of files in other formats.
const OTHER_FORMATS: &[&str] =
    &["csv", "json", "arrow", "tsv", "txt", "jsonl", "ndjson", "ipc", "feather", "xlsx", "gz", "zst", "zip", "pq"];

/// Copies one table or all tables.
pub fn run(args: &ExportArgs) -> Outcome {
    let location = args.data.location()?;
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
    let tables = args.table.map_or(Table::ALL.to_vec(), |table| vec![table]);
    let mut copied = Vec::new();
    for table in tables {
        let target = partial.join(format!("{table}.parquet"));
        let export = Export { location: &location, args, table, target: &target, spill: partial.join("spill") };
        let rows = client::block_on(export.copy())?;
        if rows > 0 || args.table.is_some() {
            copied.push((table, rows));
        }
    }
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

/// A folder that is deleted when this value is dropped.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
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

fn refuse_existing(output: &Path) -> Result<(), Failure> {
    match output.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(cannot_write(output, &error)),
        Ok(_) => Err(failure!(Refused, "{} exists already, and an export overwrites nothing", output.display())),
    }
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
    location: &'a Location,
    args: &'a ExportArgs,
    table: Table,
    /// The file to write.
    target: &'a Path,
    /// A folder for the files of the buckets.
    spill: PathBuf,
}

impl Export<'_> {
    /// Copies the table, sorted by task index and identity; rows of one task keep their order. Returns the number of
    /// rows; a table without rows gives no file. Rows are first spread over buckets by index, which are sorted one by
    /// one: memory does not grow with the table.
    async fn copy(&self) -> Result<u64, Failure> {
        let reading = Reading::open(self.location, &self.args.experiment, self.table).await?;
        if !reading.has_rows() {
            if self.args.table.is_some() {
                stored::check_table(self.location, &self.args.experiment, self.table).await?;
            }
            return Ok(0);
        }
        let scratch = Scratch(self.spill.clone());
        std::fs::create_dir_all(&self.spill).map_err(|error| self.failed(error))?;
        let (rows, borders, lacks) = survey(&reading, self.table).await?;
        let known = schema_of(self.table);
        let schema = if lacks { relaxed(&known) } else { known };
        let buckets = Buckets::spread(&reading, &schema, &borders, self.spill.join("rows")).await?;
        let tasks = self.tasks(&borders).await?;
        let written = tasks.as_ref().map_or(schema.clone(), |tasks| join::schema(&schema, &tasks.schema));
        let out = File::create(self.target).map_err(|error| self.failed(error))?;
        let sync = out.try_clone().map_err(|error| self.failed(error))?;
        let out = BufWriter::new(out);
        let mut writer = part::export_writer(&written, &self.args.experiment, out).or_exit(Exit::Storage)?;
        for bucket in 0..=borders.len() {
            let batches = buckets.read(bucket)?.collect::<Result<Vec<_>, _>>().or_exit(Exit::Storage)?;
            let rows = sorted(&schema, &batches)?;
            drop(batches);
            // A task that failed under an earlier manifest may have its row under another index. The other tables' rows
            // have the index of their task's row.
            let elsewhere = self.table == Table::Failures;
            let tasks = tasks.as_ref().map(|tasks| tasks.of(&rows, bucket, elsewhere)).transpose()?;
            for from in (0..rows.num_rows()).step_by(JOINED_ROWS) {
                let some = rows.slice(from, JOINED_ROWS.min(rows.num_rows() - from));
                let joined = match &tasks {
                    Some(tasks) => tasks.join(&some).or_exit(Exit::Storage)?,
                    None => some,
                };
                writer.write(&joined).or_exit(Exit::Storage)?;
            }
        }
        writer.close().or_exit(Exit::Storage)?;
        sync.sync_all().map_err(|error| self.failed(error))?;
        drop(scratch);
        Ok(rows)
    }

    /// The rows of `tasks` for a wide export, in the same buckets. `tasks` is read after the table, so that it has the
    /// task of every row.
    async fn tasks(&self, borders: &[i64]) -> Result<Option<Buckets>, Failure> {
        if !self.args.wide || self.table == Table::Tasks {
            return Ok(None);
        }
        let reading = Reading::open(self.location, &self.args.experiment, Table::Tasks).await?;
        let mut wanted: BTreeSet<String> = tasks::axes().into_iter().map(|column| column.name).collect();
        wanted.extend(["task_id", "task_index"].map(str::to_owned));
        let schema = narrowed(&relaxed(&tasks::schema()), &wanted);
        Ok(Some(Buckets::spread(&reading, &schema, borders, self.spill.join("tasks")).await?))
    }

    fn failed(&self, error: io::Error) -> Failure {
        cannot_write(self.target, &error)
    }
}

/// Number of rows, task indices at which the second and later buckets begin, and whether a part lacks a column.
async fn survey(reading: &Reading, table: Table) -> Result<(u64, Vec<i64>, bool), Failure> {
    let narrow = narrowed(&relaxed(&schema_of(table)), &BTreeSet::from(["task_index".to_owned()]));
    let (mut rows, mut sample, mut step) = (0_u64, Vec::new(), 1_u64);
    reading
        .each(&narrow, |batch| {
            for index in batch.column(0).as_primitive::<Int64Type>().iter() {
                if rows % step == 0 {
                    sample.push(index.unwrap_or(i64::MAX));
                }
                rows += 1;
                if sample.len() == SAMPLE_MAX {
                    // Every second index stays: these are the rows at multiples of the doubled step.
                    sample = sample.iter().copied().step_by(2).collect();
                    step *= 2;
                }
            }
            Ok(true)
        })
        .await?;
    sample.sort_unstable();
    let buckets = rows.div_ceil(BUCKET_ROWS).clamp(1, BUCKETS_MAX);
    let borders = (1..buckets).map(|n| sample[(n as usize * sample.len()) / buckets as usize]);
    let mut borders: Vec<i64> = borders.collect();
    borders.dedup();
    Ok((rows, borders, reading.lacks_columns().await?))
}

/// Rows of a table, in one file for each range of task indices.
struct Buckets {
    schema: SchemaRef,
    files: Vec<PathBuf>,
}

impl Buckets {
    /// Writes each row to the file of its bucket.
    async fn spread(
        reading: &Reading,
        schema: &SchemaRef,
        borders: &[i64],
        folder: PathBuf,
    ) -> Result<Buckets, Failure> {
        std::fs::create_dir(&folder).map_err(|error| cannot_write(&folder, &error))?;
        let paths: Vec<PathBuf> = (0..=borders.len()).map(|bucket| folder.join(format!("{bucket}.arrow"))).collect();
        let mut files = Vec::new();
        for path in &paths {
            let file = File::create(path).map_err(|error| cannot_write(path, &error))?;
            files.push(StreamWriter::try_new(BufWriter::new(file), schema).or_exit(Exit::Storage)?);
        }
        reading
            .each(schema, |batch| {
                let mut of_bucket: Vec<Vec<u32>> = vec![Vec::new(); files.len()];
                for (row, index) in index_column(&batch)?.iter().enumerate() {
                    let index = index.unwrap_or(i64::MAX);
                    of_bucket[borders.partition_point(|border| *border <= index)].push(row as u32);
                }
                for (file, rows) in files.iter_mut().zip(of_bucket).filter(|(_, rows)| !rows.is_empty()) {
                    let taken = take_record_batch(&batch, &UInt32Array::from(rows)).or_exit(Exit::Failure)?;
                    file.write(&taken).or_exit(Exit::Storage)?;
                }
                Ok(true)
            })
            .await?;
        files.iter_mut().try_for_each(|file| file.finish().or_exit(Exit::Storage))?;
        Ok(Buckets { schema: Arc::clone(schema), files: paths })
    }

    /// The rows of a bucket.
    fn read(&self, bucket: usize) -> Result<StreamReader<BufReader<File>>, Failure> {
        let path = &self.files[bucket];
        let file = File::open(path).map_err(|error| cannot_write(path, &error))?;
        StreamReader::try_new_buffered(file, None).or_exit(Exit::Storage)
    }

    /// The rows of `tasks` of the tasks of these rows, which are in a bucket of another table. With `elsewhere`, tasks
    /// that are not in the same bucket are looked up in the other buckets.
    fn of(&self, rows: &RecordBatch, bucket: usize, elsewhere: bool) -> Result<TasksById, Failure> {
        let mut ids: BTreeSet<String> =
            join::task_ids(rows).or_exit(Exit::Storage)?.iter().flatten().map(str::to_owned).collect();
        let others = (0..self.files.len()).filter(|other| elsewhere && *other != bucket);
        let mut found = Vec::new();
        for bucket in std::iter::once(bucket).chain(others) {
            if ids.is_empty() {
                break;
            }
            for batch in self.read(bucket)? {
                let of_ids = join::of_tasks(&batch.or_exit(Exit::Storage)?, &ids).or_exit(Exit::Storage)?;
                for id in join::task_ids(&of_ids).or_exit(Exit::Storage)?.iter().flatten() {
                    ids.remove(id);
                }
                found.push(of_ids);
            }
        }
        let found = concat_batches(&self.schema, &found).or_exit(Exit::Failure)?;
        TasksById::new(found).or_exit(Exit::Storage)
    }
}

fn index_column(batch: &RecordBatch) -> Result<&arrow::array::Int64Array, Failure> {
    let column = batch.column_by_name("task_index").and_then(|column| column.as_primitive_opt::<Int64Type>());
    column.ok_or_else(|| failure!(Storage, "a part has no column `task_index`"))
}

fn sorted(schema: &SchemaRef, batches: &[RecordBatch]) -> Result<RecordBatch, Failure> {
    let all = concat_batches(schema, batches).or_exit(Exit::Failure)?;
    let index = index_column(&all)?;
    let ids = join::task_ids(&all).or_exit(Exit::Storage)?;
    let mut order: Vec<u32> = (0..all.num_rows() as u32).collect();
    // The sort is stable, so that the jobs of a task keep their order.
    order.sort_by_key(|&row| (index.value(row as usize), ids.value(row as usize)));
    take_record_batch(&all, &UInt32Array::from(order)).or_exit(Exit::Failure)
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, Int64Array, StringArray};

    use super::*;

    /// Rows with a column of the table's own.
    fn rows(own: &str, ids: &[&str], indices: &[i64]) -> RecordBatch {
        let ids: ArrayRef = Arc::new(StringArray::from(ids.to_vec()));
        let indices: ArrayRef = Arc::new(Int64Array::from(indices.to_vec()));
        RecordBatch::try_from_iter([("task_id", ids), ("task_index", indices.clone()), (own, indices)])
            .expect("columns of one length")
    }

    #[test]
    fn a_failure_under_an_earlier_manifest_finds_its_task_in_another_bucket() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let tasks = [rows("seed", &["a", "b"], &[0, 1]), rows("seed", &["c"], &[70_000])];
        let schema = tasks[0].schema();
        let write = |(bucket, rows): (usize, &RecordBatch)| {
            let path = folder.path().join(format!("{bucket}.arrow"));
            let mut file = StreamWriter::try_new(File::create(&path).expect("writable"), &schema).expect("a stream");
            file.write(rows).and_then(|()| file.finish()).expect("written");
            path
        };
        let buckets = Buckets { schema: Arc::clone(&schema), files: tasks.iter().enumerate().map(write).collect() };
        // The failure of `c` was at index 5 of the earlier manifest, and `d` has no row.
        let failures = rows("attempt", &["a", "c", "d"], &[0, 5, 6]);
        let seeds = |elsewhere: bool| {
            let tasks = buckets.of(&failures, 0, elsewhere).map_err(|failure| failure.message).expect("readable");
            let joined = tasks.join(&failures).expect("it has ids");
            let seeds = joined.column_by_name("seed").expect("a column of `tasks`").as_primitive::<Int64Type>();
            seeds.iter().collect::<Vec<_>>()
        };
        assert_eq!(seeds(true), [Some(0), Some(70_000), None]);
        assert_eq!(seeds(false), [Some(0), None, None], "only the same bucket is read");
    }
}
