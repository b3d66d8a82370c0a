//! SIGTERM in the middle of a sweep: workers finish or hand back and end, a coordinator ends in good order and the next
//! one goes on. Nothing runs twice.

use std::time::Duration;

use super::farm::{Farm, PATIENCE};
use super::{journal, long, step};
use crate::random::Random;
use crate::sweeps::four_policies;

const NAME: &str = "drains";

#[test]
fn workers_and_coordinator_are_drained_in_turn() {
    let (tasks, rounds) = if long() { (8000_u32, 40) } else { (800, 4) };
    let mut random = Random::new();
    let mut farm = Farm::new();
    farm.start();
    farm.submit(NAME, &four_policies(NAME, tasks, if long() { 6000 } else { 2000 }, ""));
    (0..2).for_each(|_| farm.add_worker(1));
    let (mut workers, mut coordinators) = (0, 0);
    for round in 0..rounds {
        let before = farm.wait_done(NAME, 0, PATIENCE);
        let done = farm.wait_done(NAME, before + 1 + step(&mut random, tasks, rounds), PATIENCE);
        assert!(done < u64::from(tasks), "the sweep was over in round {round}");
        std::thread::sleep(random.ms_below(30));
        println!("round {round}: {done} of {tasks} tasks done");
        if round % 2 == 0 {
            let worker = farm.workers.remove(0);
            worker.signal("TERM");
            worker.wait().exits(0).prints(&["worker ended (asked to stop)"]);
            farm.add_worker(1);
            workers += 1;
        } else {
            let coordinator = farm.coordinator.take().expect("it was started");
            coordinator.signal("TERM");
            coordinator.wait().exits(0);
            std::thread::sleep(random.ms_below(100) + Duration::from_millis(1));
            farm.start();
            coordinators += 1;
        }
    }
    farm.wait_finished(NAME);
    farm.stop();
    let counts = journal::read(&farm.logs);
    println!(
        "{workers} workers and {coordinators} coordinators ended with SIGTERM in one sweep: {} tasks, {} starts, {} after \
         an acknowledgement",
        counts.tasks, counts.started, counts.again
    );
    assert_eq!(counts.again, 0);
    assert_eq!(farm.assert_undisturbed(NAME), tasks as usize);
    println!("{tasks} rows equal the undisturbed run's, 0 lost, 0 twice");
}
