//! `powersweep compare`, `powersweep best`, `powersweep sql` and `powersweep verify`.

use std::path::PathBuf;

use arrow::array::{AsArray, Float64Array, RecordBatch};
use arrow::datatypes::Float64Type;
use powersweep_dataset::words::number as shown_number;
use powersweep_results::layout;
use powersweep_results::part::{Footer, Origin, encode};

use crate::rows::{self, Row, lines, number};
use crate::sandbox::Sandbox;
use crate::sweeps::{JOBS, TINY_LOG, synthetic};

const SWEEP: &str = "
version = 1
name = \"answers\"
seeds = { from = 1, count = 5 }
tables = [\"jobs\"]

[workloads.made]
source = \"lublin\"
synthetic_jobs_count = 300
synthetic_procs = 64

[platforms.cluster]
size_factor = [1, 1.5, 2]

[policies.full]
backfill = \"easy\"

[policies.save]
backfill = \"easy\"
gear_rule = \"bsld\"
bsld_threshold = [1.5, 3]
";

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("answers.toml", SWEEP);
    sandbox.run(&["run", "answers.toml", "--quiet"]).exits(0);
    sandbox
}

fn near(one: f64, other: f64) -> bool {
    rows::near(one, other, 1e-9)
}

#[test]
fn policies_are_compared_seed_by_seed() {
    let sandbox = sandbox();
    let (a, b) = ("answers:policy=full", "answers:policy=save,bsld_threshold=3");
    let found = lines(&sandbox, &["compare", a, b, "--columns", "energy_total_j,wait_s_mean"]);
    let all = rows::read(&sandbox.path("results/data"), "answers", "tasks");
    let of = |policy: &str, threshold: Option<f64>| -> Vec<f64> {
        let mut rows: Vec<&Row> =
            all.iter().filter(|row| row["policy"] == policy && row["bsld_threshold"].as_f64() == threshold).collect();
        rows.sort_by_key(|row| (row["size_factor"].to_string(), row["seed"].as_i64()));
        rows.into_iter().map(|row| number(row, "energy_total_j")).collect()
    };
    let (full, save) = (of("full", None), of("save", Some(3.0)));
    assert_eq!((found.len(), full.len(), save.len()), (2, 15, 15));
    assert_eq!((found[0]["metric"].as_str(), found[0]["pairs"].as_i64()), (Some("energy_total_j"), Some(15)));
    let differences: Vec<f64> = full.iter().zip(&save).map(|(a, b)| b - a).collect();
    let mean = differences.iter().sum::<f64>() / 15.0;
    // Three machines of each of five seeds: five replicates.
    let of_seed = |seed: usize| differences.iter().skip(seed).step_by(5).sum::<f64>() / 3.0;
    let sd = ((0..5).map(|seed| (of_seed(seed) - mean).powi(2)).sum::<f64>() / 4.0).sqrt();
    // t(0.95; 4) = 2.776445105
    let half = 2.776_445_105 * sd / 5f64.sqrt();
    assert_eq!(found[0]["replicates"].as_i64(), Some(5));
    assert!(near(number(&found[0], "difference"), mean));
    assert!((number(&found[0], "difference_low") - (mean - half)).abs() < 1e-6 * half);
    assert!((number(&found[0], "difference_high") - (mean + half)).abs() < 1e-6 * half);
    assert!(near(number(&found[0], "ratio"), save.iter().sum::<f64>() / full.iter().sum::<f64>()));
    let latex = sandbox.run(&["compare", a, b, "--format", "latex"]).exits(0);
    latex.prints(&["total energy ($10^{6}$ relative) &", "100\\% \\\\"]);
    let less = differences.iter().filter(|d| **d < 0.0).count() as f64 / 15.0;
    assert!(near(number(&found[0], "b_less"), less));
    let screen = sandbox.run(&["compare", a, b]).exits(0);
    let screen = screen.prints(&["B is less", "15 pairs with the same", "Intervals (95%) are over 5 seeds."]);
    let screen = screen.prints(&["All values of size_factor are pooled.", "Pooled values are compared apart by --by."]);
    assert!(!screen.stdout.contains("few"), "{screen}");
    sandbox.run(&["compare", a, b, "--where", "seed<=4"]).exits(0).prints(&["are over 4 seeds. These are few"]);
    // A comparison for each machine, whose pairs are the seeds.
    let apart = lines(&sandbox, &["compare", a, b, "--columns", "energy_total_j", "--by", "size_factor"]);
    let machines: Vec<_> = apart.iter().map(|row| (row["size_factor"].to_string(), row["pairs"].as_i64())).collect();
    assert_eq!((machines.len(), machines[0].1), (3, Some(5)));
    sandbox.run(&["compare", a, b, "--by", "workload"]).exits(2).says(&["both sets do not vary in `workload`"]);
}

