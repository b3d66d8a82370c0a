//! Titles in words from the names of columns, and units with their prefixes.

use powersweep_results::Table;
use powersweep_results::columns::unit_in;

/// Words at the end of a name that stand before it in a title: `wait_s_mean` is the mean wait.
const FIRST: [&str; 5] = ["mean", "median", "max", "min", "total"];
/// Units that take the prefixes of the SI, also where they have one.
const PREFIXED: [&str; 6] = ["J", "W", "Wh", "B", "g", "Hz"];
/// Prefixes by powers of 1000, from [`LEAST`] on.
const PREFIXES: [&str; 10] = ["n", "µ", "m", "", "k", "M", "G", "T", "P", "E"];
const LEAST: i32 = -3;
/// A million grams are a tonne.
const TONNES: [&str; 4] = ["t", "kt", "Mt", "Gt"];

/// The title of a column of any table and its unit: `energy_total_j` is "total energy" with the unit J. A unit that is a word
/// stays in the title alone.
pub fn title(name: &str) -> (String, String) {
    titled(name, unit_of_column(name).unwrap_or_else(|| unit_in(name)))
}

/// The unit of a column of any table; `None` if there is no such column.
pub fn unit_of_column(name: &str) -> Option<&'static str> {
    let found = Table::ALL.into_iter().flat_map(Table::columns).find(|column| column.name == name);
    found.map(|column| column.unit)
}

/// The title of a name with this unit.
pub fn titled(name: &str, unit: &str) -> (String, String) {
    let mut words: Vec<&str> = name.split('_').collect();
    let at = words.iter().rposition(|word| word.eq_ignore_ascii_case(unit));
    let is_word = unit.len() > 3;
    let shown = match at {
        Some(_) if is_word => "",
        Some(at) if words.len() > 1 => {
            words.remove(at);
            unit
        }
        _ => unit,
    };
    if words.len() > 1 && words.last().is_some_and(|last| FIRST.contains(last)) {
        words.rotate_right(1);
    }
    let words: Vec<&str> = words.into_iter().map(|word| if word == "bsld" { "BSLD" } else { word }).collect();
    (words.join(" "), shown.to_owned())
}

/// A title with its unit: `energy (J)`.
pub fn labelled(title: &str, unit: &str) -> String {
    if unit.is_empty() { title.to_owned() } else { format!("{title} ({unit})") }
}

/// A unit times a power of 1000, such as GJ, kg or MWh; `None` for a unit that takes no prefix.
pub fn prefixed(unit: &str, power: i32) -> Option<String> {
    let mut known = PREFIXED.into_iter().flat_map(|base| (LEAST..).zip(PREFIXES).map(move |(own, of)| (own, of, base)));
    let (own, _, base) = known.find(|(_, prefix, base)| unit.strip_prefix(prefix) == Some(*base))?;
    let power = own + power;
    if let Some(tonnes) = usize::try_from(power - 2).ok().filter(|_| base == "g").and_then(|at| TONNES.get(at)) {
        return Some((*tonnes).to_owned());
    }
    PREFIXES.get(usize::try_from(power - LEAST).ok()?).map(|prefix| format!("{prefix}{base}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_has_words_and_the_unit_stands_beside_it() {
        for (name, words, unit) in [
            ("energy_total_j", "total energy", "J"),
            ("wait_s_mean", "mean wait", "s"),
            ("bsld_mean", "mean BSLD", ""),
            ("active_procs_mean", "mean active procs", ""),
            ("bsld_threshold", "BSLD threshold", ""),
            ("jobs_emissions_g", "jobs emissions", "g"),
            ("procs", "procs", ""),
        ] {
            assert_eq!(title(name), (words.to_owned(), unit.to_owned()), "{name}");
        }
    }

    #[test]
    fn units_have_prefixes() {
        for (unit, power, shown) in [
            ("J", 3, Some("GJ")),
            ("g", 1, Some("kg")),
            ("g", 2, Some("t")),
            ("kWh", 1, Some("MWh")),
            ("W", -1, Some("mW")),
            ("GHz", -3, Some("Hz")),
            ("s", 2, None),
            ("relative", 2, None),
        ] {
            assert_eq!(prefixed(unit, power).as_deref(), shown, "{unit} {power}");
        }
    }
}
