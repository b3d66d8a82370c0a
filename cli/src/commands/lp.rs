//! `powersweep lp`: the linear programs of a manifest's systems, without a simulation.

use std::fmt::Write as _;

use comfy_table::CellAlignment;
use powersweep_engine::lp::structured::Decomposition;
use powersweep_engine::lp::{self, Allocation, Capacity, System};
use powersweep_engine::queues::policies::classes::system::{self, Groups};
use powersweep_engine::queues::policies::classes::{self, lpas};
use powersweep_engine::{Role, SimSpec};
use powersweep_experiments::{Digest, Sweep, TaskSpec};
use serde_json::{Value as Json, json};

use crate::args::LpArgs;
use crate::exit::{Failure, Kind, OrKind, Outcome, failure};
use crate::fitted::Table;
use crate::{inputs, screen};

/// Maximum number of systems shown; a sweep can have millions.
const SYSTEMS_MAX: usize = 1000;

/// Maximum number of tasks decoded, so that the command is fast for a sweep of any size.
const TASKS_MAX: u64 = 1_000_000;

/// A period in which a system does not change.
struct Phase {
    /// Start of the period (s).
    at_s: f64,
    system: System,
    capacity: Capacity,
}

/// One system with the capacities to allocate for.
struct Found {
    task: TaskSpec,
    groups: Groups,
    /// The phase from the start, and one for each change of arrivals or servers.
    phases: Vec<Phase>,
    /// Capacities c, one for each phase, with the label of the policy that uses them; lambda* and midpoint without such
    /// a policy.
    targets: Vec<(String, Vec<f64>)>,
}

/// Prints lambda*, theta*, delta* and loads of every system of a manifest, or of one task.
pub fn run(args: &LpArgs) -> Outcome {
    let manifest = inputs::manifest(&args.manifest)?;
    // These systems read no logs: the digests are arbitrary and never shown.
    let digests = manifest.logs().into_iter().map(|needed| {
        let digest = Digest::of(needed.log.as_bytes());
        (needed.log, digest)
    });
    let sweep = inputs::sweep(&manifest, &digests.collect())?;
    let found = systems(&sweep, args.index)?;
    if found.is_empty() {
        let reason = "no task has a system with a rate for each class: choose source = \"poisson-classes\" and machine = \
                    \"rate-matrix\" or \"structured\"";
        return Err(failure!(Usage, "{}: {reason}", args.manifest));
    }
    match args.output.is_json() {
        true => {
            let systems = found.iter().map(Found::json).collect::<Result<Vec<Json>, Failure>>()?;
            screen::print_json(json!({ "systems": systems }))
        }
        false => {
            let texts = found.iter().map(Found::text).collect::<Result<String, Failure>>()?;
            screen::print(texts.trim_end())
        }
    }
}

/// The distinct systems of a sweep, in the order of their first tasks.
fn systems(sweep: &Sweep, index: Option<u64>) -> Result<Vec<Found>, Failure> {
    let mut found: Vec<Found> = Vec::new();
    let mut next = index.or_else(|| sweep.next_included(0));
    for _ in 0..TASKS_MAX {
        let Some(at) = next else { break };
        let task = inputs::task(sweep, at)?;
        next = if index.is_some() { None } else { sweep.next_included(at + 1) };
        if !system::describes(&task.sim) {
            continue;
        }
        let systems = classes::systems(&task.sim).map_err(|problem| failure!(Usage, "{problem}"))?;
        let place = match found.iter().position(|known| known.is_of(&systems)) {
            Some(place) => place,
            None if found.len() == SYSTEMS_MAX => break,
            None => {
                found.push(Found::new(task.clone(), systems)?);
                found.len() - 1
            }
        };
        found[place].add_targets(&task.policy, &task.sim);
    }
    for found in &mut found {
        if found.targets.is_empty() {
            found.targets = vec![
                ("lambda*".to_owned(), found.lambdas().collect()),
                ("midpoint".to_owned(), found.lambdas().map(|lambda| (1.0 + lambda) / 2.0).collect()),
            ];
        }
    }
    Ok(found)
}

impl Found {
    fn new(task: TaskSpec, systems: Vec<(f64, System)>) -> Result<Found, Failure> {
        let groups = Groups::of(task.sim.choice(Role::Platform), systems[0].1.classes());
        let groups = groups.map_err(|problem| failure!(Usage, "{problem}"))?;
        let phase = |(at_s, system)| {
            let capacity = lp::capacity(&system).or_kind(Kind::Failure)?;
            Ok(Phase { at_s, system, capacity })
        };
        let phases = systems.into_iter().map(phase).collect::<Result<_, Failure>>()?;
        Ok(Found { task, groups, phases, targets: Vec::new() })
    }

    /// Whether the phases have these systems.
    fn is_of(&self, systems: &[(f64, System)]) -> bool {
        self.phases
            .iter()
            .map(|phase| (phase.at_s, &phase.system))
            .eq(systems.iter().map(|(at_s, system)| (*at_s, system)))
    }

    fn lambdas(&self) -> impl Iterator<Item = f64> {
        self.phases.iter().map(|phase| phase.capacity.lambda)
    }

    /// Adds the capacities that the policy uses, if it solves linear programs.
    fn add_targets(&mut self, label: &str, spec: &SimSpec) {
        let policy = spec.choice(Role::Policy);
        if *policy.component() == lpas::COMPONENT {
            let targets: Vec<f64> = self.lambdas().map(|lambda| lpas::target(policy, lambda)).collect();
            if self.targets.iter().all(|(_, known)| *known != targets) {
                self.targets.push((label.to_owned(), targets));
            }
        }
    }

