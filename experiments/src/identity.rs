//! Identity of tasks: the canonical bytes of a spec, and the task id derived from them.
//!
//! Rules, each of which keeps ids stable while the program grows:
//! - A choice is encoded as the sorted list of (name, typed value) of the parameters that belong to the identity.
//! - A renamed parameter keeps its first name (`powersweep_engine::components::identity_name`).
//! - A parameter at its default is left out, so that a parameter added later changes no id. Defaults never change.
//! - The default component of a role, at version 1 and without listed parameters, is left out, so that a role added
//!   later changes no id. Default components never change.
//! - A role that does not apply to the simulation is left out.
//! - The version of the kernel and of every listed component is included, so that changed results get new ids.
//! - Reals are encoded as their bits, with one zero ([`crate::canonical`]).
//! - A policy module is encoded as the digest of its bytes, after all else.
//! - A log is encoded as the digest of its decompressed bytes. Its name and place are left out, and so are labels.
//! - The seed is included.
//!
//! `tests/golden/task_ids.txt` holds ids of released specs. It may grow. A changed line would mean that users lose
//! results.

use powersweep_engine::{KERNEL_VERSION, SimSpec};
use uuid::Uuid;

use crate::Digest;
use crate::canonical::{push_choice, push_text};

/// Namespace of task ids (UUIDv5). Never changes.
pub const NAMESPACE: Uuid = Uuid::from_u128(0x6f0d_3c5e_92a1_4b77_8e35_b1c4_70d9_a26f);

/// First bytes of every canonical spec: the version of this encoding.
const MAGIC: &[u8] = b"powersweep task 1\n";

/// Offset of the seed in the canonical bytes: after the magic bytes and the kernel's version.
const SEED_AT: usize = MAGIC.len() + size_of_val(&KERNEL_VERSION);

/// The canonical bytes of a spec. Two specs are the same task exactly when their bytes are equal.
pub fn canonical(sim: &SimSpec, digest: Option<Digest>) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&KERNEL_VERSION.to_le_bytes());
    debug_assert_eq!(out.len(), SEED_AT);
    out.extend_from_slice(&sim.seed.to_le_bytes());
    match digest {
        None => out.push(0),
        Some(digest) => {
            out.push(1);
            out.extend_from_slice(digest.as_bytes());
        }
    }
    for choice in sim.choices().filter(|choice| sim.applies(choice.component().role)) {
        push_choice(&mut out, choice, |param| param.is_identity());
    }
    for (param, label) in sim.signal_labels() {
        push_text(&mut out, param);
        out.extend_from_slice(&sim.signal_id(label).unwrap_or_default());
    }
    if let Some(id) = sim.module_id() {
        out.extend_from_slice(&id);
    }
    out
}

/// The id of a task: UUIDv5 of [`canonical`] in [`NAMESPACE`].
pub fn task_id(sim: &SimSpec, digest: Option<Digest>) -> Uuid {
    Uuid::new_v5(&NAMESPACE, &canonical(sim, digest))
}

/// Replaces the seed in bytes from [`canonical`], and returns the id of the task with this seed.
pub(crate) fn task_id_with_seed(canonical: &mut [u8], seed: u64) -> Uuid {
    let seed = seed.to_le_bytes();
    canonical[SEED_AT..SEED_AT + seed.len()].copy_from_slice(&seed);
    Uuid::new_v5(&NAMESPACE, canonical)
}

#[cfg(test)]
mod tests {
    use powersweep_engine::components;
    use powersweep_engine::spec::Role;
    use powersweep_engine::{Choice, Value};

    use super::*;

    fn with(role: Role, name: &str, params: &[(&str, Value)]) -> SimSpec {
        let mut choice = Choice::new(components::find(role, name).expect("registered"));
        params.iter().for_each(|(name, value)| choice.set(name, value.clone()).expect("in range"));
        let mut sim = SimSpec::new();
        sim.choose(choice);
        sim
    }

    #[test]
    fn defaults_and_names_of_logs_do_not_change_an_id() {
        let spec = SimSpec::new();
        let same = with(Role::Platform, "homogeneous", &[("size_factor", Value::Int(1))]);
        assert_eq!(canonical(&spec, None), canonical(&same, None));
        let a = with(Role::Source, "swf", &[("log", Value::Text("a".to_owned()))]);
        let b = with(Role::Source, "swf", &[("log", Value::Text("b".to_owned()))]);
        let digest = Digest::of(b"log");
        assert_eq!(task_id(&a, Some(digest)), task_id(&b, Some(digest)));
        assert_ne!(task_id(&a, Some(digest)), task_id(&a, Some(Digest::of(b"other"))));
    }

    #[test]
    fn values_seed_and_component_tell_tasks_apart() {
        let mut seed = SimSpec::new();
        seed.seed = 2;
        let specs = [
            SimSpec::new(),
            seed,
            with(Role::Platform, "homogeneous", &[("size_factor", Value::Real(1.1))]),
            with(Role::Platform, "homogeneous", &[("procs", Value::Int(1))]),
            with(Role::Order, "sjf", &[]),
            with(Role::Backfill, "none", &[]),
        ];
        let ids: std::collections::BTreeSet<Uuid> = specs.iter().map(|s| task_id(s, None)).collect();
        assert_eq!(ids.len(), specs.len());
    }

    #[test]
    fn replacing_the_seed_in_the_bytes_equals_encoding_another_seed() {
        let mut sim = with(Role::Order, "sjf", &[]);
        for digest in [None, Some(Digest::of(b"log"))] {
            sim.seed = 1;
            let mut bytes = canonical(&sim, digest);
            sim.seed = u64::MAX - 5;
            assert_eq!(task_id_with_seed(&mut bytes, sim.seed), task_id(&sim, digest));
            assert_eq!(bytes, canonical(&sim, digest));
        }
    }

    /// The id is of an earlier release: the text of a formula never changes.
    #[test]
    fn a_formula_has_one_id_in_all_spellings() {
        let id = |formula: &str| {
            task_id(&with(Role::Order, "formula", &[("formula", Value::Text(formula.to_owned()))]), None)
        };
        let released = id("if(wait_s > 1e7, -1, log10(max(estimate_s, 1)) * procs ^ 2)");
        assert_eq!(released.to_string(), "010ba2af-f786-5915-9409-d9325dbbbd69");
        assert_eq!(id("if( wait_s>10000000.0,-(1),(log10(max(estimate_s,1)))*pow(procs,2))"), released);
        assert_ne!(id("if(wait_s > 1e7, -1, procs ^ 2 * log10(max(estimate_s, 1)))"), released);
    }

    #[test]
    fn negative_zero_has_the_id_of_zero() {
        let a = with(Role::Platform, "homogeneous", &[("beta", Value::Real(0.0))]);
        let b = with(Role::Platform, "homogeneous", &[("beta", Value::Real(-0.0))]);
        assert_eq!(task_id(&a, None), task_id(&b, None));
    }
}
