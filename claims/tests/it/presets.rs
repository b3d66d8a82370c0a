//! Presets: those that are part of the program, and places and values of hand-written rows.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use powersweep_claims::{Claims, Presets, Role, Rows, Shape, papers};
use powersweep_dataset::replicates::{Interval, Method, Replicates};
use powersweep_experiments::{Manifest, manifests};
use powersweep_results::Table;

fn shipped() -> impl Iterator<Item = (&'static str, Presets)> {
    papers::builtin().iter().map(|(name, claims, text)| {
        let claims = Claims::parse(name, claims).unwrap_or_else(|errors| panic!("{errors}"));
        (*name, Presets::parse(name, text, &claims).unwrap_or_else(|errors| panic!("{errors}")))
    })
}

/// The figures with results and the tables of each paper.
#[test]
fn every_figure_and_table_of_the_papers_is_there() {
    let expected: [(&str, std::ops::RangeInclusive<u32>, &[u32]); 5] = [
        ("lawson2005", 1..=8, &[1]),
        ("tracsim2014", 3..=9, &[3]),
        ("etinski2010", 3..=9, &[1, 2, 3]),
        ("do2013", 4..=16, &[2, 3]),
        ("aldaoud2011", 2..=3, &[1, 2, 3, 4, 5, 6, 7]),
    ];
    for ((paper, presets), (name, figures, tables)) in shipped().zip(expected) {
        assert_eq!(paper, name);
        let named: Vec<String> = presets.all().iter().map(|preset| preset.name.clone()).collect();
        let figures = figures.map(|number| format!("figure{number}"));
        let wanted: Vec<String> = figures.chain(tables.iter().map(|number| format!("table{number}"))).collect();
        assert_eq!(named, wanted, "{paper}");
        for preset in presets.all() {
            assert_eq!(preset.shape == Shape::Table, preset.name.starts_with("table"), "{paper}: {}", preset.name);
            assert!(preset.caption.ends_with('.'), "{paper}: {}: {}", preset.name, preset.caption);
        }
    }
}

#[test]
fn the_manifests_of_all_presets_are_shipped_with_the_tables_that_are_read() {
    for (paper, presets) in shipped() {
        for preset in presets.all() {
            for (manifest, table) in preset.needed().keys() {
                let text = manifests::find(manifest).unwrap_or_else(|| panic!("there is no manifest {manifest}"));
                let manifest = Manifest::parse(manifest, text).expect("shipped manifests are correct");
                let asked = manifest.tables().names().any(|name| name == table.name());
                assert!(
                    asked || *table == Table::Tasks,
                    "{paper}: {}: {} has no {table}",
                    preset.name,
                    manifest.name()
                );
            }
            for ((_, table), columns) in preset.needed() {
                let of_tasks = powersweep_results::tasks::columns();
                let known: Vec<String> = table.columns().into_iter().chain(of_tasks).map(|c| c.name).collect();
                for column in columns {
                    assert!(known.contains(&column), "{paper}: {}: {}.{column}", preset.name, table.name());
                }
            }
        }
    }
}

#[test]
fn without_rows_a_preset_names_the_manifest_that_has_them() {
    for (paper, presets) in shipped() {
        for preset in presets.all().iter().filter(|preset| preset.shape != Shape::Jobs) {
            let lacking = preset.rows(&Rows::new()).expect_err("there is no row");
            assert!(preset.manifests().contains(&lacking.manifest), "{paper}: {}: {lacking:?}", preset.name);
        }
    }
}

const CLAIMS: &str = r#"
version = 1
paper = "p"
title = "P"
manifests = ["m"]
[runs.top]
policy = "top"
[runs.low]
policy = "low"
[[claims]]
id = "saved"
text = "energy saved, {workload}"
source = "Section 1"
per.workload = ["a", "b"]
published = [0.25, 0.5]
demanded = false
why = "a test"
value = { runs = "low", where = { bsld_threshold = 2 }, column = "energy_total_j", divided_by = { runs = "top", same = ["workload"] }, one_minus = true }
[[claims]]
id = "other"
text = "of other rows"
source = "Section 1"
published = 3
demanded = false
why = "a test"
value = { runs = "top", column = "energy_total_j" }
[[claims]]
id = "unnumbered"
text = "no number"
source = "Section 1"
at_most = 3
value = { runs = "top", column = "energy_total_j" }
"#;

