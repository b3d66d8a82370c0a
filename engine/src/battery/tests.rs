use super::*;
use crate::energy::Energy;
use crate::rng::{Philox, Purpose};
use crate::signal::{Beyond, Sample};

/// A signal with a value for each time step of this length (s).
fn signal(step_s: f64, values: &[f64]) -> Signal {
    let times_s = (0..values.len()).map(|at| at as f64 * step_s).collect();
    let end_s = step_s * values.len() as f64;
    Signal::new(times_s, values.to_vec(), vec![], end_s, Sample::Mean, Beyond::Error).expect("well formed")
}

/// Cells of one length with a constant power (W) each.
fn cells(step_s: f64, powers_w: &[f64]) -> Vec<Cell> {
    let cell = |(at, power_w): (usize, &f64)| Cell {
        from_s: at as f64 * step_s,
        to_s: (at + 1) as f64 * step_s,
        machine: Energy { energy_j: power_w * step_s, moment_js: 0.5 * power_w * step_s * step_s },
        ..Cell::default()
    };
    powers_w.iter().enumerate().map(cell).collect()
}

fn running(statistic: Statistic, window: usize) -> BatteryPolicy {
    BatteryPolicy::Running { statistic, window, first: None }
}

fn actions(policy: BatteryPolicy, values: &[f64]) -> String {
    let mut rule = Rule::new(policy);
    let letter = |action| match action {
        Action::Charge => 'c',
        Action::Discharge => 'd',
        Action::Idle => '-',
    };
    values.iter().map(|value| letter(rule.next(*value))).collect()
}

#[test]
fn policies_follow_their_thresholds() {
    let values = [5.0, 1.0, 3.0, 2.0, 9.0, 9.0, 2.0, 1.0, 4.0];
    let single = BatteryPolicy::Thresholds { lower: 3.0, upper: 3.0 };
    assert_eq!(actions(single, &values), "dcdcddccd");
    let double = BatteryPolicy::Thresholds { lower: 2.0, upper: 5.0 };
    assert_eq!(actions(double, &values), "dc--dd-c-");
    // Means of three values: 5, 3, 3, 2, 4.67, 6.67, 6.67, 4, 2.33.
    assert_eq!(actions(running(Statistic::Mean, 3), &values), "dcddddccd");
    assert_eq!(actions(running(Statistic::MeanPlus, 3), &values), "d-dddd--d");
    // Medians: 5, 3, 3, 2, 3, 9, 9, 2, 2.
    assert_eq!(actions(running(Statistic::Median, 3), &values), "dcddddccd");
    // Before four values the median, then the quartiles: 1.75 3.5, 1.75 4.5, 2.75 9, 2 9, 1.75 9, 1.75 5.25.
    assert_eq!(actions(running(Statistic::Quartiles, 4), &values), "dcd-ddcc-");
    let first = BatteryPolicy::Running { statistic: Statistic::Mean, window: 2, first: Some(7.0) };
    assert_eq!(actions(first, &[5.0, 6.0, 6.0]), "cdd");
}

#[test]
fn a_rising_signal_below_the_mean_charges() {
    assert_eq!(actions(running(Statistic::MeanPlus, 10), &[9.0, 1.0, 2.0, 1.5]), "d-c-");
}

#[test]
fn equal_values_discharge_whatever_their_number() {
    // The rounded sum of six times 10.7, over six, is above 10.7.
    for value in [10.7, 0.1, 0.21407, 431.7] {
        for statistic in [Statistic::Mean, Statistic::MeanPlus, Statistic::Median, Statistic::Quartiles] {
            for window in [1, 6, 24, 168] {
                let first = BatteryPolicy::Running { statistic, window, first: Some(value) };
                for policy in [running(statistic, window), first] {
                    assert_eq!(actions(policy, &[value; 400]), "d".repeat(400), "{value} {statistic:?} {window}");
                }
            }
        }
    }
}

