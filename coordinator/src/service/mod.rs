//! The coordinator as a service: a gRPC server and one driver task.
//!
//! [`serve`] starts a [driver](driver) that owns the [`Farm`](crate::farm::Farm) and the store, and a gRPC server whose
//! calls become the driver's events. The [`Handle`] makes the same requests within this process.

mod admission;
mod audit;
mod auth;
mod command;
mod content;
mod dataset_work;
mod direct;
mod driver;
mod limits;
mod listen;
mod metrics;
mod pace;
mod reading;
mod refusals;
mod requests;
mod rpc;
mod scaler;
mod uploads;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use powersweep_proto::access::{Access, AccessError, Role};
use powersweep_proto::connections::Connections;
use powersweep_proto::v1;
use powersweep_proto::v1::farm_server::FarmServer;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use tonic::server::NamedService;
use tonic::transport::Server;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

pub use requests::{LogSource, Requests};

use self::admission::Admission;
use self::metrics::Counters;
use crate::access::{Authority, reachable};
use crate::farm::Config;
use crate::store::{Store, StoreError};

/// Maximum size of one gRPC message, in bytes: a hand-in of 65,536 rows, or a manifest.
pub const MESSAGE_BYTES_MAX: usize = 32 << 20;

/// Maximum size of a message to the services that need no token, in bytes.
const OPEN_BYTES_MAX: usize = 4 << 10;

/// Maximum size of a manifest, in bytes.
pub const MANIFEST_BYTES_MAX: usize = 4 << 20;

/// Maximum size of a log after decompression, in bytes.
pub const LOG_BYTES_MAX: u64 = 2 << 30;

/// Bytes of one message of a streamed log or table.
pub const CHUNK_BYTES: u64 = 256 << 10;

/// Silence after which a peer gets a keep-alive ping.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
/// Time after which a connection without an answer to the ping is closed.
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(20);
/// Flow-control windows of a stream and of a connection: bytes that are in memory before they are read. A thousand workers
/// fill them at the same time.
const STREAM_WINDOW_BYTES: u32 = 128 << 10;
const WINDOW_BYTES: u32 = 512 << 10;
/// Maximum number of calls at a time over one connection: a worker has its session, two uploads, and a log for each
/// slot.
const STREAMS_MAX: u32 = 256;
/// Maximum size of the headers of a call, in bytes.
const HEADERS_BYTES_MAX: u32 = 16 << 10;
/// Interval at which unused logs and uploads are deleted.
const COLLECT_INTERVAL: Duration = Duration::from_secs(3600);
/// How long open connections may take to receive their last answers.
const LAST_ANSWERS: Duration = Duration::from_millis(500);
/// How often changed tokens are taken in, and certificates renewed.
const ACCESS_INTERVAL: Duration = Duration::from_secs(1);

/// Settings and resources of a coordinator.
pub struct ServeOptions {
    /// The durable state, which this process owns.
    pub store: Arc<dyn Store>,
    /// Address to listen on; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Certificates and tokens.
    pub access: Arc<Authority>,
    /// Further addresses (`HOST:PORT`) at which this one can be reached, before those of this machine.
    pub advertise: Vec<String>,
    /// Unencrypted connections; callers need tokens all the same.
    pub insecure: bool,
    /// Loopback address of a listener with metrics for Prometheus.
    pub metrics: Option<SocketAddr>,
    /// Address of a listener that tells KEDA how many workers there is work for.
    pub scaler: Option<SocketAddr>,
    /// Time-outs and limits.
    pub config: Config,
    /// How long workers may finish running tasks after a shutdown began.
    pub drain_limit: Duration,
    /// Reads logs that were not uploaded: those of [`Config::readable_logs`].
    pub log_source: Option<Arc<LogSource>>,
}

impl ServeOptions {
    /// A coordinator on a free port of the loopback interface, whose access only this process has.
    pub fn local(store: Arc<dyn Store>) -> ServeOptions {
        ServeOptions {
            store,
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            access: Arc::new(Authority::in_memory()),
            advertise: Vec::new(),
            insecure: false,
            metrics: None,
            scaler: None,
            config: Config::default(),
            drain_limit: Duration::from_secs(5),
            log_source: None,
        }
    }
}

