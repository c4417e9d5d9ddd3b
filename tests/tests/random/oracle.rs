//! The oracle against results that follow from CLIF's documentation.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic like the tests themselves")]

use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::TrapCode;
use harp_isa::WordSize;
use harp_jit::DataAccess;
use harp_tests::functions::parse;
use harp_tests::oracle::{
    Address, Argument, Case, Datum, Elements, Ending, ItemTrap, OracleError, Start, Stop,
};

/// A launch of a kernel that gets the address of 64 bytes as its only argument, and has it in `v1`.
fn kernel(word: WordSize, declarations: &str, body: &str, extents: [u64; 3]) -> Case {
    let offset = 9 * word.bytes();
    let text = format!(
        "function %kernel(word) fast {{
            {declarations}
        block0(v0: word):
            v1 = load.word notrap aligned v0+{offset}
            {body}
        }}"
    );
    let buffer = Argument::Buffer(Elements::Ints, (0..64).collect());
    Case::kernel(parse(word, &text).remove(0), word, extents, vec![buffer])
}

/// The traps of a launch, or the 64 bytes.
fn launched(case: &Case) -> Result<Result<Vec<u8>, Vec<ItemTrap>>, OracleError> {
    let (mut effect, _) = case.expected(4)?;
    Ok(match effect.ending {
        Ending::Traps(traps) => Err(traps),
        Ending::Values(_) => Ok(effect.memory.remove(0)),
    })
}

#[test]
fn every_item_gets_its_ids_and_the_grid() {
    let ids = "fn0 = %harp_global_id_x() -> i64
            fn1 = %harp_global_id_y() -> i64
            fn2 = %harp_global_id_z() -> i64";
    let body = "v2 = call fn0()
            v3 = call fn1()
            v4 = call fn2()
            v5 = load.i64 notrap aligned v0
            v6 = load.i64 notrap aligned v0+8
            v7 = imul v4, v6
            v8 = iadd v7, v3
            v9 = imul v8, v5
            v10 = iadd v9, v2
            v11 = iadd v1, v10
            v12 = iconst.i64 100
            v13 = iadd v12, v10
            istore8 v13, v11
            return";
    let case = kernel(WordSize::Eight, ids, body, [3, 2, 4]);
    let bytes = launched(&case).unwrap().unwrap();
    assert!(bytes[..24].iter().copied().eq(100..124));
    assert!(bytes[24..].iter().copied().eq(24..64));
}

#[test]
fn addresses_wrap_and_offsets_are_signed() {
    let body = "v2 = iconst.word 0x7fff_fff0
            v3 = iadd v1, v2
            v4 = iadd v3, v2
            v5 = iadd v4, v2
            v6 = iadd v5, v2
            v7 = uload8.word v6+64
            v8 = iconst.word 16
            v9 = iadd v1, v8
            v10 = uload8.word v9-9
            istore8 v7, v1+40
            istore8 v10, v1+41
            return";
    // Four times 0x7ffffff0 is -64 modulo 2^32.
    let outcome = launched(&kernel(WordSize::Four, "", body, [1, 1, 1])).unwrap();
    assert_eq!(outcome.unwrap()[40..42], [0, 7]);
    let outcome = launched(&kernel(WordSize::Eight, "", body, [1, 1, 1])).unwrap();
    assert_eq!(outcome.unwrap_err()[0].stop, Stop::BadAddress);
}

#[test]
fn remainders_by_minus_one_are_zero_and_quotients_overflow() {
    let launched = |divide: &str, items| {
        let body = format!(
            "v2 = call fn0()
            v3 = iconst.i32 0x8000_0000
            v4 = iconst.i32 1
            v5 = isub v2, v4
            v6 = srem v3, v5
            v7 = iconst.i32 2
            v8 = ishl v2, v7
            v9 = iadd v1, v8
            store v6, v9
            {divide}
            return"
        );
        let ids = "fn0 = %harp_global_id_x() -> i32";
        launched(&kernel(WordSize::Four, ids, &body, [items, 1, 1])).unwrap()
    };
    let traps = launched("v10 = sdiv v3, v5", 3).unwrap_err();
    let overflow = ItemTrap { item: 0, stop: Stop::Code(TrapCode::INTEGER_OVERFLOW) };
    assert_eq!(traps, [overflow, ItemTrap { item: 1, stop: Stop::DivideByZero }]);
    let bytes = launched("", 1).unwrap();
    assert_eq!((&bytes[..4], &bytes[4..8]), (&[0; 4][..], &[4, 5, 6, 7][..]));
}

#[test]
fn what_depends_on_the_machine_is_refused() {
    let error = |declarations, body| {
        launched(&kernel(WordSize::Four, declarations, body, [1, 1, 1])).unwrap_err()
    };
    let unknown = error("fn0 = %harp_warp_id() -> i32", "v2 = call fn0()\n return");
    assert!(matches!(unknown, OracleError::Unknown { .. }), "{unknown}");
    let endless = error("", "jump block1\n block1:\n jump block1");
    assert!(matches!(endless, OracleError::OutOfFuel), "{endless}");
}

