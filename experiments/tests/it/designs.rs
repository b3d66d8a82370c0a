//! Designs in manifests: axes over several sections, decoded from their index and found by values.

use std::collections::BTreeSet;

use powersweep_engine::{Role, Value};
use powersweep_experiments::{Decoder, Manifest, Mapping, Sweep, TaskSpec, with_lines, with_points};

use crate::{errors, sweep};

/// A design over a platform and a policy, crossed with workloads and seeds.
pub(crate) fn knobs(kind: &str) -> String {
    format!(
        r#"version = 1
name = "knobs"
seeds = [1, 2]
[designs.knobs]
{kind}
[workloads.a]
source = "lublin"
[workloads.b]
source = "lublin"
synthetic_procs = 64
[platforms.p]
size_factor = {{ from = 0.5, to = 2, scale = "log", design = "knobs" }}
[policies.q]
gear_rule = "bsld"
bsld_threshold = {{ from = 1.5, to = 3, design = "knobs" }}
wq_threshold = {{ values = [0, 4, "unlimited"], design = "knobs" }}
"#
    )
}

const SOBOL: &str = "kind = \"sobol\"\ncount = 16";

fn tasks(sweep: &Sweep) -> Vec<TaskSpec> {
    let mut decoder = Decoder::new(sweep.clone());
    (0..sweep.index_count()).filter_map(|index| decoder.task(index)).collect()
}

fn ids(sweep: &Sweep) -> BTreeSet<String> {
    tasks(sweep).iter().map(|task| task.task_id.to_string()).collect()
}

fn knob(task: &TaskSpec) -> (f64, f64) {
    (task.sim.choice(Role::Platform).real("size_factor"), task.sim.choice(Role::GearRule).real("bsld_threshold"))
}

#[test]
fn ranges_of_one_design_vary_together_and_are_crossed_with_the_rest() {
    let sweep = sweep(&knobs(SOBOL));
    assert_eq!((sweep.index_count(), sweep.task_count()), (2 * 16 * 2, 2 * 16 * 2));
    let tasks = tasks(&sweep);
    assert_eq!(tasks.iter().map(|task| task.task_id).collect::<BTreeSet<_>>().len(), 64);
    // Ranges are ordered by name: `bsld_threshold` has the first dimension, `size_factor` the second.
    let first: Vec<(f64, f64)> = tasks.iter().step_by(2).take(4).map(knob).collect();
    let of = |x: f64, y: f64| (0.5 * 4_f64.powf(y), 1.5 + 1.5 * x);
    let expected = [of(0.0, 0.0), of(0.5, 0.5), of(0.75, 0.25), of(0.25, 0.75)];
    for (found, expected) in first.iter().zip(expected) {
        assert!((found.0 - expected.0).abs() < 1e-14 && (found.1 - expected.1).abs() < 1e-14, "{first:?}");
    }
    for task in &tasks {
        assert_eq!(sweep.index_of(task), Some(task.index));
        assert_eq!(sweep.task(task.index).as_ref(), Some(task));
    }
}

