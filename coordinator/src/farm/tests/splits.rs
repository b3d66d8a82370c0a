//! Rows that leave the manifest, come back, and are pruned; restarts; manifests of other users.

use std::collections::{BTreeMap, BTreeSet};

use powersweep_experiments::{Digest, Manifest, Sweep};
use powersweep_proto::v1;
use uuid::Uuid;

use super::wire::{Wire, sweep, sweep_of};
use crate::farm::{Action, Reply, Request, Submission};

const BLOCKS: &str = "[workloads.w]\nsource = \"lublin\"\n[platforms.p]\n[policies.q]\n";

fn seeds(seeds: &str) -> Sweep {
    sweep_of(&format!("version = 1\nname = \"e\"\nseeds = {seeds}\ntables = [\"jobs\"]\n{BLOCKS}"))
}

fn ids(sweep: &Sweep) -> BTreeSet<Uuid> {
    (0..sweep.index_count()).filter_map(|index| Some(sweep.task(index)?.task_id)).collect()
}

fn shown(parts: &BTreeMap<Uuid, Vec<Uuid>>) -> Vec<Uuid> {
    let mut tasks = parts.values().flatten().copied().collect::<Vec<_>>();
    tasks.sort();
    tasks
}

/// Submits a manifest and runs its tasks. Returns the number of tasks that were left to run.
fn run(wire: &mut Wire, sweep: &Sweep) -> u64 {
    let reply = match wire.submit(sweep.clone()) {
        Reply::Submitted(reply) => reply,
        other => panic!("{other:?}"),
    };
    let conn = wire.connect(1, 2, vec![]);
    wire.commit_all();
    wire.work_off(conn);
    wire.settle();
    assert_eq!(wire.status("e").state(), v1::ExperimentState::Finished);
    reply.to_run
}

fn holds(wire: &Wire, present: &Sweep, left: &BTreeSet<Uuid>) {
    let wanted = ids(present);
    assert!(shown(&wire.visible).iter().eq(&wanted), "the table has the manifest's rows once");
    assert!(shown(&wire.left).iter().eq(left), "the rows that left");
    assert_eq!(wire.status("e").extra, left.len() as u64);
}

#[test]
fn rows_leave_with_their_tasks_and_come_back_without_simulation() {
    let mut wire = Wire::new();
    let (first, second) = (seeds("[1, 2, 3, 4]"), seeds("[3, 4, 5]"));
    assert_eq!(run(&mut wire, &first), 4);
    holds(&wire, &first, &BTreeSet::new());
    assert_eq!(run(&mut wire, &second), 1);
    holds(&wire, &second, &ids(&seeds("[1, 2]")));
    assert_eq!(run(&mut wire, &first), 0);
    holds(&wire, &first, &ids(&seeds("[5]")));
}

#[test]
fn an_experiment_is_not_finished_before_its_parts_are_split() {
    let mut wire = Wire::new();
    run(&mut wire, &seeds("[1, 2]"));
    wire.submit(seeds("[1]"));
    wire.commit_all();
    let status = wire.status("e");
    assert_eq!(status.state(), v1::ExperimentState::Running);
    assert!(status.reason.contains("rows of values that left"), "{status:?}");
    wire.settle();
    assert_eq!(wire.status("e").state(), v1::ExperimentState::Finished);
}

/// A split whose steps fail, and whose coordinator dies after each step, ends with the same rows.
#[test]
fn a_split_goes_on_after_failures_and_crashes() {
    for crash_at in 0..6 {
        let mut wire = Wire::new();
        let (first, second) = (seeds("[1, 2, 3, 4]"), seeds("[3, 4]"));
        run(&mut wire, &first);
        wire.submit(second.clone());
        for step in 0..6 {
            if step == crash_at {
                wire.reload();
            }
            wire.commit_all();
            wire.split(step % 2 == 0);
            wire.pass(std::time::Duration::from_secs(3));
            wire.event(crate::farm::Event::Tick);
        }
        wire.settle();
        holds(&wire, &second, &ids(&seeds("[1, 2]")));
        assert_eq!(wire.status("e").state(), v1::ExperimentState::Finished);
    }
}

