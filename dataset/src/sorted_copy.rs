//! One file with all rows of a table, sorted by task.
//!
//! Rows are copied in buckets of neighbouring task indices; each bucket becomes a row group. Of a bucket, the keys are in
//! memory, and on each thread a few columns at a time: memory grows neither with the table nor with its columns. Parts
//! are nearly in the order of tasks, so that most row groups are read for one or two buckets. The parts of a bucket are read
//! whole, and are in memory until the next bucket needs them no more, as far as they are small enough together.

mod runs;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::ops::RangeInclusive;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringArray, new_null_array};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use futures::{StreamExt, TryStreamExt, stream};
use parquet::arrow::arrow_reader::{RowGroupSelection, RowSelection};
use powersweep_results::part::{self, ColumnEncoder, EncodedColumn, Group};

use self::runs::{Run, assembled, pieces, runs};
use crate::reading::{ColumnStats, Part};
use crate::{Cell, Error, Kind, OrKind, failure};

/// Columns of a bucket that one thread has in memory.
const COLUMNS_EACH: usize = 8;
/// Maximum number of threads that copy columns.
const THREADS_MAX: usize = 4;
/// Maximum number of task indices in the sample that determines the borders of buckets.
const SAMPLE_MAX: usize = 1 << 20;
/// Bytes of the parts that are in memory as a whole.
const HELD_BYTES: u64 = 128 << 20;
/// Parts that are read at the same time.
const READS: usize = 4;
/// Rows of a batch of the survey.
const SURVEY_ROWS: usize = 8_192;
/// Bytes of texts and lists for which a row counts as one more in a bucket: a bucket of long rows has few of them.
const WEIGHT_BYTES: u64 = 2 << 10;
/// Bytes of the texts and lists of a column that are written at once.
const WRITTEN_BYTES: u64 = 64 << 20;
/// Rows from which on a part tells which columns need no dictionary.
const TELLING_ROWS: usize = 100;

const INDEX: &str = "task_index";
const ID: &str = "task_id";

/// Where a column of the copy comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The table's column of this name.
    Own(String),
    /// The column of this name of the row's task in `tasks`.
    Task(String),
}

impl Origin {
    fn name(&self) -> &str {
        match self {
            Origin::Own(name) | Origin::Task(name) => name,
        }
    }

    fn is_own(&self) -> bool {
        matches!(self, Origin::Own(_))
    }
}

/// The copy of one table.
pub struct SortedCopy {
    /// The parts of the table.
    pub rows: Vec<Part>,
    /// The parts of `tasks`, where a column comes from there.
    pub tasks: Vec<Part>,
    /// The columns of the copy.
    pub schema: SchemaRef,
    /// Where they come from.
    pub origins: Vec<Origin>,
    /// Rows of a bucket, about.
    pub bucket_rows: usize,
    /// Whether the row of `tasks` may have another index. The task of a failure under an earlier manifest may have, and
    /// no other.
    pub elsewhere: bool,
}

/// The rows of a bucket.
struct Bucket {
    rows: Picked,
    tasks: Picked,
}

/// Rows in an order.
#[derive(Default)]
struct Picked {
    /// The row groups that they are in.
    from: Vec<Picks>,
    runs: Vec<Run>,
}

/// Rows of one row group, ascending.
struct Picks {
    part: usize,
    group: usize,
    /// `None`: all of them.
    rows: Option<RowSelection>,
    count: usize,
}

/// The keys of a bucket's rows, in the order of the copy.
struct Keys {
    from: Vec<Picks>,
    /// The identities of all rows of each row group.
    ids: Vec<StringArray>,
    order: Vec<Key>,
}

#[derive(Clone, Copy)]
struct Key {
    index: i64,
    from: usize,
    /// Number of the row in its row group, and among the picked ones.
    row: usize,
    position: usize,
}

impl Keys {
    fn id(&self, key: &Key) -> &str {
        self.ids[key.from].value(key.row)
    }
}

