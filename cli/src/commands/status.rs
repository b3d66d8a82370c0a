//! `powersweep status`: experiments, workers and failures.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use powersweep_coordinator::plan;
use powersweep_coordinator::store::Location;
use powersweep_proto::client::Client;
use powersweep_proto::v1;
use powersweep_results::layout::left_name;
use serde_json::{Value as Json, json};

use crate::args::{CoordinatorArgs, DataArgs, StatusArgs};
use crate::exit::{Exit, Failure, Kind, Outcome, failure};
use crate::shard_status::{self, ShardLine};
use crate::stored::{self, Coordinator};
use crate::{client, interrupt, ledgers, screen};

/// Refresh interval of `--watch`.
const WATCH_INTERVAL: Duration = Duration::from_secs(1);

/// Shows the status of a running coordinator, else the stored state.
pub fn run(args: &StatusArgs) -> Outcome {
    client::block_on(async {
        if args.watch {
            return watch(args).await;
        }
        let status = look(args).await?;
        show(args, &status)
    })
}

/// What is shown.
#[derive(Default)]
struct Found {
    reply: v1::StatusReply,
    /// The shards of sharded experiments.
    shards: BTreeMap<String, Vec<ShardLine>>,
    /// Whether ledgers were asked for.
    ledgers: bool,
}

/// Asks the coordinator, and reads the sharded experiments of the data, of which it knows nothing.
async fn look(args: &StatusArgs) -> Result<Found, Failure> {
    let experiment = args.experiment.clone().unwrap_or_default();
    let request =
        v1::StatusRequest { experiment, max_failures: args.failures, ledgers: args.ledgers, ..Default::default() };
    find(&args.coordinator, &args.data, request).await
}

/// The document of `--json`.
pub fn document(args: &StatusArgs) -> Result<Json, Failure> {
    client::block_on(async { Ok(screen::versioned(to_json(&look(args).await?))) })
}

/// The state of one experiment, from the coordinator or from the data.
pub async fn experiment(
    coordinator: &CoordinatorArgs,
    data: &DataArgs,
    request: v1::StatusRequest,
) -> Result<Option<v1::ExperimentStatus>, Failure> {
    Ok(find(coordinator, data, request).await?.reply.experiments.into_iter().next())
}

async fn find(coordinator: &CoordinatorArgs, data: &DataArgs, request: v1::StatusRequest) -> Result<Found, Failure> {
    let only_asks = coordinator.coordinator.is_some() || coordinator.access.is_some();
    let sharded = match only_asks {
        true => Vec::new(),
        false => shard_status::all(&data.location()?, &request).await?,
    };
    let mut found = Found { ledgers: request.ledgers, ..Found::default() };
    match sharded.is_empty() || request.experiment.is_empty() {
        true => found.reply = ask_coordinator(coordinator, data, request).await?,
        false => found.reply.data = data.location()?.to_string(),
    }
    for shard_status::ShardedStatus { experiment, shards } in sharded {
        found.shards.insert(experiment.name.clone(), shards);
        found.reply.experiments.push(experiment);
    }
    Ok(found)
}

async fn ask_coordinator(
    coordinator: &CoordinatorArgs,
    data: &DataArgs,
    request: v1::StatusRequest,
) -> Result<v1::StatusReply, Failure> {
    let name = request.experiment.clone();
    let location = match stored::coordinator(coordinator, data).await? {
        Coordinator::Running(mut client) => return ask(&mut client, request).await,
        Coordinator::None(location) => location,
    };
    let loaded = stored::read(&location).await?;
    let status = plan::status(loaded, None, &request, &location.to_string());
    if !name.is_empty() && status.experiments.is_empty() {
        return Err(not_stored(&location, &name).await?);
    }
    Ok(status)
}

async fn ask(client: &mut Client, request: v1::StatusRequest) -> Result<v1::StatusReply, Failure> {
    match client::status(client, request.clone()).await {
        Ok(status) => Ok(status),
        Err(status) => Err(stored::refused(client, &status, &request.experiment).await),
    }
}

/// Why the stored state does not have this experiment. Its rows may still be there.
async fn not_stored(location: &Location, name: &str) -> Result<Failure, Failure> {
    let known = stored::names(location).await?;
    if known.iter().any(|known| known == name) {
        let hint =
            format!("`powersweep results {name}` shows its rows, `powersweep adopt` rebuilds the state from them");
        return Ok(failure!(Usage, "{location} has no state of {name}\n{hint}"));
    }
    Ok(failure!(Usage, "{location}: {}", stored::unknown(name, &known)))
}

fn show(args: &StatusArgs, status: &Found) -> Outcome {
    match args.output.is_json() {
        true => screen::print_json(to_json(status)),
        false => screen::print(&to_text(status)),
    }
}

