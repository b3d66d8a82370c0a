//! `powersweep plan`: the tasks that a sweep would run.

use powersweep::block_on;
use powersweep::place::{connection, shards, stored};
use powersweep::submit::submission;
use powersweep_coordinator::plan;
use powersweep_coordinator::records::Loaded;
use powersweep_coordinator::shards::ShardState;
use powersweep_coordinator::store::Location;
use powersweep_experiments::settings::quoted;
use powersweep_experiments::{AxisSummary, Sweep, TaskSpec};
use powersweep_inputs::library::ParsedLogs;
use powersweep_proto::v1;
use serde_json::{Value as Json, json};

use super::submit;
use crate::args::PlanArgs;
use crate::exit::{Outcome, failure};
use crate::{estimate, inputs, screen, signals, warnings};

/// Maximum number of values shown for an axis.
const VALUES_SHOWN: usize = 12;

/// Shows the plan of a manifest, or explains one task.
pub fn run(args: &PlanArgs) -> Outcome {
    let manifest = inputs::manifest(&args.manifest)?;
    let logs = ParsedLogs::new(warnings::LOGS_BYTES);
    let files = inputs::files(&manifest, &inputs::library_of(&args.manifest, &args.logs), Some(&logs))?;
    let sweep = inputs::sweep(&manifest, &files.digests)?;
    let place = args.coordinator.place(&args.data)?;
    if place.names_coordinator() && args.index.is_none() {
        let reply = block_on(async {
            let mut farm = place.connect().await?;
            let request = v1::SubmitRequest { dry_run: true, ..submission(&manifest, &files.digests, files.ledgers()) };
            Ok(farm.submit(request).await.map_err(|status| connection::refused(&status))?.into_inner())
        })?;
        return overview(&sweep, &reply, None, &logs, args);
    }
    let location = args.data.location()?;
    if let Some(record) = block_on(shards::find(&location, manifest.name()))? {
        let states = block_on(shards::states(&location, &record))?;
        let Some(index) = args.index else {
            let reply = shards::submission(&location, &record, states, &sweep, &files.digests)?;
            return overview(&sweep, &reply, None, &logs, args);
        };
        let has_task = |state: &&ShardState| !sweep.shard(state.shard).is_excluded(index);
        let loaded = states.iter().find(has_task).map(|state| &state.loaded);
        return explain(&sweep, index, loaded.unwrap_or(&Loaded::default()), &location, args.output.is_json());
    }
    let (loaded, served, lost) = block_on(async {
        let served = stored::owner_endpoint(&location).await?.is_some();
        let loaded = stored::read(&location).await?;
        let known = loaded.experiments.iter().any(|record| record.name == manifest.name());
        let lost = !known && location.path().is_none_or(|path| path.exists());
        let lost = lost && !stored::is_without_parts(&location, manifest.name()).await?;
        Ok((loaded, served, lost))
    })?;
    if lost {
        screen::note(&format!(
            "powersweep: {location} has rows of {} but no state of it: run `powersweep adopt` first",
            manifest.name()
        ));
    }
    match args.index {
        Some(index) => explain(&sweep, index, &loaded, &location, args.output.is_json()),
        None => {
            let reply = plan::submission(loaded, None, &sweep, &files.digests);
            let reply = reply.map_err(|reason| failure!(Refused, "{reason}"))?;
            overview(&sweep, &reply, served.then_some(&location), &logs, args)
        }
    }
}

