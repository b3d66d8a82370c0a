//! PNG, PDF, HTML and CSV files.

use std::process::Command;

use powersweep_dataset::{Column, Frame};
use powersweep_figures::kinds::{Axes, cdf};
use powersweep_figures::{Engine, Look, Width, formats};
use serde_json::Value;

use crate::samples;

fn engine() -> Engine {
    Engine::start(|| false).expect("the libraries load")
}

/// A number of 4 bytes in a PNG file.
fn number(png: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(png[at..at + 4].try_into().expect("four bytes"))
}

#[test]
fn a_png_file_has_300_dots_per_inch() {
    let mut figure = samples::front(&Look::of(Width::Column)).expect("a figure");
    let png = formats::png(&figure.draw(&engine()).expect("a drawing").svg, &Value::Null).expect("a file");
    assert!(png.starts_with(b"\x89PNG"));
    assert_eq!(number(&png, 16), 1050, "3.5 in");
}

#[test]
fn a_pdf_file_has_its_size_and_embedded_fonts_and_no_date() {
    let mut figure = samples::grouped_bars(&Look::of(Width::Page)).expect("a figure");
    let svg = figure.draw(&engine()).expect("a drawing").svg;
    let pdf = formats::pdf(&svg, &Value::Null).expect("a file");
    assert_eq!(pdf, formats::pdf(&svg, &Value::Null).expect("a file"), "the same bytes");
    let has = |text: &str| pdf.windows(text.len()).any(|bytes| bytes == text.as_bytes());
    assert!(has("/FontFile2") && !has("/CreationDate") && !has("/ModDate"));
    assert!(pdf.len() < 200_000, "{} bytes: the fonts are subsets", pdf.len());
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("figure.pdf");
    std::fs::write(&file, pdf).expect("it can be written");
    let Ok(output) = Command::new("pdffonts").arg(&file).output() else {
        println!("skipped: there is no pdffonts (Debian: apt-get install poppler-utils)");
        return;
    };
    let listed = String::from_utf8_lossy(&output.stdout).into_owned();
    let fonts: Vec<&str> = listed.lines().skip(2).collect();
    assert!(
        !fonts.is_empty()
            && fonts.iter().all(|font| font.contains("+LiberationSans") && font.contains(" yes yes yes ")),
        "{listed}"
    );
    let info = Command::new("pdfinfo").arg(&file).output().expect("it is in the same package");
    let info = String::from_utf8_lossy(&info.stdout).into_owned();
    assert!(info.contains("Page size:       515.25 x "), "{info}");
}

#[test]
fn an_html_file_has_all_that_it_needs() {
    let figure = samples::awkward_names(&Look::of(Width::Column)).expect("a figure");
    let html = formats::html(figure.spec(), "a <title> & more");
    assert_eq!(html.matches("</script>").count(), 3, "names of rows end no script");
    assert!(html.contains("<title>a title  more</title>"));
    assert!(html.contains("#figure svg { width: 100%; height: auto; max-height: 97vh }"), "the figure fills the page");
    for outside in ["src=", "<link", "@import"] {
        assert!(!html.contains(&format!("<script {outside}")) && !html.contains(&format!("<{outside}")), "{outside}");
    }
    assert!(html.contains("University of Washington Interactive Data Lab"), "the licence goes with the libraries");
}

/// A style changes what is drawn, key by key.
/// The panels are 28 and 111 hours long.
#[test]
fn panels_with_time_axes_of_their_own_have_ticks_at_whole_hours() {
    let table = Frame::of([
        Column::texts("queue_order", "queue order", ["sjf", "sjf", "fcfs", "fcfs"]),
        Column::numbers("wait_s", "wait", "s", [0.0, 1e5, 0.0, 4e5]),
    ]);
    let axes = Axes { facet: Some("queue_order".to_owned()), free_x: true, ..Axes::of("wait_s", "") };
    let mut figure = cdf(&table, &axes, None, &Look::of(Width::Page)).expect("a figure");
    let drawn = figure.draw(&engine()).expect("a drawing");
    let texts: Vec<&str> = drawn.svg.split("</text>").filter_map(|part| part.rsplit('>').next()).collect();
    // Four and a half days.
    assert!(["0", "1", "2", "3", "4"].iter().all(|day| texts.contains(day)), "{texts:?}");
    assert!(drawn.warnings.is_empty(), "{:?}", drawn.warnings);
}

#[test]
fn a_style_is_drawn() {
    let engine = engine();
    let style = serde_json::json!({ "axis": { "labelColor": "#123456" }, "range": { "category": ["#654321"] } });
    let styled = Look::of(Width::Column).with_style(style).expect("an object");
    let svg = samples::front(&styled).and_then(|mut figure| figure.draw(&engine)).expect("a drawing").svg;
    assert!(svg.contains("#123456") && svg.contains("#654321"));
    assert!(svg.contains("10.67px"), "the other keys stay");
}

/// The second code: a figure in shades of grey still tells the values apart.
#[test]
fn values_have_dashes_or_shapes_beside_their_colours() {
    let engine = engine();
    let svg = |sample: samples::Sample| {
        sample(&Look::of(Width::Page)).and_then(|mut figure| figure.draw(&engine)).expect("a drawing").svg
    };
    for dash in ["stroke-dasharray=\"6,2\"", "stroke-dasharray=\"2,2\"", "stroke-dasharray=\"8,2,2,2\""] {
        assert!(svg(samples::distribution).contains(dash), "{dash}");
    }
    assert!(svg(samples::power_under_a_cap).contains("stroke-dasharray=\"4,2\""));
}
