//! The wire: protobuf messages, generated code, conversions. The only place where protobuf meets domain types.

pub mod client;

/// Messages, client and server of package `powersweep.v1`.
#[allow(missing_docs, unreachable_pub, clippy::all, clippy::unwrap_used)]
pub mod v1 {
    tonic::include_proto!("powersweep.v1");
    /// Encoded file descriptors, for reflection.
    pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
}

/// Version of the protocol: raised when an older peer could misunderstand a message.
pub const PROTOCOL: u32 = 3;

/// What this build would compute: the versions that a worker says in `Hello` and the coordinator compares with an
/// experiment's pins. `tasks_schema` is the fingerprint of the `tasks` table's schema.
pub fn versions(build: &str, tasks_schema: u64) -> v1::Versions {
    let parts = powersweep_engine::components::COMPONENTS
        .iter()
        .map(|component| (powersweep_experiments::component_id(component), component.version))
        .collect();
    v1::Versions {
        build: build.to_owned(),
        kernel: powersweep_engine::KERNEL_VERSION,
        parts,
        tasks_schema,
        protocol: PROTOCOL,
    }
}
