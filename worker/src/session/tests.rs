//! The state machine without threads, sockets and clocks.

use bytes::Bytes;

use super::*;

const NOW: Duration = Duration::ZERO;

fn session(slots: usize) -> Session {
    let identity = Identity {
        name: "w".into(),
        worker_id: Uuid::from_u128(7),
        allocation: String::new(),
        versions: v1::Versions::default(),
    };
    Session::new(identity, slots)
}

fn id(counter: u64) -> v1::LeaseId {
    v1::LeaseId { epoch: 1, counter }
}

fn grant(session: &mut Session, counter: u64, start: u64, end: u64) {
    session.lease(v1::Lease {
        id: Some(id(counter)),
        experiment: "e".into(),
        generation: 1,
        ranges: vec![v1::IndexRange { start, end }],
        attempt: 1,
    });
}

fn connect(session: &mut Session, epoch: u64, adopted: Vec<v1::LeaseId>) -> v1::Hello {
    let hello = session.hello(None);
    session.welcome(&v1::Welcome { epoch, adopted, ..Default::default() });
    hello
}

fn index(take: Take) -> u64 {
    match take {
        Take::Task(task) => task.index,
        other => panic!("expected a task, got {other:?}"),
    }
}

fn batch(lease: u64, indices: Vec<u64>, objects: Vec<v1::UploadPartRequest>) -> FinishedBatch {
    let hand_in = v1::HandIn {
        experiment: "e".into(),
        generation: 1,
        done: vec![v1::LeaseTasks { lease: Some(id(lease)), indices }],
        rows: Bytes::from_static(b"rows"),
        ..Default::default()
    };
    FinishedBatch { hand_in, objects }
}

fn object(n: u8) -> v1::UploadPartRequest {
    let (part_id, data) = (vec![n; 16].into(), Bytes::from_static(b"part"));
    v1::UploadPartRequest {
        experiment: "e".into(),
        table: "jobs".into(),
        part_id,
        lease: None,
        data,
        ..Default::default()
    }
}

fn sent(session: &mut Session) -> Vec<Body> {
    std::iter::from_fn(|| session.next_message()).collect()
}

fn sent_ids(session: &mut Session) -> Vec<u64> {
    let id = |body: Body| match body {
        Body::HandIn(h) => h.id,
        Body::Failure(f) => f.id,
        other => panic!("unexpected {other:?}"),
    };
    sent(session).into_iter().map(id).collect()
}

fn open(hello: &v1::Hello) -> Vec<(u64, u64, u64)> {
    let ranges = |l: &v1::LeaseState| {
        let counter = l.lease.map_or(0, |i| i.counter);
        l.open.iter().map(move |r| (counter, r.start, r.end)).collect::<Vec<_>>()
    };
    hello.held.iter().flat_map(ranges).collect()
}

#[test]
fn after_a_stall_no_task_starts_before_the_coordinator_has_answered() {
    let mut s = session(1);
    connect(&mut s, 1, vec![]);
    grant(&mut s, 1, 0, 10);
    assert_eq!(index(s.take(0)), 0);
    assert!(s.finished(0));
    s.stood_still();
    assert!(matches!(s.take(0), Take::Idle));
    // The coordinator has given the lease to others.
    connect(&mut s, 1, vec![]);
    assert!(matches!(s.take(0), Take::Idle), "its queue was dropped");
    grant(&mut s, 2, 20, 30);
    s.stood_still();
    assert!(matches!(s.take(0), Take::Idle));
    connect(&mut s, 1, vec![id(2)]);
    assert_eq!(index(s.take(0)), 20, "this lease continues");
    assert!(s.finished(0));
    // No coordinator answers: the slots go on as in any outage.
    s.stood_still();
    s.disconnected();
    assert_eq!(index(s.take(0)), 21);
}

#[test]
fn slots_share_the_oldest_lease_in_order() {
    let mut s = session(2);
    connect(&mut s, 1, vec![]);
    grant(&mut s, 2, 10, 11);
    grant(&mut s, 1, 0, 2);
    assert_eq!(index(s.take(0)), 0);
    assert_eq!(index(s.take(1)), 1);
    s.finished(1);
    assert_eq!(index(s.take(1)), 10);
    s.finished(0);
    assert_eq!(s.take(0), Take::Idle);
    assert_eq!(s.busy_slots(), 1);
}

#[test]
fn a_row_is_sent_once_a_connection_and_forgotten_when_acknowledged() {
    let mut s = session(1);
    connect(&mut s, 1, vec![]);
    grant(&mut s, 1, 0, 2);
    assert_eq!(index(s.take(0)), 0);
    s.finished(0);
    s.hand_in(batch(1, vec![0], vec![]));
    assert_eq!(sent_ids(&mut s), [1]);
    assert_eq!(sent_ids(&mut s), Vec::<u64>::new());

    s.disconnected();
    assert_eq!(s.next_message(), None);
    let hello = s.hello(None);
    assert_eq!(open(&hello), [(1, 0, 2)], "finished but unacknowledged tasks are still held");
    assert_eq!(s.next_message(), None, "nothing is sent before the welcome");
    s.welcome(&v1::Welcome { epoch: 1, adopted: vec![id(1)], ..Default::default() });
    assert_eq!(sent_ids(&mut s), [1], "the same id, so that the coordinator can drop a duplicate");
    s.acknowledged(&[1]);
    s.acknowledged(&[1, 99]);
    assert_eq!(s.tasks_acknowledged, 1);
    assert_eq!(open(&s.hello(None)), [(1, 1, 2)]);
}

