//! Tests that functions on `i64` compute the same in pairs of `i32`, and functions on `i128` in pairs of
//! `i64`. They are compared with cranelift's interpreter, and with the host where the interpreter does not do
//! what CLIF documents.

use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::{Function, Opcode, TrapCode, Type, types};
use cranelift_codegen::settings;
use cranelift_codegen::verifier::verify_function;
use cranelift_interpreter::environment::FunctionStore;
use cranelift_interpreter::interpreter::{Interpreter, InterpreterState};
use cranelift_interpreter::step::{ControlFlow, CraneliftTrap};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::super::several_results::single_results;
use super::super::{LargeCode, after};
use super::divide::MAX_IN_PLACE;
use super::{Unsupported, expand};
use crate::options::Execution;

fn parse(text: &str) -> Vec<Function> {
    cranelift_reader::parse_functions(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn verify(func: &Function) {
    let flags = settings::Flags::new(settings::builder());
    verify_function(func, &flags).unwrap_or_else(|errors| panic!("{errors}\n{}", func.display()));
}

type Outcome = Result<Vec<DataValue>, TrapCode>;

/// The results of the first function, or its trap.
fn run(funcs: &[Function], args: &[DataValue]) -> Outcome {
    let mut store = FunctionStore::default();
    for func in funcs {
        store.add(func.name.to_string(), func);
    }
    let state = InterpreterState::default().with_function_store(store);
    match Interpreter::new(state).call_by_name(&funcs[0].name.to_string(), args).unwrap() {
        ControlFlow::Return(values) => Ok(values.to_vec()),
        ControlFlow::Trap(CraneliftTrap::User(code)) => Err(code),
        other => panic!("unexpected {other:?}"),
    }
}

/// Splits values of type `full`.
fn split(values: &[DataValue], full: Type) -> Vec<DataValue> {
    let halves = values.iter().flat_map(|value| match *value {
        DataValue::I64(bits) if full == types::I64 => {
            [Some(DataValue::I32(bits as i32)), Some(DataValue::I32((bits >> 32) as i32))]
        }
        DataValue::I128(bits) if full == types::I128 => {
            [Some(DataValue::I64(bits as i64)), Some(DataValue::I64((bits >> 64) as i64))]
        }
        ref other => [Some(other.clone()), None],
    });
    halves.flatten().collect()
}

/// Expands as for code where routines can be called.
fn expand_for_one_lane(func: &mut Function, full: Type) -> Result<bool, Unsupported> {
    expand(func, full, LargeCode::Library, Execution::SingleLane)
}

/// Expands `full` in all functions of a text; checks that they are valid and have no value of that type.
fn expanded(text: &str, full: Type) -> Vec<Function> {
    let mut funcs = parse(text);
    for func in &mut funcs {
        verify(func);
        single_results(func);
        assert!(expand_for_one_lane(func, full).unwrap(), "{}", func.display());
        verify(func);
        after(func);
        verify(func);
        assert!(!super::has_values(func, full), "{}", func.display());
        assert!(!expand_for_one_lane(func, full).unwrap());
    }
    funcs
}

/// Edges of 64-bit ranges, and random numbers from a fixed seed.
fn edges() -> Vec<i64> {
    let top = i64::MIN;
    let mut all = vec![0, 1, 2, 3, 7, -1, -2, -7, top, top + 1, i64::MAX, i64::MAX - 1];
    all.extend([31, 32, 33, 63, 64, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 0x1_0000_0000]);
    all.extend([-0x8000_0000, -0x1_0000_0000, 0x1_0000_0001, 0xffff_ffff_0000, 1 << 62, 0xffff]);
    let mut random = SplitMix64::seed_from_u64(7);
    // Some of them shorter.
    all.extend((0..8).map(|index| (random.next_u64() >> (8 * (index % 5))).cast_signed()));
    all
}

/// Compares a function of two `i64` before and after on these pairs of operands.
fn check_pairs(
    text: &str,
    pairs: impl Iterator<Item = (i64, i64)>,
    reference: impl Fn(i64, i64) -> Outcome,
) -> Vec<Function> {
    let after = expanded(text, types::I64);
    for (x, y) in pairs {
        let wanted = reference(x, y).map(|values| split(&values, types::I64));
        let given = run(&after, &split(&[DataValue::I64(x), DataValue::I64(y)], types::I64));
        assert_eq!(wanted, given, "{x:#x}, {y:#x}\n{text}\n{}", after[0].display());
    }
    after
}

/// The same on all pairs of edges.
fn check_against(text: &str, reference: impl Fn(i64, i64) -> Outcome) -> Vec<Function> {
    let edges = edges();
    check_pairs(text, edges.iter().flat_map(|&x| edges.iter().map(move |&y| (x, y))), reference)
}

/// The same with each edge as both operands: for functions that use only one of them.
fn check_singles(text: &str) {
    let before = parse(text);
    check_pairs(text, edges().into_iter().map(|x| (x, x)), |x, y| {
        run(&before, &[DataValue::I64(x), DataValue::I64(y)])
    });
}

fn check(text: &str) -> Vec<Function> {
    let before = parse(text);
    check_against(text, |x, y| run(&before, &[DataValue::I64(x), DataValue::I64(y)]))
}

/// A function of two `i64` with this body; `v9` is its result.
fn function(result: &str, body: &str) -> String {
    format!(
        "function %f(i64, i64) -> {result} {{
        block0(v0: i64, v1: i64):
            {body}
            return v9
        }}"
    )
}

