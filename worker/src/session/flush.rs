//! When a slot's finished rows are handed in.

use std::time::Duration;

/// Limits of one batch of rows. A batch is also handed in when its slot has nothing to do.
#[derive(Debug, Clone, Copy)]
pub struct FlushRule {
    /// Rows of `tasks`.
    pub rows: usize,
    /// Bytes of all tables, as far as they are known before encoding.
    pub bytes: usize,
    /// Age of the first row.
    pub age: Duration,
    /// Age of the first row from which the batch is handed in if no more tasks are left for the slot than it has rows: the
    /// coordinator then grants the next lease, which comes before the queue is empty.
    pub half_age: Duration,
}

impl FlushRule {
    /// `tasks` only: a killed worker loses a tenth of a second of work, and many short tasks share a hand-in's fixed cost
    /// (building and reading some three hundred columns, a durable write). A thousand rows have some 2.5 MB before
    /// they are encoded, and a twentieth of that afterwards.
    pub const TASKS: FlushRule = FlushRule {
        rows: 1_000,
        bytes: 8 << 20,
        age: Duration::from_millis(100),
        half_age: Duration::from_millis(100),
    };

    /// With optional tables: each table of a batch is one upload, and the coordinator makes parts of many. Batches are
    /// larger and older, because an upload costs a few writes and a look-up, and small uploads are decoded again.
    pub const UPLOADS: FlushRule =
        FlushRule { rows: 1_000, bytes: 64 << 20, age: Duration::from_secs(5), half_age: Duration::from_millis(500) };

    /// Whether a batch must be handed in now, whatever tasks are left.
    pub fn is_due(&self, rows: usize, bytes: usize, age: Duration) -> bool {
        rows > 0 && (rows >= self.rows || bytes >= self.bytes || age >= self.age)
    }

    /// Whether a batch must be handed in now if no more tasks are left for the slot than it has rows.
    pub fn is_half_due(&self, rows: usize, age: Duration) -> bool {
        rows > 0 && age >= self.half_age
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_limit_suffices_but_an_empty_batch_is_never_due() {
        let ms = Duration::from_millis;
        let rule = FlushRule { rows: 3, bytes: 10, age: ms(5), half_age: ms(3) };
        assert!(!rule.is_due(2, 9, ms(4)));
        assert!(rule.is_due(3, 0, ms(0)));
        assert!(rule.is_due(1, 10, ms(0)));
        assert!(rule.is_due(1, 0, ms(5)));
        assert!(rule.is_half_due(2, ms(3)) && !rule.is_half_due(2, ms(2)));
        assert!(!rule.is_due(0, 99, ms(99)) && !rule.is_half_due(0, ms(99)));
    }
}
