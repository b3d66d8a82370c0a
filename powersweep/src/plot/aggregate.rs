//! Means over rows with confidence intervals.

use powersweep_dataset::{Column, Error, Frame, Rows, Stat, group};
use powersweep_figures::not_numbers;

use super::titles;

/// Coverage of the intervals (percent).
const CONFIDENCE: u32 = 95;
/// Name of the column with the number of rows of a mean.
const ROWS: &str = "rows_count";

/// The names of the ends of a mean's interval.
pub(super) fn interval(of: &str) -> (String, String) {
    (format!("{of}_low"), format!("{of}_high"))
}

/// For each combination of values in `by`, the means of some measures over its rows, the ends of their 95% intervals over
/// the axis `seed`, null for a single seed, and the number of rows. A combination without a mean of a measure is left out.
pub(super) fn means(rows: &Rows, by: &[&str], of: &[&str]) -> Result<Frame, Error> {
    let is_measure = |name: &&&str| rows.measures().iter().any(|(field, _)| field.name() == **name);
    if let Some(name) = of.iter().find(|name| !is_measure(name)) {
        return Err(not_numbers(name));
    }
    let groups = group::grouped(rows, by, &[Stat::Mean, Stat::Interval(CONFIDENCE), Stat::Count])?;
    let statistic = |stat: Stat, name: &str| groups.column(&group::named(stat, name));
    let mut columns: Vec<Column> = groups.columns().take(by.len()).map(|column| titles::titled(&column)).collect();
    for name in of {
        let (mean, half) = (statistic(Stat::Mean, name)?, statistic(Stat::Interval(CONFIDENCE), name)?);
        let value = titles::titled(&mean.named(name));
        let end = |sign: f64| {
            let end = |row| Some(mean.number(row)? + sign * half.number(row)?);
            value.with_numbers((0..groups.rows()).map(end))
        };
        let (low, high) = interval(name);
        columns.extend([value.clone(), end(-1.0).named(&low), end(1.0).named(&high)]);
    }
    let first = of.first().copied().unwrap_or_default();
    columns.push(statistic(Stat::Count, first)?.named(ROWS).titled("rows", ""));
    let means: Vec<Column> = of.iter().map(|name| statistic(Stat::Mean, name)).collect::<Result<_, _>>()?;
    Ok(Frame::of(columns).kept(|row| means.iter().all(|mean| mean.number(row).is_some())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three values 1, 2, 6: mean 3, standard error sqrt(7/3), t(0.95; 2) = 4.30265.
    #[test]
    fn intervals_are_those_of_students_t() {
        let rows = Frame::of([
            Column::texts("policy", "policy", ["easy", "fcfs", "easy", "easy"]),
            Column::numbers("wait_s", "wait", "s", [1.0, 7.0, 2.0, 6.0]),
        ]);
        let rows = Rows::of(&rows, &["policy"], &["wait_s"]).expect("columns");
        let means = means(&rows, &["policy"], &["wait_s"]).expect("means");
        let number = |name: &str, row: usize| means.column(name).expect("it is there").number(row);
        assert_eq!(means.rows(), 2);
        assert_eq!((number("wait_s", 0), number("rows_count", 0)), (Some(3.0), Some(3.0)));
        let half = 4.302_652_73 * (7.0f64 / 3.0).sqrt();
        assert!((number("wait_s_high", 0).expect("an interval") - (3.0 + half)).abs() < 1e-6);
        assert!((number("wait_s_low", 0).expect("an interval") - (3.0 - half)).abs() < 1e-6);
        assert_eq!((number("wait_s", 1), number("wait_s_low", 1)), (Some(7.0), None), "one row has no interval");
    }
}
