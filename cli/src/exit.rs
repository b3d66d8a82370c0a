//! Exit codes: what a script may rely on. One table, also printed by `powersweep --help`.

use std::process::ExitCode;

use powersweep_proto::client::chain;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Everything asked for was done.
    Done = 0,
    /// An error that fits no other code.
    Failure = 1,
    /// Wrong arguments, or a manifest or parameter that cannot be.
    Usage = 2,
    /// The sweep ended, but some tasks failed for good.
    TasksFailed = 3,
    /// A log could not be found, fetched, decompressed or read.
    Workload = 4,
    /// The data folder or object store cannot be written or read.
    Storage = 5,
    /// Another live coordinator owns the data.
    Owned = 6,
    /// A port is taken, or nobody answers at an address.
    Network = 7,
    /// The coordinator refused the request (for instance an edit that changes a pin).
    Refused = 8,
    /// A newer coordinator took the data over; do not restart this one.
    Fenced = 9,
    /// A claim that must hold does not.
    ClaimFails = 10,
    /// The experiment was cancelled or deleted while this command waited for it.
    Cancelled = 11,
    /// Interrupted; what was finished is kept, and the same command goes on.
    Interrupted = 130,
}

/// Every code with its meaning, in order.
pub const TABLE: &[(Exit, &str)] = &[
    (Exit::Done, "everything asked for was done"),
    (Exit::Failure, "an error that fits no other code"),
    (Exit::Usage, "wrong arguments, manifest or parameter"),
    (Exit::TasksFailed, "the sweep ended, but some tasks failed for good (see `powersweep status`)"),
    (Exit::Workload, "a log could not be found, fetched, decompressed or read"),
    (Exit::Storage, "the data folder or object store cannot be written or read"),
    (Exit::Owned, "another live coordinator owns the data"),
    (Exit::Network, "a port is taken, or nobody answers at an address"),
    (Exit::Refused, "the coordinator refused the request"),
    (Exit::Fenced, "a newer coordinator took the data over; do not restart this one"),
    (Exit::ClaimFails, "a demanded claim of a paper does not hold"),
    (Exit::Cancelled, "the experiment was cancelled or deleted by someone else"),
    (Exit::Interrupted, "interrupted; finished tasks are kept, the same command goes on"),
];

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

/// An error with the exit code that it ends the program with.
#[derive(Debug)]
pub struct Failure {
    /// The code.
    pub exit: Exit,
    /// What to print on standard error.
    pub message: String,
}

impl Failure {
    /// An error to print and end with.
    pub fn new(exit: Exit, message: impl Into<String>) -> Failure {
        Failure { exit, message: message.into() }
    }
}

/// Result of a command.
pub type Outcome = Result<Exit, Failure>;

/// Attaches an exit code to a library's error, with the chain of its causes.
pub trait OrExit<T> {
    /// Turns the error into a [`Failure`] with this code.
    fn or_exit(self, exit: Exit) -> Result<T, Failure>;
}

impl<T, E: std::error::Error> OrExit<T> for Result<T, E> {
    fn or_exit(self, exit: Exit) -> Result<T, Failure> {
        self.map_err(|error| Failure { exit, message: chain(&error) })
    }
}
