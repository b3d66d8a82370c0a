//! Needs of jobs besides their number of procs, read from a log: partition, GPUs and memory.
//!
//! A platform with `partition_procs`, `gpus` or `memory_gib` limits them. Another platform ignores them, so that one
//! workload serves machines with and without partitions.
use super::rules::labels::{self, Labels};
use super::swf::{GPUS_KEY, Record, SwfLog};
use super::{Generator, Job, RuleCounts, WorkloadError};
use crate::spec::{Choice, Default, Param, Role, SimSpec};

/// Parameter: the field with the partition.
pub(crate) const PARTITION_FROM: Param = Param::one_of(
    "partition_from",
    &["none", "partition", "queue", "user", "group"],
    "Field of the log with a job's partition (fields 16, 15, 12 and 13), for platforms with `partition_procs`.",
);

/// Parameter: the mapping from values to partitions.
pub(crate) const PARTITION_MAP: Param = Param {
    name: "partition_map",
    ty: labels::PAIRS,
    unit: "",
    default: Default::Unset,
    doc: "Pairs of a value of the field `partition_from` and its partition, one after the other ([7, 1, 9, 2]: 7 is in \
          partition 1, 9 in partition 2); jobs with another value have no partition, and `wide_jobs` says what happens to \
          them. If not given, the value itself is the partition.",
};

/// Parameter: where the number of GPUs comes from.
pub(crate) const GPUS_FROM: Param = Param::one_of(
    "gpus_from",
    &["none", "log"],
    "Where the GPUs of a job come from, for platforms with `gpus`: `log` reads comments `; JobGpus: JOB COUNT` behind the \
     records, as `import` writes them. A job without one has no GPU.",
);

/// Parameter: where the memory comes from.
pub(crate) const MEMORY_FROM: Param = Param::one_of(
    "memory_from",
    &["none", "requested", "requested-or-used"],
    "Memory of a job, for platforms with `memory_gib`: the requested memory of the log (field 10, KiB for each proc), or \
     the used memory (field 7) where none was requested. A job without memory in these fields needs none, and counts in \
     `memory_missing_count`.",
);

/// The needs of a record's job, besides its number of procs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NeedsOfRecord {
    /// The record, from 1.
    pub record: u64,
    /// Its partition, from 1; 0 if it has none.
    pub partition: u32,
    /// GPUs of the whole job.
    pub gpus: u32,
    /// Memory of each proc (KiB).
    pub proc_memory_kib: u64,
}

/// The needs of jobs by record, in order of the records; empty if the rules read none. Counts the jobs whose memory is
/// taken from the second field, or missing.
pub(super) fn of(
    spec: &SimSpec,
    log: &SwfLog,
    jobs: &[Job],
    counts: &mut RuleCounts,
) -> Result<Vec<NeedsOfRecord>, WorkloadError> {
    let rules = spec.choice(Role::Rules);
    let partitions = Labels::new(rules, PARTITION_FROM.name, PARTITION_MAP.name).map_err(WorkloadError::Needs)?;
    let (gpus_from, memory_from) = (rules.text(GPUS_FROM.name), rules.text(MEMORY_FROM.name));
    if partitions.is_none() && gpus_from == "none" && memory_from == "none" {
        return Ok(Vec::new());
    }
    let partition = |record: &Record| {
        let fields = [record.queue, record.user, record.group, record.partition];
        partitions.as_ref().and_then(|partitions| partitions.number(fields)).unwrap_or(0)
    };
    if gpus_from == "log" && log.gpus.is_empty() {
        return Err(WorkloadError::Needs(format!(
            "{}: no record has a comment `; {GPUS_KEY}: JOB COUNT`, and `gpus_from` = \"log\" needs some: import the job log \
             again with its column of GPUs, or leave `gpus_from` out",
            log.file
        )));
    }
    let mut records: Vec<u64> = jobs.iter().map(|job| job.record).collect();
    records.sort_unstable();
    records.dedup();
    let mut gpus = log.gpus.iter().peekable();
    let mut needs = Vec::with_capacity(records.len());
    for number in records {
        let at = number as usize - 1;
        let record = &log.records[at];
        while gpus.next_if(|gpus| gpus.record < at).is_some() {}
        let count = gpus.next_if(|gpus| gpus.record == at).map_or(0, |gpus| gpus.count);
        let proc_memory_kib = match (memory_from, record.memory_requested_kib, record.memory_used_kib) {
            ("none", ..) => 0,
            (_, requested @ 1.., _) => requested.unsigned_abs(),
            ("requested-or-used", _, used @ 1..) => {
                counts.memory_fallback_count += 1;
                used.unsigned_abs()
            }
            _ => {
                counts.memory_missing_count += 1;
                0
            }
        };
        let gpus = if gpus_from == "log" { count } else { 0 };
        needs.push(NeedsOfRecord { record: number, partition: partition(record), gpus, proc_memory_kib });
    }
    if memory_from != "none" && needs.iter().all(|needs| needs.proc_memory_kib == 0) {
        let field = if memory_from == "requested" { "field 10" } else { "fields 10 and 7" };
        return Err(WorkloadError::Needs(format!(
            "{}: no record has a memory in {field}, and `memory_from` = \"{memory_from}\" needs some: leave it out, or choose \
             a log with memory",
            log.file
        )));
    }
    Ok(needs)
}

/// Problems of the parameters, in sentences that name them.
pub(super) fn problems(spec: &SimSpec, rules: &Choice) -> Vec<String> {
    let mut problems = Vec::new();
    problems.extend(Labels::new(rules, PARTITION_FROM.name, PARTITION_MAP.name).err());
    if let Some(generator) = Generator::of(spec.choice(Role::Source)) {
        let source = generator.component.name;
        for name in [PARTITION_FROM.name, GPUS_FROM.name, MEMORY_FROM.name] {
            if rules.text(name) != "none" {
                problems.push(format!("`{name}` reads a log, and the source `{source}` is no log: leave it out"));
            }
        }
    }
    problems
}
