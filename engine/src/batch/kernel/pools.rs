//! Free amounts of the pools of a machine, and the needs of jobs.
use super::cluster::{Cluster, JobId};
use super::recorder::Recorder;
use crate::batch::platform::pools::{Amounts, Needs};
use crate::limits::list_bytes;

/// The pools of a running simulation.
#[derive(Debug, Clone)]
pub(super) struct Pools {
    pub(super) free: Amounts,
    /// By job.
    pub(super) needs: Vec<Needs>,
}

impl Pools {
    pub(super) fn bytes(&self) -> usize {
        size_of::<Pools>() + list_bytes(&self.needs)
    }
}

impl<'w, R: Recorder> Cluster<'w, R> {
    /// Sets the needs of jobs; called before the first instant.
    pub(in crate::batch) fn set_needs(&mut self, needs: Vec<Needs>) {
        self.pools = Some(Box::new(Pools { free: Amounts::of(&self.machine.pools), needs }));
    }

    /// The needs of a job; of a machine without pools, none.
    #[inline]
    pub fn needs(&self, job: JobId) -> Needs {
        self.pools.as_ref().map_or(Needs::NONE, |pools| pools.needs[job as usize])
    }

    /// The free amounts of the pools.
    #[inline]
    pub fn free_amounts(&self) -> &Amounts {
        self.pools.as_ref().map_or(&Amounts::NONE, |pools| &pools.free)
    }

    /// Whether the procs and the other needs of a job are free now.
    #[inline]
    pub fn fits(&self, job: JobId) -> bool {
        self.procs(job) <= self.free()
            && self.pools.as_ref().is_none_or(|pools| pools.free.cover(pools.needs[job as usize]))
    }

    /// The pools of a copy.
    pub(super) fn copied_pools(&self, numbers: &[JobId]) -> Option<Box<Pools>> {
        let pools = self.pools.as_ref()?;
        let needs = numbers.iter().map(|&job| pools.needs[job as usize]).collect();
        Some(Box::new(Pools { free: pools.free, needs }))
    }

    /// The first need of a job that is not free, in words.
    pub(super) fn missing(&self, job: JobId) -> Option<String> {
        let pools = self.pools.as_ref()?;
        let short = |(pool, amount): &(usize, u64)| (*amount as i64) > pools.free.0[*pool];
        let (pool, amount) = pools.needs[job as usize].each().find(short)?;
        let free = pools.free.0[pool].max(0).unsigned_abs();
        let kind = self.machine.pools[pool].kind;
        Some(format!("it needs {}, and {} are free", kind.words(amount), kind.words(free)))
    }
}