/// `compare` and `results --ratio-to` answer one question with one interval.
#[test]
fn a_ratio_has_one_interval() {
    let sandbox = sandbox();
    let (a, b) = ("answers:policy=full", "answers:policy=save,bsld_threshold=3");
    let compared = lines(&sandbox, &["compare", a, b, "--columns", "wait_s_mean,energy_total_j"]);
    let args = ["results", "answers", "--by", "policy,bsld_threshold", "--ratio-to", "policy=full"];
    let rows = lines(&sandbox, &[&args[..], &["--columns", "wait_s_mean,energy_total_j"]].concat());
    let row = rows.iter().find(|row| row["bsld_threshold"].as_f64() == Some(3.0)).expect("a row");
    for (metric, found) in ["wait_s_mean", "energy_total_j"].iter().zip(&compared) {
        for (statistic, column) in [("ratio", "ratio"), ("low95", "ratio_low"), ("high95", "ratio_high")] {
            let of_results = number(row, &format!("{statistic}({metric})"));
            assert!(near(of_results, number(found, column)), "{metric} {column}: {of_results} {found:?}");
        }
    }
}

/// `results` and a figure answer one question with one interval.
#[cfg(feature = "figures")]
#[test]
fn a_mean_has_one_interval() {
    let sandbox = sandbox();
    // Rows of a combination, and rows of three machines together.
    for (x, chosen, count) in [("size_factor", "policy=full", 3), ("bsld_threshold", "policy=save", 2)] {
        let chosen = ["--columns", "wait_s_mean", "--where", chosen];
        let figure = ["plot", "answers", "--figure", "bars", "--x", x, "--y", "wait_s_mean", "-o", "drawn.csv"];
        sandbox.run(&[&figure[..], &chosen[2..]].concat()).exits(0);
        let drawn = std::fs::read_to_string(sandbox.path("drawn.csv")).expect("the numbers");
        let rows = lines(&sandbox, &[&["results", "answers", "--by", x], &chosen[..]].concat());
        assert_eq!((rows.len(), drawn.lines().count()), (count, count + 1), "{drawn}");
        for (row, drawn) in rows.iter().zip(drawn.lines().skip(1)) {
            let numbers: Vec<f64> = drawn.split(',').map(|cell| cell.parse().expect("a number")).collect();
            let (mean, half) = (number(row, "mean(wait_s_mean)"), number(row, "ci95(wait_s_mean)"));
            let expected = [number(row, x), mean, mean - half, mean + half];
            assert!(numbers.iter().zip(expected).all(|(drawn, expected)| near(*drawn, expected)), "{drawn} {row:?}");
        }
    }
}

/// An export has the origin of its rows: it is verified without the folder that it came from.
#[test]
fn an_exported_file_is_verified() {
    let sandbox = sandbox();
    sandbox.run(&["export", "answers", "--output", "out"]).exits(0);
    let elsewhere = ["verify", "out/tasks.parquet", "--tasks", "3", "--data", "nothing-here"];
    sandbox.run(&elsewhere).exits(0).prints(&["3 of 45 tasks of out/tasks.parquet ran again", "bit for bit"]);
    sandbox.run(&["verify", "out/jobs.parquet"]).exits(2).says(&["no column `kernel_version` of the table tasks"]);
    sandbox.run(&["verify", "out/none.parquet"]).exits(2).says(&["cannot read out/none.parquet"]);
}

