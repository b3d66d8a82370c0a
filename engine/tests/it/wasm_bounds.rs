//! Modules are bounded in every pass, and leave nothing to the next one.
use std::cell::Cell;
use std::sync::Arc;

use powersweep_engine::wasm::{Budget, Fault, MEMORY_BYTES_MAX, Module, Session};
use powersweep_engine::{Limits, Role, SimError, Value};

use crate::golden::workload;
use crate::specs::{Build, simulate};
use crate::wasm::by_module;
use crate::wasm::run::{module, pass_of, policy, starting, two_waiting};

/// Whatever a module does, the deadline is looked at soon: it passes at the third look, long before the fuel is used.
#[test]
fn a_pass_ends_when_the_deadline_passes() {
    let locals = "(local i64) ".repeat(20_000);
    let frames = policy("(loop (call $many) (br 0)) (i32.const 0)")
        .replace("(func $again", &format!("(func $many {locals}) (func $again"));
    let memory = |text: String| text.replace("\"memory\") 1)", "\"memory\") 1024)");
    let fill = "(loop (memory.fill (i32.const 0) (i32.const 1) (i32.const 0x4000000)) (br 0)) (i32.const 0)";
    for text in [
        policy("(loop (br 0)) (i32.const 0)"),
        policy("(i32.const 0)").replace("(i32.const 0))\n", "(loop (br 0)) (i32.const 0))\n"),
        starting("(loop (br 0))"),
        memory(policy(fill)),
        frames,
    ] {
        let mut spec = by_module(&Build::log().int("procs", 4).0);
        spec.choice_mut(Role::Backfill).set("wasm_fuel_per_pass", Value::Int(30_000_000)).unwrap();
        spec.place_module(Arc::new(module("slow.wasm", &text).unwrap()));
        let looks = Cell::new(0);
        let deadline_passed = || {
            looks.set(looks.get() + 1);
            looks.get() == 3
        };
        let limits = Limits { deadline_passed: &deadline_passed, ..Limits::NONE };
        let error = simulate(&spec, &workload(&[(0., 10., 10., 2)]), &limits, None).unwrap_err();
        assert_eq!((error, looks.get()), (SimError::Deadline, 3), "{text:.200}");
    }
}

