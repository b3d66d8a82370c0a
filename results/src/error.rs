//! Errors of stored or received results.

/// Results that cannot be read or written. Every variant is final: the same bytes fail again.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// The bytes do not begin with the mark of an encoded batch, or their content is inconsistent.
    #[error("not an encoded batch of results: {0}")]
    NotABatch(&'static str),
    /// The sender's columns differ from ours.
    #[error("the batch has columns of another version (fingerprint {found:016x}, expected {expected:016x})")]
    OtherSchema {
        /// Fingerprint in the batch.
        found: u64,
        /// Fingerprint of the schema that was expected.
        expected: u64,
    },
    /// The batch would need more memory than allowed.
    #[error("the batch has {bytes} bytes, more than the limit of {limit}")]
    TooLarge {
        /// Bytes after decompression, or of the request.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// The compressed bytes are damaged.
    #[error("damaged batch: {0}")]
    Damaged(#[from] std::io::Error),
    /// Arrow refused the columns.
    #[error("inconsistent columns: {0}")]
    Arrow(#[from] arrow::error::ArrowError),
    /// Parquet refused the data or the file.
    #[error("damaged or unwritable Parquet part: {0}")]
    Parquet(#[from] parquet::errors::ParquetError),
    /// A Parquet file that powersweep did not write: a key is missing in its footer, or a value is
    /// invalid.
    #[error("the Parquet footer has no valid `{0}`: not a part written by powersweep")]
    Footer(&'static str),
    /// A Parquet file has no valid values in a column that identifies its rows.
    #[error("the Parquet file has no valid column `{0}`: not a table written by powersweep")]
    Column(&'static str),
    /// A row that is not of the task or experiment that it should be of.
    #[error("row {row} {reason}")]
    Foreign {
        /// Position of the row.
        row: usize,
        /// The fault.
        reason: &'static str,
    },
    /// A row, or one of its cells, is larger than a sound one is.
    #[error("row {row} has {excess}")]
    Long {
        /// Position of the row.
        row: usize,
        /// The bytes, where they are, and the limit.
        excess: String,
    },
    /// A mask leaves out a row that the batch does not have.
    #[error("the mask leaves out row {position}, and there are {rows} rows")]
    Mask {
        /// Position of the row.
        position: usize,
        /// Rows of the batch.
        rows: usize,
    },
}

impl ResultsError {
    /// The error for a cell with a longer text or list than a sound row has.
    pub(crate) fn long_cell(row: usize, column: &str, bytes: u64, limit: u64) -> ResultsError {
        ResultsError::Long {
            row,
            excess: format!("{bytes} bytes in the column `{column}`, at most {limit} are allowed"),
        }
    }
}
