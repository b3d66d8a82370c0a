//! Actions on a submitted experiment.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::executor::block_on;
use powersweep_proto::v1;
use powersweep_proto::v1::farm_message::Body as ToWorker;
use powersweep_proto::v1::worker_message::Body as ToFarm;

use super::wire::{Wire, failure, hand_in, sweep, sweep_of, tasks};
use crate::farm::{Action, Event, PublishFailure, Reply, Request, Submission};
use crate::records::{Record, Removal};
use crate::store::{Batch, Fault, Store};

const ALL: Action = Action::Retry(v1::Retry { indices: Vec::new(), kinds: Vec::new() });

fn controlled(reply: Option<Reply>) -> v1::ControlReply {
    match reply {
        Some(Reply::Controlled(reply)) => reply,
        other => panic!("{other:?}"),
    }
}

fn refused(reply: Option<Reply>) -> String {
    match reply {
        Some(Reply::Refused(reason) | Reply::NotFound(reason) | Reply::Invalid(reason)) => reason,
        other => panic!("{other:?}"),
    }
}

fn revokes(messages: Vec<ToWorker>) -> Vec<v1::Revoke> {
    messages.into_iter().filter_map(|m| if let ToWorker::Revoke(r) = m { Some(r) } else { None }).collect()
}

/// A farm with an experiment of 100 tasks, and a worker of two slots with its first lease.
fn running() -> (Wire, u64, v1::Lease) {
    let mut wire = Wire::new();
    wire.submit(sweep("e", 100));
    let conn = wire.connect(1, 2, vec![]);
    wire.commit_all();
    let lease = wire.leases(conn).remove(0);
    (wire, conn, lease)
}

#[test]
fn an_unclaimed_experiment_waits_until_it_is_submitted_or_retried() {
    let (mut wire, _, lease) = running();
    assert_eq!(lease.experiment, "e");
    // The next command is for another sweep.
    wire.config.only = Some("mine".to_owned());
    wire.reload();
    wire.commit_all();
    wire.submit(sweep("mine", 10));
    let conn = wire.connect(2, 2, vec![]);
    wire.commit_all();
    let leases = wire.leases(conn);
    assert!(!leases.is_empty() && leases.iter().all(|lease| lease.experiment == "mine"), "{leases:?}");
    assert_eq!(wire.status("e").state(), v1::ExperimentState::Waiting);
    assert!(wire.status("e").reason.contains("an earlier command left it"), "{}", wire.status("e").reason);
    // Without a process, no worker is awaited.
    let stored = block_on(wire.store.load()).expect("loads");
    let stored = crate::plan::status(stored, None, &v1::StatusRequest::default(), "data");
    let reasons: Vec<bool> =
        stored.experiments.iter().map(|e| e.reason.contains("an earlier command left it")).collect();
    assert_eq!(reasons, [true, true], "{stored:?}");
    // After a failed write the state is loaded again: the command's own sweep is still served.
    wire.reload();
    let conn = wire.connect(3, 2, vec![]);
    wire.commit_all();
    assert!(wire.leases(conn).iter().all(|lease| lease.experiment == "mine"));
    wire.submit(sweep("e", 100));
    wire.commit_all();
    assert_eq!(wire.status("e").state(), v1::ExperimentState::Running);
    wire.reload();
    wire.control("e", ALL);
    wire.commit_all();
    assert_eq!(wire.status("e").reason, "no worker is connected");
}

/// A coordinator of many users refuses this, because the rows may be another user's.
#[test]
fn the_farm_of_one_command_takes_an_unrelated_manifest_of_the_same_name() {
    let other =
        || sweep_of(&sweep("e", 100).manifest().text().replace("lublin\"", "lublin\"\nsynthetic_jobs_count = 77"));
    let submit = |wire: &mut Wire| {
        wire.request(Request::Submit(Submission::new(other(), BTreeMap::new())));
        wire.commit_all();
        wire.replies.pop().expect("a submit is answered")
    };
    let (mut wire, _, _) = running();
    assert!(refused(Some(submit(&mut wire))).contains("shares no task"));
    wire.config.only = Some("e".to_owned());
    wire.reload();
    wire.commit_all();
    let reply = submit(&mut wire);
    assert!(matches!(reply, Reply::Submitted(_)), "{reply:?}");
}

