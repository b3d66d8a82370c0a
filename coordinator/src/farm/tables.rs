//! Rows that are not in a part yet, and parts on their way.

use std::collections::VecDeque;
use std::time::Duration;

use uuid::Uuid;

use super::ClientId;
use crate::records::Intent;

/// Most uploads in one part: they are read one after the other, and named in its intent.
const UPLOADS_MAX: usize = 4_096;

/// Rows of hand-ins that are one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) seq: u64,
    pub(super) live_rows: u64,
    pub(super) bytes: u64,
    pub(super) received_us: i64,
}

/// An accepted object of an optional table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Upload {
    pub(super) part_id: Uuid,
    pub(super) rows: u64,
    pub(super) bytes: u64,
    pub(super) received_us: i64,
}

/// One table's rows of one experiment.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct TableRows {
    /// Number of the next record of rows.
    pub(super) next_seq: u64,
    /// In no part and no open intent, in order.
    pub(super) unrolled: VecDeque<Header>,
    /// The same of an optional table: whole objects.
    pub(super) uploads: VecDeque<Upload>,
    /// Tasks handed in with what an optional table has of them.
    pub(super) covered: u64,
    pub(super) unrolled_rows: u64,
    pub(super) unrolled_bytes: u64,
    /// In an open intent.
    pub(super) rolling_rows: u64,
    /// Visible.
    pub(super) parts: u64,
    pub(super) rows_in_parts: u64,
    pub(super) bytes_in_parts: u64,
}

impl TableRows {
    pub(super) fn push(&mut self, header: Header) {
        self.next_seq = self.next_seq.max(header.seq + 1);
        self.unrolled_rows += header.live_rows;
        self.unrolled_bytes += header.bytes;
        self.unrolled.push_back(header);
    }

    /// More rows in the last record.
    pub(super) fn extend_last(&mut self, live_rows: u64, bytes: u64) {
        let Some(last) = self.unrolled.back_mut() else { return };
        last.live_rows += live_rows;
        last.bytes += bytes;
        self.unrolled_rows += live_rows;
        self.unrolled_bytes += bytes;
    }

    /// Takes the first records up to a part's worth: (first, last, rows).
    pub(super) fn take_part(&mut self, rows_max: u64, bytes_max: u64) -> Option<(u64, u64, u64)> {
        let first = *self.unrolled.front()?;
        let (mut last, mut rows, mut bytes) = (first.seq, 0, 0);
        while let Some(header) = self.unrolled.front().copied() {
            let full = rows + header.live_rows > rows_max || bytes + header.bytes > bytes_max;
            if full && header.seq != first.seq {
                break;
            }
            self.unrolled.pop_front();
            last = header.seq;
            rows += header.live_rows;
            bytes += header.bytes;
        }
        self.unrolled_rows -= rows;
        self.unrolled_bytes -= bytes;
        Some((first.seq, last, rows))
    }

    pub(super) fn push_upload(&mut self, upload: Upload) {
        self.unrolled_rows += upload.rows;
        self.unrolled_bytes += upload.bytes;
        self.uploads.push_back(upload);
    }

    /// Takes the first uploads up to a part's worth: their ids and rows.
    pub(super) fn take_uploads(&mut self, bytes_max: u64) -> Option<(Vec<Uuid>, u64)> {
        let (mut ids, mut rows, mut bytes) = (Vec::new(), 0, 0);
        while let Some(upload) = self.uploads.front().copied() {
            if !ids.is_empty() && (bytes + upload.bytes > bytes_max || ids.len() == UPLOADS_MAX) {
                break;
            }
            self.uploads.pop_front();
            ids.push(upload.part_id);
            rows += upload.rows;
            bytes += upload.bytes;
        }
        self.unrolled_rows -= rows;
        self.unrolled_bytes -= bytes;
        (!ids.is_empty()).then_some((ids, rows))
    }

    /// Whether an object is accepted and in no intent yet.
    pub(super) fn holds_upload(&self, part_id: Uuid) -> bool {
        self.uploads.iter().any(|upload| upload.part_id == part_id)
    }

    /// When the oldest rows that are in no part and no intent came (microseconds since 1970 UTC); `None` if all are.
    pub(super) fn oldest_us(&self) -> Option<i64> {
        let rows = self.unrolled.front().map(|header| header.received_us);
        rows.into_iter().chain(self.uploads.front().map(|upload| upload.received_us)).min()
    }

    /// Whether enough wait for a part, whatever their age.
    pub(super) fn is_full(&self, rows_max: u64, bytes_max: u64) -> bool {
        // Rows of optional tables are many and small: their bytes count.
        let rows = if self.uploads.is_empty() { self.unrolled_rows } else { 0 };
        rows >= rows_max || self.unrolled_bytes >= bytes_max || self.uploads.len() >= UPLOADS_MAX
    }

    pub(super) fn is_rolled(&self) -> bool {
        self.unrolled.is_empty() && self.uploads.is_empty() && self.rolling_rows == 0
    }
}

/// How far a durable publish intent is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// The driver works on it.
    Running,
    /// It failed; again at this instant.
    RetryAt(Duration),
}

/// A part on its way.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct OpenIntent {
    pub(super) intent: Intent,
    pub(super) progress: Progress,
    pub(super) attempts: u32,
}

/// A client that waits until everything of the present is in parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FlushWait {
    pub(super) client: ClientId,
    pub(super) rows_before: u64,
    pub(super) parts_before: u64,
}
