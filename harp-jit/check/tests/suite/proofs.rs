//! What is proved, and that nothing is which is a little different: what is computed alike, by whichever way, is known
//! to be the same, as long as nothing changes that it is computed from.

use std::time::{Duration, Instant};

use harp_check::{Regs, Role};
use harp_isa::abi::LaneField;
use harp_isa::{Gpr, Instruction, Op, WordSize};
use smallvec::smallvec;

use crate::{Function, JOIN, RETURN, jump, p, r, skip, sp, split, test};

fn op(op: Op) -> Instruction {
    Instruction::new(op)
}

/// Adds a number to a register.
fn add(dst: u8, src: u8, imm: i64) -> Instruction {
    op(Op::Addi { dst: r(dst), src: r(src), imm })
}

fn sum(dst: u8, a: u8, b: u8) -> Instruction {
    op(Op::Add { dst: r(dst), a: r(a), b: r(b) })
}

fn difference(dst: u8, a: u8, b: u8) -> Instruction {
    op(Op::Sub { dst: r(dst), a: r(a), b: r(b) })
}

/// Tests whether a register is zero.
fn is_zero(dst: u8, src: u8) -> Instruction {
    op(Op::Iszero { dst: p(dst), src: r(src) })
}

/// Where all lanes must agree on a predicate.
fn agree(guard: u8) -> Instruction {
    skip(guard, 0)
}

/// A store to a word of the frame, and a load from it.
fn store(value: u8, base: Gpr, offset: i64) -> Instruction {
    op(Op::St { value: r(value), base, offset })
}

fn load(dst: u8, base: Gpr, offset: i64) -> Instruction {
    op(Op::Ld { dst: r(dst), base, offset })
}

/// All but the last of these functions are proved, and that is not. The third register and the fourth have arguments,
/// too, of which the last is the same in all lanes. There is a word of the frame that stores may change.
fn all_but_last(why: &str, functions: &[&[Instruction]]) {
    for (number, code) in functions.iter().enumerate() {
        let code = [code, &[RETURN][..]].concat();
        let arguments = vec![r(0), r(1), r(2), r(3)];
        let uniform = vec![r(3)];
        let function = Function { arguments, uniform, exposed: -56..-52, ..Function::new(&code) };
        let found = function.check();
        assert_eq!(found.is_ok(), number + 1 < functions.len(), "{why}, {number}: {found:?}");
    }
}

/// Of lanes with the one predicate false, all have the other one true if it is the opposite.
fn apart(tests: &[Instruction], other: u8) -> Vec<Instruction> {
    [tests, &[split(0), skip(0, 1), agree(other), JOIN]].concat()
}

#[test]
fn conditions_are_found_again_in_other_words() {
    let sum = difference(2, 0, 1);
    all_but_last(
        "within a block",
        &[
            &apart(&[test(0, 0), test(1, 0)], 1),
            &apart(&[test(0, 0), is_zero(1, 0)], 1),
            &apart(&[sum, test(0, 2), sum, is_zero(1, 2)], 1),
            &apart(&[test(0, 0), difference(0, 0, 1), test(1, 0)], 1),
        ],
    );
    all_but_last("of other registers", &[&apart(&[test(0, 0), test(1, 1)], 1)]);
    // What is written where one is true, or the opposite of it, is read where the other is.
    let written = |guard, second| {
        let opposite = op(Op::Notp { dst: p(2), src: p(0) });
        let value = op(Op::Ldi { dst: r(4), imm: 1 }).guarded_by(p(guard));
        let read = op(Op::St { value: r(4), base: r(1), offset: 0 }).guarded_by(p(1));
        [test(0, 0), second, opposite, value, read]
    };
    for (same, opposite) in [(test(1, 0), is_zero(1, 0)), (is_zero(1, 0), test(1, 0))] {
        let guard = if same == test(1, 0) { 0 } else { 2 };
        all_but_last("in lanes", &[&written(guard, same), &written(guard, opposite)]);
    }
}

