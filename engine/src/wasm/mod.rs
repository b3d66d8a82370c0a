//! Policies as WebAssembly modules: the interface between the engine and a module, and the limits of a module.
//!
//! **Interface, version 1.** All numbers are little-endian. A module imports nothing and exports
//!
//! - `memory`: its memory
//! - `powersweep_v1_input(bytes: i32) -> i32`: an address with room for an input of this size
//! - `powersweep_v1_schedule(input: i32) -> i32`: one scheduling pass. The function writes the waiting jobs that start,
//!   by position, in the order of their starts, to the answer, and returns their number.
//!
//! The input is a [`Pass`]: a header of 40 bytes, the waiting jobs in queue order, the releases in the order of their instants,
//! and room for the answer.
//!
//! | bytes | type | header |
//! |---|---|---|
//! | 0 | f64 | the present instant (s) |
//! | 8 | u32 | procs of the machine |
//! | 12 | u32 | procs that a job can take now |
//! | 16 | u32 | number of waiting jobs |
//! | 20 | u32 | number of releases |
//! | 24 | u32 | offset of the waiting jobs from the input's address |
//! | 28 | u32 | offset of the releases |
//! | 32 | u32 | offset of the answer, which has room for a u32 for each waiting job |
//! | 36 | u32 | size of the input (bytes) |
//!
//! | bytes | type | waiting job (32 bytes) |
//! |---|---|---|
//! | 0 | f64 | submit instant (s) |
//! | 8 | f64 | estimated run time at the gear that the gear rule gives it now (s) |
//! | 16 | u32 | procs |
//! | 20 | u32 | priority; 1 is the highest |
//! | 24 | u32 | class of the job, from 1 |
//! | 28 | u32 | position in the order of arrival, from 0 |
//!
//! | bytes | type | release (16 bytes) |
//! |---|---|---|
//! | 0 | f64 | estimated end of a running job, now if it has outlived its estimate; or the instant at which procs wake (s) |
//! | 8 | u32 | procs that become free |
//! | 12 | u32 | position of the running job in the order of arrival; 4294967295 for procs that wake |
//!
//! **A pass is a function of its input.** Before every pass, memory and globals are those of a new instance: a module keeps
//! nothing from one pass to the next. So a run can be copied at every instant, and a pass can be repeated alone.
//!
//! **The same bits everywhere.** The interpreter has one form of NaN, no vector instructions, no threads, and no import that
//! could bring in a clock. It counts fuel: about a unit for each instruction, 13 to 23 for a store, and one for every 64 bytes of
//! the memory with which an instance begins. After every few thousand units, the caller's deadline is looked at.
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::SimError;

#[cfg(feature = "wasm")]
mod host;
#[cfg(not(feature = "wasm"))]
#[path = "absent.rs"]
mod host;
#[cfg(feature = "wasm")]
mod input;
#[cfg(feature = "wasm")]
mod prepare;
#[cfg(feature = "wasm")]
mod writes;

/// Greatest size of a module (bytes).
pub const MODULE_BYTES_MAX: usize = 1 << 20;

/// Greatest memory of a module (bytes).
pub const MEMORY_BYTES_MAX: usize = 64 << 20;

/// The exported function that returns an address for the input.
pub const INPUT: &str = "powersweep_v1_input";

/// The exported function that schedules.
pub const SCHEDULE: &str = "powersweep_v1_schedule";

/// The arrival of a release of procs that wake.
pub const NO_ARRIVAL: u32 = u32::MAX;

/// A policy in the process of the simulation, such as an object of another language, with the interface of modules.
pub trait Scheduler: Send + Sync {
    /// One scheduling pass: positions of the waiting jobs that start, in the order of their starts.
    ///
    /// # Errors
    /// A sentence without its subject, the policy.
    fn schedule(&self, pass: &Pass) -> Result<Vec<u32>, String>;
}

/// What decides.
enum Program {
    Module(host::Program),
    InProcess(Box<dyn Scheduler>),
}

/// A policy module: checked, compiled, and shared by the runs that use it.
pub struct Module {
    name: String,
    program: Program,
    /// Maximum fuel that one pass has used. Nothing that is simulated depends on it.
    fuel_most: AtomicU64,
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Module").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Module {
    /// Checks and compiles a module. `name`: what messages call it. No code of the module runs.
    ///
    /// # Errors
    /// [`SimError::Invalid`] for bytes that are no module of this interface, and in a build without the feature `wasm`.
    pub fn new(name: &str, bytes: &[u8]) -> Result<Module, SimError> {
        let invalid = |reason: String| SimError::Invalid(format!("the module `{name}` {reason}"));
        if bytes.len() > MODULE_BYTES_MAX {
            return Err(invalid(format!("has {} bytes, more than {MODULE_BYTES_MAX}", bytes.len())));
        }
        let program = host::Program::new(bytes).map_err(invalid)?;
        Ok(Module { name: name.to_owned(), program: Program::Module(program), fuel_most: AtomicU64::new(0) })
    }

