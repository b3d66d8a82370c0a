//! EASY backfilling as a policy module.
use powersweep_policy::{Pass, Starts, policy};

/// The first waiting job that does not fit gets a reservation. A job behind it starts if it fits and either ends by then or
/// leaves the reservation its procs.
pub fn easy(pass: &Pass, starts: &mut Starts) {
    let mut free = pass.free_procs;
    let end_s = |at: usize| pass.now_s + pass.waiting[at].estimate_s;
    // Jobs start in order until one does not fit.
    let mut head = 0;
    while head < pass.waiting.len() && pass.waiting[head].procs <= free {
        free -= pass.waiting[head].procs;
        starts.push(head);
        head += 1;
    }
    if head == pass.waiting.len() {
        return;
    }
    let (shadow_s, mut extra) = reservation(pass, head, free);
    for at in head + 1..pass.waiting.len() {
        let procs = pass.waiting[at].procs;
        let late = end_s(at) > shadow_s;
        if procs > free || (late && procs > extra) {
            continue;
        }
        if late {
            extra -= procs;
        }
        free -= procs;
        starts.push(at);
    }
}

/// The first instant at which enough procs are free for the head by the estimated ends, and the procs that it leaves free.
fn reservation(pass: &Pass, head: usize, free: u32) -> (f64, u32) {
    let mut ends: Vec<(f64, u32)> = pass.releases.iter().map(|release| (release.at_s, release.procs)).collect();
    ends.extend(pass.waiting[..head].iter().map(|job| (pass.now_s + job.estimate_s, job.procs)));
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (need, mut available) = (pass.waiting[head].procs, free);
    let mut shadow_s = f64::INFINITY;
    for (end_s, procs) in ends {
        if available >= need && end_s > shadow_s {
            break;
        }
        available += procs;
        shadow_s = end_s;
    }
    (shadow_s, available.saturating_sub(need))
}

policy!(easy);
