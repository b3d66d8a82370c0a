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

/// Characters of a number that an axis shows unchanged.
const VALUE_MAX: usize = 7;

/// How numbers are written for people.
#[derive(Debug)]
pub struct Notation {
    /// Number of significant digits; whole numbers have more.
    digits: i32,
    /// The sizes that have no power of ten.
    plain: std::ops::Range<f64>,
}

impl Notation {
    /// The notation of tables and pages.
    pub const TABLES: Notation = Notation { digits: 4, plain: 1e-3..1e7 };
    /// The notation of claims, which published numbers share.
    pub const CLAIMS: Notation = Notation { digits: 7, plain: 1e-5..1e9 };

    /// A number.
    pub fn number(&self, value: f64) -> String {
        if value == f64::INFINITY {
            "unlimited".to_owned()
        } else if value == 0.0 {
            "0".to_owned()
        } else if value.abs() < self.plain.start || value.abs() >= self.plain.end {
            format!("{value:.3e}")
        } else {
            let decimals = (self.digits - 1 - value.abs().log10().floor() as i32).max(0) as usize;
            let decimals = if value.fract() == 0.0 { 0 } else { decimals };
            let text = format!("{value:.decimals$}");
            if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
        }
    }

    /// A number in a line with others, of which the greatest has this size: if it has a power of ten, all of them have one.
    pub fn number_beside(&self, value: f64, greatest: f64) -> String {
        let is_plain = greatest < self.plain.end || value == 0.0 || !value.is_finite();
        if is_plain { self.number(value) } else { format!("{value:.3e}") }
    }
}

/// A number of tables and pages: four significant digits, more for whole numbers.
pub fn number(value: f64) -> String {
    Notation::TABLES.number(value)
}

/// A value of an axis for people: a number is rounded where it has more digits than people read, and no value is "none".
pub fn value(text: &str) -> String {
    let long = Some(text).filter(|text| text.contains('.') && text.len() > VALUE_MAX);
    match long.and_then(|text| text.parse().ok()) {
        Some(rounded) => number(rounded),
        None if text.is_empty() => "none".to_owned(),
        None => text.to_owned(),
    }
}

/// A number of tables and pages in a line with others: [`Notation::number_beside`].
pub fn number_beside(value: f64, greatest: f64) -> String {
    Notation::TABLES.number_beside(value, greatest)
}

/// An end of an interval that has no bound.
pub fn endless(end: f64) -> &'static str {
    if end < 0.0 { "-∞" } else { "∞" }
}

/// An interval whose ends have the notation of [`number_beside`]: "1.5 to 2".
pub fn ends_beside((low, high): (f64, f64), greatest: f64) -> String {
    let end = |end: f64| if end.is_finite() { number_beside(end, greatest) } else { endless(end).to_owned() };
    [low, high].map(end).join(" to ")
}

/// Numbers with blanks of a digit's width behind those with fewer decimals: right-aligned, their points are below each other.
pub fn aligned(numbers: &[String]) -> Vec<String> {
    /// As wide as a digit, and as wide as a point.
    const DIGIT: char = '\u{2007}';
    const POINT: char = '\u{2008}';
    let is_plain =
        |text: &str| text.contains(|c: char| c.is_ascii_digit()) && text.chars().all(|c| "-.0123456789".contains(c));
    let decimals = |text: &str| text.split_once('.').map_or(0, |(_, decimals)| decimals.len() + 1);
    let most = numbers.iter().filter(|text| is_plain(text)).map(|text| decimals(text)).max().unwrap_or(0);
    let pad = |text: &String| {
        let lacking = most - decimals(text).min(most);
        let blanks = (0..lacking).map(|at| if at == 0 && !text.contains('.') { POINT } else { DIGIT });
        if is_plain(text) { text.chars().chain(blanks).collect() } else { text.clone() }
    };
    numbers.iter().map(pad).collect()
}

