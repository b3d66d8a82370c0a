//! LP (1) and LP (2). Exact values come from a simplex method in rational numbers.
use powersweep_engine::lp::{self, Allocation, Capacity, System};

use super::systems;

fn near(found: f64, expected: f64, tolerance: f64) {
    assert!((found - expected).abs() <= tolerance, "{found} is not {expected} within {tolerance}");
}

fn all_near(found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len());
    let far = found.iter().zip(expected).any(|(f, e)| (f - e).abs() > tolerance);
    assert!(!far, "{found:?} is not {expected:?} within {tolerance}");
}

/// lambda* and its programs: shares are feasible, and the capacity is reached.
fn solved(system: &System, lambda: f64) -> Capacity {
    let capacity = lp::capacity(system).expect("it has an optimum");
    near(capacity.lambda, lambda, 1e-6);
    feasible(system, &capacity.theta, capacity.lambda);
    capacity
}

fn allocated(system: &System, capacity: &Capacity, target: f64, power_w: f64) -> Allocation {
    let allocation = lp::allocation(system, capacity, target).expect("it has an optimum");
    near(allocation.power_w, power_w, 1e-6 * power_w.max(1.0));
    feasible(system, &allocation.delta, allocation.capacity);
    allocation
}

fn feasible(system: &System, shares: &[f64], target: f64) {
    let machines = system.machines();
    for class in 0..system.classes() {
        let row = &shares[class * machines..][..machines];
        let served: f64 = row.iter().enumerate().map(|(j, share)| share * system.rate_per_s(class, j)).sum();
        let needed = target * system.arrivals_per_s()[class];
        assert!(served >= needed * (1.0 - 1e-8), "class {class}: {served} of {needed}");
    }
    for machine in 0..machines {
        let load: f64 = shares.iter().skip(machine).step_by(machines).sum();
        assert!(load <= 1.0 + 1e-8, "machine {machine}: {load}");
    }
    assert!(shares.iter().all(|share| (0.0..=1.0).contains(share)));
}

fn midpoint(capacity: &Capacity) -> f64 {
    (1.0 + capacity.lambda) / 2.0
}

#[test]
fn the_worked_example() {
    let system = systems::worked();
    let capacity = solved(&system, 30.0 / 17.0);
    let theta = [0.0, 6.0 / 17.0, 1.0, 11.0 / 17.0];
    all_near(&capacity.theta, &theta, 1e-4);
    all_near(&allocated(&system, &capacity, capacity.lambda, 21.0).delta, &theta, 1e-4);
    all_near(&allocated(&system, &capacity, 1.0, 0.975).delta, &[1.0 / 9.0, 0.0, 0.75, 0.0], 1e-4);
}

#[test]
fn experiments_1_and_2() {
    let system = systems::experiment_1();
    let capacity = solved(&system, 6764.0 / 3963.0);
    allocated(&system, &capacity, capacity.lambda, 474.342_370_877_989_8);
    let middle = allocated(&system, &capacity, midpoint(&capacity), 348.553_580_699_137_4);
    all_near(&middle.loads(6), &[1.0, 0.439_576, 1.0, 1.0, 0.360_545, 0.898_957], 1e-4);

    let system = systems::experiment_2();
    let capacity = solved(&system, 1_440_401.0 / 987_825.0);
    allocated(&system, &capacity, capacity.lambda, 619.929_478_399_514_1);
    let middle = allocated(&system, &capacity, midpoint(&capacity), 345.747_774_768_639_8);
    all_near(&middle.loads(6), &[0.0, 1.0, 1.0, 0.0, 0.507_143, 1.0], 1e-4);
}

#[test]
fn the_cluster_of_section_5_2() {
    let lambda = 23_628_389_400.0 / 9_746_887_511.0;
    let heterogeneous = [
        (1.15, 999.909_800_981_158_7),
        (1.3561, 1_206.114_992_724_440_5),
        (1.7121, 1_595.978_062_853_230_3),
        (2.0682, 2_043.666_775_220_592),
        (2.4242, 3_094.551_731_517_046_4),
    ];
    let homogeneous = [
        (1.15, 1_995.187_135_605_646),
        (1.3561, 2_386.926_878_844_937_6),
        (1.7121, 3_078.964_571_070_833_2),
        (2.0682, 3_819.298_274_568_481_2),
        (2.4242, 4_623.742_830_736_842),
    ];
    let cases = [(systems::cluster_heterogeneous(), heterogeneous), (systems::cluster_homogeneous(), homogeneous)];
    for (system, powers) in cases {
        let capacity = solved(&system, lambda);
        for (target, power_w) in powers {
            let allocation = allocated(&system, &capacity, target, power_w);
            // The paper's 2.4242 is lambda* rounded up: nothing could serve it.
            assert_eq!(allocation.capacity, target.min(capacity.lambda));
        }
    }
}

