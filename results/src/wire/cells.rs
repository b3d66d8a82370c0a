//! Bounds of the cells and rows of an encoded batch.

use arrow::datatypes::Schema;

use super::Columns;
use super::columns::Values;
use crate::ResultsError;
use crate::bounds::{LIST_BYTES_MAX, ROW_BYTES_MAX, TEXT_BYTES_MAX};

/// Bytes of a number in memory; other cells of fixed size have fewer.
const NUMBER_BYTES: u64 = 8;

impl Columns<'_> {
    /// Refuses a cell or a row that is longer than those of sound rows.
    pub(super) fn check_cells(&self, schema: &Schema) -> Result<(), ResultsError> {
        // Bytes that all rows have, and those that each has besides.
        let (mut common, mut own) = (0, vec![0; self.rows]);
        for (folded, field) in self.columns.iter().zip(schema.fields()) {
            let (offsets, each, limit) = match &folded.column.values {
                Values::Bits(_) | Values::Numbers(_) => {
                    common += NUMBER_BYTES;
                    continue;
                }
                Values::Texts { offsets, .. } => (offsets, 1, TEXT_BYTES_MAX as u64),
                Values::Lists { offsets, .. } => (offsets, NUMBER_BYTES, LIST_BYTES_MAX),
            };
            let rows = if folded.is_equal { self.rows.min(1) } else { self.rows };
            for (row, own) in own.iter_mut().enumerate().take(rows) {
                let bytes = (offsets.at(row + 1) - offsets.at(row)) as u64 * each;
                if bytes > limit {
                    return Err(ResultsError::long_cell(row, field.name(), bytes, limit));
                }
                *if folded.is_equal { &mut common } else { own } += bytes;
            }
        }
        let long = own.iter().position(|bytes| common + bytes > ROW_BYTES_MAX);
        long.map_or(Ok(()), |row| {
            let excess = format!("{} bytes, at most {ROW_BYTES_MAX} are allowed", common + own[row]);
            Err(ResultsError::Long { row, excess })
        })
    }
}
