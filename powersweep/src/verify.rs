//! Some finished tasks, simulated again: their rows in every table must be equal bit for bit.

mod replay;
mod tables;

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::slice;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use arrow::array::AsArray;
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use bytes::Bytes;
use parquet::arrow::arrow_reader::{RowGroupSelection, RowSelection};
use powersweep_dataset::reading::{Part, relaxed};
use powersweep_dataset::scan::INDEX;
use powersweep_dataset::words::count;
use powersweep_dataset::{Error, Kind, Notes, OrKind, failure};
use powersweep_engine::rng::{Philox, Purpose};
use powersweep_experiments::Manifest;
use powersweep_inputs::library::{Library, ParsedLogs};
use powersweep_results::part::Origin;
use powersweep_results::{Table, part, tasks};
use serde_json::Value as Json;

use self::replay::{Compared, Replay, Rerun, Stored};
use self::tables::{NO_FILE, NOT_ASKED, TaskRows, is_of_table, lacking};
use crate::inputs::{self, LOGS_BYTES};
use crate::parallel::on_all_cores;
use crate::place::Place;
use crate::results::no_rows;

/// Names of lacking columns that are shown for a table.
const LACKING_SHOWN: usize = 5;

/// Which tasks run again.
#[derive(Clone)]
pub struct VerifyOptions {
    /// Number of tasks.
    pub tasks: usize,
    /// Chooses the tasks: equal numbers choose equal ones. By default from the clock.
    pub sample_seed: Option<u64>,
    /// The manifest of the rows; by default the one in their files.
    pub manifest: Option<Manifest>,
    /// Where its files are searched for.
    pub library: Library,
}

impl Default for VerifyOptions {
    fn default() -> VerifyOptions {
        VerifyOptions { tasks: 100, sample_seed: None, manifest: None, library: Library::new(Vec::new(), None) }
    }
}

/// A column of a row that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The table.
    pub table: Table,
    /// The column, with the table if it is not `tasks`, and the row if the task has several; `(the task)` for a task that has no
    /// row now, `(the rows)` for another number of them.
    pub column: String,
    /// The stored value as JSON.
    pub stored: String,
    /// The value now as JSON, or why there is none.
    pub now: String,
}

impl Difference {
    fn of_tasks(column: &str, stored: String, now: String) -> Difference {
        Difference { table: Table::Tasks, column: column.to_owned(), stored, now }
    }
}

/// What came of the tasks that ran again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verified {
    /// Number of tasks that ran again.
    pub tasks: usize,
    /// Number of all rows.
    pub rows: usize,
    /// What has chosen the tasks.
    pub sample_seed: u64,
    /// Rows of `tasks` that are equal in every column that does not depend on the run.
    pub equal: usize,
    /// Rows of other tables that are equal, by table.
    pub others: BTreeMap<Table, u64>,
    /// Rows of another manifest than the given or the known one, so that they were not compared.
    pub foreign: usize,
    /// Other rows that were not compared, with the reason, in sentences.
    pub not_compared: Vec<String>,
    /// Whether some of these rows had to be compared: files are other ones than those that rows were made from, or rows are missing.
    pub is_partial: bool,
    /// Columns that the files of rows lack, by table.
    pub lacking: BTreeMap<Table, Vec<String>>,
    /// Tasks of the manifest in a file that have no row there.
    pub missing: u64,
    /// Values that differ, by the index of their task. A row of an exported file that is no row of its task differs, too.
    pub differing: BTreeMap<i64, Vec<Difference>>,
}

impl Verified {
    /// The rows that are equal, in words.
    pub fn equal_rows(&self) -> String {
        let columns = if self.lacking.is_empty() { "every column" } else { "every column of the files" };
        let mut text = format!("{} equal in {columns}, bit for bit", count(self.equal as u64, "row"));
        let others = self.others.iter().map(|(table, rows)| format!("{table} {}", count(*rows, "row")));
        let others = others.collect::<Vec<_>>().join(", ");
        if !others.is_empty() {
            text.push_str(&format!("; and of other tables: {others}"));
        }
        text
    }

