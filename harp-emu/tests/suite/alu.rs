//! Random computing instructions on random lanes, masks, guards and machines against an evaluator
//! that knows one lane and no registers' layout: 128-bit integers for integers, conversions by
//! comparison, votes by counting.

use harp_emu::{Memory, Path, Simd, TrapKind};
use harp_isa::{ArchId, Gpr, Instruction, Layout, Op, Opcode, Operand, OperandKind, Pred, Space};
use proptest::prelude::*;

use crate::common::*;

/// `%r2` to `%r4` and `@p2` to `@p4` of a lane.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Lane {
    regs: [u64; 3],
    preds: [bool; 3],
    active: bool,
    guard: bool,
}

impl Lane {
    fn reg(&self, reg: Gpr) -> u64 {
        self.regs[usize::from(reg.index()) - 2]
    }

    fn pred(&self, pred: Pred) -> bool {
        self.preds[usize::from(pred.index()) - 2]
    }
}

#[derive(Clone, Copy, Debug)]
enum Value {
    Word(u64),
    Float(f64),
    Single(f32),
    Flag(bool),
    DivideByZero,
}

/// Opcodes that compute: no memory, control, warps or system.
fn computes(opcode: Opcode, arch: ArchId) -> bool {
    let name = opcode.mnemonic();
    let has_result = opcode.operands().first().is_some_and(|first| {
        !matches!(
            first.kind,
            OperandKind::Gpr(harp_isa::Role::Use) | OperandKind::Imm | OperandKind::Rel
        )
    });
    let other = ["wspawn", "jali", "jalr", "jalis", "jalrs", "csr", "tid"].contains(&name)
        || name.starts_with("ld") && name != "ldi"
        || name.starts_with("amo")
        || name.starts_with("cas");
    has_result && !other && Layout::new(arch).has(opcode)
}

/// The instruction with registers and an immediate picked by `pick`.
fn build(opcode: Opcode, arch: ArchId, pick: [u64; 4]) -> Op {
    let range = Layout::new(arch).immediate_range(opcode);
    let operands: Vec<_> = (opcode.operands().iter().zip(pick))
        .map(|(operand, pick)| match operand.kind {
            OperandKind::Gpr(_) => Operand::Gpr(r(2 + (pick % 3) as u8)),
            OperandKind::Pred(_) => Operand::Pred(p(2 + (pick % 3) as u8)),
            _ if opcode == Opcode::Ballot => Operand::Imm((pick % 2) as i64),
            _ => {
                let (low, span) =
                    (i128::from(*range.start()), range.end().abs_diff(*range.start()));
                Operand::Imm((low + i128::from(pick) % (i128::from(span) + 1)) as i64)
            }
        })
        .collect();
    Op::from_operands(opcode, &operands).unwrap()
}

