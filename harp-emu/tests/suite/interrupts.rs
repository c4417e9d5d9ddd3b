//! Interrupts: what handlers find, what `reti` restores, what happens while interrupts are off.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use harp_emu::{
    Console, DivergentBarriers, Interrupt, Interrupts, Machine, MachineConfig, Memory, PageAccess,
    Path, Schedule, Translation, TrapKind,
};
use harp_isa::{ArchId, Opcode, WordSize};

use crate::common::*;

const ARCH: &str = "4w16/8/4/2+x";

/// Begins with a jump over the handler, which leaves number and address at `OUT` and goes to `back`.
/// The program is at `main`.
const HANDLER: &str = "
    .def OUT 0x1000
    .perm x
            ldi %r7, handler
            skep %r7
            jmpi main
    handler:
            ldi %r9, OUT
            ld %r8, %r9, #8
            addi %r8, %r8, #1
            st %r8, %r9, #8
            st %r0, %r9, #0
            st %r1, %r9, #4
            jmpi back
";

fn guest(config: &mut MachineConfig) {
    config.interrupts = Interrupts::Guest;
    config.divergent_barriers = DivergentBarriers::Allow;
    config.fuel = Some(2000);
}

/// Runs on both paths and under several schedules, which agree.
fn run_text(arch: &str, text: &str, adjust: impl Fn(&mut MachineConfig)) -> Run {
    let arch: ArchId = arch.parse().unwrap();
    let image = assemble_text(arch, text);
    let run = |path, schedule| {
        let memory = Memory::new(arch.word(), MEMORY).unwrap();
        memory.write(0, &image).unwrap();
        run_in(arch, memory, |config| {
            guest(config);
            adjust(config);
            config.path = path;
            config.schedule = schedule;
        })
    };
    let first = run(Path::Precise, Schedule::default());
    for path in [Path::Fast, Path::Precise] {
        for schedule in [Schedule::Step, Schedule::default(), Schedule::Seeded(5)] {
            let other = run(path, schedule);
            assert_eq!(
                (&first.trap, &first.console),
                (&other.trap, &other.console),
                "{schedule:?}"
            );
            let counts = |run: &Run| run.stats.warps().map(|(_, _, w)| *w).collect::<Vec<_>>();
            assert_eq!(counts(&first), counts(&other), "{path:?} {schedule:?}");
        }
    }
    first
}

/// A program behind the usual handler, which returns.
fn handled(main: &str) -> Run {
    run_text(ARCH, &format!("{HANDLER} back: reti\n main: {main}"), |_| {})
}

/// Number, address and count that the handler left.
fn seen(run: &Run) -> (u64, u64, u64) {
    let at = |offset| run.word(OUT as u64 + offset);
    (at(0), at(4), at(8))
}

#[test]
fn every_number_arrives_and_the_program_goes_on() {
    // (code before, faulting instruction, number); the marker `%r6` is stored afterwards.
    let cases = [
        ("", "trap", 0),
        ("ldi %r2, #0", "div %r3, %r3, %r2", 5),
        ("", ".perm rx\n .word 0xffffffff\n .perm x", 3),
    ];
    for (before, fault, number) in cases {
        let run =
            handled(&format!("{before}\n ldi %r6, #7\n {fault}\n st %r6, %r5, #0x1800\n halt"));
        assert_eq!(run.trap, None, "{fault}");
        assert_eq!((seen(&run).0, seen(&run).2, run.word(0x1800)), (number, 1, 7), "{fault}");
    }
}

#[test]
fn privileged_instructions_in_user_mode_are_skipped_by_the_handler() {
    let instructions = [
        "di",
        "ei",
        "tlbadd %r1, %r1, %r1",
        "tlbflush",
        "tlbrm %r1",
        "jmpru %r1",
        "skep %r1",
        "reti",
        // Even if no lane executes it.
        "@p1 ? di",
    ];
    for instruction in instructions {
        let main = format!(
            "ldi %r2, user\n jmpru %r2\n user: {instruction}\n ldi %r3, #5\n st %r3, %r5, #0x1800\n \
             halt"
        );
        let run = handled(&main);
        assert_eq!((run.trap.clone(), run.word(0x1800)), (None, 5), "{instruction}");
        assert_eq!((seen(&run).0, seen(&run).2), (3, 1), "{instruction}");
        // A privilege violation is a step and no instruction of any lane.
        let legal = handled(&main.replace(&format!("user: {instruction}"), "user: trap"));
        assert_eq!(run.stats.issued(), legal.stats.issued());
        assert_eq!(run.stats.insts() + 1, legal.stats.insts());
    }
}

