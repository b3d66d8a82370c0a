//! The announcement of an experiment, before its first lease.

use std::time::Duration;

use powersweep_experiments::{Digest, Manifest, Sweep};
use powersweep_proto::v1;

use super::Agent;
use crate::options::{TaskLimits, WorkerError};
use crate::session::ExperimentKey;
use crate::slots::Experiment;
use crate::task::Inputs;

impl Agent {
    /// The coordinator has checked the manifest: if this build cannot read it, the builds differ.
    pub(super) fn read_experiment(&self, message: v1::Experiment) -> Result<Experiment, WorkerError> {
        let name = message.name;
        let wrong =
            |message: String| WorkerError::Protocol { endpoint: self.coordinator.reached().to_owned(), message };
        let manifest = Manifest::parse(&name, &message.manifest)
            .map_err(|e| wrong(format!("the manifest of experiment `{name}`: {e}")))?;
        let digest = |(log, bytes): (String, bytes::Bytes)| {
            let digest = Digest::try_from(&bytes[..]).map_err(|_| wrong(format!("the digest of the log `{log}`")))?;
            Ok((log, digest))
        };
        let digests = message.digests.into_iter().map(digest).collect::<Result<_, WorkerError>>()?;
        let sweep = Sweep::new(manifest, digests).map_err(|e| wrong(format!("the sweep of `{name}`: {e}")))?;
        let mut tables = powersweep_experiments::Tables::default();
        for table in &message.tables {
            match (tables.asked(table), table.as_str()) {
                (Some(asked), _) => *asked = true,
                // `tasks` is always written.
                (None, "tasks") => {}
                (None, other) => return Err(wrong(format!("table `{other}`, which this build cannot make"))),
            }
        }
        let own = self.options.limits;
        let deadline = (message.task_deadline_s > 0.0).then(|| Duration::try_from_secs_f64(message.task_deadline_s));
        let max_events = (message.task_max_events > 0).then_some(message.task_max_events);
        let max_bytes = (message.task_max_bytes > 0).then(|| usize::try_from(message.task_max_bytes));
        Ok(Experiment {
            key: ExperimentKey { name: name.as_str().into(), generation: message.generation },
            inputs: Inputs::of(&sweep),
            sweep,
            tables,
            limits: TaskLimits {
                // A limit beyond the range of the type does not limit.
                deadline: least(own.deadline, deadline.and_then(Result::ok)),
                max_events: least(own.max_events, max_events),
                max_bytes: least(own.max_bytes, max_bytes.and_then(Result::ok)),
            },
        })
    }
}

/// The lesser of two limits; `None` is no limit.
fn least<T: Ord>(a: Option<T>, b: Option<T>) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
