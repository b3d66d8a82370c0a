//! Signals of a manifest, from their files to the table `accounts`.

use serde_json::Value as Json;

use crate::rows::{Row, near, number, read};
use crate::sandbox::Sandbox;

/// A day of two intensities.
pub(crate) const CARBON: &str = "offset,carbon_intensity\n0,100\n43200,300\n86400,100\n";

/// A day of two intensities that repeats, a tariff in local time over a spring change of clocks, and a cap at night.
const FILES: [(&str, &str); 3] = [
    ("carbon.csv", CARBON),
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
        let read = own.iter().filter(|account| account["read_by_policy"] == true);
        let read: Vec<&str> = read.filter_map(|account| account["signal"].as_str()).collect();
        let expected: &[&str] = match task["policy"].as_str() {
            Some("waits") => &["grid"],
            Some("night") => &["night"],
            _ => &[],
        };
        assert_eq!(read, expected);
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
    let equal = ["4 rows equal in every column, bit for bit; and of other tables: accounts 12 rows"];
    sandbox.run(&["verify", "grid"]).exits(0).prints(&equal);
    // No policy reads the tariff: its tasks are the same, and their accounts are not.
    sandbox.write("price.csv", FILES[1].1.replace(",50", ",55"));
    let other = sandbox.run(&["verify", "grid"]).exits(1).prints(&["4 rows equal in every column"]);
    other.says(&["not compared: accounts of 4 tasks: price.csv is another file than the rows were made from"]);
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
    sandbox.write("price.csv", FILES[1].1.replace(",50", ",55"));
    sandbox.run(&["run", "grid.toml"]).exits(8).says(&["signal file price.csv has other content", "--restart"]);
    sandbox.run(&["run", "grid.toml", "--restart"]).exits(0).says(&["4 of 4 tasks done"]);
}

#[test]
fn wrong_signals_are_refused_before_anything_runs() {
    let sandbox = sandbox(MANIFEST);
    sandbox.write("price.csv", "Date,Price (EUR/MWh)\n2023-03-26 00:00,50\n2023-03-26 02:30,60\n");
    sandbox.run(&["run", "grid.toml"]).exits(4).says(&["price.csv", "clock_change"]);
    sandbox.write("price.csv", FILES[1].1);
    sandbox.write("grid.toml", MANIFEST.replace("defer_signal = \"grid\"", "defer_signal = \"gird\""));
    sandbox.run(&["plan", "grid.toml"]).exits(2).says(&["no block [signals.gird]", "did you mean `grid`?"]);
    sandbox.write("grid.toml", MANIFEST.replace("file = \"carbon.csv\"", "file = \"carbn.csv\""));
    let missing = sandbox.run(&["plan", "grid.toml"]).exits(4);
    missing.says(&["the current folder; similar names there: carbon.csv", "`carbn.csv` (line 27, [signals.grid])"]);
    // All files are reported at once.
    sandbox.write("grid.toml", MANIFEST.replace("unit = \"g/kWh\"", "unit = \"g\"").replace("Berlin", "Bonn"));
    sandbox.run(&["run", "grid.toml"]).exits(4).says(&["carbon.csv: ", "price.csv: ", "\"Europe/Bonn\""]);
    // A signal on calendar time needs the begin of a workload that states none.
    sandbox.write("grid.toml", MANIFEST.replace("anchor = \"2023-03-26T00:00:00+01:00\"\n", ""));
    sandbox
        .run(&["plan", "grid.toml"])
        .exits(0)
        .prints(&["the signal `tariff` is on calendar time", "grid.toml:33 [signals.tariff]"]);
    sandbox.run(&["run", "grid.toml", "--quiet"]).exits(3).says(&["set `anchor` in [signals.tariff]"]);
    let short = MANIFEST.replace("name = \"grid\"", "name = \"short\"");
    sandbox.write("grid.toml", short.replace("beyond = \"wrap\"", ""));
    sandbox.run(&["plan", "grid.toml"]).exits(0).prints(&[
        "warning: the signal `tariff` (price.csv) covers 2023-03-25T23:00:00Z to",
        "[signals.tariff], first in task 0; the task fails",
    ]);
    sandbox.run(&["run", "grid.toml", "--quiet"]).exits(3).says(&[
        "(carbon.csv) covers 0 s to 129600 s",
        "`night` (cap.csv) covers 0 s to 86400 s, and the run needs it at 86400 s",
        "simulate MANIFEST --index 0",
    ]);
    sandbox.write("grid.toml", short);
    sandbox
        .run(&["run", "grid.toml"])
        .exits(8)
        .says(&["short has no rows, and was submitted with other inputs", "--restart"]);
    sandbox.run(&["run", "grid.toml", "--restart"]).exits(0);
}

