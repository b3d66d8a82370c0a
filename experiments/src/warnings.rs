//! Warnings and notes about a sweep before it runs: findings of [`powersweep_engine::batch::physics`] and of the
//! caller, each with its place in the manifest.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use powersweep_engine::batch::physics::{self, Demand, Finding, FindingKind, Place};
use powersweep_engine::spec::{Model, Role, Section};
use powersweep_engine::{SimSpec, seeds, workload};
use serde::{Serialize, Serializer};
use toml::de::DeTable;

use crate::canonical::push_choice;
use crate::manifest::combos::{candidates, positions, spec};
use crate::manifest::unique::span_of;
use crate::space::{SECTIONS, SEED_LEVEL};
use crate::sweep::{Sweep, TaskSpec};

/// Maximum number of workloads that are looked at: each may take a tenth of a second.
const WORKLOADS_MAX: usize = 16;
/// Maximum number of jobs of a generated workload that is looked at.
const GENERATED_MAX: u64 = 50_000;

/// One warning about a sweep. The sweep may run nevertheless.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// Its kind.
    #[serde(serialize_with = "name_of")]
    pub kind: FindingKind,
    /// Line of the manifest, from 1.
    pub line: usize,
    /// The block that the line belongs to, as in the manifest: `[policies.capped]`.
    pub block: String,
    /// The first finding in a sentence.
    pub message: String,
    /// What to do.
    pub help: String,
    /// Number of combinations with such a finding, without seeds.
    #[serde(rename = "combinations_found")]
    pub found: u64,
    /// Number of combinations that were checked.
    #[serde(rename = "combinations_checked")]
    pub checked: u64,
    /// Index of the first task with such a finding.
    pub first_index: u64,
}

/// Writes a kind by its name.
fn name_of<S: Serializer>(kind: &FindingKind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(kind.name())
}

impl Warning {
    /// Whether it only says how to read the results.
    pub fn is_note(&self) -> bool {
        self.kind.is_note()
    }

    /// The first finding as text, as that of a single task.
    pub fn finding(&self) -> String {
        physics::finding_text(self.kind, &self.message, &self.help)
    }

    /// The warning as text. `file`: the manifest's name.
    pub fn text(&self, file: &str) -> String {
        let word = self.kind.word();
        let Warning { line, block, message, help, found, checked, first_index, .. } = self;
        let of = if found == checked { String::new() } else { format!(" in {found} of {checked} combinations") };
        let task = if self.is_note() { String::new() } else { format!(", first in task {first_index}") };
        let block = if block.is_empty() { String::new() } else { format!(" {block}") };
        format!("{word}: {message}\n  at {file}:{line}{block}{of}{task}; {help}")
    }
}

/// The finding about a task that no seed changes.
fn seeds_alike() -> Finding {
    Finding {
        kind: FindingKind::SeedsAlike,
        about: "seeds",
        place: Place::Choice(Role::Source),
        message: "the seeds change nothing in these tasks: their rows are equal, and have no interval".to_owned(),
        help:
            "give the log one seed, or let seeds draw its weeks (resample_days) or move its submits (submit_jitter_s)"
                .to_owned(),
    }
}

impl Sweep {
    /// The warnings about this sweep, in the order of the manifest; at most one of a kind for each line.
    ///
    /// In a small sweep all combinations are checked, in a large one a sample. `demand` gives the jobs of a task; `None`
    /// where they are not known, so that only findings without jobs are made. `of_signals` places the signals of a spec on the
    /// time of its workload, and finds those that its jobs cannot have.
    pub fn warnings(
        &self,
        mut demand: impl FnMut(&TaskSpec) -> Option<Demand>,
        of_signals: impl Fn(&mut SimSpec, &Demand) -> Vec<Finding>,
    ) -> Vec<Warning> {
        let manifest = self.manifest().inner();
        let Ok(top) = DeTable::parse(&manifest.text) else { return Vec::new() };
        let mut found: BTreeMap<(usize, FindingKind), Warning> = BTreeMap::new();
        let mut demands = Demands::default();
        let mut checked = 0;
        let mut unrecorded: Vec<&str> = manifest.series.iter().flatten().copied().collect();
        let included = |index: &u64| !manifest.exclusion.contains(*index);
        for index in candidates(&manifest.levels).into_iter().filter(included) {
            checked += 1;
            let mut sim = spec(&manifest.levels, index);
            let demand = demands.of(&sim, manifest.tables.accounts, || demand(&self.task(index)?));
            unrecorded.retain(|series| !physics::may_record(&sim, series));
            let mut lines = BTreeSet::new();
            let jobs = demand.filter(|demand| demand.problem.is_none() && sim.model() == Model::Batch);
            let of_signals = jobs.map(|demand| of_signals(&mut sim, demand)).unwrap_or_default();
            let alike = Some(seeds_alike()).filter(|_| {
                manifest.levels[SEED_LEVEL].count > 1 && seeds::dependence(&sim) == seeds::Dependence::Alike
            });
            for finding in physics::findings(&sim, demand).into_iter().chain(of_signals).chain(alike) {
                let (line, block, keys) = self.place(top.get_ref(), index, &finding);
                // A user who gives the period means a schedule.
                if finding.kind == FindingKind::Schedule && keys.is_some_and(|keys| keys.contains_key("cap_period_s")) {
                    continue;
                }
                let key = (line, finding.kind);
                let warning = found.entry(key).or_insert_with(|| Warning {
                    kind: finding.kind,
                    line,
                    block,
                    message: finding.message,
                    help: finding.help,
                    found: 0,
                    checked: 0,
                    first_index: index,
                });
                warning.found += u64::from(lines.insert(key));
            }
        }
        if let (Some(warning), true) = (self.unrecorded(top.get_ref(), &unrecorded), checked > 0) {
            found.insert((warning.line, warning.kind), Warning { found: checked, ..warning });
        }
        found.into_values().map(|warning| Warning { checked, ..warning }).collect()
    }

