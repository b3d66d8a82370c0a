//! Figures and tables of papers as data: which values they show, along which axes, beside which published numbers.
//!
//! A presets file stands beside the claims of its paper and uses their `runs`; one file may have both. Each `[[presets]]` is one figure or table of
//! the paper:
//!
//! ```
//! let claims = r#"
//! version = 1
//! paper = "mine2026"
//! title = "A paper"
//! manifests = ["quickstart"]
//! [[claims]]
//! id = "slowdown"
//! text = "mean slowdown of {queue_order}"
//! source = "Figure 1"
//! per.queue_order = ["fcfs", "sjf"]
//! published = [4.5, 2]
//! within = { relative = 0.1 }
//! value = { where = { policy = "plain" }, column = "bsld_mean", aggregate = "mean" }
//! "#;
//! let presets = r#"
//! version = 1
//! manifests = ["quickstart"]          # the experiments; a value that names none uses the preset's, else the first
//!
//! [[presets]]
//! name = "figure1"
//! caption = "Mean slowdown of two queue orders."
//! kind = "bars"                       # bars, lines, steps, jobs or table
//! x = { column = "queue_order", title = "queue order", order = ["sjf", "fcfs"], names = { sjf = "shortest first" } }
//! y = { title = "mean slowdown" }
//! [[presets.values]]
//! value = { where = { policy = "plain" }, column = "bsld_mean", aggregate = "mean" }
//! published = ["slowdown"]            # ids of claims, whose numbers are drawn beside ours
//! "#;
//! use powersweep_claims::{Claims, Presets};
//! let claims = Claims::parse("claims.toml", claims).expect("they are right");
//! let presets = Presets::parse("presets.toml", presets, &claims).expect("they are right");
//! assert_eq!(presets.find("figure1").expect("it is there").source(), "Figure 1");
//! ```
//!
//! The types below declare all keys: the documentation of a field is that of its key.
//!
//! The repetition and the conditions of a claim say where its published number is drawn; `at` adds the columns that they
//! leave open. `one_minus` and `times` turn the number into what the preset shows.

use std::collections::{BTreeMap, BTreeSet};

use powersweep_engine::Value;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};

use crate::claim::{Claim, yes};
use crate::selection::{Cell, Selection, conditions};

/// The name of an empty cell.
pub const NONE: &str = "none";

/// The figures and tables of one paper.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename = "a presets file")]
pub struct Presets {
    /// The version of the format, 1.
    pub(crate) version: f64,
    /// The experiments; a value that names none uses the preset's, else the first.
    pub(crate) manifests: Vec<String>,
    /// The figures and tables, one `[[presets]]` each.
    pub(crate) presets: Vec<Preset>,
    /// The claims, if they are in the same file.
    #[serde(rename = "claims")]
    pub(crate) _claims: IgnoredAny,
    #[serde(rename = "paper")]
    pub(crate) _paper: IgnoredAny,
    #[serde(rename = "title")]
    pub(crate) _title: IgnoredAny,
    #[serde(rename = "runs")]
    pub(crate) _runs: IgnoredAny,
}

/// How the values of a preset are shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Shape {
    /// Grouped bars.
    #[default]
    Bars,
    /// Lines over numbers or names.
    Lines,
    /// Step functions over time.
    Steps,
    /// Jobs on processors over time.
    Jobs,
    /// A table: a row for each value of `x`, a column for each value.
    Table,
}

/// One figure or table.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename = "a preset")]
pub struct Preset {
    /// Its name, such as `figure3` or `table1`: the place in the paper.
    pub name: String,
    /// A sentence about the figure or table.
    pub caption: String,
    /// How it is shown: `bars`, `lines`, `steps`, `jobs` or `table`.
    #[serde(rename = "kind")]
    pub shape: Shape,
    /// Whether the figure is as wide as the page by default.
    pub wide: bool,
    /// Whether the values of one place are stacked on each other.
    pub stacked: bool,
    /// The horizontal axis, or the rows of a table.
    pub x: Axis,
    /// The vertical axis.
    pub y: Measure,
    /// The axis whose values have colours.
    pub colour: Option<Axis>,
    /// The axis whose values have panels.
    pub facet: Option<Axis>,
    /// Conditions of the jobs of the kind `jobs`: columns with their values.
    #[serde(deserialize_with = "conditions")]
    pub jobs: BTreeMap<String, Vec<Value>>,
    /// The experiment whose rows are read first; the default is the first of the file.
    pub manifest: String,
    /// Whether means of rows have their 95% interval over the seeds, where they have one. The default is true.
    #[serde(default = "yes")]
    pub(crate) intervals: bool,
    /// The values, one `[[presets.values]]` each.
    pub(crate) values: Vec<Values>,
}

