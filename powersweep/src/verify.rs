//! Some finished tasks, simulated again: their rows must be equal bit for bit.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use bytes::Bytes;
use parquet::arrow::arrow_reader::{RowGroupSelection, RowSelection};
use powersweep_coordinator::farm::KERNEL;
use powersweep_dataset::cell::json_of;
use powersweep_dataset::reading::{Part, relaxed};
use powersweep_dataset::scan::INDEX;
use powersweep_dataset::{Error, Kind, Notes, OrKind, failure};
use powersweep_engine::Details;
use powersweep_engine::rng::{Philox, Purpose};
use powersweep_engine::workload::LOG;
use powersweep_experiments::url::public_name;
use powersweep_experiments::{Digest, Manifest, Sweep, TaskSpec};
use powersweep_inputs::library::{Library, ParsedLogs};
use powersweep_results::identity::{Micros, RunFacts};
use powersweep_results::part::Origin;
use powersweep_results::{Table, part, tasks};
use powersweep_worker::TaskLimits;
use powersweep_worker::task::{Inputs, TaskError};
use serde_json::Value as Json;

use crate::inputs::{self, Files, LOGS_BYTES, ManifestFiles};
use crate::parallel::on_all_cores;
use crate::place::Place;
use crate::results::no_rows;

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
    /// The column; `(the task)` for a task that has no row now.
    pub column: String,
    /// The stored value as JSON.
    pub stored: String,
    /// The value now as JSON, or why there is none.
    pub now: String,
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
    /// Rows that are equal in every column that does not depend on the run.
    pub equal: usize,
    /// Rows of another manifest than the given or the known one, so that they were not compared.
    pub foreign: usize,
    /// Tasks of the manifest in a file that have no row there.
    pub missing: u64,
    /// Rows that differ, by the index of their task. A row of an exported file that is no row of its task differs, too.
    pub differing: BTreeMap<i64, Vec<Difference>>,
}

impl Place {
    /// Simulates a random sample of finished tasks again, and compares their rows. `experiment` is a name, or the path of an
    /// exported file of `tasks`, of which the columns are compared that it has. The manifest in such a file may name files of the
    /// search path only: a given manifest may name others.
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
        let Sample { stored, rows, file } = self.sample(experiment, options, sample_seed).await?;
        let of_rows = stored.first().map(|stored| stored.cell("experiment"));
        if let Some((manifest, Json::String(name))) = options.manifest.as_ref().zip(of_rows)
            && name != manifest.name()
        {
            let given = manifest.name();
            return Err(failure!(Usage, "the rows are of the experiment {name}, and the given manifest is of {given}"));
        }
        let mut verified = Verified { tasks: stored.len(), rows, sample_seed, ..Verified::default() };
        let (mut options, notes) = (options.clone(), self.notes.clone());
        if is_file(experiment) && options.manifest.is_none() {
            // The file may come from anybody.
            options.library = options.library.on_search_path();
        }
        let compared = tokio::task::spawn_blocking(move || {
            let compared = compared(&stored, file.as_ref(), &options, &notes)?;
            Ok::<_, Error>((compared, file))
        });
        let ((compared, tasks), file) = compared.await.or_kind(Kind::Failure)??;
        if let Some(file) = file {
            verified.missing = tasks.map_or(0, |tasks| tasks.saturating_sub(file.indices.len() as u64));
            verified.differing.extend(file.repeated());
        }
        for compared in compared {
            match compared {
                Compared::Equal => verified.equal += 1,
                Compared::Foreign => verified.foreign += 1,
                Compared::Differs(index, columns) => {
                    verified.differing.insert(index, columns);
                }
            }
        }
        Ok(verified)
    }

    /// Chooses rows.
    async fn sample(&self, experiment: &str, options: &VerifyOptions, seed: u64) -> Result<Sample, Error> {
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
        let (mut stored, mut before) = (Vec::new(), 0);
        for (part, group) in groups {
            let schema = if is_exported { stored_columns(part) } else { relaxed(&tasks::schema()) };
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
            let some = RowSelection::from_consecutive_ranges(wanted.iter().map(|row| *row..row + 1), count);
            let batch = part.batch(&schema, RowGroupSelection::new(group, Some(some))).await?;
            stored.extend(
                (0..batch.num_rows()).map(|row| Stored { row: batch.slice(row, 1), manifest: manifest.clone() }),
            );
        }
        Ok(Sample { stored, rows: all, file })
    }
}

/// The chosen rows.
struct Sample {
    stored: Vec<Stored>,
    /// Number of all rows.
    rows: usize,
    /// The exported file of the rows; `None` for rows of an experiment.
    file: Option<ExportedFile>,
}

