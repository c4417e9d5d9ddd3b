//! Tests that the replacements compute the same as the operations that a machine lacks: every operation at
//! the edges of the formats and at random numbers, compared with cranelift's interpreter.

use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::types::{F32, F64, I64};
use cranelift_codegen::ir::{Function, Opcode, TrapCode, Type};
use cranelift_codegen::settings;
use cranelift_codegen::verifier::verify_function;
use cranelift_interpreter::environment::FunctionStore;
use cranelift_interpreter::interpreter::{Interpreter, InterpreterState};
use cranelift_interpreter::step::{ControlFlow, CraneliftTrap};
use harp_isa::{ArchId, WordSize};

use super::expand;
use crate::legalize::LargeCode;

const MACHINES: [&str; 4] = ["harp32", "4w32/16/8/8+x", "harp64", "harp64+x"];

fn parse(text: &str) -> Function {
    let functions = cranelift_reader::parse_functions(text);
    functions.unwrap_or_else(|error| panic!("{error}\n{text}")).remove(0)
}

fn expanded(before: &Function, arch: ArchId) -> Function {
    let mut after = before.clone();
    expand(&mut after, arch, LargeCode::InPlace);
    let flags = settings::Flags::new(settings::builder());
    verify_function(&after, &flags)
        .unwrap_or_else(|errors| panic!("{errors}\n{}", after.display()));
    only_what_the_machine_has(&after, arch);
    after
}

fn only_what_the_machine_has(func: &Function, arch: ArchId) {
    let (base, four) = (!arch.has_extension(), arch.word() == WordSize::Four);
    for block in func.layout.blocks() {
        for inst in func.layout.block_insts(block) {
            let opcode = func.dfg.insts[inst].opcode();
            let first = func
                .dfg
                .inst_values(inst)
                .chain(func.dfg.inst_results(inst).first().copied())
                .next();
            let ty = first.map(|value| func.dfg.value_type(value));
            let missing = match opcode {
                Opcode::Ceil | Opcode::Floor | Opcode::Nearest => true,
                Opcode::FcvtToSint | Opcode::FcvtToUint => true,
                Opcode::Sqrt | Opcode::Fma | Opcode::Fmin | Opcode::Fmax | Opcode::Trunc => base,
                Opcode::Fpromote | Opcode::Fdemote | Opcode::FcvtToUintSat => base,
                Opcode::Fadd | Opcode::Fsub | Opcode::Fmul | Opcode::Fdiv => {
                    base && !four && ty == Some(F32)
                }
                _ => false,
            };
            let wide = four && func.dfg.inst_values(inst).any(|v| func.dfg.value_type(v) == F64);
            assert!(!missing && !wide, "{arch} has no {opcode}:\n{}", func.display());
        }
    }
}

/// A function that can be called repeatedly.
struct Callable<'f> {
    func: &'f Function,
    store: FunctionStore<'f>,
}

impl<'f> Callable<'f> {
    fn new(func: &'f Function) -> Self {
        let mut store = FunctionStore::default();
        store.add(func.name.to_string(), func);
        Callable { func, store }
    }

    /// The bits of the result, with all NaNs made equal, or the trap.
    fn call(&self, args: &[u64], result: Type) -> Result<u64, TrapCode> {
        let state = InterpreterState::default().with_function_store(self.store.clone());
        let params = &self.func.signature.params;
        let args: Vec<DataValue> = params
            .iter()
            .zip(args)
            .map(|(param, &bits)| {
                DataValue::read_from_slice_le(&bits.to_le_bytes(), param.value_type)
            })
            .collect();
        let name = self.func.name.to_string();
        match Interpreter::new(state).call_by_name(&name, &args).unwrap() {
            ControlFlow::Return(values) => {
                let mut bytes = [0; 8];
                values[0].write_to_slice_le(&mut bytes[..values[0].ty().bytes() as usize]);
                Ok(canonical(u64::from_le_bytes(bytes), result))
            }
            ControlFlow::Trap(CraneliftTrap::User(code)) => Err(code),
            other => panic!("unexpected {other:?}"),
        }
    }
}

fn canonical(bits: u64, ty: Type) -> u64 {
    match ty {
        F32 if f32::from_bits(bits as u32).is_nan() => f32::NAN.to_bits().into(),
        F64 if f64::from_bits(bits).is_nan() => f64::NAN.to_bits(),
        _ => bits,
    }
}

/// xorshift64* (Vigna 2016).
struct Random(u64);

