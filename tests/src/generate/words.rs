//! Words that the work-items of a kernel share, beside what the kernel was given.

use cranelift_codegen::cursor::FuncCursor;
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Type, Value};
use cranelift_codegen::isa::CallConv;
use harp_isa::abi::ArgumentBlock;

use super::clif::{import, signature};
use crate::oracle::{Argument, Case, Elements, Start};

/// Words in memory, one behind the other.
#[derive(Clone, Copy)]
pub(super) struct Words {
    /// The type of a word.
    pub(super) ty: Type,
    /// Where in the argument block the address of the first one is.
    argument: i32,
}

impl Words {
    /// Adds a buffer of so many words, all 0, to the arguments of a launch. `None` for calls.
    pub(super) fn given(case: &mut Case, count: usize) -> Option<Words> {
        let (word, ty) = (case.word, case.functions.first()?.signature.params.first()?.value_type);
        let Start::Launch { args, .. } = &mut case.start else { return None };
        let before = args.iter().map(|arg| arg.ty().words(word)).sum();
        args.push(Argument::Buffer(Elements::Ints, vec![0; count * usize::from(word.bytes())]));
        Some(Words { ty, argument: ArgumentBlock::argument(before, word).cast_signed() })
    }

    /// The address of the first one.
    pub(super) fn start(self, at: &mut FuncCursor<'_>) -> Value {
        let entry = at.func.layout.entry_block().expect("a kernel has one");
        let arguments = at.func.dfg.block_params(entry)[0];
        let flags = MemFlagsData::trusted().with_readonly().with_can_move();
        at.ins().load(self.ty, flags, arguments, self.argument)
    }

    /// The address of one.
    pub(super) fn element(self, at: &mut FuncCursor<'_>, index: Value) -> Value {
        let start = self.start(at);
        let offset = at.ins().imul_imm_s(index, i64::from(self.ty.bytes()));
        at.ins().iadd(start, offset)
    }

    /// The number of the work-item in the first dimension, as a word.
    pub(super) fn item(self, at: &mut FuncCursor<'_>) -> Value {
        let signature = signature(CallConv::Fast, [], [self.ty]);
        let id = import(at.func, "harp_global_id_x", signature, true);
        let call = at.ins().call(id, &[]);
        at.func.dfg.first_result(call)
    }
}
