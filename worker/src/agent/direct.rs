//! Direct uploads: objects of optional tables that this worker sends to the object store itself.
//!
//! Where that fails, they go through the coordinator for a while. An address has a signature, which is a secret: addresses
//! are never logged.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use powersweep_proto::client::{Client, words};
use powersweep_proto::v1;
use tonic::Code;

#[cfg(not(feature = "cloud"))]
use without_http::Http;

#[cfg(feature = "cloud")]
use super::http::Http;

/// Time after a failure until the object store is tried again.
const AGAIN_AFTER: Duration = Duration::from_secs(600);

/// Whether objects go to the object store, and the client for it.
#[derive(Default)]
pub(super) struct Direct {
    /// The coordinator of the present connection takes direct uploads.
    offered: AtomicBool,
    /// No attempt before this moment.
    not_before: Mutex<Option<Instant>>,
    http: Http,
}

impl Direct {
    /// What the coordinator of a new connection says.
    pub(super) fn offer(&self, offered: bool) {
        self.offered.store(offered, Ordering::Relaxed);
    }

    fn is_on(&self, now: Instant) -> bool {
        let not_before = *self.not_before.lock().unwrap_or_else(PoisonError::into_inner);
        cfg!(feature = "cloud") && self.offered.load(Ordering::Relaxed) && not_before.is_none_or(|at| now >= at)
    }

    /// Uploads go through the coordinator for a while. Uploads that fail at the same time are one failure.
    pub(super) fn fail(&self, reason: &str, now: Instant) {
        if self.is_on(now) {
            *self.not_before.lock().unwrap_or_else(PoisonError::into_inner) = Some(now + AGAIN_AFTER);
            let minutes = AGAIN_AFTER.as_secs() / 60;
            tracing::warn!(
                "an object cannot be sent to the object store ({reason}): objects go through the coordinator for {minutes} \
                 minutes"
            );
        }
    }

    /// Sends an object to the object store; false if it must go through the coordinator.
    pub(super) async fn send(&self, client: &mut Client, object: &v1::UploadPartRequest) -> bool {
        if !self.is_on(Instant::now()) {
            return false;
        }
        let v1::UploadPartRequest { experiment, table, part_id, lease, data, .. } = object.clone();
        let request = v1::StagePartRequest { experiment, table, part_id, lease, bytes: data.len() as u64 };
        let v1::StagePartReply { url, headers } = match client.stage_part(request).await {
            Ok(reply) => reply.into_inner(),
            Err(status) => {
                // After any other answer, the upload through the coordinator succeeds or says why it does not.
                if matches!(status.code(), Code::Internal | Code::Unimplemented) {
                    self.fail(&words(&status), Instant::now());
                }
                return false;
            }
        };
        if url.is_empty() {
            return false;
        }
        match self.http.put(&url, &headers, data).await {
            Ok(()) => true,
            Err(reason) => {
                self.fail(&reason, Instant::now());
                false
            }
        }
    }
}

/// This build has no client for object stores.
#[cfg(not(feature = "cloud"))]
mod without_http {
    use std::collections::HashMap;

    use bytes::Bytes;

    #[derive(Default)]
    pub(super) struct Http;

    impl Http {
        pub(super) async fn put(&self, _: &str, _: &HashMap<String, String>, _: Bytes) -> Result<(), String> {
            Err("this worker was built without object stores".to_owned())
        }
    }
}

#[cfg(all(test, feature = "cloud"))]
mod tests {
    use super::*;

    #[test]
    fn a_failure_holds_for_ten_minutes() {
        let (direct, now) = (Direct::default(), Instant::now());
        assert!(!direct.is_on(now), "nobody has offered it");
        direct.offer(true);
        assert!(direct.is_on(now));
        direct.fail("no route", now);
        direct.fail("no route", now + Duration::from_secs(5));
        assert!(!direct.is_on(now + Duration::from_secs(599)));
        assert!(direct.is_on(now + Duration::from_secs(600)));
        // Another coordinator may have no object store.
        direct.offer(false);
        assert!(!direct.is_on(now + Duration::from_secs(600)));
    }
}
