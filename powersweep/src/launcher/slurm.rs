//! Commands of Slurm, each with a time-out: they hang when its controller does.

use std::process::Stdio;
use std::time::Duration;

use powersweep_launch::slurm::{self, Facts, Partition, QUEUE_FORMAT};
use powersweep_launch::{Entry, SlurmSite};
use tokio::process::Command;

/// Longest time of one command.
const TIMEOUT: Duration = Duration::from_secs(60);

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
    let running = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).output();
    let output = match tokio::time::timeout(TIMEOUT, running).await {
        Ok(output) => output.map_err(|error| BatchError::Start(program, error.to_string()))?,
        Err(_) => return Err(BatchError::Hangs(program)),
    };
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = [output.stderr, output.stdout].map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned());
    let said = said.into_iter().find(|text| !text.is_empty()).unwrap_or_else(|| output.status.to_string());
    Err(BatchError::Refused(program, one_line(&said)))
}

fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().take(SHOWN_MAX).collect()
}

/// The jobs with a name, ended ones included for as long as Slurm remembers them.
pub async fn queue(name: &str) -> Result<Vec<Entry>, BatchError> {
    let (name, format) = (format!("--name={name}"), format!("--format={QUEUE_FORMAT}"));
    let answer = answer("squeue", &["--me", "--array", "--noheader", "--states=all", &name, &format]).await?;
    Ok(slurm::queue(&answer)?)
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

/// Cancels jobs: `arguments` choose them, or name a signal.
pub async fn cancel(arguments: &[&str]) -> Result<(), BatchError> {
    answer("scancel", arguments).await.map(drop)
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
    Ok(slurm::partitions(&answer("sinfo", &["--noheader", "--format=%P|%a|%l|%c|%m|%D"]).await?)?)
}
