//! Values and verdicts of hand-written rows.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, ListArray, RecordBatch, StringArray};
use arrow::datatypes::Float64Type;
use powersweep_claims::{Claims, Finding, Rows, Verdict};
use powersweep_results::Table;

/// Workload, policy, threshold, seed, energy, wait.
type Row = (&'static str, &'static str, Option<f64>, i64, f64, f64);

/// Two workloads, two policies (one with a threshold), two seeds.
const ROWS: [Row; 10] = [
    ("a", "top", None, 1, 100.0, 10.0),
    ("a", "top", None, 2, 200.0, 30.0),
    ("b", "top", None, 1, 400.0, 1.0),
    ("b", "top", None, 2, 400.0, 3.0),
    ("a", "low", Some(2.0), 1, 80.0, 12.0),
    ("a", "low", Some(2.0), 2, 160.0, 33.0),
    ("a", "low", Some(f64::INFINITY), 1, 50.0, 20.0),
    ("a", "low", Some(f64::INFINITY), 2, 100.0, 50.0),
    ("b", "low", Some(2.0), 1, 300.0, 2.0),
    ("b", "low", Some(2.0), 2, 300.0, 2.0),
];

fn rows() -> Rows {
    let text = |of: fn(&Row) -> &'static str| {
        Arc::new(ROWS.iter().map(|row| Some(of(row))).collect::<StringArray>()) as ArrayRef
    };
    let real = |of: fn(&Row) -> Option<f64>| Arc::new(ROWS.iter().map(of).collect::<Float64Array>()) as ArrayRef;
    let lists = ROWS.iter().map(|r| Some(vec![Some(r.4), Some(r.5), r.2]));
    let batch = RecordBatch::try_from_iter([
        ("workload", text(|r| r.0)),
        ("policy", text(|r| r.1)),
        ("bsld_threshold", real(|r| r.2)),
        ("seed", Arc::new(ROWS.iter().map(|r| Some(r.3)).collect::<Int64Array>()) as ArrayRef),
        ("energy_total_j", real(|r| Some(r.4))),
        ("wait_s_mean", real(|r| Some(r.5))),
        // Energy and wait once more, as a list that has a null in place of the threshold's.
        ("lp_shares", Arc::new(ListArray::from_iter_primitive::<Float64Type, _, _>(lists)) as ArrayRef),
    ]);
    let batch = batch.expect("columns of one length");
    let mut rows = Rows::new();
    // In two batches, the later rows first: neither order nor batches may matter.
    rows.add("m", Table::Tasks, vec![batch.slice(6, 4), batch.slice(0, 6)]);
    rows
}

fn findings(claim: &str) -> Vec<Finding> {
    let text = format!(
        "version = 1\npaper = \"p\"\ntitle = \"P\"\nmanifests = [\"m\"]\n[runs.top]\npolicy = \"top\"\n[runs.low]\n\
         policy = \"low\"\n[[claims]]\nid = \"c\"\ntext = \"claim\"\nsource = \"s\"\n{claim}"
    );
    let claims = Claims::parse("p.toml", &text).unwrap_or_else(|errors| panic!("{errors}"));
    claims.check(&rows(), false)
}

fn verdicts(claim: &str) -> Vec<Verdict> {
    findings(claim).iter().map(|finding| finding.verdict).collect()
}

/// The value of a selection, by way of a published number that is shown beside it.
fn value(selection: &str) -> Result<f64, String> {
    let claim = format!("demanded = false\nwhy = \"w\"\npublished = 1\n[claims.value]\n{selection}");
    let finding = findings(&claim).remove(0);
    finding.our_value.ok_or(finding.ours)
}

#[test]
fn without_an_aggregate_exactly_one_row_is_needed() {
    let one = "runs = \"top\"\nwhere = { workload = \"a\", seed = 2 }\ncolumn = \"wait_s_mean\"";
    assert_eq!(value(one), Ok(30.0));
    let many = "runs = \"top\"\nwhere = { workload = \"a\" }\ncolumn = \"wait_s_mean\"";
    assert!(value(many).is_err_and(|why| why.contains("2 rows where one was expected")));
    assert_eq!(value(&format!("{many}\naggregate = \"mean\"")), Ok(20.0));
    assert_eq!(value(&format!("{many}\naggregate = \"p25\"")), Ok(15.0));
    let none = "where = { workload = \"c\" }\ncolumn = \"wait_s_mean\"\naggregate = \"mean\"";
    assert_eq!(value(none), Err("there is no row in the tasks of m with workload = c".to_owned()));
    assert_eq!(value("where = { workload = \"c\" }\naggregate = \"count\""), Ok(0.0));
    assert_eq!(value("where = { workload = [\"a\", \"b\"], seed = 1 }\naggregate = \"count\""), Ok(5.0));
}

