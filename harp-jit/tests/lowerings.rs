//! What the code of floats and of accesses to memory looks like. That it is right is tested against an
//! interpreter elsewhere; these texts are for people, and to notice when code gets longer.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic like the tests themselves")]

use expect_test::{Expect, expect};
use harp_jit::{ArchId, CompileOptions, CompiledModule, Execution, Linkage, Module};

/// A module with one function for a single lane.
fn compiled(arch: &str, text: &str) -> CompiledModule {
    let arch: ArchId = arch.parse().unwrap();
    let options = CompileOptions { execution: Execution::SingleLane, ..CompileOptions::default() };
    let func = cranelift_reader::parse_functions(text).unwrap().remove(0);
    let mut module = Module::new(arch, options);
    let id = module.declare_function("f", Linkage::Export, &func.signature).unwrap();
    module.define_function(id, &func).unwrap();
    module.finish().unwrap()
}

fn code(arch: &str, text: &str) -> String {
    compiled(arch, text).function("f").unwrap().disassembly()
}

/// Instructions of the function and, behind a plus, of the library routine that it calls.
fn size(arch: &str, text: &str) -> String {
    let module = compiled(arch, text);
    let sizes = module.functions().iter().map(|f| f.disassembly().lines().count().to_string());
    sizes.collect::<Vec<_>>().join("+")
}

/// The label comes first because the expected texts' common indentation does not count.
fn check(arch: &str, text: &str, wanted: Expect) {
    wanted.assert_eq(&format!("f:\n{}", code(arch, text)));
}

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
        f32 fma                            6+489             4         6+116             4
        f32 fmin                              42             2            36             5
        f32 fcmp lt                           37             3            24             5
        f32 floor                             45             8            35            11
        f32 nearest                           55            23            44            17
        f32 fcvt_to_sint_sat.i32              26             2            39             9
        f32 fcvt_to_uint_sat.i32              39             2            42             8
        f64 fadd                           6+537         6+345             2             2
        f64 fmul                           6+738         6+415             2             2
        f64 fdiv                           6+663         6+463             2             2
        f64 sqrt                           6+367         6+253         6+132             2
        f64 fma                          14+1641         6+980         6+484             4
        f64 fmin                             107            74            42             2
        f64 fcmp lt                          138            76            31             3
        f64 floor                             99            75            46             9
        f64 nearest                          145            97            64            21
        f64 fcvt_to_sint_sat.i32              86            66            22             8
        f64 fcvt_to_uint_sat.i32              79            61            25             7
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
