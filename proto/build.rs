//! Compiles the protobuf files with protox: no protoc needed.

use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=powersweep/v1/farm.proto");
    let descriptors = protox::compile(["powersweep/v1/farm.proto"], ["."])?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("descriptors.bin"), prost::Message::encode_to_vec(&descriptors))?;
    tonic_prost_build::configure()
        .bytes(".")
        .type_attribute("LeaseId", "#[derive(PartialOrd, Ord)]")
        .compile_fds(descriptors)?;
    Ok(())
}
