//! Times of benches that run in one thread.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Best time of a few calls (s): processor time of the calling thread.
///
/// The files `/proc/*/schedstat` are no clock for this: their numbers move at each tick of the scheduler, some 4 ms.
pub(crate) fn best_s<T>(repeats: u32, run: impl Fn() -> T) -> f64 {
    (0..repeats)
        .map(|_| {
            let begin = processor_time();
            std::hint::black_box(run());
            (processor_time() - begin).as_secs_f64()
        })
        .fold(f64::MAX, f64::min)
}

/// Processor time of the calling thread since it began.
fn processor_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap()
}
