//! Allocations of a batch system for workers: how many to ask for, when, and what became of them.
//!
//! [`Fleet`] decides; it starts no process and owns no clock. [`slurm`] and [`pbs`] write scripts for a batch system and read
//! its answers. The program that runs the commands is `powersweep launch`.

mod back_off;
mod fleet;
mod job;
pub mod pbs;
mod queue;
mod site;
pub mod slurm;
mod want;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use back_off::{BackOff, Pause};
pub use fleet::{Allocation, Counters, Fleet, Notes};
pub use job::{Request, WorkerJob};
pub use queue::{AnswerError, Entry, Facts, Phase};
pub use site::{JobSite, Site, SiteError};
pub use want::{Need, Room, Want};

/// Seconds since 1970 in UTC. The state of a launcher outlives its process and its machine, so that no monotonic clock
/// serves. A jump of the clock asks for an allocation early or late.
pub type Seconds = u64;

/// The batch systems for which allocations can be asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum System {
    /// Slurm.
    #[default]
    Slurm,
    /// OpenPBS and PBS Professional.
    Pbs,
}

impl System {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            System::Slurm => "Slurm",
            System::Pbs => "PBS",
        }
    }

    /// The command that submits a job.
    pub fn submits_by(self) -> &'static str {
        match self {
            System::Slurm => "sbatch",
            System::Pbs => "qsub",
        }
    }

    /// A time limit as its users write it.
    ///
    /// # Errors
    /// The text is no such time.
    pub fn time_limit(self, text: &str) -> Result<Duration, String> {
        match self {
            System::Slurm => slurm::time_limit(text),
            System::Pbs => pbs::time_limit(text),
        }
    }
}
