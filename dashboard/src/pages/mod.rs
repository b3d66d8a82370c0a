//! The pages: HTML from the state of the farm.

mod changes;
mod experiment;
mod experiments;
mod failures;
pub(crate) mod results;
mod survey;
mod workers;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use powersweep_proto::v1;
use url::form_urlencoded;

pub(crate) use self::changes::{action, changed};
pub use self::results::{ColumnHeader, PAGE_ROWS, RowsPage, RowsQuery};
pub use self::workers::{Launched, LaunchedAllocation};

use crate::bins::CELLS;
use crate::guard::Refusal;
use crate::looks::{Ask, Looks, Seen};
use crate::server::Query;
use crate::slow::Known;
use crate::survey::{Choice, Survey};
use powersweep_dataset::words::duration;

/// Failures that the state of all experiments has, for their kinds.
const KINDS: u32 = 100;
/// Failures of a page.
const FAILURES: u32 = 40;

/// A page by its address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Page {
    Experiments,
    Workers,
    Experiment(String, Choice),
    Failures(String),
    Results(RowsQuery),
}

/// The changing part of a page.
pub(crate) struct Live {
    pub(crate) html: String,
    /// False if there is no such experiment.
    pub(crate) found: bool,
}

impl Page {
    /// The page at the last segment of a path, and of an experiment.
    pub(crate) fn of(segment: &str, query: &Query) -> Option<Page> {
        let name = query.get("name").filter(|name| !name.is_empty());
        match segment {
            "" | "experiments" => Some(Page::Experiments),
            "workers" => Some(Page::Workers),
            "experiment" => name.map(|name| Page::Experiment(name.to_owned(), choice(query))),
            "failures" => name.map(|name| Page::Failures(name.to_owned())),
            "results" => name.map(|name| Page::Results(RowsQuery::of(name, query))),
            _ => None,
        }
    }

    fn segment(&self) -> &'static str {
        match self {
            Page::Experiments => "experiments",
            Page::Workers => "workers",
            Page::Experiment(..) => "experiment",
            Page::Failures(_) => "failures",
            Page::Results(_) => "results",
        }
    }

    /// The experiment of the page; empty for other pages.
    fn experiment(&self) -> &str {
        match self {
            Page::Experiments | Page::Workers => "",
            Page::Experiment(name, _) | Page::Failures(name) => name,
            Page::Results(ask) => &ask.experiment,
        }
    }

    /// The address of the stream of updates.
    fn events(&self) -> String {
        let mut query = vec![("page", self.segment().to_owned()), ("name", self.experiment().to_owned())];
        match self {
            Page::Experiment(_, choice) => query.extend(choice_query(choice)),
            Page::Results(ask) => query.extend(ask.query()),
            _ => {}
        }
        link("events", &query.iter().map(|(name, value)| (*name, value.as_str())).collect::<Vec<_>>())
    }

    fn title(&self) -> String {
        match self {
            Page::Experiments => "Experiments".to_owned(),
            Page::Workers => "Workers".to_owned(),
            Page::Experiment(name, _) => name.clone(),
            Page::Failures(name) => format!("Failures of {name}"),
            Page::Results(ask) => format!("Results of {}", ask.experiment),
        }
    }

    fn ask(&self) -> Ask {
        match self {
            Page::Experiments => Ask { failures: KINDS, ..Ask::default() },
            Page::Workers => Ask::default(),
            Page::Experiment(name, _) => Ask { experiment: name.clone(), failures: KINDS, bins: CELLS },
            Page::Failures(name) => Ask { experiment: name.clone(), failures: FAILURES, bins: 0 },
            Page::Results(ask) => Ask { experiment: ask.experiment.clone(), ..Ask::default() },
        }
    }

    /// The changing part now.
    pub(crate) async fn render(&self, looks: &Looks) -> Live {
        let seen = looks.look(&self.ask()).await;
        let Some(status) = &seen.status else {
            return Live { html: away(&seen).into_string(), found: true };
        };
        let experiment = status.experiments.first();
        let body = match self {
            Page::Experiments => Some(experiments::live(status)),
            Page::Workers => Some(workers::live(status, looks.farm.launched().await.as_ref())),
            Page::Experiment(_, choice) => match experiment {
                Some(found) => Some(experiment_live(found, &looks.survey(found, choice).await)),
                None => None,
            },
            Page::Failures(_) => experiment.map(failures::live),
            Page::Results(ask) => match experiment {
                Some(found) => Some(waiting(&looks.rows(found, ask).await, |rows| results::live(ask, rows))),
                None => None,
            },
        };
        let found = body.is_some();
        let body = body.unwrap_or_else(|| html! { p.empty { "There is no experiment of this name." } });
        Live { html: html! { (away(&seen)) (stalled(status)) (body) }.into_string(), found }
    }

    /// The whole page.
    pub(crate) fn whole(&self, live: &Live) -> Markup {
        let name = self.experiment();
        let fixed = match self {
            Page::Experiment(name, _) if live.found => changes::forms(name),
            _ => html! {},
        };
        frame(
            &self.title(),
            Some(self),
            &html! {
                h1 { (self.title()) }
                @if !name.is_empty() && live.found { (tabs(name, self.segment())) }
                div hx-sse:connect=(self.events()) hx-swap="innerMorph" { (PreEscaped(&live.html)) }
                (fixed)
            },
        )
    }
}

