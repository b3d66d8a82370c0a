//! The requests of a launcher to a batch system: submit, list and cancel jobs. Commands have a time-out: they hang when their server
//! does.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::time::Duration;

use async_trait::async_trait;
use powersweep_launch::{AnswerError, Entry, Facts, JobSite, System, WorkerJob};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;

use super::pbs::Pbs;
use super::slurm::Slurm;

/// Longest time of one command.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Bytes of an answer: a hundred thousand jobs.
const ANSWER_MAX: usize = 16 << 20;

/// Characters of an answer that are shown in a message.
const SHOWN_MAX: usize = 300;

/// Why a command gave no usable answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// The program is not installed, or cannot be started.
    #[error("cannot run {0}: {1}")]
    Start(&'static str, String),
    /// It did not end in time.
    #[error("{0} gave no answer within {limit} s", limit = TIMEOUT.as_secs())]
    Hangs(&'static str),
    /// Nobody waits for its answer any more.
    #[error("{0} gave no answer before the launcher was told to end")]
    Abandoned(&'static str),
    /// Its answer has no end.
    #[error("{0} answered more than {limit} MiB", limit = ANSWER_MAX >> 20)]
    Endless(&'static str),
    /// It ended with an error.
    #[error("{0} failed: {1}")]
    Refused(&'static str, String),
    /// Its answer has not the asked form.
    #[error(transparent)]
    Answer(#[from] AnswerError),
}

/// A batch system, as the launcher uses it. Jobs are found by their name, which all jobs of a launcher share.
#[async_trait]
pub trait BatchSystem: Send + Sync {
    /// The script of a job whose elements run a worker, or another `body`.
    fn script(&self, job: &WorkerJob, body: Option<&str>) -> String;

    /// The limits of the cluster.
    async fn facts(&self) -> Result<Facts, BatchError>;

    /// Maximum number of jobs that the user may have in the queue; `None` where the system has no limit or does not say.
    async fn submit_limit(&self, _user: &str, _site: &JobSite) -> Option<u64> {
        None
    }

    /// Lets the system test a script. False if it tests none.
    async fn test(&self, _script: &str) -> Result<bool, BatchError> {
        Ok(false)
    }

    /// Whether jobs can be kept off nodes.
    fn excludes_nodes(&self) -> bool {
        false
    }

    /// Submits `count` elements of a script, numbered from 1, kept off these nodes. Returns the job's number.
    async fn submit(&self, script: &str, count: u64, excluded: &[&str]) -> Result<String, BatchError>;

    /// The elements of jobs with a name, ended ones included for as long as the system remembers them. `banners`: known
    /// greetings of the site. `is_expected`: whether there should be some, so that an unknown greeting may be an error.
    async fn list(
        &self,
        name: &str,
        banners: &mut BTreeSet<String>,
        is_expected: bool,
    ) -> Result<Vec<Entry>, BatchError>;

    /// Cancels the elements with a name that wait, and asks running ones to end if `running_too`.
    async fn cancel(&self, name: &str, running_too: bool) -> Result<(), BatchError>;

    /// Cancels a job of one element by its number.
    async fn cancel_job(&self, job: &str) -> Result<(), BatchError>;
}

/// The commands of a batch system.
pub fn commands(system: System) -> &'static dyn BatchSystem {
    match system {
        System::Slurm => &Slurm,
        System::Pbs => &Pbs,
    }
}

/// Runs a command to its end, and returns what it printed. `variables` are set, or unset, for the command.
pub(super) async fn answer(
    program: &'static str,
    arguments: &[&str],
    variables: &[(&str, Option<&str>)],
) -> Result<String, BatchError> {
    let mut command = Command::new(program);
    command.args(arguments).env("LC_ALL", "C").kill_on_drop(true);
    for (name, value) in variables {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let cannot = |error: std::io::Error| BatchError::Start(program, error.to_string());
    let mut running = command.spawn().map_err(cannot)?;
    let (stdout, stderr) = (running.stdout.take(), running.stderr.take());
    let ended = async { tokio::join!(bounded(stdout), bounded(stderr), running.wait()) };
    let Ok((stdout, stderr, status)) = tokio::time::timeout(TIMEOUT, ended).await else {
        return Err(BatchError::Hangs(program));
    };
    let (stdout, stderr, status) = (stdout.map_err(cannot)?, stderr.map_err(cannot)?, status.map_err(cannot)?);
    if stdout.len() > ANSWER_MAX {
        return Err(BatchError::Endless(program));
    }
    if status.success() {
        return Ok(String::from_utf8_lossy(&stdout).into_owned());
    }
    let said = [stderr, stdout].map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned());
    let said = said.into_iter().find(|text| !text.is_empty()).unwrap_or_else(|| status.to_string());
    Err(BatchError::Refused(program, one_line(&said)))
}

/// The output of a program, up to one byte more than an answer may have. The pipe is closed then, which ends the program.
async fn bounded(pipe: Option<impl AsyncRead + Unpin>) -> std::io::Result<Vec<u8>> {
    let mut printed = Vec::new();
    if let Some(pipe) = pipe {
        pipe.take(ANSWER_MAX as u64 + 1).read_to_end(&mut printed).await?;
    }
    Ok(printed)
}

fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().take(SHOWN_MAX).collect()
}
