//! Address translation on the fast path: whatever pages come and go, be it under the feet of other warps, all
//! that there is to see is what one round after the other gives, every address looked up.

use harp_emu::{Interrupt, MachineConfig, PageAccess, Path, Schedule, Translation, TrapKind};
use harp_isa::{ArchId, Instruction, Op};
use proptest::prelude::*;

use crate::common::rounds::*;
use crate::common::*;

const ARCH: &str = "4w16/16/8/4+x";
/// Where handlers lie, in page 0.
const HANDLER: i64 = 0xc00;
const ALL: i64 = 63;
const SUPERVISOR: i64 = 0b11_1000;
const USER: i64 = 0b00_0111;

/// Maps the page of `virt` to that of `phys`; `%r1` to `%r3` are lost.
fn map(virt: i64, phys: i64, flags: i64) -> Vec<Instruction> {
    let add = Op::Tlbadd { virt: r(1), phys: r(2), flags: r(3) };
    vec![ldi(1, virt), ldi(2, phys), ldi(3, flags), add.into()]
}

/// Forgets the page of `virt`; `%r1` is lost.
fn unmap(virt: i64) -> Vec<Instruction> {
    vec![ldi(1, virt), Op::Tlbrm { virt: r(1) }.into()]
}

fn jump(target: i64) -> Vec<Instruction> {
    vec![ldi(1, target), Op::Jmpr { target: r(1) }.into()]
}

/// An image of code at some places.
fn image(arch: &str, parts: &[(i64, &[Instruction])]) -> Vec<u8> {
    let mut image = vec![0; MEMORY as usize];
    for (place, code) in parts {
        let bytes = assemble(arch.parse().unwrap(), code);
        image[*place as usize..][..bytes.len()].copy_from_slice(&bytes);
    }
    image
}

fn paged(arch: &str) -> MachineConfig {
    let (translation, input, fuel) = (Translation::Tlb, Vec::new(), Some(2000));
    MachineConfig { translation, input, fuel, ..round_config(arch.parse().unwrap()) }
}

fn all(arch: &str) -> Vec<Instruction> {
    all_lanes(arch.parse().unwrap()).to_vec()
}

/// A handler that maps the page that it is told of to itself, unless the interrupt is another; and what makes
/// it the handler.
fn mending() -> (Vec<Instruction>, Vec<Instruction>) {
    let handler = vec![
        Op::Shri { dst: r(2), src: r(0), imm: 2 }.into(),
        Op::Rtop { dst: p(1), src: r(2) }.into(),
        ldi(2, ALL),
        Op::Notp { dst: p(1), src: p(1) }.into(),
        on(1, Op::Tlbadd { virt: r(1), phys: r(1), flags: r(2) }),
        Op::Reti {}.into(),
    ];
    (handler, vec![ldi(1, HANDLER), Op::Skep { entry: r(1) }.into()])
}

fn fetch_miss(address: u64) -> TrapKind {
    let cause = Box::new(TrapKind::PageMiss { address, access: PageAccess::Fetch });
    TrapKind::NoHandler { interrupt: Interrupt::PageMiss, cause }
}

/// Runs code from page 0 into page 1, where no jump says so, `before` bytes of it on page 0, for several
/// second pages, in either mode, without and with a handler: what became of it.
fn run_off(arch: &str, before: i64) -> Vec<Option<TrapKind>> {
    let second_pages = [
        vec![],
        map(0x1000, 0x1000, ALL),
        map(0x1000, 0x1000, SUPERVISOR),
        map(0x1000, 0x1000, USER),
        map(0x1000, 0x1000, ALL & !0b10_0100),
        map(0x1000, 0x2000, ALL),
        map(0x1000, 0x2000, USER),
    ];
    let mut ends = Vec::new();
    for user in [false, true] {
        for handled in [false, true] {
            for second_page in &second_pages {
                let (handler, install) = mending();
                let mut boot = all(arch);
                boot.extend(second_page);
                boot.extend(install.into_iter().filter(|_| handled));
                boot.push(ldi(1, 0x1000 - before));
                boot.push(match user {
                    true => Op::Jmpru { target: r(1) }.into(),
                    false => Op::Jmpr { target: r(1) }.into(),
                });
                let mut code: Vec<_> = quiet(12).collect();
                code.extend([ldi(8, 0x40), halt()]);
                // Page 2 is like page 1, but not the same.
                let parts: [(i64, &[Instruction]); 4] = [
                    (0, &boot),
                    (HANDLER, &handler),
                    (0x1000 - before, &code),
                    (0x2000, &[ldi(9, 7), halt()]),
                ];
                let run = compare_rounds(&paged(arch), &image(arch, &parts), 1);
                ends.push(run.trap.map(|trap| trap.kind));
            }
        }
    }
    ends
}

