//! Address translation: mappings, permissions, faults, accesses that cross pages.

use harp_emu::{
    Interrupt, Interrupts, Machine, MachineConfig, Memory, PageAccess, PageMapping, Path, Schedule,
    Translation, TrapKind,
};
use harp_isa::{ArchId, Instruction, Op};

use crate::common::*;

const ARCH: &str = "8w16/8/4/2+x";
// Permissions of supervisor and user mode.
const KX: i64 = 32;
const KW: i64 = 16;
const KR: i64 = 8;
const UX: i64 = 4;
const UW: i64 = 2;
const UR: i64 = 1;

fn paged(config: &mut MachineConfig) {
    config.translation = Translation::Tlb;
    config.fuel = Some(5000);
}

/// Maps the page of `virt` to that of `phys`; `%r1` to `%r3` are lost.
fn map(virt: i64, phys: i64, flags: i64) -> [Instruction; 4] {
    let add = Op::Tlbadd { virt: r(1), phys: r(2), flags: r(3) };
    [ldi(1, virt), ldi(2, phys), ldi(3, flags), add.into()]
}

/// Runs with pages, on both ways to ask for the precise path, which agree.
fn paged_run(arch: &str, code: &[Instruction]) -> Run {
    let first = run(arch, code, paged);
    let second = run(arch, code, |config| {
        paged(config);
        config.path = Path::Precise;
        config.schedule = Schedule::Step;
    });
    assert_eq!(
        (&first.trap, &first.stats.warps().map(|w| *w.2).collect::<Vec<_>>()),
        (&second.trap, &second.stats.warps().map(|w| *w.2).collect::<Vec<_>>())
    );
    first
}

#[test]
fn page_0_is_mapped_at_reset() {
    let code = [ldi(4, 0xff8), st(4, 4, 0), ld(5, 4, 0), halt()];
    let run = paged_run(ARCH, &code);
    assert_eq!((run.trap.clone(), run.word(0xff8)), (None, 0xff8));
    let outside = paged_run(ARCH, &[ldi(4, 0x1000), ld(5, 4, 0)]);
    assert_eq!(*outside.kind(), TrapKind::PageMiss { address: 0x1000, access: PageAccess::Load });
}

#[test]
fn mappings_move_pages() {
    let mut code = map(0x7012_7000, 0x2fff, KR | KW).to_vec();
    code.extend([ldi(4, 0x7_0123), Op::Shli { dst: r(4), src: r(4), imm: 12 }.into()]);
    code.extend([ldi(5, 77), st(5, 4, 0x4008), halt()]);
    let run = paged_run(ARCH, &code);
    assert_eq!((run.trap.clone(), run.word(0x2008)), (None, 77));
}

#[test]
fn every_permission_counts() {
    let accesses = [
        (Op::Ld { dst: r(5), base: r(4), offset: 0 }, PageAccess::Load, 0b001),
        (Op::St { value: r(5), base: r(4), offset: 0 }, PageAccess::Store, 0b010),
        (Op::AmoAdd { dst: r(5), addr: r(4), value: r(5) }, PageAccess::Atomic, 0b011),
    ];
    for supervisor in [true, false] {
        for (op, access, needs) in accesses {
            for flags in 0..64_i64 {
                let mut code = map(0x2000, 0x3000, flags).to_vec();
                code.push(ldi(4, 0x2000));
                if !supervisor {
                    let target = (code.len() as i64 + 2) * 8;
                    code.extend([ldi(6, target), Op::Jmpru { target: r(6) }.into()]);
                }
                code.extend([op.into(), halt()]);
                let run = paged_run(ARCH, &code);
                let granted = if supervisor { flags >> 3 } else { flags } & 7;
                let expected = (granted & needs != needs).then_some(TrapKind::PagePermission {
                    address: 0x2000,
                    access,
                    supervisor,
                });
                assert_eq!(run.trap.map(|trap| trap.kind), expected, "{access:?} {flags:#b}");
            }
        }
    }
}

