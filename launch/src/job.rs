//! Jobs of a launcher, whatever the batch system.

use std::fmt::Write;
use std::time::Duration;

use shlex::Quoter;

use crate::JobSite;

/// The request that all jobs of a launcher share.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Name of the jobs, by which the queue is asked.
    pub name: String,
    /// The folder of scripts and outputs, which nodes see under the same path.
    pub folder: String,
    /// Time limit.
    pub time: Duration,
    /// The demands of the site, after the options of the command line.
    pub site: JobSite,
    /// The program `powersweep` as the nodes see it.
    pub program: String,
}

/// A job of workers.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkerJob {
    /// The request that the job shares with the others.
    pub request: Request,
    /// Nodes of one allocation.
    pub nodes: u64,
    /// Processors on each node; one slot for each.
    pub cpus: u16,
    /// Time that running tasks get after a signal.
    pub drain_limit: Duration,
    /// Arguments of `powersweep worker`, beside its slots and drain limit.
    pub arguments: Vec<String>,
}

/// A command for a shell.
pub(crate) fn command(program: &str, words: &[String]) -> String {
    // Bash leaves nul bytes out.
    let words = std::iter::once(program).chain(words.iter().map(String::as_str));
    Quoter::new().allow_nul(true).join(words).expect("only nul bytes are refused")
}

/// A time as hours, minutes and seconds.
pub(crate) fn clock_time(time: Duration) -> String {
    let seconds = time.as_secs();
    format!("{}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

impl Request {
    /// The lines of a script before the program starts.
    pub(crate) fn prologue(&self) -> String {
        self.site.prologue.iter().map(|line| format!("{line}\n")).collect()
    }
}

impl WorkerJob {
    /// The command of a worker.
    pub(crate) fn command(&self) -> String {
        let mut words = vec!["worker".to_owned(), "--slots".to_owned(), self.cpus.to_string()];
        words.extend(["--drain-limit".to_owned(), format!("{}s", self.drain_limit.as_secs_f64())]);
        words.extend(self.arguments.iter().cloned());
        command(&self.request.program, &words)
    }

    /// The end of a script whose shell the worker replaces. The shell goes on only if there is no such program: a fault of no
    /// node, which the launcher reads in a file.
    pub(crate) fn replace_shell(&self) -> String {
        let (command, folder) = (self.command(), command(&self.request.folder, &[]));
        let mut text = String::new();
        let _ = write!(
            text,
            "shopt -s execfail\nexec {command}\ncode=$?\necho $code >{folder}/\"$POWERSWEEP_ALLOCATION\".code\nexit $code\n"
        );
        text
    }
}
