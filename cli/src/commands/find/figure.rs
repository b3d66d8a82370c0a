//! The map of the candidates as a figure: tried candidates, coloured by verdict.

use std::collections::BTreeSet;
use std::path::Path;

use powersweep::block_on;
use powersweep_dataset::rows::is_number;
use powersweep_dataset::source::type_of;
use powersweep_dataset::{Column, Frame};
use powersweep_engine::Value;
use powersweep_figures::kinds::{Axes, points};
use powersweep_figures::{Look, Width};
use powersweep_results::Table as Stored;

use super::Search;
use super::grid::text;
use super::judge::Rows;
use super::shown::{estimate, verdict};
use crate::commands::plot;
use crate::exit::Failure;
use crate::origin;

/// Name of the column of verdicts.
const VERDICT: &str = "verdict";
/// Name of the column of groups.
const GROUP: &str = "group";

/// Refuses a file whose ending says no format.
pub(super) fn check(output: &Path) -> Result<(), Failure> {
    plot::format_of(output).map(|_| ())
}

/// Draws the map. With one parameter, the vertical axis is the mean of the first condition's metric, or of the goal; with
/// several ones it is the second parameter. Groups, and values of further parameters, have panels of their own.
pub(super) fn draw(search: &Search<'_>, rows: &Rows, output: &Path) -> Result<(), Failure> {
    let (grid, question) = (&search.grid, &search.question);
    let is_axis = |column: &&String| grid.axes.iter().any(|axis| axis.name == *column);
    let measured = question.conditions.iter().map(|condition| &condition.column).chain([&question.goal]);
    let of_y = measured.filter(|column| !is_axis(column)).find(|column| is_measured(column)).map(String::as_str);
    let mut columns: Vec<Vec<Value>> = vec![Vec::new(); grid.axes.len().min(2)];
    let (mut means, mut lows, mut highs) = (Vec::new(), Vec::new(), Vec::new());
    let (mut verdicts, mut groups) = (Vec::new(), Vec::new());
    for group in &grid.groups {
        for (candidate, values) in grid.candidates.iter().enumerate() {
            let Some(judged) = question.known(group, candidate, rows) else { continue };
            for (column, value) in columns.iter_mut().zip(values) {
                column.push(value.clone());
            }
            let found = estimate(search, &judged, of_y.unwrap_or_default());
            let end = |sign: f64| Some(found.mean? + sign * found.half_width?);
            means.push(found.mean);
            lows.push(end(-1.0));
            highs.push(end(1.0));
            verdicts.push(verdict(&judged));
            let others = grid.axes.iter().zip(values).skip(2).map(|(axis, value)| format!(", {}={value}", axis.name));
            groups.push(text(&group.name) + &others.collect::<String>());
        }
    }
    let panels = groups.iter().any(|group| *group != groups[0]);
    let mut table = Frame::of([Column::texts(VERDICT, VERDICT, verdicts), Column::texts(GROUP, "", groups)]);
    let axes: Vec<&str> = grid.axes.iter().map(|axis| axis.name).take(2).collect();
    for (name, values) in axes.iter().zip(columns) {
        table.push(plot::titled(&numbers_or_texts(name, &values)));
    }
    let mut shown = match (axes.as_slice(), of_y) {
        ([x, y], _) => Axes::of(x, y),
        (_, None) => Axes::of(axes[0], GROUP),
        (_, Some(of_y)) => {
            let [low, high] = ["low", "high"].map(|end| format!("{of_y}_{end}"));
            table.push(plot::titled(&Column::numbers(of_y, "", "", means)));
            table.push(plot::titled(&Column::numbers(&low, "", "", lows)));
            table.push(plot::titled(&Column::numbers(&high, "", "", highs)));
            Axes { interval: Some((low, high)), ..Axes::of(axes[0], of_y) }
        }
    };
    shown.colour = Some(VERDICT.to_owned());
    shown.facet = (panels && shown.y != GROUP).then(|| GROUP.to_owned());
    let mut figure = points(&table, &shown, &Look::of(Width::Page)).map_err(plot::refused)?;
    if let Some(origin) = origin(search)? {
        figure.set_origin(&origin);
    }
    plot::write_figure(figure, output, &search.name)
}

/// What the rows come from; `None` if there are none.
fn origin(search: &Search<'_>) -> Result<Option<serde_json::Value>, Failure> {
    block_on(async {
        let Some(datasets) = search.datasets().await? else { return Ok(None) };
        origin::of(&datasets, &BTreeSet::from([search.name.clone()])).await.map(Some)
    })
}

/// Whether a column has numbers, and so a mean.
fn is_measured(column: &str) -> bool {
    type_of(Stored::Tasks, column).is_ok_and(|of| is_number(&of))
}

/// Values of a parameter as a column: numbers, if all are finite ones.
fn numbers_or_texts(name: &str, values: &[Value]) -> Column {
    let number = |value: &Value| match value {
        Value::Int(value) => Some(*value as f64),
        Value::Real(value) => Some(*value).filter(|value| value.is_finite()),
        _ => None,
    };
    match values.iter().map(number).collect::<Option<Vec<f64>>>() {
        Some(numbers) => Column::numbers(name, "", "", numbers),
        None => Column::texts(name, "", values.iter().map(Value::to_string)),
    }
}
