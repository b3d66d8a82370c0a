//! The series that a manifest chooses.

use powersweep_engine::components::SERIES;
use toml::de::DeTable;

use super::values::kind;
use crate::errors::Problem;
use crate::names::suggestion;

/// The names of all series.
pub(crate) fn names() -> Vec<&'static str> {
    SERIES.iter().map(|series| series.name).collect()
}

/// The chosen series; `None` if the manifest chooses none, so that all are recorded.
pub(super) fn series(table: &DeTable<'_>, problems: &mut Vec<Problem>) -> Option<Vec<&'static str>> {
    let value = table.get("series")?;
    let expected = "expected such as series = [\"power_w\"]";
    let Some(items) = value.get_ref().as_array().filter(|items| !items.is_empty()) else {
        let help = "leave it out and use tables = [\"series\"] to record all series";
        problems.push(Problem::new(value.span(), "`series` must be a list of series", expected).help(help));
        return None;
    };
    let mut chosen: Vec<&'static str> = Vec::new();
    for item in items {
        let known = item.get_ref().as_str().and_then(|name| names().into_iter().find(|known| *known == name));
        match known {
            Some(name) if chosen.contains(&name) => {
                let message = format!("`{name}` is listed twice");
                problems.push(Problem::new(item.span(), message, "expected each series once"));
            }
            Some(name) => chosen.push(name),
            None => {
                let message = format!("there is no series {}", kind(item.get_ref()));
                let help = item.get_ref().as_str().map(|name| suggestion(name, names()));
                let expected = format!("expected one of {}", names().join(", "));
                problems.push(Problem::new(item.span(), message, expected).maybe_help(help));
            }
        }
    }
    Some(chosen)
}