#[test]
fn a_list_of_one_number_has_a_range_of_numbers() {
    let capped = |kind: &str, range: &str| {
        knobs(kind).replace(
            "wq_threshold = {",
            &format!("power_cap = \"admission\"\ncap_schedule_w = {range}\nwq_threshold = {{"),
        )
    };
    let caps = |sweep: &Sweep| -> Vec<Vec<f64>> {
        let mut caps: Vec<Vec<f64>> =
            tasks(sweep).iter().map(|task| task.sim.choice(Role::Cap).reals("cap_schedule_w").to_vec()).collect();
        caps.dedup();
        caps
    };
    let of = |range: &str| sweep(&capped("kind = \"sobol\"\ncount = 4", range));
    let drawn = of("{ from = 6e4, to = 1e5, design = \"knobs\" }");
    assert_eq!(caps(&drawn)[..4], [[6e4], [8e4], [7e4], [9e4]]);
    for task in tasks(&drawn) {
        assert_eq!(drawn.index_of(&task), Some(task.index));
    }
    let stepped = of("{ from = 6e4, to = 1e5, step = 1e4, design = \"knobs\" }");
    assert!(caps(&stepped).iter().all(|caps| caps.len() == 1 && caps[0] % 1e4 == 0.0));
    let logarithmic = of("{ from = 1e3, to = 1e5, scale = \"log\", design = \"knobs\" }");
    assert!((caps(&logarithmic)[1][0] - 1e4).abs() < 1e-9);
    let points = "kind = \"points\"\npoints = \"\"\"\nbsld_threshold,cap_schedule_w,size_factor,wq_threshold\n2,70000,1,0\n2,80000.5,1,4\n\"\"\"";
    let listed = sweep(&capped(points, "{ from = 6e4, to = 1e5, design = \"knobs\" }"));
    assert_eq!(caps(&listed)[..2], [[7e4], [80000.5]]);
    let outside = errors(&capped(points, "{ from = 7.5e4, to = 1e5, design = \"knobs\" }"));
    assert!(
        outside.contains("`cap_schedule_w` is [70000]") && outside.contains("expected 75000 to 100000"),
        "{outside}"
    );
    let negative = errors(&capped("kind = \"sobol\"\ncount = 4", "{ from = -1, to = 1e5, design = \"knobs\" }"));
    assert!(negative.contains("`from` of the range of `cap_schedule_w` cannot be"), "{negative}");
}

#[test]
fn more_points_keep_the_old_tasks_where_the_page_says_so() {
    for (kind, keeps) in [
        ("kind = \"sobol\"\ncount = 16", true),
        ("kind = \"sobol\"\nseed = 3\ncount = 16", true),
        ("kind = \"random\"\ncount = 16", true),
        ("kind = \"morris\"\ncount = 16", true),
        ("kind = \"saltelli\"\ncount = 16", true),
        ("kind = \"latin-hypercube\"\ncount = 16", false),
    ] {
        let (old, new) = (sweep(&knobs(kind)), sweep(&knobs(&kind.replace("16", "32"))));
        assert_eq!(ids(&old).is_subset(&ids(&new)), keeps, "{kind}");
        let mut mapping = Mapping::new(&old, &new);
        assert_eq!(mapping.may_share_a_task(), keeps, "{kind}");
        for task in tasks(&old) {
            let there = mapping.index(task.index);
            assert_eq!(there, new.index_of(&task), "{kind}");
            assert_eq!(there.is_some(), keeps, "{kind}");
            let moved = there.and_then(|there| new.task(there));
            assert!(moved.is_none_or(|moved| moved.task_id == task.task_id), "{kind}");
        }
    }
}

#[test]
fn a_grid_becomes_a_design_without_running_its_tasks_again() {
    let points = "size_factor,bsld_threshold,wq_threshold\n1,2,0\n1.5,2,unlimited\n1,3,4";
    let listed = format!("kind = \"points\"\npoints = \"\"\"\n{points}\n\"\"\"");
    let listed = knobs(&listed)
        .replace("from = 0.5, to = 2, scale = \"log\", ", "")
        .replace("from = 1.5, to = 3, ", "")
        .replace("values = [0, 4, \"unlimited\"], ", "");
    let grid = knobs(SOBOL)
        .replace("[designs.knobs]\nkind = \"sobol\"\ncount = 16\n", "")
        .replace("{ from = 0.5, to = 2, scale = \"log\", design = \"knobs\" }", "[1, 1.5]")
        .replace("{ from = 1.5, to = 3, design = \"knobs\" }", "[2, 3]")
        .replace("{ values = [0, 4, \"unlimited\"], design = \"knobs\" }", "[0, 4, \"unlimited\"]");
    let (listed, grid) = (sweep(&listed), sweep(&grid));
    assert_eq!(listed.task_count(), 2 * 3 * 2);
    assert!(ids(&listed).is_subset(&ids(&grid)));
    let (mut there, mut back) = (Mapping::new(&listed, &grid), Mapping::new(&grid, &listed));
    for task in tasks(&listed) {
        let index = there.index(task.index).expect("the grid has the task");
        assert_eq!(back.index(index), Some(task.index));
    }
}

