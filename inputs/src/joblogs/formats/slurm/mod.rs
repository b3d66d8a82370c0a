//! Output of Slurm's `sacct --parsable2`.
//!
//! A row of a job (`JobID` without a dot) is an entry. Rows of its steps are dropped: they repeat times and sizes of the job,
//! and energies of steps that overlap have no sum. Without a header, the setting `columns` has the list that
//! `sacct --format` was given.

mod cells;
mod nodes;
mod rows;

use std::collections::{BTreeSet, HashSet};

use crate::error::{Place, Problem, Problems};
use crate::joblogs::clock::{JobClock, Time};
use crate::joblogs::entry::{Entries, Entry, Measured, Outcome, Size, TimeLimit, job_number};
use crate::joblogs::odd_rows::OddRows;
use crate::joblogs::settings::{Arrival, Procs, Settings};
use crate::joblogs::{Ledger, Rule};
use cells::Tres;
use nodes::NodeNames;

pub(super) use cells::duration;
use rows::{Row, Table};

/// The columns that are read, by their places.
struct Columns {
    id: Option<usize>,
    raw_id: Option<usize>,
    state: usize,
    submit: usize,
    eligible: Option<usize>,
    start: Option<usize>,
    end: Option<usize>,
    elapsed: Option<usize>,
    elapsed_s: Option<usize>,
    limit: Option<usize>,
    limit_minutes: Option<usize>,
    cpus: [Option<usize>; 2],
    requested_cpus: Option<usize>,
    nodes: [Option<usize>; 2],
    requested_nodes: Option<usize>,
    allocated: Option<usize>,
    requested: Option<usize>,
    node_list: Option<usize>,
    cluster: Option<usize>,
    user: Option<usize>,
    group: Option<usize>,
    partition: Option<usize>,
    energy_j: Option<usize>,
}

impl Columns {
    fn find(table: &mut Table<'_>, settings: &Settings) -> Result<Columns, Problem> {
        let mut problems = Problems::default();
        let state = "which says whether a job has ended: add State to the list of --format";
        let state = problems.take(table.need("State", state));
        let submit = "the time at which jobs arrive: add Submit to the list of --format";
        let submit = problems.take(table.need("Submit", submit));
        let eligible = match settings.arrival {
            Arrival::Submit => None,
            Arrival::Eligible => {
                let eligible = "which `arrival` asks for: add Eligible to the list of --format";
                problems.take(table.need("Eligible", eligible))
            }
        };
        let columns = Columns {
            id: table.find("JobID")?,
            raw_id: table.find("JobIDRaw")?,
            state: state.unwrap_or_default(),
            submit: submit.unwrap_or_default(),
            eligible,
            start: table.find("Start")?,
            end: table.find("End")?,
            elapsed: table.find("Elapsed")?,
            elapsed_s: table.find("ElapsedRaw")?,
            limit: table.find("Timelimit")?,
            limit_minutes: table.find("TimelimitRaw")?,
            cpus: [table.find("NCPUS")?, table.find("AllocCPUS")?],
            requested_cpus: table.find("ReqCPUS")?,
            nodes: [table.find("NNodes")?, table.find("AllocNodes")?],
            // Older versions of sacct round it ("0.00K"), so it is read only where it counts.
            requested_nodes: table.find("ReqNodes")?.filter(|_| settings.procs == Procs::Nodes),
            allocated: table.find("AllocTRES")?,
            requested: table.find("ReqTRES")?,
            node_list: table.find("NodeList")?,
            cluster: table.find("Cluster")?,
            user: table.find("User")?,
            group: table.find("Group")?,
            partition: table.find("Partition")?,
            energy_j: table.find("ConsumedEnergyRaw")?,
        };
        if columns.id.or(columns.raw_id).is_none() {
            problems.take(table.need("JobID", "which names the job: add JobID to the list of --format"));
        }
        let has_times = columns.start.and(columns.end).or(columns.elapsed).or(columns.elapsed_s);
        if has_times.is_none() {
            let times = "nor Start and End, for the run time: add Start and End to the list of --format";
            problems.take(table.need("Elapsed", times));
        }
        let (found, wanted) = match settings.procs {
            Procs::Cpus => (columns.cpus[0].or(columns.cpus[1]).or(columns.allocated), "NCPUS, AllocCPUS or AllocTRES"),
            Procs::Nodes => (columns.nodes[0].or(columns.nodes[1]).or(columns.allocated), "NNodes or AllocTRES"),
            Procs::Gpus => (columns.allocated, "AllocTRES"),
        };
        if found.is_none() {
            problems.take(table.need(wanted, "for the size of jobs: add one of them to the list of --format"));
        }
        problems.finish()?;
        Ok(columns)
    }
}

