//! Two experiments, or two sets of rows of one, compared pair by pair.

use maud::{Markup, html};
use powersweep_dataset::words::{aligned, ends_beside, number, number_beside};
use powersweep_dataset::{Cell, Frame, Interval};

use crate::address::{Query, link};
use crate::dots::{Dots, ends, percent, spoken};

/// Rows of the table. The page stays small.
const ROWS_MAX: usize = 100;

/// Two sets of rows to compare.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct CompareQuery {
    /// The experiment whose page it is.
    pub experiment: String,
    /// The set of rows that the other one is compared with: `EXPERIMENT` or `EXPERIMENT:CONDITION,...`.
    pub a: String,
    /// The other set; empty until one is chosen.
    pub b: String,
}

/// The answer.
#[derive(Debug, Clone)]
pub struct Difference {
    /// A row for each group and metric, with the columns of `powersweep compare --json`; its keys are those of the groups.
    pub rows: Frame,
    /// Sentences about pairs, pooled values and rows that are left out.
    pub notes: Vec<String>,
    /// The command that prints the same comparison.
    pub command: String,
}

impl CompareQuery {
    pub(super) fn of(experiment: &str, query: &Query) -> CompareQuery {
        let text = |name: &str| query.get(name).unwrap_or_default().trim().to_owned();
        let a = Some(text("a")).filter(|a| !a.is_empty()).unwrap_or_else(|| experiment.to_owned());
        CompareQuery { experiment: experiment.to_owned(), a, b: text("b") }
    }

    pub(super) fn query(&self) -> [(&'static str, String); 2] {
        [("a", self.a.clone()), ("b", self.b.clone())]
    }
}

/// The form. `known`: names of experiments.
pub(super) fn form(ask: &CompareQuery, known: &[&str]) -> Markup {
    html! {
        form.choose id="compare" action="compare" hx-morph-skip {
            input type="hidden" name="name" value=(ask.experiment);
            label { "A " input.long name="a" list="sets" value=(ask.a) required; }
            label { "B " input.long name="b" list="sets" value=(ask.b) required placeholder=(format!("{}:policy=easy", ask.experiment)); }
            button { "Compare" }
            @if !ask.b.is_empty() { a href=(link("compare", &[("name", &ask.experiment), ("a", &ask.b), ("b", &ask.a)])) { "Exchange A and B" } }
        }
        datalist id="sets" { @for name in known { option { (name) } } }
        @if ask.b.is_empty() {
            p.empty { "Choose what A is compared with: an experiment, or its rows with some values, such as " code { (ask.experiment) ":policy=easy,seed<3" } "." }
        }
    }
}

pub(super) fn live(found: &Difference) -> Markup {
    let rows = &found.rows;
    let number_at = |name: &str, row: usize| rows.column(name).ok().and_then(|column| column.number(row));
    // An end may have no bound.
    let end_at = |name: &str, row: usize| rows.column(name).ok().and_then(|column| column.cell(row).number());
    let interval = |name: &str, row: usize| {
        let end = |end: &str| end_at(&format!("{name}_{end}"), row);
        Some(Interval { value: number_at(name, row)?, ends: end("low").zip(end("high")) })
    };
    let shown = 0..rows.rows().min(ROWS_MAX);
    let ratios: Vec<Option<Interval>> = shown.clone().map(|row| interval("ratio", row)).collect();
    // The difference and its interval, in the unit of the metric.
    let difference = |row: usize| {
        let Some(of) = interval("difference", row) else { return [String::new(), String::new()] };
        let sizes =
            ["mean_a", "mean_b", "difference", "difference_low", "difference_high"].map(|name| number_at(name, row));
        let greatest = sizes.into_iter().flatten().map(f64::abs).fold(0.0, f64::max);
        [number_beside(of.value, greatest), of.ends.map_or_else(String::new, |ends| ends_beside(ends, greatest))]
    };
    let dots = Dots::of(ratios.iter().flatten());
    let means = |name: &str| {
        aligned(&shown.clone().map(|row| number_at(name, row).map_or_else(String::new, number)).collect::<Vec<_>>())
    };
    let (of_a, of_b) = (means("mean_a"), means("mean_b"));
    let text = |name: &str, row: usize| {
        rows.column(name).map_or_else(
            |_| String::new(),
            |column| match column.cell(row) {
                Cell::Null => String::new(),
                cell => cell.shown(),
            },
        )
    };
    let keys: Vec<String> = rows.columns().take(rows.keys()).map(|column| column.name().to_owned()).collect();
    html! {
        div.table tabindex="0" role="region" aria-label="Differences" { table {
            thead { tr {
                @for key in &keys { th scope="col" { (key) } }
                th scope="col" { "Metric" } th.n scope="col" { "Mean of A" } th.n scope="col" { "Mean of B" }
                th.n scope="col" { "B − A" } th.n scope="col" { "95% interval" } th.n scope="col" { "B vs. A" }
                th.n scope="col" { "95% interval" } th scope="col" { "B from A" } th.n scope="col" { "pairs" } th.n scope="col" { "replicates" }
            } }
            tbody { @for row in shown.clone() { tr {
                @for key in &keys { td { (text(key, row)) } }
                th scope="row" { (text("metric", row)) @if !text("unit", row).is_empty() { " (" (text("unit", row)) ")" } }
                td.n { (of_a[row]) } td.n { (of_b[row]) }
                @for text in difference(row) { td.n { (text) } }
                @match &ratios[row] {
                    Some(ratio) => { td.n { (percent(ratio.value)) } td.n { (ends(ratio)) } td title=(spoken(ratio)) { (dots.dot(ratio)) } },
                    None => { td.n {} td.n {} td {} },
                }
                td.n { (text("pairs", row)) } td.n { (text("replicates", row)) }
            } } }
        } }
        @if rows.rows() > ROWS_MAX { p.soft { "The first " (ROWS_MAX) " of " (rows.rows()) " rows are shown." } }
        p.soft { "A dot is the difference of B from A, on a scale of " (dots.reach()) "; its line is the 95% interval over replicates." }
        @for note in &found.notes { p.soft { (note) } }
        h2 { "The same comparison in a terminal" }
        code.command { (found.command) }
        button.copy type="button" { "Copy" }
    }
}

#[cfg(test)]
mod tests {
    use powersweep_dataset::Column;

