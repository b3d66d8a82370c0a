//! A figure of a paper, from the rows of its experiments.

use powersweep_claims::presets::{Axis, NONE};
use powersweep_claims::{Preset, Role, Row, Shape};
use powersweep_dataset::grouped::FooterFacts;
use powersweep_dataset::{Column, Datasets, Error, Frame, failure};
use powersweep_figures::kinds::{self, Axes};
use powersweep_figures::{Figure, Look, Width};
use serde_json::json;

use super::PlotOptions;
use super::read::Request;
use crate::papers::Chosen;

/// Names of columns of a figure.
const VALUE: &str = "value";
const LOW: &str = "value_low";
const HIGH: &str = "value_high";
/// Name of the column that tells published numbers from ours, and its value.
const PUBLISHED: &str = "published";

impl Chosen {
    /// The usual width.
    pub(crate) fn width(&self) -> Width {
        if self.preset.wide { Width::Page } else { Width::Column }
    }

    /// Reads the rows and builds the figure.
    pub(crate) async fn figure(&self, datasets: &Datasets, look: &Look) -> Result<Figure, Error> {
        let mut figure = match self.preset.shape {
            Shape::Jobs => self.jobs(datasets, look).await?,
            _ => {
                let rows = self.rows(datasets).await?;
                of_rows(&self.titled(datasets).await?, self.levels.clone(), &rows, look)?
            }
        };
        figure.set_origin(&json!(self.origin(datasets).await?));
        Ok(figure)
    }

    /// Jobs on processors, under the preset's conditions.
    async fn jobs(&self, datasets: &Datasets, look: &Look) -> Result<Figure, Error> {
        let Preset { jobs, colour, facet, manifest, .. } = &self.preset;
        let only = jobs.iter().filter_map(|(column, values)| Some(format!("{column}={}", values.first()?)));
        let (colour, facet) = (colour.as_ref().map(name), facet.as_ref().map(name));
        let options = PlotOptions { colour, facet, only: only.collect(), ..PlotOptions::default() };
        let experiment = self.experiment(manifest);
        let facts = &FooterFacts::read(datasets, experiment).await.map_err(|error| self.lacks(manifest, error))?;
        let request = Request { datasets, experiment, options: &options, look, facts };
        request.gantt(None).await.map_err(|error| self.lacks(manifest, error))
    }
}

/// The figure of some values. `levels`: the values of its colours in all figures of the paper.
fn of_rows(preset: &Preset, levels: Vec<String>, rows: &[Row], look: &Look) -> Result<Figure, Error> {
    let axes = Axes {
        interval: rows.iter().any(|row| row.ends.is_some()).then(|| (LOW.to_owned(), HIGH.to_owned())),
        colour: preset.colour.as_ref().map(name),
        levels,
        facet: preset.facet.as_ref().map(name),
        log_x: preset.x.log,
        log_y: preset.y.log,
        free_x: preset.x.free,
        free_y: preset.y.free,
        published: rows.iter().any(|row| row.role == Role::Published).then(|| PUBLISHED.to_owned()),
        ..Axes::of(&name(&preset.x), VALUE)
    };
    let (caps, others): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(|row| row.role == Role::Cap);
    let table_of = |rows: &[&Row]| table(preset, rows);
    match preset.shape {
        Shape::Bars => kinds::bars(&table_of(&others), &axes, look),
        Shape::Lines => kinds::lines(&table_of(&others), &axes, look),
        Shape::Steps if preset.stacked => kinds::stacked(&table_of(&others), &axes, look),
        Shape::Steps => {
            let caps = (!caps.is_empty()).then(|| table_of(&caps));
            kinds::steps(&table_of(&others), caps.as_ref(), &axes, look)
        }
        Shape::Jobs | Shape::Table => {
            Err(failure!(Usage, "{} is a table: `powersweep results` shows it", preset.source()))
        }
    }
}

/// The name of an axis in the table: of its columns.
fn name(axis: &Axis) -> String {
    axis.columns.join("_")
}

fn table(preset: &Preset, rows: &[&Row]) -> Frame {
    let named = |axis: &Axis, of: fn(&Row) -> &String| {
        Column::texts(&name(axis), &axis.title, rows.iter().map(|row| of(row))).titled(&axis.title, &axis.unit)
    };
    let number = |name: &str, of: &dyn Fn(&Row) -> Option<f64>| {
        Column::numbers(name, &preset.y.title, &preset.y.unit, rows.iter().map(|row| of(row)))
    };
    // A line leaves out rows without a value of its axis, as other figures do.
    let is_without = |row: &Row| preset.shape == Shape::Lines && row.x == NONE;
    let places = rows.iter().map(|row| (row.x_value.is_some() || is_without(row)).then_some(row.x_value));
    let places: Option<Vec<Option<f64>>> = places.collect();
    let is_numeric = |places: &Vec<Option<f64>>| preset.shape != Shape::Bars && places.iter().any(Option::is_some);
    let x = match places.filter(is_numeric) {
        Some(places) => Column::numbers(&name(&preset.x), &preset.x.title, &preset.x.unit, places),
        None => named(&preset.x, |row| &row.x),
    };
    let colour = preset.colour.iter().map(|axis| named(axis, |row| &row.colour));
    let facet = preset.facet.iter().map(|axis| named(axis, |row| &row.facet));
    let published = rows.iter().map(|row| (row.role == Role::Published).then_some(PUBLISHED));
    let values = [
        number(VALUE, &|row| Some(row.y)),
        number(LOW, &|row| row.ends.map(|(low, _)| low)),
        number(HIGH, &|row| row.ends.map(|(_, high)| high)),
        Column::optional_texts(PUBLISHED, "", published),
    ];
    Frame::of(std::iter::once(x).chain(colour).chain(facet).chain(values))
}
