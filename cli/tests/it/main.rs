//! The real binary, run as a user runs it.

mod access;
mod check;
mod config;
mod documents;
mod edits;
mod farm;
mod fire;
mod formats;
mod inputs;
mod kill;
mod life;
mod limits;
mod lp;
mod one_task;
mod operator;
mod paths;
mod places;
mod random;
mod rows;
mod runs;
mod sandbox;
mod showing;
mod sweeps;
mod table;
mod tables;
mod terminal;