const PRESETS: &str = r#"
version = 1
manifests = ["m"]
[[presets]]
name = "figure1"
caption = "Energy."
kind = "lines"
x = { column = "bsld_threshold", title = "threshold" }
y = { title = "energy" }
colour = { column = "shown", order = ["lowered", "full speed"] }
facet = { column = "workload", order = ["b"], names = { a = "log A" } }
[[presets.values]]
as = { shown = "lowered" }
value = { runs = "low", column = "energy_total_j", divided_by = { runs = "top", same = ["workload"] } }
half_width = { column = "wait_s_mean", divided_by = { runs = "top", same = ["workload"], column = "energy_total_j" } }
published = [{ claim = "saved", one_minus = true }]
[[presets.values]]
as = { shown = "full speed" }
everywhere = true
value = { runs = "top", column = "energy_total_j", divided_by = { column = "energy_total_j" } }
"#;

fn parsed(presets: &str) -> Result<Presets, String> {
    let claims = Claims::parse("claims.toml", CLAIMS).unwrap_or_else(|errors| panic!("{errors}"));
    Presets::parse("presets.toml", presets, &claims).map_err(|errors| errors.to_string())
}

fn rows() -> Rows {
    let of: [(&str, &str, Option<f64>, f64, f64); 6] = [
        ("a", "top", None, 200.0, 0.0),
        ("b", "top", None, 400.0, 0.0),
        ("a", "low", Some(2.0), 150.0, 20.0),
        ("a", "low", Some(10.0), 100.0, 10.0),
        ("b", "low", Some(2.0), 300.0, 40.0),
        ("b", "low", Some(10.0), 100.0, 4.0),
    ];
    let texts = |values: Vec<&str>| Arc::new(StringArray::from(values)) as ArrayRef;
    let reals = |values: Vec<Option<f64>>| Arc::new(Float64Array::from(values)) as ArrayRef;
    let batch = RecordBatch::try_from_iter([
        ("workload", texts(of.iter().map(|row| row.0).collect())),
        ("policy", texts(of.iter().map(|row| row.1).collect())),
        ("bsld_threshold", reals(of.iter().map(|row| row.2).collect())),
        ("energy_total_j", reals(of.iter().map(|row| Some(row.3)).collect())),
        ("wait_s_mean", reals(of.iter().map(|row| Some(row.4)).collect())),
    ]);
    let mut rows = Rows::new();
    rows.add("m", Table::Tasks, vec![batch.expect("columns of one length")]);
    rows
}

#[test]
fn values_have_their_places_and_published_numbers_stand_beside_them() {
    let presets = parsed(PRESETS).expect("they are right");
    let found = presets.find("figure1").expect("it is there").rows(&rows()).expect("values");
    let seen: Vec<_> = found
        .iter()
        .map(|row| {
            let half_width = row.ends.map(|(low, high)| (500.0 * (high - low)).round() / 1000.0);
            (row.facet.as_str(), row.colour.as_str(), row.x.as_str(), row.y, half_width, row.role)
        })
        .collect();
    let (ours, published) = (Role::Ours, Role::Published);
    assert_eq!(
        seen,
        [
            ("b", "lowered", "2", 0.75, Some(0.1), ours),
            ("b", "lowered", "2", 0.5, None, published),
            ("b", "lowered", "10", 0.25, Some(0.01), ours),
            ("b", "full speed", "2", 1.0, None, ours),
            ("b", "full speed", "10", 1.0, None, ours),
            ("log A", "lowered", "2", 0.75, Some(0.1), ours),
            ("log A", "lowered", "2", 0.75, None, published),
            ("log A", "lowered", "10", 0.5, Some(0.05), ours),
            ("log A", "full speed", "2", 1.0, None, ours),
            ("log A", "full speed", "10", 1.0, None, ours),
        ]
    );
    let claims: Vec<&str> = found.iter().filter_map(|row| row.claim.as_deref()).collect();
    assert_eq!(claims, ["saved[b]", "saved[a]"]);
}

