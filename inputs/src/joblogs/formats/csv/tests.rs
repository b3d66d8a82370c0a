//! CSV of any origin.

use crate::joblogs::{Format, JobLog, Procs, Rule, Settings, TimeUnit, read};
use crate::ledger::Rule as _;

fn try_read(text: &str, columns: &str, change: fn(&mut Settings)) -> Result<JobLog, String> {
    let mut settings = Settings { columns: Some(columns.to_owned()), ..Settings::new(Format::Csv) };
    change(&mut settings);
    let log = read(text.as_bytes(), "jobs.csv", &settings).map_err(|error| error.to_string())?;
    assert_eq!(log.ledger.read, log.ledger.kept + log.ledger.dropped(), "{text}");
    Ok(log)
}

fn rules(log: &JobLog) -> Vec<(&'static str, u64)> {
    log.ledger.rules().map(|(rule, count)| (rule.name(), count.rows)).collect()
}

#[test]
fn times_from_the_second_0() {
    let text = "arrival_time,length,cpus\n0.5,0.25,4\n1,2,1\n";
    let hours = |settings: &mut Settings| settings.time_unit = Some(TimeUnit::Hours);
    let log = try_read(text, "submit=arrival_time, run=length, cpus=cpus", hours).expect("reads");
    let found: Vec<_> = log.records.iter().map(|job| (job.id, job.submit_s, job.wait_s, job.run_s)).collect();
    assert_eq!(found, [(1, 1800.0, -1.0, 900.0), (2, 3600.0, -1.0, 7200.0)]);
    assert_eq!((log.facts.unix_start_s, rules(&log)), (None, vec![]));
    assert!(log.settings.describe().contains("time_unit = h"));
    assert_eq!((log.facts.peak_procs, log.facts.widest_procs), (None, 4));
    let note = "; Note: A processor is one of cpus; when jobs started is not known; the widest job has 4\n";
    assert!(log.swf("abc").contains(note), "{}", log.swf("abc"));
}

#[test]
fn all_fields() {
    let text = "Job;Who;Team;Q;Sub;Beg;End;Lim;C;N;G;St\n\
                a7;ann;x;long;2023-01-31 09:00;2023-01-31 10:00;2023-01-31 10:01;1:00:00;4;1;0.5;done\n\
                8;bob;x;long;2023-01-31 09:00;;;60;4;1;0;Cancelled\n\
                9;bob;x;long;2023-01-31 09:00;2023-01-31 10:00;None;;4;1;0;\n\
                Job;Who;Team;Q;Sub;Beg;End;Lim;C;N;G;St\n";
    let columns =
        "id=job,user=Who,group=Team,queue=Q,submit=Sub,start=Beg,end=End,limit=Lim,cpus=C,nodes=N,gpus=G,state=St";
    let zone = |settings: &mut Settings| {
        settings.timezone = Some("UTC".to_owned());
        settings.procs = Procs::Gpus;
    };
    let log = try_read(text, columns, zone).expect("reads");
    let expected =
        [("repeated_header", 1), ("not_ended", 1), ("never_started", 1), ("rounded_up", 1), ("renumbered", 1)];
    assert_eq!(rules(&log), expected);
    let job = log.records[0];
    assert_eq!((job.id, job.wait_s, job.run_s, job.requested_s, job.procs_allocated), (1, 3600.0, 60.0, 3600.0, 1));
    assert_eq!((log.details[0].id.as_str(), log.details[0].cpus, log.users.len()), ("a7", Some(4), 1));
    let error = try_read(text, columns, |_| {}).expect_err("no zone");
    assert!(error.contains("line 2: the time \"2023-01-31 09:00\" has no offset"), "{error}");
}

#[test]
fn memory_is_that_of_the_whole_job() {
    let columns = "submit=s,run=r,cpus=c,memory_gib=m";
    let log = try_read("s,r,c,m\n0,10,3,1.5\n0,10,2,\n0,10,2,0\n", columns, |_| {}).expect("reads");
    let memory: Vec<i64> = log.records.iter().map(|record| record.memory_requested_kib).collect();
    assert_eq!(memory, [524_288, -1, -1]);
    let error = try_read("s,r,c,m\n0,10,3,-1\n", columns, |_| {}).expect_err("negative");
    assert!(error.contains("is no memory in GiB"), "{error}");
}

