//! Workers that simulate nothing: they speak the protocol and hand in rows of their tasks. Many run in one process.
//!
//! Their process is this bench itself, started again with [`WORD`] and the fields of [`Load`].

use std::collections::{HashMap, VecDeque};
use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use powersweep_engine::workload::RuleCounts;
use powersweep_engine::{Details, Limits, Measured, simulate, workload};
use powersweep_experiments::{Manifest, Sweep};
use powersweep_proto::access::Role;
use powersweep_proto::v1;
use powersweep_proto::v1::farm_message::Body as FromFarm;
use powersweep_proto::v1::worker_message::Body as ToFarm;
use powersweep_results::columns::fingerprint;
use powersweep_results::identity::{Micros, RunFacts};
use powersweep_results::{tasks, wire};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use uuid::Uuid;

/// First argument of a process of workers.
pub(crate) const WORD: &str = "--load";

/// Duration of a task that is reported where tasks take no time (s).
const SAID_S: f64 = 20e-6;

/// The work of a process of workers.
#[derive(Debug, Clone)]
pub(crate) struct Load {
    /// Folder of the coordinator's access files.
    pub(crate) access: String,
    /// Workers, one connection and one slot each.
    pub(crate) workers: usize,
    /// Rows of a hand-in.
    pub(crate) rows: usize,
    /// Maximum number of unacknowledged hand-ins.
    pub(crate) ahead: usize,
    /// Mean duration of a task; 0 for none.
    pub(crate) task_ms: u64,
    /// All workers end after this time.
    pub(crate) seconds: u64,
}

/// Counts and waits of a process of workers.
#[derive(Debug, Default, Clone)]
pub(crate) struct Seen {
    /// Rows acknowledged.
    pub(crate) rows: u64,
    /// Times from each hand-in to the next lease.
    pub(crate) answers: Vec<Wait>,
    /// For each task, the time of its slot without a task before it; no entry if the task was queued.
    pub(crate) empty: Vec<Wait>,
    /// Connections that were refused or broke.
    pub(crate) lost: u64,
}

/// How long a worker waited.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wait {
    /// Its end, in milliseconds since the process began.
    pub(crate) at_ms: u32,
    pub(crate) us: u32,
}

impl Wait {
    /// The wait from `since` until now, in a process that began at `began`.
    fn over(since: Instant, began: Instant) -> Wait {
        let us = u32::try_from(since.elapsed().as_micros()).unwrap_or(u32::MAX);
        Wait { at_ms: u32::try_from(began.elapsed().as_millis()).unwrap_or(u32::MAX), us }
    }

    fn to_line(waits: &[Wait]) -> String {
        waits.iter().map(|wait| format!("{}:{}", wait.at_ms, wait.us)).collect::<Vec<_>>().join(" ")
    }

    fn parse_line(line: &str) -> Vec<Wait> {
        line.split(' ').filter_map(Wait::parse).collect()
    }

    fn parse(text: &str) -> Option<Wait> {
        let (at_ms, us) = text.split_once(':')?;
        Some(Wait { at_ms: at_ms.parse().ok()?, us: us.parse().ok()? })
    }
}

impl Load {
    fn args(&self) -> Vec<String> {
        let numbers = [self.workers as u64, self.rows as u64, self.ahead as u64, self.task_ms, self.seconds];
        [WORD.to_owned(), self.access.clone()].into_iter().chain(numbers.iter().map(u64::to_string)).collect()
    }

    fn from_args(args: &[String]) -> Load {
        let number = |at: usize| args[at].parse::<u64>().expect("the bench starts itself with numbers");
        Load {
            access: args[1].clone(),
            workers: number(2) as usize,
            rows: number(3) as usize,
            ahead: number(4) as usize,
            task_ms: number(5),
            seconds: number(6),
        }
    }

    /// Starts the process.
    pub(crate) fn start(&self) -> Workers {
        let child = Command::new(std::env::current_exe().expect("this bench has a path"))
            .args(self.args())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the bench starts itself");
        Workers(child)
    }
}

/// A process of workers.
pub(crate) struct Workers(Child);

