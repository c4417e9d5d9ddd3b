//! Kernels with what random ones hold rarely: votes, and lanes that part in each way.

use cranelift_codegen::ir::Function;
use harp_isa::{ArchId, WordSize};

use crate::oracle::{Argument, Elements, KernelCase, ModuleCase};

/// Work-items of each.
const ITEMS: u64 = 24;

/// One a kernel. Each gets a buffer with a word a work-item, of which it changes its own.
const TEXTS: [&str; 6] = [
    // A choice of two, one of them nested.
    "function %choices(i32) fast {
        fn0 = %harp_global_id_x() -> i32 fast
    block0(v0: i32):
        v1 = load.i32 notrap aligned readonly v0+12
        v2 = call fn0()
        v3 = ishl_imm v2, 2
        v4 = iadd v1, v3
        v5 = load.i32 notrap aligned v4
        v6 = band_imm v5, 3
        brif v6, block1, block4(v5)
    block1:
        v7 = icmp_imm eq v6, 2
        brif v7, block2, block3
    block2:
        v8 = imul_imm v5, 5
        jump block4(v8)
    block3:
        v9 = iadd_imm v5, 77
        store notrap aligned v9, v4
        v10 = ineg v9
        jump block4(v10)
    block4(v11: i32):
        store notrap aligned v11, v4
        return
    }",
    // A vote outside of any split, on what lanes disagree on, and a store where it holds.
    "function %votes(i32) fast {
        fn0 = %harp_global_id_x() -> i32 fast
        fn1 = %harp_any(i8) -> i8 fast
    block0(v0: i32):
        v1 = load.i32 notrap aligned readonly v0+12
        v2 = call fn0()
        v3 = ishl_imm v2, 2
        v4 = iadd v1, v3
        v5 = load.i32 notrap aligned v4
        v6 = icmp_imm ugt v5, 250
        v7 = call fn1(v6)
        v8 = icmp_imm ult v5, 3
        v9 = call fn1(v8)
        brif v7, block1, block2
    block1:
        v10 = iadd_imm v5, 1000
        store notrap aligned v10, v4
        brif v9, block2, block3
    block2:
        v11 = iadd_imm v2, 3
        store notrap aligned v11, v4
        return
    block3:
        return
    }",
    // Votes inside of splits.
    "function %inner_votes(i32) fast {
        fn0 = %harp_global_id_x() -> i32 fast
        fn1 = %harp_any(i8) -> i8 fast
    block0(v0: i32):
        v1 = load.i32 notrap aligned readonly v0+12
        v2 = call fn0()
        v3 = ishl_imm v2, 2
        v4 = iadd v1, v3
        v5 = load.i32 notrap aligned v4
        v6 = band_imm v2, 1
        v7 = icmp_imm ugt v5, 200
        brif v6, block1, block2
    block1:
        v8 = call fn1(v7)
        v9 = uextend.i32 v8
        v10 = iadd_imm v9, 100
        jump block3(v10)
    block2:
        v11 = icmp_imm ult v5, 20
        v12 = call fn1(v11)
        v13 = select v12, v2, v5
        jump block3(v13)
    block3(v14: i32):
        store notrap aligned v14, v4
        return
    }",
    // Selections, which are guarded moves, of truth values and of numbers.
    "function %selections(i32) fast {
        fn0 = %harp_global_id_x() -> i32 fast
    block0(v0: i32):
        v1 = load.i32 notrap aligned readonly v0+12
        v2 = call fn0()
        v3 = ishl_imm v2, 2
        v4 = iadd v1, v3
        v5 = load.i32 notrap aligned v4
        v6 = icmp_imm ugt v5, 100
        v7 = icmp_imm ult v5, 150
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
        fn0 = %harp_global_id_x() -> i32 fast
    block0(v0: i32):
        v1 = load.i32 notrap aligned readonly v0+12
        v2 = call fn0()
        v3 = ishl_imm v2, 2
        v4 = iadd v1, v3
        v5 = load.i32 notrap aligned v4
        v6 = iconst.i32 0
        jump block1(v6, v5)
    block1(v7: i32, v8: i32):
        v9 = band_imm v8, 1
        brif v9, block2, block3
    block2:
        v10 = imul_imm v8, 3
        v11 = iadd_imm v10, 1
        jump block4(v11)
    block3:
        v12 = ushr_imm v8, 1
        jump block4(v12)
    block4(v13: i32):
        v14 = iadd_imm v7, 1
        v15 = icmp_imm ult v14, 9
        brif v15, block1(v14, v13), block5
    block5:
        store notrap aligned v13, v4
        return
    }",
    // Splits one after the other and inside of each other.
    "function %ladder(i32) fast {
        fn0 = %harp_global_id_x() -> i32 fast
    block0(v0: i32):
        v1 = load.i32 notrap aligned readonly v0+12
        v2 = call fn0()
        v3 = ishl_imm v2, 2
        v4 = iadd v1, v3
        v5 = load.i32 notrap aligned v4
        v6 = band_imm v5, 1
        brif v6, block1, block2(v5)
    block1:
        v7 = band_imm v5, 2
        brif v7, block3, block4
    block3:
        v8 = iadd_imm v5, 11
        jump block5(v8)
    block4:
        v9 = iadd_imm v2, 13
        jump block5(v9)
    block5(v10: i32):
        v11 = band_imm v10, 4
        brif v11, block6, block2(v10)
    block6:
        store notrap aligned v10, v4
        v12 = imul_imm v10, 7
        jump block2(v12)
    block2(v13: i32):
        v14 = band_imm v13, 8
        brif v14, block7, block8(v13)
    block7:
        v15 = iadd_imm v13, 5
        jump block8(v15)
    block8(v16: i32):
        store notrap aligned v16, v4
        return
    }",
];

/// Machines for them, of 4-byte words.
const ARCHS: [&str; 5] = ["harp32", "4w32/16/8/2+x", "4b16/16/4/1", "4w8/2/8/1", "4w16/8/2/1+x"];

/// The kernels with their launches.
pub(super) fn handwritten() -> Vec<KernelCase> {
    let cases = TEXTS.iter().map(|text| {
        let functions: Vec<Function> =
            cranelift_reader::parse_functions(text).expect("the texts above are CLIF");
        let words = (0..ITEMS as u32).map(|item| item.wrapping_mul(0x9e37_79b9) >> 24);
        let buffer = words.flat_map(u32::to_le_bytes).collect();
        KernelCase {
            module: ModuleCase {
                word: WordSize::Four,
                functions,
                data: Vec::new(),
                args: Vec::new(),
            },
            extents: [ITEMS, 1, 1],
            args: vec![Argument::Buffer(Elements::Ints, buffer)],
        }
    });
    cases.collect()
}

/// The machines.
pub(super) fn archs() -> impl Iterator<Item = ArchId> {
    ARCHS.iter().map(|id| id.parse().expect("the list above holds machines"))
}
