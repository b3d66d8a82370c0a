//! Lost networks, crashed workers, stalled storage, limits.

use std::time::Duration;

use powersweep_proto::v1;
use powersweep_proto::v1::farm_message::Body as ToWorker;
use powersweep_proto::v1::worker_message::Body as ToFarm;

use super::wire::{Wire, hand_in, sweep, sweep_of, tasks};
use crate::farm::{Event, Reply};

/// Longer than any time-out of the farm, except for the age of rows.
const LONG: Duration = Duration::from_secs(60);

fn held(lease: &v1::Lease) -> v1::LeaseState {
    v1::LeaseState { lease: lease.id, experiment: "e".into(), generation: 1, open: lease.ranges.clone() }
}

fn adopted(messages: &[ToWorker]) -> Vec<v1::LeaseId> {
    let welcome = |m: &ToWorker| if let ToWorker::Welcome(w) = m { Some(w.adopted.clone()) } else { None };
    messages.iter().find_map(welcome).expect("a welcome")
}

#[test]
fn a_worker_that_reconnects_keeps_its_expired_leases() {
    let mut wire = Wire::new();
    wire.submit(sweep("e", 4));
    let conn = wire.connect(1, 2, vec![]);
    wire.commit_all();
    let lease = wire.leases(conn).remove(0);
    let mine = tasks(&lease);
    wire.disconnect(conn, false);
    wire.pass(LONG);
    wire.event(Event::Tick);
    wire.commit_all();
    assert_eq!(wire.status("e").running, 0, "the lease has ended");
    let conn = wire.connect(1, 2, vec![held(&lease)]);
    wire.commit_all();
    let messages = wire.read(conn);
    assert_eq!(adopted(&messages), [lease.id.expect("an id")]);
    for message in messages {
        let ToWorker::Lease(new) = message else { continue };
        assert!(tasks(&new).iter().all(|task| !mine.contains(task)), "{new:?} was computed already");
    }
    wire.send(conn, hand_in(1, &lease, &mine));
    wire.settle();
    assert_eq!(wire.status("e").done, mine.len() as u64);
    wire.check();
}

fn revoked(messages: &[ToWorker]) -> Vec<u64> {
    let ranges = messages.iter().filter_map(|m| if let ToWorker::Revoke(r) = m { Some(&r.ranges) } else { None });
    ranges.flatten().flat_map(|range| range.start..range.end).collect()
}

/// The expired lease of worker 1, which has lost its connection, and the tasks that worker 2, with one slot, has got since.
fn expired(wire: &mut Wire, seeds: u64, slots: u32) -> (v1::Lease, Vec<u64>) {
    wire.submit(sweep("e", seeds));
    let first = wire.connect(1, slots, vec![]);
    wire.commit_all();
    let lease = wire.leases(first).remove(0);
    wire.disconnect(first, false);
    wire.pass(LONG);
    wire.event(Event::Tick);
    wire.commit_all();
    let second = wire.connect(2, 1, vec![]);
    wire.commit_all();
    let theirs = wire.leases(second).iter().flat_map(tasks).collect();
    (lease, theirs)
}

#[test]
fn tasks_leased_to_another_worker_are_revoked_from_a_worker_that_reconnects() {
    let mut wire = Wire::new();
    let (lease, theirs) = expired(&mut wire, 2, 2);
    assert!(!theirs.is_empty());
    let back = wire.connect(1, 2, vec![held(&lease)]);
    wire.commit_all();
    let messages = wire.read(back);
    let revoked = revoked(&messages);
    let kept: Vec<u64> = tasks(&lease).into_iter().filter(|task| !theirs.contains(task)).collect();
    assert_eq!(adopted(&messages).is_empty(), kept.is_empty());
    assert!(kept.is_empty() || revoked == theirs, "{revoked:?} {theirs:?}");
    // Its rows are accepted nevertheless: the first rows win.
    wire.send(back, hand_in(1, &lease, &tasks(&lease)));
    wire.settle();
    assert_eq!(wire.status("e").done, tasks(&lease).len() as u64);
}

