//! Rows in groups, with statistics of each measure.

use std::cell::LazyCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array};
use arrow::datatypes::{DataType, Field};
use powersweep_engine::seeds::Dependence;

use crate::baseline::Baseline;
use crate::frame::{HALF_WIDTH_OF, MEASURE, RATIO, STAT, UNIT};
use crate::replicates::{Interval, Method, Replicates, SEED, seed};
use crate::{Axis, Column, Error, Frame, Rows, Stat};

/// The statistics of each measure for each combination of values of these axes, in the order of [`Rows::groups`].
///
/// The replicates of an interval are the values of the axis `seed`; without that axis each row is one. Rows that no seed changes
/// are one replicate.
pub fn grouped(rows: &Rows, by: &[&str], stats: &[Stat]) -> Result<Frame, Error> {
    statistics(rows, None, by, stats)
}

/// The statistics of each measure relative to that of the baseline. The mean is the mean of the rows of a group divided by
/// that of their partners in the baseline; the ends of its interval are [`Stat::Low`] and [`Stat::High`]. Other statistics
/// are those of the ratios row by row. Rows without a partner are left out.
pub fn grouped_ratios(rows: &Rows, baseline: &Baseline, by: &[&str], stats: &[Stat]) -> Result<Frame, Error> {
    statistics(rows, Some(baseline), by, stats)
}

fn statistics(rows: &Rows, baseline: Option<&Baseline>, by: &[&str], stats: &[Stat]) -> Result<Frame, Error> {
    let groups = rows.groups(by)?;
    let firsts = || groups.iter().map(|group| group[0] as usize);
    let mut columns: Vec<Column> =
        by.iter().filter_map(|name| rows.axis(name)).map(|axis| axis.column(firsts())).collect();
    for (measure, values) in rows.measures() {
        let of_groups: Vec<Vec<Option<f64>>> =
            groups.iter().map(|group| Sample::of(rows, group, values, baseline).statistics(stats)).collect();
        let mut measure = measure.as_ref().clone();
        if baseline.is_some() {
            measure = ratio_of(&measure);
        }
        for (at, stat) in stats.iter().enumerate() {
            let values = of_groups.iter().map(|of_group| of_group[at]);
            let values: ArrayRef = match stat {
                Stat::Count => Arc::new(values.map(|value| value.map(|value| value as i64)).collect::<Int64Array>()),
                _ => Arc::new(values.collect::<Float64Array>()),
            };
            columns.push(Column::of(&Arc::new(field(&measure, *stat, stats)), &values));
        }
    }
    Ok(Frame::of(columns).with_keys(by.len()))
}

/// The values of a measure in a group.
struct Sample {
    /// Replicate, value of the baseline, value. Rows without a value are left out.
    rows: Vec<(i64, f64, f64)>,
    is_ratio: bool,
    seeds: Dependence,
}

impl Sample {
    fn of(rows: &Rows, group: &[u32], values: &[f64], baseline: Option<&Baseline>) -> Sample {
        let seeds = rows.axis(SEED);
        let of_base = |row: &u32| baseline.and_then(|baseline| baseline.of[*row as usize]);
        let dependence = rows.dependence(group.iter().map(|row| *row as usize).chain(group.iter().filter_map(of_base)));
        let row = |row: &u32| {
            let row = *row as usize;
            let replicate =
                if dependence == Dependence::Alike { 0 } else { seeds.map_or(row as i64, |seeds| seed(seeds, row)) };
            let base = match baseline {
                Some(baseline) => values[baseline.of[row]?],
                None => 1.0,
            };
            Some((replicate, base, values[row])).filter(|(_, base, value)| !base.is_nan() && !value.is_nan())
        };
        Sample { rows: group.iter().filter_map(row).collect(), is_ratio: baseline.is_some(), seeds: dependence }
    }

    fn statistics(&self, stats: &[Stat]) -> Vec<Option<f64>> {
        // Intervals of every coverage have the same ratio of means.
        let coverage = |stat: &Stat| stat.coverage().or((self.is_ratio && *stat == Stat::Mean).then_some(95));
        let intervals: BTreeMap<u32, Interval> =
            stats.iter().filter_map(coverage).map(|percent| (percent, self.interval(percent))).collect();
        let sorted = LazyCell::new(|| self.sorted());
        let of = |stat: &Stat| match (coverage(stat).map(|percent| intervals[&percent]), stat) {
            (Some(Interval { value, .. }), Stat::Mean) => Some(value).filter(|value| value.is_finite()),
            (Some(Interval { ends, .. }), Stat::Low(_)) => ends.map(|(low, _)| low),
            (Some(Interval { ends, .. }), Stat::High(_)) => ends.map(|(_, high)| high),
            (Some(Interval { ends, .. }), _) => ends.map(|(low, high)| (high - low) / 2.0),
            (None, stat) => stat.of(&sorted),
        };
        stats.iter().map(of).collect()
    }

    fn interval(&self, percent: u32) -> Interval {
        let replicates = Replicates::of_pairs(self.rows.iter().copied(), Method::of(self.seeds, percent));
        if self.is_ratio { replicates.ratio() } else { replicates.mean() }
    }

    /// The values, or their ratios to the baseline, in ascending order.
    fn sorted(&self) -> Vec<f64> {
        let value = |(_, base, value): &(i64, f64, f64)| if self.is_ratio { value / base } else { *value };
        let mut sorted: Vec<f64> = self.rows.iter().map(value).filter(|value| !value.is_nan()).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        sorted
    }
}

/// The measure of ratios to a baseline: they have no unit.
fn ratio_of(field: &Field) -> Field {
    let mut metadata = field.metadata().clone();
    metadata.remove(UNIT);
    metadata.insert(RATIO.to_owned(), "true".to_owned());
    field.clone().with_metadata(metadata)
}

/// Those of the axes `others` in which rows of one group differ.
pub fn mixed<'a>(rows: &Rows, by: &[&str], others: &[&'a str]) -> Result<Vec<&'a str>, Error> {
    let groups = rows.groups(by)?;
    let differs = |axis: &Axis| {
        let code = |row: u32| axis.code(row as usize);
        groups.iter().any(|group| group.iter().any(|row| code(*row) != code(group[0])))
    };
    Ok(others.iter().copied().filter(|name| rows.axis(name).is_some_and(differs)).collect())
}

/// The column of a statistic of a measure.
fn field(measure: &Field, stat: Stat, all: &[Stat]) -> Field {
    let of = if stat == Stat::Count { DataType::Int64 } else { DataType::Float64 };
    let mut metadata = measure.metadata().clone();
    metadata.insert(MEASURE.to_owned(), measure.name().clone());
    metadata.insert(STAT.to_owned(), stat.to_string());
    if stat == Stat::Count {
        metadata.remove(UNIT);
    }
    if matches!(stat, Stat::Interval(_)) && all.contains(&Stat::Mean) {
        metadata.insert(HALF_WIDTH_OF.to_owned(), named(Stat::Mean, measure.name()));
    }
    // The mean of a group divided by the mean of its baseline is no mean.
    let is_ratio_of_means = stat == Stat::Mean && metadata.contains_key(RATIO);
    let name = if is_ratio_of_means { format!("ratio({})", measure.name()) } else { named(stat, measure.name()) };
    Field::new(name, of, true).with_metadata(metadata)
}

/// The name of a statistic of a measure.
pub fn named(stat: Stat, measure: &str) -> String {
    format!("{stat}({measure})")
}
