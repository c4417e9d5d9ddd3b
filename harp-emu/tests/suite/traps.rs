//! Every kind of trap: what it says about the place and the lanes.

use harp_emu::{
    BarrierWait, Machine, MachineConfig, MachineError, Memory, MemoryError, SpawnPolicy, TrapKind,
};
use harp_isa::{ArchId, Instruction, Op, Opcode, WordSize};

use crate::common::*;

const ARCH: &str = "4w16/8/8/2+x";

/// Runs `code` on all lanes after `%r0` was set to the lane number. The trap's kind, lanes and how
/// many instructions of `code` come before the place.
fn trap(code: &[Instruction]) -> (TrapKind, u64, u64) {
    let setup = setup();
    let before = setup.len() as u64;
    let code: Vec<_> = setup.into_iter().chain(code.iter().copied()).collect();
    let trap = run(ARCH, &code, |_| {}).trap.expect("a trap");
    assert_eq!((trap.core, trap.warp), (0, 0));
    (trap.kind, trap.lanes, trap.pc / 4 - before)
}

fn setup() -> Vec<Instruction> {
    let mut code = all_lanes(ARCH.parse().unwrap()).to_vec();
    code.push(Op::Tid { dst: r(0) }.into());
    // @p1: lanes 1 to 7; @p2: the odd lanes.
    code.push(Op::Rtop { dst: p(1), src: r(0) }.into());
    code.push(Op::Andi { dst: r(3), src: r(0), imm: 1 }.into());
    code.push(Op::Rtop { dst: p(2), src: r(3) }.into());
    code
}

#[test]
fn addresses_outside_memory() {
    // The lanes' words lie at the memory's end, the last three beyond it.
    let address = [
        Op::Muli { dst: r(3), src: r(0), imm: 4 }.into(),
        ldi(4, MEMORY as i64 - 20),
        Op::Add { dst: r(3), a: r(3), b: r(4) }.into(),
    ];
    let with = |access| [address[0], address[1], address[2], access];
    let load = trap(&with(ld(4, 3, 0)));
    assert_eq!(load, (TrapKind::BadAddress { address: MEMORY, store: false }, 0b1110_0000, 3));
    let store = trap(&with(on(2, st(4, 3, 0).op)));
    assert_eq!(store, (TrapKind::BadAddress { address: MEMORY, store: true }, 0b1010_0000, 3));
    // A half-word that begins inside.
    let half = Op::Ldh { dst: r(4), base: r(3), offset: 0 };
    let (kind, _, _) = trap(&[ldi(3, MEMORY as i64 - 1), half.into()]);
    assert_eq!(kind, TrapKind::BadAddress { address: MEMORY - 1, store: false });
}

#[test]
fn stores_into_read_only_memory() {
    // Lane i uses word i, 5 or 7 - i, counted from three words before the first writable one.
    let limit = (OUT + 12).cast_unsigned();
    let rising = vec![Op::Muli { dst: r(3), src: r(0), imm: 4 }.into()];
    let equal = vec![ldi(3, 4)];
    let falling = vec![
        Op::Muli { dst: r(3), src: r(0), imm: -4 }.into(),
        Op::Addi { dst: r(3), src: r(3), imm: 28 }.into(),
    ];
    let atomic = Op::AmoAdd { dst: r(4), addr: r(5), value: r(0) };
    let byte = Op::Stb { value: r(0), base: r(5), offset: 0 };
    for (addresses, lanes, first) in
        [(rising, 0b0000_0111, 0), (equal, 0b1111_1111, 4), (falling, 0b1110_0000, 8)]
    {
        for access in [st(0, 5, 0), atomic.into(), byte.into(), ld(4, 5, 0)] {
            let base = Op::Addi { dst: r(5), src: r(3), imm: OUT }.into();
            let code: Vec<_> = setup()
                .into_iter()
                .chain(addresses.clone())
                .chain([base, access, halt()])
                .collect();
            for (read_only_below, limit) in
                [(limit, limit), (limit - 3, limit), (u64::MAX, MEMORY), (OUT as u64, 0)]
            {
                let run = run(ARCH, &code, |config| config.read_only_below = read_only_below);
                let stores = access != ld(4, 5, 0) && limit != 0;
                let lanes = if limit == MEMORY { 0b1111_1111 } else { lanes };
                let address = OUT as u64 + if lanes & 1 == 1 && first == 8 { 28 } else { first };
                let kind = TrapKind::ReadOnly { address, limit };
                let trap = run.trap.map(|trap| (trap.kind, trap.lanes));
                assert_eq!(trap, stores.then_some((kind, lanes)), "{access:?}");
            }
        }
    }
}

