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
}

impl FlushRule {
    /// `tasks` only: a kill costs a tenth of a second of work, and a hand-in's fixed cost (building and reading some
    /// three hundred columns, a durable write) is shared by many rows where tasks are short. A thousand rows have some
    /// 2.5 MB before they are encoded, and a twentieth of that afterwards.
    pub const TASKS: FlushRule = FlushRule { rows: 1_000, bytes: 8 << 20, age: Duration::from_millis(100) };

    /// With an optional table each batch is one uploaded object of it (the coordinator makes parts of many), so batches
    /// are larger and later: an upload costs a few writes and a look-up, and small objects must be decoded again.
    pub const PARTS: FlushRule = FlushRule { rows: 1_000, bytes: 64 << 20, age: Duration::from_secs(5) };

    /// Whether a batch has to go now.
    pub fn is_due(&self, rows: usize, bytes: usize, age: Duration) -> bool {
        rows > 0 && (rows >= self.rows || bytes >= self.bytes || age >= self.age)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_limit_suffices_but_an_empty_batch_never_goes() {
        let rule = FlushRule { rows: 3, bytes: 10, age: Duration::from_millis(5) };
        let ms = Duration::from_millis;
        assert!(!rule.is_due(2, 9, ms(4)));
        assert!(rule.is_due(3, 0, ms(0)));
        assert!(rule.is_due(1, 10, ms(0)));
        assert!(rule.is_due(1, 0, ms(5)));
        assert!(!rule.is_due(0, 99, ms(99)));
    }
}