#[test]
fn fetches_need_permission_too() {
    for (flags, user) in
        [(KX, false), (KW | KR | UX | UW | UR, false), (UX, true), (63 & !UX, true)]
    {
        let mut code = map(0x2000, 0x1000, flags).to_vec();
        code.push(ldi(4, 0x2000));
        code.push(if user {
            Op::Jmpru { target: r(4) }.into()
        } else {
            Op::Jmpr { target: r(4) }.into()
        });
        let arch: ArchId = ARCH.parse().unwrap();
        let memory = Memory::new(arch.word(), MEMORY).unwrap();
        memory.write(0, &assemble(arch, &code)).unwrap();
        memory.write(0x1000, &assemble(arch, &[halt()])).unwrap();
        let run = run_in(arch, memory, paged);
        let granted = flags == KX || flags == UX;
        let kind = TrapKind::PagePermission {
            address: 0x2000,
            access: PageAccess::Fetch,
            supervisor: !user,
        };
        assert_eq!(run.trap.map(|trap| (trap.kind, trap.pc)), (!granted).then_some((kind, 0x2000)));
        // A fetch that faults is no step.
        assert_eq!(run.stats.issued(), 6 + u64::from(granted));
    }
}

#[test]
fn removed_mappings_are_gone() {
    let mut code = map(0x2000, 0x2000, KR).to_vec();
    code.extend([ldi(4, 0x2fff), Op::Tlbrm { virt: r(4) }.into(), ld(5, 4, 0)]);
    let run = paged_run(ARCH, &code);
    assert_eq!(*run.kind(), TrapKind::PageMiss { address: 0x2fff, access: PageAccess::Load });
    // Without page 0 not even the next instruction is there.
    let run = paged_run(ARCH, &[Op::Tlbflush {}.into(), halt()]);
    assert_eq!(*run.kind(), TrapKind::PageMiss { address: 8, access: PageAccess::Fetch });
}

#[test]
fn each_lane_has_its_page_and_a_fault_changes_nothing() {
    // Lane i stores to page i + 1; pages 1 and 2 are mapped, 3 may be read only, 4 is missing.
    let arch: ArchId = ARCH.parse().unwrap();
    let mut code = map(0x1000, 0x1000, KR | KW).to_vec();
    code.extend(map(0x2000, 0x2000, KR | KW));
    code.extend(map(0x3000, 0x3000, KR));
    code.extend(all_lanes(arch));
    code.extend([
        Op::Tid { dst: r(0) }.into(),
        Op::Addi { dst: r(4), src: r(0), imm: 1 }.into(),
        Op::Shli { dst: r(4), src: r(4), imm: 12 }.into(),
        st(4, 4, 0),
    ]);
    let run = paged_run(ARCH, &code);
    let kind =
        TrapKind::PagePermission { address: 0x3000, access: PageAccess::Store, supervisor: true };
    let trap = run.trap.clone().unwrap();
    assert_eq!((trap.kind, trap.lanes), (kind, 0b0100));
    assert_eq!((run.word(0x1000), run.word(0x2000)), (0, 0));
}

#[test]
fn sub_word_accesses_cross_pages() {
    // Pages 2 and 3 lie in memory the other way round.
    let mut start = map(0x2000, 0x3000, KR | KW).to_vec();
    start.extend(map(0x3000, 0x2000, KR | KW));
    let mut code = start.clone();
    code.extend([
        ldi(4, 0x2ffd),
        ldi(5, 0x1234_5678),
        Op::Stw { value: r(5), base: r(4), offset: 0 }.into(),
        Op::Ldws { dst: r(6), base: r(4), offset: 0 }.into(),
        ldi(7, 0x800),
        st(6, 7, 0),
        halt(),
    ]);
    let run = paged_run(ARCH, &code);
    assert_eq!((run.trap.clone(), run.word(0x800)), (None, 0x1234_5678));
    // Three bytes end the page at 0x3000, one begins that at 0x2000.
    assert_eq!((run.word(0x3ff8) >> 40, run.word(0x2000)), (0x34_5678, 0x12));
    // Both pages must permit it, and nothing is stored if one does not.
    let mut code = start;
    code.extend(map(0x3000, 0x2000, KR));
    code.extend([
        ldi(4, 0x2fff),
        ldi(5, -1),
        Op::Sth { value: r(5), base: r(4), offset: 0 }.into(),
    ]);
    let run = paged_run(ARCH, &code);
    let kind =
        TrapKind::PagePermission { address: 0x3000, access: PageAccess::Store, supervisor: true };
    assert_eq!((run.kind(), run.word(0x3ff8)), (&kind, 0));
}

