//! Small job logs that users reported: each was read wrongly, or refused for one odd row.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, Decimal128Array, DurationMicrosecondArray, Int64Array, ListBuilder, NullArray, PrimitiveBuilder,
    StringArray, StringViewArray, TimestampMillisecondArray,
};
use arrow::datatypes::Int64Type;
use powersweep_inputs::joblogs::{Format, JobLog, Settings, read};
use powersweep_inputs::ledger::Rule as _;

use crate::joblogs::parquet::file;
use crate::joblogs::{check, defaults, utc};

/// The log of a file, which must be read.
#[track_caller]
fn log(bytes: impl AsRef<[u8]>, settings: &Settings) -> JobLog {
    let log = read(bytes.as_ref(), "file", settings).unwrap_or_else(|error| panic!("{error}"));
    check(&log);
    log
}

/// The ledger in one line.
fn ledger(log: &JobLog) -> String {
    let rules = log.ledger.rules().map(|(rule, count)| format!(", {} {}", rule.name(), count.rows)).collect::<String>();
    format!("{} = {} + {}{rules}", log.ledger.read, log.ledger.kept, log.ledger.dropped())
}

fn refused(bytes: impl AsRef<[u8]>, settings: &Settings) -> String {
    read(bytes.as_ref(), "file", settings).expect_err("it is refused").to_string()
}

fn runs(log: &JobLog) -> Vec<f64> {
    log.records.iter().map(|job| job.run_s).collect()
}

#[test]
fn clusters_have_ids_of_their_own() {
    let text = "\
JobID|Cluster|State|Submit|Start|End|Elapsed|NCPUS|NNodes|Timelimit|User|Partition
700|alpha|COMPLETED|2025-03-03T09:00:00|2025-03-03T09:00:00|2025-03-03T10:00:00|01:00:00|64|1|02:00:00|u1|cpu
700|beta|COMPLETED|2025-03-03T09:00:00|2025-03-03T09:00:00|2025-03-03T09:30:00|00:30:00|16|1|02:00:00|u2|cpu
701|alpha|COMPLETED|2025-03-03T09:10:00|2025-03-03T09:12:00|2025-03-03T10:00:00|00:48:00|8|1|02:00:00|u1|cpu
701|beta|COMPLETED|2025-03-03T09:20:00|2025-03-03T09:22:00|2025-03-03T10:00:00|00:38:00|4|1|02:00:00|u3|cpu
701.batch|beta|COMPLETED|2025-03-03T09:20:00|2025-03-03T09:22:00|2025-03-03T10:00:00|00:38:00|4|1|||
702.batch|beta|COMPLETED|2025-03-03T09:20:00|2025-03-03T09:22:00|2025-03-03T10:00:00|00:38:00|4|1|||
";
    let both = log(text, &utc(Format::Slurm));
    assert_eq!(ledger(&both), "6 = 4 + 2, step 1, step_without_job 1, several_clusters 4, renumbered 2");
    let ids: Vec<&str> = both.details.iter().map(|detail| detail.id.as_str()).collect();
    assert_eq!(ids, ["alpha:700", "beta:700", "alpha:701", "beta:701"]);
    let one = log(text.replace("beta", "alpha").replace("|02:00:00|u2", "|02:00:00|u1"), &utc(Format::Slurm));
    assert_eq!((one.ledger.kept, one.details[0].id.as_str()), (3, "700"));
}

