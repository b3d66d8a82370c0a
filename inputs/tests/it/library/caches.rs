use std::fs::{self, File};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use powersweep_engine::workload::WorkloadError;
use powersweep_engine::workload::swf::{self, SwfError};
use powersweep_engine::{Choice, Role, SimSpec, Value, components};
use powersweep_experiments::Digest;
use powersweep_inputs::library::{Cache, LoadError, ParsedLogs};
use tempfile::TempDir;

use crate::library::{EMPTY, LOG};

#[test]
fn bytes_are_stored_under_their_digest() {
    let folder = TempDir::new().expect("a temporary folder");
    let cache = Cache::open(folder.path().join("a/b")).expect("opens");
    let digest = Digest::of(b"bytes");
    assert_eq!(cache.get(digest).expect("reads"), None);
    assert_eq!(cache.put(b"bytes").expect("writes"), digest);
    assert_eq!(cache.put(b"bytes").expect("writes again"), digest);
    assert_eq!(cache.get(digest).expect("reads").as_deref(), Some(&b"bytes"[..]));
    let names: Vec<_> = fs::read_dir(cache.folder()).expect("lists").flatten().map(|e| e.file_name()).collect();
    assert_eq!(names, [digest.to_string().as_str()], "nothing else is left");
}

#[test]
fn a_damaged_entry_is_absent_and_can_be_stored_again() {
    let folder = TempDir::new().expect("a temporary folder");
    let cache = Cache::open(folder.path()).expect("opens");
    let digest = cache.put(b"bytes").expect("writes");
    for damage in [&b"bytez"[..], b"byte", b""] {
        fs::write(folder.path().join(digest.to_string()), damage).expect("writes");
        assert_eq!(cache.get(digest).expect("reads"), None);
        fs::write(folder.path().join(digest.to_string()), damage).expect("writes");
        cache.put(b"bytes").expect("repairs");
        assert_eq!(cache.get(digest).expect("reads").as_deref(), Some(&b"bytes"[..]));
    }
}

#[test]
fn only_old_temporary_files_are_removed() {
    let folder = TempDir::new().expect("a temporary folder");
    let (old, new, other) =
        (folder.path().join(".incoming-a"), folder.path().join(".incoming-b"), folder.path().join("c"));
    for file in [&old, &new, &other] {
        let file = File::create(file).expect("creates");
        file.set_modified(SystemTime::now() - Duration::from_secs(7 * 24 * 3600)).expect("sets the time");
    }
    File::create(&new).expect("opens").set_modified(SystemTime::now()).expect("sets the time");
    Cache::open(folder.path()).expect("opens");
    assert_eq!((old.exists(), new.exists(), other.exists()), (false, true, true));
}

#[test]
fn an_unusable_cache_folder_is_named_in_the_error() {
    let folder = TempDir::new().expect("a temporary folder");
    let file = folder.path().join("file");
    fs::write(&file, b"").expect("writes");
    let error = Cache::open(&file).expect_err("is a file");
    assert!(matches!(&error, LoadError::Cache { path, .. } if *path == file), "{error}");
    assert!(error.is_retryable());
}

#[test]
fn writers_of_the_same_bytes_do_not_disturb_each_other() {
    let folder = TempDir::new().expect("a temporary folder");
    let bytes = vec![7u8; 100_000];
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let cache = Cache::open(folder.path()).expect("opens");
                for _ in 0..10 {
                    let digest = cache.put(&bytes).expect("writes");
                    assert_eq!(cache.get(digest).expect("reads").as_deref(), Some(&bytes[..]));
                }
            });
        }
    });
}

/// The error of a caller, such as the worker's.
#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error(transparent)]
    Swf(#[from] SwfError),
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    #[error("fetch")]
    Fetch,
}

fn spec(rules: &[(&str, Value)]) -> SimSpec {
    let mut spec = SimSpec::new();
    let mut source = Choice::new(components::find(Role::Source, "swf").expect("is registered"));
    source.set("log", Value::Text("x".to_owned())).expect("is a text");
    spec.choose(source);
    for (name, value) in rules {
        spec.choice_mut(Role::Rules).set(name, value.clone()).expect("is valid");
    }
    spec
}

