//! Combinations that the engine refuses are found when the manifest is read.

use crate::errors;

#[test]
fn a_small_sweep_is_checked_task_by_task() {
    let text = errors(
        "version = 1\nname = \"t\"\n[workloads.w]\njob_number_from = [0, 10, 20]\njob_number_to = [5, 15]\n[policies.p]\n",
    );
    // (10, 5), (20, 5), (20, 15) are empty slices.
    assert!(text.contains("test.toml:4:1") && text.contains("job_number_from"), "{text}");
    assert!(text.contains("this combination cannot be simulated") && text.contains("job_number_from = 10"), "{text}");
}

#[test]
fn excluded_tasks_are_not_checked() {
    crate::sweep(
        "version = 1\nname = \"t\"\n[workloads.w]\njob_number_from = [0, 10]\njob_number_to = [5, 15]\n[policies.p]\n\
         [[exclude]]\njob_number_from = 10\njob_number_to = 5\n",
    );
}

#[test]
fn a_huge_sweep_is_checked_at_its_corners() {
    let text = errors(
        "version = 1\nname = \"t\"\nseeds = { from = 1, count = 1_000_000 }\n[workloads.w]\nsynthetic_jobs_count = { from = 1, to = 100 }\n\
         job_number_from = { from = 0, count = 100 }\njob_number_to = { from = 50, count = 100 }\n\
         [platforms.p]\ngears_ghz = [[0.8, 1.6], [1.0, 2.0, 3.0]]\ngear_volts = [1.0, 1.1]\n[policies.p]\n",
    );
    assert!(text.contains("job_number_from") && text.contains("gear"), "{text}");
}

/// The parameter that a sentence names first is the wrong one; the others are the values that it must fit.
#[test]
fn the_caret_points_at_the_parameter_that_is_named_first() {
    let manifest = |speeds: &str, arrivals: &str, betas: &str| {
        format!(
            r#"version = 1
name = "speeds"
[workloads.w]
source = "poisson-classes"
class_arrivals_per_s = {arrivals}
[platforms.p]
machine = "structured"
structure_class_rates_per_s = [1, 2]
structure_speeds = {speeds}
structure_betas_j = [1, 1, 1]
group_idle_w = [0, 0, 0]
[policies.q]
kind = "class-ordered-beta"
beta_groups_j = {betas}
[statistics]
statistics_kind = "horizon"
"#
        )
    };
    let cases = [
        (manifest("[1, 2]", "[1, 1]", "[1, 1, 1]"), "test.toml:9:1", "`structure_speeds` has 2 values: 3 groups"),
        (manifest("[1, 2, 3]", "[1, 1]", "[1, 1]"), "test.toml:14:1", "`beta_groups_j` has 2 values: 3 groups"),
        (manifest("[1, 2, 3]", "[0, 0]", "[1, 1, 1]"), "test.toml:5:1", "`class_arrivals_per_s` has no arrivals"),
    ];
    for (text, place, message) in cases {
        let shown = errors(&text);
        assert!(shown.contains(place) && shown.contains(message), "{shown}");
    }
}