/// Redraws a terminal; elsewhere writes a line for each change. Continues while a known coordinator does not answer.
/// Ends when the reader closes the pipe.
async fn watch(args: &StatusArgs) -> Outcome {
    let stop = interrupt::token();
    let as_json = args.output.is_json();
    let terminal = screen::redraws(&std::io::stdout()) && !as_json;
    let mut last = String::new();
    let mut known = false;
    loop {
        let text = match look(args).await {
            Ok(status) => {
                known = true;
                match (as_json, terminal) {
                    (true, _) => screen::versioned(to_json(&status)).to_string(),
                    (false, true) => to_text(&status),
                    (false, false) => to_lines(&status.reply),
                }
            }
            Err(failure) if known && matches!(failure.kind, Kind::Network | Kind::Storage) => {
                screen::note(&format!("powersweep: {}", failure.message.trim_end()));
                last.clone()
            }
            Err(failure) => return Err(failure),
        };
        let written = match terminal {
            // Moves the cursor home, clears the end of each line, then the lines below.
            true => screen::write(&format!("\x1b[H{}\x1b[K\n\x1b[J", text.replace('\n', "\x1b[K\n"))),
            false if text != last && !text.is_empty() => screen::write(&format!("{text}\n")),
            false => Ok(true),
        };
        if !written? {
            return Ok(Exit::Done);
        }
        last = text;
        tokio::select! {
            () = tokio::time::sleep(WATCH_INTERVAL) => {}
            () = stop.cancelled() => return Ok(Exit::Done),
        }
    }
}

