//! Tasks that ignore their deadline or never end, and a network that fails for longer than a lease lasts.

use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use powersweep_farmtest::sweeps::four_policies;
use powersweep_proto::client::Address;
use powersweep_proto::v1;
use powersweep_worker::{TaskHook, WorkerOptions};

use crate::farm::{Coordinator, Data, SHORT_ABSENCE, Worker};
use crate::sweeps::expected;
use powersweep_farmtest::dataset::{assert_same, distinct_ids, sorted, tasks};

/// Far longer than any step here.
const PATIENCE: Duration = Duration::from_secs(120);

fn options(coordinator: Address, name: &str, hook: impl Fn(u64) + Send + Sync + 'static) -> WorkerOptions {
    let hook = TaskHook(Arc::new(move |_: &str, index| hook(index)));
    WorkerOptions { before_task: Some(hook), ..WorkerOptions::new(coordinator, 1, name) }
}

#[track_caller]
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_task_that_ignores_its_deadline_ends_its_worker_and_runs_elsewhere() {
    let data = Data::new();
    let manifest = four_policies("deaf", 40, 40, "limits = { task_deadline_s = 0.2 }");
    let coordinator = Coordinator::start(&data);
    coordinator.submit(&manifest);
    let over = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&over);
    let deaf = move |index| {
        while index == 5 && !flag.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    let worker = Worker::start_with(options(coordinator.address(), "deaf", deaf));
    let report = worker.ended();
    assert_eq!((report.stuck_tasks, report.unacknowledged), (1, 0), "{report:?}");
    assert!(report.reason.contains("ignores its deadline"), "{report:?}");
    let status = coordinator.status("deaf");
    let failure = &status.failures[0];
    assert_eq!((failure.index, failure.kind(), failure.r#final), (5, v1::FailureKind::Deadline, false), "{failure:?}");
    let second = Worker::start(coordinator.address(), "second");
    coordinator.wait_done("deaf", 40);
    over.store(true, Ordering::Relaxed);
    second.stop();
    coordinator.stop();
    assert_same(&tasks(data.path(), "deaf"), &sorted(&expected(&manifest).0, &["task_id"]));
}

#[test]
fn a_straggler_is_run_by_an_idle_worker_too_and_the_first_row_counts() {
    let data = Data::new();
    let manifest = four_policies("slow", 16, 40, "");
    let coordinator = Coordinator::start(&data);
    coordinator.submit(&manifest);
    let over = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&over);
    let slow = move |index| {
        while index == 0 && !flag.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    let first = Worker::start_with(options(coordinator.address(), "slow", slow));
    until("the slow worker has task 0", || coordinator.status("slow").running > 0);
    let second = Worker::start(coordinator.address(), "second");
    coordinator.wait_done("slow", 16);
    over.store(true, Ordering::Relaxed);
    assert_eq!(second.stop().tasks_acknowledged, 16);
    let late = first.stop();
    assert_eq!((late.failures, late.unacknowledged), (0, 0), "{late:?}");
    coordinator.stop();
    let written = tasks(data.path(), "slow");
    assert_eq!(distinct_ids(&written).len(), 16);
    assert_same(&written, &sorted(&expected(&manifest).0, &["task_id"]));
}

/// A network between worker and coordinator that can be cut.
struct Network {
    port: u16,
    cut: Arc<AtomicBool>,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Network {
    fn to(port: u16) -> Network {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let network = Network {
            port: listener.local_addr().expect("it is bound").port(),
            cut: Arc::default(),
            open: Arc::default(),
        };
        let (cut, open) = (Arc::clone(&network.cut), Arc::clone(&network.open));
        // Ends with the process.
        std::thread::spawn(move || {
            for near in listener.incoming().flatten() {
                if cut.load(Ordering::SeqCst) {
                    continue;
                }
                let Ok(far) = TcpStream::connect(("127.0.0.1", port)) else { continue };
                for (mut from, mut to) in [(&near, &far), (&far, &near)].map(|(a, b)| (clone(a), clone(b))) {
                    std::thread::spawn(move || std::io::copy(&mut from, &mut to));
                }
                open.lock().expect("nobody panics").extend([near, far]);
            }
        });
        network
    }

    fn cut(&self) {
        self.cut.store(true, Ordering::SeqCst);
        for stream in self.open.lock().expect("nobody panics").drain(..) {
            stream.shutdown(Shutdown::Both).ok();
        }
    }

    fn heal(&self) {
        self.cut.store(false, Ordering::SeqCst);
    }
}

fn clone(stream: &TcpStream) -> TcpStream {
    stream.try_clone().expect("a stream can be shared")
}

#[test]
fn tasks_finished_during_a_network_outage_are_neither_lost_nor_run_again() {
    let data = Data::new();
    let manifest = four_policies("away", 400, 400, "");
    let coordinator = Coordinator::start_with(&data, SHORT_ABSENCE);
    let network = Network::to(coordinator.port());
    let begun = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&begun);
    let counted = move |_| {
        count.fetch_add(1, Ordering::SeqCst);
    };
    let urls = vec![format!("127.0.0.1:{}", network.port)];
    let worker = Worker::start_with(options(Address { urls, ..coordinator.address() }, "w", counted));
    coordinator.submit(&manifest);
    for done in [20, 150] {
        coordinator.wait_done("away", done);
        network.cut();
        until("its leases end", || coordinator.workers() == 0);
        // It runs its leased tasks.
        let mut before = u64::MAX;
        until("it has no task left", || {
            std::thread::sleep(Duration::from_millis(300));
            let now = begun.load(Ordering::SeqCst);
            std::mem::replace(&mut before, now) == now
        });
        network.heal();
    }
    coordinator.wait_done("away", 400);
    let report = worker.stop();
    assert_eq!((report.tasks_acknowledged, report.unacknowledged, report.failures), (400, 0, 0), "{report:?}");
    assert_eq!(begun.load(Ordering::SeqCst), 400, "no task ran twice");
    coordinator.stop();
    assert_same(&tasks(data.path(), "away"), &sorted(&expected(&manifest).0, &["task_id"]));
}
