//! Greeting, leases, hand-ins, logs, uploads, reconnection, the end.

use std::path::PathBuf;
use std::time::Duration;

use powersweep_experiments::Digest;
use powersweep_proto::access::Role;
use powersweep_proto::client::Address;
use powersweep_proto::v1::farm_message::Body as ToWorker;
use powersweep_proto::v1::worker_message::Body as FromWorker;
use powersweep_proto::{PROTOCOL, v1};
use powersweep_results::{tasks, wire};
use powersweep_worker::{WorkerError, WorkerOptions, WorkerReport, run};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::fake::{Conn, Fake, indices};

pub(crate) const LUBLIN: &str = r#"
version = 1
name = "test"
seeds = { from = 1, count = 100 }
[workloads.w]
source = "lublin"
synthetic_jobs_count = 50
synthetic_procs = 64
[platforms.p]
[policies.q]
"#;

const SWF: &str = r#"
version = 1
name = "test"
[workloads.w]
source = "swf"
log = "tiny"
[platforms.p]
procs = 4
[policies.q]
queue_order = ["fcfs", "sjf"]
"#;

const TINY_LOG: &[u8] = b"; MaxProcs: 4
1 0 -1 10 2 -1 -1 2 20 -1 1 1 1 1 1 1 -1 -1
2 5 -1 10 4 -1 -1 4 20 -1 1 1 1 1 1 1 -1 -1
";

pub(crate) type Ended = JoinHandle<Result<WorkerReport, WorkerError>>;

pub(crate) fn start(options: WorkerOptions) -> (Ended, CancellationToken) {
    let shutdown = CancellationToken::new();
    (tokio::spawn(run(options, shutdown.clone())), shutdown)
}

async fn end(worker: Ended) -> Result<WorkerReport, WorkerError> {
    let ended = tokio::time::timeout(Duration::from_secs(60), worker).await;
    ended.expect("the worker ends").expect("it does not panic")
}

/// Asks the worker to stop, and acknowledges its hand-ins until its goodbye.
pub(crate) async fn leave(mut conn: Conn, worker: Ended, shutdown: CancellationToken) -> WorkerReport {
    shutdown.cancel();
    loop {
        match conn.next().await {
            Some(FromWorker::Goodbye(_)) => break,
            Some(FromWorker::HandIn(hand_in)) => conn.acknowledge(hand_in.id).await,
            Some(_) => {}
            None => panic!("the worker ended without a goodbye"),
        }
    }
    drop(conn);
    end(worker).await.expect("a good end")
}

fn tiny_digest() -> Vec<(String, Digest)> {
    vec![("tiny".to_owned(), Digest::of(TINY_LOG))]
}

fn rows(hand_in: &v1::HandIn) -> usize {
    wire::decode(&hand_in.rows, &tasks::schema()).expect("rows decode").num_rows()
}

#[tokio::test]
async fn leased_tasks_come_back_as_rows_and_the_worker_drains() {
    let mut farm = Fake::start().await;
    let (worker, shutdown) = start(WorkerOptions::new(farm.coordinator(), 2, "ada"));
    let mut conn = farm.accept().await;
    assert_eq!((conn.hello.worker.as_str(), conn.hello.slots), ("ada", 2));
    let versions = conn.hello.versions.clone().expect("the greeting has versions");
    assert_eq!(versions.protocol, PROTOCOL);
    assert!(versions.parts.contains_key("source/lublin"), "{versions:?}");
    conn.welcome(1, vec![]).await;
    conn.experiment(LUBLIN, &[], vec![]).await;
    conn.lease(1, 10, 30).await;
    let hand_ins = conn.hand_ins(20).await;
    let mut done: Vec<u64> = hand_ins.iter().flat_map(indices).collect();
    done.sort_unstable();
    assert_eq!(done, (10..30).collect::<Vec<u64>>());
    assert_eq!(hand_ins.iter().map(rows).sum::<usize>(), 20);
    for hand_in in &hand_ins {
        conn.acknowledge(hand_in.id).await;
    }
    let report = leave(conn, worker, shutdown).await;
    assert_eq!((report.tasks_acknowledged, report.unacknowledged), (20, 0));
    assert!(report.spent.engine_s > 0.0 && report.spent.idle_s > 0.0, "{report:?}");
}

