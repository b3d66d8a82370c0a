//! Figures and tables of papers: their numbers are those of `check`, and an experiment of one's own may have the rows.

use std::collections::BTreeMap;

use crate::sandbox::{Sandbox, traces};
#[cfg(feature = "figures")]
use crate::{
    check::{FIGURES, claims},
    sweeps::synthetic,
};

/// The rows of a CSV text by the names of its columns.
fn rows(text: &str) -> Vec<BTreeMap<String, String>> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    reader.deserialize().map(|row| row.expect("a row")).collect()
}

/// The pairs of a published or expected number and ours, of claims with a number.
fn pairs(sandbox: &Sandbox, paper: &str, traces: &[&str]) -> Vec<(f64, f64)> {
    let checked = sandbox.run(&[&["check", paper, "--json", "--quiet"], traces].concat());
    let found = checked.json();
    let claims = found["claims"].as_array().expect("a list").clone();
    claims.iter().filter_map(|claim| Some((claim["stated_value"].as_f64()?, claim["our_value"].as_f64()?))).collect()
}

/// The numbers beside published ones in the presets of a paper; each pair is one of `check`.
fn compared(sandbox: &Sandbox, paper: &str, presets: &[&str], traces: &[&str]) -> usize {
    let known = pairs(sandbox, paper, traces);
    let mut count = 0;
    for preset in presets {
        let shown = sandbox.run(&["results", paper, "--preset", preset, "--format", "csv"]).exits(0);
        for row in rows(&shown.stdout) {
            for (name, published) in row.iter().filter(|(name, text)| name.ends_with(" published") && !text.is_empty())
            {
                let ours = &row[name.trim_end_matches(" published")];
                let pair: (f64, f64) = (published.parse().expect("a number"), ours.parse().expect("a number"));
                // The reader of JSON may be off by the last bit.
                let is_near = |one: f64, other: f64| (one - other).abs() <= 1e-12 * other.abs();
                let is_known = known.iter().any(|known| is_near(known.0, pair.0) && is_near(known.1, pair.1));
                assert!(is_known, "{paper} {preset}: {name} {pair:?}");
                count += 1;
            }
        }
    }
    count
}

#[test]
fn the_numbers_of_presets_are_those_of_check() {
    let presets = ["figure3", "figure5", "figure6", "table3"];
    assert_eq!(compared(&Sandbox::new(), "tracsim2014", &presets, &[]), 6 + 8 + 10 + 14);
}

#[test_with::env(POWERSWEEP_TRACES)]
#[test]
fn the_numbers_of_presets_on_published_logs_are_those_of_check() {
    let presets = ["figure4", "figure5", "table1", "table3"];
    // Figure 5 repeats the five numbers of Table 1 at each of three thresholds.
    assert_eq!(compared(&Sandbox::new(), "etinski2010", &presets, &["--traces", &traces()]), 4 + 15 + 5 + 25);
}

#[test]
fn presets_are_listed_and_missing_rows_say_what_to_run() {
    let sandbox = Sandbox::new();
    let all = sandbox.run(&["plot", "--presets"]).exits(0);
    all.prints(&["etinski2010/figure3", "do2013/figure16", "aldaoud2011/table7", "do2013_dvfs_rate"]);
    let of_one = sandbox.run(&["plot", "lawson2005", "--presets"]).exits(0);
    assert!(of_one.stdout.contains("figure8") && !of_one.stdout.contains("etinski"), "{of_one}");
    sandbox.run(&["plot", "nosuch", "--presets"]).exits(2).says(&["paper"]);
    let table = |experiment: &str, preset: &str| sandbox.run(&["results", experiment, "--preset", preset]);
    table("etinski2010", "table4").exits(2).says(&["unknown preset `table4`", "presets of etinski2010: figure3"]);
    table("mine", "table1").exits(2).says(&["mine is no experiment of a paper", "--preset lawson2005/table1"]);
    table("mine", "etinski2011/table1").exits(2).says(&["did you mean `etinski2010`?"]);
    std::fs::create_dir_all(sandbox.path("results/data")).expect("it can be made");
    let missing = table("lawson2005", "figure8").exits(2);
    missing.says(&[
        "figure8 of lawson2005 needs the experiment lawson2005_sensitivity",
        "`powersweep run lawson2005_sensitivity`",
    ]);
    table("mine", "etinski2010/table1")
        .exits(2)
        .says(&["needs the experiment mine", "the tasks of the manifest etinski2010"]);
    table("tracsim2014", "figure8").exits(2).says(&["Figure 8 has no numbers", "powersweep plot"]);
    sandbox.run(&["results", "etinski2010", "--preset", "table1", "--by", "policy"]).exits(2);
}

