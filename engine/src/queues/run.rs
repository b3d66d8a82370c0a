//! From a spec to a queueing run: which components belong here, which fit together.
use super::kernel::arrivals::{Arrivals, ClassStream, Poisson};
use super::kernel::policy::QueuePolicy;
use super::kernel::servers::{ServerTable, Servers};
use super::kernel::simulation::Simulation;
use super::open_poisson;
use super::policies::buffered::{self, Buffered};
use super::policies::classes;
use super::server_classes::{self, ServerClasses};
use super::statistics::measure::Measurement;
use super::statistics::summary::QueueSummary;
use super::statistics::{horizon, steady_state};
use crate::details::Details;
use crate::error::SimError;
use crate::limits::Limits;
use crate::spec::{Choice, Component, Role, SimSpec};

/// The components of queueing models, beside the policies of classes of jobs; all others are of batch jobs.
static COMPONENTS: &[&Component] = &[
    &open_poisson::COMPONENT,
    &server_classes::COMPONENT,
    &buffered::COMPONENT,
    &classes::system::SOURCE,
    &classes::system::RATE_MATRIX,
    &classes::system::STRUCTURED,
    &steady_state::COMPONENT,
    &horizon::COMPONENT,
];

/// The roles that a queueing model uses. The others are of batch jobs: records of logs, power by gears, order and
/// overtaking of rigid jobs, gears, active procs and caps on them.
pub const ROLES: [Role; 4] = [Role::Source, Role::Platform, Role::Policy, Role::Statistics];

/// Whether a component is one of queueing models.
pub fn is_component(component: &Component) -> bool {
    COMPONENTS.contains(&component) || classes::POLICIES.iter().any(|kind| kind.component == component)
}

/// Whether a spec is of a queueing model: its policy says so.
pub fn is_model(spec: &SimSpec) -> bool {
    is_component(spec.choice(Role::Policy).component())
}

/// What is wrong with a spec that no single value shows, a sentence each: components of the other kind, and for a queueing
/// model what its components say.
pub fn problems(spec: &SimSpec) -> Vec<String> {
    let mut problems = Vec::new();
    let model = is_model(spec);
    let kind = spec.choice(Role::Policy).component().name;
    for role in ROLES {
        let component = spec.choice(role).component();
        if is_component(component) != model {
            let (is, needs) = if model { ("rigid batch jobs", "queues") } else { ("queues", "rigid batch jobs") };
            let names: Vec<_> = crate::components::of(role)
                .filter(|component| is_component(component) == model)
                .map(|component| format!("\"{}\"", component.name))
                .collect();
            problems.push(format!(
                "`{}` \"{}\" is for {is}, the policy `kind` \"{kind}\" schedules {needs}: choose {}",
                role.key(),
                component.name,
                names.join(" or ")
            ));
        }
    }
    if model {
        problems
            .extend(Role::ALL.into_iter().filter(|role| !ROLES.contains(role)).filter_map(|role| unused(spec, role)));
    }
    if model && problems.is_empty() {
        problems.extend(model_problems(spec));
    }
    problems
}

/// A role of batch jobs that a queueing spec changes.
fn unused(spec: &SimSpec, role: Role) -> Option<String> {
    let choice = spec.choice(role);
    let default = crate::components::find(role, role.default_component()).map(Choice::new)?;
    let kind = spec.choice(Role::Policy).component().name;
    let why = "it is of rigid batch jobs, and queues have jobs of one proc on named servers";
    if choice.component() != default.component() {
        return Some(format!(
            "`{}` \"{}\" does not apply to `kind` \"{kind}\": {why}",
            role.key(),
            choice.component().name
        ));
    }
    let changed = choice.component().params.iter().find(|param| choice.get(param.name) != default.get(param.name))?;
    Some(format!("`{}` does not apply to `kind` \"{kind}\": {why}", changed.name))
}

