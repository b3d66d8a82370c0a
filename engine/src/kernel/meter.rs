//! The energy meter: piecewise constant power, and the time integrals of the run.
//!
//! Every proc is at one level (busy at a gear, idle, suspended, asleep, in transition); a level knows how many procs are
//! at it and what one draws. Moving procs between levels settles the two integrals, so an instant costs the same however
//! many procs the machine has. What is integrated per instant (queue length, backlog, power distribution) is in
//! [`Meter::advance`].

/// Bins of the power distribution: exact for machines with up to this many procs and one gear in use.
const POWER_BINS_MAX: u32 = 16_384;

/// Procs that draw the same power.
#[derive(Debug, Clone)]
pub(crate) struct Level {
    /// Procs at this level now.
    pub(crate) procs: u32,
    /// Power of one proc (W).
    pub(crate) watts: f64,
    /// Instant up to which `proc_s` is settled (s).
    since_s: f64,
    /// Proc-seconds spent here.
    pub(crate) proc_s: f64,
}

/// What is integrated over time while the simulation runs.
#[derive(Debug, Clone)]
pub(crate) struct Meter {
    levels: Vec<Level>,
    now_s: f64,
    /// Submitted jobs that have not started.
    pub(crate) waiting_count: u64,
    pub(crate) waiting_max: u64,
    pub(crate) waiting_s: f64,
    /// Their procs * run time at the top gear.
    pub(crate) backlog_proc_s: f64,
    pub(crate) backlog_max: f64,
    pub(crate) backlog_s: f64,
    /// Idle procs of all classes.
    pub(crate) idle_procs: u32,
    pub(crate) lost_proc_s: f64,
    power_w: f64,
    power_changed: bool,
    pub(crate) power_peak_w: f64,
    bins: Bins,
}

/// Time spent at each power, to read a quantile from.
#[derive(Debug, Clone)]
struct Bins {
    low_w: f64,
    per_w: f64,
    /// The bin of the present power.
    at: usize,
    /// Seconds by bin.
    time_s: Vec<f64>,
    /// Greatest power seen in the bin.
    top_w: Vec<f64>,
}

impl Meter {
    /// A meter that starts at `now_s`. `levels`: procs and watts of one proc, in the order that the caller indexes them.
    pub(crate) fn new(levels: impl IntoIterator<Item = (u32, f64)>, idle_procs: u32, now_s: f64) -> Meter {
        let levels: Vec<Level> =
            levels.into_iter().map(|(procs, watts)| Level { procs, watts, since_s: now_s, proc_s: 0.0 }).collect();
        let all: u32 = levels.iter().map(|l| l.procs).sum();
        let low = levels.iter().map(|l| l.watts).fold(f64::INFINITY, f64::min) * f64::from(all);
        let high = levels.iter().map(|l| l.watts).fold(0.0, f64::max) * f64::from(all);
        let count = all.clamp(1, POWER_BINS_MAX);
        let per_w = if high > low { f64::from(count) / (high - low) } else { 0.0 };
        let bins = Bins {
            low_w: low,
            per_w,
            at: 0,
            time_s: vec![0.0; count as usize + 2],
            top_w: vec![0.0; count as usize + 2],
        };
        Meter {
            levels,
            now_s,
            waiting_count: 0,
            waiting_max: 0,
            waiting_s: 0.0,
            backlog_proc_s: 0.0,
            backlog_max: 0.0,
            backlog_s: 0.0,
            idle_procs,
            lost_proc_s: 0.0,
            power_w: 0.0,
            power_changed: true,
            power_peak_w: 0.0,
            bins,
        }
    }

    /// Integrates from the last instant to `now_s`, during which nothing changed.
    #[inline]
    pub(crate) fn advance(&mut self, now_s: f64) {
        let dt = now_s - self.now_s;
        if dt <= 0.0 {
            return;
        }
        self.now_s = now_s;
        if self.power_changed {
            self.note_power();
        }
        self.bins.time_s[self.bins.at] += dt;
        if self.waiting_count > 0 {
            self.waiting_max = self.waiting_max.max(self.waiting_count);
            self.backlog_max = self.backlog_max.max(self.backlog_proc_s);
            self.waiting_s += self.waiting_count as f64 * dt;
            self.backlog_s += self.backlog_proc_s * dt;
            self.lost_proc_s += f64::from(self.idle_procs) * dt;
        }
    }

