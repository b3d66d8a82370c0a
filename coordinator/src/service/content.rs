//! Checks of hand-ins, off the driver's thread: rows are of the tasks that they are handed in for, and uploads are sound.

use std::collections::BTreeSet;
use std::sync::Arc;

use powersweep_experiments::Decoder;
use powersweep_proto::v1;
use powersweep_results::{tasks, wire};
use uuid::Uuid;

use super::requests::Requests;
use crate::farm::{Content, HAND_IN_ROWS_MAX};

/// Hand-ins of more rows are checked on a thread that may block.
const ROWS_AT_ONCE: usize = 64;
/// Batches that decode to more bytes are checked one at a time.
const LARGE_BYTES: u64 = 4 << 20;

/// Checks the hand-ins of one worker, and remembers the sweep of the last one.
pub(super) struct Checker {
    requests: Requests,
    /// The name in the Hello of the session.
    worker: Option<Arc<str>>,
    known: Option<Known>,
}

struct Known {
    experiment: String,
    generation: u64,
    decoder: Decoder,
}

impl Checker {
    pub(super) fn new(requests: Requests) -> Checker {
        Checker { requests, worker: None, known: None }
    }

    /// Notes the name of the session's worker. The farm refuses a second Hello.
    pub(super) fn greeted(&mut self, hello: &v1::Hello) {
        self.worker.get_or_insert_with(|| hello.worker.as_str().into());
    }

    /// What is known of a hand-in's content before the farm gets it.
    pub(super) async fn content(&mut self, hand_in: &v1::HandIn) -> Content {
        let named: usize = hand_in.done.iter().map(|tasks| tasks.indices.len()).sum();
        if named > HAND_IN_ROWS_MAX as usize {
            // The farm refuses it, whatever its rows are.
            return Content::of_rows(0);
        }
        let known = match self.known(hand_in).await {
            Ok(known) => known,
            Err(reason) => return Content::refused(reason),
        };
        let (checked, known) = if named <= ROWS_AT_ONCE && !is_large(hand_in) {
            with(hand_in, self.worker.as_deref(), known)
        } else {
            let limits = self.requests.limits.clone();
            let _turn = if is_large(hand_in) { limits.decoding.acquire().await.ok() } else { None };
            let (owned, worker) = (hand_in.clone(), self.worker.clone());
            let panicked = |_| (Err("checking its rows failed: this is a bug".to_owned()), None);
            tokio::task::spawn_blocking(move || with(&owned, worker.as_deref(), known)).await.unwrap_or_else(panicked)
        };
        self.known = known;
        match checked {
            Ok(Sound { rows, bytes, ids }) => {
                Content { rows: Ok(rows), bytes, uploads: self.requests.uploads.named(hand_in, &ids) }
            }
            Err(reason) => {
                tracing::warn!("a hand-in is refused: {reason:?}");
                Content::refused(reason)
            }
        }
    }

    /// The decoder of the hand-in's sweep; `None` if the farm does not know the sweep and will refuse the hand-in.
    async fn known(&mut self, hand_in: &v1::HandIn) -> Result<Option<Known>, String> {
        let (experiment, generation) = (&hand_in.experiment, hand_in.generation);
        if let Some(known) = self.known.take_if(|k| k.experiment == *experiment && k.generation == generation) {
            return Ok(Some(known));
        }
        let sweep = self.requests.sweep(experiment, generation).await.map_err(|status| status.message().to_owned())?;
        let known = |sweep| Known { experiment: experiment.clone(), generation, decoder: Decoder::new(sweep) };
        Ok(sweep.map(known))
    }
}

fn is_large(hand_in: &v1::HandIn) -> bool {
    wire::decoded_bytes(&hand_in.rows).is_none_or(|bytes| bytes > LARGE_BYTES)
}

/// Rows that are those of the named tasks.
struct Sound {
    rows: u32,
    /// Upper bound of their memory, decoded.
    bytes: u64,
    /// The ids of their tasks, if the hand-in names uploads.
    ids: BTreeSet<Uuid>,
}

/// The rows, or why they are refused.
type Checked = Result<Sound, String>;

fn with(hand_in: &v1::HandIn, worker: Option<&str>, mut known: Option<Known>) -> (Checked, Option<Known>) {
    let checked = check(hand_in, worker, known.as_mut().map(|known| &mut known.decoder));
    (checked, known)
}

/// Compares the task of each row with the task of its index, and its worker with that of the session.
fn check(hand_in: &v1::HandIn, worker: Option<&str>, mut decoder: Option<&mut Decoder>) -> Checked {
    let wire::Keys { rows: keys, bytes } = wire::keys(&hand_in.rows, &tasks::schema(), &hand_in.experiment, worker)
        .map_err(|error| format!("its rows cannot be read: {error}"))?;
    let rows = u32::try_from(keys.len()).unwrap_or(u32::MAX);
    let indices: Vec<u64> = hand_in.done.iter().flat_map(|tasks| tasks.indices.iter().copied()).collect();
    let decoder = decoder.as_mut().filter(|_| indices.len() == keys.len());
    if let Some(decoder) = decoder {
        for (key, &index) in keys.iter().zip(&indices) {
            // The farm refuses an index that is no task.
            let Some(task) = decoder.task(index) else { continue };
            if key.task_id != task.task_id || key.index != Some(index) {
                let (id, found) = (task.task_id, key.task_id);
                let row = key.index.map_or_else(|| "no index".to_owned(), |row| row.to_string());
                return Err(format!("its row of task {index} ({id}) is that of task {row} ({found})"));
            }
        }
    }
    // Only uploads are compared with the ids.
    let ids = if hand_in.uploads.is_empty() { &[] } else { &keys[..] };
    Ok(Sound { rows, bytes, ids: ids.iter().map(|key| key.task_id).collect() })
}
