//! The policy modules of a manifest on the command line.

use std::sync::Arc;

use powersweep_engine::wasm::Module;
use powersweep_engine::{Choice, Role, SimSpec, Value, components};
use powersweep_experiments::{Digest, FileRef, Manifest};
use powersweep_inputs::library::{Library, LogBytes};

use crate::exit::{Failure, Kind, OrKind, failure};
use crate::inputs;

/// Compiles a file that a manifest names as a policy module, so that a file that is none is refused before an experiment
/// begins. `name`: the file as the manifest names it.
pub fn check(manifest: &Manifest, name: &str, bytes: &LogBytes) -> Result<(), Failure> {
    if manifest.modules().contains(name) {
        Module::new(name, &bytes.bytes).or_kind(Kind::Usage)?;
    }
    Ok(())
}

/// Gives a spec a policy of this process. It has no identity: rows with it are for this process only.
pub fn place_in_process(sim: &mut SimSpec, policy: &Arc<Module>) -> Result<(), Failure> {
    let component = components::find(Role::Backfill, "wasm").ok_or_else(|| failure!(Failure, "no component wasm"))?;
    let mut choice = Choice::new(component);
    choice.set("wasm_module", Value::Text(policy.name().to_owned())).or_kind(Kind::Usage)?;
    sim.choose(choice);
    sim.place_module(Arc::clone(policy));
    Ok(())
}

/// Gives a spec the module that its policy names, if it names one.
pub fn place(sim: &mut SimSpec, library: &Library) -> Result<(), Failure> {
    let Some(name) = sim.module_name().map(str::to_owned) else { return Ok(()) };
    let file = inputs::file(library, &FileRef::plain(&name, None))?;
    let module = Module::new(&name, &file.bytes).or_kind(Kind::Usage)?;
    sim.name_module(*Digest::of(&file.bytes).as_bytes());
    sim.place_module(Arc::new(module));
    Ok(())
}
