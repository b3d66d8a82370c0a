//! Rows in groups, with statistics of each measure.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array};
use arrow::datatypes::{DataType, Field};

use crate::frame::{HALF_WIDTH_OF, MEASURE, STAT, UNIT};
use crate::{Axis, Column, Error, Frame, Rows, Stat};

/// The statistics of each measure for each combination of values of these axes, in the order of [`Rows::groups`].
pub fn grouped(rows: &Rows, by: &[&str], stats: &[Stat]) -> Result<Frame, Error> {
    let groups = rows.groups(by)?;
    let firsts = || groups.iter().map(|group| group[0] as usize);
    let mut columns: Vec<Column> =
        by.iter().filter_map(|name| rows.axis(name)).map(|axis| axis.column(firsts())).collect();
    for (measure, values) in rows.measures() {
        let sample = |group: &Vec<u32>| {
            let numbers = group.iter().map(|row| values[*row as usize]);
            let mut sample: Vec<f64> = numbers.filter(|value| !value.is_nan()).collect();
            sample.sort_unstable_by(f64::total_cmp);
            stats.iter().map(|stat| stat.of(&sample)).collect::<Vec<_>>()
        };
        let of_groups: Vec<Vec<Option<f64>>> = groups.iter().map(sample).collect();
        for (at, stat) in stats.iter().enumerate() {
            let values = of_groups.iter().map(|of_group| of_group[at]);
            let values: ArrayRef = match stat {
                Stat::Count => Arc::new(values.map(|value| value.map(|value| value as i64)).collect::<Int64Array>()),
                _ => Arc::new(values.collect::<Float64Array>()),
            };
            columns.push(Column::of(&Arc::new(field(measure, *stat, stats)), &values));
        }
    }
    Ok(Frame::of(columns).with_keys(by.len()))
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
    Field::new(named(stat, measure.name()), of, true).with_metadata(metadata)
}

/// The name of a statistic of a measure.
pub fn named(stat: Stat, measure: &str) -> String {
    format!("{stat}({measure})")
}
