//! What the rows of an experiment show together: the plot of two metrics, its front as a table, and the effect of each
//! axis.

use maud::{Markup, html};
use powersweep_dataset::Interval;
use powersweep_dataset::sensitivity::Index;
use powersweep_dataset::survey::{Choice, Extreme, Indices, Level, Point, Survey};
use powersweep_dataset::text::{Sheet, with_half};
use powersweep_dataset::words::{aligned, count, number, value as value_of};

use crate::address::{rows_link, task_link};
use crate::dots::{Dots, ends as ends_of, percent, spoken};
use crate::plot::{named, plot, sampled};

/// Rows of the table of the front.
const FRONT_MAX: usize = 30;
/// Values of an axis.
const VALUES_MAX: usize = 24;
/// Values of all axes together. The page stays small.
const ALL_VALUES_MAX: usize = 120;

/// Rows of the table of the indices of a design.
const INDICES_MAX: usize = 60;

/// The lists of the form's fields.
const METRICS: &str = "metrics";
const AXES: &str = "axes";

/// The metric of the effects in a few lines: its mean, the combinations with the least and the greatest mean, and the
/// greatest effect. `choose` as in [`section`].
pub(super) fn headline(survey: &Survey, choose: Option<&str>) -> Markup {
    let of = &survey.choice.of;
    let (Some(mean), Some(ends)) = (survey.shown.mean.value(), &survey.shown.ends) else { return html! {} };
    html! {
        div.headline {
            h2 { (named(survey, of)) }
            p.mean { (estimate(mean, survey.shown.mean_half)) span.soft { " mean of " (count(survey.shown.mean.count, "combination")) } }
            dl {
                @if ends[0].value < ends[1].value {
                    @for (title, end) in ["Least", "Greatest"].iter().zip(ends) {
                        dt { (title) } dd { strong { (estimate(end.value, end.half)) } " " (combination(survey, end, choose)) }
                    }
                }
                @if let Some((axis, level, first, ratio)) = greatest(survey) {
                    dt { "Greatest effect" }
                    dd { (axis) " " (value_of(&level.text)) ": " strong { (percent(ratio.value)) } " beside " (first) @if ratio.ends.is_some() { ", 95% interval " (ends_of(&ratio)) } }
                }
            }
        }
    }
}

/// A mean, and half the width of its 95% interval where it has several seeds.
fn estimate(mean: f64, half: Option<f64>) -> String {
    half.map_or_else(|| number(mean), |half| with_half(mean, half))
}

/// The values of a combination, with a link to its tasks.
fn combination(survey: &Survey, of: &Extreme, choose: Option<&str>) -> Markup {
    let shown = survey.axes.iter().zip(&of.values).filter(|(_, value)| !value.is_empty());
    let values = shown.map(|(axis, value)| format!("{axis} {}", value_of(value))).collect::<Vec<_>>().join(", ");
    let values = if values.is_empty() { format!("task {}", of.index) } else { values };
    html! { (task(choose, of.index, &values)) }
}

/// Words with a link to the task of an index.
fn task(choose: Option<&str>, index: u64, words: &str) -> Markup {
    html! {
        @match choose {
            Some(name) => a href=(task_link(name, index)) { (words) },
            None => (words),
        }
    }
}

/// The axis and value that differ from the first value of the axis most.
fn greatest(survey: &Survey) -> Option<(&str, &Level, String, Interval)> {
    let axes = survey.axes.iter().zip(&survey.shown.effects);
    let all = axes.flat_map(|(axis, levels)| levels.iter().map(move |level| (axis.as_str(), level, levels)));
    let ratios =
        all.filter_map(|(axis, level, levels)| Some((axis, level, value_of(&levels.first()?.text), level.ratio?)));
    let reach = |ratio: f64| if ratio > 0.0 { ratio.ln().abs() } else { f64::INFINITY };
    ratios.max_by(|one, other| reach(one.3.value).total_cmp(&reach(other.3.value)))
}

/// Plot and effects. `choose`: the name of the experiment, for the form and the links of a page that is not frozen.
pub(super) fn section(survey: &Survey, choose: Option<&str>) -> Markup {
    let choice = &survey.choice;
    let is_empty = survey.shown.rows == 0;
    html! {
        h2 { (choice.y) " against " (choice.x) }
        @if let Some(name) = choose { (form(survey, name, "experiment")) }
        (sampled(survey))
        @if is_empty {
            p.empty { "No task has a row. The plot has the tasks that end with a row." }
        } @else if survey.shown.combinations == 0 {
            p.empty { "No task has a value in both columns." }
        } @else {
            div.beside { (plot(survey, choose)) (front(survey, choose)) }
        }
        @if !is_empty { (effects(survey, choose)) }
    }
}

