//! The record of an owner, and what it says about the owner's process.

use powersweep_proto::clocks::now_us;
use rustix::process::{Pid, test_kill_process};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The owner of DATA.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnerRecord {
    /// This opening of DATA.
    pub uuid: Uuid,
    /// Address of its gRPC service; empty until it listens.
    pub endpoint: String,
    /// Process id.
    pub pid: u32,
    /// Host name.
    pub host: String,
    /// The boot of the system and the name space that `pid` belongs to; empty where they are unknown.
    #[serde(default)]
    pub processes: String,
    /// Last renewal by the owner's clock, microseconds since 1970 UTC. For people only: no decision depends on it.
    pub renewed_us: i64,
}

impl OwnerRecord {
    /// A record of this process, for a new opening.
    pub(super) fn of_this_process(endpoint: &str) -> OwnerRecord {
        OwnerRecord {
            uuid: Uuid::now_v7(),
            endpoint: endpoint.to_owned(),
            pid: std::process::id(),
            host: host(),
            processes: processes(),
            renewed_us: now_us(),
        }
    }

    /// The owner in words, for messages.
    pub(super) fn describe(&self) -> String {
        let at =
            if self.endpoint.is_empty() { "not listening yet".to_owned() } else { format!("at {}", self.endpoint) };
        format!("{at}, process {} on {}", self.pid, self.host)
    }

    /// Whether its process belonged to this system's boot and name space and has ended. No other observation proves
    /// that: a silent owner may be behind a broken network.
    pub(super) fn has_provably_ended(&self) -> bool {
        let here = processes();
        !here.is_empty() && self.processes == here && has_ended(self.pid)
    }

    /// Whether its process belonged to this system's boot, in whatever name space.
    pub(super) fn is_of_this_boot(&self) -> bool {
        boot(&self.processes).is_some_and(|boot_id| boot(&processes()) == Some(boot_id))
    }
}

/// Whether this name space has no process of this number. One of another user counts as alive, also where `/proc` hides
/// it: only the kernel's "no such process" is a proof.
fn has_ended(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) == Err(rustix::io::Errno::SRCH))
}

/// The boot's id in [`OwnerRecord::processes`].
fn boot(processes: &str) -> Option<&str> {
    processes.split(' ').next().filter(|id| !id.is_empty())
}

/// The name of this machine; empty if the system does not tell.
pub fn host() -> String {
    let from_kernel = std::fs::read_to_string("/proc/sys/kernel/hostname").map(|name| name.trim().to_owned());
    from_kernel.ok().filter(|name| !name.is_empty()).or_else(|| std::env::var("HOSTNAME").ok()).unwrap_or_default()
}

/// The id of the system's boot and this process's name space of process ids; empty where they cannot be read.
fn processes() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok();
    let space = std::fs::read_link("/proc/self/ns/pid").ok();
    boot.zip(space).map_or_else(String::new, |(boot, space)| format!("{} {}", boot.trim(), space.display()))
}
