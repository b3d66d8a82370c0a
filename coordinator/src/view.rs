//! Reads one table: every durable row once, published or not.
//!
//! A row is in the state until the commit that closes its part's intent, and visible in the part from some moment
//! before that commit. So neither "state, then listing" nor "listing, then state" is safe: the first doubles rows whose
//! part becomes visible in between, the second loses rows whose intent is closed in between. The order here is: state,
//! its unpublished rows, listing, state again. If no intent of the table was closed between the two readings of the
//! state, then every row is unpublished or in an open intent at both readings, or was in a closed part at the first: the
//! table is the rows that were read and the listed parts, except for parts of intents open at either reading. Otherwise
//! the table is read again; intents are closed minutes apart, or seconds apart on the busiest farm.
//!
//! A sharded experiment has several states and one folder of parts. Then "state" above means all of them.
//!
//! A reader with access to the data needs no coordinator and disturbs none: it opens the state read-only. For other
//! readers the coordinator looks in the same way, through its own store.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use powersweep_results::Table;
use powersweep_results::layout::{self, PartCounts, StoredPart, base_name};
use uuid::Uuid;

use crate::owner::{self, Owner};
use crate::publish::part_path;
use crate::records::{Intent, Loaded, RowsRecord, Totals};
use crate::shards::{self, ShardError};
use crate::store::{Location, ReadOnly, Store, StoreError, staged_object};

/// Attempts to read a table: each fails only if parts were published or split meanwhile.
const LOOKS_MAX: u32 = 20;

/// States of shards that are read at the same time.
const STATES_AT_ONCE: usize = 8;

/// Wait before the next attempt while parts are being split.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Every row of a table, by its place.
#[derive(Debug, Clone, Default)]
pub struct View {
    /// Published parts by name, which begins with their time.
    pub parts: Vec<StoredPart>,
    /// Accepted uploads of an optional table that are in no part, with their bytes: an upload is deleted once its part is
    /// visible.
    pub staged: Vec<(Path, Bytes)>,
    /// Unpublished rows as workers handed them in.
    pub rows: Vec<RowsRecord>,
    /// Whether the state has the experiment. Without the state, only parts are read.
    pub known: bool,
    /// Whether the experiment's manifest does not ask for the table.
    pub lacks_table: bool,
    /// Numbers of visible parts and of their rows that the states count; `None` where [`counted`] has none.
    pub counted: Option<PartCounts>,
}

impl View {
    /// Whether the table has no row.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty() && self.staged.is_empty() && self.rows.is_empty()
    }
}

/// An upload that the state names.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Staged {
    id: Uuid,
    /// Its place below DATA.
    path: Path,
}

/// The state that a reader opens.
#[derive(Clone, Copy)]
pub enum State<'a> {
    /// That of data which another process may own.
    Foreign(&'a Location),
    /// That of data which this process owns.
    Own(&'a dyn Store),
}

impl State<'_> {
    fn objects(self, folder: &Path) -> Result<Arc<dyn ObjectStore>, ViewError> {
        match self {
            State::Foreign(location) => location.object_store().map_err(|source| not_listed(folder, source)),
            State::Own(store) => Ok(Arc::clone(store.objects()?.object_store())),
        }
    }

    /// The upload of a record.
    fn upload(self, experiment: &str, table: Table, record: &RowsRecord) -> Result<Option<Staged>, StoreError> {
        let private = match self {
            State::Foreign(location) => location.private_dir(),
            State::Own(store) => store.objects()?.private_dir().clone(),
        };
        let staged = |id| Staged { id, path: staged_object(&private, experiment, table, id) };
        Ok(record.upload.map(|upload| staged(*upload.part_id)))
    }

    /// What decides which rows are in parts, and then the unpublished rows if they are wanted.
    async fn read(self, name: &str, table: Table, rows: bool) -> Result<(Loaded, Vec<RowsRecord>), StoreError> {
        let base = base_name(name);
        match self {
            State::Foreign(location) => {
                let state = ReadOnly::open(location).await?;
                let loaded = state.load_of(base).await?;
                let rows = if rows { state.rows(name, table, 0, u64::MAX).await? } else { Vec::new() };
                state.close().await?;
                Ok((loaded, rows))
            }
            State::Own(store) => {
                let loaded = store.load_of(base).await?;
                Ok((loaded, if rows { store.rows(name, table, 0, u64::MAX).await? } else { Vec::new() }))
            }
        }
    }
}

