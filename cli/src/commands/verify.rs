//! `powersweep verify`: simulates some finished tasks again and compares their rows bit for bit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use arrow::array::RecordBatch;
use parquet::arrow::arrow_reader::{RowGroupSelection, RowSelection};
use powersweep::block_on;
use powersweep::inputs::LOGS_BYTES;
use powersweep_dataset::cell::json_of;
use powersweep_dataset::reading::{Part, relaxed};
use powersweep_engine::Details;
use powersweep_engine::rng::{Philox, Purpose};
use powersweep_experiments::{Manifest, Sweep, TaskSpec};
use powersweep_inputs::library::ParsedLogs;
use powersweep_results::Table;
use powersweep_results::identity::{Micros, RunFacts};
use powersweep_results::tasks;
use powersweep_worker::TaskLimits;
use powersweep_worker::task::{Inputs, TaskError};

use crate::args::VerifyArgs;
use crate::exit::{Failure, Outcome, failure};
use crate::inputs::{self, ManifestFiles};
use crate::screen;

/// Differences that are shown.
const SHOWN: usize = 20;

/// Simulates a random sample of tasks again.
pub fn run(args: &VerifyArgs) -> Outcome {
    let began = Instant::now();
    let sample_seed = args.sample_seed.unwrap_or_else(|| {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos() as u64 % 1_000_000)
    });
    let (sample, all) = block_on(sample(args, sample_seed))?;
    let logs = Arc::new(ParsedLogs::new(LOGS_BYTES));
    let mut sweeps = BTreeMap::new();
    for row in &sample {
        if !sweeps.contains_key(&row.manifest) {
            sweeps.insert(row.manifest.clone(), Replay::of(args, &row.manifest, &logs)?);
        }
    }
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let compare = || {
        while let Some(row) = sample.get(next.fetch_add(1, Ordering::Relaxed)) {
            let compared = row.compared(&sweeps[&row.manifest], &logs);
            found.lock().unwrap_or_else(PoisonError::into_inner).push(compared);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..std::thread::available_parallelism().map_or(1, usize::from).min(sample.len()) {
            scope.spawn(compare);
        }
        compare();
    });
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.sort();
    let differing = found.iter().filter(|compared| matches!(compared, Compared::Differs { .. })).count();
    let foreign = found.iter().filter(|compared| **compared == Compared::Foreign).count();
    let equal = found.len() - differing - foreign;
    let what = format!("{} of {} of {}", sample.len(), screen::count(all as u64, "task"), args.experiment);
    if foreign > 0 {
        let foreign = screen::count(foreign as u64, "row");
        screen::note(&format!(
            "powersweep: {foreign} are of an earlier manifest, which is not known, and were not compared; give it with --manifest"
        ));
    }
    if differing == 0 && equal > 0 {
        let time = screen::duration(began.elapsed().as_secs_f64());
        let rows = screen::count(equal as u64, "row");
        return screen::print(&format!(
            "{what} ran again, chosen by --sample-seed {sample_seed}: {rows} equal in every column, bit for bit ({time})"
        ));
    }
    if equal + differing == 0 {
        return Err(failure!(Failure, "no row could be compared"));
    }
    screen::print(&differences(&found))?;
    Err(failure!(ClaimFails, "{what} ran again, chosen by --sample-seed {sample_seed}: {differing} rows differ"))
}

/// A stored row, and the manifest that its part names.
struct Stored {
    row: RecordBatch,
    manifest: String,
}

/// What came of a task.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Compared {
    /// Every column is equal.
    Equal,
    /// The manifest has another task at the row's index.
    Foreign,
    /// Some columns differ: name, stored value, value now.
    Differs { index: i64, columns: Vec<(String, String, String)> },
}