/// The manifest in a file of somebody else names no file outside the search path.
#[test]
fn a_file_of_rows_names_no_path() {
    let sandbox = Sandbox::new();
    sandbox.write("logs/tiny.swf", TINY_LOG);
    sandbox.write("by-name.toml", JOBS.replace("\"jobs\"\ntables = [\"jobs\"]", "\"by-name\""));
    sandbox.write(
        "by-path.toml",
        JOBS.replace("\"jobs\"\ntables = [\"jobs\"]", "\"by-path\"").replace("tiny", "./logs/tiny.swf"),
    );
    for name in ["by-name", "by-path"] {
        let (manifest, folder) = (format!("{name}.toml"), format!("out-{name}"));
        sandbox.run(&["run", &manifest, "--traces", "logs", "--quiet", "--show", "0"]).exits(0);
        sandbox.run(&["export", name, "--output", &folder]).exits(0);
        sandbox.run(&["verify", name, "--traces", "logs"]).exits(0);
    }
    sandbox.run(&["verify", "out-by-name/tasks.parquet", "--traces", "logs"]).exits(0);
    let by_path = ["verify", "out-by-path/tasks.parquet", "--traces", "logs"];
    let refused =
        ["./logs/tiny.swf is a path, and the manifest in a file of rows may name files of the search path only"];
    sandbox.run(&by_path).exits(4).says(&refused);
    sandbox.run(&[&by_path[..], &["--manifest", "by-path.toml"]].concat()).exits(0);
}

/// Different logs are not pooled unless that is asked for.
#[test]
fn workloads_are_compared_apart() {
    let sandbox = Sandbox::new();
    let other = "[workloads.other]\nsource = \"lublin\"\nsynthetic_jobs_count = 90\nsynthetic_procs = 64\n";
    sandbox.write("logs.toml", synthetic("logs", 4) + other);
    sandbox.run(&["run", "logs.toml", "--quiet"]).exits(0);
    let sets = ["logs:queue_order=fcfs", "logs:queue_order=sjf", "--columns", "wait_s_mean"];
    let apart = lines(&sandbox, &[&["compare"][..], &sets].concat());
    assert_eq!(apart.iter().map(|row| row["pairs"].as_i64()).collect::<Vec<_>>(), [Some(4), Some(4)]);
    assert_ne!(apart[0]["workload"], apart[1]["workload"]);
    // Each workload has one number of jobs, which is pooled with the workloads only.
    let shown = sandbox.run(&[&["compare"][..], &sets].concat()).exits(0);
    assert!(!shown.stdout.contains("pooled"), "{shown}");
    let together = sandbox.run(&[&["compare"][..], &sets, &["--pool", "workload"]].concat()).exits(0);
    together.prints(&["All values of synthetic_jobs_count, workload are pooled."]);
    let pooled = lines(&sandbox, &[&["compare"][..], &sets, &["--pool", "workload"]].concat());
    assert_eq!((pooled[0]["pairs"].as_i64(), pooled[0]["replicates"].as_i64()), (Some(8), Some(4)));
}

