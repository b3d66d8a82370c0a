//! What makes two tasks the same task: the canonical bytes of a spec and the id derived from them.
//!
//! Rules, each of which keeps ids stable while the program grows:
//! - A choice counts as the sorted list of (name, typed value) of those of its parameters that are part of the identity.
//! - A parameter at its default is left out, so a parameter added later changes no id; defaults never change.
//! - A component is left out when it is its role's default component, at version 1, with no parameter listed, so a role added
//!   later changes no id. Default components never change.
//! - A role that has no say in the simulation is left out.
//! - The kernel's version and the version of every listed component are in, so changed results get new ids.
//! - Reals are their bits after `-0.0` became `0.0`; NaN never gets this far (`Param::check` refuses it).
//! - A log is the digest of its decompressed bytes; its name and place are not in. Labels are not in.
//! - The seed is in.
//!
//! `tests/golden/task_ids.txt` holds ids of released specs. It may grow; a changed line means lost results of users.

use powersweep_engine::{KERNEL_VERSION, SimSpec};
use uuid::Uuid;

use crate::Digest;
use crate::canonical::push_choice;

/// Namespace of task ids (UUIDv5). Never changes.
pub const NAMESPACE: Uuid = Uuid::from_u128(0x6f0d_3c5e_92a1_4b77_8e35_b1c4_70d9_a26f);

/// First bytes of every canonical spec: the version of this encoding.
const MAGIC: &[u8] = b"powersweep task 1\n";

/// Where the seed stands in the canonical bytes: behind the magic and the kernel's version.
const SEED_AT: usize = MAGIC.len() + size_of_val(&KERNEL_VERSION);

/// The canonical bytes of a spec: equal exactly when two specs are the same task.
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
        push_choice(&mut out, choice, |param| param.identity);
    }
    out
}

/// The id of a task: UUIDv5 of [`canonical`] in [`NAMESPACE`].
pub fn task_id(sim: &SimSpec, digest: Option<Digest>) -> Uuid {
    Uuid::new_v5(&NAMESPACE, &canonical(sim, digest))
}

/// The id of the task that [`canonical`] gave these bytes for, were its seed this one. The bytes then are that task's.
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
    fn defaults_and_names_of_logs_leave_no_trace() {
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
    fn another_seed_in_the_bytes_is_another_seed_in_the_spec() {
        let mut sim = with(Role::Order, "sjf", &[]);
        for digest in [None, Some(Digest::of(b"log"))] {
            sim.seed = 1;
            let mut bytes = canonical(&sim, digest);
            sim.seed = u64::MAX - 5;
            assert_eq!(task_id_with_seed(&mut bytes, sim.seed), task_id(&sim, digest));
            assert_eq!(bytes, canonical(&sim, digest));
        }
    }

    #[test]
    fn negative_zero_is_zero() {
        let a = with(Role::Platform, "homogeneous", &[("beta", Value::Real(0.0))]);
        let b = with(Role::Platform, "homogeneous", &[("beta", Value::Real(-0.0))]);
        assert_eq!(task_id(&a, None), task_id(&b, None));
    }
}
