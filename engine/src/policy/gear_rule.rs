//! The gear (processor frequency) at which a job starts.
use crate::kernel::{Cluster, JobId, Recorder};
use crate::platform::{Gear, MachineClass};
use crate::registry::{Default, Entry, Param, Part, Slot, Type};

/// Always the top gear.
pub const TOP: Entry = Entry {
    slot: Slot::GearRule,
    name: "top",
    version: 1,
    source: "",
    doc: "Every job runs at the top gear.",
    params: &[],
};
/// The lowest gear that keeps the predicted bounded slowdown below a threshold.
pub const BSLD: Entry = Entry {
    slot: Slot::GearRule,
    name: "bsld",
    version: 1,
    source: "Etinski et al. 2010, Figures 1 and 2, eq. 2",
    doc: "The lowest gear whose predicted bounded slowdown stays below a threshold, while few jobs wait.",
    params: &[
        Param {
            name: "bsld_threshold",
            ty: Type::Real { min: 1.0, max: f64::MAX, min_allowed: true, unlimited: true },
            unit: "",
            default: Default::Required,
            identity: true,
            doc: "A gear is admissible if the predicted bounded slowdown at it is below this (BSLDthreshold).",
        },
        Param {
            name: "wq_threshold",
            ty: Type::Real { min: 0.0, max: f64::MAX, min_allowed: true, unlimited: true },
            unit: "jobs",
            default: Default::Real(f64::INFINITY),
            identity: true,
            doc: "Gears are lowered only while at most this many other jobs wait (WQthreshold); `unlimited`: always.",
        },
        Param {
            name: "gear_bsld_tau_s",
            ty: Type::Real { min: 0.0, max: f64::MAX, min_allowed: false, unlimited: false },
            unit: "s",
            default: Default::Real(600.0),
            identity: true,
            doc: "Bound of short run times in the predicted bounded slowdown (Th in eq. 1).",
        },
        Param {
            name: "threshold_inclusive",
            ty: Type::Bool,
            unit: "",
            default: Default::Bool(false),
            identity: true,
            doc: "Whether a predicted slowdown equal to the threshold is admissible.",
        },
        Param {
            name: "reservation_inclusive",
            ty: Type::Bool,
            unit: "",
            default: Default::Bool(true),
            identity: true,
            doc: "Whether a job may overtake if its estimated end equals the head's reservation.",
        },
        Param {
            name: "head_gear",
            ty: Type::Choice(&["renew", "until-early-end", "fixed"]),
            unit: "",
            default: Default::Text("renew"),
            identity: true,
            doc: "The gear of the reserved head: chosen anew at each pass, kept until a job ends early, or fixed when \
                  the reservation is first made.",
        },
    ],
};

/// When the gear of the reserved head is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeadGear {
    /// Anew at each pass: in effect when it starts.
    Renew,
    /// With the reservation; again once a job has ended before its estimate.
    UntilEarlyEnd,
    /// With the first reservation.
    Fixed,
}

/// What a gear rule knows of a job.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Candidate {
    pub(crate) submit_s: f64,
    pub(crate) estimate_s: f64,
    /// Class of the job, from 0.
    pub(crate) class: u8,
}

impl Candidate {
    pub(crate) fn new<R: Recorder>(cluster: &Cluster<'_, R>, job: JobId) -> Candidate {
        Candidate::estimated(cluster, job, cluster.estimate_s(job))
    }

    /// The same where the job's estimate (s) is at hand.
    #[inline]
    pub(crate) fn estimated<R: Recorder>(cluster: &Cluster<'_, R>, job: JobId, estimate_s: f64) -> Candidate {
        let (submit_s, class) = cluster.submit_and_class(job);
        Candidate { submit_s, estimate_s, class }
    }
}

/// Chooses the gears of starting jobs. `others`: waiting jobs without the job itself.
pub(crate) trait Gears: Clone {
    /// The gear of a job that starts at `start_s`, whatever it delays.
    fn at(&self, job: Candidate, start_s: f64, others: usize) -> u8;

    /// The gear of a job that would overtake now and must end by `until_s`, unless `on_extra` (it fits beside the
    /// reservation however long it runs). With it, whether it ends later than `until_s`. `None`: it may not overtake.
    fn overtaking(&self, job: Candidate, now_s: f64, others: usize, until_s: f64, on_extra: bool)
    -> Option<(u8, bool)>;

    /// Whether an end (s) is in time for a reservation at `until_s`.
    fn in_time(&self, end_s: f64, until_s: f64) -> bool;

    /// Chooses among reservations: `earliest` gives the earliest start at a gear, at which the job is expected to take
    /// so long (s), if there is one. What is chosen is what was asked for last.
    fn reserve(
        &self,
        job: Candidate,
        others: usize,
        earliest: impl FnMut(u8, f64) -> Option<f64>,
    ) -> Option<(u8, f64 /* start */, f64 /* duration */)>;

