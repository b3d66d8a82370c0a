//! Node numbers of jobs: the kernel counts procs, and the numbers are derived from the schedule if they are wanted.
//!
//! First fit: a job takes the lowest numbers that are free at its start. Numbers that become free at an instant can be
//! taken at that instant; a job that ends at its start takes numbers and gives them back at once.
use std::fmt::Write as _;

use crate::summary::Outcome;
use crate::workload::Job;

/// Free node numbers as half-open ranges, ascending, with gaps between them.
struct Free {
    ranges: Vec<(u32, u32)>,
}

impl Free {
    /// Takes the lowest `count` numbers, as ranges. They are free, because the schedule never holds more procs than the
    /// machine has.
    fn take(&mut self, mut count: u32) -> Vec<(u32, u32)> {
        let mut taken = Vec::new();
        let mut used_up = 0;
        for range in &mut self.ranges {
            if count == 0 {
                break;
            }
            let end = range.1.min(range.0 + count);
            count -= end - range.0;
            taken.push((range.0, end));
            range.0 = end;
            used_up += usize::from(range.0 == range.1);
        }
        debug_assert_eq!(count, 0, "more procs are held than the machine has");
        self.ranges.drain(..used_up);
        taken
    }

    fn give_back(&mut self, ranges: &[(u32, u32)]) {
        self.ranges.extend(ranges);
        self.ranges.sort_unstable();
        let mut kept = 0;
        for at in 1..self.ranges.len() {
            let (begin, end) = self.ranges[at];
            if self.ranges[kept].1 == begin {
                self.ranges[kept].1 = end;
            } else {
                kept += 1;
                self.ranges[kept] = (begin, end);
            }
        }
        self.ranges.truncate(kept + 1);
    }
}

/// The node numbers of each job, in workload order: ranges from 0, such as `0-49 60`.
pub(crate) fn lists(machine_procs: u32, jobs: &[Job], outcomes: &[Outcome]) -> Vec<String> {
    let has_length = |i: usize| outcomes[i].finish_s > outcomes[i].start_s;
    let mut starts: Vec<usize> = (0..jobs.len()).collect();
    // Jobs without length come first at an instant: others may have started on the nodes that they gave back.
    starts.sort_unstable_by(|&i, &j| {
        outcomes[i].start_s.total_cmp(&outcomes[j].start_s).then(has_length(i).cmp(&has_length(j))).then(i.cmp(&j))
    });
    let mut ends: Vec<usize> = (0..jobs.len()).filter(|&i| has_length(i)).collect();
    ends.sort_unstable_by(|&i, &j| outcomes[i].finish_s.total_cmp(&outcomes[j].finish_s).then(i.cmp(&j)));
    let mut ends = ends.into_iter().peekable();
    let mut free = Free { ranges: vec![(0, machine_procs)] };
    let mut held: Vec<Vec<(u32, u32)>> = vec![Vec::new(); jobs.len()];
    for job in starts {
        let outcome = &outcomes[job];
        while let Some(ended) = ends.next_if(|&other| outcomes[other].finish_s <= outcome.start_s) {
            free.give_back(&held[ended]);
        }
        held[job] = free.take(jobs[job].procs);
        if !has_length(job) {
            free.give_back(&held[job]);
        }
    }
    held.iter().map(|ranges| text(ranges)).collect()
}

fn text(ranges: &[(u32, u32)]) -> String {
    let mut text = String::new();
    for &(begin, end) in ranges {
        let gap = if text.is_empty() { "" } else { " " };
        // Writing to a string cannot fail.
        let _ = if end - begin == 1 { write!(text, "{gap}{begin}") } else { write!(text, "{gap}{begin}-{}", end - 1) };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lists_of(procs: u32, jobs: &[(f64, f64, u32)]) -> Vec<String> {
        let outcomes: Vec<Outcome> = jobs
            .iter()
            .map(|&(start_s, finish_s, _)| Outcome {
                start_s,
                finish_s,
                energy_j: 0.0,
                gear_index: 0,
                backfilled: false,
            })
            .collect();
        let jobs: Vec<Job> = jobs
            .iter()
            .map(|&(submit_s, _, procs)| Job {
                id: 1,
                submit_s,
                run_s: 1.0,
                estimate_s: 1.0,
                procs,
                record: 1,
                killed: false,
                priority: 1,
                class: 0,
            })
            .collect();
        lists(procs, &jobs, &outcomes)
    }

    #[test]
    fn the_lowest_free_numbers_are_taken() {
        // The jobs on 0-1 and 2-4 run. At 10 the first one ends and the fourth starts on 0, beside the third on 5. The
        // fifth fits into both holes.
        let jobs = [(0., 10., 2), (0., 20., 3), (5., 30., 1), (10., 40., 1), (20., 25., 4)];
        assert_eq!(lists_of(8, &jobs), ["0-1", "2-4", "5", "0", "1-4"]);
        let jobs = [(0., 10., 2), (0., 20., 3), (5., 30., 1), (10., 40., 4)];
        assert_eq!(lists_of(8, &jobs)[3], "0-1 6-7");
    }

    #[test]
    fn a_job_without_length_leaves_its_nodes_to_others_at_its_instant() {
        assert_eq!(lists_of(4, &[(0., 5., 4), (0., 0., 4), (5., 6., 3), (5., 5., 4)]), ["0-3", "0-3", "0-2", "0-3"]);
    }
}
