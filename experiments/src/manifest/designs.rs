//! The section `[designs.NAME]`, with the ranges in the blocks that use it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use powersweep_engine::Value;
use powersweep_engine::spec::Param;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::canonical::compare;
use crate::designs::projection::{Projection, VALUES_MAX};
use crate::designs::range::{self, Scale};
use crate::designs::{COUNT_MAX, Design, KINDS, Kind, Settings, points};
use crate::errors::Problem;
use crate::names::suggestion;
use crate::space::{Designed, SECTIONS};
use crate::values::Values;

use super::design_range::{DESIGN, Reference, is_reference, scale, shape};
use super::sections::{blocks, params};
use super::signal_keys;
use super::values::{bounded, kind, named_tables};

/// Greatest number of levels of a Morris design.
const LEVELS_MAX: i64 = 1_000;
/// Greatest number of problems of listed points that are reported.
const SHOWN_MAX: usize = 20;

/// By the number of a design and its ranges.
type Projections = BTreeMap<(usize, Vec<usize>), Arc<Projection>>;

/// The designs of a manifest.
#[derive(Default)]
pub(crate) struct Designs {
    /// Those without problems, in the order of their labels.
    pub(crate) all: Vec<Arc<Design>>,
    known: RefCell<Projections>,
    /// Values that were computed to compare points, and to list those of signals.
    computed: Cell<u64>,
}

impl Designs {
    /// Reads the section and the ranges of all blocks.
    pub(crate) fn read(top: &DeTable<'_>, problems: &mut Vec<Problem>) -> Designs {
        let mut references = references(top);
        let mut designs = Designs::default();
        let empty = DeTable::new();
        let tables = match top.get("designs").map(|value| (value, value.get_ref().as_table())) {
            None => &empty,
            Some((_, Some(tables))) => tables,
            Some((value, None)) => {
                let message = "`designs` must be a table of designs";
                problems.push(Problem::new(value.span(), message, "expected tables [designs.NAME]"));
                return designs;
            }
        };
        for (label, table) in named_tables(tables, "designs", ("designs", "table"), problems) {
            let name = label.get_ref().as_ref();
            let own = references.remove(name).unwrap_or_default();
            if own.is_empty() {
                let message = format!("no block uses the design `{name}`");
                let help =
                    format!("give a parameter of a block its values: {{ from = 1, to = 2, design = \"{name}\" }}");
                problems.push(Problem::new(label.span(), message, "expected a range with this design").help(help));
            }
            let block = Block { label, table };
            designs.all.extend(block.design(own, problems).map(Arc::new));
        }
        let labels: Vec<&str> = tables.keys().map(|label| label.get_ref().as_ref()).collect();
        references.retain(|name, _| !tables.contains_key(name.as_str()));
        for reference in references.into_values().flatten() {
            let Some(named) = reference.table.get(DESIGN) else { continue };
            let message = format!("there is no design {}", kind(named.get_ref()));
            let help = suggestion(named.get_ref().as_str().unwrap_or_default(), labels.clone());
            let expected = "expected the name of a table [designs.NAME]";
            problems.push(Problem::new(named.span(), message, expected).help(help));
        }
        designs
    }

    /// The numbers of the design and of the range of a parameter in a block.
    pub(crate) fn range(&self, value: &Spanned<DeValue<'_>>, name: &str) -> Option<(usize, usize)> {
        let label = value.get_ref().as_table()?.get(DESIGN)?.get_ref().as_str()?;
        let design = self.all.iter().position(|design| *design.label == *label)?;
        Some((design, self.all[design].ranges.iter().position(|range| range.param.name == name)?))
    }

    /// Whether this number of values may be computed, beside those before.
    pub(super) fn may_compute(&self, values: u64) -> bool {
        self.computed.set(self.computed.get().saturating_add(values).min(VALUES_MAX));
        self.computed.get() < VALUES_MAX
    }

