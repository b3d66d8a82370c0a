//! Tests of the protocol's crate.
#![allow(clippy::unwrap_used, missing_docs)]

mod documented;
