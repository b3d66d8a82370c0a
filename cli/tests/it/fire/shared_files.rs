//! Two machines that share a file system which keeps locks on each of them alone, and caches names and attributes: the
//! second coordinator is refused by the record of the first, takes the data over once that record is stale, and the first
//! one stops if it comes back. Here the machines are two mounts of one folder (SFTP over a socket, without an SSH server)
//! and two ids of a boot.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use powersweep_coordinator::owner::{SHARED_STALE_AFTER, STALE_AFTER};

use super::farm::{Farm, PATIENCE, port};
use super::relay::Relay;
use super::{is_root, long, try_system};

const NAME: &str = "shared";
const SFTP_SERVER: &str = "/usr/lib/openssh/sftp-server";
/// The options of NFS's defaults: what is known of a file counts for a minute.
const CACHES: &str = "passive,attr_timeout=60,entry_timeout=60,dcache_timeout=60";
/// Longest time until a mount is there.
const MOUNT_TIME: Duration = Duration::from_secs(20);

/// The mount of each machine, and the data folder below it.
pub(super) const MACHINES: [(&str, &str); 2] = [("m1", "m1/data"), ("m2", "m2/data")];

/// The mounts of both machines; unmounted when dropped.
pub(super) struct Mounts {
    paths: Vec<PathBuf>,
    processes: Vec<Child>,
    /// A command that runs after unmounting.
    last: Option<Vec<String>>,
}

impl Mounts {
    /// No mounts yet. `last` is a command that runs after unmounting.
    pub(super) fn new(last: Option<Vec<String>>) -> Mounts {
        Mounts { paths: Vec::new(), processes: Vec::new(), last }
    }

    /// Mounts with a program that ends when the mount is there, and whose last argument is the place.
    pub(super) fn mount(&mut self, program: &str, args: &[&str], at: &Path) -> Result<(), String> {
        try_system(program, &[args, &[text(at)]].concat())?;
        self.paths.push(at.to_owned());
        self.wait_for(at)
    }

    /// Keeps a server that the mounts need.
    pub(super) fn keep(&mut self, server: Child) {
        self.processes.push(server);
    }

