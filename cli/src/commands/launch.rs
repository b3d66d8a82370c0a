//! `powersweep launch`: workers in allocations of a batch system.

use std::path::Path;
use std::time::Duration;

use powersweep::launcher::batch::{BatchError, BatchSystem, commands};
use powersweep::launcher::slurm;
use powersweep::launcher::{self, End, Folder, Launcher, Plan, State};
use powersweep::{block_on, user};
use powersweep_dataset::partial::Partial;
use powersweep_experiments::settings::quoted;
use powersweep_launch::{Facts, Phase, System, WorkerJob};
use powersweep_proto::access::Role;
use serde_json::{Value as Json, json};

use crate::args::{LaunchLogArgs, LaunchStatusArgs, LaunchStopArgs, LaunchWorkersArgs};
use crate::exit::{Exit, Failure, Kind, Outcome, failure};
use crate::{interrupt, launch_plan, screen};

/// Longest time that `launch stop` waits for the launcher.
const STOP_PATIENCE: Duration = Duration::from_secs(90);
/// Longest time that `launch --check` waits for its job.
const CHECK_PATIENCE: Duration = Duration::from_secs(1_800);
/// Interval of looks for a file of another process.
const LOOK: Duration = Duration::from_millis(500);

/// Places workers in jobs of a batch system.
pub fn workers(system: System, args: &LaunchWorkersArgs) -> Outcome {
    let folder = args.folder.folder()?;
    let batch = commands(system);
    block_on(async {
        let facts = batch.facts().await.map_err(|error| unusable(system, error))?;
        let plan = launch_plan::plan(system, args, &folder, &facts)?;
        match args {
            _ if args.dry_run => dry_run(batch, args, &plan, &folder).await,
            _ if args.check => check(batch, args, plan, &folder).await,
            _ if args.coordinator => coordinator(args, &plan, &folder).await,
            _ => run(batch, args, plan, folder, &facts).await,
        }
    })
}

/// A command of a batch system that failed before anything was submitted.
fn unusable(system: System, error: BatchError) -> Failure {
    let hint = match error {
        BatchError::Start(..) => format!("\nrun this command on a login node of a cluster with {}", system.name()),
        _ => String::new(),
    };
    let exit = if matches!(error, BatchError::Refused(..)) { Kind::Refused } else { Kind::Failure };
    Failure::new(exit, format!("{error}{hint}"))
}

async fn run(
    batch: &dyn BatchSystem,
    args: &LaunchWorkersArgs,
    mut plan: Plan,
    folder: Folder,
    facts: &Facts,
) -> Outcome {
    let _lock = folder.lock()?;
    plan.room.submitted = batch.submit_limit(&user::name(), &plan.job.request.site).await;
    let on = cluster(plan.system, facts);
    let address = args.place()?.address(Role::Client)?;
    let launcher = Launcher::new(plan, folder.clone(), address, screen::notes())?;
    screen::note(&format!("powersweep: launching workers on {on}, state and logs in {}", folder.path().display()));
    let stop = interrupt::token();
    let (end, state) = launcher.run(&stop).await;
    screen::print(&summary(&state))?;
    Ok(if end == End::Interrupted { Exit::Of(Kind::Interrupted) } else { Exit::Done })
}

fn cluster(system: System, facts: &Facts) -> String {
    let system = system.name();
    let name = facts.cluster.as_deref().unwrap_or("this cluster");
    facts.version.as_ref().map_or_else(|| name.to_owned(), |version| format!("{name} ({system} {version})"))
}

fn summary(state: &State) -> String {
    let counts = &state.fleet.counts;
    format!(
        "{} in {}, {} refused, {} of the queue ({} without a usable answer), {} of slots, {} of them idle",
        screen::count(counts.allocations, "allocation"),
        screen::count(counts.submissions, "submission"),
        counts.refusals,
        screen::count(counts.queries, "query"),
        counts.unanswered,
        screen::duration(counts.slot_s),
        screen::duration(counts.idle_slot_s),
    )
}

// ---- before anything is submitted

