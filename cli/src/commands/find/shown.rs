//! The answers of a search, and the map of its candidates.

use comfy_table::CellAlignment;
use powersweep_dataset::cell::real;
use powersweep_dataset::search::{Estimate, Verdict};
use powersweep_engine::Value;
use serde_json::{Map, Value as Json, json};

use super::Search;
use super::grid::{Group, text};
use super::judge::{Judged, Progress, Rows};
use crate::args::FindArgs;
use crate::exit::{Exit, Failure, Outcome, failure};
use crate::screen;

/// Exceptions shown of each line.
const EXCEPTIONS_SHOWN: usize = 5;

/// Refuses a figure that cannot be drawn, before anything runs.
pub(super) fn check(args: &FindArgs) -> Result<(), Failure> {
    match &args.output {
        None => Ok(()),
        Some(output) => super::figure::check(output),
    }
}

/// Shows the answers; an error if no group has one.
pub(super) fn show(search: &Search<'_>, rows: &Rows, progress: &[Progress], ran: usize) -> Outcome {
    if let Some(output) = &search.args.output {
        super::figure::draw(search, rows, output)?;
    }
    let exceptions: Vec<String> = search
        .grid
        .groups
        .iter()
        .zip(progress)
        .flat_map(|(group, progress)| exceptions(search, group, progress))
        .collect();
    match search.args.json {
        true => screen::print_json(document(search, rows, progress, ran))?,
        false => screen::print(&words(search, rows, progress, ran))?,
    };
    exceptions.iter().for_each(|line| screen::note(&format!("powersweep: {line}")));
    if progress.iter().all(|progress| progress.answer.is_none()) {
        return Err(failure!(Failure, "no candidate satisfies the conditions"));
    }
    Ok(Exit::Done)
}

fn words(search: &Search<'_>, rows: &Rows, progress: &[Progress], ran: usize) -> String {
    let grid = &search.grid;
    let answers = grid.groups.iter().zip(progress).map(|(group, progress)| (group, progress.answer));
    let answers = table(search, rows, answers);
    let tried = grid.groups.iter().flat_map(|group| {
        let has_rows = move |candidate: &usize| search.question.known(group, *candidate, rows).is_some();
        (0..grid.candidates.len()).filter(has_rows).map(move |candidate| (group, Some(candidate)))
    });
    let tried: Vec<(&Group, Option<usize>)> = tried.collect();
    let (all, count) = (candidates(search), tried.len());
    let has_uncertain = tried.iter().any(|(group, candidate)| {
        let judged = candidate.and_then(|candidate| search.question.known(group, candidate, rows));
        judged.is_some_and(|judged| !judged.verdict.is_certain && !judged.is_partial)
    });
    let direction = if search.question.is_maximised { "greatest" } else { "least" };
    let conditions = match search.question.texts.is_empty() {
        true => String::new(),
        false => format!(" with {}", search.question.texts.join(" and ")),
    };
    let mut text = format!("The {direction} {}{conditions}:\n{answers}\n\n", search.question.goal);
    text += &format!("Candidates that were tried, {count} of {all}:\n{}\n\n", table(search, rows, tried.into_iter()));
    if has_uncertain {
        text += "Uncertain: the 95% interval of a mean contains the limit, or there is one seed. The mean decides; more seeds \
                 narrow the interval.\n";
    }
    for axis in &grid.axes {
        if let Some(step) = axis.default_step {
            text += &format!(
                "The values of {} have the step {}; FROM..TO:STEP sets another one.\n",
                axis.name,
                screen::number(step)
            );
        }
    }
    let (tasks, all) = (rows.len(), grid.tasks());
    text += &format!(
        "{tasks} of {all} tasks of the full grid ({}%) have run, {ran} of them now. Their manifest is {}, their experiment {}.",
        screen::number((1000.0 * tasks as f64 / all as f64).round() / 10.0),
        search.file.display(),
        search.name
    );
    text
}

/// Number of candidates of all groups.
fn candidates(search: &Search<'_>) -> usize {
    let groups = search.grid.groups.iter();
    groups.map(|group| group.tasks.iter().filter(|tasks| !tasks.is_empty()).count()).sum()
}

