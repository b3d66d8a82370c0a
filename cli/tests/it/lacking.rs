//! Rows that are not there, and rows that are no replicates.

use crate::rows::lines;
use crate::sandbox::Sandbox;
use crate::sweeps::TINY_LOG;

/// All tasks of one machine fail: no row could name it.
#[test]
fn values_whose_tasks_all_failed_are_named() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "gone.toml",
        "version = 1\nname = \"gone\"\nseeds = [1, 2]\n[workloads.w]\nsource = \"lublin\"\nsynthetic_jobs_count = 40\n\
         [platforms.p]\nsize_factor = [0.1, 1, 2]\n[policies.q]\nbackfill = [\"easy\", \"none\"]\n",
    );
    sandbox.run(&["run", "gone.toml", "--quiet"]).exits(3);
    let said = ["2 of 6 combinations have no row, since the tasks failed or have not run: size_factor=0.1"];
    for args in [
        &["results", "gone", "--by", "size_factor,backfill", "--columns", "energy_total_j"][..],
        &["results", "gone", "--by", "backfill", "--columns", "energy_total_j"],
        &["best", "gone", "--minimise", "energy_total_j"],
    ] {
        sandbox.run(args).exits(0).says(&said);
    }
    let chosen = ["results", "gone", "--by", "backfill", "--columns", "energy_total_j", "--where", "size_factor=2"];
    assert_eq!(sandbox.run(&chosen).exits(0).stderr, "");
    let shown = sandbox.run(&["sensitivity", "gone", "--of", "energy_total_j"]).exits(0);
    shown
        .prints(&["of 6 cells", "2 points have no value"])
        .says(&["backfill=easy, size_factor=0.1 (seed 1, 2): no row"]);
    let found = lines(&sandbox, &["sensitivity", "gone", "--of", "energy_total_j"]);
    assert!(found.iter().all(|row| row["S1"].is_null() && row["ST"].is_null()), "bounds alone: {found:?}");
    let failures = ["results", "gone", "--table", "failures", "--by"];
    sandbox.run(&[&failures[..], &["size_factor"]].concat()).exits(2).says(&["failures have no `size_factor`"]);
    sandbox.run(&[&failures[..], &["platform"]].concat()).exits(0).prints(&["p"]);
}

/// No row is no empty answer.
#[test]
fn an_experiment_whose_tasks_all_failed_says_so() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "lost.toml",
        "version = 1\nname = \"lost\"\nseeds = [1, 2]\n[workloads.w]\nsource = \"lublin\"\nsynthetic_jobs_count = 40\n\
         [policies.q]\nbackfill = [\"easy\", \"none\"]\n[limits]\ntask_max_events = 10\n",
    );
    sandbox.run(&["run", "lost.toml", "--quiet"]).exits(3);
    let groups = ["results", "lost", "--by", "backfill", "--columns", "energy_total_j"];
    let said = ["lost has no rows yet: `powersweep status lost` says whether its tasks run or failed"];
    sandbox.run(&groups).exits(0).says(&said);
    sandbox.run(&[&groups[..], &["--ratio-to", "backfill=easy"]].concat()).exits(0).says(&said);
    sandbox
        .run(&["sensitivity", "lost", "--of", "energy_total_j"])
        .exits(2)
        .says(&["`powersweep status lost` says whether its tasks run or failed"]);
}

/// The rows of a log are equal for all seeds: they are one observation.
#[test]
fn seeds_that_change_nothing_are_no_replicates() {
    let sandbox = Sandbox::new();
    sandbox.write("logs/tiny.swf", TINY_LOG);
    let manifest = "version = 1\nname = \"log\"\nseeds = [1, 2, 3]\n[workloads.w]\nsource = \"swf\"\nlog = \"tiny\"\n\
                    [policies.q]\nbackfill = [\"easy\", \"none\"]\n";
    sandbox.write("log.toml", manifest);
    sandbox.write(
        "moved.toml",
        manifest.replace("\"log\"", "\"moved\"").replace("\"tiny\"", "\"tiny\"\nsubmit_jitter_s = 9"),
    );
    let warning = ["warning: the seeds change nothing in these tasks", "[workloads.w]"];
    sandbox.run(&["plan", "log.toml", "--traces", "logs"]).exits(0).prints(&warning);
    sandbox.run(&["run", "log.toml", "--traces", "logs"]).exits(0).says(&warning[..1]);
    sandbox.run(&["run", "moved.toml", "--traces", "logs", "--quiet"]).exits(0);
    let results =
        |name: &str| sandbox.run(&["results", name, "--by", "backfill", "--columns", "energy_total_j"]).exits(0);
    results("log").says(&["nothing in these tasks depends on the seed"]);
    assert!(!results("log").stdout.contains('±') && results("moved").stdout.contains('±'));
    let compared = sandbox.run(&["compare", "log:backfill=easy", "log:backfill=none"]).exits(0);
    compared.prints(&["3 pairs with the same seed. There is no interval: nothing in these tasks depends on the seed"]);
    let shares = sandbox.run(&["sensitivity", "log", "--of", "energy_total_j"]).exits(0);
    shares.prints(&["whose seeds are one or change nothing"]);
    // A condition on their value is certain.
    let best = ["best", "log", "--minimise", "energy_total_j", "--subject-to", "energy_total_j > 0"];
    sandbox.run(&best).exits(0).prints(&["feasible"]);
}
