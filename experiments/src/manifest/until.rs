//! Seeds that are added until means are known: `seeds = { until = "ci95(bsld_mean) < 2%", at_least = 10, at_most = 500 }`.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::errors::Problem;
use crate::values::Values;

use super::values::{bounded, kind, unknown_keys};

/// The key that tells such seeds from a range.
const UNTIL: &str = "until";
const KEYS: [&str; 5] = [UNTIL, "at_least", "at_most", "from", "by"];
/// Fewer seeds say little about the variance between seeds.
const AT_LEAST: i64 = 10;
/// Greatest number of seeds of a combination.
const AT_MOST: i64 = 1_000_000;
/// Coverages of the intervals (percent).
const PERCENTS: [u32; 3] = [90, 95, 99];

/// How well the mean of a metric is to be known.
#[derive(Debug, Clone, PartialEq)]
pub struct Precision {
    /// The metric.
    pub metric: String,
    /// Coverage of the interval (percent).
    pub percent: u32,
    /// Half the width of the interval is to be below this number, or below this part of the mean.
    pub half_width: f64,
    /// Whether the half width is a part of the mean.
    pub is_relative: bool,
    /// The condition as it was written.
    pub text: String,
}

/// Seeds that are added until means are known. The seeds of the sweep are the most that there may be.
#[derive(Debug, Clone, PartialEq)]
pub struct Until {
    /// The conditions, which must all hold.
    pub precisions: Vec<Precision>,
    /// Number of seeds of the first stage.
    pub at_least: u64,
    /// Greatest number of seeds.
    pub at_most: u64,
    /// The first seed; the others follow it.
    pub from: u64,
    /// Combinations with equal values of these columns have equally many seeds; without any, each combination has its own.
    pub by: Vec<String>,
}

impl Until {
    pub(super) fn values(&self) -> Values {
        Values::Ints { from: self.from.cast_signed(), step: 1, count: self.at_most }
    }
}

/// Whether the seeds are added until something is known.
pub(super) fn is_until(value: &Spanned<DeValue<'_>>) -> bool {
    value.get_ref().as_table().is_some_and(|table| table.contains_key(UNTIL))
}

pub(super) fn read(value: &Spanned<DeValue<'_>>, problems: &mut Vec<Problem>) -> Option<Until> {
    let table = value.get_ref().as_table()?;
    let before = problems.len();
    unknown_keys(table, &KEYS, "`seeds`", problems);
    let precisions = texts(table, UNTIL, problems);
    let precisions = precisions.into_iter().filter_map(|(text, span)| {
        let found = precision(&text);
        if found.is_none() {
            let message = format!("\"{}\" is no precision", text.escape_debug());
            let expected = "expected half the width of an interval and its limit, such as \"ci95(bsld_mean) < 2%\" or \
                            \"ci95(wait_s_mean) < 60\"";
            problems.push(Problem::new(span, message, expected));
        }
        found
    });
    let precisions: Vec<Precision> = precisions.collect();
    let owner = ("`seeds`", value.span());
    let mut number = |key, bounds, default| bounded(table, &owner, key, bounds, default, problems);
    let at_least = number("at_least", (2, AT_MOST), Some(AT_LEAST));
    let at_most = number("at_most", (2, AT_MOST), None);
    let from = number("from", (0, i64::MAX - AT_MOST), Some(1));
    let by = texts(table, "by", problems).into_iter().map(|(text, _)| text).collect();
    if let (Some(at_least), Some(at_most)) = (at_least, at_most)
        && at_least > at_most
    {
        problems.push(Problem::new(value.span(), "`at_least` exceeds `at_most`", "expected at most as many seeds"));
    }
    if problems.len() > before {
        return None;
    }
    let [at_least, at_most, from] = [at_least?, at_most?, from?].map(i64::unsigned_abs);
    Some(Until { precisions, at_least, at_most, from, by })
}

