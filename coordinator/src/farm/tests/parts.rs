//! Publishing: the number of parts, records and rows in flight.

use std::time::Duration;

use futures::executor::block_on;
use powersweep_proto::v1;
use powersweep_proto::v1::worker_message::Body as ToFarm;
use powersweep_results::Table;
use uuid::Uuid;

use super::wire::{Wire, failure, hand_in, sweep, sweep_of, tasks};
use crate::farm::outgoing::Outgoing;
use crate::farm::tables::Header;
use crate::farm::{Config, Event, PublishFailure, Reply, Request};
use crate::publish::Visible;
use crate::records::{EncodedRows, Record, RowsRecord, Stored};
use crate::store::{ModelStore, Op, Store};

/// A worker that hands in one task at a time, with an upload of its jobs.
struct Slow {
    wire: Wire,
    conn: u64,
    waiting: Vec<(v1::Lease, u64)>,
    said: u64,
}

impl Slow {
    fn begin(seeds: u64) -> Slow {
        let config = Config { silence: Duration::from_secs(1 << 40), ..Config::default() };
        let mut wire = Wire::with(config, ModelStore::new());
        wire.submit(sweep_of(&format!(
            "version = 1\nname = \"e\"\ntables = [\"jobs\"]\nseeds = {{ from = 1, count = {seeds} }}\n[workloads.w]\n\
             source = \"lublin\"\n[platforms.p]\n[policies.q]\n"
        )));
        let conn = wire.connect(1, 4, vec![]);
        wire.commit_all();
        Slow { wire, conn, waiting: Vec::new(), said: 0 }
    }

    fn next(&mut self) -> (v1::Lease, u64) {
        let leases = self.wire.leases(self.conn);
        self.waiting.extend(leases.into_iter().flat_map(|l| tasks(&l).into_iter().map(move |t| (l.clone(), t))));
        self.waiting.pop().expect("there are tasks")
    }

    /// One task's rows and jobs, then `pause`.
    fn task(&mut self, bytes: u64, pause: Duration) {
        let (lease, task) = self.next();
        self.said += 1;
        let ToFarm::HandIn(mut body) = hand_in(self.said, &lease, &[task]) else { panic!("a hand-in") };
        let part_id = Uuid::from_u128(u128::from(self.said));
        let rows = self.wire.identities("e", lease.generation, &[task]);
        self.wire.staging.insert(part_id, rows);
        let part_id = part_id.as_bytes().to_vec().into();
        body.uploads.push(v1::Upload { table: "jobs".into(), part_id, rows: 1, bytes });
        self.wire.send(self.conn, ToFarm::HandIn(body));
        self.pass(pause);
    }

    fn pass(&mut self, pause: Duration) {
        self.wire.settle();
        self.wire.pass(pause);
        self.wire.event(Event::Tick);
        self.wire.settle();
    }

    /// Parts of tasks and of jobs.
    fn parts(&self) -> (usize, usize) {
        (self.wire.visible.len(), self.wire.visible_jobs.len())
    }
}

#[test]
fn a_month_of_slow_tasks_gives_few_parts() {
    let minutes = 10;
    let count = 30 * 24 * 60 / minutes;
    let mut slow = Slow::begin(count + 1);
    let mut oldest = Duration::ZERO;
    for n in 0..count {
        slow.task(1_000, Duration::from_secs(60 * minutes));
        let visible: usize = slow.wire.visible.values().map(Vec::len).sum();
        oldest = oldest.max(Duration::from_secs(60 * minutes * (n + 1 - visible as u64)));
        if n == 12 {
            assert!(slow.parts().0 >= 5, "rows of a young experiment are published soon: {:?}", slow.parts());
        }
    }
    let (tasks, jobs) = slow.parts();
    println!("{count} hand-ins in 30 days: {tasks} parts of tasks, {jobs} of jobs");
    assert!((50..170).contains(&tasks) && (50..170).contains(&jobs), "{tasks} and {jobs} parts");
    assert!(oldest <= Duration::from_secs(6 * 3600 + 1200), "rows were {oldest:?} late");
    slow.task(1_000, Duration::ZERO);
    let rows: usize = slow.wire.visible.values().map(Vec::len).sum();
    assert_eq!(rows as u64, count + 1, "all rows are published at the end");
    assert_eq!(slow.wire.visible_jobs.values().map(Vec::len).sum::<usize>(), rows);
    assert!(slow.wire.staging.is_empty(), "merged uploads are deleted");
    let loaded = block_on(slow.wire.store.load()).expect("loads");
    assert!(loaded.rows.iter().all(|rows| rows.upload.is_none()));
}

