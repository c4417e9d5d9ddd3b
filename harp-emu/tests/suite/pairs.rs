//! Two instructions of which the second uses the first's result, which the fast path carries out in
//! one step: whatever the registers, and wherever the fuel ends, they do what they do one by one.

use harp_emu::{Machine, MachineConfig, Memory, Path, Simd, Stats, TrapKind};
use harp_isa::{ArchId, Gpr, Instruction, Op, Pred};

use crate::common::*;

const PLACES: [u8; 3] = [3, 4, 5];

/// Every way to choose so many of three registers.
fn choices(count: u32) -> impl Iterator<Item = Vec<Gpr>> {
    (0..3usize.pow(count)).map(move |number| {
        (0..count).map(|place| r(PLACES[number / 3usize.pow(place) % 3])).collect()
    })
}

/// All first instructions with all registers.
fn firsts() -> Vec<Op> {
    let mut ops = Vec::new();
    for regs in choices(3) {
        let (dst, src, a, b) = (regs[0], regs[1], regs[1], regs[2]);
        ops.extend([Op::Mul { dst, a, b }, Op::Add { dst, a, b }, Op::And { dst, a, b }]);
        if src == b {
            for imm in [-3, 5] {
                ops.extend([Op::Muli { dst, src, imm }, Op::Addi { dst, src, imm }]);
                ops.push(Op::Andi { dst, src, imm });
            }
            // Within the word, and beyond those of one size or both.
            for imm in [3, 40, 64] {
                ops.extend([Op::Shli { dst, src, imm }, Op::Shri { dst, src, imm }]);
            }
        }
    }
    ops
}

/// All second instructions with all registers.
fn seconds() -> Vec<Op> {
    let ops = choices(3).flat_map(|regs| {
        let (dst, a, b) = (regs[0], regs[1], regs[2]);
        [Op::Add { dst, a, b }, Op::Sub { dst, a, b }, Op::Xor { dst, a, b }, Op::Or { dst, a, b }]
    });
    ops.collect()
}

/// Instructions whose result is tested, with all registers.
fn tested() -> Vec<(Op, Gpr)> {
    let ops = choices(3).flat_map(|regs| {
        let (dst, src, a, b) = (regs[0], regs[1], regs[1], regs[2]);
        [
            (Op::Sub { dst, a, b }, dst),
            (Op::Xor { dst, a, b }, dst),
            (Op::Subi { dst, src, imm: 3 }, dst),
            (Op::Andi { dst, src, imm: 6 }, dst),
        ]
    });
    ops.collect()
}

/// Makes the registers differ from each other and from lane to lane.
fn start(arch: ArchId) -> Vec<Instruction> {
    let mut code = all_lanes(arch).to_vec();
    code.push(Op::Tid { dst: r(0) }.into());
    for (place, factor) in PLACES.into_iter().zip([1117, 733, 951]) {
        code.push(Op::Muli { dst: r(place), src: r(0), imm: factor }.into());
        code.push(Op::Xori { dst: r(place), src: r(place), imm: factor }.into());
    }
    code
}

struct Outcome {
    stats: Stats,
    pc: u64,
    kind: Option<TrapKind>,
    regs: Vec<u64>,
}

fn run(arch: ArchId, code: &[Instruction], config: MachineConfig) -> Outcome {
    let memory = Memory::new(arch.word(), 1 << 20).unwrap();
    memory.write(0, &assemble(arch, code)).unwrap();
    let mut machine = Machine::new(config, &memory).unwrap();
    let kind = machine.run().err().map(|trap| trap.kind);
    let warp = machine.warp(0, 0).unwrap();
    let lanes = 0..arch.lanes();
    let regs = lanes.flat_map(|lane| (0..8).map(move |reg| (reg, lane)));
    let regs = regs.map(|(reg, lane)| warp.gpr(r(reg), lane).unwrap()).collect();
    Outcome { stats: machine.stats(), pc: warp.pc(), kind, regs }
}

fn assert_same(arch: ArchId, code: &[Instruction], fuel: Option<u64>) {
    let config = |path, simd| MachineConfig { fuel, path, simd, ..MachineConfig::new(arch) };
    let expected = run(arch, code, config(Path::Precise, Simd::Detect));
    for simd in [Simd::Detect, Simd::Baseline] {
        let given = run(arch, code, config(Path::Fast, simd));
        assert_eq!(given.regs, expected.regs, "{arch} {simd:?} {fuel:?}: registers");
        assert_eq!((&given.kind, given.pc), (&expected.kind, expected.pc), "{arch} {fuel:?}");
        assert_eq!(given.stats, expected.stats, "{arch} {fuel:?}");
    }
}

/// Words of both sizes, and all numbers of lanes that have code of their own.
const ARCHS: [&str; 6] =
    ["4w8/8/8/1+x", "4w8/8/20/1+x", "4w8/8/64/1+x", "8w8/8/32/1+x", "8w8/8/64/1+x", "8b8/8/5/1+x"];

#[test]
fn all_registers() {
    let seconds = seconds();
    for arch in ARCHS {
        let arch: ArchId = arch.parse().unwrap();
        let mut code = start(arch);
        for (number, first) in firsts().into_iter().enumerate() {
            // Every tenth of the seconds with each first, all of them with every tenth of the firsts.
            for second in seconds.iter().skip(number % 10).step_by(10) {
                code.extend([Instruction::new(first), Instruction::new(*second)]);
                // Whatever it is, it is seen in the end.
                for place in PLACES {
                    code.push(Op::Xor { dst: r(6), a: r(place), b: r(6) }.into());
                    code.push(Op::Muli { dst: r(6), src: r(6), imm: 31 }.into());
                    code.push(Op::Addi { dst: r(place), src: r(place), imm: 77 }.into());
                }
            }
        }
        code.push(halt());
        assert_same(arch, &code, None);
    }
}

#[test]
fn all_tests() {
    let pred = Pred::new(1);
    for arch in ARCHS {
        let arch: ArchId = arch.parse().unwrap();
        let mut code = start(arch);
        for (first, src) in tested() {
            for test in [
                Op::Rtop { dst: pred, src },
                Op::Iszero { dst: pred, src },
                Op::Isneg { dst: pred, src },
            ] {
                code.extend([Instruction::new(first), Instruction::new(test)]);
                // Whatever it is, it is seen in the end.
                code.push(
                    Instruction::new(Op::Addi { dst: r(6), src: r(6), imm: 5 }).guarded_by(pred),
                );
                code.push(Op::Muli { dst: r(6), src: r(6), imm: 31 }.into());
                for place in PLACES {
                    code.push(Op::Add { dst: r(6), a: r(place), b: r(6) }.into());
                    code.push(Op::Add { dst: r(place), a: r(place), b: r(0) }.into());
                }
            }
        }
        code.push(halt());
        assert_same(arch, &code, None);
    }
}

#[test]
fn fuel_ends_between_the_two() {
    let arch: ArchId = "4w8/8/16/1+x".parse().unwrap();
    let mut code = start(arch);
    // A chain of instructions each of which makes a pair with the next.
    for _ in 0..3 {
        let (a, b, c) = (r(PLACES[0]), r(PLACES[1]), r(PLACES[2]));
        code.extend([
            Instruction::new(Op::Shli { dst: a, src: b, imm: 2 }),
            Op::Add { dst: b, a: c, b: a }.into(),
            Op::Add { dst: c, a: b, b: a }.into(),
            Op::Xor { dst: a, a: c, b }.into(),
        ]);
    }
    code.push(halt());
    for fuel in 1..=code.len() as u64 {
        assert_same(arch, &code, Some(fuel));
    }
}
