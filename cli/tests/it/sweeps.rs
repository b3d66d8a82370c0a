//! Manifests and logs of the tests.

/// A small sweep of synthetic jobs: two queue orders, `seeds` seeds.
pub(crate) fn synthetic(name: &str, seeds: u32) -> String {
    format!(
        r#"version = 1
name = "{name}"
seeds = {{ from = 1, count = {seeds} }}
[workloads.synthetic]
source = "lublin"
synthetic_jobs_count = 60
synthetic_procs = 64
[platforms.cluster]
[policies.plain]
queue_order = ["fcfs", "sjf"]
"#
    )
}

/// Three jobs on four processors; the second job needs all of them.
pub(crate) const TINY_LOG: &str = "; MaxProcs: 4
1 0 -1 10 2 -1 -1 2 20 -1 1 1 1 1 1 1 -1 -1
2 5 -1 10 4 -1 -1 4 20 -1 1 1 1 1 1 1 -1 -1
3 6 -1 30 1 -1 -1 1 40 -1 1 1 1 1 1 1 -1 -1
";

/// Eight tasks on [`TINY_LOG`], found as `tiny`; two fail because a job is wider than the machine.
pub(crate) const WIDE: &str = r#"version = 1
name = "wide"
[workloads.w]
source = "swf"
log = "tiny"
wide_jobs = ["error", "clamp"]
[platforms.p]
procs = [3, 4]
gears_ghz = [1, 2]
gear_volts = [1, 1.5]
[policies.q]
queue_order = ["fcfs", "sjf"]
"#;

/// Four tasks on [`TINY_LOG`], with the table `jobs`.
pub(crate) const JOBS: &str = r#"version = 1
name = "jobs"
tables = ["jobs"]
[workloads.w]
source = "swf"
log = "tiny"
interarrival_factor = [0.5, 1]
[platforms.p]
procs = 4
[policies.q]
queue_order = ["fcfs", "sjf"]
"#;

/// Seven typing errors, each of another kind.
pub(crate) const WRONG: &str = r#"version = 1
name = "my sweep"
seeds = { from = 1, count = -3 }

[workloads.synthetic]
source = "lublim"
synthetic_job_count = 500

[policies.gears]
backfil = "easy"
gear_rule = "bsld"
bsld_threshold = { from = 1.5, to = 3, step = 0 }
wq_threshold = [0, 16, "unlimitd"]
"#;