/// What `op` computes in `lane`; `executing` are the lanes that execute it, by number.
fn evaluate(op: Op, arch: ArchId, lane: &Lane, lanes: &[Lane]) -> Value {
    use Value::{Flag, Float, Single};
    let bits = u32::from(arch.word().bits());
    let cut = |x: i128| Value::Word((x as u128 & ((1 << bits) - 1)) as u64);
    let signed = |x: u64| -> i128 {
        let x = i128::from(x);
        if x >> (bits - 1) & 1 == 1 { x - (1 << bits) } else { x }
    };
    let u = |reg: Gpr| i128::from(lane.reg(reg));
    let s = |reg: Gpr| signed(lane.reg(reg));
    let imm = |imm: i64| i128::from(imm).rem_euclid(1 << bits);
    let shift_left = |a: i128, n: i128| if n >= i128::from(bits) { 0 } else { a << n };
    let shift_right = |a: i128, n: i128| a >> n.min(127);
    // The base shift is arithmetic on 8-byte words only.
    let shr = |a: Gpr, n: i128| shift_right(if bits == 64 { s(a) } else { u(a) }, n);
    let single = |reg: Gpr| f32::from_bits(lane.reg(reg) as u32);
    let float = |reg: Gpr| {
        if bits == 64 { f64::from_bits(lane.reg(reg)) } else { f64::from(single(reg)) }
    };
    // Rounding binary64 results once more to binary32 is exact for + - * / and square roots
    // (Figueroa 1995), so one evaluator serves both.
    let saturated = |x: f64, low: i128, high: i128| match x {
        _ if x.is_nan() => 0,
        _ if x >= high as f64 => high,
        _ if x <= low as f64 => low,
        _ => x as i128,
    };
    let extreme = |a: Gpr, b: Gpr, greater: bool| {
        let (x, y) = (float(a), float(b));
        if x.is_nan() || y.is_nan() {
            return Float(f64::NAN);
        }
        let order = x.total_cmp(&y);
        Float(if order.is_gt() == greater { x } else { y })
    };
    let divide = |b: i128, f: &dyn Fn(i128) -> i128| match b {
        0 => Value::DivideByZero,
        b => cut(f(b)),
    };
    let executing = || lanes.iter().filter(|lane| lane.active && lane.guard);
    match op {
        Op::Neg { src, .. } => cut(-u(src)),
        Op::Not { src, .. } => cut(-1 - u(src)),
        Op::And { a, b, .. } => cut(u(a) & u(b)),
        Op::Or { a, b, .. } => cut(u(a) | u(b)),
        Op::Xor { a, b, .. } => cut(u(a) ^ u(b)),
        Op::Add { a, b, .. } => cut(u(a) + u(b)),
        Op::Sub { a, b, .. } => cut(u(a) - u(b)),
        Op::Mul { a, b, .. } => cut(u(a).wrapping_mul(u(b))),
        Op::Div { a, b, .. } => divide(u(b), &|b| u(a) / b),
        Op::Mod { a, b, .. } => divide(u(b), &|b| u(a) % b),
        Op::Divs { a, b, .. } => divide(s(b), &|b| s(a) / b),
        Op::Mods { a, b, .. } => divide(s(b), &|b| s(a) % b),
        Op::Mulh { a, b, .. } => cut((s(a) * s(b)) >> bits),
        Op::Mulhu { a, b, .. } => cut(((u(a) as u128 * u(b) as u128) >> bits) as i128),
        Op::Shl { a, b, .. } => cut(shift_left(u(a), u(b))),
        Op::Shr { a, b, .. } => cut(shr(a, u(b))),
        Op::Sra { a, b, .. } => cut(shift_right(s(a), u(b))),
        Op::Srl { a, b, .. } => cut(shift_right(u(a), u(b))),
        Op::Andi { src, imm: i, .. } => cut(u(src) & imm(i)),
        Op::Ori { src, imm: i, .. } => cut(u(src) | imm(i)),
        Op::Xori { src, imm: i, .. } => cut(u(src) ^ imm(i)),
        Op::Addi { src, imm: i, .. } => cut(u(src) + imm(i)),
        Op::Subi { src, imm: i, .. } => cut(u(src) - imm(i)),
        Op::Muli { src, imm: i, .. } => cut(u(src).wrapping_mul(imm(i))),
        Op::Divi { src, imm: i, .. } => divide(imm(i), &|b| u(src) / b),
        Op::Modi { src, imm: i, .. } => divide(imm(i), &|b| u(src) % b),
        Op::Shli { src, imm: i, .. } => cut(shift_left(u(src), imm(i))),
        Op::Shri { src, imm: i, .. } => cut(shr(src, imm(i))),
        Op::Ldi { imm: i, .. } => cut(imm(i)),
        Op::Rtop { src, .. } => Flag(u(src) != 0),
        Op::Iszero { src, .. } => Flag(u(src) == 0),
        Op::Isneg { src, .. } => Flag(s(src) < 0),
        Op::Andp { a, b, .. } => Flag(lane.pred(a) && lane.pred(b)),
        Op::Orp { a, b, .. } => Flag(lane.pred(a) || lane.pred(b)),
        Op::Xorp { a, b, .. } => Flag(lane.pred(a) != lane.pred(b)),
        Op::Notp { src, .. } => Flag(!lane.pred(src)),
        Op::Eqp { a, b, .. } => Flag(u(a) == u(b)),
        Op::Ltp { a, b, .. } => Flag(s(a) < s(b)),
        Op::Ltup { a, b, .. } => Flag(u(a) < u(b)),
        Op::Ptor { src, .. } => cut(if lane.pred(src) { 1 } else { 0 }),
        Op::Itof { src, .. } if bits == 32 => Single(s(src) as f32),
        Op::Utof { src, .. } if bits == 32 => Single(u(src) as f32),
        Op::Itof { src, .. } => Float(s(src) as f64),
        Op::Utof { src, .. } => Float(u(src) as f64),
        Op::Ftoi { src, .. } => {
            cut(saturated(float(src), -(1 << (bits - 1)), (1 << (bits - 1)) - 1))
        }
        Op::Ftou { src, .. } => cut(saturated(float(src), 0, (1 << bits) - 1)),
        Op::Fadd { a, b, .. } => Float(float(a) + float(b)),
        Op::Fsub { a, b, .. } => Float(float(a) - float(b)),
        Op::Fmul { a, b, .. } => Float(float(a) * float(b)),
        Op::Fdiv { a, b, .. } => Float(float(a) / float(b)),
        Op::Fneg { src, .. } => cut(u(src) ^ 1 << (bits - 1)),
        Op::Fabs { src, .. } => cut(u(src) & !(1 << (bits - 1))),
        Op::Feqp { a, b, .. } => Flag(float(a) == float(b)),
        Op::Fltp { a, b, .. } => Flag(float(a) < float(b)),
        Op::Flep { a, b, .. } => Flag(float(a) <= float(b)),
        Op::Fmin { a, b, .. } => extreme(a, b, false),
        Op::Fmax { a, b, .. } => extreme(a, b, true),
        Op::Fsqrt { src, .. } => Float(float(src).sqrt()),
        Op::Ftrunc { src, .. } => Float(float(src).trunc()),
        Op::Ffma { acc, a, b } if bits == 32 => Single(single(a).mul_add(single(b), single(acc))),
        Op::Ffma { acc, a, b } => Float(float(a).mul_add(float(b), float(acc))),
        Op::Fcvtsd { src, .. } => Float(f64::from(single(src))),
        Op::Fcvtds { src, .. } => Single(float(src) as f32),
        Op::Fadds { a, b, .. } => Single(single(a) + single(b)),
        Op::Fsubs { a, b, .. } => Single(single(a) - single(b)),
        Op::Fmuls { a, b, .. } => Single(single(a) * single(b)),
        Op::Fdivs { a, b, .. } => Single(single(a) / single(b)),
        Op::Fsqrts { src, .. } => Single(single(src).sqrt()),
        Op::Ffmas { acc, a, b } => Single(single(a).mul_add(single(b), single(acc))),
        Op::Anyp { src, .. } => Flag(executing().any(|lane| lane.pred(src))),
        Op::Allp { src, .. } => Flag(executing().all(|lane| lane.pred(src))),
        Op::Ballot { src, index, .. } => {
            let votes = |lane: &Lane| lane.active && lane.guard && lane.pred(src);
            let words = lanes.chunks(bits as usize);
            let word =
                words.map(|word| word.iter().rev().fold(0, |w, l| w << 1 | i128::from(votes(l))));
            cut(word.collect::<Vec<_>>().get(index as usize).copied().unwrap_or(0))
        }
        Op::Shfl { value, lane: from, .. } => {
            let other = lanes.iter().enumerate().find(|&(i, _)| i as i128 == u(from));
            let other = other.map(|(_, other)| other).filter(|other| other.active && other.guard);
            cut(i128::from(other.unwrap_or(lane).reg(value)))
        }
        op => panic!("{op:?} has no evaluator"),
    }
}

