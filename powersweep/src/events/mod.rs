//! What happened to an experiment.
//!
//! Finished tasks, failed attempts and parts come from the tables, which outlive every restart. States and workers come
//! from the coordinator's status, which is asked again and again: so there is no second record of what happened, and the
//! coordinator has nothing to keep. What begins and ends between two looks at the status is not seen.

mod rows;
mod sink;
mod status;

use std::time::{Duration, Instant};

use powersweep_coordinator::plan;
use powersweep_dataset::{Error, Kind, failure};
use powersweep_proto::client::Client;
use powersweep_proto::v1;

use self::rows::Rows;
pub use self::sink::Event;
use self::sink::Sink;
use self::status::Watched;
use crate::place::{Answerer, Place, connection, stored};
use crate::submit::end_of;

/// Interval of the looks at the status.
const INTERVAL: Duration = Duration::from_secs(1);

/// Looks at the rows take at most one in this number of seconds: each reads all unpublished rows.
const ROWS_SHARE: u32 = 10;

/// Looks at the rows that may fail one after the other: a look fails if parts are split meanwhile.
const LOOKS_MAX: u32 = 10;

/// Which events are given.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EventsOptions {
    /// Continues until the experiment ends, also while the coordinator restarts.
    pub follow: bool,
    /// Only events since this instant (µs since 1970 UTC).
    pub since_us: Option<i64>,
}

impl Place {
    /// Calls `each` with events as they are found, until it returns false. Returns the last state of an experiment that was
    /// followed to its end; failed tasks are no error.
    ///
    /// # Errors
    /// The experiment is unknown, or another command stopped it while it was followed, or no coordinator runs its tasks.
    pub async fn events(
        &self,
        experiment: &str,
        options: EventsOptions,
        mut each: impl FnMut(&[Event]) -> Result<bool, Error> + Send,
    ) -> Result<Option<v1::ExperimentStatus>, Error> {
        let mut sink = Sink::new(experiment, options.since_us, &mut each);
        if !options.follow {
            Rows::default().look(&self.datasets().await?, &mut sink).await?;
            return Ok(None);
        }
        match self.answerer().await? {
            Answerer::Coordinator(client) => Follow::new(self, client, sink).run().await,
            Answerer::Shards(location, _) | Answerer::State(location) => {
                let loaded = stored::read(&location).await?;
                let status = plan::status(loaded, None, &request(experiment), &location.to_string());
                Rows::default().look(&self.datasets_here()?, &mut sink).await?;
                ended(&mut sink, status).map(Some)
            }
        }
    }
}

fn request(experiment: &str) -> v1::StatusRequest {
    v1::StatusRequest { experiment: experiment.to_owned(), max_failures: 10, ..Default::default() }
}

/// The end of a follower where no coordinator runs: of an experiment that has ended.
fn ended(sink: &mut Sink<'_>, status: v1::StatusReply) -> Result<v1::ExperimentStatus, Error> {
    let found = status.experiments.into_iter().next();
    if let Some(found) = &found {
        sink.state(found)?;
    }
    found.and_then(end_of).unwrap_or_else(|| {
        Err(failure!(
            Network,
            "no coordinator runs the tasks of {}: there is nothing to follow. Start one with `powersweep serve`, or name the \
             one that does",
            sink.experiment
        ))
    })
}

/// A follower of an experiment.
struct Follow<'a> {
    place: &'a Place,
    client: Client,
    sink: Sink<'a>,
    rows: Rows,
    watched: Watched,
    /// Rows are looked at from then on.
    rows_at: Instant,
    /// Looks at the rows that have failed one after the other.
    failed_looks: u32,
}

impl<'a> Follow<'a> {
    fn new(place: &'a Place, client: Client, sink: Sink<'a>) -> Follow<'a> {
        let (rows, watched) = (Rows::default(), Watched::default());
        Follow { place, client, sink, rows, watched, rows_at: Instant::now(), failed_looks: 0 }
    }

    /// Ends with the experiment, or when the caller wants no more events.
    async fn run(mut self) -> Result<Option<v1::ExperimentStatus>, Error> {
        loop {
            match self.look().await {
                Ok(Some(ended)) => return ended.map(Some),
                Ok(None) if self.sink.is_closed => return Ok(None),
                Ok(None) => tokio::time::sleep(INTERVAL).await,
                Err(error) if error.kind == Kind::Network => {
                    self.watched.forget_rows();
                    self.sink.note("coordinator_lost", [("reason", error.message.trim_end().into())])?;
                    self.client = self.place.reconnect(&error).await?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// One look; how the experiment ended, if it has.
    async fn look(&mut self) -> Result<Option<Result<v1::ExperimentStatus, Error>>, Error> {
        let name = self.sink.experiment.clone();
        let status = match connection::status(&mut self.client, request(&name)).await {
            Ok(status) => status,
            Err(status) if status.code() == tonic::Code::NotFound && self.watched.knows_experiment() => {
                return Err(failure!(Cancelled, "{name} was deleted by another command"));
            }
            Err(status) => {
                return Err(connection::refused_about(&mut self.client, &status, &name).await);
            }
        };
        let Some(found) = status.experiments.first() else {
            return Err(failure!(
                Refused,
                "the coordinator has no experiment {name}: `powersweep status` lists those that it has"
            ));
        };
        let end = end_of(found.clone());
        self.watched.coordinator(&status, &mut self.sink)?;
        self.watched.workers(&status, &mut self.sink)?;
        if end.is_some() || (Instant::now() >= self.rows_at && self.watched.has_new_rows(found)) {
            self.look_at_rows(end.is_some()).await?;
        }
        // After the rows: the last line says how the experiment ended.
        self.watched.experiment(found, &mut self.sink)?;
        Ok(end)
    }

    async fn look_at_rows(&mut self, last: bool) -> Result<(), Error> {
        loop {
            let begun = Instant::now();
            let looked = self.rows.look(&self.place.datasets_at(&self.client), &mut self.sink).await;
            self.rows_at = Instant::now() + begun.elapsed() * (ROWS_SHARE - 1);
            match looked {
                Err(error) if error.kind == Kind::Failure && self.failed_looks < LOOKS_MAX => {
                    self.failed_looks += 1;
                    self.watched.forget_rows();
                }
                looked => {
                    self.failed_looks = 0;
                    return looked;
                }
            }
            if !last {
                return Ok(());
            }
            tokio::time::sleep(INTERVAL).await;
        }
    }
}
