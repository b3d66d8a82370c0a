//! A simulated schedule as files of Batsim's and as a log: for evalys and other tools of Batsim, and for any reader of the
//! Standard Workload Format.
//!
//! Times have the origin of the workload's times. Where a simulation gives no value for a column of Batsim's files, the cell
//! is empty or null.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use powersweep_dataset::lanes::Instant;
use powersweep_dataset::partial::Partial;
use powersweep_dataset::writing::{cannot_write, refuse_existing, write_whole};
use powersweep_dataset::{Error, failure};
use powersweep_engine::spec::{Role, Value};
use powersweep_engine::summary::Summary;
use powersweep_engine::{JobRecord, SeriesPoint, SimSpec};
use powersweep_experiments::TaskSpec;
use serde_json::{Value as Json, json};

/// A simulated schedule.
pub(crate) struct Schedule<'a> {
    /// The task.
    pub task: &'a TaskSpec,
    /// Calendar time of its second 0 (s since 1970 UTC), if it is known.
    pub unix_start_s: Option<i64>,
    /// Its metrics.
    pub summary: &'a Summary,
    /// Its jobs, with their nodes.
    pub jobs: &'a [JobRecord],
    /// The series of the machine over time.
    pub series: &'a [SeriesPoint],
    /// The command that simulates the task again.
    pub command: &'a str,
}

/// A spec that also records the nodes of each job and the machine over time; the schedule does not change.
pub(crate) fn observed(sim: &SimSpec) -> SimSpec {
    let mut sim = sim.clone();
    let statistics = sim.choice_mut(Role::Statistics);
    for name in ["node_lists", "watch_machine"] {
        statistics.set(name, Value::Bool(true)).expect("both are flags of the statistics");
    }
    sim
}

/// Writes the files into a new folder.
pub(crate) fn write(schedule: &Schedule<'_>, folder: &Path) -> Result<(), Error> {
    refuse_existing(folder)?;
    let partial = Partial::folder(folder).map_err(|error| cannot_write(folder, &error))?;
    let machine = Machine::of(schedule);
    let files = [
        ("jobs.csv", schedule.jobs()),
        ("schedule.json", format!("{:#}\n", schedule.summary(&machine))),
        ("machine_states.csv", machine.states()),
        ("consumed_energy.csv", schedule.energy(&machine)),
        ("schedule.swf", schedule.log()),
    ];
    for (name, text) in files {
        write_whole(Some(&partial.path().join(name)), text.as_bytes())?;
    }
    refuse_existing(folder)?;
    partial.publish(folder).map_err(|error| cannot_write(folder, &error))
}

/// Why there is no schedule of jobs.
pub(crate) fn without_jobs() -> Error {
    failure!(Usage, "--batsim needs rigid jobs: a model of queues has no schedule of jobs")
}

