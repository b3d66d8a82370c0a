//! Real logs for tests.
use std::io::Read;
use std::path::PathBuf;

use powersweep_engine::SimSpec;
use powersweep_engine::workload::{self, Workload, swf};

/// The folder of the logs; prints a message and returns `None` if it is not set.
pub(crate) fn folder(test: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("POWERSWEEP_TRACES").map(PathBuf::from);
    if folder.is_none() {
        println!("{test}: skipped, POWERSWEEP_TRACES is not set");
    }
    folder
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
