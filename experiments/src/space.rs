//! The index space. It has six levels (workload, platform, policy, statistics, points of designs, seed). A level is a list of variants,
//! and a variant is a mixed-radix number whose digits are axes.
//!
//! A variant is a block with one component chosen for every role; its digits are the parameters that vary. A design varies
//! parameters of several sections at once, so its points are digits of a level of their own, which has a variant for each set
//! of ranges that blocks use together; [`crate::designs`] computes the points. Nothing is enumerated: an index is decoded by division, and a spec is encoded by looking up its values.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use powersweep_engine::spec::{Section, Type};
use powersweep_engine::{Choice, Value};

use crate::canonical::{compare, push_value};
use crate::designs::projection::Projection;
use crate::values::Values;

/// The levels of the index, slowest first.
pub(crate) const LEVELS: usize = 6;
/// The level of the seeds, which have one variant with one digit.
pub(crate) const SEED_LEVEL: usize = 5;
/// The level of the points of designs, which follows those of the sections.
pub(crate) const DESIGN_LEVEL: usize = SECTIONS.len();
/// The sections in the order of the levels.
pub(crate) const SECTIONS: [Section; 4] =
    [Section::Workloads, Section::Platforms, Section::Policies, Section::Statistics];

/// One axis of a digit: a parameter and its value at each position of the digit.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    /// Whether its value distinguishes tasks. The name of a log does: it stands for the digest.
    pub(crate) identity: bool,
    /// The choices of the variant that have the parameter.
    pub(crate) choices: Vec<usize>,
    pub(crate) values: Values,
}

impl Column {
    /// The position of a value.
    pub(crate) fn position(&self, value: &Value, same_log: SameLog<'_>) -> Option<u64> {
        if self.name == LOG || self.name == MODULE {
            return (0..self.values.len()).find(|at| same_log(&self.values.get(*at), value));
        }
        self.values.position(value)
    }
}

/// One digit: an axis, or several zipped axes.
#[derive(Debug, Clone)]
pub(crate) struct Digit {
    pub(crate) columns: Vec<Column>,
}

impl Digit {
    pub(crate) fn len(&self) -> u64 {
        self.columns.first().map_or(1, |column| column.values.len())
    }
}

/// A block with one component for every role.
#[derive(Debug, Clone)]
pub(crate) struct Variant {
    /// The block's label; empty for statistics and seeds.
    pub(crate) label: Arc<str>,
    /// Position of the block among those of its section, in label order.
    pub(crate) block: usize,
    /// One choice a role, with the parameters that do not vary.
    pub(crate) choices: Vec<Choice>,
    /// The axes, slowest first.
    pub(crate) digits: Vec<Digit>,
    /// The parameters whose values are those of designs.
    pub(crate) designed: Vec<Designed>,
    /// Product of the digits' lengths.
    pub(crate) count: u64,
}

/// The parameters of a variant that have the values of one design.
#[derive(Debug, Clone)]
pub(crate) struct Designed {
    /// The number of the design.
    pub(crate) design: usize,
    /// The points in the ranges of these parameters.
    pub(crate) points: Arc<Projection>,
    /// By parameter, the choices of the variant that have it.
    pub(crate) choices: Vec<Vec<usize>>,
}

/// The ranges that variants use, by the number of their design.
pub(crate) type Used = BTreeMap<usize, BTreeSet<usize>>;

/// The ranges that some variants use together.
pub(crate) fn used<'a>(variants: impl IntoIterator<Item = &'a Variant>) -> Used {
    let mut used = Used::new();
    for designed in variants.into_iter().flat_map(|variant| &variant.designed) {
        used.entry(designed.design).or_default().extend(&designed.points.ranges);
    }
    used
}

/// The variant of the level of designs that has the points of these variants.
pub(crate) fn points_of<'a>(level: &Level, variants: impl IntoIterator<Item = &'a Variant>) -> usize {
    level.by_use.get(&used(variants)).copied().expect("the level has all sets of ranges")
}

