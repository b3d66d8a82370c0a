//! `powersweep lp`: the linear programs of a manifest's systems, without simulating anything.

use std::fmt::Write as _;

use comfy_table::{CellAlignment, Table, presets};
use powersweep_engine::lp::structured::Decomposition;
use powersweep_engine::lp::{self, Allocation, Capacity, System};
use powersweep_engine::queueing::rates::parts::{self, Groups};
use powersweep_engine::{SimSpec, Slot};
use powersweep_experiments::{Sweep, TaskSpec};
use serde_json::{Value as Json, json};

use crate::args::{Format, LpArgs};
use crate::exit::{Exit, Failure, OrExit, Outcome};
use crate::{inputs, screen};

/// Systems shown at most; a sweep can have millions.
const SYSTEMS_MAX: usize = 1000;

/// Tasks looked at, so that a sweep of any size answers at once.
const TASKS_MAX: u64 = 1_000_000;

/// One system with what was asked of it.
struct Found {
    task: TaskSpec,
    system: System,
    groups: Groups,
    capacity: Capacity,
    /// Capacities c, with the label of the policy that asks for each; midpoint and lambda* if none does.
    targets: Vec<(String, f64)>,
}

/// Prints lambda*, theta*, delta* and loads of every system of a manifest, or of one task.
pub fn run(args: &LpArgs) -> Outcome {
    let manifest = inputs::manifest(&args.manifest)?;
    let digests = inputs::digests(&manifest, &inputs::library(&args.logs))?;
    let sweep = inputs::sweep(&manifest, &digests)?;
    let found = systems(&sweep, args.index)?;
    if found.is_empty() {
        let what = "no task has a system with a rate for each class: choose source = \"poisson-classes\" and machine = \
                    \"rate-matrix\" or \"structured\"";
        return Err(Failure::new(Exit::Usage, format!("{}: {what}", args.manifest)));
    }
    let mut text = String::new();
    let mut list = Vec::new();
    for found in &found {
        let solved: Vec<(&str, Allocation)> = found
            .targets
            .iter()
            .map(|(label, target)| Ok((label.as_str(), found.allocation(*target)?)))
            .collect::<Result<_, Failure>>()?;
        match args.format {
            Format::Json => list.push(found.json(&solved)),
            Format::Table => text.push_str(&found.text(&solved)),
        }
    }
    match args.format {
        Format::Json => screen::print_json(&Json::Array(list)),
        Format::Table => screen::print(text.trim_end()),
    }
}

/// The different systems of a sweep in order of their first task.
fn systems(sweep: &Sweep, index: Option<u64>) -> Result<Vec<Found>, Failure> {
    let mut found: Vec<Found> = Vec::new();
    let mut next = index.or_else(|| sweep.next_included(0));
    for _ in 0..TASKS_MAX {
        let Some(at) = next else { break };
        let task = sweep.task(at).ok_or_else(|| Failure::new(Exit::Usage, format!("the sweep has no task {at}")))?;
        next = if index.is_some() { None } else { sweep.next_included(at + 1) };
        if !parts::describes(&task.sim) {
            continue;
        }
        let system = parts::system(&task.sim).map_err(|problem| Failure::new(Exit::Usage, problem))?;
        let place = match found.iter().position(|known| known.system == system) {
            Some(place) => place,
            None if found.len() == SYSTEMS_MAX => break,
            None => {
                found.push(Found::new(task.clone(), system)?);
                found.len() - 1
            }
        };
        found[place].ask(&task.policy, &task.sim);
    }
    for found in &mut found {
        if found.targets.is_empty() {
            let lambda = found.capacity.lambda;
            found.targets = vec![("lambda*".to_owned(), lambda), ("midpoint".to_owned(), (1.0 + lambda) / 2.0)];
        }
    }
    Ok(found)
}

