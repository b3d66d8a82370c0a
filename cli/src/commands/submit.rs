//! `powersweep submit`: submits a manifest and its logs to a coordinator.

use std::sync::Arc;

use powersweep::block_on;
use powersweep::inputs::LOGS_BYTES;
use powersweep::place::connection;
use powersweep::plan;
use powersweep::run::RunOptions;
use powersweep::status::ended_well;
use powersweep::submit::{stopped, submission, upload_missing};
use powersweep_inputs::library::ParsedLogs;
use powersweep_proto::v1;
use powersweep_results::layout::left_name;

use super::replicate::replicate;
use crate::args::SubmitArgs;
use crate::exit::{Exit, Outcome};
use crate::{inputs, interrupt, screen, signals, warnings};

/// Checks the manifest in this process, submits it and uploads its logs.
pub fn run(args: &SubmitArgs) -> Outcome {
    let manifest = inputs::manifest(&args.manifest)?;
    let library = inputs::library_of(&args.manifest, &args.logs);
    let logs = Arc::new(ParsedLogs::new(LOGS_BYTES));
    let files = inputs::files(&manifest, &library, Some(&logs))?;
    let sweep = inputs::sweep(&manifest, &files.digests)?;
    let found = plan::warnings(&sweep, &files.signals, &logs);
    let place = args.coordinator.place(&args.data)?;
    if manifest.until().is_some() && args.wait && !args.dry_run {
        let options = RunOptions { replace: args.replace, stop: interrupt::token(), ..RunOptions::default() };
        block_on(place.connect())?;
        let options = inputs::derived(&args.manifest, &args.logs, ParsedLogs::new(LOGS_BYTES), options);
        return replicate(&manifest, &place, options, false);
    }
    block_on(async {
        let mut farm = place.connect().await?;
        let mut request = submission(&manifest, &files);
        request.dry_run = args.dry_run;
        request.restart = args.restart;
        request.replace = args.replace;
        request.priority = args.priority;
        let reply = farm.submit(request).await.map_err(|status| connection::refused(&status))?.into_inner();
        screen::print(&describe(&reply, args.dry_run.then_some("would run")))?;
        signals::note_changes(&files.signals);
        warnings::note(&found, &args.manifest);
        if args.dry_run {
            return Ok(Exit::Done);
        }
        upload_missing(&mut farm, &manifest, &files, &library, &reply.missing_logs).await?;
        if !args.wait {
            return Ok(Exit::Done);
        }
        end_of(&place.wait(farm, &reply.experiment).await?).unwrap_or(Ok(Exit::Done))
    })
}

/// The effect of a submit; of a dry run with the verb of the tasks without a row.
pub fn describe(reply: &v1::SubmitReply, dry_run: Option<&str>) -> String {
    let verb = dry_run.unwrap_or("to run");
    let mut text = format!(
        "{}: {}, {} done already, {} {verb}",
        reply.experiment,
        screen::count(reply.tasks, "task"),
        reply.done,
        reply.to_run
    );
    if reply.failed > 0 {
        text.push_str(&format!(", {} failed for good", reply.failed));
    }
    if reply.extra > 0 {
        let rows = screen::count(reply.extra, "row");
        let place = left_name(&reply.experiment);
        text.push_str(&format!("; {rows} of values that left the manifest kept in {place}"));
    }
    if !reply.set_aside.is_empty() {
        let verb = if dry_run.is_some() { "would be renamed to" } else { "was renamed to" };
        text.push_str(&format!("; the experiment so far {verb} {}", reply.set_aside));
    }
    if reply.state() == v1::ExperimentState::Paused {
        text.push_str(&format!("; it is paused: `powersweep resume {}` continues it", reply.experiment));
    }
    for gap in &reply.lacking {
        let tasks = if gap.tasks == 1 {
            "1 task with a row has".to_owned()
        } else {
            format!("{} tasks with a row have", gap.tasks)
        };
        text.push_str(&format!(
            "\n{tasks} no rows in `{}`: they ran before the manifest had this table, or the rows are lost. --restart runs all \
             tasks again, and keeps the rows so far under another name",
            gap.table
        ));
    }
    text
}

/// The outcome of a wait for an experiment that has ended or was stopped.
pub fn end_of(found: &v1::ExperimentStatus) -> Option<Outcome> {
    match found.state() {
        v1::ExperimentState::Finished | v1::ExperimentState::Failed => Some(ended_well(found).map(|()| Exit::Done)),
        _ => stopped(found).map(Err),
    }
}
