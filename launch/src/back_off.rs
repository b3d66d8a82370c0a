//! Pauses between submissions after failures.

use serde::{Deserialize, Serialize};

use crate::Seconds;

/// Waiting time after the first, second, ... failure in a row (s).
const DELAYS_S: [Seconds; 5] = [0, 60, 15 * 60, 30 * 60, 60 * 60];
/// Refused submissions in a row that end in a pause.
const REFUSALS_MAX: u32 = 10;
/// Allocations in a row that ended within a minute, and end in a pause.
const SHORT_LIVES_MAX: u32 = 3;
/// Length of a pause (s). Then one more submission is tried: a site's trouble passes without notice.
const PAUSE_S: Seconds = 6 * 60 * 60;

/// Failures in a row, and when the next submission may be tried.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BackOff {
    refusals: u32,
    short_lives: u32,
    not_before: Seconds,
    /// The last failure in words.
    reason: String,
    paused: bool,
}

/// Why nothing is submitted now.
#[derive(Debug, Clone, PartialEq)]
pub struct Pause {
    /// The failure in words.
    pub reason: String,
    /// When the next submission is tried.
    pub until: Seconds,
    /// The failures repeat: `until` is hours away.
    pub long: bool,
}

impl BackOff {
    /// The batch system refused a submission.
    pub fn refused(&mut self, reason: &str, now: Seconds) {
        self.refusals += 1;
        let reason = format!("{} refused in a row, the last one: {reason}", submissions(self.refusals));
        self.wait(self.refusals, REFUSALS_MAX, reason, now);
    }

    /// An allocation failed within a minute of its start.
    pub fn short_lived(&mut self, which: &str, now: Seconds) {
        self.short_lives += 1;
        let reason = match self.short_lives {
            1 => format!("the worker of allocation {which} failed within a minute"),
            n => format!("the workers of {n} allocations in a row failed within a minute, the last one {which}"),
        };
        self.wait(self.short_lives, SHORT_LIVES_MAX, reason, now);
    }

    /// The shell of an allocation could not start the program.
    pub fn cannot_start(&mut self, which: &str, code: u8, now: Seconds) {
        self.short_lives += 1;
        let reason = format!("allocation {which} could not start the program (exit code {code}), whatever its node");
        self.wait(self.short_lives, SHORT_LIVES_MAX, reason, now);
    }

    fn wait(&mut self, failures: u32, most: u32, reason: String, now: Seconds) {
        self.paused = failures >= most;
        let at = (failures as usize).clamp(1, DELAYS_S.len()) - 1;
        self.not_before = now + if self.paused { PAUSE_S } else { DELAYS_S[at] };
        self.reason = reason;
    }

    /// A submission was accepted.
    pub fn accepted(&mut self) {
        self.refusals = 0;
        self.forget();
    }

    /// A worker has run for a minute.
    pub fn lived(&mut self) {
        self.short_lives = 0;
        self.forget();
    }

    fn forget(&mut self) {
        if self.refusals == 0 && self.short_lives == 0 {
            *self = BackOff::default();
        }
    }

    /// The pause that holds now.
    pub fn pause(&self, now: Seconds) -> Option<Pause> {
        let waits = now < self.not_before;
        waits.then(|| Pause { reason: self.reason.clone(), until: self.not_before, long: self.paused })
    }
}

fn submissions(count: u32) -> String {
    if count == 1 { "1 submission was".to_owned() } else { format!("{count} submissions were") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_followed_by_longer_and_longer_waits_and_then_by_a_pause() {
        let (mut back_off, mut now) = (BackOff::default(), 1_000_000);
        let mut waits = Vec::new();
        for _ in 0..11 {
            back_off.refused("QOSMaxSubmitJobPerUserLimit", now);
            let until = back_off.pause(now).map_or(now, |pause| pause.until);
            waits.push((until - now) / 60);
            now = until;
            assert_eq!(back_off.pause(now), None, "the next one is tried");
        }
        assert_eq!(waits, [0, 1, 15, 30, 60, 60, 60, 60, 60, 360, 360]);
        back_off.refused("again", now);
        let pause = back_off.pause(now).unwrap();
        assert!(pause.long && pause.reason.ends_with("12 submissions were refused in a row, the last one: again"));
        back_off.accepted();
        assert_eq!(back_off, BackOff::default());
    }

    #[test]
    fn three_workers_that_fail_at_once_end_in_a_pause_that_only_a_living_one_ends() {
        let mut back_off = BackOff::default();
        back_off.short_lived("1_1", 0);
        assert_eq!(back_off.pause(0), None);
        back_off.short_lived("1_2", 0);
        assert_eq!(back_off.pause(0).unwrap().until, 60);
        back_off.short_lived("2_1", 60);
        let pause = back_off.pause(60).unwrap();
        assert!(pause.long && pause.reason.contains("3 allocations in a row"), "{pause:?}");
        back_off.accepted();
        assert!(back_off.pause(60).is_some(), "an accepted submission is no living worker");
        back_off.lived();
        assert_eq!(back_off.pause(60), None);
    }
}
