//! The command line of `plot`.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, ValueEnum};
#[cfg(feature = "figures")]
use powersweep::plot::{Chart, Columns, PlotOptions, Width};
use powersweep_results::Table;

use super::TablesArgs;
use super::tables::tables;
#[cfg(feature = "figures")]
use crate::exit::{Failure, failure};

/// The kinds of figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FigureKind {
    /// Bars of the mean of --y at each value of --x, with 95% confidence intervals over seeds.
    Bars,
    /// Lines of the mean of --y over --x, with 95% confidence bands over seeds.
    Lines,
    /// Share of rows whose --x is at most a value, with 95% confidence bands over seeds.
    Cdf,
    /// A series over time: --y names the series, such as power_w; --cap another one, or a number.
    Series,
    /// Jobs on processors over time, coloured by the gear at their start.
    Gantt,
    /// Share of rows in cells of --x and --y, or the mean of --value there, with 95% confidence intervals over seeds.
    Heatmap,
    /// Mean of --y at each value of --x over lines for each combination of the other axes.
    Effect,
    /// A line for each row through the columns of --x.
    Parallel,
    /// Means of --x and --y over seeds, with the front of those that no other beats.
    Pareto,
    /// How much each parameter moves --y: the indices of the command sensitivity.
    Sensitivity,
}

/// The formats of figures, by the endings of their files.
fn formats() -> PossibleValuesParser {
    let formats = [
        ("svg", "Vector drawing"),
        ("png", "Raster drawing of 300 dots per inch"),
        ("pdf", "Vector drawing with embedded fonts, for papers"),
        ("html", "A page that needs no network"),
        ("vl.json", "The Vega-Lite spec with its rows"),
        ("csv", "The rows that are drawn"),
    ];
    PossibleValuesParser::new(formats.map(|(name, help)| PossibleValue::new(name).help(help)))
}

/// Where a figure stands in a paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FigureWidth {
    /// 3.5 in.
    Column,
    /// 7.16 in.
    Page,
}

/// An axis of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PlotAxis {
    /// The horizontal one.
    X,
    /// The vertical one.
    Y,
}

#[derive(Debug, Args)]
#[cfg_attr(not(feature = "figures"), allow(dead_code))]
pub struct PlotArgs {
    /// Name of the experiment, or of a paper with --preset.
    #[arg(required_unless_present = "presets")]
    experiment: Option<String>,
    #[command(flatten)]
    pub from: TablesArgs,
    /// The kind of figure.
    #[arg(long, value_enum, value_name = "KIND")]
    figure: Option<FigureKind>,
    /// A figure of a paper, such as figure3. For an experiment of your own with the tasks of the paper's manifest, name the
    /// paper, too: etinski2010/figure3.
    #[arg(
        long, value_name = "[PAPER/]NAME",
        conflicts_with_all = ["figure", "table", "x", "y", "colour", "facet", "value", "cap", "only", "between", "log", "free", "maximise"]
    )]
    pub preset: Option<String>,
    /// List the figures and tables of papers, and draw nothing.
    #[arg(long, conflicts_with_all = ["figure", "preset", "output", "watch"])]
    pub presets: bool,
    /// The table to read; by default `series` and `jobs` for these kinds, else the table that has --x, `tasks` first. The
    /// other columns may be columns of `tasks`.
    #[arg(long, value_parser = tables())]
    table: Option<Table>,
    /// Column along the horizontal axis; several for parallel coordinates.
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',')]
    x: Vec<String>,
    /// Column along the vertical axis, or the series.
    #[arg(long, value_name = "COLUMN")]
    y: Option<String>,
    /// Column whose values differ in colour, and in dash or shape.
    #[arg(long, visible_alias = "color-by", value_name = "COLUMN")]
    colour: Option<String>,
    /// Column whose values have panels of their own.
    #[arg(long, value_name = "COLUMN")]
    facet: Option<String>,
    /// Column whose mean a heat map shows.
    #[arg(long, value_name = "COLUMN")]
    value: Option<String>,
    /// Series or number that is drawn as a dashed line over a series.
    #[arg(long, value_name = "SERIES|NUMBER")]
    cap: Option<String>,
    /// Only rows that satisfy this condition, also with != < <= > or >=; may be repeated. An empty value stands for none.
    #[arg(long = "where", value_name = "COLUMN=VALUE")]
    only: Vec<String>,
    /// Only this time of a series or a Gantt chart (s).
    #[arg(long, value_name = "FROM..TO", value_parser = range)]
    between: Option<(f64, f64)>,
    /// Axes with a logarithmic scale.
    #[arg(long, value_enum, value_name = "AXIS", value_delimiter = ',')]
    log: Vec<PlotAxis>,
    /// Axes whose scale each panel of --facet has for itself; all panels share the others.
    #[arg(long, value_enum, value_name = "AXIS", value_delimiter = ',', requires = "facet")]
    free: Vec<PlotAxis>,
    /// Column of a Pareto front whose great values are better; may be repeated.
    #[arg(long, value_name = "COLUMN")]
    maximise: Vec<String>,
    /// Width of the figure: a column of a paper (3.5 in) or its page (7.16 in).
    /// By default a column; some figures of papers need the page.
    #[arg(long, value_enum)]
    width: Option<FigureWidth>,
    /// JSON file with keys of Vega-Lite's config that change the look, such as {"axis": {"grid": false}}.
    #[arg(long, value_name = "FILE")]
    style: Option<PathBuf>,
    /// Write to this file; its ending says the format. Without a file, the figure goes to a pipe.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The format, where no ending says it; svg by default.
    #[arg(long, value_parser = formats())]
    pub format: Option<String>,
    /// Show the file in the program that the desktop has for it.
    #[arg(long, requires = "output")]
    pub open: bool,
    /// Write the file again as rows arrive, until the experiment ends.
    #[arg(long, requires = "output")]
    pub watch: bool,
}