/// `served`: the data, if a coordinator serves it.
fn overview(
    sweep: &Sweep,
    reply: &v1::SubmitReply,
    served: Option<&Location>,
    logs: &ParsedLogs,
    args: &PlanArgs,
) -> Outcome {
    let axes = sweep.axes();
    let signals = signals::load(sweep.manifest(), &inputs::library_of(&args.manifest, &args.logs))?;
    let (found, estimate) = (warnings::of(sweep, logs), estimate::of(sweep, reply.to_run, logs));
    if args.output.is_json() {
        let mut plan = overview_json(sweep, &axes, reply, served.is_some());
        plan["signals"] = signals::json(&signals).into();
        plan["warnings"] = warnings::json(&found).into();
        plan["estimate"] = estimate.map_or(Json::Null, |estimate| estimate.json());
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
    match axes.is_empty() {
        true => text.push_str("\n\nno axis has more than one value\n\n"),
        false => text.push_str(&format!("\n\n{table}\n\n")),
    }
    if !signals.is_empty() {
        text.push_str(&format!("{}\n\n", signals::text(&signals)));
    }
    let excluded = sweep.index_count() - sweep.task_count();
    if excluded > 0 {
        text.push_str(&format!("{} combinations, {excluded} of them excluded\n", sweep.index_count()));
    }
    text.push_str(&submit::describe(reply, true));
    if let Some(estimate) = estimate {
        text.push_str(&format!("\n{}", estimate.text()));
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

fn overview_json(sweep: &Sweep, axes: &[AxisSummary], reply: &v1::SubmitReply, served: bool) -> Json {
    let axes: Vec<Json> = axes
        .iter()
        .map(|axis| {
            let values: Vec<Json> =
                axis.values.iter().map(|v| json!({ "value": v.text, "tasks": v.tasks_count })).collect();
            json!({ "section": axis.section, "block": &*axis.block, "axis": axis.name,
                    "values_count": axis.values_count, "values": values })
        })
        .collect();
    let lacking: serde_json::Map<String, Json> =
        reply.lacking.iter().map(|gap| (gap.table.clone(), json!(gap.tasks))).collect();
    json!({ "experiment": reply.experiment, "generation": reply.generation, "indices": sweep.index_count(),
            "tasks": reply.tasks, "done": reply.done, "to_run": reply.to_run, "failed": reply.failed,
            "extra": reply.extra, "lacking": lacking, "coordinator_at_work": served, "axes": axes })
}

fn explain(sweep: &Sweep, index: u64, loaded: &Loaded, location: &Location, as_json: bool) -> Outcome {
    let task = inputs::task(sweep, index)?;
    let state = plan::task_state(loaded, &task);
    let (verdict, reason) = verdict(&state, location);
    if as_json {
        return screen::print_json(task_json(&task, verdict, &reason));
    }
    let mut table = screen::table();
    table.add_row(["task", &index.to_string()]);
    table.add_row(["task_id", &task.task_id.to_string()]);
    for (name, label) in [("workload", &task.workload), ("platform", &task.platform), ("policy", &task.policy)] {
        table.add_row([name, label]);
    }
    for choice in task.sim.choices() {
        let component = choice.component();
        let values = choice.values().iter().map(|(name, value)| format!("{name} = {value}")).collect::<Vec<_>>();
        table.add_row([
            component.role.key().to_owned(),
            format!("{} (version {})", component.name, component.version),
            values.join(", "),
        ]);
    }
    table.add_row(["seed", &task.sim.seed.to_string()]);
    screen::print(&format!("{table}\n\n{verdict}: {reason}"))
}

fn verdict(state: &plan::TaskState, location: &Location) -> (&'static str, String) {
    match state {
        plan::TaskState::NewExperiment => ("would run", format!("this experiment has no results in {location} yet")),
        plan::TaskState::New => ("would run", "the last manifest that was run did not have this task".to_owned()),
        plan::TaskState::Missing => ("would run", "its row is missing".to_owned()),
        plan::TaskState::Done => ("would not run", format!("its row is in {location}")),
        plan::TaskState::Failed(failure) if failure.quarantined => {
            ("would not run", format!("it failed {}, last: {}", times(failure.attempts), failure.message))
        }
        plan::TaskState::Failed(failure) => {
            ("would run", format!("it failed {} and will be tried again: {}", times(failure.attempts), failure.message))
        }
    }
}

fn times(n: u32) -> String {
    if n == 1 { "once".to_owned() } else { format!("{n} times") }
}

fn task_json(task: &TaskSpec, verdict: &str, reason: &str) -> Json {
    let choices: serde_json::Map<String, Json> = task
        .sim
        .choices()
        .map(|choice| {
            let component = choice.component();
            let values: serde_json::Map<String, Json> =
                choice.values().iter().map(|(name, value)| ((*name).to_owned(), json!(value.to_string()))).collect();
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