impl SortedCopy {
    /// Writes the rows with their origin, sorted by task index and identity; rows of one task keep their order. Returns their number.
    pub async fn write<W: Write + Send>(self, experiment: &str, out: W) -> Result<(u64, W), Error> {
        let distinct = self.distinct();
        let origin = part::Origin::merged(self.rows.iter().map(Part::origin));
        let (mut file, encoder) =
            part::export_groups(&self.schema, experiment, &origin, distinct, out).or_kind(Kind::Storage)?;
        let (rows, buckets) = self.survey().await?;
        let copy = Arc::new(self);
        for indices in buckets {
            copy.hold(&indices).await?;
            let keys = copy.keys(&indices).await?;
            if keys.order.is_empty() {
                continue;
            }
            let count = keys.order.len() as u64;
            let tasks = copy.tasks_of(&keys, &indices).await?;
            let bucket = Arc::new(Bucket { rows: in_order(keys), tasks });
            let shares = copy.shares(encoder.columns().or_kind(Kind::Storage)?);
            let encode = |(first, share)| {
                let (copy, bucket) = (Arc::clone(&copy), Arc::clone(&bucket));
                tokio::spawn(async move { copy.encode(&bucket, first, share).await })
            };
            let encoded =
                stream::iter(shares).map(encode).buffered(threads()).map(|ended| ended.or_kind(Kind::Failure)?);
            let columns: Vec<Vec<EncodedColumn>> = encoded.try_collect().await?;
            let group = Group::new(columns.into_iter().flatten().collect(), count);
            file.append(group).or_kind(Kind::Storage)?;
        }
        Ok((rows, file.finish().or_kind(Kind::Storage)?))
    }

    /// Reads the parts with these indices as a whole, as far as they fit, and releases all others.
    async fn hold(&self, indices: &RangeInclusive<i64>) -> Result<(), Error> {
        let mut free = HELD_BYTES;
        let mut wanted = Vec::new();
        for part in self.rows.iter().chain(&self.tasks) {
            let has_some = (0..part.groups().len()).any(|group| part.overlaps(group, indices));
            match free.checked_sub(part.bytes()).filter(|_| has_some) {
                Some(left) => {
                    free = left;
                    wanted.push(part);
                }
                None => part.release(),
            }
        }
        stream::iter(wanted).map(Part::hold).buffer_unordered(READS).try_collect().await
    }

    /// Columns that have no dictionary in the largest part.
    fn distinct(&self) -> Vec<String> {
        let largest = self.rows.iter().filter(|part| !part.groups().is_empty()).max_by_key(|part| part.rows(0));
        let Some(part) = largest.filter(|part| part.rows(0) >= TELLING_ROWS) else { return Vec::new() };
        let has_none = |name: &str| part.chunk(name, 0).is_some_and(|chunk| chunk.dictionary_page_offset().is_none());
        let columns = self.schema.fields().iter().zip(&self.origins);
        let found = columns.filter(|(_, origin)| origin.is_own() && has_none(origin.name()));
        found.map(|(field, _)| field.name().clone()).collect()
    }

    /// Number of rows, and the task indices of each bucket.
    async fn survey(&self) -> Result<(u64, Vec<RangeInclusive<i64>>), Error> {
        let (mut rows, mut units, mut sample, mut step) = (0_u64, 0_u64, Vec::new(), 1_u64);
        for (part, group) in groups(&self.rows) {
            let part = &self.rows[part];
            let weight = self.weight(part, group);
            let look = |batch: arrow::array::RecordBatch| {
                for index in index_column(part, &batch)?.iter() {
                    rows += 1;
                    for _ in 0..weight {
                        if units % step == 0 {
                            sample.push(index.unwrap_or(i64::MAX));
                        }
                        units += 1;
                        if sample.len() == SAMPLE_MAX {
                            // Every second index stays: these are the ones at multiples of the doubled step.
                            sample = sample.iter().copied().step_by(2).collect();
                            step *= 2;
                        }
                    }
                }
                Ok(true)
            };
            part.each(&[INDEX], vec![RowGroupSelection::new(group, None)], SURVEY_ROWS, look).await?;
        }
        sample.sort_unstable();
        Ok((rows, ranges(&sample, units.div_ceil(self.bucket_rows as u64))))
    }

    /// How many rows of usual size a row of this row group counts for.
    fn weight(&self, part: &Part, group: usize) -> u64 {
        let own = self.origins.iter().filter(|origin| origin.is_own()).map(Origin::name);
        1 + part.text_bytes(own, group) / (part.rows(group) as u64).max(1) / WEIGHT_BYTES
    }

