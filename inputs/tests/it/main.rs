//! Tests of the inputs of tasks: files of logs, job logs, signals.

mod joblogs;
mod library;
mod signals;
