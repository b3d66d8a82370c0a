//! Rebuilding a lost state from the published rows.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::Duration;

use arrow::datatypes::Schema;
use bytes::Bytes;
use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use powersweep_coordinator::farm::Adoption;
use powersweep_coordinator::owner::Ownership;
use powersweep_coordinator::probe::probe;
use powersweep_coordinator::records::Upload;
use powersweep_coordinator::store::{Location, PRIVATE_DIR, SlateStore, Store};
use powersweep_dataset::words::count;
use powersweep_dataset::{Error, Kind, OrKind, failure};
use powersweep_experiments::plain::chain;
use powersweep_experiments::{Digest, Manifest, Sweep};
use powersweep_proto::clocks::now_us;
use powersweep_results::Table;
use powersweep_results::identity::RowKey;
use powersweep_results::split::for_each_key;
use powersweep_results::{columns, layout, part, tasks};
use uuid::Uuid;

use crate::farm;
use crate::inputs::{self, Files};
use crate::origin::{other_files, other_versions};
use crate::place::{Place, shards, stored};

/// A state that cannot be read within this time counts as unreadable.
const READ_LIMIT: Duration = Duration::from_secs(30);
/// Maximum number of files named in a message.
const NAMED: usize = 5;

/// How a state is rebuilt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AdoptOptions {
    /// Takes rows that occur twice, or that are incomplete.
    pub accept: bool,
    /// Renames a state that cannot be read.
    pub set_aside: bool,
    /// Takes the data over from a coordinator that still seems to run.
    pub take_over: bool,
}

/// An experiment whose state was rebuilt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adopted {
    /// Its name.
    pub experiment: String,
    /// Number of tasks.
    pub tasks: u64,
    /// Number of tasks with a row.
    pub done: u64,
    /// Number of uploads of optional tables that belong to rows.
    pub uploads: u64,
}

impl Place {
    /// Rebuilds the state of an experiment from its published rows.
    ///
    /// # Errors
    /// The data has no such rows, or needs an option. An error leaves the data unchanged.
    pub async fn adopt(&self, manifest: &Manifest, files: Files, options: AdoptOptions) -> Result<Adopted, Error> {
        let sweep = inputs::sweep(manifest, &files.digests)?;
        let location = self.location()?;
        if location.path().is_some_and(|path| !path.exists()) {
            return Err(failure!(Usage, "there is no {location}: give the folder of the results with --data"));
        }
        if let Some(record) = shards::find(&location, manifest.name()).await? {
            return Err(shards::takes_no_requests(&location, &record));
        }
        probe(&location).await.or_kind(Kind::Storage)?;
        let owner = Ownership::take(&location, "", options.take_over).await;
        let owner = owner.map_err(|error| farm::opening(error.into()))?;
        let adopted = self.adopted(options, &location, &sweep, files).await;
        owner.release().await;
        adopted
    }

    async fn adopted(
        &self,
        options: AdoptOptions,
        location: &Location,
        sweep: &Sweep,
        files: Files,
    ) -> Result<Adopted, Error> {
        let name = sweep.manifest().name();
        let unreadable = unreadable(options, location).await?;
        let mut scan = Scan::new(location, sweep, &files.digests)?;
        scan.read_all().await?;
        if let Some(refusal) = scan.refusal() {
            return Err(failure!(Refused, "{refusal}"));
        }
        let Scan { adoption, problems, copies, left_uploads, .. } = scan;
        copies.iter().for_each(|copy| self.notes.say(copy));
        if !problems.is_empty() && !options.accept {
            let reason = problems.join("\n");
            return Err(failure!(
                Refused,
                "{reason}\nnothing was changed. With --accept the rows are adopted nevertheless, and stay in the tables: \
                 readers see both copies of a duplicate row"
            ));
        }
        problems.iter().for_each(|problem| self.notes.say(problem));
        if left_uploads > 0 {
            let uploads = count(left_uploads, "upload");
            self.notes.say(&format!("{uploads} not adopted: their tasks have no row and run again"));
        }
        if let Some(data) = unreadable {
            self.set_aside(&data)?;
        }
        let store = SlateStore::open(location).await.or_kind(Kind::Storage)?;
        let loaded = store.load().await.or_kind(Kind::Storage)?;
        if loaded.experiments.iter().any(|record| record.name == name) {
            let _ = store.close().await;
            let hint = "needs no adoption: use `powersweep run` or `powersweep submit`";
            return Err(failure!(Refused, "{name} is in the state of {location} and {hint}"));
        }
        let (done, tasks, uploads) = (adoption.done(), adoption.tasks(), adoption.uploads());
        let now_us = now_us();
        // The state does not know these rows: a split would take them for rows that it moved there.
        let left = layout::left_name(name);
        if !store.objects().or_kind(Kind::Storage)?.left_parts(name).await.or_kind(Kind::Storage)?.is_empty() {
            let to = format!("{left}@{}", now_us / 1_000_000);
            store.rename_dataset(&left, &to).await.or_kind(Kind::Storage)?;
            self.notes.say(&format!("the rows in {left} are now in {to}: their tasks run again if they are back"));
        }
        store.commit(adoption.batch(files.digests, files.ledgers, &loaded, now_us)).await.or_kind(Kind::Storage)?;
        store.close().await.or_kind(Kind::Storage)?;
        let (experiment, uploads) = (name.to_owned(), uploads as u64);
        Ok(Adopted { experiment, tasks, done, uploads })
    }

