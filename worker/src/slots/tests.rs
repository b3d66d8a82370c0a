//! Slots with real threads and the real engine, without a network: the test plays the coordinator.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use powersweep_engine::{Details, Limits, simulate, workload};
use powersweep_experiments::{Digest, Manifest, Sweep};
use powersweep_proto::v1::FailureKind;
use powersweep_proto::v1::worker_message::Body;
use powersweep_results::{jobs, part, tasks, wire};
use uuid::Uuid;

use super::*;
use crate::logs::FetchError;
use crate::options::{TaskHook, TaskLimits, WorkerOptions, nowhere};
use crate::session::Identity;
use crate::task::Inputs;

struct Farm {
    pool: Arc<Pool>,
    threads: Vec<JoinHandle<()>>,
    woken: Receiver<()>,
    fetches: Arc<AtomicUsize>,
    sweep: Sweep,
}

const LUBLIN: &str = r#"
version = 1
name = "test"
seeds = [1, 2, 3]
[workloads.w]
source = "lublin"
synthetic_jobs_count = 2000
synthetic_procs = 64
[platforms.p]
[policies.q]
queue_order = ["fcfs", "sjf"]
"#;

const SWF: &str = r#"
version = 1
name = "test"
[workloads.w]
source = "swf"
log = "tiny"
[platforms.p]
procs = 4
[policies.q]
queue_order = ["fcfs", "sjf"]
"#;

const TINY_LOG: &[u8] = b"; MaxProcs: 4
1 0 -1 10 2 -1 -1 2 20 -1 1 1 1 1 1 1 -1 -1
2 5 -1 10 4 -1 -1 4 20 -1 1 1 1 1 1 1 -1 -1
";

impl Farm {
    fn start(manifest: &str, slots: usize, limits: TaskLimits, tables: powersweep_experiments::Tables) -> Farm {
        let answer = || Ok(TINY_LOG.to_vec());
        Farm::with_logs(manifest, slots, limits, tables, Box::new(answer))
    }

    fn with_logs(
        manifest: &str,
        slots: usize,
        limits: TaskLimits,
        tables: powersweep_experiments::Tables,
        answer: Box<dyn Fn() -> Result<Vec<u8>, String> + Send + Sync>,
    ) -> Farm {
        Farm::with_hook(manifest, slots, limits, tables, answer, None)
    }

    fn with_hook(
        manifest: &str,
        slots: usize,
        limits: TaskLimits,
        tables: powersweep_experiments::Tables,
        answer: Box<dyn Fn() -> Result<Vec<u8>, String> + Send + Sync>,
        hook: Option<TaskHook>,
    ) -> Farm {
        let manifest = Manifest::parse("test.toml", manifest).expect("the test's manifest is right");
        let digests = manifest.logs().into_iter().map(|l| (l.log, Digest::of(TINY_LOG)));
        let digests: BTreeMap<String, Digest> = digests.collect();
        let sweep = Sweep::new(manifest, digests).expect("the digests are there");
        let identity = Identity {
            name: "w".into(),
            worker_id: Uuid::nil(),
            allocation: String::new(),
            versions: v1::Versions::default(),
        };
        let mut session = Session::new(identity, slots);
        session.hello(None);
        session.welcome(&v1::Welcome { epoch: 1, ..Default::default() });
        let fetches = Arc::new(AtomicUsize::new(0));
        let calls = Arc::clone(&fetches);
        let fetch = move |_: &Digest, _: &AtomicBool| {
            calls.fetch_add(1, Ordering::SeqCst);
            answer().map_err(FetchError::Failed)
        };
        let options = WorkerOptions { before_task: hook, ..WorkerOptions::new(nowhere(), slots, "w") };
        let logs = Logs::new(&options, Box::new(fetch)).expect("no cache folder is asked for");
        let (wake, woken) = channel();
        let wake = Box::new(move || wake.send(()).unwrap_or_default());
        let pool = Arc::new(Pool::new(&options, session, logs, wake));
        let key = ExperimentKey { name: "test".into(), generation: 1 };
        pool.add_experiment(Experiment { key, inputs: Inputs::of(&sweep), sweep: sweep.clone(), tables, limits });
        let threads = pool.start().expect("threads start");
        Farm { pool, threads, woken, fetches, sweep }
    }

    fn lease(&self, start: u64, end: u64) {
        self.pool.change(|s| {
            s.lease(v1::Lease {
                id: Some(v1::LeaseId { epoch: 1, counter: start + 1 }),
                experiment: "test".into(),
                generation: 1,
                ranges: vec![v1::IndexRange { start, end }],
                attempt: 3,
            });
        });
    }

