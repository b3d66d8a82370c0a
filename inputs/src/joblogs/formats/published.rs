//! Tables that operators of clusters have published: their columns are known.
//!
//! - Helios (SenseTime): `cluster_log.csv`.
//! - Alibaba: `openb_pod_list*.csv` (GPU cluster of 2023), `job_info_df.csv` (spot GPUs of 2026) and the instances of
//!   recommendation models of 2025. The header says which one a file is.
//! - PM100 (CINECA, Marconi100): `job_table.parquet`. Powers are sums over the nodes of a job every 20 s; limits are minutes.
//! - XDMoD: the table `shredded_job`, into which it reads the accounting of Slurm, PBS, SGE and LSF. Times are Unix times.
//! - F-DATA (RIKEN, Fugaku): `YY_MM.parquet`. Powers are means of a node, frequencies are MHz; `pclass`, whether a job is
//!   bound by computation or memory, is the queue.

use powersweep_experiments::signals::Word;

use crate::error::{Problem, shortened};
use crate::joblogs::Ledger;
use crate::joblogs::entry::{Entries, Outcome};
use crate::joblogs::formats::table::{Field, Plan, Scales, is_missing};
use crate::joblogs::settings::{Format, Procs, Settings, TimeUnit};
use crate::table::{Sheet, find};

/// A published table.
struct Published {
    /// A column that no other table has.
    mark: &'static str,
    columns: &'static [(Field, &'static str)],
    /// Columns that it shares with other tables.
    more_columns: &'static [(Field, &'static str)],
    scales: Scales,
    gpu_milli: Option<&'static str>,
    instances: Option<&'static str>,
    /// The column of the name of a cluster, which some versions of the table lack.
    cluster: Option<&'static str>,
    /// Whether a job that was deleted at the last instant of the table had not ended.
    is_cut: bool,
}

const PUBLISHED: Published = Published {
    mark: "",
    columns: &[],
    more_columns: &[],
    scales: Scales::USUAL,
    gpu_milli: None,
    instances: None,
    cluster: None,
    is_cut: false,
};

const HELIOS: [Published; 1] = [Published {
    mark: "gpu_num",
    columns: &[
        (Field::Id, "job_id"),
        (Field::User, "user"),
        (Field::Queue, "vc"),
        (Field::Gpus, "gpu_num"),
        (Field::Cpus, "cpu_num"),
        (Field::Nodes, "node_num"),
        (Field::State, "state"),
        (Field::Submit, "submit_time"),
        (Field::Start, "start_time"),
        (Field::End, "end_time"),
    ],
    ..PUBLISHED
}];

const ALIBABA: [Published; 3] = [
    Published {
        mark: "pod_phase",
        columns: &[
            (Field::Id, "name"),
            (Field::Cpus, "cpu_milli"),
            (Field::Gpus, "num_gpu"),
            (Field::MemoryGib, "memory_mib"),
            (Field::Queue, "qos"),
            (Field::State, "pod_phase"),
            (Field::Submit, "creation_time"),
            (Field::Start, "scheduled_time"),
            (Field::End, "deletion_time"),
        ],
        scales: Scales { cpu_parts: 1000.0, memory_parts: 1024.0, outcome: pod_phase, ..Scales::USUAL },
        gpu_milli: Some("gpu_milli"),
        is_cut: true,
        ..PUBLISHED
    },
    Published {
        mark: "worker_num",
        columns: &[
            (Field::Id, "job_name"),
            (Field::User, "organization"),
            (Field::Queue, "job_type"),
            (Field::Cpus, "cpu_request"),
            (Field::Gpus, "gpu_request"),
            (Field::Submit, "submit_time"),
            (Field::Run, "duration"),
        ],
        instances: Some("worker_num"),
        ..PUBLISHED
    },
    Published {
        mark: "instance_sn",
        columns: &[
            (Field::Id, "instance_sn"),
            (Field::User, "app_name"),
            (Field::Queue, "role"),
            (Field::Cpus, "cpu_request"),
            (Field::Gpus, "gpu_request"),
            (Field::MemoryGib, "memory_request"),
            (Field::Submit, "creation_time"),
            (Field::Start, "scheduled_time"),
            (Field::End, "deletion_time"),
        ],
        ..PUBLISHED
    },
];

/// Columns of PM100 that all versions of its documentation have.
const PM100_ALL: [(Field, &str); 11] = [
    (Field::Id, "job_id"),
    (Field::User, "user_id"),
    (Field::Group, "group_id"),
    (Field::Queue, "partition"),
    (Field::Nodes, "num_nodes_alloc"),
    (Field::State, "job_state"),
    (Field::Submit, "submit_time"),
    (Field::Eligible, "eligible_time"),
    (Field::Start, "start_time"),
    (Field::End, "end_time"),
    (Field::Limit, "time_limit"),
];

const PM100_TABLE: Published = Published {
    more_columns: &PM100_ALL,
    scales: Scales { limit_unit: Some(TimeUnit::Minutes), power_step_s: Some(20), ..Scales::USUAL },
    ..PUBLISHED
};

const PM100: [Published; 2] = [
    Published {
        mark: "node_power_consumption",
        columns: &[
            (Field::Cpus, "num_cores_alloc"),
            (Field::Gpus, "num_gpus_alloc"),
            (Field::PowerW, "node_power_consumption"),
        ],
        ..PM100_TABLE
    },
    Published { mark: "power_consumption", columns: &[(Field::PowerW, "power_consumption")], ..PM100_TABLE },
];

