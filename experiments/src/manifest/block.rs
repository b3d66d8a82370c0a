//! One block of a manifest: its axes, its zips and its variants.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use powersweep_engine::components;
use powersweep_engine::spec::{Component, Param, Role, Section};
use powersweep_engine::{Choice, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::canonical::compare;
use crate::errors::Problem;
use crate::names::{hint, suggestion};
use crate::space::{Column, Digit, Variant, tells_apart};
use crate::values::Values;

use super::design_range::is_reference;
use super::designs::Designs;
pub(crate) use super::sections::{params, roles};
use super::values::{Read, kind, read};
use super::{VARIANTS_MAX, zip};

/// An axis of a block. It may have only one value.
pub(crate) struct Axis {
    pub(crate) what: What,
    pub(crate) key_span: Range<usize>,
    /// The place of each listed value; empty for a range.
    pub(crate) spans: Vec<Range<usize>>,
    /// The number of its zip.
    pub(crate) zip: Option<usize>,
    used: bool,
}

/// The components or the values of an axis.
pub(crate) enum What {
    Role(Vec<&'static Component>),
    Param(&'static Param, Values),
    /// The values of a range of a design; `None` after a problem of the design.
    Designed(&'static Param, Option<(usize, usize)>),
}

impl Axis {
    pub(crate) fn new(what: What, key_span: Range<usize>, spans: Vec<Range<usize>>) -> Axis {
        Axis { what, key_span, spans, zip: None, used: false }
    }

    fn param(&self) -> Option<&'static Param> {
        match self.what {
            What::Param(param, _) | What::Designed(param, _) => Some(param),
            What::Role(_) => None,
        }
    }

    pub(crate) fn len(&self) -> u64 {
        match &self.what {
            What::Role(components) => components.len() as u64,
            What::Param(_, values) => values.len(),
            What::Designed(..) => 1,
        }
    }
}

/// A block and its place in the text.
pub(crate) struct Block<'a, 'i> {
    pub(crate) section: Section,
    pub(crate) label: Arc<str>,
    pub(crate) at: usize,
    pub(crate) span: Range<usize>,
    pub(crate) table: &'a DeTable<'i>,
}

impl Block<'_, '_> {
    fn header(&self) -> String {
        let section = self.section.key();
        if self.label.is_empty() { format!("[{section}]") } else { format!("[{section}.{}]", self.label) }
    }

    /// The variants of the block. After a problem the list is not complete.
    pub(crate) fn variants(&self, designs: &Designs, problems: &mut Vec<Problem>) -> Vec<Variant> {
        let before = problems.len();
        let mut axes = self.axes(designs, problems);
        let zips = zip::read(self.table, &mut axes, problems);
        repeated(&axes, problems);
        if problems.len() > before {
            // A block with an unknown key often also has parameters of components that it does not choose: report both.
            self.unused(&axes, problems);
            return Vec::new();
        }
        let variants = self.combine(&mut axes, &zips, designs, problems);
        if variants.is_some() {
            self.unused(&axes, problems);
        }
        variants.unwrap_or_default()
    }

    fn axes(&self, designs: &Designs, problems: &mut Vec<Problem>) -> BTreeMap<String, Axis> {
        let mut axes = BTreeMap::new();
        for (key, value) in self.table {
            let name = key.get_ref().as_ref();
            if name == "zip" {
                continue;
            }
            let axis = |what, spans| Axis::new(what, key.span(), spans);
            if let Some(role) = roles(self.section).find(|role| role.key() == name) {
                if let Some((components, spans)) = components_of(role, value, problems) {
                    axes.insert(name.to_owned(), axis(What::Role(components), spans));
                }
            } else if let Some((_, param)) = params(self.section).find(|(_, param)| param.name == name) {
                if is_reference(value) {
                    let what = What::Designed(param, designs.range(value, param.name));
                    axes.insert(name.to_owned(), axis(what, Vec::new()));
                } else if let Some(Read { values, spans }) = read(param, value, problems) {
                    axes.insert(name.to_owned(), axis(What::Param(param, values), spans));
                }
            } else {
                problems.push(self.unknown(name, key.span()));
            }
        }
        axes
    }

    fn unknown(&self, name: &str, span: Range<usize>) -> Problem {
        let message = format!("{} has no key `{name}`", self.header());
        let sections = [Section::Workloads, Section::Platforms, Section::Policies, Section::Statistics];
        let elsewhere = sections.into_iter().find(|section| {
            roles(*section).any(|role| role.key() == name) || params(*section).any(|(_, param)| param.name == name)
        });
        if let Some(section) = elsewhere {
            let table = match section {
                Section::Statistics => "[statistics]".to_owned(),
                other => format!("a block of [{}]", other.key()),
            };
            let belongs = format!("`{name}` belongs in {table}");
            return Problem::new(span, message, "misplaced key").help(belongs);
        }
        if matches!(name, "seed" | "seeds" | "series" | "signals" | "designs" | "tables" | "exclude") {
            let help = if name == "seed" {
                "write `seeds`, at the top of the manifest"
            } else {
                "move it to the top of the manifest"
            };
            return Problem::new(span, message, "misplaced key").help(help);
        }
        let keys: Vec<&str> = roles(self.section)
            .map(Role::key)
            .chain(params(self.section).map(|(_, param)| param.name))
            .chain(["zip"])
            .collect();
        Problem::new(span, message, "unknown key").help(suggestion(name, keys))
    }

    /// Every combination of components as a variant. `None` after a problem.
    fn combine(
        &self,
        axes: &mut BTreeMap<String, Axis>,
        zips: &[Vec<String>],
        designs: &Designs,
        problems: &mut Vec<Problem>,
    ) -> Option<Vec<Variant>> {
        let component_axes = component_axes(self.section, axes, zips);
        let mut rows = Vec::new();
        let total = component_axes.iter().try_fold(1_u64, |n, axis| n.checked_mul(axis.1)).unwrap_or(u64::MAX);
        if total > VARIANTS_MAX {
            let message = format!("{} combines components in more than {VARIANTS_MAX} ways", self.header());
            problems.push(Problem::new(self.span.clone(), message, "expected fewer components in its lists"));
            return None;
        }
        let before = problems.len();
        for index in 0..total {
            let mut rest = index;
            // The row of each axis that chooses components, and of the axes zipped with it. The first axis is the
            // slowest.
            let mut chosen: BTreeMap<&str, u64> = BTreeMap::new();
            for (names, len) in component_axes.iter().rev() {
                chosen.extend(names.iter().map(|name| (name.as_str(), rest % len)));
                rest /= len;
            }
            if let Some(variant) = self.variant(axes, zips, &chosen, designs, problems) {
                rows.push(variant);
            }
        }
        problems.dedup_by(|a, b| a.span() == b.span() && a.message() == b.message());
        (problems.len() == before).then_some(rows)
    }

    fn variant(
        &self,
        axes: &mut BTreeMap<String, Axis>,
        zips: &[Vec<String>],
        chosen: &BTreeMap<&str, u64>,
        designs: &Designs,
        problems: &mut Vec<Problem>,
    ) -> Option<Variant> {
        let mut choices: Vec<Choice> = Vec::new();
        for role in roles(self.section) {
            let component = match axes.get_mut(role.key()) {
                Some(Axis { what: What::Role(components), used, .. }) => {
                    *used = true;
                    components[usize::try_from(*chosen.get(role.key())?).ok()?]
                }
                _ => components::find(role, role.default_component())?,
            };
            choices.push(Choice::new(component));
        }
        let (mut given, mut columns, mut ranges) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        for (name, axis) in axes.iter_mut() {
            let Some(param) = axis.param() else { continue };
            let takers: Vec<usize> = (0..choices.len())
                .filter(|at| choices[*at].component().params.iter().any(|p| p.name == param.name))
                .collect();
            if takers.is_empty() {
                continue;
            }
            axis.used = true;
            given.push(param.name);
            let values = match &axis.what {
                What::Param(_, values) => values,
                What::Designed(_, range) => {
                    ranges.extend(range.map(|range| (range, takers)));
                    continue;
                }
                What::Role(_) => continue,
            };
            let fixed = match chosen.get(name.as_str()) {
                Some(row) => Some(values.get(*row)),
                None => (values.len() == 1).then(|| values.get(0)),
            };
            match fixed {
                Some(value) => {
                    for at in takers {
                        choices[at].set(param.name, value.clone()).ok()?;
                    }
                }
                None => {
                    let identity = tells_apart(param);
                    let column = Column { name: param.name, identity, choices: takers, values: values.clone() };
                    columns.insert(name.clone(), column);
                }
            }
        }
        self.missing(&choices, &given, axes, problems);
        let digits = digits(columns, zips);
        let count = digits.iter().try_fold(1_u64, |n, digit| n.checked_mul(digit.len()));
        let Some(count) = count.filter(|count| i64::try_from(*count).is_ok()) else {
            let message = format!("{} has more than 2^63 combinations", self.header());
            problems.push(Problem::new(self.span.clone(), message, "expected shorter axes"));
            return None;
        };
        let designed = designs.designed(ranges);
        Some(Variant { label: self.label.clone(), block: self.at, choices, digits, designed, count })
    }

    fn missing(&self, choices: &[Choice], given: &[&str], axes: &BTreeMap<String, Axis>, problems: &mut Vec<Problem>) {
        for choice in choices {
            let role = choice.component().role.key();
            for param in choice.missing().filter(|param| !given.contains(&param.name)) {
                let message = format!("{} needs `{}`", self.header(), param.name);
                let span = axes.get(role).map_or(self.span.clone(), |axis| axis.key_span.clone());
                let expected = format!("{role} `{}` requires it: {}", choice.component().name, param.expectation());
                problems.push(Problem::new(span, message, expected).help(param.doc));
            }
        }
    }

    /// Parameters of components that the block chooses in no combination.
    fn unused(&self, axes: &BTreeMap<String, Axis>, problems: &mut Vec<Problem>) {
        for (name, axis) in axes {
            let Some(param) = axis.param() else { continue };
            if axis.used {
                continue;
            }
            let owners: Vec<&Component> =
                params(self.section).filter(|(_, p)| p.name == param.name).map(|(component, _)| component).collect();
            let taken = owners.iter().any(|owner| match axes.get(owner.role.key()).map(|axis| &axis.what) {
                Some(What::Role(components)) => components.iter().any(|e| e.name == owner.name),
                _ => !self.table.contains_key(owner.role.key()) && owner.role.default_component() == owner.name,
            });
            // A wrong choice has been reported; parameters that depend on it are not checked.
            let unknown = owners
                .iter()
                .any(|owner| self.table.contains_key(owner.role.key()) && !axes.contains_key(owner.role.key()));
            if taken || unknown {
                continue;
            }
            let ways: Vec<String> = owners.iter().map(|e| format!("{} = \"{}\"", e.role.key(), e.name)).collect();
            let message = format!("`{name}` applies to no component that {} chooses", self.header());
            let expected = format!("it belongs to {}", ways.join(" or "));
            problems.push(
                Problem::new(axis.key_span.clone(), message, expected)
                    .help(format!("choose {} in this block, or remove `{name}`", ways.join(" or "))),
            );
        }
    }
}

/// The names of each axis that chooses components and of the axes zipped with it, and its length.
fn component_axes(section: Section, axes: &BTreeMap<String, Axis>, zips: &[Vec<String>]) -> Vec<(Vec<String>, u64)> {
    let mut found: Vec<(Vec<String>, u64)> = Vec::new();
    for role in roles(section) {
        let Some(axis) = axes.get(role.key()) else { continue };
        if found.iter().any(|(names, _)| names.iter().any(|name| name == role.key())) {
            continue;
        }
        let names = axis.zip.map_or_else(|| vec![role.key().to_owned()], |zip| zips[zip].clone());
        found.push((names, axis.len()));
    }
    found
}

/// The digits of a variant: its columns by name. Zipped columns are one digit, at the place of the first.
pub(crate) fn digits(mut columns: BTreeMap<String, Column>, zips: &[Vec<String>]) -> Vec<Digit> {
    let mut digits = Vec::new();
    while let Some((name, first)) = columns.pop_first() {
        let mut digit = Digit { columns: vec![first] };
        if let Some(zip) = zips.iter().find(|zip| zip.contains(&name)) {
            digit.columns.extend(zip.iter().filter_map(|other| columns.remove(other)));
            let partial = digit.columns.len() < zip.len();
            digit.columns.sort_by_key(|column| column.name);
            if partial {
                collapse(&mut digit);
            }
        }
        digits.push(digit);
    }
    digits
}

/// Removes repeated rows of a zip: rows become equal if some of its axes do not apply to this variant.
fn collapse(digit: &mut Digit) {
    let rows: Vec<Vec<Value>> =
        (0..digit.len()).map(|row| digit.columns.iter().map(|column| column.values.get(row)).collect()).collect();
    let by_row = |a: usize, b: usize| {
        let by_value = rows[a].iter().zip(&rows[b]).map(|(a, b)| compare(a, b));
        by_value.fold(Ordering::Equal, Ordering::then)
    };
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by(|a, b| by_row(*a, *b).then(a.cmp(b)));
    order.dedup_by(|later, first| by_row(*later, *first).is_eq());
    order.sort_unstable();
    let kept: Vec<&Vec<Value>> = order.into_iter().map(|row| &rows[row]).collect();
    for (at, column) in digit.columns.iter_mut().enumerate() {
        column.values = Values::list(kept.iter().map(|row| row[at].clone()).collect());
    }
}

/// Reports equal values of an axis that is not zipped.
pub(crate) fn repeated(axes: &BTreeMap<String, Axis>, problems: &mut Vec<Problem>) {
    for (name, axis) in axes.iter().filter(|(_, axis)| axis.zip.is_none()) {
        // The later place of each repeated value.
        let repetitions: Vec<(usize, String)> = match &axis.what {
            What::Role(components) => (1..components.len())
                .filter(|at| components[..*at].iter().any(|e| e.name == components[*at].name))
                .map(|at| (at, components[at].name.to_owned()))
                .collect(),
            What::Param(_, values) => values.repeated().map(|(at, value)| (at, value.to_string())).collect(),
            What::Designed(..) => Vec::new(),
        };
        for (at, shown) in repetitions.into_iter().take(20) {
            let span = axis.spans.get(at).unwrap_or(&axis.key_span).clone();
            let message = format!("`{name}` has the value {shown} twice");
            problems.push(Problem::new(span, message, "every value of an axis must differ from the others"));
        }
    }
}

/// The components chosen for a role, with their places: a name or a list of names.
fn components_of(
    role: Role,
    value: &Spanned<DeValue<'_>>,
    problems: &mut Vec<Problem>,
) -> Option<(Vec<&'static Component>, Vec<Range<usize>>)> {
    let before = problems.len();
    let one = |value: &Spanned<DeValue<'_>>, problems: &mut Vec<Problem>| {
        let names: Vec<&'static str> = components::of(role).map(|component| component.name).collect();
        let found = value.get_ref().as_str().and_then(|name| components::find(role, name));
        if found.is_none() {
            let shown = kind(value.get_ref());
            let message = format!("there is no {} {shown}", role.key());
            let listed: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
            let expected = format!("expected one of {}", listed.join(", "));
            let help = value.get_ref().as_str().and_then(|name| hint(name, names));
            problems.push(Problem::new(value.span(), message, expected).maybe_help(help));
        }
        found
    };
    match value.get_ref() {
        DeValue::Array(items) if items.is_empty() => {
            let message = format!("`{}` is an empty list", role.key());
            problems.push(Problem::new(value.span(), message, "expected at least one name"));
            None
        }
        DeValue::Array(items) => {
            let components: Vec<&'static Component> = items.iter().filter_map(|item| one(item, problems)).collect();
            let spans = items.iter().map(Spanned::span).collect();
            (problems.len() == before).then_some((components, spans))
        }
        _ => Some((vec![one(value, problems)?], vec![value.span()])),
    }
}
