//! Designs with ranges of signals: the rows of `accounts` that a task has, and their indices.

use std::collections::BTreeSet;

use serde_json::Value as Json;

use crate::rows::{Row, lines, near, number, read};
use crate::sandbox::Sandbox;
use crate::signals::CARBON;

/// A design over a platform and a block of signals, and one of another block alone.
const DESIGNED: &str = r#"
version = 1
name = "grid"

[designs.knobs]
kind = "saltelli"
count = 8

[designs.sizes]
kind = "one-at-a-time"
count = 3

[workloads.small]
source = "lublin"
synthetic_jobs_count = 60
wide_jobs = "clamp"

[platforms.machine]
procs = 64
power_top_w = 200
size_factor = { from = 1, to = 2, design = "knobs" }

[policies.easy]

[signals.grid]
quantity = "carbon"
file = "carbon.csv"
unit = "g/kWh"
beyond = "wrap"
pue = { from = 1, to = 1.5, design = "knobs" }

[signals.stored]
quantity = "carbon"
file = "carbon.csv"
unit = "g/kWh"
beyond = "wrap"
battery_policy = "single"
battery_threshold = 200
battery_kwh = { from = 0, to = 200, design = "sizes" }
battery_charge_w = 20_000
"#;

#[test]
fn a_task_has_accounts_of_its_points_of_a_design() {
    let sandbox = Sandbox::new();
    sandbox.write("grid.toml", DESIGNED);
    sandbox.write("carbon.csv", CARBON);
    let table = sandbox.run(&["plan", "grid.toml"]).exits(0);
    table.prints(&["knobs   saltelli       32", "pue", "1 to 1.5", "sizes   one-at-a-time  4       1", "0 to 200"]);
    let designed = sandbox.run(&["plan", "grid.toml", "--json"]).exits(0).json()["signals"].clone();
    let pue = |row: &Row| {
        let is_own = |signal: &&Json| signal["signal"] == "grid" && signal["signal_index"] == row["signal_index"];
        let found = designed.as_array().expect("signals").iter().find(is_own).expect("the signal of the row");
        found["designed"]["pue"].as_f64().expect("a number")
    };
    sandbox.run(&["run", "grid.toml"]).exits(0);
    let [tasks, accounts] = ["tasks", "accounts"].map(|table| read(&sandbox.path("results/data"), "grid", table));
    // A row of A and its rows of AB and B have two machines and two values of `pue`: one simulation has all rows of a machine.
    let points: BTreeSet<[u64; 2]> = (accounts.iter().filter(|row| row["signal"] == "grid"))
        .map(|row| {
            let task = tasks.iter().find(|task| task["task_id"] == row["task_id"]).expect("its task");
            let energy_j = number(task, "energy_total_j");
            assert!(near(number(row, "facility_energy_j"), pue(row) * energy_j, 1e-12), "{row:?}");
            [number(task, "size_factor"), pue(row)].map(f64::to_bits)
        })
        .collect();
    let of_label = |label: &str| accounts.iter().filter(|row| row["signal"] == label).count();
    assert_eq!((tasks.len(), points.len(), of_label("grid"), of_label("stored")), (16, 32, 32, 3 * 16));
    let sizes: BTreeSet<u64> = (accounts.iter().filter(|row| row["signal"] == "stored"))
        .map(|row| number(row, "battery_kwh").to_bits())
        .collect();
    assert_eq!(sizes, [0.0, 100.0, 200.0].map(f64::to_bits).into());
    sandbox.run(&["verify", "grid"]).exits(0).prints(&["16 rows equal in every column"]);
    sandbox.run(&["simulate", "grid.toml", "--index", "0", "--accounts", "one.csv"]).exits(0);
    let one = std::fs::read_to_string(sandbox.path("one.csv")).expect("the file was written");
    let first = accounts.iter().find(|row| row["task_index"] == 0).expect("task 0 has accounts");
    assert!(one.contains(&first["emissions_g"].to_string()), "{one}");

    // A key of signals has indices as a parameter has. The mean PUE depends on `pue` alone. The energy of a task does not depend on
    // `pue`.
    let sensitivity = |more: &[&str]| lines(&sandbox, &[&["sensitivity", "grid"], more].concat());
    let of = |found: &[Row], name: &str| {
        let row = found.iter().find(|row| row["parameter"] == name);
        row.map(|row| [number(row, "S1"), number(row, "ST")])
    };
    let found = sensitivity(&["--of", "pue_mean", "--where", "signal=grid", "--design", "knobs"]);
    let [first, total] = of(&found, "pue").expect("an index");
    assert!((first - 1.0).abs() < 0.3 && (total - 1.0).abs() < 0.3, "{found:?}");
    assert!(of(&found, "size_factor").expect("an index").iter().all(|share| share.abs() < 1e-9), "{found:?}");
    let found = sensitivity(&["--of", "facility_energy_j", "--where", "signal=grid"]);
    let totals = ["pue", "size_factor"].map(|name| of(&found, name).expect("an index")[1]);
    assert!(totals.iter().all(|total| *total > 0.01), "{found:?}");
    let found = sensitivity(&["--of", "energy_total_j"]);
    assert!(of(&found, "pue").is_none() && of(&found, "size_factor").is_some(), "{found:?}");
    let by = ["sensitivity", "grid", "--of", "pue_mean", "--by", "pue"];
    sandbox.run(&by).exits(2).says(&["`pue` is a parameter of the design"]);

    // Other points are other signals.
    sandbox.write("grid.toml", DESIGNED.replace("count = 8", "count = 16"));
    sandbox.run(&["run", "grid.toml"]).exits(8).says(&["[signals] differ", "--restart"]);
    sandbox.write("grid.toml", DESIGNED.replace("count = 8", "count = 4096"));
    sandbox
        .run(&["plan", "grid.toml"])
        .exits(2)
        .says(&["the design `knobs` has 16384 points", "an own design of [signals.grid]"]);
}
