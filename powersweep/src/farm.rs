//! A coordinator in this process: opens the data, serves, ends.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use powersweep_coordinator::access::Authority;
use powersweep_coordinator::owner::{OwnerError, Ownership, SHARED_STALE_AFTER};
use powersweep_coordinator::store::{self, Location, OPEN_TIME, OpenError, SlateStore, Store, StoreError, open};
use powersweep_coordinator::{Config, Handle, LogSource, ServeError, ServeOptions, serve};
use powersweep_dataset::{Error, Kind, Notes, OrKind, failure};
use powersweep_experiments::plain::chain;
use powersweep_experiments::{Digest, Shard};
use powersweep_proto::access::{Role, Source};
use powersweep_proto::client::Address;
use tokio_util::sync::CancellationToken;

use crate::inputs::Files;
use crate::place::access;

/// A start that takes longer is explained by a note.
const OPENING_PATIENCE: Duration = Duration::from_secs(30);

/// An end that takes longer is explained by a note: workers may be finishing long tasks, or the storage is full.
const ENDING_PATIENCE: Duration = Duration::from_secs(3);

/// How a coordinator of this process runs.
pub struct CoordinatorOptions {
    /// Folder or object store of results and state.
    pub data: String,
    /// Address to listen on.
    pub listen: SocketAddr,
    /// Further addresses at which it can be reached.
    pub advertise: Vec<String>,
    /// Loopback address of the metrics.
    pub metrics: Option<SocketAddr>,
    /// Address at which KEDA asks for the number of workers.
    pub scaler: Option<SocketAddr>,
    /// Serve without encryption.
    pub insecure: bool,
    /// Let workers send uploads to the object store themselves.
    pub direct_uploads: bool,
    /// Take the data over from a live owner.
    pub take_over: bool,
    /// Set if workers of this process run one sweep.
    pub local: Option<OneSweep>,
    /// Set if it runs one shard of that sweep.
    pub shard: Option<Shard>,
    /// Where notes go: sentences for people.
    pub notes: Notes,
}

impl CoordinatorOptions {
    /// A coordinator for this machine: a free port of the loopback interface.
    pub fn on_loopback(data: impl Into<String>, notes: Notes) -> CoordinatorOptions {
        CoordinatorOptions {
            data: data.into(),
            listen: ([127, 0, 0, 1], 0).into(),
            advertise: Vec::new(),
            metrics: None,
            scaler: None,
            insecure: false,
            direct_uploads: false,
            take_over: false,
            local: None,
            shard: None,
            notes,
        }
    }

    /// The place of the state.
    fn location(&self) -> Result<Location, Error> {
        let location = Location::parse(&self.data).or_kind(Kind::Usage)?;
        Ok(match (&self.local, self.shard) {
            (Some(local), Some(shard)) => location.shard(&local.experiment, shard),
            _ => location,
        })
    }
}

/// The one sweep of a coordinator. Leases in the state are dropped, and its other sweeps are not continued.
pub struct OneSweep {
    /// Name of the experiment.
    pub experiment: String,
    /// Digests of its logs.
    pub digests: BTreeSet<Digest>,
    /// Its logs, read from their files; `None` without any.
    pub logs: Option<Arc<LogSource>>,
}

impl OneSweep {
    /// The sweep of this experiment with the files of its manifest.
    pub(crate) fn of(experiment: &str, files: &Files) -> OneSweep {
        let (digests, logs) = (files.digests.values().copied().collect(), files.source.clone());
        OneSweep { experiment: experiment.to_owned(), digests, logs }
    }
}

/// A coordinator that runs in this process.
pub struct LocalCoordinator {
    /// The data folder or object store.
    pub location: Location,
    handle: Handle,
    ownership: Ownership,
    stop: CancellationToken,
}

impl LocalCoordinator {
    /// Takes ownership of the data and starts serving. If another coordinator owns the data, the error names it.
    /// `interrupt` ends a start that hangs on damaged or slow storage.
    pub async fn start(options: CoordinatorOptions, interrupt: &CancellationToken) -> Result<LocalCoordinator, Error> {
        let (data, notes) = (options.data.clone(), options.notes.clone());
        let patience = tokio::time::sleep(patience(&data));
        let opening = LocalCoordinator::open(options);
        tokio::pin!(opening);
        tokio::pin!(patience);
        loop {
            tokio::select! {
                farm = &mut opening => return farm,
                () = &mut patience, if !patience.is_elapsed() => {
                    let limit = OPEN_TIME.as_secs();
                    notes.say(&format!(
                        "still opening {data}: its storage is slow, or its state is damaged; the limit is {limit} s"
                    ));
                }
                () = interrupt.cancelled() => {
                    return Err(failure!(Interrupted, "interrupted while opening {data}; nothing was changed. Run the same command again"));
                }
            }
        }
    }

