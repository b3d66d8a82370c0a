//! The energy meter: piecewise constant power, and the time integrals of the run.
//!
//! Every proc is at one level (busy at a gear, idle, suspended, asleep, in transition); a level has the number of its
//! procs and the power of one. [`Meter::advance`] integrates an interval over the few levels in use, so the cost of an
//! instant does not depend on the number of procs.

use std::ops::Range;

use super::powers::Excess;
use crate::energy::{EnergySplit, Idle, Splitter};
use crate::limits::list_bytes;

/// Greatest number of bins of the power distribution: more of them leave the processor's cache.
const POWER_BINS_MAX: f64 = 16_384.0;

/// Number of powers outside of bins that are kept before equal ones are joined.
const OTHERS_MAX: usize = 1 << 20;

/// Leading bits that tell powers apart once there are too many: those of the sign, the exponent and 16 of the fraction.
const ROUNDED: u64 = u64::MAX << (52 - 16);

/// Procs that draw the same power.
#[derive(Debug, Clone)]
pub(crate) struct Level {
    /// Procs at this level now; a whole number.
    procs: f64,
    /// Power of one proc (W).
    pub(crate) watts: f64,
    /// Proc-seconds at this level.
    pub(crate) proc_s: f64,
}

/// Integrals over time while the simulation runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Meter {
    levels: Vec<Level>,
    /// The levels that have had procs; those before and behind have no integrals.
    used: Range<usize>,
    now_s: f64,
    /// Number of changes of levels and of the excess.
    pub(crate) changes_count: u64,
    /// Number of submitted jobs that have not started.
    pub(crate) waiting_count: u32,
    pub(crate) waiting_max: u32,
    pub(crate) waiting_s: f64,
    /// Sum of their procs * run time at the top gear.
    pub(crate) backlog_proc_s: f64,
    pub(crate) backlog_max: f64,
    pub(crate) backlog_s: f64,
    /// Idle procs.
    pub(crate) idle_procs: u32,
    pub(crate) lost_proc_s: f64,
    /// Constant power besides that of the levels (W).
    static_w: f64,
    /// Measured power of jobs minus the model's power of their procs.
    excess: Excess,
    /// Its integral (J).
    pub(crate) excess_j: f64,
    /// Greatest power over an interval of positive length (W); 0 if no time passed.
    pub(crate) power_peak_w: f64,
    powers: Powers,
    splitter: Option<Box<Splitter>>,
}

/// Time spent at each power, for quantiles.
#[derive(Debug, Clone, Default)]
struct Powers {
    low_w: f64,
    per_w: f64,
    /// The first power of each bin, a part of the machine's range: quick to find, and most often the only one. Empty if the
    /// powers are not recorded.
    bins: Vec<Spent>,
    /// Intervals with other powers of the bins, or joined ones of equal power.
    others: Vec<Spent>,
    /// Number of `others` at which equal ones are joined.
    others_max: usize,
    /// The bits of a power that tell it from others.
    distinct: u64,
}

/// Time spent at a power.
#[derive(Debug, Clone, Copy, Default)]
struct Spent {
    power_w: f64,
    time_s: f64,
}

impl Level {
    /// Procs at this level now.
    pub(crate) fn procs(&self) -> u32 {
        self.procs as u32
    }
}

impl Meter {
    /// A meter that starts at `now_s`. `levels`: number of procs and watts of one proc, by the caller's index.
    /// `static_w`: constant power besides (W).
    pub(crate) fn new(
        levels: impl IntoIterator<Item = (u32, f64)>,
        idle_procs: u32,
        static_w: f64,
        now_s: f64,
    ) -> Meter {
        let levels: Vec<Level> =
            levels.into_iter().map(|(procs, watts)| Level { procs: f64::from(procs), watts, proc_s: 0.0 }).collect();
        let all: f64 = levels.iter().map(|l| l.procs).sum();
        let low_w = levels.iter().map(|l| l.watts).fold(f64::INFINITY, f64::min) * all + static_w;
        let high_w = levels.iter().map(|l| l.watts).fold(0.0, f64::max) * all + static_w;
        // Idle and busy procs differ by a part of the range: with a few bins for each proc, one gear needs no `others`.
        let count = (4.0 * all).clamp(1.0, POWER_BINS_MAX);
        let per_w = if high_w > low_w { count / (high_w - low_w) } else { 0.0 };
        let has_procs = |level: &Level| level.procs > 0.0;
        let first = levels.iter().position(has_procs).unwrap_or(0);
        Meter {
            used: first..levels.iter().rposition(has_procs).map_or(first, |last| last + 1),
            levels,
            now_s,
            idle_procs,
            static_w,
            powers: Powers::new(low_w, per_w, count as usize + 2),
            ..Meter::default()
        }
    }

    /// A meter at the same instant for a copy of the machine, without waiting jobs and without quantiles.
    pub(crate) fn fork(&self) -> Meter {
        Meter {
            levels: self.levels.clone(),
            used: self.used.clone(),
            now_s: self.now_s,
            idle_procs: self.idle_procs,
            static_w: self.static_w,
            excess: self.excess,
            ..Meter::default()
        }
    }

