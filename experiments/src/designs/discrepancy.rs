//! How evenly the points of a design fill its ranges.

use super::{Design, points};

/// Greatest number of points that are compared: each with each.
pub(crate) const POINTS_MAX: u64 = 2_048;

/// The square of the centred L2 discrepancy (Hickernell 1998) of the first points, as `scipy.stats.qmc.discrepancy` gives it.
/// The coordinates of a listed point are the places of its values in the ranges.
pub(crate) fn centred_l2(design: &Design) -> f64 {
    let is_listed = design.kind.name == points::NAME;
    let of = |point| from_middle(if is_listed { design.places(point) } else { design.coordinates(point) });
    let points: Vec<Vec<f64>> = (0..design.points.min(POINTS_MAX)).map(of).collect();
    let product = |factors: &mut dyn Iterator<Item = f64>| factors.product::<f64>();
    let alone = |x: &Vec<f64>| product(&mut x.iter().map(|x| 1.0 + 0.5 * x.abs() - 0.5 * x * x));
    let pair = |x: &Vec<f64>, y: &Vec<f64>| {
        let factor = |(x, y): (&f64, &f64)| 1.0 + 0.5 * x.abs() + 0.5 * y.abs() - 0.5 * (x - y).abs();
        product(&mut x.iter().zip(y).map(factor))
    };
    let n = points.len() as f64;
    let ones: f64 = points.iter().map(alone).sum();
    let pairs = points.iter().enumerate().map(|(at, x)| {
        let others: f64 = points[at + 1..].iter().map(|y| pair(x, y)).sum();
        2.0 * others + pair(x, x)
    });
    libm::pow(13.0 / 12.0, design.ranges.len() as f64) - 2.0 / n * ones + pairs.sum::<f64>() / (n * n)
}

fn from_middle(coordinates: Vec<f64>) -> Vec<f64> {
    coordinates.into_iter().map(|x| x - 0.5).collect()
}
