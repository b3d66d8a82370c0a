//! Leases, hand-ins, failures, edits.

use std::time::Duration;

use powersweep_proto::v1;
use powersweep_proto::v1::farm_message::Body as ToWorker;
use powersweep_proto::v1::worker_message::Body as ToFarm;

use super::wire::{Wire, failure, hand_in, sweep, tasks};
use crate::farm::{Event, Reply, Request};
use crate::store::Fault;

fn acks(messages: Vec<ToWorker>) -> (Vec<u64>, Vec<String>) {
    let (mut ids, mut rejected) = (Vec::new(), Vec::new());
    for message in messages {
        if let ToWorker::Ack(ack) = message {
            ids.extend(ack.ids);
            rejected.extend(ack.rejected.into_iter().map(|r| r.reason));
        }
    }
    (ids, rejected)
}

/// A write that fails, and one that is durable although its answer is lost: the worker hands the rows in again.
#[test]
fn a_worker_counts_each_task_once_whatever_storage_answers() {
    for (fault, handed_in_again) in [(Fault::Lose, 2), (Fault::KeepButFail, 0)] {
        let mut wire = Wire::new();
        wire.submit(sweep("e", 60));
        let done = |wire: &Wire| wire.farm.status(&v1::StatusRequest::default(), wire.now).workers[0].tasks_done;
        let conn = wire.connect(1, 8, Vec::new());
        wire.commit_all();
        let lease = wire.leases(conn).remove(0);
        let leased = tasks(&lease);
        wire.send(conn, hand_in(1, &lease, &leased[..2]));
        wire.commit_all();
        assert_eq!(done(&wire), 2);
        wire.send(conn, hand_in(2, &lease, &leased[2..4]));
        assert_eq!(done(&wire), 2, "the rows are not durable yet");
        wire.commit(Some(fault));
        let durable = wire.status("e").done;
        assert_eq!(durable, 4 - handed_in_again);
        let held = v1::LeaseState {
            lease: lease.id,
            experiment: lease.experiment.clone(),
            generation: lease.generation,
            open: lease.ranges.clone(),
        };
        let conn = wire.connect(1, 8, vec![held]);
        assert_eq!(done(&wire), durable, "{fault:?}");
        for id in [2, 3] {
            wire.send(conn, hand_in(id, &lease, &leased[2..4]));
            wire.commit_all();
            assert_eq!((done(&wire), wire.status("e").done), (4, 4), "{fault:?}: hand-in {id}");
        }
    }
}

#[test]
fn an_experiment_is_finished_when_its_rows_are_visible() {
    let mut wire = Wire::new();
    let Reply::Submitted(reply) = wire.submit(sweep("e", 100)) else { panic!("refused") };
    assert_eq!((reply.tasks, reply.to_run), (100, 100));
    assert_eq!(wire.status("e").state(), v1::ExperimentState::Waiting);
    let conn = wire.connect(1, 2, vec![]);
    assert!(wire.leases(conn).is_empty(), "a lease is sent before it is durable");
    wire.commit_all();
    wire.work_off(conn);
    let status = wire.status("e");
    assert_eq!((status.state(), status.done, status.rows_in_parts), (v1::ExperimentState::Finished, 100, 100));
    assert_eq!(wire.visible.len(), 1);
}

#[test]
fn an_acknowledgement_waits_for_the_commit() {
    let mut wire = Wire::new();
    wire.submit(sweep("e", 10));
    let conn = wire.connect(1, 2, vec![]);
    wire.commit_all();
    let lease = wire.leases(conn).remove(0);
    let done = tasks(&lease);
    wire.send(conn, hand_in(7, &lease, &done));
    assert_eq!(acks(wire.read(conn)).0, Vec::<u64>::new());
    wire.commit(Some(Fault::Lose));
    let conn = wire.connect(1, 2, vec![]);
    assert_eq!(wire.status("e").done, 0, "rows of a lost batch do not count");
    wire.commit_all();
    // The worker sends it again.
    wire.send(conn, hand_in(7, &lease, &done));
    wire.commit_all();
    assert_eq!(acks(wire.read(conn)).0, [7]);
    wire.send(conn, hand_in(8, &lease, &done));
    wire.commit_all();
    assert_eq!(acks(wire.read(conn)).0, [8], "rows of done tasks are acknowledged and not stored again");
    assert_eq!(wire.status("e").done, done.len() as u64);
}

