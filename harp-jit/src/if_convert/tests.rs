//! Tests of small regions, with the expected code after conversion.

use expect_test::{Expect, expect};
use harp_isa::ArchId;

use super::{NotPredicable, Region, convert};
use crate::abi::EntryKind;
use crate::analysis::Graph;
use crate::isel;
use crate::options::Execution;
use crate::plan::Plan;
use crate::symbols::PlainNames;
use crate::vcode::{BlockId, VCode};

/// Selected code of a kernel whose entry is a region's head and whose last block is the region's end.
fn selected(body: &str) -> (VCode, Region) {
    let text = format!(
        "function %f(i32, i32) {{
            fn0 = %g(i32)
        block0(v0: i32, v1: i32):
            {body}
        }}"
    );
    let func = cranelift_reader::parse_functions(&text).unwrap().remove(0);
    let target = isel::Target {
        name: "k",
        arch: ArchId::HARP32,
        entry: EntryKind::Function,
        execution: Execution::Simt,
        symbols: &PlainNames,
    };
    let graph = Graph::compute(&func);
    let (vcode, _) = isel::select(&func, &graph, &Plan::default(), target).unwrap();
    vcode.validate().unwrap();
    let end = BlockId::new(vcode.blocks.len() - 1);
    (vcode, Region { head: BlockId::new(0), end })
}

/// Converts the region and compares all code behind the head's own with `expected`.
fn check(body: &str, expected: Expect) {
    let (mut vcode, region) = selected(body);
    let own = vcode.blocks[0].insts.len() - 1;
    convert(&mut vcode, &[region], ArchId::HARP32).unwrap();
    vcode.validate().unwrap();
    let text = vcode.to_string();
    let lines: Vec<_> = text.lines().skip(1 + own).map(str::trim).collect();
    expected.assert_eq(&lines.join("\n"));
}

#[test]
fn an_increment_is_one_instruction() {
    check(
        "   brif v0, block1, block2(v1)
        block1: v9 = iconst.i32 1
            v2 = iadd v1, v9
            jump block2(v2)
        block2(v3: i32): store aligned v3, v3
            return",
        expect![[r#"
            @v3 ? addi %v5<-%v1, %v1, #1
            jump b1(%v5)
            b1(%v0):
            st %v0, %v0, #0
            ret"#]],
    );
}

#[test]
fn a_diamond_of_effects_takes_a_condition_and_its_negation() {
    check(
        "   brif v0, block1, block2
        block1: store aligned v0, v1
            v2 = load.i32 aligned v0
            jump block3(v2)
        block2: v3 = load.i32 aligned v1
            jump block3(v3)
        block3(v4: i32): store aligned v4, v4
            return",
        expect![[r#"
            notp @v6, @v5
            @v6 ? ld %v4, %v3, #0
            @v5 ? st %v1, %v3, #0
            @v5 ? ld %v7<-%v4, %v1, #0
            jump b1(%v7)
            b1(%v0):
            st %v0, %v0, #0
            ret"#]],
    );
}

#[test]
fn two_conditions_that_lead_to_one_block() {
    check(
        "   brif v0, block2, block1
        block1: brif v1, block2, block3
        block2: store aligned v0, v1
            jump block4
        block3: store aligned v1, v0
            jump block4
        block4: return",
        expect![[r#"
            orp @v4, @v3, @v2
            notp @v5, @v4
            @v5 ? st %v1, %v0, #0
            @v4 ? st %v0, %v1, #0
            jump b1()
            b1():
            ret"#]],
    );
}

#[test]
fn nested_regions_merge_by_the_inner_condition() {
    check(
        "   brif v0, block1, block4(v0)
        block1: brif v1, block2, block3
        block2: v2 = imul v0, v1
            jump block5(v2)
        block3: v3 = isub v0, v1
            jump block5(v3)
        block5(v4: i32): v5 = bxor v4, v1
            jump block4(v5)
        block4(v6: i32): store aligned v6, v6
            return",
        expect![[r#"
            sub %v6, %v4, %v2
            @v7 ? mul %v9<-%v6, %v4, %v2
            @v8 ? xor %v10<-%v4, %v9, %v2
            jump b1(%v10)
            b1(%v0):
            st %v0, %v0, #0
            ret"#]],
    );
}

#[test]
fn what_all_lanes_reach_has_no_guard() {
    check(
        "   brif v0, block1, block2
        block1: store aligned v0, v1
            jump block3
        block2: jump block3
        block3: store aligned v1, v1
            brif v1, block4, block5
        block4: store aligned v1, v0
            jump block5
        block5: return",
        expect![[r#"
            @v3 ? st %v1, %v0, #0
            st %v0, %v0, #0
            @v2 ? st %v0, %v1, #0
            jump b1()
            b1():
            ret"#]],
    );
}

#[test]
fn a_value_that_others_read_too_is_moved() {
    check(
        "   brif v0, block1, block2(v1, v1)
        block1: v9 = iconst.i32 1
            v2 = iadd v1, v9
            jump block2(v2, v2)
        block2(v3: i32, v4: i32): store aligned v3, v4
            return",
        expect![[r#"
            addi %v3, %v2, #1
            @v4 ? ori %v6<-%v2, %v3, #0
            @v4 ? ori %v7<-%v2, %v3, #0
            jump b1(%v6, %v7)
            b1(%v0, %v1):
            st %v0, %v1, #0
            ret"#]],
    );
}

#[test]
fn what_concerns_the_warp_is_refused_and_nothing_changed() {
    let (vcode, region) = selected(
        "   brif v0, block1, block2
        block1: call fn0(v1)
            jump block2
        block2: return",
    );
    let mut after = vcode.clone();
    let error = convert(&mut after, &[region], ArchId::HARP32).unwrap_err();
    assert!(matches!(error, NotPredicable::Instruction { .. }), "{error}");
    assert_eq!(after.to_string(), vcode.to_string());
}

#[test]
fn regions_with_other_entries_and_cycles_are_refused() {
    let (mut vcode, region) = selected(
        "   brif v0, block1, block2
        block1: brif v1, block2, block3
        block2: jump block4
        block3: jump block4
        block4: return",
    );
    let inner = vcode.blocks().find(|(id, block)| id.index() > 0 && block.succs.len() == 2);
    let head = inner.unwrap().0;
    let error = convert(&mut vcode, &[Region { head, ..region }], ArchId::HARP32).unwrap_err();
    assert!(matches!(error, NotPredicable::Entry { .. }), "{error}");
    let head = BlockId::new(vcode.blocks.len() - 1);
    let error = convert(&mut vcode, &[Region { head, ..region }], ArchId::HARP32).unwrap_err();
    assert_eq!(error, NotPredicable::Head { head });

    let (mut vcode, region) = selected(
        "   brif v0, block1, block2
        block1: brif v1, block1, block3
        block2: jump block3
        block3: return",
    );
    let error = convert(&mut vcode, &[region], ArchId::HARP32).unwrap_err();
    assert!(matches!(error, NotPredicable::Cycle { .. }), "{error}");
}
