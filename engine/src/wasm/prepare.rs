//! Modules, changed so that the engine can reset an instance and interrupt its start.
//!
//! - Mutable globals are exported under names of the engine, so that they can be set back.
//! - The start function becomes such an export, too: the interpreter would run it without a break.
//! - Code before each instruction that writes memory notes where ([`writes`]). It uses fuel.
//!
//! Otherwise code, types, memory and data stay byte for byte the same, and with them the fuel of each instruction.
use wasmparser::{BinaryReaderError, Operator, Parser, Payload, TypeRef};

use super::writes;

/// Numbers of sections.
const GLOBALS: u8 = 6;
const EXPORTS: u8 = 7;
const START: u8 = 8;
const CODE: u8 = 10;

/// Kinds of exports.
const FUNCTION: u8 = 0;
const GLOBAL: u8 = 3;

/// Name of the exported start function.
pub(super) const START_NAME: &str = "powersweep:start";

/// Names of the globals with the lowest address that has been written, and the greatest end.
pub(super) const WRITTEN_NAMES: [&str; 2] = ["powersweep:lowest", "powersweep:highest"];

/// A module, as the interpreter gets it.
pub(super) struct Prepared {
    pub(super) bytes: Vec<u8>,
    pub(super) has_start: bool,
    /// Names of its mutable globals.
    pub(super) globals: Vec<String>,
    /// Whether memory and globals are all that a pass can change: no instruction changes a table or drops a segment.
    pub(super) resets: bool,
}

impl Prepared {
    /// Changes a valid module. A module that has a name of the engine is refused by the interpreter: it has two exports of a name.
    pub(super) fn new(bytes: &[u8]) -> Result<Prepared, BinaryReaderError> {
        let mut sections = Vec::new();
        let (mut start, mut globals, mut resets) = (None, Vec::new(), true);
        // Numbers of parameters by type, types of functions, globals.
        let (mut params, mut types, mut globals_count) = (Vec::new(), Vec::new().into_iter(), 0);
        let mut code = Vec::new();
        for payload in Parser::new(0).parse_all(bytes) {
            let payload = payload?;
            match &payload {
                Payload::TypeSection(section) => {
                    for ty in section.clone().into_iter_err_on_gc_types() {
                        params.push(ty?.params().len() as u32);
                    }
                }
                Payload::ImportSection(section) => {
                    for import in section.clone() {
                        globals_count += u32::from(matches!(import?.ty, TypeRef::Global(_)));
                    }
                }
                Payload::FunctionSection(section) => {
                    types = section.clone().into_iter().collect::<Result<Vec<u32>, _>>()?.into_iter();
                }
                Payload::StartSection { func, .. } => start = Some(*func),
                Payload::GlobalSection(section) => {
                    for global in section.clone() {
                        if global?.ty.mutable {
                            globals.push(globals_count);
                        }
                        globals_count += 1;
                    }
                }
                Payload::CodeSectionStart { count, .. } => write_u32(&mut code, *count),
                Payload::CodeSectionEntry(body) => {
                    for operator in body.get_operators_reader()? {
                        resets &= !changes_more(&operator?);
                    }
                    let ty = types.next().and_then(|ty| params.get(ty as usize));
                    writes::append(body, ty.copied().unwrap_or_default(), globals_count, &mut code)?;
                }
                _ => {}
            }
            sections.extend(payload.as_section());
        }

        let name = |number: u32| format!("powersweep:global:{number}");
        let more = globals.iter().map(|number| (name(*number), GLOBAL, *number));
        let more = more.chain(start.map(|number| (START_NAME.to_owned(), FUNCTION, number)));
        let written = WRITTEN_NAMES.iter().zip(globals_count..).map(|(name, at)| ((*name).to_owned(), GLOBAL, at));
        let more = exports(&more.chain(written).collect::<Vec<_>>());
        let mut out = bytes.get(..8).unwrap_or_default().to_vec();
        let mut has_globals = false;
        for (id, range) in sections.into_iter().filter(|(id, _)| *id != START) {
            let content = &bytes[range];
            if id == EXPORTS && !has_globals {
                section(&mut out, GLOBALS, &longer(&[0], writes::globals())?);
            }
            has_globals |= id == GLOBALS;
            match id {
                GLOBALS => section(&mut out, id, &longer(content, writes::globals())?),
                EXPORTS => section(&mut out, id, &longer(content, more.clone())?),
                CODE => section(&mut out, id, &code),
                _ => section(&mut out, id, content),
            }
        }
        let globals = globals.into_iter().map(name).collect();
        Ok(Prepared { bytes: out, has_start: start.is_some(), globals, resets })
    }
}

/// Whether an instruction changes other state than memory and globals.
fn changes_more(operator: &Operator) -> bool {
    matches!(
        operator,
        Operator::TableSet { .. }
            | Operator::TableGrow { .. }
            | Operator::TableFill { .. }
            | Operator::TableCopy { .. }
            | Operator::TableInit { .. }
            | Operator::ElemDrop { .. }
            | Operator::DataDrop { .. }
    )
}

/// The content of a section with more entries: their number and bytes.
fn longer(content: &[u8], (count, entries): (u32, Vec<u8>)) -> Result<Vec<u8>, BinaryReaderError> {
    let mut reader = wasmparser::BinaryReader::new(content, 0);
    let mut out = Vec::new();
    write_u32(&mut out, reader.read_var_u32()? + count);
    out.extend_from_slice(&content[reader.original_position()..]);
    out.extend(entries);
    Ok(out)
}

/// Exports: name, kind, number.
fn exports(more: &[(String, u8, u32)]) -> (u32, Vec<u8>) {
    let mut out = Vec::new();
    for (name, kind, number) in more {
        write_u32(&mut out, name.len() as u32);
        out.extend_from_slice(name.as_bytes());
        out.push(*kind);
        write_u32(&mut out, *number);
    }
    (more.len() as u32, out)
}

fn section(out: &mut Vec<u8>, id: u8, content: &[u8]) {
    out.push(id);
    write_u32(out, content.len() as u32);
    out.extend_from_slice(content);
}

/// Writes a number in LEB128.
pub(super) fn write_u32(out: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}