#[test]
fn unlimited_is_a_value_and_null_is_an_error() {
    let at = |threshold: &str| {
        value(&format!(
            "where = {{ bsld_threshold = {threshold}, seed = 1, workload = \"a\" }}\ncolumn = \"wait_s_mean\""
        ))
    };
    assert_eq!((at("\"unlimited\""), at("2")), (Ok(20.0), Ok(12.0)));
    let null = value("runs = \"top\"\ncolumn = \"bsld_threshold\"\naggregate = \"mean\"");
    assert_eq!(null, Err("`bsld_threshold` is null in 4 of the rows with policy = top".to_owned()));
}

#[test]
fn a_ratio_divides_by_other_runs_under_the_same_conditions() {
    let ratio = |same: &str| {
        value(&format!(
            "runs = \"low\"\nwhere = {{ workload = \"a\", bsld_threshold = 2 }}\ncolumn = \"energy_total_j\"\n\
             aggregate = \"mean\"\none_minus = true\ntimes = 100\ndivided_by = {{ runs = \"top\", same = {same} }}"
        ))
    };
    assert!((ratio("[\"workload\"]").expect("a value") - 20.0).abs() < 1e-12, "1 - 120/150");
    assert!((ratio("[\"seed\"]").expect("a value") - 100.0 * (1.0 - 120.0 / 275.0)).abs() < 1e-12, "of both workloads");
    let of_columns = "where = { workload = \"b\", policy = \"top\", seed = 2 }\ncolumn = \"energy_total_j\"\n\
                      minus = { column = \"wait_s_mean\" }";
    assert_eq!(value(of_columns), Ok(397.0), "a selection that names no runs keeps the rows");
}

#[test]
fn groups_are_matched_and_reduced_step_by_step() {
    let text = "runs = \"low\"\ncolumn = \"energy_total_j\"\nby = [\"workload\", \"bsld_threshold\"]\naggregate = \"mean\"\n\
                divided_by = { runs = \"top\", same = [\"workload\"] }\n";
    // a: 120/150 = 0.8 at 2, 75/150 = 0.5 unlimited; b: 300/400 = 0.75 at 2.
    let then = |steps: &str| value(&format!("{text}then = {steps}"));
    assert_eq!(then("[{ aggregate = \"max\" }]"), Ok(0.8));
    assert_eq!(then("[{ aggregate = \"count\" }]"), Ok(3.0));
    let means = "[{ aggregate = \"mean\", over = [\"workload\"] }, { aggregate = \"max\" }]";
    assert_eq!(then(means), Ok(0.775), "0.775 at 2, 0.5 unlimited");
    let wrong = "[{ aggregate = \"mean\", over = [\"seed\"] }, { aggregate = \"max\" }]";
    assert_eq!(then(wrong), Err("the value is not grouped by `seed`".to_owned()));
}

#[test]
fn the_greatest_change_sorts_neighbours_by_number() {
    let change = value(
        "where = { seed = 1 }\ncolumn = \"wait_s_mean\"\nby = [\"energy_total_j\"]\naggregate = \"mean\"\n\
         then = [{ aggregate = \"greatest-change\", over = [\"energy_total_j\"] }]",
    );
    // Of energies 50, 80, 100, 300, 400: waits 20, 12, 10, 2, 1. As texts, 100 comes first and 50 last.
    assert_eq!(change, Ok(5.0));
}

