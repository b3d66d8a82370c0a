//! Workers in jobs of a batch system. The commands of Slurm are scripts here that start and list processes; `.ci/full
//! slurm` runs the same with the real ones.

use std::time::{Duration, Instant};

use crate::cluster::{Cluster, PATIENCE, System};
use crate::dashboard::Pages;
use crate::rows;
use crate::runs::path_with;
use crate::sandbox::{BINARY, Sandbox};

const SBATCH: &str = r#"#!/bin/bash
# Starts each element of an array job as a process; a file `mode` makes it refuse.
S=$SANDBOX/slurm
echo "$*" >>"$S/sbatch.calls"
case " $* " in *" --test-only "*) exit 0 ;; esac
if [ "$(cat "$S/mode" 2>/dev/null)" = refuse ]; then
    echo "sbatch: error: QOSMaxSubmitJobPerUserLimit" >&2
    exit 1
fi
job=$(($(cat "$S/last" 2>/dev/null || echo 99) + 1))
echo $job >"$S/last"
script=${*: -1} elements=1
for word in "$@"; do case $word in --array=1-*) elements=${word#--array=1-} ;; esac; done
pattern=$(sed -n 's/^#SBATCH --output="\(.*\)\.out"$/\1/p' "$script")
for ((element = 1; element <= elements; element++)); do
    file=${pattern/\%A/$job}
    file=${file/\%a/$element}
    SLURM_ARRAY_JOB_ID=$job SLURM_ARRAY_TASK_ID=$element setsid bash -c '
        bash "$0" >"$1.out" 2>"$1.err"
        echo $? >"$2.code"' "$script" "$file" "$S/${job}_$element" >/dev/null 2>&1 &
    date +%s >"$S/${job}_$element.start"
done
echo "Welcome to the cluster"
echo "$job"
"#;

const SQUEUE: &str = r#"#!/bin/bash
S=$SANDBOX/slurm
echo "$*" >>"$S/squeue.calls"
if [ "$(cat "$S/queue-mode" 2>/dev/null)" = hang ]; then exec sleep 600; fi
if [ "$(cat "$S/queue-mode" 2>/dev/null)" = endless ]; then exec yes; fi
if [ "$(cat "$S/queue-mode" 2>/dev/null)" = junk ]; then
    echo "slurm_load_jobs error: Unable to contact slurm controller"
    exit 0
fi
if [ "$(cat "$S/queue-mode" 2>/dev/null)" = full ]; then
    for start in "$S"/*.start; do
        [ ! -e "$start" ] || echo "powersweep|$(basename "$start" .start)|PENDING|N/A|N/A|Priority|"
    done
    exit 0
fi
echo "Welcome to the farm"
for start in "$S"/*.start; do
    [ -e "$start" ] || exit 0
    name=$(basename "$start" .start) state=RUNNING
    if [ -e "$S/$name.code" ]; then
        state=COMPLETED
        [ "$(cat "$S/$name.code")" = 0 ] || state=FAILED
    fi
    echo "powersweep|$name|$state|$(cat "$start")|$(date +%s)|None|n1"
done
"#;

const SCANCEL: &str = "#!/bin/bash\necho \"$*\" >>\"$SANDBOX/slurm/scancel.calls\"\n";

const SCONTROL: &str = "#!/bin/bash
echo 'ClusterName             = farm'
echo 'MaxArraySize            = 5'
echo 'PreemptMode             = CANCEL'
echo 'SLURM_VERSION           = 22.05.8'
";

const SINFO: &str = "#!/bin/bash
echo 'Welcome to the farm'
echo 'powersweep|batch*|up|2:00:00|4|4096|10'
echo 'powersweep|long|up|infinite|64|4096|2'
";

static SYSTEM: System = System {
    name: "slurm",
    time: "--time=10",
    programs: [("sbatch", SBATCH), ("squeue", SQUEUE), ("scancel", SCANCEL), ("scontrol", SCONTROL), ("sinfo", SINFO)],
    variables: &[],
};

#[test]
fn workers_come_with_the_tasks_and_go_after_them() {
    let cluster = Cluster::new(&SYSTEM);
    let _served = cluster.serve_sweep(200);
    let launched = cluster.launch(&["--max-nodes=2", "--until-idle=1s"]).wait().exits(0);
    assert!(launched.stderr.contains("launching workers on farm (Slurm 22.05.8)"), "{launched}");
    let status = cluster.0.run(&["status", "sweep", "--json"]).json();
    let (tasks, done) = (&status["experiments"][0]["tasks"], &status["experiments"][0]["done"]);
    assert_eq!(tasks, done, "{status}");
    let status = cluster.run(&["launch", "status", "--json"]).exits(0).json();
    let allocations = status["allocations"].as_array().expect("a list");
    assert!((1..=2).contains(&allocations.len()), "{status}");
    assert!(allocations.iter().all(|a| a["phase"] == "ended" && a["state"] == "COMPLETED"), "{status}");
    assert_eq!(status["counts"]["queries"].as_u64(), Some(cluster.calls("squeue").len() as u64));
    assert_eq!(status["counts"]["submissions"].as_u64(), Some(cluster.calls("sbatch").len() as u64));
    assert!(cluster.calls("scancel").is_empty(), "workers end by themselves");
    let name = allocations[0]["name"].as_str().expect("a name");
    let log = cluster.run(&["launch", "log", name]).exits(0);
    log.prints(&["#SBATCH --requeue", "exec ", "worker ended (nothing to do for its idle limit)"]);
    cluster.run(&["launch", "log", "1_1"]).exits(2);
    let pages = Pages::open(&cluster.0, &[]);
    let page = pages.get("/workers").gives(200, &["Launcher", "0 allocations wait in the queue", "COMPLETED", name]);
    assert!(page.body.contains("the launcher (process"), "{}", page.body);
    let rows = rows::tasks(&cluster.0.path("results/data"), "sweep");
    assert_eq!(tasks.as_u64(), Some(rows.len() as u64));
}

#[test]
fn a_refused_submission_is_shown_and_tried_again_later() {
    let cluster = Cluster::new(&SYSTEM);
    cluster.0.write("slurm/mode", "refuse");
    let _served = cluster.serve_sweep(2);
    let launcher = cluster.launch(&[]);
    let shown = cluster.shows("2 submissions were refused in a row");
    assert!(shown.contains("QOSMaxSubmitJobPerUserLimit") && shown.contains("no submission before"), "{shown}");
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(cluster.calls("sbatch").len(), 2, "the third one waits for a minute");
    let second = cluster.launch(&[]).wait().exits(6);
    assert!(second.stderr.contains("another launcher"), "{second}");
    cluster.run(&["launch", "stop"]).exits(0);
    launcher.wait().exits(0);
    assert!(cluster.calls("scancel").iter().any(|call| call.contains("--state=PENDING")));
}

#[test]
fn the_dashboard_shows_allocations_that_wait() {
    let cluster = Cluster::new(&SYSTEM);
    cluster.0.write("slurm/queue-mode", "full");
    let _served = cluster.serve_sweep(2);
    let pages = Pages::open(&cluster.0, &[]);
    pages.get("/workers").gives(200, &["No worker has connected"]);
    let launcher = cluster.launch(&["--program=/bin/true"]);
    pages.until("/workers", "1 allocation waits in the queue").says(&["100_1", "PENDING", "Priority", "of which idle"]);
    launcher.signal("TERM");
    launcher.wait().exits(130);
}

#[test]
fn workers_that_fail_at_once_are_noticed_and_a_broken_queue_is_no_reason_for_more() {
    let cluster = Cluster::new(&SYSTEM);
    cluster.0.write("slurm/queue-mode", "junk");
    let _served = cluster.serve_sweep(2);
    let mut launcher = cluster.launch(&["--program=/bin/false"]);
    launcher.says("squeue answered \"slurm_load_jobs error: Unable to contact slurm controller\"");
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(
        cluster.calls("sbatch").len(),
        1,
        "one allocation measures the tasks, and nothing says that it has ended"
    );
    cluster.0.write("slurm/queue-mode", "");
    launcher.says("allocation 100_1 has ended (FAILED)");
    launcher.says("allocation 101_1 has ended (FAILED)");
    let shown = cluster.shows("the workers of 2 allocations in a row failed within a minute, the last one 101_1");
    assert!(shown.contains("excluded nodes, on which workers failed at once: n1"), "{shown}");
    launcher.signal("TERM");
    launcher.wait().exits(130);
}

#[test]
fn a_launcher_that_is_told_to_end_waits_for_no_answer() {
    for (way, code) in [("TERM", 130), ("stop", 0)] {
        let cluster = Cluster::new(&SYSTEM);
        cluster.0.write("slurm/queue-mode", "full");
        let _served = cluster.serve_sweep(2);
        let launcher = cluster.launch(&["--program=/bin/true"]);
        cluster.shows("PENDING");
        // Counted first: a query that hangs before it is counted is the last one.
        let (calls, begun) = (cluster.calls("squeue").len(), Instant::now());
        cluster.0.write("slurm/queue-mode", "hang");
        while cluster.calls("squeue").len() == calls {
            assert!(begun.elapsed() < PATIENCE, "the queue is not asked");
            std::thread::sleep(Duration::from_millis(20));
        }
        match way {
            "TERM" => launcher.signal("TERM"),
            _ => drop(cluster.run(&["launch", "stop"]).exits(0)),
        }
        launcher.wait().exits(code);
        cluster.0.write("slurm/queue-mode", "full");
        let status = cluster.run(&["launch", "status", "--json"]).exits(0).json();
        assert_eq!(status["counts"]["unanswered"], 0, "the launcher waited for the end of the query: {way}");
        assert_eq!(cluster.calls("sbatch").len(), 1, "{way}");
    }
}

#[test]
fn a_program_that_cannot_start_is_no_fault_of_a_node() {
    let cluster = Cluster::new(&SYSTEM);
    let _served = cluster.serve_sweep(2);
    let launcher = cluster.launch(&["--program=/nowhere/powersweep"]);
    let shown = cluster.shows("could not start the program (exit code 127), whatever its node");
    assert!(!shown.contains("excluded"), "{shown}");
    cluster.run(&["launch", "stop"]).exits(0);
    launcher.wait().exits(0);
    let again = cluster.launch(&["--max-nodes=2", "--until-idle=1s", "--forget-failures"]).wait().exits(0);
    assert!(again.stderr.contains("submitted 1 allocation"), "{again}");
}

#[test]
fn the_status_after_the_end_asks_the_queue_and_trouble_has_a_time() {
    let cluster = Cluster::new(&SYSTEM);
    let _served = cluster.serve_sweep(400);
    let mut launcher = cluster.launch(&[]);
    launcher.says("submitted 1 allocation");
    cluster.shows("connected");
    cluster.0.write("slurm/queue-mode", "endless");
    let shown = cluster.shows("squeue answered more than 16 MiB");
    assert!(shown.contains("trouble since 20") && shown.contains("the queue is unknown since 20"), "{shown}");
    cluster.0.write("slurm/queue-mode", "");
    cluster.shows("trouble from 20");
    launcher.signal("KILL");
    drop(launcher);
    let begun = Instant::now();
    while std::fs::read_dir(cluster.0.path("slurm"))
        .expect("there")
        .flatten()
        .all(|e| e.path().extension() != Some("code".as_ref()))
    {
        assert!(begun.elapsed() < PATIENCE, "the worker has not ended");
        std::thread::sleep(Duration::from_millis(100));
    }
    let shown = cluster.run(&["launch", "status"]).exits(0).stdout;
    assert!(shown.contains("COMPLETED") && !shown.contains("RUNNING"), "{shown}");
}

#[test]
fn a_folder_that_cannot_be_written_is_trouble_and_not_the_end() {
    let cluster = Cluster::new(&SYSTEM);
    cluster.0.write("slurm/queue-mode", "full");
    let _served = cluster.serve_sweep(2);
    let mut launcher = cluster.launch(&["--program=/bin/true"]);
    cluster.shows("PENDING");
    let state = cluster.0.path("results/data/.powersweep/launch/state.toml");
    std::fs::rename(&state, cluster.0.path("kept.toml")).expect("it is there");
    std::fs::create_dir(&state).expect("its name is free");
    launcher.says("cannot write");
    std::fs::remove_dir(&state).expect("it is empty");
    let shown = cluster.shows("trouble from 20");
    assert!(launcher.runs() && shown.contains("state.toml: is a directory"), "{shown}");
    launcher.signal("TERM");
    launcher.wait().exits(130);
    // Only root can give a folder away.
    if std::os::unix::fs::chown(state.parent().expect("a folder"), Some(54_321), None).is_ok() {
        cluster.launch(&[]).wait().exits(8).says(&["belongs to another user (number 54321)"]);
    }
}

#[test]
fn a_launcher_beside_its_coordinator_is_not_ended_alone() {
    let cluster = Cluster::new(&SYSTEM);
    let _served = cluster.serve_sweep(2);
    let mut command = cluster.0.command(BINARY);
    command.args(["launch", "slurm", "--time=10", "--cpus=1", "--poll=300ms", "--idle-limit=1s"]);
    command.env("PATH", path_with(&cluster.0.path("bin"))).env("SANDBOX", cluster.0.path(""));
    command.env("POWERSWEEP_COORDINATOR_JOB", "4711");
    let launcher = cluster.0.spawn(command);
    cluster.shows("asks for no more allocations");
    let refused = cluster.run(&["launch", "stop"]).exits(8);
    refused.says(&["runs in job 4711 beside the coordinator", "--with-coordinator"]);
    cluster.run(&["launch", "stop", "--with-coordinator"]).exits(0);
    launcher.wait().exits(0);
    assert!(cluster.calls("scancel").iter().all(|call| call.starts_with("--me ")));
}

#[test]
fn a_dry_run_submits_nothing_and_a_site_file_has_the_options() {
    let cluster = Cluster::new(&SYSTEM);
    let (_served, _) = cluster.0.serve(&[]);
    cluster.run(&["launch", "slurm"]).exits(2).says(&["--time is missing", "powersweep site init"]);
    let hidden = ["launch", "slurm", "--time=10", "--cpus=1", "--account=a\n#SBATCH --hold", "--dry-run"];
    cluster.run(&hidden).exits(2).says(&["more than one line"]);
    cluster.run(&["site", "init", "--output", "site.toml"]).exits(0);
    cluster.run(&["site", "init", "--output", "site.toml"]).exits(2);
    cluster.run(&["site", "init", "--partition", "lang"]).exits(2).says(&["long"]);
    let shown = cluster.run(&["launch", "slurm", "--site", "site.toml", "--account", "a b", "--dry-run"]).exits(0);
    let script = shown.prints(&[
        "#SBATCH --partition=\"batch\"",
        "#SBATCH --time=\"2:00:00\"",
        "#SBATCH --account=\"a b\"",
        "#SBATCH --cpus-per-task=4",
        "#SBATCH --signal=B:TERM@30",
        "#SBATCH --open-mode=append",
        "worker --slots 4",
    ]);
    assert!(script.stderr.contains("usable for tasks: 106 min 2 s of the 2 h 0 min of an allocation"), "{script}");
    let short = cluster.run(&["launch", "slurm", "--site", "site.toml", "--time", "4", "--dry-run"]).exits(0);
    assert!(short.stderr.contains("usable for tasks: 2 min 59 s of the 4 min 0 s"), "{short}");
    let several =
        cluster.run(&["launch", "slurm", "--site", "site.toml", "--nodes", "2", "--max-nodes", "4", "--dry-run"]);
    several.exits(0).prints(&["#SBATCH --signal=TERM@30", "exec srun --kill-on-bad-exit=0"]);
    cluster
        .run(&["launch", "slurm", "--site", "site.toml", "--nodes", "2", "--dry-run"])
        .exits(2)
        .says(&["--max-nodes"]);
    cluster.run(&["launch", "slurm", "--time", "0:35", "--cpus", "1", "--dry-run"]).exits(2).says(&["--time"]);
    assert!(cluster.calls("sbatch").iter().all(|call| call.contains("--test-only")));
    cluster.run(&["launch", "status"]).exits(2).says(&["no launcher has used"]);
}

#[test]
fn a_check_shows_what_a_node_sees() {
    let cluster = Cluster::new(&SYSTEM);
    let (_served, _) = cluster.0.serve(&[]);
    let checked = cluster.run(&["launch", "slurm", "--time=10", "--cpus=1", "--check"]).exits(0);
    checked.prints(&["worker at https://127.0.0.1", "takes the token"]);
}

#[test]
fn without_slurm_the_error_says_where_to_run() {
    let sandbox = Sandbox::new();
    let ended = sandbox.run(&["launch", "slurm", "--time=10", "--cpus=1"]);
    if ended.stderr.contains("cannot run scontrol") {
        ended.exits(1).says(&["login node"]);
    } else {
        println!("skipped: this machine has Slurm");
    }
}
