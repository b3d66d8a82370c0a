//! The keys of the rows of an encoded batch: which tasks its rows are of.

use arrow::datatypes::{Schema, SchemaRef};
use uuid::Uuid;

use super::columns::{FoldedColumn, Values};
use super::{Columns, Frame};
use crate::ResultsError;
use crate::identity::RowKey;

/// The parts of a batch that are read before the batch is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keys {
    /// The keys of the rows, in order.
    pub rows: Vec<RowKey>,
    /// Upper bound of the memory of the rows, decoded (bytes).
    pub bytes: u64,
}

/// The keys of the rows. Makes no arrays.
///
/// Fails where [`decode`](super::decode) fails, if a row is of another experiment or has no task's id, if a cell or a row is
/// larger than [`bounds`](crate::bounds) allows, and if a row is not of this worker.
pub fn keys(bytes: &[u8], schema: &SchemaRef, experiment: &str, worker: Option<&str>) -> Result<Keys, ResultsError> {
    let frame = Frame::read(bytes, schema)?;
    let columns = frame.columns(schema)?;
    columns.check_cells(schema)?;
    let column = |name| columns.named(schema, name);
    let (experiments, ids, indices) = (column("experiment")?, column("task_id")?, column("task_index")?);
    let workers = worker.map(|_| column("worker")).transpose()?;
    let key = |row: usize| {
        let foreign = |reason| ResultsError::Foreign { row, reason };
        if text(experiments, row) != Some(experiment.as_bytes()) {
            return Err(foreign("is of another experiment"));
        }
        if workers.is_some_and(|workers| text(workers, row) != worker.map(str::as_bytes)) {
            return Err(foreign("names another worker than the one that hands it in"));
        }
        let id = text(ids, row).and_then(|id| Uuid::try_parse_ascii(id).ok());
        let (task_id, index) = id.zip(number(indices, row)).ok_or_else(|| foreign("has no task_id"))?;
        Ok(RowKey { task_id, index: u64::try_from(index).ok() })
    };
    let rows = (0..columns.rows).map(key).collect::<Result<_, _>>()?;
    Ok(Keys { rows, bytes: columns.bytes })
}

/// Bytes of an encoded batch after decompression, as its head says; `None` if it does not.
pub fn decoded_bytes(bytes: &[u8]) -> Option<u64> {
    let frame = bytes.get(super::HEADER_BYTES..)?;
    zstd::zstd_safe::get_frame_content_size(frame).ok().flatten()
}

impl<'a> Columns<'a> {
    fn named(&self, schema: &Schema, name: &str) -> Result<&FoldedColumn<'a>, ResultsError> {
        Ok(&self.columns[schema.index_of(name)?])
    }
}

/// The position of a row's element.
fn element(column: &FoldedColumn<'_>, row: usize) -> usize {
    if column.is_equal { 0 } else { row }
}

/// The text of a row, in a column without nulls.
fn text<'a>(column: &FoldedColumn<'a>, row: usize) -> Option<&'a [u8]> {
    let Values::Texts { offsets, data } = &column.column.values else { return None };
    let at = element(column, row);
    data.get(offsets.at(at)..offsets.at(at + 1))
}

/// The whole number of a row, in a column without nulls.
fn number(column: &FoldedColumn<'_>, row: usize) -> Option<i64> {
    let Values::Numbers(bytes) = &column.column.values else { return None };
    let at = 8 * element(column, row);
    Some(i64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}
