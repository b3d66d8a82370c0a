//! From a spec to a queueing run: which parts belong here, which fit together.
use super::arrivals::{Arrivals, ClassStream, Poisson};
use super::buffered::{self, Buffered};
use super::measure::Measurement;
use super::policy::QueuePolicy;
use super::server_classes::{self, ServerClasses};
use super::servers::{ServerTable, Servers};
use super::simulation::Simulation;
use super::summary::QueueSummary;
use super::{horizon, open_poisson, rates, steady_state};
use crate::registry::{Entry, Part, Slot};
use crate::{Details, Limits, SimError, SimSpec};

/// The parts of queueing models, beside the policies of classes of tasks; all others are of batch jobs.
static PARTS: &[&Entry] = &[
    &open_poisson::ENTRY,
    &server_classes::ENTRY,
    &buffered::ENTRY,
    &rates::parts::SOURCE,
    &rates::parts::RATE_MATRIX,
    &rates::parts::STRUCTURED,
    &steady_state::ENTRY,
    &horizon::ENTRY,
];

/// The slots that a queueing model uses. The others are of batch jobs: records of logs, power by gears, order and
/// overtaking of rigid jobs, gears, active procs and caps on them.
pub const SLOTS: [Slot; 4] = [Slot::Source, Slot::Platform, Slot::Policy, Slot::Statistics];

/// Whether a part is one of queueing models.
pub fn is_part(entry: &Entry) -> bool {
    PARTS.contains(&entry) || rates::POLICIES.iter().any(|kind| kind.entry == entry)
}

/// Whether a spec is of a queueing model: its policy says so.
pub fn is_model(spec: &SimSpec) -> bool {
    is_part(spec.part(Slot::Policy).entry())
}

/// What is wrong with a spec that no single value shows, a sentence each: parts of the other kind, and for a queueing
/// model what its parts say.
pub fn problems(spec: &SimSpec) -> Vec<String> {
    let mut problems = Vec::new();
    let model = is_model(spec);
    let kind = spec.part(Slot::Policy).entry().name;
    for slot in SLOTS {
        let entry = spec.part(slot).entry();
        if is_part(entry) != model {
            let (is, needs) = if model { ("rigid batch jobs", "queues") } else { ("queues", "rigid batch jobs") };
            let names: Vec<_> = crate::registry::entries(slot)
                .filter(|entry| is_part(entry) == model)
                .map(|entry| format!("\"{}\"", entry.name))
                .collect();
            problems.push(format!(
                "`{}` \"{}\" is for {is}, the policy `kind` \"{kind}\" schedules {needs}: choose {}",
                slot.key(),
                entry.name,
                names.join(" or ")
            ));
        }
    }
    if model {
        problems
            .extend(Slot::ALL.into_iter().filter(|slot| !SLOTS.contains(slot)).filter_map(|slot| unused(spec, slot)));
    }
    if model && problems.is_empty() {
        problems.extend(model_problems(spec));
    }
    problems
}

/// A slot of batch jobs that a queueing spec changes.
fn unused(spec: &SimSpec, slot: Slot) -> Option<String> {
    let part = spec.part(slot);
    let default = crate::registry::find(slot, slot.default_part()).map(Part::new)?;
    let kind = spec.part(Slot::Policy).entry().name;
    let why = "it is of rigid batch jobs, and queues have jobs of one proc on named servers";
    if part.entry() != default.entry() {
        return Some(format!("`{}` \"{}\" does not apply to `kind` \"{kind}\": {why}", slot.key(), part.entry().name));
    }
    let changed = part.entry().params.iter().find(|param| part.get(param.name) != default.get(param.name))?;
    Some(format!("`{}` does not apply to `kind` \"{kind}\": {why}", changed.name))
}

fn model_problems(spec: &SimSpec) -> Vec<String> {
    if rates::model::kind_of(spec.part(Slot::Policy).entry().name).is_some() {
        return rates::model::problems(spec);
    }
    let (source, platform) = (spec.part(Slot::Source), spec.part(Slot::Platform));
    let strange = rates::model::refused(spec);
    if !strange.is_empty() {
        return strange;
    }
    let mut problems = server_classes::problems(platform);
    problems.extend(open_poisson::problems(source));
    let statistics = spec.part(Slot::Statistics);
    if statistics.entry().name == steady_state::ENTRY.name {
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
    /// The model of a spec whose parts have no problems of their own.
    fn new(spec: &SimSpec) -> ClassModel {
        let classes = ServerClasses::new(spec.part(Slot::Platform));
        let stream = open_poisson::stream(spec.part(Slot::Source), &classes);
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
    let policy = spec.part(Slot::Policy);
    match policy.entry().name {
        "buffered" => {
            let model = ClassModel::new(spec);
            let buffered = Buffered::of(policy, &model.classes);
            let measurement = model.measurement(policy.text("idle_servers") == "on");
            measure(spec, model.classes.table(), &[model.stream], buffered, &measurement, limits, details)
        }
        name if rates::model::kind_of(name).is_some() => rates::model::simulate(spec, limits, details),
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
    let statistics = spec.part(Slot::Statistics);
    match statistics.entry().name {
        "horizon" => horizon::run(statistics, measurement, simulation, limits),
        _ => steady_state::run(statistics, measurement, simulation, limits, details),
    }
}
