//! What the jobs of a run need of the pools of its machine, and how much of the pools they use.
use std::borrow::Cow;
use std::ops::Range;

use super::platform::Machine;
use super::platform::pools::{Needs, Pool, PoolKind};
use crate::error::SimError;
use crate::summary::{Outcome, Summary};
use crate::workload::Job;
use crate::workload::needs::NeedsOfRecord;

/// The needs of the jobs of a run.
#[derive(Debug)]
pub(super) struct JobNeeds {
    /// In the order of the jobs.
    pub(super) by_job: Vec<Needs>,
}

/// The needs, and the numbers of jobs that were changed.
#[derive(Debug)]
pub(super) struct Fitted {
    pub(super) needs: JobNeeds,
    pub(super) clamped_count: u64,
    pub(super) dropped_count: u64,
}

/// Where a machine has its pools.
struct Places<'m> {
    pools: &'m [Pool],
    /// Number of pools of procs, which are the first.
    partitions: usize,
    /// Whether these are partitions.
    partitioned: bool,
    gpus: Option<usize>,
    memory: Option<usize>,
}

impl<'m> Places<'m> {
    fn of(pools: &'m [Pool]) -> Places<'m> {
        let at = |wanted: PoolKind| pools.iter().position(|pool| pool.kind == wanted);
        let is_procs = |pool: &&Pool| !matches!(pool.kind, PoolKind::Gpus | PoolKind::MemoryKib);
        Places {
            pools,
            partitions: pools.iter().filter(is_procs).count(),
            partitioned: at(PoolKind::Partition(1)).is_some(),
            gpus: at(PoolKind::Gpus),
            memory: at(PoolKind::MemoryKib),
        }
    }

    /// The pool of a job's procs; `None` if the machine does not have its partition.
    fn procs(&self, record: NeedsOfRecord) -> Option<usize> {
        if !self.partitioned {
            return Some(0);
        }
        let at = (record.partition as usize).checked_sub(1)?;
        (at < self.partitions).then_some(at)
    }

    /// The needs of a job of these procs in a pool of procs.
    fn needs(&self, pool: usize, procs: u32, record: NeedsOfRecord) -> Needs {
        let mut needs = Needs::NONE;
        needs.add(0, pool, u64::from(procs));
        if let Some(gpus) = self.gpus {
            needs.add(1, gpus, u64::from(record.gpus));
        }
        if let Some(memory) = self.memory {
            needs.add(2, memory, record.proc_memory_kib.saturating_mul(u64::from(procs)));
        }
        needs
    }

    /// The first need that exceeds the machine: pool and amount.
    fn excess(&self, needs: Needs) -> Option<(usize, u64)> {
        needs.each().find(|(pool, amount)| *amount > self.pools[*pool].amount)
    }

    /// What becomes of a job by `wide_jobs`.
    fn fit(&self, wanted: Wanted, wide_jobs: &str) -> Result<Fit, SimError> {
        let Wanted { procs, record, .. } = wanted;
        let pool = self.procs(record);
        let excess = pool.and_then(|pool| self.excess(self.needs(pool, procs, record)));
        Ok(match (pool, excess, wide_jobs) {
            (Some(pool), None, _) => Fit::Whole(self.needs(pool, procs, record)),
            (_, _, "drop") => Fit::Dropped,
            (Some(pool), Some(_), "clamp") => {
                let (needs, procs) = self.cut(pool, procs, record);
                Fit::Cut(needs, procs)
            }
            (Some(_), Some((pool, amount)), _) => return Err(too_much(wanted, self.pools[pool], amount)),
            (None, ..) => return Err(no_partition(wanted, self.partitions)),
        })
    }

    /// The needs cut to the machine, and the procs.
    fn cut(&self, pool: usize, procs: u32, record: NeedsOfRecord) -> (Needs, u32) {
        let most = u32::try_from(self.pools[pool].amount).unwrap_or(u32::MAX);
        let procs = procs.min(most);
        let (whole, mut cut) = (self.needs(pool, procs, record), Needs::NONE);
        for (at, (pool, amount)) in whole.each().enumerate() {
            cut.add(at, pool, amount.min(self.pools[pool].amount));
        }
        (cut, procs)
    }
}

impl JobNeeds {
    /// The needs of jobs on a machine with pools; jobs that need too much are cut or dropped by `wide_jobs`.
    ///
    /// # Errors
    /// [`SimError::NeedTooLarge`]: a job needs too much and is not to be changed, or cannot be cut.
    pub(super) fn fitted(
        jobs: &mut Cow<'_, [Job]>,
        machine: &Machine,
        records: &[NeedsOfRecord],
        wide_jobs: &str,
    ) -> Result<Fitted, SimError> {
        let places = Places::of(&machine.pools);
        let (mut by_job, mut clamped_count, mut kept) = (Vec::with_capacity(jobs.len()), 0, vec![true; jobs.len()]);
        for at in 0..jobs.len() {
            match places.fit(Wanted::of(&jobs[at], records), wide_jobs)? {
                Fit::Whole(needs) => by_job.push(needs),
                Fit::Dropped => kept[at] = false,
                Fit::Cut(needs, procs) => {
                    by_job.push(needs);
                    clamped_count += 1;
                    if procs != jobs[at].procs {
                        jobs.to_mut()[at].procs = procs;
                    }
                }
            }
        }
        let dropped_count = kept.iter().filter(|kept| !**kept).count() as u64;
        if dropped_count > 0 {
            let mut kept = kept.into_iter();
            jobs.to_mut().retain(|_| kept.next() == Some(true));
        }
        Ok(Fitted { needs: JobNeeds { by_job }, clamped_count, dropped_count })
    }

