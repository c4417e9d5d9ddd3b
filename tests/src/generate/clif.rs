//! Pieces of CLIF that all generators make.

use cranelift_codegen::ir::types::{F32, F64};
use cranelift_codegen::ir::{
    AbiParam, Block, BlockArg, BlockCall, ExtFuncData, ExternalName, FuncRef, Function,
    GlobalValue, GlobalValueData, InstBuilder, JumpTable, JumpTableData, Opcode, Signature, Type,
    UserFuncName, Value,
};
use cranelift_codegen::isa::CallConv;
use cranelift_frontend::{FunctionBuilder as Builder, FunctionBuilderContext, Variable};
use harp_isa::{ArchId, WordSize};
use harp_jit::frontend_config;

/// A signature without extensions.
pub(crate) fn signature(
    conv: CallConv,
    params: impl IntoIterator<Item = Type>,
    returns: impl IntoIterator<Item = Type>,
) -> Signature {
    let params = params.into_iter().map(AbiParam::new).collect();
    let returns = returns.into_iter().map(AbiParam::new).collect();
    Signature { params, returns, ..Signature::new(conv) }
}

/// The function of this name and signature to whose entry block, whose parameters it is given, `make` adds the rest.
pub(crate) fn function(
    name: &str,
    signature: &Signature,
    word: WordSize,
    context: &mut FunctionBuilderContext,
    make: impl FnOnce(&mut Builder<'_>, Vec<Value>),
) -> Function {
    let name = UserFuncName::testcase(name);
    let mut func = Function::with_name_signature(name, signature.clone());
    let mut b = Builder::new(&mut func, context);
    let entry = b.create_block();
    b.append_block_params_for_function_params(entry);
    b.switch_to_block(entry);
    let params = b.block_params(entry).to_vec();
    make(&mut b, params);
    b.seal_all_blocks();
    let machine = match word {
        WordSize::Four => ArchId::HARP32,
        WordSize::Eight => ArchId::HARP64,
    };
    b.finalize(frontend_config(&machine.into()).expect("its triple names a machine"));
    func
}

/// A reference to the function of this name.
pub(crate) fn import(
    func: &mut Function,
    name: &str,
    signature: Signature,
    colocated: bool,
) -> FuncRef {
    let (name, signature) = (ExternalName::testcase(name), func.import_signature(signature));
    func.import_function(ExtFuncData { name, signature, colocated, patchable: false })
}

/// Calls an intrinsic with words.
pub(crate) fn intrinsic(b: &mut Builder<'_>, name: &str, args: &[Value], word: Type) -> Value {
    let signature = signature(CallConv::Fast, args.iter().map(|_| word), [word]);
    let callee = import(b.func, name, signature, true);
    let call = b.ins().call(callee, args);
    b.inst_results(call)[0]
}

/// The work-item's ids.
pub(crate) fn ids(b: &mut Builder<'_>, word: Type) -> [Value; 3] {
    ["x", "y", "z"].map(|dim| intrinsic(b, &format!("harp_global_id_{dim}"), &[], word))
}

/// The number of the work-item with these ids in a grid with these first two extents.
pub(crate) fn item(b: &mut Builder<'_>, ids: [Value; 3], x: Value, y: Value) -> Value {
    let rows = b.ins().imul(ids[2], y);
    let row = b.ins().iadd(rows, ids[1]);
    let items = b.ins().imul(row, x);
    b.ins().iadd(items, ids[0])
}

/// The address of a datum with an offset.
pub(crate) fn symbol(b: &mut Builder<'_>, name: &str, offset: i64, colocated: bool) -> GlobalValue {
    let (name, offset) = (ExternalName::testcase(name), offset.into());
    b.create_global_value(GlobalValueData::Symbol { name, offset, colocated, tls: false })
}

/// The address of the element `index` of an array.
pub(crate) fn element(b: &mut Builder<'_>, array: Value, index: Value, bytes: u32) -> Value {
    let offset = b.ins().imul_imm_s(index, i64::from(bytes));
    b.ins().iadd(array, offset)
}

/// An operation on two values of one type, which gives another one.
pub(crate) fn binary(b: &mut Builder<'_>, opcode: Opcode, x: Value, y: Value) -> Value {
    let ty = b.func.dfg.value_type(x);
    let (inst, dfg) = b.ins().Binary(opcode, ty, x, y);
    dfg.first_result(inst)
}

/// The number of this type with these bits.
pub(crate) fn constant(b: &mut Builder<'_>, ty: Type, bits: u64) -> Value {
    match ty {
        F32 => b.ins().f32const(f32::from_bits(bits as u32)),
        F64 => b.ins().f64const(f64::from_bits(bits)),
        _ => b.ins().iconst(ty, bits.cast_signed()),
    }
}

/// A float of this type.
pub(crate) fn float(b: &mut Builder<'_>, ty: Type, number: f64) -> Value {
    match ty {
        F32 => b.ins().f32const(number as f32),
        _ => b.ins().f64const(number),
    }
}

/// A branch on a number, with the last target for all that are too large.
pub(crate) fn table(
    b: &mut Builder<'_>,
    index: Value,
    targets: impl IntoIterator<Item = (Block, Vec<BlockArg>)>,
) {
    if let Some(table) = jump_table(b, targets) {
        b.ins().br_table(index, table);
    }
}

/// A jump table of these targets, the last one for all numbers that are too large; none without targets.
pub(crate) fn jump_table(
    b: &mut Builder<'_>,
    targets: impl IntoIterator<Item = (Block, Vec<BlockArg>)>,
) -> Option<JumpTable> {
    let pool = &mut b.func.dfg.value_lists;
    let calls = targets.into_iter().map(|(block, args)| BlockCall::new(block, args, pool));
    let mut calls: Vec<BlockCall> = calls.collect();
    let default = calls.pop()?;
    Some(b.create_jump_table(JumpTableData::new(default, &calls)))
}

/// Mixes a value into what a variable holds of those before.
pub(crate) fn note(b: &mut Builder<'_>, trace: Variable, value: Value) {
    let old = b.use_var(trace);
    let turned = b.ins().rotl_imm_s(old, 5);
    let new = b.ins().bxor(turned, value);
    b.def_var(trace, new);
}

/// An integer as one of another type, zero-extended or without its upper bits.
pub(crate) fn resized(b: &mut Builder<'_>, value: Value, ty: Type) -> Value {
    match b.func.dfg.value_type(value) {
        from if from.bits() < ty.bits() => b.ins().uextend(ty, value),
        from if from.bits() > ty.bits() => b.ins().ireduce(ty, value),
        _ => value,
    }
}
