//! Control of an experiment, and the end of its coordinator.
//!
//! A request goes to the coordinator that was named, else to the one that serves the data. If none runs, this process runs
//! one for the request.

use std::time::Duration;

use powersweep_coordinator::store::Location;
use powersweep_dataset::{Error, failure};
use powersweep_proto::access::Role;
use powersweep_proto::client::Client;
use powersweep_proto::v1;
use powersweep_proto::v1::control_request::Action;
use tokio_util::sync::CancellationToken;
use tonic::{Response, Status};

use crate::farm::{CoordinatorOptions, LocalCoordinator};
use crate::place::{Answerer, Place, connection, shards, stored};

impl Place {
    /// Pauses an experiment: running tasks finish, no other task starts.
    pub async fn pause(&self, experiment: &str) -> Result<v1::ControlReply, Error> {
        self.control(experiment, Action::Pause(v1::Pause {})).await
    }

    /// Continues a paused or cancelled experiment.
    pub async fn resume(&self, experiment: &str) -> Result<v1::ControlReply, Error> {
        self.control(experiment, Action::Resume(v1::Resume {})).await
    }

    /// Cancels an experiment: running tasks stop, rows of finished tasks are kept.
    pub async fn cancel(&self, experiment: &str) -> Result<v1::ControlReply, Error> {
        self.control(experiment, Action::Cancel(v1::Cancel {})).await
    }

    /// Retries the tasks that failed for good and are chosen; all of them if no index and no kind is given.
    pub async fn retry(&self, experiment: &str, chosen: v1::Retry) -> Result<v1::ControlReply, Error> {
        self.control(experiment, Action::Retry(chosen)).await
    }

    /// Sets the priority, from -1000 to 1000: a higher one is served first.
    pub async fn set_priority(&self, experiment: &str, priority: i32) -> Result<v1::ControlReply, Error> {
        self.control(experiment, Action::SetPriority(v1::SetPriority { priority })).await
    }

    /// Deletes the rows of values that left the manifest.
    pub async fn prune(&self, experiment: &str) -> Result<v1::ControlReply, Error> {
        self.control(experiment, Action::Prune(v1::Prune {})).await
    }

    /// Deletes the state of an experiment, and its rows if asked to.
    pub async fn delete(&self, experiment: &str, options: v1::Delete) -> Result<v1::ControlReply, Error> {
        self.control(experiment, Action::Delete(options)).await
    }

    /// Publishes all acknowledged rows of an experiment as Parquet files.
    pub async fn flush(&self, experiment: &str) -> Result<v1::FlushReply, Error> {
        let request = v1::FlushRequest { experiment: experiment.to_owned() };
        self.ask(self.answerer_of(experiment).await?, experiment, async |client| client.flush(request).await).await
    }

    /// Lets running tasks finish, for at most the drain limit, publishes all rows and ends the coordinator, so that another
    /// version can start.
    pub async fn prepare_upgrade(&self, drain_limit: Option<Duration>) -> Result<v1::PrepareUpgradeReply, Error> {
        let request = v1::PrepareUpgradeRequest { drain_s: drain_limit.map(|limit| limit.as_secs_f64()) };
        self.ask(self.answerer().await?, "", async |client| client.prepare_upgrade(request).await).await
    }

    async fn control(&self, experiment: &str, action: Action) -> Result<v1::ControlReply, Error> {
        let any_owner = self.any_owner;
        let request = v1::ControlRequest { experiment: experiment.to_owned(), action: Some(action), any_owner };
        self.ask(self.answerer_of(experiment).await?, experiment, async |client| client.control(request).await).await
    }

    /// Sends a request to the coordinator, or to one that this process runs for this request.
    async fn ask<T>(
        &self,
        answerer: Answerer,
        experiment: &str,
        request: impl AsyncFnOnce(&mut Client) -> Result<Response<T>, Status>,
    ) -> Result<T, Error> {
        let (mut client, own) = match answerer {
            Answerer::Coordinator(client) => (client, None),
            Answerer::Shards(location, record) => return Err(shards::takes_no_requests(&location, &record)),
            Answerer::State(location) => {
                let coordinator = self.own_coordinator(&location).await?;
                (connection::connect(&coordinator.address(Role::Client)).await?, Some((coordinator, location)))
            }
        };
        let reply = match request(&mut client).await {
            Ok(reply) => Ok(reply),
            Err(status) => Err(connection::refused_about(&mut client, &status, experiment).await),
        };
        drop(client);
        if let Some((coordinator, location)) = own {
            coordinator.end().await?;
            if reply.is_err() && stored::has_rows_alone(&location, &stored::read(&location).await?, experiment).await? {
                return Err(stored::without_state(&location, experiment));
            }
        }
        Ok(reply?.into_inner())
    }

    /// A coordinator in this process. A folder without state is refused, so that a typing error does not create one.
    async fn own_coordinator(&self, location: &Location) -> Result<LocalCoordinator, Error> {
        if !stored::is_there(location) {
            let hint = "give the folder of `run` or `serve` with --data, or a coordinator with --coordinator";
            return Err(failure!(Usage, "there are no experiments in {location}\n{hint}"));
        }
        let options = CoordinatorOptions::on_loopback(&self.data, self.notes.clone());
        LocalCoordinator::start(options, &CancellationToken::new()).await
    }
}
