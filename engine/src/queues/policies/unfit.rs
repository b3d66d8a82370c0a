//! Sources and platforms that do not fit a policy of queues.
use crate::spec::{Component, Role, SimSpec};

/// The problem of a choice that is none of the fitting components, all for one role. `why`: why it does not fit; `needs`:
/// what the policy needs.
pub(super) fn unfit(spec: &SimSpec, fitting: &[&Component], why: &str, needs: &str) -> Option<String> {
    let role = fitting[0].role;
    let (kind, found) = (spec.choice(Role::Policy).component().name, spec.choice(role).component());
    let names: Vec<String> = fitting.iter().map(|component| format!("\"{}\"", component.name)).collect();
    (!fitting.contains(&found)).then(|| {
        format!("`{}` \"{}\" {why}, `kind` \"{kind}\" {needs}: choose {}", role.key(), found.name, names.join(" or "))
    })
}
