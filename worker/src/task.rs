//! One task: its inputs, and its simulation within limits.
//!
//! [`Inputs::prepare`] gives a task its workload, the signals of its manifest and the module of its policy;
//! [`Prepared::run`] simulates it. The slots of a worker, `powersweep simulate` and `powersweep verify` call both. Where
//! files come from is the caller's ([`FileSource`]), and so are the row and its times.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use powersweep_engine::energy::EnergySplit;
use powersweep_engine::wasm::Module;
use powersweep_engine::workload::swf::SwfError;
use powersweep_engine::workload::{LogFormat, Workload, WorkloadError};
use powersweep_engine::{Account, Details, Limits, Measured, Role, SimError, SimSpec, simulate};
use powersweep_experiments::{Digest, Manifest, Sweep, Tables, TaskSpec};
use powersweep_inputs::ReadError;
use powersweep_inputs::library::ParsedLogs;
use powersweep_inputs::signals::{Accounts, Loaded, PlaceError};

use crate::options::TaskLimits;

/// Gives the content of files.
pub trait FileSource {
    /// The content of a file that a task names. `format`: that of a log, none for another file.
    ///
    /// # Errors
    /// [`TaskError::File`], and [`TaskError::Stopped`].
    fn bytes(&self, format: Option<&'static LogFormat>, name: &str, digest: &Digest) -> Result<Vec<u8>, TaskError>;
}

/// Why a task has no row.
#[derive(Debug, Clone, thiserror::Error)]
pub enum TaskError {
    /// It was told to stop. Retryable.
    #[error("stopped")]
    Stopped,
    /// A file could not be had. Retryable.
    #[error("cannot get the file `{file}` ({digest}): {reason}")]
    File {
        /// Its name in the manifest.
        file: String,
        /// SHA-256 of the wanted content.
        digest: Digest,
        /// The reason for people.
        reason: String,
    },
    /// The log does not follow its format. Final.
    #[error(transparent)]
    Log(#[from] SwfError),
    /// The rules leave no workload, or it would be too large. Final.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The file of a signal cannot be read. Final.
    #[error(transparent)]
    Signal(#[from] ReadError),
    /// A signal does not fit the workload. Final.
    #[error(transparent)]
    Place(Box<PlaceError>),
    /// A file is no policy module, or this build cannot run one. Final.
    #[error("{0}")]
    Module(SimError),
    /// The simulation ended without a result. Its error says whether that is final.
    #[error("{message}")]
    Simulation {
        /// The engine's error.
        error: SimError,
        /// The error, with the limit of the task that was exceeded.
        message: String,
    },
}

impl From<PlaceError> for TaskError {
    fn from(error: PlaceError) -> TaskError {
        TaskError::Place(Box::new(error))
    }
}

/// Signals and modules of the tasks of one manifest, for all threads: each file is read once, at the first task that needs
/// it.
#[derive(Debug, Default)]
pub struct Inputs {
    /// Names the signals; none for a task without a manifest.
    sweep: Option<Sweep>,
    read: Mutex<ReadSignals>,
    /// Modules by name.
    modules: Mutex<BTreeMap<String, Result<Arc<Module>, SimError>>>,
}

#[derive(Debug, Default)]
struct ReadSignals {
    loaded: Option<Arc<Vec<Loaded>>>,
    /// By the calendar time at which workloads begin.
    placed: BTreeMap<Option<i64>, Arc<Accounts>>,
}

impl Inputs {
    /// The inputs of the tasks of a sweep.
    pub fn of(sweep: &Sweep) -> Inputs {
        Inputs { sweep: Some(sweep.clone()), ..Inputs::default() }
    }

    /// Adds a module that is no file: specs name it by its own name.
    pub fn with_module(mut self, module: &Arc<Module>) -> Inputs {
        let modules = self.modules.get_mut().unwrap_or_else(PoisonError::into_inner);
        modules.insert(module.name().to_owned(), Ok(Arc::clone(module)));
        self
    }

    /// Makes a task ready to run. `logs` keeps parsed logs and workloads for other tasks.
    ///
    /// # Errors
    /// All but [`TaskError::Simulation`].
    pub fn prepare(
        &self,
        mut task: TaskSpec,
        logs: &ParsedLogs,
        files: &dyn FileSource,
    ) -> Result<Prepared, TaskError> {
        let log = task.log.as_deref().unwrap_or_default();
        let workload = logs.workload(&task.sim, task.digest, log, || {
            let format = LogFormat::of(task.sim.choice(Role::Source));
            match task.digest.as_ref().zip(format) {
                Some((digest, format)) => files.bytes(Some(format), log, digest),
                None => Ok(Vec::new()),
            }
        })?;
        let accounts = self.accounts(&workload, files)?;
        let accounts = accounts.map(|accounts| accounts.of_task(&task.sim));
        if let Some(accounts) = &accounts {
            accounts.place(&mut task.sim);
        }
        self.place_module(&mut task.sim, files)?;
        Ok(Prepared { task, workload, accounts })
    }

    /// The signals on the time of a workload; `None` without signals.
    fn accounts(&self, workload: &Workload, files: &dyn FileSource) -> Result<Option<Arc<Accounts>>, TaskError> {
        let Some(sweep) = self.sweep.as_ref().filter(|sweep| sweep.manifest().tables().accounts) else {
            return Ok(None);
        };
        let signals = sweep.manifest().signals();
        let start_s = workload.unix_start_s.filter(|_| signals.iter().any(|signal| signal.anchor_s.is_none()));
        // The lock is held while files are read, so that one thread reads them for all.
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(placed) = read.placed.get(&start_s) {
            return Ok(Some(Arc::clone(placed)));
        }
        let loaded = match &read.loaded {
            Some(loaded) => Arc::clone(loaded),
            None => Arc::clone(read.loaded.insert(Arc::new(load(sweep, files)?))),
        };
        let placed = Arc::new(Accounts::new(&loaded, start_s)?);
        read.placed.insert(start_s, Arc::clone(&placed));
        Ok(Some(placed))
    }

    /// Gives a spec the module that its policy names, if it names one.
    fn place_module(&self, sim: &mut SimSpec, files: &dyn FileSource) -> Result<(), TaskError> {
        // The search for the name costs time in every task.
        let Some((id, name)) = sim.module_id().and_then(|id| Some((id, sim.module_name()?))) else { return Ok(()) };
        // The lock is held while a module is read, so that one thread reads it for all.
        let mut known = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        if !known.contains_key(name) {
            let bytes = files.bytes(None, name, &Digest::from(id))?;
            known.insert(name.to_owned(), Module::new(name, &bytes).map(Arc::new));
        }
        let module = known[name].clone().map_err(TaskError::Module)?;
        drop(known);
        sim.place_module(module);
        Ok(())
    }
}

/// Reads the files of all signals.
fn load(sweep: &Sweep, files: &dyn FileSource) -> Result<Vec<Loaded>, TaskError> {
    Loaded::all(sweep.manifest().signals(), |signal| {
        let digest = sweep.signal_digest(signal).expect("a sweep has the digests of its files");
        files.bytes(None, &signal.file, &digest)
    })
}

/// A task with its inputs.
#[derive(Debug)]
pub struct Prepared {
    /// The task; its spec has its signals and its module.
    pub task: TaskSpec,
    /// Its jobs.
    pub workload: Arc<Workload>,
    /// The signals that weigh its energy; `None` for a manifest without signals.
    pub accounts: Option<Arc<Accounts>>,
}

/// The details that these tables need; lists of `details` are used again.
pub fn details_for(tables: Tables, details: &mut Details) {
    details.jobs = tables.jobs.then(|| details.jobs.take().unwrap_or_default());
    details.series = tables.series.then(|| details.series.take().unwrap_or_default());
}

/// Leaves out the points of series that a manifest does not record.
pub fn keep_recorded(manifest: &Manifest, details: &mut Details) {
    if let Some(points) = &mut details.series {
        points.retain(|point| manifest.records(point.series));
    }
}

/// The results of a task.
#[derive(Debug)]
pub struct Ran {
    /// Its metrics.
    pub measured: Measured,
    /// Its rows of the table `accounts`; `None` without signals, and for queues, which have no energy of a machine.
    pub accounts: Option<Vec<Account>>,
}

impl Prepared {
    /// Simulates the task until `stop` returns true. `details` has the optional tables that are wanted.
    ///
    /// # Errors
    /// [`TaskError::Stopped`], [`TaskError::Simulation`], and [`TaskError::Place`] for a signal that ends too early.
    pub fn run(&self, limits: &Begun, stop: &dyn Fn() -> bool, details: &mut Details) -> Result<Ran, TaskError> {
        let sim = &self.task.sim;
        details.energy = self.accounts.as_ref().map(|accounts| EnergySplit::new(accounts.edges()));
        let within = Limits {
            max_events: limits.limits.max_events.unwrap_or(u64::MAX),
            max_bytes: limits.bytes_beside(&self.workload)?,
            deadline_passed: &|| stop() || limits.is_late(),
        };
        let measured = simulate(sim, &self.workload, &within, details).map_err(|error| match error {
            SimError::Deadline if !limits.is_late() => TaskError::Stopped,
            SimError::NotCovered { key, now_s } if let Some(error) = self.not_covered(key, now_s) => error.into(),
            error => TaskError::Simulation { message: limits.exceeded(&error), error },
        })?;
        let accounts = match (&self.accounts, &details.energy, measured.jobs()) {
            (Some(signals), Some(energy), Some(summary)) => {
                Some(signals.of(sim, &energy.cells, summary.machine_procs)?)
            }
            _ => None,
        };
        Ok(Ran { measured, accounts })
    }

    /// The error of a signal that the policy reads, by the parameter that names it, with the file and calendar times.
    fn not_covered(&self, key: &str, now_s: f64) -> Option<PlaceError> {
        let label = self.task.sim.signal_labels().find(|(name, _)| *name == key)?.1;
        self.accounts.as_ref()?.not_covered(label, now_s)
    }
}

/// The limits of a task whose time has begun.
#[derive(Debug, Clone, Copy)]
pub struct Begun {
    limits: TaskLimits,
    /// Processor time of this thread at the begin. Asking for it costs a trivial task a twentieth of its own time.
    began: Option<Duration>,
}

impl TaskLimits {
    /// Begins the time of a task on this thread, which then runs it. Its inputs are ready: getting a log, which may come
    /// over a slow network, does not count.
    pub fn begin(&self) -> Begun {
        Begun { limits: *self, began: self.deadline.map(|_| processor_time()) }
    }
}

impl Begun {
    fn is_late(&self) -> bool {
        let limit = self.limits.deadline.zip(self.began);
        limit.is_some_and(|(deadline, began)| processor_time().saturating_sub(began) >= deadline)
    }

    /// Bytes that the state of a simulation may take beside its workload.
    fn bytes_beside(&self, workload: &Workload) -> Result<usize, TaskError> {
        let Some(max_bytes) = self.limits.max_bytes else { return Ok(usize::MAX) };
        let takes = workload.memory_bytes();
        max_bytes.checked_sub(takes).ok_or_else(|| {
            let jobs = workload.jobs.len();
            let message =
                format!("its workload of {jobs} jobs takes {takes} bytes of memory, a task may take {max_bytes}");
            TaskError::Simulation { error: SimError::MemoryLimit(max_bytes), message }
        })
    }

    /// The reason for which a simulation within these limits failed.
    fn exceeded(&self, error: &SimError) -> String {
        match (error, self.limits.deadline, self.limits.max_bytes) {
            (SimError::Deadline, Some(deadline), _) => format!("not finished within {} s", deadline.as_secs_f64()),
            (SimError::MemoryLimit(_), _, Some(max_bytes)) => {
                format!("its workload and the simulation's state take more than {max_bytes} bytes of memory")
            }
            _ => error.to_string(),
        }
    }
}

/// Processor time of the calling thread since it began. Deadlines count it: time in which a batch system suspended the
/// process, or gave its processor to others, is not the task's.
pub fn processor_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0))
}
