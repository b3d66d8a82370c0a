//! SIGTERM during a sweep: workers finish or hand back their tasks and end; a coordinator publishes its rows and ends,
//! and the next one continues. No task runs twice.

use std::time::Duration;

use super::farm::Farm;
use super::{long, step};
use crate::random::Random;

const NAME: &str = "drains";

#[test]
fn drains_run_no_task_twice() {
    let (tasks, rounds) = if long() { (8000_u32, 40) } else { (800, 4) };
    let mut random = Random::new();
    let mut farm = Farm::new();
    farm.start();
    farm.submit(NAME, tasks, if long() { 6000 } else { 2000 });
    (0..2).for_each(|_| farm.add_worker(1));
    let (mut workers, mut coordinators) = (0, 0);
    for round in 0..rounds {
        let done = farm.wait_more(1 + step(&mut random, tasks, rounds));
        std::thread::sleep(random.ms_below(30));
        println!("round {round}: {done} of {} tasks done", farm.tasks());
        if round % 2 == 0 {
            let mut worker = farm.workers.remove(0);
            worker.terminate();
            worker.wait().exits(0).prints(&["worker ended (asked to stop)"]);
            farm.add_worker(1);
            workers += 1;
        } else {
            let mut coordinator = farm.coordinator.take().expect("it was started");
            coordinator.terminate();
            coordinator.wait().exits(0);
            std::thread::sleep(random.ms_below(100) + Duration::from_millis(1));
            farm.start();
            coordinators += 1;
        }
    }
    farm.wait_finished();
    farm.stop();
    let counts = farm.journal();
    println!(
        "{workers} workers and {coordinators} coordinators ended with SIGTERM in one sweep: {} tasks, {} starts, {} after \
         an acknowledgement",
        counts.tasks, counts.started, counts.again
    );
    assert_eq!(counts.again, 0);
    farm.assert_undisturbed();
}
