//! Elementary effects (Morris 1991; Campolongo, Cariboni & Saltelli 2007), as SALib has them.

use super::Estimates;
use super::span::{Span, mean, variance};

/// The step between a point of a trajectory and the next one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// The range that changes.
    pub range: usize,
    /// By how much, in the unit cube.
    pub by: f64,
}

/// The trajectories of a design.
#[derive(Debug)]
pub struct Morris {
    /// Number of ranges: a trajectory has as many steps.
    pub ranges: usize,
    /// The steps of all trajectories, one trajectory behind the other.
    pub steps: Vec<Step>,
}

impl Estimates for Morris {
    /// For each range the elementary effect of each trajectory.
    type Terms = Vec<Vec<Span>>;

    fn blocks(&self) -> usize {
        self.steps.len() / self.ranges
    }

    fn terms(&self, points: &[Span]) -> Vec<Vec<Span>> {
        let mut effects = vec![Vec::with_capacity(self.blocks()); self.ranges];
        for (at, step) in self.steps.iter().enumerate() {
            // A trajectory has one point more than steps.
            let from = at + at / self.ranges;
            effects[step.range].push((points[from + 1] - points[from]).times(1.0 / step.by));
        }
        effects
    }

    /// For each range mu, mu* and sigma: mean, mean of absolute values, and standard deviation of its elementary effects, in the
    /// metric's unit for the whole range.
    fn estimate(&self, effects: &Vec<Vec<Span>>, blocks: &[usize]) -> Vec<Span> {
        let sample = blocks.len() as f64 / (blocks.len() as f64 - 1.0);
        let of_range = |effects: &Vec<Span>| {
            let drawn: Vec<Span> = blocks.iter().map(|block| effects[*block]).collect();
            let variance = variance(&drawn).times(sample);
            let sigma = Span { low: variance.low.sqrt(), high: variance.high.sqrt() };
            [mean(drawn.iter().copied()), mean(drawn.iter().map(|effect| effect.abs())), sigma]
        };
        effects.iter().flat_map(of_range).collect()
    }
}