#[test]
fn an_epoch_is_sent_only_once_it_is_durable() {
    let mut wire = Wire::new();
    wire.reload();
    let conn = wire.connect(1, 1, vec![]);
    assert!(wire.read(conn).is_empty(), "an epoch that is not durable may be lost and used again");
    wire.commit_all();
    assert!(matches!(wire.read(conn)[..], [ToWorker::Welcome(_)]));
}

#[test]
fn a_returning_worker_is_adopted_and_an_absent_one_loses_its_leases() {
    let mut wire = Wire::new();
    wire.submit(sweep("e", 100));
    let conn = wire.connect(1, 2, vec![]);
    wire.commit_all();
    let lease = wire.leases(conn).remove(0);
    wire.reload();
    wire.commit_all();
    let held = v1::LeaseState { lease: lease.id, experiment: "e".into(), generation: 1, open: lease.ranges.clone() };
    let conn = wire.connect(1, 2, vec![held]);
    let welcome = wire.read(conn).into_iter().find_map(|m| if let ToWorker::Welcome(w) = m { Some(w) } else { None });
    assert_eq!(welcome.expect("welcome").adopted, [lease.id.expect("an id")]);
    wire.disconnect(conn, true);
    wire.pass(Duration::from_secs(60));
    wire.event(Event::Tick);
    wire.commit_all();
    let other = wire.connect(2, 1, vec![]);
    wire.commit_all();
    wire.work_off(other);
    assert_eq!(wire.status("e").done, 100);
}

#[test]
fn failed_tasks_are_retried_and_quarantined_without_blocking_others() {
    let mut wire = Wire::new();
    wire.submit(sweep("e", 10));
    let conn = wire.connect(1, 1, vec![]);
    wire.commit_all();
    let mut id = 0;
    for _ in 0..200 {
        for lease in wire.leases(conn) {
            for index in tasks(&lease) {
                id += 1;
                let body = match index {
                    3 => failure(id, &lease, index, v1::FailureKind::Panic),
                    5 => failure(id, &lease, index, v1::FailureKind::Spec),
                    _ => hand_in(id, &lease, &[index]),
                };
                wire.send(conn, body);
            }
        }
        wire.settle();
        wire.pass(Duration::from_secs(2));
        wire.event(Event::Tick);
        wire.send(conn, ToFarm::Heartbeat(v1::Heartbeat::default()));
        wire.settle();
    }
    let status = wire.status("e");
    assert_eq!((status.done, status.failed, status.quarantined), (8, 1, 1));
    assert_eq!(status.state(), v1::ExperimentState::Failed);
    let attempts: Vec<(u64, u32)> = status.failures.iter().map(|f| (f.index, f.attempt)).collect();
    assert_eq!(attempts, [(3, 3), (5, 1)]);
}

#[test]
fn wrong_hand_ins_are_rejected_with_the_reason() {
    let mut wire = Wire::new();
    wire.submit(sweep("e", 1000));
    let conn = wire.connect(1, 2, vec![]);
    let thief = wire.connect(2, 2, vec![]);
    wire.commit_all();
    let lease = wire.leases(conn).remove(0);
    let own = tasks(&lease);
    let mut none = lease.clone();
    none.experiment = "other".into();
    let mut later = lease.clone();
    later.id = Some(v1::LeaseId { epoch: 99, counter: 1 });
    let mut generation = lease.clone();
    generation.generation = 9;
    let cases = [
        (thief, hand_in(1, &lease, &own), "another worker's"),
        (conn, hand_in(2, &lease, &[999]), "not in lease"),
        (conn, hand_in(3, &none, &own), "no experiment"),
        (conn, hand_in(4, &later, &own), "never granted"),
        (conn, hand_in(5, &generation, &own), "generation 9"),
        (conn, hand_in(6, &lease, &[]), "0 rows"),
        (conn, hand_in(7, &lease, &[u64::MAX]), "not in"),
    ];
    for (from, body, expected) in cases {
        wire.send(from, body);
        wire.commit_all();
        let (ids, rejected) = acks(wire.read(from));
        assert_eq!(ids, Vec::<u64>::new());
        assert!(rejected.len() == 1 && rejected[0].contains(expected), "{rejected:?} should say {expected}");
    }
    assert_eq!(wire.status("e").done, 0);
}

