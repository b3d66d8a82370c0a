//! Sleeping procs, and the number of active procs.
//!
//! A proc is active unless it sleeps, or switches off and is not recalled. Woken procs count as active at once and are
//! idle at the end of waking; procs that are woken while they switch off (recalled procs) finish switching off, then
//! wake. So only decisions change the number of active procs, never the end of a transition.
//!
//! A capacity rule may have sleeping procs count as coming ([`Cluster::count_sleeping`]): then the scheduler reserves
//! them like procs that wake, and the rule wakes them once a job can start on them.
use super::cluster::{ASLEEP, Cluster, IDLE, SWITCHING_OFF, WAKING};
use super::events::Alarm;
use super::recorder::Recorder;
use crate::error::Stop;
use crate::limits::list_bytes;

/// Procs in transition: towards idle or towards sleep.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Coming {
    /// End of the transition (s).
    at_s: f64,
    procs: u32,
}

/// Procs in transition, and the number of active procs so far. There is one time of waking and one of switching off, and
/// sleeping procs wake before others are recalled: so transitions are in the order of their ends.
#[derive(Debug, Clone)]
pub(super) struct Sleep {
    /// Waking procs, among them recalled ones that still switch off.
    waking: Vec<Coming>,
    /// Procs that switch off.
    falling: Vec<Coming>,
    /// Instants (s) and the number of active procs from each on; consecutive numbers differ.
    steps: Vec<(f64, u32)>,
    /// Whether procs that sleep or switch off count as coming.
    sleeping_counts: bool,
    /// Whether procs will be woken at a later instant although no job ends or arrives.
    wakes_later: bool,
}

impl Sleep {
    /// All procs are active from `now_s` on.
    pub(super) fn new(now_s: f64, procs: u32) -> Sleep {
        let steps = vec![(now_s, procs)];
        Sleep { waking: Vec::new(), falling: Vec::new(), steps, sleeping_counts: false, wakes_later: false }
    }

    /// From now on, `procs` are active.
    fn step(&mut self, now_s: f64, procs: u32) {
        if self.steps.last().is_some_and(|&(at_s, _)| at_s == now_s) {
            self.steps.pop();
        }
        if self.steps.last().is_none_or(|&(_, before)| before != procs) {
            self.steps.push((now_s, procs));
        }
    }

    /// The procs in transition, for a copy that begins at `now_s`.
    pub(super) fn fork(&self, now_s: f64) -> Sleep {
        let procs = self.steps.last().map_or(0, |step| step.1);
        let Sleep { waking, falling, steps: _, sleeping_counts, wakes_later } = self;
        let (waking, falling) = (waking.clone(), falling.clone());
        let steps = vec![(now_s, procs)];
        Sleep { waking, falling, steps, sleeping_counts: *sleeping_counts, wakes_later: *wakes_later }
    }

    pub(super) fn bytes(&self) -> usize {
        list_bytes(&self.steps)
    }
}

/// Removes procs whose transition has ended.
fn remove(list: &mut Vec<Coming>, at_s: f64, mut procs: u32) {
    list.retain_mut(|coming| {
        if coming.at_s <= at_s {
            let taken = coming.procs.min(procs);
            coming.procs -= taken;
            procs -= taken;
        }
        coming.procs > 0
    });
}

