//! `powersweep status`: experiments, workers and failures.

use std::time::Duration;

use powersweep::block_on;
use powersweep::inputs::ledgers as documents;
use powersweep::place::shards::ShardStatus;
use powersweep::status::{failures_text, left};
use powersweep::{Place, Status};
use powersweep_experiments::plain::plain;
use powersweep_proto::v1;
use powersweep_results::layout::left_name;

use crate::args::StatusArgs;
use crate::exit::{Exit, Kind, Outcome};
use crate::{interrupt, ledgers, screen};

/// Refresh interval of `--watch`.
const WATCH_INTERVAL: Duration = Duration::from_secs(1);

/// Shows the status of a running coordinator, else the stored state.
pub fn run(args: &StatusArgs) -> Outcome {
    block_on(async {
        let place = args.coordinator.place(&args.data)?;
        if args.watch {
            return watch(args, &place).await;
        }
        show(args, &place.status(&args.options()).await?)
    })
}

fn show(args: &StatusArgs, status: &Status) -> Outcome {
    match args.output.is_json() {
        true => screen::print_json(status.document(&args.options())),
        false => screen::print(&to_text(args, status)),
    }
}

/// Redraws a terminal; elsewhere writes a line for each change. Continues while a known coordinator does not answer.
/// Ends when the reader closes the pipe.
async fn watch(args: &StatusArgs, place: &Place) -> Outcome {
    let stop = interrupt::token();
    let as_json = args.output.is_json();
    let terminal = screen::redraws(&std::io::stdout()) && !as_json;
    let mut last = String::new();
    let mut known = false;
    loop {
        let text = match place.status(&args.options()).await {
            Ok(status) => {
                known = true;
                match (as_json, terminal) {
                    (true, _) => screen::versioned(status.document(&args.options())).to_string(),
                    (false, true) => to_text(args, &status),
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
            true => {
                let text = plain(&text).replace('\n', "\x1b[K\n");
                screen::write_styled(&format!("\x1b[H{text}\x1b[K\n\x1b[J"))
            }
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

fn to_text(args: &StatusArgs, status: &Status) -> String {
    let Status { reply: status, shards } = status;
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
        text.push_str(&shards_text(name, shards));
    }
    let mut table = screen::table();
    table.set_header(["worker", "slots", "busy", "leased", "done", "CPU", "memory", "seen"]);
    for w in &status.workers {
        table.add_row([
            w.name.clone(),
            w.slots.to_string(),
            w.busy_slots.to_string(),
            w.leased_tasks.to_string(),
            w.tasks_done.to_string(),
            if w.connected { format!("{:.1}", w.processors) } else { String::new() },
            screen::memory(w.memory_bytes),
            format!("{} ago", screen::duration(w.seen_s_ago)),
        ]);
    }
    if !status.workers.is_empty() {
        text.push_str(&format!("\n{table}\n"));
    }
    for e in status.experiments.iter().filter(|e| !e.failures.is_empty()) {
        text.push_str(&format!("\n{}", failures_text(e)));
    }
    for e in status.experiments.iter().filter(|_| args.ledgers) {
        let shown = documents::parsed(&e.ledgers);
        if shown.is_empty() {
            text.push_str(&format!("\n{}: no ledger of a job log or signal is stored\n", e.name));
        }
        for ledger in &shown {
            text.push_str(&format!("\n{}: {}\n", e.name, ledgers::text(ledger)));
        }
    }
    text.trim_end().to_owned()
}

/// The shards of an experiment as a table.
fn shards_text(experiment: &str, shards: &[ShardStatus]) -> String {
    let mut table = screen::table();
    table.set_header(["shard", "state", "tasks", "done", "failed", "host", "process"]);
    for line in shards {
        let (host, process) = line.owner.as_ref().map_or_else(Default::default, |owner| {
            (powersweep_proto::plain(&owner.host).into_owned(), owner.pid.to_string())
        });
        table.add_row([
            line.shard.index().to_string(),
            line.state.to_owned(),
            line.tasks.to_string(),
            line.done.to_string(),
            line.failed.to_string(),
            host,
            process,
        ]);
    }
    format!("\n{experiment}: {}\n{table}\n", screen::count(shards.len() as u64, "shard"))
}
