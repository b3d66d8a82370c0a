//! Which parameters move a metric, and what is refused.

use powersweep::sensitivity::{Missing, Sensitivity, SensitivityOptions};
use powersweep::{Error, Files, Kind, Manifest, Place, RunOptions, block_on};
use powersweep_dataset::text::Sheet;

/// A design with points at which the machine is too small for the widest jobs.
const NARROW: &str = r#"
version = 1
name = "narrow"
[designs.knobs]
kind = "morris"
count = 6
[workloads.synthetic]
source = "lublin"
synthetic_jobs_count = 60
[platforms.cluster]
size_factor = { from = 0.1, to = 2, design = "knobs" }
[policies.slow]
gear_rule = "bsld"
bsld_threshold = { from = 1.5, to = 6, design = "knobs" }
"#;

/// A grid of which one policy lacks a parameter.
const GRID: &str = r#"
version = 1
name = "grid"
seeds = [1]
[workloads.synthetic]
source = "lublin"
synthetic_jobs_count = 60
[platforms.cluster]
size_factor = [1, 2]
[policies.plain]
backfill = "easy"
[policies.slow]
gear_rule = "bsld"
bsld_threshold = [1.5, 6]
"#;

/// The answers about an experiment that runs first.
fn of(text: &str, requests: &[SensitivityOptions]) -> Vec<Result<Sensitivity, Error>> {
    let folder = tempfile::tempdir().expect("a folder");
    let answers = block_on(async {
        let place = Place::open(folder.path().join("data").display().to_string());
        let manifest = Manifest::parse("test.toml", text).expect("a manifest");
        let mut running = place.run(&manifest, Files::default(), RunOptions::default()).await?;
        while running.next().await?.is_some() {}
        running.end().await?;
        let mut answers = Vec::new();
        for options in requests {
            answers.push(place.sensitivity(manifest.name(), options).await);
        }
        Ok::<_, Error>(answers)
    });
    answers.expect("the sweep runs")
}

fn options(of: &[&str]) -> SensitivityOptions {
    SensitivityOptions { of: of.iter().map(|name| (*name).to_owned()).collect(), ..SensitivityOptions::default() }
}

#[test]
fn requests_without_an_effect_are_refused() {
    let range = SensitivityOptions { ranges: vec![("wait_s_mean".to_owned(), 1.0, 60.0)], ..options(&["bsld_mean"]) };
    let some = SensitivityOptions { only: vec!["size_factor>1.5".to_owned()], ..options(&["bsld_mean"]) };
    let mut answers = of(NARROW, &[range, some, options(&["bsld_mean", "energy_total_j"])]).into_iter();
    for expected in ["the range of `wait_s_mean` has no use", "`size_factor` is a parameter of the design"] {
        let error = answers.next().expect("an answer").expect_err(expected);
        assert!(error.kind == Kind::Usage && error.message.contains(expected), "{error}");
    }
    let found = answers.next().expect("an answer").expect("indices");
    let mut points: Vec<&str> = found.missing.iter().map(|missing: &Missing| missing.point.as_str()).collect();
    let count = points.len();
    points.sort_unstable();
    points.dedup();
    assert!(count > 0 && points.len() == count, "each once: {points:?}");
    assert!(found.missing.iter().all(|missing| missing.metrics == ["bsld_mean", "energy_total_j"]));
    assert!(found.said().contains("of bsld_mean") && found.said().contains("of energy_total_j"), "{}", found.said());
}

#[test]
fn parts_of_a_grid_are_named_by_their_values() {
    let found = of(GRID, &[options(&["bsld_mean"])]).remove(0).expect("shares");
    let text = Sheet::of(&found.of_metrics()[0].1).latex();
    assert!(text.contains("policy=plain & size\\_factor") && text.contains("policy=slow & "), "{text}");
    assert!(!text.contains("threshold=") && !text.contains("CI]"), "{text}");
}