/// The running mean, by whole numbers: the values are multiples of 2^-20.
#[test]
fn a_mean_is_compared_without_rounding() {
    let mut rng = Philox::stream(8, Purpose::Arrival);
    for case in 0..200 {
        let window = 1 + rng.below(40) as usize;
        // Great and small values in turn: a plain sum would forget the small ones.
        let wholes: Vec<i128> = (0..200)
            .map(|at| i128::from(rng.below(3)) << if at / 7 % 3 == 0 { 70 } else { 0 })
            .map(|whole| whole - 1)
            .collect();
        let values: Vec<f64> = wholes.iter().map(|whole| *whole as f64 / f64::from(1 << 20)).collect();
        let wholes: Vec<i128> = values.iter().map(|value| (value * f64::from(1 << 20)) as i128).collect();
        let expected: String = (0..values.len())
            .map(|at| {
                let seen = &wholes[(at + 1).saturating_sub(window)..=at];
                if wholes[at] * seen.len() as i128 >= seen.iter().sum() { 'd' } else { 'c' }
            })
            .collect();
        assert_eq!(actions(running(Statistic::Mean, window), &values), expected, "{case}");
    }
}

/// The actions of a running policy by the sentences of the page on exact rules.
fn by_sentences(statistic: Statistic, window: usize, first: Option<f64>, values: &[f64]) -> String {
    let all: Vec<f64> = first.into_iter().chain(values.iter().copied()).collect();
    let begin = all.len() - values.len();
    let action = |at: usize| {
        let value = all[at];
        let mut seen = all[(at + 1).saturating_sub(window)..=at].to_vec();
        seen.sort_by(f64::total_cmp);
        let n = seen.len();
        // The value at the position share * (n - 1), linear between neighbours.
        let quantile = |share: f64| {
            let place = share * (n - 1) as f64;
            let low = place.floor() as usize;
            seen[low] + (place - low as f64) * (seen[(low + 1).min(n - 1)] - seen[low])
        };
        let mean = seen.iter().sum::<f64>() / n as f64;
        let rises = at == 0 || value >= all[at - 1];
        let (discharges, charges) = match statistic {
            Statistic::Mean => (value >= mean, value < mean),
            Statistic::MeanPlus => (value >= mean, value < mean && rises),
            Statistic::Median => (value >= quantile(0.5), value < quantile(0.5)),
            Statistic::Quartiles if n < window => (value >= quantile(0.5), value <= quantile(0.5)),
            Statistic::Quartiles => (value >= quantile(0.75), value <= quantile(0.25)),
        };
        if discharges {
            'd'
        } else if charges {
            'c'
        } else {
            '-'
        }
    };
    (begin..all.len()).map(action).collect()
}

#[test]
fn running_policies_follow_their_sentences() {
    let mut rng = Philox::stream(9, Purpose::Arrival);
    let mut below = |count: u64| rng.below(count);
    for case in 0..200 {
        // Multiples of 1/8: means that differ from a value differ by more than rounding.
        let values: Vec<f64> = (0..60).map(|_| below(40) as f64 / 8.0).collect();
        let window = 1 + below(16) as usize;
        let first = (below(2) == 0).then(|| below(40) as f64 / 8.0);
        for statistic in [Statistic::Mean, Statistic::MeanPlus, Statistic::Median, Statistic::Quartiles] {
            let policy = BatteryPolicy::Running { statistic, window, first };
            assert_eq!(
                actions(policy, &values),
                by_sentences(statistic, window, first, &values),
                "{case} {statistic:?}"
            );
        }
    }
}

/// The values of a window, by the sentences of the page on exact rules: of each interval, the instant from which the battery
/// decides by it, and the value.
fn decisions(times: &[f64], values: &[f64], end_s: f64, beyond: Beyond, from_s: f64, to_s: f64) -> Vec<(f64, f64)> {
    let is_regular = end_s > times[times.len() - 1];
    let count = if is_regular { times.len() } else { times.len() - 1 };
    let mut begins: Vec<(f64, f64)> = match beyond {
        Beyond::Wrap => {
            let turns = (-400..400).map(|turn| f64::from(turn) * (end_s - times[0]));
            turns.flat_map(|turn_s| (0..count).map(move |at| (times[at] + turn_s, values[at]))).collect()
        }
        // Before the first time of a file, the held value is the value of the first interval.
        _ => [f64::NEG_INFINITY].iter().chain(&times[1..count]).copied().zip(values.iter().copied()).collect(),
    };
    if beyond == Beyond::Hold && !is_regular {
        begins.push((end_s, values[count]));
    }
    let first = begins.iter().rposition(|begin| begin.0 <= from_s).expect("it is covered");
    begins.drain(..first);
    begins.retain(|begin| begin.0 < to_s);
    begins[0].0 = from_s;
    begins
}

