//! The real store under the real state machine, over an object store that fails: at every operation in turn, and at
//! random from seeds. Whatever happens, the next owner finds all that was promised, and the dataset is whole.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::TryStreamExt;
use object_store::ObjectStore;
use object_store::ObjectStoreExt;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use powersweep_coordinator::farm::{
    Config, Content, Effect, Event, Farm, Now, PublishFailure, Reply, Request, Submission,
};
use powersweep_coordinator::publish::make_visible;
use powersweep_coordinator::records::Record;
use powersweep_coordinator::store::{Batch, Location, SlateStore, Store, StoreError};
use powersweep_experiments::{Manifest, Sweep};
use powersweep_proto::v1;
use powersweep_proto::v1::farm_message::Body as ToWorker;
use powersweep_proto::v1::worker_message::Body as ToFarm;
use powersweep_results::Table;
use powersweep_results::part::Origin;
use powersweep_results::wire;
use uuid::Uuid;

use crate::hostile::versions;
use crate::store_ill::{Ailing, Ill, IllStore};
use crate::store_samples::{a_part, ids_in, rows_of};

/// Tasks of the first manifest, and of the edited one.
const TASKS: [u64; 2] = [6, 9];

/// Nothing takes so long unless it hangs.
const HANGS: Duration = Duration::from_secs(120);

/// What clients and workers were told, whatever the process remembers.
#[derive(Debug, Default)]
struct Told {
    generation: u64,
    acknowledged: BTreeSet<u64>,
    /// Tasks that were acknowledged before and are handed out again.
    again: BTreeSet<u64>,
}

/// A coordinator without a network, with one worker that runs its tasks at once.
struct Owner<'a> {
    store: &'a SlateStore,
    farm: Farm,
    told: &'a Mutex<Told>,
    now: Now,
    leases: Vec<v1::Lease>,
    handed_in: BTreeMap<u64, Vec<u64>>,
    last_id: u64,
    replies: Vec<Reply>,
    conn: u64,
}

/// A manifest with this number of tasks; task `i` has seed `i + 1`.
fn sweep(tasks: u64) -> Sweep {
    let text = format!(
        "version = 1\nname = \"e\"\ntables = [\"jobs\"]\nseeds = {{ from = 1, count = {tasks} }}\n[workloads.w]\n\
         source = \"lublin\"\n[platforms.p]\n[policies.q]\n"
    );
    Sweep::new(Manifest::parse("test", &text).expect("valid"), BTreeMap::new()).expect("no log is needed")
}

