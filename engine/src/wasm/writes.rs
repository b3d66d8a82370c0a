//! Code that notes which memory a module writes, before each instruction that writes.
//!
//! Two globals keep the lowest address that has been written and the greatest end. So the engine sets back what a pass has
//! written, and need not look for it in the whole memory. An instruction that traps writes nothing: what is noted for it does no
//! harm.
use wasmparser::{BinaryReaderError, FunctionBody, Operator};

use super::prepare::write_u32;

/// Bytes that the widest store writes from its address on.
pub(super) const STORE_BYTES: usize = 8;

// Types of values.
const I32: u8 = 0x7f;
const I64: u8 = 0x7e;
const F32: u8 = 0x7d;
const F64: u8 = 0x7c;

// Codes of instructions.
const IF: [u8; 2] = [0x04, 0x40];
const END: u8 = 0x0b;
const LOCAL_GET: u8 = 0x20;
const LOCAL_SET: u8 = 0x21;
const GLOBAL_GET: u8 = 0x23;
const GLOBAL_SET: u8 = 0x24;
const I32_CONST: u8 = 0x41;
const I32_LT_U: u8 = 0x49;
const I32_GT_U: u8 = 0x4b;
const I32_ADD: u8 = 0x6a;

/// An instruction that writes memory. Its first operand is the address.
struct Write {
    /// Types of its operands.
    operands: &'static [u8],
    /// Number that the instruction adds to its address; `None` for an instruction whose last operand is a number of bytes.
    offset: Option<u64>,
}

impl Write {
    /// The instructions of vectors and of threads are not here: the interpreter has neither.
    fn of(operator: &Operator) -> Option<Write> {
        use Operator::*;
        let (operands, offset): (&[u8], _) = match operator {
            I32Store { memarg } | I32Store8 { memarg } | I32Store16 { memarg } => (&[I32, I32], Some(memarg.offset)),
            I64Store { memarg } | I64Store8 { memarg } | I64Store16 { memarg } | I64Store32 { memarg } => {
                (&[I32, I64], Some(memarg.offset))
            }
            F32Store { memarg } => (&[I32, F32], Some(memarg.offset)),
            F64Store { memarg } => (&[I32, F64], Some(memarg.offset)),
            MemoryFill { .. } | MemoryCopy { .. } | MemoryInit { .. } => (&[I32, I32, I32], None),
            _ => return None,
        };
        Some(Write { operands, offset })
    }
}

/// Appends a function, whose size comes first. `params`: number of its parameters. `globals`: number of globals of the module. The
/// global of the lowest address has this number, and that of the greatest end the next one.
pub(super) fn append(
    body: &FunctionBody<'_>,
    params: u32,
    globals: u32,
    out: &mut Vec<u8>,
) -> Result<(), BinaryReaderError> {
    let bytes = body.as_bytes();
    let position = |original: usize| original - body.range().start;
    let mut locals = body.get_locals_reader()?;
    let (groups, groups_from) = (locals.get_count(), position(locals.original_position()));
    let mut first = params;
    for _ in 0..groups {
        first += locals.read()?.0;
    }
    let mut kept = position(locals.original_position());
    let groups_bytes = &bytes[groups_from..kept];
    let mut noting = Noting { first, globals, types: Vec::new(), code: Vec::with_capacity(bytes.len()) };
    let mut operators = body.get_operators_reader()?;
    while !operators.eof() {
        let (operator, at) = operators.read_with_offset()?;
        if let Some(write) = Write::of(&operator) {
            noting.code.extend_from_slice(&bytes[kept..position(at)]);
            noting.note(&write);
            kept = position(at);
        }
    }
    let mut all = Vec::with_capacity(bytes.len());
    write_u32(&mut all, groups + noting.types.len() as u32);
    all.extend_from_slice(groups_bytes);
    noting.types.iter().for_each(|ty| all.extend([1, *ty]));
    all.extend(noting.code);
    all.extend_from_slice(&bytes[kept..]);
    write_u32(out, all.len() as u32);
    out.extend(all);
    Ok(())
}

/// The code of a function, up to the instruction that was last read.
struct Noting {
    /// Number of the first local variable that is added.
    first: u32,
    globals: u32,
    /// Types of the local variables that are added.
    types: Vec<u8>,
    code: Vec<u8>,
}

impl Noting {
    /// Notes what an instruction will write. Its operands are on the stack before and afterwards.
    fn note(&mut self, write: &Write) {
        let mut operands = Vec::new();
        for ty in write.operands {
            operands.push(self.local(*ty, &operands));
        }
        operands.iter().rev().for_each(|operand| self.push(LOCAL_SET, *operand));
        let (address, last) = (operands[0], operands[operands.len() - 1]);
        let lowest = match write.offset {
            Some(0) => address,
            Some(offset) => {
                self.push(LOCAL_GET, address);
                self.code.push(I32_CONST);
                write_i32(&mut self.code, offset as u32 as i32);
                self.add_to(&operands)
            }
            None => address,
        };
        let highest = match write.offset {
            Some(_) => lowest,
            None => {
                self.push(LOCAL_GET, address);
                self.push(LOCAL_GET, last);
                self.add_to(&operands)
            }
        };
        self.keep(lowest, I32_LT_U, self.globals);
        self.keep(highest, I32_GT_U, self.globals + 1);
        operands.iter().for_each(|operand| self.push(LOCAL_GET, *operand));
    }

    /// Adds the two numbers on the stack, and sets a local variable that is not one of `others` to the sum. If the sum needs more
    /// than 32 bits, the instruction traps.
    fn add_to(&mut self, others: &[u32]) -> u32 {
        let sum = self.local(I32, others);
        self.code.push(I32_ADD);
        self.push(LOCAL_SET, sum);
        sum
    }

    /// Sets a global to a local variable if the variable compares so with it.
    fn keep(&mut self, local: u32, compares: u8, global: u32) {
        self.push(LOCAL_GET, local);
        self.push(GLOBAL_GET, global);
        self.code.push(compares);
        self.code.extend(IF);
        self.push(LOCAL_GET, local);
        self.push(GLOBAL_SET, global);
        self.code.push(END);
    }

    /// A local variable of a type besides others.
    fn local(&mut self, ty: u8, others: &[u32]) -> u32 {
        let known = (self.first..).zip(&self.types).find(|(local, known)| **known == ty && !others.contains(local));
        known.map(|(local, _)| local).unwrap_or_else(|| {
            self.types.push(ty);
            self.first + self.types.len() as u32 - 1
        })
    }

    fn push(&mut self, instruction: u8, number: u32) {
        self.code.push(instruction);
        write_u32(&mut self.code, number);
    }
}

/// Globals for [`append`]: number and bytes.
pub(super) fn globals() -> (u32, Vec<u8>) {
    (2, [I32, 1, I32_CONST, 0, END].repeat(2))
}

/// Writes a number in signed LEB128.
fn write_i32(out: &mut Vec<u8>, mut number: i32) {
    while !(-0x40..0x40).contains(&number) {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8 & 0x7f);
}
