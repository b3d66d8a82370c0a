//! Sharded experiments: processes without a coordinator between them, each with a share of the tasks.
//!
//! A shard is a farm of its own, with its state in a folder of its own. Shards have in common the dataset, where a part's
//! random id keeps parts apart, and one record that nobody changes: the number of shards, the manifest and the pins.
//! The first shard creates it, and every shard compares itself with it, so that their shares fit together.
//!
//! An experiment is sharded or coordinated, never both: either would run the other's tasks again. A coordinator looks
//! for the record before and after its state has a new experiment; a shard creates the record and then looks into that
//! state. So of two that begin at the same time, one sees the other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use object_store::path::Path;
use object_store::{Error as ObjectError, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload};
use powersweep_experiments::{Digest, Manifest, Shard, Sweep, difference, shown_differences};
use powersweep_results::layout::{shard_dir, shards_dir};
use serde::{Deserialize, Serialize};

use crate::farm::pins;
use crate::owner::{self, Owner, OwnerError};
use crate::probe::{ProbeError, probe};
use crate::records::Loaded;
use crate::store::{Location, Objects, ReadOnly, StoreError, shard_name};

/// Version of the record's format.
const VERSION: u32 = 1;

/// The record's file, beside the folders of the shards.
const FILE: &str = "shards.json";

/// States of shards that are opened at the same time.
const AT_ONCE: usize = 8;

/// The record of a sharded experiment: what its shards agree on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardRecord {
    version: u32,
    division: u32,
    /// Name of the experiment.
    pub experiment: String,
    /// Number of shards.
    pub of: u32,
    /// Text of the manifest.
    pub manifest: String,
    digests: BTreeMap<String, String>,
    component_versions: BTreeMap<String, u32>,
    tasks_schema: u64,
}

/// Why a shard cannot run, or a sharded experiment cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names of fields say what they are")]
pub enum ShardError {
    /// The experiment has another number of shards. Final.
    #[error(
        "{experiment} is divided into {pinned} shards in {data}, so --of {given} would run tasks twice or never: use --of \
         {pinned}, or give the manifest another name"
    )]
    Number { experiment: String, data: String, pinned: u32, given: u32 },
    /// The manifest is another one. Final.
    #[error(
        "the shards of {experiment} in {data} run another manifest. The manifests differ:\n  {differences}\nUndo the edit, \
         or give the manifest another name"
    )]
    Manifest { experiment: String, data: String, differences: String },
    /// This build or the logs would give other rows. Final for this build.
    #[error(
        "{experiment} has shards in {data} that this one does not fit: {differences}. Give the manifest another name"
    )]
    Pins { experiment: String, data: String, differences: String },
    /// The state of `run` and coordinators has the experiment. Final.
    #[error(
        "{experiment} belongs to the coordinator of {data}, and an experiment is sharded or coordinated, never both: \
         `powersweep run` or `powersweep submit` continues it. To run it in shards, give the manifest another name"
    )]
    Coordinated { experiment: String, data: String },
    /// There are rows, and neither shards nor a state. Final.
    #[error(
        "{data} has rows of {experiment}, but neither a coordinator's state nor shards of it: move them to another folder, \
         or give the manifest another name"
    )]
    Rows { experiment: String, data: String },
    /// The record cannot be read. Final for this version.
    #[error("{path} in {data} cannot be used: {reason}")]
    Record { data: String, path: String, reason: String },
    /// Storage failed. Retryable.
    #[error("storage failed: {op} {path} in {data}")]
    Storage { data: String, op: &'static str, path: String, source: Box<ObjectError> },
    /// The data cannot be used.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// A state could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An owner record could not be read.
    #[error(transparent)]
    Owner(#[from] OwnerError),
}

impl ShardError {
    /// Whether the data is at fault, and not the caller's manifest or number of shards.
    pub fn is_of_storage(&self) -> bool {
        !matches!(
            self,
            ShardError::Number { .. }
                | ShardError::Manifest { .. }
                | ShardError::Pins { .. }
                | ShardError::Coordinated { .. }
                | ShardError::Rows { .. }
        )
    }
}

impl ShardRecord {
    fn new(sweep: &Sweep, digests: &BTreeMap<String, Digest>, of: u32) -> ShardRecord {
        ShardRecord {
            version: VERSION,
            division: Shard::DIVISION,
            experiment: sweep.manifest().name().to_owned(),
            of,
            manifest: sweep.manifest().text().to_owned(),
            digests: digests.iter().map(|(log, digest)| (log.clone(), digest.to_string())).collect(),
            component_versions: pins::component_versions(sweep),
            tasks_schema: pins::tasks_schema(),
        }
    }

    /// Its shards.
    pub fn shards(&self) -> impl Iterator<Item = Shard> {
        Shard::all(self.of)
    }

    /// The sweep of all shards.
    ///
    /// # Errors
    /// The reason, if this build cannot use the manifest.
    pub fn sweep(&self) -> Result<Sweep, String> {
        let manifest = Manifest::parse("the manifest of the shards", &self.manifest).map_err(|e| e.to_string())?;
        let digest = |(log, digest): (&String, &String)| Ok((log.clone(), digest.parse::<Digest>()?));
        let digests = self.digests.iter().map(digest).collect::<Result<_, powersweep_experiments::DigestError>>();
        Sweep::new(manifest, digests.map_err(|error| error.to_string())?).map_err(|error| error.to_string())
    }

    /// Whether a manifest and this build fit the shards that there are.
    pub fn check(
        &self,
        sweep: &Sweep,
        digests: &BTreeMap<String, Digest>,
        location: &Location,
    ) -> Result<(), ShardError> {
        self.compare(&ShardRecord::new(sweep, digests, self.of), location.to_string())
    }

    /// Compares the record with the one that this process would have made.
    fn compare(&self, own: &ShardRecord, data: String) -> Result<(), ShardError> {
        let experiment = self.experiment.clone();
        if self.of != own.of {
            return Err(ShardError::Number { experiment, data, pinned: self.of, given: own.of });
        }
        let parsed = |text: &str| Manifest::parse("manifest", text).ok();
        let differences = match (parsed(&self.manifest), parsed(&own.manifest)) {
            (Some(pinned), Some(given)) => difference(&pinned, &given),
            _ => vec!["this version cannot read the other manifest".to_owned()],
        };
        if !differences.is_empty() {
            return Err(ShardError::Manifest { experiment, data, differences: shown_differences(differences) });
        }
        let mut differences = pins::changed(&self.component_versions, &own.component_versions);
        let logs = own.digests.iter().filter(|(log, digest)| self.digests.get(*log) != Some(digest));
        differences.extend(logs.map(|(log, _)| format!("log {log} has other content than for the first shard")));
        if self.tasks_schema != own.tasks_schema {
            differences.push("this build has other columns in the tasks table".to_owned());
        }
        if self.division != own.division {
            differences.push("this build divides sweeps in another way".to_owned());
        }
        match differences.is_empty() {
            true => Ok(()),
            false => Err(ShardError::Pins { experiment, data, differences: differences.join("; ") }),
        }
    }
}

/// Access to the records of one DATA.
struct Records<'a> {
    store: &'a dyn ObjectStore,
    data: String,
}