/// An axis of names or numbers.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename = "an axis")]
pub struct Axis {
    /// The column whose values it has, or several, whose values make one text.
    #[serde(rename = "column")]
    pub columns: Vec<String>,
    /// Title without the unit.
    pub title: String,
    /// Symbol of the unit; empty without one.
    pub unit: String,
    /// Whether it is logarithmic.
    pub log: bool,
    /// Whether each panel has a scale of its own.
    pub free: bool,
    /// The first values, in their order.
    pub(crate) order: Vec<String>,
    /// Names that values are shown by. An empty cell is `none`.
    #[serde(deserialize_with = "cells")]
    pub(crate) names: BTreeMap<String, String>,
    /// The least number that is shown.
    pub(crate) from: Option<f64>,
    /// The greatest number that is shown.
    pub(crate) to: Option<f64>,
    /// A selection, grouped by columns of `facet`, that is subtracted from the numbers.
    pub(crate) minus: Option<Selection>,
    /// A number by which the numbers are divided.
    pub(crate) divided_by: Option<f64>,
    /// For a list that has several classes one behind another: the number of elements after which they are counted from 1
    /// again.
    pub(crate) cycle: Option<f64>,
}

impl Axis {
    /// The first values, as they are shown.
    pub fn first_values(&self) -> impl Iterator<Item = &String> {
        self.order.iter().map(|value| self.names.get(value).unwrap_or(value))
    }
}

/// The vertical axis.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename = "a vertical axis")]
pub struct Measure {
    /// Title without the unit.
    pub title: String,
    /// Symbol of the unit; empty without one.
    pub unit: String,
    /// Whether it is logarithmic.
    pub log: bool,
    /// Whether each panel has a scale of its own.
    pub free: bool,
}

/// Values that are computed by one selection.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename = "a value")]
pub(crate) struct Values {
    /// A selection; the columns of the axes are added to its `by`.
    #[serde(rename = "value")]
    pub(crate) selection: Selection,
    /// Half the width of the interval around the value, as a column has it. It inherits the keys of `value` that it does not set.
    pub(crate) half_width: Option<Selection>,
    /// Whether the value must have a 95% interval over the seeds: it is the mean of its rows without `aggregate`, with `divided_by`
    /// the ratio of two means, with `minus` their difference.
    pub(crate) interval: bool,
    /// Fixed texts for columns of axes by which the value is not grouped.
    #[serde(rename = "as", deserialize_with = "cells")]
    pub(crate) fixed: BTreeMap<String, String>,
    /// Whether the value is not grouped by `x` and holds at all of its places.
    #[serde(rename = "everywhere")]
    pub(crate) is_everywhere: bool,
    /// Whether the series is drawn as a dashed line over the others.
    #[serde(rename = "cap")]
    pub(crate) is_cap: bool,
    /// Claims whose published numbers are shown beside ours: their ids, or tables.
    #[serde(deserialize_with = "published")]
    pub(crate) published: Vec<Published>,
    /// Heading of the column of a table; the default is that of the value's column.
    pub(crate) title: String,
    /// Unit in the heading; without a heading, the default is that of the value's column.
    pub(crate) unit: String,
}

/// A claim whose published numbers are shown. Its repetition and its conditions say where.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename = "a published number")]
pub(crate) struct Published {
    /// The id of the claim.
    #[serde(rename = "claim")]
    pub(crate) id: String,
    /// The claim of this id.
    #[serde(skip)]
    pub(crate) claim: Claim,
    /// Columns that the claim leaves open.
    #[serde(deserialize_with = "cells")]
    pub(crate) at: BTreeMap<String, String>,
    /// Whether one minus the number is shown.
    pub(crate) one_minus: bool,
    /// A factor, after `one_minus`.
    pub(crate) times: Option<f64>,
}

