//! The pages of an experiment, frozen in one file.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use powersweep_dataset::activity::Activity;
use powersweep_dataset::survey::Survey;
use powersweep_proto::v1;

use crate::pages::{RowsPage, results, summary};

/// What a report has.
#[derive(Debug)]
pub struct Report {
    /// The state of the experiment; `None` if only its rows are there.
    pub experiment: Option<v1::ExperimentStatus>,
    /// Name of the experiment.
    pub name: String,
    /// When and by what the report was made, in a sentence.
    pub made: String,
    /// What the rows show together.
    pub survey: Survey,
    /// When its tasks ran.
    pub activity: Activity,
    /// The first rows.
    pub rows: RowsPage,
}

/// The file. It loads nothing and has no script.
pub fn report(of: &Report) -> String {
    let body = html! {
        (summary(of.experiment.as_ref(), &of.survey, &of.activity))
        (rows(&of.rows))
        @if let Some(experiment) = &of.experiment { (failures(experiment)) }
    };
    frozen_page(&of.name, &of.made, "", &body)
}

/// A page in one file, without a script and without requests. `made` says when and by what it was made; `fonts` are style
/// rules that hold fonts.
pub(crate) fn frozen_page(heading: &str, made: &str, fonts: &str, body: &Markup) -> String {
    let style = include_str!("../assets/style.css");
    let font_source = if fonts.is_empty() { "" } else { "; font-src data:" };
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content={ "default-src 'none'; style-src 'unsafe-inline'" (font_source) };
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (heading) " - powersweep" }
                style { (PreEscaped(style)) (PreEscaped(fonts)) }
            }
            body {
                main {
                    h1 { (heading) }
                    p.soft { (made) }
                    (body)
                }
            }
        }
    };
    page.into_string()
}

fn rows(rows: &RowsPage) -> Markup {
    html! { @if !rows.rows.is_empty() { h2 { "First rows" } (results::frozen(rows)) } }
}

fn failures(experiment: &v1::ExperimentStatus) -> Markup {
    html! {
        @if !experiment.failures.is_empty() {
            h2 { "Failures" }
            (crate::pages::failures(&experiment.failures))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::ColumnHeader;
    use crate::samples::survey;

    #[test]
    fn a_report_needs_no_other_file_and_escapes_texts() {
        let failure = v1::Failure {
            message: "<script>".to_owned(),
            reproduce: "powersweep simulate".to_owned(),
            ..v1::Failure::default()
        };
        let experiment = v1::ExperimentStatus {
            tasks: 4,
            done: 3,
            failed: 1,
            state: v1::ExperimentState::Failed.into(),
            failures: vec![failure],
            ..v1::ExperimentStatus::default()
        };
        let rows = RowsPage {
            columns: vec![ColumnHeader::default()],
            rows: vec![vec!["<b>".into()]],
            count: 2,
            command: "powersweep results e".into(),
            ..RowsPage::default()
        };
        let survey = survey(&[(1.0, 2.0, "<i>", 1.0), (2.0, 1.0, "b", 1.0)]);
        let file = report(&Report {
            experiment: Some(experiment),
            name: "e".into(),
            made: "Made today.".into(),
            survey,
            activity: Activity::default(),
            rows,
        });
        let first = |text: &str| file.find(text).unwrap_or_else(|| panic!("{text} in {file}"));
        assert!(first("class=\"headline\"") < first("<dt>State") && first("<dt>State") < first("<svg"), "{file}");
        for text in [
            "3 of 4 tasks done",
            "75 percent done",
            "Pareto front",
            "&lt;b&gt;",
            "&lt;script&gt;",
            "policy: &lt;i&gt;",
            "and 1 more row",
        ] {
            assert!(file.contains(text), "{text} in {file}");
        }
        for text in ["<script", "<link", "src=", "href=", "url(h", "@import", "<form", "<button", "http"] {
            let found = file.replace("http-equiv", "");
            assert!(!found.contains(text), "{text} in {file}");
        }
    }
}
