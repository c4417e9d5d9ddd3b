//! Functions on floats of both formats on one lane of many machines, against cranelift-interpreter: as
//! arguments and results, in memory, through branches, and every operation at random numbers.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic like the tests themselves")]

use std::fmt::Write as _;

use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::condcodes::FloatCC;
use cranelift_codegen::ir::{Type, types};
use harp_isa::ArchId;
use harp_jit::{CompileOptions, OptLevel};
use harp_tests::functions::{Result, compiled, expected, observed, parse, single_lane};
use harp_tests::generate::{F32_EDGES, F64_EDGES};
use harp_tests::seeds::random_bytes;

const ARCHS: [&str; 6] =
    ["harp32", "4w32/16/8/8+x", "harp64", "harp64+x", "4w8/2/4/4", "8b9/3/2/2"];

/// Calls of each operation with numbers at random.
const CALLS: usize = 24;

/// Floats as their bits, those of every NaN the same.
fn canonical(result: Result) -> Result {
    let Result::Values(values) = result else { return result };
    Result::Values(
        values
            .into_iter()
            .map(|value| match value {
                DataValue::F32(x) if x.as_f32().is_nan() => DataValue::I32(-1),
                DataValue::F64(x) if x.as_f64().is_nan() => DataValue::I64(-1),
                DataValue::F32(x) => DataValue::I32(x.bits().cast_signed()),
                DataValue::F64(x) => DataValue::I64(x.bits().cast_signed()),
                other => other,
            })
            .collect(),
    )
}

/// A number at random from bytes: anything, an edge, or one near 1.
fn number(ty: Type, kind: u8, bits: u64) -> DataValue {
    let bits = match (ty, kind % 4) {
        (types::F32, 0) => F32_EDGES[bits as usize % F32_EDGES.len()].into(),
        (types::F64, 0) => F64_EDGES[bits as usize % F64_EDGES.len()],
        (types::F32, 1 | 2) => (bits & 0x87ff_ffff) + 0x3c00_0000,
        (types::F64, 1 | 2) => (bits & 0x807f_ffff_ffff_ffff) + 0x3fc0_0000_0000_0000,
        _ => bits,
    };
    DataValue::read_from_slice_le(&bits.to_le_bytes(), ty)
}

/// Compares all functions at random arguments, and at those that are given.
fn agree(text: &str, calls: usize) {
    for arch in ARCHS.map(|id| id.parse::<ArchId>().unwrap()) {
        let functions = parse(arch.word(), text);
        for opt_level in [OptLevel::None, OptLevel::Speed] {
            let options = CompileOptions { opt_level, ..single_lane() };
            let compiled = compiled(&functions, arch, &options);
            for func in &functions {
                let name = harp_tests::functions::name(func);
                let bytes = random_bytes(7, calls * 32);
                for call in bytes.chunks_exact(32) {
                    let params = func.signature.params.iter().enumerate();
                    let args: Vec<DataValue> = params
                        .map(|(i, param)| {
                            let bits: [u8; 8] = call[8 * i..8 * i + 8].try_into().unwrap();
                            number(param.value_type, call[31 - i], u64::from_le_bytes(bits))
                        })
                        .collect();
                    let wanted = canonical(expected(&functions, &name, &args));
                    let given = observed(&compiled, &functions, &name, &args)
                        .unwrap_or_else(|e| panic!("{arch} {opt_level:?} %{name} {args:?}: {e}"));
                    assert_eq!(
                        canonical(given),
                        wanted,
                        "{arch} {opt_level:?} %{name} {args:?}\n{}",
                        func.display()
                    );
                }
            }
        }
    }
}

/// A function with one operation.
fn function(text: &mut String, params: &[&str], result: &str, operation: &str) {
    let number = text.matches("function").count();
    let list: Vec<_> = params.iter().enumerate().map(|(i, ty)| format!("v{i}: {ty}")).collect();
    let _ = writeln!(
        text,
        "function %f{number}({}) -> {result} {{\nblock0({}):\nv9 = {operation}\nreturn v9\n}}",
        params.join(", "),
        list.join(", "),
    );
}

