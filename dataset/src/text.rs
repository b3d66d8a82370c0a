//! Frames as text: Markdown, LaTeX (booktabs) and Typst, and the cells of a table on the screen.
//!
//! All numbers of a column have the same number of decimals, so that right-aligned numbers are aligned by their points. Very
//! great and very small numbers share a power of ten, which the heading has beside the unit.

use std::fmt::Write;

use arrow::array::RecordBatch;

use crate::frame::{MEASURE, PIVOT, RATIO, STAT, UNIT, is_interval_of};
use crate::titles::{labelled, prefixed, title};
use crate::words::endless;
use crate::{Cell, Frame};

/// Significant digits of the greatest number of a column, unless an interval asks for more or fewer.
const DIGITS: i32 = 4;
/// Significant digits of the least half width of an interval.
const INTERVAL_DIGITS: i32 = 2;
/// The least half width of an interval that asks for digits, as a part of its number and of the greatest number of the column:
/// a smaller one is rounding noise.
const NOISE: [f64; 2] = [1e-9, 1e-12];
/// Powers of ten of the greatest number of a column, from which on columns have a factor.
const PLAIN: std::ops::Range<i32> = -3..7;

/// A number with its interval, before it is written in a format.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    /// No value.
    Empty,
    /// A text.
    Text(String),
    /// A number, and half the width of its interval.
    Number(String, Option<String>),
}

/// A column of a [`Sheet`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Column {
    /// Its name, as commands take it.
    pub name: String,
    /// What it and its neighbours have, in words for a paper; empty for a column that stands alone.
    pub over: String,
    /// What it has, in words for a paper.
    pub title: String,
    /// Symbol of the unit; empty for none.
    pub unit: String,
    /// The numbers are to be multiplied by this power of ten.
    pub exponent: i32,
    /// Whether it has numbers.
    pub is_numeric: bool,
    /// The intervals of its numbers, such as "± 95% CI"; empty without any.
    pub interval: String,
    /// The rows.
    pub entries: Vec<Entry>,
}

/// A table for people.
#[derive(Debug, Clone, PartialEq)]
pub struct Sheet {
    /// All columns have the same number of entries.
    pub columns: Vec<Column>,
}

impl Column {
    /// The name with factor and unit, such as "energy_total_j (GJ)".
    pub fn heading(&self) -> String {
        self.headed(&self.name, |exponent| format!("10^{exponent}"))
    }

    /// What follows the words of a heading for a paper: factor, unit, and what the intervals are.
    fn behind(&self) -> String {
        let heading = self.headed("", |exponent| format!("\u{1}{exponent}\u{2}"));
        if self.interval.is_empty() { heading } else { format!("{heading} {}", self.interval) }
    }

    fn headed(&self, name: &str, factor: impl Fn(i32) -> String) -> String {
        labelled(name, &scaled(&self.unit, self.exponent, factor))
    }

    /// Whether a number has half the width of its interval behind it.
    fn has_halves(&self) -> bool {
        self.entries.iter().any(|entry| matches!(entry, Entry::Number(_, Some(_))))
    }
}

impl Sheet {
    /// The table of a frame: an interval is written behind its mean.
    pub fn of(frame: &Frame) -> Sheet {
        let batch = frame.batch();
        let fields = batch.schema_ref().fields();
        let mut columns = Vec::new();
        let mut at = 0;
        while at < fields.len() {
            let interval = fields[at + 1..].iter().take_while(|next| is_interval_of(next, &fields[at])).count();
            columns.push(column(batch, frame.keys(), at, interval));
            at += 1 + interval;
        }
        Sheet { columns }
    }

