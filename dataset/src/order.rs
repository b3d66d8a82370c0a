//! Some rows of `tasks`, in the order of a column, of those that have given values.
//!
//! Row groups are read in the order of the best value that their statistics allow. Reading ends where no other row group
//! can have a row that belongs to the wanted ones.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::interleave_record_batch;
use arrow::datatypes::{DataType, Int64Type, SchemaRef};
use parquet::arrow::arrow_reader::{RowGroupSelection, RowSelection};
use powersweep_results::Table;

use crate::reading::ColumnStats;
use crate::scan::{self, INDEX, RowGroup, whole};
use crate::source;
use crate::{Cell, Condition, Error, Kind, OrKind, failure};

/// Which rows are wanted, and in which order.
#[derive(Debug, Clone, PartialEq)]
pub struct Order {
    column: String,
    descending: bool,
    only: Vec<Condition>,
}

impl Default for Order {
    fn default() -> Order {
        Order { column: INDEX.to_owned(), descending: false, only: Vec::new() }
    }
}

impl Order {
    /// The order of a column of `tasks`, of rows that satisfy all conditions. Without a column: by task index.
    pub fn new(column: Option<&str>, descending: bool, only: &[String]) -> Result<Order, Error> {
        let column = column.unwrap_or(INDEX).to_owned();
        if matches!(type_of(&column)?, DataType::List(_)) {
            return Err(failure!(Usage, "`{column}` has lists, which have no order; sort by a number or a text"));
        }
        let only = only.iter().map(|text| Condition::parse(text, type_of)).collect::<Result<_, Error>>()?;
        Ok(Order { column, descending, only })
    }

    /// Which of two rows comes first. Rows without a value come last.
    fn compare(&self, one: &Cell, other: &Cell) -> Ordering {
        match self.descending && !one.is_null() && !other.is_null() {
            true => other.order(one),
            false => one.order(other),
        }
    }

    fn compare_places(&self, one: &Place, other: &Place) -> Ordering {
        let ties = |place: &Place| (place.index, place.group, place.row);
        self.compare(&one.key, &other.key).then_with(|| ties(one).cmp(&ties(other)))
    }

    /// The first value that a row of a group may have; `None` if it is not known.
    fn best(&self, group: RowGroup<'_>, of: &DataType) -> Option<Cell> {
        match group.stats(&self.column) {
            ColumnStats::Equal(value) => typed(value, of),
            ColumnStats::Between { greatest, .. } if self.descending => typed(greatest, of),
            ColumnStats::Between { least, .. } => typed(least, of),
            ColumnStats::Unknown => None,
        }
    }

    /// The columns that decide about a row.
    fn schema(&self) -> SchemaRef {
        let names = [INDEX, &self.column].into_iter().chain(self.only.iter().map(|only| only.column.as_str()));
        scan::columns(names.collect::<BTreeSet<_>>())
    }

    /// All columns that [`first`] needs of unpublished rows.
    pub fn needs(&self) -> impl Iterator<Item = &str> {
        [INDEX, &self.column].into_iter().chain(self.only.iter().map(|only| only.column.as_str()))
    }
}

/// The type of a column of `tasks`.
fn type_of(name: &str) -> Result<DataType, Error> {
    source::type_of(Table::Tasks, name)
}

/// What the statistics of a group tell: whether all its rows satisfy a condition, or none; `None` if only the rows tell.
fn of_all(condition: &Condition, group: RowGroup<'_>) -> Option<bool> {
    let of = type_of(&condition.column).ok()?;
    match group.stats(&condition.column) {
        ColumnStats::Equal(value) => Some(condition.holds(&typed(value, &of)?)),
        ColumnStats::Between { least, greatest, .. } => {
            condition.holds_between(&typed(least, &of)?, &typed(greatest, &of)?)
        }
        ColumnStats::Unknown => None,
    }
}

/// The value that statistics tell; `None` if it does not have the column's type.
fn typed(value: Cell, of: &DataType) -> Option<Cell> {
    let fits = match value {
        Cell::Null => true,
        Cell::Bool(_) => *of == DataType::Boolean,
        Cell::Int(_) => *of == DataType::Int64,
        Cell::Real(_) => *of == DataType::Float64,
        Cell::Text(_) => *of == DataType::Utf8,
        Cell::Instant(_) => matches!(of, DataType::Timestamp(..)),
        Cell::List(_) => matches!(of, DataType::List(_)),
    };
    fits.then_some(value)
}

/// A row, by its place.
#[derive(Debug, Clone)]
pub struct Place {
    key: Cell,
    index: i64,
    group: usize,
    row: usize,
}

/// The first rows of an order.
#[derive(Debug, Default)]
pub struct TopRows {
    /// At most the wanted number.
    pub places: Vec<Place>,
    /// Number of all rows that satisfy the conditions.
    pub count: usize,
}

