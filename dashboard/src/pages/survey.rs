//! What the rows of an experiment show together: the plot of two metrics, its front as a table, and the effect of each
//! axis.

use maud::{Markup, html};
use powersweep_dataset::words::{count, number};

use super::link;
use crate::plot::{named, plot};
use crate::survey::{Choice, Effect, Mean, Survey};

/// Rows of the table of the front.
const FRONT_MAX: usize = 30;
/// Values of an axis.
const VALUES_MAX: usize = 24;
/// Values of all axes together. The page stays small.
const ALL_VALUES_MAX: usize = 120;

/// Plot and effects. `choose`: the name of the experiment, for the form and the links of a page that is not frozen.
pub(super) fn section(survey: &Survey, choose: Option<&str>) -> Markup {
    let choice = &survey.choice;
    let is_empty = survey.sums.rows == 0;
    html! {
        h2 { (choice.y) " against " (choice.x) }
        @if let Some(name) = choose { (form(survey, name)) }
        @if is_empty {
            p.empty { "No task has a row yet. The plot fills in while tasks end." }
        } @else if survey.sums.points.count == 0 {
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
            (set("of", "Mean of", of))
            button { "Show" }
        }
        // One list serves the three fields; a list in each of them would be a fifth of the page.
        datalist id="metrics" { @for metric in &survey.metrics { option { (metric) } } }
    }
}

/// The points of the front in words.
fn front(survey: &Survey, choose: Option<&str>) -> Markup {
    let (front, choice) = (&survey.sums.front, &survey.choice);
    html! {
        details open[choose.is_none()] {
            summary { "The Pareto front as a table: " (count(front.len() as u64, "task")) }
            div.table.narrow tabindex="0" role="region" aria-label="Pareto front" { table {
                thead { tr {
                    th scope="col" { "Task" }
                    th.n scope="col" { (named(survey, &choice.x)) } th.n scope="col" { (named(survey, &choice.y)) }
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
                    td.n { (number(point.x)) } td.n { (number(point.y)) }
                    @if survey.by().is_some() { td { (point.group) } }
                } } }
            } }
            @if front.len() > FRONT_MAX { p.soft { "… and " (count((front.len() - FRONT_MAX) as u64, "more task")) "." } }
        }
    }
}

/// A table of means for each axis.
fn effects(survey: &Survey, choose: Option<&str>) -> Markup {
    let of = &survey.choice.of;
    let all = survey.sums.mean;
    // Of many axes, the first ones have all their values.
    let mut left = ALL_VALUES_MAX;
    let tables = survey.axes.iter().zip(&survey.sums.effects).map(|(axis, effect)| {
        let values = effect.sorted();
        let shown = VALUES_MAX.min(left).min(values.len());
        left -= shown;
        (axis, effect, values, shown)
    });
    let tables: Vec<_> = tables.filter(|(.., shown)| *shown > 0).collect();
    html! {
        h2 { "Effect of each axis on " (named(survey, of)) }
        @if let Some(mean) = all.value() {
            p.soft { "Means over all other axes, of the tasks that have ended; all together: " (number(mean)) " (" (count(all.count, "task")) ")." }
            @if survey.axes.is_empty() { p.empty { "No axis has two values yet." } }
            div.effects {
                @for (axis, effect, values, shown) in &tables { (table(axis, effect, values, *shown, mean, choose)) }
            }
            @if tables.len() < survey.axes.len() {
                p.soft { "… and " (survey.axes.len() - tables.len()) " more: the page shows " (ALL_VALUES_MAX) " values of all axes together." }
            }
        } @else { p.empty { "No task has a value in this column." } }
    }
}

fn table(axis: &str, effect: &Effect, values: &[(&str, Mean)], shown: usize, all: f64, choose: Option<&str>) -> Markup {
    let most = values.iter().filter_map(|(_, mean)| mean.value()).fold(0.0, f64::max);
    html! { div.table.narrow {
        table {
            caption { (axis) }
            thead { tr { th scope="col" { "Value" } th.n scope="col" { "Mean" } th.n scope="col" { "n" } th.n scope="col" { "vs. all" } td {} } }
            tbody { @for (text, mean) in values.iter().take(shown) {
                tr {
                    th scope="row" {
                        @let only = format!("{axis}={text}");
                        @let text = if text.is_empty() { "none" } else { text };
                        @match choose {
                            Some(name) => a href=(link("results", &[("name", name), ("where", &only)])) { (text) },
                            None => (text),
                        }
                    }
                    td.n { @if let Some(mean) = mean.value() { (number(mean)) } }
                    td.n { (mean.count) }
                    td.n { @if let Some(mean) = mean.value().filter(|_| all != 0.0) { (format!("{:+.1} %", (mean / all - 1.0) * 100.0)) } }
                    td { @if let Some(share) = mean.value().map(|mean| mean / most).filter(|share| *share > 0.0) { (bar(share)) } }
                }
            } }
        }
        @if values.len() > shown || effect.is_cut { p.soft { "Only the first " (shown) " values of " (axis) " are shown." } }
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
    use crate::survey::tests::survey;

    #[test]
    fn an_effect_has_mean_number_and_difference_of_each_value() {
        let found = survey(&[(1.0, 1.0, "a", 1.0), (2.0, 2.0, "a", 2.0), (1.0, 1.0, "b", 6.0)]);
        let html = section(&found, Some("e")).into_string();
        for text in [
            ">1.5</td><td class=\"n\">2</td><td class=\"n\">-50.0 %",
            ">6</td><td class=\"n\">1</td><td class=\"n\">+100.0 %",
        ] {
            assert!(html.contains(text), "{text} in {html}");
        }
        assert!(html.contains("results?name=e&amp;where=policy%3Da"), "{html}");
        let frozen = section(&found, None).into_string();
        assert!(!frozen.contains("<a ") && !frozen.contains("<form"), "{frozen}");
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
