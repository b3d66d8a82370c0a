//! The systems of the paper, by section.
use powersweep_engine::lp::System;

/// Idle powers of experiments 1 and 2.
const SIX_IDLE_W: [f64; 6] = [3.5, 3.0, 4.0, 4.0, 3.5, 3.0];

fn system(arrivals: &[f64], rates: &[f64], busy: &[f64], idle: &[f64]) -> System {
    System::new(arrivals.to_vec(), rates.to_vec(), busy.to_vec(), idle.to_vec()).expect("the paper's system")
}

/// The worked example of section 4.
pub(crate) fn worked() -> System {
    system(&[1.0, 1.5], &[9.0, 5.0, 2.0, 1.0], &[1.0, 20.0, 1.0, 20.0], &[0.1, 0.1])
}

/// Experiment 1 (section 5.1.1).
#[rustfmt::skip]
pub(crate) fn experiment_1() -> System {
    let rates = [4.5, 2.0, 9.5, 6.2, 10.25, 2.25,
                 6.2, 4.5, 6.0, 2.0, 4.2, 5.9,
                 9.5, 6.5, 4.0, 10.0, 5.9, 2.25];
    let busy = [66.0, 73.0, 84.0, 103.0, 93.0, 75.0,
                50.0, 65.0, 79.0, 71.0, 82.0, 63.0,
                105.0, 80.0, 96.0, 85.0, 95.0, 70.0];
    system(&[9.75, 8.5, 9.5], &rates, &busy, &SIX_IDLE_W)
}

/// Experiment 2 (section 5.1.2).
#[rustfmt::skip]
pub(crate) fn experiment_2() -> System {
    let rates = [2.2, 7.0, 10.25, 1.0, 5.7, 12.0,
                 1.95, 7.05, 9.78, 0.95, 5.65, 11.85,
                 2.0, 7.25, 10.02, 0.98, 5.75, 11.8];
    let busy = [128.4, 193.1, 155.6, 105.5, 125.4, 116.1,
                135.1, 230.15, 203.4, 94.2, 250.6, 85.5,
                84.15, 62.3, 81.1, 96.9, 71.3, 215.09];
    system(&[8.75, 8.5, 9.0], &rates, &busy, &SIX_IDLE_W)
}

/// Machines of each group of section 5.2.
pub(crate) const GROUPS: [usize; 6] = [2, 6, 7, 7, 4, 4];

/// Rates of section 5.2 by group (Table 3).
#[rustfmt::skip]
const GROUP_RATES: [[f64; 6]; 5] = [
    [16.7, 24.8, 24.2, 29.0, 25.6, 48.3],
    [30.4, 48.3, 77.7, 83.6, 135.9, 144.9],
    [18.9, 24.2, 48.3, 45.8, 72.5, 72.5],
    [3.0, 3.0, 7.6, 7.6, 8.3, 8.7],
    [1.0, 1.1, 3.0, 2.9, 3.0, 3.0],
];

/// Busy powers of the heterogeneous case of section 5.2 (Table 4).
#[rustfmt::skip]
const TABLE_4: [[f64; 30]; 5] = [
    [53.2, 70.1, 67.2, 45.3, 48.8, 78.5, 120.0, 163.1, 77.3, 85.0,
     93.3, 64.1, 82.6, 72.9, 59.1, 69.1, 59.3, 75.4, 88.0, 130.6,
     116.7, 69.3, 150.4, 144.5, 78.0, 96.0, 73.5, 180.7, 211.0, 130.0],
    [82.6, 200.7, 148.8, 68.8, 92.9, 97.9, 87.4, 67.0, 78.3, 94.4,
     90.6, 69.7, 84.4, 73.3, 120.2, 102.1, 160.7, 210.3, 93.7, 190.8,
     211.9, 94.2, 89.3, 67.5, 87.6, 73.7, 133.8, 128.0, 123.0, 221.6],
    [216.3, 79.2, 94.3, 86.5, 218.6, 87.8, 96.4, 136.9, 200.3, 136.1,
     164.2, 89.3, 95.5, 189.6, 129.6, 87.5, 74.8, 98.0, 94.9, 129.0,
     137.0, 129.2, 234.1, 176.2, 146.3, 197.4, 136.6, 79.4, 83.6, 76.1],
    [97.2, 87.4, 136.4, 154.5, 156.1, 176.2, 137.3, 183.9, 149.6, 230.6,
     94.8, 86.9, 94.1, 78.4, 76.6, 98.0, 75.3, 120.2, 134.4, 160.2,
     96.9, 130.6, 143.4, 176.1, 109.3, 79.1, 69.6, 78.9, 143.3, 165.5],
    [120.0, 123.0, 65.0, 78.0, 94.4, 132.1, 79.3, 88.8, 99.5, 100.2,
     90.4, 65.0, 73.0, 97.9, 179.0, 213.0, 169.8, 61.2, 123.0, 145.5,
     135.3, 123.6, 89.5, 68.8, 85.9, 90.2, 143.9, 156.7, 189.3, 67.5],
];

