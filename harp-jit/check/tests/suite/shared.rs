//! What is known of registers that the lanes of a warp share.

use harp_check::{CodeFault, Role};
use harp_isa::{Gpr, Instruction, Op, Pred};
use smallvec::smallvec;

use crate::{Function, JOIN, RETURN, jump, p, r, s, skip, split, test};

fn op(op: Op) -> Instruction {
    Instruction::new(op)
}

fn set(dst: Gpr, imm: i64) -> Instruction {
    op(Op::Ldi { dst, imm })
}

/// A copy, which the first lane makes for all if it is shared.
fn copy(dst: Gpr, src: Gpr) -> Instruction {
    op(Op::Ori { dst, src, imm: 0 })
}

/// What is in a register is seen, by each lane for itself.
fn see(reg: Gpr) -> [Instruction; 2] {
    let sum = op(Op::Add { dst: r(2), a: r(1), b: reg });
    [sum, op(Op::St { value: r(2), base: r(1), offset: 0 })]
}

/// The predicate that lanes share.
fn shared_pred() -> Pred {
    p(8)
}

/// The last of some functions is refused for this reason, and the others are proved. The fourth register has an argument
/// that is the same in all lanes.
fn only_last_is_refused(functions: &[&[&[Instruction]]], why: impl Fn(&CodeFault) -> bool) {
    let (last, others) = functions.split_last().expect("there are some");
    let check = |code: &[&[Instruction]]| {
        let arguments = vec![r(0), r(1), r(3)];
        let code = [&code.concat()[..], &[RETURN]].concat();
        Function { arguments, uniform: vec![r(3)], ..Function::new(&code) }.check()
    };
    for (number, code) in others.iter().enumerate() {
        let found = check(code);
        assert!(found.is_ok(), "{number}: {found:?}");
    }
    let found = check(last).expect_err("something is wrong");
    assert!(why(&found.fault), "{found}");
}

fn is_undefined(fault: &CodeFault) -> bool {
    matches!(fault, CodeFault::Undefined(_))
}

fn is_divergent(fault: &CodeFault) -> bool {
    matches!(fault, CodeFault::Divergent(_))
}

/// The sides of a split.
fn sides(passed: &[Instruction], taken: &[Instruction]) -> Vec<Instruction> {
    let parted = [test(0, 0), split(0), skip(0, passed.len() as i64 + 1)];
    [&parted[..], passed, &[jump(taken.len() as i64)], taken, &[JOIN]].concat()
}

#[test]
fn one_side_finds_what_the_other_wrote() {
    let begin = [set(s(0), 1)];
    let (write, read) = ([set(s(0), 2)], see(s(0)));
    let own = [write[0], read[0], read[1]];
    only_last_is_refused(
        &[
            &[&begin, &sides(&read, &read)],
            &[&begin, &sides(&own, &own)],
            &[&begin, &sides(&write, &read)],
        ],
        is_undefined,
    );
    only_last_is_refused(
        &[&[&begin, &sides(&own, &[])], &[&begin, &sides(&read, &write)]],
        is_undefined,
    );
}

#[test]
fn behind_the_join_is_what_either_side_wrote() {
    let begin = [set(s(0), 1)];
    let (write, read) = ([set(s(0), 1)], see(s(0)));
    only_last_is_refused(
        &[
            &[&begin, &sides(&[], &[]), &read],
            &[&begin, &sides(&write, &[]), &write, &read],
            &[&begin, &sides(&[], &write), &read],
        ],
        is_undefined,
    );
    // Behind a trap no lane runs on.
    let trapped = [set(s(0), 1), op(Op::Trap {})];
    only_last_is_refused(
        &[&[&begin, &sides(&trapped, &read), &read], &[&begin, &sides(&write, &read), &read]],
        is_undefined,
    );
    // On the way round a loop, too: the first side writes what the second one finds in the next round.
    let round = |first: &[Instruction]| {
        let round = sides(first, &read);
        let back = -(round.len() as i64 + 2);
        [&begin[..], &round, &[test(1, 3), skip(1, back)]].concat()
    };
    only_last_is_refused(&[&[&round(&[])], &[&round(&write)]], is_undefined);
}