impl PlotArgs {
    /// Name of the experiment; empty only with --presets.
    pub fn experiment(&self) -> &str {
        self.experiment.as_deref().unwrap_or_default()
    }
}

#[cfg(feature = "figures")]
impl PlotArgs {
    /// The chart, with the columns that it needs.
    pub fn chart(&self, options: &PlotOptions) -> Result<Chart, Failure> {
        let kind = self.figure.ok_or_else(|| failure!(Usage, "choose a figure: --figure cdf, or --preset NAME"))?;
        let name = kind.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned());
        let columns = Columns {
            x: self.x.clone(),
            y: self.y.clone(),
            value: self.value.clone(),
            cap: self.cap.clone(),
            between: self.between,
            maximise: self.maximise.clone(),
        };
        Chart::of(&name, columns, options)
    }

    /// How the figure is drawn.
    pub fn options(&self) -> Result<PlotOptions, Failure> {
        let PlotArgs { table, colour, facet, only, log, free, width, style, .. } = self;
        let style = style.as_ref().map(|file| {
            let wrong = |error: &dyn std::fmt::Display| failure!(Usage, "{}: {error}", file.display());
            let text = std::fs::read_to_string(file).map_err(|error| wrong(&error))?;
            serde_json::from_str(&text).map_err(|error| wrong(&error))
        });
        Ok(PlotOptions {
            table: *table,
            colour: colour.clone(),
            facet: facet.clone(),
            only: only.clone(),
            log_x: log.contains(&PlotAxis::X),
            log_y: log.contains(&PlotAxis::Y),
            free_x: free.contains(&PlotAxis::X),
            free_y: free.contains(&PlotAxis::Y),
            width: width.map(|width| if width == FigureWidth::Page { Width::Page } else { Width::Column }),
            style: style.transpose()?,
        })
    }
}

/// Two numbers such as 0..3600.
fn range(text: &str) -> Result<(f64, f64), String> {
    let ends = text.split_once("..").and_then(|(from, to)| Some((from.parse::<f64>().ok()?, to.parse::<f64>().ok()?)));
    match ends {
        Some((from, to)) if from < to => Ok((from, to)),
        _ => Err("a time is two numbers of seconds, such as 0..3600".to_owned()),
    }
}
