//! Times of benches that run in one thread.

use std::time::Instant;

/// Best time of a few calls (s): processor time if the system reports it (Linux).
pub(crate) fn best_s<T>(repeats: u32, run: impl Fn() -> T) -> f64 {
    (0..repeats)
        .map(|_| {
            let (begin, cpu_begin_s) = (Instant::now(), cpu_s());
            std::hint::black_box(run());
            match (cpu_begin_s, cpu_s()) {
                (Some(begin_s), Some(end_s)) => end_s - begin_s,
                _ => begin.elapsed().as_secs_f64(),
            }
        })
        .fold(f64::MAX, f64::min)
}

/// Processor time of this program so far (s).
fn cpu_s() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/schedstat").ok()?;
    Some(text.split_whitespace().next()?.parse::<f64>().ok()? * 1e-9)
}