#[test]
fn binary_operations() {
    for name in [
        "iadd", "isub", "imul", "umulhi", "smulhi", "udiv", "urem", "sdiv", "band", "bor", "bxor",
        "smin", "smax", "umin", "umax", "ishl", "ushr", "sshr", "rotl", "rotr",
    ] {
        check(&function("i64", &format!("v9 = {name} v0, v1")));
    }
}

#[test]
fn remainders_by_minus_one_do_not_trap() {
    check_against(&function("i64", "v9 = srem v0, v1"), |x, y| match y {
        0 => Err(TrapCode::INTEGER_DIVISION_BY_ZERO),
        _ => Ok(vec![DataValue::I64(x.wrapping_rem(y))]),
    });
}

#[test]
fn constant_operands() {
    for name in ["iadd", "isub", "imul", "band", "bxor", "ishl", "ushr", "sshr", "rotl", "rotr"] {
        for constant in edges().into_iter() {
            let constant = format!("v2 = iconst.i64 {constant}");
            check_singles(&function("i64", &format!("{constant}\n v9 = {name} v0, v2")));
            check_singles(&function("i64", &format!("{constant}\n v9 = {name} v2, v1")));
        }
    }
    for name in ["udiv", "urem", "sdiv", "umulhi", "smulhi"] {
        for constant in [0, 1, 10, -1, -3, 0x1_0000_0000, 0xffff_ffff, i64::MIN] {
            let constant = format!("v2 = iconst.i64 {constant}");
            check_singles(&function("i64", &format!("{constant}\n v9 = {name} v0, v2")));
            check_singles(&function("i64", &format!("{constant}\n v9 = {name} v2, v1")));
        }
    }
}

#[test]
fn unary_operations() {
    for name in ["ineg", "iabs", "bnot", "bitrev", "bswap", "clz", "ctz", "cls", "popcnt"] {
        check_singles(&function("i64", &format!("v9 = {name} v0")));
    }
}

#[test]
fn comparisons() {
    for cc in ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"] {
        check(&function("i8", &format!("v9 = icmp {cc} v0, v1")));
        for constant in [0, 1, -1, i64::MIN] {
            let constant = format!("v2 = iconst.i64 {constant}");
            check(&function("i8", &format!("{constant}\n v9 = icmp {cc} v0, v2")));
        }
    }
}

