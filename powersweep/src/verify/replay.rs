//! The tasks of sampled rows, simulated again, and their rows of every table beside the stored ones.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{Array, RecordBatch};
use powersweep_dataset::cell::json_of;
use powersweep_dataset::scan::INDEX;
use powersweep_dataset::words::count;
use powersweep_dataset::{Error, Notes};
use powersweep_engine::Details;
use powersweep_engine::workload::LOG;
use powersweep_experiments::url::public_name;
use powersweep_experiments::{Digest, Manifest, Sweep, TaskSpec};
use powersweep_inputs::library::{Library, ParsedLogs};
use powersweep_results::Table;
use powersweep_results::part::Origin;
use powersweep_worker::TaskLimits;
use powersweep_worker::task::{Inputs, TaskError, details_for, keep_recorded};
use serde_json::Value as Json;

use super::Difference;
use super::tables::{NO_ROWS, NOT_ASKED, TaskRows, is_compared};
use crate::inputs::{self, Files, ManifestFiles};
use crate::origin::{digests, other_files, other_versions};
use crate::simulate;

/// What came of a sampled row.
pub(super) enum Compared {
    /// Its task ran again.
    Ran(Rerun),
    /// The manifest has another task at the row's index.
    Foreign,
    /// The row was made from other files or by other versions than the present ones, in words.
    OfOthers(String),
}

/// The rows of a task that ran again, beside the stored ones.
#[derive(Default)]
pub(super) struct Rerun {
    /// The index of the task.
    pub(super) index: i64,
    /// Values that differ.
    pub(super) differing: Vec<Difference>,
    /// The numbers of rows of other tables than `tasks` that are equal.
    pub(super) equal: Vec<(Table, u64)>,
    /// Other tables that were not compared, and why.
    pub(super) not_compared: Vec<(Table, String)>,
}

/// The tasks of a manifest and their inputs.
pub(super) struct Replay {
    pub(super) sweep: Sweep,
    digests: BTreeMap<String, Digest>,
    inputs: Inputs,
    files: ManifestFiles,
    /// The sweeps of other files, by their digests.
    of_others: Mutex<BTreeMap<BTreeMap<String, String>, Option<Sweep>>>,
}

impl Replay {
    pub(super) fn of(
        manifest: &Manifest,
        library: &Library,
        logs: &Arc<ParsedLogs>,
        notes: &Notes,
    ) -> Result<Replay, Error> {
        let digests = Files::read(manifest, library, Some(logs), notes)?.digests;
        let sweep = inputs::sweep(manifest, &digests)?;
        let files = ManifestFiles::new(manifest.files(), library.clone());
        Ok(Replay { inputs: Inputs::of(&sweep), sweep, digests, files, of_others: Mutex::default() })
    }

    /// Whether the tasks have the ids of rows of this origin: equal versions, and equal files.
    pub(super) fn gives(&self, origin: &Origin) -> bool {
        let Origin { component_versions, log_digests, .. } = origin;
        !component_versions.is_empty()
            && other_versions(origin).is_empty()
            && log_digests.iter().all(|(log, made)| self.digests.get(log).is_some_and(|own| own.to_string() == *made))
    }

    /// Why a row of this origin is not of the task that its index has here; `None` if files and versions are those of the row.
    /// `has_row`: whether a sweep has the row's task at its index.
    fn why_other(&self, made: &Origin, has_row: impl Fn(&Sweep) -> bool) -> Option<String> {
        let versions = other_versions(made);
        if !versions.is_empty() {
            return Some(versions.join("; "));
        }
        let files = other_files(made, &self.digests);
        let is_of_them = !files.is_empty() && self.sweep_of(made).as_ref().is_some_and(has_row);
        is_of_them.then(|| files.into_values().collect::<Vec<_>>().join("; "))
    }

    /// The sweep of the files that rows were made from.
    fn sweep_of(&self, made: &Origin) -> Option<Sweep> {
        let mut known = self.of_others.lock().unwrap_or_else(PoisonError::into_inner);
        let sweep = known.entry(made.log_digests.clone()).or_insert_with(|| {
            let files = self.digests.clone().into_iter().chain(digests(made)).collect();
            inputs::sweep(self.sweep.manifest(), &files).ok()
        });
        sweep.clone()
    }

    /// The signals that are not those that rows of this origin were weighed by, in words; `None` if all are.
    fn other_signals(&self, made: &Origin) -> Option<String> {
        let mut files = other_files(made, &self.digests);
        files.retain(|name, _| self.sweep.manifest().signals().iter().any(|signal| *signal.file == **name));
        (!files.is_empty()).then(|| files.into_values().collect::<Vec<_>>().join("; "))
    }

    /// Whether the manifest asks for a table.
    fn asks(&self, table: Table) -> bool {
        self.sweep.manifest().tables().asked(table.name()).is_some_and(|asked| *asked)
    }

    /// The row of a task, and its rows of the other tables.
    fn rows(
        &self,
        task: TaskSpec,
        logs: &ParsedLogs,
    ) -> Result<(RecordBatch, BTreeMap<Table, RecordBatch>), TaskError> {
        let manifest = self.sweep.manifest();
        let prepared = self.inputs.prepare(task, logs, &self.files)?;
        let mut details = Details::default();
        details_for(manifest.tables(), &mut details);
        let ran = prepared.run(&TaskLimits::default().begin(), &|| false, &mut details)?;
        keep_recorded(manifest, &mut details);
        Ok(simulate::rows(&prepared, &ran, &details, &simulate::without_times("")))
    }
}

