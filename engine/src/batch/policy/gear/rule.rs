//! The trait of gear rules.
use crate::batch::kernel::{Cluster, JobId, Recorder};
use crate::batch::platform::{Gear, Machine};
use crate::spec::{Default, Param, SimSpec, Type};

/// The parameter behind [`Gears::reservation_inclusive`].
pub(crate) const RESERVATION_INCLUSIVE: Param = Param {
    name: "reservation_inclusive",
    ty: Type::Bool,
    unit: "",
    default: Default::Bool(true),
    doc: "Whether a job may overtake if its estimated end equals the head's reservation, under `backfill` = \"easy\" and \
          \"kept-head\".",
};

/// When the gear of the reserved head is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeadGear {
    /// At each pass, so that the choice at the start of the job counts.
    Renew,
    /// With the reservation, and again once a job has ended before its estimate.
    UntilEarlyEnd,
    /// With the first reservation only.
    Fixed,
}

/// A waiting job, as a gear rule sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Candidate {
    /// Submit instant (s).
    pub(crate) submit_s: f64,
    /// Estimated run time at the top gear (s).
    pub(crate) estimate_s: f64,
    /// Class of the job, from 0.
    pub(crate) class: u8,
}

impl Candidate {
    pub(crate) fn new<R: Recorder>(cluster: &Cluster<'_, R>, job: JobId) -> Candidate {
        Candidate::estimated(cluster, job, cluster.estimate_s(job))
    }

    /// [`Candidate::new`] with the known estimate of the job (s).
    #[inline]
    pub(crate) fn estimated<R: Recorder>(cluster: &Cluster<'_, R>, job: JobId, estimate_s: f64) -> Candidate {
        let (submit_s, class) = cluster.submit_and_class(job);
        Candidate { submit_s, estimate_s, class }
    }
}

/// Run time at each gear over that at the top gear: the factors of [`Machine::gears_of`] without the powers,
/// because every candidate reads them (some 0.2% of the instructions of a run under `bsld`).
#[derive(Debug, Clone)]
pub(crate) struct TimeFactors {
    /// Factors of the first class of jobs.
    first: Vec<f64>,
    /// Factors of the other classes, if they differ.
    more: Vec<Vec<f64>>,
}

impl TimeFactors {
    pub(crate) fn new(machine: &Machine) -> TimeFactors {
        let factors = |gears: &[Gear]| gears.iter().map(|gear| gear.time_factor).collect();
        TimeFactors {
            first: factors(&machine.gears),
            more: machine.more_job_classes.iter().map(|gears| factors(gears)).collect(),
        }
    }

    /// Factors of a job, lowest gear first.
    #[inline(always)]
    pub(crate) fn of(&self, job: Candidate) -> &[f64] {
        if self.more.is_empty() || job.class == 0 {
            return &self.first;
        }
        &self.more[usize::from(job.class) - 1]
    }
}

/// A rule that chooses the gears of starting jobs. `others`: number of waiting jobs besides the job.
pub(crate) trait Gears: Clone {
    /// The rule of a spec on a machine, whose gears ascend from the slowest to the top gear.
    fn of(spec: &SimSpec, machine: &Machine) -> Option<Self>;

    /// The gear of a job that starts at `start_s`, without regard to reservations.
    fn at(&self, job: Candidate, start_s: f64, others: usize) -> u8;

    /// The gear of a job that would overtake now, and whether it ends later than `until_s`. The job must end by
    /// `until_s` unless `on_extra`: it fits beside the reservation for any run time. `None`: it may not overtake.
    fn overtaking(&self, job: Candidate, now_s: f64, others: usize, until_s: f64, on_extra: bool)
    -> Option<(u8, bool)>;

    /// Whether a job gets the same gear at each instant, whichever jobs wait.
    #[inline]
    fn is_constant(&self) -> bool {
        false
    }

    /// Whether a job that starts now or later can get a gear below the top gear. `false` also for a rule whose gear depends
    /// on the job alone.
    #[inline]
    fn lowers(&self, _job: Candidate, _now_s: f64, _others: usize) -> bool {
        false
    }

    /// The latest end of a job at a gear below the top gear (s): such a gear is not chosen for a job that would end later.
    #[inline]
    fn lowered_end_s(&self, _job: Candidate) -> f64 {
        f64::INFINITY
    }

    /// Whether an end at the instant of the head's reservation is in time.
    #[inline]
    fn reservation_inclusive(&self) -> bool {
        true
    }

    /// Whether an end (s) is in time for a reservation at `until_s`.
    #[inline]
    fn in_time(&self, end_s: f64, until_s: f64) -> bool {
        end_s < until_s || (end_s == until_s && self.reservation_inclusive())
    }

    /// Chooses among reservations: gear, start and duration. `earliest` returns the earliest start from `now_s` on for a gear,
    /// the expected duration at that gear and the latest start that the rule accepts (s), if there is one. The chosen reservation is that of the last call of
    /// `earliest`. While [`Gears::lowers`] is as before, later starts at the gears that were not chosen change no choice.
    fn reserve(
        &self,
        job: Candidate,
        now_s: f64,
        others: usize,
        earliest: impl FnMut(u8, f64 /* duration */, f64 /* latest */) -> Option<f64>,
    ) -> Option<(u8, f64 /* start */, f64 /* duration */)>;

    /// When the reserved head's gear is chosen.
    #[inline]
    fn head_gear(&self) -> HeadGear {
        HeadGear::Renew
    }
}
