//! Policies as modules: EASY as a module against the built-in EASY start by start, and modules that misbehave.
use std::sync::Arc;

use powersweep_engine::wasm::{Module, Pass, Scheduler};
use powersweep_engine::{Role, SimError, SimSpec};

use crate::specs::Build;

/// EASY as a module, in its text form.
const EASY: &str = include_str!("../../../sdk/examples/easy.wat");

/// Gives a spec the module EASY.
pub(crate) fn place_easy(spec: &mut SimSpec) {
    let module = Module::new("easy.wasm", &wat::parse_str(EASY).unwrap());
    if let Ok(module) = module {
        spec.name_module([1; 32]);
        spec.place_module(Arc::new(module));
    }
}

pub(crate) fn by_module(spec: &SimSpec) -> SimSpec {
    Build(spec.clone()).choose(Role::Backfill, "wasm").text("wasm_module", "easy.wasm").0
}

#[test]
fn without_its_bytes_a_module_is_an_error() {
    let spec = by_module(&Build::log().int("procs", 4).0);
    let jobs = crate::golden::workload(&[(0., 1., 1., 1)]);
    let error = crate::specs::simulate(&spec, &jobs, &powersweep_engine::Limits::NONE, None).unwrap_err();
    assert_eq!(error.to_string(), "policy error at 0 s: the bytes of the module that `wasm_module` names are missing");
}

/// Starts jobs in queue order while they fit, or answers wrongly.
struct InOrder {
    is_wrong: bool,
}

impl Scheduler for InOrder {
    fn schedule(&self, pass: &Pass) -> Result<Vec<u32>, String> {
        if self.is_wrong {
            return Err("lost its way".to_owned());
        }
        let mut free = pass.free_procs;
        let fits = pass.waiting.iter().take_while(|job| {
            let fits = job.procs <= free;
            free = free.saturating_sub(job.procs);
            fits
        });
        Ok((0..fits.count() as u32).collect())
    }
}

/// In every build: it needs no interpreter.
#[test]
fn a_policy_of_this_process_decides_like_a_built_in_rule() {
    let list: Vec<_> = (0..200).map(|i| (f64::from(i * 2), 10., 12., 1 + i as u32 * 7 % 4)).collect();
    let jobs = crate::golden::workload(&list);
    let run = |is_wrong: bool, build: Build| {
        let mut spec = by_module(&build.int("procs", 4).0);
        spec.place_module(Arc::new(Module::in_process("rust:InOrder", Box::new(InOrder { is_wrong }))));
        let mut rows = Vec::new();
        crate::specs::simulate(&spec, &jobs, &powersweep_engine::Limits::NONE, Some(&mut rows)).map(|_| rows)
    };
    let mut expected = Vec::new();
    let strict = Build::log().choose(Role::Backfill, "none").int("procs", 4).0;
    crate::specs::simulate(&strict, &jobs, &powersweep_engine::Limits::NONE, Some(&mut expected)).unwrap();
    assert_eq!(run(false, Build::log()).unwrap(), expected);
    let error = run(true, Build::log()).unwrap_err().to_string();
    assert!(error.ends_with("the policy `rust:InOrder` lost its way, in pass 1"), "{error}");
    // After the deadline, no pass begins.
    let mut spec = by_module(&Build::log().int("procs", 4).0);
    spec.place_module(Arc::new(Module::in_process("rust:InOrder", Box::new(InOrder { is_wrong: true }))));
    let late = powersweep_engine::Limits { deadline_passed: &|| true, ..powersweep_engine::Limits::NONE };
    assert_eq!(crate::specs::simulate(&spec, &jobs, &late, None).unwrap_err(), SimError::Deadline);
}

