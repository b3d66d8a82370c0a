//! Mutated messages of every call: the coordinator neither hangs, nor panics, nor grows.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::{Buf, BufMut, Bytes};
use powersweep_proto::access::Role;
use powersweep_proto::v1;
use powersweep_proto::v1::control_request::Action;
use powersweep_proto::v1::worker_message::Body;
use prost::Message;
use tonic::Status;
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::transport::{Channel, Endpoint};
use uuid::Uuid;

use crate::direct::direct_farm;
use crate::hostile::{Farm, hello};

/// Messages by default; POWERSWEEP_FUZZ_CASES sets another number.
const CASES: u64 = 20_000;
/// Messages of one call that takes a stream.
const STREAMED: u64 = 20;
/// Longest time without an answer to a status request. Builds for tests are slow, and share the machine.
const HANG: Duration = Duration::from_secs(if cfg!(debug_assertions) { 5 } else { 1 });
/// Far beyond what one call takes.
const PATIENCE: Duration = Duration::from_secs(60);
/// Bytes by which the process may grow, with the client, the state and all logs of accepted messages.
const GROWTH_MAX: u64 = 512 << 20;

/// Messages as bytes, which need not be messages at all.
#[derive(Default)]
struct Raw;

impl Codec for Raw {
    type Encode = Vec<u8>;
    type Decode = Bytes;
    type Encoder = Raw;
    type Decoder = Raw;

    fn encoder(&mut self) -> Raw {
        Raw
    }

    fn decoder(&mut self) -> Raw {
        Raw
    }
}

impl Encoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, item: Vec<u8>, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
        out.put_slice(&item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, bytes: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(bytes.copy_to_bytes(bytes.remaining())))
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    /// The message with some changes, or none.
    fn mutated(&mut self, mut message: Vec<u8>) -> Vec<u8> {
        for _ in 0..self.below(5) {
            let at = self.below(message.len());
            match self.below(6) {
                _ if message.is_empty() => message.push(self.next() as u8),
                0 => message[at] ^= 1 << self.below(8),
                1 => message[at] = self.next() as u8,
                2 => message.truncate(at),
                // The greatest number.
                3 => drop(message.splice(at..=at, [vec![0xff; 9], vec![1]].concat())),
                4 => {
                    let piece = message[at..].to_vec();
                    message.extend((0..1 + self.below(40)).flat_map(|_| piece.clone()).take(200_000));
                }
                _ => drop(message.splice(at..at, (0..self.below(20)).map(|_| 0x80))),
            }
        }
        message
    }
}

fn range(start: u64, end: u64) -> v1::IndexRange {
    v1::IndexRange { start, end }
}

/// Messages of workers.
fn of_worker(random: &mut Random) -> Vec<u8> {
    let lease = Some(v1::LeaseId { epoch: 1, counter: 1 + random.below(300) as u64 });
    let experiment = ["e", "f", "gone"][random.below(3)].to_owned();
    let ranges = vec![range(0, 1 + random.below(9) as u64), range(20, u64::MAX)];
    let indices = (0..random.below(40) as u64).collect();
    let upload = v1::Upload { table: "jobs".into(), part_id: vec![7; 16].into(), rows: 1, bytes: 9 };
    let state = v1::LeaseState { lease, experiment: experiment.clone(), generation: 1, open: ranges.clone() };
    let body = match random.below(7) {
        0 => Body::Heartbeat(v1::Heartbeat {
            busy_slots: 1,
            queued_tasks: 2,
            spent: Some(v1::TimeSpent::default()),
            processors: 1.5,
            memory_bytes: 1 << 20,
        }),
        1 => Body::Failure(v1::TaskFailure {
            lease,
            experiment,
            index: 3,
            kind: random.below(9) as i32,
            message: "failed".into(),
            id: 4,
            generation: 1,
        }),
        2 => Body::HandBack(v1::HandBack { lease, experiment, ranges, generation: 1, asked: random.below(2) == 0 }),
        3 => Body::Goodbye(v1::Goodbye { reason: "tired".into() }),
        4 => Body::Hello(v1::Hello { held: vec![state; 1 + random.below(3)], ..hello("again") }),
        _ => Body::HandIn(v1::HandIn {
            id: 5,
            experiment,
            generation: 1,
            done: vec![v1::LeaseTasks { lease, indices }],
            rows: Bytes::from_static(b"PSB3\x01\x02\x03\x04\x05\x06\x07\x08 rows"),
            uploads: vec![upload; random.below(3)],
            spent: None,
            jobs: random.next(),
        }),
    };
    v1::WorkerMessage { body: Some(body) }.encode_to_vec()
}

