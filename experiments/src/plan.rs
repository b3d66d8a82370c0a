//! Blocks and axes of a sweep with exact numbers of tasks, for `plan`.

use std::sync::Arc;

use powersweep_engine::Value;
use powersweep_engine::spec::Role;
use serde::{Serialize, Serializer};

use crate::designs::discrepancy;
use crate::designs::projection::{Projection, VALUES_MAX};
use crate::exclusion::{Exclusion, Rule};
use crate::manifest::exclude::{LABELS, rule_of_value};
use crate::names::add_new;
use crate::space::{DESIGN_LEVEL, LEVELS, Level, SECTIONS, SEED_LEVEL};
use crate::values::Values;
use crate::{Manifest, Sweep};

/// One block of a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockSummary {
    /// Section of the manifest: `workloads`, `platforms` or `policies`.
    pub section: &'static str,
    /// Its label.
    pub label: Arc<str>,
    /// Number of tasks of this block.
    pub tasks_count: u64,
}

/// One axis of a sweep.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AxisSummary {
    /// Section of the manifest: `workloads`, `platforms`, `policies`, `statistics` or `seeds`.
    pub section: &'static str,
    /// Label of the block that has the axis; empty for statistics, seeds, and the axis of the labels itself.
    #[serde(serialize_with = "text_of")]
    pub block: Arc<str>,
    /// Name of the axis: the column in the results (`workload`, `platform`, `policy` for the labels).
    #[serde(rename = "axis")]
    pub name: String,
    /// The axes with which it is zipped.
    #[serde(skip)]
    pub zipped_with: Vec<String>,
    /// Number of values.
    pub values_count: u64,
    /// The first values (at most [`AxisSummary::SHOWN_MAX`]), in the order of the manifest.
    pub values: Vec<AxisValue>,
}

fn text_of<S: Serializer>(text: &Arc<str>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(text)
}

/// One value of an axis.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AxisValue {
    /// The value as the results show it.
    #[serde(rename = "value")]
    pub text: String,
    /// Number of tasks of this block that have the value; `None` if counting takes too long.
    #[serde(rename = "tasks")]
    pub tasks_count: Option<u64>,
}

/// A design of a manifest.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DesignSummary {
    /// Its label.
    #[serde(serialize_with = "text_of")]
    pub design: Arc<str>,
    /// Its kind.
    pub kind: &'static str,
    /// Number of its points.
    #[serde(rename = "points")]
    pub points_count: u64,
    /// Points that are equal to an earlier one, so that they give no tasks; of blocks that use all ranges.
    #[serde(rename = "repeated_points")]
    pub repeated_count: u64,
    /// Each parameter with its range.
    pub ranges: Vec<RangeSummary>,
    /// The square of the centred L2 discrepancy of the first points, as SciPy gives it: 0 is even.
    pub discrepancy: f64,
    /// Number of points of the discrepancy.
    pub discrepancy_points: u64,
}

/// A range of a design.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RangeSummary {
    /// The parameter.
    pub parameter: &'static str,
    /// Its values in words.
    pub values: String,
}

/// In a sweep with more variants, the tasks of single values are not counted.
const VARIANTS_MAX: usize = 1_000;

impl AxisSummary {
    /// Greatest number of values in [`AxisSummary::values`].
    pub const SHOWN_MAX: usize = 64;
}

impl Sweep {
    /// The blocks of workloads, platforms and policies, each with its number of tasks.
    pub fn blocks(&self) -> Vec<BlockSummary> {
        let manifest = self.manifest();
        let mut blocks = Vec::new();
        for (at, level) in manifest.inner().levels.iter().enumerate().take(LABELS.len()) {
            for label in labels(level) {
                blocks.push(BlockSummary {
                    section: SECTIONS[at].key(),
                    tasks_count: tasks_with(manifest, at, &label, None).unwrap_or_default(),
                    label,
                });
            }
        }
        blocks
    }

    /// The designs, in the order of their labels.
    pub fn designs(&self) -> Vec<DesignSummary> {
        let inner = self.manifest().inner();
        let points = || inner.levels[DESIGN_LEVEL].variants.iter().flat_map(|variant| &variant.designed);
        let designs = inner.designs.iter().map(|design| {
            let own = points().filter(|designed| Arc::ptr_eq(&designed.points.design, design));
            let whole = own.max_by_key(|designed| designed.points.ranges.len()).map(|designed| designed.points.clone());
            // A design that signals alone have ranges of has few points.
            let all = || Arc::new(Projection::new(design, (0..design.ranges.len()).collect(), &mut { VALUES_MAX }));
            let whole = whole.unwrap_or_else(all);
            DesignSummary {
                design: design.label.clone(),
                kind: design.kind.name,
                points_count: if design.is_empty { 0 } else { design.points },
                repeated_count: if design.is_empty { 0 } else { whole.repeated.len() as u64 },
                ranges: design
                    .ranges
                    .iter()
                    .map(|range| RangeSummary { parameter: range.param.name, values: range.shown() })
                    .collect(),
                discrepancy: if design.is_empty { 0.0 } else { discrepancy::centred_l2(design) },
                discrepancy_points: if design.is_empty { 0 } else { design.points.min(discrepancy::POINTS_MAX) },
            }
        });
        designs.collect()
    }

