//! Answers of Slurm's commands.

use std::collections::{BTreeMap, BTreeSet};

use crate::Seconds;
use crate::queue::{AnswerError, Entry, Facts, Phase, greeted};

/// Begin of each line that a command was asked for: sites print greetings besides.
const MARK: &str = "powersweep|";

/// The value of squeue's `--format`: a mark, the name of the element, state, start, end, reason, nodes. Times are seconds since
/// 1970 with SLURM_TIME_FORMAT=%s.
pub const QUEUE_FORMAT: &str = "powersweep|%i|%T|%S|%e|%r|%N";

/// The value of sinfo's `--format`: a mark, the partition's name, whether jobs may start, its longest time limit, processors,
/// memory, nodes.
pub const PARTITION_FORMAT: &str = "powersweep|%P|%a|%l|%c|%m|%D";

/// The queue's lines, asked for with [`QUEUE_FORMAT`] and without a header. Other lines beside them are greetings of the site,
/// which `banners` keeps.
///
/// # Errors
/// A line with the mark has another form: no line of such an answer is used. Or allocations are expected, no line has the mark,
/// and one is no known greeting: it may be an error in the place of an answer.
pub fn queue(answer: &str, banners: &mut BTreeSet<String>, is_expected: bool) -> Result<Vec<Entry>, AnswerError> {
    let (marked, others) = lines(answer);
    let entries: Vec<Entry> = marked
        .into_iter()
        .map(|line| entry(line).ok_or_else(|| AnswerError::of("squeue", line)))
        .collect::<Result<_, _>>()?;
    greeted("squeue", others, !entries.is_empty(), banners, is_expected)?;
    Ok(entries)
}

/// The lines with the mark, without it, and the others.
fn lines(answer: &str) -> (Vec<&str>, Vec<&str>) {
    let lines = answer.lines().map(str::trim).filter(|line| !line.is_empty());
    let (marked, others): (Vec<&str>, Vec<&str>) = lines.partition(|line| line.starts_with(MARK));
    (marked.into_iter().filter_map(|line| line.strip_prefix(MARK)).collect(), others)
}

fn entry(line: &str) -> Option<Entry> {
    let fields: Vec<&str> = line.split('|').map(str::trim).collect();
    let [name, state, start, end, reason, nodes] = fields.as_slice() else { return None };
    let is_name = name.starts_with(|c: char| c.is_ascii_digit()) && !state.is_empty();
    is_name.then(|| Entry {
        name: (*name).to_owned(),
        id: (*name).to_owned(),
        state: (*state).to_owned(),
        phase: Phase::of_slurm(state),
        started_at: start.parse::<Seconds>().ok(),
        ends_at: end.parse::<Seconds>().ok(),
        reason: if *reason == "None" { String::new() } else { (*reason).to_owned() },
        nodes: (*nodes).to_owned(),
        cannot_start: None,
    })
}

/// The job's number in the answer of `sbatch --parsable`, which is NUMBER or NUMBER;CLUSTER. Sites print greetings before
/// it.
///
/// # Errors
/// No line is a number.
pub fn job_id(answer: &str) -> Result<String, AnswerError> {
    let numbers = answer.lines().rev().map(|line| line.trim().split(';').next().unwrap_or_default());
    let mut numbers = numbers.filter(|word| !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit()));
    numbers.next().map(str::to_owned).ok_or_else(|| AnswerError::of("sbatch", answer.trim()))
}

/// The limits of the cluster, from `scontrol show config`; lines that are not known are passed over.
pub fn facts(answer: &str) -> Facts {
    let mut facts = Facts::default();
    for (key, value) in answer.lines().filter_map(|line| line.split_once('=')) {
        let value = value.trim().to_owned();
        match key.trim() {
            "ClusterName" => facts.cluster = Some(value),
            "SLURM_VERSION" => facts.version = Some(value),
            // The greatest index is smaller than the size.
            "MaxArraySize" => facts.max_array = value.parse::<u64>().ok().map(|size| size.saturating_sub(1)),
            "PreemptMode" => facts.preempt_mode = Some(value),
            _ => {}
        }
    }
    facts
}

/// Maximum number of jobs that a user may have in the queue; `None` without a limit. `account` and `qos`: those that
/// the user chose.
///
/// `associations`: the answer of `sacctmgr --noheader --parsable2 show associations format=Account,MaxSubmitJobs,DefaultQOS`
/// about the user. `qos_limits`: the answer of `sacctmgr --noheader --parsable2 show qos format=Name,MaxSubmitJobsPerUser`.
/// Of several associations, the one with the greatest limit counts: Slurm refuses what is too much.
pub fn submit_limit(associations: &str, qos_limits: &str, account: Option<&str>, qos: Option<&str>) -> Option<u64> {
    let limits: BTreeMap<&str, &str> = qos_limits.lines().filter_map(|line| line.trim().split_once('|')).collect();
    let of_qos = |name: &str| limits.get(name).and_then(|limit| limit.parse().ok()).unwrap_or(u64::MAX);
    let lines = associations.lines().map(|line| line.trim().split('|').collect::<Vec<_>>());
    let found = lines.filter_map(|fields| {
        let [name, limit, default_qos] = fields.as_slice() else { return None };
        let chosen = account.is_none_or(|account| account == *name);
        chosen.then(|| limit.parse().unwrap_or(u64::MAX).min(of_qos(qos.unwrap_or(default_qos))))
    });
    found.max().filter(|limit: &u64| *limit < u64::MAX)
}

