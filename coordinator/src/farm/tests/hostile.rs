//! Messages that no correct worker sends.

use std::time::{Duration, Instant};

use powersweep_experiments::Digest;
use powersweep_proto::v1::farm_message::Body as ToWorker;
use powersweep_proto::v1::worker_message::Body as ToFarm;
use powersweep_proto::{OLDEST_PROTOCOL, PROTOCOL, v1};

use uuid::Uuid;

use super::versions;
use super::wire::{Wire, hand_in, sweep, tasks};
use crate::farm::{Event, Reply, Request, Submission};

/// Far beyond what a message takes on a busy machine; a loop over the indices of its ranges would take hours.
const AT_ONCE: Duration = Duration::from_secs(60);

/// A farm with an experiment, and a worker that has a lease.
fn leased(seeds: u64) -> (Wire, u64, v1::Lease) {
    let mut wire = Wire::new();
    wire.submit(sweep("e", seeds));
    let conn = wire.connect(1, 2, vec![]);
    wire.commit_all();
    let lease = wire.leases(conn).remove(0);
    (wire, conn, lease)
}

/// Why a connection was refused.
fn refusal(messages: Vec<ToWorker>) -> Option<String> {
    messages.into_iter().find_map(|message| match message {
        ToWorker::Refused(refused) => Some(refused.reason),
        _ => None,
    })
}

fn rejections(messages: Vec<ToWorker>) -> Vec<String> {
    let acks = messages.into_iter().filter_map(|message| match message {
        ToWorker::Ack(ack) => Some(ack.rejected),
        _ => None,
    });
    acks.flatten().map(|rejected| rejected.reason).collect()
}

fn range(start: u64, end: u64) -> v1::IndexRange {
    v1::IndexRange { start, end }
}

#[test]
fn a_worker_is_welcome_if_its_protocols_and_ours_overlap() {
    let ours = versions();
    for (oldest, newest, welcome) in [
        (0, PROTOCOL, true),
        (OLDEST_PROTOCOL, PROTOCOL + 4, true),
        (PROTOCOL, PROTOCOL + 1, true),
        (PROTOCOL + 1, PROTOCOL + 4, false),
        (0, PROTOCOL + 1, false),
        (0, OLDEST_PROTOCOL - 1, false),
        (0, 0, false),
    ] {
        let mut wire = Wire::new();
        let versions = v1::Versions { protocol: newest, oldest_protocol: oldest, ..ours.clone() };
        let hello = v1::Hello {
            worker: "w".to_owned(),
            worker_id: Uuid::from_u128(1).as_bytes().to_vec().into(),
            slots: 1,
            versions: Some(versions),
            ..Default::default()
        };
        let conn = wire.greet(hello);
        let welcomed = |messages: &[ToWorker]| match messages {
            [ToWorker::Welcome(welcome)] => Some(welcome.protocol),
            _ => None,
        };
        let answer = wire.read(conn);
        assert_eq!(welcomed(&answer), welcome.then_some(PROTOCOL), "{oldest} to {newest}: {answer:?}");
        if !welcome {
            let reason = refusal(answer).expect("refused");
            assert!(reason.contains(&format!("{newest} there, {PROTOCOL} here")), "{reason}");
        }
    }
}

#[test]
fn ranges_that_repeat_or_overlap_are_refused_at_once() {
    let lists = [
        vec![range(0, 1 << 47); 100_000],
        vec![range(0, u64::MAX), range(1, u64::MAX)],
        (0..200_000).map(|at| range(2 * at, 2 * at + 1)).collect(),
    ];
    for list in lists {
        let (mut wire, conn, lease) = leased(1_000_000_000);
        let begun = Instant::now();
        let (experiment, generation) = (lease.experiment.clone(), lease.generation);
        let ranges = list.clone();
        let back = v1::HandBack { lease: lease.id, experiment, generation, ranges, asked: true };
        wire.send(conn, ToFarm::HandBack(back));
        let reason = refusal(wire.read(conn)).expect("refused");
        assert!(reason.contains("index ranges"), "{reason}");

        let held = |lease: &v1::Lease, open: &[v1::IndexRange]| v1::LeaseState {
            lease: lease.id,
            experiment: lease.experiment.clone(),
            generation: lease.generation,
            open: open.to_vec(),
        };
        let conn = wire.connect(1, 2, vec![held(&lease, &list)]);
        let reason = refusal(wire.read(conn)).expect("refused");
        assert!(reason.contains("index ranges"), "{reason}");
        assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
    }
}

