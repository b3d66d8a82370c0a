//! Real logs for tests.
use std::io::Read;
use std::path::PathBuf;

use powersweep_engine::SimSpec;
use powersweep_engine::workload::{self, Workload, swf};

/// The folder of the logs. Tests that call this are ignored where the variable was not set when they were compiled.
pub(crate) fn folder() -> PathBuf {
    let folder = std::env::var_os("POWERSWEEP_TRACES").filter(|folder| !folder.is_empty());
    folder.expect("POWERSWEEP_TRACES names a folder, or is not set").into()
}

/// A cut of a published log, which is in the repository.
pub(crate) fn cut(name: &str) -> swf::SwfLog {
    read(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/logs/{name}.cut.swf.gz")))
}

/// Reads and parses a gzipped log.
pub(crate) fn read(path: PathBuf) -> swf::SwfLog {
    let file = std::fs::File::open(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut bytes = Vec::new();
    flate2::read::MultiGzDecoder::new(file).read_to_end(&mut bytes).unwrap();
    swf::parse(&bytes, &path.display().to_string()).unwrap()
}

/// The workload of a spec on a log.
pub(crate) fn workload(spec: &SimSpec, log: &swf::SwfLog) -> Workload {
    workload::build(spec, Some(log)).unwrap()
}