#[test]
fn an_edit_keeps_rows_and_accepts_hand_ins_of_the_earlier_generation() {
    let mut wire = Wire::new();
    wire.submit(sweep("e", 20));
    let conn = wire.connect(1, 2, vec![]);
    wire.commit_all();
    let lease = wire.leases(conn).remove(0);
    let all = tasks(&lease);
    wire.send(conn, hand_in(1, &lease, &all[..1]));
    wire.commit_all();
    let text = "version = 1\nname = \"e\"\nseeds = [7, 3, 2, 1]\n[workloads.w]\nsource = \"lublin\"\n\
                [platforms.p]\n[policies.q]\n";
    let Reply::Submitted(reply) = wire.submit(super::wire::sweep_of(text)) else { panic!("refused") };
    assert_eq!((reply.generation, reply.tasks, reply.done, reply.extra), (2, 4, 1, 0));
    // Seed 2 was the second task and is the third one now.
    wire.reload();
    let conn = wire.connect(1, 2, vec![]);
    wire.commit_all();
    wire.send(conn, hand_in(2, &lease, &all[1..2]));
    wire.commit_all();
    assert_eq!(wire.status("e").done, 2);
    let Reply::Submitted(reply) = wire.submit(sweep("e", 1)) else { panic!("refused") };
    assert_eq!((reply.tasks, reply.done, reply.extra), (1, 1, 1));
    let Reply::Submitted(reply) = wire.submit(sweep("e", 2)) else { panic!("refused") };
    assert_eq!((reply.tasks, reply.done, reply.extra), (2, 2, 0), "a task that an edit brings back is not run again");
}

#[test]
fn a_sweep_of_a_billion_tasks_is_submitted_at_once() {
    let mut wire = Wire::new();
    let Reply::Submitted(reply) = wire.submit(sweep("e", 1_000_000_000)) else { panic!("refused") };
    assert_eq!(reply.to_run, 1_000_000_000);
    let conn = wire.connect(1, 2, vec![]);
    wire.commit_all();
    assert_eq!(tasks(&wire.leases(conn)[0])[0], 0);
}

#[test]
fn the_last_tasks_are_shared_between_workers() {
    let mut wire = Wire::new();
    wire.submit(sweep("e", 40));
    let conns: Vec<u64> = (1..=4).map(|worker| wire.connect(worker, 1, vec![])).collect();
    wire.commit_all();
    let mut held: Vec<Vec<(v1::Lease, u64)>> = vec![Vec::new(); 4];
    let mut steps = 0;
    while wire.status("e").done < 40 {
        for (at, &conn) in conns.iter().enumerate() {
            for lease in wire.leases(conn) {
                held[at].extend(tasks(&lease).into_iter().map(|index| (lease.clone(), index)));
            }
        }
        // Each worker does one task in a step; its hand-in says that the task took half a second.
        for (at, &conn) in conns.iter().enumerate() {
            if !held[at].is_empty() {
                let (lease, index) = held[at].remove(0);
                wire.send(conn, hand_in(1000 + index, &lease, &[index]));
            }
        }
        wire.settle();
        steps += 1;
    }
    assert!(steps <= 11, "40 tasks on 4 slots took {steps} steps");
}