#[test]
fn answers_take_columns_of_accounts() {
    let sandbox = sandbox(&MANIFEST.replace("[workloads", "seeds = { from = 1, count = 2 }\n[workloads"));
    sandbox.run(&["run", "grid.toml"]).exits(0);
    // Means over tasks with different parameters have intervals over the seeds, too.
    let accounts = ["results", "grid", "--table", "accounts", "--by", "policy", "--where", "signal=grid"];
    let shown = sandbox.run(&[&accounts[..], &["--columns", "jobs_emissions_g"]].concat()).exits(0);
    assert_eq!(shown.stdout.matches('±').count(), 3, "{shown}");
    let best = |column: &str, more: &[&str]| {
        sandbox.run(&[&["best", "grid", "--format", "csv", "--by", "policy", "--minimise", column], more].concat())
    };
    best("jobs_emissions_g", &[]).exits(0).prints(&["waits,"]);
    best("jobs_emissions_g", &["--subject-to", "jobs_cost > 0", "--subject-to", "wait_s_mean <= 1e9"]).exits(0);
    best("jobs_emissions_g", &["--subject-to", "wait_s_mean <= 1h"])
        .exits(2)
        .says(&["for 1h, write wait_s_mean<=3600"]);
    best("signal_time_mean", &[]).exits(2).says(&["has values of several signals (grid, night, tariff)"]);
    best("signal_time_mean", &["--where", "signal=tariff"]).exits(0).prints(&["policy,"]);
    // A table refuses a mean over signals, too, and so does a figure.
    let mean = ["results", "grid", "--table", "accounts", "--by", "policy", "--columns", "signal_time_mean"];
    sandbox.run(&mean).exits(2).says(&["has values of several signals (grid, night, tariff)", "group by `signal`"]);
    sandbox.run(&[&mean[..], &["--where", "signal=grid"]].concat()).exits(0);
    if cfg!(feature = "figures") {
        let plot = ["plot", "grid", "--table", "accounts", "-o", "mean.csv", "--x"];
        for kind in [
            &["policy", "--y", "signal_time_mean", "--figure", "bars"][..],
            &["signal_time_mean", "--figure", "cdf"],
            &["signal_time_mean", "--y", "facility_energy_j", "--figure", "heatmap"],
        ] {
            let refused = sandbox.run(&[&plot[..], kind].concat()).exits(2);
            refused.says(&["has values of several signals (grid, night, tariff)"]);
        }
        sandbox.run(&[&plot[..], &["signal_time_mean", "--figure", "cdf", "--facet", "signal"]].concat()).exits(0);
    }
    let sets = ["compare", "grid:policy=at-once", "grid:policy=waits,defer_wait_max_s=86400"];
    sandbox
        .run(
            &[&sets[..], &["--columns", "wait_s_mean,jobs_emissions_g,window_emissions_g", "--where", "signal=grid"]]
                .concat(),
        )
        .exits(0)
        .prints(&["wait_s_mean", "jobs_emissions_g (g) ", "window_emissions_g (g) ", "over 2 seeds"]);
    // A cost has the currency of its price. Other signals have no cost, and no row of it.
    let both = sandbox.run(&[&sets[..], &["--columns", "window_cost,window_emissions_g"]].concat()).exits(0);
    let times =
        ["window_cost", "window_cost (EUR) ", "window_emissions_g"].map(|text| both.stdout.matches(text).count());
    assert_eq!(times, [1, 1, 1], "{both}");
    // Of a machine without watts, what is weighed is relative, and so are emissions and costs.
    let relative = MANIFEST.replace("power_top_w = 200", "").replace("\"grid\"\n\n", "\"bare\"\n\n");
    sandbox.write("bare.toml", &relative);
    sandbox.run(&["run", "bare.toml"]).exits(0).says(&["power is relative", "to get joules, emissions and costs"]);
    let columns = ["--columns", "energy_total_j,window_emissions_g,window_cost,embodied_emissions_g"];
    let bare = ["results", "bare", "--table", "accounts", "--by", "signal", "--format", "markdown"];
    let bare = sandbox.run(&[&bare[..], &columns].concat()).exits(0);
    let heading = bare.stdout.lines().next().unwrap_or_default();
    assert!(heading.matches("relative)").count() == 3 && heading.contains("embodied_emissions_g (g)"), "{heading}");
    let find = ["find", "grid.toml", "--over", "defer_wait_max_s=21600,86400", "--minimise"];
    let found = sandbox.run(&[&find[..], &["window_emissions_g", "--json"]].concat()).exits(0).json();
    let answer = &found["groups"][0]["answer"];
    assert_eq!(answer["seeds"], 2, "{found}");
    sandbox.run(&[&find[..], &["window_emissions_g"]].concat()).exits(0).prints(&["window_emissions_g (g)"]);
    if cfg!(feature = "figures") {
        sandbox.run(&[&find[..], &["window_emissions_g", "-o", "map.csv"]].concat()).exits(0);
        let map = std::fs::read_to_string(sandbox.path("map.csv")).expect("the map");
        assert!(map.lines().next().is_some_and(|header| header.contains("window_emissions_g")), "{map}");
    }
    sandbox
        .run(&[&find[..], &["signal_time_mean"]].concat())
        .exits(2)
        .says(&["choose one by the condition signal=LABEL"]);
    sandbox.run(&[&find[..], &["signal_time_mean", "--subject-to", "signal=grid"]].concat()).exits(0);
}

