//! Numbers of a coordinator in the text format of Prometheus: counted while it works, or read from its status.
//!
//! [`METRICS`] is the list of all of them, from which the guide's table is generated. The listener is separate from the
//! service and has no token; it shows numbers and names of experiments, so it is for loopback.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use powersweep_proto::v1;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::requests::Requests;
use crate::farm::Event;

/// Kind of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Goes up and down.
    Gauge,
    /// Only grows while the coordinator runs.
    Counter,
    /// Counts of values up to each bound.
    Histogram,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Kind::Gauge => "gauge",
            Kind::Counter => "counter",
            Kind::Histogram => "histogram",
        }
    }
}

/// A documented metric.
#[derive(Debug)]
pub struct Metric {
    /// Its name, with the unit.
    pub name: &'static str,
    /// Its kind.
    pub kind: Kind,
    /// Names of its labels.
    pub labels: &'static [&'static str],
    /// Its meaning.
    pub help: &'static str,
}

const fn metric(name: &'static str, kind: Kind, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, kind, labels, help }
}

/// Every metric, in the order of the output.
pub const METRICS: &[Metric] = &[
    metric(
        "powersweep_info",
        Kind::Gauge,
        &["version", "epoch"],
        "1, with the version and the number of this ownership of the data.",
    ),
    metric(
        "powersweep_storage_stalled",
        Kind::Gauge,
        &[],
        "1 while storage does not confirm writes: no task is leased.",
    ),
    metric(
        "powersweep_tasks",
        Kind::Gauge,
        &["experiment", "state"],
        "Tasks that are done, running (in a slot), open (queued or leased), or failed for good.",
    ),
    metric("powersweep_done_tasks_per_second", Kind::Gauge, &["experiment"], "Rate at which tasks become done."),
    metric(
        "powersweep_eta_seconds",
        Kind::Gauge,
        &["experiment"],
        "Estimated time until the experiment has ended; missing if unknown.",
    ),
    metric(
        "powersweep_rows",
        Kind::Gauge,
        &["experiment", "place"],
        "Rows of the table `tasks`, in published parts or in the state.",
    ),
    metric(
        "powersweep_slot_seconds_total",
        Kind::Counter,
        &["experiment", "phase"],
        "Time of slots: engine (simulating), parse (logs and workloads), store (rows), idle.",
    ),
    metric("powersweep_workers", Kind::Gauge, &[], "Workers that are connected or expected back."),
    metric("powersweep_slots", Kind::Gauge, &["state"], "Slots of these workers, busy or idle."),
    metric("powersweep_leased_tasks", Kind::Gauge, &[], "Tasks under a lease."),
    metric("powersweep_streams_total", Kind::Counter, &[], "Streams that workers have opened."),
    metric("powersweep_hand_ins_total", Kind::Counter, &[], "Hand-ins of workers, with repeated ones."),
    metric("powersweep_received_rows_total", Kind::Counter, &[], "Rows in these hand-ins."),
    metric(
        "powersweep_simulated_jobs_total",
        Kind::Counter,
        &[],
        "Jobs that the tasks of these rows simulated; divided by the slot seconds of `engine`: the engine's speed.",
    ),
    metric(
        "powersweep_received_bytes_total",
        Kind::Counter,
        &["kind"],
        "Bytes of rows, of uploads of optional tables, and of logs.",
    ),
    metric(
        "powersweep_direct_upload_bytes_total",
        Kind::Counter,
        &[],
        "Bytes of uploads of optional tables that workers sent to the object store themselves.",
    ),
    metric("powersweep_sent_bytes_total", Kind::Counter, &[], "Bytes of tables that clients have read."),
    metric("powersweep_failures_total", Kind::Counter, &["kind"], "Failed attempts by kind of failure."),
    metric("powersweep_commit_seconds", Kind::Histogram, &[], "Time until the store has confirmed a commit."),
    metric("powersweep_commit_failures_total", Kind::Counter, &[], "Commits that failed; the state is loaded again."),
    metric("powersweep_committed_row_bytes_total", Kind::Counter, &[], "Bytes of rows in commits."),
    metric(
        "powersweep_parts_total",
        Kind::Counter,
        &["result"],
        "Parts that were published, or whose publishing failed.",
    ),
    metric("powersweep_request_seconds", Kind::Histogram, &["request"], "Time until a client's request was answered."),
    metric(
        "powersweep_refused_calls_total",
        Kind::Counter,
        &["reason"],
        "Calls without a valid token, or with the token of another role.",
    ),
];

