//! Pages and reports that show rows: results, the plot with its front, the effect of each axis.

use std::collections::BTreeMap;

use powersweep_dataset::words::number;

use crate::dashboard::Pages;
use crate::farm::{terminate, worker};
use crate::rows::{self, Row};
use crate::sandbox::{Running, Sandbox};
use crate::sweeps::synthetic;

/// A coordinator with a finished sweep of 100 tasks.
fn finished(sandbox: &Sandbox) -> Running {
    let (served, _) = sandbox.serve(&[]);
    let running = worker(sandbox, "w", "", &[]);
    sandbox.write("sweep.toml", synthetic("sweep", 50));
    sandbox.run(&["submit", "sweep.toml", "--wait"]).exits(0);
    terminate(running);
    served
}

fn real(row: &Row, name: &str) -> f64 {
    row[name].as_f64().expect("a number")
}

/// The texts between two texts.
fn between<'a>(text: &'a str, begin: &str, end: &str) -> Vec<&'a str> {
    text.split(begin).skip(1).filter_map(|rest| rest.split(end).next()).collect()
}

fn plain(html: &str) -> String {
    html.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&#39;", "'").replace("&amp;", "&")
}

/// The words of each row of the page's table.
fn page_rows(html: &str) -> Vec<Vec<String>> {
    let body = between(html, "<tbody>", "</tbody>")[0];
    let cells = |row: &&str| {
        let cells = between(row, "<td", "</td>").into_iter().filter_map(|cell| cell.split_once('>'));
        cells.flat_map(|(_, text)| plain(text).split_whitespace().map(str::to_owned).collect::<Vec<_>>()).collect()
    };
    between(body, "<tr>", "</tr>").iter().map(cells).collect()
}

/// The words of each row that a command prints below its headings.
fn printed_rows(text: &str) -> Vec<Vec<String>> {
    let rows = text.lines().skip(1).filter(|line| !line.starts_with('…'));
    rows.map(|line| line.split_whitespace().map(str::to_owned).collect()).collect()
}

#[test]
fn the_results_page_and_its_command_show_the_same_rows() {
    let sandbox = Sandbox::new();
    let served = finished(&sandbox);
    let pages = Pages::open(&sandbox, &[]);
    let mut seen = Vec::new();
    for (query, says) in [
        ("", "Rows 1 to 40 of 100"),
        ("&page=3", "Rows 81 to 100 of 100"),
        ("&by=-wait_s_mean", "wait_s_mean, the greatest first"),
        ("&columns=task_index,queue_order&add=energy_total_j&sort=energy_total_j&page=2", "Rows 41 to 80 of 100"),
        ("&columns=task_index,queue_order,seed,bsld_mean&drop=seed&where=queue_order%3Dsjf&sort=bsld_mean", "of 50"),
        ("&where=queue_order%3Dsjf&where=seed%3D7", "Rows 1 to 1 of 1"),
    ] {
        let page = pages.until(&format!("/results?name=sweep{query}"), "status\">Rows ").gives(200, &[says]);
        let command = plain(between(&page.body, "<code class=\"command\">", "</code>")[0]);
        let args: Vec<&str> = command.split(' ').skip(1).collect();
        let printed = sandbox.run(&args).exits(0).stdout;
        let rows = page_rows(&page.body);
        assert!(!rows.is_empty() && !rows[0].is_empty());
        assert_eq!(rows, printed_rows(&printed), "{command}\n{printed}");
        assert!(page.body.len() < 60_000, "{} bytes", page.body.len());
        seen.push((command, rows));
    }
    seen.dedup_by(|one, other| one.1 == other.1);
    assert_eq!(seen.len(), 6, "every query has other rows: {seen:?}");
    assert_eq!(
        seen[4].0,
        "powersweep results sweep --columns task_index,queue_order,bsld_mean --sort bsld_mean --where queue_order=sjf --rows 40"
    );
    for (query, says) in [
        ("&columns=polizy", "has no column `polizy`"),
        ("&sort=nonsense", "has no column `nonsense`"),
        ("&where=seed%3Dx", "a whole number"),
        ("&where=seed%3D999", "No row has these values"),
        ("&page=9", "There are no more rows"),
    ] {
        pages.until(&format!("/results?name=sweep{query}"), says).gives(200, &[]);
    }
    pages.get("/results?name=nothing").gives(404, &["no experiment of this name"]);
    pages.get("/results").gives(404, &["no such page"]);
    terminate(pages.running);
    terminate(served);
}

