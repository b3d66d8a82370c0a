//! Tables for clients that have no access to the data: what a reader of the data sees, piece by piece.
//!
//! The unpublished rows of a table are in memory until they are sent. Uploads and parts are read as they are sent. An
//! object that is missing then was deleted because its rows are in another part: the client reads the table again.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::{Stream, StreamExt};
use object_store::path::{Path, PathPart};
use powersweep_experiments::plain::chain;
use powersweep_proto::{is_plain_name, v1};
use powersweep_results::Table;
use powersweep_results::layout::{self, PartCounts, StoredPart};
use prost::Message;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use super::CHUNK_BYTES;
use super::limits::{Limits, READER_WAIT};
use super::requests::{Requests, store_status};
use crate::records::RowsRecord;
use crate::store::{MAX_PART_BYTES, Objects, StoreError, check_name, staged_object};
use crate::view::{State, View, ViewError, read_table_without_uploads};

/// Longest time for a look at a table: while storage stalls, it would wait for the end of the stall.
const LOOK_TIME: Duration = Duration::from_secs(60);
/// Parts that one message names.
const PARTS_EACH: usize = 1_000;
/// Maximum number of ranges of one request.
const RANGES_MAX: usize = 10_000;
/// Longest stretch of a part in which ranges are read together: an object store may read what is between them, too.
const STRETCH_BYTES: u64 = 4 * CHUNK_BYTES;

impl Requests {
    /// The present rows of a table.
    pub(super) async fn read_table(
        &self,
        request: v1::ReadTableRequest,
    ) -> Result<ReceiverStream<Result<v1::TablePiece, Status>>, Status> {
        let v1::ReadTableRequest { experiment, table } = request;
        let table = table_of(&experiment, &table)?;
        let turn = self.limits.table().await?;
        let look = read_table_without_uploads(State::Own(&*self.store), &experiment, table);
        let stalled = |_| {
            let waited_s = LOOK_TIME.as_secs();
            Status::unavailable(format!("the coordinator's storage has not answered for {waited_s} s: try again later"))
        };
        let view = tokio::time::timeout(LOOK_TIME, look).await.map_err(stalled)?.map_err(view_status)?;
        let objects = self.objects()?.clone();
        if !view.known && view.is_empty() && !has_table(&objects, &experiment).await? {
            return Err(Status::not_found(format!("there is no experiment {experiment}")));
        }
        let (outbox, pieces) = mpsc::channel(1);
        let sender = Sender { objects, limits: Arc::clone(&self.limits), experiment, table, outbox };
        tokio::spawn(async move {
            if let Err(status) = sender.send(view).await {
                let _ = sender.outbox.send(Err(status)).await;
            }
            drop(turn);
        });
        Ok(ReceiverStream::new(pieces))
    }

    /// Ranges of a part. An error in the first ones is the call's own.
    pub(super) async fn read_part(
        &self,
        request: v1::ReadPartRequest,
    ) -> Result<impl Stream<Item = Result<v1::Chunk, Status>> + Send + use<>, Status> {
        let mut reader = PartReader::new(self, &request)?;
        let first = reader.next().await.transpose();
        let others = futures::stream::try_unfold(reader, |mut reader| async move {
            Ok(reader.next().await?.map(|chunk| (chunk, reader)))
        });
        Ok(futures::stream::iter(first.transpose()?.map(Ok)).chain(others))
    }
}

/// The table of this name, if the experiment's name can be one.
fn table_of(experiment: &str, table: &str) -> Result<Table, Status> {
    check_name(experiment).map_err(store_status)?;
    // The state's folder begins with a dot.
    if experiment.starts_with('.') || !is_plain_name(experiment) {
        return Err(Status::invalid_argument(format!("no experiment has the name {experiment:?}")));
    }
    Table::from_name(table).ok_or_else(|| Status::invalid_argument(format!("there is no table {table:?}")))
}

