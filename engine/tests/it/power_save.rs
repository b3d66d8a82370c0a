//! Power saving: schedules that are small enough to check by hand, and a comparison with a simple, slow reference
//! implementation, job by job.
//!
//! The reference steps through every second and keeps the state of every single proc. It shares no code with the engine.
use powersweep_engine::{Limits, Role, Value};
use proptest::prelude::*;

use crate::capped::{platform, times};
use crate::golden::{two_gears, workload};
use crate::specs::{Build, recorded, simulate};

/// Procs of 10 W busy and 2 W idle that are switched off after 100 s, which takes 30 s; waking takes 60 s.
fn saving(procs: i64) -> Build {
    let build = platform(procs).choose(Role::Capacity, "power-save").real("suspend_time_s", 100.);
    build.real("wake_s", 60.).real("off_s", 30.)
}

/// The active procs over time.
fn active(build: &Build, jobs: &[(f64, f64, f64, u32)]) -> Vec<(f64, f64)> {
    recorded("active_procs", &build.0, &workload(jobs))
}

#[test]
fn idle_procs_are_switched_off_and_woken_for_jobs() {
    // 2 procs are idle from 0 and 2 from 10 on: they are switched off at 100 and 110. At 500 job 2 needs three: they are
    // idle at 560. At 510 job 3 takes the fourth, which is idle at 570.
    let list = [(0., 10., 2, 1), (500., 50., 3, 1), (510., 50., 1, 1)];
    times(saving(4), &list, &[(0., 10.), (560., 610.), (570., 620.)]);
    let jobs = list.map(|(at, run, procs, _)| (at, run, run, procs));
    assert_eq!(active(&saving(4), &jobs), [(0., 4.), (100., 2.), (110., 0.), (500., 3.), (510., 4.)]);
    let idle = [(0., 2.), (10., 4.), (100., 2.), (110., 0.), (610., 3.), (620., 4.)];
    let watched = saving(4).set("watch_machine", Value::Bool(true));
    assert_eq!(recorded("idle_procs", &watched.0, &workload(&jobs)), idle);
    // Of the procs that are on, the idle ones are at the lowest gear.
    let watched = two_gears(saving(4)).set("watch_machine", Value::Bool(true));
    let ghz = recorded("frequency_mean_ghz", &watched.0, &workload(&[(0., 200., 200., 2)]));
    assert_eq!(ghz, [(0., 1.5), (100., 2.), (200., 1.)]);
}

#[test]
fn procs_that_switch_off_are_first_off_and_then_woken() {
    // The procs are switched off at 100 and off at 130. They are recalled at 110, and idle at 190.
    times(saving(4), &[(0., 1., 1, 1), (110., 10., 3, 1)], &[(0., 1.), (190., 200.)]);
}

#[test]
fn a_job_behind_a_blocked_head_wakes_procs() {
    // Job 2 needs all procs and waits for job 1 until 1000. Job 3 ends before, so that it may start on procs that have been
    // switched off: one proc is woken. Job 4 would end after the reservation of job 2.
    let list = [(0., 1000., 1, 1), (500., 10., 4, 1), (510., 100., 1, 1), (520., 600., 1, 1)];
    times(saving(4), &list, &[(0., 1000.), (1060., 1070.), (570., 670.), (1070., 1670.)]);
}

#[test]
fn rates_limit_the_procs_of_a_minute() {
    // Two procs a minute are switched off, from 100 on: at 100, 120 and 180; the minutes begin at 60, 120, 180.
    let build = saving(6).int("suspend_rate_procs_per_min", 2);
    let jobs = [(0., 1000., 1000., 1), (1500., 10., 10., 6)];
    let steps = active(&build, &jobs);
    assert_eq!(steps[..4], [(0., 6.), (100., 4.), (120., 2.), (180., 1.)]);
    // Job 2 needs six. Its procs are woken at 1500, 1560 and 1620.
    let build = saving(6).int("resume_rate_procs_per_min", 2);
    let list = [(0., 1000., 1, 1), (1500., 10., 6, 1)];
    times(build, &list, &[(0., 1000.), (1680., 1690.)]);
    let build = saving(6).int("resume_rate_procs_per_min", 2);
    assert_eq!(active(&build, &jobs)[3..], [(1500., 2.), (1560., 4.), (1620., 6.)]);
}

