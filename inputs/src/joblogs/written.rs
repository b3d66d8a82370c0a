//! A job log in the Standard Workload Format.

use std::fmt::Write as _;

use powersweep_engine::workload::swf::{GPUS_KEY, POWER_KEY, POWER_SERIES_KEY};
use powersweep_experiments::signals::Word as _;
use powersweep_experiments::url::public_name;

use crate::joblogs::build::JobLog;
use crate::ledger::{Effect, Rule as _};

impl JobLog {
    /// The log in the Standard Workload Format 2.2. Its header says where it comes from, how it was read and what happened to
    /// the rows. `digest`: SHA-256 of the file that was read, decompressed.
    pub fn swf(&self, digest: &str) -> String {
        self.text(&self.header(Some(digest)))
    }

    /// [`JobLog::swf`] without the name of the file, the settings and this release: the same jobs and ledger are the same
    /// text.
    pub fn swf_without_origin(&self) -> String {
        self.text(&self.header(None))
    }

    fn text(&self, header: &[(&str, String)]) -> String {
        let mut text = String::with_capacity(self.records.len() * 64 + 4096);
        for (key, value) in header {
            // A value is one line, whatever characters a name has.
            let value: String = value.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            let _ = writeln!(text, "; {key}: {value}");
        }
        for (record, detail) in self.records.iter().zip(&self.details) {
            let _ = writeln!(
                text,
                "{} {} {} {} {} -1 -1 {} {} {} {} {} {} -1 {} {} -1 -1",
                record.id,
                record.submit_s,
                record.wait_s,
                record.run_s,
                record.procs_allocated,
                record.procs_requested,
                record.requested_s,
                record.memory_requested_kib,
                record.status,
                record.user,
                record.group,
                record.queue,
                record.partition,
            );
            if let Some(power_w) = detail.power_w {
                let ghz = detail.ghz.map_or_else(String::new, |ghz| format!(" {ghz}"));
                let _ = writeln!(text, "; {POWER_KEY}: {} {power_w}{ghz}", record.id);
            }
            if let Some(samples) = &detail.power_samples {
                let _ = write!(text, "; {POWER_SERIES_KEY}: {} {}", record.id, samples.step_s);
                samples.watts.iter().for_each(|watts| {
                    let _ = write!(text, " {watts}");
                });
                text.push('\n');
            }
            if let Some(gpus) = detail.gpus.filter(|gpus| *gpus > 0) {
                let _ = writeln!(text, "; {GPUS_KEY}: {} {gpus}", record.id);
            }
        }
        text
    }

    /// `digest`: of the file, if the header names it.
    fn header(&self, digest: Option<&str>) -> Vec<(&'static str, String)> {
        let jobs = self.records.len().to_string();
        let mut header = vec![("Version", "2.2".to_owned())];
        if digest.is_some() {
            header.push((
                "Conversion",
                format!("powersweep {} import {}", env!("CARGO_PKG_VERSION"), self.settings.format.word()),
            ));
        }
        header.extend([("MaxJobs", jobs.clone()), ("MaxRecords", jobs)]);
        header.extend(self.facts.unix_start_s.map(|start_s| ("UnixStartTime", start_s.to_string())));
        header.extend(self.settings.timezone.clone().filter(|_| digest.is_some()).map(|zone| ("TimeZoneString", zone)));
        header.extend(self.settings.machine_procs.map(|procs| ("MaxProcs", procs.to_string())));
        let queues = self.queues.iter().zip(1..);
        header.extend(queues.map(|(name, number)| ("Queue", format!("{number} {name}"))));
        if let Some(digest) = digest {
            let digest = if digest.is_empty() { String::new() } else { format!(", SHA-256 {digest}") };
            header.push(("ImportSource", format!("{}{digest}", public_name(&self.file))));
            header.push(("ImportSettings", self.settings.describe()));
        }
        let ledger = &self.ledger;
        header.push((
            "ImportLedger",
            format!("{} rows read = {} kept + {} dropped", ledger.read, ledger.kept, ledger.dropped()),
        ));
        for (rule, count) in ledger.rules() {
            let key = match rule.effect() {
                Effect::Dropped => "ImportDropped",
                Effect::Changed | Effect::Added => "ImportChanged",
            };
            let text = format!("{} {} (line {} first): {}", count.rows, rule.name(), count.first_line, rule.sentence());
            header.push((key, text));
        }
        if self.facts.widest_procs > 0 {
            let procs = self.settings.procs.word();
            let size = match self.facts.peak_procs {
                Some(peak) => format!("at most {peak} were allocated at once"),
                None => format!("when jobs started is not known; the widest job has {}", self.facts.widest_procs),
            };
            header.push(("Note", format!("A processor is one of {procs}; {size}")));
        }
        header.push(("Note", "Users, groups and queues are numbered in the order in which they occur".to_owned()));
        header
    }
}
