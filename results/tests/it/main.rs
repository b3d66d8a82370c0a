//! Everything that this crate writes is read back.

mod documented;
mod folded;
mod merge;
mod readers;
mod roundtrip;
mod sample;
mod wire;