#[test]
fn a_range_of_all_indices_gives_back_the_tasks_of_the_lease_alone() {
    let (mut wire, conn, lease) = leased(1_000_000_000);
    let begun = Instant::now();
    let (experiment, generation) = (lease.experiment.clone(), lease.generation);
    let held = v1::LeaseState { lease: lease.id, experiment: "e".into(), generation, open: vec![range(0, u64::MAX)] };
    let conn_again = wire.connect(1, 2, vec![held]);
    assert!(refusal(wire.read(conn_again)).is_none());
    let ranges = vec![range(0, u64::MAX)];
    let back = v1::HandBack { lease: lease.id, experiment, generation, ranges, asked: true };
    wire.send(conn_again, ToFarm::HandBack(back));
    wire.send(conn_again, ToFarm::Heartbeat(v1::Heartbeat::default()));
    wire.commit_all();
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
    assert!(wire.leases(conn).is_empty());
    let again = wire.leases(conn_again);
    assert!(again.iter().any(|other| tasks(other).contains(&tasks(&lease)[0])), "the tasks are leased again");
}

#[test]
fn the_usage_of_a_worker_is_a_number_and_ends_with_its_connection() {
    let (mut wire, conn, _) = leased(10);
    let usage = |wire: &Wire| {
        let worker = wire.farm.status(&v1::StatusRequest::default(), wire.now).workers.remove(0);
        (worker.processors, worker.memory_bytes)
    };
    for (processors, shown) in [(1.5, 1.5), (f64::NAN, 0.0), (f64::INFINITY, 0.0), (-1.0, 0.0)] {
        let heartbeat = v1::Heartbeat { processors, memory_bytes: 7 << 20, ..Default::default() };
        wire.send(conn, ToFarm::Heartbeat(heartbeat));
        assert_eq!(usage(&wire), (shown, 7 << 20));
    }
    wire.disconnect(conn, false);
    assert_eq!(usage(&wire), (0.0, 0));
}

#[test]
fn a_hand_in_of_too_many_indices_is_refused_at_once() {
    let (mut wire, conn, lease) = leased(1_000);
    let ToFarm::HandIn(mut many) = hand_in(1, &lease, &tasks(&lease)) else { unreachable!("a hand-in") };
    many.done[0].indices = (0..300_000).collect();
    let begun = Instant::now();
    wire.send(conn, ToFarm::HandIn(many));
    assert!(refusal(wire.read(conn)).is_some_and(|reason| reason.contains("at most 65536")));
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
}

/// `e` asks for no optional table.
#[test]
fn a_hand_in_with_an_upload_of_another_table_is_refused() {
    let (mut wire, conn, lease) = leased(1_000);
    let part_id = Uuid::from_u128(9).as_bytes().to_vec().into();
    let ToFarm::HandIn(mut body) = hand_in(1, &lease, &tasks(&lease)) else { unreachable!("a hand-in") };
    body.uploads.push(v1::Upload { table: "jobs".into(), part_id, rows: 1, bytes: 10 });
    wire.send(conn, ToFarm::HandIn(body));
    wire.commit_all();
    let reasons = rejections(wire.read(conn));
    assert!(reasons.len() == 1 && reasons[0].contains("of table \"jobs\", which the experiment lacks"), "{reasons:?}");
    assert_eq!(wire.status("e").done, 0);
}

#[test]
fn an_ended_lease_completes_its_own_tasks_for_its_own_worker_alone() {
    let (mut wire, conn, lease) = leased(1_000);
    let own = tasks(&lease);
    wire.disconnect(conn, true);
    wire.pass(Duration::from_secs(60));
    wire.event(Event::Tick);
    wire.commit_all();
    // The ended lease outlives the process.
    wire.reload();
    wire.commit_all();

    let thief = wire.connect(2, 1, vec![]);
    let back = wire.connect(1, 2, vec![]);
    wire.commit_all();
    let (mut invented, mut generation) = (lease.clone(), lease.clone());
    invented.id = Some(v1::LeaseId { epoch: 1, counter: 77 });
    generation.generation = 7;
    for (from, body, expected) in [
        (thief, hand_in(1, &lease, &own[..1]), "another worker's"),
        (back, hand_in(2, &lease, &[900]), "is not in lease"),
        (back, hand_in(3, &lease, &[own[0], 900]), "is not in lease"),
        (back, hand_in(4, &invented, &[900]), "never granted"),
        (back, hand_in(5, &generation, &own[..1]), "not of generation 7"),
    ] {
        wire.send(from, body);
        wire.commit_all();
        let reasons = rejections(wire.read(from));
        assert!(reasons.len() == 1 && reasons[0].contains(expected), "{reasons:?} should say {expected}");
        assert_eq!(wire.status("e").done, 0);
    }
    wire.send(back, hand_in(6, &lease, &own));
    wire.commit_all();
    assert_eq!(wire.status("e").done, own.len() as u64, "late rows of its own tasks count");
    // The same rows once more, under a lease that is not known, are no rows that are needed.
    wire.send(back, hand_in(7, &invented, &own));
    wire.commit_all();
    assert_eq!(rejections(wire.read(back)), Vec::<String>::new());
    assert_eq!(wire.status("e").done, own.len() as u64);
}

