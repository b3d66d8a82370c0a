//! A small table of results: keys, then statistics.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::{concat, take};
use arrow::datatypes::{Field, FieldRef, Schema};

use crate::error::{Error, usage};
use crate::titles::unit_of_column;
use crate::{Cell, Column};

/// Key of a unit in the metadata of a field.
pub const UNIT: &str = "unit";
/// Key of the title of an axis in the metadata of a field.
pub const TITLE: &str = "title";
/// Key of the measure of a statistic.
pub const MEASURE: &str = "measure";
/// Key of the name of a statistic.
pub const STAT: &str = "statistic";
/// Key of the column around whose values this one's are half the width of an interval.
pub const HALF_WIDTH_OF: &str = "half_width_of";
/// Key that a ratio to a baseline has.
pub const RATIO: &str = "ratio";
/// Key of the value of the pivoted column.
pub const PIVOT: &str = "pivot";

/// The unit of energies and powers if the power of a busy proc is left at its default of 1.
pub const RELATIVE: &str = "relative";

/// Grams that no power is part of.
const EMBODIED: &str = "embodied_emissions_g";

/// Whether a column has costs, in the currency of their price.
pub fn is_cost(name: &str) -> bool {
    name == "cost" || name.ends_with("_cost")
}

/// Whether a column has emissions of a power.
pub fn is_emission(name: &str) -> bool {
    unit_of_column(name) == Some("g") && name != EMBODIED
}

/// The unit of a column of rows whose energies may be relative: what is a power times something has no unit of its own.
pub fn unit_of<'a>(name: &str, unit: &'a str, are_relative: bool) -> &'a str {
    let is_of_power = ["J", "W", "J s", "kWh", "g"].contains(&unit) || is_cost(name);
    if are_relative && is_of_power && name != EMBODIED { RELATIVE } else { unit }
}

/// Rows whose first columns tell them apart.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    batch: RecordBatch,
    keys: usize,
}

impl Frame {
    /// The first `keys` columns tell the rows apart.
    pub fn new(batch: RecordBatch, keys: usize) -> Frame {
        Frame { batch, keys }
    }

