//! The queue order `formula`: against the built-in orders start by start, and jobs without a value.
use powersweep_engine::batch::policy::order::formula::VARIABLES;
use powersweep_engine::batch::policy::order::{KEYED, Waiting, f1, priority, sjf, wfp3, widest};
use powersweep_engine::formula::Formula;
use powersweep_engine::workload::Workload;
use powersweep_engine::{Limits, Role, SimError, SimSpec, Value, components};
use proptest::prelude::*;

use crate::conformance::{cases, jobs, run};
use crate::etinski::{ATLAS, CTC, SDSC, THUNDER};
use crate::golden::workload;
use crate::logs;
use crate::real_logs::LOGS;
use crate::specs::{Build, simulate};

const F1: &str = "log10(max(estimate_s, 1)) * procs + 870 * log10(max(submit_s - first_submit_s, 1))";

/// The built-in orders as formulas.
const BUILT_IN: [(&str, &str); 6] = [
    ("fcfs", "submit_s"),
    ("priority", "priority"),
    ("sjf", "estimate_s"),
    ("widest", "-procs"),
    ("wfp3", "-((wait_s / max(estimate_s, 1)) ^ 3 * procs)"),
    ("f1", F1),
];

fn ordered(spec: &SimSpec, order: &str) -> SimSpec {
    Build(spec.clone()).choose(Role::Order, order).0
}

fn by_formula(spec: &SimSpec, formula: &str) -> SimSpec {
    Build(ordered(spec, "formula")).text("formula", formula).0
}

#[track_caller]
fn same_schedule(spec: &SimSpec, workload: &Workload, order: &str, formula: &str, context: &str) {
    let (built_in, own) = (run(&ordered(spec, order), workload), run(&by_formula(spec, formula), workload));
    for (expected, row) in built_in.iter().zip(&own) {
        assert_eq!(row, expected, "{context}: {order} and `{formula}`");
    }
    assert_eq!(built_in.len(), own.len(), "{context}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn built_in_orders_equal_their_formulas_on_generated_workloads(workload in jobs(16, false)) {
        let mut workload = workload;
        for job in &mut workload.jobs {
            job.priority = 1 + (job.id % 3) as u8;
        }
        for backfill in ["none", "easy", "conservative"] {
            for events in ["batch", "submit-first", "submit-first-held", "finish-first"] {
                let spec = Build::log().choose(Role::Backfill, backfill).text("event_order", events).int("procs", 16).0;
                for (order, formula) in BUILT_IN {
                    same_schedule(&spec, &workload, order, formula, backfill);
                }
            }
        }
    }

    #[test]
    fn keys_that_change_never_rise(
        wait_s in 0.0..1e6f64,
        more_s in 0.0..1e6f64,
        estimate_s in prop_oneof![Just(0.0), 0.0..1e6f64],
        procs in 1..100_000u32,
    ) {
        for order in KEYED.iter().filter(|order| order.changes) {
            let (submit_s, procs) = (1e6, f64::from(procs));
            let at = |now_s| Waiting { now_s, first_submit_s: 0.0, submit_s, estimate_s, procs, priority: 1.0 };
            let (now, later) = ((order.key)(&at(submit_s + wait_s)), (order.key)(&at(submit_s + wait_s + more_s)));
            prop_assert!(later <= now, "{}", order.component.name);
        }
    }

    /// The keys themselves, which an order only compares.
    #[test]
    fn keys_of_formulas_have_the_bits_of_built_in_keys(
        submit_s in 0.0..1e9f64,
        wait_s in prop_oneof![Just(0.0), 0.0..1e6f64],
        first in 0.0..1.0f64,
        estimate_s in prop_oneof![Just(0.0), 0.0..1e6f64],
        procs in 1..100_000u32,
        priority in 1..=255u8,
    ) {
        let now_s = submit_s + wait_s;
        let (procs, priority) = (f64::from(procs), f64::from(priority));
        let waiting = Waiting { now_s, first_submit_s: submit_s * first, submit_s, estimate_s, procs, priority };
        let read = |at: u8| match VARIABLES[usize::from(at)].name {
            "submit_s" => waiting.submit_s,
            "first_submit_s" => waiting.first_submit_s,
            "estimate_s" => waiting.estimate_s,
            "procs" => waiting.procs,
            "priority" => waiting.priority,
            "wait_s" => waiting.now_s - waiting.submit_s,
            other => panic!("{other}"),
        };
        let keys = [priority::ORDER.key, sjf::ORDER.key, widest::ORDER.key, wfp3::ORDER.key, f1::ORDER.key];
        for ((name, text), key) in BUILT_IN[1..].iter().zip(keys) {
            let value = Formula::parse(text, VARIABLES).unwrap().value(read);
            prop_assert_eq!(value.to_bits(), key(&waiting).to_bits(), "{}", name);
        }
    }
}

