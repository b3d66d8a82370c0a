//! Other workloads of the same kind, one for each seed: blocks of time in another order, and submits at other times.
//!
//! A log is one sample. Resampled blocks show how far a result depends on which weeks the log happens to have (Künsch 1989);
//! blocks of whole weeks keep the daily and the weekly cycle, and the dependence of jobs within a week.

use super::super::{Job, WorkloadError, check_size};
use crate::rng::{Philox, Purpose};
use crate::spec::{Choice, Default, Param, Type};

const DAY_S: f64 = 86_400.0;
/// Greatest number of blocks: bounds the memory of a workload.
const BLOCKS_MAX: i64 = 10_000;

/// Parameter: the length of a block.
pub(super) const RESAMPLE_DAYS: Param = Param {
    name: "resample_days",
    ty: Type::Real { min: 0.0, max: 1e6, min_allowed: false, unlimited: false },
    unit: "days",
    default: Default::Unset,
    doc: "Blocks of this length, from the first submit on, are drawn with replacement by the seed and joined (Künsch 1989): \
          each seed makes another workload. 7 keeps the weekly cycle. The jobs after the last whole block are not drawn; jobs \
          get numbers from 1.",
};

/// Parameter: the number of blocks.
pub(super) const RESAMPLE_BLOCKS: Param = Param {
    name: "resample_blocks",
    ty: Type::Int { min: 1, max: BLOCKS_MAX },
    unit: "blocks",
    default: Default::Unset,
    doc: "Number of blocks that are drawn for `resample_days`; if not given, as many as the jobs have.",
};

/// Parameter: the jitter.
pub(super) const SUBMIT_JITTER_S: Param = Param {
    name: "submit_jitter_s",
    ty: Type::Real { min: 0.0, max: 1e9, min_allowed: true, unlimited: false },
    unit: "s",
    default: Default::Real(0.0),
    doc: "Each submit is moved by a uniform time of at most this, earlier or later, drawn by the seed: small changes that a \
          policy should be robust to. No job is submitted before the first one of the log.",
};

/// How the jobs of a workload are varied.
#[derive(Debug, Clone, Copy)]
pub(super) struct Resample {
    days: Option<f64>,
    blocks: Option<i64>,
    jitter_s: f64,
}

impl Resample {
    pub(super) fn of(choice: &Choice) -> Result<Resample, WorkloadError> {
        let (days, blocks) = (choice.opt_real(RESAMPLE_DAYS.name), choice.opt_int(RESAMPLE_BLOCKS.name));
        if days.is_none() && blocks.is_some() {
            let message = "`resample_blocks` needs `resample_days`, the length of a block: 7 for weeks";
            return Err(WorkloadError::Resample(message.to_owned()));
        }
        Ok(Resample { days, blocks, jitter_s: choice.real(SUBMIT_JITTER_S.name) })
    }

    /// Whether workloads differ by the seed.
    pub(super) fn draws(&self) -> bool {
        self.days.is_some() || self.jitter_s > 0.0
    }

    /// Varies jobs, which may be in any order. Returns the number of whole blocks from which blocks are drawn.
    pub(super) fn apply(&self, jobs: &mut Vec<Job>, seed: u64, max_bytes: u64) -> Result<Option<u64>, WorkloadError> {
        let mut whole = None;
        let first_s = jobs.iter().map(|job| job.submit_s).fold(f64::INFINITY, f64::min);
        if let Some(days) = self.days {
            let (drawn, blocks) = self.drawn(jobs, first_s, days, (seed, max_bytes))?;
            (*jobs, whole) = (drawn, Some(blocks));
        }
        if self.jitter_s > 0.0 {
            let mut random = Philox::stream(seed, Purpose::Jitter);
            for job in jobs {
                job.submit_s = (job.submit_s + random.uniform_in(-self.jitter_s, self.jitter_s)).max(first_s);
            }
        }
        Ok(whole)
    }

    /// The jobs of the drawn blocks, and the number of whole blocks.
    fn drawn(
        &self,
        jobs: &[Job],
        first_s: f64,
        days: f64,
        (seed, max_bytes): (u64, u64),
    ) -> Result<(Vec<Job>, u64), WorkloadError> {
        let length_s = days * DAY_S;
        let mut sorted: Vec<&Job> = jobs.iter().collect();
        sorted.sort_by(|a, b| a.submit_s.total_cmp(&b.submit_s));
        let last_s = sorted.last().map_or(first_s, |job| job.submit_s);
        let whole = ((last_s - first_s) / length_s).floor();
        if whole < 2.0 {
            return Err(WorkloadError::Resample(format!(
                "`resample_days` = {days}: the jobs arrive within {:.1} days, which is fewer than two whole blocks",
                (last_s - first_s) / DAY_S
            )));
        }
        let count = self.blocks.map_or(whole, |blocks| blocks as f64).min(BLOCKS_MAX as f64) as u64;
        let begin_s = |block: f64| first_s + block * length_s;
        let mut random = Philox::stream(seed, Purpose::Block);
        let blocks: Vec<f64> = (0..count).map(|_| random.below(whole as u64) as f64).collect();
        let position = |begin_s: f64| sorted.partition_point(|job| job.submit_s < begin_s);
        let of_block = |block: f64| &sorted[position(begin_s(block))..position(begin_s(block + 1.0))];
        let all: usize = blocks.iter().map(|block| of_block(*block).len()).sum();
        check_size(all as u64, size_of::<Job>(), max_bytes)?;
        let mut drawn = Vec::with_capacity(all);
        for (at, block) in blocks.into_iter().enumerate() {
            for job in of_block(block) {
                let submit_s = begin_s(at as f64) + (job.submit_s - begin_s(block));
                drawn.push(Job { id: drawn.len() as i64 + 1, submit_s, ..**job });
            }
        }
        Ok((drawn, whole as u64))
    }
}
