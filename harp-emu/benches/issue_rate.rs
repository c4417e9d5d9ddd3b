//! Warp instructions a second on one host thread: a loop of ten instructions, of which one loads,
//! one stores and six compute, all lanes active.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use harp_emu::{Machine, MachineConfig, Memory, Simd};
use harp_isa::{ArchId, Gpr, Instruction, Op, Pred};

const ITERATIONS: i64 = 20_000;
/// Where lanes find their words, beyond the code.
const DATA: i64 = 0x1000;

fn program(arch: ArchId) -> Vec<u8> {
    let r = Gpr::new;
    let p = Pred::new;
    let word = i64::from(arch.word().bytes());
    let setup = [
        Op::Ldi { dst: r(1), imm: arch.lanes().into() },
        Op::Jalis { link: r(2), lanes: r(1), rel: 0 },
        Op::Tid { dst: r(0) },
        Op::Muli { dst: r(3), src: r(0), imm: word },
        Op::Addi { dst: r(3), src: r(3), imm: DATA },
        Op::Ldi { dst: r(5), imm: ITERATIONS },
    ];
    let body = [
        Op::Ld { dst: r(6), base: r(3), offset: 0 },
        Op::Muli { dst: r(6), src: r(6), imm: 3 },
        Op::Add { dst: r(6), a: r(6), b: r(0) },
        Op::Xor { dst: r(7), a: r(7), b: r(6) },
        Op::Shri { dst: r(8), src: r(7), imm: 5 },
        Op::Add { dst: r(9), a: r(9), b: r(8) },
        Op::St { value: r(6), base: r(3), offset: 0 },
        Op::Subi { dst: r(5), src: r(5), imm: 1 },
        Op::Rtop { dst: p(0), src: r(5) },
    ];
    let back = -word * (body.len() as i64 + 1);
    let loop_end = Instruction::new(Op::Jmpi { rel: back }).guarded_by(p(0));
    let straight = setup.into_iter().chain(body).map(Instruction::new);
    let mut code = Vec::new();
    for instruction in straight.chain([loop_end, Op::Halt {}.into()]) {
        harp_isa::encode(&instruction, arch, &mut code).expect("the machine has the instruction");
    }
    code
}

fn issue_rate(c: &mut Criterion) {
    let mut group = c.benchmark_group("issue_rate");
    for word in ["4w", "8w"] {
        for lanes in [8, 16, 32] {
            let arch: ArchId = format!("{word}16/8/{lanes}/4+x").parse().expect("an ArchID");
            let memory = Memory::new(arch.word(), 1 << 16).expect("64 KiB");
            memory.write(0, &program(arch)).expect("the program fits");
            for simd in [Simd::Detect, Simd::Baseline] {
                let config = MachineConfig { simd, ..MachineConfig::new(arch) };
                let mut machine = Machine::new(config, &memory).expect("a machine");
                let issued = machine.run().expect("no trap").issued();
                group.throughput(Throughput::Elements(issued));
                let id = BenchmarkId::new(format!("{word} {simd:?}"), lanes);
                group.bench_function(id, |b| b.iter(|| {
                    machine.reset();
                    black_box(machine.run())
                }));
            }
        }
    }
    group.finish();
}

criterion_group!(benches, issue_rate);
criterion_main!(benches);
