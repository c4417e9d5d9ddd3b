//! Puts [counters](super::counters) in front of branches.
//!
//! All active lanes of a warp write the warp's own counters at once, with the same value, because lanes of a
//! warp execute each instruction together. Votes among the active lanes find out whether they agree.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I8;
use cranelift_codegen::ir::{
    Function, Inst, InstBuilder, InstructionData, MemFlagsData, SourceLoc, Type, Value,
};
use harp_isa::abi::ArgumentBlock;

use super::Branches;
use super::counters::{Counter, CounterLayout};
use crate::abi::word_int;
use crate::intrinsic::Intrinsic;

/// Adds counters for all branches to a legal kernel in canonical form. `argument` is the index of the
/// argument that holds the counters' address.
pub(crate) fn instrument(
    func: &mut Function,
    branches: &Branches,
    layout: CounterLayout,
    argument: u32,
) {
    let Some(entry) = func.layout.entry_block() else { return };
    let Some(&block) = func.dfg.block_params(entry).first() else { return };
    let mut at = FuncCursor::new(func).with_srcloc(SourceLoc::default());
    at.goto_first_insertion_point(entry);
    let writer = Writer { at, layout, word: word_int(layout.arch().word()) };
    writer.function(block, branches, argument);
}

struct Writer<'f> {
    at: FuncCursor<'f>,
    layout: CounterLayout,
    /// The machine's word.
    word: Type,
}

impl Writer<'_> {
    fn function(mut self, arguments: Value, branches: &Branches, argument: u32) {
        let offset = ArgumentBlock::argument(argument, self.layout.arch().word());
        let readonly = flags().with_readonly();
        let counters = self.load(readonly, arguments, u64::from(offset));
        let [core, warp, lane] = [Intrinsic::CORE_ID, Intrinsic::WARP_ID, Intrinsic::LANE_ID]
            .map(|id| self.ask(id, &[]));
        let cores = self.times(core, self.layout.arch().warps().into());
        let warp = self.at.ins().iadd(cores, warp);
        let warp = self.times(warp, self.layout.warp_bytes());
        let warp = self.at.ins().iadd(counters, warp);
        let lane = self.times(lane, self.layout.pair_bytes());
        let lane = self.at.ins().iadd(warp, lane);
        for (number, (_, inst)) in branches.iter().enumerate() {
            self.branch(inst, number as u64, warp, lane);
        }
    }

    /// Inserts the counting code in front of a branch.
    fn branch(&mut self, inst: Inst, number: u64, warp: Value, lane: Value) {
        let InstructionData::Brif { arg: condition, .. } = self.at.func.dfg.insts[inst] else {
            return;
        };
        self.at.goto_inst(inst);
        let zero = self.constant(self.at.func.dfg.value_type(condition), 0);
        let taken = self.at.ins().icmp(IntCC::NotEqual, condition, zero);
        let left = self.at.ins().icmp(IntCC::Equal, condition, zero);
        let [any_true, any_false] = [taken, left].map(|truth| self.ask(Intrinsic::Any, &[truth]));
        let zero = self.constant(I8, 0);
        let [all_true, all_false] =
            [any_false, any_true].map(|any| self.at.ins().icmp(IntCC::Equal, any, zero));
        let one = self.constant(self.word, 1);
        let [taken, all_true, all_false] =
            [taken, all_true, all_false].map(|truth| self.at.ins().uextend(self.word, truth));
        let counts = [
            (Counter::Executed, warp, one),
            (Counter::UnanimousTrue, warp, all_true),
            (Counter::UnanimousFalse, warp, all_false),
            (Counter::LaneExecuted, lane, one),
            (Counter::LaneTaken, lane, taken),
        ];
        for (counter, records, added) in counts {
            self.add(records, self.layout.offset(number, counter), added);
        }
    }

    /// Adds 0 or 1 to a counter, unless the counter is full.
    fn add(&mut self, records: Value, offset: u64, added: Value) {
        let (address, offset) = self.place(records, offset);
        let old = self.at.ins().load(self.word, flags(), address, offset);
        let sum = self.at.ins().iadd(old, added);
        let sum = self.at.ins().umax(old, sum);
        self.at.ins().store(flags(), sum, address, offset);
    }

    fn load(&mut self, flags: MemFlagsData, base: Value, offset: u64) -> Value {
        let (address, offset) = self.place(base, offset);
        self.at.ins().load(self.word, flags, address, offset)
    }

    /// Splits `base` plus `offset` into an address and an offset that an instruction can have.
    fn place(&mut self, base: Value, offset: u64) -> (Value, i32) {
        match i32::try_from(offset) {
            Ok(offset) => (base, offset),
            Err(_) => {
                let offset = self.constant(self.word, offset);
                (self.at.ins().iadd(base, offset), 0)
            }
        }
    }

    fn times(&mut self, value: Value, factor: u64) -> Value {
        let factor = self.constant(self.word, factor);
        self.at.ins().imul(value, factor)
    }

    /// A constant, truncated to its type.
    fn constant(&mut self, ty: Type, value: u64) -> Value {
        let shift = 64 - ty.bits();
        self.at.ins().iconst(ty, (value << shift >> shift).cast_signed())
    }

    fn ask(&mut self, intrinsic: Intrinsic, args: &[Value]) -> Value {
        let callee = intrinsic.declare(self.at.func, self.word);
        let call = self.at.ins().call(callee, args);
        self.at.func.dfg.first_result(call)
    }
}

/// Flags of accesses to counters: the launch chooses their address.
fn flags() -> MemFlagsData {
    MemFlagsData::new().with_notrap().with_aligned()
}
