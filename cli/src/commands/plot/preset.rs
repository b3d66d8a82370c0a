//! A figure of a paper, from the rows of its experiments.

use powersweep_claims::presets::Axis;
use powersweep_claims::{Preset, Role, Row, Shape};
use powersweep_dataset::Datasets;
use powersweep_figures::kinds::{self, Axes};
use powersweep_figures::{Column, Figure, Look, Table, Values, Width};

use super::kinds::{Made, gantt, refused};
use super::read::Source;
use crate::exit::{Failure, failure};
use crate::presets::Chosen;

/// Names of columns of a figure.
const VALUE: &str = "value";
const LOW: &str = "value_low";
const HIGH: &str = "value_high";
/// Name of the column that tells published numbers from ours, and its value.
const PUBLISHED: &str = "published";

/// Reads the rows and builds the figure.
pub(super) async fn figure(chosen: &Chosen, datasets: &Datasets, look: &Look) -> Result<Made, Failure> {
    match chosen.preset.shape {
        Shape::Jobs => jobs(chosen, datasets, look).await,
        _ => Ok((of_rows(&chosen.preset, &chosen.rows(datasets).await?, look)?, Vec::new())),
    }
}

/// A figure of a paper in its usual width, with what it is drawn from.
pub async fn of_paper(chosen: &Chosen, datasets: &Datasets) -> Result<Figure, Failure> {
    let look = Look::of(if chosen.preset.wide { Width::Page } else { Width::Column });
    let (mut figure, _) = figure(chosen, datasets, &look).await?;
    figure.set_origin(&chosen.origin(datasets).await?);
    Ok(figure)
}

/// The figure of some values.
fn of_rows(preset: &Preset, rows: &[Row], look: &Look) -> Result<Figure, Failure> {
    let axes = Axes {
        interval: rows.iter().any(|row| row.half_width.is_some()).then(|| (LOW.to_owned(), HIGH.to_owned())),
        colour: preset.colour.as_ref().map(name),
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
    let drawn = match preset.shape {
        Shape::Bars => kinds::bars(&table_of(&others), &axes, look),
        Shape::Lines => kinds::lines(&table_of(&others), &axes, look),
        Shape::Steps if preset.stacked => kinds::stacked(&table_of(&others), &axes, look),
        Shape::Steps => {
            let caps = (!caps.is_empty()).then(|| table_of(&caps));
            kinds::steps(&table_of(&others), caps.as_ref(), &axes, look)
        }
        Shape::Jobs | Shape::Table => {
            return Err(failure!(
                Usage,
                "{} is a table: `powersweep results EXPERIMENT --preset {}` shows it",
                preset.source(),
                preset.name
            ));
        }
    };
    drawn.map_err(refused)
}

/// The name of an axis in the table: of its columns.
fn name(axis: &Axis) -> String {
    axis.columns.join("_")
}

fn table(preset: &Preset, rows: &[&Row]) -> Table {
    let numbers: Option<Vec<Option<f64>>> = rows.iter().map(|row| row.x_value.map(Some)).collect();
    let texts = |of: fn(&Row) -> &String| rows.iter().map(|row| of(row).clone()).collect::<Vec<String>>();
    let x = match numbers.filter(|_| preset.shape != Shape::Bars) {
        Some(numbers) => Values::Numbers(numbers),
        None => Values::Texts(texts(|row| &row.x).into_iter().map(Some).collect()),
    };
    let titled =
        |axis: &Axis, values| Column { name: name(axis), title: axis.title.clone(), unit: axis.unit.clone(), values };
    let number = |name: &str, of: &dyn Fn(&Row) -> Option<f64>| Column {
        name: name.to_owned(),
        title: preset.y.title.clone(),
        unit: preset.y.unit.clone(),
        values: Values::Numbers(rows.iter().map(|row| of(row)).collect()),
    };
    let some = |texts: Vec<String>| Values::Texts(texts.into_iter().map(Some).collect());
    let mut columns = vec![titled(&preset.x, x)];
    columns.extend(preset.colour.iter().map(|axis| titled(axis, some(texts(|row| &row.colour)))));
    columns.extend(preset.facet.iter().map(|axis| titled(axis, some(texts(|row| &row.facet)))));
    columns.push(number(VALUE, &|row| Some(row.y)));
    columns.push(number(LOW, &|row| Some(row.y - row.half_width?)));
    columns.push(number(HIGH, &|row| Some(row.y + row.half_width?)));
    let published = |row: &&Row| (row.role == Role::Published).then(|| PUBLISHED.to_owned());
    columns.push(Column {
        values: Values::Texts(rows.iter().map(published).collect()),
        ..Column::texts(PUBLISHED, "", Vec::<String>::new())
    });
    Table::new(columns)
}

/// Jobs on processors, under the preset's conditions.
async fn jobs(chosen: &Chosen, datasets: &Datasets, look: &Look) -> Result<Made, Failure> {
    let preset = &chosen.preset;
    let only = preset.jobs.iter().filter_map(|(column, values)| Some(format!("{column}={}", values.first()?)));
    let only: Vec<String> = only.collect();
    let source = Source { datasets, experiment: chosen.experiment(&preset.manifest), only: &only };
    let (colour, facet) = (preset.colour.as_ref().map(name), preset.facet.as_ref().map(name));
    let found = gantt(&source, colour.as_deref(), facet.as_deref(), None, look).await;
    found.map_err(|failure| chosen.lacks(&preset.manifest, failure))
}
