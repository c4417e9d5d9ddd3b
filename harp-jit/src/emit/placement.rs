//! Placement of functions next to each other: the final form of calls and addresses, and the encoding.
//!
//! A call reaches as far as its immediate. A function in the same group and within reach is called by one
//! instruction. If the immediate is too short, or the distance to the function is not known yet, its address
//! is read from a word among the instructions:
//!
//! ```text
//!     jali %r3, #4        %r3: the address of the next word, which is skipped
//!     .word f
//!     ld %r3, %r3, #0
//!     jalr %ra, %r3
//! ```
//!
//! If every register that a call may change carries an argument, another register is saved in the frame
//! during the call. Only machines with 4-byte words in the word encoding have immediates that can be too
//! short: in the byte encoding they are whole words, and on 8-byte words they are longer than any image.

use std::borrow::Cow;

use cranelift_codegen::ir::{SourceLoc, TrapCode};
use harp_isa::abi::RegisterRoles;
use harp_isa::object::{Reference, placeholder};
use harp_isa::{ArchId, Gpr, Instruction, Layout, Op, Opcode};
use hashbrown::HashMap;

use super::EmitError;
use super::body::{Body, Item};
use crate::abi::reaches_everything;
use crate::profile::BranchSite;
use crate::vcode::{FarCall, Symbol};
use harp_check::{Note, Role};

/// A jump that does not reach its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CodeTooLarge {
    /// The distance in bytes.
    pub(crate) given: u64,
    /// The largest distance in bytes.
    pub(crate) limit: u64,
}

/// The largest number of iterations over calls, which grow as code between them and their callees grows.
const ROUNDS: u32 = 5;

/// A function to be placed: its code and the names that it refers to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unplaced<'a> {
    pub(crate) name: &'a str,
    pub(crate) body: &'a Body,
    pub(crate) symbols: &'a [String],
    /// Whether it is likely to be placed again, next to other functions.
    pub(crate) is_shared: bool,
}

/// Machine code of one function. Offsets count from its first byte.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) bytes: Vec<u8>,
    /// The offsets of words among the instructions that hold addresses, ascending.
    pub(crate) literals: Vec<u32>,
    /// The references that the linker fills in.
    pub(crate) references: Vec<Reference>,
    /// The offsets at which the source location changes, ascending.
    pub(crate) places: Vec<(u32, SourceLoc)>,
    /// The codes of `trap` instructions by offset, ascending.
    pub(crate) traps: Vec<(u32, TrapCode)>,
    pub(crate) branches: Vec<(u32, BranchSite)>,
    /// The offset at which each block begins, ascending, with the number of the block.
    pub(crate) blocks: Vec<(u32, u32)>,
    /// Notes for the checker by offset, ascending, if they are kept.
    pub(crate) notes: Vec<(u32, Note)>,
}

