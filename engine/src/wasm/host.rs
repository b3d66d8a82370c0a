//! The interpreter of modules.
use std::ops::Range;

use wasmi::errors::{MemoryError, TableError};
use wasmi::{
    CompilationMode, Config, EnforcedLimits, Engine, Error, ExternType, FuncType, Global, Memory, ResourceLimiter,
    Store, TrapCode, TypedFunc, TypedResumableCall, Val, ValType, WasmParams, WasmResults,
};
use wasmi_core::LimiterError;

use super::input::ANSWER_BYTES;
use super::prepare::{Prepared, START_NAME, WRITTEN_NAMES};
use super::writes::STORE_BYTES;
use super::{Budget, Fault, INPUT, MEMORY_BYTES_MAX, Pass, SCHEDULE};

/// Greatest number of elements of a module's tables.
const TABLE_ELEMENTS_MAX: usize = 10_000;

/// Memory of an element of a table (bytes).
const ELEMENT_BYTES: usize = 8;

/// Greatest number of pages of a memory, 64 KiB each.
const PAGES_MAX: u64 = (MEMORY_BYTES_MAX >> 16) as u64;

/// Fuel between two looks at the deadline: some 20 microseconds. A call of a function with 20,000 local variables uses two
/// units and takes as long as thousands of other instructions: a slice of such calls takes a fifth of a second at most.
const SLICE: u64 = 4096;

/// Bytes that are copied for a unit of fuel: the interpreter's own price of `memory.copy`.
const BYTES_PER_FUEL: u64 = 64;

/// Unit in which the memory after the start is looked through.
const BLOCK_BYTES: usize = 4096;

/// A compiled module.
pub(super) struct Program {
    engine: Engine,
    module: wasmi::Module,
    has_start: bool,
    globals: Vec<String>,
    resets: bool,
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
        if !bytes.starts_with(b"\0asm") {
            return Err("cannot be read: it is no WebAssembly binary, which begins with the bytes \\0asm (`wat2wasm` makes one of \
                        the text format)"
                .to_owned());
        }
        let unreadable = |error: &dyn std::fmt::Display| format!("cannot be read: {error}");
        let engine = Engine::new(&config());
        // Before the engine adds globals and local variables: a module must not use them.
        wasmi::Module::validate(&engine, bytes).map_err(|error| unreadable(&error))?;
        let prepared = Prepared::new(bytes).map_err(|error| unreadable(&error))?;
        let module = wasmi::Module::new(&engine, &prepared.bytes).map_err(|error| unreadable(&error))?;
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
            Some(ExternType::Memory(_)) => {
                let Prepared { has_start, globals, resets, .. } = prepared;
                Ok(Program { engine, module, has_start, globals, resets })
            }
            _ => Err("exports no memory under the name `memory`".to_owned()),
        }
    }

    /// Runs one pass: positions as the module wrote them, and the fuel used. `instance`: that of the last pass, if it can be
    /// reset; this one's afterwards.
    pub(super) fn schedule(
        &self,
        instance: &mut Option<Instance>,
        pass: &Pass,
        budget: &Budget<'_>,
    ) -> Result<(Vec<u32>, u64), Fault> {
        let done = self.run(instance, pass, budget);
        let is_used_again =
            |last: &Instance| done.is_ok() && self.resets && last.memory.data_size(&last.store) == last.image.bytes;
        instance.take_if(|last| !is_used_again(last));
        done
    }

    fn run(&self, instance: &mut Option<Instance>, pass: &Pass, budget: &Budget<'_>) -> Result<(Vec<u32>, u64), Fault> {
        let running = match instance {
            Some(last) => {
                last.reset(budget)?;
                last
            }
            None => instance.insert(Instance::new(self, budget)?),
        };
        let starts = running.pass(pass, budget)?;
        Ok((starts, budget.fuel.saturating_sub(running.fuel_left()?)))
    }
}

/// An instance of a module, after its start.
pub(super) struct Instance {
    store: Store<Limiter>,
    memory: Memory,
    input: TypedFunc<u32, u32>,
    schedule: TypedFunc<u32, u32>,
    /// Mutable globals, with their values after the start.
    globals: Vec<(Global, Val)>,
    /// The lowest address that has been written since the start or the reset, and the greatest end.
    written: [Global; 2],
    /// Where the last input is.
    input_bytes: Range<usize>,
    /// The memory after the start.
    image: Image,
    /// Fuel of the budget that the store has not got yet.
    fuel_kept: u64,
    /// Fuel that a new instance uses until the end of its start.
    fuel_of_start: u64,
}

