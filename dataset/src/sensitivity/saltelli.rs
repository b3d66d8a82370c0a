//! Indices of Sobol', by the estimators that SALib has.

use super::Estimates;
use super::span::{Span, mean, variance};

/// The matrices of a design: blocks of the rows A, AB of each range, BA of each range (second order), and B.
#[derive(Debug)]
pub struct Saltelli {
    /// Number of base points.
    pub count: usize,
    /// Number of ranges.
    pub ranges: usize,
    /// Whether there are rows of BA.
    pub is_second_order: bool,
}

impl Saltelli {
    /// Points of one base point.
    pub fn block(&self) -> usize {
        (if self.is_second_order { 2 * self.ranges } else { self.ranges }) + 2
    }

    /// The pairs of ranges, in the order of their indices of second order.
    pub fn pairs(&self) -> impl Iterator<Item = (usize, usize)> {
        let ranges = if self.is_second_order { self.ranges } else { 0 };
        (0..ranges).flat_map(move |one| (one + 1..ranges).map(move |other| (one, other)))
    }
}

/// The parts of the estimators that each base point has.
#[derive(Debug)]
pub struct Terms {
    /// Values at the rows of A and B.
    a_and_b: Vec<[Span; 2]>,
    /// For each range the products of S1 and the squares of ST, then for each pair the differences of S2.
    numerators: Vec<Vec<Span>>,
}

impl Estimates for Saltelli {
    type Terms = Terms;

    fn blocks(&self) -> usize {
        self.count
    }

    /// The mean of all known values is taken from each value first.
    fn terms(&self, points: &[Span]) -> Terms {
        let known: Vec<Span> = points.iter().copied().filter(|point| point.is_known()).collect();
        let centre = if known.is_empty() { Span::of(0.0) } else { mean(known.into_iter()) };
        let ranges = self.ranges;
        let numerators = 2 * ranges + self.pairs().count();
        let mut terms = Terms {
            a_and_b: Vec::with_capacity(self.count),
            numerators: vec![Vec::with_capacity(self.count); numerators],
        };
        for points in points.chunks(self.block()) {
            let at = |row: usize| points[row] - centre;
            let (a, b) = (at(0), at(points.len() - 1));
            terms.a_and_b.push([a, b]);
            for range in 0..ranges {
                let ab = at(1 + range);
                terms.numerators[2 * range].push(b * (ab - a));
                terms.numerators[2 * range + 1].push((a - ab).square().times(0.5));
            }
            for (number, (one, other)) in self.pairs().enumerate() {
                terms.numerators[2 * ranges + number].push(at(1 + ranges + one) * at(1 + other) - a * b);
            }
        }
        terms
    }

    /// For each range S1 and ST, then S2 of each pair. S1 = mean(B (AB - A)) / V (Saltelli et al. 2010, table 2b),
    /// ST = mean((A - AB)^2) / 2 V (Jansen 1999), S2 = mean(BA_j AB_k - A B) / V - S1_j - S1_k (Saltelli 2002), where V is the
    /// variance of the rows of A and B together.
    fn estimate(&self, terms: &Terms, blocks: &[usize]) -> Vec<Span> {
        let drawn: Vec<Span> = blocks.iter().flat_map(|block| terms.a_and_b[*block]).collect();
        let variance = variance(&drawn);
        let share = |terms: &Vec<Span>| mean(blocks.iter().map(|block| terms[*block])).over(variance);
        let mut found: Vec<Span> = terms.numerators.iter().map(share).collect();
        for (number, (one, other)) in self.pairs().enumerate() {
            let at = 2 * self.ranges + number;
            found[at] = found[at] - found[2 * one] - found[2 * other];
        }
        found
    }

    fn possible(&self, _: usize) -> (f64, f64) {
        (0.0, 1.0)
    }
}
