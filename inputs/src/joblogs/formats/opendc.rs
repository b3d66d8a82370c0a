//! Tasks of OpenDC: `tasks.parquet`, with the columns of its present and of earlier versions.
//!
//! Times are milliseconds. A task runs for its duration from its submission on; OpenDC has neither queues nor limits.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Int32Type, Int64Type, Schema, TimestampMillisecondType};
use powersweep_engine::workload::kinds::PARQUET;

use crate::error::{Place, Problem, shortened};
use crate::joblogs::clock::Time;
use crate::joblogs::entry::{COUNT_MAX, Entries, Entry, Size, job_number, memory_kib};
use crate::joblogs::formats::LIMITS;
use crate::joblogs::odd_rows::OddRows;
use crate::joblogs::settings::{Procs, Settings, TimeUnit};
use crate::joblogs::{Ledger, Rule};
use crate::table::clock::{SECOND_US, UNIX_S, civil, needless_zone};
use crate::table::parquet::{self, File, damaged, stored_type};
use crate::table::texts;

/// KiB of a megabyte, the unit of a task's memory.
const KIB_OF_MB: f64 = 1e6 / 1024.0;

/// The columns that are read, by the names of the versions of OpenDC.
const ID: &[&str] = &["id"];
const SUBMISSION: &[&str] = &["submission_time", "submissionTime"];
const DURATION: &[&str] = &["duration"];
const END: &[&str] = &["endTime"];
const CPUS: &[&str] = &["cpu_count", "maxCores"];
const GPUS: &[&str] = &["gpu_count"];
const MEMORY: &[&str] = &["mem_capacity", "requiredMemory"];
const PARENTS: &[&str] = &["parents"];

pub(super) fn read(bytes: &[u8], settings: &Settings, ledger: &mut Ledger) -> Result<Entries, Problem> {
    settings.refuse_columns("the columns are known")?;
    if settings.timezone.is_some() {
        return Err(needless_zone("numbers"));
    }
    if !bytes.starts_with(PARQUET) {
        return Err(Problem::Content("the file is not Parquet, which OpenDC's tasks are".to_owned()));
    }
    if settings.procs == Procs::Nodes {
        return Err(Problem::setting("procs", "the tasks have no nodes; they have cpus, and gpus in newer versions"));
    }
    parquet::guarded(|| tasks(bytes, settings, ledger))
}

/// The columns of a batch by name.
struct Columns<'a> {
    schema: &'a Schema,
    arrays: &'a [ArrayRef],
}

impl<'a> Columns<'a> {
    fn find(&self, names: &[&str]) -> Option<(&'a str, &'a ArrayRef)> {
        let fields = self.schema.fields().iter().zip(self.arrays);
        fields.map(|(field, array)| (field.name().as_str(), array)).find(|(name, _)| names.contains(name))
    }

    fn numbers(&self, names: &[&str]) -> Result<Option<Vec<Option<i64>>>, Problem> {
        let Some((name, array)) = self.find(names) else { return Ok(None) };
        let numbers = match array.data_type() {
            DataType::Int32 => array.as_primitive::<Int32Type>().iter().map(|value| value.map(i64::from)).collect(),
            DataType::Int64 => array.as_primitive::<Int64Type>().iter().collect(),
            DataType::Timestamp(arrow::datatypes::TimeUnit::Millisecond, _) => {
                array.as_primitive::<TimestampMillisecondType>().iter().collect()
            }
            other => {
                let other = stored_type(other);
                return Err(Problem::Content(format!(
                    "the column {name} has values of the type {other}, not whole numbers"
                )));
            }
        };
        Ok(Some(numbers))
    }
}

fn tasks(bytes: &[u8], settings: &Settings, ledger: &mut Ledger) -> Result<Entries, Problem> {
    let file = File::open(bytes, LIMITS)?;
    check(&file, settings)?;
    let (names, rows) = (file.names(), file.rows);
    let used = [ID, SUBMISSION, DURATION, END, CPUS, GPUS, MEMORY, PARENTS].concat();
    let (mut read, mut odd) = (Vec::new(), OddRows::default());
    for batch in file.read(|at| names.get(at).is_some_and(|name| used.contains(&name.as_str())))? {
        let batch = batch.map_err(damaged)?;
        let columns = Columns { schema: batch.schema_ref(), arrays: batch.columns() };
        rows_of(&columns, settings, ledger, |row, ledger| match row {
            Ok(entry) => {
                read.push(entry);
                Ok(())
            }
            Err(problem) => odd.drop_row(problem, ledger),
        })?;
    }
    if ledger.read != rows as u64 {
        return Err(damaged("it has another number of rows than it says"));
    }
    odd.finish(ledger)?;
    let is_calendar = read.iter().filter_map(|entry: &Entry| entry.submit).any(|time| is_calendar(time.us));
    Ok(Entries { list: read, is_calendar })
}

fn is_calendar(us: i64) -> bool {
    us >= UNIX_S.start * SECOND_US
}

