//! The inbox: objects that workers send to the object store themselves, by signed addresses.
//!
//! The holder of an address can replace its object until the address expires. So the store itself copies the object to the
//! name of an upload; this copy is checked, and parts are made of it. No address names a copy, and a copy never replaces an
//! upload.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{Error as ObjectError, ObjectStore, ObjectStoreExt, PutPayload, coalesce_ranges};
use powersweep_results::Table;
use powersweep_results::part;
use uuid::Uuid;

use super::objects::{Objects, STAGED_MAX_AGE, blocking, check_part, unavailable};
use super::signer::SignedPut;
use super::{StoreError, encoding};

/// How long a signed address is valid. A store looks at it when a request begins, not when it ends.
const ADDRESS_VALID: Duration = Duration::from_secs(300);

/// Bytes at the end of an object that are read first: the whole of a small one, and the metadata of others.
const TAIL_BYTES: u64 = 128 << 10;

/// Bytes between two columns of texts that are read with them, which saves a request. The default of the library is 1 MiB: with
/// it, small objects would pass through the coordinator as a whole.
const GAP_BYTES: u64 = 16 << 10;

/// Where the metadata of a Parquet object begins, by the last bytes of the object; its end if that is nowhere in the object.
fn metadata_begin(tail: &Bytes, bytes: u64) -> u64 {
    let length = tail.len().checked_sub(8).and_then(|at| tail[at..at + 4].try_into().ok()).map(u32::from_le_bytes);
    length.and_then(|length| bytes.checked_sub(8 + u64::from(length))).unwrap_or(bytes)
}

impl Objects {
    /// Path of an object that a worker sends, below DATA.
    fn inbox_path(&self, experiment: &str, table: Table, part_id: Uuid) -> Result<Path, StoreError> {
        encoding::check_name(experiment)?;
        let name = format!("{}.parquet", part_id.hyphenated());
        Ok(self.inbox().join(experiment).join(table.name()).join(name))
    }

    /// The address at which a worker can store an object in the inbox.
    pub async fn inbox_address(&self, experiment: &str, table: Table, part_id: Uuid) -> Result<SignedPut, StoreError> {
        self.sign(&self.inbox_path(experiment, table, part_id)?).await
    }

    async fn sign(&self, path: &Path) -> Result<SignedPut, StoreError> {
        let none = || StoreError::Invalid { reason: "this storage has no signed addresses".to_owned() };
        let signer = self.signer.as_ref().ok_or_else(none)?;
        signer.sign_put(path, ADDRESS_VALID).await.map_err(|error| unavailable("sign an address of", path, error))
    }

    /// Copies an object of the inbox to the name of an upload, and reads of the copy, which must have this number of bytes,
    /// what `part::inspect` reads; the other bytes are zeros. Repeatable: a later call reads the copy of the first one.
    /// [`StoreError::Missing`] if the object has not arrived.
    pub async fn take_in(
        &self,
        experiment: &str,
        table: Table,
        part_id: Uuid,
        bytes: u64,
    ) -> Result<Bytes, StoreError> {
        let (from, to) = (self.inbox_path(experiment, table, part_id)?, self.staged_path(experiment, table, part_id)?);
        check_part(&from, bytes)?;
        match self.size(&from).await? {
            Some(found) if found != bytes => {
                self.remove(&from).await?;
                return Err(StoreError::Invalid { reason: format!("{from} has {found} bytes, not {bytes}") });
            }
            Some(_) => self.copy_new(&from, &to).await?,
            // An earlier call may have copied it.
            None => {}
        }
        match self.size(&to).await? {
            None => return Err(StoreError::Missing { path: from.to_string() }),
            Some(found) if found != bytes => {
                let found = format!("another upload of {found} bytes");
                return Err(StoreError::PartTaken { path: to.to_string(), part_id, found });
            }
            Some(_) => {}
        }
        self.to_check(&to, bytes).await
    }

