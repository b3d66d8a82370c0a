//! An open stream of jobs of one proc: Poisson arrivals, and work with a chosen distribution.
use super::kernel::arrivals::{ClassStream, Work};
use super::server_classes::ServerClasses;
use crate::spec::{Choice, Component, Default, Param, Role, Type};

/// Description of the source.
pub const COMPONENT: Component = Component {
    role: Role::Source,
    name: "open-poisson",
    version: 1,
    source: "Do et al. 2013, section 3.1.2",
    doc: "One class of one-proc jobs with Poisson arrivals. Jobs are drawn during the run, which ends as the statistics say.",
    params: &[
        Param {
            name: "target_utilization",
            ty: Type::Real { min: 0.0, max: 1.0, min_allowed: false, unlimited: false },
            unit: "",
            default: Default::Unset,
            doc: "Arrival rate as a share of the cluster's capacity: U = rate * work_mean / rate of all servers; below 1. \
                  Instead of arrival_rate_per_s.",
        },
        Param::one_of(
            "utilization_of",
            &["present", "unslowed"],
            "Whether the capacity in target_utilization includes rate_factor (`present`) or not (`unslowed`).",
        ),
        Param {
            name: "arrival_rate_per_s",
            ty: Type::Real { min: 0.0, max: 1e12, min_allowed: false, unlimited: false },
            unit: "1/s",
            default: Default::Unset,
            doc: "Arrivals a second. Instead of target_utilization.",
        },
        Param::one_of(
            "work_distribution",
            &["exponential", "deterministic", "hyperexponential", "gamma"],
            "Distribution of a job's work, drawn at arrival; a server of rate r needs work / r seconds. \
                  `hyperexponential` has two phases with balanced means.",
        ),
        Param {
            name: "work_mean",
            ty: Type::Real { min: 0.0, max: 1e12, min_allowed: false, unlimited: false },
            unit: "",
            default: Default::Real(1.0),
            doc: "Mean work of a job, in seconds of a server of rate 1.",
        },
        Param {
            name: "work_scv",
            ty: Type::Real { min: 0.0, max: 1e6, min_allowed: false, unlimited: false },
            unit: "",
            default: Default::Unset,
            doc: "Squared coefficient of variation (variance / mean^2) of hyperexponential (at least 1) and gamma work.",
        },
    ],
    ..Component::QUEUES
};

/// The stream of a source without [`problems`], for a cluster.
pub(super) fn stream(source: &Choice, classes: &ServerClasses) -> ClassStream {
    let mean = source.real("work_mean");
    let scv = || source.real("work_scv");
    let work = match source.text("work_distribution") {
        "deterministic" => Work::Deterministic { mean },
        "hyperexponential" => Work::hyperexponential(mean, scv()),
        "gamma" => Work::Gamma { shape: 1.0 / scv(), scale: mean * scv() },
        _ => Work::Exponential { mean },
    };
    let rate_per_s = source.opt_real("arrival_rate_per_s").unwrap_or_else(|| {
        let capacity_per_s = classes.capacity_per_s(source.text("utilization_of") == "present");
        source.real("target_utilization") * capacity_per_s / mean
    });
    ClassStream { rate_per_s, work }
}

/// The problems of a source, see [`Component::problems`].
pub(super) fn problems(source: &Choice) -> Vec<String> {
    let mut problems = Vec::new();
    if source.opt_real("target_utilization").is_some() == source.opt_real("arrival_rate_per_s").is_some() {
        problems.push("an open stream needs either `target_utilization` or `arrival_rate_per_s`".to_owned());
    }
    let scv = source.opt_real("work_scv");
    match (source.text("work_distribution"), scv) {
        (name @ ("hyperexponential" | "gamma"), None) => {
            problems.push(format!("`work_distribution` \"{name}\" needs `work_scv`"));
        }
        ("hyperexponential", Some(scv)) if scv < 1.0 => {
            problems.push(format!("`work_scv` of hyperexponential work must be at least 1, not {scv}"));
        }
        (name @ ("exponential" | "deterministic"), Some(_)) => {
            problems.push(format!("`work_scv` does not apply to `work_distribution` \"{name}\""));
        }
        _ => {}
    }
    problems
}