    /// Collects messages until they settle this number of tasks. Uploads succeed at once, and everything is acknowledged.
    fn collect(&self, tasks: u64) -> (Vec<Body>, Vec<crate::session::Upload>) {
        let (mut messages, mut uploads, mut seen) = (Vec::new(), Vec::new(), 0);
        while seen < tasks {
            let mut session = self.pool.session();
            if let Some(upload) = session.next_upload() {
                session.uploaded(&upload, true);
                uploads.push(upload);
                continue;
            }
            let Some(message) = session.next_message() else {
                drop(session);
                self.woken.recv().expect("slots are running");
                continue;
            };
            match &message {
                Body::HandIn(h) => {
                    seen += h.done.iter().map(|d| d.indices.len() as u64).sum::<u64>();
                    session.acknowledged(&[h.id]);
                }
                Body::Failure(f) => {
                    seen += 1;
                    session.acknowledged(&[f.id]);
                }
                _ => {}
            }
            messages.push(message);
        }
        (messages, uploads)
    }

    fn end(self) -> v1::TimeSpent {
        self.pool.change(|s| s.drain(self.pool.now(), Duration::ZERO, "test"));
        self.pool.close();
        self.threads.into_iter().for_each(|t| t.join().expect("slots do not panic"));
        assert!(self.pool.session().is_settled());
        self.pool.spent()
    }
}

fn rows(messages: &[Body]) -> Vec<RecordBatch> {
    let batch = |m: &Body| match m {
        Body::HandIn(h) => Some(wire::decode(&h.rows, &tasks::schema()).expect("rows decode")),
        _ => None,
    };
    messages.iter().filter_map(batch).collect()
}

fn failure(messages: &[Body]) -> (FailureKind, String) {
    match messages {
        [Body::Failure(f)] => (f.kind(), f.message.clone()),
        other => panic!("expected one failure, got {other:?}"),
    }
}

fn shown<T: ToString>(values: impl Iterator<Item = Option<T>>) -> Vec<String> {
    values.map(|value| value.map_or("null".to_owned(), |value| value.to_string())).collect()
}

/// A column as text, over all batches.
fn column(batches: &[RecordBatch], name: &str) -> Vec<String> {
    let text = |b: &RecordBatch| {
        let column = b.column_by_name(name).unwrap_or_else(|| panic!("no column {name}"));
        match column.data_type() {
            DataType::Int64 => shown(column.as_primitive::<Int64Type>().iter()),
            DataType::Float64 => shown(column.as_primitive::<Float64Type>().iter()),
            _ => shown(column.as_string::<i32>().iter()),
        }
    };
    batches.iter().flat_map(text).collect()
}

#[test]
fn rows_equal_those_of_the_engine_for_any_number_of_slots() {
    for slots in [1, 3] {
        let farm = Farm::start(LUBLIN, slots, TaskLimits::default(), Default::default());
        farm.lease(0, 2);
        farm.lease(2, 6);
        let (messages, _) = farm.collect(6);
        let batches = rows(&messages);
        let (ids, bsld) = (column(&batches, "task_id"), column(&batches, "bsld_mean"));
        let mut got: Vec<(String, String)> = ids.into_iter().zip(bsld).collect();
        let mut expected: Vec<(String, String)> = (0..6)
            .map(|index| {
                let spec = farm.sweep.task(index).expect("a task");
                let jobs = workload::build(&spec.sim, None).expect("a workload");
                let measured = simulate(&spec.sim, &jobs, &Limits::NONE, &mut Details::default()).expect("a summary");
                let summary = measured.jobs().expect("of jobs");
                (spec.task_id.to_string(), summary.bsld_mean.to_string())
            })
            .collect();
        got.sort();
        expected.sort();
        assert_eq!(got, expected);
        assert_eq!(column(&batches, "attempt"), ["3"; 6]);
        assert_eq!(column(&batches, "worker"), ["w"; 6]);
        let spent = farm.end();
        assert!(spent.engine_s > 0.0 && spent.parse_s > 0.0 && spent.store_s > 0.0, "{spent:?}");
    }
}

#[test]
fn the_order_within_a_hand_in_is_that_of_its_rows() {
    let farm = Farm::start(LUBLIN, 2, TaskLimits::default(), Default::default());
    farm.lease(0, 6);
    let (messages, _) = farm.collect(6);
    for message in &messages {
        let Body::HandIn(h) = message else { panic!("only rows are expected") };
        let indices = h.done.iter().flat_map(|d| d.indices.clone());
        let ids: Vec<String> = indices.map(|i| farm.sweep.task(i).expect("a task").task_id.to_string()).collect();
        assert_eq!(column(&rows(std::slice::from_ref(message)), "task_id"), ids);
        let spent = h.spent.expect("times are reported");
        assert!(spent.engine_s > 0.0, "{spent:?}");
    }
    farm.end();
}