#[test]
fn conditions_of_selections_are_found_again() {
    let selected = |dst, other| {
        let copied = op(Op::Ori { dst: r(2), src: r(other), imm: 0 });
        [copied, add(2, 1, 1).guarded_by(p(2)), test(dst, 2)]
    };
    let both = |other| [&[test(2, 0)][..], &selected(0, 1), &selected(1, other)].concat();
    all_but_last("selected alike", &[&apart(&both(1), 1), &apart(&both(0), 1)]);
}

#[test]
fn what_is_used_often_is_looked_at_once() {
    let begun = Instant::now();
    let computed = [&[difference(2, 0, 1)][..], &[sum(2, 2, 2); 40]].concat();
    let twice = [&computed[..], &[test(0, 2)], &computed, &[is_zero(1, 2)]].concat();
    all_but_last("the steps are many", &[&apart(&twice, 1), &[test(0, 2), agree(0)]]);
    assert!(begun.elapsed() < Duration::from_secs(20), "they are, and not the ways through them");
}

/// One side of a split goes on with a register, the other loads from the word of the frame that held the same.
#[test]
fn what_was_in_two_places_is_the_same_from_either() {
    let joined = |stored, before: &[Instruction]| {
        let begin = [store(stored, sp(), -64), test(0, 0)];
        let side = [add(3, 3, 1), load(3, sp(), -64)];
        let after = [JOIN, test(1, 3), agree(1)];
        [&begin[..], before, &[split(0), skip(0, 2)], &side, &after].concat()
    };
    let (other, this) = (add(2, 2, 1), add(3, 3, 1));
    all_but_last("one is kept", &[&joined(3, &[]), &joined(3, &[other]), &joined(3, &[this])]);
    all_but_last("they differ", &[&joined(0, &[])]);
    // What lanes hold alike that go the same way: on both sides, the argument of the first split.
    let moved = |from| op(Op::Ori { dst: r(4), src: r(from), imm: 0 });
    let twice = |from| {
        let inner = [split(1), skip(1, 2), add(2, 2, 1), moved(5), JOIN, test(2, 4), agree(2)];
        let begin = [moved(from), op(Op::Ori { dst: r(5), src: r(from), imm: 0 })];
        [&begin[..], &[test(0, 0), test(1, 1), split(0), skip(0, 7)], &inner, &[JOIN]].concat()
    };
    all_but_last("at the inner one, too", &[&twice(3), &twice(2)]);
}

/// The group of a warp is the same by each lane's control block, and by that of lane 0.
#[test]
fn lanes_know_their_group() {
    // The stacks are of one byte, for 16 lanes.
    let loaded = |down, up, field: LaneField| {
        let number = op(Op::Shri { dst: r(4), src: sp(), imm: down });
        let block = op(Op::Shli { dst: r(4), src: r(4), imm: up });
        let group = load(4, r(4), field.offset(WordSize::Four).into());
        [number, block, group, load(4, r(4), 0), test(0, 4), agree(0)]
    };
    let (own, first) = (loaded(0, 0, LaneField::Group), loaded(4, 4, LaneField::Group));
    all_but_last("aligned to all stacks", &[&own, &first, &loaded(3, 3, LaneField::Group)]);
    all_but_last("to the same", &[&loaded(4, 0, LaneField::Group)]);
    all_but_last("nothing else", &[&loaded(4, 4, LaneField::LocalIndex)]);
}

