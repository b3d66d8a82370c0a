//! Papers that were simulated again, in one file: their figures, tables and claims beside ours.

use maud::{Markup, PreEscaped, html};
use powersweep_claims::{ClaimKind, Counts, Finding};
use powersweep_dataset::words::{count, duration};

use crate::report::frozen_page;

/// A paper, simulated again.
#[derive(Debug, Clone, Default)]
pub struct Reproduced {
    /// Short name.
    pub name: String,
    /// Authors, year and title.
    pub title: String,
    /// The sweeps, in the order in which they ran.
    pub sweeps: Vec<SweepSummary>,
    /// Figures and tables, in their order in the paper.
    pub shown: Vec<Shown>,
    /// The claims.
    pub claims: Vec<Finding>,
    /// Manifests, logs and versions of the rows, as JSON.
    pub origin: String,
}

/// A sweep of a paper.
#[derive(Debug, Clone, Default)]
pub struct SweepSummary {
    /// Name of the manifest.
    pub manifest: String,
    /// Number of tasks.
    pub tasks: u64,
    /// How long the missing tasks took (s).
    pub seconds: f64,
}

/// A figure or table of a paper.
#[derive(Debug, Clone)]
pub struct Shown {
    /// The place in the paper: `Figure 3`.
    pub source: String,
    /// What it shows.
    pub caption: String,
    /// The file beside the page that has it.
    pub file: String,
    /// Itself.
    pub body: Body,
}

/// A figure or a table.
#[derive(Debug, Clone)]
pub enum Body {
    /// An SVG drawing, which is trusted.
    Drawing(String),
    /// Headings with whether their columns have numbers, and rows.
    Table(Vec<(String, bool)>, Vec<Vec<String>>),
}

/// The file. It loads nothing and has no script. `made` says when and by what it was made; `fonts` are style rules with the
/// fonts of the drawings.
pub fn reproduction(made: &str, papers: &[Reproduced], fonts: &str) -> String {
    let body = html! {
        (overview(papers))
        @for (at, of) in papers.iter().enumerate() { (paper(at, of)) }
    };
    frozen_page("Papers, simulated again", made, fonts, &body)
}

fn overview(papers: &[Reproduced]) -> Markup {
    html! {
        div.table {
            table {
                thead { tr { th { "paper" } th { "claims" } th.n { "missing tasks took" } } }
                tbody {
                    @for paper in papers {
                        tr {
                            td { a href={ "#" (paper.name) } { (paper.title) } }
                            td { (counts(paper)) }
                            td.n { (duration(paper.sweeps.iter().map(|sweep| sweep.seconds).sum())) }
                        }
                    }
                }
            }
        }
    }
}

/// How many claims hold.
fn counts(paper: &Reproduced) -> Markup {
    let failed = paper.claims.iter().filter(|claim| claim.is_failure()).count();
    html! {
        (Counts::of(&paper.claims))
        @if failed > 0 { "; " strong { (count(failed as u64, "demanded claim")) " FAIL" } }
    }
}

fn paper(at: usize, paper: &Reproduced) -> Markup {
    html! {
        section id=(paper.name) {
            h1 { (paper.title) }
            p { (counts(paper)) "." }
            @for (number, shown) in paper.shown.iter().enumerate() { (figure(&format!("f{at}-{number}-"), shown)) }
            @if paper.claims.iter().any(|claim| claim.kind == ClaimKind::Published) {
                h2 { "Claims of the paper" }
                (claims(&paper.claims, ClaimKind::Published, "published"))
            }
            @if paper.claims.iter().any(|claim| claim.kind == ClaimKind::Guard) {
                h2 { "Guards: numbers that the paper does not print" }
                (claims(&paper.claims, ClaimKind::Guard, "expected"))
            }
            h2 { "Sweeps" }
            div.table.narrow {
                table {
                    thead { tr { th { "manifest" } th.n { "tasks" } th.n { "missing tasks took" } } }
                    tbody {
                        @for sweep in &paper.sweeps {
                            tr { td { (sweep.manifest) } td.n { (sweep.tasks) } td.n { (duration(sweep.seconds)) } }
                        }
                    }
                }
            }
            details { summary { "Manifests, logs, versions" } code.command { (paper.origin) } }
        }
    }
}

fn figure(prefix: &str, shown: &Shown) -> Markup {
    html! {
        figure {
            @match &shown.body {
                Body::Drawing(svg) => (PreEscaped(apart(svg, prefix))),
                Body::Table(headings, rows) => {
                    div.table.narrow {
                        table {
                            thead { tr { @for (heading, is_number) in headings { th.n[*is_number] { (heading) } } } }
                            tbody {
                                @for row in rows {
                                    tr { @for (cell, (_, is_number)) in row.iter().zip(headings) { td.n[*is_number] { (cell) } } }
                                }
                            }
                        }
                    }
                }
            }
            figcaption { strong { (shown.source) "." } " " (shown.caption) " " a href=(shown.file) { (shown.file) } }
        }
    }
}

/// A drawing whose ids no other drawing of the page has.
fn apart(svg: &str, prefix: &str) -> String {
    let named = [(" id=\"", " id=\""), ("url(#", "url(#"), ("href=\"#", "href=\"#")];
    named.into_iter().fold(svg.to_owned(), |svg, (begin, kept)| svg.replace(begin, &format!("{kept}{prefix}")))
}

fn claims(claims: &[Finding], kind: ClaimKind, stated: &str) -> Markup {
    html! {
        div.table.claims {
            table {
                thead { tr { th { "claim" } th { (stated) } th { "ours" } th { "verdict" } th { "source" } th { "from" } } }
                tbody {
                    @for claim in claims.iter().filter(|claim| claim.kind == kind) {
                        tr {
                            td {
                                (claim.text)
                                @if let Some(why) = claim.why.as_ref().filter(|_| claim.holds != Some(true)) { br; span.soft { (why) } }
                            }
                            td { (claim.stated) }
                            td { (claim.ours) }
                            td { @if claim.is_failure() { strong { (claim.words) } } @else { (claim.words) } }
                            td { (claim.source) }
                            td.soft { (claim.from) }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use powersweep_claims::Verdict;

    use super::*;

    #[test]
    fn drawings_keep_their_own_ids_and_texts_are_escaped() {
        let drawing = r##"<svg><clipPath id="clip0"/><g clip-path="url(#clip0)"/></svg>"##;
        let shown = |source: &str| Shown {
            source: source.to_owned(),
            caption: "<script>".to_owned(),
            file: "figure1.svg".to_owned(),
            body: Body::Drawing(drawing.to_owned()),
        };
        let claim = |verdict| Finding { demanded: true, verdict, ..Finding::default() };
        let one = Reproduced {
            name: "mine2026".to_owned(),
            title: "A paper".to_owned(),
            shown: vec![shown("Figure 1"), shown("Figure 2")],
            claims: vec![claim(Verdict::Fails), claim(Verdict::Holds)],
            ..Reproduced::default()
        };
        let page = reproduction("Made now.", &[one], "");
        assert!(page.contains(r#"id="f0-0-clip0""#) && page.contains(r##"url(#f0-1-clip0)"##), "{page}");
        assert!(
            page.contains("1 of 2 demanded claims of the paper holds; <strong>1 demanded claim FAIL")
                && page.contains("&lt;script&gt;"),
            "{page}"
        );
        for outside in ["<script", "src=", "<link", "@import", "http://", "https://"] {
            assert!(!page.contains(outside), "{outside}: {page}");
        }
    }
}