/// A table and a search show the currency of a cost. Costs of several signals are refused before anything runs.
#[test]
fn costs_have_the_currency_of_their_price() {
    let sandbox = sandbox("");
    let price = |label: &str, currency: &str, more: &str| {
        let file = format!("{label}.csv");
        let values = "2024-01-01 00:00,80\n2024-01-01 12:00,60\n";
        sandbox.write(&file, format!("time (UTC),Price ({currency}/MWh)\n{values}"));
        format!(
            "[signals.{label}]\nquantity = \"price\"\nfile = \"{file}\"\nanchor = \"2024-01-01\"\nbeyond = \"wrap\"\n{more}"
        )
    };
    let signals = price("de", "EUR", "") + &price("us", "USD", "pue = [1, 1.3]\n");
    sandbox.write(
        "costs.toml",
        format!(
            "version = 1\nname = \"costs\"\nseeds = [1, 2]\n[workloads.w]\nsource = \"lublin\"\nsynthetic_jobs_count = 20\n\
             wide_jobs = \"clamp\"\n[platforms.m]\nprocs = 16\npower_top_w = 100\nsize_factor = 1\n[policies.p]\n\
             backfill = [\"easy\", \"none\"]\n{signals}"
        ),
    );
    sandbox.run(&["run", "costs.toml", "--quiet"]).exits(0);
    let costs = ["results", "costs", "--table", "accounts", "--by", "signal", "--columns", "cost", "--format", "csv"];
    let both = sandbox.run(&costs).exits(0).prints(&["signal,currency,", "de,EUR,", "us,USD,"]);
    assert_eq!(both.stdout.lines().count(), 3, "{both}");
    let one = [&costs[..8], &["--where", "signal=de"]].concat();
    assert!(sandbox.run(&one).exits(0).prints(&["cost (EUR)"]).stdout.matches("EUR").count() == 1);
    // A comparison has the currency of each signal, and none of two.
    let sets = ["costs:backfill=easy,signal_index=0", "costs:backfill=none,signal_index=0"];
    let compare = ["compare", sets[0], sets[1], "--columns", "cost", "--format", "csv"];
    sandbox.run(&compare).exits(0).prints(&["de,cost,EUR,", "us,cost,USD,"]);
    let of_two = ["compare", "costs:backfill=easy,signal=de", "costs:backfill=easy,signal=us,signal_index=0"];
    let [one, all] = [["--columns", "cost"], ["--table", "accounts"]].map(|more| [&of_two[..], &more].concat());
    sandbox.run(&one).exits(2).says(&["`cost` has the unit EUR in A and USD in B: values in different units"]);
    sandbox.run(&all).exits(0).says(&["`jobs_cost` has the unit EUR in A", "`window_cost` has the unit EUR in A"]);
    // Costs have no ratio to costs in another currency, and one to the costs under each signal.
    let one = ["--where", "signal_index=0", "--where", "backfill=easy"];
    let mixed = sandbox.run(&[&costs[..8], &one, &["--ratio-to", "signal=us"]].concat()).exits(2);
    mixed.says(&["costs in EUR have no ratio to costs in USD"]);
    let ratios = [&costs[..8], &one[..2], &["--ratio-to", "backfill=easy"]].concat();
    sandbox.run(&ratios).exits(0).prints(&["de", "us"]);
    let indices = ["sensitivity", "costs", "--of", "cost", "--where", "signal=us"];
    sandbox
        .run(&indices)
        .exits(2)
        .says(&["a combination has several rows with one seed, which differ in signal_index"]);
    sandbox.run(&[&indices[..], &["--where", "signal_index=1"]].concat()).exits(0);
    let find = ["find", "costs.toml", "--over", "size_factor=1,2", "--minimise", "cost"];
    for chosen in [&[][..], &["--subject-to", "signal=us"], &["--subject-to", "signal_index=0"]] {
        let asked = sandbox.run(&[&find[..], chosen].concat()).exits(2);
        asked.says(&["`cost` has values of several signals", "signal=LABEL", "signal_index=NUMBER"]);
    }
    assert!(!sandbox.path("costs-find.toml").exists(), "nothing ran");
    let chosen = ["--subject-to", "signal=us", "--subject-to", "signal_index=1"];
    let found = sandbox.run(&[&find[..], &chosen].concat()).exits(0).prints(&["with signal=us and", "cost (USD)"]);
    assert_eq!(found.stdout.matches("signal_index").count(), 1, "a choice is no column: {found}");
}

