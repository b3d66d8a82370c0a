//! A task as options of `powersweep simulate`, which reproduce it without its manifest.

use powersweep_engine::SimSpec;

use crate::limits::TaskLimits;

/// `KEY=VALUE` for every component and parameter that differs from the default, components first. `powersweep simulate`
/// with these as `--set`, and with the seed, makes the same [`SimSpec`].
pub fn settings(sim: &SimSpec) -> Vec<String> {
    let choices = sim.choices().filter(|choice| choice.component().name != choice.component().role.default_component());
    let mut settings: Vec<String> =
        choices.map(|choice| format!("{}={}", choice.component().role.key(), choice.component().name)).collect();
    for choice in sim.choices() {
        for param in choice.component().params {
            let value = choice.get(param.name);
            if let Some(value) = value.filter(|value| param.default.value().as_ref() != Some(value)) {
                settings.push(format!("{}={value}", param.name));
            }
        }
    }
    settings
}

/// The command that simulates a task again without its manifest, within the manifest's limits. It can be pasted into a
/// POSIX shell.
pub fn reproduce(sim: &SimSpec, limits: &TaskLimits) -> String {
    let mut command = "powersweep simulate".to_owned();
    for setting in settings(sim) {
        command.push_str(&format!(" -s {}", quoted(&setting)));
    }
    command.push_str(&format!(" --seed {}", sim.seed));
    let TaskLimits { task_deadline_s, task_max_events, task_max_memory_bytes } = limits;
    let limits = [
        task_deadline_s.map(|seconds| format!(" --task-deadline {seconds}s")),
        task_max_events.map(|events| format!(" --task-max-events {events}")),
        task_max_memory_bytes.map(|bytes| format!(" --task-max-memory {bytes}")),
    ];
    command.extend(limits.into_iter().flatten());
    command
}

/// A word for a POSIX shell, in single quotes if necessary.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./,:@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use powersweep_engine::components;
    use powersweep_engine::spec::Value;
    use powersweep_engine::{Choice, Role};

    use super::*;

    #[test]
    fn only_settings_that_differ_from_the_defaults_are_listed() {
        let none = TaskLimits::default();
        assert_eq!(reproduce(&SimSpec::new(), &none), "powersweep simulate --seed 1");
        let limits = TaskLimits {
            task_deadline_s: Some(1e-3),
            task_max_events: Some(1_000_000),
            task_max_memory_bytes: Some(4096),
        };
        assert_eq!(
            reproduce(&SimSpec::new(), &limits),
            "powersweep simulate --seed 1 --task-deadline 0.001s --task-max-events 1000000 --task-max-memory 4096"
        );
        let mut sim = SimSpec::new();
        sim.seed = 7;
        sim.choose(Choice::new(components::find(Role::Source, "swf").expect("it is registered")));
        sim.choice_mut(Role::Source).set("log", Value::Text("my log's".to_owned())).expect("it fits");
        sim.choose(Choice::new(components::find(Role::GearRule, "bsld").expect("it is registered")));
        let gear_rule = sim.choice_mut(Role::GearRule);
        gear_rule.set("bsld_threshold", Value::Real(1.5)).expect("it fits");
        gear_rule.set("wq_threshold", Value::Int(4)).expect("it fits");
        sim.choice_mut(Role::Platform).set("gears_ghz", Value::Reals(vec![1.0, 2.5])).expect("it fits");
        assert_eq!(
            reproduce(&sim, &none),
            r"powersweep simulate -s source=swf -s gear_rule=bsld -s 'log=my log'\''s' -s 'gears_ghz=[1, 2.5]' -s bsld_threshold=1.5 -s wq_threshold=4 --seed 7"
        );
    }
}
