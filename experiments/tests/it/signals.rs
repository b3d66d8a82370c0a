//! The section `[signals]`.

use powersweep_experiments::signals::{Beyond, Gaps, Quantity, Sample};
use powersweep_experiments::{Digest, Manifest, Sweep};

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