/// Why a coordinator could not start, or ended without a shutdown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names of fields say what they are")]
pub enum ServeError {
    /// The address is in use or not this machine's. Final.
    #[error("cannot listen on {address}: {source}")]
    Listen { address: SocketAddr, source: std::io::Error },
    /// The access files cannot be used or written. Final.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The address of the metrics is open to other machines. Final.
    #[error("{address} is open to other machines, and metrics need no token: give --metrics a loopback address")]
    OpenMetrics { address: SocketAddr },
    /// The data take no direct uploads: no object store, or one that signs no addresses. Final.
    #[error("{data} takes no direct uploads from workers; start without --direct-uploads")]
    DirectUploads { data: String, source: StoreError },
    /// The gRPC server failed.
    #[error("the gRPC server failed: {0}")]
    Server(tonic::transport::Error),
    /// The state cannot be used; the store's error says whether it is retryable, lost to another owner, or damaged.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Storage did not answer at the end. Acknowledged rows are stored; workers hand in the others again, or their tasks
    /// run again.
    #[error("{data}: {reason}; acknowledged rows are stored, and the next start continues with them")]
    Unfinished {
        data: String,
        /// The operation that did not end.
        reason: String,
    },
    /// A task of the coordinator panicked. A bug.
    #[error("the coordinator's {0} stopped unexpectedly")]
    Stopped(&'static str),
}

/// A running coordinator.
pub struct Handle {
    local_addr: SocketAddr,
    metrics_addr: Option<SocketAddr>,
    scaler_addr: Option<SocketAddr>,
    access: Arc<Authority>,
    requests: Requests,
    driver: JoinHandle<Result<(), ServeError>>,
    server: JoinHandle<Result<(), ServeError>>,
    ended: CancellationToken,
}

impl Handle {
    /// The address that it listens on.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// The address of its metrics.
    pub fn metrics_addr(&self) -> Option<SocketAddr> {
        self.metrics_addr
    }

    /// The address at which KEDA asks.
    pub fn scaler_addr(&self) -> Option<SocketAddr> {
        self.scaler_addr
    }

    /// How callers of a role reach it.
    pub fn access(&self, role: Role) -> Access {
        self.access.access(role)
    }

    /// Its certificates and tokens.
    pub fn authority(&self) -> &Authority {
        &self.access
    }

    /// The requests of clients, for callers in this process: they have the effects of those over gRPC. Cheap to clone.
    pub fn requests(&self) -> &Requests {
        &self.requests
    }

    /// Returns when the coordinator has closed its state, whatever the reason.
    pub async fn ended(&self) {
        self.ended.cancelled().await;
    }

