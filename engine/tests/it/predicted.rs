//! Predicted run times: a simple, slow EASY with predictors, correctors and an order of overtaking jobs, for comparison with
//! the engine job by job; and predictors that are wrong on purpose.
use std::collections::BTreeMap;

use powersweep_engine::workload::{Job, Workload};
use powersweep_engine::{JobRecord, Limits, Role, SimSpec, Summary, Value};
use proptest::prelude::*;

use crate::golden::workload;
use crate::specs::{Build, simulate};

const PROCS: u32 = 12;

/// The rules under which the kernel and the reference are compared.
#[derive(Debug, Clone, Copy)]
struct Rules {
    predictor: &'static str,
    corrector: &'static str,
    order: &'static str,
    backfill_order: &'static str,
    submit_first: bool,
    /// Passes after submissions of jobs that do not fit, and after corrections.
    passes: (bool, bool),
}

/// A job of the reference.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Ran {
    start_s: f64,
    first_s: f64,
    corrections: u32,
}

/// A running job: its number, and whether its procs are already free.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Running {
    job: usize,
    released: bool,
}

struct Reference<'a> {
    jobs: &'a [Job],
    users: &'a [i32],
    rules: Rules,
    now: f64,
    queue: Vec<usize>,
    /// In order of start.
    running: Vec<Running>,
    expected: Vec<f64>,
    ran: Vec<Ran>,
    /// Run times of each user's ended jobs, the last one last.
    ended: BTreeMap<i32, Vec<f64>>,
}

