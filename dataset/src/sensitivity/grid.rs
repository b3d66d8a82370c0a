//! Shares of variance over the cells of a grid.

use std::collections::BTreeMap;

use super::span::{Span, mean, variance};
use super::{Index, Values, jackknifed};

/// Greatest number of effects of levels that are fitted.
const EFFECTS_MAX: usize = 500;
/// A pivot that is smaller than this share of the greatest one is 0.
const PIVOT_MIN: f64 = 1e-9;

/// The cells of a grid.
#[derive(Debug)]
pub struct Grid {
    /// Number of levels of each axis, at least 2.
    pub levels: Vec<usize>,
    /// For each cell the level of each axis. No two are equal.
    pub cells: Vec<Vec<usize>>,
}

/// The shares of variance of a grid.
#[derive(Debug)]
pub struct Shares {
    /// S1 and ST of each axis.
    pub of_axes: Vec<[Index; 2]>,
    /// S2 of pairs of axes; a partial grid has none.
    pub of_pairs: Vec<((usize, usize), Index)>,
}

/// The reason why a grid has no shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// The levels of some axes change together, or the grid is not connected: the effect of this axis is not its own.
    Confounded(usize),
    /// There are more effects of levels than are fitted.
    TooMany(usize),
}

impl Grid {
    /// Whether all combinations of levels are cells.
    pub fn is_full(&self) -> bool {
        self.levels.iter().try_fold(1usize, |all, levels| all.checked_mul(*levels)) == Some(self.cells.len())
    }

    /// The shares of the variance of the cells' means over the seeds, each cell with equal weight.
    ///
    /// S1 of an axis of a full grid is the variance of the means of its levels, S2 of a pair that of the means of its pairs of
    /// levels without both S1, and ST the mean of the variance along the axis at equal levels of all others. In a partial grid
    /// the means of levels are those of an additive model, fitted by least squares, and ST is over the lines along the axis
    /// that have several cells. With several seeds the shares are those of the jackknife.
    ///
    /// # Errors
    /// The effects of a partial grid cannot be told apart.
    pub fn shares(&self, values: &Values) -> Result<Shares, Refused> {
        let axes = self.levels.len();
        let pairs: Vec<(usize, usize)> =
            (0..axes).flat_map(|one| (one + 1..axes).map(move |other| (one, other))).collect();
        let lines: Vec<Vec<Vec<usize>>> = (0..axes).map(|axis| self.lines(axis)).collect();
        let found = match self.is_full() {
            true => {
                let of_axes: Vec<Vec<Vec<usize>>> = (0..axes).map(|axis| self.grouped(&[axis])).collect();
                let of_pairs: Vec<Vec<Vec<usize>>> =
                    pairs.iter().map(|(one, other)| self.grouped(&[*one, *other])).collect();
                jackknifed(values, (0.0, 1.0), |cells| {
                    let total = variance(cells);
                    let between = |groups: &Vec<Vec<usize>>| {
                        let means: Vec<Span> =
                            groups.iter().map(|group| mean(group.iter().map(|cell| cells[*cell]))).collect();
                        variance(&means).over(total)
                    };
                    let first: Vec<Span> = of_axes.iter().map(between).collect();
                    let totals =
                        lines.iter().zip(&self.levels).map(|(lines, levels)| within(lines, *levels, cells, total));
                    let second = pairs
                        .iter()
                        .zip(&of_pairs)
                        .map(|((one, other), groups)| between(groups) - first[*one] - first[*other]);
                    first.iter().copied().zip(totals).flat_map(|(first, total)| [first, total]).chain(second).collect()
                })
            }
            false => {
                let fit = Fit::of(self)?;
                // Of some cells, the variance of the effects may be greater than that of the cells.
                jackknifed(values, (0.0, f64::INFINITY), |cells| {
                    let total = variance(cells);
                    let first = fit.variances(self, cells).into_iter().map(|variance| variance.over(total));
                    let totals =
                        lines.iter().zip(&self.levels).map(|(lines, levels)| within(lines, *levels, cells, total));
                    first.zip(totals).flat_map(|(first, total)| [first, total]).collect()
                })
            }
        };
        let of_axes = found[..2 * axes].chunks(2).map(|pair| [pair[0], pair[1]]).collect();
        Ok(Shares { of_axes, of_pairs: pairs.into_iter().zip(found[2 * axes..].iter().copied()).collect() })
    }

    /// The cells with equal levels of these axes.
    fn grouped(&self, axes: &[usize]) -> Vec<Vec<usize>> {
        let mut groups: BTreeMap<Vec<usize>, Vec<usize>> = BTreeMap::new();
        for (at, cell) in self.cells.iter().enumerate() {
            groups.entry(axes.iter().map(|axis| cell[*axis]).collect()).or_default().push(at);
        }
        groups.into_values().collect()
    }