#[test]
fn held_and_repeated_values_follow_their_sentences() {
    let mut rng = Philox::stream(10, Purpose::Arrival);
    let mut below = |count: u64| rng.below(count);
    for case in 0..400 {
        let (is_regular, count) = (case % 2 == 0, 3 + below(5) as usize);
        let mut times = vec![below(50) as f64];
        while times.len() < count {
            times.push(times[times.len() - 1] + if is_regular { 20.0 } else { 1.0 + below(40) as f64 });
        }
        let last_s = times[count - 1];
        let end_s = if is_regular { last_s + 20.0 } else { last_s };
        let values: Vec<f64> = (0..count).map(|_| below(4) as f64).collect();
        let beyond = if below(2) == 0 { Beyond::Hold } else { Beyond::Wrap };
        let first = (below(2) == 0).then(|| below(4) as f64);
        let (statistic, window) = (Statistic::Mean, 1 + below(6) as usize);
        let policy = BatteryPolicy::Running { statistic, window, first };
        let battery = Battery { capacity_j: 1e9, charge_w: 3.0, initial_j: below(500) as f64, efficiency: 0.5, policy };
        let signal =
            Signal::new(times.clone(), values.clone(), vec![], end_s, Sample::Mean, beyond).expect("well formed");
        let from_s = below(300) as f64 - 100.0;
        let to_s = from_s + 1.0 + below(400) as f64;
        let cells: Vec<Cell> = cells(1.0, &vec![1.0; (to_s - from_s) as usize])
            .into_iter()
            .map(|cell| Cell { from_s: cell.from_s + from_s, to_s: cell.to_s + from_s, ..cell })
            .collect();
        let decided = decisions(&times, &values, end_s, beyond, from_s, to_s);
        let seen: Vec<f64> = decided.iter().map(|decision| decision.1).collect();
        let letters = by_sentences(statistic, window, first, &seen);
        let mut charge_j = battery.initial_j;
        for cell in &cells {
            let at = decided.iter().rposition(|decision| decision.0 <= cell.from_s).expect("it is covered");
            match &letters[at..=at] {
                "c" => charge_j += 3.0 * 0.5,
                _ => charge_j -= charge_j.min(1.0),
            }
        }
        let stored = battery.run(&signal, &cells, &[]).expect("covered");
        assert_eq!(stored.end_j, charge_j, "{case}: {letters} {decided:?}");
    }
}

#[test]
fn energy_moves_from_low_to_high_values() {
    let battery = Battery {
        capacity_j: 1000.0,
        charge_w: 50.0,
        initial_j: 0.0,
        efficiency: 0.8,
        policy: BatteryPolicy::Thresholds { lower: 10.0, upper: 10.0 },
    };
    // 20 s of charging at 40 W, then 20 s of 10 W, the rest of the charge, and nothing.
    let (signal, cells) = (signal(20.0, &[2.0, 20.0, 30.0, 5.0]), cells(20.0, &[10.0, 10.0, 70.0, 10.0]));
    let stored = battery.run(&signal, &cells, &[]).expect("covered");
    assert_eq!((stored.charged_j, stored.discharged_j, stored.end_j), (2000.0, 800.0, 800.0));
    let change = 2.0 * 1000.0 - 20.0 * 200.0 - 30.0 * 600.0 + 5.0 * 1000.0;
    assert!((stored.change - change / 3.6e6).abs() < 1e-18);
    // The battery supplies the facility, not the machine.
    let stored = battery.run(&signal, &cells, &[1.0, 2.0, 1.0, 1.0]).expect("covered");
    assert!((stored.change - (change + 10.0 * 200.0) / 3.6e6).abs() < 1e-18, "{stored:?}");
    // It ends full: what does not fit is not drawn.
    let small = Battery { capacity_j: 300.0, ..battery };
    let stored = small.run(&signal, &cells, &[]).expect("covered");
    assert_eq!((stored.charged_j, stored.discharged_j, stored.end_j), (750.0, 300.0, 300.0));
    let none = Battery { capacity_j: 0.0, ..battery };
    assert_eq!(none.run(&signal, &cells, &[]), Ok(Stored::default()));
    let late = vec![Cell { from_s: 70.0, to_s: 90.0, ..cells[0] }];
    assert_eq!(battery.run(&signal, &late, &[]), Err(SignalError::NotCovered(80.0)));
}

