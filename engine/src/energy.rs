//! Energy of a run, split at given instants: enough to weigh it afterwards by any number of signals that are constant or
//! linear between these instants. The split adds no event to the simulation and changes no result.

use std::sync::Arc;

use crate::error::SimError;
use crate::limits::list_bytes;
use crate::signal::Edges;
use crate::summary::Outcome;
use crate::workload::Job;

/// Greatest number of intervals of one run.
const CELLS_MAX: usize = 10_000_000;

/// Memory of a cell (bytes): in a list that grows, and in the lists of a number for each cell that are made at the end.
const CELL_BYTES: usize = 2 * size_of::<Cell>() + 2 * size_of::<Energy>() + 3 * size_of::<f64>();

/// Energy in an interval.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Energy {
    /// The integral of the power (J).
    pub energy_j: f64,
    /// The integral of the power times the time since the begin of the interval (J s).
    pub moment_js: f64,
}

impl Energy {
    /// Adds a constant power from `offset_s` after the begin of the interval, for `dt_s`.
    #[inline]
    fn add(&mut self, offset_s: f64, dt_s: f64, power_w: f64) {
        let energy_j = power_w * dt_s;
        self.energy_j += energy_j;
        self.moment_js += energy_j * (offset_s + 0.5 * dt_s);
    }
}

/// An interval between two neighbouring edges, or between an edge and an end of the run.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Cell {
    /// Begin (s, simulated time).
    pub from_s: f64,
    /// End (s).
    pub to_s: f64,
    /// Energy of the machine.
    pub machine: Energy,
    /// The part of it that the idle machine draws, too, after the last submission: how long that lasts depends on the policy.
    pub idle_after: Energy,
    /// Energy of the procs of jobs from start to end, each job with its mean power.
    pub jobs: Energy,
    /// Energy of the jobs if each had started at its submission, with the same power and duration.
    pub at_once: Energy,
}

/// The energy of a run in the intervals between edges. The simulation fills the cells.
#[derive(Debug, Clone)]
pub struct EnergySplit {
    edges: Arc<dyn Edges>,
    /// Intervals from the first submission to the last completion, without a gap.
    pub cells: Vec<Cell>,
}

impl EnergySplit {
    /// A split at these edges, without cells yet.
    pub fn new(edges: Arc<dyn Edges>) -> EnergySplit {
        EnergySplit { edges, cells: Vec::new() }
    }

    /// A splitter of a run that begins at an instant (s). Its cells and what is made of them have at most this memory.
    pub(crate) fn splitter(&self, now_s: f64, idle: Idle, max_bytes: usize) -> Splitter {
        let cells_max = CELLS_MAX.min(max_bytes / CELL_BYTES);
        let mut splitter =
            Splitter { edges: self.edges.clone(), cells: Vec::new(), cells_max, max_bytes, next_s: now_s, idle };
        splitter.open(now_s);
        splitter
    }

    /// Takes the cells of a run and adds the energy of its jobs.
    pub(crate) fn finish(&mut self, splitter: Splitter, jobs: &[Job], outcomes: &[Outcome]) -> Result<(), SimError> {
        if splitter.cells.len() > splitter.cells_max && splitter.cells_max < CELLS_MAX {
            return Err(SimError::MemoryLimit(splitter.max_bytes));
        }
        if splitter.cells.len() > CELLS_MAX {
            return Err(SimError::Invalid(format!(
                "the signals change more than {CELLS_MAX} times during the run; use signals with longer steps"
            )));
        }
        let mut cells = splitter.cells;
        let (mut scheduled, mut at_once) = (JobEnergy::new(&cells), JobEnergy::new(&cells));
        for (job, outcome) in jobs.iter().zip(outcomes) {
            let held_s = outcome.finish_s - outcome.start_s;
            if held_s > 0.0 {
                let power_w = outcome.energy_j / held_s;
                scheduled.add(outcome.start_s, outcome.finish_s, power_w);
                at_once.add(job.submit_s, job.submit_s + held_s, power_w);
            }
        }
        let (scheduled, at_once) = (scheduled.finish(), at_once.finish());
        for ((cell, jobs), at_once) in cells.iter_mut().zip(scheduled).zip(at_once) {
            (cell.jobs, cell.at_once) = (jobs, at_once);
        }
        self.cells = cells;
        Ok(())
    }
}

