//! A slow reference of scheduling with vectors of resources: it looks at every second, and shares no code with the engine.
//!
//! All times are whole seconds, and the gear is the top gear. The event order is `batch`.

/// A job: times in seconds, and its demand of each resource. The first resources are the partitions, of which it has one.
#[derive(Debug, Clone)]
pub(crate) struct Rigid {
    pub(crate) submit: i64,
    pub(crate) run: i64,
    pub(crate) estimate: i64,
    pub(crate) partition: usize,
    pub(crate) demand: Vec<i64>,
}

/// How jobs overtake.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Rule {
    None,
    Easy { extra: bool },
    Conservative,
}

/// A job that holds resources from `start` until `end` (estimated).
#[derive(Debug, Clone, Copy)]
struct Held {
    job: usize,
    start: i64,
    end: i64,
}

struct Machine<'a> {
    jobs: &'a [Rigid],
    capacity: &'a [i64],
    shortest_first: bool,
    now: i64,
    running: Vec<Held>,
    /// Waiting jobs; under `Conservative` with their reservations.
    queue: Vec<Held>,
    starts: Vec<Option<i64>>,
    unexpected_end: bool,
}

/// Start of each job.
pub(crate) fn schedule(jobs: &[Rigid], capacity: &[i64], rule: Rule, shortest_first: bool) -> Vec<i64> {
    let (running, queue, starts) = (Vec::new(), Vec::new(), vec![None; jobs.len()]);
    let mut m = Machine { jobs, capacity, shortest_first, now: 0, running, queue, starts, unexpected_end: false };
    let mut next = 0;
    while next < jobs.len() || !m.running.is_empty() || !m.queue.is_empty() {
        let arrival = jobs.get(next).map(|job| job.submit);
        let ends = m.running.iter().map(|held| held.start + jobs[held.job].run);
        let reserved = m.queue.iter().map(|held| held.start).filter(|&start| start > m.now && start < i64::MAX);
        m.now = ends.chain(reserved).chain(arrival).min().expect("an event is left");
        loop {
            m.complete();
            let first = next;
            while jobs.get(next).is_some_and(|job| job.submit == m.now) {
                next += 1;
            }
            if rule == Rule::Conservative {
                m.conservative(first..next);
            } else {
                m.queue.extend((first..next).map(|job| Held { job, start: i64::MAX, end: i64::MAX }));
                m.in_queue_order(rule);
            }
            if !m.running.iter().any(|held| held.start + jobs[held.job].run == m.now) {
                break;
            }
        }
    }
    m.starts.into_iter().map(|start| start.expect("every job started")).collect()
}

