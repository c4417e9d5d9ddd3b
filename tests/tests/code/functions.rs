//! Functions by the calling convention, on one lane of many machines, against cranelift-interpreter.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic like the tests themselves")]

use std::fmt::Write as _;

use cranelift_codegen::data_value::DataValue;
use harp_isa::ArchId;
use harp_jit::{CompileOptions, OptLevel};
use harp_tests::functions::{Result, compiled, expected, observed, parse, single_lane, word};

/// Registers from 8/2 to 64/64, both words, both encodings, with and without the extension.
const ARCHS: [&str; 12] = [
    "4w8/2/4/4",
    "harp32",
    "harp64",
    "4w64/64/4/4",
    "4w16/16/8/8",
    "4b16/16/2/1",
    "8b32/32/8/8",
    "8w9/3/2/2",
    "8w64/64/2/2+x",
    "4w32/16/8/8+x",
    "4w63/2/4/4",
    "4b8/2/1/1+x",
];

/// The interpreter knows addresses of functions with 64 bits only. What is computed here does not
/// depend on the width but for the bits above it.
fn expected_of_pointers(arch: ArchId, text: &str, entry: &str, call: &[i64]) -> Result {
    let wide = ArchId::HARP64;
    let args: Vec<_> = call.iter().map(|&value| word(wide, value)).collect();
    match expected(&parse(wide.word(), text), entry, &args) {
        Result::Values(values) => Result::Values(
            values
                .iter()
                .map(|value| match value {
                    DataValue::I64(value) => word(arch, *value),
                    other => other.clone(),
                })
                .collect(),
        ),
        trap => trap,
    }
}

/// Calls `%entry` with each list of arguments, on all machines, and compares with the interpreter.
fn agree(text: &str, entry: &str, calls: &[&[i64]]) {
    for arch in ARCHS.map(|id| id.parse::<ArchId>().unwrap()) {
        let functions = parse(arch.word(), text);
        for opt_level in [OptLevel::None, OptLevel::Speed] {
            let module = compiled(&functions, arch, &CompileOptions { opt_level, ..single_lane() });
            for call in calls {
                let args: Vec<_> = call.iter().map(|&value| word(arch, value)).collect();
                let wanted = if text.contains("func_addr") {
                    expected_of_pointers(arch, text, entry, call)
                } else {
                    expected(&functions, entry, &args)
                };
                let given = observed(&module, &functions, entry, &args);
                let given = given.unwrap_or_else(|e| panic!("{arch} {opt_level:?} {call:?}: {e}"));
                assert_eq!(given, wanted, "{arch} {opt_level:?} {call:?}");
            }
        }
    }
}

#[test]
fn a_function_of_its_own() {
    agree(
        "function %f(word, word) -> word {
        block0(v0: word, v1: word):
            v2 = isub v0, v1
            return v2
        }",
        "f",
        &[&[7, 3], &[-1, 1 << 30]],
    );
}

#[test]
fn calls_and_values_that_live_across_them() {
    agree(
        "function %g(word) -> word {
        block0(v0: word):
            v1 = imul v0, v0
            return v1
        }
        function %f(word, word) -> word {
            fn0 = %g(word) -> word
        block0(v0: word, v1: word):
            v2 = call fn0(v0)
            v3 = call fn0(v1)
            v4 = isub v2, v3
            v5 = isub v4, v0
            v6 = call fn0(v5)
            v7 = isub v6, v1
            return v7
        }",
        "f",
        &[&[7, 3], &[-1, 1000]],
    );
}

#[test]
fn recursion() {
    agree(
        "function %fib(word) -> word {
            fn0 = %fib(word) -> word
        block0(v0: word):
            v1 = iconst.word 2
            v2 = icmp ult v0, v1
            brif v2, block1, block2
        block1:
            return v0
        block2:
            v3 = iconst.word 1
            v4 = isub v0, v3
            v5 = call fn0(v4)
            v6 = isub v0, v1
            v7 = call fn0(v6)
            v8 = iadd v5, v7
            return v8
        }",
        "fib",
        &[&[0], &[1], &[12]],
    );
}

