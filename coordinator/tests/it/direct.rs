//! Direct uploads against a real coordinator: sound ones, and those of workers that break the rules.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use bytes::Bytes;
use futures::TryStreamExt;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use powersweep_coordinator::store::{
    MAX_PART_BYTES, ModelStore, Objects, STAGED_MAX_AGE, SignError, SignedPut, Signer, Store, StoreError,
};
use powersweep_coordinator::{Config, ServeError};
use powersweep_experiments::Sweep;
use powersweep_experiments::plain::chain;
use powersweep_proto::access::Role;
use powersweep_proto::v1;
use powersweep_proto::v1::farm_message::Body as FromFarm;
use powersweep_results::Table;
use powersweep_results::jobs;
use tonic::{Code, Status};
use uuid::Uuid;

use crate::hostile::{Farm, Worker, hand_in, object};

/// The addresses of a store that is not there: the test puts objects into the inbox by itself.
#[derive(Debug)]
struct Addresses;

#[async_trait]
impl Signer for Addresses {
    async fn sign_put(&self, path: &Path, valid: Duration) -> Result<SignedPut, SignError> {
        let url = format!("https://store.example/{path}?valid_s={}", valid.as_secs());
        Ok(SignedPut { url, headers: HashMap::new() })
    }
}

/// A signer without credentials.
#[derive(Debug)]
struct Unable;

#[async_trait]
impl Signer for Unable {
    async fn sign_put(&self, _: &Path, _: Duration) -> Result<SignedPut, SignError> {
        Err("there is no key to sign with".into())
    }
}

fn direct() -> Config {
    Config { direct_uploads: true, data: "s3://bucket/data".to_owned(), ..Config::default() }
}

/// A coordinator that takes direct uploads.
pub(crate) async fn direct_farm() -> Farm {
    Farm::start_on(ModelStore::signing(Arc::new(Addresses)), direct()).await.expect("it serves")
}

/// A worker with a lease of this experiment's only lease.
async fn scene(tasks: u64) -> (Farm, Sweep, Worker, v1::Lease) {
    let farm = direct_farm().await;
    let sweep = farm.submit("e", tasks, "tables = [\"jobs\"]").await;
    let mut worker = Worker::greet(&farm).await;
    let FromFarm::Welcome(welcome) = worker.read().await else { panic!("no welcome") };
    assert!(welcome.direct_uploads);
    let lease = worker.lease().await;
    (farm, sweep, worker, lease)
}

fn part_id(request: &v1::UploadPartRequest) -> Uuid {
    Uuid::from_slice(&request.part_id).expect("an id")
}

fn inbox(request: &v1::UploadPartRequest) -> Path {
    let v1::UploadPartRequest { experiment, table, .. } = request;
    format!(".powersweep/staging/inbox/{experiment}/{table}/{}.parquet", part_id(request)).into()
}

fn to_stage(request: &v1::UploadPartRequest) -> v1::StagePartRequest {
    let v1::UploadPartRequest { experiment, table, part_id, lease, data, .. } = request.clone();
    v1::StagePartRequest { experiment, table, part_id, lease, bytes: data.len() as u64 }
}

async fn stage(worker: &mut Worker, request: v1::StagePartRequest) -> Result<String, Status> {
    Ok(worker.client.stage_part(request).await?.into_inner().url)
}

/// Stores bytes in the inbox, as the holder of the address does.
async fn put(farm: &Farm, request: &v1::UploadPartRequest, data: impl Into<Bytes>) {
    let store = Arc::clone(farm.store.objects().expect("open").object_store());
    store.put(&inbox(request), data.into().into()).await.expect("stored");
}

fn announced(request: &v1::UploadPartRequest) -> v1::UploadPartRequest {
    let staged_bytes = request.data.len() as u64;
    v1::UploadPartRequest { data: Bytes::new(), staged_bytes, ..request.clone() }
}

/// Asks for the address, sends these bytes to it, and announces the object.
async fn send(farm: &Farm, worker: &mut Worker, of: &v1::UploadPartRequest, data: Bytes) -> Result<u64, Status> {
    stage(worker, to_stage(of)).await?;
    put(farm, of, data).await;
    worker.upload(announced(of)).await
}