/// Refuses other files of OpenDC, and tasks without a column that is needed.
fn check(file: &File, settings: &Settings) -> Result<(), Problem> {
    let columns = file.names();
    let has = |names: &[&str]| columns.iter().filter(|name| names.contains(&name.as_str())).count() == 1;
    if has(&["cpu_usage"]) || has(&["cpuUsage"]) {
        let reason = "the file has fragments of tasks, not tasks: import the file tasks.parquet beside it";
        return Err(Problem::Content(reason.to_owned()));
    }
    if has(&["failure_interval"]) {
        return Err(Problem::Content("the file has failures of machines, not tasks".to_owned()));
    }
    let size = if settings.procs == Procs::Gpus { GPUS } else { CPUS };
    let needed: [(&[&str], &'static str); 3] = [(ID, "id"), (SUBMISSION, "submission_time"), (size, size[0])];
    let lacking = needed.into_iter().find(|(names, _)| !has(names)).map(|(_, wanted)| wanted);
    let lacking = lacking.or((!has(DURATION) && !has(END)).then_some("duration"));
    lacking.map_or(Ok(()), |wanted| Err(Problem::no_column(wanted, "which OpenDC's tasks have", &columns)))
}

/// The rows of a batch, each for `add`.
fn rows_of(
    columns: &Columns<'_>,
    settings: &Settings,
    ledger: &mut Ledger,
    mut add: impl FnMut(Result<Entry, Problem>, &mut Ledger) -> Result<(), Problem>,
) -> Result<(), Problem> {
    let unit = settings.time_unit.unwrap_or(TimeUnit::Milliseconds);
    let (submissions, durations) = (columns.numbers(SUBMISSION)?, columns.numbers(DURATION)?);
    let (ends, cpus, gpus) = (columns.numbers(END)?, columns.numbers(CPUS)?, columns.numbers(GPUS)?);
    let memories = columns.numbers(MEMORY)?;
    let ids = columns.find(ID).map(|(name, array)| texts(array, name)).transpose()?.unwrap_or_default();
    let parents = columns.find(PARENTS).and_then(|(_, array)| array.as_list_opt::<i32>());
    for (at, id) in ids.into_iter().enumerate() {
        ledger.read += 1;
        let row = ledger.read;
        let of = |numbers: &Option<Vec<Option<i64>>>| {
            numbers.as_ref().and_then(|numbers| numbers.get(at).copied().flatten())
        };
        let wrong =
            |what: &str, number: i64| Problem::At { place: Place::Row(row), reason: format!("{number} is no {what}") };
        let time = |what: &str, number: Option<i64>| {
            let us = |number: i64| unit.us(number as f64).filter(|us| (0..=UNIX_S.end * SECOND_US).contains(us));
            number.map(|number| us(number).ok_or_else(|| wrong(what, number))).transpose()
        };
        let count = |what: &str, number: Option<i64>| {
            let count = |number: i64| u32::try_from(number).ok().filter(|count| *count <= COUNT_MAX);
            number.map(|number| count(number).ok_or_else(|| wrong(what, number))).transpose()
        };
        let memory = |number: i64| {
            memory_kib(number as f64 * KIB_OF_MB).ok_or_else(|| wrong("memory of a task in megabytes", number))
        };
        let entry = || {
            let submit = time("time of submission", of(&submissions))?;
            check_calendar(row, submit, settings)?;
            let end = time("end", of(&ends))?;
            let mut changes = Vec::new();
            if parents.is_some_and(|parents| parents.is_valid(at) && parents.value_length(at) > 0) {
                changes.push(Rule::DependenciesIgnored);
            }
            Ok(Entry {
                line: row,
                number: job_number(&id),
                id: shortened(&id),
                submit: submit.map(Time::only),
                // Versions with an end state no start; a task starts when it is submitted.
                start: end.and(submit).map(Time::only),
                end: end.map(Time::only),
                elapsed_us: time("duration", of(&durations))?,
                allocated: Size {
                    cpus: count("number of CPUs", of(&cpus))?,
                    nodes: None,
                    gpus: count("number of GPUs", of(&gpus))?,
                },
                memory_kib: of(&memories).map(memory).transpose()?.flatten(),
                changes,
                ..Entry::default()
            })
        };
        add(entry(), ledger)?;
    }
    Ok(())
}

/// Refuses times before 2001 unless their unit is stated: they are seconds that were read as milliseconds, or count from 0.
fn check_calendar(row: u64, submit_us: Option<i64>, settings: &Settings) -> Result<(), Problem> {
    let Some(us) = submit_us.filter(|us| !is_calendar(*us) && settings.time_unit.is_none()) else { return Ok(()) };
    let date = civil(us).map_or_else(String::new, |time| format!(" is {}", time.date()));
    let reason = format!(
        "the time of submission in row {row}{date} in milliseconds: set it to \"s\" if times are seconds, or to \"ms\" if they count \
         from 0"
    );
    Err(Problem::setting("time_unit", reason))
}