#[test]
fn divergent_branches_come_back_to_the_branch() {
    // The handler makes the lanes agree: it clears the predicate in the saved lane, which is 0. Lanes
    // 1 to 3 have it false.
    let text = format!(
        "{HANDLER}
    back:   ldi %r2, body
            ldi %r3, #0x3000
            ld %r4, %r3, #0
            rtop @p2, %r4
            notp @p3, @p2
            ldi %r4, #1
            st %r4, %r3, #0
      @p2 ? halt
            reti
    main:   ldi %r1, #4
            jalis %r2, %r1, body
    body:   tid %r0
            iszero @p1, %r0
      @p1 ? jmpi never
            trap
    never:  halt"
    );
    let run = run_text(ARCH, &text, |_| {});
    assert_eq!(run.trap, None);
    // Interrupted twice by the same branch; the second time the handler gives up.
    assert_eq!(seen(&run), (4, seen(&run).1, 2));
}

#[test]
fn handlers_run_in_lane_0_of_supervisor_mode_with_interrupts_off() {
    let arch: ArchId = ARCH.parse().unwrap();
    let text = format!(
        "{HANDLER}
    back:   halt
    main:   ldi %r2, user
            jmpru %r2
    user:   ldi %r1, #4
            jalis %r2, %r1, body
    body:   ldi %r0, #55
            ldi %r3, #0
            divi %r3, %r3, #0"
    );
    let memory = Memory::new(arch.word(), MEMORY).unwrap();
    memory.write(0, &assemble_text(arch, &text)).unwrap();
    let mut config = MachineConfig::new(arch);
    guest(&mut config);
    let mut machine = Machine::new(config, &memory).unwrap();
    let entry = 12;
    assert_eq!(machine.run_until(entry).unwrap(), Some((0, 0)));
    assert_eq!(machine.interrupt_entry(0), Some(entry));
    let warp = machine.warp(0, 0).unwrap();
    assert_eq!((warp.active(), warp.active_count()), (1, 1));
    assert!(warp.is_supervisor() && !warp.interrupts_enabled());
    assert_eq!((warp.gpr(r(0), 0), warp.gpr(r(0), 1)), (Some(5), Some(55)));
    let saved = warp.saved().unwrap();
    assert_eq!((saved.active, saved.active_count, saved.gprs[0]), (0b1111, 4, 55));
    assert!(!saved.is_supervisor && saved.interrupts_enabled);
    // Behind the division.
    assert_eq!(saved.pc, assemble_text(arch, &text).len() as u64);
}

#[test]
fn trap_keeps_the_active_count_and_sets_all_masks() {
    // Lanes 2 and 3 trap inside a split: the handler runs in all four lanes.
    let text = format!(
        "{HANDLER}
    back:   tid %r3
            muli %r3, %r3, #4
            ldi %r4, #9
            st %r4, %r3, #0x1800
            csr %r3, #8
            ldi %r4, #0
            st %r3, %r4, #0x1900
            reti
    main:   ldi %r1, #4
            jalis %r2, %r1, body
    body:   tid %r0
            subi %r1, %r0, #2
            isneg @p1, %r1
            notp @p2, @p1
      @p2 ? split
      @p2 ? jmpi odd
            jmpi end
    odd:    trap
            csr %r3, #8
            ldi %r4, #0
            st %r3, %r4, #0x1904
    end:    join
            halt"
    );
    let run = run_text(ARCH, &text, |_| {});
    assert_eq!(run.trap, None);
    let words: Vec<_> = (0..4).map(|lane| run.word(0x1800 + 4 * lane)).collect();
    assert_eq!(words, [9; 4]);
    // In the handler all lanes are active; afterwards those of the mask again.
    assert_eq!((run.word(0x1900), run.word(0x1904)), (0b1111, 0b1100));
}