/// The interval has three replicates, one for each seed, although each seed has two rows. A ratio divides the mean of one policy by
/// the mean of the other one.
#[test]
fn intervals_are_those_over_the_seeds() {
    let of = |operation: &str, times: f64| {
        let text = format!(
            r#"
version = 1
manifests = ["m"]
[[presets]]
name = "figure1"
caption = "Energy."
kind = "bars"
x = {{ column = "workload", title = "log" }}
y = {{ title = "energy" }}
[[presets.values]]
interval = true
[presets.values.value]
where = {{ policy = "low" }}
column = "energy_total_j"
by = ["workload", "bsld_threshold", "seed"]
times = {times}
{operation}
"#
        );
        let mut table = Rows::new();
        table.add("m", Table::Tasks, vec![seeds()]);
        let found = parsed(&text).expect("it is right").find("figure1").expect("it is there").rows(&table);
        let [row] = &found.expect("values")[..] else { panic!("one workload") };
        (row.y, row.ends.expect("an interval"))
    };
    let pairs = || ENERGIES.iter().map(|(seed, _, top, low)| (*seed, *top, *low));
    let replicates = Replicates::of_pairs(pairs(), Method::T(95));
    let close = |(value, ends): (f64, (f64, f64)), expected: Interval| {
        let (low, high) = expected.ends.expect("an interval");
        let near = |found: f64, expected: f64| (found - expected).abs() < 1e-9;
        assert!(
            near(value, expected.value) && near(ends.0, low) && near(ends.1, high),
            "{value} {ends:?} {expected:?}"
        );
    };
    let partner = |operation: &str| {
        format!("{operation} = {{ runs = \"top\", by = [\"workload\", \"bsld_threshold\", \"seed\"] }}")
    };
    close(of(&partner("divided_by"), 1.0), replicates.ratio());
    close(of(&partner("minus"), 1.0), replicates.difference());
    close(of("", 1.0), replicates.mean());
    // A saving of the ratio 0.9 to 0.8 is 10 to 20 %.
    let (value, (low, high)) = of(&format!("{}\none_minus = true", partner("divided_by")), 100.0);
    let ratio = replicates.ratio();
    close((1.0 - value / 100.0, (1.0 - high / 100.0, 1.0 - low / 100.0)), ratio);
}

/// Seed, threshold, and energy of both policies.
const ENERGIES: [(i64, f64, f64, f64); 6] = [
    (1, 2.0, 200.0, 170.0),
    (1, 10.0, 200.0, 150.0),
    (2, 2.0, 300.0, 280.0),
    (2, 10.0, 300.0, 240.0),
    (3, 2.0, 250.0, 200.0),
    (3, 10.0, 250.0, 180.0),
];

fn seeds() -> RecordBatch {
    let both = || ["top", "low"].into_iter().flat_map(|policy| ENERGIES.iter().map(move |row| (policy, row)));
    let energy = |(policy, row): (&str, &(i64, f64, f64, f64))| if policy == "top" { row.2 } else { row.3 };
    let batch = RecordBatch::try_from_iter([
        ("workload", Arc::new(StringArray::from_iter_values(both().map(|_| "a"))) as ArrayRef),
        ("policy", Arc::new(StringArray::from_iter_values(both().map(|(policy, _)| policy)))),
        ("bsld_threshold", Arc::new(Float64Array::from_iter_values(both().map(|(_, row)| row.1)))),
        ("seed", Arc::new(Int64Array::from_iter_values(both().map(|(_, row)| row.0)))),
        ("energy_total_j", Arc::new(Float64Array::from_iter_values(both().map(energy)))),
    ]);
    batch.expect("columns of one length")
}