#[test]
fn one_pair_of_tasks_has_no_interval_and_its_jobs_have_one() {
    let sandbox = sandbox();
    let (a, b) = ("answers:policy=full", "answers:policy=save,bsld_threshold=3");
    let one = ["--where", "seed=1", "--where", "size_factor=1"];
    let tasks = sandbox.run(&[&["compare", a, b], &one[..]].concat()).exits(0);
    tasks.prints(&["1 pair.", "One seed has no interval: several seeds have one", "with tables = [\"jobs\"]"]);
    let args = [&["compare", a, b, "--table", "jobs", "--columns", "energy_j"], &one[..]].concat();
    let jobs = lines(&sandbox, &args);
    let all = rows::read(&sandbox.path("results/data"), "answers", "jobs");
    assert_eq!(jobs[0]["pairs"].as_i64(), Some(300));
    assert_eq!(all.len(), 300 * 45);
    let weeks = all.iter().filter(|job| job["seed"] == 1).map(|job| (number(job, "submit_s") / 604_800.0) as i64);
    let weeks = weeks.collect::<std::collections::BTreeSet<_>>().len();
    let shown = sandbox.run(&args).exits(0);
    match weeks {
        1 => shown.prints(&["The jobs are of one week: there is no interval."]),
        _ => shown.prints(&[&format!("a bootstrap of {weeks} weeks")]),
    };
    // A metric of tasks is one value, however many jobs repeat it.
    let repeated = [&["compare", a, b, "--table", "jobs", "--columns", "wait_s,wait_s_mean"], &one[..]].concat();
    sandbox.run(&repeated).exits(2).says(&["`wait_s_mean` has one value for a task", "compared in the table tasks"]);
    let unknown = sandbox.run(&["compare", a, b, "--table", "jobs", "--columns", "bsld"]).exits(2);
    unknown.says(&["jobs has no column `bsld`; tasks has ", "which `powersweep columns tasks` lists"]);
    // The same rows have the same interval.
    assert_eq!(jobs, lines(&sandbox, &args));
}

/// No seed changes the rows of a log: the advice is what makes seeds differ.
#[test]
fn one_pair_of_tasks_of_a_log_is_shaken() {
    let sandbox = Sandbox::new();
    sandbox.write("tiny.swf", TINY_LOG);
    sandbox.write("jobs.toml", JOBS);
    sandbox.run(&["run", "jobs.toml", "--traces", ".", "--quiet"]).exits(0);
    let ended = sandbox.run(&["compare", "jobs:queue_order=fcfs", "jobs:queue_order=sjf"]).exits(0);
    let ended = ended.prints(&["nothing in these tasks depends on the seed", "`resample_days`", "--shaken 60"]);
    assert!(!ended.stdout.contains("several seeds have one"), "{ended}");
}

#[test]
fn sets_are_compared_again_with_shaken_input() {
    let sandbox = sandbox();
    let args = ["compare", "answers:policy=full", "answers:policy=save,bsld_threshold=3", "--columns", "wait_s_mean"];
    let shaken = [&args[..], &["--shaken", "60"]].concat();
    let ended = sandbox.run(&shaken).exits(0).says(&["answers-shaken: 90 tasks, 0 done already"]);
    ended.prints(&["A is answers-shaken:policy=full", "are over 10 seeds"]);
    let jittered = rows::read(&sandbox.path("results/data"), "answers-shaken", "tasks");
    assert!(jittered.len() == 90 && jittered.iter().all(|row| number(row, "submit_jitter_s") == 60.0));
    let plain = rows::read(&sandbox.path("results/data"), "answers", "tasks");
    let waits = |rows: &[Row], seed: i64| -> Vec<f64> {
        let mut waits: Vec<f64> =
            rows.iter().filter(|row| row["seed"] == seed).map(|row| number(row, "wait_s_mean")).collect();
        waits.sort_by(f64::total_cmp);
        waits
    };
    // The jobs of a seed are the same ones at other instants.
    assert_ne!(waits(&jittered, 1), waits(&plain, 1));
    assert_eq!(plain.len(), 45);
    sandbox.run(&shaken).exits(0).says(&["90 done already, 0 to run"]);
    sandbox.run(&[&args[..], &["--shaken=-1"]].concat()).exits(2).says(&["`submit_jitter_s` cannot be -1.0"]);
    sandbox.run(&[&args[..], &["--shaken", "0"]].concat()).exits(2).says(&["no submit moves by 0 s"]);
    sandbox.run(&["compare", "none:seed=1", "none", "--shaken", "60"]).exits(2).says(&["none"]);
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let sandbox = sandbox();
    let run = |a: &str, b: &str| sandbox.run(&["compare", a, b]);
    run("answers:policy=full", "answers:policy=save").exits(2).says(&["add a condition on bsld_threshold"]);
    run("answers:policy=easy", "answers").exits(2).says(&["no row satisfies `policy=easy`: policy is full, save"]);
    run("answers:polic=full", "answers").exits(2).says(&["did you mean `policy`"]);
    run("answers:policy=full", "nothing").exits(2).says(&["nothing"]);
    sandbox.run(&["compare", "answers", "answers", "--table", "failures"]).exits(2).says(&["nothing to compare"]);
}