/// A program that fetches each lane's state from `OUT`, runs `op` under `@p1` and, if `splits`, in
/// the lanes where `@p0` is true, and puts the state back.
fn program(arch: ArchId, op: Instruction, splits: bool) -> Vec<Instruction> {
    let word = i64::from(arch.word().bytes());
    let mut code = all_lanes(arch).to_vec();
    code.push(Op::Tid { dst: r(7) }.into());
    code.push(Op::Muli { dst: r(7), src: r(7), imm: 8 * word }.into());
    code.push(Op::Addi { dst: r(7), src: r(7), imm: OUT }.into());
    for i in 0..3 {
        code.push(ld(5, 7, (3 + i) * word));
        code.push(Op::Rtop { dst: p(2 + i as u8), src: r(5) }.into());
    }
    for i in 0..2 {
        code.push(ld(5, 7, (6 + i) * word));
        code.push(Op::Rtop { dst: p(i as u8), src: r(5) }.into());
    }
    code.extend((0..3).map(|i| ld(2 + i as u8, 7, i * word)));
    let jump = Op::Jmpi { rel: 0 };
    let over = |skipped: &[Instruction]| Op::Jmpi { rel: assemble(arch, skipped).len() as i64 };
    let join = Op::Join {}.into();
    if splits {
        code.extend([on(0, Op::Split {}), on(0, over(&[jump.into()])), over(&[op]).into()]);
    }
    code.push(op);
    if splits {
        code.push(join);
    }
    code.extend((0..3).map(|i| st(2 + i as u8, 7, i * word)));
    for i in 0..3 {
        code.push(Op::Ptor { dst: r(5), src: p(2 + i as u8) }.into());
        code.push(st(5, 7, (3 + i) * word));
    }
    code.push(halt());
    code
}

