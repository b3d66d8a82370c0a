//! `powersweep dashboard`: pages in the browser. It is a client of the coordinator, as `status` is.

use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use powersweep::block_on;
use powersweep::compare::CompareOptions;
use powersweep::launcher::{self, Folder, State};
use powersweep::place::{access, connection};
use powersweep::results::RowsOptions;
use powersweep::survey;
use powersweep_dashboard::{
    CompareQuery, Difference, Farm, Launched, LaunchedAllocation, Listening, Options, Place, RowsPage, RowsQuery,
};
use powersweep_dataset::Datasets;
use powersweep_dataset::activity::Activity;
use powersweep_dataset::survey::{Choice, Survey};
use powersweep_dataset::writing::Encoding;
use powersweep_experiments::settings::quoted;
use powersweep_launch::{Allocation, Phase};
use powersweep_proto::access::Role;
use powersweep_proto::client::Client;
use powersweep_proto::v1;
use powersweep_results::Table;
use tokio::sync::Mutex;
use tonic::{Code, Status};

use crate::args::DashboardArgs;
use crate::exit::{Exit, Failure, Kind, OrKind, Outcome, failure};
use crate::{interrupt, rows_command, screen};

/// A coordinator that does not answer within this time is away.
const PATIENCE: Duration = Duration::from_secs(5);
/// Last characters of the log of an allocation that a page shows.
const OUTPUT_MAX: usize = 30_000;

/// Serves pages until it is interrupted.
pub fn run(args: &DashboardArgs) -> Outcome {
    let listen = place(&args.listen)?;
    let place = args.coordinator.place(&args.folder.data)?;
    // Without the access of a client there is nothing to serve.
    place.access(Role::Client)?.load(Some(Role::Client)).map_err(|error| access::refused(&error))?;
    let options = rows_command::options(&args.coordinator, &args.folder.data);
    let folder = args.folder.folder()?;
    block_on(async {
        let stop = interrupt::token();
        let farm = Arc::new(Connected { place, options, folder, client: Mutex::default() });
        let options = Options { listen, hosts: args.host.clone() };
        let next = |link: &str| screen::note(&format!("powersweep: the link was used; another browser: {link}"));
        let listening = Listening::begin(options, farm, next).await.or_kind(Kind::Network)?;
        screen::note(&format!("powersweep: the dashboard opens with this link, once: {}", listening.link()));
        tokio::select! {
            ended = listening.serve() => ended.or_kind(Kind::Network)?,
            () = stop.cancelled() => {}
        }
        Ok(Exit::Done)
    })
}

fn place(listen: &str) -> Result<Place, Failure> {
    if let Some(path) = listen.strip_prefix("unix:") {
        return Ok(Place::Unix(path.into()));
    }
    let address = listen
        .parse()
        .map_err(|_| failure!(Usage, "--listen {listen} is neither an address such as 127.0.0.1:8080 nor unix:PATH"))?;
    Ok(Place::Tcp(address))
}

/// A coordinator that may move: each new connection reads the access file again.
struct Connected {
    place: powersweep::Place,
    /// Options of a command that reads the same data.
    options: String,
    /// Where a launcher may write its state.
    folder: Folder,
    client: Mutex<Option<Client>>,
}

impl Connected {
    async fn ask<T>(&self, request: impl AsyncFnOnce(&mut Client) -> Result<T, Status>) -> Result<T, String> {
        let asked = async {
            let mut client = self.client().await?;
            request(&mut client).await.map_err(|status| connection::refused(&status))
        };
        let answer = tokio::time::timeout(PATIENCE, asked).await;
        let answer = answer.unwrap_or_else(|_| {
            Err(failure!(Network, "the coordinator gave no answer within {} s: is it running?", PATIENCE.as_secs()))
        });
        self.note(answer).await
    }

    /// After an error of the connection, the next request makes a new one.
    async fn note<T>(&self, answer: Result<T, Failure>) -> Result<T, String> {
        if answer.as_ref().is_err_and(|failure| matches!(failure.kind, Kind::Network | Kind::Refused)) {
            *self.client.lock().await = None;
        }
        answer.map_err(|failure| failure.message)
    }

    /// Reads rows, which may take long.
    async fn read<T>(&self, read: impl AsyncFnOnce(&Datasets) -> Result<T, Failure>) -> Result<T, String> {
        let read = async {
            let datasets = self.place.datasets_at(&self.client().await?);
            read(&datasets).await
        };
        let answer = read.await;
        self.note(answer).await
    }

