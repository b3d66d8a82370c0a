//! Messages about wrong manifests.

use powersweep_experiments::Manifest;

use crate::errors;

/// A correct manifest; the cases replace a line of it.
const GOOD: &str = r#"version = 1
name = "good"
seeds = [1, 2]
[workloads.w]
source = "lublin"
synthetic_jobs_count = 100
[platforms.p]
size_factor = [1, 1.5]
[policies.q]
queue_order = "fcfs"
gear_rule = "bsld"
bsld_threshold = [2, 3]
[[exclude]]
size_factor = 1.5
bsld_threshold = 3
"#;

/// (line to replace, replacement, line:column of the caret, what the message must contain)
const CASES: &[(&str, &str, &str, &[&str])] = &[
    ("version = 1", "version = 2", "1:11", &["cannot read version 2", "version = 1"]),
    ("version = 1", "", "1:1", &["`version` is missing"]),
    ("name = \"good\"", "name = \"Good Name\"", "2:8", &["becomes a folder", "`good-name` would be valid"]),
    ("name = \"good\"", "nmae = \"good\"", "2:1", &["no key `nmae`", "did you mean `name`?"]),
    ("seeds = [1, 2]", "seeds = [1, 2, 1]", "3:16", &["`seeds` has the value 1 twice"]),
    ("seeds = [1, 2]", "seeds = -1", "3:9", &["`seeds` cannot be -1", "at least 0"]),
    ("seeds = [1, 2]", "seeds = []", "3:9", &["empty list"]),
    ("seeds = [1, 2]", "seeds = { from = 1 }", "3:9", &["incomplete", "{ from, count }"]),
    ("seeds = [1, 2]", "tables = [\"series\", \"series\"]", "3:21", &["`series` is listed twice"]),
    ("seeds = [1, 2]", "limits = { task_deadline_s = 0 }", "3:30", &["`task_deadline_s` cannot be 0", "above 0"]),
    ("seeds = [1, 2]", "limits = { task_deadline_s = [1, 2] }", "3:30", &["a limit cannot be an axis"]),
    ("seeds = [1, 2]", "limits = { task_max_events = 1.5 }", "3:30", &["an integer"]),
    ("seeds = [1, 2]", "limits = { task_max_memory = \"1 XB\" }", "3:30", &["cannot be \"1 XB\"", "512MiB"]),
    ("seeds = [1, 2]", "limits = { task_max_memory = 0 }", "3:30", &["cannot be 0", "512 MiB"]),
    (
        "seeds = [1, 2]",
        "limits = { task_max_event = 1 }",
        "3:12",
        &["no key `task_max_event`", "did you mean `task_max_events`?"],
    ),
    ("seeds = [1, 2]", "limits = 5", "3:10", &["`limits` must be a table"]),
    ("seeds = [1, 2]", "series = [\"powr_w\"]", "3:11", &["no series \"powr_w\"", "did you mean `power_w`?", "idle"]),
    ("seeds = [1, 2]", "series = [\"power_w\", \"power_w\"]", "3:22", &["`power_w` is listed twice"]),
    ("seeds = [1, 2]", "series = []", "3:10", &["must be a list of series", "leave it out"]),
    ("seeds = [1, 2]", "tables = [\"tasks\"]", "3:11", &["always written", "expected \"jobs\" or \"series\""]),
    ("seeds = [1, 2]", "tables = [\"job\"]", "3:11", &["no optional table \"job\"", "did you mean `jobs`?"]),
    ("source = \"lublin\"", "source = \"lubin\"", "5:10", &["there is no source \"lubin\"", "did you mean `lublin`?"]),
    ("source = \"lublin\"", "source = \"swf\"", "5:1", &["needs `log`", "source `swf` requires it"]),
    ("synthetic_jobs_count = 100", "synthetic_job_count = 100", "6:1", &["did you mean `synthetic_jobs_count`?"]),
    ("synthetic_jobs_count = 100", "synthetic_jobs_count = 1.5", "6:24", &["an integer", "without a decimal point"]),
    ("synthetic_jobs_count = 100", "synthetic_jobs_count = 0", "6:24", &["cannot be 0", "from 1 to"]),
    ("size_factor = [1, 1.5]", "power_top_w = \"0.2 kW\"", "8:15", &["cannot be \"0.2 kW\"", "is in W: write 200"]),
    ("size_factor = [1, 1.5]", "gears_ghz = [\"2400 MHz\"]", "8:14", &["cannot be \"2400 MHz\"", "in GHz: write 2.4"]),
    ("synthetic_jobs_count = 100", "log = \"x\"", "6:1", &["applies to no component", "belongs to source = \"swf\""]),
    ("synthetic_jobs_count = 100", "size_factor = 2", "6:1", &["`size_factor` belongs in a block of [platforms]"]),
    (
        "size_factor = [1, 1.5]",
        "gears_ghz = [1, -2, 3]",
        "8:17",
        &["value 2 of `gears_ghz` cannot be -2", "of at least"],
    ),
    ("size_factor = [1, 1.5]", "gears_ghz = [1, nan]", "8:17", &["value 2 of `gears_ghz` cannot be nan"]),
    ("size_factor = [1, 1.5]", "gears_ghz = [[1, 2], [1, \"x\"]]", "8:26", &["value 2 of `gears_ghz` cannot be \"x\""]),
    ("size_factor = [1, 1.5]", "gears_ghz = []", "8:13", &["`gears_ghz` cannot be an empty list"]),
    ("size_factor = [1, 1.5]", "size_factor = [1, \"2\"]", "8:19", &["cannot be \"2\"", "without quotes"]),
    ("size_factor = [1, 1.5]", "size_factor = [1, 1.5, 1.0]", "8:24", &["has the value 1 twice"]),
    ("size_factor = [1, 1.5]", "size_factor = { from = 1, to = 2.05, step = 0.1 }", "8:15", &["is wrong", "`to = 2`"]),
    ("size_factor = [1, 1.5]", "size_factor = { from = 1, to = 2 }", "8:15", &["incomplete", "needs `step`"]),
    (
        "size_factor = [1, 1.5]",
        "size_factor = { from = 2, to = 1, step = 0.1 }",
        "8:15",
        &["`to` to be at least `from`"],
    ),
    ("size_factor = [1, 1.5]", "size_factor = { from = 0, to = 1.5, step = 0.5 }", "8:15", &["above 0"]),
    ("size_factor = [1, 1.5]", "size_factor = { form = 1, to = 2, step = 1 }", "8:17", &["did you mean `from`?"]),
    (
        "size_factor = [1, 1.5]",
        "size_factor = 2",
        "14:15",
        &["no task has size_factor = 1.5", "values in this manifest: 2"],
    ),
    (
        "size_factor = [1, 1.5]",
        "size_factor = [1, 1.5]\nprocs = [1, 2, 3]\nzip = [[\"size_factor\", \"procs\"]]",
        "10:24",
        &["cannot zip `size_factor` with 2 values and `procs` with 3"],
    ),
    (
        "size_factor = [1, 1.5]",
        "size_factor = [1, 1.5]\nzip = [[\"size_factor\", \"prcs\"]]",
        "9:24",
        &["does not set"],
    ),
    ("size_factor = [1, 1.5]", "size_factor = [1, 1.5]\nzip = [\"size_factor\"]", "9:8", &["list of names"]),
    (
        "queue_order = \"fcfs\"",
        "queue_order = [\"fcfs\", \"sfj\"]",
        "10:24",
        &["there is no queue_order \"sfj\"", "\"widest\"", "did you mean `sjf`?"],
    ),
    ("queue_order = \"fcfs\"", "queue_order = [\"fcfs\", \"fcfs\"]", "10:24", &["has the value fcfs twice"]),
    ("queue_order = \"fcfs\"", "queue_order = []", "10:15", &["empty list"]),
    (
        "queue_order = \"fcfs\"",
        "queue_order = \"formula\"",
        "10:1",
        &["needs `formula`", "an expression over submit_s, first_submit_s, estimate_s, requested_s"],
    ),
    (
        "queue_order = \"fcfs\"",
        "queue_order = \"formula\"\nformula = [\"procs\", \"max(procs)\"]",
        "11:21",
        &["`formula` cannot be \"max(procs)\"", "at column 10, expected an operator or `,` and value 2", "found `)`"],
    ),
    (
        "queue_order = \"fcfs\"",
        "queue_order = \"formula\"\nformula = [\"procs\", \" ( procs)\"]",
        "11:21",
        &["`formula` has the value procs twice"],
    ),
    (
        "queue_order = \"fcfs\"",
        "queue_order = \"formula\"\nformula = 5",
        "11:11",
        &["`formula` cannot be 5", "expected an expression over submit_s"],
    ),
    ("queue_order = \"fcfs\"", "formula = \"procs\"", "10:1", &["`formula` applies to no component"]),
    ("queue_order = \"fcfs\"", "seeds = [1]", "10:1", &["move it to the top"]),
    ("gear_rule = \"bsld\"", "gear_rule = \"top\"", "12:1", &["applies to no component", "gear_rule = \"bsld\""]),
    ("bsld_threshold = [2, 3]", "wq_threshold = 3", "11:1", &["needs `bsld_threshold`", "at least 1"]),
    ("bsld_threshold = [2, 3]", "bsld_threshold = [2, 3, nan]", "12:25", &["cannot be nan"]),
    ("bsld_threshold = [2, 3]", "bsld_threshold = [2, 3, \"unlimitd\"]", "12:25", &["or \"unlimited\""]),
    ("bsld_threshold = 3", "bsld_treshold = 3", "15:1", &["unknown axis", "did you mean `bsld_threshold`?"]),
    ("bsld_threshold = 3", "bsld_threshold = 4", "15:18", &["matches nothing", "values in this manifest: 2, 3"]),
    ("bsld_threshold = 3", "policy = \"Q\"", "15:10", &["matches nothing", "did you mean `q`?"]),
    ("bsld_threshold = 3", "[[exclude]]\nsize_factor = 1", "13:3", &["every task is excluded"]),
    ("bsld_threshold = 3", "[[exclude]]", "15:1", &["exclude everything"]),
    ("[policies.q]", "[policies.\"q/r\"]", "9:11", &["cannot be a label"]),
    ("[policies.q]", "[policies]", "10:1", &["[policies] holds named blocks, not the key `queue_order`"]),
    ("[platforms.p]", "[platform.p]", "7:2", &["no key `platform`", "did you mean `platforms`?"]),
    ("[workloads.w]", "[workloads.w]\nsynthetic_procs = { from = 1, to = 9223372036854775807 }", "5:19", &["is wrong"]),
    ("seeds = [1, 2]", "seeds = { from = 0, count = 9223372036854775807 }", "1:1", &["more than 2^63"]),
    ("seeds = [1, 2]", "seeds = 9223372036854775808", "3:9", &["cannot be 9223372036854775808", "to 2^63 - 1"]),
    (
        "seeds = [1, 2]",
        "seeds = { from = 9223372036854775808, count = 1 }",
        "3:18",
        &["`from` of a range", "to 2^63 - 1"],
    ),
    (
        "seeds = [1, 2]",
        "seeds = { from = 9223372036854775807, count = 2 }",
        "3:9",
        &["integers go from", "to 2^63 - 1"],
    ),
    (
        "source = \"lublin\"\nsynthetic_jobs_count = 100",
        "source = \"swf\"\nlog = \"https://ann:pw@h/x.swf\"\nlog_sha256 = \"0000000000000000000000000000000000000000000000000000000000000000\"",
        "6:7",
        &["the URL has a user name or a password", "download the file"],
    ),
    ("seeds = [1, 2]", "seeds = [1, 2", "4:1", &["this is not TOML"]),
    (
        "bsld_threshold = [2, 3]",
        "horizon_s = 12 h # long",
        "12:13",
        &["this is not TOML", "`horizon_s` is in s: write 43200"],
    ),
    ("seeds = [1, 2]", "seeds = 1\nseeds = 2", "4:1", &["this is not TOML", "duplicate key"]),
];

