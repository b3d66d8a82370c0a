//! Ask and tell on a data folder.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use powersweep::study::{Asked, Told, Wait};
use powersweep::{Error, Kind, Manifest, Notes, Place, StatusOptions, Study, StudyOptions, block_on};
use powersweep_engine::Value;

const TEXT: &str = r#"
version = 1
name = "asked"
seeds = [1, 2]
[designs.knobs]
kind = "points"
points = ""
[workloads.synthetic]
source = "lublin"
synthetic_jobs_count = 60
[platforms.cluster]
size_factor = { from = 1, to = 4, design = "knobs" }
[policies.slow]
gear_rule = "bsld"
bsld_threshold = { from = 1.5, to = 6, scale = "log", design = "knobs" }
"#;

const ALL: Wait = Wait { least: usize::MAX, limit: None };
/// Where a fault would wait for ever.
const BRIEF: Wait = Wait { least: usize::MAX, limit: Some(Duration::from_secs(60)) };

fn options() -> StudyOptions {
    StudyOptions { metrics: vec!["bsld_mean".to_owned(), "energy_total_j".to_owned()], ..StudyOptions::default() }
}

#[test]
fn relative_power_is_noted_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let said = Arc::new(Mutex::new(Vec::new()));
    let saying = Arc::clone(&said);
    let notes = Notes::to(move |note| saying.lock().expect("no panic").push(note.to_owned()));
    let place = Place { notes, ..Place::open(folder.path().join("data").display().to_string()) };
    let manifest = Manifest::parse("asked.toml", TEXT).expect("a manifest");
    block_on(async {
        let mut asked = place.study(&manifest, options()).await?;
        for size in [1.0, 2.0] {
            asked.ask(&[point(size, 2.0)])?;
            asked.tell(ALL).await?;
        }
        asked.end().await
    })
    .expect("a study");
    let said = said.lock().expect("no panic");
    assert_eq!(said.iter().filter(|note| note.starts_with("note: power is relative")).count(), 1, "{said:?}");
}

async fn study(folder: &str, text: &str) -> Result<Study, Error> {
    let manifest = Manifest::parse("asked.toml", text).expect("a manifest");
    Place::open(folder).study(&manifest, options()).await
}

fn point(size: f64, threshold: f64) -> Asked {
    let values =
        vec![("size_factor".to_owned(), Value::Real(size)), ("bsld_threshold".to_owned(), Value::Real(threshold))];
    Asked { design: None, values }
}

fn numbers(told: &[Told]) -> Vec<usize> {
    told.iter().filter_map(|told| told.number).collect()
}

/// A cap is a list of watts in a manifest and in rows, and a number in a study.
#[test]
fn a_parameter_that_is_a_list_has_numbers_in_a_study() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path().join("data").display().to_string();
    let capped =
        "cap_schedule_w = { from = 20_000, to = 50_000, design = \"knobs\" }\npower_cap = \"pdrc\"\nbsld_threshold";
    let text = TEXT.replace("bsld_threshold", capped).replace("[policies", "power_top_w = 10\n[policies");
    let asked = |watts: Value| {
        let mut asked = point(1.0, 2.0);
        asked.values.push(("cap_schedule_w".to_owned(), watts));
        asked
    };
    block_on(async {
        let mut first = study(&folder, &text).await?;
        let caps = [Value::Int(30_000), Value::Real(45_000.5), Value::Reals(vec![30_000.0])];
        first.ask(&caps.map(asked))?;
        let told = first.tell(ALL).await?;
        assert!(told.iter().all(|told| told.failure.is_none()), "{told:?}");
        let watts: Vec<Option<&Value>> = told.iter().map(|told| told.values.get("cap_schedule_w")).collect();
        assert_eq!(watts, [30_000.0, 45_000.5, 30_000.0].map(Value::Real).each_ref().map(Some));
        assert_eq!(told[0].groups, told[2].groups);
        let outside = first.ask(&[asked(Value::Real(19_999.0))]).expect_err("it is outside");
        assert!(outside.to_string().contains("outside of 20000 to 50000"), "{outside}");
        first.end().await?;
        let mut later = study(&folder, &text).await?;
        assert_eq!(later.ended().await?.len(), 2);
        later.end().await?;
        Ok::<_, Error>(())
    })
    .expect("a study");
}