impl Records<'_> {
    fn failed(&self, op: &'static str, path: &Path) -> impl Fn(ObjectError) -> ShardError {
        let (data, path) = (self.data.clone(), path.to_string());
        move |source| ShardError::Storage { data: data.clone(), op, path: path.clone(), source: Box::new(source) }
    }

    async fn find(&self, experiment: &str) -> Result<Option<ShardRecord>, ShardError> {
        let path = shard_dir(experiment, FILE);
        let bytes = match self.store.get(&path).await {
            Ok(found) => found.bytes().await.map_err(self.failed("read", &path))?,
            Err(ObjectError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(self.failed("read", &path)(error)),
        };
        let unusable = |reason: String| ShardError::Record { data: self.data.clone(), path: path.to_string(), reason };
        let record: ShardRecord = serde_json::from_slice(&bytes).map_err(|error| unusable(error.to_string()))?;
        match record.version {
            VERSION => Ok(Some(record)),
            other => Err(unusable(format!("its format {other} is of another version of powersweep"))),
        }
    }

    /// Creates a record. False if there is one already.
    async fn create(&self, record: &ShardRecord) -> Result<bool, ShardError> {
        let path = shard_dir(&record.experiment, FILE);
        let bytes = Bytes::from(serde_json::to_vec_pretty(record).expect("a record of texts and numbers becomes JSON"));
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        match self.store.put_opts(&path, PutPayload::from_bytes(bytes), options).await {
            Ok(_) => Ok(true),
            Err(ObjectError::AlreadyExists { .. }) => Ok(false),
            Err(error) => Err(self.failed("create", &path)(error)),
        }
    }
}

/// The record of a sharded experiment; `None` if the experiment is not sharded.
pub async fn find(location: &Location, experiment: &str) -> Result<Option<ShardRecord>, ShardError> {
    match open(location)? {
        Some(store) => Records { store: &*store, data: location.to_string() }.find(experiment).await,
        None => Ok(None),
    }
}

/// Reads the record of an experiment's shards from an object store rooted at DATA.
pub(crate) async fn find_in(store: &dyn ObjectStore, experiment: &str) -> Result<Option<ShardRecord>, ShardError> {
    Records { store, data: store.to_string() }.find(experiment).await
}

/// The object store of DATA; `None` for a folder that does not exist.
fn open(location: &Location) -> Result<Option<Arc<dyn ObjectStore>>, ShardError> {
    if location.path().is_some_and(|path| !path.exists()) {
        return Ok(None);
    }
    let data = location.to_string();
    let failed = |source| ShardError::Storage { path: data.clone(), data, op: "open", source: Box::new(source) };
    location.object_store().map(Some).map_err(failed)
}

