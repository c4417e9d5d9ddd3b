//! Integers: immediates, shifts, extensions, constants.

use expect_test::expect;

use super::check;

/// The second amount is below the width by its definition.
#[test]
fn amounts_of_shifts_that_are_small_are_not_masked() {
    check(
        "harp64",
        "function %f(i64, i64) -> i64 {
        block0(v0: i64, v1: i64):
            v2 = ishl v0, v1
            v3 = iconst.i64 7
            v4 = band v1, v3
            v5 = iconst.i64 3
            v6 = ishl v4, v5
            v7 = sshr v2, v6
            return v7
        }",
        expect![[r#"
            f:
                 0  andi %r6 %r1 #0x3f;
                 8  shl %r8 %r0 %r6 ;
                10  andi %r6 %r1 #0x7;
                18  shli %r5 %r6 #0x3;
                20  shr %r0 %r8 %r5 ;
                28  jmpr %r31 ;
        "#]],
    );
}

/// `shr` is arithmetic on 8-byte words; where the mask fits an immediate it cuts the sign off.
#[test]
fn logical_shifts_by_constants() {
    check(
        "harp64",
        "function %f(i64) -> i64 {
        block0(v0: i64):
            v1 = iconst.i64 1
            v2 = ushr v0, v1
            v3 = iconst.i64 40
            v4 = ushr v2, v3
            v5 = bxor v2, v4
            return v5
        }",
        expect![[r#"
            f:
                 0  shri %r5 %r0 #0x1;
                 8  shri %r7 %r0 #0x3f;
                10  shli %r9 %r7 #0x3f;
                18  xor %r11 %r5 %r9 ;
                20  shri %r7 %r0 #0x29;
                28  andi %r9 %r7 #0x7fffff;
                30  xor %r0 %r11 %r9 ;
                38  jmpr %r31 ;
        "#]],
    );
    check(
        "harp64+x",
        "function %f(i64) -> i64 {
        block0(v0: i64):
            v1 = iconst.i64 1
            v2 = ushr v0, v1
            v3 = iconst.i64 40
            v4 = ushr v2, v3
            v5 = bxor v2, v4
            return v5
        }",
        expect![[r#"
            f:
                 0  ldi %r5 #0x1;
                 8  srl %r7 %r0 %r5 ;
                10  shri %r5 %r0 #0x29;
                18  andi %r8 %r5 #0x7fffff;
                20  xor %r0 %r7 %r8 ;
                28  jmpr %r31 ;
        "#]],
    );
}

/// What is loaded with zeros above, or cut off, is not extended again.
#[test]
fn extensions_that_change_nothing() {
    check(
        "harp64+x",
        "function %f(i64) -> i64 {
        block0(v0: i64):
            v1 = load.i8 v0
            v2 = iconst.i8 15
            v3 = band v1, v2
            v4 = uextend.i64 v3
            v5 = uload16.i64 v0+2
            v6 = iadd v4, v5
            v7 = load.i32 v0+4
            v8 = uextend.i64 v7
            v9 = iadd v6, v8
            return v9
        }",
        expect![[r#"
            f:
                 0  ldb %r7 %r0 #0x0;
                 8  ldh %r8 %r0 #0x2;
                10  ldw %r9 %r0 #0x4;
                18  andi %r6 %r7 #0xf;
                20  add %r6 %r6 %r8 ;
                28  add %r0 %r6 %r9 ;
                30  jmpr %r31 ;
        "#]],
    );
}

/// One piece an instruction, the shifts in between.
#[test]
fn constants_of_many_bits() {
    check(
        "harp32",
        "function %f(i32) -> i32 {
        block0(v0: i32):
            v1 = iconst.i32 0x12345678
            v2 = bxor v0, v1
            v3 = iconst.i32 -5
            v4 = iadd v2, v3
            return v4
        }",
        expect![[r#"
            f:
                 0  ldi %r3 #0x2468;
                 4  shli %r3 %r3 #0xf;
                 8  ori %r3 %r3 #0x5678;
                 c  xor %r0 %r0 %r3 ;
                10  addi %r0 %r0 #0xfffffffffffffffb;
                14  jmpr %r7 ;
        "#]],
    );
    check(
        "4b16/16/4/2",
        "function %f(i32) -> i32 {
        block0(v0: i32):
            v1 = iconst.i32 0x12345678
            v2 = bxor v0, v1
            v3 = iconst.i32 -5
            v4 = iadd v2, v3
            return v4
        }",
        expect![[r#"
            f:
                 0  xori %r3 %r0 #0x12345678;
                 8  addi %r0 %r3 #0xfffffffb;
                10  jmpr %r15 ;
        "#]],
    );
}
