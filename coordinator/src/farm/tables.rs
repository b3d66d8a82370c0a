//! Unpublished rows of a table, and parts being made.

use std::collections::VecDeque;
use std::time::Duration;

use powersweep_experiments::Sweep;
use powersweep_results::Table;
use uuid::Uuid;

use super::{ClientId, Config};
use crate::publish::Visible;
use crate::records::{CoveredRecord, Intent, Record, RowsHeader, Totals};

/// Maximum number of uploads in one part: uploads are read one after the other.
const UPLOADS_MAX: usize = 4_096;

/// The optional tables of a sweep.
pub(super) fn tables_of(sweep: &Sweep) -> Vec<Table> {
    sweep.manifest().tables().names().filter_map(Table::from_name).collect()
}

/// One record of unpublished rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) seq: u64,
    pub(super) rows: u64,
    pub(super) bytes: u64,
    pub(super) received_us: i64,
    /// The upload that has the rows, if they are not in the record.
    pub(super) upload: Option<Uuid>,
}

impl From<&RowsHeader> for Header {
    fn from(header: &RowsHeader) -> Header {
        let RowsHeader { seq, rows, bytes, received_us, .. } = *header;
        Header { seq, rows, bytes, received_us, upload: header.upload.map(|id| *id) }
    }
}

/// Limits of a part.
#[derive(Debug, Clone, Copy)]
pub(super) struct PartLimits {
    rows: u64,
    bytes: u64,
    records: usize,
}

impl PartLimits {
    pub(super) fn of(table: Table, config: &Config) -> PartLimits {
        match table {
            Table::Tasks | Table::Failures => {
                PartLimits { rows: config.part_rows, bytes: config.part_bytes, records: usize::MAX }
            }
            // Many small rows: only bytes are limited.
            Table::Jobs | Table::Series | Table::Accounts => {
                PartLimits { rows: u64::MAX, bytes: config.part_bytes, records: UPLOADS_MAX }
            }
        }
    }
}

/// Consecutive records that become a part.
#[derive(Debug, Default)]
pub(super) struct Taken {
    pub(super) first_seq: u64,
    pub(super) last_seq: u64,
    pub(super) rows: u64,
    pub(super) uploads: Vec<Uuid>,
}

/// One table's rows of one experiment.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct TableRows {
    /// Number of the next record of rows.
    pub(super) next_seq: u64,
    /// Records in no part and no open intent, in order.
    pub(super) unpublished: VecDeque<Header>,
    /// Tasks that ran when the manifest asked for this optional table.
    pub(super) covered: u64,
    pub(super) unpublished_rows: u64,
    pub(super) unpublished_bytes: u64,
    /// Rows in open intents.
    pub(super) publishing_rows: u64,
    /// Visible parts.
    pub(super) parts: u64,
    pub(super) rows_in_parts: u64,
    pub(super) bytes_in_parts: u64,
    /// Rows and parts that were published since the state was loaded: they never fall.
    pub(super) published: (u64, u64),
    /// Rows in the parts of rows that left.
    pub(super) left_rows: u64,
    /// Uploads that could not be merged into a part.
    pub(super) uploads_left_out: u64,
    /// Rows in these uploads.
    pub(super) rows_left_out: u64,
}

impl TableRows {
    pub(super) fn push(&mut self, header: Header) {
        self.next_seq = self.next_seq.max(header.seq + 1);
        self.unpublished_rows += header.rows;
        self.unpublished_bytes += header.bytes;
        self.unpublished.push_back(header);
    }

    /// Counts rows that were added to the last record.
    pub(super) fn extend_last(&mut self, rows: u64, bytes: u64) {
        let Some(last) = self.unpublished.back_mut() else { return };
        last.rows += rows;
        last.bytes += bytes;
        self.unpublished_rows += rows;
        self.unpublished_bytes += bytes;
    }

