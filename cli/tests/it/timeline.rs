//! `powersweep timeline`: a span for each row, on slots without overlaps.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use serde_json::Value as Json;

use crate::farm::{terminate, worker};
use crate::rows;
use crate::sandbox::Sandbox;
use crate::sweeps::synthetic;

/// The spans of a trace by task id. Fails if two spans of a slot overlap.
#[track_caller]
fn spans(trace: &Json) -> BTreeMap<String, Json> {
    let events = trace["traceEvents"].as_array().expect("a list");
    let mut by_slot: BTreeMap<(u64, u64), Vec<(i64, i64)>> = BTreeMap::new();
    let mut spans = BTreeMap::new();
    for event in events.iter().filter(|event| event["ph"] == "X") {
        let number = |name: &str| event[name].as_i64().unwrap_or_else(|| panic!("{name} in {event}"));
        assert!(number("ts") >= 0 && number("dur") >= 0, "{event}");
        let slot = (number("pid") as u64, number("tid") as u64);
        by_slot.entry(slot).or_default().push((number("ts"), number("ts") + number("dur")));
        let id = event["args"]["task_id"].as_str().expect("a text").to_owned();
        assert_eq!(spans.insert(id, event.clone()), None, "a task has two spans");
    }
    for (slot, mut times) in by_slot {
        times.sort_unstable();
        assert!(times.windows(2).all(|pair| pair[0].1 <= pair[1].0), "spans overlap on {slot:?}");
    }
    spans
}

/// The names of the workers by process.
fn workers(trace: &Json) -> BTreeMap<u64, String> {
    let events = trace["traceEvents"].as_array().expect("a list");
    let named = events.iter().filter(|event| event["name"] == "process_name");
    named
        .map(|event| {
            (event["pid"].as_u64().expect("a number"), event["args"]["name"].as_str().expect("a text").to_owned())
        })
        .collect()
}

#[test]
fn a_trace_has_a_span_for_each_row() {
    let sandbox = Sandbox::new();
    sandbox.write("e.toml", synthetic("e", 40).replace("[workloads.synthetic]", "[workloads.odd-_name]"));
    sandbox.run(&["timeline", "e", "--data", "data"]).exits(2);
    sandbox.run(&["run", "e.toml", "--slots", "2", "--quiet", "--data", "data"]).exits(0);
    let printed = sandbox.run(&["timeline", "e", "--data", "data"]).exits(0).json();
    let args = ["timeline", "e", "--format", "perfetto", "--data", "data", "-o"];
    sandbox.run(&[&args[..], &["trace.json"]].concat()).exits(0).says(&["80 tasks of e on 1 worker in trace.json"]);
    sandbox.run(&[&args[..], &["trace.json.gz"]].concat()).exits(0);
    let plain = std::fs::read(sandbox.path("trace.json")).expect("it was written");
    let mut unpacked = Vec::new();
    let packed = std::fs::File::open(sandbox.path("trace.json.gz")).expect("it was written");
    flate2::read::GzDecoder::new(packed).read_to_end(&mut unpacked).expect("it is compressed");
    assert_eq!(plain, unpacked);
    assert_eq!(serde_json::from_slice::<Json>(&plain).expect("JSON"), printed);

    let found = spans(&printed);
    let rows = rows::tasks(&sandbox.path("data"), "e");
    assert_eq!(found.len(), rows.len());
    for row in rows.values() {
        let span = &found[row["task_id"].as_str().expect("a text")];
        assert_eq!(span["name"], "odd-_name cluster plain");
        for name in ["seed", "queue_order", "task_index", "workload"] {
            assert_eq!(span["args"][name], row[name], "{name}");
        }
        assert_eq!(span["dur"].as_f64(), row["wall_ms"].as_f64().map(|ms| (ms * 1000.0).floor()));
    }
    assert!(found.values().any(|span| span["ts"] == 0), "times count from the first task");
    let slots: BTreeSet<u64> = found.values().filter_map(|span| span["tid"].as_u64()).collect();
    assert_eq!(slots.first(), Some(&1));
}

#[test]
fn a_coordinator_gives_the_same_trace_as_the_data() {
    let sandbox = Sandbox::new();
    sandbox.write("e.toml", synthetic("e", 20));
    let (served, url) = sandbox.serve(&["--data", "data"]);
    // Names are the user's, and JSON has to escape them.
    let names = ["a \"quoted\" \\ name", "böse, {name}"];
    let workers_of_farm = names.map(|name| worker(&sandbox, name, &url, &["--data", "data"]));
    sandbox.run(&["submit", "e.toml", "--wait", "--data", "data"]).exits(0);
    let here = sandbox.run(&["timeline", "e", "--data", "data"]).exits(0).json();
    let access = sandbox.path("data/.powersweep/access/client.json");
    let access = access.to_str().expect("text");
    let there = sandbox.run(&["timeline", "e", "--access", access]).exits(0).json();
    assert_eq!(spans(&here).len(), 40);
    assert_eq!(spans(&here).keys().collect::<Vec<_>>(), spans(&there).keys().collect::<Vec<_>>());
    assert!(workers(&here).values().all(|name| names.contains(&name.as_str())), "{:?}", workers(&here));
    assert_eq!(workers(&here), workers(&there));
    workers_of_farm.into_iter().for_each(|worker| drop(terminate(worker)));
    terminate(served);
}
