//! Signals of a manifest, from their files to the table `accounts`.

use serde_json::Value as Json;

use crate::rows::{Row, near, number, read};
use crate::sandbox::Sandbox;

/// A day of two intensities that repeats, a tariff in local time over a spring change of clocks, and a cap at night.
const FILES: [(&str, &str); 3] = [
    ("carbon.csv", "offset,carbon_intensity\n0,100\n43200,300\n86400,100\n"),
    (
        "price.csv",
        "Date,Price (EUR/MWh)\n2023-03-26 00:00,50\n2023-03-26 01:00,60\n2023-03-26 03:00,70\n2023-03-26 04:00,80\n",
    ),
    ("cap.csv", "seconds,cap_percent\n0,60\n28800,100\n86400,100\n"),
];

const MANIFEST: &str = r#"
version = 1
name = "grid"

[workloads.small]
source = "lublin"
synthetic_jobs_count = 60
wide_jobs = "clamp"

[platforms.machine]
procs = 64
power_top_w = 200

[policies.at-once]

[policies.waits]
deferral = "lowest-window"
defer_signal = "grid"
defer_wait_max_s = [21600, 86400]

[policies.night]
power_cap = "admission"
cap_signal_share = "night"

[signals.grid]
quantity = "carbon"
file = "carbon.csv"
unit = "g/kWh"
beyond = "wrap"

[signals.tariff]
quantity = "price"
file = "price.csv"
timezone = "Europe/Berlin"
anchor = "2023-03-26T00:00:00+01:00"
beyond = "wrap"

[signals.night]
quantity = "cap-share"
file = "cap.csv"
unit = "%"
beyond = "wrap"
"#;

fn sandbox(manifest: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("grid.toml", manifest);
    for (name, text) in FILES {
        sandbox.write(name, text);
    }
    sandbox
}

/// The rows of a table in the order of tasks and signals.
fn rows(sandbox: &Sandbox, table: &str) -> Vec<Row> {
    let mut rows = read(&sandbox.path("results/data"), "grid", table);
    rows.sort_by_key(|row| (row["task_index"].as_i64(), row.get("signal").map(Json::to_string)));
    rows
}

/// What `plan --json` prints.
fn plan(sandbox: &Sandbox, options: &[&str]) -> Json {
    let ended = sandbox.run(&[&["plan", "grid.toml", "--json"], options].concat()).exits(0);
    serde_json::from_str(&ended.stdout).expect("JSON")
}

#[test]
fn each_task_has_an_account_of_each_signal() {
    let sandbox = sandbox(MANIFEST);
    sandbox.run(&["run", "grid.toml"]).exits(0).says(&["4 of 4 tasks done"]);
    let (tasks, accounts) = (rows(&sandbox, "tasks"), rows(&sandbox, "accounts"));
    assert_eq!((tasks.len(), accounts.len()), (4, 12));
    for task in &tasks {
        let own: Vec<&Row> = accounts.iter().filter(|account| account["task_id"] == task["task_id"]).collect();
        let signals: Vec<&str> = own.iter().filter_map(|account| account["signal"].as_str()).collect();
        assert_eq!(signals, ["grid", "night", "tariff"]);
        let energy_kwh = number(task, "energy_total_j") / 3.6e6;
        for (account, name) in [(own[0], "emissions_g"), (own[2], "cost")] {
            let mean = number(account, "signal_energy_mean");
            assert!(near(number(account, name), mean * energy_kwh, 1e-12), "{account:?}");
        }
        assert!((100.0..300.0).contains(&number(own[0], "signal_energy_mean")), "{:?}", own[0]);
        assert_eq!((&own[2]["currency"], &own[2]["anchor"]), (&"EUR".into(), &"2023-03-25T23:00:00Z".into()));
        assert_eq!((&own[0]["cost"], &own[2]["emissions_g"]), (&Json::Null, &Json::Null));
        if task["policy"] == "at-once" {
            // A job that waits for a free processor starts later than at its submission.
            assert_ne!(own[0]["jobs_emissions_g"], own[0]["at_once_emissions_g"]);
        }
    }
    // A task without the farm has the same row, and other tables join the metrics of tasks.
    sandbox.run(&["simulate", "grid.toml", "--index", "1", "--accounts", "one.csv"]).exits(0);
    let one = std::fs::read_to_string(sandbox.path("one.csv")).expect("the file was written");
    let second = accounts.iter().find(|account| account["task_index"] == 1).expect("task 1 has accounts");
    assert!(one.contains(&second["emissions_g"].to_string()), "{one}");
    let by =
        ["results", "grid", "--table", "accounts", "--by", "policy,signal", "--columns", "wait_s_mean,emissions_g"];
    sandbox.run(&by).exits(0).prints(&["night", "tariff"]);
    sandbox.run(&["verify", "grid"]).exits(0).prints(&["4 rows equal in every column"]);
}