    /// The warning about series that no task records.
    fn unrecorded(&self, top: &DeTable<'_>, series: &[&str]) -> Option<Warning> {
        let names: Vec<String> = series.iter().map(|name| format!("`{name}`")).collect();
        let finding = Finding {
            kind: FindingKind::UnrecordedSeries,
            about: "series",
            place: Place::Top,
            message: format!("no task records the series {}", names.join(", ")),
            help: "set watch_machine = true in [statistics] for series of the machine over time; `powersweep columns series` \
                   says what records each"
                .to_owned(),
        };
        let (line, block, _) = self.place(top, 0, &finding);
        let Finding { kind, message, help, .. } = finding;
        (!names.is_empty()).then_some(Warning {
            kind,
            line,
            block,
            message,
            help,
            found: 0,
            checked: 0,
            first_index: 0,
        })
    }

    /// Line, block and the block's keys of a finding about a task: the line of the key that it is about, or else that of
    /// its block.
    fn place<'a, 'i>(
        &self,
        top: &'a DeTable<'i>,
        index: u64,
        finding: &Finding,
    ) -> (usize, String, Option<&'a DeTable<'i>>) {
        let blocks = |section: &str| top.get(section).and_then(|table| table.get_ref().as_table());
        let (name, block, whole) = match &finding.place {
            Place::Top => (String::new(), Some(top), 0..0),
            Place::Signal(label) => {
                let found = blocks("signals").and_then(|blocks| blocks.get_key_value(label.as_str()));
                let (span, block) = found.map_or((0..0, None), |(key, block)| (key.span(), block.get_ref().as_table()));
                (format!("signals.{label}"), block, span)
            }
            Place::Choice(role) => {
                let levels = &self.manifest().inner().levels;
                let at = SECTIONS.iter().position(|section| *section == role.section()).unwrap_or_default();
                let (variant, _) = levels[at].locate(positions(levels, index)[at]);
                let (label, section) = (&levels[at].variants[variant].label, SECTIONS[at].key());
                let block = match SECTIONS[at] {
                    Section::Statistics => blocks(section),
                    _ => blocks(section).and_then(|blocks| blocks.get(&**label)?.get_ref().as_table()),
                };
                let name = if label.is_empty() { section.to_owned() } else { format!("{section}.{label}") };
                (name, block, span_of(top, at, label))
            }
        };
        let key = block.and_then(|block| block.get_key_value(finding.about)).map(|(key, _)| key.span());
        let span = key.unwrap_or(whole);
        let text = &self.manifest().inner().text;
        let line = text.bytes().take(span.start).filter(|byte| *byte == b'\n').count() + 1;
        (line, if name.is_empty() { name } else { format!("[{name}]") }, block)
    }
}

/// The demands of the workloads that were looked at, by source and rules.
#[derive(Default)]
struct Demands {
    known: HashMap<Vec<u8>, Option<Demand>>,
}

impl Demands {
    /// `times_matter`: whether findings depend on the times of the jobs.
    fn of(&mut self, sim: &SimSpec, times_matter: bool, look: impl FnOnce() -> Option<Demand>) -> Option<&Demand> {
        let mut key = Vec::new();
        // The locator of a log is part of the key: it stands for the log.
        push_choice(&mut key, sim.choice(Role::Source), |_| true);
        push_choice(&mut key, sim.choice(Role::Rules), |param| match param.name {
            "wide_jobs" => false,
            "interarrival_factor" => times_matter,
            _ => true,
        });
        let full = self.known.len() >= WORKLOADS_MAX;
        let small = workload::generated_jobs(sim).is_none_or(|jobs| jobs <= GENERATED_MAX);
        let look = || if full || !small { None } else { look() };
        if full && !self.known.contains_key(&key) {
            return None;
        }
        self.known.entry(key).or_insert_with(look).as_ref()
    }
}