/// The form that chooses columns, for the page with marks or the page of lines. It stays unchanged while the rest of the
/// page changes, its lists included.
pub(super) fn form(survey: &Survey, name: &str, page: &str) -> Markup {
    let has_marks = page != "lines";
    let Choice { x, y, x_up, y_up, by, of } = &survey.choice;
    let set = |field: &str, words: &str, chosen: &str, list: &str| {
        html! { label { (words) " " input.wide name=(field) list=(list) value=(chosen) required[list == METRICS]; } }
    };
    html! {
        form.choose id="choose" action=(page) hx-morph-skip {
            input type="hidden" name="name" value=(name);
            (set("y", "Up", y, METRICS))
            label { input type="checkbox" name="yup" value="1" checked[*y_up]; " more is better" }
            (set("x", "Across", x, METRICS))
            label { input type="checkbox" name="xup" value="1" checked[*x_up]; " more is better" }
            @if has_marks { (set("by", "Marks by", by, AXES)) }
            (set("of", if has_marks { "Effects on" } else { "Colours by" }, of, METRICS))
            button { "Show" }
        }
        // One list serves three fields; a list in each of them would be a fifth of the page.
        datalist id=(AXES) { @for axis in &survey.axes { option { (axis) } } }
        datalist id=(METRICS) { @for metric in &survey.metrics { option { (metric) } } }
    }
}

/// The points of the front in words.
fn front(survey: &Survey, choose: Option<&str>) -> Markup {
    let (front, choice) = (&survey.shown.front, &survey.choice);
    let shown = || front.iter().take(FRONT_MAX);
    let column = |of: fn(&Point) -> (f64, Option<f64>)| {
        aligned(&shown().map(of).map(|(value, half)| estimate(value, half)).collect::<Vec<_>>())
    };
    let (across, along) = (column(|point| (point.x, point.halves[0])), column(|point| (point.y, point.halves[1])));
    let has_others = survey.axes.len() > usize::from(survey.by().is_some());
    html! {
        div {
            h3 { "The Pareto front: " (count(front.len() as u64, "combination")) }
            div.table.narrow tabindex="0" role="region" aria-label="Pareto front" { table {
                thead { tr {
                    th scope="col" { "First task" }
                    th.n scope="col" { (breakable(&named(survey, &choice.x))) }
                    th.n scope="col" { (breakable(&named(survey, &choice.y))) }
                    th.n scope="col" { "Seeds" }
                    @if has_others { th scope="col" { "Combination" } }
                    @else if survey.by().is_some() { th scope="col" { (choice.by) } }
                } }
                tbody { @for (at, point) in shown().enumerate() { tr {
                    th scope="row" { (task(choose, point.index, &point.index.to_string())) }
                    td.n { (across[at]) } td.n { (along[at]) } td.n { (point.tasks) }
                    @if has_others { td { (named_values(survey, point)) } }
                    @else if survey.by().is_some() { td { (value_of(&point.group)) } }
                } } }
            } }
            @if shown().any(|point| point.halves[0].is_some()) { p.soft { "Behind ± is half of the 95% interval over the seeds." } }
            @if front.len() > FRONT_MAX { p.soft { "… and " (count((front.len() - FRONT_MAX) as u64, "more combination")) "." } }
        }
    }
}

/// A name that may go on in another line behind each underscore.
fn breakable(name: &str) -> Markup {
    html! { @for part in name.split_inclusive('_') { (part) @if part.ends_with('_') { wbr; } } }
}

/// The values of a point on all axes.
fn named_values(survey: &Survey, point: &Point) -> String {
    let axes = survey.axes.iter().zip(&survey.shown.effects).zip(&point.levels);
    let value = |((axis, levels), level): ((&String, &Vec<Level>), &u32)| {
        let text = levels.get(*level as usize).map_or("", |level| level.text.as_str());
        (!text.is_empty()).then(|| format!("{axis} {}", value_of(text)))
    };
    axes.filter_map(value).collect::<Vec<_>>().join(", ")
}