    fn set_aside(&self, data: &std::path::Path) -> Result<(), Error> {
        let state = data.join(PRIVATE_DIR).join("state");
        let aside = data.join(PRIVATE_DIR).join(format!("state-unreadable-{}", Uuid::now_v7().simple()));
        std::fs::rename(&state, &aside)
            .map_err(|error| failure!(Storage, "cannot move {}: {error}", state.display()))?;
        self.notes.say(&format!("the unreadable state is now in {}", aside.display()));
        Ok(())
    }
}

/// The data folder if its state is unreadable and --set-aside is given; `None` if the state is readable or missing.
async fn unreadable(options: AdoptOptions, location: &Location) -> Result<Option<PathBuf>, Error> {
    let reason = match tokio::time::timeout(READ_LIMIT, stored::read(location)).await {
        Ok(Ok(_)) => return Ok(None),
        Ok(Err(failure)) => failure.message,
        Err(_) => format!("the storage gave no answer within {} s", READ_LIMIT.as_secs()),
    };
    let unreadable = format!("the state in {location} cannot be read: {reason}");
    let Some(data) = location.path() else {
        let hint = format!("move the objects below {PRIVATE_DIR}/state elsewhere, then adopt again");
        return Err(failure!(Storage, "{unreadable}\n{hint}"));
    };
    if !options.set_aside {
        let hint = "--set-aside renames the state; then every experiment of this data must be adopted";
        return Err(failure!(Storage, "{unreadable}\n{hint}"));
    }
    Ok(Some(data.to_owned()))
}

/// The facts read from the dataset.
struct Scan {
    store: std::sync::Arc<dyn ObjectStore>,
    experiment: String,
    adoption: Adoption,
    /// Problems that the user must accept before the rows are taken.
    problems: Vec<String>,
    /// Files and versions that are other ones than rows were made from, in sentences.
    others: BTreeSet<String>,
    /// SHA-256 of the files of the manifest.
    digests: BTreeMap<String, Digest>,
    /// Sentences about copied parts.
    copies: Vec<String>,
    duplicates_in: Vec<String>,
    /// Number of uploads that are not adopted, because their tasks have no row.
    left_uploads: u64,
}

impl Scan {
    fn new(location: &Location, sweep: &Sweep, digests: &BTreeMap<String, Digest>) -> Result<Scan, Error> {
        Ok(Scan {
            store: location.object_store().or_kind(Kind::Storage)?,
            experiment: sweep.manifest().name().to_owned(),
            adoption: Adoption::new(sweep.clone()),
            problems: Vec::new(),
            others: BTreeSet::new(),
            digests: digests.clone(),
            copies: Vec::new(),
            duplicates_in: Vec::new(),
            left_uploads: 0,
        })
    }

    async fn read_all(&mut self) -> Result<(), Error> {
        self.table(Table::Tasks).await?;
        self.adoption.find_moved();
        if self.adoption.doubled() > 0 {
            let duplicates = count(self.adoption.doubled(), "row");
            let files = self.duplicates_in.join(", ");
            self.problems.push(format!("{duplicates} of tasks that already have a row: {files}"));
        }
        for table in Table::OPTIONAL {
            self.table(table).await?;
            self.uploads(table).await?;
            let (orphans, lacking) = (self.adoption.orphans(table), self.adoption.lacking(table));
            if orphans > 0 {
                self.problems.push(format!(
                    "rows of {} in `{table}` that have no row in `tasks`: these tasks run again, and `{table}` has their rows twice then",
                    count(orphans, "task")
                ));
            }
            if lacking > 0 {
                self.problems.push(format!(
                    "{} with a row in `tasks` and none in `{table}`: they ran before the manifest asked for this table, or its files are \
                     lost. They count as done: to have these rows, bring the files back, or run all tasks again under a new name",
                    count(lacking, "task")
                ));
            }
        }
        self.table(Table::Failures).await
    }

    /// Why the rows cannot be those of this manifest; `None` if they can. The state would not know rows of other values, so that a later
    /// edit would make them twice.
    fn refusal(&self) -> Option<String> {
        let foreign = self.adoption.foreign();
        let rows = format!("{} of no task of this manifest: ", count(foreign, "row"));
        let rows = if foreign > 0 { rows } else { String::new() };
        let others = self.others.iter().map(String::as_str).collect::<Vec<_>>().join("\n");
        match (foreign, others.is_empty()) {
            (0, true) => None,
            (_, false) => Some(format!(
                "{rows}{others}\nnothing was changed. Adopt with the files and by the version that made the rows, or give the experiment \
                 a new name"
            )),
            (_, true) => Some(format!(
                "{rows}an edit removed their values\nnothing was changed. First `powersweep adopt` with the manifest that made all rows, \
                 which is in their files as `powersweep.manifest`; then `powersweep run` or `powersweep submit` with this one: rows of \
                 values that left move to {}",
                layout::left_name(&self.experiment)
            )),
        }
    }