    /// The parameters of a variant that have values of designs: ranges with the choices that have them.
    pub(crate) fn designed(&self, ranges: BTreeMap<(usize, usize), Vec<usize>>) -> Vec<Designed> {
        let mut by_design: BTreeMap<usize, (Vec<usize>, Vec<Vec<usize>>)> = BTreeMap::new();
        for ((design, range), choices) in ranges {
            let of_design = by_design.entry(design).or_default();
            of_design.0.push(range);
            of_design.1.push(choices);
        }
        let designed = by_design.into_iter().map(|(design, (ranges, choices))| {
            let points = self.projection(design, ranges);
            Designed { design, points, choices }
        });
        designed.collect()
    }

    pub(super) fn projection(&self, design: usize, ranges: Vec<usize>) -> Arc<Projection> {
        let mut known = self.known.borrow_mut();
        let make = || {
            let mut left = VALUES_MAX - self.computed.get();
            let points = Projection::new(&self.all[design], ranges.clone(), &mut left);
            self.computed.set(VALUES_MAX - left);
            Arc::new(points)
        };
        known.entry((design, ranges.clone())).or_insert_with(make).clone()
    }
}

/// The text of a manifest with `points = "..."` in place of `file = "..."` in its designs, on the same lines. The points begin
/// with a line `# FILE`. `read` gives the text of a file.
///
/// # Errors
/// A file cannot be read.
pub fn with_points<E>(text: &str, read: impl Fn(&str) -> Result<String, E>) -> Result<String, E> {
    let (table, _) = DeTable::parse_recoverable(text);
    let designs = table.get_ref().get("designs").and_then(|value| value.get_ref().as_table());
    let mut replaced = text.to_owned();
    let mut files: Vec<(Range<usize>, &str)> = designs
        .into_iter()
        .flat_map(|designs| designs.values())
        .filter_map(|value| value.get_ref().as_table()?.get_key_value("file"))
        .filter_map(|(key, value)| Some((key.span().start..value.span().end, value.get_ref().as_str()?)))
        .collect();
    files.sort_by_key(|(span, _)| std::cmp::Reverse(span.start));
    for (span, file) in files {
        // A string of JSON is one of TOML, but for one character.
        let lines = points::Lines::of_file(file, &read(file)?);
        let points = serde_json::Value::from(lines).to_string().replace('\u{7f}', "\\u007f");
        replaced.replace_range(span, &format!("points = {points}"));
    }
    Ok(replaced)
}

/// The text of a manifest with other listed points of some designs, each of which has the key `points`: by the names of the
/// designs, the lines of parameters and points. `None` if a design lacks the key.
pub fn with_lines(text: &str, lines: &BTreeMap<String, String>) -> Option<String> {
    let (table, _) = DeTable::parse_recoverable(text);
    let designs = table.get_ref().get("designs")?.get_ref().as_table()?;
    let mut places: Vec<(Range<usize>, &str)> = Vec::new();
    for (label, lines) in lines {
        let value = designs.get(label.as_str())?.get_ref().as_table()?.get("points")?;
        places.push((value.span(), lines));
    }
    places.sort_by_key(|(span, _)| std::cmp::Reverse(span.start));
    let mut replaced = text.to_owned();
    for (span, lines) in places {
        replaced.replace_range(span, &format!("\"\"\"\n{lines}\"\"\""));
    }
    Some(replaced)
}

/// The parameters of all blocks with values of designs, by the names of the designs.
fn references<'a, 'i>(top: &'a DeTable<'i>) -> BTreeMap<String, Vec<Reference<'a, 'i>>> {
    let mut found: BTreeMap<String, Vec<Reference<'a, 'i>>> = BTreeMap::new();
    let mut note = |value: &'a Spanned<DeValue<'i>>, param: Option<&'static Param>| {
        let (Some(table), true) = (value.get_ref().as_table(), is_reference(value)) else { return };
        let (Some(param), Some(named)) = (param, table.get(DESIGN)) else { return };
        // A name that is no text is no name of a design: it is reported as an unknown one.
        let name = named.get_ref().as_str().unwrap_or_default().to_owned();
        found.entry(name).or_default().push(Reference { param, table, value });
    };
    for section in SECTIONS {
        for (key, value) in blocks(top, section).into_iter().flatten() {
            note(value, params(section).map(|(_, param)| param).find(|param| param.name == key.get_ref().as_ref()));
        }
    }
    for (key, value) in signal_keys::blocks(top).flatten() {
        note(value, signal_keys::key(key.get_ref()));
    }
    found
}