/// Without the cluster, the second job 7 is a duplicate of the first one, or its restart.
#[test]
fn jobs_of_two_clusters_may_have_equal_ids() {
    let text = "k,j,s,r,c\nalpha,7,0,10,3\nbeta,7,5,20,2\n";
    let log = try_read(text, "cluster=k,id=j,submit=s,run=r,cpus=c", |_| {}).expect("reads");
    let ids: Vec<&str> = log.details.iter().map(|job| job.id.as_str()).collect();
    assert_eq!(ids, ["alpha:7", "beta:7"]);
    assert!(rules(&log).contains(&("several_clusters", 2)), "{:?}", rules(&log));
    let one = try_read(&text.replace("beta,7", "alpha,8"), "cluster=k,id=j,submit=s,run=r,cpus=c", |_| {});
    let ids: Vec<String> = one.expect("reads").details.iter().map(|job| job.id.clone()).collect();
    assert_eq!(ids, ["7", "8"]);
}

#[test]
fn waits_give_starts() {
    let log = try_read("s,w,r,c\n1600000000,10,5,2\n", "submit=s,wait=w,run=r,cpus=c", |_| {}).expect("reads");
    assert_eq!((log.facts.unix_start_s, log.records[0].wait_s), (Some(1_600_000_000), 10.0));
    assert_eq!((log.facts.peak_procs, log.facts.widest_procs), (Some(2), 2));
    let ms = |settings: &mut Settings| settings.time_unit = Some(TimeUnit::Milliseconds);
    let log = try_read("s,w,r,c\n1600000000500,10,5,2\n", "submit=s,wait=w,run=r,cpus=c", ms).expect("reads");
    assert_eq!(
        (log.facts.unix_start_s, log.records[0].submit_s, log.records[0].run_s),
        (Some(1_600_000_000), 0.5, 0.005)
    );
}

/// A start before second 0 would be no time.
#[test]
fn a_start_that_only_the_run_time_tells_is_not_before_the_arrival() {
    let columns = "submit=s,start=b,end=e,run=r,cpus=c";
    let log = try_read("s,b,e,r,c\n3308,,11486,1483228800,1\n3308,,11486,8178,1\n", columns, |_| {}).expect("reads");
    assert_eq!(rules(&log), [("contradictory_times", 1), ("start_from_elapsed", 1)]);
    assert_eq!((log.records[0].submit_s, log.records[0].wait_s), (3308.0, 0.0));
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let read = |text: &str, columns: &str| try_read(text, columns, |_| {}).expect_err(columns);
    let text = "s,r,c\n0,5,1\n";
    for (columns, message) in [
        ("submit", "\"submit\" is not FIELD=COLUMN"),
        ("submitted=s", "there is no field \"submitted\"; fields: id, submit, eligible"),
        ("submit=t", "there is no column \"t\"; columns: s, r, c"),
        ("submit=s,submit=r", "the field `submit` has two columns"),
        ("run=r,cpus=c", "the field `submit`, at which jobs arrive, has no column"),
        ("submit=s,cpus=c", "neither the field `run` nor the fields `start` and `end` have columns"),
        ("submit=s,run=r", "the field `cpus`, which counts as processors, has no column"),
    ] {
        let error = read(text, columns);
        assert!(error.starts_with("jobs.csv: `columns` does not fit the file: ") && error.contains(message), "{error}");
    }
    let mapped = "submit=s,run=r,cpus=c";
    for (text, message) in [
        ("s,r,c\n0,5\n", "line 2 has 2 fields, and there are 3 columns: is the file cut?"),
        ("s,r,c\n0,-5,1\n", "line 2, column \"r\": \"-5\" is no time of at least 0"),
        ("s,r,c\n0,5,-1\n", "line 2, column \"c\": \"-1\" is no count"),
        ("s,r,c\n-1,5,1\n", "line 2, column \"s\": \"-1\" is no time from 0"),
        ("s,r,c\nsoon,5,1\n", "\"soon\" is not a time"),
        ("s r c\n", "the first line, \"s r c\", names one column"),
    ] {
        let error = read(text, mapped);
        assert!(error.starts_with("jobs.csv: ") && error.contains(message), "{message}: {error}");
    }
    let without = Settings::new(Format::Csv);
    let error = crate::joblogs::read(text.as_bytes(), "jobs.csv", &without).expect_err("no columns").to_string();
    assert!(
        error.contains("such as submit=COLUMN,run=COLUMN,cpus=COLUMN") && error.ends_with("columns: s, r, c"),
        "{error}"
    );
    assert!(
        crate::joblogs::read(b"s,r\n\xff,1\n", "jobs.csv", &Settings { columns: Some("submit=s".into()), ..without })
            .is_err()
    );
}

