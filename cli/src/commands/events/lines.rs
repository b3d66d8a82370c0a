//! The lines of events.

use std::time::SystemTime;

use powersweep_dataset::cell;
use powersweep_proto::v1;
use serde::Serialize;
use serde_json::{Map, Value as Json, json};

use crate::exit::Failure;
use crate::screen;

/// One event.
#[derive(Serialize)]
struct Line<'a> {
    version: u64,
    time: String,
    kind: &'a str,
    experiment: &'a str,
    #[serde(flatten)]
    facts: Map<String, Json>,
}

/// Standard output, as lines of one experiment.
pub(super) struct Lines {
    experiment: String,
    /// Earlier events are left out (µs since 1970 UTC).
    since_us: Option<i64>,
    /// The reader has closed the pipe.
    closed: bool,
}

impl Lines {
    pub(super) fn new(experiment: &str, since_us: Option<i64>) -> Lines {
        Lines { experiment: experiment.to_owned(), since_us, closed: false }
    }

    pub(super) fn experiment(&self) -> &str {
        &self.experiment
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// The text of an event, with the newline; `None` if it is too early.
    pub(super) fn line(&self, time_us: i64, kind: &str, facts: Map<String, Json>) -> Option<String> {
        if self.since_us.is_some_and(|since_us| time_us < since_us) {
            return None;
        }
        let time = cell::instant(time_us).unwrap_or_default();
        let line = Line { version: screen::JSON_VERSION, time, kind, experiment: &self.experiment, facts };
        Some(serde_json::to_string(&line).expect("texts and numbers become JSON") + "\n")
    }

    /// Writes whole lines.
    pub(super) fn write(&mut self, lines: &str) -> Result<(), Failure> {
        if !self.closed && !lines.is_empty() {
            self.closed = !screen::write(lines)?;
        }
        Ok(())
    }

    /// Writes an event of this moment.
    pub(super) fn note<const N: usize>(&mut self, kind: &str, facts: [(&str, Json); N]) -> Result<(), Failure> {
        let facts = facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let line = self.line(now_us(), kind, facts).unwrap_or_default();
        self.write(&line)
    }

    /// Writes the state of the experiment.
    pub(super) fn state(&mut self, found: &v1::ExperimentStatus) -> Result<(), Failure> {
        self.note(
            "experiment_state",
            [
                ("state", found.state().word().into()),
                ("reason", json!(Some(&found.reason).filter(|reason| !reason.is_empty()))),
                ("tasks", found.tasks.into()),
                ("done", found.done.into()),
                ("failed", (found.failed + found.quarantined).into()),
            ],
        )
    }
}

fn now_us() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
