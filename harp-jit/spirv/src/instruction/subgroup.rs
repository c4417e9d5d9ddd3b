//! What the lanes of a warp do together: votes, shuffles, and operations on a value of each.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, InstBuilder, Opcode, types};
use rspirv::spirv::{GroupOperation, Op};

use super::Of;
use crate::error::{Result, SpirvErrorKind};
use crate::function::Translator;
use crate::reader::{Id, Instruction};
use crate::values::{Parts, Val};

/// How the values of several work-items are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Collective {
    Add,
    FloatAdd,
    Multiply,
    FloatMultiply,
    SignedMin,
    UnsignedMin,
    FloatMin,
    SignedMax,
    UnsignedMax,
    FloatMax,
    And,
    Or,
    Xor,
}

impl Collective {
    /// Of the instructions for work-groups, which are for subgroups, too.
    pub(super) fn of_group(op: Op) -> Option<Collective> {
        Some(match op {
            Op::GroupIAdd => Collective::Add,
            Op::GroupFAdd => Collective::FloatAdd,
            Op::GroupIMulKHR => Collective::Multiply,
            Op::GroupFMulKHR => Collective::FloatMultiply,
            Op::GroupSMin => Collective::SignedMin,
            Op::GroupUMin => Collective::UnsignedMin,
            Op::GroupFMin => Collective::FloatMin,
            Op::GroupSMax => Collective::SignedMax,
            Op::GroupUMax => Collective::UnsignedMax,
            Op::GroupFMax => Collective::FloatMax,
            Op::GroupBitwiseAndKHR => Collective::And,
            Op::GroupBitwiseOrKHR => Collective::Or,
            Op::GroupBitwiseXorKHR => Collective::Xor,
            _ => return None,
        })
    }

    fn of_lanes(op: Op) -> Option<Collective> {
        Some(match op {
            Op::GroupNonUniformIAdd => Collective::Add,
            Op::GroupNonUniformFAdd => Collective::FloatAdd,
            Op::GroupNonUniformIMul => Collective::Multiply,
            Op::GroupNonUniformFMul => Collective::FloatMultiply,
            Op::GroupNonUniformSMin => Collective::SignedMin,
            Op::GroupNonUniformUMin => Collective::UnsignedMin,
            Op::GroupNonUniformFMin => Collective::FloatMin,
            Op::GroupNonUniformSMax => Collective::SignedMax,
            Op::GroupNonUniformUMax => Collective::UnsignedMax,
            Op::GroupNonUniformFMax => Collective::FloatMax,
            Op::GroupNonUniformBitwiseAnd | Op::GroupNonUniformLogicalAnd => Collective::And,
            Op::GroupNonUniformBitwiseOr | Op::GroupNonUniformLogicalOr => Collective::Or,
            Op::GroupNonUniformBitwiseXor | Op::GroupNonUniformLogicalXor => Collective::Xor,
            _ => return None,
        })
    }

    pub(super) fn of(self) -> Of {
        use Collective::{FloatAdd, FloatMax, FloatMin, FloatMultiply};
        if matches!(self, FloatAdd | FloatMultiply | FloatMin | FloatMax) {
            Of::Float
        } else {
            Of::Int
        }
    }

    fn opcode(self) -> Opcode {
        match self {
            Collective::Add => Opcode::Iadd,
            Collective::FloatAdd => Opcode::Fadd,
            Collective::Multiply => Opcode::Imul,
            Collective::FloatMultiply => Opcode::Fmul,
            Collective::SignedMin => Opcode::Smin,
            Collective::UnsignedMin => Opcode::Umin,
            Collective::FloatMin => Opcode::Fmin,
            Collective::SignedMax => Opcode::Smax,
            Collective::UnsignedMax => Opcode::Umax,
            Collective::FloatMax => Opcode::Fmax,
            Collective::And => Opcode::Band,
            Collective::Or => Opcode::Bor,
            Collective::Xor => Opcode::Bxor,
        }
    }

    pub(super) fn apply(
        self,
        t: &mut Translator<'_, '_, '_>,
        x: ir::Value,
        y: ir::Value,
    ) -> ir::Value {
        t.binary(self.opcode(), x, y)
    }

