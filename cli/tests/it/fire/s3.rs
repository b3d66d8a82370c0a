//! An S3 store with errors, time-outs, slow answers, unknown outcomes and a standstill; the coordinator or workers are
//! killed meanwhile. Each conditionally created object is created once.

mod direct;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use futures::TryStreamExt;
use object_store::ObjectStoreExt;
use powersweep_coordinator::store::Location;

use super::farm::{Farm, PATIENCE, port};
use super::owners::{Older, under_take_overs};
use super::proxy::{Fault, Proxy};
use super::{long, step};
use crate::random::Random;
use crate::sandbox::{Running, Sandbox};

const NAME: &str = "s3";
const DATA: &str = "s3://farm/data";

/// Number of each fault in 1,000 requests.
const CHANCES: [(Fault, u64); 6] = [
    (Fault::Refused, 20),
    (Fault::RefusedAfter, 15),
    (Fault::Slow, 20),
    (Fault::CutBefore, 15),
    (Fault::CutAfter, 20),
    (Fault::Unanswered, 3),
];

/// An S3 store in memory (moto); the proxy ensures that a conditional write has one winner.
struct Store {
    port: u16,
    server: Running,
    /// The folder of the server's log; dropped after the server.
    _sandbox: Sandbox,
}

impl Store {
    /// `None` where moto cannot run; prints the reason.
    fn start() -> Option<Store> {
        if !cfg!(feature = "cloud") {
            println!("skipped: the binary was built without --features cloud");
            return None;
        }
        let python = std::env::var_os("POWERSWEEP_PYTHON").expect("it was set for the compiler");
        let found = Command::new(&python).args(["-c", "import moto.server"]).output();
        if !found.is_ok_and(|output| output.status.success()) {
            println!("skipped: {} has no moto.server", python.display());
            return None;
        }
        let port = port();
        let sandbox = Sandbox::new();
        let mut command = sandbox.command(&python.to_string_lossy());
        command.args(["-m", "moto.server", "-H", "127.0.0.1", "-p", &port.to_string()]);
        let store = Store { port, server: sandbox.spawn(command), _sandbox: sandbox };
        let begun = Instant::now();
        while !store.makes_bucket() {
            assert!(begun.elapsed() < PATIENCE, "moto does not answer: {}", store.server.stderr());
            std::thread::sleep(Duration::from_millis(50));
        }
        Some(store)
    }

    fn makes_bucket(&self) -> bool {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) else { return false };
        let request = "PUT /farm HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        let mut answer = String::new();
        stream.write_all(request.as_bytes()).is_ok()
            && stream.read_to_string(&mut answer).is_ok()
            && answer.starts_with("HTTP/1.1 200")
    }

    /// Copies an experiment of the dataset into a folder.
    fn download(&self, into: &Path, experiment: &str) -> PathBuf {
        // Like the program's `main`; another test may have done it in this process.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let endpoint = format!("http://127.0.0.1:{}", self.port);
        let options = environment(&endpoint).map(|(name, value)| (name.to_owned(), value));
        let location = Location::parse_with(DATA, options).expect("an address");
        let store = location.object_store().expect("a store");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
        runtime.block_on(async {
            let prefix = object_store::path::Path::from(experiment);
            let objects: Vec<_> = store.list(Some(&prefix)).try_collect().await.expect("it lists");
            for object in objects {
                let bytes = store.get(&object.location).await.expect("it is there").bytes().await.expect("whole");
                let path = into.join(object.location.as_ref());
                std::fs::create_dir_all(path.parent().expect("it is in a folder")).expect("it can be made");
                std::fs::write(path, bytes).expect("it can be written");
            }
        });
        into.to_owned()
    }
}

