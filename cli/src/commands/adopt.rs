//! `powersweep adopt`: rebuilds a lost state from the published rows.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arrow::array::{Array, AsArray};
use arrow::datatypes::{Int64Type, Schema};
use bytes::Bytes;
use futures::TryStreamExt;
use object_store::ObjectStore;
use object_store::path::Path;
use powersweep_coordinator::farm::{Adoption, Row};
use powersweep_coordinator::owner::Ownership;
use powersweep_coordinator::probe::probe;
use powersweep_coordinator::records::{Table, Upload};
use powersweep_coordinator::store::{Location, PRIVATE_DIR, SlateStore, Store};
use powersweep_experiments::{Digest, Sweep};
use powersweep_proto::client::chain;
use powersweep_results::{columns, layout, part, tasks};
use uuid::Uuid;

use crate::args::AdoptArgs;
use crate::exit::{Exit, Failure, OrExit, Outcome};
use crate::{client, farm, inputs, reading, screen, stored};

/// A state that cannot be read within this time counts as unreadable.
const READ_LIMIT: Duration = Duration::from_secs(30);
/// Most files named in a message.
const NAMED: usize = 5;

/// Rebuilds the state; an error changes nothing.
pub fn run(args: &AdoptArgs) -> Outcome {
    let manifest = inputs::manifest(&args.manifest)?;
    let digests = inputs::digests(&manifest, &inputs::library(&args.logs), None)?;
    let sweep = inputs::sweep(&manifest, &digests)?;
    let location = args.data.location()?;
    if location.path().is_some_and(|path| !path.exists()) {
        return Err(Failure::new(Exit::Usage, format!("there is no {location}: name the data with --data")));
    }
    client::block_on(async {
        probe(&location).await.or_exit(Exit::Storage)?;
        let owner = Ownership::take(&location, "", args.take_over).await;
        let owner = owner.map_err(|error| farm::opening(error.into()))?;
        let adopted = adopt(args, &location, &sweep, &digests).await;
        owner.release().await;
        adopted
    })
}

async fn adopt(args: &AdoptArgs, location: &Location, sweep: &Sweep, digests: &BTreeMap<String, Digest>) -> Outcome {
    let name = sweep.manifest().name();
    let unreadable = unreadable(args, location).await?;
    let mut scan = Scan::new(location, sweep)?;
    scan.everything().await?;
    let Scan { adoption, troubles, left, .. } = scan;
    if !troubles.is_empty() && !args.accept {
        let reason = troubles.join("\n");
        return Err(Failure::new(
            Exit::Refused,
            format!(
                "{reason}\nnothing was changed. Rows of values that left the manifest do no harm; doubled rows stay \
                 doubled for every reader. To go on all the same: --accept"
            ),
        ));
    }
    troubles.iter().for_each(|trouble| screen::note(&format!("powersweep: {trouble}")));
    if left > 0 {
        let left = screen::count(left, "upload");
        screen::note(&format!("powersweep: {left} of tasks without a row left alone: those tasks run again"));
    }
    if let Some(data) = unreadable {
        set_aside(&data)?;
    }
    let store = SlateStore::open(location).await.or_exit(Exit::Storage)?;
    let loaded = store.load().await.or_exit(Exit::Storage)?;
    if loaded.experiments.iter().any(|record| record.name == name) {
        let _ = store.close().await;
        let hint = "it needs no adoption: `powersweep run` or `powersweep submit` goes on";
        return Err(Failure::new(Exit::Refused, format!("the state in {location} knows {name}: {hint}")));
    }
    let (done, tasks, uploads) = (adoption.done(), adoption.tasks(), adoption.uploads());
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now_us = i64::try_from(since.as_micros()).unwrap_or(i64::MAX);
    store.commit(adoption.batch(digests.clone(), &loaded, now_us)).await.or_exit(Exit::Storage)?;
    store.close().await.or_exit(Exit::Storage)?;
    let more = if uploads > 0 {
        format!(", {} in no part yet taken too", screen::count(uploads as u64, "upload"))
    } else {
        String::new()
    };
    screen::print(&format!(
        "{name}: {done} of {} have rows{more}; {} to run",
        screen::count(tasks, "task"),
        tasks - done
    ))
}

