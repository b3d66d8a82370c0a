//! `powersweep plan`: the tasks that a sweep would run.

use std::sync::Arc;

use powersweep::block_on;
use powersweep::estimate::Estimate;
use powersweep::inputs::LOGS_BYTES;
use powersweep::plan::{Plan, TaskPlan, warnings};
use powersweep_experiments::settings::quoted;
use powersweep_experiments::{AxisSummary, DesignSummary, Sweep, TaskSpec};
use powersweep_inputs::library::ParsedLogs;
use powersweep_proto::v1;
use serde_json::{Value as Json, json};

use super::submit;
use crate::args::PlanArgs;
use crate::exit::Outcome;
use crate::{inputs, screen, signals, warnings};

/// Maximum number of values shown for an axis.
const VALUES_SHOWN: usize = 12;

/// Shows the plan of a manifest, or explains one task.
pub fn run(args: &PlanArgs) -> Outcome {
    let manifest = inputs::manifest(&args.manifest)?;
    let logs = Arc::new(ParsedLogs::new(LOGS_BYTES));
    let files = inputs::files(&manifest, &inputs::library_of(&args.manifest, &args.logs), Some(&logs))?;
    let sweep = inputs::sweep(&manifest, &files.digests)?;
    let place = args.coordinator.place(&args.data)?;
    if let Some(index) = args.index {
        return explain(&block_on(place.plan_task(&sweep, index))?, args.output.is_json());
    }
    let Plan { reply, served } = block_on(place.plan(&manifest, &files))?;
    let (axes, signals) = (sweep.axes(), &files.signals);
    let (found, estimate) = (warnings(&sweep, signals, &logs), Estimate::of(&sweep, reply.to_run, &logs));
    if args.output.is_json() {
        let mut plan = overview_json(&sweep, &axes, &reply, served.is_some());
        plan["designs"] = json!(sweep.designs());
        plan["signals"] = signals::json(signals).into();
        plan["warnings"] = json!(found);
        plan["estimate"] = json!(estimate);
        return screen::print_json(plan);
    }
    let mut table = screen::table();
    table.set_header(["section", "axis", "values (tasks)"]);
    for axis in &axes {
        let place =
            if axis.block.is_empty() { axis.section.to_owned() } else { format!("{}.{}", axis.section, axis.block) };
        table.add_row([place, axis.name.clone(), values_text(axis)]);
    }
    let mut text = sweep.manifest().name().to_owned();
    if !sweep.manifest().description().is_empty() {
        text.push_str(&format!(": {}", sweep.manifest().description()));
    }
    let designs = sweep.designs();
    text.push_str(&match (axes.is_empty(), designs.is_empty()) {
        (true, true) => "\n\nno axis has more than one value\n\n".to_owned(),
        (true, false) => "\n\n".to_owned(),
        (false, _) => format!("\n\n{table}\n\n"),
    });
    if let Some(until) = manifest.until() {
        let conditions: Vec<&str> = until.precisions.iter().map(|precision| precision.text.as_str()).collect();
        let (least, most, conditions) = (until.at_least, until.at_most, conditions.join(" and "));
        text.push_str(&format!(
            "seeds: {least} to {most} of each combination, until {conditions}; the tasks below are those of {most} seeds, and only \
             those run that the means need\n\n"
        ));
    }
    if !designs.is_empty() {
        text.push_str(&format!("{}\n\n", designs_text(&designs)));
    }
    if !signals.is_empty() {
        text.push_str(&format!("{}\n\n", signals::text(signals)));
    }
    let excluded = sweep.index_count() - sweep.task_count();
    if excluded > 0 {
        let causes = match designs.is_empty() {
            true => " by [[exclude]] and `zip`",
            false => ": repeated points, points that their blocks do not use, [[exclude]] and `zip`",
        };
        text.push_str(&format!("{} combinations, {excluded} of them left out{causes}\n", sweep.index_count()));
    }
    let verb = if manifest.until().is_some() { "may run" } else { "would run" };
    text.push_str(&submit::describe(&reply, Some(verb)));
    if let Some(estimate) = estimate {
        text.push_str(&format!("\n{}{}", estimate_text(&estimate), too_long(&estimate)));
    }
    if !found.is_empty() {
        text.push_str(&format!("\n{}", warnings::text(&found, &args.manifest)));
    }
    if let Some(location) = served {
        let data = quoted(&location.to_string());
        text.push_str(&format!(
            "\na coordinator serves this data: `powersweep status --data {data}` shows its progress"
        ));
    }
    text.push_str(&format!("\n`powersweep plan {} --index N` explains one task", quoted(&args.manifest)));
    screen::print(&text)
}

