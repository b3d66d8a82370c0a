//! Tables of a small sweep: three policies, two workloads, three seeds.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use powersweep_dataset::group::grouped_ratios;
use powersweep_dataset::group::mixed;
use powersweep_dataset::text::{Sheet, with_half};
use powersweep_dataset::{Cell, Condition, Error, Frame, Rows, Stat, baseline, grouped};
use proptest::prelude::*;

/// Index, workload, policy, threshold of the policy, seed, wait, energy.
type Row = (i64, &'static str, &'static str, Option<f64>, i64, f64, Option<f64>);

fn sweep() -> Vec<Row> {
    let mut rows = Vec::new();
    for (w, workload) in ["CTC", "SDSC"].into_iter().enumerate() {
        for (p, (policy, threshold)) in [("fcfs", None), ("easy", None), ("bsld", Some(2.0))].into_iter().enumerate() {
            for seed in 1..=3 {
                let wait = 100.0 * (w + 1) as f64 + 10.0 * p as f64 + seed as f64;
                rows.push((rows.len() as i64, workload, policy, threshold, seed, wait, Some(1e9 * wait)));
            }
        }
    }
    rows
}

fn batch(rows: &[Row]) -> RecordBatch {
    let text = |of: fn(&Row) -> &'static str| {
        Arc::new(rows.iter().map(|row| Some(of(row))).collect::<StringArray>()) as ArrayRef
    };
    let whole =
        |of: fn(&Row) -> i64| Arc::new(rows.iter().map(|row| Some(of(row))).collect::<Int64Array>()) as ArrayRef;
    let real = |of: fn(&Row) -> Option<f64>| Arc::new(rows.iter().map(of).collect::<Float64Array>()) as ArrayRef;
    let field =
        |name: &str, of, unit: &str| Field::new(name, of, true).with_metadata([("unit".to_owned(), unit.to_owned())]);
    let fields = vec![
        field("task_index", DataType::Int64, ""),
        field("workload", DataType::Utf8, ""),
        field("policy", DataType::Utf8, ""),
        field("threshold", DataType::Float64, ""),
        field("seed", DataType::Int64, ""),
        field("wait", DataType::Float64, "s"),
        field("energy", DataType::Float64, "J"),
    ];
    let columns = vec![
        whole(|row| row.0),
        text(|row| row.1),
        text(|row| row.2),
        real(|row| row.3),
        whole(|row| row.4),
        real(|row| Some(row.5)),
        real(|row| row.6),
    ];
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).expect("the columns fit")
}

fn collected(rows: &[Row], measures: &[&str]) -> Rows {
    let batch = batch(rows);
    let axes = ["workload", "policy", "threshold", "seed"];
    let mut found = Rows::new(batch.schema_ref(), &axes, measures, "task_index").expect("they are columns");
    found.add(&batch, &(0..batch.num_rows()).collect::<Vec<_>>()).expect("it has the columns");
    found
}

fn condition(text: &str) -> Condition {
    let of = |name: &str| match name {
        "workload" | "policy" => Ok(DataType::Utf8),
        "seed" => Ok(DataType::Int64),
        _ => Ok::<_, Error>(DataType::Float64),
    };
    Condition::parse(text, of).expect(text)
}

fn cells(frame: &Frame, row: usize) -> Vec<Cell> {
    frame.batch().columns().iter().map(|column| Cell::of(column, row)).collect()
}

fn text(text: &str) -> Cell {
    Cell::Text(text.to_owned())
}

#[test]
fn groups_are_in_the_order_of_the_sweep_and_have_their_statistics() {
    let rows = collected(&sweep(), &["wait"]);
    let frame =
        grouped(&rows, &["policy", "workload"], &[Stat::Mean, Stat::Interval(95), Stat::Count]).expect("columns");
    assert_eq!(frame.batch().num_rows(), 6);
    // Waits 101, 102, 103: the half width is t(0.95; 2) / sqrt(3).
    let Cell::Real(half) = cells(&frame, 0)[3] else { panic!("no number") };
    assert!((half - 4.302_652_73 / 3f64.sqrt()).abs() < 1e-8);
    assert_eq!(cells(&frame, 0)[..3], [text("fcfs"), text("CTC"), Cell::Real(102.0)]);
    assert_eq!(cells(&frame, 5)[..3], [text("bsld"), text("SDSC"), Cell::Real(222.0)]);
    assert_eq!(cells(&frame, 5)[4], Cell::Int(3));
}