#[test]
fn memory_is_not_capped() {
    let of = |memory: &str| {
        let row = format!(
            "1|COMPLETED|2025-03-03T09:00:00|2025-03-03T09:00:00|2025-03-03T09:30:00|1|00:30:00|cpu=1,mem={memory},node=1\n"
        );
        log(format!("JobID|State|Submit|Start|End|NCPUS|Elapsed|AllocTRES\n{row}"), &utc(Format::Slurm)).records[0]
            .memory_requested_kib
    };
    assert_eq!([of("3T"), of("4704T"), of("4.50P")], [3 << 30, 4704 << 30, 4608 << 30]);
    let pbs = "03/03/2025 10:00:00;E;1.srv;user=u ctime=1740992400 start=1740992460 end=1740994260 exec_host=n/0*1 Resource_List.mem=3tb Exit_status=0\n";
    assert_eq!(log(pbs, &defaults(Format::Pbs)).records[0].memory_requested_kib, 3 << 30);
}

#[test]
fn slots_of_torque() {
    let common = "user=u1 group=g queue=q ctime=1740992400 start=1740992460 end=1740994260 Exit_status=0 resources_used.walltime=00:30:00 Resource_List.walltime=3600";
    let records = [
        "1.srv;exec_host=b391/4 total_execution_slots=4 unique_node_count=1 Resource_List.nodes=1:ppn=4",
        "2.srv;exec_host=b391/0-3 total_execution_slots=4 unique_node_count=1 Resource_List.nodes=1:ppn=4",
        "3.srv;exec_host=b391/0-1,5,11+b392/7 total_execution_slots=5 Resource_List.nodes=1:ppn=4+1:ppn=1",
        "4.srv;exec_host=b372/4+b372/5+b372/6+b372/7 Resource_List.nodes=1:ppn=4",
        "5[7].srv;exec_host=b372/0*4 exec_vnode=(b372:ncpus=4:mem=8gb) Resource_List.ncpus=4",
    ];
    let text: String = records.iter().map(|record| format!("03/03/2025 10:00:00;E;{record} {common}\n")).collect();
    let log = log(text, &defaults(Format::Pbs));
    assert_eq!(log.records.iter().map(|job| job.procs_allocated).collect::<Vec<_>>(), [4, 4, 5, 4, 4]);
    assert_eq!(ledger(&log), "5 = 5 + 0, renumbered 1");
}

#[test]
fn a_suspended_job_of_pbs_runs_for_its_walltime() {
    let record = |walltime: &str| {
        format!(
            "03/03/2025 09:30:00;E;501.head;user=ua group=g jobname=j queue=q ctime=1740992400 qtime=1740992400 etime=1740992400 \
             start=1740992400 exec_host=n1/0*4 Resource_List.ncpus=4 Resource_List.walltime=00:20:00 end=1740994200 \
             Exit_status=0 resources_used.walltime={walltime} resources_used.cput=00:40:00\n"
        )
    };
    let of = |walltime| log(record(walltime), &defaults(Format::Pbs));
    let suspended = of("00:12:00");
    assert_eq!((runs(&suspended), suspended.records[0].requested_s), (vec![720.0], 1200.0));
    assert_eq!(ledger(&suspended), "1 = 1 + 0, suspended 1");
    let longer = of("00:30:01");
    assert_eq!((runs(&longer), ledger(&longer)), (vec![1800.0], "1 = 1 + 0, run_time_longer 1".to_owned()));
    assert_eq!((runs(&of("00:00:00")), runs(&of(""))), (vec![1800.0], vec![1800.0]));
}

