//! `powersweep events`: every finished task once, also while the coordinator is killed and restarted.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value as Json;

use crate::farm::{terminate, worker};
use crate::sandbox::{BINARY, Ended, Sandbox};
use crate::sweeps::{TINY_LOG, WIDE, synthetic};

/// The lines that a command has printed. Each has the fields of every event.
#[track_caller]
fn lines(ended: &Ended, experiment: &str) -> Vec<Json> {
    let parse = |line: &str| -> Json {
        let event: Json = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert!(line.starts_with("{\"version\":1,\"time\":\""), "{line}");
        assert_eq!(event["experiment"], experiment, "{line}");
        let time = event["time"].as_str().expect("a text");
        assert!(time.ends_with('Z') && chrono::DateTime::parse_from_rfc3339(time).is_ok(), "{line}");
        event
    };
    ended.stdout.lines().map(parse).collect()
}

fn of_kind<'a>(events: &'a [Json], kind: &str) -> Vec<&'a Json> {
    events.iter().filter(|event| event["kind"] == kind).collect()
}

/// The texts of a field of the events of a kind. Fails if two events have the same.
#[track_caller]
fn unique(events: &[Json], kind: &str, field: &str) -> BTreeSet<String> {
    let found = of_kind(events, kind);
    let values: BTreeSet<String> = found.iter().map(|event| event[field].to_string()).collect();
    assert_eq!(values.len(), found.len(), "{kind} twice for one {field}");
    values
}

/// The names of the parts of a table, as JSON.
fn parts(data: &Path, experiment: &str, table: &str) -> BTreeSet<String> {
    let folder = std::fs::read_dir(data.join(experiment).join(table)).expect("it is there");
    folder.map(|entry| format!("{:?}", entry.expect("it can be listed").file_name())).collect()
}

#[test]
fn a_follower_sees_every_task_once_across_a_kill_of_the_coordinator() {
    let sandbox = Sandbox::new();
    sandbox.write("sweep.toml", synthetic("sweep", 100).replace("= 60", "= 60000"));
    let (mut served, url) = sandbox.serve(&[]);
    sandbox.run(&["submit", "sweep.toml", "--coordinator", &url]).exits(0);
    let mut following = sandbox.start(&["events", "sweep", "--follow"]);
    following.prints_line("no worker is connected");
    let first = worker(&sandbox, "first", "", &[]);
    following.prints_line("\"task_completed\"");
    served.signal("KILL");
    while served.runs() {}
    following.prints_line("\"coordinator_lost\"");
    let (served, url) = sandbox.serve(&[]);
    let second = worker(&sandbox, "second", "", &[]);
    terminate(first);
    let ended = following.wait().exits(0).says(&["the coordinator answers again"]);
    let events = lines(&ended, "sweep");

    let ids = unique(&events, "task_completed", "task_id");
    assert_eq!((ids.len(), unique(&events, "task_completed", "task_index").len()), (200, 200));
    let data = sandbox.path("results/data");
    assert_eq!(unique(&events, "part_published", "part"), parts(&data, "sweep", "tasks"));
    assert_eq!(of_kind(&events, "coordinator_lost").len(), 1);
    let epochs = unique(&events, "coordinator_found", "epoch");
    assert_eq!(epochs.len(), 2, "{epochs:?}");
    assert_eq!(events[0]["kind"], "coordinator_found");
    let joined: Vec<&str> =
        of_kind(&events, "worker_joined").iter().filter_map(|event| event["worker"].as_str()).collect();
    assert!(joined.contains(&"first") && joined.contains(&"second"), "{joined:?}");
    assert!(of_kind(&events, "worker_left").iter().any(|event| event["worker"] == "first"));
    let last = events.last().expect("there are events");
    assert_eq!(
        (&last["kind"], &last["state"], &last["done"]),
        (&"experiment_state".into(), &"finished".into(), &200.into())
    );
    let one = of_kind(&events, "task_completed")[0];
    for field in ["workload", "platform", "policy", "seed", "worker", "attempt", "started_at", "wall_ms"] {
        assert!(!one[field].is_null(), "{field} in {one}");
    }

    // The same from the tables, at the coordinator and in the data, and of a part of the time.
    for from in [["--data", "results/data"], ["--coordinator", url.as_str()]] {
        let told = sandbox.run(&[&["events", "sweep"][..], &from].concat()).exits(0);
        let told = lines(&told, "sweep");
        assert_eq!(unique(&told, "task_completed", "task_id"), ids);
        assert_eq!(unique(&told, "part_published", "part"), parts(&data, "sweep", "tasks"));
    }
    let since = |when: &str| sandbox.run(&["events", "sweep", "--since", when]);
    assert_eq!(lines(&since("1h").exits(0), "sweep").iter().filter(|e| e["kind"] == "task_completed").count(), 200);
    let mut times: Vec<&str> =
        of_kind(&events, "task_completed").iter().filter_map(|event| event["time"].as_str()).collect();
    times.sort_unstable();
    let later = lines(&since(times[150]).exits(0), "sweep");
    let later = of_kind(&later, "task_completed").len();
    assert_eq!(later, times.iter().filter(|time| **time >= times[150]).count());
    assert_eq!(since("2999-01-01T00:00:00Z").exits(0).stdout, "");
    since("yesterday").exits(2).says(&["`yesterday` is neither an instant such as"]);
    terminate(second);
    terminate(served);
    let again = sandbox.run(&["events", "sweep", "--follow"]).exits(0);
    assert_eq!(unique(&lines(&again, "sweep"), "task_completed", "task_id"), ids);
}