fn word() -> impl Strategy<Value = u64> {
    let singles = prop_oneof![
        Just(0.0_f32),
        Just(-0.0),
        Just(1.0),
        Just(-1.5),
        Just(f32::NAN),
        Just(f32::INFINITY),
        Just(f32::NEG_INFINITY),
        Just(f32::MIN_POSITIVE / 4.0),
        Just(2_147_483_648.0),
        any::<f32>(),
        -100.0_f32..100.0,
    ];
    prop_oneof![
        3 => any::<u64>(),
        2 => 0_u64..70,
        1 => (0_u64..3).prop_map(u64::wrapping_neg),
        1 => (0_u32..64).prop_map(|n| 1 << n),
        2 => singles.clone().prop_map(|x| x.to_bits().into()),
        2 => singles.prop_map(|x| f64::from(x).to_bits()),
    ]
}

/// How instructions are carried out.
const WAYS: [(Path, Simd); 3] =
    [(Path::Fast, Simd::Detect), (Path::Fast, Simd::Baseline), (Path::Precise, Simd::Baseline)];

/// A bit for each lane, often all.
fn mask() -> impl Strategy<Value = u64> {
    prop_oneof![2 => Just(u64::MAX), 1 => any::<u64>(), 1 => Just(1_u64), 1 => Just(0_u64)]
}

