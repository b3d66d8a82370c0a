//! The binary `powersweep`: `main` dispatches to one file in `commands/` for each command.

// A binary exports no items; `pub` here means visible to the other modules.
#![allow(unreachable_pub)]

mod args;
mod client;
mod commands;
mod examples;
mod exit;
mod farm;
mod inputs;
mod interrupt;
mod quantities;
mod reading;
mod results_table;
mod rows;
mod screen;
mod stored;
mod worker_args;
mod writing;

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::Parser;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::args::{Cli, Command, TraceCommand};
use crate::exit::Outcome;

/// Many threads allocate and free large batches of rows; jemalloc returns the free memory to the system.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let cli = Cli::parse();
    start_log(&cli);
    // One TLS provider for gRPC, object stores and downloads.
    let _ = rustls::crypto::ring::default_provider().install_default();
    match dispatch(&cli.command) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            screen::note(&format!("powersweep: {}", failure.message.trim_end()));
            failure.exit.into()
        }
    }
}

fn dispatch(command: &Command) -> Outcome {
    match command {
        Command::Run(args) => commands::run::run(args),
        Command::Check(args) => commands::check::run(args),
        Command::Plan(args) => commands::plan::run(args),
        Command::Simulate(args) => commands::simulate::run(args),
        Command::Lp(args) => commands::lp::run(args),
        Command::Serve(args) => commands::serve::run(args),
        Command::Worker(args) => commands::worker::run(args),
        Command::Submit(args) => commands::submit::run(args),
        Command::Status(args) => commands::status::run(args),
        Command::Pause(args) => commands::control::pause(args),
        Command::Resume(args) => commands::control::resume(args),
        Command::Cancel(args) => commands::control::cancel(args),
        Command::Retry(args) => commands::control::retry(args),
        Command::Priority(args) => commands::control::priority(args),
        Command::Flush(args) => commands::control::flush(args),
        Command::Prune(args) => commands::control::prune(args),
        Command::Delete(args) => commands::control::delete(args),
        Command::Results(args) => commands::results::run(args),
        Command::Export(args) => commands::export::run(args),
        Command::Adopt(args) => commands::adopt::run(args),
        Command::Schema => commands::schema::run(),
        Command::Policies(args) => commands::policies::run(args),
        Command::Columns(args) => commands::columns::run(args),
        Command::Trace(TraceCommand::Info { log, sha256, logs, format }) => {
            commands::trace::info(log, *sha256, logs, *format)
        }
        Command::Health(args) => commands::health::run(args),
    }
}

/// Log messages go to standard error: warnings by default, also information from `serve` and `worker`. Warnings about
/// failed tasks would break the progress bar of `run` and `check`, which list these tasks at their end.
fn start_log(cli: &Cli) {
    let default = match (cli.verbose, &cli.command) {
        (0, Command::Serve(_) | Command::Worker(_)) | (1, _) => "powersweep=info,warn",
        (0, Command::Run(_) | Command::Check(_)) => "powersweep_worker::slots=error,warn",
        (0, _) => "warn",
        _ => "debug",
    };
    let wanted = std::env::var("POWERSWEEP_LOG").unwrap_or_else(|_| default.to_owned());
    // This filter has targets and levels only. A filter with spans and fields would need a regular expression engine.
    let filter: Targets = wanted.parse().unwrap_or_else(|_| default.parse().expect("the defaults are filters"));
    let log = tracing_subscriber::fmt::layer().with_ansi(std::io::stderr().is_terminal());
    tracing_subscriber::registry().with(log.with_writer(std::io::stderr)).with(filter).init();
}
