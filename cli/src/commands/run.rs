//! `powersweep run`: coordinator and worker in one process, with the same protocol as on many machines.

use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal;
use std::sync::Arc;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use powersweep_coordinator::LogSource;
use powersweep_dataset::page::{self, Wanted};
use powersweep_experiments::settings::quoted;
use powersweep_experiments::{Digest, Manifest, Sweep};
use powersweep_inputs::library::{Library, ParsedLogs};
use powersweep_proto::access::Role;
use powersweep_proto::v1;
use powersweep_results::Table;
use powersweep_worker::{WorkerError, WorkerOptions, WorkerReport};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::shard::Sharded;
use super::{status, submit, worker};
use crate::args::RunArgs;
use crate::exit::{Exit, Failure, Kind, Outcome, failure};
use crate::farm::{FarmOptions, Local, LocalFarm};
use crate::framed::page_text;
use crate::inputs::{self, Files};
use crate::{client, farm, interrupt, screen, signals, stored, warnings};

/// Interval of the status requests.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(20);
/// Interval of the lines of progress where there is no terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(60);
/// Failures shown at the end.
const FAILURES_SHOWN: u32 = 10;

/// Runs a sweep until every task has its row.
pub fn run(args: &RunArgs) -> Outcome {
    to_its_end(args).map(|_| Exit::Done)
}

/// Runs a sweep until every task has its row, and returns the sweep.
pub fn to_its_end(args: &RunArgs) -> Result<Sweep, Failure> {
    share_to_its_end(args, None)
}

/// Runs a sweep, or the share of one shard, until every task has its row. Returns the sweep of these tasks.
pub fn share_to_its_end(args: &RunArgs, sharded: Option<Sharded>) -> Result<Sweep, Failure> {
    let began = Instant::now();
    let mut manifest = inputs::manifest(&args.manifest)?;
    let library = inputs::library_of(&args.manifest, &args.local.logs);
    let reading = Instant::now();
    let memory = args.local.slots.workload_memory;
    let logs = Arc::new(ParsedLogs::new(memory).with_max_workload_bytes(memory as u64));
    let files = inputs::files(&manifest, &library, Some(&logs))?;
    let reading_s = reading.elapsed().as_secs_f64();
    let mut sweep = inputs::sweep(&manifest, &files.digests)?;
    if let Some(sharded) = &sharded {
        let pinned = sharded.pinned(&args.local.data.location()?, &sweep, &files.digests)?;
        (manifest, sweep) = (pinned.manifest().clone(), pinned.shard(sharded.shard));
    }
    let is_silent = args.local.quiet || args.step.is_some();
    if !is_silent {
        signals::note_changes(&signals::load(&manifest, &library)?);
    }
    let source = LogFiles { manifest: manifest.clone(), digests: files.digests.clone(), library };
    let options = FarmOptions {
        listen: args.listen,
        take_over: args.take_over,
        local: Some(Local { experiment: manifest.name().to_owned(), logs: Arc::new(source) }),
        shard: sharded.map(|sharded| sharded.shard),
        ..FarmOptions::on_loopback(&args.local.data.data)
    };
    client::block_on(async {
        let stop = interrupt::token();
        let farm = match LocalFarm::start(options, &stop).await {
            Ok(farm) => farm,
            Err(failure) => {
                return Err(match &sharded {
                    Some(sharded) => sharded.owned(failure, &args.local.data.location()?, manifest.name()).await,
                    None => offer_submit(failure, args).await,
                });
            }
        };
        let found = if is_silent { Vec::new() } else { warnings::of(&sweep, &logs) };
        let mut run = Run { farm, worker: None, began, reading_s, sharded };
        let submitted = run.submit(args, &manifest, &files, logs).await;
        let ended = match submitted {
            Ok(()) => {
                warnings::note(&found, &args.manifest);
                run.follow(args, manifest.name(), &stop).await
            }
            Err(failure) => Err(failure),
        };
        run.end(args, &manifest, ended).await.map(|()| sweep)
    })
}

