//! `powersweep pause`, `resume`, `cancel`, `retry`, `priority`, `flush`, `prune`, `delete`: control of a submitted experiment;
//! `prepare-upgrade`: the end of the coordinator.

use std::time::Duration;

use powersweep::block_on;
use powersweep_proto::{plain, v1};

use crate::args::{ControlArgs, DeleteArgs, FlushArgs, PriorityArgs, RetryArgs, UpgradeArgs};
use crate::exit::{Outcome, failure};
use crate::screen;

/// A wait for running tasks that takes longer is explained.
const UPGRADE_PATIENCE: Duration = Duration::from_secs(3);

/// Pauses an experiment: running tasks finish, no other task starts.
pub fn pause(args: &ControlArgs) -> Outcome {
    let name = &args.experiment;
    let reply = block_on(async { args.place()?.pause(name).await })?;
    screen::print(&match (reply.changed, reply.running) {
        (false, _) => format!("{name} is paused already"),
        (true, 0) => format!("{name} is paused, {} to run; `powersweep resume {name}` continues it", to_run(&reply)),
        (true, leased) => format!(
            "{name} is paused, {} to run; {} leased: running tasks finish, the other tasks are handed back",
            to_run(&reply),
            screen::count(leased, "task")
        ),
    })
}

/// Continues a paused or cancelled experiment.
pub fn resume(args: &ControlArgs) -> Outcome {
    let name = &args.experiment;
    let reply = block_on(async { args.place()?.resume(name).await })?;
    screen::print(&match reply.changed {
        true => format!("{name} continues, {} to run", to_run(&reply)),
        false => format!("{name} is not paused, {} to run", to_run(&reply)),
    })
}

/// Cancels an experiment: running tasks stop.
pub fn cancel(args: &ControlArgs) -> Outcome {
    let name = &args.experiment;
    let reply = block_on(async { args.place()?.cancel(name).await })?;
    screen::print(&match reply.changed {
        true => format!("{name} is cancelled, {} not run; finished rows are kept", to_run(&reply)),
        false => format!("{name} is cancelled already"),
    })
}

/// Retries tasks that failed for good.
pub fn retry(args: &RetryArgs) -> Outcome {
    let name = &args.control.experiment;
    let kinds = args.kind.iter().map(|kind| i32::from(*kind)).collect();
    let chosen = v1::Retry { indices: args.index.clone(), kinds };
    let reply = block_on(async { args.control.place()?.retry(name, chosen).await })?;
    let mut text = format!("{name}: {} tried again", screen::count(reply.tasks, "task"));
    let mut named = args.index.clone();
    named.sort_unstable();
    named.dedup();
    let not_retried = (named.len() as u64).saturating_sub(reply.tasks);
    if not_retried > 0 {
        let reason = if args.kind.is_empty() { "" } else { ", or with another kind of failure" };
        let tasks = screen::count(not_retried, "named task");
        text.push_str(&format!("; {tasks} had not failed for good{reason}"));
    }
    if matches!(reply.state(), v1::ExperimentState::Paused | v1::ExperimentState::Cancelled) {
        text.push_str(&format!("; no task runs before `powersweep resume {name}`"));
    }
    screen::print(&text)
}

/// Sets the priority.
pub fn priority(args: &PriorityArgs) -> Outcome {
    let name = &args.control.experiment;
    let reply = block_on(async { args.control.place()?.set_priority(name, args.priority).await })?;
    let already = if reply.changed { "" } else { " already" };
    screen::print(&format!("{name} has priority {}{already}", args.priority))
}

/// Deletes the rows of values that left the manifest.
pub fn prune(args: &ControlArgs) -> Outcome {
    let name = &args.experiment;
    let reply = block_on(async { args.place()?.prune(name).await })?;
    screen::print(&match reply.changed {
        true => format!("{name}: the rows of values that left the manifest are deleted"),
        false => format!("{name} has no rows of values that left the manifest"),
    })
}

/// Deletes an experiment's state, and its rows if asked to.
pub fn delete(args: &DeleteArgs) -> Outcome {
    let name = &args.control.experiment;
    let options = v1::Delete { data_too: args.data_too, force: args.force };
    block_on(async { args.control.place()?.delete(name, options).await })?;
    screen::print(&match args.data_too {
        true => format!("{name} and its rows are deleted"),
        false => format!("{name} is deleted; its rows are kept"),
    })
}

/// Publishes acknowledged rows.
pub fn flush(args: &FlushArgs) -> Outcome {
    let reply = block_on(async { args.coordinator.place(&args.data)?.flush(&args.experiment).await })?;
    screen::print(&match reply.rows {
        0 => format!("{}: all acknowledged rows are published already", args.experiment),
        rows => {
            format!("{}: {} in {}", args.experiment, screen::count(rows, "row"), screen::count(reply.parts, "part"))
        }
    })
}

fn to_run(reply: &v1::ControlReply) -> String {
    screen::count(reply.to_run, "task")
}

/// Ends the coordinator so that another version can start.
pub fn prepare_upgrade(args: &UpgradeArgs) -> Outcome {
    let reply = block_on(async {
        let place = args.coordinator.place(&args.data)?;
        let ending = place.prepare_upgrade(args.drain_limit);
        tokio::pin!(ending);
        tokio::select! {
            reply = &mut ending => reply,
            () = tokio::time::sleep(UPGRADE_PATIENCE) => {
                screen::note("powersweep: workers finish their running tasks; the same command with --drain-limit 0s stops them");
                ending.await
            }
        }
    })?;
    if reply.unpublished.is_empty() {
        return screen::print("all rows are published, and the coordinator has ended: start the new version");
    }
    let lines = reply.unpublished.iter().map(|v1::Unpublished { experiment, rows, reason }| {
        let reason = if reason.is_empty() { String::new() } else { format!(": {}", plain(reason)) };
        format!("{} of {} cannot be published{reason}", screen::count(*rows, "row"), plain(experiment))
    });
    let lines: Vec<String> = lines.collect();
    Err(failure!(
        Storage,
        "{}\nthe coordinator has ended; a version with other columns cannot read these rows, and will not start here",
        lines.join("\n")
    ))
}
