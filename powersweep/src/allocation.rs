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

/// The variables of a batch system in its jobs.
struct BatchSystem {
    /// The job, or of an array the job that all its elements share.
    job: &'static str,
    /// The element of an array.
    index: &'static str,
    /// The number of the first element: 1 where the system counts from 1 in any case. Where the user chooses the numbers, they
    /// count from 0.
    first: u32,
}

const fn batch(job: &'static str, index: &'static str, first: u32) -> BatchSystem {
    BatchSystem { job, index, first }
}

/// The batch systems. One that runs in jobs of another one comes first.
const SYSTEMS: [BatchSystem; 10] = [
    // HyperQueue.
    batch("HQ_JOB_ID", "HQ_TASK_ID", 0),
    // Flux: `--cc`.
    batch("FLUX_JOB_ID", "FLUX_JOB_CC", 0),
    // Slurm.
    batch("SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID", 0),
    // PBS Pro and OpenPBS.
    batch("PBS_JOBID", "PBS_ARRAY_INDEX", 0),
    // Torque.
    batch("PBS_JOBID", "PBS_ARRAYID", 0),
    // LSF; 0 is a job without an array.
    batch("LSB_JOBID", "LSB_JOBINDEX", 1),
    // Grid Engine; "undefined" is a job without an array.
    batch("JOB_ID", "SGE_TASK_ID", 1),
    // AWS Batch.
    batch("AWS_BATCH_JOB_ID", "AWS_BATCH_JOB_ARRAY_INDEX", 0),
    // Nomad.
    batch("NOMAD_ALLOC_ID", "NOMAD_ALLOC_INDEX", 0),
    // An indexed job of Kubernetes.
    batch("HOSTNAME", "JOB_COMPLETION_INDEX", 0),
];

/// The element of an array job that this process is, counted from 0.
pub fn array_index() -> Option<u32> {
    index_from(|variable| std::env::var(variable).ok())
}

fn index_from(variable: impl Fn(&str) -> Option<String>) -> Option<u32> {
    let index = |system: &BatchSystem| variable(system.index)?.parse::<u32>().ok()?.checked_sub(system.first);
    SYSTEMS.iter().find_map(index)
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
        let element = |system: &BatchSystem| {
            let (job, index) = (variable(system.job)?, variable(system.index)?.parse::<u32>().ok()?);
            // PBS has the element in the job's name.
            (index >= system.first).then(|| if job.contains('[') { job } else { format!("{job}_{index}") })
        };
        let job = || ["SLURM_JOB_ID"].into_iter().chain(SYSTEMS.iter().map(|system| system.job)).find_map(&variable);
        let is_batch = |name: &String| variable("HOSTNAME").as_ref() != Some(name);
        let name = variable("POWERSWEEP_ALLOCATION").or_else(|| SYSTEMS.iter().find_map(element));
        let name = name.or_else(|| job().filter(is_batch));
        let ends_at = variable("POWERSWEEP_ALLOCATION_END").or_else(|| variable("SLURM_JOB_END_TIME"));
        let ends_at = ends_at.and_then(|seconds| seconds.parse().ok());
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
    fn every_batch_system_numbers_the_elements_of_an_array() {
        let index = |variables: &'static [(&str, &str)]| {
            index_from(|name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
        };
        assert_eq!(index(&[("SLURM_ARRAY_TASK_ID", "3")]), Some(3));
        assert_eq!(index(&[("PBS_ARRAY_INDEX", "0")]), Some(0));
        assert_eq!(index(&[("PBS_ARRAYID", "7")]), Some(7));
        assert_eq!(index(&[("FLUX_JOB_CC", "2"), ("SLURM_ARRAY_TASK_ID", "9")]), Some(2), "Flux in a job of Slurm");
        assert_eq!(index(&[("LSB_JOBINDEX", "1")]), Some(0));
        assert_eq!(index(&[("LSB_JOBINDEX", "0")]), None, "no array");
        assert_eq!(index(&[("SGE_TASK_ID", "4")]), Some(3));
        assert_eq!(index(&[("SGE_TASK_ID", "undefined")]), None, "no array");
        for name in ["AWS_BATCH_JOB_ARRAY_INDEX", "NOMAD_ALLOC_INDEX", "HQ_TASK_ID", "JOB_COMPLETION_INDEX"] {
            assert_eq!(index_from(|variable| (variable == name).then(|| "5".to_owned())), Some(5), "{name}");
        }
        assert_eq!(index(&[]), None);
    }

    #[test]
    fn jobs_of_other_systems_have_names() {
        assert_eq!(of(&[("PBS_JOBID", "12[3].pbs"), ("PBS_ARRAY_INDEX", "3")]).name, "12[3].pbs");
        assert_eq!(of(&[("LSB_JOBID", "12"), ("LSB_JOBINDEX", "3")]).name, "12_3");
        assert_eq!(of(&[("LSB_JOBID", "12"), ("LSB_JOBINDEX", "0")]).name, "12");
        assert_eq!(of(&[("JOB_ID", "12"), ("SGE_TASK_ID", "undefined")]).name, "12");
        assert_eq!(of(&[("HOSTNAME", "node")]).name, "", "no batch system");
        assert_eq!(of(&[("HOSTNAME", "pod"), ("JOB_COMPLETION_INDEX", "2")]).name, "pod_2");
    }

    #[test]
    fn a_worker_ends_before_its_allocation_and_not_with_its_neighbours() {
        let hour = of(&[("SLURM_JOB_END_TIME", "4720")]);
        assert_eq!(hour.left, Some(Duration::from_secs(3_720)));
        let limits: Vec<f64> =
            (0..100).filter_map(|worker| hour.time_limit(&format!("w{worker}"))).map(|l| l.as_secs_f64()).collect();
        let (least, most) = limits.iter().fold((f64::MAX, 0.0_f64), |(least, most), l| (least.min(*l), most.max(*l)));
        assert!((3_240.0..3_300.0).contains(&least) && (3_540.0..=3_600.0).contains(&most), "{least} {most}");
        assert_eq!(of(&[("POWERSWEEP_ALLOCATION_END", "4720")]).left, hour.left, "in a job of another system");
        let short = of(&[("SLURM_JOB_END_TIME", "1240")]).time_limit("w").expect("it has an end");
        assert!((189.0..=210.0).contains(&short.as_secs_f64()), "{short:?} of four minutes");
        let over = of(&[("SLURM_JOB_END_TIME", "900")]);
        assert_eq!(over.time_limit("w"), Some(Duration::ZERO));
        assert_eq!(of(&[("SLURM_JOB_END_TIME", "soon")]).left, None);
    }
}
