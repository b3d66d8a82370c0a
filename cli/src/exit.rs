//! Exit codes, on which scripts may rely. `powersweep --help` prints their table.

pub use powersweep::{Error as Failure, Kind, OrKind, failure};

/// How a command ended; [`TABLE`] explains each code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It did its work.
    Done,
    /// Something that an error of this kind tells, too.
    Of(Kind),
}

impl Exit {
    /// The exit code of the process.
    pub fn code(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Of(kind) => match kind {
                Kind::Usage => 2,
                Kind::TasksFailed => 3,
                Kind::Workload => 4,
                Kind::Storage => 5,
                Kind::Owned => 6,
                Kind::Network => 7,
                Kind::Refused => 8,
                Kind::Fenced => 9,
                Kind::ClaimFails => 10,
                Kind::Cancelled => 11,
                Kind::Interrupted => 130,
                _ => 1,
            },
        }
    }
}

/// Every code with its meaning, in order.
pub const TABLE: &[(Exit, &str)] = &[
    (Exit::Done, "success"),
    (Exit::Of(Kind::Failure), "an error without an exit code of its own"),
    (Exit::Of(Kind::Usage), "wrong arguments, manifest or parameter"),
    (
        Exit::Of(Kind::TasksFailed),
        "the sweep ended, but some tasks failed for good, or rows were lost (see `powersweep status`)",
    ),
    (Exit::Of(Kind::Workload), "a log, signal or module could not be found, fetched, decompressed or read"),
    (
        Exit::Of(Kind::Storage),
        "the data folder or object store cannot be written or read, or lacks files of published rows",
    ),
    (Exit::Of(Kind::Owned), "another running coordinator owns the data"),
    (Exit::Of(Kind::Network), "a port is taken, or no coordinator answers at an address"),
    (
        Exit::Of(Kind::Refused),
        "the coordinator refused the request, or an access file is not private or not this user's",
    ),
    (Exit::Of(Kind::Fenced), "a newer coordinator took the data over; do not restart this one"),
    (Exit::Of(Kind::ClaimFails), "a demanded claim of a paper does not hold, or a verified row or file differs"),
    (Exit::Of(Kind::Cancelled), "the experiment was cancelled or deleted while this command waited"),
    (
        Exit::Of(Kind::Interrupted),
        "interrupted; finished tasks are kept, and the same command continues. 129: ended at once by SIGHUP; 143: by SIGTERM",
    ),
];

/// Result of a command.
pub type Outcome = Result<Exit, Failure>;
