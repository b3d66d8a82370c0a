//! The command `plot`. Figures need the cargo feature `figures`; without it the command says how to get it.

use crate::sandbox::Sandbox;
use crate::sweeps::synthetic;

#[cfg(not(feature = "figures"))]
#[test]
fn a_binary_without_figures_says_how_to_get_them() {
    let refused = Sandbox::new().run(&["plot", "x", "--figure", "bars", "--x", "policy", "--y", "wait_s_mean"]);
    refused.exits(2).says(&["cargo install --path cli --features figures"]);
    let sandbox = Sandbox::new();
    sandbox.write("sweep.toml", synthetic("sweep", 1));
    sandbox.run(&["plan", "sweep.toml"]).exits(0);
}

#[cfg(feature = "figures")]
mod drawn {
    use std::collections::BTreeMap;

    use powersweep_engine::queues::t_quantile;

    use super::*;
    use crate::runs::path_with;
    use crate::sandbox::Ended;
    use crate::tables::SLOW;

    /// Eight tasks: two queue orders, two thresholds, two seeds; with jobs and a series.
    const SWEEP: &str = r#"version = 1
name = "drawn"
seeds = { from = 1, count = 2 }
tables = ["jobs"]
series = ["power_w", "idle_procs"]
[workloads.synthetic]
source = "lublin"
synthetic_jobs_count = 60
synthetic_procs = 64
[policies.gears]
queue_order = ["fcfs", "sjf"]
gear_rule = "bsld"
bsld_threshold = [1.5, 3]
[statistics]
watch_machine = true
"#;

    fn swept() -> Sandbox {
        let sandbox = Sandbox::new();
        sandbox.write("drawn.toml", SWEEP);
        sandbox.run(&["run", "drawn.toml", "--quiet"]).exits(0);
        sandbox
    }

    fn plot(sandbox: &Sandbox, experiment: &str, arguments: &str) -> Ended {
        let arguments: Vec<&str> = ["plot", experiment].into_iter().chain(arguments.split_whitespace()).collect();
        sandbox.run(&arguments)
    }

    /// The rows of a CSV text by the names of its columns.
    fn rows(text: &str) -> Vec<BTreeMap<String, String>> {
        let mut lines = text.lines();
        let names: Vec<&str> = lines.next().expect("a header").split(',').collect();
        let row =
            |line: &str| names.iter().map(|name| (*name).to_owned()).zip(line.split(',').map(str::to_owned)).collect();
        lines.map(row).collect()
    }

    fn number(row: &BTreeMap<String, String>, name: &str) -> f64 {
        row[name].parse().unwrap_or_else(|_| panic!("{name} of {row:?}"))
    }

    /// The numbers in a figure are those of the table: means over seeds with the interval of Student's t.
    #[test]
    fn bars_have_the_means_of_the_rows_of_results() {
        let sandbox = Sandbox::new();
        sandbox.write("sweep.toml", synthetic("sweep", 5));
        sandbox.run(&["run", "sweep.toml", "--quiet"]).exits(0);
        let all =
            sandbox.run(&["results", "sweep", "--format", "csv", "--columns", "queue_order,seed,wait_s_mean"]).exits(0);
        let drawn = plot(&sandbox, "sweep", "--figure bars --x queue_order --y wait_s_mean --format csv").exits(0);
        let (all, drawn) = (rows(&all.stdout), rows(&drawn.stdout));
        assert_eq!(drawn.len(), 2);
        for bar in drawn {
            let of_bar = all.iter().filter(|row| row["queue_order"] == bar["queue_order"]);
            let waits: Vec<f64> = of_bar.map(|row| number(row, "wait_s_mean")).collect();
            assert_eq!((waits.len(), number(&bar, "rows_count")), (5, 5.0));
            let mean = waits.iter().sum::<f64>() / 5.0;
            let variance = waits.iter().map(|wait| (wait - mean).powi(2)).sum::<f64>() / 4.0;
            let half = t_quantile(0.95, 4) * (variance / 5.0).sqrt();
            for (name, expected) in
                [("wait_s_mean", mean), ("wait_s_mean_low", mean - half), ("wait_s_mean_high", mean + half)]
            {
                assert!((number(&bar, name) - expected).abs() <= 1e-9 * expected.abs(), "{name}: {bar:?}");
            }
        }
    }

