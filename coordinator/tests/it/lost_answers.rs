//! Conditional writes whose answer is lost: the client makes the request again, and the store refuses it because of the
//! first one. Nobody else was there.

use std::sync::Arc;

use async_trait::async_trait;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{Error, ObjectStore, PutOptions, PutPayload, PutResult, Result};
use powersweep_coordinator::owner::Ownership;
use powersweep_coordinator::probe::probe;
use powersweep_coordinator::store::Location;

use crate::store_writes::{Writes, Writing};

/// Every conditional write is carried out twice, and the second answer is what the caller gets.
#[derive(Debug)]
struct Repeating;

#[async_trait]
impl Writes for Repeating {
    async fn put(&self, store: &InMemory, to: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        let first = store.put_opts(to, payload.clone(), options.clone()).await?;
        match store.put_opts(to, payload, options).await {
            Err(error @ (Error::AlreadyExists { .. } | Error::Precondition { .. })) => Err(error),
            _ => Ok(first),
        }
    }
}

fn repeating() -> Location {
    Location::remote("s3://bucket/".parse().expect("a URL"), Arc::new(Writing(InMemory::new(), Repeating)))
}

#[tokio::test(start_paused = true)]
async fn an_owner_does_not_mistake_itself_for_another() {
    let location = repeating();
    let first = Ownership::take(&location, "http://a:1", false).await.expect("nobody else is there");
    let lost = first.lost();
    // Some renewals.
    tokio::time::sleep(std::time::Duration::from_secs(30)).await;
    assert!(lost.borrow().is_none());
    let second = Ownership::take(&location, "http://b:1", true).await.expect("taken over");
    tokio::time::sleep(std::time::Duration::from_secs(30)).await;
    assert!(lost.borrow().is_some() && second.lost().borrow().is_none());
}

#[tokio::test]
async fn a_probe_does_not_mistake_itself_for_another() {
    probe(&repeating()).await.expect("the store is well");
}