    fn wait_for(&self, at: &Path) -> Result<(), String> {
        let begun = Instant::now();
        while try_system("mountpoint", &["-q", text(at)]).is_err() {
            if begun.elapsed() > MOUNT_TIME {
                return Err(format!("nothing is mounted at {}", at.display()));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Mounts a folder by SFTP.
    fn mount_sftp(&mut self, folder: &Path, at: &Path) -> Result<(), String> {
        let (server, client) = UnixStream::pair().map_err(|error| error.to_string())?;
        self.processes.push(on_socket(&mut Command::new(SFTP_SERVER), server)?);
        let mut sshfs = Command::new("sshfs");
        sshfs.args([&format!("local:{}", text(folder)), text(at), "-f", "-o", CACHES]);
        self.processes.push(on_socket(&mut sshfs, client)?);
        self.paths.push(at.to_owned());
        self.wait_for(at)
    }
}

impl Drop for Mounts {
    fn drop(&mut self) {
        for path in &self.paths {
            if let Err(error) = try_system("umount", &["--lazy", text(path)]) {
                eprintln!("{error}");
            }
        }
        for process in &mut self.processes {
            let _ = process.kill();
            let _ = process.wait();
        }
        if let Some(last) = &self.last {
            let args: Vec<&str> = last.iter().map(String::as_str).collect();
            if let Err(error) = try_system(args[0], &args[1..]) {
                eprintln!("{error}");
            }
        }
    }
}

/// Starts a program that talks over a socket.
fn on_socket(command: &mut Command, socket: UnixStream) -> Result<Child, String> {
    let copy = socket.try_clone().map_err(|error| error.to_string())?;
    command.stdin(Stdio::from(OwnedFd::from(copy))).stdout(Stdio::from(OwnedFd::from(socket)));
    command.spawn().map_err(|error| format!("{}: {error}", command.get_program().display()))
}

pub(super) fn text(path: &Path) -> &str {
    path.to_str().expect("test folders have plain names")
}

fn sftp(farm: &Farm) -> Result<Mounts, String> {
    if !Path::new(SFTP_SERVER).exists() {
        return Err(format!("there is no {SFTP_SERVER} (Debian: apt-get install sshfs openssh-sftp-server)"));
    }
    let (mut mounts, folder) = (Mounts::new(None), farm.sandbox.path("served"));
    for (mount, _) in MACHINES {
        mounts.mount_sftp(&folder, &farm.sandbox.path(mount))?;
    }
    Ok(mounts)
}

/// A farm on the first machine, and the mounts of both; prints the reason where it cannot be had.
pub(super) fn scene(mount: impl Fn(&Farm) -> Result<Mounts, String>) -> Option<(Farm, Mounts)> {
    if !is_root("two mounts of one folder") {
        return None;
    }
    let mut farm = Farm::on(MACHINES[0].1, &[]);
    for folder in ["served", MACHINES[0].0, MACHINES[1].0] {
        std::fs::create_dir(farm.sandbox.path(folder)).expect("it can be made");
    }
    match mount(&farm) {
        Ok(mounts) => {
            farm.move_to(MACHINES[0].1, boot(&farm, 0));
            Some((farm, mounts))
        }
        Err(reason) => {
            println!("skipped: {reason}");
            None
        }
    }
}

/// The file with the id of a machine's boot.
fn boot(farm: &Farm, machine: usize) -> PathBuf {
    farm.sandbox.write(&format!("boot{machine}"), format!("{machine:08}-0000-4000-8000-000000000000\n"))
}

/// Both mounts show a file of the other, and neither sees its lock: else the tests would prove nothing.
fn assert_locks_are_apart(farm: &Farm) {
    let [one, two] = MACHINES.map(|(mount, _)| farm.sandbox.path(mount).join("lock"));
    std::fs::write(&one, "").expect("it can be written");
    let [one, two] = [one, two].map(|path| std::fs::File::open(path).expect("both see it"));
    one.try_lock().expect("it is free");
    two.try_lock().expect("the mounts share locks");
}

/// What both tests have in common: a sweep on the first machine, which a coordinator on the second may not disturb.
fn begin(farm: &mut Farm, tasks: u32) -> Relay {
    assert_locks_are_apart(farm);
    farm.start();
    let relay = Relay::to(farm.port);
    farm.workers_port = relay.port;
    farm.submit(NAME, tasks, 8000);
    (0..2).for_each(|_| farm.add_worker(1));
    farm.wait_more(u64::from(tasks) / 8);
    let begun = Instant::now();
    let first = format!("data (at https://127.0.0.1:{},", farm.port);
    farm.move_to(MACHINES[1].1, boot(farm, 1));
    let second = farm.spawn_coordinator(port(), &[]).wait().exits(6);
    let second = second.says(&["waiting up to 80 s", "another coordinator owns", "or use --take-over"]);
    let refused = begun.elapsed();
    assert!(refused < SHARED_STALE_AFTER, "refused after {refused:?}");
    // A record of another length is torn for a reader that still believes in the old one.
    let named = second.stderr.contains(&first);
    println!(
        "a second coordinator was refused with exit code 6 after {refused:.1?}, the first's address shown: {named}"
    );
    let status = ["status", "--json", "--data", MACHINES[1].1];
    let shown = farm.sandbox.run(&status).exits(0);
    assert!(shown.stderr.is_empty(), "the first one answers: {}", shown.stderr);
    relay
}

/// Starts a coordinator on the second machine, which waits for the first one.
fn take_over_when_stale(farm: &mut Farm, relay: &Relay) {
    let begun = Instant::now();
    farm.port = port();
    farm.start();
    let waited = begun.elapsed();
    assert!(waited >= SHARED_STALE_AFTER - STALE_AFTER, "taken over after {waited:?}");
    relay.switch(farm.port);
    let said = farm.coordinator.as_ref().expect("it was started").stderr();
    assert!(said.contains("waiting up to 80 s") && !said.contains("still opening"), "{said}");
    println!("taken over from a coordinator on another machine after {waited:.1?}");
}

fn finish(farm: &mut Farm) {
    farm.wait_finished();
    farm.stop();
    let counts = farm.journal();
    println!("{} tasks, {} starts, {} after an acknowledgement", counts.tasks, counts.started, counts.again);
    assert_eq!(counts.again_after_kill, 0, "rows that another coordinator acknowledged were lost");
    farm.assert_undisturbed();
}

/// Number of the sweep's tasks.
fn tasks() -> u32 {
    if long() { 4000 } else { 400 }
}

/// The first coordinator is killed. Short: it stays, and only the refusal is tested.
pub(super) fn a_killed_owner(scene: Option<(Farm, Mounts)>) {
    let Some((mut farm, _mounts)) = scene else { return };
    let relay = begin(&mut farm, tasks());
    if !long() {
        return finish(&mut farm);
    }
    farm.kill_coordinator();
    let stored = farm.sandbox.run(&["status", "--data", MACHINES[1].1]).exits(0);
    stored.says(&["does not answer: using the state that is stored"]).prints(&[NAME]);
    take_over_when_stale(&mut farm, &relay);
    finish(&mut farm);
}

/// The first coordinator stands still for longer than its record counts, and comes back.
pub(super) fn a_suspended_owner(scene: Option<(Farm, Mounts)>) {
    let Some((mut farm, _mounts)) = scene else { return };
    let relay = begin(&mut farm, tasks());
    let old = farm.coordinator.take().expect("it was started");
    old.signal("STOP");
    take_over_when_stale(&mut farm, &relay);
    farm.wait_more(u64::from(tasks()) / 8);
    old.signal("CONT");
    let begun = Instant::now();
    old.wait().exits(9).says(&["another coordinator has taken the data over"]);
    println!("the older one ended with exit code 9 after {:.1?}", begun.elapsed());
    assert!(begun.elapsed() < PATIENCE);
    farm.wait_more(u64::from(tasks()) / 8);
    assert!(farm.coordinator.as_mut().is_some_and(|newer| newer.runs()), "the newer one was disturbed");
    finish(&mut farm);
}

#[test]
fn the_record_of_a_live_owner_counts_and_that_of_a_killed_one_goes_stale() {
    a_killed_owner(scene(sftp));
}

#[test]
#[ignore = "two minutes: `.ci/full shared-files`"]
fn a_suspended_owner_stops_when_it_comes_back() {
    a_suspended_owner(scene(sftp));
}
