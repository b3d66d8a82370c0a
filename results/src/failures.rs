//! The `failures` table: one row a failed attempt.

use crate::columns::Declared;
use crate::identity::Micros;

powersweep_engine::record! {
/// How one attempt failed.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// Name of the worker.
    pub worker: String,
    /// When the coordinator received the failure, by its clock.
    pub failed_at: Micros,
    /// Kind of failure in one word, such as `panic` or `deadline`.
    pub failure_kind: String,
    /// Reason of the failure, as a sentence.
    pub message: String,
}
}

crate::rows::table!(Failure, Declared::of_fields(Failure::FIELDS, "farm"));
