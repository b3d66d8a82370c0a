//! Policies for systems in which every class has its own rate and power on every server (Al-Daoud, Al-Azzoni & Down
//! 2011).
//!
//! Each class has one queue, first come, first served. A job that several free servers can execute goes to the server that
//! has been free for the longest, unless the policy ranks servers. No policy uses a job's work.
//!
//! A policy is a file with its description and a [`ClassPolicy`]; the list below registers it.
mod changes;
pub mod dvs;
pub mod fcfs;
pub mod lpas;
pub(in crate::queues) mod model;
pub mod ordered_beta;
mod phases;
pub mod pme;
mod policy;
mod queues;
mod rescaled;
pub mod system;

pub use changes::{Changing, Phase};
pub use dvs::{Frequency, Utilization};
pub use model::visit;
pub use ordered_beta::Window;
pub use phases::systems;
pub use policy::{ClassPolicy, Setup, Visitor};
pub use rescaled::Rescaled;

use crate::error::SimError;
use crate::spec::Component;

/// Default fields of the component of a policy of this folder, for struct updates. Its problems include those of
/// [`ClassPolicy::problem`].
pub const CLASS_POLICY: Component = Component { problems: model::problems, ..Component::QUEUES };

/// Declares the policies of this folder by file and type, their list, and the choice of one by its component.
macro_rules! policies {
    ($($file:ident: $policy:ident),* $(,)?) => {
        $(pub use $file::$policy;)*

        /// The components of this folder's policies.
        pub static COMPONENTS: &[&Component] = &[$(&$file::COMPONENT),*];

        /// Every policy of this folder.
        static POLICIES: &[policy::Registered] = &[$(policy::Registered::of::<$policy>(&$file::COMPONENT)),*];

        /// Passes a run under the policy of a component of this folder to a visitor.
        fn show<V: Visitor>(setup: &Setup<'_>, component: &Component, visitor: V) -> Result<V::Output, SimError> {
            $(if *component == $file::COMPONENT {
                return setup.show::<$policy, V>(visitor);
            })*
            Err(SimError::Invalid(format!("`kind` \"{}\" is of other queues", component.name)))
        }
    };
}

policies! {
    fcfs: Fcfs,
    pme: Pme,
    lpas: Lpas,
    ordered_beta: OrderedBeta,
    dvs: Dvs,
}
