//! Poisson arrivals of rigid jobs.
use super::estimates::Estimates;
use super::{GeneratedJob, Generator};
use crate::rng::{Philox, Purpose};
use crate::spec::{Choice, Component, Default, Param, Role, Type};

/// Description of the generator.
pub const COMPONENT: Component = Component {
    role: Role::Source,
    name: "poisson",
    version: 1,
    doc: "Poisson arrivals, exponential run times, sizes uniform up to poisson_size_max procs.",
    params: &[
        super::SYNTHETIC_JOBS,
        super::SYNTHETIC_PROCS,
        super::ESTIMATE_FACTOR_MAX,
        Param::positive("poisson_rate_per_h", f64::MAX, "1/h", Default::Real(10.0), "Mean arrivals an hour."),
        Param::positive(
            "poisson_run_mean_s",
            f64::MAX,
            "s",
            Default::Real(3600.0),
            "Mean of the exponential run time.",
        ),
        Param {
            name: "poisson_size_max",
            ty: Type::Int { min: 1, max: 1 << 30 },
            unit: "procs",
            default: Default::Int(64),
            doc: "Greatest size; see `poisson_sizes`.",
        },
        Param::one_of(
            "poisson_sizes",
            &["uniform", "power-of-two"],
            "Sizes are uniform on 1..=poisson_size_max, or on the powers of two up to poisson_size_max.",
        ),
    ],
    ..Component::BATCH
};

/// The generator.
pub static GENERATOR: Generator = Generator {
    component: COMPONENT,
    jobs_count: super::SYNTHETIC_JOBS.name,
    machine_procs: super::SYNTHETIC_PROCS.name,
    generate,
};

/// Makes `synthetic_jobs_count` jobs in order of submit. The same choice and seed give the same bits everywhere, and a
/// larger count the same first jobs; arrivals, sizes, run times and estimates have separate streams.
pub fn generate(choice: &Choice, seed: u64) -> Vec<GeneratedJob> {
    let count = usize::try_from(choice.int("synthetic_jobs_count")).expect("the parameter is positive");
    let gap_mean_s = 3600.0 / choice.real("poisson_rate_per_h");
    let run_mean_s = choice.real("poisson_run_mean_s");
    let size_max = u32::try_from(choice.int("poisson_size_max")).expect("the parameter's range lies within u32");
    let powers_of_two = choice.text("poisson_sizes") == "power-of-two";

    let stream = |purpose| Philox::stream(seed, purpose);
    let (mut arrivals, mut sizes, mut runs) =
        (stream(Purpose::Arrival), stream(Purpose::Size), stream(Purpose::RunTime));
    let mut estimates = Estimates::of(choice, seed);
    let mut submit_s = 0.0;
    // No memory is reserved in advance, because the count may be huge.
    let mut jobs = Vec::new();
    for _ in 0..count {
        submit_s += arrivals.exponential(gap_mean_s);
        let run_s = runs.exponential(run_mean_s);
        let procs = if powers_of_two {
            1 << sizes.below(u64::from(size_max.ilog2()) + 1)
        } else {
            1 + sizes.below(u64::from(size_max)) as u32
        };
        jobs.push(GeneratedJob { submit_s, run_s, estimate_s: estimates.draw(run_s), procs, priority: 1, class: 0 });
    }
    jobs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Value;

    fn choice(set: &[(&str, Value)]) -> Choice {
        let mut choice = Choice::new(&COMPONENT);
        for (name, value) in set {
            choice.set(name, value.clone()).expect("a valid value");
        }
        choice
    }

    fn mean(values: impl Iterator<Item = f64>) -> f64 {
        let (sum, n) = values.fold((0.0, 0.0), |(s, n), v| (s + v, n + 1.0));
        sum / n
    }

    #[test]
    fn moments_follow_the_parameters() {
        let jobs = generate(&choice(&[("synthetic_jobs_count", Value::Int(50_000))]), 3);
        assert_eq!(jobs.len(), 50_000);
        assert!(jobs.is_sorted_by(|a, b| a.submit_s <= b.submit_s));
        // Five standard errors of each mean: 360/sqrt(50,000) = 1.6; 16; 0.083.
        let gap = jobs.last().expect("there are jobs").submit_s / 50_000.0;
        assert!((gap - 360.0).abs() < 8.0, "{gap}");
        let run = mean(jobs.iter().map(|j| j.run_s));
        assert!((run - 3600.0).abs() < 80.0, "{run}");
        let size = mean(jobs.iter().map(|j| f64::from(j.procs)));
        assert!((size - 32.5).abs() < 0.42, "{size}");
        assert!(jobs.iter().all(|j| (1..=64).contains(&j.procs) && j.estimate_s.is_none()));
    }

    #[test]
    fn power_of_two_sizes_are_equally_likely() {
        let set = [
            ("synthetic_jobs_count", Value::Int(30_000)),
            ("poisson_sizes", Value::Text("power-of-two".into())),
            ("poisson_size_max", Value::Int(37)),
        ];
        let jobs = generate(&choice(&set), 4);
        for size in [1, 2, 4, 8, 16, 32] {
            let share = jobs.iter().filter(|j| j.procs == size).count() as f64 / 30_000.0;
            assert!((share - 1.0 / 6.0).abs() < 0.011, "size {size}: {share}");
        }
    }

    #[test]
    fn estimates_and_counts_do_not_change_other_values() {
        let few = generate(&choice(&[("synthetic_jobs_count", Value::Int(10))]), 5);
        let many = generate(
            &choice(&[("synthetic_jobs_count", Value::Int(20)), ("estimate_factor_max", Value::Real(3.0))]),
            5,
        );
        for (a, b) in few.iter().zip(&many) {
            assert_eq!((a.submit_s, a.run_s, a.procs), (b.submit_s, b.run_s, b.procs));
            let factor = b.estimate_s.expect("estimates were asked for") / b.run_s;
            assert!((1.0..=3.0).contains(&factor), "{factor}");
        }
        let other = generate(&choice(&[("synthetic_jobs_count", Value::Int(10))]), 6);
        assert_ne!(few, other);
    }

    /// Fails when arithmetic, `libm` or the consumption of a stream changes: then the component's version must be raised.
    #[test]
    fn the_first_jobs_are_bit_exact() {
        let jobs = generate(&choice(&[("synthetic_jobs_count", Value::Int(3))]), 1);
        let got: Vec<_> = jobs.iter().map(|j| (j.submit_s, j.run_s, j.procs)).collect();
        let expected = [
            (771.6240456038389, 1428.5783552207033, 27),
            (1931.001344077666, 913.0703369412865, 32),
            (2079.6764479082317, 2921.583981433069, 19),
        ];
        assert_eq!(got, expected);
    }
}
