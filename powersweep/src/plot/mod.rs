//! Figures of experiments: charts of rows along chosen columns, and figures of papers.

mod aggregate;
mod charts;
mod drawing;
mod preset;
mod read;
mod sensitivity;
mod titles;

use std::collections::BTreeSet;

use powersweep_dataset::grouped::FooterFacts;
use powersweep_dataset::{Error, failure};
use powersweep_experiments::reading::unknown;
use powersweep_results::Table;
use serde_json::{Value as Json, json};

use self::read::Request;
use crate::origin;
use crate::papers::Chosen;
use crate::place::Place;

pub use self::drawing::{Drawing, Format};
pub use self::titles::titled;
pub use powersweep_figures::{Figure, Look, Width};

/// The kind of a figure, with the columns that it needs. A column is one of its table, or one of `tasks`.
#[derive(Debug, Clone, PartialEq)]
pub enum Chart {
    /// Bars of the mean of `y` at each value of `x`, with 95% confidence intervals over seeds.
    Bars(Axes),
    /// Lines of the mean of `y` over `x`, with 95% confidence bands over seeds.
    Lines(Axes),
    /// Share of rows whose value in this column is at most a value, with 95% confidence bands over seeds.
    Cdf(String),
    /// A series over time.
    Series {
        /// Name of the series, such as `power_w`.
        name: String,
        /// Another series, or a number, which is drawn as a dashed line.
        cap: Option<String>,
        /// Only this time (s).
        between: Option<(f64, f64)>,
    },
    /// Jobs on processors over time, coloured by the gear at their start where no column is given.
    Gantt {
        /// Only this time (s).
        between: Option<(f64, f64)>,
    },
    /// Share of rows in cells of `x` and `y`. It has no colours of its own.
    Heatmap {
        /// The columns of the cells.
        axes: Axes,
        /// The column whose mean is shown instead of the share.
        value: Option<String>,
    },
    /// Mean of `y` at each value of `x`, over lines for each combination of the other axes. It has no colours of its own.
    Effect(Axes),
    /// A line for each row through these columns. It has no panels.
    Parallel(Vec<String>),
    /// Means of `x` and `y` over seeds, with the front of those that no other beats.
    Pareto {
        /// The columns of the means.
        axes: Axes,
        /// Those of them whose great values are better.
        maximise: Vec<String>,
    },
    /// How much each parameter moves this metric: bars of the shares of variance of a design of Saltelli or of a grid, or the
    /// elementary effects of a Morris design, spread over mean. It has no colours of its own.
    Sensitivity(String),
}

/// The columns along the axes of a chart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Axes {
    /// The horizontal axis.
    pub x: String,
    /// The vertical axis.
    pub y: String,
}

/// What a user says of a chart, whatever its kind.
#[derive(Debug, Clone, Default)]
pub struct Columns {
    /// The column along the horizontal axis; several for parallel coordinates.
    pub x: Vec<String>,
    /// The column along the vertical axis, or the series.
    pub y: Option<String>,
    /// The column whose mean a heat map shows.
    pub value: Option<String>,
    /// The cap of a series: another series, or a number.
    pub cap: Option<String>,
    /// The time of a series or of jobs that is shown (s).
    pub between: Option<(f64, f64)>,
    /// The columns of a Pareto front whose great values are better.
    pub maximise: Vec<String>,
}

impl Columns {
    /// Refuses what only figures of other kinds have.
    fn check(&self, kind: &str) -> Result<(), Error> {
        let given: [(&str, bool, &[&str]); 4] = [
            ("value", self.value.is_some(), &["heatmap"]),
            ("cap", self.cap.is_some(), &["series"]),
            ("between", self.between.is_some(), &["series", "gantt"]),
            ("maximise", !self.maximise.is_empty(), &["pareto"]),
        ];
        let wrong = given.iter().find(|(_, is_given, kinds)| *is_given && !kinds.contains(&kind));
        match wrong.filter(|_| Chart::KINDS.contains(&kind)) {
            Some((name, _, kinds)) => {
                Err(failure!(Usage, "`{name}` is for figures of the kind {}, not {kind}", kinds.join(" or ")))
            }
            None => Ok(()),
        }
    }

    fn axes(&self) -> Result<Axes, Error> {
        let y = self.y.clone().ok_or_else(|| failure!(Usage, "this figure needs a vertical axis: --y COLUMN"))?;
        Ok(Axes { x: self.one_x()?, y })
    }

    fn one_x(&self) -> Result<String, Error> {
        match self.x.as_slice() {
            [x] => Ok(x.clone()),
            _ => Err(failure!(Usage, "this figure needs one column: --x COLUMN")),
        }
    }
}

impl Chart {
    /// The names of the kinds.
    pub const KINDS: [&str; 10] =
        ["bars", "lines", "cdf", "series", "gantt", "heatmap", "effect", "parallel", "pareto", "sensitivity"];