    async fn open(options: CoordinatorOptions) -> Result<LocalCoordinator, Error> {
        let location = options.location()?;
        port_is_free(options.listen)?;
        if options.direct_uploads && location.path().is_some() {
            return Err(failure!(
                Usage,
                "--direct-uploads needs data in an object store (s3://, gs:// or az://), and {location} is a folder"
            ));
        }
        let (store, ownership) = open(&location, "", options.take_over).await.map_err(opening)?;
        let store: Arc<SlateStore> = Arc::new(store);
        let stop = CancellationToken::new();
        let serving = async {
            // A shard has no other caller than this process.
            let access = match options.shard {
                Some(_) => Authority::in_memory(),
                None => Authority::open(&location)?,
            };
            let access = Arc::new(access);
            let local = options.local.as_ref();
            let serving = ServeOptions {
                listen: options.listen,
                access,
                advertise: options.advertise,
                insecure: options.insecure,
                metrics: options.metrics,
                scaler: options.scaler,
                config: Config {
                    shard: options.shard,
                    forget_leases: local.is_some(),
                    only: local.map(|local| local.experiment.clone()),
                    readable_logs: local.map(|local| local.digests.clone()).unwrap_or_default(),
                    direct_uploads: options.direct_uploads,
                    data: location.to_string(),
                    build: crate::BUILD.to_owned(),
                    ..Config::default()
                },
                log_source: local.and_then(|local| local.logs.clone()),
                ..ServeOptions::local(store.clone())
            };
            serve(serving, stop.clone()).await
        };
        match serving.await {
            Ok(handle) => {
                ownership.set_endpoint(handle.access(Role::Client).addresses.first().map_or("", String::as_str));
                Ok(LocalCoordinator { location, handle, ownership, stop })
            }
            Err(error) => {
                let _ = tokio::time::timeout(ENDING_PATIENCE, store.close()).await;
                ownership.release().await;
                Err(serving_failed(&error))
            }
        }
    }

    /// How callers of a role within this process reach it.
    pub fn address(&self, role: Role) -> Address {
        let access = Source::Given(Box::new(self.handle.access(role)));
        Address::of(access, role)
    }

    /// The coordinator's address and requests.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Resolves when another coordinator has taken the data over.
    pub async fn lost(&self) {
        let mut lost = self.ownership.lost();
        if lost.wait_for(Option::is_some).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Resolves when the coordinator has ended by itself: an upgrade was prepared, or it failed.
    pub async fn ended(&self) {
        self.handle.ended().await;
    }

    /// Publishes finished rows, closes the state and releases the ownership.
    pub async fn end(self) -> Result<(), Error> {
        self.stop.cancel();
        let result = self.handle.wait().await;
        self.ownership.release().await;
        result.map_err(|error| serving_failed(&error))
    }
}

/// Waits for an end, and explains one that takes long.
pub async fn explained<T>(ending: impl Future<Output = T>, notes: &Notes) -> T {
    tokio::pin!(ending);
    tokio::select! {
        result = &mut ending => result,
        () = tokio::time::sleep(ENDING_PATIENCE) => {
            notes.say(
                "still ending: finished rows are being written. A second Ctrl-C ends at once; tasks whose rows \
                 are not written by then run again",
            );
            ending.await
        }
    }
}

/// The time after which a start is explained. On a shared file system it may watch an owner's record, which it says.
fn patience(data: &str) -> Duration {
    let shared = Location::parse(data).is_ok_and(|location| location.kind() == store::Kind::Shared);
    if shared { SHARED_STALE_AFTER + OPENING_PATIENCE } else { OPENING_PATIENCE }
}

/// Reports a taken port before the data is opened. If another program takes the port later, `serve` fails with the same
/// error.
pub fn port_is_free(listen: SocketAddr) -> Result<(), Error> {
    match std::net::TcpListener::bind(listen) {
        Ok(_) => Ok(()),
        Err(source) => Err(serving_failed(&ServeError::Listen { address: listen, source })),
    }
}

/// Why the data could not be opened.
pub fn opening(error: OpenError) -> Error {
    let kind = match &error {
        OpenError::Owner(OwnerError::Held { .. }) => Kind::Owned,
        OpenError::Store(StoreError::Fenced { .. }) => Kind::Fenced,
        _ => Kind::Storage,
    };
    let mut message = chain(&error);
    if kind == Kind::Storage && !message.contains("--data") && !message.contains("--set-aside") {
        message.push_str("\nif this cannot be repaired, choose another place with --data");
    }
    Error::new(kind, message)
}

fn serving_failed(error: &ServeError) -> Error {
    let kind = match error {
        ServeError::Listen { .. } | ServeError::Server(_) => Kind::Network,
        ServeError::OpenMetrics { .. } => Kind::Usage,
        ServeError::Access(error) => return access::refused(error),
        ServeError::Store(store) if store.is_lost_ownership() => Kind::Fenced,
        ServeError::Store(_) | ServeError::DirectUploads { .. } | ServeError::Unfinished { .. } => Kind::Storage,
        _ => Kind::Failure,
    };
    let hint = if kind == Kind::Network { "; choose another address with --listen" } else { "" };
    Error::new(kind, format!("{}{hint}", chain(error)))
}
