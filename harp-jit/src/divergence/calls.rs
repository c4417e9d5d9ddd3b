//! Rewrites divergent calls, which not all lanes make together.
//!
//! An indirect call on whose target lanes may disagree becomes a loop: each iteration takes the target of
//! some lane, and all lanes with that target call it.
//!
//! A tail call ends the function, so lanes that make one must not leave others behind. Where lanes may
//! diverge and end differently, the tail call becomes a call and a return.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I8;
use cranelift_codegen::ir::{
    BlockArg, Function, Inst, InstBuilder, InstructionData, Opcode, Type, Value,
};

use super::canonicalize::undef;
use super::regions::Regions;
use crate::analysis::{LevelId, Uniformity};
use crate::intrinsic::Intrinsic;
use crate::legalize;
use crate::plan::Steering;

/// Rewrites divergent calls. Returns whether there were any; facts about the function are invalid then.
/// Conditions that steer lanes are added to `steering`.
pub(super) fn make_convergent(
    func: &mut Function,
    facts: &Uniformity,
    regions: &Regions,
    steering: &mut Steering,
) -> bool {
    let indirect = facts.divergent_calls().to_vec();
    let end = facts.flow().levels().level(LevelId::LIVE).end();
    let apart =
        |region: &super::regions::Region| region.level == LevelId::LIVE && region.end == end;
    let tail_calls: Vec<Inst> = if regions.iter().any(|(_, region)| apart(region)) {
        let last = func.layout.blocks().filter_map(|block| func.layout.last_inst(block));
        last.filter(|&inst| is_tail_call(func, inst)).collect()
    } else {
        // With a divergent target, the target decides which lanes end here.
        indirect.iter().copied().filter(|&inst| is_tail_call(func, inst)).collect()
    };
    for &inst in &tail_calls {
        call_and_return(func, inst);
    }
    let mut changed = !tail_calls.is_empty();
    for &inst in indirect.iter().filter(|inst| !tail_calls.contains(inst)) {
        call_in_turn(func, inst, steering);
        changed = true;
    }
    if !tail_calls.is_empty() {
        legalize::one_return(func);
    }
    changed
}

fn is_tail_call(func: &Function, inst: Inst) -> bool {
    matches!(func.dfg.insts[inst].opcode(), Opcode::ReturnCall | Opcode::ReturnCallIndirect)
}

/// Replaces a tail call by a call and a return.
fn call_and_return(func: &mut Function, inst: Inst) {
    let args = func.dfg.inst_args(inst).to_vec();
    let mut at = FuncCursor::new(func).at_inst(inst);
    at.use_srcloc(inst);
    let call = match at.func.dfg.insts[inst] {
        InstructionData::Call { func_ref, .. } => at.ins().call(func_ref, &args),
        InstructionData::CallIndirect { sig_ref, .. } => {
            at.ins().call_indirect(sig_ref, args[0], &args[1..])
        }
        _ => return,
    };
    let results = at.func.dfg.inst_results(call).to_vec();
    at.func.replace(inst).return_(&results);
}

/// Replaces an indirect call by a loop over the targets.
fn call_in_turn(func: &mut Function, inst: Inst, steering: &mut Steering) {
    let InstructionData::CallIndirect { sig_ref, .. } = func.dfg.insts[inst] else { return };
    let args = func.dfg.inst_args(inst).to_vec();
    let results = func.dfg.inst_results(inst).to_vec();
    let types: Vec<Type> = results.iter().map(|&result| func.dfg.value_type(result)).collect();
    let target_type = func.dfg.value_type(args[0]);
    let before = func.layout.inst_block(inst).expect("it is in the layout");
    let [round, called, latch, after] = std::array::from_fn(|_| func.dfg.make_block());
    func.layout.split_block(after, inst);
    // When the loop ends, the results are the latch's parameters.
    let done = func.dfg.append_block_param(latch, I8);
    steering.insert(done);
    let passed: Vec<Value> =
        types.iter().map(|&ty| func.dfg.append_block_param(latch, ty)).collect();
    for block in [round, called, latch] {
        func.layout.insert_block(block, after);
    }

    let place = func.srcloc(inst);
    let mut at = FuncCursor::new(func).with_srcloc(place).at_bottom(before);
    at.ins().jump(round, &[]);

    at.goto_bottom(round);
    let of_some_lane = Intrinsic::OfSomeLane.declare(at.func, target_type);
    let chosen = at.ins().call(of_some_lane, &[args[0]]);
    let chosen = at.func.dfg.first_result(chosen);
    let mine = at.ins().icmp(IntCC::Equal, args[0], chosen);
    let nothing: Vec<BlockArg> = types.iter().map(|&ty| undef(&mut at, ty).into()).collect();
    let no = at.ins().iconst(I8, 0);
    let skip: Vec<BlockArg> = std::iter::once(no.into()).chain(nothing).collect();
    at.ins().brif(mine, called, &[], latch, &skip);

    at.goto_bottom(called);
    let call = at.ins().call_indirect(sig_ref, chosen, &args[1..]);
    let yes = at.ins().iconst(I8, 1);
    let values = at.func.dfg.inst_results(call).iter().map(|&value| BlockArg::Value(value));
    let given: Vec<BlockArg> = std::iter::once(yes.into()).chain(values).collect();
    at.ins().jump(latch, &given);

    at.goto_bottom(latch);
    at.ins().brif(done, after, &[], round, &[]);

    // The old call's results are defined elsewhere from now on.
    at.func.dfg.clear_results(inst);
    for (result, passed) in results.into_iter().zip(passed) {
        at.func.dfg.change_to_alias(result, passed);
    }
    at.goto_inst(inst);
    at.remove_inst();
    at.func.dfg.resolve_all_aliases();
}
