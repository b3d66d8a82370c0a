//! Tables of a coordinator, for a user without the data.

use std::fmt;
use std::ops::Range;
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use object_store::path::{Path, PathPart};
use powersweep_coordinator::records::RowsRecord;
use powersweep_coordinator::store::MAX_PART_BYTES;
use powersweep_dataset::tables::{Listing, Tables, Wanted};
use powersweep_dataset::{Error, Kind, failure};
use powersweep_proto::client::{Client, words};
use powersweep_proto::v1;
use powersweep_results::Table;
use powersweep_results::layout::{self, PartCounts, StoredPart};
use prost::Message;
use tonic::{Code, Status};

use super::connection;

/// Attempts to list a table: each fails only if parts were published or split meanwhile.
const ATTEMPTS_MAX: u32 = 5;

/// Wait before the next attempt.
const RETRY_AFTER: Duration = Duration::from_millis(200);

/// The tables of a coordinator.
pub(super) struct Remote(pub(super) Client);

impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the coordinator")
    }
}

#[async_trait]
impl Tables for Remote {
    async fn list(&self, experiment: &str, table: Table, wanted: Wanted) -> Result<Listing, Error> {
        let mut client = self.0.clone();
        let mut attempts = 1;
        loop {
            match listing(&mut client, experiment, table).await {
                Err(status) if status.code() == Code::Aborted && attempts < ATTEMPTS_MAX => {
                    attempts += 1;
                    tokio::time::sleep(RETRY_AFTER).await;
                }
                Err(status) if status.code() == Code::NotFound => {
                    return Err(connection::refused_about(&mut client, &status, experiment).await);
                }
                found => {
                    let listing = found.map_err(|status| refused(&status))?;
                    return Ok(match wanted {
                        Wanted::All => listing,
                        Wanted::Published => Listing { uploads: Vec::new(), unpublished: Vec::new(), ..listing },
                    });
                }
            }
        }
    }

    async fn ranges(&self, part: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>, Error> {
        let mut bytes = self.read(part, ranges).await.map_err(|status| refused(&status))?;
        let lengths = ranges.iter().map(|range| (range.end - range.start) as usize);
        if bytes.len() != lengths.clone().sum::<usize>() {
            return Err(failure!(Storage, "{part} has another size than the coordinator has announced"));
        }
        Ok(lengths.map(|length| bytes.split_to(length)).collect())
    }
}

impl Remote {
    /// The bytes of the ranges, one after the other.
    async fn read(&self, part: &Path, ranges: &[Range<u64>]) -> Result<Bytes, Status> {
        let mut names = part.parts().map(|part| part.as_ref().to_owned());
        let mut next = || names.next().unwrap_or_default();
        let request = v1::ReadPartRequest {
            experiment: next(),
            table: next(),
            part: next(),
            ranges: ranges.iter().map(|range| v1::ByteRange { start: range.start, end: range.end }).collect(),
        };
        let mut chunks = self.0.clone().read_part(request).await?.into_inner();
        let mut bytes = BytesMut::new();
        while let Some(chunk) = chunks.message().await? {
            bytes.extend_from_slice(&chunk.data);
        }
        Ok(bytes.freeze())
    }
}

/// A failed or refused read as an error.
fn refused(status: &Status) -> Error {
    match status.code() {
        // Parts were deleted while they were read.
        Code::Aborted => Error::new(Kind::Failure, words(status)),
        _ => connection::refused(status),
    }
}

/// One attempt.
async fn listing(client: &mut Client, experiment: &str, table: Table) -> Result<Listing, Status> {
    let request = v1::ReadTableRequest { experiment: experiment.to_owned(), table: table.name().to_owned() };
    let mut pieces = client.read_table(request).await?.into_inner();
    let mut received = Received::default();
    let folder = layout::table_dir(experiment, table.name());
    while let Some(v1::TablePiece { facts, begin, data }) = pieces.message().await? {
        if let Some(facts) = facts {
            received.facts(facts, &folder)?;
        }
        if let Some(begin) = begin {
            received.begin(begin)?;
        }
        received.data(&data)?;
    }
    received.end_object()?;
    Ok(received.listing)
}

/// What has arrived of a table.
#[derive(Default)]
struct Received {
    listing: Listing,
    /// The object that is arriving, with its bytes so far.
    object: Option<(v1::UnpublishedRows, BytesMut)>,
}

impl Received {
    fn facts(&mut self, facts: v1::TableFacts, folder: &Path) -> Result<(), Status> {
        let v1::TableFacts { known, lacks_table, parts, counted } = facts;
        (self.listing.has_state, self.listing.lacks_table) = (known, lacks_table);
        let of = |v1::PartCounts { parts, rows, left_out }| PartCounts { parts, rows, left_out };
        self.listing.counted = counted.map(of);
        for v1::PublishedPart { name, bytes } in parts {
            let name =
                PathPart::parse(&name).map_err(|_| Status::data_loss(format!("no part has the name {name:?}")))?;
            self.listing.parts.push(StoredPart { path: folder.clone().join(name), bytes });
        }
        Ok(())
    }

    fn begin(&mut self, begin: v1::UnpublishedRows) -> Result<(), Status> {
        self.end_object()?;
        if begin.bytes > MAX_PART_BYTES {
            return Err(Status::data_loss(format!("an object of unpublished rows has {} bytes", begin.bytes)));
        }
        self.object = Some((begin, BytesMut::new()));
        Ok(())
    }

    fn data(&mut self, data: &[u8]) -> Result<(), Status> {
        match &mut self.object {
            Some((begin, bytes)) if (bytes.len() + data.len()) as u64 <= begin.bytes => bytes.extend_from_slice(data),
            _ if data.is_empty() => {}
            _ => return Err(wrong_size()),
        }
        Ok(())
    }

    fn end_object(&mut self) -> Result<(), Status> {
        let Some((begin, bytes)) = self.object.take() else { return Ok(()) };
        if bytes.len() as u64 != begin.bytes {
            return Err(wrong_size());
        }
        let bytes = bytes.freeze();
        if begin.upload.is_empty() {
            let unreadable = |error| Status::data_loss(format!("unpublished rows cannot be read: {error}"));
            self.listing.unpublished.extend(RowsRecord::decode(bytes).map_err(unreadable)?.unpublished());
            return Ok(());
        }
        let id = uuid::Uuid::from_slice(&begin.upload).unwrap_or_default();
        self.listing.uploads.push((Path::from(format!("the upload {id}")), bytes));
        Ok(())
    }
}

fn wrong_size() -> Status {
    Status::data_loss("an object of unpublished rows has another size than was announced")
}