#[test]
fn equal_points_are_one_task() {
    let text = knobs("kind = \"random\"\ncount = 1_000")
        .replace("size_factor = { from = 0.5, to = 2, scale = \"log\", design = \"knobs\" }", "")
        .replace(
            "{ from = 1.5, to = 3, design = \"knobs\" }",
            "{ from = 1.5, to = 3, step = 0.5, design = \"knobs\" }",
        );
    let sweep = sweep(&text);
    assert_eq!((sweep.index_count(), sweep.task_count()), (2 * 1_000 * 2, 2 * 12 * 2));
    let design = &sweep.designs()[0];
    assert_eq!((design.points_count, design.repeated_count), (1_000, 988));
    assert_eq!(design.ranges[0].values, "1.5 to 3, 4 values");
    for task in tasks(&sweep) {
        assert_eq!(sweep.index_of(&task), Some(task.index));
    }
}

#[test]
fn blocks_without_a_parameter_run_once_and_components_without_it_see_the_other_ranges() {
    let text = knobs(SOBOL).replace("gear_rule = \"bsld\"", "gear_rule = [\"top\", \"bsld\"]")
        + "[platforms.fixed]\nsize_factor = 3\n[policies.plain]\nbackfill = \"none\"\n";
    let sweep = sweep(&text);
    let count = |platform: &str, policy: &str, gear: &str| {
        let is = |task: &&TaskSpec| {
            (&*task.platform, &*task.policy) == (platform, policy)
                && task.sim.choice(Role::GearRule).component().name == gear
        };
        tasks(&sweep).iter().filter(is).count()
    };
    // Two workloads, two seeds.
    assert_eq!((count("p", "q", "bsld"), count("fixed", "q", "bsld")), (4 * 16, 4 * 16));
    assert_eq!((count("p", "q", "top"), count("fixed", "q", "top")), (4 * 16, 4));
    assert_eq!((count("p", "plain", "top"), count("fixed", "plain", "top")), (4 * 16, 4));
    assert_eq!(sweep.task_count(), 4 * (4 * 16 + 2));
    assert_eq!(ids(&sweep).len() as u64, sweep.task_count());
    for task in tasks(&sweep) {
        assert_eq!(sweep.index_of(&task), Some(task.index));
    }
}

#[test]
fn conditions_meet_the_values_of_points() {
    let all = sweep(&knobs(SOBOL));
    let wq = |task: &TaskSpec| task.sim.choice(Role::GearRule).get("wq_threshold").map(ToString::to_string);
    let with = |condition: &str| sweep(&format!("{}[[exclude]]\n{condition}\n", knobs(SOBOL)));
    let unlimited = tasks(&all).iter().filter(|task| wq(task).as_deref() == Some("unlimited")).count() as u64;
    assert!(unlimited > 8);
    let left = with("wq_threshold = \"unlimited\"");
    assert_eq!(left.task_count(), 64 - unlimited);
    assert!(tasks(&left).iter().all(|task| wq(task).as_deref() != Some("unlimited")));
    assert_eq!(with("wq_threshold = \"unlimited\"\nworkload = \"a\"\nseed = 1").task_count(), 64 - unlimited / 4);
    let low = tasks(&all).iter().filter(|task| knob(task).0 <= 1.0).count() as u64;
    let high = with("size_factor = { from = 0.5, to = 1 }");
    assert_eq!(high.task_count(), 64 - low);
    assert!(low > 8 && tasks(&high).iter().all(|task| knob(task).0 > 1.0));
    let grid = knobs(SOBOL).replace("{ from = 1.5, to = 3, design = \"knobs\" }", "[1.5, 2, 3]");
    let grid = sweep(&format!("{grid}[[exclude]]\nbsld_threshold = {{ from = 1.9, to = 9 }}\n"));
    assert_eq!(grid.task_count(), 64);
    let excluded = (0..grid.index_count()).find(|index| grid.is_excluded(*index)).expect("some are");
    assert_eq!(grid.why_excluded(excluded), "an [[exclude]] or zip of the manifest leaves this combination out");
    let none = errors(&format!("{}[[exclude]]\nbsld_threshold = {{ from = 8, to = 9 }}\n", knobs(SOBOL)));
    assert!(none.contains("no task has such a `bsld_threshold`"), "{none}");
    // The first point has both values.
    assert_eq!(with("wq_threshold = 0\nbsld_threshold = 1.5").task_count(), 60);
    // Two blocks, one with a value of its own.
    let two = knobs(SOBOL) + "[policies.r]\ngear_rule = \"bsld\"\nbsld_threshold = 9\nwq_threshold = 4\n";
    let four = sweep(&format!("{two}[[exclude]]\nwq_threshold = 4\n"));
    let wanted = tasks(&sweep(&two)).iter().filter(|task| wq(task).as_deref() != Some("4")).count() as u64;
    assert_eq!(four.task_count(), wanted);
}