impl Reference<'_> {
    fn end(&self, job: usize) -> f64 {
        self.ran[job].start_s + self.jobs[job].run_s
    }

    fn expected_end(&self, job: usize) -> f64 {
        self.ran[job].start_s + self.expected[job]
    }

    fn free(&self) -> u32 {
        PROCS - self.running.iter().filter(|run| !run.released).map(|run| self.jobs[run.job].procs).sum::<u32>()
    }

    fn predict(&self, job: usize) -> f64 {
        let Job { run_s, estimate_s, .. } = self.jobs[job];
        match self.rules.predictor {
            "exact" => run_s,
            "scaled" => estimate_s * 0.5,
            _ => match self.ended.get(&self.users[job]).map(Vec::as_slice) {
                Some([.., before, last]) => ((last + before) / 2.0).floor().min(estimate_s),
                _ => estimate_s,
            },
        }
    }

    /// Whether the prediction of a running job has passed, and a longer one is due.
    fn is_due(&self, job: usize) -> bool {
        let Job { run_s, estimate_s, .. } = self.jobs[job];
        let expected = self.expected[job];
        self.expected_end(job) <= self.now && expected < run_s && expected < estimate_s
    }

    fn correct(&mut self, job: usize) {
        let (expected, estimate) = (self.expected[job], self.jobs[job].estimate_s);
        self.ran[job].corrections += 1;
        let corrected = match (self.rules.corrector, self.ran[job].corrections) {
            ("doubling", _) => 2.0 * expected,
            ("increments", 1) => (self.ran[job].first_s + 60.0).min(estimate),
            ("increments", 2) => (self.ran[job].first_s + 300.0).min(estimate),
            _ => estimate,
        };
        let least = (expected + 1.0).min(estimate);
        self.expected[job] = if corrected > expected { f64::max(corrected, least) } else { estimate };
    }

    fn learn(&mut self, job: usize) {
        self.ended.entry(self.users[job]).or_default().push(self.jobs[job].run_s);
    }

    fn start(&mut self, job: usize) {
        assert!(self.jobs[job].procs <= self.free());
        self.queue.retain(|other| *other != job);
        self.ran[job].start_s = self.now;
        self.running.push(Running { job, released: false });
    }

    fn sorted(&self, mut jobs: Vec<usize>, order: &str) -> Vec<usize> {
        match order {
            "sjf" => jobs.sort_by(|a, b| self.expected[*a].total_cmp(&self.expected[*b]).then(a.cmp(b))),
            "widest" => jobs.sort_by_key(|job| (std::cmp::Reverse(self.jobs[*job].procs), *job)),
            _ => jobs.sort_unstable(),
        }
        jobs
    }

    fn pass(&mut self) {
        let mut queue = self.sorted(self.queue.clone(), self.rules.order);
        while let Some(&head) = queue.first()
            && self.jobs[head].procs <= self.free()
        {
            self.start(head);
            queue.remove(0);
        }
        let Some(&head) = queue.first() else { return };
        // The head's reservation: the earliest expected end at which it fits.
        let busy = self.running.iter().filter(|run| !run.released);
        let mut ends: Vec<(f64, u32)> =
            busy.map(|run| (self.expected_end(run.job).max(self.now), self.jobs[run.job].procs)).collect();
        ends.sort_by(|a, b| a.0.total_cmp(&b.0));
        let free_at = |at: f64| self.free() + ends.iter().filter(|end| end.0 <= at).map(|end| end.1).sum::<u32>();
        let shadow = ends.iter().map(|end| end.0).find(|at| free_at(*at) >= self.jobs[head].procs).unwrap();
        let mut extra = free_at(shadow) - self.jobs[head].procs;
        let overtaking =
            if self.rules.backfill_order == "queue" { self.rules.order } else { self.rules.backfill_order };
        for job in self.sorted(queue[1..].to_vec(), overtaking) {
            let procs = self.jobs[job].procs;
            let in_time = self.now + self.expected[job] <= shadow;
            if procs <= self.free() && (in_time || procs <= extra) {
                self.start(job);
                extra -= if in_time { 0 } else { procs };
            }
        }
    }

    fn submit(&mut self, job: usize) -> bool {
        let first_s = self.predict(job).max(self.jobs[job].estimate_s.min(1.0));
        self.ran[job].first_s = first_s;
        self.expected[job] = first_s;
        self.queue.push(job);
        self.rules.passes.0 || self.jobs[job].procs <= self.free()
    }

    /// One correction that is due; whether there was one.
    fn correct_one(&mut self) -> bool {
        let due = self.running.iter().map(|run| run.job).find(|job| self.is_due(*job));
        due.map(|job| self.correct(job)).is_some()
    }

    fn batch(&mut self, next: &mut usize) {
        loop {
            let mut pass = false;
            let ended: Vec<usize> =
                self.running.iter().map(|run| run.job).filter(|job| self.end(*job) == self.now).collect();
            for job in ended {
                self.running.retain(|run| run.job != job);
                self.learn(job);
                pass = true;
            }
            while *next < self.jobs.len() && self.jobs[*next].submit_s == self.now {
                pass |= self.submit(*next);
                *next += 1;
            }
            while self.correct_one() {
                pass |= self.rules.passes.1;
            }
            if pass {
                self.pass();
            }
            if !self.running.iter().any(|run| self.end(run.job) == self.now || self.is_due(run.job)) {
                return;
            }
        }
    }

    fn submit_first(&mut self, next: &mut usize) {
        loop {
            for at in 0..self.running.len() {
                let job = self.running[at].job;
                self.running[at].released |= self.end(job) == self.now && self.expected_end(job) <= self.now;
            }
            let mut pass = true;
            if self.correct_one() {
                pass = self.rules.passes.1;
            } else if *next < self.jobs.len() && self.jobs[*next].submit_s == self.now {
                pass = self.submit(*next);
                *next += 1;
            } else if let Some(at) = self.running.iter().position(|run| self.end(run.job) == self.now) {
                let job = self.running.remove(at).job;
                self.learn(job);
            } else {
                return;
            }
            if pass {
                self.pass();
            }
        }
    }
}

/// The schedule of sorted jobs, none wider than the machine.
fn reference(workload: &Workload, rules: Rules) -> Vec<Ran> {
    let jobs = &workload.jobs;
    let unknown = Ran { start_s: f64::NAN, first_s: 0.0, corrections: 0 };
    let mut reference = Reference {
        jobs,
        users: &workload.users,
        rules,
        now: 0.0,
        queue: Vec::new(),
        running: Vec::new(),
        expected: vec![0.0; jobs.len()],
        ran: vec![unknown; jobs.len()],
        ended: BTreeMap::new(),
    };
    let mut next = 0;
    while next < jobs.len() || !reference.running.is_empty() {
        let ends = reference.running.iter().map(|run| {
            let Job { run_s, estimate_s, .. } = jobs[run.job];
            let expected = reference.expected[run.job];
            let is_corrected = expected < run_s && expected < estimate_s;
            if is_corrected { reference.expected_end(run.job) } else { reference.end(run.job) }
        });
        reference.now = ends.chain(jobs.get(next).map(|job| job.submit_s)).fold(f64::INFINITY, f64::min);
        if rules.submit_first { reference.submit_first(&mut next) } else { reference.batch(&mut next) }
    }
    reference.ran
}