#[test]
fn a_facility_adds_its_losses_and_its_making() {
    let sandbox = sandbox("");
    let manifest = "version = 1\nname = \"grid\"\n[workloads.w]\nsource = \"lublin\"\nsynthetic_jobs_count = 20\nwide_jobs = \"clamp\"\n\
        [platforms.m]\nprocs = 16\npower_top_w = 100\n[policies.p]\n\
        [signals.plain]\nquantity = \"carbon\"\nfile = \"carbon.csv\"\nbeyond = \"wrap\"\n\
        [signals.met]\nquantity = \"carbon\"\nfile = \"carbon.csv\"\nbeyond = \"wrap\"\n\
        pue = [1.2, 1.5]\nsupply_efficiency = 0.9\nembodied_g_per_proc_hour = 2\n\
        [signals.cooled]\nquantity = \"carbon\"\nfile = \"carbon.csv\"\nbeyond = \"wrap\"\n\
        pue_signal = \"air\"\npue_curve = [10, 1.1, 30, 1.3]\n\
        [signals.air]\nquantity = \"temperature\"\nfile = \"air.csv\"\nbeyond = \"wrap\"\n";
    sandbox.write("grid.toml", manifest);
    // As warm as 1.1 and 1.3 at the intensities 100 and 300.
    sandbox.write("air.csv", "offset,temp_c\n0,0\n43200,40\n86400,0\n");
    sandbox.run(&["run", "grid.toml"]).exits(0);
    let (tasks, accounts) = (rows(&sandbox, "tasks"), rows(&sandbox, "accounts"));
    let of = |signal: &str| accounts.iter().filter(|row| row["signal"] == signal).collect::<Vec<&Row>>();
    let (plain, met, cooled) = (of("plain")[0], of("met"), of("cooled")[0]);
    let emissions = |row: &Row| number(row, "emissions_g");
    let energy_j = number(&tasks[0], "energy_total_j");
    assert!(near(number(plain, "facility_energy_j"), energy_j, 1e-12), "{plain:?}");
    for (row, pue) in met.iter().zip([1.2, 1.5]) {
        assert!(near(emissions(row), emissions(plain) * pue / 0.9, 1e-12), "{row:?}");
        assert!(near(number(row, "jobs_emissions_g"), number(plain, "jobs_emissions_g") * pue / 0.9, 1e-12), "{row:?}");
        assert!(near(number(row, "facility_energy_j"), energy_j * pue / 0.9, 1e-12), "{row:?}");
        assert!(near(number(row, "pue_mean"), pue, 1e-12), "{row:?}");
    }
    // The machine has 16 procs, and the hours are the makespan.
    let hours = number(met[0], "embodied_emissions_g") / 2.0 / 16.0;
    assert!(near(hours, number(&tasks[0], "makespan_s") / 3600.0, 1e-12), "{hours}");
    // Energy e at 100 and f at 300: 100 e + 300 f and 1.1 * 100 e + 1.3 * 300 f.
    let kwh = energy_j / 3.6e6;
    let f = (emissions(plain) - 100.0 * kwh) / 200.0;
    assert!(near(emissions(cooled), 110.0 * (kwh - f) + 390.0 * f, 1e-9), "{cooled:?} {plain:?}");
}