impl Schedule<'_> {
    /// `jobs.csv` of Batsim 5.
    fn jobs(&self) -> String {
        let mut text =
            "job_id,workload_name,profile,submission_time,requested_number_of_resources,requested_time,success,\
                        final_state,starting_time,execution_time,finish_time,waiting_time,turnaround_time,stretch,\
                        allocated_resources,consumed_energy,metadata\n"
                .to_owned();
        for job in self.jobs {
            let (wait_s, execution_s) = (job.start_s - job.submit_s, job.finish_s - job.start_s);
            let turnaround_s = job.finish_s - job.submit_s;
            let (success, state) = match job.killed {
                true => (0, "COMPLETED_WALLTIME_REACHED"),
                false => (1, "COMPLETED_SUCCESSFULLY"),
            };
            let nodes = job.node_list.as_deref().unwrap_or_default();
            let _ = writeln!(
                text,
                "{id},{workload},{id},{},{},{},{success},{state},{},{execution_s},{},{wait_s},{turnaround_s},{},{nodes},{},",
                job.submit_s,
                job.procs,
                job.requested_s,
                job.start_s,
                job.finish_s,
                stretch(turnaround_s, execution_s),
                job.energy_j,
                id = job.job_id,
                workload = self.task.workload,
            );
        }
        text
    }

    /// `schedule.json` of Batsim 5, in its order: the keys are sorted.
    fn summary(&self, machine: &Machine) -> Json {
        let summary = self.summary;
        let stretches = self.jobs.iter().map(|job| stretch(job.finish_s - job.submit_s, job.finish_s - job.start_s));
        let (most, sum) = stretches.fold((0.0_f64, 0.0), |(most, sum), value| (most.max(value), sum + value));
        let jobs = self.jobs.len() as u64;
        let rejected = summary.dropped_wide_count + summary.dropped_over_cap_count;
        let killed = self.jobs.iter().filter(|job| job.killed).count() as u64;
        let [computing, idle, sleeping] = machine.times();
        json!({
            "batsim_version": format!("none: powersweep {}", env!("CARGO_PKG_VERSION")),
            "consumed_joules": summary.energy_total_j,
            "makespan": summary.makespan_s,
            "max_slowdown": most,
            "max_turnaround_time": summary.turnaround_s_max,
            "max_waiting_time": summary.wait_s_max,
            "mean_slowdown": sum / jobs as f64,
            "mean_turnaround_time": summary.turnaround_s_mean,
            "mean_waiting_time": summary.wait_s_mean,
            "nb_computing_machines": summary.machine_procs,
            "nb_grouped_switches": null,
            "nb_jobs": jobs + rejected,
            "nb_jobs_finished": jobs,
            "nb_jobs_killed": killed,
            "nb_jobs_rejected": rejected,
            "nb_jobs_success": jobs - killed,
            "nb_machine_switches": null,
            "success_rate": (jobs - killed) as f64 / (jobs + rejected) as f64,
            "time_computing": computing,
            "time_idle": idle,
            "time_sleeping": sleeping,
            "time_switching_off": null,
            "time_switching_on": null,
            "time_unavailable": 0,
        })
    }

    /// `consumed_energy.csv`: the energy since the first instant, at each end and start of jobs and where else the machine
    /// changes.
    fn energy(&self, machine: &Machine) -> String {
        let starts = instants(self.jobs.iter().map(|job| job.start_s));
        let ends = instants(self.jobs.iter().map(|job| job.finish_s));
        let mut text = "time,energy,wattmin,epower,event_type\n".to_owned();
        let (mut energy_j, mut last): (f64, Option<(f64, f64)>) = (0.0, None);
        for (instant, state) in &machine.0 {
            let mut mean = "NA".to_owned();
            if let Some((since_s, power_w)) = last {
                energy_j += power_w * (instant.0 - since_s);
                mean = power_w.to_string();
            }
            last = Some((instant.0, state.power_w));
            let events: &[&str] = match (ends.contains(instant), starts.contains(instant)) {
                (true, true) => &["e", "s"],
                (true, false) => &["e"],
                (false, true) => &["s"],
                (false, false) => &["p"],
            };
            for event in events {
                let _ = writeln!(text, "{},{energy_j},NA,{mean},{event}", instant.0);
            }
        }
        text
    }

    /// The schedule in the Standard Workload Format.
    fn log(&self) -> String {
        let line = |text: &str| text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>();
        let mut header = vec![
            ("Version".to_owned(), "2.2".to_owned()),
            ("Computer".to_owned(), "simulated".to_owned()),
            ("MaxJobs".to_owned(), self.jobs.len().to_string()),
            ("MaxRecords".to_owned(), self.jobs.len().to_string()),
            ("MaxProcs".to_owned(), self.summary.machine_procs.to_string()),
            ("MaxNodes".to_owned(), self.summary.machine_procs.to_string()),
            (
                "Note".to_owned(),
                format!("A schedule simulated by powersweep {}, not a record of a machine", env!("CARGO_PKG_VERSION")),
            ),
            ("Note".to_owned(), format!("Task {} of {}", self.task.task_id, self.task.experiment)),
            ("Note".to_owned(), format!("Command: {}", self.command)),
        ];
        header.extend(self.unix_start_s.map(|start_s| ("UnixStartTime".to_owned(), start_s.to_string())));
        if let (Some(log), Some(digest)) = (&self.task.log, self.task.digest) {
            header.push(("Note".to_owned(), format!("The jobs are those of {log}, SHA-256 {digest}")));
        }
        let mut text = String::new();
        for (key, value) in header {
            let _ = writeln!(text, "; {key}: {}", line(&value));
        }
        for job in self.jobs {
            let (wait_s, run_s) = (job.start_s - job.submit_s, job.finish_s - job.start_s);
            // 1: completed; 5: cancelled, here at the requested time.
            let status = if job.killed { 5 } else { 1 };
            let _ = writeln!(
                text,
                "{} {} {wait_s} {run_s} {procs} -1 -1 {procs} {} -1 {status} -1 -1 -1 -1 -1 -1 -1",
                job.job_id,
                job.submit_s,
                job.requested_s,
                procs = job.procs,
            );
        }
        text
    }
}