#[test]
fn conversions() {
    for ty in ["i8", "i16", "i32"] {
        for name in ["uextend", "sextend"] {
            let narrow = format!("v2 = ireduce.{ty} v0");
            check(&function("i64", &format!("{narrow}\n v9 = {name}.i64 v2")));
        }
        check(&function(ty, &format!("v9 = ireduce.{ty} v0")));
        check(&function("i64", &format!("v2 = ireduce.{ty} v0\n v9 = bmask.i64 v2")));
        check(&function(ty, &format!("v9 = bmask.{ty} v0")));
        // Amounts of any type, on values of any type.
        for name in ["ishl", "ushr", "sshr", "rotl", "rotr"] {
            check(&function("i64", &format!("v2 = ireduce.{ty} v1\n v9 = {name} v0, v2")));
            check(&function(ty, &format!("v2 = ireduce.{ty} v0\n v9 = {name} v2, v1")));
        }
    }
    check(&function("i64", "v9 = bmask.i64 v0"));
    check(&function("i64", "v9 = bitcast.i64 little v0"));
}

#[test]
fn halves() {
    let parts = "v2, v3 = isplit v0\n v4, v5 = isplit v1\n v9 = iconcat v5, v2";
    check_against(&function("i64", parts), |x, y| {
        Ok(vec![DataValue::I64((y >> 32 & 0xffff_ffff) | x << 32)])
    });
}

#[test]
fn choices() {
    for name in ["select", "select_spectre_guard", "bitselect"] {
        check(&function("i64", &format!("v2 = isub v0, v1\n v9 = {name} v2, v0, v1")));
    }
    let wide_condition = "v2 = ireduce.i16 v0\n v3 = iconst.i16 7\n v9 = select v1, v2, v3";
    check(&function("i16", wide_condition));
    let narrow_condition = "v2 = icmp ult v0, v1\n v9 = select v2, v1, v0";
    check(&function("i64", narrow_condition));
}

#[test]
fn the_sign_chooses() {
    let blend = "v2 = isub v1, v0\n v9 = blendv v2, v0, v1";
    check_against(&function("i64", blend), |x, y| {
        Ok(vec![DataValue::I64(if y.wrapping_sub(x) < 0 { x } else { y })])
    });
}

/// Result and flag of an operation as `i64` and `i8`.
fn check_flagged(body: &str, reference: impl Fn(i128, i128, u64, u64) -> (i64, bool)) {
    let text = format!(
        "function %f(i64, i64) -> i64, i8 {{
        block0(v0: i64, v1: i64):
            {body}
            return v8, v9
        }}"
    );
    check_against(&text, |x, y| {
        let (value, flag) = reference(x.into(), y.into(), x as u64, y as u64);
        Ok(vec![DataValue::I64(value), DataValue::I8(flag.into())])
    });
}

fn signed(exact: i128) -> (i64, bool) {
    (exact as i64, i64::try_from(exact).is_err())
}

fn unsigned(exact: i128) -> (i64, bool) {
    (exact as i64, u64::try_from(exact).is_err())
}

#[test]
fn flags_are_exact() {
    let wide = i128::from;
    check_flagged("v8, v9 = uadd_overflow v0, v1", |_, _, x, y| unsigned(wide(x) + wide(y)));
    check_flagged("v8, v9 = usub_overflow v0, v1", |_, _, x, y| unsigned(wide(x) - wide(y)));
    check_flagged("v8, v9 = umul_overflow v0, v1", |_, _, x, y| {
        let (product, overflow) = x.overflowing_mul(y);
        (product as i64, overflow)
    });
    check_flagged("v8, v9 = sadd_overflow v0, v1", |x, y, _, _| signed(x + y));
    check_flagged("v8, v9 = ssub_overflow v0, v1", |x, y, _, _| signed(x - y));
    check_flagged("v8, v9 = smul_overflow v0, v1", |x, y, _, _| signed(x * y));
    for carry in [0_u8, 1, 2, 128] {
        let one = i128::from(carry != 0);
        let body = |name: &str| format!("v2 = iconst.i8 {carry}\n v8, v9 = {name} v0, v1, v2");
        check_flagged(&body("uadd_overflow_cin"), |_, _, x, y| unsigned(wide(x) + wide(y) + one));
        check_flagged(&body("usub_overflow_bin"), |_, _, x, y| unsigned(wide(x) - wide(y) - one));
        check_flagged(&body("sadd_overflow_cin"), |x, y, _, _| signed(x + y + one));
        check_flagged(&body("ssub_overflow_bin"), |x, y, _, _| signed(x - y - one));
    }
    let chained = "v2 = icmp ult v0, v1\n v8, v9 = uadd_overflow_cin v0, v1, v2";
    check_flagged(chained, |_, _, x, y| unsigned(wide(x) + wide(y) + i128::from(x < y)));
}

