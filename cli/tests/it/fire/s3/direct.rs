//! Workers that send their uploads to the S3 store themselves: sound ones, and ones that the store refuses or loses.

use std::io::{Read, Write};
use std::net::TcpStream;

use bytes::Bytes;
use powersweep_coordinator::store::{Location, Objects, StoreError};
use powersweep_results::Table;
use uuid::Uuid;

use super::{CHANCES, DATA, Store, assert_dataset, environment, long, scene};
use crate::fire::farm::{Farm, PATIENCE, port};
use crate::fire::proxy::Counts;
use crate::fire::relay::Relay;
use crate::operator::get;

const NAME: &str = "direct";

/// Logs every message that a library can log.
const EVERYTHING: &str = "trace";

/// Bytes of uploads through the coordinator, and of direct ones, by the coordinator's metrics.
fn uploads(address: &str) -> (u64, u64) {
    let answer = get(address, "localhost");
    let value = |sample: &str| {
        let line = answer.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
        line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{sample} in\n{answer}"))
    };
    let through = value("powersweep_received_bytes_total{kind=\"uploads\"}");
    (through, value("powersweep_direct_upload_bytes_total"))
}

/// What a sweep moved.
struct Moved {
    /// Bytes of uploads through the coordinator, and of direct ones.
    uploads: (u64, u64),
    /// Bytes from workers to the coordinator, and back.
    workers: (u64, u64),
    store: Counts,
}

impl Moved {
    fn print(&self, how: &str) {
        let Moved { uploads, workers, store } = self;
        println!(
            "{how}: uploads through the coordinator {} B, direct {} B; workers to coordinator {} B, back {} B; coordinator \
             to store {} B, back {} B in {} requests; workers to store {} B in {} requests",
            uploads.0,
            uploads.1,
            workers.0,
            workers.1,
            store.coordinator.sent,
            store.coordinator.received,
            store.coordinator.requests,
            store.workers.sent,
            store.workers.requests,
        );
    }

    /// Bytes in and out of the coordinator.
    fn coordinator(&self) -> (u64, u64) {
        let (from_workers, to_workers) = self.workers;
        (from_workers + self.store.coordinator.received, to_workers + self.store.coordinator.sent)
    }
}

/// Runs a sweep with the table `jobs` to its end; `None` without a store.
fn moved(options: &[&str], during: impl FnOnce(&mut Farm)) -> Option<Moved> {
    let (store, proxy, mut farm) = scene()?;
    let (tasks, jobs) = if long() { (2000, 2000) } else { (160, 2000) };
    let relay = Relay::to(farm.port);
    farm.workers_port = relay.port;
    let metrics = format!("127.0.0.1:{}", port());
    proxy.set_distrusts(options.contains(&"--distrusts"));
    let options: Vec<_> = options.iter().copied().filter(|option| *option != "--distrusts").collect();
    farm.start_with(&[&options[..], &["--metrics", &metrics]].concat());
    farm.submit_with(NAME, tasks, jobs, "tables = [\"jobs\"]");
    during(&mut farm);
    farm.wait_finished();
    let uploads = uploads(&metrics);
    let workers = relay.bytes();
    let coordinator = farm.coordinator.as_ref().map(|coordinator| coordinator.log().to_owned()).expect("it runs");
    for log in farm.logs().iter().chain([&coordinator]) {
        let text = std::fs::read_to_string(log).expect("it is kept");
        assert!(!text.contains("X-Amz-Signature"), "a signature in {}", log.display());
    }
    farm.stop();
    assert_dataset(&store, &farm, NAME);
    Some(Moved { uploads, workers, store: proxy.counts() })
}

#[test_with::env(POWERSWEEP_PYTHON)]
#[test]
fn uploads_do_not_pass_through_the_coordinator() {
    let two_workers = |farm: &mut Farm| (0..2).for_each(|_| farm.add_worker(1));
    let Some(through) = moved(&[], two_workers) else { return };
    through.print("through the coordinator");
    assert_eq!((through.uploads.1, through.store.workers.requests), (0, 0));
    let direct = moved(&["--direct-uploads"], two_workers).expect("the store was there");
    direct.print("direct");
    let ((through_in, through_out), (direct_in, direct_out)) = (through.coordinator(), direct.coordinator());
    println!(
        "in and out of the coordinator: {through_in} and {through_out} B, with direct uploads {direct_in} and {direct_out} B"
    );
    assert_eq!(direct.uploads.0, 0, "the coordinator received an object");
    assert!(direct.uploads.1 > 0 && direct.store.workers.sent > direct.uploads.1);
    assert!(direct.workers.0 < through.workers.0 / 2, "{} of {} B", direct.workers.0, through.workers.0);
    assert!(direct_in < through_in * 3 / 4, "the coordinator reads whole objects to check them");
    assert!(direct_out < through_out * 3 / 4, "the coordinator sends objects to the store");
}

