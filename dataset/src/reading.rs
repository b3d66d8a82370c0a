//! The rows of one table, batch by batch: published rows from parts, unpublished rows from state and staging folder.

mod newest;
mod part;

use std::collections::BTreeSet;
use std::fmt::Display;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, ListArray, RecordBatch, new_null_array};
use arrow::datatypes::{DataType, Schema, SchemaRef};
use futures::{StreamExt, TryStreamExt, stream};
use object_store::path::Path;
use powersweep_experiments::plain::chain;
use powersweep_results::Table;
use powersweep_results::folded::FoldedBatch;
use powersweep_results::layout::{StoredPart, part_id, part_name};
use powersweep_results::part::{Footer, encode_from};
use powersweep_results::unpublished;
use tokio::sync::OnceCell;
use uuid::Uuid;

use self::newest::Newest;
pub use self::part::{ColumnStats, Part};

use crate::tables::{Datasets, Listing, Wanted};
use crate::{Error, Kind, OrKind, failure};

/// Rows of a batch: the fixed costs are small, and so is the memory.
const BATCH_ROWS: usize = 8_192;
/// Footers that are read at the same time: each takes a round trip or two over a network.
const FOOTERS_AT_ONCE: usize = 8;

/// One table of an experiment at one moment.
#[derive(Debug)]
pub struct Reading {
    datasets: Datasets,
    listing: Listing,
    experiment: String,
    table: Table,
    /// Whether no part is missing that the state counts.
    is_whole: bool,
    /// The manifest whose indices all rows are given; `None` if there are less than two parts, or the newest names none.
    newest: OnceCell<Option<Arc<Newest>>>,
}

/// The parts and rows that earlier readings of a table had, which [`Reading::only_new`] leaves out.
#[derive(Debug, Default)]
pub struct ReadBefore {
    objects: BTreeSet<Path>,
    /// Hashes of unpublished hand-ins.
    hand_ins: BTreeSet<u64>,
}

impl Reading {
    pub(crate) fn new(datasets: Datasets, listing: Listing, experiment: &str, table: Table, is_whole: bool) -> Reading {
        Reading { datasets, listing, experiment: experiment.to_owned(), table, is_whole, newest: OnceCell::new() }
    }

    /// Whether no part is missing that the state counts, as far as that is known.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Name of the experiment.
    pub fn experiment(&self) -> &str {
        &self.experiment
    }

    /// The table.
    pub fn table(&self) -> Table {
        self.table
    }

    /// Leaves out parts.
    pub fn skip(&mut self, parts: &BTreeSet<Path>) {
        self.listing.parts.retain(|part| !parts.contains(&part.path));
    }

    /// Leaves out the parts, uploads and unpublished rows that an earlier reading with the same `before` had. Rows that were
    /// unpublished then are read again from their part.
    pub fn only_new(&mut self, before: &mut ReadBefore) {
        let ReadBefore { objects, hand_ins } = before;
        self.listing.parts.retain(|part| objects.insert(part.path.clone()));
        self.listing.uploads.retain(|(path, _)| objects.insert(path.clone()));
        // Numbers of records begin again after a restart of the coordinator, so the content counts, too.
        self.listing.unpublished.retain(|rows| {
            let mut hasher = DefaultHasher::new();
            (rows.record, &rows.left_out, &rows.encoded).hash(&mut hasher);
            hand_ins.insert(hasher.finish())
        });
    }

    /// The published parts that are read.
    pub fn published_parts(&self) -> &[StoredPart] {
        &self.listing.parts
    }

    /// Whether the table has rows.
    pub fn has_rows(&self) -> bool {
        !self.listing.is_empty()
    }

    /// Fails if the manifest of the experiment does not ask for the table, which then has no row.
    pub fn check_table(&self) -> Result<(), Error> {
        if self.has_rows() || !self.listing.lacks_table {
            return Ok(());
        }
        Err(without_table(&self.experiment, self.table))
    }

