//! `powersweep conformance`: invariants that every policy must keep, for a policy from outside.

use powersweep::conformance::{Conformance, Policy};
use serde_json::json;

use crate::args::ConformanceArgs;
use crate::exit::{Exit, Kind, Outcome, failure};
use crate::{inputs, screen};

/// Runs the suite; the exit code is 1 if the policy breaks an invariant.
pub fn run(args: &ConformanceArgs) -> Outcome {
    let policy = match (&args.module, &args.formula) {
        (Some(file), _) => Policy::File(file.clone()),
        (None, Some(formula)) => Policy::Formula(formula.clone()),
        (None, None) => return Err(failure!(Usage, "name a policy by --module or --formula")),
    };
    let found = Conformance::of(&policy, args.workloads, &args.names, &inputs::library(&args.logs), &|| false)?;
    if args.output.is_json() {
        screen::print_json(json!(found))?;
    } else {
        screen::print(&text(&found))?;
    }
    Ok(if found.conforms { Exit::Done } else { Exit::Of(Kind::Failure) })
}

fn text(found: &Conformance) -> String {
    let mut table = screen::table();
    table.set_header(["check", "result", "runs", "found"]);
    for check in &found.checks {
        let shown = check.found.as_deref().unwrap_or(check.doc);
        table.add_row([check.name, check.result, &check.runs.to_string(), shown]);
    }
    let mut lines = vec![table.to_string()];
    lines.push(format!("{}; greatest wait {} s", screen::count(found.jobs, "job"), found.greatest_wait_s));
    if let Some(fuel) = found.fuel_per_pass_most {
        lines.push(format!("most fuel of one pass: {fuel} units"));
    }
    lines.join("\n")
}