/// Calls the first function of a text with a writable datum `%d` of 16 bytes, 1 to 16, and a table of
/// the functions, `%t`.
fn case(text: &str, args: &[i64]) -> Case {
    let functions = parse(WordSize::Eight, text);
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
    Case { word: WordSize::Eight, functions, data, start: Start::Call(args), waits: false }
}

fn results(text: &str, args: &[i64]) -> Vec<DataValue> {
    match case(text, args).expected(1).unwrap().0.ending {
        Ending::Values(values) => values,
        traps => panic!("{traps:?}"),
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
    assert!(matches!(case(&calls, &[1000]).expected(1), Err(OracleError::OutOfFuel)));
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
    let (effect, trace) = case(text, &[99]).expected(1).unwrap();
    let stop = Stop::Code(TrapCode::unwrap_user(7));
    assert_eq!(effect.ending, Ending::Traps(vec![ItemTrap { item: 0, stop }]));
    assert_eq!((effect.memory[0][0], effect.memory[0][1], trace.executed.len()), (99, 2, 3));
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
    assert!(!case(text, &[]).is_determined(1));
    let ignored = text.replace("return v1", "v2 = iconst.i8 1\n return v2");
    assert!(case(&ignored, &[]).is_determined(1));
}

#[test]
fn lanes_that_share_a_place_determine_nothing() {
    let case = |step: u32| {
        let body = format!(
            "v2 = call fn0()
            v3 = iconst.i32 {step}
            v4 = imul v2, v3
            v5 = iadd v1, v4
            v6 = load.i32 v5
            v7 = iconst.i32 1
            v8 = iadd v6, v7
            store v8, v5
            return"
        );
        kernel(WordSize::Four, "fn0 = %harp_global_id_x() -> i32", &body, [4, 1, 1])
    };
    // Backwards, the sum is the same.
    assert!(!case(0).is_determined(4));
    assert!(case(4).is_determined(4));
}

/// What an item does: waits in a loop of so many rounds, and waits if it is told to.
fn waiting(rounds: &str, condition: &str) -> Case {
    let declarations = "fn0 = %harp_global_id_x() -> i64
            fn1 = %harp_barrier()";
    let body = format!(
        "v2 = call fn0()
            v3 = iconst.i64 1
            v4 = iconst.i64 2
            jump block1(v3)

        block1(v5: i64):
            call fn1()
            v6 = iadd v5, v3
            v7 = icmp sgt v5, {rounds}
            brif v7, block2, block1(v6)

        block2:
            brif {condition}, block3, block4

        block3:
            call fn1()
            jump block4

        block4:
            return"
    );
    kernel(WordSize::Eight, declarations, &body, [3, 1, 1])
}

#[test]
fn barriers_are_left_where_all_items_meet_in_the_same_round() {
    let cases = [
        ("all meet", waiting("v4", "v3"), 2),
        ("one does not come", waiting("v4", "v2"), 1),
        ("some come more often", waiting("v2", "v3"), 1),
    ];
    for (what, case, left) in cases {
        let expected = launched(&case);
        match left {
            2 => assert!(expected.unwrap().is_ok()),
            _ => assert!(matches!(expected, Err(OracleError::Apart)), "{what}"),
        }
        let common = case.with_common_meetings();
        assert_eq!(common.meetings().len(), left, "{what}");
        assert!(launched(&common).unwrap().is_ok(), "{what}");
    }
}

#[test]
fn barriers_in_cycles_with_several_entries_and_before_traps_are_not_left() {
    let declarations = "fn1 = %harp_barrier()";
    let body = "v2 = iconst.i64 0
            brif v2, block1, block2

        block1:
            call fn1()
            brif v2, block2, block3

        block2:
            brif v2, block1, block3

        block3:
            call fn1()
            brif v2, block4, block5

        block4:
            call fn1()
            trap user1

        block5:
            return";
    let case = kernel(WordSize::Eight, declarations, body, [3, 1, 1]).with_common_meetings();
    assert_eq!(case.meetings().len(), 1);
    assert!(launched(&case).unwrap().is_ok());
}

#[test]
fn a_sum_over_lanes_is_one_items_own_value_and_all_must_come_to_it() {
    let declarations = "fn0 = %harp_global_id_x() -> i64
            fn1 = %harp_reduce_iadd(i64) -> i64";
    let body = |condition: &str| {
        format!(
            "v2 = call fn0()
            v3 = iconst.i64 7
            brif {condition}, block1, block2

        block1:
            v4 = call fn1(v3)
            istore8 v4, v1
            jump block2

        block2:
            return"
        )
    };
    let all = kernel(WordSize::Eight, declarations, &body("v3"), [3, 1, 1]);
    assert_eq!(launched(&all).unwrap().unwrap()[0], 7);
    assert!(!all.is_determined(4), "with more lanes it is more");
    let some = kernel(WordSize::Eight, declarations, &body("v2"), [3, 1, 1]);
    assert!(matches!(launched(&some), Err(OracleError::Apart)));
}
