//! Numbers and times in the words of tables and pages.

/// "1 task", "2 tasks".
pub fn count(n: u64, thing: &str) -> String {
    match (n, thing.strip_suffix('y')) {
        (1, _) => format!("1 {thing}"),
        (_, Some(stem)) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{n} {stem}ies"),
        _ if thing.ends_with('s') => format!("{n} {thing}es"),
        _ => format!("{n} {thing}s"),
    }
}

/// A number for people: four significant digits, more for whole numbers.
pub fn number(value: f64) -> String {
    if value == f64::INFINITY {
        "unlimited".to_owned()
    } else if value == 0.0 {
        "0".to_owned()
    } else if value.abs() >= 1e7 || value.abs() < 1e-3 {
        format!("{value:.3e}")
    } else if value.fract() == 0.0 || value.abs() >= 1e4 {
        format!("{value:.0}")
    } else {
        let digits = (3 - value.abs().log10().floor() as i32).max(0) as usize;
        let text = format!("{value:.digits$}");
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
    }
}

/// A duration for people: "0.4 s", "3 min 20 s", "2 h 5 min".
pub fn duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        _ if seconds < 10.0 => format!("{seconds:.1} s"),
        0..=119 => format!("{whole} s"),
        120..=7199 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}

/// A remaining time for people, as a range where the two ends differ: "3 min to 5 min".
pub fn range(least_s: f64, most_s: f64) -> String {
    let (least, most) = (rounded(least_s), rounded(most_s));
    if least == most { most } else { format!("{least} to {most}") }
}

/// A duration in one unit.
fn rounded(seconds: f64) -> String {
    match seconds {
        s if s < 99.5 => format!("{s:.0} s"),
        s if s < 5_970.0 => format!("{:.0} min", s / 60.0),
        s if s < 356_400.0 => format!("{:.0} h", s / 3_600.0),
        s => format!("{:.0} days", s / 86_400.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_things_have_a_plural() {
        let shown =
            [(1, "query"), (2, "query"), (2, "address"), (0, "task"), (3, "day")].map(|(n, thing)| count(n, thing));
        assert_eq!(shown, ["1 query", "2 queries", "2 addresses", "0 tasks", "3 days"]);
    }

    #[test]
    fn numbers_have_four_significant_digits() {
        for (value, text) in
            [(0.0, "0"), (5.0, "5"), (7786.753, "7787"), (4.520238, "4.52"), (0.80156, "0.8016"), (12345.6, "12346")]
        {
            assert_eq!(number(value), text);
        }
        assert_eq!(number(f64::INFINITY), "unlimited");
        assert_eq!(number(1.5e9), "1.500e9");
    }
}
