use std::sync::Arc;

use super::*;
use crate::energy::{EnergySplit, Idle};
use crate::rng::{Philox, Purpose};

fn signal(times: &[f64], values: &[f64], end_s: f64, sample: Sample, beyond: Beyond) -> Signal {
    Signal::new(times.to_vec(), values.to_vec(), vec![], end_s, sample, beyond).expect("well formed")
}

/// The integral of a signal; `None` if the signal does not cover the interval.
fn integral(signal: &Signal, from_s: f64, to_s: f64) -> Option<f64> {
    let (mut at_s, mut sum) = (from_s, 0.0);
    while at_s < to_s {
        let piece = signal.piece(at_s)?;
        let until_s = piece.to_s.max(at_s.next_up()).min(to_s);
        sum += piece.value_at(0.5 * (at_s + until_s)) * (until_s - at_s);
        at_s = until_s;
    }
    Some(sum)
}

#[test]
fn a_value_holds_from_its_time_to_the_next() {
    let signal = signal(&[0.0, 10.0, 40.0], &[1.0, 5.0, 2.0], 50.0, Sample::Mean, Beyond::Error);
    assert_eq!([0.0, 9.9, 10.0, 39.0, 49.9].map(|t| signal.at(t)), [1.0, 1.0, 5.0, 5.0, 2.0].map(Some));
    assert_eq!([-0.1, 50.0].map(|t| signal.at(t)), [None, None]);
    assert_eq!(integral(&signal, 5.0, 45.0), Some(5.0 + 150.0 + 10.0));
    assert_eq!(integral(&signal, 5.0, 51.0), None);
    let edges = [-5.0, 0.0, 10.0, 39.0, 45.0, 50.0].map(|t| signal.next_after(t));
    assert_eq!(edges, [0.0, 10.0, 40.0, 40.0, 50.0, f64::INFINITY]);
}

#[test]
fn points_are_joined_by_lines() {
    let signal = signal(&[0.0, 10.0], &[1.0, 3.0], 20.0, Sample::Point, Beyond::Wrap);
    assert_eq!([0.0, 5.0, 10.0, 15.0, 25.0, -5.0].map(|t| signal.at(t)), [1.0, 2.0, 3.0, 2.0, 2.0, 2.0].map(Some));
    // Two triangles above 1.
    assert_eq!(integral(&signal, -20.0, 20.0), Some(40.0 + 2.0 * 20.0));
}

/// The last time of a file without a regular step has no interval behind it: lines lead to its value.
#[test]
fn the_last_point_of_uneven_times_ends_a_line_whatever_is_beyond() {
    for beyond in [Beyond::Error, Beyond::Hold, Beyond::Wrap] {
        let signal = signal(&[0.0, 1000.0, 4000.0], &[10.0, 20.0, 40.0], 4000.0, Sample::Point, beyond);
        assert_eq!(integral(&signal, 1000.0, 4000.0), Some(30.0 * 3000.0), "{beyond:?}");
        assert_eq!([500.0, 2500.0].map(|t| signal.at(t)), [15.0, 30.0].map(Some), "{beyond:?}");
        let after = match beyond {
            Beyond::Error => [None, None],
            Beyond::Hold => [40.0, 40.0].map(Some),
            Beyond::Wrap => [10.0, 15.0].map(Some),
        };
        assert_eq!([4000.0, 4500.0].map(|t| signal.at(t)), after, "{beyond:?}");
    }
}

/// The value of the last of uneven times holds behind it, if the values at both ends hold; else nothing knows for how long.
#[test]
fn the_last_mean_of_uneven_times_is_behind_the_last_interval() {
    for (beyond, at_end) in [(Beyond::Error, None), (Beyond::Hold, Some(40.0)), (Beyond::Wrap, Some(10.0))] {
        let signal = signal(&[0.0, 1000.0, 4000.0], &[10.0, 20.0, 40.0], 4000.0, Sample::Mean, beyond);
        assert_eq!([3999.0, 4000.0].map(|t| signal.at(t)), [Some(20.0), at_end], "{beyond:?}");
    }
    let single = signal(&[7.0], &[2.0], 7.0, Sample::Point, Beyond::Hold);
    assert_eq!([-1.0, 7.0, 8.0].map(|t| single.at(t)), [Some(2.0); 3]);
}

/// The value at an instant by the sentences of the page on exact rules. A regular file has an end behind its last time.
fn by_sentences(
    (times, values): (&[f64], &[f64]),
    end_s: f64,
    (sample, beyond): (Sample, Beyond),
    at_s: f64,
) -> Option<f64> {
    let (first_s, count) = (times[0], times.len());
    let within_s = match beyond {
        _ if (first_s..end_s).contains(&at_s) => at_s,
        Beyond::Error => return None,
        Beyond::Hold => return Some(if at_s < first_s { values[0] } else { values[count - 1] }),
        Beyond::Wrap => first_s + (at_s - first_s).rem_euclid(end_s - first_s),
    };
    let at = times.iter().rposition(|time| *time <= within_s)?;
    let next = match beyond {
        _ if at + 1 < count => Some((times[at + 1], values[at + 1])),
        Beyond::Wrap => Some((end_s, values[0])),
        Beyond::Error | Beyond::Hold => None,
    };
    match (sample, next) {
        (Sample::Point, Some((to_s, to))) => {
            Some(values[at] + (to - values[at]) * (within_s - times[at]) / (to_s - times[at]))
        }
        _ => Some(values[at]),
    }
}

