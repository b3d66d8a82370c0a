//! Modules, changed so that the engine can reset an instance and interrupt its start.
//!
//! - Mutable globals are exported under names of the engine, so that they can be set back.
//! - The start function becomes such an export, too: the interpreter would run it without a break.
//!
//! Code, types, memory and data stay byte for byte the same, and with them the fuel of each instruction.
use wasmparser::{BinaryReaderError, Operator, Parser, Payload};

/// Number of the section with exports, and of the one with the start function.
const EXPORTS: u8 = 7;
const START: u8 = 8;

/// Kinds of exports.
const FUNCTION: u8 = 0;
const GLOBAL: u8 = 3;

/// Name of the exported start function. A module that has it already is refused as one with two exports of a name.
pub(super) const START_NAME: &str = "powersweep:start";

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
    /// Changes a module. The interpreter validates the result: what is wrong with the module is wrong with it, too.
    pub(super) fn new(bytes: &[u8]) -> Result<Prepared, BinaryReaderError> {
        let mut sections = Vec::new();
        let (mut start, mut globals, mut resets) = (None, Vec::new(), true);
        for payload in Parser::new(0).parse_all(bytes) {
            let payload = payload?;
            match &payload {
                Payload::StartSection { func, .. } => start = Some(*func),
                Payload::GlobalSection(section) => {
                    for (number, global) in (0..).zip(section.clone()) {
                        if global?.ty.mutable {
                            globals.push(number);
                        }
                    }
                }
                Payload::CodeSectionEntry(body) => {
                    for operator in body.get_operators_reader()? {
                        resets &= !changes_more(&operator?);
                    }
                }
                _ => {}
            }
            sections.extend(payload.as_section());
        }

        let name = |number: u32| format!("powersweep:global:{number}");
        let more = globals.iter().map(|number| (name(*number), GLOBAL, *number));
        let more: Vec<_> = more.chain(start.map(|number| (START_NAME.to_owned(), FUNCTION, number))).collect();
        let mut out = bytes.get(..8).unwrap_or_default().to_vec();
        for (id, range) in sections.into_iter().filter(|(id, _)| *id != START) {
            let content = &bytes[range];
            match id {
                EXPORTS => section(&mut out, id, &exports(content, &more)?),
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

/// The content of a section of exports with more of them: name, kind, number.
fn exports(content: &[u8], more: &[(String, u8, u32)]) -> Result<Vec<u8>, BinaryReaderError> {
    let mut reader = wasmparser::BinaryReader::new(content, 0);
    let count = reader.read_var_u32()?;
    let mut out = Vec::new();
    write_u32(&mut out, count.saturating_add(more.len() as u32));
    out.extend_from_slice(&content[reader.original_position()..]);
    for (name, kind, number) in more {
        write_u32(&mut out, name.len() as u32);
        out.extend_from_slice(name.as_bytes());
        out.push(*kind);
        write_u32(&mut out, *number);
    }
    Ok(out)
}

fn section(out: &mut Vec<u8>, id: u8, content: &[u8]) {
    out.push(id);
    write_u32(out, content.len() as u32);
    out.extend_from_slice(content);
}

/// Writes a number in LEB128.
fn write_u32(out: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}
