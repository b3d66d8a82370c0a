//! Rows in groups, with statistics of each measure.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, FieldRef, Schema};

use crate::error::{Error, usage};
use crate::frame::{HALF_WIDTH_OF, MEASURE, STAT, UNIT};
use crate::{Axis, Frame, Rows, Stat};

/// Rows that have the same values in some axes.
struct Group {
    /// Its first row in the order of the rows.
    first: usize,
    /// The values of each measure, sorted, without NaN.
    samples: Vec<Vec<f64>>,
}

/// The statistics of each measure for each combination of values of these axes. Groups are in the order of their first
/// rows. Without axes there is one group, also of no rows.
pub fn grouped(rows: &Rows, by: &[&str], stats: &[Stat]) -> Result<Frame, Error> {
    let axis = |name: &&str| rows.axis(name).ok_or_else(|| usage(format!("there is no column `{name}`")));
    let axes: Vec<&Axis> = by.iter().map(axis).collect::<Result<_, _>>()?;
    let groups = groups(rows, &axes);
    let mut fields: Vec<FieldRef> = Vec::new();
    let mut columns: Vec<ArrayRef> = Vec::new();
    for axis in &axes {
        fields.push(Arc::new(axis.field().as_ref().clone().with_nullable(true)));
        columns.push(axis.column(groups.iter().map(|group| group.first)));
    }
    for (at, (measure, _)) in rows.measures().iter().enumerate() {
        for stat in stats {
            let values = groups.iter().map(|group| stat.of(&group.samples[at]));
            fields.push(Arc::new(field(measure, *stat, stats)));
            columns.push(match stat {
                Stat::Count => Arc::new(values.map(|value| value.map(|value| value as i64)).collect::<Int64Array>()),
                _ => Arc::new(values.collect::<Float64Array>()),
            });
        }
    }
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns);
    Ok(Frame::new(batch.map_err(|error| usage(error.to_string()))?, axes.len()))
}

fn groups(rows: &Rows, axes: &[&Axis]) -> Vec<Group> {
    let mut known: HashMap<Vec<u32>, usize> = HashMap::new();
    let mut groups: Vec<Group> = Vec::new();
    let new = |first| Group { first, samples: vec![Vec::new(); rows.measures().len()] };
    if axes.is_empty() {
        groups.push(new(0));
    }
    let mut key = Vec::with_capacity(axes.len());
    for row in 0..rows.len() {
        key.clear();
        key.extend(axes.iter().map(|axis| axis.code(row)));
        let at = match known.get(&key) {
            Some(at) => *at,
            None if axes.is_empty() => 0,
            None => {
                known.insert(key.clone(), groups.len());
                groups.push(new(row));
                groups.len() - 1
            }
        };
        let group = &mut groups[at];
        if rows.index(row) < rows.index(group.first) {
            group.first = row;
        }
        for (sample, (_, values)) in group.samples.iter_mut().zip(rows.measures()) {
            if !values[row].is_nan() {
                sample.push(values[row]);
            }
        }
    }
    groups.iter_mut().flat_map(|group| &mut group.samples).for_each(|sample| sample.sort_unstable_by(f64::total_cmp));
    groups.sort_by_key(|group| if rows.is_empty() { 0 } else { rows.index(group.first) });
    groups
}

/// Those of the axes `others` in which rows of one group differ.
pub fn mixed<'a>(rows: &Rows, by: &[&str], others: &[&'a str]) -> Vec<&'a str> {
    let axes: Vec<&Axis> = by.iter().filter_map(|name| rows.axis(name)).collect();
    let of_others: Vec<Option<&Axis>> = others.iter().map(|name| rows.axis(name)).collect();
    let mut firsts: HashMap<Vec<u32>, usize> = HashMap::new();
    let mut differs = vec![false; others.len()];
    for row in 0..rows.len() {
        let first = *firsts.entry(axes.iter().map(|axis| axis.code(row)).collect()).or_insert(row);
        for (axis, differs) in of_others.iter().zip(&mut differs) {
            *differs |= axis.is_some_and(|axis| axis.code(row) != axis.code(first));
        }
    }
    others.iter().zip(differs).filter(|(_, differs)| *differs).map(|(name, _)| *name).collect()
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
