//! What a batch system's queue says about an allocation.

use serde::{Deserialize, Serialize};

use crate::Seconds;

/// One line of the queue.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Entry {
    /// The allocation's name, such as 4711_3.
    pub name: String,
    /// The state in the batch system's word.
    pub state: String,
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
