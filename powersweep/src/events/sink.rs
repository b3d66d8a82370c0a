//! One event, and where events go.

use powersweep_dataset::{Error, cell};
use powersweep_proto::clocks::now_us;
use powersweep_proto::v1;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value as Json, json};

/// What happened to an experiment.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Event {
    /// When (µs since 1970 UTC).
    #[serde(rename = "time", serialize_with = "instant")]
    pub time_us: i64,
    /// Its kind, such as `task_completed`.
    pub kind: &'static str,
    /// Name of the experiment.
    pub experiment: String,
    /// What the kind tells.
    #[serde(flatten)]
    pub facts: Map<String, Json>,
}

fn instant<S: Serializer>(time_us: &i64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&cell::instant(*time_us).unwrap_or_default())
}

/// Gets events, and returns whether it wants more.
pub(super) type Each<'a> = dyn FnMut(&[Event]) -> Result<bool, Error> + Send + 'a;

/// The events of one experiment, on their way to the caller.
pub(super) struct Sink<'a> {
    pub(super) experiment: String,
    /// Earlier events are left out (µs since 1970 UTC).
    since_us: Option<i64>,
    /// The caller wants no more events.
    pub(super) is_closed: bool,
    each: &'a mut Each<'a>,
}

impl<'a> Sink<'a> {
    pub(super) fn new(experiment: &str, since_us: Option<i64>, each: &'a mut Each<'a>) -> Sink<'a> {
        Sink { experiment: experiment.to_owned(), since_us, is_closed: false, each }
    }

    /// An event; `None` if it is too early.
    pub(super) fn event(&self, time_us: i64, kind: &'static str, facts: Map<String, Json>) -> Option<Event> {
        let is_late = self.since_us.is_none_or(|since_us| time_us >= since_us);
        is_late.then(|| Event { time_us, kind, experiment: self.experiment.clone(), facts })
    }

    /// Gives events to the caller.
    pub(super) fn give(&mut self, events: &[Event]) -> Result<(), Error> {
        if !self.is_closed && !events.is_empty() {
            self.is_closed = !(self.each)(events)?;
        }
        Ok(())
    }

    /// Gives an event of this moment.
    pub(super) fn note<const N: usize>(&mut self, kind: &'static str, facts: [(&str, Json); N]) -> Result<(), Error> {
        let facts = facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let event = self.event(now_us(), kind, facts);
        self.give(event.as_slice())
    }

    /// Gives the state of the experiment.
    pub(super) fn state(&mut self, found: &v1::ExperimentStatus) -> Result<(), Error> {
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
