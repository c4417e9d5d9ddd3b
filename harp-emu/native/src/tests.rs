//! Programs in host code and interpreted, in states that random ones seldom reach.

use std::sync::Arc;

use harp_emu::{HostTier, Machine, MachineConfig, Memory};
use harp_isa::{ArchId, Gpr, Pred};

use crate::body::Inst;
use crate::rules::{Assumed, Callee, Rules};
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
    let callee = Callee { start: 0, bytes: code.len() as u64, arguments: 2, returns: [None; 4] };
    let (assumed, leaves, follows) = (Assumed::Nothing, false, false);
    let rules = Rules { shape, assumed, callee: Some(callee), leaves, follows };
    let fetch = move |pc| {
        let (instruction, size) = harp_isa::decode(code.get(pc as usize..)?, arch).ok()?;
        Some(Inst::new(pc, size, instruction, shape))
    };
    (rules, callee, fetch)
}

const LANES: u8 = 32;
/// Where each lane's first pointer is, what it points to, and where that points to.
const POINTERS: u64 = 0x1000;
const CELLS: u64 = 0x2000;
const TARGETS: u64 = 0x3000;
/// Where the lanes that take part are, as bits.
const MASK: u64 = 0x800;

/// In two rounds, lanes by the mask follow pointers, change what they know, and store.
const PROGRAM: &str = "
        .perm x
        .entry
        .global
boot:   ldi %r2, #32
        jalis %ra, %r2, all
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
        ldi %r0, stop
        jmprt %r0
stop:   halt
";

/// A lane one of whose pointers is none: that from which it loads, or that to which it stores.
type Bad = Option<(u64, bool)>;

/// All that is to be the same after the program.
fn outcome(mask: u32, bad: Bad, when: Option<When>) -> Vec<String> {
    let arch: ArchId = "4w16/4/32/2+x".parse().unwrap();
    let object = harp_isa::assemble(PROGRAM, arch, &[]).unwrap();
    let image = harp_isa::link(&[&object], 0).unwrap();
    let memory = Memory::new(arch.word(), 1 << 16).unwrap();
    memory.write(0, &image.bytes).unwrap();
    let put = |address: u64, word: u64| {
        memory.write(address, &(word as u32).to_le_bytes()).unwrap();
    };
    put(MASK, mask.into());
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
    let mut machine = Machine::new(MachineConfig::new(arch), &memory).unwrap();
    let native = when.and_then(Native::new);
    if let Some(native) = &native {
        let tier: Arc<dyn HostTier> = Arc::new(native.clone());
        machine.set_host_tier(&tier);
    }
    let mut seen = vec![format!("{:?}", machine.run())];
    for (_, _, warp) in machine.warps() {
        seen.push(format!("{:#x} {:#x} {:?}", warp.pc(), warp.active(), warp.stats()));
        seen.extend(warp.stack().map(|entry| format!("{entry:?}")));
        for r in 0..arch.gprs() {
            let words = (0..LANES).map(|lane| warp.gpr(Gpr::new(r), lane));
            seen.push(format!("%r{r}: {:x?}", words.collect::<Vec<_>>()));
        }
        for p in 0..arch.preds() {
            seen.push(format!("@p{p}: {:#x}", warp.pred(Pred::new(p))));
        }
    }
    let mut bytes = vec![0; 1 << 16];
    memory.read(0, &mut bytes).unwrap();
    seen.extend(bytes.chunks(16).map(|bytes| format!("{bytes:x?}")));
    seen
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
            let expected = outcome(mask, bad, None);
            for when in [When::AtOnce, When::Leaving] {
                let seen = outcome(mask, bad, Some(when));
                let pairs = expected.iter().zip(&seen);
                let differ: Vec<_> = pairs.filter(|(one, other)| one != other).collect();
                assert!(differ.is_empty(), "lanes {mask:#x}, {bad:?}, {when:?}: {differ:#?}");
                assert_eq!(expected.len(), seen.len());
            }
        }
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
        let calls = Calls { function: 0, bytes, arguments: 0, returns };
        let tier: Arc<dyn HostTier> = Arc::new(native.for_calls(&calls));
        let mut machine = Machine::new(MachineConfig::new(arch), &memory).unwrap();
        machine.set_host_tier(&tier);
        machine.run().unwrap();
        drop(machine);
        let stats = native.stats();
        assert!(stats.regions >= number && stats.issued > 2 * number as u64, "{number}: {stats:?}");
    }
}
