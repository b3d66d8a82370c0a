//! Tests of the readers of job logs: every file of `POWERSWEEP_JOBLOGS`, and mutated texts.

mod files;
mod mutations;
pub(crate) mod parquet;
mod powers;
mod reports;
mod written;

use powersweep_engine::workload::swf;
use powersweep_experiments::signals::Word as _;
use powersweep_inputs::joblogs::{Format, JobLog, Settings};

/// The default settings of a format.
fn defaults(format: Format) -> Settings {
    Settings::parse(format.word()).expect("a format is an option")
}

/// Settings for times in UTC.
fn utc(format: Format) -> Settings {
    Settings { timezone: Some("UTC".to_owned()), ..defaults(format) }
}

/// The columns of the dumps of XDMoD's tests, which have no header.
const XDMOD: &str = "jobid,jobidraw,cluster,partition,qos,account,group,gid,user,uid,submit,eligible,start,end,elapsed,exitcode,state,\
                     nnodes,ncpus,reqcpus,reqmem,reqtres,alloctres,timelimit,nodelist,jobname";

/// Checks what holds for every log that is read: the ledger adds up, and the engine reads the same records.
fn check(log: &JobLog) {
    let ledger = &log.ledger;
    assert_eq!(ledger.read, ledger.kept + ledger.dropped(), "{}", log.file);
    assert_eq!((ledger.kept, log.records.len()), (log.records.len() as u64, log.details.len()), "{}", log.file);
    let written = log.swf("0123");
    let read = swf::parse(written.as_bytes(), "written.swf").unwrap_or_else(|error| panic!("{error}:\n{written}"));
    assert_eq!(read.header.unix_start_s(), log.facts.unix_start_s);
    assert_eq!(read.records.len(), log.records.len());
    for (read, known) in read.records.iter().zip(&log.records) {
        assert_eq!(swf::Record { line: known.line, ..*read }, *known);
        assert!(known.submit_s >= 0.0 && known.wait_s >= -1.0 && known.run_s >= 0.0 && known.procs_allocated > 0);
    }
    for (at, detail) in log.details.iter().enumerate() {
        let samples = read.power_series.of(at).map(|(step_s, range)| (step_s, &read.power_series.watts()[range]));
        assert_eq!(samples, detail.power_samples.as_ref().map(|known| (known.step_s, &known.watts[..])));
    }
    assert!(log.records.windows(2).all(|pair| pair[0].submit_s <= pair[1].submit_s));
    let mut ids: Vec<i64> = log.records.iter().map(|record| record.id).collect();
    ids.sort_unstable();
    assert!(ids.windows(2).all(|pair| pair[0] < pair[1]), "numbers of jobs are unique");
}
