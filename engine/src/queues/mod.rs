//! Heterogeneous queues: jobs of one proc on named servers of different rates and powers.
//!
//! The queues have an event loop of their own beside that of batch jobs ([`crate::batch::kernel`]): a run has up to 10^8
//! jobs of one proc, drawn during the run, and ends when a mean is precise enough or at a horizon. The loop is generic over
//! [`QueuePolicy`] (which job goes to which server) and [`Arrivals`]. A policy may put servers to sleep, switch them off,
//! change their speed and set timers.
//!
//! ```
//! use powersweep_engine::Limits;
//! use powersweep_engine::queues::*;
//! # use powersweep_engine::error::Stop;
//! /// One queue, first come, first served, on any free server.
//! #[derive(Clone, Default)]
//! struct Fcfs(std::collections::VecDeque<Job>);
//!
//! impl QueuePolicy for Fcfs {
//!     fn arrived(&mut self, servers: &mut Servers, job: Job) -> Result<(), Stop> {
//!         match (0..servers.len()).find(|&j| servers.is_free(j)) {
//!             Some(free) => servers.start(free, job),
//!             None => Ok(self.0.push_back(job)),
//!         }
//!     }
//!     fn ended(&mut self, servers: &mut Servers, done: &Completed) -> Result<(), Stop> {
//!         self.0.pop_front().map_or(Ok(()), |job| servers.start(done.server, job))
//!     }
//!     fn waiting(&self) -> usize {
//!         self.0.len()
//!     }
//! }
//!
//! // 10,000 s of M/M/1 at 80%.
//! let table = ServerTable::with_idle_w(1, 1, vec![1.0], vec![200.0], vec![100.0]);
//! let stream = ClassStream { rate_per_s: 0.8, work: Work::Exponential { mean: 1.0 } };
//! let mut run = Simulation::new(Poisson::new(&[stream], 1), Fcfs::default(), Servers::new(table)?);
//! run.run(Until::horizon(10_000.0), &Limits::NONE, &mut ())?;
//! run.settle();
//! let energy_j = run.servers().settled_energy_j(State::Busy) + run.servers().settled_energy_j(State::Free);
//! assert!((energy_j / 10_000.0 - 180.0).abs() < 5.0);
//! # Ok::<(), powersweep_engine::SimError>(())
//! ```
//!
//! Invariants: events have a total order (instant; ends by server, arrivals, timers); a job starts once, on a free server
//! that can execute its class; the seconds of a server's states add up to the time; energies are sums over intervals of
//! constant power. This module does not depend on batch jobs, their platforms or policies.

mod kernel;
pub mod open_poisson;
pub mod policies;
pub mod server_classes;
pub mod statistics;

pub use kernel::arrivals::{Arrivals, ClassStream, Poisson, Work};
pub use kernel::policy::{Completed, Job, QueuePolicy};
pub use kernel::servers::{ServerTable, Servers, Speed, State};
pub use kernel::simulation::{Observer, Simulation, Until};
pub use policies::buffered::{Buffered, Scheme};
pub(crate) use policies::simulate;
pub use server_classes::{Priority, ServerClasses};
pub use statistics::student::t_quantile;
pub use statistics::summary::QueueSummary;
