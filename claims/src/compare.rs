//! Comparisons of a value with published numbers and with other values.

use powersweep_engine::Value;
use powersweep_experiments::Problem;
use powersweep_experiments::reading::suggestion;
use powersweep_results::Table;
use toml::de::DeTable;

use crate::measure::{Groups, Scope};
use crate::read::Reader;
use crate::rows::{Needed, Rows};
use crate::selection::{Context, Selection, span_of};

/// One number for all repetitions, or one each.
pub(crate) type Numbers = Vec<f64>;

/// A condition on a value.
#[derive(Debug, Clone)]
pub(crate) enum Comparison {
    /// Close to a published number: the tolerance is the largest of `relative` times the number, `absolute`, and the
    /// value of `of`.
    Within {
        published: Numbers,
        relative: f64,
        absolute: f64,
        of: Option<Box<Selection>>,
    },
    /// A published number that is shown beside ours, without a tolerance.
    Shown(Numbers),
    AtLeast(Numbers),
    AtMost(Numbers),
    Above(Numbers),
    Below(Numbers),
    LessThan(Box<Selection>),
    GreaterThan(Box<Selection>),
    /// The values under these conditions on a column increase strictly.
    Ascending {
        column: String,
        places: Vec<Value>,
    },
}

/// The keys of comparisons in a claim.
pub(crate) const KEYS: [&str; 9] =
    ["published", "within", "at_least", "at_most", "above", "below", "less_than", "greater_than", "ascending"];

/// The outcome of one comparison.
pub(crate) struct Compared {
    pub(crate) published: String,
    pub(crate) ours: String,
    /// `None` if the comparison only shows numbers.
    pub(crate) holds: Option<bool>,
    pub(crate) numbers: (Option<f64>, Option<f64>),
}

impl Comparison {
    /// Reads the comparisons of a claim.
    pub(crate) fn read(
        reader: &mut Reader,
        context: &Context<'_>,
        table: &DeTable<'_>,
        outer: Table,
    ) -> Vec<Comparison> {
        let mut found: Vec<Comparison> = published(reader, context, table, outer).into_iter().collect();
        found.extend(reader.numbers(table, "at_least").map(Comparison::AtLeast));
        found.extend(reader.numbers(table, "at_most").map(Comparison::AtMost));
        found.extend(reader.numbers(table, "above").map(Comparison::Above));
        found.extend(reader.numbers(table, "below").map(Comparison::Below));
        let other = |reader: &mut Reader, key: &str| {
            let table = reader.table(table, key)?;
            Some(Box::new(Selection::read(reader, context, table, outer)))
        };
        found.extend(other(reader, "less_than").map(Comparison::LessThan));
        found.extend(other(reader, "greater_than").map(Comparison::GreaterThan));
        found.extend(ascending(reader, table, outer));
        found
    }

    /// The numbers of the comparison: there must be one, or one a repetition.
    pub(crate) fn numbers(&self) -> Option<&Numbers> {
        match self {
            Comparison::Within { published: numbers, .. }
            | Comparison::Shown(numbers)
            | Comparison::AtLeast(numbers)
            | Comparison::AtMost(numbers)
            | Comparison::Above(numbers)
            | Comparison::Below(numbers) => Some(numbers),
            Comparison::LessThan(_) | Comparison::GreaterThan(_) | Comparison::Ascending { .. } => None,
        }
    }

    /// The published numbers of the comparison.
    pub(crate) fn published(&self) -> Option<&Numbers> {
        match self {
            Comparison::Within { published: numbers, .. } | Comparison::Shown(numbers) => Some(numbers),
            _ => None,
        }
    }

    /// The selection that the value is compared with, or that gives the tolerance.
    pub(crate) fn other(&self) -> Option<&Selection> {
        match self {
            Comparison::LessThan(other) | Comparison::GreaterThan(other) => Some(other),
            Comparison::Within { of, .. } => of.as_deref(),
            _ => None,
        }
    }

    /// The column on which the comparison sets conditions, value by value.
    pub(crate) fn fixes(&self) -> Option<&str> {
        match self {
            Comparison::Ascending { column, .. } => Some(column),
            _ => None,
        }
    }

