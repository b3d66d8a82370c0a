//! Progress of the tasks that run in this process: a bar on a terminal, else a line each minute.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use powersweep::find::StepRun;
use powersweep::run::{Progress, Running};
use powersweep::status::{ended_well, left};
use powersweep::submit::why_waiting;
use powersweep_experiments::plain::plain;
use powersweep_proto::v1;

use crate::exit::Failure;
use crate::screen;

/// Interval of the lines of progress where there is no terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(60);

/// Shows the progress of tasks that this process or a coordinator runs, until they have ended.
pub(super) async fn to_its_end(quiet: bool, begun: StepRun) -> Result<(), Failure> {
    let ended = match begun {
        StepRun::AtCoordinator(waiting) => waiting.end().await?,
        StepRun::Here(mut running) => {
            follow(quiet, &mut running).await;
            running.end().await?
        }
    };
    ended_well(&ended)
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
    match (stalled, left(found)) {
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
