//! The policy modules of an experiment, for all tasks of a worker.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use powersweep_engine::wasm::Module;
use powersweep_engine::{SimError, SimSpec};
use powersweep_experiments::Sweep;

use crate::logs::{LogError, Logs};

/// Modules of one experiment by name: each is fetched and compiled once.
#[derive(Debug, Default)]
pub(crate) struct Modules(Mutex<BTreeMap<String, Result<Arc<Module>, SimError>>>);

/// Why a task has no module.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ModuleError {
    /// The bytes could not be fetched.
    #[error(transparent)]
    Bytes(Box<LogError>),
    /// The bytes are no policy module, or this worker cannot run one.
    #[error(transparent)]
    Module(#[from] SimError),
}

impl Modules {
    /// Gives a spec the module that its policy names, if it names one.
    pub(crate) fn place(
        &self,
        sweep: &Sweep,
        sim: &mut SimSpec,
        logs: &Logs,
        stop: &AtomicBool,
    ) -> Result<(), ModuleError> {
        // The search for the name costs time in every task.
        let Some(name) = sim.module_id().and_then(|_| sim.module_name()) else { return Ok(()) };
        // The lock is held while a module is fetched, so that one slot fetches it for all.
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !known.contains_key(name) {
            let digest = sweep.module_digest(name).expect("a sweep has the digests of its files");
            let bytes = logs.bytes(None, &digest, name, stop).map_err(|error| ModuleError::Bytes(Box::new(error)))?;
            known.insert(name.to_owned(), Module::new(name, &bytes).map(Arc::new));
        }
        let module = known[name].clone()?;
        drop(known);
        sim.place_module(module);
        Ok(())
    }
}
