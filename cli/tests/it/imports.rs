//! `powersweep import`: job logs as logs, with their ledgers.

use powersweep_results::part::read_footer;
use serde_json::{Value as Json, json};

use crate::sandbox::Sandbox;

const DUMP: &str = "JobID|State|Submit|Start|End|Elapsed|NCPUS|Timelimit|User|Partition|ConsumedEnergyRaw
17|COMPLETED|2023-01-31T09:00:00|2023-01-31T10:00:00|2023-01-31T10:01:00|00:01:00|4|00:10:00|ann|long|54156
17.batch|COMPLETED|2023-01-31T10:00:00|2023-01-31T10:00:00|2023-01-31T10:01:00|00:01:00|4|||long|
18|CANCELLED by 7|2023-01-31T09:00:30|Unknown|2023-01-31T10:00:00|00:00:00|0|00:10:00|ann|long|
19|TIMEOUT|2023-01-31T09:00:40|2023-01-31T10:00:00|2023-01-31T10:10:00|00:10:00|2|Partition_Limit|bob|short|
20|RUNNING|2023-01-31T09:00:50|2023-01-31T10:00:00|Unknown|00:10:00|2|00:10:00|bob|short|
";

#[test]
fn a_dump_becomes_a_log_that_is_simulated() {
    let sandbox = Sandbox::new();
    sandbox.write("dump.txt", DUMP);
    let options = ["import", "slurm", "./dump.txt", "--timezone", "UTC", "--machine-procs", "8"];
    let shown =
        ["5 rows read = 2 kept + 3 dropped", "not_ended", "never_started", "limit_unknown", "at most 6 cpus at once"];
    sandbox.run(&options).exits(0).prints(&shown).prints(&["no file is written without --output"]);
    let written = ["-o", "jobs.swf", "--details", "details.csv", "--json"];
    let ledger = sandbox.run(&[&options[..], &written].concat()).exits(0).json();
    assert_eq!(
        (&ledger["read_count"], &ledger["kept_count"], &ledger["dropped_count"]),
        (&5.into(), &2.into(), &3.into())
    );
    let rules: Vec<_> =
        ledger["rules"].as_array().expect("a list").iter().map(|rule| rule["rule"].as_str().expect("a name")).collect();
    assert_eq!(rules, ["step", "not_ended", "never_started", "limit_unknown", "no_power", "power_from_energy"]);
    let details = std::fs::read_to_string(sandbox.path("details.csv")).expect("written");
    let expected = "job_id,id,line,user,group,queue,nodes,cpus,gpus,energy_j,power_w\n17,17,2,ann,,long,,4,,54156,902.6\n19,19,5,bob,,short,,2,,,\n";
    assert_eq!(details, expected);
    let facts = ["ImportLedger", "5 rows read = 2 kept + 3 dropped", "1 never_started (line 4 first)", "unix_start_s"];
    sandbox.run(&["trace", "info", "./jobs.swf"]).exits(0).prints(&facts);
    let row = sandbox.run(&["simulate", "--log", "./jobs.swf", "--json"]).exits(0).stdout;
    assert!(row.contains("\"jobs_count\": 2") && row.contains("\"machine_procs\": 8"), "{row}");
}

#[test]
fn standard_input_and_compressed_files() {
    let sandbox = Sandbox::new();
    let dump = sandbox.write("dump.txt", DUMP);
    let mut command = sandbox.command(crate::sandbox::BINARY);
    command.args(["import", "slurm", "-", "--timezone", "Europe/Berlin", "--output", "jobs.swf.gz"]);
    command.stdin(std::fs::File::open(dump).expect("it is there"));
    sandbox
        .spawn(command)
        .wait()
        .exits(0)
        .prints(&["standard input: 5 rows read", "2 jobs from 2023-01-31 08:00 UTC on"]);
    let facts = sandbox.run(&["trace", "info", "./jobs.swf.gz", "--json"]).exits(0).json();
    assert_eq!(facts["totals"]["unix_start_s"], 1_675_152_000);
}

