//! Commands of Slurm, each with a time-out: they hang when its controller does.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::time::Duration;

use powersweep_launch::slurm::{self, Facts, PARTITION_FORMAT, Partition, QUEUE_FORMAT};
use powersweep_launch::{Entry, SlurmSite};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;

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
    Answer(#[from] slurm::AnswerError),
}

/// Runs a command of Slurm to its end, and returns what it printed.
async fn answer(program: &'static str, arguments: &[&str]) -> Result<String, BatchError> {
    let mut command = Command::new(program);
    // The forms of answers must not follow the user's settings.
    command.args(arguments).env("SLURM_TIME_FORMAT", "%s").env("LC_ALL", "C").kill_on_drop(true);
    for variable in ["SQUEUE_FORMAT", "SQUEUE_STATES", "SQUEUE_SORT", "SINFO_FORMAT", "SQUEUE_PARTITION"] {
        command.env_remove(variable);
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

/// The jobs with a name, ended ones included for as long as Slurm remembers them. `banners` and `is_expected`: as in
/// [`slurm::queue`].
pub async fn queue(name: &str, banners: &mut BTreeSet<String>, is_expected: bool) -> Result<Vec<Entry>, BatchError> {
    let (name, format) = (format!("--name={name}"), format!("--format={QUEUE_FORMAT}"));
    let answer = answer("squeue", &["--me", "--array", "--noheader", "--states=all", &name, &format]).await?;
    Ok(slurm::queue(&answer, banners, is_expected)?)
}

/// Submits a script, and returns the job's number.
pub async fn submit(arguments: &[&str]) -> Result<String, BatchError> {
    let answer = answer("sbatch", &[&["--parsable"], arguments].concat()).await?;
    Ok(slurm::job_id(&answer)?)
}

/// Lets Slurm test a script; returns its words.
pub async fn test(script: &str) -> Result<(), BatchError> {
    answer("sbatch", &["--test-only", script]).await.map(drop)
}

/// Cancels jobs of this user: `arguments` choose them, or name a signal.
pub async fn cancel(arguments: &[&str]) -> Result<(), BatchError> {
    answer("scancel", &[&["--me"], arguments].concat()).await.map(drop)
}

/// What the cluster allows.
pub async fn facts() -> Result<Facts, BatchError> {
    Ok(Facts::of(&answer("scontrol", &["show", "config"]).await?))
}

/// Maximum number of jobs that the user may have in the queue; `None` where Slurm has no limit or does not say.
pub async fn submit_limit(user: &str, site: &SlurmSite) -> Option<u64> {
    let show = ["--noheader", "--parsable2", "--readonly", "show"];
    let user = format!("users={user}");
    let associations = ["associations", "where", &user, "format=Account,MaxSubmitJobs,DefaultQOS"];
    let associations = answer("sacctmgr", &[&show[..], &associations].concat()).await.ok()?;
    let limits = answer("sacctmgr", &[&show[..], &["qos", "format=Name,MaxSubmitJobsPerUser"]].concat()).await.ok()?;
    slurm::submit_limit(&associations, &limits, site.account.as_deref(), site.qos.as_deref())
}

/// The cluster's partitions.
pub async fn partitions() -> Result<Vec<Partition>, BatchError> {
    Ok(slurm::partitions(&answer("sinfo", &["--noheader", &format!("--format={PARTITION_FORMAT}")]).await?)?)
}