#[test]
fn values_and_integrals_follow_their_sentences() {
    let mut rng = Philox::stream(11, Purpose::Arrival);
    let mut below = |count: u64| rng.below(count) as f64;
    for case in 0..200 {
        let is_regular = case % 2 == 0;
        let count = 2 + below(6) as usize;
        let mut times = vec![below(20)];
        while times.len() < count {
            times.push(times[times.len() - 1] + if is_regular { 8.0 } else { 1.0 + below(16) });
        }
        let last_s = times[count - 1];
        let end_s = if is_regular { last_s + 8.0 } else { last_s };
        let values: Vec<f64> = (0..count).map(|_| below(40)).collect();
        for sample in [Sample::Mean, Sample::Point] {
            for beyond in [Beyond::Error, Beyond::Hold, Beyond::Wrap] {
                let signal = signal(&times, &values, end_s, sample, beyond);
                let expected = |at_s: f64| by_sentences((&times, &values), end_s, (sample, beyond), at_s);
                for second in -300..300 {
                    let middle_s = f64::from(second) + 0.5;
                    let [found, integral] = [signal.at(middle_s), integral(&signal, middle_s - 0.5, middle_s + 0.5)];
                    let context = format!("{case} {sample:?} {beyond:?} at {middle_s}: {found:?} {integral:?}");
                    let Some(value) = expected(middle_s) else {
                        assert_eq!((found, integral), (None, None), "{context}");
                        continue;
                    };
                    let is_near = |found: Option<f64>| found.is_some_and(|found| (found - value).abs() < 1e-9);
                    assert!(is_near(found) && is_near(integral), "{context}, expected {value}");
                }
            }
        }
    }
}

#[test]
fn beyond_its_ends_a_signal_holds_or_is_repeated() {
    let held = signal(&[0.0, 10.0], &[1.0, 3.0], 20.0, Sample::Mean, Beyond::Hold);
    assert_eq!([-100.0, 100.0].map(|t| held.at(t)), [Some(1.0), Some(3.0)]);
    assert_eq!([-100.0, 20.0].map(|t| held.next_after(t)), [0.0, f64::INFINITY]);
    let wrapped = signal(&[5.0, 10.0], &[1.0, 3.0], 25.0, Sample::Mean, Beyond::Wrap);
    assert_eq!([-15.0, -10.1, -10.0, 4.9, 25.0, 45.0].map(|t| wrapped.at(t)), [1.0, 1.0, 3.0, 3.0, 1.0, 1.0].map(Some));
    assert_eq!([-15.0, 4.0, 25.0, 31.0].map(|t| wrapped.next_after(t)), [-10.0, 5.0, 30.0, 45.0]);
    assert_eq!(integral(&wrapped, -15.0, 45.0), Some(3.0 * (5.0 + 45.0)));
    let constant = signal(&[7.0], &[2.0], 7.0, Sample::Mean, Beyond::Hold);
    assert_eq!(integral(&constant, -10.0, 10.0), Some(40.0));
}

#[test]
fn malformed_signals_are_refused() {
    let new = |times: &[f64], values: &[f64], end_s, beyond| {
        Signal::new(times.to_vec(), values.to_vec(), vec![], end_s, Sample::Mean, beyond)
    };
    for refused in [
        new(&[], &[], 1.0, Beyond::Hold),
        new(&[0.0, 0.0], &[1.0, 1.0], 1.0, Beyond::Hold),
        new(&[0.0], &[f64::NAN], 1.0, Beyond::Hold),
        new(&[0.0], &[1.0, 2.0], 1.0, Beyond::Hold),
        new(&[0.0], &[1.0], 0.0, Beyond::Wrap),
        new(&[0.0], &[1.0], 0.0, Beyond::Error),
        new(&[], &[], 0.0, Beyond::Hold),
        new(&[0.0], &[1.0], f64::INFINITY, Beyond::Wrap),
    ] {
        assert_eq!(refused, Err(SignalError::Malformed));
    }
}

#[test]
fn an_instant_that_is_not_covered_is_named() {
    let signal = signal(&[0.0], &[1.0], 100.0, Sample::Mean, Beyond::Error);
    let split = EnergySplit::new(Arc::new(signal.clone()));
    let mut splitter = split.splitter(50.0, Idle { power_w: 0.0, last_submit_s: 50.0 }, usize::MAX);
    splitter.add(50.0, 150.0, 2.0);
    let mut split = split;
    split.finish(splitter, &[], &[]).expect("few cells");
    assert_eq!(split.cells.len(), 2);
    assert_eq!(signal.weigh(&split.cells, &[]), Err(SignalError::NotCovered(100.0)));
    assert!(signal.weigh(&split.cells[..1], &[]).is_ok());
}
