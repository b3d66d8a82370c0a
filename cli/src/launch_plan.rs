//! The plan of a launcher, from the command line and the site file.

use std::path::{Path, PathBuf};
use std::time::Duration;

use powersweep::allocation::{STAGGER, without_reserve};
use powersweep::launcher::{Folder, Plan};
use powersweep::user;
use powersweep_experiments::Digest;
use powersweep_launch::slurm::CoordinatorJob;
use powersweep_launch::{Facts, JobSite, Request, Room, Site, System, WorkerJob};
use powersweep_proto::access::{Role, Source};

use crate::args::{JobArgs, LaunchWorkersArgs};
use crate::exit::{Failure, Kind, OrKind, failure};
use crate::program;

/// Elements of an array job where Slurm does not say how many are allowed: its default.
const ARRAY_MAX: u64 = 1_000;
/// Time that a coordinator without work waits for the next experiment, by default.
const COORDINATOR_IDLE: Duration = Duration::from_secs(900);
/// Hexadecimal digits of the folder's digest in the name of its jobs.
const NAME_DIGITS: usize = 8;

/// The plan of a command line.
pub fn plan(system: System, args: &LaunchWorkersArgs, folder: &Folder, facts: &Facts) -> Result<Plan, Failure> {
    let request = request(system, &args.job, folder)?;
    if system == System::Pbs {
        check_pbs(args, &request.site)?;
    }
    let site = request.site.clone();
    let cpus = site.cpus.ok_or_else(|| missing("--cpus", "the processors of an allocation on each node"))?;
    let job = WorkerJob {
        nodes: args.job.nodes,
        cpus,
        drain_limit: args.drain_limit,
        arguments: worker_arguments(args)?,
        request,
    };
    let usable_s = usable_s(job.request.time, args.drain_limit);
    if usable_s <= 0.0 {
        let time = job.request.time.as_secs();
        return Err(failure!(
            Usage,
            "an allocation of {time} s (--time) leaves no time for a worker: its end is reserved"
        ));
    }
    let room = Room {
        nodes: args.max_nodes.or(site.max_nodes).unwrap_or(1),
        backlog: args.backlog,
        nodes_each: args.job.nodes,
        slots_each: u64::from(cpus) * args.job.nodes,
        usable_s,
        patience_s: args.patience.as_secs_f64(),
        array: site.max_array.or(facts.max_array).unwrap_or(ARRAY_MAX),
        submitted: None,
    };
    if room.nodes < args.job.nodes {
        let (nodes, most) = (args.job.nodes, room.nodes);
        return Err(failure!(Usage, "an allocation has {nodes} nodes (--nodes), more than the {most} of --max-nodes"));
    }
    let coordinator_job = std::env::var("POWERSWEEP_COORDINATOR_JOB").ok();
    let forget_failures = args.forget_failures;
    Ok(Plan { system, job, room, poll: args.poll, until_idle: args.until_idle, coordinator_job, forget_failures })
}

/// Refuses what only Slurm has.
fn check_pbs(args: &LaunchWorkersArgs, site: &JobSite) -> Result<(), Failure> {
    if args.coordinator {
        let hint = "run `powersweep serve` beside the launcher";
        return Err(failure!(Usage, "--coordinator needs jobs that queue their successors, as under Slurm: {hint}"));
    }
    if args.job.nodes > 1 {
        return Err(failure!(Usage, "an allocation of PBS has one node: give --max-nodes for more allocations"));
    }
    match site.qos {
        Some(_) => Err(failure!(Usage, "PBS has no quality of service (--qos): name the queue by --queue")),
        None => Ok(()),
    }
}

/// The job of a coordinator, with this launcher in it.
pub fn coordinator(plan: &Plan, args: &LaunchWorkersArgs) -> CoordinatorJob {
    let data = std::path::absolute(&args.folder.data.data);
    let data = data.map_or_else(|_| args.folder.data.data.clone(), |path| path.display().to_string());
    let data = if args.folder.data.data.contains("://") { args.folder.data.data.clone() } else { data };
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let mut serve = words(&["serve", "--listen", "0.0.0.0:0", "--data", &data]);
    serve.extend(args.insecure.then(|| "--insecure".to_owned()));
    let mut launch = words(&["launch", "slurm", "--data", &data]);
    launch.extend(launch_arguments(plan, args));
    let mut health = words(&["health", "--data", &data]);
    health.extend(args.insecure.then(|| "--insecure".to_owned()));
    CoordinatorJob { request: plan.job.request.clone(), serve, health, launch }
}

