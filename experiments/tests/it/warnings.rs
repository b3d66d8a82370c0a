//! Warnings about sweeps, with their places in the manifest.

use powersweep_engine::batch::physics::{Demand, Finding, FindingKind, Place};
use powersweep_engine::workload;
use powersweep_experiments::{TaskSpec, Warning};

use crate::sweep;

const MANIFEST: &str = r#"version = 1
name = "capped"
seeds = { from = 1, count = 1_000 }
[workloads.small]
source = "poisson"
synthetic_jobs_count = 20
[platforms.p]
procs = 100
power_top_w = 100
[policies.free]
[policies.capped]
power_cap = ["admission", "pdrc"]
cap_schedule_w = [[9_000], [20_000], [30_000]]
cap_period_s = 600
"#;

fn warnings(text: &str) -> Vec<Warning> {
    let demand = |task: &TaskSpec| workload::build(&task.sim, None).map(|jobs| Demand::of(&jobs)).ok();
    sweep(text).warnings(demand, |_, _| Vec::new())
}

#[test]
fn a_warning_has_its_line_its_block_and_its_tasks() {
    let found = warnings(MANIFEST);
    assert_eq!(found.len(), 1, "{found:?}");
    let text = found[0].text("sweep.toml");
    assert!(
        text.starts_with("warning: the cap of 20000 W never binds: all 100 procs draw at most 10000 W\n"),
        "{text}"
    );
    let place = "  at sweep.toml:13 [policies.capped] in 4 of 7 combinations, first in task 1000; lower the cap";
    assert!(text.contains(place), "{text}");
}

#[test]
fn power_left_at_its_default_is_a_note() {
    let found =
        warnings(&MANIFEST.replace("power_top_w = 100\n", "").replace("[9_000], [20_000], [30_000]", "[90], [80]"));
    let kinds: Vec<FindingKind> = found.iter().map(|warning| warning.kind).collect();
    assert_eq!(kinds, [FindingKind::RelativePower], "{found:?}");
    assert!(found[0].text("s").contains("note: power is relative") && found[0].is_note(), "{found:?}");
    assert_eq!((found[0].line, found[0].block.as_str()), (7, "[platforms.p]"));
}

#[test]
fn wide_jobs_and_jobs_over_every_cap_name_a_way_out() {
    let wide = MANIFEST.replace("procs = 100", "procs = 1").replace("100\n[pol", "1e6\n[pol");
    let found = warnings(&wide);
    let text: String = found.iter().map(|warning| warning.text("s") + "\n").collect();
    for expected in
        ["procs, the machine has 1: the task fails", "`wide_jobs` = \"clamp\" or \"drop\"", "s:4 [workloads.small]"]
    {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let over = MANIFEST.replace("[[9_000], [20_000], [30_000]]", "[2_400]");
    let text: String = warnings(&over).iter().map(|warning| warning.text("s") + "\n").collect();
    for expected in
        ["the greatest cap is 2400 W: it never starts, and the task fails", "`over_cap_jobs` = \"drop\"", "s:13"]
    {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

#[test]
fn a_schedule_without_a_period_is_shown_as_an_axis_too() {
    let found = warnings(&MANIFEST.replace("[[9_000], [20_000], [30_000]]\ncap_period_s = 600", "[9_000, 8_000]"));
    assert_eq!(found.iter().map(|warning| warning.kind).collect::<Vec<_>>(), [FindingKind::Schedule], "{found:?}");
    assert!(found[0].help.contains("write [[9000], [8000]]"), "{found:?}");
    let meant = MANIFEST.replace("[[9_000], [20_000], [30_000]]", "[9_000, 8_000]");
    assert_eq!(warnings(&meant.replace("= 600", "= 3_000")), []);
}

#[test]
fn shipped_manifests_have_no_warnings_but_the_note_on_relative_power() {
    for (name, text) in powersweep_experiments::manifests::builtin() {
        let found = sweep(text).warnings(|_| None, |_, _| Vec::new());
        assert!(found.iter().all(Warning::is_note), "{name}: {found:?}");
    }
}

#[test]
fn a_finding_about_a_signal_has_the_line_of_its_block() {
    let text = format!("{MANIFEST}[signals.grid]\nquantity = \"carbon\"\nfile = \"grid.csv\"\n");
    let finding = |about: &'static str| Finding {
        kind: FindingKind::SignalElsewhere,
        about,
        place: Place::Signal("grid".to_owned()),
        message: String::new(),
        help: String::new(),
    };
    for (about, line) in [("file", 17), ("anchor", 15)] {
        let demand = |_: &TaskSpec| Some(Demand::default());
        let found = sweep(&text).warnings(demand, |_, _| vec![finding(about)]);
        let found = found.iter().find(|warning| warning.kind == FindingKind::SignalElsewhere).expect("the finding");
        assert_eq!((found.line, found.block.as_str(), found.found), (line, "[signals.grid]", found.checked));
    }
}

/// 10^15 tasks: a sample of the combinations is checked.
#[test]
fn a_huge_sweep_has_its_warnings_at_once() {
    let huge = MANIFEST.replace("count = 1_000", "count = 1_000_000_000").replace(
        "power_top_w = 100",
        "power_top_w = { from = 100, to = 1000100, step = 1 }\nsize_factor = { from = 1, to = 1.5, step = 0.1 }",
    );
    let found = warnings(&huge);
    assert!(found.iter().any(|warning| warning.kind == FindingKind::IdleCap), "{found:?}");
}
