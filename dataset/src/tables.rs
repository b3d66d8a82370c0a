//! Where tables are: one trait of two methods, for a data folder, an object store and a coordinator.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use object_store::path::Path;
use powersweep_results::Table;
use powersweep_results::layout::{StoredPart, part_id};
use powersweep_results::unpublished::UnpublishedRows;
use uuid::Uuid;

use crate::reading::{Part, Reading};
use crate::{Error, Notes};

/// Which rows of a table are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// Published and unpublished rows.
    All,
    /// The rows in parts.
    Published,
}

/// Every row of a table at one moment, by its place.
#[derive(Debug, Clone, Default)]
pub struct Listing {
    /// Published parts by name, which begins with their time.
    pub parts: Vec<StoredPart>,
    /// Uploads of an optional table that are in no part, with their bytes.
    pub uploads: Vec<(Path, Bytes)>,
    /// Unpublished rows in the state.
    pub unpublished: Vec<UnpublishedRows>,
    /// Whether a state has the experiment. Without one, only parts are listed.
    pub has_state: bool,
    /// Whether the experiment's manifest does not ask for the table.
    pub lacks_table: bool,
}

impl Listing {
    /// Whether the table has no row.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty() && self.uploads.is_empty() && self.unpublished.is_empty()
    }
}

/// The tables of experiments in one place.
#[async_trait]
pub trait Tables: fmt::Display + Send + Sync {
    /// Lists the rows of a table at one moment. An unknown experiment is an error that names the known ones; a table
    /// without rows is not.
    async fn list(&self, experiment: &str, table: Table, wanted: Wanted) -> Result<Listing, Error>;

    /// Reads ranges of a listed part, each into bytes of its own.
    async fn ranges(&self, part: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>, Error>;
}

/// The datasets of a place, and where notes about them go.
#[derive(Clone)]
pub struct Datasets {
    tables: Arc<dyn Tables>,
    notes: Notes,
    /// Copies of parts that a note has named.
    copies: Arc<Mutex<BTreeSet<Path>>>,
}

impl Datasets {
    /// The datasets of a place.
    pub fn new(tables: impl Tables + 'static, notes: Notes) -> Datasets {
        Datasets { tables: Arc::new(tables), notes, copies: Arc::default() }
    }

    /// Lists the rows of a table, published or not, to read them.
    pub async fn read(&self, experiment: &str, table: Table) -> Result<Reading, Error> {
        self.listed(experiment, table, Wanted::All).await
    }

    /// Lists the published rows of a table, to read them.
    pub async fn read_published(&self, experiment: &str, table: Table) -> Result<Reading, Error> {
        self.listed(experiment, table, Wanted::Published).await
    }

    async fn listed(&self, experiment: &str, table: Table, wanted: Wanted) -> Result<Reading, Error> {
        let mut listing = self.tables.list(experiment, table, wanted).await?;
        self.drop_copies(&mut listing).await?;
        Ok(Reading::new(self.clone(), listing, experiment, table))
    }

    /// Leaves out files that are copies of parts: they have the id of a part in their footer, and another name. A note names
    /// each.
    async fn drop_copies(&self, listing: &mut Listing) -> Result<(), Error> {
        let id_in_name = |part: &StoredPart| part.path.filename().and_then(part_id);
        let mut known: BTreeSet<Uuid> = listing.parts.iter().filter_map(id_in_name).collect();
        let mut copies = BTreeSet::new();
        for part in listing.parts.iter().filter(|part| id_in_name(part).is_none()) {
            // A file that cannot be read is reported where its rows are read.
            let Ok(read) = Part::stored(&self.tables, &part.path, part.bytes).await else { continue };
            if read.id().is_some_and(|id| !known.insert(id)) {
                copies.insert(part.path.clone());
            }
        }
        let mut named = self.copies.lock().unwrap_or_else(PoisonError::into_inner);
        for copy in copies.iter().filter(|copy| named.insert((*copy).clone())) {
            self.notes.say(&format!("{copy} is a copy of a part: its rows count once; delete the file"));
        }
        drop(named);
        listing.parts.retain(|part| !copies.contains(&part.path));
        Ok(())
    }

    /// Where the tables are.
    pub(crate) fn tables(&self) -> &Arc<dyn Tables> {
        &self.tables
    }

    /// Where notes go.
    pub fn notes(&self) -> &Notes {
        &self.notes
    }
}

/// The place, such as a folder.
impl fmt::Display for Datasets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tables.fmt(f)
    }
}

impl fmt::Debug for Datasets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Datasets({self})")
    }
}