#[test]
fn mutual_recursion() {
    agree(
        "function %even(word) -> word {
            fn0 = %odd(word) -> word
        block0(v0: word):
            brif v0, block1, block2
        block1:
            v1 = iconst.word -1
            v2 = iadd v0, v1
            v3 = call fn0(v2)
            return v3
        block2:
            v4 = iconst.word 1
            return v4
        }
        function %odd(word) -> word {
            fn0 = %even(word) -> word
        block0(v0: word):
            brif v0, block1, block2
        block1:
            v1 = iconst.word -1
            v2 = iadd v0, v1
            v3 = call fn0(v2)
            return v3
        block2:
            v4 = iconst.word 0
            return v4
        }",
        "even",
        &[&[0], &[1], &[50], &[51]],
    );
}

/// The signature and the sum of `count` parameters, each times its number.
fn weighted(name: &str, count: usize, convention: &str) -> String {
    let types = vec!["word"; count].join(", ");
    let params: Vec<_> = (0..count).map(|i| format!("v{i}: word")).collect();
    let mut text = format!(
        "function %{name}({types}) -> word {convention} {{\nblock0({}):\nv1000 = iconst.word 0\n",
        params.join(", ")
    );
    for i in 0..count {
        let (factor, product, sum) = (2000 + i, 3000 + i, 1001 + i);
        text += &format!(
            "v{factor} = iconst.word {}\nv{product} = imul v{i}, v{factor}\nv{sum} = iadd v{}, v{product}\n",
            i + 1,
            sum - 1
        );
    }
    text + &format!("return v{}\n}}\n", 1000 + count)
}

#[test]
fn more_arguments_than_registers() {
    for count in [3, 5, 17, 40, 100] {
        let types = vec!["word"; count].join(", ");
        let mut body = String::new();
        let mut args = Vec::new();
        for i in 0..count {
            body += &format!(
                "v{} = iconst.word {}\nv{} = iadd v0, v{}\n",
                10 + i,
                i * i,
                500 + i,
                10 + i
            );
            args.push(format!("v{}", 500 + i));
        }
        let text = weighted("g", count, "")
            + &format!(
                "function %f(word) -> word {{\nfn0 = %g({types}) -> word\nblock0(v0: word):\n{body}\
                 v5 = call fn0({0})\nv6 = call fn0({0})\nv7 = isub v5, v0\nv8 = iadd v6, v7\nreturn v8\n}}",
                args.join(", ")
            );
        agree(&text, "f", &[&[3], &[-100]]);
    }
}

#[test]
fn arguments_outside_in() {
    for count in [1, 4, 9, 33, 70] {
        let args: Vec<i64> = (0..count as i64).map(|i| i * 1001 - 7).collect();
        for convention in ["", "tail"] {
            agree(&weighted("f", count, convention), "f", &[&args]);
        }
    }
}

#[test]
fn several_results() {
    for count in [2, 5, 20, 40] {
        let types = vec!["word"; count].join(", ");
        let results: Vec<_> = (0..count).map(|i| format!("v{}", 100 + i)).collect();
        let mut make = String::new();
        for i in 0..count {
            make += &format!(
                "v{} = iconst.word {}\nv{} = iadd v0, v{}\n",
                200 + i,
                i,
                100 + i,
                200 + i
            );
        }
        let text = format!(
            "function %g(word) -> {types} {{\nblock0(v0: word):\n{make}return {0}\n}}
            function %f(word) -> {types} {{\nfn0 = %g(word) -> {types}\nblock0(v0: word):\n\
            {0} = call fn0(v0)\nv3 = iadd v100, v{last}\n{1} = call fn0(v3)\n\
            v400 = isub v{last}, v300\nreturn v400, {2}\n}}",
            results.join(", "),
            (0..count).map(|i| format!("v{}", 300 + i)).collect::<Vec<_>>().join(", "),
            (1..count).map(|i| format!("v{}", 300 + i)).collect::<Vec<_>>().join(", "),
            last = 99 + count,
        );
        agree(&text, "f", &[&[5], &[-3]]);
        for convention in ["tail", "fast"] {
            let text = text.replace(" {\n", &format!(" {convention} {{\n")).replace(
                &format!("fn0 = %g(word) -> {types}\n"),
                &format!("fn0 = %g(word) -> {types} {convention}\n"),
            );
            agree(&text, "f", &[&[5]]);
        }
    }
}