    /// The headings for a paper: those over columns side by side, with their columns, and that of each column.
    fn headings(&self) -> (Vec<(String, &[Column])>, Vec<String>) {
        let (mut over, mut own) = (Vec::new(), Vec::new());
        for columns in self.columns.chunk_by(|one, other| one.over == other.over) {
            let first = &columns[0];
            let is_shared = !first.over.is_empty() && columns.iter().all(|column| column.behind() == first.behind());
            let shared = if is_shared { first.behind() } else { String::new() };
            over.push((first.over.clone() + &shared, columns));
            let of = |column: &Column| column.title.clone() + &if is_shared { String::new() } else { column.behind() };
            own.extend(columns.iter().map(of));
        }
        (over, own)
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.entries.len())
    }

    /// The texts of a row, as a terminal shows them.
    pub fn row(&self, row: usize) -> impl Iterator<Item = String> {
        self.columns.iter().map(move |column| written(&column.entries[row], &column.pads(""), " ± "))
    }

    /// A table of GitHub's Markdown.
    pub fn markdown(&self) -> String {
        let escaped = |text: &str| text.replace('|', "\\|").replace('<', "\\<");
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let mut text = line(self.columns.iter().map(|column| escaped(&column.heading())).collect());
        text += &line(
            self.columns.iter().map(|column| if column.is_numeric { "---:" } else { "---" }.to_owned()).collect(),
        );
        for row in 0..self.rows() {
            text += &line(self.row(row).map(|cell| escaped(&cell)).collect());
        }
        text
    }

    /// A LaTeX table, for the package `booktabs`. A mean and its interval are two columns, which are aligned by their points.
    pub fn latex(&self) -> String {
        let align = |column: &Column| match (column.is_numeric, column.has_halves()) {
            (_, true) => "r@{\\,}r",
            (true, false) => "r",
            (false, false) => "l",
        };
        let align: String = self.columns.iter().map(align).collect();
        let line = |cells: Vec<String>| format!("{} \\\\\n", cells.join(" & "));
        let heading = |(column, words): (&Column, String)| {
            let words = latex_text(&words);
            if column.has_halves() { format!("\\multicolumn{{2}}{{c}}{{{words}}}") } else { words }
        };
        let mut text = format!("\\begin{{tabular}}{{{align}}}\n\\toprule\n");
        let (over, own) = self.headings();
        if over.iter().any(|(words, _)| !words.is_empty()) {
            let (mut cells, mut rules, mut before) = (Vec::new(), String::new(), 0);
            for (words, columns) in &over {
                let width = columns.len() + columns.iter().filter(|column| column.has_halves()).count();
                if words.is_empty() {
                    cells.push(" & ".repeat(width - 1));
                } else {
                    cells.push(format!("\\multicolumn{{{width}}}{{c}}{{{}}}", latex_text(words)));
                    let _ = write!(rules, "\\cmidrule(lr){{{}-{}}}", before + 1, before + width);
                }
                before += width;
            }
            text += &(line(cells) + &rules + "\n");
        }
        text += &line(self.columns.iter().zip(own).map(heading).collect());
        text += "\\midrule\n";
        for row in 0..self.rows() {
            let cell = |column: &Column| match &column.entries[row] {
                Entry::Number(number, Some(half)) => format!("${number}$ & $\\pm\\,{half}$"),
                Entry::Number(number, None) if column.has_halves() => format!("${number}$ &"),
                Entry::Number(number, None) => format!("${number}$"),
                Entry::Text(text) if column.has_halves() => format!("{} &", latex_text(text)),
                Entry::Text(text) => latex_text(text),
                Entry::Empty => String::from(if column.has_halves() { "&" } else { "" }),
            };
            text += &line(self.columns.iter().map(cell).collect());
        }
        text + "\\bottomrule\n\\end{tabular}\n"
    }

    /// A Typst table.
    pub fn typst(&self) -> String {
        let align: Vec<&str> =
            self.columns.iter().map(|column| if column.is_numeric { "right" } else { "left" }).collect();
        let mut text = String::from("#table(\n");
        let _ = writeln!(text, "  columns: {},", self.columns.len());
        let _ = writeln!(text, "  align: ({},),", align.join(", "));
        text += "  stroke: none,\n  table.hline(),\n";
        let (over, own) = self.headings();
        let cell = |(words, columns): &(String, &[Column])| match words.is_empty() {
            true => vec!["[]"; columns.len()].join(", "),
            false => format!("table.cell(colspan: {}, align: center)[{}]", columns.len(), typst_text(words)),
        };
        let has_over = over.iter().any(|(words, _)| !words.is_empty());
        let over = over.iter().filter(|_| has_over).map(cell);
        let headings = over.chain(own.iter().map(|words| format!("[{}]", typst_text(words))));
        let _ = writeln!(text, "  table.header({}),", headings.collect::<Vec<_>>().join(", "));
        text += "  table.hline(stroke: 0.5pt),\n";
        for row in 0..self.rows() {
            let cell = |column: &Column| match &column.entries[row] {
                Entry::Number(..) => {
                    format!("[${}$]", written(&column.entries[row], &column.pads("#hide[0]"), " plus.minus "))
                }
                entry => format!("[{}]", typst_text(&written(entry, &Pads::default(), ""))),
            };
            let _ = writeln!(text, "  {},", self.columns.iter().map(cell).collect::<Vec<_>>().join(", "));
        }
        text + "  table.hline(),\n)\n"
    }
}