/// The table of the guide.
pub fn markdown() -> String {
    let mut text = "| metric | kind | labels | meaning |\n|---|---|---|---|\n".to_owned();
    for Metric { name, kind, labels, help } in METRICS {
        let labels: Vec<String> = labels.iter().map(|label| format!("`{label}`")).collect();
        let _ = writeln!(text, "| `{name}` | {} | {} | {help} |", kind.word(), labels.join(", "));
    }
    text
}

/// Upper bounds of the buckets of durations (s).
const BOUNDS_S: [f64; 11] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0];

/// A number that only grows.
#[derive(Debug, Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    pub(super) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Durations by bucket; the last bucket has the longest.
#[derive(Debug, Default)]
pub(super) struct Histogram {
    buckets: [Counter; BOUNDS_S.len() + 1],
    sum_us: Counter,
}

impl Histogram {
    pub(super) fn observe(&self, duration: Duration) {
        let at = BOUNDS_S.iter().position(|bound| duration.as_secs_f64() <= *bound).unwrap_or(BOUNDS_S.len());
        self.buckets[at].add(1);
        self.sum_us.add(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX));
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
pub(super) struct Counts {
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
    commits: Histogram,
    commit_failures: Counter,
    pub(super) committed_row_bytes: Counter,
    parts: Counter,
    part_failures: Counter,
    requests: [Histogram; TIMED.len()],
    pub(super) unknown_tokens: Counter,
    pub(super) wrong_roles: Counter,
}

impl Counts {
    pub(super) fn failure(&self, kind: v1::FailureKind) {
        self.failures[kind as usize].add(1);
    }

    /// The end of a commit that began at this moment.
    pub(super) fn committed(&self, since: Option<Instant>, well: bool) {
        since.iter().for_each(|since| self.commits.observe(since.elapsed()));
        self.commit_failures.add(u64::from(!well));
    }

    /// A report to the farm.
    pub(super) fn event(&self, event: &Event) {
        match event {
            Event::Published { result: Ok(_), .. } => self.parts.add(1),
            Event::Published { result: Err(_), .. } => self.part_failures.add(1),
            _ => {}
        }
    }

    pub(super) fn request(&self, request: Timed) -> &Histogram {
        &self.requests[request as usize]
    }
}

/// The output, which has each metric of [`METRICS`] in its order.
#[derive(Default)]
struct Output {
    text: String,
    next: usize,
}

impl Output {
    /// Begins the next metric, which must be this one.
    fn begin(&mut self, name: &str) -> &mut Output {
        let metric = &METRICS[self.next];
        debug_assert_eq!(metric.name, name, "the order is that of METRICS");
        self.next += 1;
        let _ = writeln!(self.text, "# HELP {name} {}\n# TYPE {name} {}", metric.help, metric.kind.word());
        self
    }

    fn value(&mut self, labels: &[&str], value: f64) {
        let metric = &METRICS[self.next - 1];
        debug_assert_eq!(labels.len(), metric.labels.len(), "{}", metric.name);
        self.sample("", &metric.labels.iter().copied().zip(labels.iter().copied()).collect::<Vec<_>>(), value);
    }

    fn sample(&mut self, suffix: &str, labels: &[(&str, &str)], value: f64) {
        self.text.push_str(METRICS[self.next - 1].name);
        self.text.push_str(suffix);
        for (at, (label, value)) in labels.iter().enumerate() {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(self.text, "{}{label}=\"{value}\"", if at == 0 { '{' } else { ',' });
        }
        let close = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.text, "{close} {value}");
    }