/// A table for each axis.
fn effects(survey: &Survey, choose: Option<&str>) -> Markup {
    let all = survey.shown.mean;
    // Of many axes, the first ones have all their values.
    let mut left = ALL_VALUES_MAX;
    let (of_design, of_grid): (Vec<_>, Vec<_>) =
        survey.axes.iter().zip(&survey.shown.effects).partition(|(axis, _)| survey.spread.contains(*axis));
    let tables = of_grid.iter().map(|(axis, levels)| {
        let shown = VALUES_MAX.min(left).min(levels.len());
        left -= shown;
        (*axis, *levels, shown)
    });
    let tables: Vec<_> = tables.filter(|(.., shown)| *shown > 0).collect();
    let shown = tables.iter().flat_map(|(_, levels, shown)| levels.iter().take(*shown));
    let dots = Dots::of(shown.filter_map(|level| level.from_mean.as_ref()));
    html! {
        @match &survey.indices { Some(found) => (indices(survey, found)), None => (shares(survey)) }
        @if !of_design.is_empty() {
            @let names: Vec<&str> = of_design.iter().map(|(axis, _)| axis.as_str()).collect();
            p.soft { "A design spreads the values of " (names.join(", ")) ": they are not compared one by one." }
        }
        @if of_grid.is_empty() && !of_design.is_empty() {
        } @else if let Some(mean) = all.value() {
            h2 { "Effect of each axis on " (named(survey, &survey.choice.of)) }
            p.soft {
                "Each row has the mean over " strong { "n" } " combinations of the other axes. A combination counts with its mean over \
                 the seeds that have ended. The mean of all " (count(all.count, "combination")) " is " (number(mean)) ". A difference \
                 compares " strong { "pairs" } ": combinations that are equal in every other axis, seed by seed. It may therefore differ from the difference of the two means. "
                "A dot is the difference from the mean of all values of its axis at equal other axes and seeds, on a scale of " (dots.reach()) "; \
                 its line is the 95% interval over the seeds."
                @if let Some(of) = survey.shown.seed_sample { " Differences and intervals are of one seed in " (of) "." }
            }
            @if survey.axes.is_empty() { p.empty { "No axis has two values yet." } }
            div.effects { @for (axis, levels, shown) in &tables { (table(axis, levels, *shown, &dots, choose)) } }
            @if tables.len() < of_grid.len() {
                p.soft { "… and " (of_grid.len() - tables.len()) " more: the page shows " (ALL_VALUES_MAX) " values of all axes together." }
            }
        } @else {
            h2 { "Effect of each axis on " (named(survey, &survey.choice.of)) }
            p.empty { "No task has a value in this column." }
        }
    }
}

/// The indices of the parameters of a design.
fn indices(survey: &Survey, found: &Indices) -> Markup {
    let sheet = found.rows.as_ref().map(Sheet::of);
    html! {
        h2 { "What " (named(survey, &survey.choice.of)) " depends on" }
        @if let Some(sheet) = &sheet {
            @let class = |at: usize| sheet.columns[at].is_numeric.then_some("n");
            div.table tabindex="0" role="region" aria-label="Sensitivity" { table {
                thead { tr { @for (at, column) in sheet.columns.iter().enumerate() { th class=[class(at)] scope="col" { (column.heading()) } } } }
                tbody { @for row in 0..sheet.rows().min(INDICES_MAX) { tr {
                    @for (at, cell) in sheet.row(row).enumerate() { td class=[class(at)] { (cell) } }
                } } }
            } }
            @if sheet.rows() > INDICES_MAX { p.soft { "The first " (INDICES_MAX) " of " (sheet.rows()) " rows are shown." } }
        }
        p.soft { (found.said) }
    }
}

/// The share of each axis in the variance of the metric.
fn shares(survey: &Survey) -> Markup {
    let all = &survey.shown.shares;
    // No negative zero.
    let hundredths = |share: f64| format!("{:.2}", (100.0 * share).round() / 100.0 + 0.0);
    let share = |index: &Index| {
        let ends = index.ends.map(|(low, high)| format!(" [{}, {}]", hundredths(low), hundredths(high)));
        hundredths(index.span.low) + &ends.unwrap_or_default()
    };
    html! {
        @if survey.is_partial && !survey.axes.is_empty() {
            p.soft { "Some tasks of the manifest have no row: shares of the variance are not shown. " code { "powersweep sensitivity" } " bounds them." }
        }
        @if !all.is_empty() {
            h2 { "What " (named(survey, &survey.choice.of)) " depends on" }
            p.soft {
                "The share of each axis in the variance of the means of all combinations: " strong { "alone" } ", and " strong { "with others" }
                ", where its effect depends on their values. An axis whose share with others is near 0 does not matter here. Brackets are 95% intervals over the seeds."
            }
            div.effects { @for part in all { div.table.narrow { table {
                @let only: Vec<String> = part.only.iter().map(|(axis, value)| format!("{} {}", survey.axes[*axis], value_of(value))).collect();
                caption { @if only.is_empty() { "All combinations" } @else { (only.join(", ")) } }
                thead { tr { th scope="col" { "Axis" } th.n scope="col" { "Alone" } th.n scope="col" { "With others" } } }
                tbody { @for row in &part.of { tr {
                    th scope="row" { (survey.axes[row.axis]) } td.n { (share(&row.alone)) } td.n { (share(&row.with_others)) }
                } } }
            }
            p.soft { (count(part.cells as u64, "combination")) ", " (count(part.seeds as u64, "seed")) } } } }
        }
    }
}

