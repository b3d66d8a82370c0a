//! Means over rows with confidence intervals.

use std::collections::BTreeMap;

use powersweep_dataset::scan::SEED;
use powersweep_dataset::{Stat, student_t};
use powersweep_figures::kinds::Replications;
use powersweep_figures::{Column, FigureError, Table, Values};

/// Coverage of the intervals (percent).
const CONFIDENCE: u32 = 95;
/// Name of the column with the number of rows of a mean.
pub(super) const ROWS: &str = "rows_count";

/// Each seed is a replication.
pub(super) const SEEDS: Replications = Replications { column: SEED, t: |dof| student_t(CONFIDENCE, dof) };

/// The names of the ends of a mean's interval.
pub(super) fn interval(of: &str) -> (String, String) {
    (format!("{of}_low"), format!("{of}_high"))
}

/// The rows of each combination of values in some columns, in the order of their first rows.
pub(super) fn groups(table: &Table, by: &[&str]) -> Result<Vec<Vec<usize>>, FigureError> {
    let columns: Vec<&Column> = by.iter().map(|name| table.column(name)).collect::<Result<_, _>>()?;
    let mut places: BTreeMap<Vec<String>, usize> = BTreeMap::new();
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for row in 0..table.rows() {
        let key = columns.iter().map(|column| column.text(row)).collect();
        let place = *places.entry(key).or_insert(groups.len());
        if place == groups.len() {
            groups.push(Vec::new());
        }
        groups[place].push(row);
    }
    Ok(groups)
}

/// For each combination of values in `by`, the means of some columns over its rows, the ends of their 95% intervals of
/// Student's t, null for a single row, and the number of rows. Rows without a number do not count; a combination without any
/// number in a column is left out.
pub(super) fn means(table: &Table, by: &[&str], of: &[&str]) -> Result<Table, FigureError> {
    let groups = groups(table, by)?;
    let mut means: Vec<(usize, Vec<Mean>)> = Vec::new();
    let columns: Vec<&Column> = of.iter().map(|name| table.numeric(name)).collect::<Result<_, _>>()?;
    for rows in groups {
        let of_group = columns.iter().map(|column| mean(rows.iter().filter_map(|row| column.number(*row)).collect()));
        if let Some(found) = of_group.collect::<Option<Vec<_>>>() {
            means.push((rows[0], found));
        }
    }
    let first: Vec<usize> = means.iter().map(|(row, _)| *row).collect();
    let kept = table.taken(&first);
    let names = by.iter().filter_map(|name| kept.column(name).ok()).cloned();
    let mut result = Table::new(names);
    for (at, column) in columns.iter().enumerate() {
        let numbers =
            |of: fn(&Mean) -> Option<f64>| Values::Numbers(means.iter().map(|(_, means)| of(&means[at])).collect());
        let (low, high) = interval(&column.name);
        let with = |name: &str, values| Column { name: name.to_owned(), values, ..(*column).clone() };
        result.push(with(&column.name, numbers(|mean| Some(mean.value))));
        result.push(with(&low, numbers(|mean| mean.half_width.map(|half| mean.value - half))));
        result.push(with(&high, numbers(|mean| mean.half_width.map(|half| mean.value + half))));
    }
    result.push(Column::numbers(ROWS, "rows", "", means.iter().map(|(_, means)| means[0].count as f64)));
    Ok(result)
}

/// A mean with half the width of its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Mean {
    value: f64,
    half_width: Option<f64>,
    count: usize,
}

/// The statistics of `results`, which do not depend on the order of the rows.
fn mean(mut values: Vec<f64>) -> Option<Mean> {
    values.sort_unstable_by(f64::total_cmp);
    let half_width = Stat::Interval(CONFIDENCE).of(&values);
    Some(Mean { value: Stat::Mean.of(&values)?, half_width, count: values.len() })
}

/// The columns in which rows of one combination of `by` differ: their means are over more than seeds.
pub(super) fn mixed(table: &Table, by: &[&str], others: &[String]) -> Result<Vec<String>, FigureError> {
    let groups = groups(table, by)?;
    let differs = |name: &&String| {
        let Ok(column) = table.column(name) else { return false };
        groups.iter().any(|rows| rows.iter().any(|row| column.text(*row) != column.text(rows[0])))
    };
    Ok(others.iter().filter(|name| !by.contains(&name.as_str())).filter(differs).cloned().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        Table::new([
            Column::texts("policy", "policy", ["easy", "fcfs", "easy", "easy"]),
            Column::numbers("wait_s", "wait", "s", [1.0, 7.0, 2.0, 6.0]),
            Column::numbers("seed", "seed", "", [1.0, 1.0, 2.0, 3.0]),
            Column::numbers("cap_w", "cap", "W", [9.0, 9.0, 9.0, 8.0]),
        ])
    }

    /// Three values 1, 2, 6: mean 3, standard error sqrt(7/3), t(0.95; 2) = 4.30265.
    #[test]
    fn intervals_are_those_of_students_t() {
        let means = means(&table(), &["policy"], &["wait_s"]).expect("means");
        let number = |name: &str, row: usize| means.column(name).expect("it is there").number(row);
        assert_eq!(means.rows(), 2);
        assert_eq!((number("wait_s", 0), number("rows_count", 0)), (Some(3.0), Some(3.0)));
        let half = 4.302_652_73 * (7.0f64 / 3.0).sqrt();
        assert!((number("wait_s_high", 0).expect("an interval") - (3.0 + half)).abs() < 1e-6);
        assert!((number("wait_s_low", 0).expect("an interval") - (3.0 - half)).abs() < 1e-6);
        assert_eq!((number("wait_s", 1), number("wait_s_low", 1)), (Some(7.0), None), "one row has no interval");
    }

    #[test]
    fn columns_that_differ_within_a_mean_are_named() {
        let others = ["cap_w".to_owned(), "policy".to_owned()];
        assert_eq!(mixed(&table(), &["policy"], &others).expect("columns"), ["cap_w"]);
        assert_eq!(mixed(&table(), &["policy", "cap_w"], &others).expect("columns"), [""; 0]);
    }
}
