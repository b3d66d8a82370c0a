//! Numbers that were written with a unit, where a number in a given unit is expected.

use crate::decimal::Decimal;

/// The units of each quantity, in lower case, with what one of them is in the first unit.
const QUANTITIES: [&[(&str, f64)]; 6] = [
    &[
        ("s", 1.0),
        ("ms", 1e-3),
        ("sec", 1.0),
        ("seconds", 1.0),
        ("min", 60.0),
        ("minutes", 60.0),
        ("h", 3_600.0),
        ("hours", 3_600.0),
        ("d", 86_400.0),
        ("days", 86_400.0),
    ],
    &[("w", 1.0), ("kw", 1e3), ("mw", 1e6), ("gw", 1e9)],
    &[("j", 1.0), ("kj", 1e3), ("mj", 1e6), ("gj", 1e9), ("wh", 3_600.0), ("kwh", 3.6e6), ("mwh", 3.6e9)],
    &[("g", 1.0), ("kg", 1e3), ("t", 1e6)],
    &[("ghz", 1.0), ("mhz", 1e-3), ("khz", 1e-6)],
    &[("gib", 1.0), ("mib", 1.0 / 1_024.0), ("tib", 1_024.0)],
];

/// The number of a text such as `12 h`, in another unit of the same quantity; `None` if the text is no number with such a unit.
pub fn converted(text: &str, unit: &str) -> Option<String> {
    let start = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let from = text[start.len()..].to_lowercase();
    let number = Decimal::parse(start.trim()).filter(|_| !from.is_empty())?.to_f64();
    let unit = unit.to_lowercase();
    let factor =
        |units: &[(&str, f64)], name: &str| units.iter().find(|(known, _)| *known == name).map(|known| known.1);
    let factors = QUANTITIES.iter().find_map(|units| factor(units, &from).zip(factor(units, &unit)));
    let (from, to) = factors?;
    // Twelve digits: a product such as 0.07 * 3600 is not exact.
    let value: f64 = format!("{:.11e}", number * from / to).parse().ok()?;
    Some(value.to_string())
}

/// The unit in the name of a column, such as `s` in `wait_s_mean`.
pub fn unit_in(column: &str) -> Option<&str> {
    let is_unit = |part: &&str| QUANTITIES.iter().any(|units| units.iter().any(|(unit, _)| unit == part));
    column.split('_').skip(1).filter(is_unit).last()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_converted_within_a_quantity() {
        for (text, unit, expected) in [
            ("12 h", "s", Some("43200")),
            ("200 W", "W", Some("200")),
            ("0.07h", "s", Some("252")),
            ("1.5 kW", "W", Some("1500")),
            ("2 MWh", "J", Some("7200000000")),
            ("3 days", "s", Some("259200")),
            ("2400 MHz", "GHz", Some("2.4")),
            ("30 s", "days", Some("0.000347222222222")),
            ("200 W", "s", None),
            ("12", "s", None),
            ("h", "s", None),
            ("12 h", "", None),
            ("über 12 h", "s", None),
        ] {
            assert_eq!(converted(text, unit).as_deref(), expected, "{text} in {unit}");
        }
        let units = [("wait_s_mean", Some("s")), ("energy_total_j", Some("j")), ("jobs_count", None), ("procs", None)];
        for (column, unit) in units {
            assert_eq!(unit_in(column), unit, "{column}");
        }
    }
}