/// The scratch word by which lanes vote is in the control block of lane 0.
#[test]
fn lanes_vote_by_the_scratch_word() {
    let vote = |bits, field: LaneField| {
        let offset = field.offset(WordSize::Four).into();
        let number = op(Op::Shri { dst: r(4), src: sp(), imm: bits });
        let block = op(Op::Shli { dst: r(4), src: r(4), imm: bits });
        let zero = op(Op::Ldi { dst: r(5), imm: 0 });
        let mark = store(4, r(4), offset).guarded_by(p(0));
        let begin = [test(0, 0), number, block, zero, store(5, r(4), offset), mark];
        [&begin[..], &[load(5, r(4), offset), test(1, 5), agree(1), RETURN]].concat()
    };
    let is_proved =
        |kernel, code: &[Instruction]| Function { kernel, ..Function::new(code) }.check().is_ok();
    assert!(is_proved(true, &vote(4, LaneField::ScratchWord)));
    assert!(!is_proved(true, &vote(0, LaneField::ScratchWord)), "each lane's own");
    assert!(!is_proved(true, &vote(4, LaneField::Lanes)), "another word");
    assert!(!is_proved(false, &vote(4, LaneField::ScratchWord)), "stacks may not be aligned");
}

/// What lanes write where a condition is false is meant where it is found false again.
#[test]
fn conditions_are_found_again_in_other_blocks() {
    let written = |first, between: &[Instruction], second| {
        let value = op(Op::Ldi { dst: r(4), imm: 1 });
        let only = |tested, inside| [tested, split(0), skip(0, 1), inside, JOIN];
        let read = op(Op::St { value: r(4), base: r(1), offset: 0 });
        [&only(first, value)[..], between, &only(second, read)].concat()
    };
    let again = |between: &[Instruction]| written(test(0, 0), between, test(0, 0));
    all_but_last(
        "nothing changes",
        &[&again(&[add(1, 1, 4)]), &again(&[add(2, 0, 1)]), &again(&[add(0, 0, 1)])],
    );
    let computed = |between: &[Instruction]| {
        let first = [&[difference(2, 0, 1)][..], between].concat();
        [&first[..], &written(test(0, 2), &[difference(2, 0, 1)], test(0, 2))].concat()
    };
    all_but_last(
        "or before it is tested",
        &[&computed(&[add(5, 0, 1)]), &computed(&[add(0, 0, 1)])],
    );
    // The value is spilled, and loaded again each time.
    let spilled = |to, before: &[Instruction], between: &[Instruction]| {
        let loaded = load(0, sp(), to);
        let code = written(test(0, 0), &[between, &[loaded]].concat(), test(0, 0));
        let begin = [store(0, sp(), to), test(2, 3)];
        [&begin[..], before, &[loaded], &code].concat()
    };
    let lost = [add(0, 0, 1)];
    let stored = [add(0, 0, 1), store(0, sp(), -64)];
    all_but_last(
        "in the frame",
        &[&spilled(-64, &[agree(2)], &lost), &spilled(-64, &[agree(2)], &stored)],
    );
    let pointed = [store(3, r(1), 4), agree(2)];
    all_but_last(
        "where others store",
        &[&spilled(-56, &[agree(2)], &[agree(2)]), &spilled(-56, &[agree(2)], &pointed)],
    );
    // On one way only, the register holds what was spilled.
    let on_ways = |changed| {
        let code = written(test(0, 0), &[load(0, sp(), -64)], test(0, 0));
        [&[store(0, sp(), -64), test(2, 3), skip(2, 1), changed][..], &code].concat()
    };
    all_but_last("by all ways", &[&on_ways(add(5, 0, 1)), &on_ways(add(0, 0, 1))]);
}

/// Where it is false that a register is not zero, it is, and so lanes agree about what is computed from it.
#[test]
fn what_is_tested_is_zero_in_some_lanes() {
    let compared = [add(2, 0, 1), test(1, 2), agree(1)];
    let passed = |tested| [&[tested, split(0), skip(0, 3)][..], &compared, &[JOIN]].concat();
    let taken =
        |tested| [&[tested, split(0), skip(0, 1), jump(3)][..], &compared, &[JOIN]].concat();
    all_but_last("where it is zero", &[&passed(test(0, 0)), &taken(test(0, 0))]);
    all_but_last("where it is not", &[&taken(is_zero(0, 0)), &passed(is_zero(0, 0))]);
}

