use super::*;

fn entry(name: &str, state: &str) -> Entry {
    let phase = Phase::of_slurm(state);
    Entry { name: name.to_owned(), state: state.to_owned(), phase, nodes: "n1".to_owned(), ..Entry::default() }
}

/// Allocations `JOB_1`, `JOB_2`, ... submitted at 0.
fn fleet(job: &str, count: u64) -> Fleet {
    let mut fleet = Fleet::default();
    fleet.submitted(job, count, 0);
    fleet
}

fn phases(fleet: &Fleet) -> Vec<Phase> {
    fleet.allocations.values().map(|a| a.phase).collect()
}

#[test]
fn an_allocation_is_followed_from_submission_to_end() {
    let mut fleet = fleet("7", 2);
    assert_eq!((fleet.waiting(), fleet.alive()), (2, 2));
    let pending = Entry { reason: "Priority".to_owned(), ..entry("7_1", "PENDING") };
    assert!(fleet.answered(&[pending, entry("7_2", "RUNNING")], 10).is_empty());
    assert_eq!(phases(&fleet), [Phase::Queued, Phase::Running]);
    assert_eq!(fleet.allocations["7_1"].reason, "Priority");
    let timeout = Entry { started_at: Some(5), ends_at: Some(3_600), ..entry("7_2", "TIMEOUT") };
    assert_eq!(fleet.answered(&[entry("7_1", "RUNNING"), timeout], 3_700), ["allocation 7_2 has ended (TIMEOUT)"]);
    assert_eq!((fleet.waiting(), fleet.alive()), (0, 1));
    assert!(fleet.answered(&[entry("7_1", "PENDING")], 3_800).is_empty(), "it was requeued");
    assert_eq!(fleet.waiting(), 1);
}

#[test]
fn a_connected_worker_is_better_evidence_than_the_queue() {
    let mut fleet = fleet("7", 2);
    fleet.connected(["7_2"], 5);
    assert_eq!(phases(&fleet), [Phase::Submitted, Phase::Running]);
    fleet.answered(&[entry("7_2", "PENDING"), entry("7_1", "PENDING")], 4);
    assert_eq!(phases(&fleet), [Phase::Queued, Phase::Running]);
    for asked_at in [200, 400, 600, 800] {
        fleet.answered(&[entry("7_1", "PENDING")], asked_at);
    }
    assert_eq!(fleet.allocations["7_2"].phase, Phase::Running);
}

#[test]
fn an_empty_answer_is_not_believed_while_a_worker_is_connected() {
    let mut fleet = fleet("7", 3);
    fleet.connected(["7_2"], 5);
    for asked_at in [200, 400, 600, 800] {
        let notes = fleet.answered(&[], asked_at);
        assert!(notes[0].contains("not believed"), "{notes:?}");
    }
    assert_eq!((fleet.alive(), fleet.counts.unanswered), (3, 4));
}

#[test]
fn an_end_in_the_future_is_not_believed() {
    let mut fleet = fleet("7", 1);
    let completed = Entry { ends_at: Some(180), ..entry("7_1", "COMPLETED") };
    for asked_at in [10, 100, 119] {
        assert!(fleet.answered(std::slice::from_ref(&completed), asked_at).is_empty());
        assert_eq!(fleet.alive(), 1, "it may use its nodes until 180");
    }
    fleet.answered(&[completed], 120);
    assert_eq!(fleet.alive(), 0);
}

#[test]
fn an_allocation_that_three_answers_lack_has_left_the_queue() {
    let mut fleet = fleet("7", 1);
    assert!(fleet.answered(&[], 59).is_empty(), "it may not be visible yet");
    fleet.answered(&[], 120);
    fleet.answered(&[], 240);
    assert_eq!(fleet.alive(), 1);
    assert_eq!(fleet.answered(&[], 360), ["allocation 7_1 has ended (left the queue)"]);
    assert_eq!((fleet.alive(), fleet.back_off.pause(360)), (0, None));
}

#[test]
fn a_submission_without_an_answer_counts_until_the_queue_shows_it() {
    let mut fleet = Fleet::default();
    fleet.submission_unknown(2, "sbatch gave no answer within 60 s", 100);
    fleet.answered(&[], 159);
    assert_eq!(fleet.alive(), 2);
    fleet.answered(&[entry("9_1", "PENDING"), entry("9_2", "RUNNING")], 160);
    assert_eq!((fleet.waiting(), fleet.alive()), (1, 2));
}

