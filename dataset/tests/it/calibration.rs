//! Calibration against synthetic meters with known values, and loads against a sum over every second.
use powersweep_dataset::calibration::{Calibration, MeterStep, Origin, RanJob, Stated, calibrate, loads};
use proptest::prelude::*;

const PROCS: u32 = 64;

fn job(start_s: f64, end_s: f64, procs: u32, mean_w: Option<f64>) -> RanJob {
    RanJob { start_s, end_s, procs, mean_w }
}

/// Jobs of changing sizes, every third one with a measured power.
fn jobs(measured: bool) -> Vec<RanJob> {
    let one = |at: u32| {
        let (start_s, procs) = (f64::from(at * 37 % 5000), 1 + at * 7 % 9);
        let mean_w = (measured && at.is_multiple_of(3)).then(|| f64::from(procs) * f64::from(80 + at * 13 % 90));
        job(start_s, start_s + f64::from(40 + at * 29 % 160), procs, mean_w)
    };
    (0..180).map(one).collect()
}

fn steps(count: u32, mean_w: impl Fn(usize) -> f64) -> Vec<MeterStep> {
    let step = |at: u32| MeterStep {
        from_s: f64::from(at) * 60.0,
        to_s: f64::from(at + 1) * 60.0,
        mean_w: mean_w(at as usize),
    };
    (0..count).map(step).collect()
}

/// The meter of known values, with a disturbance (W) by step.
fn meter(jobs: &[RanJob], [idle_w, busy_w, losses]: [f64; 3], disturbance_w: fn(usize) -> f64) -> Vec<MeterStep> {
    let plain = steps(80, |_| 0.0);
    let loads = loads(jobs, &plain, PROCS).expect("they fit");
    let power = |at: usize| {
        let load = loads[at];
        losses * (idle_w * load.idle_procs + busy_w * load.model_procs + load.measured_w) + disturbance_w(at)
    };
    steps(80, power)
}

fn near(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance * b.abs().max(1.0)
}

fn fitted(calibration: &Calibration) -> [f64; 3] {
    [calibration.idle_w.value, calibration.busy_w.value, calibration.loss_factor.value]
}

#[test]
fn known_values_are_fitted_back() {
    let (jobs, known) = (jobs(true), [41.5, 118.25, 1.13]);
    let steps = meter(&jobs, known, |_| 0.0);
    let found = calibrate(&jobs, &steps, PROCS, Stated::default()).expect("fits");
    for (found, known) in fitted(&found).into_iter().zip(known) {
        assert!(near(found, known, 1e-9), "{found} {known}");
    }
    assert!(found.errors.nad.is_some_and(|nad| nad < 1e-12), "{:?}", found.errors);
    let energies = found.energies;
    let sum = energies.measured_jobs_j + energies.model_jobs_j + energies.idle_j + energies.losses_j;
    assert!(near(sum, energies.meter_j, 1e-12) && near(energies.simulated_j, energies.meter_j, 1e-12));
    // A stated value is kept, and gives the same others.
    for stated in [
        Stated { idle_w: Some(41.5), ..Stated::default() },
        Stated { busy_w: Some(118.25), ..Stated::default() },
        Stated { loss_factor: Some(1.13), ..Stated::default() },
        Stated { idle_w: Some(41.5), busy_w: Some(118.25), loss_factor: None },
    ] {
        let found = calibrate(&jobs, &steps, PROCS, stated).expect("fits");
        assert!(fitted(&found).into_iter().zip(known).all(|(a, b)| near(a, b, 1e-9)), "{stated:?} {found:?}");
        let count = [found.idle_w, found.busy_w, found.loss_factor].iter().filter(|v| v.from == Origin::Stated).count();
        assert_eq!(count, 1 + usize::from(stated.idle_w.is_some() && stated.busy_w.is_some()));
    }
}

#[test]
fn standard_errors_cover_a_disturbance() {
    let (jobs, known) = (jobs(true), [41.5, 118.25, 1.13]);
    // A disturbance without a pattern, of mean 0.
    let steps = meter(&jobs, known, |at| f64::from((at as u32 * 7919 % 101) as i32 - 50));
    let found = calibrate(&jobs, &steps, PROCS, Stated::default()).expect("fits");
    for (value, known) in [found.idle_w, found.busy_w, found.loss_factor].into_iter().zip(known) {
        let error = value.error.expect("fitted");
        assert!(error > 0.0 && (value.value - known).abs() < 4.0 * error, "{value:?} {known}");
    }
    assert!(found.errors.rmse_w > 10.0 && found.errors.rmse_w < 50.0, "{:?}", found.errors);
}

