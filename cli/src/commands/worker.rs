//! `powersweep worker`: runs tasks for a coordinator until it is told to stop.

use powersweep_worker::{WorkerError, WorkerOptions};

use crate::args::WorkerArgs;
use crate::exit::{Exit, Failure, Outcome};
use crate::{client, interrupt, screen};

/// Tasks at once when the command line does not say: one a processor.
pub fn slots_or_all(slots: u16) -> usize {
    if slots > 0 { slots.into() } else { std::thread::available_parallelism().map_or(1, usize::from) }
}

/// Runs until drained, interrupted, or refused for good.
pub fn run(args: &WorkerArgs) -> Outcome {
    let address = client::address(&args.coordinator)?;
    let name = args.name.clone().unwrap_or_else(default_name);
    let mut options = WorkerOptions::new(address.url, slots_or_all(args.slots), name);
    options.token = address.token;
    options.insecure = address.insecure;
    options.tls = address.tls;
    options.search_path = args.logs.traces.clone();
    options.cache_dir = args.logs.cache.clone();
    let report = client::block_on(async {
        let stop = interrupt::token();
        powersweep_worker::run(options, stop).await
    })?;
    match report {
        Ok(report) => screen::print(&format!(
            "worker ended ({}): {} tasks done, {} failed attempts, engine {}, parse {}, store {}, idle {}",
            report.reason,
            report.tasks_acknowledged,
            report.failures,
            screen::duration(report.engine_s),
            screen::duration(report.parse_s),
            screen::duration(report.store_s),
            screen::duration(report.idle_s),
        )),
        Err(error) => Err(Failure::new(exit_of(&error), error.to_string())),
    }
}

fn default_name() -> String {
    let host = std::env::var("HOSTNAME").ok().filter(|h| !h.is_empty());
    let host = host.or_else(|| std::fs::read_to_string("/etc/hostname").ok().map(|h| h.trim().to_owned()));
    format!("{}-{}", host.filter(|h| !h.is_empty()).as_deref().unwrap_or("worker"), std::process::id())
}

/// The exit code of a worker's error.
pub fn exit_of(error: &WorkerError) -> Exit {
    match error {
        WorkerError::Options(_) => Exit::Usage,
        WorkerError::Unreachable { .. } => Exit::Network,
        WorkerError::Refused { .. } | WorkerError::Protocol { .. } => Exit::Refused,
        WorkerError::Thread { .. } => Exit::Failure,
    }
}
