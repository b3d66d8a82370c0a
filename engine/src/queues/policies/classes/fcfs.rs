//! First come, first served over all classes.
use super::policy::{ClassPolicy, Setup};
use super::queues::ClassQueues;
use crate::error::Stop;
use crate::queues::{Completed, Job, QueuePolicy, Servers};
use crate::spec::{Component, Role};

/// Description of the policy.
pub const COMPONENT: Component = Component {
    role: Role::Policy,
    name: "class-fcfs",
    version: 1,
    source: "Al-Daoud, Al-Azzoni & Down 2011, section 3",
    doc: "A free server takes the earliest job that it can execute; a job takes the server that has been free the longest.",
    ..super::CLASS_POLICY
};

/// A server that becomes free takes the earliest job that it can execute (Al-Daoud et al. 2011, section 3).
#[derive(Debug, Clone)]
pub struct Fcfs {
    pub(super) queues: ClassQueues,
}

impl Fcfs {
    /// For this number of classes.
    pub fn new(classes: usize) -> Fcfs {
        Fcfs { queues: ClassQueues::new(classes) }
    }
}

impl ClassPolicy for Fcfs {
    const SERVERS_CHANGE: bool = true;

    fn of(setup: &Setup<'_>) -> Result<Fcfs, String> {
        Ok(Fcfs::new(setup.system.classes()))
    }

    fn changed(&mut self, servers: &mut Servers, _: Option<&[f64]>) -> Result<(), Stop> {
        for server in 0..servers.len() {
            if let Some(job) = self.queues.pop_earliest(servers, server) {
                servers.start(server, job)?;
            }
        }
        Ok(())
    }
}

impl QueuePolicy for Fcfs {
    #[inline]
    fn arrived(&mut self, servers: &mut Servers, job: Job) -> Result<(), Stop> {
        self.queues.start_or_push(servers, job).map(|_| ())
    }

    #[inline]
    fn ended(&mut self, servers: &mut Servers, done: &Completed) -> Result<(), Stop> {
        let next = self.queues.pop_earliest(servers, done.server);
        next.map_or(Ok(()), |job| servers.start(done.server, job))
    }

    fn waiting(&self) -> usize {
        self.queues.len()
    }
}
