//! Each rule on a small text.

use crate::joblogs::{Arrival, Format, JobLog, Procs, Rule, Settings, read};
use crate::ledger::{Effect, Rule as _};

const HEADER: &str = "JobID|State|Submit|Start|End|Elapsed|NCPUS|Timelimit";

fn utc() -> Settings {
    Settings { timezone: Some("UTC".to_owned()), ..Settings::new(Format::Slurm) }
}

/// Settings for Unix times, which need no zone.
fn unix() -> Settings {
    Settings::new(Format::Slurm)
}

fn try_read(text: &str, settings: &Settings) -> Result<JobLog, String> {
    let log = read(text.as_bytes(), "dump.txt", settings).map_err(|error| error.to_string())?;
    assert_eq!(log.ledger.read, log.ledger.kept + log.ledger.dropped(), "{text}");
    assert_eq!(log.ledger.kept, log.records.len() as u64, "{text}");
    Ok(log)
}

/// The log of rows below [`HEADER`].
fn rows(rows: &[&str]) -> JobLog {
    try_read(&format!("{HEADER}\n{}\n", rows.join("\n")), &utc()).expect("reads")
}

/// The rules that applied, with the numbers of rows.
fn rules(log: &JobLog) -> Vec<(&'static str, u64)> {
    log.ledger.rules().map(|(rule, count)| (rule.name(), count.rows)).collect()
}

/// A row of a job that ran from 10:00 to 10:01.
fn job(id: &str, state: &str) -> String {
    format!("{id}|{state}|2023-01-31T09:00:00|2023-01-31T10:00:00|2023-01-31T10:01:00|00:01:00|4|1-00:00:00")
}

#[test]
fn a_job_is_a_record() {
    let log = rows(&[&job("17", "COMPLETED")]);
    let record = log.records[0];
    assert_eq!((record.id, record.submit_s, record.wait_s, record.run_s), (17, 0.0, 3600.0, 60.0));
    assert_eq!((record.procs_allocated, record.procs_requested, record.requested_s), (4, -1, 86_400.0));
    assert_eq!((record.status, record.line), (1, 2));
    assert_eq!((log.facts.unix_start_s, log.facts.peak_procs), (Some(1_675_155_600), Some(4)));
    assert_eq!(rules(&log), []);
}

#[test]
fn steps_belong_to_their_jobs() {
    let steps = ["17", "17.batch", "17.extern", "17.0", "18.0", "19_3.batch", "19_3"].map(|id| job(id, "COMPLETED"));
    let log = rows(&steps.each_ref().map(String::as_str));
    assert_eq!(rules(&log), [("step", 4), ("step_without_job", 1), ("renumbered", 1)]);
    assert_eq!(log.records.iter().map(|record| record.id).collect::<Vec<_>>(), [17, 18]);
    assert_eq!(log.details.iter().map(|detail| detail.id.as_str()).collect::<Vec<_>>(), ["17", "19_3"]);
}

#[test]
fn tasks_of_arrays_have_the_numbers_of_their_raw_ids() {
    let text = "JobID|JobIDRaw|State|Submit|Start|End|NCPUS\n\
                7_1|8|COMPLETED|1675155600|1675155600|1675155660|1\n\
                7_2|7|COMPLETED|1675155600|1675155600|1675155660|1\n\
                7_[3-9]|7|CANCELLED by 0|1675155600|Unknown|1675155660|1\n\
                9_[1,4]|7|TIMEOUT|1675155600|1675155600|1675155660|1\n";
    let log = try_read(text, &Settings::new(Format::Slurm)).expect("Unix times need no zone");
    assert_eq!(log.records.iter().map(|record| record.id).collect::<Vec<_>>(), [8, 7, 9]);
    let expected = [("never_started", 1), ("array_range", 1), ("renumbered", 1)];
    assert_eq!(rules(&log), expected);
}