#[test]
fn a_log_is_parsed_once_for_all_its_workloads() {
    let parsed = ParsedLogs::new(1 << 20);
    let digest = Digest::of(LOG.as_bytes());
    let (fetched, barrier) = (AtomicU32::new(0), Barrier::new(6));
    std::thread::scope(|scope| {
        for i in 0..6 {
            let (parsed, fetched, barrier) = (&parsed, &fetched, &barrier);
            scope.spawn(move || {
                let mut spec = spec(&[("record_to", Value::Int(1 + i % 2))]);
                spec.seed = i as u64;
                barrier.wait();
                let fetch = || {
                    fetched.fetch_add(1, Ordering::SeqCst);
                    Ok::<_, Failed>(LOG.as_bytes().to_vec())
                };
                let workload = parsed.workload(&spec, Some(digest), "x", fetch).expect("builds");
                assert_eq!(workload.jobs.len() as i64, 1 + i % 2);
                assert_eq!(workload.native_procs, Some(8));
            });
        }
    });
    assert_eq!(fetched.load(Ordering::SeqCst), 1);
    let none = || -> Result<Vec<u8>, Failed> { panic!("is in memory") };
    let log = parsed.log(digest, &swf::FORMAT, "x", none).expect("is in memory");
    assert_eq!(log.records.len(), 2);
    let other_name = |wide: &str| {
        let mut spec = spec(&[("record_to", Value::Int(1)), ("wide_jobs", Value::Text(wide.to_owned()))]);
        spec.choice_mut(Role::Source).set("log", Value::Text(format!("{wide}.swf"))).expect("is a text");
        parsed.workload(&spec, Some(digest), "y", none).expect("is in memory")
    };
    assert!(
        std::sync::Arc::ptr_eq(&other_name("clamp"), &other_name("drop")),
        "the log's name and the machine's rule make no other workload"
    );
    assert!(parsed.used_bytes() > 0);
}

#[test]
fn one_text_in_two_formats_is_two_logs() {
    let parsed = ParsedLogs::new(1 << 20);
    let digest = Digest::of(LOG.as_bytes());
    let fetch = || Ok::<_, Failed>(LOG.as_bytes().to_vec());
    let records = [&swf::FORMAT, &EMPTY].map(|format| parsed.log(digest, format, "x", fetch).expect("reads"));
    assert_eq!(records.map(|log| log.records.len()), [2, 0]);
}

#[test]
fn workloads_differ_by_rules() {
    let parsed = ParsedLogs::new(1 << 20);
    let digest = Digest::of(LOG.as_bytes());
    let get = |rules: &[(&str, Value)]| {
        let fetch = || Ok::<_, Failed>(LOG.as_bytes().to_vec());
        parsed.workload(&spec(rules), Some(digest), "x", fetch).expect("builds")
    };
    let exact = get(&[("estimates", Value::Text("exact".to_owned()))]);
    assert_eq!((exact.jobs[0].estimate_s, get(&[]).jobs[0].estimate_s), (100.0, 200.0));
    assert_eq!(get(&[("interarrival_factor", Value::Real(2.0))]).jobs[1].submit_s, 10.0);
}

/// Without a rule that draws, tasks that differ in the seed share a workload.
#[test]
fn resampled_workloads_differ_by_seed() {
    let parsed = ParsedLogs::new(1 << 20);
    let digest = Digest::of(LOG.as_bytes());
    let get = |seed: u64, jitter_s: f64| {
        let mut spec = spec(&[("submit_jitter_s", Value::Real(jitter_s))]);
        spec.seed = seed;
        let fetch = || Ok::<_, Failed>(LOG.as_bytes().to_vec());
        parsed.workload(&spec, Some(digest), "x", fetch).expect("builds")
    };
    assert_ne!(get(1, 3.0).jobs, get(2, 3.0).jobs);
    assert!(std::sync::Arc::ptr_eq(&get(1, 3.0), &get(1, 3.0)));
    assert!(std::sync::Arc::ptr_eq(&get(1, 0.0), &get(2, 0.0)));
}