/// A line for each candidate; one without values for a group without an answer.
fn table<'a>(search: &Search<'_>, rows: &Rows, lines: impl Iterator<Item = (&'a Group, Option<usize>)>) -> String {
    let (grid, question) = (&search.grid, &search.question);
    let names = names(search);
    let mut table = screen::table();
    let axis = |axis: &powersweep_experiments::Over| match axis.unit {
        "" => axis.name.to_owned(),
        unit => format!("{} ({unit})", axis.name),
    };
    let is_axis = |column: &str| grid.axes.iter().any(|axis| axis.name == column);
    let columns = question.columns.iter().filter(|column| !is_axis(column));
    let headings = names.iter().cloned().chain(grid.axes.iter().map(axis)).chain(columns.clone().cloned());
    table.set_header(headings.chain(["seeds".to_owned(), "verdict".to_owned()]));
    for (group, candidate) in lines {
        let named = names.iter().map(|name| {
            let value = group.name.iter().find(|(known, _)| known == name);
            value.map_or_else(String::new, |(_, value)| value.to_string())
        });
        let mut cells: Vec<String> = named.collect();
        let known = candidate.and_then(|candidate| Some((candidate, question.known(group, candidate, rows)?)));
        match known {
            Some((candidate, judged)) => {
                cells.extend(grid.candidates[candidate].iter().map(Value::to_string));
                cells.extend(columns.clone().map(|column| shown(estimate(search, &judged, column))));
                cells.push(format!("{} of {}", judged.seeds, group.tasks[candidate].len()));
                cells.push(verdict(&judged).to_owned());
            }
            None => {
                cells.extend(grid.axes.iter().map(|_| String::new()));
                cells.extend(columns.clone().map(|_| String::new()));
                cells.extend([String::new(), "no feasible candidate".to_owned()]);
            }
        }
        table.add_row(cells);
    }
    let numbers = names.len()..names.len() + grid.axes.len() + columns.count();
    for (_, column) in table.column_iter_mut().enumerate().filter(|(at, _)| numbers.contains(at)) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.to_string()
}

/// The columns that tell groups apart.
fn names(search: &Search<'_>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (name, _) in search.grid.groups.iter().flat_map(|group| &group.name) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

/// The estimate of a column that is read: the goal's, else that of its first condition.
pub(super) fn estimate(search: &Search<'_>, judged: &Judged, column: &str) -> Estimate {
    let of_goal = judged.goal.filter(|_| column == search.question.goal);
    let mut conditions = search.question.conditions.iter().zip(&judged.conditions);
    let of_condition =
        || conditions.find(|(condition, _)| condition.column == column).map(|(_, (estimate, _))| *estimate);
    of_goal.or_else(of_condition).unwrap_or(Estimate { mean: None, half_width: None })
}

fn shown(estimate: Estimate) -> String {
    match (estimate.mean, estimate.half_width) {
        (Some(mean), Some(half)) => format!("{} ± {}", screen::number(mean), screen::number(half)),
        (Some(mean), None) => screen::number(mean),
        (None, _) => String::new(),
    }
}

/// The verdict in words.
pub(super) fn verdict(judged: &Judged) -> &'static str {
    match (judged.is_partial, judged.verdict.holds, judged.verdict.is_certain) {
        (true, ..) => "dropped",
        (false, true, true) => "feasible",
        (false, false, true) => "infeasible",
        (false, true, false) => "uncertain, feasible by mean",
        (false, false, false) => "uncertain, infeasible by mean",
    }
}