/// Two jobs on a node have its energy together.
#[test]
fn the_energy_of_a_node_counts_once() {
    let header = "JobID|State|Submit|Start|End|NCPUS|Elapsed|NNodes|NodeList|ConsumedEnergyRaw\n";
    let row = |id: u32, begin: &str, end: &str, cpus: u32, nodes: &str, energy_j: u32| {
        let count = if nodes.contains('[') { 2 } else { 1 };
        format!(
            "{id}|COMPLETED|2025-03-03T09:00:00|2025-03-03T{begin}:00|2025-03-03T{end}:00|{cpus}||{count}|{nodes}|{energy_j}\n"
        )
    };
    let energies = |rows: &[String]| {
        let log = log(format!("{header}{}", rows.concat()), &utc(Format::Slurm));
        (log.details.iter().map(|detail| detail.energy_j.map(f64::round)).collect::<Vec<_>>(), ledger(&log))
    };
    let together = [
        row(1, "09:00", "09:30", 24, "n1", 900_000),
        row(2, "09:00", "09:30", 24, "n1", 900_000),
        row(3, "09:00", "09:30", 48, "n2", 900_000),
    ];
    let expected = "3 = 3 + 0, energy_shared 2, power_from_energy 3".to_owned();
    assert_eq!(energies(&together), (vec![Some(450_000.0), Some(450_000.0), Some(900_000.0)], expected));
    // 500 W from 09:00 to 09:45: the first job has half an hour, of which it shares a half; the sum is that of the node.
    let overlapping = [row(1, "09:00", "09:30", 24, "n1", 900_000), row(2, "09:15", "09:45", 24, "n1", 900_000)];
    assert_eq!(energies(&overlapping).0, [Some(675_000.0), Some(675_000.0)]);
    // Of two nodes, one is shared with a job of a third of the CPUs there.
    let of_two = [row(1, "09:00", "09:30", 64, "n[1-2]", 1_800_000), row(2, "09:00", "09:30", 16, "n2", 900_000)];
    assert_eq!(energies(&of_two).0, [Some(1_500_000.0), Some(300_000.0)]);
    // Two clusters have a node n1 each.
    let rows = together.iter().zip(["alpha", "beta", "beta"]).map(|(row, of)| row.replace('\n', &format!("|{of}\n")));
    let text = header.replace('\n', "|Cluster\n") + &rows.collect::<String>();
    let of_clusters = log(text, &utc(Format::Slurm));
    assert_eq!(of_clusters.details.iter().map(|job| job.energy_j).collect::<Vec<_>>(), [Some(900_000.0); 3]);
    let after = [row(1, "09:00", "09:30", 24, "n1", 900_000), row(2, "09:30", "10:00", 24, "n1", 900_000)];
    assert_eq!(energies(&after), (vec![Some(900_000.0); 2], "2 = 2 + 0, power_from_energy 2".to_owned()));
}

#[test]
fn odd_rows_are_dropped() {
    let odd_times = "\
JobID|State|Submit|Start|End|NCPUS|Elapsed|User
1|RUNNING|2025-03-03T09:00:00|2025-03-03T09:00:10|Unknown|4|400-00:20:31|u1
2|COMPLETED|2025-03-03T09:00:00|2025-03-03T09:00:10|Unknown|8|00:00:00|u2
3|COMPLETED|2025-03-03T09:00:00|Unknown|2025-03-03T09:10:10|8|00:10:00|u2
4|FAILED|2025-03-03T09:00:00|2025-03-03T09:10:10|2025-03-03T09:10:10|8|00:00:00|u2
6|COMPLETED|1970-01-01T00:00:00|2025-03-03T09:00:10|2025-03-03T09:10:10|8|00:10:00|u2
";
    let times = log(odd_times, &utc(Format::Slurm));
    assert_eq!(ledger(&times), "5 = 2 + 3, not_ended 2, no_submit 1, start_from_elapsed 1");
    assert_eq!((runs(&times), times.facts.unix_start_s), (vec![600.0, 0.0], Some(1_740_992_400)));
    let elapsed_invalid = "\
JobID|State|Submit|Start|End|NCPUS|Elapsed|NNodes|Timelimit
1|COMPLETED|2025-03-03T09:00:00|2025-03-03T09:00:00|2025-03-03T09:30:00|24|00:30:00|1|01:00:00
2|CANCELLED|2025-03-03T09:00:00|2025-03-03T09:00:00|2025-03-03T08:59:59|24|INVALID|1|01:00:00
";
    assert_eq!(ledger(&log(elapsed_invalid, &utc(Format::Slurm))), "2 = 1 + 1, contradictory_times 1");
    let zero_run_wide = "\
JobID|Submit|Start|End|Elapsed|State|AllocCPUS|NNodes|Timelimit|User|Partition
1|2024-03-01T10:00:00|2024-03-01T10:00:00|2024-03-01T10:00:00|00:00:00|FAILED|640|10|01:00:00|ua|p
2|2024-03-01T10:00:00|2024-03-01T10:00:10|2024-03-01T10:10:10|00:10:00|COMPLETED|64|1|01:00:00|ua|p
";
    let wide = log(zero_run_wide, &utc(Format::Slurm));
    assert_eq!((ledger(&wide).as_str(), wide.facts.peak_procs), ("2 = 2 + 0", Some(640)));
}