/// The origin of an exported file, and the task indices of all its rows.
struct ExportedFile {
    origin: Origin,
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
        Ok(ExportedFile { origin: part.origin(), indices })
    }

    /// Tasks that have several rows, as differences.
    fn repeated(&self) -> impl Iterator<Item = (i64, Vec<Difference>)> + '_ {
        self.indices.iter().filter(|(_, rows)| **rows > 1).map(|(index, rows)| {
            let column = "(the task)".to_owned();
            (*index, vec![Difference { column, stored: format!("{rows} rows"), now: "1 row".to_owned() }])
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

/// The columns of `tasks` that a file has.
fn stored_columns(part: &Part) -> SchemaRef {
    let all = relaxed(&tasks::schema());
    let stored = all.fields().iter().filter(|field| part.schema().column_with_name(field.name()).is_some());
    Arc::new(Schema::new(stored.cloned().collect::<Vec<_>>()))
}

/// A stored row, and the manifest that its part names.
struct Stored {
    row: RecordBatch,
    manifest: String,
}

/// What came of a task.
enum Compared {
    /// Every column is equal.
    Equal,
    /// The manifest has another task at the row's index.
    Foreign,
    /// Some columns of the task of this index differ.
    Differs(i64, Vec<Difference>),
}

/// Runs the tasks of the rows again, on all cores. Returns the number of tasks, too, if it is known that all rows of the file are
/// of one manifest.
fn compared(
    sample: &[Stored],
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
    let compared = on_all_cores(sample, |row| match row.compared(&sweeps[&row.manifest], &logs) {
        Compared::Foreign if whole.is_some() => row.of_no_task(&sweeps[&row.manifest]),
        compared => compared,
    });
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

/// The tasks of a manifest and their inputs.
struct Replay {
    sweep: Sweep,
    digests: BTreeMap<String, Digest>,
    inputs: Inputs,
    files: ManifestFiles,
}

impl Replay {
    fn of(manifest: &Manifest, library: &Library, logs: &Arc<ParsedLogs>, notes: &Notes) -> Result<Replay, Error> {
        let digests = Files::read(manifest, library, Some(logs), notes)?.digests;
        let sweep = inputs::sweep(manifest, &digests)?;
        let files = ManifestFiles::new(manifest.files(), library.clone());
        Ok(Replay { inputs: Inputs::of(&sweep), sweep, digests, files })
    }

    /// Whether the tasks have the ids of rows of this origin: equal versions, and equal files.
    fn gives(&self, origin: &Origin) -> bool {
        let versions = powersweep_proto::versions("", 0);
        let version = |name: &String| match name.as_str() {
            KERNEL => Some(versions.kernel),
            name => versions.parts.get(name).copied(),
        };
        let Origin { component_versions, log_digests, .. } = origin;
        !component_versions.is_empty()
            && component_versions.iter().all(|(name, made)| version(name) == Some(*made))
            && log_digests.iter().all(|(log, made)| self.digests.get(log).is_some_and(|own| own.to_string() == *made))
    }

    /// The row of a task.
    fn row(&self, task: TaskSpec, logs: &ParsedLogs) -> Result<RecordBatch, TaskError> {
        let prepared = self.inputs.prepare(task, logs, &self.files)?;
        let ran = prepared.run(&TaskLimits::default().begin(), &|| false, &mut Details::default())?;
        let run = RunFacts {
            attempt: 1,
            worker: String::new(),
            started_at: Micros(0),
            wall_ms: 0.0,
            engine_ms: 0.0,
            parse_ms: 0.0,
        };
        let mut builder = tasks::Builder::new();
        builder.push(&prepared.task, &prepared.workload.counts, &ran.measured, &run);
        Ok(builder.finish())
    }
}

impl Stored {
    fn cell(&self, name: &str) -> Json {
        self.row.column_by_name(name).map(|column| json_of(column, 0)).unwrap_or_default()
    }

    /// The row of a file whose rows are all of one manifest, which has another task at its index.
    fn of_no_task(&self, replay: &Replay) -> Compared {
        let index = self.cell("task_index").as_i64().unwrap_or(-1);
        let task = u64::try_from(index).ok().and_then(|index| replay.sweep.task(index));
        let now = task.map_or_else(
            || "no task has this index".to_owned(),
            |task| Json::from(task.task_id.to_string()).to_string(),
        );
        let stored = self.cell("task_id").to_string();
        Compared::Differs(index, vec![Difference { column: "task_id".to_owned(), stored, now }])
    }

    fn compared(&self, replay: &Replay, logs: &ParsedLogs) -> Compared {
        let index = self.cell("task_index").as_i64().unwrap_or(-1);
        let task = u64::try_from(index).ok().and_then(|index| replay.sweep.task(index));
        let Some(task) = task.filter(|task| self.cell("task_id") == task.task_id.to_string()) else {
            return Compared::Foreign;
        };
        match replay.row(task, logs) {
            Ok(now) => self.beside(index, &now),
            Err(error) => {
                let (column, stored) = ("(the task)".to_owned(), "a row".to_owned());
                Compared::Differs(index, vec![Difference { column, stored, now: error.to_string() }])
            }
        }
    }

    /// Compares every column that does not depend on the run.
    fn beside(&self, index: i64, now: &RecordBatch) -> Compared {
        let of_run = |name: &str| RunFacts::FIELDS.iter().any(|field| field.name == name);
        let mut columns = Vec::new();
        for (field, column) in now.schema_ref().fields().iter().zip(now.columns()) {
            let Some(stored) = self.row.column_by_name(field.name()) else { continue };
            let cell = json_of(stored, 0);
            // Earlier versions stored the place of a log. Its digest is a column, too.
            let is_place = field.name() == LOG.name && cell.as_str().is_some_and(|place| public_name(place) != place);
            if !of_run(field.name()) && !is_place && stored.as_ref() != column.as_ref() {
                let stored = cell.to_string();
                let now = json_of(column, 0).to_string();
                columns.push(Difference { column: field.name().clone(), stored, now });
            }
        }
        if columns.is_empty() { Compared::Equal } else { Compared::Differs(index, columns) }
    }
}
