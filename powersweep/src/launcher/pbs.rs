//! Commands of OpenPBS and PBS Professional.

use std::collections::BTreeSet;

use async_trait::async_trait;
use powersweep_launch::{Entry, Facts, Phase, WorkerJob, pbs};

use super::batch::{self, BatchError, BatchSystem};
use crate::user;

/// Maximum number of jobs that one command names.
const NAMED_MAX: usize = 500;

/// PBS.
pub(super) struct Pbs;

/// Runs a command of PBS to its end, and returns what it printed.
async fn answer(program: &'static str, arguments: &[&str]) -> Result<String, BatchError> {
    // `qstat` writes times in the zone of the user.
    batch::answer(program, arguments, &[("TZ", Some("UTC0"))]).await
}

/// Runs a command that takes names of jobs. Jobs that have ended meanwhile are no failure.
async fn on_jobs(program: &'static str, options: &[&str], entries: &[&Entry]) -> Result<(), BatchError> {
    for entries in entries.chunks(NAMED_MAX) {
        let ids: Vec<&str> = entries.iter().map(|entry| entry.id.as_str()).collect();
        match answer(program, &[options, &ids].concat()).await {
            Err(BatchError::Refused(_, said)) if said.contains("Unknown Job") || said.contains("has finished") => {}
            done => drop(done?),
        }
    }
    Ok(())
}

#[async_trait]
impl BatchSystem for Pbs {
    fn script(&self, job: &WorkerJob, body: Option<&str>) -> String {
        body.map_or_else(|| pbs::script(job), |body| pbs::with_body(job, body))
    }

    async fn facts(&self) -> Result<Facts, BatchError> {
        Ok(pbs::facts(&answer("qstat", &["-B", "-f", "-F", "json"]).await?))
    }

    async fn submit(&self, script: &str, count: u64, _excluded: &[&str]) -> Result<String, BatchError> {
        let array = format!("1-{count}");
        // PBS refuses an array of one element.
        let arguments = if count > 1 { vec!["-J", &array, script] } else { vec![script] };
        Ok(pbs::job_id(&answer("qsub", &arguments).await?)?)
    }

    async fn list(
        &self,
        name: &str,
        banners: &mut BTreeSet<String>,
        is_expected: bool,
    ) -> Result<Vec<Entry>, BatchError> {
        let user = user::name();
        let with_ended = answer("qselect", &["-x", "-u", &user, "-N", name]).await?;
        // A server without a history answers that with nothing, and no error.
        let with_ended = pbs::selected(&with_ended, banners, false)?;
        let (history, ids) = match with_ended.is_empty() {
            true => {
                let live = answer("qselect", &["-u", &user, "-N", name]).await?;
                (&[][..], pbs::selected(&live, banners, is_expected)?)
            }
            false => (&["-x"][..], with_ended),
        };
        let mut entries = Vec::new();
        for ids in ids.chunks(NAMED_MAX) {
            let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
            let options = [history, &["-t", "-f", "-F", "json"], &ids].concat();
            entries.extend(pbs::jobs(&answer("qstat", &options).await?)?);
        }
        Ok(entries)
    }

    async fn cancel(&self, name: &str, running_too: bool) -> Result<(), BatchError> {
        let entries = self.list(name, &mut BTreeSet::new(), false).await?;
        let of = |phase: Phase| entries.iter().filter(|e| e.phase == Some(phase)).collect::<Vec<_>>();
        on_jobs("qdel", &[], &of(Phase::Queued)).await?;
        match running_too {
            true => on_jobs("qsig", &["-s", "SIGTERM"], &of(Phase::Running)).await,
            false => Ok(()),
        }
    }

    async fn cancel_job(&self, job: &str) -> Result<(), BatchError> {
        answer("qdel", &[job]).await.map(drop)
    }
}