    /// Fills the metrics of pools. `measured`: positions of the measured jobs.
    pub(super) fn fill(
        &self,
        summary: &mut Summary,
        machine: &Machine,
        (jobs, outcomes): (&[Job], &[Outcome]),
        measured: Range<usize>,
    ) {
        let mut used = vec![0.0; machine.pools.len()];
        let (mut counts, mut waits_s) = (vec![0_u64; used.len()], vec![0.0; used.len()]);
        for (at, (needs, outcome)) in self.by_job.iter().zip(outcomes).enumerate() {
            for (pool, amount) in needs.each() {
                used[pool] += amount as f64 * (outcome.finish_s - outcome.start_s);
            }
            if measured.contains(&at) {
                counts[needs.partition()] += 1;
                waits_s[needs.partition()] += outcome.start_s - jobs[at].submit_s;
            }
        }
        let share = |at: usize| {
            let capacity = machine.pools[at].amount as f64 * summary.makespan_s;
            (capacity > 0.0).then(|| used[at] / capacity)
        };
        let places = Places::of(&machine.pools);
        let gpu_utilization = places.gpus.and_then(share);
        let memory_utilization = places.memory.and_then(share);
        if places.partitioned {
            let partitions = 0..places.partitions;
            summary.partition_utilization = partitions.clone().map(share).collect();
            let mean = |at: usize| (counts[at] > 0).then(|| waits_s[at] / counts[at] as f64);
            summary.partition_wait_s_mean = partitions.clone().map(mean).collect();
            summary.partition_jobs_count = Some(counts[partitions].to_vec());
        }
        (summary.gpu_utilization, summary.memory_utilization) = (gpu_utilization, memory_utilization);
    }
}

/// A job, and what the log says of its needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) job_id: i64,
    pub(super) procs: u32,
    pub(super) record: NeedsOfRecord,
}

impl Wanted {
    /// The needs of a job. `records`: of the workload.
    pub(super) fn of(job: &Job, records: &[NeedsOfRecord]) -> Wanted {
        let none = NeedsOfRecord { record: job.record, partition: 0, gpus: 0, proc_memory_kib: 0 };
        let found = records.binary_search_by_key(&job.record, |needs| needs.record);
        Wanted { job_id: job.id, procs: job.procs, record: found.map_or(none, |at| records[at]) }
    }

    /// Why a run on this machine fails at the job; `None` if the job fits, or `wide_jobs` handles it.
    pub(super) fn problem(self, machine: &Machine, wide_jobs: &str) -> Option<SimError> {
        if machine.pools.is_empty() {
            return None;
        }
        Places::of(&machine.pools).fit(self, wide_jobs).err()
    }
}

/// What becomes of a job.
enum Fit {
    Whole(Needs),
    /// Its needs are cut, and it has these procs.
    Cut(Needs, u32),
    Dropped,
}

fn too_much(wanted: Wanted, pool: Pool, amount: u64) -> SimError {
    SimError::NeedTooLarge {
        job_id: wanted.job_id,
        record: wanted.record.record,
        needs: pool.kind.words(amount),
        has: pool.kind.words(pool.amount),
        help: "choose wide_jobs = \"clamp\" or \"drop\", or a larger machine",
    }
}

fn no_partition(wanted: Wanted, partitions: usize) -> SimError {
    let needs = match wanted.record.partition {
        0 => "a partition, which its record does not state".to_owned(),
        number => format!("partition {number}"),
    };
    SimError::NeedTooLarge {
        job_id: wanted.job_id,
        record: wanted.record.record,
        needs,
        has: format!("{partitions} partitions"),
        help: "choose wide_jobs = \"drop\", a `partition_map` that has its value, or more partitions in `partition_procs`",
    }
}