#[test]
fn plan_shows_how_each_file_is_read() {
    let sandbox = sandbox(MANIFEST);
    sandbox.run(&["plan", "grid.toml"]).exits(0).prints(&[
        "Price (EUR/MWh) [EUR/MWh]",
        "2023-03-25T23:00:00Z",
        "uneven",
    ]);
    let signals = &plan(&sandbox, &[])["signals"];
    assert_eq!(signals[2]["times"], "local times of Europe/Berlin");
    assert_eq!((&signals[2]["rows_read"], &signals[2]["rows_kept"]), (&4.into(), &4.into()));
}

#[test]
fn altered_rows_are_told() {
    let sandbox = sandbox(&MANIFEST.replace("unit = \"g/kWh\"", "unit = \"g/kWh\"\ngaps = \"hold\""));
    sandbox.write("carbon.csv", "offset,carbon_intensity\n0,100\n3600,120\n7200,110\n14400,110\n14400,110\n18000,90\n");
    let told = ["signal grid, carbon.csv: of 6 rows, 1 dropped (equal_duplicate), 1 added (time_filled)"];
    sandbox.run(&["run", "grid.toml"]).exits(0).says(&told);
}

#[test]
fn ids_of_tasks_depend_on_the_signals_that_their_policy_reads() {
    let sandbox = sandbox(MANIFEST);
    let task = |index: &str| {
        let task = plan(&sandbox, &["--index", index]);
        (task["policy"].clone(), task["task_id"].clone())
    };
    let before = [task("0"), task("2")];
    assert_eq!([&before[0].0, &before[1].0], ["at-once", "waits"]);
    sandbox.write("carbon.csv", "offset,carbon_intensity\n0,200\n43200,300\n86400,100\n");
    let after = [task("0"), task("2")];
    assert_eq!(before[0], after[0]);
    assert_ne!(before[1], after[1]);
}

#[test]
fn changed_signals_need_a_restart() {
    let sandbox = sandbox(MANIFEST);
    sandbox.run(&["run", "grid.toml"]).exits(0);
    sandbox.write("price.csv", &FILES[1].1.replace(",50", ",55"));
    sandbox.run(&["run", "grid.toml"]).exits(8).says(&["signal file price.csv has other content", "--restart"]);
    sandbox.run(&["run", "grid.toml", "--restart"]).exits(0).says(&["4 of 4 tasks done"]);
}

#[test]
fn wrong_signals_are_refused_before_anything_runs() {
    let sandbox = sandbox(MANIFEST);
    sandbox.write("price.csv", "Date,Price (EUR/MWh)\n2023-03-26 00:00,50\n2023-03-26 02:30,60\n");
    sandbox.run(&["run", "grid.toml"]).exits(4).says(&["price.csv", "clock_change"]);
    sandbox.write("price.csv", FILES[1].1);
    sandbox.write("grid.toml", &MANIFEST.replace("defer_signal = \"grid\"", "defer_signal = \"gird\""));
    sandbox.run(&["plan", "grid.toml"]).exits(2).says(&["no block [signals.gird]", "did you mean `grid`?"]);
    // A signal on calendar time needs the begin of a workload that states none.
    sandbox.write("grid.toml", &MANIFEST.replace("anchor = \"2023-03-26T00:00:00+01:00\"\n", ""));
    sandbox.run(&["run", "grid.toml"]).exits(3).says(&["set `anchor` in [signals.tariff]"]);
    sandbox
        .write("grid.toml", &MANIFEST.replace("name = \"grid\"", "name = \"short\"").replace("beyond = \"wrap\"", ""));
    sandbox.run(&["run", "grid.toml"]).exits(3).says(&[
        "(carbon.csv) covers 0 s to 129600 s",
        "has no value at 86400 s",
        "simulate MANIFEST --index 0",
    ]);
}