#[test]
fn elements_of_lists_are_rows() {
    let of = |what: &str| value(&format!("runs = \"top\"\ncolumn = \"lp_shares\"\n{what}"));
    assert_eq!(of("where = { workload = \"a\", seed = 2, element = 2 }"), Ok(30.0), "the wait");
    assert_eq!(of("where = { workload = \"a\", seed = 2, element = [1, 2] }\naggregate = \"sum\""), Ok(230.0));
    assert_eq!(of("where = { seed = 1, element = 1 }\naggregate = \"max\""), Ok(400.0));
    let groups = "where = { workload = \"a\", element = [1, 2] }\nby = [\"element\"]\naggregate = \"mean\"";
    assert_eq!(of(&format!("{groups}\nthen = [{{ aggregate = \"min\" }}]")), Ok(20.0), "150 and 20");
    let first = "divided_by = { where = { workload = \"a\", element = 1 }, by = [] }";
    let ratios = format!("{groups}\n{first}\none_minus = true\ntimes = -1\nabsolute = true");
    let ratio = of(&format!("{ratios}\nthen = [{{ aggregate = \"max\" }}]")).expect("a value");
    assert!((ratio - 130.0 / 150.0).abs() < 1e-12, "0 and |20/150 - 1|: {ratio}");
    let null = of("where = { workload = \"a\", seed = 1, element = 3 }");
    assert!(null.is_err_and(|why| why.contains("null in 1 of the rows")));
    let beyond = of("where = { workload = \"a\", seed = 1, element = 4 }");
    assert!(beyond.is_err_and(|why| why.contains("there is no row") && why.contains("element = 4")));
    let inside = of("where = { workload = \"a\", seed = 1, element = 1 }\ndivided_by = { column = \"wait_s_mean\" }");
    assert!(inside.is_err_and(|why| why.contains("`wait_s_mean` is not a list")));
    let claim = "per.element = [2, 1]\npublished = [30, 200]\nwithin = { absolute = 0 }\n\
                 value = { runs = \"top\", where = { workload = \"a\", seed = 2 }, column = \"lp_shares\" }";
    assert_eq!(verdicts(claim), [Verdict::Holds, Verdict::Holds]);
    assert_eq!(findings(claim)[1].id, "c[1]");
}

#[test]
fn a_tolerance_may_be_computed_from_rows() {
    // The tolerance: a fifth of the wait of the same rows, 2.
    let of = "within = { of = { column = \"wait_s_mean\", times = 0.2 } }\n\
              value = { runs = \"top\", where = { workload = \"a\", seed = 1 }, column = \"energy_total_j\" }";
    let finding = |published: &str| findings(&format!("published = {published}\n{of}")).remove(0);
    assert_eq!((finding("102").verdict, finding("102.1").verdict), (Verdict::Holds, Verdict::Fails));
    assert_eq!(finding("102").stated, "102 ± 2");
    let claims = format!(
        "version = 1\npaper = \"p\"\ntitle = \"P\"\nmanifests = [\"m\"]\n[runs.top]\npolicy = \"top\"\n[[claims]]\n\
         id = \"c\"\ntext = \"t\"\nsource = \"s\"\npublished = 1\n{of}"
    );
    let claims = Claims::parse("p.toml", &claims).unwrap_or_else(|errors| panic!("{errors}"));
    let needed = claims.needed(true).into_values().next().expect("one table");
    assert!(needed.contains("wait_s_mean") && needed.contains("energy_total_j"), "{needed:?}");
}

#[test]
fn the_larger_tolerance_counts() {
    let wait = "value = { runs = \"top\", where = { workload = \"a\", seed = 1 }, column = \"wait_s_mean\" }\n";
    let verdict = |claim: &str| verdicts(&format!("{claim}\n{wait}"))[0];
    assert_eq!(verdict("published = 10.5\nwithin = { relative = 0.05 }"), Verdict::Holds);
    assert_eq!(verdict("published = 10.6\nwithin = { relative = 0.05 }"), Verdict::Fails);
    assert_eq!(verdict("published = 10.6\nwithin = { relative = 0.05, absolute = 0.7 }"), Verdict::Holds);
    assert_eq!(verdict("published = 10\nwithin = { absolute = 0 }"), Verdict::Holds);
    assert_eq!(verdict("demanded = false\nwhy = \"w\"\npublished = 99"), Verdict::Shown);
}

#[test]
fn all_bounds_must_hold_and_above_and_below_are_strict() {
    let wait = "value = { runs = \"top\", where = { workload = \"a\", seed = 1 }, column = \"wait_s_mean\" }\n";
    let verdict = |claim: &str| verdicts(&format!("{claim}\n{wait}"))[0];
    assert_eq!(verdict("at_least = 10\nat_most = 10"), Verdict::Holds);
    assert_eq!(verdict("at_least = 9\nat_most = 9.5"), Verdict::Fails);
    assert_eq!((verdict("above = 10"), verdict("below = 10")), (Verdict::Fails, Verdict::Fails));
    assert_eq!((verdict("above = 9"), verdict("below = 11")), (Verdict::Holds, Verdict::Holds));
}