#[test]
fn rows_levels_and_groups_have_the_order_of_the_tasks_however_they_arrive() {
    let of = |rows: &[Row]| {
        let rows = collected(rows, &["wait"]);
        let names = ["policy", "threshold", "workload", "seed", "wait"];
        (
            rows.frame(&names).expect("columns"),
            grouped(&rows, &["threshold", "policy"], &[Stat::Mean]).expect("columns"),
        )
    };
    let expected = of(&sweep());
    let levels = |frame: &Frame, name: &str| frame.column(name).expect("a column").levels();
    let mut rows = sweep();
    for round in 1..18 {
        rows.rotate_left(round);
        rows.swap(round % 18, round * 7 % 18);
        let found = of(&rows);
        assert_eq!(found, expected);
        assert_eq!(levels(&found.0, "policy"), ["fcfs", "easy", "bsld"]);
        assert_eq!(levels(&found.1, "policy"), ["fcfs", "easy", "bsld"]);
        assert_eq!(levels(&found.0, "threshold"), ["2", "none"]);
    }
}

#[test]
fn columns_in_which_rows_of_a_group_differ_are_found() {
    let rows = collected(&sweep(), &["wait"]);
    assert_eq!(mixed(&rows, &["policy"], &["workload", "threshold", "seed"]).expect("axes"), ["workload", "seed"]);
    assert_eq!(mixed(&rows, &["threshold"], &["policy", "workload"]).expect("axes"), ["policy", "workload"]);
    assert_eq!(mixed(&rows, &["policy", "workload"], &["threshold", "policy"]).expect("axes"), [""; 0]);
}

#[test]
fn without_axes_there_is_one_group_also_of_nothing() {
    let all = grouped(&collected(&sweep(), &["wait"]), &[], &[Stat::Max, Stat::Count]).expect("columns");
    assert_eq!(cells(&all, 0), [Cell::Real(223.0), Cell::Int(18)]);
    let none = grouped(&collected(&[], &["wait"]), &[], &[Stat::Mean, Stat::Count]).expect("columns");
    assert_eq!(cells(&none, 0), [Cell::Null, Cell::Int(0)]);
    let grouped = grouped(&collected(&[], &["wait"]), &["policy"], &[Stat::Mean]).expect("columns");
    assert_eq!(grouped.batch().num_rows(), 0);
}

#[test]
fn a_ratio_compares_rows_of_the_same_workload_and_seed() {
    let rows = collected(&sweep(), &["energy"]);
    let baseline = baseline::pairs(&rows, &[condition("policy=easy")]).expect("a baseline");
    assert_eq!(baseline.lacking(), 0);
    let frame = grouped_ratios(&rows, &baseline, &["policy"], &[Stat::Mean, Stat::Low(95)]).expect("columns");
    // The mean of the rows divided by the mean of their partners: 150 + a + 2 over workloads of 100 and 200, seeds 1 to 3.
    let of = |row: usize, column: usize| cells(&frame, row)[column].number().expect("a number");
    assert!((of(0, 1) - 152.0 / 162.0).abs() < 1e-14);
    assert_eq!((of(1, 1), of(1, 2)), (1.0, 1.0));
    assert!((of(2, 1) - 172.0 / 162.0).abs() < 1e-14);
    assert!(of(0, 2) < of(0, 1));
    // A ratio has no unit.
    assert!(!frame.batch().schema_ref().field(1).metadata().contains_key("unit"));
    // A heading says that it is a ratio.
    assert_eq!(Sheet::of(&frame).columns[1].title, "ratio of energy");
}