/// Twice the crashes that quarantine a task, of a worker that holds one task.
fn crashes(heard_before: Duration) -> v1::ExperimentStatus {
    let mut wire = Wire::new();
    wire.submit(sweep("e", 1));
    for worker in 0..6 {
        let conn = wire.connect(worker, 1, vec![]);
        wire.commit_all();
        wire.leases(conn);
        wire.pass(heard_before);
        wire.disconnect(conn, true);
        wire.pass(LONG);
        wire.event(Event::Tick);
        wire.settle();
    }
    wire.status("e")
}

#[test]
fn a_task_is_blamed_for_a_crash_and_not_for_a_lost_network() {
    let dead = crashes(Duration::from_secs(1));
    assert_eq!((dead.quarantined, dead.failures[0].attempt), (1, 3), "{dead:?}");
    let cut = crashes(Duration::from_secs(25));
    assert_eq!((cut.quarantined, cut.failures.len()), (0, 0), "{cut:?}");
}

/// Two workers share 40 tasks; a worker that holds task 7 dies, and another process replaces it.
#[test]
fn a_task_that_kills_its_workers_is_quarantined_alone() {
    let mut wire = Wire::new();
    wire.submit(sweep("e", 40));
    let mut conns = [wire.connect(1, 4, vec![]), wire.connect(2, 4, vec![])];
    let (mut next_worker, mut deaths) = (2, 0);
    for round in 0.. {
        assert!(round < 200, "stuck: {:?}", wire.status("e"));
        for conn in &mut conns {
            wire.settle();
            let leases = wire.leases(*conn);
            if leases.iter().flat_map(tasks).any(|task| task == 7) {
                deaths += 1;
                wire.disconnect(*conn, true);
                next_worker += 1;
                *conn = wire.connect(next_worker, 4, vec![]);
                continue;
            }
            for (at, lease) in leases.iter().enumerate() {
                wire.send(*conn, hand_in(round * 100 + at as u64 + 1, lease, &tasks(lease)));
            }
            wire.send(*conn, ToFarm::Heartbeat(v1::Heartbeat::default()));
        }
        wire.settle();
        wire.pass(Duration::from_secs(5));
        wire.event(Event::Tick);
        wire.settle();
        if wire.status("e").state() == v1::ExperimentState::Failed {
            break;
        }
    }
    let status = wire.status("e");
    assert_eq!((status.done, status.quarantined), (39, 1), "{status:?}");
    assert_eq!((status.failures[0].index, status.failures[0].attempt), (7, 3));
    // Copies of a dead worker's tasks kill further workers.
    assert!(deaths <= 16, "{deaths} deaths");
}

#[test]
fn while_storage_stalls_leases_do_not_expire_and_submits_are_refused() {
    let mut wire = Wire::new();
    wire.submit(sweep("e", 4));
    let conn = wire.connect(1, 2, vec![]);
    wire.commit_all();
    let lease = wire.leases(conn).remove(0);
    wire.event(Event::Storage { stalled: Some("the disk is full".into()) });
    wire.pass(LONG);
    wire.event(Event::Tick);
    let Reply::Refused(reason) = wire.submit(sweep("other", 4)) else { panic!("accepted") };
    assert!(reason.contains("the disk is full"), "{reason}");
    let other = wire.connect(2, 2, vec![]);
    wire.commit_all();
    assert!(wire.leases(other).is_empty(), "no task is handed out");
    wire.send(other, ToFarm::Goodbye(v1::Goodbye::default()));
    wire.event(Event::Storage { stalled: None });
    wire.event(Event::Tick);
    wire.send(conn, hand_in(1, &lease, &tasks(&lease)));
    wire.settle();
    let status = wire.status("e");
    assert_eq!((status.done, wire.closed.contains(&conn)), (tasks(&lease).len() as u64, false), "{status:?}");
}

#[test]
fn rows_that_wait_for_a_commit_are_counted() {
    let mut wire = Wire::new();
    wire.submit(sweep("e", 4));
    let conn = wire.connect(1, 2, vec![]);
    wire.commit_all();
    let lease = wire.leases(conn).remove(0);
    assert_eq!(wire.farm.waiting_bytes(), 0);
    wire.send(conn, hand_in(1, &lease, &tasks(&lease)));
    assert!(wire.farm.waiting_bytes() > 0);
    assert!(wire.begin_commit(None));
    assert_eq!(wire.farm.waiting_bytes(), 0);
    wire.end_commit();
    wire.settle();
}