    /// Adds the columns that the comparison reads.
    pub(crate) fn need(&self, value: &Selection, outer: &Scope, needed: &mut Needed) {
        if let Some(other) = self.other() {
            let other = value.with(other);
            outer.of_value(&other).need(&other, needed);
        }
        match self {
            Comparison::LessThan(_) | Comparison::GreaterThan(_) => {}
            Comparison::Ascending { column, places } => {
                let at = value.at(column, &places[0]);
                outer.of_value(&at).need(&at, needed);
            }
            _ => outer.of_value(value).need(value, needed),
        }
    }

    /// The outcome in repetition `i` of the claim.
    pub(crate) fn compare(&self, value: &Selection, outer: &Scope, rows: &Rows, i: usize) -> Result<Compared, String> {
        let of = |selection: &Selection| outer.of_value(selection).value(selection, rows);
        let number = |numbers: &Numbers| numbers.get(i).or(numbers.last()).copied().unwrap_or(f64::NAN);
        let ours = || mean(&of(value)?);
        let bound = |sign: &str, numbers: &Numbers, holds: fn(f64, f64) -> bool| {
            let (bound, ours) = (number(numbers), ours()?);
            Ok(Compared {
                published: format!("{sign} {}", digits(bound)),
                ours: digits(ours),
                holds: Some(holds(ours, bound)),
                numbers: (Some(bound), Some(ours)),
            })
        };
        match self {
            Comparison::Within { published, relative, absolute, of: tolerance } => {
                let (published, ours) = (number(published), ours()?);
                let tolerance = tolerance.as_ref().map(|other| mean(&of(&value.with(other))?)).transpose()?;
                let allowed = (relative * published.abs()).max(*absolute).max(tolerance.unwrap_or(0.0));
                Ok(Compared {
                    published: format!("{} ± {}", digits(published), digits(allowed)),
                    ours: digits(ours),
                    holds: Some((ours - published).abs() <= allowed),
                    numbers: (Some(published), Some(ours)),
                })
            }
            Comparison::Shown(published) => {
                let (published, ours) = (number(published), ours()?);
                let numbers = (Some(published), Some(ours));
                Ok(Compared { published: digits(published), ours: digits(ours), holds: None, numbers })
            }
            Comparison::AtLeast(numbers) => bound("≥", numbers, |ours, bound| ours >= bound),
            Comparison::AtMost(numbers) => bound("≤", numbers, |ours, bound| ours <= bound),
            Comparison::Above(numbers) => bound(">", numbers, |ours, bound| ours > bound),
            Comparison::Below(numbers) => bound("<", numbers, |ours, bound| ours < bound),
            Comparison::LessThan(other) => order(&[of(value)?, of(&value.with(other))?], "<"),
            Comparison::GreaterThan(other) => order(&[of(value)?, of(&value.with(other))?], ">"),
            Comparison::Ascending { column, places } => {
                let values: Vec<Groups> =
                    places.iter().map(|place| of(&value.at(column, place))).collect::<Result<_, String>>()?;
                let mut compared = order(&values, "<")?;
                let places: Vec<String> = places.iter().map(Value::to_string).collect();
                compared.published = places.join(" < ");
                Ok(compared)
            }
        }
    }
}

/// A published number with its tolerance.
fn published(reader: &mut Reader, context: &Context<'_>, table: &DeTable<'_>, rows: Table) -> Option<Comparison> {
    let published = reader.numbers(table, "published");
    let Some(within) = reader.table(table, "within") else { return published.map(Comparison::Shown) };
    reader.keys("`within`", within, &["relative", "absolute", "of"]);
    let (relative, absolute) = (reader.number(within, "relative"), reader.number(within, "absolute"));
    let span = span_of(table, "within");
    if within.is_empty() {
        let expected = "expected such as { relative = 0.05 } or { absolute = 0.005 }";
        reader.problem_at(span.clone(), "`within` is empty", expected);
    }
    if table.get("published").is_none() {
        let message = "`within` needs a `published` number";
        reader.problem_at(span, message, "expected published = ... too");
    }
    let of = reader.table(within, "of").map(|of| Box::new(Selection::read(reader, context, of, rows)));
    let (relative, absolute) = (relative.unwrap_or(0.0), absolute.unwrap_or(0.0));
    Some(Comparison::Within { published: published?, relative, absolute, of })
}