    async fn list(&self, folder: &Path) -> Result<Vec<Path>, Error> {
        let found: Vec<_> = self.store.list(Some(folder)).try_collect().await.or_kind(Kind::Storage)?;
        let mut paths: Vec<Path> = found.into_iter().map(|object| object.location).collect();
        paths.retain(|path| layout::is_part(folder, path));
        paths.sort();
        Ok(paths)
    }

    /// Reads the published parts of a table, one after the other.
    async fn table(&mut self, table: Table) -> Result<(), Error> {
        let paths = self.list(&layout::table_dir(&self.experiment, table.name())).await?;
        let id_in_name = |path: &Path| path.filename().and_then(layout::part_id);
        let mut known: BTreeSet<Uuid> = paths.iter().filter_map(id_in_name).collect();
        for path in paths {
            let bytes = self.object(&path).await?;
            let footer = match part::read_footer(&bytes) {
                Ok(footer) if footer.experiment == self.experiment => footer,
                Ok(footer) => {
                    self.problems.push(format!("{path} is a part of {}: its rows do not count", footer.experiment));
                    continue;
                }
                Err(error) => {
                    self.problems.push(format!("{path} is not a part: {}: its rows do not count", chain(&error)));
                    continue;
                }
            };
            // Every reader leaves out a copy.
            if id_in_name(&path).is_none() && !known.insert(footer.part_id) {
                self.copies.push(format!("{path} is a copy of a part: its rows count once; delete the file"));
                continue;
            }
            self.others.extend(other_files(&footer.origin, &self.digests).into_values());
            self.others.extend(other_versions(&footer.origin));
            self.adoption.part(table, footer.rows, bytes.len() as u64);
            let (adoption, duplicates_in) = (&mut self.adoption, &mut self.duplicates_in);
            match table {
                Table::Tasks => rows(&path, bytes, |row| {
                    let name = path.to_string();
                    if adoption.task(row) && duplicates_in.len() < NAMED && !duplicates_in.contains(&name) {
                        duplicates_in.push(name);
                    }
                })?,
                Table::Jobs | Table::Series | Table::Accounts => {
                    let mut last = None;
                    rows(&path, bytes, |row| {
                        // The rows of a task are consecutive.
                        if last.replace(row.task_id) != Some(row.task_id) {
                            adoption.detail(table, row);
                        }
                    })?;
                }
                Table::Failures => {}
            }
        }
        Ok(())
    }

    /// The bytes of an object.
    async fn object(&self, path: &Path) -> Result<Bytes, Error> {
        self.store.get(path).await.or_kind(Kind::Storage)?.bytes().await.or_kind(Kind::Storage)
    }

    /// Reads the uploads in the staging folder. The lost state had accepted some uploads and refused others.
    async fn uploads(&mut self, table: Table) -> Result<(), Error> {
        let folder = Path::from_iter([PRIVATE_DIR, "staging", "upload", self.experiment.as_str(), table.name()]);
        for path in self.list(&folder).await? {
            let bytes = self.object(&path).await?;
            // An incomplete upload, or another file.
            let Ok(footer) = part::read_footer(&bytes) else { continue };
            let mut tasks: Vec<RowKey> = Vec::new();
            let size = bytes.len() as u64;
            rows(&path, bytes, |row| {
                if tasks.last().map(|last| last.task_id) != Some(row.task_id) {
                    tasks.push(row);
                }
            })?;
            let upload = Upload { part_id: footer.part_id.into(), rows: footer.rows, bytes: size };
            self.left_uploads += u64::from(!self.adoption.upload(table, upload, &tasks));
        }
        Ok(())
    }
}

/// Calls `each` with the identity and index of every row of a Parquet object. The library panics at some damaged files.
fn rows(path: &Path, bytes: Bytes, each: impl FnMut(RowKey)) -> Result<(), Error> {
    let read = catch_unwind(AssertUnwindSafe(|| rows_of(path, bytes, each)));
    read.unwrap_or_else(|_| Err(failure!(Storage, "{path} cannot be read: it is damaged")))
}

fn rows_of(path: &Path, bytes: Bytes, each: impl FnMut(RowKey)) -> Result<(), Error> {
    let object = ParquetRecordBatchReaderBuilder::try_new(bytes.clone())
        .map_err(|error| failure!(Storage, "{path} cannot be read: {}", chain(&error)))?;
    let of_tasks = path.parts().nth(1).is_some_and(|folder| folder.as_ref() == Table::Tasks.name());
    if of_tasks
        && columns::fingerprint(&Schema::new(object.schema().fields().clone()))
            != columns::fingerprint(&tasks::schema())
    {
        let hint = "adopt and continue with the version that wrote it, or give the experiment a new name";
        return Err(failure!(Refused, "{path} has the columns of another version: {hint}"));
    }
    for_each_key(&bytes, each).map_err(|error| failure!(Storage, "{path} cannot be read: {}", chain(&error)))
}