/// The coordinator's variables for the store.
fn environment(endpoint: &str) -> [(&'static str, String); 6] {
    [
        ("AWS_ACCESS_KEY_ID", "a".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "s".to_owned()),
        ("AWS_REGION", "us-east-1".to_owned()),
        ("AWS_ENDPOINT", endpoint.to_owned()),
        ("AWS_ALLOW_HTTP", "true".to_owned()),
        // The time after which an unanswered request is repeated; 30 s by default.
        ("AWS_TIMEOUT", "4 seconds".to_owned()),
    ]
}

/// A farm on a store behind a proxy.
fn scene() -> Option<(Store, Proxy, Farm)> {
    let store = Store::start()?;
    let proxy = Proxy::before(store.port, &CHANCES);
    let variables = environment(&format!("http://127.0.0.1:{}", proxy.port));
    let variables: Vec<(&str, &str)> = variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let farm = Farm::on(DATA, &variables);
    Some((store, proxy, farm))
}

fn assert_dataset(store: &Store, farm: &Farm, name: &str) {
    farm.assert_undisturbed_in(&store.download(&farm.sandbox.path("downloaded"), name));
}

/// The store does not answer for a while.
fn stall(farm: &mut Farm, proxy: &Proxy) {
    proxy.set_stalled(true);
    let paused = farm.wait_status(Duration::from_secs(60), |status| status.storage_stalled);
    assert!(paused, "the status does not say that storage stalls");
    std::thread::sleep(Duration::from_secs(2));
    proxy.set_stalled(false);
    assert!(
        farm.wait_status(PATIENCE, |status| !status.storage_stalled),
        "the fault is over, but storage is still stalled"
    );
}

#[test_with::env(POWERSWEEP_PYTHON)]
#[test]
fn a_store_that_fails_and_a_coordinator_that_is_killed() {
    let Some((store, proxy, mut farm)) = scene() else { return };
    let (tasks, rounds) = if long() { (8000_u32, 16) } else { (600, 2) };
    let mut random = Random::new();
    farm.start();
    farm.submit(NAME, tasks, if long() { 8000 } else { 3000 });
    (0..2).for_each(|_| farm.add_worker(1));
    let (mut kills, mut stalls) = (0, 0);
    for round in 0..rounds {
        proxy.set_active(true);
        farm.wait_more(1 + step(&mut random, tasks, rounds));
        if round % 4 == 1 {
            stall(&mut farm, &proxy);
            stalls += 1;
            continue;
        }
        farm.kill_coordinator();
        kills += 1;
        // The killed owner's record counts as live for 20 s: one start waits, the others override it.
        let more: &[&str] = if round == 0 && long() { &[] } else { &["--take-over"] };
        farm.start_despite_storage(more);
    }
    farm.wait_finished();
    farm.stop();
    proxy.set_active(false);
    let counts = proxy.counts();
    let faults: u64 = counts.faults.values().sum();
    let starts = farm.journal();
    println!(
        "{faults} faults of {} requests {:?}, {stalls} standstills, {kills} kills -9 of the coordinator: {} tasks, {} \
         starts, {} after an acknowledgement",
        counts.requests, counts.faults, starts.tasks, starts.started, starts.again
    );
    let twice = counts.created.iter().filter(|(_, times)| **times > 1).collect::<Vec<_>>();
    println!(
        "{} objects created under a condition, {} times with an outcome that the coordinator could not know, {} refused: \
         created twice {}",
        counts.created.len(),
        counts.created_unknown,
        counts.refused_creations,
        twice.len()
    );
    assert!(faults > 0 && counts.created.len() > 10, "{counts:?}");
    assert!(twice.is_empty(), "{twice:?}");
    assert_eq!(starts.again_after_kill, 0, "a coordinator lost acknowledged rows");
    assert_dataset(&store, &farm, NAME);
}

/// The store fails from the first task to the last part: also the uploads of `jobs`, which the workers repeat.
#[test_with::env(POWERSWEEP_PYTHON)]
#[test]
fn four_workers_on_a_store_that_never_stops_failing() {
    let Some((store, proxy, mut farm)) = scene() else { return };
    let (tasks, jobs, rounds) = if long() { (3000_u32, 700, 8) } else { (400, 1500, 2) };
    let mut stalls = 0;
    farm.start();
    farm.submit_with(NAME, tasks, jobs, "tables = [\"jobs\"]");
    proxy.set_active(true);
    (0..4).for_each(|_| farm.add_worker(1));
    for round in 0..rounds {
        // The sweep does not grow: each task has a thousand rows of `jobs`.
        let done = farm.wait_done(u64::from(tasks) * (round + 1) / (2 * rounds), PATIENCE);
        if round % 2 == 0 && done < tasks.into() {
            stall(&mut farm, &proxy);
            stalls += 1;
        } else if round % 2 == 1 {
            farm.kill_worker(0);
            farm.add_worker(1);
        }
    }
    farm.wait_finished();
    farm.stop();
    proxy.set_active(false);
    let counts = proxy.counts();
    let faults: u64 = counts.faults.values().sum();
    let kinds = CHANCES.iter().filter(|(fault, _)| counts.faults.contains_key(fault)).count();
    let twice = counts.created.values().filter(|times| **times > 1).count();
    println!(
        "4 workers, {} tasks with `jobs`: {faults} faults of {} requests {:?}, {stalls} standstills, {} workers killed; {} \
         objects created under a condition, {twice} of them twice",
        farm.tasks(),
        counts.requests,
        counts.faults,
        rounds / 2,
        counts.created.len()
    );
    // A short run is over before every fault has happened, and the rarest may not happen in a long one.
    assert!(kinds >= if long() { CHANCES.len() - 1 } else { 1 }, "{counts:?}");
    assert_eq!(twice, 0, "{counts:?}");
    assert_dataset(&store, &farm, NAME);
}

#[test_with::env(POWERSWEEP_PYTHON)]
#[test]
fn one_bucket_has_one_coordinator() {
    let Some((store, _proxy, mut farm)) = scene() else { return };
    let (tasks, rounds) = match long() {
        true => (5000, [Older::Runs, Older::Suspended].repeat(2)),
        false => (800, vec![Older::Suspended]),
    };
    under_take_overs(&mut farm, tasks, 12_000, &rounds);
    assert_dataset(&store, &farm, super::owners::NAME);
}