/// The parameters are there in every build, and the error says what is missing.
#[cfg(not(feature = "wasm"))]
#[test]
fn a_build_without_the_feature_says_so() {
    let SimError::Invalid(reason) = Module::new("easy.wasm", &wat::parse_str(EASY).unwrap()).unwrap_err() else {
        panic!("it is no error of a run")
    };
    assert!(reason.contains("the module `easy.wasm` cannot run") && reason.contains("feature `wasm`"), "{reason}");
}

#[cfg(feature = "wasm")]
pub(crate) mod run {
    use powersweep_engine::wasm::{Budget, Fault, MEMORY_BYTES_MAX, Release, Session, Waiting};
    use powersweep_engine::workload::Workload;
    use powersweep_engine::{Limits, Value};
    use proptest::prelude::*;

    use super::*;
    use crate::conformance::{cases, jobs, run};
    use crate::etinski::{ATLAS, CTC, SDSC, THUNDER};
    use crate::golden::workload;
    use crate::logs;
    use crate::real_logs::LOGS;
    use crate::specs::simulate;

    pub(crate) fn module(name: &str, text: &str) -> Result<Module, SimError> {
        Module::new(name, &wat::parse_str(text).unwrap())
    }

    fn easy(spec: &SimSpec) -> SimSpec {
        let mut spec = by_module(spec);
        place_easy(&mut spec);
        spec
    }