    /// The chart of a kind with the columns that it needs.
    ///
    /// # Errors
    /// A column is missing, or the kind has no place for an option.
    pub fn of(kind: &str, of: Columns, options: &PlotOptions) -> Result<Chart, Error> {
        let (has_colour, has_facet) = (options.colour.is_some(), options.facet.is_some());
        of.check(kind)?;
        Ok(match kind {
            "bars" => Chart::Bars(of.axes()?),
            "lines" => Chart::Lines(of.axes()?),
            "cdf" => Chart::Cdf(of.one_x()?),
            "series" => {
                let name = of.y.ok_or_else(|| failure!(Usage, "this figure needs a series: --y SERIES"))?;
                Chart::Series { name, cap: of.cap, between: of.between }
            }
            "gantt" => Chart::Gantt { between: of.between },
            "heatmap" if has_colour => {
                return Err(failure!(Usage, "a heat map has no --colour: --value COLUMN shows the mean of a column"));
            }
            "heatmap" => Chart::Heatmap { axes: of.axes()?, value: of.value },
            "effect" if has_colour => {
                return Err(failure!(Usage, "the effect of an axis has no --colour: --facet splits it into panels"));
            }
            "effect" => Chart::Effect(of.axes()?),
            "parallel" if of.x.is_empty() => return Err(failure!(Usage, "this figure needs columns: --x A,B,C")),
            "parallel" if has_facet || of.y.is_some() => {
                let hint = "--x A,B,C has all columns";
                return Err(failure!(Usage, "parallel coordinates have no --y and no --facet: {hint}"));
            }
            "parallel" => Chart::Parallel(of.x),
            "pareto" => Chart::Pareto { axes: of.axes()?, maximise: of.maximise },
            "sensitivity" if has_colour || !of.x.is_empty() => {
                return Err(failure!(
                    Usage,
                    "a figure of indices has no --x and no --colour: --facet splits it into panels"
                ));
            }
            "sensitivity" => {
                let metric = of.y.ok_or_else(|| failure!(Usage, "this figure needs a metric: --y COLUMN"))?;
                Chart::Sensitivity(metric)
            }
            other => return Err(failure!(Usage, "{}", unknown("kind of figure", other, &Chart::KINDS))),
        })
    }
}

/// How a figure is drawn, and of which rows.
#[derive(Debug, Clone, Default)]
pub struct PlotOptions {
    /// The table; by default the one that has the measured column, `tasks` first.
    pub table: Option<Table>,
    /// Column whose values differ in colour, and in dash or shape.
    pub colour: Option<String>,
    /// Column whose values have panels of their own.
    pub facet: Option<String>,
    /// Conditions on the rows, such as `seed<3`.
    pub only: Vec<String>,
    /// Whether the horizontal axis is logarithmic.
    pub log_x: bool,
    /// Whether the vertical axis is logarithmic.
    pub log_y: bool,
    /// Whether each panel has a horizontal scale of its own.
    pub free_x: bool,
    /// Whether each panel has a vertical scale of its own.
    pub free_y: bool,
    /// The width; by default a column of a paper. Some figures of papers need the page.
    pub width: Option<Width>,
    /// A JSON object with keys of Vega-Lite's config.
    pub style: Option<Json>,
}

impl PlotOptions {
    fn look(&self, usual: Width) -> Result<Look, Error> {
        let look = Look::of(self.width.unwrap_or(usual));
        Ok(match &self.style {
            Some(style) => look.with_style(style.clone())?,
            None => look,
        })
    }
}

/// Whether a part of a Vega-Lite spec has a logarithmic scale on this axis.
fn is_logarithmic(spec: &Json, axis: &str) -> bool {
    match spec {
        Json::Object(parts) => {
            let is_here = parts.get(axis).is_some_and(|of| of["scale"]["type"] == "log");
            is_here || parts.iter().any(|(name, part)| name != "datasets" && is_logarithmic(part, axis))
        }
        Json::Array(parts) => parts.iter().any(|part| is_logarithmic(part, axis)),
        _ => false,
    }
}

impl Place {
    /// A chart of the rows of an experiment as they are now. The figure has notes for the user, and knows what it is drawn
    /// from; [`Drawing`] makes files of it.
    ///
    /// # Errors
    /// A column or condition is unknown, or there is nothing to draw.
    pub async fn plot(&self, experiment: &str, chart: &Chart, options: &PlotOptions) -> Result<Figure, Error> {
        let look = options.look(Width::Column)?;
        let datasets = self.datasets().await?;
        let facts = FooterFacts::read(&datasets, experiment).await?;
        let request = Request { datasets: &datasets, experiment, options, look: &look, facts: &facts };
        let mut figure = request.figure(chart).await?;
        for (axis, is_asked) in [("x", options.log_x), ("y", options.log_y)] {
            if is_asked && !is_logarithmic(figure.spec(), axis) {
                figure.add_note(format!("the axis {axis} of this figure has no scale that can be logarithmic"));
            }
        }
        figure.set_origin(&json!(origin::of(&datasets, &BTreeSet::from([experiment.to_owned()])).await?));
        Ok(figure)
    }

    /// A figure of a paper, from the rows as they are now. Of the options, width and style count.
    ///
    /// # Errors
    /// An experiment of the figure has no rows.
    pub async fn plot_preset(&self, chosen: &Chosen, options: &PlotOptions) -> Result<Figure, Error> {
        let look = options.look(chosen.width())?;
        chosen.figure(&self.datasets().await?, &look).await
    }
}