/// Whether a parameter may have values of a design of a kind. Listed points are one text, in which places of files would stay.
fn may_vary(param: &Param, kind: &Kind) -> bool {
    param.is_identity()
        || signal_keys::key(param.name).is_some() && (kind.name, param.name) != (points::NAME, signal_keys::FILE)
}

/// The table of a design.
struct Block<'a, 'i> {
    label: &'a Spanned<toml::de::DeString<'i>>,
    table: &'a DeTable<'i>,
}

impl Block<'_, '_> {
    fn header(&self) -> String {
        format!("[designs.{}]", self.label.get_ref())
    }

    fn design(&self, references: Vec<Reference<'_, '_>>, problems: &mut Vec<Problem>) -> Option<Design> {
        let before = problems.len();
        let kind = self.kind(problems)?;
        for key in self.table.keys().filter(|key| key.get_ref() != "kind") {
            if !kind.keys.contains(&key.get_ref().as_ref()) {
                let message = format!("a design of the kind \"{}\" has no key `{}`", kind.name, key.get_ref());
                let help = suggestion(key.get_ref(), kind.keys.iter().copied());
                problems.push(Problem::new(key.span(), message, "unknown key").help(help));
            }
        }
        let mut by_param: BTreeMap<&str, Vec<Reference<'_, '_>>> = BTreeMap::new();
        references.into_iter().for_each(|reference| by_param.entry(reference.param.name).or_default().push(reference));
        if by_param.len() > kind.ranges_max {
            let message = format!("{} has {} ranges", self.header(), by_param.len());
            problems.push(Problem::new(self.label.span(), message, format!("expected at most {}", kind.ranges_max)));
        }
        for own in by_param.values().filter(|own| !may_vary(own[0].param, kind)) {
            let message = format!("`{}` cannot have the values of a design", own[0].param.name);
            let expected = "expected a list: it is crossed with the points of the design";
            problems.push(Problem::new(own[0].value.span(), message, expected));
        }
        by_param.retain(|_, own| may_vary(own[0].param, kind));
        if kind.name == points::NAME {
            return self.listed(by_param, problems);
        }
        let owner = (&*self.header(), self.label.span());
        let mut integer = |key, bounds, default| bounded(self.table, &owner, key, bounds, default, problems);
        let count = integer("count", (1, COUNT_MAX.cast_signed()), None);
        let seed = self.table.contains_key("seed").then(|| integer("seed", (0, i64::MAX), Some(0)));
        let levels = integer("levels", (2, LEVELS_MAX), Some(4));
        if let (Some(value), Some(true)) = (self.table.get("levels"), levels.map(|levels| levels % 2 == 1)) {
            problems.push(Problem::new(value.span(), "`levels` is odd", "expected an even number of levels"));
        }
        let second_order = match self.table.get("second_order").map(|value| (value, value.get_ref().as_bool())) {
            Some((value, None)) => {
                problems.push(Problem::new(value.span(), "`second_order` is wrong", "expected true or false"));
                false
            }
            Some((_, Some(given))) => given,
            None => false,
        };
        let ranges: Vec<range::Range> = by_param.values().filter_map(|own| self.range(own, problems)).collect();
        if problems.len() > before || ranges.is_empty() {
            return None;
        }
        let seed = seed.flatten().map(i64::unsigned_abs);
        let (count, levels) = (count?.unsigned_abs(), levels?.unsigned_abs());
        let settings = Settings { count, seed, levels, second_order, ranges: ranges.len() };
        let design = Design::new(self.label.get_ref(), kind, settings, ranges);
        if design.is_none() {
            let message = format!("{} has more than 2^63 points", self.header());
            problems.push(Problem::new(self.label.span(), message, "expected a smaller `count`"));
        }
        design
    }

