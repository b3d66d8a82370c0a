//! Pools of a machine: amounts that running jobs take besides the count of all procs.
//!
//! A machine is a vector of capacities, a job a vector of needs. A partition is a pool of procs; the GPUs and the memory
//! of the machine are one pool each. A machine without these parameters has no pools, and its procs alone count.
use crate::batch::policy::cap::acting::acting;
use crate::error::SimError;
use crate::spec::{Default, Param, Role, SimSpec, Type};
use crate::workload::needs;

/// Greatest number of pools.
pub const POOLS_MAX: usize = 16;

/// Greatest number of partitions: GPUs and memory are two further pools.
const PARTITIONS_MAX: usize = POOLS_MAX - 2;

/// KiB in a GiB.
const KIB: f64 = (1 << 20) as f64;

/// Greatest amount that a job may need: sums over all jobs do not overflow.
const NEED_MAX: u64 = 1 << 60;

/// Parameter: the processors of the partitions.
pub(super) const PARTITION_PROCS: Param = Param {
    name: "partition_procs",
    ty: Type::Reals { min: 1.0, max: (1 << 30) as f64 },
    unit: "procs",
    default: Default::Unset,
    doc: "Processors of partition 1, 2, ... before `size_factor`, in place of `procs`: a job runs on processors of its own \
          partition (`partition_from`).",
};

/// Parameter: the GPUs.
pub(super) const GPUS: Param = Param {
    name: "gpus",
    ty: Type::Int { min: 0, max: 1 << 30 },
    unit: "GPUs",
    default: Default::Unset,
    doc: "GPUs of the machine, counted as a whole; a job holds the GPUs that `gpus_from` says. If not given, GPUs limit \
          no job.",
};

/// Parameter: the memory.
pub(super) const MEMORY_GIB: Param = Param {
    name: "memory_gib",
    ty: Type::Real { min: 0.0, max: 1e9, min_allowed: false, unlimited: false },
    unit: "GiB",
    default: Default::Unset,
    doc: "Memory of the machine, counted as a whole; a job holds the memory that `memory_from` says. If not given, memory \
          limits no job.",
};

/// The amount that a pool counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolKind {
    /// The procs of a partition, from 1.
    Partition(u32),
    /// The procs of a machine without partitions.
    Procs,
    /// GPUs.
    Gpus,
    /// Memory in KiB.
    MemoryKib,
}

impl PoolKind {
    /// An amount in words.
    pub fn words(self, amount: u64) -> String {
        let s = if amount == 1 { "" } else { "s" };
        match self {
            PoolKind::Partition(number) => format!("{amount} proc{s} of partition {number}"),
            PoolKind::Procs => format!("{amount} proc{s}"),
            PoolKind::Gpus => format!("{amount} GPU{s}"),
            PoolKind::MemoryKib => format!("{} GiB of memory", amount as f64 / KIB),
        }
    }
}

/// A pool.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pool {
    /// The amount that it counts.
    pub kind: PoolKind,
    /// The amount of the machine.
    pub amount: u64,
}

/// What a job takes of each pool while it holds procs: of one pool of procs, of the GPUs and of the memory.
#[derive(Debug, Clone, Copy, PartialEq, std::default::Default)]
pub struct Needs {
    amounts: [u64; 3],
    pools: [u8; 3],
    /// The pools of which it takes something, one bit each.
    mask: u16,
}

impl Needs {
    /// No needs, to which [`Needs::add`] adds.
    pub const NONE: Needs = Needs { amounts: [0; 3], pools: [0; 3], mask: 0 };

    /// Adds the need of the next pool; at most three can be added.
    pub fn add(&mut self, at: usize, pool: usize, amount: u64) {
        if at == 0 {
            // Unused places need 0 of the first pool.
            self.pools = [pool as u8; 3];
        }
        (self.amounts[at], self.pools[at]) = (amount.min(NEED_MAX), pool as u8);
        self.mask |= u16::from(amount > 0) << pool;
    }

    /// The pools of which it takes something, one bit each.
    #[inline]
    pub fn mask(self) -> u16 {
        self.mask
    }

    /// The pool of its procs.
    #[inline]
    pub fn partition(self) -> usize {
        usize::from(self.pools[0])
    }

    /// Pool and amount of each need; some amounts may be 0.
    #[inline]
    pub fn each(self) -> impl Iterator<Item = (usize, u64)> {
        self.pools.into_iter().map(usize::from).zip(self.amounts)
    }
}

/// An amount of each pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, std::default::Default)]
pub struct Amounts(pub [i64; POOLS_MAX]);