#[test]
fn arithmetic() {
    let mut text = String::new();
    for ty in ["f32", "f64"] {
        for operation in ["fadd", "fsub", "fmul", "fdiv", "fmin", "fmax", "fcopysign"] {
            function(&mut text, &[ty, ty], ty, &format!("{operation} v0, v1"));
        }
        for operation in ["sqrt", "fneg", "fabs", "ceil", "floor", "trunc", "nearest"] {
            function(&mut text, &[ty], ty, &format!("{operation} v0"));
        }
        function(&mut text, &[ty, ty, ty], ty, "fma v0, v1, v2");
        function(&mut text, &["i8", ty, ty], ty, "select v0, v1, v2");
    }
    agree(&text, CALLS);
}

#[test]
fn comparisons() {
    let mut text = String::new();
    for ty in ["f32", "f64"] {
        for condition in FloatCC::all() {
            function(&mut text, &[ty, ty], "i8", &format!("fcmp {condition} v0, v1"));
            function(
                &mut text,
                &[ty, ty],
                ty,
                &format!("fcmp {condition} v0, v1\nv8 = select v9, v0, v1"),
            );
        }
    }
    // The second kind returns what it selects.
    let text =
        text.replace("v8 = select v9, v0, v1\nreturn v9", "v8 = select v9, v0, v1\nreturn v8");
    agree(&text, CALLS);
}

#[test]
fn conversions() {
    let mut text = String::new();
    for float in ["f32", "f64"] {
        for int in ["i8", "i16", "i32", "i64"] {
            for sign in ["s", "u"] {
                function(&mut text, &[int], float, &format!("fcvt_from_{sign}int.{float} v0"));
                function(&mut text, &[float], int, &format!("fcvt_to_{sign}int.{int} v0"));
                function(&mut text, &[float], int, &format!("fcvt_to_{sign}int_sat.{int} v0"));
            }
        }
    }
    function(&mut text, &["f32"], "f64", "fpromote.f64 v0");
    function(&mut text, &["f64"], "f32", "fdemote.f32 v0");
    function(&mut text, &["f64"], "i64", "bitcast.i64 v0");
    function(&mut text, &["i64"], "f64", "bitcast.f64 v0");
    function(&mut text, &["f32"], "i32", "bitcast.i32 v0");
    function(&mut text, &["i32"], "f32", "bitcast.f32 v0");
    agree(&text, CALLS);
}

#[test]
fn floats_move_like_integers() {
    let text = "function %callee(f64, f32, f64) -> f64, f32 {
    block0(v0: f64, v1: f32, v2: f64):
        v3 = fpromote.f64 v1
        v4 = fsub v0, v3
        v5 = fdemote.f32 v2
        return v4, v5
    }
    function %caller(f64, f32, i32, f64) -> f32, f64 {
        fn0 = %callee(f64, f32, f64) -> f64, f32
        ss0 = explicit_slot 24
    block0(v0: f64, v1: f32, v2: i32, v3: f64):
        v4 = stack_addr.word ss0
        store v0, v4
        store v1, v4+16
        v5 = f64const 0x1.8p-3
        v6 = f32const -0x1.4p2
        v7 = fcmp ult v0, v3
        brif v7, block1(v5, v6), block2(v3)
    block1(v8: f64, v9: f32):
        v10, v11 = call fn0(v8, v9, v3)
        v12 = fadd v11, v1
        store v12, v4+16
        jump block2(v10)
    block2(v13: f64):
        v14 = load.f64 v4
        v15 = load.f32 v4+16
        v16, v17 = call fn0(v13, v15, v14)
        v18 = fmul v16, v14
        return v17, v18
    }";
    agree(text, 4 * CALLS);
}