    /// A policy of this process in the place of a module. Nothing limits the time of a pass, and nothing checks that it is a function of
    /// its input. `name`: what messages call it.
    pub fn in_process(name: &str, scheduler: Box<dyn Scheduler>) -> Module {
        Module { name: name.to_owned(), program: Program::InProcess(scheduler), fuel_most: AtomicU64::new(0) }
    }

    /// What messages call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is a module or a policy of this process, in a word.
    pub(crate) fn noun(&self) -> &'static str {
        match self.program {
            Program::Module(_) => "module",
            Program::InProcess(_) => "policy",
        }
    }

    /// Maximum fuel that one pass has used so far, over all runs.
    pub fn fuel_most(&self) -> u64 {
        self.fuel_most.load(Ordering::Relaxed)
    }

    /// Runs one pass: the positions of the jobs that start, and the fuel used. Neither depends on earlier passes in this
    /// session.
    ///
    /// # Errors
    /// A sentence without its subject, the module. The positions are in range, and each is there once.
    pub fn schedule(&self, session: &Session, pass: &Pass, budget: &Budget<'_>) -> Result<(Vec<u32>, u64), Fault> {
        let (starts, fuel_used) = match &self.program {
            Program::Module(program) => program.schedule(&mut session.0.borrow_mut(), pass, budget)?,
            // A pass cannot be interrupted, and may take long.
            Program::InProcess(_) if (budget.deadline_passed)() => return Err(Fault::Deadline),
            Program::InProcess(scheduler) => (scheduler.schedule(pass).map_err(Fault::Wrong)?, 0),
        };
        self.fuel_most.fetch_max(fuel_used, Ordering::Relaxed);
        let mut known = vec![false; pass.waiting.len()];
        for &at in &starts {
            match known.get_mut(at as usize) {
                None => {
                    let waiting = pass.waiting.len();
                    return Err(Fault::Wrong(format!(
                        "starts the waiting job at position {at}, and {waiting} jobs wait (positions count from 0)"
                    )));
                }
                Some(started) if *started => {
                    return Err(Fault::Wrong(format!("starts the waiting job at position {at} twice")));
                }
                Some(started) => *started = true,
            }
        }
        Ok((starts, fuel_used))
    }
}

/// The instance of a module that the next pass of a task uses again, with its memory. A session is for one module; clones share it.
#[derive(Clone, Default)]
pub struct Session(Rc<RefCell<Option<host::Instance>>>);

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}

/// The limits of one pass.
pub struct Budget<'a> {
    /// Units of fuel.
    pub fuel: u64,
    /// Whether the caller's deadline has passed: `true` ends the pass with [`Fault::Deadline`].
    pub deadline_passed: &'a dyn Fn() -> bool,
}

/// Why a module gave no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// It used all its fuel.
    OutOfFuel,
    /// The deadline passed.
    Deadline,
    /// What it did, as a sentence without its subject.
    Wrong(String),
}

/// What a module sees of one scheduling pass.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Pass {
    /// The present instant (s).
    pub now_s: f64,
    /// Procs of the machine.
    pub machine_procs: u32,
    /// Procs that a job can take now.
    pub free_procs: u32,
    /// The waiting jobs, in queue order.
    pub waiting: Vec<Waiting>,
    /// Running jobs by estimated end, and procs that wake; in order of their instants, ties by arrival.
    pub releases: Vec<Release>,
}

/// A waiting job, as a module sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Waiting {
    /// Submit instant (s).
    pub submit_s: f64,
    /// Estimated run time at the gear of the gear rule (s).
    pub estimate_s: f64,
    /// Procs.
    pub procs: u32,
    /// Priority; 1 is the highest.
    pub priority: u32,
    /// Class, from 1.
    pub job_class: u32,
    /// Position in the order of arrival, from 0.
    pub arrival: u32,
}

/// Procs that become free.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Release {
    /// The estimated instant, not before now (s).
    pub at_s: f64,
    /// Procs.
    pub procs: u32,
    /// Position of the running job in the order of arrival; [`NO_ARRIVAL`] for procs that wake.
    pub arrival: u32,
}
