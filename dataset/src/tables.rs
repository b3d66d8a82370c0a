//! Where tables are: one trait of two methods, for a data folder, an object store and a coordinator.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use object_store::path::Path;
use powersweep_results::Table;
use powersweep_results::layout::{PartCounts, StoredPart, part_id};
use powersweep_results::unpublished::UnpublishedRows;
use uuid::Uuid;

use crate::reading::{Part, Reading};
use crate::words::count;
use crate::{Error, Notes, failure};

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
    /// The parts that the state counts; `None` if they are not to be compared with the listed ones.
    pub counted: Option<PartCounts>,
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
    /// Notes about files that were said.
    said: Arc<Mutex<BTreeSet<String>>>,
}

impl Datasets {
    /// The datasets of a place.
    pub fn new(tables: impl Tables + 'static, notes: Notes) -> Datasets {
        Datasets { tables: Arc::new(tables), notes, said: Arc::default() }
    }

    /// Lists the rows of a table, published or not, to read them. A note says that parts are missing; without any row, that is an
    /// error.
    pub async fn read(&self, experiment: &str, table: Table) -> Result<Reading, Error> {
        match self.listed(experiment, table, Wanted::All).await? {
            (reading, Some(missing)) if reading.has_rows() => {
                self.say_once(missing);
                Ok(reading)
            }
            found => whole(found),
        }
    }

    /// Lists the rows of a table, published or not, to read them.
    ///
    /// # Errors
    /// As [`Tables::list`], or parts are missing.
    pub async fn read_whole(&self, experiment: &str, table: Table) -> Result<Reading, Error> {
        whole(self.listed(experiment, table, Wanted::All).await?)
    }

    /// Fails if parts of one of these tables are missing.
    ///
    /// # Errors
    /// As [`Datasets::read_whole`].
    pub async fn check_whole(&self, experiment: &str, tables: &[Table]) -> Result<(), Error> {
        for table in tables {
            self.read_whole(experiment, *table).await?;
        }
        Ok(())
    }

    /// Lists the published rows of a table, to read them.
    pub async fn read_published(&self, experiment: &str, table: Table) -> Result<Reading, Error> {
        Ok(self.listed(experiment, table, Wanted::Published).await?.0)
    }

    /// A table, and the sentence about its missing parts.
    async fn listed(&self, experiment: &str, table: Table, wanted: Wanted) -> Result<(Reading, Option<String>), Error> {
        let mut listing = self.tables.list(experiment, table, wanted).await?;
        self.drop_copies(&mut listing).await?;
        let missing = self.missing(&listing, experiment, table).await;
        Ok((Reading::new(self.clone(), listing, experiment, table, missing.is_none()), missing))
    }

    /// The sentence about the parts that the state counts and that are not there. The footers are read only if the numbers of files
    /// differ: users may add files of their own.
    async fn missing(&self, listing: &Listing, experiment: &str, table: Table) -> Option<String> {
        let counted = listing.counted?;
        if counted.parts == listing.parts.len() as u64 {
            return missing_parts(self, experiment, table, counted, counted.parts);
        }
        let mut found = BTreeSet::new();
        for part in &listing.parts {
            // A file that cannot be read is reported where its rows are read.
            found.extend(Part::stored(&self.tables, &part.path, part.bytes).await.ok()?.id());
        }
        missing_parts(self, experiment, table, counted, found.len() as u64)
    }

    /// A file of a table at a path of the place, of this size.
    pub async fn part(&self, path: &Path, bytes: u64) -> Result<Part, Error> {
        Part::stored(&self.tables, path, bytes).await
    }

    fn say_once(&self, note: String) {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.insert(note.clone()) {
            drop(said);
            self.notes.say(&note);
        }
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
        for copy in &copies {
            self.say_once(format!("{copy} is a copy of a part: its rows count once; delete the file"));
        }
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

fn whole((reading, missing): (Reading, Option<String>)) -> Result<Reading, Error> {
    missing.map_or(Ok(reading), |missing| Err(failure!(Storage, "{missing}")))
}

/// The sentence about parts in this place that its state counts and that are missing, and about rows that cannot be read;
/// `None` if neither is so. `found`: number of different parts that are there.
pub fn missing_parts(
    place: &dyn fmt::Display,
    experiment: &str,
    table: Table,
    counted: PartCounts,
    found: u64,
) -> Option<String> {
    let (files, rows) = (count(counted.parts, "file"), count(counted.rows, "row"));
    let again = format!("under a new name, or `powersweep delete {experiment} --data-too` and then the manifest");
    let left_out = (counted.left_out > 0).then(|| {
        format!(
            "{} of {experiment}/{table} are left out: storage lost or damaged them before they were in a file. Run their tasks \
             again: {again}",
            count(counted.left_out, "row")
        )
    });
    let state_of_rest = format!(
        "`powersweep delete {experiment}` forgets the state and keeps the files that are there; `powersweep adopt` makes a state of \
         these while no coordinator serves the data"
    );
    let remedy = match table {
        Table::Tasks => format!(
            "Or run their tasks again. If the experiment has no other tables: {state_of_rest}; then the manifest runs the tasks without \
             a row. If it has some: {again}"
        ),
        // Rows of tasks that run again would be in `tasks` twice.
        Table::Jobs | Table::Series | Table::Accounts => format!("Or run all tasks again: {again}"),
        Table::Failures => format!("Or do without them: {state_of_rest}"),
    };
    let missing = (found < counted.parts).then(|| {
        format!(
            "{place} lacks {} of {files} of {experiment}/{table}: the state counts {rows} in them. Bring the files back. {remedy}",
            counted.parts - found
        )
    });
    match (missing, left_out) {
        (Some(missing), Some(left_out)) => Some(format!("{missing}\n{left_out}")),
        (missing, left_out) => missing.or(left_out),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_parts_and_rows_that_were_left_out_are_named() {
        let of = |parts, left_out| {
            let counted = PartCounts { parts, rows: 9, left_out };
            missing_parts(&"data", "e", Table::Jobs, counted, 1)
        };
        assert_eq!(of(1, 0), None);
        let lacks = of(2, 0).expect("a part is missing");
        assert!(
            lacks.starts_with("data lacks 1 of 2 files of e/jobs") && lacks.contains("run all tasks again"),
            "{lacks}"
        );
        assert!(of(1, 7).expect("rows are lost").starts_with("7 rows of e/jobs are left out"));
        assert_eq!(of(2, 7).expect("both").lines().count(), 2);
    }
}
