//! Problems of a claims file: all are reported at once, each with its line.

use powersweep_claims::Claims;

const GOOD: &str = r#"
version = 1
paper = "p"
title = "P"
manifests = ["m"]
[runs.top]
policy = "top"
[[claims]]
id = "c"
text = "claim {workload}"
source = "Table 1"
per.workload = ["a", "b"]
published = [1, 2]
within = { relative = 0.1 }
value = { runs = "top", column = "wait_s_mean" }
"#;

/// The replaced text, its replacement, the place of the problem, and words of the message.
const CASES: &[(&str, &str, &str, &[&str])] = &[
    ("version = 1", "version = 2", "2:11", &["`version` is not 1"]),
    ("paper = \"p\"", "paper = 3", "3:9", &["`paper` cannot be 3", "a text"]),
    ("title = \"P\"\n", "", "1:1", &["`title` is missing"]),
    ("manifests = [\"m\"]", "manifests = []", "5:13", &["`manifests` cannot be a list", "a list of texts"]),
    ("manifests = [\"m\"]", "manifest = [\"m\"]", "5:1", &["no key `manifest`", "did you mean `manifests`?"]),
    ("policy = \"top\"", "polcy = \"top\"", "7:1", &["no column `polcy`", "did you mean `policy`?"]),
    ("policy = \"top\"", "seed = \"top\"", "7:8", &["`seed` cannot be \"top\"", "a number"]),
    ("policy = \"top\"", "manifest = \"n\"", "7:12", &["`manifests` does not list `n`"]),
    ("id = \"c\"\n", "", "8:1", &["`id` is missing"]),
    ("{workload}", "{seed}", "10:8", &["{seed}, which is not in `per`"]),
    ("source", "sauce", "11:1", &["a claim has no key `sauce`", "did you mean `source`?"]),
    (
        "source = \"Table 1\"",
        "guard = \"reading\"",
        "13:13",
        &["a guard has no published number", "the key `expected`"],
    ),
    ("published = [1, 2]", "expected = [1, 2]", "13:12", &["a claim of the paper has the key `published`"]),
    ("source =", "guard = \"reading\"\nsource =", "11:9", &["both `source` and `guard`"]),
    ("[\"a\", \"b\"]", "[1, \"b\"]", "12:17", &["`workload` cannot be 1"]),
    ("per.workload = [\"a\", \"b\"]", "per.manifest = [\"m\", \"n\"]", "12:16", &["`manifests` does not list `n`"]),
    ("per.workload = [\"a\", \"b\"]", "per = [1]", "12:8", &["a repetition must be a table"]),
    ("published = [1, 2]", "published = [1, 2, 3]", "13:13", &["3 numbers for 2 repetitions"]),
    ("published = [1, 2]\n", "", "13:10", &["`within` needs a number", "expected = ... of a guard"]),
    ("within = { relative = 0.1 }", "within = { relativ = 0.1 }", "14:12", &["no key `relativ`"]),
    (
        "within = { relative = 0.1 }",
        "within = { absolute = -1 }",
        "14:23",
        &["the tolerance `absolute` is -1", "not negative"],
    ),
    ("within = { relative = 0.1 }\n", "", "13:13", &["the tolerance is missing"]),
    ("within = { relative = 0.1 }", "demanded = false", "14:12", &["expected why = "]),
    (
        "within = { relative = 0.1 }",
        "ascending = { seed = 1 }",
        "14:13",
        &["does not name an order", "two of its values"],
    ),
    ("within = { relative = 0.1 }", "less_than = { runs = \"low\" }", "14:22", &["there is no [runs.low]"]),
    ("column = \"wait_s_mean\"", "column = \"wait_mean\"", "15:34", &["no column `wait_mean`"]),
    ("column = \"wait_s_mean\"", "column = \"worker\"", "15:34", &["`worker` is not a number"]),
    (", column = \"wait_s_mean\"", "", "15:9", &["the value has no `column`"]),
    (
        "column = \"wait_s_mean\"",
        "column = \"lp_shares\"",
        "15:9",
        &["`lp_shares` is a list", "where = { element = 1 }"],
    ),
    ("per.workload = [\"a\", \"b\"]", "per.element = [1, 2]", "15:9", &["`wait_s_mean` is not a list"]),
    ("column = \"wait_s_mean\"", "column = \"element\"", "15:34", &["`element` is not a number"]),
    ("relative = 0.1", "of = { column = \"wait\" }", "14:28", &["no column `wait`"]),
    ("column =", "by = [\"seed\"], column =", "15:9", &["stays grouped by seed", "`then`"]),
    ("column =", "aggregate = \"median\", column =", "15:37", &["no aggregate `median`", "p50"]),
    ("column =", "table = \"task\", column =", "15:33", &["no table `task`", "did you mean `tasks`?"]),
    (
        "column =",
        "then = [{ aggregate = \"max\", over = [] }], column =",
        "15:61",
        &["`over` cannot be a list", "a list of texts"],
    ),
    ("column =", "then = [{ over = [\"seed\"] }], column =", "15:33", &["the step has no `aggregate`"]),
    (
        "column =",
        "then = [{ aggregate = \"greatest-change\" }], column =",
        "15:33",
        &["a change needs one column", "over = [\"x\"]"],
    ),
    ("value = { runs = \"top\", column = \"wait_s_mean\" }", "value = 3", "15:9", &["a selection must be a table"]),
    ("[1, 2]", "[1, \"x\"]", "13:17", &["`published` cannot be \"x\"", "a number"]),
    ("[\"a\", \"b\"]", "[\"a\", []]", "12:22", &["`workload` cannot be a list", "a text"]),
    ("column =", "absolute = 1, column =", "15:36", &["`absolute` cannot be 1", "true or false"]),
    ("value = {", "value = ", "15:", &["not TOML"]),
];

