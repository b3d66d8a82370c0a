//! Where the bytes of `--output` go, and what is left when a command is stopped.

use std::fs::{self, File, Permissions};
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::process::Command;
use std::time::Duration;

use crate::sandbox::Sandbox;
use crate::sweeps::synthetic;

/// A sandbox with the rows of an experiment.
fn with_rows() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("rows.toml", synthetic("rows", 2));
    sandbox.run(&["run", "rows.toml", "--quiet", "--show", "0"]).exits(0);
    sandbox
}

const RESULTS: [&str; 5] = ["results", "rows", "--format", "csv", "-o"];

#[test]
fn an_output_follows_links_and_keeps_the_mode_of_the_file_that_it_replaces() {
    let sandbox = with_rows();
    let file = sandbox.write("elsewhere/rows.csv", "before\n");
    fs::set_permissions(&file, Permissions::from_mode(0o640)).expect("it is ours");
    symlink("elsewhere/rows.csv", sandbox.path("link.csv")).expect("a link");
    symlink("elsewhere/new.csv", sandbox.path("dangling.csv")).expect("a link");
    for name in ["link.csv", "dangling.csv"] {
        sandbox.run(&[&RESULTS[..], &[name]].concat()).exits(0);
        assert!(sandbox.path(name).is_symlink(), "{name} is still a link");
        assert!(fs::read_to_string(sandbox.path(name)).expect("a file").contains("wait_s_mean"), "{name}");
    }
    assert_eq!(file.metadata().expect("a file").mode() & 0o777, 0o640);
    let names = fs::read_dir(sandbox.path("elsewhere")).expect("a folder").count();
    assert_eq!(names, 2, "nothing else is left");
}

#[test]
fn an_output_is_written_into_a_pipe() {
    let sandbox = with_rows();
    let pipe = sandbox.path("pipe.csv");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo is there").success());
    let opened = pipe.clone();
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        File::open(opened).and_then(|mut pipe| pipe.read_to_string(&mut text)).map(|_| text)
    });
    sandbox.run(&[&RESULTS[..], &["pipe.csv"]].concat()).exits(0);
    assert!(fs::symlink_metadata(&pipe).expect("there").file_type().is_fifo(), "the pipe is still a pipe");
    assert!(reader.join().expect("no panic").expect("read").contains("wait_s_mean"));
}

#[test]
fn a_dash_is_standard_output_and_no_archive() {
    let sandbox = with_rows();
    sandbox.run(&[&RESULTS[..], &["-"]].concat()).exits(0).prints(&["wait_s_mean"]);
    sandbox.run(&["report", "rows", "-o", "-"]).exits(0).prints(&["<html"]);
    sandbox.run(&["export", "rows", "-o", "-"]).exits(2).says(&["standard output"]);
    sandbox.run(&["artifact", "rows", "-o", "-"]).exits(2);
    assert!(!sandbox.path("-").exists());
}

#[test]
fn a_folder_is_no_file_and_an_input_is_no_output() {
    let sandbox = with_rows();
    fs::create_dir(sandbox.path("folder")).expect("a folder");
    sandbox.run(&[&RESULTS[..], &["folder"]].concat()).exits(5).says(&["cannot write folder: is a directory"]);
    let log = "; MaxProcs: 4\n1 0 0 60 1 -1 -1 1 60 -1 1 1 1 -1 1 -1 -1 -1\n";
    let file = sandbox.write("log.swf", log);
    fs::hard_link(&file, sandbox.path("other.swf")).expect("a link");
    for output in ["log.swf", "other.swf"] {
        let import = ["import", "slurm", "./log.swf", "-o", output];
        sandbox.run(&import).exits(2).says(&[&format!("{output} is the file of the input ./log.swf")]);
    }
    assert_eq!(fs::read_to_string(&file).expect("there"), log);
}

#[test]
fn a_stopped_command_leaves_no_unfinished_file() {
    let sandbox = Sandbox::new();
    let text = synthetic("big", 60).replace("synthetic_jobs_count = 60", "synthetic_jobs_count = 600");
    sandbox.write("big.toml", text.replace("version = 1\n", "version = 1\ntables = [\"jobs\"]\n"));
    sandbox.run(&["run", "big.toml", "--quiet", "--show", "0"]).exits(0);
    let names = || -> Vec<String> {
        let entries = fs::read_dir(sandbox.path("")).expect("a folder").flatten();
        entries
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .filter(|name| name.starts_with("copy"))
            .collect()
    };
    for (signal, code) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        for more in [&["--output", "copy"][..], &["--output", "copy.parquet", "--table", "jobs"]] {
            let mut export = sandbox.start(&[&["export", "big"], more].concat());
            while names().is_empty() {
                assert!(export.runs(), "the export ended early");
                std::thread::sleep(Duration::from_millis(1));
            }
            export.signal(signal);
            export.wait().exits(code);
            assert_eq!(names(), [""; 0], "{signal} {more:?}");
        }
    }
    // Under `nohup`, a closed terminal does not end the command.
    let mut nohup = sandbox.command("sh");
    nohup.args(["-c", "trap '' HUP; exec \"$0\" export big --output copy", crate::sandbox::BINARY]);
    let mut export = sandbox.spawn(nohup);
    while names().is_empty() {
        assert!(export.runs(), "the export ended early");
        std::thread::sleep(Duration::from_millis(1));
    }
    export.signal("HUP");
    export.wait().exits(0);
    assert_eq!(names(), ["copy"]);
}