fn check(
    arch: ArchId,
    op: Op,
    guarded: bool,
    splits: bool,
    (path, simd): (Path, Simd),
    before: &[Lane],
) -> Result<(), TestCaseError> {
    let width = usize::from(arch.word().bytes());
    let memory = Memory::new(arch.word(), MEMORY).unwrap();
    let instruction = if guarded { on(1, op) } else { op.into() };
    memory.write(0, &assemble(arch, &program(arch, instruction, splits))).unwrap();
    for (i, lane) in before.iter().enumerate() {
        let flags = lane.preds.iter().chain([&lane.active, &lane.guard]).map(|&flag| flag.into());
        let words = lane.regs.into_iter().chain(flags);
        let bytes: Vec<u8> = words.flat_map(|w: u64| w.to_le_bytes()[..width].to_vec()).collect();
        memory.write(OUT as u64 + (8 * width * i) as u64, &bytes).unwrap();
    }
    // What the machine executes, whatever the tables say.
    let effective: Vec<Lane> = before
        .iter()
        .map(|l| Lane { active: l.active || !splits, guard: l.guard || !guarded, ..*l })
        .collect();
    // A unanimous split leaves the active lanes as they are, but the false side jumps.
    let run = run_in(arch, memory, |config| (config.path, config.simd) = (path, simd));

    let mut zero = 0;
    let mut expected = effective.clone();
    for (i, lane) in effective.iter().enumerate() {
        if !(lane.active && lane.guard) {
            continue;
        }
        let value = evaluate(op, arch, lane, &effective);
        let mut dst = None;
        op.for_each_operand(|operand| dst = dst.or(Some(operand)));
        match (dst, value) {
            (_, Value::DivideByZero) => zero |= 1_u64 << i,
            (Some(Operand::Pred(dst)), Value::Flag(flag)) => {
                expected[i].preds[usize::from(dst.index()) - 2] = flag;
            }
            (Some(Operand::Gpr(dst)), value) => {
                let got =
                    run.word(OUT as u64 + ((8 * i + usize::from(dst.index()) - 2) * width) as u64);
                let result = match value {
                    Value::Word(word) => word,
                    // Which NaN comes out is not specified.
                    Value::Float(x) if width == 8 && x.is_nan() && f64::from_bits(got).is_nan() => {
                        got
                    }
                    Value::Float(x) if width == 8 => x.to_bits(),
                    Value::Float(x) if x.is_nan() && f32::from_bits(got as u32).is_nan() => got,
                    Value::Float(x) => (x as f32).to_bits().into(),
                    Value::Single(x)
                        if x.is_nan()
                            && got <= u32::MAX.into()
                            && f32::from_bits(got as u32).is_nan() =>
                    {
                        got
                    }
                    Value::Single(x) => x.to_bits().into(),
                    other => panic!("{op:?} gives {other:?}"),
                };
                expected[i].regs[usize::from(dst.index()) - 2] = result;
            }
            other => panic!("{op:?} gives {other:?}"),
        }
    }
    if zero != 0 {
        let trap = run.trap.expect("a division by zero");
        prop_assert_eq!((trap.kind, trap.lanes), (TrapKind::DivideByZero, zero));
        return Ok(());
    }
    prop_assert_eq!(&run.trap, &None);
    for (i, lane) in expected.iter().enumerate() {
        let at = |k: usize| run.word(OUT as u64 + ((8 * i + k) * width) as u64);
        let regs: [u64; 3] = std::array::from_fn(at);
        let preds: [bool; 3] = std::array::from_fn(|k| at(3 + k) != 0);
        prop_assert_eq!((regs, preds), (lane.regs, lane.preds), "lane {} of {:?}", i, op);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 3000, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn every_lane_computes_what_one_lane_computes(
        machine in prop::sample::select(vec!["4w16/8", "4b16/8", "8w16/8", "8b16/8"]),
        lanes in prop::sample::select(vec![1_u8, 2, 7, 8, 9, 16, 31, 32, 33, 64]),
        opcode: prop::sample::Index,
        pick: [u64; 4],
        guarded: bool,
        splits: bool,
        masks in (mask(), mask(), any::<[u64; 3]>()),
        words in prop::collection::vec(word(), 3 * 64),
    ) {
        let arch: ArchId = format!("{machine}/{lanes}/1+x").parse().unwrap();
        let all: Vec<_> = Opcode::ALL.iter().copied().filter(|&o| computes(o, arch)).collect();
        let op = build(*opcode.get(&all), arch, pick);
        let bit = |mask: u64, lane: usize| mask >> lane & 1 != 0;
        let (active, guard, preds) = masks;
        let before: Vec<Lane> = (0..usize::from(lanes))
            .map(|lane| Lane {
                regs: std::array::from_fn(|k| words[3 * lane + k] & arch.word().mask()),
                preds: preds.map(|mask| bit(mask, lane)),
                active: bit(active, lane),
                guard: bit(guard, lane),
            })
            .collect();
        for way in WAYS {
            check(arch, op, guarded, splits, way, &before)?;
        }
    }
}

/// The generator reaches what it should: all computing instructions of both spaces.
#[test]
fn the_choice_of_instructions_is_not_empty() {
    let arch: ArchId = "8w16/8/8/1+x".parse().unwrap();
    let all: Vec<_> = Opcode::ALL.iter().filter(|&&opcode| computes(opcode, arch)).collect();
    let base = all.iter().filter(|opcode| matches!(opcode.space(), Space::Base(_))).count();
    // Integer 23, predicate 7, float 7; and of the extension 6, 4, 19 and 4 across lanes.
    assert_eq!((base, all.len() - base), (37, 33));
}