/// Sleeping procs in the view and in the decisions of a policy.
impl<R: Recorder> Cluster<'_, R> {
    /// Procs that are switched off.
    pub fn asleep(&self) -> u32 {
        self.states.asleep
    }

    /// Procs that are switching off or waking.
    pub fn switching(&self) -> u32 {
        self.states.switching_off + self.states.waking
    }

    /// Active procs: all but those that sleep or will sleep. Waking procs count.
    pub fn active(&self) -> u32 {
        let state = &self.states;
        self.machine.procs - state.asleep - state.switching_off + state.recalled
    }

    /// Waking procs, among them recalled ones.
    pub fn waking(&self) -> u32 {
        self.states.waking + self.states.recalled
    }

    /// Procs that sleep or switch off, and count as coming. 0 unless [`Cluster::count_sleeping`] was called.
    pub fn sleeping_that_count(&self) -> u32 {
        let state = &self.states;
        if self.sleep.sleeping_counts { state.asleep + state.switching_off - state.recalled } else { 0 }
    }

    /// Procs that will be idle without the end of a job: the instants (s), in any order, and their numbers.
    /// Waking procs and, after [`Cluster::count_sleeping`], sleeping ones as if they were woken now.
    pub fn coming(&self) -> impl Iterator<Item = (f64, u32)> {
        let waking = self.sleep.waking.iter().map(|c| (c.at_s, c.procs));
        let wake_s = self.machine.sleep.wake_s;
        let counts = self.sleep.sleeping_counts;
        let asleep = Some((self.now_s + wake_s, self.states.asleep)).filter(|(_, procs)| counts && *procs > 0);
        let mut recalled = self.states.recalled;
        let falling = self.sleep.falling.iter().filter(move |_| counts).filter_map(move |c| {
            let already = recalled.min(c.procs);
            recalled -= already;
            (c.procs > already).then_some((c.at_s + wake_s, c.procs - already))
        });
        waking.chain(asleep).chain(falling)
    }

    /// Whether [`Cluster::coming`] has procs.
    #[inline]
    pub fn any_coming(&self) -> bool {
        !self.sleep.waking.is_empty() || self.sleeping_that_count() > 0
    }

    /// From now on, procs that sleep or switch off count as coming.
    pub fn count_sleeping(&mut self) {
        self.sleep.sleeping_counts = true;
    }

    /// Says whether procs will be woken at a later instant although no job ends or arrives.
    pub fn set_wakes_later(&mut self, wakes_later: bool) {
        self.sleep.wakes_later = wakes_later;
    }

    /// Whether procs switch off or wake, or will be woken later: the free procs may change although no job ends.
    pub fn in_transition(&self) -> bool {
        self.sleep.wakes_later || self.switching() > 0
    }

    /// Makes all procs idle that sleep, switch off or wake. For copies of the cluster: it skips the transitions.
    pub(crate) fn wake_all_at_once(&mut self) {
        let state = &mut self.states;
        let base = state.after_gears;
        let levels = [(ASLEEP, state.asleep), (SWITCHING_OFF, state.switching_off), (WAKING, state.waking)];
        (state.asleep, state.switching_off, state.recalled, state.waking) = (0, 0, 0, 0);
        for (level, procs) in levels.into_iter().filter(|(_, procs)| *procs > 0) {
            state.free += procs;
            self.meter.idle_procs += procs;
            self.meter.shift(base + level, base + IDLE, procs);
        }
        self.sleep.waking.clear();
        self.sleep.falling.clear();
        self.timers = self.timers.only(|alarm| matches!(alarm, Alarm::Policy(_)));
        self.note_active();
    }

    /// The instants (s) at which the number of active procs has changed, with the number; the first
    /// instant is the first submit.
    pub fn active_steps(&self) -> &[(f64, u32)] {
        &self.sleep.steps
    }

    /// Switches idle procs off; they draw `off_w` for `off_s`, then `asleep_w`.
    ///
    /// # Errors
    /// [`crate::error::SimError::Policy`] if fewer are idle.
    pub fn sleep(&mut self, procs: u32) -> Result<(), Stop> {
        if self.states.free < procs {
            return Err(self.refuse(format!("cannot put {procs} procs to sleep: fewer are idle")));
        }
        if procs == 0 {
            return Ok(());
        }
        let off_s = self.machine.sleep.off_s;
        let base = self.states.after_gears;
        self.states.free -= procs;
        self.meter.idle_procs -= procs;
        if off_s > 0.0 {
            let at_s = self.now_s + off_s;
            self.states.switching_off += procs;
            self.meter.shift(base + IDLE, base + SWITCHING_OFF, procs);
            self.sleep.falling.push(Coming { at_s, procs });
            self.timers.push(at_s, Alarm::Asleep { procs });
        } else {
            self.states.asleep += procs;
            self.meter.shift(base + IDLE, base + ASLEEP, procs);
        }
        self.note_active();
        Ok(())
    }

    /// Wakes procs; they draw `wake_w` for `wake_s`, then are idle. They count as active at once. If fewer
    /// are asleep, procs that switch off are recalled, earliest first: they finish switching off, then wake.
    ///
    /// # Errors
    /// [`crate::error::SimError::Policy`] if fewer are asleep or switching off.
    pub fn wake(&mut self, procs: u32) -> Result<(), Stop> {
        let state = &self.states;
        if state.asleep + state.switching_off - state.recalled < procs {
            return Err(self.refuse(format!("cannot wake {procs} procs: fewer are asleep")));
        }
        if procs == 0 {
            return Ok(());
        }
        let at_once = procs.min(self.states.asleep);
        if at_once > 0 {
            let at_s = self.now_s + self.machine.sleep.wake_s;
            self.sleep.waking.push(Coming { at_s, procs: at_once });
            self.begin_waking(at_once);
        }
        self.recall(procs - at_once);
        self.note_active();
        Ok(())
    }

    /// Recalls procs that switch off: they wake once they are off.
    fn recall(&mut self, mut procs: u32) {
        let wake_s = self.machine.sleep.wake_s;
        // The first ones are already recalled.
        let mut before = self.states.recalled;
        self.states.recalled += procs;
        for falling in &self.sleep.falling {
            let taken = before.min(falling.procs);
            before -= taken;
            let recalled = procs.min(falling.procs - taken);
            procs -= recalled;
            if recalled > 0 {
                self.sleep.waking.push(Coming { at_s: falling.at_s + wake_s, procs: recalled });
            }
        }
    }

    /// Starts to wake sleeping procs, which are already in the list of waking procs.
    fn begin_waking(&mut self, procs: u32) {
        let wake_s = self.machine.sleep.wake_s;
        let base = self.states.after_gears;
        self.states.asleep -= procs;
        if wake_s > 0.0 {
            self.states.waking += procs;
            self.meter.shift(base + ASLEEP, base + WAKING, procs);
            self.timers.push(self.now_s + wake_s, Alarm::Woken { procs });
        } else {
            self.states.free += procs;
            self.meter.idle_procs += procs;
            self.meter.shift(base + ASLEEP, base + IDLE, procs);
            remove(&mut self.sleep.waking, self.now_s, procs);
        }
    }

    /// Changes the state of procs at the end of a transition.
    pub(super) fn transition(&mut self, alarm: Alarm) {
        match alarm {
            Alarm::Woken { procs } => {
                let base = self.states.after_gears;
                let state = &mut self.states;
                state.waking -= procs;
                state.free += procs;
                self.meter.idle_procs += procs;
                self.meter.shift(base + WAKING, base + IDLE, procs);
                remove(&mut self.sleep.waking, self.now_s, procs);
            }
            Alarm::Asleep { procs } => {
                let base = self.states.after_gears;
                let state = &mut self.states;
                state.switching_off -= procs;
                state.asleep += procs;
                let recalled = state.recalled.min(procs);
                state.recalled -= recalled;
                self.meter.shift(base + SWITCHING_OFF, base + ASLEEP, procs);
                remove(&mut self.sleep.falling, self.now_s, procs);
                if recalled > 0 {
                    self.begin_waking(recalled);
                }
            }
            Alarm::Policy(_) => {}
        }
    }

    fn note_active(&mut self) {
        let active = self.active();
        self.sleep.step(self.now_s, active);
    }
}
