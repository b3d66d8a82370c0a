//! Allocations of a batch system for workers: how many to ask for, when, and what became of them.
//!
//! [`Fleet`] decides; it starts no process and owns no clock. [`slurm`] writes scripts for Slurm and reads its answers.
//! The program that runs the commands is `powersweep launch`.

mod back_off;
mod fleet;
mod queue;
mod site;
pub mod slurm;
mod want;

pub use back_off::{BackOff, Pause};
pub use fleet::{Allocation, Counters, Fleet, Notes};
pub use queue::{Entry, Phase};
pub use site::{Site, SiteError, SlurmSite};
pub use want::{Need, Room, Want};

/// Seconds since 1970 in UTC. The state of a launcher outlives its process and its machine, so that no monotonic clock
/// serves. A jump of the clock asks for an allocation early or late.
pub type Seconds = u64;
