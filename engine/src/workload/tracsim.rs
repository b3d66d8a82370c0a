//! Job lists of TracSim: rigid jobs with priorities and workload types.
use super::estimates::Estimates;
use super::{GeneratedJob, Generator};
use crate::rng::{Philox, Purpose};
use crate::spec::{Choice, Component, Default, Param, Role, Type};

/// Number of jobs in a list.
pub const JOBS: Param = Param {
    name: "tracsim_jobs_count",
    ty: Type::Int { min: 1, max: 1 << 40 },
    unit: "jobs",
    default: Default::Int(30),
    doc: "Number of jobs in the list.",
};
/// Nodes of the machine that base times are measured on.
pub const NODES: Param = Param {
    name: "tracsim_nodes",
    ty: Type::Int { min: 1, max: 1 << 30 },
    unit: "procs",
    default: Default::Int(150),
    doc: "Nodes (the simulated procs) on which a base time is measured: a job on n nodes runs base * nodes/n (eq. 3). The \
          platform has this size unless its `procs` says otherwise.",
};

/// A bound of sizes.
const fn size(name: &'static str, default: i64, doc: &'static str) -> Param {
    Param { name, ty: Type::Int { min: 1, max: 1 << 30 }, unit: "procs", default: Default::Int(default), doc }
}

/// A number of priorities or types.
const fn count(name: &'static str, default: i64, doc: &'static str) -> Param {
    Param { name, ty: Type::Int { min: 1, max: 255 }, unit: "", default: Default::Int(default), doc }
}

/// Description of the generator.
pub const COMPONENT: Component = Component {
    role: Role::Source,
    name: "tracsim",
    version: 1,
    source: "Zhang et al. 2014, section V.A and eq. 3",
    doc: "A list of jobs with uniform sizes, priorities and workload types, submitted all at once or at random intervals.",
    params: &[
        JOBS,
        NODES,
        super::ESTIMATE_FACTOR_MAX,
        Param {
            name: "tracsim_sizes",
            ty: Type::OneOf(&["large", "mixed", "small"]),
            unit: "",
            default: Default::Text("mixed"),
            doc: "All jobs are large, all are small, or half are large (rounded down) in random order.",
        },
        size("tracsim_large_min", 50, "Least size of a large job."),
        size("tracsim_large_max", 80, "Greatest size of a large job; sizes are uniform."),
        size(
            "tracsim_small_min",
            20,
            "Least size of a small job. The paper only says that small jobs have fewer than 50 nodes.",
        ),
        size("tracsim_small_max", 49, "Greatest size of a small job; sizes are uniform."),
        count("tracsim_priorities_count", 3, "Number of priorities, which are uniform; 1 is the highest."),
        count("tracsim_types_count", 6, "Number of workload types (classes of jobs), which are uniform."),
        Param {
            name: "tracsim_base_s",
            ty: Type::Reals { min: 0.0, max: 1e12 },
            unit: "s",
            default: Default::Reals(&[640.97]),
            doc: "Run time at the top gear on all nodes, one for each workload type, or one for all. The default is that of \
                  xRAGE (Table III); the paper does not publish the times of its simulations.",
        },
        Param {
            name: "tracsim_gap_mean_s",
            ty: Type::Real { min: 0.0, max: 1e12, min_allowed: true, unlimited: false },
            unit: "s",
            default: Default::Real(0.0),
            doc: "Mean of the exponential times between submits; 0: all jobs are submitted at 0.",
        },
    ],
    problems: |spec| problems(spec.choice(Role::Source)),
    ..Component::BATCH
};

/// The generator.
pub static GENERATOR: Generator =
    Generator { component: COMPONENT, jobs_count: JOBS.name, machine_procs: NODES.name, generate };

/// The problems of a list's parameters, see [`Component::problems`].
fn problems(choice: &Choice) -> Vec<String> {
    let mut problems = Vec::new();
    for [min, max] in [["tracsim_large_min", "tracsim_large_max"], ["tracsim_small_min", "tracsim_small_max"]] {
        if choice.int(min) > choice.int(max) {
            problems.push(format!("`{min}` = {} must not be above `{max}` = {}", choice.int(min), choice.int(max)));
        }
    }
    let (bases, types) = (choice.reals("tracsim_base_s").len(), choice.int("tracsim_types_count"));
    if bases != 1 && bases as i64 != types {
        problems
            .push(format!("`tracsim_base_s` has {bases} times for {types} workload types: give one for each, or one"));
    }
    problems
}