#[test]
fn rows_without_a_baseline_are_counted_and_have_no_ratio() {
    let mut rows = sweep();
    rows.retain(|row| (row.1, row.2, row.4) != ("CTC", "easy", 2));
    let rows = collected(&rows, &["wait"]);
    let baseline = baseline::pairs(&rows, &[condition("policy=easy")]).expect("a baseline");
    assert_eq!(baseline.lacking(), 2);
    let frame = grouped_ratios(&rows, &baseline, &["policy"], &[Stat::Count]).expect("columns");
    assert_eq!([0, 1, 2].map(|row| cells(&frame, row)[1].clone()), [Cell::Int(5), Cell::Int(5), Cell::Int(5)]);
}

/// The baseline has one seed of one workload left: it is no partner of other seeds and workloads.
#[test]
fn a_row_is_not_divided_by_another_seed_or_workload() {
    let mut rows = sweep();
    rows.retain(|row| row.2 != "easy" || (row.1, row.4) == ("CTC", 1));
    let rows = collected(&rows, &["wait"]);
    let baseline = baseline::pairs(&rows, &[condition("policy=easy")]).expect("a baseline");
    let paired: Vec<usize> = (0..rows.len()).filter(|row| baseline.of[*row].is_some()).collect();
    assert_eq!((baseline.lacking(), paired), (10, vec![0, 3, 4]), "seed 1 of CTC");
    // A condition on a parameter: the policy that has rows on both sides keeps to its own.
    let mut rows = sweep();
    rows.retain(|row| row.2 != "easy" || row.4 == 1);
    for row in &mut rows {
        (row.2, row.3) = if row.2 == "easy" { ("bsld", Some(1.0)) } else { (row.2, row.3) };
    }
    let rows = collected(&rows, &["wait"]);
    let baseline = baseline::pairs(&rows, &[condition("threshold=1")]).expect("a baseline");
    assert_eq!(baseline.by, ["workload", "policy", "seed"]);
    assert_eq!(baseline.lacking(), rows.len() - 4, "rows of bsld and seed 1 alone have a partner");
}

#[test]
fn a_baseline_must_have_one_row_for_each_other_row() {
    let rows = collected(&sweep(), &["wait"]);
    let error = baseline::pairs(&rows, &[condition("policy=sjf")]).expect_err("no row").message;
    assert_eq!(error, "no row is in the baseline; in the rows, policy is bsld, easy, fcfs");
    let error = baseline::pairs(&rows, &[condition("policy!=fcfs"), condition("threshold!=1")])
        .expect_err("two policies")
        .message;
    assert!(error.contains("two rows of the baseline differ in policy, threshold alone"), "{error}");
}

#[test]
fn frames_are_sorted_cut_and_pivoted() {
    let rows = collected(&sweep(), &["wait"]);
    let frame = grouped(&rows, &["workload", "policy"], &[Stat::Mean, Stat::Interval(95)]).expect("columns");
    // A measure stands for its mean.
    let first = frame.sorted("wait", true).expect("a column").part(0, 1);
    assert_eq!(cells(&first, 0)[..3], [text("SDSC"), text("bsld"), Cell::Real(222.0)]);
    let wide = frame.pivoted("policy").expect("a key");
    let names: Vec<&str> = wide.batch().schema_ref().fields().iter().map(|field| field.name().as_str()).collect();
    assert_eq!(names[..3], ["workload", "mean(wait) [policy=fcfs]", "ci95(wait) [policy=fcfs]"]);
    assert_eq!((wide.batch().num_rows(), names.len(), wide.keys()), (2, 7, 1));
    assert_eq!(cells(&wide, 1)[5], Cell::Real(222.0));
    let error = frame.pivoted("wait").expect_err("no key").message;
    assert!(error.contains("only a column by which rows are grouped"), "{error}");
    let error = frame.sorted("energy", false).expect_err("no column").message;
    assert!(error.contains("it has workload, policy, mean(wait), ci95(wait)"), "{error}");
}