fn spec(rules: Rules) -> SimSpec {
    let build = Build::log()
        .int("procs", i64::from(PROCS))
        .text("event_order", if rules.submit_first { "submit-first" } else { "batch" })
        .text("pass_at_submission", if rules.passes.0 { "always" } else { "if-fits" })
        .flag("pass_at_correction", rules.passes.1)
        .choose(Role::Order, rules.order)
        .choose(Role::BackfillOrder, rules.backfill_order)
        .choose(Role::Predictor, rules.predictor)
        .choose(Role::Corrector, rules.corrector);
    let build = if rules.predictor == "scaled" { build.real("prediction_factor", 0.5) } else { build };
    let increments = Value::Reals(vec![60.0, 300.0]);
    if rules.corrector == "increments" { build.set("correction_increments_s", increments).0 } else { build.0 }
}

/// Random jobs of three users; some outlive their estimates.
fn jobs() -> impl Strategy<Value = Workload> {
    let gap = prop_oneof![1 => Just(0_u32), 2 => 0..200_u32];
    let run = prop_oneof![1 => Just(0_u32), 8 => 1..900_u32];
    let estimate = prop_oneof![1 => 0..900_u32, 3 => 900..2000_u32];
    let job = (gap, run, estimate, 1..=PROCS, 0..3_i32);
    prop::collection::vec(job, 1..60).prop_map(|jobs| {
        let (mut submit, mut users) = (0, Vec::new());
        let jobs: Vec<_> = jobs
            .into_iter()
            .map(|(gap, run, estimate, procs, user)| {
                submit += gap;
                users.push(user);
                (f64::from(submit), f64::from(run), f64::from(estimate), procs)
            })
            .collect();
        let mut workload = workload(&jobs);
        for (job, record) in workload.jobs.iter_mut().zip(1..) {
            job.record = record;
        }
        Workload { users, ..workload }
    })
}

fn rules() -> impl Strategy<Value = Rules> {
    (0..3_usize, 0..3_usize, 0..3_usize, 0..4_usize, any::<bool>(), any::<(bool, bool)>()).prop_map(
        |(predictor, corrector, order, backfill_order, submit_first, passes)| Rules {
            predictor: ["exact", "scaled", "recent-average"][predictor],
            corrector: ["request", "increments", "doubling"][corrector],
            order: ["fcfs", "sjf", "widest"][order],
            backfill_order: ["queue", "fcfs", "sjf", "widest"][backfill_order],
            submit_first,
            passes,
        },
    )
}