#[test]
fn a_lease_that_is_not_adopted_loses_its_queue_but_not_its_rows() {
    let mut s = session(2);
    connect(&mut s, 1, vec![]);
    grant(&mut s, 1, 0, 5);
    s.take(0);
    s.take(1);
    s.finished(0);
    s.hand_in(batch(1, vec![0], vec![]));
    s.disconnected();
    connect(&mut s, 2, vec![]);
    assert_eq!(s.take(0), Take::Idle);
    s.finished(1);
    s.hand_in(batch(1, vec![1], vec![]));
    assert_eq!(sent_ids(&mut s), [1, 2]);
    s.acknowledged(&[1, 2]);
    assert!(s.is_settled());
}

#[test]
fn revoked_tasks_are_stopped_and_not_reported() {
    let mut s = session(2);
    connect(&mut s, 1, vec![]);
    grant(&mut s, 1, 0, 4);
    s.take(0);
    s.take(1);
    s.revoked(&v1::Revoke {
        lease: Some(id(1)),
        ranges: vec![v1::IndexRange { start: 1, end: 3 }],
        queued_only: false,
    });
    assert!(!s.stop_flag(0).load(Ordering::Relaxed));
    assert!(s.stop_flag(1).load(Ordering::Relaxed));
    s.stopped(1);
    assert_eq!(s.next_message(), None);
    assert_eq!(index(s.take(1)), 3);
    assert!(!s.stop_flag(1).load(Ordering::Relaxed), "the flag is the task's, not the slot's");
    s.revoked(&v1::Revoke { lease: Some(id(1)), ranges: vec![], queued_only: false });
    s.stopped(0);
    s.stopped(1);
    assert!(s.is_settled());
}

#[test]
fn draining_hands_back_the_queue_then_the_running_tasks() {
    let mut s = session(1);
    connect(&mut s, 1, vec![]);
    grant(&mut s, 1, 0, 4);
    s.take(0);
    s.drain(NOW, Duration::from_secs(10), "signal");
    let ranges = |body: Body| match body {
        Body::HandBack(h) => h.ranges.iter().map(|r| (r.start, r.end)).collect::<Vec<_>>(),
        other => panic!("unexpected {other:?}"),
    };
    assert_eq!(sent(&mut s).into_iter().flat_map(ranges).collect::<Vec<_>>(), [(1, 4)]);
    s.tick(Duration::from_secs(9));
    assert!(!s.stop_flag(0).load(Ordering::Relaxed));
    s.tick(Duration::from_secs(10));
    assert!(s.stop_flag(0).load(Ordering::Relaxed));
    s.stopped(0);
    assert_eq!(sent(&mut s).into_iter().flat_map(ranges).collect::<Vec<_>>(), [(0, 1)]);
    grant(&mut s, 2, 7, 9);
    assert_eq!(sent(&mut s).into_iter().flat_map(ranges).collect::<Vec<_>>(), [(7, 9)]);
    assert_eq!(s.take(0), Take::Stop);
    assert!(s.is_settled());
}

#[test]
fn failures_are_acknowledged_like_rows() {
    let mut s = session(1);
    connect(&mut s, 1, vec![]);
    grant(&mut s, 1, 0, 1);
    s.take(0);
    s.failed(0, v1::FailureKind::Panic, "boom".into());
    assert!(!s.is_settled());
    let Some(Body::Failure(failure)) = s.next_message() else { panic!("a failure is sent") };
    assert_eq!((failure.id, failure.index, failure.kind()), (1, 0, v1::FailureKind::Panic));
    s.acknowledged(&[1]);
    assert!(s.is_settled());
    assert_eq!(s.failures, 1);
}

#[test]
fn a_hand_in_waits_for_its_uploads_and_repeats_them_under_a_new_epoch() {
    let mut s = session(1);
    connect(&mut s, 1, vec![]);
    grant(&mut s, 1, 0, 2);
    s.take(0);
    s.finished(0);
    s.hand_in(batch(1, vec![0], vec![object(1), object(2)]));
    let first = s.next_upload().expect("the first upload");
    assert!(s.next_upload().is_none(), "one upload at a time");
    s.uploaded(&first, false);
    let first = s.next_upload().expect("again after a failure");
    s.uploaded(&first, true);
    assert_eq!(sent_ids(&mut s), Vec::<u64>::new());
    let second = s.next_upload().expect("the second upload");
    assert_ne!(first.object.part_id, second.object.part_id);
    s.uploaded(&second, true);
    assert_eq!(sent_ids(&mut s), [1]);

    s.disconnected();
    connect(&mut s, 1, vec![id(1)]);
    assert_eq!(sent_ids(&mut s), [1], "the same coordinator still has the uploads");
    s.disconnected();
    connect(&mut s, 2, vec![id(1)]);
    assert_eq!(sent_ids(&mut s), Vec::<u64>::new());
    assert!(s.next_upload().is_some(), "a new coordinator has deleted the uploads");
    s.uploaded(&second, true);
    assert_eq!(sent_ids(&mut s), Vec::<u64>::new(), "a late answer about another upload changes nothing");
}

