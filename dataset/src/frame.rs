//! A small table of results: keys, then statistics.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::{Field, FieldRef, Schema};

use crate::Cell;
use crate::error::{Error, usage};

/// Key of a unit in the metadata of a field.
pub const UNIT: &str = "unit";
/// Key of the measure of a statistic.
pub const MEASURE: &str = "measure";
/// Key of the name of a statistic.
pub const STAT: &str = "statistic";
/// Key of the column around whose values this one's are half the width of an interval.
pub const HALF_WIDTH_OF: &str = "half_width_of";
/// Key of the value of the pivoted column.
pub const PIVOT: &str = "pivot";

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

    /// The table.
    pub fn batch(&self) -> &RecordBatch {
        &self.batch
    }

    /// Number of the columns that tell rows apart.
    pub fn keys(&self) -> usize {
        self.keys
    }

    /// The position of a column. A measure stands for its mean, or for its only statistic.
    pub fn column(&self, name: &str) -> Result<usize, Error> {
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
        let column = self.batch.column(self.column(name)?);
        let cells: Vec<Cell> = (0..self.batch.num_rows()).map(|row| Cell::of(column, row)).collect();
        let mut rows: Vec<u32> = (0..self.batch.num_rows() as u32).collect();
        rows.sort_by(|one, other| {
            let (one, other) = (&cells[*one as usize], &cells[*other as usize]);
            match one.is_null().cmp(&other.is_null()) {
                Ordering::Equal if descending => other.order(one),
                Ordering::Equal => one.order(other),
                nulls => nulls,
            }
        });
        self.taken(&rows)
    }

    /// The rows that satisfy a test of their position.
    pub fn kept(&self, keep: impl Fn(usize) -> bool) -> Result<Frame, Error> {
        let rows: Vec<u32> = (0..self.batch.num_rows()).filter(|row| keep(*row)).map(|row| row as u32).collect();
        self.taken(&rows)
    }

    /// These rows, in this order.
    pub fn picked(&self, rows: &[usize]) -> Result<Frame, Error> {
        self.taken(&rows.iter().map(|row| *row as u32).collect::<Vec<_>>())
    }

    /// At most this number of rows, after the first `skip` ones.
    pub fn part(&self, skip: usize, most: usize) -> Frame {
        let begin = skip.min(self.batch.num_rows());
        Frame { batch: self.batch.slice(begin, most.min(self.batch.num_rows() - begin)), keys: self.keys }
    }

    fn taken(&self, rows: &[u32]) -> Result<Frame, Error> {
        let rows = UInt32Array::from(rows.to_vec());
        let columns: Result<Vec<ArrayRef>, _> =
            self.batch.columns().iter().map(|column| take(column, &rows, None)).collect();
        let batch = columns.and_then(|columns| RecordBatch::try_new(self.batch.schema(), columns));
        Ok(Frame { batch: batch.map_err(|error| usage(error.to_string()))?, keys: self.keys })
    }

    /// The values of a key become columns: one for each value and statistic, in the order in which the values come.
    pub fn pivoted(&self, name: &str) -> Result<Frame, Error> {
        let at = self.column(name)?;
        if at >= self.keys {
            return Err(usage(format!("`{name}` cannot become columns: only a column by which rows are grouped can")));
        }
        let keys: Vec<usize> = (0..self.keys).filter(|key| *key != at).collect();
        let key = |row: usize| keys.iter().map(|key| Cell::of(self.batch.column(*key), row)).collect::<Vec<_>>();
        let (mut values, mut rows): (Vec<Cell>, Vec<(usize, Vec<Cell>)>) = (Vec::new(), Vec::new());
        // For each new row and value, the old row.
        let mut places: Vec<Vec<Option<usize>>> = Vec::new();
        for row in 0..self.batch.num_rows() {
            let (value, own) = (Cell::of(self.batch.column(at), row), key(row));
            let value_at = position(&mut values, |known| *known == value, || value.clone());
            let row_at = position(&mut rows, |known| known.1 == own, || (row, own.clone()));
            places.resize_with(rows.len(), Vec::new);
            let place = &mut places[row_at];
            place.resize(values.len().max(place.len()), None);
            place[value_at] = Some(row);
        }
        let firsts: UInt32Array = rows.iter().map(|(row, _)| Some(*row as u32)).collect();
        let take_rows =
            |column: &ArrayRef, rows: &UInt32Array| take(column, rows, None).map_err(|e| usage(e.to_string()));
        let mut fields: Vec<FieldRef> = Vec::new();
        let mut columns: Vec<ArrayRef> = Vec::new();
        for key in keys.iter().copied() {
            fields.push(Arc::clone(&self.batch.schema_ref().fields()[key]));
            columns.push(take_rows(self.batch.column(key), &firsts)?);
        }
        for statistic in self.groups_of_statistics() {
            for (value_at, value) in values.iter().enumerate() {
                let of = places.iter().map(|place| place.get(value_at).copied().flatten().map(|row| row as u32));
                let of: UInt32Array = of.collect();
                for column in statistic.clone() {
                    fields.push(Arc::new(pivoted_field(&self.batch.schema_ref().fields()[column], name, value)));
                    columns.push(take_rows(self.batch.column(column), &of)?);
                }
            }
        }
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns);
        Ok(Frame { batch: batch.map_err(|error| usage(error.to_string()))?, keys: keys.len() })
    }

    /// The statistics that are shown together: a mean and its interval, or one alone.
    fn groups_of_statistics(&self) -> Vec<std::ops::Range<usize>> {
        let fields = self.batch.schema_ref().fields();
        let mut groups: Vec<std::ops::Range<usize>> = Vec::new();
        for at in self.keys..fields.len() {
            match groups.last_mut() {
                Some(last) if is_half_width(&fields[at], fields[last.start].name()) => last.end = at + 1,
                _ => groups.push(at..at + 1),
            }
        }
        groups
    }
}

/// Whether a column has the half widths of intervals around another one's values.
pub(crate) fn is_half_width(field: &Field, of: &str) -> bool {
    field.metadata().get(HALF_WIDTH_OF).is_some_and(|name| name == of)
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