/// A row by group as a row by machine.
fn by_machine(row: [f64; 6]) -> Vec<f64> {
    row.iter().zip(GROUPS).flat_map(|(value, count)| std::iter::repeat_n(*value, count)).collect()
}

fn cluster(busy: &[f64]) -> System {
    let rates: Vec<f64> = GROUP_RATES.into_iter().flat_map(by_machine).collect();
    system(&[204.10, 68.87, 77.63, 5.01, 10.43], &rates, busy, &by_machine([2.0, 3.0, 3.0, 3.5, 3.0, 4.0]))
}

/// Section 5.2 with the busy powers of Table 4.
pub(crate) fn cluster_heterogeneous() -> System {
    cluster(&TABLE_4.concat())
}

/// Section 5.2 with busy powers of a group's factor times the rate.
pub(crate) fn cluster_homogeneous() -> System {
    let factors = [6.0, 4.0, 7.0, 5.5, 5.0, 6.0];
    let busy = |row: [f64; 6]| by_machine(std::array::from_fn(|g| row[g] * factors[g]));
    cluster(&GROUP_RATES.into_iter().flat_map(busy).collect::<Vec<_>>())
}

/// Arrival rates of section 6.
pub(crate) const STRUCTURED_ARRIVALS: [f64; 4] = [6.25, 6.0, 6.25, 6.0];

/// Idle powers of section 6. The paper prints six; the seventh is 3, as its Table 6 shows.
pub(crate) const STRUCTURED_IDLE_W: [f64; 7] = [1.0, 3.0, 3.0, 0.5, 3.0, 3.0, 3.0];

/// beta of section 6.
pub(crate) const BETAS: [f64; 7] = [3.1, 11.7, 8.2, 6.5, 13.6, 17.4, 1.3];

/// The structured system of section 6, its arrivals times a factor.
#[rustfmt::skip]
pub(crate) fn structured(factor: f64) -> System {
    let rates = [1.0, 3.0, 4.0, 0.2, 6.0, 5.0, 10.0,
                 2.0, 6.0, 8.0, 0.4, 12.0, 10.0, 20.0,
                 5.0, 15.0, 20.0, 1.0, 30.0, 25.0, 50.0,
                 3.0, 9.0, 12.0, 0.6, 18.0, 15.0, 30.0];
    let busy = [3.1, 35.1, 32.8, 1.3, 81.6, 87.0, 13.0,
                6.2, 70.2, 65.6, 2.6, 163.2, 174.0, 26.0,
                15.5, 175.5, 164.0, 6.5, 408.0, 435.0, 65.0,
                9.3, 105.3, 98.4, 3.9, 244.8, 261.0, 39.0];
    system(&STRUCTURED_ARRIVALS.map(|rate| rate * factor), &rates, &busy, &STRUCTURED_IDLE_W)
}

/// Rates of the almost structured system of section 6.
#[rustfmt::skip]
pub(crate) const ALMOST_RATES: [f64; 28] = [
    0.52, 1.79, 5.61, 0.29, 6.13, 2.92, 14.60,
    2.74, 3.04, 11.04, 0.24, 8.42, 9.73, 25.91,
    7.17, 15.11, 21.42, 0.60, 34.78, 34.82, 57.21,
    3.57, 11.37, 8.88, 0.79, 22.84, 15.64, 37.07,
];

/// Busy powers of the almost structured system of section 6.
#[rustfmt::skip]
pub(crate) const ALMOST_BUSY_W: [f64; 28] = [
    1.61, 20.99, 45.98, 1.87, 83.32, 50.87, 18.99,
    8.49, 35.52, 90.55, 1.55, 114.57, 169.24, 33.68,
    22.23, 176.83, 175.63, 3.89, 473.05, 605.92, 74.38,
    11.06, 133.05, 72.86, 5.17, 310.58, 272.06, 48.19,
];

/// The almost structured system of section 6.
pub(crate) fn almost_structured() -> System {
    system(&STRUCTURED_ARRIVALS, &ALMOST_RATES, &ALMOST_BUSY_W, &STRUCTURED_IDLE_W)
}