#[test]
fn traps() {
    check(&function("i64", "v9 = uadd_overflow_trap v0, v1, user1"));
    check(&function("i64", "trapz v0, user1\n trapnz v1, user2\n v9 = iadd v0, v1"));
}

#[test]
fn quotient_and_remainder_are_computed_once() {
    let divisions = |text: &str| {
        let func = check(text).remove(0);
        let text = func.display().to_string();
        text.matches("udiv").count()
    };
    let both = "v2 = udiv v0, v1\n v3 = urem v0, v1\n v9 = iadd v2, v3";
    assert_eq!(divisions(&function("i64", both)), divisions(&function("i64", "v9 = udiv v0, v1")));
}

#[test]
fn parameters_and_arguments_of_blocks() {
    // Greatest common divisor and a switch: pairs through loops, branches and tables.
    check(
        "function %f(i64, i64) -> i64, i32, i64 {
        block0(v0: i64, v1: i64):
            v2 = iconst.i64 0xffff
            v3 = band v0, v2
            v4 = band v1, v2
            v20 = iconst.i32 0
            jump block1(v3, v20, v4)
        block1(v5: i64, v21: i32, v6: i64):
            brif v6, block2, block3(v5)
        block2:
            v7 = urem v5, v6
            v22 = iconst.i32 1
            v23 = iadd v21, v22
            jump block1(v6, v23, v7)
        block3(v8: i64):
            v9 = ireduce.i32 v8
            br_table v9, block6(v0, v9), [block6(v1, v9), block4, block5]
        block4:
            return v8, v21, v0
        block5:
            brif v0, block6(v8, v21), block6(v1, v9)
        block6(v10: i64, v24: i32):
            return v10, v24, v8
        }",
    );
}

#[test]
fn blocks_in_any_order_and_unreachable_ones() {
    check(
        "function %f(i64, i64) -> i64 {
        block0(v0: i64, v1: i64):
            jump block2(v1)
        block1(v2: i64):
            v3 = iadd v2, v4
            return v3
        block3(v6: i64):
            v7 = isub v6, v6
            jump block1(v7)
        block2(v5: i64):
            v4 = imul v5, v0
            jump block1(v4)
        }",
    );
}

#[test]
fn calls() {
    check(
        "function %f(i64, i64) -> i64, i8 {
            fn0 = %g(i8, i64, i64) -> i64, i8, i64
        block0(v0: i64, v1: i64):
            v2 = ireduce.i8 v1
            v3, v4, v5 = call fn0(v2, v0, v1)
            v6 = isub v3, v5
            return v6, v4
        }
        function %g(i8, i64, i64) -> i64, i8, i64 {
            fn0 = %h(i64) -> i64
        block0(v0: i8, v1: i64, v2: i64):
            v3 = call fn0(v2)
            v4 = icmp sgt v1, v3
            return v3, v4, v1
        }
        function %h(i64) -> i64 tail {
            fn0 = %i(i64, i64) -> i64 tail
        block0(v0: i64):
            v1 = bnot v0
            return_call fn0(v0, v1)
        }
        function %i(i64, i64) -> i64 tail {
        block0(v0: i64, v1: i64):
            v2 = imul v0, v1
            return v2
        }",
    );
}