impl Owner<'_> {
    /// Passes an event to the farm, and carries out all effects.
    async fn event(&mut self, event: Event) -> Result<(), StoreError> {
        let mut events = vec![event];
        while let Some(event) = events.pop() {
            let mut effects = Vec::new();
            self.now.mono += Duration::from_millis(10);
            self.farm.handle(event, self.now, &mut effects);
            self.farm.check().expect("the farm's invariants hold");
            for effect in effects {
                self.effect(effect, &mut events).await?;
            }
            if let Some((token, batch)) = self.farm.take_commit() {
                self.store.commit(batch).await?;
                events.push(Event::Committed { token });
            }
        }
        Ok(())
    }

    async fn effect(&mut self, effect: Effect, events: &mut Vec<Event>) -> Result<(), StoreError> {
        match effect {
            Effect::Send { message: ToWorker::Lease(lease), .. } => self.leases.push(lease),
            Effect::Send { message: ToWorker::Ack(ack), .. } => {
                assert!(ack.rejected.is_empty(), "{:?}", ack.rejected);
                let mut told = self.told.lock().expect("no panic holds it");
                told.acknowledged.extend(ack.ids.iter().flat_map(|id| self.handed_in.remove(id).unwrap_or_default()));
            }
            Effect::Reply { reply, .. } => {
                if let Reply::Submitted(reply) = &reply {
                    self.told.lock().expect("no panic holds it").generation = reply.generation;
                }
                self.replies.push(reply);
            }
            Effect::Publish { intent } => {
                let shown = make_visible(self.store, &intent, Origin::default()).await;
                let result = shown.map_err(|error| {
                    assert!(error.is_retryable(), "{error}");
                    PublishFailure { reason: error.to_string(), retryable: true }
                });
                events.insert(0, Event::Published { part_id: *intent.part_id, result });
            }
            Effect::Discard { experiment, table, part_id } => {
                let _ = self.store.objects().expect("open").discard_staged(&experiment, table, part_id).await;
            }
            _ => {}
        }
        Ok(())
    }

    async fn submit(&mut self, tasks: u64) -> Result<(), StoreError> {
        let submission = Submission::new(sweep(tasks), BTreeMap::new());
        self.event(Event::Request { client: 1, request: Request::Submit(submission) }).await
    }

    async fn message(&mut self, body: ToFarm, rows: u32) -> Result<(), StoreError> {
        self.event(Event::Message { conn: self.conn, address: "test".into(), body, content: Content::of_rows(rows) })
            .await
    }

    /// Runs all tasks that are handed out, two in each hand-in.
    async fn work_off(&mut self) -> Result<(), StoreError> {
        self.conn += 1;
        // Its hello names no leases: its tasks are handed out again.
        self.leases.clear();
        let hello = v1::Hello {
            worker: "w".into(),
            worker_id: Uuid::from_u128(7).as_bytes().to_vec().into(),
            slots: 2,
            versions: Some(versions()),
            ..Default::default()
        };
        self.message(ToFarm::Hello(hello), 0).await?;
        while let Some(lease) = self.leases.pop() {
            let indices: Vec<u64> = lease.ranges.iter().flat_map(|range| range.start..range.end).collect();
            for some in indices.chunks(2) {
                self.hand_in(&lease, some).await?;
            }
        }
        self.message(ToFarm::Heartbeat(v1::Heartbeat::default()), 0).await
    }

    async fn hand_in(&mut self, lease: &v1::Lease, indices: &[u64]) -> Result<(), StoreError> {
        let ids: Vec<u64> = indices.iter().map(|index| index + 1).collect();
        let range = ids[0]..ids[ids.len() - 1] + 1;
        {
            let mut told = self.told.lock().expect("no panic holds it");
            let again: Vec<u64> = ids.iter().copied().filter(|id| told.acknowledged.contains(id)).collect();
            told.again.extend(again);
        }
        let part_id = Uuid::now_v7();
        self.store
            .objects()
            .expect("open")
            .stage("e", Table::Jobs, part_id, a_part("e", part_id, range.clone()))
            .await?;
        self.last_id += 1;
        self.handed_in.insert(self.last_id, ids.clone());
        let upload = v1::Upload {
            table: "jobs".into(),
            part_id: part_id.as_bytes().to_vec().into(),
            rows: ids.len() as u64,
            bytes: 1,
        };
        let hand_in = v1::HandIn {
            id: self.last_id,
            experiment: "e".into(),
            generation: lease.generation,
            done: vec![v1::LeaseTasks { lease: lease.id, indices: indices.to_vec() }],
            rows: wire::encode(&rows_of(Table::Tasks, range)).expect("small enough"),
            uploads: vec![upload],
            ..Default::default()
        };
        self.message(ToFarm::HandIn(hand_in), ids.len() as u32).await
    }

    fn state(&self) -> Option<v1::ExperimentState> {
        let request = v1::StatusRequest { experiment: "e".into(), max_failures: 0, ..Default::default() };
        self.farm.status(&request, self.now).experiments.first().map(v1::ExperimentStatus::state)
    }

    /// Submits and runs the whole scenario with one farm.
    async fn live(&mut self) -> Result<(), StoreError> {
        self.event(Event::Tick).await?;
        let generation = self.told.lock().expect("no panic holds it").generation;
        for (at, tasks) in TASKS.into_iter().enumerate().skip(generation.saturating_sub(1) as usize) {
            self.submit(tasks).await?;
            if at == 0 {
                self.work_off().await?;
                self.event(Event::Request { client: 2, request: Request::Flush("e".into()) }).await?;
            }
        }
        while self.state() != Some(v1::ExperimentState::Finished) {
            self.work_off().await?;
            self.now.mono += Duration::from_secs(3);
            self.event(Event::Tick).await?;
        }
        Ok(())
    }
}

/// A process from its start: opens the state, recovers, and runs the scenario to its end. After a storage error the state
/// is loaded again, as the driver does.
async fn process(location: &Location, root: Arc<dyn ObjectStore>, told: &Mutex<Told>) -> Result<(), StoreError> {
    let store = loop {
        match SlateStore::open_on(location, Arc::clone(&root)).await {
            Err(error) if error.is_retryable() => {}
            opened => break opened?,
        }
    };
    let config = Config { part_rows: 4, ..Config::default() };
    for seed in 1.. {
        let lived = match store.load().await {
            Ok(loaded) => {
                let now = Now { mono: Duration::from_secs(seed * 1000), wall_us: 1_700_000_000_000_000 };
                let seed = Uuid::new_v4().as_u64_pair().0;
                let farm = Farm::recover(config.clone(), loaded, seed, now);
                let (leases, replies, handed_in) = (Vec::new(), Vec::new(), BTreeMap::new());
                let mut owner =
                    Owner { store: &store, farm, told, now, leases, handed_in, last_id: 0, replies, conn: 0 };
                owner.live().await
            }
            Err(error) => Err(error),
        };
        match lived {
            Ok(()) => break,
            Err(error) if error.is_retryable() => {}
            Err(error) => return Err(error),
        }
    }
    store.close().await
}