/// Reads the entries of a dump.
pub(super) fn read(bytes: &[u8], settings: &Settings, ledger: &mut Ledger) -> Result<Entries, Problem> {
    let mut problems = Problems::default();
    problems.take(settings.refuse_time_unit());
    let mut table = Table::open(bytes, settings.columns.as_deref())?;
    let columns = problems.take(Columns::find(&mut table, settings));
    let clock = problems.take(JobClock::new(settings.timezone.as_deref()));
    problems.finish()?;
    let Some((columns, clock)) = columns.zip(clock) else { return Err(Problem::Several(Vec::new())) };
    let mut reader = Reader { clock, columns, nodes: NodeNames::default() };
    let mut entries: Vec<Entry> = Vec::new();
    let mut steps: Vec<(String, u64)> = Vec::new();
    let mut odd = OddRows::default();
    for line in table.banner() {
        ledger.read += 1;
        ledger.add(Rule::Banner, *line);
    }
    loop {
        let read = match table.next_row() {
            Ok(None) => break,
            Ok(Some(row)) if row.is_header => {
                ledger.read += 1;
                ledger.add(Rule::RepeatedHeader, row.line);
                continue;
            }
            Ok(Some(row)) => match reader.id(&row).split_once('.') {
                Some((job, _)) => {
                    steps.push((reader.id_with_cluster(&row, job), row.line));
                    Ok(())
                }
                None => reader.entry(&row).map(|entry| entries.push(entry)),
            },
            Err(problem) => Err(problem),
        };
        ledger.read += 1;
        read.or_else(|problem| odd.drop_row(problem, ledger))?;
    }
    odd.finish(ledger)?;
    reader.clock.finish()?;
    let jobs: HashSet<&str> = entries.iter().map(|entry| entry.id.as_str()).collect();
    for (job, line) in &steps {
        let rule = if jobs.contains(job.as_str()) { Rule::Step } else { Rule::StepWithoutJob };
        ledger.add(rule, *line);
    }
    name_clusters(&mut entries);
    Ok(Entries { list: entries, is_calendar: true })
}

/// Between the name of a cluster and the id of a job.
pub(super) const CLUSTER_END: char = ':';

/// Removes the names of clusters from ids where the file has jobs of one cluster: only several clusters give the same id twice.
pub(super) fn name_clusters(entries: &mut [Entry]) {
    let cluster = |entry: &Entry| entry.id.split_once(CLUSTER_END).map(|(cluster, _)| cluster.to_owned());
    let clusters: BTreeSet<String> = entries.iter().filter_map(cluster).collect();
    for entry in entries {
        match entry.id.split_once(CLUSTER_END) {
            Some(_) if clusters.len() > 1 => entry.changes.push(Rule::SeveralClusters),
            Some((_, id)) => entry.id = id.to_owned(),
            None => {}
        }
    }
}

struct Reader {
    clock: JobClock,
    columns: Columns,
    nodes: NodeNames,
}

