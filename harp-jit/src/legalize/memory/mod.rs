//! Replaces memory accesses that the machine lacks by others.
//!
//! * Big-endian accesses become little-endian ones with byte swaps, atomic ones as well.
//! * Atomic accesses to a part of a word become atomic accesses to the 4 bytes around it, `nand` becomes a
//!   loop around `atomic_cas`, and atomic loads and stores become `atomic_rmw`, because plain ones are not
//!   ordered. So atomic loads write back what they read, and trap where memory is write-protected. Atomic accesses
//!   wider than a word become plain ones under a lock. See [`atomic`].
//! * Base machines have no atomic accesses, and store a part of a word by reading and writing the word. What
//!   other lanes do to the same word in between would be lost, so lanes take turns under a lock: see [`turns`].
//!   Accesses to stack slots that no other lane knows of need no turns ([`private`]), nor does code for a single
//!   lane, which is right as long as nothing else accesses the same memory at the same time.
//!
//! Assumes a verified function. Afterwards there is no big-endian access, and the only atomic ones are
//! `atomic_rmw` without `nand`, and `atomic_cas`, on types of 4 bytes and of a word, with extension X. Without
//! it, nothing else accesses the words to which a part of a word is stored.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::immediates::Offset32;
use cranelift_codegen::ir::types::{I8, I16, I32, I64};
use cranelift_codegen::ir::{
    Block, Endianness, Function, Inst, InstBuilder, InstructionData, MemFlagsData, Opcode, Type,
    Value,
};
use harp_isa::ArchId;

use crate::error::Unsupported;
use crate::options::Execution;

mod atomic;
mod private;
mod turns;

use turns::Turns;

/// See the [module](self). Returns whether there was anything to do.
///
/// # Errors
///
/// The first access that cannot be expressed on the machine.
pub(super) fn expand(
    func: &mut Function,
    arch: ArchId,
    execution: Execution,
) -> Result<bool, Unsupported> {
    let has_others = execution != Execution::SingleLane;
    let stores_in_turns = has_others && !arch.has_extension();
    let private = stores_in_turns.then(|| private::addresses(func));
    let mut memory =
        Memory { at: FuncCursor::new(func), arch, has_others, private, changed: false };
    let blocks: Vec<Block> = memory.at.func.layout.blocks().collect();
    for block in blocks {
        let mut next = memory.at.func.layout.first_inst(block);
        while let Some(inst) = next {
            next = memory.at.func.layout.next_inst(inst);
            memory.access(inst)?;
        }
    }
    let changed = memory.changed;
    if changed {
        func.dfg.resolve_all_aliases();
    }
    Ok(changed)
}

struct Memory<'f> {
    /// A cursor at the instruction that is replaced: new code goes before it.
    at: FuncCursor<'f>,
    arch: ArchId,
    /// Whether other lanes run.
    has_others: bool,
    /// Addresses of memory that no other lane accesses, if stores of several instructions must not meet those of others.
    private: Option<EntitySet<Value>>,
    changed: bool,
}