fn values_text(axis: &AxisSummary) -> String {
    let shown = axis.values.iter().take(VALUES_SHOWN).map(|v| match v.tasks_count {
        Some(tasks) => format!("{} ({tasks})", v.text),
        None => v.text.clone(),
    });
    let mut text = shown.collect::<Vec<_>>().join(", ");
    let more = axis.values_count.saturating_sub(axis.values.len().min(VALUES_SHOWN) as u64);
    if more > 0 {
        text.push_str(&format!(" and {more} more"));
    }
    text
}

/// The designs with their ranges as a table.
fn designs_text(designs: &[DesignSummary]) -> String {
    let mut table = screen::table();
    table.set_header(["design", "kind", "points", "repeated", "discrepancy", "parameter", "values"]);
    for design in designs {
        let [points, repeated] = [design.points_count, design.repeated_count].map(|count| count.to_string());
        let discrepancy = format!("{:.2e}", design.discrepancy);
        let mut head = [design.design.to_string(), design.kind.to_owned(), points, repeated, discrepancy];
        for range in &design.ranges {
            let row = std::mem::take(&mut head).into_iter();
            table.add_row(row.chain([range.parameter.to_owned(), range.values.clone()]));
        }
    }
    let mut text = table.to_string();
    for design in designs.iter().filter(|design| design.discrepancy_points < design.points_count) {
        let DesignSummary { design, discrepancy_points, .. } = design;
        text.push_str(&format!("\nthe discrepancy of `{design}` is that of its first {discrepancy_points} points"));
    }
    text
}

fn overview_json(sweep: &Sweep, axes: &[AxisSummary], reply: &v1::SubmitReply, served: bool) -> Json {
    let lacking: serde_json::Map<String, Json> =
        reply.lacking.iter().map(|gap| (gap.table.clone(), json!(gap.tasks))).collect();
    json!({ "experiment": reply.experiment, "generation": reply.generation, "indices": sweep.index_count(),
            "tasks": reply.tasks, "done": reply.done, "to_run": reply.to_run, "failed": reply.failed,
            "extra": reply.extra, "lacking": lacking, "coordinator_at_work": served, "axes": axes })
}

/// The estimate in a line.
fn estimate_text(estimate: &Estimate) -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let (about, all) = (if estimate.is_least { "at least" } else { "about" }, estimate.core_s / cores as f64);
    let tables = [("jobs", estimate.jobs_each.filter(|_| estimate.with_jobs)), ("series", Some(estimate.series_each))];
    let rows = |(table, each): (&str, Option<f64>)| {
        let rows = (each? * estimate.tasks as f64).round();
        (rows > 0.0).then(|| format!(", {} of `{table}`", screen::number(rows)))
    };
    format!(
        "estimate: {} of `tasks`{}, about {}; {about} {} of one core, {} on the {cores} of this machine",
        screen::count(estimate.tasks, "row"),
        tables.into_iter().filter_map(rows).collect::<String>(),
        size(estimate.bytes),
        time(estimate.core_s),
        time(all)
    )
}

/// The warning about a sweep of days, or a task of days; empty for a shorter one.
fn too_long(estimate: &Estimate) -> String {
    const DAY_S: f64 = 86_400.0;
    let about = if estimate.is_least { "at least" } else { "about" };
    let (what, took_s, help) = if estimate.longest_task_s >= DAY_S {
        ("one task", estimate.longest_task_s, "no number of workers makes it shorter; shorten its workload")
    } else if estimate.core_s >= DAY_S {
        ("the sweep", estimate.core_s, "run fewer tasks (`powersweep find`, [[exclude]]), or share them among workers")
    } else {
        return String::new();
    };
    format!("\nwarning: {what} takes {about} {} of one core; {help}", time(took_s))
}