#[test]
fn losses_need_a_measured_power_or_both_others() {
    let jobs = jobs(false);
    let steps = meter(&jobs, [40.0, 110.0, 1.0], |_| 0.0);
    let found = calibrate(&jobs, &steps, PROCS, Stated::default()).expect("fits");
    assert!(near(found.idle_w.value, 40.0, 1e-9) && near(found.busy_w.value, 110.0, 1e-9));
    assert_eq!((found.loss_factor.value, found.loss_factor.from, found.measured_proc_w), (1.0, Origin::Unknown, None));
    let both = Stated { idle_w: Some(20.0), busy_w: Some(55.0), loss_factor: None };
    let found = calibrate(&jobs, &steps, PROCS, both).expect("fits");
    assert!(near(found.loss_factor.value, 2.0, 1e-9) && found.loss_factor.from == Origin::Fitted);
}

#[test]
fn errors_by_hand() {
    // A proc of two is busy in the second step: 5 + 10 W, the meter has 12 and 20 W.
    let jobs = [job(60.0, 120.0, 1, None)];
    let steps = steps(2, |at| [12.0, 20.0][at]);
    let stated = Stated { idle_w: Some(5.0), busy_w: Some(10.0), loss_factor: Some(1.0) };
    let found = calibrate(&jobs, &steps, 2, stated).expect("compares");
    let errors = found.errors;
    assert_eq!((errors.bias_w, errors.bias_share), (-3.5, -7.0 / 32.0));
    assert!(near(errors.mape.expect("has steps"), (2.0 / 12.0 + 5.0 / 20.0) / 2.0, 1e-15));
    assert_eq!((errors.nad, errors.rmse_w), (Some(7.0 / 32.0), 14.5_f64.sqrt()));
    assert_eq!((found.energies.idle_j, found.energies.model_jobs_j, found.energies.losses_j), (900.0, 600.0, 0.0));
    assert_eq!(found.steps.iter().map(|step| step.simulated_w).collect::<Vec<_>>(), [10.0, 15.0]);
}

#[test]
fn what_cannot_be_told_is_said() {
    let refused = |jobs: &[RanJob], steps: &[MeterStep], procs, stated| {
        calibrate(jobs, steps, procs, stated).expect_err("cannot be").to_string()
    };
    let constant = [job(0.0, 600.0, 3, None)];
    let flat = steps(10, |_| 100.0);
    let text = refused(&constant, &flat, 4, Stated::default());
    assert!(text.contains("do not tell idle_w and busy_w apart"), "{text}");
    let found = calibrate(&constant, &flat, 4, Stated { idle_w: Some(10.0), ..Stated::default() }).expect("fits");
    assert!(near(found.busy_w.value, 30.0, 1e-12));
    assert!(
        refused(&constant, &flat, 2, Stated::default()).contains("jobs hold 3 procs at 0 s, and the machine has 2")
    );
    assert!(refused(&constant, &[], 4, Stated::default()).contains("no step of the meter"));
    // The meter falls with the load: busy procs cannot draw less than nothing.
    let jobs: Vec<RanJob> =
        (0..10).map(|at| job(f64::from(at) * 60.0, f64::from(at) * 60.0 + 60.0, 1 + at, None)).collect();
    let falls = steps(10, |at| 100.0 - 20.0 * at as f64);
    let found = calibrate(&jobs, &falls, 10, Stated::default()).expect("fits");
    assert_eq!((found.busy_w.value, found.busy_w.from), (0.0, Origin::Bound));
}

proptest! {
    #[test]
    fn loads_are_those_of_every_second(
        list in prop::collection::vec((0_u32..400, 0_u32..150, 1_u32..8, prop_oneof![Just(None), (0.1..500.0).prop_map(Some)]), 1..30),
        edges in prop::collection::btree_set(0_u32..600, 2..20),
    ) {
        let jobs: Vec<RanJob> = list
            .iter()
            .map(|&(start, run, procs, mean_w)| job(f64::from(start), f64::from(start + run), procs, mean_w))
            .collect();
        let edges: Vec<u32> = edges.into_iter().collect();
        let steps: Vec<MeterStep> = edges
            .windows(2)
            .map(|pair| MeterStep { from_s: f64::from(pair[0]), to_s: f64::from(pair[1]), mean_w: 0.0 })
            .collect();
        let found = loads(&jobs, &steps, 1000).expect("fits");
        for (load, pair) in found.iter().zip(edges.windows(2)) {
            let (mut model, mut measured, mut watts) = (0.0, 0.0, 0.0);
            for second in pair[0]..pair[1] {
                for &(start, run, procs, mean_w) in list.iter().filter(|(start, run, ..)| (*start..start + run).contains(&second)) {
                    let _ = (start, run);
                    match mean_w {
                        None => model += f64::from(procs),
                        Some(mean_w) => (measured, watts) = (measured + f64::from(procs), watts + mean_w),
                    }
                }
            }
            let span = f64::from(pair[1] - pair[0]);
            prop_assert!(near(load.model_procs, model / span, 1e-9) && near(load.measured_procs, measured / span, 1e-9));
            prop_assert!(near(load.measured_w, watts / span, 1e-9), "{} {}", load.measured_w, watts / span);
            prop_assert!(near(load.idle_procs, 1000.0 - (model + measured) / span, 1e-9));
        }
    }
}