impl Memory<'_> {
    fn access(&mut self, inst: Inst) -> Result<(), Unsupported> {
        let data = self.at.func.dfg.insts[inst];
        if let Some(atomic) = self.atomic(inst) {
            self.at.goto_inst(inst);
            self.at.use_srcloc(inst);
            return self.replace_atomic(inst, atomic);
        }
        let Some(flags) = data.memflags_data(&self.at.func.dfg) else { return Ok(()) };
        let big = flags.explicit_endianness() == Some(Endianness::Big);
        self.at.goto_inst(inst);
        self.at.use_srcloc(inst);
        match data {
            InstructionData::Load { opcode, arg, offset, .. } if big => {
                let ty = self.at.func.dfg.value_type(self.at.func.dfg.first_result(inst));
                let flags = little_endian(flags);
                if let Some(loaded) = self.big_load(opcode, ty, flags, arg, offset) {
                    self.replace(inst, Some(loaded));
                }
            }
            InstructionData::Store { opcode, args: [value, address], offset, .. } => {
                let shared = self.private.as_ref().is_some_and(|all| !all.contains(address));
                let turns = shared.then(|| self.store_turns(inst)).flatten();
                let swapped = if big { self.big_value(opcode, value) } else { None };
                let store = swapped.map_or(inst, |stored| {
                    self.at.ins().store(little_endian(flags), stored, address, offset)
                });
                if let Some(turns) = turns {
                    self.move_to_turns(turns, store);
                }
                if swapped.is_some() {
                    self.replace(inst, None);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// In which turns lanes execute a store; none if each writes nothing but whole words.
    fn store_turns(&mut self, inst: Inst) -> Option<Turns> {
        let data = self.at.func.dfg.insts[inst];
        let InstructionData::Store { opcode, args: [value, address], flags, offset } = data else {
            return None;
        };
        let bytes = match opcode {
            Opcode::Istore8 => 1,
            Opcode::Istore16 => 2,
            Opcode::Istore32 => 4,
            _ => self.at.func.dfg.value_type(value).bytes(),
        };
        let aligned = bytes == 1 || self.at.func.dfg.mem_flags[flags].aligned();
        match (aligned, bytes < self.arch.word().bytes().into()) {
            (false, _) => Some(self.turns_of_lanes()),
            (true, true) => Some(self.turns_of_parts(bytes, address, offset.into())),
            (true, false) => None,
        }
    }

    /// The value of a big-endian load; none if its type is not supported.
    fn big_load(
        &mut self,
        opcode: Opcode,
        ty: Type,
        flags: MemFlagsData,
        address: Value,
        offset: Offset32,
    ) -> Option<Value> {
        let (part, signed) = match opcode {
            Opcode::Uload8 => (I8, false),
            Opcode::Sload8 => (I8, true),
            Opcode::Uload16 => (I16, false),
            Opcode::Sload16 => (I16, true),
            Opcode::Uload32 => (I32, false),
            Opcode::Sload32 => (I32, true),
            _ => (same_bits(ty)?, false),
        };
        let loaded = self.at.ins().load(part, flags, address, offset);
        let loaded = self.swap(loaded);
        Some(match (ty.is_int(), part == ty, signed) {
            (false, ..) => self.at.ins().bitcast(ty, MemFlagsData::new(), loaded),
            (true, true, _) => loaded,
            (true, false, true) => self.at.ins().sextend(ty, loaded),
            (true, false, false) => self.at.ins().uextend(ty, loaded),
        })
    }

    /// The value that a little-endian store writes in place of a big-endian one.
    fn big_value(&mut self, opcode: Opcode, value: Value) -> Option<Value> {
        let ty = self.at.func.dfg.value_type(value);
        let part = match opcode {
            Opcode::Istore8 => I8,
            Opcode::Istore16 => I16,
            Opcode::Istore32 => I32,
            _ => same_bits(ty)?,
        };
        let value = match (ty.is_int(), part == ty) {
            (false, _) => self.at.ins().bitcast(part, MemFlagsData::new(), value),
            (true, true) => value,
            (true, false) => self.at.ins().ireduce(part, value),
        };
        Some(self.swap(value))
    }

    fn swap(&mut self, value: Value) -> Value {
        if self.at.func.dfg.value_type(value) == I8 { value } else { self.at.ins().bswap(value) }
    }

    /// Removes the instruction at the cursor; `value` replaces its result, if it has one.
    fn replace(&mut self, inst: Inst, value: Option<Value>) {
        let dfg = &mut self.at.func.dfg;
        if let (Some(value), Some(&result)) = (value, dfg.inst_results(inst).first()) {
            dfg.clear_results(inst);
            dfg.change_to_alias(result, value);
        }
        self.at.func.layout.remove_inst(inst);
        self.changed = true;
    }

    fn refuse(&self, inst: Inst, what: String) -> Unsupported {
        let block = self.at.func.layout.inst_block(inst).expect("it is in the layout");
        Unsupported { inst, block, what }
    }
}

/// The same flags as little-endian. They are built anew, because a byte order cannot be unset.
fn little_endian(flags: MemFlagsData) -> MemFlagsData {
    let mut little = MemFlagsData::new()
        .with_endianness(Endianness::Little)
        .with_trap_code(flags.trap_code())
        .with_alias_region(flags.alias_region());
    if flags.aligned() {
        little = little.with_aligned();
    }
    if flags.readonly() {
        little = little.with_readonly();
    }
    if flags.can_move() {
        little = little.with_can_move();
    }
    little
}

/// The integer type with the same number of bits, up to 64.
fn same_bits(ty: Type) -> Option<Type> {
    let scalar = ty.is_int() || ty.is_float();
    [I8, I16, I32, I64].into_iter().find(|int| scalar && int.bits() == ty.bits())
}
