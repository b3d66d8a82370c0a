//! Elementary effects (Morris 1991; Campolongo, Cariboni & Saltelli 2007), as SALib has them.

use super::Estimates;
use super::span::{Span, mean, variance};

/// The step between a point of a trajectory and the next one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// The range that changes.
    pub range: usize,
    /// By how much, as a part of the range; 0 if its value stays.
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
    /// For each range the elementary effect of each trajectory; none of a step that does not change the value.
    type Terms = Vec<Vec<Option<Span>>>;

    fn blocks(&self) -> usize {
        self.steps.len() / self.ranges
    }

    fn terms(&self, points: &[Span]) -> Self::Terms {
        let mut effects = vec![Vec::with_capacity(self.blocks()); self.ranges];
        for (at, step) in self.steps.iter().enumerate() {
            // A trajectory has one point more than steps.
            let from = at + at / self.ranges;
            let effect = (step.by != 0.0).then(|| (points[from + 1] - points[from]).times(1.0 / step.by));
            effects[step.range].push(effect);
        }
        effects
    }

    /// For each range mu, mu* and sigma: mean, mean of absolute values, and standard deviation of its elementary effects, in the
    /// metric's unit for the whole range.
    fn estimate(&self, effects: &Self::Terms, blocks: &[usize]) -> Vec<Span> {
        let of_range = |effects: &Vec<Option<Span>>| {
            let drawn: Vec<Span> = blocks.iter().filter_map(|block| effects[*block]).collect();
            let sample = drawn.len() as f64 / (drawn.len() as f64 - 1.0);
            let variance = variance(&drawn).times(sample);
            let sigma = Span { low: variance.low.sqrt(), high: variance.high.sqrt() };
            [mean(drawn.iter().copied()), mean(drawn.iter().map(|effect| effect.abs())), sigma]
        };
        effects.iter().flat_map(of_range).collect()
    }
}