#[test]
fn refusals_have_the_code_of_logs_and_write_no_file() {
    let sandbox = Sandbox::new();
    sandbox.write("dump.txt", DUMP);
    sandbox.write("empty.txt", DUMP.lines().take(1).collect::<String>());
    sandbox.write(
        "running.txt",
        DUMP.lines()
            .enumerate()
            .filter(|(at, _)| [0, 5].contains(at))
            .map(|(_, line)| format!("{line}\n"))
            .collect::<String>(),
    );
    let refused = |args: &[&str], said: &[&str]| {
        let ended = sandbox.run(&[&["import", "slurm"], args, &["-o", "jobs.swf"]].concat()).exits(4).says(said);
        assert!(ended.stdout.is_empty() && !sandbox.path("jobs.swf").exists(), "{ended}");
    };
    refused(&["./dump.txt"], &["./dump.txt: line 2: the time \"2023-01-31T10:00:00\" has no offset", "set `timezone`"]);
    refused(&["./none.txt", "--timezone", "UTC"], &["none.txt"]);
    refused(&["./empty.txt", "--timezone", "UTC"], &["no job is left of 0 rows: the file has a header only"]);
    let all =
        "no job is left of 1 row: 1 by not_ended (the job had not ended, so its run time is not known, line 2 first)";
    refused(&["./running.txt", "--timezone", "UTC"], &[all]);
    let options = ["import", "slurm", "./dump.txt", "--timezone", "UTC", "-o"];
    let run = |args: &[&str]| sandbox.run(&[&options[..], args].concat());
    run(&["s.out", "--details", "./s.out"]).exits(2).says(&["./s.out is the file of two outputs"]);
    run(&["s.swf.zst"]).exits(2).says(&["s.swf.zst: outputs are not compressed by zstd: name a file that ends in .gz"]);
    assert!(!sandbox.path("s.out").exists() && !sandbox.path("s.swf.zst").exists());
    run(&["s.swf.GZ"]).exits(0);
    sandbox.run(&["trace", "info", "./s.swf.GZ"]).exits(0).prints(&["ImportLedger"]);
    sandbox.run(&["import", "slurn", "./dump.txt"]).exits(2).says(&["a similar value exists"]);
    sandbox.run(&["import", "slurm", "./dump.txt", "--timezone", "UTC", "-o", "none/jobs.swf"]).exits(5);
}

/// A manifest that names a job log itself.
fn direct(name: &str, log: &str, import: &str) -> String {
    format!(
        "version = 1\nname = \"{name}\"\n[workloads.ours]\nsource = \"swf\"\nlog = \"{log}\"\nlog_import = \"{import}\"\n\
         [platforms.machine]\nprocs = 8\n[policies.easy]\nbackfill = \"easy\"\n"
    )
}

/// The ledgers in the files of an experiment's rows.
fn ledgers(sandbox: &Sandbox, experiment: &str) -> Vec<Json> {
    let folder = sandbox.path(&format!("results/data/{experiment}/tasks"));
    let files = std::fs::read_dir(folder).expect("the folder of the rows").map(|file| file.expect("a file").path());
    let ledgers = files.map(|file| {
        let footer = read_footer(&std::fs::read(file).expect("a file").into()).expect("our footer");
        serde_json::from_str(&footer.origin.ledgers).expect("a JSON array")
    });
    ledgers.collect()
}

const GRID: &str = "\
time (UTC),carbon_intensity
2023-01-31 09:00,310
2023-01-31 10:00,250
2023-01-31 10:00,250
2023-01-31 11:00,120
";

