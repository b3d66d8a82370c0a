//! The pages: HTML from the state of the farm.

mod changes;
mod compare;
mod experiment;
mod experiments;
mod failures;
mod lines;
mod list;
pub(crate) mod results;
mod survey;
mod time;
mod workers;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use powersweep_dataset::activity::Activity;
use powersweep_dataset::survey::{Choice, Survey};
use powersweep_dataset::words::duration;
use powersweep_proto::clocks::now_us;
use powersweep_proto::v1;

pub(crate) use self::changes::{action, changed};
pub use self::compare::{CompareQuery, Difference};
pub(crate) use self::experiment::has_ended;
use self::list::ListQuery;
pub use self::results::{ColumnHeader, PAGE_ROWS, RowsPage, RowsQuery};
pub use self::workers::{Launched, LaunchedAllocation};

use crate::address::{Query, link};
use crate::bins::CELLS;
use crate::guard::Refusal;
use crate::looks::{Ask, Looks, Seen};
use crate::slow::Known;

/// Failures that the state of all experiments has, for their kinds.
const KINDS: u32 = 100;
/// Failures of a page.
const FAILURES: u32 = 40;
/// Experiments that can be chosen for a comparison.
const NAMES_MAX: usize = 200;

/// A page by its address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Page {
    Experiments(ListQuery),
    Workers(ListQuery),
    /// The log of an allocation.
    Output(String),
    Experiment(String, Choice),
    /// Combinations as lines across axes and metrics.
    Lines(String, Choice),
    Results(RowsQuery),
    Time(String),
    Failures(String),
    Compare(CompareQuery),
    Manifest(String),
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
            "" | "experiments" => Some(Page::Experiments(ListQuery::of(query))),
            "workers" => Some(Page::Workers(ListQuery::of(query))),
            "output" => query.get("allocation").map(|allocation| Page::Output(allocation.to_owned())),
            "experiment" => name.map(|name| Page::Experiment(name.to_owned(), choice(query))),
            "lines" => name.map(|name| Page::Lines(name.to_owned(), choice(query))),
            "failures" => name.map(|name| Page::Failures(name.to_owned())),
            "time" => name.map(|name| Page::Time(name.to_owned())),
            "compare" => name.map(|name| Page::Compare(CompareQuery::of(name, query))),
            "manifest" => name.map(|name| Page::Manifest(name.to_owned())),
            "results" => name.map(|name| Page::Results(RowsQuery::of(name, query))),
            _ => None,
        }
    }

    fn segment(&self) -> &'static str {
        match self {
            Page::Experiments(_) => "experiments",
            Page::Workers(_) => "workers",
            Page::Output(_) => "output",
            Page::Experiment(..) => "experiment",
            Page::Lines(..) => "lines",
            Page::Results(_) => "results",
            Page::Time(_) => "time",
            Page::Failures(_) => "failures",
            Page::Compare(_) => "compare",
            Page::Manifest(_) => "manifest",
        }
    }

    /// The experiment of the page; empty for other pages.
    fn experiment(&self) -> &str {
        match self {
            Page::Experiments(_) | Page::Workers(_) | Page::Output(_) => "",
            Page::Experiment(name, _) | Page::Lines(name, _) => name,
            Page::Failures(name) | Page::Time(name) | Page::Manifest(name) => name,
            Page::Results(ask) => &ask.experiment,
            Page::Compare(ask) => &ask.experiment,
        }
    }

    /// The address of the stream of updates.
    fn events(&self) -> String {
        let mut query = vec![("page", self.segment().to_owned()), ("name", self.experiment().to_owned())];
        match self {
            Page::Experiments(list) | Page::Workers(list) => query.extend(list.query()),
            Page::Output(allocation) => query.push(("allocation", allocation.clone())),
            Page::Experiment(_, choice) | Page::Lines(_, choice) => query.extend(choice_query(choice)),
            Page::Results(ask) => query.extend(ask.query()),
            Page::Compare(ask) => query.extend(ask.query()),
            Page::Time(_) | Page::Failures(_) | Page::Manifest(_) => {}
        }
        link("events", &query.iter().map(|(name, value)| (*name, value.as_str())).collect::<Vec<_>>())
    }

    fn title(&self) -> String {
        match self {
            Page::Experiments(_) => "Experiments".to_owned(),
            Page::Workers(_) => "Workers".to_owned(),
            Page::Output(allocation) => format!("Log of allocation {allocation}"),
            Page::Experiment(name, _) => name.clone(),
            Page::Lines(name, _) => format!("Combinations of {name}"),
            Page::Results(ask) => format!("Results of {}", ask.experiment),
            Page::Time(name) => format!("Time of {name}"),
            Page::Failures(name) => format!("Failures of {name}"),
            Page::Compare(ask) => format!("Compare {}", ask.experiment),
            Page::Manifest(name) => format!("Manifest of {name}"),
        }
    }

    fn ask(&self) -> Ask {
        match self {
            Page::Experiments(_) => Ask { failures: KINDS, ..Ask::default() },
            Page::Workers(_) | Page::Output(_) => Ask::default(),
            Page::Experiment(name, _) => Ask { experiment: name.clone(), failures: KINDS, bins: CELLS },
            Page::Failures(name) => Ask { experiment: name.clone(), failures: FAILURES, bins: 0 },
            // The names of all experiments can be chosen.
            Page::Compare(_) => Ask::default(),
            Page::Lines(..) | Page::Results(_) | Page::Time(_) | Page::Manifest(_) => {
                Ask { experiment: self.experiment().to_owned(), ..Ask::default() }
            }
        }
    }

    /// The changing part now.
    pub(crate) async fn render(&self, looks: &Looks) -> Live {
        let seen = looks.look(&self.ask()).await;
        let Some(status) = &seen.status else {
            return Live { html: away(&seen).into_string(), found: true };
        };
        let body = self.body(status, looks).await;
        let found = body.is_some();
        let body = body.unwrap_or_else(|| html! { p.empty { "There is no experiment of this name." } });
        Live { html: html! { (away(&seen)) (stalled(status)) (body) }.into_string(), found }
    }

    /// The part of the page that depends on the farm; `None` if there is no such experiment.
    async fn body(&self, status: &v1::StatusReply, looks: &Looks) -> Option<Markup> {
        match self {
            Page::Experiments(list) => return Some(experiments::live(status, list)),
            Page::Workers(list) => return Some(workers::live(status, list, looks.farm.launched().await.as_ref())),
            Page::Output(allocation) => return Some(workers::output(looks.farm.output(allocation).await)),
            _ => {}
        }
        let found = status.experiments.iter().find(|found| found.name == self.experiment())?;
        Some(match self {
            Page::Experiments(_) | Page::Workers(_) | Page::Output(_) => return None,
            Page::Experiment(_, choice) => {
                let (survey, activity) = futures::join!(looks.survey(found, choice), looks.activity(found));
                experiment_live(found, &survey, &activity)
            }
            Page::Lines(name, choice) => waiting(&looks.survey(found, choice).await, |rows| lines::live(rows, name)),
            Page::Results(ask) => waiting(&looks.rows(found, ask).await, |rows| results::live(ask, rows)),
            Page::Time(_) => waiting(&looks.activity(found).await, |activity| time::live(found, activity, now_us())),
            Page::Failures(_) => failures::live(found),
            Page::Compare(ask) => {
                let names: Vec<&str> =
                    status.experiments.iter().map(|found| found.name.as_str()).take(NAMES_MAX).collect();
                let form = compare::form(ask, &names);
                let known = if ask.b.is_empty() { None } else { Some(looks.compare(found, ask).await) };
                html! { (form) @if let Some(known) = known { (waiting(&known, compare::live)) } }
            }
            Page::Manifest(_) => waiting(&looks.manifest(found).await, |text| manifest(text.as_deref())),
        })
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
                div hx-sse:connect=(self.events()) hx-trigger="load, again" hx-swap="innerMorph" { (PreEscaped(&live.html)) }
                (fixed)
            },
        )
    }
}

