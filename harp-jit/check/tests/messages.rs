//! What the checker says of code in which something is wrong: which instruction, what, which lanes, which path.

use harp_check::{Bytes, Entry, Note, Record, Role, Selected, check};
use harp_isa::{ArchId, Gpr, Instruction, Op, Opcode, Pred};
use smallvec::{SmallVec, smallvec};

fn r(index: u8) -> Gpr {
    Gpr::new(index)
}

fn p(index: u8) -> Pred {
    Pred::new(index)
}

/// Tests a register.
fn test(dst: u8, src: u8) -> Instruction {
    Instruction::new(Op::Rtop { dst: p(dst), src: r(src) })
}

fn split(guard: u8) -> Instruction {
    Instruction::new(Op::Split {}).guarded_by(p(guard))
}

/// Goes on behind so many more instructions.
fn skip(guard: u8, count: i64) -> Instruction {
    Instruction::new(Op::Jmpi { rel: 4 * count }).guarded_by(p(guard))
}

const JOIN: Instruction = Instruction { guard: None, op: Op::Join {} };

/// Back to the caller.
const RETURN: Instruction = Instruction { guard: None, op: Op::Jmpr { target: Gpr::new(7) } };

fn plain() -> Instruction {
    Instruction::new(Op::Ldi { dst: r(2), imm: 1 })
}

/// What the checker says of a function with arguments in the first two registers and a private word in its frame. Each instruction, of four bytes, is
/// a block of its own.
fn message(code: &[Instruction], role: &Role) -> String {
    let arch: ArchId = "4w8/8/16/16+x".parse().expect("a machine");
    let private = std::iter::once(-64..-60).collect();
    let entry = Entry { arguments: vec![r(0), r(1)], private, ..Entry::default() };
    let mut record = Record { entry, ..Record::default() };
    let mut bytes = Vec::new();
    for (block, instruction) in (0..).zip(code) {
        harp_isa::encode(instruction, arch, &mut bytes).expect("the machine has room for it");
        let target = |rel: i64| block + 1 + (rel / 4) as u32;
        let successors: SmallVec<[u32; 2]> = match (instruction.op, instruction.guard) {
            (Op::Jmpi { rel }, None) => smallvec![target(rel)],
            (Op::Jmpi { rel }, Some(_)) => smallvec![target(rel), block + 1],
            (Op::Jmpr { .. }, _) => smallvec![],
            _ => smallvec![block + 1],
        };
        record.successors.push(successors);
        let role = role.clone();
        record.notes.push((4 * block, Note { block, position: 0, undefined: smallvec![], role }));
    }
    record.passes = vec![smallvec![]; code.len()];
    record.undefined = vec![smallvec![]; code.len()];
    let bytes = Bytes { arch, bytes: &bytes, literals: &[], linked: &[] };
    check(bytes, &record).expect_err("something is wrong").to_string()
}

#[test]
fn what_is_wrong_is_said_with_lanes_and_path() {
    let written = Instruction::new(Op::Ldi { dst: r(2), imm: 1 }).guarded_by(p(0));
    let stored = Instruction::new(Op::St { value: r(2), base: r(0), offset: 0 });
    let read = Instruction::new(Op::Ptor { dst: r(1), src: p(0) });
    let jump = Instruction::new(Op::Jmpi { rel: 8 });
    let [both, one] = [test(0, 0), test(1, 1)];
    // The stack pointer is the last register but one.
    let in_frame = |offset| Instruction::new(Op::St { value: r(0), base: r(6), offset });
    for (code, text) in [
        (
            &[both, skip(0, 0), RETURN][..],
            "at 0x4, `@p0 ? jmpi #0x0;`: active lanes may disagree about @p0, about which the whole warp must agree \
             here; for example, one lane has @p0 = 0 and another has @p0 = 1",
        ),
        (
            &[both, one, split(0), skip(0, 1), skip(1, 0), JOIN, RETURN],
            "at 0x10, `@p1 ? jmpi #0x0;`: active lanes may disagree about @p1, about which the whole warp must agree \
             here; for example, one lane has @p1 = 0 and another has @p1 = 1; \
             on the path inside of the split at 0x8, where its predicate is false",
        ),
        (
            &[both, written, stored, read, RETURN],
            "at 0x8, `st %r2 %r0 #0x0;`: some lanes may read %r2 where nothing was written that is meant for them; \
             for example, a lane that has @p0 = 0",
        ),
        (
            &[plain(), JOIN, RETURN],
            "at 0x4, `join ;`: a join closes a split, but the path from 0x0 comes here with none open",
        ),
        (
            &[both, split(0), skip(0, 2), JOIN, RETURN, JOIN, RETURN],
            "at 0xc, `join ;`: the split at 0x4 is joined here and at 0x14, so that its sides do not meet",
        ),
        (
            &[both, split(0), skip(0, 1), RETURN, RETURN],
            "it leaves the function with the split at 0x4 open, whose other sides would never run",
        ),
        (
            &[both, skip(0, 2), split(0), skip(0, 0), plain(), RETURN],
            "at 0x10, `ldi %r2 #0x1;`: one path comes here with no split open, and the one from 0xc with the split at \
             0x8",
        ),
        (
            &[both, skip(0, 3), split(1), skip(1, 0), jump, split(1), skip(1, 0), JOIN, RETURN],
            "at 0x1c, `join ;`: this joins the split at 0x8 on one path and the split at 0x14 on another",
        ),
        (
            &[both, split(0), plain(), RETURN],
            "a split stands right before the branch on its predicate, but the next instruction is no such branch",
        ),
        (
            // A misaligned store ends with its word, which lies before the private one.
            &[in_frame(-65), in_frame(-61), RETURN],
            "at 0x4, `st %r0 %r6 #0xffffffffffffffc3;`: it may write a word of the frame that only spills and saved registers \
             use",
        ),
        (
            &[both, skip(0, 1), split(0), skip(0, 0), RETURN],
            "it branches for the split in front of it, but a path leads here that passes the split by",
        ),
    ] {
        let message = message(code, &Role::Part { guard: None, defines: None });
        assert!(message.ends_with(text), "{message}");
    }
}

#[test]
fn other_instructions_than_selected_are_named() {
    let selected = Selected {
        opcode: Opcode::Sub,
        guard: None,
        predicates: smallvec![],
        claims: Default::default(),
        steers: false,
    };
    assert_eq!(
        message(&[plain(), RETURN], &Role::Selected(selected)),
        "at 0x0, `ldi %r2 #0x1;`: `sub` was selected here"
    );
}
