//! Atomic operations.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, AtomicRmwOp, InstBuilder, MemFlagsData};
use rspirv::spirv::Op;

use super::imported::Atomic;
use crate::error::{Result, SpirvErrorKind};
use crate::function::Translator;
use crate::reader::{Id, Instruction};
use crate::types::Kind;
use crate::values::Parts;

/// The operations that take an integer: of the instruction, of CLIF.
const ROWS: [(Op, AtomicRmwOp); 10] = [
    (Op::AtomicExchange, AtomicRmwOp::Xchg),
    (Op::AtomicIAdd, AtomicRmwOp::Add),
    (Op::AtomicISub, AtomicRmwOp::Sub),
    (Op::AtomicSMin, AtomicRmwOp::Smin),
    (Op::AtomicUMin, AtomicRmwOp::Umin),
    (Op::AtomicSMax, AtomicRmwOp::Smax),
    (Op::AtomicUMax, AtomicRmwOp::Umax),
    (Op::AtomicAnd, AtomicRmwOp::And),
    (Op::AtomicOr, AtomicRmwOp::Or),
    (Op::AtomicXor, AtomicRmwOp::Xor),
];

impl Translator<'_, '_, '_> {
    /// Translates an instruction of this family; false if it is of another one.
    pub(super) fn atomic(&mut self, inst: Instruction<'_>) -> Result<bool> {
        if let Some(&(_, op)) = ROWS.iter().find(|(row, _)| *row == inst.op) {
            let (address, ty) = self.atomic_place(inst.word(0)?)?;
            let value = self.value_of(inst.word(3)?, ty)?.parts[0];
            let old = self.exchange(op, address, value);
            self.old_value(inst, ty, old)?;
            return Ok(true);
        }
        match inst.op {
            Op::AtomicIIncrement | Op::AtomicIDecrement => {
                let (address, ty) = self.atomic_place(inst.word(0)?)?;
                let one = self.one(inst.word(0)?, ty)?;
                let op = match inst.op {
                    Op::AtomicIIncrement => AtomicRmwOp::Add,
                    _ => AtomicRmwOp::Sub,
                };
                let old = self.exchange(op, address, one);
                self.old_value(inst, ty, old)?;
            }
            Op::AtomicLoad => {
                let (address, ty) = self.atomic_place(inst.word(0)?)?;
                let leaf = self.leaf_types(ty)?[0];
                let old = self.b.ins().atomic_load(leaf.as_int(), flags(), address);
                self.old_value(inst, ty, old)?;
            }
            Op::AtomicStore => {
                let (address, ty) = self.atomic_place(inst.word(0)?)?;
                let value = self.value_of(inst.word(3)?, ty)?.parts[0];
                let bits = self.as_integer(value);
                self.b.ins().atomic_store(flags(), bits, address);
            }
            Op::AtomicCompareExchange | Op::AtomicCompareExchangeWeak => {
                let (address, ty) = self.atomic_place(inst.word(0)?)?;
                let value = self.value_of(inst.word(4)?, ty)?.parts[0];
                let expected = self.value_of(inst.word(5)?, ty)?.parts[0];
                let (value, expected) = (self.as_integer(value), self.as_integer(expected));
                let old = self.b.ins().atomic_cas(flags(), address, expected, value);
                self.old_value(inst, ty, old)?;
            }
            Op::AtomicFlagTestAndSet => {
                let (address, ty) = self.atomic_place(inst.word(0)?)?;
                let one = self.one(inst.word(0)?, ty)?;
                let old = self.exchange(AtomicRmwOp::Xchg, address, one);
                let was_set = self.b.ins().icmp_imm_u(IntCC::NotEqual, old, 0);
                self.check_type(inst, super::Of::Bool, 1)?;
                self.set(inst, Parts::from_slice(&[was_set]))?;
            }
            Op::AtomicFlagClear => {
                let (address, ty) = self.atomic_place(inst.word(0)?)?;
                let leaf = self.leaf_types(ty)?[0];
                let zero = self.bits(leaf, 0);
                self.b.ins().atomic_store(flags(), zero, address);
            }
            Op::AtomicFAddEXT | Op::AtomicFMinEXT | Op::AtomicFMaxEXT => {
                let (address, ty) = self.atomic_place(inst.word(0)?)?;
                let value = self.float_operand(inst.word(3)?, ty)?;
                let old = self.float_loop(inst.op, address, value);
                self.old_value(inst, ty, old)?;
            }
            Op::MemoryBarrier => {
                self.b.ins().fence();
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Calls a function that does an atomic operation. Its pointer may be to bytes.
    pub(super) fn atomic_function(&mut self, inst: Instruction<'_>, what: Atomic) -> Result<()> {
        let (pointer, ty) = (inst.word(0)?, inst.ty);
        let address = self.pointer(pointer)?.0.parts[0];
        if !matches!(self.module.types.kind(ty)?, Kind::Int { .. } | Kind::Float { bits: 32 | 64 })
        {
            return Err(self.mismatch(pointer, ty, "a number".to_owned()));
        }
        let old = match what {
            Atomic::WithOne(op) => {
                let one = self.one(pointer, ty)?;
                self.exchange(op, address, one)
            }
            Atomic::With(op) => {
                let value = self.value_of(inst.word(1)?, ty)?.parts[0];
                self.exchange(op, address, value)
            }
            Atomic::OnFloat(op) => {
                let value = self.float_operand(inst.word(1)?, ty)?;
                self.float_loop(op, address, value)
            }
        };
        self.old_value(inst, ty, old)
    }

    /// The float that an operand is.
    fn float_operand(&mut self, operand: Id, ty: Id) -> Result<ir::Value> {
        let value = self.value_of(operand, ty)?.parts[0];
        match self.b.func.dfg.value_type(value).is_float() {
            true => Ok(value),
            false => Err(self.mismatch(operand, ty, "a float".to_owned())),
        }
    }

    /// The address that an operand is, and the type of the number there.
    fn atomic_place(&mut self, pointer: Id) -> Result<(ir::Value, Id)> {
        let (value, _, ty) = self.pointer(pointer)?;
        match self.module.types.kind(ty)? {
            Kind::Int { .. } | Kind::Float { bits: 32 | 64 } | Kind::Pointer { .. } => {
                Ok((value.parts[0], ty))
            }
            _ => Err(self.mismatch(pointer, ty, "a number".to_owned())),
        }
    }

    fn one(&mut self, pointer: Id, ty: Id) -> Result<ir::Value> {
        if !matches!(self.module.types.kind(ty)?, Kind::Int { .. }) {
            return Err(self.mismatch(pointer, ty, "an integer".to_owned()));
        }
        let leaf = self.leaf_types(ty)?[0];
        Ok(self.b.ins().iconst(leaf, 1))
    }

    /// A number as the integer with its bits.
    fn as_integer(&mut self, value: ir::Value) -> ir::Value {
        if self.b.func.dfg.value_type(value).is_float() { self.float_bits(value) } else { value }
    }

    fn exchange(&mut self, op: AtomicRmwOp, address: ir::Value, value: ir::Value) -> ir::Value {
        let bits = self.as_integer(value);
        let ty = self.b.func.dfg.value_type(bits);
        self.b.ins().atomic_rmw(ty, flags(), op, address, bits)
    }

    /// Sets the result to the old value, whose bits are `old`.
    fn old_value(&mut self, inst: Instruction<'_>, ty: Id, old: ir::Value) -> Result<()> {
        if inst.ty != ty {
            return Err(SpirvErrorKind::malformed("the result is of another type"));
        }
        let leaf = self.leaf_types(ty)?[0];
        let old = if leaf.is_float() {
            self.b.ins().bitcast(leaf, MemFlagsData::new(), old)
        } else {
            old
        };
        self.set(inst, Parts::from_slice(&[old]))
    }

    /// Replaces a float in memory until nobody else has changed it in between; returns the old bits.
    fn float_loop(&mut self, op: Op, address: ir::Value, value: ir::Value) -> ir::Value {
        let ty = self.b.func.dfg.value_type(value);
        let int = ty.as_int();
        let [head, after] = [(); 2].map(|()| self.b.create_block());
        let old = self.b.append_block_param(head, int);
        let first = self.b.ins().atomic_load(int, flags(), address);
        self.b.ins().jump(head, &[first.into()]);
        self.b.switch_to_block(head);
        let number = self.b.ins().bitcast(ty, MemFlagsData::new(), old);
        let new = match op {
            Op::AtomicFAddEXT => self.b.ins().fadd(number, value),
            Op::AtomicFMinEXT => self.b.ins().fmin(number, value),
            _ => self.b.ins().fmax(number, value),
        };
        let new = self.float_bits(new);
        let found = self.b.ins().atomic_cas(flags(), address, old, new);
        let same = self.b.ins().icmp(IntCC::Equal, found, old);
        self.b.ins().brif(same, after, &[], head, &[found.into()]);
        self.b.switch_to_block(after);
        old
    }
}

/// Flags of atomic accesses, which are aligned.
fn flags() -> MemFlagsData {
    MemFlagsData::new().with_aligned()
}