fn ascending(reader: &mut Reader, table: &DeTable<'_>, rows: Table) -> Option<Comparison> {
    let ascending = reader.table(table, "ascending")?;
    let before = reader.problems.len();
    let mut columns = reader.conditions(rows, ascending, &[]).into_iter();
    match (columns.next(), columns.next()) {
        (Some((column, places)), None) if places.len() > 1 => return Some(Comparison::Ascending { column, places }),
        _ if reader.problems.len() > before => {}
        _ => {
            let expected = "expected one column and at least two of its values";
            let message = "`ascending` does not name an order";
            reader.problem_at(span_of(table, "ascending"), message, expected);
        }
    }
    None
}

/// Compares neighbouring values. Groups are compared in pairs; the mean of their differences decides.
fn order(values: &[Groups], sign: &str) -> Result<Compared, String> {
    let mut holds = true;
    let mut errors = Vec::new();
    for pair in values.windows(2) {
        let [a, b] = pair else { continue };
        if a.by != b.by || !a.values.keys().eq(b.values.keys()) {
            return Err("the two sides have different groups and cannot be paired".to_owned());
        }
        let differences: Vec<f64> = a.values.values().zip(b.values.values()).map(|(a, b)| b - a).collect();
        let n = differences.len() as f64;
        let mean = differences.iter().sum::<f64>() / n;
        holds &= if sign == "<" { mean > 0.0 } else { mean < 0.0 };
        if differences.len() > 1 {
            let squares: f64 = differences.iter().map(|d| (d - mean).powi(2)).sum();
            errors.push(format!("{} ± {}", digits(mean), digits((squares / (n - 1.0) / n).sqrt())));
        }
    }
    let means: Vec<f64> = values.iter().map(mean).collect::<Result<_, String>>()?;
    let shown: Vec<String> = means.iter().map(|mean| digits(*mean)).collect();
    let mut ours = shown.join(&format!(" {sign} "));
    if !holds {
        ours = shown.join(", ");
    }
    if !errors.is_empty() {
        ours.push_str(&format!(" (paired {})", errors.join(", ")));
    }
    let numbers = (None, means.first().copied());
    Ok(Compared { published: format!("{sign} the other value"), ours, holds: Some(holds), numbers })
}

/// The mean of the groups; the value itself if there is only one group.
fn mean(groups: &Groups) -> Result<f64, String> {
    match groups.values.len() {
        0 => Err("there is no value".to_owned()),
        n => Ok(groups.values.values().sum::<f64>() / n as f64),
    }
}

/// A number with up to seven significant digits.
pub(crate) fn digits(value: f64) -> String {
    if value == 0.0 || (value.fract() == 0.0 && value.abs() < 1e9) {
        return format!("{value}");
    }
    let magnitude = value.abs().log10().floor();
    if !(-5.0..9.0).contains(&magnitude) {
        return format!("{value:.3e}");
    }
    let decimals = (6.0 - magnitude).max(0.0) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Refuses lists that have neither one number for all repetitions nor one each.
pub(crate) fn check_lengths(reader: &mut Reader, table: &DeTable<'_>, repetitions: usize) {
    for key in ["published", "at_least", "at_most", "above", "below"] {
        let Some(items) = table.get(key).and_then(|item| item.get_ref().as_array()) else { continue };
        if items.len() != repetitions && items.len() != 1 {
            let message = format!("`{key}` lists {} numbers for {repetitions} repetitions", items.len());
            reader.problem_at(span_of(table, key), message, "expected one number, or one a repetition");
        }
    }
}

/// Refuses placeholders of columns that are not in `per`.
pub(crate) fn check_placeholders(reader: &mut Reader, table: &DeTable<'_>, text: &str, per: &[String]) {
    for placeholder in text.split('{').skip(1).filter_map(|rest| rest.split_once('}')).map(|(name, _)| name) {
        if !per.iter().any(|name| name == placeholder) {
            let help = suggestion(placeholder, per.iter().map(String::as_str));
            let message = format!("`text` contains {{{placeholder}}}, which is not in `per`");
            reader.problems.push(Problem::new(span_of(table, "text"), message, "unknown placeholder").help(help));
        }
    }
}
