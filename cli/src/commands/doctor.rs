//! `powersweep doctor`: whether this machine can run a coordinator on the data, or reach the coordinator, and what to do.

use powersweep::block_on;
use powersweep::doctor::Check;
use serde_json::json;

use crate::args::{DoctorArgs, LISTEN};
use crate::exit::{Exit, Outcome};
use crate::screen;

/// Runs every check, and ends with the code of the first one that failed.
pub fn run(args: &DoctorArgs) -> Outcome {
    let checks = block_on(args.coordinator.place(&args.data)?.checks(LISTEN))?;
    let exit = checks.iter().find_map(|check| check.kind).map_or(Exit::Done, Exit::Of);
    match args.output.is_json() {
        true => screen::print_json(json!({ "checks": checks }))?,
        false => screen::print(&text(&checks))?,
    };
    Ok(exit)
}

fn text(checks: &[Check]) -> String {
    let mut table = screen::table();
    table.set_header(["check", "result", "found"]);
    for check in checks {
        table.add_row([check.name.as_str(), check.result.word(), check.found.as_str()]);
    }
    let advised =
        checks.iter().filter_map(|check| Some((check, check.advice.as_ref().filter(|text| !text.is_empty())?)));
    let advice = advised.map(|(check, advice)| format!("\n{}: {advice}", check.name));
    format!("{table}{}", advice.collect::<String>())
}
