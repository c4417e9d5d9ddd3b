//! What the checker says of code in which something is wrong: which instruction, what, which lanes, which path.

use harp_check::{Bytes, Claims, Entry, Record, Role, Selected, check};
use harp_isa::{Instruction, Op, Opcode};
use smallvec::smallvec;

use crate::{Function, JOIN, PART, RETURN, p, r, skip, split, test};

fn plain() -> Instruction {
    Instruction::new(Op::Ldi { dst: r(2), imm: 1 })
}

/// What the checker says of it.
fn message(code: &[Instruction], role: &Role) -> String {
    let function = Function { roles: vec![role.clone(); code.len()], ..Function::new(code) };
    function.check().expect_err("something is wrong").to_string()
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
        let message = message(code, &PART);
        assert!(message.ends_with(text), "{message}");
    }
}

#[test]
fn other_instructions_than_selected_are_named() {
    let selected = Selected {
        opcode: Opcode::Sub,
        guard: None,
        predicates: smallvec![],
        claims: Claims::default(),
        steers: false,
    };
    assert_eq!(
        message(&[plain(), RETURN], &Role::Selected(selected)),
        "at 0x0, `ldi %r2 #0x1;`: `sub` was selected here"
    );
}

#[test]
fn what_is_not_there_is_named() {
    let lacks = "the record names a register that the machine lacks, ";
    let mut function = Function::new(&[RETURN]);
    function.arguments.push(r(10));
    let error = function.check().expect_err("there are ten registers");
    assert_eq!(error.to_string(), format!("{lacks}%r10"));
    let leaves = Role::Leave { hands: smallvec![r(63)], asks: smallvec![], depends: Vec::new() };
    assert_eq!(message(&[RETURN], &leaves), format!("{lacks}%r63"));
    let lists = Record { successors: vec![smallvec![1]], ..Record::default() };
    let lists = |described| Record {
        passes: vec![smallvec![]; described],
        undefined: vec![smallvec![]; described],
        ..lists.clone()
    };
    let arch = "4w8/2/4/1".parse().expect("a machine");
    let bytes = Bytes { arch, bytes: &[], literals: &[], linked: &[] };
    for (described, block) in [(0, 0), (1, 1)] {
        let error = check(bytes, &lists(described)).expect_err("there is no such block");
        assert_eq!(error.to_string(), format!("the record names block {block} of {described}"));
    }
}

#[test]
fn frames_that_cannot_be_followed_are_named() {
    let arch = "4w8/2/4/1".parse().expect("a machine");
    let mut code = Vec::new();
    harp_isa::encode(&RETURN, arch, &mut code).expect("an instruction");
    let bytes = Bytes { arch, bytes: &code, literals: &[], linked: &[] };
    let frame = |private: &[(i64, i64)]| {
        let private = private.iter().map(|&(start, end)| start..end).collect();
        let entry = Entry { private, ..Entry::default() };
        let described = Record {
            successors: vec![smallvec![]],
            passes: vec![smallvec![]],
            undefined: vec![smallvec![]],
            ..Record::default()
        };
        check(bytes, &Record { entry, ..described }).map_err(|error| error.to_string())
    };
    let names = |bytes: u64| {
        Err(format!("the record names {bytes} private bytes of the frame, more than 16777216"))
    };
    assert_eq!(frame(&[(-8, 0), (i64::MAX, i64::MIN)]), frame(&[(-8, 0)]));
    assert_eq!(frame(&[(-(1 << 24), 0), (0, 1)]).map(|_| ()), names((1 << 24) + 1));
    assert_eq!(frame(&[(i64::MIN, i64::MAX)]).map(|_| ()), names(i64::MAX as u64));
}
