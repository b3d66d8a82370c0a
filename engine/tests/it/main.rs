//! Integration tests of the engine. Tests with real logs read them from `POWERSWEEP_TRACES`, and are ignored without it.
#![allow(clippy::unwrap_used)]

// Tests that need files are ignored where the variable with their folder is not set, which `test_with` asks the compiler's
// environment. It does not tell Cargo: these do, so that the tests are compiled again when a variable changes.
const _: [Option<&str>; 2] = [option_env!("POWERSWEEP_TRACES"), option_env!("POWERSWEEP_JOBLOGS")];

mod accounts;
mod aldaoud;
mod batsim;
mod cap_reasons;
mod capped;
mod capped_active;
mod combinations;
mod conformance;
mod do2013;
mod etinski;
mod formula;
mod golden;
mod kernel;
mod lawson;
mod listed;
mod logs;
mod lublin;
mod measured;
mod pools;
mod power_save;
mod predicted;
mod published;
mod queues;
mod real_logs;
mod reference;
mod reserved;
mod rlscheduler;
mod sc15;
mod snapshot;
mod sources;
mod specs;
mod stated;
mod swf_fuzz;
mod tracsim;
mod wasm;
#[cfg(feature = "wasm")]
mod wasm_bounds;
