//! SIGKILL of coordinator and workers at random moments of one sweep. The coordinator restarts at the same address;
//! living workers reconnect and hand in the rows that they finished meanwhile.

use std::time::{Duration, Instant};

use super::farm::Farm;
use super::{journal, long, step};
use crate::random::Random;

/// The next kill follows after this time without progress, so that kills also happen during a standstill.
const STANDSTILL: Duration = Duration::from_secs(4);

const NAME: &str = "kills";

/// The faults of a sweep.
struct Plan {
    tasks: u32,
    jobs: u32,
    workers: usize,
    /// Least number of kills.
    kills: u32,
    /// Of ten rounds, the number that kills the coordinator and the number that kills a worker. If their sum exceeds
    /// ten, some rounds kill both.
    of_coordinator: u64,
    of_worker: u64,
}

/// Counts of kills.
#[derive(Default)]
struct Kills {
    coordinator: u32,
    starting: u32,
    workers: u32,
    /// Kills during a standstill, which are also counted above.
    standstills: u32,
}

impl Kills {
    fn total(&self) -> u32 {
        self.coordinator + self.starting + self.workers
    }
}

/// Restarts the coordinator; some starts are killed before they serve.
fn restart(farm: &mut Farm, random: &mut Random, kills: &mut Kills) {
    while random.below(8) == 0 {
        let starting = farm.spawn_coordinator(farm.port, &[]);
        std::thread::sleep(random.ms_below(200));
        drop(starting);
        kills.starting += 1;
    }
    farm.start();
}

fn disturb(farm: &mut Farm, plan: &Plan, random: &mut Random) -> Kills {
    let mut kills = Kills::default();
    while kills.total() < plan.kills {
        let round = random.below(10);
        let coordinator = round < plan.of_coordinator || round >= plan.of_coordinator + plan.of_worker;
        let worker = round >= plan.of_coordinator;
        let more = step(random, plan.tasks, plan.kills.into());
        kills.standstills += u32::from(farm.try_more(more, STANDSTILL).is_none());
        std::thread::sleep(random.ms_below(30));
        if coordinator {
            farm.kill_coordinator();
            kills.coordinator += 1;
        }
        if worker {
            farm.kill_worker(random.below(plan.workers as u64) as usize);
            kills.workers += 1;
            farm.add_worker(1);
        }
        if coordinator {
            // Workers continue while no coordinator runs.
            std::thread::sleep(random.ms_below(100));
            restart(farm, random, &mut kills);
        }
    }
    kills
}

fn under_kills(plan: &Plan) -> (Kills, journal::Counts) {
    let mut random = Random::new();
    let mut farm = Farm::new();
    farm.start();
    farm.submit(NAME, plan.tasks, plan.jobs);
    (0..plan.workers).for_each(|_| farm.add_worker(1));
    let begun = Instant::now();
    let kills = disturb(&mut farm, plan, &mut random);
    let disturbed = begun.elapsed();
    farm.wait_finished();
    farm.stop();
    let counts = farm.journal();
    println!(
        "{} kills -9 in one sweep ({} of the coordinator, {} of one that was starting, {} of workers; {} at a \
         standstill) in {:.0} s: {} tasks, {} starts, {} acknowledgements seen, {} started again after one, {} of these \
         after a kill of the coordinator",
        kills.total(),
        kills.coordinator,
        kills.starting,
        kills.workers,
        kills.standstills,
        disturbed.as_secs_f64(),
        farm.tasks(),
        counts.started,
        counts.acknowledged,
        counts.again,
        counts.again_after_kill,
    );
    farm.assert_undisturbed();
    assert_eq!(counts.tasks, u64::from(farm.tasks()), "every task was started, and the journal has it");
    assert_eq!(counts.again_after_kill, 0, "a coordinator lost acknowledged rows");
    (kills, counts)
}

#[test]
fn kills_of_coordinator_and_workers_lose_no_row() {
    let plan = match long() {
        true => Plan { tasks: 16_000, jobs: 8000, workers: 3, kills: 200, of_coordinator: 5, of_worker: 4 },
        false => Plan { tasks: 600, jobs: 4000, workers: 3, kills: 8, of_coordinator: 5, of_worker: 4 },
    };
    let (kills, _) = under_kills(&plan);
    assert!(kills.total() >= plan.kills && kills.coordinator > 0);
}

/// Workers live and hand in all finished rows, so that no task runs again. Only an idle worker may run copies of another
/// worker's tasks, if that worker needs more than a second to reconnect.
#[test]
fn a_killed_coordinator_forgets_no_acknowledged_task() {
    let (kills, jobs) = if long() { (20, 12_000) } else { (4, 2000) };
    let plan = Plan { tasks: 2000, jobs, workers: 2, kills, of_coordinator: 10, of_worker: 0 };
    let (_, counts) = under_kills(&plan);
    println!(
        "tasks that were copied after kills of the coordinator: {} of {}",
        counts.started - counts.tasks,
        counts.tasks
    );
    assert_eq!(counts.again, counts.copies, "a worker ran a task again that was acknowledged to it");
}