#[test]
fn instructions_cross_pages() {
    // A byte-encoded `ldi` of ten bytes lies at the end of page 2 and the start of page 3, which lie
    // in memory the other way round.
    let arch: ArchId = "8b16/8/1/1".parse().unwrap();
    let mut boot = map(0x2000, 0x3000, KX).to_vec();
    boot.extend(map(0x3000, 0x2000, KX));
    boot.extend([ldi(4, 0x2ffc), Op::Jmpr { target: r(4) }.into()]);
    let code = assemble(arch, &[ldi(5, 0x1122_3344_5566), ldi(6, 0x800), st(5, 6, 0), halt()]);
    let start = |second_page: &[Instruction]| {
        let memory = Memory::new(arch.word(), MEMORY).unwrap();
        let mut boot = boot.clone();
        boot.splice(boot.len() - 2..boot.len() - 2, second_page.iter().copied());
        memory.write(0, &assemble(arch, &boot)).unwrap();
        memory.write(0x3ffc, &code[..4]).unwrap();
        memory.write(0x2000, &code[4..]).unwrap();
        run_in(arch, memory, paged)
    };
    let run = start(&[]);
    assert_eq!((run.trap.clone(), run.word(0x800)), (None, 0x1122_3344_5566));
    // Without the second page the fault is about that one, at the instruction.
    let run = start(&[ldi(1, 0x3000), Op::Tlbrm { virt: r(1) }.into()]);
    let trap = run.trap.unwrap();
    let kind = TrapKind::PageMiss { address: 0x3000, access: PageAccess::Fetch };
    assert_eq!((trap.kind, trap.pc), (kind, 0x2ffc));
}

#[test]
fn misaligned_atomics_trap_before_they_are_translated() {
    let run = paged_run(
        ARCH,
        &[ldi(4, 0x2ffc), Op::AmoAdd { dst: r(5), addr: r(4), value: r(4) }.into()],
    );
    assert_eq!(*run.kind(), TrapKind::Misaligned { address: 0x2ffc, size: 8 });
    let mut code = map(0x2000, 0x3000, KR | KW).to_vec();
    let add = Op::AmoAddw { dst: r(5), addr: r(4), value: r(4) };
    code.extend([ldi(4, 0x2ffc), add.into(), add.into(), halt()]);
    assert_eq!(paged_run(ARCH, &code).word(0x3ff8) >> 32, 2 * 0x2ffc);
}

#[test]
fn physical_addresses_that_nothing_answers() {
    let mut code = map(0x2000, 0x10_0000, KR | KW).to_vec();
    code.extend([ldi(4, 0x2010), ld(5, 4, 0)]);
    assert_eq!(
        *paged_run(ARCH, &code).kind(),
        TrapKind::BadAddress { address: 0x2010, store: false }
    );
    let limit = 0x2800;
    let mut code = map(0x1000, 0x2000, KR | KW).to_vec();
    code.extend([ldi(4, 0x17f8), st(4, 4, 8), st(4, 4, 0)]);
    let run = run(ARCH, &code, |config| {
        paged(config);
        config.read_only_below = limit;
    });
    assert_eq!(*run.kind(), TrapKind::ReadOnly { address: 0x17f8, limit });
}

#[test]
fn the_console_is_behind_the_translation() {
    let to_console = |code: &mut Vec<Instruction>| {
        code.extend([ldi(2, 1), Op::Shli { dst: r(2), src: r(2), imm: 63 }.into()]);
    };
    let mut code = Vec::new();
    to_console(&mut code);
    code.push(st(2, 2, 0));
    let run_0 = paged_run(ARCH, &code);
    assert_eq!(*run_0.kind(), TrapKind::PageMiss { address: 1 << 63, access: PageAccess::Store });
    let mut code = vec![ldi(1, 0x5000), ldi(3, KW | KR)];
    to_console(&mut code);
    code.push(Op::Tlbadd { virt: r(1), phys: r(2), flags: r(3) }.into());
    code.extend([ldi(4, 65), st(4, 1, 0), ld(5, 1, 0), st(5, 1, 0), halt()]);
    let run = run(ARCH, &code, |config| {
        paged(config);
        config.input = b"z".to_vec();
    });
    assert_eq!((run.trap, &run.console[..]), (None, &b"Az"[..]));
}