/// The names of the sharded experiments.
pub async fn names(location: &Location) -> Result<Vec<String>, ShardError> {
    let Some(store) = open(location)? else { return Ok(Vec::new()) };
    folders(&*store, location, &shards_dir()).await
}

/// The names of the folders in a folder.
async fn folders(store: &dyn ObjectStore, location: &Location, folder: &Path) -> Result<Vec<String>, ShardError> {
    let records = Records { store, data: location.to_string() };
    let found = store.list_with_delimiter(Some(folder)).await.map_err(records.failed("list", folder))?;
    Ok(found.common_prefixes.iter().filter_map(|path| Some(path.filename()?.to_owned())).collect())
}

/// Makes sure that a shard of this number fits the others, and returns the record. The first shard creates it.
pub async fn pin(
    location: &Location,
    sweep: &Sweep,
    digests: &BTreeMap<String, Digest>,
    of: u32,
) -> Result<ShardRecord, ShardError> {
    if location.path().is_some_and(|path| !path.exists()) {
        probe(location).await?;
    }
    let own = ShardRecord::new(sweep, digests, of);
    let (experiment, data) = (own.experiment.clone(), location.to_string());
    let store = open(location)?.ok_or_else(|| gone(location))?;
    let records = Records { store: &*store, data: data.clone() };
    let mut created = false;
    let record = match records.find(&experiment).await? {
        Some(record) => record,
        None if is_coordinated(location, &experiment).await? => {
            return Err(ShardError::Coordinated { experiment, data });
        }
        None if Objects::new(Arc::clone(&store), None).has_parts(&experiment).await? => {
            // A shard that began at the same time may have published them.
            records
                .find(&experiment)
                .await?
                .ok_or(ShardError::Rows { experiment: experiment.clone(), data: data.clone() })?
        }
        None => {
            created = records.create(&own).await?;
            records.find(&experiment).await?.ok_or_else(|| gone(location))?
        }
    };
    record.compare(&own, data.clone())?;
    if is_coordinated(location, &experiment).await? {
        if created {
            let path = shard_dir(&experiment, FILE);
            store.delete(&path).await.map_err(records.failed("delete", &path))?;
        }
        return Err(ShardError::Coordinated { experiment, data });
    }
    Ok(record)
}

/// The data disappeared while it was used.
fn gone(location: &Location) -> ShardError {
    let (data, path) = (location.to_string(), shards_dir().to_string());
    ShardError::Record { data, path, reason: "it was deleted by another process".to_owned() }
}

/// Whether the state of `run` and coordinators has an experiment.
async fn is_coordinated(location: &Location, experiment: &str) -> Result<bool, StoreError> {
    let state = ReadOnly::open(location).await?;
    let loaded = state.load_of(experiment).await?;
    state.close().await?;
    Ok(loaded.experiments.iter().any(|record| record.name == experiment))
}

/// The shards of an experiment that have begun, with the places of their states.
pub async fn begun(location: &Location, record: &ShardRecord) -> Result<Vec<(Shard, Location)>, ShardError> {
    let Some(store) = open(location)? else { return Ok(Vec::new()) };
    let folder = shards_dir().join(record.experiment.as_str());
    let found: BTreeSet<String> = folders(&*store, location, &folder).await?.into_iter().collect();
    let begun = record.shards().filter(|shard| found.contains(&shard_name(*shard)));
    Ok(begun.map(|shard| (shard, location.shard(&record.experiment, shard))).collect())
}

/// A shard and its state.
#[derive(Debug)]
pub struct ShardState {
    /// The shard.
    pub shard: Shard,
    /// Its state without unpublished rows; empty before it has begun.
    pub loaded: Loaded,
    /// The process that runs or ran it; `None` before it has begun, and after it has ended well.
    pub owner: Option<Owner>,
    /// Whether it has begun.
    pub begun: bool,
}

/// The states of all shards of an experiment, in order.
pub async fn states(location: &Location, record: &ShardRecord) -> Result<Vec<ShardState>, ShardError> {
    let begun: BTreeMap<u32, Location> =
        begun(location, record).await?.into_iter().map(|(shard, place)| (shard.index(), place)).collect();
    let state = |shard: Shard| {
        let place = begun.get(&shard.index()).cloned();
        async move {
            let Some(place) = place else {
                return Ok(ShardState { shard, loaded: Loaded::default(), owner: None, begun: false });
            };
            let owner = owner::look(&place).await?;
            let state = ReadOnly::open(&place).await?;
            let loaded = state.load().await?;
            state.close().await?;
            Ok(ShardState { shard, loaded, owner, begun: true })
        }
    };
    stream::iter(record.shards().collect::<Vec<_>>()).map(state).buffered(AT_ONCE).try_collect().await
}
