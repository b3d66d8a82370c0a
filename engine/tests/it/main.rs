//! Integration tests of the engine. Tests with real logs read them from `POWERSWEEP_TRACES`, and print when they are skipped.
#![allow(clippy::unwrap_used)]

mod aldaoud;
mod capped;
mod capped_active;
mod combinations;
mod conformance;
mod do2013;
mod etinski;
mod golden;
mod kernel;
mod lawson;
mod logs;
mod lublin;
mod published;
mod queues;
mod real_logs;
mod reference;
mod reserved;
mod sources;
mod specs;
mod swf_fuzz;
mod tracsim;