/// Why a table could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names of fields say what they are")]
pub enum ViewError {
    /// The state or the rows in it could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The shards of the experiment could not be found.
    #[error(transparent)]
    Shards(#[from] ShardError),
    /// The parts could not be listed.
    #[error("the parts in {folder} cannot be listed")]
    List { folder: String, source: object_store::Error },
    /// Parts were published or split faster than they could be listed. Retryable.
    #[error("parts of {experiment}/{table} are published or split faster than they can be listed: try again")]
    ConcurrentChange { experiment: String, table: Table },
}

/// Reads one table. See the module for the order.
pub async fn read_table(location: &Location, experiment: &str, table: Table) -> Result<View, ViewError> {
    let folder = layout::table_dir(experiment, table.name());
    let sharded = shards::find(location, base_name(experiment)).await?;
    let places = match &sharded {
        Some(record) => shards::begun(location, record).await?.into_iter().map(|(_, place)| place).collect(),
        None => vec![location.clone()],
    };
    let states: Vec<State<'_>> = places.iter().map(State::Foreign).collect();
    let objects = State::Foreign(location).objects(&folder)?;
    let view = look(&states, &objects, experiment, table, true).await?;
    Ok(View { known: view.known || sharded.is_some(), ..view })
}

/// Reads one table, without the bytes of uploads. An upload that is found later still has its rows, because uploads never
/// change; one that is missing later is in a part, and the table must be looked at again.
pub async fn read_table_without_uploads(state: State<'_>, experiment: &str, table: Table) -> Result<View, ViewError> {
    let objects = state.objects(&layout::table_dir(experiment, table.name()))?;
    look(&[state], &objects, experiment, table, false).await
}

/// Reads one table of these states, with the bytes of its uploads or without. An upload is deleted after the commit that closes
/// its intent: one that was missing before the state was read, and that this state still names, is lost.
async fn look(
    states: &[State<'_>],
    objects: &Arc<dyn ObjectStore>,
    experiment: &str,
    table: Table,
    bytes: bool,
) -> Result<View, ViewError> {
    let folder = layout::table_dir(experiment, table.name());
    let mut missing = BTreeSet::new();
    for _ in 0..LOOKS_MAX {
        let (mut view, uploads) = retry_snapshot(states, objects, experiment, table).await?;
        let mut gone = BTreeSet::new();
        for upload in uploads {
            match fetch(&**objects, &upload.path, bytes).await.map_err(|source| not_listed(&folder, source))? {
                Some(found) if bytes => view.staged.push((upload.path, found)),
                Some(_) => {}
                None => drop(gone.insert(upload)),
            }
        }
        if gone.is_subset(&missing) {
            let lost =
                |record: &RowsRecord| record.upload.is_some_and(|of| gone.iter().any(|one| one.id == *of.part_id));
            let (rows, kept): (Vec<_>, Vec<_>) = view.rows.into_iter().partition(lost);
            view.rows = kept;
            let left_out = rows.iter().map(RowsRecord::live_rows).sum::<u64>();
            view.counted.iter_mut().for_each(|counted| counted.left_out += left_out);
            return Ok(view);
        }
        missing.append(&mut gone);
    }
    Err(ViewError::ConcurrentChange { experiment: experiment.to_owned(), table })
}

/// Reads one table of these states, with the places of its uploads.
async fn retry_snapshot(
    states: &[State<'_>],
    objects: &Arc<dyn ObjectStore>,
    experiment: &str,
    table: Table,
) -> Result<(View, Vec<Staged>), ViewError> {
    let mut last = ViewError::ConcurrentChange { experiment: experiment.to_owned(), table };
    for attempt in 0..LOOKS_MAX {
        if attempt > 0 {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        match try_snapshot(states, &**objects, experiment, table).await {
            Ok(Some(view)) => return Ok(view),
            Ok(None) => last = ViewError::ConcurrentChange { experiment: experiment.to_owned(), table },
            // The owner may have deleted files of the state before this attempt had read them.
            Err(error @ ViewError::Store(StoreError::Corrupt { .. })) if may_be_owned(states).await => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

/// Whether another process may be writing one of these states.
async fn may_be_owned(states: &[State<'_>]) -> bool {
    for state in states {
        if let State::Foreign(location) = state
            && !matches!(owner::look(location).await, Ok(None | Some(Owner { alive: Some(false), .. })))
        {
            return true;
        }
    }
    false
}

/// One attempt; `None` if parts were published or split meanwhile.
async fn try_snapshot(
    states: &[State<'_>],
    objects: &dyn ObjectStore,
    experiment: &str,
    table: Table,
) -> Result<Option<(View, Vec<Staged>)>, ViewError> {
    let folder = layout::table_dir(experiment, table.name());
    let before = read_all(states, experiment, table, true).await?;
    let listed = list(objects, &folder).await.map_err(|source| not_listed(&folder, source))?;
    let after = read_all(states, experiment, table, false).await?;
    let base = base_name(experiment);
    let splits = |loaded: &Loaded| loaded.splits.iter().any(|split| split.experiment == base);
    let mut pairs = before.iter().zip(&after).map(|((before, _), (after, _))| (before, after));
    let changed = |(before, after): (&Loaded, &Loaded)| {
        totals(before, base, table) != totals(after, base, table) || splits(before) || splits(after)
    };
    if pairs.any(changed) {
        return Ok(None);
    }
    let records = || after.iter().flat_map(|(after, _)| &after.experiments);
    let known = records().any(|record| record.name == base);
    let own = records().find(|record| record.name == experiment);
    let lacks_table = table.is_optional() && own.is_some_and(|record| !record.tables().any(|asked| asked == table));
    let open = before.iter().chain(&after).flat_map(|(loaded, _)| intents(loaded, experiment, table));
    let twice: BTreeSet<Path> = open.map(|intent| part_path(experiment, table, *intent.part_id)).collect();
    let parts = listed.into_iter().filter(|part| !twice.contains(&part.path)).collect();
    let of_state = |(state, (_, rows)): (&State<'_>, &(Loaded, Vec<RowsRecord>))| {
        rows.iter().filter_map(|record| state.upload(experiment, table, record).transpose()).collect::<Vec<_>>()
    };
    let counted = counted(after.iter().map(|(after, _)| after), experiment, table);
    let uploads = states.iter().zip(&before).flat_map(of_state).collect::<Result<_, _>>()?;
    let rows = before.into_iter().flat_map(|(_, rows)| rows).collect();
    Ok(Some((View { parts, staged: Vec::new(), rows, known, lacks_table, counted }, uploads)))
}

/// Reads the states, and the unpublished rows in them if they are wanted.
async fn read_all(
    states: &[State<'_>],
    experiment: &str,
    table: Table,
    rows: bool,
) -> Result<Vec<(Loaded, Vec<RowsRecord>)>, StoreError> {
    let read = states.iter().map(|state| state.read(experiment, table, rows));
    stream::iter(read.collect::<Vec<_>>()).buffered(STATES_AT_ONCE).try_collect().await
}

fn not_listed(folder: &Path, source: object_store::Error) -> ViewError {
    ViewError::List { folder: folder.to_string(), source }
}

/// The bytes of an upload if they are wanted; `None` if it is not there.
async fn fetch(objects: &dyn ObjectStore, path: &Path, bytes: bool) -> Result<Option<Bytes>, object_store::Error> {
    let found = async {
        match bytes {
            true => objects.get(path).await?.bytes().await,
            false => objects.head(path).await.map(|_| Bytes::new()),
        }
    };
    match found.await {
        Ok(found) => Ok(Some(found)),
        Err(object_store::Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The parts in a table's folder, by name.
pub async fn list(objects: &dyn ObjectStore, folder: &Path) -> Result<BTreeSet<StoredPart>, object_store::Error> {
    let found: Vec<_> = objects.list(Some(folder)).try_collect().await?;
    let parts = found.into_iter().filter(|object| layout::is_part(folder, &object.location));
    Ok(parts.map(|object| StoredPart { path: object.location, bytes: object.size }).collect())
}

fn intents<'a>(loaded: &'a Loaded, experiment: &'a str, table: Table) -> impl Iterator<Item = &'a Intent> {
    loaded.intents.iter().filter(move |intent| intent.experiment == experiment && intent.table() == table)
}

/// The visible parts of a table that these states count. `None` if no state has the experiment of this name, or its parts are
/// being removed.
pub fn counted<'a>(
    states: impl Iterator<Item = &'a Loaded> + Clone,
    experiment: &str,
    table: Table,
) -> Option<PartCounts> {
    let known = states.clone().any(|state| state.experiments.iter().any(|record| record.name == experiment));
    let leaves = states.clone().any(|state| state.leaving.iter().any(|record| record.experiment == experiment));
    let add = |sum: PartCounts, of: &Totals| PartCounts {
        parts: sum.parts + of.parts,
        rows: sum.rows + of.rows,
        left_out: sum.left_out + of.rows_left_out,
    };
    let totals = states.filter_map(|state| totals(state, experiment, table));
    (known && !leaves).then(|| totals.fold(PartCounts::default(), add))
}

fn totals<'a>(loaded: &'a Loaded, experiment: &str, table: Table) -> Option<&'a Totals> {
    loaded.totals.iter().find(|totals| totals.experiment == experiment && totals.table() == table)
}
