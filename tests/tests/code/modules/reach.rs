//! Calls and branches beyond the reach of their immediates.

use std::fmt::Write as _;

use harp_isa::ArchId;
use harp_jit::{CompileOptions, OptLevel};
use harp_tests::functions::{Result, compiled, observed, parse, single_lane, word};

use super::filler;

/// Calls over distances that their immediates do not hold, forwards and backwards, in modules of small
/// and large functions; and calls that do reach stay one instruction.
#[test]
fn calls_beyond_their_reach() {
    let arch: ArchId = "4w64/64/2/2".parse().unwrap();
    // `jali` reaches 4 KiB here, `jmpi` 256 KiB.
    let caller = |name: &str, callee: &str| {
        format!(
            "function %{name}(word) -> word {{\nfn0 = %{callee}(word) -> word\nblock0(v0: word):\n\
             v1 = call fn0(v0)\nv2 = iadd v1, v0\nreturn v2\n}}\n"
        )
    };
    for size in [10, 900, 1100, 5000] {
        let text = caller("first", "last")
            + &filler("middle", size)
            + &caller("last", "neighbour")
            + "function %neighbour(word) -> word {\nblock0(v0: word):\nreturn v0\n}\n"
            + &caller("back", "first");
        let functions = parse(arch.word(), &text);
        let options = CompileOptions { opt_level: OptLevel::None, ..single_lane() };
        let module = compiled(&functions, arch, &options);
        let given = observed(&module, &functions, "back", &[word(arch, 21)]).unwrap();
        assert_eq!(given, Result::Values(vec![word(arch, 84)]), "{size}");
        let uses = |name: &str, mnemonic: &str| {
            module.function(name).unwrap().disassembly().contains(mnemonic)
        };
        assert_eq!(uses("first", "jalr"), size > 1000, "{size}");
        assert_eq!(uses("back", "jalr"), size > 1000, "{size}");
        assert!(!uses("last", "jalr"), "{size}");
    }
}

/// Arguments in all registers leave none for the address of a function out of reach: a value that lives
/// across the call gives way.
#[test]
fn far_calls_without_a_free_register() {
    for (id, in_registers) in [("4w64/64/2/2", 32), ("4w8/2/2/2", 4)] {
        let arch: ArchId = id.parse().unwrap();
        // As many as there are registers, some on the stack, and so many that their places in the
        // frame are out of reach as well.
        for count in [in_registers, in_registers + 5, in_registers + 60] {
            let list = vec!["word"; count].join(", ");
            let names = |from: usize| {
                (from..from + count).map(|i| format!("v{i}")).collect::<Vec<_>>().join(", ")
            };
            let mut make = String::new();
            for i in 0..count {
                let _ = writeln!(
                    make,
                    "v{0} = iconst.word {i}\nv{1} = iadd v0, v{0}",
                    1000 + i,
                    2000 + i
                );
            }
            let params: Vec<_> = (0..count).map(|i| format!("v{i}: word")).collect();
            let text = format!(
                "function %f(word) -> word {{\nfn0 = %g({list}) -> word\nblock0(v0: word):\n{make}\
                 v5 = call fn0({0})\nv6 = isub v5, v2003\nv7 = call fn0({0})\nv8 = iadd v6, v7\n\
                 v9 = isub v8, v2001\nreturn v9\n}}
                {1}function %g({list}) -> word {{\nblock0({2}):\nv5000 = isub v{3}, v1\n\
                 v5001 = imul v2, v5000\nv5002 = isub v5001, v0\nreturn v5002\n}}",
                names(2000),
                filler("middle", 1500),
                params.join(", "),
                count - 1
            );
            let functions = parse(arch.word(), &text);
            let options = CompileOptions { opt_level: OptLevel::None, ..single_lane() };
            let compiled = compiled(&functions, arch, &options);
            let far = compiled.function("f").unwrap().disassembly().contains("jalr");
            assert!(far || in_registers == 4, "{id}: the call reaches");
            let given = observed(&compiled, &functions, "f", &[word(arch, 10)]).unwrap();
            // g(10, 11, 12, ...) = 12 * (count - 2) - 10.
            let one = 12 * (count as i64 - 2) - 10;
            assert_eq!(given, Result::Values(vec![word(arch, 2 * one - 13 - 11)]), "{id} {count}");
        }
    }
}

/// A loop around more code than a jump reaches.
#[test]
fn branches_beyond_their_reach() {
    let arch: ArchId = "4w64/64/2/2".parse().unwrap();
    let count = 70_000;
    let mut text = "function %f(word, word) -> word {\nblock0(v0: word, v1: word):\njump block1(v0, v1)\n\
                    block1(v2: word, v3: word):\nbrif v2, block2, block3\nblock2:\nv10 = iadd v3, v0\n"
        .to_owned();
    for i in 0..count {
        let op = ["iadd", "bxor"][i % 2];
        let _ = writeln!(text, "v{} = {op} v{}, v3", 11 + i, 10 + i);
    }
    let _ = writeln!(
        text,
        "v4 = iconst.word -1\nv5 = iadd v2, v4\njump block1(v5, v{})\nblock3:\nreturn v3\n}}",
        10 + count
    );
    let functions = parse(arch.word(), &text);
    let options = CompileOptions { opt_level: OptLevel::None, verify: false, ..single_lane() };
    let module = compiled(&functions, arch, &options);
    let code = module.function("f").unwrap().code().len();
    assert!(code > 1 << 18, "{code} bytes are in reach");
    let mut x: u32 = 7;
    for _ in 0..3 {
        let start = x;
        x = x.wrapping_add(3);
        for i in 0..count {
            x = if i % 2 == 0 { x.wrapping_add(start) } else { x ^ start };
        }
    }
    let given = observed(&module, &functions, "f", &[word(arch, 3), word(arch, 7)]).unwrap();
    assert_eq!(given, Result::Values(vec![word(arch, i64::from(x.cast_signed()))]));
}