const FDATA: [Published; 1] = [Published {
    mark: "avgpcon",
    columns: &[
        (Field::Id, "jid"),
        (Field::User, "usr"),
        (Field::Queue, "pclass"),
        (Field::Cpus, "cnumat"),
        (Field::Nodes, "nnuma"),
        (Field::State, "exit state"),
        (Field::Submit, "adt"),
        (Field::Start, "sdt"),
        (Field::End, "edt"),
        (Field::Limit, "elpl"),
        (Field::NodePowerW, "avgpcon"),
        (Field::EnergyJ, "econ"),
        (Field::Ghz, "freq_alloc"),
    ],
    scales: Scales { is_mhz: true, ..Scales::USUAL },
    ..PUBLISHED
}];

const XDMOD: [Published; 1] = [Published {
    mark: "shredded_job_id",
    columns: &[
        // Jobs of an array share `job_id`.
        (Field::Id, "shredded_job_id"),
        (Field::User, "user_name"),
        (Field::Group, "group_name"),
        (Field::Queue, "queue_name"),
        (Field::Cpus, "cpu_count"),
        (Field::Nodes, "node_count"),
        (Field::Gpus, "gpu_count"),
        (Field::State, "exit_state"),
        (Field::Submit, "submission_time"),
        (Field::Eligible, "eligible_time"),
        (Field::Start, "start_time"),
        (Field::End, "end_time"),
        (Field::Run, "wall_time"),
        (Field::Limit, "timelimit"),
    ],
    cluster: Some("resource_name"),
    scales: Scales { outcome: exit_state, ..Scales::USUAL },
    ..PUBLISHED
}];

/// Only Slurm and LSF state how a job ended. The table has ended jobs only.
fn exit_state(state: &str) -> Outcome {
    if is_missing(state) { Outcome::Completed } else { Outcome::of(state) }
}

/// Pods that are deleted keep their last phase: one that ran until then is `Running`, one that never ran `Pending`.
fn pod_phase(phase: &str) -> Outcome {
    match phase {
        "Pending" => Outcome::NeverStarted,
        "Running" => Outcome::Cancelled,
        other => Outcome::of(other),
    }
}

pub(super) fn read(bytes: &[u8], settings: &Settings, ledger: &mut Ledger) -> Result<Entries, Problem> {
    settings.refuse_columns("the columns are known")?;
    let mut sheet = super::open(bytes, settings)?;
    let tables: &[Published] = match settings.format {
        Format::Helios => &HELIOS,
        Format::Pm100 => &PM100,
        Format::FData => &FDATA,
        Format::Xdmod => &XDMOD,
        _ => &ALIBABA,
    };
    let has = |name: &str| find(&sheet.names, name) != Ok(None);
    let table = tables.iter().find(|table| has(table.mark)).ok_or_else(|| unknown(&sheet, settings))?;
    let mut plan = Plan::new(settings.time_unit.unwrap_or(TimeUnit::Seconds));
    plan.scales = table.scales;
    let find = |name: &str| {
        let found = find(&sheet.names, name).map_err(Problem::Content)?;
        found.ok_or_else(|| Problem::no_column(name, "which the published table has", &sheet.names))
    };
    for (field, name) in table.columns.iter().chain(table.more_columns) {
        plan.set(*field, find(name)?);
    }
    plan.gpu_milli = table.gpu_milli.map(find).transpose()?;
    plan.instances = table.instances.map(find).transpose()?;
    if let Some(at) = table.cluster.and_then(|name| crate::table::find(&sheet.names, name).ok().flatten()) {
        plan.set(Field::Cluster, at);
    }
    if plan.column(Field::of(settings.procs)).is_none() {
        let has = Procs::WORDS.iter().filter(|(procs, _)| plan.column(Field::of(*procs)).is_some());
        let has = has.map(|(_, word)| *word).collect::<Vec<_>>().join(" and ");
        return Err(Problem::setting("procs", format!("the table has no {}; jobs have {has}", settings.procs.word())));
    }
    let mut entries = plan.read(&mut sheet, settings, ledger)?;
    if table.is_cut {
        let last = entries.list.iter().filter_map(|entry| entry.end).map(|end| end.us).max();
        let is_last = |outcome: Outcome, end: Option<i64>| outcome == Outcome::Cancelled && end == last;
        for entry in entries.list.iter_mut().filter(|entry| is_last(entry.outcome, entry.end.map(|end| end.us))) {
            entry.outcome = Outcome::NotEnded;
        }
    }
    Ok(entries)
}

/// Why a table is none of the known ones.
fn unknown(sheet: &Sheet<'_>, settings: &Settings) -> Problem {
    let has = |names: &[&str]| names.iter().all(|name| find(&sheet.names, name) != Ok(None));
    let reason = if has(&["sn", "model"]) || has(&["node_name", "gpu_capacity_num"]) {
        "the file lists nodes, not jobs".to_owned()
    } else if has(&["name", "num_gpu", "gpu_milli"]) {
        "the file has sizes of pods without times: nothing says when they arrive and how long they run".to_owned()
    } else {
        let names = sheet.names.iter().take(12).map(|name| shortened(name)).collect::<Vec<_>>().join(", ");
        let format = settings.format.word();
        format!("the columns are not those of a table of jobs that {format} has published: {names}")
    };
    Problem::Content(reason)
}

#[cfg(test)]
mod tests;
