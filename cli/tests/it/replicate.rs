//! Seeds that are added until means are known.

use std::collections::BTreeMap;

use crate::rows::{self, number};
use crate::sandbox::Sandbox;
use crate::signals::CARBON;

const UNTIL: &str = r#"
version = 1
name = "known"
seeds = { until = "ci95(energy_total_j) < 5%", at_least = 5, at_most = 200, from = 3 }

[workloads.synthetic]
source = "lublin"
synthetic_jobs_count = 100

[platforms.cluster]
size_factor = [1, 2]

[policies.plain]
backfill = ["easy", "none"]
"#;

/// Number of seeds of each combination.
fn seeds(sandbox: &Sandbox, experiment: &str) -> BTreeMap<(String, String), Vec<f64>> {
    let mut found: BTreeMap<(String, String), Vec<f64>> = BTreeMap::new();
    for row in rows::tasks(&sandbox.path("results/data"), experiment).values() {
        let key = (row["size_factor"].to_string(), row["backfill"].to_string());
        found.entry(key).or_default().push(number(row, "energy_total_j"));
    }
    found
}

#[test]
fn a_combination_gets_the_seeds_that_its_mean_needs() {
    let sandbox = Sandbox::new();
    sandbox.write("until.toml", UNTIL);
    sandbox.run(&["plan", "until.toml"]).exits(0).prints(&["seeds: 5 to 200 of each combination"]);
    let shown = sandbox.run(&["run", "until.toml"]).exits(0);
    shown.prints(&["by Stein's two stages", "size_factor=1"]).says(&["stage 1 of 2: 20 tasks", "stage 2 of 2: "]);
    let found = seeds(&sandbox, "known");
    let counts: Vec<usize> = found.values().map(Vec::len).collect();
    assert!(counts.len() == 4 && counts.iter().all(|count| (5..=200).contains(count)), "{counts:?}");
    assert!(counts.iter().any(|count| *count != counts[0]), "combinations need different numbers: {counts:?}");
    for values in found.values() {
        // The rows of a combination are in the order of their seeds. t(0.95; 4) = 2.776445105.
        let (first, mean) = (&values[..5], values[..5].iter().sum::<f64>() / 5.0);
        let s = (first.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 4.0).sqrt();
        let needed = (2.776_445_105 * s / (0.05 * mean)).powi(2).floor() as usize + 1;
        assert_eq!(values.len(), needed.clamp(5, 200));
    }
    // Seeds that the means do not need are no failures.
    let by = sandbox.run(&["results", "known", "--by", "size_factor,backfill", "--columns", "energy_total_j"]).exits(0);
    assert_eq!(by.stderr, "");
    let least = counts.iter().min().expect("four");
    let shares = sandbox.run(&["sensitivity", "known", "--of", "energy_total_j"]).exits(0);
    assert_eq!(shares.stderr, "");
    shares.prints(&[&format!("over {least} seeds."), "the manifest does not ask for them in every cell"]);
    sandbox.run(&["plan", "until.toml"]).exits(0).prints(&["may run"]);
    // Nothing is left to run.
    let again = sandbox.run(&["run", "until.toml"]).exits(0);
    assert!(!again.stderr.contains("stage"), "{}", again.stderr);
    let equal = sandbox.run(&["verify", "known", "--tasks", "2"]).exits(0);
    equal.prints(&["2 rows equal"]);

    // Combinations of one machine share a number of seeds.
    let shared = UNTIL.replace("known", "shared").replace("from = 3", "from = 3, by = \"size_factor\"");
    sandbox.write("shared.toml", shared);
    sandbox.run(&["run", "shared.toml", "--quiet"]).exits(0);
    for (machine, other) in [("1.0", "2.0"), ("2.0", "1.0")] {
        let of = |found: &BTreeMap<(String, String), Vec<f64>>, machine: &str| {
            found.iter().filter(|(key, _)| key.0 == machine).map(|(_, values)| values.len()).collect::<Vec<_>>()
        };
        let (own, each) = (of(&seeds(&sandbox, "shared"), machine), of(&found, machine));
        assert!(own.iter().all(|count| Some(count) == each.iter().max()), "{machine} {other}: {own:?} {each:?}");
    }
    // A seed that the manifest excludes is no seed of the first ones.
    sandbox.write("without.toml", format!("{}\n[[exclude]]\nseed = 4\n", UNTIL.replace("known", "without")));
    sandbox.run(&["run", "without.toml", "--quiet"]).exits(0);
    let of_seed = |seed: i64| {
        let rows = rows::tasks(&sandbox.path("results/data"), "without");
        rows.values().filter(|row| row["seed"].as_i64() == Some(seed)).count()
    };
    assert_eq!([3, 4, 5, 6, 7, 8].map(of_seed), [4, 0, 4, 4, 4, 4]);
    let unknown = UNTIL.replace("known", "wrong").replace("from = 3", "by = \"policies\"");
    sandbox.write("wrong.toml", unknown);
    sandbox.run(&["run", "wrong.toml"]).exits(2).says(&["`policies`", "tells no combinations apart"]);
    sandbox.write("wrong.toml", UNTIL.replace("energy_total_j", "energy"));
    for command in ["plan", "run"] {
        sandbox
            .run(&[command, "wrong.toml"])
            .exits(2)
            .says(&["the condition ci95(energy) < 5% of `seeds` (line 4)", "`energy`"]);
    }
    sandbox.write("wrong.toml", UNTIL.replace("energy_total_j", "emissions_g"));
    for command in ["plan", "run"] {
        sandbox.run(&[command, "wrong.toml"]).exits(2).says(&["no [signals.NAME]", "no rows of `accounts`"]);
    }
    // A task would have two rows with emissions.
    sandbox.write("co.csv", CARBON);
    let signal = "[signals.co]\nquantity = \"carbon\"\nfile = \"co.csv\"\nbeyond = \"wrap\"\npue = [1, 1.2]\n";
    sandbox.write("wrong.toml", format!("{}\n{signal}", UNTIL.replace("energy_total_j", "emissions_g")));
    sandbox.run(&["run", "wrong.toml"]).exits(2).says(&["a task has several rows of `accounts`"]);
    sandbox.write("wrong.toml", UNTIL.replace("energy_total_j", "size_factor"));
    // Nothing answers at this address: the manifest is wrong before anybody is asked.
    for place in [&["--data", "results/data"][..], &["--coordinator", "127.0.0.1:1"]] {
        let plan = [&["plan", "wrong.toml"][..], place].concat();
        sandbox.run(&plan).exits(2).says(&["`size_factor` is an axis, no metric"]);
    }
    sandbox.write("known.toml", UNTIL);
    let find = ["find", "known.toml", "--over", "size_factor=1,2", "--minimise", "energy_total_j"];
    sandbox.run(&find).exits(2).says(&["give `seeds` a list or a range"]);
    assert!(!sandbox.path("known-find.toml").exists());
}

/// A coordinator runs the stages of a client that waits, and no others; a client that was killed goes on.
#[test]
fn a_farm_runs_the_stages_of_a_client_that_waits() {
    let sandbox = Sandbox::new();
    sandbox.write("until.toml", UNTIL);
    let (serve, _) = sandbox.serve(&[]);
    sandbox.run(&["submit", "until.toml"]).exits(2).says(&["submit --wait"]);
    let worker = sandbox.start(&["worker", "--slots", "2"]);
    let mut killed = sandbox.start(&["submit", "until.toml", "--wait"]);
    killed.says("stage 1 of 2");
    killed.signal("KILL");
    drop(killed);
    let shown = sandbox.run(&["submit", "until.toml", "--wait"]).exits(0);
    shown.prints(&["by Stein's two stages"]);
    sandbox.run(&["flush", "known"]).exits(0);
    let at_farm: Vec<usize> = seeds(&sandbox, "known").values().map(Vec::len).collect();
    drop((worker, serve));
    let alone = Sandbox::new();
    alone.write("until.toml", UNTIL);
    alone.run(&["run", "until.toml", "--quiet"]).exits(0);
    assert_eq!(at_farm, seeds(&alone, "known").values().map(Vec::len).collect::<Vec<_>>());
}