#[test]
fn leases_grow_although_every_task_fails() {
    grow(Wire::new());
    // A lease fills hand-ins, however few rows a part has.
    let mut wire = Wire::new();
    wire.config.part_rows = 10;
    wire.reload();
    grow(wire);
}

#[track_caller]
fn grow(mut wire: Wire) {
    wire.submit(sweep("e", 100_000));
    let conn = wire.connect(1, 2, vec![]);
    wire.commit_all();
    let (mut most, mut failed) = (0, 0);
    for _ in 0..10 {
        for lease in wire.leases(conn) {
            most = most.max(tasks(&lease).len());
            // Each step checks every invariant, so that all tasks would take too long.
            for index in tasks(&lease).into_iter().take(20) {
                wire.pass(Duration::from_micros(100));
                failed += 1;
                wire.send(conn, failure(failed, &lease, index, v1::FailureKind::Spec));
            }
        }
        wire.commit_all();
    }
    assert!(most > 1_000, "of tasks of 0.1 ms a lease has {most} at most");
    assert_eq!(wire.status("e").failed, failed);
}

#[test]
fn a_pause_lets_running_tasks_finish_and_publishes_their_rows() {
    let (mut wire, conn, lease) = running();
    let mut open = tasks(&lease);
    assert!(open.len() > 2, "{open:?}");
    let reply = controlled(wire.control("e", Action::Pause(v1::Pause {})));
    assert_eq!((reply.state(), reply.changed, reply.running), (v1::ExperimentState::Paused, true, open.len() as u64));
    let asked = revokes(wire.read(conn));
    assert!(asked.len() == 1 && asked[0].queued_only, "{asked:?}");
    let queued = open.split_off(2);
    let ranges = queued.iter().map(|&index| v1::IndexRange { start: index, end: index + 1 }).collect();
    let back = v1::HandBack { lease: lease.id, experiment: "e".into(), ranges, generation: 1, asked: true };
    wire.send(conn, ToFarm::HandBack(back));
    wire.settle();
    assert!(wire.leases(conn).is_empty(), "nothing is handed out");
    assert!(wire.visible.is_empty());
    wire.send(conn, hand_in(1, &lease, &open));
    wire.settle();
    let status = wire.status("e");
    assert_eq!((status.state(), status.done, status.rows_in_parts), (v1::ExperimentState::Paused, 2, 2));
    assert!(!controlled(wire.control("e", Action::Pause(v1::Pause {}))).changed, "a second pause changes nothing");
    wire.reload();
    wire.commit_all();
    assert_eq!(wire.status("e").state(), v1::ExperimentState::Paused, "the pause is durable");
    let conn = wire.connect(1, 2, vec![]);
    wire.commit_all();
    assert!(wire.leases(conn).is_empty());
    assert!(controlled(wire.control("e", Action::Resume(v1::Resume {}))).changed);
    assert!(!controlled(wire.control("e", Action::Resume(v1::Resume {}))).changed);
    wire.work_off(conn);
    assert_eq!(wire.status("e").state(), v1::ExperimentState::Finished);
    for action in [Action::Pause(v1::Pause {}), Action::Resume(v1::Resume {}), Action::Cancel(v1::Cancel {})] {
        assert!(refused(wire.control("e", action)).contains("e has "), "it has ended");
    }
}

#[test]
fn a_worker_that_reconnects_is_asked_again_for_tasks_of_a_paused_experiment() {
    let (mut wire, conn, lease) = running();
    wire.disconnect(conn, true);
    controlled(wire.control("e", Action::Pause(v1::Pause {})));
    wire.reload();
    wire.commit_all();
    let held = v1::LeaseState { lease: lease.id, experiment: "e".into(), generation: 1, open: lease.ranges.clone() };
    let conn = wire.connect(1, 2, vec![held]);
    wire.commit_all();
    let asked = revokes(wire.read(conn));
    assert!(asked.len() == 1 && asked[0].queued_only && asked[0].lease == lease.id, "{asked:?}");
}