#[test]
fn reti_restores_lane_0_and_leaves_the_others() {
    let text = format!(
        "{HANDLER}
    back:   ldi %r5, #1
            ldi %r10, #1
            rtop @p5, %r10
            ldi %r1, #4
            jalis %r2, %r1, wide
    wide:   ldi %r11, #2
            reti
    main:   ldi %r1, #4
            jalis %r2, %r1, body
    body:   ldi %r5, #77
            ldi %r10, #78
            ldi %r11, #79
            ldi %r12, #0
            trap
            tid %r0
            muli %r1, %r0, #16
            st %r5, %r1, #0x1800
            st %r10, %r1, #0x1804
            st %r11, %r1, #0x1808
      @p5 ? ldi %r12, #1
            st %r12, %r1, #0x180c
            halt"
    );
    let run = run_text(ARCH, &text, |_| {});
    assert_eq!(run.trap, None);
    let lane = |lane: u64| (0..4).map(move |i| 0x1800 + 16 * lane + 4 * i);
    let words = |number| lane(number).map(|at| run.word(at)).collect::<Vec<_>>();
    assert_eq!(words(0), [77, 78, 79, 0]);
    // `trap` has left four lanes active.
    assert_eq!(words(1), [1, 1, 2, 1]);
}

#[test]
fn reti_without_lane_0_does_nothing() {
    let text = format!(
        "{HANDLER}
    back:   tid %r3
            rtop @p1, %r3
      @p1 ? split
      @p1 ? jmpi others
            jmpi all
    others: reti
            ldi %r4, #3
            ldi %r5, #0
            st %r4, %r5, #0x1800
    all:    join
            reti
    main:   ldi %r1, #4
            jalis %r2, %r1, body
    body:   trap
            halt"
    );
    let run = run_text(ARCH, &text, |_| {});
    assert_eq!((run.trap.clone(), run.word(0x1800)), (None, 3));
}

#[test]
fn a_nested_interrupt_replaces_what_was_saved() {
    // The handler enables interrupts and traps itself, once. The inner `reti` comes back behind the
    // inner trap; the outer one goes there again, for the outer state is gone.
    let text = format!(
        "{HANDLER}
    back:   ldi %r3, #0x3000
            ld %r4, %r3, #0
            addi %r5, %r4, #1
            st %r5, %r3, #0
            rtop @p1, %r4
      @p1 ? reti
            ei
            trap
            ldi %r3, #0x3000
            ld %r4, %r3, #4
            addi %r4, %r4, #1
            st %r4, %r3, #4
            subi %r5, %r4, #2
            isneg @p1, %r5
      @p1 ? reti
            halt
    main:   trap
            ldi %r3, #0x3000
            st %r3, %r3, #8
            halt"
    );
    let run = run_text(ARCH, &text, |_| {});
    assert_eq!(run.trap, None);
    assert_eq!((run.word(0x3000), run.word(0x3004), run.word(0x3008)), (2, 2, 0));
}

#[test]
fn while_interrupts_are_off() {
    // `trap` does nothing, invalid and privileged instructions and divisions are skipped.
    let skipped = [
        ("", "trap"),
        ("ldi %r2, #0", "div %r3, %r3, %r2"),
        ("ldi %r3, #8\n ldi %r2, #0", "mod %r3, %r3, %r2"),
        ("", ".perm rx\n .word 0xffffffff\n .perm x"),
        ("ldi %r2, user\n jmpru %r2\n user:", "di"),
    ];
    for (before, fault) in skipped {
        let run = handled(&format!(
            "di\n {before}\n {fault}\n ldi %r6, #7\n st %r6, %r5, #0x1800\n halt"
        ));
        assert_eq!((run.trap.clone(), seen(&run).2, run.word(0x1800)), (None, 0, 7), "{fault}");
    }
    // What would have to be repeated stops the run.
    let run = handled(
        "di\n ldi %r1, #4\n jalis %r2, %r1, body\n body: tid %r0\n rtop @p1, %r0\n @p1 ? jmpi body",
    );
    let cause = Box::new(TrapKind::DivergentBranch { opcode: Opcode::Jmpi });
    assert_eq!(*run.kind(), TrapKind::DoubleFault { interrupt: Interrupt::DivergentBranch, cause });
    assert_eq!(run.trap.unwrap().lanes, 0b1110);
}

#[test]
fn interrupts_without_a_handler_stop_the_run() {
    for (text, interrupt) in [
        (".perm x\n trap", Interrupt::Trap),
        (".perm x\n div %r2, %r2, %r2", Interrupt::DivideByZero),
        (".perm x\n .word 0xffffffff", Interrupt::Invalid),
    ] {
        let run = run_text(ARCH, text, |_| {});
        let TrapKind::NoHandler { interrupt: of, cause } = run.kind() else {
            panic!("{:?}", run.kind());
        };
        assert_eq!((*of, cause.interrupt()), (interrupt, Some(interrupt)));
        // The message says what it was about.
        assert!(run.kind().to_string().ends_with(&cause.to_string()));
        assert_eq!(run.trap.unwrap().pc, 0);
    }
}

