//! The buffering schemes and server priorities of Do et al. 2013, on a cluster of server classes.
use std::collections::VecDeque;

use super::unfit::unfit;
use crate::details::Details;
use crate::error::{SimError, Stop};
use crate::limits::Limits;
use crate::queues::kernel::arrivals::{ClassStream, Poisson};
use crate::queues::kernel::policy::{Completed, Job, QueuePolicy};
use crate::queues::kernel::servers::Servers;
use crate::queues::server_classes::{Priority, ServerClasses};
use crate::queues::statistics::measure::Measurement;
use crate::queues::statistics::summary::QueueSummary;
use crate::queues::statistics::{measure, steady_state};
use crate::queues::{open_poisson, server_classes};
use crate::spec::{Choice, Component, Default, Param, Role, SimSpec, Type};

/// Description of the policy.
pub const COMPONENT: Component = Component {
    role: Role::Policy,
    name: "buffered",
    version: 1,
    source: "Do et al. 2013, section 2, Algorithms 1 to 3",
    doc: "Jobs of one proc on server classes, first come, first served. An arriving job takes the first free server in order \
          of priority; without a free server it waits by the buffering scheme.",
    params: &[
        Param {
            name: "buffering",
            ty: Type::OneOf(&["separate", "class", "common"]),
            unit: "",
            default: Default::Text("common"),
            doc: "Where a job waits when all servers are busy: at the server with the fewest jobs, at the server class with \
                  the fewest waiting jobs, or in one queue.",
        },
        Param::one_of(
            "server_priority",
            &["energy-efficiency", "high-performance"],
            "Which server class comes first: the one with the most operations a second per watt, or with the most \
                  operations a second (of equal ones the lower busy power).",
        ),
        Param::one_of(
            "idle_servers",
            &["on", "off"],
            "Whether idle servers draw their idle power or none (Do et al. 2013, eq. 3 and 4); jobs start on them without \
                  delay in both cases. Both energies per job are columns of every row.",
        ),
    ],
    problems,
    ..Component::QUEUES
};

/// Where an arriving job waits when every server is busy (Do et al. 2013, section 2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// At the server with the fewest jobs, in service and waiting (Algorithm 1).
    Separate,
    /// At the server class with the fewest waiting jobs (Algorithm 2).
    Class,
    /// In one queue (Algorithm 3).
    Common,
}

/// First come, first served with servers in an order of priority. An arriving job takes the first free server; without one
/// it waits by the scheme, where ties go to the higher priority. A freed server takes the head of its own queue only: jobs
/// never move between queues. There is one class of jobs.
#[derive(Debug, Clone)]
pub struct Buffered {
    scheme: Scheme,
    /// Servers by rank, highest priority first.
    by_rank: Vec<u32>,
    /// Rank of each server.
    rank_of: Vec<u32>,
    /// Bits of the ranks of free servers.
    free: Vec<u64>,
    /// One queue for each server (by rank), for each class (in order of priority), or one for all.
    queues: Vec<VecDeque<Job>>,
    /// Lengths of the queues, for a fast search of the shortest.
    lengths: Vec<u32>,
    /// Queue of each server, by rank.
    queue_of: Vec<u32>,
    waiting: usize,
}

impl Buffered {
    /// `classes`: the servers of each class, highest priority first. They contain every server once.
    pub fn new(scheme: Scheme, classes: &[Vec<usize>]) -> Buffered {
        let by_rank: Vec<u32> = classes.iter().flatten().map(|&server| server as u32).collect();
        let mut rank_of = vec![0; by_rank.len()];
        for (rank, &server) in by_rank.iter().enumerate() {
            rank_of[server as usize] = rank as u32;
        }
        let queue_of: Vec<u32> = match scheme {
            Scheme::Separate => (0..by_rank.len() as u32).collect(),
            Scheme::Class => {
                classes.iter().enumerate().flat_map(|(i, class)| class.iter().map(move |_| i as u32)).collect()
            }
            Scheme::Common => vec![0; by_rank.len()],
        };
        let queues = queue_of.last().map_or(0, |&last| last as usize + 1);
        let mut free = vec![0; by_rank.len().div_ceil(64)];
        for rank in 0..by_rank.len() {
            free[rank / 64] |= 1 << (rank % 64);
        }
        Buffered {
            scheme,
            by_rank,
            rank_of,
            free,
            queues: vec![VecDeque::new(); queues],
            lengths: vec![0; queues],
            queue_of,
            waiting: 0,
        }
    }