async fn dry_run(batch: &dyn BatchSystem, args: &LaunchWorkersArgs, plan: &Plan, folder: &Folder) -> Outcome {
    let text = match args.coordinator {
        true => launch_plan::coordinator(plan, args).script(&folder.file("coordinator.sh").display().to_string()),
        false => batch.script(&plan.job, None),
    };
    screen::print_exact(text.trim_end())?;
    let scratch = Partial::scratch().map_err(|error| failure!(Storage, "cannot make a temporary folder: {error}"))?;
    let script = scratch.path().join("job.sh");
    std::fs::write(&script, &text).map_err(|error| failure!(Storage, "cannot write {}: {error}", script.display()))?;
    let (system, tested) = (plan.system.name(), batch.test(&script.display().to_string()).await);
    let tested = match tested.map_err(|error| failure!(Refused, "{system} would refuse this job: {error}"))? {
        true => format!("{system} would accept this job"),
        false => format!("{system} tests no jobs: only a submission shows whether it accepts this one"),
    };
    let whole = plan.job.request.time.as_secs_f64();
    screen::note(&format!(
        "powersweep: {tested}; nothing was submitted\n\
         usable for tasks: {} of the {} of an allocation",
        screen::duration(plan.room.usable_s),
        screen::duration(whole)
    ));
    Ok(Exit::Done)
}

/// Runs `doctor` in a job, and shows its report.
async fn check(batch: &dyn BatchSystem, args: &LaunchWorkersArgs, plan: Plan, folder: &Folder) -> Outcome {
    let _lock = folder.lock()?;
    let mut request = plan.job.request;
    request.name += "-check";
    request.time = Duration::from_secs(60);
    let file = launch_plan::worker_access(args)?;
    let (out, code) = (folder.file("check.txt"), folder.file("check.code"));
    for file in [&out, &code] {
        let _ = std::fs::remove_file(file);
    }
    let job =
        WorkerJob { request: request.clone(), nodes: 1, cpus: 1, drain_limit: Duration::ZERO, arguments: Vec::new() };
    let insecure = if args.insecure { " --insecure" } else { "" };
    let doctor = format!(
        "{} doctor --access {}{insecure} >{} 2>&1\necho $? >{}\n",
        quoted(&request.program),
        quoted(&file),
        quoted(&out.display().to_string()),
        quoted(&code.display().to_string())
    );
    let script = folder.write_script("check.sh", &batch.script(&job, Some(&doctor)))?;
    let number = batch.submit(&script.display().to_string(), 1, &[]).await;
    let number = number.map_err(|error| failure!(Refused, "{error}"))?;
    screen::note(&format!(
        "powersweep: job {number} checks the way from a node to the coordinator; it may wait in the queue"
    ));
    let stop = interrupt::token();
    let status = wait_for(&code, CHECK_PATIENCE, &stop).await;
    let Some(status) = status else {
        // A job that stays in the queue changes nothing.
        let _ = batch.cancel_job(&number).await;
        return if stop.is_cancelled() {
            Err(failure!(Interrupted, "interrupted: job {number} was cancelled"))
        } else {
            let seconds = CHECK_PATIENCE.as_secs();
            Err(failure!(Network, "job {number} did not run within {seconds} s, and was cancelled"))
        };
    };
    screen::print_whole(std::fs::read_to_string(&out).unwrap_or_default().trim_end())?;
    match status.trim() {
        "0" => Ok(Exit::Done),
        other => Err(failure!(Network, "`powersweep doctor` on a node ended with code {other}; its report is above")),
    }
}

/// The text of a file once it has some; `None` after `limit` or an interrupt.
async fn wait_for(file: &Path, limit: Duration, stop: &tokio_util::sync::CancellationToken) -> Option<String> {
    let begun = std::time::Instant::now();
    while begun.elapsed() < limit && !stop.is_cancelled() {
        if let Ok(text) = std::fs::read_to_string(file)
            && text.ends_with('\n')
        {
            return Some(text);
        }
        tokio::time::sleep(LOOK).await;
    }
    None
}

/// Submits the job of a coordinator.
async fn coordinator(args: &LaunchWorkersArgs, plan: &Plan, folder: &Folder) -> Outcome {
    drop(folder.lock()?);
    let file = folder.file("coordinator.sh");
    let text = launch_plan::coordinator(plan, args).script(&file.display().to_string());
    folder.write_script("coordinator.sh", &text)?;
    let job = slurm::submit(&[&file.display().to_string()]).await.map_err(|error| failure!(Refused, "{error}"))?;
    let data = &args.folder.data.data;
    screen::print(&format!(
        "job {job} is the first coordinator of {data}; `powersweep status --data {data}` and `submit` reach it once it runs"
    ))
}

// ---- afterwards