#[test]
fn a_claim_is_repeated_in_the_order_of_the_text() {
    let claim = "per.workload = [\"b\", \"a\"]\nper.seed = [1, 2]\npublished = [1, 3, 10, 30]\nwithin = { absolute = 0 }\n\
                 value = { runs = \"top\", column = \"wait_s_mean\" }";
    let findings = findings(claim);
    assert!(findings.iter().all(|f| f.verdict == Verdict::Holds), "{findings:?}");
    assert_eq!(findings[1].id, "c[b,2]");
    assert_eq!(findings[1].text, "claim: b, 2");
    assert_eq!(findings[1].from, "m.tasks.wait_s_mean");
    let listed = "per = [{ workload = \"b\", seed = 2 }, { workload = \"a\", seed = 1 }]\nat_most = [3, 9]\n\
                  value = { runs = \"top\", column = \"wait_s_mean\" }";
    assert_eq!(verdicts(listed), [Verdict::Holds, Verdict::Fails]);
}

#[test]
fn a_claim_may_be_repeated_for_each_manifest() {
    let text = "version = 1\npaper = \"p\"\ntitle = \"P\"\nmanifests = [\"n\", \"m\"]\n[[claims]]\nid = \"c\"\ntext = \"claim\"\n\
                source = \"s\"\nper.manifest = [\"m\", \"n\"]\nat_least = 10\nvalue = { aggregate = \"count\" }";
    let claims = Claims::parse("p.toml", text).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(claims.manifests(true), ["n", "m"]);
    let findings = claims.check(&rows(), true);
    assert_eq!(findings.iter().map(|f| f.verdict).collect::<Vec<_>>(), [Verdict::Holds, Verdict::Fails]);
    assert_eq!((findings[0].id.as_str(), findings[0].from.as_str()), ("c[m]", "m.tasks.rows"));
}

#[test]
fn other_selections_inherit_the_keys_that_they_do_not_set() {
    let less = |other: &str| {
        let claim = format!(
            "per.workload = [\"a\"]\nless_than = {other}\nvalue = {{ runs = \"top\", where = {{ seed = 1 }}, column = \
             \"wait_s_mean\" }}"
        );
        findings(&claim).remove(0)
    };
    let seeds = less("{ where = { seed = 2 } }");
    assert_eq!((seeds.verdict, seeds.ours.as_str()), (Verdict::Holds, "10 < 30"));
    let runs = less("{ runs = \"low\", where = { bsld_threshold = 2, seed = 1 } }");
    assert_eq!((runs.verdict, runs.ours.as_str()), (Verdict::Holds, "10 < 12"));
    assert_eq!(less("{ where = { workload = \"b\" } }").verdict, Verdict::Fails);
    let same = less("{ runs = \"low\", same = [\"seed\"], where = { bsld_threshold = 2 } }");
    assert_eq!((same.verdict, same.ours.as_str()), (Verdict::Holds, "10 < 12"));
    let missing = less("{ runs = \"low\", where = { bsld_threshold = 2, seed = 3 } }");
    assert_eq!(missing.verdict, Verdict::Missing);
    assert!(missing.ours.contains("seed = 3"), "{}", missing.ours);
}

#[test]
fn paired_values_are_compared_seed_by_seed() {
    let claim = |other: &str| {
        format!(
            "paired = [\"seed\"]\nless_than = {other}\n[claims.value]\nruns = \"top\"\nwhere = {{ workload = \"a\" }}\n\
             column = \"wait_s_mean\""
        )
    };
    let low = "{ runs = \"low\", where = { workload = \"a\", bsld_threshold = 2 } }";
    let finding = findings(&claim(low)).remove(0);
    assert_eq!(finding.verdict, Verdict::Holds);
    assert_eq!(
        finding.ours, "20 < 22.5 (paired, other minus ours: 2.5 ± 6.353102 at 95%, may be 0)",
        "differences 2 and 3"
    );
    assert_eq!((finding.our_value, finding.other_value, finding.uncertain), (Some(20.0), Some(22.5), true));
    let difference = finding.differences[0];
    assert!(difference.value == 2.5 && difference.low < -3.8 && difference.high > 8.8, "{difference:?}");
    let unpaired = "{ runs = \"low\", where = { workload = \"a\", bsld_threshold = 2, seed = 1 } }";
    let finding = findings(&claim(unpaired)).remove(0);
    assert_eq!(finding.verdict, Verdict::Missing);
    assert!(finding.ours.contains("different groups"), "{}", finding.ours);
}