/// The files of a manifest, for more workers that connect to this coordinator.
struct LogFiles {
    manifest: Manifest,
    digests: BTreeMap<String, Digest>,
    library: Library,
}

impl LogSource for LogFiles {
    fn digests(&self) -> BTreeSet<Digest> {
        self.digests.values().copied().collect()
    }

    fn read(&self, digest: Digest) -> Option<Vec<u8>> {
        let needed = self
            .manifest
            .files()
            .into_iter()
            .find(|file| self.digests.get(&file.name).is_some_and(|known| *known == digest))?;
        let found = inputs::file(&self.library, &needed).ok()?;
        (found.digest == digest).then_some(found.bytes)
    }
}

/// Adds the command that submits the manifest to the running coordinator.
async fn offer_submit(mut failure: Failure, args: &RunArgs) -> Failure {
    if failure.kind == Kind::Owned
        && let Ok(location) = args.local.data.location()
        && let Ok(Some(_)) = stored::owner_endpoint(&location).await
    {
        let (manifest, data) = (quoted(&args.manifest), quoted(&args.local.data.data));
        failure.message.push_str(&format!("\nto run this sweep there: powersweep submit {manifest} --data {data}"));
    }
    failure
}

struct Run {
    farm: LocalFarm,
    worker: Option<(JoinHandle<Result<WorkerReport, WorkerError>>, CancellationToken)>,
    began: Instant,
    /// Time of reading and parsing the logs before the worker started (s).
    reading_s: f64,
    /// Set for one shard of the sweep.
    sharded: Option<Sharded>,
}

/// Maximum number of stuck threads: each occupies a core.
const STUCK_TASKS_MAX: usize = 16;

/// Runs a worker. A task that ignores its deadline ends the worker; another worker then starts beside the stuck thread,
/// which ends with this process.
async fn working(options: WorkerOptions, stop: CancellationToken) -> Result<WorkerReport, WorkerError> {
    let mut stuck = 0;
    loop {
        let report = powersweep_worker::run(options.clone(), stop.clone()).await?;
        stuck += report.stuck_tasks;
        if report.stuck_tasks == 0 || stop.is_cancelled() || stuck > STUCK_TASKS_MAX {
            return Ok(report);
        }
        tracing::warn!("a task ignores its deadline: its thread stays stuck, and another worker starts");
    }
}

impl Run {
    /// Submits the manifest to the coordinator and starts the worker.
    async fn submit(
        &mut self,
        args: &RunArgs,
        manifest: &Manifest,
        files: &Files,
        logs: Arc<ParsedLogs>,
    ) -> Result<(), Failure> {
        let RunArgs { restart, replace, .. } = *args;
        let request = v1::SubmitRequest { restart, replace, ..client::submission(manifest, files) };
        let mut reply = self.farm.handle().submit(request).await.map_err(|status| client::refused(&status))?;
        if reply.state() == v1::ExperimentState::Paused {
            // `run` also resumes a paused experiment: no other coordinator serves this data.
            let resume = v1::control_request::Action::Resume(v1::Resume {});
            let resume = v1::ControlRequest { experiment: reply.experiment.clone(), action: Some(resume) };
            let resumed = self.farm.handle().requests().control(resume).await;
            reply.state = resumed.map_err(|status| client::refused(&status))?.state;
        }
        if self.sharded.is_some_and(|sharded| sharded.retry_failed) && reply.failed > 0 {
            let retry = Some(v1::control_request::Action::Retry(v1::Retry::default()));
            let retry = v1::ControlRequest { experiment: reply.experiment.clone(), action: retry };
            let retried = self.farm.handle().requests().control(retry).await;
            let retried = retried.map_err(|status| client::refused(&status))?;
            (reply.to_run, reply.failed) = (retried.to_run, reply.failed - retried.tasks);
        }
        if !args.local.quiet && submit::tells(args.step, &reply) {
            screen::note(&format!("{}{}", self.part(), submit::describe(&reply, false)));
        }
        let name = match self.sharded {
            Some(_) => worker::default_name(),
            None => format!("local-{}", std::process::id()),
        };
        let mut options = WorkerOptions::new(self.farm.address(Role::Worker), args.local.slots.count(), name);
        if let Some(sharded) = &self.sharded {
            options.drain_limit = sharded.drain_limit;
            options.time_limit = sharded.worker_limit();
        }
        options.trusts_paths = true;
        options.search_path = args.local.logs.traces.clone();
        options.parsed = Some(logs);
        let stop = CancellationToken::new();
        self.worker = Some((tokio::spawn(working(options, stop.clone())), stop));
        Ok(())
    }