/// The results say what happened to the rows of their inputs, also after a submit, and after the state was lost.
#[test]
fn results_have_the_ledgers_of_their_files() {
    let sandbox = Sandbox::new();
    sandbox.write("dump.txt", DUMP);
    sandbox.write("grid.csv", GRID);
    let signal = "[signals.grid]\nquantity = \"carbon\"\nfile = \"grid.csv\"\nbeyond = \"hold\"\n";
    sandbox.write("direct.toml", direct("direct", "dump.txt", "slurm --timezone UTC") + signal);
    sandbox.run(&["run", "direct.toml", "--quiet"]).exits(0);
    let shown = sandbox.run(&["import", "slurm", "./dump.txt", "--timezone", "UTC", "--json"]).exits(0).json();
    let of_log = json!({
        "file": "dump.txt", "read_count": 5, "kept_count": 2, "dropped_count": 3, "rules": shown["rules"],
    });
    let of_signal = json!({
        "file": "grid.csv", "signal": "grid", "column": "carbon_intensity", "read_count": 4, "kept_count": 3, "dropped_count": 1,
        "rules": [{ "rule": "equal_duplicate", "effect": "dropped", "rows_count": 1, "first_line": 4, "meaning": "rows that repeat a time with the same value" }],
    });
    let both = json!([of_log, of_signal]);
    assert_eq!(ledgers(&sandbox, "direct"), std::slice::from_ref(&both));
    let status = sandbox.run(&["status", "direct", "--ledgers", "--json"]).exits(0).json();
    assert_eq!(status["experiments"][0]["ledgers"], both);
    let status = sandbox.run(&["status", "direct", "--ledgers"]).exits(0).stdout;
    let lines = [
        "direct: dump.txt: 5 rows read = 2 kept + 3 dropped",
        "direct: signal grid, grid.csv: 4 rows read = 3 kept + 1 dropped",
    ];
    assert!(lines.iter().all(|line| status.contains(line)), "{status}");
    assert!(status.contains("equal_duplicate") && status.contains("rows that repeat a time"), "{status}");

    // A lost state, and a task more: the parts that are made then have them, too.
    std::fs::remove_dir_all(sandbox.path("results/data/.powersweep")).expect("the state");
    sandbox.run(&["adopt", "direct.toml"]).exits(0);
    let two = direct("direct", "dump.txt", "slurm --timezone UTC").replace("\"easy\"", "[\"easy\", \"none\"]");
    sandbox.write("direct.toml", two + signal);
    let (served, _) = sandbox.serve(&[]);
    let worker = crate::farm::worker(&sandbox, "w", "", &[]);
    sandbox.run(&["submit", "direct.toml", "--wait"]).exits(0);
    let status = sandbox.run(&["status", "direct", "--ledgers", "--json"]).exits(0).json();
    assert_eq!(status["experiments"][0]["ledgers"], both);
    crate::farm::terminate(worker);
    crate::farm::terminate(served);
    assert!(ledgers(&sandbox, "direct").iter().all(|ledgers| *ledgers == both));
}

