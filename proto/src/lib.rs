//! The protocol: protobuf messages, generated code, connections. All crates share its lease ids and kinds of failures.

use std::fmt;

pub mod access;
pub mod client;
pub mod clocks;
mod plain;

pub use plain::{is_plain_name, plain};

/// Messages, client and server of package `powersweep.v1`, generated from `farm.proto` by `cargo xtask docs`.
#[allow(missing_docs, unreachable_pub, clippy::all, clippy::unwrap_used)]
pub mod v1 {
    include!("generated/powersweep.v1.rs");
    /// Encoded file descriptors, for reflection.
    pub const DESCRIPTORS: &[u8] = include_bytes!("generated/descriptors.bin");
}

impl fmt::Display for v1::LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.epoch, self.counter)
    }
}

impl v1::FailureKind {
    /// The kind in the `failures` table and on the command line.
    pub fn word(self) -> &'static str {
        match self {
            v1::FailureKind::Unspecified => "unknown",
            v1::FailureKind::Spec => "spec",
            v1::FailureKind::Panic => "panic",
            v1::FailureKind::Deadline => "deadline",
            v1::FailureKind::Events => "events",
            v1::FailureKind::Memory => "memory",
            v1::FailureKind::Policy => "policy",
            v1::FailureKind::Workload => "workload",
            v1::FailureKind::Crash => "crash",
        }
    }

    /// Every kind that an attempt can have.
    pub fn all() -> impl Iterator<Item = v1::FailureKind> {
        (1..).map_while(|number| v1::FailureKind::try_from(number).ok())
    }

    /// Whether another attempt would fail in the same way.
    pub fn is_final(self) -> bool {
        matches!(self, v1::FailureKind::Spec | v1::FailureKind::Policy)
    }
}

impl v1::ExperimentState {
    /// The state in `status`.
    pub fn word(self) -> &'static str {
        match self {
            v1::ExperimentState::Unspecified => "unknown",
            v1::ExperimentState::Waiting => "waiting",
            v1::ExperimentState::Running => "running",
            v1::ExperimentState::Finished => "finished",
            v1::ExperimentState::Failed => "failed",
            v1::ExperimentState::Paused => "paused",
            v1::ExperimentState::Cancelled => "cancelled",
            v1::ExperimentState::Leaving => "leaving",
        }
    }
}

/// Newest version of the protocol that this build speaks: raised when an older peer could misunderstand a message.
pub const PROTOCOL: u32 = 3;

/// Oldest version of the protocol that this build speaks.
pub const OLDEST_PROTOCOL: u32 = 3;

/// The newest version of the protocol that this build and a build of these versions speak.
///
/// # Errors
/// Both ranges in words, if they have no version in common.
pub fn common_protocol(theirs: &v1::Versions) -> Result<u32, String> {
    let newest = theirs.protocol;
    let oldest = if theirs.oldest_protocol == 0 { newest } else { theirs.oldest_protocol };
    let common = newest.min(PROTOCOL);
    if common >= oldest.max(OLDEST_PROTOCOL) {
        return Ok(common);
    }
    let words = |oldest, newest| if oldest == newest { format!("{newest}") } else { format!("{oldest} to {newest}") };
    Err(format!("protocol {} there, {} here", words(oldest, newest), words(OLDEST_PROTOCOL, PROTOCOL)))
}

/// The versions of this build: a worker sends them in `Hello`, and the coordinator compares them with an experiment's
/// pins. `tasks_schema` is the fingerprint of the `tasks` table's schema.
pub fn versions(build: &str, tasks_schema: u64) -> v1::Versions {
    let parts = powersweep_engine::components::COMPONENTS
        .iter()
        .map(|component| (powersweep_experiments::component_id(component), component.version))
        .collect();
    v1::Versions {
        build: build.to_owned(),
        kernel: powersweep_engine::KERNEL_VERSION,
        parts,
        tasks_schema,
        protocol: PROTOCOL,
        oldest_protocol: OLDEST_PROTOCOL,
    }
}
