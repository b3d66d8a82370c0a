//! Rows that are larger than a sound worker's, over gRPC against a real coordinator.

use std::sync::Arc;
use std::time::Duration;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use powersweep_coordinator::Config;
use powersweep_coordinator::store::{ModelStore, Store};
use powersweep_coordinator::view::{State, read_table_without_uploads};
use powersweep_experiments::Sweep;
use powersweep_proto::v1;
use powersweep_results::{Table, jobs, tasks, wire};
use uuid::Uuid;

use crate::hostile::{Farm, Worker, hand_in, object, rows};

const PATIENCE: Duration = Duration::from_secs(60);

/// A hand-in of these tasks of a lease, whose rows have a text of this length in one column.
fn with_text(lease: &v1::Lease, sweep: &Sweep, indices: &[u64], name: &str, bytes: usize) -> v1::HandIn {
    let sound = rows(&tasks::schema(), sweep, indices);
    let text = "x".repeat(bytes);
    let schema = sound.schema();
    let columns = schema.fields().iter().zip(sound.columns()).map(|(field, column)| -> ArrayRef {
        match field.name() == name {
            true => Arc::new(StringArray::from(vec![&*text; indices.len()])),
            false => Arc::clone(column),
        }
    });
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns.collect()).expect("columns of the schema");
    v1::HandIn {
        experiment: lease.experiment.clone(),
        generation: lease.generation,
        done: vec![v1::LeaseTasks { lease: lease.id, indices: indices.to_vec() }],
        rows: wire::encode(&batch).expect("encodes"),
        ..Default::default()
    }
}

/// Tasks of a worker's leases, one after the other.
struct Tasks {
    worker: Worker,
    left: Vec<(v1::Lease, u64)>,
}

impl Tasks {
    async fn of(farm: &Farm) -> Tasks {
        Tasks { worker: Worker::greet(farm).await, left: Vec::new() }
    }

