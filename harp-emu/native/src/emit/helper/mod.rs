//! Functions that regions call for accesses of memory: done where they are, each takes hundreds of bytes of host code for 32
//! lanes, and a region has many. The functions keep all registers of the host, so that a region loses nothing by a call but
//! the way of addresses and values through the frame.

mod anywhere;
mod row;

use cranelift_codegen::Context;
use cranelift_codegen::ir::{
    self, AbiParam, ExtFuncData, ExternalName, FuncRef, InstBuilder, Signature, UserExternalName,
    UserFuncName, Value, types,
};
use cranelift_codegen::isa::{CallConv, TargetFrontendConfig};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};

use super::Emitter;
use crate::shape::Shape;
use anywhere::Anywhere;
use row::Row;
pub(super) use row::has_many_rows;

/// What such a function does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Helper {
    Anywhere(Anywhere),
    Row(Row),
}

impl Emitter<'_, '_> {
    /// Calls a helper with the frame and an address.
    fn call_helper(&mut self, helper: Helper, address: Value) {
        let known = self.helpers.iter().find(|(other, _)| *other == helper);
        let function = known.map(|(_, function)| *function);
        let function = function.unwrap_or_else(|| self.declare_helper(helper));
        self.b.ins().call(function, &[self.frame, address]);
    }

    fn declare_helper(&mut self, helper: Helper) -> FuncRef {
        let index = u32::try_from(self.helpers.len()).unwrap_or(u32::MAX);
        let name = UserExternalName { namespace: 0, index };
        let name = ExternalName::user(self.b.func.declare_imported_user_function(name));
        let signature = self.b.import_signature(signature());
        let data = ExtFuncData { name, signature, colocated: true, patchable: false };
        let function = self.b.import_function(data);
        self.helpers.push((helper, function));
        function
    }
}

/// It takes the frame and an address of the host.
fn signature() -> Signature {
    let mut signature = Signature::new(CallConv::PreserveAll);
    signature.params.extend([AbiParam::new(types::I64); 2]);
    signature
}

impl Helper {
    /// The function, for machines with that much memory.
    pub(super) fn function(
        self,
        shape: Shape,
        memory_bytes: u64,
        config: TargetFrontendConfig,
    ) -> Context {
        let mut context = Context::new();
        context.func = ir::Function::with_name_signature(UserFuncName::user(0, 0), signature());
        let mut builder = FunctionBuilderContext::new();
        let mut b = FunctionBuilder::new(&mut context.func, &mut builder);
        let start = b.create_block();
        b.append_block_params_for_function_params(start);
        b.switch_to_block(start);
        let &[frame, address] = b.block_params(start) else { unreachable!("it takes two") };
        let mut b = match self {
            Helper::Anywhere(anywhere) => anywhere.body(b, (frame, address), shape, memory_bytes),
            Helper::Row(row) => row.body(b, (frame, address), shape),
        };
        b.seal_all_blocks();
        b.finalize(config);
        context
    }
}