/// Slices of fuel change neither what a module computes nor the fuel that it uses. The pass takes some hundred slices, in
/// the middle of calls, of growing and filled memory and of changes of a table; its answer is that of the loop below.
#[test]
fn a_pass_of_many_slices_computes_what_one_without_a_break_does() {
    const ROUNDS: u32 = 20_000;
    let text = format!(
        "(module (memory (export \"memory\") 1) (table $t 4 funcref) (elem declare func $mix)
           (global $sum (mut i64) (i64.const 7))
           (type $mixing (func (param i64 f64) (result i64)))
           (func $mix (type $mixing)
             (i64.xor (i64.mul (local.get 0) (i64.const 0x5851f42d4c957f2d))
                      (i64.reinterpret_f64 (f64.sqrt (local.get 1)))))
           (func (export \"powersweep_v1_input\") (param i32) (result i32) (i32.const 0))
           (func (export \"powersweep_v1_schedule\") (param i32) (result i32) (local $at i32) (local $f f32)
             (loop $round
               (table.set $t (i32.and (local.get $at) (i32.const 3)) (ref.func $mix))
               (global.set $sum (call_indirect $t (type $mixing)
                 (global.get $sum) (f64.convert_i32_u (local.get $at))
                 (i32.and (local.get $at) (i32.const 3))))
               (local.set $f (f32.add (local.get $f) (f32.const 0.5)))
               (if (i32.eqz (i32.rem_u (local.get $at) (i32.const 400)))
                 (then
                   (global.set $sum (i64.add (global.get $sum)
                     (i64.extend_i32_u (memory.grow (i32.const 1)))))
                   (memory.fill (i32.const 1000) (i32.wrap_i64 (global.get $sum)) (i32.const 60000))
                   (global.set $sum (i64.add (global.get $sum) (i64.load8_u (i32.const 60999))))))
               (local.set $at (i32.add (local.get $at) (i32.const 1)))
               (br_if $round (i32.lt_u (local.get $at) (i32.const {ROUNDS}))))
             (global.set $sum (i64.add (global.get $sum) (i64.trunc_f32_u (local.get $f))))
             (i32.store (i32.const 120) (i32.const 1))
             (i64.eq (global.get $sum) (i64.const EXPECTED))))"
    );
    let (mut sum, mut pages) = (7_u64, 1);
    for at in 0..ROUNDS {
        sum = sum.wrapping_mul(0x5851_f42d_4c95_7f2d) ^ f64::from(at).sqrt().to_bits();
        if at % 400 == 0 {
            sum = sum.wrapping_add(pages);
            pages += 1;
            sum = sum.wrapping_add(sum & 0xff);
        }
    }
    sum = sum.wrapping_add(u64::from(ROUNDS / 2));
    let module = module("long.wasm", &text.replace("EXPECTED", &sum.to_string())).unwrap();
    let (starts, fuel_used) = pass_of(&module, 10_000_000).unwrap();
    assert_eq!(starts, [1], "it computes the same number");
    assert!(fuel_used > 400_000, "{fuel_used}");
    assert_eq!(pass_of(&module, fuel_used), Ok((starts, fuel_used)));
    assert_eq!(pass_of(&module, fuel_used - 1), Err(Fault::OutOfFuel));
}

#[test]
fn the_memory_of_an_instance_uses_fuel() {
    let pages = MEMORY_BYTES_MAX >> 16;
    let large = module("m.wasm", &policy("(i32.const 0)").replace("\"memory\") 1)", &format!("\"memory\") {pages})")));
    let small = module("m.wasm", &policy("(i32.const 0)"));
    let used = |module: Result<Module, SimError>| pass_of(&module.unwrap(), 2_000_000).unwrap().1;
    assert_eq!(used(large) - used(small), (MEMORY_BYTES_MAX as u64 - 65_536) / 64);
    let tables = policy("(i32.const 0)").replace("(func $again", "(table 10000 funcref) (func $again");
    assert!(used(module("m.wasm", &tables)) >= 10_000 * 8 / 64);
}

/// Each module starts the job at position 1 if its state is that of a new instance, and then changes that state.
#[test]
fn nothing_remains_from_one_pass_to_the_next() {
    let start = "(i32.store (i32.const 120) (i32.const 1))";
    let global = "(global $g (mut i32) (i32.const 5)) (global $h (mut f64) (f64.const -0)) (func $again";
    let table = "(table $t 2 4 funcref) (elem (i32.const 0) $again) (elem declare func $again) (func $again";
    let data = "(data (i32.const 9000) \"abc\") (func $again";
    let passive = "(data $d \"abc\") (func $again";
    let begun = "(global $g (mut i32) (i32.const 0))
        (func $start (global.set $g (i32.const 5)) (i32.store (i32.const 50000) (i32.const 77))
          (drop (memory.grow (i32.const 1))) (i32.store8 (i32.const 131071) (i32.const 9)))
        (start $start) (func $again";
    for (name, declared, is_new, change) in [
        (
            "memory",
            "(func $again",
            "(i32.eqz (i32.load (i32.const 30000)))",
            "(i32.store (i32.const 30000) (i32.const 1))",
        ),
        (
            "last byte",
            "(func $again",
            "(i32.eqz (i32.load8_u (i32.const 65535)))",
            "(i32.store8 (i32.const 65535) (i32.const 1))",
        ),
        (
            "data",
            data,
            "(i32.eq (i32.load8_u (i32.const 9002)) (i32.const 99))",
            "(i32.store8 (i32.const 9002) (i32.const 0))",
        ),
        (
            "global",
            global,
            "(i32.eq (global.get $g) (i32.const 5))",
            "(global.set $g (i32.const 6)) (global.set $h (f64.const 1))",
        ),
        ("size", "(func $again", "(i32.eq (memory.size) (i32.const 1))", "(drop (memory.grow (i32.const 1)))"),
        (
            "table",
            table,
            "(i32.eqz (ref.is_null (table.get $t (i32.const 0))))",
            "(table.set $t (i32.const 0) (ref.null func))",
        ),
        (
            "table size",
            table,
            "(i32.eq (table.size $t) (i32.const 2))",
            "(drop (table.grow $t (ref.func $again) (i32.const 1)))",
        ),
        (
            "segment",
            passive,
            "(i32.const 1) (memory.init $d (i32.const 20000) (i32.const 0) (i32.const 3))",
            "(data.drop $d)",
        ),
        (
            "start",
            begun,
            "(i32.and (i32.eq (global.get $g) (i32.const 5)) (i32.and (i32.eq (i32.load (i32.const 50000))
           (i32.const 77)) (i32.eq (i32.load8_u (i32.const 131071)) (i32.const 9))))",
            "(global.set $g (i32.const 1)) (i32.store (i32.const 50000) (i32.const 0)) (i32.store8 (i32.const 131071) (i32.const 0))",
        ),
    ] {
        let text = policy(&format!("{is_new} {start} {change}")).replace("(func $again", declared);
        repeats(name, &text);
    }
}

