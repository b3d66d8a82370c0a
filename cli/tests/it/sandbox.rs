//! A scratch folder in which the real binary runs as a user would run it.

use std::collections::BTreeMap;
use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value as Json;
use tempfile::TempDir;

/// The binary under test.
pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_powersweep");

/// Far longer than any command takes: a command that hangs fails its test.
const PATIENCE: Duration = Duration::from_secs(180);

/// Interval of checks of another process.
const LOOK: Duration = Duration::from_millis(10);

/// The folder of published logs, for tests that are ignored without it.
pub(crate) fn traces() -> String {
    let folder = std::env::var("POWERSWEEP_TRACES").ok().filter(|folder| !folder.is_empty());
    folder.expect("POWERSWEEP_TRACES names a folder, or is not set")
}

/// A temporary folder in which commands run, with a temporary `HOME` and without POWERSWEEP variables.
pub(crate) struct Sandbox {
    folder: TempDir,
    outputs: TempDir,
    commands: AtomicU32,
}

impl Sandbox {
    pub(crate) fn new() -> Sandbox {
        let folder = || tempfile::tempdir().expect("a folder for the test");
        Sandbox { folder: folder(), outputs: folder(), commands: AtomicU32::new(0) }
    }

    /// The home folder of the commands.
    pub(crate) fn home(&self) -> &Path {
        self.outputs.path()
    }

    /// A path in the folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file, and the folders above it.
    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("the path has a folder")).expect("it can be made");
        std::fs::write(&path, bytes).expect("it can be written");
        path
    }

    /// Writes a program into the folder `bin`.
    pub(crate) fn write_program(&self, name: &str, text: &str) {
        let file = self.write(&format!("bin/{name}"), text);
        std::fs::set_permissions(file, Permissions::from_mode(0o755)).expect("modes can be set");
    }

    /// The folder of the access files of the one object store that a coordinator here has served.
    pub(crate) fn access_elsewhere(&self) -> PathBuf {
        let folder = self.outputs.path().join(".local/state/powersweep/access");
        let mut found = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        found.next().map_or(folder, |entry| entry.path())
    }

    /// A command in this folder and environment.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("POWERSWEEP_")) {
            command.env_remove(name);
        }
        command.current_dir(self.folder.path()).env("HOME", self.outputs.path());
        for name in ["XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "NO_COLOR", "CLICOLOR_FORCE"] {
            command.env_remove(name);
        }
        command.stdin(Stdio::null());
        command
    }

    /// Runs `powersweep` to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Ended {
        self.start(args).wait()
    }

    /// Runs `powersweep` with variables of the environment.
    pub(crate) fn run_with(&self, args: &[&str], variables: &[(&str, &str)]) -> Ended {
        let mut command = self.command(BINARY);
        command.args(args).envs(variables.iter().copied());
        self.spawn(command).wait()
    }

    /// Starts `powersweep`.
    pub(crate) fn start(&self, args: &[&str]) -> Running {
        let mut command = self.command(BINARY);
        command.args(args);
        self.spawn(command)
    }

    /// Starts a coordinator on a free port; returns its URL, too.
    pub(crate) fn serve(&self, args: &[&str]) -> (Running, String) {
        let mut served = self.start(&[&["serve", "--listen", "127.0.0.1:0"], args].concat());
        let line = served.says("powersweep: serving");
        let url = line.rsplit(' ').next().expect("a line has words").to_owned();
        assert!(url.starts_with("https://127.0.0.1:"), "{line}");
        (served, url)
    }

    /// Starts a command and keeps its output.
    pub(crate) fn spawn(&self, mut command: Command) -> Running {
        let number = self.commands.fetch_add(1, Ordering::Relaxed);
        let file = |kind: &str| self.outputs.path().join(format!("{number}.{kind}"));
        let create = |path: &Path| File::create(path).expect("it can be created");
        let (out, err) = (file("out"), file("err"));
        command.stdout(create(&out)).stderr(create(&err));
        let line = format!("{command:?}");
        let child = command.spawn().expect("the program starts");
        Running { child, line, out, err }
    }
}

/// A running program; killed when dropped.
pub(crate) struct Running {
    child: Child,
    line: String,
    out: PathBuf,
    err: PathBuf,
}

