//! Tests that legalized functions are valid, have no hidden control flow, and compute the same as before,
//! according to cranelift's interpreter.

use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::{Function, Opcode, SourceLoc, TrapCode};
use cranelift_codegen::settings;
use cranelift_codegen::verifier::verify_function;
use cranelift_interpreter::environment::FunctionStore;
use cranelift_interpreter::interpreter::{Interpreter, InterpreterState};
use cranelift_interpreter::step::{ControlFlow, CraneliftTrap};

use crate::legalize;

fn parse(text: &str) -> Function {
    cranelift_reader::parse_functions(text).unwrap().remove(0)
}

fn verify(func: &Function) {
    let flags = settings::Flags::new(settings::builder());
    verify_function(func, &flags).unwrap_or_else(|errors| panic!("{errors}\n{}", func.display()));
}

/// The result or the trap.
fn run(func: &Function, args: &[i32]) -> Result<Vec<DataValue>, TrapCode> {
    let mut store = FunctionStore::default();
    store.add(func.name.to_string(), func);
    let state = InterpreterState::default().with_function_store(store);
    let args: Vec<DataValue> = args.iter().map(|&arg| DataValue::I32(arg)).collect();
    let flow = Interpreter::new(state).call_by_name(&func.name.to_string(), &args).unwrap();
    match flow {
        ControlFlow::Return(values) => Ok(values.to_vec()),
        ControlFlow::Trap(CraneliftTrap::User(code)) => Err(code),
        other => panic!("unexpected {other:?}"),
    }
}

/// Legalizes a function and compares it before and after on all combinations of interesting arguments.
fn legalized(text: &str) -> Function {
    let before = parse(text);
    verify(&before);
    let mut after = before.clone();
    legalize::after(&mut after);
    verify(&after);
    let mut returns = 0;
    for block in after.layout.blocks() {
        for inst in after.layout.block_insts(block) {
            let opcode = after.dfg.insts[inst].opcode();
            let hidden = matches!(
                opcode,
                Opcode::Trapz | Opcode::Trapnz | Opcode::UaddOverflowTrap | Opcode::BrTable
            );
            assert!(!hidden, "{}", after.display());
            returns += usize::from(opcode == Opcode::Return);
        }
        let targets: Vec<_> = after.block_successors(block).collect();
        assert!(targets.len() < 2 || targets[0] != targets[1], "{}", after.display());
    }
    assert!(returns <= 1, "{}", after.display());

    let values = [0, 1, 2, 3, 4, 5, 6, 7, 8, 100, -1, -2, i32::MAX, i32::MIN];
    for x in values {
        for y in values {
            let args = [x, y];
            assert_eq!(run(&before, &args), run(&after, &args), "{args:?}\n{}", after.display());
        }
    }
    after
}

#[test]
fn conditional_traps_become_branches() {
    let func = legalized(
        "function %f(i32, i32) -> i32 {
        block0(v0: i32, v1: i32):
            trapz v0, user1
            trapnz v1, user2
            v2 = iadd v0, v1
            v3 = icmp eq v2, v0
            trapz v3, user3
            return v2
        }",
    );
    let traps = func.layout.blocks().filter(|&block| {
        let last = func.layout.last_inst(block).unwrap();
        func.dfg.insts[last].opcode() == Opcode::Trap && func.layout.is_cold(block)
    });
    assert_eq!(traps.count(), 3);
}

#[test]
fn a_conditional_trap_can_be_the_first_and_only_instruction_before_a_branch() {
    legalized(
        "function %f(i32, i32) -> i32 {
        block0(v0: i32, v1: i32):
            trapz v0, user1
            brif v1, block1, block2
        block1:
            trapnz v1, int_ovf
            jump block2
        block2:
            return v0
        }",
    );
}

#[test]
fn overflow_traps_become_branches() {
    legalized(
        "function %f(i32, i32) -> i32 {
        block0(v0: i32, v1: i32):
            v2 = uadd_overflow_trap v0, v1, user1
            v3 = uadd_overflow_trap v2, v1, user2
            return v3
        }",
    );
}

