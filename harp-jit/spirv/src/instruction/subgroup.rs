//! What the lanes of a warp do together: votes, shuffles and ballots.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{self, InstBuilder, types};
use rspirv::spirv::{GroupOperation, Op};

use super::Of;
use super::collective::{Collective, Span};
use crate::error::{Result, SpirvErrorKind};
use crate::function::Translator;
use crate::reader::{Id, Instruction};
use crate::values::Parts;

impl Translator<'_, '_, '_> {
    /// Translates an instruction of this family; false if it is of another one.
    pub(super) fn subgroup(&mut self, inst: Instruction<'_>) -> Result<bool> {
        if let Some(collective) = Collective::of_lanes(inst.op) {
            self.lanes_operation(inst, collective)?;
            return Ok(true);
        }
        match inst.op {
            Op::GroupNonUniformElect => {
                let first = self.first_lane();
                let lane = self.prologue_word("harp_lane_id");
                let elected = self.b.ins().icmp(IntCC::Equal, lane, first);
                self.set_truth(inst, elected)?;
            }
            Op::GroupNonUniformAll | Op::SubgroupAllKHR => {
                self.vote_instruction(inst, "harp_all")?;
            }
            Op::GroupNonUniformAny | Op::SubgroupAnyKHR => {
                self.vote_instruction(inst, "harp_any")?;
            }
            Op::GroupNonUniformAllEqual | Op::SubgroupAllEqualKHR => {
                let operand = usize::from(inst.op == Op::GroupNonUniformAllEqual);
                let value = self.value(inst.word(operand)?)?;
                let mut same = self.b.ins().iconst(types::I8, 1);
                for &part in &value.parts {
                    let ty = self.b.func.dfg.value_type(part);
                    let callee = self.prologue.intrinsic(
                        self.b.func,
                        "harp_of_some_lane",
                        &[ty],
                        Some(ty),
                        ty,
                    );
                    let call = self.b.ins().call(callee, &[part]);
                    let other = self.b.inst_results(call)[0];
                    let equal = self.same(part, other);
                    same = self.b.ins().band(same, equal);
                }
                let all = self.vote("harp_all", same);
                self.set_truth(inst, all)?;
            }
            Op::GroupNonUniformBroadcast
            | Op::GroupNonUniformShuffle
            | Op::SubgroupReadInvocationKHR
            | Op::SubgroupShuffleINTEL => {
                let without_scope =
                    matches!(inst.op, Op::SubgroupReadInvocationKHR | Op::SubgroupShuffleINTEL);
                let own = usize::from(!without_scope);
                let lane = self.lane_operand(inst, own + 1)?;
                self.shuffle_instruction(inst, own, lane)?;
            }
            Op::GroupNonUniformBroadcastFirst | Op::SubgroupFirstInvocationKHR => {
                let own = usize::from(inst.op == Op::GroupNonUniformBroadcastFirst);
                let lane = self.first_lane();
                self.shuffle_instruction(inst, own, lane)?;
            }
            Op::GroupNonUniformShuffleXor
            | Op::GroupNonUniformShuffleUp
            | Op::GroupNonUniformShuffleDown
            | Op::SubgroupShuffleXorINTEL => {
                let value = usize::from(inst.op != Op::SubgroupShuffleXorINTEL);
                let by = self.lane_operand(inst, value + 1)?;
                let own = self.prologue_word("harp_lane_id");
                let lane = match inst.op {
                    Op::GroupNonUniformShuffleUp => self.b.ins().isub(own, by),
                    Op::GroupNonUniformShuffleDown => self.b.ins().iadd(own, by),
                    _ => self.b.ins().bxor(own, by),
                };
                self.shuffle_instruction(inst, value, lane)?;
            }
            Op::GroupNonUniformRotateKHR => {
                let lane = self.rotated(inst)?;
                self.shuffle_instruction(inst, 1, lane)?;
            }
            Op::GroupNonUniformQuadAllKHR | Op::GroupNonUniformQuadAnyKHR => {
                let own = self.prologue_word("harp_lane_id");
                let condition = self.condition(inst.word(0)?)?;
                let mut result = condition;
                for by in 1..4 {
                    // A lane that is not here changes nothing.
                    let lane = self.b.ins().bxor_imm_u(own, by);
                    let other = self.shuffle(condition, lane);
                    result = match inst.op {
                        Op::GroupNonUniformQuadAllKHR => self.b.ins().band(result, other),
                        _ => self.b.ins().bor(result, other),
                    };
                }
                self.set_truth(inst, result)?;
            }
            Op::GroupNonUniformPartitionNV => self.partition(inst)?,
            Op::GroupNonUniformQuadBroadcast | Op::GroupNonUniformQuadSwap => {
                let index = self.lane_operand(inst, 2)?;
                let own = self.prologue_word("harp_lane_id");
                let lane = match inst.op {
                    // Horizontally, vertically, diagonally.
                    Op::GroupNonUniformQuadSwap => {
                        let by = self.b.ins().iadd_imm_s(index, 1);
                        self.b.ins().bxor(own, by)
                    }
                    _ => {
                        let quad = self.b.ins().band_imm_s(own, -4);
                        self.b.ins().bor(quad, index)
                    }
                };
                self.shuffle_instruction(inst, 1, lane)?;
            }
            Op::GroupNonUniformBallot | Op::SubgroupBallotKHR => {
                let own = usize::from(inst.op == Op::GroupNonUniformBallot);
                let condition = self.condition(inst.word(own)?)?;
                let parts = self.ballot(condition);
                let (count, ty) = self.vector_type(inst.ty, Of::Int)?;
                if (count, ty) != (4, types::I32) {
                    return Err(SpirvErrorKind::malformed("a ballot gives 4 integers of 32 bits"));
                }
                self.set(inst, parts)?;
            }
            Op::GroupNonUniformInverseBallot | Op::GroupNonUniformBallotBitExtract => {
                let mask = self.mask(inst.word(1)?)?;
                let lane = match inst.op {
                    Op::GroupNonUniformInverseBallot => self.prologue_word("harp_lane_id"),
                    _ => self.integer(inst.word(2)?)?,
                };
                let bit = self.lane_bit(&mask, lane);
                self.set_truth(inst, bit)?;
            }
            Op::GroupNonUniformBallotBitCount => self.ballot_count(inst)?,
            Op::GroupNonUniformBallotFindLSB | Op::GroupNonUniformBallotFindMSB => {
                let mask = self.mask(inst.word(1)?)?;
                let found = self.find_bit(&mask, inst.op == Op::GroupNonUniformBallotFindLSB);
                let (_, ty) = self.vector_type(inst.ty, Of::Int)?;
                let found = self.resized(found, ty, false);
                self.set(inst, Parts::from_slice(&[found]))?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The lane that is so many lanes on, around the subgroup or the own group of so many consecutive lanes.
    fn rotated(&mut self, inst: Instruction<'_>) -> Result<ir::Value> {
        let by = self.lane_operand(inst, 2)?;
        let (own, lanes) =
            (self.prologue_word("harp_lane_id"), self.prologue_word("harp_lane_count"));
        let Some(&size) = inst.operands.get(3) else {
            let by = self.b.ins().urem(by, lanes);
            let on = self.b.ins().iadd(own, by);
            return Ok(self.b.ins().urem(on, lanes));
        };
        let size = self.module.constants.length(size, &self.module.types)?;
        if !size.is_power_of_two() {
            return Err(SpirvErrorKind::malformed(format!("a rotation of {size} lanes")));
        }
        let within = i64::try_from(size - 1).unwrap_or(i64::MAX);
        let first = self.b.ins().band_imm_s(own, !within);
        let on = self.b.ins().iadd(own, by);
        let on = self.b.ins().band_imm_s(on, within);
        Ok(self.b.ins().bor(first, on))
    }

    /// The lanes that have the own value.
    fn partition(&mut self, inst: Instruction<'_>) -> Result<()> {
        let value = self.value(inst.word(0)?)?;
        if self.vector_type(inst.ty, Of::Int)? != (4, types::I32) {
            return Err(SpirvErrorKind::malformed("a set of lanes is 4 integers of 32 bits"));
        }
        let word = self.unit.word;
        let (own, lanes) =
            (self.prologue_word("harp_lane_id"), self.prologue_word("harp_lane_count"));
        let [start, step] = [0, 1].map(|number| self.b.ins().iconst(word, number));
        let zero = self.b.ins().iconst(types::I32, 0);
        let found = self.repeat(start, lanes, step, &[zero, zero], |t, lane, before| {
            // A lane that is not here gives the own number.
            let number = t.shuffle(own, lane);
            let mut same = t.b.ins().icmp(IntCC::Equal, number, lane);
            for &part in &value.parts {
                let other = t.shuffle(part, lane);
                let equal = t.same(part, other);
                same = t.b.ins().band(same, equal);
            }
            let same = t.b.ins().uextend(types::I32, same);
            let index = t.resized(lane, types::I32, false);
            let bit = t.b.ins().band_imm_u(index, 31);
            let bit = t.b.ins().ishl(same, bit);
            let is_low = t.b.ins().icmp_imm_u(IntCC::UnsignedLessThan, index, 32);
            let [low, high] = [before[0], before[1]].map(|lanes| t.b.ins().bor(lanes, bit));
            let low = t.b.ins().select(is_low, low, before[0]);
            Ok(vec![low, t.b.ins().select(is_low, before[1], high)])
        })?;
        self.set(inst, Parts::from_slice(&[found[0], found[1], zero, zero]))
    }

    /// Whether two scalars are equal.
    fn same(&mut self, x: ir::Value, y: ir::Value) -> ir::Value {
        match self.b.func.dfg.value_type(x).is_float() {
            true => self.b.ins().fcmp(FloatCC::Equal, x, y),
            false => self.b.ins().icmp(IntCC::Equal, x, y),
        }
    }

    /// Whether a lane is in a set.
    pub(super) fn lane_bit(&mut self, set: &[ir::Value], lane: ir::Value) -> ir::Value {
        let lane = self.resized(lane, types::I32, false);
        let number = self.b.ins().ushr_imm_u(lane, 5);
        let part = self.pick(set, number);
        let bit = self.b.ins().band_imm_u(lane, 31);
        let shifted = self.b.ins().ushr(part, bit);
        let bit = self.b.ins().band_imm_u(shifted, 1);
        self.b.ins().ireduce(types::I8, bit)
    }

    fn set_truth(&mut self, inst: Instruction<'_>, truth: ir::Value) -> Result<()> {
        self.check_type(inst, Of::Bool, 1)?;
        self.set(inst, Parts::from_slice(&[truth]))
    }

    /// A vote of the lanes that are here.
    pub(super) fn vote(&mut self, name: &'static str, condition: ir::Value) -> ir::Value {
        let ty = types::I8;
        let callee = self.prologue.intrinsic(self.b.func, name, &[ty], Some(ty), ty);
        let call = self.b.ins().call(callee, &[condition]);
        self.b.inst_results(call)[0]
    }

    fn vote_instruction(&mut self, inst: Instruction<'_>, name: &'static str) -> Result<()> {
        let own = usize::from(matches!(inst.op, Op::GroupNonUniformAll | Op::GroupNonUniformAny));
        let condition = self.condition(inst.word(own)?)?;
        let result = self.vote(name, condition);
        self.set_truth(inst, result)
    }

    /// The value of another lane; the own one if there is no such lane here.
    pub(super) fn shuffle(&mut self, value: ir::Value, lane: ir::Value) -> ir::Value {
        let (ty, word) = (self.b.func.dfg.value_type(value), self.unit.word);
        let callee =
            self.prologue.intrinsic(self.b.func, "harp_shuffle", &[ty, word], Some(ty), ty);
        let call = self.b.ins().call(callee, &[value, lane]);
        self.b.inst_results(call)[0]
    }

    /// An operand that is a number of a lane, or a distance of lanes.
    pub(super) fn lane_operand(
        &mut self,
        inst: Instruction<'_>,
        operand: usize,
    ) -> Result<ir::Value> {
        let lane = self.integer(inst.word(operand)?)?;
        Ok(self.resized(lane, self.unit.word, false))
    }

    fn shuffle_instruction(
        &mut self,
        inst: Instruction<'_>,
        operand: usize,
        lane: ir::Value,
    ) -> Result<()> {
        let value = self.value_of(inst.word(operand)?, inst.ty)?;
        let parts = value.parts.iter().map(|&part| self.shuffle(part, lane)).collect();
        self.set(inst, parts)
    }

    /// The lanes for which a condition holds, in 4 integers of 32 bits.
    fn ballot(&mut self, condition: ir::Value) -> Parts {
        let word = self.unit.word;
        let vote = |t: &mut Self, name| {
            let callee = t.prologue.intrinsic(t.b.func, name, &[types::I8], Some(word), word);
            let call = t.b.ins().call(callee, &[condition]);
            t.b.inst_results(call)[0]
        };
        let low = vote(self, "harp_ballot");
        let zero = self.b.ins().iconst(types::I32, 0);
        let (first, second) = if word == types::I64 {
            let high = self.b.ins().ushr_imm_u(low, 32);
            (self.b.ins().ireduce(types::I32, low), self.b.ins().ireduce(types::I32, high))
        } else if self.unit.arch.lanes() > 32 {
            (low, vote(self, "harp_ballot_high"))
        } else {
            (low, zero)
        };
        Parts::from_slice(&[first, second, zero, zero])
    }

    /// The number of the first lane that is here, a word.
    fn first_lane(&mut self) -> ir::Value {
        let one = self.b.ins().iconst(types::I8, 1);
        let lanes = self.ballot(one);
        let first = self.find_bit(&lanes, true);
        self.resized(first, self.unit.word, false)
    }

    /// The number of the lowest or highest bit that is set in integers of 32 bits.
    fn find_bit(&mut self, mask: &[ir::Value], lowest: bool) -> ir::Value {
        let mut found = self.b.ins().iconst(types::I32, 0);
        let mut numbered: Vec<(i64, ir::Value)> = (0..).zip(mask.iter().copied()).collect();
        if lowest {
            numbered.reverse();
        }
        for (number, part) in numbered {
            let bit = match lowest {
                true => self.b.ins().ctz(part),
                false => {
                    let above = self.b.ins().clz(part);
                    let top = self.b.ins().iconst(types::I32, 31);
                    self.b.ins().isub(top, above)
                }
            };
            let bit = self.b.ins().iadd_imm_s(bit, number * 32);
            let some = self.b.ins().icmp_imm_u(IntCC::NotEqual, part, 0);
            found = self.b.ins().select(some, bit, found);
        }
        found
    }

    /// A set of lanes as 4 integers of 32 bits.
    pub(super) fn mask(&mut self, id: Id) -> Result<Parts> {
        let value = self.vector_of(id, Of::Int)?;
        let ty = self.b.func.dfg.value_type(value.parts[0]);
        if (value.parts.len(), ty) != (4, types::I32) {
            return Err(self.mismatch(
                id,
                value.ty,
                "a vector of 4 integers of 32 bits".to_owned(),
            ));
        }
        Ok(value.parts)
    }

    fn ballot_count(&mut self, inst: Instruction<'_>) -> Result<()> {
        let unknown = || SpirvErrorKind::malformed("an unknown group operation");
        let operation = GroupOperation::from_u32(inst.word(1)?).ok_or_else(unknown)?;
        let mask = self.mask(inst.word(2)?)?;
        let builtin = match Span::of(operation, None)? {
            Span::UpToOwn => Some(rspirv::spirv::BuiltIn::SubgroupLeMask),
            Span::BeforeOwn => Some(rspirv::spirv::BuiltIn::SubgroupLtMask),
            _ => None,
        };
        let (_, ty) = self.vector_type(inst.ty, Of::Int)?;
        let mut count = self.b.ins().iconst(types::I32, 0);
        for (part, number) in mask.into_iter().zip(0..) {
            let part = match builtin {
                Some(builtin) => {
                    let lanes = self.lane_mask(builtin, number);
                    self.b.ins().band(part, lanes)
                }
                None => part,
            };
            let ones = self.b.ins().popcnt(part);
            count = self.b.ins().iadd(count, ones);
        }
        let count = self.resized(count, ty, false);
        self.set(inst, Parts::from_slice(&[count]))
    }
}
