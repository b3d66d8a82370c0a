//! `powersweep worker`: runs tasks for a coordinator until a signal, a limit or the coordinator ends it.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use powersweep::allocation::Allocation;
use powersweep::block_on;
use powersweep::run::{kind_of, worker_name};
use powersweep_proto::access::{Role, Source};
use powersweep_worker::{TaskLimits, WorkerOptions, WorkerReport};

use crate::args::{TaskLimitArgs, WorkerArgs};
use crate::exit::{Exit, Failure, Kind, Outcome, failure};
use crate::{interrupt, program, screen};

/// A worker restarts only if more than this part of its time limit is left.
const RESTART_WORTH: Duration = Duration::from_secs(10);

/// Runs the worker to its end.
pub fn run(args: &WorkerArgs) -> Outcome {
    let address = args.coordinator.place(&args.data)?.address(Role::Worker)?;
    let piped_access = if let Source::Given(access) = &address.access { Some(access.text()) } else { None };
    let name = args.name.clone().unwrap_or_else(worker_name);
    let mut options = WorkerOptions::new(address, args.slots.count(), name);
    options.search_path = args.logs.traces.clone();
    options.cache_dir = args.logs.cache.clone();
    options.cache_bytes_max = args.logs.cache_size;
    options.limits = limits(&args.limits);
    options.memory_bytes = args.slots.workload_memory;
    options.drain_limit = args.drain_limit;
    let allocation = Allocation::of_this_process();
    let given = args.time_limit.map(|limit| limit.saturating_sub(args.time_used.unwrap_or_default()));
    options.time_limit = given.or_else(|| allocation.time_limit(&options.name));
    options.allocation = allocation.name;
    let time_limit = options.time_limit;
    options.idle_limit = args.idle_limit;
    options.connect_limit = args.connect_limit;
    let started = Instant::now();
    let (report, stopped) = block_on(async {
        let stop = interrupt::token();
        let report = powersweep_worker::run(options, stop.clone()).await;
        Ok((report, stop.is_cancelled()))
    })?;
    let used = args.time_used.unwrap_or_default() + started.elapsed();
    let time_is_up = time_limit.is_some_and(|limit| started.elapsed() + args.drain_limit + RESTART_WORTH >= limit);
    if report.as_ref().is_ok_and(|report| report.stuck_tasks > 0) && !stopped && !time_is_up {
        return Err(restart(used, piped_access.as_deref()));
    }
    match report {
        Ok(report) => {
            ended(&report).map(|done| if stopped && args.fail_on_signal { Exit::Of(Kind::Interrupted) } else { done })
        }
        Err(error) => Err(Failure::new(kind_of(&error), error.to_string())),
    }
}

fn ended(report: &WorkerReport) -> Outcome {
    screen::print(&format!(
        "worker ended ({}): {} done, {}{}, engine {}, parse {}, store {}, idle {}",
        report.reason,
        screen::count(report.tasks_acknowledged, "task"),
        screen::count(report.failures, "failed attempt"),
        match report.unacknowledged {
            0 => String::new(),
            n => format!(", {} not acknowledged (their tasks run again)", screen::count(n as u64, "hand-in")),
        },
        screen::duration(report.spent.engine_s),
        screen::duration(report.spent.parse_s),
        screen::duration(report.spent.store_s),
        screen::duration(report.spent.idle_s),
    ))
}

/// The limits of one task from the command line.
pub fn limits(args: &TaskLimitArgs) -> TaskLimits {
    let TaskLimitArgs { task_deadline, task_max_events, task_max_memory } = *args;
    TaskLimits { deadline: task_deadline, max_events: task_max_events, max_bytes: task_max_memory }
}

/// Replaces this process by the same command: no other way ends a thread whose task does not return. Returns only if
/// that fails. `given` is the access that this process read from standard input.
fn restart(used: Duration, given: Option<&str>) -> Failure {
    screen::note("powersweep: a task ignores its deadline: this worker restarts");
    let mut command = match program::path() {
        Ok(program) => Command::new(program),
        Err(error) => {
            return failure!(Failure, "cannot restart this worker, whose program is not found: {error}");
        }
    };
    command.args(program::arguments());
    command.env("POWERSWEEP_TIME_USED", format!("{}s", used.as_secs()));
    if let Some(access) = given {
        match piped(access) {
            Ok(input) => drop(command.stdin(input)),
            Err(error) => return failure!(Failure, "cannot restart this worker: {error}; start it again"),
        }
    }
    let error = command.exec();
    failure!(Failure, "cannot restart this worker: {error}; start it again")
}

/// A pipe with this text, which is shorter than the kernel's buffer.
fn piped(text: &str) -> std::io::Result<Stdio> {
    let (reader, mut writer) = std::io::pipe()?;
    writer.write_all(text.as_bytes())?;
    Ok(reader.into())
}
