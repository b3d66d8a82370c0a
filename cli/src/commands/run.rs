//! `powersweep run`: coordinator and worker in one process, with the same protocol as on many machines.

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use powersweep::place::stored;
use powersweep::plan;
use powersweep::run::{Progress, RunOptions, Running};
use powersweep::submit::why_waiting;
use powersweep::{Manifest, Place, block_on};
use powersweep_dataset::page::{self, Wanted};
use powersweep_experiments::Sweep;
use powersweep_experiments::plain::plain;
use powersweep_experiments::settings::quoted;
use powersweep_inputs::library::ParsedLogs;
use powersweep_proto::v1;
use powersweep_results::Table;

use super::{replicate, status, submit};
use crate::args::{LocalArgs, RunArgs};
use crate::exit::{Exit, Failure, Kind, Outcome, failure};
use crate::framed::page_text;
use crate::{inputs, interrupt, screen, signals, warnings};

/// Interval of the lines of progress where there is no terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(60);

/// Rows that are shown at the end.
const ROWS: usize = 24;

/// Runs a sweep until every task has its row.
pub fn run(args: &RunArgs) -> Outcome {
    let RunArgs { listen, restart, replace, take_over, show, .. } = *args;
    let show = show.unwrap_or(if args.local.quiet { 0 } else { ROWS });
    let options = RunOptions { listen, restart, replace, take_over, ..RunOptions::default() };
    let (manifest, local) = (inputs::manifest(&args.manifest)?, &args.local);
    if manifest.until().is_some() {
        let memory = local.slots.workload_memory;
        let logs = ParsedLogs::new(memory).with_max_workload_bytes(memory as u64);
        let (slots, search_path, stop) = (local.slots.count(), local.logs.traces.clone(), interrupt::token());
        let options = RunOptions { slots, search_path, stop, ..options };
        let place = local.data.place();
        return replicate::to_its_end((&args.manifest, &manifest), &place, (&local.logs, logs), options, local.quiet);
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
    let memory = local.slots.workload_memory;
    let logs = Arc::new(ParsedLogs::new(memory).with_max_workload_bytes(memory as u64));
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
            screen::note(&format!("{part}{}", submit::describe(running.submitted(), false)));
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
        if finished.failed + finished.quarantined > 0 {
            return Err(failure!(TasksFailed, "{}", status::failures_text(&finished)));
        }
        Ok(sweep)
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

/// Shows the progress until no task is left to run, or the sweep cannot go on: its end says why.
pub(super) async fn follow(quiet: bool, running: &mut Running) {
    let bar = progress_bar(quiet);
    let mut lines = Lines::new(quiet);
    let (mut was_stalled, mut was_paused) = (false, false);
    while let Ok(Some(Progress { experiment: found, storage_stalled })) = running.next().await {
        if storage_stalled.is_some() != was_stalled && bar.is_hidden() {
            screen::note(&match &storage_stalled {
                Some(reason) => format!("powersweep: waiting: storage stalled: {reason}"),
                None => "powersweep: storage works again".to_owned(),
            });
        }
        was_stalled = storage_stalled.is_some();
        let reason = storage_stalled.as_deref();
        draw(&bar, &found, reason);
        lines.line(Instant::now(), &found, reason).iter().for_each(|line| screen::note(line));
        let is_paused = found.state() == v1::ExperimentState::Paused;
        if is_paused && !was_paused {
            let note = format!("powersweep: waiting: {}; Ctrl-C ends the wait", why_waiting(&found));
            bar.suspend(|| screen::note(&note));
        }
        was_paused = is_paused;
    }
    bar.finish_and_clear();
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

fn progress_bar(quiet: bool) -> ProgressBar {
    let bar = ProgressBar::no_length();
    let is_drawn = !quiet && screen::redraws(&std::io::stderr());
    bar.set_draw_target(if is_drawn { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() });
    let template = "{wide_bar} {pos}/{len} tasks  {msg}";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}

fn draw(bar: &ProgressBar, found: &v1::ExperimentStatus, stalled: Option<&str>) {
    bar.set_length(found.tasks);
    bar.set_position(found.done);
    bar.set_message(plain(&progress(found, stalled)).into_owned());
}

/// Speed and remaining time, or why no task runs.
fn progress(found: &v1::ExperimentStatus, stalled: Option<&str>) -> String {
    match (stalled, status::left(found)) {
        (Some(reason), _) => format!("storage stalled: {reason}"),
        (None, Some(left)) => format!("{}/s, {left} left", screen::number(found.tasks_per_s)),
        (None, None) => found.reason.clone(),
    }
}

/// Lines of progress where standard error or standard output is no terminal, such as the log of a batch job.
struct Lines {
    next: Instant,
    shown: bool,
}

impl Lines {
    fn new(quiet: bool) -> Lines {
        let terminal = std::io::stderr().is_terminal() && std::io::stdout().is_terminal();
        Lines { next: Instant::now() + LINE_INTERVAL, shown: !quiet && !terminal }
    }

    /// The next line, if it is due.
    fn line(&mut self, now: Instant, found: &v1::ExperimentStatus, stalled: Option<&str>) -> Option<String> {
        if !self.shown || now < self.next {
            return None;
        }
        self.next = now + LINE_INTERVAL;
        let failed = match found.failed + found.quarantined {
            0 => String::new(),
            failed => format!(", {failed} failed"),
        };
        let (done, tasks, words) = (found.done, screen::count(found.tasks, "task"), progress(found, stalled));
        Some(format!("powersweep: {}: {done} of {tasks} done{failed}; {words}", found.name))
    }
}

/// The summary: done tasks, the time, the place of the rows; after the quickstart also the next commands.
fn closing(finished: &v1::ExperimentStatus, seconds: f64, data: &str, manifest: &str) -> String {
    let folder = format!("{data}/{}/tasks", finished.name);
    let (done, all, took) = (finished.done, finished.tasks, screen::duration(seconds));
    let mut text = format!("{done} of {all} tasks done in {took}\nrows: {folder}/*.parquet");
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_progress_is_due_each_minute() {
        let begun = Instant::now();
        let mut lines = Lines { next: begun + LINE_INTERVAL, shown: true };
        let found = v1::ExperimentStatus {
            name: "e".to_owned(),
            tasks: 800,
            done: 22,
            failed: 1,
            tasks_per_s: 2.0,
            eta_s: Some(400.0),
            eta_least_s: Some(200.0),
            eta_most_s: Some(900.0),
            ..Default::default()
        };
        let mut at = |seconds, stalled| lines.line(begun + Duration::from_secs(seconds), &found, stalled);
        assert_eq!(at(59, None), None);
        let line = "powersweep: e: 22 of 800 tasks done, 1 failed; 2/s, 3 min to 15 min left";
        assert_eq!(at(60, None).as_deref(), Some(line));
        assert_eq!(at(119, None), None);
        let line = "powersweep: e: 22 of 800 tasks done, 1 failed; storage stalled: no space";
        assert_eq!(at(121, Some("no space")).as_deref(), Some(line));
    }
}
