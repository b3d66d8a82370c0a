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

/// The first instant at which enough procs are free for the head by the estimated ends, and the procs that it leaves free. It
/// takes no memory from the allocator: a module whose memory grows in a pass is slower.
fn reservation(pass: &Pass, head: usize, free: u32) -> (f64, u32) {
    let started = || pass.waiting[..head].iter().map(|job| (pass.now_s + job.estimate_s, job.procs));
    let (need, mut available) = (pass.waiting[head].procs, free);
    let mut releases = pass.releases;
    let mut shadow_s = f64::NEG_INFINITY;
    while available < need && shadow_s < f64::INFINITY {
        let next_s = releases.first().map_or(f64::INFINITY, |release| release.at_s);
        shadow_s = started().map(|(end_s, _)| end_s).filter(|end_s| *end_s > shadow_s).fold(next_s, f64::min);
        let given = releases.iter().take_while(|release| release.at_s == shadow_s).count();
        available += releases[..given].iter().map(|release| release.procs).sum::<u32>();
        available += started().filter(|(end_s, _)| *end_s == shadow_s).map(|(_, procs)| procs).sum::<u32>();
        releases = &releases[given..];
    }
    (shadow_s, available.saturating_sub(need))
}

policy!(easy);
