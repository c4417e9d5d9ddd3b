//! Cores by the ten thousand: those that have not begun or have ended take next to no host memory, and
//! look as those of small machines.

use harp_emu::{Machine, MachineConfig, Memory, TrapKind, WarpStatus};
use harp_isa::{ArchId, Instruction, Op};

use crate::common::*;

/// Bytes that the process has taken at most; where the host does not say so, none.
fn most_taken() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.map_or(0, |line| line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10)
}

/// Every core adds its number to a word and leaves it in a register of its own; the odd ones print.
fn program() -> Vec<Instruction> {
    vec![
        Op::Csr { dst: r(3), index: 2 }.into(),
        ldi(4, OUT),
        Op::AmoAdd { dst: r(5), addr: r(4), value: r(3) }.into(),
        Op::Addi { dst: r(6), src: r(3), imm: 7 }.into(),
        Op::Andi { dst: r(7), src: r(3), imm: 1 }.into(),
        Op::Rtop { dst: p(1), src: r(7) }.into(),
        ldi(8, 1),
        Op::Shli { dst: r(8), src: r(8), imm: 63 }.into(),
        on(1, Op::St { value: r(3), base: r(8), offset: 0 }),
        halt(),
    ]
}

#[test]
fn ten_thousand_idle_cores() {
    const CORES: u16 = 10_000;
    let arch: ArchId = "8w64/64/64/2+x".parse().unwrap();
    let memory = Memory::new(arch.word(), MEMORY).unwrap();
    memory.write(0, &assemble(arch, &program())).unwrap();
    let before = most_taken();
    let config = MachineConfig { cores: CORES, ..MachineConfig::new(arch) };
    let mut machine = Machine::new(config, &memory).unwrap();
    // Twice: after a reset all is as it was.
    for _ in 0..2 {
        memory.write(OUT as u64, &[0; 8]).unwrap();
        let fresh = machine.warp(CORES - 1, 0).unwrap();
        assert_eq!((fresh.status(), fresh.pc(), fresh.active()), (WarpStatus::Ready, 0, 1));
        assert_eq!(fresh.gpr(r(0), 0), Some(64 << 32 | 9999));
        assert_eq!((fresh.gpr(r(63), 63), fresh.gpr(r(63), 64)), (Some(0), None));
        let stats = machine.run().unwrap();
        assert_eq!((stats.cores.len(), stats.cores[77].warps.len()), (CORES.into(), 2));
        assert_eq!(stats.issued(), 10 * u64::from(CORES));
        let mut sum = [0; 8];
        memory.read(OUT as u64, &mut sum).unwrap();
        assert_eq!(u64::from_le_bytes(sum), 9999 * 10_000 / 2);
        assert_eq!(machine.console().len(), 5000);
        let warp = machine.warp(4321, 0).unwrap();
        assert_eq!((warp.status(), warp.pc()), (WarpStatus::Stopped, 9 * 8));
        assert_eq!((warp.gpr(r(6), 0), warp.pred(p(1))), (Some(4328), 1));
        assert!(machine.warp(4321, 1).is_none());
        assert_eq!(machine.page_mappings(4321).len(), 1);
        assert!(!machine.step_warp(4321, 0).unwrap());
        assert!(!machine.step().unwrap());
        machine.reset();
    }
    // Their registers alone would take 330 MB.
    let taken = most_taken() - before;
    assert!(taken < 64 << 20, "{taken} bytes");
}

#[test]
fn traps_among_many_cores() {
    let arch: ArchId = "4w16/8/8/1+x".parse().unwrap();
    // Core 300 divides by zero.
    let code = [
        Op::Csr { dst: r(3), index: 2 }.into(),
        Op::Subi { dst: r(4), src: r(3), imm: 300 }.into(),
        Op::Div { dst: r(5), a: r(3), b: r(4) }.into(),
        halt(),
    ];
    let run = run("4w16/8/8/1+x", &code, |config| config.cores = 1000);
    let trap = run.trap.unwrap();
    assert_eq!((trap.kind, trap.core, trap.pc), (TrapKind::DivideByZero, 300, 8));
    assert_eq!(run.stats.cores[299].warps[0].steps, 4, "{arch}");
    assert_eq!(run.stats.cores[300].warps[0].steps, 3);
}
