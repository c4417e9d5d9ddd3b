//! What Intel's compilers add for the lanes of a warp (SPV_INTEL_subgroups): shuffles of what two vectors of lanes hold, and
//! accesses to blocks of memory, of which each lane has the element with its number.

use cranelift_codegen::ir::InstBuilder;
use cranelift_codegen::ir::condcodes::IntCC;
use rspirv::spirv::Op;

use crate::error::{Result, SpirvErrorKind};
use crate::function::Translator;
use crate::reader::{Id, Instruction};
use crate::values::{Parts, Val};

impl Translator<'_, '_, '_> {
    /// Translates an instruction of this family; false if it is of another one.
    pub(super) fn intel_subgroup(&mut self, inst: Instruction<'_>) -> Result<bool> {
        match inst.op {
            Op::SubgroupShuffleDownINTEL | Op::SubgroupShuffleUpINTEL => {
                self.shuffle_of_two(inst)?;
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

    /// What is so many lanes on, or before, in what the lanes hold as one operand and then as the next one.
    fn shuffle_of_two(&mut self, inst: Instruction<'_>) -> Result<()> {
        let (first, second) =
            (self.value_of(inst.word(0)?, inst.ty)?, self.value_of(inst.word(1)?, inst.ty)?);
        let by = self.lane_operand(inst, 2)?;
        let (own, lanes) =
            (self.prologue_word("harp_lane_id"), self.prologue_word("harp_lane_count"));
        let place = match inst.op {
            Op::SubgroupShuffleDownINTEL => self.b.ins().iadd(own, by),
            _ => {
                // The own value is the second one.
                let own = self.b.ins().iadd(own, lanes);
                self.b.ins().isub(own, by)
            }
        };
        let in_second = self.b.ins().isub(place, lanes);
        let is_first = self.b.ins().icmp(IntCC::UnsignedLessThan, place, lanes);
        let mut parts = Parts::new();
        for (&x, &y) in first.parts.iter().zip(&second.parts) {
            let (x, y) = (self.shuffle(x, place), self.shuffle(y, in_second));
            parts.push(self.b.ins().select(is_first, x, y));
        }
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
