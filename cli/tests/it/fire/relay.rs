//! A relay of TCP connections between workers and coordinators, for faults of the network without root.
//!
//! It can hold back bytes in one direction or both (without loss, like retransmissions), break connections, and connect
//! new ones to another coordinator, like a changed name or address.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Interval of checks whether bytes are still held back.
const LOOK: Duration = Duration::from_millis(5);

#[derive(Default)]
struct State {
    target: AtomicU16,
    /// Bytes from workers are held back.
    from_workers: AtomicBool,
    /// Bytes from the coordinator are held back.
    to_workers: AtomicBool,
    /// Bytes so far.
    bytes_from_workers: AtomicU64,
    bytes_to_workers: AtomicU64,
    ended: AtomicBool,
    streams: Mutex<Vec<TcpStream>>,
}

/// A relay on a port of its own; it ends when dropped.
pub(super) struct Relay {
    pub(super) port: u16,
    state: Arc<State>,
}

impl Relay {
    /// A relay to this port.
    pub(super) fn to(target: u16) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("it has one").port();
        let state = Arc::new(State { target: AtomicU16::new(target), ..State::default() });
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if shared.ended.load(Ordering::Relaxed) {
                    return;
                }
                connect(&shared, stream);
            }
        });
        Relay { port, state }
    }

    /// Breaks all connections; new ones go to this port.
    pub(super) fn switch(&self, target: u16) {
        self.state.target.store(target, Ordering::Relaxed);
        self.break_all();
    }

    /// Bytes from workers and to workers so far.
    pub(super) fn bytes(&self) -> (u64, u64) {
        let State { bytes_from_workers, bytes_to_workers, .. } = &*self.state;
        (bytes_from_workers.load(Ordering::Relaxed), bytes_to_workers.load(Ordering::Relaxed))
    }

    /// Breaks all connections.
    pub(super) fn break_all(&self) {
        for stream in self.state.streams.lock().expect("no thread panics with it").drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Holds back bytes from workers, bytes to workers, or neither.
    pub(super) fn hold(&self, from_workers: bool, to_workers: bool) {
        self.state.from_workers.store(from_workers, Ordering::Relaxed);
        self.state.to_workers.store(to_workers, Ordering::Relaxed);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.state.ended.store(true, Ordering::Relaxed);
        self.break_all();
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

fn connect(state: &Arc<State>, worker: TcpStream) {
    // Without a listening coordinator, the worker's connection breaks.
    let Ok(farm) = TcpStream::connect(("127.0.0.1", state.target.load(Ordering::Relaxed))) else { return };
    let clone = |stream: &TcpStream| stream.try_clone().expect("a stream can be cloned");
    for stream in [&worker, &farm] {
        let _ = stream.set_nodelay(true);
        state.streams.lock().expect("no thread panics with it").push(clone(stream));
    }
    for (from, to, upwards) in [(clone(&worker), clone(&farm), true), (farm, worker, false)] {
        let state = Arc::clone(state);
        std::thread::spawn(move || pump(&state, from, to, upwards));
    }
}

fn pump(state: &State, mut from: TcpStream, mut to: TcpStream, upwards: bool) {
    let (held, passed) = match upwards {
        true => (&state.from_workers, &state.bytes_from_workers),
        false => (&state.to_workers, &state.bytes_to_workers),
    };
    let mut bytes = [0; 1 << 14];
    while let Ok(count) = from.read(&mut bytes) {
        while held.load(Ordering::Relaxed) && !state.ended.load(Ordering::Relaxed) {
            std::thread::sleep(LOOK);
        }
        if count == 0 || to.write_all(&bytes[..count]).is_err() {
            break;
        }
        passed.fetch_add(count as u64, Ordering::Relaxed);
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