impl Machine<'_> {
    fn complete(&mut self) {
        let (now, jobs) = (self.now, self.jobs);
        let ends = |held: &Held| held.start + jobs[held.job].run == now;
        self.unexpected_end |= self.running.iter().any(|held| ends(held) && held.end != now);
        self.running.retain(|held| !ends(held));
    }

    fn sort(&mut self) {
        let key = |held: &Held| if self.shortest_first { self.jobs[held.job].estimate } else { 0 };
        let mut queue = std::mem::take(&mut self.queue);
        queue.sort_by_key(|held| (key(held), held.job));
        self.queue = queue;
    }

    fn start(&mut self, job: usize) {
        assert!(self.fits_now(job));
        self.running.push(Held { job, start: self.now, end: self.now + self.jobs[job].estimate });
        self.starts[job] = Some(self.now);
    }

    /// Whether a job fits into what jobs really hold now, which includes jobs that have outlived their estimates.
    fn fits_now(&self, job: usize) -> bool {
        self.each_needed(job, |p| {
            self.capacity[p] - self.running.iter().map(|held| self.jobs[held.job].demand[p]).sum::<i64>()
        })
    }

    /// Whether the demand of a job is at most an amount of each resource that it needs.
    fn each_needed(&self, job: usize, amount: impl Fn(usize) -> i64) -> bool {
        let demand = &self.jobs[job].demand;
        (0..demand.len()).filter(|&p| demand[p] > 0).all(|p| demand[p] <= amount(p))
    }

    fn share(&self, a: usize, b: usize) -> bool {
        let (a, b) = (&self.jobs[a].demand, &self.jobs[b].demand);
        a.iter().zip(b).any(|(a, b)| *a > 0 && *b > 0)
    }

    /// What is expected to be free of a resource at a time, beside reservations, which hold without end.
    fn available(&self, p: usize, at: i64, reserved: &[(usize, i64)]) -> i64 {
        let demand = |job: usize| self.jobs[job].demand[p];
        let running = self.running.iter().filter(|held| held.end.max(self.now) > at).map(|held| demand(held.job));
        let reserved = reserved.iter().filter(|(_, from)| *from <= at).map(|(job, _)| demand(*job));
        self.capacity[p] - running.sum::<i64>() - reserved.sum::<i64>()
    }

    /// No backfilling, and EASY.
    fn in_queue_order(&mut self, rule: Rule) {
        self.sort();
        let mut waiting: Vec<usize> = Vec::new();
        let mut reserved: Vec<(usize, i64)> = Vec::new();
        for held in std::mem::take(&mut self.queue) {
            let job = held.job;
            let competes = waiting.iter().any(|&other| self.share(job, other));
            let allowed = match rule {
                Rule::Easy { extra } => !competes || self.keeps(job, extra, &reserved),
                _ => !competes,
            };
            if allowed && self.fits_now(job) {
                self.start(job);
                continue;
            }
            let first = waiting.iter().all(|&other| self.jobs[other].partition != self.jobs[job].partition);
            if first
                && matches!(rule, Rule::Easy { .. })
                && let Some(at) = self.earliest(job, &reserved)
            {
                reserved.push((job, at));
            }
            waiting.push(job);
        }
        self.queue = waiting.into_iter().map(|job| Held { job, start: i64::MAX, end: i64::MAX }).collect();
    }

    /// Whether a job that starts now keeps the reservations.
    fn keeps(&self, job: usize, extra: bool, reserved: &[(usize, i64)]) -> bool {
        let end = self.now + self.jobs[job].estimate;
        let beside = |at| self.each_needed(job, |p| self.available(p, at, reserved));
        reserved.iter().filter(|(other, _)| self.share(job, *other)).all(|&(_, at)| end <= at || (extra && beside(at)))
    }

    /// The first estimated end from which on a job fits beside the reservations for ever.
    fn earliest(&self, job: usize, reserved: &[(usize, i64)]) -> Option<i64> {
        let ends = || self.running.iter().map(|held| held.end.max(self.now));
        let last = ends().chain(reserved.iter().map(|(_, at)| *at)).max()?;
        let fits = |at: i64| self.each_needed(job, |p| self.available(p, at, reserved));
        let mut from: Vec<i64> = ends().collect();
        from.sort_unstable();
        from.into_iter().find(|&at| (at..=last).all(fits))
    }

    fn conservative(&mut self, arrived: std::ops::Range<usize>) {
        let missed = self.queue.iter().any(|held| held.start < self.now);
        let unexpected_end = std::mem::take(&mut self.unexpected_end);
        self.sort();
        if missed {
            for held in std::mem::take(&mut self.queue) {
                let place = self.place(held.job, i64::MAX).expect("the job fits the machine");
                self.queue.push(place);
            }
        } else if unexpected_end {
            for at in 0..self.queue.len() {
                let old = self.queue[at];
                if old.start != self.now {
                    self.queue[at].start = i64::MAX;
                    self.queue[at] = self.place(old.job, old.start).unwrap_or(old);
                }
            }
        }
        for job in arrived {
            let place = self.place(job, i64::MAX).expect("the job fits the machine");
            self.queue.push(place);
        }
        self.sort();
        for held in std::mem::take(&mut self.queue) {
            if held.start <= self.now && self.fits_now(held.job) {
                self.start(held.job);
            } else {
                self.queue.push(held);
            }
        }
    }

    /// The earliest place by `latest`.
    fn place(&self, job: usize, latest: i64) -> Option<Held> {
        let others = || self.running.iter().chain(&self.queue).filter(|held| held.start < i64::MAX);
        let used = |p: usize, at: i64| {
            let holds = others().filter(|held| held.start <= at && at < held.end);
            holds.map(|held| self.jobs[held.job].demand[p]).sum::<i64>()
        };
        let fits = |at: i64| self.each_needed(job, |p| self.capacity[p] - used(p, at));
        let last = others().map(|held| held.end).max().unwrap_or(self.now).max(self.now);
        let estimate = self.jobs[job].estimate;
        let start =
            (self.now..=last.min(latest)).find(|&start| (start..(start + estimate).max(start + 1)).all(fits))?;
        Some(Held { job, start, end: start + estimate })
    }
}
