//! Rules that suspend running jobs, against a simulation in steps of ten minutes.
use super::*;
use crate::Measured;

/// A step (s). All instants of the cases are multiples of it.
const STEP_S: f64 = 600.0;
const PER_HOUR: usize = 6;

/// What happens to a job in the simulation by steps.
#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    Future,
    Held { until: usize },
    Queued,
    Runs { executes: bool },
    Ended,
}

/// A case: hourly values, jobs in steps, procs, the longest deferral in steps.
struct Case {
    values: Vec<f64>,
    jobs: Vec<Job>,
    procs: u32,
    wait_max: usize,
}

/// Start, end and suspended time in steps.
type Row = (usize, usize, usize);

fn steps(seconds: f64) -> usize {
    (seconds / STEP_S) as usize
}

impl Case {
    fn new(cases: &mut Cases) -> Case {
        let values = (0..24 * 7).map(|_| cases.below(12) as f64).collect();
        let count = 1 + cases.below(12);
        let mut jobs = cases.jobs(count);
        for job in &mut jobs {
            job.submit_s = (job.submit_s / STEP_S / 8.0).floor() * STEP_S;
            job.run_s = (1 + cases.below(60)) as f64 * STEP_S;
            job.estimate_s = job.run_s + cases.below(20) as f64 * STEP_S;
            job.procs = 1 + cases.below(3) as u32;
        }
        jobs.sort_by(|a, b| a.submit_s.total_cmp(&b.submit_s));
        Case { values, jobs, procs: 3 + cases.below(5) as u32, wait_max: cases.below(200).max(1) as usize }
    }

    fn value(&self, step: usize) -> f64 {
        self.values[step / PER_HOUR % self.values.len()]
    }

    /// The steps of least value that suffice for a length, taken hour by hour: the hours of least value, the first of
    /// equal ones.
    fn wait_awhile(&self, now: usize, end: usize, length: usize) -> Vec<usize> {
        let mut hours: Vec<usize> = (now / PER_HOUR..end.div_ceil(PER_HOUR)).collect();
        hours.sort_by(|a, b| self.value(a * PER_HOUR).total_cmp(&self.value(b * PER_HOUR)));
        let mut taken = Vec::new();
        for hour in hours {
            if taken.len() >= length {
                break;
            }
            taken.extend((hour * PER_HOUR..(hour + 1) * PER_HOUR).filter(|step| (now..end).contains(step)));
        }
        taken.sort_unstable();
        taken
    }

    /// Whether the present value is at most a quantile of the values of the hours that begin within a day.
    fn is_low(&self, now: usize, share: f64) -> bool {
        let first = now / PER_HOUR;
        let hours = (first..).take_while(|hour| *hour == first || hour * PER_HOUR < now + 24 * PER_HOUR);
        let mut values: Vec<f64> = hours.map(|hour| self.value(hour * PER_HOUR)).collect();
        values.sort_by(f64::total_cmp);
        self.value(now) <= values[((values.len() as f64 * share) as usize).min(values.len() - 1)]
    }

