//! A build without the feature `wasm`: no module can be used, and the error says why.
use super::{Budget, Fault, Pass};

/// No instance.
pub(super) enum Instance {}

/// No module: there is no value of this type.
pub(super) enum Program {}

impl Program {
    pub(super) fn new(_: &[u8]) -> Result<Program, String> {
        Err("cannot run: this build of powersweep is without the cargo feature `wasm`, which released binaries have; \
             build with --features wasm"
            .to_owned())
    }

    pub(super) fn schedule(
        &self,
        _: &mut Option<Instance>,
        _: &Pass,
        _: &Budget<'_>,
    ) -> Result<(Vec<u32>, u64), Fault> {
        match *self {}
    }
}
