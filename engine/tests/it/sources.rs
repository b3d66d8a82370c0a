//! Invariants of every generator and every log format, on random seeds and texts. With `POWERSWEEP_COMPONENT`, only the
//! component of this name is tested.
use powersweep_engine::workload::{self, FORMATS, GENERATORS, LogFormat};
use powersweep_engine::{Choice, Details, Limits, Role, SimSpec, Value, simulate};
use proptest::prelude::*;

/// Whether a component is to be tested.
fn is_wanted(name: &str) -> bool {
    std::env::var("POWERSWEEP_COMPONENT").map_or(true, |wanted| wanted == name)
}

/// A spec with the source of a log format.
fn spec(format: &'static LogFormat) -> SimSpec {
    let mut source = Choice::new(&format.component);
    source.set("log", Value::Text("sample".to_owned())).unwrap();
    let mut spec = SimSpec::new();
    spec.choose(source);
    spec
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn generators_conform(seed in any::<u64>(), few in 1_i64..40) {
        for generator in GENERATORS.iter().filter(|generator| is_wanted(generator.component.name)) {
            let name = generator.component.name;
            let make = |count: i64| {
                let mut source = Choice::new(&generator.component);
                source.set(generator.jobs_count, Value::Int(count)).unwrap();
                source.set(generator.machine_procs, Value::Int(1024)).unwrap();
                let mut spec = SimSpec::new();
                spec.seed = seed;
                spec.choose(source);
                (workload::build(&spec, None).unwrap(), spec)
            };
            let (made, spec) = make(few);
            prop_assert_eq!(made.jobs.len() as i64, few, "{}", name);
            prop_assert_eq!(&made, &make(few).0, "{}: the same seed gives the same jobs", name);
            prop_assert!(made.jobs.windows(2).all(|pair| pair[0].submit_s <= pair[1].submit_s), "{}: in order", name);
            prop_assert!(made.jobs.iter().all(|job| (1..=1024).contains(&job.procs)), "{}: fits its machine", name);
            let ran = simulate(&spec, &made, &Limits::NONE, &mut Details::default());
            prop_assert!(ran.is_ok(), "{}: {:?}", name, ran.err());
        }
    }

    #[test]
    fn formats_conform(bytes in prop::collection::vec(any::<u8>(), 0..200), at in any::<prop::sample::Index>()) {
        for format in FORMATS.iter().filter(|format| is_wanted(format.component.name)) {
            let name = format.component.name;
            let file = format!("x.{}", format.suffix);
            for ending in format.endings() {
                let owners = FORMATS.iter().filter(|format| format.has_ending(&format!("X{ending}")));
                prop_assert_eq!(owners.count(), 1, "{}: {} is the ending of one format", name, ending);
            }
            let log = format.read(format.sample.as_bytes(), &file).unwrap();
            prop_assert_eq!(&log.file, &file, "{}: keeps the name", name);
            let workload = workload::build(&spec(format), Some(&log)).unwrap();
            let mut spec = spec(format);
            spec.choice_mut(Role::Platform).set("procs", Value::Int(1 << 20)).unwrap();
            prop_assert!(simulate(&spec, &workload, &Limits::NONE, &mut Details::default()).is_ok(), "{}", name);
            // Any text is a log or an error that names the file; it never causes a panic.
            let mut damaged = format.sample.as_bytes().to_vec();
            damaged.splice(at.index(damaged.len()).., bytes.iter().copied());
            for text in [&bytes, &damaged] {
                let (named, unnamed) = (format.read(text, &file), format.read(text, "x"));
                prop_assert_eq!(named.is_err(), unnamed.is_err());
                if let (Err(named), Err(unnamed)) = (named, unnamed) {
                    prop_assert!(named.to_string().starts_with(&file), "{}: {}", name, named);
                    let end = format!("(read in the format `{name}`)");
                    prop_assert!(unnamed.to_string().ends_with(&end), "{}: {}", name, unnamed);
                }
            }
        }
    }
}

#[test]
fn the_wanted_source_exists() {
    let generators = GENERATORS.iter().map(|generator| generator.component.name);
    let names: Vec<&str> = generators.chain(FORMATS.iter().map(|format| format.component.name)).collect();
    assert!(names.into_iter().any(is_wanted), "no generator and no log format has the name in POWERSWEEP_COMPONENT");
}
