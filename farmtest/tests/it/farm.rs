//! Coordinators and workers in this process, each with its own runtime.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use powersweep_coordinator::access::Authority;
use powersweep_coordinator::farm::Config;
use powersweep_coordinator::owner::Ownership;
use powersweep_coordinator::service::{Handle, Requests, ServeOptions, serve};
use powersweep_coordinator::store::{Location, SlateStore, Store, open};
use powersweep_experiments::{Digest, Manifest};
use powersweep_proto::access::{Role, Source};
use powersweep_proto::client::Address;
use powersweep_proto::v1;
use powersweep_worker::{WorkerError, WorkerOptions, WorkerReport};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::sweeps::TINY_LOG;

/// Far longer than any step here: a test that waits this long hangs.
const PATIENCE: Duration = Duration::from_secs(120);

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime starts")
}

/// A folder for a dataset.
pub(crate) struct Data(tempfile::TempDir);

impl Data {
    pub(crate) fn new() -> Data {
        Data(tempfile::tempdir().expect("a folder"))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }
}

/// A coordinator.
pub(crate) struct Coordinator {
    runtime: Runtime,
    shutdown: CancellationToken,
    handle: Handle,
    store: Arc<SlateStore>,
    ownership: Ownership,
}

/// How long a lost worker keeps its leases, in tests that wait for their expiry.
pub(crate) const SHORT_ABSENCE: Duration = Duration::from_millis(300);
/// Longer than any worker here takes to reconnect.
const LONG_ABSENCE: Duration = Duration::from_secs(60);

impl Coordinator {
    pub(crate) fn start(data: &Data) -> Coordinator {
        Coordinator::start_with(data, LONG_ABSENCE)
    }

    /// Starts a coordinator with another time until a lost worker's leases expire.
    pub(crate) fn start_with(data: &Data, absence: Duration) -> Coordinator {
        let config = Config {
            heartbeat: Duration::from_millis(100),
            retry_after: Duration::from_millis(10),
            absence,
            ..Config::default()
        };
        let runtime = runtime();
        let shutdown = CancellationToken::new();
        let (handle, store, ownership) = runtime.block_on(async {
            let location = Location::directory(data.path()).expect("a folder");
            let (store, ownership) = open(&location, "", false).await.expect("nobody else owns it");
            let store = Arc::new(store);
            let options = ServeOptions {
                access: Arc::new(Authority::open(&location).expect("the folder is private")),
                listen: ([127, 0, 0, 1], 0).into(),
                config,
                ..ServeOptions::local(Arc::clone(&store) as Arc<dyn Store>)
            };
            let handle = serve(options, shutdown.clone()).await.expect("it serves");
            (handle, store, ownership)
        });
        Coordinator { runtime, shutdown, handle, store, ownership }
    }

    pub(crate) fn port(&self) -> u16 {
        self.handle.local_addr().port()
    }

    /// How workers reach it.
    pub(crate) fn address(&self) -> Address {
        let folder = self.handle.authority().folder().expect("its access is in the data folder");
        Address::of(Source::File(folder.join(Role::Worker.file_name())), Role::Worker)
    }

    fn requests(&self) -> Requests {
        self.handle.requests().clone()
    }

    /// Submits a manifest with its logs.
    pub(crate) fn submit(&self, manifest: &str) -> v1::SubmitReply {
        let requests = self.requests();
        let parsed = Manifest::parse("test.toml", manifest).expect("the test's manifest is right");
        let digests = crate::sweeps::digests(&parsed);
        let digests = digests.into_iter().map(|(log, digest)| (log, digest.as_bytes().to_vec().into()));
        let request =
            v1::SubmitRequest { manifest: manifest.to_owned(), digests: digests.collect(), ..Default::default() };
        self.runtime.block_on(async {
            let reply = requests.submit(request).await.expect("the manifest is taken");
            if !reply.missing_logs.is_empty() {
                let digest = Digest::of(TINY_LOG);
                requests.put_log(digest, TINY_LOG.into()).await.expect("the log is taken");
            }
            reply
        })
    }

    pub(crate) fn status(&self, experiment: &str) -> v1::ExperimentStatus {
        let requests = self.requests();
        let request = v1::StatusRequest { experiment: experiment.to_owned(), max_failures: 10, ..Default::default() };
        let reply = self.runtime.block_on(requests.status(request)).expect("it answers");
        reply.experiments.into_iter().next().expect("the experiment is there")
    }

    /// Waits until this number of workers is connected.
    pub(crate) fn wait_workers(&self, count: usize) {
        let requests = self.requests();
        let begun = Instant::now();
        loop {
            let reply = self.runtime.block_on(requests.status(v1::StatusRequest::default())).expect("it answers");
            if reply.workers.len() >= count {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "{} workers are connected", reply.workers.len());
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Workers that are connected or expected back.
    pub(crate) fn workers(&self) -> usize {
        let requests = self.requests();
        let reply = self.runtime.block_on(requests.status(v1::StatusRequest::default())).expect("it answers");
        reply.workers.len()
    }

    /// Waits until this number of tasks is done.
    pub(crate) fn wait_done(&self, experiment: &str, tasks: u64) {
        let begun = Instant::now();
        loop {
            let status = self.status(experiment);
            if status.done >= tasks {
                return;
            }
            assert!(status.quarantined == 0 && begun.elapsed() < PATIENCE, "{status:?}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Ends orderly: every finished row is in a part afterwards.
    pub(crate) fn stop(self) {
        self.shutdown.cancel();
        let Coordinator { runtime, handle, store, ownership, .. } = self;
        runtime.block_on(async {
            handle.wait().await.expect("a good end");
            store.close().await.ok();
            drop(store);
            ownership.release().await;
        });
    }
}

/// A worker of two slots.
pub(crate) struct Worker {
    runtime: Runtime,
    shutdown: CancellationToken,
    task: JoinHandle<Result<WorkerReport, WorkerError>>,
}

impl Worker {
    pub(crate) fn start(coordinator: Address, name: &str) -> Worker {
        Worker::start_with(WorkerOptions::new(coordinator, 2, name))
    }

    pub(crate) fn start_with(options: WorkerOptions) -> Worker {
        let runtime = runtime();
        let shutdown = CancellationToken::new();
        let task = runtime.spawn(powersweep_worker::run(options, shutdown.clone()));
        Worker { runtime, shutdown, task }
    }

    /// Asks it to stop and waits.
    pub(crate) fn stop(self) -> WorkerReport {
        self.shutdown.cancel();
        self.runtime.block_on(self.task).expect("it does not panic").expect("a good end")
    }

    /// Waits until it ends by itself.
    pub(crate) fn ended(self) -> WorkerReport {
        let Worker { runtime, task, .. } = self;
        let ended = runtime.block_on(async { tokio::time::timeout(PATIENCE, task).await });
        let report = ended.expect("it ends").expect("it does not panic").expect("a good end");
        // Its tasks may hold threads.
        runtime.shutdown_background();
        report
    }
}
