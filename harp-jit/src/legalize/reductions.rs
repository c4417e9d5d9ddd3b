//! Reductions over the executing lanes of a warp, and ballots on machines without an instruction for them.
//!
//! They become a loop over the lane numbers, which all executing lanes run together. For a reduction a vote
//! says whether the lane of that number executes it, and a shuffle fetches its value. So it combines the lanes
//! in the order of their numbers, for sums of floats too, and needs no instruction that only some machines
//! have. For a ballot the vote is that lane's bit. The mid-end and all later stages see only votes and shuffles.

use std::cmp::Ordering;

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{F32, I8};
use cranelift_codegen::ir::{Block, Function, Inst, InstBuilder, Opcode, Type, Value};
use harp_isa::ArchId;

use super::Opcodes;
use crate::abi::word_int;
use crate::intrinsic::{Intrinsic, Reduction};

/// Expands all reductions, and all ballots that `arch` has no instruction for.
pub(super) fn expand(func: &mut Function, arch: ArchId, opcodes: &Opcodes) {
    if !opcodes.contain(Opcode::Call) {
        return;
    }
    let insts = func.layout.blocks().flat_map(|block| func.layout.block_insts(block));
    let expanded = |inst| match Intrinsic::of_call(func, inst)? {
        intrinsic @ Intrinsic::Reduce(_) => Some((inst, intrinsic)),
        ballot @ (Intrinsic::Ballot | Intrinsic::BallotHigh) if !arch.has_extension() => {
            Some((inst, ballot))
        }
        _ => None,
    };
    let word = word_int(arch.word());
    for (inst, intrinsic) in insts.filter_map(expanded).collect::<Vec<_>>() {
        let expansion = Expansion { at: FuncCursor::new(func).at_inst(inst), word };
        match intrinsic {
            Intrinsic::Reduce(reduction) => expansion.reduce(inst, reduction),
            ballot => expansion.ballot(inst, ballot),
        }
    }
}

struct Expansion<'f> {
    at: FuncCursor<'f>,
    /// The machine's word as an integer.
    word: Type,
}

/// A call that is replaced.
struct Call {
    given: Value,
    result: Value,
    /// The type of the result.
    ty: Type,
    /// The block with what comes after it.
    after: Block,
}