#[test]
fn a_follower_shows_failed_attempts_and_ends_like_a_wait() {
    let sandbox = Sandbox::new();
    sandbox.write("wide.toml", WIDE);
    sandbox.write("logs/tiny.swf", TINY_LOG);
    sandbox.write("other.toml", synthetic("other", 2));
    let (served, url) = sandbox.serve(&[]);
    sandbox.run(&["submit", "wide.toml", "--traces", "logs", "--coordinator", &url]).exits(0);
    let mut following = sandbox.start(&["events", "wide", "-f", "--coordinator", &url]);
    following.prints_line("experiment_state");
    // The reader of the other one leaves after the first line.
    let mut command = sandbox.command("sh");
    let script = "{ \"$0\" events wide --follow; echo $? > code; } | head -n 1";
    command.args(["-c", script, BINARY]);
    let mut left = sandbox.spawn(command);
    left.prints_line("coordinator_found");
    let worker = worker(&sandbox, "w", &url, &[]);
    let ended = following.wait().exits(3).says(&["wide: 2 tasks failed"]);
    let events = lines(&ended, "wide");
    assert_eq!(unique(&events, "task_completed", "task_index").len(), 6);
    assert_eq!(unique(&events, "attempt_failed", "task_index").len(), 2);
    let failed = of_kind(&events, "attempt_failed")[0];
    assert_eq!((&failed["failure_kind"], &failed["attempt"]), (&"spec".into(), &1.into()), "{failed}");
    assert!(failed["message"].as_str().is_some_and(|message| message.starts_with("job 2")), "{failed}");
    let tables: BTreeSet<String> =
        of_kind(&events, "part_published").iter().map(|event| event["table"].to_string()).collect();
    assert_eq!(tables.into_iter().collect::<Vec<_>>(), ["\"failures\"", "\"tasks\""]);
    left.wait().exits(0);
    assert_eq!(std::fs::read_to_string(sandbox.path("code")).expect("it was written").trim(), "0");
    terminate(worker);

    sandbox.run(&["submit", "other.toml", "--coordinator", &url]).exits(0);
    let mut following = sandbox.start(&["events", "other", "--follow", "--coordinator", &url]);
    following.prints_line("experiment_state");
    sandbox.run(&["pause", "other"]).exits(0);
    following.prints_line("\"state\":\"paused\"");
    sandbox.run(&["cancel", "other"]).exits(0);
    following.wait().exits(11).says(&["other was cancelled by another command"]).prints(&["\"state\":\"cancelled\""]);
    sandbox.run(&["resume", "other"]).exits(0);
    sandbox.run(&["events", "nosuch", "--follow"]).exits(2).says(&["there is no experiment nosuch"]);
    terminate(served);
    sandbox.run(&["events", "wide", "--follow"]).exits(3).says(&["wide: 2 tasks failed"]);
    sandbox.run(&["events", "other", "--follow"]).exits(7).says(&["no coordinator runs the tasks of other"]);
    sandbox.run(&["events", "nosuch"]).exits(2).says(&["there is no experiment nosuch"]);
}