    /// The allocations of a phase, with their labels.
    fn allocations(&self, phase: usize) -> Result<Vec<(&str, Allocation)>, Failure> {
        let Phase { system, capacity, .. } = &self.phases[phase];
        let solved = |target| lp::allocation(system, capacity, target).or_kind(Kind::Failure);
        self.targets.iter().map(|(label, targets)| Ok((label.as_str(), solved(targets[phase])?))).collect()
    }

    /// Values of servers as one row for each class, with one value for each group of equal servers, which share evenly.
    fn by_group(&self, values: &[f64]) -> Vec<Vec<f64>> {
        self.groups.of_firsts(values).chunks(self.groups.servers.len()).map(<[f64]>::to_vec).collect()
    }

    /// The first phase, with the later phases in `changes`.
    fn json(&self) -> Result<Json, Failure> {
        let changes = (1..self.phases.len()).map(|phase| self.phase_json(phase)).collect::<Result<Vec<_>, _>>()?;
        let svd = self.decomposition();
        let mut json = json!({
            "workload": &*self.task.workload, "platform": &*self.task.platform, "first_index": self.task.index,
            "group_servers": self.groups.servers, "singular_values": svd.as_ref().map(|svd| svd.singular.clone()),
            "betas_j": system::fitted_betas(&self.groups), "changes": changes,
        });
        if let (Json::Object(whole), Json::Object(start)) = (&mut json, self.phase_json(0)?) {
            whole.extend(start);
        }
        Ok(json)
    }

    fn phase_json(&self, phase: usize) -> Result<Json, Failure> {
        let Phase { at_s, system, capacity } = &self.phases[phase];
        let allocations: Vec<Json> = self
            .allocations(phase)?
            .iter()
            .map(|(label, allocation)| {
                json!({ "policy": label, "capacity": allocation.capacity, "power_w": allocation.power_w,
                        "delta": self.by_group(&allocation.delta),
                        "loads": self.by_group(&allocation.loads(system.machines())).concat() })
            })
            .collect();
        Ok(json!({ "at_s": at_s, "arrivals_per_s": system.arrivals_per_s(), "lambda": capacity.lambda,
                   "load": 1.0 / capacity.lambda, "theta": self.by_group(&capacity.theta), "allocations": allocations }))
    }

    fn decomposition(&self) -> Option<Decomposition> {
        Decomposition::of(self.groups.rates_per_s(), self.phases[0].system.classes())
    }

    fn text(&self) -> Result<String, Failure> {
        let mut text = format!("workload {}, platform {}", self.task.workload, self.task.platform);
        for (number, phase) in self.phases.iter().enumerate() {
            if number > 0 {
                let _ = write!(text, "from {} s on", screen::number(phase.at_s));
            }
            self.write_phase(&mut text, number)?;
        }
        let list = |values: &[f64]| values.iter().map(|v| format!("{v:.4}")).collect::<Vec<_>>().join(", ");
        if let (Some(svd), Some(betas)) = (self.decomposition(), system::fitted_betas(&self.groups)) {
            let start = if self.phases.len() > 1 { " at the start" } else { "" };
            let _ = writeln!(text, "singular values of the rates{start}: {}", list(&svd.singular));
            let _ = writeln!(text, "beta of each group{start} (J): {}\n", list(&betas));
        }
        Ok(text)
    }

    fn write_phase(&self, text: &mut String, number: usize) -> Result<(), Failure> {
        let Phase { system, capacity, .. } = &self.phases[number];
        let arrivals: Vec<String> = system.arrivals_per_s().iter().map(|rate| screen::number(*rate)).collect();
        let lambda = capacity.lambda;
        let _ = writeln!(text, ", arrivals a second {}", arrivals.join(", "));
        let _ = writeln!(text, "lambda* {lambda:.6}, load {:.6}\n", 1.0 / lambda);
        let _ = writeln!(text, "{}\n", self.matrix("theta*", &capacity.theta));
        for (label, allocation) in self.allocations(number)? {
            let _ = writeln!(text, "c {:.6} ({label}): {:.6} W", allocation.capacity, allocation.power_w);
            let _ = writeln!(text, "{}\n", self.matrix("delta*", &allocation.delta));
        }
        Ok(())
    }

    /// A matrix of shares; the last row has the loads.
    fn matrix(&self, name: &str, shares: &[f64]) -> Table {
        let mut table = screen::table();
        let heads = self.groups.servers.iter().zip(1..).map(|(count, group)| match count {
            1 => format!("group {group}"),
            _ => format!("group {group} ({count})"),
        });
        table.set_header([name.to_owned()].into_iter().chain(heads));
        let row = |label: String, values: &[f64]| -> Vec<String> {
            [label].into_iter().chain(values.iter().map(|value| format!("{value:.4}"))).collect()
        };
        let rows = self.by_group(shares);
        for (values, class) in rows.iter().zip(1..) {
            table.add_row(row(format!("class {class}"), values));
        }
        let loads: Vec<f64> =
            (0..self.groups.servers.len()).map(|group| rows.iter().map(|values| values[group]).sum()).collect();
        table.add_row(row("load".to_owned(), &loads));
        table.column_iter_mut().skip(1).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
        table
    }
}
