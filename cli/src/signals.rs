//! The signals of a manifest on the command line.

use powersweep_experiments::Manifest;
use powersweep_workloads::LogBytes;

use crate::exit::{Exit, Failure, OrExit};

/// Reads a file in every way in which the signals of a manifest read it, so that a file that cannot be read is refused
/// before an experiment begins. `name`: the file as the manifest names it.
pub fn check(manifest: &Manifest, name: &str, bytes: &LogBytes) -> Result<(), Failure> {
    let mut read = Vec::new();
    for signal in manifest.signals().iter().filter(|signal| *signal.file == *name) {
        if !read.contains(&&signal.reading) {
            powersweep_signals::read(&bytes.bytes, &bytes.origin.to_string(), &signal.reading)
                .or_exit(Exit::Workload)?;
            read.push(&signal.reading);
        }
    }
    Ok(())
}
