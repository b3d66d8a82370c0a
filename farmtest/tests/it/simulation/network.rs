//! Connections: ordered streams with delays, which break. One side may notice a break long after the other.

use powersweep_proto::v1;
use powersweep_proto::v1::worker_message::Body;
use prost::Message;

use super::world::{Happening, World};

/// Longest time until a side notices by its keep-alive that the other side has ended.
const NOTICED_US: u64 = 12_000_000;

/// One direction of a connection.
#[derive(Debug, Default)]
struct Direction {
    /// Arrival of the last message: no later message overtakes it.
    last_us: u64,
    /// No further message arrives.
    cut: bool,
}

/// One connection of a worker to a coordinator. Its number is the farm's connection id.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) worker: usize,
    pub(super) coordinator: usize,
    up: Direction,
    down: Direction,
    /// The worker reads and writes it.
    pub(super) worker_open: bool,
    /// The coordinator's reader reads it.
    pub(super) farm_open: bool,
}

/// The messages that a partition stops.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Partition {
    /// No message reaches the coordinator before this instant.
    pub(super) up_until_us: u64,
    /// No message reaches the worker before this instant.
    pub(super) down_until_us: u64,
}

impl World {
    pub(super) fn open_link(&mut self, worker: usize, coordinator: usize) -> u64 {
        let (up, down) = (Direction::default(), Direction::default());
        self.links.push(Link { worker, coordinator, up, down, worker_open: true, farm_open: true });
        self.links.len() as u64 - 1
    }

    /// Sends a message to the coordinator.
    pub(super) fn send_up(&mut self, link: u64, body: Body) {
        self.send_up_after(link, 0, body);
    }

    /// Sends a message to the coordinator after a wait.
    pub(super) fn send_up_after(&mut self, link: u64, wait_us: u64, body: Body) {
        let settles = matches!(body, Body::HandIn(_) | Body::Failure(_) | Body::HandBack(_));
        let bytes = v1::WorkerMessage { body: Some(body) }.encode_to_vec();
        let now_us = self.partitions[self.place_of(link)].up_until_us.max(self.now_us);
        let earliest = now_us + wait_us + self.network_delay();
        let direction = &mut self.links[link as usize].up;
        direction.last_us = direction.last_us.max(earliest);
        let at = direction.last_us;
        if settles && !self.quiet && self.random.one_in(12) {
            self.note(|| format!("the next message over {link} comes twice"));
            self.at(at, Happening::ToFarm { link, bytes: bytes.clone() });
        }
        self.at(at, Happening::ToFarm { link, bytes });
    }

    /// Sends a message to the worker.
    pub(super) fn send_down(&mut self, link: u64, body: v1::farm_message::Body) {
        let bytes = v1::FarmMessage { body: Some(body) }.encode_to_vec();
        let earliest = self.partitions[self.place_of(link)].down_until_us.max(self.now_us) + self.network_delay();
        let direction = &mut self.links[link as usize].down;
        direction.last_us = direction.last_us.max(earliest);
        let at = direction.last_us;
        self.at(at, Happening::ToWorker { link, bytes });
    }

    fn place_of(&self, link: u64) -> usize {
        self.workers[self.links[link as usize].worker].place
    }

    pub(super) fn network_delay(&mut self) -> u64 {
        if self.quiet { 200 } else { self.random.delay_us(100, 400_000) }
    }

    /// Whether a message to the coordinator arrives there.
    pub(super) fn arrives_up(&self, link: u64) -> bool {
        let link = &self.links[link as usize];
        link.farm_open && !link.up.cut && self.coordinators[link.coordinator].is_alive()
    }

    /// Whether a message to the worker arrives there.
    pub(super) fn arrives_down(&self, link: u64) -> bool {
        let link = &self.links[link as usize];
        link.worker_open && !link.down.cut && self.workers[link.worker].alive
    }

    /// The connection breaks. Messages in flight arrive or not, independently for each direction; each side notices at
    /// its own time.
    pub(super) fn break_link(&mut self, link: u64) {
        let (up, down) = (self.random.one_in(2), self.random.one_in(2));
        let broken = &mut self.links[link as usize];
        broken.up.cut |= up;
        broken.down.cut |= down;
        let (up_last, down_last) = (broken.up.last_us, broken.down.last_us);
        let noticed = self.random.delay_us(1_000, NOTICED_US);
        self.at(up_last.max(self.now_us + noticed), Happening::FarmSeesEnd { link, abrupt: true });
        let noticed = self.random.delay_us(1_000, NOTICED_US);
        self.at(down_last.max(self.now_us + noticed), Happening::WorkerSeesEnd { link });
    }

    /// The worker closes its side, or ends. `abrupt`: the coordinator sees a broken stream.
    pub(super) fn worker_closes(&mut self, link: u64, abrupt: bool) {
        let lost = abrupt && self.random.one_in(3);
        let delay = self.network_delay();
        let link_state = &mut self.links[link as usize];
        if !std::mem::replace(&mut link_state.worker_open, false) {
            return;
        }
        link_state.up.cut |= lost;
        let earliest = self.now_us.max(link_state.up.last_us) + delay;
        let place = self.place_of(link);
        let at = earliest.max(self.partitions[place].up_until_us);
        self.at(at, Happening::FarmSeesEnd { link, abrupt });
    }

    /// The coordinator closes its side after its messages, or ends. The reader of a living coordinator continues until
    /// the worker closes, too.
    pub(super) fn farm_closes(&mut self, link: u64) {
        let delay = self.network_delay();
        let place = self.place_of(link);
        let earliest = self.now_us.max(self.links[link as usize].down.last_us) + delay;
        let at = earliest.max(self.partitions[place].down_until_us);
        self.at(at, Happening::WorkerSeesEnd { link });
    }
}
