//! Operators on values.

use std::ops;

use cranelift_codegen::ir::InstBuilder;

use super::{Bool, Int, Real};

macro_rules! operators {
    ($($operator:ident $method:ident $ty:ident $number:ident $constant:ident $instruction:ident;)*) => {$(
        impl<'c> ops::$operator for $ty<'c> {
            type Output = $ty<'c>;

            fn $method(self, other: $ty<'c>) -> $ty<'c> {
                let value = self.code.with(|b| b.ins().$instruction(self.value, other.value));
                $ty { value, ..self }
            }
        }

        impl<'c> ops::$operator<$number> for $ty<'c> {
            type Output = $ty<'c>;

            fn $method(self, other: $number) -> $ty<'c> {
                ops::$operator::$method(self, self.$constant(other))
            }
        }

        impl<'c> ops::$operator<$ty<'c>> for $number {
            type Output = $ty<'c>;

            fn $method(self, other: $ty<'c>) -> $ty<'c> {
                ops::$operator::$method(other.$constant(self), other)
            }
        }
    )*};
}

operators! {
    Add add Real f64 constant fadd;
    Sub sub Real f64 constant fsub;
    Mul mul Real f64 constant fmul;
    Div div Real f64 constant fdiv;
    Add add Int i64 constant iadd;
    Sub sub Int i64 constant isub;
    Mul mul Int i64 constant imul;
    BitAnd bitand Int i64 constant band;
    BitOr bitor Int i64 constant bor;
    BitXor bitxor Int i64 constant bxor;
    Rem rem Int i64 constant urem;
    Div div Int i64 constant udiv;
}

impl<'c> ops::Neg for Real<'c> {
    type Output = Real<'c>;

    fn neg(self) -> Real<'c> {
        self.unary(|b, x| b.ins().fneg(x))
    }
}

impl<'c> ops::Neg for Int<'c> {
    type Output = Int<'c>;

    fn neg(self) -> Int<'c> {
        Int { value: self.code.with(|b| b.ins().ineg(self.value)), ..self }
    }
}

impl<'c> ops::BitAnd for Bool<'c> {
    type Output = Bool<'c>;

    fn bitand(self, other: Bool<'c>) -> Bool<'c> {
        Bool { value: self.code.with(|b| b.ins().band(self.value, other.value)), ..self }
    }
}

impl<'c> ops::BitOr for Bool<'c> {
    type Output = Bool<'c>;

    fn bitor(self, other: Bool<'c>) -> Bool<'c> {
        Bool { value: self.code.with(|b| b.ins().bor(self.value, other.value)), ..self }
    }
}

impl<'c> ops::Shl<u32> for Int<'c> {
    type Output = Int<'c>;

    fn shl(self, by: u32) -> Int<'c> {
        self << self.constant(by.into())
    }
}

impl<'c> ops::Shl<Int<'c>> for Int<'c> {
    type Output = Int<'c>;

    fn shl(self, by: Int<'c>) -> Int<'c> {
        Int { value: self.code.with(|b| b.ins().ishl(self.value, by.value)), ..self }
    }
}

/// Arithmetic: copies of the sign come in.
impl<'c> ops::Shr<u32> for Int<'c> {
    type Output = Int<'c>;

    fn shr(self, by: u32) -> Int<'c> {
        let by = self.constant(by.into());
        Int { value: self.code.with(|b| b.ins().sshr(self.value, by.value)), ..self }
    }
}