#[test]
fn nothing_is_stored_by_a_store_that_traps() {
    let mut code = setup();
    code.push(Op::Muli { dst: r(3), src: r(0), imm: 4 }.into());
    code.push(ldi(4, MEMORY as i64 - 20));
    code.push(Op::Add { dst: r(3), a: r(3), b: r(4) }.into());
    code.push(st(4, 3, 0));
    let run = run(ARCH, &code, |_| {});
    assert!(run.trap.is_some());
    assert_eq!(run.word(MEMORY - 20), 0);
}

#[test]
fn the_console_only_where_there_is_one() {
    let code = [ldi(3, 1), Op::Shli { dst: r(3), src: r(3), imm: 31 }.into(), st(3, 3, 0), halt()];
    assert_eq!(run(ARCH, &code, |_| {}).trap, None);
    let without = run(ARCH, &code, |config| config.console = false);
    assert_eq!(*without.kind(), TrapKind::BadAddress { address: 1 << 31, store: true });
}

#[test]
fn misaligned_atomic() {
    let add = Op::AmoAdd { dst: r(4), addr: r(0), value: r(0) };
    assert_eq!(trap(&[add.into()]), (TrapKind::Misaligned { address: 1, size: 4 }, 0b1110_1110, 0));
    let outside =
        trap(&[ldi(3, MEMORY as i64), Op::Cas { dst: r(4), addr: r(3), new: r(0) }.into()]);
    assert_eq!(outside.0, TrapKind::BadAddress { address: MEMORY, store: true });
}

#[test]
fn division_by_zero_in_executing_lanes_only() {
    let div = Op::Div { dst: r(4), a: r(0), b: r(0) };
    assert_eq!(trap(&[div.into()]), (TrapKind::DivideByZero, 1, 0));
    let mods = Op::Mods { dst: r(4), a: r(0), b: r(0) };
    let imm = Op::Divi { dst: r(4), src: r(0), imm: 0 };
    // Lane 0 does not execute the first.
    assert_eq!(trap(&[on(1, div), mods.into()]), (TrapKind::DivideByZero, 1, 1));
    assert_eq!(trap(&[on(2, imm)]), (TrapKind::DivideByZero, 0b1010_1010, 0));
}

#[test]
fn divergent_control() {
    let jump = Op::Jmpi { rel: 8 };
    let kind = TrapKind::DivergentBranch { opcode: Opcode::Jmpi };
    assert_eq!(trap(&[on(2, jump)]), (kind, 0b1010_1010, 0));
    let kind = TrapKind::DivergentBranch { opcode: Opcode::Trap };
    assert_eq!(trap(&[on(1, Op::Trap {})]), (kind, 0b1111_1110, 0));
}

#[test]
fn divergent_targets() {
    let jump = Op::Jmpr { target: r(0) };
    let kind = TrapKind::DivergentTarget { opcode: Opcode::Jmpr };
    assert_eq!(trap(&[jump.into()]), (kind, 0b1111_1110, 0));
    let jump = Op::Jalis { link: r(5), lanes: r(0), rel: 0 };
    let kind = TrapKind::DivergentTarget { opcode: Opcode::Jalis };
    assert_eq!(trap(&[jump.into()]), (kind, 0b1111_1110, 0));
}

#[test]
fn guest_traps_and_privilege() {
    assert_eq!(trap(&[Op::Trap {}.into()]), (TrapKind::GuestTrap, 0xff, 0));
    assert_eq!(trap(&[Op::Reti {}.into()]), (TrapKind::NothingSaved, 1, 0));
    // Two instructions on, in user mode, `di` is refused.
    let here = setup().len() as i64 * 4;
    let to_user = [ldi(3, here + 12), Op::Di {}.into(), Op::Jmpru { target: r(3) }.into()];
    let code = [to_user[0], to_user[1], to_user[2], Op::Di {}.into()];
    assert_eq!(trap(&code), (TrapKind::Privileged { opcode: Opcode::Di }, 0xff, 3));
}