/// Finds the first rows.
pub async fn first(groups: &[RowGroup<'_>], order: &Order, most: usize) -> Result<TopRows, Error> {
    let of = type_of(&order.column)?;
    let mut sequence: Vec<(Option<Cell>, usize)> =
        groups.iter().enumerate().map(|(at, group)| (order.best(*group, &of), at)).collect();
    // Groups whose values are not known are read first.
    sequence.sort_by(|(one, _), (other, _)| match (one, other) {
        (Some(one), Some(other)) => order.compare(one, other),
        _ => one.is_some().cmp(&other.is_some()),
    });
    let mut first = TopRows::default();
    for (best, at) in sequence {
        let group = groups[at];
        let known: Vec<Option<bool>> = order.only.iter().map(|only| of_all(only, group)).collect();
        if known.contains(&Some(false)) {
            continue;
        }
        let later = |last: &Place| best.as_ref().is_some_and(|best| order.compare(best, &last.key).is_gt());
        let is_full = first.places.len() == most && first.places.last().is_none_or(later);
        if is_full && !known.contains(&None) {
            first.count += group.rows();
            continue;
        }
        first.read(group, at, order, most).await?;
    }
    first.sort(order);
    Ok(first)
}

impl TopRows {
    fn sort(&mut self, order: &Order) {
        self.places.sort_unstable_by(|one, other| order.compare_places(one, other));
    }

    async fn read(&mut self, group: RowGroup<'_>, at: usize, order: &Order, most: usize) -> Result<(), Error> {
        let mut before = 0;
        let each = |batch: &RecordBatch| {
            self.take(batch, at, before, order, most);
            before += batch.num_rows();
            if self.places.len() >= most {
                self.sort(order);
                self.places.truncate(most);
            }
            true
        };
        group.each(&order.schema(), whole, each).await
    }

    /// Adds the rows of a batch that may be among the first. `before`: rows of the group before the batch.
    fn take(&mut self, batch: &RecordBatch, group: usize, before: usize, order: &Order, most: usize) {
        let last = self.places.last().filter(|_| self.places.len() == most).cloned();
        let column = |name: &str| batch.column_by_name(name).expect("the order's columns are read");
        let (keys, indices) = (column(&order.column), column(INDEX).as_primitive::<Int64Type>());
        let only: Vec<_> = order.only.iter().map(|only| (column(&only.column), only)).collect();
        for row in 0..batch.num_rows() {
            if only.iter().all(|(column, only)| only.holds(&Cell::of(column, row))) {
                let index = if indices.is_valid(row) { indices.value(row) } else { i64::MAX };
                self.count += 1;
                let place = Place { key: Cell::of(keys, row), index, group, row: before + row };
                if last.as_ref().is_none_or(|last| order.compare_places(&place, last).is_lt()) {
                    self.places.push(place);
                }
            }
        }
    }
}

/// These columns of these rows, in the order of the places.
pub async fn rows_at(groups: &[RowGroup<'_>], places: &[Place], schema: &SchemaRef) -> Result<RecordBatch, Error> {
    let mut by_group: BTreeMap<usize, BTreeMap<usize, usize>> = BTreeMap::new();
    for (at, place) in places.iter().enumerate() {
        by_group.entry(place.group).or_default().insert(place.row, at);
    }
    let mut pieces = Vec::new();
    // For each place, its piece and its row there.
    let mut found = vec![(0, 0); places.len()];
    for (at, wanted) in by_group {
        let group = groups[at];
        let some = RowSelection::from_consecutive_ranges(wanted.keys().map(|row| *row..row + 1), group.rows());
        // All unpublished rows of a hand-in are in the one batch; of a part, only the wanted rows come.
        let is_whole = matches!(group, RowGroup::Unpublished(_));
        let mut targets = wanted.iter();
        let take = |batch: &RecordBatch| {
            let most = if is_whole { wanted.len() } else { batch.num_rows() };
            for (came, (row, target)) in targets.by_ref().take(most).enumerate() {
                found[*target] = (pieces.len(), if is_whole { *row } else { came });
            }
            pieces.push(batch.clone());
            true
        };
        group.each(schema, |group| RowGroupSelection::new(group, Some(some)), take).await?;
    }
    if pieces.is_empty() {
        return Ok(RecordBatch::new_empty(schema.clone()));
    }
    interleave_record_batch(&pieces.iter().collect::<Vec<_>>(), &found).or_kind(Kind::Storage)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(column: &str, descending: bool) -> Order {
        Order::new(Some(column), descending, &[]).map_err(|failure| failure.message).expect("a column")
    }

    #[test]
    fn rows_without_a_value_come_last_in_both_directions() {
        for descending in [false, true] {
            let order = order("wait_s_mean", descending);
            let mut keys = [Cell::Null, Cell::Real(2.0), Cell::Real(-1.0), Cell::Real(f64::INFINITY)];
            keys.sort_by(|one, other| order.compare(one, other));
            assert_eq!(keys[3], Cell::Null);
            assert_eq!(keys[0], if descending { Cell::Real(f64::INFINITY) } else { Cell::Real(-1.0) });
        }
    }

    #[test]
    fn conditions_name_columns_of_tasks() {
        let parse = |text: &str| Condition::parse(text, type_of).map_err(|failure: Error| failure.message);
        assert_eq!(parse("bsld_threshold>=2").map(|condition| condition.value), Ok(Cell::Real(2.0)));
        assert_eq!(parse("gears_ghz=[1,2.5]").map(|condition| condition.value), Ok(Cell::List(vec![1.0, 2.5])));
        for (text, says) in
            [("seed=x", "a whole number"), ("polizy=a", "did you mean `policy`"), ("policy", "COLUMN=VALUE")]
        {
            assert!(parse(text).is_err_and(|message| message.contains(says)), "{text}");
        }
        assert!(Order::new(Some("gears_ghz"), false, &[]).is_err());
    }
}