#[test]
fn only_jobs_that_ran_and_ended_are_kept() {
    let states =
        ["RUNNING", "PENDING", "SUSPENDED", "FOO", "", "CANCELLED by 12", "REVOKED", "NODE_FAIL", "OUT_OF_MEMORY"];
    let texts: Vec<String> = states.iter().zip(1..).map(|(state, id)| job(&id.to_string(), state)).collect();
    let log = rows(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(rules(&log), [("not_ended", 3), ("unknown_state", 2), ("never_started", 1)]);
    assert_eq!(log.records.iter().map(|record| record.status).collect::<Vec<_>>(), [5, 0, 0]);
}

#[test]
fn jobs_that_were_cancelled_in_the_queue_never_started() {
    let log = rows(&[
        "1|CANCELLED by 5|2023-01-31T09:00:00|Unknown|2023-01-31T10:00:00|00:00:00|0|00:10:00",
        "2|CANCELLED|2023-01-31T09:00:00|2023-01-31T10:00:00|2023-01-31T10:00:00|00:00:00|4|00:10:00",
        "3|FAILED|2023-01-31T09:00:00|None|Unknown||4|00:10:00",
        "4|FAILED|2023-01-31T09:00:00|2023-01-31T10:00:00|2023-01-31T10:00:00|00:00:00|4|00:10:00",
    ]);
    assert_eq!(rules(&log), [("never_started", 3)]);
    assert_eq!((log.records[0].id, log.records[0].run_s), (4, 0.0));
    let text = "JobID|State|Submit|Start|End|Elapsed|NCPUS|NodeList|TimelimitRaw\n\
                1|CANCELLED|1675155600|1675155600|1675155600|00:00:00|4|None assigned|5\n\
                2|CANCELLED|1675155600|1675155600|1675155600|00:00:00|4|n[1-2]|5\n\
                3|COMPLETED|1675155600|1675155600|1675155660|00:01:00|4|None assigned|5\n";
    let log = try_read(text, &unix()).expect("reads");
    assert_eq!(rules(&log), [("never_started", 1)]);
    assert_eq!(log.records.iter().map(|record| record.id).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(log.records[0].requested_s, 300.0);
}

#[test]
fn times_that_are_missing_or_contradict_each_other() {
    let log = rows(&[
        "1|COMPLETED|Unknown|2023-01-31T10:00:00|2023-01-31T10:01:00|00:01:00|4|00:10:00",
        "2|COMPLETED|2023-01-31T09:00:00|2023-01-31T10:00:00|2023-01-31T09:59:00|00:01:00|4|00:10:00",
        "3|COMPLETED|2023-01-31T09:00:00|2023-01-31T10:00:00|2023-01-31T10:01:00|00:01:01|4|00:10:00",
        "4|CANCELLED|2023-01-31T09:00:00|2023-01-31T10:00:00|Unknown|00:00:17|4|00:10:00",
        "5|COMPLETED|2023-01-31T09:00:00|Unknown|2023-01-31T10:01:00|00:01:00|4|00:10:00",
        "6|COMPLETED|2023-01-31T09:00:00|2023-01-31T10:00:00|2023-01-31T11:00:00|00:20:00|4|00:10:00",
        "7|COMPLETED|2023-01-31T10:30:00|2023-01-31T10:00:00|2023-01-31T10:01:00|00:01:00|4|00:10:00",
        "8|COMPLETED|2023-01-31T09:00:00|2023-01-31T10:00:00|Unknown||4|00:10:00",
        "9|COMPLETED|2023-01-31T09:00:00|2023-01-31T10:00:00|2023-01-31T10:01:00||4|00:10:00",
    ]);
    let expected = [
        ("not_ended", 1),
        ("no_submit", 1),
        ("contradictory_times", 2),
        ("start_before_submit", 1),
        ("suspended", 1),
        ("end_from_elapsed", 1),
        ("start_from_elapsed", 1),
    ];
    assert_eq!(rules(&log), expected);
    let found: Vec<_> =
        log.records.iter().map(|record| (record.id, record.submit_s, record.wait_s, record.run_s)).collect();
    let expected = [
        (4, 0.0, 3600.0, 17.0),
        (5, 0.0, 3600.0, 60.0),
        (6, 0.0, 3600.0, 1200.0),
        (9, 0.0, 3600.0, 60.0),
        (7, 3600.0, 0.0, 60.0),
    ];
    assert_eq!(found, expected);
}

#[test]
fn time_limits() {
    let limits = ["UNLIMITED", "Partition_Limit", "", "INVALID", "2-00:00:00"];
    let limit = |limit: &&str| job("1", "COMPLETED").replace("1-00:00:00", limit);
    let texts: Vec<String> = limits.iter().map(limit).collect();
    for (text, requested_s) in texts.iter().zip([-1.0, -1.0, -1.0, -1.0, 172_800.0]) {
        assert_eq!(rows(&[text]).records[0].requested_s, requested_s, "{text}");
    }
    assert_eq!(rules(&rows(&[&texts[0]])), [("no_limit", 1)]);
    assert_eq!(rules(&rows(&[&texts[1]])), [("limit_unknown", 1)]);
}

#[test]
fn the_size_is_what_was_allocated() {
    let header = "JobID|State|Submit|Start|End|NCPUS|ReqCPUS|NNodes|AllocTRES|TimelimitRaw";
    let row = |size: &str| format!("{header}\n1|COMPLETED|1675155600|1675155600|1675155660|{size}|10\n");
    let read = |procs: Procs, size: &str| try_read(&row(size), &Settings { procs, ..unix() }).expect("reads");
    let sizes =
        |log: &JobLog| log.records.iter().map(|job| (job.procs_allocated, job.procs_requested)).collect::<Vec<_>>();
    let log = read(Procs::Cpus, "108|100|9|cpu=100,node=1,gres/gpu=4");
    assert_eq!((sizes(&log), rules(&log)), (vec![(108, 100)], vec![("sizes_differ", 1)]));
    assert_eq!(sizes(&read(Procs::Nodes, "8|8|2|")), [(2, -1)]);
    assert_eq!(sizes(&read(Procs::Gpus, "8|8|2|gres/gpu=4")), [(4, -1)]);
    let log = read(Procs::Cpus, "0||1|cpu=12,node=1");
    assert_eq!((sizes(&log), rules(&log)), (vec![(12, -1)], vec![]), "a size of 0 is none");
    assert_eq!(rules(&read(Procs::Gpus, "8|8|2|cpu=8")), [("no_procs", 1)]);
    assert_eq!(rules(&read(Procs::Cpus, "0|0|0|gres/gpu=2")), [("no_procs", 1)]);
}

#[test]
fn runs_of_a_job_that_was_queued_again_are_jobs_of_their_own() {
    let log = rows(&[
        "5|PREEMPTED|2023-01-31T09:00:00|2023-01-31T10:00:00|2023-01-31T10:01:00|00:01:00|4|00:10:00",
        "5|COMPLETED|2023-01-31T10:01:00|2023-01-31T11:00:00|2023-01-31T11:01:00|00:01:00|4|00:10:00",
        "5|COMPLETED|2023-01-31T10:01:00|2023-01-31T11:00:00|2023-01-31T11:01:00|00:01:00|4|00:10:00",
        "6|CANCELLED|2023-01-31T10:01:00|2023-01-31T11:00:00|2023-01-31T11:02:00|00:02:00|4|00:10:00",
        "6|TIMEOUT|2023-01-31T10:01:00|2023-01-31T11:00:00|2023-01-31T11:03:00|00:03:00|4|00:10:00",
    ]);
    assert_eq!(rules(&log), [("duplicate", 2), ("restart", 1), ("renumbered", 1)]);
    let found: Vec<_> = log.records.iter().map(|record| (record.id, record.run_s, record.status)).collect();
    assert_eq!(found, [(5, 60.0, 0), (7, 60.0, 1), (6, 180.0, 0)]);
    assert_eq!(log.ledger.count(Rule::Duplicate).first_line, 4);
}

#[test]
fn parts_of_heterogeneous_jobs_are_jobs() {
    let text = "JobID|JobIDRaw|State|Submit|Start|End|NCPUS|TimelimitRaw\n\
                7+0|7|COMPLETED|1675155600|1675155600|1675155660|1|5\n\
                7+1|8|COMPLETED|1675155600|1675155600|1675155660|2|5\n";
    let log = try_read(text, &unix()).expect("reads");
    assert_eq!(rules(&log), [("part_of_job", 2)]);
    assert_eq!((log.records[1].id, log.facts.peak_procs), (8, Some(3)));
}

#[test]
fn local_times_in_the_hour_that_is_shown_twice() {
    let berlin = Settings { timezone: Some("Europe/Berlin".to_owned()), ..utc() };
    let read = |row: &str| try_read(&format!("{HEADER}\n{row}\n"), &berlin).expect("reads");
    // The elapsed time says that the job ran through the change.
    let log = read("1|COMPLETED|2017-10-29T01:00:00|2017-10-29T02:30:00|2017-10-29T02:40:00|01:10:00|1|02:00:00");
    assert_eq!((log.records[0].wait_s, log.records[0].run_s), (5400.0, 4200.0));
    assert_eq!(rules(&log), [("time_shown_twice", 1)]);
    // Submitted after the change, as the order says.
    let log = read("1|COMPLETED|2017-10-29T02:50:00|2017-10-29T02:10:00|2017-10-29T03:10:00|01:00:00|1|02:00:00");
    assert_eq!((log.records[0].wait_s, log.records[0].run_s), (1200.0, 3600.0));
    let spring = "1|COMPLETED|2017-03-26T01:00:00|2017-03-26T02:30:00|2017-03-26T03:40:00|00:10:00|1|02:00:00";
    let error = try_read(&format!("{HEADER}\n{spring}\n"), &berlin).expect_err("no such time");
    assert!(error.starts_with("dump.txt: line 2: 2017-03-26T02:30:00 does not exist in Europe/Berlin"), "{error}");
    // A job over the change in spring has the run time that Slurm measured.
    let log = read("1|COMPLETED|2017-03-26T01:00:00|2017-03-26T01:30:00|2017-03-26T03:30:00|01:00:00|1|02:00:00");
    assert_eq!((log.records[0].run_s, rules(&log)), (3600.0, vec![]));
}

#[test]
fn jobs_can_arrive_when_they_could_start() {
    let text = "JobID|State|Submit|Eligible|Start|End|NCPUS|TimelimitRaw\n\
                1|COMPLETED|1675155600|1675155610|1675155620|1675155660|1|5\n\
                2|COMPLETED|1675155605|Unknown|1675155620|1675155660|1|5\n";
    let arrivals = |arrival: Arrival| {
        let log = try_read(text, &Settings { arrival, ..unix() }).expect("reads");
        (log.records.iter().map(|job| (job.id, job.submit_s, job.wait_s)).collect::<Vec<_>>(), rules(&log))
    };
    assert_eq!(arrivals(Arrival::Submit), (vec![(1, 0.0, 20.0), (2, 5.0, 15.0)], vec![]));
    assert_eq!(arrivals(Arrival::Eligible), (vec![(2, 0.0, 15.0), (1, 5.0, 10.0)], vec![("eligible_unknown", 1)]));
}

#[test]
fn files_that_were_joined_and_files_without_a_header() {
    let (first, second) = (job("1", "COMPLETED"), job("2", "COMPLETED"));
    let log = try_read(&format!("\u{feff}{HEADER}\r\n{first}\r\n\r\n{HEADER}\r\n{second}"), &utc()).expect("reads");
    assert_eq!((log.records.len(), rules(&log)), (2, vec![("repeated_header", 1)]));
    let columns = Some("jobid,State%20,submit,Start,END,Elapsed,ncpus,Timelimit".to_owned());
    let without = Settings { columns, ..utc() };
    assert_eq!(try_read(&first, &without).expect("reads").records.len(), 1);
    let error = try_read(&format!("{HEADER}\n{first}"), &without).expect_err("there is a header");
    assert!(error.contains("`columns` does not fit the file: line 1 names the columns"), "{error}");
    let error = try_read(&first, &utc()).expect_err("there is none");
    assert!(error.contains("line 1 does not name the columns: call sacct without --noheader"), "{error}");
    // As `sacct --parsable` writes it.
    let log = try_read(&format!("{HEADER}|\n{first}|\n"), &utc()).expect("reads");
    assert_eq!(log.records.len(), 1);
}

#[test]
fn bars_in_names_are_read_only_in_a_last_column() {
    let named = |header: &str, row: &str| try_read(&format!("{header}\n{row}\n"), &utc());
    let first = job("1", "COMPLETED");
    assert_eq!(named(&format!("{HEADER}|JobName"), &format!("{first}|a|b")).expect("reads").records.len(), 1);
    let error = named(&format!("JobName|{HEADER}"), &format!("a|b|{first}")).expect_err("ambiguous");
    assert!(error.contains(
        "line 2 has 10 fields, and there are 9 columns: a text such as the name of a job may have a separator"
    ));
    let error = named(&format!("{HEADER}|JobName"), "1|COMPLETED\nrest").expect_err("cut");
    assert!(
        error.contains("line 2 has 2 fields, and there are 9 columns") && error.contains("the file is cut"),
        "{error}"
    );
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let row = |from: &str, to: &str| format!("{HEADER}\n{}\n", job("1", "COMPLETED").replace(from, to));
    for (text, message) in [
        (row("10:01:00", "25:01:00"), "line 2, column \"End\": \"2023-01-31T25:01:00\" is not a time"),
        (row("|4|", "|4.00K|"), "line 2, column \"NCPUS\": \"4.00K\" is rounded: call sacct with --noconvert"),
        (row("|4|", "|-4|"), "column \"NCPUS\": \"-4\" is no count"),
        (row("00:01:00", "1 min"), "column \"Elapsed\": \"1 min\" is no time"),
        (row("1-00:00:00", "soon"), "column \"Timelimit\": \"soon\" is no time limit"),
        (row("1|COM", "|COM"), "column \"JobID\": \"\" is no job id"),
        (
            row("1|COM", "1|COM").replace("|Submit", "|Submitted"),
            "there is no column Submit, the time at which jobs arrive",
        ),
        (row("1|COM", "1|COM").replace("|State", "|Status"), "there is no column State"),
        (row("1|COM", "1|COM").replace("|NCPUS", "|NTasks"), "there is no column NCPUS, AllocCPUS or AllocTRES"),
        (row("1|COM", "1|COM").replace("JobID|", "Submit|JobID|"), "several columns have the name \"Submit\""),
        (row("1|COM", "1|COM").replace('|', " "), "line 1 has no `|` between columns and is no header with JobID"),
        (" \n".to_owned(), "the file is empty"),
        ("\u{1f}\u{8b}".to_owned(), "line 1 has no `|`"),
        ("<html>".to_owned(), "the file is a web page"),
    ] {
        let error = try_read(&text, &utc()).expect_err(message);
        assert!(error.starts_with("dump.txt: ") && error.contains(message), "{message}: {error}");
    }
    let error = try_read(&row("x", "x"), &Settings::new(Format::Slurm)).expect_err("no zone");
    assert!(error.contains("line 2: the time \"2023-01-31T10:00:00\" has no offset"), "{error}");
    assert!(read(b"\x1f\x8b", "d", &utc()).expect_err("gzip").to_string().contains("compressed by gzip"));
    assert!(
        read(b"JobID|\xff\n", "d", &utc()).expect_err("bytes").to_string().contains("line 1: the text is not UTF-8")
    );
}

#[test]
fn energies_and_gpus_are_kept_as_details() {
    let text = "JobID|State|Submit|Start|End|NCPUS|AllocTRES|TimelimitRaw|ConsumedEnergyRaw|User|Partition\n\
                1|COMPLETED|1675155600|1675155600|1675155660|1|gres/gpu:a100=2,node=1|5|54156|ann|long\n\
                2|COMPLETED|1675155600|1675155600|1675155660|1||5|4294967294|bob|short\n\
                3|COMPLETED|1675155600|1675155600|1675155660|1||5||ann|short\n";
    let log = try_read(text, &unix()).expect("reads");
    let details: Vec<_> = log.details.iter().map(|detail| (detail.gpus, detail.nodes, detail.energy_j)).collect();
    assert_eq!(details, [(Some(2), Some(1), Some(54_156.0)), (None, None, None), (None, None, None)]);
    let powers: Vec<_> = log.details.iter().map(|detail| detail.power_w).collect();
    assert_eq!(powers, [Some(54_156.0 / 60.0), None, None]);
    assert_eq!((log.ledger.count(Rule::PowerFromEnergy).rows, log.ledger.count(Rule::NoPower).rows), (1, 2));
    assert_eq!(log.records.iter().map(|job| (job.user, job.queue)).collect::<Vec<_>>(), [(1, 1), (2, 2), (1, 2)]);
    assert_eq!(
        (log.users, log.queues),
        (vec!["ann".to_owned(), "bob".to_owned()], vec!["long".to_owned(), "short".to_owned()])
    );
}

#[test]
fn every_rule_has_an_effect_and_a_sentence() {
    for rule in Rule::ALL {
        let is_dropped = rule.effect() == Effect::Dropped;
        assert!(is_dropped == ((*rule as usize) <= Rule::Duplicate as usize) && !rule.sentence().is_empty());
    }
}
