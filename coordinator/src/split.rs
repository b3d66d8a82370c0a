//! Splits parts after an edit of the manifest, so that the tables of an experiment hold the rows of its tasks alone.
//!
//! Rows of tasks that left the manifest move to the folder `EXPERIMENT@left`, and rows of tasks that are back move from
//! there into the experiment's folder. Parts never change, so each part that has rows to move is replaced by fragments.
//! The order is: [`prepare`] writes the fragments into the staging folder; the state machine makes the record of the
//! split durable; [`carry_out`] deletes each old part, and then shows its fragments; a commit of the state machine
//! deletes the record. A crash between two steps leaves the record, and recovery carries the split out again. Readers
//! miss rows for a moment, and never see a row twice.

use bytes::Bytes;
use object_store::path::Path;
use powersweep_experiments::{Decoder, Sweep};
use powersweep_results::ResultsError;
use powersweep_results::identity::RowKey;
use powersweep_results::layout::{self, left_name};
use powersweep_results::part::{self, Footer};
use powersweep_results::split::{for_each_key, fragment};
use roaring::RoaringTreemap;
use uuid::Uuid;

use crate::publish::{PublishError, part_path};
use crate::records::{Fragment, SplitPart, SplitRecord, Table};
use crate::store::{Store, blocking};

/// The manifests by which rows are told apart.
#[derive(Debug, Clone)]
pub struct Sweeps {
    /// The manifest whose tasks stay.
    pub present: Sweep,
    /// The manifests before it: rows have the indices of the manifest that their tasks ran under.
    pub earlier: Vec<Sweep>,
}

/// Finds the parts with rows to move, and writes their fragments into the staging folder `id`. Nothing visible changes.
pub async fn prepare(
    store: &dyn Store,
    experiment: &str,
    id: Uuid,
    sweeps: &Sweeps,
) -> Result<Vec<SplitPart>, PublishError> {
    let mut parts = Vec::new();
    for table in Table::ALL {
        for found in affected(store, experiment, table, sweeps).await? {
            parts.push(write_fragments(store, experiment, id, found).await?);
        }
    }
    Ok(parts)
}

/// Replaces the parts of a durable record by their fragments. Safe to repeat.
pub async fn carry_out(store: &dyn Store, record: &SplitRecord) -> Result<(), PublishError> {
    store.still_own().await?;
    let objects = store.objects()?;
    for part in &record.parts {
        let (here, there) = folders(&record.experiment, part.is_left);
        let old = part_path(&here, part.table(), *part.old.part_id);
        objects.remove(&old).await?;
        // After a power failure, the old part must not be back beside its fragments.
        objects.sync_folder(&old).await?;
        for (folder, fragment) in [(here, part.kept), (there, part.moved)] {
            let Some(Fragment { part_id, .. }) = fragment else { continue };
            objects.show_fragment(*record.id, &part_path(&folder, part.table(), *part_id), *part_id).await?;
        }
    }
    Ok(())
}

/// The folder of a part and the folder for its rows that move.
fn folders(experiment: &str, is_left: bool) -> (String, String) {
    let (own, left) = (experiment.to_owned(), left_name(experiment));
    if is_left { (left, own) } else { (own, left) }
}

/// A part with rows to move.
struct Affected {
    table: Table,
    is_left: bool,
    path: Path,
    part_id: Uuid,
    rows: u64,
    /// Positions of the rows that move to the other folder.
    moving: RoaringTreemap,
}

