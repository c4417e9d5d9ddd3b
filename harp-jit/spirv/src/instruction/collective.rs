//! Operations on a value of each work-item, which combine those of some lanes of a warp.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, InstBuilder, Opcode, types};
use rspirv::spirv::{GroupOperation, Op};

use super::Of;
use crate::error::{Result, SpirvErrorKind};
use crate::function::Translator;
use crate::reader::Instruction;
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
            Op::GroupBitwiseAndKHR | Op::GroupLogicalAndKHR => Collective::And,
            Op::GroupBitwiseOrKHR | Op::GroupLogicalOrKHR => Collective::Or,
            Op::GroupBitwiseXorKHR | Op::GroupLogicalXorKHR => Collective::Xor,
            _ => return None,
        })
    }

    /// Whether an instruction for work-groups combines truth values.
    pub(super) fn is_of_truths(op: Op) -> bool {
        matches!(op, Op::GroupLogicalAndKHR | Op::GroupLogicalOrKHR | Op::GroupLogicalXorKHR)
    }

    pub(super) fn of_lanes(op: Op) -> Option<Collective> {
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

/// Those lanes, and of them only those in the own part of a partition, if there is one: a set of lanes.
struct Lanes {
    span: Span,
    part: Option<Parts>,
}

/// A partition of the lanes: an operation for each part (`SPV_NV_shader_subgroup_partitioned`).
fn partitioned(operation: GroupOperation) -> Option<Span> {
    match operation {
        GroupOperation::PartitionedReduceNV => Some(Span::All),
        GroupOperation::PartitionedInclusiveScanNV => Some(Span::UpToOwn),
        GroupOperation::PartitionedExclusiveScanNV => Some(Span::BeforeOwn),
        _ => None,
    }
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
    pub(super) fn lanes_operation(
        &mut self,
        inst: Instruction<'_>,
        collective: Collective,
    ) -> Result<()> {
        let unknown = || SpirvErrorKind::malformed("an unknown group operation");
        let operation = GroupOperation::from_u32(inst.word(1)?).ok_or_else(unknown)?;
        let (span, part) = match partitioned(operation) {
            Some(span) => (span, Some(self.mask(inst.word(3)?)?)),
            None => {
                let cluster = inst.operands.get(3);
                let cluster =
                    cluster.map(|&id| self.module.constants.length(id, &self.module.types));
                (Span::of(operation, cluster.transpose()?)?, None)
            }
        };
        let lanes = Lanes { span, part };
        let value = self.value_of(inst.word(2)?, inst.ty)?;
        let is_truth = self.is_vector_of(value.ty, Of::Bool)?;
        if !is_truth && !self.is_vector_of(value.ty, collective.of())? {
            return Err(self.mismatch(inst.word(2)?, value.ty, "numbers".to_owned()));
        }
        self.combine_parts(inst, value, |t, part| {
            t.lanes_combined_of(collective, &lanes, part, is_truth)
        })
    }

    /// Combines each component of a value by itself, halves as singles.
    pub(super) fn combine_parts(
        &mut self,
        inst: Instruction<'_>,
        value: Val,
        mut combine: impl FnMut(&mut Self, ir::Value) -> Result<ir::Value>,
    ) -> Result<()> {
        let is_half = self.is_half(value.ty)?;
        let mut parts = Parts::new();
        for part in value.parts {
            let part = if is_half { self.half_to_single(part) } else { part };
            let result = combine(self, part)?;
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
        is_truth: bool,
    ) -> Result<ir::Value> {
        self.lanes_combined_of(collective, &Lanes { span, part: None }, value, is_truth)
    }

    fn lanes_combined_of(
        &mut self,
        collective: Collective,
        Lanes { span, part }: &Lanes,
        value: ir::Value,
        is_truth: bool,
    ) -> Result<ir::Value> {
        let ty = self.b.func.dfg.value_type(value);
        if let (Span::All, None, Some(name)) = (span, part, reduction(collective)) {
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
            let counts = match *span {
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
            let counts = match part {
                Some(part) => {
                    let is_in = t.lane_bit(part, lane);
                    t.b.ins().band(counts, is_in)
                }
                None => counts,
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
