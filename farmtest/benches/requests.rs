//! Requests to an object store per million tasks, which are what such a store costs beside its bytes.
//!
//!     cargo bench -p powersweep-farmtest --bench requests
//!
//! A coordinator and a worker in this process, with the data in a store in memory that counts requests and answers as late
//! as an object store of the same region. Counted are the requests that a store bills: a part of an upload in pieces, a
//! page of 1,000 names of a list, an object of a deletion. Retries are not counted, because nothing fails here.
//!
//! Two numbers make the cost of a sweep: requests for rows and leases, and requests a second of a coordinator that runs.
//! POWERSWEEP_REQUESTS_TASKS (default 1,000,000) sets the tasks of the sweep without `jobs`, POWERSWEEP_REQUESTS_IDLE_S
//! (default 120) the time without a task.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::throttle::{ThrottleConfig, ThrottledStore};
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions,
    PutOptions, PutPayload, PutResult, Result, UploadPart,
};
use powersweep_coordinator::service::{Handle, ServeOptions, serve};
use powersweep_coordinator::store::{Location, Store, open};
use powersweep_farmtest::sweeps::four_policies;
use powersweep_proto::access::{Role, Source};
use powersweep_proto::client::Address;
use powersweep_proto::v1;
use powersweep_worker::WorkerOptions;
use tokio_util::sync::CancellationToken;

/// Slots of the worker: the goals of the other benches are for two cores.
const SLOTS: usize = 2;
/// Interval of looks at the status, which needs no request.
const LOOK: Duration = Duration::from_millis(20);
/// Only turns a hang into a failure.
const PATIENCE: Duration = Duration::from_secs(3600);
/// Time after which the files of a sweep's state are deleted.
const DELETED_WITHIN: Duration = Duration::from_secs(90);
/// Names on a page of a list.
const PAGE: u64 = 1000;

/// A kind of request.
#[derive(Clone, Copy)]
enum Kind {
    Put,
    Get,
    List,
    Delete,
    Copy,
}

const KINDS: [&str; 5] = ["put", "get", "list", "delete", "copy"];

/// Requests by kind.
#[derive(Debug, Default)]
struct Counts([AtomicU64; KINDS.len()]);

impl Counts {
    fn add(&self, kind: Kind, requests: u64) {
        self.0[kind as usize].fetch_add(requests, Ordering::Relaxed);
    }

    fn now(&self) -> [f64; KINDS.len()] {
        self.0.each_ref().map(|count| count.load(Ordering::Relaxed) as f64)
    }
}

/// A store that counts requests.
#[derive(Debug)]
struct Counting {
    inner: Arc<dyn ObjectStore>,
    counts: Arc<Counts>,
}

impl fmt::Display for Counting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Counting({})", self.inner)
    }
}

#[async_trait]
impl ObjectStore for Counting {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.counts.add(Kind::Put, 1);
        self.inner.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.counts.add(Kind::Put, 1);
        let upload = self.inner.put_multipart_opts(location, options).await?;
        Ok(Box::new(Pieces { upload, counts: Arc::clone(&self.counts) }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.counts.add(Kind::Get, 1);
        self.inner.get_opts(location, options).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let counts = Arc::clone(&self.counts);
        self.inner.delete_stream(locations.inspect(move |_| counts.add(Kind::Delete, 1)).boxed())
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.counts.add(Kind::List, 1);
        let counts = Arc::clone(&self.counts);
        let pages = self.inner.list(prefix).enumerate().map(move |(at, object)| {
            let begins_page = at > 0 && (at as u64).is_multiple_of(PAGE);
            counts.add(Kind::List, u64::from(begins_page));
            object
        });
        pages.boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let found = self.inner.list_with_delimiter(prefix).await?;
        let names = (found.objects.len() + found.common_prefixes.len()) as u64;
        self.counts.add(Kind::List, names.div_ceil(PAGE).max(1));
        Ok(found)
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.counts.add(Kind::Copy, 1);
        self.inner.copy_opts(from, to, options).await
    }
}

/// An upload in pieces.
#[derive(Debug)]
struct Pieces {
    upload: Box<dyn MultipartUpload>,
    counts: Arc<Counts>,
}

#[async_trait]
impl MultipartUpload for Pieces {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        self.counts.add(Kind::Put, 1);
        self.upload.put_part(data)
    }

    async fn complete(&mut self) -> Result<PutResult> {
        self.counts.add(Kind::Put, 1);
        self.upload.complete().await
    }

    async fn abort(&mut self) -> Result<()> {
        self.counts.add(Kind::Delete, 1);
        self.upload.abort().await
    }
}