#[test]
fn time_combinations_comparison_manifest_and_files_are_those_of_the_commands() {
    let sandbox = Sandbox::new();
    let served = finished(&sandbox);
    let pages = Pages::open(&sandbox, &[]);
    pages
        .until("/time?name=sweep", "100 on 1 worker")
        .gives(200, &["First task began", "The last tasks", "task_index%3D99"]);
    let lines = pages.until("/lines?name=sweep", "as lines across axes").gives(200, &["<title>queue_order sjf, "]);
    assert_eq!(lines.body.matches("task_index%3D").count(), 2, "a line for each order: {}", lines.body);
    pages.until("/manifest?name=sweep", "last part of rows").gives(200, &["name = &quot;sweep&quot;"]);
    let sets = ["sweep:queue_order=fcfs", "sweep:queue_order=sjf"];
    let command = sandbox.run(&[&["compare"], &sets[..]].concat()).exits(0).stdout;
    let said = command.lines().last().expect("the sentence below the table");
    assert!(said.contains("50 pairs with the same seed"), "{said}");
    let query = "/compare?name=sweep&a=sweep%3Aqueue_order%3Dfcfs&b=sweep%3Aqueue_order%3Dsjf";
    let page = pages.until(query, "replicates</th>").gives(200, &[said, "bsld_mean", "powersweep compare sweep:"]);
    let json = sandbox.run(&[&["compare", "--json"], &sets[..]].concat()).exits(0).stdout;
    let ratios = json.lines().map(|line| serde_json::from_str::<Row>(line).expect("a row"));
    for ratio in ratios.filter_map(|row| row["ratio"].as_f64()) {
        let percent = format!(">{:+.1} %<", (ratio - 1.0) * 100.0);
        assert!(page.body.contains(&percent), "{percent} in {}", page.body);
    }
    pages.until("/compare?name=sweep&b=nothing", "there is no experiment nothing").gives(200, &["role=\"alert\""]);
    let chosen = "columns=task_index,queue_order,energy_total_j&sort=-energy_total_j&where=queue_order%3Dsjf";
    let file = pages.get(&format!("/download?name=sweep&format=csv&{chosen}")).gives(200, &["task_index,"]);
    let args = "results sweep --columns task_index,queue_order,energy_total_j --sort energy_total_j --descending";
    let args: Vec<&str> =
        args.split(' ').chain(["--where", "queue_order=sjf", "--format", "csv", "--rows", "100"]).collect();
    assert_eq!(file.body, sandbox.run(&args).exits(0).stdout);
    assert_eq!(file.body.lines().count(), 51, "all rows, not a page of them");
    assert!(pages.get("/download?name=sweep&format=parquet").gives(200, &[]).body.starts_with("PAR1"));
    pages.get("/download?name=nothing&format=csv").gives(502, &["The rows cannot be read"]);
    pages.get("/download?name=sweep&format=exe").gives(404, &["no such page"]);
    terminate(pages.running);
    terminate(served);
}

#[test]
fn rows_are_sorted_chosen_and_skipped_in_every_format() {
    let sandbox = Sandbox::new();
    terminate(finished(&sandbox));
    let all = rows::tasks(&sandbox.path("results/data"), "sweep");
    let mut expected: Vec<(f64, i64)> = Vec::new();
    for row in all.values().filter(|row| row["queue_order"] == "sjf") {
        expected.push((real(row, "jobs_count"), row["task_index"].as_i64().expect("a number")));
    }
    // Every row has the same number of jobs: the index decides.
    expected.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
    let mut found = Vec::new();
    for skip in ["0", "20", "40"] {
        let args = ["results", "sweep", "--sort", "jobs_count", "--descending", "--where", "queue_order=sjf"];
        let args =
            [&args[..], &["--skip", skip, "--rows", "20", "--columns", "jobs_count,task_index", "--json"]].concat();
        let ended = sandbox.run(&args).exits(0);
        assert_eq!(ended.stderr.contains("more rows: --rows N"), skip != "40", "{ended}");
        let row = |line: &str| serde_json::from_str::<BTreeMap<String, f64>>(line).expect("a row");
        found.extend(ended.stdout.lines().map(row).map(|row| (row["jobs_count"], row["task_index"] as i64)));
    }
    assert_eq!(found, expected);
    let least = all.values().map(|row| real(row, "energy_total_j")).fold(f64::INFINITY, f64::min);
    let args = [
        "results",
        "sweep",
        "--sort",
        "energy_total_j",
        "--rows",
        "1",
        "--format",
        "csv",
        "--columns",
        "energy_total_j",
    ];
    let csv = sandbox.run(&args).exits(0).stdout;
    assert_eq!(csv.lines().nth(1).and_then(|line| line.parse().ok()), Some(least), "{csv}");
    sandbox.run(&["results", "sweep", "--where", "seed=999"]).exits(2).says(&["no row satisfies `seed=999`"]);
    sandbox.run(&["results", "sweep", "--where", "seed"]).exits(2).says(&["COLUMN=VALUE"]);
    sandbox.run(&["results", "sweep", "--sort", "wait"]).exits(2).says(&["has no column `wait`"]);
    sandbox.run(&["results", "sweep", "--table", "failures", "--skip", "1"]).exits(2).says(&["for the table `tasks`"]);
}