impl Random {
    fn bits(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number of the type: random bits, or one near 1, or near the ends of the range, with few bits.
    fn number(&mut self, ty: Type) -> u64 {
        let bits = self.bits();
        let (width, fraction) = match ty {
            F32 => (32, 23),
            F64 => (64, 52),
            _ => {
                return bits
                    & (u64::MAX >> (64 - ty.bits())) >> (self.bits() % u64::from(ty.bits()));
            }
        };
        let mask = u64::MAX >> (64 - width);
        let sign = bits & (1 << (width - 1));
        let low = (1 << fraction) - 1;
        let bias = mask >> (fraction + 2);
        let sparse =
            if self.bits().is_multiple_of(3) { low << (self.bits() % fraction) & low } else { low };
        let exponent = match self.bits() % 6 {
            0 => bits >> 20 & (mask >> (fraction + 1)),
            1 => 0,
            2 => 1 + self.bits() % 3,
            3 => 2 * bias - self.bits() % 3,
            _ => bias + self.bits() % 70 - 3,
        };
        sign | (exponent << fraction & mask >> 1) | (self.bits() & sparse)
    }
}

/// Values at the edges of the type's ranges.
fn edges(ty: Type) -> Vec<u64> {
    let (width, fraction) = match ty {
        F32 => (32, 23),
        F64 => (64, 52),
        _ => {
            let mask = u64::MAX >> (64 - ty.bits());
            let top = 1 << (ty.bits() - 1);
            let ends = [0, 1, 2, mask, mask - 1, top, top - 1, top + 1];
            let ties = [0x100_0001, 0x100_0003, 0x20_0000_0000_0001, 0x20_0000_0000_0003];
            let sticky = [0x8000_0080_0000_0001, 0x8000_0080_0000_0000, 0x7fff_ffbf_ffff_ffff];
            return ends.into_iter().chain(ties).chain(sticky).map(|bits| bits & mask).collect();
        }
    };
    let one = (u64::MAX >> (64 - width) >> (fraction + 2)) << fraction;
    let infinity = (u64::MAX >> (65 - width)) & !((1 << fraction) - 1);
    let power = |exponent: i64| one.wrapping_add_signed(exponent << fraction);
    let mut all = vec![0, 1, 2, (1 << fraction) - 1, 1 << fraction, (1 << fraction) + 1];
    all.extend([infinity - 1, infinity, infinity + 1, infinity | 1 << (fraction - 1)]);
    all.extend([one - 1, one, one + 1, one | 1 << (fraction - 1), one + (1 << fraction) + 1]);
    let fraction = fraction as i64;
    for exponent in [-1, 7, 8, 15, 16, 31, 32, 63, 64, fraction - 1, fraction, fraction + 1] {
        all.extend([power(exponent) - 1, power(exponent), power(exponent) + 1]);
    }
    all.extend([power(1) | power(1) >> 3, one + (3 << (fraction - 1))]);
    let sign = 1 << (width - 1);
    all.iter().flat_map(|&bits| [bits, bits | sign]).collect()
}

/// Checks one operation on all machines.
fn check(params: &[Type], result: Type, operation: &str, random: usize) {
    let list: Vec<String> =
        params.iter().enumerate().map(|(i, ty)| format!("v{i}: {ty}")).collect();
    let types: Vec<String> = params.iter().map(ToString::to_string).collect();
    let text = format!(
        "function %f({}) -> {result} {{\nblock0({}):\nv9 = {operation}\nreturn v9\n}}",
        types.join(", "),
        list.join(", ")
    );
    let before = parse(&text);
    let original = Callable::new(&before);
    let mut tuples: Vec<Vec<u64>> = Vec::new();
    match params {
        [x] => tuples.extend(edges(*x).into_iter().map(|x| vec![x])),
        [x, y] => {
            // All pairs of every third edge, and every edge with some others.
            let (x, y) = (edges(*x), edges(*y));
            for (i, &a) in x.iter().enumerate() {
                let some = y.iter().enumerate().filter(|(j, _)| (i + j) % 5 == 0 || i == *j);
                tuples.extend(some.map(|(_, &b)| vec![a, b]));
            }
        }
        _ => {
            let all = edges(params[0]);
            let count = all.len();
            for i in 0..count {
                for j in 0..9 {
                    tuples.push(vec![
                        all[i],
                        all[(i * 7 + j * 5) % count],
                        all[(i + j * 11) % count],
                    ]);
                }
            }
        }
    }
    let mut generator = Random(0x9e37_79b9_7f4a_7c15);
    for _ in 0..random {
        tuples.push(params.iter().map(|&ty| generator.number(ty)).collect());
    }
    let expected: Vec<_> = tuples.iter().map(|args| original.call(args, result)).collect();
    for name in MACHINES {
        let arch: ArchId = name.parse().unwrap();
        let after = expanded(&before, arch);
        let callable = Callable::new(&after);
        for (args, expected) in tuples.iter().zip(&expected) {
            let given = callable.call(args, result);
            assert_eq!(
                given,
                *expected,
                "{operation} on {name}: {args:x?}: {given:x?}, not {expected:x?}\n{}",
                after.display()
            );
        }
    }
}

#[test]
fn sums_and_products() {
    for ty in [F32, F64] {
        for operation in ["fadd", "fsub", "fmul"] {
            check(&[ty, ty], ty, &format!("{operation} v0, v1"), 600);
        }
    }
}

/// A loop that multiplies this often, and so many sums behind it.
fn with_loop(products: usize, sums: usize) -> Function {
    let operation = |name, at: usize| format!("v{} = {name} v{at}, v0\n", at + 1);
    let last = 3 + products;
    let body: String = (3..last).map(|at| operation("fmul", at)).collect();
    let end: String = (last..last + sums).map(|at| operation("fadd", at)).collect();
    let result = last + sums;
    parse(&format!(
        "function %f(f32, i32) -> f32 {{
            block0(v0: f32, v1: i32):
                jump block1(v0)
            block1(v3: f32):
                {body}
                brif v1, block1(v{last}), block2
            block2:
                {end}
                return v{result}
        }}"
    ))
}

