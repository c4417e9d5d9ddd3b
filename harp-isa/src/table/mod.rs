//! The instruction table and the types that are generated from it.
//!
//! Each family's file holds rows of the form
//!
//! ```text
//! /// What the instruction does.
//! <space> <number> <Variant> <method> "<mnemonic>" (<name>: <role> <type>, ...) [<flags>];
//! ```
//!
//! * `space` is `base` for the 6-bit opcode and `ext` for the `funct` of extension X;
//! * operands are in assembly order; `role` is `Def`, `Use`, `Mod` for the types `Gpr` and `Pred`,
//!   and `Imm` for the types `Imm` (used as a value) and `Rel` (counted from the next instruction);
//! * flags are the names of [`OpcodeFlags`].
//!
//! An instruction added here appears in the encoders, the printer and the assembler, and every
//! [`Visitor`] fails to compile until it implements the instruction.

use crate::arch::WordSize;
use crate::opcode::{OpcodeFlags, OperandDesc, OperandKind, Role, Space};
use crate::operand::Operand;
use crate::reg::{Gpr, Pred};

mod atomic;
mod control;
mod float;
mod integer;
mod memory;
mod operand;
mod predicate;
mod simt;
mod system;

use atomic::atomic;
use control::control;
use float::float;
use integer::integer;
use memory::memory;
pub use operand::OperandError;
use operand::TypedOperand;
use predicate::predicate;
use simt::simt;
use system::system;

/// An immediate, used as a value.
pub type Imm = i64;
/// A displacement in bytes from the next instruction.
pub type Rel = i64;

/// Collects the rows of the families and passes them to a macro.
macro_rules! collect {
    ($callback:ident; [$($rows:tt)*]) => { $callback! { $($rows)* } };
    ($callback:ident; [$($rows:tt)*] $family:ident $($rest:ident)*) => {
        $family! { collect; $callback; [$($rows)*] $($rest)* }
    };
}

macro_rules! kind {
    (Imm Imm) => {
        OperandKind::Imm
    };
    (Imm Rel) => {
        OperandKind::Rel
    };
    ($role:ident $ty:ident) => {
        OperandKind::$ty(Role::$role)
    };
}

macro_rules! space {
    (base $number:literal) => {
        Space::Base($number)
    };
    (ext $number:literal) => {
        Space::Extension($number)
    };
}

