//! Waiting jobs by class.
use std::collections::VecDeque;

use crate::error::Stop;
use crate::queues::{Job, Servers};

/// A queue for each class, first come, first served.
#[derive(Debug, Clone)]
pub(super) struct ClassQueues {
    queues: Vec<VecDeque<Job>>,
    waiting: usize,
}

impl ClassQueues {
    pub(super) fn new(classes: usize) -> ClassQueues {
        ClassQueues { queues: vec![VecDeque::new(); classes], waiting: 0 }
    }

    pub(super) fn push(&mut self, job: Job) {
        self.queues[job.class as usize].push_back(job);
        self.waiting += 1;
    }

    /// Starts an arriving job on the server that has been free for the longest, among the servers that can execute it, and
    /// returns the server; without one the job waits.
    #[inline]
    pub(super) fn start_or_push(&mut self, servers: &mut Servers, job: Job) -> Result<Option<usize>, Stop> {
        let free = servers.longest_free(|server| servers.rate(job.class, server) > 0.0);
        match free {
            Some(server) => servers.start(server, job)?,
            None => self.push(job),
        }
        Ok(free)
    }

    /// Removes the head of a class that has a waiting job.
    pub(super) fn pop(&mut self, class: usize) -> Job {
        self.waiting -= 1;
        self.queues[class].pop_front().expect("callers choose among classes with a waiting job")
    }

    /// Number of all waiting jobs.
    pub(super) fn len(&self) -> usize {
        self.waiting
    }

    /// Classes with a waiting job, each with the number of its head in order of arrival.
    #[inline]
    pub(super) fn heads(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.queues.iter().enumerate().filter_map(|(class, queue)| queue.front().map(|job| (class, job.number)))
    }

    /// Removes the earliest job that a server can execute; `None` if the server is not free, because it has left.
    #[inline]
    pub(super) fn pop_earliest(&mut self, servers: &Servers, server: usize) -> Option<Job> {
        if self.waiting == 0 || !servers.is_free(server) {
            return None;
        }
        let able = self.heads().filter(|(class, _)| servers.rate(*class as u32, server) > 0.0);
        let (class, _) = able.min_by_key(|(_, number)| *number)?;
        Some(self.pop(class))
    }
}
