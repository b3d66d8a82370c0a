//! Policies as modules: a sweep on this machine, a module that misbehaves, and the command `conformance`.

#[cfg(feature = "wasm")]
use crate::rows::read;
use crate::sandbox::Sandbox;

/// EASY as a module, from its text form.
fn easy() -> Vec<u8> {
    wat::parse_str(include_str!("../../../sdk/examples/easy.wat")).expect("the example is right")
}

/// A module that never ends.
fn endless() -> Vec<u8> {
    let text = "(module (memory (export \"memory\") 1)
        (func (export \"powersweep_v1_input\") (param i32) (result i32) (i32.const 0))
        (func (export \"powersweep_v1_schedule\") (param i32) (result i32) (loop (br 0)) (i32.const 0)))";
    wat::parse_str(text).expect("the test's module is right")
}

fn manifest(module: &str) -> String {
    format!(
        "version = 1\nname = \"modules\"\nseeds = {{ from = 1, count = 3 }}\n\n[workloads.w]\nsource = \"lublin\"\n\
         synthetic_jobs_count = 200\n\n[policies.ours]\nbackfill = \"easy\"\n\n[policies.mine]\nbackfill = \"wasm\"\n\
         wasm_module = \"{module}\"\nwasm_fuel_per_pass = 1000000\n"
    )
}

#[cfg(feature = "wasm")]
#[test]
fn a_sweep_with_a_module_gives_the_rows_of_easy() {
    let sandbox = Sandbox::new();
    sandbox.write("easy.wasm", easy());
    sandbox.write("modules.toml", manifest("easy.wasm"));
    sandbox.run(&["run", "modules.toml", "--quiet"]).exits(0);
    let rows = read(&sandbox.path("results/data"), "modules", "tasks");
    let waits = |policy: &str| -> Vec<String> {
        let mut waits: Vec<(String, String)> = rows
            .iter()
            .filter(|row| row["policy"] == policy)
            .map(|row| (row["seed"].to_string(), row["wait_s_mean"].to_string()))
            .collect();
        waits.sort();
        waits.into_iter().map(|(_, wait)| wait).collect()
    };
    assert_eq!(waits("mine").len(), 3);
    assert_eq!(waits("mine"), waits("ours"));
    sandbox.run(&["verify", "modules"]).exits(0);
}

#[cfg(feature = "wasm")]
#[test]
fn an_endless_module_costs_one_attempt() {
    let sandbox = Sandbox::new();
    sandbox.write("endless.wasm", endless());
    sandbox.write("modules.toml", manifest("endless.wasm"));
    let ended = sandbox.run(&["run", "modules.toml", "--quiet"]).exits(3);
    let text = ended.to_string();
    assert!(text.contains("the module `endless.wasm` used more than 1000000 units of fuel in one pass"), "{text}");
    assert_eq!(read(&sandbox.path("results/data"), "modules", "tasks").len(), 3, "the other policy has its rows");
}

/// Its fuel would last much longer.
#[cfg(feature = "wasm")]
#[test]
fn an_endless_module_ends_at_the_deadline() {
    let sandbox = Sandbox::new();
    sandbox.write("endless.wasm", endless());
    let module = ["-s", "backfill=wasm", "-s", "wasm_module=endless.wasm", "-s", "wasm_fuel_per_pass=3000000000"];
    let limits = ["-s", "synthetic_jobs_count=5", "--task-deadline", "1s"];
    sandbox.run(&[&["simulate"][..], &module, &limits].concat()).exits(1).says(&["not finished within 1 s"]);
}

#[cfg(feature = "wasm")]
#[test]
fn conformance_tests_modules_and_formulas() {
    let sandbox = Sandbox::new();
    sandbox.write("easy.wasm", easy());
    sandbox.write("endless.wasm", endless());
    sandbox.run(&["conformance", "--module", "easy.wasm", "--workloads", "6"]).exits(0).prints(&[
        "ends",
        "once",
        "procs",
        "same bits",
        "most fuel of one pass",
    ]);
    let json =
        sandbox.run(&["conformance", "--formula", "estimate_s * procs", "--workloads", "4", "--json"]).exits(0).json();
    assert_eq!((json["conforms"].as_bool(), json["jobs"].as_i64()), (Some(true), Some(480)));
    // No run comes to the other checks.
    let none =
        sandbox.run(&["conformance", "--formula", "sqrt(wait_s - 5)", "--workloads", "2", "--json"]).exits(1).json();
    let results: Vec<_> = (0..4).map(|at| none["checks"][at]["result"].as_str()).collect();
    assert_eq!(results, [Some("failed"), Some("not tested"), Some("not tested"), Some("not tested")]);
    sandbox.run(&["conformance"]).exits(2).says(&["name a policy by --module or --formula"]);
    sandbox.write("text.wasm", "(module)");
    sandbox.run(&["conformance", "--module", "text.wasm"]).exits(2).says(&["is no WebAssembly binary", "`wat2wasm`"]);
    sandbox
        .run(&["conformance", "--module", "endless.wasm", "--workloads", "1"])
        .exits(1)
        .prints(&["random workload 0: policy error at ", "units of fuel in one pass"]);
}

#[cfg(not(feature = "wasm"))]
#[test]
fn a_build_without_the_feature_names_it() {
    let sandbox = Sandbox::new();
    sandbox.write("easy.wasm", easy());
    sandbox.write("modules.toml", manifest("easy.wasm"));
    sandbox.run(&["run", "modules.toml", "--quiet"]).exits(2).says(&["the cargo feature `wasm`"]);
    assert!(!endless().is_empty());
}
