//! The committed code equals the code that is generated from `farm.proto`.
//!
//! `POWERSWEEP_REGENERATE=1 cargo test -p powersweep-proto --test it documented` rewrites it. protox compiles the file: no
//! protoc is needed.

use std::fs;
use std::path::Path;

use prost::Message;

#[test]
fn generated_code_is_up_to_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    let descriptors = protox::compile(["powersweep/v1/farm.proto"], [root]).unwrap();
    fs::write(folder.path().join("descriptors.bin"), descriptors.encode_to_vec()).unwrap();
    tonic_prost_build::configure()
        .bytes(".")
        .type_attribute("LeaseId", "#[derive(PartialOrd, Ord)]")
        .out_dir(folder.path())
        .compile_fds(descriptors)
        .unwrap();
    for name in ["descriptors.bin", "powersweep.v1.rs"] {
        let generated = fs::read(folder.path().join(name)).unwrap();
        let committed = root.join("src/generated").join(name);
        if std::env::var_os("POWERSWEEP_REGENERATE").is_some_and(|value| value == "1") {
            fs::write(&committed, generated).unwrap();
            continue;
        }
        assert!(
            fs::read(&committed).unwrap_or_default() == generated,
            "proto/src/generated/{name} differs from the code that is generated from farm.proto. Run `cargo xtask docs`, \
             or\n  POWERSWEEP_REGENERATE=1 cargo test -p powersweep-proto --test it documented"
        );
    }
}