    /// Also splits the energy from now on.
    pub(crate) fn split(&mut self, energy: &EnergySplit, idle: Idle, max_bytes: usize) {
        self.splitter = Some(Box::new(energy.splitter(self.now_s, idle, max_bytes)));
    }

    /// The split energy, at the end.
    pub(crate) fn take_splitter(&mut self) -> Option<Splitter> {
        self.splitter.take().map(|splitter| *splitter)
    }

    /// Integrates the present values from the last instant to `now_s`.
    #[inline(always)]
    pub(crate) fn advance(&mut self, now_s: f64) {
        let dt = now_s - self.now_s;
        if dt <= 0.0 {
            return;
        }
        let before_s = std::mem::replace(&mut self.now_s, now_s);
        // A sum over the counts has no drift; a sum of differences would.
        let excess_w = self.excess.watts;
        self.excess_j += excess_w * dt;
        let mut power_w = self.static_w + excess_w;
        for level in &mut self.levels[self.used.clone()] {
            level.proc_s += level.procs * dt;
            power_w += level.procs * level.watts;
        }
        raise(&mut self.power_peak_w, power_w);
        self.powers.add(power_w, dt);
        if let Some(splitter) = &mut self.splitter {
            splitter.add(before_s, now_s, power_w);
        }
        if self.waiting_count > 0 {
            self.waiting_max = self.waiting_max.max(self.waiting_count);
            raise(&mut self.backlog_max, self.backlog_proc_s);
            self.waiting_s += f64::from(self.waiting_count) * dt;
            self.backlog_s += self.backlog_proc_s * dt;
            self.lost_proc_s += f64::from(self.idle_procs) * dt;
        }
    }

    /// Moves procs between levels at the present instant.
    #[inline]
    pub(crate) fn shift(&mut self, from: usize, to: usize, procs: u32) {
        let procs = f64::from(procs);
        self.levels[from].procs -= procs;
        self.levels[to].procs += procs;
        self.changes_count += 1;
        self.used = self.used.start.min(to)..self.used.end.max(to + 1);
    }

    /// Changes the excess, in parts of a watt.
    #[inline(always)]
    pub(crate) fn exceed(&mut self, parts: i128) {
        self.excess.add(parts);
        self.changes_count += 1;
    }

    /// Widens the range of the power distribution to procs of other powers (W); called before the first instant.
    pub(crate) fn widen(&mut self, low_proc_w: f64, high_proc_w: f64) {
        let all: f64 = self.levels.iter().map(|l| l.procs).sum();
        let low_w = self.levels.iter().map(|l| l.watts).fold(low_proc_w, f64::min) * all + self.static_w;
        let high_w = self.levels.iter().map(|l| l.watts).fold(high_proc_w, f64::max) * all + self.static_w;
        let per_w = if high_w > low_w { POWER_BINS_MAX / (high_w - low_w) } else { 0.0 };
        self.powers = Powers::new(low_w, per_w, POWER_BINS_MAX as usize + 2);
    }

    /// A job arrives and waits with its work (proc-seconds).
    #[inline]
    pub(crate) fn wait_begins(&mut self, work_proc_s: f64) {
        self.waiting_count += 1;
        self.backlog_proc_s += work_proc_s;
    }

    /// A waiting job starts.
    #[inline]
    pub(crate) fn wait_ends(&mut self, work_proc_s: f64) {
        self.waiting_count -= 1;
        // An empty queue has no work: this removes rounding errors.
        self.backlog_proc_s = if self.waiting_count == 0 { 0.0 } else { self.backlog_proc_s - work_proc_s };
    }

    pub(crate) fn level(&self, index: usize) -> &Level {
        &self.levels[index]
    }

    /// Power at this instant (W).
    pub(crate) fn power_now_w(&self) -> f64 {
        let used = &self.levels[self.used.clone()];
        self.static_w + self.excess.watts + used.iter().map(|level| level.procs * level.watts).sum::<f64>()
    }

    /// The least power that was not exceeded for `share` of the time (W). Exact for up to 524,288 different powers; with
    /// more, powers that differ by less than one part in 65,536 may count as the greatest of them. `None` if no time passed.
    pub(crate) fn power_quantile_w(&self, share: f64) -> Option<f64> {
        self.powers.quantile_w(share)
    }

    pub(crate) fn bytes(&self) -> usize {
        list_bytes(&self.powers.bins)
            + list_bytes(&self.powers.others)
            + self.splitter.as_ref().map_or(0, |splitter| splitter.bytes())
    }
}

impl Powers {
    fn new(low_w: f64, per_w: f64, bins: usize) -> Powers {
        let (bins, others) = (vec![Spent::default(); bins], Vec::new());
        Powers { low_w, per_w, bins, others, others_max: OTHERS_MAX, distinct: u64::MAX }
    }