#[test]
fn a_cancelled_experiment_stops_at_once_and_continues_when_submitted_again() {
    let (mut wire, conn, lease) = running();
    let reply = controlled(wire.control("e", Action::Cancel(v1::Cancel {})));
    assert_eq!((reply.state(), reply.running), (v1::ExperimentState::Cancelled, 0));
    let told = revokes(wire.read(conn));
    assert!(told.len() == 1 && !told[0].queued_only && told[0].ranges.is_empty(), "{told:?}");
    assert!(!controlled(wire.control("e", Action::Cancel(v1::Cancel {}))).changed);
    assert!(refused(wire.control("e", Action::Pause(v1::Pause {}))).contains("cancelled"));
    // A row that the worker computed before it learned of the cancellation counts.
    wire.send(conn, hand_in(1, &lease, &tasks(&lease)[..1]));
    wire.settle();
    assert_eq!((wire.status("e").done, wire.status("e").rows_in_parts), (1, 1));
    wire.reload();
    wire.commit_all();
    assert_eq!(wire.status("e").state(), v1::ExperimentState::Cancelled);
    let conn = wire.connect(1, 2, vec![]);
    wire.submit(sweep("e", 100));
    wire.commit_all();
    wire.work_off(conn);
    assert_eq!(wire.status("e").done, 100);
}

#[test]
fn a_control_is_answered_when_it_is_durable() {
    let (mut wire, _, _) = running();
    wire.request(Request::Control { experiment: "e".into(), action: Action::Pause(v1::Pause {}), by: None });
    assert!(wire.replies.is_empty());
    wire.commit(Some(Fault::Lose));
    assert!(wire.replies.is_empty(), "the lost batch is not answered");
    assert_ne!(wire.status("e").state(), v1::ExperimentState::Paused);
    assert!(refused(wire.control("x", Action::Pause(v1::Pause {}))).contains("there is no experiment x"));
}

#[test]
fn failed_tasks_are_tried_again_all_or_some() {
    let (mut wire, conn, lease) = running();
    let open = tasks(&lease);
    wire.send(conn, failure(1, &lease, open[0], v1::FailureKind::Spec));
    wire.send(conn, failure(2, &lease, open[1], v1::FailureKind::Policy));
    wire.send(conn, failure(3, &lease, open[2], v1::FailureKind::Spec));
    wire.send(conn, hand_in(4, &lease, &open[3..]));
    wire.settle();
    wire.work_off(conn);
    assert_eq!((wire.status("e").state(), wire.status("e").failed), (v1::ExperimentState::Failed, 3));
    assert!(
        refused(wire.control("e", Action::Retry(v1::Retry { indices: vec![100], kinds: Vec::new() })))
            .contains("no task 100")
    );
    let policy = Action::Retry(v1::Retry { indices: Vec::new(), kinds: vec![v1::FailureKind::Policy.into()] });
    assert_eq!(controlled(wire.control("e", policy.clone())).tasks, 1);
    assert_eq!(controlled(wire.control("e", policy)).tasks, 0, "the task is pending already");
    let one = Action::Retry(v1::Retry { indices: vec![open[0]], kinds: Vec::new() });
    assert_eq!(controlled(wire.control("e", one)).tasks, 1);
    // The retries are durable.
    wire.reload();
    wire.commit_all();
    let status = wire.status("e");
    assert_eq!((status.state(), status.failed), (v1::ExperimentState::Waiting, 1));
    assert_eq!(controlled(wire.control("e", ALL)).tasks, 1);
    let conn = wire.connect(1, 2, vec![]);
    wire.commit_all();
    let again = wire.leases(conn);
    for lease in again {
        wire.send(conn, hand_in(lease.id.expect("an id").counter, &lease, &tasks(&lease)));
    }
    wire.settle();
    wire.work_off(conn);
    let status = wire.status("e");
    assert_eq!((status.state(), status.done, status.failed), (v1::ExperimentState::Finished, 100, 0));
    assert_eq!(controlled(wire.control("e", ALL)).tasks, 0);
    assert_eq!(wire.status("e").state(), v1::ExperimentState::Finished, "there was nothing to try again");
}