#[test]
fn ends_that_are_no_fault_of_the_worker_lead_to_no_pause() {
    let ends = ["TIMEOUT", "PREEMPTED", "CANCELLED by 0", "NODE_FAIL", "BOOT_FAIL", "DEADLINE", "COMPLETED"];
    let mut fleet = fleet("7", ends.len() as u64);
    let entries: Vec<Entry> = (1..).zip(ends).map(|(i, state)| entry(&format!("7_{i}"), state)).collect();
    assert_eq!(fleet.answered(&entries, 100).len(), ends.len());
    assert_eq!((fleet.alive(), fleet.back_off.pause(100)), (0, None));
    assert!(fleet.excluded(100).is_empty());
}

#[test]
fn an_unknown_state_changes_nothing_and_is_noted_once() {
    let mut fleet = fleet("7", 1);
    fleet.answered(&[entry("7_1", "RUNNING")], 10);
    let notes = fleet.answered(&[entry("7_1", "HIBERNATING")], 130);
    assert_eq!(notes, ["allocation 7_1 is in the unknown state \"HIBERNATING\": it counts as before"]);
    assert!(fleet.answered(&[entry("7_1", "HIBERNATING")], 250).is_empty());
    assert_eq!(phases(&fleet), [Phase::Running]);
}

#[test]
fn workers_that_fail_at_once_pause_the_launcher_and_exclude_their_node() {
    let mut fleet = fleet("7", 4);
    let failed = |name: &str, start: Seconds, end: Seconds| Entry {
        started_at: Some(start),
        ends_at: Some(end),
        ..entry(name, "FAILED")
    };
    fleet.connected(["7_4"], 0);
    fleet.answered(&[failed("7_1", 0, 300)], 300);
    assert_eq!(fleet.back_off.pause(300), None, "this one lived for minutes");
    fleet.answered(&[failed("7_1", 0, 300), failed("7_2", 300, 302)], 310);
    assert!(fleet.excluded(310).is_empty());
    fleet.answered(&[failed("7_3", 310, 320)], 320);
    assert_eq!(fleet.excluded(320), ["n1"]);
    fleet.answered(&[failed("7_4", 320, 330)], 330);
    assert!(fleet.back_off.pause(330).is_none_or(|pause| !pause.long), "its worker is connected");
    fleet.connected([], 330);
    fleet.answered(&[failed("7_4", 320, 330)], 330);
    assert!(fleet.back_off.pause(330).is_some_and(|pause| pause.long));
    assert!(fleet.excluded(330 + BAD_START_S).is_empty(), "a day later");
}

#[test]
fn a_refused_array_is_halved() {
    let mut fleet = Fleet::default();
    fleet.submission_refused(8, "QOSMaxSubmitJobPerUserLimit", 0);
    assert_eq!(fleet.array_max(), 4);
    fleet.submission_refused(4, "QOSMaxSubmitJobPerUserLimit", 0);
    fleet.submission_refused(1, "QOSMaxSubmitJobPerUserLimit", 60);
    assert_eq!(fleet.array_max(), 1);
    fleet.submitted("7", 1, 960);
    assert_eq!(fleet.array_max(), u64::MAX);
}

#[test]
fn the_last_ended_allocations_are_kept() {
    let mut fleet = fleet("7", 30);
    let ended = |i: u64| Entry { ends_at: Some(1_000 + i), ..entry(&format!("7_{i}"), "COMPLETED") };
    let entries: Vec<Entry> = (1..=29).map(ended).chain([entry("7_30", "RUNNING")]).collect();
    fleet.answered(&entries, 2_000);
    assert_eq!(fleet.allocations.len(), ENDED_KEPT + 1);
    assert!(fleet.allocations.contains_key("7_30") && !fleet.allocations.contains_key("7_9"));
    fleet.answered(&entries, 2_200);
    assert_eq!(fleet.allocations.len(), ENDED_KEPT + 1, "old ones do not come back");
}

#[test]
fn the_state_survives_a_restart_of_the_launcher() {
    let mut fleet = fleet("7", 2);
    fleet.submission_unknown(1, "no answer", 5);
    fleet.connected(["7_1"], 10);
    let text = toml::to_string(&fleet).unwrap();
    assert_eq!(toml::from_str::<Fleet>(&text).unwrap(), fleet);
}