#[test]
fn the_least_energy_under_a_condition() {
    let sandbox = sandbox();
    let means = lines(
        &sandbox,
        &["results", "answers", "--by", "policy,bsld_threshold,size_factor", "--columns", "energy_total_j,bsld_mean"],
    );
    let mut slowdowns: Vec<f64> = means.iter().map(|row| number(row, "mean(bsld_mean)")).collect();
    slowdowns.sort_by(f64::total_cmp);
    let most = 0.5 * (slowdowns[4] + slowdowns[5]);
    let condition = format!("bsld_mean <= {most}");
    let expected = means
        .iter()
        .filter(|row| number(row, "mean(bsld_mean)") <= most)
        .min_by(|one, other| number(one, "mean(energy_total_j)").total_cmp(&number(other, "mean(energy_total_j)")))
        .expect("five rows");
    let found = lines(&sandbox, &["best", "answers", "--minimise", "energy_total_j", "--subject-to", &condition]);
    assert_eq!(found.len(), 1);
    for column in ["policy", "bsld_threshold", "size_factor", "mean(energy_total_j)", "mean(bsld_mean)"] {
        assert_eq!(found[0][column], expected[column], "{column}");
    }
    let shown = sandbox.run(&["best", "answers", "--minimise", "energy_total_j", "--subject-to", &condition]).exits(0);
    shown.says(&["powersweep: 5 of 9 combinations satisfy the conditions"]);
    // `best` says of each combination what `find` would say: uncertain where the interval contains the limit.
    let limit = number(&means[0], "mean(bsld_mean)") + 0.5 * number(&means[0], "ci95(bsld_mean)");
    let condition = format!("bsld_mean <= {limit}");
    let all = ["best", "answers", "--minimise", "energy_total_j", "--top", "9", "--subject-to", &condition];
    let judged = lines(&sandbox, &all);
    for row in &judged {
        let is_certain = number(row, "mean(bsld_mean)") + number(row, "ci95(bsld_mean)") < limit;
        assert_eq!(row["verdict"], if is_certain { "feasible" } else { "uncertain" }, "{row:?}");
    }
    let one = format!("bsld_mean <= {}", 0.5 * (slowdowns[0] + slowdowns[1]));
    let one = ["best", "answers", "--minimise", "energy_total_j", "--subject-to", &one];
    sandbox.run(&one).exits(0).says(&["powersweep: 1 of 9 combinations satisfies the conditions"]);
    let uncertain = judged.iter().filter(|row| row["verdict"] == "uncertain").count();
    assert!(uncertain > 0, "{judged:?}");
    sandbox.run(&all).exits(0).says(&[&format!("{uncertain} of them uncertain: the interval of a mean")]);
    // All combinations have equally many jobs.
    let tied = sandbox.run(&["best", "answers", "--minimise", "jobs_count", "--top", "2"]).exits(0);
    tied.says(&["7 other combinations have the same jobs_count: policy="]);
    // A condition on a parameter, and one that nothing satisfies.
    let small =
        ["best", "answers", "--maximise", "utilization_installed", "--subject-to", "size_factor<2", "--top", "3"];
    assert_eq!(lines(&sandbox, &small).len(), 3);
    let none = sandbox.run(&["best", "answers", "--minimise", "energy_total_j", "--subject-to", "bsld_mean<0"]);
    none.exits(1).says(&["none of 9 combinations satisfies the conditions", "bsld_mean lies between", "holds for 0"]);
    sandbox.run(&["best", "answers"]).exits(2).says(&["name a goal"]);
    for (goals, said) in [
        (["--minimise", "energy_total_j", "--maximise", "policy"], "`policy` has no numbers"),
        (["--minimise", "energy_total_j", "--maximise", "energy_total_j"], "`energy_total_j` is a goal twice"),
    ] {
        sandbox.run(&[&["best", "answers"][..], &goals].concat()).exits(2).says(&[said]);
    }
    let mixed = ["best", "answers", "--minimise", "energy_total_j", "--by", "policy"];
    sandbox.run(&mixed).exits(0).says(&["a mean is over rows that differ in size_factor, bsld_threshold"]);
    let elsewhere = ["best", "answers", "--minimise", "energy_total_j", "--where", "workload=UNKNOWN"];
    sandbox.run(&elsewhere).exits(2).says(&["no row satisfies `workload=UNKNOWN`"]);
}