/// Encodes functions that will lie next to each other in this order.
///
/// # Errors
///
/// If a function is so large that no chain of jumps leads through it, or an instruction cannot be encoded.
pub(crate) fn place(functions: &[Unplaced<'_>], arch: ArchId) -> Result<Vec<Placed>, EmitError> {
    let forms = Forms { arch, layout: Layout::new(arch) };
    let bodies: Vec<Cow<'_, Body>> =
        functions.iter().map(|function| forms.with_islands(function)).collect();
    let near = near_calls(functions, &bodies, forms);
    let placed = bodies.iter().zip(functions).zip(&near);
    placed.map(|((body, function), near)| forms.code(function, body, near)).collect()
}

/// For each item of each function, whether it has its short form.
fn near_calls(
    functions: &[Unplaced<'_>],
    bodies: &[Cow<'_, Body>],
    forms: Forms,
) -> Vec<Vec<bool>> {
    let known: HashMap<&str, usize> =
        functions.iter().enumerate().map(|(index, function)| (function.name, index)).collect();
    let callee = |function: usize, item: &Item| match *item {
        Item::Call { symbol, .. } | Item::TailJump { symbol, .. } => {
            known.get(functions[function].symbols[symbol.index()].as_str()).copied()
        }
        _ => None,
    };
    let everything = reaches_everything(forms.arch);
    let mut near: Vec<Vec<bool>> = (bodies.iter().enumerate())
        .map(|(function, body)| {
            let is_near = |item: &Item| everything || callee(function, item).is_some();
            body.items.iter().map(is_near).collect()
        })
        .collect();
    if everything {
        return near;
    }
    for round in 0..=ROUNDS {
        let mut starts = vec![0];
        let offsets: Vec<Vec<usize>> = (bodies.iter().zip(&near))
            .map(|(body, near)| {
                let mut at = starts[starts.len() - 1];
                let offsets = body.items.iter().zip(near).map(|(item, &near)| {
                    at += forms.size(item, near);
                    at
                });
                let offsets: Vec<usize> = offsets.collect();
                starts.push(at);
                offsets
            })
            .collect();
        let mut grown = false;
        for (function, body) in bodies.iter().enumerate() {
            for (index, item) in body.items.iter().enumerate() {
                let Some(target) = callee(function, item).filter(|_| near[function][index]) else {
                    continue;
                };
                let opcode =
                    if matches!(item, Item::Call { .. }) { Opcode::Jali } else { Opcode::Jmpi };
                let rel = starts[target] as i64 - offsets[function][index] as i64;
                if !forms.layout.fits(opcode, rel) || round == ROUNDS {
                    near[function][index] = false;
                    grown = true;
                }
            }
        }
        if !grown {
            break;
        }
    }
    near
}

/// Which forms items have on a machine, and their sizes.
#[derive(Clone, Copy)]
struct Forms {
    arch: ArchId,
    layout: Layout,
}

impl Forms {
    fn size(self, item: &Item, near: bool) -> usize {
        let size = |opcode| self.layout.size(opcode);
        match item {
            Item::Plain(instruction) => size(instruction.op.opcode()),
            Item::Jump { .. } => size(Opcode::Jmpi),
            Item::Address { .. } if near => size(Opcode::Ldi),
            Item::Call { .. } if near => size(Opcode::Jali),
            Item::TailJump { .. } if near => size(Opcode::Jmpi),
            Item::Address { .. } => self.literal_size(),
            Item::Call { far, .. } => {
                let kept = match far {
                    FarCall::Kept { .. } => size(Opcode::St) + size(Opcode::Ld),
                    FarCall::Free(_) | FarCall::Reached => 0,
                };
                self.literal_size() + size(Opcode::Jalr) + kept
            }
            Item::TailJump { .. } => self.literal_size() + size(Opcode::Jmpr),
        }
    }

    /// The size of the largest item.
    fn largest(self) -> usize {
        let far = FarCall::Kept { register: Gpr::new(0), word: 0 };
        self.size(&Item::Call { symbol: Symbol::default(), far }, false)
    }

    /// The size of two instructions and a word.
    fn literal_size(self) -> usize {
        let word = usize::from(self.arch.word().bytes());
        self.layout.size(Opcode::Jali) + word + self.layout.size(Opcode::Ld)
    }

    fn with_islands<'a>(self, function: &Unplaced<'a>) -> Cow<'a, Body> {
        let near = reaches_everything(self.arch);
        let reach = *self.layout.immediate_range(Opcode::Jmpi).end();
        let reach = usize::try_from(reach).unwrap_or(usize::MAX);
        function.body.with_islands(|item| self.size(item, near), self.largest(), reach)
    }

    /// The code of a function with the islands of `body`. If it refers to nothing, it is the same next to any others.
    fn code(
        self,
        function: &Unplaced<'_>,
        body: &Body,
        near: &[bool],
    ) -> Result<Placed, EmitError> {
        if !function.is_shared || !function.symbols.is_empty() {
            return self.encode(body, function.symbols, near);
        }
        let kept = &function.body.placed;
        if let Some(known) = kept.get() {
            return Ok(known.clone());
        }
        let placed = self.encode(body, function.symbols, near)?;
        Ok(kept.get_or_init(|| placed).clone())
    }

    fn encode(self, body: &Body, symbols: &[String], near: &[bool]) -> Result<Placed, EmitError> {
        let mut offsets = Vec::with_capacity(body.items.len() + 1);
        let mut end = 0;
        offsets.push(end);
        for (item, &near) in body.items.iter().zip(near) {
            end += self.size(item, near);
            offsets.push(end);
        }
        let mut out = Encoder { forms: self, symbols, placed: Placed::default(), note: None };
        out.placed.bytes.reserve(end);
        for (index, item) in body.items.iter().enumerate() {
            debug_assert_eq!(out.placed.bytes.len(), offsets[index]);
            out.note = body.notes.get(index).cloned().flatten();
            let place = body.places[index];
            if out.placed.places.last().is_none_or(|&(_, last)| last != place) {
                out.placed.places.push((offsets[index] as u32, place));
            }
            match *item {
                Item::Plain(instruction) => out.instruction(instruction)?,
                Item::Jump { guard, target } => {
                    let rel = offsets[target] as i64 - offsets[index + 1] as i64;
                    let range = self.layout.immediate_range(Opcode::Jmpi);
                    if !range.contains(&rel) {
                        let limit = range.end().unsigned_abs();
                        let given = rel.unsigned_abs();
                        return Err(EmitError::TooLarge(CodeTooLarge { given, limit }));
                    }
                    out.instruction(Instruction { guard, op: Op::Jmpi { rel } })?;
                }
                Item::Address { dst, symbol } => {
                    if near[index] {
                        out.referring(Op::Ldi { dst, imm: 0 }, symbol)?;
                    } else {
                        out.literal(dst, symbol)?;
                    }
                }
                Item::Call { symbol, far } => out.call(symbol, far, near[index])?,
                Item::TailJump { symbol, scratch: target } => {
                    if near[index] {
                        out.referring(Op::Jmpi { rel: 0 }, symbol)?;
                    } else {
                        out.literal(target, symbol)?;
                        out.instruction(Instruction::new(Op::Jmpr { target }))?;
                    }
                }
            }
        }
        let traps = body.traps.iter().map(|&(index, code)| (offsets[index] as u32, code));
        out.placed.traps = traps.collect();
        let branches = body.branches.iter().map(|&(index, id)| (offsets[index] as u32, id));
        out.placed.branches = branches.collect();
        let blocks = body.blocks.iter().map(|&(index, id)| (offsets[index] as u32, id));
        out.placed.blocks = blocks.collect();
        Ok(out.placed)
    }
}

struct Encoder<'a> {
    forms: Forms,
    symbols: &'a [String],
    placed: Placed,
    /// What remains to be noted on the current item.
    note: Option<Note>,
}