fn launch_arguments(plan: &Plan, args: &LaunchWorkersArgs) -> Vec<String> {
    let site = &plan.job.request.site;
    let seconds = |time: Duration| format!("{}s", time.as_secs_f64());
    let idle = args.until_idle.unwrap_or(COORDINATOR_IDLE);
    let mut found = vec![
        ("--folder", plan.job.request.folder.clone()),
        ("--program", plan.job.request.program.clone()),
        ("--time", (plan.job.request.time.as_secs() / 60).max(1).to_string()),
        ("--cpus", plan.job.cpus.to_string()),
        ("--nodes", plan.job.nodes.to_string()),
        ("--max-nodes", plan.room.nodes.to_string()),
        ("--backlog", plan.room.backlog.to_string()),
        ("--idle-limit", seconds(args.idle_limit)),
        ("--drain-limit", seconds(args.drain_limit)),
        ("--patience", seconds(args.patience)),
        ("--poll", seconds(args.poll)),
        ("--until-idle", seconds(idle)),
    ];
    let chosen = [("--partition", &site.partition), ("--account", &site.account), ("--qos", &site.qos)];
    let chosen = chosen.into_iter().chain([("--constraint", &site.constraint), ("--memory", &site.memory)]);
    found.extend(chosen.filter_map(|(name, value)| Some((name, value.clone()?))));
    found.extend(args.job.site.iter().map(|file| ("--site", absolute(file))));
    found.extend(args.job.options.iter().map(|option| ("--option", option.clone())));
    found.extend(args.worker.iter().map(|argument| ("--worker", argument.clone())));
    let mut words: Vec<String> = found.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    words.extend(args.insecure.then(|| "--insecure".to_owned()));
    words
}

/// Time that a worker can use of an allocation, in the worst case of its staggered end (s).
fn usable_s(time: Duration, drain_limit: Duration) -> f64 {
    without_reserve(time).as_secs_f64() * (1.0 - STAGGER) - drain_limit.as_secs_f64()
}

fn missing(option: &str, what: &str) -> Failure {
    failure!(Usage, "{option} is missing: {what}\ngive it, or write a site file with `powersweep site init`")
}

/// The request that all jobs of a launcher share.
pub fn request(system: System, args: &JobArgs, folder: &Folder) -> Result<Request, Failure> {
    let site = combined(system, args)?;
    let time = site.time.as_deref().ok_or_else(|| missing("--time", "the time limit of an allocation"))?;
    let time = system.time_limit(time).map_err(|reason| failure!(Usage, "{reason}"))?;
    let program = match &args.program {
        Some(program) => program.clone(),
        None => program::path().map_err(|error| failure!(Usage, "give --program: {error}"))?,
    };
    let path = folder.path().display().to_string();
    let digest = Digest::of(path.as_bytes()).to_string();
    let name = format!("powersweep-{}", &digest[..NAME_DIGITS]);
    Ok(Request { name, folder: path, time, site, program: program.display().to_string() })
}

/// The site file's options, with the command line's before them.
fn combined(system: System, args: &JobArgs) -> Result<JobSite, Failure> {
    let file = args.site.clone().or_else(default_site);
    let site = file.map(|file| Site::read(&file)).transpose().or_kind(Kind::Usage)?.unwrap_or_default();
    let mut site = site.of(system).clone();
    let chosen = [
        (&args.partition, &mut site.partition),
        (&args.account, &mut site.account),
        (&args.qos, &mut site.qos),
        (&args.constraint, &mut site.constraint),
        (&args.time, &mut site.time),
        (&args.memory, &mut site.memory),
    ];
    for (given, value) in chosen {
        if given.is_some() {
            value.clone_from(given);
        }
    }
    site.cpus = args.cpus.or(site.cpus);
    site.options.extend(args.options.iter().cloned());
    match site.with_several_lines() {
        Some(line) => Err(failure!(Usage, "{line:?} has more than one line: give each option by itself")),
        None => Ok(site),
    }
}

/// The site file that needs no option.
fn default_site() -> Option<PathBuf> {
    let own = user::base_folder("XDG_CONFIG_HOME", ".config").map(|config| config.join("powersweep/site.toml"));
    own.into_iter().chain([PathBuf::from("/etc/powersweep/site.toml")]).find(|file| file.is_file())
}

/// The arguments of workers: a file with the access, which the nodes read.
fn worker_arguments(args: &LaunchWorkersArgs) -> Result<Vec<String>, Failure> {
    let mut words = Vec::new();
    // A coordinator in a job makes the access files when it starts.
    if !args.coordinator {
        words.extend(["--access".to_owned(), worker_access(args)?]);
    }
    words.extend(["--idle-limit".to_owned(), format!("{}s", args.idle_limit.as_secs_f64())]);
    words.extend(args.insecure.then(|| "--insecure".to_owned()));
    words.extend(args.worker.iter().cloned());
    Ok(words)
}

/// The access file of workers, as a path that the nodes read.
pub fn worker_access(args: &LaunchWorkersArgs) -> Result<String, Failure> {
    let is_file = args.access.as_ref().is_some_and(|access| access.is_file() || access.as_os_str() == "-");
    if is_file {
        return Err(failure!(Usage, "--access of `launch` is a folder with client.json and worker.json, not one file"));
    }
    match args.place()?.access(Role::Worker)? {
        Source::File(file) => Ok(absolute(&file)),
        Source::Given(_) => Err(failure!(
            Usage,
            "workers on other machines need an access file: give the folder with worker.json by --access"
        )),
    }
}

fn absolute(file: &Path) -> String {
    std::path::absolute(file).unwrap_or_else(|_| file.to_owned()).display().to_string()
}
