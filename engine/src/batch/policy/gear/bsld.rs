//! The lowest gear that keeps the predicted bounded slowdown below a threshold.
use super::rule::{Candidate, Gears, HeadGear, TimeFactors};
use crate::batch::platform::Machine;
use crate::batch::policy::cap::acting::acting;
use crate::spec::{Component, Default, Param, Role, SimSpec, Type};

/// Description of the rule.
pub const COMPONENT: Component = Component {
    role: Role::GearRule,
    name: "bsld",
    version: 2,
    source: "Etinski et al. 2010, Figures 1 and 2, eq. 2",
    doc: "The lowest gear whose predicted bounded slowdown stays below a threshold, while few jobs wait.",
    reads: "The submission and the estimate of a job, its run time at each gear, and the number of other waiting \
            jobs.",
    guarantees: "A gear below the top one is chosen only if the slowdown that is predicted from the estimate is \
                 below `bsld_threshold` (or equal to it, with `threshold_inclusive`), and at most `wq_threshold` \
                 other jobs wait. The measured slowdown has no bound: jobs that are shorter than their estimates, \
                 or start later than planned, exceed the threshold. Under `backfill` = \"conservative\" the gear is \
                 chosen with each reservation, by the jobs that wait then, and not again at the start.",
    params: &[
        Param {
            name: "bsld_threshold",
            ty: Type::Real { min: 1.0, max: f64::MAX, min_allowed: true, unlimited: true },
            unit: "",
            default: Default::Required,
            doc: "A gear is admissible if the predicted bounded slowdown at it is below this (BSLDthreshold).",
        },
        Param {
            name: "wq_threshold",
            ty: Type::Real { min: 0.0, max: f64::MAX, min_allowed: true, unlimited: true },
            unit: "jobs",
            default: Default::Real(f64::INFINITY),
            doc: "Gears are lowered only while at most this many other jobs wait (WQthreshold), when the gear is chosen; \
                  `unlimited`: always.",
        },
        Param {
            name: "gear_bsld_tau_s",
            ty: Type::Real { min: 0.0, max: f64::MAX, min_allowed: false, unlimited: false },
            unit: "s",
            default: Default::Real(600.0),
            doc: "Bound of short run times in the predicted bounded slowdown, which is max(1, (start - submission + estimate at \
                  the gear) / max(this, estimate at the top gear)) (Th in eq. 1).",
        },
        Param {
            name: "threshold_inclusive",
            ty: Type::Bool,
            unit: "",
            default: Default::Bool(false),
            doc: "Whether a predicted slowdown equal to the threshold is admissible.",
        },
        super::rule::RESERVATION_INCLUSIVE,
        Param {
            name: "head_gear",
            ty: Type::OneOf(&["renew", "until-early-end", "fixed"]),
            unit: "",
            default: Default::Text("renew"),
            doc: "The gear of the reserved head, under `backfill` = \"easy\" and \"kept-head\": chosen again at each pass, \
                  kept until a job ends early, or fixed with the first reservation.",
        },
    ],
    problems,
    ..Component::BATCH
};

/// The problem of a kept gear of the head under a power cap.
fn problems(spec: &SimSpec) -> Vec<String> {
    let head_gear = spec.choice(Role::GearRule).text("head_gear");
    let problem = |cap: &str| {
        format!(
            "`head_gear` = \"{head_gear}\" keeps a gear that was chosen for a reservation, and under `power_cap` = \"{cap}\" \
             the head may have to start at another gear or instant: choose \"renew\""
        )
    };
    acting(spec).filter(|_| head_gear != "renew").map(problem).into_iter().collect()
}

/// The rule `bsld` (Etinski et al. 2010, Figures 1 and 2). It departs from the paper's text where the paper's numbers
/// require it: a job that overtakes at the top gear need not meet the threshold, and a head for which no gear meets the
/// threshold starts at the top gear.
#[derive(Debug, Clone)]
pub(crate) struct Bsld {
    factors: TimeFactors,
    /// The top gear.
    top: usize,
    threshold: f64,
    threshold_inclusive: bool,
    reservation_inclusive: bool,
    /// Greatest number of other waiting jobs at which gears are lowered.
    others_max: f64,
    tau_s: f64,
    head_gear: HeadGear,
}

