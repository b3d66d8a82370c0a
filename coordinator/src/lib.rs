//! The coordinator: leases, durable state, exactly-once publishing, gRPC service.

pub mod access;
pub mod farm;
pub mod owner;
pub mod plan;
pub mod probe;
pub mod publish;
pub mod records;
pub mod service;
pub mod shards;
pub mod split;
pub mod store;
pub mod view;

pub use farm::Config;
pub use service::{Handle, LogSource, Requests, ServeError, ServeOptions, serve};