/// Both sides of a split come through `code`, one after the other, or execute their own. The lanes must agree about
/// what they leave in the third register.
fn on_both_sides(before: &[Instruction], sides: [&[Instruction]; 2]) -> Vec<Instruction> {
    let [passed, taken] = sides;
    let to_join = jump(taken.len() as i64);
    let parted = [test(0, 0), split(0), skip(0, passed.len() as i64 + 1)];
    let met = [JOIN, test(1, 2), agree(1)];
    [before, &parted, passed, &[to_join], taken, &met].concat()
}

#[test]
fn what_both_sides_compute_alike_is_the_same() {
    let alike = |passed: &[Instruction], taken: &[Instruction]| on_both_sides(&[], [passed, taken]);
    all_but_last(
        "the same of the same",
        &[
            &alike(&[add(2, 3, 1)], &[add(2, 3, 1)]),
            &alike(&[add(4, 3, 1), sum(2, 4, 3)], &[add(5, 3, 1), sum(2, 5, 3)]),
            &alike(&[add(2, 3, 1)], &[add(2, 3, 2)]),
        ],
    );
    all_but_last("of what varies", &[&alike(&[add(2, 1, 1)], &[add(2, 1, 1)])]);
    all_but_last("other operations", &[&alike(&[sum(2, 3, 3)], &[difference(2, 3, 3)])]);
    all_but_last("one side does nothing", &[&alike(&[add(2, 3, 0)], &[])]);
    let moved = |to, from| op(Op::Ori { dst: r(to), src: r(from), imm: 0 });
    all_but_last(
        "moved by other ways",
        &[&alike(&[moved(2, 3)], &[moved(4, 3), moved(2, 4)]), &alike(&[moved(2, 3)], &[])],
    );
    // What is there before is the same in all lanes, too.
    let over = |passed: &[Instruction], taken: &[Instruction]| {
        on_both_sides(&[add(2, 3, 1), test(2, 3), add(4, 3, 2)], [passed, taken])
    };
    let [always, sometimes] = [moved(2, 3), moved(2, 3).guarded_by(p(2))];
    all_but_last("over something else", &[&over(&[always], &[always]), &over(&[always], &[])]);
    all_but_last(
        "in some lanes",
        &[&over(&[sometimes], &[sometimes]), &over(&[sometimes], &[always])],
    );
    let left = [moved(2, 3).guarded_by(p(4)), split(4), skip(4, 1), op(Op::Trap {}), JOIN];
    let left = &[&[test(4, 1)][..], &left].concat();
    all_but_last("in all that are left", &[&over(left, &[always]), &over(left, &[])]);
}

/// Lanes that a predicate is true in agree about what was moved where it was, on either side of a split.
#[test]
fn what_is_moved_in_some_lanes_is_followed_when_their_predicate_changes() {
    let moved = op(Op::Ori { dst: r(2), src: r(4), imm: 0 }).guarded_by(p(2));
    let opposite = op(Op::Notp { dst: p(2), src: p(2) });
    let before = [add(2, 3, 1), add(4, 3, 2), test(2, 1)];
    let code = |passed: [Instruction; 2], taken: [Instruction; 2]| {
        let parted = [test(0, 0), split(0), skip(0, 3)];
        let within = [test(1, 2), agree(1)];
        let met = [JOIN, split(2), skip(2, 1), jump(2)];
        [&before[..], &parted, &passed, &[jump(2)], &taken, &met, &within, &[JOIN]].concat()
    };
    let behind = [moved, opposite];
    all_but_last(
        "before or behind",
        &[
            &code(behind, behind),
            &code([opposite, moved], [opposite, moved]),
            &code(behind, [opposite, moved]),
        ],
    );
}