#[test]
fn a_billion_points_are_decoded_by_index_and_found_by_values() {
    for kind in ["sobol", "latin-hypercube", "random"] {
        let sweep = sweep(&knobs(&format!("kind = \"{kind}\"\ncount = 1_000_000_000")));
        assert_eq!(sweep.task_count(), 4_000_000_000);
        for index in [0, 1, 1_234_567_890, 3_999_999_998, 3_999_999_999] {
            let task = sweep.task(index).expect("it is included");
            assert_eq!(sweep.index_of(&task), Some(index), "{kind}");
        }
        let more = crate::sweep(&knobs(&format!("kind = \"{kind}\"\ncount = 1_100_000_000")));
        let moved = Mapping::new(&sweep, &more).index(1_999_999_999).and_then(|index| more.task(index));
        assert_eq!(moved.is_some(), kind != "latin-hypercube", "{kind}");
        assert!(moved.is_none_or(|moved| moved.task_id == sweep.task(1_999_999_999).expect("included").task_id));
    }
}

#[test]
fn sizes_of_the_kinds_are_those_of_the_literature() {
    let points = |kind: &str| sweep(&knobs(kind)).designs()[0].points_count;
    assert_eq!(points("kind = \"saltelli\"\ncount = 8"), 8 * (3 + 2));
    assert_eq!(points("kind = \"saltelli\"\ncount = 8\nsecond_order = true"), 8 * (2 * 3 + 2));
    assert_eq!(points("kind = \"morris\"\ncount = 8"), 8 * (3 + 1));
    assert_eq!(points("kind = \"one-at-a-time\"\ncount = 5"), 1 + 3 * 5);
}

#[test]
fn an_index_of_a_repeated_point_says_so() {
    let sweep = sweep(
        r#"version = 1
name = "m2"
seeds = { from = 1, count = 5 }
[designs.k]
kind = "morris"
count = 8
[workloads.w]
source = "lublin"
synthetic_jobs_count = 100
[platforms.c]
size_factor = { from = 1, to = 2, design = "k" }
[policies.slow]
gear_rule = "bsld"
bsld_threshold = { from = 1.5, to = 6, scale = "log", design = "k" }
"#,
    );
    assert!(sweep.is_excluded(15) && !sweep.is_excluded(14));
    assert_eq!(sweep.why_excluded(15), "its point of a design is equal to an earlier one");
}

#[test]
fn a_point_s_place_is_recomputed_from_the_manifest() {
    let sweep = sweep(&knobs("kind = \"saltelli\"\ncount = 4"));
    let again = Manifest::parse("stored", sweep.manifest().text()).expect("it was valid");
    let points = again.designs().next().expect("it has the design");
    assert_eq!(points.parameters().collect::<Vec<_>>(), ["bsld_threshold", "size_factor", "wq_threshold"]);
    assert_eq!((points.count(), points.points_count(), points.is_second_order()), (4, 20, false));
    let of_task = |task: &TaskSpec| {
        let choices: Vec<_> = task.sim.choices().collect();
        points.parameters().map(|name| choices.iter().find_map(|choice| choice.get(name)).cloned()).collect::<Vec<_>>()
    };
    let rows: Vec<_> = tasks(&sweep).iter().map(of_task).collect();
    for point in 0..points.points_count() {
        let wanted: Vec<_> = points.values(point).into_iter().map(Some).collect();
        assert!(rows.contains(&wanted), "point {point} has no task");
    }
    assert!(points.label() == "knobs" && again.designs().count() == 1);
}

