//! Integration tests of the engine. Tests with real logs read them from `POWERSWEEP_TRACES`, and print when they are skipped.
#![allow(clippy::unwrap_used)]

mod accounts;
mod aldaoud;
mod batsim;
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
mod logs;
mod lublin;
mod measured;
mod pools;
mod power_save;
mod published;
mod queues;
mod real_logs;
mod reference;
mod reserved;
mod snapshot;
mod sources;
mod specs;
mod stated;
mod swf_fuzz;
mod tracsim;
mod wasm;
