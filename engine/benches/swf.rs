//! Speed of reading logs: `cargo bench -p powersweep-engine --bench swf [-- FILE.swf | FILE.swf.gz ...]`.
//!
//! Prints MB of text a second on one core for each log (without files: for a synthetic log), and for two references in
//! the same run: counting line ends, the speed of touching every byte, and `str::lines` with `parse::<f64>` for every
//! field. The text is read in pieces of about 1 MB, one after the other. The best of several turns counts for each
//! piece, so that a busy machine has less influence.
use std::hint::black_box;
use std::io::Read;
use std::time::Instant;

use powersweep_engine::workload::swf;

fn main() {
    let files: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    println!("{:<36} {:>8} {:>12} {:>12} {:>12} {:>8}", "log", "MB", "swf MB/s", "count MB/s", "lines MB/s", "x lines");
    if files.is_empty() {
        report("synthetic", &synthetic());
    }
    for file in files {
        match read(&file) {
            Ok(text) => report(file.rsplit('/').next().unwrap_or(&file), &text),
            Err(e) => println!("{file}: {e}"),
        }
    }
}

fn read(file: &str) -> std::io::Result<Vec<u8>> {
    let bytes = std::fs::read(file)?;
    let mut text = Vec::new();
    if file.ends_with(".gz") {
        flate2::read::MultiGzDecoder::new(&bytes[..]).read_to_end(&mut text)?;
        return Ok(text);
    }
    Ok(bytes)
}

fn report(name: &str, text: &[u8]) {
    let megabytes = text.len() as f64 / 1e6;
    let turns = ((400.0 / megabytes) as usize).clamp(5, 40);
    let pieces = pieces(text);
    let mut best = vec![[f64::INFINITY; 3]; pieces.len()];
    for _ in 0..turns {
        for (piece, best) in pieces.iter().zip(&mut best) {
            let mut time = |index: usize, work: &dyn Fn() -> usize| {
                let start = Instant::now();
                black_box(work());
                best[index] = best[index].min(start.elapsed().as_secs_f64());
            };
            time(0, &|| swf::parse(black_box(piece), name).expect("is a log").records.len());
            time(1, &|| black_box(piece).iter().filter(|b| **b == b'\n').count());
            time(2, &|| lines(black_box(piece)));
        }
    }
    let [swf, count, lines] = [0, 1, 2].map(|i| megabytes / best.iter().map(|b| b[i]).sum::<f64>());
    println!("{name:<36} {megabytes:>8.1} {swf:>12.0} {count:>12.0} {lines:>12.0} {:>8.2}", swf / lines);
}

/// Whole lines, about 1 MB at a time.
fn pieces(mut text: &[u8]) -> Vec<&[u8]> {
    let mut pieces = Vec::new();
    while !text.is_empty() {
        let from = text.len().min(1_000_000);
        let end = text[from..].iter().position(|b| *b == b'\n').map_or(text.len(), |n| from + n + 1);
        let (piece, rest) = text.split_at(end);
        pieces.push(piece);
        text = rest;
    }
    pieces
}

/// The plain way to read a log.
fn lines(text: &[u8]) -> usize {
    let text = std::str::from_utf8(text).expect("is text");
    let records = text.lines().filter(|l| !l.starts_with(';')).map(|line| {
        let fields: Vec<f64> = line.split_whitespace().map(|f| f.parse().expect("is a number")).collect();
        fields
    });
    records.collect::<Vec<_>>().len()
}

fn synthetic() -> Vec<u8> {
    let mut text = String::from("; MaxProcs: 128\n");
    let mut x = 1u64;
    for i in 1..100_000u64 {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (run, procs) = (x >> 48, 1 + (x >> 20) % 64);
        text += &format!(
            "{i:5} {:8} {:6} {run:6} {procs:3} {}.{} -1 {procs:4} 64800 -1 1 {} 1 -1 2 -1 -1 -1\n",
            i * 500,
            (x >> 30) % 9999,
            run / 2,
            x % 100,
            x % 300
        );
    }
    text.into_bytes()
}
