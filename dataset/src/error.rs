//! Why a request has no answer.

use std::error::Error as StdError;

use powersweep_experiments::plain::chain;

/// The kind of an error, by which a caller can decide what to do. The command line has an exit code for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// An error without a kind of its own.
    Failure,
    /// A wrong argument, manifest or parameter. The message says what to write instead.
    Usage,
    /// The sweep ended, but some of its tasks failed for good.
    TasksFailed,
    /// A log could not be found, fetched, decompressed or read.
    Workload,
    /// The data folder or object store cannot be written or read.
    Storage,
    /// Another running coordinator owns the data.
    Owned,
    /// A port is taken, or no coordinator answers at an address. Trying again may help.
    Network,
    /// The coordinator refused the request, or an access file is not private or not this user's.
    Refused,
    /// A newer coordinator took the data over.
    Fenced,
    /// A demanded claim of a paper does not hold, or a verified row differs.
    ClaimFails,
    /// The experiment was cancelled or deleted while the caller waited.
    Cancelled,
    /// The caller stopped the work. Finished tasks are kept, and the same request continues.
    Interrupted,
}

/// An error with its kind, and a message for people that says what is wrong and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// The kind.
    pub kind: Kind,
    /// The message.
    pub message: String,
}

impl Error {
    /// An error with this message.
    pub fn new(kind: Kind, message: impl Into<String>) -> Error {
        Error { kind, message: message.into() }
    }
}

/// An error with a formatted message: `failure!(Usage, "{name} is unknown")`.
#[macro_export]
macro_rules! failure {
    ($kind:ident, $($message:tt)+) => {
        $crate::Error::new($crate::Kind::$kind, format!($($message)+))
    };
}

/// Attaches a kind to another library's error, with the chain of its causes.
pub trait OrKind<T> {
    /// Turns the error into an [`Error`] of this kind.
    fn or_kind(self, kind: Kind) -> Result<T, Error>;
}

impl<T, E: StdError> OrKind<T> for Result<T, E> {
    fn or_kind(self, kind: Kind) -> Result<T, Error> {
        self.map_err(|error| Error::new(kind, chain(&error)))
    }
}

/// An error about a question of the caller.
pub(crate) fn usage(message: impl Into<String>) -> Error {
    Error::new(Kind::Usage, message)
}
