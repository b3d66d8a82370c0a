//! The section `[signals]`.

use std::collections::BTreeSet;

use powersweep_engine::SimSpec;
use powersweep_experiments::signals::{Beyond, Gaps, Quantity, Sample, Signal, Weighing};
use powersweep_experiments::{Digest, Manifest, Sweep, TaskSpec};

use crate::errors;

const TOP: &str = "version = 1\nname = \"t\"\n[workloads.w]\nsource = \"lublin\"\n[policies.p]\n";

fn parse(signals: &str) -> Manifest {
    Manifest::parse("test.toml", &format!("{TOP}{signals}")).expect("the test's manifest is right")
}

fn refused(signals: &str) -> String {
    errors(&format!("{TOP}{signals}"))
}

#[test]
fn lists_are_combined_and_zips_advance_together() {
    let manifest = parse(
        "[signals.grid]\nquantity = \"carbon\"\nfile = [\"de.csv\", \"se.csv\"]\nanchor = [\"2021-01-01\", \"2022-01-01\"]\n\
         [signals.day-ahead]\nquantity = \"price\"\nfile = [\"de-price.csv\", \"ca.csv\"]\n\
         timezone = [\"Europe/Berlin\", \"America/Toronto\"]\nzip = [[\"file\", \"timezone\"]]\n\
         sample = \"point\"\nbeyond = \"wrap\"\ngaps = \"hold\"\n",
    );
    let shown: Vec<_> = manifest
        .signals()
        .iter()
        .map(|s| (&*s.label, s.index, &*s.file, s.reading.timezone.as_deref(), s.anchor_s))
        .collect();
    assert_eq!(
        shown,
        [
            ("day-ahead", 0, "de-price.csv", Some("Europe/Berlin"), None),
            ("day-ahead", 1, "ca.csv", Some("America/Toronto"), None),
            ("grid", 0, "de.csv", None, Some(1_609_459_200)),
            ("grid", 1, "se.csv", None, Some(1_609_459_200)),
            ("grid", 2, "de.csv", None, Some(1_640_995_200)),
            ("grid", 3, "se.csv", None, Some(1_640_995_200)),
        ]
    );
    let [price, carbon] = [&manifest.signals()[0], &manifest.signals()[2]];
    assert_eq!((price.reading.quantity, carbon.reading.quantity), (Quantity::Price, Quantity::Carbon));
    assert_eq!((price.sample, price.beyond, price.reading.gaps), (Sample::Point, Beyond::Wrap, Gaps::Hold));
    assert_eq!((carbon.sample, carbon.beyond, carbon.reading.gaps), (Sample::Mean, Beyond::Error, Gaps::Error));
    let files: Vec<String> = manifest.files().into_iter().map(|file| file.name).collect();
    assert_eq!(files, ["ca.csv", "de-price.csv", "de.csv", "se.csv"]);
    assert!(manifest.tables().accounts && !parse("").tables().accounts);
}

#[test]
fn signals_do_not_change_the_ids_of_tasks() {
    let digest = |content: &[u8]| [("de.csv".to_owned(), Digest::of(content))].into();
    let signals = "[signals.grid]\nquantity = \"carbon\"\nfile = \"de.csv\"\n";
    let id = |signals: &str, content: &[u8]| {
        Sweep::new(parse(signals), digest(content)).expect("its digest").task(0).expect("a task").task_id
    };
    assert_eq!(id(signals, b"a"), id("", b""));
    assert_eq!(id(signals, b"a"), id(signals, b"b"));
    assert!(Sweep::new(parse(signals), Default::default()).is_err(), "the digest of its file is missing");
}

#[test]
fn wrong_signals_are_refused_with_their_place() {
    let one = |more: &str| refused(&format!("[signals.x]\nquantity = \"carbon\"\nfile = \"a.csv\"\n{more}"));
    for (found, expected) in [
        (refused("[signals.x]\nfile = \"a.csv\"\n"), "[signals.x] needs `quantity`"),
        (refused("[signals.x]\nquantity = \"carbon\"\n"), "[signals.x] needs `file`"),
        (refused("[signals]\nfile = \"a.csv\"\n"), "[signals] holds named blocks, not the key `file`"),
        (refused("[signals.\"a b\"]\nfile = \"a.csv\"\n"), "`a b` cannot be a label"),
        (one("area = \"DE\"\n"), "[signals.x] has no key `area`"),
        (one("gaps = \"ignore\"\n"), "`gaps` cannot be \"ignore\""),
        (one("anchor = \"soon\"\n"), "`anchor` cannot be \"soon\""),
        (one("anchor = 2021-01-01\n"), "write it in quotes: anchor = \"2021-01-01\""),
        (one("file_sha256 = \"12\"\n"), "`file_sha256` is malformed"),
        (one("column = [\"a\", \"a\"]\n"), "`column` has the value a twice"),
        (
            refused("[signals.x]\nquantity = \"carbon\"\nfile = \"https://example.org/a.csv\"\n"),
            "a URL needs `file_sha256`",
        ),
    ] {
        assert!(found.contains(expected), "{found}");
    }
    let log = "version = 1\nname = \"t\"\n[workloads.w]\nsource = \"swf\"\nlog = \"x\"\n[policies.p]\n[signals.x]\n\
               quantity = \"carbon\"\nfile = \"x\"\n";
    assert!(errors(log).contains("`x` is a log and a signal"));
    let queues = powersweep_experiments::manifests::find("aldaoud2011").expect("it is shipped");
    let queues = errors(&format!("{queues}\n[signals.x]\nquantity = \"carbon\"\nfile = \"x\"\n"));
    assert!(queues.contains("[signals] weigh the energy of batch jobs"), "{queues}");
}