    /// First come, first served without backfilling. `of_run`: the rule knows true run times.
    fn simulate(&self, of_run: bool, quantile: Option<f64>) -> Vec<Row> {
        let count = self.jobs.len();
        let length = |job: usize| steps(if of_run { self.jobs[job].run_s } else { self.jobs[job].estimate_s });
        let mut states = vec![State::Future; count];
        let (mut left, mut used) = (vec![0; count], vec![0; count]);
        let mut rows = vec![(0, 0, 0); count];
        let mut queue: Vec<usize> = Vec::new();
        let mut free = self.procs;
        for now in 0.. {
            let is_running = |state: &State| matches!(state, State::Runs { .. });
            for job in 0..count {
                if is_running(&states[job]) && left[job] == 0 {
                    (states[job], rows[job].1) = (State::Ended, now);
                    free += self.jobs[job].procs;
                }
            }
            if states.iter().all(|state| *state == State::Ended) {
                return rows;
            }
            let latest = |job: usize| steps(self.jobs[job].submit_s) + self.wait_max;
            // Held jobs are released before jobs that arrive now.
            let mut entering: Vec<usize> = (0..count)
                .filter(|job| match states[*job] {
                    State::Held { until } if quantile.is_none() => until <= now,
                    State::Held { .. } if now % PER_HOUR > 0 => now >= latest(*job),
                    State::Held { .. } => self.opens(*job, now, latest(*job)),
                    _ => false,
                })
                .collect();
            for job in (0..count).filter(|job| steps(self.jobs[*job].submit_s) == now) {
                let until = match quantile {
                    None => self.wait_awhile(now, latest(job) + length(job), length(job))[0],
                    Some(_) if self.opens(job, now, latest(job)) => now,
                    Some(_) => usize::MAX,
                };
                match until > now {
                    true => states[job] = State::Held { until },
                    false => entering.push(job),
                }
            }
            for job in entering {
                states[job] = State::Queued;
                queue.push(job);
            }
            while let Some(&job) = queue.first()
                && self.jobs[job].procs <= free
            {
                queue.remove(0);
                free -= self.jobs[job].procs;
                (states[job], left[job], rows[job].0) =
                    (State::Runs { executes: false }, steps(self.jobs[job].run_s), now);
            }
            for job in 0..count {
                let State::Runs { executes } = states[job] else { continue };
                let rest = length(job).saturating_sub(used[job]);
                let end = latest(job) + length(job);
                // A job that outlives its estimate counts as one of a second.
                let must = if rest == 0 { end <= now } else { end <= now + rest };
                let asked = now % PER_HOUR == 0 || now == rows[job].0 || (!executes && must);
                let executes = match asked {
                    false => executes,
                    true if must => true,
                    true => match quantile {
                        None => self.wait_awhile(now, end, rest.max(1)).first() == Some(&now),
                        Some(share) => self.is_low(now, share),
                    },
                };
                states[job] = State::Runs { executes };
                match executes {
                    true => (left[job], used[job]) = (left[job] - 1, used[job] + 1),
                    false => rows[job].2 += 1,
                }
            }
        }
        unreachable!("the steps have no end")
    }

    /// Whether the rule `quantile` releases a job.
    fn opens(&self, job: usize, now: usize, latest: usize) -> bool {
        now >= latest || self.is_low(now, if self.jobs[job].estimate_s < 7_200.0 { 0.2 } else { 0.35 })
    }

    /// The rows of the engine.
    fn run(&self, rule: &str, params: &[(&str, Value)]) -> Vec<Row> {
        let times_s = (0..self.values.len()).map(|hour| hour as f64 * HOUR_S).collect();
        let signal = Signal::new(times_s, self.values.clone(), vec![], WEEK_S, Sample::Mean, Beyond::Wrap);
        let mut spec = spec(rule, &signal.expect("well formed"), params);
        let wait_max_s = Value::Real(self.wait_max as f64 * STEP_S);
        spec.choice_mut(Role::Deferral).set("defer_wait_max_s", wait_max_s).expect("in range");
        spec.choose(Choice::new(components::find(Role::Backfill, "none").expect("registered")));
        let rows = run(spec, &self.jobs, i64::from(self.procs)).expect("it runs");
        let row = |row: &JobRecord| (steps(row.start_s), steps(row.finish_s), steps(row.suspended_s));
        rows.iter().map(row).collect()
    }
}

#[test]
fn jobs_execute_when_a_simulation_by_steps_says() {
    let mut cases = Cases(Philox::stream(32, Purpose::Shuffle));
    let (mut suspended, mut waited) = (0, 0);
    for number in 0..2_000 {
        let case = Case::new(&mut cases);
        for (of_run, length) in [(false, "estimate"), (true, "run")] {
            let params = [("defer_length", Value::Text(length.to_owned()))];
            let rows = case.run("wait-awhile", &params);
            assert_eq!(rows, case.simulate(of_run, None), "case {number} by {length}, {:?}", case.jobs);
            suspended += rows.iter().filter(|row| row.2 > 0).count();
        }
        let share = cases.below(10) as f64 / 10.0;
        let rows = case.run("quantile", &[("defer_quantile_suspend", Value::Real(share))]);
        assert_eq!(rows, case.simulate(false, Some(share)), "case {number}, quantile {share}, {:?}", case.jobs);
        suspended += rows.iter().filter(|row| row.2 > 0).count();
        waited += rows.iter().zip(&case.jobs).filter(|(row, job)| row.0 > steps(job.submit_s)).count();
    }
    assert!(suspended > 5_000 && waited > 5_000, "{suspended} jobs were suspended, {waited} waited");
}