/// What both sides of a split go through, one after the other, behind what only the first one does.
fn through(
    before: &[Instruction],
    first: &[Instruction],
    both: &[Instruction],
) -> Vec<Instruction> {
    let parted = [test(0, 0), split(0), skip(0, first.len() as i64)];
    [before, &parted, first, both, &[JOIN, test(1, 2), agree(1)]].concat()
}

/// Another value for each side of the split that comes, the same in all its lanes, in the fifth register; and whether
/// it is the greater one.
fn for_each_side() -> [Instruction; 4] {
    [
        add(4, 3, 0),
        test(0, 0),
        add(4, 3, 1).guarded_by(p(0)),
        op(Op::Orp { dst: p(3), a: p(0), b: p(0) }),
    ]
}

#[test]
fn what_decides_about_the_way_is_depended_on() {
    // A branch on which the lanes of a side agree, and what they do on either side of it.
    let nothing = add(5, 3, 0);
    let decided = [skip(2, 2), add(2, 3, 1), jump(1), add(2, 3, 2), nothing];
    let other = op(Op::Notp { dst: p(2), src: p(2) });
    // No test for zero: from that it would be known what the register holds on one of the ways.
    let before = [add(5, 3, 1), op(Op::Ltup { dst: p(2), a: r(3), b: r(5) })];
    let [alike, otherwise] = [nothing, other].map(|first| through(&before, &[first], &decided));
    all_but_last("both sides decide by the same", &[&alike, &otherwise]);
    let nested = |inner| {
        let decided = [skip(2, 4), skip(inner, 2), add(2, 3, 1), jump(1), add(2, 3, 2), nothing];
        let before = [&for_each_side()[..], &[add(2, 3, 0)], &before].concat();
        through(&before, &[nothing], &decided)
    };
    all_but_last("further in", &[&nested(2), &nested(3)]);
    // Of the two blocks of a loop, one is entered, and the first one counts: it has no head.
    let loop_of_two = |entry| {
        let rounds = [
            skip(entry, 1),
            add(2, 2, 1),
            add(5, 5, 1),
            difference(1, 5, 3),
            test(1, 1),
            skip(1, -5),
        ];
        let before = [add(2, 3, 0), add(5, 3, -8), test(2, 3)];
        through(&[&for_each_side()[..], &before].concat(), &[nothing], &rounds)
    };
    all_but_last("in what has no head", &[&loop_of_two(3)]);
}

#[test]
fn rounds_depend_on_what_they_begin_with() {
    // Until the number of rounds is there.
    let until = |end| [add(2, 2, 1), difference(5, 2, end), test(2, 5), skip(2, -4)];
    let nothing = add(5, 3, 0);
    let begin = |imm| op(Op::Ldi { dst: r(2), imm });
    let own = |before: Instruction, first: Instruction, rounds: &[Instruction]| {
        through(&[&for_each_side()[..], &[before]].concat(), &[first], rounds)
    };
    let same = &own(begin(0), nothing, &until(3));
    all_but_last("both sides go round the same loop", &[same, &own(begin(0), begin(5), &until(3))]);
    all_but_last("as often", &[same, &own(begin(0), nothing, &until(4))]);
    // So many rounds, in which something is added.
    let counted = |before, first, what| {
        let left = [difference(5, 1, 3), is_zero(2, 5), skip(2, 3)];
        let round = [sum(2, 2, what), add(1, 1, 1), jump(-6)];
        own(before, first, &[&[add(1, 3, -8)][..], &left, &round, &[nothing]].concat())
    };
    let same = &counted(add(2, 3, 0), nothing, 3);
    all_but_last("from the same on", &[same, &counted(add(2, 4, 0), nothing, 3)]);
    all_but_last("from what only they have", &[same, &counted(add(2, 3, 0), add(2, 3, 1), 3)]);
    all_but_last("of the same", &[same, &counted(add(2, 3, 0), nothing, 4)]);
}

