//! Expands global values to instructions.
//!
//! Afterwards every `symbol_value` refers to a symbol without an offset; global values that are loaded,
//! computed or taken from the `vmctx` parameter are expanded. This happens before the mid-end, which can then
//! optimize the loads.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{
    ArgumentPurpose, Function, GlobalValue, GlobalValueData, Inst, InstBuilder, InstructionData,
    Opcode, Type, Value,
};

use super::Opcodes;
use crate::error::Unsupported;

/// The depth to which global values are followed.
const MAX_DEPTH: u32 = 100;

/// Replaces every use of a global value that is not a symbol. `opcodes` are those that may occur.
///
/// # Errors
///
/// If a global value is not supported, such as thread-local storage.
pub(crate) fn expand_global_values(
    func: &mut Function,
    word: Type,
    opcodes: &Opcodes,
) -> Result<(), Unsupported> {
    if !opcodes.contain_any(&[Opcode::SymbolValue, Opcode::TlsValue]) {
        return Ok(());
    }
    let blocks: Vec<_> = func.layout.blocks().collect();
    for block in blocks {
        let mut next = func.layout.first_inst(block);
        while let Some(inst) = next {
            next = func.layout.next_inst(inst);
            let InstructionData::UnaryGlobalValue { opcode, global_value } = func.dfg.insts[inst]
            else {
                continue;
            };
            let refuse = |what: &str| Unsupported { inst, block, what: what.to_owned() };
            if opcode != Opcode::SymbolValue {
                return Err(refuse("thread-local storage"));
            }
            expand(func, inst, global_value, word).map_err(refuse)?;
        }
    }
    Ok(())
}

/// Replaces `inst`, which refers to `global`, unless that is a symbol.
fn expand(
    func: &mut Function,
    inst: Inst,
    global: GlobalValue,
    word: Type,
) -> Result<(), &'static str> {
    let wanted = func.dfg.value_type(func.dfg.first_result(inst));
    if let GlobalValueData::Symbol { tls, offset, .. } = func.global_values[global] {
        check_symbol(tls, wanted, word)?;
        if offset.bits() == 0 {
            return Ok(());
        }
    }
    let mut at = FuncCursor::new(func).at_inst(inst);
    at.use_srcloc(inst);
    let value = value(&mut at, global, wanted, word, 0)?;
    if at.func.dfg.value_type(value) != wanted {
        return Err("a global value of another type");
    }
    let result = func.dfg.first_result(inst);
    func.dfg.clear_results(inst);
    func.dfg.change_to_alias(result, value);
    func.layout.remove_inst(inst);
    Ok(())
}

/// Checks the type of an address: an address is a word; in a wider integer it is zero-extended.
fn check_symbol(tls: bool, wanted: Type, word: Type) -> Result<(), &'static str> {
    match (tls, wanted.is_int() && wanted.bits() >= word.bits()) {
        (true, _) => Err("thread-local storage"),
        (false, false) => Err("an address that is not an integer of at least a word"),
        (false, true) => Ok(()),
    }
}

/// Computes `global` in front of the cursor. If it is an address, `wanted` is its type.
fn value(
    at: &mut FuncCursor<'_>,
    global: GlobalValue,
    wanted: Type,
    word: Type,
    depth: u32,
) -> Result<Value, &'static str> {
    if depth > MAX_DEPTH {
        return Err("a global value that depends on too many others");
    }
    match at.func.global_values[global].clone() {
        GlobalValueData::Symbol { name, offset, colocated, tls } => {
            check_symbol(tls, wanted, word)?;
            if offset.bits() == 0 {
                return Ok(at.ins().symbol_value(wanted, global));
            }
            let start = GlobalValueData::Symbol { name, offset: 0.into(), colocated, tls };
            let start = at.func.create_global_value(start);
            let start = at.ins().symbol_value(wanted, start);
            Ok(at.ins().iadd_imm_s(start, offset))
        }
        GlobalValueData::VMContext => at
            .func
            .special_param(ArgumentPurpose::VMContext)
            .ok_or("`vmctx` in a function without such a parameter"),
        GlobalValueData::IAddImm { base, offset, global_type } => {
            let base = value(at, base, global_type, word, depth + 1)?;
            if at.func.dfg.value_type(base) != global_type {
                return Err("a global value of another type");
            }
            Ok(at.ins().iadd_imm_s(base, offset))
        }
        GlobalValueData::Load { base, offset, global_type, flags } => {
            let base = value(at, base, word, word, depth + 1)?;
            let flags = at.func.dfg.mem_flags[flags];
            Ok(at.ins().load(global_type, flags, base, offset))
        }
        GlobalValueData::DynScaleTargetConst { .. } => Err("vectors of dynamic length"),
    }
}