/// Whether an experiment that the state does not know has rows, in any table.
async fn has_table(objects: &Objects, experiment: &str) -> Result<bool, Status> {
    for table in Table::ALL {
        let folder = layout::table_dir(experiment, table.name());
        if !objects.parts(&folder).await.map_err(store_status)?.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn view_status(error: ViewError) -> Status {
    match error {
        ViewError::Store(error) => store_status(error),
        ViewError::List { .. } | ViewError::Shards(_) => Status::unavailable(chain(&error)),
        ViewError::ConcurrentChange { .. } => Status::aborted(error.to_string()),
    }
}

/// An object that could not be read.
fn read_status(error: StoreError) -> Status {
    match error {
        StoreError::Missing { path } => {
            Status::aborted(format!("{path} was deleted, because its rows moved to other parts: read the table again"))
        }
        error => store_status(error),
    }
}

/// Sends a table to a client.
struct Sender {
    objects: Objects,
    limits: Arc<Limits>,
    experiment: String,
    table: Table,
    outbox: mpsc::Sender<Result<v1::TablePiece, Status>>,
}

impl Sender {
    async fn send(&self, view: View) -> Result<(), Status> {
        let View { parts, rows, known, lacks_table, counted, .. } = view;
        let counted = counted.map(|PartCounts { parts, rows, left_out }| v1::PartCounts { parts, rows, left_out });
        let folder = format!("{}/", layout::table_dir(&self.experiment, self.table.name()));
        // An empty table has facts, too.
        for some in parts.chunks(PARTS_EACH).chain(parts.is_empty().then_some(&[][..])) {
            let parts = some.iter().map(|part| published(part, &folder)).collect();
            let facts = Some(v1::TableFacts { known, lacks_table, parts, counted });
            self.put(v1::TablePiece { facts, ..Default::default() }).await?;
        }
        for record in rows {
            self.send_rows(record).await?;
        }
        Ok(())
    }

    /// Sends a record of rows, or the upload that it names.
    async fn send_rows(&self, record: RowsRecord) -> Result<(), Status> {
        let Some(upload) = record.upload else {
            let mut rest = Bytes::from(record.encode_to_vec());
            self.begin(Bytes::new(), rest.len() as u64).await?;
            while !rest.is_empty() {
                self.data(rest.split_to(rest.len().min(CHUNK_BYTES as usize))).await?;
            }
            return Ok(());
        };
        self.begin(Bytes::copy_from_slice(upload.part_id.as_bytes()), upload.bytes).await?;
        let path = staged_object(self.objects.private_dir(), &self.experiment, self.table, *upload.part_id);
        for range in pieces(0..upload.bytes) {
            let data = read(&self.objects, &self.limits, &path, &[range]).await.map_err(read_status)?;
            self.data(data).await?;
        }
        Ok(())
    }

    async fn begin(&self, upload: Bytes, bytes: u64) -> Result<(), Status> {
        let begin = Some(v1::UnpublishedRows { upload, bytes });
        self.put(v1::TablePiece { begin, ..Default::default() }).await
    }

    async fn data(&self, data: Bytes) -> Result<(), Status> {
        self.put(v1::TablePiece { data, ..Default::default() }).await
    }

    /// Waits until the client takes a piece. A client that takes none is given up, because others wait for its turn.
    async fn put(&self, piece: v1::TablePiece) -> Result<(), Status> {
        match tokio::time::timeout(READER_WAIT, self.outbox.send(Ok(piece))).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(Status::cancelled("the client has ended the call")),
            Err(_) => Err(Status::deadline_exceeded(format!("no piece was taken for {} s", READER_WAIT.as_secs()))),
        }
    }
}

fn published(part: &StoredPart, folder: &str) -> v1::PublishedPart {
    let path = part.path.as_ref();
    v1::PublishedPart { name: path.strip_prefix(folder).unwrap_or(path).to_owned(), bytes: part.bytes }
}

/// Reads ranges that [`batches`] has put together.
async fn read(objects: &Objects, limits: &Limits, path: &Path, ranges: &[Range<u64>]) -> Result<Bytes, StoreError> {
    let _turn = limits.pieces.acquire().await;
    let found = objects.ranges(path, ranges).await?;
    let mut data = BytesMut::with_capacity(found.iter().map(Bytes::len).sum());
    found.iter().for_each(|bytes| data.extend_from_slice(bytes));
    Ok(data.freeze())
}

/// Reads ranges of a part.
struct PartReader {
    objects: Objects,
    limits: Arc<Limits>,
    path: Path,
    total_bytes: u64,
    batches: std::vec::IntoIter<Vec<Range<u64>>>,
}

impl PartReader {
    fn new(requests: &Requests, request: &v1::ReadPartRequest) -> Result<PartReader, Status> {
        let v1::ReadPartRequest { experiment, table, part, ranges } = request;
        let path = part_path(experiment, table_of(experiment, table)?, part)?;
        let ranges = checked(ranges)?;
        Ok(PartReader {
            objects: requests.objects()?.clone(),
            limits: Arc::clone(&requests.limits),
            path,
            total_bytes: ranges.iter().map(|range| range.end - range.start).sum(),
            batches: batches(&ranges).into_iter(),
        })
    }

    /// The next bytes; `None` at the end.
    async fn next(&mut self) -> Result<Option<v1::Chunk>, Status> {
        let Some(batch) = self.batches.next() else { return Ok(None) };
        let data = match read(&self.objects, &self.limits, &self.path, &batch).await {
            Ok(data) if data.len() as u64 == bytes_of(&batch) => data,
            Ok(_) => return Err(self.too_short()),
            Err(error) => return Err(self.failed(error, &batch).await),
        };
        Ok(Some(v1::Chunk { data, total_bytes: self.total_bytes }))
    }

    /// Stores have different errors for a range behind the end.
    async fn failed(&self, error: StoreError, batch: &[Range<u64>]) -> Status {
        let end = batch.iter().map(|range| range.end).max().unwrap_or(0);
        match self.objects.size(&self.path).await {
            Ok(Some(bytes)) if bytes < end => self.too_short(),
            _ => read_status(error),
        }
    }

    fn too_short(&self) -> Status {
        Status::out_of_range(format!("{} ends before a range of the request", self.path))
    }
}

/// The path of a part: only files in the table's folder itself can be read.
fn part_path(experiment: &str, table: Table, name: &str) -> Result<Path, Status> {
    let invalid = || Status::invalid_argument(format!("{name:?} is not the name of a part in the table's folder"));
    if !layout::is_part_file(name) || name.contains('/') || check_name(name).is_err() {
        return Err(invalid());
    }
    let name = PathPart::parse(name).map_err(|_| invalid())?;
    Ok(layout::table_dir(experiment, table.name()).join(name))
}

fn checked(ranges: &[v1::ByteRange]) -> Result<Vec<Range<u64>>, Status> {
    let invalid = |reason: String| Err(Status::invalid_argument(reason));
    if ranges.len() > RANGES_MAX {
        return invalid(format!("{} ranges, at most {RANGES_MAX} can be read at once", ranges.len()));
    }
    let mut total_bytes = 0;
    for range in ranges {
        if range.start > range.end || range.end > MAX_PART_BYTES {
            return invalid(format!("{}..{} is no range of a part", range.start, range.end));
        }
        total_bytes += range.end - range.start;
    }
    if total_bytes > MAX_PART_BYTES {
        return invalid(format!("{total_bytes} bytes, at most {MAX_PART_BYTES} can be read at once"));
    }
    Ok(ranges.iter().map(|range| range.start..range.end).collect())
}

/// A range in pieces of one message.
fn pieces(range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let end = range.end;
    range.step_by(CHUNK_BYTES as usize).map(move |start| start..end.min(start + CHUNK_BYTES))
}

fn bytes_of(ranges: &[Range<u64>]) -> u64 {
    ranges.iter().map(|range| range.end - range.start).sum()
}

/// The ranges in pieces. Neighbouring pieces that are small and near each other are read at once and sent in one message.
fn batches(ranges: &[Range<u64>]) -> Vec<Vec<Range<u64>>> {
    let mut batches: Vec<Vec<Range<u64>>> = Vec::new();
    let (mut bytes, mut stretch) = (0, 0..0);
    for piece in ranges.iter().cloned().flat_map(pieces) {
        let with_piece = stretch.start.min(piece.start)..stretch.end.max(piece.end);
        bytes += piece.end - piece.start;
        match batches.last_mut() {
            Some(batch) if bytes <= CHUNK_BYTES && with_piece.end - with_piece.start <= STRETCH_BYTES => {
                stretch = with_piece;
                batch.push(piece);
            }
            _ => {
                (bytes, stretch) = (piece.end - piece.start, piece.clone());
                batches.push(vec![piece]);
            }
        }
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_together_only_if_they_are_small_and_near() {
        let kib = |from: u64, to: u64| (from << 10)..(to << 10);
        assert_eq!(batches(&[kib(0, 1), kib(2, 3), kib(1, 2)]), [vec![kib(0, 1), kib(2, 3), kib(1, 2)]]);
        assert_eq!(batches(&[kib(0, 200), kib(200, 300)]), [vec![kib(0, 200)], vec![kib(200, 300)]], "too large");
        assert_eq!(batches(&[kib(0, 1), kib(1024, 1025)]), [vec![kib(0, 1)], vec![kib(1024, 1025)]], "too far");
        assert_eq!(batches(&[kib(5, 5 + 600)]), [[kib(5, 261)], [kib(261, 517)], [kib(517, 605)]], "in pieces");
        assert!(batches(&[]).is_empty() && batches(&[kib(3, 3)]).is_empty());
    }

    #[test]
    fn only_ranges_of_a_part_are_accepted() {
        let range = |start, end| v1::ByteRange { start, end };
        assert_eq!(checked(&[range(0, 0), range(3, MAX_PART_BYTES)]).expect("sound").len(), 2);
        for wrong in [vec![range(2, 1)], vec![range(0, MAX_PART_BYTES + 1)], vec![range(0, 300 << 20); 2]] {
            assert!(checked(&wrong).is_err(), "{wrong:?}");
        }
        assert!(
            checked(&vec![range(0, 1); RANGES_MAX]).is_ok() && checked(&vec![range(0, 1); RANGES_MAX + 1]).is_err()
        );
    }

    #[test]
    fn only_files_of_a_table_are_parts() {
        let path = |experiment: &str, table: &str, name: &str| {
            table_of(experiment, table)
                .and_then(|table| part_path(experiment, table, name))
                .map(|path| path.to_string())
        };
        assert_eq!(path("e@left", "jobs", "00.parquet").expect("sound"), "e@left/jobs/00.parquet");
        for (experiment, table, name) in [
            ("e", "tasks", "../../f/tasks/p.parquet"),
            ("e", "tasks", "..parquet"),
            ("e", "tasks", "old/p.parquet"),
            ("e", "tasks", "client.json"),
            ("e", "tasks", "p\u{0}.parquet"),
            ("e", "../tasks", "p.parquet"),
            ("..", "tasks", "p.parquet"),
            (".powersweep", "tasks", "p.parquet"),
            ("e/../.powersweep", "tasks", "p.parquet"),
            ("", "tasks", "p.parquet"),
        ] {
            assert!(path(experiment, table, name).is_err(), "{experiment}/{table}/{name}");
        }
    }
}
