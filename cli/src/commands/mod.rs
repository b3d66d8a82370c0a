//! One file a command.

pub mod check;
pub mod columns;
pub mod control;
pub mod health;
pub mod lp;
pub mod plan;
pub mod policies;
pub mod run;
pub mod schema;
pub mod serve;
pub mod simulate;
pub mod status;
pub mod submit;
pub mod trace;
pub mod worker;
