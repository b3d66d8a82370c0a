//! A simple, slow reference implementation of queue orders, backfilling rules and gear rules, for comparison with the engine
//! job by job.
//!
//! It searches and sorts plain lists at every pass, and shares no code with the engine. The event order is `batch`.
use powersweep_engine::workload::Job;

/// The input of a schedule besides the jobs.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    pub(crate) procs: u32,
    pub(crate) order: &'static str,
    /// `none`, `easy`, `easy-extra`, `kept-head`, or `kept-head-alone`, which no job overtakes.
    pub(crate) backfill: &'static str,
    /// Threshold, and greatest number of other waiting jobs, of the gear rule `bsld`; `None`: the top gear.
    pub(crate) bsld: Option<(f64, f64)>,
    /// Run time at each gear over the run time at the top gear.
    pub(crate) coef: Vec<f64>,
}

/// One job's schedule.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Ran {
    pub(crate) start: f64,
    pub(crate) end: f64,
    pub(crate) gear: usize,
    /// The first shadow time of the job, if it waited as the head of the queue.
    pub(crate) promised: Option<f64>,
}

struct Machine<'a> {
    jobs: &'a [Job],
    rules: &'a Rules,
    now: f64,
    free: u32,
    queue: Vec<usize>,
    /// Job, end, estimated end.
    running: Vec<(usize, f64, f64)>,
    ran: Vec<Option<Ran>>,
    promised: Vec<Option<f64>>,
    /// Under `kept-head`, the chosen job and its reservation.
    kept: Option<(usize, Option<f64>)>,
}

/// The schedule of sorted jobs, none wider than the machine.
pub(crate) fn schedule(jobs: &[Job], rules: &Rules) -> Vec<Ran> {
    let mut m = Machine {
        jobs,
        rules,
        now: 0.0,
        free: rules.procs,
        queue: Vec::new(),
        running: Vec::new(),
        ran: vec![None; jobs.len()],
        promised: vec![None; jobs.len()],
        kept: None,
    };
    let mut next = 0;
    while next < jobs.len() || !m.running.is_empty() {
        let end = m.running.iter().map(|r| r.1).fold(f64::INFINITY, f64::min);
        m.now = if next < jobs.len() { end.min(jobs[next].submit_s) } else { end };
        loop {
            m.complete();
            while next < jobs.len() && jobs[next].submit_s == m.now {
                m.queue.push(next);
                next += 1;
            }
            m.pass();
            if m.running.iter().all(|r| r.1 != m.now) {
                break;
            }
        }
    }
    m.ran.into_iter().map(Option::unwrap).collect()
}

