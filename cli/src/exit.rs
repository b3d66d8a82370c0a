//! Exit codes: what a script may rely on. One table, also printed by `powersweep --help`.

use std::process::ExitCode;

use powersweep_proto::client::chain;

/// How a command ended; [`TABLE`] explains each code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Done = 0,
    Failure = 1,
    Usage = 2,
    TasksFailed = 3,
    Workload = 4,
    Storage = 5,
    Owned = 6,
    Network = 7,
    Refused = 8,
    Fenced = 9,
    ClaimFails = 10,
    Cancelled = 11,
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