/// The ids in a table's parts, in order.
async fn dataset(root: &dyn ObjectStore, table: Table) -> Vec<u64> {
    let folder = object_store::path::Path::from(format!("e/{}", table.name()));
    let mut ids = Vec::new();
    for object in root.list(Some(&folder)).try_collect::<Vec<_>>().await.expect("lists") {
        let bytes = root.get(&object.location).await.expect("there").bytes().await.expect("reads");
        ids.extend(ids_in(bytes));
    }
    ids.sort_unstable();
    ids
}

/// After a fault, a process without faults finishes the work, and every row occurs once.
async fn recover_and_check(location: &Location, root: Arc<dyn ObjectStore>, told: &Mutex<Told>, case: &str) {
    let ended = tokio::time::timeout(HANGS, process(location, Arc::clone(&root), told)).await;
    ended.unwrap_or_else(|_| panic!("{case}: recovery hangs")).unwrap_or_else(|error| panic!("{case}: {error}"));
    let all: Vec<u64> = (1..=TASKS[1]).collect();
    for table in [Table::Tasks, Table::Jobs] {
        assert_eq!(dataset(&*root, table).await, all, "{case}: {table}");
    }
    let again = told.lock().expect("no panic holds it").again.clone();
    assert!(again.is_empty(), "{case}: acknowledged tasks are run again: {again:?}");
    let store = SlateStore::open_on(location, root).await.expect("opens");
    let loaded = store.load().await.expect("loads");
    assert_eq!((loaded.rows.len(), loaded.intents.len(), loaded.leases.len()), (0, 0, 0), "{case}: something is left");
    store.close().await.expect("closes");
}

/// A directory without syncs: no test simulates a power failure.
fn directory(folder: &Path) -> (Location, Arc<dyn ObjectStore>) {
    let store = LocalFileSystem::new_with_prefix(folder).expect("it exists");
    (Location::directory(folder).expect("a path"), Arc::new(store))
}

/// A store that is no directory.
fn memory() -> (Location, Arc<dyn ObjectStore>) {
    let memory: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    (Location::remote("s3://bucket/".parse().expect("a URL"), Arc::clone(&memory)), memory)
}

/// Runs the scenario in a process of its own over an ill store, until it ends or dies. Returns the operations.
fn run_ill(
    location: &Location,
    root: Arc<dyn ObjectStore>,
    plan: Box<dyn Fn(u64) -> Option<Ill> + Send + Sync>,
) -> (Told, u64) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let ill = IllStore::new(root, plan);
    let told = Arc::new(Mutex::new(Told::default()));
    let work = {
        let (location, ill, told) = (location.clone(), Arc::clone(&ill), Arc::clone(&told));
        runtime.spawn(async move { process(&location, Arc::new(Ailing(ill)), &told).await })
    };
    runtime.block_on(async {
        tokio::select! {
            ended = tokio::time::timeout(HANGS, work) => {
                let ended = ended.expect("the process hangs").expect("no panic");
                // On a directory a write cannot be marked as one's own: an own write that was reported as failed looks
                // like another owner's. The process ends; the next one continues.
                let fenced = location.path().is_some() && ended.as_ref().is_err_and(StoreError::is_lost_ownership);
                assert!(ended.is_ok() || fenced, "storage errors are survived: {ended:?}");
            }
            () = ill.died() => {}
        }
    });
    runtime.shutdown_timeout(Duration::from_secs(1));
    let operations = ill.operations();
    let told = std::mem::take(&mut *told.lock().expect("no panic holds it"));
    (told, operations)
}

/// Whether the long versions run.
fn all() -> bool {
    std::env::var_os("POWERSWEEP_STORE_FAULTS").is_some()
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|number| number.parse().ok())
}

