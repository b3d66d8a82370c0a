//! One or two figures of each kind, from made-up rows.

use powersweep_dataset::replicates::Method;
use powersweep_dataset::{Column, Frame};
use powersweep_figures::kinds::{
    Axes, Better, By, Gantt, bars, cdf, effect, gantt, heatmap, lines, parallel, pareto, points, stacked, steps,
};
use powersweep_figures::{Figure, Look, Result, Width};

const POLICIES: [&str; 4] = ["fcfs", "easy backfilling", "bsld threshold", "power aware"];
/// Ten seeds in each table that has them.
const SEEDS: Option<By<'static>> = Some(("seed", Method::T(95)));
const LOGS: [&str; 4] = ["CTC SP2", "SDSC SP2", "SDSC Blue", "LLNL Thunder"];

/// Numbers from 0 to 1 that look random and are always the same.
pub struct Draws(u64);

impl Draws {
    pub fn new() -> Draws {
        Draws(7)
    }

    pub fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// About a normal number.
    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.next()).sum::<f64>() - 6.0
    }
}

/// A table with these names and numbers in each row.
fn table(names: &[(&str, &str)], numbers: &[(&str, &str, &str)], rows: &[(Vec<String>, Vec<f64>)]) -> Frame {
    let texts = names
        .iter()
        .enumerate()
        .map(|(at, (name, title))| Column::texts(name, title, rows.iter().map(|row| row.0[at].clone())));
    let numbers = numbers
        .iter()
        .enumerate()
        .map(|(at, (name, title, unit))| Column::numbers(name, title, unit, rows.iter().map(|row| row.1[at])));
    Frame::of(texts.chain(numbers))
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

const ENERGY: [(&str, &str, &str); 3] =
    [("energy_total_j", "energy", "J"), ("energy_total_j_low", "", "J"), ("energy_total_j_high", "", "J")];

fn axes(x: &str, y: &str, colour: Option<&str>, facet: Option<&str>) -> Axes {
    let interval = Some((format!("{y}_low"), format!("{y}_high")));
    let [colour, facet] = [colour, facet].map(|name| name.map(str::to_owned));
    Axes { interval, colour, facet, ..Axes::of(x, y) }
}

fn energy(draws: &mut Draws, level: f64) -> Vec<f64> {
    let mean = (2.0 + level + draws.next()) * 1e11;
    let half = (0.1 + 0.2 * draws.next()) * 1e11;
    vec![mean, mean - half, mean + half]
}

/// Grouped bars with intervals, in one plot.
pub fn grouped_bars(look: &Look) -> Result<Figure> {
    let mut draws = Draws::new();
    let rows: Vec<_> = LOGS
        .iter()
        .flat_map(|log| POLICIES.iter().enumerate().map(move |(at, policy)| (*log, at, *policy)))
        .map(|(log, at, policy)| (owned(&[log, policy]), energy(&mut draws, at as f64)))
        .collect();
    let table = table(&[("workload", "workload"), ("policy", "policy")], &ENERGY, &rows);
    bars(&table, &axes("workload", "energy_total_j", Some("policy"), None), look)
}

/// Grouped bars in panels: 4 panels of 4 groups of 3 bars.
pub fn bars_in_panels(look: &Look) -> Result<Figure> {
    let mut draws = Draws::new();
    let mut rows = Vec::new();
    for log in LOGS {
        for threshold in ["1.5", "2", "3", "none"] {
            for (at, policy) in POLICIES[..3].iter().enumerate() {
                rows.push((owned(&[log, threshold, policy]), energy(&mut draws, at as f64)));
            }
        }
    }
    let names = [("workload", "workload"), ("bsld_threshold", "BSLD threshold"), ("policy", "policy")];
    bars(
        &table(&names, &ENERGY, &rows),
        &axes("bsld_threshold", "energy_total_j", Some("policy"), Some("workload")),
        look,
    )
}

/// Published points beside bars, in five panels with scales of their own.
pub fn published_beside_bars(look: &Look) -> Result<Figure> {
    let mut draws = Draws::new();
    let (mut rows, mut published) = (Vec::new(), Vec::new());
    for (at, log) in LOGS.iter().chain(&["LLNL Atlas"]).enumerate() {
        for threshold in ["1.5", "2", "3"] {
            for policy in &POLICIES[..3] {
                let height = 10f64.powi(at as i32) * (1.0 + draws.next());
                rows.push((owned(&[log, threshold, policy]), vec![height]));
                published.push(None);
            }
            rows.push((owned(&[log, threshold, POLICIES[1]]), vec![10f64.powi(at as i32) * 1.3]));
            published.push(Some("published"));
        }
    }
    let names = [("workload", "workload"), ("bsld_threshold", "BSLD threshold"), ("policy", "policy")];
    let mut table = table(&names, &[("bsld_mean", "mean slowdown", "")], &rows);
    table.push(Column::optional_texts("published", "", published));
    let axes = Axes {
        free_y: true,
        published: Some("published".to_owned()),
        interval: None,
        ..axes("bsld_threshold", "bsld_mean", Some("policy"), Some("workload"))
    };
    bars(&table, &axes, look)
}

/// Step functions on each other.
pub fn nodes_by_frequency(look: &Look) -> Result<Figure> {
    let mut draws = Draws::new();
    let mut rows = Vec::new();
    for (at, ghz) in ["1.2", "1.8", "2.4", "3.0"].iter().enumerate() {
        for instant in 0..40 {
            let time = f64::from(instant) * 300.0 + at as f64 * 70.0;
            rows.push((owned(&[ghz]), vec![time, (draws.next() * 40.0).round()]));
        }
    }
    let table = table(&[("ghz", "frequency")], &[("x", "time", "s"), ("nodes", "nodes", "")], &rows);
    let axes = Axes { colour: Some("ghz".to_owned()), ..Axes::of("x", "nodes") };
    stacked(&table, &axes, look)
}

/// Lines with bands.
pub fn lines_with_bands(look: &Look) -> Result<Figure> {
    let mut draws = Draws::new();
    let mut rows = Vec::new();
    for (at, policy) in POLICIES.iter().enumerate() {
        for factor in 1..=10 {
            let wait = 40_000.0 / f64::from(factor) * (1.0 + 0.3 * at as f64) + 500.0 * draws.next();
            rows.push((owned(&[policy]), vec![f64::from(factor) / 5.0, wait, wait * 0.85, wait * 1.15]));
        }
    }
    let numbers = [
        ("size_factor", "size of the machine", ""),
        ("wait_s_mean", "mean wait", "s"),
        ("wait_s_mean_low", "", "s"),
        ("wait_s_mean_high", "", "s"),
    ];
    let table = table(&[("policy", "policy")], &numbers, &rows);
    lines(&table, &axes("size_factor", "wait_s_mean", Some("policy"), None), look)
}

/// Distribution functions of 15,000 waits each, a third of them 0, on a logarithmic axis.
pub fn distribution(look: &Look) -> Result<Figure> {
    let mut draws = Draws::new();
    let mut rows = Vec::new();
    for (at, policy) in POLICIES.iter().enumerate() {
        for seed in 0..10 {
            let load = 0.4 * draws.normal();
            for _ in 0..1_500 {
                let is_zero = draws.next() < 0.3;
                let wait = (6.0 + 0.5 * at as f64 + load + 1.5 * draws.normal()).exp();
                rows.push((owned(&[policy, &seed.to_string()]), vec![if is_zero { 0.0 } else { wait }]));
            }
        }
    }
    let table = table(&[("policy", "policy"), ("seed", "seed")], &[("wait_s", "wait", "s")], &rows);
    let axes = Axes { colour: Some("policy".to_owned()), log_x: true, ..Axes::of("wait_s", "share of jobs") };
    cdf(&table, &axes, SEEDS, look)
}

fn power(draws: &mut Draws, scale: f64, name: Option<&str>) -> Vec<(Vec<String>, Vec<f64>)> {
    let mut power = 500.0;
    let mut row = |at: i32| {
        power = (power + 60.0 * draws.normal()).clamp(150.0, 900.0);
        (name.map(str::to_owned).into_iter().collect(), vec![f64::from(at) * 90.0, power * scale])
    };
    (0..4_000).map(&mut row).collect()
}

const POWER: [(&str, &str, &str); 2] = [("x", "time", "s"), ("value", "power", "W")];

/// Power over four days, with a cap that changes.
pub fn power_under_a_cap(look: &Look) -> Result<Figure> {
    let series = table(&[], &POWER, &power(&mut Draws::new(), 1_000.0, None));
    let caps = [(0.0, 8e5), (120_000.0, 6e5), (240_000.0, 8e5), (360_000.0, 8e5)];
    let caps: Vec<_> = caps.iter().map(|(x, value)| (Vec::new(), vec![*x, *value])).collect();
    let caps = table(&[], &[POWER[0], ("value", "power cap", "W")], &caps);
    steps(&series, Some(&caps), &Axes::of("x", "value"), look)
}

/// Power of two policies in two panels.
pub fn series_in_panels(look: &Look) -> Result<Figure> {
    let mut draws = Draws::new();
    let mut rows = Vec::new();
    for log in &LOGS[..2] {
        for policy in &POLICIES[..2] {
            let series = power(&mut draws, 1.0, Some(policy)).into_iter();
            rows.extend(series.take(200).map(|(names, numbers)| (vec![(*log).to_owned(), names[0].clone()], numbers)));
        }
    }
    let table = table(&[("workload", "workload"), ("policy", "policy")], &POWER, &rows);
    let axes = axes("x", "value", Some("policy"), Some("workload"));
    steps(&table, None, &Axes { interval: None, ..axes }, look)
}

/// 3,000 jobs on 128 processors, coloured by gear.
pub fn jobs_on_processors(look: &Look) -> Result<Figure> {
    let mut draws = Draws::new();
    let mut ends = vec![0.0f64; 128];
    let mut rows = Vec::new();
    for _ in 0..3_000 {
        let procs = (1.0 + 24.0 * draws.next().powi(3)) as usize;
        ends.sort_by(f64::total_cmp);
        let start = ends[procs - 1] + 20.0 * draws.next();
        let finish = start + 60.0 + 4_000.0 * draws.next().powi(4);
        ends[..procs].fill(finish);
        rows.push((Vec::new(), vec![start, finish, procs as f64, (6.0 * draws.next()).floor()]));
    }
    let numbers =
        [("start_s", "start", "s"), ("finish_s", "end", "s"), ("procs", "procs", "procs"), ("gear_index", "gear", "")];
    let columns = Gantt {
        start: "start_s".to_owned(),
        finish: "finish_s".to_owned(),
        procs: "procs".to_owned(),
        list: None,
        colour: Some("gear_index".to_owned()),
        facet: None,
        between: None,
    };
    gantt(&table(&[], &numbers, &rows), &columns, look)
}

fn tasks(count: usize) -> Frame {
    let mut draws = Draws::new();
    let row = |at: usize| {
        let (factor, policy) = (0.5 + 0.1 * (at % 11) as f64, at % 4);
        let wait = 20_000.0 / factor * (0.6 + 0.8 * draws.next()) / (1.0 + policy as f64 / 3.0);
        let energy = 1e11 * factor * (1.0 + 0.1 * policy as f64) * (0.8 + 0.4 * draws.next());
        let slowdown = 1.0 + wait / 900.0 * (0.5 + draws.next());
        let (gear, threshold) = ((at % 6) as f64, [1.0, 2.0, f64::INFINITY][at % 3]);
        let seed = (at / 44 % 10).to_string();
        (
            owned(&[POLICIES[policy], &seed]),
            vec![factor, wait, energy, slowdown, gear, threshold, 0.4 + 0.5 * draws.next()],
        )
    };
    let numbers = [
        ("size_factor", "size of the machine", ""),
        ("wait_s_mean", "mean wait", "s"),
        ("energy_total_j", "energy", "J"),
        ("bsld_tau600s_mean", "mean bounded slowdown", ""),
        ("gear_index", "gear", ""),
        ("bsld_threshold", "BSLD threshold", ""),
        ("utilization", "utilization", ""),
    ];
    table(&[("policy", "policy"), ("seed", "seed")], &numbers, &(0..count).map(row).collect::<Vec<_>>())
}

/// The mean of a column in cells of names.
pub fn means_in_cells(look: &Look) -> Result<Figure> {
    heatmap(&tasks(400), &Axes::of("policy", "gear_index"), Some("wait_s_mean"), SEEDS, look)
}

/// Shares of rows in bins of two metrics.
pub fn shares_in_bins(look: &Look) -> Result<Figure> {
    heatmap(&tasks(4_000), &Axes { log_x: false, ..Axes::of("wait_s_mean", "energy_total_j") }, None, SEEDS, look)
}

/// The effect of an axis over its combinations.
pub fn effect_of_an_axis(look: &Look) -> Result<Figure> {
    let mut draws = Draws::new();
    effect_in(&mut draws, &LOGS[..1], None, look)
}

/// Draws the effect of an axis in two panels.
pub fn effect_in_panels(look: &Look) -> Result<Figure> {
    let mut draws = Draws::new();
    effect_in(&mut draws, &LOGS[..2], Some("workload"), look)
}

/// Forty combinations for each log.
fn effect_in(draws: &mut Draws, logs: &[&str], facet: Option<&str>, look: &Look) -> Result<Figure> {
    let (mut settings, mut means) = (Vec::new(), Vec::new());
    for log in logs {
        let slopes: Vec<f64> = (0..40).map(|_| 0.5 + draws.next()).collect();
        for cap in 1..=6 {
            let cap_w = f64::from(cap) * 10.0;
            let waits: Vec<f64> = slopes.iter().map(|slope| 3_000.0 * slope / f64::from(cap) + 900.0 * slope).collect();
            settings.extend(
                waits.iter().enumerate().map(|(at, wait)| (owned(&[log, &format!("{log} {at}")]), vec![cap_w, *wait])),
            );
            let mean = waits.iter().sum::<f64>() / 40.0;
            means.push((owned(&[log]), vec![cap_w, mean, mean * 0.92, mean * 1.08]));
        }
    }
    let numbers = [
        ("cap_w", "power cap", "W"),
        ("wait_s_mean", "mean wait", "s"),
        ("wait_s_mean_low", "", "s"),
        ("wait_s_mean_high", "", "s"),
    ];
    let names = [("workload", "workload"), ("setting", "")];
    let (means, settings) = (table(&names[..1], &numbers, &means), table(&names, &numbers[..2], &settings));
    effect(&means, Some(&settings), &axes("cap_w", "wait_s_mean", Some("setting"), facet), look)
}

/// 2,000 tasks on six coordinates.
pub fn coordinates(look: &Look) -> Result<Figure> {
    let columns =
        owned(&["policy", "size_factor", "bsld_threshold", "wait_s_mean", "energy_total_j", "bsld_tau600s_mean"]);
    parallel(&tasks(2_000), &columns, Some("policy"), look)
}

/// The front of 400 tasks.
pub fn front(look: &Look) -> Result<Figure> {
    let axes = Axes { colour: Some("policy".to_owned()), ..Axes::of("energy_total_j", "wait_s_mean") };
    pareto(&tasks(400), &axes, (Better::Lower, Better::Lower), look)
}

/// Names that are awkward: long, with brackets, quotes, dots and signs of HTML.
pub fn awkward_names(look: &Look) -> Result<Figure> {
    let names =
        ["a <b> & \"c\"", "d['e'].f", "a name that is much too long for a column", "</script>", "πολιτική", "-"];
    let mut rows = Vec::new();
    for (at, name) in names.iter().enumerate() {
        rows.push((owned(&[name, names[(at + 1) % 6]]), energy(&mut Draws::new(), at as f64)));
    }
    let numbers = [("e.total['j']", "energy \"e\"", "J"), ("low", "", ""), ("high", "", "")];
    let table = table(&[("the.name", "name"), ("other[0]", "other name")], &numbers, &rows);
    let interval = Some(("low".to_owned(), "high".to_owned()));
    let colour = Some("other[0]".to_owned());
    bars(&table, &Axes { colour, interval, ..Axes::of("the.name", "e.total['j']") }, look)
}

/// Missing values: rows without a height, an interval or a name.
pub fn missing_values(look: &Look) -> Result<Figure> {
    let column = |name: &str, values: [Option<f64>; 4]| Column::numbers(name, name, "", values);
    let table = Frame::of([
        column("cap_w", [Some(f64::INFINITY), Some(90.0), None, Some(70.0)]),
        Column::optional_texts("policy", "policy", [Some("easy"), None, Some("easy"), Some("fcfs")]),
        column("value", [Some(3.0), Some(4.0), Some(5.0), None]),
        column("value_low", [Some(2.0), None, Some(4.0), None]),
        column("value_high", [Some(4.0), None, None, None]),
    ]);
    bars(&table, &axes("cap_w", "value", Some("policy"), None), look)
}

/// Candidates of a search with their means, coloured by verdict, in a panel for each policy.
pub fn verdicts_of_candidates(look: &Look) -> Result<Figure> {
    let mut draws = Draws::new();
    let names = [("policy", "policy"), ("verdict", "verdict")];
    let numbers = [
        ("size_factor", "size factor", ""),
        ("bsld_mean", "bsld mean", ""),
        ("bsld_mean_low", "", ""),
        ("bsld_mean_high", "", ""),
    ];
    let mut rows = Vec::new();
    for (policy, slowdown) in POLICIES[..2].iter().zip([9.0, 6.0]) {
        for at in 0..11 {
            let size = 0.5 + 0.15 * f64::from(at);
            let (mean, half) = (slowdown / size, 0.3 + draws.next());
            let verdict = match () {
                () if (mean - 5.0).abs() < half => "uncertain",
                () if mean < 5.0 => "feasible",
                () => "infeasible",
            };
            rows.push((owned(&[policy, verdict]), vec![size, mean, mean - half, mean + half]));
        }
    }
    let mut table = table(&names, &numbers, &rows);
    table.push(Column::numbers("limit", "bsld_mean <= 5", "", vec![5.0; rows.len()]));
    let answers = (0..rows.len()).map(|row| [9, 17].contains(&row).then_some("answer"));
    table.push(Column::optional_texts("answer", "", answers));
    let [limit, answer] = ["limit", "answer"].map(|name| Some(name.to_owned()));
    let axes = axes("size_factor", "bsld_mean", Some("verdict"), Some("policy"));
    points(&table, &Axes { limit, answer, ..axes }, look)
}

/// Candidates of two parameters, one of which has names.
pub fn verdicts_of_pairs(look: &Look) -> Result<Figure> {
    let names = [("policy", "policy"), ("verdict", "verdict")];
    let rows: Vec<_> = POLICIES
        .iter()
        .enumerate()
        .flat_map(|(place, policy)| (0..9).map(move |at| (place, *policy, at)))
        .map(|(place, policy, at)| {
            let verdict = if at > place + 2 { "feasible" } else { "infeasible" };
            (owned(&[policy, verdict]), vec![0.5 + 0.25 * at as f64])
        })
        .collect();
    let table = table(&names, &[("size_factor", "size factor", "")], &rows);
    let axes = Axes { colour: Some("verdict".to_owned()), ..Axes::of("size_factor", "policy") };
    points(&table, &axes, look)
}

/// Waits over four orders of magnitude, whose intervals reach 0, on logarithmic axes.
fn logarithmic(facet: Option<&str>) -> Axes {
    Axes { log_y: true, free_y: facet.is_some(), ..axes("queue_order", "wait_s_mean", Some("policy"), facet) }
}

fn skewed_waits() -> Frame {
    let mut draws = Draws::new();
    let mut rows = Vec::new();
    for (at, log) in LOGS[..2].iter().enumerate() {
        for (step, order) in ["fcfs", "sjf", "wfp3"].iter().enumerate() {
            for (place, policy) in POLICIES[..3].iter().enumerate() {
                let mean = 10f64.powi((step + 2 * at) as i32 + 1) * (1.0 + draws.next());
                let mean = if (at, step, place) == (0, 0, 1) { 0.0 } else { mean };
                let half = mean * 2.0 * draws.next();
                rows.push((owned(&[log, order, policy]), vec![mean, mean - half, mean + half]));
            }
        }
    }
    let numbers = [("wait_s_mean", "mean wait", "s"), ("wait_s_mean_low", "", "s"), ("wait_s_mean_high", "", "s")];
    table(&[("workload", "workload"), ("queue_order", "queue order"), ("policy", "policy")], &numbers, &rows)
}

/// Bars whose intervals reach 0, in panels with logarithmic axes of their own.
pub fn logarithmic_bars(look: &Look) -> Result<Figure> {
    bars(&skewed_waits(), &logarithmic(Some("workload")), look)
}

/// Lines whose bands reach 0, on a logarithmic axis.
pub fn logarithmic_lines(look: &Look) -> Result<Figure> {
    let log = |rows: &Frame| rows.column("workload").map(|logs| rows.kept(|row| logs.text(row) == LOGS[0]));
    lines(&log(&skewed_waits())?, &logarithmic(None), look)
}

/// Twelve long names along an axis, in a legend and over panels.
fn long_names(kind: fn(&Frame, &Axes, &Look) -> Result<Figure>, axes: &Axes, look: &Look) -> Result<Figure> {
    let mut draws = Draws::new();
    let mut rows = Vec::new();
    for order in ["fcfs", "sjf", "wfp3", "widest"] {
        for backfill in ["easy", "conservative", "none"] {
            let name = format!("policy-with-a-long-descriptive-name-paper-{order}-{backfill}");
            rows.extend([1.0, 2.0].map(|seed| (vec![name.clone()], vec![seed, 1e5 * draws.next()])));
        }
    }
    let numbers = [("seed", "seed", ""), ("wait_s_mean", "mean wait", "s")];
    kind(&table(&[("policy", "policy")], &numbers, &rows), axes, look)
}

/// Builds the figure of a look.
pub type Sample = fn(&Look) -> Result<Figure>;

/// All of them, by name.
pub const ALL: [(&str, Sample); 25] = [
    ("bars", grouped_bars),
    ("bars-panels", bars_in_panels),
    ("bars-published", published_beside_bars),
    ("series-stacked", nodes_by_frequency),
    ("lines", lines_with_bands),
    ("cdf", distribution),
    ("series-cap", power_under_a_cap),
    ("series-panels", series_in_panels),
    ("gantt", jobs_on_processors),
    ("heatmap-means", means_in_cells),
    ("heatmap-shares", shares_in_bins),
    ("effect", effect_of_an_axis),
    ("effect-panels", effect_in_panels),
    ("parallel", coordinates),
    ("pareto", front),
    ("points", verdicts_of_candidates),
    ("points-names", verdicts_of_pairs),
    ("awkward", awkward_names),
    ("missing", missing_values),
    ("bars-log", logarithmic_bars),
    ("lines-log", logarithmic_lines),
    ("bars-long", |look| long_names(bars, &Axes::of("policy", "wait_s_mean"), look)),
    ("lines-long", |look| {
        long_names(lines, &Axes { colour: Some("policy".to_owned()), ..Axes::of("seed", "wait_s_mean") }, look)
    }),
    ("points-long", |look| {
        long_names(points, &Axes { facet: Some("policy".to_owned()), ..Axes::of("seed", "wait_s_mean") }, look)
    }),
    ("pareto-panels", |look| {
        let axes = Axes { facet: Some("policy".to_owned()), ..Axes::of("energy_total_j", "wait_s_mean") };
        pareto(&tasks(400), &axes, (Better::Lower, Better::Lower), look)
    }),
];

/// Both widths, by name.
pub fn looks() -> [(&'static str, Look); 2] {
    [("column", Look::of(Width::Column)), ("page", Look::of(Width::Page))]
}
