//! SIGINT (Ctrl-C), SIGTERM and SIGHUP.
//!
//! A command that has taken the [`token`] is asked to end by the first SIGINT or SIGTERM, and ends at once by the second. Other
//! commands end at once. No such end leaves an unfinished file.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Once, OnceLock};

use powersweep_dataset::partial::remove_unfinished;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// The token of the command, if it has taken one.
static TOKEN: OnceLock<CancellationToken> = OnceLock::new();

/// Whether Ctrl-C is for a child in the foreground.
static IS_FOR_CHILD: AtomicBool = AtomicBool::new(false);

/// A token that is cancelled by the first SIGINT or SIGTERM. Signals are answered from now on.
pub fn token() -> CancellationToken {
    let token = TOKEN.get_or_init(CancellationToken::new).clone();
    watch();
    token
}

/// Leaves Ctrl-C to a child in the foreground, which this process outlives.
pub fn leave_to_child() {
    IS_FOR_CHILD.store(true, Ordering::Relaxed);
}

/// Begins to answer signals, unless they are answered already. A signal that the caller ignores stays ignored, such as SIGHUP under `nohup`.
pub fn watch() {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(start);
}

fn start() {
    let started = Builder::new_current_thread().enable_io().build().and_then(|runtime| {
        let signals = Signals::registered(&runtime)?;
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || runtime.block_on(signals.answered()))
    });
    if let Err(error) = started {
        tracing::warn!(%error, "no handler of signals: Ctrl-C and SIGTERM end this program at once");
    }
}

struct Signals {
    interrupt: Option<Signal>,
    terminate: Option<Signal>,
    hangup: Option<Signal>,
}

impl Signals {
    /// From now on these signals do not end the process by themselves.
    fn registered(runtime: &Runtime) -> std::io::Result<Signals> {
        let _entered = runtime.enter();
        let ignored = ignored();
        let registered = |kind: SignalKind| match ignored >> (kind.as_raw_value() - 1) & 1 {
            0 => signal(kind).map(Some),
            _ => Ok(None),
        };
        Ok(Signals {
            interrupt: registered(SignalKind::interrupt())?,
            terminate: registered(SignalKind::terminate())?,
            hangup: registered(SignalKind::hangup())?,
        })
    }

    async fn answered(mut self) {
        loop {
            let kind = tokio::select! {
                () = received(&mut self.interrupt) => SignalKind::interrupt(),
                () = received(&mut self.terminate) => SignalKind::terminate(),
                () = received(&mut self.hangup) => SignalKind::hangup(),
            };
            let asked = TOKEN.get().filter(|token| kind != SignalKind::hangup() && !token.is_cancelled());
            let is_for_child = kind == SignalKind::interrupt() && IS_FOR_CHILD.load(Ordering::Relaxed);
            match asked {
                Some(token) => token.cancel(),
                None if is_for_child => {}
                None => end(kind),
            }
        }
    }
}

/// Waits for a signal; for ever if the caller ignores the signal.
async fn received(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

/// Ends the process with the code that a shell gives to this signal.
fn end(kind: SignalKind) -> ! {
    remove_unfinished();
    std::process::exit(128 + kind.as_raw_value())
}

/// The signals that the caller of this process ignores, as bits; none where the system does not tell.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