/// A partition, from `sinfo --noheader` with [`PARTITION_FORMAT`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    /// Name.
    pub name: String,
    /// Jobs that name no partition run here.
    pub is_default: bool,
    /// Whether jobs may start.
    pub is_up: bool,
    /// Greatest time limit as Slurm writes it; `None` without a limit.
    pub time: Option<String>,
    /// Processors of its smallest node.
    pub cpus: u16,
    /// Memory of its smallest node (MiB).
    pub memory_mib: u64,
    /// Number of nodes.
    pub nodes: u64,
}

/// The partitions, each once: a partition with unlike nodes has several lines.
///
/// # Errors
/// A line with the mark has another form.
pub fn partitions(answer: &str) -> Result<Vec<Partition>, AnswerError> {
    let mut found: Vec<Partition> = Vec::new();
    for line in lines(answer).0 {
        let next = partition(line).ok_or_else(|| AnswerError::of("sinfo", line))?;
        match found.iter_mut().find(|known| known.name == next.name) {
            Some(known) => {
                known.cpus = known.cpus.min(next.cpus);
                known.memory_mib = known.memory_mib.min(next.memory_mib);
                known.nodes += next.nodes;
            }
            None => found.push(next),
        }
    }
    Ok(found)
}

fn partition(line: &str) -> Option<Partition> {
    let fields: Vec<&str> = line.split('|').map(str::trim).collect();
    let [name, up, time, cpus, memory, nodes] = fields.as_slice() else { return None };
    Some(Partition {
        name: name.trim_end_matches('*').to_owned(),
        is_default: name.ends_with('*'),
        is_up: *up == "up",
        time: (!matches!(*time, "infinite" | "n/a")).then(|| (*time).to_owned()),
        cpus: cpus.trim_end_matches('+').parse().ok()?,
        memory_mib: memory.trim_end_matches('+').parse().ok()?,
        nodes: nodes.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queue_is_read_whole_or_not_at_all() {
        let mut banners = BTreeSet::new();
        let answer =
            "powersweep|12_1|RUNNING|1795590593|1795590893|None|n1\npowersweep|12_2|PENDING|N/A|N/A|Resources|\n\n";
        let entries = queue(answer, &mut banners, true).unwrap();
        assert_eq!(entries.len(), 2);
        assert_eq!((entries[0].started_at, entries[0].reason.as_str()), (Some(1_795_590_593), ""));
        assert_eq!((entries[1].started_at, entries[1].reason.as_str()), (None, "Resources"));
        for junk in ["powersweep|12_1|RUNNING", "powersweep|||||||", "powersweep|<html>|a|b|c|d|e"] {
            assert!(queue(&format!("{answer}{junk}\n"), &mut banners, true).is_err(), "{junk}");
        }
        assert_eq!(queue("", &mut banners, true), Ok(vec![]));
    }

    #[test]
    fn greetings_of_a_site_are_told_from_errors() {
        let (line, mut banners) = ("powersweep|12_1|RUNNING|1|2|None|n1\n", BTreeSet::new());
        let error = "slurm_load_jobs error: Unable to contact slurm controller";
        assert!(queue(error, &mut banners, true).is_err(), "allocations are expected");
        assert_eq!(queue(&format!("Welcome|to|the|farm|of|n1\n{line}"), &mut banners, true).unwrap().len(), 1);
        assert_eq!(queue("Welcome|to|the|farm|of|n1\n", &mut banners, true), Ok(vec![]), "a known greeting");
        assert_eq!(queue(error, &mut banners, false), Ok(vec![]), "nothing is expected");
        assert!(queue(error, &mut banners, true).is_err());
    }

    #[test]
    fn the_number_of_a_job_is_found_behind_greetings() {
        assert_eq!(job_id("4711\n"), Ok("4711".to_owned()));
        assert_eq!(job_id("Welcome to the cluster\n4711;farm\n"), Ok("4711".to_owned()));
        assert!(job_id("Submitted batch job 4711").is_err());
        assert!(job_id("").is_err());
    }

    #[test]
    fn the_limit_on_submitted_jobs_is_the_smaller_one_of_account_and_qos() {
        let qos = "normal|\nnarrow|2\nlong|50\n";
        let limit = |associations: &str, account, chosen| submit_limit(associations, qos, account, chosen);
        assert_eq!(limit("root||normal\n", None, None), None);
        assert_eq!(limit("root||normal\n", None, Some("narrow")), Some(2));
        assert_eq!(limit("root|10|long\n", None, None), Some(10));
        assert_eq!(limit("a|10|normal\nb|20|narrow\n", None, None), Some(10));
        assert_eq!(limit("a|10|normal\nb|20|narrow\n", Some("b"), None), Some(2));
        assert_eq!(limit("sacctmgr: error: no database\n", None, None), None);
    }

    #[test]
    fn the_facts_of_a_site_are_read() {
        let config = "Configuration data as of 2026\nClusterName             = farm\nMaxArraySize            = 10001\n\
                      PreemptMode             = CANCEL\nSLURM_VERSION           = 22.05.8\n";
        let facts = facts(config);
        assert_eq!((facts.max_array, facts.preempt_mode.as_deref()), (Some(10_000), Some("CANCEL")));
        let found = partitions(
            "Welcome\npowersweep|batch*|up|4:00:00|64|256000|10\npowersweep|batch*|up|4:00:00|32+|128000+|2\n\
             powersweep|long|down|infinite|8|4096|1\n",
        );
        let found = found.unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].cpus, found[0].nodes, found[0].is_default), (32, 12, true));
        assert_eq!((found[1].time.as_deref(), found[1].is_up), (None, false));
        assert!(partitions("powersweep|junk").is_err());
    }
}
