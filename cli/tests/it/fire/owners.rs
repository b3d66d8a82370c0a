//! Two coordinators on one store by mistake: the second is refused with the address of the first. With `--take-over`,
//! the first stops with its own exit code, also after a suspension, and no row is lost or duplicated.

use std::time::{Duration, Instant};

use super::farm::{Farm, PATIENCE, port};
use super::long;
use super::relay::Relay;

pub(super) const NAME: &str = "owners";

/// The older coordinator during a take-over.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Older {
    /// It runs while the newer coordinator takes over.
    Runs,
    /// It is suspended (SIGSTOP) before, and continued after the newer coordinator has worked for a while.
    Suspended,
}

/// A second coordinator without `--take-over`: refused, with the first's address.
fn assert_refused(farm: &Farm) {
    let second = farm.spawn_coordinator(port(), &[]).wait().exits(6);
    let first = format!("data (at https://127.0.0.1:{},", farm.port);
    second.says(&["another coordinator owns", &first, "or use --take-over"]);
}

/// A newer coordinator takes over and becomes the farm's coordinator.
fn take_over(farm: &mut Farm, relay: &Relay, older: Older, more: u64) {
    let old_port = farm.port;
    let old = farm.coordinator.take().expect("it was started");
    if older == Older::Suspended {
        old.signal("STOP");
    }
    farm.port = port();
    farm.start_with(&["--take-over"]);
    relay.switch(farm.port);
    let before = farm.wait_done(0, PATIENCE);
    if older == Older::Suspended {
        farm.wait_more(more);
        old.signal("CONT");
    }
    old.wait().exits(9).says(&["another coordinator has taken the data over"]);
    assert!(farm.coordinator.as_mut().is_some_and(|newer| newer.runs()), "the newer one was disturbed");
    println!("taken over from the coordinator at port {old_port} with {before} tasks done");
}

/// A sweep whose coordinator changes many times. `farm` has no processes yet; its dataset can be compared afterwards.
pub(super) fn under_take_overs(farm: &mut Farm, tasks: u32, jobs: u32, rounds: &[Older]) {
    farm.start();
    let relay = Relay::to(farm.port);
    farm.workers_port = relay.port;
    farm.submit(NAME, tasks, jobs);
    (0..2).for_each(|_| farm.add_worker(1));
    let step = u64::from(tasks) / (8 * rounds.len() as u64);
    for &older in rounds {
        farm.wait_more(step);
        let begun = Instant::now();
        assert_refused(farm);
        assert!(begun.elapsed() < Duration::from_secs(60), "refused after {:?}", begun.elapsed());
        // A refusal may take as long as the sweep. This wait adds tasks, so that the take-over happens during the sweep.
        farm.wait_more(step);
        take_over(farm, &relay, older, step);
    }
    farm.wait_finished();
    farm.stop();
    let counts = farm.journal();
    let suspended = rounds.iter().filter(|&&older| older == Older::Suspended).count();
    println!(
        "{} second coordinators refused with exit code 6, {} take-overs, {suspended} of a suspended one, the older \
         ended with exit code 9 each time: {} tasks, {} starts, {} after an acknowledgement",
        rounds.len(),
        rounds.len(),
        counts.tasks,
        counts.started,
        counts.again
    );
    assert_eq!(counts.again_after_kill, 0, "rows that another coordinator acknowledged were lost");
}

#[test]
fn one_folder_has_one_coordinator() {
    let mut farm = Farm::new();
    let (tasks, rounds) = match long() {
        true => (4000, [Older::Runs, Older::Suspended].repeat(5)),
        false => (600, vec![Older::Runs, Older::Suspended]),
    };
    under_take_overs(&mut farm, tasks, 8000, &rounds);
    farm.assert_undisturbed();
}