    /// Computes the power of the interval that ends now. From the counts, not from differences: no drift.
    fn note_power(&mut self) {
        self.power_changed = false;
        let power = self.levels.iter().map(|l| f64::from(l.procs) * l.watts).sum::<f64>();
        self.power_w = power;
        self.power_peak_w = self.power_peak_w.max(power);
        let at = ((power - self.bins.low_w) * self.bins.per_w + 0.5) as usize;
        let at = at.min(self.bins.time_s.len() - 1);
        self.bins.at = at;
        let top = &mut self.bins.top_w[at];
        *top = top.max(power);
    }

    /// Moves procs between levels at the present instant.
    #[inline]
    pub(crate) fn shift(&mut self, from: usize, to: usize, procs: u32) {
        self.power_changed = true;
        let now_s = self.now_s;
        let level = &mut self.levels[from];
        level.settle(now_s);
        level.procs -= procs;
        let level = &mut self.levels[to];
        level.settle(now_s);
        level.procs += procs;
    }

    /// A job arrives: it waits with this much work (proc-seconds).
    #[inline]
    pub(crate) fn wait_begins(&mut self, work_proc_s: f64) {
        self.waiting_count += 1;
        self.backlog_proc_s += work_proc_s;
    }

    /// A waiting job starts.
    #[inline]
    pub(crate) fn wait_ends(&mut self, work_proc_s: f64) {
        self.waiting_count -= 1;
        // An empty queue has no work: what rounding left over must not stay for ever.
        self.backlog_proc_s = if self.waiting_count == 0 { 0.0 } else { self.backlog_proc_s - work_proc_s };
    }

    /// Settles all levels at the last instant.
    pub(crate) fn finish(&mut self) {
        let now_s = self.now_s;
        for level in &mut self.levels {
            level.settle(now_s);
        }
    }

    pub(crate) fn level(&self, index: usize) -> &Level {
        &self.levels[index]
    }

    /// Power at this instant (W).
    pub(crate) fn power_now_w(&self) -> f64 {
        self.levels.iter().map(|l| f64::from(l.procs) * l.watts).sum()
    }

    /// The least power that was not exceeded for `share` of the time (W): exact if one gear was in use and the machine
    /// has up to 16,384 procs, else within 1/16,384 of the greatest possible power. `None` if no time passed.
    pub(crate) fn power_quantile_w(&self, share: f64) -> Option<f64> {
        let span: f64 = self.bins.time_s.iter().sum();
        if span <= 0.0 {
            return None;
        }
        let mut sum = 0.0;
        for (time, top) in self.bins.time_s.iter().zip(&self.bins.top_w) {
            sum += time;
            if *time > 0.0 && sum >= share * span {
                return Some(*top);
            }
        }
        Some(self.power_peak_w)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bins.time_s.capacity() * 16
    }
}

impl Level {
    #[inline]
    fn settle(&mut self, now_s: f64) {
        self.proc_s += f64::from(self.procs) * (now_s - self.since_s);
        self.since_s = now_s;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integrates_power_queue_and_loss() {
        // 4 procs: 1 W idle (level 0), 5 W busy (level 1).
        let mut meter = Meter::new([(4, 1.0), (0, 5.0)], 4, 0.0);
        meter.shift(0, 1, 3);
        meter.idle_procs = 1;
        meter.wait_begins(20.0);
        meter.advance(10.0);
        meter.shift(1, 0, 3);
        meter.idle_procs = 4;
        meter.wait_ends(20.0);
        meter.advance(190.0);
        meter.finish();
        assert_eq!(meter.level(1).proc_s, 30.0);
        assert_eq!(meter.level(0).proc_s, 10.0 + 4.0 * 180.0);
        assert_eq!(meter.waiting_s, 10.0);
        assert_eq!(meter.backlog_s, 200.0);
        assert_eq!(meter.lost_proc_s, 10.0);
        assert_eq!(meter.power_peak_w, 16.0);
        // 16 W for 10 s of 190 s (5.3%), 4 W otherwise.
        assert_eq!(meter.power_quantile_w(0.94), Some(4.0));
        assert_eq!(meter.power_quantile_w(0.95), Some(16.0));
    }
}