#[test_with::env(POWERSWEEP_TRACES)]
#[test]
fn built_in_orders_equal_their_formulas_on_the_papers_workloads() {
    let folder = logs::folder();
    for slice in [CTC, SDSC, THUNDER, ATLAS] {
        let workload = logs::workload(&slice.spec(), &slice.read(&folder));
        for backfill in ["none", "easy", "conservative"] {
            let spec = Build(slice.spec()).choose(Role::Backfill, backfill).0;
            for (order, formula) in BUILT_IN {
                same_schedule(&spec, &workload, order, formula, slice.log);
            }
        }
    }
}

#[test]
#[ignore = "minutes: `.ci/full logs`"]
fn built_in_orders_equal_their_formulas_on_whole_logs() {
    let folder = logs::folder();
    for (name, _, procs) in LOGS {
        let log = logs::read(folder.join(format!("{name}.swf.gz")));
        let procs = i64::from(procs.expect("the log states the machine"));
        let spec = Build::log().int("procs", procs).text("wide_jobs", "clamp").0;
        let workload = logs::workload(&spec, &log);
        // This log's long queue takes minutes to sort at every pass.
        for (order, formula) in BUILT_IN.into_iter().filter(|(order, _)| (name, *order) != ("RICC-2010-2", "wfp3")) {
            same_schedule(&spec, &workload, order, formula, name);
        }
    }
}

/// Of a long queue, a pass takes the keys of the near jobs alone if no key can rise, and of all jobs if nothing is known.
#[test]
fn a_long_queue_has_the_same_first_job_by_near_keys_as_by_all() {
    let job = |at: u32| {
        let (run_s, more_s) = (f64::from(50 + at * 7_919 % 500), f64::from(at * 8_191 % 300));
        (f64::from(at * 5), run_s, run_s + more_s, 1 + at * 31 % 16)
    };
    let workload = workload(&(0..900).map(job).collect::<Vec<_>>());
    for backfill in ["none", "easy"] {
        let spec = Build::log().choose(Role::Backfill, backfill).int("procs", 16).0;
        let wfp3 = BUILT_IN[4].1;
        same_schedule(&spec, &workload, "wfp3", wfp3, backfill);
        for formula in [wfp3, "-floor(wait_s / 3600) * procs", "sqrt(estimate_s) * 1000 - now_s * procs"] {
            let of_queue = run(&by_formula(&spec, &format!("{formula} + 0 * queue_length")), &workload);
            assert_eq!(run(&by_formula(&spec, formula), &workload), of_queue, "{backfill}: {formula}");
        }
    }
}

/// The variables that no built-in order reads. On 4 procs, job 1 runs until 10.
#[test]
fn formulas_read_the_job_and_the_queue() {
    let jobs = [(0., 10., 10., 4), (1., 5., 5., 4), (2., 4., 6., 2), (3., 3., 3., 4)];
    let starts = |formula: &str| -> Vec<f64> {
        let spec = Build::log().choose(Role::Order, "formula").text("formula", formula).choose(Role::Backfill, "none");
        let mut workload = workload(&jobs);
        workload.jobs.iter_mut().for_each(|job| job.class = (4 - job.id) as u8);
        run(&spec.int("procs", 4).0, &workload).iter().map(|job| job.start_s).collect()
    };
    // Areas are 20, 12 and 12: of equal ones the first arrival is first.
    assert_eq!(starts("area_proc_s"), [0., 17., 10., 14.]);
    assert_eq!(starts("-area_proc_s"), [0., 10., 15., 19.]);
    // Classes from 1 are 3, 2 and 1.
    assert_eq!(starts("job_class"), [0., 17., 13., 10.]);
    assert_eq!(starts("abs(job_class - 2)"), [0., 14., 10., 19.]);
    // With all three waiting at 10 the shortest is first; then, with two, the longest.
    assert_eq!(starts("if(queue_length == 3, estimate_s, -estimate_s)"), [0., 17., 13., 10.]);
    // While no proc is free the widest would be first; at 10 all are, and the narrowest is.
    assert_eq!(starts("if(free_procs == machine_procs, procs, -procs)"), [0., 14., 10., 19.]);
    assert_eq!(starts("if(now_s < 11, -submit_s, submit_s)"), [0., 13., 18., 10.]);
    assert_eq!(starts("if(wait_s >= 8, 0, 1)"), [0., 10., 15., 19.]);
}

/// Under `submit-first`, the procs of an ended job may be free before an arrival's pass. The completion's own pass follows,
/// in which fewer jobs wait: a formula of the queue has other values.
#[test]
fn the_pass_of_a_completion_sorts_again_if_its_procs_were_free_before() {
    let jobs =
        [(2., 1., 1., 1), (2., 10., 10., 7), (4., 10., 10., 1), (11., 2., 3., 2), (12., 41., 41., 7), (13., 5., 5., 7)];
    let formula = "if(queue_length > 3, estimate_s, -procs) + if(free_procs >= procs, 0, 1000)";
    for pools in [false, true] {
        let spec = Build::log().choose(Role::Order, "formula").text("formula", formula).choose(Role::Backfill, "easy");
        let spec = spec.text("event_order", "submit-first").int("procs", 7);
        let spec = if pools { spec.int("gpus", 1).text("gpus_from", "log") } else { spec };
        let starts: Vec<f64> = run(&spec.0, &workload(&jobs)).iter().map(|job| job.start_s).collect();
        assert_eq!(starts[2], 13., "{starts:?} with pools: {pools}");
    }
}