/// What a register holds at the head of a loop is something else in each round: there is one that keeps it from the round
/// before, where there was one.
#[test]
fn rounds_are_told_apart() {
    let kept = |first, last| {
        let begin = [op(Op::Ldi { dst: r(5), imm: 0 }), test(4, 5), add(1, 3, -8), first];
        let left = [difference(5, 1, 3), is_zero(2, 5), skip(2, 5)];
        let next =
            [add(2, 1, 0), add(1, 1, 1), op(Op::Ldi { dst: r(5), imm: 1 }), test(4, 5), jump(-8)];
        let own = [last, add(2, 1, 0), add(5, 3, 0)];
        let code =
            through(&for_each_side(), &[add(5, 3, 0)], &[&begin[..], &left, &next, &own].concat());
        let (code, [join, ..]) = code.split_last_chunk::<3>().expect("it is long");
        let among = [split(4), skip(4, 1), jump(2), test(1, 2), agree(1), JOIN];
        [code, &[*join], &among].concat()
    };
    let always = add(5, 3, 0);
    for first in [load(2, r(0), 0), add(2, 3, 0)] {
        all_but_last("one and the one before", &[&kept(first, always), &kept(first, skip(3, 1))]);
    }
}

#[test]
fn words_of_large_frames_are_found() {
    let begin =
        [op(Op::Addi { dst: sp(), src: sp(), imm: -512 }), op(Op::Ldi { dst: r(1), imm: 256 })];
    let address = op(Op::Add { dst: r(1), a: r(1), b: sp() });
    let loaded = |between: &[Instruction], offset| {
        let back = op(Op::Addi { dst: sp(), src: sp(), imm: 512 });
        let rest = [store(3, r(1), 192), back, load(2, sp(), offset), test(1, 2), agree(1)];
        [&begin[..], &[address], between, &rest].concat()
    };
    let copied = op(Op::Ori { dst: r(1), src: r(1), imm: 0 });
    all_but_last(
        "by another register",
        &[&loaded(&[], -64), &loaded(&[copied], -64), &loaded(&[], -68)],
    );
    let sometimes = add(1, 1, 4).guarded_by(p(0));
    all_but_last("in all lanes", &[&loaded(&[test(0, 0), sometimes], -60)]);
}

#[test]
fn heights_of_the_stack_go_round() {
    let called = || Role::Call {
        hands: smallvec![],
        asks: smallvec![],
        returns: smallvec![],
        popped: i64::MIN,
        depends: vec![],
    };
    let call = op(Op::Jalr { link: r(7), target: r(3) });
    let code = [call, store(3, sp(), -64), call, store(3, sp(), -64), RETURN];
    let mut function = Function { uniform: vec![r(3)], ..Function::new(&code) };
    function.roles[0] = called();
    function.roles[2] = called();
    // Whatever it says of it.
    _ = function.check();
}

#[test]
fn promises_hold_if_what_they_need_does() {
    let leave = |result| Role::Leave {
        hands: smallvec![r(0)],
        asks: smallvec![],
        depends: vec![(r(result), smallvec![r(result)])],
    };
    for (needs, holds) in [(&[0, 1][..], true), (&[0], false), (&[1], false), (&[], false)] {
        let needs: Regs = needs.iter().map(|&reg| r(reg)).collect();
        let mut function = Function::new(&[sum(0, 0, 1), RETURN]);
        function.roles[1] = leave(0);
        function.promises = vec![(r(0), needs)];
        assert_eq!(function.check().is_ok(), holds, "{:?}", function.promises);
    }
}

/// Each round tests the same, which says nothing of whether lanes agree.
#[test]
fn lanes_may_disagree_in_the_first_round_as_in_any_other() {
    let round = |tested| [add(2, 3, 1), test(0, tested), agree(0), test(1, 3), skip(1, -4)];
    all_but_last("all rounds", &[&round(3), &round(0)]);
}
