//! Energies of jobs that share nodes.
//!
//! Slurm measures nodes: the energy of a job is that of its nodes while it ran, also where other jobs ran on them. Each such job
//! would have the whole energy, and the sum of the jobs would be larger than the energy of the machine.

use std::collections::BTreeMap;

use crate::joblogs::build::Kept;
use crate::joblogs::ledger::Rule;

/// Shares below this one are less than a whole by more than rounding.
const WHOLE: f64 = 1.0 - 1e-9;

/// The begin or the end of a job on a node.
struct Change {
    node: u32,
    us: i64,
    cpus: f64,
}

/// The integral of 1 / CPUs in use on a node up to its changes.
type Integral = Vec<(i64, f64)>;

/// Gives each job its share of the energy of its nodes: at each instant, the CPUs of the job over those of all jobs on the
/// node, as if the node's power were constant.
pub(super) fn share_energy(kept: &mut [Kept]) {
    let mut changes: Vec<Change> = Vec::new();
    for job in kept.iter() {
        let Some((start, end, cpus)) = use_of_nodes(job) else { continue };
        for node in job.entry.places.iter().copied() {
            changes.push(Change { node, us: start, cpus });
            changes.push(Change { node, us: end, cpus: -cpus });
        }
    }
    changes.sort_by_key(|change| (change.node, change.us));
    let mut integrals: BTreeMap<u32, Integral> = BTreeMap::new();
    for of_node in changes.chunk_by(|a, b| a.node == b.node) {
        let (mut integral, mut in_use, mut sum, mut before) = (Integral::new(), 0.0_f64, 0.0, of_node[0].us);
        for change in of_node {
            if in_use > 1e-9 {
                sum += (change.us - before) as f64 / in_use;
            }
            in_use += change.cpus;
            before = change.us;
            match integral.last_mut().filter(|(us, _)| *us == change.us) {
                Some(last) => last.1 = sum,
                None => integral.push((change.us, sum)),
            }
        }
        integrals.insert(of_node[0].node, integral);
    }
    for job in kept {
        let Some((start, end, cpus)) = use_of_nodes(job) else { continue };
        let Some(energy_j) = job.entry.measured.energy_j else { continue };
        let at = |integral: &Integral, us: i64| {
            integral.binary_search_by_key(&us, |(known, _)| *known).map_or(0.0, |found| integral[found].1)
        };
        let of_node = |node: &u32| integrals.get(node).map(|integral| at(integral, end) - at(integral, start));
        let sum: f64 = job.entry.places.iter().filter_map(of_node).sum();
        let share = sum * cpus / (job.entry.places.len() as f64 * (end - start) as f64);
        if share < WHOLE {
            job.entry.measured.energy_j = Some(energy_j * share);
            job.entry.changes.push(Rule::EnergyShared);
        }
    }
}

/// When a job used its nodes (µs), and how many CPUs of each; `None` if nothing says on which nodes it ran.
fn use_of_nodes(job: &Kept) -> Option<(i64, i64, f64)> {
    let start = job.times.start.filter(|_| job.times.run > 0 && !job.entry.places.is_empty())?;
    let cpus = f64::from(job.entry.allocated.cpus.unwrap_or(1).max(1)) / job.entry.places.len() as f64;
    Some((start, start + job.times.run, cpus))
}
