//! Who runs what: leases, durable state, exactly-once publishing, gRPC service

pub mod records;
pub mod store;
