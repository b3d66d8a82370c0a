//! Lawson & Smirni 2005: active procs by the two-level policy and by online simulation.
use powersweep_engine::{Limits, SimSpec, Slot, Summary};

use crate::logs;
use crate::specs::{Build, simulate};

/// A workload of the paper: log, procs, lower level of the two-level policy (Table 1).
struct Whole {
    log: &'static str,
    procs: i64,
    low: i64,
}

const CTC: Whole = Whole { log: "CTC-SP2-1996-3.1-cln", procs: 512, low: 308 };
const KTH: Whole = Whole { log: "KTH-SP2-1996-2.1-cln", procs: 100, low: 75 };
const SDSC: Whole = Whole { log: "SDSC-SP2-1998-4.2-cln", procs: 128, low: 110 };
const BLUE: Whole = Whole { log: "SDSC-BLUE-2000-4.1-cln", procs: 1152, low: 922 };

impl Whole {
    fn spec(&self) -> Build {
        Build::log().int("procs", self.procs).text("estimates", "exact")
    }

    /// All processors, two-level, online simulation.
    fn policies(&self) -> [SimSpec; 3] {
        let low = self.spec().part(Slot::Capacity, "two-level").int("two_level_procs", self.low);
        [self.spec().0, low.0, self.spec().part(Slot::Capacity, "ols").0]
    }

    /// Their summaries, if the logs are there.
    fn summaries(&self, test: &str) -> Option<[Summary; 3]> {
        let log = logs::read(logs::folder(test)?.join(format!("{}.swf.gz", self.log)));
        let workload = logs::workload(&self.spec().0, &log);
        Some(self.policies().map(|spec| simulate(&spec, &workload, &Limits::NONE, None).unwrap()))
    }
}

/// Within a relative distance.
#[track_caller]
fn near(ours: f64, anchor: f64, relative: f64) {
    assert!((ours - anchor).abs() <= relative * anchor.abs(), "{ours} is not {anchor}");
}

#[test]
fn kth_has_its_anchors() {
    let Some(summaries) = KTH.summaries("kth_has_its_anchors") else { return };
    for (summary, slowdown) in summaries.iter().zip([72.583209, 172.564622, 126.200474]) {
        near(summary.slowdown_lawson_tau10s_mean, slowdown, 1e-6);
    }
}

/// Figure 2 and what the text says about it.
#[test]
fn the_whole_logs_show_what_the_paper_claims() {
    let utilizations = [(CTC, 0.556), (KTH, 0.699), (SDSC, 0.834), (BLUE, 0.764)];
    for (whole, utilization) in utilizations {
        let Some([all, two_level, ols]) = whole.summaries("the_whole_logs_show_what_the_paper_claims") else { return };
        let ctc = whole.procs == CTC.procs;
        let slowdown = |summary: &Summary| summary.slowdown_lawson_tau10s_mean;
        let savings = |summary: &Summary| summary.active_savings.unwrap();
        let active = |summary: &Summary| summary.utilization_active.unwrap();
        for summary in [&all, &two_level, &ols] {
            let residuals = [summary.procs_residual, summary.energy_residual, summary.busy_residual];
            assert!(residuals.iter().chain([&summary.little_residual]).all(|r| *r < 1e-12), "{}", whole.log);
        }

        assert!((active(&all) - utilization).abs() <= 0.005, "{}: {}", whole.log, active(&all));
        assert_eq!((savings(&all), all.active_changes_count), (0.0, 0));

        assert!(savings(&two_level) >= if ctc { 0.30 } else { 0.095 }, "{}: {}", whole.log, savings(&two_level));
        assert!(active(&two_level) >= 0.80);
        assert!(ctc || slowdown(&two_level) <= 2.6 * slowdown(&all));

        assert!(ctc || slowdown(&ols) < slowdown(&two_level));
        assert!(slowdown(&ols) <= 200.0);
        assert!(ctc || (0.07..=0.10).contains(&savings(&ols)), "{}: {}", whole.log, savings(&ols));
        assert!(active(&ols) < active(&two_level));
    }
}