/// The pages of one experiment.
fn tabs(name: &str, segment: &str) -> Markup {
    html! {
        nav.tabs aria-label=(format!("Pages of {name}")) {
            @for (page, words) in [("experiment", "Overview"), ("results", "Results"), ("failures", "Failures")] {
                a href=(link(page, &[("name", name)])) aria-current=[(page == segment).then_some("page")] { (words) }
            }
        }
    }
}

fn experiment_live(found: &v1::ExperimentStatus, known: &Known<Survey>) -> Markup {
    html! {
        (experiment::live(found, Some(&found.name)))
        (waiting(known, |found_rows| survey::section(found_rows, Some(&found.name))))
    }
}

/// What is known of rows, with a word about what is not.
fn waiting<V>(known: &Known<V>, show: impl FnOnce(&V) -> Markup) -> Markup {
    html! {
        @if let Some(trouble) = &known.trouble { p.away role="alert" { "Rows cannot be read: " (trouble) } }
        @match &known.answer {
            Some(answer) => (show(answer)),
            None if known.trouble.is_none() => p.empty { "Rows are being read. They appear here by themselves; without JavaScript, load the page again." },
            None => {},
        }
    }
}

fn choice(query: &Query) -> Choice {
    let text = |name: &str| query.get(name).unwrap_or_default().to_owned();
    let is_set = |name: &str| query.get(name) == Some("1");
    Choice { x: text("x"), y: text("y"), x_up: is_set("xup"), y_up: is_set("yup"), by: text("by"), of: text("of") }
}

fn choice_query(choice: &Choice) -> [(&'static str, String); 6] {
    let set = |up: bool| if up { "1".to_owned() } else { String::new() };
    let Choice { x, y, x_up, y_up, by, of } = choice.clone();
    [("x", x), ("y", y), ("xup", set(x_up)), ("yup", set(y_up)), ("by", by), ("of", of)]
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
                strong { "The coordinator has not answered for " (duration(away.since.elapsed().as_secs_f64())) ". " }
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
            head { meta charset="utf-8"; meta http-equiv="refresh" content="0;url=experiments"; link rel="icon" href="icon.svg"; title { "powersweep" } }
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

/// Whether no task of the experiment runs any more.
pub(crate) fn has_ended(experiment: &v1::ExperimentStatus) -> bool {
    use v1::ExperimentState::{Cancelled, Failed, Finished};
    matches!(experiment.state(), Cancelled | Failed | Finished)
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

/// Progress, plot and effects of a page that is frozen.
pub(crate) fn summary(experiment: Option<&v1::ExperimentStatus>, rows: &Survey) -> Markup {
    html! {
        @if let Some(experiment) = experiment { (experiment::live(experiment, None)) }
        (survey::section(rows, None))
    }
}

/// Failures on a page that is frozen.
pub(crate) fn failures(failures: &[v1::Failure]) -> Markup {
    failures::groups(failures, None)
}