    /// The value that changes no other; `is_truth` is for truth values, whose only bit is the lowest.
    pub(super) fn identity(
        self,
        t: &mut Translator<'_, '_, '_>,
        ty: ir::Type,
        is_truth: bool,
    ) -> ir::Value {
        let float = |single: f32, double: f64| match ty {
            types::F32 => u64::from(single.to_bits()),
            _ => double.to_bits(),
        };
        let all = u64::MAX >> (64 - ty.bits());
        let bits = match self {
            Collective::Add | Collective::Or | Collective::Xor | Collective::UnsignedMax => 0,
            Collective::FloatAdd => float(-0.0, -0.0),
            Collective::Multiply => 1,
            Collective::FloatMultiply => float(1.0, 1.0),
            Collective::SignedMin => all >> 1,
            Collective::SignedMax => (all >> 1) + 1,
            Collective::FloatMin => float(f32::INFINITY, f64::INFINITY),
            Collective::FloatMax => float(f32::NEG_INFINITY, f64::NEG_INFINITY),
            Collective::And if is_truth => 1,
            Collective::And | Collective::UnsignedMin => all,
        };
        t.bits(ty, bits)
    }
}

/// Which lanes' values are combined for a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Span {
    All,
    UpToOwn,
    BeforeOwn,
    /// Those of the own group of so many consecutive lanes.
    Cluster(u64),
}

