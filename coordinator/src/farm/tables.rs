//! Rows that are not in a part yet, and parts on their way.

use std::collections::VecDeque;
use std::time::Duration;

use super::ClientId;
use crate::records::Intent;

/// Rows of one hand-in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) seq: u64,
    pub(super) live_rows: u64,
    pub(super) bytes: u64,
    pub(super) received_us: i64,
}

/// One table's rows of one experiment.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct TableRows {
    /// Number of the next hand-in's rows.
    pub(super) next_seq: u64,
    /// In no part and no open intent, in order.
    pub(super) unrolled: VecDeque<Header>,
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

    /// Takes the first hand-ins up to a part's worth: (first, last, rows).
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

    pub(super) fn is_rolled(&self) -> bool {
        self.unrolled.is_empty() && self.rolling_rows == 0
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
