//! Job logs of real systems, read as logs in the Standard Workload Format.
//!
//! [`read`] takes the bytes of a file and [`Settings`] and returns a [`JobLog`]: records, the names behind their numbers,
//! and a [`Ledger`], or an error that says what is wrong, where, and which setting helps. [`JobLog::swf`] writes the log.
//!
//! The path of a file: a format (`formats/`) turns each row into an [`entry::Entry`] or drops it; `build` applies the rules
//! that all formats share and numbers jobs, users and queues. Each row is kept, or dropped by one [`Rule`]; each change of
//! a kept row is counted by the rule that made it.
//!
//! This module knows no files, network, clocks or tasks. The time zones are inside it, so that a file gives the same log on
//! every machine.
//!
//! Invariants: no input makes [`read`] panic; read = kept + dropped; the engine reads every log that [`JobLog::swf`] writes,
//! and finds the same records; time and memory grow as the size of the input times its logarithm.

mod build;
mod clock;
mod entry;
mod formats;
mod ledger;
mod odd_rows;
mod settings;
mod shared;
mod written;

pub use build::{Detail, Facts, JobLog};
pub use entry::PowerSamples;
pub use ledger::{Ledger, Rule};
pub use settings::{Arrival, Format, Procs, Settings, TimeUnit};

use crate::ReadError;

/// Reads a job log. `name` is its name for messages and for the header of the log that is written.
///
/// # Errors
/// The file is not of its format, or a setting is missing or does not fit. All errors are final: the same call fails again.
pub fn read(bytes: &[u8], name: &str, settings: &Settings) -> Result<JobLog, ReadError> {
    let mut ledger = Ledger::default();
    formats::read(bytes, settings, &mut ledger)
        .map(|entries| build::build(entries, name, settings, ledger))
        .and_then(|log| log.facts.check_machine(settings).map(|()| log))
        .map_err(|problem| ReadError { file: name.to_owned(), problem })
}
