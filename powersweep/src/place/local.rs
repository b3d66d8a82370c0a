//! Tables of a data folder or object store that this process can read.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use bytes::Bytes;
use object_store::ObjectStore;
use object_store::path::Path;
use powersweep_coordinator::records::RowsRecord;
use powersweep_coordinator::store::Location;
use powersweep_coordinator::view::{self, View, ViewError};
use powersweep_dataset::tables::{Listing, Tables, Wanted};
use powersweep_dataset::{Error, Kind, OrKind, failure};
use powersweep_experiments::plain::chain;
use powersweep_results::{Table, layout};

use super::stored;

/// The tables of a data folder or object store.
pub(super) struct Local {
    location: Location,
    /// The store, once it is used: data that does not exist yet cannot be opened.
    objects: OnceLock<Arc<dyn ObjectStore>>,
}

impl Local {
    /// The tables at a location. Writes nothing.
    pub(super) fn new(location: Location) -> Local {
        Local { location, objects: OnceLock::new() }
    }

    fn objects(&self) -> Result<&Arc<dyn ObjectStore>, Error> {
        match self.objects.get() {
            Some(objects) => Ok(objects),
            None => {
                let objects = self.location.object_store().or_kind(Kind::Storage)?;
                Ok(self.objects.get_or_init(|| objects))
            }
        }
    }

    /// The rows in parts and in the state, which are read together.
    async fn all(&self, experiment: &str, table: Table) -> Result<Listing, Error> {
        let location = &self.location;
        stored::check_exists(location)?;
        let view = view::read_table(location, experiment, table).await.map_err(|error| match &error {
            ViewError::ConcurrentChange { .. } => failure!(Failure, "{error}"),
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
        let View { parts, staged, rows, known, lacks_table, counted } = view;
        let unpublished = rows.iter().flat_map(RowsRecord::unpublished).collect();
        Ok(Listing { parts, uploads: staged, unpublished, has_state: known, lacks_table, counted })
    }
}

impl fmt::Display for Local {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.location.fmt(f)
    }
}

#[async_trait]
impl Tables for Local {
    async fn list(&self, experiment: &str, table: Table, wanted: Wanted) -> Result<Listing, Error> {
        match wanted {
            Wanted::All => self.all(experiment, table).await,
            Wanted::Published => {
                let folder = layout::table_dir(experiment, table.name());
                let parts = view::list(&**self.objects()?, &folder).await.or_kind(Kind::Storage)?;
                Ok(Listing { parts: parts.into_iter().collect(), has_state: true, ..Listing::default() })
            }
        }
    }

    async fn ranges(&self, part: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>, Error> {
        match self.objects()?.get_ranges(part, ranges).await {
            Err(object_store::Error::NotFound { .. }) => {
                let reason = "was deleted, because its rows moved to other parts: run the command again";
                Err(failure!(Failure, "{part} {reason}"))
            }
            found => found.or_kind(Kind::Storage),
        }
    }
}