/// Infinite values are first or last.
#[test]
fn infinite_values_are_ordered() {
    let jobs = [(0., 10., 10., 1), (1., 2., 2., 1), (2., 0., 0., 1), (3., 1., 1., 1)];
    let starts = |formula: &str| -> Vec<f64> {
        let spec = Build::log().choose(Role::Order, "formula").text("formula", formula).choose(Role::Backfill, "none");
        run(&spec.int("procs", 1).0, &workload(&jobs)).iter().map(|job| job.start_s).collect()
    };
    assert_eq!(starts("1 / estimate_s"), [0., 10., 13., 12.]);
    assert_eq!(starts("-1 / estimate_s"), [0., 11., 10., 10.]);
}

#[test]
fn a_job_without_a_value_ends_the_task() {
    let jobs = workload(&[(0., 10., 10., 4), (1., 5., 5., 4), (2., 5., 0., 4), (60., 5., 5., 4)]);
    let ends = |formula: &str, backfill: &str| {
        let spec = Build::log().choose(Role::Backfill, backfill).int("procs", 4).0;
        simulate(&by_formula(&spec, formula), &jobs, &Limits::NONE, None).map(|summary| summary.last_finish_s)
    };
    for backfill in ["none", "easy", "conservative"] {
        // Job 3 arrives with an estimate of 0.
        assert_eq!(
            ends("wait_s / estimate_s", backfill),
            Err(SimError::Invalid(
                "`formula` has no value (NaN) for job 3 at 2 s, with estimate_s = 0, wait_s = 0: bound what it divides, \
                 and what it takes roots and logarithms of, as in max(estimate_s, 1)"
                    .to_owned()
            )),
            "{backfill}"
        );
        // The last job starts when it arrives: its value would have had no effect.
        let late = ends("sqrt(50 - submit_s)", backfill).unwrap_err().to_string();
        assert!(late.contains("for job 4 at 60 s, with submit_s = 60:"), "{backfill}: {late}");
        assert_eq!(ends("if(submit_s < 50, sqrt(50 - submit_s), 0)", backfill), Ok(65.0), "{backfill}");
        let constant = ends("sqrt(-1)", backfill).unwrap_err().to_string();
        assert!(constant.contains("for job 1 at 0 s, and reads no variable: bound"), "{backfill}: {constant}");
        // A value that is lost while the job waits.
        let lost = ends("sqrt(9 - wait_s)", backfill).unwrap_err().to_string();
        assert!(lost.contains("for job 2 at 15 s") || lost.contains("for job 3 at 15 s"), "{backfill}: {lost}");
    }
}

#[test]
fn a_spec_keeps_the_text_of_the_formula_itself() {
    let spec = by_formula(&SimSpec::new(), " ( submit_s )+2.0*( wait_s)");
    assert_eq!(spec.choice(Role::Order).text("formula"), "submit_s + 2 * wait_s");
    let component = components::find(Role::Order, "formula").unwrap();
    let param = component.params[0];
    let error = param.check(Value::Text("submit_s +".to_owned())).unwrap_err().to_string();
    assert_eq!(
        error,
        "`formula` must be an expression (at column 11, expected a number, a variable, a function, `-` or `(`, found the \
         end), not \"submit_s +\""
    );
    let number = param.check(Value::Int(5)).unwrap_err().to_string();
    assert!(number.starts_with("`formula` must be an expression over submit_s, first_submit_s, "), "{number}");
    // Every variable that changes with time is named in the documentation, and no other.
    for variable in VARIABLES {
        assert_eq!(param.doc.contains(&format!("`{}`", variable.name)), variable.changes, "{}", variable.name);
    }
}

/// The guide's formulas parse; its F1 and WFP3 give the schedules of the built-in orders.
#[test]
fn formulas_of_the_guide_are_right() {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/tutorials/policy.md");
    let text = std::fs::read_to_string(page).unwrap();
    let formula_of = |policy: &str| {
        let block = text.split_once(&format!("[policies.{policy}]")).unwrap().1;
        let formula = block.split_once("formula = \"").unwrap().1.split_once('"').unwrap().0;
        assert_eq!(
            Formula::parse(formula, VARIABLES).unwrap().to_string(),
            formula,
            "it is written as columns have it"
        );
        formula
    };
    assert_eq!(text.matches("\nformula = \"").count(), 7);
    let mut spec = Build(SimSpec::new()).int("synthetic_jobs_count", 2000).0;
    spec.seed = 7;
    let jobs = powersweep_engine::workload::build(&spec, None).unwrap();
    let jobs_by = |policy: &str| run(&by_formula(&spec, formula_of(policy)), &jobs);
    for (policy, order) in [("F1", "f1"), ("WFP3", "wfp3")] {
        assert_eq!(jobs_by(policy), run(&ordered(&spec, order), &jobs), "{policy}");
    }
    for policy in ["SAF", "F2", "F3", "F4", "UNICEF"] {
        assert_ne!(jobs_by(policy), run(&ordered(&spec, "fcfs"), &jobs), "{policy}");
    }
}