    const KINDS: [&str; 11] = [
        "bars --x queue_order --y energy_total_j --colour bsld_threshold",
        "lines --x bsld_threshold --y wait_s_mean --colour queue_order",
        "lines --x queue_order --y wait_s_mean --facet bsld_threshold --width page",
        "cdf --x wait_s --colour queue_order --facet bsld_threshold --log x",
        "series --y power_w --cap 5000 --colour queue_order --where seed=1 --where bsld_threshold=3",
        "gantt --where seed=1 --where bsld_threshold=3 --facet queue_order --between 0..100000",
        "heatmap --x queue_order --y bsld_threshold --value wait_s_mean",
        "heatmap --table jobs --x procs --y run_s",
        "effect --x bsld_threshold --y energy_total_j",
        "parallel --x queue_order,bsld_threshold,wait_s_mean,energy_total_j --colour queue_order",
        "pareto --x energy_total_j --y wait_s_mean --colour queue_order --maximise wait_s_mean",
    ];

    #[test]
    fn every_kind_is_drawn_from_the_rows_of_a_sweep() {
        let sandbox = swept();
        for kind in KINDS {
            let drawn = plot(&sandbox, "drawn", &format!("--figure {kind}")).exits(0);
            assert!(drawn.stdout.starts_with("<svg"), "{kind}: {drawn}");
            assert!(!drawn.stdout.contains("NaN") && !drawn.stdout.contains("undefined"), "{kind}: {drawn}");
            let again = plot(&sandbox, "drawn", &format!("--figure {kind} --format svg")).exits(0);
            assert_eq!(drawn.stdout, again.stdout, "{kind}: the same bytes");
        }
    }

    /// Policies whose first values are not the first ones by name, and whose tasks do not take equally long.
    const ORDERED: &str = r#"version = 1
name = "ordered"
tables = ["jobs"]
series = ["power_w"]
[workloads.synthetic]
source = "lublin"
synthetic_jobs_count = 60
[policies.p]
backfill = ["none", "easy", "conservative"]
queue_order = ["wfp3", "fcfs", "sjf", "f1"]
[statistics]
watch_machine = true
"#;

