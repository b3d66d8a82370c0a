//! Crowds of callers that keep connections, streams and uploads open: the farm works on, in bounded memory.

use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use powersweep_proto::access::{Role, Source};
use powersweep_proto::client::{Address, Client, Target};
use powersweep_proto::v1;
use powersweep_proto::v1::farm_message::Body as FromFarm;
use powersweep_proto::v1::worker_message::Body as ToFarm;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use uuid::Uuid;

use super::long;
use crate::farm::{terminate, worker};
use crate::sandbox::{Running, Sandbox};
use crate::sweeps::{JOBS, TINY_LOG, synthetic};

/// Calls of one connection that a coordinator takes at a time.
const STREAMS: usize = 256;
/// Greatest memory of a coordinator, whatever the crowd does (MiB).
const MEMORY_MAX_MIB: u64 = 512;
/// Bytes of one upload, and of one message of it.
const UPLOAD_BYTES: usize = 32 << 20;
const PIECE_BYTES: usize = 64 << 10;

/// Whether this process, and those that it starts, may open this number of files.
fn may_open(files: u64) -> bool {
    let limit = getrlimit(Resource::Nofile);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    let enough = raised.is_ok() && limit.maximum.is_none_or(|most| most >= files);
    if !enough {
        println!("skipped: {files} open files are needed, the limit is {:?}", limit.maximum);
    }
    enough
}

/// Greatest resident memory of a process so far (MiB).
fn peak_mib(running: &Running) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", running.id())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux has it");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") >> 10
}

fn open_files(running: &Running) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", running.id())).expect("it runs").count()
}

/// A connection of its own.
async fn connect(sandbox: &Sandbox) -> Client {
    let file = sandbox.path("results/data/.powersweep/access").join(Role::Worker.file_name());
    let address = Address::of(Source::File(file), Role::Worker);
    Target::new(&address).expect("an access file").connect().await.expect("it listens")
}

