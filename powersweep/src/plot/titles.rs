//! Titles of axes from the names of columns.

use powersweep_dataset::frame::{self, RELATIVE, is_cost};
use powersweep_dataset::{Column, titles};
use powersweep_engine::components::SERIES;

/// A column of a figure with the title and the unit that its name says. Values that are no numbers are texts.
pub fn titled(column: &Column) -> Column {
    let (title, unit) = titles::title(column.name());
    // The name does not say the currency of a cost.
    let is_own = column.unit() == RELATIVE || is_cost(column.name());
    let unit = if is_own { column.unit() } else { &unit };
    column.for_people().titled(&title, unit)
}

/// The values of a series, and whether they are over time.
pub(super) fn series(name: &str, values: &Column, are_relative: bool) -> (Column, bool) {
    let unit = SERIES.iter().find(|series| series.name == name).map_or("", |series| series.unit);
    let (title, unit) = titles::titled(name, unit);
    let is_over_time = !name.ends_with("_cdf") && !name.ends_with("_time_share");
    (values.named("value").titled(&title, frame::unit_of(name, &unit, are_relative)), is_over_time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_energies_have_no_joules() {
        let (power, is_over_time) = series("power_w", &Column::numbers("value", "", "", [0.0]), false);
        assert_eq!((power.title(), power.unit(), is_over_time), ("power", "W", true));
        let (power, _) = series("power_w", &Column::numbers("value", "", "", [0.0]), true);
        assert_eq!((power.title(), power.unit()), ("power", "relative"));
        let energy = titled(&Column::numbers("energy_total_j", "", "relative", [0.0]));
        assert_eq!((energy.title(), energy.unit()), ("total energy", "relative"));
        let cost = titled(&Column::numbers("window_cost", "", "EUR", [0.0]));
        assert_eq!((cost.title(), cost.unit()), ("window cost", "EUR"));
    }
}
