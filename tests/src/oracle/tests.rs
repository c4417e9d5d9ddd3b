//! The oracle against results that follow from CLIF's documentation.

use cranelift_codegen::ir::{Function, TrapCode};
use harp_isa::WordSize;

use super::{FlatMemory, Grid, ItemTrap, OracleError, Stop, run};

/// A kernel that gets the address of 64 bytes as its only argument.
fn kernel(word: &str, declarations: &str, body: &str) -> Function {
    let offset = if word == "i32" { 36 } else { 72 };
    let text = format!(
        "function %kernel({word}) fast {{
            {declarations}
        block0(v0: {word}):
            v1 = load.{word} notrap aligned v0+{offset}
            {body}
        }}"
    );
    cranelift_reader::parse_functions(&text).unwrap().remove(0)
}

/// Runs `func` over `extents` and gives the traps and the 64 bytes.
fn launch(
    func: &Function,
    word: WordSize,
    extents: [u64; 3],
) -> Result<(Vec<ItemTrap>, Vec<u8>), OracleError> {
    let mut memory = FlatMemory::default();
    let address = memory.allocate((0..64).collect());
    let traps = run(func, Grid { extents, args: &[address], word }, &mut memory)?;
    Ok((traps, memory.contents(address).unwrap().to_vec()))
}

#[test]
fn every_item_gets_its_ids_and_the_grid() {
    let ids = "fn0 = %harp_global_id_x() -> i64
            fn1 = %harp_global_id_y() -> i64
            fn2 = %harp_global_id_z() -> i64";
    let body = "v2 = call fn0()
            v3 = call fn1()
            v4 = call fn2()
            v5 = load.i64 notrap aligned v0
            v6 = load.i64 notrap aligned v0+8
            v7 = imul v4, v6
            v8 = iadd v7, v3
            v9 = imul v8, v5
            v10 = iadd v9, v2
            v11 = iadd v1, v10
            v12 = iconst.i64 100
            v13 = iadd v12, v10
            istore8 v13, v11
            return";
    let func = kernel("i64", ids, body);
    let (traps, bytes) = launch(&func, WordSize::Eight, [3, 2, 4]).unwrap();
    assert_eq!(traps, []);
    assert!(bytes[..24].iter().copied().eq(100..124));
    assert!(bytes[24..].iter().copied().eq(24..64));
}

#[test]
fn addresses_wrap_and_offsets_are_signed() {
    for (word, size) in [("i32", WordSize::Four), ("i64", WordSize::Eight)] {
        let body = format!(
            "v2 = iconst.{word} 0x7fff_fff0
            v3 = iadd v1, v2
            v4 = iadd v3, v2
            v5 = iadd v4, v2
            v6 = iadd v5, v2
            v7 = uload8.{word} v6+64
            v8 = iconst.{word} 16
            v9 = iadd v1, v8
            v10 = uload8.{word} v9-9
            istore8 v7, v1+40
            istore8 v10, v1+41
            return"
        );
        let func = kernel(word, "", &body);
        let outcome = launch(&func, size, [1, 1, 1]).unwrap();
        match size {
            // Four times 0x7ffffff0 is -64 modulo 2^32.
            WordSize::Four => assert_eq!((outcome.0.len(), &outcome.1[40..42]), (0, &[0, 7][..])),
            WordSize::Eight => assert_eq!(outcome.0[0].stop, Stop::BadAddress),
        }
    }
}

#[test]
fn remainders_by_minus_one_are_zero_and_quotients_overflow() {
    let ids = "fn0 = %harp_global_id_x() -> i32";
    let body = "v2 = call fn0()
            v3 = iconst.i32 0x8000_0000
            v4 = iconst.i32 1
            v5 = isub v2, v4
            v6 = srem v3, v5
            v7 = iconst.i32 2
            v8 = ishl v2, v7
            v9 = iadd v1, v8
            store v6, v9
            v10 = sdiv v3, v5
            return";
    let func = kernel("i32", ids, body);
    let (traps, bytes) = launch(&func, WordSize::Four, [3, 1, 1]).unwrap();
    let overflow = ItemTrap { item: 0, stop: Stop::Code(TrapCode::INTEGER_OVERFLOW) };
    assert_eq!(traps, [overflow, ItemTrap { item: 1, stop: Stop::DivideByZero }]);
    assert_eq!(
        (&bytes[..4], &bytes[4..8], &bytes[8..12]),
        (&[0; 4][..], &[4, 5, 6, 7][..], &[0; 4][..])
    );
}

#[test]
fn what_depends_on_the_machine_is_refused() {
    let func = kernel("i32", "fn0 = %harp_lane_id() -> i32", "v2 = call fn0()\n return");
    let error = launch(&func, WordSize::Four, [1, 1, 1]).unwrap_err();
    assert!(matches!(error, OracleError::Unknown { .. }), "{error}");
    let endless = kernel("i32", "", "jump block1\n block1:\n jump block1");
    let error = launch(&endless, WordSize::Four, [1, 1, 1]).unwrap_err();
    assert!(matches!(error, OracleError::OutOfFuel), "{error}");
}