const MANIFEST: &str = "version = 1\nname = \"e\"\nseeds = { from = 1, count = 50 }\n[workloads.w]\nsource = \"lublin\"\n\
                        synthetic_jobs_count = [5, 6]\n[policies.q]\n[[exclude]]\nseed = [2, 4]\n\
                        synthetic_jobs_count = 5\n";

/// A call with one message.
fn of_client(random: &mut Random) -> (&'static str, Vec<u8>) {
    let experiment = ["e", "f", "gone", ""][random.below(4)].to_owned();
    let table = ["tasks", "jobs", "failures", "../tasks"][random.below(4)].to_owned();
    match random.below(8) {
        7 => ("StagePart", {
            let lease = Some(v1::LeaseId { epoch: 1, counter: 1 + random.below(300) as u64 });
            let part_id = vec![7; 16].into();
            v1::StagePartRequest { experiment, table, part_id, lease, bytes: random.next() >> random.below(64) }
                .encode_to_vec()
        }),
        0 => ("Submit", {
            let manifest = if random.below(2) == 0 { MANIFEST.to_owned() } else { MANIFEST.replace("\"e\"", "\"f\"") };
            let dry_run = random.below(4) == 0;
            v1::SubmitRequest { manifest, dry_run, restart: random.below(4) == 0, ..Default::default() }.encode_to_vec()
        }),
        1 => (
            "Status",
            v1::StatusRequest { experiment, max_failures: random.next() as u32, ..Default::default() }.encode_to_vec(),
        ),
        2 => ("Flush", v1::FlushRequest { experiment }.encode_to_vec()),
        3 => ("FetchLog", v1::FetchLogRequest { digest: vec![7; 32].into() }.encode_to_vec()),
        4 => ("ReadTable", v1::ReadTableRequest { experiment, table }.encode_to_vec()),
        5 => ("ReadPart", {
            let ranges = vec![v1::ByteRange { start: 0, end: random.below(9_000) as u64 }; random.below(5)];
            let part = ["part.parquet", "../part.parquet", "client.json"][random.below(3)].to_owned();
            v1::ReadPartRequest { experiment, table, part, ranges }.encode_to_vec()
        }),
        _ => ("Control", {
            let action = match random.below(7) {
                0 => Action::Pause(v1::Pause {}),
                1 => Action::Cancel(v1::Cancel {}),
                2 => Action::Retry(v1::Retry { indices: vec![0, u64::MAX, 1 << 48], kinds: vec![2] }),
                3 => Action::Delete(v1::Delete { force: true, data_too: random.below(2) == 0 }),
                4 => Action::SetPriority(v1::SetPriority { priority: random.next() as i32 }),
                _ => Action::Resume(v1::Resume {}),
            };
            v1::ControlRequest { experiment, action: Some(action), ..Default::default() }.encode_to_vec()
        }),
    }
}

/// The messages of an upload.
fn of_upload(random: &mut Random) -> (&'static str, Vec<Vec<u8>>) {
    let data = Bytes::from(vec![b'x'; random.below(3_000)]);
    if random.below(2) == 0 {
        let digest = Bytes::from(vec![7; 32]);
        return ("UploadLog", vec![v1::UploadLogRequest { digest, data }.encode_to_vec(); 2]);
    }
    let lease = Some(v1::LeaseId { epoch: 1, counter: 1 + random.below(300) as u64 });
    let part_id = Uuid::from_u128(random.next().into()).as_bytes().to_vec().into();
    let announced = random.below(2) == 0;
    let (data, staged_bytes) = if announced { (Bytes::new(), random.next() >> 40) } else { (data, 0) };
    let experiment = "e".into();
    let first = v1::UploadPartRequest { experiment, table: "jobs".into(), part_id, lease, data, staged_bytes };
    ("UploadPart", vec![first.encode_to_vec(); 2])
}

/// The tokens of the two roles.
#[derive(Clone)]
struct Tokens {
    client: String,
    worker: String,
}

impl Tokens {
    fn of(farm: &Farm) -> Tokens {
        let [client, worker] =
            [Role::Client, Role::Worker].map(|role| farm.handle.access(role).token.reveal().to_owned());
        Tokens { client, worker }
    }

