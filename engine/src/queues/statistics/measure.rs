//! Computes the summary of a run from its sums.
use super::summary::QueueSummary;
use super::tally::Tally;
use crate::queues::kernel::arrivals::Arrivals;
use crate::queues::kernel::policy::QueuePolicy;
use crate::queues::kernel::servers::State;
use crate::queues::kernel::simulation::Simulation;

/// The input of a summary besides the run.
#[derive(Debug, Clone)]
pub(in crate::queues) struct Measurement {
    /// Groups of servers, for their utilizations.
    pub(in crate::queues) groups: Vec<Vec<usize>>,
    /// Whether the energy per job includes servers without a job.
    pub(in crate::queues) idle_counts: bool,
    /// Offered load; `None` if the servers have a rate for each class.
    pub(in crate::queues) offered_load: Option<f64>,
}

/// The readings of the meter at an instant.
#[derive(Debug, Clone)]
pub(super) struct Readings {
    now_s: f64,
    energies_j: [f64; 4],
    /// Seconds in each state by server.
    state_s: Vec<[f64; 4]>,
    in_system_s: f64,
    waiting_s: f64,
    spent_s: f64,
    completed: u64,
}

/// The states of a server, in the order of readings.
const STATES: [State; 4] = [State::Free, State::Busy, State::Asleep, State::Off];

impl Readings {
    /// The present readings.
    pub(super) fn of<A: Arrivals, P: QueuePolicy>(simulation: &mut Simulation<A, P>) -> Readings {
        simulation.settle();
        let servers = simulation.servers();
        Readings {
            now_s: simulation.now_s(),
            energies_j: STATES.map(|state| servers.settled_energy_j(state)),
            state_s: (0..servers.len()).map(|j| STATES.map(|state| servers.in_state_s(j, state))).collect(),
            in_system_s: simulation.in_system_s(),
            waiting_s: simulation.waiting_s(),
            spent_s: simulation.spent_s(),
            completed: simulation.completed_count(),
        }
    }

    /// Energies of busy servers and of the others since these readings (J).
    pub(super) fn energies_since<A: Arrivals, P: QueuePolicy>(&self, simulation: &mut Simulation<A, P>) -> (f64, f64) {
        simulation.settle();
        let since = |state: State| simulation.servers().settled_energy_j(state) - self.energies_j[state as usize];
        (since(State::Busy), since(State::Free) + since(State::Asleep) + since(State::Off))
    }
}

impl Measurement {
    /// The summary of the time since `start`; `tally`: the jobs completed in it, at least one.
    pub(super) fn summarize<A: Arrivals, P: QueuePolicy>(
        &self,
        start: &Readings,
        simulation: &mut Simulation<A, P>,
        tally: &Tally,
    ) -> QueueSummary {
        let (busy_j, idle_j) = start.energies_since(simulation);
        let end = Readings::of(simulation);
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
        // Jobs in the system at the begin or end of the measured time count with their time inside of it.
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
            class_jobs_left_count: simulation.in_system_count().to_vec(),
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
