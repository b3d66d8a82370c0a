//! A WebAssembly module decides which waiting jobs start ([`crate::wasm`]).
use std::sync::Arc;

use super::list::{List, ListRule, Listed, Waiting};
use crate::batch::kernel::{Cluster, Copied, Recorder};
use crate::batch::platform::Machine;
use crate::batch::policy::gear::{Candidate, Gears};
use crate::error::{Result, SimError, Stop};
use crate::spec::{Component, Default as ParamDefault, Param, Role, SimSpec, Type};
use crate::wasm::{self, Budget, Fault, Module, NO_ARRIVAL, Pass, Release, Session};

const MODULE: &str = "wasm_module";
const FUEL: &str = "wasm_fuel_per_pass";
const FUEL_IN_ALL: &str = "wasm_fuel";

/// Units of fuel for which a pass counts one step: some hundred nanoseconds, as of other rules.
const FUEL_PER_STEP: u64 = 100;

/// Description of the rule.
pub const COMPONENT: Component = Component {
    role: Role::Backfill,
    name: "wasm",
    version: 1,
    doc: "A WebAssembly module gets the waiting jobs in queue order and the estimated ends of running jobs, and answers which \
          jobs start. For builds with the feature `wasm`.",
    reads: "What a module is given: submissions, estimates, procs, priorities and classes of the waiting jobs, \
            free procs, procs and estimated ends of running jobs.",
    guarantees: "A module cannot start jobs that need more procs than are free: the task ends with an error. A \
                 job for which a power cap leaves no watts keeps waiting. Waits have the bounds that the module \
                 has.",
    params: &[
        Param {
            name: MODULE,
            ty: Type::Module,
            unit: "",
            default: ParamDefault::Required,
            doc: "Path of the module, from the manifest's folder. Its bytes belong to the identity of a task, its name does not.",
        },
        Param {
            name: FUEL,
            ty: Type::Int { min: 1000, max: 1_000_000_000_000 },
            unit: "",
            default: ParamDefault::Int(100_000_000),
            doc: "Units of fuel that the module may use in one scheduling pass: about one for each instruction, and one for \
                  every 64 bytes of its memory.",
        },
        Param {
            name: FUEL_IN_ALL,
            ty: Type::Int { min: 1000, max: 1_000_000_000_000_000 },
            unit: "",
            default: ParamDefault::Int(1_000_000_000_000),
            doc: "Units of fuel that the module may use in one task.",
        },
    ],
    ..Component::BATCH
};

/// A list under the rule.
pub(in crate::batch::policy) type ByModule = Listed<Rule>;

/// The module with its limits, and what it has used.
#[derive(Debug, Clone, Default)]
pub(in crate::batch::policy) struct Rule {
    module: Option<Arc<Module>>,
    session: Session,
    fuel_per_pass: u64,
    fuel: u64,
    fuel_used: u64,
    /// Number of passes in which the module was called.
    passes: u64,
    pass: Pass,
}

impl ListRule for Rule {
    fn of(spec: &SimSpec, _: &Machine) -> Option<Rule> {
        let choice = spec.choice(Role::Backfill);
        let limit = |name| choice.int(name).unsigned_abs();
        let module = spec.module().cloned();
        Some(Rule { module, fuel_per_pass: limit(FUEL), fuel: limit(FUEL_IN_ALL), ..Rule::default() })
    }

    fn pass<G: Gears, R: Recorder>(&mut self, list: &mut List, gears: &G, cluster: &mut Cluster<'_, R>) -> Result<()> {
        let widest = list.headroom(cluster).widest;
        if !list.waiting().iter().any(|waiting| waiting.procs <= widest) {
            return Ok(());
        }
        let Some(module) = self.module.clone() else {
            return Err(cluster.refuse(format!("the bytes of the module that `{MODULE}` names are missing")));
        };
        self.passes += 1;
        self.look(list, gears, cluster);
        let fuel = self.fuel_per_pass.min(self.fuel - self.fuel_used);
        let budget = Budget { fuel, deadline_passed: cluster.deadline_passed() };
        let (starts, used) = module
            .schedule(&self.session, &self.pass, &budget)
            .map_err(|fault| self.refuse(&module, &fault, cluster))?;
        self.fuel_used += used;
        self.start(&module, &starts, list, gears, cluster)?;
        cluster.count_steps(used / FUEL_PER_STEP)
    }

    /// Jobs have other numbers in the copy.
    fn fork(&self, _: &Copied) -> Rule {
        Rule { pass: Pass::default(), ..self.clone() }
    }
}

