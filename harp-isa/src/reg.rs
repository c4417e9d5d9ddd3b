//! Register names, with separate types for general registers and predicates.

use std::fmt;

/// The two register files of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RegClass {
    /// General registers, one machine word wide.
    Gpr,
    /// Predicates, one bit wide.
    Pred,
}

/// A general register, `%r0` to `%r63`. How many of them a machine has, and which of them lanes share and
/// text calls `%s0` and so on, depends on its [`ArchId`](crate::ArchId); the encoder checks the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Gpr(u8);

/// A predicate register, `@p0` to `@p63`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pred(u8);

macro_rules! register {
    ($name:ident, $prefix:literal) => {
        impl $name {
            /// Register number `index`. Any number is accepted; encoders refuse registers that a machine lacks.
            pub const fn new(index: u8) -> Self {
                Self(index)
            }

            /// The number of the register.
            pub const fn index(self) -> u8 {
                self.0
            }
        }

        impl From<$name> for usize {
            fn from(reg: $name) -> usize {
                usize::from(reg.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    };
}

register!(Gpr, "%r");
register!(Pred, "@p");
