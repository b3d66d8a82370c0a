//! Indices of tasks under the newest manifest of an experiment.
//!
//! A part has the indices that its tasks had under the manifest of the part. After an edit, tasks have other indices, so that two
//! tasks of different parts may have one index. Readers see the indices that all tasks have under the newest manifest.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::Int64Type;
use powersweep_experiments::{Manifest, Mapping, Sweep};
use powersweep_results::part::Origin;

use crate::planned;
use crate::scan::INDEX;

/// The newest manifest of an experiment's parts.
#[derive(Debug)]
pub(super) struct Newest {
    origin: Origin,
    sweep: OnceLock<Option<Sweep>>,
    /// By the text of an earlier manifest; `None` if this version cannot read the manifest.
    moved: Mutex<HashMap<String, Option<Arc<Moved>>>>,
}

/// The indices of the tasks of an earlier manifest under the newest one.
#[derive(Debug)]
pub(super) struct Moved {
    count: u64,
    mapping: Mutex<Mapping>,
}

impl Newest {
    pub(super) fn new(origin: Origin) -> Newest {
        Newest { origin, sweep: OnceLock::new(), moved: Mutex::default() }
    }

    /// The text of the manifest.
    pub(super) fn text(&self) -> &str {
        &self.origin.manifest
    }

    /// Whether a part names another manifest.
    pub(super) fn is_after(&self, part: &Origin) -> bool {
        !part.manifest.is_empty() && part.manifest != self.text()
    }

    /// The indices of the rows of a part of an earlier manifest; `None` if this version cannot read one of the manifests.
    pub(super) fn moved(&self, part: &Origin) -> Option<Arc<Moved>> {
        let mut known = self.moved.lock().unwrap_or_else(PoisonError::into_inner);
        known.entry(part.manifest.clone()).or_insert_with(|| self.compare(part)).clone()
    }

    fn compare(&self, part: &Origin) -> Option<Arc<Moved>> {
        let old = sweep(part)?;
        let new = self.sweep.get_or_init(|| sweep(&self.origin)).as_ref()?;
        Some(Arc::new(Moved { count: old.index_count(), mapping: Mutex::new(Mapping::new(&old, new)) }))
    }
}

impl Moved {
    /// A batch with the indices of the newest manifest. A task that this manifest lacks keeps its own.
    pub(super) fn applied(&self, batch: RecordBatch) -> RecordBatch {
        let Ok(at) = batch.schema_ref().index_of(INDEX) else { return batch };
        let Some(stored) = batch.column(at).as_primitive_opt::<Int64Type>() else { return batch };
        let mut mapping = self.mapping.lock().unwrap_or_else(PoisonError::into_inner);
        let mut present = |index: i64| {
            let old = u64::try_from(index).ok().filter(|index| *index < self.count)?;
            i64::try_from(mapping.index(old)?).ok()
        };
        let moved: Int64Array = stored.iter().map(|index| index.map(|index| present(index).unwrap_or(index))).collect();
        let mut columns: Vec<ArrayRef> = batch.columns().to_vec();
        columns[at] = Arc::new(moved);
        RecordBatch::try_new(batch.schema(), columns).unwrap_or(batch)
    }
}

/// The sweep of the manifest of a part.
fn sweep(origin: &Origin) -> Option<Sweep> {
    let manifest = Manifest::parse("the manifest of the rows", &origin.manifest).ok()?;
    planned::sweep(&manifest, &origin.log_digests)
}
