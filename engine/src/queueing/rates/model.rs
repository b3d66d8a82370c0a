//! From a spec to a run of a policy of this folder.
use super::super::arrivals::{ClassStream, Poisson, Work};
use super::super::measure::Measurement;
use super::super::policy::QueuePolicy;
use super::super::run::{is_part, measure_arrivals};
use super::super::servers::ServerTable;
use super::super::summary::QueueSummary;
use super::parts::{self, Groups};
use super::phases::{self, Plan};
use super::{Adapts, Changing, Dvs, Fcfs, Frequency, Lpas, OrderedBeta, Phase, Pme, Rescaled, Utilization, Window};
use crate::lp::{self, Allocation, System};
use crate::registry::{self, Entry, Part, Slot};
use crate::{Details, Limits, SimError, SimSpec};

/// Whether a policy is one of this folder.
pub(in crate::queueing) fn is_policy(name: &str) -> bool {
    parts::POLICIES.iter().any(|entry| entry.name == name)
}

/// What is wrong with a spec whose policy is of this folder, a sentence each.
pub(in crate::queueing) fn problems(spec: &SimSpec) -> Vec<String> {
    let mut problems = unfit(spec, true);
    if !problems.is_empty() {
        return problems;
    }
    let system = match parts::system(spec) {
        Ok(system) => system,
        Err(problem) => return vec![problem],
    };
    problems.extend(policy_problem(spec, &system));
    problems.extend(change_problem(spec, &system));
    if spec.part(Slot::Statistics).entry().name == "steady-state" {
        problems.extend(overloaded(&system));
    }
    problems
}

/// What is wrong with the changes of the system.
fn change_problem(spec: &SimSpec, system: &System) -> Option<String> {
    let changes = || {
        let groups = Groups::of(spec.part(Slot::Platform), system.classes())?;
        let plans = phases::of(spec, &groups)?;
        plans.iter().try_for_each(|plan| phases::system(plan, system, &groups).map(|_| ()))?;
        Ok(plans.len() - 1)
    };
    let count = match changes() {
        Ok(count) => count,
        Err(problem) => return Some(problem),
    };
    let kind = spec.part(Slot::Policy).entry();
    let speeds = spec.part(Slot::Platform).get("speed_change_at_s").is_some();
    if speeds && (*kind == parts::ORDERED_BETA || *kind == parts::DVS) {
        let others = [parts::FCFS.name, parts::PME.name, parts::LPAS.name].map(|name| format!("\"{name}\"")).join(", ");
        return Some(format!(
            "`speed_change_at_s` does not go with `kind` \"{}\", which switches and slows servers itself: choose one of \
             {others}",
            kind.name
        ));
    }
    (count > 0 && spec.part(Slot::Statistics).entry().name == "steady-state").then(|| {
        "`arrivals_change_at_s` and `speed_change_at_s` have no steady state: choose `statistics_kind` \"horizon\""
            .to_owned()
    })
}

/// Parts of this folder beside a policy of another one, a sentence each.
pub(in crate::queueing) fn refused(spec: &SimSpec) -> Vec<String> {
    unfit(spec, false)
}

/// Source and platform that do not go with the policy: those of this folder belong to its policies.
fn unfit(spec: &SimSpec, own: bool) -> Vec<String> {
    let kind = spec.part(Slot::Policy).entry().name;
    let is_own = |entry: &Entry| *entry == parts::SOURCE || parts::PLATFORMS.contains(&entry);
    let mut problems = Vec::new();
    for slot in [Slot::Source, Slot::Platform] {
        let (key, found) = (slot.key(), spec.part(slot).entry());
        if is_own(found) != own {
            let fitting = registry::entries(slot).filter(|e| is_part(e) && is_own(e) == own);
            let names: Vec<String> = fitting.map(|entry| format!("\"{}\"", entry.name)).collect();
            let what = if own { "has no rate for each class of tasks" } else { "is of several classes of tasks" };
            let needs = if own { "needs one" } else { "knows one class" };
            problems.push(format!(
                "`{key}` \"{}\" {what}, `kind` \"{kind}\" {needs}: choose {}",
                found.name,
                names.join(" or ")
            ));
        }
    }
    problems
}

