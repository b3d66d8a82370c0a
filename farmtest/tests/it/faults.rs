//! Coordinators and workers crash, and the dataset equals that of an undisturbed run.

use std::time::Duration;

use crate::farm::{Coordinator, Data, SHORT_ABSENCE, Worker};
use crate::sweeps::expected;
use powersweep_farmtest::dataset::{assert_same, distinct_ids, sorted, tasks};
use powersweep_farmtest::sweeps::four_policies;

#[test]
fn a_worker_that_crashes_with_a_lease_loses_no_task() {
    let data = Data::new();
    let manifest = four_policies("vanish", 400, 400, "");
    let coordinator = Coordinator::start_with(&data, 0, SHORT_ABSENCE);
    let first = Worker::start(coordinator.address(), "first");
    coordinator.submit(&manifest);
    coordinator.wait_done("vanish", 20);
    first.crash();
    let second = Worker::start(coordinator.address(), "second");
    coordinator.wait_done("vanish", 400);
    second.stop();
    coordinator.stop();
    let written = tasks(data.path(), "vanish");
    assert_eq!(distinct_ids(&written).len(), 400);
    assert_same(&written, &sorted(&expected(&manifest).0, &["task_id"]));
}

#[test]
fn a_worker_keeps_computing_while_the_coordinator_crashes_and_returns() {
    let data = Data::new();
    let manifest = four_policies("restart", 800, 400, "");
    let mut coordinator = Coordinator::start(&data, 0);
    let worker = Worker::start(coordinator.address(), "w");
    coordinator.submit(&manifest);
    for done in [20, 200, 500] {
        coordinator.wait_done("restart", done);
        let port = coordinator.crash();
        std::thread::sleep(Duration::from_millis(50));
        coordinator = Coordinator::start(&data, port);
    }
    coordinator.wait_done("restart", 800);
    let report = worker.stop();
    assert_eq!(report.unacknowledged, 0, "{report:?}");
    assert_eq!(report.tasks_acknowledged, 800, "no task ran twice, since the worker lived: {report:?}");
    coordinator.stop();
    let written = tasks(data.path(), "restart");
    assert_eq!(distinct_ids(&written).len(), 800);
    assert_same(&written, &sorted(&expected(&manifest).0, &["task_id"]));
}

#[test]
fn workers_and_coordinator_crash_in_turn() {
    let data = Data::new();
    let manifest = four_policies("turns", 1200, 300, "");
    let mut coordinator = Coordinator::start_with(&data, 0, SHORT_ABSENCE);
    let mut workers = vec![Worker::start(coordinator.address(), "w0"), Worker::start(coordinator.address(), "w1")];
    coordinator.submit(&manifest);
    for round in 1..=4 {
        coordinator.wait_done("turns", round * 200);
        workers.remove(0).crash();
        if round % 2 == 0 {
            let port = coordinator.crash();
            coordinator = Coordinator::start_with(&data, port, SHORT_ABSENCE);
        }
        workers.push(Worker::start(coordinator.address(), &format!("w{}", round + 1)));
    }
    coordinator.wait_done("turns", 1200);
    workers.into_iter().for_each(|w| drop(w.stop()));
    coordinator.stop();
    let written = tasks(data.path(), "turns");
    assert_eq!(distinct_ids(&written).len(), 1200);
    assert_same(&written, &sorted(&expected(&manifest).0, &["task_id"]));
}