#[test]
fn the_correct_manifest_is_accepted() {
    assert!(Manifest::parse("good.toml", GOOD).is_ok());
}

#[test]
fn every_problem_has_a_place_an_expectation_and_a_hint() {
    let mut failed = Vec::new();
    for (line, replacement, place, parts) in CASES {
        assert!(GOOD.contains(line), "{line}");
        let text = errors(&GOOD.replacen(line, replacement, 1));
        let missing: Vec<&&str> = parts.iter().filter(|part| !text.contains(**part)).collect();
        if !missing.is_empty() || !text.contains(&format!("test.toml:{place}\n")) {
            failed.push(format!("{replacement}: expected {place} and {missing:?}\n{text}"));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn all_problems_are_reported_at_once_in_order() {
    let text = GOOD
        .replace("version = 1", "version = 3")
        .replace("\"lublin\"", "\"lubin\"")
        .replace("[1, 1.5]", "[]")
        .replace("\"fcfs\"", "\"fcf\"")
        .replace("[2, 3]", "[2, 0]");
    let errors = Manifest::parse("test.toml", &text).expect_err("five problems");
    let starts: Vec<usize> = errors.problems().iter().map(|p| p.span().start).collect();
    assert_eq!(errors.problems().len(), 5, "{errors}");
    assert!(starts.is_sorted());
}

#[test]
fn rendering_shows_line_caret_and_help() {
    let text = errors(&GOOD.replace("queue_order = \"fcfs\"", "queue_order = \"fcf\""));
    let expected = "\
error: there is no queue_order \"fcf\"
  --> test.toml:10:15
   |
10 | queue_order = \"fcf\"
   |               ^^^^^ expected one of \"fcfs\", \"priority\", \"sjf\", \"widest\", \"wfp3\", \"f1\", \"formula\"
   |
   = help: did you mean `fcfs`?
";
    assert_eq!(text, expected);
}

#[test]
fn the_coloured_form_shows_every_problem() {
    let text = GOOD.replace("queue_order = \"fcfs\"", "queue_order = \"fcf\"").replace("seeds = [1, 2]", "seeds = -1");
    let errors = Manifest::parse("test.toml", &text).expect_err("two problems");
    let shown = errors.coloured();
    for part in ["there is no queue_order", "`seeds` cannot be -1", "test.toml:10:15", "did you mean `fcfs`?"] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    assert_eq!(shown.matches("`seeds` cannot be -1").count(), 1, "{shown}");
    println!("{shown}");
}

#[test]
fn a_queueing_model_has_no_rows_of_jobs() {
    let text = powersweep_experiments::manifests::find("do2013").expect("is shipped");
    let text = text.replace("tables = [\"series\"]", "tables = [\"series\", \"jobs\"]");
    let shown = errors(&text);
    assert!(shown.contains("lists \"jobs\", but a queueing model (`kind` = \"buffered\") records no jobs"), "{shown}");
}

#[test]
fn a_log_is_read_in_one_way() {
    let text = |import: &str| {
        format!(
            "version = 1\nname = \"direct\"\n[workloads.w]\nsource = \"swf\"\nlog = \"dump.txt\"\nlog_import = {import}\n"
        ) + "[platforms.p]\nprocs = 8\n[policies.x]\nbackfill = \"easy\"\n"
    };
    let manifest = Manifest::parse("direct.toml", &text("\"slurm --timezone UTC\"")).expect("is correct");
    let files = manifest.files();
    assert_eq!((files.len(), files[0].import.as_deref()), (1, Some("slurm --timezone UTC")));
    let message = errors(&text("[\"slurm --procs cpus\", \"slurm --procs nodes\"]"));
    for part in ["5:7", "log `dump.txt` is read in 2 ways", "expected one `log_import` for each log"] {
        assert!(message.contains(part), "{part}: {message}");
    }
}