/// A battery moves energy from 300 to 100 g/kWh, and changes neither tasks nor the facility.
#[test]
fn a_battery_moves_energy_to_low_values() {
    let sandbox = sandbox("");
    let manifest = "version = 1\nname = \"grid\"\n[workloads.w]\nsource = \"lublin\"\nsynthetic_jobs_count = 100\n\
        wide_jobs = \"clamp\"\n[platforms.m]\nprocs = 16\npower_top_w = 100\n[policies.p]\n\
        [signals.plain]\nquantity = \"carbon\"\nfile = \"carbon.csv\"\nbeyond = \"wrap\"\n\
        [signals.stored]\nquantity = \"carbon\"\nfile = \"carbon.csv\"\nbeyond = \"wrap\"\n\
        battery_policy = \"single\"\nbattery_threshold = 200\nbattery_kwh = [0, 2, 1000000]\nbattery_charge_w = 300\n\
        battery_efficiency = 0.8\nbattery_initial_share = 0.5\nbattery_embodied_g_per_hour = 3\n\
        [signals.mean]\nquantity = \"carbon\"\nfile = \"carbon.csv\"\nbeyond = \"wrap\"\n\
        battery_policy = [\"running-mean\", \"running-quartiles\"]\nbattery_window = 3\nbattery_kwh = 2\nbattery_charge_w = 300\n";
    sandbox.write("grid.toml", manifest);
    sandbox.run(&["run", "grid.toml"]).exits(0);
    let accounts = rows(&sandbox, "accounts");
    let of = |signal: &str| accounts.iter().filter(|row| row["signal"] == signal).collect::<Vec<&Row>>();
    let (plain, stored, mean) = (of("plain")[0], of("stored"), of("mean"));
    assert!(plain["battery_charged_j"].is_null() && plain["battery_end_j"].is_null(), "{plain:?}");
    let none = stored[0];
    for (row, kwh) in stored.iter().zip([0.0, 2.0, 1e6]) {
        assert_eq!((&row["battery_policy"], number(row, "battery_kwh")), (&"single".into(), kwh));
        assert_eq!((number(row, "battery_threshold"), number(row, "battery_efficiency")), (200.0, 0.8));
        assert!(row["battery_window"].is_null() && row["battery_upper_threshold"].is_null(), "{row:?}");
    }
    assert_eq!(mean.iter().map(|row| number(row, "battery_window")).collect::<Vec<_>>(), [3.0, 3.0]);
    for column in ["emissions_g", "facility_energy_j", "jobs_emissions_g", "at_once_emissions_g", "signal_energy_mean"]
    {
        assert_eq!(none[column], plain[column], "{column}");
    }
    assert_eq!(number(none, "battery_charged_j"), 0.0);
    for (row, kwh) in stored[1..].iter().zip([2.0, 1e6]) {
        let (charged_j, discharged_j) = (number(row, "battery_charged_j"), number(row, "battery_discharged_j"));
        assert!(charged_j > 0.0 && discharged_j > 0.0, "{row:?}");
        let emissions_g = number(plain, "emissions_g") + (100.0 * charged_j - 300.0 * discharged_j) / 3.6e6;
        assert!(near(number(row, "emissions_g"), emissions_g, 1e-9), "{row:?} {plain:?}");
        let end_j = 0.5 * kwh * 3.6e6 + 0.8 * charged_j - discharged_j;
        assert!((number(row, "battery_end_j") - end_j).abs() < 1e-9 * kwh * 3.6e6, "{row:?}");
        assert_eq!(row["facility_energy_j"], plain["facility_energy_j"]);
    }
    // The largest battery supplies everything at 300 g/kWh.
    let energy_kwh = number(plain, "facility_energy_j") / 3.6e6;
    let high_kwh = (number(plain, "emissions_g") - 100.0 * energy_kwh) / 200.0;
    assert!(near(number(stored[2], "battery_discharged_j") / 3.6e6, high_kwh, 1e-9), "{stored:?}");
    let hours = number(&rows(&sandbox, "tasks")[0], "makespan_s") / 3600.0;
    assert!(near(number(stored[1], "embodied_emissions_g"), 3.0 * hours, 1e-12), "{stored:?}");
    // The file repeats 100, 300, 100, so each window of three values has one of 300: both policies charge at 100 only.
    for row in mean {
        let (charged_j, discharged_j) = (number(row, "battery_charged_j"), number(row, "battery_discharged_j"));
        assert!(discharged_j > 0.0, "{row:?}");
        let emissions_g = number(plain, "emissions_g") + (100.0 * charged_j - 300.0 * discharged_j) / 3.6e6;
        assert!(near(number(row, "emissions_g"), emissions_g, 1e-9), "{row:?} {plain:?}");
    }
    // A mean over batteries has no meaning: `best` tells them apart, other answers say so.
    let of_stored = ["--where", "signal=stored", "--format", "csv"];
    let best = ["best", "grid", "--minimise", "emissions_g"];
    let found = sandbox.run(&[&best[..], &of_stored].concat()).exits(0);
    assert!(found.stdout.starts_with("battery_kwh,") && found.stdout.contains("\n1000000"), "{found}");
    let results = ["results", "grid", "--table", "accounts", "--by", "policy", "--columns", "emissions_g"];
    let said = "a mean is over rows that differ in battery_kwh";
    sandbox.run(&[&results[..], &of_stored].concat()).exits(0).says(&[said]);
    let alone = sandbox.run(&[&results[..], &["--where", "signal=plain"]].concat()).exits(0);
    assert!(!alone.stderr.contains("differ in"), "{alone}");
    let rows = sandbox.run(&["results", "grid", "--table", "accounts", "--where", "signal=stored"]).exits(0);
    rows.prints(&["signal_index", "emissions_g"]);
}