    /// The bytes of an object that `part::inspect` reads, among zeros.
    async fn to_check(&self, path: &Path, bytes: u64) -> Result<Bytes, StoreError> {
        let mut begin = bytes.saturating_sub(TAIL_BYTES);
        let mut tail = self.range(path, begin..bytes).await?;
        let metadata = metadata_begin(&tail, bytes);
        if metadata < begin {
            (begin, tail) = (metadata, self.range(path, metadata..bytes).await?);
        }
        if begin == 0 {
            return Ok(tail);
        }
        let known = tail.clone();
        // The check refuses an object without metadata, and says why.
        let find = move || catch_unwind(AssertUnwindSafe(|| part::text_ranges(&known, bytes)));
        let mut ranges = blocking(find).await.ok().and_then(Result::ok).unwrap_or_default();
        ranges.retain(|range| range.start < begin);
        let pieces = coalesce_ranges(&ranges, |range| self.range(path, range), GAP_BYTES).await?;
        let too_large = |_| StoreError::Invalid { reason: format!("{path} has {bytes} bytes") };
        let mut data = vec![0; usize::try_from(bytes).map_err(too_large)?];
        for (start, piece) in ranges.iter().map(|range| range.start).zip(&pieces).chain([(begin, &tail)]) {
            let start = usize::try_from(start).map_err(too_large)?;
            data[start..start + piece.len()].copy_from_slice(piece);
        }
        Ok(data.into())
    }

    /// One range of an object.
    async fn range(&self, path: &Path, range: Range<u64>) -> Result<Bytes, StoreError> {
        let bytes = self.store.get_range(path, range).await;
        bytes.map_err(|error| unavailable("read", path, error))
    }

    /// Copies an object unless there is one of the new name.
    async fn copy_new(&self, from: &Path, to: &Path) -> Result<(), StoreError> {
        match self.store.copy_if_not_exists(from, to).await {
            // After a lost answer the library asks again, and gets one of these errors: the reader finds the copy.
            Ok(()) | Err(ObjectError::AlreadyExists { .. } | ObjectError::NotFound { .. }) => Ok(()),
            Err(error) => Err(unavailable("copy", from, error)),
        }
    }

    /// Deletes an object of the inbox, if it exists.
    pub async fn discard_inbox(&self, experiment: &str, table: Table, part_id: Uuid) -> Result<(), StoreError> {
        self.remove(&self.inbox_path(experiment, table, part_id)?).await
    }

    /// Deletes objects of the inbox that are older than [`STAGED_MAX_AGE`]: of workers that are gone, or that arrived late.
    /// Returns their number.
    pub async fn clean_inbox(&self, now: SystemTime) -> Result<u64, StoreError> {
        let folder = self.inbox();
        let found = self.store.list(Some(&folder)).try_collect::<Vec<_>>().await;
        let mut deleted = 0;
        for object in found.map_err(|error| unavailable("list", &folder, error))? {
            if now.duration_since(object.last_modified.into()).is_ok_and(|age| age > STAGED_MAX_AGE) {
                self.remove(&object.location).await?;
                deleted += 1;
            }
        }
        Ok(deleted)
    }

    /// Makes sure that the store signs addresses, and copies without replacing.
    pub async fn probe_inbox(&self) -> Result<(), StoreError> {
        let name = format!("{}.probe", Uuid::new_v4());
        let (from, to) = (self.inbox().join(name.as_str()), self.private(&["staging", "probe", &name]));
        self.sign(&from).await?;
        let copied = self.probe_copies(&from, &to).await;
        for path in [&from, &to] {
            self.remove(path).await?;
        }
        copied
    }

    async fn probe_copies(&self, from: &Path, to: &Path) -> Result<(), StoreError> {
        let payload = PutPayload::from_static(b"probe");
        self.store.put(from, payload).await.map_err(|error| unavailable("write", from, error))?;
        match self.store.copy_if_not_exists(from, to).await {
            // A lost answer.
            Ok(()) | Err(ObjectError::AlreadyExists { .. }) => {}
            Err(error) => return Err(unavailable("copy", from, error)),
        }
        match self.store.copy_if_not_exists(from, to).await {
            Err(ObjectError::AlreadyExists { .. }) => Ok(()),
            Ok(()) => Err(StoreError::Invalid { reason: "the store replaces objects by copies".to_owned() }),
            Err(error) => Err(unavailable("copy", from, error)),
        }
    }
}
