//! Speed of the queues: the Common Queue of Do et al. 2013 against a textbook loop, in paired runs.
//!
//! Each round runs the textbook loop and the engine one after the other and takes the best of a few repeats of each.
//! The bench prints the median over the rounds of engine jobs/s over textbook jobs/s. The textbook loop simulates the
//! same model with the means of a standard library: a binary heap of events, a deque, logarithms by `f64::ln`, numbers
//! of xoshiro256++, two running sums. The engine's time is the whole call of `simulate`: arrivals, energy meter, batch
//! means. Times are processor times if the system reports them (Linux), so that other programs have little influence.
//! `--test` runs one short round.
#![allow(clippy::unwrap_used, missing_docs)]

mod timing;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use powersweep_engine::{Choice, Details, Limits, Role, SimSpec, Value, components, simulate, workload};

use timing::best_s;

fn main() {
    let short = std::env::args().any(|arg| arg == "--test");
    let (rounds, repeats, jobs) = if short { (1, 1, 100_000) } else { (5, 3, 4_000_000) };
    for (buffering, utilization) in [("common", 0.5), ("common", 0.9), ("class", 0.9), ("separate", 0.9)] {
        let (mut ratios, mut best) = (Vec::new(), (f64::MAX, f64::MAX));
        for _ in 0..rounds {
            let theirs = best_s(repeats, || textbook(utilization, jobs));
            let ours = best_s(repeats, || engine(buffering, utilization, jobs));
            ratios.push(theirs / ours);
            best = (best.0.min(theirs), best.1.min(ours));
        }
        ratios.sort_by(f64::total_cmp);
        println!(
            "{buffering:8} at {utilization}: engine {:5.2} M jobs/s (target 5, aim 10), textbook common queue {:5.2} M \
             jobs/s; median ratio {:.2}",
            jobs as f64 / best.1 / 1e6,
            jobs as f64 / best.0 / 1e6,
            ratios[ratios.len() / 2],
        );
    }
}

/// Mean wait by the engine (s).
fn engine(buffering: &str, utilization: f64, jobs: u64) -> f64 {
    let mut spec = SimSpec::new();
    let mut choose = |role, name, values: &[(&str, Value)]| {
        let mut choice = Choice::new(components::find(role, name).unwrap());
        values.iter().for_each(|(name, value)| choice.set(name, value.clone()).unwrap());
        spec.choose(choice);
    };
    choose(Role::Source, "open-poisson", &[("target_utilization", Value::Real(utilization))]);
    choose(Role::Platform, "server-classes", &[]);
    choose(Role::Policy, "buffered", &[("buffering", Value::Text(buffering.to_owned()))]);
    choose(Role::Statistics, "steady-state", &[("least_jobs_count", Value::Int(jobs as i64))]);
    let workload = workload::build(&spec, None).unwrap();
    let measured = simulate(&spec, &workload, &Limits::NONE, &mut Details::default()).unwrap();
    measured.queues().unwrap().wait_s_mean
}

/// xoshiro256++ (Blackman & Vigna 2019).
struct Xoshiro([u64; 4]);

impl Xoshiro {
    fn exponential(&mut self) -> f64 {
        let s = &mut self.0;
        let word = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        -(((word >> 11) as f64 + 0.5) * (1.0 / (1_u64 << 53) as f64)).ln()
    }
}

/// Mean wait of the Common Queue with energy efficiency first, by a textbook loop (s).
fn textbook(utilization: f64, jobs: u64) -> f64 {
    // Positive times have the order of their bits.
    let key = |t: f64| t.to_bits();
    let rates: Vec<f64> = [0.43, 0.82, 1.0].into_iter().flat_map(|rate| [rate; 8]).collect();
    let mut random = Xoshiro([1, 2, 3, 4]);
    let mut free = vec![true; rates.len()];
    let mut queue: VecDeque<(f64, f64)> = VecDeque::new();
    let mut events = BinaryHeap::new();
    let gap = 1.0 / (18.0 * utilization);
    let mut next = random.exponential() * gap;
    let (mut done, mut wait, mut busy) = (0, 0.0, 0.0);
    while done < jobs {
        let ends = events.peek().map_or(f64::INFINITY, |Reverse((at, _))| f64::from_bits(*at));
        if next < ends {
            let (now, work) = (next, random.exponential());
            next += random.exponential() * gap;
            if let Some(server) = free.iter().position(|free| *free) {
                free[server] = false;
                busy += work / rates[server];
                events.push(Reverse((key(now + work / rates[server]), server)));
            } else {
                queue.push_back((now, work));
            }
        } else {
            let Reverse((_, server)) = events.pop().unwrap();
            done += 1;
            if let Some((arrived, work)) = queue.pop_front() {
                wait += ends - arrived;
                busy += work / rates[server];
                events.push(Reverse((key(ends + work / rates[server]), server)));
            } else {
                free[server] = true;
            }
        }
    }
    std::hint::black_box(busy);
    wait / jobs as f64
}
