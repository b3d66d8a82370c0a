//! Ask and tell.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use powersweep::study::{Asked, Told, Wait};
use powersweep::{DerivedOptions, Error, Manifest, Notes, RunOptions, Runtime, StudyOptions, Value, failure, inputs};
use powersweep_cli::defaults::{self, GivenPlace};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString};

use crate::calls::{Noted, exception, run};

/// A wait is divided into waits of this time, between which a signal can end it.
const SLICE: Duration = Duration::from_millis(50);

/// A study, with the threads that run its tasks if no coordinator does.
#[pyclass(frozen, module = "powersweep._native")]
pub(crate) struct Study(Arc<Inner>);

struct Inner {
    /// `None` once the study is closed.
    state: Mutex<Option<State>>,
    /// Notes that no call has returned yet. The study has a share of its own: one of the whole would keep it for ever.
    said: Arc<Mutex<Vec<String>>>,
}

struct State {
    study: powersweep::Study,
    runtime: Runtime,
    /// Points that have ended and were not taken.
    told: Vec<Told>,
}

impl Drop for Inner {
    /// Ends what runs in this process if nobody has closed the study.
    fn drop(&mut self) {
        let Some(State { study, runtime, .. }) = self.lock().take() else { return };
        // Nobody is left who could be told of an error. Other threads of Python run meanwhile.
        let end = move || drop(runtime.block_on(study.end()));
        let _ = Python::try_attach(|py| py.detach(end));
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, Option<State>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, work: impl FnOnce(&mut State) -> Result<T, Error>) -> Result<T, Error> {
        let mut state = self.lock();
        work(state.as_mut().ok_or_else(|| failure!(Usage, "the study is closed"))?)
    }

    fn pass_on(&self, notes: &Notes) {
        let said = std::mem::take(&mut *self.said.lock().unwrap_or_else(PoisonError::into_inner));
        said.iter().for_each(|note| notes.say(note));
    }
}

/// A point that has ended, as Python takes it: number, design, values, groups and failure.
type Shown = (Option<usize>, String, Py<PyDict>, Vec<(Py<PyDict>, usize, Py<PyDict>)>, Option<String>);