    /// The axes with more than one value, in the order of the index, slowest first.
    pub fn axes(&self) -> Vec<AxisSummary> {
        let manifest = self.manifest();
        let mut axes = Vec::new();
        for (at, level) in manifest.inner().levels.iter().enumerate().filter(|(at, _)| *at != DESIGN_LEVEL) {
            let section = SECTIONS.get(at).map_or("seeds", |section| section.key());
            let labels = labels(level);
            if labels.len() > 1 {
                let values = labels.iter().take(AxisSummary::SHOWN_MAX).map(|label| AxisValue {
                    text: label.to_string(),
                    tasks_count: tasks_with(manifest, at, label, None),
                });
                axes.push(AxisSummary {
                    section,
                    block: "".into(),
                    name: LABELS[at].to_owned(),
                    zipped_with: Vec::new(),
                    values_count: labels.len() as u64,
                    values: values.collect(),
                });
            }
            for label in &labels {
                of_block(manifest, at, section, label, &mut axes);
            }
        }
        axes
    }
}

/// The axes of one block: choices of components, then parameters.
fn of_block(manifest: &Manifest, at: usize, section: &'static str, label: &Arc<str>, axes: &mut Vec<AxisSummary>) {
    let level = &manifest.inner().levels[at];
    let own = || level.variants.iter().filter(|variant| variant.label == *label);
    let mut push = |name: &str, values: &Values, zipped_with: Vec<String>| {
        let shown = values.iter().take(AxisSummary::SHOWN_MAX).map(|value| AxisValue {
            text: value.to_string(),
            tasks_count: tasks_with(manifest, at, label, Some((name, &value))),
        });
        axes.push(AxisSummary {
            section,
            block: label.clone(),
            name: name.to_owned(),
            zipped_with,
            values_count: values.len(),
            values: shown.collect(),
        });
    };
    if at != SEED_LEVEL {
        for role in Role::ALL.into_iter().filter(|role| role.section() == SECTIONS[at]) {
            let mut names: Vec<&str> = Vec::new();
            let components = own().flat_map(|variant| &variant.choices).map(|choice| choice.component());
            add_new(&mut names, components.filter(|component| component.role == role).map(|component| component.name));
            if names.len() > 1 {
                let values = names.into_iter().map(|name| Value::Text(name.to_owned())).collect();
                push(role.key(), &Values::list(values), Vec::new());
            }
        }
    }
    let mut seen: Vec<&str> = Vec::new();
    for digit in own().flat_map(|variant| &variant.digits).filter(|digit| digit.len() > 1) {
        for column in &digit.columns {
            if seen.contains(&column.name) {
                continue;
            }
            seen.push(column.name);
            let others = digit.columns.iter().map(|other| other.name).filter(|other| *other != column.name);
            push(column.name, &distinct(&column.values), others.map(str::to_owned).collect());
        }
    }
}

/// The values of a zipped axis without repetitions.
fn distinct(values: &Values) -> Values {
    let Values::List { values, .. } = values else { return values.clone() };
    let mut kept: Vec<Value> = Vec::new();
    for value in values {
        if kept.len() <= AxisSummary::SHOWN_MAX && kept.contains(value) {
            continue;
        }
        kept.push(value.clone());
    }
    Values::list(kept)
}

/// The labels of a level, each once, in order.
fn labels(level: &Level) -> Vec<Arc<str>> {
    let mut labels: Vec<Arc<str>> = level.variants.iter().map(|variant| variant.label.clone()).collect();
    labels.dedup();
    labels
}

/// Number of tasks of a block, or of one value of its axes: all tasks minus the tasks that remain if it is excluded.
fn tasks_with(manifest: &Manifest, at: usize, label: &str, axis: Option<(&str, &Value)>) -> Option<u64> {
    let inner = manifest.inner();
    let levels: &[Level; LEVELS] = &inner.levels;
    if axis.is_some() && levels.iter().map(|level| level.variants.len()).sum::<usize>() > VARIANTS_MAX {
        return None;
    }
    let mut rules: Vec<Rule> = inner.rules.clone();
    rules.push(rule_of_value(&levels[at], at, label, axis));
    let left = Exclusion::new(levels, &rules).ok()?;
    Some(inner.exclusion.included() - left.included())
}
