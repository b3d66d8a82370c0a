//! The signals of an experiment, for all tasks of a worker.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use powersweep_engine::workload::Workload;
use powersweep_experiments::Sweep;
use powersweep_inputs::signals::{Accounts, Loaded};

use crate::logs::{LogError, Logs};

/// Signals of one experiment: their files are read once, and placed once for each calendar time at which workloads begin.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    loaded: Option<Arc<Vec<Loaded>>>,
    placed: BTreeMap<Option<i64>, Arc<Accounts>>,
}

impl Signals {
    /// The signals on the time of a workload.
    pub(crate) fn accounts(
        &self,
        sweep: &Sweep,
        workload: &Workload,
        logs: &Logs,
        stop: &AtomicBool,
    ) -> Result<Arc<Accounts>, LogError> {
        let signals = sweep.manifest().signals();
        let start_s = workload.unix_start_s.filter(|_| signals.iter().any(|signal| signal.anchor_s.is_none()));
        // The lock is held while files are read, so that one slot reads them for all.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(placed) = state.placed.get(&start_s) {
            return Ok(Arc::clone(placed));
        }
        let loaded = match &state.loaded {
            Some(loaded) => Arc::clone(loaded),
            None => Arc::clone(state.loaded.insert(Arc::new(load(sweep, logs, stop)?))),
        };
        let placed = Arc::new(Accounts::new(&loaded, start_s)?);
        state.placed.insert(start_s, Arc::clone(&placed));
        Ok(placed)
    }
}

/// Reads the files of all signals.
fn load(sweep: &Sweep, logs: &Logs, stop: &AtomicBool) -> Result<Vec<Loaded>, LogError> {
    Loaded::all(sweep.manifest().signals(), |signal| {
        let digest = sweep.signal_digest(signal).expect("a sweep has the digests of its files");
        logs.bytes(None, &digest, &signal.file, stop)
    })
}