/// The pages of one experiment: address and words. Failures come early, so that the keyboard reaches them soon.
const TABS: [(&str, &str); 7] = [
    ("experiment", "Overview"),
    ("failures", "Failures"),
    ("results", "Results"),
    ("lines", "Combinations"),
    ("time", "Time"),
    ("compare", "Compare"),
    ("manifest", "Manifest"),
];

/// The pages of one experiment.
fn tabs(name: &str, segment: &str) -> Markup {
    html! {
        nav.tabs aria-label=(format!("Pages of {name}")) {
            @for (page, words) in TABS {
                a href=(link(page, &[("name", name)])) aria-current=[(page == segment).then_some("page")] { (words) }
            }
        }
    }
}

fn experiment_live(found: &v1::ExperimentStatus, known: &Known<Survey>, activity: &Known<Activity>) -> Markup {
    let name = Some(found.name.as_str());
    html! {
        (experiment::progress(found))
        div.beside {
            dl {
                (experiment::facts(found, name))
                @if let Some(activity) = &activity.answer { (time::facts(Some(found), activity, now_us())) }
            }
            @if let Some(rows) = &known.answer { (survey::headline(rows, name)) }
        }
        (experiment::tasks(found))
        (waiting(known, |rows| survey::section(rows, name)))
    }
}

