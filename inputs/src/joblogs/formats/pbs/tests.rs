//! Records of PBS.

use crate::joblogs::{Format, JobLog, Procs, Settings, read};
use crate::ledger::Rule as _;

fn try_read(text: &str, settings: &Settings) -> Result<JobLog, String> {
    let log = read(text.as_bytes(), "20160126", settings).map_err(|error| error.to_string())?;
    assert_eq!(log.ledger.read, log.ledger.kept + log.ledger.dropped(), "{text}");
    Ok(log)
}

fn rules(log: &JobLog) -> Vec<(&'static str, u64)> {
    log.ledger.rules().map(|(rule, count)| (rule.name(), count.rows)).collect()
}

fn record(id: &str, more: &str) -> String {
    format!(
        "01/26/2016 00:00:37;E;{id};user=ann group=g jobname=a b queue=q ctime=1453756297 qtime=1453756297 etime=1453756300 \
         start=1453766281 end=1453766437 Resource_List.walltime=00:10:00 {more}\n"
    )
}

const PBS: Format = Format::Pbs;

#[test]
fn a_record_of_an_end_is_a_job() {
    let text = record("2994.pbs", "exec_host=c1/0*13+c2/0*13 Resource_List.ncpus=65 Exit_status=0");
    let log = try_read(&text, &Settings::new(PBS)).expect("reads");
    let job = log.records[0];
    assert_eq!((job.id, job.submit_s, job.wait_s, job.run_s, job.requested_s), (2994, 0.0, 9984.0, 156.0, 600.0));
    assert_eq!((job.procs_allocated, job.procs_requested, job.status), (26, 65, 1));
    assert_eq!(
        (log.facts.unix_start_s, log.queues.as_slice(), rules(&log)),
        (Some(1_453_756_297), &["q".to_owned()][..], vec![])
    );
    let nodes = try_read(&text, &Settings { procs: Procs::Nodes, ..Settings::new(PBS) }).expect("reads");
    assert_eq!(nodes.records[0].procs_allocated, 2);
}

#[test]
fn records_of_other_events_are_dropped() {
    let end = record("7.pbs", "exec_host=c1/0 Exit_status=271");
    let (queued, parent) = ("01/26/2016 00:00:36;Q;7.pbs;queue=q\n", record("8[].pbs", "Exit_status=0"));
    let never = end.replace("start=1453766281", "start=0").replace("7.pbs", "9.pbs");
    let task = record("8[3].pbs", "exec_host=c1/0 Exit_status=0");
    let log = try_read(&format!("{queued}{end}{parent}{never}{task}"), &Settings::new(PBS)).expect("reads");
    assert_eq!(rules(&log), [("other_record", 1), ("array_parent", 1), ("never_started", 1), ("renumbered", 1)]);
    assert_eq!(log.records.iter().map(|job| (job.id, job.status)).collect::<Vec<_>>(), [(7, 0), (8, 1)]);
}

#[test]
fn sizes_come_from_places_before_requests() {
    let read = |more: &str, procs: Procs| {
        let log = try_read(&record("7", more), &Settings { procs, ..Settings::new(PBS) }).expect("reads");
        (log.records.first().map(|job| job.procs_allocated), rules(&log))
    };
    assert_eq!(
        read("exec_host=h/0*0 exec_vnode=(h[1]:ngpus=2:ncpus=24+h[0]:ncpus=24)", Procs::Cpus),
        (Some(48), vec![])
    );
    let vnode = "exec_host=h/0*4 exec_vnode=(h:ncpus=8:ngpus=2)";
    assert_eq!(read(vnode, Procs::Cpus), (Some(8), vec![("sizes_differ", 1)]));
    assert_eq!(read(vnode, Procs::Gpus), (Some(2), vec![("sizes_differ", 1)]));
    assert_eq!(read("Resource_List.nodes=2:ppn=28:gpus=1", Procs::Cpus), (Some(56), vec![("size_requested", 1)]));
    assert_eq!(read("Resource_List.ngpus=4", Procs::Gpus), (Some(4), vec![("size_requested", 1)]));
    assert_eq!(read("Resource_List.walltime=5", Procs::Cpus), (None, vec![("no_procs", 1)]));
}

#[test]
fn jobs_can_arrive_when_they_could_start() {
    let settings = Settings { arrival: crate::joblogs::Arrival::Eligible, ..Settings::new(PBS) };
    let log = try_read(&record("7", "exec_host=a/0"), &settings).expect("reads");
    assert_eq!((log.facts.unix_start_s, log.records[0].wait_s), (Some(1_453_756_300), 9981.0));
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    for (text, message) in [
        ("x\n".to_owned(), "line 1: no record of PBS"),
        ("\"JOB_FINISH\" \"9.11\" 1389683139\n".to_owned(), "line 1: no record of PBS"),
        (record("7", "").replace("end=14", "end=x4"), "line 1, column \"end\": \"x453766437\" is not a time"),
        (record("7", "").replace("00:10:00", "soon"), "column \"Resource_List.walltime\": \"soon\" is no time"),
        (record("7", "exec_host=abc"), "column \"exec_host\": \"abc\" is no list"),
        (record("7", "exec_vnode=()"), "column \"exec_vnode\""),
        (record("7", "Resource_List.ncpus=-1"), "is no count"),
        (record(" ", ""), "the record has no job id"),
    ] {
        let error = try_read(&text, &Settings::new(PBS)).expect_err(message);
        assert!(error.starts_with("20160126: ") && error.contains(message), "{message}: {error}");
    }
    let columns = Settings { columns: Some("a".to_owned()), ..Settings::new(PBS) };
    assert!(try_read(&record("7", ""), &columns).expect_err("unfit").contains("`columns` does not fit the file"));
}
