//! The folder of a launcher: its state, a lock, scripts and outputs of its jobs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::time::Duration;

use powersweep_coordinator::store::Location;
use powersweep_dataset::writing::write_whole;
use powersweep_dataset::{Error, failure};
use powersweep_experiments::reading::unknown;
use powersweep_launch::{Fleet, Seconds, System};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::{now, utc};

/// What a launcher knows, for its next start and for `launch status`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct State {
    /// The batch system.
    pub system: System,
    /// Name of the jobs.
    pub name: String,
    /// Machine and process of the last launcher.
    pub launcher: String,
    /// When the last launcher wrote this.
    pub written_at: Seconds,
    /// Whether the last launcher has ended.
    pub ended: bool,
    /// The job in which a coordinator runs that ends with the launcher.
    pub coordinator_job: Option<String>,
    /// Why it does not ask for more allocations.
    pub why: String,
    /// Greetings that the site's commands print before their answers.
    pub banners: BTreeSet<String>,
    /// The last trouble of each kind.
    pub troubles: BTreeMap<Source, Trouble>,
    /// Nodes that no allocation gets.
    pub excluded: Vec<String>,
    /// The allocations.
    pub fleet: Fleet,
    /// Slot times of the connected workers as they were counted last, by worker.
    pub counted: BTreeMap<String, SlotTime>,
}

impl State {
    /// What the launcher does, and why it asks for no more.
    pub fn describe(&self) -> Vec<String> {
        let is = if self.ended { "has ended" } else { "last wrote its state" };
        let mut lines = vec![format!("the launcher ({}) {is} at {}", self.launcher, utc(self.written_at))];
        if let Some(pause) = self.fleet.back_off.pause(now()) {
            let tried = utc(pause.until);
            lines.push(format!("no submission before {tried}: {}", pause.reason));
        } else if !self.ended {
            lines.push(format!("it asks for no more allocations: {}", self.why));
        }
        for trouble in self.troubles.values() {
            let since = utc(trouble.since);
            lines.push(match trouble.until {
                None => format!("trouble since {since}: {}", trouble.text),
                Some(until) => format!("trouble from {since} to {}: {}", utc(until), trouble.text),
            });
        }
        if !self.excluded.is_empty() {
            lines.push(format!("excluded nodes, on which workers failed at once: {}", self.excluded.join(", ")));
        }
        lines
    }
}

/// A part of the farm or of the system that a launcher depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// The coordinator.
    Coordinator,
    /// The batch system's queue.
    Queue,
    /// Submissions of jobs.
    Submission,
    /// The launcher's folder.
    Folder,
}

/// Something that did not work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trouble {
    /// The reason of the last failure.
    pub text: String,
    /// When it failed first.
    pub since: Seconds,
    /// When it worked again.
    pub until: Option<Seconds>,
}

/// Time of a worker's slots since its start (s).
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct SlotTime {
    /// All of it.
    pub all_s: f64,
    /// Without a task.
    pub idle_s: f64,
}

/// The folder of a launcher.
#[derive(Debug, Clone)]
pub struct Folder(PathBuf);

/// A file of an allocation that is not known is deleted after this time. The allocation of a submission without an answer is
/// found by a later query.
const OLD: Duration = Duration::from_secs(3_600);

/// Held while a launcher runs.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "closing the file releases the lock")] File);

impl Folder {
    /// The folder that was given, else one in the data folder.
    ///
    /// # Errors
    /// The path cannot be used.
    pub fn of(given: Option<&Path>, data: &Location) -> Result<Folder, Error> {
        let folder = match (given, data.path()) {
            (Some(folder), _) => folder.to_owned(),
            (None, Some(data)) => data.join(".powersweep").join("launch"),
            (None, None) => PathBuf::from("powersweep-launch"),
        };
        let absolute = std::path::absolute(&folder);
        let absolute =
            absolute.map_err(|error| failure!(Usage, "cannot use the folder {}: {error}", folder.display()))?;
        // A line of a job's script could not name it.
        match absolute.display().to_string().contains(['\n', '\r']) {
            true => Err(failure!(Usage, "the name of the folder {absolute:?} has more than one line: give --folder")),
            false => Ok(Folder(absolute)),
        }
    }

