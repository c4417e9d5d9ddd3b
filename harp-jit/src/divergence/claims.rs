//! The claims of the analysis, inserted into the function as calls that the simulated warp checks.
//!
//! A value claimed to be uniform in a warp must be equal in all lanes that execute the call together; a value
//! claimed for the whole grid must be equal in two warps, too. The latter is compared outside of loops only,
//! where all warps that reach the call are in the same iteration.

use std::collections::BTreeMap;

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{
    AbiParam, ExtFuncData, ExternalName, Function, Inst, InstBuilder, InstructionData, Signature,
    Value, ValueDef,
};
use cranelift_codegen::isa::CallConv;
use hashbrown::HashMap;

use super::Prepared;
use crate::validate;
use crate::width::Width;

/// What a call claims, encoded in the name of its callee.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Claim {
    value: u32,
    /// Whether other warps have the same value.
    everywhere: bool,
}

/// A value that was claimed to be uniform, as a lane saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    claim: Claim,
    value: u64,
}

/// Inserts a call behind the definition of every uniform value.
pub(super) fn insert(prepared: &mut Prepared) {
    let Prepared { func, facts, .. } = prepared;
    let values: Vec<Value> = func.dfg.values().collect();
    for value in values {
        let width = facts.width(func, value);
        let home = match func.dfg.value_def(value) {
            _ if func.dfg.value_is_alias(value) || width == Width::Thread => continue,
            ValueDef::Result(inst, _) => {
                func.layout.inst_block(inst).map(|home| (home, Some(inst)))
            }
            ValueDef::Param(block, _) => {
                func.layout.is_block_inserted(block).then_some((block, None))
            }
            ValueDef::Union(..) => continue,
        };
        let Some((home, inst)) = home else { continue };
        let everywhere = width == Width::Grid && !facts.flow().is_in_loop(home);
        let kind = if everywhere { "grid" } else { "warp" };
        let mut signature = Signature::new(CallConv::Fast);
        signature.params.push(AbiParam::new(func.dfg.value_type(value)));
        let signature = func.import_signature(signature);
        let claim = func.import_function(ExtFuncData {
            name: ExternalName::testcase(format!("claim_{kind}_{}", value.as_u32())),
            signature,
            colocated: true,
            patchable: false,
        });
        let mut at = FuncCursor::new(func);
        match inst {
            Some(inst) => at.goto_after_inst(inst),
            None => at.goto_first_insertion_point(home),
        }
        at.ins().call(claim, &[value]);
    }
}

/// The claims among the effects of lanes, in the order of time. Lanes that execute one together must agree.
pub(super) fn seen(func: &Function, effects: Vec<validate::Seen>) -> Vec<Seen> {
    let mut found: BTreeMap<(u64, Inst), Seen> = BTreeMap::new();
    for validate::Seen { inst, time, operands } in effects {
        let Some(claim) = of_call(func, inst) else { continue };
        let seen = Seen { claim, value: operands[0] };
        let first = *found.entry((time, inst)).or_insert(seen);
        assert_eq!(first, seen, "{}", func.display());
    }
    found.into_values().collect()
}

/// What a call claims of its argument.
fn of_call(func: &Function, inst: Inst) -> Option<Claim> {
    let InstructionData::Call { func_ref, .. } = func.dfg.insts[inst] else { return None };
    let ExternalName::TestCase(name) = &func.dfg.ext_funcs[func_ref].name else { return None };
    let (kind, value) =
        std::str::from_utf8(name.raw()).ok()?.strip_prefix("claim_")?.split_once('_')?;
    Some(Claim { value: value.parse().ok()?, everywhere: kind == "grid" })
}

/// Checks that two warps saw the same values for claims of the grid that both have reached.
pub(super) fn compare(a: &[Seen], b: &[Seen]) {
    let everywhere = |seen: &&Seen| seen.claim.everywhere;
    let first: HashMap<Claim, u64> =
        a.iter().filter(everywhere).map(|seen| (seen.claim, seen.value)).collect();
    for seen in b.iter().filter(everywhere) {
        let other = first.get(&seen.claim);
        assert!(
            other.is_none_or(|&other| other == seen.value),
            "{seen:?}, {other:?} in another warp"
        );
    }
}
