//! Effects of the kernel's decisions, and refusals of impossible ones.
use powersweep_engine::batch::kernel::{Cluster, Ended, EventOrder, JobId, Outcomes, Policy, Recorder, Simulation};
use powersweep_engine::batch::platform::{Gear, Machine, SleepStates};
use powersweep_engine::error::Stop;
use powersweep_engine::summary::Integrals;
use powersweep_engine::{Limits, SimError};

use crate::golden::workload;

/// A decision of a scripted policy.
#[derive(Debug, Clone, Copy)]
enum Act {
    Start(JobId, u8),
    Gear(JobId, u8),
    Suspend(JobId),
    Resume(JobId),
    Sleep(u32),
    Wake(u32),
    Timer(f64),
    /// Checks the estimated end of a job (s).
    Expect(JobId, f64),
}

/// Takes given decisions at given instants.
#[derive(Debug, Clone)]
struct Script {
    acts: Vec<(f64, Act)>,
    armed: bool,
}

impl Policy for Script {
    fn submitted<R: Recorder>(&mut self, _: &Cluster<'_, R>, _: JobId) {}

    fn ended<R: Recorder>(&mut self, _: &Cluster<'_, R>, _: &Ended) {}

    fn pass<R: Recorder>(&mut self, cluster: &mut Cluster<'_, R>) -> Result<(), Stop> {
        let now = cluster.now_s();
        if !std::mem::replace(&mut self.armed, true) {
            for &(at, _) in self.acts.iter().filter(|(at, _)| *at > now) {
                cluster.set_timer(at, 0)?;
            }
        }
        let due: Vec<Act> = self.acts.iter().filter(|(at, _)| *at == now).map(|(_, act)| *act).collect();
        self.acts.retain(|(at, _)| *at != now);
        for act in due {
            match act {
                Act::Start(job, gear) => drop(cluster.start(job, gear, false)?),
                Act::Gear(job, gear) => drop(cluster.set_gear(job, gear)?),
                Act::Suspend(job) => cluster.suspend(job)?,
                Act::Resume(job) => drop(cluster.resume(job)?),
                Act::Sleep(procs) => cluster.sleep(procs)?,
                Act::Wake(procs) => cluster.wake(procs)?,
                Act::Timer(at) => cluster.set_timer(at, 0)?,
                Act::Expect(job, end_s) => assert_eq!(cluster.estimated_end_s(job), Some(end_s), "at {now} s"),
            }
        }
        Ok(())
    }
}

/// Start (s), end (s) and energy (J) of a job.
type Times = (f64, f64, f64);

/// 4 procs with two gears (3 W and twice the run time; 10 W), 1 W idle.
fn machine() -> Machine {
    let gears = vec![Gear { time_factor: 2.0, busy_w: 3.0 }, Gear { time_factor: 1.0, busy_w: 10.0 }];
    let sleep = SleepStates { asleep_w: 0.1, off_w: 0.5, off_s: 10.0, wake_w: 2.0, wake_s: 20.0 };
    Machine { procs: 4, gears, more_job_classes: Vec::new(), idle_w: 1.0, sleep, static_w: 0.0, pools: Vec::new() }
}

fn run(
    machine: Machine,
    jobs: &[(f64, f64, f64, u32)],
    acts: &[(f64, Act)],
) -> Result<(Vec<Times>, Integrals), SimError> {
    let workload = workload(jobs);
    let policy = Script { acts: acts.to_vec(), armed: false };
    let recorder = Outcomes::new(jobs.len());
    let mut simulation = Simulation::new(&workload.jobs, machine, &Limits::NONE, EventOrder::Batch, policy, recorder);
    simulation.run()?;
    let outcomes = simulation.recorder().outcomes().iter().map(|o| (o.start_s, o.finish_s, o.energy_j)).collect();
    Ok((outcomes, simulation.integrals()))
}

#[test]
fn a_gear_change_scales_the_remaining_run_time() {
    // 40 of 100 s at the top gear; 20 s at the lower gear, in which 10 s of work are done; then 50 s at the top gear.
    let acts = [(0., Act::Start(0, 1)), (40., Act::Gear(0, 0)), (60., Act::Gear(0, 1))];
    let (outcomes, integrals) = run(machine(), &[(0., 100., 100., 2)], &acts).unwrap();
    assert_eq!(outcomes, [(0., 110., 2. * (10. * 90. + 3. * 20.))]);
    assert_eq!(integrals.busy_proc_s, [40., 180.]);
    assert_eq!(integrals.gear_changes_count, 2);
    assert_eq!(integrals.energy_busy_j, 1920.);
    assert_eq!(integrals.idle_proc_s, 220.);
}

#[test]
fn a_suspended_job_keeps_its_procs_at_idle_power() {
    // While it is suspended, it is expected to go on now.
    let expected = [(0., Act::Expect(0, 100.)), (10., Act::Expect(0, 100.)), (45., Act::Expect(0, 115.))];
    let acts = [(0., Act::Start(0, 1)), (30., Act::Suspend(0)), (50., Act::Resume(0)), (50., Act::Expect(0, 120.))];
    let acts = [&acts[..], &expected].concat();
    let (outcomes, integrals) = run(machine(), &[(0., 100., 100., 4)], &acts).unwrap();
    assert_eq!(outcomes, [(0., 120., 4. * (10. * 100. + 1. * 20.))]);
    assert_eq!(integrals.busy_proc_s, [0., 400.]);
    assert_eq!((integrals.idle_proc_s, integrals.suspended_proc_s), (0., 80.));
    assert_eq!((integrals.energy_idle_j, integrals.energy_suspended_j), (0., 80.));
    // 40 W in 100 of 120 s, 4 W otherwise.
    assert_eq!((integrals.power_p95_w, integrals.power_peak_w), (Some(40.), 40.));
}

#[test]
fn the_quantile_of_the_power_is_a_power_of_the_machine() {
    // 580 W for 950 of 1000 s, 690 W in the rest, on a machine that can draw from 20 to 800 W.
    let gears = |watts: &[f64]| watts.iter().map(|busy_w| Gear { time_factor: 1.0, busy_w: *busy_w }).collect();
    let sleep = SleepStates { asleep_w: 5., off_w: 5., off_s: 0., wake_w: 5., wake_s: 0. };
    let one_gear = Machine { gears: gears(&[200.]), idle_w: 90., sleep, ..machine() };
    let jobs = [(0., 1000., 1000., 2), (950., 50., 50., 1)];
    let acts = [(0., Act::Start(0, 0)), (950., Act::Start(1, 0))];
    let (_, integrals) = run(one_gear.clone(), &jobs, &acts).unwrap();
    assert_eq!((integrals.power_p95_w, integrals.power_peak_w), (Some(580.), 690.));
    // With two gears, 240 W for 950 s and 420 W in the rest.
    let two_gears = Machine { gears: gears(&[60., 240.]), idle_w: 0., ..one_gear };
    let jobs = [(0., 1000., 1000., 1), (950., 50., 50., 3)];
    let acts = [(0., Act::Start(0, 1)), (950., Act::Start(1, 0))];
    let (_, integrals) = run(two_gears, &jobs, &acts).unwrap();
    assert_eq!((integrals.power_p95_w, integrals.power_peak_w), (Some(240.), 420.));
}

#[test]
fn procs_fall_asleep_and_wake() {
    // 3 procs switch off at 10 (asleep at 20); 2 are woken at 40 (idle at 60), 1 at 65 (idle at 85); job 2 starts at 85.
    let jobs = [(0., 100., 100., 1), (50., 30., 30., 3)];
    let acts = [(0., Act::Start(0, 1)), (10., Act::Sleep(3)), (40., Act::Wake(2)), (60., Act::Timer(61.))];
    let script = [&acts[..], &[(65., Act::Wake(1)), (85., Act::Start(1, 1))]].concat();
    let (outcomes, integrals) = run(machine(), &jobs, &script).unwrap();
    assert_eq!(outcomes.iter().map(|o| (o.0, o.1)).collect::<Vec<_>>(), [(0., 100.), (85., 115.)]);
    assert_eq!(integrals.asleep_proc_s, 3. * 20. + 25.);
    // Idle are 3 procs until 10, 2 from 60 to 85, and the first job's proc from 100 to 115.
    assert_eq!(integrals.idle_proc_s, 30. + 50. + 15.);
    let switching = 0.5 * 30. + 2. * 40. + 2. * 20.;
    assert_eq!(integrals.energy_idle_j, 95.);
    assert!((integrals.energy_asleep_j - 0.1 * 85.).abs() < 1e-9);
    assert!((integrals.energy_transition_j - switching).abs() < 1e-9);
    assert_eq!(integrals.transition_proc_s, 30. + 40. + 20.);
    assert_eq!(integrals.active_steps, [(0., 4), (10., 1), (40., 3), (65., 4)]);
    assert_eq!(integrals.active_proc_s, 40. + 30. + 75. + 50. * 4.);
}

#[test]
fn procs_that_switch_off_can_wake_only_after_they_are_off() {
    // 3 procs switch off from 10 to 20. Two are woken at 15: they count as active at once, and wake from 20 to 40.
    let jobs = [(0., 100., 100., 1), (5., 30., 30., 2)];
    let acts = [(0., Act::Start(0, 1)), (10., Act::Sleep(3)), (15., Act::Wake(2)), (40., Act::Start(1, 1))];
    let (outcomes, integrals) = run(machine(), &jobs, &acts).unwrap();
    assert_eq!(outcomes.iter().map(|o| (o.0, o.1)).collect::<Vec<_>>(), [(0., 100.), (40., 70.)]);
    assert_eq!(integrals.active_steps, [(0., 4), (10., 1), (15., 3)]);
    assert_eq!(integrals.transition_proc_s, 30. + 40.);
    assert_eq!(integrals.asleep_proc_s, 80.);
    let early = [acts[0], acts[1], acts[2], (39., Act::Start(1, 1))];
    assert!(run(machine(), &jobs, &early).is_err());
}

#[test]
fn procs_that_wake_in_no_time_are_free_at_once() {
    let mut machine = machine();
    machine.sleep = SleepStates { wake_s: 0.0, off_s: 0.0, ..machine.sleep };
    let acts = [(0., Act::Sleep(4)), (10., Act::Wake(3)), (10., Act::Start(1, 1)), (10., Act::Wake(1))];
    let acts = [&acts[..], &[(20., Act::Start(0, 1))]].concat();
    let (outcomes, integrals) = run(machine, &[(0., 10., 10., 4), (10., 10., 10., 3)], &acts).unwrap();
    assert_eq!(outcomes.iter().map(|o| (o.0, o.1)).collect::<Vec<_>>(), [(20., 30.), (10., 20.)]);
    assert_eq!((integrals.asleep_proc_s, integrals.transition_proc_s), (40., 0.));
}

#[test]
fn constant_power_counts_from_the_first_submit_to_the_last_end() {
    let machine = Machine { static_w: 7.0, ..machine() };
    let (_, integrals) = run(machine, &[(5., 10., 10., 1)], &[(8., Act::Start(0, 1)), (6., Act::Timer(8.))]).unwrap();
    assert_eq!((integrals.last_finish_s, integrals.energy_static_j), (18., 7. * 13.));
    assert_eq!(integrals.power_peak_w, 7. + 10. + 3.);
}

#[test]
fn impossible_decisions_are_refused() {
    let jobs = [(0., 100., 100., 3), (0., 10., 10., 2), (50., 10., 10., 1)];
    let started = (0., Act::Start(0, 1));
    let cases: [(&[(f64, Act)], &str); 12] = [
        (&[started, (10., Act::Start(0, 1))], "job 1 cannot start: it runs already"),
        (&[started, (10., Act::Start(1, 1))], "job 2 cannot start: it needs 2 procs, 1 are free"),
        (&[(0., Act::Start(2, 1))], "job 3 cannot start: it has not been submitted"),
        (&[(0., Act::Start(9, 1))], "does not exist"),
        (&[(0., Act::Start(0, 2))], "gear 2 does not exist"),
        (&[(0., Act::Gear(0, 0))], "cannot set the gear of job 1, which does not execute"),
        (&[started, (10., Act::Gear(9, 0))], "cannot set the gear of job -1, which does not execute"),
        (&[started, (10., Act::Gear(0, 7))], "gear 7"),
        (&[started, (10., Act::Resume(0))], "cannot resume job 1, which is not suspended"),
        (&[started, (10., Act::Sleep(2))], "cannot put 2 procs to sleep"),
        (&[started, (10., Act::Sleep(1)), (15., Act::Wake(2))], "cannot wake 2 procs"),
        (&[started, (10., Act::Timer(10.))], "cannot set a timer for 10 s"),
    ];
    for (acts, expected) in cases {
        match run(machine(), &jobs, acts) {
            Err(SimError::Policy { what, .. }) => assert!(what.contains(expected), "{what}, not {expected}"),
            other => panic!("{acts:?} gave {other:?}"),
        }
    }
}

#[test]
fn a_policy_that_never_starts_a_job_is_an_error() {
    match run(machine(), &[(0., 10., 10., 1), (5., 10., 10., 1)], &[(0., Act::Start(0, 1))]) {
        Err(SimError::Policy { what, now_s }) => {
            assert!(what.contains("1 jobs wait"), "{what}");
            assert_eq!(now_s, 10.);
        }
        other => panic!("{other:?}"),
    }
}
