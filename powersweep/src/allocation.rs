//! The allocation of a batch system that this process runs in, from the environment.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, SystemTime};

/// Time kept free at the end of an allocation, for the drain, the last hand-in, and a clock that differs a little: a tenth of
/// the allocation, within these bounds.
const END_RESERVE_MIN: Duration = Duration::from_secs(30);
const END_RESERVE_MAX: Duration = Duration::from_secs(120);

/// The ends of workers that started together are spread over this part of their time, so that their replacements need not
/// start together either.
pub const STAGGER: f64 = 0.1;

/// The time of an allocation of this length without the reserve at its end.
pub fn without_reserve(time: Duration) -> Duration {
    time.saturating_sub((time / 10).clamp(END_RESERVE_MIN, END_RESERVE_MAX))
}

/// Where a batch system placed this process.
#[derive(Debug, Default, PartialEq)]
pub struct Allocation {
    /// Its name, such as 4711_3 for element 3 of the array job 4711; empty outside of a batch system.
    pub name: String,
    /// Time until it ends.
    pub left: Option<Duration>,
}

impl Allocation {
    /// The allocation of this process.
    pub fn of_this_process() -> Allocation {
        Allocation::from(|variable| std::env::var(variable).ok().filter(|value| !value.is_empty()), SystemTime::now())
    }

    fn from(variable: impl Fn(&str) -> Option<String>, now: SystemTime) -> Allocation {
        let array = variable("SLURM_ARRAY_JOB_ID").zip(variable("SLURM_ARRAY_TASK_ID"));
        let element = array.map(|(job, task)| format!("{job}_{task}"));
        let name = variable("POWERSWEEP_ALLOCATION").or(element).or_else(|| variable("SLURM_JOB_ID"));
        let ends_at = variable("SLURM_JOB_END_TIME").and_then(|seconds| seconds.parse().ok());
        let ends_at = ends_at.and_then(|seconds| SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds)));
        let left = ends_at.map(|at| at.duration_since(now).unwrap_or_default());
        Allocation { name: name.unwrap_or_default(), left }
    }

    /// How long a worker with this name may run: to the end of the allocation without the reserve, less up to a tenth.
    pub fn time_limit(&self, worker: &str) -> Option<Duration> {
        let mut hasher = DefaultHasher::new();
        (&self.name, worker).hash(&mut hasher);
        let share = STAGGER * (hasher.finish() % 1_000) as f64 / 1_000.0;
        self.left.map(|left| without_reserve(left).mul_f64(1.0 - share))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Allocation {
        let find =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        Allocation::from(find, SystemTime::UNIX_EPOCH + Duration::from_secs(1_000))
    }

    #[test]
    fn an_element_of_an_array_is_named_by_array_and_index() {
        assert_eq!(of(&[]), Allocation::default());
        assert_eq!(of(&[("SLURM_JOB_ID", "12")]).name, "12");
        let element = [("SLURM_JOB_ID", "12"), ("SLURM_ARRAY_JOB_ID", "9"), ("SLURM_ARRAY_TASK_ID", "3")];
        assert_eq!(of(&element).name, "9_3");
        assert_eq!(of(&[&element[..], &[("POWERSWEEP_ALLOCATION", "mine")]].concat()).name, "mine");
    }

    #[test]
    fn a_worker_ends_before_its_allocation_and_not_with_its_neighbours() {
        let hour = of(&[("SLURM_JOB_END_TIME", "4720")]);
        assert_eq!(hour.left, Some(Duration::from_secs(3_720)));
        let limits: Vec<f64> =
            (0..100).filter_map(|worker| hour.time_limit(&format!("w{worker}"))).map(|l| l.as_secs_f64()).collect();
        let (least, most) = limits.iter().fold((f64::MAX, 0.0_f64), |(least, most), l| (least.min(*l), most.max(*l)));
        assert!((3_240.0..3_300.0).contains(&least) && (3_540.0..=3_600.0).contains(&most), "{least} {most}");
        let short = of(&[("SLURM_JOB_END_TIME", "1240")]).time_limit("w").expect("it has an end");
        assert!((189.0..=210.0).contains(&short.as_secs_f64()), "{short:?} of four minutes");
        let over = of(&[("SLURM_JOB_END_TIME", "900")]);
        assert_eq!(over.time_limit("w"), Some(Duration::ZERO));
        assert_eq!(of(&[("SLURM_JOB_END_TIME", "soon")]).left, None);
    }
}