#[test]
fn tail_calls_with_more_and_fewer_stack_arguments() {
    for (few, many) in [(2, 12), (3, 60), (30, 90)] {
        let list = |count: usize| vec!["word"; count].join(", ");
        let names = |from: usize, count: usize| {
            (from..from + count).map(|i| format!("v{i}")).collect::<Vec<_>>().join(", ")
        };
        let params =
            |count: usize| (0..count).map(|i| format!("v{i}: word")).collect::<Vec<_>>().join(", ");
        let mut grow = String::new();
        for i in 0..many {
            grow += &format!(
                "v{} = iconst.word {}\nv{} = iadd v{}, v{}\n",
                1000 + i,
                i * 3,
                2000 + i,
                i % few,
                1000 + i
            );
        }
        // `up` ends in `down`, which has more arguments and ends in `sum`, which has fewer.
        let text = weighted("sum", few, "tail")
            + &format!(
                "function %down({m}) -> word tail {{\nfn0 = %sum({f}) -> word tail\nblock0({mp}):\n\
                 v5000 = isub v{ml}, v0\nreturn_call fn0(v5000, {back})\n}}
                function %up({f}) -> word tail {{\nfn0 = %down({m}) -> word tail\nblock0({fp}):\n{grow}\
                 return_call fn0({mnames})\n}}
                function %f({f}) -> word {{\nfn0 = %up({f}) -> word tail\nblock0({fp}):\n\
                 v5000 = call fn0({fnames})\nv5001 = call fn0({fnames})\nv5002 = iadd v5000, v5001\n\
                 v5003 = isub v5002, v0\nreturn v5003\n}}",
                m = list(many), f = list(few), mp = params(many), fp = params(few),
                ml = many - 1,
                back = names(many - few + 1, few - 1),
                mnames = names(2000, many), fnames = names(0, few),
            );
        let args: Vec<i64> = (0..few as i64).map(|i| 10 + i).collect();
        agree(&text, "f", &[&args]);
    }
}

#[test]
fn tail_calls_take_constant_stack() {
    // Far deeper than the stack would be.
    let text = "function %count(word, word) -> word tail {
            fn0 = %count(word, word) -> word tail
        block0(v0: word, v1: word):
            brif v0, block1, block2
        block1:
            v2 = iconst.word -1
            v3 = iadd v0, v2
            v4 = iadd v1, v0
            return_call fn0(v3, v4)
        block2:
            return v1
        }";
    for arch in ARCHS.map(|id| id.parse::<ArchId>().unwrap()) {
        let functions = parse(arch.word(), text);
        let module = compiled(&functions, arch, &single_lane());
        let args = [word(arch, 20_000), word(arch, 5)];
        let given = observed(&module, &functions, "count", &args).unwrap();
        assert_eq!(given, Result::Values(vec![word(arch, 20_000 * 20_001 / 2 + 5)]), "{arch}");
    }
}

#[test]
fn indirect_calls() {
    agree(
        "function %add(word, word, word, word) -> word {
        block0(v0: word, v1: word, v2: word, v3: word):
            v4 = iadd v0, v1
            v5 = iadd v2, v3
            v6 = iadd v4, v5
            return v6
        }
        function %sub(word, word, word, word) -> word {
        block0(v0: word, v1: word, v2: word, v3: word):
            v4 = isub v0, v1
            v5 = isub v2, v3
            v6 = isub v4, v5
            return v6
        }
        function %f(word, word) -> word {
            sig0 = (word, word, word, word) -> word
            fn0 = %add(word, word, word, word) -> word
            fn1 = %sub(word, word, word, word) -> word
        block0(v0: word, v1: word):
            v2 = func_addr.word fn0
            v3 = func_addr.word fn1
            v4 = select v0, v2, v3
            v5 = select v1, v2, v3
            v6 = call_indirect sig0, v4(v0, v1, v1, v0)
            v7 = call_indirect sig0, v5(v6, v0, v1, v6)
            v8 = isub v7, v6
            return v8
        }",
        "f",
        &[&[0, 5], &[7, 0], &[3, 4]],
    );
}