/// A job name with a line end, a cell that is no number, a text that is not UTF-8.
#[test]
fn a_row_that_cannot_be_read_refuses_no_dump() {
    let header = "JobID|State|Submit|Start|End|NCPUS|JobName|Timelimit\n";
    let row = |id: usize| {
        format!("{id}|COMPLETED|2025-03-03T09:00:00|2025-03-03T09:00:00|2025-03-03T09:30:00|4|a|01:00:00\n")
    };
    let rows = |from: usize| (from..from + 20).map(row).collect::<String>();
    let bytes = [
        header.as_bytes(),
        rows(0).as_bytes(),
        b"30|COMP\xff\n",
        rows(40).as_bytes(),
        row(70).replace("|4|", "|4.5|").as_bytes(),
    ]
    .concat();
    assert_eq!(ledger(&log(&bytes, &utc(Format::Slurm))), "42 = 40 + 2, unreadable 2");
    let all = format!("{header}{}", rows(0).replace("|4|", "|x|"));
    assert!(refused(all, &utc(Format::Slurm)).contains("line 2, column \"NCPUS\": \"x\" is no count"));
    let many = format!("{header}{}{}", rows(0), (30..34).map(row).collect::<String>().replace("|4|", "|x|"));
    assert!(refused(many, &utc(Format::Slurm)).contains("line 22, column \"NCPUS\": \"x\" is no count"));
    // A time without a zone is no odd row.
    let mixed = format!("{header}{}{}", rows(0).replace(":00|", ":00Z|").replace("01:00:00Z", "01:00:00"), row(30));
    assert!(refused(mixed, &defaults(Format::Slurm)).contains("line 22: the time"));
    let table = "id,submit,run,cpus\n1,0,10,4\n2,0,x,4\n3,5\n4,10,10,4\n".to_owned()
        + &(5..25).map(|id| format!("{id},20,10,4\n")).collect::<String>();
    let settings =
        Settings { columns: Some("id=id,submit=submit,run=run,cpus=cpus".to_owned()), ..defaults(Format::Csv) };
    assert_eq!(ledger(&log(table, &settings)), "24 = 22 + 2, unreadable 2");
    let record = |id: u32| {
        format!(
            "03/03/2025 10:00:00;E;{id}.srv;user=u ctime=1740992400 start=1740992460 end=1740994260 exec_host=n/0*1 Exit_status=0\n"
        )
    };
    let pbs: String = (1..20).map(record).collect::<String>()
        + "PBS server restarted\n"
        + &record(20).replace("end=1740994260", "end=x");
    assert_eq!(ledger(&log(pbs, &defaults(Format::Pbs))), "21 = 19 + 2, unreadable 2, limit_unknown 19");
}

#[test]
fn states_that_a_column_cuts() {
    let header = "JobID|State|Submit|Start|End|NCPUS\n";
    let row = |state: &str| format!("{state}|{state}|2025-03-03T09:00:00|2025-03-03T09:00:00|2025-03-03T09:30:00|4\n");
    let text = ["OUT_OF_ME+", "CANCELLED+", "NODE_FAIL", "SPECIAL_E+", "FO+"].map(row).concat();
    let log = log(format!("{header}{text}"), &utc(Format::Slurm));
    assert_eq!(log.records.iter().map(|job| job.status).collect::<Vec<_>>(), [0, 5, 0]);
    assert!(ledger(&log).starts_with("5 = 3 + 2, not_ended 1, unknown_state 1"), "{}", ledger(&log));
}