#[test]
fn the_correct_claims_file_is_accepted() {
    let claims = Claims::parse("p.toml", GOOD).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!((claims.count(true), claims.manifests(true)), (2, vec!["m"]));
}

#[test]
fn each_problem_is_reported_with_its_place() {
    for (from, to, place, words) in CASES {
        assert!(GOOD.contains(from), "{from}");
        let text = GOOD.replacen(from, to, 1);
        let shown = match Claims::parse("p.toml", &text) {
            Ok(_) => panic!("accepted: {from} -> {to}"),
            Err(errors) => errors.to_string(),
        };
        assert!(shown.contains(&format!("--> p.toml:{place}")), "{from} -> {to}: not at {place}:\n{shown}");
        for word in *words {
            assert!(shown.contains(word), "{from} -> {to}: {word:?} is not in\n{shown}");
        }
    }
}

#[test]
fn all_problems_are_reported_at_once() {
    let text = GOOD.replace("version = 1", "version = 2").replace("sauce", "x").replace("wait_s_mean", "wait");
    let errors = Claims::parse("p.toml", &text.replace("source", "sauce")).expect_err("three problems");
    assert!(errors.problems().len() >= 3, "{errors}");
    let text = text.replace("\"claim {workload}\"", "3").replace("relative = 0.1", "relative = \"x\"");
    let errors = Claims::parse("p.toml", &text).expect_err("four problems");
    let places: Vec<usize> = errors.problems().iter().map(|problem| problem.span().start).collect();
    let at = |words: &str| text.find(words).expect("the text has it") + words.find("= ").expect("a value") + 2;
    assert_eq!(places, ["version = 2", "text = 3", "relative = \"x", "column = \"wait"].map(at), "{errors}");
}

#[test]
fn ids_are_unique() {
    let second = GOOD.split_once("[[claims]]").expect("it has a claim").1;
    let errors = Claims::parse("p.toml", &format!("{GOOD}[[claims]]{second}")).expect_err("an id twice");
    assert!(errors.to_string().contains("two claims have the id `c`"), "{errors}");
}