#[test]
fn an_edit_during_a_split_is_followed_by_another_split() {
    for steps in 0..3 {
        let mut wire = Wire::new();
        run(&mut wire, &seeds("[1, 2, 3, 4]"));
        wire.submit(seeds("[1]"));
        for _ in 0..steps {
            wire.commit_all();
            wire.split(false);
        }
        let last = seeds("[2, 3]");
        wire.submit(last.clone());
        wire.settle();
        holds(&wire, &last, &ids(&seeds("[1, 4]")));
    }
}

#[test]
fn rows_that_are_unpublished_at_the_edit_leave_too() {
    let mut wire = Wire::new();
    wire.submit(sweep("e", 40));
    let conn = wire.connect(1, 2, vec![]);
    wire.commit_all();
    let lease = wire.leases(conn).remove(0);
    let done = super::wire::tasks(&lease);
    wire.send(conn, super::wire::hand_in(1, &lease, &done));
    wire.commit_all();
    assert!(wire.visible.is_empty(), "the rows are unpublished");
    wire.submit(sweep("e", 1));
    wire.settle();
    assert_eq!((shown(&wire.visible).len(), shown(&wire.left).len()), (1, done.len() - 1));
}

#[test]
fn pruned_rows_run_again() {
    let mut wire = Wire::new();
    let (first, second) = (seeds("[1, 2, 3]"), seeds("[3]"));
    run(&mut wire, &first);
    wire.submit(second.clone());
    // The request waits for the split.
    assert_eq!(wire.control("e", Action::Prune(v1::Prune {})), None);
    wire.settle();
    let Some(Reply::Controlled(reply)) = wire.replies.pop() else { panic!("no answer") };
    assert!(reply.changed);
    holds(&wire, &second, &BTreeSet::new());
    assert_eq!(run(&mut wire, &first), 2);
    holds(&wire, &first, &BTreeSet::new());
    let Some(Reply::Controlled(reply)) = wire.control("e", Action::Prune(v1::Prune {})) else { panic!("no answer") };
    assert!(!reply.changed, "there is nothing to prune");
}

#[test]
fn a_prune_goes_on_after_a_crash() {
    let mut wire = Wire::new();
    run(&mut wire, &seeds("[1, 2, 3]"));
    run(&mut wire, &seeds("[3]"));
    wire.control("e", Action::Prune(v1::Prune {}));
    wire.commit_all();
    assert_eq!(wire.status("e").extra, 0, "the rows do not count from now on");
    wire.reload();
    wire.settle();
    assert!(wire.left.is_empty());
    assert_eq!(wire.status("e").state(), v1::ExperimentState::Finished);
}

#[test]
fn a_second_prune_waits_for_the_first() {
    let mut wire = Wire::new();
    run(&mut wire, &seeds("[1, 2, 3]"));
    run(&mut wire, &seeds("[3]"));
    let before = wire.replies.len();
    assert_eq!(wire.control("e", Action::Prune(v1::Prune {})), None);
    wire.commit_all();
    assert_eq!(wire.control("e", Action::Prune(v1::Prune {})), None, "it is answered when the parts are deleted");
    wire.settle();
    let changed: Vec<bool> = wire.replies[before..]
        .iter()
        .map(|reply| if let Reply::Controlled(reply) = reply { reply.changed } else { panic!("{reply:?}") })
        .collect();
    assert_eq!(changed, [true, true]);
}

/// A request about rows that left is answered although the experiment leaves before it is carried out.
#[test]
fn a_prune_is_answered_when_its_experiment_is_removed() {
    for data_too in [false, true] {
        for waits_for_split in [true, false] {
            let mut wire = Wire::new();
            run(&mut wire, &seeds("[1, 2, 3]"));
            wire.submit(seeds("[3]"));
            if !waits_for_split {
                wire.settle();
            }
            let before = wire.replies.len();
            assert_eq!(wire.control("e", Action::Prune(v1::Prune {})), None);
            let delete = Action::Delete(v1::Delete { force: true, data_too });
            wire.request(Request::Control { experiment: "e".into(), action: delete, by: None });
            wire.settle();
            let replies = &wire.replies[before..];
            let refused = |reply: &Reply| matches!(reply, Reply::Refused(reason) if reason.contains("being removed"));
            let is_done = |reply: &Reply| matches!(reply, Reply::Controlled(_));
            assert!(replies.iter().any(refused) && replies.iter().any(is_done), "{replies:?}");
        }
    }
}