#[test]
fn errors_of_fetching_parsing_and_building_reach_the_caller() {
    let parsed = ParsedLogs::new(1 << 20);
    let get = |text: Result<&str, Failed>, rules: &[(&str, Value)]| {
        let digest = Digest::of(text.as_deref().unwrap_or("?").as_bytes());
        parsed.workload(&spec(rules), Some(digest), "x.swf", || text.map(|t| t.as_bytes().to_vec()))
    };
    assert!(matches!(get(Err(Failed::Fetch), &[]), Err(Failed::Fetch)));
    let error = get(Ok("1 2 3"), &[]).expect_err("is no log");
    assert!(matches!(&error, Failed::Swf(_)) && error.to_string().starts_with("x.swf, line 1:"), "{error}");
    let error = get(Ok(LOG), &[("record_from", Value::Int(5))]).expect_err("leaves nothing");
    assert!(matches!(error, Failed::Workload(WorkloadError::NoJobs { .. })));
    get(Ok(LOG), &[]).expect("an error is not kept");
}

#[test]
fn generated_workloads_differ_by_seed_and_are_cached() {
    let parsed = ParsedLogs::new(1 << 20);
    let none = || -> Result<Vec<u8>, Failed> { panic!("a generator needs no log") };
    let get = |seed: u64| {
        let mut spec = SimSpec::new();
        spec.seed = seed;
        parsed.workload(&spec, None, "", none).expect("builds")
    };
    let first = get(1);
    assert!(std::sync::Arc::ptr_eq(&first, &get(1)));
    assert_ne!(first.jobs, get(2).jobs);
    let tight = ParsedLogs::new(1 << 20).with_max_workload_bytes(1000);
    let error = tight.workload(&SimSpec::new(), None, "", none).expect_err("is too large");
    assert!(matches!(error, Failed::Workload(WorkloadError::TooLarge { .. })), "{error}");
}

/// A log with this number of records, and its digest.
fn log_of(records: usize) -> (Digest, String) {
    let record = |id: usize| format!("{id} {id} -1 100 4 -1 -1 4 200 -1 1 1 1 -1 1 -1 -1 -1\n");
    let text: String = (1..=records).map(record).collect();
    (Digest::of(text.as_bytes()), text)
}

/// Asks for the parsed log; true if it had to be parsed.
fn parses(parsed: &ParsedLogs, (digest, text): &(Digest, String)) -> bool {
    let mut fetched = false;
    let fetch = || {
        fetched = true;
        Ok::<_, Failed>(text.as_bytes().to_vec())
    };
    parsed.log(*digest, &swf::FORMAT, "x", fetch).expect("parses");
    fetched
}

#[test]
fn a_new_log_is_cached_and_unused_ones_are_evicted() {
    let logs: Vec<(Digest, String)> = (1000..1040).map(log_of).collect();
    let budget = {
        let parsed = ParsedLogs::new(1 << 30);
        parses(&parsed, &logs[39]);
        parsed.used_bytes() * 4
    };
    let parsed = ParsedLogs::new(budget as usize);
    for log in &logs {
        assert!(parses(&parsed, log), "it is new");
        assert!(!parses(&parsed, log) && !parses(&parsed, log), "a new log is kept");
        assert!(parsed.used_bytes() <= budget);
    }
    assert!(parsed.used_bytes() > budget / 2, "the budget is used");
    assert!(parses(&parsed, &logs[0]), "the first has gone");
}

#[test]
fn a_log_larger_than_half_of_the_budget_is_not_cached() {
    let log = log_of(1000);
    let parsed = ParsedLogs::new(1 << 30);
    parses(&parsed, &log);
    let small = ParsedLogs::new((parsed.used_bytes() * 2 - 2) as usize);
    assert!(parses(&small, &log) && parses(&small, &log));
    assert_eq!(small.used_bytes(), 0);
    let enough = ParsedLogs::new((parsed.used_bytes() * 2) as usize);
    assert!(parses(&enough, &log) && !parses(&enough, &log));
}

#[test]
fn after_a_panic_the_next_caller_tries_again() {
    let parsed = ParsedLogs::new(1 << 20);
    let digest = Digest::of(LOG.as_bytes());
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        parsed.log(digest, &swf::FORMAT, "x", || -> Result<Vec<u8>, Failed> { panic!("while fetching") })
    }));
    assert!(panicked.is_err());
    assert!(parses(&parsed, &(digest, LOG.to_owned())));
}
