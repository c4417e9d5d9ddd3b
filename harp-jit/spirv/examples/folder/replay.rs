//! Builds a function again, as a host program with its own front end would: call by call, by cranelift-frontend.

use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::instructions::InstructionMapper;
use cranelift_codegen::ir::{
    Block, BlockCall, Constant, DynamicStackSlot, ExceptionTable, FuncRef, Function, GlobalValue,
    Immediate, InstBuilderBase, JumpTable, JumpTableData, MemFlags, SigRef, StackSlot, Value,
    ValueList,
};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use harp_isa::ArchId;
use harp_jit::{Triple, frontend_config};

/// The same function, built anew.
pub(crate) fn built(func: &Function, arch: ArchId) -> Function {
    let mut new = Function::with_name_signature(func.name.clone(), func.signature.clone());
    declare(func, &mut new);
    let mut context = FunctionBuilderContext::new();
    let to = FunctionBuilder::new(&mut new, &mut context);
    let mut replay = Replay {
        func,
        to,
        blocks: SecondaryMap::with_default(Block::from_u32(0)),
        values: SecondaryMap::with_default(Value::from_u32(0)),
    };
    replay.body();
    let mut to = replay.to;
    to.seal_all_blocks();
    to.finalize(frontend_config(&Triple::from(arch)).expect("its triple names a machine"));
    new
}

/// Declares what instructions refer to, with the same numbers.
fn declare(func: &Function, new: &mut Function) {
    func.params.user_named_funcs().values().for_each(|name| {
        new.declare_imported_user_function(name.clone());
    });
    for signature in func.dfg.signatures.values() {
        new.import_signature(signature.clone());
    }
    for callee in func.dfg.ext_funcs.values() {
        new.import_function(callee.clone());
    }
    for global in func.global_values.values() {
        new.create_global_value(global.clone());
    }
    for slot in func.sized_stack_slots.values() {
        new.create_sized_stack_slot(slot.clone());
    }
}

struct Replay<'a, 'b> {
    func: &'a Function,
    to: FunctionBuilder<'b>,
    blocks: SecondaryMap<Block, Block>,
    /// What is defined is there before it is used: front ends write blocks behind their dominators.
    values: SecondaryMap<Value, Value>,
}

impl Replay<'_, '_> {
    fn body(&mut self) {
        let func = self.func;
        for block in func.layout.blocks() {
            let own = self.to.create_block();
            self.blocks[block] = own;
            for &param in func.dfg.block_params(block) {
                self.values[param] = self.to.append_block_param(own, func.dfg.value_type(param));
            }
        }
        for block in func.layout.blocks() {
            self.to.switch_to_block(self.blocks[block]);
            for inst in func.layout.block_insts(block) {
                self.to.set_srcloc(func.srcloc(inst));
                let data = func.dfg.insts[inst].map(&mut *self);
                let (own, dfg) = self.to.ins().build(data, func.dfg.ctrl_typevar(inst));
                let results = func.dfg.inst_results(inst).iter().zip(dfg.inst_results(own));
                for (&result, &own) in results {
                    self.values[result] = own;
                }
            }
        }
    }
}

impl InstructionMapper for Replay<'_, '_> {
    fn map_value(&mut self, value: Value) -> Value {
        self.values[self.func.dfg.resolve_aliases(value)]
    }

    fn map_value_list(&mut self, list: ValueList) -> ValueList {
        let values = list.as_slice(&self.func.dfg.value_lists);
        let own: Vec<Value> = values.iter().map(|&value| self.map_value(value)).collect();
        ValueList::from_slice(&own, &mut self.to.func.dfg.value_lists)
    }

    fn map_block_call(&mut self, call: BlockCall) -> BlockCall {
        let pool = &self.func.dfg.value_lists;
        let args: Vec<_> = call
            .args(pool)
            .map(|arg| arg.map_value(|value| self.values[self.func.dfg.resolve_aliases(value)]))
            .collect();
        let block = self.blocks[call.block(pool)];
        BlockCall::new(block, args, &mut self.to.func.dfg.value_lists)
    }

    fn map_jump_table(&mut self, table: JumpTable) -> JumpTable {
        let table = &self.func.dfg.jump_tables[table];
        let default = self.map_block_call(table.default_block());
        let entries: Vec<_> =
            table.as_slice().iter().map(|&call| self.map_block_call(call)).collect();
        self.to.create_jump_table(JumpTableData::new(default, &entries))
    }

    fn map_mem_flags(&mut self, flags: MemFlags) -> MemFlags {
        let data = self.func.dfg.mem_flags[flags];
        self.to.func.dfg.mem_flags.insert(data).expect("there are as many as before")
    }

    fn map_block(&mut self, block: Block) -> Block {
        self.blocks[block]
    }

    fn map_global_value(&mut self, global: GlobalValue) -> GlobalValue {
        global
    }

    fn map_func_ref(&mut self, callee: FuncRef) -> FuncRef {
        callee
    }

    fn map_sig_ref(&mut self, signature: SigRef) -> SigRef {
        signature
    }

    fn map_stack_slot(&mut self, slot: StackSlot) -> StackSlot {
        slot
    }

    fn map_exception_table(&mut self, _: ExceptionTable) -> ExceptionTable {
        unreachable!("SPIR-V has no exceptions")
    }

    fn map_dynamic_stack_slot(&mut self, _: DynamicStackSlot) -> DynamicStackSlot {
        unreachable!("sizes of stack slots are constant")
    }

    fn map_constant(&mut self, _: Constant) -> Constant {
        unreachable!("values are scalars")
    }

    fn map_immediate(&mut self, _: Immediate) -> Immediate {
        unreachable!("values are scalars")
    }
}