    use super::*;

    #[test]
    fn a_comparison_has_both_means_and_the_difference_with_its_interval() {
        let numbers = |name: &str, values: [f64; 2]| Column::numbers(name, "", "", values);
        let rows = Frame::of([
            Column::texts("workload", "", ["w", "w"]),
            Column::texts("metric", "", ["wait_s_mean", "bsld_mean"]),
            Column::texts("unit", "", ["s", ""]),
            numbers("mean_a", [100.0, 2.5]),
            numbers("mean_b", [110.0, 2.5]),
            numbers("difference", [10.0, 0.0]),
            numbers("difference_low", [5.0, 0.0]),
            numbers("difference_high", [15.0, 0.0]),
            numbers("ratio", [1.1, 1.0]),
            numbers("ratio_low", [1.05, 1.0]),
            numbers("ratio_high", [1.15, 1.0]),
            Column::texts("pairs", "", ["12", "12"]),
        ]);
        let found = Difference {
            rows: rows.with_keys(1),
            notes: vec!["<note>".into()],
            command: "powersweep compare a b".into(),
        };
        let html = live(&found).into_string();
        for text in [
            "<td>w</td><th scope=\"row\">wait_s_mean (s)</th>",
            "<td class=\"n\">110\u{2008}\u{2007}</td><td class=\"n\">10</td><td class=\"n\">5 to 15</td>",
            "<td class=\"n\">+10.0 %</td><td class=\"n\">+5.0 % to +15.0 %</td>",
            "<td class=\"n\">2.5</td><td class=\"n\">2.5</td><td class=\"n\">0</td><td class=\"n\">0 to 0</td>",
            "<td class=\"n\">0 to 0</td><td class=\"n\">+0.0 %</td>",
            "&lt;note&gt;",
            "powersweep compare a b",
        ] {
            assert!(html.contains(text), "{text} in {html}");
        }
        let ask = CompareQuery::of("e", &Query::of(b"b=other"));
        assert_eq!((ask.a.as_str(), ask.b.as_str()), ("e", "other"));
        assert!(form(&ask, &["e", "other"]).into_string().contains("compare?name=e&amp;a=other&amp;b=e"));
    }
}
