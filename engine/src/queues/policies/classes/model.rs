//! Problems and simulation of a spec with a policy of this folder.
use super::policy::{Registered, Setup, Visitor, unsolved};
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

/// The policy of this folder with a name.
fn registered(name: &str) -> Option<&'static Registered> {
    POLICIES.iter().find(|policy| policy.component.name == name)
}

/// The problems of a spec whose policy is of this folder, see [`Component::problems`](crate::Component::problems).
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
    if let Some(policy) = registered(spec.choice(Role::Policy).component().name) {
        problems.extend((policy.problem)(spec, &system));
        problems.extend(change_problem(spec, &system, policy));
    }
    if spec.choice(Role::Statistics).component().name == "steady-state" {
        problems.extend(overloaded(&system));
    }
    problems
}

/// The problem of the changes of the system.
fn change_problem(spec: &SimSpec, system: &System, policy: &Registered) -> Option<String> {
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
    if !policy.servers_change && spec.choice(Role::Platform).get("speed_change_at_s").is_some() {
        let others = POLICIES.iter().filter(|other| other.servers_change);
        let others: Vec<String> = others.map(|other| format!("\"{}\"", other.component.name)).collect();
        return Some(format!(
            "`speed_change_at_s` does not go with `kind` \"{}\", under which servers do not change: choose one of {}",
            policy.component.name,
            others.join(", ")
        ));
    }
    (count > 0 && spec.choice(Role::Statistics).component().name == "steady-state").then(|| {
        "`arrivals_change_at_s` and `speed_change_at_s` have no steady state: choose `statistics_kind` \"horizon\""
            .to_owned()
    })
}

/// The problem of a load without a steady state.
fn overloaded(system: &System) -> Option<String> {
    let lambda = lp::capacity(system).ok()?.lambda;
    (lambda <= 1.0).then(|| {
        format!("a steady state needs a capacity lambda* above 1; by `class_arrivals_per_s` and `arrivals_factor` it is {lambda}")
    })
}

/// Passes the servers, arrivals and policy of a spec without [`problems`] to a visitor.
///
/// # Errors
/// [`SimError::Invalid`]: the policy is of other queues, or a linear program has no solution.
pub fn visit<V: Visitor>(spec: &SimSpec, visitor: V) -> Result<V::Output, SimError> {
    let component = spec.choice(Role::Policy).component();
    let Some(policy) = registered(component.name) else {
        return Err(SimError::Invalid(format!("`kind` \"{}\" is not of classes of jobs", component.name)));
    };
    show(&Setup::new(spec, policy)?, component, visitor)
}

/// Simulates a spec without [`problems`].
///
/// # Errors
/// The errors of the run and of the linear programs.
pub(in crate::queues) fn simulate(
    spec: &SimSpec,
    limits: &Limits<'_>,
    details: &mut Details,
) -> Result<QueueSummary, SimError> {
    let component = spec.choice(Role::Policy).component();
    let policy = registered(component.name).expect("it is a policy of this folder");
    let setup = Setup::new(spec, policy)?;
    let capacity = lp::capacity(&setup.system).map_err(unsolved)?;
    let measurement = Measurement { groups: setup.groups.numbers(), idle_counts: true, offered_load: None };
    let summary = show(&setup, component, Measuring { spec, measurement, limits, details })??;
    let first = setup.allocations.first();
    let svd = Decomposition::of(setup.groups.rates_per_s(), setup.system.classes());
    Ok(QueueSummary {
        lp_lambda: Some(capacity.lambda),
        lp_theta: Some(setup.groups.of_firsts(&capacity.theta)),
        lp_capacity: first.map(|solved| solved.capacity),
        lp_power_w: first.map(|solved| solved.power_w),
        lp_shares: first.map(|solved| setup.groups.of_firsts(&solved.delta)),
        lp_solved_count: first.map(|_| setup.allocations.len() as u64),
        svd_singular_per_s: svd.as_ref().map(|svd| svd.singular.clone()),
        svd_left: svd.as_ref().map(|svd| svd.left.concat()),
        svd_right: svd.as_ref().map(|svd| svd.right.concat()),
        svd_rank_1_per_s: svd.as_ref().map(Decomposition::rank_1),
        svd_betas_j: system::fitted_betas(&setup.groups),
        ..summary
    })
}

/// The visitor that measures a run.
struct Measuring<'a, 'b> {
    spec: &'a SimSpec,
    measurement: Measurement,
    limits: &'a Limits<'b>,
    details: &'a mut Details,
}

impl Visitor for Measuring<'_, '_> {
    type Output = Result<QueueSummary, SimError>;

    fn visit<P: QueuePolicy>(self, table: ServerTable, arrivals: Rescaled<Poisson>, policy: P) -> Self::Output {
        measure(self.spec, table, arrivals, policy, &self.measurement, self.limits, self.details)
    }
}
