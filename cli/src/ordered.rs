//! Some rows of `tasks`, in the order of a column, of those that have given values.
//!
//! Row groups are read in the order of the best value that their statistics allow. Reading ends where no other row group
//! can have a row that belongs to the wanted ones.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::interleave_record_batch;
use arrow::datatypes::{DataType, Float64Type, Int64Type, SchemaRef, TimestampMicrosecondType};
use parquet::arrow::arrow_reader::{RowGroupSelection, RowSelection};
use powersweep_results::tasks;
use serde_json::{Value as Json, json};

use crate::exit::{Exit, Failure, OrExit, failure};
use crate::reading::Seen;
use crate::varying::{self, Group, whole};
use crate::{rows, screen};

/// Rows of equal value are in this order.
pub const INDEX: &str = "task_index";

/// Which rows are wanted, and in which order.
#[derive(Debug, Clone, PartialEq)]
pub struct Order {
    column: String,
    descending: bool,
    only: Vec<Only>,
}

/// Only rows with this value in this column.
#[derive(Debug, Clone, PartialEq)]
struct Only {
    column: String,
    value: Json,
}

impl Default for Order {
    fn default() -> Order {
        Order { column: INDEX.to_owned(), descending: false, only: Vec::new() }
    }
}

impl Order {
    /// The order of a column of `tasks`, of rows that satisfy all `COLUMN=VALUE`. Without a column: by task index.
    pub fn new(column: Option<&str>, descending: bool, only: &[String]) -> Result<Order, Failure> {
        let column = column.unwrap_or(INDEX).to_owned();
        if matches!(type_of(&column)?, DataType::List(_)) {
            return Err(failure!(Usage, "`{column}` has lists, which have no order; sort by a number or a text"));
        }
        let only = only.iter().map(|text| Only::parse(text)).collect::<Result<_, Failure>>()?;
        Ok(Order { column, descending, only })
    }

    /// Which of two rows comes first. Rows without a value come last.
    fn compare(&self, one: &Key, other: &Key) -> Ordering {
        match (one, other) {
            (Key::Absent, _) | (_, Key::Absent) => one.rank().cmp(&other.rank()),
            _ if self.descending => other.compare(one),
            _ => one.compare(other),
        }
    }

    fn compare_places(&self, one: &Place, other: &Place) -> Ordering {
        let ties = |place: &Place| (place.index, place.group, place.row);
        self.compare(&one.key, &other.key).then_with(|| ties(one).cmp(&ties(other)))
    }

    /// The first value that a row of a group may have; `None` if it is not known.
    fn best(&self, group: Group<'_>, of: &DataType) -> Option<Key> {
        match group.seen(&self.column) {
            Seen::Equal(value) => Key::of_json(&value, of),
            Seen::Between { greatest, .. } if self.descending => Key::of_json(&greatest, of),
            Seen::Between { least, .. } => Key::of_json(&least, of),
            Seen::Unknown => None,
        }
    }

    /// The columns that decide about a row.
    fn schema(&self) -> SchemaRef {
        let names = [INDEX, &self.column].into_iter().chain(self.only.iter().map(|only| only.column.as_str()));
        varying::columns(names.collect::<BTreeSet<_>>())
    }

    /// All columns that [`first`] needs of unpublished rows.
    pub fn needs(&self) -> impl Iterator<Item = &str> {
        [INDEX, &self.column].into_iter().chain(self.only.iter().map(|only| only.column.as_str()))
    }
}

/// The type of a column of `tasks`.
fn type_of(name: &str) -> Result<DataType, Failure> {
    let schema = tasks::schema();
    schema.column_with_name(name).map(|(_, field)| field.data_type().clone()).ok_or_else(|| {
        let known: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        let near = screen::nearest(name, &known);
        let hint = match near.is_empty() {
            true => "`powersweep columns tasks` lists them".to_owned(),
            false => format!("did you mean {}?", near.join(" or ")),
        };
        failure!(Usage, "tasks has no column `{name}`; {hint}")
    })
}

