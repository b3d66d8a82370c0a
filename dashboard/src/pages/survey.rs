//! What the rows of an experiment show together: the plot of two metrics, its front as a table, and the effect of each
//! axis.

use maud::{Markup, html};
use powersweep_dataset::words::{count, number};

use super::link;
use crate::plot::{named, plot, sampled};
use crate::survey::{Choice, Level, Survey};

/// Rows of the table of the front.
const FRONT_MAX: usize = 30;
/// Values of an axis.
const VALUES_MAX: usize = 24;
/// Values of all axes together. The page stays small.
const ALL_VALUES_MAX: usize = 120;

/// Plot and effects. `choose`: the name of the experiment, for the form and the links of a page that is not frozen.
pub(super) fn section(survey: &Survey, choose: Option<&str>) -> Markup {
    let choice = &survey.choice;
    let is_empty = survey.shown.rows == 0;
    html! {
        h2 { (choice.y) " against " (choice.x) }
        @if let Some(name) = choose { (form(survey, name)) }
        (sampled(survey))
        @if is_empty {
            p.empty { "No task has a row yet. The plot fills in while tasks end." }
        } @else if survey.shown.combinations == 0 {
            p.empty { "No task has a value in both columns." }
        } @else {
            (plot(survey))
            (front(survey, choose))
        }
        @if !is_empty { (effects(survey, choose)) }
    }
}

/// The form that chooses columns. It stays unchanged while the rest of the page changes; when there are more axes, its id
/// makes it another form.
fn form(survey: &Survey, name: &str) -> Markup {
    let Choice { x, y, x_up, y_up, by, of } = &survey.choice;
    let set = |field: &str, words: &str, chosen: &str| {
        html! { label { (words) " " input.wide name=(field) list="metrics" value=(chosen) required; } }
    };
    html! {
        form.choose id=(format!("choose{}", survey.axes.len())) action="experiment" hx-morph-skip {
            input type="hidden" name="name" value=(name);
            (set("y", "Up", y))
            label { input type="checkbox" name="yup" value="1" checked[*y_up]; " more is better" }
            (set("x", "Across", x))
            label { input type="checkbox" name="xup" value="1" checked[*x_up]; " more is better" }
            @if !survey.axes.is_empty() {
                label { "Marks by " select name="by" { @for axis in &survey.axes { option selected[axis == by] { (axis) } } } }
            }
            (set("of", "Effects on", of))
            button { "Show" }
        }
        // One list serves the three fields; a list in each of them would be a fifth of the page.
        datalist id="metrics" { @for metric in &survey.metrics { option { (metric) } } }
    }
}

/// The points of the front in words.
fn front(survey: &Survey, choose: Option<&str>) -> Markup {
    let (front, choice) = (&survey.shown.front, &survey.choice);
    html! {
        details open[choose.is_none()] {
            summary { "The Pareto front as a table: " (count(front.len() as u64, "combination")) }
            div.table.narrow tabindex="0" role="region" aria-label="Pareto front" { table {
                thead { tr {
                    th scope="col" { "First task" }
                    th.n scope="col" { (named(survey, &choice.x)) } th.n scope="col" { (named(survey, &choice.y)) }
                    th.n scope="col" { "Seeds" }
                    @if survey.by().is_some() { th scope="col" { (choice.by) } }
                } }
                tbody { @for point in front.iter().take(FRONT_MAX) { tr {
                    th scope="row" {
                        @let task = format!("task_index={}", point.index);
                        @match choose {
                            Some(name) => a href=(link("results", &[("name", name), ("where", &task)])) { (point.index) },
                            None => (point.index),
                        }
                    }
                    td.n { (number(point.x)) } td.n { (number(point.y)) } td.n { (point.tasks) }
                    @if survey.by().is_some() { td { (point.group) } }
                } } }
            } }
            @if front.len() > FRONT_MAX { p.soft { "… and " (count((front.len() - FRONT_MAX) as u64, "more combination")) "." } }
        }
    }
}

/// A table for each axis.
fn effects(survey: &Survey, choose: Option<&str>) -> Markup {
    let all = survey.shown.mean;
    // Of many axes, the first ones have all their values.
    let mut left = ALL_VALUES_MAX;
    let tables = survey.axes.iter().zip(&survey.shown.effects).map(|(axis, levels)| {
        let shown = VALUES_MAX.min(left).min(levels.len());
        left -= shown;
        (axis, levels, shown)
    });
    let tables: Vec<_> = tables.filter(|(.., shown)| *shown > 0).collect();
    html! {
        h2 { "Effect of each axis on " (named(survey, &survey.choice.of)) }
        @if let Some(mean) = all.value() {
            p.soft {
                "Each row has the mean over " strong { "n" } " combinations of the other axes. A combination counts with its mean over \
                 the seeds that have ended. The mean of all " (count(all.count, "combination")) " is " (number(mean)) ". A difference \
                 compares " strong { "pairs" } ": combinations that are equal in every other axis. Hence it may not be that of the means."
            }
            @if survey.axes.is_empty() { p.empty { "No axis has two values yet." } }
            div.effects { @for (axis, levels, shown) in &tables { (table(axis, levels, *shown, choose)) } }
            @if tables.len() < survey.axes.len() {
                p.soft { "… and " (survey.axes.len() - tables.len()) " more: the page shows " (ALL_VALUES_MAX) " values of all axes together." }
            }
        } @else { p.empty { "No task has a value in this column." } }
    }
}

