//! Functions on integers of all widths, on one lane of many machines, against cranelift-interpreter.
//!
//! The operations one by one are judged in kernels (`differential.rs`). Here `i64` goes through calls,
//! block arguments, stacks and loops, on machines where it is a pair of words and where it is not.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic like the tests themselves")]

use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::Function;
use harp_isa::ArchId;
use harp_jit::{CompileOptions, OptLevel};
use harp_tests::functions::{Result, compiled, expected, observed, single_lane};

/// Both words and encodings, with and without the extension, few registers and many.
const ARCHS: [&str; 8] = [
    "harp32",
    "harp64",
    "4w32/16/8/8+x",
    "8w32/32/16/16+x",
    "4w8/2/4/4",
    "8w8/2/2/2",
    "4b8/2/1/1+x",
    "4w64/64/4/4",
];

fn parse(text: &str) -> Vec<Function> {
    cranelift_reader::parse_functions(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Calls the first function with each list of arguments, on all machines, and compares.
fn agree_with(functions: &[Function], calls: &[Vec<DataValue>], wanted: &[Result]) {
    let entry = functions[0].name.to_string().trim_start_matches('%').to_owned();
    for arch in ARCHS.map(|id| id.parse::<ArchId>().unwrap()) {
        for opt_level in [OptLevel::None, OptLevel::Speed] {
            let options = CompileOptions { opt_level, ..single_lane() };
            let module = compiled(functions, arch, &options);
            for (args, wanted) in calls.iter().zip(wanted) {
                let given = observed(&module, functions, &entry, args)
                    .unwrap_or_else(|error| panic!("{arch} {opt_level:?} {args:?}: {error}"));
                assert_eq!(given, *wanted, "{arch} {opt_level:?} {entry}{args:?}");
            }
        }
    }
}

/// The same with what the interpreter says.
fn agree(text: &str, calls: &[Vec<DataValue>]) {
    let functions = parse(text);
    let entry = functions[0].name.to_string().trim_start_matches('%').to_owned();
    let wanted: Vec<Result> = calls.iter().map(|args| expected(&functions, &entry, args)).collect();
    agree_with(&functions, calls, &wanted);
}

fn longs<const N: usize>(args: [i64; N]) -> Vec<DataValue> {
    args.map(DataValue::I64).into()
}

/// Pairs at the ends of words, and between.
fn pairs() -> Vec<Vec<DataValue>> {
    let values = [0, 1, -1, 0xffff_ffff, 0x1_0000_0000, i64::MIN, i64::MAX, 0x1234_5678_9abc_def0];
    values.iter().flat_map(|&x| values.iter().map(move |&y| longs([x, y]))).collect()
}

#[test]
fn parameters_and_results_of_all_widths() {
    // More than the registers of any machine hold here, so that pairs lie on the stack, too, and
    // across its beginning.
    let text =
        "function %f(i64, i8, i64, i16, i32, i64, i64, i8, i64, i64) -> i64, i8, i64, i16, i64 {
        fn0 = %g(i8, i64, i64, i16, i64, i32, i64, i64, i64, i8) -> i64, i16, i8, i64, i64
    block0(v0: i64, v1: i8, v2: i64, v3: i16, v4: i32, v5: i64, v6: i64, v7: i8, v8: i64, v9: i64):
        v10, v11, v12, v13, v14 = call fn0(v7, v9, v8, v3, v0, v4, v2, v5, v6, v1)
        return v13, v12, v10, v11, v14
    }
    function %g(i8, i64, i64, i16, i64, i32, i64, i64, i64, i8) -> i64, i16, i8, i64, i64 {
    block0(v0: i8, v1: i64, v2: i64, v3: i16, v4: i64, v5: i32, v6: i64, v7: i64, v8: i64, v9: i8):
        v10 = isub v1, v2
        v11 = sextend.i64 v0
        v12 = uextend.i64 v5
        v13 = imul v4, v12
        v14 = iadd v13, v11
        v15 = bxor v6, v7
        v16 = sextend.i32 v3
        v17 = rotl v15, v16
        v18 = isub v8, v17
        v19 = iadd v0, v9
        return v10, v3, v19, v14, v18
    }";
    let call = |k: i64| {
        vec![
            DataValue::I64(0x0123_4567_89ab_cdef_i64.wrapping_mul(k)),
            DataValue::I8(-3),
            DataValue::I64(-k),
            DataValue::I16(-300),
            DataValue::I32(-70_000),
            DataValue::I64(k << 33),
            DataValue::I64(i64::MIN.wrapping_add(k)),
            DataValue::I8(100),
            DataValue::I64(0xffff_ffff),
            DataValue::I64(0x1_0000_0000 - k),
        ]
    };
    agree(text, &[call(1), call(-5), call(0x7777_7777_7777)]);
}

#[test]
fn recursion_on_pairs() {
    // Greatest common divisor by recursion, with and without tail calls.
    for (convention, last) in
        [("", "v4 = call fn0(v1, v3)\nreturn v4"), ("tail", "return_call fn0(v1, v3)")]
    {
        let text = format!(
            "function %start(i64, i64) -> i64 {{
                fn0 = %gcd(i64, i64) -> i64 {convention}
            block0(v0: i64, v1: i64):
                v2 = call fn0(v0, v1)
                return v2
            }}
            function %gcd(i64, i64) -> i64 {convention} {{
                fn0 = %gcd(i64, i64) -> i64 {convention}
            block0(v0: i64, v1: i64):
                brif v1, block1, block2
            block1:
                v3 = urem v0, v1
                {last}
            block2:
                return v0
            }}"
        );
        agree(&text, &pairs());
    }
}

