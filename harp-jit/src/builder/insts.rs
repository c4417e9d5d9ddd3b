//! The builder's methods for CLIF instructions.
//!
//! They have the names, parameters and results of Cranelift's trait `InstBuilder` (`build.rs` derives them
//! from the trait's text). The trait's own methods look up the types of operands, and Cranelift's builder
//! looks up the targets of branches, without checking that the kernel has them: a number that is not the
//! kernel's panics there. So the methods here wrap the trait's: values are checked before the trait sees
//! them, and everything else before the instruction is inserted. Misuse is kept as in the builder's other
//! methods, and something harmless with as many results is built in the instruction's place.

use std::fmt;

use cranelift_codegen::ir::entities::AnyEntity;
use cranelift_codegen::ir::{
    self, BlockArg, DataFlowGraph, Inst, InstBuilder, InstBuilderBase, InstructionData, MemFlags,
    MemFlagsData, Opcode, TrapCode, Type, Value, types,
};

use super::{Caller, KernelBuilder};
use crate::error::BuildErrorKind;
use crate::precheck::{Unknown, is_supported, unknown_in};

/// One method for each CLIF instruction, as of Cranelift's `InstBuilder`; see
/// [`KernelBuilder::ins`].
///
/// Misuse is found where it is made: values, blocks and other entities that are not of this kernel,
/// branches to blocks that are sealed, types that an instruction does not have. None of it panics;
/// [`KernelBuilder::finalize`] returns the first of it.
pub struct KernelInstBuilder<'short, 'long> {
    builder: &'short mut KernelBuilder<'long>,
    place: Caller,
}

include!(concat!(env!("OUT_DIR"), "/inst_methods.rs"));

impl<'short, 'long> KernelInstBuilder<'short, 'long> {
    pub(super) fn new(
        builder: &'short mut KernelBuilder<'long>,
        place: Caller,
    ) -> KernelInstBuilder<'short, 'long> {
        KernelInstBuilder { builder, place }
    }

    fn checked(self) -> CheckedInserter<'short, 'long> {
        CheckedInserter { builder: self.builder, place: self.place }
    }

    /// Returns the operand if the kernel has it, else a placeholder.
    fn value(&mut self, value: Value) -> Value {
        if self.builder.known(value, self.place) {
            return value;
        }
        self.builder.placeholder(self.builder.word_int())
    }

    fn values(&mut self, values: &[Value]) -> Vec<Value> {
        values.iter().map(|&value| self.value(value)).collect()
    }

    fn block_args<'a>(&mut self, args: impl IntoIterator<Item = &'a BlockArg>) -> Vec<BlockArg> {
        let args = args.into_iter().map(|&argument| match argument {
            BlockArg::Value(value) => BlockArg::Value(self.value(value)),
            BlockArg::TryCallRet(_) | BlockArg::TryCallExn(_) => {
                self.builder.fail(BuildErrorKind::BlockArgument { argument }, self.place);
                BlockArg::Value(self.builder.placeholder(self.builder.word_int()))
            }
        });
        args.collect()
    }

    /// Returns the flags if the kernel has room for another set of flags, else the first set that it has.
    fn flags(&mut self, given: MemFlagsData) -> MemFlagsData {
        if self.builder.inner.func.dfg.mem_flags.insert(given).is_ok() {
            return given;
        }
        self.builder.fail(BuildErrorKind::MemFlags { given }, self.place);
        let first = MemFlags::with_number(0).expect("flags are numbered from 0");
        self.builder.inner.func.dfg.mem_flags[first]
    }
}

impl fmt::Debug for KernelInstBuilder<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KernelInstBuilder").field("place", &self.place).finish_non_exhaustive()
    }
}

/// The inserter that the trait's methods use: it checks each instruction first.
struct CheckedInserter<'short, 'long> {
    builder: &'short mut KernelBuilder<'long>,
    place: Caller,
}

impl<'short> InstBuilderBase<'short> for CheckedInserter<'short, '_> {
    fn data_flow_graph(&self) -> &DataFlowGraph {
        &self.builder.inner.func.dfg
    }

    fn data_flow_graph_mut(&mut self) -> &mut DataFlowGraph {
        &mut self.builder.inner.func.dfg
    }

    fn build(self, data: InstructionData, ty: Type) -> (Inst, &'short mut DataFlowGraph) {
        let (data, ty) = match self.builder.misuse(&data, ty) {
            None => (data, ty),
            Some(kind) => {
                self.builder.fail(kind, self.place);
                self.builder.harmless(data.opcode(), ty)
            }
        };
        self.builder.inner.ins().build(data, ty)
    }

    fn build_aux_inst(&mut self, data: InstructionData, ty: Type) -> Inst {
        CheckedInserter { builder: self.builder, place: self.place }.build(data, ty).0
    }
}

impl KernelBuilder<'_> {
    /// Says why an instruction with this controlling type cannot be built, if it cannot.
    fn misuse(&self, data: &InstructionData, ty: Type) -> Option<BuildErrorKind> {
        let (func, opcode) = (&*self.inner.func, data.opcode());
        if let Some(unknown) = unknown_in(func, data) {
            return Some(match unknown {
                Unknown::Entity(AnyEntity::Value(value)) => BuildErrorKind::UnknownValue { value },
                Unknown::Entity(AnyEntity::Block(block)) => BuildErrorKind::UnknownBlock { block },
                other => BuildErrorKind::UnknownEntity { opcode, entity: other.to_string() },
            });
        }
        if let Some(allowed) = opcode.constraints().ctrl_typeset()
            && !allowed.contains(ty)
        {
            return Some(BuildErrorKind::ControllingType { opcode, given: ty });
        }
        let targets = data.branch_destination(&func.dfg.jump_tables, &func.dfg.exception_tables);
        let mut targets = targets.iter().map(|call| call.block(&func.dfg.value_lists));
        let sealed = targets.find(|&block| self.sealed.contains(block));
        sealed.map(|block| BuildErrorKind::BlockSealed { block })
    }

    /// The replacement of an instruction that cannot be built: it has as many results, of the instruction's
    /// controlling type or the word's, and ends the block if the instruction does.
    fn harmless(&mut self, opcode: Opcode, ty: Type) -> (InstructionData, Type) {
        if opcode.is_terminator() {
            let code = TrapCode::HEAP_OUT_OF_BOUNDS;
            return (InstructionData::Trap { opcode: Opcode::Trap, code }, types::INVALID);
        }
        let word = self.word_int();
        match opcode.constraints().num_fixed_results() {
            0 => (InstructionData::NullAry { opcode: Opcode::Nop }, types::INVALID),
            1 => {
                let ty = if is_supported(ty) && ty.is_int() { ty } else { word };
                (InstructionData::UnaryImm { opcode: Opcode::Iconst, imm: 0.into() }, ty)
            }
            _ => {
                // No instruction has more than two results.
                let operand = self.placeholder(word);
                let args = [operand; 2];
                (InstructionData::Binary { opcode: Opcode::UaddOverflow, args }, word)
            }
        }
    }
}
