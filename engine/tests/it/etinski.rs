//! Known results of the implemented interpretation of Etinski et al. 2010, on the paper's workloads.
use powersweep_engine::workload::{Workload, swf};
use powersweep_engine::{Limits, Role, SimSpec, Summary};

use crate::specs::simulate;

use crate::logs;
use crate::specs::Build;

/// A workload of the paper: log, first and last job number, procs.
pub(crate) struct Slice {
    pub(crate) log: &'static str,
    pub(crate) from: i64,
    pub(crate) to: i64,
    pub(crate) procs: i64,
}

pub(crate) const CTC: Slice = Slice { log: "CTC-SP2-1996-3.1-cln", from: 20_000, to: 25_000, procs: 430 };
pub(crate) const SDSC: Slice = Slice { log: "SDSC-SP2-1998-4.2-cln", from: 40_000, to: 45_000, procs: 128 };
pub(crate) const THUNDER: Slice = Slice { log: "LLNL-Thunder-2007-1.1-cln", from: 20_000, to: 25_000, procs: 4008 };
pub(crate) const ATLAS: Slice = Slice { log: "LLNL-Atlas-2006-2.1-cln", from: 10_000, to: 15_000, procs: 9216 };

impl Slice {
    /// The paper's rules without DVFS.
    pub(crate) fn spec(&self) -> SimSpec {
        Build::log()
            .int("job_number_from", self.from)
            .int("job_number_to", self.to)
            .int("procs", self.procs)
            .text("wide_jobs", "clamp")
            .flag("extra_procs", false)
            .0
    }

    /// With the BSLD-threshold rule.
    pub(crate) fn dvfs(&self, threshold: f64, others_max: f64) -> SimSpec {
        Build(self.spec())
            .choose(Role::GearRule, "bsld")
            .real("bsld_threshold", threshold)
            .real("wq_threshold", others_max)
            .0
    }

    pub(crate) fn read(&self, folder: &std::path::Path) -> swf::SwfLog {
        logs::read(folder.join(format!("{}.swf.gz", self.log)))
    }
}

fn run(spec: &SimSpec, workload: &Workload) -> Summary {
    simulate(spec, workload, &Limits::NONE, None).unwrap()
}

#[track_caller]
fn near(ours: f64, anchor: f64) {
    // The known values have 5 to 8 digits: a difference of half a unit of the last place is allowed.
    let text = format!("{anchor}");
    let digits = text.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let tolerance = (1e-6 * anchor.abs()).max(0.5 * 10f64.powi(-(digits as i32)));
    assert!((ours - anchor).abs() <= tolerance, "{ours} is not {anchor}");
}

#[test_with::env(POWERSWEEP_TRACES)]
#[test]
fn results_without_dvfs_equal_the_known_values() {
    let folder = logs::folder();
    for (slice, bsld, wait) in [(CTC, 4.520238, 7786.753), (ATLAS, 1.072983, 68.8172)] {
        let spec = slice.spec();
        let summary = run(&spec, &logs::workload(&spec, &slice.read(&folder)));
        near(summary.bsld_tau600s_mean, bsld);
        near(summary.wait_s_mean, wait);
        assert_eq!(summary.reduced_count, 0);
    }
}

#[test_with::env(POWERSWEEP_TRACES)]
#[test]
fn results_with_dvfs_equal_the_known_values() {
    let folder = logs::folder();
    let cases = [
        (CTC, 2.0, f64::INFINITY, 17_244.31, 3592, 0.82667, 0.80156),
        (THUNDER, 1.5, 4.0, 1425.94, 1962, 0.92763, 0.91954),
    ];
    for (slice, threshold, others_max, wait, reduced, computational, total) in cases {
        let log = slice.read(&folder);
        let base = run(&slice.spec(), &logs::workload(&slice.spec(), &log));
        let spec = slice.dvfs(threshold, others_max);
        let summary = run(&spec, &logs::workload(&spec, &log));
        near(summary.wait_s_mean, wait);
        assert_eq!(summary.reduced_count, reduced);
        near(summary.energy_computational_j / base.energy_computational_j, computational);
        near(summary.energy_total_j / base.energy_total_j, total);
        assert!(summary.energy_residual < 1e-12 && summary.little_residual < 1e-12);
    }
}