#[test]
fn means_over_seeds_have_their_interval() {
    // Waits of 10 and 30: 20 ± 12.7062 * 10.
    let mean =
        "[claims.value]\nruns = \"top\"\nwhere = { workload = \"a\" }\ncolumn = \"wait_s_mean\"\naggregate = \"mean\"";
    let ours = |claim: &str| {
        let finding = findings(&format!("{claim}\n{mean}")).remove(0);
        (finding.verdict, finding.ours)
    };
    let uncertain = "20 ± 127.062 at 95%, uncertain".to_owned();
    assert_eq!(ours("published = 21\nwithin = { absolute = 2 }"), (Verdict::Holds, uncertain.clone()));
    assert_eq!(ours("published = 30\nwithin = { absolute = 2 }"), (Verdict::Fails, uncertain.clone()));
    assert_eq!(ours("at_least = 15"), (Verdict::Holds, uncertain));
    let certain = "20 ± 127.062 at 95%".to_owned();
    assert_eq!(ours("published = 21\nwithin = { absolute = 200 }"), (Verdict::Holds, certain.clone()));
    assert_eq!(ours("below = -200"), (Verdict::Fails, certain.clone()));
    assert_eq!(ours("demanded = false\nwhy = \"w\"\npublished = 99"), (Verdict::Shown, certain));
    // The same interval as of a claim that is paired.
    let less = "less_than = { runs = \"low\", where = { workload = \"a\", bsld_threshold = 2 } }";
    let paired = "20 < 22.5 (paired, other minus ours: 2.5 ± 6.353102 at 95%, may be 0)".to_owned();
    assert_eq!(ours(less), (Verdict::Holds, paired));
    // One seed, or equal rows.
    let one = "value = { runs = \"top\", where = { workload = \"a\", seed = 1 }, column = \"wait_s_mean\", aggregate = \"mean\" }";
    assert_eq!(findings(&format!("at_least = 1\n{one}"))[0].ours, "10");
    let equal =
        "value = { runs = \"top\", where = { workload = \"b\" }, column = \"energy_total_j\", aggregate = \"mean\" }";
    let equal = findings(&format!("at_least = 1\n{equal}")).remove(0);
    assert_eq!((equal.ours.as_str(), equal.interval, equal.uncertain), ("400", None, false));
    // A difference of means, rows paired by seed: 2 and 3.
    let difference = "at_least = 0.1\n[claims.value]\nruns = \"low\"\nwhere = { workload = \"a\", bsld_threshold = 2 }\n\
                      column = \"wait_s_mean\"\naggregate = \"mean\"\nminus = { runs = \"top\", same = [\"workload\", \"seed\"] }";
    let difference = findings(difference).remove(0);
    assert_eq!(difference.ours, "2.5 ± 6.353102 at 95%, uncertain");
    assert!(difference.uncertain && difference.interval.is_some_and(|(low, high)| low < -3.8 && high > 8.8));
}

#[test]
fn a_missing_value_leaves_the_sign_of_a_bound() {
    let wait = "value = { runs = \"top\", where = { seed = 99 }, column = \"wait_s_mean\" }";
    let stated = |claim: &str| findings(&format!("{claim}\n{wait}")).remove(0).stated;
    assert_eq!(
        (stated("at_least = 3"), stated("below = 3"), stated("at_least = 3\nat_most = 4")),
        ("≥ 3".into(), "< 3".into(), "≥ 3, ≤ 4".into())
    );
    let repeated = findings(&format!("per.workload = [\"a\", \"b\"]\nat_least = [3, 4]\n{wait}"));
    assert_eq!(repeated[1].stated, "≥ 4");
}

#[test]
fn ascending_compares_the_values_of_a_column() {
    let order = |values: &str| {
        let claim = format!(
            "ascending.bsld_threshold = {values}\n[claims.value]\nruns = \"low\"\nwhere = {{ workload = \"a\" }}\ncolumn = \
             \"energy_total_j\"\naggregate = \"mean\""
        );
        findings(&claim).remove(0)
    };
    let finding = order("[\"unlimited\", 2]");
    assert_eq!((finding.verdict, finding.stated.as_str()), (Verdict::Holds, "unlimited < 2"));
    assert_eq!(order("[2, \"unlimited\"]").verdict, Verdict::Fails);
    assert_eq!(order("[2, 2]").verdict, Verdict::Fails, "equal values do not rise");
}