#[test]
fn anchors_are_dates_or_times_in_utc() {
    let anchor = |text: &str| {
        let block = format!("[signals.x]\nquantity = \"carbon\"\nfile = \"a.csv\"\nanchor = \"{text}\"\n");
        parse(&block).signals()[0].anchor_s
    };
    assert_eq!(anchor("2025-01-01"), Some(1_735_689_600));
    for text in ["2025-01-01T05:00", "2025-01-01T05:00Z", "2025-01-01 05:00Z", "2025-01-01T05:00:00Z"] {
        assert_eq!(anchor(text), Some(1_735_707_600), "{text}");
    }
}

/// A design over a platform, a policy and a block of signals.
const JOINT: &str = r#"version = 1
name = "t"
[designs.knobs]
kind = "saltelli"
count = 4
[workloads.w]
source = "lublin"
[platforms.p]
size_factor = { from = 1, to = 2, design = "knobs" }
[policies.plain]
[policies.slow]
gear_rule = "bsld"
bsld_threshold = { from = 1.5, to = 3, design = "knobs" }
[signals.grid]
quantity = "carbon"
file = "de.csv"
pue = { from = 1, to = 1.5, design = "knobs" }
battery_policy = "single"
battery_kwh = { values = [10, 100], design = "knobs" }
battery_charge_w = 500
battery_threshold = 200
[signals.price]
quantity = "price"
file = "price.csv"
"#;

fn sweep_of(text: &str) -> Sweep {
    let manifest = Manifest::parse("t.toml", text).unwrap_or_else(|errors| panic!("{errors}"));
    let digests = manifest.files().iter().map(|file| (file.name.clone(), Digest::of(file.name.as_bytes()))).collect();
    Sweep::new(manifest, digests).expect("its digests")
}

fn tasks(sweep: &Sweep) -> Vec<TaskSpec> {
    (0..sweep.index_count()).filter_map(|index| sweep.task(index)).collect()
}

fn weighing(signals: &[Signal], sim: &SimSpec) -> Vec<bool> {
    Weighing::new(&signals.iter().collect::<Vec<_>>()).of(sim)
}

/// The values that a signal has of designs, as text.
fn values_of(signal: &Signal) -> Vec<(&'static str, String)> {
    let values = signal.points.iter().flat_map(|points| &points.values);
    values.map(|(key, value)| (*key, value.to_string())).collect()
}

