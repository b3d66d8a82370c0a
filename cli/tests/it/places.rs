//! Unusable data folders, ports, owners and coordinators: each is refused, and no file is changed.

use std::net::TcpListener;

use crate::rows;
use crate::sandbox::{Ended, Sandbox, contents};
use crate::sweeps::{TINY_LOG, WIDE, synthetic};

#[track_caller]
fn refused(ended: Ended, code: i32) -> Ended {
    let ended = ended.exits(code);
    assert!(ended.stderr.contains("powersweep: "), "{ended}");
    ended
}

#[test]
fn an_unusable_data_folder_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.write("sweep.toml", synthetic("sweep", 1));
    sandbox.write("file", "not a folder");
    for command in [&["run", "sweep.toml"][..], &["serve", "--listen", "127.0.0.1:0"]] {
        let at = |data: &str| refused(sandbox.run(&[command, &["--data", data]].concat()), 5);
        at("file").says(&["file is a file, not a directory", "--data"]);
        at("file/data").says(&["file is a file, not a directory", "--data"]);
        // No user can make a folder in /proc.
        at("/proc/powersweep").says(&["cannot write in /proc/powersweep", "--data"]);
    }
    refused(sandbox.run(&["status", "--data", "file/data"]), 5).says(&["file/data", "--data"]);
    for command in [&["status"][..], &["plan", "sweep.toml"], &["results", "sweep"]] {
        refused(sandbox.run(&[command, &["--data", "file"]].concat()), 5).says(&["file is a file, not a directory"]);
    }
    refused(sandbox.run(&["status", "--data", "typo"]), 2).says(&["there is no ", "typo", "--data"]);
    refused(sandbox.run(&["run", "--data", "ftp://host/x"]), 2).says(&["ftp://host/x: unknown kind of storage"]);
    assert_eq!(std::fs::read(sandbox.path("file")).expect("it is there"), b"not a folder");
}

#[test]
fn direct_uploads_need_an_object_store() {
    let sandbox = Sandbox::new();
    let serve = ["serve", "--listen", "127.0.0.1:0", "--data", "data"];
    let reason = ["--direct-uploads needs data in an object store (s3://, gs:// or az://), and", "data is a folder"];
    refused(sandbox.run(&[&serve[..], &["--direct-uploads"]].concat()), 2).says(&reason);
    refused(sandbox.run_with(&serve, &[("POWERSWEEP_DIRECT_UPLOADS", "true")]), 2).says(&reason);
    assert!(contents(&sandbox.path("")).is_empty());
}

#[test]
fn an_unwritable_file_of_job_rows_is_refused() {
    let sandbox = Sandbox::new();
    let jobs = |file: &str| sandbox.run(&["simulate", "-s", "synthetic_jobs_count=10", "--jobs", file]);
    refused(jobs("/proc/powersweep.csv"), 5).says(&["cannot write /proc/powersweep.csv"]);
    refused(jobs("jobs.xlsx"), 2).says(&["--jobs jobs.xlsx: the name must end in .parquet or .csv"]);
    assert!(contents(&sandbox.path("")).is_empty());
}

#[test]
fn a_busy_port_is_reported_before_the_data_is_opened() {
    let sandbox = Sandbox::new();
    sandbox.write("sweep.toml", synthetic("sweep", 1));
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("it has one").to_string();
    sandbox.run(&["run", "sweep.toml", "--quiet"]).exits(0);
    let before = contents(&sandbox.path(""));
    for command in [&["run", "sweep.toml"][..], &["serve"]] {
        let ended = refused(sandbox.run(&[command, &["--listen", &address]].concat()), 7);
        ended.says(&[&format!("cannot listen on {address}"), "in use", "--listen"]);
    }
    assert_eq!(contents(&sandbox.path("")), before);
}

#[test]
fn an_unreachable_coordinator_is_reported() {
    let sandbox = Sandbox::new();
    sandbox.write("sweep.toml", synthetic("sweep", 1));
    let free = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a free port");
    let url = format!("https://{free}");
    for command in [&["status"][..], &["submit", "sweep.toml"], &["health"], &["worker"]] {
        let ended = refused(sandbox.run(&[command, &["--coordinator", &url]].concat()), 7);
        ended.says(&["there is no access file", "powersweep serve", ".config/powersweep"]);
    }
    // A coordinator has served this data before.
    sandbox.run(&["run", "sweep.toml", "--quiet"]).exits(0);
    for command in [&["status"][..], &["submit", "sweep.toml"], &["health"]] {
        let ended = refused(sandbox.run(&[command, &["--coordinator", &url]].concat()), 7);
        ended.says(&[&format!("no coordinator answers at {url}"), "Connection refused", "powersweep serve"]);
        let ended = refused(sandbox.run(&[command, &["--coordinator", "nonsense"]].concat()), 2);
        ended.says(&["`nonsense` must be HOST:PORT"]);
    }
    // A worker waits for its coordinator, reports it, and ends with code 0 on a signal.
    let mut worker = sandbox.start(&["worker", "--coordinator", &url]);
    worker.says(&url);
    assert!(worker.runs());
    worker.signal("TERM");
    worker.wait().exits(0);
}

