//! No input makes the reader panic. `POWERSWEEP_FUZZ_CASES` sets the number of inputs.

use powersweep_experiments::{Manifest, Sweep, manifests};

use crate::Random;

const TOKENS: [&str; 51] = [
    "[designs.d]\n",
    "[",
    "]",
    "[[exclude]]\n",
    "zip = [[\"a\", \"b\"]]\n",
    "zip = [[\"order\", \"bsld_threshold\"]]\n",
    "{ from = 1, to = 3 }",
    "{ from = 1, to = 3, design = \"knobs\" }",
    "{ values = [1, 2], design = \"d\" }",
    "{ from = 0.1, to = 1e300, step = 1e-300 }",
    "{ from = 1, count = 9223372036854775807 }",
    "{ from = 0, to = 1, step = 0.1 }",
    "\"unlimited\"",
    "inf",
    "nan",
    "-0.0",
    "1e999",
    "9223372036854775807",
    "-9223372036854775808",
    "0x7f",
    "é",
    "\u{1F600}",
    "\r\n",
    "\t",
    "\"\"\"",
    "'",
    "=",
    ",",
    ".",
    "seeds = ",
    "name = \"a/b\"\n",
    "[workloads.x]\n",
    "[platforms.y]\n",
    "[policies.z]\n",
    "queue_order = [\"fcfs\", \"sjf\"]\n",
    "gear_rule = [\"top\", \"bsld\"]\n",
    "bsld_threshold = [1, 2]\n",
    "log = [\"a\", \"b\"]\n",
    "zip = [[\"workload\", \"policy\"]]\n",
    "source = \"swf\"\n",
    "gears_ghz = [[1, 2], [1]]\n",
    "gear_volts = [1.0]\n",
    "policy = \"bsld\"\n",
    "seed = 1\n",
    "size_factor = [1, 1.0]\n",
    "1979-05-27",
    "true",
    "#",
    "\0",
    "\u{7f}",
    "[statistics]\n",
];

fn mutate(random: &mut Random, text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..=random.below(6) {
        let at = random.below(bytes.len() + 1);
        let end = (at + random.below(30)).min(bytes.len());
        match random.below(7) {
            0 => drop(bytes.drain(at..end)),
            1 => drop(bytes.splice(at..at, random.pick(&TOKENS).bytes())),
            2 => drop(bytes.splice(at..end, random.pick(&TOKENS).bytes())),
            3 => {
                // Copy a line elsewhere: keys land in other sections.
                let lines: Vec<&[u8]> = text.as_bytes().split(|b| *b == b'\n').collect();
                let line = [*random.pick(&lines), b"\n"].concat();
                let start = bytes[..at].iter().rposition(|b| *b == b'\n').map_or(0, |i| i + 1);
                drop(bytes.splice(start..start, line));
            }
            4 => bytes.iter_mut().skip(at).take(1).for_each(|b| *b ^= 1 << random.below(8)),
            5 => bytes.truncate(at.max(1)),
            _ => {
                // Change a number.
                let digits: Vec<usize> = (0..bytes.len()).filter(|i| bytes[*i].is_ascii_digit()).collect();
                if !digits.is_empty() {
                    bytes[*random.pick(&digits)] = b'0' + u8::try_from(random.below(10)).expect("a digit");
                }
            }
        }
    }
    bytes
}

#[test]
fn mutated_manifests_never_panic() {
    let cases: u64 = std::env::var("POWERSWEEP_FUZZ_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(3_000);
    let designed =
        ["kind = \"saltelli\"\ncount = 16", "kind = \"sobol\"\ncount = 4_000", "kind = \"morris\"\ncount = 16"];
    let designed = designed.map(crate::designs::knobs);
    let builtin = manifests::builtin().iter().map(|(_, text)| *text);
    let seeds: Vec<&str> = builtin.chain([RICH]).chain(designed.iter().map(String::as_str)).collect();
    let (mut accepted, mut wrong) = (0_u64, 0_u64);
    for case in 0..cases {
        let mut random = Random(case);
        let bytes = mutate(&mut random, seeds[usize::try_from(case).expect("small") % seeds.len()]);
        let text = String::from_utf8_lossy(&bytes);
        match Manifest::parse("fuzz.toml", &text) {
            Err(errors) => {
                wrong += 1;
                assert!(!errors.problems().is_empty());
                for problem in errors.problems() {
                    assert!(text.get(problem.span()).is_some(), "case {case}: span {:?}", problem.span());
                }
                assert!(errors.to_string().contains("-->"));
            }
            Ok(manifest) => {
                accepted += 1;
                probe(case, manifest, &mut random);
            }
        }
    }
    println!("{cases} inputs: {accepted} accepted, {wrong} refused");
    assert!(accepted > cases / 50 && wrong > cases / 2, "{accepted} accepted, {wrong} refused of {cases}");
}

/// Decodes and encodes a few tasks of an accepted manifest.
fn probe(case: u64, manifest: Manifest, random: &mut Random) {
    let digests = crate::digests(&manifest);
    let sweep = Sweep::new(manifest, digests).expect("every file has a digest of its own");
    assert!(sweep.task_count() > 0 && sweep.task_count() <= sweep.index_count());
    for _ in 0..3 {
        let from = random.next() % sweep.index_count();
        let Some(index) = sweep.next_included(from) else { continue };
        let task = sweep.task(index).unwrap_or_else(|| panic!("case {case}: {index} is included"));
        assert_eq!(sweep.index_of(&task), Some(index), "case {case}");
    }
    drop(sweep.blocks());
}

/// A manifest with all kinds of keys.
const RICH: &str = r#"
version = 1
name = "rich"
tables = ["jobs"]
seeds = { from = 1, count = 3 }
zip = [["workload", "platform"]]
[workloads.a]
source = "swf"
log = ["A", "B"]
job_number_from = [0, 10]
job_number_to = [10, 20]
zip = [["job_number_from", "job_number_to"]]
[workloads.b]
source = ["lublin", "poisson"]
poisson_rate_per_h = { from = 1.0, to = 2.0, step = 0.25 }
[platforms.p]
size_factor = [1, 1.5]
gears_ghz = [[0.8, 1.6], [1.0, 2.0]]
gear_volts = [1.0, 1.2]
[platforms.q]
procs = { from = 16, to = 64, step = 16 }
[policies.x]
queue_order = ["fcfs", "sjf"]
backfill = ["none", "easy"]
gear_rule = ["top", "bsld", "bsld"]
bsld_threshold = [1, 1.5, 2]
zip = [["gear_rule", "bsld_threshold"]]
[statistics]
warmup_jobs = [0, 100]
[[exclude]]
queue_order = "sjf"
backfill = "none"
[[exclude]]
procs = [16, 32]
seed = 2
"#;
