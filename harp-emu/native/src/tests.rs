//! Programs in host code and interpreted, in states that random ones seldom reach.

use std::sync::Arc;

use harp_emu::{HostTier, Machine, MachineConfig, Memory};
use harp_isa::{ArchId, Gpr, Pred};

use crate::body::Inst;
use crate::calls::Callee;
use crate::rules::{Assumed, Rules};
use crate::shape::Shape;
use crate::{Calls, Native, When};

/// A function of two arguments on a machine of four lanes: rules by which nothing is assumed, and its instructions by
/// their addresses, from 0.
pub(crate) fn function(text: &str) -> (Rules, Callee, impl FnMut(u64) -> Option<Inst>) {
    let arch: ArchId = "4w16/4/4/4+x".parse().unwrap();
    let text = format!(".perm x\n.entry\n.global\nf:\n{text}");
    let object = harp_isa::assemble(&text, arch, &[]).unwrap();
    let code = harp_isa::link(&[&object], 0).unwrap().bytes;
    let shape = Shape::new(arch, 4);
    let (bytes, returns) = (code.len() as u64, [None; 4]);
    let callee = Callee { start: 0, bytes, arguments: 2, returns, held_back: None };
    let (assumed, leaves, follows) = (Assumed::Nothing, false, false);
    let (odd_words, passes) = (false, true);
    let rules = Rules { shape, assumed, callee: Some(callee), leaves, follows, odd_words, passes };
    let fetch = move |pc| {
        let (instruction, size) = harp_isa::decode(code.get(pc as usize..)?, arch).ok()?;
        Some(Inst::new(pc, size, instruction, shape))
    };
    (rules, callee, fetch)
}

const LANES: u8 = 32;
const MEMORY_BYTES: u64 = 1 << 16;
/// Where each lane's first pointer is, what it points to, and where that points to.
const POINTERS: u64 = 0x1000;
const CELLS: u64 = 0x2000;
const TARGETS: u64 = 0x3000;
/// Where the lanes that take part are, as bits.
const MASK: u64 = 0x800;

/// In two rounds, lanes by the mask follow pointers, change what they know, and store.
const PROGRAM: &str = "
all:    ldi %r14, #2
round:  csr %r1, #0
        ldi %r0, #0x800
        ld %r7, %r0, #0
        shr %r7, %r7, %r1
        andi %r7, %r7, #1
        rtop @p0, %r7
        shli %r2, %r1, #2
        ldi %r3, #0x1000
        add %r2, %r2, %r3
        ld %r2, %r2, #0
        ldi %r8, #7
        add %r9, %r1, %r14
        addi %r12, %r14, #9
        shli %r13, %r1, #3
        sub %r13, %r13, %r14
        rtop @p1, %r8
        rtop @p2, %r8
  @p0 ? split
  @p0 ? jmpi some
        jmpi end
some:   ld %r4, %r2, #0
        addi %r9, %r9, #5
        add %r5, %r4, %r9
        ld %r6, %r4, #4
        sub %r6, %r6, %r8
        isneg @p1, %r6
  @p1 ? addi %r8, %r8, #3
  @p1 ? ld %r10, %r4, #8
        notp @p2, @p1
        ld %r11, %r4, #12
  @p1 ? st %r9, %r4, #0
  @p2 ? st %r9, %r11, #0
        st %r5, %r2, #8
        ld %r3, %r4, #4
        add %r12, %r12, %r3
  @p1 ? add %r13, %r13, %r12
end:    join
        subi %r14, %r14, #1
        rtop @p3, %r14
  @p3 ? jmpi round
";

/// A lane one of whose pointers is none: that from which it loads, or that to which it stores.
type Bad = Option<(u64, bool)>;

/// What the program finds in memory.
fn pointers(mask: u32, bad: Bad) -> Vec<(u64, u64)> {
    let mut words = vec![(MASK, mask.into())];
    let mut put = |address, word| words.push((address, word));
    for lane in 0..u64::from(LANES) {
        // In no order that has a name.
        let cell = CELLS + 16 * (lane * 7 % 32);
        let target = TARGETS + 16 * (lane * 13 % 32);
        put(POINTERS + 4 * lane, cell);
        let or_bad = |address, stores| match bad == Some((lane, stores)) {
            true => 0x7fff_0001,
            false => address,
        };
        put(cell, or_bad(target, false));
        put(target + 4, 5 * (lane % 3));
        put(target + 8, 1000 + lane);
        put(target + 12, or_bad(target + 0x1000, true));
    }
    words
}