#[test]
fn files_of_points_become_part_of_the_text_on_the_same_lines() {
    let text = "version = 1\nname = \"t\"\n[designs.d]\nkind = \"points\"\nfile = \"p.csv\" # here\n[workloads.w]\n[policies.q]\n\
                gear_rule = \"bsld\"\nbsld_threshold = { design = \"d\" }\n";
    let read = |file: &str| if file == "p.csv" { Ok("bsld_threshold\n1.5\n\n2\n".to_owned()) } else { Err("another") };
    let inlined = with_points(text, read).expect("the file is there");
    assert_eq!(inlined.lines().count(), text.lines().count());
    assert!(inlined.contains("points = \"# p.csv\\nbsld_threshold\\n1.5\\n\\n2\\n\" # here"), "{inlined}");
    assert_eq!(sweep(&inlined).task_count(), 2);
    let wrong = with_points(text, |_| Ok::<_, ()>("bsld_threshold\nmany\n".to_owned())).expect("it is read");
    assert!(
        errors(&wrong).starts_with("error: line 2 of p.csv: `bsld_threshold` cannot be \"many\""),
        "{}",
        errors(&wrong)
    );
    // The header of a file of Parquet is no row.
    let rows = |_: &str| Ok::<_, ()>("bsld_threshold\n1.5\nmany\n".to_owned());
    let wrong = errors(&with_points(&text.replace("p.csv", "p.parquet"), rows).expect("it is read"));
    assert!(wrong.starts_with("error: row 2 of p.parquet: `bsld_threshold` cannot be \"many\""), "{wrong}");
    assert!(errors(text).contains("give the manifest by the name of its file"));
    assert_eq!(with_points(&text.replace("p.csv", "q.csv"), read), Err("another"));
}

#[test]
fn all_problems_are_reported_at_once_with_their_places() {
    let text = errors(
        r#"version = 1
name = "wrong"
[designs.a]
kind = "sobl"
[designs.b]
kind = "sobol"
levels = 4
[designs.c]
kind = "morris"
count = 4
levels = 5
[designs.unused]
kind = "random"
count = 0
[workloads.w]
source = "swf"
log = { values = ["x"], design = "c" }
[platforms.p]
size_factor = { from = 2, to = 1, design = "c" }
procs = { from = 1, to = 8, design = "d" }
[policies.q]
gear_rule = "bsld"
bsld_threshold = { from = 0, to = 3, scale = "log", design = "b" }
wq_threshold = { from = 0, to = 9, stp = 1, design = "b" }
zip = [["bsld_threshold", "wq_threshold"]]
"#,
    );
    for expected in [
        "there is no design of the kind \"sobl\"",
        "did you mean `sobol`?",
        "a design of the kind \"sobol\" has no key `levels`",
        "[designs.b] needs `count`",
        "`levels` is odd",
        "no block uses the design `unused`",
        "`count` cannot be 0",
        "`log` cannot have the values of a design",
        "the range of `size_factor` begins at 2, above its end 1",
        "there is no design \"d\"",
        "`from` of the range of `bsld_threshold` cannot be 0",
        "a range of a design has no key `stp`",
        "`bsld_threshold` has the values of a design, whose ranges vary together already",
        "test.toml:23:",
    ] {
        assert!(text.contains(expected), "{expected:?} is not in\n{text}");
    }
}

