//! Which parameters move a metric: from rows to indices.

use std::collections::BTreeMap;

use crate::rows::{self, Row, lines, near, number};
use crate::sandbox::Sandbox;

const GRID: &str = r#"
version = 1
name = "grid"
seeds = [1, 2]

[workloads.synthetic]
source = "lublin"
synthetic_jobs_count = 100

[platforms.cluster]
size_factor = [1, 1.5, 2]

[policies.plain]
backfill = ["easy", "none"]

[policies.slow]
gear_rule = "bsld"
bsld_threshold = [1.5, 6]
"#;

/// A design with points at which the machine is too small for the widest jobs.
const NARROW: &str = r#"
version = 1
name = "narrow"

[designs.knobs]
kind = "morris"
count = 12

[workloads.synthetic]
source = "lublin"
synthetic_jobs_count = 100

[platforms.cluster]
size_factor = { from = 0.1, to = 2, design = "knobs" }

[policies.slow]
gear_rule = "bsld"
bsld_threshold = { from = 1.5, to = 6, design = "knobs" }
"#;

/// The index of a parameter.
fn index(found: &[Row], parameter: &str, with: Option<&str>, name: &str) -> f64 {
    let is_own = |row: &&Row| row["parameter"] == parameter && row.get("with").and_then(|with| with.as_str()) == with;
    number(found.iter().find(is_own).unwrap_or_else(|| panic!("{parameter} {with:?} in {found:?}")), name)
}

#[test]
fn shares_of_a_grid_are_those_of_its_rows() {
    let sandbox = Sandbox::new();
    sandbox.write("grid.toml", GRID);
    sandbox.run(&["run", "grid.toml", "--quiet"]).exits(0);
    // One seed has no interval and no correction: the shares are those of the cells.
    let one = ["sensitivity", "grid", "--of", "wait_s_mean", "--where", "policy=plain", "--where", "seed=1"];
    let found = lines(&sandbox, &one);
    let of_plain = |row: &&Row| row["policy"] == "plain" && row["seed"] == 1;
    let rows = rows::tasks(&sandbox.path("results/data"), "grid");
    let cells: Vec<&Row> = rows.values().filter(of_plain).collect();
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let variance = |values: &[f64]| {
        let mean = mean(values);
        values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64
    };
    let means = |name: &str| {
        let mut by_level: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        cells
            .iter()
            .for_each(|row| by_level.entry(row[name].to_string()).or_default().push(number(row, "wait_s_mean")));
        by_level.into_values().collect::<Vec<_>>()
    };
    let total = variance(&cells.iter().map(|row| number(row, "wait_s_mean")).collect::<Vec<_>>());
    let first = |name: &str| variance(&means(name).iter().map(|values| mean(values)).collect::<Vec<_>>()) / total;
    let others = |name: &str| mean(&means(name).iter().map(|values| variance(values)).collect::<Vec<_>>()) / total;
    assert!(total > 0.0 && cells.len() == 6);
    for (name, other) in [("size_factor", "backfill"), ("backfill", "size_factor")] {
        assert!(near(index(&found, name, None, "S1"), first(name), 1e-12), "{name}: {found:?}");
        assert!(near(index(&found, name, None, "ST"), others(other), 1e-12), "{name}: {found:?}");
    }
    let pair = 1.0 - first("size_factor") - first("backfill");
    let with = found.iter().find_map(|row| row["with"].as_str()).expect("a pair").to_owned();
    let parameter = if with == "backfill" { "size_factor" } else { "backfill" };
    assert!((index(&found, parameter, Some(&with), "S2") - pair).abs() < 1e-12, "{found:?}");
    assert!(found.iter().all(|row| row["S1_low"].is_null()), "{found:?}");

    // Policies without the threshold are a part of their own.
    let shown = sandbox.run(&["sensitivity", "grid", "--of", "wait_s_mean"]).exits(0).stdout;
    for line in ["policy=plain", "policy=slow", "12 cells", "over 2 seeds"] {
        assert!(shown.contains(line), "{shown}");
    }
    assert!(!shown.contains("bsld_threshold="), "policy=plain tells its part: {shown}");
    sandbox.run(&["sensitivity", "grid", "--of", "policy"]).exits(2).says(&["`policy`"]);
    sandbox
        .run(&["sensitivity", "grid", "--of", "wait_s_mean", "--design", "knobs"])
        .exits(2)
        .says(&["no design `knobs`"]);

    // No sentence is about shares that are not there.
    let aliased = "version = 1\nname = \"aliased\"\nseeds = [1, 2]\n[workloads.w]\nsource = \"lublin\"\n\
                   synthetic_jobs_count = 60\n[policies.a]\npredictor = \"user\"\n\
                   [policies.b]\npredictor = [\"exact\", \"recent-average\"]\n";
    sandbox.write("aliased.toml", aliased);
    sandbox.run(&["run", "aliased.toml", "--quiet"]).exits(0);
    let shown = sandbox.run(&["sensitivity", "aliased", "--of", "bsld_mean"]).exits(0).stdout;
    assert!(shown.trim().starts_with("bsld_mean has no shares: `predictor`"), "{shown}");
}

#[test]
fn points_that_failed_are_named_and_bound_the_indices() {
    let sandbox = Sandbox::new();
    sandbox.write("narrow.toml", NARROW);
    sandbox.run(&["run", "narrow.toml", "--quiet"]).exits(3);
    let narrow = ["sensitivity", "narrow", "--of", "energy_total_j"];
    let shown = sandbox.run(&narrow).exits(0);
    let missing = 12 * 3 - rows::tasks(&sandbox.path("results/data"), "narrow").len();
    assert!(missing > 0, "some points fail");
    let shown = shown.prints(&["no value of energy_total_j", "bounded, if the missing values lie between"]);
    shown.says(&["bsld_threshold=3, size_factor=0.1 (seed 1): no row", "--table failures"]);
    let found = lines(&sandbox, &narrow);
    let row = |name: &str| found.iter().find(|row| row["parameter"] == name).expect("a row");
    assert!(row("size_factor")["mu_star"].is_null(), "{found:?}");
    let width = |found: &[Row]| {
        let row = found.iter().find(|row| row["parameter"] == "size_factor").expect("a row");
        number(row, "mu_star_high") - number(row, "mu_star_low")
    };
    let wider = lines(&sandbox, &[&narrow[..], &["--range", "energy_total_j=0..1e12"]].concat());
    assert!(width(&wider) > width(&found), "{found:?} {wider:?}");
    sandbox.run(&[&narrow[..], &["--range", "energy_total_j=5"]].concat()).exits(2).says(&["bsld_mean=1..500"]);
    let refused = |more: &[&str], says: &str| {
        sandbox.run(&[&narrow[..], more].concat()).exits(2).says(&[says]);
    };
    refused(&["--range", "bsld_mean=1..60"], "the range of `bsld_mean` has no use");
    refused(&["--where", "size_factor>1.5"], "`size_factor` is a parameter of the design");
    let both = sandbox.run(&["sensitivity", "narrow", "--of", "energy_total_j,bsld_mean"]).exits(0);
    assert_eq!(both.stderr.matches("bsld_threshold=3, size_factor=0.1 (seed 1): no row").count(), 1, "{}", both.stderr);

    // A sweep of another kind of design has no indices.
    sandbox.write("even.toml", NARROW.replace("narrow", "even").replace("morris", "sobol"));
    sandbox.run(&["run", "even.toml", "--quiet"]).exits(3);
    sandbox
        .run(&["sensitivity", "even", "--of", "energy_total_j"])
        .exits(2)
        .says(&["of the kind sobol", "morris and saltelli"]);
}
