//! Numbers of a coordinator in the text format of Prometheus: counted while it works, or read from its status.
//!
//! The table of metrics in the guide is generated from the text. The listener is separate from the service and has no
//! token; it shows numbers and names of experiments, so it is for loopback.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use powersweep_proto::connections::{Connections, Door, FIRST_CALL_WAIT};
use powersweep_proto::v1;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric, MetricEncoder, prometheus_text};
use prometheus_client::metrics::TypedMetric;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::requests::Requests;
use crate::farm::Event;

#[cfg(test)]
mod tests;

/// Maximum number of connections: each is for one answer.
const CONNECTIONS_MAX: usize = 64;

/// Upper bounds of the buckets of durations (s).
const BOUNDS_S: [f64; 11] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0];

/// Durations by bucket.
#[derive(Debug)]
pub(super) struct Durations(Histogram);

impl Default for Durations {
    fn default() -> Durations {
        Durations(Histogram::new(BOUNDS_S))
    }
}

impl Durations {
    pub(super) fn observe(&self, duration: Duration) {
        self.0.observe(duration.as_secs_f64());
    }
}

/// Requests of clients that are timed.
#[derive(Debug, Clone, Copy)]
pub(super) enum Timed {
    Submit,
    Status,
    Flush,
    Control,
    PrepareUpgrade,
    /// Until the first message of the answer, as is the next one.
    ReadTable,
    ReadPart,
}

const TIMED: [&str; 7] = ["submit", "status", "flush", "control", "prepare_upgrade", "read_table", "read_part"];

/// Number of kinds of failures, with the unknown one.
const FAILURE_KINDS: usize = 9;

/// What is counted while the coordinator works.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) streams: Counter,
    pub(super) hand_ins: Counter,
    pub(super) rows: Counter,
    pub(super) jobs: Counter,
    pub(super) row_bytes: Counter,
    pub(super) upload_bytes: Counter,
    pub(super) direct_bytes: Counter,
    pub(super) log_bytes: Counter,
    pub(super) sent_bytes: Counter,
    failures: [Counter; FAILURE_KINDS],
    commits: Durations,
    commit_failures: Counter,
    pub(super) committed_row_bytes: Counter,
    parts: Counter,
    part_failures: Counter,
    requests: [Durations; TIMED.len()],
    pub(super) unknown_tokens: Counter,
    pub(super) wrong_roles: Counter,
}

impl Counters {
    pub(super) fn failure(&self, kind: v1::FailureKind) {
        self.failures[kind as usize].inc();
    }

    /// The end of a commit that began at this moment.
    pub(super) fn committed(&self, since: Option<Instant>, well: bool) {
        since.iter().for_each(|since| self.commits.observe(since.elapsed()));
        self.commit_failures.inc_by(u64::from(!well));
    }

    /// A report to the farm.
    pub(super) fn event(&self, event: &Event) {
        match event {
            Event::Published { result: Ok(_), .. } => self.parts.inc(),
            Event::Published { result: Err(_), .. } => self.part_failures.inc(),
            _ => 0,
        };
    }

    pub(super) fn request(&self, request: Timed) -> &Durations {
        &self.requests[request as usize]
    }
}

/// The facts that all metrics are written from.
#[derive(Debug)]
struct Snapshot {
    counters: Arc<Counters>,
    status: v1::StatusReply,
}

impl Snapshot {
    fn text(self) -> String {
        let (mut registry, mut text) = (Registry::default(), String::new());
        registry.register_collector(Box::new(self));
        prometheus_text::encode(&mut text, &registry).expect("a text takes every write");
        text
    }

