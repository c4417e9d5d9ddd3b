//! The interpreter of modules against results that follow from CLIF's documentation.

use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::TrapCode;
use harp_isa::WordSize;
use harp_jit::DataAccess;

use super::{Address, Datum, Ending, ModuleCase};
use crate::oracle::{OracleError, Stop};

/// Calls the first function of a text with a writable datum `%d` of 16 bytes, 1 to 16, and a table of
/// the functions, `%t`.
fn case(text: &str, args: &[i64]) -> ModuleCase {
    let functions = cranelift_reader::parse_functions(text).unwrap();
    let table = (0..functions.len()).map(|index| (8 * index, Address::Function(index))).collect();
    let datum = |name: &str, bytes, access, addresses| Datum {
        name: name.to_owned(),
        bytes,
        access,
        addresses,
    };
    let data = vec![
        datum("d", (1..17).collect(), DataAccess::ReadWrite, vec![]),
        datum("t", vec![0; 8 * functions.len()], DataAccess::ReadOnly, table),
    ];
    let args = args.iter().map(|&arg| DataValue::I64(arg)).collect();
    ModuleCase { word: WordSize::Eight, functions, data, args }
}

fn results(text: &str, args: &[i64]) -> Vec<DataValue> {
    match case(text, args).expected().unwrap().0.ending {
        Ending::Values(values) => values,
        trap => panic!("{trap:?}"),
    }
}

#[test]
fn functions_call_each_other_and_themselves() {
    let text = "function %even(i64) -> i64 {
            fn0 = %odd(i64) -> i64
        block0(v0: i64):
            v1 = iconst.i64 1
            brif v0, block1, block2
        block1:
            v2 = isub v0, v1
            v3 = call fn0(v2)
            v4 = iadd v3, v3
            return v4
        block2:
            return v1
        }
        function %odd(i64) -> i64 tail {
            gv0 = symbol %t
            sig0 = (i64) -> i64
        block0(v0: i64):
            v1 = symbol_value.i64 gv0
            v2 = load.i64 notrap aligned v1
            v3 = call_indirect sig0, v2(v0)
            return v3
        }";
    assert_eq!(results(text, &[5]), [DataValue::I64(32)]);
}

#[test]
fn each_call_has_its_own_stack_slots() {
    let text = "function %f(i64) -> i64 {
            ss0 = explicit_slot 8
            fn0 = %f(i64) -> i64
        block0(v0: i64):
            v1 = stack_addr.i64 ss0
            store v0, v1
            v2 = iconst.i64 1
            v3 = isub v0, v2
            brif v3, block1, block2
        block1:
            v4 = call fn0(v3)
            v5 = load.i64 v1
            v6 = iadd v4, v5
            return v6
        block2:
            return v0
        }";
    assert_eq!(results(text, &[10]), [DataValue::I64(55)]);
}

#[test]
fn tail_calls_take_no_stack() {
    let text = "function %f(i64) -> i64 tail {
            ss0 = explicit_slot 65536
            fn0 = %f(i64) -> i64 tail
        block0(v0: i64):
            v1 = iconst.i64 1
            v2 = isub v0, v1
            brif v2, block1, block2
        block1:
            return_call fn0(v2)
        block2:
            return v2
        }";
    assert_eq!(results(text, &[1000]), [DataValue::I64(0)]);
    let calls = text.replace("return_call fn0(v2)", "v3 = call fn0(v2)\n return v3");
    assert!(matches!(case(&calls, &[1000]).expected(), Err(OracleError::OutOfFuel)));
}

#[test]
fn big_endian_accesses_swap_bytes() {
    let text = "function %f() -> i32, i64, i64 {
            gv0 = symbol %d
            gv1 = iadd_imm.i64 gv0, 1
        block0:
            v0 = symbol_value.i64 gv1
            v1 = load.i32 big v0
            v2 = sload16.i64 big v0+2
            v3 = iconst.i64 0x1234
            istore16 big v3, v0+5
            v4 = load.i64 little v0
            return v1, v2, v4
        }";
    let wanted = [
        DataValue::I32(0x0203_0405),
        DataValue::I64(0x0405),
        DataValue::I64(0x0934_1206_0504_0302),
    ];
    assert_eq!(results(text, &[]), wanted);
}

#[test]
fn big_endian_atomic_accesses_swap_bytes() {
    let text = "function %f() -> i16, i32, i32, i64 {
            gv0 = symbol %d
        block0:
            v0 = symbol_value.i64 gv0
            v1 = iconst.i64 4
            v2 = iadd v0, v1
            v3 = iconst.i32 1
            v4 = atomic_load.i16 big v0
            v5 = atomic_rmw.i32 big add v2, v3
            v6 = atomic_cas.i32 big v2, v5, v3
            atomic_store big v4, v0
            v7 = load.i64 little v0
            return v4, v5, v6, v7
        }";
    let wanted = [
        DataValue::I16(0x0102),
        DataValue::I32(0x0506_0708),
        DataValue::I32(0x0506_0709),
        DataValue::I64(0x0907_0605_0403_0201),
    ];
    assert_eq!(results(text, &[]), wanted);
}

#[test]
fn what_was_stored_before_a_trap_remains() {
    let text = "function %f(i64) {
            gv0 = symbol %d
        block0(v0: i64):
            v1 = symbol_value.i64 gv0
            istore8 v0, v1
            trap user7
        }";
    let (effect, executed) = case(text, &[99]).expected().unwrap();
    assert_eq!(effect.ending, Ending::Trap(Stop::Code(TrapCode::unwrap_user(7))));
    assert_eq!((effect.data[0][0], effect.data[0][1], executed.len()), (99, 2, 3));
}

#[test]
fn what_slots_hold_at_first_does_not_determine_anything() {
    let text = "function %f() -> i8 {
            ss0 = explicit_slot 8
        block0:
            v0 = stack_addr.i64 ss0
            v1 = load.i8 v0
            return v1
        }";
    assert!(!case(text, &[]).is_determined());
    assert!(
        case(
            &text.replace("return v1", "return v2").replace("v1 =", "v2 = iconst.i8 1\n v1 ="),
            &[]
        )
        .is_determined()
    );
}