#[test]
fn the_divergence_stack_has_two_ends() {
    assert_eq!(trap(&[Op::Join {}.into()]), (TrapKind::StackUnderflow, 0xff, 0));
    let mut code = setup();
    let first = code.len() as u64;
    // Two entries where lanes disagree, then one.
    code.extend([on(2, Op::Split {}), Op::Split {}.into(), Op::Split {}.into()]);
    let run = run(ARCH, &code, |config| config.divergence_depth = 3);
    assert_eq!(*run.kind(), TrapKind::StackOverflow { limit: 3 });
    assert_eq!(run.trap.as_ref().unwrap().pc / 4, first + 2);
    assert_eq!(run.trap.as_ref().unwrap().lanes, 0b1010_1010);
    assert_eq!(run.stats.divergence_high_water(), 3);
}

#[test]
fn lanes_that_the_machine_lacks() {
    let jump = Op::Jalis { link: r(5), lanes: r(3), rel: 0 };
    let kind = TrapKind::TooManyLanes { given: 9, limit: 8 };
    assert_eq!(trap(&[ldi(3, 9), jump.into()]), (kind, 0xff, 1));
    let clone = Op::Clone { lane: r(3) };
    let kind = TrapKind::NoSuchLane { given: 8, limit: 8 };
    assert_eq!(trap(&[ldi(3, 8), clone.into()]), (kind, 1, 1));
}

#[test]
fn indices_that_mean_nothing() {
    let csr = Op::Csr { dst: r(4), index: 7 };
    let kind = TrapKind::BadIndex { opcode: Opcode::Csr, given: 7 };
    assert_eq!(trap(&[csr.into()]), (kind, 0xff, 0));
    let ballot = Op::Ballot { dst: r(4), src: p(1), index: 2 };
    let kind = TrapKind::BadIndex { opcode: Opcode::Ballot, given: 2 };
    assert_eq!(trap(&[ballot.into()]), (kind, 0xff, 0));
}

#[test]
fn spawning_more_warps_than_there_are() {
    let spawn = Op::Wspawn { dst: r(5), pc: r(3), src: r(4) };
    // Warp 1 halts at once: a stopped warp is not started again.
    let code = [ldi(3, 16), spawn.into(), spawn.into(), halt(), halt()];
    let strict = run(ARCH, &code, |_| {});
    assert_eq!(*strict.kind(), TrapKind::NoWarpLeft { limit: 2 });
    assert_eq!(strict.trap.unwrap().pc, 8);
    let original = run(ARCH, &code, |config| config.spawn = SpawnPolicy::Original);
    assert_eq!(original.trap, None);
}

#[test]
fn a_barrier_that_nobody_completes() {
    let code = [ldi(3, 5), ldi(4, 2), Op::Bar { id: r(3), warps: r(4) }.into(), halt()];
    let run = run(ARCH, &code, |_| {});
    let wait = BarrierWait { warp: 0, pc: 8, lanes: 1, barrier: 5, wanted: 2 };
    assert_eq!(*run.kind(), TrapKind::Deadlock { waiting: vec![wait] });
    let trap = run.trap.unwrap();
    assert_eq!(trap.pc, 8);
    assert_eq!(
        trap.to_string(),
        "deadlock: warp 0 at barrier 5 for 2 warps (pc 0x8); no other warp runs (core 0, warp 0, pc \
         0x8, lane 0)"
    );
}

#[test]
fn fuel_is_exact() {
    let code = [Op::Nop {}.into(), Op::Nop {}.into(), halt()];
    assert_eq!(run(ARCH, &code, |config| config.fuel = Some(3)).trap, None);
    let short = run(ARCH, &code, |config| config.fuel = Some(2));
    assert_eq!(*short.kind(), TrapKind::OutOfFuel { limit: 2 });
    assert_eq!((short.trap.unwrap().pc, short.stats.issued()), (8, 2));
    let endless = [Op::Jmpi { rel: -4 }.into()];
    let run = run(ARCH, &endless, |_| {});
    assert_eq!(*run.kind(), TrapKind::OutOfFuel { limit: 100_000 });
}

