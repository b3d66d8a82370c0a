//! Tables of a coordinator, for a user without the data.

use std::ops::Range;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use object_store::path::{Path, PathPart};
use powersweep_coordinator::records::{RowsRecord, Table};
use powersweep_coordinator::store::MAX_PART_BYTES;
use powersweep_coordinator::view::{StoredPart, View};
use powersweep_proto::client::{Client, words};
use powersweep_proto::v1;
use powersweep_results::layout;
use prost::Message;
use tonic::{Code, Status};

use crate::exit::{Exit, Failure, failure};
use crate::{client, stored};

/// Attempts to read a table: each fails only if parts were published or split meanwhile.
const LOOKS_MAX: u32 = 5;

/// Wait before the next attempt.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// A table as the coordinator sees it at one moment. An unknown experiment is an error; a table without rows is not.
pub async fn look(client: &Client, experiment: &str, table: Table) -> Result<View, Failure> {
    let mut client = client.clone();
    let mut looks = 1;
    loop {
        match view(&mut client, experiment, table).await {
            Err(status) if status.code() == Code::Aborted && looks < LOOKS_MAX => {
                looks += 1;
                tokio::time::sleep(LOOK_AGAIN).await;
            }
            Err(status) if status.code() == Code::NotFound => {
                return Err(stored::refused(&mut client, &status, experiment).await);
            }
            found => return found.map_err(|status| refused(&status)),
        }
    }
}

/// A failed or refused read as an error.
fn refused(status: &Status) -> Failure {
    match status.code() {
        // Parts were deleted while they were read.
        Code::Aborted => Failure::new(Exit::Failure, words(status)),
        _ => client::refused(status),
    }
}

/// One attempt.
async fn view(client: &mut Client, experiment: &str, table: Table) -> Result<View, Status> {
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
    Ok(received.view)
}

/// What has arrived of a table.
#[derive(Default)]
struct Received {
    view: View,
    /// The object that is arriving, with its bytes so far.
    object: Option<(v1::UnpublishedRows, BytesMut)>,
}

impl Received {
    fn facts(&mut self, facts: v1::TableFacts, folder: &Path) -> Result<(), Status> {
        let v1::TableFacts { known, lacks_table, parts } = facts;
        (self.view.known, self.view.lacks_table) = (known, lacks_table);
        for v1::PublishedPart { name, bytes } in parts {
            let name =
                PathPart::parse(&name).map_err(|_| Status::data_loss(format!("no part has the name {name:?}")))?;
            self.view.parts.push(StoredPart { path: folder.clone().join(name), bytes });
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
            self.view.rows.push(RowsRecord::decode(bytes).map_err(unreadable)?);
            return Ok(());
        }
        let id = uuid::Uuid::from_slice(&begin.upload).unwrap_or_default();
        self.view.staged.push((Path::from(format!("the upload {id}")), bytes));
        Ok(())
    }
}

fn wrong_size() -> Status {
    Status::data_loss("an object of unpublished rows has another size than was announced")
}

/// A published part of a coordinator.
pub struct RemotePart {
    client: Client,
    experiment: String,
    table: Table,
    name: String,
}

impl RemotePart {
    /// The part at this path of a table.
    pub fn new(client: &Client, experiment: &str, table: Table, path: &Path) -> RemotePart {
        let name = path.filename().unwrap_or_default().to_owned();
        RemotePart { client: client.clone(), experiment: experiment.to_owned(), table, name }
    }

    /// Reads these ranges.
    pub async fn fetch(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>, Failure> {
        let mut bytes = self.read(ranges).await.map_err(|status| refused(&status))?;
        let lengths = ranges.iter().map(|range| (range.end - range.start) as usize);
        if bytes.len() != lengths.clone().sum::<usize>() {
            return Err(failure!(Storage, "{} has another size than the coordinator has announced", self.name));
        }
        Ok(lengths.map(|length| bytes.split_to(length)).collect())
    }

    /// The bytes of the ranges, one after the other.
    async fn read(&self, ranges: &[Range<u64>]) -> Result<Bytes, Status> {
        let request = v1::ReadPartRequest {
            experiment: self.experiment.clone(),
            table: self.table.name().to_owned(),
            part: self.name.clone(),
            ranges: ranges.iter().map(|range| v1::ByteRange { start: range.start, end: range.end }).collect(),
        };
        let mut chunks = self.client.clone().read_part(request).await?.into_inner();
        let mut bytes = BytesMut::new();
        while let Some(chunk) = chunks.message().await? {
            bytes.extend_from_slice(&chunk.data);
        }
        Ok(bytes.freeze())
    }
}
