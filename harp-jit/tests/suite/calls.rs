//! The code of calls. Other tests compare its results with an interpreter; these expected texts are for
//! readers, and show when code gets longer.

use expect_test::{Expect, expect};
use harp_jit::{ArchId, CompileOptions, Execution, Linkage, Module};

/// The code of the last function of a text, in a module of all of them.
fn check(arch: &str, text: &str, wanted: Expect) {
    let arch: ArchId = arch.parse().unwrap();
    let options = CompileOptions { execution: Execution::SingleLane, ..CompileOptions::default() };
    let mut module = Module::new(arch, options);
    let functions = cranelift_reader::parse_functions(text).unwrap();
    let mut last = String::new();
    for func in &functions {
        last = func.name.to_string().trim_start_matches('%').to_owned();
        let id = module.declare_function(&last, Linkage::Export, &func.signature).unwrap();
        module.define_function(id, func).unwrap();
    }
    let module = module.finish().unwrap();
    let code = module.function(&last).unwrap().disassembly();
    wanted.assert_eq(&format!("{last}:\n{code}"));
}

#[test]
fn a_leaf_has_no_frame() {
    check(
        "harp32",
        "function %f(i32, i32) -> i32 {
        block0(v0: i32, v1: i32):
            v2 = iadd v0, v1
            return v2
        }",
        expect![[r#"
            f:
                 0  add %r0 %r0 %r1 ;
                 4  jmpr %r7 ;
        "#]],
    );
}

#[test]
fn prolog_and_epilog() {
    check(
        "harp32",
        "function %g(i32) -> i32 {
        block0(v0: i32):
            return v0
        }
        function %f(i32) -> i32 {
            fn0 = %g(i32) -> i32
        block0(v0: i32):
            v1 = call fn0(v0)
            v2 = iadd v0, v1
            return v2
        }",
        expect![[r#"
            f:
                 0  st %r7 %r6 #0xfffffffffffffffc;
                 4  addi %r6 %r6 #0xfffffffffffffff8;
                 8  st %r4 %r6 #0x0;
                 c  ori %r4 %r0 #0x0;
                10  jali %r7 #0xa5;  ; to g
                14  add %r0 %r4 %r0 ;
                18  ld %r4 %r6 #0x0;
                1c  addi %r6 %r6 #0x8;
                20  ld %r7 %r6 #0xfffffffffffffffc;
                24  jmpr %r7 ;
        "#]],
    );
}

#[test]
fn a_function_that_may_recur_looks_at_the_stacks_limit() {
    check(
        "harp32",
        "function %f(i32) -> i32 {
            fn0 = %f(i32) -> i32
        block0(v0: i32):
            v1 = call fn0(v0)
            v2 = iadd v0, v1
            return v2
        }",
        expect![[r#"
            f:
                 0  st %r7 %r6 #0xfffffffffffffffc;
                 4  shri %r7 %r6 #0xe;
                 8  shli %r7 %r7 #0xe;
                 c  ld %r7 %r7 #0x14;
                10  sub %r7 %r6 %r7 ;
                14  subi %r7 %r7 #0x8;
                18  isneg @p0 %r7 ;
                1c  @p0 ? trap ;
                20  addi %r6 %r6 #0xfffffffffffffff8;
                24  st %r4 %r6 #0x0;
                28  ori %r4 %r0 #0x0;
                2c  jali %r7 #0xa5;  ; to f
                30  add %r0 %r4 %r0 ;
                34  ld %r4 %r6 #0x0;
                38  addi %r6 %r6 #0x8;
                3c  ld %r7 %r6 #0xfffffffffffffffc;
                40  jmpr %r7 ;
        "#]],
    );
}

#[test]
fn arguments_on_the_stack() {
    check(
        "harp32",
        "function %g(i32, i32, i32, i32, i32, i32) -> i32 {
        block0(v0: i32, v1: i32, v2: i32, v3: i32, v4: i32, v5: i32):
            v6 = isub v4, v5
            return v6
        }
        function %f(i32, i32) -> i32 {
            fn0 = %g(i32, i32, i32, i32, i32, i32) -> i32
        block0(v0: i32, v1: i32):
            v2 = call fn0(v0, v1, v0, v1, v0, v1)
            return v2
        }",
        expect![[r#"
            f:
                 0  st %r7 %r6 #0xfffffffffffffffc;
                 4  addi %r6 %r6 #0xfffffffffffffff0;
                 8  st %r0 %r6 #0x0;
                 c  st %r1 %r6 #0x4;
                10  ori %r2 %r0 #0x0;
                14  ori %r3 %r1 #0x0;
                18  jali %r7 #0xa5;  ; to g
                1c  addi %r6 %r6 #0x10;
                20  ld %r7 %r6 #0xfffffffffffffffc;
                24  jmpr %r7 ;
        "#]],
    );
}

#[test]
fn a_tail_call_leaves_nothing_behind() {
    check(
        "harp32",
        "function %g(i32, i32, i32, i32, i32) -> i32 tail {
        block0(v0: i32, v1: i32, v2: i32, v3: i32, v4: i32):
            return v4
        }
        function %f(i32, i32, i32, i32) -> i32 tail {
            fn0 = %g(i32, i32, i32, i32, i32) -> i32 tail
        block0(v0: i32, v1: i32, v2: i32, v3: i32):
            return_call fn0(v1, v0, v2, v0, v3)
        }",
        expect![[r#"
            f:
                 0  addi %r6 %r6 #0xfffffffffffffffc;
                 4  ld %r3 %r6 #0x4;
                 8  st %r0 %r6 #0x0;
                 c  st %r3 %r6 #0x4;
                10  ori %r3 %r0 #0x0;
                14  ori %r0 %r1 #0x0;
                18  ori %r1 %r3 #0x0;
                1c  jmpi #0xa5;  ; to g
        "#]],
    );
}

#[test]
fn stack_slots_are_addressed_from_the_stack_pointer() {
    check(
        "harp64",
        "function %f(i64) -> i64 {
            ss0 = explicit_slot 16
            fn0 = %g(i64)
        block0(v0: i64):
            v1 = stack_addr.i64 ss0+8
            store notrap aligned v0, v1
            call fn0(v1)
            v2 = load.i64 notrap aligned v1
            return v2
        }",
        expect![[r#"
            f:
                 0  st %r31 %r30 #0xfffffffffffffff8;
                 8  shri %r31 %r30 #0xe;
                10  shli %r31 %r31 #0xe;
                18  ld %r31 %r31 #0x28;
                20  sub %r31 %r30 %r31 ;
                28  subi %r31 %r31 #0x18;
                30  isneg @p0 %r31 ;
                38  @p0 ? trap ;
                40  addi %r30 %r30 #0xffffffffffffffe8;
                48  ori %r5 %r0 #0x0;
                50  addi %r0 %r30 #0x8;
                58  st %r5 %r30 #0x8;
                60  jali %r31 #0xa5;  ; to g
                68  ld %r0 %r30 #0x8;
                70  addi %r30 %r30 #0x18;
                78  ld %r31 %r30 #0xfffffffffffffff8;
                80  jmpr %r31 ;
        "#]],
    );
}

#[test]
fn addresses_out_of_reach_are_read_from_a_word() {
    check(
        "4w64/64",
        "function %f() -> i32 {
            gv0 = symbol %data+4
            fn0 = %g() -> i32
        block0:
            v0 = call fn0()
            v1 = symbol_value.i32 gv0
            v2 = load.i32 notrap aligned v1
            v3 = iadd v0, v2
            return v3
        }",
        expect![[r#"
            f:
                 0  st %r63 %r62 #0xfffffffffffffffc;
                 4  shri %r63 %r62 #0xe;
                 8  shli %r63 %r63 #0xe;
                 c  ld %r63 %r63 #0x14;
                10  sub %r63 %r62 %r63 ;
                14  subi %r63 %r63 #0x4;
                18  isneg @p0 %r63 ;
                1c  @p0 ? trap ;
                20  addi %r62 %r62 #0xfffffffffffffffc;
                24  jali %r31 #0x4;  ; to 2c
                28  .word g
                2c  ld %r31 %r31 #0x0;
                30  jalr %r63 %r31 ;
                34  jali %r4 #0x4;  ; to 3c
                38  .word data
                3c  ld %r4 %r4 #0x0;
                40  ld %r4 %r4 #0x4;
                44  add %r0 %r0 %r4 ;
                48  addi %r62 %r62 #0x4;
                4c  ld %r63 %r62 #0xfffffffffffffffc;
                50  jmpr %r63 ;
        "#]],
    );
}