    fn of_experiments(&self, out: &mut Output<'_>) -> fmt::Result {
        let of_each = || self.status.experiments.iter().map(|e| (("experiment", e.name.as_str()), e));
        let help = "Tasks that are done, running (in a slot), open (queued or leased), or failed for good.";
        let tasks = of_each().flat_map(|(experiment, e)| {
            let lost = e.failed + e.quarantined;
            let open = e.tasks.saturating_sub(e.done + e.running + lost);
            let states = [("done", e.done), ("running", e.running), ("open", open), ("failed", lost)];
            states.map(|(state, tasks)| ([experiment, ("state", state)], ConstGauge::new(tasks)))
        });
        out.family("powersweep_tasks", help, tasks)?;
        let rates = of_each().map(|(experiment, e)| ([experiment], ConstGauge::new(e.tasks_per_s)));
        out.family("powersweep_done_tasks_per_second", "Rate at which tasks become done.", rates)?;
        let help = "Estimated time until the experiment has ended; missing if unknown.";
        let known = of_each().filter_map(|(experiment, e)| Some(([experiment], ConstGauge::new(e.eta_s?))));
        out.family("powersweep_eta_seconds", help, known)?;
        let rows = of_each().flat_map(|(experiment, e)| {
            let places = [("parts", e.rows_in_parts), ("state", e.rows_unpublished)];
            places.map(|(place, rows)| ([experiment, ("place", place)], ConstGauge::new(rows)))
        });
        out.family("powersweep_rows", "Rows of the table `tasks`, in published parts or in the state.", rows)?;
        let help = "Time of slots: engine (simulating), parse (logs and workloads), store (rows), idle.";
        let spent = of_each().flat_map(|(experiment, e)| {
            let s = e.spent.unwrap_or_default();
            let phases = [("engine", s.engine_s), ("parse", s.parse_s), ("store", s.store_s), ("idle", s.idle_s)];
            phases.map(|(phase, seconds)| ([experiment, ("phase", phase)], ConstCounter::new(seconds)))
        });
        out.family("powersweep_slot_seconds_total", help, spent)
    }

    fn of_workers(&self, out: &mut Output<'_>) -> fmt::Result {
        let workers = &self.status.workers;
        let connected = ConstGauge::new(workers.len());
        out.single("powersweep_workers", "Workers that are connected or expected back.", &connected)?;
        let slots: u32 = workers.iter().map(|worker| worker.slots).sum();
        let busy: u32 = workers.iter().map(|worker| worker.busy_slots).sum();
        let states = [("busy", busy), ("idle", slots.saturating_sub(busy))];
        let states = states.map(|(state, slots)| ([("state", state)], ConstGauge::new(slots)));
        out.family("powersweep_slots", "Slots of these workers, busy or idle.", states)?;
        let leased = ConstGauge::new(workers.iter().map(|worker| worker.leased_tasks).sum::<u64>());
        out.single("powersweep_leased_tasks", "Tasks under a lease.", &leased)
    }

    fn of_messages(&self, out: &mut Output<'_>) -> fmt::Result {
        let counters = &self.counters;
        out.single("powersweep_streams_total", "Streams that workers have opened.", &counters.streams)?;
        out.single("powersweep_hand_ins_total", "Hand-ins of workers, with repeated ones.", &counters.hand_ins)?;
        out.single("powersweep_received_rows_total", "Rows in these hand-ins.", &counters.rows)?;
        let help =
            "Jobs that the tasks of these rows simulated; divided by the slot seconds of `engine`: the engine's speed.";
        out.single("powersweep_simulated_jobs_total", help, &counters.jobs)?;
        let help = "Bytes of rows, of uploads of optional tables, and of logs.";
        let kinds = [("rows", &counters.row_bytes), ("uploads", &counters.upload_bytes), ("logs", &counters.log_bytes)];
        out.family(
            "powersweep_received_bytes_total",
            help,
            kinds.map(|(kind, bytes)| ([("kind", kind)], bytes.clone())),
        )?;
        let help = "Bytes of uploads of optional tables that workers sent to the object store themselves.";
        out.single("powersweep_direct_upload_bytes_total", help, &counters.direct_bytes)?;
        out.single("powersweep_sent_bytes_total", "Bytes of tables that clients have read.", &counters.sent_bytes)?;
        let failures =
            v1::FailureKind::all().map(|kind| ([("kind", kind.word())], counters.failures[kind as usize].clone()));
        out.family("powersweep_failures_total", "Failed attempts by kind of failure.", failures)
    }