/// The idle machine of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Idle {
    /// Its power (W).
    pub(crate) power_w: f64,
    /// The last submission (s).
    pub(crate) last_submit_s: f64,
}

/// Splits the machine's energy while a run goes on.
#[derive(Debug, Clone)]
pub(crate) struct Splitter {
    edges: Arc<dyn Edges>,
    cells: Vec<Cell>,
    cells_max: usize,
    max_bytes: usize,
    /// The end of the last cell unless the run ends before.
    next_s: f64,
    idle: Idle,
}

impl Splitter {
    fn open(&mut self, at_s: f64) {
        self.next_s = self.edges.next_after(at_s);
        self.cells.push(Cell { from_s: at_s, to_s: at_s, ..Cell::default() });
    }

    /// Adds an interval of constant power; intervals follow one another without a gap.
    #[inline]
    pub(crate) fn add(&mut self, mut from_s: f64, to_s: f64, power_w: f64) {
        while self.next_s < to_s && self.cells.len() <= self.cells_max {
            let edge_s = self.next_s;
            self.put(from_s, edge_s, power_w);
            self.open(edge_s);
            from_s = edge_s;
        }
        self.put(from_s, to_s, power_w);
    }

    #[inline]
    fn put(&mut self, from_s: f64, to_s: f64, power_w: f64) {
        let Some(cell) = self.cells.last_mut() else { return };
        cell.machine.add(from_s - cell.from_s, to_s - from_s, power_w);
        cell.to_s = to_s;
        let after_s = from_s.max(self.idle.last_submit_s);
        if to_s > after_s {
            cell.idle_after.add(after_s - cell.from_s, to_s - after_s, power_w.min(self.idle.power_w));
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        list_bytes(&self.cells).max(self.cells.len() * CELL_BYTES)
    }
}

/// The energy of jobs by cell. A job costs two look-ups, however many cells it lasts: powers that last for whole cells
/// are kept as changes from cell to cell.
struct JobEnergy<'c> {
    cells: &'c [Cell],
    energies: Vec<Energy>,
    changes_w: Vec<f64>,
    /// The cell in which the last job began: most jobs begin near it.
    near: usize,
}

impl<'c> JobEnergy<'c> {
    fn new(cells: &'c [Cell]) -> JobEnergy<'c> {
        let changes_w = vec![0.0; cells.len()];
        JobEnergy { cells, energies: vec![Energy::default(); cells.len()], changes_w, near: 0 }
    }

    /// Adds a job that runs within the span of the cells.
    fn add(&mut self, from_s: f64, to_s: f64, power_w: f64) {
        let first = self.find(from_s, self.near);
        let last = self.find(to_s, first);
        self.near = first;
        if first == last {
            self.put(first, from_s, to_s, power_w);
            return;
        }
        self.put(first, from_s, self.cells[first].to_s, power_w);
        self.changes_w[first + 1] += power_w;
        self.changes_w[last] -= power_w;
        self.put(last, self.cells[last].from_s, to_s, power_w);
    }

    /// The cell that holds an instant, searched in growing steps from a near one.
    fn find(&self, at_s: f64, near: usize) -> usize {
        let begins = |cell: usize| self.cells[cell].from_s <= at_s;
        let (mut low, mut high, mut step) = (near, near + 1, 1);
        while low > 0 && !begins(low) {
            high = low;
            low = low.saturating_sub(step);
            step *= 2;
        }
        while high < self.cells.len() && begins(high) {
            low = high;
            high += step;
            step *= 2;
        }
        let between = &self.cells[low..high.min(self.cells.len())];
        low + between.partition_point(|cell| cell.from_s <= at_s).saturating_sub(1)
    }

    fn put(&mut self, at: usize, from_s: f64, to_s: f64, power_w: f64) {
        self.energies[at].add(from_s - self.cells[at].from_s, to_s - from_s, power_w);
    }

    fn finish(mut self) -> Vec<Energy> {
        let mut power_w = 0.0;
        for at in 0..self.cells.len() {
            power_w += self.changes_w[at];
            let Cell { from_s, to_s, .. } = self.cells[at];
            self.put(at, from_s, to_s, power_w);
        }
        self.energies
    }
}