#[test]
fn an_id_that_comes_again_after_years_is_no_restart() {
    let header = "JobID|State|Submit|Start|End|NCPUS\n";
    let row = |year: u32| format!("7|COMPLETED|{year}-03-03T09:00:00|{year}-03-03T09:00:00|{year}-03-03T09:30:00|4\n");
    let again = log(format!("{header}{}{}", row(2020), row(2025)), &utc(Format::Slurm));
    assert_eq!(ledger(&again), "2 = 2 + 0, id_again 1, renumbered 1");
    let queued_again = log(format!("{header}{}{}", row(2025), row(2025).replace("T09", "T10")), &utc(Format::Slurm));
    assert_eq!(ledger(&queued_again), "2 = 2 + 0, restart 1, renumbered 1");
}

#[test]
fn a_megajoule_in_a_second_is_implausible() {
    let of = |header: &str, nodes: &str| {
        let row =
            format!("1|COMPLETED|2025-03-03T09:00:00|2025-03-03T09:00:00|2025-03-03T09:00:01|64|1200000{nodes}\n");
        ledger(&log(
            format!("JobID|State|Submit|Start|End|NCPUS|ConsumedEnergyRaw{header}\n{row}"),
            &utc(Format::Slurm),
        ))
    };
    assert_eq!(of("", ""), "1 = 1 + 0, power_from_energy 1, implausible_power 1");
    assert_eq!(of("|NNodes", "|1"), "1 = 1 + 0, power_from_energy 1, implausible_power 1");
    assert_eq!(of("|NNodes", "|64"), "1 = 1 + 0, power_from_energy 1");
}

#[test]
fn other_delimiters_banners_and_quotes() {
    let dump = |separator: &str, quote: &str| {
        let cells = |cells: [&str; 6]| {
            let quoted = cells
                .map(|cell| if cell.contains(separator) { format!("{quote}{cell}{quote}") } else { cell.to_owned() });
            quoted.join(separator) + "\n"
        };
        let header = cells(["JobID", "State", "Submit", "Start", "End", "AllocTRES"]);
        let time = "2025-03-03T09:00:00";
        header + &cells(["1", "COMPLETED", time, time, "2025-03-03T09:30:00", "cpu=4,mem=8G,node=1"])
    };
    for (separator, quote) in [("|", ""), ("^", ""), (";;", ""), ("\t", ""), (",", "\""), (";", "\"")] {
        let log = log(dump(separator, quote), &utc(Format::Slurm));
        assert_eq!((log.records[0].procs_allocated, ledger(&log).as_str()), (4, "1 = 1 + 0"), "{separator:?}");
    }
    let banner = format!("Welcome to the cluster\nslurm 23.02 loaded\n\n{}", dump("|", ""));
    assert_eq!(ledger(&log(banner, &utc(Format::Slurm))), "3 = 1 + 2, banner 2");
    let without = Settings { columns: Some("JobID,State,Submit,Start,End,AllocTRES".to_owned()), ..utc(Format::Slurm) };
    let row = dump(",", "\"").lines().nth(1).expect("a row").to_owned();
    assert_eq!(log(row, &without).records[0].procs_allocated, 4);
    assert!(refused("JobID    State   Submit\n------- ------ ------\n", &utc(Format::Slurm)).contains("--parsable2"));
    let table = "Jobs of 2025\nid;submit;run;cpus\n1;0;0,75;4\n2;1;1,5;4\n";
    let settings =
        Settings { columns: Some("id=id,submit=submit,run=run,cpus=cpus".to_owned()), ..defaults(Format::Csv) };
    let table = log(table, &settings);
    assert_eq!((ledger(&table).as_str(), runs(&table)), ("3 = 2 + 1, banner 1", vec![0.75, 1.5]));
}

