//! Policies for systems in which every class has its own rate and power on every server (Al-Daoud, Al-Azzoni & Down
//! 2011).
//!
//! Each class has one queue, first come, first served. A task that arrives while several servers could take it goes to
//! the one that is free for the longest, unless the policy ranks servers. None looks at a task's work.
//!
//! A policy is a file with its registry entry and a [`ClassPolicy`]. The list below and one line in
//! [`crate::registry::ENTRIES`] register it.
mod changes;
pub(super) mod model;
pub mod parts;
mod phases;
mod policy;
mod queues;
mod rescaled;

pub use changes::{Changing, Phase};
pub use dvs::{Frequency, Utilization};
pub use model::visit;
pub use ordered_beta::Window;
pub use phases::systems;
pub use policy::{ClassPolicy, Model, Visitor};
pub use rescaled::Rescaled;

use crate::{SimError, registry::Entry};

/// Declares the policies of this folder by file and type, the list of them, and how one is chosen by name.
macro_rules! policies {
    ($($file:ident: $policy:ident),* $(,)?) => {
        $(pub mod $file;)*
        $(pub use $file::$policy;)*

        /// Every policy of this folder.
        pub(super) static POLICIES: &[policy::Kind] = &[$(policy::Kind::of::<$policy>(&$file::ENTRY)),*];

        /// Shows a visitor the run of the model under the policy of an entry of this folder.
        fn show<V: Visitor>(model: &Model<'_>, entry: &Entry, visitor: V) -> Result<V::Output, SimError> {
            $(if *entry == $file::ENTRY {
                return model.show::<$policy, V>(visitor);
            })*
            Err(SimError::Invalid(format!("`kind` \"{}\" is of other queues", entry.name)))
        }
    };
}

policies! {
    dvs: Dvs,
    fcfs: Fcfs,
    lpas: Lpas,
    ordered_beta: OrderedBeta,
    pme: Pme,
}