#[test]
fn signed_division_checks_for_overflow() {
    for (ty, narrow) in [("i32", ""), ("i8", "ireduce"), ("i16", "ireduce")] {
        let (x, y, wide) = match narrow {
            "" => ("v2 = iadd v0, v0".to_owned(), "v3 = iadd v1, v1".to_owned(), "sextend.i64"),
            op => (format!("v2 = {op}.{ty} v0"), format!("v3 = {op}.{ty} v1"), "sextend.i32"),
        };
        let func = legalized(&format!(
            "function %f(i32, i32) -> i{} {{
            block0(v0: i32, v1: i32):
                {x}
                {y}
                v4 = sdiv v2, v3
                v5 = {wide} v4
                return v5
            }}",
            &wide[wide.len() - 2..]
        ));
        assert!(func.layout.blocks().count() > 1);
    }
    // The same without a mask on the operands, so that the smallest number is divided by -1.
    legalized(
        "function %f(i32, i32) -> i32 {
        block0(v0: i32, v1: i32):
            v2 = sdiv v0, v1
            v3 = srem v0, v1
            v4 = isub v2, v3
            return v4
        }",
    );
}

#[test]
fn signed_division_by_a_harmless_constant_needs_no_check() {
    for (constant, blocks) in [("7", 1), ("-1", 3), ("0", 1)] {
        let func = legalized(&format!(
            "function %f(i32, i32) -> i32 {{
            block0(v0: i32, v1: i32):
                v2 = iconst.i32 {constant}
                v3 = sdiv v0, v2
                return v3
            }}"
        ));
        assert_eq!(func.layout.blocks().count(), blocks, "{}", func.display());
    }
}

#[test]
fn tables_become_chains() {
    let func = legalized(
        "function %f(i32, i32) -> i32 {
        block0(v0: i32, v1: i32):
            v9 = iadd v1, v1
            br_table v0, block4(v1), [block1, block2(v0), block1, block1, block4(v1), block2(v9), block4(v9)]
        block1:
            v2 = iconst.i32 11
            return v2
        block2(v3: i32):
            v4 = iadd v3, v1
            return v4
        block4(v5: i32):
            v6 = ishl v5, v1
            return v6
        }",
    );
    // To block1, block2(v0), block2(v9) and block4(v9); block4(v1) is the default.
    let branches = func.layout.blocks().filter(|&block| func.block_successors(block).count() == 2);
    assert_eq!(branches.count(), 4, "{}", func.display());
}

#[test]
fn a_table_of_defaults_is_a_jump() {
    for table in ["", "block1, block1"] {
        let func = legalized(&format!(
            "function %f(i32, i32) -> i32 {{
            block0(v0: i32, v1: i32):
                br_table v0, block1, [{table}]
            block1:
                return v1
            }}"
        ));
        assert_eq!(func.layout.blocks().count(), 2);
    }
}

#[test]
fn returns_meet_in_one_block() {
    legalized(
        "function %f(i32, i32) -> i32, i32 {
        block0(v0: i32, v1: i32):
            brif v0, block1, block2
        block1:
            return v0, v1
        block2:
            return v1, v0
        }",
    );
}

#[test]
fn equal_targets_get_edges_of_their_own() {
    let func = legalized(
        "function %f(i32, i32) -> i32 {
        block0(v0: i32, v1: i32):
            brif v0, block1(v0), block1(v1)
        block1(v2: i32):
            brif v2, block2, block2
        block2:
            return v2
        }",
    );
    assert_eq!(func.layout.blocks().count(), 5);
}

#[test]
fn source_locations_stay() {
    let mut func = parse(
        "function %f(i32, i32) -> i32 {
        block0(v0: i32, v1: i32):
            @10 trapz v0, user1
            @11 v2 = sdiv v0, v1
            @12 v3 = uadd_overflow_trap v2, v1, user2
            @13 br_table v3, block1, [block2, block1, block2]
        block1:
            @14 return v0
        block2:
            @15 return v1
        }",
    );
    legalize::after(&mut func);
    let mut seen = [0; 6];
    for block in func.layout.blocks() {
        for inst in func.layout.block_insts(block) {
            let place = func.srcloc(inst);
            assert_ne!(place, SourceLoc::default(), "{}", func.dfg.display_inst(inst));
            seen[(place.bits() - 0x10) as usize] += 1;
        }
    }
    assert!(seen.iter().all(|&count| count > 0), "{seen:?}");
}
