//! Rows that are in no part yet, as workers encoded them.

use arrow::datatypes::SchemaRef;
use bytes::Bytes;

use crate::ResultsError;
use crate::folded::FoldedBatch;
use crate::wire::Gather;

/// Rows of one hand-in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnpublishedRows {
    /// Number of the record of the state that has the rows.
    pub record: u64,
    /// Number of rows, without those that are left out.
    pub rows: u64,
    /// Positions in `encoded` of rows to leave out: those of tasks that were done before.
    pub left_out: Vec<u32>,
    /// The encoded batch.
    pub encoded: Bytes,
}

/// The rows in batches of about a thousand. An error comes with the number of its record; later batches leave out the
/// rows of that hand-in.
pub fn batches<'a>(
    rows: &'a [UnpublishedRows],
    schema: &SchemaRef,
) -> impl Iterator<Item = Result<FoldedBatch, (u64, ResultsError)>> + use<'a> {
    let mut hand_ins = rows.iter();
    let mut gather = Gather::new(schema);
    let mut last = 0;
    std::iter::from_fn(move || {
        while !gather.is_full() {
            let Some(UnpublishedRows { record, left_out, encoded, .. }) = hand_ins.next() else { break };
            last = *record;
            if let Err(error) = gather.push(encoded, left_out.iter().copied()) {
                return Some(Err((*record, error)));
            }
        }
        (gather.rows() > 0).then(|| gather.finish().map_err(|error| (last, error)))
    })
}
