//! `powersweep report`: the pages of one experiment in a file that needs no server.

use powersweep::block_on;
use powersweep::{Status, StatusOptions};
use powersweep_dashboard::survey::Choice;
use powersweep_dashboard::{Report, RowsAsk};
use powersweep_dataset::writing::write_whole;

use crate::args::ReportArgs;
use crate::exit::{Exit, Outcome};
use crate::{screen, survey};

/// Failures of a report.
const FAILURES: u32 = 40;
/// Cells of the grid of tasks.
const BINS: u32 = 2_000;

/// Writes the report of an experiment.
pub fn run(args: &ReportArgs) -> Outcome {
    block_on(async {
        let place = args.from.place()?;
        let datasets = place.datasets().await?;
        let name = &args.experiment;
        let text = |option: &Option<String>| option.clone().unwrap_or_default();
        let choice =
            Choice { x: text(&args.x), y: text(&args.y), by: text(&args.by), of: text(&args.of), ..Choice::default() };
        let survey = survey::survey(&datasets, name, &choice, None).await?;
        let options = survey::options(&args.from.coordinator, &args.from.data);
        let ask = RowsAsk { experiment: name.clone(), ..RowsAsk::default() };
        let rows = survey::rows(&datasets, &ask, &options).await?;
        let wanted = StatusOptions {
            experiment: Some(name.clone()),
            failures: FAILURES,
            bins: BINS,
            ..StatusOptions::default()
        };
        let status = place.status(&wanted).await;
        if let Err(failure) = &status {
            screen::note(&format!("powersweep: the report has no state of {name}: {}", failure.message));
        }
        let now = chrono::Utc::now().format("%Y-%m-%d %H:%M UTC");
        let made = format!("Made by powersweep {} on {now}, from {datasets}.", env!("CARGO_PKG_VERSION"));
        let report =
            Report { experiment: status.ok().and_then(Status::into_first), name: name.clone(), made, survey, rows };
        write_whole(args.output.as_deref(), powersweep_dashboard::report(&report).as_bytes())?;
        Ok(Exit::Done)
    })
}