#[test]
fn a_retry_does_not_end_a_pause() {
    let (mut wire, conn, lease) = running();
    wire.send(conn, failure(1, &lease, tasks(&lease)[0], v1::FailureKind::Spec));
    wire.settle();
    controlled(wire.control("e", Action::Pause(v1::Pause {})));
    assert_eq!(controlled(wire.control("e", ALL)).tasks, 1);
    let status = wire.status("e");
    assert_eq!((status.state(), status.failed), (v1::ExperimentState::Paused, 0));
}

#[test]
fn a_running_experiment_is_deleted_only_by_force_and_recovery_continues_the_deletion() {
    let (mut wire, conn, lease) = running();
    let delete = |force, data_too| Action::Delete(v1::Delete { force, data_too });
    assert!(refused(wire.control("e", delete(false, true))).contains("cancel it first"));
    wire.send(conn, hand_in(1, &lease, &tasks(&lease)[..1]));
    assert_eq!(wire.control("e", delete(true, true)), None, "its parts are not deleted yet");
    assert_eq!(wire.status("e").state(), v1::ExperimentState::Leaving);
    assert!(refused(wire.control("e", Action::Resume(v1::Resume {}))).contains("being removed"));
    assert!(matches!(wire.submit(sweep("e", 50)), Reply::Refused(_)));
    assert_eq!(wire.to_leave, [("e".to_owned(), Removal::Erase)]);
    wire.reload();
    wire.commit_all();
    assert_eq!(wire.to_leave, [("e".to_owned(), Removal::Erase)], "recovery continues the deletion");
    wire.leave(true);
    wire.commit_all();
    assert!(wire.to_leave.is_empty() && wire.status("e").reason.contains("tried again"));
    wire.pass(Duration::from_secs(3));
    wire.event(Event::Tick);
    wire.commit_all();
    assert_eq!(wire.control("e", delete(true, true)), None, "a second request waits, too");
    wire.leave(false);
    wire.commit_all();
    assert_eq!(controlled(wire.replies.pop()).state(), v1::ExperimentState::Leaving);
    assert!(refused(wire.control("e", delete(true, true))).contains("there is no experiment"));
    let loaded = block_on(wire.store.load()).expect("loads");
    let records =
        (loaded.experiments.len(), loaded.rows.len(), loaded.done.len(), loaded.leases.len(), loaded.leaving.len());
    assert_eq!(records, (0, 0, 0, 0, 0), "all records are deleted");
    // The name is free, and rows of its earlier bearer are rejected.
    let Reply::Submitted(reply) = wire.submit(sweep("e", 5)) else { panic!("refused") };
    assert_eq!((reply.generation, reply.done), (2, 0));
    let conn = wire.connect(1, 2, vec![]);
    wire.send(conn, hand_in(2, &lease, &tasks(&lease)[..2]));
    wire.settle();
    assert_eq!(wire.status("e").done, 0);
    wire.work_off(conn);
    assert_eq!(wire.status("e").done, 5);
}

#[test]
fn a_failed_part_is_not_tried_again_during_a_deletion() {
    let (mut wire, conn, lease) = running();
    wire.send(conn, hand_in(1, &lease, &tasks(&lease)[..1]));
    wire.request(Request::Flush("e".into()));
    wire.commit_all();
    let part_id = *wire.to_publish.remove(0).part_id;
    let failure = PublishFailure { reason: "test".into(), retryable: true };
    wire.event(Event::Published { part_id, result: Err(failure) });
    wire.commit_all();
    let flush = wire.control("e", Action::Delete(v1::Delete { force: true, data_too: true }));
    assert!(refused(flush).contains("this request ends"), "the deletion itself is not answered yet");
    assert_eq!(wire.to_leave, [("e".to_owned(), Removal::Erase)]);
    wire.pass(Duration::from_secs(3));
    wire.event(Event::Tick);
    wire.commit_all();
    assert!(wire.to_publish.is_empty(), "its parts are being deleted");
}

