//! The policy module of a spec.

use powersweep_dataset::Error;
use powersweep_engine::wasm::Module;
use powersweep_engine::{Role, SimSpec, Value};
use powersweep_experiments::FileRef;
use powersweep_inputs::library::Library;

use crate::conformance::set;
use crate::inputs;

/// Gives a spec a policy of this process by its name. It has no identity: rows with it are for this process only.
pub(crate) fn name_in_process(sim: &mut SimSpec, policy: &Module) -> Result<(), Error> {
    set(sim, Role::Backfill, "wasm", &[("wasm_module", Value::Text(policy.name().to_owned()))])?;
    sim.name_module([0; 32]);
    Ok(())
}

/// Gives a spec the digest of the module that its policy names, if it names one.
pub(crate) fn name(sim: &mut SimSpec, library: &Library) -> Result<(), Error> {
    if let Some(name) = sim.module_name() {
        let file = inputs::file(library, &FileRef::plain(name, None))?;
        sim.name_module(*file.digest.as_bytes());
    }
    Ok(())
}