/// A program that does this in all lanes.
fn in_all_lanes(text: &str) -> String {
    format!(
        "
        .perm x
        .entry
        .global
boot:   ldi %r2, #32
        jalis %ra, %r2, all
{text}
        ldi %r0, stop
        jmprt %r0
stop:   halt
"
    )
}

/// A program that does this in all lanes, which have their numbers in `%r1`: on any machine.
fn in_cloned_lanes(lanes: u8, text: &str) -> String {
    let last = lanes - 1;
    format!(
        "
        .perm x
        .entry
        .global
boot:   ldi %r1, #{last}
spread: clone %r1
        subi %r1, %r1, #1
        rtop @p0, %r1
  @p0 ? jmpi spread
        ldi %r2, #{lanes}
        jalis %ra, %r2, all
        ldi %r0, stop
        jmprt %r0
stop:   halt
{text}
"
    )
}

/// The machine of most of these programs.
const MACHINE: &str = "4w16/4/32/2+x";

/// All that is to be the same after a program that finds these words in memory.
fn outcome(arch: &str, program: &str, words: &[(u64, u64)], tier: Option<&Native>) -> Vec<String> {
    let arch: ArchId = arch.parse().unwrap();
    let object = harp_isa::assemble(program, arch, &[]).unwrap();
    let image = harp_isa::link(&[&object], 0).unwrap();
    let memory = Memory::new(arch.word(), MEMORY_BYTES).unwrap();
    memory.write(0, &image.bytes).unwrap();
    for &(address, word) in words {
        memory.write(address, &(word as u32).to_le_bytes()).unwrap();
    }
    let mut config = MachineConfig::new(arch);
    // Programs that change themselves may not end.
    config.fuel = Some(10_000);
    let mut machine = Machine::new(config, &memory).unwrap();
    if let Some(native) = tier {
        let tier: Arc<dyn HostTier> = Arc::new(native.clone());
        machine.set_host_tier(&tier);
    }
    let mut seen = vec![format!("{:?}", machine.run())];
    for (_, _, warp) in machine.warps() {
        seen.push(format!("{:#x} {:#x} {:?}", warp.pc(), warp.active(), warp.stats()));
        seen.extend(warp.stack().map(|entry| format!("{entry:?}")));
        for r in 0..arch.gprs() {
            let words = (0..arch.lanes()).map(|lane| warp.gpr(Gpr::new(r), lane));
            seen.push(format!("%r{r}: {:x?}", words.collect::<Vec<_>>()));
        }
        for p in 0..arch.preds() {
            seen.push(format!("@p{p}: {:#x}", warp.pred(Pred::new(p))));
        }
    }
    let mut bytes = vec![0; MEMORY_BYTES as usize];
    memory.read(0, &mut bytes).unwrap();
    seen.extend(bytes.chunks(16).map(|bytes| format!("{bytes:x?}")));
    seen
}

/// The program does the same in host code, wherever that is left.
fn all_tiers_agree(program: &str, words: &[(u64, u64)], what: &str) {
    agree(&tiers(), MACHINE, program, words, what);
}

/// Tiers that translate at once; one leaves host code wherever it can.
fn tiers() -> Vec<(When, Native)> {
    let both = [When::AtOnce, When::Leaving].into_iter();
    both.filter_map(|when| Some((when, Native::new(when)?))).collect()
}

/// The program does the same in these tiers as in none.
fn agree(tiers: &[(When, Native)], arch: &str, program: &str, words: &[(u64, u64)], what: &str) {
    let expected = outcome(arch, program, words, None);
    for (when, native) in tiers {
        let seen = outcome(arch, program, words, Some(native));
        let pairs = expected.iter().zip(&seen);
        let differ: Vec<_> = pairs.filter(|(one, other)| one != other).collect();
        assert!(differ.is_empty(), "{what}, {when:?}: {differ:#?}");
        assert_eq!(expected.len(), seen.len());
    }
}

