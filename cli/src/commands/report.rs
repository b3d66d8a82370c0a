//! `powersweep report`: the pages of one experiment in a file that needs no server.

use powersweep::block_on;
use powersweep_dashboard::RowsQuery;
use powersweep_dataset::survey::Choice;
use powersweep_dataset::writing::write_whole;

use crate::args::ReportArgs;
use crate::exit::{Exit, Outcome};
use crate::rows_command::command;

/// Writes the report of an experiment.
pub fn run(args: &ReportArgs) -> Outcome {
    let text = |option: &Option<String>| option.clone().unwrap_or_default();
    let choice =
        Choice { x: text(&args.x), y: text(&args.y), by: text(&args.by), of: text(&args.of), ..Choice::default() };
    let mut report = block_on(async { args.from.place()?.report(&args.experiment, &choice).await })?;
    let next = RowsQuery { experiment: args.experiment.clone(), page: 1, ..RowsQuery::default() };
    // A report leaves the house: its command names no folder and no host.
    report.rows.command = command(&next, "");
    write_whole(args.output.as_deref(), powersweep_dashboard::report(&report).as_bytes())?;
    Ok(Exit::Done)
}