/// Published numbers by tables, or by the ids of their claims alone.
fn published<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Published>, D::Error> {
    #[derive(Deserialize)]
    enum Form {
        One(String),
        Table(Box<Published>),
    }
    let forms: Vec<Form> = Deserialize::deserialize(deserializer)?;
    let published = forms.into_iter().map(|form| match form {
        Form::One(id) => Published { id, ..Published::default() },
        Form::Table(published) => *published,
    });
    Ok(published.collect())
}

/// Cells by key, as texts.
fn cells<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error> {
    let cells: BTreeMap<String, Cell> = Deserialize::deserialize(deserializer)?;
    Ok(cells.into_iter().map(|(key, cell)| (key, Value::from(cell).to_string())).collect())
}

impl Presets {
    /// All presets, in the order of the file.
    pub fn all(&self) -> &[Preset] {
        &self.presets
    }

    /// The preset of this name.
    pub fn find(&self, name: &str) -> Option<&Preset> {
        self.presets.iter().find(|preset| preset.name == name)
    }
}

impl Preset {
    /// The place in the paper: `Figure 3`; the name of a table or figure that is ours.
    pub fn source(&self) -> String {
        let at = self.name.find(|letter: char| letter.is_ascii_digit()).unwrap_or(self.name.len());
        let (word, number) = self.name.split_at(at);
        let mut letters = word.chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        let place = format!("{}{} {number}", first.into_iter().collect::<String>(), letters.as_str());
        place.trim_end().to_owned()
    }

    /// This preset with the titles that `title` gives for columns, each with a unit, where the file has none: for values that no
    /// operation changes, and for the numbers of a horizontal axis.
    pub fn titled(mut self, title: impl Fn(&str) -> (String, String)) -> Preset {
        let fill = |column: Option<&str>, heading: &mut String, unit: &mut String| {
            let (words, of_column) = column.filter(|_| heading.is_empty()).map(&title).unwrap_or_default();
            if !words.is_empty() {
                *heading = words;
                *unit = if unit.is_empty() { of_column } else { std::mem::take(unit) };
            }
        };
        let columns: BTreeSet<Option<&str>> = self.values.iter().map(|values| values.selection.unchanged()).collect();
        let shared = columns.first().copied().flatten().filter(|_| columns.len() == 1);
        fill(shared, &mut self.y.title, &mut self.y.unit);
        for values in &mut self.values {
            fill(values.selection.unchanged(), &mut values.title, &mut values.unit);
        }
        if let ([column], Shape::Lines | Shape::Steps) = (self.x.columns.as_slice(), self.shape) {
            fill(Some(column), &mut self.x.title, &mut self.x.unit);
        }
        self
    }

    /// Heading and unit of the columns of a table, and whether there are published numbers for it.
    pub fn columns(&self) -> Vec<(&str, &str, bool)> {
        let one = |values: &Values| !values.published.is_empty();
        self.values.iter().map(|values| (values.title.as_str(), values.unit.as_str(), one(values))).collect()
    }

    /// Ids of the claims whose published numbers are shown.
    pub fn published(&self) -> Vec<&str> {
        self.values.iter().flat_map(|values| &values.published).map(|published| published.id.as_str()).collect()
    }

    /// The axes that group the values.
    pub(crate) fn axes(&self) -> impl Iterator<Item = &Axis> {
        std::iter::once(&self.x).chain(&self.colour).chain(&self.facet)
    }

    /// Columns of the axes by which a value is grouped.
    pub(crate) fn by(&self, values: &Values) -> Vec<String> {
        let axes = self.axes().enumerate().filter(|(at, _)| *at > 0 || !values.is_everywhere);
        let all = axes.flat_map(|(_, axis)| axis.columns.iter());
        let grouped: BTreeSet<&String> = all.filter(|column| !values.fixed.contains_key(*column)).collect();
        grouped.into_iter().cloned().collect()
    }
}