#[test]
fn powers_and_energies() {
    // PM100 has samples of all nodes together, F-DATA means of a node, and both have energies.
    let text = "s,r,n,node_power_consumption,avgpcon,econ\n\
                0,100,2,\"[300, 500]\",,\n\
                1,100,2,,150,30000\n\
                2,100,2,[],,25000\n\
                3,100,2,,200,100\n\
                4,100,2,0,,0\n\
                5,100,2,50000,,\n\
                6,0,2,,,70\n";
    let columns = "submit=s,run=r,nodes=n,power_w=node_power_consumption,node_power_w=avgpcon,energy_j=econ";
    let nodes = |settings: &mut Settings| settings.procs = Procs::Nodes;
    let log = try_read(text, columns, nodes).expect("reads");
    let powers: Vec<_> = log.details.iter().map(|detail| detail.power_w).collect();
    assert_eq!(powers, [Some(400.0), Some(300.0), Some(250.0), Some(400.0), None, None, None]);
    let expected =
        [("no_power", 2), ("power_from_energy", 1), ("power_and_energy_differ", 1), ("implausible_power", 1)];
    assert_eq!(rules(&log), expected);
    assert!(log.swf("").contains("; JobPowerW: 1 400\n2 1 -1 100 2"), "{}", log.swf(""));
    let ghz =
        try_read("s,r,n,p,f\n0,1,1,5,2.2\n0,1,1,6,\n", "submit=s,run=r,nodes=n,power_w=p,ghz=f", nodes).expect("reads");
    assert!(ghz.swf("").contains("; JobPowerW: 1 5 2.2\n2 ") && ghz.swf("").ends_with("; JobPowerW: 2 6\n"));
    let error = try_read("s,r,n,f\n0,1,1,2200\n", "submit=s,run=r,nodes=n,ghz=f", nodes).expect_err("MHz");
    assert!(error.contains("is no frequency in GHz"), "{error}");
    for (cell, reason) in [("-1", "is no number of at least 0"), ("\"[1,x]\"", "has a sample that is no number")] {
        let error = try_read(&format!("s,r,n,p\n0,1,1,{cell}\n"), "submit=s,run=r,nodes=n,power_w=p", nodes);
        assert!(error.as_ref().is_err_and(|error| error.contains("line 2") && error.contains(reason)), "{error:?}");
    }
}

/// Only separators outside of quotes count.
#[test]
fn names_of_columns_may_have_separators() {
    let log = try_read("\"a;b;c;d;e\",s,r,c\nx,0,5,1\n", "submit=s,run=r,cpus=c", |_| {}).expect("reads");
    assert_eq!(log.records[0].run_s, 5.0);
}

#[test]
fn a_name_that_several_columns_have_is_refused() {
    let text = "s,r,Cpus,CPUS\n0,5,1,2\n";
    let error = try_read(text, "submit=s,run=r,cpus=cpus", |_| {}).expect_err("two columns");
    assert!(error.contains("several columns have the name \"cpus\"; columns: s, r, Cpus, CPUS"), "{error}");
    let log = try_read(text, "submit=s,run=r,cpus=CPUS", |_| {}).expect("exactly one has this name");
    assert_eq!(log.records[0].procs_allocated, 2);
}