/// The share of seeds that satisfy a condition, counted from the tasks.
#[test]
fn the_least_energy_for_most_of_the_seeds() {
    let sandbox = sandbox();
    let tasks = rows::read(&sandbox.path("results/data"), "answers", "tasks");
    let combination = |row: &Row| ["policy", "bsld_threshold", "size_factor"].map(|column| row[column].to_string());
    let mut slowdowns: Vec<f64> = tasks.iter().map(|row| number(row, "bsld_mean")).collect();
    slowdowns.sort_by(f64::total_cmp);
    let limit = slowdowns[slowdowns.len() * 2 / 3];
    let seeds = tasks.iter().filter(|row| combination(row) == combination(&tasks[0])).count();
    let share = |of: &Row| {
        let own = tasks.iter().filter(|row| combination(row) == combination(of));
        own.filter(|row| number(row, "bsld_mean") <= limit).count() as f64 / seeds as f64
    };
    let constraint = format!("P(bsld_mean <= {limit}) >= 0.6");
    let best = ["best", "answers", "--minimise", "energy_total_j", "--top", "9", "--subject-to", &constraint];
    let found = lines(&sandbox, &best);
    let all = lines(&sandbox, &["results", "answers", "--by", "policy,bsld_threshold,size_factor"]);
    assert_eq!(found.len(), all.iter().filter(|row| share(row) >= 0.6).count());
    assert!(!found.is_empty() && found.len() < all.len(), "{found:?}");
    for row in &found {
        assert_eq!(number(row, &constraint), share(row));
        let (low, high) = (number(row, &format!("low95({constraint})")), number(row, &format!("high95({constraint})")));
        assert!(0.0 <= low && low < share(row) && share(row) <= high && high <= 1.0, "{low} {high}");
    }
    let by_quantile = lines(&sandbox, &[&best[..7], &[&format!("p60(bsld_mean) <= {limit}")]].concat());
    assert_eq!(by_quantile.len(), found.len());

    let mixed = ["best", "answers", "--minimise", "energy_total_j", "--by", "policy", "--subject-to", &constraint];
    sandbox.run(&mixed).exits(2).says(&["some rows of one combination have the same seed"]);
    let parameter = ["best", "answers", "--minimise", "energy_total_j", "--subject-to", "P(size_factor <= 1) >= 0.5"];
    sandbox.run(&parameter).exits(2).says(&["`size_factor` is a parameter"]);
    let wrong = ["best", "answers", "--minimise", "energy_total_j", "--subject-to", "P(bsld_mean <= 1) >= 95"];
    sandbox.run(&wrong).exits(2).says(&["a share of seeds is compared"]);
}

/// Half of the tasks at a small machine fail: its means are over fewer seeds.
#[test]
fn combinations_that_lack_seeds_are_said() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "part.toml",
        "version = 1\nname = \"part\"\nseeds = { from = 1, count = 6 }\n[workloads.w]\nsource = \"lublin\"\n\
         synthetic_jobs_count = 40\n[platforms.p]\nsize_factor = [0.7, 1]\n[policies.q]\n",
    );
    sandbox.run(&["run", "part.toml", "--quiet"]).exits(3);
    let seeds = rows::tasks(&sandbox.path("results/data"), "part").len();
    assert!((7..12).contains(&seeds), "{seeds} rows");
    let best = ["best", "part", "--minimise", "energy_total_j"];
    sandbox.run(&best).exits(0).says(&["1 of 2 combinations lack seeds that the manifest has"]);
    let results = ["results", "part", "--by", "size_factor", "--columns", "energy_total_j"];
    sandbox.run(&results).exits(0).says(&["1 of 2 combinations lack seeds that the manifest has"]);
    let equal = sandbox.run(&[&best[..], &["--where", "size_factor=1"]].concat()).exits(0);
    assert!(!equal.stderr.contains("lack seeds"), "{equal}");
    let none = ["best", "part", "--minimise", "prediction_error_s_mean"];
    sandbox.run(&none).exits(2).says(&["no row has a number in `prediction_error_s_mean`"]);
    // Seeds without a row of the baseline are left out.
    let ratio = [&results[..], &["--ratio-to", "size_factor=0.7"]].concat();
    sandbox.run(&ratio).exits(0).says(&[&format!("{} rows have no row of the baseline", 12 - seeds)]);
}

