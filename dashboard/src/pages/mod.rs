//! The pages: HTML from the state of the farm.

mod changes;
mod experiment;
mod experiments;
mod failures;
mod workers;

use maud::{DOCTYPE, Markup, html};
use powersweep_proto::v1;
use url::form_urlencoded;

pub(crate) use self::changes::{action, changed};

use crate::bins::CELLS;
use crate::guard::Refusal;
use crate::looks::{Ask, Looks, Seen};
use crate::words::duration;

/// Failures that the state of all experiments has, for their kinds.
const KINDS: u32 = 100;
/// Failures of a page.
const FAILURES: u32 = 40;

/// A page by its address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Page {
    Experiments,
    Workers,
    Experiment(String),
    Failures(String),
}

/// The changing part of a page.
pub(crate) struct Live {
    pub(crate) html: Markup,
    /// False if there is no such experiment.
    pub(crate) found: bool,
}

impl Page {
    /// The page at the last segment of a path, and of an experiment.
    pub(crate) fn of(segment: &str, name: Option<&str>) -> Option<Page> {
        let name = name.filter(|name| !name.is_empty()).map(str::to_owned);
        match segment {
            "" | "experiments" => Some(Page::Experiments),
            "workers" => Some(Page::Workers),
            "experiment" => name.map(Page::Experiment),
            "failures" => name.map(Page::Failures),
            _ => None,
        }
    }

    fn segment(&self) -> (&'static str, &str) {
        match self {
            Page::Experiments => ("experiments", ""),
            Page::Workers => ("workers", ""),
            Page::Experiment(name) => ("experiment", name),
            Page::Failures(name) => ("failures", name),
        }
    }

    fn title(&self) -> String {
        match self {
            Page::Experiments => "Experiments".to_owned(),
            Page::Workers => "Workers".to_owned(),
            Page::Experiment(name) => name.clone(),
            Page::Failures(name) => format!("Failures of {name}"),
        }
    }

    fn ask(&self) -> Ask {
        match self {
            Page::Experiments => Ask { failures: KINDS, ..Ask::default() },
            Page::Workers => Ask::default(),
            Page::Experiment(name) => Ask { experiment: name.clone(), failures: KINDS, bins: CELLS },
            Page::Failures(name) => Ask { experiment: name.clone(), failures: FAILURES, bins: 0 },
        }
    }

    /// The changing part now.
    pub(crate) async fn render(&self, looks: &Looks) -> Live {
        let seen = looks.look(&self.ask()).await;
        let Some(status) = &seen.status else {
            return Live { html: away(&seen), found: true };
        };
        let body = match self {
            Page::Experiments => Some(experiments::live(status)),
            Page::Workers => Some(workers::live(status)),
            Page::Experiment(_) => status.experiments.first().map(experiment::live),
            Page::Failures(_) => status.experiments.first().map(failures::live),
        };
        let found = body.is_some();
        let body = body.unwrap_or_else(|| html! { p.empty { "There is no experiment of this name." } });
        Live { html: html! { (away(&seen)) (stalled(status)) (body) }, found }
    }

    /// The whole page.
    pub(crate) fn whole(&self, live: &Live) -> Markup {
        let (segment, name) = self.segment();
        let events = link("events", &[("page", segment), ("name", name)]);
        let fixed = match self {
            Page::Experiment(name) if live.found => changes::forms(name),
            _ => html! {},
        };
        frame(
            &self.title(),
            Some(self),
            &html! {
                h1 { (self.title()) }
                @if let Page::Failures(name) = self { p { a href=(link("experiment", &[("name", name)])) { "Back to " (name) } } }
                div hx-sse:connect=(events) hx-swap="innerMorph" { (live.html) }
                (fixed)
            },
        )
    }
}

/// A relative link.
fn link(page: &str, query: &[(&str, &str)]) -> String {
    let query = query.iter().filter(|(_, value)| !value.is_empty());
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish();
    if query.is_empty() { page.to_owned() } else { format!("{page}?{query}") }
}

fn frame(title: &str, page: Option<&Page>, body: &Markup) -> Markup {
    let current = |of: &Page| (page == Some(of)).then_some("page");
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="htmx-config" content=r#"{"includeIndicatorCSS":false}"#;
                title { (title) " - powersweep" }
                link rel="icon" href="icon.svg";
                link rel="stylesheet" href="style.css";
                script src="page.js" defer {}
                @if page.is_some() {
                    script src="htmx.min.js" defer {}
                    script src="hx-sse.min.js" defer {}
                }
            }
            body {
                a.skip href="#main" { "Skip to the content" }
                header {
                    strong { "powersweep" }
                    nav aria-label="Pages" {
                        a href="experiments" aria-current=[current(&Page::Experiments)] { "Experiments" }
                        a href="workers" aria-current=[current(&Page::Workers)] { "Workers" }
                    }
                }
                main id="main" tabindex="-1" { (body) }
            }
        }
    }
}

/// Says that the coordinator does not answer, if so.
fn away(seen: &Seen) -> Markup {
    html! {
        @if let Some(away) = &seen.away {
            p.away role="alert" {
                strong { "The coordinator is away since " (duration(away.since.elapsed().as_secs_f64())) ". " }
                @if seen.status.is_some() { "What follows is its last answer. " }
                "The dashboard connects again by itself. "
                span.soft { (away.reason) }
            }
        }
    }
}

fn stalled(status: &v1::StatusReply) -> Markup {
    html! {
        @if status.storage_stalled { p.away role="alert" { strong { "Storage is stalled: " } (status.storage_reason) } }
    }
}

/// The page that takes the cookie along. A link from another site would not send a cookie of `SameSite=Strict`, but this
/// page's own request does.
pub(crate) fn welcome() -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head { meta charset="utf-8"; meta http-equiv="refresh" content="0;url=experiments"; title { "powersweep" } }
            body { p { a href="experiments" { "To the experiments" } } }
        }
    }
}

/// A refused request. Without a cookie, there is no style sheet.
pub(crate) fn refused(refusal: Refusal) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head { meta charset="utf-8"; title { "Refused - powersweep" } }
            body { h1 { "Refused" } p { (refusal.words()) } }
        }
    }
}

/// No page has this address.
pub(crate) fn unknown() -> Markup {
    let body = html! { h1 { "There is no such page" } p { a href="experiments" { "To the experiments" } } };
    frame("No page", None, &body)
}

/// Kinds of failures with the number of failed tasks.
fn kinds(experiment: &v1::ExperimentStatus) -> Vec<(&'static str, u64)> {
    let mut kinds = std::collections::BTreeMap::new();
    let mut seen = std::collections::BTreeSet::new();
    for failure in experiment.failures.iter().filter(|failure| seen.insert((failure.kind, &failure.message))) {
        *kinds.entry(failure.kind().word()).or_insert(0) += failure.equal.max(1);
    }
    kinds.into_iter().collect()
}