#[test]
fn exempt_procs_stay_idle() {
    let build = saving(6).int("suspend_exc_procs", 2);
    // The two exempt procs have been idle since 0. The proc of job 1 makes three at 1000, so that one of the two is
    // switched off at once.
    assert_eq!(active(&build, &[(0., 1000., 1000., 1), (1500., 10., 10., 2)]), [(0., 6.), (100., 3.), (1000., 2.)]);
}

#[test]
fn without_a_suspension_every_row_equals_that_without_the_rule() {
    let jobs = [(0., 100., 200., 3), (5., 30., 30., 4), (6., 90., 90., 1), (300., 1., 2., 2)];
    let run = |build: Build| {
        let mut rows = Vec::new();
        let summary = simulate(&build.0, &workload(&jobs), &Limits::NONE, Some(&mut rows)).unwrap();
        (summary, rows)
    };
    let never = saving(4).real("suspend_time_s", f64::INFINITY);
    assert_eq!(run(never), run(saving(4).choose(Role::Capacity, "none")));
}

#[test]
fn a_rule_with_more_exempt_procs_than_the_machine_has_is_refused() {
    let build = saving(4).int("suspend_exc_procs", 5);
    assert_eq!(build.0.problems(), ["`suspend_exc_procs` is 5, but the machine has 4 procs"]);
}

/// The state of one proc, with the instant of its end.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Proc {
    IdleSince(u32),
    BusyUntil(u32),
    OffAt { at: u32, recalled: bool },
    Asleep,
    IdleAt(u32),
}

/// The parameters of a reference run (s, procs).
#[derive(Debug, Clone, Copy)]
struct Rules {
    easy: bool,
    procs: usize,
    suspend: u32,
    wake: u32,
    off: u32,
    suspend_rate: u32,
    resume_rate: u32,
    exempt: usize,
}

/// Submit, run time, estimate (s), procs.
type Job = (u32, u32, u32, usize);

/// Watts of a proc that is busy, idle, switching off, asleep, waking.
const WATTS: [f64; 5] = [10., 2., 3., 0.5, 7.];

/// The positions of the jobs that start. `queue`: waiting jobs; `gains`: instants at which procs become available.
fn started(rules: Rules, now: u32, queue: &[Job], mut free: usize, mut gains: Vec<(u32, usize)>) -> Vec<usize> {
    let mut starts = Vec::new();
    let mut at = 0;
    while at < queue.len() && queue[at].3 <= free {
        free -= queue[at].3;
        gains.push((now + queue[at].2, queue[at].3));
        starts.push(at);
        at += 1;
    }
    if at == queue.len() || !rules.easy {
        return starts;
    }
    gains.sort_unstable();
    let available =
        |until: u32| free + gains.iter().filter(|gain| gain.0.max(now) <= until).map(|gain| gain.1).sum::<usize>();
    let shadow = gains.iter().map(|gain| gain.0.max(now)).find(|&until| available(until) >= queue[at].3).unwrap();
    let mut extra = available(shadow) - queue[at].3;
    for (at, &(_, _, estimate, procs)) in queue.iter().enumerate().skip(at + 1) {
        let ends_before = now + estimate <= shadow;
        if procs <= free && (ends_before || procs <= extra) {
            free -= procs;
            extra -= if ends_before { 0 } else { procs };
            starts.push(at);
        }
    }
    starts
}

/// What is left of a rate in a minute; 0 is no limit.
fn left(rate: u32, (minute, used): &mut (u32, u32), now: u32) -> usize {
    if *minute != now / 60 {
        (*minute, *used) = (now / 60, 0);
    }
    if rate == 0 { usize::MAX } else { (rate - *used) as usize }
}

