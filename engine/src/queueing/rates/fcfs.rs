//! First come, first served over all classes.
use super::super::{Completed, QueuePolicy, Servers, Task};
use super::policy::{ClassPolicy, Model};
use super::queues::ClassQueues;
use crate::error::Stop;
use crate::registry::{Entry, Slot};

/// Registry entry of the policy.
pub const ENTRY: Entry = Entry {
    slot: Slot::Policy,
    name: "class-fcfs",
    version: 1,
    source: "Al-Daoud, Al-Azzoni & Down 2011, section 3",
    doc: "A server that becomes free takes the earliest task that it can execute; a task takes the longest-free server.",
    params: &[],
};

/// A server that becomes free takes the earliest task that it can execute (Al-Daoud et al. 2011, section 3).
#[derive(Debug, Clone)]
pub struct Fcfs {
    queues: ClassQueues,
}

impl Fcfs {
    /// For this number of classes.
    pub fn new(classes: usize) -> Fcfs {
        Fcfs { queues: ClassQueues::new(classes) }
    }

    /// A task has arrived: the server that it starts on.
    #[inline]
    pub(super) fn start_or_keep(&mut self, servers: &mut Servers, task: Task) -> Result<Option<usize>, Stop> {
        self.queues.start_or_push(servers, task)
    }
}

impl ClassPolicy for Fcfs {
    const SERVERS_CHANGE: bool = true;

    fn of(model: &Model<'_>) -> Result<Fcfs, String> {
        Ok(Fcfs::new(model.system.classes()))
    }

    fn changed(&mut self, servers: &mut Servers, _: Option<&[f64]>) -> Result<(), Stop> {
        for server in 0..servers.len() {
            if let Some(task) = self.queues.pop_earliest(servers, server) {
                servers.start(server, task)?;
            }
        }
        Ok(())
    }
}

impl QueuePolicy for Fcfs {
    #[inline]
    fn arrived(&mut self, servers: &mut Servers, task: Task) -> Result<(), Stop> {
        self.start_or_keep(servers, task).map(|_| ())
    }

    #[inline]
    fn ended(&mut self, servers: &mut Servers, done: &Completed) -> Result<(), Stop> {
        let next = self.queues.pop_earliest(servers, done.server);
        next.map_or(Ok(()), |task| servers.start(done.server, task))
    }

    fn waiting(&self) -> usize {
        self.queues.len()
    }
}
