//! The hypervolume of a front: how much of the space up to a reference point its points beat (Zitzler & Thiele 1999).

/// Greatest number of steps of the recursion; more than three goals take very many.
const STEPS_MAX: f64 = 1e9;

/// The volume of the costs that one of the points is at most equal to in every cost, up to the reference point. Exact, by slices of
/// the last cost (While et al. 2006). A point that is not better than the reference in every cost adds nothing. `None` if
/// there are too many points for their number of costs.
pub fn hypervolume<P: AsRef<[f64]>>(points: &[P], reference: &[f64]) -> Option<f64> {
    let is_inside = |point: &&[f64]| point.iter().zip(reference).all(|(cost, limit)| cost < limit);
    let inside: Vec<&[f64]> = points.iter().map(AsRef::as_ref).filter(is_inside).collect();
    let slices = reference.len().saturating_sub(2);
    let steps = (inside.len() as f64).powi(i32::try_from(slices).unwrap_or(i32::MAX) + 1);
    (slices == 0 || steps <= STEPS_MAX).then(|| volume(inside, reference))
}

/// The volume of points that are better than the reference in every cost.
fn volume(mut points: Vec<&[f64]>, reference: &[f64]) -> f64 {
    let Some(last) = reference.len().checked_sub(1) else { return 0.0 };
    if points.is_empty() {
        return 0.0;
    }
    points.sort_by(|one, other| one[last].total_cmp(&other[last]));
    let ends = points[1..].iter().map(|point| point[last]).chain([reference[last]]);
    let mut sum = 0.0;
    if last == 0 {
        return reference[0] - points[0][0];
    }
    if last == 1 {
        let mut least = f64::INFINITY;
        for (point, end) in points.iter().zip(ends) {
            least = least.min(point[0]);
            sum += (reference[0] - least) * (end - point[1]);
        }
        return sum;
    }
    for (count, end) in (1..).zip(ends) {
        let depth = end - points[count - 1][last];
        if depth > 0.0 {
            sum += depth * volume(points[..count].to_vec(), &reference[..last]);
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Points of costs from a linear congruence, so that another program can make them, too.
    fn points(count: usize, costs: usize) -> Vec<Vec<f64>> {
        let mut state = 1_u64;
        let mut next = || {
            state = (state * 1_103_515_245 + 12_345) % (1 << 31);
            state as f64 / f64::from(1_u32 << 31)
        };
        (0..count).map(|_| (0..costs).map(|_| next()).collect()).collect()
    }

    #[test]
    fn volumes_are_those_of_pymoo() {
        // pymoo 0.6.2: HV(ref_point=np.ones(costs))(points)
        for (count, costs, expected) in PYMOO {
            let found = hypervolume(&points(count, costs), &vec![1.0; costs]).expect("few points");
            assert!((found / expected - 1.0).abs() < 1e-12, "{count} points, {costs} costs: {found} {expected}");
        }
    }

    #[test]
    fn volumes_that_are_checked_by_hand() {
        let of = |points: &[&[f64]], reference: &[f64]| hypervolume(points, reference);
        assert_eq!(of(&[&[1.0, 3.0], &[2.0, 1.0], &[2.5, 2.5]], &[4.0, 4.0]), Some(3.0 + 2.0 * 3.0 - 2.0));
        assert_eq!(of(&[&[1.0]], &[4.0]), Some(3.0));
        assert_eq!(of(&[&[4.0, 0.0], &[0.0, 4.0]], &[4.0, 4.0]), Some(0.0), "on the border");
        assert_eq!(of(&[], &[4.0, 4.0]), Some(0.0));
        assert_eq!(hypervolume(&points(2_000, 5), &[1.0; 5]), None);
    }

    const PYMOO: [(usize, usize, f64); 5] = [
        (10, 2, 0.697_686_953_130_382),
        (200, 2, 0.957_419_336_208_500_1),
        (50, 3, 0.709_143_381_351_988_4),
        (40, 4, 0.489_484_787_732_336_95),
        (15, 5, 0.165_875_040_630_039_38),
    ];
}