/// The rows of a queue order: all seeds of one combination.
fn seeds<'a>(rows: &'a BTreeMap<u64, Row>, order: &str) -> Vec<(&'a u64, &'a Row)> {
    rows.iter().filter(|(_, row)| row["queue_order"] == order).collect()
}

/// The mean of a metric over the seeds of a queue order.
fn mean(rows: &BTreeMap<u64, Row>, order: &str, metric: &str) -> f64 {
    let seeds = seeds(rows, order);
    seeds.iter().map(|(_, row)| real(row, metric)).sum::<f64>() / seeds.len() as f64
}

/// The least task indices of the combinations of which no other one is better in both means.
fn front(rows: &BTreeMap<u64, Row>, x: &str, y: &str) -> Vec<u64> {
    let orders = ["fcfs", "sjf"];
    let at = |order: &str| (mean(rows, order, x), mean(rows, order, y));
    let better = |one: (f64, f64), other: (f64, f64)| one.0 <= other.0 && one.1 <= other.1 && one != other;
    let mut best: Vec<&str> =
        orders.into_iter().filter(|order| !orders.iter().any(|other| better(at(other), at(order)))).collect();
    best.sort_by(|one, other| at(one).0.total_cmp(&at(other).0));
    best.dedup_by(|one, other| at(one) == at(other));
    best.into_iter().map(|order| *seeds(rows, order)[0].0).collect()
}

/// The task indices of the table of the front.
fn shown_front(html: &str) -> Vec<u64> {
    let table = between(html, "aria-label=\"Pareto front\"", "</table>")[0];
    let heads = between(table, "<th scope=\"row\">", "</th>");
    heads
        .iter()
        .map(|head| head.trim_end_matches("</a>").rsplit('>').next().unwrap_or(head).parse().expect("an index"))
        .collect()
}

/// Checks that a page has the mean of a metric for each queue order, and their difference.
#[track_caller]
fn has_effects(html: &str, rows: &BTreeMap<u64, Row>, metric: &str) {
    let [fcfs, sjf] = ["fcfs", "sjf"].map(|order| mean(rows, order, metric));
    let difference = format!("{:+.1} %", (sjf / fcfs - 1.0) * 100.0);
    for (order, mean, difference) in [("fcfs", fcfs, ""), ("sjf", sjf, &difference)] {
        let cells =
            format!("<td class=\"n\">{}</td><td class=\"n\">1</td><td class=\"n\">{difference}</td>", number(mean));
        let line = between(html, "<tr>", "</tr>")
            .into_iter()
            .find(|line| line.contains("scope=\"row\"") && line.contains(order) && line.contains(&cells));
        assert!(line.is_some(), "{cells} for {order} in {html}");
    }
}

#[test]
fn the_plot_has_its_front_and_the_effect_of_each_axis() {
    let sandbox = Sandbox::new();
    let served = finished(&sandbox);
    let all = rows::tasks(&sandbox.path("results/data"), "sweep");
    let pages = Pages::open(&sandbox, &[]);
    let page = pages.until("/experiment?name=sweep", "Pareto front: no combination").gives(200, &[]);
    page.says(&["energy_total_j (relative) against bsld_mean", "100 tasks in 2 combinations; ", "queue_order: sjf"]);
    assert_eq!(shown_front(&page.body), front(&all, "bsld_mean", "energy_total_j"));
    has_effects(&page.body, &all, "energy_total_j");
    assert!(page.body.len() < 60_000, "{} bytes", page.body.len());
    let other = pages.until(
        "/p/experiment?name=sweep&x=wait_s_mean&y=bsld_mean&by=queue_order&of=wait_s_mean",
        "Pareto front: no combination",
    );
    other.says(&["bsld_mean against wait_s_mean (s)"]);
    assert_eq!(shown_front(&other.body), front(&all, "wait_s_mean", "bsld_mean"));
    has_effects(&other.body, &all, "wait_s_mean");
    pages.until("/experiment?name=sweep&x=waiting", "unknown metric `waiting`");
    pages.until("/experiment?name=sweep&by=seed", "unknown axis with several values `seed`");
    // Each mark has a shape of its own.
    let shapes: Vec<&str> =
        ["mark mark0\" d=\"", "mark mark1\" d=\""].map(|mark| between(&page.body, mark, "\"")[0]).into();
    assert_ne!(shapes[0], shapes[1]);
    terminate(pages.running);
    terminate(served);
}

