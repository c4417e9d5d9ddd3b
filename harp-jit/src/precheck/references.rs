//! Checks that everything that instructions and declarations refer to exists.
//!
//! Entities are numbers. One that belongs to another function, or to none, is harmless until it is used to
//! look something up, which panics. Cranelift's verifier finds such numbers, but looks things up to print its
//! findings.

use cranelift_codegen::entity::EntityRef;
use cranelift_codegen::entity::packed_option::ReservedValue;
use cranelift_codegen::ir::entities::AnyEntity;
use cranelift_codegen::ir::instructions::InstructionMapper;
use cranelift_codegen::ir::{
    Block, BlockArg, BlockCall, Constant, DynamicStackSlot, ExceptionTable, ExceptionTableItem,
    FuncRef, Function, GlobalValue, GlobalValueData, Immediate, InstructionData, JumpTable,
    MemFlags, SigRef, StackSlot, Value, ValueList,
};

/// The first entity that an instruction refers to and that the function does not have. This includes the
/// instruction's lists and tables.
pub(crate) fn unknown_in(func: &Function, data: &InstructionData) -> Option<Unknown> {
    let mut search = Search { func, unknown: None };
    data.map(&mut search);
    if let Some(flags) = data.memflags() {
        search.see(func.dfg.mem_flags.is_valid(flags), || Unknown::MemFlags(flags));
    }
    search.unknown
}

/// The same for declarations: global values, dynamic types, functions.
pub(super) fn unknown_in_declarations(func: &Function) -> Option<Unknown> {
    let mut search = Search { func, unknown: None };
    for data in func.global_values.values() {
        match *data {
            GlobalValueData::Load { base, flags, .. } => {
                search.map_global_value(base);
                search.see(func.dfg.mem_flags.is_valid(flags), || Unknown::MemFlags(flags));
            }
            GlobalValueData::IAddImm { base, .. } => {
                search.map_global_value(base);
            }
            _ => {}
        }
    }
    // In text, numbers may be skipped: the reader fills the gaps with functions without a signature.
    let functions = func.dfg.ext_funcs.values().map(|data| data.signature);
    for signature in functions.filter(|signature| !signature.is_reserved_value()) {
        search.map_sig_ref(signature);
    }
    for block in func.layout.blocks() {
        search.map_block(block);
    }
    search.unknown
}

/// An entity that a function does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unknown {
    Entity(AnyEntity),
    MemFlags(MemFlags),
    Immediate(Immediate),
    /// A list of values.
    List,
}

impl std::fmt::Display for Unknown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Unknown::Entity(entity) => entity.fmt(f),
            Unknown::MemFlags(flags) => write!(f, "flags {}", flags.index()),
            Unknown::Immediate(immediate) => write!(f, "immediate {}", immediate.index()),
            Unknown::List => f.write_str("a list of values"),
        }
    }
}

/// Visits everything that an instruction refers to, and changes nothing.
struct Search<'a> {
    func: &'a Function,
    unknown: Option<Unknown>,
}

impl Search<'_> {
    fn see(&mut self, known: bool, unknown: impl FnOnce() -> Unknown) {
        if !known {
            self.unknown.get_or_insert_with(unknown);
        }
    }

    fn entity(&mut self, known: bool, entity: impl Into<AnyEntity>) {
        self.see(known, || Unknown::Entity(entity.into()));
    }
}

impl InstructionMapper for Search<'_> {
    fn map_value(&mut self, value: Value) -> Value {
        self.entity(self.func.dfg.value_is_valid(value), value);
        value
    }

    fn map_value_list(&mut self, list: ValueList) -> ValueList {
        let pool = &self.func.dfg.value_lists;
        if list.is_valid(pool) {
            for &value in list.as_slice(pool) {
                self.map_value(value);
            }
        } else {
            self.see(false, || Unknown::List);
        }
        list
    }

    fn map_global_value(&mut self, global: GlobalValue) -> GlobalValue {
        self.entity(self.func.global_values.is_valid(global), global);
        global
    }

    fn map_jump_table(&mut self, table: JumpTable) -> JumpTable {
        match self.func.dfg.jump_tables.get(table) {
            Some(data) => data.all_branches().iter().for_each(|&call| {
                self.map_block_call(call);
            }),
            None => self.entity(false, table),
        }
        table
    }

    fn map_exception_table(&mut self, table: ExceptionTable) -> ExceptionTable {
        let Some(data) = self.func.dfg.exception_tables.get(table) else {
            self.entity(false, table);
            return table;
        };
        self.map_sig_ref(data.signature());
        data.all_branches().iter().for_each(|&call| {
            self.map_block_call(call);
        });
        for item in data.items() {
            if let ExceptionTableItem::Context(value) = item {
                self.map_value(value);
            }
        }
        table
    }

    fn map_block_call(&mut self, call: BlockCall) -> BlockCall {
        let pool = &self.func.dfg.value_lists;
        self.map_block(call.block(pool));
        for arg in call.args(pool) {
            if let BlockArg::Value(value) = arg {
                self.map_value(value);
            }
        }
        call
    }

    fn map_block(&mut self, block: Block) -> Block {
        self.entity(self.func.dfg.block_is_valid(block), block);
        block
    }

    fn map_func_ref(&mut self, callee: FuncRef) -> FuncRef {
        let data = self.func.dfg.ext_funcs.get(callee);
        self.entity(data.is_some_and(|data| !data.signature.is_reserved_value()), callee);
        callee
    }

    fn map_sig_ref(&mut self, signature: SigRef) -> SigRef {
        self.entity(self.func.dfg.signatures.is_valid(signature), signature);
        signature
    }

    fn map_stack_slot(&mut self, slot: StackSlot) -> StackSlot {
        self.entity(self.func.sized_stack_slots.is_valid(slot), slot);
        slot
    }

    fn map_dynamic_stack_slot(&mut self, slot: DynamicStackSlot) -> DynamicStackSlot {
        self.entity(self.func.dynamic_stack_slots.is_valid(slot), slot);
        slot
    }

    fn map_constant(&mut self, constant: Constant) -> Constant {
        // Instructions refer to constants only for types that no machine has.
        let known = self.func.dfg.constants.iter().any(|(&known, _)| known == constant);
        self.entity(known, constant);
        constant
    }

    fn map_immediate(&mut self, immediate: Immediate) -> Immediate {
        let known = self.func.dfg.immediates.is_valid(immediate);
        self.see(known, || Unknown::Immediate(immediate));
        immediate
    }
}