impl Encoder<'_> {
    /// Encodes an instruction before or after the main one of an item.
    fn part(&mut self, instruction: Instruction) -> Result<(), EmitError> {
        self.encode(instruction, Some(Role::Part { guard: None, defines: None }))
    }

    fn instruction(&mut self, instruction: Instruction) -> Result<(), EmitError> {
        self.encode(instruction, None)
    }

    /// Encodes an instruction with the role of the item, or another one.
    fn encode(&mut self, instruction: Instruction, role: Option<Role>) -> Result<(), EmitError> {
        let at = self.placed.bytes.len() as u32;
        if let Some(note) = &mut self.note {
            let role = role.unwrap_or_else(|| note.role.clone());
            // The contents are undefined from the item's first instruction on, and later ones may define
            // them.
            let undefined = std::mem::take(&mut note.undefined);
            self.placed.notes.push((at, Note { role, undefined, ..*note }));
        }
        harp_isa::encode(&instruction, self.forms.arch, &mut self.placed.bytes)
            .map_err(EmitError::Encode)
    }

    /// Encodes an instruction whose immediate the linker fills in.
    fn referring(&mut self, op: Op, symbol: Symbol) -> Result<(), EmitError> {
        let (arch, opcode) = (self.forms.arch, op.opcode());
        let at = self.placed.bytes.len() as u64;
        let name = self.symbols[symbol.index()].as_str();
        let reference = Reference::from_instruction(name, opcode, at, arch);
        self.placed.references.extend(reference);
        let imm = placeholder(opcode, arch);
        self.instruction(Instruction::new(match op {
            Op::Jali { link, .. } => Op::Jali { link, rel: imm },
            Op::Jmpi { .. } => Op::Jmpi { rel: imm },
            Op::Ldi { dst, .. } => Op::Ldi { dst, imm },
            other => other,
        }))
    }

    fn call(&mut self, symbol: Symbol, far: FarCall, near: bool) -> Result<(), EmitError> {
        let roles = RegisterRoles::new(self.forms.arch);
        let (link, base) = (roles.return_address(), roles.stack_pointer());
        match far {
            _ if near => self.referring(Op::Jali { link, rel: 0 }, symbol),
            FarCall::Reached => self.referring(Op::Jali { link, rel: 0 }, symbol),
            FarCall::Free(target) => {
                self.literal(target, symbol)?;
                self.instruction(Instruction::new(Op::Jalr { link, target }))
            }
            FarCall::Kept { register, word } => {
                // The callee preserves the address in the register; the kept value is restored here.
                let offset = i64::from(word) * i64::from(self.forms.arch.word().bytes());
                self.part(Instruction::new(Op::St { value: register, base, offset }))?;
                self.literal(register, symbol)?;
                self.instruction(Instruction::new(Op::Jalr { link, target: register }))?;
                self.part(Instruction::new(Op::Ld { dst: register, base, offset }))
            }
        }
    }

    /// `dst` = the address of `symbol`, read from a word that control skips.
    fn literal(&mut self, dst: Gpr, symbol: Symbol) -> Result<(), EmitError> {
        let word = self.forms.arch.word().bytes();
        self.part(Instruction::new(Op::Jali { link: dst, rel: word.into() }))?;
        let at = self.placed.bytes.len();
        let name = self.symbols[symbol.index()].as_str();
        self.placed.references.push(Reference::from_word(name, at as u64, self.forms.arch));
        self.placed.literals.push(at as u32);
        self.placed.bytes.extend(std::iter::repeat_n(0, word.into()));
        self.part(Instruction::new(Op::Ld { dst, base: dst, offset: 0 }))
    }
}