#[test]
fn code_runs_off_the_end_of_its_page() {
    for (arch, before) in [(ARCH, 4 * 6), ("8w16/16/8/4+x", 8 * 6)] {
        let ends = run_off(arch, before);
        let is_end: Vec<_> = ends.iter().map(Option::is_none).collect();
        // Without a handler, in supervisor and in user mode.
        assert_eq!(is_end[..7], [false, true, true, false, false, true, false], "{arch}");
        assert_eq!(is_end[14..21], [false, true, false, true, false, true, true], "{arch}");
        assert_eq!(ends[0], Some(fetch_miss(0x1000)));
        assert!(is_end[7..14].iter().chain(&is_end[21..]).all(|&ends| ends), "{arch}");
    }
    // Where instructions cross the border, too.
    for before in 16..28 {
        let ends = run_off("8b16/16/8/4+x", before);
        assert_eq!(ends[0], Some(fetch_miss(0x1000)));
        assert_eq!((&ends[1], &ends[15]), (&None, &None));
    }
}

/// What one mode has decoded the other may not be permitted to fetch.
#[test]
fn modes_fetch_from_different_pages() {
    for flags in [ALL, SUPERVISOR, USER] {
        // Page 1 in one mode, then in the other: user mode comes at once or through page 2, second or
        // first.
        for (user_first, at_once) in [(false, true), (false, false), (true, false)] {
            let mut boot = [map(0x1000, 0x1000, flags), map(0x2000, 0x2000, ALL)].concat();
            boot.extend([ldi(5, HANDLER), Op::Skep { entry: r(5) }.into()]);
            boot.extend([ldi(5, 0x1000), ldi(13, 0x2000)]);
            let call = Op::Jalr { link: r(12), target: r(5) };
            let through: Vec<Instruction> = match user_first {
                true => vec![call.into(), Op::Trap {}.into()],
                false => vec![call.into(), halt()],
            };
            if !user_first {
                boot.push(call.into());
            }
            // Decoded together with the change of the mode, so that nothing but that ends the run.
            boot.extend(quiet(2));
            boot.push(Op::Jmpru { target: r(if at_once { 5 } else { 13 }) }.into());
            // The handler of the trap calls the same code; of a fault it does nothing.
            let handler: Vec<Instruction> = vec![
                Op::Rtop { dst: p(1), src: r(0) }.into(),
                on(1, Op::Jmpi { rel: 4 }),
                call.into(),
                halt(),
            ];
            let code: Vec<_> = quiet(9).chain([Op::Jmpr { target: r(12) }.into()]).collect();
            let parts: [(i64, &[Instruction]); 4] =
                [(0, &boot), (HANDLER, &handler), (0x1000, &code), (0x2000, &through)];
            let run = compare_rounds(&paged(ARCH), &image(ARCH, &parts), 1);
            // Both modes have run it, or one was stopped by a double fault or halted by the handler.
            let twice = run.stats.issued() > 36;
            assert_eq!(twice, flags == ALL, "{flags}, {user_first}, {at_once}");
        }
    }
}

#[test]
fn rows_cross_pages() {
    let pages = |page| {
        [None, Some(0b01_1000), Some(0b00_1000), Some(0b01_0000)]
            .map(|flags| flags.map_or_else(Vec::new, |flags| map(page, page, flags)))
    };
    let (value, base, dst) = (r(11), r(9), r(11));
    let accesses = [
        Op::Ld { dst, base, offset: 0 },
        Op::St { value, base, offset: 0 },
        Op::Ldh { dst, base, offset: 0 },
        Op::Stb { value, base, offset: 0 },
    ];
    for arch in [ARCH, "8w16/16/8/4+x"] {
        let word = i64::from(arch.parse::<ArchId>().unwrap().word().bytes());
        let mut done = 0;
        for (first, second) in pages(0x1000)
            .iter()
            .flat_map(|first| pages(0x2000).map(|second| (first.clone(), second)))
        {
            for lanes in 0..=8 {
                for (access, guard) in accesses.into_iter().flat_map(|op| [(op, 0), (op, 1)]) {
                    let mut code = [first.clone(), second.clone(), all(arch)].concat();
                    code.extend([
                        Op::Tid { dst: r(8) }.into(),
                        Op::Andi { dst: r(7), src: r(8), imm: 3 }.into(),
                        Op::Rtop { dst: p(1), src: r(7) }.into(),
                        Op::Muli { dst: r(9), src: r(8), imm: word }.into(),
                        ldi(10, 0x2000 - word * lanes),
                        Op::Add { dst: r(9), a: r(9), b: r(10) }.into(),
                        Op::Addi { dst: r(11), src: r(8), imm: 5 }.into(),
                        if guard == 1 { on(1, access) } else { access.into() },
                        halt(),
                    ]);
                    let run = compare_rounds(&paged(arch), &image(arch, &[(0, &code)]), 1000);
                    done += u32::from(run.trap.is_none());
                }
            }
        }
        // Two in four pages permit an access, each of which some rows do not need.
        assert!((200..800).contains(&done), "{done}");
    }
}