#[tokio::test]
async fn a_final_refusal_ends_the_worker_with_its_reason() {
    let mut farm = Fake::start().await;
    let (worker, _shutdown) = start(WorkerOptions::new(farm.coordinator(), 1, "w"));
    let conn = farm.accept().await;
    let reason = "gear_rule/bsld is version 2 there, 1 here".to_owned();
    conn.send(ToWorker::Refused(v1::Refused { reason, r#final: true })).await;
    let error = end(worker).await.expect_err("it was refused");
    assert!(matches!(error, WorkerError::Refused { .. }), "{error}");
    assert!(error.to_string().contains("gear_rule/bsld is version 2"), "{error}");
}

#[tokio::test]
async fn a_refused_worker_keeps_its_rows_and_offers_them_until_they_are_taken() {
    let mut farm = Fake::start().await;
    let (worker, _shutdown) = start(WorkerOptions::new(farm.coordinator(), 1, "w"));
    let mut conn = farm.accept().await;
    conn.welcome(1, vec![]).await;
    conn.experiment(LUBLIN, &[], vec![]).await;
    conn.lease(1, 0, 5).await;
    let first = conn.hand_ins(5).await;
    drop(conn);
    let refusal = || v1::Refused { reason: "another tasks schema".into(), r#final: true };
    for _ in 0..3 {
        let conn = farm.accept().await;
        conn.send(ToWorker::Refused(refusal())).await;
    }
    let mut conn = farm.accept().await;
    conn.welcome(2, vec![]).await;
    let again = conn.hand_ins(5).await;
    assert_eq!(again.iter().map(|h| h.id).collect::<Vec<_>>(), first.iter().map(|h| h.id).collect::<Vec<_>>());
    for hand_in in &again {
        conn.acknowledge(hand_in.id).await;
    }
    // Nothing is left to keep: the next refusal ends the worker.
    conn.send(ToWorker::Refused(refusal())).await;
    let error = end(worker).await.expect_err("it was refused");
    assert!(error.to_string().contains("another tasks schema"), "{error}");
}

#[tokio::test]
async fn a_refused_worker_ends_at_its_limit_and_says_that_rows_are_lost() {
    let mut farm = Fake::start().await;
    let connect_limit = Some(Duration::from_millis(300));
    let (worker, _shutdown) = start(WorkerOptions { connect_limit, ..WorkerOptions::new(farm.coordinator(), 1, "w") });
    let mut conn = farm.accept().await;
    conn.welcome(1, vec![]).await;
    conn.experiment(LUBLIN, &[], vec![]).await;
    conn.lease(1, 0, 2).await;
    conn.hand_ins(2).await;
    drop(conn);
    let refusing = tokio::spawn(async move {
        loop {
            let refusal = v1::Refused { reason: "another schema".into(), r#final: true };
            farm.accept().await.send(ToWorker::Refused(refusal)).await;
        }
    });
    let error = end(worker).await.expect_err("it was refused");
    refusing.abort();
    assert!(error.to_string().contains("another schema; rows that it did not take are lost"), "{error}");
}

#[tokio::test]
async fn after_a_temporary_refusal_the_worker_connects_again() {
    let mut farm = Fake::start().await;
    let (worker, shutdown) = start(WorkerOptions::new(farm.coordinator(), 1, "w"));
    let conn = farm.accept().await;
    conn.send(ToWorker::Refused(v1::Refused { reason: "starting".into(), r#final: false })).await;
    drop(conn);
    let mut conn = farm.accept().await;
    conn.welcome(1, vec![]).await;
    conn.experiment(LUBLIN, &[], vec![]).await;
    conn.lease(1, 0, 1).await;
    let hand_in = conn.hand_in().await;
    conn.acknowledge(hand_in.id).await;
    leave(conn, worker, shutdown).await;
}

#[tokio::test]
async fn a_wrong_token_is_final() {
    let farm = Fake::start().await;
    farm.facts.lock().expect("no panic").token = Some("secret");
    let options = WorkerOptions::new(farm.coordinator(), 1, "w");
    let error = end(start(options).0).await.expect_err("it was refused");
    assert!(error.to_string().contains("token"), "{error}");
}

#[tokio::test]
async fn a_missing_coordinator_is_an_error_only_with_a_limit() {
    let limit = Some(Duration::from_millis(200));
    let nowhere = Address::unencrypted("http://127.0.0.1:1", Role::Worker, "token");
    let options = WorkerOptions { connect_limit: limit, ..WorkerOptions::new(nowhere, 1, "w") };
    let error = end(start(options).0).await.expect_err("no coordinator answers");
    assert!(matches!(error, WorkerError::Unreachable { .. }), "{error}");
}

#[tokio::test]
async fn rows_finished_while_the_coordinator_is_away_are_handed_in_later() {
    let mut farm = Fake::start().await;
    let (worker, shutdown) = start(WorkerOptions::new(farm.coordinator(), 2, "w"));
    let mut conn = farm.accept().await;
    conn.welcome(1, vec![]).await;
    conn.experiment(LUBLIN, &[], vec![]).await;
    conn.lease(1, 0, 40).await;
    let first = conn.hand_in().await;
    drop(conn);
    let mut farm = farm.restart().await;

    let mut conn = farm.accept().await;
    let held = &conn.hello.held;
    assert_eq!(held.len(), 1, "{held:?}");
    assert_eq!(held[0].open, [v1::IndexRange { start: 0, end: 40 }], "no task was acknowledged");
    conn.welcome(2, vec![v1::LeaseId { epoch: 1, counter: 1 }]).await;
    let hand_ins = conn.hand_ins(40).await;
    let again = hand_ins.iter().find(|h| h.id == first.id).expect("the first hand-in is repeated");
    assert_eq!((indices(again), &again.rows), (indices(&first), &first.rows));
    let mut done: Vec<u64> = hand_ins.iter().flat_map(indices).collect();
    done.sort_unstable();
    assert_eq!(done, (0..40).collect::<Vec<u64>>(), "each task once");
    for hand_in in &hand_ins {
        conn.acknowledge(hand_in.id).await;
    }
    leave(conn, worker, shutdown).await;
}

#[tokio::test]
async fn a_log_comes_from_the_coordinator_once_and_then_from_the_cache() {
    let mut farm = Fake::start().await;
    farm.facts.lock().expect("no panic").log = TINY_LOG.to_vec();
    let cache = tempfile::tempdir().expect("a folder");
    for _ in 0..2 {
        let cache_dir = Some(cache.path().into());
        let (worker, shutdown) = start(WorkerOptions { cache_dir, ..WorkerOptions::new(farm.coordinator(), 1, "w") });
        let mut conn = farm.accept().await;
        conn.welcome(1, vec![]).await;
        conn.experiment(SWF, &[], tiny_digest()).await;
        conn.lease(1, 0, 2).await;
        let hand_ins = conn.hand_ins(2).await;
        assert_eq!(hand_ins.iter().map(rows).sum::<usize>(), 2);
        for hand_in in &hand_ins {
            conn.acknowledge(hand_in.id).await;
        }
        leave(conn, worker, shutdown).await;
    }
    assert_eq!(farm.facts.lock().expect("no panic").fetches, 1);
}

#[tokio::test]
async fn a_log_on_the_search_path_with_the_same_digest_is_not_fetched() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |bytes: &[u8]| std::fs::write(folder.path().join("tiny.swf"), bytes).expect("it is writable");
    for (bytes, fetches) in [(TINY_LOG, 0), (&b"; another"[..], 1)] {
        write(bytes);
        let mut farm = Fake::start().await;
        farm.facts.lock().expect("no panic").log = TINY_LOG.to_vec();
        let search_path: Vec<PathBuf> = vec![folder.path().into()];
        let (worker, shutdown) = start(WorkerOptions { search_path, ..WorkerOptions::new(farm.coordinator(), 1, "w") });
        let mut conn = farm.accept().await;
        conn.welcome(1, vec![]).await;
        conn.experiment(SWF, &[], tiny_digest()).await;
        conn.lease(1, 0, 1).await;
        let hand_in = conn.hand_in().await;
        assert_eq!(rows(&hand_in), 1);
        assert_eq!(farm.facts.lock().expect("no panic").fetches, fetches);
        conn.acknowledge(hand_in.id).await;
        leave(conn, worker, shutdown).await;
    }
}

#[tokio::test]
async fn objects_are_uploaded_before_their_hand_in() {
    let mut farm = Fake::start().await;
    farm.facts.lock().expect("no panic").log = TINY_LOG.to_vec();
    let (worker, shutdown) = start(WorkerOptions::new(farm.coordinator(), 1, "w"));
    let mut conn = farm.accept().await;
    conn.welcome(1, vec![]).await;
    conn.experiment(SWF, &["jobs"], tiny_digest()).await;
    conn.lease(1, 0, 2).await;
    let hand_in = conn.hand_in().await;
    let named = &hand_in.uploads[0];
    {
        let facts = farm.facts.lock().expect("no panic");
        let (first, bytes) = &facts.uploads[0];
        assert_eq!((first.table.as_str(), first.experiment.as_str()), ("jobs", "test"));
        assert_eq!((&first.part_id, *bytes as u64), (&named.part_id, named.bytes));
        assert!(first.lease.is_some());
    }
    conn.acknowledge(hand_in.id).await;
    leave(conn, worker, shutdown).await;
}

#[tokio::test]
async fn a_manifest_that_this_build_cannot_read_ends_the_worker() {
    let mut farm = Fake::start().await;
    let (worker, _shutdown) = start(WorkerOptions::new(farm.coordinator(), 1, "w"));
    let conn = farm.accept().await;
    conn.welcome(1, vec![]).await;
    conn.experiment("version = 99", &[], vec![]).await;
    let error = end(worker).await.expect_err("it ends");
    assert!(matches!(error, WorkerError::Protocol { .. }) && error.to_string().contains("`test`"), "{error}");
}

#[tokio::test]
async fn an_idle_worker_ends_after_its_limit() {
    let mut farm = Fake::start().await;
    let idle_limit = Some(Duration::from_millis(100));
    let (worker, _shutdown) = start(WorkerOptions { idle_limit, ..WorkerOptions::new(farm.coordinator(), 1, "w") });
    let mut conn = farm.accept().await;
    conn.welcome(1, vec![]).await;
    assert!(matches!(conn.next().await, Some(FromWorker::Goodbye(_))));
    drop(conn);
    assert!(end(worker).await.expect("a good end").reason.contains("idle"));
}

#[tokio::test]
async fn a_worker_that_waits_for_an_acknowledgement_is_not_idle() {
    let mut farm = Fake::start().await;
    let idle_limit = Some(Duration::from_millis(100));
    let (worker, _shutdown) = start(WorkerOptions { idle_limit, ..WorkerOptions::new(farm.coordinator(), 1, "w") });
    let mut conn = farm.accept().await;
    conn.welcome(1, vec![]).await;
    conn.experiment(LUBLIN, &[], vec![]).await;
    conn.lease(1, 0, 1).await;
    let hand_in = conn.hand_in().await;
    let said = tokio::time::timeout(Duration::from_secs(1), conn.next()).await;
    assert!(said.is_err(), "{said:?}");
    conn.acknowledge(hand_in.id).await;
    assert!(matches!(conn.next().await, Some(FromWorker::Goodbye(_))));
    drop(conn);
    assert!(end(worker).await.expect("a good end").reason.contains("idle"));
}

#[tokio::test]
async fn stopping_hands_back_queued_tasks_and_those_that_run_at_the_limit() {
    // Jobs arrive ten times as fast as the machine can run them, so that the queue grows and the simulation is long.
    let long = LUBLIN.replace("synthetic_jobs_count = 50", "synthetic_jobs_count = 100_000\ninterarrival_factor = 0.1");
    let long = long.replace("[policies.q]", "[policies.q]\nbackfill = \"conservative\"");
    let mut farm = Fake::start().await;
    let drain_limit = Duration::from_millis(50);
    let (worker, shutdown) = start(WorkerOptions { drain_limit, ..WorkerOptions::new(farm.coordinator(), 1, "w") });
    let mut conn = farm.accept().await;
    conn.welcome(1, vec![]).await;
    conn.experiment(&long, &[], vec![]).await;
    conn.lease(1, 0, 1).await;
    conn.lease(2, 1, 10).await;
    conn.busy(1).await;
    shutdown.cancel();
    let mut back = Vec::new();
    while let Some(message) = conn.next().await {
        match message {
            FromWorker::HandBack(h) => back.extend(h.ranges.iter().flat_map(|r| r.start..r.end)),
            FromWorker::Goodbye(_) => {}
            other => panic!("unexpected {other:?}"),
        }
    }
    back.sort_unstable();
    assert_eq!(back, (0..10).collect::<Vec<u64>>());
    drop(conn);
    end(worker).await.expect("a good end");
}

#[tokio::test]
async fn a_worker_survives_the_end_of_its_coordinator() {
    let mut farm = Fake::start().await;
    let (worker, shutdown) = start(WorkerOptions::new(farm.coordinator(), 2, "w"));
    let mut conn = farm.accept().await;
    conn.welcome(1, vec![]).await;
    conn.send(ToWorker::Drain(v1::Drain { reason: "maintenance".into() })).await;
    assert!(matches!(conn.next().await, Some(FromWorker::Goodbye(_))));
    drop(conn);
    let mut farm = farm.restart().await;
    let mut conn = farm.accept().await;
    conn.welcome(2, vec![]).await;
    conn.experiment(LUBLIN, &[], vec![]).await;
    conn.lease(1, 0, 5).await;
    assert_eq!(conn.hand_ins(5).await.iter().map(rows).sum::<usize>(), 5);
    leave(conn, worker, shutdown).await;
}
