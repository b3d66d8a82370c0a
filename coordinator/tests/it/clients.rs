//! Clients with tokens of their own: a token that is revoked in the middle of a call, the end of the coordinator.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use powersweep_coordinator::access::{Authority, add_client, revoke_client};
use powersweep_coordinator::service::ServeOptions;
use powersweep_coordinator::store::{Location, ModelStore};
use powersweep_experiments::Digest;
use powersweep_proto::access::{Role, Secret};
use powersweep_proto::client::{Address, Target};
use powersweep_proto::v1;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Code;

use crate::hostile::{Farm, Worker};

/// An upload that its sender never ends, and rows that their reader does not take.
#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_token_ends_its_calls_and_no_others() {
    let data = tempfile::tempdir().expect("a folder");
    let access = Arc::new(Authority::open(&Location::directory(data.path()).expect("a path")).expect("it can be made"));
    let folder = access.folder().expect("a folder").to_owned();
    let [ada, bob] = ["ada", "bob"].map(|name| add_client(&folder, name).expect("a new name"));
    let farm = Farm::start_with(ModelStore::new(), |local| ServeOptions { access, ..local }).await.expect("it serves");
    let log = Bytes::from_static(b"; a log\n");
    let digest = Bytes::copy_from_slice(Digest::of(&log).as_bytes());
    let manifest = "version = 1\nname = \"e\"\n[workloads.w]\nsource = \"swf\"\nlog = \"l\"\n[policies.q]\n".to_owned();
    let digests = [("l".to_owned(), digest.clone())].into();
    farm.handle
        .requests()
        .submit(v1::SubmitRequest { manifest, digests, ..Default::default() })
        .await
        .expect("accepted");
    let connect = async |token: &Secret| {
        let address = Address::unencrypted(farm.url(), Role::Client, token.reveal());
        Target::new(&address).expect("an address").connect().await.expect("it listens")
    };
    let begin = async |token: &Secret| {
        let (pieces, sent) = mpsc::channel(2);
        let first = v1::UploadLogRequest { digest: digest.clone(), data: log.slice(..3) };
        pieces.send(first).await.expect("open");
        let mut client = connect(token).await;
        let call = tokio::spawn(async move { client.upload_log(ReceiverStream::new(sent)).await });
        (pieces, call)
    };
    let (of_ada, of_bob) = (begin(&ada).await, begin(&bob).await);
    // Both calls are on their way once a later one over the same kind of connection was answered.
    connect(&ada).await.status(v1::StatusRequest::default()).await.expect("it answers");
    revoke_client(&folder, "ada").expect("there is one");
    let ended = of_ada.1.await.expect("no panic").expect_err("revoked");
    assert!(ended.code() == Code::Unauthenticated && ended.message().contains("revoked"), "{ended:?}");
    assert!(!of_bob.1.is_finished());
    of_bob.0.send(v1::UploadLogRequest { data: log.slice(3..), ..Default::default() }).await.expect("open");
    drop(of_bob.0);
    assert_eq!(of_bob.1.await.expect("no panic").expect("stored").into_inner().bytes, 8);
    let refused = connect(&ada).await.status(v1::StatusRequest::default()).await.expect_err("revoked");
    assert_eq!(refused.code(), Code::Unauthenticated);
    farm.stop().await;
}

#[tokio::test]
async fn only_a_client_with_a_sound_request_ends_the_coordinator() {
    let farm = Farm::start().await;
    let request = |drain_s| v1::PrepareUpgradeRequest { drain_s: Some(drain_s) };
    let refused = farm.client(Role::Worker).await.prepare_upgrade(request(0.0)).await.expect_err("a worker");
    assert_eq!(refused.code(), Code::PermissionDenied, "{refused}");
    let mut client = farm.client(Role::Client).await;
    for drain_s in [-1.0, f64::NAN, f64::INFINITY, 1e300] {
        let refused = client.prepare_upgrade(request(drain_s)).await.expect_err("no time");
        assert_eq!(refused.code(), Code::InvalidArgument, "{drain_s}: {refused}");
    }
    // The longest time that there is: another request may end it sooner.
    let mut other = farm.client(Role::Client).await;
    let worker = Worker::greet(&farm).await;
    let longest = tokio::spawn(async move { other.prepare_upgrade(request(1e19)).await });
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(!longest.is_finished(), "the worker is still there");
    let answer = client.prepare_upgrade(request(0.0)).await.expect("it ends").into_inner();
    assert!(answer.unpublished.is_empty());
    longest.await.expect("no panic").expect("it has ended, too");
    drop(worker);
    farm.handle.wait().await.expect("in good order");
}