/// The time before an experiment came to an idle worker is no time of the experiment.
#[test]
fn an_experiment_has_no_idle_time_from_before_it_came() {
    let farm = Farm::start(LUBLIN, 1, TaskLimits::default(), Default::default());
    let waited = Duration::from_secs(1);
    std::thread::sleep(waited);
    let key = ExperimentKey { name: "later".into(), generation: 1 };
    let (inputs, sweep) = (Inputs::of(&farm.sweep), farm.sweep.clone());
    farm.pool.add_experiment(Experiment {
        key,
        inputs,
        sweep,
        tables: Default::default(),
        limits: TaskLimits::default(),
    });
    farm.pool.change(|s| {
        s.lease(v1::Lease {
            id: Some(v1::LeaseId { epoch: 1, counter: 1 }),
            experiment: "later".into(),
            generation: 1,
            ranges: vec![v1::IndexRange { start: 0, end: 1 }],
            attempt: 1,
        });
    });
    let (messages, _) = farm.collect(1);
    let [Body::HandIn(h)] = &messages[..] else { panic!("one hand-in is expected") };
    let spent = h.spent.expect("times are reported");
    assert!(spent.idle_s < waited.as_secs_f64() && spent.engine_s > 0.0, "{spent:?}");
    assert!(farm.end().idle_s >= waited.as_secs_f64(), "the worker itself was idle");
}

#[test]
fn a_log_is_fetched_and_parsed_once() {
    let farm = Farm::start(SWF, 2, TaskLimits::default(), Default::default());
    farm.lease(0, 2);
    let (messages, _) = farm.collect(2);
    assert_eq!(column(&rows(&messages), "jobs_count"), ["2", "2"]);
    assert_eq!(farm.fetches.load(Ordering::SeqCst), 1);
    farm.end();
}

#[test]
fn a_missing_or_wrong_log_is_a_failure_of_the_workload() {
    let missing = || Err("no such log".to_owned());
    let wrong = || Ok(b"; another log".to_vec());
    for (answer, words) in
        [(Box::new(missing) as Box<dyn Fn() -> _ + Send + Sync>, "no such log"), (Box::new(wrong), "digest")]
    {
        let farm = Farm::with_logs(SWF, 1, TaskLimits::default(), Default::default(), answer);
        farm.lease(0, 1);
        let (kind, message) = failure(&farm.collect(1).0);
        assert_eq!(kind, FailureKind::Workload);
        assert!(message.contains("`tiny`") && message.contains(words), "{message}");
        farm.end();
    }
}

#[test]
fn a_panic_is_reported_and_the_slot_continues() {
    let panicked = AtomicBool::new(false);
    let answer = move || {
        assert!(panicked.swap(true, Ordering::SeqCst), "the first call goes wrong");
        Ok(TINY_LOG.to_vec())
    };
    let farm = Farm::with_logs(SWF, 1, TaskLimits::default(), Default::default(), Box::new(answer));
    farm.lease(0, 1);
    let (kind, message) = failure(&farm.collect(1).0);
    assert_eq!(kind, FailureKind::Panic);
    assert!(message.contains("the first call goes wrong") && message.contains("tests.rs"), "{message}");
    farm.lease(1, 2);
    assert_eq!(rows(&farm.collect(1).0).len(), 1);
    farm.end();
}

#[test]
fn deadline_and_event_limit_are_failures_of_their_own() {
    let deadline = TaskLimits { deadline: Some(Duration::ZERO), ..Default::default() };
    let events = TaskLimits { max_events: Some(5), ..Default::default() };
    for (limits, expected) in [(deadline, FailureKind::Deadline), (events, FailureKind::Events)] {
        let farm = Farm::start(LUBLIN, 1, limits, Default::default());
        farm.lease(0, 1);
        let (kind, message) = failure(&farm.collect(1).0);
        assert_eq!(kind, expected, "{message}");
        farm.end();
    }
}

/// A loaded machine, as a thread that gets no processor for three deadlines; and a task that never looks at its deadline.
#[test]
fn a_task_without_a_processor_is_not_given_up_and_one_that_ignores_its_deadline_is() {
    let deadline = Duration::from_millis(500);
    let over = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&over);
    let hook = TaskHook(Arc::new(move |_: &str, index| {
        if index == 0 {
            std::thread::sleep(3 * deadline);
        }
        while index == 1 && !flag.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
    }));
    let limits = TaskLimits { deadline: Some(deadline), ..Default::default() };
    let answer = Box::new(|| Ok(TINY_LOG.to_vec()));
    let farm = Farm::with_hook(SWF, 1, limits, Default::default(), answer, Some(hook));
    if super::runner::file_of_this_thread().is_none() {
        return println!("skipped: this system does not say how long a thread had a processor");
    }
    let (pool, ends) = (&farm.pool, AtomicBool::new(false));
    let watch = || {
        pool.give_up_overdue();
        (pool.wake)();
    };
    farm.lease(0, 1);
    let messages = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ends.load(Ordering::Relaxed) {
                watch();
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let collected = farm.collect(1).0;
        ends.store(true, Ordering::Relaxed);
        collected
    });
    assert_eq!((rows(&messages).len(), pool.session().lost_slots()), (1, 0), "{messages:?}");
    farm.lease(1, 2);
    while pool.session().lost_slots() == 0 {
        watch();
        std::thread::sleep(Duration::from_millis(5));
    }
    let (kind, message) = failure(&farm.collect(1).0);
    assert!(kind == FailureKind::Deadline && message.contains("twice its deadline"), "{message}");
    over.store(true, Ordering::Relaxed);
}

