//! Cores on several host threads compute what they compute on one.

use std::num::NonZeroUsize;

use harp_emu::{Machine, MachineConfig, Memory, Path, Stats};
use harp_isa::{ArchId, Instruction, Op};

use crate::common::*;

/// Bytes of each core's array.
const ARRAY: i64 = 1 << 12;

/// All lanes walk their core's array many times and mix what they find into it. In each round the
/// lanes with an odd value take another way than the others.
fn program() -> Vec<u8> {
    let (arch, lanes, core) = (arch(), r(1), r(2));
    let (at, counter, value, last, odd) = (r(3), r(4), r(5), r(6), p(0));
    let setup: Vec<Instruction> = vec![
        ldi(1, arch.lanes().into()),
        Op::Jalis { link: r(7), lanes, rel: 0 }.into(),
        Op::Tid { dst: at }.into(),
        Op::Csr { dst: core, index: 2 }.into(),
        Op::Addi { dst: core, src: core, imm: 1 }.into(),
        Op::Muli { dst: core, src: core, imm: ARRAY }.into(),
        Op::Shli { dst: at, src: at, imm: 2 }.into(),
        Op::Add { dst: at, a: at, b: core }.into(),
        ldi(4, 4000),
        ldi(6, ARRAY - 1),
    ];
    let body: Vec<Instruction> = vec![
        Op::Ld { dst: value, base: at, offset: 0 }.into(),
        Op::Muli { dst: value, src: value, imm: 13 }.into(),
        Op::Add { dst: value, a: value, b: counter }.into(),
        Op::Xor { dst: value, a: value, b: at }.into(),
        Op::Andi { dst: r(0), src: value, imm: 1 }.into(),
        Op::Rtop { dst: odd, src: r(0) }.into(),
        on(0, Op::Split {}),
        on(0, Op::Jmpi { rel: 8 }),
        Op::Shri { dst: value, src: value, imm: 1 }.into(),
        Op::Nop {}.into(),
        Op::Join {}.into(),
        Op::St { value, base: at, offset: 0 }.into(),
        // The next words, round the array.
        Op::Addi { dst: at, src: at, imm: 4 * i64::from(arch.lanes()) }.into(),
        Op::And { dst: at, a: at, b: last }.into(),
        Op::Or { dst: at, a: at, b: core }.into(),
        Op::Subi { dst: counter, src: counter, imm: 1 }.into(),
        Op::Rtop { dst: p(1), src: counter }.into(),
    ];
    let back = -4 * (body.len() as i64 + 1);
    let end = [on(1, Op::Jmpi { rel: back }), halt()];
    assemble(arch, &[&setup[..], &body, &end].concat())
}

fn arch() -> ArchId {
    "4w8/4/32/1+x".parse().unwrap()
}

fn run(cores: u16, threads: usize, path: Path) -> (Stats, Vec<u8>) {
    let memory = Memory::new(arch().word(), ARRAY as u64 * (u64::from(cores) + 1)).unwrap();
    memory.write(0, &program()).unwrap();
    let host_threads = NonZeroUsize::new(threads);
    let config = MachineConfig { cores, host_threads, path, ..MachineConfig::new(arch()) };
    let stats = Machine::new(config, &memory).unwrap().run().unwrap();
    let mut bytes = vec![0; memory.size() as usize];
    memory.read(0, &mut bytes).unwrap();
    (stats, bytes)
}

#[test]
fn memory_and_statistics_are_those_of_one_thread() {
    let one = run(3, 1, Path::Fast);
    let words = one.1[ARRAY as usize..].chunks_exact(4).filter(|word| *word != [0; 4]).count();
    assert!(words > 2000, "{words} words were written");
    assert!(one.0.warps().all(|(_, _, warp)| warp.divergence_high_water == 2));
    for threads in 2..=3 {
        assert!(one == run(3, threads, Path::Fast), "{threads} threads");
    }
    assert!(one == run(3, 2, Path::Precise), "the precise path");
}
