//! Without faults, the dataset equals a plain loop over the engine.

use arrow::array::RecordBatch;
use powersweep_farmtest::sweeps::four_policies;

use crate::farm::{Coordinator, Data, Worker};
use crate::sweeps::{expected, on_a_log};
use powersweep_farmtest::dataset::{assert_same, distinct_ids, sorted, table, tasks, text};

#[test]
fn a_small_sweep_equals_the_engine() {
    let data = Data::new();
    let manifest = four_policies("small", 40, 100, "");
    let coordinator = Coordinator::start(&data);
    let worker = Worker::start(coordinator.address(), "ada");
    let reply = coordinator.submit(&manifest);
    assert_eq!((reply.tasks, reply.to_run), (40, 40));
    coordinator.wait_done("small", 40);
    let report = worker.stop();
    assert_eq!((report.tasks_acknowledged, report.unacknowledged), (40, 0));
    coordinator.stop();

    let written = tasks(data.path(), "small");
    assert_eq!(distinct_ids(&written).len(), 40);
    assert_same(&written, &sorted(&expected(&manifest).0, &["task_id"]));
    assert_eq!(text(&written, "worker"), vec!["ada"; 40]);
    assert_eq!(text(&written, "attempt"), vec!["1"; 40]);
}

#[test]
fn optional_tables_have_every_job_and_every_point_of_every_task_once() {
    let data = Data::new();
    let manifest = on_a_log("jobs", &["jobs", "series"]);
    let coordinator = Coordinator::start(&data);
    let worker = Worker::start(coordinator.address(), "w");
    coordinator.submit(&manifest);
    coordinator.wait_done("jobs", 22);
    worker.stop();
    coordinator.stop();
    let (task_rows, job_rows, series_rows) = expected(&manifest);
    assert_same(&tasks(data.path(), "jobs"), &sorted(&task_rows, &["task_id"]));
    assert_eq!(job_rows.num_rows(), 66);
    assert!(series_rows.num_rows() >= 22 * 2, "{} points", series_rows.num_rows());
    let same = |name: &str, rows: &RecordBatch, keys: &[&str]| {
        let (written, expected) = (table(data.path(), "jobs", name, keys), sorted(rows, keys));
        assert_eq!(written.num_rows(), expected.num_rows(), "{name}");
        for field in expected.schema().fields() {
            let column = |batch: &RecordBatch| batch.column_by_name(field.name()).cloned();
            assert_eq!(column(&written), column(&expected), "{name}.{}", field.name());
        }
    };
    same("jobs", &job_rows, &["task_id", "job_id"]);
    same("series", &series_rows, &["task_id", "series", "level", "x"]);
}

#[test]
fn two_workers_share_a_sweep() {
    let data = Data::new();
    let manifest = four_policies("shared", 400, 400, "");
    let coordinator = Coordinator::start(&data);
    let workers = ["ada", "bob"].map(|name| Worker::start(coordinator.address(), name));
    // One worker alone may finish before the other is connected.
    coordinator.wait_workers(2);
    coordinator.submit(&manifest);
    coordinator.wait_done("shared", 400);
    let done: u64 = workers.into_iter().map(|w| w.stop().tasks_acknowledged).sum();
    assert!(done >= 400, "{done}");
    coordinator.stop();
    let written = tasks(data.path(), "shared");
    assert_eq!(distinct_ids(&written).len(), 400);
    assert_same(&written, &sorted(&expected(&manifest).0, &["task_id"]));
    let mut names = text(&written, "worker");
    names.sort();
    names.dedup();
    assert_eq!(names, ["ada", "bob"]);
}