#[pymethods]
#[expect(clippy::too_many_arguments, reason = "keywords of Python")]
impl Study {
    #[new]
    #[pyo3(signature = (*, manifest, text, metrics, only, data, coordinator, access, insecure, traces, cache, slots,
                        replace, take_over))]
    fn new(
        py: Python<'_>,
        manifest: Option<String>,
        text: Option<String>,
        metrics: Vec<String>,
        only: Vec<String>,
        data: Option<String>,
        coordinator: Option<String>,
        access: Option<PathBuf>,
        insecure: bool,
        traces: Vec<PathBuf>,
        cache: Option<PathBuf>,
        slots: Option<usize>,
        replace: bool,
        take_over: bool,
    ) -> PyResult<Study> {
        let inner = Arc::new(Inner { state: Mutex::default(), said: Arc::default() });
        let of_study = Arc::clone(&inner);
        let work = move |_: &std::sync::atomic::AtomicBool, notes: Notes| {
            let (file, text) = match manifest {
                Some(name) => inputs::manifest_text(&name).map(|(file, text)| (file, text.into_owned()))?,
                None => ("the manifest".to_owned(), text.unwrap_or_default()),
            };
            let manifest = Manifest::parse(&file, &text).map_err(|errors| inputs::problems(&file, &errors))?;
            let library = defaults::library(traces, cache, &notes)?.with_base(inputs::folder_of(&file));
            let saying = Arc::clone(&of_study.said);
            let said = move |note: &str| {
                saying.lock().unwrap_or_else(PoisonError::into_inner).push(note.to_owned());
            };
            let place = defaults::place(GivenPlace { data, coordinator, access, insecure }, Notes::to(said))?;
            let run = RunOptions { replace, take_over, ..RunOptions::default() };
            let run = RunOptions { slots: slots.filter(|slots| *slots > 0).unwrap_or(run.slots), ..run };
            let manifest_options = DerivedOptions { file, library, run, ..DerivedOptions::default() };
            let options = StudyOptions { metrics, only, manifest: manifest_options };
            let runtime = Runtime::start()?;
            let study = runtime.block_on(place.study(&manifest, options))?;
            of_study.pass_on(&notes);
            *of_study.lock() = Some(State { study, runtime, told: Vec::new() });
            Ok(())
        };
        let ((), notes) = run(py, work)?;
        inner.said.lock().unwrap_or_else(PoisonError::into_inner).extend(notes);
        Ok(Study(inner))
    }

    /// The notes that no call has returned yet, such as notes about the manifest of the study.
    fn notes(&self) -> ((), Vec<String>) {
        ((), std::mem::take(&mut *self.0.said.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Name of the experiment.
    fn name(&self, py: Python<'_>) -> PyResult<String> {
        self.now(py, |state| Ok(state.study.name().to_owned()))
    }

    /// The designs with their ranges: parameter, unit, first and last value, whether it is logarithmic, and the values of a list.
    fn designs(&self, py: Python<'_>) -> PyResult<Py<PyList>> {
        let designs = self.now(py, |state| Ok(state.study.designs().to_vec()))?;
        let all = PyList::empty(py);
        for design in designs {
            let ranges = PyList::empty(py);
            for range in design.ranges() {
                let ends = range.ends.map(|(from, to)| Ok::<_, PyErr>((object(py, &from)?, object(py, &to)?)));
                let values =
                    range.values.map(|values| values.iter().map(|v| object(py, v)).collect::<PyResult<Vec<_>>>());
                ranges.append((range.parameter, range.unit, ends.transpose()?, range.is_log, values.transpose()?))?;
            }
            all.append((design.label(), ranges))?;
        }
        Ok(all.unbind())
    }

    /// The name of a design. Without a name, the only one.
    fn label(&self, py: Python<'_>, design: Option<String>) -> PyResult<String> {
        self.now(py, |state| Ok(state.study.design(design.as_deref())?.label().to_owned()))
    }

    /// The values at coordinates of the unit cube.
    fn at(&self, py: Python<'_>, design: Option<String>, coordinates: Vec<f64>) -> PyResult<Py<PyDict>> {
        let (names, values) = self.now(py, move |state| {
            let design = state.study.design(design.as_deref())?;
            let names: Vec<&str> = design.parameters().collect();
            match names.len() == coordinates.len() {
                true => Ok((names, design.at(&coordinates))),
                false => Err(failure!(Usage, "expected {} coordinates: of {}", names.len(), names.join(", "))),
            }
        })?;
        let of = PyDict::new(py);
        names.iter().zip(values).try_for_each(|(name, value)| of.set_item(name, object(py, &value)?))?;
        Ok(of.unbind())
    }

    /// Asks for points of a design; returns the first of their numbers.
    fn ask(&self, py: Python<'_>, points: Vec<Bound<'_, PyDict>>, design: Option<String>) -> PyResult<usize> {
        let asked = points.iter().map(|point| Ok(Asked { design: design.clone(), values: values(point)? }));
        let asked = asked.collect::<PyResult<Vec<Asked>>>()?;
        self.now(py, move |state| Ok(state.study.ask(&asked)?.start))
    }

    /// Waits until points have ended, which [`Study::take`] returns. With `least` 0, all that have ended now.
    fn tell(&self, py: Python<'_>, least: usize, limit_s: Option<f64>) -> Noted<()> {
        let inner = Arc::clone(&self.0);
        let work = move |stop: &std::sync::atomic::AtomicBool, notes: Notes| {
            let told = inner.with(|state| {
                let limit = limit_s.map(|limit| Duration::try_from_secs_f64(limit.max(0.0)).unwrap_or(Duration::MAX));
                let began = std::time::Instant::now();
                loop {
                    let left = limit.map_or(SLICE, |limit| limit.saturating_sub(began.elapsed()).min(SLICE));
                    let wait = Wait { least: least.saturating_sub(state.told.len()), limit: Some(left) };
                    let found = state.runtime.block_on(state.study.tell(wait))?;
                    state.told.extend(found);
                    let is_over = limit.is_some_and(|limit| began.elapsed() >= limit);
                    if state.told.len() >= least || state.study.open_count() == 0 || is_over {
                        return Ok(());
                    }
                    if stop.load(std::sync::atomic::Ordering::Relaxed) {
                        return Err(failure!(Interrupted, "interrupted; points that have ended are told later"));
                    }
                }
            });
            inner.pass_on(&notes);
            told
        };
        run(py, work)
    }

    /// The points that have ended, each once. No signal and no warning comes between the wait and these points.
    fn take(&self, py: Python<'_>) -> PyResult<Vec<Shown>> {
        let told = self.now(py, |state| Ok(std::mem::take(&mut state.told)))?;
        shown(py, &told, &self.metrics(py)?)
    }

    /// Number of points that the study knows, of which tasks may run.
    fn count(&self, py: Python<'_>) -> PyResult<usize> {
        self.now(py, |state| Ok(state.study.points_count()))
    }

    /// All points that have ended, also those of earlier processes.
    fn ended(&self, py: Python<'_>) -> Noted<Vec<Shown>> {
        let inner = Arc::clone(&self.0);
        let work = move |_: &std::sync::atomic::AtomicBool, notes: Notes| {
            let told = inner.with(|state| state.runtime.block_on(state.study.ended()));
            inner.pass_on(&notes);
            told
        };
        let (told, notes) = run(py, work)?;
        Ok((shown(py, &told, &self.metrics(py)?)?, notes))
    }

    /// Ends what runs in this process.
    fn close(&self, py: Python<'_>) -> Noted<()> {
        let inner = Arc::clone(&self.0);
        run(py, move |_, notes| {
            let Some(State { study, runtime, .. }) = inner.lock().take() else { return Ok(()) };
            let ended = runtime.block_on(study.end());
            inner.pass_on(&notes);
            ended
        })
    }
}

impl Study {
    /// A call that needs no wait.
    fn now<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut State) -> Result<T, Error> + Send) -> PyResult<T> {
        py.detach(|| self.0.with(work)).map_err(|error| exception(py, &error, Vec::new()))
    }

    fn metrics(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.now(py, |state| Ok(state.study.metrics().to_vec()))
    }
}