impl Span {
    pub(super) fn of(operation: GroupOperation, cluster: Option<u64>) -> Result<Span> {
        match (operation, cluster) {
            (GroupOperation::Reduce, _) => Ok(Span::All),
            (GroupOperation::InclusiveScan, _) => Ok(Span::UpToOwn),
            (GroupOperation::ExclusiveScan, _) => Ok(Span::BeforeOwn),
            (GroupOperation::ClusteredReduce, Some(size)) if size.is_power_of_two() => {
                Ok(Span::Cluster(size))
            }
            _ => Err(SpirvErrorKind::unsupported(format!("the group operation {operation:?}"))),
        }
    }
}

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
                    let equal = match ty.is_float() {
                        true => self.b.ins().fcmp(ir::condcodes::FloatCC::Equal, part, other),
                        false => self.b.ins().icmp(IntCC::Equal, part, other),
                    };
                    same = self.b.ins().band(same, equal);
                }
                let all = self.vote("harp_all", same);
                self.set_truth(inst, all)?;
            }
            Op::GroupNonUniformBroadcast
            | Op::GroupNonUniformShuffle
            | Op::SubgroupReadInvocationKHR => {
                let own = usize::from(inst.op != Op::SubgroupReadInvocationKHR);
                let lane = self.integer(inst.word(own + 1)?)?;
                let lane = self.resized(lane, self.unit.word, false);
                self.shuffle_instruction(inst, own, lane)?;
            }
            Op::GroupNonUniformBroadcastFirst | Op::SubgroupFirstInvocationKHR => {
                let own = usize::from(inst.op == Op::GroupNonUniformBroadcastFirst);
                let lane = self.first_lane();
                self.shuffle_instruction(inst, own, lane)?;
            }
            Op::GroupNonUniformShuffleXor
            | Op::GroupNonUniformShuffleUp
            | Op::GroupNonUniformShuffleDown => {
                let by = self.integer(inst.word(2)?)?;
                let by = self.resized(by, self.unit.word, false);
                let own = self.prologue_word("harp_lane_id");
                let lane = match inst.op {
                    Op::GroupNonUniformShuffleXor => self.b.ins().bxor(own, by),
                    Op::GroupNonUniformShuffleUp => self.b.ins().isub(own, by),
                    _ => self.b.ins().iadd(own, by),
                };
                self.shuffle_instruction(inst, 1, lane)?;
            }
            Op::GroupNonUniformQuadBroadcast | Op::GroupNonUniformQuadSwap => {
                let index = self.integer(inst.word(2)?)?;
                let index = self.resized(index, self.unit.word, false);
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
                let lane = self.resized(lane, types::I32, false);
                let number = self.b.ins().ushr_imm_u(lane, 5);
                let part = self.pick(&mask, number);
                let bit = self.b.ins().band_imm_u(lane, 31);
                let shifted = self.b.ins().ushr(part, bit);
                let bit = self.b.ins().band_imm_u(shifted, 1);
                let bit = self.b.ins().ireduce(types::I8, bit);
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
    fn mask(&mut self, id: Id) -> Result<Parts> {
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

    fn lanes_operation(&mut self, inst: Instruction<'_>, collective: Collective) -> Result<()> {
        let unknown = || SpirvErrorKind::malformed("an unknown group operation");
        let operation = GroupOperation::from_u32(inst.word(1)?).ok_or_else(unknown)?;
        let cluster =
            inst.operands.get(3).map(|&id| self.module.constants.length(id, &self.module.types));
        let span = Span::of(operation, cluster.transpose()?)?;
        let value = self.value_of(inst.word(2)?, inst.ty)?;
        let is_truth = self.is_vector_of(value.ty, Of::Bool)?;
        if !is_truth && !self.is_vector_of(value.ty, collective.of())? {
            return Err(self.mismatch(inst.word(2)?, value.ty, "numbers".to_owned()));
        }
        let is_half = self.is_half(value.ty)?;
        let Val { parts: values, .. } = value;
        let mut parts = Parts::new();
        for part in values {
            let part = if is_half { self.half_to_single(part) } else { part };
            let result = self.lanes_combined_of(collective, span, part, is_truth)?;
            parts.push(if is_half { self.single_to_half(result) } else { result });
        }
        self.set(inst, parts)
    }

    /// Combines the values of lanes that are here, in the order of their numbers.
    pub(super) fn lanes_combined(
        &mut self,
        collective: Collective,
        span: Span,
        value: ir::Value,
    ) -> Result<ir::Value> {
        self.lanes_combined_of(collective, span, value, false)
    }

    fn lanes_combined_of(
        &mut self,
        collective: Collective,
        span: Span,
        value: ir::Value,
        is_truth: bool,
    ) -> Result<ir::Value> {
        let ty = self.b.func.dfg.value_type(value);
        if let (Span::All, Some(name)) = (span, reduction(collective)) {
            let callee = self.prologue.intrinsic(self.b.func, name, &[ty], Some(ty), ty);
            let call = self.b.ins().call(callee, &[value]);
            return Ok(self.b.inst_results(call)[0]);
        }
        let word = self.unit.word;
        let (own, lanes) =
            (self.prologue_word("harp_lane_id"), self.prologue_word("harp_lane_count"));
        let identity = collective.identity(self, ty, is_truth);
        let [zero, one] = [0, 1].map(|number| self.b.ins().iconst(word, number));
        let combined = self.repeat(zero, lanes, one, &[identity], |t, lane, before| {
            // A lane that is not here gives the own number.
            let found = t.shuffle(own, lane);
            let other = t.shuffle(value, lane);
            let here = t.b.ins().icmp(IntCC::Equal, found, lane);
            let counts = match span {
                Span::All => here,
                Span::UpToOwn | Span::BeforeOwn => {
                    let condition = match span {
                        Span::UpToOwn => IntCC::UnsignedLessThanOrEqual,
                        _ => IntCC::UnsignedLessThan,
                    };
                    let counts = t.b.ins().icmp(condition, lane, own);
                    t.b.ins().band(here, counts)
                }
                Span::Cluster(size) => {
                    let differing = t.b.ins().bxor(lane, own);
                    let counts = t.b.ins().icmp_imm_u(
                        IntCC::UnsignedLessThan,
                        differing,
                        size.min(64).cast_signed(),
                    );
                    t.b.ins().band(here, counts)
                }
            };
            let all = collective.apply(t, before[0], other);
            Ok(vec![t.b.ins().select(counts, all, before[0])])
        })?;
        Ok(combined[0])
    }
}

/// The intrinsic that combines the values of all lanes.
fn reduction(collective: Collective) -> Option<&'static str> {
    Some(match collective {
        Collective::Add => "harp_reduce_iadd",
        Collective::FloatAdd => "harp_reduce_fadd",
        Collective::SignedMin => "harp_reduce_smin",
        Collective::UnsignedMin => "harp_reduce_umin",
        Collective::FloatMin => "harp_reduce_fmin",
        Collective::SignedMax => "harp_reduce_smax",
        Collective::UnsignedMax => "harp_reduce_umax",
        Collective::FloatMax => "harp_reduce_fmax",
        Collective::And => "harp_reduce_band",
        Collective::Or => "harp_reduce_bor",
        Collective::Xor => "harp_reduce_bxor",
        Collective::Multiply | Collective::FloatMultiply => return None,
    })
}
