//! Who runs what: leases, durable state, exactly-once publishing, gRPC service
