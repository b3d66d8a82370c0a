//! Direct uploads: a worker sends an object to the object store itself, and the coordinator takes the object in.

use powersweep_experiments::plain::chain;
use powersweep_proto::v1;
use tonic::Status;
use uuid::Uuid;

use super::limits::Received;
use super::requests::{Requests, inspected};
use super::uploads::Announced;
use crate::store::{MAX_PART_BYTES, SignedPut};

impl Requests {
    /// The worker that may upload this object now.
    pub(super) async fn uploader(&self, upload: &Announced) -> Result<Uuid, Status> {
        let holder = self.holder(upload.lease, &upload.experiment).await?;
        let worker = holder.ok_or_else(|| {
            let Announced { lease, experiment, .. } = upload;
            Status::failed_precondition(format!("lease {lease} of {experiment} is not known: its tasks run again"))
        })?;
        self.uploads.room(worker)?;
        Ok(worker)
    }

    /// The address to which a worker sends an object.
    pub(super) async fn stage_part(&self, request: v1::StagePartRequest) -> Result<v1::StagePartReply, Status> {
        let v1::StagePartRequest { experiment, table, part_id, lease, bytes } = request;
        let upload = Announced::new(experiment, &table, &part_id, lease)?;
        let worker = self.uploader(&upload).await?;
        if bytes == 0 || bytes > MAX_PART_BYTES {
            let reason = format!("an object of {bytes} bytes: it may have 1 to {MAX_PART_BYTES}");
            return Err(Status::invalid_argument(reason));
        }
        if !self.config.direct_uploads {
            return Ok(v1::StagePartReply::default());
        }
        let Announced { experiment, table, part_id, .. } = &upload;
        // The worker then keeps to this coordinator for a while.
        let unsigned = |error| Status::internal(chain(&error));
        let address = self.objects()?.inbox_address(experiment, *table, *part_id).await.map_err(unsigned)?;
        self.uploads.promise(worker, &upload, bytes);
        let SignedPut { url, headers } = address;
        Ok(v1::StagePartReply { url, headers })
    }

    /// Takes in an object that a worker has sent to its address, and checks it. Returns its size. The caller does not drop
    /// this: a refused copy is deleted before another call can take in an object of its name.
    pub(super) async fn take_in(
        &self,
        worker: Uuid,
        upload: Announced,
        bytes: u64,
        mut received: Received,
    ) -> Result<u64, Status> {
        if !self.config.direct_uploads {
            return Err(Status::not_found("this coordinator takes no direct uploads"));
        }
        received.reserve(bytes, MAX_PART_BYTES).await?;
        let _alone = self.uploads.alone(upload.part_id)?;
        let Announced { experiment, table, part_id, .. } = &upload;
        let copied = self.objects()?.take_in(experiment, *table, *part_id, bytes).await;
        let data = self.noted(*table, copied)?;
        let (upload, _, facts) = inspected(upload, data).await?;
        let refused = facts.as_ref().err().cloned();
        self.tidy(&upload, refused.is_some()).await;
        self.uploads.add(worker, &upload, facts);
        refused.map_or(Ok(bytes), |reason| Err(Status::invalid_argument(reason)))
    }

    /// Deletes an object of the inbox that was copied, and its copy if that was refused. A copy that is refused was never
    /// accepted, because the check depends on its bytes alone. An object that stays is deleted when it is old.
    async fn tidy(&self, upload: &Announced, refused: bool) {
        let Announced { experiment, table, part_id, .. } = upload;
        let deleted = async {
            let objects = self.store.objects()?;
            if refused {
                self.store.still_own().await?;
                objects.discard_staged(experiment, *table, *part_id).await?;
            }
            objects.discard_inbox(experiment, *table, *part_id).await
        };
        if let Err(error) = deleted.await {
            tracing::debug!("object {part_id} of {experiment}/{table} stays in the staging folder: {error}");
        }
    }
}