    /// The bin of a power: of two powers, the greater one has no lower bin.
    #[inline(always)]
    fn bin_of(&self, power_w: f64) -> usize {
        // The sum of a number below 2^52 and 2^52 has the nearest integer in its low bits: cheaper than a checked
        // conversion.
        const INTEGERS: f64 = (1_u64 << 52) as f64;
        let at = ((power_w - self.low_w) * self.per_w + INTEGERS).to_bits() as u32 as usize;
        at.min(self.bins.len().wrapping_sub(1))
    }

    /// Adds an interval of positive length.
    #[inline]
    fn add(&mut self, power_w: f64, dt: f64) {
        let at = self.bin_of(power_w);
        let Some(bin) = self.bins.get_mut(at) else { return };
        if (bin.power_w == power_w) | (bin.time_s == 0.0) {
            *bin = Spent { power_w, time_s: bin.time_s + dt };
        } else {
            self.others.push(Spent { power_w, time_s: dt });
            if self.others.len() >= self.others_max {
                self.join_equal();
            }
        }
    }

    /// The least power that was not exceeded for `share` of the time. Bins are in the order of their powers, so that only the
    /// powers of one bin are sorted.
    fn quantile_w(&self, share: f64) -> Option<f64> {
        let mut by_bin_s: Vec<f64> = self.bins.iter().map(|spent| spent.time_s).collect();
        for other in &self.others {
            by_bin_s[self.bin_of(other.power_w)] += other.time_s;
        }
        let until_s = share * by_bin_s.iter().sum::<f64>();
        let mut below_s = 0.0;
        let mut bin = by_bin_s.iter().rposition(|&time_s| time_s > 0.0)?;
        for (at, time_s) in by_bin_s[..bin].iter().enumerate() {
            if below_s + time_s >= until_s && *time_s > 0.0 {
                bin = at;
                break;
            }
            below_s += time_s;
        }
        let others = self.others.iter().filter(|spent| self.bin_of(spent.power_w) == bin);
        let mut within: Vec<&Spent> = std::iter::once(&self.bins[bin]).chain(others).collect();
        within.sort_unstable_by(|a, b| a.power_w.total_cmp(&b.power_w));
        let reached = within.iter().find(|spent| {
            below_s += spent.time_s;
            below_s >= until_s
        });
        reached.or(within.last()).map(|spent| spent.power_w)
    }

    /// Joins intervals of equal power, and of nearly equal power if there are still many.
    #[cold]
    fn join_equal(&mut self) {
        self.others.sort_unstable_by(|a, b| a.power_w.total_cmp(&b.power_w));
        for distinct in [self.distinct, ROUNDED] {
            if self.others.len() > self.others_max / 2 {
                self.distinct = distinct;
                self.others.dedup_by(|later, kept| {
                    let is_equal = (later.power_w.to_bits() ^ kept.power_w.to_bits()) & distinct == 0;
                    if is_equal {
                        *kept = Spent { power_w: later.power_w, time_s: kept.time_s + later.time_s };
                    }
                    is_equal
                });
            }
        }
        if self.others.len() > self.others_max / 2 {
            self.others_max *= 2;
        }
    }
}

/// `f64::max` without its handling of NaN, which no power is.
#[inline(always)]
fn raise(greatest: &mut f64, value: f64) {
    if value > *greatest {
        *greatest = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn power_queue_and_lost_procs_are_integrated() {
        // 4 procs: 1 W idle (level 0), 5 W busy (level 1).
        let mut meter = Meter::new([(4, 1.0), (0, 5.0)], 4, 0.0, 0.0);
        meter.shift(0, 1, 3);
        meter.idle_procs = 1;
        meter.wait_begins(20.0);
        meter.advance(10.0);
        meter.shift(1, 0, 3);
        meter.idle_procs = 4;
        meter.wait_ends(20.0);
        meter.advance(190.0);
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

    /// This number of powers, which come in another order than theirs, for a second each.
    fn powers(count: u32) -> Powers {
        let mut powers = Powers::new(100.0, 0.1, 16);
        (0..count).for_each(|at| powers.add(power_w((u64::from(at) * 7_919 % u64::from(count)) as u32), 1.0));
        powers
    }

    fn power_w(at: u32) -> f64 {
        100.0 + f64::from(at) / 10_000.0
    }

    #[test]
    fn quantiles_are_exact_until_there_are_too_many_powers_and_bounded_then() {
        let exact = powers(500_000);
        assert_eq!(exact.quantile_w(0.95), Some(power_w(474_999)));
        assert_eq!(exact.quantile_w(0.5), Some(power_w(249_999)));
        let joined = powers(1_200_000);
        let excess = joined.quantile_w(0.95).expect("time passed") / power_w(1_139_999) - 1.0;
        assert!((0.0..1.0 / 65_536.0).contains(&excess), "{excess}");
        assert_eq!(joined.quantile_w(1.0), Some(power_w(1_199_999)));
        assert!(joined.others.len() < OTHERS_MAX / 2, "{}", joined.others.len());
    }
}
