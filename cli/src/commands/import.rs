//! `powersweep import`: a job log of a real system as a log in the Standard Workload Format, with a ledger.

use std::io::Read;
use std::path::Path;

use chrono::DateTime;
use powersweep::inputs::ledgers as documents;
use powersweep_dataset::writing::{refuse_equal, refuse_input, write_whole};
use powersweep_engine::workload::swf::Record;
use powersweep_experiments::signals::Word as _;
use powersweep_experiments::{Digest, FileRef};
use powersweep_inputs::joblogs::{Detail, JobLog};
use serde_json::{Value as Json, json};

use crate::args::ImportArgs;
use crate::exit::{Failure, Outcome, failure};
use crate::{inputs, ledgers, screen};

/// The name that stands for standard input.
const STANDARD_INPUT: &str = "-";

/// Reads a job log, writes what is asked for, and shows the ledger.
pub fn run(args: &ImportArgs) -> Outcome {
    for output in [&args.output, &args.details].into_iter().flatten() {
        refuse_input(output, &[&args.log])?;
    }
    refuse_equal(&[&args.output, &args.details])?;
    let (name, bytes) = text(args)?;
    let log = inputs::job_log(&bytes, &name, &args.reading)?;
    let digest = Digest::of(&bytes).to_string();
    if let Some(output) = &args.output {
        write_whole(Some(output), log.swf(&digest).as_bytes())?;
    }
    if let Some(details) = &args.details {
        write_whole(Some(details), details_csv(&log)?.as_bytes())?;
    }
    match args.shown.is_json() {
        true => screen::print_json(to_json(&log, &digest, args.output.as_deref())),
        false => screen::print(&to_text(&log, args.output.as_deref())),
    }
}

/// The name of the file for messages, and its text.
fn text(args: &ImportArgs) -> Result<(String, Vec<u8>), Failure> {
    if args.log == STANDARD_INPUT {
        let mut bytes = Vec::new();
        let read = std::io::stdin().lock().read_to_end(&mut bytes);
        read.map_err(|error| failure!(Workload, "cannot read the job log on standard input: {error}"))?;
        return Ok(("standard input".to_owned(), bytes));
    }
    let loaded = inputs::file(&inputs::library(&args.logs), &FileRef::plain(&args.log, args.sha256))?;
    Ok((args.log.clone(), loaded.bytes))
}

fn to_json(log: &JobLog, digest: &str, output: Option<&Path>) -> Json {
    let mut shown = documents::of_file(&log.file, &log.ledger);
    shown["sha256"] = json!(digest);
    shown["settings"] = json!(log.settings.describe());
    shown["unix_start_s"] = json!(log.facts.unix_start_s);
    shown["peak_procs"] = json!(log.facts.peak_procs);
    shown["widest_procs"] = json!(log.facts.widest_procs);
    shown["output"] = json!(output.map(|path| path.display().to_string()));
    shown
}

fn to_text(log: &JobLog, output: Option<&Path>) -> String {
    let written = output.map_or_else(
        || "no file is written without --output".to_owned(),
        |path| format!("written to {}", path.display()),
    );
    let since = log.facts.unix_start_s.and_then(|start_s| DateTime::from_timestamp(start_s, 0));
    let since = since.map_or_else(String::new, |since| format!(" from {} on", since.format("%Y-%m-%d %H:%M UTC")));
    let procs = |count: u64| screen::count(count, log.settings.procs.word().trim_end_matches('s'));
    let size = match log.facts.peak_procs {
        Some(peak) => format!("at most {} at once", procs(peak)),
        None => format!("no start is known and the widest job has {}", procs(log.facts.widest_procs)),
    };
    format!(
        "{}\n{}{since}, {size}; {written}",
        ledgers::text(&documents::of_file(&log.file, &log.ledger)),
        screen::count(log.ledger.kept, "job"),
    )
}

/// The values of jobs that the log has no fields for.
fn details_csv(log: &JobLog) -> Result<String, Failure> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let names = ["job_id", "id", "line", "user", "group", "queue", "nodes", "cpus", "gpus", "energy_j", "power_w"];
    let name = |names: &[String], number: i32| {
        usize::try_from(number - 1).ok().and_then(|at| names.get(at).cloned()).unwrap_or_default()
    };
    let row = |record: &Record, detail: &Detail| {
        let count = |count: Option<u32>| count.map_or_else(String::new, |count| count.to_string());
        [
            record.id.to_string(),
            detail.id.clone(),
            record.line.to_string(),
            name(&log.users, record.user),
            name(&log.groups, record.group),
            name(&log.queues, record.queue),
            count(detail.nodes),
            count(detail.cpus),
            count(detail.gpus),
            detail.energy_j.map_or_else(String::new, |energy_j| energy_j.to_string()),
            detail.power_w.map_or_else(String::new, |power_w| power_w.to_string()),
        ]
    };
    let rows = log.records.iter().zip(&log.details).map(|(record, detail)| row(record, detail));
    let written =
        writer.write_record(names).and_then(|()| rows.into_iter().try_for_each(|row| writer.write_record(row)));
    written.map_err(|error| failure!(Failure, "cannot write the details: {error}"))?;
    let bytes = writer.into_inner().map_err(|error| failure!(Failure, "cannot write the details: {error}"))?;
    String::from_utf8(bytes).map_err(|error| failure!(Failure, "cannot write the details: {error}"))
}