#[test]
fn a_fault_at_any_operation_loses_and_doubles_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let (location, root) = directory(folder.path());
    let (told, operations) = run_ill(&location, root, Box::new(|_| None));
    assert_eq!((told.generation, told.acknowledged.len() as u64), (2, TASKS[1]));
    assert!(operations > 60, "{operations} operations");
    let stride = if all() { 1 } else { operations / 12 };
    let check = tokio::runtime::Runtime::new().expect("a runtime");
    let mut cases = 0;
    for (offset, fault) in [Ill::DieBefore, Ill::DieAfter, Ill::LoseAnswer].into_iter().enumerate() {
        for at in (offset as u64 * stride / 3..operations).step_by(stride as usize) {
            let case = format!("{fault:?} at operation {at}");
            let folder = tempfile::tempdir().expect("a folder");
            let (location, root) = if fault == Ill::LoseAnswer { memory() } else { directory(folder.path()) };
            let (told, _) = run_ill(&location, Arc::clone(&root), Box::new(move |n| (n == at).then_some(fault)));
            check.block_on(recover_and_check(&location, root, &Mutex::new(told), &case));
            cases += 1;
        }
    }
    println!("{operations} operations of a run, {cases} faults: every dataset is whole");
}

/// SplitMix64's finaliser.
fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// One of eight operations fails or is slow, up to the 400th operation; a third of the seeds end in a crash.
fn ill_of(seed: u64, n: u64) -> Option<Ill> {
    let dice = mix(seed << 32 | n);
    if n > 400 {
        return None;
    }
    if seed.is_multiple_of(3) && n == 20 + mix(seed) % 150 {
        return Some(if dice.is_multiple_of(2) { Ill::DieBefore } else { Ill::DieAfter });
    }
    let time = Duration::from_millis(dice >> 32 & 15);
    match dice % 64 {
        0 | 1 => Some(Ill::Fail),
        2 | 3 => Some(Ill::LoseAnswer),
        4 => Some(Ill::TimeOut(time)),
        5..=7 => Some(Ill::Slow(time)),
        _ => None,
    }
}

#[test]
fn random_faults_lose_and_double_nothing() {
    let seeds = match number("POWERSWEEP_STORE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..if all() { 200 } else { 16 },
    };
    let check = tokio::runtime::Runtime::new().expect("a runtime");
    for seed in seeds {
        println!("seed {seed} (again: POWERSWEEP_STORE_SEED={seed})");
        let case = format!("POWERSWEEP_STORE_SEED={seed}");
        let folder = tempfile::tempdir().expect("a folder");
        let (location, root) = if seed % 2 == 0 { directory(folder.path()) } else { memory() };
        let (told, _) = run_ill(&location, Arc::clone(&root), Box::new(move |n| ill_of(seed, n)));
        check.block_on(recover_and_check(&location, root, &Mutex::new(told), &case));
    }
}

fn epoch(number: u64) -> Batch {
    let mut batch = Batch::new();
    batch.put(Record::Epoch(number));
    batch
}

/// Two owners by mistake: what the older one had begun to write when the newer one loaded never counts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_owner_writes_nothing_after_the_newer_one_has_loaded() {
    for held in 0..3 {
        let folder = tempfile::tempdir().expect("a folder");
        let (location, root) = directory(folder.path());
        let armed = Arc::new(std::sync::atomic::AtomicI64::new(i64::MAX));
        let countdown = Arc::clone(&armed);
        let plan = move |_| {
            let left = countdown.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
            (left == 0).then_some(Ill::Hold)
        };
        let ill = IllStore::of_writes(Arc::clone(&root), Box::new(plan));
        let older = SlateStore::open_on(&location, Arc::new(Ailing(Arc::clone(&ill)))).await.expect("opens");
        older.commit(epoch(1)).await.expect("durable");
        armed.store(held, std::sync::atomic::Ordering::SeqCst);
        let older = Arc::new(older);
        let commits = tokio::spawn({
            let older = Arc::clone(&older);
            async move {
                for number in 2..8 {
                    older.commit(epoch(number)).await?;
                }
                Ok::<_, StoreError>(())
            }
        });
        while !ill.is_held() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let newer = SlateStore::open_on(&location, Arc::clone(&root)).await.expect("opens");
        let found = newer.load().await.expect("loads").epoch;
        ill.release();
        let error = tokio::time::timeout(HANGS, commits).await.expect("no hang").expect("no panic");
        let error = error.expect_err("the older one is stopped");
        assert!(error.is_lost_ownership(), "held write {held}: {error}");
        let error = older.commit(epoch(99)).await.expect_err("it stays stopped");
        assert!(error.is_lost_ownership(), "held write {held}: {error}");
        assert_eq!(newer.load().await.expect("loads").epoch, found, "held write {held}");
        newer.commit(epoch(found + 1)).await.expect("the newer one is not disturbed");
        newer.close().await.expect("closes");
        let third = SlateStore::open_on(&location, root).await.expect("opens");
        assert_eq!(third.load().await.expect("loads").epoch, found + 1, "held write {held}");
        third.close().await.expect("closes");
    }
}
