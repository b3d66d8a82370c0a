//! The demand for workers, and what they hold.

use std::time::Duration;

use powersweep_proto::v1;
use powersweep_proto::v1::worker_message::Body as ToFarm;

use super::wire::{Wire, hand_in, sweep, sweep_of, tasks};
use crate::farm::Action;

#[test]
fn waiting_tasks_are_demanded_by_their_percentile_and_leased_ones_are_not() {
    let mut wire = Wire::new();
    assert_eq!(wire.farm.demand(), v1::Demand::default());
    wire.submit(sweep("e", 1000));
    let before = wire.farm.demand();
    assert_eq!((before.waiting_tasks, before.unmeasured_tasks, before.shortest_s), (1000, 1000, None));
    let conn = wire.connect(1, 1, vec![]);
    wire.commit_all();
    let lease = wire.leases(conn).remove(0);
    let leased = tasks(&lease).len() as u64;
    let during = wire.farm.demand();
    assert_eq!((during.waiting_tasks, during.leased_tasks, during.slots), (1000 - leased, leased, 1));
    // Half a second of work a task.
    wire.send(conn, hand_in(1, &lease, &tasks(&lease)));
    wire.settle();
    let after = wire.farm.demand();
    let task_s = after.shortest_s.expect("measured");
    assert!((0.5..0.6).contains(&task_s), "{task_s}");
    assert_eq!(after.unmeasured_tasks, 0);
    assert_eq!(after.waiting_tasks + after.leased_tasks + leased, 1000);
    assert!((after.waiting_s - after.waiting_tasks as f64 * task_s).abs() < 1e-6, "{after:?}");
}

#[test]
fn tasks_that_may_not_run_are_not_demanded() {
    let mut wire = Wire::new();
    wire.submit(sweep("e", 10));
    wire.commit_all();
    wire.control("e", Action::Pause(v1::Pause {}));
    assert_eq!(wire.farm.demand().waiting_tasks, 0);
    wire.control("e", Action::Resume(v1::Resume {}));
    assert_eq!(wire.farm.demand().waiting_tasks, 10);
}

#[test]
fn status_names_the_allocation_of_a_worker() {
    let mut wire = Wire::new();
    let conn = wire.connect(7, 1, vec![]);
    let status = |wire: &Wire| wire.farm.status(&v1::StatusRequest::default(), wire.now);
    let worker = status(&wire).workers.remove(0);
    assert_eq!((worker.allocation.as_str(), worker.connected), ("job7", true));
    wire.submit(sweep("e", 10));
    wire.commit_all();
    wire.disconnect(conn, true);
    assert!(!status(&wire).workers.remove(0).connected);
}

/// Indices run over the product: 3 to 5 and 9 to 11 of twelve are excluded.
#[test]
fn cells_of_tasks_leave_out_excluded_indices() {
    let mut wire = Wire::new();
    let text = "version = 1\nname = \"e\"\nseeds = [1, 2, 3]\n[workloads.a]\nsource = \"lublin\"\nsynthetic_jobs_count = [5, 6]\n\
                [platforms.c]\n[policies.p]\nqueue_order = [\"fcfs\", \"sjf\"]\n\
                [[exclude]]\nqueue_order = \"sjf\"\n";
    wire.submit(sweep_of(text));
    let conn = wire.connect(1, 16, vec![]);
    wire.commit_all();
    wire.work_off(conn);
    wire.settle();
    let bins = |bins| {
        let request = v1::StatusRequest { experiment: "e".to_owned(), bins, ..Default::default() };
        wire.farm.status(&request, wire.now).experiments.remove(0).bins.expect("cells")
    };
    let each = bins(100);
    assert_eq!((each.width, each.tasks, each.done), (1, vec![1; 6], vec![1; 6]));
    let (four, done) = (bins(3), vec![3, 2, 1]);
    assert_eq!((four.width, &four.tasks, &four.done), (4, &done, &done));
}

/// A worker of two experiments of unlike costs: the tasks of one count by their cost in the other.
#[test]
fn held_tasks_of_another_experiment_count_by_their_cost() {
    let mut wire = Wire::new();
    for name in ["slow", "fast"] {
        wire.submit(sweep(name, 10_000));
    }
    let conn = wire.connect(1, 2, vec![]);
    wire.commit_all();
    let cost_s = |wire: &Wire, name: &str| wire.farm.experiments[name].cost.mean_s();
    let held = |wire: &Wire, name: &str| -> u64 {
        wire.farm.leases.values().filter(|lease| lease.grant.experiment == name).map(|lease| lease.open.len()).sum()
    };
    let mut compared = 0;
    for id in 1..50 {
        if let Some(lease) = wire.leases(conn).first() {
            let each_s = if lease.experiment == "slow" { 1.0 } else { 0.25 };
            let done = tasks(lease);
            let ToFarm::HandIn(mut body) = hand_in(id, lease, &done) else { panic!("a hand-in") };
            body.spent = Some(v1::TimeSpent { engine_s: each_s * done.len() as f64, ..Default::default() });
            wire.pass(Duration::from_millis(100));
            wire.send(conn, ToFarm::HandIn(body));
        }
        wire.settle();
        let (Some(slow_s), Some(fast_s)) = (cost_s(&wire, "slow"), cost_s(&wire, "fast")) else { continue };
        let (slow, fast) = (held(&wire, "slow"), held(&wire, "fast"));
        let worker = wire.farm.workers.values().next().expect("it is connected");
        let in_fast = (fast as f64 + slow as f64 * slow_s / fast_s).round() as u64;
        assert_eq!(wire.farm.outstanding_in(worker, &wire.farm.experiments["fast"]), in_fast);
        compared += u64::from(slow > 1 && in_fast > fast + slow);
    }
    assert!(compared > 0, "the worker never held tasks of the other experiment");
}
