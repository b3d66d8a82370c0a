//! A sandbox with a batch system: its commands are scripts, which start and list processes.

use std::time::{Duration, Instant};

use crate::runs::path_with;
use crate::sandbox::{BINARY, Ended, Running, Sandbox};
use crate::sweeps::synthetic;

/// Far longer than anything here takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A batch system.
pub(crate) struct System {
    /// Name of its launcher, and of the folder with its files in the sandbox.
    pub(crate) name: &'static str,
    /// Option with the time limit of jobs: ten minutes.
    pub(crate) time: &'static str,
    pub(crate) programs: [(&'static str, &'static str); 5],
    /// Environment variables of the launcher.
    pub(crate) variables: &'static [(&'static str, &'static str)],
}

/// A sandbox with commands of a batch system.
pub(crate) struct Cluster(pub(crate) Sandbox, &'static System);

impl Cluster {
    pub(crate) fn new(system: &'static System) -> Cluster {
        let sandbox = Sandbox::new();
        for (name, text) in system.programs {
            sandbox.write_program(name, text);
        }
        sandbox.write(&format!("{}/mode", system.name), "");
        Cluster(sandbox, system)
    }

    pub(crate) fn start(&self, args: &[&str]) -> Running {
        let mut command = self.0.command(BINARY);
        command.args(args).env("PATH", path_with(&self.0.path("bin"))).env("SANDBOX", self.0.path(""));
        command.envs(self.1.variables.iter().copied());
        self.0.spawn(command)
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ended {
        self.start(args).wait()
    }

    /// A coordinator with a submitted sweep.
    pub(crate) fn serve_sweep(&self, seeds: u32) -> Running {
        self.0.write("sweep.toml", synthetic("sweep", seeds));
        let (served, _) = self.0.serve(&[]);
        self.0.run(&["submit", "sweep.toml"]).exits(0);
        served
    }

    /// A launcher with short times.
    pub(crate) fn launch(&self, args: &[&str]) -> Running {
        let quick = [self.1.time, "--cpus=1", "--poll=300ms", "--patience=0s", "--idle-limit=1s"];
        self.start(&[&["launch", self.1.name], &quick[..], args].concat())
    }

    /// The calls of a command so far.
    pub(crate) fn calls(&self, command: &str) -> Vec<String> {
        let file = self.0.path(&format!("{}/{command}.calls", self.1.name));
        std::fs::read_to_string(file).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// Waits until `launch status` shows a text.
    pub(crate) fn shows(&self, text: &str) -> String {
        let begun = Instant::now();
        loop {
            let shown = self.run(&["launch", "status"]);
            if shown.stdout.contains(text) {
                return shown.stdout;
            }
            assert!(begun.elapsed() < PATIENCE, "no {text:?} in\n{shown}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}
