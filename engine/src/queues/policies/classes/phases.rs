//! The changes of a spec's system: of the arrival rates, and of groups of servers.
use super::system::{self, Groups};
use crate::lp::System;
use crate::spec::{Choice, Role, SimSpec};

/// Greatest number of changes: each needs the solution of two linear programs.
const CHANGES_MAX: usize = 10_000;

/// A phase of the spec, by groups of servers.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Plan {
    /// Its first instant (s).
    pub(super) at_s: f64,
    /// Factor of all arrival rates.
    pub(super) arrivals: f64,
    /// Factor of the rates of each group; 0: the group has left.
    pub(super) speeds: Vec<f64>,
}

/// The phases of a spec in order of time, the first from 0 with all factors 1.
///
/// # Errors
/// A sentence that names the parameters that do not fit.
pub(super) fn of(spec: &SimSpec, groups: &Groups) -> Result<Vec<Plan>, String> {
    let (source, platform) = (spec.choice(Role::Source), spec.choice(Role::Platform));
    let arrivals = lists(source, ["arrivals_change_at_s", "arrivals_change_factors"])?;
    let [arrivals_s, factors] = arrivals;
    if let Some(pair) = arrivals_s.windows(2).find(|pair| pair[0] >= pair[1]) {
        return Err(format!("`arrivals_change_at_s` must ascend: {} is followed by {}", pair[0], pair[1]));
    }
    let [speeds_s, numbers, speeds] =
        lists(platform, ["speed_change_at_s", "speed_change_groups", "speed_change_factors"])?;
    if let Some(pair) = speeds_s.windows(2).find(|pair| pair[0] > pair[1]) {
        return Err(format!("`speed_change_at_s` must not descend: {} is followed by {}", pair[0], pair[1]));
    }
    let count = groups.servers.len();
    if let Some(number) = numbers.iter().find(|n| n.fract() != 0.0 || **n > count as f64) {
        return Err(format!("`speed_change_groups` must be numbers of groups, 1 to {count}, not {number}"));
    }
    if arrivals_s.len() + speeds_s.len() > CHANGES_MAX {
        return Err(format!("`arrivals_change_at_s` and `speed_change_at_s` have more than {CHANGES_MAX} instants"));
    }
    let mut instants: Vec<f64> = arrivals_s.iter().chain(speeds_s).copied().collect();
    instants.sort_by(f64::total_cmp);
    instants.dedup();
    let mut plans = vec![Plan { at_s: 0.0, arrivals: 1.0, speeds: vec![1.0; count] }];
    for at_s in instants {
        let mut plan = Plan { at_s, ..plans[plans.len() - 1].clone() };
        if let Some(i) = arrivals_s.iter().position(|s| *s == at_s) {
            plan.arrivals = factors[i];
        }
        for (i, _) in speeds_s.iter().enumerate().filter(|(_, s)| **s == at_s) {
            plan.speeds[numbers[i] as usize - 1] = speeds[i];
        }
        plans.push(plan);
    }
    Ok(plans)
}

/// Lists that must have the same length; a list that is not given is empty.
fn lists<'a, const N: usize>(choice: &'a Choice, names: [&'static str; N]) -> Result<[&'a [f64]; N], String> {
    let given = names.map(|name| if choice.get(name).is_some() { choice.reals(name) } else { &[] });
    if let Some((name, list)) = names.iter().zip(given).find(|(_, list)| list.len() != given[0].len()) {
        let (first, count) = (names[0], given[0].len());
        return Err(format!("`{name}` has {} values and `{first}` {count}: each change needs one of each", list.len()));
    }
    Ok(given)
}

/// The system of each phase of a spec whose platform and source are of this folder, with its first instant (s).
///
/// # Errors
/// A sentence that names the parameters that do not fit.
pub fn systems(spec: &SimSpec) -> Result<Vec<(f64, System)>, String> {
    let whole = system::system(spec)?;
    let groups = Groups::of(spec.choice(Role::Platform), whole.classes())?;
    let plans = of(spec, &groups)?;
    plans.iter().map(|plan| Ok((plan.at_s, system(plan, &whole, &groups)?))).collect()
}

/// The system of a phase; servers that have left have rates of 0.
///
/// # Errors
/// A sentence with the instant if a class has no server left.
pub(super) fn system(plan: &Plan, whole: &System, groups: &Groups) -> Result<System, String> {
    let (classes, machines) = (whole.classes(), whole.machines());
    let speeds = groups.by_server(&plan.speeds);
    let cells = || (0..classes).flat_map(|class| (0..machines).map(move |machine| (class, machine)));
    let rates = cells().map(|(class, machine)| whole.rate_per_s(class, machine) * speeds[machine]).collect();
    let busy_w = cells().map(|(class, machine)| whole.busy_w(class, machine)).collect();
    let arrivals = whole.arrivals_per_s().iter().map(|rate| rate * plan.arrivals).collect();
    System::new(arrivals, rates, busy_w, whole.idle_w().to_vec())
        .map_err(|error| format!("`speed_change_factors`: from {} s on, {error}", plan.at_s))
}
