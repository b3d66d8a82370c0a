//! Storage that does not confirm writes: dispatch pauses, health checks fail, a probe finds the fault.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Driver, Report};
use crate::farm::Event;

/// A commit that takes longer pauses dispatch.
const STALL_AFTER: Duration = Duration::from_secs(2);
/// Least and greatest wait between probes of stalled storage: a probe may block a thread for ever.
const PROBE_AFTER: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(600));

impl Driver {
    /// Why storage counts as stalled: a commit takes too long, or an upload was refused.
    fn stall(&self) -> Option<String> {
        let waited = self.commit_since.map(|since| since.elapsed()).unwrap_or_default();
        let slow = || format!("storage has not confirmed a write for {} s", waited.as_secs());
        (waited > STALL_AFTER).then(slow).or_else(|| self.refusals.reason())
    }

    /// Pauses dispatch while storage stalls.
    pub(super) fn watch_storage(&mut self) {
        let stall = self.stall();
        let stalled = stall.is_some();
        if let Some(mut reason) = stall {
            // The cause comes first.
            self.trouble.iter().for_each(|trouble| reason = format!("{trouble}; {reason}"));
            if !self.stalled {
                tracing::warn!("{reason}; no task is handed out until it does");
            }
            self.event(Event::Storage { stalled: Some(reason) });
            self.probe_storage();
        } else if self.stalled {
            tracing::warn!("storage works again");
            (self.trouble, self.probed) = (None, None);
            self.event(Event::Storage { stalled: None });
        }
        self.set_stalled(stalled);
    }

    pub(super) fn set_stalled(&mut self, stalled: bool) {
        self.stalled = stalled;
        self.health.send_if_modified(|told| std::mem::replace(told, stalled) != stalled);
    }

    /// Finds out the fault of stalled storage, with exponential back-off.
    fn probe_storage(&mut self) {
        let wait = match self.probed {
            Some((at, wait)) if at.elapsed() < wait => return,
            Some((_, wait)) => (wait * 2).min(PROBE_AFTER.1),
            None => PROBE_AFTER.0,
        };
        self.probed = Some((Instant::now(), wait));
        let (store, report) = (Arc::clone(&self.store), self.reporter());
        tokio::spawn(async move {
            let trouble = store.trouble().await;
            trouble.iter().for_each(|trouble| tracing::warn!("storage: {trouble}"));
            report(Report::Trouble(trouble));
        });
    }
}
