//! A linear model of the run time, learned online by stochastic gradient descent.
//!
//! Gaussier, Glesser, Reis & Trystram 2015 and the program of their study. At its submission a job gets [`FEATURES`] numbers:
//! 19 of its own and of its user's past ([`history`]), the products of two different of the numbers 1 to 16, and the squares of
//! the numbers 1 to 18. The prediction is the absolute value of the weighted sum, cut to whole seconds, at least 1 s and at most the
//! estimate. When a job ends, the weights move against the gradient of a loss that may weigh predictions that were too long
//! and too short differently. The step is that of normalised adaptive gradients (Ross, Mineiro & Langford 2013): invariant to
//! the scales of the features.
//!
//! Cosine, sine, logarithm and exponential are rounded correctly, as in the C library under the study's program: some models
//! amplify a last bit until the schedule is another one (decision 0114).
mod history;
mod loss;
mod model;

pub use model::FEATURES;

use super::{Facts, Predictor};
use crate::limits::list_bytes;
use crate::spec::{Component, Default, Param, Role, SimSpec, Type};
use history::{BASE, History};
use loss::Loss;
use model::Model;

const fn positive(name: &'static str, default: f64, doc: &'static str) -> Param {
    Param {
        name,
        ty: Type::Real { min: 0.0, max: 1e300, min_allowed: false, unlimited: false },
        unit: "",
        default: Default::Real(default),
        doc,
    }
}

/// Description of the predictor.
pub const COMPONENT: Component = Component {
    role: Role::Predictor,
    name: "sgd-linear",
    version: 3,
    source: "Gaussier, Glesser, Reis & Trystram 2015",
    doc: "A linear model of the job's and its user's features, learned online by stochastic gradient descent as jobs end; in \
          whole seconds, at least 1 s and at most the user's estimate.",
    reads: "The submission, the request and the procs of a job, completed and running jobs of its user, and the \
            time of the day and of the week.",
    guarantees: "A prediction is at most the request, and rests on completed jobs, and on the elapsed times of \
                 running ones. Jobs may outlive their predictions, so that bounds of backfilling rules do not \
                 hold.",
    params: &[
        Param::one_of(
            "loss_over",
            &["square", "abs", "exp"],
            "Loss of a prediction that was e seconds too long, with `loss_over_factor` g: `square` g e^2, `abs` g e, `exp` \
             exp(g e).",
        ),
        positive("loss_over_factor", 1.0, "Factor g of `loss_over`."),
        Param::one_of(
            "loss_under",
            &["abs", "square", "exp"],
            "Loss of a prediction that was e seconds too short, with `loss_under_factor` g: as `loss_over`.",
        ),
        positive("loss_under_factor", 1.0, "Factor g of `loss_under`."),
        Param {
            name: "loss_threshold_s",
            ty: Type::Real { min: 0.0, max: 1e12, min_allowed: true, unlimited: false },
            unit: "s",
            default: Default::Real(0.0),
            doc: "Error at which the loss is least: a prediction counts as too long from the run time plus this.",
        },
        Param::one_of(
            "loss_weight",
            &["1+log(m*r)", "1", "5+log(r/m)", "5+log(m/r)", "11+log(1/(r*m))"],
            "Weight of a job in the loss, from its procs m and its run time r (s, at least 1), with the natural logarithm. It \
             may be negative.",
        ),
        positive("learning_rate", 5000.0, "Learning rate of the gradient descent."),
        Param {
            name: "regularisation",
            ty: Type::Real { min: 0.0, max: 1e300, min_allowed: true, unlimited: false },
            unit: "",
            default: Default::Real(4e9),
            doc: "Factor of the weights in the gradient (l2).",
        },
    ],
    ..Component::BATCH
};

/// The model, and the features of the jobs that have not ended.
#[derive(Debug, Clone)]
pub(crate) struct SgdLinear {
    loss: Loss,
    model: Box<Model>,
    history: History,
    /// Features of jobs that wait or run, at places that later jobs use again.
    features: Vec<[f64; BASE]>,
    unused: Vec<u32>,
    /// Place of each job.
    places: Vec<u32>,
}

impl Predictor for SgdLinear {
    fn of(spec: &SimSpec, jobs: usize) -> Option<SgdLinear> {
        let choice = spec.choice(Role::Predictor);
        Some(SgdLinear {
            loss: Loss::of(choice),
            model: Box::new(Model::new(choice.real("learning_rate"), choice.real("regularisation"))),
            history: History::default(),
            features: Vec::new(),
            unused: Vec::new(),
            places: vec![0; jobs],
        })
    }

    fn predict(&mut self, job: &Facts, now_s: f64) -> f64 {
        let base = self.history.features(job, now_s);
        let place = self.unused.pop().unwrap_or_else(|| {
            self.features.push([0.0; BASE]);
            self.features.len() as u32 - 1
        });
        self.features[place as usize] = base;
        self.places[job.number as usize] = place;
        let value = self.model.value(&base).abs();
        if value.is_nan() { job.estimate_s } else { value.trunc().max(1.0).min(job.estimate_s) }
    }

    fn started(&mut self, job: &Facts, now_s: f64) {
        self.history.started(job, now_s);
    }

    fn ended(&mut self, job: &Facts, now_s: f64) {
        let place = self.places[job.number as usize];
        let base = self.features[place as usize];
        self.unused.push(place);
        let loss = &self.loss;
        let weight = loss.weight(f64::from(job.procs), job.run_s);
        self.model.learn(&base, |predicted_s| loss.slope(predicted_s, job.run_s, weight));
        self.history.ended(job, now_s);
    }

    fn bytes(&self) -> usize {
        let lists = [list_bytes(&self.features), list_bytes(&self.unused), list_bytes(&self.places)];
        lists.into_iter().sum::<usize>() + size_of::<Model>() + self.history.bytes()
    }
}
