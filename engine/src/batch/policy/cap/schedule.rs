//! A cap that changes in time: a list of caps, each for one period, which repeats; or a signal.
use std::sync::Arc;

use super::rule::{CAP_SCHEDULE_SHARE, CAP_SCHEDULE_W, CAP_SIGNAL, CAP_SIGNAL_SHARE};
use crate::batch::platform::Machine;
use crate::error::SimError;
use crate::signal::{Edges, Signal};
use crate::spec::{Choice, Role, SimSpec};

/// The list of caps that a choice states, unconverted, with the name of its parameter; `None` without a list.
pub(crate) fn written(choice: &Choice) -> Option<(&'static str, &[f64])> {
    let of = |name: &'static str| choice.opt_reals(name).map(|caps| (name, caps));
    of(CAP_SCHEDULE_W.name).or_else(|| of(CAP_SCHEDULE_SHARE.name))
}

/// The parameter that states the caps of a choice: a list, or the label of a signal; `None` without a cap.
pub(crate) fn stated_by(choice: &Choice) -> Option<&'static str> {
    let of_signal =
        || [CAP_SIGNAL.name, CAP_SIGNAL_SHARE.name].into_iter().find(|name| choice.opt_text(name).is_some());
    written(choice).map(|(name, _)| name).or_else(of_signal)
}

/// Watts of a cap of 1: shares refer to the machine's peak.
fn unit_w(is_share: bool, machine: &Machine) -> f64 {
    // Procs that wake may draw more than busy ones, but they are no part of the peak that shares refer to.
    if is_share { machine.peak_w(false) } else { 1.0 }
}

/// The signal of a spec's cap with the parameter that names it; `None` for another cap.
fn signal(spec: &SimSpec, machine: &Machine) -> Result<Option<Caps>, SimError> {
    for (param, is_share) in [(CAP_SIGNAL, false), (CAP_SIGNAL_SHARE, true)] {
        if let Some(signal) = spec.signal(Role::Cap, param.name)? {
            return Ok(Some(Caps::Signal { key: param.name, signal, unit_w: unit_w(is_share, machine) }));
        }
    }
    Ok(None)
}

/// All caps of a spec on a machine (W); empty without a cap, and while the values of its signal are not known.
pub(crate) fn caps_w(spec: &SimSpec, machine: &Machine) -> Vec<f64> {
    if let Some((name, caps)) = written(spec.choice(Role::Cap)) {
        let unit_w = unit_w(name == CAP_SCHEDULE_SHARE.name, machine);
        return caps.iter().map(|cap| cap * unit_w).collect();
    }
    match signal(spec, machine) {
        Ok(Some(Caps::Signal { signal, unit_w, .. })) => {
            let held = signal.held().into_iter().flat_map(|(before, behind)| [before, behind]);
            signal.interval_means().into_iter().chain(held).map(|cap| cap * unit_w).collect()
        }
        Ok(_) | Err(_) => Vec::new(),
    }
}

/// Where the caps come from.
#[derive(Debug, Clone)]
enum Caps {
    /// Caps (W), each for one period.
    List { caps_w: Vec<f64>, period_s: f64 },
    /// A signal, the parameter that names it, and the watts of a value of 1.
    Signal { key: &'static str, signal: Arc<Signal>, unit_w: f64 },
}

/// Number of changes to another cap while a list is gone through once and begins again.
fn changes(caps_w: &[f64]) -> usize {
    caps_w.iter().zip(caps_w.iter().cycle().skip(1)).filter(|(cap_w, next_w)| cap_w != next_w).count()
}

/// The caps of a spec, from the first submit on.
#[derive(Debug, Clone)]
pub(super) struct Schedule {
    caps: Caps,
    /// Number of changes after which all caps have been in force.
    count: usize,
    /// Number of periods of a list that have passed at the next change.
    passed: u64,
    present_w: f64,
    /// The next change (s), once the first instant is known.
    next_s: Option<f64>,
}

impl Schedule {
    /// The schedule of a spec's cap.
    pub(super) fn new(spec: &SimSpec, machine: &Machine) -> Result<Schedule, SimError> {
        let caps = match signal(spec, machine)? {
            Some(caps) => caps,
            None => {
                let period_s = spec.choice(Role::Cap).real("cap_period_s");
                Caps::List { caps_w: caps_w(spec, machine), period_s }
            }
        };
        let present_w = match &caps {
            Caps::List { caps_w, .. } => caps_w[0],
            Caps::Signal { .. } => f64::INFINITY,
        };
        Ok(Schedule { caps, count: changes(&caps_w(spec, machine)), passed: 0, present_w, next_s: None })
    }

    /// The present cap, for ever.
    pub(super) fn fork(&self) -> Schedule {
        let caps = Caps::List { caps_w: vec![self.present_w], period_s: f64::INFINITY };
        Schedule { caps, count: 0, passed: 0, present_w: self.present_w, next_s: None }
    }

    /// The first instant of the run (s).
    ///
    /// # Errors
    /// The signal does not cover it.
    pub(super) fn begin(&mut self, first_s: f64) -> Result<(), SimError> {
        match &self.caps {
            Caps::List { .. } => self.find_next(first_s),
            Caps::Signal { .. } => self.follow(first_s)?,
        }
        Ok(())
    }

    /// The cap changes. `first_s`: the first instant of the run (s).
    ///
    /// # Errors
    /// The signal does not cover the instant.
    pub(super) fn change(&mut self, first_s: f64, now_s: f64) -> Result<(), SimError> {
        match &self.caps {
            Caps::List { caps_w, .. } => {
                self.present_w = caps_w[(self.passed % caps_w.len() as u64) as usize];
                self.find_next(first_s);
            }
            Caps::Signal { .. } => self.follow(now_s)?,
        }
        Ok(())
    }

    /// Finds the next change of a list to another cap.
    fn find_next(&mut self, first_s: f64) {
        let Caps::List { caps_w, period_s } = &self.caps else { return };
        let count = caps_w.len() as u64;
        let mut later = self.passed + 1..self.passed + count;
        let next = later.find(|passed| caps_w[(passed % count) as usize] != self.present_w);
        self.passed = next.unwrap_or(self.passed);
        self.next_s = next.map(|passed| first_s + passed as f64 * period_s);
    }

    /// Takes the signal's cap, and finds its next change to another value.
    fn follow(&mut self, now_s: f64) -> Result<(), SimError> {
        let Caps::Signal { key, signal, unit_w } = &self.caps else { return Ok(()) };
        let value_at = |at_s: f64| signal.interval_mean(at_s).map(|value| value * unit_w);
        self.present_w = value_at(now_s).ok_or(SimError::NotCovered { key, now_s })?;
        // A signal that repeats one value has no change.
        let edges = std::iter::successors(Some(signal.next_after(now_s)), |edge_s| Some(signal.next_after(*edge_s)));
        let mut edges = edges.take(signal.edges().count()).take_while(|edge_s| *edge_s < f64::INFINITY);
        self.next_s = edges.find(|edge_s| value_at(*edge_s) != Some(self.present_w));
        Ok(())
    }

    /// The present cap (W).
    pub(super) fn cap_w(&self) -> f64 {
        self.present_w
    }

    /// Number of changes after which all caps have been in force; 0 for a cap that does not change any more.
    pub(super) fn count(&self) -> usize {
        if self.next_s.is_some() { self.count } else { 0 }
    }

    /// The next change (s); `None` for a constant cap.
    pub(super) fn next_s(&self) -> Option<f64> {
        self.next_s
    }
}