macro_rules! define_instructions {
    ($(
        $(#[$doc:meta])*
        $space:ident $number:literal $variant:ident $method:ident $mnemonic:literal
        ($($field:ident: $role:ident $ty:ident),*) [$($flag:ident)*];
    )*) => {
        /// An instruction without its operands: a key into the table.
        ///
        /// Neither this nor [`Op`] is `#[non_exhaustive]`: code that handles every instruction should not compile
        /// until it handles a new one.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Opcode {
            $($(#[$doc])* $variant,)*
        }

        /// An instruction with its operands, without its guard.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[expect(missing_docs, reason = "the operands' names are those of the variant's description")]
        pub enum Op {
            $($(#[$doc])* $variant { $($field: $ty),* },)*
        }

        /// One method per instruction, for code that gives every instruction a meaning.
        pub trait Visitor {
            /// What a method returns.
            type Output;
            $($(#[$doc])* fn $method(&mut self, $($field: $ty),*) -> Self::Output;)*
        }

        impl Opcode {
            /// Every opcode, in the order of the table.
            pub const ALL: &'static [Opcode] = &[$(Opcode::$variant),*];

            /// The name in assembly text.
            pub const fn mnemonic(self) -> &'static str {
                match self { $(Opcode::$variant => $mnemonic,)* }
            }

            /// The name of the variant, as in `Opcode::Add`.
            pub const fn variant_name(self) -> &'static str {
                match self { $(Opcode::$variant => stringify!($variant),)* }
            }

            /// The opcode's number and space.
            pub const fn space(self) -> Space {
                match self { $(Opcode::$variant => space!($space $number),)* }
            }

            /// The operands in assembly order.
            pub const fn operands(self) -> &'static [OperandDesc] {
                match self { $(
                    Opcode::$variant => &[$(
                        OperandDesc { name: stringify!($field), kind: kind!($role $ty) }
                    ),*],
                )* }
            }

            /// Properties that do not follow from the operands.
            pub const fn flags(self) -> OpcodeFlags {
                match self { $(
                    Opcode::$variant => OpcodeFlags::empty()$(.union(OpcodeFlags::$flag))*,
                )* }
            }
        }

        impl Op {
            /// The opcode.
            pub const fn opcode(&self) -> Opcode {
                match self { $(Op::$variant { .. } => Opcode::$variant,)* }
            }

            /// Calls `visit` with each operand in assembly order.
            pub fn for_each_operand(&self, mut visit: impl FnMut(Operand)) {
                match *self { $(Op::$variant { $($field),* } => { $(visit(Operand::from($field));)* })* }
            }

            /// Calls the method of `visitor` for this instruction.
            #[inline(always)]
            pub fn accept<V: Visitor + ?Sized>(&self, visitor: &mut V) -> V::Output {
                match *self { $(Op::$variant { $($field),* } => visitor.$method($($field),*),)* }
            }

            /// The instruction `opcode` with `operands` in assembly order.
            ///
            /// # Errors
            ///
            /// If the number or the kinds of the operands are not those of the table.
            pub fn from_operands(opcode: Opcode, operands: &[Operand]) -> Result<Op, OperandError> {
                let expected = opcode.operands().len();
                if operands.len() != expected {
                    return Err(OperandError::Count { opcode, expected, given: operands.len() });
                }
                let mut next = operands.iter().copied().enumerate();
                let mut take = || next.next().expect("the count was checked");
                Ok(match opcode { $(
                    Opcode::$variant => Op::$variant {
                        $($field: { let (index, o) = take(); $ty::take(o, opcode, index)? }),*
                    },
                )* })
            }
        }
    };
}

collect! { define_instructions; [] integer predicate float memory atomic control simt system }

/// Makes the rows available to other crates. `$d` is a dollar sign.
macro_rules! export_rows {
    ($d:tt $(
        $(#[$doc:meta])*
        $space:ident $number:literal $variant:ident $method:ident $mnemonic:literal
        ($($field:ident: $role:ident $ty:ident),*) [$($flag:ident)*];
    )*) => {
        /// Calls a macro with a row `Variant method(operand: Type, ...);` for each instruction, in the
        /// order of the table, after the other arguments given. It serves to define types like
        /// [`Op`](crate::Op) and [`Visitor`](crate::Visitor) with additional instructions; the operand types are
        /// this crate's.
        #[macro_export]
        macro_rules! for_each_instruction {
            ($d callback:ident! { $d($d rest:tt)* }) => {
                $d callback! { $d($d rest)* $($variant $method($($field: $ty),*);)* }
            };
        }
    };
}

collect! { export_rows; [$] integer predicate float memory atomic control simt system }

impl Opcode {
    /// Whether the instruction belongs to extension X.
    pub const fn is_extension(self) -> bool {
        matches!(self.space(), Space::Extension(_)) || self.flags().contains(OpcodeFlags::EXTENSION)
    }

    /// How many bytes the instruction accesses at an aligned address; `None` if it does not access memory.
    pub const fn access_bytes(self, word: WordSize) -> Option<u8> {
        let flags = self.flags();
        let accesses = OpcodeFlags::LOAD.union(OpcodeFlags::STORE).union(OpcodeFlags::ATOMIC);
        if !flags.intersects(accesses) {
            return None;
        }
        Some(match self {
            Opcode::Ldb | Opcode::Ldbs | Opcode::Stb => 1,
            Opcode::Ldh | Opcode::Ldhs | Opcode::Sth => 2,
            Opcode::Ldw | Opcode::Ldws | Opcode::Stw => 4,
            _ if flags.contains(OpcodeFlags::ATOMIC.union(OpcodeFlags::WORD8)) => 4,
            _ => word.bytes(),
        })
    }

    /// The opcode with that mnemonic.
    pub fn from_mnemonic(mnemonic: &str) -> Option<Opcode> {
        Opcode::ALL.iter().copied().find(|op| op.mnemonic() == mnemonic)
    }
}