impl Running {
    /// Waits until the program has ended.
    pub(crate) fn wait(mut self) -> Ended {
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("it can be waited for") {
                break status;
            }
            assert!(begun.elapsed() < PATIENCE, "{} hangs\n{}", self.line, self.stderr());
            std::thread::sleep(LOOK);
        };
        let ended = Ended { line: self.line.clone(), status, stdout: read(&self.out), stderr: self.stderr() };
        for word in ["panicked", "RUST_BACKTRACE", "stack backtrace"] {
            assert!(!ended.stderr.contains(word), "{ended}");
        }
        ended
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The file with its standard error, which is kept after a kill.
    pub(crate) fn log(&self) -> &Path {
        &self.err
    }

    /// Its standard error so far.
    pub(crate) fn stderr(&self) -> String {
        read(&self.err)
    }

    /// Waits for a line with this text on standard error; returns the line.
    pub(crate) fn says(&mut self, text: &str) -> String {
        let err = self.err.clone();
        self.writes(&err, text)
    }

    /// Waits for a line with this text on standard output; returns the line.
    pub(crate) fn prints_line(&mut self, text: &str) -> String {
        let out = self.out.clone();
        self.writes(&out, text)
    }

    fn writes(&mut self, file: &Path, text: &str) -> String {
        let begun = Instant::now();
        loop {
            let said = read(file);
            if let Some(line) = said.split_inclusive('\n').find(|line| line.contains(text) && line.ends_with('\n')) {
                return line.trim_end().to_owned();
            }
            let ended = self.child.try_wait().expect("it can be waited for");
            assert!(ended.is_none(), "{} ended ({ended:?}) without {text:?}:\n{said}", self.line);
            assert!(begun.elapsed() < PATIENCE, "{} does not say {text:?}:\n{said}", self.line);
            std::thread::sleep(LOOK);
        }
    }

    /// Whether the program still runs.
    pub(crate) fn runs(&mut self) -> bool {
        self.child.try_wait().expect("it can be waited for").is_none()
    }

    /// Sends SIGTERM as soon as the program handles it; a program that is still starting would be killed by it.
    pub(crate) fn terminate(&mut self) {
        let begun = Instant::now();
        while self.runs() && !self.handles_sigterm() {
            assert!(begun.elapsed() < PATIENCE, "{} does not handle SIGTERM", self.line);
            std::thread::sleep(LOOK);
        }
        self.signal("TERM");
    }

    /// Whether a handler of SIGTERM is installed; true where there is no `/proc` to ask.
    fn handles_sigterm(&self) -> bool {
        const SIGTERM: u64 = 1 << 14;
        let Ok(status) = std::fs::read_to_string(format!("/proc/{}/status", self.id())) else { return true };
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).map(str::trim);
        caught.and_then(|mask| u64::from_str_radix(mask, 16).ok()).is_none_or(|mask| mask & SIGTERM != 0)
    }

    /// Sends a signal such as INT or TERM.
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([format!("-{name}"), self.child.id().to_string()]).status();
        assert!(sent.expect("kill is there").success());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An ended program: its status and output.
pub(crate) struct Ended {
    line: String,
    status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}\n{}\n--- stdout\n{}\n--- stderr\n{}", self.line, self.status, self.stdout, self.stderr)
    }
}

impl Ended {
    /// The exit code; none after a signal.
    pub(crate) fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Asserts that the program ended with this code.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Ended {
        assert_eq!(self.code(), Some(code), "{self}");
        self
    }

    /// Asserts that standard error has each of these texts exactly once.
    #[track_caller]
    pub(crate) fn says(self, texts: &[&str]) -> Ended {
        for text in texts {
            assert_eq!(self.stderr.matches(text).count(), 1, "{text:?} once in\n{self}");
        }
        self
    }

    /// Asserts that standard output has each of these texts.
    #[track_caller]
    pub(crate) fn prints(self, texts: &[&str]) -> Ended {
        for text in texts {
            assert!(self.stdout.contains(text), "{text:?} in\n{self}");
        }
        self
    }

    /// Standard output as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Json {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}\n{self}"))
    }
}

fn read(path: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(path).expect("output was kept")).into_owned()
}

/// Every file below a folder, with its bytes.
pub(crate) fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let Ok(entries) = std::fs::read_dir(folder) else { return found };
    for path in entries.map(|entry| entry.expect("it can be listed").path()) {
        if path.is_dir() {
            found.extend(contents(&path));
        } else {
            let bytes = std::fs::read(&path).expect("it can be read");
            found.insert(path, bytes);
        }
    }
    found
}