    fn of_storage_and_calls(&self, out: &mut Output<'_>) -> fmt::Result {
        let counters = &self.counters;
        out.single("powersweep_commit_seconds", "Time until the store has confirmed a commit.", &counters.commits.0)?;
        let help = "Commits that failed; the state is loaded again.";
        out.single("powersweep_commit_failures_total", help, &counters.commit_failures)?;
        let bytes = &counters.committed_row_bytes;
        out.single("powersweep_committed_row_bytes_total", "Bytes of rows in commits.", bytes)?;
        let results = [("published", &counters.parts), ("failed", &counters.part_failures)];
        let results = results.map(|(result, parts)| ([("result", result)], parts.clone()));
        out.family("powersweep_parts_total", "Parts that were published, or whose publishing failed.", results)?;
        let requests = TIMED.iter().zip(&counters.requests);
        let requests = requests.map(|(request, durations)| ([("request", *request)], durations.0.clone()));
        out.family("powersweep_request_seconds", "Time until a client's request was answered.", requests)?;
        let help = "Calls without a valid token, or with the token of another role.";
        let reasons = [("token", &counters.unknown_tokens), ("role", &counters.wrong_roles)];
        out.family(
            "powersweep_refused_calls_total",
            help,
            reasons.map(|(reason, calls)| ([("reason", reason)], calls.clone())),
        )
    }
}

impl Collector for Snapshot {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let out = &mut Output(encoder);
        let epoch = self.status.epoch.to_string();
        let labels = [("version", self.status.build.as_str()), ("epoch", &epoch)];
        let help = "1, with the version and the number of this ownership of the data.";
        out.family("powersweep_info", help, [(labels, ConstGauge::new(1))])?;
        let help = "1 while storage does not confirm writes: no task is leased.";
        out.single("powersweep_storage_stalled", help, &ConstGauge::new(u64::from(self.status.storage_stalled)))?;
        self.of_experiments(out)?;
        self.of_workers(out)?;
        self.of_messages(out)?;
        self.of_storage_and_calls(out)
    }
}

/// Metrics as they are written; the kind of one follows from its type.
struct Output<'a>(DescriptorEncoder<'a>);

impl Output<'_> {
    fn begin<'s, M: TypedMetric>(&'s mut self, name: &'s str, help: &str) -> Result<MetricEncoder<'s>, fmt::Error> {
        // The encoder adds the ending.
        self.0.encode_descriptor(name.strip_suffix("_total").unwrap_or(name), help, None, M::TYPE)
    }

    fn single<M: TypedMetric + EncodeMetric>(&mut self, name: &str, help: &str, metric: &M) -> fmt::Result {
        metric.encode(self.begin::<M>(name, help)?)
    }

    fn family<L: EncodeLabelSet, M: TypedMetric + EncodeMetric>(
        &mut self,
        name: &str,
        help: &str,
        metrics: impl IntoIterator<Item = (L, M)>,
    ) -> fmt::Result {
        let mut encoder = self.begin::<M>(name, help)?;
        metrics.into_iter().try_for_each(|(labels, metric)| metric.encode(encoder.encode_family(&labels)?))
    }
}

/// Serves `/metrics` until `ended`. Nobody has a token here: the oldest connection is closed when one too many comes, and every
/// one after its answer or after a while.
pub(super) fn listen(listener: TcpListener, requests: Requests, counters: Arc<Counters>, ended: CancellationToken) {
    let router = Router::new().route("/metrics", get(answer)).with_state((requests, counters));
    let door = Door::new(listener, Arc::new(Connections::new(CONNECTIONS_MAX, CONNECTIONS_MAX, FIRST_CALL_WAIT)));
    tokio::spawn(async move {
        let serving = axum::serve(door, router).with_graceful_shutdown(ended.cancelled_owned());
        if let Err(error) = serving.await {
            tracing::warn!("the listener of --metrics has ended: {error}");
        }
    });
}

async fn answer(State((requests, counters)): State<(Requests, Arc<Counters>)>, headers: HeaderMap) -> Response {
    // A page of another site whose name suddenly means this machine (DNS rebinding) has that name as the host.
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    if !is_loopback(host) {
        return (StatusCode::FORBIDDEN, "ask for localhost or 127.0.0.1\n").into_response();
    }
    match requests.status(v1::StatusRequest::default()).await {
        Ok(status) => {
            let snapshot = Snapshot { counters, status };
            let headers = [(header::CONTENT_TYPE, prometheus_text::CONTENT_TYPE), (header::CONNECTION, "close")];
            (headers, snapshot.text()).into_response()
        }
        Err(status) => (StatusCode::SERVICE_UNAVAILABLE, format!("{}\n", status.message())).into_response(),
    }
}

fn is_loopback(host: &str) -> bool {
    let name = host.rsplit_once(':').filter(|(_, port)| !port.ends_with(']')).map_or(host, |(name, _)| name);
    name == "localhost"
        || host.parse::<SocketAddr>().is_ok_and(|address| address.ip().is_loopback())
        || name.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}