#[test]
fn every_request_is_answered_once_and_every_point_runs_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path().join("data").display().to_string();
    block_on(async {
        let mut asked = study(&folder, TEXT).await?;
        assert_eq!(asked.ask(&[point(1.0, 2.0), point(2.0, 3.0), point(1.0, 2.0)])?, 0..3);
        let told = asked.tell(ALL).await?;
        assert_eq!(numbers(&told), [0, 1, 2]);
        assert_eq!(told[0].groups, told[2].groups);
        assert!(told[0].failure.is_none() && told[0].groups[0].seeds == 2);
        assert!(told[0].groups[0].means[1] != told[1].groups[0].means[1]);
        assert!(asked.tell(ALL).await?.is_empty(), "nothing is open");
        // An integer is the same point; a further one is an edit.
        let again = Asked {
            values: vec![("size_factor".to_owned(), Value::Int(1)), point(1.0, 2.0).values.remove(1)],
            ..Asked::default()
        };
        assert_eq!(asked.ask(&[again, point(4.0, 6.0)])?, 3..5);
        let more = asked.tell(ALL).await?;
        assert_eq!(numbers(&more), [3, 4]);
        assert_eq!(more[0].groups, told[0].groups);
        let rows = async || {
            let found = Place::open(folder.as_str()).status(&StatusOptions::default()).await?.into_first();
            let found = found.expect("the experiment");
            Ok::<_, Error>((found.rows_in_parts, found.rows_unpublished))
        };
        assert_eq!(rows().await?, (0, 3 * 2), "a round has no part of its own");
        asked.end().await?;

        // Another process knows all points, and runs nothing for them.
        let mut later = study(&folder, TEXT).await?;
        assert_eq!(later.ended().await?.len(), 3);
        later.ask(&[point(2.0, 3.0), point(1.0, 2.0)])?;
        let known = later.tell(ALL).await?;
        assert_eq!(known[1].groups, told[0].groups);
        later.end().await?;
        assert_eq!(rows().await?, (3 * 2, 0));
        Ok(())
    })
    .expect("a study");
}

#[test]
fn a_point_ends_with_its_tasks_whatever_rows_are_chosen() {
    let folder = tempfile::tempdir().expect("a folder");
    let manifest = Manifest::parse("asked.toml", TEXT).expect("a manifest");
    block_on(async {
        for (only, seeds) in [("seed=1", 1), ("seed=3", 0)] {
            let chosen = StudyOptions { only: vec![only.to_owned()], ..options() };
            let mut asked =
                Place::open(folder.path().join("data").display().to_string()).study(&manifest, chosen).await?;
            asked.ask(&[point(1.0, 2.0)])?;
            let told = asked.tell(BRIEF).await?;
            assert_eq!(told[0].groups[0].seeds, seeds, "{only}");
            assert_eq!(told[0].groups[0].means[0].is_some(), seeds > 0, "{only}");
            asked.end().await?;
        }
        Ok(())
    })
    .expect("a study");
}

#[test]
fn points_that_fail_are_named_and_never_imputed() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path().join("data").display().to_string();
    // A narrow machine has no room for wide jobs.
    let text = TEXT.replace("from = 1, to = 4", "from = 0.1, to = 4");
    block_on(async {
        let mut asked = study(&folder, &text).await?;
        asked.ask(&[point(0.1, 2.0), point(1.0, 2.0)])?;
        let told = asked.tell(ALL).await?;
        let failure = told[0].failure.as_deref().expect("it fails");
        assert!(failure.contains("2 tasks failed"), "{failure}");
        assert_eq!((told[0].groups[0].seeds, &told[0].groups[0].means[..]), (0, &[None, None][..]));
        assert!(told[1].failure.is_none() && told[1].groups[0].means[0].is_some());
        asked.end().await?;
        let mut later = study(&folder, &text).await?;
        later.ask(&[point(0.1, 2.0)])?;
        assert_eq!(later.tell(ALL).await?[0].failure.as_deref(), Some(failure));
        later.end().await
    })
    .expect("a study");
}