/// A stored row, the manifest of its index, and the origin of its part.
pub(super) struct Stored {
    pub(super) row: RecordBatch,
    pub(super) manifest: String,
    pub(super) origin: Arc<Origin>,
}

impl Stored {
    pub(super) fn cell(&self, name: &str) -> Json {
        self.row.column_by_name(name).map(|column| json_of(column, 0)).unwrap_or_default()
    }

    /// The id of its task.
    pub(super) fn task_id(&self) -> String {
        self.cell("task_id").as_str().unwrap_or_default().to_owned()
    }

    fn index(&self) -> i64 {
        self.cell(INDEX).as_i64().unwrap_or(-1)
    }

    fn task(&self, sweep: &Sweep) -> Option<TaskSpec> {
        u64::try_from(self.index()).ok().and_then(|index| sweep.task(index))
    }

    /// The row of a file whose rows are all of one manifest, which has another task at its index.
    pub(super) fn of_no_task(&self, replay: &Replay) -> Compared {
        let now = self.task(&replay.sweep).map_or_else(
            || "no task has this index".to_owned(),
            |task| Json::from(task.task_id.to_string()).to_string(),
        );
        let stored = self.cell("task_id").to_string();
        self.differs("task_id", stored, now)
    }

    /// A difference of the row as a whole.
    fn differs(&self, column: &str, stored: String, now: String) -> Compared {
        let differing = vec![Difference::of_tasks(column, stored, now)];
        Compared::Ran(Rerun { index: self.index(), differing, ..Rerun::default() })
    }

    /// Runs the task again, and compares its rows of all tables.
    ///
    /// # Errors
    /// Stored rows of another table than `tasks` cannot be read.
    pub(super) fn compared(&self, replay: &Replay, tables: &[TaskRows], logs: &ParsedLogs) -> Result<Compared, Error> {
        let id = self.task_id();
        let of_row = |sweep: &Sweep| self.task(sweep).filter(|task| task.task_id.to_string() == id);
        let Some(task) = of_row(&replay.sweep) else {
            let why = replay.why_other(&self.origin, |sweep| of_row(sweep).is_some());
            return Ok(why.map_or(Compared::Foreign, Compared::OfOthers));
        };
        let (row, mut others) = match replay.rows(task, logs) {
            Ok(rows) => rows,
            Err(error) => return Ok(self.differs("(the task)", "a row".to_owned(), error.to_string())),
        };
        let mut rerun = Rerun { index: self.index(), ..Rerun::default() };
        rerun.differing = differences(Table::Tasks, &self.row, &row);
        for rows in tables {
            let now = others.remove(&rows.table).unwrap_or_else(|| RecordBatch::new_empty(rows.table.schema()));
            let other = (rows.table == Table::Accounts).then(|| replay.other_signals(&self.origin)).flatten();
            let why = match other {
                _ if !replay.asks(rows.table) => rows.has(&id).then(|| NOT_ASKED.to_owned()),
                None if rows.has(&id) => {
                    let differing = differences(rows.table, &rows.of_task(&id)?, &now);
                    if differing.is_empty() {
                        rerun.equal.push((rows.table, now.num_rows() as u64));
                    }
                    rerun.differing.extend(differing);
                    None
                }
                None if now.num_rows() == 0 => None,
                why => Some(why.unwrap_or_else(|| rows.no_file.unwrap_or(NO_ROWS).to_owned())),
            };
            rerun.not_compared.extend(why.map(|why| (rows.table, why)));
        }
        Ok(Compared::Ran(rerun))
    }
}

/// Compares every column that stored rows have and that does not depend on the run.
fn differences(table: Table, stored: &RecordBatch, now: &RecordBatch) -> Vec<Difference> {
    let is_tasks = table == Table::Tasks;
    let named = |column: &str| if is_tasks { column.to_owned() } else { format!("{table}.{column}") };
    if stored.num_rows() != now.num_rows() {
        let [stored, now] = [stored, now].map(|batch| count(batch.num_rows() as u64, "row"));
        return vec![Difference { table, column: named("(the rows)"), stored, now }];
    }
    let mut columns = Vec::new();
    for (field, column) in now.schema_ref().fields().iter().zip(now.columns()) {
        let Some(stored) = stored.column_by_name(field.name()) else { continue };
        if !is_compared(table, field.name()) || stored.as_ref() == column.as_ref() {
            continue;
        }
        let differs = |row: &usize| stored.slice(*row, 1).as_ref() != column.slice(*row, 1).as_ref();
        let row = (0..now.num_rows()).find(differs).unwrap_or(0);
        let cell = json_of(stored, row);
        // Earlier versions stored the place of a log. Its digest is a column, too.
        if field.name() == LOG.name && cell.as_str().is_some_and(|place| public_name(place) != place) {
            continue;
        }
        let name = named(field.name());
        let column_name = if now.num_rows() > 1 { format!("{name}, row {}", row + 1) } else { name };
        let (stored, now) = (cell.to_string(), json_of(column, row).to_string());
        columns.push(Difference { table, column: column_name, stored, now });
    }
    columns
}
