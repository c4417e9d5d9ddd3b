//! Accesses to parts of words, and at any address.

use expect_test::expect;

use super::check;

#[test]
fn loads_at_any_address() {
    let text = "function %f(i32) -> i32 {
        block0(v0: i32):
            v1 = load.i32 v0+6
            return v1
        }";
    check(
        "harp32",
        text,
        expect![[r#"
            f:
                 0  ld %r2 %r0 #0x6;
                 4  addi %r1 %r0 #0x6;
                 8  addi %r0 %r1 #0x3;
                 c  andi %r0 %r0 #0xfffffffffffffffc;
                10  ld %r0 %r0 #0x0;
                14  neg %r1 %r1 ;
                18  andi %r1 %r1 #0x3;
                1c  shli %r1 %r1 #0x3;
                20  shl %r0 %r0 %r1 ;
                24  or %r0 %r2 %r0 ;
                28  jmpr %r7 ;
        "#]],
    );
    check(
        "4w16/16/4/2+x",
        text,
        expect![[r#"
            f:
                 0  ldw %r0 %r0 #0x6;
                 4  jmpr %r15 ;
        "#]],
    );
}

#[test]
fn stores_of_parts_of_words() {
    let text = "function %f(i64, i64) {
        block0(v0: i64, v1: i64):
            istore8 v1, v0+3
            istore16 v1, v0
            return
        }";
    check(
        "harp64",
        text,
        expect![[r#"
            f:
                 0  ld %r12 %r0 #0x3;
                 8  andi %r14 %r12 #0xffffffffffffff00;
                10  andi %r2 %r1 #0xff;
                18  or %r2 %r14 %r2 ;
                20  st %r2 %r0 #0x3;
                28  ld %r8 %r0 #0x0;
                30  andi %r10 %r8 #0xffffffffffffff00;
                38  andi %r12 %r1 #0xff;
                40  or %r14 %r10 %r12 ;
                48  st %r14 %r0 #0x0;
                50  shri %r1 %r1 #0x8;
                58  ld %r2 %r0 #0x1;
                60  andi %r2 %r2 #0xffffffffffffff00;
                68  andi %r1 %r1 #0xff;
                70  or %r1 %r2 %r1 ;
                78  st %r1 %r0 #0x1;
                80  jmpr %r31 ;
        "#]],
    );
    check(
        "harp64+x",
        text,
        expect![[r#"
            f:
                 0  stb %r1 %r0 #0x3;
                 8  sth %r1 %r0 #0x0;
                10  jmpr %r31 ;
        "#]],
    );
}

#[test]
fn stores_at_any_address() {
    check(
        "harp32",
        "function %f(i32, i32) {
        block0(v0: i32, v1: i32):
            store v1, v0
            return
        }",
        expect![[r#"
            f:
                 0  addi %r6 %r6 #0xfffffffffffffffc;
                 4  st %r4 %r6 #0x0;
                 8  st %r1 %r0 #0x0;
                 c  addi %r2 %r0 #0x3;
                10  andi %r2 %r2 #0xfffffffffffffffc;
                14  ldi %r3 #0xffffffffffffffff;
                18  andi %r4 %r0 #0x3;
                1c  shli %r4 %r4 #0x3;
                20  shl %r4 %r3 %r4 ;
                24  ld %r3 %r2 #0x0;
                28  and %r3 %r3 %r4 ;
                2c  neg %r0 %r0 ;
                30  andi %r0 %r0 #0x3;
                34  shli %r0 %r0 #0x3;
                38  shr %r0 %r1 %r0 ;
                3c  not %r1 %r4 ;
                40  and %r0 %r0 %r1 ;
                44  or %r0 %r3 %r0 ;
                48  st %r0 %r2 #0x0;
                4c  ld %r4 %r6 #0x0;
                50  addi %r6 %r6 #0x4;
                54  jmpr %r7 ;
        "#]],
    );
}

#[test]
fn atomic_accesses_to_parts_of_words() {
    check(
        "4w16/16/4/2+x",
        "function %f(i32, i32) -> i8 {
        block0(v0: i32, v1: i32):
            v2 = ireduce.i8 v1
            v3 = atomic_rmw.i8 or v0, v2
            v4 = atomic_rmw.i8 add v0, v3
            return v4
        }",
        expect![[r#"
            f:
                 0  andi %r2 %r0 #0x3;
                 4  xor %r4 %r0 %r2 ;
                 8  andi %r0 %r1 #0xff;
                 c  shli %r1 %r2 #0x3;
                10  shl %r0 %r0 %r1 ;
                14  amoor %r0 %r4 %r0 ;
                18  ld %r7 %r4 #0x0;
                1c  ldi %r2 #0xff;
                20  shl %r2 %r2 %r1 ;
                24  shr %r3 %r0 %r1 ;
                28  jmpi #0x4;  ; to 30
                2c  ori %r7 %r5 #0x0;
                30  not %r0 %r2 ;
                34  and %r5 %r7 %r0 ;
                38  shr %r0 %r7 %r1 ;
                3c  add %r6 %r0 %r3 ;
                40  andi %r6 %r6 #0xff;
                44  shl %r6 %r6 %r1 ;
                48  or %r6 %r5 %r6 ;
                4c  ori %r5 %r7 #0x0;
                50  cas %r5 %r4 %r6 ;
                54  eqp @p0 %r5 %r7 ;
                58  @p0 ? jmpi #0x4;  ; to 60
                5c  jmpi #0xffffffffffffffcc;  ; to 2c
                60  jmpr %r15 ;
        "#]],
    );
}