    /// The lines along an axis with several cells.
    fn lines(&self, axis: usize) -> Vec<Vec<usize>> {
        let others: Vec<usize> = (0..self.levels.len()).filter(|other| *other != axis).collect();
        self.grouped(&others).into_iter().filter(|line| line.len() > 1).collect()
    }
}

/// The mean variance along an axis. A line that lacks levels has the variance that all levels have on average.
fn within(lines: &[Vec<usize>], levels: usize, cells: &[Span], total: Span) -> Span {
    if lines.is_empty() {
        return Span { low: f64::NAN, high: f64::NAN };
    }
    let levels = levels as f64;
    let along = |line: &Vec<usize>| {
        let count = line.len() as f64;
        let own: Vec<Span> = line.iter().map(|cell| cells[*cell]).collect();
        variance(&own).times(count * (levels - 1.0) / ((count - 1.0) * levels))
    };
    mean(lines.iter().map(along)).over(total)
}

/// The least squares of an additive model: a mean, and an effect of each level of each axis but its first one.
struct Fit {
    /// Where the effects of each axis begin.
    begins: Vec<usize>,
    effects: usize,
    /// The inverse of the matrix of the normal equations.
    inverse: Vec<Vec<f64>>,
}

impl Fit {
    fn of(grid: &Grid) -> Result<Fit, Refused> {
        let mut begins = Vec::with_capacity(grid.levels.len());
        let mut effects = 1;
        for levels in &grid.levels {
            begins.push(effects);
            effects += levels - 1;
        }
        if effects > EFFECTS_MAX {
            return Err(Refused::TooMany(effects));
        }
        let mut fit = Fit { begins, effects, inverse: Vec::new() };
        let mut matrix: Vec<Vec<f64>> = vec![vec![0.0; 2 * effects]; effects];
        for cell in &grid.cells {
            let own = fit.own(cell);
            for one in &own {
                own.iter().for_each(|other| matrix[*one][*other] += 1.0);
            }
        }
        (0..effects).for_each(|at| matrix[at][effects + at] = 1.0);
        for at in 0..effects {
            let pivot = (at..effects).max_by(|one, other| matrix[*one][at].abs().total_cmp(&matrix[*other][at].abs()));
            let pivot = pivot.filter(|pivot| matrix[*pivot][at].abs() > PIVOT_MIN * grid.cells.len() as f64);
            let Some(pivot) = pivot else {
                let axis = fit.begins.iter().rposition(|begin| *begin <= at).unwrap_or(0);
                return Err(Refused::Confounded(axis));
            };
            matrix.swap(at, pivot);
            let divisor = matrix[at][at];
            matrix[at].iter_mut().for_each(|value| *value /= divisor);
            let row = matrix[at].clone();
            for (_, other) in matrix.iter_mut().enumerate().filter(|(other, _)| *other != at) {
                let factor = other[at];
                if factor != 0.0 {
                    other.iter_mut().zip(&row).for_each(|(value, of)| *value -= factor * of);
                }
            }
        }
        fit.inverse = matrix.into_iter().map(|row| row[effects..].to_vec()).collect();
        Ok(fit)
    }

    /// The effects that a cell has.
    fn own(&self, cell: &[usize]) -> Vec<usize> {
        let of_axes = cell.iter().zip(&self.begins).filter(|(level, _)| **level > 0);
        std::iter::once(0).chain(of_axes.map(|(level, begin)| begin + level - 1)).collect()
    }

    /// For each axis the variance of the fitted effects of its levels. Unknown values bound nothing here.
    fn variances(&self, grid: &Grid, cells: &[Span]) -> Vec<Span> {
        let mut sums = vec![0.0; self.effects];
        for (cell, value) in grid.cells.iter().zip(cells) {
            let value = value.value().unwrap_or(f64::NAN);
            self.own(cell).into_iter().for_each(|effect| sums[effect] += value);
        }
        let fitted = |row: &Vec<f64>| row.iter().zip(&sums).map(|(a, b)| a * b).sum::<f64>();
        let effects: Vec<f64> = self.inverse.iter().map(fitted).collect();
        let of_axis = |(begin, levels): (&usize, &usize)| {
            let own = effects[*begin..begin + levels - 1].iter().copied();
            variance(&std::iter::once(0.0).chain(own).map(Span::of).collect::<Vec<_>>())
        };
        self.begins.iter().zip(&grid.levels).map(of_axis).collect()
    }
}