fn policy_problem(spec: &SimSpec, system: &System) -> Option<String> {
    let policy = spec.part(Slot::Policy);
    match policy.entry().name {
        name if name == parts::LPAS.name => {
            let both = policy.get("lpas_capacity").is_some() && policy.get("lpas_capacity_share").is_some();
            both.then(|| "`lpas_capacity` and `lpas_capacity_share` both say what the capacity is: give one".to_owned())
        }
        name if name == parts::ORDERED_BETA.name => betas(spec, system.classes()).err(),
        name if name == parts::DVS.name => frequencies(policy).err(),
        _ => None,
    }
}

/// Why there is no steady state.
fn overloaded(system: &System) -> Option<String> {
    let lambda = lp::capacity(system).ok()?.lambda;
    (lambda <= 1.0).then(|| {
        format!("a steady state needs a capacity lambda* above 1, `class_arrivals_per_s` and `arrivals_factor` make it {lambda}")
    })
}

/// beta of each server.
fn betas(spec: &SimSpec, classes: usize) -> Result<Vec<f64>, String> {
    let (policy, platform) = (spec.part(Slot::Policy), spec.part(Slot::Platform));
    let groups = Groups::of(platform, classes)?;
    let count = groups.servers.len();
    let of_groups = match policy.get("beta_groups_j") {
        Some(_) => policy.reals("beta_groups_j").to_vec(),
        None => parts::fitted_betas(&groups).ok_or_else(|| {
            let key = parts::rates_key(platform);
            format!("`{key}` has a group without a rate: give the betas (`beta_groups_j`)")
        })?,
    };
    if of_groups.len() != count {
        let found = of_groups.len();
        return Err(format!("`beta_groups_j` has {found} values: {count} groups (`group_idle_w`) need {count}"));
    }
    Ok(groups.by_server(&of_groups))
}

/// The frequencies of a policy `class-dvs`, over the last.
fn frequencies(policy: &Part) -> Result<Vec<Frequency>, String> {
    let [mhz, busy_w, idle_w] = ["dvs_mhz", "dvs_busy_w", "dvs_idle_w"].map(|name| policy.reals(name));
    let count = mhz.len();
    for (name, found) in [("dvs_busy_w", busy_w.len()), ("dvs_idle_w", idle_w.len())] {
        if found != count {
            return Err(format!("`{name}` has {found} values and `dvs_mhz` {count}: each frequency needs one"));
        }
    }
    if let Some(pair) = mhz.windows(2).find(|pair| pair[0] >= pair[1]) {
        return Err(format!("`dvs_mhz` must ascend: {} is followed by {}", pair[0], pair[1]));
    }
    let over_last = |values: &[f64], i: usize| values[i] / values[count - 1];
    let frequency =
        |i| Frequency { share: over_last(mhz, i), busy_w: over_last(busy_w, i), idle_w: over_last(idle_w, i) };
    Ok((0..count).map(frequency).collect())
}

/// Servers as the kernel takes them.
fn table(system: &System) -> ServerTable {
    let (classes, machines) = (system.classes(), system.machines());
    let cells = || (0..classes).flat_map(|class| (0..machines).map(move |machine| (class, machine)));
    let rates = cells().map(|(i, j)| system.rate_per_s(i, j)).collect();
    let busy_w = cells().map(|(i, j)| system.busy_w(i, j)).collect();
    ServerTable::with_idle_w(machines, classes, rates, busy_w, system.idle_w().to_vec())
}