/// The choices of the sections at these positions.
pub(crate) fn choices(levels: &[Level; LEVELS], positions: &[u64; LEVELS]) -> Vec<Choice> {
    let (variant, offset) = levels[DESIGN_LEVEL].locate(positions[DESIGN_LEVEL]);
    let points = &levels[DESIGN_LEVEL].variants[variant];
    let rows = points.positions(offset);
    let mut all = Vec::new();
    for (level, position) in levels[..DESIGN_LEVEL].iter().zip(positions) {
        let (variant, offset) = level.locate(*position);
        let variant = &level.variants[variant];
        let begin = all.len();
        all.extend(variant.choices_at(offset));
        for designed in &variant.designed {
            for (at, takers) in designed.choices.iter().enumerate() {
                // An excluded index may lack the points of its blocks.
                let Some((digit, column)) = points.column(designed.points.name(at)) else { continue };
                let value = column.values.get(rows[digit]);
                takers.iter().for_each(|taker| set(&mut all[begin + taker], column.name, value.clone()));
            }
        }
    }
    all
}

fn set(choice: &mut Choice, name: &str, value: Value) {
    choice.set(name, value).expect("values were checked when the manifest was read");
}

/// One level of the index.
#[derive(Debug, Clone)]
pub(crate) struct Level {
    pub(crate) variants: Vec<Variant>,
    /// First position of each variant.
    starts: Vec<u64>,
    /// Positions of the whole level.
    pub(crate) count: u64,
    /// Variants by their components and by the values that vary in no variant with the same components.
    lookup: HashMap<Fingerprint, Vec<usize>>,
    /// Variants by the ranges of designs that they use; those of the level of designs differ in them.
    by_use: BTreeMap<Used, usize>,
    /// The names of the parameters in the fingerprint, by the names of the components.
    fixed: HashMap<Vec<&'static str>, Vec<&'static str>>,
}