#[test]
fn the_memory_limit_covers_workload_and_simulation() {
    let farm = Farm::start(LUBLIN, 1, TaskLimits::default(), Default::default());
    let task = farm.sweep.task(0).expect("a task");
    let workload = workload::build(&task.sim, None).expect("a workload").memory_bytes();
    farm.end();
    assert!(workload > 2000 * 40, "{workload}");
    for (max_bytes, said) in [(workload - 1, "its workload of 2000 jobs takes"), (workload + 100, "take more than")] {
        let limits = TaskLimits { max_bytes: Some(max_bytes), ..TaskLimits::default() };
        let farm = Farm::start(LUBLIN, 1, limits, Default::default());
        farm.lease(0, 1);
        let (kind, message) = failure(&farm.collect(1).0);
        assert!(kind == FailureKind::Memory && message.contains(said), "{message}");
        assert!(message.contains(&max_bytes.to_string()), "{message}");
        farm.end();
    }
    let limits = TaskLimits { max_bytes: Some(workload + (1 << 20)), ..TaskLimits::default() };
    let farm = Farm::start(LUBLIN, 1, limits, Default::default());
    farm.lease(0, 1);
    assert_eq!(rows(&farm.collect(1).0).len(), 1);
    farm.end();
}

#[test]
fn a_spec_that_cannot_be_simulated_is_final() {
    let narrow = SWF.replace("procs = 4", "procs = 1");
    let farm = Farm::start(&narrow, 1, TaskLimits::default(), Default::default());
    farm.lease(0, 1);
    let (kind, message) = failure(&farm.collect(1).0);
    assert_eq!(kind, FailureKind::Spec);
    assert!(message.contains("procs"), "{message}");
    farm.end();
}

#[test]
fn excluded_indices_are_skipped() {
    let farm = Farm::start(LUBLIN, 1, TaskLimits::default(), Default::default());
    farm.lease(5, 1000);
    let (messages, _) = farm.collect(1);
    assert_eq!(rows(&messages).iter().map(RecordBatch::num_rows).sum::<usize>(), 1);
    farm.end();
}

#[test]
fn job_records_are_one_upload_a_hand_in() {
    let tables = powersweep_experiments::Tables { jobs: true, ..Default::default() };
    let farm = Farm::start(SWF, 1, TaskLimits::default(), tables);
    farm.lease(0, 2);
    let (messages, uploads) = farm.collect(2);
    let uploads_of = |m: &Body| if let Body::HandIn(h) = m { h.uploads.clone() } else { vec![] };
    let staged: Vec<v1::Upload> = messages.iter().flat_map(uploads_of).collect();
    assert_eq!(staged.iter().map(|s| s.rows).sum::<u64>(), 4, "two tasks of two jobs");
    for (staged, upload) in staged.iter().zip(&uploads) {
        let footer = part::read_footer(&upload.object.data).expect("a Parquet footer");
        assert_eq!(footer.part_id.as_bytes()[..], staged.part_id[..]);
        assert_eq!((footer.experiment.as_str(), footer.rows), ("test", staged.rows));
        assert_eq!((staged.table.as_str(), staged.bytes), ("jobs", upload.object.data.len() as u64));
    }
    assert!(!jobs::schema().fields().is_empty());
    farm.end();
}

#[test]
fn draining_stops_a_running_task_and_hands_it_back() {
    let long = LUBLIN.replace("synthetic_jobs_count = 2000", "synthetic_jobs_count = 3_000_000");
    let farm = Farm::start(&long, 1, TaskLimits::default(), Default::default());
    farm.lease(0, 1);
    while farm.pool.session().busy_slots() == 0 {
        std::thread::yield_now();
    }
    farm.pool.change(|s| s.drain(farm.pool.now(), Duration::ZERO, "test"));
    farm.woken.recv().expect("the slot reports that it stopped");
    let Some(Body::HandBack(h)) = farm.pool.session().next_message() else { panic!("the task is handed back") };
    assert_eq!(h.ranges, [v1::IndexRange { start: 0, end: 1 }]);
    farm.end();
}
