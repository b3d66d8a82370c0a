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
fn what_is_excluded_is_not_judged() {
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