impl Instance {
    fn new(program: &Program, budget: &Budget<'_>) -> Result<Instance, Fault> {
        let mut store = Store::new(&program.engine, Limiter::default());
        store.limiter(|limits| limits);
        let made = wasmi::Instance::new(&mut store, &program.module, &[]).map_err(fault)?;
        let missing = || Fault::Wrong("has lost an export".to_owned());
        let global = |name: &str| made.get_global(&store, name).ok_or_else(missing);
        let mut instance = Instance {
            memory: made.get_memory(&store, "memory").ok_or_else(missing)?,
            input: made.get_typed_func(&store, INPUT).map_err(fault)?,
            schedule: made.get_typed_func(&store, SCHEDULE).map_err(fault)?,
            globals: Vec::new(),
            written: [global(WRITTEN_NAMES[0])?, global(WRITTEN_NAMES[1])?],
            input_bytes: 0..0,
            image: Image::default(),
            fuel_kept: budget.fuel,
            fuel_of_start: 0,
            store,
        };
        instance.pay(instance.store.data().bytes as u64 / BYTES_PER_FUEL)?;
        if program.has_start {
            let start = made.get_typed_func::<(), ()>(&instance.store, START_NAME).map_err(fault)?;
            instance.call(start, (), budget)?;
        }
        instance.fuel_of_start = budget.fuel.saturating_sub(instance.fuel_left()?);
        if program.resets {
            let globals = program.globals.iter().filter_map(|name| made.get_global(&instance.store, name));
            instance.globals = globals.map(|global| (global, global.get(&instance.store))).collect();
            instance.image = Image::of(instance.memory.data(&instance.store));
        }
        instance.set_written([u32::MAX, 0])?;
        Ok(instance)
    }

    fn set_written(&mut self, addresses: [u32; 2]) -> Result<(), Fault> {
        for (global, address) in self.written.iter().zip(addresses) {
            set(*global, &mut self.store, Val::I32(address as i32))?;
        }
        Ok(())
    }

    /// The part of the memory that has been written since the start or the reset.
    fn written_bytes(&self) -> Range<usize> {
        let [lowest, highest] = self.written.map(|global| global.get(&self.store).i32().unwrap_or_default() as u32);
        lowest as usize..highest as usize + STORE_BYTES
    }

    /// The state after the start, for the fuel of a new instance: what a pass uses does not depend on earlier passes.
    fn reset(&mut self, budget: &Budget<'_>) -> Result<(), Fault> {
        self.store.set_fuel(0).map_err(fault)?;
        self.fuel_kept = budget.fuel;
        self.pay(self.fuel_of_start)?;
        for (global, value) in &self.globals {
            set(*global, &mut self.store, value.clone())?;
        }
        let written = self.written_bytes();
        let memory = self.memory.data_mut(&mut self.store);
        self.image.restore(memory, written);
        self.image.restore(memory, self.input_bytes.clone());
        self.set_written([u32::MAX, 0])
    }

    /// One pass.
    fn pass(&mut self, pass: &Pass, budget: &Budget<'_>) -> Result<Vec<u32>, Fault> {
        let size = pass.size();
        if size > MEMORY_BYTES_MAX {
            return Err(Fault::Wrong(format!(
                "cannot get the {} waiting jobs: they need more than its {} MiB of memory",
                pass.waiting.len(),
                MEMORY_BYTES_MAX >> 20
            )));
        }
        let address = self.call(self.input, size as u32, budget)?;
        self.input_bytes = address as usize..address as usize + size;
        let memory = self.memory.data_mut(&mut self.store);
        let input = memory.get_mut(self.input_bytes.clone()).ok_or_else(|| {
            Fault::Wrong(format!(
                "gave an address for its input, {address}, behind which its memory has no room for {size} bytes",
            ))
        })?;
        pass.write(input);
        let count = self.call(self.schedule, address, budget)? as usize;
        if count > pass.waiting.len() {
            return Err(Fault::Wrong(format!("starts {count} jobs, and {} wait", pass.waiting.len())));
        }
        let from = address as usize + pass.answer_offset();
        let answer = self.memory.data(&self.store).get(from..from + ANSWER_BYTES * count);
        let (numbers, _) =
            answer.ok_or_else(|| Fault::Wrong("has lost its answer".to_owned()))?.as_chunks::<ANSWER_BYTES>();
        Ok(numbers.iter().map(|number| u32::from_le_bytes(*number)).collect())
    }

