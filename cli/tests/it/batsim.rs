//! `simulate --batsim`: schedules for evalys and for readers of the Standard Workload Format.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value as Json;

use crate::rows::{near, number, read};
use crate::sandbox::Sandbox;

const JOBS: &str = r#"{"nb_res": 4, "profiles": {"long": {"type": "delay", "delay": 100}, "short": {"type": "DelayProfile", "delay": 30.5}},
"jobs": [
  {"id": 1, "subtime": 0, "res": 3, "walltime": 100, "profile": "long"},
  {"id": 2, "subtime": 5, "res": 4, "walltime": 60, "profile": "short"},
  {"id": 3, "subtime": 10, "res": 1, "walltime": 20, "profile": "short"},
  {"id": 4, "subtime": 12.25, "res": 5, "walltime": 60, "profile": "short"}
]}"#;

const SETTINGS: [&str; 8] =
    ["-s", "source=batsim", "-s", "backfill=easy", "-s", "wide_jobs=drop", "-s", "power_top_w=100"];

fn text(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Simulates Batsim's workload of four jobs on four hosts; returns the folder with its schedule.
fn schedule(sandbox: &Sandbox) -> PathBuf {
    sandbox.write("jobs.json", JOBS);
    let args = [&["simulate", "--log", "jobs.json"], &SETTINGS[..], &["--traces", ".", "--batsim", "out"]].concat();
    sandbox.run(&args).exits(0);
    sandbox.path("out")
}

#[test]
fn a_schedule_has_the_columns_of_batsim() {
    let sandbox = Sandbox::new();
    let folder = schedule(&sandbox);
    let jobs = text(&folder, "jobs.csv");
    let lines: Vec<&str> = jobs.lines().collect();
    assert_eq!(
        lines[0],
        "job_id,workload_name,profile,submission_time,requested_number_of_resources,requested_time,success,final_state,\
         starting_time,execution_time,finish_time,waiting_time,turnaround_time,stretch,allocated_resources,consumed_energy,\
         metadata"
    );
    // Job 3 fits beside job 1 and is killed at its walltime; job 4 is wider than the machine.
    let begins: Vec<String> =
        lines[1..].iter().map(|line| line.split(',').take(15).collect::<Vec<_>>().join(",")).collect();
    assert_eq!(
        begins,
        [
            "1,simulate,1,0,3,100,1,COMPLETED_SUCCESSFULLY,0,100,100,0,100,1,0-2",
            "2,simulate,2,5,4,60,1,COMPLETED_SUCCESSFULLY,100,30.5,130.5,95,125.5,4.114754098360656,0-3",
            "3,simulate,3,10,1,20,0,COMPLETED_WALLTIME_REACHED,10,20,30,0,20,1,3",
        ]
    );
    let summary: Json = serde_json::from_str(&text(&folder, "schedule.json")).expect("JSON");
    let keys: Vec<&String> = summary.as_object().expect("an object").keys().collect();
    assert!(keys.is_sorted() && keys.len() == 24, "{keys:?}");
    for (key, value) in [
        ("nb_jobs", 4.0),
        ("nb_jobs_finished", 3.0),
        ("nb_jobs_killed", 1.0),
        ("nb_jobs_rejected", 1.0),
        ("success_rate", 0.5),
        ("makespan", 130.5),
        ("nb_computing_machines", 4.0),
        ("max_waiting_time", 95.0),
        ("time_computing", 300.0 + 122.0 + 20.0),
        ("time_idle", 4.0 * 130.5 - 442.0),
        ("time_sleeping", 0.0),
    ] {
        assert_eq!(summary[key].as_f64(), Some(value), "{key}");
    }
    let energies = text(&folder, "consumed_energy.csv");
    let last: Vec<&str> = energies.lines().last().expect("events").split(',').collect();
    let consumed = summary["consumed_joules"].as_f64().expect("an energy");
    assert!(near(last[1].parse().expect("a number"), consumed, 1e-12), "{last:?} {consumed}");
    let events: Vec<(&str, &str)> = energies
        .lines()
        .skip(1)
        .map(|line| (line.split(',').next().unwrap_or_default(), line.rsplit(',').next().unwrap_or_default()))
        .collect();
    assert_eq!(events, [("0", "s"), ("10", "s"), ("30", "e"), ("100", "e"), ("100", "s"), ("130.5", "e")]);
    assert_eq!(
        text(&folder, "machine_states.csv"),
        "time,nb_sleeping,nb_switching_on,nb_switching_off,nb_idle,nb_computing\n\
         0,0,0,0,1,3\n10,0,0,0,0,4\n30,0,0,0,1,3\n100,0,0,0,0,4\n130.5,0,0,0,4,0\n"
    );
    // Nothing is overwritten, and a failure leaves nothing.
    let again = [&["simulate", "--log", "jobs.json"], &SETTINGS[..], &["--traces", ".", "--batsim", "out"]].concat();
    sandbox.run(&again).exits(2).says(&["out exists already"]);
    sandbox
        .run(&["simulate", "aldaoud2011_cluster", "--index", "0", "--batsim", "queues"])
        .exits(2)
        .says(&["needs rigid jobs"]);
    assert!(!sandbox.path("queues").exists());
}

#[test]
fn the_log_of_a_schedule_gives_the_same_schedule() {
    let sandbox = Sandbox::new();
    let args = ["simulate", "-s", "synthetic_jobs_count=300", "-s", "backfill=conservative", "--seed", "3"];
    let more = ["--batsim", "out", "--jobs", "data/first/jobs/jobs.parquet"];
    for folder in ["data/first/jobs", "data/again/jobs"] {
        std::fs::create_dir_all(sandbox.path(folder)).expect("a new folder");
    }
    sandbox.run(&[&args[..], &more].concat()).exits(0);
    let log = text(&sandbox.path("out"), "schedule.swf");
    assert!(
        log.contains("; Note: A schedule simulated by powersweep")
            && log.contains("; Note: Command: powersweep simulate ")
    );
    let again = ["simulate", "--log", "out/schedule.swf", "--traces", ".", "-s", "backfill=conservative"];
    sandbox.run(&[&again[..], &["--jobs", "data/again/jobs/jobs.parquet"]].concat()).exits(0);
    let [first, again] = ["first", "again"].map(|name| read(&sandbox.path("data"), name, "jobs"));
    assert_eq!((first.len(), again.len()), (300, 300));
    for (first, again) in first.iter().zip(&again) {
        for column in ["job_id", "procs", "submit_s", "start_s", "finish_s"] {
            assert!((number(first, column) - number(again, column)).abs() < 1e-6, "{column}: {first:?} {again:?}");
        }
    }
    // Generated jobs have no calendar time; those of a log keep theirs.
    assert!(!log.contains("UnixStartTime"), "{log}");
    sandbox
        .write("cal.swf", "; MaxProcs: 1\n; UnixStartTime: 1704704400\n1 0 -1 60 1 -1 -1 1 60 -1 1 1 1 -1 1 1 -1 -1\n");
    sandbox.run(&["simulate", "--log", "./cal.swf", "--batsim", "calendar"]).exits(0);
    assert!(text(&sandbox.path("calendar"), "schedule.swf").contains("; UnixStartTime: 1704704400\n"));
    // The waits of the log are those of the schedule.
    sandbox.run(&["trace", "info", "out/schedule.swf", "--traces", "."]).exits(0).prints(&["300"]);
}

/// Loads every file that evalys reads, computes with it and draws a Gantt chart.
const EVALYS: &str = r#"
import sys
try:
    import matplotlib
    matplotlib.use("Agg")
    from evalys.jobset import JobSet
    import evalys.visu.legacy as vleg
except ImportError as error:
    print("missing", error)
    sys.exit(77)
import matplotlib.pyplot as plt
folder, output = sys.argv[1:]
jobs = JobSet.from_csv(folder + "/jobs.csv")
print(len(jobs.df), jobs.MaxProcs, jobs.df.finish_time.max(), jobs.mean_utilisation() if hasattr(jobs, "mean_utilisation") else "")
assert abs((jobs.df.starting_time - jobs.df.submission_time - jobs.df.waiting_time)).max() < 1e-5
assert (jobs.df.proc_alloc == jobs.df.requested_number_of_resources).all()
print(jobs.utilisation.load.max(), jobs.queue.load.max())
jobs.plot(normalize=False, with_details=True)
plt.gcf().set_size_inches(12, 9)
plt.savefig(output)
"#;

#[test_with::env(POWERSWEEP_PYTHON)]
#[test]
fn evalys_loads_and_plots_a_schedule() {
    let python = std::env::var_os("POWERSWEEP_PYTHON").expect("it was set for the compiler");
    let sandbox = Sandbox::new();
    let args = ["simulate", "-s", "synthetic_jobs_count=120", "-s", "synthetic_procs=64", "-s", "backfill=easy"];
    sandbox.run(&[&args[..], &["-s", "power_top_w=200", "--batsim", "out"]].concat()).exits(0);
    let png = match std::env::var_os("POWERSWEEP_GALLERY") {
        Some(folder) => PathBuf::from(folder).join("evalys.png"),
        None => sandbox.path("evalys.png"),
    };
    let mut command = Command::new(python);
    command.args(["-c", EVALYS]).arg(sandbox.path("out")).arg(&png).env("MPLCONFIGDIR", sandbox.path("matplotlib"));
    let ended = command.output().expect("Python starts");
    let (out, err) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    if ended.status.code() == Some(77) {
        println!("skipped: evalys is not installed: {out}");
        return;
    }
    assert!(ended.status.success() && out.starts_with("120 "), "{out}{err}");
    assert!(std::fs::metadata(&png).expect("the chart").len() > 10_000);
}
