//! The compiled rules, with the names that they expect in scope.

pub(super) use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
pub(super) use cranelift_codegen::ir::immediates::Offset32;
pub(super) use cranelift_codegen::ir::types::{F32, F64, I8, I16, I32, I64};
pub(super) use cranelift_codegen::ir::{
    AtomicRmwOp, BlockCall, Inst, InstructionData, MemFlags, Opcode, Type, Value, ValueList,
};
pub(super) use harp_isa::Opcode as MachOp;

pub(super) use crate::vcode::Reg;

pub(super) type ValueSlice = (ValueList, usize);
pub(super) type ValueArray2 = [Value; 2];
pub(super) type ValueArray3 = [Value; 3];
pub(super) type BlockArray2 = [BlockCall; 2];

/// The output of a rule: the register of the result, if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InstOutput(pub(super) Option<Reg>);

#[allow(
    missing_debug_implementations,
    unreachable_pub,
    unused,
    unused_qualifications,
    clippy::all,
    clippy::semicolon_if_nothing_returned,
    clippy::uninlined_format_args,
    reason = "the code is generated; what its style is like, ISLE decides"
)]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/isle.rs"));
}

pub(super) use generated::{
    Context, constructor_add_imm, constructor_and_imm, constructor_lower, constructor_lower_pred,
    constructor_sext, constructor_zext, constructor_zext_reg,
};