    /// Whether the state does not know the experiment: only published rows are read.
    pub fn is_without_state(&self) -> bool {
        !self.listing.has_state
    }

    /// Calls `each` with every batch, until `each` returns false. `schema` has columns of the table.
    pub async fn each(
        &self,
        schema: &SchemaRef,
        mut each: impl FnMut(RecordBatch) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        for number in 0..self.objects() {
            let part = self.part(number).await?;
            self.note_unknown(part.path(), part.schema());
            let fit = |batch| each(fitted(&batch, schema, part.path())?);
            if !part.each(&names, part.all(), BATCH_ROWS, fit).await? {
                return Ok(());
            }
        }
        for batch in self.unpublished() {
            if !each(batch?.project(schema).unfold().or_kind(Kind::Storage)?)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Number of Parquet objects: parts, then staged uploads.
    fn objects(&self) -> usize {
        self.listing.parts.len() + self.listing.uploads.len()
    }

    async fn part(&self, number: usize) -> Result<Part, Error> {
        match self.listing.parts.get(number) {
            Some(part) => {
                let newest = self.newest().await?;
                let read = Part::stored(self.datasets.tables(), &part.path, part.bytes).await?;
                let of_name = part.path.filename().and_then(part_id);
                if let (Some(of_name), Some(id)) = (of_name, read.id())
                    && of_name != id
                {
                    let (path, name) = (&part.path, part_name(id));
                    return Err(failure!(
                        Storage,
                        "{path} is the part {name} under the name of another one: delete it if {name} is there, else give it \
                         this name"
                    ));
                }
                Ok(read.indexed_by(newest))
            }
            None => {
                let (path, bytes) = &self.listing.uploads[number - self.listing.parts.len()];
                Part::held(path, bytes.clone()).await
            }
        }
    }

    async fn newest(&self) -> Result<Option<&Arc<Newest>>, Error> {
        Ok(self.newest.get_or_try_init(|| self.find_newest()).await?.as_ref())
    }

    /// The manifest of the newest part. Tasks that failed under the newest manifest may have no part of `failures`, so that
    /// `tasks` tells its manifest, too.
    async fn find_newest(&self) -> Result<Option<Arc<Newest>>, Error> {
        let tables = self.datasets.tables();
        let tasks = match self.table {
            Table::Failures => tables.list(&self.experiment, Table::Tasks, Wanted::Published).await?.parts,
            _ => Vec::new(),
        };
        let parts = self.listing.parts.iter().chain(&tasks);
        // Names begin with the time of a part.
        let newest = parts.max_by(|one, other| one.path.filename().cmp(&other.path.filename()));
        let Some(part) = newest.filter(|_| self.listing.parts.len() + tasks.len() > 1) else { return Ok(None) };
        let origin = Part::stored(tables, &part.path, part.bytes).await?.origin();
        Ok((!origin.manifest.is_empty()).then(|| Arc::new(Newest::new(origin))))
    }

    /// All Parquet objects, with their footers.
    pub async fn parts(&self) -> Result<Vec<Part>, Error> {
        let parts = stream::iter(0..self.objects()).map(|number| self.part(number));
        parts.buffered(FOOTERS_AT_ONCE).try_collect().await
    }

    /// The manifest of the newest part that has one; `None` without such a part.
    pub async fn manifest(&self) -> Result<Option<String>, Error> {
        if let Some(newest) = self.newest().await? {
            return Ok(Some(newest.text().to_owned()));
        }
        for number in (0..self.listing.parts.len()).rev() {
            if let Some(manifest) = self.part(number).await?.manifest() {
                return Ok(Some(manifest));
            }
        }
        Ok(None)
    }

    /// The unpublished rows in the state.
    pub fn unpublished(&self) -> impl Iterator<Item = Result<FoldedBatch, Error>> + '_ {
        unpublished::batches(&self.listing.unpublished, &self.table.schema()).map(|batch| {
            batch.map_err(|(record, error)| {
                let place = format!("rows {record} of {}/{} in the state", self.experiment, self.table);
                unreadable(&place, &error)
            })
        })
    }

    /// All Parquet objects; the unpublished rows in the state are one more.
    pub async fn parts_of_all(&self) -> Result<Vec<Part>, Error> {
        let mut parts = self.parts().await?;
        let rows = self.listing.unpublished.iter().map(|rows| rows.rows).sum();
        if rows > 0 {
            let schema = self.table.schema();
            let footer = Footer::new(&self.experiment, Uuid::nil(), rows);
            let batches = unpublished::batches(&self.listing.unpublished, &schema);
            let batches = batches.map(|batch| batch.map_err(|(_, error)| error));
            let place = Path::from("the state");
            let bytes = encode_from(&schema, batches, &footer).map_err(|error| unreadable(&place, &error))?;
            parts.push(Part::held(&place, bytes).await?);
        }
        Ok(parts)
    }

    /// Notes the columns of a part that this version does not know; they are not read.
    pub fn note_unknown(&self, path: &Path, found: &Schema) {
        let known = self.table.schema();
        let unknown: Vec<&str> = found
            .fields()
            .iter()
            .map(|field| field.name().as_str())
            .filter(|name| known.column_with_name(name).is_none())
            .collect();
        if !unknown.is_empty() {
            let columns = unknown.join(", ");
            let notes = self.datasets.notes();
            notes.say(&format!("{path} has columns that this version does not know and omits: {columns}"));
        }
    }
}

fn unreadable(place: &dyn Display, error: &dyn std::error::Error) -> Error {
    failure!(Storage, "{place} cannot be read: {}", chain(error))
}

/// A batch with exactly these columns; a missing column is null.
pub fn fitted(batch: &RecordBatch, schema: &SchemaRef, place: &Path) -> Result<RecordBatch, Error> {
    let columns = schema.fields().iter().map(|field| match batch.column_by_name(field.name()) {
        Some(column) => named_as(field.data_type(), column),
        None => new_null_array(field.data_type(), batch.num_rows()),
    });
    let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns.collect(), &options)
        .map_err(|error| failure!(Storage, "{place} does not have the columns of this version: {error}"))
}