#[test_with::env(POWERSWEEP_PYTHON)]
#[test]
fn workers_whose_addresses_are_refused_use_the_coordinator() {
    let refused = moved(&["--direct-uploads", "--distrusts"], |farm| {
        // The second one starts when the first has failed.
        farm.add_worker_that_logs(1, EVERYTHING);
        farm.wait_done(8, PATIENCE);
        farm.add_worker_that_logs(1, EVERYTHING);
    });
    let Some(refused) = refused else { return };
    refused.print("refused");
    assert!(refused.uploads.0 > 0);
    assert_eq!(refused.uploads.1, 0);
    // Two uploads of a worker may be under way at its first failure.
    assert!((1..=4).contains(&refused.store.workers.requests), "{:?}", refused.store.workers);
}

#[test_with::env(POWERSWEEP_PYTHON)]
#[test]
fn direct_uploads_to_a_store_that_fails() {
    let Some((store, proxy, mut farm)) = scene() else { return };
    let (tasks, rounds) = if long() { (3000_u32, 6) } else { (400, 2) };
    farm.start_with(&["--direct-uploads"]);
    farm.submit_with(NAME, tasks, 700, "tables = [\"jobs\"]");
    proxy.set_active(true);
    (0..3).for_each(|_| farm.add_worker(1));
    for round in 0..rounds {
        farm.wait_done(u64::from(tasks) * (round + 1) / (2 * rounds), PATIENCE);
        if round % 2 == 0 {
            farm.kill_coordinator();
            farm.start_despite_storage(&["--take-over", "--direct-uploads"]);
        } else {
            farm.kill_worker(0);
            farm.add_worker(1);
        }
    }
    farm.wait_finished();
    farm.stop();
    proxy.set_active(false);
    let counts = proxy.counts();
    let faults: u64 = counts.faults.values().sum();
    println!(
        "direct uploads of {} tasks: {faults} faults of {} requests, {} of them of workers; kills -9 of coordinator and workers",
        farm.tasks(),
        counts.requests,
        counts.workers.requests
    );
    assert!(faults > 0 && counts.workers.requests > 0 && CHANCES.len() >= counts.faults.len(), "{counts:?}");
    assert_dataset(&store, &farm, NAME);
}

/// Sends bytes to an address, without credentials; returns the status.
fn put(url: &str, bytes: &[u8]) -> String {
    let (host, path) = url.strip_prefix("http://").and_then(|rest| rest.split_once('/')).expect("an address");
    let mut stream = TcpStream::connect(host).expect("it listens");
    let length = bytes.len();
    let head = format!("PUT /{path} HTTP/1.1\r\nhost: {host}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("it reads");
    stream.write_all(bytes).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer.split(' ').nth(1).unwrap_or_default().to_owned()
}

#[test_with::env(POWERSWEEP_PYTHON)]
#[test]
fn the_store_keeps_what_was_taken_in() {
    let Some(store) = Store::start() else { return };
    let _ = rustls::crypto::ring::default_provider().install_default();
    let options =
        environment(&format!("http://127.0.0.1:{}", store.port)).map(|(name, value)| (name.to_owned(), value));
    let location = Location::parse_with(DATA, options).expect("an address");
    let objects = Objects::new(location.object_store().expect("a store"), None).with_signer(location.signer());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    runtime.block_on(async {
        objects.probe_inbox().await.expect("it signs, and copies without replacing");
        let [id, other] = [(); 2].map(|()| Uuid::now_v7());
        let address = objects.inbox_address("e", Table::Jobs, id).await.expect("signed").url;
        assert_eq!(put(&address, b"first"), "200");
        let first = Bytes::from_static(b"first");
        assert_eq!(objects.take_in("e", Table::Jobs, id, 5).await.expect("there"), first);
        assert_eq!(put(&address, b"other"), "200", "the address is valid for minutes");
        assert_eq!(objects.take_in("e", Table::Jobs, id, 5).await.expect("there"), first);
        assert_eq!(put(&address, b"longer"), "200");
        let taken = objects.take_in("e", Table::Jobs, id, 6).await.expect_err("another object");
        assert!(matches!(taken, StoreError::PartTaken { .. }), "{taken}");
        let missing = objects.take_in("e", Table::Jobs, other, 5).await.expect_err("no object");
        assert!(matches!(missing, StoreError::Missing { .. }), "{missing}");
        assert_eq!(objects.staged("e", Table::Jobs, id).await.expect("there"), first);
        objects.discard_inbox("e", Table::Jobs, id).await.expect("deleted");
        assert_eq!(objects.take_in("e", Table::Jobs, id, 5).await.expect("its answer was lost"), first);
    });
}
