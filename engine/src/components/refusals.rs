//! The combinations of two components that are refused, found by trying them.
//!
//! The sentences are those of [`SimSpec::problems`]: no list of refused combinations exists beside it (decision 0006).
use super::{applies, find, of};
use crate::spec::{Choice, Component, Default, Model, Param, Role, SimSpec, Type, Value};

/// A choice that a component cannot be combined with.
#[derive(Debug, Clone, PartialEq)]
pub struct Refused {
    /// The setting of the component for which the combination is refused; `None`: for its defaults, too.
    pub setting: Option<Setting>,
    /// The other choice: a component of another role, or a setting of such a component.
    pub with: Setting,
    /// The sentence with which the engine refuses exactly this combination.
    pub reason: String,
}

/// A key of a manifest with a value.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// The key: that of a role, or the name of a parameter.
    pub key: &'static str,
    /// The value as manifests write it. That of a parameter without a default is an example.
    pub value: String,
}

/// The choices of other roles that a component cannot be combined with, with the defaults of all further roles.
///
/// Every component of every other role is tried, then each of its parameters that has a choice of names, is a truth value or
/// has no default; in the same way the parameters of the component itself. Values of other parameters are not tried.
pub fn refused_with(component: &'static Component) -> Vec<Refused> {
    let roles = Role::ALL.into_iter().filter(|role| *role != component.role && applies(*role, component.model));
    roles.flat_map(|role| refused_in(component, role)).collect()
}