/// The start of every job and the energy (J).
fn reference(rules: Rules, jobs: &[Job]) -> (Vec<u32>, f64) {
    let mut procs = vec![Proc::IdleSince(jobs[0].0); rules.procs];
    let mut starts = vec![None; jobs.len()];
    let mut running: Vec<usize> = Vec::new();
    let (mut suspended, mut resumed) = ((0, 0), (0, 0));
    let mut joules = 0.0;
    for now in jobs[0].0.. {
        // The number of events of this second: the engine makes a pass only at events.
        let mut events = jobs.iter().filter(|job| job.0 == now).count();
        let wakes = |now: u32| if rules.wake == 0 { Proc::IdleSince(now) } else { Proc::IdleAt(now + rules.wake) };
        for proc in &mut procs {
            let next = match *proc {
                Proc::BusyUntil(at) | Proc::IdleAt(at) if at == now => Proc::IdleSince(now),
                Proc::OffAt { at, recalled } if at == now => {
                    if recalled {
                        wakes(now)
                    } else {
                        Proc::Asleep
                    }
                }
                same => same,
            };
            events += usize::from(next != *proc);
            *proc = next;
            events += usize::from(matches!(next, Proc::IdleSince(since) if since + rules.suspend == now));
        }
        let minute_begins = (now - jobs[0].0).is_multiple_of(60);
        let is_used_up = |rate: u32, used: u32| rate > 0 && rate == used;
        let limited = is_used_up(rules.suspend_rate, suspended.1) || is_used_up(rules.resume_rate, resumed.1);
        events += usize::from(minute_begins && limited);
        running.retain(|&job| starts[job].unwrap() + jobs[job].1 > now);
        if events > 0 {
            let since_begin = now - jobs[0].0;
            let waiting: Vec<usize> =
                (0..jobs.len()).filter(|&job| jobs[job].0 <= now && starts[job].is_none()).collect();
            let queue: Vec<Job> = waiting.iter().map(|&job| jobs[job]).collect();
            let ends: Vec<(u32, usize)> =
                running.iter().map(|&job| (starts[job].unwrap() + jobs[job].2, jobs[job].3)).collect();
            let count = |procs: &[Proc], is: fn(&Proc) -> bool| procs.iter().filter(|proc| is(proc)).count();
            let idle = |procs: &[Proc]| count(procs, |proc| matches!(proc, Proc::IdleSince(_)));
            let waking = |procs: &[Proc]| {
                count(procs, |proc| matches!(proc, Proc::IdleAt(_) | Proc::OffAt { recalled: true, .. }))
            };
            let busy = count(&procs, |proc| matches!(proc, Proc::BusyUntil(_)));
            // The procs of the jobs that would start if all were awake.
            let awake = rules.procs - busy;
            let mut wanted = 0;
            if idle(&procs) < awake {
                wanted = started(rules, now, &queue, awake, ends.clone()).into_iter().map(|at| queue[at].3).sum();
            }
            let missing = wanted.saturating_sub(idle(&procs) + waking(&procs));
            let woken = missing.min(left(rules.resume_rate, &mut resumed, since_begin));
            resumed.1 += woken as u32;
            let mut left_over = woken;
            for proc in procs.iter_mut().filter(|proc| **proc == Proc::Asleep).take(woken) {
                *proc = wakes(now);
                left_over -= 1;
            }
            let mut falling: Vec<&mut Proc> =
                procs.iter_mut().filter(|proc| matches!(proc, Proc::OffAt { recalled: false, .. })).collect();
            falling.sort_by_key(|proc| if let Proc::OffAt { at, .. } = **proc { at } else { 0 });
            for proc in falling.into_iter().take(left_over) {
                if let Proc::OffAt { recalled, .. } = proc {
                    *recalled = true;
                }
            }
            // One pass on the idle procs.
            let before = idle(&procs);
            let coming = procs.iter().filter_map(|proc| match *proc {
                Proc::Asleep => Some((now + rules.wake, 1)),
                Proc::IdleAt(at) => Some((at, 1)),
                Proc::OffAt { at, .. } => Some((at + rules.wake, 1)),
                Proc::IdleSince(_) | Proc::BusyUntil(_) => None,
            });
            let gains = ends.into_iter().chain(coming).collect();
            for at in started(rules, now, &queue, before, gains) {
                let (_, run, _, width) = queue[at];
                let mut youngest: Vec<&mut Proc> =
                    procs.iter_mut().filter(|proc| matches!(proc, Proc::IdleSince(_))).collect();
                youngest.sort_by_key(|proc| if let Proc::IdleSince(since) = **proc { u32::MAX - since } else { 0 });
                youngest.into_iter().take(width).for_each(|proc| *proc = Proc::BusyUntil(now + run));
                starts[waiting[at]] = Some(now);
                running.push(waiting[at]);
            }
            let free = idle(&procs);
            let kept = (wanted.saturating_sub(before - free)).saturating_sub(waking(&procs)) + rules.exempt;
            let mut ripe: Vec<&mut Proc> = procs
                .iter_mut()
                .filter(|proc| matches!(**proc, Proc::IdleSince(since) if since + rules.suspend <= now))
                .collect();
            let off =
                ripe.len().min(free.saturating_sub(kept)).min(left(rules.suspend_rate, &mut suspended, since_begin));
            suspended.1 += off as u32;
            ripe.sort_by_key(|proc| if let Proc::IdleSince(since) = **proc { since } else { 0 });
            for proc in ripe.into_iter().take(off) {
                *proc =
                    if rules.off == 0 { Proc::Asleep } else { Proc::OffAt { at: now + rules.off, recalled: false } };
            }
        }
        if running.is_empty() && starts.iter().all(Option::is_some) {
            break;
        }
        joules += procs
            .iter()
            .map(|proc| match proc {
                Proc::BusyUntil(_) => WATTS[0],
                Proc::IdleSince(_) => WATTS[1],
                Proc::OffAt { .. } => WATTS[2],
                Proc::Asleep => WATTS[3],
                Proc::IdleAt(_) => WATTS[4],
            })
            .sum::<f64>();
    }
    (starts.into_iter().map(Option::unwrap).collect(), joules)
}