#[test]
fn uploads_gather_until_they_fill_a_part() {
    let mut slow = Slow::begin(100);
    let second = Duration::from_secs(1);
    for _ in 0..63 {
        slow.task(1 << 20, second);
    }
    assert_eq!(slow.parts().1, 0, "63 MiB do not fill a part");
    slow.task(1 << 20, second);
    assert_eq!(slow.parts().1, 1, "64 MiB do");
    for _ in 0..5 {
        slow.task(1 << 20, second);
    }
    assert_eq!(slow.parts(), (0, 1));
    slow.wire.request(Request::Flush("e".into()));
    slow.wire.settle();
    assert_eq!(slow.parts(), (1, 2), "a flush publishes all rows");
    assert!(matches!(slow.wire.replies.pop(), Some(Reply::Flushed(reply)) if reply.rows == 69));
    // Uploads are records, which a crash does not lose.
    slow.task(1, second);
    slow.wire.reload();
    slow.wire.commit_all();
    slow.wire.request(Request::Flush("e".into()));
    slow.wire.settle();
    assert_eq!(slow.parts(), (2, 3));
}

#[test]
fn rows_of_failed_attempts_gather_until_they_are_old() {
    let mut slow = Slow::begin(60);
    for n in 0..20 {
        let (lease, task) = slow.next();
        slow.wire.send(slow.conn, failure(1_000 + n, &lease, task, v1::FailureKind::Spec));
        slow.pass(Duration::from_secs(20));
    }
    let rows = |wire: &Wire| wire.store_rows(Table::Failures);
    assert_eq!(rows(&slow.wire), 20, "one row for each attempt");
    slow.pass(Duration::from_secs(600));
    assert_eq!(rows(&slow.wire), 0, "old rows are published");
}