#[test]
fn limits_are_sent_to_workers_and_do_not_change_task_ids() {
    let text = |limits: &str| {
        format!(
            "version = 1\nname = \"e\"\n{limits}\n[workloads.w]\nsource = \"lublin\"\nsynthetic_jobs_count = 10\n\
             [policies.q]\n"
        )
    };
    let limits = "limits = { task_deadline_s = 1.5, task_max_events = 7, task_max_memory = \"1 KiB\" }";
    let (plain, limited) = (sweep_of(&text("")), sweep_of(&text(limits)));
    let id = |sweep: &powersweep_experiments::Sweep| sweep.task(0).expect("a task").task_id;
    assert_eq!(id(&plain), id(&limited));
    let mut wire = Wire::new();
    wire.submit(plain);
    let Reply::Submitted(reply) = wire.submit(limited) else { panic!("refused") };
    assert_eq!((reply.generation, reply.tasks), (2, 1));
    let conn = wire.connect(1, 1, vec![]);
    wire.commit_all();
    let announced =
        wire.read(conn).into_iter().find_map(|m| if let ToWorker::Experiment(e) = m { Some(e) } else { None });
    let told = announced.expect("it is announced");
    assert_eq!((told.task_deadline_s, told.task_max_events, told.task_max_bytes), (1.5, 7, 1024));
}

#[test]
fn a_worker_with_little_time_gets_no_long_tasks() {
    let mut wire = Wire::new();
    wire.submit(sweep("e", 1000));
    let conn = wire.connect(1, 1, vec![]);
    wire.commit_all();
    // Half a second of work a task.
    let lease = wire.leases(conn).remove(0);
    wire.send(conn, hand_in(1, &lease, &tasks(&lease)));
    wire.settle();
    let mut leased = |worker: u128, seconds_left: f64| -> usize {
        let conn = wire.connect_for(worker, 1, vec![], Some(seconds_left));
        wire.commit_all();
        wire.leases(conn).iter().flat_map(tasks).count()
    };
    assert_eq!(leased(2, 0.4), 0);
    assert_eq!(leased(3, 1.2), 2);
    assert!(leased(4, 3600.0) > 2);
}

/// A task's slot time includes the reading of its log.
#[test]
fn the_reading_of_logs_counts_as_time_of_a_task() {
    let mut wire = Wire::new();
    wire.submit(sweep("e", 1000));
    let conn = wire.connect(1, 1, vec![]);
    wire.commit_all();
    let lease = wire.leases(conn).remove(0);
    let quarter_s = 0.25 * tasks(&lease).len() as f64;
    let ToFarm::HandIn(mut done) = hand_in(1, &lease, &tasks(&lease)) else { panic!("it is a hand-in") };
    done.spent = Some(v1::TimeSpent { engine_s: quarter_s, parse_s: quarter_s, ..Default::default() });
    wire.send(conn, ToFarm::HandIn(done));
    wire.settle();
    let conn = wire.connect_for(2, 1, vec![], Some(1.2));
    wire.commit_all();
    assert_eq!(wire.leases(conn).iter().flat_map(tasks).count(), 2);
}

#[test]
fn a_part_that_is_being_made_does_not_stall_storage() {
    let mut wire = Wire::new();
    wire.submit(sweep("e", 4));
    let conn = wire.connect(1, 4, vec![]);
    wire.commit_all();
    for (id, lease) in (1..).zip(wire.leases(conn)) {
        wire.send(conn, hand_in(id, &lease, &tasks(&lease)));
    }
    wire.commit_all();
    assert!(!wire.to_publish.is_empty(), "a part is being made");
    assert!(!wire.farm.is_stalled());
    wire.settle();
}

#[test]
fn a_worker_that_reconnects_keeps_the_tasks_that_no_other_worker_has() {
    let mut wire = Wire::new();
    let (lease, theirs) = expired(&mut wire, 40, 8);
    let (lost, kept): (Vec<u64>, Vec<u64>) = tasks(&lease).into_iter().partition(|task| theirs.contains(task));
    assert!(!lost.is_empty() && !kept.is_empty(), "{lost:?} {kept:?}");
    let back = wire.connect(1, 8, vec![held(&lease)]);
    wire.commit_all();
    let messages = wire.read(back);
    assert_eq!(adopted(&messages), [lease.id.expect("an id")]);
    assert_eq!(revoked(&messages), lost);
}
