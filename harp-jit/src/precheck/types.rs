//! Checks that the types that a function names, used or not, exist on some HARP machine.
//!
//! The mid-end has rules for scalars that it also applies to vectors and floats of other widths, and panics
//! when it makes a constant of such a type. So such types must not reach it anywhere.

use cranelift_codegen::ir::types::{F32, F64, I8, I16, I32, I64};
use cranelift_codegen::ir::{Function, GlobalValueData, Signature, Type, Value, ValueDef};

use super::Refusal;
use crate::error::Unsupported;

/// Whether values of this type are supported: integers and floats of at most 64 bits.
pub(crate) fn is_supported(ty: Type) -> bool {
    [I8, I16, I32, I64, F32, F64].contains(&ty)
}

/// Refuses all other types: of values, used or not, and in declarations.
pub(super) fn check(func: &Function) -> Result<(), Refusal> {
    // Values outside the layout count, too: a pass may visit them.
    let refused = |value: &Value| !is_supported(func.dfg.value_type(*value));
    match func.dfg.values().find(refused) {
        Some(value) => Err(refusal(func, value)),
        None => check_declarations(func),
    }
}

fn check_declarations(func: &Function) -> Result<(), Refusal> {
    check_signature(&func.signature, || "the function's signature".to_owned())?;
    for (number, signature) in &func.dfg.signatures {
        check_signature(signature, || number.to_string())?;
    }
    for (global, data) in &func.global_values {
        match *data {
            GlobalValueData::Load { global_type: ty, .. }
            | GlobalValueData::IAddImm { global_type: ty, .. }
            | GlobalValueData::DynScaleTargetConst { vector_type: ty } => {
                check_type(ty, || format!("{global} = {data}"))?;
            }
            GlobalValueData::VMContext | GlobalValueData::Symbol { .. } => {}
        }
    }
    match func.dfg.dynamic_types.iter().next() {
        Some((ty, _)) => Err(Refusal::Declaration {
            what: "a vector of dynamic length".to_owned(),
            declaration: ty.to_string(),
        }),
        None => Ok(()),
    }
}

fn check_signature(signature: &Signature, name: impl Fn() -> String) -> Result<(), Refusal> {
    let mut types = signature.params.iter().chain(&signature.returns);
    types.try_for_each(|param| check_type(param.value_type, || format!("{}: {signature}", name())))
}

fn check_type(ty: Type, declaration: impl Fn() -> String) -> Result<(), Refusal> {
    if is_supported(ty) {
        return Ok(());
    }
    Err(Refusal::Declaration { what: format!("the type {ty}"), declaration: declaration() })
}

/// The refusal of a value, at the instruction that defines it, or at the first instruction of the block whose
/// parameter it is.
fn refusal(func: &Function, value: Value) -> Refusal {
    let what = format!("a value of type {}", func.dfg.value_type(value));
    let inst = match func.dfg.value_def(value) {
        ValueDef::Result(inst, _) => Some(inst),
        ValueDef::Param(block, _) => func.layout.first_inst(block),
        ValueDef::Union(..) => None,
    };
    match inst.and_then(|inst| Some((inst, func.layout.inst_block(inst)?))) {
        Some((inst, block)) => Refusal::Unsupported(Unsupported { inst, block, what }),
        None => Refusal::Declaration { what, declaration: value.to_string() },
    }
}