/// A column whose lists have the items' name of this type: other writers name them by the Parquet specification.
fn named_as(wanted: &DataType, column: &ArrayRef) -> ArrayRef {
    match (wanted, column.as_list_opt::<i32>()) {
        (DataType::List(item), Some(list)) if *item.data_type() == list.value_type() => {
            let (_, offsets, values, nulls) = list.clone().into_parts();
            ListArray::try_new(Arc::clone(item), offsets, values, nulls)
                .map_or_else(|_| Arc::clone(column), |list| Arc::new(list) as ArrayRef)
        }
        _ => Arc::clone(column),
    }
}

/// The columns of these names of a table, in their order, all nullable.
pub fn columns<'a>(table: Table, names: impl IntoIterator<Item = &'a str>) -> SchemaRef {
    let all = relaxed(&table.schema());
    let fields = names.into_iter().filter_map(|name| Some(Arc::clone(all.fields().find(name)?.1)));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// These columns as nullable ones: a part of an earlier version may lack some.
pub fn relaxed(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// The error of a table for which the manifest of an experiment does not ask.
pub fn without_table(experiment: &str, table: Table) -> Error {
    if table == Table::Accounts {
        return failure!(
            Usage,
            "the manifest of {experiment} has no signals, so that it has no table `{table}`: add [signals.NAME] and give it a new \
             name, so that all its tasks run with this table"
        );
    }
    failure!(
        Usage,
        "the manifest of {experiment} has no table `{table}`: add tables = [\"{table}\"] at its top and give it a new name, so that \
         all its tasks run with this table"
    )
}
