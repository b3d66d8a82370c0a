//! Commands for a caller in this process, such as the Python module: results are values, not text.
//!
//! Options are those of the command line, so that defaults, configurations, variables and errors are the same. Only commands
//! that end by themselves are here: a coordinator or a worker handles signals and may end its process, so it needs a process
//! of its own, which calls [`crate::main`].

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use clap::{Args, ColorChoice, Command};
use powersweep_engine::wasm::Module;

pub use powersweep_engine::wasm::{NO_ARRIVAL, Pass, Scheduler};
use serde_json::Value as Json;

use crate::args::{ConformanceArgs, SimulateArgs, StatusArgs};
use crate::commands::{conformance, results, simulate, status};
use crate::config::Config;
use crate::exit::{self, Exit, Failure, failure};
use crate::{inputs, install_tls, screen};

/// Calls a command's work on this thread and returns its notes, which are sentences for people.
pub use crate::screen::noted;

/// Rows in memory.
#[derive(Debug, Clone)]
pub struct Rows {
    /// Columns of every batch.
    pub schema: SchemaRef,
    /// The rows.
    pub batches: Vec<RecordBatch>,
}

impl From<RecordBatch> for Rows {
    fn from(batch: RecordBatch) -> Rows {
        Rows { schema: batch.schema(), batches: vec![batch] }
    }
}

/// Why a command failed.
#[derive(Debug, Clone)]
pub struct CommandError {
    /// The exit code of the command line; see [`exit_codes`].
    pub code: u8,
    /// What went wrong, and what to do.
    pub message: String,
}

impl From<Failure> for CommandError {
    fn from(failure: Failure) -> CommandError {
        CommandError { code: Exit::Of(failure.kind).code(), message: failure.message.trim_end().to_owned() }
    }
}

/// Every exit code with its meaning.
pub fn exit_codes() -> impl Iterator<Item = (u8, &'static str)> {
    exit::TABLE.iter().map(|(exit, meaning)| (exit.code(), *meaning))
}

/// The arguments of a command, with the defaults of configurations and variables.
fn parsed<A: Args>(command: &'static str, options: Vec<String>) -> Result<A, Failure> {
    install_tls();
    screen::choose_color(Some(ColorChoice::Never), None);
    let parser = A::augment_args(Command::new(command).no_binary_name(true).disable_help_flag(true));
    let parser = Config::read()?.apply(parser).color(ColorChoice::Never);
    let arguments = parser.try_get_matches_from(options).and_then(|matches| A::from_arg_matches(&matches));
    arguments.map_err(|error| {
        // The usage line is of the command line.
        let text = error.to_string();
        let text = text.split("\n\nUsage:").next().unwrap_or_default().trim_start_matches("error: ");
        failure!(Usage, "{command}: {}", text.trim_end())
    })
}

/// The row of a simulated task, and its rows of optional tables if they are asked for.
#[derive(Debug, Clone)]
pub struct Simulated {
    /// One row of `tasks`.
    pub row: Rows,
    /// Rows of `jobs`.
    pub jobs: Option<Rows>,
    /// Rows of `series`.
    pub series: Option<Rows>,
}

/// A policy of this process, with its name in messages and rows.
pub type Policy = (String, Box<dyn Scheduler>);

fn module((name, scheduler): Policy) -> Arc<Module> {
    Arc::new(Module::in_process(&name, scheduler))
}

/// `powersweep simulate`. `policy` chooses the jobs that start, in the place of `backfill`; `stop` ends the simulation early.
pub fn simulate(
    options: Vec<String>,
    policy: Option<Policy>,
    jobs: bool,
    series: bool,
    stop: &dyn Fn() -> bool,
) -> Result<Simulated, CommandError> {
    let args: SimulateArgs = parsed("simulate", options)?;
    let found = simulate::simulated(&args, policy.map(module), jobs, series, stop)?;
    Ok(Simulated { row: found.row.into(), jobs: found.jobs.map(Rows::from), series: found.series.map(Rows::from) })
}

/// `powersweep results`: the rows of `--format arrow`, including unpublished rows.
pub fn results(options: Vec<String>) -> Result<Rows, CommandError> {
    let (schema, batches) = results::rows(&parsed("results", options)?)?;
    Ok(Rows { schema, batches })
}

/// `powersweep conformance --json` of a policy of this process.
pub fn conformance(mut options: Vec<String>, policy: Policy) -> Result<Json, CommandError> {
    let policy = module(policy);
    options.push(format!("--module={}", policy.name()));
    Ok(conformance::document(&parsed::<ConformanceArgs>("conformance", options)?, policy)?)
}

/// `powersweep status --json`.
pub fn status(options: Vec<String>) -> Result<Json, CommandError> {
    Ok(status::document(&parsed::<StatusArgs>("status", options)?)?)
}

/// The name of the experiment of a manifest: a file or the name of a shipped manifest.
pub fn experiment_of(manifest: &str) -> Result<String, CommandError> {
    Ok(inputs::manifest(manifest)?.name().to_owned())
}

/// The name of the experiment of a manifest's text.
pub fn experiment_of_text(text: &str) -> Result<String, CommandError> {
    Ok(inputs::parse("the manifest", text)?.name().to_owned())
}

/// Figures, in a binary that draws them.
#[cfg(feature = "figures")]
pub mod figures {
    use std::sync::{Mutex, PoisonError};

    use powersweep::plot::{Drawing, Format};

    use super::{CommandError, parsed};
    use crate::args::PlotArgs;
    use crate::commands::plot;

    /// A figure with its rows.
    pub struct Figure(Mutex<Drawing>);

    /// `powersweep plot`: reads the rows; nothing is drawn yet.
    pub fn plot(options: Vec<String>) -> Result<Figure, CommandError> {
        Ok(Figure(Mutex::new(plot::opened(&parsed::<PlotArgs>("plot", options)?)?)))
    }

    impl Figure {
        /// The figure in a format: svg, png, pdf, html, vl.json or csv.
        pub fn bytes(&self, format: &str) -> Result<Vec<u8>, CommandError> {
            let format = Format::of(format)?;
            Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner).bytes(format)?)
        }
    }
}