/// A copy of a paper's manifest with fewer lists.
#[test]
fn an_experiment_of_ones_own_has_the_rows_of_a_paper() {
    let sandbox = Sandbox::new();
    let manifest = powersweep_experiments::manifests::find("tracsim2014_caps30").expect("it is shipped");
    let few = manifest.replace("count = 40", "count = 2").replace("\"tracsim2014_caps30\"", "\"mine\"");
    sandbox.write("mine.toml", few.as_str());
    sandbox.write("second.toml", few.replace("\"mine\"", "\"tracsim2014_caps30\""));
    for file in ["mine.toml", "second.toml"] {
        sandbox.run(&["run", file, "--quiet"]).exits(0);
    }
    let shown = sandbox.run(&["results", "mine", "--preset", "tracsim2014/figure7", "--format", "csv"]).exits(0);
    let of_all = sandbox
        .run(&[
            "results",
            "mine",
            "--by",
            "workload,policy",
            "--columns",
            "turnaround_s_mean_priority_1",
            "--format",
            "csv",
        ])
        .exits(0);
    let (shown, of_all) = (rows(&shown.stdout), rows(&of_all.stdout));
    assert_eq!(shown.len(), 3 * 3 * 4);
    let pdrc = of_all.iter().find(|row| row["workload"] == "small" && row["policy"] == "pdrc").expect("a row");
    let bar = |row: &&BTreeMap<String, String>| {
        row["workload"] == "small jobs" && row["priority"] == "1 (high)" && row["policy"] == "PDRC"
    };
    let bar = shown.iter().find(bar).expect("a bar");
    let mean = pdrc.iter().find(|(name, _)| name.contains("mean") && !name.contains("ci")).expect("a mean").1;
    let (bar, mean): (f64, f64) = (bar["mean turnaround"].parse().expect("a number"), mean.parse().expect("a number"));
    assert!((bar - mean).abs() < 1e-9 * mean, "{bar} {mean}");
    // Formats for papers.
    for (format, begin) in [("markdown", "| workload |"), ("latex", "\\begin{tabular}"), ("typst", "#table(")] {
        let text = sandbox.run(&["results", "mine", "--preset", "tracsim2014/figure7", "--format", format]).exits(0);
        assert!(text.stdout.starts_with(begin), "{text}");
    }
}

/// Claims and figures of a paper of one's own are one file. Its manifest has another name than its experiment.
#[cfg(feature = "figures")]
#[test]
fn a_paper_of_ones_own_is_reproduced_as_a_shipped_one_is() {
    let sandbox = Sandbox::new();
    sandbox.write("study/manifest.toml", synthetic("two", 2));
    sandbox.write("study/paper.toml", claims("manifest.toml", 1e9, true) + FIGURES);
    let reproduced = sandbox.run(&["reproduce", "./study/paper.toml", "-o", "drawn", "--quiet"]).exits(0);
    reproduced.says(&["3 of 3 demanded claims of the paper hold"]);
    let page = std::fs::read_to_string(sandbox.path("drawn/report.html")).expect("the page");
    assert!(page.contains("A paper of our own") && page.contains("Figure 1."), "{page}");
    for file in ["figure1.svg", "figure1.pdf", "table1.md"] {
        assert!(sandbox.path(&format!("drawn/mine/{file}")).is_file(), "{file}");
    }
    sandbox.run(&["check", "study/paper.toml"]).exits(0).says(&["3 of 3 demanded claims"]);
    // The presets may be a file of their own, as an artifact has those of a shipped paper.
    let alone = format!("version = 1\nmanifests = [\"manifest.toml\"]\n{FIGURES}");
    sandbox.write("study/apart.presets.toml", alone);
    sandbox.write("study/apart.toml", claims("manifest.toml", 1e9, true).replace("\"mine\"", "\"apart\""));
    sandbox.run(&["reproduce", "study/apart.toml", "-o", "drawn", "--quiet"]).exits(0);
    assert!(sandbox.path("drawn/apart/figure1.svg").is_file());
    sandbox.write("study/fails.toml", claims("manifest.toml", -1.0, true) + FIGURES);
    sandbox.run(&["reproduce", "study/fails.toml", "-o", "fails"]).exits(10).says(&["1 demanded claim fails"]);
    let twice = ["reproduce", "study/paper.toml", "study/fails.toml", "-o", "twice"];
    sandbox.run(&twice).exits(2).says(&["two papers have the name mine"]);
    sandbox.write("study/outside.toml", claims("manifest.toml", 1e9, true).replace("\"mine\"", "\"../mine\""));
    sandbox.run(&["reproduce", "study/outside.toml", "-o", "x"]).exits(2).says(&["use letters, digits, - and _"]);
    sandbox.write(
        "study/wrong.toml",
        claims("manifest.toml", 1e9, true) + &FIGURES.replace("kind = \"bars\"", "kind = \"pie\""),
    );
    sandbox.run(&["check", "study/wrong.toml"]).exits(2).says(&["there is no kind `pie`"]);
}

