//! The contents of a function, found out in one walk, so that a step with nothing to do needs no walk of its
//! own.

use cranelift_codegen::ir::types::{F32, F64, I64, I128};
use cranelift_codegen::ir::{Function, Opcode, Type};

/// The opcodes of a function.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Opcodes([u64; 4]);

impl Opcodes {
    /// The opcodes of the instructions in the layout; the function may be malformed.
    pub(crate) fn of(func: &Function) -> Opcodes {
        let mut found = Opcodes::default();
        for inst in func.layout.blocks().flat_map(|block| func.layout.block_insts(block)) {
            let number = func.dfg.insts[inst].opcode() as u8;
            found.0[usize::from(number / 64)] |= 1 << (number % 64);
        }
        found
    }

    pub(super) fn contain(&self, opcode: Opcode) -> bool {
        let number = opcode as u8;
        self.0[usize::from(number / 64)] >> (number % 64) & 1 != 0
    }

    pub(crate) fn contain_any(&self, opcodes: &[Opcode]) -> bool {
        opcodes.iter().any(|&opcode| self.contain(opcode))
    }
}

/// The types that may occur in a function, including those of values outside its layout.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Types {
    pub(super) has_i64: bool,
    pub(super) has_i128: bool,
    /// `f32` or `f64`.
    pub(super) has_floats: bool,
}

impl Types {
    pub(super) fn of(func: &Function) -> Types {
        let mut types = Types::default();
        for signature in func.dfg.signatures.values().chain([&func.signature]) {
            let params = signature.params.iter().chain(&signature.returns);
            params.for_each(|param| types.add(param.value_type));
        }
        func.dfg.values().for_each(|value| types.add(func.dfg.value_type(value)));
        types
    }

    fn add(&mut self, ty: Type) {
        self.has_i64 |= ty == I64;
        self.has_i128 |= ty == I128;
        self.has_floats |= ty == F32 || ty == F64;
    }
}