fn table(axis: &str, levels: &[Level], shown: usize, dots: &Dots, choose: Option<&str>) -> Markup {
    let first = levels.first().map_or_else(String::new, |level| value_of(&level.text));
    let rows = levels.iter().take(shown);
    let means = rows.clone().map(|level| level.mean.value().map_or_else(String::new, number));
    let means = aligned(&means.collect::<Vec<_>>());
    let is_alone = |level: &Level| level.pairs == 0 && level.mean.count > 0;
    let has_alone = rows.clone().skip(1).any(is_alone);
    html! { div.table.narrow {
        table {
            caption { (axis) }
            thead { tr {
                th scope="col" { "Value" } th.n scope="col" { "Mean" } th.n scope="col" { "n" } th.n scope="col" { "vs. first" }
                th.n scope="col" { "95% interval" } th.n scope="col" { "pairs" } th scope="col" { "From the mean" }
            } }
            tbody { @for (at, level) in rows.enumerate() { tr {
                th scope="row" {
                    @let only = format!("{axis}={}", level.text);
                    @match choose {
                        Some(name) => a href=(rows_link(name, &only)) { (value_of(&level.text)) },
                        None => (value_of(&level.text)),
                    }
                }
                td.n { (means[at]) }
                td.n { (level.mean.count) }
                td.n { @match &level.ratio {
                    Some(ratio) => (percent(ratio.value)),
                    None => @if at > 0 && is_alone(level) { "*" },
                } }
                td.n { @if let Some(ratio) = &level.ratio { (ends_of(ratio)) } }
                td.n { @if at > 0 { (level.pairs) } }
                @match &level.from_mean {
                    Some(ratio) => td title=(spoken(ratio)) { (dots.dot(ratio)) },
                    None => td {},
                }
            } } }
        }
        @if has_alone {
            p.soft {
                "* No combination with this value is equal to one with " (first) " in all other axes: they cannot be compared."
            }
        }
        @if levels.len() > shown { p.soft { "Only the first " (shown) " values of " (axis) " are shown." } }
    } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{survey, survey_of};

    #[test]
    fn a_long_name_of_a_column_goes_on_in_another_line() {
        assert_eq!(breakable("energy_total_j (GJ)").into_string(), "energy_<wbr>total_<wbr>j (GJ)");
    }

    #[test]
    fn an_effect_has_mean_number_and_difference_of_each_value() {
        let found = survey(&[(1.0, 1.0, "a", 4.0), (2.0, 2.0, "a", 2.0), (1.0, 1.0, "b", 6.0)]);
        let html = section(&found, Some("e")).into_string();
        for text in [
            ">3</td><td class=\"n\">2</td><td class=\"n\"></td><td class=\"n\"></td>",
            ">6</td><td class=\"n\">1</td><td class=\"n\">+50.0 %</td><td class=\"n\"></td><td class=\"n\">1</td>",
            "<td title=\"-20.0 %\"><svg class=\"dots\"",
            "<td title=\"+20.0 %\"><svg class=\"dots\"",
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
        let rows = [(["easy", ""], 1, [1.0, 1.0, 4.0]), (["pdrc", "0.5"], 1, [1.0, 1.0, 6.0])];
        let html = section(&survey_of(["policy", "bound"], &rows), None).into_string();
        for text in [
            ">6</td><td class=\"n\">1</td><td class=\"n\">*</td><td class=\"n\"></td><td class=\"n\">0</td>",
            "equal to one with easy in all other axes: they cannot be compared",
            "equal to one with 0.5 in all other axes: they cannot be compared",
        ] {
            assert!(html.contains(text), "{text} in {html}");
        }
        assert!(!html.contains(" %<") && !html.contains("class=\"dot\""), "{html}");
    }

    #[test]
    fn values_of_a_design_are_rounded_and_have_no_effects() {
        let row = |policy, size, of| ([policy, size], 1, [1.0, 1.0, of]);
        let rows = [row("a", "1.0293212465476245", 4.0), row("b", "1.0293212465476245", 5.0), row("a", "1.5", 9.0)];
        let mut found = survey_of(["policy", "size"], &rows);
        assert!(headline(&found, None).into_string().contains("size 1.5: <strong>+125.0 %</strong> beside 1.029"));
        found.spread = ["size".to_owned()].into();
        found.settle();
        found.show();
        let head = headline(&found, None).into_string();
        assert!(head.contains("policy b: <strong>+25.0 %</strong>"), "{head}");
        let html = section(&found, None).into_string();
        for text in ["A design spreads the values of size", "<caption>policy</caption>", "size 1.029"] {
            assert!(html.contains(text), "{text} in {html}");
        }
        assert!(!html.contains("<caption>size</caption>") && !html.contains("1.0293212"), "{html}");
        found.spread.insert("policy".to_owned());
        assert!(!section(&found, None).into_string().contains("Effect of each axis"));
    }

    #[test]
    fn an_effect_has_its_interval_and_a_dot_around_the_mean() {
        let rows = [
            (["a"], 1, [1.0, 1.0, 10.0]),
            (["b"], 1, [1.0, 1.0, 12.0]),
            (["a"], 2, [1.0, 1.0, 20.0]),
            (["b"], 2, [1.0, 1.0, 23.0]),
        ];
        let found = survey_of(["policy"], &rows);
        let html = section(&found, None).into_string();
        let level = &found.shown.effects[0][1];
        let interval = ends_of(level.ratio.as_ref().expect("pairs"));
        assert!(interval.starts_with('+') || interval.starts_with('-'), "{interval}");
        assert!(html.contains(&format!("+16.7 %</td><td class=\"n\">{interval}</td>")), "{interval} in {html}");
        assert_eq!(html.matches("class=\"interval\"").count(), 2, "{html}");
        assert!(!html.contains("class=\"bar\""), "no bar begins at 0: {html}");
        let head = headline(&found, Some("e")).into_string();
        for text in [
            "<h2>z</h2>",
            "16 ± 67<span class=\"soft\"> mean of 2 combinations",
            "<strong>15 ± 64</strong> <a href=\"results?name=e&amp;where=task_index%3D0\">policy a</a>",
            "<strong>18 ± 70</strong> <a href=\"results?name=e&amp;where=task_index%3D1\">policy b</a>",
            "policy b: <strong>+16.7 %</strong> beside a, 95% interval ",
        ] {
            assert!(head.contains(text), "{text} in {head}");
        }
        assert!(headline(&survey_of(["policy"], &[]), None).into_string().is_empty());
    }

    #[test]
    fn shares_of_a_whole_grid_are_shown() {
        let cell = |one: &'static str, other: &'static str, seed: i64, of: f64| ([one, other], seed, [1.0, 1.0, of]);
        let mut rows = Vec::new();
        for (seed, load) in [(1, 0.0), (2, 10.0)] {
            rows.extend([cell("a", "1", seed, load), cell("a", "2", seed, load), cell("b", "1", seed, load + 4.0)]);
        }
        rows.push(cell("b", "2", 1, 4.0));
        let html = section(&survey_of(["policy", "size"], &rows), None).into_string();
        assert!(!html.contains("depends on</h2>"), "a combination lacks a seed: {html}");
        rows.push(cell("b", "2", 2, 14.0));
        let html = section(&survey_of(["policy", "size"], &rows), None).into_string();
        let policy =
            "<th scope=\"row\">policy</th><td class=\"n\">1.00 [1.00, 1.00]</td><td class=\"n\">1.00 [1.00, 1.00]</td>";
        let size = "<th scope=\"row\">size</th><td class=\"n\">0.00 [0.00, 0.00]</td>";
        for text in ["What z depends on</h2>", policy, size, "4 combinations, 2 seeds"] {
            assert!(html.contains(text), "{text} in {html}");
        }
        // All rows of a third size failed.
        let mut partial = survey_of(["policy", "size"], &rows);
        partial.is_partial = true;
        partial.shown.shares.clear();
        let html = section(&partial, None).into_string();
        assert!(!html.contains("depends on</h2>") && html.contains("shares of the variance are not shown"), "{html}");
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
        assert!(section(&survey(&[]), None).into_string().contains("No task has a row"));
        let missing = section(&survey(&[(f64::NAN, 1.0, "a", f64::NAN)]), None).into_string();
        assert!(
            missing.contains("No task has a value in both columns")
                && missing.contains("No task has a value in this column")
        );
    }
}