#[test]
fn addresses_are_words() {
    let text = "function %f(i64, i64) -> i64, i32 {
        ss0 = explicit_slot 16
        sig0 = (i64) -> i64
        fn0 = %g(i64) -> i64
    block0(v0: i64, v1: i64):
        v2 = stack_addr.i64 ss0
        v3 = load.i64 notrap aligned v0+8
        store.i64 v3, v2-8
        v4 = load.i64 v1+0x7fff_fffe
        v5 = uload8.i64 v0+3
        v6 = sload32 v0+4
        v7 = load.i32 v1
        istore16 v6, v1+2
        istore32 v4, v1+6
        store v7, v0
        v8 = func_addr.i64 fn0
        v9 = call_indirect sig0, v8(v5)
        v10 = atomic_rmw.i32 add v0, v7
        return v9, v10
    }";
    let func = expanded(text, types::I64).remove(0);
    let text = func.display().to_string();
    let block = func.layout.entry_block().unwrap();
    let [p_low, p_high, q_low, q_high] = func.dfg.block_params(block) else { panic!("{text}") };
    // Nothing uses the upper halves of addresses; offsets that do not fit go into the address.
    for half in [p_high, q_high] {
        assert_eq!(text.matches(&half.to_string()).count(), 1, "{text}");
    }
    for wanted in [
        "stack_addr.i32 ss0".to_owned(),
        format!("load.i32 notrap aligned {p_low}+8"),
        format!("load.i32 notrap aligned {p_low}+12"),
        format!("load.i32 {q_low}+0x7fff_fffe"),
        format!("iadd {q_low}, "),
        format!("uload8.i32 {p_low}+3"),
        format!("load.i32 {p_low}+4"),
        format!("load.i32 {q_low}\n"),
        format!(", {q_low}+2\n"),
        format!(", {q_low}+6\n"),
        format!("atomic_rmw.i32 add {p_low}, "),
        "func_addr.i32 fn0".to_owned(),
        "sig0 = (i32, i32) -> i32, i32 ".to_owned(),
    ] {
        assert!(text.contains(&wanted), "{wanted} in\n{text}");
    }
}

#[test]
fn intrinsics_are_words_and_promises_hold_for_both_halves() {
    let text = "function %f(i64) -> i64 {
        fn0 = %harp_lane_id() -> i64
        fn1 = %harp_assume_uniform(i64) -> i64
    block0(v0: i64):
        v1 = call fn0()
        v2 = call fn1(v0)
        v3 = iadd v1, v2
        return v3
    }";
    let func = expanded(text, types::I64).remove(0);
    let insts = func.layout.blocks().flat_map(|block| func.layout.block_insts(block));
    let calls: Vec<_> = insts.filter_map(|inst| Intrinsic::of_call(&func, inst)).collect();
    use crate::intrinsic::Intrinsic::{self, AssumeUniform};
    assert_eq!(calls, [Intrinsic::LANE_ID, AssumeUniform, AssumeUniform], "{}", func.display());
}

#[test]
fn what_is_not_covered_is_named() {
    for (body, name) in [
        ("v9 = atomic_rmw.i64 add v0, v1", "atomic_rmw"),
        ("v2 = fcvt_from_sint.f32 v0\n v9 = bmask.i64 v1", "fcvt_from_sint"),
        ("v2 = bitcast.f64 little v0\n v9 = bmask.i64 v1", "bitcast"),
    ] {
        let mut func = parse(&function("i64", body)).remove(0);
        verify(&func);
        let error = expand_for_one_lane(&mut func, types::I64).unwrap_err();
        assert!(error.what.contains(name), "{}", error.what);
    }
}