#[test]
fn indirect_tail_calls() {
    agree(
        "function %twice(word, word, word) -> word tail {
        block0(v0: word, v1: word, v2: word):
            v3 = iadd v0, v0
            v4 = isub v3, v2
            return v4
        }
        function %less(word, word, word) -> word tail {
        block0(v0: word, v1: word, v2: word):
            v3 = isub v0, v1
            v4 = imul v3, v2
            return v4
        }
        function %choose(word, word, word) -> word tail {
            sig0 = (word, word, word) -> word tail
            fn0 = %twice(word, word, word) -> word tail
            fn1 = %less(word, word, word) -> word tail
        block0(v0: word, v1: word, v2: word):
            v3 = func_addr.word fn0
            v4 = func_addr.word fn1
            v5 = select v0, v3, v4
            return_call_indirect sig0, v5(v1, v2, v0)
        }
        function %f(word, word, word) -> word {
            fn0 = %choose(word, word, word) -> word tail
        block0(v0: word, v1: word, v2: word):
            v3 = call fn0(v0, v1, v2)
            v4 = isub v3, v1
            return v4
        }",
        "f",
        &[&[0, 5, 9], &[1, 5, 9]],
    );
}

#[test]
fn stack_slots_whose_addresses_escape() {
    agree(
        "function %put(word, word) {
        block0(v0: word, v1: word):
            store notrap aligned v1, v0
            v2 = iadd v1, v1
            store notrap aligned v2, v0+8
            return
        }
        function %f(word) -> word {
            ss0 = explicit_slot 16
            ss1 = explicit_slot 48
            ss2 = explicit_slot 16
            fn0 = %put(word, word)
        block0(v0: word):
            v1 = stack_addr.word ss0
            v2 = stack_addr.word ss1+24
            v3 = stack_addr.word ss2
            call fn0(v1, v0)
            v4 = iadd v0, v0
            call fn0(v2, v4)
            call fn0(v3, v1)
            v5 = load.word notrap aligned v1
            v6 = load.word notrap aligned v1+8
            v7 = load.word notrap aligned v2+8
            v8 = load.word notrap aligned v3
            v9 = isub v8, v1
            v10 = iadd v5, v6
            v11 = iadd v10, v7
            v12 = iadd v11, v9
            return v12
        }",
        "f",
        &[&[11], &[-5]],
    );
}

/// More values across calls than there are registers that calls preserve, in functions that call each
/// other: what one of them does not give back, another one misses.
#[test]
fn values_survive_calls_under_pressure() {
    for live in [6, 20, 45] {
        let mut text = String::new();
        for (name, callee) in [("f", "g"), ("g", "h"), ("h", "i")] {
            let _ = write!(
                text,
                "function %{name}(word) -> word {{\nfn0 = %{callee}(word) -> word\nblock0(v0: word):\n"
            );
            for i in 0..live {
                let (constant, value) = (1000 + i, 2000 + i);
                let _ = writeln!(
                    text,
                    "v{constant} = iconst.word {}\nv{value} = imul v0, v{constant}",
                    3 * i + 1
                );
            }
            let _ = writeln!(text, "v3000 = icmp ult v0, v2001\nv1 = call fn0(v2001)");
            for i in 0..live {
                let before = if i == 0 { 1 } else { 3999 + i };
                let _ = writeln!(text, "v{} = isub v{}, v{before}", 4000 + i, 2000 + i);
            }
            let last = 3999 + live;
            let _ = writeln!(
                text,
                "v5 = call fn0(v{last})\nv6 = select v3000, v5, v1\nv7 = isub v6, v2000\nreturn v7\n}}"
            );
        }
        text += "function %i(word) -> word {\nblock0(v0: word):\nv1 = imul v0, v0\nreturn v1\n}";
        agree(&text, "f", &[&[3], &[-2]]);
    }
}

