//! Loads, stores and atomic accesses of all widths, at all alignments, on one lane of many machines,
//! against cranelift-interpreter.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic like the tests themselves")]

use std::fmt::Write as _;

use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::{AtomicRmwOp, types};
use harp_isa::ArchId;
use harp_jit::{CompileOptions, OptLevel};
use harp_tests::functions::{Result, compiled, expected, observed, parse, single_lane, word};

const ARCHS: [&str; 8] = [
    "harp32",
    "harp64",
    "4w32/16/8/8+x",
    "harp64+x",
    "4w8/2/4/4",
    "8w9/3/2/2",
    "4b8/2/1/1+x",
    "8b32/32/8/8",
];

/// What the bytes are before an access.
const PATTERN: [u64; 4] =
    [0x8182_8384_8586_8788, 0x1112_1314_1516_1718, 0xf1f2_f3f4_f5f6_f7f8, 0x0102_0304_0506_0708];

/// What is stored.
const VALUES: [u64; 2] = [0x9a8b_7c6d_5e4f_3021, 0x0012_3456_789a_bcde];

/// A function `(offset: word, value: i64, other: i64) -> i64, i64` in which `body` accesses memory at `v50`
/// and makes an `i64`, `v60`. The second result depends on all bytes of memory afterwards.
fn function(name: &str, body: &str) -> String {
    let mut text = format!(
        "function %{name}(word, i64, i64) -> i64, i64 {{
            ss0 = explicit_slot 40, align = 8
        block0(v0: word, v1: i64, v2: i64):
            v3 = stack_addr.word ss0\n"
    );
    for (index, bits) in PATTERN.iter().enumerate() {
        let _ = writeln!(text, "v{} = iconst.i64 {bits:#x}", 10 + index);
        let _ = writeln!(text, "store v{}, v3+{}", 10 + index, 8 * index);
    }
    let _ = writeln!(text, "v20 = iconst.i64 0\nstore v20, v3+32\nv50 = iadd v3, v0\n{body}");
    text.push_str("v21 = iconst.i8 7\nv70 = iconst.i64 0\n");
    for index in 0..4 {
        let (sum, next) = (70 + 3 * index, 73 + 3 * index);
        let _ = writeln!(text, "v{} = load.i64 v3+{}", sum + 1, 8 * index);
        let _ = writeln!(text, "v{} = rotl v{sum}, v21", sum + 2);
        let _ = writeln!(text, "v{next} = bxor v{}, v{}", sum + 1, sum + 2);
    }
    text.push_str("return v60, v82\n}\n");
    text
}

/// Runs each function, the bytes of whose access are given, at every offset, or at every aligned
/// one if it says so.
fn agree(archs: &[&str], functions: &[(String, u32, String)], aligned_only: bool) {
    let text: String = functions.iter().map(|(name, _, body)| function(name, body)).collect();
    for arch in archs.iter().map(|id| id.parse::<ArchId>().unwrap()) {
        let parsed = parse(arch.word(), &text);
        for opt_level in [OptLevel::None, OptLevel::Speed] {
            let options = CompileOptions { opt_level, ..single_lane() };
            let compiled = compiled(&parsed, arch, &options);
            for (name, bytes, body) in functions {
                let aligned = aligned_only || body.contains("aligned");
                let step = if aligned { *bytes as usize } else { 1 };
                for (offset, value) in (0_i64..20).step_by(step).zip(VALUES.into_iter().cycle()) {
                    let args = [
                        word(arch, offset),
                        DataValue::I64(value.cast_signed()),
                        DataValue::I64(PATTERN[0].rotate_right(8 * offset as u32).cast_signed()),
                    ];
                    let wanted = expected(&parsed, name, &args);
                    assert!(matches!(wanted, Result::Values(_)), "{name}: {wanted:?}");
                    let given = observed(&compiled, &parsed, name, &args)
                        .unwrap_or_else(|e| panic!("{arch} {opt_level:?} {name} {args:?}: {e}"));
                    assert_eq!(given, wanted, "{arch} {opt_level:?} {name} {args:?}\n{body}");
                }
            }
        }
    }
}

const FLAGS: [&str; 4] = ["", "notrap aligned", "big", "little"];

#[test]
fn loads() {
    let mut all = Vec::new();
    for flags in FLAGS {
        for ty in [types::I8, types::I16, types::I32, types::I64, types::F32, types::F64] {
            let mut body = format!("v51 = load.{ty} {flags} v50+3\n");
            if flags.contains("aligned") {
                body = body.replace("+3", &format!("+{}", ty.bytes()));
            }
            match (ty, ty.bits()) {
                (types::F32, _) => body.push_str("v52 = bitcast.i32 v51\nv60 = uextend.i64 v52"),
                (types::F64, _) => body.push_str("v60 = bitcast.i64 v51"),
                (_, 64) => body.push_str("v60 = bor v51, v51"),
                _ => body.push_str("v60 = uextend.i64 v51"),
            }
            all.push((format!("load{}", all.len()), ty.bytes(), body));
        }
        for (name, bytes) in [("uload8", 1), ("sload8", 1), ("uload16", 2), ("sload16", 2)] {
            let body = format!("v60 = {name}.i64 {flags} v50");
            all.push((format!("load{}", all.len()), bytes, body));
            let body = format!("v51 = {name}.i32 {flags} v50\nv60 = sextend.i64 v51");
            all.push((format!("load{}", all.len()), bytes, body));
        }
    }
    agree(&ARCHS, &all, false);
}

