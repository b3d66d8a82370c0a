//! Titles of axes from the names of columns.

use powersweep_dataset::Column;
use powersweep_dataset::frame::{RELATIVE, is_relative_unit};
use powersweep_engine::components::SERIES;
use powersweep_results::{Table, columns::unit_in};

/// The unit of a column of any table.
fn unit_of(name: &str) -> &'static str {
    let all = Table::ALL.into_iter().flat_map(Table::columns);
    let found = all.into_iter().find(|column| column.name == name);
    found.map_or_else(|| unit_in(name), |column| column.unit)
}

/// A column of a figure with the title and the unit that its name says. Values that are no numbers are texts.
pub fn titled(column: &Column) -> Column {
    let (title, unit) = split(column.name(), unit_of(column.name()));
    let unit = if column.unit() == RELATIVE { RELATIVE } else { &unit };
    column.for_people().titled(&title, unit)
}

/// The values of a series, and whether they are over time.
pub(super) fn series(name: &str, values: &Column, are_relative: bool) -> (Column, bool) {
    let unit = SERIES.iter().find(|series| series.name == name).map_or("", |series| series.unit);
    let (title, unit) = split(name, unit);
    let unit = if are_relative && is_relative_unit(&unit) { RELATIVE.to_owned() } else { unit };
    let is_over_time = !name.ends_with("_cdf") && !name.ends_with("_time_share");
    (values.named("value").titled(&title, &unit), is_over_time)
}

/// `energy_total_j` in joules is "energy total" with the unit J. A unit that is a word stays in the title alone.
fn split(name: &str, unit: &str) -> (String, String) {
    let words: Vec<&str> = name.split('_').collect();
    let at = words.iter().rposition(|word| word.eq_ignore_ascii_case(unit));
    let is_word = unit.len() > 3;
    match at {
        Some(_) if is_word => (words.join(" "), String::new()),
        Some(at) if words.len() > 1 => {
            let others = words.iter().enumerate().filter(|(place, _)| *place != at).map(|(_, word)| *word);
            (others.collect::<Vec<_>>().join(" "), unit.to_owned())
        }
        _ => (words.join(" "), unit.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_of_a_name_goes_behind_its_title() {
        for (name, title, unit) in [
            ("energy_total_j", "energy total", "J"),
            ("wait_s_mean", "wait mean", "s"),
            ("active_procs_mean", "active procs mean", ""),
            ("bsld_threshold", "bsld threshold", ""),
            ("procs", "procs", ""),
        ] {
            let column = titled(&Column::numbers(name, "", "", [0.0]));
            assert_eq!((column.title(), column.unit()), (title, unit), "{name}");
        }
        let (power, is_over_time) = series("power_w", &Column::numbers("value", "", "", [0.0]), false);
        assert_eq!((power.title(), power.unit(), is_over_time), ("power", "W", true));
        let (power, _) = series("power_w", &Column::numbers("value", "", "", [0.0]), true);
        assert_eq!((power.title(), power.unit()), ("power", "relative"));
        let energy = titled(&Column::numbers("energy_total_j", "", "relative", [0.0]));
        assert_eq!((energy.title(), energy.unit()), ("energy total", "relative"));
    }
}