impl Expansion<'_> {
    fn reduce(mut self, inst: Inst, reduction: Reduction) {
        let Call { given, result, ty, after } = self.take_out(inst);
        let own = self.ask(Intrinsic::LANE_ID, self.word, &[]);
        let lanes = self.ask(Intrinsic::LANE_COUNT, self.word, &[]);
        let neutral = self.neutral(reduction, ty);
        let first = self.at.ins().iconst(self.word, 0);
        let sum = self.rounds([first, lanes], neutral, after, |x, lane, so_far| {
            let is_own = x.at.ins().icmp(IntCC::Equal, own, lane);
            let executes = x.ask(Intrinsic::Any, I8, &[is_own]);
            let fetched = x.ask(Intrinsic::Shuffle, ty, &[given, lane]);
            let part = x.at.ins().select(executes, fetched, neutral);
            // That lane's value, or the neutral one if the lane does not execute this.
            let part = x.ask(Intrinsic::AssumeUniform, ty, &[part]);
            let (sum, dfg) = x.at.ins().Binary(reduction.opcode(), ty, so_far, part);
            dfg.first_result(sum)
        });
        self.at.func.dfg.change_to_alias(result, sum);
    }

    /// The lanes beyond the warp's last one, with which a ballot's part may begin, do not vote, so their bits
    /// are 0.
    fn ballot(mut self, inst: Inst, part: Intrinsic) {
        let Call { given, result, ty, after } = self.take_out(inst);
        let own = self.ask(Intrinsic::LANE_ID, self.word, &[]);
        let lanes = self.ask(Intrinsic::LANE_COUNT, self.word, &[]);
        let bits = i64::from(self.word.bits());
        let [first, last] =
            if part == Intrinsic::BallotHigh { [bits, 2 * bits] } else { [0, bits] };
        let [first, last, none] = [first, last, 0].map(|k| self.at.ins().iconst(self.word, k));
        let end = self.at.ins().umin(lanes, last);
        let holds = self.at.ins().icmp_imm_s(IntCC::NotEqual, given, 0);
        let mask = self.rounds([first, end], none, after, |x, lane, so_far| {
            let is_own = x.at.ins().icmp(IntCC::Equal, own, lane);
            let votes = x.at.ins().band(is_own, holds);
            let bit = x.ask(Intrinsic::Any, I8, &[votes]);
            let bit = x.at.ins().uextend(x.word, bit);
            // The lane's number modulo the bits of a word.
            let bit = x.at.ins().ishl(bit, lane);
            x.at.ins().bor(so_far, bit)
        });
        let mask = match ty.bits().cmp(&self.word.bits()) {
            Ordering::Less => self.at.ins().ireduce(ty, mask),
            Ordering::Equal => mask,
            Ordering::Greater => self.at.ins().uextend(ty, mask),
        };
        self.at.func.dfg.change_to_alias(result, mask);
    }

    /// Removes a call of one operand and divides its block there. The cursor is at the end of the first half.
    fn take_out(&mut self, inst: Inst) -> Call {
        self.at.use_srcloc(inst);
        let dfg = &mut self.at.func.dfg;
        let (given, result) = (dfg.inst_args(inst)[0], dfg.first_result(inst));
        let (ty, after) = (dfg.value_type(result), dfg.make_block());
        self.at.func.layout.split_block(after, inst);
        self.at.func.dfg.clear_results(inst);
        self.at.func.layout.remove_inst(inst);
        let before = self.at.func.layout.prev_block(after).expect("the block that was split");
        self.at.goto_bottom(before);
        Call { given, result, ty, after }
    }

    /// A loop from the cursor to `after` over the lane numbers from `first`, which is always run, up to before
    /// `end`. `round` computes a value from the lane's number and the value so far. Returns the last one; the
    /// cursor is at the begin of `after`.
    fn rounds(
        &mut self,
        [first, end]: [Value; 2],
        initial: Value,
        after: Block,
        round: impl FnOnce(&mut Self, Value, Value) -> Value,
    ) -> Value {
        let ty = self.at.func.dfg.value_type(initial);
        let again = self.at.func.dfg.make_block();
        self.at.ins().jump(again, &[first.into(), initial.into()]);
        self.at.func.layout.insert_block(again, after);
        self.at.goto_bottom(again);
        let lane = self.at.func.dfg.append_block_param(again, self.word);
        let so_far = self.at.func.dfg.append_block_param(again, ty);
        let value = round(self, lane, so_far);
        let next = self.at.ins().iadd_imm_s(lane, 1);
        let more = self.at.ins().icmp(IntCC::UnsignedLessThan, next, end);
        self.at.ins().brif(more, again, &[next.into(), value.into()], after, &[]);
        self.at.goto_first_insertion_point(after);
        value
    }

    fn ask(&mut self, intrinsic: Intrinsic, ty: Type, args: &[Value]) -> Value {
        let callee = intrinsic.declare_with(self.at.func, ty, self.word);
        let call = self.at.ins().call(callee, args);
        self.at.func.dfg.first_result(call)
    }

    /// The neutral element of a reduction.
    fn neutral(&mut self, reduction: Reduction, ty: Type) -> Value {
        let highest = i64::MAX >> (64 - ty.bits().min(64));
        match reduction {
            Reduction::Iadd | Reduction::Umax | Reduction::Bor | Reduction::Bxor => {
                self.at.ins().iconst(ty, 0)
            }
            Reduction::Umin | Reduction::Band => self.at.ins().iconst(ty, -1),
            Reduction::Smin => self.at.ins().iconst(ty, highest),
            Reduction::Smax => self.at.ins().iconst(ty, !highest),
            Reduction::Fadd => self.float(ty, -0.0),
            Reduction::Fmin => self.float(ty, f32::INFINITY),
            Reduction::Fmax => self.float(ty, f32::NEG_INFINITY),
        }
    }

    fn float(&mut self, ty: Type, value: f32) -> Value {
        match ty {
            F32 => self.at.ins().f32const(value),
            _ => self.at.ins().f64const(f64::from(value)),
        }
    }
}