/// The folder of DATA if its state is unreadable and `--set-aside` is given; `None` if the state is readable or
/// missing.
async fn unreadable(args: &AdoptArgs, location: &Location) -> Result<Option<PathBuf>, Failure> {
    let trouble = match tokio::time::timeout(READ_LIMIT, stored::read(location)).await {
        Ok(Ok(_)) => return Ok(None),
        Ok(Err(failure)) => failure.message,
        Err(_) => format!("it does not answer within {} s", READ_LIMIT.as_secs()),
    };
    let unreadable = format!("the state in {location} cannot be read: {trouble}");
    let Some(data) = location.path() else {
        let hint = format!("move what is below {PRIVATE_DIR}/state away, then adopt again");
        return Err(Failure::new(Exit::Storage, format!("{unreadable}\n{hint}")));
    };
    if !args.set_aside {
        let hint = "--set-aside moves it out of the way: every experiment of this data must then be adopted";
        return Err(Failure::new(Exit::Storage, format!("{unreadable}\n{hint}")));
    }
    Ok(Some(data.to_owned()))
}

fn set_aside(data: &std::path::Path) -> Result<(), Failure> {
    let state = data.join(PRIVATE_DIR).join("state");
    let aside = data.join(PRIVATE_DIR).join(format!("state-unreadable-{}", Uuid::now_v7().simple()));
    std::fs::rename(&state, &aside)
        .map_err(|error| Failure::new(Exit::Storage, format!("cannot move {}: {error}", state.display())))?;
    screen::note(&format!("powersweep: the unreadable state is in {} now", aside.display()));
    Ok(())
}

/// The facts read from the dataset.
struct Scan {
    store: std::sync::Arc<dyn ObjectStore>,
    experiment: String,
    adoption: Adoption,
    /// Problems that the user must accept before the rows are taken.
    troubles: Vec<String>,
    doubled_in: Vec<String>,
    /// Uploads that belong to no task with a row.
    left: u64,
}

impl Scan {
    fn new(location: &Location, sweep: &Sweep) -> Result<Scan, Failure> {
        Ok(Scan {
            store: location.object_store().or_exit(Exit::Storage)?,
            experiment: sweep.manifest().name().to_owned(),
            adoption: Adoption::new(sweep.clone()),
            troubles: Vec::new(),
            doubled_in: Vec::new(),
            left: 0,
        })
    }

    async fn everything(&mut self) -> Result<(), Failure> {
        self.table(Table::Tasks).await?;
        self.adoption.find_moved();
        if self.adoption.doubled() > 0 {
            let doubled = screen::count(self.adoption.doubled(), "row");
            let files = self.doubled_in.join(", ");
            self.troubles.push(format!("{doubled} of tasks that have a row already: {files}"));
        }
        if self.adoption.foreign() > 0 {
            let foreign = screen::count(self.adoption.foreign(), "row");
            self.troubles.push(format!(
                "{foreign} of no task of this manifest (values that an edit took out, or another kernel version)"
            ));
        }
        for table in [Table::Jobs, Table::Series] {
            self.table(table).await?;
            self.uploads(table).await?;
        }
        self.table(Table::Failures).await
    }

    async fn list(&self, folder: &Path) -> Result<Vec<Path>, Failure> {
        let found: Vec<_> = self.store.list(Some(folder)).try_collect().await.or_exit(Exit::Storage)?;
        let mut paths: Vec<Path> = found.into_iter().map(|object| object.location).collect();
        paths.retain(|path| path.filename().is_some_and(|name| name.ends_with(".parquet")));
        paths.sort();
        Ok(paths)
    }