    fn histogram(&mut self, labels: &[(&str, &str)], histogram: &Histogram) {
        let mut count = 0;
        let bounds = BOUNDS_S.iter().map(f64::to_string).chain(["+Inf".to_owned()]);
        for (bound, bucket) in bounds.zip(&histogram.buckets) {
            count += bucket.get();
            self.sample("_bucket", &[labels, &[("le", &bound)]].concat(), count as f64);
        }
        self.sample("_sum", labels, histogram.sum_us.get() as f64 / 1e6);
        self.sample("_count", labels, count as f64);
    }
}

fn render(counts: &Counts, status: &v1::StatusReply) -> String {
    let mut output = Output::default();
    output.begin("powersweep_info").value(&[&status.build, &status.epoch.to_string()], 1.0);
    output.begin("powersweep_storage_stalled").value(&[], f64::from(u8::from(status.storage_stalled)));
    of_experiments(&mut output, &status.experiments);
    output.begin("powersweep_workers").value(&[], status.workers.len() as f64);
    let slots: u32 = status.workers.iter().map(|worker| worker.slots).sum();
    let busy: u32 = status.workers.iter().map(|worker| worker.busy_slots).sum();
    output.begin("powersweep_slots").value(&["busy"], f64::from(busy));
    output.value(&["idle"], f64::from(slots.saturating_sub(busy)));
    let leased: u64 = status.workers.iter().map(|worker| worker.leased_tasks).sum();
    output.begin("powersweep_leased_tasks").value(&[], leased as f64);
    counted(&mut output, counts);
    output.text
}

fn of_experiments(output: &mut Output, experiments: &[v1::ExperimentStatus]) {
    output.begin("powersweep_tasks");
    for e in experiments {
        let lost = e.failed + e.quarantined;
        let open = e.tasks.saturating_sub(e.done + e.running + lost);
        for (state, tasks) in [("done", e.done), ("running", e.running), ("open", open), ("failed", lost)] {
            output.value(&[&e.name, state], tasks as f64);
        }
    }
    output.begin("powersweep_done_tasks_per_second");
    experiments.iter().for_each(|e| output.value(&[&e.name], e.tasks_per_s));
    output.begin("powersweep_eta_seconds");
    experiments.iter().filter_map(|e| Some((e, e.eta_s?))).for_each(|(e, eta_s)| output.value(&[&e.name], eta_s));
    output.begin("powersweep_rows");
    for e in experiments {
        output.value(&[&e.name, "parts"], e.rows_in_parts as f64);
        output.value(&[&e.name, "state"], e.rows_unpublished as f64);
    }
    output.begin("powersweep_slot_seconds_total");
    for e in experiments {
        let spent = e.spent.unwrap_or_default();
        let phases =
            [("engine", spent.engine_s), ("parse", spent.parse_s), ("store", spent.store_s), ("idle", spent.idle_s)];
        phases.iter().for_each(|(phase, seconds)| output.value(&[&e.name, phase], *seconds));
    }
}

fn counted(output: &mut Output, counts: &Counts) {
    let simple =
        |output: &mut Output, name: &str, counter: &Counter| output.begin(name).value(&[], counter.get() as f64);
    simple(output, "powersweep_streams_total", &counts.streams);
    simple(output, "powersweep_hand_ins_total", &counts.hand_ins);
    simple(output, "powersweep_received_rows_total", &counts.rows);
    simple(output, "powersweep_simulated_jobs_total", &counts.jobs);
    output.begin("powersweep_received_bytes_total");
    for (kind, bytes) in [("rows", &counts.row_bytes), ("uploads", &counts.upload_bytes), ("logs", &counts.log_bytes)] {
        output.value(&[kind], bytes.get() as f64);
    }
    simple(output, "powersweep_direct_upload_bytes_total", &counts.direct_bytes);
    simple(output, "powersweep_sent_bytes_total", &counts.sent_bytes);
    output.begin("powersweep_failures_total");
    for kind in v1::FailureKind::all() {
        output.value(&[kind.word()], counts.failures[kind as usize].get() as f64);
    }
    output.begin("powersweep_commit_seconds").histogram(&[], &counts.commits);
    simple(output, "powersweep_commit_failures_total", &counts.commit_failures);
    simple(output, "powersweep_committed_row_bytes_total", &counts.committed_row_bytes);
    output.begin("powersweep_parts_total").value(&["published"], counts.parts.get() as f64);
    output.value(&["failed"], counts.part_failures.get() as f64);
    output.begin("powersweep_request_seconds");
    TIMED.iter().zip(&counts.requests).for_each(|(request, taken)| output.histogram(&[("request", request)], taken));
    output.begin("powersweep_refused_calls_total").value(&["token"], counts.unknown_tokens.get() as f64);
    output.value(&["role"], counts.wrong_roles.get() as f64);
}

