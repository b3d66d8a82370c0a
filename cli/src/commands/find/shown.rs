//! The answers of a search, and the map of its candidates.

use comfy_table::CellAlignment;
use powersweep::find::{Found, FoundCandidate, FoundGroup, FoundMeans};
use powersweep_dataset::search::Estimate;
use powersweep_dataset::titles;
use powersweep_engine::Value;
use powersweep_experiments::Over;
use powersweep_experiments::reading::add_new;

use crate::exit::{Exit, Kind, OrKind, Outcome, failure};
use crate::screen;

/// Exceptions shown of each line.
const EXCEPTIONS_SHOWN: usize = 5;

/// Shows the answers; an error if no group has one.
pub(super) fn show(found: &Found, is_relative: bool, as_json: bool) -> Outcome {
    match as_json {
        true => screen::print_json(serde_json::to_value(found).or_kind(Kind::Failure)?)?,
        false => screen::print(&words(found, is_relative))?,
    };
    found.groups.iter().for_each(|group| note_exceptions(found, group));
    if found.groups.iter().all(|group| group.answer.is_none()) {
        return Err(failure!(Failure, "no candidate satisfies the conditions"));
    }
    Ok(Exit::Done)
}

fn words(found: &Found, is_relative: bool) -> String {
    let answers = table(found, is_relative, found.groups.iter().map(|group| (group, group.answer.as_ref())));
    let tried: Vec<(&FoundGroup, Option<&FoundCandidate>)> =
        found.groups.iter().flat_map(|group| group.tried().map(move |candidate| (group, Some(candidate)))).collect();
    let all: usize = found.groups.iter().map(|group| group.candidates.len()).sum();
    let (count, has_uncertain) =
        (tried.len(), tried.iter().any(|(_, candidate)| candidate.is_some_and(|of| of.verdict == "uncertain")));
    let direction = if found.goal.direction == "maximise" { "greatest" } else { "least" };
    let conditions = match found.conditions.is_empty() {
        true => String::new(),
        false => format!(" with {}", found.conditions.join(" and ")),
    };
    let mut text = format!("The {direction} {}{conditions}:\n{answers}\n\n", found.goal.column);
    text +=
        &format!("Candidates that were tried, {count} of {all}:\n{}\n\n", table(found, is_relative, tried.into_iter()));
    if has_uncertain {
        let more = if found.drawn.is_none() { "; more seeds narrow the interval" } else { "" };
        text +=
            "Uncertain: the 95% interval of a mean or share contains the limit, or there is one seed. The mean decides";
        text += &format!("{more}.\n");
        found.too_few.iter().for_each(|sentence| text += &format!("{sentence}\n"));
    }
    found.drawn.iter().for_each(|sentence| text += &format!("Intervals: {sentence}.\n"));
    for axis in &found.axes {
        if let Some(step) = axis.default_step {
            text += &format!(
                "The values of {} have the step {}; FROM..TO:STEP sets another one.\n",
                axis.name,
                screen::number(step)
            );
        }
    }
    let (tasks, all) = (found.tasks_with_rows, found.tasks_of_grid);
    text += &format!(
        "{tasks} of {all} tasks of the full grid ({}%) have run, {} of them now. Their manifest is {}, their experiment {}.",
        screen::number((1000.0 * tasks as f64 / all as f64).round() / 10.0),
        found.tasks_run,
        found.manifest,
        found.experiment
    );
    text
}

/// A line for each candidate; one without values for a group without an answer.
fn table<'a>(
    found: &Found,
    is_relative: bool,
    lines: impl Iterator<Item = (&'a FoundGroup, Option<&'a FoundCandidate>)>,
) -> String {
    let names = names(found);
    let axis = |axis: &Over| titles::labelled(axis.name, axis.unit);
    let metric = |name: &String| titles::labelled(name, found.unit(name, is_relative));
    let headings = names.iter().map(|name| (*name).clone()).chain(found.axes.iter().map(axis));
    let mut table = screen::table();
    let headings = headings.chain(found.columns.iter().map(metric));
    table.set_header(headings.chain(["seeds", "verdict"].map(str::to_owned)));
    for (group, candidate) in lines {
        let named = names.iter().map(|name| group.group.get(name).map_or_else(String::new, Value::to_string));
        let mut cells: Vec<String> = named.collect();
        match candidate.and_then(|candidate| Some((candidate, candidate.means.as_ref()?))) {
            Some((candidate, means)) => {
                cells.extend(candidate.values.0.iter().map(|(_, value)| value.to_string()));
                cells.extend(found.columns.iter().map(|column| shown(found.estimate(means, column))));
                cells.push(format!("{} of {}", candidate.seeds, candidate.seeds_of_grid));
                cells.push(verdict(candidate, means).to_owned());
            }
            None => {
                cells.resize(names.len() + found.axes.len() + found.columns.len() + 1, String::new());
                cells.push("no feasible candidate".to_owned());
            }
        }
        table.add_row(cells);
    }
    let numbers = names.len()..names.len() + found.axes.len() + found.columns.len();
    for (_, column) in table.column_iter_mut().enumerate().filter(|(at, _)| numbers.contains(at)) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.to_string()
}

/// The columns that tell groups apart.
fn names(found: &Found) -> Vec<&String> {
    let mut names: Vec<&String> = Vec::new();
    add_new(&mut names, found.groups.iter().flat_map(|group| &group.group.0).map(|(name, _)| name));
    names
}

fn shown(estimate: Estimate) -> String {
    let Some(mean) = estimate.mean else { return String::new() };
    let shown = screen::number(mean);
    match estimate.ends {
        // Student's interval has the mean in its middle. The interval of a share of seeds is not symmetric.
        Some((low, high)) if ((low + high) / 2.0 - mean).abs() <= 1e-9 * (high - low) => {
            powersweep_dataset::text::with_half(mean, (high - low) / 2.0)
        }
        Some((low, high)) => format!("{shown} [{}, {}]", screen::number(low), screen::number(high)),
        None => shown,
    }
}

/// The verdict on a candidate in words.
pub(super) fn verdict(candidate: &FoundCandidate, means: &FoundMeans) -> &'static str {
    match (candidate.verdict, means.holds_for_mean) {
        ("uncertain", true) => "uncertain, feasible by mean",
        ("uncertain", false) => "uncertain, infeasible by mean",
        (verdict, _) => verdict,
    }
}

/// Says what contradicts monotone feasibility in a group.
fn note_exceptions(found: &Found, group: &FoundGroup) {
    let name = &found.goal.column;
    for exception in &group.exceptions {
        let infeasible = exception.infeasible.iter().filter_map(|values| values.get(name));
        let shown: Vec<String> = infeasible.take(EXCEPTIONS_SHOWN).map(Value::to_string).collect();
        let more = if exception.infeasible.len() > shown.len() { ", …" } else { "" };
        screen::note(&format!(
            "powersweep: {}: feasibility is not monotone in {name}: {} is feasible, but not {}{more}. A value that was not \
             tried may be better: run all values with `powersweep run`, then ask `powersweep best`",
            group.group,
            exception.feasible.get(name).map_or_else(String::new, Value::to_string),
            shown.join(", "),
        ));
    }
}
