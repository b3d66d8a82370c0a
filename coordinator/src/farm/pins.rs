//! Pins: versions of the kernel and of components, and the schema, that an experiment's rows depend on.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use powersweep_engine::KERNEL_VERSION;
use powersweep_experiments::{Digest, Sweep};
use powersweep_proto::v1::{self, ExperimentState};
use powersweep_results::{columns, tasks};

use super::tables::tables_of;
use crate::records::{ExperimentRecord, Stored};

/// The pin that holds the kernel's version.
pub const KERNEL: &str = "kernel";

static TASKS_SCHEMA: LazyLock<u64> = LazyLock::new(|| columns::fingerprint(&tasks::schema()));

/// Fingerprint of this build's `tasks` schema.
pub(crate) fn tasks_schema() -> u64 {
    *TASKS_SCHEMA
}

/// The record of a new experiment, without generation and time.
pub(super) fn new_record(sweep: &Sweep, digests: &BTreeMap<String, Digest>) -> ExperimentRecord {
    ExperimentRecord {
        name: sweep.manifest().name().to_owned(),
        manifest: sweep.manifest().text().to_owned(),
        digests: stored(digests),
        pins: component_versions(sweep),
        tasks_schema: tasks_schema(),
        tables: tables_of(sweep).into_iter().map(i32::from).collect(),
        state: ExperimentState::Running.into(),
        ..ExperimentRecord::default()
    }
}

/// Digests as records have them.
pub(super) fn stored(digests: &BTreeMap<String, Digest>) -> BTreeMap<String, Stored<Digest>> {
    digests.iter().map(|(log, digest)| (log.clone(), Stored(*digest))).collect()
}

/// The versions of the kernel and of all components that a sweep uses.
pub(crate) fn component_versions(sweep: &Sweep) -> BTreeMap<String, u32> {
    let mut pins = sweep.component_versions();
    pins.insert(KERNEL.to_owned(), KERNEL_VERSION);
    pins
}

/// Differences between a build's versions and pins; `None` if the build gives the pinned rows.
pub(super) fn misfit(pins: &BTreeMap<String, u32>, versions: &v1::Versions) -> Option<String> {
    let version = |pin: &str| if pin == KERNEL { Some(versions.kernel) } else { versions.parts.get(pin).copied() };
    let differs = |(pin, pinned): (&String, &u32)| match version(pin) {
        Some(found) if found == *pinned => None,
        Some(found) => Some(format!("{pin} is version {found}, the experiment has {pinned}")),
        None => Some(format!("{pin} is missing")),
    };
    let all: Vec<String> = pins.iter().filter_map(differs).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// Differences between the versions of a new manifest and pins. Components that only one of them has do not count.
pub(crate) fn changed(pins: &BTreeMap<String, u32>, new: &BTreeMap<String, u32>) -> Vec<String> {
    new.iter()
        .filter_map(|(pin, new)| pins.get(pin).filter(|old| *old != new).map(|old| (pin, old, new)))
        .map(|(pin, old, new)| format!("{pin} was version {old}, is {new} in this build"))
        .collect()
}