/// Suspended procs draw idle power, and no other job starts on them.
#[test]
fn a_suspended_job_draws_idle_power_and_keeps_its_procs() {
    let values = vec![1.0, 9.0, 9.0, 1.0];
    let times_s = (0..4).map(|hour| f64::from(hour) * HOUR_S).collect();
    let signal = Signal::new(times_s, values, vec![], 4.0 * HOUR_S, Sample::Mean, Beyond::Wrap).expect("well formed");
    let job = |id: i64, submit_s: f64| Job {
        id,
        submit_s,
        run_s: 2.0 * HOUR_S,
        estimate_s: 2.0 * HOUR_S,
        procs: 2,
        record: id as u64,
        killed: false,
        priority: 1,
        class: 0,
    };
    let jobs = [job(1, 0.0), job(2, HOUR_S)];
    let spec = spec("wait-awhile", &signal, &[("defer_wait_max_s", Value::Real(2.0 * HOUR_S))]);
    let rows = run(spec.clone(), &jobs, 2).expect("it runs");
    // A cap that is only measured changes nothing, also while no job executes.
    let mut measured = spec;
    measured.choose(Choice::new(components::find(Role::Cap, "performance-precedence").expect("registered")));
    measured.choice_mut(Role::Cap).set("cap_schedule_share", Value::Reals(vec![0.5])).expect("in range");
    assert_eq!(measured.problems(), Vec::<String>::new());
    assert_eq!(run(measured, &jobs, 2).expect("it runs"), rows);
    // The first job executes in hours 0 and 3; the second waits for its procs until it must run.
    assert_eq!((rows[0].start_s, rows[0].finish_s, rows[0].suspended_s), (0.0, 4.0 * HOUR_S, 2.0 * HOUR_S));
    assert_eq!((rows[1].start_s, rows[1].finish_s, rows[1].suspended_s), (4.0 * HOUR_S, 6.0 * HOUR_S, 0.0));
    // Two procs of the first job were idle for two hours.
    let suspended_j = rows[0].energy_j - rows[1].energy_j;
    let idle_j = 4.0 * HOUR_S * idle_w(&jobs[1]);
    assert!((suspended_j - idle_j).abs() < 1e-9 * idle_j, "{suspended_j} J, {idle_j} J");
}

/// Idle power of a proc, from the energies of a machine with and without an idle proc (W).
fn idle_w(job: &Job) -> f64 {
    let total_j = |procs: i64| {
        let mut spec = SimSpec::new();
        spec.choice_mut(Role::Platform).set("procs", Value::Int(procs)).expect("in range");
        let workload = Workload { jobs: vec![job.clone()], ..Workload::default() };
        let measured = crate::simulate(&spec, &workload, &Limits::NONE, &mut Details::default()).expect("it runs");
        let Measured::Jobs(summary) = measured else { panic!("the spec has batch jobs") };
        summary.energy_total_j
    };
    (total_j(i64::from(job.procs) + 1) - total_j(job.procs.into())) / job.run_s
}

#[test]
fn suspension_is_refused_beside_rules_that_decide_about_running_jobs() {
    let signal = Cases(Philox::stream(34, Purpose::Shuffle)).signal(true);
    for (rule, params) in [
        ("wait-awhile", vec![]),
        ("quantile", vec![("defer_quantile_suspend", Value::Real(0.6))]),
        ("quantile", vec![]),
    ] {
        let suspends = rule == "wait-awhile" || !params.is_empty();
        let plain = spec(rule, &signal, &params);
        assert_eq!(plain.problems(), Vec::<String>::new());
        let (mut capped, mut ols, mut pools) = (plain.clone(), plain.clone(), plain);
        let mut admitting = capped.clone();
        admitting.choose(Choice::new(components::find(Role::Cap, "admission").expect("registered")));
        assert_eq!(admitting.problems().concat().contains("gives their watts to other jobs"), suspends, "{rule}");
        capped.choose(Choice::new(components::find(Role::Cap, "uniform").expect("registered")));
        capped.choice_mut(Role::Cap).set("cap_schedule_share", Value::Reals(vec![0.5])).expect("in range");
        ols.choose(Choice::new(components::find(Role::Capacity, "ols").expect("registered")));
        pools.choice_mut(Role::Platform).set("gpus", Value::Int(4)).expect("in range");
        pools.choice_mut(Role::Rules).set("gpus_from", Value::Text("log".to_owned())).expect("in range");
        for (spec, part) in [(capped, "`power_cap`"), (ols, "`capacity_rule`"), (pools, "`gpus`")] {
            let refused =
                spec.problems().iter().any(|text| text.contains("suspends running jobs") && text.contains(part));
            assert_eq!(refused, suspends, "{rule}, {part}: {:?}", spec.problems());
        }
    }
}
