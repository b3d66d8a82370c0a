//! The rows of one table, batch by batch: published rows from parts, unpublished rows from state and staging folder.

mod part;

use std::collections::BTreeSet;
use std::fmt::Display;
use std::sync::Arc;

use arrow::array::{RecordBatch, new_null_array};
use arrow::datatypes::{Schema, SchemaRef};
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use powersweep_coordinator::publish::{live_batches, stored_schema};
use powersweep_coordinator::records::{RowsRecord, Table};
use powersweep_coordinator::store::Location;
use powersweep_coordinator::view::{self, StoredPart, View, ViewError};
use powersweep_proto::client::{Client, chain};
use powersweep_results::folded::FoldedBatch;
use powersweep_results::part::{Footer, encode_from};
use powersweep_results::{accounts, failures, jobs, layout, series, tasks};
use uuid::Uuid;

pub use self::part::{Part, Seen};

use crate::exit::{Exit, Failure, OrExit, failure};
use crate::remote::{self, RemotePart};
use crate::stored::Tables;
use crate::{screen, stored};

/// Rows of a batch: the fixed costs are small, and so is the memory.
const BATCH_ROWS: usize = 8_192;
/// Footers that are read at the same time: each takes a round trip or two over a network.
const FOOTERS_AT_ONCE: usize = 8;

/// One table of an experiment at one moment.
pub struct Reading {
    place: Place,
    view: View,
    experiment: String,
    table: Table,
    /// Schema of the unpublished rows in the state, where the table has such rows.
    in_state: Option<SchemaRef>,
}

/// Where the parts are.
enum Place {
    Stored(Arc<dyn ObjectStore>),
    Remote(Client),
}

/// The columns of a table in this version.
pub fn schema_of(table: Table) -> SchemaRef {
    match table {
        Table::Tasks => tasks::schema(),
        Table::Failures => failures::schema(),
        Table::Jobs => jobs::schema(),
        Table::Series => series::schema(),
        Table::Accounts => accounts::schema(),
    }
}

impl Reading {
    /// Lists the parts of a table and reads its unpublished rows. An unknown experiment is an error; a table without
    /// rows is not.
    pub async fn open(tables: &Tables, experiment: &str, table: Table) -> Result<Reading, Failure> {
        let (place, view) = match tables {
            Tables::Here(location) => {
                let view = look(location, experiment, table).await?;
                (Place::Stored(location.object_store().or_exit(Exit::Storage)?), view)
            }
            Tables::At(client) => (Place::Remote(client.clone()), remote::look(client, experiment, table).await?),
        };
        Ok(Reading { place, view, experiment: experiment.to_owned(), table, in_state: stored_schema(table) })
    }

    /// Lists the parts of a table. Unpublished rows are left out.
    pub async fn published(location: &Location, experiment: &str, table: Table) -> Result<Reading, Failure> {
        let store = location.object_store().or_exit(Exit::Storage)?;
        let folder = layout::table_dir(experiment, table.name());
        let parts = view::list(&*store, &folder).await.or_exit(Exit::Storage)?;
        let view = View { parts: parts.into_iter().collect(), known: true, ..View::default() };
        Ok(Reading { place: Place::Stored(store), view, experiment: experiment.to_owned(), table, in_state: None })
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
        self.view.parts.retain(|part| !parts.contains(&part.path));
    }

    /// The published parts that are read.
    pub fn published_parts(&self) -> &[StoredPart] {
        &self.view.parts
    }

    /// Whether the table has rows.
    pub fn has_rows(&self) -> bool {
        !self.view.is_empty()
    }

    /// Fails if the manifest of the experiment does not ask for the table, which then has no row.
    pub fn check_table(&self) -> Result<(), Failure> {
        if self.has_rows() || !self.view.lacks_table {
            return Ok(());
        }
        let (experiment, table) = (&self.experiment, self.table);
        Err(failure!(
            Usage,
            "the manifest of {experiment} has no table `{table}`: add tables = [\"{table}\"] at its top and give it a new \
             name, so that all its tasks run with this table"
        ))
    }

    /// Whether the state does not know the experiment: only published rows are read.
    pub fn is_without_state(&self) -> bool {
        !self.view.known
    }

