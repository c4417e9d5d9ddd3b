//! What fails is made smaller, and stays what it is.

use harp_isa::{ArchId, WordSize};
use harp_jit::OptLevel;
use harp_tests::functions::parse;
use harp_tests::generate::Kind;
use harp_tests::machines::Machines;
use harp_tests::oracle::{Case, Start};
use harp_tests::random::{Failure, Target, WAYS, check_generated, shrink};
use harp_tests::workloads;

#[test]
fn only_what_fails_is_left() {
    // Something that the oracle does not know, in the false side of a branch, among much else.
    let text = "function %kernel(i32) fast {
            fn0 = %harp_global_id_x() -> i32
            fn1 = %harp_warp_id() -> i32
            fn2 = %g(i32) -> i32
        block0(v0: i32):
            v1 = call fn0()
            v2 = call fn2(v1)
            v3 = iconst.i32 1
            v4 = band v1, v3
            brif v4, block1, block2(v2)
        block1:
            v5 = imul v2, v1
            jump block2(v5)
        block2(v6: i32):
            v7 = call fn1()
            v8 = iadd v6, v7
            brif v8, block3, block4
        block3:
            trap user1
        block4:
            return
        }
        function %g(i32) -> i32 {
        block0(v0: i32):
            v1 = imul v0, v0
            return v1
        }";
    let start = Start::Launch { extents: [5, 1, 1], args: Vec::new() };
    let failure = failure(text, WordSize::Four, start, ArchId::HARP32);
    assert!(failure.message.contains("the oracle does not know"), "{failure}");
    let smaller = shrink(Kind::Kernels, &[], failure, 2000);
    assert!(smaller.message.contains("the oracle does not know"), "{smaller}");
    assert_eq!(smaller.case.functions.len(), 1, "{smaller}");
    // The call and an end.
    assert_eq!(instructions(&smaller.case), 2, "{smaller}");
}

#[test]
fn only_what_fails_is_left_of_functions() {
    let text = "function %f(i64, i32) -> i64 {
            ss0 = explicit_slot 16
            fn0 = %g(i64) -> i64
            fn1 = %harp_warp_id() -> i64
        block0(v0: i64, v1: i32):
            v2 = stack_addr.i64 ss0
            store v0, v2
            v3 = call fn0(v0)
            br_table v1, block3, [block1(v3), block2]
        block1(v4: i64):
            v5 = iadd v4, v0
            v6 = call fn1()
            jump block2
        block2:
            v9 = load.i64 v2
            brif v9, block3, block1(v9)
        block3:
            return v3
        }
        function %g(i64) -> i64 {
        block0(v0: i64):
            v1 = imul v0, v0
            return v1
        }";
    let start = Start::Call(vec![0_i64.into(), 0_i32.into()]);
    let failure = failure(text, WordSize::Eight, start, ArchId::HARP64);
    let smaller = shrink(Kind::Functions, &[], failure, 1000);
    assert!(smaller.message.contains("the oracle does not know"), "{smaller}");
    assert_eq!(smaller.case.functions.len(), 1, "{smaller}");
    // The call, and an end with its operand.
    assert!(instructions(&smaller.case) <= 4, "{smaller}");
    assert!(smaller.case.functions[0].sized_stack_slots.is_empty(), "{smaller}");
}

fn instructions(case: &Case) -> usize {
    case.functions.iter().map(workloads::instructions).sum()
}

/// What comes of a text that fails.
fn failure(text: &str, word: WordSize, start: Start, arch: ArchId) -> Box<Failure> {
    let functions = parse(word, text);
    let case = Case { word, functions, data: Vec::new(), start, waits: false };
    let target = Target::new(arch, OptLevel::Speed, WAYS[0]);
    check_generated(&case.into(), &[target], &mut Machines::default())
        .expect_err("the oracle does not know what it holds")
}