impl Rule {
    /// Writes down what the module sees.
    fn look<G: Gears, R: Recorder>(&mut self, list: &List, gears: &G, cluster: &Cluster<'_, R>) {
        let now_s = cluster.now_s();
        let pass = &mut self.pass;
        (pass.now_s, pass.machine_procs, pass.free_procs) = (now_s, cluster.machine().procs, cluster.free());
        pass.waiting.clear();
        pass.waiting.extend(list.waiting().iter().map(|&Waiting { job, procs, .. }| {
            let gear = gears.at(Candidate::new(cluster, job), now_s, list.others());
            let factor = cluster.gears_for(job)[usize::from(gear)].time_factor;
            wasm::Waiting {
                submit_s: cluster.submit_s(job),
                estimate_s: cluster.estimate_s(job) * factor,
                procs,
                priority: u32::from(cluster.priority(job)),
                job_class: u32::from(cluster.job_class(job)) + 1,
                arrival: job,
            }
        }));
        self.look_at_releases(cluster);
    }

    /// Writes down the releases. Those of the last pass and the jobs that it started are in the list, mostly in order.
    fn look_at_releases<R: Recorder>(&mut self, cluster: &Cluster<'_, R>) {
        let now_s = cluster.now_s();
        let releases = &mut self.pass.releases;
        releases.retain_mut(|release| {
            let end_s =
                Some(release.arrival).filter(|job| *job != NO_ARRIVAL).and_then(|job| cluster.estimated_end_s(job));
            release.at_s = end_s.unwrap_or_default().max(now_s);
            end_s.is_some()
        });
        if releases.len() != cluster.running_count() {
            releases.clear();
            let running = cluster.each_running();
            releases.extend(running.map(|(arrival, procs, _, end_s)| Release {
                at_s: end_s.max(now_s),
                procs,
                arrival,
            }));
        }
        let coming =
            cluster.coming().map(|(at_s, procs)| Release { at_s: at_s.max(now_s), procs, arrival: NO_ARRIVAL });
        releases.extend(coming);
        // A stable sort finds the parts that are in order.
        releases.sort_by(|a, b| a.at_s.total_cmp(&b.at_s).then(a.arrival.cmp(&b.arrival)));
    }

    /// Starts the jobs of an answer. Under a power cap, a job for which no power is left keeps waiting.
    fn start<G: Gears, R: Recorder>(
        &mut self,
        module: &Module,
        starts: &[u32],
        list: &mut List,
        gears: &G,
        cluster: &mut Cluster<'_, R>,
    ) -> Result<()> {
        let mut started = vec![false; list.waiting().len()];
        let mut first_waiting = 0;
        let mut asked = 0;
        for at in starts.iter().map(|&at| at as usize) {
            let Waiting { job, procs, .. } = list.waiting()[at];
            asked += u64::from(procs);
            if asked > u64::from(self.pass.free_procs) {
                let fault = Fault::Wrong(format!(
                    "starts jobs that need more procs than are free: {} are free, and with job {} they need {asked}",
                    self.pass.free_procs,
                    cluster.job_id(job),
                ));
                return Err(self.refuse(module, &fault, cluster));
            }
            let Some(start) = list.fitting(job, &list.headroom(cluster), gears, cluster) else { continue };
            list.start(at, start, at > first_waiting, cluster)?;
            self.pass.releases.push(Release { at_s: self.pass.now_s, procs, arrival: job });
            started[at] = true;
            while started.get(first_waiting) == Some(&true) {
                first_waiting += 1;
            }
        }
        list.remove_started();
        Ok(())
    }

    /// The error of a module's fault.
    #[cold]
    fn refuse<R: Recorder>(&self, module: &Module, fault: &Fault, cluster: &Cluster<'_, R>) -> Stop {
        let what = match fault {
            Fault::Deadline => return Stop::new(SimError::Deadline),
            Fault::Wrong(what) => what.clone(),
            Fault::OutOfFuel if self.fuel - self.fuel_used < self.fuel_per_pass => {
                format!("used more than {} units of fuel in one task (`{FUEL_IN_ALL}`)", self.fuel)
            }
            Fault::OutOfFuel => {
                format!("used more than {} units of fuel in one pass (`{FUEL}`)", self.fuel_per_pass)
            }
        };
        cluster.refuse(format!("the {} `{}` {what}, in pass {}", module.noun(), module.name(), self.passes))
    }
}