#[test]
fn wrong_points_and_manifests_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path().join("data").display().to_string();
    let refused = |text: &str| {
        let error = block_on(study(&folder, text)).err().expect("it is refused");
        assert_eq!(error.kind, Kind::Usage);
        error.message
    };
    let sobol = TEXT.replace("kind = \"points\"\npoints = \"\"", "kind = \"sobol\"\ncount = 4");
    assert!(refused(&sobol).contains("has no design of listed points"));
    let manifest = Manifest::parse("asked.toml", TEXT).expect("a manifest");
    let text = StudyOptions { metrics: vec!["policy".to_owned()], ..StudyOptions::default() };
    let error = block_on(Place::open(folder.as_str()).study(&manifest, text)).err().expect("it is refused");
    assert!(error.message.contains("`policy` has no numbers"), "{}", error.message);
    block_on(async {
        let mut asked = study(&folder, TEXT).await?;
        let mut wrong = |values: Vec<(&str, Value)>| {
            let values = values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
            asked.ask(&[Asked { design: None, values }]).expect_err("it is refused").message
        };
        assert!(wrong(vec![("size_factor", Value::Real(1.0))]).contains("`bsld_threshold` has no value"));
        assert!(wrong(vec![("size", Value::Real(1.0))]).contains("no parameter `size`; its parameters are"));
        let high = wrong(vec![("size_factor", Value::Real(5.0)), ("bsld_threshold", Value::Real(2.0))]);
        assert!(high.contains("`size_factor` is 5, outside of 1 to 4"), "{high}");
        assert!(asked.tell(ALL).await?.is_empty());
        asked.end().await
    })
    .expect("a study");
}

#[test]
fn two_processes_keep_each_others_points() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path().join("data").display().to_string();
    block_on(async {
        let mut one = study(&folder, TEXT).await?;
        // The coordinator of the first study serves the data.
        let mut other = study(&folder, TEXT).await?;
        one.ask(&[point(1.0, 2.0)])?;
        one.tell(ALL).await?;
        other.ask(&[point(2.0, 2.0)])?;
        other.tell(ALL).await?;
        one.ask(&[point(3.0, 2.0), point(2.0, 2.0)])?;
        assert_eq!(one.tell(ALL).await?.len(), 2);
        // A point whose rows were read before this process knew of it.
        other.ask(&[point(4.0, 2.0)])?;
        other.tell(ALL).await?;
        one.ended().await?;
        one.ask(&[point(4.0, 2.0)])?;
        assert_eq!(one.tell(BRIEF).await?.len(), 1);
        let found = Place::open(folder.as_str()).status(&StatusOptions::default()).await?.into_first();
        let found = found.expect("the experiment");
        assert_eq!((found.tasks, found.done, found.extra), (8, 8, 0));
        assert_eq!(one.ended().await?.len(), 4);
        other.end().await?;
        one.end().await
    })
    .expect("two studies");
}

#[test]
fn processes_that_submit_at_once_lose_no_points() {
    const ROUNDS: usize = 8;
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path().join("data").display().to_string();
    block_on(async {
        let mut one = study(&folder, TEXT).await?;
        let mut other = study(&folder, TEXT).await?;
        for round in 0..ROUNDS {
            let size = 1.0 + round as f64 / 10.0;
            one.ask(&[point(size, 2.0)])?;
            other.ask(&[point(size, 3.0)])?;
            let (of_one, of_other) = tokio::join!(one.tell(BRIEF), other.tell(BRIEF));
            assert_eq!((of_one?.len(), of_other?.len()), (1, 1));
        }
        let found = Place::open(folder.as_str()).status(&StatusOptions::default()).await?.into_first();
        let found = found.expect("the experiment");
        let tasks = 2 * 2 * ROUNDS as u64;
        assert_eq!((found.tasks, found.done, found.extra), (tasks, tasks, 0));
        other.end().await?;
        one.end().await
    })
    .expect("two studies");
}