/// The combinations that are refused with a component, for people: the choices of each key, and the sentence for the first of them.
pub fn refusals(component: &'static Component) -> Vec<(String, String)> {
    let mut grouped: Vec<(Option<Setting>, &'static str, Vec<String>, String)> = Vec::new();
    for one in refused_with(component) {
        match grouped.last_mut() {
            Some((setting, key, values, _)) if (&*setting, *key) == (&one.setting, one.with.key) => {
                if values.last() != Some(&one.with.value) {
                    values.push(one.with.value);
                }
            }
            _ => grouped.push((one.setting, one.with.key, vec![one.with.value], one.reason)),
        }
    }
    let words = |(setting, key, values, reason): (Option<Setting>, &str, Vec<String>, String)| {
        let own = setting.map(|Setting { key, value }| format!("with `{key}` = {value}: ")).unwrap_or_default();
        let sentence = if values.len() > 1 { format!("for {}: {reason}", values[0]) } else { reason };
        (format!("{own}`{key}` = {}", values.join(", ")), sentence)
    };
    grouped.into_iter().map(words).collect()
}

/// A choice of a component, and the setting that differs from its defaults.
type Tried = (Option<Setting>, Choice);

fn refused_in(component: &'static Component, role: Role) -> Vec<Refused> {
    let fitting = |role| of(role).filter(|other: &&'static Component| other.model == component.model);
    let rivals: Vec<Choice> = fitting(component.role).map(example).collect();
    let others: Vec<Choice> = fitting(role).map(example).collect();
    let base = base(component.model);
    let problems = |own: &Choice, other: &Choice| {
        let mut spec = base.clone();
        spec.choose(own.clone());
        spec.choose(other.clone());
        spec.problems().to_vec()
    };
    let own = example(component);
    let of_role =
        |component: &Component| Setting { key: component.role.key(), value: format!("\"{}\"", component.name) };
    let mut refused: Vec<Refused> = Vec::new();
    for (setting, other) in fitting(role).flat_map(tried) {
        // A sentence is about the two if it depends on each of them.
        let about_both = |reason: &String| {
            others.iter().any(|other| !problems(&own, other).contains(reason))
                && rivals.iter().any(|rival| !problems(rival, &other).contains(reason))
        };
        let with = setting.unwrap_or_else(|| of_role(other.component()));
        let reasons = problems(&own, &other).into_iter().filter(about_both);
        refused.extend(reasons.map(|reason| Refused { setting: None, with: with.clone(), reason }));
    }
    for (setting, own_with) in tried(component).into_iter().skip(1) {
        for other in &others {
            let about_both = |reason: &String| {
                !problems(&own, other).contains(reason)
                    && others.iter().any(|other| !problems(&own_with, other).contains(reason))
            };
            let with = of_role(other.component());
            let reasons = problems(&own_with, other).into_iter().filter(about_both);
            refused.extend(reasons.map(|reason| Refused { setting: setting.clone(), with: with.clone(), reason }));
        }
    }
    // A component is refused with all its settings.
    let whole: Vec<String> =
        refused.iter().filter(|one| one.with.key == role.key()).map(|one| one.reason.clone()).collect();
    refused.retain(|one| one.with.key == role.key() || !whole.contains(&one.reason));
    refused
}

/// A spec of a model with the default component of each role, or the first one of the model.
fn base(model: Model) -> SimSpec {
    let mut spec = SimSpec::new();
    for role in Role::ALL.into_iter().filter(|role| applies(*role, model)) {
        let default = find(role, role.default_component()).filter(|component| component.model == model);
        if let Some(component) = default.or_else(|| of(role).find(|component| component.model == model)) {
            spec.choose(example(component));
        }
    }
    spec
}

/// A component with its defaults, and with example values of its required parameters.
fn example(component: &'static Component) -> Choice {
    let mut choice = Choice::new(component);
    for param in component.params.iter().filter(|param| param.default == Default::Required) {
        // An example that is out of range stays out: the parameter is then missing, which no problem mentions.
        let _ = choice.set(param.name, example_value(param));
    }
    choice
}

fn example_value(param: &Param) -> Value {
    match param.ty {
        Type::Bool => Value::Bool(true),
        Type::Int { min, max } => Value::Int(1.clamp(min, max)),
        Type::Real { min, max, .. } => Value::Real(1_f64.clamp(min, max)),
        Type::Reals { min, max } => Value::Reals(vec![1_f64.clamp(min, max)]),
        Type::OneOf(names) => Value::Text(names[0].to_owned()),
        Type::Formula { variables } => Value::Text(variables[0].name.to_owned()),
        Type::Locator | Type::Signal { .. } | Type::Module => Value::Text("example".to_owned()),
    }
}

/// A component as [`example`], then with each other value of its parameters that is tried.
fn tried(component: &'static Component) -> Vec<Tried> {
    let plain = example(component);
    let mut tried = vec![(None, plain.clone())];
    for param in component.params {
        let values = match (param.default, param.ty) {
            (Default::Unset, _) => vec![example_value(param)],
            (Default::Bool(default), _) => vec![Value::Bool(!default)],
            (Default::Text(default), Type::OneOf(names)) => {
                names.iter().filter(|name| **name != default).map(|name| Value::Text((*name).to_owned())).collect()
            }
            _ => Vec::new(),
        };
        for value in values {
            let mut choice = plain.clone();
            let setting = Setting { key: param.name, value: written(&value) };
            if choice.set(param.name, value).is_ok() {
                tried.push((Some(setting), choice));
            }
        }
    }
    tried
}

/// A value as manifests write it.
fn written(value: &Value) -> String {
    match value {
        Value::Text(text) => format!("\"{text}\""),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::components::COMPONENTS;

    fn refused(role: Role, name: &str) -> Vec<Refused> {
        refused_with(find(role, name).unwrap())
    }

    fn settings(refused: &[Refused], key: &str) -> Vec<String> {
        refused.iter().filter(|one| one.with.key == key).map(|one| one.with.value.clone()).collect()
    }

    /// Decision 0006: the sentences are those of the component's own problems.
    #[test]
    fn a_knapsack_needs_an_order_a_cap_and_its_own_gears() {
        let refused = refused(Role::Backfill, "knapsack");
        let orders = ["fcfs", "sjf", "widest", "wfp3", "f1", "formula"].map(|name| format!("\"{name}\""));
        assert_eq!(settings(&refused, "queue_order"), orders);
        assert_eq!(settings(&refused, "gear_rule"), ["\"bsld\""]);
        let caps = ["none", "admission", "pdrc", "power-precedence", "performance-precedence"];
        assert_eq!(settings(&refused, "power_cap"), caps.map(|name| format!("\"{name}\"")));
        let reason = refused.iter().find(|one| one.with.value == "\"sjf\"").unwrap();
        let sentence = "`backfill` = \"knapsack\" takes one priority after the other: it needs `queue_order` = \"priority\", not \
                        \"sjf\"";
        assert_eq!(reason.reason, sentence);
    }

    #[test]
    fn settings_are_tried_on_both_sides() {
        let quantile = refused(Role::Deferral, "quantile");
        let suspends = quantile.iter().filter(|one| one.with.key == "power_cap");
        let keys: BTreeSet<&str> = suspends.map(|one| one.setting.as_ref().unwrap().key).collect();
        assert_eq!(keys.into_iter().collect::<Vec<_>>(), ["defer_quantile_suspend"]);
        let admission = refused(Role::Cap, "admission");
        assert_eq!(settings(&admission, "deferral"), ["\"wait-awhile\""]);
        assert_eq!(settings(&admission, "defer_quantile_suspend").len(), 1);
        assert_eq!(settings(&admission, "head_gear"), ["\"until-early-end\"", "\"fixed\""]);
        assert!(settings(&admission, "queue_order").is_empty(), "{admission:?}");
    }

    /// A pair of components is refused from both sides, with one sentence.
    #[test]
    fn refusals_are_mutual() {
        let pairs = |component: &'static Component| {
            let whole = refused_with(component).into_iter().filter(|one| one.setting.is_none());
            let own = format!("{} = \"{}\"", component.role.key(), component.name);
            whole
                .filter(|one| Role::ALL.iter().any(|role| role.key() == one.with.key))
                .map(move |one| (own.clone(), format!("{} = {}", one.with.key, one.with.value), one.reason))
        };
        let all: BTreeSet<_> = COMPONENTS.iter().copied().flat_map(pairs).collect();
        assert!(all.len() > 80, "{}", all.len());
        for (own, with, reason) in &all {
            assert!(all.contains(&(with.clone(), own.clone(), reason.clone())), "{own} and {with}: {reason}");
        }
    }
}