impl Bsld {
    /// The gears to try, in this order.
    #[inline]
    fn choice(&self, others: usize) -> std::ops::RangeInclusive<usize> {
        if others as f64 > self.others_max { self.top..=self.top } else { 0..=self.top }
    }

    /// Whether the predicted bounded slowdown (eq. 2) stays below the threshold for a start at `start_s` and a run time
    /// of `scaled_s` at the gear.
    #[inline]
    fn satisfies(&self, job: Candidate, start_s: f64, scaled_s: f64) -> bool {
        let bsld = (((start_s - job.submit_s) + scaled_s) / self.tau_s.max(job.estimate_s)).max(1.0);
        bsld < self.threshold || (self.threshold_inclusive && bsld == self.threshold)
    }
}

impl Gears for Bsld {
    fn of(spec: &SimSpec, machine: &Machine) -> Option<Bsld> {
        let choice = spec.choice(Role::GearRule);
        Some(Bsld {
            factors: TimeFactors::new(machine),
            top: machine.gears.len() - 1,
            threshold: choice.real("bsld_threshold"),
            threshold_inclusive: choice.bool("threshold_inclusive"),
            reservation_inclusive: choice.bool("reservation_inclusive"),
            others_max: choice.real("wq_threshold"),
            tau_s: choice.real("gear_bsld_tau_s"),
            head_gear: match choice.text("head_gear") {
                "until-early-end" => HeadGear::UntilEarlyEnd,
                "fixed" => HeadGear::Fixed,
                _ => HeadGear::Renew,
            },
        })
    }

    #[inline]
    fn at(&self, job: Candidate, start_s: f64, others: usize) -> u8 {
        let factors = self.factors.of(job);
        let mut choice = self.choice(others);
        choice.find(|&gear| self.satisfies(job, start_s, job.estimate_s * factors[gear])).unwrap_or(self.top) as u8
    }

    #[inline]
    fn overtaking(
        &self,
        job: Candidate,
        now_s: f64,
        others: usize,
        until_s: f64,
        on_extra: bool,
    ) -> Option<(u8, bool)> {
        let (top, factors) = (self.top, self.factors.of(job));
        // The job is shortest at the top gear: if it ends too late there, no gear is in time.
        if !on_extra && !self.in_time(now_s + job.estimate_s * factors[top], until_s) {
            return None;
        }
        for gear in self.choice(others) {
            let scaled_s = job.estimate_s * factors[gear];
            let in_time = self.in_time(now_s + scaled_s, until_s);
            if (in_time || on_extra) && (gear == top || self.satisfies(job, now_s, scaled_s)) {
                return Some((gear as u8, !in_time));
            }
        }
        None
    }

    #[inline]
    fn lowers(&self, job: Candidate, now_s: f64, others: usize) -> bool {
        let factors = self.factors.of(job);
        let mut choice = self.choice(others);
        choice.any(|gear| gear < self.top && self.satisfies(job, now_s, job.estimate_s * factors[gear]))
    }

    /// A second late, because the sum is rounded: [`Bsld::satisfies`] decides.
    #[inline]
    fn lowered_end_s(&self, job: Candidate) -> f64 {
        job.submit_s + self.threshold * self.tau_s.max(job.estimate_s) * (1.0 + 1e-9) + 1.0
    }

    #[inline]
    fn reservation_inclusive(&self) -> bool {
        self.reservation_inclusive
    }

    fn reserve(
        &self,
        job: Candidate,
        now_s: f64,
        others: usize,
        mut earliest: impl FnMut(u8, f64, f64) -> Option<f64>,
    ) -> Option<(u8, f64, f64)> {
        let factors = self.factors.of(job);
        for gear in self.choice(others) {
            let duration_s = job.estimate_s * factors[gear];
            // A later start has a greater slowdown.
            if gear < self.top && !self.satisfies(job, now_s, duration_s) {
                continue;
            }
            let latest_s = if gear < self.top { self.lowered_end_s(job) - duration_s } else { f64::INFINITY };
            if let Some(start_s) = earliest(gear as u8, duration_s, latest_s)
                && (gear == self.top || self.satisfies(job, start_s, duration_s))
            {
                return Some((gear as u8, start_s, duration_s));
            }
        }
        None
    }

    #[inline]
    fn head_gear(&self) -> HeadGear {
        self.head_gear
    }
}