/// A duration for people: "7.5 ms", "0.4 s", "3 min 20 s", "2 h 5 min".
pub fn duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        _ if 0.0 < seconds && seconds < 0.1 => format!("{} ms", number((seconds * 1e4).ceil() / 10.0)),
        _ if seconds < 10.0 => format!("{seconds:.1} s"),
        0..=119 => format!("{whole} s"),
        120..=7199 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}

/// An amount of memory for people: "512 KiB", "85 MiB", "1.2 GiB"; empty if it is not known, which is 0.
pub fn memory(bytes: u64) -> String {
    let of = |unit: u32| bytes as f64 / f64::from(1_u32 << unit);
    match bytes {
        0 => String::new(),
        1..0x10_0000 => format!("{:.0} KiB", of(10)),
        0x10_0000..0x4000_0000 => format!("{:.0} MiB", of(20)),
        _ => format!("{:.1} GiB", of(30)),
    }
}

/// An instant for people: "2026-11-28 23:40:07 UTC". `us`: microseconds since 1970 UTC.
pub fn instant(us: i64) -> String {
    let found = chrono::DateTime::from_timestamp_micros(us);
    found.map_or_else(|| "unknown".to_owned(), |at| at.format("%Y-%m-%d %H:%M:%S UTC").to_string())
}

/// A remaining time for people, as a range where the two ends differ: "3 min to 5 min".
pub fn range(least_s: f64, most_s: f64) -> String {
    let (least, most) = (rounded(least_s), rounded(most_s));
    if least == most { most } else { format!("{least} to {most}") }
}

/// A duration in one unit.
fn rounded(seconds: f64) -> String {
    match seconds.max(0.0) {
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
    fn numbers_of_a_line_have_one_notation() {
        let shown = |value| number_beside(value, 1.7e7);
        assert_eq!([-6_437_998.0, 1.7e7, 0.0].map(shown), ["-6.438e6", "1.700e7", "0"]);
        assert_eq!(number_beside(-6_437_998.0, 9e6), "-6437998");
    }

    #[test]
    fn several_things_have_a_plural() {
        let shown =
            [(1, "query"), (2, "query"), (2, "address"), (0, "task"), (3, "day")].map(|(n, thing)| count(n, thing));
        assert_eq!(shown, ["1 query", "2 queries", "2 addresses", "0 tasks", "3 days"]);
    }

    #[test]
    fn short_durations_have_milliseconds_and_no_time_is_negative() {
        let shown = [0.0, 0.000_04, 0.0075, 0.0999, 0.4, 12.0, 200.0, 7_500.0].map(duration);
        assert_eq!(shown, ["0.0 s", "0.1 ms", "7.5 ms", "99.9 ms", "0.4 s", "12 s", "3 min 20 s", "2 h 5 min"]);
        assert_eq!((range(-0.4, 1.2), range(-1.0, 0.2)), ("0 s to 1 s".to_owned(), "0 s".to_owned()));
    }

    #[test]
    fn memory_has_the_largest_unit_that_it_fills() {
        let shown = [0, 524_288, (1 << 20) - 1, 1 << 20, 89_128_960, 1_288_490_189].map(memory);
        assert_eq!(shown, ["", "512 KiB", "1024 KiB", "1 MiB", "85 MiB", "1.2 GiB"]);
    }

    #[test]
    fn points_of_aligned_numbers_are_below_each_other() {
        let texts = ["7787", "4.52", "0.5", "none", "1.500e9"].map(str::to_owned);
        let expected = ["7787\u{2008}\u{2007}\u{2007}", "4.52", "0.5\u{2007}", "none", "1.500e9"];
        assert_eq!(aligned(&texts), expected);
        assert_eq!(aligned(&["1".to_owned(), String::new()]), ["1", ""]);
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
        let of_claims = [20.0, 127.062, 1e-5, 123_456_789.0, 9.87654321e-6].map(|value| Notation::CLAIMS.number(value));
        assert_eq!(of_claims, ["20", "127.062", "0.00001", "123456789", "9.877e-6"]);
    }
}
