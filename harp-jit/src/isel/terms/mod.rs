//! The terms of the rules that are implemented in Rust.

use cranelift_codegen::ir::types::INVALID;
use cranelift_codegen::ir::{Endianness, ValueDef};
use harp_isa::{RegClass, WordSize};
use smallvec::{SmallVec, smallvec};

use super::rules::*;
use super::truth::is_truth;
use super::{Lower, fits_register};
use crate::abi::word_int;
use crate::forms;
use crate::vcode::{MInst, MOperand};

mod ranges;

use ranges::RANGE_DEPTH;

impl Lower<'_> {
    fn word(&self) -> WordSize {
        self.arch.word()
    }

    fn new_gpr(&mut self) -> Reg {
        self.vcode.new_reg(RegClass::Gpr)
    }

    /// Emits `op`, with a fresh register of `class` as its destination.
    fn define<const N: usize>(
        &mut self,
        op: MachOp,
        class: RegClass,
        sources: [MOperand; N],
    ) -> Reg {
        let dst = self.vcode.new_reg(class);
        let mut operands: SmallVec<[MOperand; 3]> = smallvec![MOperand::Def(dst)];
        operands.extend_from_slice(&sources);
        self.inst_code.push(MInst::Op { opcode: op, guard: None, operands });
        dst
    }

    fn defining_inst(&self, value: Value) -> Option<Inst> {
        match self.func.dfg.value_def(self.func.dfg.resolve_aliases(value)) {
            ValueDef::Result(inst, 0) => Some(inst),
            _ => None,
        }
    }

    /// The base and offset of an access. A constant added to the address moves into the offset if it fits; an
    /// access to a stack slot needs no address computation.
    fn address(&mut self, op: MachOp, address: Value, offset: i64) -> (MOperand, i64) {
        if let Some(slot) = self.slot_access(address, offset) {
            return (MOperand::StackSlots, slot);
        }
        if let Some(inst) = self.defining_inst(address)
            && let InstructionData::Binary { opcode: Opcode::Iadd, args: [x, y] } =
                self.func.dfg.insts[inst]
        {
            for (base, added) in [(x, y), (y, x)] {
                let sum = self.constant(added).and_then(|k| offset.checked_add(k));
                if let Some(slot) = sum.and_then(|sum| self.slot_access(base, sum)) {
                    return (MOperand::StackSlots, slot);
                }
                if let Some(fit) = sum.and_then(|sum| self.fits(&op, sum)) {
                    return (MOperand::Use(self.value_gpr(base)), fit);
                }
            }
        }
        let base = self.value_gpr(address);
        match self.fits(&op, offset) {
            Some(fit) => (MOperand::Use(base), fit),
            None => {
                let offset = self.emit_const(offset);
                let uses = [MOperand::Use(base), MOperand::Use(offset)];
                (MOperand::Use(self.define(MachOp::Add, RegClass::Gpr, uses)), 0)
            }
        }
    }

    /// The offset of an access from the first stack slot, if stack slots can have it.
    fn slot_access(&self, address: Value, offset: i64) -> Option<i64> {
        let place = self.slot_offset(self.defining_inst(address)?)?.checked_add(offset)?;
        let bytes = i64::try_from(self.vcode.frame.slot_bytes).ok()?;
        (0..bytes).contains(&place).then_some(place)
    }
}

impl Lower<'_> {
    /// Chooses between the forms of an atomic instruction by type.
    fn atomic_form(&self, ty: Type, word: MachOp, half: MachOp) -> Option<MachOp> {
        match (self.word(), ty) {
            _ if !self.arch.has_extension() => None,
            (WordSize::Four, I32) | (WordSize::Eight, I64) => Some(word),
            (WordSize::Eight, I32) => Some(half),
            _ => None,
        }
    }
}

