//! Structures passed by value.
//!
//! A parameter `sarg(n)` is the address of `n` bytes that belong to the callee. The caller copies the
//! structure to its frame before the call and passes the copy's address like any other. So neither callees
//! nor the argument layout deal with structures. Copies for consecutive calls share the same stack slots.
//!
//! This happens before the mid-end, which can then optimize accesses to the copies.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    ArgumentPurpose, Block, Function, Inst, InstBuilder, InstructionData, MemFlagsData, StackSlot,
    StackSlotData, StackSlotKind, Type, Value,
};

use crate::error::Unsupported;

/// The largest number of words that are copied one by one; more are copied in a loop.
const MAX_UNROLLED: u32 = 16;

/// The largest structure that is passed by value, in bytes.
const MAX_BYTES: u32 = 1 << 24;

/// Copies the structures that calls pass by value. `word` is the integer type of addresses.
///
/// # Errors
///
/// The first such call that is a tail call, since the caller's frame ends with it, or whose structure is too
/// large or has an address narrower than a word.
pub(crate) fn copy_structures(func: &mut Function, word: Type) -> Result<(), Unsupported> {
    let mut params = func.dfg.signatures.values().flat_map(|signature| &signature.params);
    if !params.any(|param| matches!(param.purpose, ArgumentPurpose::StructArgument(_))) {
        return Ok(());
    }
    let mut caller = Caller { at: FuncCursor::new(func), word, slots: Vec::new() };
    let blocks: Vec<Block> = caller.at.func.layout.blocks().collect();
    for block in blocks {
        let mut next = caller.at.func.layout.first_inst(block);
        while let Some(inst) = next {
            next = caller.at.func.layout.next_inst(inst);
            caller.call(inst)?;
        }
    }
    Ok(())
}

struct Caller<'f> {
    /// A cursor at the call: copies are made before it.
    at: FuncCursor<'f>,
    word: Type,
    /// The slots of the copies: for a call's first structure, its second, and so on.
    slots: Vec<StackSlot>,
}

impl Caller<'_> {
    fn call(&mut self, inst: Inst) -> Result<(), Unsupported> {
        let func = &self.at.func;
        let Some(signature) = func.dfg.call_signature(inst) else { return Ok(()) };
        let params = func.dfg.signatures[signature].params.iter().enumerate();
        let structures: Vec<(usize, u32)> = params
            .filter_map(|(index, param)| match param.purpose {
                ArgumentPurpose::StructArgument(bytes) => Some((index, bytes)),
                _ => None,
            })
            .collect();
        let indirect = matches!(func.dfg.insts[inst], InstructionData::CallIndirect { .. });
        for (number, &(param, bytes)) in structures.iter().enumerate() {
            let arg = param + usize::from(indirect);
            let structure = self.at.func.dfg.inst_args(inst)[arg];
            self.check(inst, structure, bytes)?;
            self.at.goto_inst(inst);
            self.at.use_srcloc(inst);
            let copy = self.copy(number, structure, bytes);
            self.at.func.dfg.inst_args_mut(inst)[arg] = copy;
        }
        Ok(())
    }

    fn check(&self, inst: Inst, structure: Value, bytes: u32) -> Result<(), Unsupported> {
        let func = &self.at.func;
        let what = if func.dfg.insts[inst].opcode().is_return() {
            "a structure passed by value in a tail call".to_owned()
        } else if func.dfg.value_type(structure).bits() < self.word.bits() {
            format!("a structure at an address of type {}", func.dfg.value_type(structure))
        } else if bytes > MAX_BYTES {
            format!("a structure of {bytes} bytes passed by value, the limit is {MAX_BYTES}")
        } else {
            return Ok(());
        };
        let block = func.layout.inst_block(inst).expect("it is in the layout");
        Err(Unsupported { inst, block, what })
    }

    /// Copies a structure to slot `number` and returns the copy's address.
    fn copy(&mut self, number: usize, from: Value, bytes: u32) -> Value {
        let slot = self.slot(number, bytes);
        let address = self.at.func.dfg.value_type(from);
        let to = self.at.ins().stack_addr(address, slot, 0);
        let word_bytes = self.word.bytes();
        let words = bytes / word_bytes;
        if words <= MAX_UNROLLED {
            for word in 0..words {
                self.copy_word(from, to, word * word_bytes);
            }
        } else {
            self.copy_words(from, to, words * word_bytes);
        }
        self.copy_rest(from, to, words * word_bytes..bytes);
        to
    }

    /// The slot is rounded up to whole words, so that it can be stored to where several lanes run.
    fn slot(&mut self, number: usize, bytes: u32) -> StackSlot {
        let size = bytes.next_multiple_of(self.word.bytes());
        let func = &mut *self.at.func;
        if let Some(&slot) = self.slots.get(number) {
            let data = &mut func.sized_stack_slots[slot];
            data.size = data.size.max(size);
            return slot;
        }
        let align = self.word.bytes().ilog2() as u8;
        let data = StackSlotData::new(StackSlotKind::ExplicitSlot, size, align);
        let slot = func.create_sized_stack_slot(data);
        self.slots.push(slot);
        slot
    }

    fn copy_word(&mut self, from: Value, to: Value, offset: u32) {
        let offset = offset.cast_signed();
        let value = self.at.ins().load(self.word, MemFlagsData::new(), from, offset);
        self.at.ins().store(MemFlagsData::trusted(), value, to, offset);
    }

    /// Copies in a loop. The call and everything after it move to a new block.
    fn copy_words(&mut self, from: Value, to: Value, bytes: u32) {
        let inst = self.at.current_inst().expect("the cursor stands at the call");
        let func = &mut *self.at.func;
        let before = func.layout.inst_block(inst).expect("it is in the layout");
        let [again, after] = std::array::from_fn(|_| func.dfg.make_block());
        func.layout.split_block(after, inst);
        func.layout.insert_block_after(again, before);
        let address = func.dfg.value_type(from);
        let offset = func.dfg.append_block_param(again, address);

        self.at.goto_bottom(before);
        let start = self.at.ins().iconst(address, 0);
        self.at.ins().jump(again, &[start.into()]);
        self.at.goto_bottom(again);
        let from = self.at.ins().iadd(from, offset);
        let to = self.at.ins().iadd(to, offset);
        self.copy_word(from, to, 0);
        let next = self.at.ins().iadd_imm_s(offset, i64::from(self.word.bytes()));
        let end = self.at.ins().iconst(address, i64::from(bytes));
        let more = self.at.ins().icmp(IntCC::UnsignedLessThan, next, end);
        self.at.ins().brif(more, again, &[next.into()], after, &[]);
        self.at.goto_inst(inst);
    }

    /// Copies the bytes after the last whole word, combined into one word.
    fn copy_rest(&mut self, from: Value, to: Value, rest: std::ops::Range<u32>) {
        let start = rest.start;
        let bytes = rest.map(|offset| {
            let flags = MemFlagsData::new();
            let byte = self.at.ins().uload8(self.word, flags, from, offset.cast_signed());
            self.at.ins().ishl_imm_u(byte, i64::from(offset - start) * 8)
        });
        let bytes: Vec<Value> = bytes.collect();
        let whole = bytes.into_iter().reduce(|low, high| self.at.ins().bor(low, high));
        if let Some(whole) = whole {
            self.at.ins().store(MemFlagsData::trusted(), whole, to, start.cast_signed());
        }
    }
}
