//! `powersweep lp`: the linear programs of a manifest.

use crate::sandbox::Sandbox;

/// The worked example of Al-Daoud et al. 2011, section 4, with machine 1 twice.
const WORKED: &str = r#"version = 1
name = "worked"
seeds = [1, 2]

[workloads.tasks]
source = "poisson-classes"
class_arrivals_per_s = [1, 1.5]

[platforms.machines]
machine = "rate-matrix"
group_rates_per_s = [9, 5, 2, 1]
group_busy_w = [1, 20, 1, 20]
group_idle_w = [0.1, 0.1]

[policies.fcfs]
kind = "class-fcfs"

[policies.lpas]
kind = "class-lpas"
lpas_capacity = [1, 9]

[statistics]
statistics_kind = "horizon"
"#;

#[test]
fn the_worked_example_of_the_paper_is_solved() {
    let sandbox = Sandbox::new();
    sandbox.write("worked.toml", WORKED);
    let table = sandbox.run(&["lp", "worked.toml"]).exits(0);
    table.prints(&["lambda* 1.764706, load 0.566667", "0.3529", "0.6471", "c 1.000000 (lpas): 0.975000 W", "0.1111"]);
    // One system for all seeds and policies. The capacity 9 is above lambda*, which replaces it.
    let json = sandbox.run(&["lp", "worked.toml", "--format", "json"]).exits(0).json();
    assert_eq!(json["systems"].as_array().map(Vec::len), Some(1), "{json}");
    let system = &json["systems"][0];
    let near = |value: &serde_json::Value, expected: f64| {
        let value = value.as_f64().expect("a number");
        assert!((value - expected).abs() < 1e-6, "{value} is not {expected}");
    };
    near(&system["lambda"], 30.0 / 17.0);
    near(&system["theta"][1][1], 11.0 / 17.0);
    assert_eq!(system["allocations"].as_array().map(Vec::len), Some(2), "{system}");
    near(&system["allocations"][0]["power_w"], 0.975);
    near(&system["allocations"][0]["loads"][0], 0.75 + 1.0 / 9.0);
    near(&system["allocations"][1]["capacity"], 30.0 / 17.0);
    near(&system["allocations"][1]["power_w"], 21.0);
    // Equal machines form a group and share its load evenly.
    sandbox.write("twice.toml", WORKED.replace("group_idle_w", "group_servers = [2, 1]\ngroup_idle_w"));
    let json = sandbox.run(&["lp", "twice.toml", "--index", "0", "--format", "json"]).exits(0).json();
    assert_eq!(json["systems"][0]["group_servers"], serde_json::json!([2, 1]));
    // Group 1 serves only class 2: 5 v = lambda, 2 * 2 + (1 - v) = 1.5 lambda.
    near(&json["systems"][0]["lambda"], 50.0 / 17.0);
}

/// Group 1 leaves and group 2 slows down at 10 s; arrivals double at 20 s.
#[test]
fn every_phase_of_a_changing_system_is_solved() {
    let sandbox = Sandbox::new();
    let changes =
        "[0.1, 0.1]\nspeed_change_at_s = [10, 10]\nspeed_change_groups = [1, 2]\nspeed_change_factors = [0, 0.5]";
    let arrivals = "[1, 1.5]\narrivals_change_at_s = [20]\narrivals_change_factors = [2]";
    sandbox.write("changing.toml", WORKED.replace("[0.1, 0.1]", changes).replace("[1, 1.5]", arrivals));
    let json = sandbox.run(&["lp", "changing.toml", "--format", "json"]).exits(0).json();
    let near = |value: &serde_json::Value, expected: f64| {
        let value = value.as_f64().expect("a number");
        assert!((value - expected).abs() < 1e-6, "{value} is not {expected}");
    };
    assert_eq!(json["systems"].as_array().map(Vec::len), Some(1), "{json}");
    near(&json["systems"][0]["lambda"], 30.0 / 17.0);
    let changes = json["systems"][0]["changes"].as_array().expect("a list");
    assert_eq!(changes.iter().map(|change| change["at_s"].as_f64()).collect::<Vec<_>>(), [Some(10.0), Some(20.0)]);
    // Machine 2 alone at rates 2.5 and 0.5: lambda / 2.5 + 1.5 lambda / 0.5 = 1.
    near(&changes[0]["lambda"], 5.0 / 17.0);
    near(&changes[0]["theta"][1][1], 15.0 / 17.0);
    near(&changes[1]["lambda"], 2.5 / 17.0);
    near(&changes[1]["arrivals_per_s"][0], 2.0);
    // Each phase allocates at most its own capacity.
    near(&changes[1]["allocations"][0]["capacity"], 2.5 / 17.0);
    let table = sandbox.run(&["lp", "changing.toml"]).exits(0);
    table.prints(&["lambda* 1.764706", "from 10 s on, arrivals a second 1, 1.5", "lambda* 0.294118", "from 20 s on"]);

    // Two systems differ only in a change.
    let changes =
        "[0.1, 0.1]\nspeed_change_at_s = [10]\nspeed_change_groups = [2]\nspeed_change_factors = [[0.5], [2]]";
    sandbox.write("two.toml", WORKED.replace("[0.1, 0.1]", changes));
    let json = sandbox.run(&["lp", "two.toml", "--format", "json"]).exits(0).json();
    assert_eq!(json["systems"].as_array().map(Vec::len), Some(2), "{json}");
}

#[test]
fn a_manifest_without_such_a_system_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.write("worked.toml", WORKED);
    let batch = sandbox.run(&["lp", "quickstart"]).exits(2);
    batch.says(&["no task has a system with a rate for each class", "poisson-classes"]);
    // The manifest's logs are not needed.
    sandbox.run(&["lp", "etinski2010"]).exits(2).says(&["no task has a system with a rate for each class"]);
    sandbox.run(&["lp", "worked.toml", "--index", "999"]).exits(2).says(&["no task 999"]);
    sandbox.write("wrong.toml", WORKED.replace("[9, 5, 2, 1]", "[9, 5, 2]"));
    sandbox.run(&["lp", "wrong.toml"]).exits(2).says(&["`group_rates_per_s` has 3 values: 2 classes"]);
    sandbox.write("mixed.toml", WORKED.replace("kind = \"class-fcfs\"", "kind = \"batch\""));
    sandbox.run(&["plan", "mixed.toml"]).exits(2).says(&["`source` \"poisson-classes\" is for queues"]);
}