/// A machine of 4 procs, idle at 200 W and busy at 800 W.
#[test]
fn a_cap_that_is_a_signal_has_the_warnings_of_a_schedule() {
    let sandbox = sandbox("");
    let manifest = "version = 1\nname = \"capped\"\n[workloads.w]\nsource = \"lublin\"\nsynthetic_jobs_count = 20\n\
        wide_jobs = \"clamp\"\n[platforms.m]\nprocs = 4\npower = \"stated\"\ngears_ghz = [2]\nbusy_w = [200]\nidle_w = 50\n\
        [policies.p]\nbackfill = \"easy\"\npower_cap = \"admission\"\ncap_signal = \"limit\"\n\
        [signals.limit]\nquantity = \"cap\"\nfile = \"cap.csv\"\nbeyond = \"hold\"\nanchor = \"2023-01-01\"\n";
    sandbox.write("capped.toml", manifest);
    for (kw, says) in [
        (1.5, "the cap of 1500 W never binds: all 4 procs draw at most 800 W"),
        (0.3, "needs a cap of at least 800 W, even alone on the machine; the greatest cap is 300 W"),
        (0.1, "the idle machine draws 200 W, more than the cap of 100 W"),
    ] {
        sandbox.write("cap.csv", format!("time (UTC),cap_kw\n2023-01-01 00:00,{kw}\n2023-01-02 00:00,{kw}\n"));
        sandbox.run(&["plan", "capped.toml"]).exits(0).prints(&[says, "[policies.p]"]);
    }
}