#[test]
fn a_range_is_refused_with_its_own_reason() {
    let of = |range: &str| errors(&knobs(SOBOL).replace("values = [0, 4, \"unlimited\"]", range));
    for (range, expected) in [
        ("from = 0, to = 16, scale = \"log\"", "the range of `wq_threshold` begins at 0, which has no logarithm"),
        ("from = 2, to = 1, scale = \"log\"", "the range of `wq_threshold` begins at 2, above its end 1"),
        ("from = 2, to = 2, scale = \"log\"", "the range of `wq_threshold` has no width"),
        ("from = 1, to = 2, step = 5", "`to = 6` would be a whole number of steps"),
        ("from = 1, to = 9, step = 5", "`to = 6` would be a whole number of steps"),
    ] {
        let text = of(range);
        assert!(text.contains(expected), "{expected:?} is not in\n{text}");
    }
}

#[test]
fn designs_that_cannot_be_told_apart_are_refused() {
    let many = knobs("kind = \"saltelli\"\ncount = 1_000_000");
    assert!(errors(&many).contains("some of the 5000000 points of the design `knobs` may be equal"));
    let twice =
        knobs(SOBOL) + "[platforms.same]\nsize_factor = { from = 0.5, to = 4, scale = \"log\", design = \"knobs\" }\n";
    assert!(errors(&twice).contains("the design `knobs` has two ranges of `size_factor`"));
    let same = knobs(SOBOL) + "[platforms.same]\nsize_factor = { design = \"knobs\" }\n";
    assert!(errors(&same).contains("blocks `p` and `same` give the same values"));
    // The first point of the sequence has the lower end of each range.
    let shared = knobs(SOBOL) + "[platforms.low]\nsize_factor = 0.5\n";
    assert!(errors(&shared).contains("both have size_factor = 0.5"));
    assert_eq!(sweep(&shared.replace("= 0.5\n", "= 0.6\n")).task_count(), 2 * 64);
    let huge = knobs("kind = \"sobol\"\ncount = 200_000") + "[[exclude]]\nwq_threshold = 4\n";
    assert!(errors(&huge).contains("`wq_threshold` has the values of a design of 200000 points"));
    let wide = knobs(SOBOL).replace("16", "100_000_000_000");
    assert!(errors(&wide).contains("expected an integer from 1 to 4294967296"));
    let points = |lines: &str| {
        let of = format!("kind = \"points\"\npoints = \"{lines}\"");
        errors(&knobs(&of).replace("from = 0.5, to = 2, scale = \"log\", ", ""))
    };
    let text = points("size_factor,bsld_threshold,other\\n1,2\\nx,2,3");
    for expected in [
        "line 3 of the points: `size_factor` cannot be \"x\"",
        "no block uses the column `other` of the points",
        "line 2 of the points has 2 values",
        "line 3 of the points: `size_factor` cannot be \"x\"",
        "there is no column `wq_threshold` in the points",
    ] {
        assert!(text.contains(expected), "{expected:?} is not in\n{text}");
    }
    let header = "size_factor,bsld_threshold,wq_threshold\\n";
    for (lines, expected) in [
        (
            "size_factor,bsld_threshold,wq_threshold,size_factor\\n1,2,0,1",
            "the column `size_factor` of the points is there twice",
        ),
        (&*format!("{header}\\\"1,2\\\",0"), "line 2 of the points: \"1 has a quotation mark"),
        (&*format!("{header}\\n1,2,\\\"0\\n1,2,0"), "line 3 of the points: \"0 has a quotation mark"),
        (&*format!("{header}1,\\\"2\\\"5,0"), "line 2 of the points: \"2\"5 has a quotation mark"),
    ] {
        let text = points(lines);
        assert!(text.contains(expected), "{expected:?} is not in\n{text}");
    }
    assert!(errors(&asked("size_factor,\"bsld\n")).contains("line 1 of the points: \"bsld has a quotation mark"));
    let whole = asked("size_factor,\"bsld_threshold\",wq_threshold\n1,\"2\",\"unlimited\"\n");
    assert_eq!(sweep(&whole).task_count(), 2 * 2);
}

