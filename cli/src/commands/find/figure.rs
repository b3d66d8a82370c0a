//! The map of the candidates as a figure: tried candidates, coloured by verdict.

use std::collections::BTreeSet;
use std::path::Path;

use powersweep::find::{Found, Search};
use powersweep::origin;
use powersweep::plot::{Format, titled};
use powersweep_dataset::rows::is_number;
use powersweep_dataset::source::type_of;
use powersweep_dataset::{Column, Frame};
use powersweep_engine::Value;
use powersweep_figures::kinds::{Axes, points};
use powersweep_figures::{Look, Width};
use powersweep_results::Table as Stored;
use serde_json::json;

use super::shown::verdict;
use crate::commands::plot;
use crate::exit::Failure;

/// Name of the column of verdicts.
const VERDICT: &str = "verdict";
/// Name of the column of groups.
const GROUP: &str = "group";
/// Name of the column that has a value for the answers.
const ANSWER: &str = "answer";
/// Name of the column of the limit.
const LIMIT: &str = "limit";

/// Refuses a file whose ending says no format.
pub(super) fn check(output: &Path) -> Result<(), Failure> {
    Format::of(&output.to_string_lossy()).map(|_| ())
}

/// Draws the map. With one parameter, the vertical axis is the mean of the first condition's metric, or of the goal; with
/// several ones it is the second parameter. Groups, and values of further parameters, have panels of their own. A dashed line is the
/// limit of the condition, a ring the answer of a group.
pub(super) async fn draw(search: &Search, found: &Found, is_relative: bool, output: &Path) -> Result<(), Failure> {
    let tried = || found.groups.iter().flat_map(|group| group.tried().map(move |tried| (group, tried)));
    let first = tried().find_map(|(_, candidate)| candidate.means.as_ref());
    let of_conditions = first.iter().flat_map(|means| &means.conditions).map(|condition| &condition.column);
    let mut measured = of_conditions.chain([&found.goal.column]).filter(|column| found.columns.contains(column));
    let of_y = measured.find(|column| is_measured(column)).map(String::as_str);
    let mut columns: Vec<Vec<Value>> = vec![Vec::new(); found.axes.len().min(2)];
    let (mut means, mut lows, mut highs) = (Vec::new(), Vec::new(), Vec::new());
    let (mut verdicts, mut groups, mut answers) = (Vec::new(), Vec::new(), Vec::new());
    for (group, candidate) in tried() {
        let Some(of) = &candidate.means else { continue };
        for (column, (_, value)) in columns.iter_mut().zip(&candidate.values.0) {
            column.push(value.clone());
        }
        let estimate = found.estimate(of, of_y.unwrap_or_default());
        means.push(estimate.mean);
        lows.push(estimate.ends.map(|ends| ends.0));
        highs.push(estimate.ends.map(|ends| ends.1));
        verdicts.push(verdict(candidate, of));
        let is_answer = group.answer.as_ref().is_some_and(|answer| answer.values == candidate.values);
        answers.push(is_answer.then_some(ANSWER));
        let others = candidate.values.0.iter().skip(2).map(|(name, value)| format!(", {name}={value}"));
        groups.push(group.group.to_string() + &others.collect::<String>());
    }
    let panels = groups.iter().any(|group| *group != groups[0]);
    let rows = verdicts.len();
    let mut table = Frame::of([
        Column::texts(VERDICT, VERDICT, verdicts),
        Column::texts(GROUP, "", groups),
        Column::optional_texts(ANSWER, "", answers),
    ]);
    let axes: Vec<&str> = found.axes.iter().map(|axis| axis.name).take(2).collect();
    for (name, values) in axes.iter().zip(columns) {
        table.push(titled(&numbers_or_texts(name, &values)));
    }
    let mut shown = match (axes.as_slice(), of_y) {
        ([x, y], _) => Axes::of(x, y),
        (_, None) => Axes::of(axes[0], GROUP),
        (_, Some(of_y)) => {
            let [low, high] = ["low", "high"].map(|end| format!("{of_y}_{end}"));
            table.push(titled(&Column::numbers(of_y, "", found.unit(of_y, is_relative), means)));
            table.push(titled(&Column::numbers(&low, "", "", lows)));
            table.push(titled(&Column::numbers(&high, "", "", highs)));
            let limited = first.iter().flat_map(|means| &means.conditions).find(|condition| condition.column == of_y);
            let limit = limited.and_then(|condition| Some((condition.limit?, &condition.condition)));
            if let Some((limit, condition)) = limit {
                table.push(Column::numbers(LIMIT, condition, "", vec![limit; rows]));
            }
            let limit = limit.map(|_| LIMIT.to_owned());
            Axes { interval: Some((low, high)), limit, ..Axes::of(axes[0], of_y) }
        }
    };
    shown.colour = Some(VERDICT.to_owned());
    shown.answer = Some(ANSWER.to_owned());
    shown.facet = (panels && shown.y != GROUP).then(|| GROUP.to_owned());
    let mut figure = points(&table, &shown, &Look::of(Width::Page))?;
    if let Some(origin) = origin(search).await? {
        figure.set_origin(&origin);
    }
    plot::write_figure(figure, output, &found.experiment)
}

/// What the rows come from; `None` if there are none.
async fn origin(search: &Search) -> Result<Option<serde_json::Value>, Failure> {
    let Some(datasets) = search.datasets().await? else { return Ok(None) };
    Ok(Some(json!(origin::of(&datasets, &BTreeSet::from([search.name().to_owned()])).await?)))
}

/// Whether a column of tasks or of accounts has numbers, and so a mean.
fn is_measured(column: &str) -> bool {
    type_of(Stored::Accounts, column).is_ok_and(|of| is_number(&of))
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
