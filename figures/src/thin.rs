//! Fewer points where a drawing cannot show all of them.

/// Points of a path within one column of dots: the first, the least, the greatest and the last one, in their order. A step
/// function looks the same without the others. `at` gives the place of an abscissa in columns of dots.
pub(crate) fn steps(points: &[(f64, f64)], at: impl Fn(f64) -> f64) -> Vec<usize> {
    let mut kept = Vec::new();
    let mut begin = 0;
    while begin < points.len() {
        let dots = at(points[begin].0).floor();
        let end = points[begin..].iter().position(|point| at(point.0).floor() != dots);
        let end = end.map_or(points.len(), |count| begin + count);
        let by_value = |one: &usize, other: &usize| points[*one].1.total_cmp(&points[*other].1);
        let least = (begin..end).min_by(by_value).unwrap_or(begin);
        let greatest = (begin..end).max_by(by_value).unwrap_or(begin);
        let mut chosen = [begin, least, greatest, end - 1];
        chosen.sort_unstable();
        for place in chosen {
            if kept.last() != Some(&place) {
                kept.push(place);
            }
        }
        begin = end;
    }
    kept
}

/// The distribution function of sorted values: steps (value, share of values that are at most this value), of which only
/// those are kept that move the line by half a dot. `at` gives the place of a value in dots, `height` is the number of dots
/// of the share 1.
pub(crate) fn distribution(sorted: &[f64], at: impl Fn(f64) -> f64, height: f64) -> Vec<(f64, f64)> {
    let count = sorted.len() as f64;
    let mut kept: Vec<(f64, f64)> = Vec::new();
    for (place, value) in sorted.iter().enumerate() {
        if sorted.get(place + 1) == Some(value) {
            continue;
        }
        let point = (*value, (place + 1) as f64 / count);
        let moves =
            kept.last().is_none_or(|last| at(point.0) - at(last.0) >= 0.5 || (point.1 - last.1) * height >= 0.5);
        if moves || place + 1 == sorted.len() {
            kept.push(point);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_of_dots_keeps_its_first_last_least_and_greatest_point() {
        let points = [(0.0, 5.0), (0.1, 9.0), (0.2, 1.0), (0.3, 4.0), (0.4, 6.0), (1.5, 2.0)];
        assert_eq!(steps(&points, |x| x), [0, 1, 2, 4, 5]);
        assert_eq!(steps(&[], |x| x), [0; 0]);
    }

    #[test]
    fn a_thinned_distribution_is_never_off_by_more_than_half_a_dot() {
        let sorted: Vec<f64> = (0..10_000).map(|i| f64::from(i) / 100.0).collect();
        let kept = distribution(&sorted, |x| x * 3.0, 200.0);
        assert!(kept.len() < 700, "{} points", kept.len());
        assert_eq!(kept.last(), Some(&(99.99, 1.0)));
        for (value, share) in &kept {
            assert!((share - (value + 0.01) / 100.0).abs() < 1e-9);
        }
        let widest = kept.windows(2).map(|pair| (pair[1].1 - pair[0].1) * 200.0).fold(0.0, f64::max);
        assert!(widest <= 1.0, "{widest}");
    }

    #[test]
    fn equal_values_are_one_step() {
        assert_eq!(distribution(&[1.0, 1.0, 1.0, 4.0], |x| x, 100.0), [(1.0, 0.75), (4.0, 1.0)]);
    }
}