#[test]
fn what_no_guest_handles_stops_the_run() {
    for (text, kind) in [
        ("join", TrapKind::StackUnderflow),
        ("ldi %r2, #99\n clone %r2", TrapKind::NoSuchLane { given: 99, limit: 4 }),
        ("csr %r2, #7", TrapKind::BadIndex { opcode: Opcode::Csr, given: 7 }),
        (
            "ldi %r2, #0x4000\n ld %r3, %r2, #0",
            TrapKind::BadAddress { address: 0x4000, store: false },
        ),
        ("ldi %r2, #2\n amoadd %r3, %r2, %r2", TrapKind::Misaligned { address: 2, size: 4 }),
        ("loop: jmpi loop", TrapKind::OutOfFuel { limit: 2000 }),
    ] {
        let run = handled(text);
        assert_eq!(*run.kind(), kind);
        assert_eq!(seen(&run).2, 0);
    }
    // An endless sequence of invalid instructions needs fuel as any other.
    let text = format!(
        "{HANDLER} back: reti\n main: jmpi main2\n main2: .perm rx\n again: .word -1 -1\n .perm x\n jmpi again"
    );
    let run = run_text(ARCH, &text, |_| {});
    assert_eq!(*run.kind(), TrapKind::OutOfFuel { limit: 2000 });
}

#[test]
fn spawned_warps_have_interrupts_of_their_own() {
    // Warp 1 runs in user mode with interrupts on, warp 0 has them off.
    let text = format!(
        "{HANDLER} back: reti
    main:   di
            ldi %r2, worker
            wspawn %r3, %r2, %r2
            trap
            halt
    worker: divi %r3, %r3, #0
            halt"
    );
    let run = run_text(ARCH, &text, |_| {});
    assert_eq!((run.trap.clone(), seen(&run).0, seen(&run).2), (None, 5, 1));
}

#[test]
fn stop_policy_ends_in_typed_traps() {
    let stop = |config: &mut MachineConfig| config.interrupts = Interrupts::Trap;
    let text = format!("{HANDLER} back: reti\n main: ei\n trap");
    assert_eq!(*run_text(ARCH, &text, stop).kind(), TrapKind::GuestTrap);
    let text = format!("{HANDLER} back: reti\n main: di\n divi %r3, %r3, #0");
    assert_eq!(*run_text(ARCH, &text, stop).kind(), TrapKind::DivideByZero);
}

// Console input.

/// Main counts up in `%r10` until `%r5` bytes have come; the handler stores them from 0x1800 on.
const READER: &str = "
    .perm x
            ldi %r4, #1
            shli %r4, %r4, #31
            ldi %r9, #0x3000
            ldi %r7, handler
            skep %r7
    wait:   ld %r10, %r9, #0
            subi %r10, %r10, #3
            rtop @p1, %r10
      @p1 ? jmpi wait
            halt
    handler:
            st %r0, %r9, #4
            ld %r10, %r9, #0
            addi %r11, %r10, #1
            st %r11, %r9, #0
            ld %r11, %r4, #0
            muli %r10, %r10, #4
            st %r11, %r10, #0x1800
            reti
";

#[test]
fn console_input_interrupts_warp_0() {
    let run = run_text(ARCH, READER, |config| config.input = b"abc".to_vec());
    assert_eq!(run.trap, None);
    let bytes: Vec<_> = (0..3).map(|i| run.word(0x1800 + 4 * i)).collect();
    assert_eq!((bytes, run.word(0x3004)), (vec![97, 98, 99], 8));
    // The first comes right behind `skep`, the others right behind each `reti`: main loads once.
    assert_eq!(run.stats.loads(), 3 * 2 + 1);
    // Launches have no handlers: the bytes wait.
    let stop = |config: &mut MachineConfig| {
        config.interrupts = Interrupts::Trap;
        config.input = b"abc".to_vec();
    };
    assert_eq!(*run_text(ARCH, READER, stop).kind(), TrapKind::OutOfFuel { limit: 2000 });
    // So they do while interrupts are off.
    let off = READER.replace("skep %r7", "di\n skep %r7");
    let run = run_text(ARCH, &off, |config| config.input = b"abc".to_vec());
    assert_eq!(*run.kind(), TrapKind::OutOfFuel { limit: 2000 });
    assert_eq!(run.word(0x3000), 0);
}

