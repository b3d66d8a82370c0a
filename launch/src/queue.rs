//! What a batch system's queue says about an allocation.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::Seconds;

/// One line of the queue.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Entry {
    /// The allocation's name, such as 4711_3.
    pub name: String,
    /// The batch system's name of it, for its commands.
    pub id: String,
    /// The state in the batch system's word.
    pub state: String,
    /// The meaning of the state; `None` if this build does not know it.
    pub phase: Option<Phase>,
    /// Its nodes; empty before the start.
    pub nodes: String,
    /// When it started or is expected to.
    pub started_at: Option<Seconds>,
    /// When it ended or will at the latest.
    pub ends_at: Option<Seconds>,
    /// Why it waits.
    pub reason: String,
    /// The exit code with which the shell could not start the program: a fault of no node.
    pub cannot_start: Option<u8>,
}

/// An answer that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{command} answered {line:?}, which has not the asked form")]
pub struct AnswerError {
    /// The command.
    pub command: &'static str,
    /// The line.
    pub line: String,
}

impl AnswerError {
    /// A line of a command's answer that has another form.
    pub(crate) fn of(command: &'static str, line: &str) -> AnswerError {
        AnswerError { command, line: line.chars().take(200).collect() }
    }
}

/// Keeps the greetings of a site, which stand beside the lines that were asked for, to tell them from errors later.
///
/// # Errors
/// Allocations are expected, nothing that was asked for is there, and a line is no known greeting: it may be an error in the
/// place of an answer.
pub(crate) fn greeted(
    command: &'static str,
    others: Vec<&str>,
    is_answered: bool,
    banners: &mut BTreeSet<String>,
    is_expected: bool,
) -> Result<(), AnswerError> {
    match others.iter().find(|line| !is_answered && is_expected && !banners.contains(**line)) {
        Some(line) => return Err(AnswerError::of(command, line)),
        None if is_answered => banners.extend(others.into_iter().map(str::to_owned)),
        None => {}
    }
    Ok(())
}

/// What a cluster allows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// Name of the cluster.
    pub cluster: Option<String>,
    /// Version of the batch system.
    pub version: Option<String>,
    /// Maximum number of elements of an array job.
    pub max_array: Option<u64>,
    /// What happens to a preempted job of Slurm: OFF, CANCEL, REQUEUE, SUSPEND.
    pub preempt_mode: Option<String>,
}

/// The meaning of a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// Submitted, and not seen in the queue yet.
    Submitted,
    /// It waits for nodes, also after a requeue.
    Queued,
    /// It has nodes, also while it is suspended.
    Running,
    /// It ended, and the reason is no fault of its worker: the limit, a preemption, a lost node, a cancellation.
    Ended,
    /// Its worker failed.
    Failed,
}

impl Phase {
    /// The meaning of a state of Slurm; `None` for a state that this build does not know.
    pub fn of_slurm(state: &str) -> Option<Phase> {
        // Sites append reasons: "CANCELLED by 1000".
        let word = state.split_whitespace().next().unwrap_or_default().trim_end_matches('+');
        Some(match word {
            "PENDING" | "CONFIGURING" | "REQUEUED" | "REQUEUE_FED" | "REQUEUE_HOLD" | "SPECIAL_EXIT"
            | "RESV_DEL_HOLD" => Phase::Queued,
            "RUNNING" | "COMPLETING" | "SUSPENDED" | "STOPPED" | "RESIZING" | "SIGNALING" | "STAGE_OUT" => {
                Phase::Running
            }
            "COMPLETED" | "TIMEOUT" | "PREEMPTED" | "CANCELLED" | "NODE_FAIL" | "BOOT_FAIL" | "DEADLINE"
            | "REVOKED" => Phase::Ended,
            "FAILED" | "OUT_OF_MEMORY" | "LAUNCH_FAILED" | "RECONFIG_FAIL" => Phase::Failed,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_that_are_no_fault_of_a_worker_are_told_from_failures() {
        for state in ["TIMEOUT", "PREEMPTED", "CANCELLED by 1000", "NODE_FAIL", "BOOT_FAIL", "DEADLINE", "COMPLETED"] {
            assert_eq!(Phase::of_slurm(state), Some(Phase::Ended), "{state}");
        }
        assert_eq!(Phase::of_slurm("REQUEUED"), Some(Phase::Queued));
        for state in ["SUSPENDED", "RESIZING"] {
            assert_eq!(Phase::of_slurm(state), Some(Phase::Running));
        }
        assert_eq!(Phase::of_slurm("FAILED"), Some(Phase::Failed));
        assert_eq!(Phase::of_slurm("HIBERNATING"), None);
        assert_eq!(Phase::of_slurm(""), None);
    }
}