/// Serves `/metrics` until `ended`.
pub(super) fn listen(listener: TcpListener, requests: Requests, counts: Arc<Counts>, ended: CancellationToken) {
    let router = Router::new().route("/metrics", get(answer)).with_state((requests, counts));
    tokio::spawn(async move {
        let serving = axum::serve(listener, router).with_graceful_shutdown(ended.cancelled_owned());
        if let Err(error) = serving.await {
            tracing::warn!("the listener of --metrics has ended: {error}");
        }
    });
}

async fn answer(State((requests, counts)): State<(Requests, Arc<Counts>)>, headers: HeaderMap) -> Response {
    // A page of another site whose name suddenly means this machine (DNS rebinding) has that name as the host.
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    if !is_loopback(host) {
        return (StatusCode::FORBIDDEN, "ask for localhost or 127.0.0.1\n").into_response();
    }
    match requests.status(v1::StatusRequest::default()).await {
        Ok(status) => {
            let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
            (kind, render(&counts, &status)).into_response()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_is_written_with_its_help_and_labels() {
        let counts = Counts::default();
        counts.commits.observe(Duration::from_millis(3));
        counts.commits.observe(Duration::from_secs(60));
        counts.failure(v1::FailureKind::Memory);
        let experiment = v1::ExperimentStatus {
            name: "a\"b".to_owned(),
            tasks: 10,
            done: 4,
            running: 1,
            quarantined: 2,
            eta_s: Some(1.5),
            ..Default::default()
        };
        let worker = v1::WorkerStatus { slots: 4, busy_slots: 1, leased_tasks: 9, ..Default::default() };
        let status = v1::StatusReply {
            build: "1".to_owned(),
            experiments: vec![experiment],
            workers: vec![worker],
            ..Default::default()
        };
        let text = render(&counts, &status);
        let helped: Vec<&str> =
            text.lines().filter_map(|line| line.strip_prefix("# HELP ")?.split(' ').next()).collect();
        assert_eq!(helped, METRICS.iter().map(|metric| metric.name).collect::<Vec<_>>());
        for line in [
            "powersweep_tasks{experiment=\"a\\\"b\",state=\"open\"} 3",
            "powersweep_eta_seconds{experiment=\"a\\\"b\"} 1.5",
            "powersweep_slots{state=\"idle\"} 3",
            "powersweep_failures_total{kind=\"memory\"} 1",
            "powersweep_commit_seconds_bucket{le=\"0.0025\"} 0",
            "powersweep_commit_seconds_bucket{le=\"0.005\"} 1",
            "powersweep_commit_seconds_bucket{le=\"+Inf\"} 2",
            "powersweep_commit_seconds_sum 60.003",
            "powersweep_request_seconds_count{request=\"submit\"} 0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
        }
    }

    #[test]
    fn only_names_of_this_machine_are_answered() {
        for host in ["localhost", "localhost:9464", "127.0.0.1:9464", "[::1]:9464", "[::1]"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["", "evil.example", "evil.example:9464", "127.0.0.1.evil.example", "10.0.0.1:9464"] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
