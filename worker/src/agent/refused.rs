//! After a refusal: finished rows are kept for a coordinator that takes them.

use std::time::{Duration, Instant};

use super::Agent;
use crate::options::WorkerError;

/// How long a worker that the coordinator refuses keeps rows for a coordinator that takes them.
const REFUSED_LIMIT: Duration = Duration::from_secs(3600);

impl Agent {
    /// After a refusal, the worker starts no task. While it holds rows or runs tasks, it connects again and again: another
    /// coordinator, or the same one with other settings, may take the rows. Returns the cause of the refusal, or the error
    /// if nothing is held, or for too long.
    pub(super) fn keep_rows(&mut self, error: WorkerError) -> Result<String, WorkerError> {
        let WorkerError::Refused { endpoint, reason } = error else { return Err(error) };
        let mut session = self.pool.session();
        session.refused();
        let limit = self.options.connect_limit.map_or(REFUSED_LIMIT, |limit| limit.min(REFUSED_LIMIT));
        if session.is_settled() {
            return Err(WorkerError::Refused { endpoint, reason });
        }
        let since = *self.refused_since.get_or_insert_with(|| {
            tracing::warn!(
                "{endpoint} refuses this worker: {reason}. It starts no task, and offers its finished rows for {} s",
                limit.as_secs()
            );
            Instant::now()
        });
        if since.elapsed() >= limit {
            let reason = format!("{reason}; rows that it did not take are lost, and their tasks run again");
            return Err(WorkerError::Refused { endpoint, reason });
        }
        Ok(reason)
    }
}