impl Context for Lower<'_> {
    fn inst_data_value(&mut self, inst: Inst) -> (Type, InstructionData) {
        let dfg = &self.func.dfg;
        let ty = dfg.inst_results(inst).first().map_or(INVALID, |&v| dfg.value_type(v));
        (ty, dfg.insts[inst])
    }

    fn value_list_slice(&mut self, list: ValueList) -> ValueSlice {
        (list, 0)
    }

    fn value_slice_unwrap(&mut self, (list, start): ValueSlice) -> Option<(Value, ValueSlice)> {
        let value = list.get(start, &self.func.dfg.value_lists)?;
        Some((value, (list, start + 1)))
    }

    fn value_type(&mut self, value: Value) -> Type {
        self.func.dfg.value_type(value)
    }

    fn unpack_value_array_2(&mut self, &[a, b]: &ValueArray2) -> (Value, Value) {
        (a, b)
    }

    fn pack_value_array_2(&mut self, a: Value, b: Value) -> ValueArray2 {
        [a, b]
    }

    fn unpack_value_array_3(&mut self, &[a, b, c]: &ValueArray3) -> (Value, Value, Value) {
        (a, b, c)
    }

    fn pack_value_array_3(&mut self, a: Value, b: Value, c: Value) -> ValueArray3 {
        [a, b, c]
    }

    fn unpack_block_array_2(&mut self, &[a, b]: &BlockArray2) -> (BlockCall, BlockCall) {
        (a, b)
    }

    fn pack_block_array_2(&mut self, a: BlockCall, b: BlockCall) -> BlockArray2 {
        [a, b]
    }

    fn has_x(&mut self) -> bool {
        self.arch.has_extension()
    }

    fn word8(&mut self) -> bool {
        self.word() == WordSize::Eight
    }

    fn word_int(&mut self, ty: Type) -> Option<Type> {
        (ty == word_int(self.word())).then_some(ty)
    }

    fn narrow_int(&mut self, ty: Type) -> Option<Type> {
        (ty.is_int() && ty.bits() < self.word().bits().into()).then_some(ty)
    }

    fn gpr_int(&mut self, ty: Type) -> Option<Type> {
        (ty.is_int() && ty.bits() <= self.word().bits().into()).then_some(ty)
    }

    fn native_float(&mut self, ty: Type) -> Option<Type> {
        (ty.is_float() && ty.bits() == u32::from(self.word().bits())).then_some(ty)
    }

    fn half_float(&mut self, ty: Type) -> Option<Type> {
        (ty == F32 && self.word() == WordSize::Eight).then_some(ty)
    }

    fn full_word(&mut self, ty: Type) -> Option<Type> {
        (fits_register(ty, self.word()) && ty.bits() == u32::from(self.word().bits())).then_some(ty)
    }

    fn narrow(&mut self, ty: Type) -> Option<Type> {
        (fits_register(ty, self.word()) && ty.bits() < self.word().bits().into()).then_some(ty)
    }

    fn value_in_reg(&mut self, ty: Type) -> Option<Type> {
        fits_register(ty, self.word()).then_some(ty)
    }

    fn is_float(&mut self, ty: Type) -> Option<Type> {
        (ty.is_float() && fits_register(ty, self.word())).then_some(ty)
    }

    fn same_size(&mut self, a: Type, b: Type) -> bool {
        a.bits() == b.bits()
    }

    fn word_bits(&mut self) -> i64 {
        self.word().bits().into()
    }

    fn half_bits(&mut self) -> i64 {
        self.word_bits() / 2
    }

    fn word_bytes(&mut self) -> i64 {
        self.word().bytes().into()
    }

    fn ty_bytes(&mut self, ty: Type) -> i64 {
        ty.bytes().into()
    }

    fn ty_bits(&mut self, ty: Type) -> i64 {
        ty.bits().into()
    }

    fn ty_mask(&mut self, ty: Type) -> i64 {
        low_ones(ty.bits().into())
    }

    fn sign_bit(&mut self) -> i64 {
        1 << (self.word().bits() - 1)
    }

    fn low_half_mask(&mut self) -> i64 {
        low_ones(self.half_bits())
    }

    fn i64_sub(&mut self, a: i64, b: i64) -> i64 {
        a.wrapping_sub(b)
    }

    fn i64_half(&mut self, a: i64) -> i64 {
        a / 2
    }

    fn i64_add(&mut self, a: i64, b: i64) -> i64 {
        a.wrapping_add(b)
    }

    fn i64_not(&mut self, a: i64) -> i64 {
        !a
    }

    fn low_ones(&mut self, count: i64) -> i64 {
        low_ones(count)
    }

    fn byte_ones(&mut self, ty: Type) -> i64 {
        0x0101_0101_0101_0101 & low_ones(ty.bits().into())
    }

    fn stripes(&mut self, ty: Type, width: i64) -> i64 {
        let stripe = low_ones(width).cast_unsigned();
        let all = (0..64).step_by(2 * width.unsigned_abs() as usize);
        all.fold(0, |bits, at| bits | stripe << at).cast_signed() & low_ones(ty.bits().into())
    }

    fn infinity(&mut self) -> i64 {
        match self.word() {
            WordSize::Four => f32::INFINITY.to_bits().into(),
            WordSize::Eight => f64::INFINITY.to_bits().cast_signed(),
        }
    }

    fn infinity_of(&mut self, ty: Type) -> i64 {
        if ty == F64 {
            f64::INFINITY.to_bits().cast_signed()
        } else {
            f32::INFINITY.to_bits().into()
        }
    }

    fn finite_const(&mut self, zero: i64, value: Value) -> Option<i64> {
        if self.arch.has_extension() {
            return None;
        }
        let bits = self.constant(value)?;
        let (number, native) = match self.func.dfg.value_type(value) {
            F32 => (f32::from_bits(bits as u32).into(), WordSize::Four),
            _ => (f64::from_bits(bits.cast_unsigned()), WordSize::Eight),
        };
        if number.is_infinite() || number.is_nan() || self.word() != native {
            return None;
        }
        Some(if number == 0.0 { zero } else { bits })
    }

    fn float_sign(&mut self, ty: Type) -> i64 {
        if ty == F64 { i64::MIN } else { 1 << 31 }
    }

    fn power_of_two(&mut self, exponent: i64) -> i64 {
        let value = f64::powi(2.0, exponent as i32);
        match self.word() {
            WordSize::Four => (value as f32).to_bits().into(),
            WordSize::Eight => value.to_bits().cast_signed(),
        }
    }

    fn gpr(&mut self, value: Value) -> Reg {
        self.value_gpr(value)
    }

    fn pred(&mut self, value: Value) -> Reg {
        self.value_pred(value)
    }

    fn fits(&mut self, op: &MachOp, imm: i64) -> Option<i64> {
        forms::fits(self.arch, *op, imm).then_some(imm)
    }

    fn imm(&mut self, op: &MachOp, value: Value) -> Option<i64> {
        let signed = self.constant(value)?;
        self.fits(op, signed).or_else(|| self.uimm(op, value))
    }

    fn uimm(&mut self, op: &MachOp, value: Value) -> Option<i64> {
        let signed = self.constant(value)?;
        let ty = self.func.dfg.value_type(value);
        self.fits(op, signed & low_ones(ty.bits().into()))
    }

    fn shift_imm(&mut self, ty: Type, value: Value) -> Option<i64> {
        self.constant(value).map(|amount| amount & i64::from(ty.bits() - 1))
    }

    fn unsigned_const(&mut self, value: Value) -> Option<i64> {
        let bits = self.func.dfg.value_type(value).bits();
        self.constant(value).map(|signed| signed & low_ones(bits.into()))
    }

    fn signed_const(&mut self, value: Value) -> Option<i64> {
        self.constant(value)
    }

    fn zero_extended(&mut self, value: Value) -> bool {
        self.is_zero_extended(value, RANGE_DEPTH)
    }

    fn signed_bound(&mut self, value: Value, more: i64) -> Option<i64> {
        let bound = self.constant(value)?.checked_add(more)?;
        let bits = self.func.dfg.value_type(value).bits();
        let holds = bound >> (bits - 1) == bound >> 63;
        holds.then(|| self.fits(&MachOp::Subi, bound))?
    }

    fn no_signs(&mut self, x: Value, y: Value) -> bool {
        self.has_no_sign(x) && self.has_no_sign(y)
    }

    fn is_negative(&mut self, number: i64) -> bool {
        number < 0
    }

    fn scaled(&mut self, shift: i64, ty: Type) -> Option<i64> {
        let above = i64::from(64 - ty.bits());
        (shift <= above).then_some(above - shift)
    }

    fn log2_const(&mut self, value: Value, less: i64) -> Option<i64> {
        let bits = self.func.dfg.value_type(value).bits();
        let power = self.unsigned_const(value)?.wrapping_add(less).cast_unsigned();
        let exponent = power.is_power_of_two().then(|| power.trailing_zeros())?;
        (exponent < bits).then_some(exponent.into())
    }

    fn is_below(&mut self, value: Value, limit: i64) -> bool {
        self.largest(value, RANGE_DEPTH) < limit.cast_unsigned()
    }

    fn is_const(&mut self, wanted: i64, value: Value) -> Option<bool> {
        Some(self.constant(value) == Some(wanted))
    }

    fn defined_by(&mut self, value: Value) -> Option<Inst> {
        let inst = self.defining_inst(value)?;
        let opcode = self.func.dfg.insts[inst].opcode();
        let plain = !opcode.is_call() && !opcode.can_load() && !opcode.can_trap();
        (plain && !self.has_effect(inst)).then_some(inst)
    }

    fn defined_for_one(&mut self, value: Value) -> Option<Inst> {
        let value = self.func.dfg.resolve_aliases(value);
        (!self.shared[value]).then(|| self.defined_by(value))?
    }

    fn bool_value(&mut self, value: Value) -> Option<Value> {
        is_truth(self.func, &self.predicate_params, value).then_some(value)
    }

    fn konst(&mut self, value: i64) -> Reg {
        self.emit_const(value)
    }

    fn rr(&mut self, op: &MachOp, x: Reg) -> Reg {
        self.define(*op, RegClass::Gpr, [MOperand::Use(x)])
    }

    fn rrr(&mut self, op: &MachOp, x: Reg, y: Reg) -> Reg {
        self.define(*op, RegClass::Gpr, [MOperand::Use(x), MOperand::Use(y)])
    }

    fn rri(&mut self, op: &MachOp, x: Reg, imm: i64) -> Reg {
        self.define(*op, RegClass::Gpr, [MOperand::Use(x), MOperand::Imm(imm)])
    }

    fn mrr(&mut self, op: &MachOp, old: Reg, x: Reg, y: Reg) -> Reg {
        let new = self.new_gpr();
        self.emit_op(*op, [MOperand::Mod { old, new }, MOperand::Use(x), MOperand::Use(y)]);
        new
    }

    fn pr(&mut self, op: &MachOp, x: Reg) -> Reg {
        self.define(*op, RegClass::Pred, [MOperand::Use(x)])
    }

    fn prr(&mut self, op: &MachOp, x: Reg, y: Reg) -> Reg {
        self.define(*op, RegClass::Pred, [MOperand::Use(x), MOperand::Use(y)])
    }

    fn pp(&mut self, op: &MachOp, x: Reg) -> Reg {
        self.pr(op, x)
    }

    fn ppp(&mut self, op: &MachOp, x: Reg, y: Reg) -> Reg {
        self.prr(op, x, y)
    }

    fn choose(&mut self, condition: Reg, then: Reg, old: Reg) -> Reg {
        let new = self.new_gpr();
        self.inst_code.push(MInst::Op {
            opcode: MachOp::Ori,
            guard: Some(condition),
            operands: smallvec![MOperand::Mod { old, new }, MOperand::Use(then), MOperand::Imm(0)],
        });
        new
    }

    fn rri_if(&mut self, op: &MachOp, condition: Reg, old: Reg, imm: i64) -> Reg {
        let new = self.new_gpr();
        self.inst_code.push(MInst::Op {
            opcode: *op,
            guard: Some(condition),
            operands: smallvec![MOperand::Mod { old, new }, MOperand::Use(old), MOperand::Imm(imm)],
        });
        new
    }

    fn bool_reg(&mut self, pred: Reg) -> Reg {
        if self.arch.has_extension() {
            return self.define(MachOp::Ptor, RegClass::Gpr, [MOperand::Use(pred)]);
        }
        let old = self.emit_const(0);
        let new = self.new_gpr();
        self.inst_code.push(MInst::Op {
            opcode: MachOp::Ldi,
            guard: Some(pred),
            operands: smallvec![MOperand::Mod { old, new }, MOperand::Imm(1)],
        });
        new
    }

    fn load_at(&mut self, op: &MachOp, address: Value, offset: Offset32, extra: i64) -> Reg {
        let (base, offset) = self.address(*op, address, i64::from(offset) + extra);
        self.define(*op, RegClass::Gpr, [base, MOperand::Imm(offset)])
    }

    fn store_at(
        &mut self,
        op: &MachOp,
        value: Reg,
        address: Value,
        offset: Offset32,
        extra: i64,
    ) -> InstOutput {
        let (base, offset) = self.address(*op, address, i64::from(offset) + extra);
        self.emit_op(*op, [MOperand::Use(value), base, MOperand::Imm(offset)]);
        InstOutput(None)
    }

    fn aligned_load(&mut self, flags: MemFlags) -> Option<bool> {
        let aligned = self.func.dfg.mem_flags[flags].aligned();
        Some(aligned && self.little_endian(flags) == Some(true))
    }

    fn little_endian(&mut self, flags: MemFlags) -> Option<bool> {
        Some(self.func.dfg.mem_flags[flags].explicit_endianness() != Some(Endianness::Big))
    }

    fn narrow_load(&mut self, ty: Type) -> MachOp {
        match ty.bits() {
            8 => MachOp::Ldb,
            16 => MachOp::Ldh,
            _ => MachOp::Ldw,
        }
    }

    fn narrow_store(&mut self, ty: Type) -> MachOp {
        match ty.bits() {
            8 => MachOp::Stb,
            16 => MachOp::Sth,
            _ => MachOp::Stw,
        }
    }

    fn address_of(&mut self, address: Value, offset: Offset32) -> Reg {
        let base = self.value_gpr(address);
        match i64::from(offset) {
            0 => base,
            offset => constructor_add_imm(self, base, offset),
        }
    }

    fn store_word(&mut self, value: Reg, address: Reg) -> InstOutput {
        let operands = [MOperand::Use(value), MOperand::Use(address), MOperand::Imm(0)];
        self.emit_op(MachOp::St, operands);
        InstOutput(None)
    }

    fn amo(&mut self, ty: Type, op: &AtomicRmwOp) -> Option<MachOp> {
        let [word, half] = match op {
            AtomicRmwOp::Add => [MachOp::AmoAdd, MachOp::AmoAddw],
            AtomicRmwOp::And => [MachOp::AmoAnd, MachOp::AmoAndw],
            AtomicRmwOp::Or => [MachOp::AmoOr, MachOp::AmoOrw],
            AtomicRmwOp::Xor => [MachOp::AmoXor, MachOp::AmoXorw],
            AtomicRmwOp::Smin => [MachOp::AmoMin, MachOp::AmoMinw],
            AtomicRmwOp::Smax => [MachOp::AmoMax, MachOp::AmoMaxw],
            AtomicRmwOp::Umin => [MachOp::AmoMinu, MachOp::AmoMinuw],
            AtomicRmwOp::Umax => [MachOp::AmoMaxu, MachOp::AmoMaxuw],
            AtomicRmwOp::Xchg => [MachOp::AmoSwap, MachOp::AmoSwapw],
            AtomicRmwOp::Sub | AtomicRmwOp::Nand => return None,
        };
        self.atomic_form(ty, word, half)
    }

    fn compare_and_swap(&mut self, ty: Type) -> Option<MachOp> {
        self.atomic_form(ty, MachOp::Cas, MachOp::Casw)
    }

    fn both(&mut self, _first: InstOutput, second: InstOutput) -> InstOutput {
        second
    }

    fn no_output(&mut self) -> InstOutput {
        InstOutput(None)
    }

    fn output_reg(&mut self, reg: Reg) -> InstOutput {
        InstOutput(Some(reg))
    }
}

/// A number with the lowest `count` bits set, 0 to 64.
fn low_ones(count: i64) -> i64 {
    let zeros = u32::try_from(64 - count).unwrap_or(64);
    u64::MAX.checked_shr(zeros).unwrap_or(0).cast_signed()
}
