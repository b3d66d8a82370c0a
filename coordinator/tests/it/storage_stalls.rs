//! A coordinator whose storage does not answer: status says so, dispatch pauses, and both resume afterwards.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use powersweep_coordinator::records::{Key, Loaded, Record, RowsRecord};
use powersweep_coordinator::service::{Handle, ServeError, ServeOptions, serve};
use powersweep_coordinator::store::{
    Batch, Fault, Location, ModelStore, Objects, OpenError, SlateStore, Store, StoreError, open,
};
use powersweep_proto::v1;
use powersweep_proto::v1::farm_server::FarmServer;
use powersweep_results::Table;
use powersweep_results::wire;
use tokio_util::sync::CancellationToken;
use tonic::server::NamedService;
use tonic::transport::Endpoint;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::hostile::{Farm, Worker};
use crate::store_samples::{hand_in, rows_of};

/// Far beyond what anything here takes.
const PATIENCE: Duration = Duration::from_secs(120);

const MANIFEST: &str = "version = 1\nname = \"NAME\"\n[workloads.w]\nsource = \"lublin\"\nsynthetic_jobs_count = 10\n\
                        [policies.q]\n";

fn submit(name: &str) -> v1::SubmitRequest {
    v1::SubmitRequest { manifest: MANIFEST.replace("NAME", name), ..Default::default() }
}

async fn status(farm: &Handle) -> v1::StatusReply {
    let answer = farm.requests().status(v1::StatusRequest::default());
    tokio::time::timeout(PATIENCE, answer).await.expect("questions are answered").expect("it answers")
}