    /// A file in the folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The folder's path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Creates the folder and takes its lock: one launcher at a time.
    pub fn lock(&self) -> Result<Lock, Error> {
        use std::os::unix::fs::{DirBuilderExt, MetadataExt};
        let cannot = |error: &std::io::Error| failure!(Storage, "cannot use the folder {}: {error}", self.0.display());
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.0).map_err(|error| cannot(&error))?;
        let owner = self.0.metadata().map_err(|error| cannot(&error))?.uid();
        if owner != rustix::process::geteuid().as_raw() {
            // Its owner could change the scripts of the jobs.
            let folder = self.0.display();
            return Err(failure!(
                Refused,
                "{folder} belongs to another user (number {owner}): give a --folder of your own"
            ));
        }
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(self.file("lock"));
        let file = file.map_err(|error| cannot(&error))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Lock(file)),
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let launcher = self.read()?.map(|state| state.launcher).unwrap_or_default();
                Err(failure!(
                    Owned,
                    "another launcher ({launcher}) uses {}: stop it with `powersweep launch stop`, or give another --folder",
                    self.0.display()
                ))
            }
            Err(error) => Err(cannot(&error.into())),
        }
    }

    /// Whether a launcher runs.
    pub(super) fn is_locked(&self) -> bool {
        let file = OpenOptions::new().write(true).open(self.file("lock"));
        file.is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockShared) == Err(rustix::io::Errno::WOULDBLOCK))
    }

    /// The state of the last launcher; `None` if none was started here.
    pub fn read(&self) -> Result<Option<State>, Error> {
        let file = self.file("state.toml");
        let text = match std::fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failure!(Storage, "cannot read {}: {error}", file.display())),
        };
        let state = toml::from_str(&text);
        state.map(Some).map_err(|error| failure!(Storage, "{} is damaged: {error}\ndelete the file: allocations that still run are found again by the name of their jobs", file.display()))
    }

    /// Writes the state. A reader finds the former or the new one, also after a crash of the machine.
    pub fn write(&self, state: &State) -> Result<(), Error> {
        let text = toml::to_string(state).map_err(|error| failure!(Failure, "cannot write the state: {error}"))?;
        write_whole(Some(&self.file("state.toml")), text.as_bytes())
    }

    /// Writes the script of the next job.
    pub fn write_script(&self, name: &str, text: &str) -> Result<PathBuf, Error> {
        let file = self.file(name);
        write_whole(Some(&file), text.as_bytes())?;
        Ok(file)
    }

    /// The exit code with which the shell could not start the program of an allocation.
    pub(super) fn cannot_start(&self, allocation: &str) -> Option<u8> {
        let code = std::fs::read_to_string(self.file(&format!("{allocation}.code"))).ok()?;
        code.trim().parse().ok()
    }

    /// The script and the outputs of an allocation that exist.
    pub fn files_of(&self, allocation: &str) -> Vec<PathBuf> {
        let job = allocation.split('_').next().unwrap_or(allocation);
        let names = [format!("{job}.sh"), format!("{allocation}.out"), format!("{allocation}.err")];
        names.iter().map(|name| self.file(name)).filter(|file| file.is_file()).collect()
    }

    /// The script and the outputs of an allocation, each below its path.
    ///
    /// # Errors
    /// The state does not know the allocation, or a file cannot be read.
    pub fn log(&self, state: &State, allocation: &str) -> Result<String, Error> {
        let names: Vec<&str> = state.fleet.allocations.keys().map(String::as_str).collect();
        if !names.contains(&allocation) {
            return Err(failure!(Usage, "{}", unknown("allocation", allocation, &names)));
        }
        let mut text = String::new();
        for file in self.files_of(allocation) {
            let bytes =
                std::fs::read(&file).map_err(|error| failure!(Storage, "cannot read {}: {error}", file.display()))?;
            let content = powersweep_proto::plain(&String::from_utf8_lossy(&bytes)).into_owned();
            text += &format!("== {}\n{}\n", file.display(), content.trim_end());
        }
        Ok(text.trim_end().to_owned())
    }

    /// Deletes scripts and outputs of allocations that the fleet does not know any more.
    pub fn sweep(&self, fleet: &Fleet) {
        let jobs = |name: &str| fleet.allocations.keys().any(|known| known.split('_').next() == Some(name));
        for file in std::fs::read_dir(&self.0).into_iter().flatten().flatten() {
            let name = file.file_name().to_string_lossy().into_owned();
            let Some((stem, ending)) = name.rsplit_once('.') else { continue };
            let is_ours = stem.starts_with(|c: char| c.is_ascii_digit());
            let known = if ending == "sh" { jobs(stem) } else { fleet.allocations.contains_key(stem) };
            let old = file
                .metadata()
                .and_then(|meta| meta.modified())
                .is_ok_and(|at| at.elapsed().is_ok_and(|age| age > OLD));
            if is_ours && !known && old && ["sh", "out", "err", "code"].contains(&ending) {
                // A file that stays is deleted the next time.
                let _ = std::fs::remove_file(file.path());
            }
        }
    }

    /// Asks the running launcher to end.
    pub fn ask_to_stop(&self) -> Result<(), Error> {
        let file = self.file("stop");
        std::fs::write(&file, "").map_err(|error| failure!(Storage, "cannot write {}: {error}", file.display()))
    }

    /// Waits until the launcher is asked to end.
    pub(super) async fn asked_to_stop(&self, interval: Duration) {
        while !self.file("stop").exists() {
            tokio::time::sleep(interval).await;
        }
    }

    /// Whether the launcher was asked to end; the request is taken.
    pub fn take_stop(&self) -> bool {
        std::fs::remove_file(self.file("stop")).is_ok()
    }
}