/// The store, and its counts.
fn store() -> (Location, Arc<Counts>) {
    let late = ThrottleConfig {
        wait_put_per_call: Duration::from_millis(40),
        wait_get_per_call: Duration::from_millis(20),
        wait_list_per_call: Duration::from_millis(40),
        wait_list_with_delimiter_per_call: Duration::from_millis(40),
        wait_delete_per_call: Duration::from_millis(20),
        ..ThrottleConfig::default()
    };
    let inner = Arc::new(ThrottledStore::new(InMemory::new(), late));
    let counts = Arc::<Counts>::default();
    let store = Counting { inner, counts: Arc::clone(&counts) };
    let url = "s3://counted/data".parse().expect("a URL");
    (Location::remote(url, Arc::new(store)), counts)
}

/// Runs a sweep to its end; returns its seconds.
async fn sweep(handle: &Handle, name: &str, manifest: String) -> f64 {
    let begun = Instant::now();
    let requests = handle.requests();
    requests.submit(v1::SubmitRequest { manifest, ..Default::default() }).await.expect("it is accepted");
    loop {
        let request = v1::StatusRequest { experiment: name.to_owned(), ..Default::default() };
        let status = requests.status(request).await.expect("it answers");
        let found = &status.experiments[0];
        assert_eq!(found.failed + found.quarantined, 0, "{found:?}");
        if found.state() == v1::ExperimentState::Finished {
            return begun.elapsed().as_secs_f64();
        }
        assert!(begun.elapsed() < PATIENCE, "{found:?}");
        tokio::time::sleep(LOOK).await;
    }
}

/// Prints the requests since `before`, times `factor`.
fn print(what: &str, counts: &Counts, before: [f64; KINDS.len()], factor: f64) {
    let now = counts.now();
    let each = KINDS.iter().zip(now.iter().zip(before)).map(|(kind, (now, before))| {
        let requests = (now - before) * factor;
        format!("{kind} {requests:.0}")
    });
    println!("{what}: {}", each.collect::<Vec<_>>().join(", "));
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|error| panic!("{name}={text}: {error}")))
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime starts");
    runtime.block_on(measure());
}

async fn measure() {
    let tasks = number("POWERSWEEP_REQUESTS_TASKS", 1_000_000).next_multiple_of(40);
    let idle_s = number("POWERSWEEP_REQUESTS_IDLE_S", 120);
    let (location, counts) = store();
    let (state, ownership) = open(&location, "", false).await.expect("nobody else owns it");
    let state: Arc<dyn Store> = Arc::new(state);
    let (shutdown, stopped) = (CancellationToken::new(), CancellationToken::new());
    let handle = serve(ServeOptions::local(Arc::clone(&state)), shutdown.clone()).await.expect("it serves");
    let access = Source::Given(Box::new(handle.access(Role::Worker)));
    let worker = WorkerOptions::new(Address::of(access, Role::Worker), SLOTS, "w");
    let worker = tokio::spawn(powersweep_worker::run(worker, stopped.clone()));
    print("a start", &counts, [0.0; KINDS.len()], 1.0);

    // A row of `jobs` for each job: a tenth of the tasks makes as much work.
    for (name, tasks, jobs, more) in
        [("short", tasks, 10, ""), ("long", tasks / 10, 400, ""), ("jobs", tasks / 10, 100, "tables = [\"jobs\"]")]
    {
        let before = counts.now();
        let seconds = sweep(&handle, name, four_policies(name, tasks, jobs, more)).await;
        let table = if more.is_empty() { "" } else { ", with `jobs`" };
        let rate = tasks as f64 / seconds;
        let what = format!("a million tasks of {jobs} jobs{table}, at {rate:.0} tasks/s");
        print(&what, &counts, before, 1e6 / tasks as f64);
        print("  a second of it", &counts, before, 1.0 / seconds);
    }

    // Files of the state are deleted a minute after their last use: these are no part of an idle hour.
    let before = counts.now();
    tokio::time::sleep(DELETED_WITHIN).await;
    print("the 90 s after these sweeps", &counts, before, 1.0);
    let before = counts.now();
    tokio::time::sleep(Duration::from_secs(idle_s)).await;
    print("an hour without a task", &counts, before, 3600.0 / idle_s as f64);

    let before = counts.now();
    stopped.cancel();
    worker.await.expect("no panic").expect("a good end");
    shutdown.cancel();
    handle.wait().await.expect("a good end");
    // The coordinator has closed it.
    state.close().await.ok();
    ownership.release().await;
    print("an end", &counts, before, 1.0);
}
