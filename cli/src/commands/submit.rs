//! `powersweep submit`: submits a manifest and its logs to a coordinator.

use std::sync::Arc;
use std::time::Duration;

use powersweep::Place;
use powersweep::block_on;
use powersweep::inputs::LOGS_BYTES;
use powersweep::place::connection;
use powersweep::plan;
use powersweep::submit::{stopped, submission, upload_missing, why_waiting};
use powersweep_inputs::library::ParsedLogs;
use powersweep_proto::client::Client;
use powersweep_proto::v1;
use powersweep_results::layout::left_name;

use super::status::failures_text;
use crate::args::SubmitArgs;
use crate::exit::{Exit, Kind, Outcome, failure};
use crate::{inputs, screen, signals, warnings};

/// Interval of the status requests of `--wait`.
const WAIT_INTERVAL: Duration = Duration::from_millis(500);

/// Failures shown at the end of `--wait`.
const FAILURES_SHOWN: u32 = 10;

/// Checks the manifest in this process, submits it and uploads its logs.
pub fn run(args: &SubmitArgs) -> Outcome {
    let manifest = inputs::manifest(&args.manifest)?;
    let library = inputs::library_of(&args.manifest, &args.logs);
    let logs = Arc::new(ParsedLogs::new(LOGS_BYTES));
    let files = inputs::files(&manifest, &library, Some(&logs))?;
    let sweep = inputs::sweep(&manifest, &files.digests)?;
    let found = if args.step.is_some() { Vec::new() } else { plan::warnings(&sweep, &logs) };
    let place = args.coordinator.place(&args.data)?;
    block_on(async {
        let mut farm = place.connect().await?;
        let mut request = submission(&manifest, &files);
        request.dry_run = args.dry_run;
        request.restart = args.restart;
        request.replace = args.replace;
        request.priority = args.priority;
        let reply = farm.submit(request).await.map_err(|status| connection::refused(&status))?.into_inner();
        match args.step {
            None => screen::print(&describe(&reply, args.dry_run)).map(|_| ())?,
            step if tells(step, &reply) => screen::note(&describe(&reply, false)),
            _ => {}
        }
        if args.step.is_none() {
            signals::note_changes(&files.signals);
        }
        warnings::note(&found, &args.manifest);
        if args.dry_run {
            return Ok(Exit::Done);
        }
        upload_missing(&mut farm, &manifest, &files, &library, &reply.missing_logs).await?;
        if args.wait { wait(&place, farm, &reply.experiment).await } else { Ok(Exit::Done) }
    })
}

/// The effect of a submit.
pub fn describe(reply: &v1::SubmitReply, dry_run: bool) -> String {
    let verb = if dry_run { "would run" } else { "to run" };
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
        let verb = if dry_run { "would be renamed to" } else { "was renamed to" };
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
            "\n{tasks} no rows in `{}`: they ran before the manifest had this table. --restart runs all tasks again, and \
             keeps the rows so far under another name",
            gap.table
        ));
    }
    text
}

/// Whether the effect of a submit is told. In a command of several steps, the first one tells of rows that left.
pub fn tells(step: Option<u64>, reply: &v1::SubmitReply) -> bool {
    step.is_none_or(|step| step == 1 && reply.extra > 0)
}

/// The outcome of a wait for an experiment that has ended or was stopped.
pub fn end_of(found: &v1::ExperimentStatus) -> Option<Outcome> {
    match found.state() {
        v1::ExperimentState::Finished => Some(Ok(Exit::Done)),
        v1::ExperimentState::Failed => Some(Err(failure!(TasksFailed, "{}", failures_text(found)))),
        _ => stopped(found).map(Err),
    }
}

/// Waits for the end, also while the coordinator restarts. Prints why no task runs meanwhile, and which tasks failed.
async fn wait(place: &Place, mut farm: Client, experiment: &str) -> Outcome {
    let mut printed = String::new();
    loop {
        let request =
            v1::StatusRequest { experiment: experiment.to_owned(), max_failures: FAILURES_SHOWN, ..Default::default() };
        let status = match connection::status(&mut farm, request).await {
            Ok(status) => status,
            Err(status) if status.code() == tonic::Code::NotFound => {
                return Err(failure!(Cancelled, "{experiment} was deleted by another command"));
            }
            Err(status) => {
                let failure = connection::refused(&status);
                if failure.kind != Kind::Network {
                    return Err(failure);
                }
                farm = place.reconnect(&failure).await?;
                continue;
            }
        };
        let Some(found) = status.experiments.first() else {
            return Err(failure!(Refused, "the coordinator does not know {experiment}"));
        };
        if let Some(outcome) = end_of(found) {
            return outcome;
        }
        let reason = if status.storage_stalled { status.storage_reason.clone() } else { why_waiting(found) };
        if !reason.is_empty() && reason != printed {
            screen::note(&format!("powersweep: waiting: {reason}"));
        }
        printed = reason;
        tokio::time::sleep(WAIT_INTERVAL).await;
    }
}