#[test]
fn lanes_read_what_the_first_one_computed() {
    let read = see(s(0));
    let [same, other] = [r(3), r(1)].map(|from| [copy(s(0), from)]);
    only_last_is_refused(&[&[&same, &read], &[&other, &read]], is_divergent);
    // The first lane's address is where a row begins, and what is done once is asked of the first lane.
    let once = [op(Op::Addi { dst: s(0), src: s(0), imm: 4 })];
    let row = [
        op(Op::Ld { dst: r(2), base: s(0), offset: 0 }),
        op(Op::St { value: r(2), base: s(0), offset: 0 }),
    ];
    only_last_is_refused(
        &[&[&other, &row], &[&other, &once, &row], &[&other, &once, &read]],
        is_divergent,
    );
    // A row is not the same in all lanes, whatever its address is.
    let loaded = |dst| [op(Op::Ld { dst, base: s(0), offset: 0 })];
    let agree = |reg| [op(Op::Rtop { dst: p(1), src: reg }), skip(1, 0)];
    only_last_is_refused(
        &[&[&same, &loaded(s(0)), &agree(s(0))], &[&same, &loaded(r(2)), &agree(r(2))]],
        is_divergent,
    );
}

#[test]
fn what_some_lanes_did_not_write_is_written_in_none() {
    let some = [test(0, 0), set(r(4), 1).guarded_by(p(0))];
    let all = [set(r(4), 1)];
    let shared = [copy(s(0), r(4))];
    let among = sides(&[], &see(s(0)));
    only_last_is_refused(&[&[&all, &shared, &among], &[&some, &shared, &among]], is_undefined);
}

#[test]
fn guards_of_single_lanes_write_for_all() {
    let begin = [set(s(0), 1), test(0, 0), op(Op::Rtop { dst: shared_pred(), src: r(3) })];
    let guarded = |guard| [set(s(0), 2).guarded_by(guard)];
    let read = see(s(0));
    only_last_is_refused(
        &[&[&begin, &guarded(shared_pred()), &read], &[&begin, &guarded(p(0)), &read]],
        is_undefined,
    );
    // A shared guard is the first lane's.
    let varies = [op(Op::Rtop { dst: shared_pred(), src: r(0) })];
    let guarded = [set(r(1), 2).guarded_by(shared_pred())];
    only_last_is_refused(&[&[&begin, &guarded], &[&varies, &guarded]], is_divergent);
}

#[test]
fn functions_keep_what_is_the_kernels() {
    let call = op(Op::Jalr { link: r(7), target: r(3) });
    let role = Role::Call {
        hands: smallvec![],
        asks: smallvec![],
        returns: smallvec![r(1)],
        popped: 0,
        depends: vec![],
    };
    let over_call = |reg: Gpr| {
        let code = [&[set(reg, 1), call][..], &see(reg), &[op(Op::Trap {})]].concat();
        let mut function = Function { kernel: true, ..Function::new(&code) };
        function.roles[1] = role.clone();
        function.arguments.push(r(3));
        function.uniform = vec![r(3)];
        function.check()
    };
    assert_eq!(over_call(s(1)), Ok(()));
    let lost = over_call(s(0)).expect_err("the function may have written it");
    assert!(is_undefined(&lost.fault), "{lost}");
    for (kernel, index, is_right) in [(true, 1, true), (false, 0, true), (false, 1, false)] {
        let function = Function { kernel, ..Function::new(&[set(s(index), 1), RETURN]) };
        match function.check() {
            Ok(()) => assert!(is_right),
            Err(error) => {
                assert!(!is_right, "{error}");
                let text = "at 0x0, `ldi %s1 #0x1;`: it writes %s1, which the lanes share and only kernels change";
                assert_eq!(error.to_string(), text);
            }
        }
    }
}