/// A text, or a list of texts, with their places; none without the key.
fn texts(table: &DeTable<'_>, key: &str, problems: &mut Vec<Problem>) -> Vec<(String, std::ops::Range<usize>)> {
    let Some(value) = table.get(key) else { return Vec::new() };
    let items: Vec<&Spanned<DeValue<'_>>> = match value.get_ref() {
        DeValue::Array(items) if !items.is_empty() => items.iter().collect(),
        _ => vec![value],
    };
    let mut found = Vec::new();
    for item in items {
        match item.get_ref().as_str() {
            Some(text) => found.push((text.to_owned(), item.span())),
            None => {
                let message = format!("`{key}` cannot be {}", kind(item.get_ref()));
                problems.push(Problem::new(item.span(), message, "expected a text, or a list of texts"));
            }
        }
    }
    found
}

/// Reads `ci95(METRIC) < NUMBER`, where the number may be a percentage of the mean.
fn precision(text: &str) -> Option<Precision> {
    let rest = text.trim().strip_prefix("ci")?;
    let (percent, rest) = rest.split_once('(')?;
    let (metric, rest) = rest.split_once(')')?;
    let limit = rest.trim().strip_prefix('<')?;
    let limit = limit.strip_prefix('=').unwrap_or(limit).trim();
    let (number, is_relative) = match limit.strip_suffix('%') {
        Some(number) => (number.trim().parse::<f64>().ok()? / 100.0, true),
        None => (limit.parse::<f64>().ok()?, false),
    };
    let percent = if percent.is_empty() { 95 } else { percent.parse().ok()? };
    let metric = metric.trim();
    let is_name = !metric.is_empty() && metric.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let is_known = PERCENTS.contains(&percent) && is_name && number > 0.0 && number.is_finite();
    let (metric, text) = (metric.to_owned(), text.trim().to_owned());
    is_known.then_some(Precision { metric, percent, half_width: number, is_relative, text })
}

#[cfg(test)]
mod tests {
    use crate::Manifest;

    fn parsed(seeds: &str) -> Result<Manifest, String> {
        let text = format!(
            "version = 1\nname = \"m\"\nseeds = {seeds}\n[workloads.w]\nsource = \"lublin\"\nsynthetic_jobs_count = 10\n\
             [policies.p]\nbackfill = \"easy\"\n"
        );
        Manifest::parse("m.toml", &text).map_err(|errors| errors.to_string())
    }

    #[test]
    fn seeds_until_means_are_known_are_the_most_that_there_may_be() {
        let manifest =
            parsed(r#"{ until = ["ci95(bsld_mean) < 2%", "ci90(wait_s_mean)<60"], at_most = 50, from = 7 }"#);
        let manifest = manifest.expect("a manifest");
        let until = manifest.until().expect("it has conditions");
        assert_eq!((until.at_least, until.at_most, until.from), (10, 50, 7));
        let [relative, absolute] = until.precisions.as_slice() else { panic!("{until:?}") };
        assert_eq!((relative.metric.as_str(), relative.half_width, relative.is_relative), ("bsld_mean", 0.02, true));
        assert_eq!((absolute.percent, absolute.half_width, absolute.is_relative), (90, 60.0, false));
        let sweep = crate::Sweep::new(manifest, std::collections::BTreeMap::new()).expect("it needs no file");
        assert_eq!((sweep.task_count(), sweep.task(49).map(|task| task.sim.seed)), (50, Some(56)));
        assert!(parsed("[1, 2]").expect("a manifest").until().is_none());
    }

    #[test]
    fn wrong_conditions_are_named() {
        for (seeds, message) in [
            (r#"{ until = "bsld_mean < 2%", at_most = 5 }"#, "is no precision"),
            (r#"{ until = "ci80(bsld_mean) < 2%", at_most = 5 }"#, "is no precision"),
            (r#"{ until = "ci95(bsld_mean) < 0", at_most = 5 }"#, "is no precision"),
            (r#"{ until = "ci95(bsld_mean) < 2%" }"#, "needs `at_most`"),
            (r#"{ until = "ci95(bsld_mean) < 2%", at_most = 5 }"#, "`at_least` exceeds `at_most`"),
            (r#"{ until = 3, at_least = 2, at_most = 5 }"#, "`until` cannot be 3"),
            (r#"{ until = "ci95(bsld_mean) < 2%", at_most = 50, count = 3 }"#, "no key `count`"),
        ] {
            let problem = parsed(seeds).expect_err(seeds);
            assert!(problem.contains(message), "{seeds}: {problem}");
        }
    }
}
