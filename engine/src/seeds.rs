//! How the simulations of a spec with different seeds depend on each other.

use crate::spec::{Role, SimSpec, Value};
use crate::workload::FORMATS;

/// The component and the parameters that tell it: where the jobs come from, and what is drawn beside the jobs of a log.
pub const READ: [&str; 6] =
    ["source", "resample_days", "submit_jitter_s", "power_knowledge", "defer_share", "defer_forecast"];

/// The parameter with the length of the blocks that seeds draw.
pub const RESAMPLE_DAYS: &str = READ[1];

/// How simulations with different seeds depend on each other. Of several kinds together, the greatest counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dependence {
    /// Equal: nothing is drawn.
    Alike,
    /// Independent: each seed has jobs of its own, or other random numbers beside the same jobs.
    #[default]
    Independent,
    /// Draws of blocks from the jobs of one log, with replacement: a bootstrap of the log. Many draws make their mean known
    /// exactly, and still know only this log: the more of it a draw has, the less independent draws are.
    Resampled {
        /// The part of the log's jobs that a draw has, in thousandths; 1000 where it is not known.
        drawn_per_mille: u16,
    },
}

/// The columns of rows that tell, beside [`READ`], which part of the log's jobs a draw has.
pub const DRAWN: [&str; 8] = [
    "resample_blocks",
    "jobs_count",
    "records_count",
    "sliced_out_count",
    "dropped_run_count",
    "dropped_submit_count",
    "dropped_procs_count",
    "dropped_estimate_count",
];

/// The columns of rows that tell the dependence of their seeds: [`READ`] and [`DRAWN`].
pub fn columns() -> Vec<&'static str> {
    READ.into_iter().chain(DRAWN).collect()
}

/// The dependence of a spec's simulations with different seeds.
pub fn dependence(spec: &SimSpec) -> Dependence {
    dependence_by(|name| match name == Role::Source.key() {
        true => Some(Value::Text(spec.choice(Role::Source).component().name.to_owned())),
        false => spec.choices().find_map(|choice| choice.get(name)).cloned(),
    })
}

/// [`dependence`] by the values of [`READ`], and of [`DRAWN`] for rows; `None` for a component that was not chosen, or a parameter
/// that it lacks.
pub fn dependence_by(value: impl Fn(&str) -> Option<Value>) -> Dependence {
    let is_log = |source: &str| FORMATS.iter().any(|format| format.component.name == source);
    let draws = |name: &&str| match value(name) {
        Some(Value::Real(share)) if *name == "defer_share" => share < 1.0,
        Some(Value::Real(most)) => most > 0.0,
        Some(Value::Text(knowledge)) => knowledge == "noise",
        _ => false,
    };
    match value(READ[0]) {
        Some(Value::Text(source)) if is_log(&source) && draws(&RESAMPLE_DAYS) => {
            Dependence::Resampled { drawn_per_mille: drawn_per_mille(&value).unwrap_or(1_000) }
        }
        Some(Value::Text(source)) if is_log(&source) && !READ[1..].iter().any(draws) => Dependence::Alike,
        _ => Dependence::Independent,
    }
}

/// The part of the log's jobs that a draw has, in thousandths, by [`DRAWN`]; `None` for as many blocks as the log has, or without
/// counts.
fn drawn_per_mille(value: &impl Fn(&str) -> Option<Value>) -> Option<u16> {
    let count = |name: &str| match value(name) {
        Some(Value::Int(count)) => Some(count as f64),
        _ => None,
    };
    let [blocks, drawn, records, left_out @ ..] = DRAWN;
    count(blocks)?;
    let jobs = count(records)? - left_out.into_iter().filter_map(count).sum::<f64>();
    let share = count(drawn)? / jobs.max(1.0);
    Some((1_000.0 * share).round().clamp(1.0, 1_000.0) as u16)
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
            dependence_by(|name| match &more {
                _ if name == "source" => Some(Value::Text(source.to_owned())),
                Some((own, value)) if *own == name => Some(value.clone()),
                _ if name == "defer_share" => Some(Value::Real(1.0)),
                _ if name == "submit_jitter_s" => Some(Value::Real(0.0)),
                _ => None,
            })
        };
        assert_eq!(of("swf", None), Dependence::Alike);
        assert_eq!((of("lublin", None), of("poisson", None)), (Dependence::Independent, Dependence::Independent));
        for (name, value) in [
            ("submit_jitter_s", Value::Real(60.0)),
            ("power_knowledge", Value::Text("noise".to_owned())),
            ("defer_share", Value::Real(0.5)),
            ("defer_forecast", Value::Text("noise".to_owned())),
        ] {
            assert_eq!(of("swf", Some((name, value))), Dependence::Independent, "{name}");
        }
        let weeks = || Some(("resample_days", Value::Real(7.0)));
        // A generator makes other jobs for each seed before their weeks are drawn.
        let whole = Dependence::Resampled { drawn_per_mille: 1_000 };
        assert_eq!((of("swf", weeks()), of("lublin", weeks())), (whole, Dependence::Independent));
        // Of 1,000 records 200 are left out; two weeks of them have 40 jobs.
        let counted = |name: &str| match name {
            "source" => Some(Value::Text("swf".to_owned())),
            "resample_days" => Some(Value::Real(7.0)),
            "resample_blocks" => Some(Value::Int(2)),
            "jobs_count" => Some(Value::Int(40)),
            "records_count" => Some(Value::Int(1_000)),
            "sliced_out_count" | "dropped_run_count" => Some(Value::Int(100)),
            _ => None,
        };
        assert_eq!(dependence_by(counted), Dependence::Resampled { drawn_per_mille: 50 });
        let oracle = Some(("defer_forecast", Value::Text("oracle".to_owned())));
        assert_eq!(of("swf", oracle), Dependence::Alike);
    }
}