/// Makes the list of a choice and a seed. Submits, sizes, priorities and types have separate streams; so has the order of
/// large and small jobs in a mixed list.
pub fn generate(choice: &Choice, seed: u64) -> Vec<GeneratedJob> {
    let count = usize::try_from(choice.int(JOBS.name)).expect("the parameter is positive");
    let int = |name: &str| choice.int(name).unsigned_abs();
    let nodes = int(NODES.name) as f64;
    let bases = choice.reals("tracsim_base_s");
    let gap_mean_s = choice.real("tracsim_gap_mean_s");
    let stream = |purpose| Philox::stream(seed, purpose);
    let (mut arrivals, mut sizes) = (stream(Purpose::Arrival), stream(Purpose::Size));
    let (mut priorities, mut types) = (stream(Purpose::Priority), stream(Purpose::JobClass));
    let mut estimates = Estimates::of(choice, seed);
    let large = large_jobs(choice.text("tracsim_sizes"), count, &mut stream(Purpose::Shuffle));
    let mut submit_s = 0.0;
    let mut jobs = Vec::new();
    for at in 0..count {
        if gap_mean_s > 0.0 {
            submit_s += arrivals.exponential(gap_mean_s);
        }
        let [min, max] = if large(at) {
            [int("tracsim_large_min"), int("tracsim_large_max")]
        } else {
            [int("tracsim_small_min"), int("tracsim_small_max")]
        };
        let procs = (min + sizes.below((max + 1).saturating_sub(min).max(1))) as u32;
        let class = types.below(int("tracsim_types_count")) as u8;
        let base_s = bases[if bases.len() == 1 { 0 } else { usize::from(class) }];
        let run_s = base_s * (nodes / f64::from(procs));
        let priority = 1 + priorities.below(int("tracsim_priorities_count")) as u8;
        jobs.push(GeneratedJob { submit_s, run_s, estimate_s: estimates.draw(run_s), procs, priority, class });
    }
    jobs
}

/// Says which jobs of a list are large. Only mixed lists need memory, a byte for each job.
fn large_jobs(sizes: &str, count: usize, shuffle: &mut Philox) -> impl Fn(usize) -> bool + use<> {
    let mut mixed = Vec::new();
    if sizes == "mixed" {
        mixed = (0..count).map(|at| at < count / 2).collect();
        for at in (1..count).rev() {
            mixed.swap(at, shuffle.below(at as u64 + 1) as usize);
        }
    }
    let all = sizes == "large";
    move |at| mixed.get(at).copied().unwrap_or(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Value;

    fn list(seed: u64, set: &[(&str, Value)]) -> Vec<GeneratedJob> {
        let mut choice = Choice::new(&COMPONENT);
        for (name, value) in set {
            choice.set(name, value.clone()).expect("a valid value");
        }
        assert_eq!(problems(&choice), Vec::<String>::new());
        generate(&choice, seed)
    }

    fn sizes(sizes: &str, seed: u64) -> Vec<u32> {
        list(seed, &[("tracsim_sizes", Value::Text(sizes.into()))]).iter().map(|job| job.procs).collect()
    }

    #[test]
    fn lists_have_the_sizes_of_the_paper() {
        for seed in 1..=40 {
            assert!(sizes("large", seed).iter().all(|n| (50..=80).contains(n)));
            assert!(sizes("small", seed).iter().all(|n| (20..=49).contains(n)));
            let mixed = sizes("mixed", seed);
            assert_eq!((mixed.len(), mixed.iter().filter(|&&n| n >= 50).count()), (30, 15));
            assert_ne!(mixed, sizes("mixed", seed + 1));
        }
        // Large and small jobs are mixed: the first fifteen are not all large.
        assert!((1..=40).all(|seed| sizes("mixed", seed)[..15].iter().any(|&n| n < 50)));
    }

    #[test]
    fn run_times_scale_with_the_nodes_and_submits_may_spread() {
        let jobs = list(3, &[("tracsim_base_s", Value::Reals(vec![100.0, 200.0, 300.0, 400.0, 500.0, 600.0]))]);
        for job in &jobs {
            assert_eq!(job.run_s, 100.0 * f64::from(job.class + 1) * (150.0 / f64::from(job.procs)));
            assert!((1..=3).contains(&job.priority) && job.class < 6 && job.submit_s == 0.0);
        }
        let spread = list(3, &[("tracsim_gap_mean_s", Value::Real(60.0))]);
        assert!(spread.windows(2).all(|two| two[0].submit_s < two[1].submit_s));
        assert!(jobs.iter().zip(&spread).all(|(a, b)| (a.procs, a.priority) == (b.procs, b.priority)));
        // Over many jobs priorities and types are even: 3,000/3 and 3,000/6 within five standard deviations.
        let many = list(1, &[("tracsim_jobs_count", Value::Int(3000))]);
        let count = |of: &dyn Fn(&GeneratedJob) -> bool| many.iter().filter(|job| of(job)).count() as f64;
        assert!((1..=3).all(|p| (count(&|job| job.priority == p) - 1000.0).abs() < 130.0));
        assert!((0..6).all(|c| (count(&|job| job.class == c) - 500.0).abs() < 103.0));
    }

    #[test]
    fn contradictions_are_named() {
        let mut choice = Choice::new(&COMPONENT);
        choice.set("tracsim_small_min", Value::Int(60)).expect("in range");
        choice.set("tracsim_base_s", Value::Reals(vec![1.0, 2.0])).expect("in range");
        let problems = problems(&choice);
        assert!(
            problems[0].contains("`tracsim_small_min` = 60") && problems[1].contains("2 times for 6 workload types")
        );
    }

    /// Fails when arithmetic or the consumption of a stream changes: then the component's version must be raised.
    #[test]
    fn the_first_jobs_are_bit_exact() {
        let jobs = list(1, &[]);
        let got: Vec<_> = jobs[..3].iter().map(|j| (j.run_s, j.procs, j.priority, j.class)).collect();
        assert_eq!(got, [(3004.546875, 32, 2, 2), (1479.1615384615384, 65, 2, 3), (1657.6810344827588, 58, 3, 5)]);
    }
}
