//! Kernels with what random ones hold rarely: votes, and lanes that part in each way.

use harp_isa::abi::ArgumentBlock;
use harp_isa::{ArchId, WordSize};

use crate::functions::parse;
use crate::oracle::{Argument, Case, Elements};

/// Work-items of each.
const ITEMS: u64 = 24;

/// How each begins: it gets a buffer with a word a work-item, of which it changes its own, `v5` at `v4`. `ARGUMENT` is where
/// the buffer's address lies in the argument block.
const START: &str = "fn0 = %harp_global_id_x() -> i32 fast
        fn1 = %harp_any(i8) -> i8 fast
    block0(v0: i32):
        v1 = load.i32 notrap aligned readonly v0+ARGUMENT
        v2 = call fn0()
        v100 = iconst.i32 2
        v3 = ishl v2, v100
        v4 = iadd v1, v3
        v5 = load.i32 notrap aligned v4";

/// One a kernel.
const TEXTS: [&str; 6] = [
    // A choice of two, one of them nested.
    "function %choices(i32) fast {
        START
        v102 = iconst.i32 3
        v6 = band v5, v102
        brif v6, block1, block4(v5)
    block1:
        v103 = iconst.i32 2
        v7 = icmp eq v6, v103
        brif v7, block2, block3
    block2:
        v104 = iconst.i32 5
        v8 = imul v5, v104
        jump block4(v8)
    block3:
        v105 = iconst.i32 77
        v9 = iadd v5, v105
        store notrap aligned v9, v4
        v10 = ineg v9
        jump block4(v10)
    block4(v11: i32):
        store notrap aligned v11, v4
        return
    }",
    // A vote outside of any split, on what lanes disagree on, and a store where it holds.
    "function %votes(i32) fast {
        START
        v107 = iconst.i32 250
        v6 = icmp ugt v5, v107
        v7 = call fn1(v6)
        v108 = iconst.i32 3
        v8 = icmp ult v5, v108
        v9 = call fn1(v8)
        brif v7, block1, block2
    block1:
        v109 = iconst.i32 1000
        v10 = iadd v5, v109
        store notrap aligned v10, v4
        brif v9, block2, block3
    block2:
        v110 = iconst.i32 3
        v11 = iadd v2, v110
        store notrap aligned v11, v4
        return
    block3:
        return
    }",
    // Votes inside of splits.
    "function %inner_votes(i32) fast {
        START
        v112 = iconst.i32 1
        v6 = band v2, v112
        v113 = iconst.i32 200
        v7 = icmp ugt v5, v113
        brif v6, block1, block2
    block1:
        v8 = call fn1(v7)
        v9 = uextend.i32 v8
        v114 = iconst.i32 100
        v10 = iadd v9, v114
        jump block3(v10)
    block2:
        v115 = iconst.i32 20
        v11 = icmp ult v5, v115
        v12 = call fn1(v11)
        v13 = select v12, v2, v5
        jump block3(v13)
    block3(v14: i32):
        store notrap aligned v14, v4
        return
    }",
    // Selections, which are guarded moves, of truth values and of numbers.
    "function %selections(i32) fast {
        START
        v117 = iconst.i32 100
        v6 = icmp ugt v5, v117
        v118 = iconst.i32 150
        v7 = icmp ult v5, v118
        v8 = band v6, v7
        v9 = bxor v6, v7
        v10 = select v8, v5, v2
        v11 = select v9, v10, v4
        v12 = uextend.i32 v8
        v13 = iadd v11, v12
        v14 = select v6, v13, v10
        store notrap aligned v14, v4
        brif v9, block1, block2
    block1:
        v15 = select v7, v14, v13
        v16 = isub v15, v2
        store notrap aligned v16, v4
        return
    block2:
        return
    }",
    // A loop that all lanes run as often, with lanes that part inside.
    "function %counted(i32) fast {
        START
        v6 = iconst.i32 0
        jump block1(v6, v5)
    block1(v7: i32, v8: i32):
        v120 = iconst.i32 1
        v9 = band v8, v120
        brif v9, block2, block3
    block2:
        v121 = iconst.i32 3
        v10 = imul v8, v121
        v122 = iconst.i32 1
        v11 = iadd v10, v122
        jump block4(v11)
    block3:
        v123 = iconst.i32 1
        v12 = ushr v8, v123
        jump block4(v12)
    block4(v13: i32):
        v124 = iconst.i32 1
        v14 = iadd v7, v124
        v125 = iconst.i32 9
        v15 = icmp ult v14, v125
        brif v15, block1(v14, v13), block5
    block5:
        store notrap aligned v13, v4
        return
    }",
    // Splits one after the other and inside of each other.
    "function %ladder(i32) fast {
        START
        v127 = iconst.i32 1
        v6 = band v5, v127
        brif v6, block1, block2(v5)
    block1:
        v128 = iconst.i32 2
        v7 = band v5, v128
        brif v7, block3, block4
    block3:
        v129 = iconst.i32 11
        v8 = iadd v5, v129
        jump block5(v8)
    block4:
        v130 = iconst.i32 13
        v9 = iadd v2, v130
        jump block5(v9)
    block5(v10: i32):
        v131 = iconst.i32 4
        v11 = band v10, v131
        brif v11, block6, block2(v10)
    block6:
        store notrap aligned v10, v4
        v132 = iconst.i32 7
        v12 = imul v10, v132
        jump block2(v12)
    block2(v13: i32):
        v133 = iconst.i32 8
        v14 = band v13, v133
        brif v14, block7, block8(v13)
    block7:
        v134 = iconst.i32 5
        v15 = iadd v13, v134
        jump block8(v15)
    block8(v16: i32):
        store notrap aligned v16, v4
        return
    }",
];

/// Machines for them, of 4-byte words.
const ARCHS: [&str; 5] = ["harp32", "4w32/16/8/2+x", "4b16/16/4/1", "4w8/2/8/1", "4w16/8/2/1+x"];

/// The kernels with their launches.
pub(super) fn handwritten() -> Vec<Case> {
    let argument = ArgumentBlock::argument(0, WordSize::Four).to_string();
    let cases = TEXTS.iter().map(|text| {
        let text = text.replace("START", START).replace("ARGUMENT", &argument);
        let func = parse(WordSize::Four, &text).remove(0);
        let words = (0..ITEMS as u32).map(|item| item.wrapping_mul(0x9e37_79b9) >> 24);
        let buffer = Argument::Buffer(Elements::Ints, words.flat_map(u32::to_le_bytes).collect());
        Case::kernel(func, WordSize::Four, [ITEMS, 1, 1], vec![buffer])
    });
    cases.collect()
}

/// The machines.
pub(super) fn archs() -> impl Iterator<Item = ArchId> {
    ARCHS.iter().map(|id| id.parse().expect("the list above holds machines"))
}