#[test]
fn numbers_may_have_a_decimal_comma_where_commas_do_not_separate() {
    let columns = "submit=s,run=r,cpus=c";
    let log = try_read("s;r;c\n0;1,5;1\n", columns, |_| {}).expect("reads");
    assert_eq!(log.records[0].run_s, 1.5);
    assert_eq!(try_read("s;r;c\n0;0,125;1\n", columns, |_| {}).expect("reads").records[0].run_s, 0.125);
    // The separator of a file is that of all its columns.
    assert_eq!(try_read("s;r;c\n0,5;1,250;1\n", columns, |_| {}).expect("reads").records[0].run_s, 1.25);
    for (text, reason) in [
        ("s;r;c\n0;1.000,5;1\n", "is no time of at least 0"),
        ("s,r,c\n0,\"1,5\",1\n", "is no time of at least 0"),
        ("s;r;c\n0;1,000;1\n", "line 2: \"1,000\" can have three decimals or a separator of thousands"),
        ("s;r;c\n0;1;1.024\n", "line 2: \"1.024\" can have three decimals or a separator of thousands"),
        ("s;r;c\n0;3600,5;1\n9;1.800;16\n", "line 3: \"1.800\" has another separator than \"3600,5\" (line 2)"),
    ] {
        let error = try_read(text, columns, |_| {}).expect_err(text);
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn columns_that_are_not_read_may_have_any_bytes() {
    let settings = Settings { columns: Some("submit=s,run=r,cpus=c".to_owned()), ..Settings::new(Format::Csv) };
    let log = read(b"s,r,c,name\n0,5,1,caf\xe9\n", "jobs.csv", &settings).expect("reads");
    assert_eq!(log.records.len(), 1);
    let error = read(b"s,r,c\n0,\xe9,1\n", "jobs.csv", &settings).expect_err("a column that is read");
    assert_eq!(error.to_string(), "jobs.csv: line 2, column \"r\": \"\u{fffd}\" is not UTF-8");
}

#[test]
fn lines_are_those_of_an_editor() {
    for text in ["s,r,c\n0,5,1\n\n\n0,-5,1\n", "\n\n\ns,r,c\n0,-5,1\n0,5,1\n", "s,r,c,n\n0,5,1,\"a\nb\nc\"\n0,-5,1,\n"]
    {
        let log = try_read(text, "submit=s,run=r,cpus=c", |_| {}).expect("reads");
        let unreadable = log.ledger.count(Rule::Unreadable);
        assert_eq!((unreadable.rows, unreadable.first_line), (1, 5), "{text:?}");
    }
}

/// 0 in a column of Unix times is the zero of a clock. In a log that counts from its second 0, it is that second.
#[test]
fn zeros_among_unix_times_are_no_times() {
    let columns = "submit=s,start=b,end=e,cpus=c";
    let text = "s,b,e,c\n0,1600000000,1600000060,1\n1600000000,1600000000,1600000060,1\n1600000000,0,0,1\n";
    let log = try_read(text, columns, |_| {}).expect("reads");
    assert_eq!(log.facts.unix_start_s, Some(1_600_000_000));
    assert_eq!((log.ledger.kept, log.ledger.count(Rule::NoSubmit).rows, log.ledger.dropped()), (1, 1, 2));
    let from_zero = try_read("s,b,e,c\n0,0,60,1\n5,5,65,1\n", columns, |_| {}).expect("reads");
    assert_eq!((from_zero.ledger.kept, from_zero.records[1].submit_s), (2, 5.0));
    let error =
        try_read("s,r,c\n5,5,1\n1600000000,5,1\n1600000000,5,1\n", "submit=s,run=r,cpus=c", |_| {}).expect_err("mixed");
    assert!(error.contains("line 3, column \"s\": \"1600000000\" is another kind of time"), "{error}");
}

#[test]
fn a_time_of_two_parts_is_refused() {
    let columns = "submit=s,run=r,limit=l,cpus=c";
    let error =
        try_read("s,r,l,c\n0,01:30,02:00,4\n9,1:30:00,2:00:00,4\n", columns, |_| {}).expect_err("minutes or hours");
    assert!(error.contains("column \"r\": \"01:30\" can be hours and minutes, or minutes and seconds"), "{error}");
    let log = try_read("s,r,l,c\n0,1:30:00,1-02:00:00,4\n", columns, |_| {}).expect("reads");
    assert_eq!((log.records[0].run_s, log.records[0].requested_s), (5400.0, 93_600.0));
}

/// The ledger, and for each job arrival, wait and run time.
fn ledger_and_times(text: &str, columns: &str, change: fn(&mut Settings)) -> (String, Vec<(f64, f64, f64)>) {
    let log = try_read(text, columns, change).expect("reads");
    let rules = rules(&log).into_iter().map(|(rule, count)| format!("{count} {rule}")).collect::<Vec<_>>().join(", ");
    (rules, log.records.iter().map(|job| (job.submit_s, job.wait_s, job.run_s)).collect())
}

/// 02:00 to 03:00 occurs twice in Berlin: from 00:00 UTC and from 01:00 UTC on.
#[test]
fn times_that_were_shown_twice_fit_all_that_is_stated() {
    let zone = |settings: &mut Settings| settings.timezone = Some("Europe/Berlin".to_owned());
    let text = "s,e,r,c\n2024-10-27 02:50,2024-10-27 02:10,00:10:00,4\n2024-10-27 01:50,2024-10-27 02:10,00:10:00,4\n\
                2024-10-27 01:50,2024-10-27 02:10,01:10:00,4\n";
    let ends = ledger_and_times(text, "submit=s,end=e,run=r,cpus=c", zone);
    let kept = vec![(0.0, 600.0, 600.0), (0.0, 600.0, 4200.0), (3600.0, 600.0, 600.0)];
    assert_eq!(ends, ("3 start_from_elapsed, 3 time_shown_twice".to_owned(), kept));
    let text = "s,w,e,r,c\n2024-10-27 02:10,600,2024-10-27 03:00,01:40:00,4\n2024-10-27 02:10,600,2024-10-27 03:00,00:40:00,4\n";
    let waits = ledger_and_times(text, "submit=s,wait=w,end=e,run=r,cpus=c", zone);
    assert_eq!(waits, ("2 time_shown_twice".to_owned(), vec![(0.0, 600.0, 6000.0), (3600.0, 600.0, 2400.0)]));
    let text = "s,b,r,c\n2024-10-27 02:50,2024-10-27 02:10,600,4\n";
    let starts = ledger_and_times(text, "submit=s,start=b,run=r,cpus=c", zone);
    assert_eq!(starts, ("1 time_shown_twice".to_owned(), vec![(0.0, 1200.0, 600.0)]));
}

#[test]
fn a_wait_counts_where_no_start_is_stated() {
    let text = "s,b,w,r,c\n0,10,99,5,1\n0,,20,5,1\n0,30,30.5,5,1\n";
    let (rules, times) = ledger_and_times(text, "submit=s,start=b,wait=w,run=r,cpus=c", |_| {});
    assert_eq!((rules.as_str(), times), ("1 wait_differs", vec![(0.0, 10.0, 5.0), (0.0, 20.0, 5.0), (0.0, 30.0, 5.0)]));
}

#[test]
fn no_job_is_eligible_before_its_submit() {
    let text = "s,l,b,e,c\n100,50,120,140,1\n200,190,195,240,2\n300,310,320,330,1\n";
    let eligible = |settings: &mut Settings| settings.arrival = crate::joblogs::Arrival::Eligible;
    let (rules, times) = ledger_and_times(text, "submit=s,eligible=l,start=b,end=e,cpus=c", eligible);
    assert_eq!(rules, "1 start_before_submit, 2 eligible_before_submit");
    assert_eq!(times, [(100.0, 20.0, 20.0), (195.0, 0.0, 45.0), (310.0, 10.0, 10.0)]);
}

#[test]
fn a_row_without_a_run_time_is_dropped_as_such() {
    let run = ledger_and_times("s,r,c\n0,,1\n1,NaN,1\n1,2,1\n", "submit=s,run=r,cpus=c", |_| {});
    assert_eq!(run, ("2 no_run_time".to_owned(), vec![(1.0, -1.0, 2.0)]));
    let text = "s,b,e,c\n0,,5,1\n1,2,4,1\n3,4,,1\n";
    let (rules, _) = ledger_and_times(text, "submit=s,start=b,end=e,cpus=c", |_| {});
    assert_eq!(rules, "1 not_ended, 1 no_run_time");
}

#[test]
fn parts_of_gpus_count_in_the_ledger_whatever_processors_are() {
    let (rules, _) =
        ledger_and_times("s,r,c,g\n0,10,4,0.5\n5,10,4.5,1.25\n9,10,4,2\n", "submit=s,run=r,cpus=c,gpus=g", |_| {});
    assert_eq!(rules, "2 rounded_up");
}

#[test]
fn a_machine_that_is_smaller_than_its_jobs_is_refused() {
    let text = "s,b,e,c\n0,0,100,64\n0,10,100,32\n";
    let columns = "submit=s,start=b,end=e,cpus=c";
    let error = try_read(text, columns, |settings| settings.machine_procs = Some(95)).expect_err("96 at once");
    assert!(
        error.contains("`machine_procs` does not fit the file: the jobs had 96 cpus at once, and the machine has 95"),
        "{error}"
    );
    assert!(try_read(text, columns, |settings| settings.machine_procs = Some(96)).is_ok());
    let widest = try_read("s,r,c\n0,1,8\n", "submit=s,run=r,cpus=c", |settings| settings.machine_procs = Some(7));
    assert!(widest.expect_err("8 in a job").contains("the jobs had 8 cpus in one job"));
}