#[test]
fn silent() {
    let (connections, streams) = if long() { (10_000, 10_000) } else { (500, 1_000) };
    if !may_open(connections as u64 + 1_000) {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("sweep.toml", synthetic("sweep", 50));
    let (mut served, url) = sandbox.serve(&[]);
    let address = url.trim_start_matches("https://").to_owned();
    let open = move |_| TcpStream::connect(&address).expect("the listener accepts");
    let silent: Vec<TcpStream> = (0..connections).map(open).collect();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime starts");
    let held = runtime.block_on(async {
        let mut held = Vec::new();
        for first in (0..streams).step_by(STREAMS - 6) {
            let mut client = connect(&sandbox).await;
            for _ in first..(first + STREAMS - 6).min(streams) {
                let never = tokio_stream::pending::<v1::WorkerMessage>();
                held.push(client.work(never).await.expect("a worker's token"));
            }
        }
        held
    });
    // A worker, a user and a whole sweep come through.
    let begun = Instant::now();
    let worker = worker(&sandbox, "w", "", &[]);
    sandbox.run(&["submit", "sweep.toml", "--wait"]).exits(0);
    let took = begun.elapsed();
    // Each stream is ended for its silence.
    let ended = runtime.block_on(async {
        let mut ended = 0;
        for stream in held {
            ended += usize::from(!matches!(stream.into_inner().message().await, Ok(Some(_))));
        }
        ended
    });
    assert_eq!(ended, streams);
    let begun = Instant::now();
    while open_files(&served) > 200 {
        assert!(begun.elapsed() < Duration::from_secs(60), "{} files are open", open_files(&served));
        std::thread::sleep(Duration::from_millis(100));
    }
    let peak = peak_mib(&served);
    println!(
        "{connections} silent connections, {streams} sessions without a greeting: a sweep took {took:.1?}, the coordinator \
         {peak} MiB"
    );
    assert!(peak < MEMORY_MAX_MIB, "{peak} MiB");
    assert!(served.runs());
    drop(silent);
    terminate(worker);
    terminate(served);
}

/// A session by hand, until its first lease.
async fn first_lease(client: &mut Client) -> (v1::Lease, impl Sized) {
    let hello = v1::Hello {
        worker: "crowd".to_owned(),
        worker_id: Uuid::new_v4().as_bytes().to_vec().into(),
        slots: 1,
        versions: Some(powersweep_worker::versions()),
        ..Default::default()
    };
    let (outbound, messages) = mpsc::channel(4);
    outbound.send(v1::WorkerMessage { body: Some(ToFarm::Hello(hello)) }).await.expect("open");
    let mut inbound = client.work(ReceiverStream::new(messages)).await.expect("admitted").into_inner();
    loop {
        let message = inbound.message().await.expect("no error").expect("not the end");
        if let Some(FromFarm::Lease(lease)) = message.body {
            return (lease, (outbound, inbound));
        }
    }
}

/// Workers that send 32 MiB each at the same time, and keep their streams open.
#[test]
fn uploads() {
    let workers: u64 = if long() { 1_000 } else { 100 };
    if !may_open(workers + 1_000) {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("jobs.toml", JOBS);
    sandbox.write("logs/tiny.swf", TINY_LOG);
    let (mut served, _) = sandbox.serve(&[]);
    sandbox.run(&["submit", "jobs.toml", "--traces", "logs"]).exits(0);
    let before = peak_mib(&served);
    let sent = Arc::new(AtomicU64::new(0));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime starts");
    runtime.block_on(async {
        let mut client = connect(&sandbox).await;
        let (lease, _session) = first_lease(&mut client).await;
        let mut uploads = Vec::new();
        for _ in 0..workers {
            let (mut client, sent) = (connect(&sandbox).await, Arc::clone(&sent));
            let part_id = Uuid::now_v7().as_bytes().to_vec().into();
            let first = v1::UploadPartRequest {
                experiment: lease.experiment.clone(),
                table: "jobs".to_owned(),
                part_id,
                lease: lease.id,
                ..Default::default()
            };
            let piece = v1::UploadPartRequest { data: vec![7; PIECE_BYTES].into(), ..Default::default() };
            let pieces = std::iter::once(first).chain(std::iter::repeat_n(piece, UPLOAD_BYTES / PIECE_BYTES));
            let counted = tokio_stream::iter(pieces).map(move |piece| {
                sent.fetch_add(piece.data.len() as u64, Ordering::Relaxed);
                piece
            });
            let stream = counted.chain(tokio_stream::pending());
            uploads.push(tokio::spawn(async move { client.upload_part(stream).await.map(drop) }));
        }
        let mut last = u64::MAX;
        while last != sent.load(Ordering::Relaxed) {
            last = sent.load(Ordering::Relaxed);
            tokio::time::sleep(Duration::from_secs(2)).await;
        }
        let status = sandbox.run(&["status", "--json"]).exits(0).json();
        assert_eq!(status["experiments"][0]["done"], 0, "{status}");
        uploads.iter().for_each(|upload| upload.abort());
    });
    // The crowd has left: a worker does the sweep with its uploads.
    let worker = worker(&sandbox, "w", "", &[]);
    sandbox.run(&["submit", "jobs.toml", "--traces", "logs", "--wait"]).exits(0);
    let rows = sandbox.run(&["results", "jobs", "--table", "jobs", "--format", "csv"]).exits(0);
    assert_eq!(rows.stdout.lines().count(), 1 + 4 * 3, "{rows}");
    let (peak, sent) = (peak_mib(&served), sent.load(Ordering::Relaxed) >> 20);
    println!(
        "{workers} workers with {sent} MiB of uploads on the way: the coordinator took {peak} MiB, {before} before"
    );
    assert!(peak < MEMORY_MAX_MIB, "{peak} MiB");
    assert!(served.runs());
    terminate(worker);
    terminate(served);
}