#[test]
fn a_task_is_weighed_by_the_signals_of_its_points() {
    let sweep = sweep_of(JOINT);
    let manifest = sweep.manifest();
    let design = manifest.design("knobs").expect("the design");
    let names: Vec<&str> = design.parameters().collect();
    assert_eq!(names, ["battery_kwh", "bsld_threshold", "pue", "size_factor"]);
    assert_eq!(design.of_signals().collect::<Vec<_>>(), ["battery_kwh", "pue"]);
    // Rows of A, four of AB, and B: those of a base point have two values of `pue` and at most two of `battery_kwh`.
    let points: Vec<Vec<String>> =
        (0..design.points_count()).map(|at| design.values(at).iter().map(ToString::to_string).collect()).collect();
    assert_eq!(points.len(), 24);
    let given =
        |task: &TaskSpec, name: &str| task.sim.choices().find_map(|choice| choice.get(name)).map(ToString::to_string);
    let mut rows = 0;
    for task in tasks(&sweep) {
        let has_point = |point: &&Vec<String>| {
            [1, 3].iter().all(|at| given(&task, names[*at]).is_none_or(|value| value == point[*at]))
        };
        let expected: BTreeSet<[String; 2]> =
            points.iter().filter(has_point).map(|point| [point[0].clone(), point[2].clone()]).collect();
        let own = weighing(manifest.signals(), &task.sim);
        let own: Vec<&Signal> =
            manifest.signals().iter().zip(own).filter(|(_, own)| *own).map(|(one, _)| one).collect();
        let (price, grid) = own.split_last().expect("the price weighs all tasks");
        assert_eq!((&*price.label, price.points.len()), ("price", 0));
        let found: BTreeSet<[String; 2]> = grid
            .iter()
            .map(|signal| match &values_of(signal)[..] {
                [("battery_kwh", kwh), ("pue", pue)] => [kwh.clone(), pue.clone()],
                other => panic!("{other:?}"),
            })
            .collect();
        assert!(found == expected && found.len() == grid.len() && !found.is_empty(), "{found:?} {expected:?}");
        rows += grid.len();
    }
    // A task at no point is weighed by all.
    let elsewhere = sweep_of(&JOINT.replace("from = 1, to = 2", "from = 3, to = 4"));
    let task = tasks(&elsewhere).into_iter().next().expect("a task");
    assert!(!weighing(manifest.signals(), &task.sim).contains(&false));
    // Each point has a row of each policy. Without `bsld_threshold`, its row of AB is a row of A.
    let different = |ranges: &[usize]| {
        points
            .iter()
            .map(|point| ranges.iter().map(|at| &point[*at]).collect::<Vec<_>>())
            .collect::<BTreeSet<_>>()
            .len()
    };
    assert_eq!(rows, different(&[0, 1, 2, 3]) + different(&[0, 2, 3]));
    let numbers: Vec<u64> = manifest.signals().iter().map(|signal| signal.index).collect();
    assert_eq!(numbers.len(), different(&[0, 2]) + 1);
    assert_eq!(numbers[..numbers.len() - 1], (0..numbers.len() as u64 - 1).collect::<Vec<_>>());
}

#[test]
fn values_of_a_design_of_signals_that_are_written_by_hand_are_the_same_tasks_and_signals() {
    let sweep = sweep_of(JOINT);
    let task = tasks(&sweep).into_iter().find(|task| &*task.policy == "slow").expect("a task");
    let own = weighing(sweep.manifest().signals(), &task.sim);
    let signal = sweep.manifest().signals().iter().zip(own).find(|(_, own)| *own).expect("a signal").0;
    let given = |name: &str| task.sim.choices().find_map(|choice| choice.get(name)).expect("a value").to_string();
    let mut text = JOINT.replace("[designs.knobs]\nkind = \"saltelli\"\ncount = 4\n", "");
    for name in ["size_factor", "bsld_threshold", "pue", "battery_kwh"] {
        let value =
            values_of(signal).into_iter().find(|(key, _)| *key == name).map_or_else(|| given(name), |(_, value)| value);
        let begin = text.find(&format!("{name} = {{")).expect("its range");
        let end = begin + text[begin..].find('\n').expect("a line");
        text.replace_range(begin..end, &format!("{name} = {value}"));
    }
    let by_hand = sweep_of(&text);
    assert!(tasks(&by_hand).iter().any(|other| other.task_id == task.task_id), "{text}");
    let [found, _] = by_hand.manifest().signals() else { panic!("two signals") };
    let expected = Signal { points: Vec::new(), index: 0, ..signal.clone() };
    assert_eq!(*found, expected);
}