#[test]
fn lanes_that_take_turns_leave_what_all_together_do() {
    if Native::new(When::AtOnce).is_none() {
        return;
    }
    let masks = [1, 1 << 31, 0x0410_0002, 0x8000_0ff0, 0x0fff_ffff, u32::MAX];
    for mask in masks {
        let lanes = (0..u64::from(LANES)).filter(|lane| mask >> lane & 1 != 0).take(4);
        let bad = lanes.flat_map(|lane| [Some((lane, false)), Some((lane, true))]);
        for bad in bad.chain([None]) {
            let program = in_all_lanes(PROGRAM);
            all_tiers_agree(&program, &pointers(mask, bad), &format!("lanes {mask:#x}, {bad:?}"));
        }
    }
}

/// Where the program that follows finds the address.
const BASE: u64 = 0x800;

/// Loads and stores around an address, in two rounds, at a distance from lane to lane.
fn around(stride: i64) -> String {
    format!(
        "
all:    ldi %r14, #2
        csr %r1, #0
        ldi %r0, #0x800
        ld %r2, %r0, #0
        muli %r3, %r1, #{stride}
        add %r2, %r2, %r3
        rtop @p2, %r14
        add %r10, %r14, %r1
round:  ld %r4, %r2, #4
        addi %r10, %r10, #1
        ldb %r5, %r2, #9
        ld %r6, %r2, #-8
        st %r10, %r2, #0
        ldh %r7, %r2, #1
        add %r10, %r10, %r4
        st %r10, %r2, #8
        stb %r10, %r2, #-3
        sth %r10, %r2, #13
        ld %r8, %r2, #8
        amoadd %r9, %r2, %r10
  @p2 ? ld %r11, %r2, #12
  @p2 ? st %r11, %r2, #-4
        addi %r2, %r2, #4
        ld %r12, %r2, #8
        st %r12, %r2, #-8
        subi %r14, %r14, #1
        rtop @p3, %r14
  @p3 ? jmpi round
"
    )
}

#[test]
fn accesses_around_an_address_trap_where_each_does() {
    if Native::new(When::AtOnce).is_none() {
        return;
    }
    for stride in [0, 4, 12, -4_i64, -16] {
        let span = stride * (i64::from(LANES) - 1);
        // Where code is, too.
        let ends = [0, 0x60, MEMORY_BYTES as i64, -0x8000].map(|end| end - span.max(0));
        let near = ends.into_iter().flat_map(|end| (end - 24..=end + 24).step_by(4));
        for base in near.chain([0x1002, 0x1000, 0x1000 - span]) {
            let words = [(BASE, base.cast_unsigned())];
            let what = format!("base {base:#x}, stride {stride}");
            all_tiers_agree(&in_all_lanes(&around(stride)), &words, &what);
        }
    }
}

/// In all lanes, and then in those of the mask, loads and stores of words around an address at a distance from lane to lane, as
/// programs find parts of words where no instruction does.
fn around_any_byte(stride: i64, lanes: u8) -> String {
    let text = format!(
        "
all:    ldi %r14, #2
        ldi %r0, #0x800
        ld %r2, %r0, #0
        ldi %r0, #0x808
        ld %r7, %r0, #0
        shr %r7, %r7, %r1
        andi %r7, %r7, #1
        rtop @p0, %r7
        muli %r3, %r1, #{stride}
        add %r2, %r2, %r3
        ldi %r10, #16383
        mul %r10, %r10, %r10
        mul %r10, %r10, %r1
        andi %r8, %r1, #3
        rtop @p1, %r8
round:  ld %r4, %r2, #0
        st %r10, %r2, #1
        ld %r5, %r2, #-3
  @p1 ? st %r4, %r2, #0
        add %r10, %r10, %r5
  @p0 ? split
  @p0 ? jmpi some
        jmpi end
some:   ld %r6, %r2, #2
        add %r6, %r6, %r10
  @p1 ? ld %r8, %r2, #-1
        st %r6, %r2, #-2
        add %r3, %r2, %r6
        sub %r3, %r3, %r6
        ld %r9, %r3, #1
        add %r9, %r9, %r8
        st %r9, %r3, #3
end:    join
        addi %r2, %r2, #5
        subi %r14, %r14, #1
        rtop @p3, %r14
  @p3 ? jmpi round
"
    );
    in_cloned_lanes(lanes, &text)
}