/// Chooses rows. Returns them, and the number of all rows.
async fn sample(args: &VerifyArgs, seed: u64) -> Result<(Vec<Stored>, usize), Failure> {
    let datasets = args.from.place()?.datasets().await?;
    let reading = datasets.read(&args.experiment, Table::Tasks).await?;
    let parts = reading.parts_of_all().await?;
    let groups: Vec<(&Part, usize)> =
        parts.iter().flat_map(|part| (0..part.groups().len()).map(move |group| (part, group))).collect();
    let all: usize = groups.iter().map(|(part, group)| part.rows(*group)).sum();
    if all == 0 {
        return Err(failure!(Usage, "{} has no rows yet", args.experiment));
    }
    let given = args.manifest.as_deref().map(|name| inputs::text(name, "manifest")).transpose()?;
    // Unpublished rows name no manifest; theirs is the present one, which the last part has.
    let last = parts.iter().rev().find_map(Part::manifest);
    let chosen = chosen(seed, all, args.tasks);
    let schema = relaxed(&tasks::schema());
    let (mut rows, mut before) = (Vec::new(), 0);
    for (part, group) in groups {
        let count = part.rows(group);
        let wanted: Vec<usize> = chosen.range(before..before + count).map(|row| row - before).collect();
        before += count;
        if wanted.is_empty() {
            continue;
        }
        let manifest = given.clone().or_else(|| part.manifest()).or_else(|| last.clone());
        let manifest = manifest.ok_or_else(|| {
            failure!(Usage, "no file of {} has its manifest; give it with --manifest", args.experiment)
        })?;
        let some = RowSelection::from_consecutive_ranges(wanted.iter().map(|row| *row..row + 1), count);
        let batch = part.batch(&schema, RowGroupSelection::new(group, Some(some))).await?;
        rows.extend((0..batch.num_rows()).map(|row| Stored { row: batch.slice(row, 1), manifest: manifest.clone() }));
    }
    Ok((rows, all))
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
    inputs: Inputs,
    files: ManifestFiles,
}

impl Replay {
    /// The files of the manifest are searched for as `run` does.
    fn of(args: &VerifyArgs, text: &str, logs: &Arc<ParsedLogs>) -> Result<Replay, Failure> {
        let name = args.manifest.as_deref().unwrap_or("the manifest of the rows");
        let manifest = Manifest::parse(name, text).map_err(|errors| inputs::problems(name, &errors))?;
        let library = inputs::library_of(args.manifest.as_deref().unwrap_or_default(), &args.logs);
        let digests = inputs::files(&manifest, &library, Some(logs))?.digests;
        let sweep = inputs::sweep(&manifest, &digests)?;
        Ok(Replay { inputs: Inputs::of(&sweep), sweep, files: ManifestFiles::new(manifest.files(), library) })
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
    fn compared(&self, replay: &Replay, logs: &ParsedLogs) -> Compared {
        let cell = |name: &str| self.row.column_by_name(name).map(|column| json_of(column, 0)).unwrap_or_default();
        let index = cell("task_index").as_i64().unwrap_or(-1);
        let task = u64::try_from(index).ok().and_then(|index| replay.sweep.task(index));
        let Some(task) = task.filter(|task| cell("task_id") == task.task_id.to_string()) else {
            return Compared::Foreign;
        };
        match replay.row(task, logs) {
            Ok(now) => self.beside(index, &now),
            Err(error) => {
                let column = ("(the task)".to_owned(), "a row".to_owned(), error.to_string());
                Compared::Differs { index, columns: vec![column] }
            }
        }
    }

    /// Compares every column that does not depend on the run.
    fn beside(&self, index: i64, now: &RecordBatch) -> Compared {
        let of_run = |name: &str| RunFacts::FIELDS.iter().any(|field| field.name == name);
        let mut columns = Vec::new();
        for (field, column) in now.schema_ref().fields().iter().zip(now.columns()) {
            let stored = self.row.column_by_name(field.name());
            let is_equal = stored.is_some_and(|stored| stored.as_ref() == column.as_ref());
            if !of_run(field.name()) && !is_equal {
                let text = stored.map(|stored| json_of(stored, 0).to_string()).unwrap_or_default();
                columns.push((field.name().clone(), text, json_of(column, 0).to_string()));
            }
        }
        if columns.is_empty() { Compared::Equal } else { Compared::Differs { index, columns } }
    }
}

fn differences(found: &[Compared]) -> String {
    let mut table = screen::table();
    table.set_header(["task", "column", "stored", "now"]);
    let mut more = 0;
    for compared in found {
        let Compared::Differs { index, columns } = compared else { continue };
        for (name, stored, now) in columns {
            if table.row_iter().count() < SHOWN {
                table.add_row([&index.to_string(), name, stored, now]);
            } else {
                more += 1;
            }
        }
    }
    if more > 0 { format!("{table}\n… and {more} more differences") } else { table.to_string() }
}
