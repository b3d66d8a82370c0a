//! `powersweep schema`: the JSON Schema of manifests.

use crate::exit::Outcome;
use crate::screen;

/// Prints the schema.
pub fn run() -> Outcome {
    screen::print_whole(&screen::indented(&powersweep_experiments::schema::json_schema()))
}