    /// The part of the sweep that runs, at the beginning of a line.
    fn part(&self) -> String {
        self.sharded.map_or_else(String::new, |sharded| format!("shard {}: ", sharded.shard))
    }

    /// Shows the progress until no task is left to run; returns the last status.
    async fn follow(
        &mut self,
        args: &RunArgs,
        experiment: &str,
        stop: &CancellationToken,
    ) -> Result<v1::ExperimentStatus, Failure> {
        let bar = progress_bar(args.local.quiet);
        let ended = self.show_progress(&bar, args, experiment, stop).await;
        bar.finish_and_clear();
        ended
    }

    async fn show_progress(
        &mut self,
        bar: &ProgressBar,
        args: &RunArgs,
        experiment: &str,
        stop: &CancellationToken,
    ) -> Result<v1::ExperimentStatus, Failure> {
        let mut stalled = false;
        let mut paused = false;
        let mut lines = Lines::new(args.local.quiet);
        let request =
            v1::StatusRequest { experiment: experiment.to_owned(), max_failures: FAILURES_SHOWN, ..Default::default() };
        loop {
            let reply = self.farm.handle().status(request.clone()).await.map_err(|status| match status.code() {
                tonic::Code::NotFound => failure!(Cancelled, "{experiment} was deleted by another command"),
                _ => client::refused(&status),
            })?;
            let Some(found) = reply.experiments.into_iter().next() else {
                return Err(failure!(Failure, "the coordinator lost {experiment}: please report this bug"));
            };
            if reply.storage_stalled != stalled && bar.is_hidden() {
                screen::note(&match reply.storage_stalled {
                    true => format!("powersweep: waiting: storage stalled: {}", reply.storage_reason),
                    false => "powersweep: storage works again".to_owned(),
                });
            }
            stalled = reply.storage_stalled;
            let reason = reply.storage_stalled.then_some(reply.storage_reason.as_str());
            draw(bar, &found, reason);
            lines.line(Instant::now(), &found, reason).iter().for_each(|line| screen::note(line));
            if let Some(failure) = submit::stopped(&found) {
                return Err(failure);
            }
            if !std::mem::replace(&mut paused, found.state() == v1::ExperimentState::Paused) && paused {
                let note = format!("powersweep: waiting: {}; Ctrl-C ends the wait", submit::why_waiting(&found));
                bar.suspend(|| screen::note(&note));
            }
            if matches!(found.state(), v1::ExperimentState::Finished | v1::ExperimentState::Failed) {
                return Ok(found);
            }
            if let Some((worker, _)) = self.worker.take_if(|(worker, _)| worker.is_finished()) {
                let ended = worker.await;
                if self.sharded.is_some_and(|sharded| sharded.time_limit.is_some()) && matches!(ended, Ok(Ok(_))) {
                    let hint = "finished tasks are kept. Run the same command to continue";
                    return Err(failure!(Interrupted, "the time limit ends before the tasks of this shard; {hint}"));
                }
                return Err(worker_ended(ended));
            }
            tokio::select! {
                () = tokio::time::sleep(PROGRESS_INTERVAL) => {}
                () = stop.cancelled() => {
                    if let Some(reason) = reason {
                        return Err(failure!(Storage, "interrupted while storage was stalled ({reason}); finished tasks \
                            are kept. Run the same command to continue"));
                    }
                    return Err(failure!(Interrupted, "interrupted; finished tasks are kept. Run the same command to continue"));
                }
                () = self.farm.lost() => {
                    return Err(failure!(Fenced, "another coordinator has taken the data over; this run has stopped"));
                }
            }
        }
    }