/// The sentence of `pass_at_submission`.
#[test]
fn a_submission_without_a_pass_matters_to_reservations() {
    // Job 4 does not fit when it arrives. With a pass it reserves before job 5.
    let jobs =
        [(10., 60., 600., 3), (20., 20., 20., 9), (21., 150., 450., 2), (55., 150., 150., 7), (115., 5., 50., 7)];
    let starts = |backfill: &str, passes: &str| -> Vec<f64> {
        let build = Build::log().int("procs", 10).choose(Role::Backfill, backfill).text("pass_at_submission", passes);
        run(&build.0, &workload(&jobs)).1.iter().map(|row| row.start_s).collect()
    };
    assert_ne!(starts("conservative", "always"), starts("conservative", "if-fits"));
    for backfill in ["none", "easy"] {
        assert_eq!(starts(backfill, "always"), starts(backfill, "if-fits"), "{backfill}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_submission_without_a_pass_changes_no_first_come_first_served(workload in jobs(), easy in any::<bool>()) {
        let mut workload = workload;
        workload.jobs.iter_mut().for_each(|job| job.estimate_s = job.estimate_s.max(job.run_s));
        let backfill = if easy { "easy" } else { "none" };
        let build = || Build::log().int("procs", i64::from(PROCS)).choose(Role::Backfill, backfill);
        let always = run(&build().0, &workload).1;
        prop_assert_eq!(run(&build().text("pass_at_submission", "if-fits").0, &workload).1, always);
    }
}

fn run(spec: &SimSpec, workload: &Workload) -> (Summary, Vec<JobRecord>) {
    let mut rows = Vec::new();
    let summary = simulate(spec, workload, &Limits::NONE, Some(&mut rows)).unwrap();
    (summary, rows)
}

/// Number of simulations: `POWERSWEEP_CASES`, or 1,000.
fn cases() -> u32 {
    std::env::var("POWERSWEEP_CASES").map_or(1000, |cases| cases.parse().expect("POWERSWEEP_CASES is a number"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn predictions_conform(workload in jobs(), rules in rules()) {
        let expected = reference(&workload, rules);
        let (_, rows) = run(&spec(rules), &workload);
        for (row, ran) in rows.iter().zip(&expected) {
            let found = Ran {
                start_s: row.start_s,
                first_s: row.predicted_s.unwrap(),
                corrections: row.corrections_count.unwrap(),
            };
            prop_assert_eq!(found, *ran, "job {} under {:?}", row.job_id, rules);
        }
    }
}

/// A job of a user whose last two jobs ran 100 s is expected to run 100 s. It runs 300 s, with predictions of 200 s and 400 s.
#[test]
fn metrics_of_predictions_are_those_of_the_rows() {
    let jobs = [(0.0, 100.0, 500.0, 4), (0.0, 100.0, 500.0, 4), (210.0, 300.0, 1000.0, 2), (220.0, 50.0, 60.0, 4)];
    let mut workload = workload(&jobs);
    workload.users = vec![1, 1, 1, 2];
    for (job, record) in workload.jobs.iter_mut().zip(1..) {
        job.record = record;
    }
    let spec =
        Build::log().int("procs", 4).choose(Role::Predictor, "recent-average").choose(Role::Corrector, "doubling").0;
    let (summary, rows) = run(&spec, &workload);
    let predicted: Vec<_> = rows.iter().map(|row| (row.predicted_s.unwrap(), row.corrections_count.unwrap())).collect();
    assert_eq!(predicted, [(500.0, 0), (500.0, 0), (100.0, 2), (60.0, 0)]);
    // Errors 400, 400, -200 and 10 s.
    assert_eq!(summary.prediction_error_s_mean, Some(152.5));
    assert_eq!(summary.prediction_error_abs_s_mean, Some(252.5));
    assert_eq!(
        summary.prediction_error_abs_s_procs_weighted_mean,
        Some((8.0 * 400.0 + 2.0 * 200.0 + 4.0 * 10.0) / 14.0)
    );
    assert_eq!(summary.prediction_error_abs_s_user_mean, Some((1000.0 / 3.0 + 10.0) / 2.0));
    assert_eq!((summary.prediction_under_share, summary.prediction_corrected_count), (Some(0.25), Some(1)));
    assert_eq!((summary.prediction_corrections_count, summary.prediction_delayed_count), (Some(2), Some(0)));
}

/// Of 4 procs, a job holds 2 from 0 s to 100 s. Its prediction of 10 s passes at 10 s, and its end is corrected to 100 s. So a
/// job of 2 procs overtakes the head of 4 procs at 10 s: it is expected to run 50 s. It runs 400 s, and the head waits for its end.
#[test]
fn a_job_behind_a_prediction_that_was_too_short_counts_as_delayed() {
    let jobs = [(0.0, 100.0, 100.0, 2), (1.0, 10.0, 10.0, 4), (2.0, 400.0, 500.0, 2)];
    let with = |factor| {
        let spec = Build::log().int("procs", 4).choose(Role::Predictor, "scaled").real("prediction_factor", factor).0;
        let (summary, rows) = run(&spec, &workload(&jobs));
        (rows.iter().map(|row| row.start_s).collect::<Vec<_>>(), summary.prediction_delayed_count)
    };
    assert_eq!(with(0.1), (vec![0.0, 410.0, 10.0], Some(1)));
    assert_eq!(with(1.0), (vec![0.0, 100.0, 110.0], Some(0)));
}

/// Predictions near 0 and far beyond the estimate: every job runs, none before its submission or on procs that are in use.
#[test]
fn extreme_predictions_neither_stop_a_job_nor_overfill_the_machine() {
    let jobs: Vec<_> = (0..200_u32)
        .map(|at| (f64::from(at * 7), f64::from(at * 37 % 500), f64::from(at * 53 % 700), 1 + at % PROCS))
        .collect();
    for factor in [1e-300, 1e-9, 1.0, 1e6] {
        for corrector in ["request", "increments", "doubling"] {
            for backfill in ["none", "easy", "conservative"] {
                let build = Build::log().int("procs", i64::from(PROCS)).choose(Role::Backfill, backfill);
                let build = build.choose(Role::Predictor, "scaled").choose(Role::Corrector, corrector);
                let (summary, rows) = run(&build.real("prediction_factor", factor).0, &workload(&jobs));
                assert_eq!(rows.len(), jobs.len(), "{factor} {corrector} {backfill}");
                assert!(rows.iter().all(|row| row.start_s >= row.submit_s && row.finish_s.is_finite()));
                assert!(summary.procs_residual < 1e-9 && summary.little_residual < 1e-9);
            }
        }
    }
}