    #[test]
    fn figures_do_not_depend_on_the_order_in_which_tasks_end() {
        let kinds = [
            "bars --x queue_order --y wait_s_mean --colour backfill",
            "cdf --x wait_s --colour queue_order --facet backfill",
            "series --y power_w --colour queue_order --where backfill=easy",
            "heatmap --x queue_order --y backfill",
            "pareto --x energy_total_j --y wait_s_mean --colour queue_order",
        ];
        let specs = |runs: &[&str]| {
            let sandbox = Sandbox::new();
            sandbox.write("ordered.toml", ORDERED);
            for run in runs {
                sandbox.run(&run.split(' ').collect::<Vec<_>>()).exits(0);
            }
            kinds.map(|kind| plot(&sandbox, "ordered", &format!("--figure {kind} --format vl.json")).exits(0).stdout)
        };
        let one = specs(&["run ordered.toml --slots 1 --quiet"]);
        let legend = one[0].split_whitespace().collect::<String>();
        assert!(legend.contains(r#""domain":["none","easy","conservative"]"#), "{}", one[0]);
        let shards = ["2", "0", "1"].map(|index| format!("shard ordered.toml --slots 1 --index {index} --of 3"));
        let shards: Vec<&str> = shards.iter().map(String::as_str).collect();
        for other in [specs(&["run ordered.toml --slots 2 --quiet"]), specs(&shards)] {
            for (one, other) in one.iter().zip(&other) {
                assert_eq!(one, other);
            }
        }
    }

    /// The intervals of two seeds reach below 0: the axis has an edge, and the rows keep their numbers.
    #[test]
    fn intervals_that_reach_0_end_at_the_edge_of_a_logarithmic_axis() {
        let sandbox = swept();
        for kind in ["bars --x queue_order --colour bsld_threshold", "lines --x bsld_threshold --colour queue_order"] {
            let arguments = format!("--figure {kind} --y wait_s_mean --log y");
            let drawn = plot(&sandbox, "drawn", &arguments).exits(0);
            let drawn = drawn.says(&["at the edge of the logarithmic axis"]);
            assert!(!drawn.stdout.contains("NaN") && !drawn.stderr.contains("WARN"), "{drawn}");
            let csv = plot(&sandbox, "drawn", &format!("{arguments} --format csv")).exits(0);
            assert!(rows(&csv.stdout).iter().any(|row| number(row, "wait_s_mean_low") < 0.0), "{csv}");
        }
        let beside = plot(&sandbox, "drawn", "--figure bars --x queue_order --y wait_s_mean --log x --format csv");
        beside.exits(0).says(&["the axis x of this figure has no scale that can be logarithmic"]);
    }

    /// `sjf` keeps its colour where `fcfs` is left out, and panels have axes of their own if asked for.
    #[test]
    fn a_value_has_one_colour_and_panels_may_have_their_own_axes() {
        let sandbox = swept();
        let spec = |arguments: &str| {
            let kind = "--figure bars --x bsld_threshold --y wait_s_mean --format vl.json";
            plot(&sandbox, "drawn", &format!("{kind} {arguments}")).exits(0).json()
        };
        let all = spec("--colour queue_order")["layer"][0]["encoding"]["color"]["scale"].clone();
        let one =
            spec("--colour queue_order --where queue_order=sjf")["layer"][0]["encoding"]["color"]["scale"].clone();
        assert_eq!((&all["domain"][1], &all["range"][1]), (&one["domain"][0], &one["range"][0]));
        let scale = |arguments: &str| spec(&format!("--facet queue_order {arguments}"))["resolve"]["scale"].clone();
        assert_eq!((scale(""), scale("--free y")["y"].as_str()), (serde_json::Value::Null, Some("independent")));
    }

    /// The thresholds of a queue order are joined, each in the order of the thresholds.
    #[test]
    fn the_points_of_a_front_are_joined_by_their_threshold() {
        let sandbox = swept();
        let kind = "--figure pareto --x energy_total_j --y wait_s_mean --colour queue_order --format csv";
        let drawn = rows(&plot(&sandbox, "drawn", kind).exits(0).stdout);
        let places: Vec<(&str, f64)> =
            drawn.iter().map(|row| (row["joined_as"].as_str(), number(row, "joined_place"))).collect();
        for place in [("fcfs", 0.0), ("fcfs", 1.0), ("sjf", 0.0), ("sjf", 1.0)] {
            assert!(places.contains(&place), "{places:?}");
        }
    }

    #[test]
    fn the_ending_of_the_file_says_its_format() {
        let sandbox = swept();
        sandbox.write("style.json", r##"{ "axis": { "labelColor": "#123456" } }"##);
        let beginnings: [(&str, &[u8]); 6] = [
            ("f.svg", b"<svg"),
            ("f.png", b"\x89PNG"),
            ("f.pdf", b"%PDF"),
            ("f.html", b"<!doctype html>"),
            ("f.vl.json", b"{\n  \"$schema\": \"https://vega.github.io/schema/vega-lite/v6.json\""),
            ("f.csv", b"queue_order,wait_s_mean"),
        ];
        for (file, beginning) in beginnings {
            let kind = "--figure bars --x queue_order --y wait_s_mean --style style.json";
            plot(&sandbox, "drawn", &format!("{kind} -o {file}")).exits(0);
            let bytes = std::fs::read(sandbox.path(file)).expect("the file exists");
            let begin = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]).into_owned();
            // The keys of a spec are sorted, and the schema comes first.
            assert!(bytes.starts_with(beginning), "{file}: {begin}");
        }
        let svg = std::fs::read_to_string(sandbox.path("f.svg")).expect("the file exists");
        assert!(svg.contains("#123456"), "the style is drawn");
        plot(&sandbox, "drawn", "--figure bars --x queue_order --y wait_s_mean -o f.jpg")
            .exits(2)
            .says(&["f.jpg", "--format"]);
    }

    #[test]
    fn mistakes_are_explained() {
        let sandbox = swept();
        for (arguments, said) in [
            ("bars --x queue_ordr --y wait_s_mean", "did you mean `queue_order`"),
            (
                "cdf --table jobs --x wait_s --colour queue_ordr",
                "jobs has no column `queue_ordr`; did you mean `queue_order`",
            ),
            ("bars --x queue_order --y queue_order", "`queue_order` has texts"),
            ("bars --x queue_order", "--y COLUMN"),
            ("bars --x queue_order --y wait_s_mean --where seed", "COLUMN=VALUE"),
            ("bars --x queue_order --y wait_s_mean --where seed=one", "a value of seed is a whole number"),
            ("bars --x queue_order --y wait_s_mean --where seed=9", "no row satisfies `seed=9`: seed is 1, 2"),
            ("bars --x queue_order --y wait_s_mean --free y", "the following required arguments were not provided"),
            ("series --y power", "unknown series `power`"),
            ("series --y active_procs", "has no points of active_procs"),
            ("series --y power_w", "8 tasks would share a line"),
            ("gantt", "several tasks would share a chart"),
            ("heatmap --x queue_order --y seed --colour seed", "--value COLUMN"),
            ("parallel --x queue_order", "2 to 12 columns"),
            ("pareto --x wait_s_mean --y energy_total_j --maximise seed", "the front is of wait_s_mean"),
        ] {
            plot(&sandbox, "drawn", &format!("--figure {arguments}")).exits(2).says(&[said]);
        }
        plot(&sandbox, "dawn", "--figure bars --x queue_order --y wait_s_mean")
            .exits(2)
            .says(&["did you mean `drawn`"]);
        let mixed = plot(&sandbox, "drawn", "--figure bars --x queue_order --y wait_s_mean").exits(0);
        mixed.says(&["the means are over all values of bsld_threshold"]);
        sandbox.write("style.json", "[1]");
        let styled = "--figure bars --x queue_order --y wait_s_mean --style style.json";
        plot(&sandbox, "drawn", styled).exits(2).says(&["a style is a JSON object"]);
    }

    /// Columns of `tasks` stand beside the rows of other tables: shares by queue order are those of its tasks' jobs.
    #[test]
    fn jobs_have_the_columns_of_their_tasks() {
        let sandbox = swept();
        let arguments =
            "--figure cdf --x wait_s --where queue_order=sjf --where seed=2 --where bsld_threshold=3 --format csv";
        let drawn = plot(&sandbox, "drawn", arguments).exits(0);
        let ids = sandbox
            .run(&["results", "drawn", "--format", "csv", "--columns", "task_id,queue_order,seed,bsld_threshold"])
            .exits(0);
        let task = rows(&ids.stdout)
            .into_iter()
            .find(|row| row["queue_order"] == "sjf" && row["seed"] == "2" && number(row, "bsld_threshold") == 3.0);
        let task = task.expect("a task");
        let jobs = sandbox
            .run(&["results", "drawn", "--table", "jobs", "--format", "csv", "--columns", "task_id,wait_s"])
            .exits(0);
        let jobs = rows(&jobs.stdout);
        let waits: Vec<f64> =
            jobs.iter().filter(|job| job["task_id"] == task["task_id"]).map(|job| number(job, "wait_s")).collect();
        assert_eq!(waits.len(), 60);
        let zeros = waits.iter().filter(|wait| **wait == 0.0).count();
        let drawn = rows(&drawn.stdout);
        let at_zero = drawn.iter().filter(|point| number(point, "wait_s") == 0.0).map(|point| number(point, "share"));
        assert_eq!(at_zero.fold(0.0, f64::max), zeros as f64 / 60.0);
        assert_eq!(drawn.last().map(|point| number(point, "share")), Some(1.0));
    }

    /// Two seeds of 60 jobs each: with shares a and b, half of the interval is t |a - b| / 2.
    #[test]
    fn distributions_and_cells_have_intervals_over_seeds() {
        let sandbox = swept();
        let results = |arguments: &str| {
            let arguments = format!("results drawn --format csv {arguments}");
            rows(&sandbox.run(&arguments.split(' ').collect::<Vec<_>>()).exits(0).stdout)
        };
        let mut tasks = results("--columns task_id,queue_order,seed,bsld_threshold");
        tasks.retain(|task| task["queue_order"] == "sjf" && number(task, "bsld_threshold") == 3.0);
        let jobs = results("--table jobs --columns task_id,wait_s");
        let share = |seed: &str, wait_s: f64| {
            let task = tasks.iter().find(|task| task["seed"] == seed).expect("a task");
            let waits = jobs.iter().filter(|job| job["task_id"] == task["task_id"]).map(|job| number(job, "wait_s"));
            waits.filter(|wait| *wait <= wait_s).count() as f64 / 60.0
        };
        let only = "--where queue_order=sjf --where bsld_threshold=3 --format csv";
        let points = rows(&plot(&sandbox, "drawn", &format!("--figure cdf --x wait_s {only}")).exits(0).stdout);
        // The first point is the begin of the line.
        for point in &points[1..] {
            let (a, b) = (share("1", number(point, "wait_s")), share("2", number(point, "wait_s")));
            let (mean, half) = ((a + b) / 2.0, t_quantile(0.95, 1) * (a - b).abs() / 2.0);
            let ends = [("share", mean), ("share_low", (mean - half).max(0.0)), ("share_high", (mean + half).min(1.0))];
            for (name, expected) in ends {
                assert!((number(point, name) - expected).abs() < 1e-9, "{name}: {point:?}, {a} and {b}");
            }
        }
        let one = plot(&sandbox, "drawn", &format!("--figure cdf --x wait_s --where seed=1 {only}")).exits(0);
        assert!(!one.stdout.contains("share_low"), "one seed has no interval");
        let cells = "--figure heatmap --x queue_order --y bsld_threshold --value wait_s_mean --format csv";
        let cells = rows(&plot(&sandbox, "drawn", cells).exits(0).stdout);
        assert!(cells.iter().all(|cell| number(cell, "wait_s_mean_low") < number(cell, "wait_s_mean")));
    }

    #[test]
    fn a_figure_of_a_coordinator_equals_that_of_its_data() {
        let sandbox = Sandbox::new();
        sandbox.write("sweep.toml", synthetic("sweep", 2));
        let (serving, url) = sandbox.serve(&["--data", "data"]);
        let mut worker = sandbox.start(&["worker", "--data", "data", "-j", "1"]);
        sandbox.run(&["submit", "sweep.toml", "--data", "data", "--wait"]).exits(0);
        let kind = "--figure bars --x queue_order --y wait_s_mean";
        let access = format!("--coordinator {url} --access data/.powersweep/access");
        let asked = plot(&sandbox, "sweep", &format!("{kind} {access}")).exits(0);
        assert!(worker.runs());
        worker.signal("TERM");
        worker.wait();
        serving.signal("TERM");
        serving.wait().exits(0);
        let read = plot(&sandbox, "sweep", &format!("{kind} --data data")).exits(0);
        assert_eq!(asked.stdout, read.stdout);
    }

    /// It waits for the first rows, and has all rows when the experiment ends. Other readers never see half a file.
    #[test]
    fn a_watched_figure_follows_the_sweep_to_its_end() {
        let sandbox = Sandbox::new();
        sandbox.write("slow.toml", SLOW);
        let (serving, _) = sandbox.serve(&["--data", "data"]);
        sandbox.run(&["submit", "slow.toml", "--data", "data"]).exits(0);
        let arguments = "plot slow --figure bars --x queue_order --y wait_s_mean --data data -o waits.csv --watch";
        let mut watching = sandbox.start(&arguments.split_whitespace().collect::<Vec<_>>());
        watching.says("no figure yet: slow has no rows in tasks yet");
        let worker = sandbox.start(&["worker", "--data", "data", "-j", "1"]);
        let drawn = || {
            let text = std::fs::read_to_string(sandbox.path("waits.csv")).ok()?;
            Some(rows(&text).iter().map(|bar| number(bar, "rows_count")).sum::<f64>())
        };
        let mut counts = Vec::new();
        while watching.runs() {
            counts.extend(drawn());
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        watching.wait().exits(0);
        assert_eq!(drawn(), Some(500.0), "all rows are drawn at the end");
        assert!(counts.is_sorted(), "{counts:?}");
        for ended in [worker, serving] {
            ended.signal("TERM");
            ended.wait();
        }
    }

    #[test]
    fn a_viewer_opens_the_file() {
        let sandbox = Sandbox::new();
        sandbox.write("sweep.toml", synthetic("sweep", 1));
        sandbox.run(&["run", "sweep.toml", "--quiet"]).exits(0);
        sandbox.write_program("xdg-open", "#!/bin/sh\necho \"$1\" > opened\n");
        sandbox.write_program("open", "#!/bin/sh\necho \"$1\" > opened\n");
        let path = path_with(&sandbox.path("bin"));
        let arguments = "plot sweep --figure bars --x queue_order --y wait_s_mean -o waits.svg --open";
        let arguments: Vec<&str> = arguments.split_whitespace().collect();
        sandbox.run_with(&arguments, &[("PATH", path.to_str().expect("a path of text"))]).exits(0);
        let opened = std::fs::read_to_string(sandbox.path("opened")).expect("the viewer ran");
        assert_eq!(opened.trim(), "waits.svg");
        sandbox.run(&["plot", "sweep", "-o", "x.svg"]).exits(2).says(&["--figure cdf", "--preset NAME"]);
        sandbox
            .run(&["plot", "sweep", "--figure", "bars", "--open"])
            .exits(2)
            .says(&["required arguments were not provided"]);
    }
}
