//! Which jobs to start, and at which gear, so that most nodes work under a power cap (Zhou et al. 2013; Zhang et al.
//! 2014, Algorithm 4).
//!
//! A 0-1 knapsack: the gain of a job is its procs, its weight the power that it adds. Gears are tried from the lowest: the
//! lower the gear, the more jobs the power carries, until they need more procs than are free. So the gear is the lowest at
//! which the best set fits the free procs. The printed search ends with nothing if, between two gears, the set changes from
//! too wide to empty; at an empty machine it would wait for ever, so there the best set that fits is taken, at the highest
//! gear that has one.
use super::cap::allowance::{Allowance, above_idle_w};
use crate::error::Stop;
use crate::kernel::{Cluster, JobId, Recorder};

/// No entry before this one.
const FIRST: u32 = u32::MAX;

/// A job of a set, and the entry of the one before it.
#[derive(Debug, Clone, Copy)]
struct Taken {
    at: u32,
    before: u32,
}

/// The lightest set found so far for a number of procs.
#[derive(Debug, Clone, Copy)]
struct Best {
    weight: f64,
    last: u32,
}

/// The gear, and the positions among `jobs` (in list order) to start at it. `None`: nothing can start.
pub(crate) fn choose<R: Recorder>(
    jobs: &[JobId],
    allowance: &Allowance,
    cluster: &mut Cluster<'_, R>,
) -> Result<Option<(u8, Vec<usize>)>, Stop> {
    let free = cluster.free(0);
    let left_w = allowance.left_w(cluster);
    let gears = cluster.machine().classes[0].gears.len();
    let procs: Vec<u32> = jobs.iter().map(|&job| cluster.procs(job)).collect();
    // At an empty machine the search must not end with nothing while some set fits.
    let mut fallback = None;
    for gear in 0..gears as u8 {
        let added_w: Vec<f64> = jobs.iter().map(|&job| above_idle_w(cluster, job, gear)).collect();
        // The best set of a lower gear may need more procs than are free: then the next gear is tried.
        let most = if usize::from(gear) + 1 == gears { free } else { u32::MAX };
        let (weights, limit) = weigh(&procs, &added_w, left_w);
        let chosen = largest(&procs, &weights, limit, most, cluster)?;
        if chosen.is_empty() {
            return Ok(fallback.filter(|_| cluster.running_count() == 0));
        }
        if cluster.running_count() == 0 {
            let fits = largest(&procs, &weights, limit, free, cluster)?;
            fallback = (!fits.is_empty()).then_some((gear, fits)).or(fallback);
        }
        if chosen.iter().map(|&at| procs[at]).sum::<u32>() <= free {
            return Ok(Some((gear, chosen)));
        }
    }
    Ok(None)
}

/// Whether all jobs add the same power a proc: then weights are procs, and sums of them exact.
fn alike(procs: &[u32], added_w: &[f64]) -> bool {
    let each = |at: usize| added_w[at] / f64::from(procs[at]);
    (1..procs.len()).all(|at| (each(at) - each(0)).abs() <= 1e-12 * each(0).abs())
}

/// The weights of jobs, and the greatest weight of a set.
fn weigh(procs: &[u32], added_w: &[f64], left_w: f64) -> (Vec<f64>, f64) {
    if left_w < 0.0 {
        return (added_w.to_vec(), -1.0);
    }
    if !alike(procs, added_w) {
        return (added_w.to_vec(), left_w);
    }
    let each_w = added_w[0] / f64::from(procs[0]);
    let limit = if each_w > 0.0 { (left_w / each_w).floor() } else { f64::INFINITY };
    (procs.iter().map(|&n| f64::from(n)).collect(), limit)
}

/// The set with most procs, at most `most`, whose weight is within the limit; of several the first found when the jobs are
/// taken in list order. Positions ascend.
fn largest<R: Recorder>(
    procs: &[u32],
    weights: &[f64],
    limit: f64,
    most: u32,
    cluster: &mut Cluster<'_, R>,
) -> Result<Vec<usize>, Stop> {
    let total: u64 = procs.iter().map(|&n| u64::from(n)).sum();
    // All at once, the usual case of a short list.
    if total <= u64::from(most) && weights.iter().sum::<f64>() <= limit {
        return Ok((0..procs.len()).collect());
    }
    let most = total.min(u64::from(most)) as usize;
    let none = Best { weight: f64::INFINITY, last: FIRST };
    let mut best = vec![none; most + 1];
    best[0].weight = 0.0;
    let mut taken: Vec<Taken> = Vec::new();
    for (at, (&n, &weight)) in procs.iter().zip(weights).enumerate() {
        cluster.step()?;
        for sum in (n as usize..=most).rev() {
            let from = best[sum - n as usize];
            if from.weight + weight < best[sum].weight && from.weight + weight <= limit {
                best[sum] = Best { weight: from.weight + weight, last: taken.len() as u32 };
                taken.push(Taken { at: at as u32, before: from.last });
            }
        }
    }
    let mut set = Vec::new();
    let mut last = (1..=most).rev().find(|&sum| best[sum].last != FIRST).map_or(FIRST, |sum| best[sum].last);
    while last != FIRST {
        let Taken { at, before } = taken[last as usize];
        set.push(at as usize);
        last = before;
    }
    set.reverse();
    Ok(set)
}
