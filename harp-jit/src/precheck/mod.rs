//! Checks before all others, which accept any function, even a malformed one.
//!
//! Cranelift's verifier and passes assume some properties and panic or do not terminate without them.
//! [`precheck`] ensures these, whether or not the verifier runs:
//!
//! * everything that the function [refers to](references) exists;
//! * its [types] exist on some HARP machine;
//! * its blocks have the [structure] of a function;
//! * instructions have a controlling type that their opcode allows. The verifier reports others, but then
//!   computes types derived from them, such as half of a scalar's lanes.
//!
//! The [verifier](verify) finds uses that no definition dominates, and operands of wrong types.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::entities::AnyEntity;
use cranelift_codegen::ir::{Function, Inst, InstBuilder, Opcode, Type};
use cranelift_codegen::settings::Flags;
use cranelift_codegen::verifier::{VerifierError, VerifierErrors};
use cranelift_codegen::verify_function;

use crate::error::{CompileError, Unsupported};
use crate::legalize::Opcodes;
use crate::source::SourceMap;

mod references;
mod structure;
mod types;

pub(crate) use references::{Unknown, unknown_in};
pub(crate) use types::is_supported;

/// Why a function is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It is not valid CLIF: the instruction, if one is the cause, and the error.
    Invalid(Option<Inst>, String),
    /// An instruction needs something that no machine has.
    Unsupported(Unsupported),
    /// A declaration needs something that no machine has.
    Declaration { what: String, declaration: String },
}

impl Refusal {
    /// The error as the user sees it.
    pub(crate) fn explain(
        self,
        kernel: &str,
        func: &Function,
        sources: &SourceMap,
    ) -> CompileError {
        let kernel = kernel.to_owned();
        match self {
            Refusal::Invalid(inst, message) => {
                let place = place_of(inst, func, sources);
                CompileError::Invalid { kernel, message: format!("{message}{place}") }
            }
            Refusal::Unsupported(unsupported) => unsupported.explain(func, sources),
            Refusal::Declaration { what, declaration } => {
                CompileError::UnsupportedDeclaration { kernel, what, declaration }
            }
        }
    }
}

/// The place of an instruction's builder call in parentheses, if it is known.
fn place_of(inst: Option<Inst>, func: &Function, sources: &SourceMap) -> String {
    let place = inst.and_then(|inst| sources.place(func.srcloc(inst)));
    place.map_or(String::new(), |place| format!(" ({place})"))
}

/// The verifier's errors, a line each, with the places of the instructions' builder calls.
pub(crate) fn explained(errors: &VerifierErrors, func: &Function, sources: &SourceMap) -> String {
    let line = |error: &VerifierError| {
        let context = error.context.as_ref().map_or(String::new(), |text| format!(" ({text})"));
        let inst = match error.location {
            AnyEntity::Inst(inst) => Some(inst),
            AnyEntity::Block(block) if func.layout.is_block_inserted(block) => {
                func.layout.last_inst(block)
            }
            _ => None,
        };
        let (message, place) = (readable(&error.message), place_of(inst, func, sources));
        format!("- {}{context}: {message}{place}", error.location)
    };
    errors.0.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// An error message of the verifier on one line, without sets of types, which may list dozens.
pub(crate) fn readable(message: &str) -> String {
    let message = match message.split_once(" failed to satisfy type set ") {
        Some((operand, _)) => format!("{operand}, which the instruction does not take"),
        None => message.to_owned(),
    };
    let message = match message.split_once(" (allowed set is ") {
        Some((controlling, _)) => controlling.to_owned(),
        None => message,
    };
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Checks everything that the [module](self) lists except types.
///
/// # Errors
///
/// The first error, with the instruction if one is the cause.
pub(crate) fn precheck_form(func: &Function) -> Result<(), (Option<Inst>, String)> {
    if let Some(unknown) = references::unknown_in_declarations(func) {
        return Err((None, format!("a declaration refers to {unknown}, which does not exist")));
    }
    for inst in func.layout.blocks().flat_map(|block| func.layout.block_insts(block)) {
        let data = &func.dfg.insts[inst];
        // The rest of the instruction cannot be printed then.
        if let Some(unknown) = unknown_in(func, data) {
            let message =
                format!("- {inst} ({}): refers to {unknown}, which does not exist", data.opcode());
            return Err((Some(inst), message));
        }
    }
    let shown = |inst: Inst, message: String| {
        (Some(inst), format!("- {inst} ({}): {message}", func.dfg.display_inst(inst)))
    };
    structure::check(func).map_err(|(inst, message)| match inst {
        Some(inst) => shown(inst, message),
        None => (None, message),
    })?;
    for inst in func.layout.blocks().flat_map(|block| func.layout.block_insts(block)) {
        let allowed = func.dfg.insts[inst].opcode().constraints().ctrl_typeset();
        let (Some(allowed), Some(ty)) = (allowed, controlling_type(func, inst)) else { continue };
        if !allowed.contains(ty) {
            return Err(shown(inst, format!("has an invalid controlling type {ty}")));
        }
    }
    Ok(())
}

/// Checks everything that the [module](self) lists.
///
/// # Errors
///
/// The first error, or the first thing that no HARP machine has.
pub(crate) fn precheck(func: &Function) -> Result<(), Refusal> {
    precheck_form(func).map_err(|(inst, message)| Refusal::Invalid(inst, message))?;
    types::check(func)
}

/// The controlling type. None if the instruction lacks the operand or result that has it, which the verifier
/// reports.
fn controlling_type(func: &Function, inst: Inst) -> Option<Type> {
    let data = &func.dfg.insts[inst];
    let value = if data.opcode().constraints().requires_typevar_operand() {
        data.typevar_operand(&func.dfg.value_lists)?
    } else {
        *func.dfg.inst_results(inst).first()?
    };
    Some(func.dfg.value_type(value))
}

/// Instructions for which the verifier queries a target.
const ABOUT_THE_TARGET: [Opcode; 4] =
    [Opcode::GetFramePointer, Opcode::GetReturnAddress, Opcode::GetPinnedReg, Opcode::SetPinnedReg];

/// Runs Cranelift's verifier on a function that has passed [`precheck_form`]. Instructions for which it would
/// query a Cranelift target are replaced by others with the same operands and results.
///
/// # Errors
///
/// The errors that it finds.
pub(crate) fn verify(func: &Function, flags: &Flags) -> Result<(), VerifierErrors> {
    if !Opcodes::of(func).contain_any(&ABOUT_THE_TARGET) {
        return verify_function(func, flags);
    }
    let mut func = func.clone();
    let mut at = FuncCursor::new(&mut func);
    while at.next_block().is_some() {
        while let Some(inst) = at.next_inst() {
            if !ABOUT_THE_TARGET.contains(&at.func.dfg.insts[inst].opcode()) {
                continue;
            }
            match at.func.dfg.inst_results(inst) {
                [] => {
                    at.func.replace(inst).nop();
                }
                &[result, ..] => {
                    let ty = at.func.dfg.value_type(result);
                    at.func.replace(inst).iconst(ty, 0);
                }
            }
        }
    }
    verify_function(&func, flags)
}