    async fn next(&mut self) -> (v1::Lease, u64) {
        if self.left.is_empty() {
            let lease = self.worker.lease().await;
            self.left =
                lease.ranges.iter().flat_map(|range| range.start..range.end).map(|at| (lease.clone(), at)).collect();
        }
        self.left.pop().expect("a lease has tasks")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_with_a_long_text_is_refused_and_other_rows_are_published() {
    let config = Config { attempts_max: 100, ..Config::default() };
    let farm = Farm::start_on(ModelStore::new(), config).await.expect("it serves");
    let sweep = farm.submit("e", 100, "").await;
    let mut tasks = Tasks::of(&farm).await;
    for bytes in [65_537, 1 << 20, 30 << 20] {
        let (lease, index) = tasks.next().await;
        let long = with_text(&lease, &sweep, &[index], "log", bytes);
        assert!(long.rows.len() < 64 << 10, "{} bytes on the wire", long.rows.len());
        let reason = tasks.worker.hand_in(long).await.expect_err("refused");
        assert!(reason.contains(&format!("has {bytes} bytes in the column `log`, at most 65536")), "{reason}");
    }
    let (lease, index) = tasks.next().await;
    let longest = with_text(&lease, &sweep, &[index], "log", 65_536);
    tasks.worker.hand_in(longest).await.expect("accepted");
    let flush = farm.handle.requests().flush(v1::FlushRequest { experiment: "e".to_owned() });
    tokio::time::timeout(PATIENCE, flush).await.expect("answered").expect("published");
    let status = farm.status("e").await;
    assert_eq!((status.done, status.rows_in_parts), (1, 1), "{status:?}");
    farm.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_name_another_worker_are_refused() {
    let farm = Farm::start().await;
    let sweep = farm.submit("e", 100, "").await;
    let mut tasks = Tasks::of(&farm).await;
    let (lease, index) = tasks.next().await;
    // `with_text` names a worker with a longer name.
    let forged = with_text(&lease, &sweep, &[index], "worker", 3);
    let reason = tasks.worker.hand_in(forged).await.expect_err("refused");
    assert!(reason.contains("names another worker than the one that hands it in"), "{reason}");
    let (lease, index) = tasks.next().await;
    tasks.worker.hand_in(with_text(&lease, &sweep, &[index], "log", 3)).await.expect("its own name");
    assert_eq!(farm.status("e").await.done, 1);
    farm.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_claims_more_time_than_it_had_is_not_believed() {
    let farm = Farm::start().await;
    let sweep = farm.submit("e", 100, "").await;
    let mut tasks = Tasks::of(&farm).await;
    for seconds in [1e9, f64::NAN, -1e9, f64::INFINITY] {
        let (lease, index) = tasks.next().await;
        let spent = v1::TimeSpent { engine_s: seconds, idle_s: seconds, ..Default::default() };
        let lie = v1::HandIn { spent: Some(spent), ..with_text(&lease, &sweep, &[index], "log", 3) };
        tasks.worker.hand_in(lie).await.expect("its rows are sound");
    }
    let status = farm.status("e").await;
    let spent = status.spent.expect("some");
    // Four slots, for less than the patience of this test.
    let most_s = 4.0 * PATIENCE.as_secs_f64();
    assert!((0.0..most_s).contains(&spent.engine_s) && (0.0..most_s).contains(&spent.idle_s), "{spent:?}");
    let eta_s = status.eta_s.unwrap_or(0.0);
    assert!((0.0..100.0 * most_s).contains(&eta_s), "{eta_s} s");
    farm.stop().await;
}

/// Rows of a few bytes on the wire that are megabytes in memory count for a part by their memory.
#[tokio::test(flavor = "multi_thread")]
async fn rows_that_are_far_larger_decoded_end_a_part_sooner() {
    let config = Config { part_bytes: 64 << 10, ..Config::default() };
    let farm = Farm::start_on(ModelStore::new(), config).await.expect("it serves");
    let sweep = farm.submit("e", 10_000, "").await;
    let mut worker = Worker::greet(&farm).await;
    let mut rows = 0;
    while rows < 128 {
        let lease = worker.lease().await;
        let indices: Vec<u64> = lease.ranges.iter().flat_map(|range| range.start..range.end).take(128).collect();
        rows += indices.len() as u64;
        let folded = with_text(&lease, &sweep, &indices, "log", 65_536);
        assert!(folded.rows.len() < 32 << 10, "{} bytes on the wire", folded.rows.len());
        worker.hand_in(folded).await.expect("accepted");
    }
    // They have 8 MiB. Without a flush they are published, because they are enough for a part.
    let begun = std::time::Instant::now();
    while farm.status("e").await.rows_in_parts == 0 {
        assert!(begun.elapsed() < PATIENCE, "{:?}", farm.status("e").await);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    farm.stop().await;
}

/// An object that is damaged in the staging folder, after it was checked.
#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_is_left_out_of_a_part_is_in_the_status() {
    let farm = Farm::start().await;
    let sweep = farm.submit("e", 2, "tables = [\"jobs\"]").await;
    let mut worker = Worker::greet(&farm).await;
    let mut damaged = None;
    let mut lease = worker.lease().await;
    for index in [0, 1] {
        if !lease.ranges.iter().any(|range| (range.start..range.end).contains(&index)) {
            lease = worker.lease().await;
        }
        let (request, named) = object(&lease, &jobs::schema(), &sweep, index);
        let part_id = Uuid::from_slice(&named.part_id).expect("an id");
        worker.upload(request.clone()).await.expect("sound");
        let objects = farm.store.objects().expect("open");
        if damaged.is_none() {
            objects.discard_staged("e", Table::Jobs, part_id).await.expect("deleted");
            let mut data = request.data.to_vec();
            data[4..200].fill(0);
            objects.stage("e", Table::Jobs, part_id, data.into()).await.expect("stored");
            damaged = Some(part_id);
        }
        worker
            .hand_in(v1::HandIn { uploads: vec![named], ..hand_in(&lease, &sweep, index, index) })
            .await
            .expect("taken");
    }
    let status = farm.until("e", v1::ExperimentState::Failed).await;
    assert_eq!(status.reason, "uploads of workers that could not be read are left out: 1 in jobs", "{status:?}");
    let view = read_table_without_uploads(State::Own(&*farm.store), "e", Table::Jobs).await.expect("a part");
    assert_eq!(view.counted.map(|of| (of.rows, of.left_out)), Some((2, 1)), "the damaged row is counted");
    farm.stop().await;
}
