//! The policy modules of a manifest on the command line.

use powersweep_engine::wasm::Module;
use powersweep_engine::{Choice, Role, SimSpec, Value, components};
use powersweep_experiments::{FileRef, Manifest};
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

/// Gives a spec a policy of this process by its name. It has no identity: rows with it are for this process only.
pub fn name_in_process(sim: &mut SimSpec, policy: &Module) -> Result<(), Failure> {
    let component = components::find(Role::Backfill, "wasm").ok_or_else(|| failure!(Failure, "no component wasm"))?;
    let mut choice = Choice::new(component);
    choice.set("wasm_module", Value::Text(policy.name().to_owned())).or_kind(Kind::Usage)?;
    sim.choose(choice);
    sim.name_module([0; 32]);
    Ok(())
}

/// Gives a spec the digest of the module that its policy names, if it names one.
pub fn name(sim: &mut SimSpec, library: &Library) -> Result<(), Failure> {
    if let Some(name) = sim.module_name() {
        let file = inputs::file(library, &FileRef::plain(name, None))?;
        sim.name_module(*file.digest.as_bytes());
    }
    Ok(())
}