    /// Calls a function slice by slice. It uses the fuel of a call without a break: an instruction for which the fuel of a
    /// slice is too little has no effect, and is repeated in the next slice.
    fn call<P: WasmParams, T: WasmResults>(
        &mut self,
        function: TypedFunc<P, T>,
        params: P,
        budget: &Budget<'_>,
    ) -> Result<T, Fault> {
        self.grant(0)?;
        let mut state = function.call_resumable(&mut self.store, params).map_err(fault)?;
        loop {
            let paused = match state {
                TypedResumableCall::Finished(result) => return Ok(result),
                TypedResumableCall::OutOfFuel(paused) => paused,
                TypedResumableCall::HostTrap(_) => {
                    return Err(Fault::Wrong("called a function of the host".to_owned()));
                }
            };
            if (budget.deadline_passed)() {
                return Err(Fault::Deadline);
            }
            self.grant(paused.required_fuel())?;
            state = paused.resume(&mut self.store).map_err(fault)?;
        }
    }

    /// Gives the store the fuel of a slice, and at least what the next instruction requires.
    fn grant(&mut self, required: u64) -> Result<(), Fault> {
        let unused = self.store.get_fuel().map_err(fault)?;
        let more = required.max(SLICE).saturating_sub(unused).min(self.fuel_kept);
        if unused + more < required {
            return Err(Fault::OutOfFuel);
        }
        self.fuel_kept -= more;
        self.store.set_fuel(unused + more).map_err(fault)
    }

    /// Takes fuel that no instruction uses.
    fn pay(&mut self, fuel: u64) -> Result<(), Fault> {
        self.fuel_kept = self.fuel_kept.checked_sub(fuel).ok_or(Fault::OutOfFuel)?;
        Ok(())
    }

    fn fuel_left(&self) -> Result<u64, Fault> {
        Ok(self.fuel_kept + self.store.get_fuel().map_err(fault)?)
    }
}

/// A memory, in blocks from the first to the last that is not zero.
#[derive(Default)]
struct Image {
    /// Size of the memory.
    bytes: usize,
    /// Number of the first block that is kept.
    first: usize,
    kept: Vec<u8>,
}

impl Image {
    fn of(memory: &[u8]) -> Image {
        let is_used = |block: &[u8]| *block != ZEROS[..block.len()];
        let first = memory.chunks(BLOCK_BYTES).position(is_used).unwrap_or_default();
        let end = memory.chunks(BLOCK_BYTES).rposition(is_used).map_or(first, |last| last + 1);
        Image { bytes: memory.len(), first, kept: memory[first * BLOCK_BYTES..end * BLOCK_BYTES].to_vec() }
    }

    /// Sets a part of a memory of this size back.
    fn restore(&self, memory: &mut [u8], part: Range<usize>) {
        let part = part.start..part.end.min(memory.len());
        let kept_from = self.first * BLOCK_BYTES;
        let kept = part.start.max(kept_from)..part.end.min(kept_from + self.kept.len());
        if let Some(part) = memory.get_mut(part) {
            part.fill(0);
        }
        if let Some(part) = memory.get_mut(kept.clone()) {
            part.copy_from_slice(&self.kept[kept.start - kept_from..kept.end - kept_from]);
        }
    }
}

/// A block without data.
static ZEROS: [u8; BLOCK_BYTES] = [0; BLOCK_BYTES];

/// The limits of an instance, and what it takes.
#[derive(Debug, Default)]
struct Limiter {
    /// Memory and tables (bytes).
    bytes: usize,
}

impl Limiter {
    /// A module whose memory does not grow would behave oddly: it ends instead.
    fn grow(&mut self, current: usize, desired: usize, most: usize, each_bytes: usize) -> Result<bool, LimiterError> {
        if desired > most {
            return Err(LimiterError::ResourceLimiterDeniedAllocation);
        }
        self.bytes += (desired - current) * each_bytes;
        Ok(true)
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> Result<bool, LimiterError> {
        self.grow(current, desired, MEMORY_BYTES_MAX, 1)
    }

    fn table_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> Result<bool, LimiterError> {
        self.grow(current, desired, TABLE_ELEMENTS_MAX, ELEMENT_BYTES)
    }

    fn memory_grow_failed(&mut self, error: &MemoryError) -> Result<(), LimiterError> {
        match error {
            // The instruction is repeated with the fuel of the next slice.
            MemoryError::OutOfFuel { .. } => Ok(()),
            _ => Err(LimiterError::ResourceLimiterDeniedAllocation),
        }
    }

    fn table_grow_failed(&mut self, error: &TableError) -> Result<(), LimiterError> {
        match error {
            TableError::OutOfFuel { .. } => Ok(()),
            _ => Err(LimiterError::ResourceLimiterDeniedAllocation),
        }
    }

    fn instances(&self) -> usize {
        1
    }

    fn tables(&self) -> usize {
        usize::MAX
    }

    fn memories(&self) -> usize {
        1
    }
}

fn set(global: Global, store: &mut Store<Limiter>, value: Val) -> Result<(), Fault> {
    global.set(store, value).map_err(|error| Fault::Wrong(format!("cannot be reset: {error}")))
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