#[test]
fn calls_with_handlers_are_named() {
    let text = "function %f(i64) -> i64 {
        sig0 = (i32) -> i64 tail
        fn0 = %g(i32) -> i64 tail
    block0(v0: i64):
        v1 = ireduce.i32 v0
        try_call fn0(v1), sig0, block1(ret0), [ default: block2 ]
    block1(v2: i64):
        return v2
    block2:
        return v0
    }";
    let mut func = parse(text).remove(0);
    let error = expand_for_one_lane(&mut func, types::I64).unwrap_err();
    assert!(error.what.contains("try_call"), "{}", error.what);
}

#[test]
fn other_types_stay() {
    let text = "function %f(i32, i8) -> i32 {
    block0(v0: i32, v1: i8):
        v2 = ishl v0, v1
        return v2
    }";
    let mut func = parse(text).remove(0);
    let before = func.display().to_string();
    assert!(!expand_for_one_lane(&mut func, types::I64).unwrap());
    assert_eq!(before, func.display().to_string());
}

#[test]
fn comparisons_of_128_bits() {
    for cc in ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"] {
        for operands in [
            "v2 = iconcat v0, v1\n v3 = iconcat v1, v0",
            "v2 = uextend.i128 v0\n v3 = sextend.i128 v1",
        ] {
            let text = function("i8", &format!("{operands}\n v9 = icmp {cc} v2, v3"));
            let (before, mut after) = (parse(&text), parse(&text));
            verify(&after[0]);
            assert!(expand_for_one_lane(&mut after[0], types::I128).unwrap());
            verify(&after[0]);
            for x in edges() {
                for y in edges() {
                    let args = [DataValue::I64(x), DataValue::I64(y)];
                    assert_eq!(run(&before, &args), run(&after, &args), "{x:#x}, {y:#x}\n{text}");
                }
            }
        }
    }
}

/// A chain of `count` divisions.
fn divisions(opcode: &str, count: usize) -> Function {
    let mut text = "function %f(i64, i64) -> i64 {\nblock0(v0: i64, v1: i64):\n".to_owned();
    let mut last = 0;
    for value in 2..2 + count {
        text += &format!("    v{value} = {opcode} v{last}, v1\n");
        last = value;
    }
    parse(&format!("{text}    return v{last}\n}}")).remove(0)
}

#[test]
fn many_divisions_are_calls_behind_the_checks() {
    for (opcode, checks) in [("udiv", 1), ("urem", 1), ("sdiv", 2), ("srem", 1)] {
        for count in [MAX_IN_PLACE, MAX_IN_PLACE + 1] {
            let mut func = divisions(opcode, count);
            assert!(expand_for_one_lane(&mut func, types::I64).unwrap());
            verify(&func);
            let insts = || func.layout.blocks().flat_map(|block| func.layout.block_insts(block));
            let number = |wanted: fn(Opcode) -> bool| {
                insts().filter(|&inst| wanted(func.dfg.insts[inst].opcode())).count()
            };
            let many = count > MAX_IN_PLACE;
            assert_eq!(number(Opcode::is_call), if many { count } else { 0 }, "{opcode}");
            assert_eq!(number(|opcode| opcode == Opcode::Udiv) == 0, many, "{opcode}");
            let traps = number(|opcode| matches!(opcode, Opcode::Trapz | Opcode::Trapnz));
            assert_eq!(traps, checks * count, "{opcode}");
        }
    }
}

#[test]
fn routines_hold_a_division_without_checks() {
    for opcode in ["udiv", "urem", "sdiv", "srem"] {
        let mut func = divisions(opcode, 1);
        assert!(expand(&mut func, types::I64, LargeCode::InPlace, Execution::SingleLane).unwrap());
        verify(&func);
        assert_eq!(func.layout.blocks().count(), 1, "{opcode}");
        let mut insts = func.layout.blocks().flat_map(|block| func.layout.block_insts(block));
        assert!(!insts.any(|inst| {
            let opcode = func.dfg.insts[inst].opcode();
            opcode.is_call() || matches!(opcode, Opcode::Trapz | Opcode::Trapnz)
        }));
    }
}
