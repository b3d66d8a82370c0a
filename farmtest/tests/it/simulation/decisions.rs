//! What the farm decides in simulations, by digest: a change that should not change its behaviour leaves them equal.

use powersweep_coordinator::farm::{Effect, Farm, Now};
use powersweep_coordinator::records::Record;
use powersweep_coordinator::store::{Batch, Op};
use powersweep_proto::v1;

use super::random::Random;
use super::{Scenario, run, world_of};

/// Seeds whose decisions are compared.
const SEEDS: u64 = 200;

/// Events between two looks at the farm's status.
const STATUS_EVERY: u64 = 8;

/// The digest of a farm's decisions so far (FNV-1a).
pub(super) struct Decisions {
    digest: u64,
    events: u64,
}

impl Decisions {
    pub(super) fn new() -> Decisions {
        Decisions { digest: 0xcbf2_9ce4_8422_2325, events: 0 }
    }

    fn add(&mut self, text: &str) {
        for byte in text.bytes() {
            self.digest = (self.digest ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    /// Adds a batch of records.
    pub(super) fn commit(&mut self, batch: &Batch) {
        for op in batch.ops() {
            match op {
                // Its manifest and versions are an input.
                Op::Put(Record::Experiment(record)) => self.add(&format!("{} {:?}", record.name, record.state())),
                other => self.add(&format!("{other:?}")),
            }
        }
    }

    /// Adds the effects of an event, and now and then what users see.
    pub(super) fn look(&mut self, farm: &Farm, now: Now, effects: &[Effect]) {
        for effect in effects {
            match effect {
                // The manifests are an input.
                Effect::PrepareSplit { experiment, id, .. } => self.add(&format!("split {experiment} {id}")),
                other => self.add(&format!("{other:?}")),
            }
        }
        self.events += 1;
        if self.events.is_multiple_of(STATUS_EVERY) {
            let request = v1::StatusRequest { max_failures: 100, ..Default::default() };
            self.add(&format!("{:?} {:?}", farm.status(&request, now), farm.demand()));
        }
    }
}

#[test]
fn the_farm_decides_as_before() {
    let mut found = String::new();
    for seed in 0..SEEDS {
        let scenario = Scenario::new(seed, &mut Random::new(seed));
        let mut world = world_of(seed, &scenario);
        world.decisions = Some(Decisions::new());
        let steps = run(&mut world, &scenario).steps;
        let decisions = world.decisions.expect("it is set above");
        found.push_str(&format!("{seed} {steps} {:016x}\n", decisions.digest));
    }
    let folder = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let path = std::path::Path::new(&folder).join("tests/it/simulation/decisions.txt");
    if std::env::var_os("POWERSWEEP_BLESS").is_some() {
        std::fs::write(&path, &found).expect("the file can be written");
    }
    let known = std::fs::read_to_string(path).expect("the file is there");
    let changed = found.lines().zip(known.lines()).filter(|(found, known)| found != known).count();
    assert!(
        found == known,
        "the farm decides otherwise than before in {changed} of {SEEDS} simulations. If that is wanted, run this test with \
         POWERSWEEP_BLESS=1"
    );
}
