//! The farm without a network: scripted workers, serialised messages, and a check of all invariants after each step.

mod adopt;
mod demand;
mod forecast;
mod hostile;
mod lifecycle;
mod parts;
mod scripted;
mod splits;
mod weather;
mod wire;

pub(in crate::farm) use wire::sweep;

/// This build's versions, as its workers name them.
fn versions() -> powersweep_proto::v1::Versions {
    powersweep_proto::versions("test", super::pins::tasks_schema())
}