#[test]
fn a_horizontal_axis_is_cut_and_moved() {
    let axis = "x = { column = \"bsld_threshold\", title = \"threshold\" }";
    let moved = "x = { column = \"bsld_threshold\", from = 1, divided_by = 4, minus = { runs = \"low\", column = \
                 \"bsld_threshold\", aggregate = \"min\", by = [\"workload\"] } }";
    let presets = parsed(&PRESETS.replace(axis, moved)).expect("they are right");
    let found = presets.find("figure1").expect("it is there").rows(&rows()).expect("values");
    let seen: Vec<(&str, Option<f64>)> = found.iter().map(|row| (row.x.as_str(), row.x_value)).collect();
    // The thresholds 2 and 10 are 0 and 2 after the move; those before 1 are cut.
    assert_eq!(seen, [("2", Some(2.0)); 4]);
}

#[test]
fn problems_are_explained_with_their_places() {
    for (old, new, said) in [
        ("kind = \"lines\"", "kind = \"pies\"", "there is no kind `pies`"),
        ("colour = {", "color = {", "a preset has no key `color`"),
        ("as = { shown = \"lowered\" }", "", "has no column `shown` for an axis"),
        ("claim = \"saved\"", "claim = \"unknown\"", "no claim `unknown` with a published number"),
        ("claim = \"saved\"", "claim = \"unnumbered\"", "no claim `unnumbered` with a published number"),
        ("claim = \"saved\"", "claim = \"other\"", "no number of the claim `other` is under the conditions"),
        ("name = \"figure1\"", "", "`name` is missing"),
        ("column = \"wait_s_mean\", d", "column = \"wait_mean\", d", "no column `wait_mean`"),
        ("half_width = {", "interval = true\nhalf_width = {", "has neither `then` nor `half_width`"),
        (
            "everywhere = true\nvalue = {",
            "interval = true\nvalue = { aggregate = \"max\",",
            "`aggregate` or `absolute`",
        ),
        ("manifests = [\"m\"]", "", "`manifests` is missing"),
        ("version = 1", "version = 2", "`version` is not 1"),
    ] {
        let refused = parsed(&PRESETS.replacen(old, new, 1)).expect_err(said);
        assert!(refused.contains(said), "{said}: {refused}");
    }
    let open = PRESETS.replace("x = { column = \"bsld_threshold\"", "x = { column = [\"bsld_threshold\", \"seed\"]");
    assert!(parsed(&open).expect_err("an open column").contains("leaves open the column `seed`"));
}

/// Waits of 10 and 30 s of two seeds: 20 ± 12.7062 * 10.
#[test]
fn means_over_seeds_have_their_interval_and_the_title_of_their_column() {
    let text = "version = 1\nmanifests = [\"m\"]\n[[presets]]\nname = \"table1\"\ncaption = \"Waits.\"\nkind = \"table\"\n\
                x = { column = \"policy\" }\n[[presets.values]]\nvalue = { column = \"wait_s_mean\", aggregate = \"mean\" }\n";
    let batch = RecordBatch::try_from_iter([
        ("policy", Arc::new(StringArray::from(vec!["top", "top"])) as ArrayRef),
        ("seed", Arc::new(Int64Array::from(vec![1, 2])) as ArrayRef),
        ("wait_s_mean", Arc::new(Float64Array::from(vec![10.0, 30.0])) as ArrayRef),
    ]);
    let mut rows = Rows::new();
    rows.add("m", Table::Tasks, vec![batch.expect("columns of one length")]);
    let ends = |text: &str| {
        let presets = parsed(text).unwrap_or_else(|problems| panic!("{problems}"));
        assert!(presets.all()[0].needed()[&("m".to_owned(), Table::Tasks)].contains("policy"));
        presets.all()[0].rows(&rows).expect("a value")[0].ends
    };
    let (low, high) = ends(text).expect("an interval");
    assert!((low + 107.062).abs() < 0.001 && (high - 147.062).abs() < 0.001, "{low} {high}");
    assert_eq!(ends(&text.replace("kind =", "intervals = false\nkind =")), None);
    let preset = parsed(text).expect("it is right").all()[0].clone();
    let titled = preset.titled(|column| (format!("title of {column}"), "s".to_owned()));
    assert_eq!(titled.columns(), [("title of wait_s_mean", "s", false)]);
}
