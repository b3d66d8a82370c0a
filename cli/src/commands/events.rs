//! `powersweep events`: what happened to an experiment, one JSON object on each line.
//!
//! Finished tasks, failed attempts and parts come from the tables, which outlive every restart. States and workers come
//! from the coordinator's status, which is asked again and again: so there is no second record of what happened, and the
//! coordinator has nothing to keep. What begins and ends between two looks at the status is not seen.

mod lines;
mod rows;
mod status;

use std::time::{Duration, Instant};

use powersweep::block_on;
use powersweep::place::{connection, stored};
use powersweep::{Answerer, Place};
use powersweep_coordinator::plan;
use powersweep_proto::client::Client;
use powersweep_proto::v1;

use self::lines::Lines;
use self::rows::Rows;
use self::status::Watched;
use super::submit::end_of;
use crate::args::EventsArgs;
use crate::exit::{Exit, Failure, Kind, Outcome, failure};

/// Interval of the looks at the status.
const INTERVAL: Duration = Duration::from_secs(1);

/// Looks at the rows take at most one in this number of seconds: each reads all unpublished rows.
const ROWS_SHARE: u32 = 10;

/// Looks at the rows that may fail one after the other: a look fails if parts are split meanwhile.
const LOOKS_MAX: u32 = 10;

/// Prints the events of an experiment.
pub fn run(args: &EventsArgs) -> Outcome {
    block_on(async {
        let mut lines = Lines::new(&args.experiment, args.since);
        let place = args.from.place()?;
        if !args.follow {
            let datasets = place.datasets().await?;
            Rows::default().look(&datasets, &mut lines).await?;
            return Ok(Exit::Done);
        }
        match place.answerer().await? {
            Answerer::Coordinator(client) => Follow::new(args, &place, client, lines).run().await,
            Answerer::Shards(location, _) | Answerer::State(location) => {
                let loaded = stored::read(&location).await?;
                let status = plan::status(loaded, None, &request(args), &location.to_string());
                Rows::default().look(&place.datasets_here()?, &mut lines).await?;
                ended(&mut lines, &status)
            }
        }
    })
}

fn request(args: &EventsArgs) -> v1::StatusRequest {
    v1::StatusRequest { experiment: args.experiment.clone(), max_failures: 10, ..Default::default() }
}

/// The end of a follower where no coordinator runs: of an experiment that has ended.
fn ended(lines: &mut Lines, status: &v1::StatusReply) -> Outcome {
    let found = status.experiments.first();
    if let Some(found) = found {
        lines.state(found)?;
    }
    found.and_then(end_of).unwrap_or_else(|| {
        Err(failure!(
            Network,
            "no coordinator runs the tasks of {}: there is nothing to follow. Start one with `powersweep serve`, or name one \
             with --access or --coordinator",
            lines.experiment()
        ))
    })
}

/// A follower of an experiment.
struct Follow<'a> {
    args: &'a EventsArgs,
    place: &'a Place,
    client: Client,
    lines: Lines,
    rows: Rows,
    watched: Watched,
    /// Rows are looked at from then on.
    rows_at: Instant,
    /// Looks at the rows that have failed one after the other.
    failed_looks: u32,
}

impl<'a> Follow<'a> {
    fn new(args: &'a EventsArgs, place: &'a Place, client: Client, lines: Lines) -> Follow<'a> {
        let (rows, watched) = (Rows::default(), Watched::default());
        Follow { args, place, client, lines, rows, watched, rows_at: Instant::now(), failed_looks: 0 }
    }

    /// Ends with the experiment, or when the reader has closed the pipe.
    async fn run(mut self) -> Outcome {
        loop {
            match self.look().await {
                Ok(Some(outcome)) => return outcome,
                Ok(None) if self.lines.is_closed() => return Ok(Exit::Done),
                Ok(None) => tokio::time::sleep(INTERVAL).await,
                Err(failure) if failure.kind == Kind::Network => {
                    self.watched.forget_rows();
                    self.lines.note("coordinator_lost", [("reason", failure.message.trim_end().into())])?;
                    self.client = self.place.reconnect(&failure).await?;
                }
                Err(failure) => return Err(failure),
            }
        }
    }

    /// One look; the outcome of the experiment if it has ended.
    async fn look(&mut self) -> Result<Option<Outcome>, Failure> {
        let status = match connection::status(&mut self.client, request(self.args)).await {
            Ok(status) => status,
            Err(status) if status.code() == tonic::Code::NotFound && self.watched.knows_experiment() => {
                return Err(failure!(Cancelled, "{} was deleted by another command", self.args.experiment));
            }
            Err(status) => {
                return Err(connection::refused_about(&mut self.client, &status, &self.args.experiment).await);
            }
        };
        let Some(found) = status.experiments.first() else {
            return Err(failure!(Refused, "the coordinator does not know {}", self.args.experiment));
        };
        let end = end_of(found);
        self.watched.coordinator(&status, &mut self.lines)?;
        self.watched.workers(&status, &mut self.lines)?;
        if end.is_some() || (Instant::now() >= self.rows_at && self.watched.has_new_rows(found)) {
            self.look_at_rows(end.is_some()).await?;
        }
        // After the rows: the last line says how the experiment ended.
        self.watched.experiment(found, &mut self.lines)?;
        Ok(end)
    }

    async fn look_at_rows(&mut self, last: bool) -> Result<(), Failure> {
        loop {
            let begun = Instant::now();
            let looked = self.rows.look(&self.place.datasets_at(&self.client), &mut self.lines).await;
            self.rows_at = Instant::now() + begun.elapsed() * (ROWS_SHARE - 1);
            match looked {
                Err(failure) if failure.kind == Kind::Failure && self.failed_looks < LOOKS_MAX => {
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