/// Runs if Python has SciPy.
#[test]
fn the_sequence_equals_an_installed_scipy() {
    let script = "from scipy.stats import qmc\nfor p in qmc.Sobol(3, scramble=False).random(512): print(*map(repr, map(float, p)))";
    let output = std::process::Command::new("python3").args(["-c", script]).output();
    let Some(output) = output.ok().filter(|output| output.status.success()) else {
        println!("skipped: python3 with scipy is not installed");
        return;
    };
    let sweep = sweep(&knobs("kind = \"sobol\"\ncount = 512"));
    let points = sweep.manifest().designs().next().expect("it has the design");
    let lines = String::from_utf8(output.stdout).expect("numbers");
    assert_eq!(lines.lines().count(), 512);
    for (point, line) in (0..).zip(lines.lines()) {
        let theirs: Vec<f64> = line.split(' ').map(|x| x.parse().expect("a number")).collect();
        assert_eq!(points.coordinates(point), theirs);
    }
}

/// Listed points of which each parameter has a range.
fn asked(lines: &str) -> String {
    knobs(&format!("kind = \"points\"\npoints = \"\"\"\n{lines}\"\"\""))
}

#[test]
fn listed_points_lie_in_the_ranges_of_their_parameters() {
    let header = "size_factor,bsld_threshold,wq_threshold\n";
    let found = sweep(&asked(&format!("{header}0.5,1.5,0\n2,3,unlimited\n")));
    assert_eq!(found.task_count(), 2 * 2 * 2);
    let design = found.manifest().design("knobs").expect("the design");
    let ranges: Vec<_> = design.ranges().map(|range| (range.parameter, range.is_log, range.values)).collect();
    assert_eq!(ranges[0], ("bsld_threshold", false, None));
    assert_eq!(ranges[1], ("size_factor", true, None));
    assert_eq!(ranges[2].2.as_ref().map(Vec::len), Some(3));
    assert_eq!(design.checked(0, Value::Int(2)), Ok(Value::Real(2.0)));
    assert_eq!(design.checked(0, Value::Real(3.5)), Err("`bsld_threshold` is 3.5, outside of 1.5 to 3".to_owned()));
    for (line, reason) in [("0.4,2,0", "`size_factor` is 0.4"), ("1,2,5", "`wq_threshold` is 5")] {
        let error = errors(&asked(&format!("{header}{line}\n")));
        assert!(error.contains(&format!("line 2 of the points: {reason}")), "{error}");
    }
}

#[test]
fn a_design_without_points_has_no_tasks_until_lines_are_added() {
    let empty = sweep(&asked(""));
    assert_eq!((empty.task_count(), empty.next_included(0)), (0, None));
    let summary = &empty.designs()[0];
    assert_eq!((summary.points_count, summary.repeated_count), (0, 0));
    assert_eq!(summary.ranges[0].values, "1.5 to 3");
    let beside = sweep(&(asked("") + "[policies.plain]\nbackfill = \"none\"\n[platforms.fixed]\nsize_factor = 3\n"));
    assert_eq!(beside.task_count(), 2 * 2, "blocks without the design");

    let lines = "bsld_threshold,size_factor,wq_threshold\n2,1,0\n2.5,1,0\n".to_owned();
    let text = with_lines(&asked(""), &[("knobs".to_owned(), lines)].into()).expect("the key `points`");
    let filled = sweep(&text);
    assert_eq!(filled.task_count(), 2 * 2 * 2);
    assert!(with_lines(&knobs(SOBOL), &[("knobs".to_owned(), String::new())].into()).is_none());
    let points = tasks(&filled).iter().map(|task| filled.points_of(task.index)).collect::<Vec<_>>();
    assert!(points.iter().all(|of| of.points.len() == 1 && of.points[0].is_whole && &*of.points[0].design == "knobs"));
    let places: Vec<(u64, u64)> = points.iter().map(|of| (of.combination, of.points[0].point)).collect();
    assert_eq!(places, [(0, 0), (0, 0), (0, 1), (0, 1), (1, 0), (1, 0), (1, 1), (1, 1)]);
}
