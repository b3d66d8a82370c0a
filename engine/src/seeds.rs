//! How the simulations of a spec with different seeds depend on each other.

use std::cmp::Ordering;

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
    /// exactly, and still know only this log.
    Resampled(Draw),
}

/// A draw of blocks from the blocks of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draw {
    /// Blocks that are drawn, at least 1.
    pub drawn: u32,
    /// Whole blocks of the log, at least 2.
    pub blocks: u32,
}

impl Draw {
    /// A draw of as many blocks as a long log has, where the rows do not tell.
    pub const UNKNOWN: Draw = Draw { drawn: u32::MAX - 1, blocks: u32::MAX };

    /// The variance of the mean over the log, as an estimate of its machine's, over the variance of a draw's mean: B draws of K
    /// blocks vary by (K - 1)/K times the variance of a block over B, and the log by the variance of a block over K.
    pub fn variance_ratio(self) -> f64 {
        f64::from(self.drawn) / (f64::from(self.blocks) - 1.0)
    }
}

/// By [`Draw::variance_ratio`]; of equal ones, fewer blocks count as more dependent.
impl Ord for Draw {
    fn cmp(&self, other: &Draw) -> Ordering {
        self.variance_ratio().total_cmp(&other.variance_ratio()).then(other.blocks.cmp(&self.blocks))
    }
}

impl PartialOrd for Draw {
    fn partial_cmp(&self, other: &Draw) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The columns of rows that tell, beside [`READ`], how many blocks a draw has, and how many the log has.
const DRAWN: [&str; 2] = ["resample_blocks", "whole_blocks_count"];

/// The columns of rows that tell the dependence: [`READ`] and [`DRAWN`].
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
            Dependence::Resampled(draw(&value).unwrap_or(Draw::UNKNOWN))
        }
        Some(Value::Text(source)) if is_log(&source) && !READ[1..].iter().any(draws) => Dependence::Alike,
        _ => Dependence::Independent,
    }
}

/// The draw by [`DRAWN`]; `None` without the number of the log's blocks.
fn draw(value: &impl Fn(&str) -> Option<Value>) -> Option<Draw> {
    let count = |name: &str| match value(name) {
        Some(Value::Int(count)) => u32::try_from(count).ok(),
        _ => None,
    };
    let blocks = count(DRAWN[1]).filter(|blocks| *blocks >= 2)?;
    Some(Draw { drawn: count(DRAWN[0]).unwrap_or(blocks), blocks })
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
        let whole = Dependence::Resampled(Draw::UNKNOWN);
        assert_eq!((of("swf", weeks()), of("lublin", weeks())), (whole, Dependence::Independent));
        // Two of 41 weeks.
        let counted = |name: &str| match name {
            "source" => Some(Value::Text("swf".to_owned())),
            "resample_days" => Some(Value::Real(7.0)),
            "resample_blocks" => Some(Value::Int(2)),
            "whole_blocks_count" => Some(Value::Int(41)),
            _ => None,
        };
        let drawn = Draw { drawn: 2, blocks: 41 };
        assert_eq!(dependence_by(counted), Dependence::Resampled(drawn));
        assert_eq!(drawn.variance_ratio(), 0.05);
        // The greatest dependence is that of the shortest log.
        assert!(drawn < Draw::UNKNOWN && Draw::UNKNOWN < Draw { drawn: 12, blocks: 12 });
        let oracle = Some(("defer_forecast", Value::Text("oracle".to_owned())));
        assert_eq!(of("swf", oracle), Dependence::Alike);
    }
}