#[test]
fn the_plot_fills_in_as_tasks_end() {
    let sandbox = Sandbox::new();
    let (served, _) = sandbox.serve(&[]);
    let pages = Pages::open(&sandbox, &[]);
    for (seeds, tasks) in [(0, "No task has a row"), (4, "\"plot-desc\">8 tasks"), (7, "\"plot-desc\">14 tasks")] {
        sandbox.write("sweep.toml", synthetic("sweep", seeds.max(1)));
        sandbox.run(&["submit", "sweep.toml"]).exits(0);
        let running = (seeds > 0).then(|| worker(&sandbox, "w", "", &[]));
        pages.until("/experiment?name=sweep", tasks).gives(200, &[]);
        running.map(terminate);
    }
    terminate(pages.running);
    terminate(served);
}

#[test]
fn a_report_is_one_file_with_or_without_a_coordinator() {
    let sandbox = Sandbox::new();
    let served = finished(&sandbox);
    let all = rows::tasks(&sandbox.path("results/data"), "sweep");
    let report = |args: &[&str]| {
        sandbox.run(&[&["report", "sweep", "-o", "report.html"], args].concat()).exits(0);
        std::fs::read_to_string(sandbox.path("report.html")).expect("it is there")
    };
    let access = ["--access", "results/data/.powersweep/access/client.json"];
    let served_by = report(&access);
    terminate(served);
    let alone = report(&[]);
    for html in [&served_by, &alone] {
        for text in [
            "100 of 100 tasks done",
            "Each cell is one task",
            "Pareto front",
            "First rows",
            "and 60 more rows",
            "--skip 40",
        ] {
            assert!(html.contains(text), "{text} in {html}");
        }
        assert_eq!(shown_front(html), front(&all, "bsld_mean", "energy_total_j"));
        has_effects(html, &all, "energy_total_j");
        for text in ["<script", "<link", "src=", "href=", "<form", "<button", "://"] {
            assert!(!html.contains(text), "{text} in {html}");
        }
        let folder = sandbox.path("").to_string_lossy().into_owned();
        assert!(!html.contains(&folder), "the report names the folder {folder}");
    }
    assert!(
        report(&["--of", "wait_s_mean"]).contains("Effect of each axis on wait_s_mean (s)"),
        "the file was replaced"
    );
    let before = std::fs::read(sandbox.path("report.html")).expect("it is there");
    for (args, says) in [
        (["sweep", "--x", "waiting"], "unknown metric"),
        (["swept", "--y", "wait_s_mean"], "sweep"),
        (["sweep", "--of", "emissions_g"], "is a column of `accounts`; this page has metrics of `tasks`"),
    ] {
        let ended = sandbox.run(&[&["report", "-o", "report.html"], &args[..]].concat()).exits(2);
        assert!(ended.stderr.contains(says), "{ended}");
    }
    assert_eq!(std::fs::read(sandbox.path("report.html")).expect("it is there"), before, "an error changes nothing");
    let partial = std::fs::read_dir(sandbox.path("")).expect("it can be listed").flatten();
    assert!(partial.into_iter().all(|file| !file.file_name().to_string_lossy().contains("partial")));
    sandbox.run(&["report", "sweep"]).exits(0).prints(&["<!DOCTYPE html>", "Pareto front"]);
}

#[test]
fn a_report_of_a_design_has_the_indices_that_the_command_prints() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "knobs.toml",
        "version = 1\nname = \"knobs\"\nseeds = [1, 2]\n[designs.knobs]\nkind = \"saltelli\"\ncount = 8\n\
         [workloads.w]\nsource = \"lublin\"\nsynthetic_jobs_count = 60\n\
         [platforms.p]\nsize_factor = { from = 1, to = 2, design = \"knobs\" }\n\
         [policies.slow]\ngear_rule = \"bsld\"\nbsld_threshold = { from = 1.5, to = 6, design = \"knobs\" }\n",
    );
    sandbox.run(&["run", "knobs.toml", "--quiet"]).exits(0);
    let printed = sandbox.run(&["sensitivity", "knobs", "--of", "wait_s_mean"]).exits(0).stdout;
    let is_row = |row: &Vec<String>| ["size_factor", "bsld_threshold"].contains(&row[0].as_str());
    let expected: Vec<Vec<String>> =
        printed_rows(&printed).into_iter().filter(|row| !row.is_empty() && is_row(row)).collect();
    assert_eq!(expected.len(), 2, "{printed}");
    let html = sandbox.run(&["report", "knobs", "--of", "wait_s_mean"]).exits(0).stdout;
    assert!(html.contains("What wait_s_mean (s) depends on"), "{html}");
    let table = between(&html, "aria-label=\"Sensitivity\"", "</table>")[0];
    assert_eq!(page_rows(table), expected);
    let sentence = printed.lines().last().expect("a sentence");
    assert!(plain(&html).contains(sentence), "{sentence}");
    assert!(!html.contains("Effect of each axis") && !html.contains("Greatest effect"), "values of a design: {html}");
}