/// A unit times a power of ten: with its prefix, else behind the factor.
fn scaled(unit: &str, exponent: i32, factor: impl Fn(i32) -> String) -> String {
    let (factor, unit) = match prefixed(unit, exponent.div_euclid(3)) {
        Some(unit) if exponent.rem_euclid(3) == 0 => (None, unit),
        _ => ((exponent != 0).then(|| factor(exponent)), unit.to_owned()),
    };
    factor.into_iter().chain((!unit.is_empty()).then_some(unit)).collect::<Vec<_>>().join(" ")
}

/// The divisor of numbers whose greatest has this size, and their unit then, for a text of [`Sheet::latex`] or [`Sheet::typst`].
pub fn for_paper(unit: &str, greatest: f64) -> (f64, String) {
    let exponent = if greatest > 0.0 { shared_exponent(greatest) } else { 0 };
    (10f64.powi(exponent), scaled(unit, exponent, |exponent| format!("\u{1}{exponent}\u{2}")))
}

/// The power of ten, a multiple of three, that numbers share whose greatest has this size.
fn shared_exponent(greatest: f64) -> i32 {
    let power = greatest.log10().floor() as i32;
    if PLAIN.contains(&power) { 0 } else { power.div_euclid(3) * 3 }
}

/// A number and half the width of its interval, rounded as in a column of a [`Sheet`]: "131 ± 120". A power of ten is that of both.
pub fn with_half(value: f64, half: f64) -> String {
    let format = Format::of(&[Cell::Real(value)], &[Cell::Real(half)]);
    let both = format!("{} ± {}", format.number(value), format.number(half));
    if format.exponent == 0 { both } else { format!("({both})e{}", format.exponent) }
}

/// What stands for a missing digit of a half width, and the greatest width of them.
#[derive(Debug, Default)]
struct Pads {
    pad: String,
    width: usize,
}

impl Column {
    fn pads(&self, pad: &str) -> Pads {
        let widths = self.entries.iter().filter_map(|entry| match entry {
            Entry::Number(_, Some(half)) => Some(half.chars().count()),
            _ => None,
        });
        Pads { pad: if pad.is_empty() { " ".to_owned() } else { pad.to_owned() }, width: widths.max().unwrap_or(0) }
    }
}

fn written(entry: &Entry, pads: &Pads, sign: &str) -> String {
    match entry {
        Entry::Empty => String::new(),
        Entry::Text(text) => text.clone(),
        Entry::Number(number, None) => number.clone(),
        Entry::Number(number, Some(half)) => {
            let missing = pads.width.saturating_sub(half.chars().count());
            format!("{number}{sign}{}{half}", pads.pad.repeat(missing))
        }
    }
}

