//! Streams of jobs, drawn one by one during the run.
use super::policy::Job;
use crate::rng::{Exponential, Philox, Purpose};

/// A stream of jobs in order of arrival.
pub trait Arrivals {
    /// The next job, not before the previous one. After the last job, `arrived_s` is always infinite.
    fn next(&mut self) -> Job;
}

/// Distribution of the work of a class's jobs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Work {
    /// Exponential.
    Exponential {
        /// Its mean, above 0.
        mean: f64,
    },
    /// Every job has this work.
    Deterministic {
        /// The work, 0 or more.
        mean: f64,
    },
    /// With probability `p` exponential of mean `first`, else of mean `second`.
    Hyperexponential {
        /// Probability of the first phase.
        p: f64,
        /// Mean of the first phase, above 0.
        first: f64,
        /// Mean of the second phase, above 0.
        second: f64,
    },
    /// Gamma.
    Gamma {
        /// Shape, above 0; the squared coefficient of variation is 1 / shape.
        shape: f64,
        /// Scale, above 0; the mean is shape * scale.
        scale: f64,
    },
}

impl Work {
    /// The hyperexponential distribution with this mean and this squared coefficient of variation `scv`, at least 1. Its
    /// two phases have balanced means: each contributes half of the work.
    pub fn hyperexponential(mean: f64, scv: f64) -> Work {
        let p = 0.5 * (1.0 + libm::sqrt((scv - 1.0) / (scv + 1.0)));
        Work::Hyperexponential { p, first: 0.5 * mean / p, second: 0.5 * mean / (1.0 - p) }
    }

    /// The mean.
    pub fn mean(&self) -> f64 {
        match *self {
            Work::Exponential { mean } | Work::Deterministic { mean } => mean,
            Work::Hyperexponential { p, first, second } => p * first + (1.0 - p) * second,
            Work::Gamma { shape, scale } => shape * scale,
        }
    }
}

/// One class of a [`Poisson`] stream.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClassStream {
    /// Arrivals a second, 0 or more; 0: the class never arrives.
    pub rate_per_s: f64,
    /// Work of its jobs.
    pub work: Work,
}

/// Independent Poisson streams, one for each class, each with its own distribution of work. Never ends.
///
/// Gaps and work of class i come from substream i of their purposes: policies compared under one seed see the same
/// arrival instants and the same work of every job.
#[derive(Debug, Clone)]
pub struct Poisson {
    classes: Vec<Class>,
    number: u64,
}

#[derive(Debug, Clone)]
struct Class {
    next_s: f64,
    gap_mean_s: f64,
    gaps: Exponential,
    work: Work,
    /// Source of exponential work.
    exponential: Exponential,
    /// Source of work of the other distributions.
    words: Philox,
}

impl Poisson {
    /// The streams of the classes under a seed.
    pub fn new(classes: &[ClassStream], seed: u64) -> Poisson {
        let class = |(i, stream): (usize, &ClassStream)| {
            let index = u32::try_from(i).expect("there are far fewer classes");
            let mut class = Class {
                next_s: 0.0,
                gap_mean_s: 1.0 / stream.rate_per_s,
                gaps: Exponential::new(Philox::substream(seed, Purpose::Arrival, index)),
                work: stream.work,
                exponential: Exponential::new(Philox::substream(seed, Purpose::RunTime, index)),
                words: Philox::substream(seed, Purpose::RunTime, index),
            };
            class.step();
            class
        };
        Poisson { classes: classes.iter().enumerate().map(class).collect(), number: 0 }
    }
}

impl Class {
    #[inline(always)]
    fn step(&mut self) {
        self.next_s += self.gap_mean_s * self.gaps.draw();
    }

    #[inline(always)]
    fn work(&mut self) -> f64 {
        match self.work {
            Work::Exponential { mean } => mean * self.exponential.draw(),
            Work::Deterministic { mean } => mean,
            Work::Hyperexponential { p, first, second } => {
                let mean = if self.words.chance(p) { first } else { second };
                self.words.exponential(mean)
            }
            Work::Gamma { shape, scale } => self.words.gamma(shape, scale),
        }
    }
}

impl Arrivals for Poisson {
    #[inline(always)]
    fn next(&mut self) -> Job {
        let mut first = 0;
        for i in 1..self.classes.len() {
            if self.classes[i].next_s < self.classes[first].next_s {
                first = i;
            }
        }
        let class = &mut self.classes[first];
        let job = Job { arrived_s: class.next_s, work: class.work(), number: self.number, class: first as u32 };
        class.step();
        self.number += 1;
        job
    }
}
