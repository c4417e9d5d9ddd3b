//! Kernel parameters: how each type is stored in the argument block.

use std::fmt;

use crate::abi::word_int;
use cranelift_codegen::cursor::FuncCursor;
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Type, Value, types};
use harp_isa::WordSize;

/// The type of a kernel parameter.
///
/// Each parameter takes one word of the argument block; on machines with 4-byte words `I64` and `F64` take
/// two, the low half first. Integers and floats smaller than the word are stored in its low bits; the bits
/// above are not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ParamType {
    /// An address in the device's memory, one word.
    Pointer,
    /// 8 bits.
    I8,
    /// 16 bits.
    I16,
    /// 32 bits.
    I32,
    /// 64 bits.
    I64,
    /// IEEE binary32.
    F32,
    /// IEEE binary64.
    F64,
}

impl ParamType {
    /// The CLIF type on a machine with this word size.
    pub fn clif_type(self, word: WordSize) -> Type {
        match self {
            ParamType::Pointer => word_int(word),
            ParamType::I8 => types::I8,
            ParamType::I16 => types::I16,
            ParamType::I32 => types::I32,
            ParamType::I64 => types::I64,
            ParamType::F32 => types::F32,
            ParamType::F64 => types::F64,
        }
    }

    /// How many words of the argument block a parameter of this type takes.
    pub fn words(self, word: WordSize) -> u32 {
        self.clif_type(word).bytes().div_ceil(word.bytes().into())
    }

    /// Loads the parameter from its words at `offset` of the argument block.
    pub(super) fn load(
        self,
        at: &mut FuncCursor<'_>,
        block: Value,
        offset: i32,
        word: WordSize,
    ) -> Value {
        let (word_ty, ty) = (word_int(word), self.clif_type(word));
        let flags = argument_flags();
        if ty.bytes() >= word_ty.bytes() {
            return at.ins().load(ty, flags, block, offset);
        }
        let loaded = at.ins().load(word_ty, flags, block, offset);
        let bits = at.ins().ireduce(ty.as_int(), loaded);
        if ty.is_float() { at.ins().bitcast(ty, MemFlagsData::new(), bits) } else { bits }
    }
}

/// Flags of loads from the argument block: no lane writes it during a launch, and its address is valid.
pub(super) fn argument_flags() -> MemFlagsData {
    MemFlagsData::new().with_notrap().with_aligned().with_readonly().with_can_move()
}

impl fmt::Display for ParamType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ParamType::Pointer => "pointer",
            ParamType::I8 => "i8",
            ParamType::I16 => "i16",
            ParamType::I32 => "i32",
            ParamType::I64 => "i64",
            ParamType::F32 => "f32",
            ParamType::F64 => "f64",
        })
    }
}