/// The column at a position, which is a key if it is one of the first `keys`. `interval`: number of the columns behind it
/// that have intervals: one has half widths, two have the ends.
fn column(batch: &RecordBatch, keys: usize, at: usize, interval: usize) -> Column {
    let fields = batch.schema_ref().fields();
    let field = &fields[at];
    let cells = |at: usize| (0..batch.num_rows()).map(|row| Cell::of(batch.column(at), row)).collect::<Vec<_>>();
    let own = cells(at);
    let ends: Vec<(Option<f64>, Option<f64>)> = match interval {
        2 => cells(at + 1).iter().map(Cell::number).zip(cells(at + 2).iter().map(Cell::number)).collect(),
        _ => Vec::new(),
    };
    let half = |(low, high): &(Option<f64>, Option<f64>)| {
        low.zip(*high).map_or(Cell::Null, |(low, high)| Cell::Real((high - low) / 2.0))
    };
    let halves: Vec<Cell> = match interval {
        1 => cells(at + 1),
        _ => ends.iter().map(half).collect(),
    };
    let tag = |key: &str| field.metadata().get(key).cloned().unwrap_or_default();
    let (measure, stat, pivot) = (tag(MEASURE), tag(STAT), field.metadata().get(PIVOT));
    let of = if tag(RATIO).is_empty() { "" } else { "ratio of " };
    let (name, (words, own_unit)) = match stat.as_str() {
        "" => (field.name().clone(), title(field.name())),
        "mean" => (format!("{of}{measure}"), (format!("{of}{}", title(&measure).0), String::new())),
        stat => (format!("{stat}({of}{measure})"), (format!("{stat} of {of}{}", title(&measure).0), String::new())),
    };
    let (name, over, title) = match pivot {
        None => (name, String::new(), words),
        Some(pivot) => (format!("{name} {pivot}"), words, pivot_title(field.name(), pivot)),
    };
    // A key is what the manifest says, unless it has the tag of a measure.
    let is_key = at < keys && measure.is_empty();
    let format = if is_key { Format::exact(&own) } else { Format::of(&own, &halves) };
    let end = |end: f64| if end.is_finite() { format.number(end) } else { endless(end).to_owned() };
    let between = |row: usize| {
        let (low, high) = ends.get(row)?;
        low.zip(*high).map(|(low, high)| format!("[{}, {}]", end(low), end(high)))
    };
    let entry = |(row, cell): (usize, &Cell)| match cell {
        // A bounded value has an interval alone.
        Cell::Null => between(row).map_or(Entry::Empty, Entry::Text),
        Cell::Int(value) => Entry::Number(value.to_string(), None),
        Cell::Real(value) if value.is_finite() && interval == 2 => {
            let interval = between(row).map(|interval| format!(" {interval}"));
            Entry::Text(format.number(*value) + &interval.unwrap_or_default())
        }
        Cell::Real(value) if value.is_finite() => {
            Entry::Number(format.number(*value), halves.get(row).and_then(Cell::number).map(|half| format.number(half)))
        }
        other => Entry::Text(other.exact()),
    };
    let entries: Vec<Entry> = own.iter().enumerate().map(entry).collect();
    let is_numeric = interval == 2 || entries.iter().any(|entry| matches!(entry, Entry::Number(..)));
    // The name of a key has its unit.
    let title = if is_key { labelled(&title, &own_unit) } else { title };
    let unit = if is_key { String::new() } else { tag(UNIT) };
    let stat = |at: usize| fields.get(at).and_then(|field| field.metadata().get(STAT)).cloned().unwrap_or_default();
    let coverage: String = stat(at + 1).chars().filter(char::is_ascii_digit).collect();
    let coverage = if coverage.is_empty() { "95" } else { &coverage };
    let has_intervals = halves.iter().any(|half| !half.is_null());
    let interval = match interval {
        _ if !has_intervals => String::new(),
        1 => format!("± {coverage}% CI"),
        _ => format!("[{coverage}% CI]"),
    };
    Column { name, over, title, unit, exponent: format.exponent, is_numeric, interval, entries }
}

/// The value of a pivoted column in words for a paper. A number says of which parameter it is.
fn pivot_title(field: &str, value: &str) -> String {
    let parameter = field.rsplit_once(" [").and_then(|(_, of)| of.split_once('=')).map(|(name, _)| title(name));
    match parameter.filter(|_| value.parse::<f64>().is_ok()) {
        Some((words, unit)) => format!("{words} {value} {unit}").trim_end().to_owned(),
        None => value.to_owned(),
    }
}