#[test]
fn several_goals_have_a_front_with_a_hypervolume() {
    let sandbox = sandbox();
    let front = lines(&sandbox, &["best", "answers", "--minimise", "energy_total_j", "--minimise", "bsld_mean"]);
    let energies: Vec<f64> = front.iter().map(|row| number(row, "mean(energy_total_j)")).collect();
    let slowdowns: Vec<f64> = front.iter().map(|row| number(row, "mean(bsld_mean)")).collect();
    assert!(energies.is_sorted() && slowdowns.is_sorted_by(|one, other| one >= other), "{energies:?} {slowdowns:?}");
    let all = lines(
        &sandbox,
        &["results", "answers", "--by", "policy,bsld_threshold,size_factor", "--columns", "energy_total_j,bsld_mean"],
    );
    let beaten = |own: &Row| {
        all.iter().any(|other| {
            number(other, "mean(energy_total_j)") < number(own, "mean(energy_total_j)")
                && number(other, "mean(bsld_mean)") < number(own, "mean(bsld_mean)")
        })
    };
    assert!(!front.iter().any(beaten) && front.len() < all.len());
    // The area between the front and the worst values of all combinations, in slices of equal energy.
    let worst = |column: &str| all.iter().map(|row| number(row, column)).fold(f64::MIN, f64::max);
    let ends = energies[1..].iter().copied().chain([worst("mean(energy_total_j)")]);
    let area = |worst_slowdown: f64| -> f64 {
        let slices = energies.iter().zip(ends.clone()).zip(&slowdowns);
        slices.map(|((from, to), slowdown)| (to - from) * (worst_slowdown - slowdown)).sum()
    };
    let goals = ["best", "answers", "--minimise", "energy_total_j,bsld_mean"];
    let shown = |more: &[&str]| sandbox.run(&[&goals, more].concat()).exits(0);
    let says = |area: f64| format!("the hypervolume of the front is {} relative to energy_total_j", shown_number(area));
    shown(&[]).says(&[&says(area(worst("mean(bsld_mean)"))), "of the box of the front's best values"]);
    let reference = format!("{:?},{:?}", worst("mean(energy_total_j)"), 2.0 * worst("mean(bsld_mean)"));
    shown(&["--reference", &reference]).says(&[&says(area(2.0 * worst("mean(bsld_mean)")))]);
    sandbox.run(&[&goals[..], &["--reference", "1"]].concat()).exits(2).says(&["1 value for 2 goals"]);
    sandbox
        .run(&[&goals[..], &["--reference", "nan,1"]].concat())
        .exits(2)
        .says(&["the value NaN, which is not finite"]);
}

const QUERY: &str =
    "SELECT policy, count(*) AS n FROM jobs JOIN tasks USING (task_id, policy) GROUP BY ALL ORDER BY ALL";

#[test]
fn without_duckdb_the_statements_are_printed() {
    let sandbox = sandbox();
    let without = sandbox.run_with(&["sql", "answers", QUERY], &[("PATH", "/nonexistent")]).exits(1);
    let without = without.prints(&["CREATE VIEW tasks AS SELECT * FROM read_parquet(['/", "CREATE VIEW jobs"]);
    without.says(&["there is no program `duckdb` on the PATH", "pip install duckdb-cli"]);
    let printed = sandbox.run(&["sql", "answers", "--print"]).exits(0);
    assert_eq!(printed.stdout.lines().count(), 2, "{printed}");
    sandbox.run(&["sql", "nothing", "--print"]).exits(2).says(&["nothing"]);
}

