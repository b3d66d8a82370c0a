//! One Parquet object of a table, read by ranges: the footer, then only the columns and rows that are asked for.

use std::collections::HashMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError, RwLock};

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use bytes::Bytes;
use object_store::path::Path;
use parquet::DecodeResult;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, RowGroupSelection, RowSelectionPolicy};
use parquet::arrow::push_decoder::ParquetPushDecoderBuilder;
use parquet::basic::{LogicalType, Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::{
    ColumnChunkMetaData, PageIndexPolicy, ParquetMetaData, ParquetMetaDataPushDecoder, RowGroupMetaData,
};
use parquet::file::statistics::Statistics;
use powersweep_results::part::{KEY_PART_ID, Origin};
use uuid::Uuid;

use super::newest::Newest;
use super::{fitted, unreadable};
use crate::scan::INDEX;
use crate::tables::Tables;
use crate::{Cell, Error, Kind, OrKind, failure};

/// Bytes at the end of an object that are fetched first: the footer of a small part fits, that of a large one is fetched in
/// two steps.
const FOOTER_BYTES: u64 = 1 << 17;

/// Bytes of the texts and lists of a batch, about: those of a row group that this version writes.
const BATCH_TEXT_BYTES: u64 = 128 << 20;

/// A Parquet object whose footer has been read.
pub struct Part {
    path: Path,
    /// Size of the object.
    bytes: u64,
    source: Source,
    /// The whole object, while it is held.
    whole: RwLock<Option<Bytes>>,
    footer: ArrowReaderMetadata,
    /// Number of each column in the footer's row groups.
    columns: HashMap<String, usize>,
    /// The manifest whose indices the rows are given; `None` for those that are stored.
    newest: Option<Arc<Newest>>,
}

/// Where the bytes of a part are.
enum Source {
    Stored(Arc<dyn Tables>),
    Held(Bytes),
}

/// The values of a column in some rows, as far as they are known without reading the column.
#[derive(Debug, Clone, PartialEq)]
pub enum ColumnStats {
    /// All rows have this value, which may be null.
    Equal(Cell),
    /// The smallest and the greatest value, which differ or occur beside nulls.
    Between {
        /// The smallest value.
        least: Cell,
        /// The greatest value.
        greatest: Cell,
        /// Whether some rows have no value.
        nulls: bool,
    },
    /// Only the column tells.
    Unknown,
}

impl Part {
    /// Reads the footer of a listed part of this size.
    pub async fn stored(tables: &Arc<dyn Tables>, path: &Path, bytes: u64) -> Result<Part, Error> {
        Part::read(path.clone(), Source::Stored(Arc::clone(tables)), bytes).await
    }

    /// Reads the footer of an object in memory; `path` names it in errors.
    pub async fn held(path: &Path, bytes: Bytes) -> Result<Part, Error> {
        let size = bytes.len() as u64;
        Part::read(path.clone(), Source::Held(bytes), size).await
    }

    async fn read(path: Path, source: Source, size: u64) -> Result<Part, Error> {
        let decoder = source.step(&path, || ParquetMetaDataPushDecoder::try_new(size))?;
        let mut decoder = decoder.with_page_index_policy(PageIndexPolicy::Skip);
        let end = size.saturating_sub(FOOTER_BYTES)..size;
        let mut wanted = vec![end];
        let footer = loop {
            let found = source.fetch(&path, &wanted).await?;
            let decode = || decoder.push_ranges(wanted, found).and_then(|()| decoder.try_decode());
            match source.step(&path, decode)? {
                DecodeResult::NeedsData(ranges) => wanted = ranges,
                DecodeResult::Data(footer) => break footer,
                DecodeResult::Finished => return Err(unreadable(&path, &std::fmt::Error)),
            }
        };
        let options = ArrowReaderOptions::default();
        let footer = source.step(&path, || ArrowReaderMetadata::try_new(Arc::new(footer), options))?;
        let leaves = footer.parquet_schema().columns().iter().enumerate();
        let columns = leaves.map(|(at, leaf)| (leaf.path().parts()[0].clone(), at)).collect();
        Ok(Part { path, bytes: size, source, whole: RwLock::default(), footer, columns, newest: None })
    }

    /// This part with the indices that its tasks have under the newest manifest.
    pub(super) fn indexed_by(self, newest: Option<&Arc<Newest>>) -> Part {
        let newest = newest.filter(|newest| newest.is_after(&self.origin())).cloned();
        Part { newest, ..self }
    }

    /// Size of the object.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reads the whole object at once, for many reads of its columns until it is released: a store that is far away answers
    /// one large request much sooner than many small ones.
    pub(crate) async fn hold(&self) -> Result<(), Error> {
        if self.whole().is_none() {
            let all = 0..self.bytes;
            let whole = self.source.fetch(&self.path, std::slice::from_ref(&all)).await?.pop();
            *self.whole.write().unwrap_or_else(PoisonError::into_inner) = whole;
        }
        Ok(())
    }

    /// Ends [`Part::hold`].
    pub(crate) fn release(&self) {
        *self.whole.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn whole(&self) -> Option<Bytes> {
        self.whole.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn fetch(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>, Error> {
        match self.whole() {
            Some(whole) => slices(&self.path, &whole, ranges),
            None => self.source.fetch(&self.path, ranges).await,
        }
    }

    /// The name of the object.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The columns.
    pub fn schema(&self) -> &SchemaRef {
        self.footer.schema()
    }

    /// The manifest under which the part was made, if the footer has it.
    pub fn manifest(&self) -> Option<String> {
        Some(self.origin().manifest).filter(|manifest| !manifest.is_empty())
    }

    /// The manifest whose indices the rows have; `None` if it is not known.
    pub fn manifest_of_indices(&self) -> Option<String> {
        let newest = self.newest.as_ref().filter(|newest| newest.moved(&self.origin()).is_some());
        newest.map_or_else(|| self.manifest(), |newest| Some(newest.text().to_owned()))
    }

    /// What the rows come from, as far as the footer says.
    pub fn origin(&self) -> Origin {
        let pairs = self.metadata().file_metadata().key_value_metadata();
        Origin::of(|key| pairs?.iter().find(|pair| pair.key == key)?.value.clone())
    }

    /// The id of the part, if the footer has one.
    pub fn id(&self) -> Option<Uuid> {
        let pairs = self.metadata().file_metadata().key_value_metadata();
        pairs?.iter().find(|pair| pair.key == KEY_PART_ID)?.value.as_deref()?.parse().ok()
    }

    fn metadata(&self) -> &ParquetMetaData {
        self.footer.metadata()
    }

    /// The row groups.
    pub fn groups(&self) -> &[RowGroupMetaData] {
        self.metadata().row_groups()
    }

    /// Number of rows of a row group.
    pub fn rows(&self, group: usize) -> usize {
        usize::try_from(self.groups()[group].num_rows()).unwrap_or(0)
    }

    /// The footer's entry of a column in a row group; `None` if the part lacks the column.
    pub fn chunk(&self, name: &str, group: usize) -> Option<&ColumnChunkMetaData> {
        Some(self.groups()[group].column(*self.columns.get(name)?))
    }

    /// What the footer tells of a column in a row group. A column that the part lacks is null.
    pub fn stats(&self, name: &str, group: usize) -> ColumnStats {
        match self.chunk(name, group) {
            Some(_) if name == INDEX && self.newest.is_some() => ColumnStats::Unknown,
            Some(chunk) => stats(chunk, self.groups()[group].num_rows()),
            None => ColumnStats::Equal(Cell::Null),
        }
    }

    /// Bytes of the texts and lists of these columns in a row group, as far as the footer tells.
    pub(crate) fn text_bytes<'a>(&self, names: impl IntoIterator<Item = &'a str>, group: usize) -> u64 {
        names.into_iter().filter_map(|name| self.chunk(name, group)).map(text_bytes).sum()
    }

    /// Number of rows of a batch of these columns, at most `rows`, whose texts and lists take little memory.
    fn rows_at_once(&self, names: &[&str], from: &[RowGroupSelection], rows: usize) -> usize {
        let fits = |group: usize| {
            let each = self.text_bytes(names.iter().copied(), group) / (self.rows(group) as u64).max(1);
            usize::try_from(BATCH_TEXT_BYTES / each.max(1)).unwrap_or(usize::MAX)
        };
        let least = from.iter().map(|one| fits(one.row_group_index())).min();
        rows.min(least.unwrap_or(usize::MAX)).max(1)
    }

    /// Calls `each` with batches of these columns until `each` returns false; false is returned then. Columns that the
    /// part lacks are missing in the batches. Tasks have the indices of the newest manifest.
    pub async fn each(
        &self,
        names: &[&str],
        from: Vec<RowGroupSelection>,
        batch_rows: usize,
        mut each: impl FnMut(RecordBatch) -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        let newest = self.newest.as_ref().filter(|_| names.contains(&INDEX));
        let moved = newest.and_then(|newest| newest.moved(&self.origin()));
        let known = names.iter().filter(|name| self.columns.contains_key(**name));
        let mask = ProjectionMask::columns(self.footer.parquet_schema(), known.copied());
        let batch_rows = self.rows_at_once(names, &from, batch_rows);
        let groups: Vec<usize> = from.iter().map(RowGroupSelection::row_group_index).collect();
        let builder = ParquetPushDecoderBuilder::new_with_metadata(self.footer.clone())
            .with_projection(mask)
            .with_row_group_selections(from)
            .with_batch_size(batch_rows)
            // A mask would need the filters of `arrow-select`, which this workspace compiles without optimisation.
            .with_row_selection_policy(RowSelectionPolicy::Selectors);
        let mut decoder = self.source.step(&self.path, || builder.build())?;
        let mut bytes = 0;
        let whole = loop {
            match self.source.step(&self.path, || decoder.try_decode())? {
                DecodeResult::NeedsData(ranges) => {
                    bytes += ranges.iter().map(|range| range.end - range.start).sum::<u64>();
                    let found = self.fetch(&ranges).await?;
                    self.source.step(&self.path, || decoder.push_ranges(ranges, found))?;
                }
                DecodeResult::Data(batch) => {
                    let batch = match &moved {
                        Some(moved) => moved.applied(batch),
                        None => batch,
                    };
                    if !each(batch)? {
                        break false;
                    }
                }
                DecodeResult::Finished => break true,
            }
        };
        tracing::debug!(path = %self.path, ?groups, columns = names.join(","), bytes, "rows read");
        Ok(whole)
    }

    /// These columns of a row group, or of some of its rows, as one batch; null where the part lacks a column.
    pub async fn batch(&self, schema: &SchemaRef, from: RowGroupSelection) -> Result<RecordBatch, Error> {
        let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        let rows = self.rows(from.row_group_index());
        let mut batches = Vec::new();
        let collect = |batch| {
            batches.push(fitted(&batch, schema, &self.path)?);
            Ok(true)
        };
        self.each(&names, vec![from], rows, collect).await?;
        match batches.pop() {
            Some(batch) if batches.is_empty() => Ok(batch),
            last => {
                batches.extend(last);
                concat_batches(schema, &batches).or_kind(Kind::Storage)
            }
        }
    }

    /// All row groups.
    pub fn all(&self) -> Vec<RowGroupSelection> {
        (0..self.groups().len()).map(|group| RowGroupSelection::new(group, None)).collect()
    }
}

impl Source {
    async fn fetch(&self, path: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>, Error> {
        match self {
            Source::Stored(tables) => tables.ranges(path, ranges).await,
            Source::Held(bytes) => slices(path, bytes, ranges),
        }
    }

    /// A step of the Parquet library on a part, which panics at some damaged files.
    fn step<T>(&self, path: &Path, step: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, Error> {
        let done = catch_unwind(AssertUnwindSafe(step));
        let done = done.unwrap_or_else(|_| Err(ParquetError::General("its parts contradict each other".to_owned())));
        done.map_err(|error| match self {
            Source::Held(_) => unreadable(path, &error),
            Source::Stored(tables) => Error {
                message: format!(
                    "{tables}: {}. Bring the file back. Or delete it: then this command says how to run its tasks again",
                    unreadable(path, &error).message
                ),
                ..unreadable(path, &error)
            },
        })
    }
}

fn slices(path: &Path, bytes: &Bytes, ranges: &[Range<u64>]) -> Result<Vec<Bytes>, Error> {
    let is_inside = |range: &Range<u64>| range.start <= range.end && range.end <= bytes.len() as u64;
    match ranges.iter().all(is_inside) {
        true => Ok(ranges.iter().map(|range| bytes.slice(range.start as usize..range.end as usize)).collect()),
        false => Err(failure!(Storage, "{path} cannot be read: it names bytes that it does not have")),
    }
}

/// Bytes of the texts or lists of a column in a row group. A file of another writer may not tell how long its texts are.
fn text_bytes(chunk: &ColumnChunkMetaData) -> u64 {
    let is_list = chunk.column_descr().max_rep_level() > 0;
    match chunk.column_type() {
        Type::BYTE_ARRAY => chunk.unencoded_byte_array_data_bytes().unwrap_or(chunk.uncompressed_size()).unsigned_abs(),
        _ if is_list => 8 * chunk.num_values().unsigned_abs(),
        _ => 0,
    }
}

/// The values of a column in a row group of `rows` rows, from its statistics.
fn stats(chunk: &ColumnChunkMetaData, rows: i64) -> ColumnStats {
    let rows = rows.unsigned_abs();
    if chunk.column_descr().max_rep_level() > 0 {
        // A list: level 0 means that there is no list, and statistics have only the smallest and greatest element.
        let absent = chunk.definition_level_histogram().and_then(|levels| levels.get(0));
        return if absent.is_some_and(|absent| absent.unsigned_abs() == rows) {
            ColumnStats::Equal(Cell::Null)
        } else {
            ColumnStats::Unknown
        };
    }
    let Some(statistics) = chunk.statistics() else { return ColumnStats::Unknown };
    let Some(nulls) = statistics.null_count_opt() else { return ColumnStats::Unknown };
    if nulls == rows {
        return ColumnStats::Equal(Cell::Null);
    }
    let is_instant = matches!(chunk.column_descr().logical_type_ref(), Some(LogicalType::Timestamp { .. }));
    match bounds(statistics, is_instant) {
        Some((least, greatest)) if least == greatest && nulls == 0 => ColumnStats::Equal(least),
        Some((least, greatest)) => ColumnStats::Between { least, greatest, nulls: nulls > 0 },
        None => ColumnStats::Unknown,
    }
}

/// The smallest and the greatest value. Long texts are cut in the footer, and a value that is no number has no order:
/// then they are not known.
fn bounds(statistics: &Statistics, is_instant: bool) -> Option<(Cell, Cell)> {
    if !(statistics.min_is_exact() && statistics.max_is_exact()) || statistics.nan_count_opt().unwrap_or(0) > 0 {
        return None;
    }
    let text = |bytes: &parquet::data_type::ByteArray| Some(Cell::Text(bytes.as_utf8().ok()?.to_owned()));
    match statistics {
        Statistics::Boolean(of) => Some((Cell::Bool(*of.min_opt()?), Cell::Bool(*of.max_opt()?))),
        Statistics::Int64(of) if is_instant => Some((Cell::Instant(*of.min_opt()?), Cell::Instant(*of.max_opt()?))),
        Statistics::Int64(of) => Some((Cell::Int(*of.min_opt()?), Cell::Int(*of.max_opt()?))),
        // A zero has the sign of a bound here, whatever its sign is in the column; the sum of both zeros has none.
        Statistics::Double(of) => Some((Cell::Real(of.min_opt()? + 0.0), Cell::Real(of.max_opt()? + 0.0))),
        Statistics::ByteArray(of) => Some((text(of.min_opt()?)?, text(of.max_opt()?)?)),
        _ => None,
    }
}
