//! Commands of Slurm.

use std::collections::BTreeSet;

use async_trait::async_trait;
use powersweep_launch::slurm::{self, PARTITION_FORMAT, Partition, QUEUE_FORMAT};
use powersweep_launch::{Entry, Facts, JobSite, WorkerJob};

use super::batch::{self, BatchError, BatchSystem};

/// Slurm.
pub(super) struct Slurm;

/// The forms of answers must not follow the user's settings.
const VARIABLES: [(&str, Option<&str>); 6] = [
    ("SLURM_TIME_FORMAT", Some("%s")),
    ("SQUEUE_FORMAT", None),
    ("SQUEUE_STATES", None),
    ("SQUEUE_SORT", None),
    ("SQUEUE_PARTITION", None),
    ("SINFO_FORMAT", None),
];

/// Runs a command of Slurm to its end, and returns what it printed.
async fn answer(program: &'static str, arguments: &[&str]) -> Result<String, BatchError> {
    batch::answer(program, arguments, &VARIABLES).await
}

/// Submits a script with these arguments, and returns the job's number.
pub async fn submit(arguments: &[&str]) -> Result<String, BatchError> {
    let answer = answer("sbatch", &[&["--parsable"], arguments].concat()).await?;
    Ok(slurm::job_id(&answer)?)
}

/// Cancels jobs of this user: `arguments` choose them, or name a signal.
async fn cancel(arguments: &[&str]) -> Result<(), BatchError> {
    answer("scancel", &[&["--me"], arguments].concat()).await.map(drop)
}

#[async_trait]
impl BatchSystem for Slurm {
    fn script(&self, job: &WorkerJob, body: Option<&str>) -> String {
        body.map_or_else(|| slurm::script(job), |body| slurm::with_body(job, body))
    }

    async fn facts(&self) -> Result<Facts, BatchError> {
        Ok(slurm::facts(&answer("scontrol", &["show", "config"]).await?))
    }

    async fn submit_limit(&self, user: &str, site: &JobSite) -> Option<u64> {
        let show = ["--noheader", "--parsable2", "--readonly", "show"];
        let user = format!("users={user}");
        let associations = ["associations", "where", &user, "format=Account,MaxSubmitJobs,DefaultQOS"];
        let associations = answer("sacctmgr", &[&show[..], &associations].concat()).await.ok()?;
        let limits = ["qos", "format=Name,MaxSubmitJobsPerUser"];
        let limits = answer("sacctmgr", &[&show[..], &limits].concat()).await.ok()?;
        slurm::submit_limit(&associations, &limits, site.account.as_deref(), site.qos.as_deref())
    }

    async fn test(&self, script: &str) -> Result<bool, BatchError> {
        answer("sbatch", &["--test-only", script]).await.map(|_| true)
    }

    fn excludes_nodes(&self) -> bool {
        true
    }

    async fn submit(&self, script: &str, count: u64, excluded: &[&str]) -> Result<String, BatchError> {
        let array = format!("--array=1-{count}");
        let exclude = (!excluded.is_empty()).then(|| format!("--exclude={}", excluded.join(",")));
        let arguments: Vec<&str> = std::iter::once(&*array).chain(exclude.as_deref()).chain([script]).collect();
        submit(&arguments).await
    }

    async fn list(
        &self,
        name: &str,
        banners: &mut BTreeSet<String>,
        is_expected: bool,
    ) -> Result<Vec<Entry>, BatchError> {
        let (name, format) = (format!("--name={name}"), format!("--format={QUEUE_FORMAT}"));
        let answer = answer("squeue", &["--me", "--array", "--noheader", "--states=all", &name, &format]).await?;
        Ok(slurm::queue(&answer, banners, is_expected)?)
    }

    async fn cancel(&self, name: &str, running_too: bool) -> Result<(), BatchError> {
        let name = format!("--name={name}");
        cancel(&[&name, "--state=PENDING"]).await?;
        match running_too {
            true => cancel(&[&name, "--signal=TERM", "--full"]).await,
            false => Ok(()),
        }
    }

    async fn cancel_job(&self, job: &str) -> Result<(), BatchError> {
        cancel(&[job]).await
    }
}

/// The cluster's partitions.
pub async fn partitions() -> Result<Vec<Partition>, BatchError> {
    Ok(slurm::partitions(&answer("sinfo", &["--noheader", &format!("--format={PARTITION_FORMAT}")]).await?)?)
}