    async fn client(&self) -> Result<Client, Failure> {
        let mut kept = self.client.lock().await;
        if let Some(client) = &*kept {
            return Ok(client.clone());
        }
        let client = self.place.connect().await?;
        Ok(kept.insert(client).clone())
    }
}

#[async_trait]
impl Farm for Connected {
    async fn status(&self, request: v1::StatusRequest) -> Result<v1::StatusReply, String> {
        let look = async |farm: &mut Client| match connection::status(farm, request).await {
            Err(status) if status.code() == Code::NotFound => Ok(v1::StatusReply::default()),
            answer => answer,
        };
        self.ask(look).await
    }

    async fn control(&self, request: v1::ControlRequest) -> Result<v1::ControlReply, String> {
        self.ask(async |farm| Ok(farm.control(request).await?.into_inner())).await
    }

    async fn rows(&self, ask: &RowsQuery) -> Result<RowsPage, String> {
        let mut page = self.read(async |datasets| survey::rows(datasets, ask).await).await?;
        page.command = rows_command::command(ask, &self.options);
        Ok(page)
    }

    async fn survey(&self, experiment: &str, choice: &Choice, last: Option<&Survey>) -> Result<Survey, String> {
        self.read(async |datasets| survey::survey(datasets, experiment, choice, last).await).await
    }

    async fn activity(&self, experiment: &str, last: Option<&Activity>) -> Result<Activity, String> {
        self.read(async |datasets| Activity::read(datasets, experiment, last).await).await
    }

    async fn compare(&self, ask: &CompareQuery) -> Result<Difference, String> {
        let found = self.place.compare(&ask.a, &ask.b, &CompareOptions::default()).await;
        let found = found.map_err(|failure| failure.message)?;
        let command = format!("powersweep compare {} {}{}", quoted(&ask.a), quoted(&ask.b), self.options);
        Ok(Difference { rows: found.frame(), notes: vec![found.said(&ask.a, &ask.b)], command })
    }

    async fn manifest(&self, experiment: &str) -> Result<Option<String>, String> {
        self.read(async |datasets| datasets.read(experiment, Table::Tasks).await?.manifest().await).await
    }

    async fn download(&self, ask: &RowsQuery, encoding: Encoding) -> Result<File, String> {
        let options = RowsOptions {
            columns: ask.columns.clone(),
            only: ask.only.clone(),
            sort: Some(ask.sort.clone()).filter(|sort| !sort.is_empty()),
            descending: ask.descending,
            ..RowsOptions::default()
        };
        let rows = async { self.place.rows(&ask.experiment, options).await?.file(encoding).await };
        rows.await.map_err(|failure| failure.message)
    }

    async fn output(&self, allocation: &str) -> Result<String, String> {
        let read = || {
            let state = self.folder.read()?.ok_or_else(|| failure!(Usage, "no launcher has written its state"))?;
            self.folder.log(&state, allocation)
        };
        let text = read().map_err(|failure| failure.message)?;
        let skipped = text.char_indices().rev().nth(OUTPUT_MAX).map(|(at, _)| at);
        Ok(skipped.map_or_else(|| text.clone(), |at| format!("…{}", &text[at..])))
    }

    async fn launched(&self) -> Option<Launched> {
        match self.folder.read() {
            Ok(state) => state.map(|state| launched(&state)),
            Err(failure) => Some(Launched { notes: vec![failure.message], ..Launched::default() }),
        }
    }
}

/// The state of a launcher, as `launch status` shows it.
fn launched(state: &State) -> Launched {
    let mut allocations: Vec<LaunchedAllocation> = state.fleet.allocations.iter().map(allocation).collect();
    allocations.sort_by_key(|allocation| !allocation.waits);
    let counts = &state.fleet.counts;
    Launched { allocations, slot_s: counts.slot_s, idle_slot_s: counts.idle_slot_s, notes: state.describe() }
}

fn allocation((name, of): (&String, &Allocation)) -> LaunchedAllocation {
    let waits = matches!(of.phase, Phase::Submitted | Phase::Queued);
    LaunchedAllocation {
        name: name.clone(),
        state: if of.state.is_empty() { "submitted" } else { &of.state }.to_owned(),
        place: if waits { of.reason.clone() } else { of.nodes.clone() },
        age_s: launcher::now().saturating_sub(of.submitted_at) as f64,
        waits,
        connected: of.connected,
    }
}
