//! Conservative backfilling with plain lists: each reservation is searched among all instants at which something ends.
use powersweep_engine::workload::Job;

/// Procs of the machine.
pub(super) const PROCS: u32 = 16;
/// Time factor and power above idle (W) of a proc at each gear.
const GEARS: [(f64, f64); 2] = [(2., 2.), (1., 8.)];
/// Power of all procs when idle (W).
const IDLE_W: f64 = 32.;
/// How long a cap holds (s).
pub(super) const PERIOD_S: f64 = 700.;

/// A reservation, or a running job with its estimated end.
#[derive(Debug, Clone, Copy)]
struct Held {
    job: usize,
    start_s: f64,
    end_s: f64,
    gear: usize,
    procs: u32,
    watts: f64,
}

/// The input of a schedule besides the jobs.
pub(super) struct Rules<'a> {
    pub(super) procs: u32,
    /// Empty without a cap.
    pub(super) caps_w: &'a [f64],
    /// Shortest first instead of first come, first served.
    pub(super) sjf: bool,
    pub(super) events: &'a str,
    /// Greatest number of reservations after now.
    pub(super) depth: usize,
}

struct Machine<'a> {
    jobs: &'a [Job],
    rules: Rules<'a>,
    limit_w: f64,
    now_s: f64,
    /// In the order of starts.
    running: Vec<Held>,
    queue: Vec<Held>,
    ran: Vec<Option<(f64, f64, usize)>>,
    /// Jobs that have been submitted.
    submitted: usize,
    /// Whether a job has ended at another instant than estimated since the last pass.
    unexpected_end: bool,
    /// Whether a job waits without a reservation because of the depth.
    cut: bool,
}

/// Start, end and gear of each job.
pub(super) fn schedule(jobs: &[Job], rules: Rules<'_>) -> Vec<(f64, f64, usize)> {
    let caps_w = rules.caps_w;
    let limit_w = |period: usize| caps_w.get(period % caps_w.len().max(1)).map_or(f64::INFINITY, |w| w * (1. + 1e-9));
    let (running, queue, ran) = (Vec::new(), Vec::new(), vec![None; jobs.len()]);
    let limit_now_w = limit_w(0);
    let (submitted, unexpected_end, cut) = (0, false, false);
    let mut m =
        Machine { jobs, rules, limit_w: limit_now_w, now_s: 0., running, queue, ran, submitted, unexpected_end, cut };
    let mut period = 0;
    while m.ran.iter().any(Option::is_none) || !m.running.is_empty() {
        let cap_s = if caps_w.len() > 1 { jobs[0].submit_s + (period + 1) as f64 * PERIOD_S } else { f64::INFINITY };
        let submit_s = jobs.get(m.submitted).map_or(f64::INFINITY, |job| job.submit_s);
        let ends = m.running.iter().map(|held| m.ran[held.job].unwrap().1);
        let reserved = m.queue.iter().map(|held| held.start_s).filter(|&start_s| start_s > m.now_s);
        m.now_s = ends.chain(reserved).fold(submit_s.min(cap_s), f64::min);
        assert!(m.now_s.is_finite(), "no event is left, but jobs wait");
        let mut cap_changed = false;
        if cap_s == m.now_s {
            period += 1;
            (m.limit_w, cap_changed) = (limit_w(period), limit_w(period) != m.limit_w);
        }
        match m.rules.events {
            "batch" => m.instant(cap_changed),
            events => m.instant_event_by_event(events == "submit-first"),
        }
    }
    m.ran.into_iter().map(Option::unwrap).collect()
}

