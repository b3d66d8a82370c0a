//! Each kind in both widths: drawn twice with the same bytes, without warnings, with its width, with texts in their places.
//!
//! `POWERSWEEP_GALLERY=FOLDER` keeps the drawings as PNG, PDF, HTML and SVG files, to look at them.

use std::path::PathBuf;
use std::time::Instant;

use powersweep_figures::{Engine, Look, Width, formats};

use crate::looks::faults;
use crate::samples;

fn folder() -> Option<PathBuf> {
    std::env::var_os("POWERSWEEP_GALLERY").filter(|folder| !folder.is_empty()).map(PathBuf::from)
}

/// Draws the samples of a look and checks them.
fn check(width: &str, look: &Look, engine: &Engine, again: &Engine) -> Vec<String> {
    let mut faulty = Vec::new();
    for (name, sample) in samples::ALL {
        let begin = Instant::now();
        let mut figure = sample(look).unwrap_or_else(|error| panic!("{name}: {error}"));
        let drawn = figure.draw(engine).unwrap_or_else(|error| panic!("{name} {width}: {error}"));
        println!("{name} {width}: {:.2} s, {} kB", begin.elapsed().as_secs_f64(), drawn.svg.len() / 1000);
        if let Some(folder) = folder() {
            std::fs::create_dir_all(&folder).expect("it can be made");
            let write = |ending: &str, bytes: &[u8]| {
                std::fs::write(folder.join(format!("{name}-{width}.{ending}")), bytes).expect("it can be written");
            };
            write("svg", drawn.svg.as_bytes());
            write("png", &formats::png(&drawn.svg, figure.origin()).expect("a PNG file"));
            write("pdf", &formats::pdf(&drawn.svg, figure.origin()).expect("a PDF file"));
            write("html", formats::html(figure.spec(), name).as_bytes());
            write("vl.json", figure.spec().to_string().as_bytes());
        }
        let mut found = faults(&drawn.svg);
        found.extend(drawn.warnings.iter().map(|warning| format!("warning: {warning}")));
        let drawn_px: f64 =
            drawn.svg.split(" width=\"").nth(1).and_then(|rest| rest.split('"').next()?.parse().ok()).expect("a width");
        if !(look.width.px() - 4.0..=look.width.px() + 0.5).contains(&drawn_px) {
            found.push(format!("{drawn_px} px wide instead of {}", look.width.px()));
        }
        if drawn.svg.contains("NaN") {
            found.push("a mark has no place".to_owned());
        }
        // Each such mark is drawn as a layer of its own: thousands of them take minutes as PNG.
        if drawn.svg.contains(" opacity=\"0.") {
            found.push("a mark has an opacity in place of that of its fill or stroke".to_owned());
        }
        if sample(look).and_then(|mut figure| figure.draw(again)).ok().as_ref() != Some(&drawn) {
            found.push("another drawing has other bytes".to_owned());
        }
        faulty.extend(found.into_iter().map(|fault| format!("{name} {width}: {fault}")));
    }
    faulty
}

#[test]
fn every_kind_is_drawn_without_faults_and_twice_alike() {
    let begin = Instant::now();
    let engine = Engine::start(|| false).expect("the libraries load");
    println!("libraries loaded in {:.2} s", begin.elapsed().as_secs_f64());
    let again = Engine::start(|| false).expect("the libraries load");
    let mut faulty = Vec::new();
    for (width, look) in samples::looks() {
        faulty.extend(check(width, &look, &engine, &again));
    }
    assert!(faulty.is_empty(), "{}", faulty.join("\n"));
}

#[test]
fn thin_lines_stay_in_their_panels() {
    let engine = Engine::start(|| false).expect("the libraries load");
    let mut figure = samples::effect_in_panels(&Look::of(Width::Page)).expect("a figure");
    let drawn = figure.draw(&engine).expect("a drawing");
    assert_eq!(drawn.svg.matches("stroke=\"#999999\"").count(), 80);
}
