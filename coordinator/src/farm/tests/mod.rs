//! The farm without a network: scripted workers, every message through its wire form, every invariant after each step.

mod lifecycle;
mod parts;
mod scripted;
mod weather;
mod wire;

pub(in crate::farm) use wire::sweep;