fn submit_as(wire: &mut Wire, user: &str, sweep: Sweep, replace: bool) -> Reply {
    let submission = Submission { user: user.to_owned(), replace, ..Submission::new(sweep, BTreeMap::new()) };
    wire.request(Request::Submit(submission));
    wire.commit_all();
    wire.replies.pop().expect("an answer")
}

#[test]
fn another_users_experiment_is_changed_only_on_purpose() {
    let mut wire = Wire::new();
    assert!(matches!(submit_as(&mut wire, "ada", seeds("[1, 2]"), false), Reply::Submitted(_)));
    assert_eq!(wire.status("e").owner, "ada");
    assert!(matches!(submit_as(&mut wire, "bob", seeds("[1, 2]"), false), Reply::Submitted(_)), "nothing changes");
    let refusal = submit_as(&mut wire, "bob", seeds("[1, 2, 3]"), false);
    assert!(matches!(&refusal, Reply::Forbidden(reason) if reason.contains("ada") && reason.contains("--replace")));
    assert_eq!((wire.status("e").tasks, wire.status("e").owner), (2, "ada".to_owned()));
    assert!(matches!(submit_as(&mut wire, "bob", seeds("[1, 2, 3]"), true), Reply::Submitted(_)));
    assert_eq!((wire.status("e").tasks, wire.status("e").owner), (3, "bob".to_owned()));
}

/// A submit of the same manifest sets the priority and ends a cancellation.
#[test]
fn another_users_experiment_is_controlled_only_on_purpose() {
    let mut wire = Wire::new();
    submit_as(&mut wire, "ada", seeds("[1, 2]"), false);
    let mut asked = |by: Option<&str>, action: Action| {
        wire.request(Request::Control { experiment: "e".into(), action, by: by.map(str::to_owned) });
        wire.commit_all();
        (wire.replies.pop().expect("an answer"), wire.status("e"))
    };
    let retry = Action::Retry(v1::Retry::default());
    let delete = Action::Delete(v1::Delete { force: true, data_too: true });
    let actions = [
        Action::Pause(v1::Pause {}),
        Action::Resume(v1::Resume {}),
        Action::Cancel(v1::Cancel {}),
        Action::SetPriority(v1::SetPriority { priority: 9 }),
        Action::Prune(v1::Prune {}),
        retry,
        delete,
    ];
    for action in actions {
        let (reply, after) = asked(Some("bob"), action);
        assert!(matches!(&reply, Reply::Forbidden(reason) if reason.contains("ada") && reason.contains("--any-owner")));
        assert_eq!((after.state(), after.priority), (v1::ExperimentState::Waiting, 0));
    }
    assert!(matches!(asked(Some("ada"), Action::SetPriority(v1::SetPriority { priority: 3 })).0, Reply::Controlled(_)));
    assert!(
        matches!(asked(None, Action::Cancel(v1::Cancel {})).0, Reply::Controlled(_)),
        "the operator, or --any-owner"
    );
    let again = Submission { user: "bob".to_owned(), ..Submission::new(seeds("[1, 2]"), BTreeMap::new()) };
    wire.request(Request::Submit(again.clone()));
    wire.commit_all();
    assert!(matches!(wire.replies.pop(), Some(Reply::Forbidden(_))), "a submit would end the cancellation");
    wire.control("e", Action::Resume(v1::Resume {}));
    wire.request(Request::Submit(Submission { priority: Some(9), ..again }));
    wire.commit_all();
    assert!(matches!(wire.replies.pop(), Some(Reply::Forbidden(_))), "a submit would set the priority");
    assert_eq!(wire.status("e").priority, 3);
}

#[test]
fn a_manifest_without_a_common_task_is_refused_with_the_differences() {
    let mut wire = Wire::new();
    submit_as(&mut wire, "ada", seeds("[1, 2]"), false);
    let Reply::Refused(reason) = submit_as(&mut wire, "ada", seeds("[3]"), false) else { panic!("accepted") };
    for part in ["shares no task", "0 tasks with a row, 2 to run", "seeds: [1, 2] -> [3]", "--replace", "e@left"] {
        assert!(reason.contains(part), "{reason} should say {part}");
    }
    assert!(matches!(submit_as(&mut wire, "ada", seeds("[3]"), true), Reply::Submitted(_)));
}