    /// The rows that differ, in words; `of` is what they are of.
    pub fn differing_rows(&self, of: &str) -> String {
        let tables = self.differing.values().flatten().map(|difference| difference.table);
        let tables: BTreeSet<Table> = tables.collect();
        let differing = self.differing.len() as u64;
        if tables.iter().all(|table| *table == Table::Tasks) {
            return format!("{}{of} {}", count(differing, "row"), if differing == 1 { "differs" } else { "differ" });
        }
        let tables: Vec<&str> = tables.into_iter().map(Table::name).collect();
        format!("the rows of {}{of} differ in {}", count(differing, "task"), tables.join(" and "))
    }

    fn add(&mut self, compared: Compared, gaps: &mut BTreeMap<(Table, String), u64>) {
        match compared {
            Compared::Foreign => self.foreign += 1,
            Compared::OfOthers(why) => *gaps.entry((Table::Tasks, why)).or_default() += 1,
            Compared::Ran(Rerun { index, differing, equal, not_compared }) => {
                self.tasks += 1;
                self.equal += usize::from(differing.iter().all(|difference| difference.table != Table::Tasks));
                for (table, rows) in equal {
                    *self.others.entry(table).or_default() += rows;
                }
                for gap in not_compared {
                    *gaps.entry(gap).or_default() += 1;
                }
                if !differing.is_empty() {
                    self.differing.insert(index, differing);
                }
            }
        }
    }

    /// Says what was not compared. `has_all`: whether a table without a file counts as missing.
    fn say_gaps(&mut self, gaps: BTreeMap<(Table, String), u64>, has_all: bool) {
        self.is_partial = gaps.keys().any(|(_, why)| why != NOT_ASKED && (has_all || why != NO_FILE));
        let rows = gaps.into_iter().map(|((table, why), tasks)| match table {
            Table::Tasks => format!("not compared: {}: {why}", count(tasks, "row")),
            _ => format!("not compared: {table} of {}: {why}", count(tasks, "task")),
        });
        let columns = self.lacking.iter().map(|(table, columns)| {
            let number = count(columns.len() as u64, "column");
            let some = columns[..columns.len().min(LACKING_SHOWN)].join(", ");
            format!("not compared: {number} of {table} that the files lack, among them {some}")
        });
        self.not_compared = rows.chain(columns).collect();
    }
}