fn model_problems(spec: &SimSpec) -> Vec<String> {
    if classes::model::kind_of(spec.choice(Role::Policy).component().name).is_some() {
        return classes::model::problems(spec);
    }
    let (source, platform) = (spec.choice(Role::Source), spec.choice(Role::Platform));
    let strange = classes::model::refused(spec);
    if !strange.is_empty() {
        return strange;
    }
    let mut problems = server_classes::problems(platform);
    problems.extend(open_poisson::problems(source));
    let statistics = spec.choice(Role::Statistics);
    if statistics.component().name == steady_state::COMPONENT.name {
        problems.extend(steady_state::problems(statistics));
        if problems.is_empty() {
            problems.extend(ClassModel::new(spec).overloaded());
        }
    }
    problems
}

/// One class of jobs on a cluster of server classes.
struct ClassModel {
    classes: ServerClasses,
    stream: ClassStream,
}

impl ClassModel {
    /// The model of a spec whose components have no problems of their own.
    fn new(spec: &SimSpec) -> ClassModel {
        let classes = ServerClasses::new(spec.choice(Role::Platform));
        let stream = open_poisson::stream(spec.choice(Role::Source), &classes);
        ClassModel { classes, stream }
    }

    fn offered_load(&self) -> f64 {
        self.stream.rate_per_s * self.stream.work.mean() / self.classes.capacity_per_s(true)
    }

    /// Why there is no steady state.
    fn overloaded(&self) -> Option<String> {
        let load = self.offered_load();
        (load >= 1.0).then(|| {
            format!(
                "a steady state needs an offered load below 1, `target_utilization` or `arrival_rate_per_s` make it {load}"
            )
        })
    }

    fn measurement(&self, idle_counts: bool) -> Measurement {
        Measurement { groups: self.classes.groups(), idle_counts, offered_load: Some(self.offered_load()) }
    }
}

/// Runs the queueing model of a spec.
///
/// # Errors
/// See [`SimError`].
pub(crate) fn simulate(spec: &SimSpec, limits: &Limits<'_>, details: &mut Details) -> Result<QueueSummary, SimError> {
    if let Some(problem) = spec.problems().into_iter().next() {
        return Err(SimError::Invalid(problem));
    }
    let policy = spec.choice(Role::Policy);
    match policy.component().name {
        "buffered" => {
            let model = ClassModel::new(spec);
            let buffered = Buffered::of(policy, &model.classes);
            let measurement = model.measurement(policy.text("idle_servers") == "on");
            measure(spec, model.classes.table(), &[model.stream], buffered, &measurement, limits, details)
        }
        name if classes::model::kind_of(name).is_some() => classes::model::simulate(spec, limits, details),
        other => Err(SimError::Invalid(format!("no queueing model has the policy `kind` \"{other}\""))),
    }
}

/// Runs a policy and measures it by the spec's statistics.
pub(super) fn measure<P: QueuePolicy>(
    spec: &SimSpec,
    table: ServerTable,
    streams: &[ClassStream],
    policy: P,
    measurement: &Measurement,
    limits: &Limits<'_>,
    details: &mut Details,
) -> Result<QueueSummary, SimError> {
    measure_arrivals(spec, table, Poisson::new(streams, spec.seed), policy, measurement, limits, details)
}

/// The same with arrivals of any kind.
pub(super) fn measure_arrivals<A: Arrivals, P: QueuePolicy>(
    spec: &SimSpec,
    table: ServerTable,
    arrivals: A,
    policy: P,
    measurement: &Measurement,
    limits: &Limits<'_>,
    details: &mut Details,
) -> Result<QueueSummary, SimError> {
    let simulation = Simulation::new(arrivals, policy, Servers::new(table)?);
    let statistics = spec.choice(Role::Statistics);
    match statistics.component().name {
        "horizon" => horizon::run(statistics, measurement, simulation, limits),
        _ => steady_state::run(statistics, measurement, simulation, limits, details),
    }
}
