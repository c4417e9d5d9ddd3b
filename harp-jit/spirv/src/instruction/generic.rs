//! What generic pointers point to: memory of the work-item, of its work-group, or of all.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, InstBuilder};
use harp_isa::abi::LaunchMemory;
use rspirv::spirv::{MemorySemantics, Op, StorageClass};

use super::Of;
use crate::error::{Result, SpirvErrorKind};
use crate::function::Translator;
use crate::prologue::Item;
use crate::reader::Instruction;
use crate::values::Parts;

impl Translator<'_, '_, '_> {
    /// Translates an instruction of this family; false if it is of another one.
    pub(super) fn generic(&mut self, inst: Instruction<'_>) -> Result<bool> {
        match inst.op {
            Op::GenericCastToPtrExplicit => self.cast_if_in_class(inst)?,
            Op::GenericPtrMemSemantics => self.semantics_of_class(inst)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The pointer if it points to memory of the result's class, otherwise null.
    pub(super) fn cast_if_in_class(&mut self, inst: Instruction<'_>) -> Result<()> {
        let address = self.generic_address(inst)?;
        let (class, _) = self.module.types.pointer(inst.ty)?;
        let [is_own, is_of_group] = self.is_own_or_of_group(address);
        let null = self.b.ins().iconst(self.unit.word, 0);
        let result = match class {
            StorageClass::Function => self.b.ins().select(is_own, address, null),
            StorageClass::Workgroup => self.b.ins().select(is_of_group, address, null),
            StorageClass::CrossWorkgroup => {
                let is_other = self.b.ins().bor(is_own, is_of_group);
                self.b.ins().select(is_other, null, address)
            }
            class => {
                let what = format!("a cast of a generic pointer to {class:?}");
                return Err(SpirvErrorKind::malformed(what));
            }
        };
        self.set(inst, Parts::from_slice(&[result]))
    }

    /// The memory semantics of what the pointer points to. A work-item's own memory has none.
    fn semantics_of_class(&mut self, inst: Instruction<'_>) -> Result<()> {
        let memories = [MemorySemantics::WORKGROUP_MEMORY, MemorySemantics::CROSS_WORKGROUP_MEMORY];
        self.bits_of_class(inst, memories.map(|semantics| semantics.bits()))
    }

    /// The `cl_mem_fence_flags` of what the pointer points to.
    pub(super) fn fences_of_class(&mut self, inst: Instruction<'_>) -> Result<()> {
        self.bits_of_class(inst, [1, 2])
    }

    /// The bits for memory of the group, or those for memory of all, if the pointer points there.
    fn bits_of_class(&mut self, inst: Instruction<'_>, [group, all]: [u32; 2]) -> Result<()> {
        let address = self.generic_address(inst)?;
        let (_, ty) = self.vector_type(inst.ty, Of::Int)?;
        let [is_own, is_of_group] = self.is_own_or_of_group(address);
        let [none, group, all] =
            [0, group, all].map(|bits| self.b.ins().iconst(ty, i64::from(bits)));
        let shared = self.b.ins().select(is_of_group, group, all);
        let semantics = self.b.ins().select(is_own, none, shared);
        self.check_type(inst, Of::Int, 1)?;
        self.set(inst, Parts::from_slice(&[semantics]))
    }

    fn generic_address(&mut self, inst: Instruction<'_>) -> Result<ir::Value> {
        match self.pointer(inst.word(0)?)? {
            (value, StorageClass::Generic, _) if value.parts.len() == 1 => Ok(value.parts[0]),
            (_, class, _) => Err(SpirvErrorKind::malformed(format!(
                "a pointer to {class:?} that must be generic"
            ))),
        }
    }

    /// Whether an address is in the work-item's memory, and whether it is in that of its work-group. The launch's stacks are
    /// one range here, and so is the memory of all groups: a work-item has no addresses in those of others.
    fn is_own_or_of_group(&mut self, address: ir::Value) -> [ir::Value; 2] {
        let ranges = [
            [LaunchMemory::Stacks, LaunchMemory::StacksEnd],
            [LaunchMemory::Groups, LaunchMemory::GroupsEnd],
        ];
        ranges.map(|ends| {
            let word = self.unit.arch.word();
            let items = ends.map(|end| Item::LaunchWord(LaunchMemory::SYMBOL, end.offset(word)));
            let [start, end] = items.map(|item| self.prologue.item(self.b.func, item));
            let bytes = self.at_start(|at| at.ins().isub(end, start));
            let distance = self.b.ins().isub(address, start);
            self.b.ins().icmp(IntCC::UnsignedLessThan, distance, bytes)
        })
    }
}