/// What contradicts monotone feasibility in a group.
fn exceptions(search: &Search<'_>, group: &Group, progress: &Progress) -> Vec<String> {
    let Some(axis) = search.question.goal_axis else { return Vec::new() };
    let name = search.grid.axes[axis].name;
    let value = |candidate: &usize| search.grid.candidates[*candidate][axis].to_string();
    let line = |(feasible, infeasible): &(usize, Vec<usize>)| {
        let shown: Vec<String> = infeasible.iter().take(EXCEPTIONS_SHOWN).map(value).collect();
        let more = if infeasible.len() > shown.len() { ", …" } else { "" };
        format!(
            "{}: feasibility is not monotone in {name}: {} is feasible, but not {}{more}. A value that was not tried may be \
             better: run all values with `powersweep run`, then ask `powersweep best`",
            text(&group.name),
            value(feasible),
            shown.join(", "),
        )
    };
    progress.exceptions.iter().map(line).collect()
}

fn document(search: &Search<'_>, rows: &Rows, progress: &[Progress], ran: usize) -> Json {
    let (grid, question) = (&search.grid, &search.question);
    let groups = grid.groups.iter().zip(progress).map(|(group, progress)| {
        let one = |candidate: usize| candidate_json(search, rows, group, candidate);
        let present = (0..grid.candidates.len()).filter(|candidate| !group.tasks[*candidate].is_empty());
        let exceptions = progress.exceptions.iter().map(|(feasible, infeasible)| {
            json!({
                "feasible": values_json(search, *feasible),
                "infeasible": infeasible.iter().map(|candidate| values_json(search, *candidate)).collect::<Vec<_>>(),
            })
        });
        json!({
            "group": group.name.iter().map(|(name, value)| (name.clone(), value_json(value))).collect::<Map<_, _>>(),
            "answer": progress.answer.map(one),
            "exceptions": exceptions.collect::<Vec<_>>(),
            "candidates": present.map(one).collect::<Vec<_>>(),
        })
    });
    json!({
        "experiment": search.name,
        "manifest": search.file.to_string_lossy(),
        "goal": {
            "column": question.goal,
            "direction": if question.is_maximised { "maximise" } else { "minimise" },
            "method": if question.goal_axis.is_some() { "bisection" } else { "successive halving" },
        },
        "conditions": question.texts,
        "tasks_of_grid": grid.tasks(),
        "tasks_with_rows": rows.len(),
        "tasks_run": ran,
        "groups": groups.collect::<Vec<_>>(),
    })
}

fn values_json(search: &Search<'_>, candidate: usize) -> Map<String, Json> {
    let values = search.grid.axes.iter().zip(&search.grid.candidates[candidate]);
    values.map(|(axis, value)| (axis.name.to_owned(), value_json(value))).collect()
}

fn value_json(value: &Value) -> Json {
    match value {
        Value::Bool(value) => json!(value),
        Value::Int(value) => json!(value),
        Value::Real(value) => real(*value),
        Value::Text(value) => json!(value),
        Value::Reals(values) => json!(values),
    }
}

fn candidate_json(search: &Search<'_>, rows: &Rows, group: &Group, candidate: usize) -> Json {
    let values = values_json(search, candidate);
    let Some(judged) = search.question.known(group, candidate, rows) else {
        return json!({ "values": values, "seeds": 0, "verdict": "not tried" });
    };
    let number = |value: Option<f64>| value.map_or(Json::Null, real);
    let mean = |estimate: Estimate| json!({ "mean": number(estimate.mean), "ci95": number(estimate.half_width) });
    let conditions = search.question.texts.iter().zip(&judged.conditions).map(|(text, (estimate, verdict))| {
        let mut condition = mean(*estimate);
        condition["condition"] = json!(text);
        condition["verdict"] = json!(short(*verdict));
        condition
    });
    json!({
        "values": values,
        "seeds": judged.seeds,
        "goal": judged.goal.map(mean),
        "conditions": conditions.collect::<Vec<_>>(),
        "verdict": of_candidate(&judged),
        "holds_for_mean": judged.verdict.holds,
    })
}

/// The verdict of a candidate in one word.
fn of_candidate(judged: &Judged) -> &'static str {
    if judged.is_partial { "dropped" } else { short(judged.verdict) }
}

/// A verdict in one word.
fn short(verdict: Verdict) -> &'static str {
    match (verdict.holds, verdict.is_certain) {
        (_, false) => "uncertain",
        (true, true) => "feasible",
        (false, true) => "infeasible",
    }
}