/// The error of a folder that has no state.
fn unused(folder: &Folder) -> Failure {
    let path = folder.path().display();
    failure!(Usage, "no launcher has used {path}: give --data or --folder of the one that you mean")
}

/// Shows the allocations.
pub fn status(args: &LaunchStatusArgs) -> Outcome {
    let folder = args.folder.folder()?;
    let (state, unknown) = block_on(launcher::present(&folder))?.ok_or_else(|| unused(&folder))?;
    if args.output.is_json() {
        return screen::print_json(to_json(&state));
    }
    let mut table = screen::table();
    table.set_header(["allocation", "state", "nodes", "submitted", "worker", "why it waits"]);
    for (name, allocation) in &state.fleet.allocations {
        let worker = if allocation.connected { "connected" } else { "" };
        let waits = if allocation.phase == Phase::Queued { allocation.reason.as_str() } else { "" };
        let shown = if allocation.state.is_empty() { "submitted" } else { &allocation.state };
        table.add_row([name, shown, &allocation.nodes, &launcher::utc(allocation.submitted_at), worker, waits]);
    }
    let mut text = if state.fleet.allocations.is_empty() { String::new() } else { format!("{table}\n") };
    text += &format!("{}\n{}", summary(&state), state.describe().join("\n"));
    text.extend(unknown.map(|unknown| format!("\n{unknown}")));
    screen::print(&text)
}

fn to_json(state: &State) -> Json {
    let allocations = state.fleet.allocations.iter().map(|(name, a)| {
        json!({
            "name": name, "phase": format!("{:?}", a.phase).to_lowercase(), "state": a.state, "nodes": a.nodes,
            "reason": a.reason, "connected": a.connected, "submitted_at": a.submitted_at, "started_at": a.started_at,
            "ended_at": a.ended_at,
        })
    });
    let pause = state.fleet.back_off.pause(launcher::now());
    let counts = &state.fleet.counts;
    json!({
        "system": state.system, "name": state.name, "launcher": state.launcher, "written_at": state.written_at, "ended": state.ended,
        "why": state.why, "troubles": state.troubles, "excluded": state.excluded,
        "pause": pause.map(|pause| json!({ "reason": pause.reason, "until": pause.until, "long": pause.long })),
        "allocations": allocations.collect::<Vec<_>>(),
        "counts": {
            "queries": counts.queries, "unanswered": counts.unanswered, "submissions": counts.submissions,
            "refusals": counts.refusals, "allocations": counts.allocations, "slot_s": counts.slot_s,
            "idle_slot_s": counts.idle_slot_s,
        },
    })
}

/// Prints the script and the output of an allocation.
pub fn log(args: &LaunchLogArgs) -> Outcome {
    let folder = args.folder.folder()?;
    let state = folder.read()?.ok_or_else(|| unused(&folder))?;
    let names: Vec<&str> = state.fleet.allocations.keys().map(String::as_str).collect();
    let Some(name) = &args.allocation else {
        return screen::print(&names.join("\n"));
    };
    screen::print_whole(&folder.log(&state, name)?)
}

/// Ends the launcher, and cancels allocations that wait.
pub fn stop(args: &LaunchStopArgs) -> Outcome {
    let folder = args.folder.folder()?;
    let state = folder.read()?.ok_or_else(|| unused(&folder))?;
    if let Some(job) = state.coordinator_job.as_ref().filter(|_| !state.ended && !args.with_coordinator) {
        return Err(failure!(
            Refused,
            "this launcher runs in job {job} beside the coordinator, which ends with it: add --with-coordinator to end both"
        ));
    }
    block_on(async {
        end_launcher(&folder).await?;
        let cancelled = commands(state.system).cancel(&state.name, args.workers).await;
        cancelled.map_err(|error| unusable(state.system, error))?;
        screen::print("the launcher has ended, and its waiting allocations are cancelled")
    })
}

/// Asks the launcher to end, and waits until it has.
async fn end_launcher(folder: &Folder) -> Result<(), Failure> {
    let begun = std::time::Instant::now();
    loop {
        match folder.lock() {
            Ok(lock) => {
                drop(lock);
                folder.take_stop();
                return Ok(());
            }
            Err(failure) if failure.kind == Kind::Owned && begun.elapsed() < STOP_PATIENCE => folder.ask_to_stop()?,
            Err(failure) => return Err(failure),
        }
        tokio::time::sleep(LOOK).await;
    }
}
