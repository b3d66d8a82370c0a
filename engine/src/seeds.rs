//! Whether the seed of a spec changes its simulation.

use crate::spec::{Role, SimSpec, Value};
use crate::workload::FORMATS;

/// The component and the parameters that tell it: where the jobs come from, and what is drawn beside the jobs of a log.
pub const READ: [&str; 6] =
    ["source", "resample_days", "submit_jitter_s", "power_knowledge", "defer_share", "defer_forecast"];

/// Whether the seed changes the simulation of a spec. Without it, all seeds have one result.
pub fn matter(spec: &SimSpec) -> bool {
    matter_by(|name| match name == Role::Source.key() {
        true => Some(Value::Text(spec.choice(Role::Source).component().name.to_owned())),
        false => spec.choices().find_map(|choice| choice.get(name)).cloned(),
    })
}

/// [`matter`] by the values of [`READ`]; `None` for a component that was not chosen, or a parameter that it lacks.
pub fn matter_by(value: impl Fn(&str) -> Option<Value>) -> bool {
    let is_log = |source: &str| FORMATS.iter().any(|format| format.component.name == source);
    let draws = |name: &&str| match value(name) {
        Some(Value::Real(share)) if *name == "defer_share" => share < 1.0,
        Some(Value::Real(most)) => most > 0.0,
        Some(Value::Text(knowledge)) => knowledge == "noise",
        _ => false,
    };
    !matches!(value(READ[0]), Some(Value::Text(source)) if is_log(&source)) || READ[1..].iter().any(draws)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::components::COMPONENTS;

    #[test]
    fn the_seed_of_a_log_matters_where_something_is_drawn() {
        let has = |name: &&str| COMPONENTS.iter().flat_map(|of| of.params).any(|param| param.name == *name);
        assert!(READ[0] == Role::Source.key() && READ[1..].iter().all(has));
        let of = |source: &str, more: Option<(&str, Value)>| {
            matter_by(|name| match &more {
                _ if name == "source" => Some(Value::Text(source.to_owned())),
                Some((own, value)) if *own == name => Some(value.clone()),
                _ if name == "defer_share" => Some(Value::Real(1.0)),
                _ if name == "submit_jitter_s" => Some(Value::Real(0.0)),
                _ => None,
            })
        };
        assert!(!of("swf", None) && of("lublin", None) && of("poisson", None));
        for (name, value) in [
            ("resample_days", Value::Real(7.0)),
            ("submit_jitter_s", Value::Real(60.0)),
            ("power_knowledge", Value::Text("noise".to_owned())),
            ("defer_share", Value::Real(0.5)),
            ("defer_forecast", Value::Text("noise".to_owned())),
        ] {
            assert!(of("swf", Some((name, value))), "{name}");
        }
        assert!(!of("swf", Some(("defer_forecast", Value::Text("oracle".to_owned())))));
    }
}
