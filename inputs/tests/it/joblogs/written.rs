//! The log that is written.

use powersweep_inputs::joblogs::{Format, Settings, read};

use crate::joblogs::{check, defaults};

#[test]
fn the_header_has_source_settings_and_ledger() {
    let text = "JobID|State|Submit|Start|End|NCPUS|Timelimit|User|Partition\n\
                1|COMPLETED|1675155600|1675155700|1675155760|2|00:10:00|ann|long\n\
                1.0|COMPLETED|1675155700|1675155700|1675155760|2||ann|\n\
                2|CANCELLED|1675155610|1675155700|1675155790|3|UNLIMITED|bob|short\n";
    let settings = Settings { machine_procs: Some(64), ..defaults(Format::Slurm) };
    let log = read(text.as_bytes(), "dump.txt", &settings).expect("reads");
    check(&log);
    let version = env!("CARGO_PKG_VERSION");
    let expected = format!(
        "; Version: 2.2\n; Conversion: powersweep {version} import slurm\n; MaxJobs: 2\n; MaxRecords: 2\n; UnixStartTime: 1675155600\n\
         ; MaxProcs: 64\n; Queue: 1 long\n; Queue: 2 short\n; ImportSource: dump.txt, SHA-256 abc\n\
         ; ImportSettings: format = slurm, procs = cpus, arrival = submit, machine_procs = 64\n\
         ; ImportLedger: 3 rows read = 2 kept + 1 dropped\n\
         ; ImportDropped: 1 step (line 3 first): a step of a job; the row of the job counts\n\
         ; ImportChanged: 1 no_limit (line 4 first): no time limit, so there is no requested time\n\
         ; Note: A processor is one of cpus; at most 5 were allocated at once\n\
         ; Note: Users, groups and queues are numbered in the order in which they occur\n\
         1 0 100 60 2 -1 -1 -1 600 -1 1 1 -1 -1 1 1 -1 -1\n2 10 90 90 3 -1 -1 -1 -1 -1 5 2 -1 -1 2 2 -1 -1\n"
    );
    assert_eq!(log.swf("abc"), expected);
    let origin = ["; Conversion", "; ImportSource", "; ImportSettings"];
    let others = expected.lines().filter(|line| !origin.iter().any(|key| line.starts_with(key)));
    assert_eq!(log.swf_without_origin().lines().collect::<Vec<_>>(), others.collect::<Vec<_>>());
}

#[test]
fn allocated_memory_is_a_field_and_gpus_are_comments() {
    let text = "JobID|State|Submit|Start|End|NCPUS|AllocTRES|Timelimit|User|Partition\n\
                1|COMPLETED|1675155600|1675155700|1675155760|2|cpu=2,gres/gpu=4,mem=8G,node=1|00:10:00|ann|long\n\
                2|COMPLETED|1675155610|1675155700|1675155790|3|cpu=3,node=1|00:10:00|bob|short\n";
    let log = read(text.as_bytes(), "dump.txt", &defaults(Format::Slurm)).expect("reads");
    let swf = log.swf("abc");
    let records: Vec<&str> = swf.lines().skip_while(|line| line.starts_with(';')).collect();
    assert_eq!(
        records,
        [
            "1 0 100 60 2 -1 -1 -1 600 4194304 1 1 -1 -1 1 1 -1 -1",
            "; JobGpus: 1 4",
            "2 10 90 90 3 -1 -1 -1 600 -1 1 2 -1 -1 2 2 -1 -1"
        ]
    );
    let parsed = powersweep_engine::workload::swf::parse(swf.as_bytes(), "dump.swf").expect("reads");
    assert_eq!(parsed.gpus.iter().map(|gpus| (gpus.record, gpus.count)).collect::<Vec<_>>(), [(0, 4)]);
}
