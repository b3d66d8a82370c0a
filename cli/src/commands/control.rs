//! `powersweep pause`, `resume`, `cancel`, `retry`, `priority`, `flush`, `prune`, `delete`: control of a submitted experiment;
//! `prepare-upgrade`: the end of the coordinator.
//!
//! The request goes to the coordinator at --coordinator, else to the one that serves --data. If none runs, the command
//! itself runs one for this request.

use std::time::Duration;

use powersweep_coordinator::store::Location;
use powersweep_proto::access::Role;
use powersweep_proto::client::Client;
use powersweep_proto::v1::control_request::Action;
use powersweep_proto::{plain, v1};
use tokio_util::sync::CancellationToken;
use tonic::{Response, Status};

use crate::args::{ControlArgs, CoordinatorArgs, DataArgs, DeleteArgs, PriorityArgs, RetryArgs, UpgradeArgs};
use crate::exit::{Failure, Outcome, failure};
use crate::farm::{FarmOptions, LocalFarm};
use crate::stored::{self, Coordinator};
use crate::{client, screen, shard_status};

/// A wait for running tasks that takes longer is explained.
const UPGRADE_PATIENCE: Duration = Duration::from_secs(3);

/// Pauses an experiment: running tasks finish, no other task starts.
pub fn pause(args: &ControlArgs) -> Outcome {
    let name = &args.experiment;
    let reply = control(args, Action::Pause(v1::Pause {}))?;
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
    let reply = control(args, Action::Resume(v1::Resume {}))?;
    screen::print(&match reply.changed {
        true => format!("{name} continues, {} to run", to_run(&reply)),
        false => format!("{name} is not paused, {} to run", to_run(&reply)),
    })
}

/// Cancels an experiment: running tasks stop.
pub fn cancel(args: &ControlArgs) -> Outcome {
    let name = &args.experiment;
    let reply = control(args, Action::Cancel(v1::Cancel {}))?;
    screen::print(&match reply.changed {
        true => format!("{name} is cancelled, {} not run; finished rows are kept", to_run(&reply)),
        false => format!("{name} is cancelled already"),
    })
}

/// Retries tasks that failed for good.
pub fn retry(args: &RetryArgs) -> Outcome {
    let name = &args.control.experiment;
    let kinds = args.kind.iter().map(|kind| i32::from(*kind)).collect();
    let reply = control(&args.control, Action::Retry(v1::Retry { indices: args.index.clone(), kinds }))?;
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
    let reply = control(&args.control, Action::SetPriority(v1::SetPriority { priority: args.priority }))?;
    let already = if reply.changed { "" } else { " already" };
    screen::print(&format!("{name} has priority {}{already}", args.priority))
}

/// Deletes the rows of values that left the manifest.
pub fn prune(args: &ControlArgs) -> Outcome {
    let name = &args.experiment;
    let reply = control(args, Action::Prune(v1::Prune {}))?;
    screen::print(&match reply.changed {
        true => format!("{name}: the rows of values that left the manifest are deleted"),
        false => format!("{name} has no rows of values that left the manifest"),
    })
}

/// Deletes an experiment's state, and its rows if asked to.
pub fn delete(args: &DeleteArgs) -> Outcome {
    let name = &args.control.experiment;
    control(&args.control, Action::Delete(v1::Delete { force: args.force, data_too: args.data_too }))?;
    screen::print(&match args.data_too {
        true => format!("{name} and its rows are deleted"),
        false => format!("{name} is deleted; its rows are kept"),
    })
}

/// Publishes acknowledged rows.
pub fn flush(args: &ControlArgs) -> Outcome {
    let request = v1::FlushRequest { experiment: args.experiment.clone() };
    let reply = ask(&args.coordinator, &args.data, &args.experiment, async |client| client.flush(request).await)?;
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

fn control(args: &ControlArgs, action: Action) -> Result<v1::ControlReply, Failure> {
    let request = v1::ControlRequest { experiment: args.experiment.clone(), action: Some(action) };
    ask(&args.coordinator, &args.data, &args.experiment, async |client| client.control(request).await)
}

/// Ends the coordinator so that another version can start.
pub fn prepare_upgrade(args: &UpgradeArgs) -> Outcome {
    let request = v1::PrepareUpgradeRequest { drain_s: args.drain_limit.map(|limit| limit.as_secs_f64()) };
    let reply = ask(&args.coordinator, &args.data, "", async |client| {
        let ending = client.prepare_upgrade(request);
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

/// Sends a request to the coordinator, or to one that this process runs for this request.
fn ask<T>(
    coordinator: &CoordinatorArgs,
    data: &DataArgs,
    experiment: &str,
    request: impl AsyncFnOnce(&mut Client) -> Result<Response<T>, Status>,
) -> Result<T, Failure> {
    client::block_on(async {
        if !experiment.is_empty()
            && coordinator.coordinator.is_none()
            && coordinator.access.is_none()
            && let Some(record) = shard_status::find(&data.location()?, experiment).await?
        {
            return Err(shard_status::takes_no_requests(&data.location()?, &record));
        }
        let (mut client, own) = match stored::coordinator(coordinator, data).await? {
            Coordinator::Running(client) => (client, None),
            Coordinator::None(location) => {
                let farm = own_coordinator(&location, data).await?;
                (client::connect(&farm.address(Role::Client)).await?, Some(farm))
            }
        };
        let reply = match request(&mut client).await {
            Ok(reply) => Ok(reply),
            Err(status) => Err(stored::refused(&mut client, &status, experiment).await),
        };
        drop(client);
        if let Some(farm) = own {
            farm.end().await?;
        }
        Ok(reply?.into_inner())
    })
}

/// A coordinator in this process. A folder without state is refused, so that a typing error does not create one.
async fn own_coordinator(location: &Location, data: &DataArgs) -> Result<LocalFarm, Failure> {
    if !stored::is_there(location) {
        let hint = "give the folder of `run` or `serve` with --data, or a coordinator with --coordinator";
        return Err(failure!(Usage, "there are no experiments in {location}\n{hint}"));
    }
    LocalFarm::start(FarmOptions::on_loopback(&data.data), &CancellationToken::new()).await
}
