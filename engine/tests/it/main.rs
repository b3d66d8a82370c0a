//! Integration tests of the engine. Those on real logs read them from `POWERSWEEP_TRACES` and say so when they skip.
#![allow(clippy::unwrap_used)]

mod etinski;
mod logs;
mod lublin;
mod published;
mod real_logs;
mod specs;
mod swf_fuzz;