#[test]
fn the_table_can_be_seen_and_has_an_end() {
    let mut code = map(0x2345, 0x3456, 0x1ff).to_vec();
    code.push(halt());
    let arch: ArchId = ARCH.parse().unwrap();
    let memory = Memory::new(arch.word(), MEMORY).unwrap();
    memory.write(0, &assemble(arch, &code)).unwrap();
    let mut machine = Machine::new(MachineConfig::new(arch), &memory).unwrap();
    machine.run().unwrap();
    let page = |virt, phys| PageMapping { virt, phys, flags: 63 };
    assert_eq!(machine.page_mappings(0), [page(0, 0), page(0x2000, 0x3000)]);
    assert_eq!(machine.page_mappings(1), []);
    // A guest that maps one page after the other.
    let code = [
        ldi(1, 0),
        ldi(4, 1),
        Op::Shli { dst: r(4), src: r(4), imm: 12 }.into(),
        Op::Tlbadd { virt: r(1), phys: r(1), flags: r(4) }.into(),
        Op::Add { dst: r(1), a: r(1), b: r(4) }.into(),
        Op::Jmpi { rel: -24 }.into(),
    ];
    let run = run(ARCH, &code, |config| config.fuel = None);
    assert_eq!(*run.kind(), TrapKind::TlbFull { limit: 1 << 16 });
}

/// The handler maps the page that it is told of, and the program goes on where it was.
#[test]
fn handlers_map_pages_on_demand() {
    let text = "
        .perm x
                ldi %r7, handler
                skep %r7
                ldi %r1, #4
                jalis %r2, %r1, body
        body:   tid %r0
                shli %r4, %r0, #12
                ldi %r6, #0x1000
                add %r4, %r4, %r6
                st %r0, %r4, #0x10
                ld %r5, %r4, #0x10
                st %r5, %r4, #0x18
                halt
        handler:
                ldi %r9, #0x800
                ld %r8, %r9, #0
                addi %r8, %r8, #1
                st %r8, %r9, #0
                st %r0, %r9, #8
                ldi %r8, #63
                tlbadd %r1, %r1, %r8
                reti";
    for arch in [ARCH, "4w16/8/4/1+x", "8b16/8/4/1+x"] {
        let arch: ArchId = arch.parse().unwrap();
        let memory = Memory::new(arch.word(), 0x8000).unwrap();
        memory.write(0, &assemble_text(arch, text)).unwrap();
        let run = run_in(arch, memory, |config| {
            paged(config);
            config.interrupts = Interrupts::Guest;
        });
        assert_eq!(run.trap, None, "{arch}");
        for lane in 0..4 {
            assert_eq!(run.word(0x1018 + 0x1000 * lane), lane);
        }
        // One interrupt a page; the store was issued anew each time.
        assert_eq!((run.word(0x800), run.word(0x808)), (4, 1));
        assert_eq!(run.stats.stores(), 4 * 5 + 4 + 4 * 2);
    }
}

#[test]
fn faults_of_the_handler_are_double_faults() {
    // The handler lies in a page that is not there.
    let code = [ldi(4, 0x5008), Op::Skep { entry: r(4) }.into(), Op::Trap {}.into()];
    let guest = |config: &mut MachineConfig| {
        paged(config);
        config.interrupts = Interrupts::Guest;
    };
    let run_1 = run(ARCH, &code, guest);
    let cause = Box::new(TrapKind::PageMiss { address: 0x5008, access: PageAccess::Fetch });
    let kind = TrapKind::DoubleFault { interrupt: Interrupt::PageMiss, cause };
    let trap = run_1.trap.unwrap();
    assert_eq!((trap.kind, trap.pc), (kind, 0x5008));
    let mut code = map(0x2000, 0x2000, UW).to_vec();
    code.extend([ldi(4, 0x2000), Op::Di {}.into(), st(4, 4, 0x10)]);
    let run = run(ARCH, &code, guest);
    let cause = Box::new(TrapKind::PagePermission {
        address: 0x2010,
        access: PageAccess::Store,
        supervisor: true,
    });
    let kind = TrapKind::DoubleFault { interrupt: Interrupt::PagePermission, cause };
    assert_eq!(*run.kind(), kind);
}
