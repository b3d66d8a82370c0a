//! Readers of signals: values over time, such as carbon intensity, price, caps and temperature.
//!
//! [`read`] takes the bytes of a file and the settings of a manifest ([`Reading`]) and returns a [`Series`], or an error
//! that says what is wrong, where, and which setting helps. Nothing is guessed: where two columns, units or clocks can be
//! meant, the file is refused. The [`Ledger`] of a series counts every row that was dropped, changed or added, by rule;
//! [`Facts`] has what was chosen.
//!
//! The path of a file: a form (`forms/`) makes [`table::Table`], rows with times as the file's clock shows them; `clock`
//! turns local times into instants; `series` checks their order and treats duplicates, ends and gaps.
//!
//! This module knows no files, network, clocks or tasks. The time zones are inside it, so that a file has the same series
//! on every machine.
//!
//! Invariants: no input makes [`read`] panic; times increase strictly; every value is finite and possible for its quantity;
//! time and memory grow as the size of the input times its logarithm.

mod accounts;
mod clock;
mod forms;
mod ledger;
mod series;
mod step;
mod table;
mod unit;

pub use accounts::{Accounts, Loaded, PlaceError};
pub use ledger::{Ledger, Rule};
pub use series::{Base, Facts, Series};

use powersweep_experiments::signals::Reading;

use crate::ReadError;

/// Maximum size of a file (bytes), decompressed.
pub const BYTES_MAX: usize = 256 << 20;

/// Maximum number of rows of a file, and of times of a series: 19 years of minutes.
pub const ROWS_MAX: usize = 10_000_000;

/// Reads a file of a signal. `name` is for messages.
///
/// # Errors
/// The file is not of its form, is ambiguous, or has gaps, duplicates, clock changes or values that the settings do not
/// allow. All errors are final: the same call fails again.
pub fn read(bytes: &[u8], name: &str, reading: &Reading) -> Result<Series, ReadError> {
    forms::read(bytes, reading)
        .and_then(|table| series::build(table, reading))
        .map_err(|problem| ReadError { file: name.to_owned(), problem })
}
