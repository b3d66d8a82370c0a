//! Pick the most efficient.
use super::policy::{ClassPolicy, Setup};
use super::queues::ClassQueues;
use crate::error::Stop;
use crate::queues::{Completed, Job, QueuePolicy, ServerTable, Servers};
use crate::spec::{Component, Role};

/// Description of the policy.
pub const COMPONENT: Component = Component {
    role: Role::Policy,
    name: "class-pme",
    version: 1,
    source: "Al-Daoud, Al-Azzoni & Down 2011, section 3",
    doc: "A server that becomes free takes the waiting class of its greatest mu_ij / M_ij.",
    ..super::CLASS_POLICY
};

/// Efficiencies whose relative difference is at most this count as equal: products of equal factors may be rounded.
const TIE: f64 = 1e-9;

/// A server that becomes free takes the waiting class that it executes with the least energy for each job, the greatest
/// mu_ij / M_ij; of equal ones the job that has waited the longest (Al-Daoud et al. 2011, section 3).
#[derive(Debug, Clone)]
pub struct Pme {
    queues: ClassQueues,
    /// mu_ij / M_ij by class, then server; 0 where a server cannot execute a class.
    efficiencies: Vec<f64>,
}

impl Pme {
    /// For these servers.
    pub fn new(table: &ServerTable) -> Pme {
        let cells = table.rates.iter().zip(&table.busy_w);
        let efficiencies = cells.map(|(rate, busy_w)| if *rate > 0.0 { rate / busy_w } else { 0.0 }).collect();
        Pme { queues: ClassQueues::new(table.classes), efficiencies }
    }

    fn best(&self, servers: &Servers, server: usize) -> Option<usize> {
        if self.queues.len() == 0 || !servers.is_free(server) {
            return None;
        }
        let efficiency = |class: usize| self.efficiencies[class * servers.len() + server];
        let able = || self.queues.heads().filter(|(class, _)| efficiency(*class) > 0.0);
        let most = able().map(|(class, _)| efficiency(class)).fold(0.0, f64::max);
        let ties = able().filter(|(class, _)| efficiency(*class) >= most * (1.0 - TIE));
        ties.min_by_key(|(_, number)| *number).map(|(class, _)| class)
    }
}

impl ClassPolicy for Pme {
    const SERVERS_CHANGE: bool = true;

    fn of(setup: &Setup<'_>) -> Result<Pme, String> {
        Ok(Pme::new(&setup.table()))
    }

    /// A server's speed is a factor of all its efficiencies, so that its preferences do not change.
    fn changed(&mut self, servers: &mut Servers, _: Option<&[f64]>) -> Result<(), Stop> {
        for server in 0..servers.len() {
            if let Some(class) = self.best(servers, server) {
                servers.start(server, self.queues.pop(class))?;
            }
        }
        Ok(())
    }
}

impl QueuePolicy for Pme {
    #[inline]
    fn arrived(&mut self, servers: &mut Servers, job: Job) -> Result<(), Stop> {
        self.queues.start_or_push(servers, job).map(|_| ())
    }

    #[inline]
    fn ended(&mut self, servers: &mut Servers, done: &Completed) -> Result<(), Stop> {
        match self.best(servers, done.server) {
            Some(class) => servers.start(done.server, self.queues.pop(class)),
            None => Ok(()),
        }
    }

    fn waiting(&self) -> usize {
        self.queues.len()
    }
}