#[test]
fn words_at_any_byte_are_those_that_the_interpreter_finds() {
    if Native::new(When::AtOnce).is_none() {
        return;
    }
    for arch in ["4w16/4/32/2", "8w16/4/32/2", "4w16/4/3/2", MACHINE] {
        for (stride, mask) in [(1, 0x111), (3, 0xffff_fffe), (-1, u64::MAX), (0, 2), (4, 0xf0)] {
            let lanes = arch.parse::<ArchId>().unwrap().lanes();
            let program = around_any_byte(stride, lanes);
            let span = stride * (i64::from(lanes) - 1);
            let ends = [0x80, MEMORY_BYTES as i64].map(|end| end - span.max(0));
            let near = ends.into_iter().flat_map(|end| end - 12..=end + 2);
            let tiers = tiers();
            for base in [0x1001, 0x1003, 0x1006].into_iter().chain(near) {
                let words = [(BASE, base.cast_unsigned()), (BASE + 8, mask)];
                let what = format!("{arch}, base {base:#x}, stride {stride}, lanes {mask:#x}");
                agree(&tiers, arch, &program, &words, &what);
            }
        }
    }
}

/// Where the words are that are compared, 8 bytes for each.
const COMPARED: u64 = 0x1000;

/// Comparisons of `%r4` and `%r5` in the sign of `%r6`, as programs do them without an instruction for it, and others that
/// look like them.
const SIGNS: [&str; 10] = [
    "sub %r6, %r4, %r5; xor %r7, %r4, %r5; xor %r8, %r6, %r4; and %r7, %r7, %r8; xor %r6, %r6, %r7",
    "sub %r6, %r4, %r5; xor %r7, %r5, %r4; xor %r8, %r4, %r6; and %r7, %r8, %r7; xor %r6, %r7, %r6",
    "sub %r6, %r4, %r5; xor %r7, %r4, %r5; xor %r8, %r6, %r5; and %r7, %r7, %r8; xor %r6, %r6, %r7",
    "sub %r6, %r4, %r5; xor %r7, %r4, %r6; xor %r8, %r6, %r4; and %r7, %r7, %r8; xor %r6, %r6, %r7",
    "sub %r6, %r5, %r4; xor %r7, %r4, %r5; xor %r8, %r6, %r4; and %r7, %r7, %r8; xor %r6, %r6, %r7",
    "not %r6, %r4; and %r7, %r6, %r5; or %r6, %r6, %r5; sub %r8, %r4, %r5; and %r6, %r6, %r8; or %r6, %r7, %r6",
    "not %r6, %r4; and %r7, %r5, %r6; or %r6, %r5, %r6; sub %r8, %r4, %r5; and %r6, %r8, %r6; or %r6, %r6, %r7",
    "not %r6, %r5; and %r7, %r6, %r5; or %r6, %r6, %r4; sub %r8, %r4, %r5; and %r6, %r6, %r8; or %r6, %r7, %r6",
    "not %r6, %r1; and %r7, %r6, %r5; or %r6, %r6, %r5; sub %r8, %r4, %r5; and %r6, %r6, %r8; or %r6, %r7, %r6",
    "not %r6, %r4; and %r7, %r6, %r5; or %r6, %r7, %r5; sub %r8, %r4, %r5; and %r6, %r6, %r8; or %r6, %r7, %r6",
];

