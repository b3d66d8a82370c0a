//! Uploads that storage refused: they stall the farm like a commit that does not end.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a refused upload counts. Workers repeat it several times a second.
const HOLD: Duration = Duration::from_secs(3);

/// The last upload, if storage refused it: written by the service, read by the driver.
#[derive(Debug, Default)]
pub(super) struct Refusals(Mutex<Option<(Instant, String)>>);

impl Refusals {
    /// Storage refused an upload.
    pub(super) fn refused(&self, reason: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), reason));
    }

    /// Storage took an upload.
    pub(super) fn accepted(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Why uploads are refused; `None` if none was refused recently.
    pub(super) fn reason(&self) -> Option<String> {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_ref().filter(|(at, _)| at.elapsed() < HOLD).map(|(_, reason)| reason.clone())
    }
}