#[test]
fn divisions_and_their_traps() {
    let text = "function %f(i64, i64) -> i64, i64, i64 {
    block0(v0: i64, v1: i64):
        v2 = udiv v0, v1
        v3 = urem v0, v1
        v4 = sdiv v0, v1
        return v2, v3, v4
    }";
    agree(text, &pairs());
}

#[test]
fn divisions_and_their_traps_where_there_are_many() {
    // Machines with 4-byte words call routines then. The first one to trap decides, so each is first once.
    let opcodes = ["udiv", "urem", "sdiv", "srem"];
    for turn in 0..opcodes.len() {
        let [first, second, third, fourth] =
            std::array::from_fn(|index| opcodes[(turn + index) % opcodes.len()]);
        let text = format!(
            "function %f(i64, i64) -> i64, i64, i64, i64, i64, i64 {{
            block0(v0: i64, v1: i64):
                v2 = {first} v0, v1
                v3 = {second} v0, v1
                v4 = {third} v0, v1
                v5 = {fourth} v0, v1
                v6 = bxor v2, v0
                v7 = {first} v6, v1
                v8 = {third} v6, v1
                return v2, v3, v4, v5, v7, v8
            }}"
        );
        agree(&text, &pairs());
    }
}

#[test]
fn loops_over_pairs() {
    // A multiplicative generator (Knuth's constants), its steps counted until the top byte is 7, and the
    // states folded by multiplication.
    let text = "function %f(i64, i64) -> i64, i64, i16 {
    block0(v0: i64, v1: i64):
        v2 = iconst.i64 1
        v3 = iconst.i16 0
        jump block1(v0, v2, v3)
    block1(v4: i64, v5: i64, v6: i16):
        v7 = iconst.i64 6364136223846793005
        v8 = imul v4, v7
        v9 = iconst.i64 1442695040888963407
        v10 = iadd v8, v9
        v11 = bor v10, v1
        v12 = umulhi v5, v10
        v13 = bxor v12, v11
        v14 = iconst.i16 1
        v15 = iadd v6, v14
        v16 = iconst.i64 56
        v17 = ushr v10, v16
        v18 = iconst.i64 7
        v19 = icmp eq v17, v18
        v20 = iconst.i16 40
        v21 = icmp uge v15, v20
        v22 = bor v19, v21
        brif v22, block2, block1(v10, v13, v15)
    block2:
        return v10, v13, v15
    }";
    agree(text, &pairs());
}

#[test]
fn comparisons_that_the_mid_end_widens() {
    // Cranelift turns this form into a comparison of `i128`s.
    for cc in ["ult", "ule", "ugt", "uge", "slt", "sle", "sgt", "sge"] {
        let low = cc.replace('s', "u");
        let text = format!(
            "function %f(i64, i64, i64, i64) -> i8, i64 {{
            block0(v0: i64, v1: i64, v2: i64, v3: i64):
                v4 = icmp eq v1, v3
                v5 = icmp {low} v0, v2
                v6 = icmp {cc} v1, v3
                v7 = select v4, v5, v6
                v8 = select v7, v0, v2
                return v7, v8
            }}"
        );
        let values = [0, 1, -1, i64::MIN];
        let mut calls = Vec::new();
        for bits in 0..256 {
            calls.push(longs([0, 2, 4, 6].map(|at| values[bits >> at & 3])));
        }
        agree(&text, &calls.into_iter().step_by(7).collect::<Vec<_>>());
    }
}

#[test]
fn bytes_of_pairs_in_memory() {
    // Little-endian, whatever the word is: what is stored whole is loaded in parts.
    let text = "function %f(i64, i64) -> i64, i64, i32, i64 {
        ss0 = explicit_slot 32, align = 8
    block0(v0: i64, v1: i64):
        v2 = stack_addr.i64 ss0
        store notrap aligned v0, v2
        store notrap aligned v1, v2+8
        v3 = load.i64 notrap v2+5
        v4 = sload32 notrap aligned v2+4
        v5 = load.i32 notrap aligned v2+8
        v6 = uload16.i64 notrap aligned v2+14
        v7 = uload8.i64 notrap v2+3
        v8 = iadd v6, v7
        return v3, v4, v5, v8
    }";
    let wanted: Vec<Result> = pairs()
        .iter()
        .map(|args| {
            let [DataValue::I64(x), DataValue::I64(y)] = args[..] else { unreachable!() };
            let mut bytes = x.to_le_bytes().to_vec();
            bytes.extend(y.to_le_bytes());
            let word = |at: usize| i64::from_le_bytes(*bytes[at..].first_chunk().unwrap());
            let half = |at: usize| i32::from_le_bytes(*bytes[at..].first_chunk().unwrap());
            let sum = i64::from(bytes[14]) + (i64::from(bytes[15]) << 8) + i64::from(bytes[3]);
            Result::Values(vec![
                DataValue::I64(word(5)),
                DataValue::I64(half(4).into()),
                DataValue::I32(half(8)),
                DataValue::I64(sum),
            ])
        })
        .collect();
    agree_with(&parse(text), &pairs(), &wanted);
}