#[test]
fn tasks_done_before_a_table_was_asked_for_are_counted() {
    let sweep = |seeds: &str, tables: &str| {
        sweep_of(&format!(
            "version = 1\nname = \"e\"\n{tables}\nseeds = [{seeds}]\n[workloads.w]\nsource = \"lublin\"\n\
             [platforms.p]\n[policies.q]\n"
        ))
    };
    let lacking = |reply: Reply| match reply {
        Reply::Submitted(reply) => reply.lacking.into_iter().map(|gap| (gap.table, gap.tasks)).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    let mut wire = Wire::new();
    assert_eq!(lacking(wire.submit(sweep("1, 2", ""))), []);
    let conn = wire.connect(1, 2, vec![]);
    wire.commit_all();
    let leases = wire.leases(conn);
    for (n, lease) in (1..).zip(&leases) {
        wire.send(conn, hand_in(n, lease, &tasks(lease)));
    }
    wire.settle();
    let gap = vec![("jobs".to_owned(), 2)];
    assert_eq!(lacking(wire.submit(sweep("1, 2, 3", "tables = [\"jobs\"]"))), gap);
    // A submit of the unchanged manifest has the same reply, also after a crash.
    assert_eq!(lacking(wire.submit(sweep("1, 2, 3", "tables = [\"jobs\"]"))), gap);
    wire.reload();
    wire.commit_all();
    assert_eq!(lacking(wire.submit(sweep("1, 2, 3", "tables = [\"jobs\"]"))), gap);
    assert_eq!(lacking(wire.submit(sweep("1, 2, 3", ""))), []);
}

#[test]
fn no_task_is_handed_out_while_parts_fall_behind() {
    let config = Config { part_rows: 4, part_rows_waiting: 8, lease_tasks_max: 4, ..Config::default() };
    let config = Config { silence: Duration::from_secs(3600), ..config };
    let mut wire = Wire::with(config, ModelStore::new());
    wire.submit(sweep("e", 100));
    let conn = wire.connect(1, 2, vec![]);
    wire.commit_all();
    let mut handed_in = 0;
    // Intents are opened, and no part is written.
    for id in 1..50 {
        for lease in wire.leases(conn) {
            handed_in += tasks(&lease).len() as u64;
            wire.send(conn, hand_in(id, &lease, &tasks(&lease)));
        }
        wire.commit_all();
    }
    let status = wire.status("e");
    assert!((8..20).contains(&handed_in), "{handed_in}");
    assert_eq!((status.done, status.running), (handed_in, 0));
    assert_eq!((status.state(), &*status.reason), (v1::ExperimentState::Running, "waits until parts are written"));
    // Parts that storage refuses do not stop the dispatch.
    let failed = PublishFailure { reason: "no room".to_owned(), retryable: true };
    for intent in std::mem::take(&mut wire.to_publish) {
        wire.event(Event::Published { part_id: *intent.part_id, result: Err(failed.clone()) });
    }
    wire.commit_all();
    let leases = wire.leases(conn);
    assert!(!leases.is_empty());
    leases.iter().for_each(|lease| wire.send(conn, hand_in(100, lease, &tasks(lease))));
    wire.pass(Duration::from_secs(60));
    wire.event(Event::Tick);
    wire.settle();
    wire.work_off(conn);
    let status = wire.status("e");
    assert_eq!((status.state(), status.rows_in_parts), (v1::ExperimentState::Finished, 100));
}

/// Otherwise a farm of many workers would still compute a million rows after a pause.
#[test]
fn all_workers_together_hold_at_most_the_tasks_of_one_part() {
    let mut wire = Wire::new();
    wire.submit(sweep("e", 100_000_000));
    let conns: Vec<u64> = (1..=16).map(|worker| wire.connect(worker, 1, vec![])).collect();
    wire.commit_all();
    // The tasks are so cheap that two seconds of work are more tasks than a worker may hold.
    for (id, &conn) in (1..).zip(&conns) {
        let lease = wire.leases(conn).remove(0);
        let ToFarm::HandIn(mut cheap) = hand_in(id, &lease, &tasks(&lease)) else { unreachable!("a hand-in") };
        cheap.spent = Some(v1::TimeSpent { engine_s: 1e-6, ..Default::default() });
        wire.send(conn, ToFarm::HandIn(cheap));
    }
    wire.settle();
    let held = |conn| wire.leases(conn).iter().map(|lease| tasks(lease).len() as u64).sum::<u64>();
    let held: Vec<u64> = conns.iter().copied().map(held).collect();
    let (part_rows, all) = (wire.config.part_rows, held.iter().sum::<u64>());
    assert!((part_rows / 2..=part_rows).contains(&all), "{all} tasks are held: {held:?}");
}

/// With thousands of workers, a record and a header for each hand-in would be too many writes and deletions.
#[test]
fn hand_ins_that_become_durable_together_are_one_record() {
    let mut wire = Wire::new();
    wire.submit(sweep("e", 100));
    let conn = wire.connect(1, 4, vec![]);
    wire.commit_all();
    let waiting =
        wire.leases(conn).into_iter().flat_map(|lease| tasks(&lease).into_iter().map(move |t| (lease.clone(), t)));
    let waiting: Vec<_> = waiting.take(5).collect();
    let again = [waiting[0].1, waiting[3].1];
    for (id, (lease, task)) in (1..).zip(&waiting[..3]) {
        wire.send(conn, hand_in(id, lease, &[*task]));
    }
    wire.send(conn, hand_in(4, &waiting[3].0, &again));
    wire.commit_all();
    wire.send(conn, hand_in(5, &waiting[4].0, &[waiting[4].1]));
    wire.commit_all();

    let loaded = block_on(wire.store.load()).expect("it loads");
    let counts: Vec<_> = loaded.rows.iter().map(|header| (header.seq, header.rows)).collect();
    assert_eq!(counts, [(0, 4), (1, 1)]);
    let records = block_on(wire.store.rows("e", Table::Tasks, 0, 1)).expect("there");
    let hand_ins: Vec<_> = records.iter().map(|record| record.hand_ins.len()).collect();
    assert_eq!(hand_ins, [4, 1]);
    assert_eq!(records[0].hand_ins[3].mask, Some(Stored::of_bits([0].into_iter().collect())), "its task was done");
}

#[test]
fn rows_join_only_a_small_waiting_record_of_their_table_and_generation() {
    let rows = |bytes: usize| EncodedRows { rows: 1, mask: None, encoded: vec![0; bytes].into(), decoded_bytes: 0 };
    let last = |seq, bytes| Some(Header { seq, rows: 1, bytes, received_us: 1, upload: None });
    let mine = last(7, 30_000);
    let mut out = Outgoing::new(1);
    assert!(out.join("e", Table::Tasks, mine.as_ref(), 2, rows(10)).is_err(), "no record waits");
    out.put(Record::Rows(RowsRecord {
        experiment: "e".into(),
        table: Table::Tasks.into(),
        seq: 7,
        generation: 2,
        received_us: 1,
        hand_ins: vec![rows(30_000)],
        upload: None,
    }));
    assert!(out.join("f", Table::Tasks, mine.as_ref(), 2, rows(10)).is_err(), "another experiment");
    assert!(out.join("e", Table::Failures, mine.as_ref(), 2, rows(10)).is_err(), "another table");
    assert!(out.join("e", Table::Tasks, last(6, 30_000).as_ref(), 2, rows(10)).is_err(), "another record");
    assert!(out.join("e", Table::Tasks, None, 2, rows(10)).is_err(), "the record is in a part's intent");
    assert!(out.join("e", Table::Tasks, mine.as_ref(), 3, rows(10)).is_err(), "another generation");
    assert!(out.join("e", Table::Tasks, mine.as_ref(), 2, rows(40_000)).is_err(), "too large");
    assert!(out.join("e", Table::Tasks, mine.as_ref(), 2, rows(20_000)).is_ok());
    assert_eq!(out.waiting_bytes(), 50_000);
    let (_, batch) = out.take_commit(|_, _| None).expect("a batch");
    let Some(Op::Put(Record::Rows(record))) = batch.ops().last() else { panic!("rows") };
    assert_eq!(record.hand_ins, [rows(30_000), rows(20_000)]);
    assert!(out.join("e", Table::Tasks, last(7, 50_000).as_ref(), 2, rows(10)).is_err(), "the record is in flight");
}

/// The experiment `e`, whose tasks have ended, and its last part, which is to be published.
fn with_last_part() -> (Wire, Uuid) {
    let mut wire = Wire::new();
    wire.submit(sweep("e", 1));
    let conn = wire.connect(1, 1, Vec::new());
    wire.commit_all();
    let lease = wire.leases(conn).remove(0);
    wire.send(conn, hand_in(1, &lease, &tasks(&lease)));
    wire.commit_all();
    let part_id = *wire.to_publish.pop().expect("the last rows").part_id;
    (wire, part_id)
}

#[test]
fn an_upload_that_is_left_out_is_in_the_status_also_after_a_restart() {
    let (mut wire, part_id) = with_last_part();
    wire.event(Event::Published { part_id, result: Ok(Visible { bytes: 1, uploads_left_out: 2, rows_left_out: 5 }) });
    for _ in 0..2 {
        wire.commit_all();
        let status = wire.status("e");
        let reason = "uploads of workers that could not be read are left out: 2 in tasks";
        assert_eq!((status.state(), &*status.reason), (v1::ExperimentState::Failed, reason), "{status:?}");
        wire.reload();
    }
}

#[test]
fn rows_that_cannot_be_published_are_in_the_stored_state_and_are_tried_again_by_a_submit() {
    let (mut wire, part_id) = with_last_part();
    let lost = PublishFailure { reason: "it is missing".to_owned(), retryable: false };
    wire.event(Event::Published { part_id, result: Err(lost) });
    for _ in 0..2 {
        wire.commit_all();
        let request = v1::StatusRequest::default();
        let stored = crate::plan::status(block_on(wire.store.load()).expect("loads"), None, &request, "data");
        for status in [&stored.experiments[0], &wire.status("e")] {
            let reason = format!("1 rows cannot be published (part {part_id} of tasks): it is missing");
            assert_eq!((status.state(), &status.reason), (v1::ExperimentState::Failed, &reason), "{status:?}");
        }
        wire.reload();
    }
    wire.commit_all();
    wire.to_publish.clear();
    wire.event(Event::Published {
        part_id,
        result: Err(PublishFailure { reason: "still".to_owned(), retryable: false }),
    });
    wire.submit(sweep("e", 1));
    assert_eq!(wire.status("e").state(), v1::ExperimentState::Running, "{:?}", wire.status("e"));
    wire.commit_all();
    assert_eq!(*wire.to_publish.pop().expect("again").part_id, part_id);
    wire.event(Event::Published { part_id, result: Ok(Visible::whole(1)) });
    wire.commit_all();
    assert_eq!(wire.status("e").state(), v1::ExperimentState::Finished, "{:?}", wire.status("e"));
}