#[test]
fn an_edit_of_an_earlier_generation_is_refused() {
    let mut wire = Wire::new();
    let mut submit = |text: &str, edits: u64| {
        wire.request(Request::Submit(Submission {
            edits: Some(edits),
            ..Submission::new(seeds(text), BTreeMap::new())
        }));
        wire.commit_all();
        wire.replies.pop().expect("an answer")
    };
    assert!(matches!(submit("[1, 2]", 1), Reply::Refused(reason) if reason.contains("has generation 0")));
    assert!(matches!(submit("[1, 2]", 0), Reply::Submitted(reply) if reply.generation == 1));
    assert!(matches!(submit("[1, 2, 3]", 1), Reply::Submitted(reply) if reply.generation == 2));
    let Reply::Refused(reason) = submit("[1, 2, 4]", 1) else { panic!("accepted") };
    assert!(reason.contains("has generation 2") && reason.contains("edits generation 1"), "{reason}");
    assert_eq!(wire.status("e").tasks, 3);
}

#[test]
fn a_restart_runs_every_task_again() {
    let mut wire = Wire::new();
    run(&mut wire, &sweep("e", 3));
    let again = Submission { restart: true, ..Submission::new(sweep("e", 3), BTreeMap::new()) };
    wire.request(Request::Submit(again.clone()));
    wire.settle();
    let Some(Reply::Submitted(reply)) = wire.replies.pop() else { panic!("no answer") };
    assert_eq!((reply.to_run, reply.done, &reply.set_aside[..]), (3, 0, "e@1"));
    // Nothing ran since: a repeated request sets nothing aside.
    wire.request(Request::Submit(again));
    wire.settle();
    let Some(Reply::Submitted(reply)) = wire.replies.pop() else { panic!("no answer") };
    assert_eq!((reply.to_run, &reply.set_aside[..]), (3, ""));
}

/// A row that is handed in between a failed attempt and an edit is published before the next attempt.
#[test]
fn an_attempt_after_a_failure_waits_for_the_rows_of_the_next_edit() {
    let mut wire = Wire::new();
    wire.submit(sweep("e", 4));
    let conn = wire.connect(1, 2, vec![]);
    wire.commit_all();
    wire.work_off(conn);
    wire.settle();
    wire.submit(sweep_of(&format!("version = 1\nname = \"e\"\nseeds = {{ from = 2, count = 7 }}\n{BLOCKS}")));
    wire.commit_all();
    assert!(wire.split(true), "the attempt fails");
    let lease = wire.leases(conn).remove(0);
    wire.send(conn, super::wire::hand_in(7, &lease, &super::wire::tasks(&lease)[..1]));
    wire.commit_all();
    wire.submit(sweep("e", 1));
    wire.commit_all();
    wire.pass(std::time::Duration::from_secs(3));
    wire.event(crate::farm::Event::Tick);
    wire.settle();
    assert_eq!((shown(&wire.visible).len(), shown(&wire.left).len()), (1, 4));
}

#[test]
fn a_module_with_other_content_is_named_as_a_policy_module() {
    let text = "version = 1\nname = \"e\"\n[workloads.w]\nsource = \"lublin\"\n[platforms.p]\n[policies.q]\n\
                backfill = \"wasm\"\nwasm_module = \"mine.wasm\"\n";
    let submission = |content: u8| {
        let digests = BTreeMap::from([("mine.wasm".into(), Digest::of(&[content]))]);
        let manifest = Manifest::parse("test", text).expect("valid");
        Submission::new(Sweep::new(manifest, digests.clone()).expect("the digest is there"), digests)
    };
    let mut wire = Wire::new();
    wire.request(Request::Submit(submission(1)));
    wire.commit_all();
    assert!(matches!(wire.replies.pop(), Some(Reply::Submitted(_))));
    wire.request(Request::Submit(submission(2)));
    wire.commit_all();
    let Some(Reply::Refused(reason)) = wire.replies.pop() else { panic!("accepted") };
    assert!(reason.contains("policy module mine.wasm has other content than before"), "{reason}");
}