#[test]
fn logs_that_no_experiment_uses_are_dropped_after_a_day() {
    let (used, unused, orphan) = (Digest::from([1; 32]), Digest::from([2; 32]), Digest::from([3; 32]));
    let text = "version = 1\nname = \"e\"\n[workloads.w]\nsource = \"swf\"\nlog = \"l\"\n[policies.q]\n";
    let digests = std::collections::BTreeMap::from([("l".to_owned(), used)]);
    let manifest = powersweep_experiments::Manifest::parse("test", text).expect("valid");
    let sweep = powersweep_experiments::Sweep::new(manifest, digests.clone()).expect("its log");
    let mut wire = Wire::new();
    wire.request(Request::Submit(Submission::new(sweep, digests)));
    for digest in [used, unused] {
        wire.request(Request::LogStored { digest, bytes: 1 });
    }
    wire.commit_all();
    assert!(wire.farm.wants_log(used) && !wire.farm.wants_log(unused));
    let mut dropped = |wait: Duration| {
        wire.pass(wait);
        wire.replies.clear();
        wire.request(Request::DropLogs { stored: vec![used, unused, orphan] });
        assert!(wire.replies.is_empty(), "an object is deleted after its record");
        wire.commit_all();
        wire.replies.pop()
    };
    let hour = Duration::from_secs(3600);
    assert_eq!(dropped(hour), Some(Reply::LogsDropped(vec![])));
    assert_eq!(dropped(23 * hour), Some(Reply::LogsDropped(vec![])));
    assert_eq!(dropped(2 * hour), Some(Reply::LogsDropped(vec![unused, orphan])));
    assert_eq!(dropped(hour), Some(Reply::LogsDropped(vec![])));
}

#[test]
fn all_claims_of_a_worker_together_are_at_most_the_time_of_its_slots() {
    let mut wire = Wire::new();
    wire.submit(sweep("e", 1_000));
    let conn = wire.connect(1, 2, vec![]);
    wire.commit_all();
    wire.farm.workers.values_mut().for_each(|worker| worker.unclaimed_s = 0.0);
    let claim = |id: u64, lease: &v1::Lease, index: u64, seconds: f64| {
        let ToFarm::HandIn(body) = hand_in(id, lease, &[index]) else { panic!("a hand-in") };
        ToFarm::HandIn(v1::HandIn { spent: Some(v1::TimeSpent { engine_s: seconds, ..Default::default() }), ..body })
    };
    let lease = wire.leases(conn).remove(0);
    let mut indices = tasks(&lease).into_iter();
    let mut next = || indices.next().expect("some tasks");
    let spent_s = |wire: &Wire| wire.farm.experiments["e"].spent.engine_s;
    wire.pass(Duration::from_secs(10));
    wire.send(conn, claim(1, &lease, next(), 15.0));
    assert_eq!(spent_s(&wire), 15.0, "two slots had 20 s");
    wire.pass(Duration::from_secs(1));
    wire.send(conn, claim(2, &lease, next(), 15.0));
    assert!(spent_s(&wire) < 15.0 + 2.0, "7 s are left: this process measured the second task, {}", spent_s(&wire));
    wire.send(conn, claim(3, &lease, next(), 7.0));
    assert!(spent_s(&wire) >= 22.0, "{}", spent_s(&wire));
    let cost_s = wire.farm.experiments["e"].cost.mean_s().expect("known");
    assert!(cost_s < 15.0, "{cost_s} s");
}
