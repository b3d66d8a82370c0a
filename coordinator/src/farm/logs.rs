//! Logs in the store: which are stored and wanted, and which are dropped.

use std::collections::BTreeSet;
use std::time::Duration;

use powersweep_experiments::Digest;

use super::experiment::Experiment;
use super::{ClientId, Farm, Now, Reply};
use crate::records::Key;

/// How long a log stays that no experiment uses.
const UNUSED_AFTER: Duration = Duration::from_secs(24 * 3600);

impl Farm {
    /// Whether an experiment uses a log. Others are not accepted.
    pub fn wants_log(&self, digest: Digest) -> bool {
        self.experiments.values().flat_map(logs_of).any(|used| used == digest)
    }

    /// Drops the records of logs that no experiment has used for long, and answers with these logs. `stored` are the
    /// logs in the store: a process that died may have left some without a record.
    pub(super) fn drop_unused_logs(&mut self, client: ClientId, stored: &[Digest], now: Now) {
        let used: BTreeSet<Digest> = self.experiments.values().flat_map(logs_of).collect();
        self.unused_logs.retain(|digest, _| !used.contains(digest));
        for digest in self.logs.keys().chain(stored).filter(|digest| !used.contains(*digest)) {
            self.unused_logs.entry(*digest).or_insert(now.mono);
        }
        let old = self.unused_logs.extract_if(.., |_, since| now.mono.saturating_sub(*since) >= UNUSED_AFTER);
        let old: Vec<Digest> = old.map(|(digest, _)| digest).collect();
        for digest in &old {
            self.logs.remove(digest);
            self.out.delete(Key::Log { digest: *digest });
        }
        self.out.reply(client, Reply::LogsDropped(old));
    }
}

fn logs_of(experiment: &Experiment) -> impl Iterator<Item = Digest> {
    experiment.record.digests.values().map(|digest| **digest)
}