    /// Waits for its end: after a shutdown or an upgrade was prepared, or with an error.
    pub async fn wait(self) -> Result<(), ServeError> {
        let driven = self.driver.await.unwrap_or(Err(ServeError::Stopped("driver")));
        let served = self.server.await.unwrap_or(Err(ServeError::Stopped("server")));
        driven.and(served)
    }
}

/// Loads the state and starts serving. Cancelling `shutdown` ends it in good order: no task is handed out, workers may
/// finish running tasks for `drain_limit`, rows are published, the store is closed.
pub async fn serve(options: ServeOptions, shutdown: CancellationToken) -> Result<Handle, ServeError> {
    let (listener, local_addr) = bind(options.listen).await?;
    let metrics = match options.metrics {
        Some(address) if !address.ip().is_loopback() => return Err(ServeError::OpenMetrics { address }),
        Some(address) => Some(bind(address).await?),
        None => None,
    };
    let scaler = match options.scaler {
        Some(address) => Some(bind(address).await?),
        None => None,
    };
    if options.config.direct_uploads {
        let probed = async { options.store.objects()?.probe_inbox().await };
        let data = options.config.data.clone();
        probed.await.map_err(|source| ServeError::DirectUploads { data, source })?;
    }
    let access = Arc::clone(&options.access);
    publish(&options, local_addr)?;
    let (reporter, health) = tonic_health::server::health_reporter();
    let (counters, (stalled, health_of)) = (Arc::new(Counters::default()), watch::channel(false));
    let (driver, requests) = driver::start(&options, Arc::clone(&counters), stalled, shutdown).await?;
    tokio::spawn(report_health(reporter, health_of));
    // The server ends after the driver, so that clients receive their last answers.
    let ended = CancellationToken::new();
    let driver = tokio::spawn({
        let ended = ended.clone();
        async move {
            let result = driver.await.unwrap_or(Err(ServeError::Stopped("driver")));
            ended.cancel();
            result
        }
    });
    let connections = Arc::new(Connections::default());
    let metrics_addr = metrics.as_ref().map(|(_, address)| *address);
    if let Some((listener, _)) = metrics {
        metrics::listen(listener, requests.clone(), Arc::clone(&counters), ended.clone());
    }
    let scaler_addr = scaler.as_ref().map(|(_, address)| *address);
    if let Some((listener, _)) = scaler {
        scaler::listen(listener, requests.clone(), ended.clone());
    }
    let rpc = rpc::Rpc::new(requests.clone(), Arc::clone(&counters), Arc::clone(&connections));
    let farm =
        FarmServer::new(rpc).max_decoding_message_size(MESSAGE_BYTES_MAX).max_encoding_message_size(MESSAGE_BYTES_MAX);
    let farm = Admission::new(farm, Arc::clone(&access), counters);
    let mut builder = Server::builder()
        .http2_keepalive_interval(Some(KEEPALIVE_INTERVAL))
        .http2_keepalive_timeout(Some(KEEPALIVE_TIMEOUT))
        .max_concurrent_streams(STREAMS_MAX)
        .http2_max_header_list_size(HEADERS_BYTES_MAX)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES);
    let tls = (!options.insecure).then(|| access.tls());
    let incoming = listen::incoming(listener, tls, connections);
    tokio::spawn(keep_access(Arc::clone(&access), ended.clone()));
    tokio::spawn(collect(requests.clone(), ended.clone()));
    let reflection_v1 = reflection().build_v1().expect("the descriptors were generated by this build");
    let reflection_v1alpha = reflection().build_v1alpha().expect("the descriptors were generated by this build");
    let router = builder
        .add_service(farm)
        .add_service(health.max_decoding_message_size(OPEN_BYTES_MAX))
        .add_service(reflection_v1.max_decoding_message_size(OPEN_BYTES_MAX))
        .add_service(reflection_v1alpha.max_decoding_message_size(OPEN_BYTES_MAX));
    let closed = ended.clone();
    let server = tokio::spawn(async move {
        let (ended, ended_too) = (closed.clone(), closed);
        let serving = router.serve_with_incoming_shutdown(incoming, async move { ended_too.cancelled().await });
        tokio::pin!(serving);
        tokio::select! {
            result = &mut serving => result.map_err(ServeError::Server),
            () = async { ended.cancelled().await; tokio::time::sleep(LAST_ANSWERS).await } => Ok(()),
        }
    });
    Ok(Handle { local_addr, metrics_addr, scaler_addr, access, requests, driver, server, ended })
}

async fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr), ServeError> {
    let failed = |source| ServeError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let local_addr = listener.local_addr().map_err(failed)?;
    Ok((listener, local_addr))
}

/// Tells health checks whether the farm works: not while storage stalls.
async fn report_health(reporter: HealthReporter, mut stalled: watch::Receiver<bool>) {
    loop {
        let serving = if *stalled.borrow_and_update() { ServingStatus::NotServing } else { ServingStatus::Serving };
        for service in ["", <FarmServer<rpc::Rpc> as NamedService>::NAME] {
            reporter.set_service_status(service, serving).await;
        }
        if stalled.changed().await.is_err() {
            return;
        }
    }
}

/// Writes the access files.
fn publish(options: &ServeOptions, local_addr: SocketAddr) -> Result<(), AccessError> {
    let scheme = if options.insecure { "http" } else { "https" };
    let hosts = options.advertise.iter().cloned().chain(reachable(local_addr));
    options.access.publish(hosts.map(|host| format!("{scheme}://{host}")).collect(), !options.insecure)
}

/// Takes rotated tokens in, and renews certificates.
async fn keep_access(access: Arc<Authority>, ended: CancellationToken) {
    let mut interval = tokio::time::interval(ACCESS_INTERVAL);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = interval.tick() => {}
            () = ended.cancelled() => return,
        }
        let access = Arc::clone(&access);
        let _ = tokio::task::spawn_blocking(move || access.refresh()).await;
    }
}

/// Deletes unused logs and uploads every hour.
async fn collect(requests: Requests, ended: CancellationToken) {
    loop {
        tokio::select! {
            () = ended.cancelled() => return,
            () = tokio::time::sleep(COLLECT_INTERVAL) => {}
        }
        if let Err(status) = requests.collect().await {
            tracing::debug!("unused logs are not deleted now: {}", status.message());
        }
    }
}

fn reflection() -> tonic_reflection::server::Builder<'static> {
    tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(v1::DESCRIPTORS)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
}
