//! `powersweep simulate`: one task, from options or from a manifest, in this process. Nothing is stored.

use std::path::Path;

use arrow::array::RecordBatch;
use powersweep::simulate::{SimulateOptions, Simulated};
use powersweep_dataset::Cell;
use powersweep_dataset::cell::row_json;
use powersweep_dataset::writing::{Encoding, Writing, refuse_equal, refuse_existing};
use powersweep_experiments::TaskSpec;
use serde_json::Value as Json;

use crate::args::SimulateArgs;
use crate::commands::worker;
use crate::exit::{Failure, Outcome, failure};
use crate::{inputs, screen};

/// Simulates the task and prints its row.
pub fn run(args: &SimulateArgs) -> Outcome {
    if let Some(folder) = &args.batsim {
        refuse_existing(folder)?;
    }
    refuse_equal(&[&args.jobs, &args.series, &args.accounts])?;
    let found = simulated(args)?;
    found.findings().iter().for_each(|finding| screen::note(&finding.text()));
    if args.accounts.is_some() && found.accounts.is_none() {
        return Err(failure!(Usage, "--accounts: the manifest has no [signals]"));
    }
    for (option, path, rows) in [
        ("--jobs", &args.jobs, &found.jobs),
        ("--series", &args.series, &found.series),
        ("--accounts", &args.accounts, &found.accounts),
    ] {
        if let Some((path, rows)) = path.as_deref().zip(rows.as_ref()) {
            write(option, path, found.task(), rows)?;
        }
    }
    if let Some(folder) = &args.batsim {
        found.write_schedule(folder)?;
    }
    match args.output.is_json() {
        // A row has the columns of its table, as in `results`.
        true => screen::print_whole(&screen::indented(&Json::Object(
            row_json(&found.row, 0).map(|(name, value)| (name.to_owned(), value)).collect(),
        ))),
        false => screen::print(&row_text(&found.row, args.all)),
    }
}

/// Simulates the task, with rows of optional tables if they are asked for.
fn simulated(args: &SimulateArgs) -> Result<Simulated, Failure> {
    let manifest = args.manifest.as_deref().map(inputs::manifest).transpose()?;
    let pair = |setting: &String| {
        let pair = setting
            .split_once('=')
            .ok_or_else(|| failure!(Usage, "--set {setting}: a setting is KEY=VALUE, such as queue_order=sjf"))?;
        Ok((pair.0.trim().to_owned(), pair.1.trim().to_owned()))
    };
    let options = SimulateOptions {
        task: manifest.as_ref().zip(args.index),
        library: &inputs::library_of(args.manifest.as_deref().unwrap_or_default(), &args.logs),
        logs: &inputs::library(&args.logs),
        log: args.log.clone(),
        set: args.set.iter().map(pair).collect::<Result<_, Failure>>()?,
        seed: args.seed,
        limits: worker::limits(&args.limits),
        policy: None,
        jobs: args.jobs.is_some(),
        series: args.series.is_some(),
        notes: screen::notes(),
    };
    options.simulated(&|| false)
}

/// The columns that are shown unless all are asked for: the first ten of these that have a value.
const USUAL: [&str; 14] = [
    "jobs_count",
    "measured_jobs_count",
    "makespan_s",
    "wait_s_mean",
    "wait_s_p95",
    "turnaround_s_mean",
    "bsld_mean",
    "utilization_installed",
    "reduced_count",
    "energy_total_j",
    "energy_per_job_j",
    "power_mean_w",
    "power_peak_w",
    "throughput_jobs_per_h",
];
const USUAL_COUNT: usize = 10;

/// One line for each column that has a value: of the usual ones, or of all.
fn row_text(batch: &RecordBatch, all: bool) -> String {
    let mut table = screen::table();
    let schema = batch.schema_ref();
    let valid = schema.fields().iter().zip(batch.columns()).filter(|(_, column)| column.is_valid(0));
    let valid: Vec<(&str, String)> =
        valid.map(|(field, column)| (field.name().as_str(), Cell::of(column, 0).shown())).collect();
    let usual = USUAL.iter().filter_map(|name| valid.iter().find(|(known, _)| known == name)).take(USUAL_COUNT);
    let shown: Vec<&(&str, String)> = if all { valid.iter().collect() } else { usual.collect() };
    let more = valid.len() - shown.len();
    for (name, value) in shown {
        table.add_row([*name, value]);
    }
    match more {
        0 => table.to_string(),
        more => {
            format!("{table}\n… and {more} more columns: --all shows them, `powersweep columns tasks` explains them")
        }
    }
}

/// Writes the rows of an optional table.
fn write(option: &str, path: &Path, task: &TaskSpec, batch: &RecordBatch) -> Result<(), Failure> {
    let encoding = match path.extension().and_then(|e| e.to_str()) {
        Some("csv") => Encoding::Csv,
        Some("parquet") => Encoding::Parquet,
        _ => {
            return Err(failure!(Usage, "{option} {}: the name must end in .parquet or .csv", path.display()));
        }
    };
    let mut out = Writing::begin(Some(path), encoding, batch.schema_ref(), &task.experiment)?;
    out.write(batch)?;
    out.finish()
}