#[test]
fn code_that_is_none() {
    let run_off = run(ARCH, &[Op::Jmpi { rel: MEMORY as i64 }.into()], |_| {});
    assert_eq!(*run_off.kind(), TrapKind::BadPc { size: MEMORY });
    assert_eq!(run_off.trap.unwrap().pc, MEMORY + 4);
    let arch: ArchId = ARCH.parse().unwrap();
    let memory = Memory::new(arch.word(), MEMORY).unwrap();
    // An instruction of 8-byte machines.
    memory.write(4, &(0x3f_u32 << 22 | 0x38).to_le_bytes()).unwrap();
    let invalid = run_in(arch, memory, |_| {});
    let trap = invalid.trap.unwrap();
    assert!(matches!(trap.kind, TrapKind::InvalidInstruction(_)), "{trap}");
    // It counts as issued.
    assert_eq!((trap.pc, invalid.stats.issued(), invalid.stats.insts()), (4, 2, 1));
}

#[test]
fn traps_read_well() {
    let code = [on(2, Op::Jmpi { rel: 8 })];
    let mut all = setup();
    all.extend(code);
    let text = run(ARCH, &all, |_| {}).trap.unwrap().to_string();
    assert_eq!(
        text,
        "the active lanes disagree on the predicate of a `jmpi` (core 0, warp 0, pc 0x18, \
         lanes 1 3 5 7)"
    );
}

#[test]
fn the_first_trap_is_reported() {
    // Odd cores trap after a while, the higher ones later. Core 2 never ends, nor does core 0, as if it waited for core 1.
    let code = [
        Op::Csr { dst: r(3), index: 2 }.into(),
        Op::Andi { dst: r(4), src: r(3), imm: 1 }.into(),
        Op::Iszero { dst: p(1), src: r(4) }.into(),
        on(1, Op::Jmpi { rel: 16 }),
        Op::Subi { dst: r(3), src: r(3), imm: 1 }.into(),
        Op::Rtop { dst: p(2), src: r(3) }.into(),
        on(2, Op::Jmpi { rel: -12 }),
        Op::Trap {}.into(),
        Op::Andi { dst: r(4), src: r(3), imm: 4 }.into(),
        Op::Iszero { dst: p(1), src: r(4) }.into(),
        on(1, Op::Jmpi { rel: -4 }),
        halt(),
    ];
    for threads in 1..5 {
        let run = run(ARCH, &code, |config| {
            config.cores = 6;
            config.fuel = None;
            config.host_threads = std::num::NonZeroUsize::new(threads);
        });
        let trap = run.trap.unwrap();
        assert_eq!((trap.kind, trap.core), (TrapKind::GuestTrap, 1), "{threads} threads");
    }
}

/// Of cores that trap after as many instructions, the lowest one is reported.
#[test]
fn the_lowest_core_that_traps_is_reported() {
    let code = [
        Op::Csr { dst: r(3), index: 2 }.into(),
        Op::Rtop { dst: p(1), src: r(3) }.into(),
        on(1, Op::Trap {}),
        halt(),
    ];
    for threads in 1..5 {
        let run = run(ARCH, &code, |config| {
            config.cores = 6;
            config.host_threads = std::num::NonZeroUsize::new(threads);
        });
        let trap = run.trap.unwrap();
        assert_eq!((trap.kind, trap.core), (TrapKind::GuestTrap, 1), "{threads} threads");
    }
}

#[test]
fn machines_and_memories_that_cannot_be() {
    let arch: ArchId = ARCH.parse().unwrap();
    let memory = Memory::new(WordSize::Eight, 64).unwrap();
    let error = Machine::new(MachineConfig::new(arch), &memory).unwrap_err();
    assert_eq!(error, MachineError::WordSize { memory: 8, machine: 4 });
    let memory = Memory::new(WordSize::Four, 64).unwrap();
    let none = MachineConfig { cores: 0, ..MachineConfig::new(arch) };
    assert_eq!(Machine::new(none, &memory).unwrap_err(), MachineError::NoCores);
    let error = Memory::new(WordSize::Four, (1 << 31) + 4).unwrap_err();
    assert_eq!(error, MemoryError::TooLarge { given: (1 << 31) + 4, limit: 1 << 31 });
    let error = Memory::new(WordSize::Eight, 12).unwrap_err();
    assert_eq!(error, MemoryError::NotWords { given: 12, word: 8 });
    let error = Memory::new(WordSize::Eight, 1 << 62).unwrap_err();
    assert_eq!(error, MemoryError::OutOfHostMemory { given: 1 << 62 });
    let error = memory.write(60, &[0; 5]).unwrap_err();
    assert_eq!(error, MemoryError::OutOfRange { address: 60, bytes: 5, size: 64 });
    assert!(memory.read(u64::MAX, &mut [0; 2]).is_err());
}
