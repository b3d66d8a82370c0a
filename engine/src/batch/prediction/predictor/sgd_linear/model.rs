//! The weights of the linear model, and a step of the gradient descent.
use super::history::BASE;
use super::loss::Slope;

/// Products of two different features use those from 1 up to this.
const CROSSED: usize = 16;

/// Number of features with products and squares.
pub const FEATURES: usize = BASE + CROSSED * (CROSSED - 1) / 2 + (BASE - 1);

/// The weights, and the state of the step sizes. Every number begins as in the study's program.
#[derive(Debug, Clone)]
pub(super) struct Model {
    learning_rate: f64,
    regularisation: f64,
    weights: [f64; FEATURES],
    /// Greatest size of each feature so far.
    scales: [f64; FEATURES],
    /// Sums of squared gradients.
    squares: [f64; FEATURES],
    /// Sum of squared features, each divided by its scale.
    norm: f64,
    /// 1 and 2 for each step.
    steps: f64,
}

/// The features with products and squares: first the features, then the products by the number of the first and the second
/// factor, then the squares.
fn expanded(base: &[f64; BASE]) -> [f64; FEATURES] {
    let mut all = [0.0; FEATURES];
    let (own, mut left) = all.split_at_mut(BASE);
    own.copy_from_slice(base);
    for first in 1..CROSSED {
        let (products, rest) = left.split_at_mut(CROSSED - first);
        multiply(products, base[first], &base[first + 1..=CROSSED]);
        left = rest;
    }
    for (square, value) in left.iter_mut().zip(&base[1..]) {
        *square = value * value;
    }
    all
}

fn multiply(products: &mut [f64], factor: f64, values: &[f64]) {
    for (product, value) in products.iter_mut().zip(values) {
        *product = factor * value;
    }
}

impl Model {
    pub(super) fn new(learning_rate: f64, regularisation: f64) -> Model {
        Model {
            learning_rate,
            regularisation,
            weights: [0.0; FEATURES],
            scales: [1e-9; FEATURES],
            squares: [1e-9; FEATURES],
            norm: 1e-9,
            steps: 1.0,
        }
    }

    /// The value of the model for a job: the sum of the products, from left to right.
    pub(super) fn value(&self, base: &[f64; BASE]) -> f64 {
        self.weights.iter().zip(&expanded(base)).fold(0.0, |sum, (weight, feature)| sum + weight * feature)
    }

    /// Learns from a job. `slope`: the slope of the loss at the value of the model for the job; `None` if it is 0.
    pub(super) fn learn(&mut self, base: &[f64; BASE], slope: impl FnOnce(f64) -> Option<Slope>) {
        let features = expanded(base);
        // All are compared, which vectors do at once. Few jobs have a feature that is greater than all before.
        if features.iter().zip(&self.scales).fold(false, |grows, (size, scale)| grows | (size.abs() > *scale)) {
            self.rescale(&features);
        }
        // One loop for two sums from left to right: each addition waits for the one before, and not for the other sum.
        let (mut norm, mut value) = (0.0, 0.0);
        for ((weight, scale), feature) in self.weights.iter().zip(&self.scales).zip(&features) {
            norm += feature * feature / (scale * scale);
            value += weight * feature;
        }
        self.norm += norm;
        let slope = slope(value).unwrap_or(Slope { before: 0.0, after: 0.0, weight: 0.0 });
        // Copies: numbers that stay in memory are read again for each weight, and then the compiler does not divide in vectors.
        let Model { learning_rate, regularisation, norm, steps, .. } = *self;
        let state = self.weights.iter_mut().zip(&mut self.squares).zip(&self.scales).zip(&features);
        for (((weight, squares), scale), feature) in state {
            let gradient = slope.before * feature * slope.after * slope.weight + regularisation * *weight;
            *squares += gradient * gradient;
            *weight -= learning_rate * gradient / ((norm * *squares / steps).sqrt() * scale);
        }
        self.steps += 2.0;
    }

    /// Raises the scales to the sizes of the features, and lowers their weights as much.
    fn rescale(&mut self, features: &[f64; FEATURES]) {
        for ((weight, scale), feature) in self.weights.iter_mut().zip(&mut self.scales).zip(features) {
            let size = feature.abs();
            if size > *scale {
                *weight *= *scale / size;
                *scale = size;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::Facts;
    use super::super::COMPONENT;
    use super::super::history::History;
    use super::super::loss::Loss;
    use super::*;
    use crate::spec::{Choice, Value};

    /// The first job of the KTH-SP2 log of Gaussier et al. 2015, and the state after its step in their program.
    #[test]
    fn the_first_step_on_kth_is_that_of_the_study() {
        let mut choice = Choice::new(&COMPONENT);
        let text = |text: &str| Value::Text(text.to_owned());
        for (name, value) in [
            ("loss_over_factor", Value::Real(100.0)),
            ("loss_under", text("square")),
            ("loss_weight", text("5+log(m/r)")),
        ] {
            choice.set(name, value).expect("the parameter has this type");
        }
        let loss = Loss::of(&choice);
        let job = Facts { number: 0, user: 0, submit_s: 0.0, run_s: 97_225.0, estimate_s: 210_000.0, procs: 56 };
        let features = History::default().features(&job, 0.0);
        let mut model = Model::new(choice.real("learning_rate"), choice.real("regularisation"));
        assert_eq!(model.value(&features), 0.0);
        let weight = loss.weight(56.0, job.run_s);
        model.learn(&features, |predicted_s| loss.slope(predicted_s, job.run_s, weight));
        let published = [
            (model.norm, 47.000000001),
            (model.weights[0], -729.324957481714),
            (model.weights[4], -0.003472975988008162),
            (model.weights[18], -13.023659955030608),
            (model.squares[4], 1.0086115461178291e22),
        ];
        for (ours, theirs) in published {
            assert!((ours - theirs).abs() <= 1e-14 * theirs.abs(), "{ours} {theirs}");
        }
        assert_eq!(FEATURES, 157);
    }
}