/// What warps other than the first do in page 1: rows and single words of page 2, several times.
fn work(constant: i64) -> Vec<Instruction> {
    let mut code = all(ARCH);
    code.extend([
        Op::Tid { dst: r(9) }.into(),
        Op::Shli { dst: r(9), src: r(9), imm: 2 }.into(),
        ldi(10, 0x2000),
        Op::Add { dst: r(9), a: r(9), b: r(10) }.into(),
        ldi(8, 5),
    ]);
    let top = code.len();
    code.extend(quiet(4));
    code.extend([
        Op::Addi { dst: r(6), src: r(6), imm: constant }.into(),
        ld(11, 9, 0),
        Op::Add { dst: r(11), a: r(11), b: r(6) }.into(),
        st(11, 9, 16),
        Op::Stb { value: r(11), base: r(9), offset: 33 }.into(),
        ld(12, 10, 16),
        Op::AmoAdd { dst: r(13), addr: r(10), value: r(6) }.into(),
        Op::Subi { dst: r(8), src: r(8), imm: 1 }.into(),
        Op::Rtop { dst: p(1), src: r(8) }.into(),
    ]);
    code.push(on(1, Op::Jmpi { rel: 4 * (top as i64 - code.len() as i64 - 1) }));
    code.push(halt());
    code
}

#[test]
fn the_table_changes_under_others() {
    let mut then = Vec::new();
    // Of the code's page, and of the data's.
    for page in [0x1000, 0x2000] {
        then.push(unmap(page));
        for flags in [ALL, USER, SUPERVISOR, 0b101, 0b110] {
            then.push(map(page, page, flags));
        }
        then.push(map(page, 0x3000, ALL));
        // There and back.
        then.push([map(page, 0x3000, ALL), map(page, page, ALL)].concat());
        then.push([unmap(page), map(page, page, ALL)].concat());
    }
    then.push(vec![Op::Tlbflush {}.into()]);
    let mut interrupted = 0;
    for change in &then {
        for (handled, delay) in [(false, 3), (true, 0), (true, 20), (true, 47)] {
            let (handler, install) = mending();
            let mut boot = [map(0x1000, 0x1000, ALL), map(0x2000, 0x2000, ALL)].concat();
            boot.extend(install.into_iter().filter(|_| handled));
            boot.push(ldi(3, 0x1000));
            let start = Op::Wspawn { dst: r(4), pc: r(3), src: r(3) };
            boot.extend([Instruction::from(start); 3]);
            boot.extend(quiet(delay));
            boot.extend(change);
            boot.extend(quiet(9));
            boot.extend(change);
            boot.push(halt());
            let image = image(
                ARCH,
                &[(0, &boot), (HANDLER, &handler), (0x1000, &work(1)), (0x3000, &work(100))],
            );
            let run = compare_rounds(&paged(ARCH), &image, 5);
            interrupted += usize::from(run.trap.is_some());
        }
    }
    assert!((10..then.len() * 4 - 10).contains(&interrupted), "{interrupted}");
}

#[test]
fn code_changes_through_another_page() {
    // Page 3 shows page 1: a store there replaces an instruction that is decoded, or about to be.
    for place in [0, 3, 9] {
        let run = |alias| {
            let mut boot = [map(0x1000, 0x1000, ALL), map(0x3000, 0x1000, ALL)].concat();
            boot.extend(jump(0x1000));
            let mut code = vec![ldi(10, alias), ldi(11, 0x800), ld(12, 11, 0), ldi(8, 2)];
            let top = code.len();
            code.extend(quiet(4));
            code.push(st(12, 10, 4 * (top as i64 + place)));
            code.extend(quiet(7));
            code.extend([
                Instruction::from(Op::Subi { dst: r(8), src: r(8), imm: 1 }),
                Op::Rtop { dst: p(1), src: r(8) }.into(),
            ]);
            code.push(on(1, Op::Jmpi { rel: 4 * (top as i64 - code.len() as i64 - 1) }));
            code.push(halt());
            let other = [Op::Addi { dst: r(6), src: r(6), imm: 1000 }.into()];
            let image = image(ARCH, &[(0, &boot), (0x800, &other), (0x1000, &code)]);
            let mut run = compare_rounds(&paged(ARCH), &image, 1);
            // The one register that differs.
            run.warps[0].2[2 + 10 * 8] = 0;
            (run.trap, run.stats, run.warps)
        };
        let in_place = run(0x1000);
        assert_eq!(in_place.0, None);
        assert_eq!(in_place, run(0x3000));
    }
}