impl Amounts {
    /// No amount in any pool.
    pub const NONE: Amounts = Amounts([0; POOLS_MAX]);

    /// The capacities of pools.
    pub fn of(pools: &[Pool]) -> Amounts {
        let mut amounts = Amounts::NONE;
        for (amount, pool) in amounts.0.iter_mut().zip(pools) {
            *amount = pool.amount as i64;
        }
        amounts
    }

    /// The amounts of a job's needs.
    #[inline]
    pub fn taken(needs: Needs) -> Amounts {
        let mut amounts = Amounts::NONE;
        amounts.give(needs);
        amounts
    }

    /// Whether the needs of a job fit.
    #[inline]
    pub fn cover(&self, needs: Needs) -> bool {
        let fits = |at: usize| self.0[usize::from(needs.pools[at]) % POOLS_MAX] >= needs.amounts[at] as i64;
        fits(0) & fits(1) & fits(2)
    }

    /// Makes the amounts of other pools than these unlimited; one bit for each pool.
    pub(crate) fn limit_to(&mut self, pools: u16) {
        let others = self.0.iter_mut().enumerate().filter(|(pool, _)| pools >> pool & 1 == 0);
        others.for_each(|(_, amount)| *amount = i64::MAX / 2);
    }

    /// A job takes what it needs.
    #[inline]
    pub fn take(&mut self, needs: Needs) {
        for (pool, amount) in needs.each() {
            self.0[pool % POOLS_MAX] -= amount as i64;
        }
    }

    /// A job returns what it took.
    #[inline]
    pub fn give(&mut self, needs: Needs) {
        for (pool, amount) in needs.each() {
            self.0[pool % POOLS_MAX] += amount as i64;
        }
    }
}

/// Whether a spec's machine has pools.
pub fn are_used(spec: &SimSpec) -> bool {
    let platform = spec.choice(Role::Platform);
    [PARTITION_PROCS.name, GPUS.name, MEMORY_GIB.name].iter().any(|name| platform.get(name).is_some())
}

/// The processors of the partitions of a spec, `size_factor` applied; `None` without partitions.
///
/// # Errors
/// [`SimError::Invalid`]: `size_factor` leaves a partition without a processor.
pub(super) fn partitions(spec: &SimSpec) -> Result<Option<Vec<u32>>, SimError> {
    let platform = spec.choice(Role::Platform);
    let Some(partitions) = platform.opt_reals(PARTITION_PROCS.name) else { return Ok(None) };
    let factor = platform.real("size_factor");
    let sized = |(at, procs): (usize, &f64)| {
        let sized = (procs * factor + 0.5).floor();
        if (1.0..=f64::from(super::PROCS_MAX)).contains(&sized) {
            return Ok(sized as u32);
        }
        Err(SimError::Invalid(format!(
            "partition {} of `partition_procs` has {procs} procs, and `size_factor` {factor} makes them {sized}: each \
             partition must have from 1 to {}",
            at + 1,
            super::PROCS_MAX
        )))
    };
    partitions.iter().enumerate().map(sized).collect::<Result<Vec<u32>, _>>().map(Some)
}

/// The pools of a spec's machine with this number of procs; none if its procs alone count.
pub(super) fn of(spec: &SimSpec, procs: u32, partitions: Option<&[u32]>) -> Vec<Pool> {
    if !are_used(spec) {
        return Vec::new();
    }
    let platform = spec.choice(Role::Platform);
    let mut pools: Vec<Pool> = match partitions {
        Some(partitions) => (1..)
            .zip(partitions)
            .map(|(number, &procs)| Pool { kind: PoolKind::Partition(number), amount: u64::from(procs) })
            .collect(),
        None => vec![Pool { kind: PoolKind::Procs, amount: u64::from(procs) }],
    };
    if let Some(gpus) = platform.opt_int(GPUS.name) {
        pools.push(Pool { kind: PoolKind::Gpus, amount: gpus.unsigned_abs() });
    }
    if let Some(gib) = platform.opt_real(MEMORY_GIB.name) {
        pools.push(Pool { kind: PoolKind::MemoryKib, amount: (gib * KIB).round() as u64 });
    }
    pools
}

/// The first parameter that gives the machine pools, if one does.
pub(crate) fn limit_of(spec: &SimSpec) -> Option<&'static str> {
    let platform = spec.choice(Role::Platform);
    [PARTITION_PROCS, GPUS, MEMORY_GIB].iter().map(|param| param.name).find(|name| platform.get(name).is_some())
}

