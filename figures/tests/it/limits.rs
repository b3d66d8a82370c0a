//! A drawing ends: by its caller, or at its memory.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use powersweep_figures::Engine;
use serde_json::{Value, json};

/// A spec whose transforms count to a large number.
fn endless() -> Value {
    json!({
        "data": { "sequence": { "start": 0, "stop": 1e9, "as": "x" } },
        "mark": "point",
        "encoding": { "x": { "field": "x", "type": "quantitative" } },
    })
}

fn small() -> Value {
    json!({ "data": { "values": [{ "x": 1 }] }, "mark": "point", "encoding": { "x": { "field": "x", "type": "quantitative" } } })
}

#[test]
fn a_drawing_ends_when_its_caller_says_so() {
    let until = Rc::new(Cell::new(Instant::now() + Duration::from_secs(3_600)));
    let asked = Rc::clone(&until);
    let engine = Engine::start(move || Instant::now() > asked.get()).expect("the libraries load");
    engine.draw(&small()).expect("a drawing");
    until.set(Instant::now() + Duration::from_millis(200));
    let begin = Instant::now();
    let error = engine.draw(&endless()).expect_err("it is stopped").to_string();
    assert!(error.contains("took too long"), "{error}");
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
}

#[test]
fn a_drawing_ends_at_its_memory() {
    let engine = Engine::start(|| false).expect("the libraries load");
    let error = engine.draw(&endless()).expect_err("it needs more memory").to_string();
    assert!(error.contains("needs more than"), "{error}");
}

#[test]
fn a_spec_loads_nothing() {
    let engine = Engine::start(|| false).expect("the libraries load");
    for url in ["file:///etc/passwd", "https://localhost/rows.csv", "rows.json"] {
        let spec = json!({ "data": { "url": url }, "mark": "point", "encoding": {} });
        let error = engine.draw(&spec).expect_err("nothing is loaded").to_string();
        assert!(error.contains("loads nothing"), "{error}");
    }
}

#[test]
fn what_the_libraries_refuse_is_an_error() {
    let engine = Engine::start(|| false).expect("the libraries load");
    for spec in [
        json!({}),
        json!([]),
        json!({ "mark": "point", "data": { "values": [] }, "encoding": { "x": { "field": "x", "type": "quantitative", "axis": { "labelExpr": "(" } } } }),
    ] {
        let error = engine.draw(&spec).expect_err("it is no figure").to_string();
        assert!(error.contains("cannot be drawn"), "{error}");
    }
    engine.draw(&small()).expect("the engine can be used after an error");
}
