//! First come, first served over all classes.
use super::super::{Completed, QueuePolicy, Servers, Task};
use super::changes::Adapts;
use super::queues::ClassQueues;
use crate::error::Stop;

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
}

impl Adapts for Fcfs {
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
        self.queues.start_or_push(servers, task)
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
