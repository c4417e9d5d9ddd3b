//! Library routines for operations that a machine lacks and that take hundreds of instructions.
//!
//! Legalization replaces the operation by a call (`legalize/float`, `legalize/wide/divide.rs`). The routine
//! is a function like any other: it consists of the operation itself in CLIF, compiled with the code in place
//! (`library.rs`). Objects that need a routine include it once, under a local name.
//!
//! All routines are leaves without control flow except loops of constant counts, so nothing diverges in them.
//! Their use of the stack is known before their callers are emitted.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::types::{F32, F64, I64};
use cranelift_codegen::ir::{
    AbiParam, ExtFuncData, ExternalName, FuncRef, Function, InstBuilder, Opcode, Signature, Type,
    UserFuncName,
};
use cranelift_codegen::isa::CallConv;

use crate::analysis::{Arguments, ResultFact};
use crate::width::Width;

/// A routine: an operation and the type of its operands and its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Routine {
    opcode: Opcode,
    ty: Type,
}

/// All routines with the linker's names, which users cannot define. Divisions give the remainder, too, and
/// their callers have checked that they do not trap.
const TABLE: [(Opcode, Type, &str); 13] = [
    (Opcode::Fadd, F64, "runtime.f64.add"),
    (Opcode::Fmul, F64, "runtime.f64.mul"),
    (Opcode::Fdiv, F64, "runtime.f64.div"),
    (Opcode::Sqrt, F64, "runtime.f64.sqrt"),
    (Opcode::Fma, F64, "runtime.f64.fma"),
    (Opcode::Fadd, F32, "runtime.f32.add"),
    (Opcode::Fsub, F32, "runtime.f32.sub"),
    (Opcode::Fmul, F32, "runtime.f32.mul"),
    (Opcode::Fdiv, F32, "runtime.f32.div"),
    (Opcode::Sqrt, F32, "runtime.f32.sqrt"),
    (Opcode::Fma, F32, "runtime.f32.fma"),
    (Opcode::Udiv, I64, "runtime.i64.udivrem"),
    (Opcode::Sdiv, I64, "runtime.i64.sdivrem"),
];

impl Routine {
    /// The routine for an operation on `ty`, if there is one.
    pub(crate) fn new(opcode: Opcode, ty: Type) -> Option<Routine> {
        let row = TABLE.iter().find(|row| (row.0, row.1) == (opcode, ty))?;
        Some(Routine { opcode: row.0, ty: row.1 })
    }

    /// The linker's names of all routines.
    #[cfg(test)]
    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        TABLE.iter().map(|row| row.2)
    }

    /// The routine with this linker's name, and the name.
    pub(crate) fn from_name(name: &str) -> Option<(&'static str, Routine)> {
        let row = TABLE.iter().find(|row| row.2 == name)?;
        Some((row.2, Routine { opcode: row.0, ty: row.1 }))
    }

    /// The signature for operands and results with the types in `held`: the operation's type, the integer of
    /// a float's bits, or the two halves of an integer.
    fn signature(self, held: &[Type]) -> Signature {
        let operands = match self.opcode {
            Opcode::Sqrt => 1,
            Opcode::Fma => 3,
            _ => 2,
        };
        let mut signature = Signature::new(CallConv::Fast);
        let results = match self.opcode {
            Opcode::Udiv | Opcode::Sdiv => 2,
            _ => 1,
        };
        let value: Vec<AbiParam> = held.iter().copied().map(AbiParam::new).collect();
        signature.params = value.repeat(operands);
        signature.returns = value.repeat(results);
        signature
    }

    /// Declares the routine in `func`, for operands and results with the types in `held`.
    pub(crate) fn declare(self, func: &mut Function, held: &[Type]) -> FuncRef {
        let row = TABLE.iter().find(|row| (row.0, row.1) == (self.opcode, self.ty));
        let (_, _, name) = row.expect("only routines of the table are made");
        let signature = func.import_signature(self.signature(held));
        func.import_function(ExtFuncData {
            name: ExternalName::testcase(*name),
            signature,
            colocated: true,
            patchable: false,
        })
    }

    /// The routine as CLIF.
    pub(crate) fn function(self, name: &str) -> Function {
        let name = UserFuncName::testcase(name);
        let mut func = Function::with_name_signature(name, self.signature(&[self.ty]));
        let block = func.dfg.make_block();
        func.layout.append_block(block);
        let params = func.signature.params.clone();
        let params: Vec<_> = params
            .iter()
            .map(|param| func.dfg.append_block_param(block, param.value_type))
            .collect();
        let mut at = FuncCursor::new(&mut func).at_bottom(block);
        let results = match (self.opcode, params.as_slice()) {
            (Opcode::Fadd, &[x, y]) => vec![at.ins().fadd(x, y)],
            (Opcode::Fsub, &[x, y]) => vec![at.ins().fsub(x, y)],
            (Opcode::Fmul, &[x, y]) => vec![at.ins().fmul(x, y)],
            (Opcode::Fdiv, &[x, y]) => vec![at.ins().fdiv(x, y)],
            (Opcode::Udiv, &[x, y]) => vec![at.ins().udiv(x, y), at.ins().urem(x, y)],
            (Opcode::Sdiv, &[x, y]) => vec![at.ins().sdiv(x, y), at.ins().srem(x, y)],
            (Opcode::Sqrt, &[x]) => vec![at.ins().sqrt(x)],
            (Opcode::Fma, &[x, y, z]) => vec![at.ins().fma(x, y, z)],
            _ => unreachable!("the table has no other operations"),
        };
        at.ins().return_(&results);
        func
    }
}

/// Whether a function with this linker's name is one of the routines.
pub(crate) fn is_routine(name: &str) -> bool {
    Routine::from_name(name).is_some()
}

/// What is known about the results of the routine with this linker's name: they depend on the operands only.
pub(crate) fn result_fact(name: &str) -> Option<ResultFact> {
    let depends = Arguments(u64::MAX);
    Routine::from_name(name).map(|_| ResultFact { width: Width::Grid, depends })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routines_are_the_operations_that_they_are_named_after() {
        for (opcode, ty, name) in TABLE {
            let routine = Routine::new(opcode, ty).unwrap();
            assert_eq!(Routine::from_name(name), Some((name, routine)));
            let func = routine.function(name);
            let first = func.layout.first_inst(func.layout.entry_block().unwrap()).unwrap();
            assert_eq!(func.dfg.insts[first].opcode(), opcode);
        }
    }
}
