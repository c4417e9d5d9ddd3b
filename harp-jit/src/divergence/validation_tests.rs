//! Tests that validation accepts rearranged functions and refuses wrong ones.

use std::collections::BTreeMap;

use cranelift_codegen::ir::types::I8;
use cranelift_codegen::ir::{Block, BlockCall, Function, Inst, InstructionData, Opcode, Value};

use super::prepare;
use super::tests::planned;
use crate::analysis::{Known, Loads};
use crate::intrinsic::Intrinsic;
use crate::plan::Plan;
use crate::times::Clock;
use crate::validate::tests::parsed;
use crate::validate::{self, Difference};

fn validate(before: &Function, after: &Function, plan: &Plan) -> Result<(), Difference> {
    validate::rearranged(before, after, plan, Known::KERNEL, 16)
}

/// A loop that lanes leave in different iterations by two exits, with values of both levels, and a choice in
/// it.
const LOOP: &str = "function %f(i32) {
        fn0 = %harp_lane_id() -> i32
        fn1 = %emit(i32, i32)
    block0(v0: i32):
        v1 = call fn0()
        v2 = load.i32 aligned v0
        v3 = iconst.i32 1
        jump block1(v1, v2)
    block1(v4: i32, v5: i32):
        v6 = isub v4, v3
        v7 = load.i32 aligned v5
        v8 = icmp ult v7, v6
        brif v8, block2(v6), block5(v4, v5)
    block2(v9: i32):
        v10 = load.i32 aligned v9
        v11 = iadd v5, v10
        v12 = icmp ugt v10, v3
        brif v12, block3, block4(v10)
    block3:
        store aligned v11, v9
        v13 = iadd v9, v4
        v24 = select v10, v13, v5
        jump block4(v24)
    block4(v14: i32):
        v15 = load.i32 aligned v14
        brif v15, block1(v14, v11), block6(v11, v4)
    block5(v16: i32, v17: i32):
        call fn1(v16, v17)
        jump block7(v16)
    block6(v18: i32, v19: i32):
        call fn1(v18, v19)
        jump block7(v19)
    block7(v20: i32):
        store aligned v20, v0
        return
    }";

/// Two divergent conditions with a side entrance, in a uniform loop.
const SIDE_ENTRANCE: &str = "function %f(i32) {
        fn0 = %harp_lane_id() -> i32
    block0(v0: i32):
        v1 = call fn0()
        v2 = load.i32 notrap aligned readonly v0
        v3 = iconst.i32 1
        jump block1(v2, v1)
    block1(v4: i32, v5: i32):
        v6 = load.i32 aligned v5
        v7 = icmp ult v6, v1
        brif v7, block2(v6), block3(v5, v1)
    block2(v8: i32):
        v9 = load.i32 aligned v8
        brif v9, block3(v9, v8), block4(v8)
    block3(v10: i32, v11: i32):
        store aligned v10, v11
        v12 = iadd v10, v5
        jump block4(v12)
    block4(v13: i32):
        store aligned v13, v5
        v14 = isub v4, v3
        brif v14, block1(v14, v13), block5
    block5:
        store aligned v13, v0
        return
    }";

#[test]
fn what_is_right_is_accepted() {
    for text in [LOOP, SIDE_ENTRANCE] {
        let func = parsed(text);
        let (after, plan) = planned(&func);
        validate(&func, &after, &plan).unwrap();
    }
}

#[test]
fn what_the_program_leaves_undefined_may_be_anything() {
    let func = parsed(
        "function %f(i32) {
            fn0 = %harp_undef() -> i32
            fn1 = %emit(i32)
        block0(v0: i32):
            v1 = call fn0()
            v2 = iadd v1, v0
            call fn1(v2)
            brif v2, block1, block2
        block1: call fn1(v0)
            return
        block2: return
        }",
    );
    let (after, plan) = planned(&func);
    validate(&func, &after, &plan).unwrap();
}

#[test]
fn calls_of_one_target_after_the_other_are_the_same_calls() {
    let func = parsed(
        "function %f(i32) {
            sig0 = (i32) -> i32
            fn0 = %harp_lane_id() -> i32
        block0(v0: i32):
            v1 = call fn0()
            v2 = call_indirect sig0, v1(v0)
            store aligned v2, v0
            return
        }",
    );
    let insts = func.dfg.num_insts();
    let prepared = prepare(func.clone(), Known::KERNEL, Loads::Each, insts, &Clock::new()).unwrap();
    let plan = Plan::unsplit(prepared.own);
    validate::rearranged(&func, &prepared.func, &plan, Known::KERNEL, 1).unwrap();
    let (after, plan) = planned(&func);
    validate(&func, &after, &plan).unwrap();
}

