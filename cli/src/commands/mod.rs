//! One file for each command.

pub mod access;
pub mod adopt;
pub mod check;
pub mod columns;
pub mod completions;
pub mod config;
pub mod control;
pub mod doctor;
pub mod export;
pub mod health;
pub mod launch;
pub mod lp;
pub mod man;
pub mod plan;
pub mod policies;
pub mod results;
pub mod run;
pub mod schema;
pub mod serve;
pub mod shard;
pub mod simulate;
pub mod site;
pub mod status;
pub mod submit;
pub mod trace;
pub mod worker;
