//! LP (1) and LP (2). Exact values were computed by a simplex method in rational numbers.
use powersweep_engine::lp::{self, Allocation, Capacity, LpError, System};
use proptest::prelude::*;

use super::systems;

fn near(found: f64, expected: f64, tolerance: f64) {
    assert!((found - expected).abs() <= tolerance, "{found} is not {expected} within {tolerance}");
}

fn all_near(found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len());
    let far = found.iter().zip(expected).any(|(f, e)| (f - e).abs() > tolerance);
    assert!(!far, "{found:?} is not {expected:?} within {tolerance}");
}

/// Solves LP (1) and checks lambda*; the shares must be feasible and reach it.
fn solved(system: &System, lambda: f64) -> Capacity {
    let capacity = lp::capacity(system).expect("it has an optimum");
    near(capacity.lambda, lambda, 1e-6);
    feasible(system, &capacity.theta, capacity.lambda);
    capacity
}

/// Solves LP (2) and checks the power; the shares must be feasible.
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
fn the_worked_example_has_its_exact_solution() {
    let system = systems::worked();
    let capacity = solved(&system, 30.0 / 17.0);
    let theta = [0.0, 6.0 / 17.0, 1.0, 11.0 / 17.0];
    all_near(&capacity.theta, &theta, 1e-4);
    all_near(&allocated(&system, &capacity, capacity.lambda, 21.0).delta, &theta, 1e-4);
    all_near(&allocated(&system, &capacity, 1.0, 0.975).delta, &[1.0 / 9.0, 0.0, 0.75, 0.0], 1e-4);
}

#[test]
fn experiments_1_and_2_have_their_exact_solutions() {
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
fn the_cluster_of_section_5_2_has_its_exact_solutions() {
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
            // The paper's 2.4242 is lambda* rounded up, which no shares can serve.
            assert_eq!(allocation.capacity, target.min(capacity.lambda));
        }
    }
}

