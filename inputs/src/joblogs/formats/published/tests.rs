//! Tables that operators of clusters have published.

use crate::joblogs::{Format, JobLog, Procs, Settings, read};
use crate::ledger::Rule as _;

fn try_read(text: &str, settings: &Settings) -> Result<JobLog, String> {
    let log = read(text.as_bytes(), "t.csv", settings).map_err(|error| error.to_string())?;
    assert_eq!(log.ledger.read, log.ledger.kept + log.ledger.dropped(), "{text}");
    Ok(log)
}

fn rules(log: &JobLog) -> Vec<(&'static str, u64)> {
    log.ledger.rules().map(|(rule, count)| (rule.name(), count.rows)).collect()
}

fn sizes(log: &JobLog) -> Vec<(&str, i32, f64)> {
    let jobs = log.records.iter().zip(&log.details);
    jobs.map(|(job, detail)| (detail.id.as_str(), job.procs_allocated, job.run_s)).collect()
}

/// By the columns that the publisher documents.
#[test]
fn helios() {
    let text = "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n\
                1,u1,vcA,8,48,1,COMPLETED,2020-04-01 00:00:05,2020-04-01 00:01:05,2020-04-01 01:01:05,3600,60\n\
                2,u1,vcA,0,4,1,FAILED,2020-04-01 00:00:06,2020-04-01 00:00:06,2020-04-01 00:00:16,10,0\n\
                3,u2,vcB,16,96,2,CANCELLED,2020-04-01 00:00:07,None,2020-04-01 00:10:00,0,593\n";
    let settings = Settings { timezone: Some("Asia/Shanghai".to_owned()), ..Settings::new(Format::Helios) };
    let log = try_read(text, &settings).expect("reads");
    assert_eq!((sizes(&log), rules(&log)), (vec![("1", 48, 3600.0), ("2", 4, 10.0)], vec![("never_started", 1)]));
    assert_eq!((log.facts.unix_start_s, log.queues.as_slice()), (Some(1_585_670_405), &["vcA".to_owned()][..]));
    let log = try_read(text, &Settings { procs: Procs::Gpus, ..settings.clone() }).expect("reads");
    assert_eq!((sizes(&log), rules(&log)), (vec![("1", 8, 3600.0)], vec![("never_started", 1), ("no_procs", 1)]));
    let error = try_read("date,vcA,total\n", &settings).expect_err("another table");
    assert!(error.contains("not those of a table of jobs that helios has published: date, vcA, total"), "{error}");
    let error = try_read("job_id,gpu_num\n", &settings).expect_err("columns are absent");
    assert!(error.contains("there is no column user"), "{error}");
}

#[test]
fn alibaba() {
    let pods = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n\
                a,12000,24576,1,1000,,LS,Running,0,50,1\n\
                b,6500,1,1,460,V100M16|V100M32,LS,Succeeded,3,60,4\n\
                c,1000,1,0,0,,BE,Pending,5,70,\n\
                d,1000,1,2,1000,,BE,Failed,6,80,7\n\
                e,1000,1,2,1000,,BE,Running,7,80,8\n";
    let settings = Settings::new(Format::Alibaba);
    let log = try_read(pods, &settings).expect("reads");
    assert_eq!(sizes(&log), [("a", 12, 49.0), ("b", 7, 56.0), ("d", 1, 73.0)]);
    // 24 GiB of 12 CPUs, and 1 MiB of 7.
    assert_eq!(log.records.iter().map(|job| job.memory_requested_kib).collect::<Vec<_>>(), [2 << 20, 147, 1024]);
    let all = [("not_ended", 1), ("never_started", 1), ("rounded_up", 1), ("renumbered", 3)];
    assert_eq!((rules(&log), log.facts.unix_start_s), (all.to_vec(), None));
    let log = try_read(pods, &Settings { procs: Procs::Gpus, ..settings.clone() }).expect("reads");
    assert_eq!((sizes(&log), rules(&log)), (vec![("a", 1, 49.0), ("b", 1, 56.0), ("d", 2, 73.0)], all.to_vec()));
    let spot = "job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,job_type\n\
                239255,13,A10,20,1,1,0,2764799,HP\n437260,57,A100,15,1,16,9589663,41060,Spot\n";
    let log = try_read(spot, &Settings { procs: Procs::Gpus, ..settings.clone() }).expect("reads");
    assert_eq!((sizes(&log), rules(&log)), (vec![("239255", 1, 2_764_799.0), ("437260", 16, 41_060.0)], vec![]));
    assert_eq!(log.details[1].cpus, Some(240));
    for (text, message) in [
        ("sn,cpu_milli,memory_mib,gpu,model\n", "the file lists nodes, not jobs"),
        ("name,cpu_milli,memory_mib,num_gpu,gpu_milli\n", "sizes of pods without times"),
    ] {
        let error = try_read(text, &settings).expect_err(message);
        assert!(error.contains(message), "{error}");
    }
    // A row that cannot be read is dropped.
    let odd = try_read(&spot.replace(",16,", ",1.5,"), &settings).expect("reads");
    assert_eq!(rules(&odd), [("unreadable", 1)]);
    let error = try_read(spot, &Settings { procs: Procs::Nodes, ..settings }).expect_err("no nodes");
    assert!(error.contains("`procs` does not fit the file: the table has no nodes"), "{error}");
}