/// How the real numbers of a column are written.
#[derive(Debug, Clone, Copy)]
struct Format {
    exponent: i32,
    decimals: usize,
}

impl Format {
    fn of(cells: &[Cell], halves: &[Cell]) -> Format {
        let finite = |cell: &Cell| match cell {
            Cell::Real(value) if value.is_finite() && *value != 0.0 => Some(value.abs()),
            _ => None,
        };
        let values: Vec<f64> = cells.iter().filter_map(finite).collect();
        let greatest = values.iter().copied().fold(0.0, f64::max);
        if greatest == 0.0 {
            return Format { exponent: 0, decimals: 0 };
        }
        // An interval that is wider than its value has no power of ten of its own.
        let widest = halves.iter().filter_map(finite).fold(greatest, f64::max);
        let (power, exponent) = (widest.log10().floor() as i32, shared_exponent(widest));
        let own = |row: usize| cells.get(row).and_then(finite).unwrap_or(0.0);
        let is_wide = |row: usize, half: f64| half >= (NOISE[0] * own(row)).max(NOISE[1] * greatest);
        let halves =
            halves.iter().enumerate().filter_map(|(row, half)| finite(half).filter(|half| is_wide(row, *half)));
        let least_half = halves.fold(f64::INFINITY, f64::min);
        let decimals = match least_half.is_finite() {
            true => INTERVAL_DIGITS - 1 - (least_half.log10().floor() as i32 - exponent),
            // Whole numbers, such as counts, stay whole.
            false if exponent == 0 && values.iter().all(|value| value.fract() == 0.0) => 0,
            false => DIGITS - 1 - (power - exponent),
        };
        Format { exponent, decimals: decimals.clamp(0, 12) as usize }
    }

    /// As many decimals as the values of a key need.
    fn exact(cells: &[Cell]) -> Format {
        let decimals = |cell: &Cell| match cell {
            Cell::Real(value) if value.is_finite() => {
                value.to_string().split_once('.').map_or(0, |(_, after)| after.len())
            }
            _ => 0,
        };
        Format { exponent: 0, decimals: cells.iter().map(decimals).max().unwrap_or(0) }
    }

    fn number(self, value: f64) -> String {
        let text = format!("{:.*}", self.decimals, value / 10f64.powi(self.exponent));
        // No negative zero.
        if text.starts_with('-') && text.chars().all(|c| "-0.".contains(c)) { text[1..].to_owned() } else { text }
    }
}

/// A text in LaTeX, whose special characters are escaped.
pub fn latex_text(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut last = ' ';
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        // A minus sign is longer than a hyphen.
        let is_minus = c == '-'
            && [' ', '['].contains(&last)
            && chars.peek().is_some_and(|next| next.is_ascii_digit() || *next == '∞');
        last = c;
        match c {
            '-' if is_minus => escaped.push_str("$-$"),
            '\u{1}' => escaped.push_str("$10^{"),
            '\u{2}' => escaped.push_str("}$"),
            '#' | '$' | '%' | '&' | '_' | '{' | '}' => escaped.extend(['\\', c]),
            '±' => escaped.push_str("$\\pm$"),
            '∞' => escaped.push_str("$\\infty$"),
            '~' => escaped.push_str("\\textasciitilde{}"),
            '^' => escaped.push_str("\\textasciicircum{}"),
            '\\' => escaped.push_str("\\textbackslash{}"),
            '<' => escaped.push_str("\\textless{}"),
            '>' => escaped.push_str("\\textgreater{}"),
            _ => escaped.push(c),
        }
    }
    escaped
}

fn typst_text(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\u{1}' => escaped.push_str("$10^("),
            '\u{2}' => escaped.push_str(")$"),
            '#' | '$' | '*' | '_' | '`' | '<' | '>' | '@' | '[' | ']' | '\\' | '~' | '/' => escaped.extend(['\\', c]),
            _ => escaped.push(c),
        }
    }
    escaped
}