fn times(seconds: &[i64]) -> ArrayRef {
    let times: Vec<i64> = seconds.iter().map(|second| (1_740_992_400 + second) * 1000).collect();
    Arc::new(TimestampMillisecondArray::from(times).with_timezone("UTC"))
}

/// Samples keep their times where one is missing; the one before holds.
#[test]
fn missing_samples_hold_the_one_before() {
    let samples = |samples: &[Option<i64>]| -> ArrayRef {
        let mut builder = ListBuilder::new(PrimitiveBuilder::<Int64Type>::new());
        samples.iter().for_each(|sample| builder.values().append_option(*sample));
        builder.append(true);
        Arc::new(builder.finish())
    };
    let settings = Settings {
        columns: Some("id=id,submit=submit,start=start,end=end,nodes=nodes,power_w=w".to_owned()),
        procs: powersweep_inputs::joblogs::Procs::Nodes,
        power_step_s: Some(20),
        ..defaults(Format::Csv)
    };
    let one = |number: i64| -> ArrayRef { Arc::new(Int64Array::from(vec![number])) };
    let of = |list: &[Option<i64>]| {
        let columns = vec![
            ("id", one(1)),
            ("submit", times(&[0])),
            ("start", times(&[0])),
            ("end", times(&[100])),
            ("nodes", one(1)),
            ("w", samples(list)),
        ];
        let log = log(file(columns), &settings);
        (log.details[0].power_w, ledger(&log))
    };
    let missing = "1 = 1 + 0, sample_missing 1".to_owned();
    assert_eq!(of(&[Some(200), None, Some(200), Some(300), Some(300)]), (Some(240.0), missing.clone()));
    assert_eq!(of(&[None, Some(200), Some(200), Some(300), None]), (Some(240.0), missing));
    assert_eq!(of(&[None, None]), (None, "1 = 1 + 0, no_power 1".to_owned()));
    assert_eq!(of(&[Some(240)]), (Some(240.0), "1 = 1 + 0, samples_short 1".to_owned()));
    assert_eq!(of(&[Some(240); 9]), (Some(240.0), "1 = 1 + 0, samples_long 1".to_owned()));
}

/// Columns as polars and pandas write them.
#[test]
fn string_views_durations_and_decimals() {
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(StringViewArray::from(vec!["1", "2"]))),
        ("submit", times(&[0, 10])),
        ("start", times(&[5, 10])),
        ("run", Arc::new(DurationMicrosecondArray::from(vec![90_500_000, 7_200_000_000]))),
        ("cpus", Arc::new(Decimal128Array::from(vec![400, 1600]).with_precision_and_scale(10, 2).expect("a scale"))),
        ("state", Arc::new(StringArray::from(vec!["COMPLETED", "FAILED"]))),
        ("note", Arc::new(NullArray::new(2))),
    ];
    let columns_of = "id=id,submit=submit,start=start,run=run,cpus=cpus,state=state,user=note".to_owned();
    let settings = Settings { columns: Some(columns_of), ..defaults(Format::Csv) };
    let log = log(file(columns), &settings);
    let jobs: Vec<_> =
        log.records.iter().map(|job| (job.id, job.wait_s, job.run_s, job.procs_allocated, job.user)).collect();
    assert_eq!(jobs, [(1, 5.0, 90.5, 4, -1), (2, 0.0, 7200.0, 16, -1)]);
}

