//! From sums to the summary of a run.
use super::summary::QueueSummary;
use super::tally::Tally;
use crate::queues::kernel::arrivals::Arrivals;
use crate::queues::kernel::policy::QueuePolicy;
use crate::queues::kernel::servers::State;
use crate::queues::kernel::simulation::Simulation;

/// What a summary needs besides the run.
#[derive(Debug, Clone)]
pub(in crate::queues) struct Measurement {
    /// Groups of servers that utilizations are told of.
    pub(in crate::queues) groups: Vec<Vec<usize>>,
    /// Whether servers without a job count in the energy of a job.
    pub(in crate::queues) idle_counts: bool,
    /// Offered load, if the servers have one rate for all jobs.
    pub(in crate::queues) offered_load: Option<f64>,
}

/// The meter's readings when measuring begins.
#[derive(Debug, Clone)]
pub(super) struct Start {
    now_s: f64,
    energies_j: [f64; 4],
    /// Seconds in each state by server.
    state_s: Vec<[f64; 4]>,
    in_system_s: f64,
    waiting_s: f64,
    spent_s: f64,
    completed: u64,
}

/// States of a server, in the order of readings.
const STATES: [State; 4] = [State::Free, State::Busy, State::Asleep, State::Off];

impl Start {
    /// The readings now.
    pub(super) fn of<A: Arrivals, P: QueuePolicy>(simulation: &mut Simulation<A, P>) -> Start {
        simulation.settle();
        let servers = simulation.servers();
        Start {
            now_s: simulation.now_s(),
            energies_j: STATES.map(|state| servers.settled_energy_j(state)),
            state_s: (0..servers.len()).map(|j| STATES.map(|state| servers.in_state_s(j, state))).collect(),
            in_system_s: simulation.in_system_s(),
            waiting_s: simulation.waiting_s(),
            spent_s: simulation.spent_s(),
            completed: simulation.completed_count(),
        }
    }

    /// Energies of busy servers and of the others since then (J).
    pub(super) fn energies_since<A: Arrivals, P: QueuePolicy>(&self, simulation: &mut Simulation<A, P>) -> (f64, f64) {
        simulation.settle();
        let since = |state: State| simulation.servers().settled_energy_j(state) - self.energies_j[state as usize];
        (since(State::Busy), since(State::Free) + since(State::Asleep) + since(State::Off))
    }
}

impl Measurement {
    /// The summary of the time since `start`, in which `tally` was kept. At least one job must have completed.
    pub(super) fn summarize<A: Arrivals, P: QueuePolicy>(
        &self,
        start: &Start,
        simulation: &mut Simulation<A, P>,
        tally: &Tally,
    ) -> QueueSummary {
        let (busy_j, idle_j) = start.energies_since(simulation);
        let end = Start::of(simulation);
        let sums = tally.total();
        let jobs = sums.completed as f64;
        let measured_s = end.now_s - start.now_s;
        let per_s = |sum: f64| (measured_s > 0.0).then(|| sum / measured_s);
        let state_s =
            |server: usize, state: State| end.state_s[server][state as usize] - start.state_s[server][state as usize];
        let servers = simulation.servers().len();
        let all_s = |state: State| (0..servers).map(|j| state_s(j, state)).sum::<f64>();
        let [free_s, busy_s, asleep_s, off_s] = STATES.map(all_s);
        let server_s = servers as f64 * measured_s;
        let energy_j = busy_j + if self.idle_counts { idle_j } else { 0.0 };
        let group_utilization = self.groups.iter().map(|group| {
            group.iter().map(|&j| state_s(j, State::Busy)).sum::<f64>() / (group.len() as f64 * measured_s)
        });
        // The jobs that were or are in the system at an end of the measured time count with what they spend inside it.
        let in_system_s = end.in_system_s - start.in_system_s;
        let spent_s = sums.response_s + end.spent_s - start.spent_s;
        QueueSummary {
            jobs_count: end.completed,
            measured_jobs_count: sums.completed,
            warmup_jobs_count: start.completed,
            events_count: simulation.events_count(),
            machine_procs: servers as u32,
            measured_s,
            wait_s_mean: sums.wait_s / jobs,
            service_s_mean: (sums.response_s - sums.wait_s) / jobs,
            turnaround_s_mean: sums.response_s / jobs,
            waited_count: sums.waited,
            waited_share: sums.waited as f64 / jobs,
            wait_s_mean_of_waited: (sums.waited > 0).then(|| sums.wait_s / sums.waited as f64),
            class_jobs_count: tally.classes.iter().map(|class| class.completed).collect(),
            class_turnaround_s_mean: tally.classes.iter().map(|c| c.response_s / c.completed as f64).collect(),
            class_jobs_left_count: simulation.left_count().to_vec(),
            energy_total_j: energy_j,
            energy_computational_j: busy_j,
            energy_idle_j: idle_j,
            energy_per_job_j: energy_j / jobs,
            energy_per_job_idle_on_j: (busy_j + idle_j) / jobs,
            energy_per_job_idle_off_j: busy_j / jobs,
            power_mean_w: per_s(energy_j),
            offered_load: self.offered_load,
            utilization_installed: per_s(busy_s / servers as f64),
            group_utilization: group_utilization.collect(),
            throughput_jobs_per_h: per_s(3600.0 * jobs),
            queue_length_mean: per_s(end.waiting_s - start.waiting_s),
            idle_proc_h: free_s / 3600.0,
            busy_proc_h: busy_s / 3600.0,
            asleep_proc_h: (asleep_s + off_s) / 3600.0,
            little_residual: (in_system_s - spent_s).abs() / spent_s.max(1.0),
            procs_residual: (free_s + busy_s + asleep_s + off_s - server_s).abs() / server_s.max(1.0),
            ..QueueSummary::default()
        }
    }
}
