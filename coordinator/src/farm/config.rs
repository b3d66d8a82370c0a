//! Time-outs, sizes and limits of a farm.

use std::collections::BTreeSet;
use std::time::Duration;

use powersweep_experiments::{Digest, Shard, Sweep};

/// Time-outs, sizes and limits of a farm.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Interval of workers' heartbeats.
    pub heartbeat: Duration,
    /// A connected worker that sends no message for this long loses its leases.
    pub silence: Duration,
    /// A worker whose connection broke may come back for this long; then it loses its leases.
    pub absence: Duration,
    /// Work for each slot in a lease, from the measured cost of a task.
    pub lease_work: Duration,
    /// Work for each slot in a lease of a sweep with optional tables: twice the age at which a worker hands in such rows.
    pub lease_work_with_tables: Duration,
    /// Leases become smaller towards the end of a sweep, down to this work for each slot: granting a lease costs about
    /// as much as running less.
    pub lease_work_min: Duration,
    /// Maximum number of tasks that one worker holds.
    pub lease_tasks_max: u64,
    /// Failed attempts, or abrupt losses of the worker, after which a task is quarantined.
    pub attempts_max: u32,
    /// Wait before a failed task is tried again; doubled with each attempt.
    pub retry_after: Duration,
    /// Rows that make a part.
    pub part_rows: u64,
    /// Encoded bytes that make a part.
    pub part_bytes: u64,
    /// Back-pressure: no task is handed out while parts with this number of rows are being written. Otherwise the
    /// state would grow with the sweep.
    pub part_rows_waiting: u64,
    /// Age at which rows are published whatever their number, while the experiment is young.
    pub part_age: Duration,
    /// Age at which rows of an old experiment are published. In between, the age limit grows with the experiment's age.
    pub part_age_max: Duration,
    /// Drop the leases found in the state at start: their workers were threads of the process that ended (local mode).
    pub forget_leases: bool,
    /// Serve only this experiment and those submitted from now on (local mode). An experiment that an interrupted
    /// command left unfinished waits until it is submitted again.
    pub only: Option<String>,
    /// Run only the tasks of this shard of each experiment.
    pub shard: Option<Shard>,
    /// Logs that the coordinator can read from files (local mode): tasks do not wait for their upload.
    pub readable_logs: BTreeSet<Digest>,
    /// Workers send uploads to the object store themselves.
    pub direct_uploads: bool,
    /// Where the dataset is, for status.
    pub data: String,
    /// Version of this build, for status.
    pub build: String,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            heartbeat: Duration::from_secs(2),
            silence: Duration::from_secs(30),
            absence: Duration::from_secs(15),
            lease_work: Duration::from_secs(2),
            lease_work_with_tables: Duration::from_secs(10),
            lease_work_min: Duration::from_millis(200),
            lease_tasks_max: 1 << 17,
            attempts_max: 3,
            retry_after: Duration::from_secs(1),
            part_rows: 262_144,
            part_bytes: 64 << 20,
            part_rows_waiting: 2 * 262_144,
            part_age: Duration::from_secs(600),
            part_age_max: Duration::from_secs(6 * 3600),
            forget_leases: false,
            only: None,
            shard: None,
            readable_logs: BTreeSet::new(),
            direct_uploads: false,
            data: String::new(),
            build: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

impl Config {
    /// A sweep with the tasks that this farm runs.
    pub(crate) fn sharded(&self, sweep: Sweep) -> Sweep {
        if let Some(shard) = self.shard { sweep.shard(shard) } else { sweep }
    }
}