/// A function with one error, the error's kind first.
type Mutant = (&'static str, Function, Plan);

/// All mutants with one error of the kinds that rearranging control flow may make.
fn mutants(func: &Function, plan: &Plan) -> Vec<Mutant> {
    let mut found = Vec::new();
    let insts: Vec<Inst> =
        func.layout.blocks().flat_map(|block| func.layout.block_insts(block)).collect();
    for inst in insts {
        let mut add = |how, change: &dyn Fn(&mut Function)| {
            let mut mutant = func.clone();
            change(&mut mutant);
            found.push((how, mutant, plan.clone()));
        };
        match func.dfg.insts[inst] {
            InstructionData::Brif { blocks, .. } => {
                add("swapped edges", &|func| {
                    if let InstructionData::Brif { blocks, .. } = &mut func.dfg.insts[inst] {
                        blocks.swap(0, 1);
                    }
                });
                blocks
                    .iter()
                    .enumerate()
                    .for_each(|(side, call)| edges(func, call, inst, side, &mut add));
            }
            InstructionData::Jump { destination, .. } => {
                edges(func, &destination, inst, 0, &mut add);
            }
            InstructionData::Ternary { opcode: Opcode::Select, args: [_, x, y] } => {
                for one in [x, y] {
                    add("a choice dropped", &|func| {
                        if let InstructionData::Ternary { args, .. } = &mut func.dfg.insts[inst] {
                            args[1..].fill(one);
                        }
                    });
                }
            }
            InstructionData::UnaryImm { opcode: Opcode::Iconst, imm }
                if func.dfg.value_type(func.dfg.first_result(inst)) == I8 =>
            {
                add("another lane live", &|func| {
                    if let InstructionData::UnaryImm { imm: changed, .. } =
                        &mut func.dfg.insts[inst]
                    {
                        *changed = (1 - imm.bits()).into();
                    }
                });
            }
            _ if Intrinsic::of_call(func, inst) == Some(Intrinsic::Any) => {
                add("no vote", &|func| {
                    let own = func.dfg.inst_args(inst)[0];
                    let vote = func.dfg.first_result(inst);
                    let uses: Vec<Inst> =
                        func.layout.blocks().filter_map(|b| func.layout.last_inst(b)).collect();
                    for last in uses {
                        if let InstructionData::Brif { arg, .. } = &mut func.dfg.insts[last]
                            && *arg == vote
                        {
                            *arg = own;
                        }
                    }
                });
            }
            _ => {}
        }
    }
    for split in plan.splits() {
        let mut without = plan.clone();
        without.splits.remove(&split.branch);
        found.push(("no split", func.clone(), without));
        if let Some(join) = split.join {
            let mut without = plan.clone();
            without.joins.remove(join);
            found.push(("no join", func.clone(), without));
        }
    }
    found
}

/// Adds a mutant: the kind of the error, and how to make it.
type Add<'a> = dyn FnMut(&'static str, &dyn Fn(&mut Function)) + 'a;

/// The errors that the arguments of an edge may have.
fn edges(func: &Function, call: &BlockCall, inst: Inst, side: usize, add: &mut Add<'_>) {
    let pool = &func.dfg.value_lists;
    let args: Vec<Value> = call.args(pool).map(|arg| arg.as_value().unwrap()).collect();
    let params = func.dfg.block_params(call.block(pool)).to_vec();
    for (index, (&arg, &param)) in args.iter().zip(&params).enumerate() {
        let next = (index + 1..args.len()).find(|&other| {
            args[other] != arg && func.dfg.value_type(args[other]) == func.dfg.value_type(arg)
        });
        if let Some(other) = next {
            add("swapped arguments", &|func| {
                let mut args = args.clone();
                args.swap(index, other);
                set_arguments(func, inst, side, &args);
            });
        }
        if arg != param {
            add("a stale parameter", &|func| {
                let mut args = args.clone();
                args[index] = param;
                set_arguments(func, inst, side, &args);
            });
        }
    }
}

fn set_arguments(func: &mut Function, inst: Inst, side: usize, args: &[Value]) {
    let dfg = &mut func.dfg;
    let calls =
        dfg.insts[inst].branch_destination_mut(&mut dfg.jump_tables, &mut dfg.exception_tables);
    let target: Block = calls[side].block(&dfg.value_lists);
    let args = args.iter().map(|&arg| arg.into());
    calls[side] = BlockCall::new(target, args, &mut dfg.value_lists);
}

/// Whether `times` as many rounds as usual see the difference.
fn is_seen(before: &Function, (_, after, plan): &Mutant, times: usize) -> bool {
    validate::is_different(before, (after, plan), times)
}

#[test]
fn faults_of_structurization_are_found() {
    // For each kind: how many mutants there are, how many are seen, and how many are seen by many more
    // rounds. The others are equivalent to the function: undefined values are passed on, too.
    let mut found: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    for text in [LOOP, SIDE_ENTRANCE] {
        let func = parsed(text);
        let (after, plan) = planned(&func);
        for mutant in mutants(&after, &plan) {
            let counts = found.entry(mutant.0).or_default();
            counts[0] += 1;
            counts[1] += usize::from(is_seen(&func, &mutant, 1));
            counts[2] += usize::from(is_seen(&func, &mutant, 20));
        }
    }
    println!("{found:?}");
    let [all, seen, wrong] =
        found.values().fold([0; 3], |[a, b, c], [x, y, z]| [a + x, b + y, c + z]);
    assert!(wrong * 3 >= all * 2 && seen * 10 >= wrong * 9, "{found:?}");
    assert_eq!(found.len(), 8, "{found:?}");
    assert!(found.values().all(|&[_, seen, _]| seen > 0), "{found:?}");
}
