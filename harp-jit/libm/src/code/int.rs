//! Operations on integers.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, types};

use super::{Bool, Int, Real};
use crate::table::Float;

impl<'c> Int<'c> {
    pub(super) fn constant(self, number: i64) -> Int<'c> {
        let ty = self.code.with(|b| b.func.dfg.value_type(self.value));
        self.code.int_of(ty, number)
    }

    /// The float with these bits.
    pub(crate) fn as_bits(self) -> Real<'c> {
        let ty = self.code.float.ty();
        let value = self.code.with(|b| b.ins().bitcast(ty, MemFlagsData::new(), self.value));
        Real { code: self.code, value }
    }

    /// The float nearest to this signed number.
    pub(crate) fn to_real(self) -> Real<'c> {
        let ty = self.code.float.ty();
        Real { code: self.code, value: self.code.with(|b| b.ins().fcvt_from_sint(ty, self.value)) }
    }

    /// The float nearest to this unsigned number.
    pub(crate) fn unsigned_to_real(self) -> Real<'c> {
        let ty = self.code.float.ty();
        Real { code: self.code, value: self.code.with(|b| b.ins().fcvt_from_uint(ty, self.value)) }
    }

    /// OpenCL's `int` made as wide as the format.
    pub(crate) fn widened(self) -> Int<'c> {
        match self.code.float {
            Float::F32 => self,
            Float::F64 => {
                Int { value: self.code.with(|b| b.ins().sextend(types::I64, self.value)), ..self }
            }
        }
    }

    /// The low bits as OpenCL's `int`.
    pub(crate) fn narrowed(self) -> Int<'c> {
        match self.code.float {
            Float::F32 => self,
            Float::F64 => {
                Int { value: self.code.with(|b| b.ins().ireduce(types::I32, self.value)), ..self }
            }
        }
    }

    /// Shifted to the right, zeros come in.
    pub(crate) fn shr_zeros(self, by: u32) -> Int<'c> {
        self.shr_zeros_by(self.constant(by.into()))
    }

    /// The same by a variable number of bits.
    pub(crate) fn shr_zeros_by(self, by: Int<'c>) -> Int<'c> {
        Int { value: self.code.with(|b| b.ins().ushr(self.value, by.value)), ..self }
    }

    /// The upper half of the unsigned product.
    pub(crate) fn mul_high(self, other: Int<'c>) -> Int<'c> {
        Int { value: self.code.with(|b| b.ins().umulhi(self.value, other.value)), ..self }
    }

    fn compare(self, cc: IntCC, other: impl IntoInt<'c>) -> Bool<'c> {
        let other = other.into_int(self);
        let value = self.code.with(|b| b.ins().icmp(cc, self.value, other.value));
        Bool { code: self.code, value }
    }

    pub(crate) fn lt(self, other: impl IntoInt<'c>) -> Bool<'c> {
        self.compare(IntCC::SignedLessThan, other)
    }

    pub(crate) fn gt(self, other: impl IntoInt<'c>) -> Bool<'c> {
        self.compare(IntCC::SignedGreaterThan, other)
    }

    /// Whether it is less, as unsigned numbers.
    pub(crate) fn below(self, other: impl IntoInt<'c>) -> Bool<'c> {
        self.compare(IntCC::UnsignedLessThan, other)
    }

    pub(crate) fn equals(self, other: impl IntoInt<'c>) -> Bool<'c> {
        self.compare(IntCC::Equal, other)
    }

    pub(crate) fn differs(self, other: impl IntoInt<'c>) -> Bool<'c> {
        self.compare(IntCC::NotEqual, other)
    }

    /// The smaller of two signed numbers.
    pub(crate) fn min(self, other: impl IntoInt<'c>) -> Int<'c> {
        let other = other.into_int(self);
        self.lt(other).select(self, other)
    }

    /// The larger of two signed numbers.
    pub(crate) fn max(self, other: impl IntoInt<'c>) -> Int<'c> {
        let other = other.into_int(self);
        self.lt(other).select(other, self)
    }

    /// Whether the lowest bit is set.
    pub(crate) fn is_odd(self) -> Bool<'c> {
        (self & 1).differs(0)
    }
}

/// A number or a value of the same type.
pub(crate) trait IntoInt<'c> {
    fn into_int(self, like: Int<'c>) -> Int<'c>;
}

impl<'c> IntoInt<'c> for i64 {
    fn into_int(self, like: Int<'c>) -> Int<'c> {
        like.constant(self)
    }
}

impl<'c> IntoInt<'c> for Int<'c> {
    fn into_int(self, _: Int<'c>) -> Int<'c> {
        self
    }
}
