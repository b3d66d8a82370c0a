//! Integration tests of the manifest and the lazy sweep, through the public interface only.

mod builtin;
mod combos;
mod designs;
mod documented;
mod errors;
mod fuzz;
mod golden;
mod huge;
mod modules;
mod random;
mod schema;
mod signals;
mod unique;
mod warnings;

use std::collections::BTreeMap;

use powersweep_experiments::{Digest, Manifest, Sweep};

/// A digest for every file that a manifest names.
fn digests(manifest: &Manifest) -> BTreeMap<String, Digest> {
    let logs = manifest.logs().into_iter().map(|log| log.log.clone());
    let signals = manifest.signals().iter().map(|signal| signal.file.to_string());
    let modules = manifest.modules().iter().map(|module| module.to_string());
    logs.chain(signals).chain(modules).map(|name| (name.clone(), Digest::of(name.as_bytes()))).collect()
}

/// A sweep of a correct manifest; every file gets a digest of its own.
fn sweep(text: &str) -> Sweep {
    let manifest = Manifest::parse("test.toml", text).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
    let digests = digests(&manifest);
    Sweep::new(manifest, digests).expect("a sweep")
}

/// The rendered problems of a wrong manifest.
fn errors(text: &str) -> String {
    match Manifest::parse("test.toml", text) {
        Ok(_) => panic!("accepted:\n{text}"),
        Err(errors) => errors.to_string(),
    }
}

/// A small generator of test inputs: splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() % n as u64).expect("below a usize")
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    /// A non-empty random part of the items, in their order.
    fn some<T: Clone>(&mut self, items: &[T]) -> Vec<T> {
        let mut chosen: Vec<T> = items.iter().filter(|_| self.chance(50)).cloned().collect();
        if chosen.is_empty() {
            chosen.push(self.pick(items).clone());
        }
        chosen
    }
}