/// A value for people.
fn words(text: &str) -> &str {
    if text.is_empty() { "none" } else { text }
}

fn table(axis: &str, levels: &[Level], shown: usize, choose: Option<&str>) -> Markup {
    let most = levels.iter().filter_map(|level| level.mean.value()).fold(0.0, f64::max);
    let first = levels.first().map_or("", |level| words(&level.text));
    let rows = levels.iter().take(shown);
    let is_alone = |level: &Level| level.pairs == 0 && level.mean.count > 0;
    let has_alone = rows.clone().skip(1).any(is_alone);
    html! { div.table.narrow {
        table {
            caption { (axis) }
            thead { tr { th scope="col" { "Value" } th.n scope="col" { "Mean" } th.n scope="col" { "n" } th.n scope="col" { "vs. first" } th.n scope="col" { "pairs" } td {} } }
            tbody { @for (at, level) in rows.enumerate() {
                @let mean = level.mean.value();
                tr {
                    th scope="row" {
                        @let only = format!("{axis}={}", level.text);
                        @match choose {
                            Some(name) => a href=(link("results", &[("name", name), ("where", &only)])) { (words(&level.text)) },
                            None => (words(&level.text)),
                        }
                    }
                    td.n { @if let Some(mean) = mean { (number(mean)) } }
                    td.n { (level.mean.count) }
                    td.n { @match level.ratio {
                        Some(ratio) => (format!("{:+.1} %", (ratio - 1.0) * 100.0)),
                        None => @if at > 0 && is_alone(level) { "*" },
                    } }
                    td.n { @if at > 0 { (level.pairs) } }
                    td { @if let Some(share) = mean.map(|mean| mean / most).filter(|share| *share > 0.0) { (bar(share)) } }
                }
            } }
        }
        @if has_alone {
            p.soft {
                "* No combination with this value is equal to one with " (first) " in all other axes: the values belong to different policies and cannot be compared."
            }
        }
        @if levels.len() > shown { p.soft { "Only the first " (shown) " values of " (axis) " are shown." } }
    } }
}

/// A bar from zero; 1 is its greatest length.
fn bar(share: f64) -> Markup {
    html! {
        svg.bar viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true" { path d=(format!("M0 4h{:.0}", share * 100.0)) {} }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::survey::tests::{survey, survey_of};

    #[test]
    fn an_effect_has_mean_number_and_difference_of_each_value() {
        let found = survey(&[(1.0, 1.0, "a", 4.0), (2.0, 2.0, "a", 2.0), (1.0, 1.0, "b", 6.0)]);
        let html = section(&found, Some("e")).into_string();
        for text in [
            ">3</td><td class=\"n\">2</td><td class=\"n\"></td><td class=\"n\"></td>",
            ">6</td><td class=\"n\">1</td><td class=\"n\">+50.0 %</td><td class=\"n\">1</td>",
            "The mean of all 3 combinations is 4. A difference compares <strong>pairs</strong>",
        ] {
            assert!(html.contains(text), "{text} in {html}");
        }
        assert!(!html.contains("cannot be compared"), "{html}");
        assert!(html.contains("results?name=e&amp;where=policy%3Da"), "{html}");
        let frozen = section(&found, None).into_string();
        assert!(!frozen.contains("<a ") && !frozen.contains("<form"), "{frozen}");
    }

    #[test]
    fn values_of_different_policies_are_not_compared() {
        let rows = [(["easy", ""], [1.0, 1.0, 4.0]), (["pdrc", "0.5"], [1.0, 1.0, 6.0])];
        let html = section(&survey_of(["policy", "bound"], &rows), None).into_string();
        for text in [
            ">6</td><td class=\"n\">1</td><td class=\"n\">*</td><td class=\"n\">0</td>",
            "equal to one with easy in all other axes: the values belong to different policies and cannot be compared",
            "equal to one with 0.5 in all other axes: the values belong to different policies and cannot be compared",
        ] {
            assert!(html.contains(text), "{text} in {html}");
        }
        assert!(!html.contains(" %<"), "{html}");
    }

    #[test]
    fn a_sample_says_so() {
        let mut found = survey(&[(1.0, 1.0, "a", 4.0)]);
        assert!(!section(&found, None).into_string().contains("random sample"));
        found.shown.sample = Some((60_000, 4));
        let html = section(&found, None).into_string();
        assert!(html.contains("more than 25000 combinations. Points, front and effects are those of a random sample: 60000 combinations, one in 4."), "{html}");
    }

    #[test]
    fn empty_surveys_say_so() {
        assert!(section(&survey(&[]), None).into_string().contains("No task has a row yet"));
        let missing = section(&survey(&[(f64::NAN, 1.0, "a", f64::NAN)]), None).into_string();
        assert!(
            missing.contains("No task has a value in both columns")
                && missing.contains("No task has a value in this column")
        );
    }
}