/// Where an address has 4 bytes, the interpreter gives the value of these loads the address's type; there
/// they are judged with the random kernels, whose oracle does not.
#[test]
fn loads_that_extend_four_bytes() {
    let mut all = Vec::new();
    for flags in FLAGS {
        for name in ["uload32", "sload32"] {
            all.push((format!("load{}", all.len()), 4, format!("v60 = {name} {flags} v50")));
        }
    }
    let eight = |arch: &&str| arch.starts_with('8') || arch.starts_with("harp64");
    let archs: Vec<_> = ARCHS.into_iter().filter(eight).collect();
    agree(&archs, &all, false);
}

#[test]
fn stores() {
    let mut all = Vec::new();
    for flags in FLAGS {
        let offset = if flags.contains("aligned") { "" } else { "+1" };
        let mut add = |bytes: u32, body: String| {
            all.push((format!("store{}", all.len()), bytes, format!("{body}\nv60 = iconst.i64 1")));
        };
        add(8, format!("store {flags} v1, v50{offset}"));
        add(8, format!("v51 = bitcast.f64 v1\nstore {flags} v51, v50{offset}"));
        for (ty, bytes) in [("i8", 1), ("i16", 2), ("i32", 4)] {
            add(bytes, format!("v51 = ireduce.{ty} v1\nstore {flags} v51, v50{offset}"));
        }
        let float = "v51 = ireduce.i32 v1\nv52 = bitcast.f32 v51";
        add(4, format!("{float}\nstore {flags} v52, v50{offset}"));
        for (name, bytes) in [("istore8", 1), ("istore16", 2), ("istore32", 4)] {
            add(bytes, format!("{name} {flags} v1, v50{offset}"));
            if bytes < 4 {
                add(bytes, format!("v51 = ireduce.i32 v1\n{name} {flags} v51, v50{offset}"));
            }
        }
    }
    agree(&ARCHS, &all, false);
}

#[test]
fn atomic_accesses() {
    let mut all = Vec::new();
    for (ty, bytes) in [("i8", 1), ("i16", 2), ("i32", 4), ("i64", 8)] {
        let [reduce, extend] = match ty {
            "i64" => ["bnot", "bnot"].map(str::to_owned),
            _ => [format!("ireduce.{ty}"), "uextend.i64".to_owned()],
        };
        let reduced = format!("v51 = {reduce} v1\nv52 = {reduce} v2");
        let mut add = |body: &str| {
            let body = format!("{reduced}\n{body}\nv60 = {extend} v53");
            all.push((format!("atomic{}", all.len()), bytes, body));
        };
        for order in ["", "big"] {
            // Of the order of bytes most know nothing.
            let all = AtomicRmwOp::all();
            let [first, last] = if order == "big" { [1, 8] } else { [0, all.len()] };
            if order == "big" && ty == "i8" {
                continue;
            }
            for op in &all[first..last] {
                add(&format!("v53 = atomic_rmw.{ty} {order} {op} v50, v51"));
            }
            add(&format!("v53 = atomic_load.{ty} {order} v50"));
            add(&format!("atomic_store {order} v51, v50\nfence\nv53 = iadd v51, v52"));
            // What is expected is there where the offset is.
            add(&format!("v53 = atomic_cas {order} v50, v52, v51"));
            add(&format!("v53 = atomic_cas {order} v50, v51, v52"));
            let loaded = format!("v54 = load.{ty} {order} v50");
            add(&format!("{loaded}\nv53 = atomic_cas {order} v50, v54, v51"));
        }
    }
    agree(&ARCHS, &all, true);
}

#[test]
fn atomic_accesses_of_eight_bytes() {
    let mut text = String::new();
    let mut names = Vec::new();
    for order in ["", "big"] {
        let updates = AtomicRmwOp::all().iter();
        let updates = updates
            .map(|op| (op.to_string(), format!("v60 = atomic_rmw.i64 {order} {op} v50, v1")));
        let others = [
            ("load", format!("v60 = atomic_load.i64 {order} v50")),
            ("store", format!("atomic_store {order} v1, v50\nv60 = iadd v1, v2")),
            ("cas", format!("v60 = atomic_cas {order} v50, v2, v1")),
            ("swap", format!("v51 = load.i64 {order} v50\nv60 = atomic_cas {order} v50, v51, v1")),
        ];
        let others = others.map(|(name, body)| (name.to_owned(), body));
        for (name, body) in updates.chain(others) {
            names.push(format!("wide_{order}_{name}"));
            let _ = write!(text, "{}", function(&names[names.len() - 1], &body));
        }
    }
    for id in ["harp64", "harp64+x"] {
        let arch: ArchId = id.parse().unwrap();
        let parsed = parse(arch.word(), &text);
        let compiled = compiled(&parsed, arch, &single_lane());
        for name in &names {
            for offset in [0_i64, 8] {
                let args = [offset, VALUES[0].cast_signed(), PATTERN[0].cast_signed()];
                let args = args.map(DataValue::I64);
                let given = observed(&compiled, &parsed, name, &args).unwrap();
                assert_eq!(given, expected(&parsed, name, &args), "{arch} {name} {offset}");
            }
        }
    }
}
