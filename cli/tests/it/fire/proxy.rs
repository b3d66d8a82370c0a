//! A proxy in front of an S3 store, with the faults of such stores: errors, slow answers, missing answers, connections
//! that are cut before or after a request was carried out.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::random::Random;

/// Maximum size of a request's head.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// How long an unanswered request is kept open, unless its sender closes the connection.
const HELD: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(5);

/// A fault of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fault {
    /// 503, not carried out.
    Refused,
    /// Carried out, and answered with 500.
    RefusedAfter,
    /// Answered late.
    Slow,
    /// Not carried out, and the connection is cut.
    CutBefore,
    /// Carried out, and the connection is cut: the sender does not know the outcome.
    CutAfter,
    /// Carried out, and never answered.
    Unanswered,
}

/// Number of each fault in 1,000 requests.
pub(super) type Chances = [(Fault, u64)];

struct State {
    upstream: u16,
    chances: Vec<(Fault, u64)>,
    random: Mutex<Random>,
    /// Random faults happen.
    active: AtomicBool,
    /// No request is carried out or answered.
    stalled: AtomicBool,
    /// Signed addresses are refused.
    distrusts: AtomicBool,
    ended: AtomicBool,
    counts: Mutex<Counts>,
    /// Held during a conditional write. The server checks for the object and then stores it; between these steps
    /// another of its threads can do the same. A real store has one winner.
    deciding: Mutex<()>,
}

/// Requests, and bytes of requests and answers.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Traffic {
    pub(super) requests: u64,
    pub(super) sent: u64,
    pub(super) received: u64,
}

/// Counts of the proxy.
#[derive(Debug, Clone, Default)]
pub(super) struct Counts {
    pub(super) requests: u64,
    pub(super) faults: BTreeMap<Fault, u64>,
    /// Number of creations of each conditionally created object.
    pub(super) created: BTreeMap<String, u32>,
    /// Conditional creations that were carried out without an answer to their sender.
    pub(super) created_unknown: u64,
    /// Conditional creations that the store refused because the object existed.
    pub(super) refused_creations: u64,
    /// Of the coordinator.
    pub(super) coordinator: Traffic,
    /// Of workers, by signed addresses.
    pub(super) workers: Traffic,
}

/// A running proxy; it ends when dropped.
pub(super) struct Proxy {
    pub(super) port: u16,
    state: Arc<State>,
}

struct Request {
    head: String,
    bytes: Vec<u8>,
}

