//! Manifests that tests and benches share.

/// `tasks` synthetic tasks, a multiple of 4, with `jobs` jobs each; `more` has further keys of the manifest.
pub fn four_policies(name: &str, tasks: u64, jobs: u32, more: &str) -> String {
    let seeds = tasks / 4;
    format!(
        r#"
version = 1
name = "{name}"
{more}
seeds = {{ from = 1, count = {seeds} }}
[workloads.w]
source = "lublin"
synthetic_jobs_count = {jobs}
synthetic_procs = 64
[platforms.p]
[policies.plain]
queue_order = ["fcfs", "sjf"]
[policies.slow]
gear_rule = "bsld"
bsld_threshold = 2
wq_threshold = [0, "unlimited"]
"#
    )
}
