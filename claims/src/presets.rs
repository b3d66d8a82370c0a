//! Figures and tables of papers as data: which values they show, along which axes, beside which published numbers.
//!
//! A presets file stands beside the claims of its paper and uses their `runs`. Each `[[presets]]` is one figure or table of
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
//! **An axis** (`x`, `colour`, `facet`) groups each value by its `column`, which may be a list of columns: their values
//! then make one text. `title` and `unit` name it, `order` lists the first values of it, and `names` renames values (an
//! empty cell is `none`). An `x` of numbers may be cut by `from` and `to`, drawn with `log = true` or `free = true` (a scale for each panel), and moved: `minus` is
//! a selection that is grouped by columns of `facet`, and `divided_by` a number. `cycle` counts the elements of a list that
//! has several classes behind each other from 1 again after this number.
//!
//! **A value** has these keys:
//!
//! | key | meaning |
//! |---|---|
//! | `value` | a selection, as in claims; the columns of the axes are added to its `by` |
//! | `as` | fixed texts for columns of axes by which this value is not grouped |
//! | `everywhere` | the value is not grouped by `x` and holds at all of its places |
//! | `half_width` | half the width of the interval around the value; inherits the value's keys as `less_than` does |
//! | `published` | ids of claims, or tables `{ claim, at, one_minus, times }`: see below |
//! | `cap` | a series that is drawn as a dashed line over the others |
//! | `title`, `unit` | heading of the column of a table |
//!
//! The repetition and the conditions of a claim say where its published number is drawn; `at` adds the columns that they
//! leave open. `one_minus` and `times` turn the number into what the preset shows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use powersweep_experiments::ManifestErrors;

use crate::file::{Claim, Claims};
use crate::points::{self, Lacking, Row};
use crate::preset_file;
use crate::read::Reader;
use crate::rows::{Needed, Rows};
use crate::selection::Selection;

/// The figures and tables of one paper.
#[derive(Debug, Clone)]
pub struct Presets {
    presets: Vec<Preset>,
}

/// How the values of a preset are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Grouped bars.
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
#[derive(Debug, Clone)]
pub struct Preset {
    /// Its name, such as `figure3` or `table1`.
    pub name: String,
    /// What it shows, in a sentence.
    pub caption: String,
    /// How it is shown.
    pub shape: Shape,
    /// Whether the figure is as wide as the page by default.
    pub wide: bool,
    /// Whether the values of one place are stacked on each other.
    pub stacked: bool,
    /// The horizontal axis, or the rows of a table.
    pub x: Axis,
    /// The vertical axis.
    pub y: Measure,
    /// What colours tell apart.
    pub colour: Option<Axis>,
    /// What panels tell apart.
    pub facet: Option<Axis>,
    /// Conditions of the jobs of [`Shape::Jobs`]: columns with their values.
    pub jobs: Vec<(String, String)>,
    /// The experiment whose rows are read first.
    pub manifest: String,
    pub(crate) values: Vec<Values>,
}

/// An axis of names or numbers.
#[derive(Debug, Clone, Default)]
pub struct Axis {
    /// The columns whose values it has; several are joined.
    pub columns: Vec<String>,
    /// Title without the unit.
    pub title: String,
    /// Symbol of the unit; empty without one.
    pub unit: String,
    /// Whether it is logarithmic.
    pub log: bool,
    /// Whether each panel has a scale of its own.
    pub free: bool,
    pub(crate) order: Vec<String>,
    pub(crate) names: BTreeMap<String, String>,
    pub(crate) from: Option<f64>,
    pub(crate) to: Option<f64>,
    pub(crate) minus: Option<Selection>,
    pub(crate) divided_by: Option<f64>,
    pub(crate) cycle: Option<f64>,
}

/// The vertical axis.
#[derive(Debug, Clone, Default)]
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
#[derive(Debug, Clone)]
pub(crate) struct Values {
    pub(crate) selection: Selection,
    pub(crate) half_width: Option<Selection>,
    pub(crate) fixed: BTreeMap<String, String>,
    pub(crate) is_everywhere: bool,
    pub(crate) is_cap: bool,
    pub(crate) published: Vec<Published>,
    pub(crate) title: String,
    pub(crate) unit: String,
}

/// A claim whose published numbers are shown.
#[derive(Debug, Clone)]
pub(crate) struct Published {
    pub(crate) claim: Claim,
    pub(crate) at: BTreeMap<String, String>,
    pub(crate) one_minus: bool,
    pub(crate) times: f64,
}

impl Presets {
    /// Reads and checks a presets file. `claims` are the claims of the same paper; `file` is the name shown in messages.
    ///
    /// # Errors
    /// Every problem at once, each with its line.
    pub fn parse(file: &str, text: &str, claims: &Claims) -> Result<Presets, ManifestErrors> {
        let shared: Arc<str> = text.into();
        let mut reader = Reader { problems: Vec::new() };
        let presets = preset_file::read(&shared, claims, &mut reader);
        match presets {
            Some(presets) if reader.problems.is_empty() => Ok(Presets { presets }),
            _ => {
                if reader.problems.is_empty() {
                    reader.problem_at(0..0, "these presets cannot be used", "this is a bug: please report it");
                }
                Err(ManifestErrors::new(file, &shared, reader.problems))
            }
        }
    }

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
    /// The place in the paper: `Figure 3`.
    pub fn source(&self) -> String {
        let at = self.name.find(|letter: char| letter.is_ascii_digit()).unwrap_or(self.name.len());
        let (word, number) = self.name.split_at(at);
        let mut letters = word.chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        format!("{}{} {number}", first.into_iter().collect::<String>(), letters.as_str())
    }

    /// The columns to read, by manifest and table.
    pub fn needed(&self) -> Needed {
        let mut needed = Needed::new();
        points::need(self, &mut needed);
        needed
    }

    /// The manifests whose rows are read.
    pub fn manifests(&self) -> BTreeSet<String> {
        let read = self.needed().into_keys().map(|(manifest, _)| manifest);
        if self.shape == Shape::Jobs { BTreeSet::from([self.manifest.clone()]) } else { read.collect() }
    }

    /// Heading and unit of the columns of a table, and whether there are published numbers for it.
    pub fn columns(&self) -> Vec<(&str, &str, bool)> {
        let one = |values: &Values| !values.published.is_empty();
        self.values.iter().map(|values| (values.title.as_str(), values.unit.as_str(), one(values))).collect()
    }

    /// Our values and the published ones, in the order of the axes.
    ///
    /// # Errors
    /// What is missing, and the manifest that has it.
    pub fn rows(&self, rows: &Rows) -> Result<Vec<Row>, Lacking> {
        points::rows(self, rows)
    }

    /// The axes that group the values.
    pub(crate) fn axes(&self) -> impl Iterator<Item = &Axis> {
        std::iter::once(&self.x).chain(&self.colour).chain(&self.facet)
    }
}