/// Problems of the parameters, in sentences that name them.
pub(super) fn problems(spec: &SimSpec) -> Vec<String> {
    let (platform, rules) = (spec.choice(Role::Platform), spec.choice(Role::Rules));
    let mut problems = Vec::new();
    let read_from = [
        (PARTITION_PROCS.name, needs::PARTITION_FROM.name, "partition"),
        (GPUS.name, needs::GPUS_FROM.name, "log"),
        (MEMORY_GIB.name, needs::MEMORY_FROM.name, "requested"),
    ];
    let set = || read_from.iter().filter(|(name, ..)| platform.get(name).is_some());
    for (name, from, value) in set().filter(|(_, from, _)| rules.text(from) == "none") {
        problems.push(format!(
            "`{name}` limits jobs whose needs are not known: set `{from}` = \"{value}\" in the workload, or leave `{name}` out"
        ));
    }
    if let Some(partitions) = platform.opt_reals(PARTITION_PROCS.name) {
        if let Some(procs) = partitions.iter().find(|procs| procs.fract() != 0.0) {
            problems.push(format!("`partition_procs` are whole numbers of procs, and {procs} is none"));
        }
        if partitions.len() > PARTITIONS_MAX {
            problems.push(format!(
                "`partition_procs` has {} partitions: at most {PARTITIONS_MAX} are possible",
                partitions.len()
            ));
        }
        if platform.get("procs").is_some() {
            problems.push(
                "`procs` and `partition_procs` both say how large the machine is: leave `procs` out, the machine has the \
                 sum of its partitions"
                    .to_owned(),
            );
        }
        if spec.choice(Role::Statistics).get("node_lists") == Some(&crate::spec::Value::Bool(true)) {
            problems.push(
                "`node_lists` numbers the procs of one machine and knows no partitions: leave it out with \
                 `partition_procs`"
                    .to_owned(),
            );
        }
    }
    if let Some(name) = limit_of(spec) {
        problems.extend(refused(spec, name));
    }
    problems
}

/// The components that a machine with pools is refused with.
fn refused(spec: &SimSpec, name: &str) -> Vec<String> {
    /// The backfilling rules that count pools.
    const COUNTING: [&str; 3] = ["none", "easy", "conservative"];
    let chosen = |role: Role| spec.choice(role).component().name;
    let mut problems = Vec::new();
    let backfill = chosen(Role::Backfill);
    if !COUNTING.contains(&backfill) {
        problems.push(format!(
            "`backfill` = \"{backfill}\" counts the procs of one machine only: with `{name}`, choose \"none\", \"easy\" or \
             \"conservative\""
        ));
    }
    let order = chosen(Role::BackfillOrder);
    if order != Role::BackfillOrder.default_component() {
        problems.push(format!(
            "`backfill_order` = \"{order}\" cannot be combined with `{name}`: jobs of several partitions overtake in queue \
             order"
        ));
    }
    let capacity = Some(chosen(Role::Capacity)).filter(|name| *name != "none");
    for (role, other, why) in [
        (Role::Cap, acting(spec), "a power cap starts jobs by procs and watts"),
        (Role::Capacity, capacity, "a capacity rule puts procs to sleep without regard to who needs them"),
    ] {
        let key = role.key();
        problems.extend(other.map(|other| format!("`{key}` = \"{other}\" cannot be combined with `{name}`: {why}")));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needs_fit_pool_by_pool() {
        let pools = [PoolKind::Partition(1), PoolKind::Partition(2), PoolKind::Gpus];
        let pools = pools.map(|kind| Pool { kind, amount: 4 });
        let mut free = Amounts::of(&pools);
        let needs = |partition: usize, procs: u64, gpus: u64| {
            let mut needs = Needs::NONE;
            needs.add(0, partition, procs);
            needs.add(1, 2, gpus);
            needs
        };
        let (wide, other, on_gpus) = (needs(0, 4, 0), needs(1, 1, 0), needs(1, 1, 4));
        assert!(free.cover(wide) && free.cover(on_gpus) && !free.cover(needs(0, 5, 0)) && !free.cover(needs(0, 1, 5)));
        assert_eq!([wide, other, on_gpus, needs(0, 1, 1)].map(Needs::mask), [0b001, 0b010, 0b110, 0b101]);
        free.take(on_gpus);
        assert!(free.cover(wide) && free.cover(needs(1, 3, 0)) && !free.cover(needs(0, 1, 1)));
        free.give(on_gpus);
        assert_eq!(free, Amounts::of(&pools));
    }
}