impl Machine<'_> {
    /// Handles all completions, all submissions, and one pass; repeats this while jobs end at the instant of their start.
    fn instant(&mut self, mut cap_changed: bool) {
        loop {
            while let Some(at) = self.running.iter().position(|held| self.ends_now(held)) {
                self.complete(at);
            }
            let first = self.submitted;
            while self.submits_now() {
                self.submitted += 1;
            }
            self.pass(std::mem::take(&mut cap_changed), first..self.submitted);
            if !self.running.iter().any(|held| self.ends_now(held)) {
                return;
            }
        }
    }

    /// Runs a pass after every event. At an instant without events, a reservation begins.
    fn instant_event_by_event(&mut self, submit_first: bool) {
        // Jobs that end now and have had no pass yet, in the order of starts.
        let mut due: Vec<usize> = Vec::new();
        let mut passed = false;
        loop {
            let ends: Vec<Held> = self.running.iter().copied().filter(|held| self.ends_now(held)).collect();
            for held in ends.into_iter().filter(|held| !due.contains(&held.job)).collect::<Vec<_>>() {
                due.push(held.job);
                if submit_first && held.end_s <= self.now_s {
                    self.complete(self.running.iter().position(|running| running.job == held.job).unwrap());
                }
            }
            let mut arrived = 0..0;
            if self.submits_now() && (submit_first || due.is_empty()) {
                arrived = self.submitted..self.submitted + 1;
                self.submitted += 1;
            } else if !due.is_empty() {
                let job = due.remove(0);
                if let Some(at) = self.running.iter().position(|held| held.job == job) {
                    self.complete(at);
                }
            } else {
                break;
            }
            self.pass(false, arrived);
            passed = true;
        }
        if !passed {
            self.pass(false, 0..0);
        }
        if self.running.iter().any(|held| self.ends_now(held)) {
            self.instant_event_by_event(submit_first);
        }
    }

    fn ends_now(&self, held: &Held) -> bool {
        self.ran[held.job].unwrap().1 == self.now_s
    }

    fn submits_now(&self) -> bool {
        self.jobs.get(self.submitted).is_some_and(|job| job.submit_s == self.now_s)
    }

    fn complete(&mut self, at: usize) {
        let held = self.running.remove(at);
        self.unexpected_end |= held.end_s != self.now_s;
    }

    fn pass(&mut self, cap_changed: bool, arrived: std::ops::Range<usize>) {
        let missed = self.queue.iter().any(|held| held.start_s < self.now_s);
        let unexpected_end = std::mem::take(&mut self.unexpected_end);
        if cap_changed || missed {
            self.reserve_all();
        } else if unexpected_end || self.cut {
            self.sort();
            self.cut = false;
            for at in 0..self.queue.len() {
                let old = self.queue[at];
                let behind = self.reserved_before(at) >= self.rules.depth;
                if old.start_s != self.now_s {
                    self.queue[at].start_s = f64::INFINITY;
                    let new = self.place(old.job, if behind { self.now_s } else { old.start_s });
                    self.queue[at] = if new.start_s.is_finite() || behind { new } else { old };
                }
                self.cut |= behind && self.queue[at].start_s.is_infinite();
            }
        }
        for job in arrived {
            self.append(job);
        }
        self.sort();
        let mut fresh = cap_changed || missed;
        while let Some(refused) = self.start_due() {
            if refused && fresh {
                break;
            }
            self.reserve_all();
            fresh = true;
        }
    }

    /// Starts the jobs that are due. `None`: all due jobs with free procs started as reserved. `Some(false)`: a job started
    /// below its reserved gear. `Some(true)`: the watts did not suffice for a job at any gear.
    fn start_due(&mut self) -> Option<bool> {
        let mut refused = None;
        let mut at = 0;
        while at < self.queue.len() {
            let held = self.queue[at];
            let (procs, watts) = self.running.iter().fold((0, 0.), |sum, r| (sum.0 + r.procs, sum.1 + r.watts));
            if held.start_s > self.now_s || held.procs > self.rules.procs - procs {
                at += 1;
                continue;
            }
            let job = &self.jobs[held.job];
            let left_w = self.limit_w - (IDLE_W + watts);
            let Some(gear) = (0..=held.gear).rev().find(|&g| f64::from(held.procs) * GEARS[g].1 <= left_w) else {
                refused = Some(true);
                at += 1;
                continue;
            };
            self.queue.remove(at);
            let (factor, each_w) = GEARS[gear];
            let (end_s, watts) = (self.now_s + job.estimate_s * factor, f64::from(job.procs) * each_w);
            self.running.push(Held { start_s: self.now_s, end_s, gear, watts, ..held });
            self.ran[held.job] = Some((self.now_s, self.now_s + job.run_s * factor, gear));
            if gear < held.gear {
                return Some(false);
            }
        }
        refused
    }

    /// Replaces all reservations.
    fn reserve_all(&mut self) {
        self.sort();
        self.cut = false;
        let jobs: Vec<usize> = std::mem::take(&mut self.queue).iter().map(|held| held.job).collect();
        for job in jobs {
            self.append(job);
        }
    }

    /// Number of reservations after now, of the first jobs of the queue.
    fn reserved_before(&self, at: usize) -> usize {
        let waits = |held: &&Held| held.start_s > self.now_s && held.start_s.is_finite();
        self.queue[..at].iter().filter(waits).count()
    }

    /// Adds a job at the end of the queue. Behind the depth it has a place only if it starts now.
    fn append(&mut self, job: usize) {
        let behind = self.reserved_before(self.queue.len()) >= self.rules.depth;
        let held = self.place(job, if behind { self.now_s } else { f64::INFINITY });
        self.queue.push(held);
        self.cut |= behind && held.start_s.is_infinite();
    }

    fn sort(&mut self) {
        let key = |held: &Held| if self.rules.sjf { self.jobs[held.job].estimate_s } else { 0. };
        self.queue.sort_by(|a, b| key(a).total_cmp(&key(b)).then(a.job.cmp(&b.job)));
    }

    /// The reservation with the earliest start by `latest_s`, of equal starts the highest gear; infinite if there is none.
    fn place(&self, job: usize, latest_s: f64) -> Held {
        let Job { procs, estimate_s, .. } = self.jobs[job];
        let mut best = Held { job, start_s: f64::INFINITY, end_s: f64::INFINITY, gear: 0, procs: 0, watts: 0. };
        // A hole begins now or at an end.
        let others = || self.running.iter().chain(&self.queue);
        let starts = others().map(|held| held.end_s).filter(|&end_s| end_s > self.now_s).chain([self.now_s]);
        for start_s in starts.filter(|&start_s| start_s <= latest_s) {
            for (gear, &(factor, each_w)) in GEARS.iter().enumerate() {
                let (end_s, watts) = (start_s + estimate_s * factor, f64::from(procs) * each_w);
                let later = others().map(|held| held.start_s).filter(|&at_s| at_s > start_s && at_s < end_s);
                let fits = later.chain([start_s]).all(|at_s| self.fits_at(at_s, procs, watts));
                if fits && (start_s, std::cmp::Reverse(gear)) < (best.start_s, std::cmp::Reverse(best.gear)) {
                    best = Held { job, start_s, end_s, gear, procs, watts };
                }
            }
        }
        best
    }

    fn fits_at(&self, at_s: f64, procs: u32, watts: f64) -> bool {
        let holds = |held: &&Held| held.start_s <= at_s && held.end_s > at_s;
        let then = self.running.iter().chain(&self.queue).filter(holds);
        let (used, used_w) = then.fold((0, 0.), |sum, held| (sum.0 + held.procs, sum.1 + held.watts));
        used + procs <= self.rules.procs && IDLE_W + used_w + watts <= self.limit_w
    }
}
