//! `powersweep events`: what happened to an experiment, one JSON object on each line.

use powersweep::block_on;
use powersweep::events::{Event, EventsOptions};
use serde::Serialize;

use super::submit::end_of;
use crate::args::EventsArgs;
use crate::exit::{Exit, Failure, Kind, OrKind, Outcome};
use crate::screen;

/// A line for an event.
#[derive(Serialize)]
struct Line<'a> {
    version: u64,
    #[serde(flatten)]
    event: &'a Event,
}

/// Prints the events of an experiment.
pub fn run(args: &EventsArgs) -> Outcome {
    let options = EventsOptions { follow: args.follow, since_us: args.since };
    let ended = block_on(async { args.from.place()?.events(&args.experiment, options, print).await })?;
    ended.as_ref().and_then(end_of).unwrap_or(Ok(Exit::Done))
}

/// Prints whole lines; false if the reader has closed the pipe.
fn print(events: &[Event]) -> Result<bool, Failure> {
    let mut text = String::new();
    for event in events {
        let line = serde_json::to_string(&Line { version: screen::JSON_VERSION, event });
        text += &(line.or_kind(Kind::Failure)? + "\n");
    }
    screen::write(&text)
}