impl Request {
    fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }

    fn method(&self) -> &str {
        self.head.split(' ').next().unwrap_or_default()
    }

    fn path(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or_default()
    }

    /// Whether the address is signed, not the request.
    fn has_signed_address(&self) -> bool {
        self.path().contains("X-Amz-Signature=")
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Proxy {
    /// A proxy in front of the store on this port, without faults at first.
    pub(super) fn before(upstream: u16, chances: &Chances) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("it has one").port();
        let state = Arc::new(State {
            upstream,
            chances: chances.to_vec(),
            random: Mutex::new(Random::new()),
            active: AtomicBool::new(false),
            stalled: AtomicBool::new(false),
            distrusts: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            counts: Mutex::default(),
            deciding: Mutex::default(),
        });
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if shared.ended.load(Ordering::Relaxed) {
                    return;
                }
                let state = Arc::clone(&shared);
                std::thread::spawn(move || serve(&state, stream));
            }
        });
        Proxy { port, state }
    }

    /// Starts or ends random faults.
    pub(super) fn set_active(&self, active: bool) {
        self.state.active.store(active, Ordering::Relaxed);
    }

    /// Starts or ends the silence.
    pub(super) fn set_stalled(&self, stalled: bool) {
        self.state.stalled.store(stalled, Ordering::Relaxed);
    }

    /// Starts or ends the refusal of signed addresses.
    pub(super) fn set_distrusts(&self, distrusts: bool) {
        self.state.distrusts.store(distrusts, Ordering::Relaxed);
    }

    pub(super) fn counts(&self) -> Counts {
        lock(&self.state.counts).clone()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.state.ended.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

impl State {
    fn draw(&self) -> Option<Fault> {
        if !self.active.load(Ordering::Relaxed) {
            return None;
        }
        let mut at = lock(&self.random).below(1000);
        for &(fault, chance) in &self.chances {
            if at < chance {
                return Some(fault);
            }
            at -= chance;
        }
        None
    }
}

fn serve(state: &State, mut client: TcpStream) {
    // Answers close the connection: one request each.
    let Some(request) = receive(&mut client) else { return };
    while state.stalled.load(Ordering::Relaxed) && !state.ended.load(Ordering::Relaxed) {
        std::thread::sleep(LOOK);
    }
    let fault = state.draw();
    let mut counts = lock(&state.counts);
    counts.requests += 1;
    if let Some(fault) = fault {
        *counts.faults.entry(fault).or_default() += 1;
    }
    drop(counts);
    let answer = match fault {
        Some(Fault::Refused) => status(503, "Service Unavailable"),
        Some(Fault::CutBefore) => return,
        Some(Fault::Slow) => {
            let pause = lock(&state.random).ms_below(1500);
            std::thread::sleep(pause);
            carry_out(state, &request, true)
        }
        Some(Fault::RefusedAfter) => {
            carry_out(state, &request, false);
            status(500, "Internal Server Error")
        }
        Some(Fault::CutAfter) => {
            carry_out(state, &request, false);
            return;
        }
        Some(Fault::Unanswered) => {
            carry_out(state, &request, false);
            let _ = client.set_read_timeout(Some(HELD));
            let _ = client.read(&mut [0]);
            return;
        }
        None if request.has_signed_address() && state.distrusts.load(Ordering::Relaxed) => status(403, "Forbidden"),
        None => carry_out(state, &request, true),
    };
    let mut counts = lock(&state.counts);
    let traffic = if request.has_signed_address() { &mut counts.workers } else { &mut counts.coordinator };
    traffic.requests += 1;
    traffic.sent += (request.head.len() + request.bytes.len()) as u64;
    traffic.received += answer.len() as u64;
    drop(counts);
    let _ = client.write_all(&answer);
    let _ = client.shutdown(Shutdown::Both);
}

fn status(code: u16, reason: &str) -> Vec<u8> {
    format!("HTTP/1.1 {code} {reason}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").into_bytes()
}

fn receive(client: &mut TcpStream) -> Option<Request> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 1 << 14];
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        let count = client.read(&mut buffer).ok().filter(|&count| count > 0)?;
        bytes.extend_from_slice(&buffer[..count]);
        assert!(bytes.len() < HEAD_BYTES_MAX || bytes.windows(4).any(|w| w == b"\r\n\r\n"), "an endless head");
    };
    let head = String::from_utf8_lossy(&bytes[..head_end]).into_owned();
    let mut request = Request { head, bytes: bytes[head_end..].to_vec() };
    let length = request.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    assert!(request.header("transfer-encoding").is_none(), "a body without length: {}", request.head);
    while request.bytes.len() < length {
        let count = client.read(&mut buffer).ok().filter(|&count| count > 0)?;
        request.bytes.extend_from_slice(&buffer[..count]);
    }
    Some(request)
}

/// Lets the store carry out the request; `known`: whether the sender gets the answer.
fn carry_out(state: &State, request: &Request, known: bool) -> Vec<u8> {
    let stores = request.method() == "PUT";
    let creates = stores && request.header("if-none-match") == Some("*");
    let replaces = stores && request.header("if-match").is_some();
    let alone = (creates || replaces).then(|| lock(&state.deciding));
    let answer = forward(state.upstream, request).unwrap_or_else(|_| status(502, "Bad Gateway"));
    drop(alone);
    if !creates {
        return answer;
    }
    let code = answer.split(|&byte| byte == b' ').nth(1).unwrap_or_default();
    let mut counts = lock(&state.counts);
    match code {
        b"200" => {
            *counts.created.entry(request.path().to_owned()).or_default() += 1;
            counts.created_unknown += u64::from(!known);
        }
        b"412" => counts.refused_creations += 1,
        _ => {}
    }
    answer
}

fn forward(upstream: u16, request: &Request) -> std::io::Result<Vec<u8>> {
    let mut store = TcpStream::connect(("127.0.0.1", upstream))?;
    let mut head = String::new();
    for line in request.head.trim_end().lines() {
        if !line.to_ascii_lowercase().starts_with("connection:") {
            head.push_str(line);
            head.push_str("\r\n");
        }
    }
    head.push_str("connection: close\r\n\r\n");
    store.write_all(head.as_bytes())?;
    store.write_all(&request.bytes)?;
    let mut answer = Vec::new();
    store.read_to_end(&mut answer)?;
    match answer.is_empty() {
        true => Err(std::io::ErrorKind::UnexpectedEof.into()),
        false => Ok(answer),
    }
}