    fn kind(&self, problems: &mut Vec<Problem>) -> Option<&'static Kind> {
        let names = KINDS.map(|kind| kind.name);
        let expected = format!("expected one of {}", names.map(|name| format!("\"{name}\"")).join(", "));
        let Some(value) = self.table.get("kind") else {
            problems.push(Problem::new(self.label.span(), format!("{} needs `kind`", self.header()), expected));
            return None;
        };
        let found = value.get_ref().as_str().and_then(Kind::of);
        if found.is_none() {
            let message = format!("there is no design of the kind {}", kind(value.get_ref()));
            let help = value.get_ref().as_str().map(|name| suggestion(name, names));
            problems.push(Problem::new(value.span(), message, expected).maybe_help(help));
        }
        found
    }

    /// The range of a parameter. It stands in one block, or is equal in several.
    fn range(&self, own: &[Reference<'_, '_>], problems: &mut Vec<Problem>) -> Option<range::Range> {
        let param = own.first()?.param;
        let mut found: Option<Scale> = None;
        let mut is_given = false;
        for reference in own.iter().filter(|reference| reference.table.len() > 1) {
            is_given = true;
            let Some(scale) = scale(reference, problems) else { continue };
            match &found {
                Some(other) if *other != scale => {
                    let message = format!("the design `{}` has two ranges of `{}`", self.label.get_ref(), param.name);
                    let help = "write the range in one block and only the design in the other, or use two designs";
                    problems.push(Problem::new(reference.value.span(), message, "another range").help(help));
                }
                _ => found = Some(scale),
            }
        }
        if !is_given {
            let message = format!("the design `{}` has no range of `{}`", self.label.get_ref(), param.name);
            let help = format!("write it in one of the blocks: {}", shape(param));
            problems.push(Problem::new(own[0].value.span(), message, "expected a range").help(help));
        }
        Some(range::Range { param, scale: found?, bounds: None })
    }

    /// The design of listed points.
    fn listed(&self, by_param: BTreeMap<&str, Vec<Reference<'_, '_>>>, problems: &mut Vec<Problem>) -> Option<Design> {
        let before = problems.len();
        let bounds = self.bounds(&by_param, problems);
        if let Some(file) = self.table.get("file") {
            let message = "the points are in a file, which is read together with the file of the manifest";
            let help = "give the manifest by the name of its file, or write the lines of the file as `points`";
            problems.push(Problem::new(file.span(), message, "this text has no files").help(help));
            return None;
        }
        let Some(value) = self.table.get("points") else {
            let message = format!("{} needs `file` or `points`", self.header());
            problems.push(Problem::new(self.label.span(), message, "expected the points"));
            return None;
        };
        let text = value.get_ref().as_str().unwrap_or_default();
        let points = points::Lines::new(text);
        let place = points.place();
        let quoted: Vec<(usize, &str)> = points.cells().filter_map(|(at, cells)| Some((at, cells.err()?))).collect();
        let mut lines = points.cells().map(|(at, cells)| (at, cells.unwrap_or_default()));
        let header = lines.next().map(|(_, cells)| cells).unwrap_or_default();
        let lines: Vec<(usize, Vec<&str>)> = lines.filter(|(_, cells)| !cells.is_empty()).collect();
        let is_sound = problems.len() == before && quoted.is_empty();
        let mut wrong = |message: String, expected: &str| {
            if problems.len() < before + SHOWN_MAX {
                problems.push(Problem::new(value.span(), message, expected));
            }
        };
        if lines.is_empty() {
            if is_sound && bounds.values().all(Option::is_some) {
                return Some(self.without_points(&by_param, bounds));
            }
            wrong(
                format!("{} has no points", self.header()),
                "expected a line of parameters, and a line for each point, or a range of each parameter",
            );
        }
        for (at, cell) in quoted {
            wrong(format!("{}: {cell} has a quotation mark", points.at(at)), "expected values without commas");
        }
        for (_, name) in header.iter().enumerate().filter(|(at, name)| header[..*at].contains(name)) {
            wrong(format!("the column `{name}` of {place} is there twice"), "expected a column for each parameter");
        }
        for name in header.iter().filter(|name| !by_param.contains_key(**name)) {
            let expected = format!("expected {name} = {{ design = \"{}\" }} in a block", self.label.get_ref());
            wrong(format!("no block uses the column `{name}` of {place}"), &expected);
        }
        for (at, cells) in lines.iter().filter(|(_, cells)| cells.len() != header.len()) {
            wrong(format!("{} has {} values", points.at(*at), cells.len()), &format!("expected {}", header.len()));
        }
        let (mut ranges, mut columns) = (Vec::new(), Vec::new());
        for (name, own) in &by_param {
            let param = own[0].param;
            let Some(column) = header.iter().position(|other| other == name) else {
                wrong(format!("there is no column `{name}` in {place}"), "expected a column for each parameter");
                continue;
            };
            let mut values = Vec::new();
            for (at, cell) in lines.iter().filter_map(|(at, cells)| Some((at, cells.get(column)?))) {
                match points::value(param, cell) {
                    Some(value) if bounds[name].as_ref().is_some_and(|bounds| !bounds.contains(&value)) => {
                        let range = bounds[name].as_ref().map(ToString::to_string).unwrap_or_default();
                        wrong(format!("{}: `{name}` is {value}", points.at(*at)), &format!("expected {range}"));
                    }
                    Some(value) => values.push(value),
                    None => {
                        let expected = format!("expected {}", param.expectation());
                        wrong(format!("{}: `{name}` cannot be \"{cell}\"", points.at(*at)), &expected);
                    }
                }
            }
            let mut different = values.clone();
            different.sort_by(compare);
            different.dedup_by(|a, b| compare(a, b).is_eq());
            let different = Values::list(different);
            let position = |value: &Value| u32::try_from(different.position(value)?).ok();
            columns.push(values.iter().filter_map(position).collect());
            ranges.push(range::Range { param, scale: Scale::Listed(different), bounds: bounds[name].clone() });
        }
        (problems.len() == before).then(|| Design::listed(self.label.get_ref(), ranges, columns, false))
    }

    /// The ranges that listed points may have, by parameter; none of a parameter without one.
    fn bounds<'n>(
        &self,
        by_param: &BTreeMap<&'n str, Vec<Reference<'_, '_>>>,
        problems: &mut Vec<Problem>,
    ) -> BTreeMap<&'n str, Option<Scale>> {
        let mut bounds = |own: &[Reference<'_, '_>]| {
            let is_given = own.iter().any(|reference| reference.table.len() > 1);
            is_given.then(|| self.range(own, problems).map(|range| range.scale)).flatten()
        };
        by_param.iter().map(|(name, own)| (*name, bounds(own))).collect()
    }

    /// The design of listed points that has none yet: blocks that use it have no tasks. Each parameter has a range.
    fn without_points(
        &self,
        by_param: &BTreeMap<&str, Vec<Reference<'_, '_>>>,
        bounds: BTreeMap<&str, Option<Scale>>,
    ) -> Design {
        const MIDDLE: f64 = 0.5;
        let place = |scale: &Scale| Scale::Listed(Values::list(vec![scale.value(MIDDLE)]));
        let ranges: Vec<range::Range> = bounds
            .into_iter()
            .filter_map(|(name, bounds)| Some((by_param[name][0].param, bounds?)))
            .map(|(param, scale)| range::Range { param, scale: place(&scale), bounds: Some(scale) })
            .collect();
        let columns = ranges.iter().map(|_| vec![0]).collect();
        Design::listed(self.label.get_ref(), ranges, columns, true)
    }
}