impl Only {
    fn parse(text: &str) -> Result<Only, Failure> {
        let Some((column, value)) = text.split_once('=') else {
            return Err(failure!(Usage, "`{text}` is no condition: write COLUMN=VALUE, such as policy=easy"));
        };
        let wrong = |wanted: &str| failure!(Usage, "`{text}`: a value of {column} is {wanted}");
        let value = match type_of(column)? {
            _ if value.is_empty() => Json::Null,
            DataType::Boolean => json!(value.parse::<bool>().map_err(|_| wrong("true or false"))?),
            DataType::Int64 => json!(value.parse::<i64>().map_err(|_| wrong("a whole number"))?),
            DataType::Float64 if value == "unlimited" => json!(value),
            DataType::Float64 => rows::real(value.parse().map_err(|_| wrong("a number or unlimited"))?),
            DataType::List(of) => list(value, of.data_type()).ok_or_else(|| wrong("a list such as [1,2]"))?,
            _ => json!(value),
        };
        Ok(Only { column: column.to_owned(), value })
    }

    /// What the statistics tell: whether all rows of a group have the value, or none; `None` if only the rows tell.
    fn of_all(&self, group: Group<'_>) -> Option<bool> {
        match group.seen(&self.column) {
            Seen::Equal(value) => Some(value == self.value),
            Seen::Between { least, greatest, .. } => {
                let (value, least, greatest) = (self.value.as_f64()?, least.as_f64()?, greatest.as_f64()?);
                (value < least || value > greatest).then_some(false)
            }
            Seen::Unknown => None,
        }
    }
}

/// A list of numbers, as [`rows::cell`] gives it.
fn list(text: &str, of: &DataType) -> Option<Json> {
    let items: Vec<f64> = serde_json::from_str(text).ok()?;
    let item = |item: f64| if *of == DataType::Int64 { json!(item as i64) } else { rows::real(item) };
    Some(items.into_iter().map(item).collect())
}

/// A value that has an order.
#[derive(Debug, Clone, PartialEq)]
enum Key {
    Int(i64),
    Real(f64),
    Text(String),
    Absent,
}

impl Key {
    fn of(column: &dyn Array, row: usize) -> Key {
        if column.is_null(row) {
            return Key::Absent;
        }
        match column.data_type() {
            DataType::Boolean => Key::Int(i64::from(column.as_boolean().value(row))),
            DataType::Int64 => Key::Int(column.as_primitive::<Int64Type>().value(row)),
            DataType::Float64 => Key::Real(column.as_primitive::<Float64Type>().value(row)),
            DataType::Timestamp(..) => Key::Int(column.as_primitive::<TimestampMicrosecondType>().value(row)),
            DataType::Utf8 => Key::Text(column.as_string::<i32>().value(row).to_owned()),
            _ => Key::Absent,
        }
    }

    /// The key of a value that statistics tell; `None` if the value does not have the column's type.
    fn of_json(value: &Json, of: &DataType) -> Option<Key> {
        match of {
            _ if value.is_null() => Some(Key::Absent),
            DataType::Boolean => value.as_bool().map(|value| Key::Int(value.into())),
            DataType::Float64 if value == "unlimited" => Some(Key::Real(f64::INFINITY)),
            DataType::Float64 => value.as_f64().map(Key::Real),
            DataType::Utf8 => value.as_str().map(|text| Key::Text(text.to_owned())),
            _ => value.as_i64().map(Key::Int),
        }
    }

    fn rank(&self) -> u8 {
        u8::from(*self == Key::Absent)
    }

    fn compare(&self, other: &Key) -> Ordering {
        match (self, other) {
            (Key::Int(one), Key::Int(other)) => one.cmp(other),
            // Both zeros are equal.
            (Key::Real(one), Key::Real(other)) => (one + 0.0).total_cmp(&(other + 0.0)),
            (Key::Text(one), Key::Text(other)) => one.cmp(other),
            _ => Ordering::Equal,
        }
    }
}

/// A row, by its place.
#[derive(Debug, Clone)]
pub struct Place {
    key: Key,
    index: i64,
    group: usize,
    row: usize,
}

/// The first rows of an order.
#[derive(Debug, Default)]
pub struct First {
    /// At most the wanted number.
    pub places: Vec<Place>,
    /// Number of all rows that satisfy the conditions.
    pub count: usize,
}