/// The manifest that the rows were made by, if a part has it.
fn manifest(text: Option<&str>) -> Markup {
    html! {
        @match text {
            Some(text) => {
                p.soft { "The manifest with which the last part of rows was published." }
                code.command { (text) }
                button.copy type="button" { "Copy" }
            },
            None => p.empty { "No part of rows is published yet: parts have the manifest." },
        }
    }
}

/// What is known of rows, with a word about what is not.
fn waiting<V>(known: &Known<V>, show: impl FnOnce(&V) -> Markup) -> Markup {
    html! {
        @if let Some(trouble) = &known.trouble { p.away role="alert" { @if known.answer.is_some() { "This page lacks rows: " } (trouble) } }
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

fn frame(title: &str, page: Option<&Page>, body: &Markup) -> Markup {
    let current = |segment: &str| (page.is_some_and(|page| page.segment() == segment)).then_some("page");
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
                        a href="experiments" aria-current=[current("experiments")] { "Experiments" }
                        a href="workers" aria-current=[current("workers")] { "Workers" }
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

/// A file that could not be made.
pub(crate) fn no_file(name: &str, reason: &str) -> Markup {
    let body = html! {
        h1 { (name) }
        p.empty role="status" { "The rows cannot be read: " (reason) }
        p { a href=(link("results", &[("name", name)])) { "Back to the results" } }
    };
    frame(name, None, &body)
}

/// State, main metric, plot and effects of a page that is frozen. The main metric is in the first screen.
pub(crate) fn summary(experiment: Option<&v1::ExperimentStatus>, rows: &Survey, activity: &Activity) -> Markup {
    html! {
        @if let Some(experiment) = experiment { (experiment::progress(experiment)) }
        div.beside {
            (survey::headline(rows, None))
            dl {
                @if let Some(experiment) = experiment { (experiment::facts(experiment, None)) }
                (time::facts(experiment, activity, now_us()))
            }
        }
        (survey::section(rows, None))
        @if let Some(experiment) = experiment { (experiment::tasks(experiment)) }
        @if activity.span_us.is_some() { (time::charts(activity)) }
    }
}

/// Failures on a page that is frozen.
pub(crate) fn failures(failures: &[v1::Failure]) -> Markup {
    failures::groups(failures, None)
}