#[test]
fn an_edit_that_empties_a_done_chunk_stores_no_record_of_it() {
    let (mut wire, conn, lease) = running();
    wire.send(conn, hand_in(1, &lease, &[0]));
    // The edit shares the row's batch; the row's task (seed 1) is not in the edited manifest.
    let edited = sweep_of(
        "version = 1\nname = \"e\"\nseeds = [2, 3]\n[workloads.w]\nsource = \"lublin\"\n[platforms.p]\n[policies.q]\n",
    );
    assert!(matches!(wire.submit(edited), Reply::Submitted(_)));
    assert_eq!((wire.status("e").done, wire.status("e").extra), (0, 1));
    wire.control("e", Action::Delete(v1::Delete { force: true, data_too: true }));
    wire.settle();
    let loaded = block_on(wire.store.load()).expect("loads");
    assert!(loaded.experiments.is_empty() && loaded.done.is_empty(), "{:?}", loaded.done);
}

#[test]
fn a_deletion_that_keeps_the_data_publishes_all_rows_first() {
    let (mut wire, conn, lease) = running();
    wire.send(conn, hand_in(1, &lease, &tasks(&lease)[..3]));
    wire.commit_all();
    controlled(wire.control("e", Action::Cancel(v1::Cancel {})));
    assert_eq!(wire.control("e", Action::Delete(v1::Delete { force: false, data_too: false })), None);
    wire.settle();
    assert_eq!(controlled(wire.replies.pop()).state(), v1::ExperimentState::Leaving);
    assert_eq!(wire.visible.values().flatten().count(), 3, "the rows stay");
    assert!(wire.to_leave.is_empty(), "the parts stay where they are");
}

/// The stored experiment gets another version of the kernel, as if another build had begun it.
fn with_other_pins(wire: &mut Wire) {
    let mut loaded = block_on(wire.store.load()).expect("loads");
    let mut record = loaded.experiments.remove(0);
    record.pins.insert("kernel".to_owned(), 9_999);
    let mut batch = Batch::new();
    batch.put(Record::Experiment(record));
    block_on(wire.store.commit(batch)).expect("commits");
    wire.reload();
    wire.commit_all();
}

fn restart(wire: &mut Wire, dry_run: bool) {
    let submission = Submission { dry_run, restart: true, ..Submission::new(sweep("e", 20), BTreeMap::new()) };
    wire.request(Request::Submit(submission));
    wire.commit_all();
}

#[test]
fn a_restart_sets_the_rows_of_other_pins_aside() {
    let (mut wire, conn, lease) = running();
    wire.send(conn, hand_in(1, &lease, &tasks(&lease)[..3]));
    wire.settle();
    with_other_pins(&mut wire);
    let refusal = wire.submit(sweep("e", 20));
    assert!(
        matches!(&refusal, Reply::Refused(reason) if reason.contains("--restart") && reason.contains("e@1")),
        "{refusal:?}"
    );
    restart(&mut wire, true);
    let Some(Reply::Submitted(plan)) = wire.replies.pop() else { panic!("refused") };
    assert_eq!((plan.set_aside.as_str(), plan.generation, plan.to_run), ("e@1", 2, 20));
    restart(&mut wire, false);
    assert!(wire.replies.is_empty(), "the rows are not published yet");
    wire.reload();
    wire.settle();
    // The submission was lost in the crash; the renaming is durable and continues.
    assert_eq!(wire.status("e@1").state(), v1::ExperimentState::Cancelled);
    assert_eq!(wire.visible.values().flatten().count(), 3);
    restart(&mut wire, false);
    let Some(Reply::Submitted(reply)) = wire.replies.pop() else { panic!("refused") };
    assert_eq!((reply.generation, reply.done, reply.to_run), (2, 0, 20));
    wire.reload();
    wire.commit_all();
    let conn = wire.connect(1, 2, vec![]);
    wire.commit_all();
    wire.work_off(conn);
    assert_eq!(wire.status("e").done, 20);
    let aside = wire.status("e@1");
    assert_eq!((aside.rows_in_parts, aside.state()), (3, v1::ExperimentState::Cancelled));
    assert!(refused(wire.control("e@1", Action::Resume(v1::Resume {}))).contains("set aside"));
    assert_eq!(wire.control("e@1", Action::Delete(v1::Delete { force: false, data_too: true })), None);
    assert_eq!(wire.to_leave, [("e@1".to_owned(), Removal::Erase)]);
}