    /// A frame of these columns, which have one length; none of them tells the rows apart.
    pub fn of(columns: impl IntoIterator<Item = Column>) -> Frame {
        let columns: Vec<Column> = columns.into_iter().collect();
        let rows = columns.first().map_or(0, Column::len);
        let fields: Vec<FieldRef> = columns.iter().map(|column| Arc::clone(column.field())).collect();
        let values = columns.iter().map(|column| Arc::clone(column.values())).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), values, &options);
        Frame { batch: batch.expect("columns of one frame have one length"), keys: 0 }
    }

    /// This frame, whose first `keys` columns tell the rows apart.
    pub fn with_keys(self, keys: usize) -> Frame {
        Frame { keys, ..self }
    }

    /// The table.
    pub fn batch(&self) -> &RecordBatch {
        &self.batch
    }

    /// Number of the columns that tell rows apart.
    pub fn keys(&self) -> usize {
        self.keys
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.batch.num_rows()
    }

    /// The columns.
    pub fn columns(&self) -> impl ExactSizeIterator<Item = Column> {
        let fields = self.batch.schema_ref().fields().iter();
        fields.zip(self.batch.columns()).map(|(field, values)| Column::of(field, values))
    }

    /// The column of a name. A measure stands for its mean, or for its only statistic.
    pub fn column(&self, name: &str) -> Result<Column, Error> {
        let at = self.position(name)?;
        Ok(Column::of(&self.batch.schema_ref().fields()[at], self.batch.column(at)))
    }

    /// The position of a column. A measure stands for its mean, or for its only statistic.
    pub fn position(&self, name: &str) -> Result<usize, Error> {
        let fields = self.batch.schema_ref().fields();
        let tagged = |field: &Field, key: &str| field.metadata().get(key).cloned().unwrap_or_default();
        let exact = fields.iter().position(|field| field.name() == name);
        let mean = || fields.iter().position(|field| tagged(field, MEASURE) == name && tagged(field, STAT) == "mean");
        let only = || fields.iter().position(|field| tagged(field, MEASURE) == name);
        exact.or_else(mean).or_else(only).ok_or_else(|| {
            let names: Vec<&str> = fields.iter().map(|field| field.name().as_str()).collect();
            usage(format!("the result has no column `{name}`; it has {}", names.join(", ")))
        })
    }

    /// The rows in the order of a column; rows without a value are the last. Equal rows keep their order.
    pub fn sorted(&self, name: &str, descending: bool) -> Result<Frame, Error> {
        let column = self.column(name)?;
        let cells: Vec<Cell> = (0..self.rows()).map(|row| column.cell(row)).collect();
        let mut rows: Vec<usize> = (0..self.rows()).collect();
        rows.sort_by(|one, other| {
            let (one, other) = (&cells[*one], &cells[*other]);
            match one.is_null().cmp(&other.is_null()) {
                Ordering::Equal if descending => other.order(one),
                Ordering::Equal => one.order(other),
                nulls => nulls,
            }
        });
        Ok(self.picked(&rows))
    }

    /// The rows that satisfy a test of their position.
    pub fn kept(&self, keep: impl Fn(usize) -> bool) -> Frame {
        self.picked(&(0..self.rows()).filter(|row| keep(*row)).collect::<Vec<_>>())
    }

    /// These rows, in this order.
    pub fn picked(&self, rows: &[usize]) -> Frame {
        let rows: UInt32Array = rows.iter().map(|row| Some(*row as u32)).collect();
        let columns = self.columns().map(|column| Column::of(column.field(), &taken(column.values(), &rows)));
        Frame::of(columns).with_keys(self.keys)
    }

    /// The rows of each value of a column, in the order of its levels; all rows under "" without a column.
    pub fn groups(&self, name: Option<&str>) -> Result<Vec<(String, Vec<usize>)>, Error> {
        match name {
            None => Ok(vec![(String::new(), (0..self.rows()).collect())]),
            Some(name) => Ok(self.column(name)?.groups()),
        }
    }

    /// Adds a column, or puts it in the place of the column of its name.
    pub fn push(&mut self, column: Column) {
        let mut columns: Vec<Column> = self.columns().collect();
        match columns.iter_mut().find(|known| known.name() == column.name()) {
            Some(known) => *known = column,
            None => columns.push(column),
        }
        *self = Frame::of(columns).with_keys(self.keys);
    }

    /// Adds the rows of another frame. A column that this one lacks is left out; a column that the other one lacks, or has
    /// of another type, has no values in these rows.
    pub fn append(&mut self, other: &Frame) {
        let joined = self.columns().map(|column| {
            let is_same = |of: &Column| of.field().data_type() == column.field().data_type();
            let found = other.column(column.name()).ok().filter(is_same);
            let more = found.unwrap_or_else(|| column.without_values(other.rows()));
            let values = concat(&[column.values().as_ref(), more.values().as_ref()]);
            Column::of(column.field(), &values.expect("values of one type"))
        });
        *self = Frame::of(joined).with_keys(self.keys);
    }

    /// Keeps only these columns, in this order.
    pub fn keep(&mut self, names: &[&str]) {
        let mut kept: Vec<Column> = Vec::new();
        for name in names {
            let is_new = kept.iter().all(|column| column.name() != *name);
            kept.extend(self.columns().filter(|column| column.name() == *name && is_new));
        }
        *self = Frame::of(kept);
    }

    /// At most this number of rows, after the first `skip` ones.
    pub fn part(&self, skip: usize, most: usize) -> Frame {
        let begin = skip.min(self.rows());
        Frame { batch: self.batch.slice(begin, most.min(self.rows() - begin)), keys: self.keys }
    }

    /// The values of a key become columns: one for each value and statistic, in the order in which the values come.
    pub fn pivoted(&self, name: &str) -> Result<Frame, Error> {
        let at = self.position(name)?;
        if at >= self.keys {
            return Err(usage(format!("`{name}` cannot become columns: only a column by which rows are grouped can")));
        }
        let keys: Vec<usize> = (0..self.keys).filter(|key| *key != at).collect();
        let key = |row: usize| keys.iter().map(|key| Cell::of(self.batch.column(*key), row)).collect::<Vec<_>>();
        let (mut values, mut rows): (Vec<Cell>, Vec<(usize, Vec<Cell>)>) = (Vec::new(), Vec::new());
        // For each new row and value, the old row.
        let mut places: Vec<Vec<Option<usize>>> = Vec::new();
        for row in 0..self.rows() {
            let (value, own) = (Cell::of(self.batch.column(at), row), key(row));
            let value_at = position(&mut values, |known| *known == value, || value.clone());
            let row_at = position(&mut rows, |known| known.1 == own, || (row, own.clone()));
            places.resize_with(rows.len(), Vec::new);
            let place = &mut places[row_at];
            place.resize(values.len().max(place.len()), None);
            place[value_at] = Some(row);
        }
        let firsts: UInt32Array = rows.iter().map(|(row, _)| Some(*row as u32)).collect();
        let fields = self.batch.schema_ref().fields();
        let of_key = |key: &usize| Column::of(&fields[*key], &taken(self.batch.column(*key), &firsts));
        let mut columns: Vec<Column> = keys.iter().map(of_key).collect();
        for statistic in self.groups_of_statistics() {
            for (value_at, value) in values.iter().enumerate() {
                let of = places.iter().map(|place| place.get(value_at).copied().flatten().map(|row| row as u32));
                let of: UInt32Array = of.collect();
                for column in statistic.clone() {
                    let field = Arc::new(pivoted_field(&fields[column], name, value));
                    columns.push(Column::of(&field, &taken(self.batch.column(column), &of)));
                }
            }
        }
        Ok(Frame::of(columns).with_keys(keys.len()))
    }

    /// The statistics that are shown together: a mean and its interval, or one alone.
    fn groups_of_statistics(&self) -> Vec<std::ops::Range<usize>> {
        let fields = self.batch.schema_ref().fields();
        let mut groups: Vec<std::ops::Range<usize>> = Vec::new();
        for at in self.keys..fields.len() {
            match groups.last_mut() {
                Some(last) if is_interval_of(&fields[at], &fields[last.start]) => last.end = at + 1,
                _ => groups.push(at..at + 1),
            }
        }
        groups
    }
}

