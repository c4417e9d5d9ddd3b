//! Loads that decide branches, done once for all lanes: only on machines whose lanes share registers.
//!
//! What such a load yields goes through [`Intrinsic::OfSomeLane`], so all lanes that load together get what one of them has
//! loaded, and the branches are uniform. That is what one of the lanes reads at that time in any case, so the program cannot
//! tell. Where the address is in fact uniform for the [sharing](crate::sharing) of registers, too, load and exchange become
//! one load into a shared register.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{Function, Inst, InstBuilder};

use crate::analysis::{Known, Uniformity, deciding_loads};
use crate::intrinsic::Intrinsic;

/// Does the loads that decide branches once. Returns whether there were any; facts about values are invalid then, the graph of
/// the blocks is not.
pub(super) fn load_once(func: &mut Function, facts: &Uniformity, known: Known<'_>) -> bool {
    let loads = deciding_loads(func, facts, known);
    for &load in &loads {
        exchange(func, load);
    }
    if !loads.is_empty() {
        func.dfg.resolve_all_aliases();
    }
    !loads.is_empty()
}

/// Lets all uses of what is loaded be of what some lane has loaded.
fn exchange(func: &mut Function, load: Inst) {
    let result = func.dfg.first_result(load);
    let ty = func.dfg.value_type(result);
    let own = func.dfg.replace_result(result, ty);
    let place = func.srcloc(load);
    let mut at = FuncCursor::new(func).with_srcloc(place).after_inst(load);
    let of_some_lane = Intrinsic::OfSomeLane.declare(at.func, ty);
    let call = at.ins().call(of_some_lane, &[own]);
    let given = at.func.dfg.first_result(call);
    at.func.dfg.change_to_alias(result, given);
}

#[cfg(test)]
mod tests {
    use super::super::tests::runs_with;
    use super::*;
    use crate::analysis::Loads;

    #[test]
    fn a_branch_on_what_is_loaded_once_is_no_split() {
        let text = "function %f(i32) {
                fn0 = %harp_lane_id() -> i32
                fn1 = %emit(i32)
            block0(v0: i32):
                v1 = call fn0()
                jump block1(v0)
            block1(v2: i32):
                v3 = load.i32 aligned v2
                brif v3, block2, block3
            block2:
                call fn1(v1)
                jump block1(v3)
            block3:
                brif v1, block4, block5
            block4:
                call fn1(v3)
                jump block5
            block5:
                return
            }";
        let mut func = cranelift_reader::parse_functions(text).unwrap().remove(0);
        assert_eq!(
            [Loads::Each, Loads::Once].map(|loads| runs_with(&func, loads).0.splits().len()),
            [3, 1]
        );
        let facts = Uniformity::compute(&func, Known::KERNEL);
        assert!(load_once(&mut func, &facts, Known::KERNEL));
        let text = func.display().to_string();
        assert_eq!(text.matches("call fn2(").count(), 1, "{text}");
        let facts = Uniformity::compute(&func, Known::KERNEL);
        assert!(!load_once(&mut func, &facts, Known::KERNEL));
    }
}