/// Instructions of which many fault, and that change the table, the mode and the code.
fn any_instruction(word: i64) -> impl Strategy<Value = Vec<Instruction>> {
    let page = (0..5i64).prop_map(|page| page << 12);
    let flags = prop_oneof![3 => Just(ALL), 1 => Just(USER), 1 => Just(SUPERVISOR), 1 => 0..64i64];
    let place = (0..5i64, 0..64i64).prop_map(move |(page, at)| (page << 12) | (at * word));
    let adds = (page.clone(), page.clone(), flags.clone());
    prop_oneof![
        8 => (1..9usize).prop_map(|count| quiet(count).collect()),
        2 => adds.prop_map(|(virt, phys, flags)| map(virt, phys, flags)),
        2 => (page.clone(), flags).prop_map(|(page, flags)| map(page, page, flags)),
        1 => page.prop_map(unmap),
        // The base of a row, of words that are apart, of one word for all.
        3 => (place.clone(), 0..12i64).prop_map(|(place, shift)| vec![
            Op::Tid { dst: r(9) }.into(),
            Op::Shli { dst: r(9), src: r(9), imm: shift }.into(),
            ldi(10, place),
            Op::Add { dst: r(10), a: r(10), b: r(9) }.into(),
        ]),
        1 => place.clone().prop_map(|place| vec![ldi(10, place)]),
        8 => (0..6u8, -4..20i64).prop_map(move |(kind, at)| vec![memory_access(kind, at, word)]),
        2 => place.clone().prop_map(jump),
        1 => place.clone().prop_map(|place| vec![ldi(1, place), Op::Jmpru { target: r(1) }.into()]),
        1 => Just(vec![Op::Trap {}.into()]),
        1 => place.prop_map(|place| vec![
            ldi(3, place),
            Op::Wspawn { dst: r(4), pc: r(3), src: r(3) }.into(),
        ]),
    ]
}

/// One of several loads, stores and atomic operations at `%r10`.
fn memory_access(kind: u8, offset: i64, word: i64) -> Instruction {
    let (value, base, dst) = (r(11), r(10), r(11));
    match kind {
        0 => Op::Ld { dst, base, offset: word * offset },
        1 => Op::St { value, base, offset: word * offset },
        2 => Op::Ldbs { dst, base, offset },
        3 => Op::Sth { value, base, offset },
        4 => Op::Ldw { dst, base, offset },
        _ => Op::AmoAdd { dst, addr: base, value: r(9) },
    }
    .into()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_programs_that_change_the_table(
        (arch, parts) in prop::sample::select(vec![ARCH, "8w16/16/8/4+x"]).prop_flat_map(|arch| {
            let word = i64::from(arch.parse::<ArchId>().unwrap().word().bytes());
            let page = prop::collection::vec(any_instruction(word), 4..16);
            (Just(arch), prop::collection::vec(page, 4))
        }),
        starts in prop::collection::vec((0..64i64, any::<bool>()), 4),
        quantum in 1..50u32,
    ) {
        let word = i64::from(arch.parse::<ArchId>().unwrap().word().bytes());
        let (handler, install) = mending();
        let mut boot = [install, all(arch)].concat();
        boot.extend(map(0x1000, 0x1000, ALL));
        boot.extend(map(0x2000, 0x2000, ALL));
        // Each page ends somewhere with one of the others, or flows into the next.
        let mut pages: Vec<Vec<Instruction>> = parts.iter().map(|parts| parts.concat()).collect();
        for (page, (place, ends)) in pages.iter_mut().zip(starts) {
            let target = (place * word) | ((place & 3) << 12);
            page.extend(if ends { vec![halt()] } else { jump(target) });
        }
        pages[0].splice(..0, boot);
        let mut parts: Vec<(i64, &[Instruction])> = vec![(HANDLER, &handler)];
        parts.extend((0..).map(|page| page << 12).zip(pages.iter().map(Vec::as_slice)));
        let image = image(arch, &parts);
        let config = MachineConfig { fuel: Some(700), ..paged(arch) };
        compare_rounds(&config, &image, 97);
        // In other orders, too.
        let quantum = Schedule::Quantum(quantum.try_into().unwrap());
        let ways = [Path::Fast, Path::Precise].map(|path| {
            let config = MachineConfig { schedule: quantum, path, ..config.clone() };
            run_to_end(&config, &image)
        });
        assert_eq!(ways[0], ways[1]);
    }
}
