//! Calls of the library: their threads, errors and notes, and the functions of the module that need no place.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use powersweep::conformance::{Conformance, Policy};
use powersweep::simulate::{SimulateOptions, TaskLimits};
use powersweep::{Error, Manifest, Notes, failure, inputs, plain, shaken};
use powersweep_cli::exit::{Exit, TABLE};
use powersweep_cli::{defaults, quantities};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::json;

use crate::rows::Rows;
use crate::scheduler::{self, Raised};

/// Interval of the looks for signals.
const SIGNALS_INTERVAL: Duration = Duration::from_millis(50);
/// Stack of a thread that works: the interpreter of figures is written for a main thread.
const STACK_BYTES: usize = 8 << 20;
/// Maximum number of random workloads of [`conformance`].
const WORKLOADS_MAX: u64 = 100_000;

/// A result with the notes of the call.
pub(crate) type Noted<T> = PyResult<(T, Vec<String>)>;

/// The exception of an error, from the Python part of the package.
pub(crate) fn exception(py: Python<'_>, error: &Error, notes: Vec<String>) -> PyErr {
    let made = || {
        // Python shows a message on the terminal unchanged.
        let of = (Exit::Of(error.kind).code(), plain(error.message.trim_end()));
        let made = py.import("powersweep._errors")?.getattr("of")?.call1(of)?;
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
    work: impl FnOnce(&AtomicBool, Notes) -> Result<T, Error> + Send + 'static,
) -> Noted<T> {
    run_calling(py, false, work)
}

/// Runs work as [`run`] does. Work that calls Python ends before the exception of a signal is raised, or the interpreter could end
/// within its call. A second signal waits no longer.
fn run_calling<T: Send + 'static>(
    py: Python<'_>,
    calls_python: bool,
    work: impl FnOnce(&AtomicBool, Notes) -> Result<T, Error> + Send + 'static,
) -> Noted<T> {
    let (stop, said) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
    let said_now = || std::mem::take(&mut *said.lock().unwrap_or_else(PoisonError::into_inner));
    let (stopped, saying) = (Arc::clone(&stop), Arc::clone(&said));
    let notes =
        Notes::to(move |note| saying.lock().unwrap_or_else(PoisonError::into_inner).push(plain(note).into_owned()));
    let (sender, mut receiver) = mpsc::channel();
    let worker = std::thread::Builder::new().name("powersweep".to_owned()).stack_size(STACK_BYTES);
    worker.spawn(move || {
        // Nobody receives after a signal.
        let _ = sender.send(work(&stopped, notes));
    })?;
    let mut raised = None;
    loop {
        let received;
        (receiver, received) = py.detach(move || {
            let received = receiver.recv_timeout(SIGNALS_INTERVAL);
            (receiver, received)
        });
        if let Some(error) = raised.take() {
            match received {
                Err(RecvTimeoutError::Timeout) if py.check_signals().is_ok() => raised = Some(error),
                _ => return Err(error),
            }
            continue;
        }
        match received {
            Ok(Ok(result)) => return Ok((result, said_now())),
            Ok(Err(error)) => return Err(exception(py, &error, said_now())),
            Err(RecvTimeoutError::Timeout) => {
                let Err(error) = py.check_signals() else { continue };
                stop.store(true, Ordering::Relaxed);
                if !calls_python {
                    return Err(error);
                }
                raised = Some(error);
            }
            Err(RecvTimeoutError::Disconnected) => {
                let message = "the call panicked, as standard error says: please report this bug";
                return Err(exception(py, &failure!(Failure, "{message}"), said_now()));
            }
        }
    }
}

/// A wrong keyword by the name of its option.
pub(crate) fn wrong(option: &str, reason: impl std::fmt::Display) -> Error {
    failure!(Usage, "{option}: {reason}")
}

/// One of these names, with its meaning.
pub(crate) fn one_of<T: Clone>(option: &str, name: &str, known: &[(&str, T)]) -> Result<T, Error> {
    let found = known.iter().find(|(known, _)| *known == name).map(|(_, meaning)| meaning.clone());
    found.ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        failure!(Usage, "invalid value '{name}' for {option}; possible values: {}", names.join(", "))
    })
}

/// Simulates one task: its row as a dict, and the rows of `jobs` and `series` if they are asked for. `scheduler` chooses the
/// jobs that start.
#[pyfunction]
#[pyo3(signature = (*, manifest, index, settings, log, seed, scheduler, jobs, series, traces, cache, task_deadline,
                    task_max_events, task_max_memory))]