#[test]
fn a_design_of_signals_alone_weighs_every_task() {
    let text = |kind: &str, range: &str| {
        format!(
            "{TOP}[designs.d]\n{kind}\n[signals.x]\nquantity = \"carbon\"\nfile = [\"a.csv\", \"b.csv\"]\n{range}\n"
        )
    };
    let of = |kind: &str, range: &str| sweep_of(&text(kind, range));
    let sweep =
        of("kind = \"sobol\"\ncount = 8", "anchor = { values = [\"2021-01-01\", \"2021-07-01\"], design = \"d\" }");
    let signals = sweep.manifest().signals();
    let shown: Vec<_> = signals.iter().map(|signal| (signal.index, &*signal.file, signal.anchor_s)).collect();
    let days = [1_609_459_200, 1_625_097_600].map(Some);
    assert_eq!(shown, [(0, "a.csv", days[0]), (1, "a.csv", days[1]), (2, "b.csv", days[0]), (3, "b.csv", days[1])]);
    assert!(sweep.task_count() == 1 && weighing(signals, &sweep.task(0).expect("a task").sim) == [true; 4]);
    // `plan` counts the points that repeat an earlier one.
    let design = &sweep.designs()[0];
    assert_eq!(
        (design.points_count, design.repeated_count, &*design.ranges[0].values),
        (8, 6, "2021-01-01, 2021-07-01")
    );
    // Points of a file, integers, logarithms, and a key that two blocks share.
    let points = "kind = \"points\"\npoints = \"zone,battery_window,pue\\nDE,2,1.5\\nSE,3,1.25\\n\"";
    let battery = "battery_policy = \"running-mean\"\nbattery_kwh = 1\nbattery_charge_w = 1\n";
    let keys = "zone = { design = \"d\" }\nbattery_window = { design = \"d\" }\npue = { design = \"d\" }\n";
    let other = "[signals.y]\nquantity = \"price\"\nfile = \"p.csv\"\npue = { from = 1, to = 1.5, design = \"d\" }";
    let sweep = of(points, &format!("{battery}{keys}{other}"));
    let listed: Vec<_> = sweep.manifest().signals().iter().map(values_of).collect();
    assert_eq!(listed.len(), 2 * 2 + 2);
    assert_eq!(listed[1], [("battery_window", "3".to_owned()), ("pue", "1.25".to_owned()), ("zone", "SE".to_owned())]);
    assert_eq!(listed[4], [("pue", "1.5".to_owned())]);
    let window = format!("{battery}battery_window = {{ from = 1, to = 1000, scale = \"log\", design = \"d\" }}\n");
    let sweep = of("kind = \"one-at-a-time\"\ncount = 4", &window);
    let windows: BTreeSet<String> =
        sweep.manifest().signals().iter().map(|signal| values_of(signal)[0].1.clone()).collect();
    assert_eq!(windows, ["1", "10", "100", "1000", "31"].map(str::to_owned).into());
}

/// A design has the ranges of sections and of signals by name.
#[test]
fn no_key_of_signals_has_the_name_of_a_parameter() {
    let params = powersweep_engine::components::COMPONENTS.iter().flat_map(|component| component.params);
    let names: BTreeSet<&str> = params.map(|param| param.name).collect();
    let keys = powersweep_experiments::schema::signal_keys();
    assert!(keys.iter().all(|key| !names.contains(key.name)));
}

#[test]
fn designs_that_signals_cannot_have_are_refused_with_the_reason() {
    let one = |design: &str, keys: &str| {
        refused(&format!("[designs.d]\n{design}\n[signals.x]\nquantity = \"carbon\"\nfile = \"a.csv\"\n{keys}\n"))
    };
    let pue = "pue = { from = 1, to = 1.5, design = \"d\" }";
    for (found, expected) in [
        (one("kind = \"sobol\"\ncount = 10001", pue), "the design `d` has 10001 points, each with a signal"),
        (one("kind = \"sobol\"\ncount = 10001", pue), "an own design of [signals.x] with at most as many"),
        (one("kind = \"points\"\npoints = \"\"", pue), "the design `d` has no points"),
        (
            one("kind = \"sobol\"\ncount = 4", "pue = { from = 0.5, to = 1.5, design = \"d\" }"),
            "`from` of the range of `pue` cannot be 0.5",
        ),
        (
            one("kind = \"sobol\"\ncount = 4", "anchor = { from = 1, to = 2, design = \"d\" }"),
            "the range of `anchor` is wrong",
        ),
        (
            one("kind = \"sobol\"\ncount = 4", "anchor = { values = [\"x\"], design = \"d\" }"),
            "`anchor` cannot be \"x\"",
        ),
        (one("kind = \"sobol\"\ncount = 4", &pue.replace("\"d\"", "\"e\"")), "there is no design \"e\""),
        (
            one("kind = \"sobol\"\ncount = 4", &format!("{pue}\nzip = [[\"pue\", \"file\"]]")),
            "`pue` has the values of a design",
        ),
        (
            one(
                "kind = \"points\"\npoints = \"pue\\n1.5\\n\"",
                "pue = { design = \"d\" }\n[signals.y]\nquantity = \"carbon\"\nfile = { design = \"d\" }",
            ),
            "`file` cannot have the values of a design",
        ),
    ] {
        assert!(found.contains(expected), "{found}");
    }
    let read =
        JOINT.replace("[policies.plain]", "[policies.plain]\ndeferral = \"lowest-slot\"\ndefer_signal = \"grid\"");
    assert!(errors(&read).contains("a policy reads a block without lists"), "{}", errors(&read));
    // Points of other designs are not listed.
    let many = JOINT
        .replace("saltelli", "sobol")
        .replace("count = 4", "count = 8\n[designs.all]\nkind = \"sobol\"\ncount = 1_000_000_000");
    let many = many.replace("to = 3, design = \"knobs\"", "to = 3, design = \"all\"");
    assert_eq!(sweep_of(&many).task_count(), 8 * 1_000_000_000 + 8);
}
