//! The end: workers drain, rows are published, the store is closed.

use std::time::{Duration, Instant};

use powersweep_proto::v1;
use tokio::sync::oneshot;
use tonic::Status;

use super::super::ServeError;
use super::Driver;
use crate::farm::Event;

/// Longest drain: no task runs longer.
const LONGEST_DRAIN: Duration = Duration::from_secs(100 * 365 * 86_400);
/// How long publishing the last rows may take, and closing the store.
const CLOSE_LIMIT: Duration = Duration::from_secs(60);
/// How long publishing the last rows and closing the store may take while storage does not answer, or refuses parts.
const STALLED_CLOSE_LIMIT: Duration = Duration::from_secs(5);

/// Progress of a shutdown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    No,
    Draining { until: Instant },
    Closing { since: Instant },
}

impl Driver {
    /// Begins to end: workers may finish running tasks for `limit`. A limit that ends earlier stays.
    pub(super) fn drain(&mut self, limit: Duration) {
        let end = Instant::now() + limit.min(LONGEST_DRAIN);
        match &mut self.ending {
            Ending::No => {
                self.ending = Ending::Draining { until: end };
                self.event(Event::Stop);
            }
            Ending::Draining { until } => *until = end.min(*until),
            Ending::Closing { .. } => {}
        }
    }

    pub(super) fn prepare_upgrade(
        &mut self,
        limit: Option<Duration>,
        reply: oneshot::Sender<Result<v1::PrepareUpgradeReply, Status>>,
    ) {
        if self.config.only.is_some() {
            let reason =
                "this coordinator belongs to `powersweep run`: interrupt that command, which publishes its rows";
            let _ = reply.send(Err(Status::failed_precondition(reason)));
            return;
        }
        tracing::info!("the coordinator ends for an upgrade");
        self.upgrades.push(reply);
        self.drain(limit.unwrap_or(LONGEST_DRAIN));
    }

    fn close_limit(&self) -> Duration {
        if self.stalled || self.farm.refuses_parts() { STALLED_CLOSE_LIMIT } else { CLOSE_LIMIT }
    }

    /// Closes the store, within a time limit.
    pub(super) async fn close(&self) -> Result<(), ServeError> {
        let limit = self.close_limit();
        match tokio::time::timeout(limit, self.store.close()).await {
            Ok(result) => {
                result?;
                let unfinished = |reason| ServeError::Unfinished { data: self.config.data.clone(), reason };
                self.refusals.reason().map_or(Ok(()), |reason| Err(unfinished(reason)))
            }
            Err(_) => {
                let waited = format!("it has not confirmed the last writes for {} s", limit.as_secs());
                let trouble = self.store.trouble().await.map(|trouble| format!(": {trouble}"));
                let reason = waited + &trouble.unwrap_or_default();
                Err(ServeError::Unfinished { data: self.config.data.clone(), reason })
            }
        }
    }

    /// Advances a shutdown; true at its end.
    pub(super) fn advance_ending(&mut self) -> bool {
        let late = |until: Instant| Instant::now() >= until;
        if let Ending::Draining { until } = self.ending
            && (!self.farm.has_workers() && !self.farm.is_busy() || late(until))
        {
            self.ending = Ending::Closing { since: Instant::now() };
            self.event(Event::Close);
        }
        // In the same round: if the farm is settled already, no event but the next tick would follow.
        match self.ending {
            Ending::No | Ending::Draining { .. } => false,
            Ending::Closing { since } => {
                let limit = self.close_limit();
                let late = late(since + limit);
                if late && !self.farm.is_settled() {
                    tracing::warn!("some rows are unpublished: the next start publishes them");
                }
                self.farm.is_settled() || late
            }
        }
    }
}