impl Found {
    fn new(task: TaskSpec, system: System) -> Result<Found, Failure> {
        let groups = Groups::of(task.sim.part(Slot::Platform), system.classes());
        let groups = groups.map_err(|problem| Failure::new(Exit::Usage, problem))?;
        let capacity = lp::capacity(&system).or_exit(Exit::Failure)?;
        Ok(Found { task, system, groups, capacity, targets: Vec::new() })
    }

    /// Adds the capacity that a policy of linear programs asks for.
    fn ask(&mut self, label: &str, spec: &SimSpec) {
        let policy = spec.part(Slot::Policy);
        if policy.entry().name == parts::LPAS.name {
            let target = parts::lpas_target(policy, self.capacity.lambda);
            if self.targets.iter().all(|(_, known)| *known != target) {
                self.targets.push((label.to_owned(), target));
            }
        }
    }

    fn allocation(&self, target: f64) -> Result<Allocation, Failure> {
        lp::allocation(&self.system, &self.capacity, target).or_exit(Exit::Failure)
    }

    /// Values by server as rows of classes with one value a group: servers of a group are equal, and share evenly.
    fn by_group(&self, values: &[f64]) -> Vec<Vec<f64>> {
        self.groups.of_firsts(values).chunks(self.groups.servers.len()).map(<[f64]>::to_vec).collect()
    }

    fn json(&self, solved: &[(&str, Allocation)]) -> Json {
        let machines = self.system.machines();
        let allocations: Vec<Json> = solved
            .iter()
            .map(|(label, allocation)| {
                json!({ "policy": label, "capacity": allocation.capacity, "power_w": allocation.power_w,
                        "delta": self.by_group(&allocation.delta),
                        "loads": self.by_group(&allocation.loads(machines)).concat() })
            })
            .collect();
        let svd = self.decomposition();
        json!({ "workload": &*self.task.workload, "platform": &*self.task.platform, "first_index": self.task.index,
                "group_servers": self.groups.servers, "arrivals_per_s": self.system.arrivals_per_s(),
                "lambda": self.capacity.lambda, "load": 1.0 / self.capacity.lambda,
                "theta": self.by_group(&self.capacity.theta), "allocations": allocations,
                "singular_values": svd.as_ref().map(|svd| svd.singular.clone()),
                "betas_j": parts::fitted_betas(&self.groups) })
    }

    fn decomposition(&self) -> Option<Decomposition> {
        Decomposition::of(self.groups.rates_per_s(), self.system.classes())
    }

    fn text(&self, solved: &[(&str, Allocation)]) -> String {
        let mut text = format!("workload {}, platform {}", self.task.workload, self.task.platform);
        let arrivals: Vec<String> = self.system.arrivals_per_s().iter().map(|rate| screen::number(*rate)).collect();
        let lambda = self.capacity.lambda;
        let _ = writeln!(text, ", arrivals a second {}", arrivals.join(", "));
        let _ = writeln!(text, "lambda* {lambda:.6}, load {:.6}\n", 1.0 / lambda);
        let theta = &self.capacity.theta;
        let _ = writeln!(text, "{}\n", self.matrix("theta*", theta));
        for (label, allocation) in solved {
            let _ = writeln!(text, "c {:.6} ({label}): {:.6} W", allocation.capacity, allocation.power_w);
            let _ = writeln!(text, "{}\n", self.matrix("delta*", &allocation.delta));
        }
        let list = |values: &[f64]| values.iter().map(|v| format!("{v:.4}")).collect::<Vec<_>>().join(", ");
        if let (Some(svd), Some(betas)) = (self.decomposition(), parts::fitted_betas(&self.groups)) {
            let _ = writeln!(text, "singular values of the rates: {}", list(&svd.singular));
            let _ = writeln!(text, "beta of each group (J): {}\n", list(&betas));
        }
        text
    }

    /// A matrix of shares with the loads below it.
    fn matrix(&self, name: &str, shares: &[f64]) -> Table {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
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
