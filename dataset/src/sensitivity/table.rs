//! Indices as a frame.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array};
use arrow::datatypes::{DataType, Field};

use super::Index;
use crate::frame::{MEASURE, STAT, UNIT};
use crate::{Column, Frame};

/// The columns of an index: its value, which a bounded index does not have, and the ends of its interval. `indices` has one for
/// each row.
fn columns(name: &str, unit: &str, indices: &[Option<Index>]) -> [Column; 3] {
    let usable: Vec<Option<Index>> = indices.iter().map(|index| index.filter(Index::is_finite)).collect();
    let column = |stat: &str, suffix: &str, value: &dyn Fn(Index) -> Option<f64>| {
        let tags = [(MEASURE, name), (STAT, stat), (UNIT, unit)].map(|(key, value)| (key.to_owned(), value.to_owned()));
        let field = Field::new(format!("{name}{suffix}"), DataType::Float64, true)
            .with_metadata(std::collections::HashMap::from(tags));
        let values: ArrayRef = Arc::new(usable.iter().map(|index| value((*index)?)).collect::<Float64Array>());
        Column::of(&Arc::new(field), &values)
    };
    [
        column("mean", "", &|index| index.span.value()),
        column("low95", "_low", &|index| Some(index.ends?.0)),
        column("high95", "_high", &|index| Some(index.ends?.1)),
    ]
}

/// A frame of keys, then the columns of the indices of these names, in this unit: `rows` has one index for each name, none where an index
/// does not apply. An index that is not finite is left out.
pub fn frame(keys: Vec<Column>, names: &[&str], unit: &str, rows: &[Vec<Option<Index>>]) -> Frame {
    let count = keys.len();
    let indices = names.iter().enumerate().flat_map(|(at, name)| {
        let of: Vec<Option<Index>> = rows.iter().map(|row| row[at]).collect();
        columns(name, unit, &of)
    });
    Frame::of(keys.into_iter().chain(indices)).with_keys(count)
}
