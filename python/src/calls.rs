//! The functions of the module.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use powersweep_cli::embedded::{self, CommandError, noted};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::rows::Rows;
use crate::scheduler::{self, Raised};

/// Interval of the looks for signals.
const SIGNALS_INTERVAL: Duration = Duration::from_millis(50);
/// Stack of a thread that works: the interpreter of figures is written for a main thread.
const STACK_BYTES: usize = 8 << 20;

/// A result with the notes of the command.
pub(crate) type Noted<T> = PyResult<(T, Vec<String>)>;

/// The exception of an error, from the Python part of the package.
fn exception(py: Python<'_>, error: CommandError, notes: Vec<String>) -> PyErr {
    let made = || {
        let made = py.import("powersweep._errors")?.getattr("of")?.call1((error.code, error.message))?;
        for note in notes {
            made.call_method1("add_note", (note,))?;
        }
        PyResult::Ok(PyErr::from_value(made))
    };
    made().unwrap_or_else(|broken| broken)
}

/// Runs work without the interpreter's lock until it ends or a signal raises an exception. Then `stop` is set, and the
/// result of the work is dropped.
pub(crate) fn run<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&AtomicBool) -> Result<T, CommandError> + Send + 'static,
) -> Noted<T> {
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let (sender, mut receiver) = mpsc::channel();
    let worker = std::thread::Builder::new().name("powersweep".to_owned()).stack_size(STACK_BYTES);
    worker.spawn(move || {
        // Nobody receives after a signal.
        let _ = sender.send(noted(|| work(&stopped)));
    })?;
    loop {
        let received;
        (receiver, received) = py.detach(move || {
            let received = receiver.recv_timeout(SIGNALS_INTERVAL);
            (receiver, received)
        });
        match received {
            Ok((Ok(result), notes)) => return Ok((result, notes)),
            Ok((Err(error), notes)) => return Err(exception(py, error, notes)),
            Err(RecvTimeoutError::Timeout) => {
                py.check_signals().inspect_err(|_| stop.store(true, Ordering::Relaxed))?
            }
            Err(RecvTimeoutError::Disconnected) => {
                let message = "the command panicked, as standard error says: please report this bug".to_owned();
                return Err(exception(py, CommandError { code: 1, message }, Vec::new()));
            }
        }
    }
}

/// Simulates one task: its row as a dict, and the rows of `jobs` and `series` if they are asked for. `scheduler` chooses the
/// jobs that start.
#[pyfunction]
pub(crate) fn simulate(
    py: Python<'_>,
    options: Vec<String>,
    scheduler: Option<Bound<'_, PyAny>>,
    jobs: bool,
    series: bool,
) -> Noted<(Py<PyDict>, Option<Rows>, Option<Rows>)> {
    let raised = Raised::default();
    let policy = scheduler.map(|object| scheduler::policy(&object, &raised)).transpose()?;
    let work =
        move |stop: &AtomicBool| embedded::simulate(options, policy, jobs, series, &|| stop.load(Ordering::Relaxed));
    let (found, notes) = run(py, work).map_err(|error| raised.cause(py, error))?;
    let row = Rows::from(found.row).dict(py, 0, 0)?.unbind();
    Ok(((row, found.jobs.map(Rows::from), found.series.map(Rows::from)), notes))
}

/// The invariants of a policy, as JSON.
#[pyfunction]
pub(crate) fn conformance(py: Python<'_>, options: Vec<String>, scheduler: Bound<'_, PyAny>) -> Noted<String> {
    let policy = scheduler::policy(&scheduler, &Raised::default())?;
    run(py, move |_| embedded::conformance(options, policy).map(|found| found.to_string()))
}

/// Rows of an experiment.
#[pyfunction]
pub(crate) fn results(py: Python<'_>, options: Vec<String>) -> Noted<Rows> {
    run(py, move |_| embedded::results(options).map(Rows::from))
}

/// The status of experiments, as JSON.
#[pyfunction]
pub(crate) fn status(py: Python<'_>, options: Vec<String>) -> Noted<String> {
    run(py, move |_| embedded::status(options).map(|status| status.to_string()))
}

/// The name of the experiment of a manifest: a file, or the name of a shipped one.
#[pyfunction]
pub(crate) fn experiment_of(py: Python<'_>, manifest: &str) -> PyResult<String> {
    embedded::experiment_of(manifest).map_err(|error| exception(py, error, Vec::new()))
}

/// The name of the experiment of a manifest's text.
#[pyfunction]
pub(crate) fn experiment_of_text(py: Python<'_>, text: &str) -> PyResult<String> {
    embedded::experiment_of_text(text).map_err(|error| exception(py, error, Vec::new()))
}

/// Every exit code of the command line with its meaning.
#[pyfunction]
pub(crate) fn exit_codes() -> Vec<(u8, &'static str)> {
    embedded::exit_codes().collect()
}

/// Runs the command line in this process, and returns its exit code. `program` starts it again.
#[pyfunction]
pub(crate) fn main(py: Python<'_>, arguments: Vec<OsString>, program: Option<PathBuf>) -> u8 {
    py.detach(|| powersweep_cli::main(arguments, program))
}