async fn until_stalled(farm: &Handle, stalled: bool) -> v1::StatusReply {
    let begun = Instant::now();
    loop {
        let reply = status(farm).await;
        if reply.storage_stalled == stalled {
            return reply;
        }
        assert!(begun.elapsed() < PATIENCE, "{reply:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The answer to a health check of gRPC.
async fn health(farm: &Handle) -> ServingStatus {
    let channel = Endpoint::from_shared(format!("http://{}", farm.local_addr())).expect("an address").connect().await;
    let service = <FarmServer<()> as NamedService>::NAME.to_owned();
    let mut client = HealthClient::new(channel.expect("it listens"));
    client.check(HealthCheckRequest { service }).await.expect("it answers").into_inner().status()
}

async fn start(store: &Arc<ModelStore>) -> (Handle, CancellationToken) {
    let shutdown = CancellationToken::new();
    let options =
        ServeOptions { drain_limit: Duration::ZERO, ..ServeOptions::local(Arc::clone(store) as Arc<dyn Store>) };
    // A health check has no access file.
    let options = ServeOptions { insecure: true, ..options };
    (serve(options, shutdown.clone()).await.expect("it serves"), shutdown)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stall_is_reported_and_survived() {
    let store = Arc::new(ModelStore::new());
    let (farm, shutdown) = start(&store).await;
    farm.requests().submit(submit("first")).await.expect("taken");
    assert_eq!(health(&farm).await, ServingStatus::Serving);
    store.plan([Some(Fault::Hold)]);
    let requests = farm.requests().clone();
    let second = tokio::spawn(async move { requests.submit(submit("second")).await });
    let reply = until_stalled(&farm, true).await;
    assert!(reply.storage_reason.contains("has not confirmed a write"), "{reply:?}");
    assert_eq!(health(&farm).await, ServingStatus::NotServing);
    let refused = farm.requests().submit(submit("third")).await.expect_err("nothing can be stored");
    assert!(refused.message().contains("when storage works"), "{refused:?}");
    assert!(!second.is_finished(), "a submit is answered once it is durable");
    store.release(1);
    second.await.expect("no panic").expect("accepted");
    let reply = until_stalled(&farm, false).await;
    assert_eq!(health(&farm).await, ServingStatus::Serving);
    assert_eq!(reply.experiments.len(), 2, "{reply:?}");
    shutdown.cancel();
    farm.wait().await.expect("a good end");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_waits_for_storage_for_a_limited_time() {
    let store = Arc::new(Stuck(ModelStore::new()));
    let shutdown = CancellationToken::new();
    let options =
        ServeOptions { drain_limit: Duration::ZERO, ..ServeOptions::local(Arc::clone(&store) as Arc<dyn Store>) };
    let farm = serve(options, shutdown.clone()).await.expect("it serves");
    store.0.plan([Some(Fault::Hold)]);
    let requests = farm.requests().clone();
    let waiting = tokio::spawn(async move { requests.submit(submit("first")).await });
    until_stalled(&farm, true).await;
    shutdown.cancel();
    let error = tokio::time::timeout(PATIENCE, farm.wait()).await.expect("it ends").expect_err("not in good order");
    assert!(matches!(error, ServeError::Unfinished { .. }), "{error}");
    assert!(error.to_string().contains("the disk is full"), "{error}");
    assert!(waiting.await.expect("no panic").is_err(), "a submit that was not stored is not acknowledged");
}

/// A worker hands two tasks in; storage loses the second write, or keeps it and says that it failed.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_counts_each_task_once_after_a_failed_write() {
    for fault in [Fault::Lose, Fault::KeepButFail] {
        let farm = Farm::start().await;
        let sweep = farm.submit("e", 2, "").await;
        let mut worker = Worker::greet(&farm).await;
        let lease = worker.lease().await;
        let index = |lease: &v1::Lease| lease.ranges[0].start;
        worker.hand_in(crate::hostile::hand_in(&lease, &sweep, index(&lease), index(&lease))).await.expect("accepted");
        let done = async || {
            let reply = farm.handle.requests().status(v1::StatusRequest::default()).await.expect("it answers");
            reply.workers.iter().map(|worker| worker.tasks_done).sum::<u64>()
        };
        assert_eq!(done().await, 1);
        let other = 1 - index(&lease);
        let lease = match lease.ranges.iter().any(|range| (range.start..range.end).contains(&other)) {
            true => lease,
            false => worker.lease().await,
        };
        farm.store.plan([Some(fault)]);
        let second = crate::hostile::hand_in(&lease, &sweep, other, other);
        worker.send(second.clone()).await;
        // The stream ends when the state is loaded again.
        worker.ended().await;
        let held = v1::LeaseState {
            lease: lease.id,
            experiment: lease.experiment.clone(),
            generation: lease.generation,
            open: vec![v1::IndexRange { start: other, end: other + 1 }],
        };
        let mut worker = worker.again(&farm, held).await;
        for _ in 0..2 {
            worker.hand_in(second.clone()).await.expect("accepted");
            assert_eq!((done().await, farm.status("e").await.done), (2, 2), "{fault:?}");
        }
        farm.stop().await;
    }
}

/// A store whose close never ends.
struct Stuck(ModelStore);

#[async_trait::async_trait]
impl Store for Stuck {
    async fn load(&self) -> Result<Loaded, StoreError> {
        self.0.load().await
    }
    async fn commit(&self, batch: Batch) -> Result<(), StoreError> {
        self.0.commit(batch).await
    }
    async fn rows(&self, e: &str, table: Table, first: u64, last: u64) -> Result<Vec<RowsRecord>, StoreError> {
        self.0.rows(e, table, first, last).await
    }
    fn objects(&self) -> Result<&Objects, StoreError> {
        self.0.objects()
    }
    async fn still_own(&self) -> Result<(), StoreError> {
        self.0.still_own().await
    }
    async fn trouble(&self) -> Option<String> {
        Some("the disk is full".to_owned())
    }
    async fn close(&self) -> Result<(), StoreError> {
        std::future::pending().await
    }
}

fn files(folder: &std::path::Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("it can be listed").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            let bytes = std::fs::read(&path).expect("it can be read");
            found.insert(path, bytes);
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_state_is_reported_and_not_changed() {
    let folder = tempfile::tempdir().expect("a folder");
    let location = Location::directory(folder.path()).expect("a path");
    let (store, ownership) = open(&location, "", false).await.expect("free");
    let mut batch = Batch::new();
    batch.put(Record::Epoch(1));
    store.commit(batch).await.expect("durable");
    store.close().await.expect("closes");
    ownership.release().await;
    let state = folder.path().join(".powersweep/state");
    let newest = files(&state.join("manifest")).into_keys().next_back().expect("there is one");
    std::fs::write(newest, b"no manifest at all").expect("it is ours");
    let before = files(&state);
    let error = open(&location, "", false).await.expect_err("it is damaged");
    assert!(matches!(error, OpenError::Store(StoreError::Corrupt { .. })), "{error}");
    assert!(error.to_string().contains("damaged"), "{error}");
    assert_eq!(files(&state), before);
    // The ownership was released: after a repair, a start need not wait.
    assert_eq!(powersweep_coordinator::owner::look(&location).await.expect("looks"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_with_unpublished_rows_of_another_version_is_refused_unchanged() {
    let folder = tempfile::tempdir().expect("a folder");
    let location = Location::directory(folder.path()).expect("a path");
    let (store, ownership) = open(&location, "", false).await.expect("free");
    let left_by = |experiment: &str, encoded: Bytes| {
        let mut rows = hand_in(experiment, Table::Tasks, 1, 0..2, &[]);
        rows.hand_ins[0].encoded = encoded;
        Record::Rows(rows)
    };
    let ours = rows_of(Table::Tasks, 0..2);
    let mut of_an_earlier_build = wire::encode(&ours).expect("encodes").to_vec();
    of_an_earlier_build[..4].copy_from_slice(b"PSB2");
    let with_fewer_columns = ours.project(&[0, 1]).expect("two columns");
    let mut batch = Batch::new();
    batch.put(Record::Rows(hand_in("ours", Table::Tasks, 1, 0..2, &[])));
    batch.put(left_by("earlier", of_an_earlier_build.into()));
    batch.put(left_by("other-columns", wire::encode(&with_fewer_columns).expect("encodes")));
    store.commit(batch).await.expect("durable");
    let before = store.load().await.expect("loads");
    store.close().await.expect("closes");
    ownership.release().await;

    let error = open(&location, "", false).await.expect_err("of another version");
    assert!(matches!(error, OpenError::OtherVersion { .. }), "{error}");
    let words = error.to_string();
    assert!(words.contains("earlier, other-columns that") && words.contains("powersweep prepare-upgrade"), "{words}");
    assert_eq!(powersweep_coordinator::owner::look(&location).await.expect("looks"), None);
    let store = SlateStore::open(&location).await.expect("opens");
    assert_eq!(store.load().await.expect("loads"), before);

    // Once that version has published or deleted them, this version opens the state.
    let mut batch = Batch::new();
    for experiment in ["earlier", "other-columns"] {
        batch.delete(Key::Rows { experiment: experiment.to_owned(), table: Table::Tasks, seq: 1 });
    }
    store.commit(batch).await.expect("durable");
    store.close().await.expect("closes");
    let (store, ownership) = open(&location, "", false).await.expect("opens");
    store.close().await.expect("closes");
    ownership.release().await;
}
