//! Copies of bytes.

use cranelift_codegen::ir::{self, InstBuilder, MemFlagsData};
use harp_jit::COPIED;

use crate::error::{Result, SpirvErrorKind};
use crate::function::Translator;
use crate::reader::Instruction;

/// The most accesses that a copy of known size takes; larger ones are loops.
pub(super) const MAX_UNROLLED: u64 = 64;

impl Translator<'_, '_, '_> {
    pub(super) fn copy_sized(&mut self, inst: Instruction<'_>) -> Result<()> {
        let [to, from] = [inst.word(0)?, inst.word(1)?];
        let (to, from) = (self.pointer(to)?.0.parts[0], self.pointer(from)?.0.parts[0]);
        let align = inst.alignment(3).unwrap_or(1);
        let size = inst.word(2)?;
        if let Ok(known) = self.module.constants.length(size, &self.module.types) {
            return self.copy(to, from, known, align);
        }
        let size = self.integer(size)?;
        let size = self.resized(size, self.unit.word, false);
        self.copy_loop(to, from, size, 1)
    }

    /// Copies `size` bytes between places that are aligned to `align` bytes.
    pub(crate) fn copy(
        &mut self,
        to: ir::Value,
        from: ir::Value,
        size: u64,
        align: u64,
    ) -> Result<()> {
        let divisor = size & size.wrapping_neg();
        let unit = align.min(u64::from(self.unit.word.bytes())).min(divisor).max(1);
        if size / unit > MAX_UNROLLED {
            let size = self.b.ins().iconst(self.unit.word, size.cast_signed());
            return self.copy_loop(to, from, size, unit);
        }
        // All are loaded first, as the places may be the same.
        let (ty, flags) = (int_type(unit)?, flags());
        let count = (size / unit) as i32;
        let offsets = (0..count).map(|index| index * unit as i32);
        let values: Vec<_> =
            offsets.clone().map(|at| self.b.ins().load(ty, flags, from, at)).collect();
        for (value, at) in values.into_iter().zip(offsets) {
            self.b.ins().store(flags, value, to, at);
        }
        Ok(())
    }

    /// Copies `size` bytes, a word, in a loop.
    fn copy_loop(
        &mut self,
        to: ir::Value,
        from: ir::Value,
        size: ir::Value,
        unit: u64,
    ) -> Result<()> {
        let (ty, flags) = (int_type(unit)?, flags());
        let start = self.b.ins().iconst(self.unit.word, 0);
        let step = self.b.ins().iconst(self.unit.word, unit.cast_signed());
        self.repeat(start, size, step, &[], |t, at, _| {
            let [from, to] = [from, to].map(|base| t.b.ins().iadd(base, at));
            let value = t.b.ins().load(ty, flags, from, 0);
            t.b.ins().store(flags, value, to, 0);
            Ok(Vec::new())
        })?;
        Ok(())
    }
}

/// Flags of what is copied, whatever it is: bytes between the members of structures may never have been written.
fn flags() -> MemFlagsData {
    MemFlagsData::new().with_aligned().with_trap_code(Some(COPIED))
}

/// The integer of so many bytes.
fn int_type(bytes: u64) -> Result<ir::Type> {
    let ty = u16::try_from(bytes).ok().and_then(ir::Type::int_with_byte_size);
    ty.ok_or_else(|| SpirvErrorKind::malformed("an alignment that is no power of two"))
}
