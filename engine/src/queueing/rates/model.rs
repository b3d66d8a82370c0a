//! From a spec to a run of a policy of this folder.
use super::super::arrivals::{ClassStream, Work};
use super::super::measure::Measurement;
use super::super::run::{is_part, measure};
use super::super::servers::ServerTable;
use super::super::summary::QueueSummary;
use super::parts::{self, Groups};
use super::{Dvs, Fcfs, Frequency, Lpas, OrderedBeta, Pme, Utilization, Window};
use crate::lp::{self, System};
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
    if spec.part(Slot::Statistics).entry().name == "steady-state" {
        problems.extend(overloaded(&system));
    }
    problems
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
        None => parts::fitted_betas(&groups)
            .ok_or("`group_rates_per_s` has a group without a rate: give the betas (`beta_groups_j`)")?,
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
    let unsolved = |error: lp::LpError| SimError::Invalid(error.to_string());
    let capacity = lp::capacity(&system).map_err(unsolved)?;
    let policy = spec.part(Slot::Policy);
    let (classes, machines) = (system.classes(), system.machines());
    let work = Work::Exponential { mean: 1.0 };
    let streams: Vec<_> = system.arrivals_per_s().iter().map(|&rate_per_s| ClassStream { rate_per_s, work }).collect();
    let measurement = Measurement { groups: groups.numbers(), idle_counts: true, offered_load: None };
    let table = table(&system);
    let name = policy.entry().name;
    let mut allocation = None;
    let mut run = Run { spec, streams: &streams, measurement: &measurement, limits, details };
    let summary = if name == parts::LPAS.name {
        let target = parts::lpas_target(policy, capacity.lambda);
        let solved = lp::allocation(&system, &capacity, target).map_err(unsolved)?;
        let lpas = Lpas::new(solved.delta.clone(), machines);
        allocation = Some(solved);
        run.measure(table, lpas)
    } else if name == parts::PME.name {
        let pme = Pme::new(&table);
        run.measure(table, pme)
    } else if name == parts::ORDERED_BETA.name {
        let window = Window {
            length_s: policy.real("beta_window_s"),
            target_s: policy.real("beta_target_s"),
            tolerance: policy.real("beta_tolerance"),
        };
        run.measure(table, OrderedBeta::new(&betas(spec, classes).map_err(SimError::Invalid)?, classes, window))
    } else if name == parts::DVS.name {
        let over = if policy.text("dvs_utilization") == "total" { Utilization::Total } else { Utilization::Period };
        let frequencies = frequencies(policy).map_err(SimError::Invalid)?;
        run.measure(table, Dvs::new(machines, classes, frequencies, policy.real("dvs_period_s"), over))
    } else {
        run.measure(table, Fcfs::new(classes))
    }?;
    Ok(QueueSummary {
        lp_lambda: Some(capacity.lambda),
        lp_capacity: allocation.as_ref().map(|solved| solved.capacity),
        lp_power_w: allocation.as_ref().map(|solved| solved.power_w),
        lp_shares: allocation.map(|solved| groups.of_firsts(&solved.delta)),
        ..summary
    })
}

/// What every policy is run with.
struct Run<'a, 'b> {
    spec: &'a SimSpec,
    streams: &'a [ClassStream],
    measurement: &'a Measurement,
    limits: &'a Limits<'b>,
    details: &'a mut Details,
}

impl Run<'_, '_> {
    fn measure<P: super::super::QueuePolicy>(
        &mut self,
        table: ServerTable,
        policy: P,
    ) -> Result<QueueSummary, SimError> {
        measure(self.spec, table, self.streams, policy, self.measurement, self.limits, self.details)
    }
}