#[test]
fn equal_machines_have_equal_shares() {
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

/// Table 5: loads at the midpoint for decreasing arrivals.
#[test]
fn machines_lose_their_loads_in_the_order_of_their_betas() {
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
fn the_systems_of_section_6_have_their_exact_solutions() {
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
fn a_machine_has_no_share_of_a_class_that_it_cannot_execute() {
    let rates = vec![2.0, 0.0, 1.0, 3.0];
    let system = System::new(vec![1.0, 1.0], rates, vec![5.0, 5.0, 5.0, 5.0], vec![1.0, 1.0]).expect("a system");
    let capacity = solved(&system, 2.0);
    all_near(&capacity.theta, &[1.0, 0.0, 0.0, 2.0 / 3.0], 1e-9);
}

#[test]
fn impossible_systems_are_refused() {
    let wrong = |arrivals: &[f64], rates: &[f64], busy: &[f64], idle: &[f64]| {
        let system = System::new(arrivals.to_vec(), rates.to_vec(), busy.to_vec(), idle.to_vec());
        system.expect_err("it is impossible").to_string()
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

/// A system in other units: of each class's work, of time and of power.
fn rescaled(system: &System, classes: &[f64], time: f64, power: f64) -> System {
    let cells = || (0..system.classes()).flat_map(|i| (0..system.machines()).map(move |j| (i, j)));
    let arrivals = system.arrivals_per_s().iter().zip(classes).map(|(rate, class)| rate * class * time).collect();
    let rates = cells().map(|(i, j)| system.rate_per_s(i, j) * classes[i] * time).collect();
    let busy_w = cells().map(|(i, j)| system.busy_w(i, j) * power).collect();
    let idle_w = system.idle_w().iter().map(|idle| idle * power).collect();
    System::new(arrivals, rates, busy_w, idle_w).expect("a system")
}

#[test]
fn units_that_are_far_apart_do_not_disturb() {
    // At lambda 1 the classes take 1/3 and 1/10 of a machine; both machines are equal.
    let system = System::new(vec![100.0, 1e-6], vec![300.0, 300.0, 1e-5, 1e-5], vec![9.0; 4], vec![1.0; 2]);
    let system = system.expect("a system");
    let capacity = solved(&system, 60.0 / 13.0);
    let all = allocated(&system, &capacity, capacity.lambda, 18.0);
    all_near(&all.loads(2), &[1.0, 1.0], 1e-9);
    all_near(
        &allocated(&system, &capacity, 1.0, 2.0 + 8.0 * 13.0 / 30.0).delta,
        &[1.0 / 6.0, 1.0 / 6.0, 0.05, 0.05],
        1e-9,
    );

    // The worked example with slow machines, which are overloaded.
    let worked = systems::worked();
    let rates = [9e-9, 5e-9, 2e-9, 1e-9].to_vec();
    let slow =
        System::new(worked.arrivals_per_s().to_vec(), rates, vec![1.0, 20.0, 1.0, 20.0], worked.idle_w().to_vec());
    let slow = slow.expect("a system");
    let capacity = lp::capacity(&slow).expect("it has an optimum");
    near(capacity.lambda * 1e9, 30.0 / 17.0, 1e-6);
    all_near(&capacity.theta, &[0.0, 6.0 / 17.0, 1.0, 11.0 / 17.0], 1e-4);
    let allocation = lp::allocation(&slow, &capacity, capacity.lambda).expect("it has an optimum");
    near(allocation.power_w, 21.0, 1e-6);
}

#[test]
fn numbers_that_are_too_far_apart_are_an_error() {
    // Class 2 needs 1e-12 of a machine, which is less than the least share.
    let system = System::new(vec![1.0, 1e-12], vec![2.0, 2.0], vec![9.0; 2], vec![1.0]).expect("a system");
    let capacity = solved(&system, 2.0);
    let error = lp::allocation(&system, &capacity, 1.0).expect_err("class 2 would have no share");
    assert!(matches!(&error, LpError::Solver { program: "LP(2)", why } if why.contains("class 2")), "{error}");
    // Rates over arrivals exceed all numbers.
    let system = System::new(vec![1e-200], vec![1e200], vec![9.0], vec![1.0]).expect("a system");
    lp::capacity(&system).expect_err("lambda* is no number");
}

/// Classes on up to 6 machines; a rate may be 0, but not on machine 0. Numbers of one kind differ by the factor `far` at
/// most.
fn systems_within(far: f64, classes: std::ops::Range<usize>) -> impl Strategy<Value = System> {
    let number = move || (0.0..1.0_f64).prop_map(move |x| far.powf(x - 0.5));
    (classes, 1_usize..7).prop_flat_map(move |(classes, machines)| {
        let cells = classes * machines;
        let rates = proptest::collection::vec(prop_oneof![1 => Just(0.0), 5 => number()], cells);
        let busy_w = proptest::collection::vec(number(), cells);
        let idle_w = proptest::collection::vec(number(), machines);
        let arrivals = proptest::collection::vec(number(), classes);
        (arrivals, rates, busy_w, idle_w).prop_map(move |(arrivals, mut rates, busy_w, idle_w)| {
            rates.iter_mut().step_by(machines).for_each(|rate| *rate = rate.max(0.5));
            System::new(arrivals, rates, busy_w, idle_w).expect("a system")
        })
    })
}

/// lambda* of two classes: the least bound over all prices at which a machine is indifferent between the classes.
fn of_two_classes(system: &System) -> f64 {
    let [alpha, beta] = system.arrivals_per_s() else { panic!("two classes") };
    let machines = || (0..system.machines()).map(|j| (system.rate_per_s(0, j), system.rate_per_s(1, j)));
    let bound = |(p, q): (f64, f64)| machines().map(|(m, n)| (p * m).max(q * n)).sum::<f64>() / (p * alpha + q * beta);
    let prices = machines().map(|(m, n)| (n, m)).chain([(1.0, 0.0), (0.0, 1.0)]);
    prices.map(bound).fold(f64::INFINITY, f64::min)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_optimum_does_not_depend_on_units(
        system in systems_within(20.0, 1..5),
        exponents in proptest::collection::vec(-9.0..9.0_f64, 4),
        time in -9.0..9.0_f64,
        power in -9.0..9.0_f64,
        target in 0.1..1.0_f64,
    ) {
        let classes: Vec<f64> = exponents.iter().map(|exponent| 10_f64.powf(*exponent)).collect();
        let (time, power) = (10_f64.powf(time), 10_f64.powf(power));
        let scaled = rescaled(&system, &classes, time, power);
        let capacities = [&system, &scaled].map(|system| lp::capacity(system).expect("it has an optimum"));
        let lambda = capacities[0].lambda;
        prop_assert!((capacities[1].lambda / lambda - 1.0).abs() < 1e-9, "{:?}", capacities);
        feasible(&scaled, &capacities[1].theta, capacities[1].lambda);
        let base = lp::allocation(&system, &capacities[0], target * lambda).expect("it has an optimum");
        let found = lp::allocation(&scaled, &capacities[1], target * lambda).expect("it has an optimum");
        feasible(&scaled, &found.delta, found.capacity);
        let size = system.idle_w().iter().sum::<f64>().max(base.power_w);
        prop_assert!((found.power_w / power - base.power_w).abs() < 1e-9 * size, "{:?}, {:?}", base, found);
    }

    #[test]
    fn numbers_that_are_far_apart_give_the_optimum_or_an_error(system in systems_within(1e12, 2..3), target in 0.1..1.0_f64) {
        let capacity = lp::capacity(&system).expect("it has an optimum");
        near(capacity.lambda / of_two_classes(&system), 1.0, 1e-6);
        if let Ok(allocation) = lp::allocation(&system, &capacity, target * capacity.lambda) {
            let machines = system.machines();
            for class in 0..system.classes() {
                let row = allocation.delta[class * machines..][..machines].iter().enumerate();
                let served: f64 = row.map(|(j, share)| share * system.rate_per_s(class, j)).sum();
                let needed = allocation.capacity * system.arrivals_per_s()[class];
                prop_assert!(served >= needed * (1.0 - 1e-6), "class {}: {} of {}", class, served, needed);
            }
            prop_assert!(allocation.loads(machines).iter().all(|load| *load <= 1.0 + 1e-6));
        }
    }
}