/// Finds the first rows.
pub async fn first(groups: &[Group<'_>], order: &Order, most: usize) -> Result<First, Failure> {
    let of = type_of(&order.column)?;
    let mut sequence: Vec<(Option<Key>, usize)> =
        groups.iter().enumerate().map(|(at, group)| (order.best(*group, &of), at)).collect();
    // Groups whose values are not known are read first.
    sequence.sort_by(|(one, _), (other, _)| match (one, other) {
        (Some(one), Some(other)) => order.compare(one, other),
        _ => one.is_some().cmp(&other.is_some()),
    });
    let mut first = First::default();
    for (best, at) in sequence {
        let group = groups[at];
        let known: Vec<Option<bool>> = order.only.iter().map(|only| only.of_all(group)).collect();
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
    Ok(first)
}

impl First {
    async fn read(&mut self, group: Group<'_>, at: usize, order: &Order, most: usize) -> Result<(), Failure> {
        let mut before = 0;
        let each = |batch: &RecordBatch| {
            self.take(batch, at, before, order, most);
            before += batch.num_rows();
            self.places.sort_unstable_by(|one, other| order.compare_places(one, other));
            self.places.truncate(most);
            true
        };
        group.each(&order.schema(), whole, each).await
    }

    /// Adds the rows of a batch that may be among the first. `before`: rows of the group before the batch.
    fn take(&mut self, batch: &RecordBatch, group: usize, before: usize, order: &Order, most: usize) {
        let last = self.places.last().filter(|_| self.places.len() == most).cloned();
        let column = |name: &str| batch.column_by_name(name).expect("the order's columns are read");
        let (keys, indices) = (column(&order.column), column(INDEX).as_primitive::<Int64Type>());
        let only: Vec<_> = order.only.iter().map(|only| (column(&only.column), &only.value)).collect();
        for row in 0..batch.num_rows() {
            if only.iter().all(|(column, value)| rows::cell(column, row) == **value) {
                let index = if indices.is_valid(row) { indices.value(row) } else { i64::MAX };
                self.count += 1;
                let place = Place { key: Key::of(keys, row), index, group, row: before + row };
                if last.as_ref().is_none_or(|last| order.compare_places(&place, last).is_lt()) {
                    self.places.push(place);
                }
            }
        }
    }
}

/// These columns of these rows, in the order of the places.
pub async fn rows_at(groups: &[Group<'_>], places: &[Place], schema: &SchemaRef) -> Result<RecordBatch, Failure> {
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
        let is_whole = matches!(group, Group::Unpublished(_));
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
    interleave_record_batch(&pieces.iter().collect::<Vec<_>>(), &found).or_exit(Exit::Storage)
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
            let mut keys = [Key::Absent, Key::Real(2.0), Key::Real(-1.0), Key::Real(f64::INFINITY)];
            keys.sort_by(|one, other| order.compare(one, other));
            assert_eq!(keys[3], Key::Absent);
            assert_eq!(keys[0], if descending { Key::Real(f64::INFINITY) } else { Key::Real(-1.0) });
        }
    }

    #[test]
    fn conditions_have_the_type_of_their_column() {
        let value = |text: &str| Only::parse(text).map(|only| only.value).map_err(|failure| failure.message);
        assert_eq!(value("policy=easy"), Ok(json!("easy")));
        assert_eq!(value("policy=a=b"), Ok(json!("a=b")));
        assert_eq!(value("seed=7"), Ok(json!(7)));
        assert_eq!(value("bsld_threshold=2"), Ok(json!(2.0)));
        assert_eq!(value("bsld_threshold="), Ok(Json::Null));
        assert_eq!(value("gears_ghz=[1,2.5]"), Ok(json!([1.0, 2.5])));
        let wrong = [("policy", "COLUMN=VALUE"), ("seed=x", "a whole number"), ("polizy=a", "did you mean `policy`")];
        for (text, says) in wrong.into_iter().chain([("gears_ghz=1", "a list")]) {
            assert!(value(text).is_err_and(|message| message.contains(says)), "{text}");
        }
        assert!(Order::new(Some("gears_ghz"), false, &[]).is_err());
    }
}