#[cfg(feature = "figures")]
#[test]
fn a_paper_is_reproduced_and_its_figures_are_drawn_with_published_points() {
    let sandbox = Sandbox::new();
    sandbox.run(&["reproduce", "tracsim2014", "-o", "papers", "--quiet"]).exits(0).says(&["papers/report.html"]);
    let page = std::fs::read_to_string(sandbox.path("papers/report.html")).expect("the page");
    for text in [
        "Trapped Capacity",
        "Figure 9.",
        "Table 3.",
        "manifest_sha256",
        "tracsim2014_series",
        "demanded claims of the paper hold",
    ] {
        assert!(page.contains(text), "{text}");
    }
    for outside in ["<script", "src=", "<link", "@import", "url(http"] {
        assert!(!page.contains(outside), "{outside}");
    }
    for file in ["figure3.svg", "figure8.pdf", "table3.md"] {
        assert!(sandbox.path(&format!("papers/tracsim2014/{file}")).is_file(), "{file}");
    }
    sandbox.run(&["reproduce", "nobody1900", "-o", "papers"]).exits(2).says(&["unknown paper"]);
    for number in 3..=9 {
        let preset = format!("figure{number}");
        let drawn = sandbox.run(&["plot", "tracsim2014", "--preset", &preset]).exits(0).stdout;
        assert!(drawn.starts_with("<svg") && !drawn.contains("NaN") && !drawn.contains("undefined"), "{preset}");
        let again = std::fs::read_to_string(sandbox.path(&format!("papers/tracsim2014/{preset}.svg")));
        assert_eq!(drawn, again.expect("the figure"), "{preset}: the same bytes");
        assert!(
            drawn.contains("manifest_sha256") && drawn.contains(&format!("Figure {number}")),
            "{preset}: its origin"
        );
        let has_published = drawn.contains(">published</text>");
        assert_eq!(has_published, [3, 5, 6].contains(&number), "{preset}");
    }
    let csv = sandbox.run(&["plot", "tracsim2014", "--preset", "figure5", "--format", "csv"]).exits(0);
    let drawn = rows(&csv.stdout);
    let shown = sandbox.run(&["results", "tracsim2014", "--preset", "figure5", "--format", "csv"]).exits(0);
    for row in rows(&shown.stdout) {
        let is_same = |bar: &&BTreeMap<String, String>| bar["policy"] == row["policy"] && bar["caps"] == row["caps"];
        let values: Vec<&String> = drawn.iter().filter(is_same).map(|bar| &bar["value"]).collect();
        let both = [&row["unused energy"], &row["unused energy published"]];
        let numbers =
            |texts: &[&String]| texts.iter().map(|text| text.parse::<f64>().expect("a number")).collect::<Vec<_>>();
        assert_eq!(numbers(&values), numbers(&both), "{row:?}");
    }
    sandbox
        .run(&["plot", "tracsim2014", "--preset", "table3"])
        .exits(2)
        .says(&["Table 3 is a table", "powersweep results"]);
    sandbox.run(&["plot", "tracsim2014", "--preset", "figure3", "--figure", "bars"]).exits(2);
    for file in ["f.pdf", "f.png", "f.html", "f.vl.json"] {
        sandbox.run(&["plot", "tracsim2014", "--preset", "figure5", "-o", file]).exits(0);
        let bytes = std::fs::read(sandbox.path(file)).expect("it is there");
        let has = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
        assert!(has("tracsim2014_caps30") && has("manifest_sha256"), "{file} says what it is drawn from");
    }
}
