//! Processor time and memory of this process, for operators.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Processor time since the last look.
pub(super) struct Usage {
    at: Instant,
    used: Duration,
}

impl Usage {
    pub(super) fn new() -> Usage {
        Usage { at: Instant::now(), used: processor_time() }
    }

    /// Mean number of processors that this process kept busy since the last call.
    pub(super) fn processors(&mut self) -> f64 {
        let now = Usage::new();
        let (passed, used) = (now.at - self.at, now.used.saturating_sub(self.used));
        *self = now;
        if passed.is_zero() { 0.0 } else { used.as_secs_f64() / passed.as_secs_f64() }
    }
}

fn processor_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}

/// Resident memory of this process (bytes); 0 where the system has no `/proc`.
pub(super) fn memory_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB"));
    resident.and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0).saturating_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_computes_keeps_a_processor_busy() {
        let mut usage = Usage::new();
        let begun = processor_time();
        while processor_time() - begun < Duration::from_millis(20) {}
        let busy = usage.processors();
        assert!(busy > 0.0 && busy.is_finite(), "{busy}");
        assert!(memory_bytes() > 1 << 20 || !std::path::Path::new("/proc/self/status").exists());
    }
}
