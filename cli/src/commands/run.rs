//! `powersweep run`: coordinator and worker in one process, with the same protocol as on many machines.

use std::sync::Arc;
use std::time::Instant;

use powersweep::place::stored;
use powersweep::plan;
use powersweep::run::RunOptions;
use powersweep::status::ended_well;
use powersweep::{Manifest, Place, block_on};
use powersweep_dataset::page::{self, Wanted};
use powersweep_experiments::Sweep;
use powersweep_experiments::settings::quoted;
use powersweep_proto::v1;
use powersweep_results::Table;

use super::progress::follow;
use super::replicate::replicate;
use super::submit;
use crate::args::{LocalArgs, RunArgs};
use crate::exit::{Exit, Failure, Kind, Outcome};
use crate::framed::page_text;
use crate::{inputs, interrupt, screen, signals, warnings};

/// Rows that are shown at the end.
const ROWS: usize = 24;

/// Runs a sweep until every task has its row.
pub fn run(args: &RunArgs) -> Outcome {
    let RunArgs { listen, restart, replace, take_over, show, .. } = *args;
    let show = show.unwrap_or(if args.local.quiet { 0 } else { ROWS });
    let options = RunOptions { listen, restart, replace, take_over, ..RunOptions::default() };
    let (manifest, local) = (inputs::manifest(&args.manifest)?, &args.local);
    if manifest.until().is_some() {
        let options = RunOptions { slots: local.slots.count(), stop: interrupt::token(), ..options };
        let options = inputs::derived(&args.manifest, &local.logs, local.slots.logs(), options);
        return replicate(&manifest, &local.data.place(), options, local.quiet);
    }
    to_its_end((&args.manifest, manifest), local, options, show).map(|_| Exit::Done)
}

/// Runs a sweep, or the share of one shard, until every task has its row. Returns the sweep of these tasks. `show`: number of
/// rows that are shown at the end.
pub fn to_its_end(
    (name, manifest): (&str, Manifest),
    local: &LocalArgs,
    options: RunOptions,
    show: usize,
) -> Result<Sweep, Failure> {
    let began = Instant::now();
    let library = inputs::library_of(name, &local.logs);
    let logs = Arc::new(local.slots.logs());
    let files = inputs::files(&manifest, &library, Some(&logs))?;
    if !local.quiet {
        signals::note_changes(&files.signals);
    }
    let place = local.data.place();
    let shard = options.shard;
    block_on(async {
        let (slots, search_path, stop) = (local.slots.count(), local.logs.traces.clone(), interrupt::token());
        let options = RunOptions { slots, search_path, stop, ..options };
        let signals = files.signals.clone();
        let mut running = match place.run(&manifest, files, options).await {
            Ok(running) => running,
            Err(failure) if shard.is_some() => return Err(failure),
            Err(failure) => return Err(offer_submit(failure, name, local).await),
        };
        let part = shard.map_or_else(String::new, |shard| format!("shard {}: ", shard.shard));
        if !local.quiet {
            screen::note(&format!("{part}{}", submit::describe(running.submitted(), None)));
            warnings::note(&plan::warnings(running.sweep(), &signals, &logs), name);
        }
        follow(local.quiet, &mut running).await;
        let sweep = running.sweep().clone();
        let finished = running.end().await?;
        let seconds = began.elapsed().as_secs_f64();
        show_rows(show, &place, manifest.name()).await?;
        if !local.quiet {
            screen::note(&format!("{part}{}", closing(&finished, seconds, &place.location()?.to_string(), name)));
        }
        ended_well(&finished).map(|()| sweep)
    })
}

/// Adds the command that submits the manifest to the running coordinator.
async fn offer_submit(mut failure: Failure, manifest: &str, local: &LocalArgs) -> Failure {
    if failure.kind == Kind::Owned
        && let Ok(location) = local.data.location()
        && let Ok(Some(_)) = stored::owner_endpoint(&location).await
    {
        let (manifest, data) = (quoted(manifest), quoted(&local.data.data));
        failure.message.push_str(&format!("\nto run this sweep there: powersweep submit {manifest} --data {data}"));
    }
    failure
}

/// Prints the first rows, if any are wanted.
async fn show_rows(rows: usize, place: &Place, experiment: &str) -> Result<(), Failure> {
    if rows == 0 {
        return Ok(());
    }
    let published = place.datasets_here()?.read_published(experiment, Table::Tasks).await?;
    let wanted = Wanted { rows, ..Wanted::default() };
    if let Some(shown) = page::shown(&published, &wanted).await?.filter(|shown| shown.count > 0) {
        screen::print(&format!("{}\n", page_text(&shown, shown.more())))?;
    }
    Ok(())
}

/// The summary: done tasks, the time, the place of the rows; after the quickstart also the next commands.
fn closing(finished: &v1::ExperimentStatus, seconds: f64, data: &str, manifest: &str) -> String {
    let folder = format!("{data}/{}/tasks", finished.name);
    let (done, all, took) = (finished.done, finished.tasks, screen::duration(seconds));
    let mut text = format!("{done} of {all} tasks done in {took}");
    if done > 0 {
        text.push_str(&format!("\nrows: {folder}/*.parquet"));
    }
    if manifest == "quickstart" {
        text.push_str(
            "\n\nNext:\n  powersweep results quickstart --by policy   means with intervals; `powersweep columns` explains the columns\n  \
             powersweep trace info LOG.swf.gz     show facts about a real log\n  \
             powersweep run etinski2010           run a paper's sweep (set POWERSWEEP_TRACES to the folder of its logs)\n  \
             powersweep serve                     start a coordinator; then `powersweep worker` on each machine"
        );
    }
    text
}
