//! Exit codes, on which scripts may rely. `powersweep --help` prints their table.

use powersweep_analysis::AnalysisError;
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
    (Exit::Done, "success"),
    (Exit::Failure, "an error without an exit code of its own"),
    (Exit::Usage, "wrong arguments, manifest or parameter"),
    (Exit::TasksFailed, "the sweep ended, but some tasks failed for good (see `powersweep status`)"),
    (Exit::Workload, "a log could not be found, fetched, decompressed or read"),
    (Exit::Storage, "the data folder or object store cannot be written or read"),
    (Exit::Owned, "another running coordinator owns the data"),
    (Exit::Network, "a port is taken, or no coordinator answers at an address"),
    (Exit::Refused, "the coordinator refused the request, or an access file is not private or not this user's"),
    (Exit::Fenced, "a newer coordinator took the data over; do not restart this one"),
    (Exit::ClaimFails, "a demanded claim of a paper does not hold, or a verified row differs"),
    (Exit::Cancelled, "the experiment was cancelled or deleted while this command waited"),
    (Exit::Interrupted, "interrupted; finished tasks are kept, and the same command continues"),
];

/// An error that ends the program with an exit code.
#[derive(Debug)]
pub struct Failure {
    /// How the program ends.
    pub exit: Exit,
    /// Printed on standard error.
    pub message: String,
}

impl Failure {
    /// An error with this message.
    pub fn new(exit: Exit, message: impl Into<String>) -> Failure {
        Failure { exit, message: message.into() }
    }
}

impl From<AnalysisError> for Failure {
    fn from(error: AnalysisError) -> Failure {
        Failure::new(Exit::Usage, error.0)
    }
}

/// An error with a formatted message: `failure!(Usage, "{name} is unknown")`.
macro_rules! failure {
    ($exit:ident, $($message:tt)+) => {
        $crate::exit::Failure::new($crate::exit::Exit::$exit, format!($($message)+))
    };
}
pub(crate) use failure;

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