/// Whether a column has the half widths, or one end, of intervals around the means of another one.
pub(crate) fn is_interval_of(field: &Field, of: &Field) -> bool {
    let tag = |field: &Field, key: &str| field.metadata().get(key).cloned().unwrap_or_default();
    let is_end = |stat: String| stat.starts_with("low") || stat.starts_with("high");
    let is_same = |key: &str| tag(field, key) == tag(of, key);
    let is_end_of = || is_end(tag(field, STAT)) && tag(of, STAT) == "mean" && is_same(MEASURE) && is_same(PIVOT);
    field.metadata().get(HALF_WIDTH_OF).is_some_and(|name| name == of.name()) || is_end_of()
}

/// The values at these rows; null where there is no row.
fn taken(values: &dyn Array, rows: &UInt32Array) -> ArrayRef {
    take(values, rows, None).expect("rows of this frame")
}

/// The position of a value, which is added if it is new.
fn position<T>(known: &mut Vec<T>, is: impl Fn(&T) -> bool, new: impl FnOnce() -> T) -> usize {
    known.iter().position(is).unwrap_or_else(|| {
        known.push(new());
        known.len() - 1
    })
}

fn pivoted_field(field: &Field, pivot: &str, value: &Cell) -> Field {
    let value = value.exact();
    let named = |name: &str| format!("{name} [{pivot}={value}]");
    let mut metadata = field.metadata().clone();
    metadata.insert(PIVOT.to_owned(), value.clone());
    if let Some(of) = field.metadata().get(HALF_WIDTH_OF) {
        metadata.insert(HALF_WIDTH_OF.to_owned(), named(of));
    }
    Field::new(named(field.name()), field.data_type().clone(), true).with_metadata(metadata)
}