    #[track_caller]
    fn same_schedule(spec: &SimSpec, workload: &Workload, context: &str) {
        let built_in = Build(spec.clone()).choose(Role::Backfill, "easy").0;
        let (expected, rows) = (run(&built_in, workload), run(&easy(spec), workload));
        assert_eq!(rows.len(), expected.len(), "{context}");
        for (row, expected) in rows.iter().zip(&expected) {
            assert_eq!(row, expected, "{context}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn easy_as_a_module_equals_easy_on_generated_workloads(workload in jobs(16, false), share in 0.5..1.5f64) {
            let mut workload = workload;
            for job in &mut workload.jobs {
                job.estimate_s = (job.estimate_s * share).floor();
            }
            for order in ["fcfs", "sjf", "widest", "wfp3", "f1"] {
                for events in ["batch", "submit-first", "submit-first-held", "finish-first"] {
                    let spec = Build::log().choose(Role::Order, order).text("event_order", events).int("procs", 16).0;
                    same_schedule(&spec, &workload, order);
                }
            }
        }

        /// Bytes that are no module are refused; modules with changed bytes are refused, or run to an answer or a fault.
        #[test]
        fn damaged_modules_never_panic(
            cut in 0.0..1.0f64,
            changes in prop::collection::vec((0.0..1.0f64, any::<u8>()), 0..6),
            noise in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            prop_assert!(Module::new("noise.wasm", &noise).is_err());
            let mut bytes = wat::parse_str(EASY).unwrap();
            let size = bytes.len() as f64;
            for (at, value) in &changes {
                bytes[(at * size) as usize] = *value;
            }
            if cut > 0.8 {
                bytes.truncate((cut * size) as usize);
            }
            if let Ok(module) = Module::new("damaged.wasm", &bytes)
                && let Ok((starts, fuel_used)) = pass_of(&module, 100_000)
            {
                prop_assert!(starts.len() <= 2 && starts.iter().all(|at| *at < 2) && fuel_used <= 100_000);
            }
        }
    }

    /// Two jobs wait for 3 free procs of 4.
    pub(crate) fn two_waiting() -> Pass {
        let job =
            |arrival, procs| Waiting { submit_s: 1.0, estimate_s: 10.0, procs, priority: 1, job_class: 1, arrival };
        Pass {
            now_s: 5.0,
            machine_procs: 4,
            free_procs: 3,
            waiting: vec![job(1, 4), job(2, 2)],
            releases: vec![Release { at_s: 15.0, procs: 1, arrival: 0 }],
        }
    }

    /// One pass over [`two_waiting`] in a new session.
    pub(crate) fn pass_of(module: &Module, fuel: u64) -> Result<(Vec<u32>, u64), Fault> {
        module.schedule(&Session::default(), &two_waiting(), &Budget { fuel, deadline_passed: &|| false })
    }

    #[test]
    fn easy_as_a_module_decides_one_pass() {
        let module = module("easy.wasm", EASY).unwrap();
        let (starts, fuel_used) = pass_of(&module, 100_000).unwrap();
        // The head waits for 4 procs until 15; the second job ends by then.
        assert_eq!(starts, [1]);
        // A page of memory is 1,024 units.
        assert!((1124..3000).contains(&fuel_used), "{fuel_used}");
        assert_eq!(pass_of(&module, fuel_used).unwrap(), (starts, fuel_used), "it repeats");
        assert_eq!(pass_of(&module, fuel_used - 1), Err(Fault::OutOfFuel));
    }

    #[test_with::env(POWERSWEEP_TRACES)]
    #[test]
    fn easy_as_a_module_equals_easy_on_the_papers_workloads() {
        let folder = logs::folder();
        for slice in [CTC, SDSC, THUNDER, ATLAS] {
            same_schedule(&slice.spec(), &logs::workload(&slice.spec(), &slice.read(&folder)), slice.log);
        }
    }

    #[test]
    #[ignore = "minutes: `.ci/full logs`"]
    fn easy_as_a_module_equals_easy_on_the_published_schedules() {
        let folder = logs::folder();
        let mut compared = 0;
        for (name, procs) in [("KTH-SP2", 100), ("SDSC-SP2", 128)] {
            for estimates in ["user", "exact"] {
                let file = folder.join(format!("../published-schedules/{name}.{estimates}.swf.gz"));
                let log = logs::read(file);
                let spec = Build::log()
                    .text("event_order", "submit-first")
                    .text("arrival_ties", "job_id")
                    .text("estimates", estimates)
                    .int("procs", procs)
                    .0;
                let rows = run(&easy(&spec), &logs::workload(&spec, &log));
                let starts: std::collections::BTreeMap<i64, f64> =
                    rows.iter().map(|row| (row.job_id, row.start_s)).collect();
                for record in &log.records {
                    assert_eq!(starts[&record.id], record.submit_s + record.wait_s, "{name} {estimates} {}", record.id);
                    compared += 1;
                }
            }
        }
        assert_eq!(compared, 164_974);
    }

    /// The first 3,000 jobs of each log: a long queue is copied into the module at every pass.
    #[test]
    #[ignore = "minutes: `.ci/full logs`"]
    fn easy_as_a_module_equals_easy_on_real_logs() {
        let folder = logs::folder();
        for (name, _, procs) in LOGS {
            let log = logs::read(folder.join(format!("{name}.swf.gz")));
            let procs = i64::from(procs.expect("the log states the machine"));
            let spec = Build::log().int("procs", procs).text("wide_jobs", "clamp").0;
            let mut workload = logs::workload(&spec, &log);
            workload.jobs.truncate(3_000);
            same_schedule(&spec, &workload, name);
        }
    }

    /// A module that schedules by `body`, with room for its input.
    pub(crate) fn policy(body: &str) -> String {
        format!(
            "(module (memory (export \"memory\") 1)
               (func (export \"powersweep_v1_input\") (param i32) (result i32) (i32.const 0))
               (func $again (param i32) (result i32) (call $again (local.get 0)))
               (func (export \"powersweep_v1_schedule\") (param i32) (result i32) {body}))"
        )
    }

    /// Writes positions to the answer behind `waiting` jobs and `releases`, and returns their number.
    fn answer(waiting: u32, releases: u32, positions: &[u32]) -> String {
        let from = 40 + 32 * waiting + 16 * releases;
        let stores: Vec<String> = (from..)
            .step_by(4)
            .zip(positions)
            .map(|(at, position)| format!("(i32.store (i32.const {at}) (i32.const {position}))"))
            .collect();
        policy(&format!("{} (i32.const {})", stores.join(" "), positions.len()))
    }

    /// On 4 procs: three jobs of 2 procs arrive at 0, the log's numbers are from 1.
    fn error_of(text: &str) -> String {
        let mut spec = by_module(&Build::log().int("procs", 4).0);
        spec.choice_mut(Role::Backfill).set("wasm_fuel", Value::Int(10_000_000)).unwrap();
        spec.choice_mut(Role::Backfill).set("wasm_fuel_per_pass", Value::Int(2_000_000)).unwrap();
        spec.place_module(Arc::new(module("bad.wasm", text).unwrap()));
        let jobs = workload(&[(0., 10., 10., 2), (0., 10., 10., 2), (0., 10., 10., 2)]);
        let error = simulate(&spec, &jobs, &Limits::NONE, None).unwrap_err();
        assert!(matches!(error, SimError::Policy { now_s: 0.0, .. }), "{error:?}");
        error.to_string()
    }

    fn refused(text: &str, what: &str) {
        assert_eq!(error_of(text), format!("policy error at 0 s: the module `bad.wasm` {what}, in pass 1"));
    }

    #[test]
    fn a_module_that_never_ends_is_stopped_by_its_fuel() {
        let what = "used more than 2000000 units of fuel in one pass (`wasm_fuel_per_pass`)";
        refused(&policy("(loop (br 0)) (i32.const 0)"), what);
        refused(&starting("(loop (br 0))"), what);
    }

    /// A module with a start function of this body.
    pub(crate) fn starting(body: &str) -> String {
        policy("(i32.const 0)").replace("(func $again", &format!("(func $start {body}) (start $start) (func $again"))
    }

    #[test]
    fn a_module_that_needs_too_much_memory_is_stopped() {
        let memory = "needs more than 64 MiB of memory";
        refused(
            &policy("(loop (br_if 0 (i32.ge_s (memory.grow (i32.const 1024)) (i32.const 0)))) (i32.const 0)"),
            memory,
        );
        let large = policy("(i32.const 0)").replace("\"memory\") 1)", "\"memory\") 1025)");
        assert_eq!(module("m.wasm", &large).unwrap_err().to_string(), format!("the module `m.wasm` {memory}"));
        refused(&policy("(call $again (i32.const 0))"), "trapped: call stack exhausted");
        let pages = MEMORY_BYTES_MAX >> 16;
        let all = answer(3, 0, &[]).replace("\"memory\") 1)", &format!("\"memory\") {pages})"));
        assert!(error_of(&all).contains("no event is left, but 3 jobs wait"), "it may have all of it");
    }

    #[test]
    fn wrong_decisions_are_refused() {
        let procs = "starts jobs that need more procs than are free: 4 are free, and with job 3 they need 6";
        refused(&answer(3, 0, &[0, 1, 2]), procs);
        refused(&answer(3, 0, &[1, 1]), "starts the waiting job at position 1 twice");
        let range = "starts the waiting job at position 3, and 3 jobs wait (positions count from 0)";
        refused(&answer(3, 0, &[3]), range);
        refused(&policy("(i32.const 4)"), "starts 4 jobs, and 3 wait");
        refused(&policy("(i32.const -1)"), "starts 4294967295 jobs, and 3 wait");
        refused(&policy("unreachable"), "ended at an `unreachable` instruction, as a panic or an abort does");
        refused(&policy("(i32.load (i32.const -8))"), "trapped: out of bounds memory access");
        refused(&policy("(i32.div_u (i32.const 1) (local.get 0))"), "trapped: integer divide by zero");
        let far = policy("(i32.const 0)").replace("(i32.const 0))\n", "(i32.const 65500))\n");
        let what = "gave an address for its input, 65500, behind which its memory has no room for 148 bytes";
        refused(&far, what);
    }

    #[test]
    fn a_module_that_starts_nothing_leaves_no_event() {
        let what = error_of(&policy("(i32.const 0)"));
        assert_eq!(what, "policy error at 0 s: no event is left, but 3 jobs wait and 0 jobs hold procs");
    }

    #[test]
    fn the_fuel_of_a_task_is_bounded() {
        let slow = "(local i32) (local.set 1 (i32.const 15000))
            (loop (br_if 0 (local.tee 1 (i32.sub (local.get 1) (i32.const 1)))))
            (i32.store (i32.const 88) (i32.const 0)) (i32.const 1)";
        let mut spec = by_module(&Build::log().int("procs", 1).0);
        spec.choice_mut(Role::Backfill).set("wasm_fuel", Value::Int(200_000)).unwrap();
        // The answer is behind one waiting job and no release: every job arrives at an idle machine.
        let text = policy(slow).replace("(i32.const 88)", "(i32.const 72)");
        spec.place_module(Arc::new(module("slow.wasm", &text).unwrap()));
        let jobs: Vec<_> = (0..20).map(|job| (f64::from(job) * 10.0, 5.0, 5.0, 1)).collect();
        let error = simulate(&spec, &workload(&jobs), &Limits::NONE, None).unwrap_err().to_string();
        assert!(error.contains("used more than 200000 units of fuel in one task (`wasm_fuel`)"), "{error}");
        assert!(!error.starts_with("policy error at 0 s"), "{error}");
    }

    #[test]
    fn what_is_no_policy_module_is_refused_before_it_runs() {
        let reason = |text: &str| module("m.wasm", text).unwrap_err().to_string();
        let import = "(module (import \"wasi_snapshot_preview1\" \"clock_time_get\" (func)))";
        assert!(
            reason(import).starts_with("the module `m.wasm` imports `clock_time_get` from `wasi_snapshot_preview1`: "),
            "{}",
            reason(import)
        );
        assert_eq!(
            reason("(module)"),
            "the module `m.wasm` exports no function `powersweep_v1_input`: it is no policy module of version 1"
        );
        let other = policy("(i32.const 0)")
            .replace("(export \"powersweep_v1_schedule\") (param i32)", "(export \"powersweep_v1_schedule\")");
        assert!(
            reason(&other).contains("`powersweep_v1_schedule` with another type than (i32) -> i32"),
            "{}",
            reason(&other)
        );
        let hidden = policy("(i32.const 0)").replace("(export \"memory\") ", "");
        assert!(reason(&hidden).contains("exports no memory"), "{}", reason(&hidden));
        let large = Module::new("m.wasm", &vec![0; (1 << 20) + 1]).unwrap_err().to_string();
        assert_eq!(large, "the module `m.wasm` has 1048577 bytes, more than 1048576");
        let text = Module::new("m.wasm", EASY.as_bytes()).unwrap_err().to_string();
        assert!(text.starts_with("the module `m.wasm` cannot be read: "), "{text}");
    }

    /// The sign and the payload of NaN would differ between processors.
    #[test]
    fn nan_has_one_form() {
        let bits = |value: &str| {
            // A module that starts the job at position 0 if the value has the bits of the one form.
            let test = format!("(i64.eq (i64.reinterpret_f64 {value}) (i64.const 0x7ff8000000000000))");
            let body = format!("(i32.store (i32.const 120) (i32.const 0)) {test}");
            pass_of(&module("nan.wasm", &policy(&body)).unwrap(), 10_000).unwrap().0
        };
        let (zero, negative_nan) = ("(f64.div (f64.const 0) (f64.const 0))", "(f64.const -nan:0x4000000000001)");
        assert_eq!(bits(zero), [0]);
        assert_eq!(bits(&format!("(f64.add (f64.const 1) {negative_nan})")), [0]);
        assert_eq!(bits(&format!("(f64.sqrt {negative_nan})")), [0]);
        assert_eq!(bits("(f64.const 1)"), [0; 0]);
    }
}