#[test]
fn a_pivot_leaves_gaps_where_a_group_is_missing() {
    let mut rows = sweep();
    rows.retain(|row| (row.1, row.2) != ("CTC", "easy"));
    let frame = grouped(&collected(&rows, &["wait"]), &["workload", "policy"], &[Stat::Mean]).expect("columns");
    let wide = frame.pivoted("policy").expect("a key");
    let row = |row| cells(&wide, row)[1..].to_vec();
    assert_eq!(row(0), [Cell::Real(102.0), Cell::Real(122.0), Cell::Null]);
    assert_eq!(row(1), [Cell::Real(202.0), Cell::Real(222.0), Cell::Real(212.0)]);
}

fn sheet() -> Sheet {
    let rows = collected(&sweep(), &["wait", "energy"]);
    let frame = grouped(&rows, &["policy", "threshold"], &[Stat::Mean, Stat::Interval(95)]).expect("columns");
    Sheet::of(&frame)
}

#[test]
fn markdown_has_units_factors_and_equal_decimals() {
    assert_eq!(
        sheet().markdown(),
        "| policy | threshold | wait (s) | energy (GJ) |\n\
         | --- | ---: | ---: | ---: |\n\
         | fcfs |  | 152.0 ± 2.5 | 152.0 ± 2.5 |\n\
         | easy |  | 162.0 ± 2.5 | 162.0 ± 2.5 |\n\
         | bsld | 2 | 172.0 ± 2.5 | 172.0 ± 2.5 |\n"
    );
}

#[test]
fn latex_is_a_table_of_booktabs() {
    let latex = sheet().latex();
    assert!(latex.starts_with("\\begin{tabular}{lrr@{\\,}rr@{\\,}r}\n\\toprule\n"), "{latex}");
    let headings = ["wait (s)", "energy (GJ)"].map(|of| format!("\\multicolumn{{2}}{{c}}{{{of} $\\pm$ 95\\% CI}}"));
    assert!(latex.contains(&format!("policy & threshold & {} \\\\\n\\midrule\n", headings.join(" & "))), "{latex}");
    let row = "bsld & $2$ & $172.0$ & $\\pm\\,2.5$ & $172.0$ & $\\pm\\,2.5$ \\\\\n\\bottomrule";
    assert!(latex.contains(row), "{latex}");
}

/// A pivoted table has the measure over its values, with the unit that they share.
#[test]
fn headings_of_a_pivoted_table_have_two_levels() {
    let rows = collected(&sweep(), &["wait", "energy"]);
    let of = |by: &str, stats: &[Stat]| {
        let frame = grouped(&rows, &["workload", by], stats).expect("columns");
        Sheet::of(&frame.pivoted(by).expect("a key"))
    };
    let latex = of("policy", &[Stat::Mean, Stat::Interval(95)]).latex();
    let over = ["wait (s)", "energy (GJ)"].map(|of| format!("\\multicolumn{{6}}{{c}}{{{of} $\\pm$ 95\\% CI}}"));
    let own = ["fcfs", "easy", "bsld"].map(|of| format!("\\multicolumn{{2}}{{c}}{{{of}}}")).join(" & ");
    let heading = format!(
        "\\toprule\n & {} \\\\\n\\cmidrule(lr){{2-7}}\\cmidrule(lr){{8-13}}\nworkload & {own} & {own} \\\\\n\\midrule\n",
        over.join(" & ")
    );
    assert!(latex.contains(&heading), "{latex}");
    let typst = of("threshold", &[Stat::Mean]).typst();
    assert!(typst.contains("table.header([], table.cell(colspan: 2, align: center)[wait (s)], "), "{typst}");
    assert!(typst.contains("[workload], [none], [threshold 2], "), "{typst}");
}

#[test]
fn typst_is_a_table() {
    let typst = sheet().typst();
    assert!(
        typst.contains("table.header([policy], [threshold], [wait (s) ± 95% CI], [energy (GJ) ± 95% CI]),"),
        "{typst}"
    );
    assert!(typst.contains("  [bsld], [$2$], [$172.0 plus.minus 2.5$], [$172.0 plus.minus 2.5$],\n"), "{typst}");
}