    /// Reads the published parts of a table, one after the other.
    async fn table(&mut self, table: Table) -> Result<(), Failure> {
        for path in self.list(&layout::table_dir(&self.experiment, table.name())).await? {
            let bytes = reading::object(&*self.store, &path).await?;
            let footer = match part::read_footer(&bytes) {
                Ok(footer) if footer.experiment == self.experiment => footer,
                Ok(footer) => {
                    self.troubles.push(format!("{path} is a part of {}: its rows are not counted", footer.experiment));
                    continue;
                }
                Err(error) => {
                    self.troubles.push(format!("{path} is no part: {}: its rows are not counted", chain(&error)));
                    continue;
                }
            };
            self.adoption.part(table, footer.rows, bytes.len() as u64);
            let (adoption, doubled_in) = (&mut self.adoption, &mut self.doubled_in);
            match table {
                Table::Tasks => rows(&path, bytes, |row| {
                    let name = path.to_string();
                    if adoption.task(row) && doubled_in.len() < NAMED && !doubled_in.contains(&name) {
                        doubled_in.push(name);
                    }
                })?,
                Table::Jobs | Table::Series => {
                    let mut last = None;
                    rows(&path, bytes, |row| {
                        // The rows of a task are together.
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

    /// Reads the uploads in the staging folder. The lost state had accepted some of them and refused others.
    async fn uploads(&mut self, table: Table) -> Result<(), Failure> {
        let folder = Path::from_iter([PRIVATE_DIR, "staging", "upload", self.experiment.as_str(), table.name()]);
        for path in self.list(&folder).await? {
            let bytes = reading::object(&*self.store, &path).await?;
            // An incomplete upload, or another file.
            let Ok(footer) = part::read_footer(&bytes) else { continue };
            let mut tasks: Vec<Row> = Vec::new();
            let size = bytes.len() as u64;
            rows(&path, bytes, |row| {
                if tasks.last().map(|last| last.task_id) != Some(row.task_id) {
                    tasks.push(row);
                }
            })?;
            let upload = Upload { part_id: footer.part_id.into(), rows: footer.rows, bytes: size };
            self.left += u64::from(!self.adoption.upload(table, upload, &tasks));
        }
        Ok(())
    }
}

/// Calls `each` with the identity and index of every row of a Parquet object.
fn rows(path: &Path, bytes: Bytes, mut each: impl FnMut(Row)) -> Result<(), Failure> {
    let damaged = |reason: String| Failure::new(Exit::Storage, format!("{path} cannot be read: {reason}"));
    let object = reading::parquet(path, bytes)?;
    let of_tasks = path.parts().nth(1).is_some_and(|folder| folder.as_ref() == Table::Tasks.name());
    if of_tasks
        && columns::fingerprint(&Schema::new(object.schema().fields().clone()))
            != columns::fingerprint(&tasks::schema())
    {
        let hint = "adopt and go on with the version that made it, or give the experiment a new name";
        return Err(Failure::new(Exit::Refused, format!("{path} has the columns of another version: {hint}")));
    }
    for batch in reading::columns(path, object, ["task_id", "task_index"])? {
        let batch = batch?;
        let ids = batch.column_by_name("task_id").and_then(|column| column.as_string_opt::<i32>());
        let ids = ids.ok_or_else(|| damaged("it has no column `task_id`".to_owned()))?;
        let indices = batch.column_by_name("task_index").and_then(|column| column.as_primitive_opt::<Int64Type>());
        for (at, id) in ids.iter().enumerate() {
            let id = id.and_then(|id| Uuid::parse_str(id).ok());
            let task_id = id.ok_or_else(|| damaged(format!("row {at} has no task_id")))?;
            let index =
                indices.filter(|column| column.is_valid(at)).and_then(|column| u64::try_from(column.value(at)).ok());
            each(Row { task_id, index });
        }
    }
    Ok(())
}