fn sweep_with_jobs(seeds: &str, jobs: bool) -> powersweep_experiments::Sweep {
    let tables = if jobs { "tables = [\"jobs\"]" } else { "" };
    super::wire::sweep_of(&format!(
        "version = 1\nname = \"e\"\n{tables}\nseeds = [{seeds}]\n[workloads.w]\nsource = \"lublin\"\n\
         [platforms.p]\n[policies.q]\n"
    ))
}

/// A hand-in with an upload of the jobs table added to it.
fn with_upload(wire: &mut Wire, body: ToFarm, part: u128) -> ToFarm {
    let ToFarm::HandIn(mut hand_in) = body else { panic!("a hand-in") };
    let part_id = uuid::Uuid::from_u128(part);
    let tasks = wire.identities(&hand_in.experiment, hand_in.generation, &hand_in.done[0].indices);
    wire.staging.insert(part_id, tasks);
    let part = v1::Upload { table: "jobs".into(), part_id: part_id.as_bytes().to_vec().into(), rows: 1, bytes: 1 };
    hand_in.uploads.push(part);
    ToFarm::HandIn(hand_in)
}

#[test]
fn an_upload_of_a_table_that_an_edit_removed_is_deleted_and_its_row_accepted() {
    let mut wire = Wire::new();
    wire.submit(sweep_with_jobs("1, 2", true));
    let conn = wire.connect(1, 1, vec![]);
    wire.commit_all();
    let lease = wire.leases(conn).remove(0);
    let body = hand_in(1, &lease, &tasks(&lease)[..1]);
    let body = with_upload(&mut wire, body, 1);
    wire.submit(sweep_with_jobs("1, 2", false));
    wire.send(conn, body);
    wire.commit_all();
    assert_eq!(acks(wire.read(conn)), (vec![1], vec![]));
    assert_eq!(wire.status("e").done, 1);
    assert!(wire.staging.is_empty(), "the upload is deleted");
}

#[test]
fn a_hand_in_that_names_a_deleted_upload_is_rejected() {
    let mut wire = Wire::new();
    wire.submit(sweep_with_jobs("1, 2", true));
    let conn = wire.connect(1, 1, vec![]);
    wire.commit_all();
    let lease = wire.leases(conn).remove(0);
    let body = hand_in(1, &lease, &tasks(&lease)[..1]);
    let body = with_upload(&mut wire, body, 1);
    // The manifest lacks the task when the hand-in comes first, and has it again when the hand-in is repeated.
    wire.submit(sweep_with_jobs("2", true));
    wire.send(conn, body.clone());
    wire.commit_all();
    assert_eq!(acks(wire.read(conn)).0, [1]);
    wire.submit(sweep_with_jobs("1, 2", true));
    wire.send(conn, body);
    wire.commit_all();
    let (ids, rejected) = acks(wire.read(conn));
    assert!(ids.is_empty() && rejected[0].contains("deleted"), "{ids:?} {rejected:?}");
    assert_eq!(wire.status("e").done, 0, "the task runs again");
}

#[test]
fn a_reply_waits_for_a_batch_that_proves_the_ownership() {
    let mut wire = Wire::new();
    wire.submit(sweep("e", 10));
    wire.commit_all();
    wire.replies.clear();
    wire.request(Request::Flush("e".into()));
    assert!(wire.replies.is_empty(), "the flush has no rows, but this owner may be fenced");
    wire.commit_all();
    assert!(matches!(wire.replies[..], [Reply::Flushed(_)]));
}

#[test]
fn a_log_is_confirmed_once_its_record_is_durable() {
    let mut wire = Wire::new();
    let stored = Request::LogStored { digest: [7; 32].into(), bytes: 1 };
    wire.request(stored.clone());
    wire.commit(Some(Fault::Lose));
    assert!(wire.replies.is_empty(), "the record was lost with its batch");
    wire.commit_all();
    wire.request(stored);
    assert!(wire.replies.is_empty());
    wire.commit_all();
    assert_eq!(wire.replies, [Reply::LogStored]);
}