/// Turnaround over execution time, Batsim's slowdown; 1 for a job of no length that did not wait.
fn stretch(turnaround_s: f64, execution_s: f64) -> f64 {
    if turnaround_s == execution_s { 1.0 } else { turnaround_s / execution_s }
}

fn instants(times: impl Iterator<Item = f64>) -> BTreeSet<Instant> {
    times.map(Instant).collect()
}

/// The machine from an instant on.
#[derive(Debug, Clone, Copy, Default)]
struct State {
    power_w: f64,
    idle: f64,
    computing: f64,
    suspended: f64,
    sleeping: f64,
}

/// The machine at each instant at which it changes.
struct Machine(BTreeMap<Instant, State>);

impl Machine {
    fn of(schedule: &Schedule<'_>) -> Machine {
        let mut changes: BTreeMap<Instant, Vec<&SeriesPoint>> = BTreeMap::new();
        for point in schedule.series {
            if ["power_w", "idle_procs", "suspended_procs", "procs_by_gear"].contains(&point.series) {
                changes.entry(Instant(point.x)).or_default().push(point);
            }
        }
        // Also instants at which one job takes the processors of another one.
        for time in schedule.jobs.iter().flat_map(|job| [job.start_s, job.finish_s]) {
            changes.entry(Instant(time)).or_default();
        }
        let installed = f64::from(schedule.summary.machine_procs);
        let (mut state, mut by_gear) = (State::default(), BTreeMap::new());
        let states = changes.into_iter().map(|(instant, points)| {
            for point in points {
                match point.series {
                    "power_w" => state.power_w = point.value,
                    "idle_procs" => state.idle = point.value,
                    "suspended_procs" => state.suspended = point.value,
                    _ => {
                        by_gear.insert(point.level, point.value);
                    }
                }
            }
            state.computing = by_gear.values().sum();
            state.sleeping = installed - state.idle - state.suspended - state.computing;
            (instant, state)
        });
        Machine(states.collect())
    }

    /// `machine_states.csv`. Processors that switch on or off count as sleeping; processors of suspended jobs count as idle.
    fn states(&self) -> String {
        let mut text = "time,nb_sleeping,nb_switching_on,nb_switching_off,nb_idle,nb_computing\n".to_owned();
        for (instant, state) in &self.0 {
            let _ = writeln!(
                text,
                "{},{},0,0,{},{}",
                instant.0,
                state.sleeping,
                state.idle + state.suspended,
                state.computing
            );
        }
        text
    }

    /// Time of all processors that compute, idle and sleep (s).
    fn times(&self) -> [f64; 3] {
        let (mut computing, mut idle, mut sleeping) = (0.0, 0.0, 0.0);
        for ((since, state), (until, _)) in self.0.iter().zip(self.0.iter().skip(1)) {
            let dt = until.0 - since.0;
            computing += state.computing * dt;
            idle += (state.idle + state.suspended) * dt;
            sleeping += state.sleeping * dt;
        }
        [computing, idle, sleeping]
    }
}
