//! Where the tasks of a study run: at a coordinator, or in this process.

use std::time::Duration;

use powersweep_dataset::reading::ReadBefore;
use powersweep_dataset::{Cell, Condition, Error, Kind, failure};
use powersweep_proto::access::Role;
use powersweep_proto::client::Client;
use powersweep_proto::v1;
use powersweep_proto::v1::control_request::Action;
use powersweep_results::Table;

use crate::farm::{CoordinatorOptions, LocalCoordinator, OneSweep};
use crate::find::each_row;
use crate::inputs::Files;
use crate::place::{Answerer, Place, connection};
use crate::run::{RunOptions, Worker, local_worker_name};

/// How often an owner of the data that does not answer is looked for, and the time between two looks.
const LOOKS_MAX: u32 = 20;
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// A coordinator with its workers.
pub(super) struct Farm {
    place: Place,
    /// Name of the study's experiment.
    experiment: String,
    pub(super) client: Client,
    /// Coordinator and worker of this process, unless another process serves the data.
    here: Option<(LocalCoordinator, Worker)>,
}

impl Farm {
    /// The coordinator that was named or serves the data, else one of this process with a worker.
    pub(super) async fn open(place: &Place, experiment: &str, files: &Files, run: &RunOptions) -> Result<Farm, Error> {
        let (place, name) = (place.clone(), experiment.to_owned());
        let mut looks = 0;
        let coordinator = loop {
            let location = match place.runner().await? {
                Answerer::Coordinator(client) => return Ok(Farm { place, experiment: name, client, here: None }),
                Answerer::Shards(location, _) | Answerer::State(location) => location,
            };
            if crate::place::shards::find(&location, experiment).await?.is_some() {
                return Err(failure!(
                    Usage,
                    "{experiment} has shards, which take no points: give the study another name"
                ));
            }
            let options = CoordinatorOptions {
                listen: run.listen,
                take_over: run.take_over,
                local: Some(OneSweep::of(experiment, files)),
                ..CoordinatorOptions::on_loopback(&place.data, place.notes.clone())
            };
            looks += 1;
            match LocalCoordinator::start(options, &run.stop).await {
                Ok(coordinator) => break coordinator,
                // An owner that began just now, or that was slow to answer, answers soon.
                Err(error) if error.kind == Kind::Owned && looks < LOOKS_MAX => tokio::time::sleep(LOOK_INTERVAL).await,
                Err(error) => return Err(error),
            }
        };
        let worker = Worker::start(&coordinator, run, local_worker_name(), files.parsed.clone());
        match connection::connect(&coordinator.address(Role::Client)).await {
            Ok(client) => Ok(Farm { place, experiment: name, client, here: Some((coordinator, worker)) }),
            Err(error) => {
                worker.end().await;
                coordinator.end().await?;
                Err(error)
            }
        }
    }

    /// Whether tasks run in this process.
    pub(super) fn is_here(&self) -> bool {
        self.here.is_some()
    }

    /// Calls `each` with the id of the task and the cells of each row of a table that was not read `before`. If the rows cannot be
    /// read, all are read again.
    pub(super) async fn each_new_row(
        &self,
        table: Table,
        before: &mut ReadBefore,
        columns: &[&str],
        choosing: Vec<Condition>,
        each: impl FnMut(String, Vec<Cell>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let datasets = self.place.datasets_at(&self.client);
        let mut reading = datasets.read(&self.experiment, table).await?;
        let mut known = std::mem::take(before);
        reading.only_new(&mut known);
        each_row(&datasets, &reading, columns, choosing, each).await?;
        *before = known;
        Ok(())
    }

    /// Connects again after an error of the network.
    pub(super) async fn reconnect(&mut self, lost: &Error) -> Result<(), Error> {
        if self.is_here() {
            return Err(lost.clone());
        }
        self.client = self.place.reconnect(lost).await?;
        Ok(())
    }

    /// The experiment's state; `None` if there is no such experiment.
    pub(super) async fn status(&mut self, manifest: bool) -> Result<Option<v1::ExperimentStatus>, Error> {
        if let Some((_, worker)) = &self.here
            && worker.has_ended()
        {
            return Err(failure!(Failure, "the worker of this process has ended"));
        }
        let request = v1::StatusRequest { experiment: self.experiment.clone(), manifest, ..Default::default() };
        match connection::status(&mut self.client, request).await {
            Ok(status) => Ok(status.experiments.into_iter().next()),
            Err(status) if status.code() == tonic::Code::NotFound => Ok(None),
            Err(status) => Err(connection::refused(&status)),
        }
    }

    /// Submits a manifest. An experiment of this process that was paused continues.
    pub(super) async fn submit(&mut self, request: v1::SubmitRequest) -> Result<v1::SubmitReply, Error> {
        let refused = |status| connection::refused(&status);
        let reply = self.client.submit(request).await.map_err(refused)?.into_inner();
        if self.is_here() && reply.state() == v1::ExperimentState::Paused {
            let action = Some(Action::Resume(v1::Resume {}));
            let request = v1::ControlRequest { experiment: reply.experiment.clone(), action, any_owner: false };
            self.client.control(request).await.map_err(refused)?;
        }
        Ok(reply)
    }

    /// Publishes the rows that are there.
    pub(super) async fn flush(&mut self) -> Result<(), Error> {
        let request = v1::FlushRequest { experiment: self.experiment.clone() };
        self.client.flush(request).await.map(drop).map_err(|status| connection::refused(&status))
    }

    /// Ends what runs in this process; finished rows are published.
    pub(super) async fn end(self) -> Result<(), Error> {
        let Some((coordinator, worker)) = self.here else { return Ok(()) };
        worker.end().await;
        coordinator.end().await
    }
}
