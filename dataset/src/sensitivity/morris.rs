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

/// An elementary effect.
#[derive(Debug, Clone, Copy)]
pub struct Effect {
    size: Span,
    /// How large an effect of 0 can be by the rounding of the values.
    noise: f64,
}

impl Effect {
    fn new(from: Span, to: Span, by: f64) -> Effect {
        let largest = from.abs().high.max(to.abs().high);
        Effect { size: (to - from).times(1.0 / by), noise: ROUNDING * largest / by.abs() }
    }
}

/// Relative error of a mean over seeds, with room.
const ROUNDING: f64 = 8.0 * f64::EPSILON;

impl Estimates for Morris {
    /// For each range the elementary effect of each trajectory; none of a step that does not change the value.
    type Terms = Vec<Vec<Option<Effect>>>;

    fn blocks(&self) -> usize {
        self.steps.len() / self.ranges
    }

    fn terms(&self, points: &[Span]) -> Self::Terms {
        let mut effects = vec![Vec::with_capacity(self.blocks()); self.ranges];
        for (at, step) in self.steps.iter().enumerate() {
            // A trajectory has one point more than steps.
            let from = at + at / self.ranges;
            let effect = (step.by != 0.0).then(|| Effect::new(points[from], points[from + 1], step.by));
            effects[step.range].push(effect);
        }
        effects
    }

    /// For each range mu, mu* and sigma: mean, mean of absolute values, and standard deviation of its elementary effects, in the
    /// metric's unit for the whole range. A sigma that rounding alone can give is 0.
    fn estimate(&self, effects: &Self::Terms, blocks: &[usize]) -> Vec<Span> {
        let of_range = |effects: &Vec<Option<Effect>>| {
            let effects = || blocks.iter().filter_map(|block| effects[*block]);
            let drawn: Vec<Span> = effects().map(|effect| effect.size).collect();
            let noise = effects().map(|effect| effect.noise).fold(0.0, f64::max);
            let sample = drawn.len() as f64 / (drawn.len() as f64 - 1.0);
            let variance = variance(&drawn).times(sample);
            let deviation = |variance: f64| if variance.sqrt() <= noise { 0.0 } else { variance.sqrt() };
            let sigma = Span { low: deviation(variance.low), high: deviation(variance.high) };
            [mean(drawn.iter().copied()), mean(drawn.iter().map(|effect| effect.abs())), sigma]
        };
        effects.iter().flat_map(of_range).collect()
    }

    fn possible(&self, at: usize) -> (f64, f64) {
        (if at.is_multiple_of(3) { f64::NEG_INFINITY } else { 0.0 }, f64::INFINITY)
    }
}