    /// A request with the token of a caller that the call admits.
    fn admit<T>(&self, message: T, call: &str) -> tonic::Request<T> {
        let token =
            if ["Work", "UploadPart", "StagePart", "FetchLog"].contains(&call) { &self.worker } else { &self.client };
        let mut request = tonic::Request::new(message);
        request.metadata_mut().insert("authorization", format!("Bearer {token}").parse().expect("ascii"));
        request
    }
}

/// Makes one call. Any answer is right, but there must be one.
async fn call(channel: &Channel, tokens: &Tokens, random: &mut Random) -> u64 {
    let mut grpc = Grpc::new(channel.clone());
    grpc.ready().await.expect("the server accepts calls");
    let path = |call: &str| format!("/powersweep.v1.Farm/{call}").parse().expect("a path");
    let (made, messages): (_, u64) = match random.below(3) {
        0 => {
            let greeting = v1::WorkerMessage { body: Some(Body::Hello(hello("w"))) }.encode_to_vec();
            let mutated: Vec<_> = (0..STREAMED)
                .map(|_| {
                    let m = of_worker(random);
                    random.mutated(m)
                })
                .collect();
            let messages = tokio_stream::iter(std::iter::once(greeting).chain(mutated));
            let work = async {
                let answer = grpc.streaming(tokens.admit(messages, "Work"), path("Work"), Raw).await?;
                let mut answers = answer.into_inner();
                while answers.message().await?.is_some() {}
                Ok::<(), Status>(())
            };
            (tokio::time::timeout(PATIENCE, work).await.map(drop), STREAMED)
        }
        1 => {
            let (name, messages) = of_upload(random);
            let count = messages.len() as u64;
            let messages: Vec<_> = messages.into_iter().map(|message| random.mutated(message)).collect();
            let messages = tokens.admit(tokio_stream::iter(messages), name);
            let upload = grpc.client_streaming(messages, path(name), Raw);
            (tokio::time::timeout(PATIENCE, upload).await.map(drop), count)
        }
        _ => {
            let (name, message) = of_client(random);
            let request = tokens.admit(random.mutated(message), name);
            (tokio::time::timeout(PATIENCE, grpc.unary(request, path(name), Raw)).await.map(drop), 1)
        }
    };
    made.expect("a call that is never answered");
    messages
}

/// Memory of this process; 0 where the system does not say.
pub(crate) fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4096
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn mutated_messages_neither_hang_nor_end_nor_swell_the_coordinator() {
    let cases = std::env::var("POWERSWEEP_FUZZ_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(CASES);
    let seed = std::env::var("POWERSWEEP_FUZZ_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    println!("POWERSWEEP_FUZZ_SEED={seed}");
    let farm = direct_farm().await;
    farm.submit("e", 50, "tables = [\"jobs\"]").await;
    let (over, longest) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let prober = tokio::spawn({
        let (requests, over, longest) = (farm.handle.requests().clone(), Arc::clone(&over), Arc::clone(&longest));
        async move {
            while !over.load(Ordering::Relaxed) {
                let begun = Instant::now();
                let answer = tokio::time::timeout(PATIENCE, requests.status(v1::StatusRequest::default())).await;
                answer.expect("the driver answers").expect("a status");
                longest.fetch_max(begun.elapsed().as_millis() as u64, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    });
    let before = resident_bytes();
    let callers: Vec<_> = (0..4_u64)
        .map(|caller| {
            let (url, tokens) = (farm.url(), Tokens::of(&farm));
            tokio::spawn(async move {
                let channel = Endpoint::new(url).expect("a URL").connect().await.expect("it listens");
                let (mut random, mut sent) = (Random(seed << 8 | caller), 0);
                while sent < cases / 4 {
                    sent += call(&channel, &tokens, &mut random).await;
                }
                sent
            })
        })
        .collect();
    let mut sent = 0;
    for caller in callers {
        sent += caller.await.expect("every call is answered");
    }
    over.store(true, Ordering::Relaxed);
    prober.await.expect("the driver answers");
    let (longest, grown) =
        (Duration::from_millis(longest.load(Ordering::Relaxed)), resident_bytes().saturating_sub(before));
    println!("{sent} messages, longest wait {longest:?}, {} MiB more", grown >> 20);
    assert!(longest < HANG, "a status request waited {longest:?}");
    assert!(grown < GROWTH_MAX, "{} MiB", grown >> 20);
    farm.stop().await;
}