    /// Ends worker and coordinator, then shows the results.
    async fn end(
        self,
        args: &RunArgs,
        manifest: &Manifest,
        ended: Result<v1::ExperimentStatus, Failure>,
    ) -> Result<(), Failure> {
        let part = self.part();
        let Run { farm, worker, .. } = self;
        let location = args.local.data.location()?;
        let closing_all = async {
            if let Some((worker, stop)) = worker {
                stop.cancel();
                // The worker hands in its finished rows before the coordinator closes.
                let _ = worker.await;
            }
            farm.end().await
        };
        let closed = farm::explained(closing_all).await;
        let seconds = self.began.elapsed().as_secs_f64();
        // An error that ended the sweep comes before one of the end itself.
        let mut finished = match ended {
            Err(failure) if failure.kind != Kind::Interrupted => return Err(failure),
            ended => closed.and(ended)?,
        };
        finished.spent.get_or_insert_default().parse_s += self.reading_s;
        if finished.rows_in_parts > 0 && stored::is_without_parts(&location, manifest.name()).await? {
            return Err(failure!(
                Storage,
                "the files of {0} are missing in {location}, whose state counts {1} as done. To run these tasks again, \
                 give the experiment a new name, or choose another place with --data",
                finished.name,
                screen::count(finished.rows_in_parts, "task")
            ));
        }
        if args.show > 0 {
            let published = stored::datasets_here(&location).read_published(manifest.name(), Table::Tasks).await?;
            let wanted = Wanted { rows: args.show, ..Wanted::default() };
            if let Some(shown) = page::shown(&published, &wanted).await?.filter(|shown| shown.count > 0) {
                screen::print(&format!("{}\n", page_text(&shown)))?;
            }
        }
        if !args.local.quiet && args.step.is_none() {
            screen::note(&format!("{part}{}", closing(&finished, seconds, &location.to_string(), args)));
        }
        if finished.failed + finished.quarantined > 0 {
            return Err(failure!(TasksFailed, "{}", status::failures_text(&finished)));
        }
        Ok(())
    }
}

fn worker_ended(result: Result<Result<WorkerReport, WorkerError>, tokio::task::JoinError>) -> Failure {
    match result {
        Ok(Ok(report)) => failure!(Failure, "the worker ended early: {}", report.reason),
        Ok(Err(error)) => Failure::new(worker::kind_of(&error), error.to_string()),
        Err(error) => failure!(Failure, "the worker ended early: {error}"),
    }
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
    bar.set_message(progress(found, stalled));
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

/// The summary: done tasks, times, the place of the rows; after the quickstart also the next commands.
fn closing(finished: &v1::ExperimentStatus, seconds: f64, data: &str, args: &RunArgs) -> String {
    let spent = finished.spent.unwrap_or_default();
    let folder = format!("{data}/{}/tasks", finished.name);
    let mut text = format!(
        "{} of {} tasks done in {}: engine {}, parse {}, store {}, idle {} over all slots\nrows: {folder}/*.parquet",
        finished.done,
        finished.tasks,
        screen::duration(seconds),
        screen::duration(spent.engine_s),
        screen::duration(spent.parse_s),
        screen::duration(spent.store_s),
        screen::duration(spent.idle_s),
    );
    if args.manifest == "quickstart" {
        text.push_str(&format!(
            "\n\nNext:\n  duckdb -c \"FROM '{folder}/*.parquet'\"      query the rows; `powersweep columns` explains the columns\n  \
             powersweep trace info LOG.swf.gz     show facts about a real log\n  \
             powersweep run etinski2010           run a paper's sweep (set POWERSWEEP_TRACES to the folder of its logs)\n  \
             powersweep serve                     start a coordinator; then `powersweep worker` on each machine"
        ));
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