    /// Calls `each` with every batch, until `each` returns false. `schema` has columns of [`schema_of`].
    pub async fn each(
        &self,
        schema: &SchemaRef,
        mut each: impl FnMut(RecordBatch) -> Result<bool, Failure>,
    ) -> Result<(), Failure> {
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
            if !each(batch?.project(schema).unfold().or_exit(Exit::Storage)?)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Number of Parquet objects: parts, then staged uploads.
    fn objects(&self) -> usize {
        self.view.parts.len() + self.view.staged.len()
    }

    async fn part(&self, number: usize) -> Result<Part, Failure> {
        let Some(part) = self.view.parts.get(number) else {
            let (path, bytes) = &self.view.staged[number - self.view.parts.len()];
            return Part::held(path, bytes.clone()).await;
        };
        match &self.place {
            Place::Stored(store) => Part::stored(store, &part.path, part.bytes).await,
            Place::Remote(client) => {
                let remote = RemotePart::new(client, &self.experiment, self.table, &part.path);
                Part::remote(remote, &part.path, part.bytes).await
            }
        }
    }

    /// All Parquet objects, with their footers.
    pub async fn parts(&self) -> Result<Vec<Part>, Failure> {
        let parts = stream::iter(0..self.objects()).map(|number| self.part(number));
        parts.buffered(FOOTERS_AT_ONCE).try_collect().await
    }

    /// The unpublished rows in the state.
    pub fn unpublished(&self) -> impl Iterator<Item = Result<FoldedBatch, Failure>> + '_ {
        let batches = self.in_state.iter().flat_map(|schema| live_batches(&self.view.rows, schema));
        batches.map(|batch| {
            batch.map_err(|(seq, error)| {
                let place = format!("rows {seq} of {}/{} in the state", self.experiment, self.table);
                unreadable(&place, &error)
            })
        })
    }

    /// All Parquet objects; the unpublished rows in the state are one more.
    pub async fn parts_of_all(&self) -> Result<Vec<Part>, Failure> {
        let mut parts = self.parts().await?;
        let rows = self.view.rows.iter().map(RowsRecord::live_rows).sum();
        if let Some(schema) = self.in_state.as_ref().filter(|_| rows > 0) {
            let footer = Footer::new(&self.experiment, Uuid::nil(), rows);
            let batches = live_batches(&self.view.rows, schema).map(|batch| batch.map_err(|(_, error)| error));
            let place = Path::from("the state");
            let bytes = encode_from(schema, batches, &footer).map_err(|error| unreadable(&place, &error))?;
            parts.push(Part::held(&place, bytes).await?);
        }
        Ok(parts)
    }

    /// Prints the columns of a part that this version does not know; they are not read.
    pub fn note_unknown(&self, path: &Path, found: &Schema) {
        let known = schema_of(self.table);
        let unknown: Vec<&str> = found
            .fields()
            .iter()
            .map(|field| field.name().as_str())
            .filter(|name| known.column_with_name(name).is_none())
            .collect();
        if !unknown.is_empty() {
            let columns = unknown.join(", ");
            screen::note(&format!(
                "powersweep: {path} has columns that this version does not know and omits: {columns}"
            ));
        }
    }
}

/// Looks at a table of data that this process can read.
async fn look(location: &Location, experiment: &str, table: Table) -> Result<View, Failure> {
    if location.path().is_some_and(|path| !path.exists()) {
        let hint = "give the folder of the results with --data, or --access for a coordinator on another machine";
        return Err(failure!(Usage, "there is no {location}: {hint}"));
    }
    let view = view::look(location, experiment, table).await.map_err(|error| match &error {
        ViewError::Restless { .. } => failure!(Failure, "{error}"),
        _ => failure!(Storage, "{}", chain(&error)),
    })?;
    if !view.known && view.is_empty() {
        let known = stored::names(location).await?;
        // A deleted experiment whose rows were kept has rows in other tables.
        if !known.iter().any(|name| name == experiment) {
            let reason = stored::unknown(experiment, &known);
            return Err(failure!(Usage, "{location}: {reason}"));
        }
    }
    Ok(view)
}

/// The bytes of an object.
pub async fn object(store: &dyn ObjectStore, path: &Path) -> Result<Bytes, Failure> {
    store.get(path).await.or_exit(Exit::Storage)?.bytes().await.or_exit(Exit::Storage)
}

/// A Parquet object, before its rows are read.
pub fn parquet(path: &Path, bytes: Bytes) -> Result<ParquetRecordBatchReaderBuilder<Bytes>, Failure> {
    ParquetRecordBatchReaderBuilder::try_new(bytes).map_err(|error| unreadable(path, &error))
}

fn unreadable(place: &dyn Display, error: &dyn std::error::Error) -> Failure {
    failure!(Storage, "{place} cannot be read: {}", chain(error))
}

/// A batch with exactly these columns; a missing column is null.
pub fn fitted(batch: &RecordBatch, schema: &SchemaRef, place: &Path) -> Result<RecordBatch, Failure> {
    let columns = schema.fields().iter().map(|field| match batch.column_by_name(field.name()) {
        Some(column) => Arc::clone(column),
        None => new_null_array(field.data_type(), batch.num_rows()),
    });
    let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns.collect(), &options)
        .map_err(|error| failure!(Storage, "{place} does not have the columns of this version: {error}"))
}

/// The same columns, all nullable: a part of an earlier version may lack some.
pub fn relaxed(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// The columns of these names, in the order of the schema.
pub fn narrowed(schema: &Schema, wanted: &BTreeSet<String>) -> SchemaRef {
    let fields = schema.fields().iter().filter(|field| wanted.contains(field.name()));
    Arc::new(Schema::new(fields.cloned().collect::<Vec<_>>()))
}
