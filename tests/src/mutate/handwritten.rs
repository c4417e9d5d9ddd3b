//! Kernels with what random ones hold rarely: votes, and lanes that part in each way.

use harp_isa::WordSize;
use harp_isa::abi::ArgumentBlock;

use crate::functions::parse;
use crate::oracle::{Argument, Case, Elements};

/// Work-items of each.
const ITEMS: u64 = 24;

/// How each begins: it gets a buffer with a word a work-item, of which it changes its own, `v5` at `v4`. `ARGUMENT` is where
/// the buffer's address lies in the argument block.
const START: &str = "fn0 = %harp_global_id_x() -> i32 fast
        fn1 = %harp_any(i8) -> i8 fast
    block0(v0: i32):
        CONSTANTS
        v1 = load.i32 notrap aligned readonly v0+ARGUMENT
        v2 = call fn0()
        v3 = ishl v2, v1002
        v4 = iadd v1, v3
        v5 = load.i32 notrap aligned v4";

/// Constants that they use: `v1002` is 2, and so on.
const CONSTANTS: [i32; 17] = [1, 2, 3, 4, 5, 7, 8, 9, 11, 13, 20, 77, 100, 150, 200, 250, 1000];

/// One a kernel.
const TEXTS: [&str; 6] = [
    // A choice of two, one of them nested.
    "function %choices(i32) fast {
        START
        v6 = band v5, v1003
        brif v6, block1, block4(v5)
    block1:
        v7 = icmp eq v6, v1002
        brif v7, block2, block3
    block2:
        v8 = imul v5, v1005
        jump block4(v8)
    block3:
        v9 = iadd v5, v1077
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
        v6 = icmp ugt v5, v1250
        v7 = call fn1(v6)
        v8 = icmp ult v5, v1003
        v9 = call fn1(v8)
        brif v7, block1, block2
    block1:
        v10 = iadd v5, v2000
        store notrap aligned v10, v4
        brif v9, block2, block3
    block2:
        v11 = iadd v2, v1003
        store notrap aligned v11, v4
        return
    block3:
        return
    }",
    // Votes inside of splits.
    "function %inner_votes(i32) fast {
        START
        v6 = band v2, v1001
        v7 = icmp ugt v5, v1200
        brif v6, block1, block2
    block1:
        v8 = call fn1(v7)
        v9 = uextend.i32 v8
        v10 = iadd v9, v1100
        jump block3(v10)
    block2:
        v11 = icmp ult v5, v1020
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
        v6 = icmp ugt v5, v1100
        v7 = icmp ult v5, v1150
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
        v9 = band v8, v1001
        brif v9, block2, block3
    block2:
        v10 = imul v8, v1003
        v11 = iadd v10, v1001
        jump block4(v11)
    block3:
        v12 = ushr v8, v1001
        jump block4(v12)
    block4(v13: i32):
        v14 = iadd v7, v1001
        v15 = icmp ult v14, v1009
        brif v15, block1(v14, v13), block5
    block5:
        store notrap aligned v13, v4
        return
    }",
    // Splits one after the other and inside of each other.
    "function %ladder(i32) fast {
        START
        v6 = band v5, v1001
        brif v6, block1, block2(v5)
    block1:
        v7 = band v5, v1002
        brif v7, block3, block4
    block3:
        v8 = iadd v5, v1011
        jump block5(v8)
    block4:
        v9 = iadd v2, v1013
        jump block5(v9)
    block5(v10: i32):
        v11 = band v10, v1004
        brif v11, block6, block2(v10)
    block6:
        store notrap aligned v10, v4
        v12 = imul v10, v1007
        jump block2(v12)
    block2(v13: i32):
        v14 = band v13, v1008
        brif v14, block7, block8(v13)
    block7:
        v15 = iadd v13, v1005
        jump block8(v15)
    block8(v16: i32):
        store notrap aligned v16, v4
        return
    }",
];

/// Machines for them, of 4-byte words.
pub(super) const ARCHS: &[&str] =
    &["harp32", "4w32/16/8/2+x", "4b16/16/4/1", "4w8/2/8/1", "4w16/8/2/1+x", "4w24/12/8/2+x+s8/4"];

/// The kernels with their launches.
pub(super) fn handwritten() -> Vec<Case> {
    let argument = ArgumentBlock::argument(0, WordSize::Four).to_string();
    let constants = CONSTANTS.map(|n| format!("v{} = iconst.i32 {n}", 1000 + n)).join("\n");
    let start = START.replace("ARGUMENT", &argument).replace("CONSTANTS", &constants);
    let cases = TEXTS.iter().map(|text| {
        let text = text.replace("START", &start);
        let func = parse(WordSize::Four, &text).remove(0);
        let words = (0..ITEMS as u32).map(|item| item.wrapping_mul(0x9e37_79b9) >> 24);
        let buffer = Argument::Buffer(Elements::Ints, words.flat_map(u32::to_le_bytes).collect());
        Case::kernel(func, WordSize::Four, [ITEMS, 1, 1], vec![buffer])
    });
    cases.collect()
}
