//! The cost of signals: accounts of one and of 36 series, and a policy that reads one, against EASY alone, in paired runs.
//!
//! The workload is Blue Horizon's log in the folder `POWERSWEEP_TRACES`, or a generated one without it. The series are made
//! here: four years of hours in nine zones, at four anchors. The bench prints medians over the rounds of time ratios.
//! `--test` runs one short round, `--only=RULE` one rule.
#![allow(clippy::unwrap_used, missing_docs)]

use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use powersweep_engine::energy::EnergySplit;
use powersweep_engine::rng::{Philox, Purpose};
use powersweep_engine::signal::{Beyond, Edges, Sample, Signal};
use powersweep_engine::workload::{self, Workload, swf};
use powersweep_engine::{Choice, Details, Limits, Role, SimSpec, Value, components, simulate};

const LOG: &str = "SDSC-BLUE-2000-4.2-cln";
const HOUR_S: f64 = 3_600.0;
const HOURS: usize = 4 * 8_766;
const ZONES: usize = 9;
const ANCHORS: usize = 4;

/// A series with days, weeks and chance.
fn signal(zone: usize, anchor: usize) -> Arc<Signal> {
    let mut random = Philox::substream(1, Purpose::Shuffle, zone as u32);
    let shift_s = (anchor * 8_766) as f64 * HOUR_S;
    let times_s = (0..HOURS).map(|hour| hour as f64 * HOUR_S - shift_s).collect();
    let wave = |hour: usize, period: f64| (hour as f64 / period * std::f64::consts::TAU).sin();
    let value = |hour| 300.0 + 80.0 * wave(hour, 24.0) + 20.0 * wave(hour, 168.0) + 30.0 * random.uniform();
    let values = (0..HOURS).map(value).collect();
    let end_s = HOURS as f64 * HOUR_S - shift_s;
    Arc::new(Signal::new(times_s, values, vec![], end_s, Sample::Mean, Beyond::Wrap).unwrap())
}

#[derive(Debug)]
struct All(Vec<Arc<Signal>>);

impl Edges for All {
    fn next_after(&self, at_s: f64) -> f64 {
        self.0.iter().map(|signal| signal.next_after(at_s)).fold(f64::INFINITY, f64::min)
    }
}

fn workload(spec: &SimSpec) -> Workload {
    let Some(traces) = std::env::var_os("POWERSWEEP_TRACES").map(PathBuf::from) else {
        return workload::build(spec, None).unwrap();
    };
    let mut text = Vec::new();
    let file = std::fs::File::open(traces.join(format!("{LOG}.swf.gz"))).unwrap();
    flate2::read::MultiGzDecoder::new(file).read_to_end(&mut text).unwrap();
    let mut spec = spec.clone();
    let mut source = Choice::new(components::find(Role::Source, "swf").unwrap());
    source.set("log", Value::Text(LOG.to_owned())).unwrap();
    spec.choose(source);
    workload::build(&spec, Some(&swf::parse(&text, LOG).unwrap())).unwrap()
}

/// Best time of a simulation and the accounts of its signals (s). `grids`: a signal for each list of times.
fn seconds(
    spec: &SimSpec,
    workload: &Workload,
    (signals, grids): (&[Arc<Signal>], &[Arc<Signal>]),
    repeats: u32,
) -> f64 {
    let run = |_| {
        let begin = Instant::now();
        let energy = (!signals.is_empty()).then(|| EnergySplit::new(Arc::new(All(grids.to_vec()))));
        let mut details = Details { energy, ..Details::default() };
        std::hint::black_box(simulate(spec, workload, &Limits::NONE, &mut details).unwrap());
        for signal in signals {
            std::hint::black_box(signal.weigh(&details.energy.as_ref().unwrap().cells, &[]).unwrap());
        }
        begin.elapsed().as_secs_f64()
    };
    (0..repeats).map(run).fold(f64::MAX, f64::min)
}

/// The workload as the queue sees it: each job arrives at its release, which is its start on a machine for all.
fn released(spec: &SimSpec, workload: &Workload) -> Workload {
    let mut spec = spec.clone();
    spec.choice_mut(Role::Platform).set("procs", Value::Int(1 << 30)).unwrap();
    let mut details = Details { jobs: Some(Vec::new()), ..Details::default() };
    simulate(&spec, workload, &Limits::NONE, &mut details).unwrap();
    let mut released = workload.clone();
    let starts = details.jobs.unwrap();
    released.jobs.iter_mut().zip(starts).for_each(|(job, row)| job.submit_s = row.start_s);
    released.jobs.sort_by(|a, b| a.submit_s.total_cmp(&b.submit_s));
    released
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let short = std::env::args().any(|arg| arg == "--test");
    let (rounds, repeats, jobs) = if short { (1, 1, 1_000) } else { (7, 3, 100_000) };
    let mut easy = SimSpec::new();
    easy.choice_mut(Role::Source).set("synthetic_jobs_count", Value::Int(jobs)).unwrap();
    easy.choice_mut(Role::Rules).set("wide_jobs", Value::Text("drop".to_owned())).unwrap();
    let workload = workload(&easy);
    let all: Vec<Arc<Signal>> = (0..ZONES * ANCHORS).map(|at| signal(at % ZONES, at / ZONES)).collect();
    let grids: Vec<Arc<Signal>> = all.iter().step_by(ZONES).cloned().collect();
    let deferred = |rule: &str| {
        let mut spec = easy.clone();
        spec.choose(Choice::new(components::find(Role::Deferral, rule).unwrap()));
        spec.choice_mut(Role::Deferral).set("defer_signal", Value::Text("grid".to_owned())).unwrap();
        spec.place_signal("grid", Arc::clone(&all[0]));
        spec
    };
    let only = std::env::args().find_map(|arg| arg.strip_prefix("--only=").map(str::to_owned));
    let rules: Vec<(&str, SimSpec)> = ["lowest-slot", "lowest-window", "saving-per-wait", "quantile", "wait-awhile"]
        .into_iter()
        .filter(|rule| only.as_ref().is_none_or(|only| only == rule))
        .map(|rule| (rule, deferred(rule)))
        .collect();
    let released: Vec<Workload> = rules.iter().map(|(_, spec)| released(spec, &workload)).collect();
    let (mut one, mut many) = (Vec::new(), Vec::new());
    let mut rule_ratios = vec![(Vec::new(), Vec::new()); rules.len()];
    for _ in 0..rounds {
        let alone_s = seconds(&easy, &workload, (&[], &[]), repeats);
        let one_s = seconds(&easy, &workload, (&all[..1], &grids[..1]), repeats);
        let many_s = seconds(&easy, &workload, (&all, &grids), repeats);
        one.push(one_s / alone_s);
        many.push(many_s / one_s);
        for (((_, spec), released), (ratios, same)) in rules.iter().zip(&released).zip(&mut rule_ratios) {
            let rule_s = seconds(spec, &workload, (&[], &[]), repeats);
            ratios.push(alone_s / rule_s);
            same.push(seconds(&easy, released, (&[], &[]), repeats) / rule_s);
        }
    }
    println!("{} jobs: one series over none {:.3}", workload.jobs.len(), median(&mut one));
    println!("36 series over one {:.3} (target below 2)", median(&mut many));
    for ((rule, _), (ratios, same)) in rules.iter().zip(&mut rule_ratios) {
        let (speed, same) = (median(ratios), median(same));
        println!(
            "speed of {rule} over EASY {speed:.3} (target 0.5), over EASY with the same arrivals in the queue {same:.3}"
        );
    }
}