#[test]
fn small_loops_compute_on_singles_in_place_and_all_else_calls() {
    let calls = |products: usize, sums: usize, arch: &str| {
        let mut func = with_loop(products, sums);
        expand(&mut func, arch.parse().unwrap(), LargeCode::Library);
        let insts = func.layout.blocks().flat_map(|block| func.layout.block_insts(block));
        insts.filter(|&inst| func.dfg.insts[inst].opcode() == Opcode::Call).count()
    };
    assert_eq!(calls(16, 2, "harp64"), 0);
    assert_eq!(calls(16, 3, "harp64"), 3);
    assert_eq!(calls(17, 1, "harp64"), 18);
    for arch in ["harp32", "harp32+x", "harp64+x"] {
        assert_eq!(calls(17, 3, arch), 0, "{arch}");
    }
}

#[test]
fn quotients_and_roots() {
    for ty in [F32, F64] {
        check(&[ty, ty], ty, "fdiv v0, v1", 200);
        check(&[ty], ty, "sqrt v0", 300);
    }
}

#[test]
fn fused_products() {
    for ty in [F32, F64] {
        check(&[ty, ty, ty], ty, "fma v0, v1, v2", 1500);
    }
}

#[test]
fn signs_and_extrema() {
    for ty in [F32, F64] {
        for operation in ["fmin", "fmax", "fcopysign"] {
            check(&[ty, ty], ty, &format!("{operation} v0, v1"), 50);
        }
        for operation in ["fneg", "fabs"] {
            check(&[ty], ty, &format!("{operation} v0"), 20);
        }
    }
}

#[test]
fn rounding() {
    for ty in [F32, F64] {
        for operation in ["ceil", "floor", "trunc", "nearest"] {
            check(&[ty], ty, &format!("{operation} v0"), 300);
        }
    }
}

#[test]
fn comparisons() {
    for ty in [F32, F64] {
        for condition in cranelift_codegen::ir::condcodes::FloatCC::all() {
            let i8 = cranelift_codegen::ir::types::I8;
            check(&[ty, ty], i8, &format!("fcmp {condition} v0, v1"), 50);
        }
    }
}

#[test]
fn conversions_between_floats() {
    check(&[F32], F64, "fpromote.f64 v0", 500);
    check(&[F64], F32, "fdemote.f32 v0", 500);
    check(&[F64], I64, "bitcast.i64 v0", 20);
    check(&[I64], F64, "bitcast.f64 v0", 20);
}

#[test]
fn conversions_of_integers() {
    let ints =
        ["i8", "i16", "i32", "i64"].map(|name| Type::int(name[1..].parse().unwrap()).unwrap());
    for int in ints {
        for float in [F32, F64] {
            for sign in ["s", "u"] {
                check(&[int], float, &format!("fcvt_from_{sign}int.{float} v0"), 200);
                check(&[float], int, &format!("fcvt_to_{sign}int.{int} v0"), 200);
                check(&[float], int, &format!("fcvt_to_{sign}int_sat.{int} v0"), 200);
            }
        }
    }
}

/// Values of type `f64` pass through everything that moves values.
#[test]
fn integers_flow_where_floats_did() {
    let text = "function %f(f64, f64, i8) -> f64 {
        ss0 = explicit_slot 8
    block0(v0: f64, v1: f64, v2: i8):
        v3 = f64const 0x1.8p1
        v4 = select v2, v0, v3
        brif v2, block1(v4), block2(v1, v0)
    block1(v5: f64):
        v6 = fadd v5, v1
        jump block2(v6, v4)
    block2(v7: f64, v8: f64):
        v9 = bitselect v7, v8, v7
        v10 = stack_addr.i64 ss0
        store v9, v10
        v11 = load.f64 v10
        return v11
    }";
    let before = parse(text);
    let after = expanded(&before, ArchId::HARP32);
    for block in after.layout.blocks() {
        for inst in after.layout.block_insts(block) {
            let opcode = after.dfg.insts[inst].opcode();
            assert!(!matches!(opcode, Opcode::Fadd | Opcode::F64const), "{}", after.display());
        }
    }
    let (before, after) = (Callable::new(&before), Callable::new(&after));
    for choice in [0, 1] {
        let args = [2.5_f64.to_bits(), (-7.25_f64).to_bits(), choice];
        assert_eq!(before.call(&args, F64), after.call(&args, F64));
    }
}
