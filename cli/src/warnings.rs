//! Warnings about a sweep before it runs, and the workloads that they need.

use std::sync::Arc;

use powersweep_engine::batch::physics::Demand;
use powersweep_engine::workload::Workload;
use powersweep_experiments::{Sweep, TaskSpec, Warning};
use powersweep_inputs::library::ParsedLogs;
use powersweep_worker::task::TaskError;
use serde_json::{Value as Json, json};

use crate::screen;

/// Memory for the parsed logs of a manifest in commands that run no task (bytes).
pub const LOGS_BYTES: usize = 1 << 30;

/// Warnings shown; the others are counted.
const SHOWN: usize = 12;

/// The workload of a task, if its log is among the parsed ones and it can be built: if not, the worker that runs the task
/// reports why.
pub fn workload(task: &TaskSpec, logs: &ParsedLogs) -> Option<Arc<Workload>> {
    let log = task.log.as_deref().unwrap_or_default();
    logs.workload(&task.sim, task.digest, log, || Err(TaskError::Stopped)).ok()
}

/// The warnings about a sweep whose logs are parsed.
pub fn of(sweep: &Sweep, logs: &ParsedLogs) -> Vec<Warning> {
    sweep.warnings(|task| Some(Demand::of(&*workload(task, logs)?)))
}

/// The warnings as text; empty without one. `file`: the manifest as the user named it.
pub fn text(warnings: &[Warning], file: &str) -> String {
    let mut lines: Vec<String> = warnings.iter().take(SHOWN).map(|warning| warning.text(file)).collect();
    let more = warnings.len().saturating_sub(SHOWN);
    if more > 0 {
        lines.push(format!("… and {}", screen::count(more as u64, "more warning")));
    }
    lines.join("\n")
}

/// Prints the warnings to standard error.
pub fn note(warnings: &[Warning], file: &str) {
    if !warnings.is_empty() {
        screen::note(&text(warnings, file));
    }
}

/// The warnings for programs.
pub fn json(warnings: &[Warning]) -> Vec<Json> {
    let one = |warning: &Warning| {
        json!({ "kind": warning.kind.name(), "line": warning.line, "block": warning.block, "message": warning.message,
                "help": warning.help, "combinations_found": warning.found, "combinations_checked": warning.checked,
                "first_index": warning.first_index })
    };
    warnings.iter().map(one).collect()
}