    /// When the reserved head's gear is chosen.
    fn head_gear(&self) -> HeadGear;
}

/// The rule `top`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Top {
    pub(crate) gear: u8,
}

impl Gears for Top {
    #[inline]
    fn at(&self, _: Candidate, _: f64, _: usize) -> u8 {
        self.gear
    }

    #[inline]
    fn overtaking(&self, job: Candidate, now_s: f64, _: usize, until_s: f64, on_extra: bool) -> Option<(u8, bool)> {
        let late = !self.in_time(now_s + job.estimate_s, until_s);
        (on_extra || !late).then_some((self.gear, late))
    }

    #[inline]
    fn in_time(&self, end_s: f64, until_s: f64) -> bool {
        end_s <= until_s
    }

    fn reserve(
        &self,
        job: Candidate,
        _: usize,
        mut earliest: impl FnMut(u8, f64) -> Option<f64>,
    ) -> Option<(u8, f64, f64)> {
        earliest(self.gear, job.estimate_s).map(|start_s| (self.gear, start_s, job.estimate_s))
    }

    #[inline]
    fn head_gear(&self) -> HeadGear {
        HeadGear::Renew
    }
}

/// The rule `bsld` (Etinski et al. 2010, Figures 1 and 2). Departures from the paper's text, which its numbers demand: a
/// job that overtakes at the top gear need not meet the threshold, and a head that no gear satisfies starts at the top
/// gear.
#[derive(Debug, Clone)]
pub(crate) struct Bsld {
    /// Run time at each gear over that at the top gear, of the first class of jobs.
    factors: Vec<f64>,
    /// The same of the other classes, if they differ.
    more_factors: Vec<Vec<f64>>,
    threshold: f64,
    threshold_inclusive: bool,
    reservation_inclusive: bool,
    /// Others that may wait at most for gears to be lowered.
    others_max: f64,
    tau_s: f64,
    head_gear: HeadGear,
}

impl Bsld {
    pub(crate) fn new(part: &Part, class: &MachineClass) -> Bsld {
        let factors = |gears: &[Gear]| gears.iter().map(|gear| gear.time_factor).collect();
        Bsld {
            factors: factors(&class.gears),
            more_factors: class.more_job_classes.iter().map(|gears| factors(gears)).collect(),
            threshold: part.real("bsld_threshold"),
            threshold_inclusive: part.bool("threshold_inclusive"),
            reservation_inclusive: part.bool("reservation_inclusive"),
            others_max: part.real("wq_threshold"),
            tau_s: part.real("gear_bsld_tau_s"),
            head_gear: match part.text("head_gear") {
                "until-early-end" => HeadGear::UntilEarlyEnd,
                "fixed" => HeadGear::Fixed,
                _ => HeadGear::Renew,
            },
        }
    }

    fn top(&self) -> usize {
        self.factors.len() - 1
    }

    /// The gears to try, lowest first.
    #[inline]
    fn choice(&self, others: usize) -> std::ops::RangeInclusive<usize> {
        let top = self.top();
        if others as f64 > self.others_max { top..=top } else { 0..=top }
    }

    /// Run time of a job at each gear over that at the top gear.
    #[inline(always)]
    fn factors(&self, job: Candidate) -> &[f64] {
        if self.more_factors.is_empty() || job.class == 0 {
            return &self.factors;
        }
        &self.more_factors[usize::from(job.class) - 1]
    }

    /// Whether the bounded slowdown predicted for a start at `start_s` stays below the threshold (eq. 2) if the job takes
    /// `scaled_s` at the gear.
    #[inline]
    fn satisfies(&self, job: Candidate, start_s: f64, scaled_s: f64) -> bool {
        let bsld = (((start_s - job.submit_s) + scaled_s) / self.tau_s.max(job.estimate_s)).max(1.0);
        bsld < self.threshold || (self.threshold_inclusive && bsld == self.threshold)
    }
}

impl Gears for Bsld {
    #[inline]
    fn at(&self, job: Candidate, start_s: f64, others: usize) -> u8 {
        let factors = self.factors(job);
        let mut choice = self.choice(others);
        choice.find(|&gear| self.satisfies(job, start_s, job.estimate_s * factors[gear])).unwrap_or(self.top()) as u8
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
        let (top, factors) = (self.top(), self.factors(job));
        // The top gear is the shortest: if it is too long, all are.
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
    fn in_time(&self, end_s: f64, until_s: f64) -> bool {
        end_s < until_s || (self.reservation_inclusive && end_s == until_s)
    }

    fn reserve(
        &self,
        job: Candidate,
        others: usize,
        mut earliest: impl FnMut(u8, f64) -> Option<f64>,
    ) -> Option<(u8, f64, f64)> {
        let factors = self.factors(job);
        for gear in self.choice(others) {
            let duration_s = job.estimate_s * factors[gear];
            if let Some(start_s) = earliest(gear as u8, duration_s)
                && (gear == self.top() || self.satisfies(job, start_s, duration_s))
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