#[test]
fn comparisons_in_several_instructions_are_what_these_compute() {
    if Native::new(When::AtOnce).is_none() {
        return;
    }
    let words = [0, 1, 2, 5, 0x7fff_fffe, 0x7fff_ffff, 0x1234_5678];
    let words = words.into_iter().flat_map(|word: u32| [word, !word]);
    // Both halves of 8 bytes.
    let pairs = words.chain([0x8000_0000, 0x55aa_55aa]).map(|word| [word, word.rotate_left(16)]);
    let halves = pairs.flatten().map(u64::from);
    let words: Vec<(u64, u64)> = (COMPARED..).step_by(4).zip(halves).collect();
    let signs = SIGNS.map(|sign| {
        let sign = sign.replace("; ", "\n");
        format!("{sign}\nisneg @p0, %r6\nmuli %r10, %r10, #3\n@p0 ? addi %r10, %r10, #1\n")
    });
    let (tiers, signs) = (tiers(), signs.concat());
    for arch in ["4w16/4/32/2", "8w16/4/32/2", "4w16/4/3/2", MACHINE] {
        let lanes = arch.parse::<ArchId>().unwrap().lanes();
        let text = format!(
            "
all:    ldi %r14, #16
        ldi %r0, #{COMPARED}
        andi %r4, %r1, #15
        shli %r4, %r4, #3
        add %r4, %r4, %r0
        ld %r4, %r4, #0
round:  andi %r2, %r14, #15
        shli %r2, %r2, #3
        add %r2, %r2, %r0
        ld %r5, %r2, #0
{signs}
        add %r2, %r1, %r14
        andi %r2, %r2, #15
        shli %r2, %r2, #3
        add %r2, %r2, %r0
        ld %r5, %r2, #0
{signs}
        or %r9, %r4, %r4
        ld %r4, %r0, #8
        andi %r2, %r14, #15
        shli %r2, %r2, #3
        add %r2, %r2, %r0
        ld %r5, %r2, #0
{signs}
        or %r4, %r9, %r9
        subi %r14, %r14, #1
        rtop @p3, %r14
  @p3 ? jmpi round
        ldi %r0, stop
        jmprt %r0
"
        );
        agree(&tiers, arch, &in_cloned_lanes(lanes, &text), &words, arch);
    }
}

/// One warp waits at a barrier for two, another comes there and is for one only: neither goes on. At another barrier it does.
#[test]
fn a_barrier_for_one_warp_is_not_passed_where_others_wait() {
    if Native::new(When::AtOnce).is_none() {
        return;
    }
    for (id, goes_on) in [(5, false), (6, true)] {
        let program = format!(
            "
        .perm x
        .entry
        .global
boot:   ldi %r3, other
        wspawn %r1, %r3, %r0
        ldi %r1, #5
        ldi %r2, #2
        bar %r1, %r2
        ldi %r4, #1
        halt
other:  ldi %r1, #{id}
        ldi %r2, #1
        ldi %r5, #3
again:  bar %r1, %r2
        addi %r4, %r4, #1
        subi %r5, %r5, #1
        rtop @p0, %r5
  @p0 ? jmpi again
        halt
"
        );
        let one = outcome(MACHINE, &program, &[], None);
        let rounds = if goes_on { "%r4: [Some(3), " } else { "%r4: [Some(0), " };
        assert!(one.iter().any(|line| line.starts_with(rounds)), "{one:#?}");
        all_tiers_agree(&program, &[], &format!("barrier {id}"));
    }
}

/// A host may run any number of programs one after the other: each is translated, however many there were.
#[test]
fn programs_are_translated_however_many_there_were() {
    let Some(native) = Native::new(When::AtOnce) else { return };
    let arch: ArchId = "4w8/4/8/2".parse().unwrap();
    let memory = Memory::new(arch.word(), 1 << 12).unwrap();
    for number in 1..=40 {
        let text = format!(
            ".perm x
            .entry
            .global
            count: ldi %r0, #{number}
            next: subi %r0, %r0, #1
            rtop @p0, %r0
            @p0 ? jmpi next
            halt"
        );
        let object = harp_isa::assemble(&text, arch, &[]).unwrap();
        let image = harp_isa::link(&[&object], 0).unwrap().bytes;
        memory.write(0, &image).unwrap();
        let (bytes, returns) = (image.len() as u64, Vec::new());
        let calls = Calls { function: 0, bytes, arguments: 0, returns, held_back: None };
        let tier: Arc<dyn HostTier> = Arc::new(native.for_calls(&calls));
        let mut machine = Machine::new(MachineConfig::new(arch), &memory).unwrap();
        machine.set_host_tier(&tier);
        machine.run().unwrap();
        drop(machine);
        let stats = native.stats();
        assert!(stats.regions >= number && stats.issued > 2 * number as u64, "{number}: {stats:?}");
    }
}