#[test]
fn the_reply_to_a_restart_has_both_names() {
    let (mut wire, _, _) = running();
    with_other_pins(&mut wire);
    restart(&mut wire, false);
    wire.settle();
    let Some(Reply::Submitted(reply)) = wire.replies.pop() else { panic!("refused") };
    assert_eq!((reply.set_aside.as_str(), reply.generation, reply.to_run), ("e@1", 2, 20));
}

#[test]
fn the_higher_priority_is_served_first() {
    let mut wire = Wire::new();
    wire.submit(sweep("low", 50));
    wire.submit(sweep("high", 50));
    assert!(
        refused(wire.control("high", Action::SetPriority(v1::SetPriority { priority: 5000 })))
            .contains("from -1000 to 1000")
    );
    assert!(controlled(wire.control("high", Action::SetPriority(v1::SetPriority { priority: 5 }))).changed);
    assert!(!controlled(wire.control("high", Action::SetPriority(v1::SetPriority { priority: 5 }))).changed);
    wire.reload();
    wire.commit_all();
    assert_eq!(wire.status("high").priority, 5);
    let conn = wire.connect(1, 2, vec![]);
    wire.commit_all();
    let mut order = Vec::new();
    loop {
        let leases = wire.leases(conn);
        if leases.is_empty() {
            break;
        }
        for lease in leases {
            order.extend(tasks(&lease).iter().map(|_| lease.experiment.clone()));
            wire.send(conn, hand_in(order.len() as u64, &lease, &tasks(&lease)));
        }
        wire.settle();
    }
    assert_eq!(order.len(), 100);
    assert!(order[..50].iter().all(|name| name == "high"), "{order:?}");
}

#[test]
fn experiments_of_equal_priority_share_the_slot_time() {
    let mut wire = Wire::new();
    wire.submit(sweep("a", 4000));
    wire.submit(sweep("b", 4000));
    let conn = wire.connect(1, 4, vec![]);
    wire.commit_all();
    let mut spent: BTreeMap<String, f64> = BTreeMap::new();
    let mut id = 0;
    // Tasks of `a` take four times as long: equal shares of the time are four times as many tasks of `b`.
    let cost = |name: &str| if name == "a" { 2.0 } else { 0.5 };
    for _ in 0..60 {
        for lease in wire.leases(conn) {
            id += 1;
            let seconds = cost(&lease.experiment) * tasks(&lease).len() as f64;
            *spent.entry(lease.experiment.clone()).or_default() += seconds;
            let ToFarm::HandIn(mut body) = hand_in(id, &lease, &tasks(&lease)) else { unreachable!() };
            body.spent = Some(v1::TimeSpent { engine_s: seconds, ..Default::default() });
            wire.pass(Duration::from_secs_f64(seconds / 4.0));
            wire.send(conn, ToFarm::HandIn(body));
        }
        wire.settle();
    }
    let (a, b) = (spent["a"], spent["b"]);
    assert!(a > 20.0 && (0.6..1.7).contains(&(a / b)), "a {a} s, b {b} s");
}

#[test]
fn only_durable_rows_count_as_done() {
    let (mut wire, conn, lease) = running();
    wire.send(conn, hand_in(1, &lease, &tasks(&lease)));
    assert_eq!(wire.status("e").done, 0, "no row is durable");
    wire.begin_commit(None);
    assert_eq!(wire.status("e").done, 0);
    wire.end_commit();
    assert_eq!(wire.status("e").done, tasks(&lease).len() as u64);
}