/// DuckDB's program is beside the Python of the tests.
#[test_with::env(POWERSWEEP_PYTHON)]
#[test]
fn duckdb_gets_a_view_for_each_table() {
    let python = PathBuf::from(std::env::var_os("POWERSWEEP_PYTHON").expect("it was set for the compiler"));
    let folder = python.parent().expect("a path has a folder");
    if !folder.join("duckdb").exists() {
        return println!(
            "skipped: there is no program duckdb (results/tests/requirements.txt) in {}",
            folder.display()
        );
    }
    let sandbox = sandbox();
    let scratch = sandbox.path("scratch");
    std::fs::create_dir(&scratch).expect("a new folder");
    let variables =
        [("PATH", folder), ("TMPDIR", &*scratch)].map(|(name, path)| (name, path.to_str().expect("a text")));
    let run = |args: &[&str]| sandbox.run_with(args, &variables);
    run(&["sql", "answers", QUERY]).exits(0).prints(&["│ full", "4500", "│ save", "9000"]);
    run(&["sql", "answers", "SELECT nothing FROM tasks"]).exits(1).says(&["Referenced column", "duckdb has failed"]);
    // Unpublished rows, and rows of a coordinator on another machine.
    let (served, _) = sandbox.serve(&[]);
    sandbox.run(&["access", "export", "--client", "--output", "client.json"]).exits(0);
    let remote = run(&["sql", "answers", QUERY, "--access", "client.json"]).exits(0);
    remote.prints(&["4500", "9000"]);
    crate::farm::terminate(served);
    assert!(std::fs::read_dir(&scratch).expect("a folder").next().is_none(), "files are left");
}

#[test]
fn finished_tasks_run_again_with_the_same_rows() {
    let sandbox = sandbox();
    let some = sandbox.run(&["verify", "answers", "--tasks", "10", "--sample-seed", "3"]).exits(0);
    some.prints(&["10 of 45 tasks of answers ran again, chosen by --sample-seed 3: 10 rows equal in every column"]);
    sandbox.run(&["verify", "answers"]).exits(0).prints(&["45 of 45 tasks of answers", "45 rows equal"]);
    // A file with another value in one row: the manifest and the identity of the task are those of the true row.
    let table = powersweep_farmtest::dataset::table(&sandbox.path("results/data"), "answers", "tasks", &["task_index"]);
    let schema = table.schema();
    let at = schema.index_of("wait_s_mean").expect("a column");
    let mut columns = table.columns().to_vec();
    let mut waits: Vec<f64> = columns[at].as_primitive::<Float64Type>().values().to_vec();
    waits[7] += waits[7] * f64::EPSILON;
    columns[at] = std::sync::Arc::new(Float64Array::from(waits));
    let changed = RecordBatch::try_new(schema, columns).expect("the same columns");
    let footer = Footer {
        origin: Origin { manifest: SWEEP.to_owned(), ..Origin::default() },
        ..Footer::new("answers", uuid::Uuid::from_u128(7), 45)
    };
    let part = encode(changed.schema_ref(), std::slice::from_ref(&changed), &footer).expect("it can be encoded");
    let folder = sandbox.path("other/answers/tasks");
    std::fs::create_dir_all(&folder).expect("a new folder");
    std::fs::write(folder.join(layout::part_name(footer.part_id)), part).expect("it can be written");
    let wrong = sandbox.run(&["verify", "answers", "--data", "other"]).exits(10);
    wrong.prints(&["wait_s_mean", "7  "]).says(&["1 row differs"]);
    sandbox.run(&["verify", "answers", "--tasks", "0"]).exits(2).says(&["at least one must be chosen"]);
    // The rows of another manifest are not compared.
    sandbox.write("edited.toml", SWEEP.replace("synthetic_jobs_count = 300", "synthetic_jobs_count = 301"));
    sandbox.run(&["verify", "answers", "--manifest", "edited.toml"]).exits(1).says(&["no row could be compared"]);
}