impl Machine<'_> {
    fn complete(&mut self) {
        for &(job, end, _) in &self.running {
            if end == self.now {
                self.free += self.jobs[job].procs;
            }
        }
        let now = self.now;
        self.running.retain(|r| r.1 != now);
    }

    fn start(&mut self, job: usize, gear: usize) {
        let Job { run_s, estimate_s, procs, .. } = self.jobs[job];
        let coef = self.rules.coef[gear];
        assert!(procs <= self.free);
        self.free -= procs;
        let end = self.now + run_s * coef;
        self.running.push((job, end, self.now + estimate_s * coef));
        self.ran[job] = Some(Ran { start: self.now, end, gear, promised: self.promised[job] });
    }

    fn sat(&self, job: usize, gear: usize) -> bool {
        let Job { submit_s, estimate_s, .. } = self.jobs[job];
        let predicted = ((self.now - submit_s) + estimate_s * self.rules.coef[gear]) / estimate_s.max(600.0);
        predicted.max(1.0) < self.rules.bsld.unwrap().0
    }

    /// The gears to try, lowest first.
    fn gears(&self) -> Vec<usize> {
        let top = self.rules.coef.len() - 1;
        match self.rules.bsld {
            Some((_, others)) if (self.queue.len() - 1) as f64 <= others => (0..=top).collect(),
            _ => vec![top],
        }
    }

    fn sort(&mut self) {
        let (jobs, now, waiting) = (self.jobs, self.now, self.queue.len());
        let (free, all) = (f64::from(self.free), f64::from(self.rules.procs));
        let key = |&i: &usize| {
            let Job { submit_s, estimate_s, procs, .. } = jobs[i];
            let n = f64::from(procs);
            match self.rules.order {
                "fcfs" => i as f64,
                "sjf" => estimate_s,
                "widest" => -n,
                "wfp3" => {
                    let ratio = (now - submit_s) / estimate_s.max(1.0);
                    -(ratio * ratio * ratio * n)
                }
                "f1" => {
                    let age = (submit_s - jobs[0].submit_s).max(1.0);
                    libm::log10(estimate_s.max(1.0)) * n + 870.0 * libm::log10(age)
                }
                // `conformance::FORMULA`.
                "formula" => {
                    let first = if waiting > 3 { estimate_s * n } else { -(now - submit_s) };
                    // One zero, because the sort tells two apart.
                    first * (1.0 + free / all) + 0.0
                }
                other => panic!("{other}"),
            }
        };
        self.queue.sort_by(|a, b| key(a).total_cmp(&key(b)).then(a.cmp(b)));
    }

    fn pass(&mut self) {
        self.sort();
        if self.rules.backfill.starts_with("kept-head") {
            return self.pass_behind_kept_head();
        }
        let top = self.rules.coef.len() - 1;
        while let Some(&head) = self.queue.first() {
            if self.jobs[head].procs > self.free {
                break;
            }
            let gear = self.gears().into_iter().find(|&g| g == top || self.sat(head, g)).unwrap();
            self.start(head, gear);
            self.queue.remove(0);
        }
        if self.queue.is_empty() || self.rules.backfill == "none" {
            return;
        }
        let (shadow, mut extra) = self.reservation();
        let head = self.queue[0];
        self.promised[head].get_or_insert(shadow);
        for job in self.queue.clone().into_iter().skip(1) {
            let Job { estimate_s, procs, .. } = self.jobs[job];
            if procs > self.free {
                continue;
            }
            let spare = self.rules.backfill == "easy-extra" && procs <= extra;
            let ends = |g: usize| self.now + estimate_s * self.rules.coef[g] <= shadow;
            let gear = self.gears().into_iter().find(|&g| (ends(g) || spare) && (g == top || self.sat(job, g)));
            if let Some(gear) = gear {
                if !ends(gear) {
                    extra -= procs;
                }
                self.start(job, gear);
                self.queue.retain(|&j| j != job);
            }
        }
    }

    fn pass_behind_kept_head(&mut self) {
        let top = self.rules.coef.len() - 1;
        while let Some(&first) = self.queue.first() {
            let (head, reservation) = self.kept.unwrap_or((first, None));
            self.queue.retain(|&job| job != head);
            self.queue.insert(0, head);
            if self.jobs[head].procs > self.free {
                self.kept = Some((head, reservation.or_else(|| Some(self.reservation().0))));
                break;
            }
            let gear = self.gears().into_iter().find(|&g| g == top || self.sat(head, g)).unwrap();
            self.start(head, gear);
            self.queue.remove(0);
            self.kept = None;
        }
        let Some((head, Some(until))) = self.kept.filter(|_| self.rules.backfill == "kept-head") else { return };
        let mut arrived: Vec<usize> = self.queue.iter().copied().filter(|&job| job != head).collect();
        arrived.sort_unstable();
        for job in arrived {
            let ends = |g: usize| self.now + self.jobs[job].estimate_s * self.rules.coef[g] <= until;
            let gear = self.gears().into_iter().find(|&g| ends(g) && (g == top || self.sat(job, g)));
            if let Some(gear) = gear.filter(|_| self.jobs[job].procs <= self.free) {
                self.start(job, gear);
                self.queue.retain(|&j| j != job);
            }
        }
    }

    /// Shadow time and extra procs of the head.
    fn reservation(&self) -> (f64, u32) {
        let need = self.jobs[self.queue[0]].procs;
        let mut ends: Vec<f64> = self.running.iter().map(|r| r.2.max(self.now)).collect();
        ends.sort_by(f64::total_cmp);
        let free_at = |t: f64| {
            self.free
                + self.running.iter().filter(|r| r.2.max(self.now) <= t).map(|r| self.jobs[r.0].procs).sum::<u32>()
        };
        let shadow = ends.into_iter().find(|&t| free_at(t) >= need).unwrap();
        (shadow, free_at(shadow) - need)
    }
}
