//! Memory, lanes, warps and cores: what machines compute and count.

use std::num::{NonZeroU32, NonZeroUsize};

use harp_emu::{Machine, MachineConfig, MachineError, Memory, Schedule, SpawnPolicy, TrapKind};
use harp_isa::{ArchId, Instruction, Op, WordSize};
use proptest::prelude::*;

use crate::common::*;

/// `%r0` := the lane's number and `%r7 := OUT + lane * word`, in all lanes.
fn lanes_with_slots(arch: &str) -> Vec<Instruction> {
    let arch: ArchId = arch.parse().unwrap();
    let mut code = all_lanes(arch).to_vec();
    code.push(Op::Tid { dst: r(0) }.into());
    code.push(Op::Muli { dst: r(7), src: r(0), imm: arch.word().bytes().into() }.into());
    code.push(Op::Addi { dst: r(7), src: r(7), imm: OUT }.into());
    code
}

/// Runs `code` after `lanes_with_slots`; the first `count` words from `OUT`.
fn outputs(arch: &str, code: &[Instruction], count: u64) -> Vec<u64> {
    let mut all = lanes_with_slots(arch);
    all.extend_from_slice(code);
    all.push(halt());
    let run = run(arch, &all, |_| {});
    assert_eq!(run.trap, None);
    let width = u64::from(run.memory.word().bytes());
    (0..count).map(|i| run.word(OUT as u64 + i * width)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn host_copies_move_exactly_their_bytes(
        eight: bool, start in 0_usize..40, data in prop::collection::vec(any::<u8>(), 0..40)
    ) {
        let word = if eight { WordSize::Eight } else { WordSize::Four };
        let memory = Memory::new(word, 96).unwrap();
        let mut model: Vec<u8> = (1..=96).collect();
        memory.write(0, &model).unwrap();
        memory.write(start as u64, &data).unwrap();
        model[start..start + data.len()].copy_from_slice(&data);
        let mut all = [0; 96];
        memory.read(0, &mut all).unwrap();
        prop_assert_eq!(&all[..], &model[..]);
        let mut part = vec![0; data.len()];
        memory.read(start as u64, &mut part).unwrap();
        prop_assert_eq!(part, data);
    }

    /// Each lane loads `width` bytes at an address of its own and stores them at another.
    #[test]
    fn narrow_and_misaligned_accesses(
        eight: bool,
        kind in 0_usize..7,
        from in prop::collection::vec(0_u64..48, 5),
        to in prop::collection::vec(0_u64..48, 5),
        contents in prop::collection::vec(any::<u8>(), 64),
    ) {
        let arch = if eight { "8w16/8/5/2+x" } else { "4w16/8/5/2+x" };
        let arch: ArchId = arch.parse().unwrap();
        let width = u64::from(arch.word().bytes());
        let (dst, value, base, offset) = (r(3), r(3), r(4), 0);
        let (load, store, bytes, signed) = match kind {
            0 => (Op::Ldb { dst, base, offset }, Op::Stb { value, base: r(5), offset }, 1, false),
            1 => (Op::Ldbs { dst, base, offset }, Op::Stb { value, base: r(5), offset }, 1, true),
            2 => (Op::Ldh { dst, base, offset }, Op::Sth { value, base: r(5), offset }, 2, false),
            3 => (Op::Ldhs { dst, base, offset }, Op::Sth { value, base: r(5), offset }, 2, true),
            4 => (Op::Ldw { dst, base, offset }, Op::Stw { value, base: r(5), offset }, 4, false),
            5 => (Op::Ldws { dst, base, offset }, Op::Stw { value, base: r(5), offset }, 4, true),
            _ => (Op::Ld { dst, base, offset }, Op::St { value, base: r(5), offset }, width, false),
        };
        let slot = 2 * width as i64;
        let mut code = all_lanes(arch).to_vec();
        code.push(Op::Tid { dst: r(0) }.into());
        code.push(Op::Muli { dst: r(6), src: r(0), imm: slot }.into());
        code.push(Op::Addi { dst: r(6), src: r(6), imm: OUT }.into());
        code.extend([ld(4, 6, 0), ld(5, 6, width as i64), load.into(), store.into()]);
        code.extend([st(3, 6, 0), halt()]);
        let memory = Memory::new(arch.word(), MEMORY).unwrap();
        memory.write(0, &assemble(arch, &code)).unwrap();
        const DATA: u64 = 0x2000;
        memory.write(DATA, &contents).unwrap();
        for lane in 0..5 {
            let at = OUT as u64 + lane * slot as u64;
            let address = |table: &[u64]| (DATA + table[lane as usize]).to_le_bytes();
            memory.write(at, &address(&from)[..width as usize]).unwrap();
            memory.write(at + width, &address(&to)[..width as usize]).unwrap();
        }
        let run = run_in(arch, memory, |_| {});
        prop_assert_eq!(&run.trap, &None);

        let mut model = contents.clone();
        // A word's access stops at the end of the word in memory.
        let moved = |at: u64| if bytes == width && kind >= 6 { width - at % width } else { bytes };
        let mut loaded = Vec::new();
        for &at in &from {
            let source = &contents[at as usize..][..moved(at) as usize];
            let mut value = [0; 8];
            value[..source.len()].copy_from_slice(source);
            if signed && source.last().unwrap() & 0x80 != 0 {
                value[source.len()..].fill(0xff);
            }
            loaded.push(u64::from_le_bytes(value));
        }
        for (&at, value) in to.iter().zip(&loaded) {
            let bytes = moved(at) as usize;
            model[at as usize..][..bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
        }
        let mut after = vec![0; 64];
        run.memory.read(DATA, &mut after).unwrap();
        prop_assert_eq!(after, model);
        for lane in 0..5 {
            let expected = loaded[lane as usize] & arch.word().mask();
            prop_assert_eq!(run.word(OUT as u64 + lane * slot as u64), expected);
        }
    }
}

#[test]
fn nested_splits_send_every_lane_where_it_belongs() {
    // r3 := if odd { if lane > 3 { 30 } else { 20 } } else { 10 }
    let code = [
        Op::Andi { dst: r(4), src: r(0), imm: 1 }.into(),
        Op::Rtop { dst: p(1), src: r(4) }.into(),
        Op::Subi { dst: r(4), src: r(0), imm: 4 }.into(),
        Op::Isneg { dst: p(2), src: r(4) }.into(),
        on(1, Op::Split {}),
        on(1, Op::Jmpi { rel: 8 }),
        ldi(3, 10),
        Op::Jmpi { rel: 24 }.into(),
        on(2, Op::Split {}),
        on(2, Op::Jmpi { rel: 8 }),
        ldi(3, 30),
        Op::Jmpi { rel: 4 }.into(),
        ldi(3, 20),
        Op::Join {}.into(),
        Op::Join {}.into(),
        st(3, 7, 0),
    ];
    for (arch, lanes) in [("4w16/8/1/1+x", 1), ("4w16/8/6/1+x", 6), ("4w16/8/64/1+x", 64)] {
        let expected: Vec<u64> = (0..lanes)
            .map(|lane| match lane {
                _ if lane % 2 == 0 => 10,
                0..=3 => 20,
                _ => 30,
            })
            .collect();
        assert_eq!(outputs(arch, &code, lanes), expected, "{arch}");
    }
}

#[test]
fn colliding_lanes_act_in_lane_order() {
    let to_one = [
        ldi(4, OUT + 0x800),
        Op::AmoAdd { dst: r(5), addr: r(4), value: r(0) }.into(),
        st(5, 7, 0),
    ];
    // The sums of the numbers below the lane's.
    assert_eq!(outputs("4w16/8/6/1+x", &to_one, 6), [0, 0, 1, 3, 6, 10]);
    let highest_wins = [ldi(4, OUT), st(0, 4, 0)];
    assert_eq!(outputs("4w16/8/6/1+x", &highest_wins, 1), [5]);
    // Only the lane whose expectation holds swaps: lane 0 expects 0, lane 1 expects 1, which lane
    // 0 has put there, and so on.
    let cas = [
        ldi(4, OUT + 0x800),
        Op::Addi { dst: r(6), src: r(0), imm: 1 }.into(),
        Op::Ori { dst: r(5), src: r(0), imm: 0 }.into(),
        Op::Cas { dst: r(5), addr: r(4), new: r(6) }.into(),
        ld(6, 4, 0),
        st(6, 7, 0),
    ];
    assert_eq!(outputs("4w16/8/6/1+x", &cas, 6), [6; 6]);
}

#[test]
fn half_atomics_leave_the_other_half() {
    let code = [
        ldi(4, OUT + 0x804),
        ldi(5, -1),
        st(5, 4, -4),
        Op::AmoAddw { dst: r(6), addr: r(4), value: r(0) }.into(),
        ld(5, 4, -4),
        st(5, 7, 0),
    ];
    // -1 + 0 + 1 + 2 + 3 in the upper half.
    assert_eq!(outputs("8w16/8/4/1+x", &code, 1), [0x5_ffff_ffff]);
    let code = [
        ldi(4, OUT + 0x800),
        ldi(5, -2),
        st(5, 4, 0),
        Op::AmoMaxw { dst: r(6), addr: r(4), value: r(0) }.into(),
        st(6, 7, 0),
    ];
    assert_eq!(outputs("8w16/8/3/1+x", &code, 3), [0xffff_fffe, 0, 1]);
}

#[test]
fn clones_happen_in_lane_order() {
    let code = [
        Op::Addi { dst: r(4), src: r(0), imm: 1 }.into(),
        // Only lanes 0 to 2 have a next lane to clone to.
        Op::Subi { dst: r(5), src: r(0), imm: 3 }.into(),
        Op::Rtop { dst: p(1), src: r(5) }.into(),
        on(1, Op::Split {}),
        on(1, Op::Jmpi { rel: 4 }),
        Op::Jmpi { rel: 4 }.into(),
        Op::Clone { lane: r(4) }.into(),
        Op::Join {}.into(),
        Op::Tid { dst: r(6) }.into(),
        Op::Muli { dst: r(6), src: r(6), imm: 4 }.into(),
        st(0, 6, OUT),
    ];
    // Lane 1 has become lane 0, target included, when its turn comes.
    assert_eq!(outputs("4w16/8/4/1+x", &code, 4), [0, 0, 2, 2]);
}

#[test]
fn control_registers() {
    let csr = |index| Op::Csr { dst: r(3), index }.into();
    let read = |arch: &str, index| outputs(arch, &[csr(index), st(3, 7, 0)], 2);
    assert_eq!(read("4w16/8/33/5+x", 0), [0, 1]);
    assert_eq!(read("4w16/8/33/5+x", 1), [0, 0]);
    assert_eq!(read("4w16/8/33/5+x", 3), [33, 33]);
    assert_eq!(read("4w16/8/33/5+x", 4), [5, 5]);
    assert_eq!(read("4w16/8/33/5+x", 5), [1, 1]);
    // The five instructions of the prelude.
    assert_eq!(read("4w16/8/33/5+x", 6), [5, 5]);
    assert_eq!(read("4w16/8/33/5+x", 8), [0xffff_ffff, 0xffff_ffff]);
    assert_eq!(read("4w16/8/33/5+x", 9), [1, 1]);
    assert_eq!(read("8w16/8/33/5+x", 8), [0x1_ffff_ffff, 0x1_ffff_ffff]);
    assert_eq!(read("8w16/8/33/5+x", 9), [0, 0]);
}

#[test]
fn code_at_odd_addresses_runs() {
    // A jump into the middle of words: the code after it lies one byte further.
    for arch in ["4w16/8/4/1+x", "4b16/8/4/1+x", "8w16/8/4/1+x"] {
        let arch: ArchId = arch.parse().unwrap();
        let memory = Memory::new(arch.word(), MEMORY).unwrap();
        memory.write(0, &assemble(arch, &[Op::Jmpi { rel: 0x101 }.into()])).unwrap();
        let start = assemble(arch, &[Op::Jmpi { rel: 0 }.into()]).len() as u64 + 0x101;
        let code = [ldi(3, 77), ldi(4, OUT), st(3, 4, 0), halt()];
        memory.write(start, &assemble(arch, &code)).unwrap();
        let run = run_in(arch, memory, |_| {});
        assert_eq!((run.trap.clone(), run.word(OUT as u64)), (None, 77), "{arch}");
    }
}

#[test]
fn cores_share_memory_and_nothing_else() {
    // Each core adds its number to a sum and prints a letter.
    let code = [
        Op::Andi { dst: r(3), src: r(0), imm: 0xff }.into(),
        ldi(4, OUT),
        Op::AmoAdd { dst: r(5), addr: r(4), value: r(3) }.into(),
        Op::Addi { dst: r(3), src: r(3), imm: 65 }.into(),
        ldi(4, 1),
        Op::Shli { dst: r(4), src: r(4), imm: 31 }.into(),
        st(3, 4, 0),
        halt(),
    ];
    let mut results = Vec::new();
    for threads in 1..4 {
        let run = run("4w16/8/4/2+x", &code, |config| {
            config.cores = 7;
            config.host_threads = NonZeroUsize::new(threads);
        });
        assert_eq!((run.trap.clone(), run.word(OUT as u64)), (None, 21));
        assert_eq!(run.console, b"ABCDEFG");
        assert_eq!(run.stats.cores.len(), 7);
        results.push(run.stats);
    }
    assert!(results.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn a_core_that_waits_for_another_gets_its_turn() {
    // Core 0 spins until core 1 stores; both on one host thread.
    let code = [
        Op::Csr { dst: r(3), index: 2 }.into(),
        Op::Rtop { dst: p(1), src: r(3) }.into(),
        ldi(4, OUT),
        on(1, Op::Jmpi { rel: 12 }),
        ld(5, 4, 0),
        Op::Iszero { dst: p(2), src: r(5) }.into(),
        on(2, Op::Jmpi { rel: -12 }),
        st(4, 4, 0),
        halt(),
    ];
    let run = run("4w16/8/1/1+x", &code, |config| {
        config.cores = 2;
        config.host_threads = Some(NonZeroUsize::MIN);
        config.fuel = Some(10_000_000);
    });
    assert_eq!(run.trap, None);
}

#[test]
fn warps_meet_at_barriers_under_every_schedule() {
    // Each of four warps adds 1 before the barrier and stores the sum after it.
    let code = [
        ldi(3, 16),
        ldi(4, 1),
        Op::Wspawn { dst: r(5), pc: r(3), src: r(4) }.into(),
        // The spawned warp starts here too, and spawns the next while there are fewer than four.
        Op::Nop {}.into(),
        Op::Csr { dst: r(6), index: 1 }.into(),
        Op::Rtop { dst: p(1), src: r(6) }.into(),
        Op::Subi { dst: r(8), src: r(6), imm: 3 }.into(),
        Op::Rtop { dst: p(2), src: r(8) }.into(),
        Op::Andp { dst: p(1), a: p(1), b: p(2) }.into(),
        ldi(3, 16),
        on(1, Op::Wspawn { dst: r(5), pc: r(3), src: r(4) }),
        ldi(4, OUT),
        ldi(9, 1),
        Op::AmoAdd { dst: r(10), addr: r(4), value: r(9) }.into(),
        ldi(9, 4),
        Op::Bar { id: r(9), warps: r(9) }.into(),
        ld(10, 4, 0),
        Op::Muli { dst: r(6), src: r(6), imm: 4 }.into(),
        Op::Add { dst: r(6), a: r(6), b: r(4) }.into(),
        st(10, 6, 4),
        halt(),
    ];
    let quantum = |n| Schedule::Quantum(NonZeroU32::new(n).unwrap());
    for schedule in [Schedule::Step, quantum(1), quantum(3), quantum(1000)] {
        let run = run("4w16/8/2/4+x", &code, |config| config.schedule = schedule);
        assert_eq!(run.trap, None);
        let sums: Vec<u64> = (0..5).map(|i| run.word(OUT as u64 + 4 * i)).collect();
        assert_eq!(sums, [4; 5], "{schedule:?}");
    }
}

#[test]
fn the_console_reads_its_input() {
    let code = [
        ldi(4, 1),
        Op::Shli { dst: r(4), src: r(4), imm: 31 }.into(),
        ld(5, 4, 0),
        Op::Addi { dst: r(5), src: r(5), imm: 1 }.into(),
        st(5, 4, 0),
        Op::Rtop { dst: p(1), src: r(5) }.into(),
        Op::Subi { dst: r(5), src: r(5), imm: 1 }.into(),
        Op::Rtop { dst: p(1), src: r(5) }.into(),
        on(1, Op::Jmpi { rel: -28 }),
        halt(),
    ];
    let run = run("4w16/8/2/1", &code, |config| config.input = b"HAL".to_vec());
    assert_eq!((run.trap, &run.console[..]), (None, &b"IBM\x01"[..]));
}

/// Cores of which each uses one of its 64 warps: those that never start must take no room. With all
/// of them the registers alone would take 40 GB.
#[test]
fn cores_take_room_for_the_warps_that_they_start() {
    let cores = 20_000;
    let idle = run("8w64/64/64/64", &[halt()], |config| config.cores = cores);
    assert_eq!((idle.trap, idle.stats.issued()), (None, cores.into()));
    let first = &idle.stats.cores[0];
    assert_eq!((idle.stats.cores.len(), first.warps.len()), (cores.into(), 64));
}

/// More threads than any host starts: the cores share those that there are.
#[test]
fn any_number_of_host_threads_may_be_asked_for() {
    let count = Op::AmoAdd { dst: r(2), addr: r(0), value: r(1) }.into();
    let code = [ldi(0, OUT), ldi(1, 1), count, halt()];
    let cores = 3000;
    let met = run("4w8/8/1/1+x", &code, |config| {
        config.cores = cores;
        config.host_threads = Some(NonZeroUsize::MAX);
    });
    assert_eq!((met.word(OUT.cast_unsigned()), met.trap), (cores.into(), None));
}

// The host's memory.

#[test]
fn registers_beyond_the_limit_are_an_error() {
    let arch: ArchId = "8w64/64/64/64".parse().unwrap();
    let memory = Memory::new(arch.word(), MEMORY).unwrap();
    let config =
        |cores, state_limit| MachineConfig { cores, state_limit, ..MachineConfig::new(arch) };
    let made = Machine::new(config(1, 1 << 20), &memory);
    assert!(made.is_ok());
    let error = Machine::new(config(u16::MAX, 1 << 30), &memory).unwrap_err();
    let MachineError::TooLarge { given, limit } = error else { panic!("{error}") };
    assert!(given > 65_535 * 32_768 && limit == 1 << 30, "{given}");
}

/// Warps and stacks of a core share its part of the limit; whoever wants more traps.
#[test]
fn warps_and_stacks_beyond_the_limit_trap() {
    let spawn = [
        ldi(3, 0),
        Op::Wspawn { dst: r(5), pc: r(3), src: r(3) }.into(),
        Op::Jmpi { rel: -24 }.into(),
    ];
    let limit = 10 << 20;
    let warps = run("8w64/64/64/64", &spawn, |config| {
        config.cores = 2;
        config.state_limit = 2 << 20;
    });
    let share = 1 << 20;
    assert_eq!(*warps.kind(), TrapKind::OutOfHostMemory { limit: share });
    let started = warps.stats.cores[0].warps.iter().filter(|warp| warp.steps > 0).count();
    assert!(started as u64 * 33_000 < share, "{started} warps");

    let split = [Op::Split {}.into(), Op::Jmpi { rel: -16 }.into()];
    let deep = run("8w64/64/64/64", &split, |config| {
        config.divergence_depth = usize::MAX;
        config.state_limit = limit;
        config.fuel = None;
    });
    assert_eq!(*deep.kind(), TrapKind::OutOfHostMemory { limit });
    assert!(deep.stats.divergence_high_water() as u64 * 24 < limit);
}

/// One instruction on each of many pages: decoded code must not pile up.
#[test]
fn decoded_code_is_bounded_and_forgotten_code_is_decoded_anew() {
    let arch: ArchId = "4w16/8/1/1".parse().unwrap();
    let pages = 256_u64;
    let memory = Memory::new(arch.word(), pages * 4096).unwrap();
    // From the start of each page to the next, from the last back to 0 until %r1 is 3.
    for page in 1..pages - 1 {
        memory.write(page * 4096, &assemble(arch, &[Op::Jmpi { rel: 4092 }.into()])).unwrap();
    }
    let start = [ldi(2, 0), Op::Jmpi { rel: 4096 - 8 }.into()];
    memory.write(0, &assemble(arch, &start)).unwrap();
    let end = [
        Op::Addi { dst: r(1), src: r(1), imm: 1 }.into(),
        Op::Subi { dst: r(3), src: r(1), imm: 3 }.into(),
        Op::Rtop { dst: p(1), src: r(3) }.into(),
        on(1, Op::Jmpr { target: r(2) }),
        halt(),
    ];
    memory.write((pages - 1) * 4096, &assemble(arch, &end)).unwrap();
    // Room for a few pages of decoded code only.
    let run = run_in(arch, memory, |config| config.state_limit = 300_000);
    assert_eq!((run.trap, run.stats.issued()), (None, 3 * (pages - 2 + 2 + 4) + 1));
}

#[test]
fn a_machine_that_is_reset_does_the_same_again() {
    let arch: ArchId = "4w16/8/4/2+x".parse().unwrap();
    let code = [
        ldi(3, 8),
        Op::Wspawn { dst: r(5), pc: r(3), src: r(3) }.into(),
        ldi(1, 4),
        Op::Jalis { link: r(2), lanes: r(1), rel: 0 }.into(),
        Op::Split {}.into(),
        Op::Notp { dst: p(2), src: p(2) }.into(),
        on(2, Op::Addi { dst: r(4), src: r(4), imm: 1 }),
        Op::Skep { entry: r(3) }.into(),
        halt(),
    ];
    let memory = Memory::new(arch.word(), MEMORY).unwrap();
    memory.write(0, &assemble(arch, &code)).unwrap();
    let mut machine = Machine::new(MachineConfig::new(arch), &memory).unwrap();
    let first = machine.run().map_err(|trap| trap.kind);
    let look = |machine: &Machine<'_>| {
        let registers = |warp: harp_emu::WarpView<'_>| {
            (0..4).map(|lane| warp.gpr(r(4), lane)).collect::<Vec<_>>()
        };
        let warps = machine
            .warps()
            .map(|(_, number, warp)| (number, warp.pc(), registers(warp), warp.stats()));
        warps.collect::<Vec<_>>()
    };
    let after = look(&machine);
    machine.reset();
    assert_eq!(machine.stats().issued(), 0);
    assert_eq!((machine.interrupt_entry(0), machine.warps().count()), (None, 1));
    assert_eq!(machine.run().map_err(|trap| trap.kind), first);
    assert_eq!(look(&machine), after);
}

/// Two warps that race for a word: with some seed the second wins, and a seed means the same always.
#[test]
fn seeds_shake_out_races_and_can_be_replayed() {
    // Each warp increments a word a hundred times without an atomic operation, on each core.
    let code = [
        ldi(3, 8),
        Op::Wspawn { dst: r(5), pc: r(3), src: r(3) }.into(),
        ldi(4, OUT),
        ldi(6, 100),
        ld(5, 4, 0),
        Op::Addi { dst: r(5), src: r(5), imm: 1 }.into(),
        st(5, 4, 0),
        Op::Subi { dst: r(6), src: r(6), imm: 1 }.into(),
        Op::Rtop { dst: p(1), src: r(6) }.into(),
        on(1, Op::Jmpi { rel: -24 }),
        halt(),
    ];
    let sum = |seed| {
        let run = run("4w16/8/1/2", &code, |config| {
            config.schedule = Schedule::Seeded(seed);
            config.spawn = SpawnPolicy::Original;
            config.cores = 2;
        });
        assert_eq!(run.trap, None);
        run.word(OUT as u64)
    };
    let sums: Vec<_> = (0..20).map(sum).collect();
    assert!(sums.iter().any(|&sum| sum != sums[0]), "{sums:?}");
    assert!(sums.iter().all(|&sum| (100..=400).contains(&sum)), "{sums:?}");
    assert_eq!((0..20).map(sum).collect::<Vec<_>>(), sums);
}

#[test]
fn the_host_may_change_code_between_steps() {
    let arch: ArchId = "4w16/8/1/1".parse().unwrap();
    let memory = Memory::new(arch.word(), MEMORY).unwrap();
    memory.write(0, &assemble(arch, &[ldi(1, 1), ldi(2, 2), halt()])).unwrap();
    let mut machine = Machine::new(MachineConfig::new(arch), &memory).unwrap();
    machine.run().unwrap();
    machine.reset();
    assert!(machine.step().unwrap());
    memory.write(4, &assemble(arch, &[ldi(2, 5)])).unwrap();
    assert!(machine.step().unwrap());
    assert_eq!(machine.warp(0, 0).unwrap().gpr(r(2), 0), Some(5));
    machine.run().unwrap();
    machine.reset();
    memory.write(4, &assemble(arch, &[ldi(2, 7)])).unwrap();
    machine.run().unwrap();
    assert_eq!(machine.warp(0, 0).unwrap().gpr(r(2), 0), Some(7));
}