/// One line for each experiment, without times and speeds, which change at every refresh.
fn to_lines(status: &v1::StatusReply) -> String {
    let stalled =
        if status.storage_stalled { format!("; storage stalled: {}", status.storage_reason) } else { String::new() };
    let line = |e: &v1::ExperimentStatus| {
        let reason = if e.reason.is_empty() { String::new() } else { format!(" ({})", e.reason) };
        format!(
            "{}: {}{reason}, {} of {} done, {} running, {} failed{stalled}",
            e.name,
            e.state().word(),
            e.done,
            screen::count(e.tasks, "task"),
            e.running,
            e.failed + e.quarantined
        )
    };
    status.experiments.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn to_text(found: &Found) -> String {
    let Found { reply: status, shards, ledgers } = found;
    let mut text = if status.workers.is_empty() && status.build.is_empty() {
        format!("no coordinator runs; stored state in {}\n", status.data)
    } else {
        format!("coordinator {}, data {}\n", status.build, status.data)
    };
    if status.storage_stalled {
        text.push_str(&format!("STORAGE STALLED: {}\n", status.storage_reason));
    }
    let mut table = screen::table();
    table.set_header(["experiment", "state", "priority", "tasks", "done", "running", "failed", "tasks/s", "ETA"]);
    for e in &status.experiments {
        table.add_row([
            e.name.clone(),
            e.state().word().to_owned(),
            e.priority.to_string(),
            e.tasks.to_string(),
            e.done.to_string(),
            e.running.to_string(),
            (e.failed + e.quarantined).to_string(),
            screen::number(e.tasks_per_s),
            left(e).unwrap_or_default(),
        ]);
    }
    match status.experiments.is_empty() {
        true => text.push_str("no experiment yet: `powersweep run` or `powersweep submit` starts one\n"),
        false => text.push_str(&format!("\n{table}\n")),
    }
    for e in status.experiments.iter().filter(|e| !e.reason.is_empty()) {
        text.push_str(&format!("{}: {}\n", e.name, e.reason));
    }
    for e in status.experiments.iter().filter(|e| e.extra > 0) {
        let (name, rows) = (&e.name, screen::count(e.extra, "row"));
        text.push_str(&format!(
            "{name}: {rows} of values that left the manifest in {}; `powersweep prune {name}` deletes them\n",
            left_name(name)
        ));
    }
    for (name, shards) in shards {
        text.push_str(&shard_status::text(name, shards));
    }
    let mut table = screen::table();
    table.set_header(["worker", "slots", "busy", "leased", "done", "seen"]);
    for w in &status.workers {
        table.add_row([
            w.name.clone(),
            w.slots.to_string(),
            w.busy_slots.to_string(),
            w.leased_tasks.to_string(),
            w.tasks_done.to_string(),
            format!("{} ago", screen::duration(w.seen_s_ago)),
        ]);
    }
    if !status.workers.is_empty() {
        text.push_str(&format!("\n{table}\n"));
    }
    for e in status.experiments.iter().filter(|e| !e.failures.is_empty()) {
        text.push_str(&format!("\n{}", failures_text(e)));
    }
    for e in status.experiments.iter().filter(|_| *ledgers) {
        let shown = ledgers::parsed(&e.ledgers);
        if shown.is_empty() {
            text.push_str(&format!("\n{}: no ledger of a job log or signal is stored\n", e.name));
        }
        for ledger in &shown {
            text.push_str(&format!("\n{}: {}\n", e.name, ledgers::text(ledger)));
        }
    }
    text.trim_end().to_owned()
}

/// The remaining time of an experiment in words; `None` while it cannot be told.
pub fn left(experiment: &v1::ExperimentStatus) -> Option<String> {
    let likely_s = experiment.eta_s?;
    let (least_s, most_s) = (experiment.eta_least_s.unwrap_or(likely_s), experiment.eta_most_s.unwrap_or(likely_s));
    Some(screen::range(least_s, most_s))
}

/// The failures of an experiment, with the command that reproduces each; empty without failures. Failures of one kind and
/// message are shown once, with their number.
pub fn failures_text(experiment: &v1::ExperimentStatus) -> String {
    if experiment.failures.is_empty() {
        // Of a failed experiment: its rows that cannot be published.
        let reason = &experiment.reason;
        return if reason.is_empty() { String::new() } else { format!("{}: {reason}\n", experiment.name) };
    }
    let failed = experiment.failed + experiment.quarantined;
    let mut text = format!("{}: {} failed\n", experiment.name, screen::count(failed, "task"));
    let mut shown = 0;
    let mut seen = BTreeSet::new();
    for f in experiment.failures.iter().filter(|f| seen.insert((f.kind, &f.message))) {
        let equal = f.equal.max(1);
        let others = if equal > 1 { format!("{}, such as ", screen::count(equal, "task")) } else { String::new() };
        let last = if f.r#final { ", for good" } else { "" };
        let attempt = format!("attempt {}, {}{last}", f.attempt, f.worker);
        text.push_str(&format!("  {others}task {} ({attempt}): {}\n", f.index, f.message));
        if !f.reproduce.is_empty() {
            text.push_str(&format!("    reproduce: {}\n", f.reproduce));
        }
        shown += equal;
    }
    let more = failed.saturating_sub(shown);
    if more > 0 {
        text.push_str(&format!(
            "  … and {more} more: `powersweep results {} --table failures` lists all\n",
            experiment.name
        ));
    }
    text
}

fn to_json(found: &Found) -> Json {
    let Found { reply: status, shards, ledgers } = found;
    let spent = |s: &Option<v1::TimeSpent>| {
        let s = s.unwrap_or_default();
        json!({ "engine_s": s.engine_s, "parse_s": s.parse_s, "store_s": s.store_s, "idle_s": s.idle_s })
    };
    let failure = |f: &v1::Failure| {
        json!({ "index": f.index, "kind": f.kind().word(), "message": f.message, "worker": f.worker, "attempt": f.attempt, "final": f.r#final,
                "reproduce": f.reproduce, "equal": f.equal })
    };
    let experiments: Vec<Json> = status
        .experiments
        .iter()
        .map(|e| {
            let mut experiment = json!({
                "name": e.name, "owner": e.owner, "state": e.state().word(), "priority": e.priority, "generation": e.generation, "reason": e.reason, "tasks": e.tasks, "done": e.done,
                "running": e.running, "failed": e.failed, "quarantined": e.quarantined, "extra": e.extra,
                "rows_in_parts": e.rows_in_parts, "rows_unpublished": e.rows_unpublished, "tasks_per_s": e.tasks_per_s,
                "eta_s": e.eta_s, "eta_least_s": e.eta_least_s, "eta_most_s": e.eta_most_s, "spent": spent(&e.spent), "failures": e.failures.iter().map(failure).collect::<Vec<_>>(),
            });
            if let Some(shards) = shards.get(&e.name) {
                experiment["shards"] = shard_status::json(shards);
            }
            if *ledgers {
                experiment["ledgers"] = json!(ledgers::parsed(&e.ledgers));
            }
            experiment
        })
        .collect();
    let workers: Vec<Json> = status
        .workers
        .iter()
        .map(|w| {
            json!({ "name": w.name, "slots": w.slots, "busy_slots": w.busy_slots, "leased_tasks": w.leased_tasks,
                    "tasks_done": w.tasks_done, "seen_s_ago": w.seen_s_ago, "address": w.address })
        })
        .collect();
    json!({ "build": status.build, "epoch": status.epoch, "data": status.data,
            "storage_stalled": status.storage_stalled, "storage_reason": status.storage_reason,
            "experiments": experiments, "workers": workers })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_failures_are_shown_once_with_their_number() {
        let failure = |index: u64, message: &str, equal: u64| v1::Failure {
            index,
            message: message.to_owned(),
            worker: "w".to_owned(),
            attempt: 1,
            equal,
            ..v1::Failure::default()
        };
        let failures = vec![failure(3, "too wide", 40), failure(9, "too long", 1), failure(4, "too wide", 40)];
        let experiment =
            v1::ExperimentStatus { name: "e".to_owned(), failed: 50, failures, ..v1::ExperimentStatus::default() };
        assert_eq!(
            failures_text(&experiment),
            "e: 50 tasks failed\n  40 tasks, such as task 3 (attempt 1, w): too wide\n  \
             task 9 (attempt 1, w): too long\n  … and 9 more: `powersweep results e --table failures` lists all\n"
        );
    }
}