#[test]
fn a_manifest_names_a_job_log() {
    let sandbox = Sandbox::new();
    sandbox.write("dump.txt", DUMP);
    sandbox.write("elsewhere/copy.psv", DUMP);
    sandbox.write("direct.toml", direct("direct", "dump.txt", "slurm --timezone UTC"));
    sandbox.write("copy.toml", direct("copy", "elsewhere/copy.psv", "slurm --procs=cpus --timezone 'Etc/UTC'"));
    sandbox.write("imported.toml", direct("imported", "jobs.swf", "").replace("log_import = \"\"\n", ""));
    sandbox.run(&["import", "slurm", "./dump.txt", "--timezone", "UTC", "-o", "jobs.swf"]).exits(0);
    let noted = "log dump.txt: 1 dropped (step), 1 dropped (not_ended), 1 dropped (never_started), \
                 1 changed (limit_unknown), 1 changed (no_power), 1 changed (power_from_energy)";
    sandbox.run(&["run", "direct.toml"]).exits(0).says(&[noted, "`powersweep import` explains each"]);
    sandbox.run(&["verify", "direct"]).exits(0);
    // The ledger of the dump is in an artifact.
    sandbox.run(&["artifact", "direct", "--with-logs", "CC0-1.0", "--output", "direct.zip"]).exits(0);
    let zip = std::fs::read(sandbox.path("direct.zip")).expect("the artifact");
    for text in ["ledgers/direct.json", "\"never_started\"", "inputs/dump.txt"] {
        assert!(zip.windows(text.len()).any(|found| found == text.as_bytes()), "{text}");
    }
    sandbox.run(&["verify", "direct.zip"]).exits(0);
    let row = |manifest: &str| sandbox.run(&["simulate", manifest, "--index", "0", "--json"]).exits(0).json();
    let (here, copy, imported) = (row("direct.toml"), row("copy.toml"), row("imported.toml"));
    // The jobs are the identity of results, not the name of the file or the options.
    assert_eq!((&here["task_id"], &here["log_digest"]), (&copy["task_id"], &copy["log_digest"]));
    for column in ["jobs_count", "wait_s_mean", "energy_total_j", "filled_estimate_count", "makespan_s"] {
        assert!(!here[column].is_null(), "{column}");
        assert_eq!(here[column], imported[column], "{column}");
    }
}

#[test]
fn workers_simulate_a_job_log_that_they_do_not_have() {
    let sandbox = Sandbox::new();
    sandbox.write("mine/dump.txt", DUMP);
    sandbox.write("mine/direct.toml", direct("direct", "dump.txt", "slurm --timezone UTC"));
    let (served, _) = sandbox.serve(&[]);
    let worker = crate::farm::worker(&sandbox, "w", "", &[]);
    sandbox.run(&["submit", "mine/direct.toml", "--wait"]).exits(0).says(&["log dump.txt: 1 dropped (step)"]);
    crate::farm::terminate(worker);
    crate::farm::terminate(served);
    let rows = sandbox.run(&["results", "direct", "--columns", "jobs_count,filled_estimate_count", "--format", "csv"]);
    assert_eq!(rows.exits(0).stdout.lines().nth(1), Some("2,1"));
}

#[test]
fn a_reading_that_cannot_be_used_is_refused_before_the_sweep() {
    let sandbox = Sandbox::new();
    sandbox.write("dump.txt", DUMP);
    let refused = |import: &str, code: i32, said: &[&str]| {
        sandbox.write("direct.toml", direct("direct", "dump.txt", import));
        sandbox.run(&["run", "direct.toml"]).exits(code).says(said);
    };
    refused("slurm", 4, &["dump.txt: line 2: the time \"2023-01-31T10:00:00\" has no offset", "`timezone`"]);
    refused(
        "slurm --zone UTC",
        2,
        &["log dump.txt (line 5, [workloads.ours]): log_import = \"slurm --zone UTC\"", "unexpected argument '--zone'"],
    );
    refused("slurm 'UTC", 2, &["a quotation mark is not closed"]);
    refused("", 2, &["<FORMAT>"]);
    refused("torque", 2, &["invalid value 'torque'", "pbs"]);
}

/// How many processors were allocated at once is not known without starts.
#[test]
fn the_widest_job_where_no_start_is_known() {
    let sandbox = Sandbox::new();
    sandbox.write("jobs.csv", "s,r,c\n0,60,4\n0,60,3\n");
    let options = ["import", "csv", "./jobs.csv", "--columns", "submit=s,run=r,cpus=c"];
    sandbox.run(&options).exits(0).prints(&["2 jobs, no start is known and the widest job has 4 cpus; no file"]);
    let ledger = sandbox.run(&[&options[..], &["--json"]].concat()).exits(0).json();
    assert_eq!((&ledger["peak_procs"], &ledger["widest_procs"]), (&Json::Null, &4.into()));
}