#[test]
fn jobs_of_xdmod() {
    let text = "\
shredded_job_id,source_format,job_id,job_array_index,resource_name,queue_name,user_name,group_name,start_time,end_time,submission_time,eligible_time,wall_time,exit_state,node_count,cpu_count,gpu_count,timelimit
11,slurm,700,1,frontera,normal,ann,physics,1740992460,1740994260,1740992400,1740992400,1800,COMPLETED,2,112,0,3600
12,slurm,700,2,frontera,normal,ann,physics,1740992460,1740994260,1740992400,1740992400,1800,TIMEOUT,2,112,0,1800
13,pbs,701,NULL,frontera,normal,bob,physics,1740992460,1740994260,1740992400,\\N,1800,NULL,1,56,4,NULL
";
    let read = |text: &str| log(text, &defaults(Format::Xdmod));
    let one = read(text);
    let jobs: Vec<_> =
        one.records.iter().map(|job| (job.id, job.wait_s, job.run_s, job.procs_allocated, job.status)).collect();
    assert_eq!(jobs, [(11, 60.0, 1800.0, 112, 1), (12, 60.0, 1800.0, 112, 0), (13, 60.0, 1800.0, 56, 1)]);
    assert_eq!(ledger(&one), "3 = 3 + 0, limit_unknown 1");
    let two = read(&text.replace("13,pbs,701,NULL,frontera", "13,pbs,701,NULL,stampede"));
    assert_eq!(ledger(&two), "3 = 3 + 0, limit_unknown 1, several_clusters 3");
    assert_eq!(
        two.details.iter().map(|job| job.id.as_str()).collect::<Vec<_>>(),
        ["frontera:11", "frontera:12", "stampede:13"]
    );
}

#[test]
fn columns_between_another_delimiter() {
    let text = "start|run|cpus\n0|0,75|4\n".replace("start", "submit");
    let settings = Settings::parse("csv --columns submit=submit,run=run,cpus=cpus --time-unit h --delimiter '|'");
    let jobs = log(&text, &settings.expect("settings")).records;
    assert_eq!(jobs.iter().map(|job| (job.run_s, job.procs_allocated)).collect::<Vec<_>>(), [(2700.0, 4)]);
    assert!(Settings::parse("csv --delimiter ab").is_err_and(|error| error.contains("one character such as |")));
}

#[test]
fn all_problems_of_columns_and_settings_are_reported() {
    let settings = Settings { timezone: Some("Berlin".to_owned()), ..defaults(Format::Slurm) };
    let refusal = refused("JobID|User\n1|ann\n", &settings);
    for part in ["no column State", "no column Submit", "no column Elapsed", "no column NCPUS", "time zone \"Berlin\""]
    {
        assert!(refusal.contains(part), "{part}: {refusal}");
    }
    let columns = Some("id=job,run=length,x=cpus".to_owned());
    let refusal = refused("id,submit,run,cpus\n1,0,10,4\n", &Settings { columns, ..defaults(Format::Csv) });
    for part in ["no column \"job\"", "no column \"length\"", "no field \"x\""] {
        assert!(refusal.contains(part), "{part}: {refusal}");
    }
    let columns = Some("id=id".to_owned());
    let refusal = refused("id,submit,run,cpus\n1,0,10,4\n", &Settings { columns, ..defaults(Format::Csv) });
    for part in ["field `submit`", "field `run`", "field `cpus`"] {
        assert!(refusal.contains(part), "{part}: {refusal}");
    }
}

#[test]
fn files_of_other_kinds_are_named() {
    for (bytes, kind) in [
        (&b"version https://git-lfs.github.com/spec/v1\noid sha256:4d\nsize 12345\n"[..], "a pointer of Git LFS"),
        (b"\n <!DOCTYPE html><html>", "a web page"),
        (b"PK\x03\x04", "a ZIP archive"),
        (&[[b'a'; 257].as_slice(), b"ustar\x0000"].concat()[..], "an archive of tar"),
        (b"\x1f\x8b\x08", "compressed by gzip"),
    ] {
        assert!(refused(bytes, &utc(Format::Slurm)).starts_with(&format!("file: the file is {kind}")));
    }
}