/// The bytes of the upload of which a part will be made.
async fn accepted(farm: &Farm, request: &v1::UploadPartRequest) -> Result<Bytes, StoreError> {
    farm.store.objects().expect("open").staged("e", Table::Jobs, part_id(request)).await
}

async fn objects_below(store: &Arc<dyn ObjectStore>, folder: &str) -> Vec<String> {
    let found: Vec<_> = store.list(Some(&Path::from(folder))).try_collect().await.expect("it lists");
    found.into_iter().map(|object| object.location.to_string()).collect()
}

async fn in_staging(farm: &Farm) -> Vec<String> {
    objects_below(farm.store.objects().expect("open").object_store(), ".powersweep/staging").await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_is_taken_in_and_nothing_changes_it_afterwards() {
    let (farm, sweep, mut worker, lease) = scene(2).await;
    let (request, named) = object(&lease, &jobs::schema(), &sweep, 0);
    let (mut forged, _) = object(&lease, &jobs::schema(), &sweep, 1);
    forged.part_id = request.part_id.clone();
    let url = stage(&mut worker, to_stage(&request)).await.expect("an address");
    assert_eq!(url, format!("https://store.example/{}?valid_s=300", inbox(&request)));
    put(&farm, &request, request.data.clone()).await;
    assert_eq!(worker.upload(announced(&request)).await.expect("sound"), named.bytes);
    assert_eq!(in_staging(&farm).await.len(), 1, "the object of the inbox is deleted");
    // The answer was lost.
    assert_eq!(worker.upload(announced(&request)).await.expect("the same"), named.bytes);

    // The address is still valid: the object is replaced by other rows of the same size and by other ones, and is announced.
    put(&farm, &request, vec![b'x'; request.data.len()]).await;
    assert_eq!(worker.upload(announced(&request)).await.expect("the first object is there"), named.bytes);
    for again in [vec![b'x'; 7].into(), Bytes::from(vec![b'y'; request.data.len() + 1])] {
        forged.data = again;
        let refused = send(&farm, &mut worker, &forged, forged.data.clone()).await.expect_err("another upload");
        assert_eq!(refused.code(), Code::AlreadyExists, "{refused}");
        assert_eq!(accepted(&farm, &request).await.expect("there"), request.data);
    }
    let through = v1::UploadPartRequest { data: Bytes::from_static(b"PAR1"), ..request.clone() };
    worker.upload(through).await.expect_err("no part");
    assert_eq!(accepted(&farm, &request).await.expect("there"), request.data);

    // The last word about the object was a refusal, so it is announced again before its hand-in. The inbox has the object
    // that was refused last.
    let refused = worker.upload(announced(&request)).await.expect_err("another object is in the inbox");
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
    assert_eq!(worker.upload(announced(&request)).await.expect("sound"), named.bytes);
    let right = v1::HandIn { uploads: vec![named], ..hand_in(&lease, &sweep, 0, 0) };
    assert_eq!(worker.hand_in(right).await, Ok(()));
    put(&farm, &request, forged.data.clone()).await;
    let (other, named) = object(&lease, &jobs::schema(), &sweep, 1);
    worker.upload(other).await.expect("through the coordinator");
    let right = v1::HandIn { uploads: vec![named], ..hand_in(&lease, &sweep, 1, 1) };
    assert_eq!(worker.hand_in(right).await, Ok(()));
    let status = farm.until("e", v1::ExperimentState::Finished).await;
    assert_eq!((status.rows_in_parts, status.reason.as_str()), (2, ""));
    let store = Arc::clone(farm.store.objects().expect("open").object_store());
    assert_eq!(objects_below(&store, "e/jobs").await.len(), 1, "one part of both uploads");
    farm.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unsound_objects_are_refused_and_deleted() {
    let (farm, sweep, mut worker, lease) = scene(2).await;
    let (request, _) = object(&lease, &jobs::schema(), &sweep, 0);
    let missing = worker.upload(announced(&request)).await.expect_err("no object");
    assert_eq!(missing.code(), Code::NotFound, "{missing}");
    for size in [7, request.data.len() + 1] {
        let refused = send(&farm, &mut worker, &request, vec![0; size].into()).await.expect_err("another size");
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
        assert!(refused.message().contains(&format!("has {size} bytes, not {}", request.data.len())), "{refused}");
    }
    let garbage = Bytes::from(vec![b'x'; request.data.len()]);
    let refused = send(&farm, &mut worker, &request, garbage.clone()).await.expect_err("garbage");
    assert!(refused.code() == Code::InvalidArgument && refused.message().contains("no part of jobs"), "{refused}");
    assert_eq!(in_staging(&farm).await, [""; 0]);
    // Larger than what is read at once: without metadata, and with a length of the metadata that is not true.
    for end in [*b"xxxxxxxx", *b"\x00\x00\x20\x00PAR1", *b"\xff\xff\xff\xffPAR1"] {
        let mut large = request.clone();
        large.data = [vec![b'x'; 3 << 20], end.to_vec()].concat().into();
        let refused = send(&farm, &mut worker, &large, large.data.clone()).await.expect_err("garbage");
        assert!(refused.message().contains("no part of jobs"), "{refused}");
        assert_eq!(in_staging(&farm).await, [""; 0]);
    }
    // The object of another part.
    let (foreign, _) = object(&lease, &jobs::schema(), &sweep, 0);
    let mut renamed = request.clone();
    renamed.data = foreign.data.clone();
    let refused = send(&farm, &mut worker, &renamed, foreign.data.clone()).await.expect_err("another part");
    assert!(refused.message().contains("names another part"), "{refused}");
    // An address is of one object.
    put(&farm, &foreign, foreign.data.clone()).await;
    let missing = worker.upload(announced(&request)).await.expect_err("another object's address");
    assert_eq!(missing.code(), Code::NotFound, "{missing}");
    // In place of a refused object, a sound one can come; its rows must be of the tasks of the hand-in.
    let (other_task, named) = object(&lease, &jobs::schema(), &sweep, 1);
    send(&farm, &mut worker, &other_task, garbage).await.expect_err("garbage");
    send(&farm, &mut worker, &other_task, other_task.data.clone()).await.expect("sound");
    let wrong = v1::HandIn { uploads: vec![named], ..hand_in(&lease, &sweep, 0, 0) };
    let reason = worker.hand_in(wrong).await.expect_err("rejected");
    assert!(reason.contains("which is not handed in"), "{reason}");
    farm.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_is_given_for_the_workers_own_objects() {
    let (farm, sweep, mut worker, lease) = scene(2).await;
    let (request, named) = object(&lease, &jobs::schema(), &sweep, 0);
    let sound = to_stage(&request);
    let mut foreign_lease = sound.clone();
    foreign_lease.lease = Some(v1::LeaseId { epoch: 1, counter: 999 });
    for (request, code) in [
        (foreign_lease, Code::FailedPrecondition),
        (v1::StagePartRequest { experiment: "fill-the-disk".into(), ..sound.clone() }, Code::FailedPrecondition),
        (v1::StagePartRequest { experiment: "../e".into(), ..sound.clone() }, Code::FailedPrecondition),
        (v1::StagePartRequest { table: "tasks".into(), ..sound.clone() }, Code::InvalidArgument),
        (v1::StagePartRequest { part_id: vec![7; 3].into(), ..sound.clone() }, Code::InvalidArgument),
        (v1::StagePartRequest { lease: None, ..sound.clone() }, Code::InvalidArgument),
        (v1::StagePartRequest { bytes: 0, ..sound.clone() }, Code::InvalidArgument),
        (v1::StagePartRequest { bytes: MAX_PART_BYTES + 1, ..sound.clone() }, Code::InvalidArgument),
    ] {
        let refused = stage(&mut worker, request).await.expect_err("no address");
        assert_eq!(refused.code(), code, "{refused}");
    }
    let refused = farm.client(Role::Client).await.stage_part(sound.clone()).await.expect_err("no worker");
    assert_eq!(refused.code(), Code::PermissionDenied, "{refused}");
    let both = v1::UploadPartRequest { staged_bytes: named.bytes, ..request.clone() };
    assert_eq!(worker.upload(both).await.expect_err("twice").code(), Code::InvalidArgument);

    stage(&mut worker, sound.clone()).await.expect("an address");
    let early = v1::HandIn { uploads: vec![named], ..hand_in(&lease, &sweep, 0, 0) };
    let reason = worker.hand_in(early).await.expect_err("rejected");
    assert!(reason.contains("has not arrived"), "{reason}");
    let lease = worker.lease().await;
    // Promised objects count as uploads that are not handed in.
    let large = |n: u8| v1::StagePartRequest {
        part_id: vec![n; 16].into(),
        bytes: MAX_PART_BYTES,
        lease: lease.id,
        ..sound.clone()
    };
    stage(&mut worker, large(1)).await.expect("an address");
    stage(&mut worker, large(1)).await.expect("the same address");
    stage(&mut worker, large(2)).await.expect("an address");
    let refused = stage(&mut worker, large(3)).await.expect_err("too much");
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    farm.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_option_objects_come_through_the_coordinator() {
    let farm = Farm::start().await;
    let sweep = farm.submit("e", 2, "tables = [\"jobs\"]").await;
    let mut worker = Worker::greet(&farm).await;
    let FromFarm::Welcome(welcome) = worker.read().await else { panic!("no welcome") };
    assert!(!welcome.direct_uploads);
    let lease = worker.lease().await;
    let (request, _) = object(&lease, &jobs::schema(), &sweep, 0);
    assert_eq!(stage(&mut worker, to_stage(&request)).await.expect("an answer"), "");
    put(&farm, &request, request.data.clone()).await;
    let refused = worker.upload(announced(&request)).await.expect_err("not here");
    assert_eq!(refused.code(), Code::NotFound, "{refused}");
    worker.upload(request).await.expect("through the coordinator");
    farm.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_deletes_the_inbox() {
    let (farm, sweep, mut worker, lease) = scene(2).await;
    let (request, _) = object(&lease, &jobs::schema(), &sweep, 0);
    stage(&mut worker, to_stage(&request)).await.expect("an address");
    put(&farm, &request, request.data.clone()).await;
    let delete = v1::Delete { force: true, data_too: true };
    let action = Some(v1::control_request::Action::Delete(delete));
    let request = v1::ControlRequest { experiment: "e".to_owned(), action, ..Default::default() };
    farm.handle.requests().control(request).await.expect("deleted");
    assert_eq!(in_staging(&farm).await, [""; 0]);
    farm.stop().await;
}

#[tokio::test]
async fn old_objects_of_the_inbox_are_deleted() {
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let objects = Objects::new(Arc::clone(&store), None);
    let open = Uuid::now_v7();
    let names = ["inbox", "upload"].map(|folder| format!(".powersweep/staging/{folder}/e/jobs/{open}.parquet"));
    let fill = async || {
        for name in &names {
            store.put(&Path::from(name.as_str()), Bytes::from_static(b"rows").into()).await.expect("stored");
        }
    };
    let later = SystemTime::now() + STAGED_MAX_AGE + Duration::from_secs(60);
    fill().await;
    assert_eq!(objects.clean_inbox(SystemTime::now()).await.expect("cleaned"), 0);
    assert_eq!(objects.clean_inbox(later).await.expect("cleaned"), 1);
    assert_eq!(objects_below(&store, "").await, [names[1].as_str()]);
    fill().await;
    // A part will be made of the upload, and never of the object in the inbox.
    let open = BTreeSet::from([open]);
    assert_eq!(objects.clean_staging(&open, SystemTime::now()).await.expect("cleaned"), 0);
    assert_eq!(objects.clean_staging(&open, later).await.expect("cleaned"), 1);
    assert_eq!(objects_below(&store, "").await, [names[1].as_str()]);
}

#[tokio::test]
async fn a_start_tries_what_direct_uploads_need() {
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let objects = Objects::new(Arc::clone(&store), None).with_signer(Some(Arc::new(Addresses)));
    objects.probe_inbox().await.expect("it signs and copies");
    assert_eq!(objects_below(&store, "").await, [""; 0]);
    for (store, reason) in [
        (ModelStore::signing(Arc::new(Unable)), "there is no key to sign with"),
        (ModelStore::new(), "this storage has no signed addresses"),
    ] {
        let error = Farm::start_on(store, direct()).await.err().expect("it does not start");
        assert!(matches!(error, ServeError::DirectUploads { .. }), "{error}");
        let error = chain(&error);
        assert!(error.starts_with("s3://bucket/data takes no direct uploads") && error.contains(reason), "{error}");
    }
}
