//! Sources and platforms that do not go with a policy of queues.
use crate::spec::{Component, Role, SimSpec};

/// A sentence if the choice for the role of some components is none of them. `what`: why it does not fit; `needs`: what
/// the policy needs.
pub(super) fn unfit(spec: &SimSpec, fitting: &[&Component], what: &str, needs: &str) -> Option<String> {
    let role = fitting[0].role;
    let (kind, found) = (spec.choice(Role::Policy).component().name, spec.choice(role).component());
    let names: Vec<String> = fitting.iter().map(|component| format!("\"{}\"", component.name)).collect();
    (!fitting.contains(&found)).then(|| {
        format!("`{}` \"{}\" {what}, `kind` \"{kind}\" {needs}: choose {}", role.key(), found.name, names.join(" or "))
    })
}
