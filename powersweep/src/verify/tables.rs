//! The stored rows of sampled tasks in the optional tables, read task by task.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::path::{Path, PathBuf};

use arrow::array::{AsArray, RecordBatch};
use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use parquet::arrow::arrow_reader::{RowGroupSelection, RowSelection};
use powersweep_dataset::reading::Part;
use powersweep_dataset::scan::{INDEX, whole};
use powersweep_dataset::{Error, Kind, OrKind, failure};
use powersweep_results::Table;
use powersweep_results::identity::RunFacts;
use tokio::runtime::Handle;

use super::{foreign_table, stored_columns};
use crate::place::Place;

const ID: &str = "task_id";
/// Rows of a batch of ids.
const BATCH_ROWS: usize = 8_192;

/// Why rows were not compared: an exported file may be alone.
pub(super) const NO_FILE: &str = "no file of this table is beside that of tasks";
/// Why rows were not compared: there are none, although the task has some.
pub(super) const NO_ROWS: &str =
    "they have none there; they ran before the manifest asked for this table, or their rows are lost";
/// Why rows were not compared: an edit of the manifest has left the table out.
pub(super) const NOT_ASKED: &str = "the manifest does not ask for this table";

/// The rows of some tasks in an optional table. Only their places are in memory.
pub(super) struct TaskRows {
    pub(super) table: Table,
    /// Why there are no rows, if the table has no file.
    pub(super) no_file: Option<&'static str>,
    /// The columns that the parts lack and that would be compared.
    pub(super) lacking: Vec<String>,
    parts: Vec<Part>,
    /// The columns that all parts have.
    schema: SchemaRef,
    /// By the id of a task.
    places: HashMap<String, Vec<Picked>>,
    runtime: Handle,
}

/// Some rows of a row group of a part.
struct Picked {
    part: usize,
    group: usize,
    rows: Vec<Range<usize>>,
}

impl Place {
    /// The rows of tasks in each optional table. `experiment` is a name, or the path of an exported file of `tasks`.
    pub(super) async fn rows_of_tasks(
        &self,
        experiment: &str,
        is_file: bool,
        ids: &BTreeSet<String>,
    ) -> Result<Vec<TaskRows>, Error> {
        let mut all = Vec::new();
        for table in Table::OPTIONAL {
            let parts = match (is_file, beside(experiment, table)) {
                (true, Some(file)) => Some(vec![self.exported(&file).await?]),
                (true, None) => None,
                (false, _) => Some(self.datasets().await?.read_whole(experiment, table).await?.parts_of_all().await?),
            };
            all.push(TaskRows::of(table, parts, ids).await?);
        }
        Ok(all)
    }

    /// An exported file, which is read by ranges.
    async fn exported(&self, file: &Path) -> Result<Part, Error> {
        let bytes = foreign_table(&file.to_string_lossy())?.len() as u64;
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let datasets = Place { notes: self.notes.clone(), ..Place::open(folder.to_string_lossy()) }.datasets_here()?;
        datasets.part(&object_store::path::Path::from(&*name), bytes).await
    }
}

/// The file of another table beside an exported file of `tasks`: in its folder, or in that of the table.
fn beside(tasks: &str, table: Table) -> Option<PathBuf> {
    let tasks = Path::new(tasks);
    tasks.file_name().filter(|name| *name == "tasks.parquet")?;
    let (folder, name) = (tasks.parent()?, format!("{table}.parquet"));
    let of_table = is_of_table(tasks).then(|| folder.with_file_name(table.name()).join(&name));
    [Some(folder.join(&name)), of_table].into_iter().flatten().find(|path| path.is_file())
}

/// Whether each table has a folder of its own, as in an artifact, so that no table is left out at will.
pub(super) fn is_of_table(tasks: &Path) -> bool {
    tasks.parent().and_then(Path::file_name).is_some_and(|folder| folder == Table::Tasks.name())
}

/// Whether a column is compared: it does not depend on the run. The index of a task depends on the manifest of a file, which
/// tables need not share: it is compared in `tasks`.
pub(super) fn is_compared(table: Table, column: &str) -> bool {
    match table {
        Table::Tasks => RunFacts::FIELDS.iter().all(|field| field.name != column),
        _ => column != INDEX,
    }
}

/// The compared columns of a table that a part lacks.
pub(super) fn lacking(table: Table, parts: &[Part]) -> Vec<String> {
    let schema = table.schema();
    let names = schema.fields().iter().map(|field| field.name());
    let is_lacking = |name: &&String| parts.iter().any(|part| part.schema().column_with_name(name).is_none());
    names.filter(|name| is_compared(table, name)).filter(is_lacking).cloned().collect()
}

impl TaskRows {
    /// Finds the rows of these tasks, in one pass over the ids of all rows. `parts`: none without a file.
    async fn of(table: Table, parts: Option<Vec<Part>>, ids: &BTreeSet<String>) -> Result<TaskRows, Error> {
        let no_file = parts.is_none().then_some(NO_FILE);
        let parts = parts.unwrap_or_default();
        let schema = stored_columns(table, &parts);
        let mut places: HashMap<String, Vec<Picked>> = HashMap::new();
        for (number, part) in parts.iter().enumerate() {
            for group in 0..part.groups().len() {
                let mut row = 0;
                let find = |batch: RecordBatch| {
                    let column = batch.column_by_name(ID).and_then(|column| column.as_string_opt::<i32>());
                    let column = column.ok_or_else(|| failure!(Storage, "{} has no column `{ID}`", part.path()))?;
                    for id in column.iter() {
                        if let Some(id) = id.filter(|id| ids.contains(*id)) {
                            let picked = places.entry(id.to_owned()).or_default();
                            add(picked, number, group, row);
                        }
                        row += 1;
                    }
                    Ok(true)
                };
                part.each(&[ID], vec![whole(group)], BATCH_ROWS, find).await?;
            }
        }
        let lacking = lacking(table, &parts);
        Ok(TaskRows { table, no_file, lacking, parts, schema, places, runtime: Handle::current() })
    }

    /// Whether a task has rows.
    pub(super) fn has(&self, id: &str) -> bool {
        self.places.contains_key(id)
    }

    /// The rows of a task, on a thread that may wait.
    pub(super) fn of_task(&self, id: &str) -> Result<RecordBatch, Error> {
        let mut batches = Vec::new();
        for Picked { part, group, rows } in self.places.get(id).into_iter().flatten() {
            let part = &self.parts[*part];
            let some = RowSelection::from_consecutive_ranges(rows.iter().cloned(), part.rows(*group));
            let from = RowGroupSelection::new(*group, Some(some));
            batches.push(self.runtime.block_on(part.batch(&self.schema, from))?);
        }
        concat_batches(&self.schema, &batches).or_kind(Kind::Storage)
    }
}

/// Adds the next row of a task, which mostly follows its last one.
fn add(picked: &mut Vec<Picked>, part: usize, group: usize, row: usize) {
    if picked.last().is_none_or(|last| (last.part, last.group) != (part, group)) {
        picked.push(Picked { part, group, rows: Vec::new() });
    }
    let Some(Picked { rows, .. }) = picked.last_mut() else { return };
    match rows.last_mut().filter(|rows| rows.end == row) {
        Some(rows) => rows.end += 1,
        None => rows.push(row..row + 1),
    }
}