    /// The policy of a choice on a cluster.
    fn of(choice: &Choice, classes: &ServerClasses) -> Buffered {
        let scheme = match choice.text("buffering") {
            "separate" => Scheme::Separate,
            "class" => Scheme::Class,
            _ => Scheme::Common,
        };
        let priority = match choice.text("server_priority") {
            "high-performance" => Priority::HighPerformance,
            _ => Priority::EnergyEfficiency,
        };
        let groups = classes.groups();
        let ranked: Vec<_> = classes.ranking(priority).into_iter().map(|class| groups[class].clone()).collect();
        Buffered::new(scheme, &ranked)
    }

    #[inline]
    fn first_free(&self) -> Option<usize> {
        let word = self.free.iter().position(|&word| word != 0)?;
        Some(word * 64 + self.free[word].trailing_zeros() as usize)
    }

    /// The first of the shortest queues.
    #[inline]
    fn shortest(&self) -> usize {
        let least = self.lengths.iter().fold(u32::MAX, |least, &length| least.min(length));
        self.lengths.iter().position(|&length| length == least).expect("there is a server, so there is a queue")
    }
}

impl QueuePolicy for Buffered {
    #[inline(always)]
    fn arrived(&mut self, servers: &mut Servers, job: Job) -> Result<(), Stop> {
        if let Some(rank) = self.first_free() {
            self.free[rank / 64] &= !(1 << (rank % 64));
            return servers.start(self.by_rank[rank] as usize, job);
        }
        // Every server has one job in service: the server with the fewest jobs has the fewest waiting jobs.
        let queue = if self.scheme == Scheme::Common { 0 } else { self.shortest() };
        self.queues[queue].push_back(job);
        self.lengths[queue] += 1;
        self.waiting += 1;
        Ok(())
    }

    #[inline(always)]
    fn ended(&mut self, servers: &mut Servers, done: &Completed) -> Result<(), Stop> {
        let rank = self.rank_of[done.server] as usize;
        let queue = self.queue_of[rank] as usize;
        if let Some(job) = self.queues[queue].pop_front() {
            self.lengths[queue] -= 1;
            self.waiting -= 1;
            servers.start(done.server, job)
        } else {
            self.free[rank / 64] |= 1 << (rank % 64);
            Ok(())
        }
    }

    fn waiting(&self) -> usize {
        self.waiting
    }
}

/// The problems of a spec of the policy, see [`Component::problems`].
fn problems(spec: &SimSpec) -> Vec<String> {
    let unfit: Vec<String> = [&open_poisson::COMPONENT, &server_classes::COMPONENT]
        .into_iter()
        .filter_map(|fitting| unfit(spec, &[fitting], "is of several classes of jobs", "knows one class"))
        .collect();
    if !unfit.is_empty() {
        return unfit;
    }
    let mut problems = server_classes::problems(spec.choice(Role::Platform));
    problems.extend(open_poisson::problems(spec.choice(Role::Source)));
    let statistics = spec.choice(Role::Statistics);
    if *statistics.component() == steady_state::COMPONENT && problems.is_empty() {
        problems.extend(ClassModel::new(spec).overloaded());
    }
    problems
}

/// Simulates a spec without problems.
///
/// # Errors
/// See [`SimError`].
pub(super) fn simulate(spec: &SimSpec, limits: &Limits<'_>, details: &mut Details) -> Result<QueueSummary, SimError> {
    let (policy, model) = (spec.choice(Role::Policy), ClassModel::new(spec));
    let buffered = Buffered::of(policy, &model.classes);
    let measurement = model.measurement(policy.text("idle_servers") == "on");
    let arrivals = Poisson::new(&[model.stream], spec.seed);
    measure(spec, model.classes.table(), arrivals, buffered, &measurement, limits, details)
}

/// One class of jobs on a cluster of server classes.
struct ClassModel {
    classes: ServerClasses,
    stream: ClassStream,
}

impl ClassModel {
    /// The model of a spec whose source and platform have no problems.
    fn new(spec: &SimSpec) -> ClassModel {
        let classes = ServerClasses::new(spec.choice(Role::Platform));
        let stream = open_poisson::stream(spec.choice(Role::Source), &classes);
        ClassModel { classes, stream }
    }

    fn offered_load(&self) -> f64 {
        self.stream.rate_per_s * self.stream.work.mean() / self.classes.capacity_per_s(true)
    }

    /// The problem of a load without a steady state.
    fn overloaded(&self) -> Option<String> {
        let load = self.offered_load();
        (load >= 1.0).then(|| {
            format!(
                "a steady state needs an offered load below 1; by `target_utilization` or `arrival_rate_per_s` it is {load}"
            )
        })
    }

    fn measurement(&self, idle_counts: bool) -> Measurement {
        Measurement { groups: self.classes.groups(), idle_counts, offered_load: Some(self.offered_load()) }
    }
}