/// Each instruction writes below everything else that a module writes, and behind it.
#[test]
fn whatever_writes_memory_is_set_back() {
    let mut changes: Vec<String> = [
        "memory.fill (i32.const 45000) (i32.const 7)",
        "memory.copy (i32.const 45000) (i32.const 9000)",
        "memory.init $d (i32.const 45000) (i32.const 0)",
    ]
    .map(|change| format!("({change} (i32.const 3))"))
    .to_vec();
    for (ty, widths) in
        [("i32", ["", "8", "16"].as_slice()), ("i64", &["", "8", "16", "32"]), ("f32", &[""]), ("f64", &[""])]
    {
        let store = |width| format!("({ty}.store{width} offset=5000 (i32.const 40000) ({ty}.const -1))");
        changes.extend(widths.iter().map(store));
    }
    let declared = "(data (i32.const 9000) \"abc\") (data $d \"abc\") (func $again";
    for change in changes {
        for input in [0, 60_000] {
            let answer = format!("(i32.store (i32.const {}) (i32.const 1))", input + 120);
            let text = policy(&format!("(i64.eqz (i64.load (i32.const 45000))) {answer} {change}"));
            let text = text.replace("(i32.const 0))\n", &format!("(i32.const {input}))\n"));
            repeats(&change, &text.replace("(func $again", declared));
        }
    }
}

/// A module starts the job at position 1 in every pass, and uses the fuel of the first pass.
#[track_caller]
fn repeats(name: &str, text: &str) {
    let module = module("state.wasm", text).unwrap_or_else(|error| panic!("{name}: {error}"));
    let session = Session::default();
    let first = pass_of(&module, 100_000).unwrap();
    assert_eq!(first.0, [1], "{name}");
    for _ in 0..2 {
        let budget = Budget { fuel: 100_000, deadline_passed: &|| false };
        // In a new instance, and twice in one that is used again.
        for _ in 0..3 {
            assert_eq!(module.schedule(&session, &two_waiting(), &budget), Ok(first.clone()), "{name}");
        }
        let budget = Budget { fuel: first.1 - 1, ..budget };
        let short = module.schedule(&session, &two_waiting(), &budget);
        assert_eq!(short, Err(Fault::OutOfFuel), "{name}: a pass needs its fuel again");
    }
}

/// Names of the engine's exports belong to the engine.
#[test]
fn a_module_with_names_of_the_engine_is_refused() {
    let text = starting("").replace("(func $start", "(func $start (export \"powersweep:start\")");
    let error = module("m.wasm", &text).unwrap_err().to_string();
    assert!(error.starts_with("the module `m.wasm` cannot be read: "), "{error}");
}

/// Globals and local variables that the engine adds have the next numbers: a module cannot name them.
#[test]
fn a_module_that_uses_what_the_engine_adds_is_refused() {
    let store = "(i32.store (i32.const 120) (i32.const 1))";
    for added in ["(global.set 0 (i32.const 0))", "(drop (global.get 1))", "(local.set 1 (i32.const 0))"] {
        let error = module("m.wasm", &policy(&format!("{store} {added} (i32.const 1)"))).unwrap_err().to_string();
        assert!(error.starts_with("the module `m.wasm` cannot be read: unknown "), "{error}");
    }
}