#[test]
fn a_hand_in_overtakes_an_earlier_one_that_waits_for_an_upload() {
    let mut s = session(1);
    connect(&mut s, 1, vec![]);
    grant(&mut s, 1, 0, 3);
    for i in 0..3 {
        s.take(0);
        s.finished(0);
        s.hand_in(batch(1, vec![i], if i == 0 { vec![object(1)] } else { vec![] }));
    }
    assert_eq!(sent_ids(&mut s), [2, 3]);
    let upload = s.next_upload().expect("the upload");
    s.uploaded(&upload, true);
    assert_eq!(sent_ids(&mut s), [1]);
}

#[test]
fn a_rejected_hand_in_is_dropped_and_not_counted() {
    let mut s = session(1);
    connect(&mut s, 1, vec![]);
    grant(&mut s, 1, 0, 1);
    s.take(0);
    s.finished(0);
    s.hand_in(batch(1, vec![0], vec![]));
    assert_eq!(sent_ids(&mut s), [1]);
    s.rejected(&[1]);
    assert_eq!((s.tasks_acknowledged, s.tasks_rejected), (0, 1));
    assert!(s.is_settled());
}

#[test]
fn a_lease_granted_twice_counts_once() {
    let mut s = session(1);
    connect(&mut s, 1, vec![]);
    grant(&mut s, 1, 0, 1);
    s.take(0);
    grant(&mut s, 1, 0, 1);
    s.finished(0);
    assert_eq!(s.take(0), Take::Idle);
}

#[test]
fn a_full_outbox_stops_new_tasks() {
    let mut s = session(1);
    connect(&mut s, 1, vec![]);
    grant(&mut s, 1, 0, 2);
    s.take(0);
    s.finished(0);
    let mut large = batch(1, vec![0], vec![]);
    large.hand_in.rows = Bytes::from(vec![0; OUTBOX_BYTES_MAX + 1]);
    s.hand_in(large);
    assert_eq!(s.take(0), Take::Full);
    s.acknowledged(&[1]);
    assert_eq!(index(s.take(0)), 1);
}

/// Memory of unanswered rows is bounded, also if the rows are tiny and many.
#[test]
fn an_outbox_counts_rows_objects_and_tasks() {
    let bytes = |rows: usize, tasks: u64, objects: Vec<v1::UploadPartRequest>| {
        let mut outbox = Outbox::default();
        let mut finished = batch(1, (0..tasks).collect(), objects);
        finished.hand_in.rows = Bytes::from(vec![0; rows]);
        outbox.hand_in(finished);
        let bytes = outbox.bytes();
        outbox.remove(1);
        assert_eq!(outbox.bytes(), 0);
        bytes
    };
    let entry = bytes(0, 0, vec![]);
    assert!(entry > 0);
    let task = bytes(0, 1, vec![]) - entry;
    assert!(task >= 8, "an index has 8 bytes");
    assert_eq!(bytes(1000, 7, vec![object(1), object(2)]), entry + 1000 + 7 * task + 8);
}

#[test]
fn excluded_indices_settle_the_lease() {
    let mut s = session(1);
    connect(&mut s, 1, vec![]);
    grant(&mut s, 1, 0, 100);
    assert_eq!(index(s.take(0)), 0);
    s.excluded(0, 100);
    assert_eq!(s.take(0), Take::Idle);
    assert!(s.is_settled());
}

#[test]
fn a_pause_hands_back_the_queue_and_ends_with_the_connection() {
    let mut s = session(1);
    connect(&mut s, 1, vec![]);
    grant(&mut s, 1, 0, 4);
    s.take(0);
    s.pause();
    let Some(Body::HandBack(h)) = s.next_message() else { panic!("the queue is handed back") };
    assert_eq!(h.ranges, [v1::IndexRange { start: 1, end: 4 }]);
    assert!(!s.stop_flag(0).load(Ordering::Relaxed), "the running task continues");
    s.finished(0);
    s.hand_in(batch(1, vec![0], vec![]));
    assert_eq!(s.take(0), Take::Idle);
    assert!(!s.is_released());
    assert_eq!(sent_ids(&mut s), [1]);
    s.acknowledged(&[1]);
    assert!(s.is_released());
    s.disconnected();
    connect(&mut s, 2, vec![]);
    grant(&mut s, 2, 1, 2);
    assert_eq!(index(s.take(0)), 1);
}