#[test]
fn narrow_intervals_are_padded_so_that_the_points_are_aligned() {
    let rows: Vec<Row> = [("a", 1, 10.0), ("a", 2, 30.0), ("b", 1, 10.0), ("b", 2, 10.4)]
        .into_iter()
        .enumerate()
        .map(|(at, (policy, seed, wait))| (at as i64, "CTC", policy, None, seed, wait, None))
        .collect();
    let frame = grouped(&collected(&rows, &["wait"]), &["policy"], &[Stat::Mean, Stat::Interval(95)]).expect("columns");
    let sheet = Sheet::of(&frame);
    assert_eq!(sheet.row(0).collect::<Vec<_>>(), ["a", "20.0 ± 127.1"]);
    assert_eq!(sheet.row(1).collect::<Vec<_>>(), ["b", "10.2 ±   2.5"]);
    assert!(sheet.latex().contains("$10.2$ & $\\pm\\,2.5$") && !sheet.latex().contains("phantom"), "{}", sheet.latex());
}

#[test]
fn a_number_and_its_half_width_share_digits_and_power() {
    assert_eq!(with_half(130.7, 120.3), "131 ± 120");
    assert_eq!(with_half(8.48e10, 5.069e9), "(84.8 ± 5.1)e9");
    assert_eq!(with_half(3.0, 0.0), "3 ± 0");
}

/// The value of a parameter is written as the manifest has it, and "unlimited" is a text in every format.
#[test]
fn keys_keep_their_digits() {
    let rows: Vec<Row> = [2.0, 1.25, f64::INFINITY]
        .into_iter()
        .enumerate()
        .map(|(at, threshold)| (at as i64, "CTC", "a", Some(threshold), 1, 12_345.0, None))
        .collect();
    let sheet = Sheet::of(&grouped(&collected(&rows, &["wait"]), &["threshold"], &[Stat::Mean]).expect("columns"));
    assert!(
        sheet.latex().contains("$2.00$ & $12345$ \\\\\n$1.25$ & $12345$ \\\\\nunlimited & $12345$ "),
        "{}",
        sheet.latex()
    );
    assert!(sheet.typst().contains("  [unlimited], [$12345$],\n"), "{}", sheet.typst());
}

#[test]
fn texts_are_escaped() {
    let rows = [(0, "CTC", "a_b|c#d", None, 1, 1.0, None), (1, "CTC", "-1 to -2%", None, 1, 1.0, None)];
    let tag = (2, "CTC", "<img src=x>", None, 1, 1.0, None);
    let rows = [rows[0], rows[1], tag];
    let frame = grouped(&collected(&rows, &["wait"]), &["policy"], &[Stat::Mean]).expect("columns");
    let sheet = Sheet::of(&frame);
    assert!(sheet.markdown().contains("| \\<img src=x> |"));
    assert!(sheet.markdown().contains("| a_b\\|c#d |"));
    assert!(sheet.latex().contains("a\\_b|c\\#d &"));
    assert!(sheet.latex().contains("$-$1 to $-$2\\% &"), "{}", sheet.latex());
    assert!(sheet.typst().contains("[a\\_b|c\\#d]"));
}

proptest! {
    /// Statistics do not depend on the order of the rows, nor on their batches.
    #[test]
    fn the_order_of_rows_changes_nothing(order in Just((0..18).collect::<Vec<usize>>()).prop_shuffle(), cut in 0..18_usize) {
        let all = batch(&sweep());
        let axes = ["workload", "policy", "threshold", "seed"];
        let mut shuffled = Rows::new(all.schema_ref(), &axes, &["wait", "energy"], "task_index").expect("columns");
        shuffled.add(&all, &order[..cut]).expect("columns");
        shuffled.add(&all, &order[cut..]).expect("columns");
        let stats = [Stat::Mean, Stat::Sd, Stat::Interval(99), Stat::Percentile(95.0), Stat::Sum];
        let of = |rows: &Rows| grouped(rows, &["policy", "threshold"], &stats).expect("columns");
        prop_assert_eq!(of(&shuffled), of(&collected(&sweep(), &["wait", "energy"])));
    }
}
