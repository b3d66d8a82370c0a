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
mod log;
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

use crate::args::{Cli, Command, TraceCommand};
use crate::exit::Outcome;

/// Many threads allocate and free large batches of rows; jemalloc returns the free memory to the system.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let cli = Cli::parse();
    log::start(&cli, std::io::stderr().is_terminal());
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