fn shown(py: Python<'_>, told: &[Told], metrics: &[String]) -> PyResult<Vec<Shown>> {
    let dict = |values: &[(String, Value)]| {
        let of = PyDict::new(py);
        values.iter().try_for_each(|(name, value)| of.set_item(name, object(py, value)?))?;
        PyResult::Ok(of.unbind())
    };
    let one = |told: &Told| {
        let groups = told.groups.iter().map(|group| {
            let means = PyDict::new(py);
            metrics.iter().zip(&group.means).try_for_each(|(name, mean)| means.set_item(name, mean))?;
            Ok((dict(&group.group.0)?, group.seeds, means.unbind()))
        });
        let groups = groups.collect::<PyResult<_>>()?;
        Ok((told.number, told.design.clone(), dict(&told.values.0)?, groups, told.failure.clone()))
    };
    told.iter().map(one).collect()
}

/// A value as Python has it.
fn object(py: Python<'_>, value: &Value) -> PyResult<Py<PyAny>> {
    Ok(match value {
        Value::Bool(value) => PyBool::new(py, *value).to_owned().into_any().unbind(),
        Value::Int(value) => value.into_pyobject(py)?.into_any().unbind(),
        Value::Real(value) => PyFloat::new(py, *value).into_any().unbind(),
        Value::Text(value) => PyString::new(py, value).into_any().unbind(),
        Value::Reals(values) => values.to_vec().into_pyobject(py)?.into_any().unbind(),
    })
}

/// The values of a point.
fn values(point: &Bound<'_, PyDict>) -> PyResult<Vec<(String, Value)>> {
    let value = |(name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        let name: String = name.extract()?;
        // A number of NumPy.
        let value = if value.hasattr("item")? { value.call_method0("item").unwrap_or(value) } else { value };
        let value = if value.is_instance_of::<PyBool>() {
            Value::Bool(value.extract()?)
        } else if value.is_instance_of::<PyInt>() {
            Value::Int(value.extract()?)
        } else if value.is_instance_of::<PyFloat>() {
            Value::Real(value.extract()?)
        } else if value.is_instance_of::<PyString>() {
            Value::Text(value.extract()?)
        } else {
            let of = value.get_type().name()?;
            return Err(PyTypeError::new_err(format!(
                "`{name}` has a value of type {of}: expected a number, text or bool"
            )));
        };
        Ok((name, value))
    };
    point.iter().map(value).collect()
}