    /// The keys of the rows with these indices.
    async fn keys(&self, indices: &RangeInclusive<i64>) -> Result<Keys, Error> {
        let schema = keys_schema();
        let mut keys = Keys { from: Vec::new(), ids: Vec::new(), order: Vec::new() };
        for (part, group) in groups(&self.rows).filter(|at| self.rows[at.0].overlaps(at.1, indices)) {
            let batch = self.rows[part].batch(&schema, RowGroupSelection::new(group, None)).await?;
            let (all, from) = (index_column(&self.rows[part], &batch)?, keys.from.len());
            let is_picked = |row: &usize| indices.contains(&index_at(all, *row));
            let rows: Vec<usize> = (0..batch.num_rows()).filter(is_picked).collect();
            if rows.is_empty() {
                continue;
            }
            let key = |(position, row): (usize, &usize)| Key { index: index_at(all, *row), from, row: *row, position };
            keys.order.extend(rows.iter().enumerate().map(key));
            keys.from.push(picks(part, group, &rows, batch.num_rows()));
            keys.ids.push(batch.column(1).as_string().clone());
        }
        let mut order = std::mem::take(&mut keys.order);
        // The sort is stable, so that the jobs of a task keep their order.
        order.sort_by(|a, b| a.index.cmp(&b.index).then_with(|| keys.id(a).cmp(keys.id(b))));
        Ok(Keys { order, ..keys })
    }

    /// The rows of `tasks` of these rows, in their order.
    async fn tasks_of(&self, keys: &Keys, indices: &RangeInclusive<i64>) -> Result<Picked, Error> {
        if self.tasks.is_empty() {
            // All tasks failed, or no column comes from `tasks`.
            return Ok(Picked { from: Vec::new(), runs: vec![Run { from: None, begin: 0, rows: keys.order.len() }] });
        }
        let mut missing: HashSet<&str> = keys.order.iter().map(|key| keys.id(key)).collect();
        let mut found: HashMap<&str, (usize, usize)> = HashMap::new();
        let mut from = Vec::new();
        let (near, far): (Vec<_>, Vec<_>) =
            groups(&self.tasks).partition(|at| self.tasks[at.0].overlaps(at.1, indices));
        for (part, group) in near.into_iter().chain(far.into_iter().filter(|_| self.elsewhere)) {
            if missing.is_empty() {
                break;
            }
            let batch = self.tasks[part].batch(&keys_schema(), RowGroupSelection::new(group, None)).await?;
            let mut rows = Vec::new();
            for (row, id) in batch.column(1).as_string::<i32>().iter().enumerate() {
                if let Some(id) = id.and_then(|id| missing.take(id)) {
                    found.insert(id, (from.len(), rows.len()));
                    rows.push(row);
                }
            }
            if !rows.is_empty() {
                from.push(picks(part, group, &rows, batch.num_rows()));
            }
        }
        let place = |key: &Key| found.get(keys.id(key)).copied();
        Ok(Picked { from, runs: runs(keys.order.iter().map(place)) })
    }

    /// The encoders in shares of a few columns of one table, each with the number of its first column.
    fn shares(&self, encoders: Vec<ColumnEncoder>) -> Vec<(usize, Vec<ColumnEncoder>)> {
        let mut shares: Vec<(usize, Vec<ColumnEncoder>)> = Vec::new();
        for (at, encoder) in encoders.into_iter().enumerate() {
            let same_table = |first: usize| self.origins[first].is_own() == self.origins[at].is_own();
            match shares.last_mut() {
                Some((first, share)) if share.len() < COLUMNS_EACH && same_table(*first) => share.push(encoder),
                _ => shares.push((at, vec![encoder])),
            }
        }
        shares
    }

    /// Encodes some columns of a bucket, from number `first` on.
    async fn encode(
        &self,
        bucket: &Bucket,
        first: usize,
        encoders: Vec<ColumnEncoder>,
    ) -> Result<Vec<EncodedColumn>, Error> {
        let (parts, picked) = match &self.origins[first] {
            Origin::Own(_) => (&self.rows, &bucket.rows),
            Origin::Task(_) => (&self.tasks, &bucket.tasks),
        };
        let origins = &self.origins[first..first + encoders.len()];
        let named = |(encoder, origin): (&ColumnEncoder, &Origin)| {
            Field::new(origin.name(), encoder.field().data_type().clone(), true)
        };
        let fields: Vec<Field> = encoders.iter().zip(origins).map(named).collect();
        let mut read = Vec::with_capacity(picked.from.len());
        for picks in &picked.from {
            read.push(columns(&parts[picks.part], picks, &fields).await?);
        }
        let mut encoded = Vec::with_capacity(encoders.len());
        for (at, mut encoder) in encoders.into_iter().enumerate() {
            let arrays: Vec<ArrayRef> = read.iter().map(|columns| Arc::clone(&columns[at])).collect();
            for runs in pieces(&picked.runs, &arrays, WRITTEN_BYTES) {
                let values = assembled(encoder.field().data_type(), &arrays, &runs)?;
                encoder.write(&values).or_kind(Kind::Storage)?;
            }
            encoded.push(encoder.close().or_kind(Kind::Storage)?);
        }
        Ok(encoded)
    }
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX)
}

