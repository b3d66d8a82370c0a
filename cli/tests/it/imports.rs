//! `powersweep import`: job logs as logs, with their ledgers.

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
    sandbox.run(&["import", "slurn", "./dump.txt"]).exits(2).says(&["a similar value exists"]);
    sandbox.run(&["import", "slurm", "./dump.txt", "--timezone", "UTC", "-o", "none/jobs.swf"]).exits(5);
}
