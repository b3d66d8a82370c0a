//! Intervals of shares and means whose rows come from independent replicates.

use std::collections::BTreeMap;

use powersweep_dataset::Frame;
use powersweep_dataset::replicates::{Method, Replicates};

use crate::Result;

/// The rows of a table by replicate: numbers from 0. Rows of one replicate are not independent of each other, because jobs
/// of one queue wait for each other. So an interval is over the replicates.
pub(super) struct Numbered {
    of_rows: Vec<usize>,
    method: Method,
}

/// The column that tells replicates apart, such as the seed, and how an interval follows from them.
pub type By<'a> = (&'a str, Method);

impl Numbered {
    /// Numbers the replicates of the rows.
    pub(super) fn of(rows: &Frame, (column, method): By<'_>) -> Result<Numbered> {
        let column = rows.column(column)?;
        let mut known: BTreeMap<String, usize> = BTreeMap::new();
        let number = |row| {
            let next = known.len();
            *known.entry(column.text(row)).or_insert(next)
        };
        Ok(Numbered { of_rows: (0..rows.rows()).map(number).collect(), method })
    }

    /// The replicate of a row.
    pub(super) fn number(&self, row: usize) -> usize {
        self.of_rows[row]
    }

    /// Half the width of the 95% interval of a ratio: the sum of all replicates over their count. `parts`: sum and count of each
    /// replicate. `None` for fewer than two replicates.
    pub(super) fn half_width(&self, parts: &[(f64, f64)]) -> Option<f64> {
        let (low, high) = Replicates::of_sums(parts.iter().copied(), self.method).mean().ends?;
        Some((high - low) / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use powersweep_dataset::Column;
    use powersweep_dataset::replicates::Draw;

    use super::*;

    #[test]
    fn replicates_are_numbered_by_their_first_rows() {
        let table = Frame::of([Column::texts("seed", "", ["7", "3", "7", "9"])]);
        let numbered = Numbered::of(&table, ("seed", Method::T(95))).expect("a column");
        assert_eq!((0..4).map(|row| numbered.number(row)).collect::<Vec<_>>(), [0, 1, 0, 2]);
    }

    /// Ratio 10/5 = 2; residuals 3 - 2 * 1 = 1 and 7 - 2 * 4 = -1; t sqrt(2 * 2/1) / 5 with t(0.95; 1) = 12.7062.
    #[test]
    fn a_replicate_counts_by_its_rows() {
        let numbered = |method| Numbered { of_rows: Vec::new(), method };
        let half = numbered(Method::T(95)).half_width(&[(3.0, 1.0), (7.0, 4.0)]).expect("an interval");
        assert!((half - 12.706_204_736 * 2.0 / 5.0).abs() < 1e-8, "{half}");
        assert_eq!(numbered(Method::T(95)).half_width(&[(4.0, 4.0)]), None);
        // Two draws of a long log, each as long as the log.
        let method = Method::Resampled(95, Draw::UNKNOWN);
        let of_draws = numbered(method).half_width(&[(3.0, 1.0), (7.0, 4.0)]).expect("an interval");
        assert!((of_draws / half - 3f64.sqrt()).abs() < 1e-12, "{of_draws}");
    }
}
