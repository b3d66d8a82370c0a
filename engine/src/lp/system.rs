//! A heterogeneous system: the rate and power of each class of jobs on each machine.
use super::LpError;

/// Greatest number of classes times machines: the programs are dense.
const CELLS_MAX: usize = 1 << 20;

/// I classes of jobs, J machines; matrices are row-major, class by class (Al-Daoud et al. 2011, section 2).
#[derive(Debug, Clone, PartialEq)]
pub struct System {
    arrivals_per_s: Vec<f64>,
    rates_per_s: Vec<f64>,
    busy_w: Vec<f64>,
    idle_w: Vec<f64>,
}

impl System {
    /// A system from alpha (jobs a second of each class), mu (jobs a second, I x J, 0 where a machine cannot execute a
    /// class), M (watts while executing, I x J) and B (watts of each machine at any other time).
    ///
    /// # Errors
    /// [`LpError::System`]: lengths that do not fit, numbers that are negative or not finite, no arrivals, or a class that
    /// no machine can execute.
    pub fn new(
        arrivals_per_s: Vec<f64>,
        rates_per_s: Vec<f64>,
        busy_w: Vec<f64>,
        idle_w: Vec<f64>,
    ) -> Result<System, LpError> {
        let wrong = |what: String| Err(LpError::System(what));
        let (classes, machines) = (arrivals_per_s.len(), idle_w.len());
        let cells = classes.saturating_mul(machines);
        if cells == 0 || cells > CELLS_MAX {
            return wrong(format!("{classes} classes on {machines} machines are not from 1 to {CELLS_MAX} pairs"));
        }
        for (what, matrix) in [("rates", &rates_per_s), ("busy powers", &busy_w)] {
            if matrix.len() != cells {
                let found = matrix.len();
                return wrong(format!("{classes} classes on {machines} machines need {cells} {what}, not {found}"));
            }
        }
        let lists = [&arrivals_per_s, &rates_per_s, &busy_w, &idle_w];
        if let Some(bad) = lists.into_iter().flatten().find(|v| !(v.is_finite() && **v >= 0.0)) {
            return wrong(format!("a rate or power of {bad} is not possible"));
        }
        if arrivals_per_s.iter().all(|rate| *rate == 0.0) {
            return wrong("no class has arrivals".to_owned());
        }
        let system = System { arrivals_per_s, rates_per_s, busy_w, idle_w };
        let able = |class: usize| (0..machines).any(|machine| system.rate_per_s(class, machine) > 0.0);
        match (0..classes).find(|class| !able(*class)) {
            Some(class) => wrong(format!("class {} cannot be executed by any machine", class + 1)),
            None => Ok(system),
        }
    }

    /// Number of classes I.
    pub fn classes(&self) -> usize {
        self.arrivals_per_s.len()
    }

    /// Number of machines J.
    pub fn machines(&self) -> usize {
        self.idle_w.len()
    }

    /// alpha: arrivals a second of each class.
    pub fn arrivals_per_s(&self) -> &[f64] {
        &self.arrivals_per_s
    }

    /// mu_ij: jobs a second of a class on a machine; 0 if it cannot execute them.
    pub fn rate_per_s(&self, class: usize, machine: usize) -> f64 {
        self.rates_per_s[class * self.machines() + machine]
    }

    /// M_ij: power of a machine while it executes a class (W).
    pub fn busy_w(&self, class: usize, machine: usize) -> f64 {
        self.busy_w[class * self.machines() + machine]
    }

    /// B: power of each machine that executes nothing (W).
    pub fn idle_w(&self) -> &[f64] {
        &self.idle_w
    }

    /// Mean power (W) of machines that spend these shares of their time on the classes: the objective of LP (2).
    pub fn power_w(&self, shares: &[f64]) -> f64 {
        let machine_w = |machine: usize| {
            let share = |class: usize| shares[class * self.machines() + machine];
            let busy: f64 = (0..self.classes()).map(|class| share(class) * self.busy_w(class, machine)).sum();
            let idle = 1.0 - (0..self.classes()).map(share).sum::<f64>();
            busy + idle * self.idle_w[machine]
        };
        (0..self.machines()).map(machine_w).sum()
    }

    /// Groups of machines with equal rates and powers, in order of the first machine of each group.
    pub(super) fn groups(&self) -> Vec<Vec<usize>> {
        let equal = |a: usize, b: usize| {
            self.idle_w[a] == self.idle_w[b]
                && (0..self.classes()).all(|class| {
                    self.rate_per_s(class, a) == self.rate_per_s(class, b)
                        && self.busy_w(class, a) == self.busy_w(class, b)
                })
        };
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for machine in 0..self.machines() {
            match groups.iter_mut().find(|group| equal(group[0], machine)) {
                Some(group) => group.push(machine),
                None => groups.push(vec![machine]),
            }
        }
        groups
    }
}