    /// Takes the first records up to the limits of a part, but at least one.
    pub(super) fn take_part(&mut self, limits: PartLimits) -> Option<Taken> {
        let first_seq = self.unpublished.front()?.seq;
        let mut taken = Taken { first_seq, ..Taken::default() };
        let (mut records, mut bytes) = (0, 0);
        while let Some(header) = self.unpublished.front().copied() {
            let full = taken.rows.saturating_add(header.rows) > limits.rows
                || bytes + header.bytes > limits.bytes
                || records == limits.records;
            if full && records > 0 {
                break;
            }
            self.unpublished.pop_front();
            taken.last_seq = header.seq;
            taken.rows += header.rows;
            taken.uploads.extend(header.upload);
            bytes += header.bytes;
            records += 1;
        }
        self.unpublished_rows -= taken.rows;
        self.unpublished_bytes -= bytes;
        Some(taken)
    }

    /// A part of an intent with this number of rows is visible.
    pub(super) fn published(&mut self, rows: u64, part: Visible) {
        self.publishing_rows = self.publishing_rows.saturating_sub(rows);
        self.published = (self.published.0 + rows, self.published.1 + 1);
        self.parts += 1;
        self.rows_in_parts += rows;
        self.bytes_in_parts += part.bytes;
        self.uploads_left_out += part.uploads_left_out;
        self.rows_left_out += part.rows_left_out;
    }

    pub(super) fn totals_record(&self, experiment: &str, table: Table) -> Record {
        let TableRows { parts, rows_in_parts: rows, bytes_in_parts: bytes, left_rows, .. } = *self;
        let TableRows { uploads_left_out, rows_left_out, .. } = *self;
        let (experiment, table) = (experiment.to_owned(), table.into());
        Record::Totals(Totals { experiment, table, parts, rows, bytes, left_rows, uploads_left_out, rows_left_out })
    }

    pub(super) fn covered_record(&self, experiment: &str, table: Table) -> Record {
        let (experiment, table) = (experiment.to_owned(), table.into());
        Record::Covered(CoveredRecord { experiment, table, tasks: self.covered })
    }

    /// Whether an upload is accepted and in no intent yet.
    pub(super) fn holds_upload(&self, part_id: Uuid) -> bool {
        self.unpublished.iter().any(|header| header.upload == Some(part_id))
    }

    /// When the oldest unpublished rows were received (microseconds since 1970 UTC); `None` if there are none.
    pub(super) fn oldest_us(&self) -> Option<i64> {
        self.unpublished.front().map(|header| header.received_us)
    }

    /// Whether the unpublished rows reach a limit of a part.
    pub(super) fn is_full(&self, limits: PartLimits) -> bool {
        self.unpublished_rows >= limits.rows
            || self.unpublished_bytes >= limits.bytes
            || self.unpublished.len() >= limits.records
    }

    pub(super) fn is_published(&self) -> bool {
        self.unpublished.is_empty() && self.publishing_rows == 0
    }
}

/// Progress of the driver's work for a durable record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// The driver works on it.
    Running,
    /// The work failed and is tried again at this instant.
    RetryAt(Duration),
}

/// A part being made.
#[derive(Debug)]
pub(super) struct OpenIntent {
    pub(super) intent: Intent,
    /// Uploads with its rows, deleted when the intent is closed.
    pub(super) uploads: Vec<Uuid>,
    pub(super) progress: Progress,
    /// Why its rows cannot become a part. They stay in the state, and nothing waits for them.
    pub(super) quarantined: Option<String>,
}

/// A client that waits until all rows are published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FlushWait {
    pub(super) client: ClientId,
    /// [`TableRows::published`] of `tasks` when the flush began.
    pub(super) published_before: (u64, u64),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_published_when_none_wait_for_a_part_or_are_in_one_that_is_being_made() {
        let mut rows = TableRows::default();
        assert!(rows.is_published());
        rows.push(Header { seq: 1, rows: 3, bytes: 9, received_us: 0, upload: None });
        assert!(!rows.is_published());
        rows.unpublished.clear();
        rows.publishing_rows = 3;
        assert!(!rows.is_published());
    }
}