/// Arguments and results of all integer types, narrow ones with noise in the upper bits, wide ones in
/// two words where a word is too short.
#[test]
fn arguments_of_all_integer_types() {
    let types = ["i8", "i64", "i16", "i32", "i64", "i8", "i64", "i16"];
    let list = types.join(", ");
    let params: Vec<_> = types.iter().enumerate().map(|(i, ty)| format!("v{i}: {ty}")).collect();
    let text = format!(
        "function %turn({list}) -> {reversed} {{\nblock0({0}):\n\
         v10 = iadd v1, v4\nv11 = iadd v0, v5\nv12 = isub v2, v7\n\
         return v12, v6, v11, v10, v3, v12, v4, v0\n}}
        function %f({list}) -> {reversed} {{\nfn0 = %turn({list}) -> {reversed}\nblock0({0}):\n\
         v10, v11, v12, v13, v14, v15, v16, v17 = call fn0(v0, v1, v2, v3, v4, v5, v6, v7)\n\
         v20, v21, v22, v23, v24, v25, v26, v27 = call fn0(v17, v16, v15, v14, v13, v12, v11, v10)\n\
         return v20, v21, v22, v23, v24, v25, v26, v27\n}}
        function %extended(i8 sext, i16 uext, i8 uext) -> i32 sext, i8 sext {{\n\
         block0(v0: i8, v1: i16, v2: i8):\nv3 = sextend.i32 v0\nv4 = uextend.i32 v1\n\
         v5 = uextend.i32 v2\nv6 = iadd v3, v4\nv7 = isub v6, v5\nreturn v7, v0\n}}
        function %e(i8, i16, i8) -> i32, i8 {{\n\
         fn0 = %extended(i8 sext, i16 uext, i8 uext) -> i32 sext, i8 sext\n\
         block0(v0: i8, v1: i16, v2: i8):\nv3 = iadd v0, v2\nv4, v5 = call fn0(v3, v1, v2)\n\
         return v4, v5\n}}",
        params.join(", "),
        reversed = types.iter().rev().copied().collect::<Vec<_>>().join(", "),
    );
    let bits = |name: &str, seed: i128| {
        let ty = cranelift_codegen::ir::Type::int(name[1..].parse().unwrap()).unwrap();
        DataValue::from_integer(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c) >> 9, ty).unwrap()
    };
    for arch in ARCHS.map(|id| id.parse::<ArchId>().unwrap()) {
        let functions = cranelift_reader::parse_functions(&text).unwrap();
        for opt_level in [OptLevel::None, OptLevel::Speed] {
            let module = compiled(&functions, arch, &CompileOptions { opt_level, ..single_lane() });
            for seed in 1..20 {
                let args = |types: &[&str]| -> Vec<DataValue> {
                    (1..).zip(types).map(|(i, ty)| bits(ty, seed * 100 + i)).collect()
                };
                for (entry, args) in [("f", args(&types)), ("e", args(&["i8", "i16", "i8"]))] {
                    let wanted = expected(&functions, entry, &args);
                    let given = observed(&module, &functions, entry, &args).unwrap();
                    assert_eq!(given, wanted, "{arch} {opt_level:?} {args:?}");
                }
            }
        }
    }
}

/// A `br_table`, a loop that is entered at two places, and traps with their codes, on one lane.
#[test]
fn any_control_flow_on_one_lane() {
    let text = "function %f(word, word) -> word {
        block0(v0: word, v1: word):
            v9 = iconst.word 1
            v61 = iconst.word 3
            v62 = band v0, v61
            v63 = iadd v62, v1
            v64 = icmp eq v63, v9
            v65 = iconst.word 2
            v66 = icmp eq v63, v65
            v67 = icmp eq v63, v61
            v68 = icmp ugt v63, v61
            v70 = iconst.i32 1
            v71 = iconst.i32 2
            v72 = iconst.i32 3
            v73 = iconst.i32 9
            v74 = iconst.i32 0
            v75 = select v64, v70, v74
            v76 = select v66, v71, v75
            v77 = select v67, v72, v76
            v10 = select v68, v73, v77
            br_table v10, block6, [block1(v0), block2(v1), block5, block7]
        block1(v2: word):
            v3 = isub v2, v9
            v4 = icmp ugt v3, v9
            brif v4, block2(v3), block5
        block2(v5: word):
            v6 = ushr v5, v9
            brif v6, block1(v6), block5
        block5:
            return v1
        block6:
            trap user3
        block7:
            v8 = udiv v0, v1
            trapz v8, user9
            return v8
        }";
    // The index of the table, 0 to 3 and beyond.
    agree(
        text,
        "f",
        &[&[4, 0], &[9, 0], &[2, 0], &[7, 0], &[100, 77], &[3, 1000], &[0, 3], &[8, 3]],
    );
}
