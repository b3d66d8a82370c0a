//! The wire: protobuf messages, generated code, conversions. The only place where protobuf meets domain types.

/// Messages, client and server of package `powersweep.v1`.
#[allow(missing_docs, unreachable_pub, clippy::all, clippy::unwrap_used)]
pub mod v1 {
    tonic::include_proto!("powersweep.v1");
    /// Encoded file descriptors, for reflection.
    pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
}

/// Version of the protocol: raised when an older peer could misunderstand a message.
pub const PROTOCOL: u32 = 1;