/// The parts of a table with rows to move.
async fn affected(
    store: &dyn Store,
    experiment: &str,
    table: Table,
    sweeps: &Sweeps,
) -> Result<Vec<Affected>, PublishError> {
    let mut affected = Vec::new();
    for is_left in [false, true] {
        let (folder, _) = folders(experiment, is_left);
        for path in store.objects()?.parts(&layout::table_dir(&folder, table.name())).await? {
            // A user's own file.
            let Some(part_id) = path.filename().and_then(layout::part_id) else { continue };
            let bytes = store.objects()?.read(&path).await?;
            let mut tasks = Tasks::new(sweeps);
            let scanned = blocking(move || tasks.scan(&bytes, is_left)).await;
            let (rows, moving) = scanned.map_err(|source| unreadable(experiment, table, &path, source))?;
            if !moving.is_empty() {
                affected.push(Affected { table, is_left, path, part_id, rows, moving });
            }
        }
    }
    Ok(affected)
}

async fn write_fragments(
    store: &dyn Store,
    experiment: &str,
    id: Uuid,
    found: Affected,
) -> Result<SplitPart, PublishError> {
    let Affected { table, is_left, path, part_id, rows, moving } = found;
    let bytes = store.objects()?.read(&path).await?;
    let old = Fragment { part_id: part_id.into(), rows, bytes: bytes.len() as u64 };
    let origin = part::read_footer(&bytes).map_err(|source| unreadable(experiment, table, &path, source))?.origin;
    let mut fragments = [None, None];
    for (fragment, moves) in fragments.iter_mut().zip([false, true]) {
        let count = if moves { moving.len() } else { rows - moving.len() };
        if count == 0 {
            continue;
        }
        let footer = Footer { origin: origin.clone(), ..Footer::new(experiment, Uuid::now_v7(), count) };
        let (whole, positions, part_id) = (bytes.clone(), moving.clone(), footer.part_id);
        let encoded = blocking(move || self::fragment(&whole, |row| positions.contains(row) == moves, &footer)).await;
        let encoded = encoded.map_err(|source| unreadable(experiment, table, &path, source))?;
        *fragment = Some(Fragment { part_id: part_id.into(), rows: count, bytes: encoded.len() as u64 });
        store.objects()?.stage_fragment(id, part_id, encoded).await?;
    }
    let [kept, moved] = fragments;
    Ok(SplitPart { table: table.into(), is_left, old, kept, moved })
}

fn unreadable(experiment: &str, table: Table, path: &Path, source: ResultsError) -> PublishError {
    PublishError::Part { experiment: experiment.to_owned(), table, path: path.to_string(), source }
}

/// Tells whether the tasks of rows are in the present manifest.
struct Tasks {
    present: Decoder,
    /// The latest first.
    earlier: Vec<Decoder>,
}

impl Tasks {
    fn new(sweeps: &Sweeps) -> Tasks {
        let earlier = sweeps.earlier.iter().rev().cloned().map(Decoder::new).collect();
        Tasks { present: Decoder::new(sweeps.present.clone()), earlier }
    }

    /// The number of rows of a part, and the positions of those that move to the other folder.
    fn scan(&mut self, bytes: &Bytes, is_left: bool) -> Result<(u64, RoaringTreemap), ResultsError> {
        let (mut rows, mut moving) = (0, RoaringTreemap::new());
        // The rows of a task are consecutive.
        let mut last: Option<(RowKey, Option<bool>)> = None;
        for_each_key(bytes, |key| {
            let present = match last {
                Some((same, present)) if same == key => present,
                _ => self.is_present(key),
            };
            last = Some((key, present));
            if present == Some(is_left) {
                moving.insert(rows);
            }
            rows += 1;
        })?;
        Ok((rows, moving))
    }

    /// Whether the task of a row is in the present manifest; `None` if no manifest of the state has the task at the row's
    /// index. Such rows were adopted, and stay where they are.
    fn is_present(&mut self, key: RowKey) -> Option<bool> {
        let index = key.index?;
        let has = |decoder: &mut Decoder| decoder.task(index).filter(|task| task.task_id == key.task_id);
        if has(&mut self.present).is_some() {
            return Some(true);
        }
        let task = self.earlier.iter_mut().find_map(has)?;
        Some(self.present.sweep().index_of(&task).is_some())
    }
}
