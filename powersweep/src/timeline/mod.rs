//! When each task ran, as a trace for ui.perfetto.dev and chrome://tracing.
//!
//! The rows are read twice: first the times, from which each task gets a slot of its worker, then the columns that are
//! written. So the memory is some bytes for each task, and the trace is written row by row.

use std::collections::BTreeMap;

use arrow::array::{Array, AsArray, RecordBatch};
use powersweep_dataset::activity::times;
use powersweep_dataset::cell::row_json;
use powersweep_dataset::lanes::{Lanes, Span};
use powersweep_dataset::reading::Reading;
use powersweep_dataset::scan::{self, LABELS, Tasks};
use powersweep_dataset::writing::Output;
use powersweep_dataset::{Error, Kind, OrKind, failure};
use powersweep_results::Table;
use serde::Serialize;
use serde_json::{Map, Value as Json, json};

use crate::place::Place;
use crate::results::no_rows;

/// The columns that place a task on the timeline.
const PLACE: [&str; 3] = ["worker", "started_at", "wall_ms"];

/// The columns that every task shows beside its labels and parameters.
const SHOWN: [&str; 5] = ["task_index", "task_id", "attempt", "engine_ms", "parse_ms"];

/// One entry of the trace-event format.
#[derive(Serialize)]
struct Event<'a> {
    name: &'a str,
    ph: &'static str,
    pid: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    tid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ts: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<i64>,
    args: Map<String, Json>,
}

/// What a timeline has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeline {
    /// Number of tasks.
    pub tasks: usize,
    /// Number of workers.
    pub workers: usize,
}

impl Place {
    /// Writes when each task of an experiment ran, as trace events in JSON.
    ///
    /// # Errors
    /// The experiment is unknown or has no rows, or the output cannot be written.
    pub async fn timeline(&self, experiment: &str, out: &mut Output) -> Result<Timeline, Error> {
        let reading = self.datasets().await?.read(experiment, Table::Tasks).await?;
        let (workers, lanes) = lanes(&reading).await?;
        if lanes.is_empty() {
            return Err(failure!(Usage, "{}", no_rows(experiment)));
        }
        let schema = scan::columns(columns(&reading).await?.iter().map(String::as_str));
        let mut trace = Trace { out, workers: &workers, lanes: &lanes, is_empty: true, row: 0 };
        trace.begin(experiment)?;
        reading.each(&schema, |batch| trace.tasks(&batch)).await?;
        let tasks = trace.row;
        out.write(b"\n]}\n")?;
        Ok(Timeline { tasks, workers: workers.len() })
    }
}

/// The numbers of workers by name, and the slots of all tasks in the order of their rows.
async fn lanes(reading: &Reading) -> Result<(BTreeMap<String, u32>, Lanes), Error> {
    let mut workers = BTreeMap::new();
    let mut spans = Vec::new();
    reading
        .each(&scan::columns(PLACE), |batch| {
            for row in 0..batch.num_rows() {
                let next = u32::try_from(workers.len()).unwrap_or(u32::MAX);
                let worker = *workers.entry(worker_of(&batch, row)).or_insert(next);
                let (start_us, end_us) = times(&batch, row);
                spans.push(Span { worker, start_us, end_us });
            }
            Ok(true)
        })
        .await?;
    Ok((workers, Lanes::of(&spans)))
}

fn worker_of(batch: &RecordBatch, row: usize) -> String {
    let found = batch.column_by_name("worker").filter(|column| column.is_valid(row));
    found.map_or_else(String::new, |column| column.as_string::<i32>().value(row).to_owned())
}

/// The columns of the trace: place and time, labels, facts, and the parameters that vary.
async fn columns(reading: &Reading) -> Result<Vec<String>, Error> {
    let candidates = scan::candidates();
    let tasks = Tasks::open(reading, &scan::columns(candidates.iter().map(String::as_str))).await?;
    let found = scan::search(&tasks.groups(), &candidates).await?;
    let is_label = |name: &str| LABELS.contains(&name);
    let vary = found.into_iter().filter(|column| column.varies() && !is_label(&column.name)).map(|column| column.name);
    let fixed = PLACE.iter().chain(&LABELS).chain(&SHOWN).map(|name| (*name).to_owned());
    Ok(fixed.chain(vary).collect())
}

/// A trace that is being written. Its times begin at the start of the first task.
struct Trace<'a> {
    out: &'a mut Output,
    workers: &'a BTreeMap<String, u32>,
    lanes: &'a Lanes,
    is_empty: bool,
    /// Number of the next row.
    row: usize,
}

impl Trace<'_> {
    /// Writes the names of workers and slots.
    fn begin(&mut self, experiment: &str) -> Result<(), Error> {
        let begun = chrono::DateTime::from_timestamp_micros(self.lanes.first_us()).map(|begun| begun.to_rfc3339());
        let about = json!({ "experiment": experiment, "begun": begun });
        self.out.write(format!("{{\"displayTimeUnit\":\"ms\",\"otherData\":{about},\"traceEvents\":[").as_bytes())?;
        for (name, &worker) in self.workers {
            self.named("process_name", worker, None, name)?;
            for slot in 0..self.lanes.slots(worker) {
                self.named("thread_name", worker, Some(slot + 1), &format!("slot {}", slot + 1))?;
            }
        }
        Ok(())
    }

    fn named(&mut self, kind: &str, worker: u32, tid: Option<u32>, name: &str) -> Result<bool, Error> {
        let args = Map::from_iter([("name".to_owned(), json!(name))]);
        self.event(&Event { name: kind, ph: "M", pid: pid(worker), tid, ts: None, dur: None, args })
    }

    /// Writes a batch of tasks. False if the reader of the trace is gone.
    fn tasks(&mut self, batch: &RecordBatch) -> Result<bool, Error> {
        for at in 0..batch.num_rows() {
            let worker = self.workers.get(&worker_of(batch, at)).copied().unwrap_or_default();
            let (start_us, end_us) = times(batch, at);
            let args: Map<String, Json> = shown(batch, at).collect();
            let event = Event {
                name: &name_of(&args),
                ph: "X",
                pid: pid(worker),
                tid: Some(self.lanes.slot(self.row) + 1),
                ts: Some(start_us - self.lanes.first_us()),
                dur: Some(end_us - start_us),
                args,
            };
            self.row += 1;
            if !self.event(&event)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn event(&mut self, event: &Event<'_>) -> Result<bool, Error> {
        let mut line = if std::mem::take(&mut self.is_empty) { "\n".to_owned() } else { ",\n".to_owned() };
        line.push_str(&serde_json::to_string(event).or_kind(Kind::Failure)?);
        self.out.write(line.as_bytes())
    }
}

/// Process ids of a trace begin at 1: Perfetto shows 0 as the kernel.
fn pid(worker: u32) -> usize {
    worker as usize + 1
}

/// The values of a task without the place on the timeline; null is left out.
fn shown(batch: &RecordBatch, row: usize) -> impl Iterator<Item = (String, Json)> {
    let values = row_json(batch, row).filter(|(name, value)| !PLACE.contains(name) && !value.is_null());
    values.map(|(name, value)| (name.to_owned(), value))
}

/// The name of a span, by which a viewer groups and colours: the labels of its task.
fn name_of(args: &Map<String, Json>) -> String {
    let labels = LABELS.iter().filter_map(|label| args.get(*label)?.as_str());
    labels.collect::<Vec<_>>().join(" ")
}
