//! `powersweep timeline`: when each task ran, as a trace for ui.perfetto.dev and chrome://tracing.
//!
//! The rows are read twice: first the times, from which each task gets a slot of its worker, then the columns that are
//! written. So the memory is some bytes for each task, and the trace is written row by row.

mod lanes;

use std::collections::BTreeMap;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{Float64Type, TimestampMicrosecondType};
use powersweep::block_on;
use powersweep_dataset::cell::row_json;
use powersweep_dataset::reading::Reading;
use powersweep_dataset::scan::{self, LABELS, Tasks};
use powersweep_dataset::writing::Output;
use powersweep_results::Table;
use serde::Serialize;
use serde_json::{Map, Value as Json, json};

use self::lanes::{Lanes, Span};
use crate::args::{TimelineArgs, TimelineFormat};
use crate::exit::{Exit, Failure, Outcome, failure};
use crate::screen;

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

/// Writes the timeline of an experiment.
pub fn run(args: &TimelineArgs) -> Outcome {
    let TimelineFormat::Perfetto = args.format;
    block_on(async {
        let datasets = args.from.place()?.datasets().await?;
        let reading = datasets.read(&args.experiment, Table::Tasks).await?;
        let (workers, lanes) = lanes(&reading).await?;
        if lanes.is_empty() {
            return Err(failure!(Usage, "{} has no rows yet", args.experiment));
        }
        let schema = scan::columns(columns(&reading).await?.iter().map(String::as_str));
        let mut trace = Trace::begin(args, &workers, &lanes)?;
        let mut row = 0;
        reading.each(&schema, |batch| trace.tasks(&batch, &workers, &lanes, &mut row)).await?;
        trace.end()?;
        if let Some(output) = &args.output {
            screen::note(&format!(
                "powersweep: {} of {} on {} in {}; open it in https://ui.perfetto.dev or chrome://tracing",
                screen::count(row as u64, "task"),
                args.experiment,
                screen::count(workers.len() as u64, "worker"),
                output.display()
            ));
        }
        Ok(Exit::Done)
    })
}

/// The numbers of workers by name, and the slots of all tasks in the order of their rows.
async fn lanes(reading: &Reading) -> Result<(BTreeMap<String, u32>, Lanes), Failure> {
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

/// Start and end of a task (µs since 1970 UTC). Both are rounded down, so that the next task of a slot is never earlier.
pub(super) fn times(batch: &RecordBatch, row: usize) -> (i64, i64) {
    let valid = |name: &str| batch.column_by_name(name).filter(|column| column.is_valid(row));
    let start_us = valid("started_at").map_or(0, |start| start.as_primitive::<TimestampMicrosecondType>().value(row));
    let wall_ms = valid("wall_ms").map_or(0.0, |wall| wall.as_primitive::<Float64Type>().value(row));
    // A float beyond the integers becomes the nearest one.
    (start_us, start_us.saturating_add((wall_ms.max(0.0) * 1000.0).floor() as i64))
}

/// The columns of the trace: place and time, labels, facts, and the parameters that vary.
async fn columns(reading: &Reading) -> Result<Vec<String>, Failure> {
    let candidates = scan::candidates();
    let tasks = Tasks::open(reading, &scan::columns(candidates.iter().map(String::as_str))).await?;
    let found = scan::search(&tasks.groups(), &candidates).await?;
    let is_label = |name: &str| LABELS.contains(&name);
    let vary = found.into_iter().filter(|column| column.varies() && !is_label(&column.name)).map(|column| column.name);
    let fixed = PLACE.iter().chain(&LABELS).chain(&SHOWN).map(|name| (*name).to_owned());
    Ok(fixed.chain(vary).collect())
}

/// A trace that is being written.
struct Trace {
    out: Output,
    /// Start of the first task, the origin of the trace's times (µs since 1970 UTC).
    origin_us: i64,
    is_empty: bool,
}

impl Trace {
    /// Writes the names of workers and slots.
    fn begin(args: &TimelineArgs, workers: &BTreeMap<String, u32>, lanes: &Lanes) -> Result<Trace, Failure> {
        let mut trace =
            Trace { out: Output::open(args.output.as_deref())?, origin_us: lanes.first_us(), is_empty: true };
        let begun = chrono::DateTime::from_timestamp_micros(trace.origin_us).map(|begun| begun.to_rfc3339());
        let about = json!({ "experiment": args.experiment, "begun": begun });
        trace.out.write(format!("{{\"displayTimeUnit\":\"ms\",\"otherData\":{about},\"traceEvents\":[").as_bytes())?;
        for (name, &worker) in workers {
            trace.named("process_name", worker, None, name)?;
            for slot in 0..lanes.slots(worker) {
                trace.named("thread_name", worker, Some(slot + 1), &format!("slot {}", slot + 1))?;
            }
        }
        Ok(trace)
    }

    fn named(&mut self, kind: &str, worker: u32, tid: Option<u32>, name: &str) -> Result<bool, Failure> {
        let args = Map::from_iter([("name".to_owned(), json!(name))]);
        self.event(&Event { name: kind, ph: "M", pid: pid(worker), tid, ts: None, dur: None, args })
    }

    /// Writes a batch of tasks. `row`: the number of its first row. False if the reader of the trace is gone.
    fn tasks(
        &mut self,
        batch: &RecordBatch,
        workers: &BTreeMap<String, u32>,
        lanes: &Lanes,
        row: &mut usize,
    ) -> Result<bool, Failure> {
        for at in 0..batch.num_rows() {
            let worker = workers.get(&worker_of(batch, at)).copied().unwrap_or_default();
            let (start_us, end_us) = times(batch, at);
            let args: Map<String, Json> = shown(batch, at).collect();
            let event = Event {
                name: &name_of(&args),
                ph: "X",
                pid: pid(worker),
                tid: Some(lanes.slot(*row) + 1),
                ts: Some(start_us - self.origin_us),
                dur: Some(end_us - start_us),
                args,
            };
            *row += 1;
            if !self.event(&event)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn event(&mut self, event: &Event<'_>) -> Result<bool, Failure> {
        let mut line = if std::mem::take(&mut self.is_empty) { "\n".to_owned() } else { ",\n".to_owned() };
        line.push_str(&serde_json::to_string(event).expect("texts and numbers become JSON"));
        self.out.write(line.as_bytes())
    }

    fn end(mut self) -> Result<(), Failure> {
        self.out.write(b"\n]}\n")?;
        self.out.finish()
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
