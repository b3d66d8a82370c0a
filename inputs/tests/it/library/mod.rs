//! Loading logs from folders, archives and servers, and caching them.

mod caches;
mod files;
mod real_logs;
mod server;
mod urls;

use std::io::Write;

use powersweep_engine::spec::Component;
use powersweep_engine::workload::swf::SwfLog;
use powersweep_engine::workload::{LOG_SOURCE, LogFormat};

/// A second log format, which is not registered. It reads any text as a log without records.
static EMPTY: LogFormat = LogFormat {
    component: Component { name: "empty", doc: "A log without records.", ..LOG_SOURCE },
    suffix: "empty",
    parse: |_, file| Ok(SwfLog { file: file.to_owned(), ..SwfLog::default() }),
    sample: "",
};

/// A small log.
const LOG: &str = "; MaxProcs: 8\n\
                   1 0 -1 100 4 -1 -1 4 200 -1 1 3 1 -1 1 -1 -1 -1\n\
                   2 5 -1 50 2 -1 -1 2 60 -1 1 3 1 -1 1 -1 -1 -1\n";

/// The bytes as a gzip file.
fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).expect("writes to memory");
    encoder.finish().expect("writes to memory")
}

/// The bytes as a zstd file with a checksum, like a file of the `zstd` command.
fn zst(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 3).expect("level 3 exists");
    encoder.include_checksum(true).expect("is a valid option");
    encoder.write_all(bytes).expect("writes to memory");
    encoder.finish().expect("writes to memory")
}

/// A text that compresses badly.
fn long_log() -> Vec<u8> {
    let mut text = b"; MaxProcs: 8\n".to_vec();
    let mut x = 12_345u64;
    for i in 0..5_000 {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let line = format!("{i} {} -1 {} 4 -1 -1 4 9000 -1 1 3 1 -1 1 -1 -1 -1\n", i * 7, x >> 52);
        text.extend(line.as_bytes());
    }
    text
}
