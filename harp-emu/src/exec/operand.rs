//! Operands in the form in which steps keep them.
//!
//! Registers are kept as numbers that the compiler knows to be valid indices of their file, so that the fast
//! path for all lanes, which reads two or three of them for every instruction, need not mask them first.

use std::fmt::Debug;

use harp_isa::{Gpr, Pred};

use crate::warp::FILE;

/// An operand that steps keep in a form of its own.
pub(crate) trait Operand: Copy {
    /// The form in which steps keep it.
    type Kept: Copy + Debug;
    fn keep(self) -> Self::Kept;
    fn given(kept: Self::Kept) -> Self;
}

/// Defines the numbers below [`FILE`].
macro_rules! numbers {
    ($($name:ident)*) => {
        /// The number of a register or a predicate: the compiler knows that it is less than [`FILE`].
        #[derive(Clone, Copy, Debug)]
        #[repr(u8)]
        pub(crate) enum Number {
            $($name),*
        }

        impl Number {
            const ALL: [Number; FILE] = [$(Number::$name),*];
        }
    };
}

numbers! {
    N0 N1 N2 N3 N4 N5 N6 N7 N8 N9 N10 N11 N12 N13 N14 N15
    N16 N17 N18 N19 N20 N21 N22 N23 N24 N25 N26 N27 N28 N29 N30 N31
    N32 N33 N34 N35 N36 N37 N38 N39 N40 N41 N42 N43 N44 N45 N46 N47
    N48 N49 N50 N51 N52 N53 N54 N55 N56 N57 N58 N59 N60 N61 N62 N63
}

/// Registers of either kind. Decoded ones have numbers below [`FILE`].
macro_rules! register {
    ($register:ty) => {
        impl Operand for $register {
            type Kept = Number;

            fn keep(self) -> Number {
                Number::ALL[usize::from(self.index()) % FILE]
            }

            #[inline(always)]
            fn given(kept: Number) -> Self {
                Self::new(kept as u8)
            }
        }
    };
}
register!(Gpr);
register!(Pred);

impl Operand for i64 {
    type Kept = i64;

    fn keep(self) -> i64 {
        self
    }

    #[inline(always)]
    fn given(kept: i64) -> i64 {
        kept
    }
}