#[test]
fn equal_machines_share_evenly() {
    let system = systems::cluster_homogeneous();
    let capacity = lp::capacity(&system).expect("it has an optimum");
    let allocation = lp::allocation(&system, &capacity, 1.3561).expect("it has an optimum");
    for row in allocation.delta.chunks(system.machines()).chain(capacity.theta.chunks(system.machines())) {
        let mut first = 0;
        for count in systems::GROUPS {
            assert!(row[first..first + count].windows(2).all(|pair| pair[0] == pair[1]), "{row:?}");
            first += count;
        }
    }
}

/// Table 5: loads at the midpoint as the arrivals fall.
#[test]
fn machines_leave_in_the_order_of_their_betas() {
    let rows: [(f64, f64, [f64; 7]); 11] = [
        (2.2, 0.9418, [1.0, 1.0, 1.0, 1.0, 1.0, 0.83, 1.0]),
        (2.0, 0.8562, [1.0, 1.0, 1.0, 1.0, 1.0, 0.58, 1.0]),
        (1.8, 0.7705, [1.0, 1.0, 1.0, 1.0, 1.0, 0.33, 1.0]),
        (1.6, 0.6849, [1.0, 1.0, 1.0, 1.0, 1.0, 0.08, 1.0]),
        (1.4, 0.5993, [1.0, 1.0, 1.0, 1.0, 0.858_333, 0.0, 1.0]),
        (1.2, 0.5137, [1.0, 1.0, 1.0, 1.0, 0.65, 0.0, 1.0]),
        (1.0, 0.4281, [1.0, 1.0, 1.0, 1.0, 0.441_667, 0.0, 1.0]),
        (0.8, 0.3425, [1.0, 1.0, 1.0, 1.0, 0.233_333, 0.0, 1.0]),
        (0.6, 0.2568, [1.0, 1.0, 1.0, 1.0, 0.025, 0.0, 1.0]),
        (0.4, 0.1712, [1.0, 0.633_333, 1.0, 1.0, 0.0, 0.0, 1.0]),
        (0.2, 0.0856, [1.0, 0.216_667, 1.0, 1.0, 0.0, 0.0, 1.0]),
    ];
    for (factor, system_load, loads) in rows {
        let system = systems::structured(factor);
        let capacity = solved(&system, 2.336 / factor);
        near(1.0 / capacity.lambda, system_load, 1e-4);
        let allocation = lp::allocation(&system, &capacity, midpoint(&capacity)).expect("it has an optimum");
        all_near(&allocation.loads(7), &loads, 1e-4);
    }
}

#[test]
fn section_6() {
    let system = systems::structured(1.0);
    let capacity = solved(&system, 2.336);
    allocated(&system, &capacity, capacity.lambda, 316.6416);
    allocated(&system, &capacity, midpoint(&capacity), 152.8008);
    let system = systems::almost_structured();
    let capacity = solved(&system, 38_449_853_552_759.0 / 12_595_778_343_300.0);
    near(midpoint(&capacity), 2.0263, 5e-5);
    allocated(&system, &capacity, midpoint(&capacity), 177.997_417_307_815_9);
}

#[test]
fn what_a_machine_cannot_execute_it_gets_no_share_of() {
    let rates = vec![2.0, 0.0, 1.0, 3.0];
    let system = System::new(vec![1.0, 1.0], rates, vec![5.0, 5.0, 5.0, 5.0], vec![1.0, 1.0]).expect("a system");
    let capacity = solved(&system, 2.0);
    all_near(&capacity.theta, &[1.0, 0.0, 0.0, 2.0 / 3.0], 1e-9);
}

#[test]
fn systems_that_cannot_be() {
    let wrong = |arrivals: &[f64], rates: &[f64], busy: &[f64], idle: &[f64]| {
        let system = System::new(arrivals.to_vec(), rates.to_vec(), busy.to_vec(), idle.to_vec());
        system.expect_err("it cannot be").to_string()
    };
    let cases = [
        (wrong(&[1.0], &[1.0, 1.0], &[1.0], &[0.0]), "need 1 rates, not 2"),
        (wrong(&[1.0], &[1.0], &[1.0, 2.0], &[0.0]), "need 1 busy powers, not 2"),
        (wrong(&[], &[], &[], &[]), "0 classes on 0 machines"),
        (wrong(&[0.0], &[1.0], &[1.0], &[0.0]), "no class has arrivals"),
        (wrong(&[1.0, 1.0], &[1.0, 0.0], &[1.0, 1.0], &[0.0]), "class 2 cannot be executed"),
        (wrong(&[f64::NAN], &[1.0], &[1.0], &[0.0]), "NaN is not possible"),
    ];
    for (message, expected) in cases {
        assert!(message.contains(expected), "{message}");
    }
}
