//! Floats on machines that lack them, or some of their operations.

use expect_test::expect;

use super::{check, size};

/// Instructions of functions that do one thing with floats, return and frame included, and of the library
/// routines behind them.
#[test]
fn sizes_of_float_operations() {
    let operations = [
        ("fadd", 2),
        ("fmul", 2),
        ("fdiv", 2),
        ("sqrt", 1),
        ("fma", 3),
        ("fmin", 2),
        ("fcmp lt", 2),
        ("floor", 1),
        ("nearest", 1),
        ("fcvt_to_sint_sat.i32", 1),
        ("fcvt_to_uint_sat.i32", 1),
    ];
    let archs = ["harp32", "4w16/16/4/2+x", "harp64", "harp64+x"];
    let mut table = format!("{:26}", "");
    archs.iter().for_each(|arch| table.push_str(&format!("{arch:>14}")));
    for ty in ["f32", "f64"] {
        for (operation, count) in operations {
            let list: Vec<_> = (0..count).map(|i| format!("v{i}: {ty}")).collect();
            let operands: Vec<_> = (0..count).map(|i| format!("v{i}")).collect();
            let result = match operation {
                _ if operation.starts_with("fcvt") => "i32",
                "fcmp lt" => "i8",
                _ => ty,
            };
            let text = format!(
                "function %f({}) -> {result} {{\nblock0({}):\nv9 = {operation} {}\nreturn v9\n}}",
                vec![ty; count].join(", "),
                list.join(", "),
                operands.join(", ")
            );
            table.push_str(&format!("\n{ty} {operation:22}"));
            for arch in archs {
                table.push_str(&format!("{:>14}", size(arch, &text)));
            }
        }
    }
    table.push('\n');
    expect![[r#"
                                          harp32 4w16/16/4/2+x        harp64      harp64+x
        f32 fadd                               2             2            73             2
        f32 fmul                               2             2            73             2
        f32 fdiv                               2             2            73             2
        f32 sqrt                           6+118             2         6+119             2
        f32 fma                            6+486             4         6+116             4
        f32 fmin                              42             2            36             5
        f32 fcmp lt                           37             3            24             5
        f32 floor                             45             8            35            11
        f32 nearest                           55            23            44            16
        f32 fcvt_to_sint_sat.i32              26             2            39             9
        f32 fcvt_to_uint_sat.i32              39             2            42             8
        f64 fadd                           6+486         6+345             2             2
        f64 fmul                           6+680         6+415             2             2
        f64 fdiv                           6+631         6+463             2             2
        f64 sqrt                           6+359         6+253         6+132             2
        f64 fma                          14+1508         6+980         6+481             4
        f64 fmin                              95            74            42             2
        f64 fcmp lt                          128            76            31             3
        f64 floor                             91            75            46             9
        f64 nearest                          132            97            64            21
        f64 fcvt_to_sint_sat.i32              72            66            22             8
        f64 fcvt_to_uint_sat.i32              67            61            25             7
    "#]]
    .assert_eq(&table);
}

#[test]
fn comparison_of_floats_on_integers() {
    check(
        "harp32",
        "function %f(f32, f32) -> i8 {
        block0(v0: f32, v1: f32):
            v2 = fcmp lt v0, v1
            return v2
        }",
        expect![[r#"
            f:
                 0  addi %r6 %r6 #0xfffffffffffffffc;
                 4  st %r4 %r6 #0x0;
                 8  ldi %r2 #0xffff;
                 c  shli %r2 %r2 #0xf;
                10  ori %r2 %r2 #0x7fff;
                14  and %r4 %r0 %r2 ;
                18  ldi %r2 #0xffff;
                1c  shli %r2 %r2 #0xf;
                20  ori %r2 %r2 #0x7fff;
                24  and %r2 %r1 %r2 ;
                28  shri %r0 %r0 #0x1f;
                2c  neg %r0 %r0 ;
                30  xor %r3 %r4 %r0 ;
                34  sub %r3 %r3 %r0 ;
                38  shri %r0 %r1 #0x1f;
                3c  neg %r0 %r0 ;
                40  xor %r1 %r2 %r0 ;
                44  sub %r1 %r1 %r0 ;
                48  sub %r0 %r3 %r1 ;
                4c  xor %r1 %r3 %r1 ;
                50  xor %r3 %r0 %r3 ;
                54  and %r1 %r1 %r3 ;
                58  xor %r0 %r0 %r1 ;
                5c  isneg @p0 %r0 ;
                60  ldi %r1 #0xff;
                64  shli %r1 %r1 #0x17;
                68  sub %r0 %r1 %r4 ;
                6c  sub %r1 %r1 %r2 ;
                70  or %r0 %r0 %r1 ;
                74  isneg @p1 %r0 ;
                78  notp @p1 @p1 ;
                7c  andp @p0 @p0 @p1 ;
                80  ldi %r0 #0x0;
                84  @p0 ? ldi %r0 #0x1;
                88  ld %r4 %r6 #0x0;
                8c  addi %r6 %r6 #0x4;
                90  jmpr %r7 ;
        "#]],
    );
}

#[test]
fn comparison_of_a_float_with_a_constant() {
    check(
        "harp32",
        "function %f(f32) -> i8 {
        block0(v0: f32):
            v1 = f32const 0x1.0p2
            v2 = fcmp gt v0, v1
            return v2
        }",
        expect![[r#"
            f:
                 0  ldi %r2 #0x81;
                 4  shli %r2 %r2 #0x17;
                 8  fsub %r1 %r0 %r2 ;
                 c  subi %r0 %r1 #0x1;
                10  ldi %r2 #0xff;
                14  shli %r2 %r2 #0x17;
                18  sub %r1 %r2 %r1 ;
                1c  or %r0 %r0 %r1 ;
                20  isneg @p0 %r0 ;
                24  notp @p0 @p0 ;
                28  ldi %r0 #0x0;
                2c  @p0 ? ldi %r0 #0x1;
                30  jmpr %r7 ;
        "#]],
    );
}

#[test]
fn single_precision_by_double() {
    check(
        "harp64",
        "function %f(f32, f32) -> f32 {
        block0(v0: f32, v1: f32):
            v2 = fmul v0, v1
            return v2
        }",
        expect![[r#"
            f:
                 0  andi %r0 %r0 #0xffffffff;
                 8  andi %r2 %r0 #0x7fffffff;
                10  ldi %r3 #0x7f7fffff;
                18  sub %r2 %r3 %r2 ;
                20  isneg @p0 %r2 ;
                28  shli %r0 %r0 #0x20;
                30  shri %r0 %r0 #0x3;
                38  ldi %r2 #0xfffffffc7fffffff;
                40  shli %r2 %r2 #0x1d;
                48  and %r0 %r0 %r2 ;
                50  ldi %r2 #0x7ff;
                58  shli %r2 %r2 #0x34;
                60  or %r2 %r0 %r2 ;
                68  ldi %r3 #0x77f;
                70  shli %r3 %r3 #0x34;
                78  fmul %r0 %r0 %r3 ;
                80  @p0 ? ori %r0 %r2 #0x0;
                88  andi %r1 %r1 #0xffffffff;
                90  andi %r2 %r1 #0x7fffffff;
                98  ldi %r3 #0x7f7fffff;
                a0  sub %r2 %r3 %r2 ;
                a8  isneg @p0 %r2 ;
                b0  shli %r1 %r1 #0x20;
                b8  shri %r1 %r1 #0x3;
                c0  ldi %r2 #0xfffffffc7fffffff;
                c8  shli %r2 %r2 #0x1d;
                d0  and %r1 %r1 %r2 ;
                d8  ldi %r2 #0x7ff;
                e0  shli %r2 %r2 #0x34;
                e8  or %r2 %r1 %r2 ;
                f0  ldi %r3 #0x77f;
                f8  shli %r3 %r3 #0x34;
               100  fmul %r1 %r1 %r3 ;
               108  @p0 ? ori %r1 %r2 #0x0;
               110  fmul %r0 %r0 %r1 ;
               118  ldi %r1 #0x3fffff;
               120  shli %r1 %r1 #0x29;
               128  ori %r1 %r1 #0x1ffffffffff;
               130  and %r1 %r0 %r1 ;
               138  ldi %r2 #0x7ff;
               140  shli %r2 %r2 #0x34;
               148  sub %r2 %r2 %r1 ;
               150  isneg @p0 %r2 ;
               158  ldi %r2 #0x381;
               160  shli %r2 %r2 #0x34;
               168  sub %r2 %r1 %r2 ;
               170  isneg @p1 %r2 ;
               178  ldi %r2 #0x1cf;
               180  shli %r2 %r2 #0x35;
               188  fadd %r2 %r1 %r2 ;
               190  ldi %r3 #0x1cf;
               198  shli %r3 %r3 #0x35;
               1a0  sub %r2 %r2 %r3 ;
               1a8  ldi %r3 #0xffffffffffe40000;
               1b0  shli %r3 %r3 #0x29;
               1b8  ori %r3 %r3 #0xfffffff;
               1c0  add %r3 %r1 %r3 ;
               1c8  shri %r1 %r1 #0x1d;
               1d0  andi %r1 %r1 #0x1;
               1d8  add %r1 %r3 %r1 ;
               1e0  shri %r1 %r1 #0x1d;
               1e8  ldi %r3 #0x7f800000;
               1f0  sub %r3 %r3 %r1 ;
               1f8  isneg @p2 %r3 ;
               200  ldi %r3 #0x7f800000;
               208  @p2 ? ori %r1 %r3 #0x0;
               210  @p1 ? ori %r1 %r2 #0x0;
               218  ldi %r2 #0x7fc00000;
               220  @p0 ? ori %r1 %r2 #0x0;
               228  shri %r0 %r0 #0x20;
               230  andi %r0 %r0 #0x80000000;
               238  or %r0 %r1 %r0 ;
               240  jmpr %r31 ;
        "#]],
    );
}

#[test]
fn rounding_with_and_without_the_extension() {
    let text = "function %f(f32) -> f32 {
        block0(v0: f32):
            v1 = floor v0
            return v1
        }";
    check(
        "4w16/16/4/2+x",
        text,
        expect![[r#"
            f:
                 0  ftrunc %r1 %r0 ;
                 4  fltp @p6 %r0 %r1 ;
                 8  ldi %r4 #0x7f;
                 c  shli %r4 %r4 #0x17;
                10  ori %r0 %r1 #0x0;
                14  fsub %r6 %r0 %r4 ;
                18  @p6 ? ori %r0 %r6 #0x0;
                1c  jmpr %r15 ;
        "#]],
    );
    check(
        "harp32",
        text,
        expect![[r#"
            f:
                 0  addi %r6 %r6 #0xfffffffffffffffc;
                 4  st %r4 %r6 #0x0;
                 8  ldi %r1 #0xffff;
                 c  shli %r1 %r1 #0xf;
                10  ori %r1 %r1 #0x7fff;
                14  and %r1 %r0 %r1 ;
                18  rtop @p2 %r1 ;
                1c  ldi %r2 #0x95ff;
                20  shli %r2 %r2 #0xf;
                24  ori %r2 %r2 #0x7fff;
                28  sub %r2 %r2 %r1 ;
                2c  isneg @p0 %r2 ;
                30  ldi %r2 #0x7f;
                34  shli %r2 %r2 #0x17;
                38  sub %r2 %r1 %r2 ;
                3c  isneg @p1 %r2 ;
                40  ldi %r2 #0xffffffffffffffff;
                44  shli %r2 %r2 #0x1f;
                48  and %r2 %r0 %r2 ;
                4c  ldi %r3 #0x7f;
                50  shli %r3 %r3 #0x17;
                54  ldi %r4 #0x0;
                58  @p2 ? ori %r4 %r3 #0x0;
                5c  shri %r3 %r0 #0x1f;
                60  neg %r3 %r3 ;
                64  and %r4 %r4 %r3 ;
                68  or %r2 %r2 %r4 ;
                6c  shri %r1 %r1 #0x17;
                70  subi %r1 %r1 #0x7f;
                74  ldi %r4 #0xff;
                78  shli %r4 %r4 #0xf;
                7c  ori %r4 %r4 #0x7fff;
                80  andi %r1 %r1 #0x1f;
                84  shr %r1 %r4 %r1 ;
                88  and %r3 %r1 %r3 ;
                8c  add %r3 %r0 %r3 ;
                90  ori %r4 %r0 #0x0;
                94  not %r0 %r1 ;
                98  and %r0 %r3 %r0 ;
                9c  @p1 ? ori %r0 %r2 #0x0;
                a0  ori %r1 %r4 #0x0;
                a4  @p0 ? ori %r0 %r1 #0x0;
                a8  ld %r4 %r6 #0x0;
                ac  addi %r6 %r6 #0x4;
                b0  jmpr %r7 ;
        "#]],
    );
}

#[test]
fn conversion_that_traps() {
    check(
        "harp32",
        "function %f(f32) -> i32 {
        block0(v0: f32):
            v1 = fcvt_to_sint.i32 v0
            return v1
        }",
        expect![[r#"
            f:
                 0  ldi %r1 #0xffff;
                 4  shli %r1 %r1 #0xf;
                 8  ori %r1 %r1 #0x7fff;
                 c  and %r1 %r0 %r1 ;
                10  ldi %r2 #0xff;
                14  shli %r2 %r2 #0x17;
                18  sub %r1 %r2 %r1 ;
                1c  isneg @p0 %r1 ;
                20  @p0 ? jmpi #0x60;  ; to 84
                24  ldi %r1 #0x4f;
                28  shli %r1 %r1 #0x18;
                2c  fsub %r2 %r1 %r0 ;
                30  subi %r1 %r2 #0x1;
                34  ldi %r3 #0xff;
                38  shli %r3 %r3 #0x17;
                3c  sub %r2 %r3 %r2 ;
                40  or %r1 %r1 %r2 ;
                44  isneg @p0 %r1 ;
                48  notp @p0 @p0 ;
                4c  ldi %r1 #0xffffffffffffffcf;
                50  shli %r1 %r1 #0x18;
                54  fsub %r1 %r0 %r1 ;
                58  ldi %r2 #0xff;
                5c  shli %r2 %r2 #0x17;
                60  sub %r2 %r2 %r1 ;
                64  or %r1 %r1 %r2 ;
                68  isneg @p1 %r1 ;
                6c  notp @p1 @p1 ;
                70  andp @p0 @p0 @p1 ;
                74  @p0 ? jmpi #0x4;  ; to 7c
                78  trap ;
                7c  ftoi %r0 %r0 ;
                80  jmpr %r7 ;
                84  trap ;
        "#]],
    );
}
