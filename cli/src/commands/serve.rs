//! `powersweep serve`: a coordinator.

use powersweep::block_on;
use powersweep_experiments::settings::quoted;
use powersweep_proto::access::Role;

use crate::args::ServeArgs;
use crate::exit::{Exit, Kind, Outcome, failure};
use crate::{interrupt, screen};
use powersweep::farm::{self, CoordinatorOptions, LocalCoordinator};

/// Serves until it is interrupted, an upgrade is prepared, or another coordinator takes the data over.
pub fn run(args: &ServeArgs) -> Outcome {
    allow_many_connections();
    let options = CoordinatorOptions {
        data: args.data.data.clone(),
        listen: args.listen,
        advertise: args.advertise.clone(),
        metrics: args.metrics,
        scaler: args.scaler,
        insecure: args.insecure,
        direct_uploads: args.direct_uploads,
        take_over: args.take_over,
        local: None,
        shard: None,
        notes: screen::notes(),
    };
    block_on(async {
        let stop = interrupt::token();
        let farm = LocalCoordinator::start(options, &stop).await?;
        screen::note(&serving(&farm, &args.data.data));
        if let Some(address) = farm.handle().metrics_addr() {
            screen::note(&format!("powersweep: metrics at http://{address}/metrics"));
        }
        if let Some(address) = farm.handle().scaler_addr() {
            screen::note(&format!("powersweep: KEDA can ask at {address}"));
        }
        let lost = tokio::select! {
            () = stop.cancelled() => false,
            () = farm.ended() => false,
            () = farm.lost() => true,
        };
        let ended = farm::explained(farm.end(), &screen::notes()).await;
        if lost || ended.as_ref().is_err_and(|failure| failure.kind == Kind::Fenced) {
            return Err(failure!(Fenced, "another coordinator has taken the data over; this one has stopped"));
        }
        ended.map(|()| Exit::Done)
    })
}

/// Each connection is an open file. Most systems allow 1,024 open files unless a program raises its limit.
fn allow_many_connections() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }) {
        tracing::debug!("the limit of open files stays {:?}: {error}", limit.current);
    }
}

/// Where it serves, and how workers join.
fn serving(farm: &LocalCoordinator, data: &str) -> String {
    let worker = farm.handle().access(Role::Worker);
    let folder = farm.handle().authority().folder().map(|folder| folder.join(Role::Worker.file_name()));
    let file = folder.unwrap_or_default();
    let data = quoted(data);
    format!(
        "powersweep: serving {} at {}\n  a worker: powersweep worker --access {}\n  a worker without this file: powersweep \
         access export --worker --join --data {data}",
        farm.location,
        worker.addresses.first().map_or("", String::as_str),
        quoted(&file.display().to_string()),
    )
}
