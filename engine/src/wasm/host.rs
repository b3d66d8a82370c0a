//! The interpreter of modules.
use wasmi::{
    CompilationMode, Config, EnforcedLimits, Engine, Error, ExternType, FuncType, Instance, Store, StoreLimits,
    StoreLimitsBuilder, TrapCode, ValType,
};

use super::{ANSWER_BYTES, Fault, INPUT, MEMORY_BYTES_MAX, Pass, SCHEDULE};

/// Greatest number of elements of a module's tables.
const TABLE_ELEMENTS_MAX: usize = 10_000;

/// Greatest number of pages of a memory, 64 KiB each.
const PAGES_MAX: u64 = (MEMORY_BYTES_MAX >> 16) as u64;

/// A compiled module.
pub(super) struct Program {
    engine: Engine,
    module: wasmi::Module,
}

/// The settings of the interpreter: what a module may contain, and that fuel is counted.
fn config() -> Config {
    let mut config = Config::default();
    config.consume_fuel(true);
    // The whole module is compiled before it runs. A function that is compiled at its first call would use fuel for it, in
    // the run of one slot and not of another.
    config.compilation_mode(CompilationMode::Eager);
    config.enforced_limits(EnforcedLimits::strict());
    config
}

impl Program {
    /// Checks and compiles a module; the error is a sentence without its subject.
    pub(super) fn new(bytes: &[u8]) -> Result<Program, String> {
        let engine = Engine::new(&config());
        let module = wasmi::Module::new(&engine, bytes).map_err(|error| format!("cannot be read: {error}"))?;
        if let Some(import) = module.imports().next() {
            return Err(format!(
                "imports `{}` from `{}`: a policy module imports nothing, because it has no files, clock or network (build \
                 it for wasm32-unknown-unknown, without a C or Rust library that calls a system)",
                import.name(),
                import.module()
            ));
        }
        let function = FuncType::new([ValType::I32], [ValType::I32]);
        for name in [INPUT, SCHEDULE] {
            match module.get_export(name) {
                Some(ExternType::Func(found)) if found == function => {}
                Some(ExternType::Func(_)) => {
                    return Err(format!("exports `{name}` with another type than (i32) -> i32"));
                }
                _ => return Err(format!("exports no function `{name}`: it is no policy module of version 1")),
            }
        }
        match module.get_export("memory") {
            Some(ExternType::Memory(memory)) if memory.minimum() > PAGES_MAX => Err(too_large()),
            Some(ExternType::Memory(_)) => Ok(Program { engine, module }),
            _ => Err("exports no memory under the name `memory`".to_owned()),
        }
    }

    /// Runs one pass in a new instance: positions as the module wrote them, and the fuel used.
    pub(super) fn schedule(&self, pass: &Pass, fuel: u64) -> Result<(Vec<u32>, u64), Fault> {
        let limits = StoreLimitsBuilder::new()
            .memory_size(MEMORY_BYTES_MAX)
            .table_elements(TABLE_ELEMENTS_MAX)
            .trap_on_grow_failure(true)
            .build();
        let mut store: Store<StoreLimits> = Store::new(&self.engine, limits);
        store.limiter(|limits| limits);
        store.set_fuel(fuel).map_err(fault)?;
        let instance = Instance::new(&mut store, &self.module, &[]).map_err(fault)?;
        let missing = || Fault::Wrong("has lost an export".to_owned());
        let memory = instance.get_memory(&store, "memory").ok_or_else(missing)?;
        let input = instance.get_typed_func::<u32, u32>(&store, INPUT).map_err(fault)?;
        let schedule = instance.get_typed_func::<u32, u32>(&store, SCHEDULE).map_err(fault)?;

        let bytes = pass.encode();
        if bytes.len() > MEMORY_BYTES_MAX {
            return Err(Fault::Wrong(format!(
                "cannot get the {} waiting jobs: they need more than its {} MiB of memory",
                pass.waiting.len(),
                MEMORY_BYTES_MAX >> 20
            )));
        }
        let address = input.call(&mut store, bytes.len() as u32).map_err(fault)?;
        memory.write(&mut store, address as usize, &bytes).map_err(|_| {
            Fault::Wrong(format!(
                "gave an address for its input, {address}, behind which its memory has no room for {} bytes",
                bytes.len()
            ))
        })?;
        let count = schedule.call(&mut store, address).map_err(fault)? as usize;
        if count > pass.waiting.len() {
            return Err(Fault::Wrong(format!("starts {count} jobs, and {} wait", pass.waiting.len())));
        }
        let from = address as usize + pass.answer_offset();
        let answer = memory.data(&store).get(from..from + ANSWER_BYTES * count).ok_or_else(missing)?;
        let (numbers, _) = answer.as_chunks::<ANSWER_BYTES>();
        let starts = numbers.iter().map(|number| u32::from_le_bytes(*number)).collect();
        let left = store.get_fuel().map_err(fault)?;
        Ok((starts, fuel.saturating_sub(left)))
    }
}

fn too_large() -> String {
    format!("needs more than {} MiB of memory", MEMORY_BYTES_MAX >> 20)
}

/// What an error of the interpreter says about the module.
fn fault(error: Error) -> Fault {
    match error.as_trap_code() {
        Some(TrapCode::OutOfFuel) => Fault::OutOfFuel,
        Some(TrapCode::GrowthOperationLimited) => Fault::Wrong(too_large()),
        Some(TrapCode::UnreachableCodeReached) => {
            Fault::Wrong("ended at an `unreachable` instruction, as a panic or an abort does".to_owned())
        }
        Some(code) => Fault::Wrong(format!("trapped: {code}")),
        None => Fault::Wrong(format!("cannot be run: {error}")),
    }
}
