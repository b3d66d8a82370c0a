//! `powersweep pause`, `resume`, `cancel`, `retry`, `priority`, `flush`, `delete`: control of a submitted experiment.
//!
//! The request goes to the coordinator at --coordinator, else to the one that serves --data. If none runs, the command
//! is a coordinator itself for this one request.

use std::path::Path;

use powersweep_coordinator::Tokens;
use powersweep_coordinator::store::{Location, PRIVATE_DIR};
use powersweep_proto::v1;
use powersweep_proto::v1::control_request::Action;
use tokio_util::sync::CancellationToken;

use crate::args::{ControlArgs, CoordinatorArgs, DataArgs, DeleteArgs, PriorityArgs, RetryArgs};
use crate::exit::{Exit, Failure, OrExit, Outcome};
use crate::farm::{FarmOptions, LocalFarm};
use crate::{client, screen, stored};

/// Lets running tasks finish and starts no other tasks.
pub fn pause(args: &ControlArgs) -> Outcome {
    let name = &args.experiment;
    let reply = control(args, Action::Pause(v1::Pause {}))?;
    screen::print(&match (reply.changed, reply.running) {
        (false, _) => format!("{name} is paused already"),
        (true, 0) => format!("{name} is paused, {} to run; `powersweep resume {name}` goes on", left(&reply)),
        (true, leased) => format!(
            "{name} is paused, {} to run; of {leased} handed out those that run are finished, the others come back",
            left(&reply)
        ),
    })
}

/// Continues a paused or cancelled experiment.
pub fn resume(args: &ControlArgs) -> Outcome {
    let name = &args.experiment;
    let reply = control(args, Action::Resume(v1::Resume {}))?;
    screen::print(&match reply.changed {
        true => format!("{name} goes on, {} to run", left(&reply)),
        false => format!("{name} is not paused, {} to run", left(&reply)),
    })
}

/// Stops an experiment at once.
pub fn cancel(args: &ControlArgs) -> Outcome {
    let name = &args.experiment;
    let reply = control(args, Action::Cancel(v1::Cancel {}))?;
    screen::print(&match reply.changed {
        true => format!("{name} is cancelled, {} not run; finished rows are kept", left(&reply)),
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
    let others = (named.len() as u64).saturating_sub(reply.tasks);
    if others > 0 {
        text.push_str(&format!("; {others} of those named had not failed for good, or otherwise"));
    }
    if matches!(reply.state(), v1::ExperimentState::Paused | v1::ExperimentState::Cancelled) {
        text.push_str(&format!("; nothing runs before `powersweep resume {name}`"));
    }
    screen::print(&text)
}

/// Sets the priority.
pub fn priority(args: &PriorityArgs) -> Outcome {
    let name = &args.experiment;
    let control = Controlled { experiment: name, coordinator: &args.coordinator, data: &args.data };
    let reply = ask(&control, Action::SetPriority(v1::SetPriority { priority: args.priority }))?;
    let already = if reply.changed { "" } else { " already" };
    screen::print(&format!("{name} has priority {}{already}", args.priority))
}

/// Deletes an experiment.
pub fn delete(args: &DeleteArgs) -> Outcome {
    let name = &args.control.experiment;
    control(&args.control, Action::Delete(v1::Delete { force: args.force, data_too: args.data_too }))?;
    screen::print(&match args.data_too {
        true => format!("{name} is deleted, its rows too"),
        false => format!("{name} is deleted; its rows stay where they are"),
    })
}

/// Publishes finished rows.
pub fn flush(args: &ControlArgs) -> Outcome {
    let request = v1::FlushRequest { experiment: args.experiment.clone() };
    let reply = client::block_on(async {
        match place(&args.coordinator, &args.data).await? {
            Place::Remote(mut farm) => Ok(farm.flush(request).await.map_err(|s| client::refused(&s))?.into_inner()),
            Place::Here(farm) => {
                let reply = farm.handle().requests().flush(request).await.map_err(|status| client::refused(&status));
                farm.end().await?;
                reply
            }
        }
    })??;
    screen::print(&match reply.rows {
        0 => format!("{}: every finished row is in a part already", args.experiment),
        rows => {
            format!("{}: {} in {}", args.experiment, screen::count(rows, "row"), screen::count(reply.parts, "part"))
        }
    })
}

fn left(reply: &v1::ControlReply) -> String {
    screen::count(reply.to_run, "task")
}

struct Controlled<'a> {
    experiment: &'a str,
    coordinator: &'a CoordinatorArgs,
    data: &'a DataArgs,
}

fn control(args: &ControlArgs, action: Action) -> Result<v1::ControlReply, Failure> {
    let control = Controlled { experiment: &args.experiment, coordinator: &args.coordinator, data: &args.data };
    ask(&control, action)
}

fn ask(control: &Controlled<'_>, action: Action) -> Result<v1::ControlReply, Failure> {
    let request = v1::ControlRequest { experiment: control.experiment.to_owned(), action: Some(action) };
    client::block_on(async {
        match place(control.coordinator, control.data).await? {
            Place::Remote(mut farm) => Ok(farm.control(request).await.map_err(|s| client::refused(&s))?.into_inner()),
            Place::Here(farm) => {
                let reply = farm.handle().requests().control(request).await.map_err(|status| client::refused(&status));
                farm.end().await?;
                reply
            }
        }
    })?
}

/// The coordinator that carries out a request.
enum Place {
    Remote(Box<powersweep_proto::client::Client>),
    Here(Box<LocalFarm>),
}

async fn place(coordinator: &CoordinatorArgs, data: &DataArgs) -> Result<Place, Failure> {
    let mut address = client::address(coordinator)?;
    if coordinator.coordinator.is_none() {
        let location = Location::parse(&data.data).or_exit(Exit::Usage)?;
        match stored::owner_endpoint(&location).await? {
            Some(endpoint) => address.url = endpoint,
            None => return here(&location, data).await,
        }
    }
    Ok(Place::Remote(Box::new(client::connect(&address).await?)))
}

/// A coordinator in this process. A folder without state is refused, so that a typing error creates no state there.
async fn here(location: &Location, data: &DataArgs) -> Result<Place, Failure> {
    if location.path().is_some_and(|path: &Path| !path.join(PRIVATE_DIR).is_dir()) {
        let hint = "name the folder that `run` or `serve` was given with --data, or a coordinator with --coordinator";
        return Err(Failure::new(Exit::Usage, format!("there are no experiments in {location}\n{hint}")));
    }
    let options = FarmOptions {
        data: data.data.clone(),
        listen: ([127, 0, 0, 1], 0).into(),
        tokens: Tokens::default(),
        tls: None,
        insecure: false,
        take_over: false,
        local: None,
    };
    Ok(Place::Here(Box::new(LocalFarm::start(options, &CancellationToken::new()).await?)))
}
