//! Policies that are objects of Python.

use std::sync::{Arc, Mutex, PoisonError};

use powersweep::simulate::{Module, NO_ARRIVAL, Pass, Scheduler};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// The first exception of a policy.
#[derive(Clone, Default)]
pub(crate) struct Raised(Arc<Mutex<Option<PyErr>>>);

impl Raised {
    /// The error of a call with the exception as its cause, so that a traceback shows the line of the policy.
    pub(crate) fn cause(&self, py: Python<'_>, error: PyErr) -> PyErr {
        let raised = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if raised.is_some() {
            error.set_cause(py, raised);
        }
        error
    }
}

/// An object with a method `schedule`.
struct PythonScheduler {
    object: Py<PyAny>,
    raised: Raised,
}

/// The policy of an object, by the name of its class. Its first exception goes to `raised`.
pub(crate) fn policy(object: &Bound<'_, PyAny>, raised: &Raised) -> PyResult<Arc<Module>> {
    let class = object.get_type().name()?;
    if !object.hasattr("schedule")? {
        let message = format!(
            "the scheduler is of type {class}, which has no method `schedule`: derive it from powersweep.Scheduler"
        );
        return Err(PyTypeError::new_err(message));
    }
    let scheduler = PythonScheduler { object: object.clone().unbind(), raised: raised.clone() };
    Ok(Arc::new(Module::in_process(&format!("python:{class}"), Box::new(scheduler))))
}

impl Scheduler for PythonScheduler {
    fn schedule(&self, pass: &Pass) -> Result<Vec<u32>, String> {
        let answer = Python::try_attach(|py| {
            self.answer(py, pass).map_err(|error| {
                let reason = format!("raised {error}");
                self.raised.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                reason
            })
        });
        answer.unwrap_or_else(|| Err("cannot be called: the interpreter ends".to_owned()))
    }
}

impl PythonScheduler {
    fn answer(&self, py: Python<'_>, pass: &Pass) -> PyResult<Vec<u32>> {
        let types = py.import("powersweep._scheduler")?;
        let (waiting_job, release) = (types.getattr("WaitingJob")?, types.getattr("Release")?);
        let waiting = pass.waiting.iter().map(|job| {
            waiting_job.call1((job.submit_s, job.estimate_s, job.procs, job.priority, job.job_class, job.arrival))
        });
        let waiting = PyTuple::new(py, waiting.collect::<PyResult<Vec<_>>>()?)?;
        let releases = pass
            .releases
            .iter()
            .map(|of| release.call1((of.at_s, of.procs, Some(of.arrival).filter(|arrival| *arrival != NO_ARRIVAL))));
        let releases = PyTuple::new(py, releases.collect::<PyResult<Vec<_>>>()?)?;
        let state = (pass.now_s, pass.machine_procs, pass.free_procs, waiting, releases);
        let answer = self.object.bind(py).call_method1("schedule", (types.getattr("State")?.call1(state)?,))?;
        let positions = answer.try_iter().map_err(|_| not_positions(&answer))?;
        positions.map(|at| at?.extract().map_err(|_| not_positions(&answer))).collect()
    }
}

/// The exception for an answer of `schedule` that is no list of positions.
fn not_positions(answer: &Bound<'_, PyAny>) -> PyErr {
    let shown = answer.repr().map_or_else(|_| "something else".to_owned(), |text| text.to_string());
    PyValueError::new_err(format!("`schedule` returned {shown}: expected positions in `state.waiting`, from 0"))
}
