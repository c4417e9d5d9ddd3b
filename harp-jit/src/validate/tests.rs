//! Tests that differences are found and named.

use cranelift_codegen::ir::Function;

use super::{What, rearranged};
use crate::analysis::Known;
use crate::legalize;
use crate::plan::Plan;

/// A legal function.
pub(crate) fn parsed(text: &str) -> Function {
    let mut func = cranelift_reader::parse_functions(text).unwrap().remove(0);
    legalize::after(&mut func);
    func
}

/// An inner loop whose lanes stay or go on to the outer loop: those that stay must keep what the outer loop
/// carries. `kept` is the value that they pass for it.
fn loops_with_one_latch(kept: &str) -> Function {
    parsed(&format!(
        "function %f(i32) {{
        block0(v0: i32):
            v1 = load.i32 aligned v0
            jump block1(v1, v0, v1)
        block1(v2: i32, v3: i32, v4: i32):
            jump block2(v3, v4, v2)
        block2(v5: i32, v6: i32, v15: i32):
            v7 = iadd v5, v15
            v8 = load.i32 aligned v7
            v9 = iconst.i32 100
            v10 = iadd v15, v9
            v11 = load.i32 aligned v6
            brif v8, block3, block4
        block3:
            brif v11, block2(v7, v8, {kept}), block1(v10, v7, v8)
        block4:
            store aligned v7, v0
            return
        }}"
    ))
}

#[test]
fn what_an_outer_loop_carries_is_kept_for_lanes_that_stay() {
    let right = loops_with_one_latch("v15");
    rearranged(&right, &right, &Plan::default(), Known::KERNEL, 1).unwrap();
    let wrong = loops_with_one_latch("v10");
    let error = rearranged(&right, &wrong, &Plan::default(), Known::KERNEL, 1).unwrap_err();
    assert!(matches!(error.what, What::Operand { lane: 0, .. }), "{error}");
}

#[test]
fn messages_name_lane_inputs_and_operand() {
    let [right, wrong] = ["v1", "v0"].map(|stored| {
        parsed(&format!(
            "function %f(i32) {{
            block0(v0: i32):
                v1 = load.i32 aligned v0
                store aligned {stored}, v0
                return
            }}"
        ))
    });
    let error =
        rearranged(&right, &wrong, &Plan::default(), Known::KERNEL, 1).unwrap_err().to_string();
    let expected = [
        "with 1 lanes and inputs 0x",
        "lane 0 has 0x",
        "as operand 0 of `store.i32 aligned v0, v0` in block0",
        "which is that of `store.i32 aligned v1, v0` in block0 before",
    ];
    assert!(expected.iter().all(|part| error.contains(part)), "{error}");
}