/// The key of a look-up bucket: names of components, and canonical bytes of values.
type Fingerprint = (Vec<&'static str>, Vec<u8>);

impl Level {
    /// `None` if the number of positions exceeds 63 bits.
    pub(crate) fn new(variants: Vec<Variant>) -> Option<Level> {
        let mut starts = Vec::with_capacity(variants.len());
        let mut count = 0_u64;
        for variant in &variants {
            starts.push(count);
            count = count.checked_add(variant.count).filter(|count| i64::try_from(*count).is_ok())?;
        }
        let fixed = fixed_names(&variants);
        let by_use = (0..).zip(&variants).map(|(at, variant)| (used([variant]), at)).collect();
        let mut level = Level { variants, starts, count, lookup: HashMap::new(), by_use, fixed };
        for at in 0..level.variants.len() {
            let print = level.fingerprint(&level.variants[at].choices);
            level.lookup.entry(print).or_default().push(at);
        }
        Some(level)
    }

    /// First position of a variant.
    pub(crate) fn start(&self, variant: usize) -> u64 {
        self.starts[variant]
    }

    /// The variant that holds a position, and the offset in it.
    pub(crate) fn locate(&self, position: u64) -> (usize, u64) {
        let variant = self.starts.partition_point(|start| *start <= position) - 1;
        (variant, position - self.starts[variant])
    }

    /// The variants that may have these choices.
    pub(crate) fn candidates(&self, choices: &[Choice]) -> &[usize] {
        self.lookup.get(&self.fingerprint(choices)).map_or(&[], Vec::as_slice)
    }

    /// The buckets of variants that may overlap.
    pub(crate) fn buckets(&self) -> impl Iterator<Item = &[usize]> {
        self.lookup.values().map(Vec::as_slice)
    }

    /// The position of a spec's choices; `None` if this level lacks them. `same_log` compares names of logs.
    pub(crate) fn position_of(&self, choices: &[Choice], same_log: SameLog<'_>) -> Option<u64> {
        self.candidates(choices).iter().find_map(|at| {
            let offset = self.variants[*at].offset_of(choices, same_log)?;
            Some(self.starts[*at] + offset)
        })
    }

    fn fingerprint(&self, choices: &[Choice]) -> Fingerprint {
        let names: Vec<&'static str> = choices.iter().map(|p| p.component().name).collect();
        let mut values = Vec::new();
        for name in self.fixed.get(&names).into_iter().flatten() {
            match choices.iter().find_map(|choice| choice.get(name)) {
                Some(value) => push_value(&mut values, value),
                None => values.push(0),
            }
        }
        (names, values)
    }
}

/// For every set of components, the identity parameters that vary in no variant with these components.
fn fixed_names(variants: &[Variant]) -> HashMap<Vec<&'static str>, Vec<&'static str>> {
    let mut fixed: HashMap<Vec<&'static str>, Vec<&'static str>> = HashMap::new();
    for variant in variants {
        let names: Vec<&'static str> = variant.choices.iter().map(|p| p.component().name).collect();
        let mut params: Vec<&'static str> = variant
            .choices
            .iter()
            .flat_map(|choice| choice.component().params)
            .filter(|param| param.is_identity())
            .map(|param| param.name)
            .collect();
        params.sort_unstable();
        params.dedup();
        let known = fixed.entry(names).or_insert(params);
        known.retain(|name| !variant.varies(name));
    }
    fixed
}

impl Variant {
    /// The digit and column of a parameter that varies.
    pub(crate) fn column(&self, name: &str) -> Option<(usize, &Column)> {
        self.digits
            .iter()
            .enumerate()
            .find_map(|(at, digit)| digit.columns.iter().find(|c| c.name == name).map(|c| (at, c)))
    }

    /// Whether a parameter is an axis or has the values of a design.
    pub(crate) fn varies(&self, name: &str) -> bool {
        self.column(name).is_some() || self.designed_by(name).is_some()
    }

    /// The design that gives a parameter its values.
    pub(crate) fn designed_by(&self, name: &str) -> Option<&Designed> {
        self.designed.iter().find(|designed| (0..designed.choices.len()).any(|at| designed.points.name(at) == name))
    }

    /// The value of a parameter that does not vary.
    pub(crate) fn fixed(&self, name: &str) -> Option<&Value> {
        self.choices.iter().find_map(|choice| choice.get(name))
    }

    /// The texts of a parameter, in their order.
    pub(crate) fn texts(&self, name: &str) -> Vec<String> {
        let text = |value| if let Value::Text(text) = value { Some(text) } else { None };
        match self.column(name) {
            Some((_, column)) => column.values.iter().filter_map(text).collect(),
            None => self.fixed(name).cloned().and_then(text).into_iter().collect(),
        }
    }

    /// The choices at an offset below `count`.
    pub(crate) fn choices_at(&self, mut offset: u64) -> Vec<Choice> {
        let mut choices = self.choices.clone();
        for digit in self.digits.iter().rev() {
            let position = offset % digit.len();
            offset /= digit.len();
            for column in &digit.columns {
                let value = column.values.get(position);
                column.choices.iter().for_each(|choice| set(&mut choices[*choice], column.name, value.clone()));
            }
        }
        choices
    }

    /// Number of jobs that the source generates at an offset; `None` if it generates none before the run.
    pub(crate) fn generated_jobs(&self, offset: u64) -> Option<u64> {
        let name = self.choices.iter().find_map(powersweep_engine::workload::jobs_param)?;
        let value = match self.column(name) {
            Some((digit, column)) => column.values.get(self.positions(offset)[digit]),
            None => self.fixed(name)?.clone(),
        };
        if let Value::Int(jobs) = value { u64::try_from(jobs).ok() } else { None }
    }

    /// The positions of the digits at an offset.
    pub(crate) fn positions(&self, mut offset: u64) -> Vec<u64> {
        let mut positions = vec![0; self.digits.len()];
        for (position, digit) in positions.iter_mut().zip(&self.digits).rev() {
            *position = offset % digit.len();
            offset /= digit.len();
        }
        positions
    }

    /// The offset at which this variant has exactly these choices.
    fn offset_of(&self, choices: &[Choice], same_log: SameLog<'_>) -> Option<u64> {
        let mut offset = 0_u64;
        for digit in &self.digits {
            offset = offset * digit.len() + digit.position_of(choices, same_log)?;
        }
        let same_option = |name: &str, a: Option<&Value>, b: Option<&Value>| match (a, b) {
            (Some(a), Some(b)) => same_value(name, a, b, same_log),
            (a, b) => a.is_none() && b.is_none(),
        };
        let same = self.choices.iter().zip(choices).all(|(mine, theirs)| {
            mine.component() == theirs.component()
                && mine
                    .component()
                    .params
                    .iter()
                    .filter(|param| tells_apart(param) && !self.varies(param.name))
                    .all(|param| same_option(param.name, mine.get(param.name), theirs.get(param.name)))
        });
        let value = |name: &str| choices.iter().find_map(|choice| choice.get(name));
        let has_point = |designed: &Designed| designed.points.find(value).is_some();
        (same && self.designed.iter().all(has_point)).then_some(offset)
    }

    /// The offset of this variant of the level of designs at which a spec has these choices.
    pub(crate) fn offset_of_points(&self, choices: &[Choice]) -> Option<u64> {
        let value = |name: &str| choices.iter().find_map(|choice| choice.get(name));
        self.designed
            .iter()
            .try_fold(0, |offset, designed| Some(offset * designed.points.len() + designed.points.find(value)?))
    }
}

/// Compares names of logs.
pub(crate) type SameLog<'a> = &'a dyn Fn(&Value, &Value) -> bool;

/// Whether two values of a parameter are the same.
pub(crate) fn same_value(name: &str, a: &Value, b: &Value, same_log: SameLog<'_>) -> bool {
    if name == LOG || name == MODULE { same_log(a, b) } else { compare(a, b).is_eq() }
}

/// The parameter that names a log. It is not part of the identity; it stands for the digest until that is known.
pub(crate) const LOG: &str = "log";

/// The parameter that names a policy module. It stands for the digest, too.
pub(crate) const MODULE: &str = "wasm_module";

/// Whether the value of a parameter distinguishes tasks.
pub(crate) fn tells_apart(param: &powersweep_engine::spec::Param) -> bool {
    param.is_identity() || param.name == LOG || matches!(param.ty, Type::Signal { .. } | Type::Module)
}

impl Digit {
    /// The position at which every column has the value of the choices.
    fn position_of(&self, choices: &[Choice], same_log: SameLog<'_>) -> Option<u64> {
        let wanted = |column: &Column| column.choices.first().and_then(|choice| choices.get(*choice)?.get(column.name));
        let [column] = self.columns.as_slice() else {
            // Zipped axes may repeat a value; only their rows are distinct.
            return (0..self.len()).find(|row| self.row_is(*row, |at| wanted(&self.columns[at]).cloned(), same_log));
        };
        column.position(wanted(column)?, same_log)
    }

    /// Whether this row has the wanted values in all columns that distinguish tasks. `wanted` takes the number of a
    /// column.
    pub(crate) fn row_is(&self, row: u64, wanted: impl Fn(usize) -> Option<Value>, same_log: SameLog<'_>) -> bool {
        let same = |(at, column): (usize, &Column)| {
            wanted(at).is_some_and(|value| same_value(column.name, &column.values.get(row), &value, same_log))
        };
        self.columns.iter().enumerate().filter(|(_, column)| column.identity).all(same)
    }
}
