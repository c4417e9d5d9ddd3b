//! What Intel's compilers add for the lanes of a warp (SPV_INTEL_subgroups): shuffles of what two vectors of lanes hold, and
//! accesses to blocks of memory, of which each lane has the element with its number.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, InstBuilder};
use rspirv::spirv::Op;

use crate::error::{Result, SpirvErrorKind};
use crate::function::Translator;
use crate::reader::{Id, Instruction};
use crate::values::{Parts, Val};

impl Translator<'_, '_, '_> {
    /// Translates an instruction of this family; false if it is of another one.
    pub(super) fn intel_subgroup(&mut self, inst: Instruction<'_>) -> Result<bool> {
        match inst.op {
            Op::SubgroupShuffleINTEL => {
                let lane = self.lane_operand(inst, 1)?;
                self.shuffle_instruction(inst, 0, lane)?;
            }
            Op::SubgroupShuffleXorINTEL => {
                let (own, by) = (self.prologue_word("harp_lane_id"), self.lane_operand(inst, 1)?);
                let lane = self.b.ins().bxor(own, by);
                self.shuffle_instruction(inst, 0, lane)?;
            }
            Op::SubgroupShuffleDownINTEL => {
                let (own, by) = (self.prologue_word("harp_lane_id"), self.lane_operand(inst, 2)?);
                let lanes = self.prologue_word("harp_lane_count");
                let lane = self.b.ins().iadd(own, by);
                let beyond = self.b.ins().isub(lane, lanes);
                let within = self.b.ins().icmp(IntCC::UnsignedLessThan, lane, lanes);
                self.shuffle_of_two(inst, within, [(0, lane), (1, beyond)])?;
            }
            Op::SubgroupShuffleUpINTEL => {
                let (own, by) = (self.prologue_word("harp_lane_id"), self.lane_operand(inst, 2)?);
                let lanes = self.prologue_word("harp_lane_count");
                let lane = self.b.ins().isub(own, by);
                let before = self.b.ins().iadd(lane, lanes);
                let within = self.b.ins().icmp(IntCC::UnsignedLessThanOrEqual, by, own);
                self.shuffle_of_two(inst, within, [(1, lane), (0, before)])?;
            }
            Op::SubgroupBlockReadINTEL => {
                let elements = self.block_elements(inst.word(0)?, inst.ty)?;
                let (element, _) = self.module.types.components(inst.ty)?;
                let mut parts = Parts::new();
                for pointer in elements {
                    parts.extend(self.load(&pointer, element, None)?.parts);
                }
                self.set(inst, parts)?;
            }
            Op::SubgroupBlockWriteINTEL => {
                let value = self.value(inst.word(1)?)?;
                let elements = self.block_elements(inst.word(0)?, value.ty)?;
                let (element, _) = self.module.types.components(value.ty)?;
                for (pointer, &part) in elements.iter().zip(&value.parts) {
                    self.store(pointer, &Val::new(element, Parts::from_slice(&[part])), None)?;
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// An operand that is a number of a lane, or a distance of lanes.
    fn lane_operand(&mut self, inst: Instruction<'_>, operand: usize) -> Result<ir::Value> {
        let lane = self.integer(inst.word(operand)?)?;
        Ok(self.resized(lane, self.unit.word, false))
    }

    /// What a lane holds as one of two operands: the first one if a condition holds.
    fn shuffle_of_two(
        &mut self,
        inst: Instruction<'_>,
        first: ir::Value,
        operands: [(usize, ir::Value); 2],
    ) -> Result<()> {
        let mut both = Vec::with_capacity(2);
        for (operand, lane) in operands {
            let value = self.value_of(inst.word(operand)?, inst.ty)?;
            let parts = value.parts.iter().map(|&part| self.shuffle(part, lane));
            both.push(parts.collect::<Parts>());
        }
        let pairs = both[0].iter().zip(&both[1]);
        let parts = pairs.map(|(&x, &y)| self.b.ins().select(first, x, y)).collect();
        self.set(inst, parts)
    }

    /// Pointers to what the lane has of a block: as many elements as a type has components, each a row of all lanes behind the
    /// one before.
    fn block_elements(&mut self, pointer: Id, ty: Id) -> Result<Vec<Val>> {
        let (base, _, to) = self.pointer(pointer)?;
        let (element, count) = self.module.types.components(ty)?;
        if to != element {
            return Err(self.mismatch(pointer, to, self.module.types.describe(element)));
        }
        let size = self.module.types.get(element)?.size;
        let size = i64::try_from(size).map_err(|_| SpirvErrorKind::malformed("a large element"))?;
        let (own, lanes) =
            (self.prologue_word("harp_lane_id"), self.prologue_word("harp_lane_count"));
        let distance = self.b.ins().imul_imm_s(own, size);
        let row = self.b.ins().imul_imm_s(lanes, size);
        let mut address = self.b.ins().iadd(base.parts[0], distance);
        let mut elements = Vec::new();
        for index in 0..count {
            if index > 0 {
                address = self.b.ins().iadd(address, row);
            }
            elements.push(Val { parts: Parts::from_slice(&[address]), ..base.clone() });
        }
        Ok(elements)
    }
}