impl Reader {
    fn id<'a>(&self, row: &Row<'a>) -> &'a str {
        row.get(self.columns.id.or(self.columns.raw_id))
    }

    /// An id with the cluster of the row, if the file names clusters.
    fn id_with_cluster(&self, row: &Row<'_>, id: &str) -> String {
        match row.get(self.columns.cluster) {
            "" => id.to_owned(),
            cluster => format!("{cluster}{CLUSTER_END}{id}"),
        }
    }

    fn entry(&mut self, row: &Row<'_>) -> Result<Entry, Problem> {
        let id = self.id(row);
        let places_of = self.columns.energy_j.and(self.columns.node_list);
        let columns = &self.columns;
        let raw_id = row.get(columns.raw_id.or(columns.id));
        if id.is_empty() {
            return Err(row.problem(columns.id.or(columns.raw_id), "is no job id"));
        }
        let mut changes = Vec::new();
        // Tasks of an array have ids such as 123_4; tasks that were not split yet share a row, such as 123_[5-9].
        if id.contains("_[") {
            changes.push(Rule::ArrayRange);
        }
        // A component of a heterogeneous job, such as 123+1.
        if id.contains('+') {
            changes.push(Rule::PartOfJob);
        }
        let (start, elapsed_us) = (self.time(row, columns.start)?, self.elapsed_us(row)?);
        let (allocated, requested, memory_kib) = self.sizes(row, &mut changes)?;
        let mut outcome = Outcome::of(row.get(Some(columns.state)));
        let has_run = match (outcome, columns.node_list.map(|at| row.get(Some(at)))) {
            (Outcome::Cancelled, _) if columns.start.is_some() && start.is_none() => false,
            (Outcome::Completed | Outcome::Failed | Outcome::Cancelled, Some("None assigned")) => elapsed_us != Some(0),
            (Outcome::Cancelled, None) => elapsed_us != Some(0),
            _ => true,
        };
        if !has_run {
            outcome = Outcome::NeverStarted;
        }
        Ok(Entry {
            line: row.line,
            id: self.id_with_cluster(row, id),
            number: job_number(raw_id),
            outcome,
            submit: self.time(row, Some(columns.submit))?,
            eligible: self.time(row, columns.eligible)?,
            start,
            end: self.time(row, columns.end)?,
            wait_us: None,
            elapsed_us,
            limit: self.limit(row)?,
            allocated,
            requested,
            user: row.get(columns.user).to_owned(),
            group: row.get(columns.group).to_owned(),
            queue: row.get(columns.partition).to_owned(),
            memory_kib,
            measured: Measured {
                has_column: columns.energy_j.is_some(),
                energy_j: self.energy_j(row)?,
                ..Measured::default()
            },
            places: places_of.map_or_else(Vec::new, |at| {
                self.nodes.numbers(row.get(self.columns.cluster), row.get(Some(at)), allocated.nodes)
            }),
            changes,
        })
    }

    /// An instant; `None` where the row has none.
    fn time(&self, row: &Row<'_>, at: Option<usize>) -> Result<Option<Time>, Problem> {
        match row.get(at) {
            "" | "Unknown" | "None" | "N/A" => Ok(None),
            text => self.clock.read(text, Place::Line(row.line), row.name(at)),
        }
    }

    fn elapsed_us(&self, row: &Row<'_>) -> Result<Option<i64>, Problem> {
        let columns = &self.columns;
        let (at, parse): (_, fn(&str) -> Option<i64>) = match columns.elapsed_s {
            Some(_) => (columns.elapsed_s, cells::seconds),
            None => (columns.elapsed, cells::duration),
        };
        match row.get(at) {
            // Slurm prints `INVALID` where the end is before the start.
            "" | "INVALID" | "Unknown" | "None" => Ok(None),
            text => parse(text).map(Some).ok_or_else(|| row.problem(at, "is no time such as 1-02:03:04")),
        }
    }

    fn limit(&self, row: &Row<'_>) -> Result<TimeLimit, Problem> {
        let columns = &self.columns;
        let (at, parse): (_, fn(&str) -> Option<i64>) = match columns.limit_minutes {
            Some(_) => (columns.limit_minutes, cells::minutes),
            None => (columns.limit, cells::duration),
        };
        match row.get(at) {
            _ if at.is_none() => Ok(TimeLimit::Absent),
            "UNLIMITED" => Ok(TimeLimit::None),
            "" | "Partition_Limit" | "INVALID" | "Unknown" | "None" => Ok(TimeLimit::Unknown),
            text => {
                parse(text).map(TimeLimit::Us).ok_or_else(|| row.problem(at, "is no time limit such as 1-02:03:04"))
            }
        }
    }

    /// The allocated and the requested size, and the memory (KiB). `ReqMem` is not read: it has values that stand for none.
    fn sizes(&self, row: &Row<'_>, changes: &mut Vec<Rule>) -> Result<(Size, Size, Option<u64>), Problem> {
        let columns = &self.columns;
        let tres = |at: Option<usize>| {
            let text = row.get(at);
            Tres::parse(text).ok_or_else(|| row.problem(at, "is no list such as cpu=4,mem=8G,node=1"))
        };
        let (allocated, requested) = (tres(columns.allocated)?, tres(columns.requested)?);
        let count = |at: Option<usize>| match row.get(at) {
            "" => Ok(None),
            text => cells::count(text).map(Some).map_err(|reason| row.problem(at, reason)),
        };
        let cpus = [count(columns.cpus[0])?, count(columns.cpus[1])?, allocated.cpus];
        let nodes = [count(columns.nodes[0])?, count(columns.nodes[1])?, allocated.nodes];
        let (cpus, nodes) = (chosen(cpus), chosen(nodes));
        if cpus.1 || nodes.1 {
            changes.push(Rule::SizesDiffer);
        }
        Ok((
            Size { cpus: cpus.0, nodes: nodes.0, gpus: allocated.gpus },
            Size {
                cpus: count(columns.requested_cpus)?.or(requested.cpus),
                nodes: count(columns.requested_nodes)?.or(requested.nodes),
                gpus: requested.gpus,
            },
            allocated.memory_kib.or(requested.memory_kib),
        ))
    }

    fn energy_j(&self, row: &Row<'_>) -> Result<Option<f64>, Problem> {
        let at = self.columns.energy_j;
        match row.get(at) {
            "" => Ok(None),
            text => cells::energy_j(text).ok_or_else(|| row.problem(at, "is no energy in joules")),
        }
    }
}

/// The first size that is stated, a positive one if there is one; and whether another positive one differs.
fn chosen(stated: [Option<u32>; 3]) -> (Option<u32>, bool) {
    let positive = || stated.into_iter().flatten().filter(|count| *count > 0);
    let first = positive().next();
    (first.or(stated.into_iter().flatten().next()), positive().any(|count| Some(count) != first))
}

#[cfg(test)]
mod tests;