/// Runs a spec without [`problems`].
///
/// # Errors
/// Those of the run, and of the linear programs.
pub(in crate::queueing) fn simulate(
    spec: &SimSpec,
    limits: &Limits<'_>,
    details: &mut Details,
) -> Result<QueueSummary, SimError> {
    let system = parts::system(spec).map_err(SimError::Invalid)?;
    let groups = Groups::of(spec.part(Slot::Platform), system.classes()).map_err(SimError::Invalid)?;
    let plans = phases::of(spec, &groups).map_err(SimError::Invalid)?;
    let capacity = lp::capacity(&system).map_err(unsolved)?;
    let measurement = Measurement { groups: groups.numbers(), idle_counts: true, offered_load: None };
    let mut run =
        Run { spec, system: &system, groups: &groups, plans: &plans, measurement: &measurement, limits, details };
    let (policy, classes) = (spec.part(Slot::Policy), system.classes());
    let mut allocations = Vec::new();
    let summary = match policy.entry() {
        entry if *entry == parts::LPAS => {
            allocations = run.allocations()?;
            let lpas = Lpas::new(allocations[0].delta.clone(), system.machines());
            run.measure_changing(lpas, &allocations)
        }
        entry if *entry == parts::PME => {
            let pme = Pme::new(&table(&system));
            run.measure_changing(pme, &[])
        }
        entry if *entry == parts::ORDERED_BETA => {
            let window = Window {
                length_s: policy.real("beta_window_s"),
                target_s: policy.real("beta_target_s"),
                tolerance: policy.real("beta_tolerance"),
            };
            let betas = betas(spec, classes).map_err(SimError::Invalid)?;
            run.measure(table(&system), OrderedBeta::new(&betas, classes, window))
        }
        entry if *entry == parts::DVS => {
            let over = if policy.text("dvs_utilization") == "total" { Utilization::Total } else { Utilization::Period };
            let frequencies = frequencies(policy).map_err(SimError::Invalid)?;
            let dvs = Dvs::new(system.machines(), classes, frequencies, policy.real("dvs_period_s"), over);
            run.measure(table(&system), dvs)
        }
        _ => run.measure_changing(Fcfs::new(classes), &[]),
    }?;
    let first = allocations.first();
    Ok(QueueSummary {
        lp_lambda: Some(capacity.lambda),
        lp_capacity: first.map(|solved| solved.capacity),
        lp_power_w: first.map(|solved| solved.power_w),
        lp_shares: first.map(|solved| groups.of_firsts(&solved.delta)),
        lp_solved_count: first.map(|_| allocations.len() as u64),
        ..summary
    })
}

fn unsolved(error: lp::LpError) -> SimError {
    SimError::Invalid(error.to_string())
}

/// What every policy is run with.
struct Run<'a, 'b> {
    spec: &'a SimSpec,
    system: &'a System,
    groups: &'a Groups,
    plans: &'a [Plan],
    measurement: &'a Measurement,
    limits: &'a Limits<'b>,
    details: &'a mut Details,
}

impl Run<'_, '_> {
    /// The shares of each phase.
    fn allocations(&self) -> Result<Vec<Allocation>, SimError> {
        let of = |plan: &Plan| {
            let system = phases::system(plan, self.system, self.groups).map_err(SimError::Invalid)?;
            let capacity = lp::capacity(&system).map_err(unsolved)?;
            let target = parts::lpas_target(self.spec.part(Slot::Policy), capacity.lambda);
            lp::allocation(&system, &capacity, target).map_err(unsolved)
        };
        self.plans.iter().map(of).collect()
    }

    /// Runs a policy that can go on when servers change, if they do.
    fn measure_changing<P: Adapts>(&mut self, policy: P, allocations: &[Allocation]) -> Result<QueueSummary, SimError> {
        let mut table = table(self.system);
        if self.plans.len() == 1 {
            return self.measure(table, policy);
        }
        // Off are only servers that have left.
        table.off_w.fill(0.0);
        let phase = |(i, plan): (usize, &Plan)| Phase {
            at_s: plan.at_s,
            speeds: self.groups.by_server(&plan.speeds),
            shares: allocations.get(i).map(|solved| solved.delta.clone()),
        };
        let phases = self.plans.iter().enumerate().map(phase).collect();
        self.measure(table, Changing::new(policy, phases))
    }

    fn measure<P: QueuePolicy>(&mut self, table: ServerTable, policy: P) -> Result<QueueSummary, SimError> {
        let stream = |rate_per_s: &f64| ClassStream { rate_per_s: *rate_per_s, work: Work::Exponential { mean: 1.0 } };
        let streams: Vec<_> = self.system.arrivals_per_s().iter().map(stream).collect();
        let factors = self.plans.iter().map(|plan| (plan.at_s, plan.arrivals)).collect();
        let arrivals = Rescaled::new(Poisson::new(&streams, self.spec.seed), factors);
        measure_arrivals(self.spec, table, arrivals, policy, self.measurement, self.limits, self.details)
    }
}