/// A time for people, up to years.
fn time(seconds: f64) -> String {
    const DAY_S: f64 = 86_400.0;
    const YEAR_S: f64 = 365.25 * DAY_S;
    match seconds {
        s if s >= 2.0 * YEAR_S => format!("{} years", screen::number((s / YEAR_S).round())),
        s if s >= 2.0 * DAY_S => format!("{:.0} days", s / DAY_S),
        s => screen::duration(s),
    }
}

/// A size for people, in powers of 1000.
fn size(bytes: f64) -> String {
    const UNITS: [&str; 7] = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
    let step = (0..UNITS.len() - 1).find(|step| bytes < 1000_f64.powi(*step as i32 + 1)).unwrap_or(UNITS.len() - 1);
    let amount = bytes / 1000_f64.powi(step as i32);
    if amount < 10.0 && step > 0 {
        format!("{amount:.1} {}", UNITS[step])
    } else {
        format!("{amount:.0} {}", UNITS[step])
    }
}

fn explain(found: &TaskPlan, as_json: bool) -> Outcome {
    let TaskPlan { task, runs, reason } = found;
    let verdict = if *runs { "would run" } else { "would not run" };
    if as_json {
        return screen::print_json(task_json(task, verdict, reason));
    }
    let mut table = screen::table();
    table.add_row(["task", &task.index.to_string()]);
    table.add_row(["task_id", &task.task_id.to_string()]);
    for (name, label) in [("workload", &task.workload), ("platform", &task.platform), ("policy", &task.policy)] {
        table.add_row([name, label]);
    }
    for choice in task.sim.choices() {
        let component = choice.component();
        let values = choice.values().map(|(name, value)| format!("{name} = {value}")).collect::<Vec<_>>();
        table.add_row([
            component.role.key().to_owned(),
            format!("{} (version {})", component.name, component.version),
            values.join(", "),
        ]);
    }
    table.add_row(["seed", &task.sim.seed.to_string()]);
    screen::print(&format!("{table}\n\n{verdict}: {reason}"))
}

fn task_json(task: &TaskSpec, verdict: &str, reason: &str) -> Json {
    let choices: serde_json::Map<String, Json> = task
        .sim
        .choices()
        .map(|choice| {
            let component = choice.component();
            let values: serde_json::Map<String, Json> =
                choice.values().map(|(name, value)| (name.to_owned(), json!(value.to_string()))).collect();
            (
                component.role.key().to_owned(),
                json!({ "name": component.name, "version": component.version, "parameters": values }),
            )
        })
        .collect();
    json!({ "index": task.index, "task_id": task.task_id.to_string(), "workload": &*task.workload,
            "platform": &*task.platform, "policy": &*task.policy, "seed": task.sim.seed, "components": choices,
            "verdict": verdict, "reason": reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_of_one_core_are_a_warning() {
        let estimate = |core_s: f64, longest_task_s: f64| Estimate {
            tasks: 9,
            bytes: 0.0,
            core_s,
            longest_task_s,
            is_least: false,
            jobs_each: None,
            series_each: 0.0,
            with_jobs: false,
        };
        assert_eq!(too_long(&estimate(86_000.0, 10.0)), "");
        assert!(
            too_long(&estimate(62.0 * 86_400.0, 10.0)).contains("warning: the sweep takes about 62 days of one core")
        );
        assert!(too_long(&estimate(62.0 * 86_400.0, 3e5)).contains("warning: one task takes about 3 days of one core"));
    }

    #[test]
    fn times_and_sizes_are_short() {
        assert_eq!((time(200.0), time(3e5), time(3.2e9)), ("3 min 20 s".into(), "3 days".into(), "101 years".into()));
        assert_eq!((size(12.0), size(3.1e14), size(2.5e6)), ("12 B".into(), "310 TB".into(), "2.5 MB".into()));
    }
}