#[test]
fn facilities_that_make_no_sense_are_refused() {
    let sandbox = sandbox("");
    for (settings, reason) in [
        ("pue = 0.9", "`pue` cannot be 0.9"),
        ("pue_signal = \"air\"", "`pue_signal` needs `pue_curve`"),
        ("pue = 1.1\npue_signal = \"air\"\npue_curve = [1, 1.1]", "both state the PUE"),
        ("pue_signal = \"air\"\npue_curve = [1, 1.1, 1, 1.2]", "`pue_curve` is no curve"),
        ("pue_signal = \"air\"\npue_curve = [1, 1.1]", "there is no block [signals.air]"),
        ("battery_kwh = 10", "`battery_kwh` needs `battery_policy`"),
        ("battery_policy = \"single\"\nbattery_kwh = 10\nbattery_charge_w = 1", "\"single\" needs `battery_threshold`"),
        ("battery_policy = \"running-mean\"\nbattery_window = 2\nbattery_kwh = 1", "needs `battery_charge_w`"),
        ("battery_policy = \"single\"\nbattery_threshold = 2\nbattery_window = 2", "does not read `battery_window`"),
        (
            "battery_policy = \"double\"\nbattery_threshold = 2\nbattery_upper_threshold = 1",
            "`battery_upper_threshold` is less than `battery_threshold`",
        ),
        ("battery_policy = \"best\"", "`battery_policy` cannot be \"best\""),
        ("sample = \"point\"\nbattery_policy = \"single\"\nbattery_threshold = 2", "changes at all times"),
        ("pue_signal = \"grid\"\npue_curve = [1, 1.1]", "the quantity of [signals.grid] is carbon"),
    ] {
        sandbox.write("grid.toml", MANIFEST.replace("unit = \"g/kWh\"", &format!("unit = \"g/kWh\"\n{settings}")));
        sandbox.run(&["plan", "grid.toml"]).exits(2).says(&[reason]);
    }
    let price = MANIFEST.replace("timezone =", "embodied_g_per_proc_hour = 1\ntimezone =");
    sandbox.write("grid.toml", price);
    sandbox.run(&["plan", "grid.toml"]).exits(2).says(&["`embodied_g_per_proc_hour` is no cost"]);
    sandbox.write("grid.toml", MANIFEST.replace("unit = \"%\"", "unit = \"%\"\npue = 1.2"));
    sandbox.run(&["plan", "grid.toml"]).exits(2).says(&["`pue` weighs no cap-share"]);
}
