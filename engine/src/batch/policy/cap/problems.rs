//! Combinations with a cap, or with the plain scheduling rules, that make no sense.
use super::uniform;
use crate::batch::policy::backfill;
use crate::spec::{Role, SimSpec};

/// A sentence for each.
pub(crate) fn problems(spec: &SimSpec) -> Vec<String> {
    let name = |role: Role| spec.choice(role).component().name;
    let (kind, cap, rule, gears) = (name(Role::Policy), name(Role::Cap), name(Role::Backfill), name(Role::GearRule));
    let capped = cap != "none";
    let mut problems = Vec::new();
    if kind != "batch" {
        if capped {
            problems.push(format!("`power_cap` = \"{cap}\" is a rule of `kind` = \"batch\", not of \"{kind}\""));
        }
        return problems;
    }
    let by_priority = [backfill::WITHIN_PRIORITY.name, backfill::KNAPSACK.name].contains(&rule);
    if by_priority && name(Role::Order) != "priority" {
        problems.push(format!(
            "`backfill` = \"{rule}\" takes one priority after the other: it needs `queue_order` = \"priority\", not \"{}\"",
            name(Role::Order)
        ));
    }
    if rule == backfill::KNAPSACK.name {
        if cap != uniform::COMPONENT.name {
            problems.push(format!(
                "`backfill` = \"knapsack\" chooses jobs and gear for the watts under a cap, and all jobs step together when it \
                 changes: it needs `power_cap` = \"uniform\", not \"{cap}\""
            ));
        }
        if gears != "top" {
            problems.push(format!(
                "`backfill` = \"knapsack\" chooses the gears: `gear_rule` = \"{gears}\" makes no sense beside it"
            ));
        }
    }
    if capped && gears == "bsld" && spec.choice(Role::GearRule).text("head_gear") != "renew" {
        problems.push(format!(
            "`head_gear` = \"{}\" makes no sense under a power cap, which may not let the head start at a gear that was chosen \
             before: choose \"renew\"",
            spec.choice(Role::GearRule).text("head_gear")
        ));
    }
    if let Some(caps_w) =
        capped.then(|| spec.choice(Role::Cap).get("caps_w").map(|_| spec.choice(Role::Cap).reals("caps_w"))).flatten()
        && let Some(cap_w) = caps_w.iter().find(|cap_w| **cap_w <= 0.0)
    {
        problems.push(format!("`caps_w` must be above 0 W, not {cap_w}"));
    }
    problems
}
