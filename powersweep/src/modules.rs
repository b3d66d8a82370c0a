//! The policy module of a spec.

use powersweep_dataset::{Error, Kind, OrKind, failure};
use powersweep_engine::wasm::Module;
use powersweep_engine::{Choice, Role, SimSpec, Value, components};
use powersweep_experiments::FileRef;
use powersweep_inputs::library::Library;

use crate::inputs;

/// Gives a spec a policy of this process by its name. It has no identity: rows with it are for this process only.
pub(crate) fn name_in_process(sim: &mut SimSpec, policy: &Module) -> Result<(), Error> {
    let component = components::find(Role::Backfill, "wasm").ok_or_else(|| failure!(Failure, "no component wasm"))?;
    let mut choice = Choice::new(component);
    choice.set("wasm_module", Value::Text(policy.name().to_owned())).or_kind(Kind::Usage)?;
    sim.choose(choice);
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