/// Number of random cases: `POWERSWEEP_CASES`, or 400.
fn cases() -> u32 {
    std::env::var("POWERSWEEP_CASES").map_or(400, |cases| cases.parse().expect("POWERSWEEP_CASES is a number"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn starts_and_energy_equal_those_of_the_reference(
        list in prop::collection::vec((0..150u32, 1..120u32, 0..60u32, 1..=8usize), 1..30),
        easy in any::<bool>(),
        suspend in 0..100u32,
        delays in (0..50u32, 0..50u32),
        rates in (0..6u32, 0..6u32),
        exempt in 0..4usize,
    ) {
        let rules = Rules {
            easy,
            procs: 8,
            suspend,
            wake: delays.0,
            off: delays.1,
            suspend_rate: rates.0,
            resume_rate: rates.1,
            exempt,
        };
        let mut submit = 0;
        let jobs: Vec<Job> = list.into_iter().map(|(gap, run, over, procs)| {
            // Some jobs arrive at one instant.
            submit += gap.saturating_sub(30);
            (submit, run, run + over, procs)
        }).collect();
        let build = platform(8).choose(Role::Capacity, "power-save").choose(Role::Backfill, if easy { "easy" } else { "none" });
        let build = build.real("suspend_time_s", f64::from(suspend)).int("suspend_exc_procs", exempt as i64);
        let build = build.int("suspend_rate_procs_per_min", i64::from(rates.0));
        let build = build.int("resume_rate_procs_per_min", i64::from(rates.1));
        let mut build = build.real("wake_s", f64::from(delays.0)).real("off_s", f64::from(delays.1));
        for (name, watts) in [("off_w", WATTS[2]), ("asleep_w", WATTS[3]), ("wake_w", WATTS[4])] {
            build = build.set(name, Value::Real(watts));
        }
        let listed: Vec<_> = jobs.iter().map(|&(at, run, estimate, procs)| {
            (f64::from(at), f64::from(run), f64::from(estimate), procs as u32)
        }).collect();
        let mut rows = Vec::new();
        let summary = simulate(&build.0, &workload(&listed), &Limits::NONE, Some(&mut rows)).unwrap();
        let (starts, joules) = reference(rules, &jobs);
        let ours: Vec<f64> = rows.iter().map(|row| row.start_s).collect();
        let starts: Vec<f64> = starts.into_iter().map(f64::from).collect();
        prop_assert_eq!(ours, starts);
        prop_assert!((summary.energy_total_j - joules).abs() <= 1e-9 * joules, "{} {joules}", summary.energy_total_j);
    }
}
