//! `powersweep lp`: the linear programs of a manifest's systems, without a simulation.

use std::fmt::Write as _;

use comfy_table::CellAlignment;
use powersweep::lp::{PhasePrograms, SystemPrograms};
use powersweep::{inputs::sweep, lp};
use powersweep_experiments::Digest;
use serde_json::json;

use crate::args::LpArgs;
use crate::exit::Outcome;
use crate::fitted::Table;
use crate::{inputs, screen};

/// Prints lambda*, theta*, delta* and loads of every system of a manifest, or of one task.
pub fn run(args: &LpArgs) -> Outcome {
    let manifest = inputs::manifest(&args.manifest)?;
    // These systems read no logs: the digests are arbitrary and never shown.
    let digests = manifest.logs().into_iter().map(|needed| {
        let digest = Digest::of(needed.log.as_bytes());
        (needed.log, digest)
    });
    let found = lp::of(&sweep(&manifest, &digests.collect())?, args.index)?;
    match args.output.is_json() {
        true => screen::print_json(json!({ "systems": found })),
        false => screen::print(found.iter().map(text).collect::<String>().trim_end()),
    }
}

fn text(found: &SystemPrograms) -> String {
    let mut text = format!("workload {}, platform {}", found.workload, found.platform);
    write_phase(&mut text, &found.start, &found.group_servers);
    for phase in &found.changes {
        let _ = write!(text, "from {} s on", screen::number(phase.at_s));
        write_phase(&mut text, phase, &found.group_servers);
    }
    let list = |values: &[f64]| values.iter().map(|v| format!("{v:.4}")).collect::<Vec<_>>().join(", ");
    if let (Some(singular), Some(betas)) = (&found.singular_values, &found.betas_j) {
        let start = if found.changes.is_empty() { "" } else { " at the start" };
        let _ = writeln!(text, "singular values of the rates{start}: {}", list(singular));
        let _ = writeln!(text, "beta of each group{start} (J): {}\n", list(betas));
    }
    text
}

fn write_phase(text: &mut String, phase: &PhasePrograms, servers: &[usize]) {
    let arrivals: Vec<String> = phase.arrivals_per_s.iter().map(|rate| screen::number(*rate)).collect();
    let _ = writeln!(text, ", arrivals a second {}", arrivals.join(", "));
    let _ = writeln!(text, "lambda* {:.6}, load {:.6}\n", phase.lambda, phase.load);
    let _ = writeln!(text, "{}\n", matrix("theta*", &phase.theta, servers));
    for allocation in &phase.allocations {
        let _ = writeln!(text, "c {:.6} ({}): {:.6} W", allocation.capacity, allocation.policy, allocation.power_w);
        let _ = writeln!(text, "{}\n", matrix("delta*", &allocation.delta, servers));
    }
}

/// A matrix of shares; the last row has the loads.
fn matrix(name: &str, shares: &[Vec<f64>], servers: &[usize]) -> Table {
    let mut table = screen::table();
    let heads = servers.iter().zip(1..).map(|(count, group)| match count {
        1 => format!("group {group}"),
        _ => format!("group {group} ({count})"),
    });
    table.set_header([name.to_owned()].into_iter().chain(heads));
    let row = |label: String, values: &[f64]| -> Vec<String> {
        [label].into_iter().chain(values.iter().map(|value| format!("{value:.4}"))).collect()
    };
    for (values, class) in shares.iter().zip(1..) {
        table.add_row(row(format!("class {class}"), values));
    }
    let loads: Vec<f64> = (0..servers.len()).map(|group| shares.iter().map(|values| values[group]).sum()).collect();
    table.add_row(row("load".to_owned(), &loads));
    table.column_iter_mut().skip(1).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    table
}
