//! The committed code equals the code that is generated from `farm.proto` and from KEDA's `externalscaler.proto`.
//!
//! `POWERSWEEP_REGENERATE=1 cargo test -p powersweep-proto --test it documented` rewrites it. protox compiles the file: no
//! protoc is needed.

use std::fs;
use std::path::Path;

use prost::Message;

#[test]
fn generated_code_is_up_to_date() {
    compare("powersweep/v1/farm.proto", "descriptors.bin", "powersweep.v1.rs");
    compare("keda/externalscaler.proto", "externalscaler.bin", "externalscaler.rs");
}

/// Compares descriptors and code of a protocol with the committed files of these names.
fn compare(protocol: &str, descriptors_name: &str, code_name: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    let descriptors = protox::compile([protocol], [root]).unwrap();
    fs::write(folder.path().join(descriptors_name), descriptors.encode_to_vec()).unwrap();
    tonic_prost_build::configure()
        .bytes(".")
        .type_attribute("LeaseId", "#[derive(PartialOrd, Ord)]")
        .out_dir(folder.path())
        .compile_fds(descriptors)
        .unwrap();
    for name in [descriptors_name, code_name] {
        let generated = fs::read(folder.path().join(name)).unwrap();
        let committed = root.join("src/generated").join(name);
        if std::env::var_os("POWERSWEEP_REGENERATE").is_some_and(|value| value == "1") {
            fs::write(&committed, generated).unwrap();
            continue;
        }
        assert!(
            fs::read(&committed).unwrap_or_default() == generated,
            "proto/src/generated/{name} differs from the code that is generated from {protocol}. Run `cargo xtask docs`, \
             or\n  POWERSWEEP_REGENERATE=1 cargo test -p powersweep-proto --test it documented"
        );
    }
}
