//! Splits parts after an edit of the manifest, so that the tables of an experiment hold the rows of its tasks alone.
//!
//! Rows of tasks that left the manifest move to the folder `EXPERIMENT@left`, and rows of tasks that are back move from
//! there into the experiment's folder. Parts never change, so each part that has rows to move is replaced by fragments.
//! The order is: [`prepare`] writes the fragments into the staging folder; the state machine makes the record of the
//! split durable; [`carry_out`] deletes each old part, and then shows its fragments; a commit of the state machine
//! deletes the record. A crash between two steps leaves the record, and recovery carries the split out again. Readers
//! miss rows for a moment, and never see a row twice.

use bytes::Bytes;
use powersweep_experiments::{Decoder, Sweep};
use powersweep_results::ResultsError;
use powersweep_results::Table;
use powersweep_results::identity::RowKey;
use powersweep_results::layout::{self, left_name};
use powersweep_results::part::{self, Footer};
use powersweep_results::split::{for_each_key, fragment};
use roaring::RoaringTreemap;
use uuid::Uuid;

use crate::publish::{PublishError, part_path};
use crate::records::{Fragment, SplitPart, SplitRecord};
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
    for (table, is_left) in Table::ALL.into_iter().flat_map(|table| [(table, false), (table, true)]) {
        let (folder, _) = folders(experiment, is_left);
        for path in store.objects()?.parts(&layout::table_dir(&folder, table.name())).await? {
            // Other names are users' own files.
            let Some(part_id) = path.filename().and_then(layout::part_id) else { continue };
            let whole = store.objects()?.read(&path).await?;
            let (bytes, name, sweeps) = (whole.len() as u64, experiment.to_owned(), sweeps.clone());
            let made = blocking(move || fragments(&whole, &name, is_left, &sweeps)).await;
            let (experiment, path) = (experiment.to_owned(), path.to_string());
            let made = made.map_err(|source| PublishError::Part { experiment, table, path, source })?;
            let Some((rows, made)) = made else { continue };
            let old = Fragment { part_id: part_id.into(), rows, bytes };
            for (fragment, encoded) in made.iter().flatten() {
                store.objects()?.stage_fragment(id, *fragment.part_id, encoded.clone()).await?;
            }
            let [kept, moved] = made.map(|made| made.map(|(fragment, _)| fragment));
            parts.push(SplitPart { table: table.into(), is_left, old, kept, moved });
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

/// A fragment and its bytes; `None` if it would have no row.
type Made = Option<(Fragment, Bytes)>;

/// The number of rows of a part, and its fragments: of the rows that stay in the folder, and of those that move. `None` if
/// no row moves. Blocks.
fn fragments(
    whole: &Bytes,
    experiment: &str,
    is_left: bool,
    sweeps: &Sweeps,
) -> Result<Option<(u64, [Made; 2])>, ResultsError> {
    let (rows, moving) = Tasks::new(sweeps).scan(whole, is_left)?;
    if moving.is_empty() {
        return Ok(None);
    }
    let Footer { origin, part_id, .. } = part::read_footer(whole)?;
    let make = |rows: u64, moves: bool| -> Result<Made, ResultsError> {
        if rows == 0 {
            return Ok(None);
        }
        let footer = Footer { origin: origin.clone(), ..Footer::new(experiment, as_old_as(part_id), rows) };
        let encoded = fragment(whole, |row| moving.contains(row) == moves, &footer)?;
        let made = Fragment { part_id: footer.part_id.into(), rows, bytes: encoded.len() as u64 };
        Ok(Some((made, encoded)))
    };
    Ok(Some((rows, [make(rows - moving.len(), false)?, make(moving.len(), true)?])))
}

/// A new id with the time of another one. A fragment has the manifest of its part, and readers take the manifest of the part with the
/// latest name for the newest.
fn as_old_as(id: Uuid) -> Uuid {
    id.get_timestamp().map_or_else(Uuid::now_v7, Uuid::new_v7)
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
