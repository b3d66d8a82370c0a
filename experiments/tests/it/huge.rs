//! A sweep of 10^9 tasks needs no more memory than a small one.

use crate::{errors, sweep};

const HUGE: &str = r#"
version = 1
name = "huge"
seeds = { from = 1, count = 1_000_000 }
[workloads.w]
source = "lublin"
[platforms.p]
size_factor = { from = 0.5, to = 10.4, step = 0.1 }
[policies.a]
queue_order = ["fcfs", "sjf", "widest", "wfp3", "f1"]
backfill = ["none", "easy"]
[[exclude]]
size_factor = { from = 0.5, to = 5.4, step = 0.1 }
queue_order = "sjf"
[[exclude]]
seed = [1, 500_000, 1_000_000]
"#;

#[test]
fn tasks_are_counted_and_skipped_without_enumerating() {
    let sweep = sweep(HUGE);
    assert_eq!(sweep.index_count(), 1_000_000_000);
    // 50 sizes x 2 backfills of sjf, and three seeds of every other combination.
    assert_eq!(sweep.task_count(), (1000 - 100) * (1_000_000 - 3));
    assert_eq!(sweep.next_included(0), Some(1));
    // sjf is second of five orders, with two backfills: combinations 2 and 3 of the first size.
    assert_eq!(sweep.next_included(2_000_000), Some(4_000_001));
    assert_eq!(sweep.next_included(3_999_999), Some(4_000_001));
    assert_eq!(sweep.next_included(999_999_999), None);
    assert_eq!(sweep.next_included(u64::MAX), None);
    assert!(sweep.task(0).is_none() && sweep.task(1_000_000_000).is_none() && sweep.task(u64::MAX).is_none());
    for index in [1, 999_998, 4_000_001, 120_456_789, 999_999_998] {
        let task = sweep.task(index).expect("included");
        assert_eq!(sweep.index_of(&task), Some(index));
    }
}

#[test]
fn a_range_of_tenths_equals_the_literals() {
    let text = r#"
version = 1
name = "tenths"
[workloads.w]
[platforms.p]
size_factor = { from = 1.0, to = 3.0, step = 0.1 }
[policies.p]
"#;
    let sweep = sweep(text);
    assert_eq!(sweep.task_count(), 21);
    for i in 0..21_u64 {
        let literal: f64 = format!("{}.{}", 1 + i / 10, i % 10).parse().expect("a number");
        let factor = sweep.task(i).expect("a task").sim.choice(powersweep_engine::Role::Platform).real("size_factor");
        assert_eq!(factor.to_bits(), literal.to_bits());
    }
}

#[test]
fn a_sweep_is_shared_between_threads_and_cheap_to_clone() {
    fn assert_shared<T: Send + Sync + Clone + 'static>(_: &T) {}
    assert_shared(&sweep(HUGE));
}

#[test]
fn many_tasks_move_to_an_edited_sweep_at_once() {
    let old = sweep(HUGE);
    let new = sweep(
        &HUGE.replace("from = 0.5, to = 10.4", "from = 0.4, to = 10.6").replace("\"f1\"]", "\"f1\", \"priority\"]"),
    );
    assert!(new.index_count() > old.index_count());
    let mut mapping = powersweep_experiments::Mapping::new(&old, &new);
    // Steps through all seeds and all combinations.
    let indices = (0..100_000).filter_map(|n| old.next_included(n * 9_999));
    let moved = indices.map(|index| (index, mapping.index(index)));
    let moved: Vec<(u64, Option<u64>)> = moved.collect();
    assert!(moved.iter().all(|(_, there)| there.is_some()), "only values were added");
    for (index, there) in moved.iter().step_by(997) {
        assert_eq!(*there, new.index_of(&old.task(*index).expect("a task")));
    }
}

#[test]
fn exclusions_that_take_too_long_to_evaluate_are_refused() {
    let plain = "version = 1\nname = \"t\"\nseeds = { from = 1, count = 1_000_000 }\n[workloads.w]\n[policies.p]\n";
    let table = "[[exclude]]\nseed = { from = 1, count = 50_000 }\n";
    assert_eq!(sweep(&format!("{plain}{table}")).task_count(), 950_000);
    let many = errors(&format!("{plain}{}", table.repeat(10_000)));
    assert!(many.contains("evaluating the [[exclude]] tables up to this one takes too long"), "{many}");
    assert!(many.contains("--> test.toml:") && many.contains("conditions with fewer values"), "{many}");
}

#[test]
fn long_ranges_are_compared_within_bounds() {
    let blocks = |a: &str, b: &str| {
        let workloads = format!("[workloads.a]\njob_number_to = {a}\n[workloads.b]\njob_number_to = {b}\n");
        format!("version = 1\nname = \"t\"\n{workloads}[policies.p]\n")
    };
    let odd = "{ from = 1_001, count = 5_000_000, step = 2 }";
    assert_eq!(sweep(&blocks(odd, "{ from = 10_001_000, count = 1_000_000 }")).task_count(), 6_000_000);
    let shared = errors(&blocks(odd, "{ from = 1_000, count = 5_000_000, step = 3 }"));
    assert!(shared.contains("give the same values") && shared.contains("job_number_to = 1003"), "{shared}");
    let disjoint = errors(&blocks(odd, "{ from = 1_000, count = 5_000_000, step = 2 }"));
    assert!(disjoint.contains("cannot tell in reasonable time"), "{disjoint}");
}
