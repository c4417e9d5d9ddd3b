//! Audits: whether lanes read from shared registers what they have written.

use harp_emu::{Interrupts, Trap};
use harp_isa::ArchId;

use super::{all_lanes, lanes, machines, run_once, run_with};

/// What an audit finds in a program; without one the program ends.
fn audited(arch: ArchId, text: &str) -> Option<Trap> {
    let plain = run_with(arch, text, |config| config.interrupts = Interrupts::Guest);
    assert_eq!(plain.trap, None, "{arch} {text}");
    let audited = run_once(arch, text, &|config| {
        config.interrupts = Interrupts::Guest;
        config.audit_shared = true;
    });
    if audited.trap.is_none() {
        assert_eq!(audited, plain, "{arch} {text}");
    }
    audited.trap
}

/// The lanes and the message of what an audit finds.
fn found(arch: ArchId, text: &str) -> (u64, String) {
    let trap = audited(arch, text).unwrap_or_else(|| panic!("nothing found on {arch}: {text}"));
    (trap.lanes, trap.kind.to_string())
}

/// A `split` whose true side, the odd lanes, executes `yes`, the others `no`.
fn split(yes: &str, no: &str) -> String {
    format!(
        "andi %r3 %r0 #1; rtop @p0 %r3; @p0 ? split; @p0 ? jmpi yes; {no}; jmpi done
         yes: {yes}
         done: join"
    )
}

#[test]
fn an_audit_finds_what_the_other_side_has_written() {
    for arch in machines().filter(|arch| arch.lanes() > 1) {
        let all = u64::MAX >> (64 - lanes(arch));
        let (odd, even) = (0xaaaa_aaaa_aaaa_aaaa & all, 0x5555_5555_5555_5555 & all);
        // The true side comes first: the other lanes still have what was there before.
        let text = format!("ldi %s3 #4; {}", split("ldi %s3 #5", "add %r4 %s3 %r0"));
        let message = "read from `%s3` 0x5, where the lane itself has last written 0x4";
        assert_eq!(found(arch, &all_lanes(arch, &text)), (even, message.to_owned()));
        // Behind the join, both sides having written; the last was the false side.
        let text = format!("{}; st %s0 %s1 #0x1000", split("ldi %s0 #5", "ldi %s0 #6"));
        let message = "read from `%s0` 0x6, where the lane itself has last written 0x5";
        assert_eq!(found(arch, &all_lanes(arch, &text)), (odd, message.to_owned()));
        // Under a guard the others do not take part.
        let text = "andi %r3 %r0 #1; rtop @p0 %r3; @p0 ? ldi %s0 #7; @p0 ? addi %s1 %s0 #1; ori %r4 %s0 #0";
        let message = "read from `%s0` 0x7, where the lane itself has last written 0x0";
        assert_eq!(found(arch, &all_lanes(arch, text)), (even, message.to_owned()));
        // Predicates, as sources and as guards, which all active lanes read.
        for read in ["notp @p1 @s0", "@s0 ? nop", "@s0 ? split; join", "@s0 ? andp @s1 @p0 @p0"] {
            let text = format!("andi %r3 %r0 #1; rtop @p0 %r3; @p0 ? andp @s0 @p0 @p0; {read}");
            let message = "read from `@s0` 0x1, where the lane itself has last written 0x0";
            assert_eq!(found(arch, &all_lanes(arch, &text)), (even, message.to_owned()), "{read}");
        }
    }
}

/// A lane that has left a loop keeps what it had then, and not what the loop's end has left.
#[test]
fn an_audit_finds_temporal_divergence() {
    for arch in machines().filter(|arch| arch.lanes() > 1) {
        let text = "ori %r4 %r0 #0; ldi %s0 #0
             top: rtop @p0 %r4; anyp @p1 @p0; notp @p1 @p1; @p1 ? jmpi out
             @p0 ? split; notp @p1 @p0; @p1 ? jmpi end; addi %s0 %s0 #1; subi %r4 %r4 #1
             end: join; jmpi top
             out:";
        assert_eq!(audited(arch, &all_lanes(arch, text)), None, "{arch}");
        let (odd, message) = found(arch, &all_lanes(arch, &format!("{text} add %r5 %s0 %r0")));
        let all = u64::MAX >> (64 - lanes(arch));
        assert_eq!(odd, all & !(1 << (lanes(arch) - 1)), "{arch} {message}");
    }
}

#[test]
fn an_audit_has_nothing_against_what_lanes_agree_on() {
    for arch in machines() {
        for text in [
            // Each side reads its own.
            split("ldi %s0 #5; add %r4 %s0 %r0; st %r4 %s2 #0x1000", "ldi %s0 #6; add %r4 %s0 %r0"),
            // Both sides write the same.
            split("ldi %s0 #5", "ldi %s0 #5") + "; add %r4 %s0 %r0",
            // What was written before, and written again behind.
            format!("ldi %s0 #1; {}; add %r4 %s0 %r0; ldi %s1 #2; add %r4 %s1 %r0", split("ldi %s1 #5", "nop")),
            // An own value of the first lane is everyone's.
            "ori %s0 %r0 #0; add %r4 %s0 %r0; anyp @s0 @p1; @s0 ? nop; ballot %s1 @p1 #0; rtop @s1 %s1".to_owned(),
            // A skipped lane keeps a shared register without reading it.
            "rtop @p0 %r0; ldi %s0 #1; @p0 ? ldi %s0 #1; ffma %s0 %s0 %s0; add %r4 %s0 %r0".to_owned(),
            // A handler reads and writes what it likes.
            "ldi %s0 #9; ldi %r3 handler; skep %r3; trap; add %r4 %s0 %r0; halt
             handler: ldi %s0 #2; addi %s1 %s0 #1; reti".to_owned(),
        ] {
            let text = all_lanes(arch, &text.replace("st %r4 %s2 #0x1000", "nop"));
            assert_eq!(audited(arch, &text), None, "{arch} {text}");
        }
    }
}

/// Lanes that are cloned or activated go on from what there is, warps from what they are given.
#[test]
fn an_audit_knows_how_lanes_begin() {
    for arch in machines() {
        let last = lanes(arch) - 1;
        let n = lanes(arch);
        let text = format!(
            "ldi %s0 #5; ldi %s1 #6; eqp @s0 %s0 %s0; ldi %r3 #{last}; clone %r3; ldi %r4 #{n}
             jalis %r5 %r4 all
             all: add %r6 %s0 %s1; @s0 ? add %r6 %r5 %r5; rtop @p0 %r0; ldi %r5 one; jmprt %r5
             one: ldi %s0 #8; ldi %s1 again; jalrs %s2 %r4 %s1
             again: add %r6 %s0 %s2; halt"
        );
        assert_eq!(audited(arch, &text), None, "{arch}");
        let text = "ldi %r3 other; ldi %r4 #7; wspawn %s0 %r3 %r4; halt
             other: add %r4 %s0 %s1; halt";
        assert_eq!(audited(arch, text), None, "{arch}");
    }
}

/// A lane that becomes another's copy has written what the other has.
#[test]
fn an_audit_follows_clones() {
    for arch in machines().filter(|arch| arch.lanes() == 2) {
        let odd = "ldi %s0 #5; andp @s0 @p0 @p0; ldi %r4 #0";
        let read = "add %r5 %s0 %r0; @s0 ? nop";
        let text = split(&format!("{odd}; clone %r4"), read);
        assert_eq!(audited(arch, &all_lanes(arch, &text)), None, "{arch}");
        let (lanes, _) = found(arch, &all_lanes(arch, &split(odd, read)));
        assert_eq!(lanes, 1);
    }
}
