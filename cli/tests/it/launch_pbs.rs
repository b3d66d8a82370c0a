//! Workers in jobs of PBS. Its commands are scripts here that start and list processes, and answer as OpenPBS documents it.

use std::time::{Duration, Instant};

use crate::cluster::{Cluster, PATIENCE, System};
use crate::farm::{terminate, worker};
use crate::rows;

const QSUB: &str = r#"#!/bin/bash
# Starts each element as a process; a file `mode` makes it hold new jobs or refuse them.
S=$SANDBOX/pbs
echo "$*" >>"$S/qsub.calls"
elements= script=${*: -1}
if [ "$1" = -J ]; then
    elements=${2#1-}
    if [ "$elements" -lt 2 ]; then echo "qsub: illegal -J value" >&2; exit 2; fi
fi
mode=$(cat "$S/mode" 2>/dev/null)
if [ "$mode" = refuse ]; then echo "qsub: would exceed queue's per-user limit" >&2; exit 38; fi
job=$(($(cat "$S/last" 2>/dev/null || echo 99) + 1))
echo $job >"$S/last"
sed -n 's/^#PBS -N //p' "$script" >"$S/$job.name"
for ((element = 1; element <= ${elements:-1}; element++)); do
    id=$job
    [ -z "$elements" ] || id="$job[$element]"
    echo "$id" >"$S/${job}_$element.id"
    [ "$mode" = hold ] && continue
    date +%s >"$S/${job}_$element.start"
    PBS_JOBID=$id.farm PBS_ARRAY_INDEX=${elements:+$element} setsid bash -c '
        echo $$ >"$1.pid"
        bash "$0"
        echo $? >"$1.code"' "$script" "$S/${job}_$element" >/dev/null 2>&1 &
done
echo "Welcome to the cluster"
echo "$job${elements:+[]}.farm"
"#;

const QSELECT: &str = r#"#!/bin/bash
S=$SANDBOX/pbs
echo "$*" >>"$S/qselect.calls"
history=
if [ "$1" = -x ]; then history=1; shift; fi
if [ -n "$history" ] && [ -e "$S/no-history" ]; then
    echo "qselect: job_history_enable is set to false" >&2
    exit 0
fi
if [ "$(cat "$S/mode" 2>/dev/null)" = down ]; then echo "qselect: cannot connect to server farm (errno=15010)" >&2; exit 15; fi
for file in "$S"/*.name; do
    [ -e "$file" ] && [ "$(cat "$file")" = "$4" ] || continue
    job=$(basename "$file" .name) live=
    for id in "$S/${job}"_*.id; do [ -e "${id%.id}.code" ] || live=1; done
    [ -n "$live$history" ] || continue
    if grep -q '\[' "$S/${job}_1.id"; then echo "$job[].farm"; else echo "$job.farm"; fi
done
"#;

const QSTAT: &str = r#"#!/bin/bash
S=$SANDBOX/pbs
echo "$*" >>"$S/qstat.calls"
if [ "$1" = -B ]; then
    echo '{"timestamp":1, "pbs_version":"20.0.1", "pbs_server":"farm", "Server":{"farm":{"max_array_size":5}}}'
    exit 0
fi
# Times are in the zone of the caller.
when() { date -d "@$1" '+%a %b %e %H:%M:%S %Y'; }
echo "Welcome to the cluster"
echo '{ "timestamp":1, "pbs_version":"20.0.1", "pbs_server":"farm", "Jobs":{'
for word in "$@"; do
    case $word in *.farm) ;; *) continue ;; esac
    job=${word%%[.[]*}
    case $word in *\[\]*) echo "\"$job[].farm\":{ \"job_state\":\"B\", \"array\":\"True\" }," ;; esac
    for id in "$S/${job}"_*.id; do
        base=${id%.id}
        echo "\"$(cat "$id").farm\":{"
        if [ ! -e "$base.start" ]; then
            echo '"job_state":"Q", "comment":"Not Running: Insufficient amount of resource: ncpus" },'
            continue
        fi
        echo "\"stime\":\"$(when "$(cat "$base.start")")\", \"exec_host\":\"n1/0*1\","
        if [ -e "$base.code" ]; then
            echo "\"mtime\":\"$(when "$(date +%s)")\", \"Exit_status\":$(cat "$base.code"), \"job_state\":\"F\" },"
        else
            echo '"Resource_List":{ "walltime":"00:10:00" }, "job_state":"R" },'
        fi
    done
done
echo '"0.farm":{ "job_state":"F" } } }'
"#;

const QDEL: &str = "#!/bin/bash\necho \"$*\" >>\"$SANDBOX/pbs/qdel.calls\"\n";

const QSIG: &str = r#"#!/bin/bash
S=$SANDBOX/pbs
echo "$*" >>"$S/qsig.calls"
shift 2
for id in "$@"; do
    file=$(grep -lxF "${id%.farm}" "$S"/*.id)
    # The worker has replaced the only child.
    pkill -TERM -P "$(cat "${file%.id}.pid")"
done
"#;

static SYSTEM: System = System {
    name: "pbs",
    time: "--time=10:00",
    programs: [("qsub", QSUB), ("qselect", QSELECT), ("qstat", QSTAT), ("qdel", QDEL), ("qsig", QSIG)],
    // Far from UTC, where times of answers must not lead to.
    variables: &[("TZ", "Pacific/Auckland"), ("USER", "ada")],
};

/// Waits until an element has ended.
fn ended(cluster: &Cluster, element: &str) {
    let begun = Instant::now();
    while !cluster.0.path(&format!("pbs/{element}.code")).exists() {
        assert!(begun.elapsed() < PATIENCE, "the worker runs on");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// With and without a history of ended jobs at the server.
#[test]
fn workers_come_with_the_tasks_and_go_after_them() {
    for history in [true, false] {
        let cluster = Cluster::new(&SYSTEM);
        if !history {
            cluster.0.write("pbs/no-history", "");
        }
        let _served = cluster.serve_sweep(200);
        let wide = ["--max-nodes=2", "--backlog=2", "--until-idle=1s"];
        let mut launcher = cluster.launch(&wide);
        launcher.says("launching workers on farm (PBS 20.0.1)");
        if history {
            launcher.wait().exits(0);
        } else {
            // An allocation that left the queue counts as ended after some answers only.
            let begun = Instant::now();
            while cluster.0.run(&["status", "sweep", "--json"]).json()["experiments"][0]["state"] != "finished" {
                assert!(begun.elapsed() < PATIENCE, "the sweep has not ended");
            }
            launcher.signal("TERM");
            launcher.wait().exits(130);
            ended(&cluster, "100_1");
        }
        let status = cluster.0.run(&["status", "sweep", "--json"]).json();
        let (tasks, done) = (&status["experiments"][0]["tasks"], &status["experiments"][0]["done"]);
        assert_eq!(tasks, done, "{status}");
        let rows = rows::tasks(&cluster.0.path("results/data"), "sweep");
        assert_eq!(tasks.as_u64(), Some(rows.len() as u64));
        let status = cluster.run(&["launch", "status", "--json"]).exits(0).json();
        assert_eq!(status["system"], "pbs", "{status}");
        let allocations = status["allocations"].as_array().expect("a list");
        assert!(!allocations.is_empty(), "{status}");
        if history {
            assert!(allocations.iter().all(|a| a["phase"] == "ended" && a["state"] == "finished"), "{status}");
            assert!(cluster.calls("qstat").iter().skip(1).all(|call| call.starts_with("-x -t -f -F json ")));
        }
        assert!(cluster.calls("qdel").is_empty() && cluster.calls("qsig").is_empty(), "workers end by themselves");
        let name = allocations[0]["name"].as_str().expect("a name");
        let log = cluster.run(&["launch", "log", name]).exits(0);
        log.prints(&["#PBS -r y", "exec ", "worker ended (nothing to do for its idle limit)"]);
    }
}

#[test]
fn several_allocations_are_an_array_and_stop_cancels_what_waits() {
    let cluster = Cluster::new(&SYSTEM);
    cluster.0.write("pbs/mode", "hold");
    let _served = cluster.serve_sweep(1_000_000);
    // Its tasks are measured, and are work for more allocations than are allowed.
    let worker = worker(&cluster.0, "w", "", &[]);
    let begun = Instant::now();
    while cluster.0.run(&["status", "sweep", "--json"]).json()["experiments"][0]["done"] == 0 {
        assert!(begun.elapsed() < PATIENCE, "no task is done");
    }
    terminate(worker);
    let short = ["launch", "pbs", "--time=1:10", "--cpus=1", "--poll=300ms", "--patience=0s"];
    let launcher = cluster.start(&[&short[..], &["--max-nodes=3", "--backlog=3"]].concat());
    let shown = cluster.shows("Insufficient amount of resource");
    assert!(shown.contains("queued") && shown.contains("100_3"), "{shown}");
    assert!(cluster.calls("qsub")[0].starts_with("-J 1-3 "), "{:?}", cluster.calls("qsub"));
    launcher.signal("TERM");
    launcher.wait().exits(130);
    cluster.0.write_program("scontrol", "#!/bin/sh\n");
    let other = cluster.run(&["launch", "slurm", "--time=10", "--cpus=1"]).exits(8);
    other.says(&["the folder has allocations of PBS that may still run"]);
    cluster.run(&["launch", "stop"]).exits(0);
    assert_eq!(cluster.calls("qdel"), ["100[1].farm 100[2].farm 100[3].farm"]);
}

#[test]
fn a_refusal_and_a_silent_server_are_shown() {
    let cluster = Cluster::new(&SYSTEM);
    cluster.0.write("pbs/mode", "refuse");
    let _served = cluster.serve_sweep(2);
    let launcher = cluster.launch(&[]);
    let shown = cluster.shows("2 submissions were refused in a row");
    assert!(shown.contains("would exceed queue's per-user limit"), "{shown}");
    cluster.run(&["launch", "stop"]).exits(0);
    launcher.wait().exits(0);
    cluster.0.write("pbs/mode", "down");
    let launcher = cluster.launch(&["--forget-failures"]);
    cluster.shows("cannot connect to server farm");
    launcher.signal("TERM");
    launcher.wait().exits(130);
}

#[test]
fn running_workers_are_asked_to_end() {
    let cluster = Cluster::new(&SYSTEM);
    let _served = cluster.serve_sweep(2);
    let launcher = cluster.start(&[
        "launch",
        "pbs",
        "--time=10:00",
        "--cpus=1",
        "--poll=300ms",
        "--patience=0s",
        "--idle-limit=1h",
    ]);
    cluster.shows("connected");
    cluster.run(&["launch", "stop", "--workers"]).exits(0);
    launcher.wait().exits(0);
    assert_eq!(cluster.calls("qsig"), ["-s SIGTERM 100.farm"]);
    ended(&cluster, "100_1");
}

#[test]
fn a_dry_run_submits_nothing_and_what_pbs_lacks_is_refused() {
    let cluster = Cluster::new(&SYSTEM);
    let (_served, _) = cluster.0.serve(&[]);
    cluster.0.write("site.toml", "[pbs]\nqueue = \"workq\"\ntime = \"4:00:00\"\ncpus = 8\nmemory = \"16gb\"\n");
    let dry = ["launch", "pbs", "--site", "site.toml", "--dry-run"];
    let shown = cluster.run(&[&dry[..], &["--account", "a b"]].concat()).exits(0);
    let shown = shown.prints(&[
        "#PBS -q workq",
        "#PBS -l walltime=4:00:00",
        "ncpus=8:mem=16gb",
        "#PBS -A 'a b'",
        "worker --slots 8",
    ]);
    assert!(shown.stderr.contains("PBS tests no jobs") && shown.stderr.contains("nothing was submitted"), "{shown}");
    for (option, said) in
        [("--qos=high", "--queue"), ("--coordinator", "powersweep serve"), ("--nodes=2", "--max-nodes")]
    {
        cluster.run(&[&dry[..], &[option, "--max-nodes=4"]].concat()).exits(2).says(&[said]);
    }
    cluster.run(&["launch", "pbs", "--time=1-0", "--cpus=1", "--dry-run"]).exits(2).says(&["no time of PBS"]);
    assert!(cluster.calls("qsub").is_empty());
    let checked = cluster.run(&["launch", "pbs", "--site", "site.toml", "--check"]).exits(0);
    checked.prints(&["worker at https://127.0.0.1", "takes the token"]);
}
