//! A coordinator and workers as processes, which tests kill, stop and restart.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use powersweep_experiments::{Manifest, Sweep};
use powersweep_farmtest::dataset::{assert_undisturbed_but, assert_undisturbed_large};
use powersweep_farmtest::sweeps::four_policies;
use powersweep_proto::access::{Role, Source};
use powersweep_proto::client::{Address, Client, Target};
use powersweep_proto::v1::{ExperimentState, StatusReply, StatusRequest};
use tokio::runtime::Runtime;

use super::journal;
use crate::sandbox::{BINARY, Ended, Running, Sandbox};

/// A sweep without progress for this time hangs.
pub(super) const PATIENCE: Duration = Duration::from_secs(180);
/// Far longer than a whole sweep takes.
const UNDISTURBED: Duration = Duration::from_secs(3600);
/// Interval of checks of the farm.
const LOOK: Duration = Duration::from_millis(5);
/// A coordinator without an answer for this time is suspended or cut off.
const ANSWER: Duration = Duration::from_secs(5);
/// Log filter: workers log each started task and each acknowledgement.
const LOG: &str = "powersweep=info,warn,powersweep_worker::journal=trace";

/// A port that a restarted coordinator can take again. It is below the kernel's ports for outgoing connections, which
/// could take it meanwhile.
pub(super) fn port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    const FIRST: u16 = 20_000;
    const COUNT: u16 = 9_000;
    // Parallel test processes begin at different ports.
    let begin = (std::process::id() as u16).wrapping_mul(97) % COUNT;
    loop {
        let port = FIRST + (begin + NEXT.fetch_add(1, Ordering::Relaxed)) % COUNT;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// A command with another id of the boot, as on another machine; it needs root.
fn on_machine(sandbox: &Sandbox, boot: &Path) -> Command {
    let mut command = sandbox.command("unshare");
    let script = "mount --bind \"$0\" /proc/sys/kernel/random/boot_id && exec \"$@\"";
    command.args(["--mount", "sh", "-c", script]).arg(boot).arg(BINARY);
    command
}

/// Runs `NAME.toml` to its end with its data in the folder `undisturbed`.
pub(super) fn run_undisturbed(sandbox: &Sandbox, name: &str) {
    let file = format!("{name}.toml");
    let args = ["run", &file, "--quiet", "--show", "0", "--slots", "2", "--data", "undisturbed"];
    let mut running = sandbox.start(&args);
    let begun = Instant::now();
    while running.runs() {
        assert!(begun.elapsed() < UNDISTURBED, "the undisturbed run hangs: {}", running.stderr());
        std::thread::sleep(LOOK);
    }
    running.wait().exits(0);
}

/// The sweep of a farm: tasks with this number of jobs each.
struct Work {
    name: &'static str,
    tasks: u32,
    jobs: u32,
    /// Further keys of the manifest.
    more: &'static str,
    /// The submitted manifest and its edits, by generation: each generation numbers the tasks differently.
    generations: BTreeMap<u64, Sweep>,
}

/// The processes of a farm with one data folder or store.
pub(super) struct Farm {
    pub(super) sandbox: Sandbox,
    runtime: Runtime,
    /// The coordinator's --data.
    data: String,
    /// Variables of the coordinator's environment.
    env: Vec<(String, String)>,
    /// File with the id of the boot that the coordinator sees, if not this machine's.
    boot: Option<PathBuf>,
    pub(super) port: u16,
    /// The port to which workers connect: the coordinator's, or a relay's.
    pub(super) workers_port: u16,
    pub(super) coordinator: Option<Running>,
    pub(super) workers: Vec<Running>,
    names: u32,
    /// Logs of all workers, ended ones too.
    logs: Vec<PathBuf>,
    client: Option<Client>,
    work: Work,
}

impl Farm {
    /// A farm without processes, with its data in the folder `data`.
    pub(super) fn new() -> Farm {
        Farm::on("data", &[])
    }

    /// The same with data elsewhere, and variables of the coordinator's environment.
    pub(super) fn on(data: &str, env: &[(&str, &str)]) -> Farm {
        let port = port();
        Farm {
            sandbox: Sandbox::new(),
            runtime: tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts"),
            data: data.to_owned(),
            env: env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            boot: None,
            port,
            workers_port: port,
            coordinator: None,
            workers: Vec::new(),
            names: 0,
            logs: Vec::new(),
            client: None,
            work: Work { name: "", tasks: 0, jobs: 0, more: "", generations: BTreeMap::new() },
        }
    }

    /// From now on, coordinators start on another machine: with the data in this folder there.
    pub(super) fn move_to(&mut self, data: &str, boot: PathBuf) {
        self.data = data.to_owned();
        self.boot = Some(boot);
    }

    fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// The folder of the access files of all coordinators of this farm.
    fn access(&self) -> PathBuf {
        let beside = self.sandbox.path(&self.data).join(".powersweep/access");
        // An object store has no folder: they are in the state folder of the sandbox's user.
        if self.data.contains("://") { self.sandbox.access_elsewhere() } else { beside }
    }

    /// Spawns a coordinator at this port without waiting for it.
    pub(super) fn spawn_coordinator(&self, port: u16, more: &[&str]) -> Running {
        let mut command = match &self.boot {
            None => self.sandbox.command(BINARY),
            Some(boot) => on_machine(&self.sandbox, boot),
        };
        command.args(["serve", "--listen", &format!("127.0.0.1:{port}"), "--data", &self.data]).args(more);
        command.env("POWERSWEEP_LOG", LOG).envs(self.env.iter().map(|(name, value)| (name, value)));
        self.sandbox.spawn(command)
    }

    /// Starts the coordinator, at the same address each time, and waits until it serves.
    pub(super) fn start(&mut self) {
        self.start_with(&[]);
    }

    /// The same with more options.
    pub(super) fn start_with(&mut self, more: &[&str]) {
        let mut coordinator = self.spawn_coordinator(self.port, more);
        coordinator.says("powersweep: serving");
        self.coordinator = Some(coordinator);
        self.client = None;
    }

    /// Repeats the start until it succeeds, like a service manager: on failing storage a start may give up.
    pub(super) fn start_despite_storage(&mut self, more: &[&str]) {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            let mut coordinator = self.spawn_coordinator(self.port, more);
            while coordinator.runs() {
                if coordinator.stderr().contains("powersweep: serving") {
                    self.coordinator = Some(coordinator);
                    self.client = None;
                    return;
                }
                assert!(begun.elapsed() < PATIENCE, "it does not serve: {}", coordinator.stderr());
                std::thread::sleep(LOOK);
            }
            println!("a start failed: {}", coordinator.wait().exits(5).stderr.trim_end());
        }
        panic!("no coordinator starts");
    }

    /// Kills the coordinator with SIGKILL.
    pub(super) fn kill_coordinator(&mut self) {
        let mut coordinator = self.coordinator.take().expect("it was started");
        assert!(coordinator.runs(), "it ended by itself: {}", coordinator.stderr());
        drop(coordinator);
        self.client = None;
    }

    /// Starts a worker.
    pub(super) fn add_worker(&mut self, slots: u32) {
        self.add_worker_that_logs(slots, LOG);
    }

    /// The same with another filter of its log.
    pub(super) fn add_worker_that_logs(&mut self, slots: u32, log: &str) {
        self.names += 1;
        let name = format!("w{}", self.names);
        let url = format!("https://127.0.0.1:{}", self.workers_port);
        let mut command = self.sandbox.command(BINARY);
        command.arg("worker").arg("--access").arg(self.access());
        command.args(["--coordinator", &url, "--name", &name, "--slots", &slots.to_string()]);
        command.env("POWERSWEEP_LOG", log);
        let worker = self.sandbox.spawn(command);
        self.logs.push(worker.log().to_owned());
        self.workers.push(worker);
    }

    /// The logs of all workers, ended ones too.
    pub(super) fn logs(&self) -> &[PathBuf] {
        &self.logs
    }

    /// Kills a worker with SIGKILL.
    pub(super) fn kill_worker(&mut self, at: usize) {
        let mut worker = self.workers.swap_remove(at);
        assert!(worker.runs(), "it ended by itself: {}", worker.stderr());
    }

    /// Submits the sweep of this test; `tasks`, and numbers of tasks added later, are multiples of 4.
    pub(super) fn submit(&mut self, name: &'static str, tasks: u32, jobs: u32) {
        self.submit_with(name, tasks, jobs, "");
    }

    /// The same with further keys of the manifest.
    pub(super) fn submit_with(&mut self, name: &'static str, tasks: u32, jobs: u32, more: &'static str) {
        self.work = Work { name, tasks, jobs, more, generations: BTreeMap::new() };
        self.submit_again();
    }

    /// Edits the manifest to have more tasks, and submits it again.
    pub(super) fn add_tasks(&mut self, more: u32) {
        self.work.tasks += more;
        self.submit_again();
    }

    fn submit_again(&mut self) {
        let Work { name, tasks, jobs, more, .. } = self.work;
        let file = format!("{name}.toml");
        let manifest = four_policies(name, tasks.into(), jobs, more);
        self.sandbox.write(&file, &manifest);
        let mut submit = self.sandbox.command(BINARY);
        submit.args(["submit", &file, "--coordinator", &self.url()]).arg("--access").arg(self.access());
        self.sandbox.spawn(submit).wait().exits(0);
        let mut generation = None;
        self.wait_status(PATIENCE, |status| {
            generation = status.experiments.iter().find(|e| e.name == name).map(|e| e.generation);
            generation.is_some()
        });
        let manifest = Manifest::parse(name, &manifest).expect("the coordinator took it");
        let sweep = Sweep::new(manifest, BTreeMap::new()).expect("it needs no log");
        self.work.generations.insert(generation.expect("it was submitted"), sweep);
    }

    /// Number of tasks of the last submitted manifest.
    pub(super) fn tasks(&self) -> u32 {
        self.work.tasks
    }

    /// Started and acknowledged tasks of all workers, ended ones too.
    pub(super) fn journal(&self) -> journal::Counts {
        journal::read(&self.logs, |generation, index| {
            let sweep = self.work.generations.get(&generation);
            let task = sweep.and_then(|sweep| sweep.task(index));
            task.unwrap_or_else(|| panic!("no task {index} in generation {generation}")).task_id
        })
    }

    /// The coordinator's status; `None` if it does not answer.
    pub(super) fn status(&mut self) -> Option<StatusReply> {
        let access = Source::File(self.access().join(Role::Client.file_name()));
        let address = Address { urls: vec![self.url()], ..Address::of(access, Role::Client) };
        // A coordinator that has just begun may not have made its access yet.
        let target = Target::new(&address).ok()?;
        let known = self.client.take();
        let asked = async {
            let mut client = match known {
                Some(client) => client,
                None => target.connect().await.ok()?,
            };
            let reply = client.status(StatusRequest::default()).await.ok()?.into_inner();
            Some((client, reply))
        };
        let (client, reply) = self.runtime.block_on(async { tokio::time::timeout(ANSWER, asked).await }).ok()??;
        self.client = Some(client);
        Some(reply)
    }

    /// Waits until the status meets a condition, up to a limit.
    pub(super) fn wait_status(&mut self, limit: Duration, mut wanted: impl FnMut(&StatusReply) -> bool) -> bool {
        let begun = Instant::now();
        loop {
            if self.status().is_some_and(|status| wanted(&status)) {
                return true;
            }
            if let Some(coordinator) = &mut self.coordinator {
                assert!(coordinator.runs(), "the coordinator ended by itself: {}", coordinator.stderr());
            }
            if begun.elapsed() > limit {
                return false;
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Waits until this number of tasks is done, or all, up to a limit; returns the number.
    pub(super) fn wait_done(&mut self, tasks: u64, limit: Duration) -> u64 {
        let (mut done, name) = (0, self.work.name);
        self.wait_status(limit, |status| {
            let experiment = status.experiments.iter().find(|e| e.name == name);
            assert!(experiment.is_none_or(|e| e.failed + e.quarantined == 0), "{experiment:?}");
            done = experiment.map_or(done, |e| e.done);
            done >= tasks || experiment.is_some_and(|e| e.done >= e.tasks)
        });
        done
    }

    /// Waits until this number of further tasks is done; returns the number of done tasks. Adds tasks to the sweep if
    /// necessary, so that it does not end on a fast machine.
    pub(super) fn wait_more(&mut self, more: u64) -> u64 {
        self.try_more(more, PATIENCE).unwrap_or_else(|| panic!("no progress: {:?}", self.status()))
    }

    /// The same; `None` if that takes longer than the limit.
    pub(super) fn try_more(&mut self, more: u64, limit: Duration) -> Option<u64> {
        loop {
            let before = self.wait_done(0, limit);
            if before + 4 * (more + 8) > self.work.tasks.into() {
                let needed = 8 * (more + 8);
                self.add_tasks(u32::try_from(needed.next_multiple_of(4)).expect("a small sweep"));
            }
            let done = self.wait_done(before + more, limit);
            if done < before + more {
                return None;
            }
            if done < self.work.tasks.into() {
                return Some(done);
            }
        }
    }

    /// Adds tasks if fewer than this number is left.
    pub(super) fn keep(&mut self, least: u32) {
        let done = self.wait_done(0, PATIENCE);
        if done + u64::from(least) > self.work.tasks.into() {
            self.add_tasks(least.next_multiple_of(4));
        }
    }

    /// Waits until the sweep has finished; each finished task restarts the limit.
    pub(super) fn wait_finished(&mut self) {
        self.wait_finished_while(|| ());
    }

    /// The same, with something that is done at each look.
    pub(super) fn wait_finished_while(&mut self, mut at_look: impl FnMut()) {
        let (mut last, name) = ((0, Instant::now()), self.work.name);
        let finished = self.wait_status(Duration::MAX, |status| {
            at_look();
            let Some(experiment) = status.experiments.iter().find(|e| e.name == name) else { return false };
            assert_eq!((experiment.failed, experiment.quarantined), (0, 0), "{experiment:?}");
            if experiment.done != last.0 {
                last = (experiment.done, Instant::now());
            }
            assert!(last.1.elapsed() < PATIENCE, "no progress: {status:?}");
            experiment.state() == ExperimentState::Finished
        });
        assert!(finished, "{name} did not finish");
    }

    /// Stops all processes with SIGTERM; each must end with code 0.
    pub(super) fn stop(&mut self) -> Vec<Ended> {
        self.workers.iter_mut().for_each(Running::terminate);
        let ended = self.workers.drain(..).map(|worker| worker.wait().exits(0)).collect();
        if let Some(mut coordinator) = self.coordinator.take() {
            coordinator.terminate();
            coordinator.wait().exits(0);
        }
        self.client = None;
        ended
    }

    /// Asserts that the rows equal the rows of an undisturbed run of the manifest.
    pub(super) fn assert_undisturbed(&self) {
        self.assert_undisturbed_in(&self.sandbox.path(&self.data));
    }

    /// The same for a dataset in another folder.
    pub(super) fn assert_undisturbed_in(&self, data: &std::path::Path) {
        let name = self.work.name;
        run_undisturbed(&self.sandbox, name);
        let undisturbed = self.sandbox.path("undisturbed");
        let but: &[&str] = if self.work.generations.len() > 1 { &["task_index"] } else { &[] };
        let rows = assert_undisturbed_but(data, &undisturbed, name, "tasks", but);
        assert_eq!(rows, self.work.tasks as usize);
        println!("{rows} rows equal the undisturbed run's, 0 lost, 0 twice");
        if self.work.more.contains("\"jobs\"") {
            let rows = assert_undisturbed_large(data, &undisturbed, name, "jobs", but);
            println!("{rows} rows of the table jobs equal the undisturbed run's, too");
        }
    }
}
