//! Time of the summary metrics and of a generator for each job: `cargo bench -p powersweep-engine --bench summary`.
#![allow(missing_docs, reason = "divan's main has no docs")]
use divan::counter::ItemsCount;
use powersweep_engine::spec::Value;
use powersweep_engine::summary::{COMPONENT, Integrals, Outcome, summarize};
use powersweep_engine::workload::{GeneratedJob, Job, lublin};
use powersweep_engine::{Choice, Role, SimSpec};

const JOBS: usize = 60_000;
const GEARS: usize = 6;

fn main() {
    divan::main();
}

fn generated() -> Vec<GeneratedJob> {
    let mut choice = SimSpec::new().choice(Role::Source).clone();
    choice.set("synthetic_jobs_count", Value::Int(JOBS as i64)).expect("in range");
    lublin::generate(&choice, 1)
}

/// Jobs and outcomes with varied waits, as on a loaded machine: a third of the jobs do not wait.
fn case() -> (Vec<Job>, Vec<Outcome>) {
    let job = |(i, g): (usize, &GeneratedJob)| Job {
        id: i as i64 + 1,
        submit_s: g.submit_s,
        run_s: g.run_s,
        estimate_s: g.run_s,
        procs: g.procs,
        record: i as u64 + 1,
        killed: false,
        priority: 1,
        class: 0,
    };
    let jobs: Vec<Job> = generated().iter().enumerate().map(job).collect();
    let outcome = |(i, j): (usize, &Job)| {
        let mixed = (i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
        let wait = if mixed.is_multiple_of(3) { 0.0 } else { (mixed % 50_000) as f64 };
        let start_s = j.submit_s + wait;
        Outcome {
            start_s,
            finish_s: start_s + j.run_s,
            energy_j: j.run_s,
            gear_index: (mixed % GEARS as u64) as u8,
            backfilled: mixed.is_multiple_of(5),
        }
    };
    let outcomes = jobs.iter().enumerate().map(outcome).collect();
    (jobs, outcomes)
}

#[divan::bench]
fn metrics(bencher: divan::Bencher<'_, '_>) {
    let (jobs, outcomes) = case();
    let choice = Choice::new(&COMPONENT);
    let integrals = Integrals { machine_procs: 256, busy_proc_s: vec![1.0; GEARS], ..Integrals::default() };
    bencher
        .counter(ItemsCount::new(JOBS))
        .bench_local(|| summarize(&choice, divan::black_box(&jobs), &outcomes, &integrals, GEARS, None, 200.0));
}

#[divan::bench]
fn metrics_with_mser5(bencher: divan::Bencher<'_, '_>) {
    let (jobs, outcomes) = case();
    let mut choice = Choice::new(&COMPONENT);
    choice.set("warmup_rule", Value::Text("mser5".to_owned())).expect("a choice");
    let integrals = Integrals { machine_procs: 256, busy_proc_s: vec![1.0; GEARS], ..Integrals::default() };
    bencher
        .counter(ItemsCount::new(JOBS))
        .bench_local(|| summarize(&choice, divan::black_box(&jobs), &outcomes, &integrals, GEARS, None, 200.0));
}

#[divan::bench]
fn lublin_jobs(bencher: divan::Bencher<'_, '_>) {
    bencher.counter(ItemsCount::new(JOBS)).bench_local(generated);
}
