//! Branches, and calls of the library.

use expect_test::expect;

use super::check;

/// The test stands behind the loop, entered by a jump; one jump a round.
#[test]
fn a_loop_tests_behind_itself() {
    check(
        "harp64+x",
        "function %f(i64, i64) -> i64 {
        block0(v0: i64, v1: i64):
            v2 = iconst.i64 0
            jump block1(v2, v2)
        block1(v3: i64, v4: i64):
            v5 = icmp ult v3, v1
            brif v5, block2, block3
        block2:
            v6 = iadd v4, v0
            v7 = iconst.i64 1
            v8 = iadd v3, v7
            jump block1(v8, v6)
        block3:
            return v4
        }",
        expect![[r#"
            f:
                 0  ori %r10 %r0 #0x0;
                 8  ldi %r4 #0x0;
                10  ldi %r0 #0x0;
                18  jmpi #0x18;  ; to 38
                20  addi %r4 %r4 #0x1;
                28  ori %r2 %r10 #0x0;
                30  add %r0 %r0 %r2 ;
                38  ltup @p10 %r4 %r1 ;
                40  @p10 ? jmpi #0xffffffffffffffd8;  ; to 20
                48  jmpr %r31 ;
        "#]],
    );
}

/// Conditions are turned so that the taken side is the farther one.
#[test]
fn a_branch_jumps_over_what_is_next() {
    check(
        "harp32",
        "function %f(i32, i32) -> i32 {
        block0(v0: i32, v1: i32):
            v2 = icmp sle v0, v1
            brif v2, block1, block2(v0)
        block1:
            v3 = isub v1, v0
            brif v3, block3, block2(v1)
        block3:
            v4 = imul v3, v3
            jump block2(v4)
        block2(v5: i32):
            return v5
        }",
        expect![[r#"
            f:
                 0  addi %r6 %r6 #0xfffffffffffffffc;
                 4  st %r4 %r6 #0x0;
                 8  sub %r2 %r1 %r0 ;
                 c  xor %r3 %r1 %r0 ;
                10  xor %r4 %r2 %r1 ;
                14  and %r3 %r3 %r4 ;
                18  xor %r2 %r2 %r3 ;
                1c  isneg @p0 %r2 ;
                20  @p0 ? jmpi #0x18;  ; to 3c
                24  sub %r0 %r1 %r0 ;
                28  rtop @p0 %r0 ;
                2c  @p0 ? jmpi #0x8;  ; to 38
                30  ori %r0 %r1 #0x0;
                34  jmpi #0x4;  ; to 3c
                38  mul %r0 %r0 %r0 ;
                3c  ld %r4 %r6 #0x0;
                40  addi %r6 %r6 #0x4;
                44  jmpr %r7 ;
        "#]],
    );
}

/// A routine is a function like others; what it takes of the stack is known, so nothing looks at the
/// limit.
#[test]
fn large_operations_call_the_library() {
    check(
        "4w16/16/4/2+x",
        "function %f(f64, f64, f64) -> f64 {
        block0(v0: f64, v1: f64, v2: f64):
            v3 = fmul v0, v1
            v4 = fsub v3, v2
            return v4
        }",
        expect![[r#"
            f:
                 0  st %r15 %r14 #0xfffffffffffffffc;
                 4  addi %r14 %r14 #0xfffffffffffffff4;
                 8  st %r8 %r14 #0x0;
                 c  st %r9 %r14 #0x4;
                10  ori %r8 %r4 #0x0;
                14  ori %r9 %r5 #0x0;
                18  jali %r15 #0xa5;  ; to runtime.f64.mul
                1c  ldi %r6 #0xffffffffffffffff;
                20  shli %r6 %r6 #0x1f;
                24  ori %r5 %r9 #0x0;
                28  xor %r3 %r5 %r6 ;
                2c  ori %r2 %r8 #0x0;
                30  jali %r15 #0xa5;  ; to runtime.f64.add
                34  ld %r8 %r14 #0x0;
                38  ld %r9 %r14 #0x4;
                3c  addi %r14 %r14 #0xc;
                40  ld %r15 %r14 #0xfffffffffffffffc;
                44  jmpr %r15 ;
        "#]],
    );
}
