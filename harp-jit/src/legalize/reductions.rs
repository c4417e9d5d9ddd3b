//! Reductions over the executing lanes of a warp.
//!
//! A reduction becomes a loop over the lane numbers, which all executing lanes run together: a vote says
//! whether the lane of that number executes it, a shuffle fetches its value. So it combines the lanes in the
//! order of their numbers, for sums of floats too, and needs no instruction that only some machines have. The
//! mid-end and all later stages see only votes and shuffles.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{F32, I8};
use cranelift_codegen::ir::{Function, Inst, InstBuilder, Opcode, Type, Value};

use super::Opcodes;
use crate::intrinsic::{Intrinsic, Reduction};

/// Expands all reductions; `word` is the machine's word as an integer.
pub(super) fn expand(func: &mut Function, word: Type, opcodes: &Opcodes) {
    if !opcodes.contain(Opcode::Call) {
        return;
    }
    let insts = func.layout.blocks().flat_map(|block| func.layout.block_insts(block));
    let reduction = |inst| match Intrinsic::of_call(func, inst) {
        Some(Intrinsic::Reduce(reduction)) => Some((inst, reduction)),
        _ => None,
    };
    for (inst, reduction) in insts.filter_map(reduction).collect::<Vec<_>>() {
        Expansion { at: FuncCursor::new(func).at_inst(inst), word }.reduce(inst, reduction);
    }
}

struct Expansion<'f> {
    at: FuncCursor<'f>,
    word: Type,
}

impl Expansion<'_> {
    fn reduce(mut self, inst: Inst, reduction: Reduction) {
        self.at.use_srcloc(inst);
        let given = self.at.func.dfg.inst_args(inst)[0];
        let result = self.at.func.dfg.first_result(inst);
        let ty = self.at.func.dfg.value_type(given);
        let [round, rest] = [(); 2].map(|()| self.at.func.dfg.make_block());
        self.at.func.layout.split_block(rest, inst);
        self.at.func.dfg.clear_results(inst);
        self.at.func.layout.remove_inst(inst);
        let before = self.at.func.layout.prev_block(rest).expect("the block that was split");

        self.at.goto_bottom(before);
        let own = self.ask(Intrinsic::LANE_ID, self.word, &[]);
        let lanes = self.ask(Intrinsic::LANE_COUNT, self.word, &[]);
        let neutral = self.neutral(reduction, ty);
        let first = self.at.ins().iconst(self.word, 0);
        self.at.ins().jump(round, &[first.into(), neutral.into()]);

        self.at.func.layout.insert_block(round, rest);
        self.at.goto_bottom(round);
        let lane = self.at.func.dfg.append_block_param(round, self.word);
        let so_far = self.at.func.dfg.append_block_param(round, ty);
        let is_own = self.at.ins().icmp(IntCC::Equal, own, lane);
        let executes = self.ask(Intrinsic::Any, I8, &[is_own]);
        let fetched = self.ask(Intrinsic::Shuffle, ty, &[given, lane]);
        let part = self.at.ins().select(executes, fetched, neutral);
        // That lane's value, or the neutral one if the lane does not execute this.
        let part = self.ask(Intrinsic::AssumeUniform, ty, &[part]);
        let (sum, dfg) = self.at.ins().Binary(reduction.opcode(), ty, so_far, part);
        let sum = dfg.first_result(sum);
        let next = self.at.ins().iadd_imm_s(lane, 1);
        let more = self.at.ins().icmp(IntCC::UnsignedLessThan, next, lanes);
        self.at.ins().brif(more, round, &[next.into(), sum.into()], rest, &[]);
        self.at.func.dfg.change_to_alias(result, sum);
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