#[test]
fn only_warp_0_of_core_0_gets_input() {
    // Warp 0 keeps interrupts off; warp 1, which has them on, never sees one, nor does core 1.
    let text = format!(
        "{HANDLER} back: reti
    main:   csr %r2, #2
            rtop @p1, %r2
      @p1 ? ei
      @p1 ? jmpi worker
            ldi %r2, worker
            wspawn %r3, %r2, %r2
            halt
    worker: ldi %r3, #50
    count:  subi %r3, %r3, #1
            rtop @p1, %r3
      @p1 ? jmpi count
            halt"
    )
    .replace("skep", "di\n skep");
    let run = run_text(ARCH, &text, |config| {
        config.input = b"abc".to_vec();
        config.cores = 2;
    });
    assert_eq!((run.trap.clone(), seen(&run).2), (None, 0));
}

/// A console that keeps what it gets and has bytes to give, one each few times it is asked.
#[derive(Clone, Default)]
struct Terminal {
    output: Arc<Mutex<Vec<u8>>>,
    input: Arc<Mutex<VecDeque<Option<u8>>>>,
}

impl Console for Terminal {
    fn write(&mut self, byte: u8) {
        self.output.lock().unwrap().push(byte);
    }

    fn poll(&mut self) -> Option<u8> {
        self.input.lock().unwrap().pop_front().flatten()
    }
}

#[test]
fn a_console_of_its_own_gets_and_gives_bytes() {
    let text = format!("{READER} ").replace("reti", "st %r11, %r4, #0\n reti");
    for schedule in [Schedule::Step, Schedule::default()] {
        let memory = Memory::new(WordSize::Four, MEMORY).unwrap();
        let arch: ArchId = ARCH.parse().unwrap();
        memory.write(0, &assemble_text(arch, &text)).unwrap();
        let mut config =
            MachineConfig { schedule, input: b"a".to_vec(), ..MachineConfig::new(arch) };
        guest(&mut config);
        config.fuel = Some(100_000);
        let mut machine = Machine::new(config, &memory).unwrap();
        let terminal = Terminal::default();
        *terminal.input.lock().unwrap() = [None, None, Some(b'b'), None, Some(b'c')].into();
        machine.set_console(terminal.clone());
        machine.run().unwrap();
        assert_eq!(
            (terminal.output.lock().unwrap().as_slice(), machine.console().len()),
            (&b"abc"[..], 0)
        );
        // It stays over a reset; the input given in advance comes again.
        *terminal.input.lock().unwrap() = [Some(b'd'), Some(b'e')].into();
        memory.write(0x3000, &[0; 8]).unwrap();
        machine.reset();
        machine.run().unwrap();
        assert_eq!(terminal.output.lock().unwrap().as_slice(), b"abcade");
    }
}

#[test]
fn polling_with_loads_needs_no_handler() {
    let text = ".perm x
            ldi %r4, #1
            shli %r4, %r4, #31
    next:   ld %r5, %r4, #0
            rtop @p1, %r5
      @p1 ? st %r5, %r4, #0
      @p1 ? jmpi next
            halt";
    let run = run_text(ARCH, text, |config| config.input = b"hello".to_vec());
    assert_eq!((run.trap, &run.console[..]), (None, &b"hello"[..]));
}

#[test]
fn translation_is_of_no_concern_without_a_table() {
    // `tlbadd` and its likes keep the table, which physical addresses do not need.
    let run = handled(
        "ldi %r2, #63\n tlbadd %r2, %r2, %r2\n tlbflush\n tlbrm %r2\n st %r2, %r5, #0x1800\n halt",
    );
    assert_eq!((run.trap.clone(), run.word(0x1800)), (None, 63));
    let with = run_text(ARCH, ".perm x\n tlbflush\n halt", |config| {
        config.translation = Translation::Tlb;
    });
    let cause = Box::new(TrapKind::PageMiss { address: 4, access: PageAccess::Fetch });
    assert_eq!(*with.kind(), TrapKind::NoHandler { interrupt: Interrupt::PageMiss, cause });
}