impl Place {
    /// Simulates a random sample of finished tasks again, and compares their rows of all tables. `experiment` is a name, or the path
    /// of an exported file of `tasks`, of which the columns are compared that it has; the other tables are those beside a file
    /// `tasks.parquet`. The manifest in such a file may name files of the search path only: a given manifest may name others.
    ///
    /// # Errors
    /// The experiment is unknown or has no rows, or its manifest or files cannot be read.
    pub async fn verify(&self, experiment: &str, options: &VerifyOptions) -> Result<Verified, Error> {
        let sample_seed = options.sample_seed.unwrap_or_else(|| {
            SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos() as u64 % 1_000_000)
        });
        if options.tasks == 0 {
            return Err(failure!(Usage, "no task would run again: at least one must be chosen"));
        }
        let (stored, rows, file) = self.sample(experiment, options, sample_seed).await?;
        let of_rows = stored.first().map(|stored| stored.cell("experiment"));
        if let Some((manifest, Json::String(name))) = options.manifest.as_ref().zip(of_rows)
            && name != manifest.name()
        {
            let given = manifest.name();
            return Err(failure!(Usage, "the rows are of the experiment {name}, and the given manifest is of {given}"));
        }
        let ids = stored.iter().map(Stored::task_id).collect();
        let tables = self.rows_of_tasks(experiment, file.is_some(), &ids).await?;
        let mut verified = Verified { rows, sample_seed, ..Verified::default() };
        let (mut options, notes) = (options.clone(), self.notes.clone());
        if is_file(experiment) && options.manifest.is_none() {
            // The file may come from anybody.
            options.library = options.library.on_search_path();
        }
        let compared = tokio::task::spawn_blocking(move || {
            let compared = compared(&stored, &tables, file.as_ref(), &options, &notes)?;
            Ok::<_, Error>((compared, file, tables))
        });
        let ((compared, tasks), file, tables) = compared.await.or_kind(Kind::Failure)??;
        verified.lacking = tables.iter().map(|rows| (rows.table, rows.lacking.clone())).collect();
        if let Some(file) = file {
            verified.lacking.insert(Table::Tasks, file.lacking.clone());
            verified.missing = tasks.map_or(0, |tasks| tasks.saturating_sub(file.indices.len() as u64));
            verified.differing.extend(file.repeated());
        }
        verified.lacking.retain(|_, columns| !columns.is_empty());
        let mut gaps = BTreeMap::new();
        compared.into_iter().for_each(|compared| verified.add(compared, &mut gaps));
        verified.say_gaps(gaps, !is_file(experiment) || is_of_table(Path::new(experiment)));
        Ok(verified)
    }

    /// The chosen rows, the number of all rows, and the exported file that has them; `None` for rows of an experiment.
    async fn sample(
        &self,
        experiment: &str,
        options: &VerifyOptions,
        seed: u64,
    ) -> Result<(Vec<Stored>, usize, Option<ExportedFile>), Error> {
        let exported = exported(experiment).await?;
        let file = match &exported {
            Some(part) => Some(ExportedFile::of(part).await?),
            None => None,
        };
        let is_exported = file.is_some();
        let parts = match exported {
            Some(part) => vec![part],
            None => self.datasets().await?.read_whole(experiment, Table::Tasks).await?.parts_of_all().await?,
        };
        let groups: Vec<(&Part, usize)> =
            parts.iter().flat_map(|part| (0..part.groups().len()).map(move |group| (part, group))).collect();
        let all: usize = groups.iter().map(|(part, group)| part.rows(*group)).sum();
        if all == 0 {
            return Err(failure!(Usage, "{}", no_rows(experiment)));
        }
        let given = options.manifest.as_ref().map(|manifest| manifest.source().to_owned());
        // Unpublished rows name no manifest; theirs is the present one, which the last part has.
        let last = parts.iter().rev().find_map(Part::manifest);
        let chosen = chosen(seed, all, options.tasks);
        let schema = if is_exported { stored_columns(Table::Tasks, &parts) } else { relaxed(&tasks::schema()) };
        let (mut stored, mut before) = (Vec::new(), 0);
        for (part, group) in groups {
            let count = part.rows(group);
            let wanted: Vec<usize> = chosen.range(before..before + count).map(|row| row - before).collect();
            before += count;
            if wanted.is_empty() {
                continue;
            }
            let manifest = given.clone().or_else(|| part.manifest_of_indices()).or_else(|| last.clone());
            let manifest = manifest.ok_or_else(|| {
                failure!(
                    Usage,
                    "no file of {experiment} has its manifest: `powersweep flush {experiment}` publishes rows with it, unless it \
                     has more than 64 KiB. Or give the manifest of the rows"
                )
            })?;
            let origin = Arc::new(part.origin());
            let some = RowSelection::from_consecutive_ranges(wanted.iter().map(|row| *row..row + 1), count);
            let batch = part.batch(&schema, RowGroupSelection::new(group, Some(some))).await?;
            stored.extend((0..batch.num_rows()).map(|row| Stored {
                row: batch.slice(row, 1),
                manifest: manifest.clone(),
                origin: Arc::clone(&origin),
            }));
        }
        Ok((stored, all, file))
    }
}

/// The origin of an exported file, and the task indices of all its rows.
struct ExportedFile {
    origin: Origin,
    /// The columns of `tasks` that the file lacks, without those that depend on the run.
    lacking: Vec<String>,
    /// The rows of each task index.
    indices: BTreeMap<i64, usize>,
}

impl ExportedFile {
    async fn of(part: &Part) -> Result<ExportedFile, Error> {
        let column = Arc::new(Schema::new(vec![Field::new(INDEX, DataType::Int64, true)]));
        let mut indices = BTreeMap::new();
        for from in part.all() {
            let batch = part.batch(&column, from).await?;
            for index in batch.column(0).as_primitive::<Int64Type>().iter().flatten() {
                *indices.entry(index).or_default() += 1;
            }
        }
        let lacking = lacking(Table::Tasks, slice::from_ref(part));
        Ok(ExportedFile { origin: part.origin(), lacking, indices })
    }

