//! Intervals of shares and means whose rows come from independent replications.

use std::collections::BTreeMap;

use powersweep_dataset::Frame;
use powersweep_dataset::stats::quotient;

use crate::error::Result;

/// Which rows come from one replication. Rows of one replication are not independent of each other: jobs of one queue wait for
/// each other. So an interval is over the replications.
#[derive(Debug, Clone, Copy)]
pub struct Replications<'a> {
    /// Column that tells replications apart, such as the seed.
    pub column: &'a str,
    /// Student's t of the intervals' coverage, by degrees of freedom.
    pub t: fn(usize) -> f64,
}

/// The rows of a table by replication: numbers from 0.
pub(super) struct Numbered {
    numbers: Vec<usize>,
    t: fn(usize) -> f64,
}

impl Replications<'_> {
    /// Numbers the replications of the rows.
    pub(super) fn numbered(self, rows: &Frame) -> Result<Numbered> {
        let column = rows.column(self.column)?;
        let mut known: BTreeMap<String, usize> = BTreeMap::new();
        let mut number = |row| {
            let next = known.len();
            *known.entry(column.text(row)).or_insert(next)
        };
        Ok(Numbered { numbers: (0..rows.rows()).map(&mut number).collect(), t: self.t })
    }
}

impl Numbered {
    /// The replication of a row.
    pub(super) fn of(&self, row: usize) -> usize {
        self.numbers[row]
    }

    /// Half the width of the confidence interval of a ratio: the sum of all replications over their count. `parts`: sum and
    /// count of each replication. `None` for fewer than two replications.
    pub(super) fn half_width(&self, parts: &[(f64, f64)]) -> Option<f64> {
        let (_, error) = quotient(parts.iter().copied());
        (parts.len() > 1).then(|| (self.t)(parts.len() - 1) * error)
    }
}

#[cfg(test)]
mod tests {
    use powersweep_dataset::Column;

    use super::*;

    fn numbered(seeds: &[&str]) -> Numbered {
        let table = Frame::of([Column::texts("seed", "", seeds.iter().copied())]);
        Replications { column: "seed", t: |_| 2.0 }.numbered(&table).expect("a column")
    }

    #[test]
    fn replications_are_numbered_by_their_first_rows() {
        let numbered = numbered(&["7", "3", "7", "9"]);
        assert_eq!((0..4).map(|row| numbered.of(row)).collect::<Vec<_>>(), [0, 1, 0, 2]);
    }

    /// Of equal counts: the means 1, 2, 6 have the mean 3 and the standard error sqrt(7/3).
    #[test]
    fn equal_counts_give_the_interval_of_a_mean() {
        let half = numbered(&[]).half_width(&[(4.0, 4.0), (8.0, 4.0), (24.0, 4.0)]).expect("an interval");
        assert!((half - 2.0 * (7.0f64 / 3.0).sqrt()).abs() < 1e-12, "{half}");
        assert_eq!(numbered(&[]).half_width(&[(4.0, 4.0)]), None);
    }

    /// Ratio 10/5 = 2; residuals 3 - 2 * 1 = 1 and 7 - 2 * 4 = -1; sqrt(2 * 2/1) / 5.
    #[test]
    fn a_replication_counts_by_its_rows() {
        let half = numbered(&[]).half_width(&[(3.0, 1.0), (7.0, 4.0)]).expect("an interval");
        assert!((half - 2.0 * 2.0 / 5.0).abs() < 1e-12, "{half}");
    }
}