impl Workers {
    /// A `powersweep worker` of one slot.
    pub(crate) fn ordinary(binary: &Path, access: &str) -> Workers {
        let mut command = Command::new(binary);
        command.args(["worker", "--slots", "1", "--access", access]).stdin(Stdio::null());
        Workers(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the binary starts"))
    }

    /// Whether it has ended.
    pub(crate) fn ended(&mut self) -> bool {
        self.0.try_wait().is_ok_and(|status| status.is_some())
    }

    /// Waits for its end; returns its counts and waits.
    pub(crate) fn wait(mut self) -> Seen {
        let mut seen = Seen::default();
        let lines = BufReader::new(self.0.stdout.take().expect("it is piped")).lines();
        for line in lines.map_while(Result::ok) {
            let Some((word, value)) = line.split_once(' ') else { continue };
            match word {
                "rows" => seen.rows = value.parse().unwrap_or(0),
                "lost" => seen.lost = value.parse().unwrap_or(0),
                "answers" => seen.answers = Wait::parse_line(value),
                "empty" => seen.empty = Wait::parse_line(value),
                _ => println!("{line}"),
            }
        }
        let _ = self.0.wait();
        seen
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs the workers, if this process was started for them.
pub(crate) fn serve_as_workers() -> bool {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().map(String::as_str) != Some(WORD) {
        return false;
    }
    let load = Arc::new(Load::from_args(&args));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let seen = runtime.expect("a runtime starts").block_on(run(load));
    println!("rows {}\nlost {}", seen.rows, seen.lost);
    println!("answers {}\nempty {}", Wait::to_line(&seen.answers), Wait::to_line(&seen.empty));
    true
}

async fn run(load: Arc<Load>) -> Seen {
    let rows = Arc::new(Rows::default());
    let began = Instant::now();
    let until = began + Duration::from_secs(load.seconds);
    let mut workers = tokio::task::JoinSet::new();
    for number in 0..load.workers {
        let (load, rows) = (Arc::clone(&load), Arc::clone(&rows));
        workers.spawn(async move {
            // Ten thousand at once would overflow the queue of connections.
            tokio::time::sleep(Duration::from_millis(number as u64 * 8)).await;
            let mut worker = Worker::new(began, load, rows);
            if let Err(why) = worker.work(until).await {
                // Not to standard output: the pipe is read only at the end.
                eprintln!("  worker {number}: {why}");
                worker.seen.lost += 1;
            }
            worker.seen
        });
    }
    let mut all = Seen::default();
    while let Some(seen) = workers.join_next().await {
        let seen = seen.expect("a worker does not panic");
        all.rows += seen.rows;
        all.lost += seen.lost;
        all.answers.extend(seen.answers);
        all.empty.extend(seen.empty);
    }
    all
}

/// Rows of leased tasks: keys and parameters of the task itself, which the coordinator checks, and the measures of one
/// simulation.
#[derive(Default)]
struct Rows {
    /// Sweeps by the text of their manifest.
    sweeps: Mutex<HashMap<String, Arc<Sweep>>>,
    measured: OnceLock<(RuleCounts, Measured)>,
}

impl Rows {
    fn sweep(&self, manifest: &str) -> Arc<Sweep> {
        let mut sweeps = self.sweeps.lock().expect("no worker panics");
        Arc::clone(sweeps.entry(manifest.to_owned()).or_insert_with(|| Arc::new(sweep(manifest))))
    }

    fn of(&self, sweep: &Sweep, indices: impl Iterator<Item = u64>) -> Bytes {
        let (counts, measured) = self.measured.get_or_init(|| simulated(sweep));
        let mut rows = tasks::Builder::new();
        for index in indices {
            let spec = sweep.task(index).expect("it was leased");
            rows.push(&spec, counts, measured, &facts(index));
        }
        wire::encode(&rows.finish()).expect("it is small enough")
    }
}

fn sweep(manifest: &str) -> Sweep {
    let manifest = Manifest::parse("bench", manifest).expect("the manifest is right");
    Sweep::new(manifest, std::collections::BTreeMap::new()).expect("it needs no logs")
}

fn simulated(sweep: &Sweep) -> (RuleCounts, Measured) {
    let spec = sweep.task(0).expect("nothing is excluded");
    let built = workload::build(&spec.sim, None).expect("a workload");
    let measured = simulate(&spec.sim, &built, &Limits::NONE, &mut Details::default()).expect("it simulates");
    (built.counts, measured)
}

/// Facts of a run, with times of as many digits as measured ones.
fn facts(index: u64) -> RunFacts {
    let part =
        |of: u64| (index.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(of) >> 11) as f64 / (1_u64 << 53) as f64;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as i64);
    RunFacts {
        attempt: 1,
        worker: "load".to_owned(),
        started_at: Micros(now),
        wall_ms: 1.0 + part(1),
        engine_ms: part(2),
        parse_ms: part(3),
    }
}

/// Rows of the first tasks of a trivial sweep.
pub(crate) fn encode(count: usize) -> Bytes {
    let text = crate::server::trivial("rows", (count as u64 + 4) / 4 * 4);
    Rows::default().of(&sweep(&text), 0..count as u64)
}

struct Worker {
    /// When the process began.
    began: Instant,
    load: Arc<Load>,
    rows: Arc<Rows>,
    seen: Seen,
    /// Leased tasks that are not handed in.
    queue: VecDeque<(v1::LeaseId, Range<u64>)>,
    generation: u64,
    experiment: String,
    sweep: Option<Arc<Sweep>>,
    next_id: u64,
    /// Numbers of rows of unacknowledged hand-ins, by id.
    on_the_way: HashMap<u64, u64>,
    handed_in: Option<Instant>,
    /// End of the task in the slot.
    busy_until: Option<tokio::time::Instant>,
    /// Since when the slot has no task.
    empty_since: Option<Instant>,
    random: u64,
}

impl Worker {
    fn new(began: Instant, load: Arc<Load>, rows: Arc<Rows>) -> Worker {
        let random = Uuid::new_v4().as_u64_pair().0;
        Worker {
            began,
            load,
            rows,
            seen: Seen::default(),
            queue: VecDeque::new(),
            generation: 1,
            experiment: String::new(),
            sweep: None,
            next_id: 0,
            on_the_way: HashMap::new(),
            handed_in: None,
            busy_until: None,
            empty_since: None,
            random,
        }
    }

    async fn work(&mut self, until: Instant) -> Result<(), String> {
        let words = |error: &dyn std::error::Error| powersweep_experiments::plain::chain(error);
        let target = crate::server::target(&self.load.access, Role::Worker);
        let mut client = loop {
            match target.connect().await {
                Ok(client) => break client,
                Err(_) if Instant::now() < until => tokio::time::sleep(Duration::from_secs(1)).await,
                Err(error) => return Err(words(&error)),
            }
        };
        let (send, receive) = mpsc::channel(64);
        self.empty_since = Some(Instant::now());
        send.send(message(ToFarm::Hello(self.hello()))).await.map_err(|e| words(&e))?;
        let mut inbound = client.work(ReceiverStream::new(receive)).await.map_err(|e| words(&e))?.into_inner();
        let beat = Duration::from_secs(2);
        let first = tokio::time::Instant::now() + beat.mul_f64(self.spread());
        let mut heartbeat = tokio::time::interval_at(first, beat);
        let end = tokio::time::sleep_until(until.into());
        tokio::pin!(end);
        loop {
            let idle = tokio::time::Instant::now() + Duration::from_secs(3600);
            let done = tokio::time::sleep_until(self.busy_until.unwrap_or(idle));
            tokio::select! {
                said = inbound.message() => match said.map_err(|e| words(&e))? {
                    Some(said) => if self.hear(said.body)? { return Ok(()) },
                    None => return Err("the coordinator closed the stream".to_owned()),
                },
                () = done, if self.busy_until.is_some() => {
                    self.busy_until = None;
                    self.empty_since = Some(Instant::now());
                }
                _ = heartbeat.tick() => {
                    let queued = self.queue.iter().map(|(_, range)| range.end - range.start).sum();
                    let body = v1::Heartbeat { busy_slots: 1, queued_tasks: queued, ..v1::Heartbeat::default() };
                    send.send(message(ToFarm::Heartbeat(body))).await.map_err(|e| words(&e))?;
                    continue;
                }
                () = &mut end => {
                    send.send(message(ToFarm::Goodbye(v1::Goodbye::default()))).await.ok();
                    return Ok(());
                }
            }
            while let Some(hand_in) = self.next_hand_in() {
                send.send(message(ToFarm::HandIn(hand_in))).await.map_err(|e| words(&e))?;
            }
        }
    }

    fn hello(&self) -> v1::Hello {
        v1::Hello {
            // The name in the rows, which all workers share.
            worker: "load".to_owned(),
            worker_id: Uuid::new_v4().as_bytes().to_vec().into(),
            slots: 1,
            versions: Some(powersweep_proto::versions("bench", fingerprint(&tasks::schema()))),
            ..Default::default()
        }
    }

    /// Returns whether the worker may end.
    fn hear(&mut self, body: Option<FromFarm>) -> Result<bool, String> {
        match body {
            Some(FromFarm::Experiment(experiment)) => {
                self.sweep = Some(self.rows.sweep(&experiment.manifest));
                self.experiment = experiment.name;
                self.generation = experiment.generation;
            }
            Some(FromFarm::Lease(lease)) => {
                let began = self.began;
                self.seen.answers.extend(self.handed_in.take().map(|since| Wait::over(since, began)));
                let id = lease.id.ok_or("a lease without id")?;
                self.queue.extend(lease.ranges.iter().map(|range| (id, range.start..range.end)));
                if self.busy_until.is_none() && self.load.task_ms > 0 {
                    self.begin_task();
                }
            }
            Some(FromFarm::Ack(ack)) => {
                if let Some(rejected) = ack.rejected.first() {
                    return Err(rejected.reason.clone());
                }
                self.seen.rows += ack.ids.iter().filter_map(|id| self.on_the_way.remove(id)).sum::<u64>();
            }
            Some(FromFarm::Refused(refused)) => return Err(refused.reason),
            Some(FromFarm::Drain(_)) => return Ok(true),
            _ => {}
        }
        Ok(false)
    }

    fn begin_task(&mut self) {
        let began = self.began;
        self.seen.empty.extend(self.empty_since.take().map(|since| Wait::over(since, began)));
        let took = Duration::from_millis(self.load.task_ms).mul_f64(0.5 + self.spread());
        self.busy_until = Some(tokio::time::Instant::now() + took);
    }

    fn next_hand_in(&mut self) -> Option<v1::HandIn> {
        if self.on_the_way.len() >= self.load.ahead || self.queue.is_empty() || self.busy_until.is_some() {
            return None;
        }
        let mut left = self.load.rows as u64;
        let mut done: Vec<v1::LeaseTasks> = Vec::new();
        while left > 0
            && let Some((lease, range)) = self.queue.front_mut()
        {
            let taken = range.start..range.end.min(range.start + left);
            left -= taken.end - taken.start;
            match done.last_mut() {
                Some(last) if last.lease == Some(*lease) => last.indices.extend(taken.clone()),
                _ => done.push(v1::LeaseTasks { lease: Some(*lease), indices: taken.clone().collect() }),
            }
            range.start = taken.end;
            if range.start >= range.end {
                self.queue.pop_front();
            }
        }
        let count = self.load.rows as u64 - left;
        self.next_id += 1;
        self.on_the_way.insert(self.next_id, count);
        let each_s = if self.load.task_ms > 0 { self.load.task_ms as f64 / 1e3 } else { SAID_S };
        if self.load.task_ms > 0 {
            self.handed_in = Some(Instant::now());
            if !self.queue.is_empty() {
                self.begin_task();
            }
        }
        let sweep = self.sweep.as_ref().expect("an experiment comes before its leases");
        let indices = done.iter().flat_map(|tasks| tasks.indices.iter().copied());
        let rows = self.rows.of(sweep, indices);
        Some(v1::HandIn {
            id: self.next_id,
            experiment: self.experiment.clone(),
            generation: self.generation,
            done,
            rows,
            spent: Some(v1::TimeSpent { engine_s: each_s * count as f64, ..Default::default() }),
            ..Default::default()
        })
    }

    /// A random number from 0 to 1 (a step of Knuth's MMIX generator).
    fn spread(&mut self) -> f64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 40) as f64 / f64::from(1 << 24)
    }
}

fn message(body: ToFarm) -> v1::WorkerMessage {
    v1::WorkerMessage { body: Some(body) }
}