    /// Tasks that have several rows, as differences.
    fn repeated(&self) -> impl Iterator<Item = (i64, Vec<Difference>)> + '_ {
        let repeated = self.indices.iter().filter(|(_, rows)| **rows > 1);
        repeated.map(|(index, rows)| {
            let difference = Difference::of_tasks("(the task)", format!("{rows} rows"), "1 row".to_owned());
            (*index, vec![difference])
        })
    }
}

/// Whether rows are named by a file, not by their experiment.
fn is_file(rows: &str) -> bool {
    rows.ends_with(".parquet")
}

/// The exported file of `tasks` at this path; `None` if it is the name of an experiment.
async fn exported(path: &str) -> Result<Option<Part>, Error> {
    if !is_file(path) {
        return Ok(None);
    }
    let bytes = foreign_table(path)?;
    let part = Part::held(&object_store::path::Path::from(path), bytes).await?;
    let lacks = |name: &&&str| part.schema().column_with_name(name).is_none();
    if let Some(name) = ["task_index", "task_id", "kernel_version"].iter().find(lacks) {
        let hint = "give the file of an export that keeps all columns of tasks";
        return Err(failure!(Usage, "{path} has no column `{name}` of the table tasks: {hint}"));
    }
    Ok(Some(part))
}

/// The bytes of a file that may be a stranger's, and is a table of powersweep.
pub(crate) fn foreign_table(path: &str) -> Result<Bytes, Error> {
    let bytes = std::fs::read(path).map_err(|error| failure!(Usage, "cannot read {path}: {error}"))?;
    let bytes = Bytes::from(bytes);
    // The library panics at some damaged files.
    match catch_unwind(AssertUnwindSafe(|| part::check_foreign(&bytes))) {
        Ok(checked) => checked.map_err(|error| failure!(Usage, "{path} is no table of powersweep: {error}"))?,
        Err(_) => return Err(failure!(Usage, "{path} is no table of powersweep: it is damaged")),
    }
    Ok(bytes)
}

/// The columns of a table that all parts have.
fn stored_columns(table: Table, parts: &[Part]) -> SchemaRef {
    let has = |name: &str| parts.iter().all(|part| part.schema().column_with_name(name).is_some());
    let all = relaxed(&table.schema());
    let stored = all.fields().iter().filter(|field| has(field.name()));
    Arc::new(Schema::new(stored.cloned().collect::<Vec<_>>()))
}

/// Runs the tasks of the rows again, on all cores. Returns the number of tasks, too, if it is known that all rows of the file are
/// of one manifest.
fn compared(
    sample: &[Stored],
    tables: &[TaskRows],
    file: Option<&ExportedFile>,
    options: &VerifyOptions,
    notes: &Notes,
) -> Result<(Vec<Compared>, Option<u64>), Error> {
    let logs = Arc::new(ParsedLogs::new(LOGS_BYTES));
    let mut sweeps = BTreeMap::new();
    for row in sample.iter().map(|stored| &stored.manifest) {
        if !sweeps.contains_key(row) {
            let name = "the manifest of the rows";
            let manifest = match &options.manifest {
                Some(given) => given.clone(),
                None => Manifest::parse(name, row).map_err(|errors| inputs::problems(name, &errors))?,
            };
            sweeps.insert(row.clone(), Replay::of(&manifest, &options.library, &logs, notes)?);
        }
    }
    let whole = file.and_then(|file| sweeps.get(&file.origin.manifest).filter(|replay| replay.gives(&file.origin)));
    let compared = on_all_cores(sample, |row| match row.compared(&sweeps[&row.manifest], tables, &logs)? {
        Compared::Foreign if whole.is_some() => Ok(row.of_no_task(&sweeps[&row.manifest])),
        compared => Ok(compared),
    });
    let compared = compared.into_iter().collect::<Result<_, Error>>()?;
    Ok((compared, whole.map(|replay| replay.sweep.task_count())))
}

/// Positions of a random sample of `all` rows.
fn chosen(seed: u64, all: usize, tasks: usize) -> BTreeSet<usize> {
    if tasks >= all {
        return (0..all).collect();
    }
    let mut random = Philox::stream(seed, Purpose::Resample);
    let mut chosen = BTreeSet::new();
    while chosen.len() < tasks {
        chosen.insert(random.below(all as u64) as usize);
    }
    chosen
}