/// The state of charge, second by second.
fn by_seconds(battery: &Battery, step_s: usize, values: &[f64], powers_w: &[f64]) -> (f64, f64) {
    let mut rule = Rule::new(battery.policy);
    let (mut charge_j, mut cost) = (battery.initial_j.min(battery.capacity_j), 0.0);
    for (value, powers_w) in values.iter().zip(powers_w.chunks(step_s)) {
        let action = rule.next(*value);
        for power_w in powers_w {
            match action {
                Action::Discharge => {
                    let supplied_j = charge_j.min(*power_w);
                    charge_j -= supplied_j;
                    cost += value * (power_w - supplied_j);
                }
                Action::Charge => {
                    let kept_j = (battery.charge_w * battery.efficiency).min(battery.capacity_j - charge_j);
                    charge_j += kept_j;
                    cost += value * (power_w + kept_j / battery.efficiency);
                }
                Action::Idle => cost += value * power_w,
            }
        }
    }
    (charge_j, cost / 3.6e6)
}

#[test]
fn a_second_by_second_sum_gives_the_same() {
    let mut rng = Philox::stream(7, Purpose::Arrival);
    let mut below = |count: u64| rng.below(count);
    for case in 0..500 {
        let (step_s, steps) = (1 + below(40) as usize, 1 + below(30) as usize);
        let values: Vec<f64> = (0..steps).map(|_| below(20) as f64).collect();
        let powers_w: Vec<f64> = (0..steps * step_s).map(|_| below(1000) as f64).collect();
        let window = 1 + below(8) as usize;
        let policy = match below(6) {
            0 => BatteryPolicy::Thresholds { lower: 9.0, upper: 9.0 },
            1 => BatteryPolicy::Thresholds { lower: 5.0, upper: 12.0 },
            2 => running(Statistic::Mean, window),
            3 => running(Statistic::MeanPlus, window),
            4 => running(Statistic::Median, window),
            _ => running(Statistic::Quartiles, window),
        };
        let battery = Battery {
            capacity_j: below(50_000) as f64,
            charge_w: below(500) as f64,
            initial_j: below(50_000) as f64,
            efficiency: 0.5 + below(6) as f64 / 10.0,
            policy,
        };
        let signal = signal(step_s as f64, &values);
        let (end_j, expected) = by_seconds(&battery, step_s, &values, &powers_w);
        // Cells of a second, and cells as long as the signal keeps a value.
        let fine = cells(1.0, &powers_w);
        let coarse: Vec<Cell> = fine
            .chunks(step_s)
            .map(|chunk| {
                let energy_j = chunk.iter().map(|cell| cell.machine.energy_j).sum();
                let machine = Energy { energy_j, moment_js: 0.0 };
                Cell { from_s: chunk[0].from_s, to_s: chunk[step_s - 1].to_s, machine, ..Cell::default() }
            })
            .collect();
        for cells in [fine, coarse] {
            let stored = battery.run(&signal, &cells, &[]).expect("covered");
            let sum = signal.weigh(&cells, &[]).expect("covered").machine + stored.change;
            assert!((sum - expected).abs() <= 1e-9 * expected.abs().max(1e-3), "{case}: {sum} {expected}");
            assert!((stored.end_j - end_j).abs() <= 1e-9 * battery.capacity_j, "{case}: {stored:?} {end_j}");
            let kept_j = battery.initial_j.min(battery.capacity_j) + stored.charged_j * battery.efficiency;
            let balance_j = kept_j - stored.discharged_j - stored.end_j;
            assert!(balance_j.abs() <= 1e-9 * (kept_j + 1.0), "{case}: {stored:?}");
        }
    }
}
