//! Object stores without conditional writes, which a start refuses.

use std::sync::Arc;

use async_trait::async_trait;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{Error, ObjectStore, PutMode, PutOptions, PutPayload, PutResult, Result};
use powersweep_coordinator::probe::{ProbeError, probe};
use powersweep_coordinator::store::Location;

use crate::store_writes::{Writes, Writing};

/// What a store does with the conditions of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lacks {
    /// It replaces existing objects.
    Create,
    /// It updates objects that have changed.
    Update,
    /// It refuses every conditional update.
    AnyUpdate,
    /// It does not know conditional updates.
    Knowledge,
}

#[async_trait]
impl Writes for Lacks {
    async fn put(
        &self,
        store: &InMemory,
        to: &Path,
        payload: PutPayload,
        mut options: PutOptions,
    ) -> Result<PutResult> {
        match (&options.mode, self) {
            (PutMode::Create, Lacks::Create) | (PutMode::Update(_), Lacks::Update) => options.mode = PutMode::Overwrite,
            (PutMode::Update(_), Lacks::AnyUpdate) => {
                return Err(Error::Precondition { path: to.to_string(), source: "412".into() });
            }
            (PutMode::Update(_), Lacks::Knowledge) => {
                return Err(Error::NotImplemented { operation: "update".into(), implementer: "Lacks".into() });
            }
            _ => {}
        }
        store.put_opts(to, payload, options).await
    }
}

#[tokio::test]
async fn a_store_without_conditional_writes_is_refused_with_what_it_lacks() {
    for (lacks, text) in [
        (Lacks::Create, "s3://bucket/ lets two writers create the same object"),
        (Lacks::Update, "the update of a changed object is carried out"),
        (Lacks::AnyUpdate, "the update of an unchanged object is refused"),
        (Lacks::Knowledge, "update"),
    ] {
        let store = Arc::new(Writing(InMemory::new(), lacks));
        let location = Location::remote("s3://bucket/".parse().expect("a URL"), store.clone());
        let error = probe(&location).await.expect_err("unusable");
        let is_update = matches!(error, ProbeError::NoConditionalUpdate { .. });
        assert_eq!(is_update, lacks != Lacks::Create, "{error:?}");
        let shown = error.to_string();
        assert!(shown.contains(text) && shown.starts_with("s3://bucket/"), "{shown}");
        println!("{shown}");
        let left = store.list_with_delimiter(Some(&Path::from(".powersweep"))).await.expect("lists");
        assert!(left.objects.is_empty(), "{:?}", left.objects);
    }
}