/// The row groups of parts, in their order.
fn groups(parts: &[Part]) -> impl Iterator<Item = (usize, usize)> + '_ {
    parts.iter().enumerate().flat_map(|(at, part)| (0..part.groups().len()).map(move |group| (at, group)))
}

fn keys_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new(INDEX, DataType::Int64, true), Field::new(ID, DataType::Utf8, true)]))
}

fn index_column<'a>(part: &Part, batch: &'a arrow::array::RecordBatch) -> Result<&'a arrow::array::Int64Array, Error> {
    let column = batch.column_by_name(INDEX).and_then(|column| column.as_primitive_opt::<Int64Type>());
    column.ok_or_else(|| failure!(Storage, "{} has no column `{INDEX}`", part.path()))
}

/// A row without an index comes last.
fn index_at(column: &arrow::array::Int64Array, row: usize) -> i64 {
    if column.is_null(row) { i64::MAX } else { column.value(row) }
}

/// Splits all indices into ranges with about the same number of sampled indices; `sample` is sorted.
fn ranges(sample: &[i64], buckets: u64) -> Vec<RangeInclusive<i64>> {
    let buckets = usize::try_from(buckets).unwrap_or(usize::MAX).clamp(1, sample.len().max(1));
    let mut begins: Vec<i64> = (1..buckets).map(|n| sample[n * sample.len() / buckets]).collect();
    begins.dedup();
    begins.retain(|begin| *begin > i64::MIN);
    let ends: Vec<i64> = begins.iter().map(|begin| begin - 1).chain([i64::MAX]).collect();
    std::iter::once(i64::MIN).chain(begins).zip(ends).map(|(begin, end)| begin..=end).collect()
}

impl Part {
    /// Whether a row group may have rows with these task indices.
    fn overlaps(&self, group: usize, indices: &RangeInclusive<i64>) -> bool {
        let number = |value: &Cell| match value {
            Cell::Int(value) => *value,
            _ => i64::MAX,
        };
        match self.stats(INDEX, group) {
            ColumnStats::Equal(value) => indices.contains(&number(&value)),
            ColumnStats::Between { nulls: true, .. } | ColumnStats::Unknown => true,
            ColumnStats::Between { least, greatest, .. } => {
                number(&least) <= *indices.end() && number(&greatest) >= *indices.start()
            }
        }
    }
}

/// These rows of a row group of `all` rows.
fn picks(part: usize, group: usize, rows: &[usize], all: usize) -> Picks {
    if rows.len() == all {
        return Picks { part, group, rows: None, count: all };
    }
    let ranges = rows.chunk_by(|a, b| a + 1 == *b).map(|run| run[0]..run[run.len() - 1] + 1);
    let some = RowSelection::from_consecutive_ranges(ranges, all);
    Picks { part, group, rows: Some(some), count: rows.len() }
}

/// The rows of a bucket in the order of their keys.
fn in_order(keys: Keys) -> Picked {
    let runs = runs(keys.order.iter().map(|key| Some((key.from, key.position))));
    Picked { from: keys.from, runs }
}

/// These columns of some rows of a part. Columns without a value are not read.
async fn columns(part: &Part, picks: &Picks, fields: &[Field]) -> Result<Vec<ArrayRef>, Error> {
    let is_read = |field: &&Field| part.stats(field.name(), picks.group) != ColumnStats::Equal(Cell::Null);
    let read: SchemaRef = Arc::new(Schema::new(fields.iter().filter(is_read).cloned().collect::<Vec<_>>()));
    let batch = match read.fields().is_empty() {
        true => None,
        false => Some(part.batch(&read, RowGroupSelection::new(picks.group, picks.rows.clone())).await?),
    };
    let column = |field: &Field| match batch.as_ref().and_then(|batch| batch.column_by_name(field.name())) {
        Some(column) => Arc::clone(column),
        None => new_null_array(field.data_type(), picks.count),
    };
    Ok(fields.iter().map(column).collect())
}
