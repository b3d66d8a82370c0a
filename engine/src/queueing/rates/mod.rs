//! Policies for systems in which every class has its own rate and power on every server (Al-Daoud, Al-Azzoni & Down
//! 2011).
//!
//! Each class has one queue, first come, first served. A task that arrives while several servers could take it goes to
//! the one that is free for the longest, unless the policy ranks servers. None looks at a task's work.
mod changes;
mod dvs;
mod fcfs;
mod lpas;
pub(super) mod model;
mod ordered_beta;
pub mod parts;
mod phases;
mod pme;
mod queues;
mod rescaled;

pub use changes::{Adapts, Changing, Phase};
pub use dvs::{Dvs, Frequency, Utilization};
pub use fcfs::Fcfs;
pub use lpas::Lpas;
pub use ordered_beta::{OrderedBeta, Window};
pub use phases::systems;
pub use pme::Pme;
pub use rescaled::Rescaled;
