//! From a spec to a run of a policy of this folder.
use super::policy::{Kind, Model, Visitor, unsolved};
use super::system::{self, Groups};
use super::{POLICIES, Rescaled, phases, show};
use crate::details::Details;
use crate::error::SimError;
use crate::limits::Limits;
use crate::lp::structured::Decomposition;
use crate::lp::{self, System};
use crate::queues::kernel::arrivals::Poisson;
use crate::queues::kernel::policy::QueuePolicy;
use crate::queues::kernel::servers::ServerTable;
use crate::queues::policies::unfit::unfit;
use crate::queues::statistics::measure;
use crate::queues::statistics::measure::Measurement;
use crate::queues::statistics::summary::QueueSummary;
use crate::spec::{Role, SimSpec};

/// The policy of a name, if it is of this folder.
fn kind_of(name: &str) -> Option<&'static Kind> {
    POLICIES.iter().find(|kind| kind.component.name == name)
}

/// What is wrong with a spec whose policy is of this folder, a sentence each.
pub(super) fn problems(spec: &SimSpec) -> Vec<String> {
    let unfit = [&[&system::SOURCE][..], &system::PLATFORMS]
        .into_iter()
        .filter_map(|fitting| unfit(spec, fitting, "has no rate for each class of jobs", "needs one"));
    let mut problems: Vec<String> = unfit.collect();
    if !problems.is_empty() {
        return problems;
    }
    let system = match system::system(spec) {
        Ok(system) => system,
        Err(problem) => return vec![problem],
    };
    if let Some(kind) = kind_of(spec.choice(Role::Policy).component().name) {
        problems.extend((kind.problem)(spec, &system));
        problems.extend(change_problem(spec, &system, kind));
    }
    if spec.choice(Role::Statistics).component().name == "steady-state" {
        problems.extend(overloaded(&system));
    }
    problems
}

/// What is wrong with the changes of the system.
fn change_problem(spec: &SimSpec, system: &System, kind: &Kind) -> Option<String> {
    let changes = || {
        let groups = Groups::of(spec.choice(Role::Platform), system.classes())?;
        let plans = phases::of(spec, &groups)?;
        plans.iter().try_for_each(|plan| phases::system(plan, system, &groups).map(|_| ()))?;
        Ok(plans.len() - 1)
    };
    let count = match changes() {
        Ok(count) => count,
        Err(problem) => return Some(problem),
    };
    if !kind.servers_change && spec.choice(Role::Platform).get("speed_change_at_s").is_some() {
        let others = POLICIES.iter().filter(|kind| kind.servers_change);
        let others: Vec<String> = others.map(|kind| format!("\"{}\"", kind.component.name)).collect();
        return Some(format!(
            "`speed_change_at_s` does not go with `kind` \"{}\", under which servers do not change: choose one of {}",
            kind.component.name,
            others.join(", ")
        ));
    }
    (count > 0 && spec.choice(Role::Statistics).component().name == "steady-state").then(|| {
        "`arrivals_change_at_s` and `speed_change_at_s` have no steady state: choose `statistics_kind` \"horizon\""
            .to_owned()
    })
}

/// Why there is no steady state.
fn overloaded(system: &System) -> Option<String> {
    let lambda = lp::capacity(system).ok()?.lambda;
    (lambda <= 1.0).then(|| {
        format!("a steady state needs a capacity lambda* above 1, `class_arrivals_per_s` and `arrivals_factor` make it {lambda}")
    })
}

/// Shows a visitor the servers, the arrivals and the policy of a spec without [`problems`].
///
/// # Errors
/// [`SimError::Invalid`]: a policy of other queues, or what the linear programs say.
pub fn visit<V: Visitor>(spec: &SimSpec, visitor: V) -> Result<V::Output, SimError> {
    let component = spec.choice(Role::Policy).component();
    let Some(kind) = kind_of(component.name) else {
        return Err(SimError::Invalid(format!("`kind` \"{}\" is not of classes of jobs", component.name)));
    };
    show(&Model::new(spec, kind)?, component, visitor)
}

/// Runs a spec without [`problems`].
///
/// # Errors
/// Those of the run, and of the linear programs.
pub(in crate::queues) fn simulate(
    spec: &SimSpec,
    limits: &Limits<'_>,
    details: &mut Details,
) -> Result<QueueSummary, SimError> {
    let component = spec.choice(Role::Policy).component();
    let kind = kind_of(component.name).expect("it is a policy of this folder");
    let model = Model::new(spec, kind)?;
    let capacity = lp::capacity(&model.system).map_err(unsolved)?;
    let measurement = Measurement { groups: model.groups.numbers(), idle_counts: true, offered_load: None };
    let summary = show(&model, component, Measured { spec, measurement, limits, details })??;
    let first = model.allocations.first();
    let svd = Decomposition::of(model.groups.rates_per_s(), model.system.classes());
    Ok(QueueSummary {
        lp_lambda: Some(capacity.lambda),
        lp_theta: Some(model.groups.of_firsts(&capacity.theta)),
        lp_capacity: first.map(|solved| solved.capacity),
        lp_power_w: first.map(|solved| solved.power_w),
        lp_shares: first.map(|solved| model.groups.of_firsts(&solved.delta)),
        lp_solved_count: first.map(|_| model.allocations.len() as u64),
        svd_singular_per_s: svd.as_ref().map(|svd| svd.singular.clone()),
        svd_left: svd.as_ref().map(|svd| svd.left.concat()),
        svd_right: svd.as_ref().map(|svd| svd.right.concat()),
        svd_rank_1_per_s: svd.as_ref().map(Decomposition::rank_1),
        svd_betas_j: system::fitted_betas(&model.groups),
        ..summary
    })
}

/// Measures the run that it is shown.
struct Measured<'a, 'b> {
    spec: &'a SimSpec,
    measurement: Measurement,
    limits: &'a Limits<'b>,
    details: &'a mut Details,
}

impl Visitor for Measured<'_, '_> {
    type Output = Result<QueueSummary, SimError>;

    fn visit<P: QueuePolicy>(self, table: ServerTable, arrivals: Rescaled<Poisson>, policy: P) -> Self::Output {
        measure(self.spec, table, arrivals, policy, &self.measurement, self.limits, self.details)
    }
}