#[test]
fn another_server_is_not_taken_for_a_coordinator() {
    let sandbox = Sandbox::new();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = listener.local_addr().expect("it has one").to_string();
    sandbox.write("sweep.toml", synthetic("sweep", 1));
    sandbox.run(&["run", "sweep.toml", "--quiet"]).exits(0);
    std::thread::spawn(move || {
        use std::io::{Read, Write};
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let _ = stream.read(&mut [0; 512]);
            let _ = stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n");
        }
    });
    refused(sandbox.run(&["status", "--coordinator", &url]), 7).says(&["no coordinator answers at"]);
}

#[test]
fn a_second_coordinator_on_the_same_data_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.write("sweep.toml", synthetic("sweep", 2));
    let (served, address) = sandbox.serve(&[]);
    let owner = format!("(at {address},");
    let ended = refused(sandbox.run(&["serve", "--listen", "127.0.0.1:0"]), 6);
    ended.says(&["another coordinator owns", &owner, "--take-over"]);
    let ended = refused(sandbox.run(&["run", "sweep.toml"]), 6);
    ended.says(&["another coordinator owns", &owner, "powersweep submit sweep.toml --data ./results/data"]);
    // The first coordinator still serves, and the command in the message works.
    sandbox.run(&["submit", "sweep.toml", "--data", "./results/data"]).exits(0).prints(&["4 to run"]);
    sandbox.run(&["plan", "sweep.toml"]).exits(0).prints(&["a coordinator serves this data"]);
    sandbox.run(&["status"]).exits(0).prints(&["coordinator ", "sweep", "waiting", "no worker is connected"]);
    served.signal("TERM");
    served.wait().exits(0);
    sandbox.run(&["run", "sweep.toml"]).exits(0).says(&["0 done already, 4 to run"]);
}

#[test]
fn a_take_over_ends_the_older_coordinator() {
    let sandbox = Sandbox::new();
    sandbox.write("sweep.toml", synthetic("sweep", 1));
    let (older, _) = sandbox.serve(&[]);
    let (newer, address) = sandbox.serve(&["--take-over"]);
    sandbox.run(&["submit", "sweep.toml", "--coordinator", &address]).exits(0);
    refused(older.wait(), 9).says(&["another coordinator has taken the data over"]);
    newer.signal("TERM");
    newer.wait().exits(0);
    sandbox.run(&["status"]).exits(0).prints(&["sweep"]);
}

/// The log of a manifest has changed since its rows were made. The rows are kept.
#[test]
fn changed_pins_are_refused() {
    let sandbox = Sandbox::new();
    sandbox.write("wide.toml", WIDE.replace("\"error\", ", ""));
    sandbox.write("logs/tiny.swf", TINY_LOG);
    let traces = ["--traces", "logs"];
    sandbox.run(&[&["run", "wide.toml"][..], &traces].concat()).exits(0);
    let rows = rows::tasks(&sandbox.path("results/data"), "wide");
    assert_eq!(rows.len(), 4);
    sandbox.write("logs/tiny.swf", TINY_LOG.replace("3 6 -1 30", "3 6 -1 31"));
    let reason = ["wide has rows that this submit would not reproduce: log tiny has other content", "a new name"];
    refused(sandbox.run(&[&["run", "wide.toml"][..], &traces].concat()), 8).says(&reason);
    refused(sandbox.run(&[&["plan", "wide.toml"][..], &traces].concat()), 8).says(&reason);
    let (served, address) = sandbox.serve(&[]);
    let args = [&["submit", "wide.toml", "--coordinator", &address][..], &traces].concat();
    refused(sandbox.run(&args), 8).says(&reason);
    served.signal("INT");
    served.wait().exits(0);
    assert_eq!(rows::tasks(&sandbox.path("results/data"), "wide"), rows);
    // The command in the message works.
    sandbox.write("wide.toml", WIDE.replace("\"error\", ", "").replace("name = \"wide\"", "name = \"wide-2\""));
    sandbox.run(&[&["run", "wide.toml"][..], &traces].concat()).exits(0);
}