#[expect(clippy::too_many_arguments, reason = "keywords of Python")]
pub(crate) fn simulate(
    py: Python<'_>,
    manifest: Option<String>,
    index: Option<u64>,
    settings: Vec<(String, String)>,
    log: Option<String>,
    seed: Option<u64>,
    scheduler: Option<Bound<'_, PyAny>>,
    jobs: bool,
    series: bool,
    traces: Vec<PathBuf>,
    cache: Option<PathBuf>,
    task_deadline: Option<String>,
    task_max_events: Option<u64>,
    task_max_memory: Option<String>,
) -> Noted<(Py<PyDict>, Option<Rows>, Option<Rows>)> {
    let raised = Raised::default();
    let policy = scheduler.map(|object| scheduler::policy(&object, &raised)).transpose()?;
    let calls_python = policy.is_some();
    let work = move |stop: &AtomicBool, notes: Notes| {
        let deadline = task_deadline.map(|text| quantities::positive_time(&text)).transpose();
        let max_bytes = task_max_memory.map(|text| quantities::memory(&text)).transpose();
        let limits = TaskLimits {
            deadline: deadline.map_err(|error| wrong("--task-deadline", error))?,
            max_events: task_max_events,
            max_bytes: max_bytes.map_err(|error| wrong("--task-max-memory", error))?,
        };
        if manifest.is_some() != index.is_some() {
            return Err(failure!(Usage, "a task of a manifest needs the manifest and --index"));
        }
        let logs = defaults::library(traces, cache, &notes)?;
        let library = logs.clone().with_base(inputs::folder_of(manifest.as_deref().unwrap_or_default()));
        let manifest = manifest.map(|name| manifest_of(&name)).transpose()?;
        let task = manifest.as_ref().zip(index);
        let options = SimulateOptions {
            task,
            library: &library,
            logs: &logs,
            log,
            set: settings,
            seed,
            limits,
            policy,
            jobs,
            series,
            notes: notes.clone(),
        };
        let found = options.simulated(&|| stop.load(Ordering::Relaxed))?;
        found.findings().iter().for_each(|finding| notes.say(&finding.text()));
        Ok((Rows::from(found.row), found.jobs.map(Rows::from), found.series.map(Rows::from)))
    };
    let ((row, jobs, series), notes) = run_calling(py, calls_python, work).map_err(|error| raised.cause(py, error))?;
    let row = row.dict(py, 0, 0)?.unbind();
    Ok(((row, jobs, series), notes))
}

/// The invariants of a policy, as JSON.
#[pyfunction]
pub(crate) fn conformance(
    py: Python<'_>,
    scheduler: Bound<'_, PyAny>,
    workloads: u64,
    logs: Vec<String>,
    traces: Vec<PathBuf>,
) -> Noted<String> {
    let policy = Policy::Module(scheduler::policy(&scheduler, &Raised::default())?);
    run_calling(py, true, move |stop, notes| {
        if !(1..=WORKLOADS_MAX).contains(&workloads) {
            return Err(wrong("--workloads", format!("expected a number from 1 to {WORKLOADS_MAX}")));
        }
        let library = defaults::library(traces, None, &notes)?;
        let stop = || stop.load(Ordering::Relaxed);
        Conformance::of(&policy, workloads, &logs, &library, &stop).map(|found| json!(found).to_string())
    })
}

/// The name of the experiment of a manifest: a file, or the name of a shipped one.
#[pyfunction]
pub(crate) fn experiment_of(py: Python<'_>, manifest: &str) -> PyResult<String> {
    name_of(py, manifest_of(manifest))
}

/// The name of the experiment of a manifest's text.
#[pyfunction]
pub(crate) fn experiment_of_text(py: Python<'_>, text: &str) -> PyResult<String> {
    name_of(py, parsed("the manifest", text))
}

fn name_of(py: Python<'_>, manifest: Result<Manifest, Error>) -> PyResult<String> {
    manifest.map(|manifest| manifest.name().to_owned()).map_err(|error| exception(py, &error, Vec::new()))
}

fn manifest_of(name: &str) -> Result<Manifest, Error> {
    let (file, text) = inputs::manifest_text(name)?;
    parsed(&file, &text)
}

fn parsed(file: &str, text: &str) -> Result<Manifest, Error> {
    Manifest::parse(file, text).map_err(|errors| inputs::problems(file, &errors))
}

/// The set of rows with shaken input of a set of rows.
#[pyfunction]
pub(crate) fn shaken_set(set: &str) -> String {
    shaken::shaken_set(set)
}

/// Every exit code of the command line with its meaning.
#[pyfunction]
pub(crate) fn exit_codes() -> Vec<(u8, &'static str)> {
    TABLE.iter().map(|(exit, meaning)| (exit.code(), *meaning)).collect()
}

/// Runs the command line in this process, and returns its exit code. `program` starts it again.
#[pyfunction]
pub(crate) fn main(py: Python<'_>, arguments: Vec<OsString>, program: Option<PathBuf>) -> u8 {
    py.detach(|| powersweep_cli::main(arguments, program))
}
